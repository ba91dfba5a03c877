"""Mutants: change one thing of eprof at a time and see whether a test tells.

    python benchmarks/mutants.py [--number 100] [--seed 1] [--only energy] [--jobs 2] [--state .bench/mutants]
    python benchmarks/mutants.py --list             what would be changed, without running anything

Changes are drawn at random from all that can be made in the modules that make numbers, which is every one but those that
show them (`SHOWS`): comparisons, + - * /, `and` and `or`, `not`, & and |, numbers and powers of ten, min and max,
terms of a sum, factors of units, `abs`, bounds of slices, entries of dictionaries, loops and functions that end early,
results of functions.

Which tests see a change is not guessed: every file of tests is run once with eprof compiled so that each statement says
when it is executed (`marked`), also in the processes that tests start. A change then meets the tests that execute its
statement, quickest first, until one fails. A change that all of them pass has survived: write a test that it fails, or,
if no test can, add it to `mutants-equivalent.toml` with the reason.

--state keeps what tests execute (by what functions say, not by where they stand) and what became of each change. A run
that was stopped goes on there; files of tests that changed are looked at again, and survivors that they execute tried
again. Exit code 1 if more than a tenth of the mutants survive that are not known to be equivalent.
"""

import argparse
import ast
import bisect
import contextlib
import difflib
import hashlib
import importlib.util
import itertools
import json
import marshal
import math
import mmap
import os
import re
import shutil
import signal
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import UnionType

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import pytest

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.toml")
ALLOWED = 0.1
LEFT_OUT = shutil.ignore_patterns(
    ".bench", ".hypothesis", ".git", ".venv", "__pycache__", "*.pyc", ".pytest_cache", ".mypy_cache", ".ruff_cache"
)

# Rooms and files that show numbers or only name things, wherever they stand: what is wrong in them is seen.
SHOWS = {"words", "page", "terminal", "cli", "files", "show", "drawing", "schema", "signs", "messages", "collector"}
SHOWS |= {"collect", "rundir", "progress", "completion", "doctor", "demo", "notebook", "errors", "text", "nouns"}


def modules() -> list[str]:
    """The modules that make numbers, by their path below eprof/."""
    every = (path.relative_to(ROOT / "eprof") for path in sorted((ROOT / "eprof").rglob("*.py")))
    return [str(path) for path in every if not SHOWS & {*path.parts, path.stem}]


@cache
def _source(path: Path) -> str:
    """A module as it was when mutants were drawn: somebody may work on it meanwhile."""
    return path.read_text()


@dataclass(frozen=True)
class Mutant:
    """A change of a module: the source from `start` to `end` (bytes of the file) becomes `new`."""

    module: str
    line: int
    start: int
    end: int
    old: str
    new: str

    @property
    def name(self) -> str:
        """Where and what, in a line."""
        return f"{self.module}:{self.line}: {self.old} -> {self.new}"


COMPARED = {
    ast.Lt: ["<=", ">"],
    ast.LtE: ["<", ">"],
    ast.Gt: [">=", "<"],
    ast.GtE: [">", "<"],
    ast.Eq: ["!="],
    ast.NotEq: ["=="],
    ast.Is: ["is not"],
    ast.IsNot: ["is"],
    ast.In: ["not in"],
    ast.NotIn: ["in"],
}
CALCULATED = {
    ast.Add: ["-"],
    ast.Sub: ["+"],
    ast.Mult: ["/"],
    ast.Div: ["*"],
    ast.FloorDiv: ["*"],
    ast.Mod: ["*"],
    ast.Pow: ["*"],
    ast.BitAnd: ["|"],
    ast.BitOr: ["&"],
    ast.BitXor: ["|"],
    ast.LShift: [">>"],
}
TWINS = {"fmin": "fmax", "fmax": "fmin", "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any"}
TWINS |= {
    "min": "max",
    "max": "min",
    "nanmin": "nanmax",
    "argmin": "argmax",
    "argmax": "argmin",
    "isna": "notna",
    "notna": "isna",
    "logical_or": "logical_and",
}


def mutants(module: str, source: str) -> list[Mutant]:
    """Every change that can be made in a module; a few of them are no Python (`parses`)."""
    tree = ast.parse(source)
    lines = source.encode().splitlines(keepends=True)
    offsets = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    data = source.encode()
    found = []
    for first, last, new in _changes(tree):
        start, end = (offsets[row - 1] + column for row, column in (first, last))
        found.append(Mutant(module, first[0], start, end, data[start:end].decode(), new(data[start:end].decode())))
    return [one for one in found if one.old != one.new]


def mutated(source: str, mutant: Mutant) -> str:
    """The source with the change in it."""
    data = source.encode()
    return (data[: mutant.start] + mutant.new.encode() + data[mutant.end :]).decode()


def parses(source: str, mutant: Mutant) -> bool:
    """Whether the changed source is Python, and another program."""
    try:
        return ast.dump(ast.parse(mutated(source, mutant))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def _changes(tree: ast.Module) -> Iterator["Change"]:
    """(where it starts, where it ends, text -> text) of each; annotations, decorators and docstrings stay."""
    skipped = {id(node) for note in _notes(tree) for node in ast.walk(note)}
    for node in ast.walk(tree):
        if id(node) not in skipped:
            yield from _of(node)


def _notes(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            if getattr(node, name, None) is not None:
                yield getattr(node, name)
        yield from getattr(node, "decorator_list", [])
        if isinstance(node, ast.ClassDef):
            yield from node.keywords
        if isinstance(node, ast.keyword) and node.arg == "strict":  # of zip: says what holds
            yield node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript) and _is_alias(node.value):
            yield node


def _is_alias(value: ast.Subscript) -> bool:
    """`Floats = npt.NDArray[np.float64]` and the like name types."""
    return ast.unparse(value.value) in ("npt.NDArray", "np.ndarray", "tuple", "dict", "list", "Callable", "Mapping")


Change = tuple[tuple[int, int], tuple[int, int], Callable[[str], str]]


def _of(node: ast.AST) -> Iterator[Change]:
    for kind, changes in CHANGES.items():
        if isinstance(node, kind):
            yield from changes(node)


def _compare(node: ast.Compare) -> Iterator[Change]:
    for left, operator, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
        yield from (_between(left, right, new) for new in COMPARED[type(operator)])


def _calculate(node: ast.BinOp) -> Iterator[Change]:
    """Another operator, a term of a sum left out, or a factor that only changes the unit."""
    yield from (_between(node.left, node.right, new) for new in CALCULATED.get(type(node.op), []))
    is_sum = isinstance(node.op, ast.Add | ast.Sub) and not any(map(_is_text, (node.left, node.right)))
    if is_sum or (isinstance(node.op, ast.Mult | ast.Div) and _is_number(node.right)):
        yield _keep(node, node.left)
    if (is_sum and isinstance(node.op, ast.Add)) or (isinstance(node.op, ast.Mult) and _is_number(node.left)):
        yield _keep(node, node.right)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _both(node: ast.BoolOp) -> Iterator[Change]:
    yield _between(node.values[0], node.values[1], "or" if isinstance(node.op, ast.And) else "and")


def _unary(node: ast.UnaryOp) -> Iterator[Change]:
    row, column = _start(node)
    yield (row, column), (row, column + (3 if isinstance(node.op, ast.Not) else 1)), lambda _: ""


def _constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield _put(node, str(not node.value))
    elif isinstance(node.value, int | float):
        yield _put(node, repr(node.value + 1))
        if node.value > 0 and node.value != 1 and math.log10(node.value) % 3 == 0:  # 1e-3 for 1e-6 and the like
            yield _put(node, repr(node.value * (1e-3 if node.value < 1 else 1e3)))


def _twin(node: ast.Attribute) -> Iterator[Change]:
    if node.attr in TWINS:
        yield _end(node.value), _end(node), lambda _: f".{TWINS[node.attr]}"


def _call(node: ast.Call) -> Iterator[Change]:
    """`min` for `max`; what is in `abs` without it."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if isinstance(node.func, ast.Name) and name in TWINS:
        yield _put(node.func, TWINS[name])
    if name in ("abs", "fabs") and len(node.args) == 1:
        yield _keep(node, node.args[0])


def _slice(node: ast.Slice) -> Iterator[Change]:
    """A bound that is one off; bounds that are numbers are changed as such."""
    for bound, step in ((node.lower, "+ 1"), (node.upper, "- 1")):
        if bound is not None and not isinstance(bound, ast.Constant):
            yield _start(bound), _end(bound), lambda old, step=step: f"({old}) {step}"


def _dict(node: ast.Dict) -> Iterator[Change]:
    """The values of neighbours swapped."""
    entries = list(zip(node.keys, node.values, strict=True))
    for (_, first), (key, second) in itertools.pairwise(entries):
        if key is not None and ast.unparse(first) != ast.unparse(second):
            one, two = ast.unparse(first), ast.unparse(second)
            new = f"{two}, {ast.unparse(key)}: {one}"
            yield _start(first), _end(second), lambda _, new=new: new


def _early(node: ast.FunctionDef | ast.For) -> Iterator[Change]:
    """A loop that ends after its first turn; a result that is returned before the last statement that makes it."""
    last = node.body[-1]
    if isinstance(node, ast.For):
        yield _start(last), _end(last), lambda old: f"{old}\n{' ' * last.col_offset}break"
    elif len(node.body) > 2 and isinstance(last, ast.Return) and isinstance(last.value, ast.Name):
        before = "\n".join(map(ast.unparse, node.body[:-2]))
        if re.search(rf"\b{last.value.id}\b", before):
            yield _put(node.body[-2], "pass")


def _result(node: ast.Return) -> Iterator[Change]:
    if node.value is not None and ast.unparse(node.value) != "None":
        yield _put(node.value, "None")


def _condition(node: ast.If | ast.IfExp | ast.While) -> Iterator[Change]:
    yield _start(node.test), _end(node.test), lambda old: f"(not ({old}))"


CHANGES: dict[type | UnionType, Callable[..., Iterator[Change]]] = {
    ast.Compare: _compare,
    ast.BinOp: _calculate,
    ast.BoolOp: _both,
    ast.UnaryOp: _unary,
    ast.Constant: _constant,
    ast.Attribute: _twin,
    ast.Call: _call,
    ast.Slice: _slice,
    ast.Dict: _dict,
    ast.FunctionDef | ast.For: _early,
    ast.Return: _result,
    ast.If | ast.IfExp | ast.While: _condition,
}


def _put(node: ast.AST, new: str) -> Change:
    return _start(node), _end(node), lambda _: new


def _keep(whole: ast.AST, part: ast.AST) -> Change:
    """A part of an expression instead of all of it."""
    return _put(whole, f"({ast.unparse(part)})")


def _between(left: ast.AST, right: ast.AST, new: str) -> Change:
    """The operator between two operands; brackets around these stay."""

    def changed(old: str) -> str:
        before, after = old[: len(old) - len(old.lstrip(") \n"))], old[len(old.rstrip("( \n")) :]
        return f"{before}{new}{after}"

    return _end(left), _start(right), changed


def _start(node: ast.AST) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.AST) -> tuple[int, int]:
    return node.end_lineno, node.end_col_offset


# ----------------------------------------------------------------------------------------------- which tests execute what


@dataclass(frozen=True)
class Unit:
    """A function, a class or another statement at the left of a module, by its name and what it says.

    statements: each with the statements around it before it, and whether it runs in a call, not on import.
    """

    key: str
    statements: list[tuple[ast.stmt, bool]]


@cache
def units(source: str) -> list[Unit]:
    """What a module consists of."""
    return [
        Unit(f"{getattr(node, 'name', '')} {_digest(ast.dump(node))}", [(node, False), *_statements(node, False)])
        for node in ast.parse(source).body
    ]


def _statements(node: ast.AST, called: bool) -> Iterator[tuple[ast.stmt, bool]]:
    called |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, called
        yield from _statements(child, called)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement without those of the statements in it."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        yield (node := waiting.pop())
        waiting += (child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """The names that a statement gives something, and those that it uses."""
    given, used = {getattr(statement, "name", "")} - {""}, set()
    for node in _own(statement):
        if isinstance(node, ast.alias):
            given.add(node.asname or node.name)
            used.add(node.name)
        elif isinstance(node, ast.Name):
            (given if isinstance(node.ctx, ast.Store) else used).add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
    return given, used


MARKS = "eprof_marks"  # a module that only the copies of eprof have: bytes in a file, which all processes of a copy share
_MARKS = "import mmap, pathlib\nwith pathlib.Path(__file__).with_suffix('.bin').open('r+b') as file:\n"
_MARKS += "    SEEN = mmap.mmap(file.fileno(), 0)\n"


def marked(source: str, first: int) -> ast.Module:
    """A module in which each statement of a function first sets its byte in `MARKS`, from number `first` on."""
    tree = ast.parse(source)
    statements = [pair for node in tree.body for pair in [(node, False), *_statements(node, False)]]
    numbers = {id(statement): first + index for index, (statement, _) in enumerate(statements)}
    called = {id(statement) for statement, is_called in statements if is_called}
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and id(block[0]) in called:
                marks = [ast.parse(f"{MARKS}[{numbers[id(statement)]}] = 1").body[0] for statement in block]
                for mark, statement in zip(marks, block, strict=True):
                    for node_of_mark in ast.walk(mark):
                        ast.copy_location(node_of_mark, statement)
                setattr(node, name, list(itertools.chain(*zip(marks, block, strict=True))))
    start = next(number for number, node in enumerate([*tree.body, None]) if not _is_head(node))
    tree.body.insert(start, ast.parse(f"from eprof.{MARKS} import SEEN as {MARKS}").body[0])
    return ast.fix_missing_locations(tree)


def _is_head(node: ast.stmt | None) -> bool:
    """The docstring, or an import from `__future__`."""
    return isinstance(node, ast.Expr) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")


def compiled(path: Path, program: str | ast.Module) -> None:
    """Have Python run a program for a module, whatever its source says: a file of `__pycache__` that is not checked."""
    binary = Path(importlib.util.cache_from_source(path))
    binary.parent.mkdir(exist_ok=True)
    code = marshal.dumps(compile(program, path, "exec", dont_inherit=True))
    binary.write_bytes(importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + bytes(8) + code)


class Recorder:
    """A plugin of pytest that tells which statements each test executes; what it is asked for last is in `record`."""

    def __init__(self, tree: Path, places: list[tuple[str, int]]) -> None:
        self._keys, self._starts = zip(*places, strict=True)
        with (tree / "eprof" / f"{MARKS}.bin").open("r+b") as file:
            self._marks = mmap.mmap(file.fileno(), 0)
        self._shared: set[int] = set()
        self._tests: dict[str, dict] = {}

    def _taken(self) -> set[int]:
        """The numbers of the statements that were executed since this was asked last."""
        numbers = {found.start() for found in re.finditer(b"\1", self._marks)}
        self._marks[:] = bytes(len(self._marks))
        return numbers

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """What is kept from one test to the next would be nobody's: each test works it out anew."""
        self._shared |= self._taken()
        for module in [module for name, module in sys.modules.items() if name.startswith("eprof")]:
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):
                    value.cache_clear()
        self._test = self._tests[item.nodeid] = {"seconds": 0.0, "passed": True, "seen": set()}
        result = yield
        self._test["seen"] |= self._taken()
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef) -> Iterator[None]:
        """What is made once for several tests is executed for each of them."""
        if fixturedef.scope == "function":
            return (yield)
        self._test["seen"] |= self._taken()
        try:
            return (yield)
        finally:
            self._shared |= self._taken()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """How long it took, and whether it is a test that may tell something."""
        self._test["seconds"] += report.duration
        self._test["passed"] &= report.passed

    def record(self) -> dict[str, object]:
        """Keys of units, and for each test that passed: seconds, {number of a unit: its statements as bits}."""
        numbers: dict[int, int] = {}
        tests = {}
        for name, test in self._tests.items():
            bits: dict[int, int] = defaultdict(int)
            for place in test["seen"] | self._shared:
                unit = bisect.bisect(self._starts, place) - 1
                bits[numbers.setdefault(unit, len(numbers))] |= 1 << place - self._starts[unit]
            if test["passed"]:
                tests[name] = round(test["seconds"], 4), {unit: f"{value:x}" for unit, value in bits.items()}
        failed = [name for name, test in self._tests.items() if not test["passed"]]
        return {"units": [self._keys[unit] for unit in numbers], "tests": tests, "not passed": failed}


def record(state: Path, jobs: int) -> None:
    """Bring `state` up to date: a line for each file of tests that is not in it as it is now."""
    known = {one["file"]: one["digest"] for one in lines(state)}
    files = {str(path.relative_to(ROOT)): _digest(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py")}
    waiting = sorted(name for name, digest in files.items() if known.get(name) != digest)
    if not waiting:
        return
    with trees(jobs) as folders:
        sources = {module: _source(ROOT / "eprof" / module) for module in modules()}
        places, count = [], 0
        for module, source in sources.items():
            for tree in folders:
                compiled(tree / "eprof" / module, marked(source, count))
            for unit in units(source):
                places.append((unit.key, count))
                count += len(unit.statements)
        for tree in folders:
            (tree / "eprof" / f"{MARKS}.bin").write_bytes(bytes(count))
            (tree / "eprof" / f"{MARKS}.py").write_text(_MARKS)

        def run(name: str, tree: Path) -> int:
            recorder = Recorder(tree, places)
            code = pytest.main([*QUIET, name], plugins=[recorder])
            with state.open("a") as file:
                file.write(json.dumps({"file": name, "digest": files[name], **recorder.record()}) + "\n")
            return code

        for name, tree, code in forked(waiting, folders, run):
            (state.parent / "said.txt").open("a").write((tree.parent / "said").read_text())
            print(f"looked at {name}" + (f": pytest ends with {code}" if code not in (0, NONE_RAN) else ""), flush=True)


class Tests:
    """The tests that execute a statement, from what `record` kept."""

    def __init__(self, state: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.digests: dict[str, str] = {}
        self._seen: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for one in {one["file"]: one for one in lines(state)}.values():
            self.digests[one["file"]] = one["digest"]
            for name, (seconds, seen) in one["tests"].items() if (ROOT / one["file"]).exists() else ():
                self.seconds[name] = seconds
                for unit, bits in seen.items():
                    self._seen[one["units"][int(unit)]].append((name, int(bits, 16)))
        self._named: dict[str, set[str]] = defaultdict(set)  # tests by names of functions, for those that changed
        for key, tests in self._seen.items():
            self._named[key.split()[0] if key[0] != " " else ""] |= {name for name, _ in tests}
        self._used: dict[str, list[tuple[Unit, int]]] = defaultdict(list)
        for module in modules():
            for unit in units(_source(ROOT / "eprof" / module)):
                for index, (statement, _) in enumerate(unit.statements):
                    for name in _names(statement)[1]:
                        self._used[name].append((unit, index))

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that execute what a mutant changes, quickest files and tests first."""
        source = _source(ROOT / "eprof" / mutant.module)
        rows = [0, *itertools.accumulate(len(line) for line in source.encode().splitlines(keepends=True))]
        for unit in units(source):
            for index, (node, _) in reversed(list(enumerate(unit.statements))):
                start, end = rows[node.lineno - 1] + node.col_offset, rows[node.end_lineno - 1] + node.end_col_offset
                if start <= mutant.start and mutant.end <= end:
                    found = self._executing(unit, index, set())
                    files: Counter[str] = Counter()
                    for name in found:
                        files[name.split("::")[0]] += self.seconds[name]
                    return sorted(
                        found, key=lambda name: (files[name.split("::")[0]], name.split("::")[0], self.seconds[name])
                    )
        return []

    def _executing(self, unit: Unit, index: int, asked: set[str]) -> set[str]:
        """What is worked out on import meets the tests that execute a use of its name."""
        statement, is_called = unit.statements[index]
        if is_called:
            name = unit.key.split()[0]
            known = self._seen.get(unit.key)
            return {test for test, bits in known if bits >> index & 1} if known else self._named[name]
        names = (_names(statement)[0] | ({unit.key.split()[0]} if index else set())) - asked
        asked |= names
        return {test for name in names for user in self._used[name] for test in self._executing(*user, asked)}


# ------------------------------------------------------------------------------------------------------------ running

NONE_RAN = 5
QUIET = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
BESIDE = ["numpy", "pandas", "polars", "pyarrow", "scipy.optimize", "sklearn.linear_model", "hypothesis", "rich"]


def lines(path: Path) -> Iterator[dict]:
    """The lines of a file of JSON, none where there is no file."""
    yield from map(json.loads, path.read_text().splitlines() if path.exists() else ())


@contextlib.contextmanager
def trees(number: int) -> Iterator[list[Path]]:
    """So many copies of the tree, with the real logs beside them where they are at hand."""
    with tempfile.TemporaryDirectory(prefix="eprof-mutants-", ignore_cleanup_errors=True) as folder:
        copies = [Path(folder) / str(job) / "tree" for job in range(number)]
        for copy in copies:
            shutil.copytree(ROOT, copy, ignore=LEFT_OUT)
            if (ROOT.parent / "shared").is_dir():
                (copy.parent / "shared").symlink_to((ROOT.parent / "shared").resolve())
        yield copies


def forked(tasks: Iterable, folders: list[Path], run: Callable[..., int]) -> Iterator[tuple]:
    """`run(task, tree)` in a process of its own, as many at once as there are trees: task, tree and exit code, as they end.

    A process begins with what takes long to import. With it end those that it started.
    """
    for name in BESIDE:
        if importlib.util.find_spec(name.split(".")[0]):
            importlib.import_module(name)
    waiting, free, running = list(tasks), list(folders), {}
    while waiting or running:
        while waiting and free:
            task, tree = waiting.pop(0), free.pop()
            running[_fork(lambda task=task, tree=tree: _settle(tree) or run(task, tree))] = task, tree
        pid, status = os.wait()
        task, tree = running.pop(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        free.append(tree)
        yield task, tree, os.waitstatus_to_exitcode(status)


def _fork(run: Callable[[], int]) -> int:
    """The number of a process that ends with what a function returns."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 70
    try:
        code = run()
    finally:
        os._exit(code)


def _settle(tree: Path) -> None:
    """Make a new process one that tests a tree: in it, with its modules, quiet, and without eprof's cache."""
    os.setsid()
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    sys.argv[:] = ["pytest"]
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # CI: hypothesis draws the same examples each time, so that a mutant's fate does not change.
    os.environ.update(PYTHONPATH=str(tree), CI="1", EPROF_CACHE="off", TMPDIR=str(tree.parent))
    tempfile.tempdir = None
    said = os.open(tree.parent / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)


class Chosen:
    """A plugin of pytest: only these tests, in this order, each with its time; those that fail are written to a file."""

    def __init__(self, seconds: dict[str, float], failed: Path) -> None:
        self._seconds, self._failed = seconds, failed

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave out the others."""
        place = {name: number for number, name in enumerate(self._seconds)}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """A test that takes far too long ends the process."""
        signal.alarm(60 + int(20 * self._seconds[item.nodeid]))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        """Keep its name."""
        if report.failed:
            with self._failed.open("a") as file:
                file.write(report.nodeid + "\n")

    pytest_collectreport = pytest_runtest_logreport


def meet(names: list[str], seconds: dict[str, float], tree: Path, *options: str) -> int:
    """Run tests in a tree, a few files first; the code of the pytest that failed, below 0 if it took too long."""
    files = list(dict.fromkeys(name.split("::")[0] for name in names))
    for some in (files[:4], files[4:16], files[16:]):
        chosen = {name: seconds[name] for name in names if name.split("::")[0] in some}

        def run(some: list[str] = some, chosen: dict[str, float] = chosen) -> int:
            signal.alarm(300)  # modules are imported before the first test begins
            return pytest.main([*QUIET, *options, *some], plugins=[Chosen(chosen, tree.parent / "failed")])

        code = os.waitstatus_to_exitcode(os.waitpid(_fork(run), 0)[1]) if some else 0
        if code not in (0, NONE_RAN):
            return code
    return 0


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """So many mutants of the modules asked for, drawn by what lines say: other lines that change do not change the draw."""
    drawn = [one for one in modules() if not options.only or any(one.startswith(part) for part in options.only)]
    sources = {module: _source(ROOT / "eprof" / module) for module in drawn}
    ranks = {}
    for module, source in sources.items():
        data = source.encode()
        for one in mutants(module, source):
            line = data[data.rfind(b"\n", 0, one.start) + 1 : one.end]
            ranks[one] = _digest(f"{options.seed} {line} {one.old} {one.new}")
    found = (one for one in sorted(ranks, key=ranks.__getitem__) if parses(sources[one.module], one))
    return list(itertools.islice(found, options.number))


def equivalent() -> dict[str, str]:
    """Changes that no test can tell, with the reason: module and old and new text, without the line."""
    if not EQUIVALENT.exists():
        return {}
    return {one["change"]: one["why"] for one in tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])}


def difference(mutant: Mutant) -> str:
    """The changed lines, before and after."""
    source = _source(ROOT / "eprof" / mutant.module)
    lines = [text.splitlines() for text in (source, mutated(source, mutant))]
    return "\n".join(f"      {line}" for line in list(difflib.unified_diff(*lines, n=0, lineterm=""))[3:])


def named(mutant: Mutant) -> str:
    """A mutant by its changed line, which stays where lines move: "counts/counts.py: a + b -> a - b"."""
    source = _source(ROOT / "eprof" / mutant.module)
    lines = [text.splitlines() for text in (source, mutated(source, mutant))]
    pairs = itertools.zip_longest(*lines, fillvalue="")
    before, after = next(pair for pair in pairs if pair[0] != pair[1])
    return f"{mutant.module}: {before.strip()} -> {after.strip()}"


def key(mutant: Mutant) -> str:
    """A mutant of this very source."""
    return f"{mutant.start} {named(mutant)}"


def report(drawn: list[Mutant], told: dict[str, str]) -> int:
    """Say what survived; 1 if that is too much."""
    known = equivalent()
    alive = [one for one in drawn if told[key(one)].startswith("survived")]
    for one in alive:
        print(f"\n{told[key(one)]}: {one.name}\n{known.get(named(one)) or difference(one)}")
    left = [one for one in alive if named(one) not in known]
    total = len(drawn) - len(alive) + len(left)
    print(f"\n{len(left)} of {total} mutants that are not equivalent are alive")
    return int(len(left) > ALLOWED * total)


def main() -> int:
    """Draw, run and report; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="draws the same ones again, where the code is the same")
    parser.add_argument("--only", action="append", metavar="PATH", help="a module or a folder of eprof/; repeatable")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that are tested at once")
    parser.add_argument("--seconds", type=float, default=120, help="most that the tests of a mutant took without it")
    parser.add_argument("--state", type=Path, default=ROOT / ".bench" / "mutants", help="a folder; goes on there")
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    options = parser.parse_args()
    drawn = chosen(options)
    if options.list:
        print("\n".join(f"{one.name}\n{difference(one)}" for one in drawn))
        return 0
    options.state.mkdir(parents=True, exist_ok=True)
    record(options.state / "tests.jsonl", options.jobs)
    return report(drawn, fates(drawn, Tests(options.state / "tests.jsonl"), options))


def fates(drawn: list[Mutant], tests: Tests, options: argparse.Namespace) -> dict[str, str]:
    """What became of each, by `key`: "killed by TEST", "killed by time" or "survived, N tests".

    What --state knows is not run again, but for survivors of other tests. A test that fails without any change, too, tells
    nothing: what it killed meets the others.
    """
    state = options.state / "fates.jsonl"
    known = {one["key"]: one for one in lines(state)}
    names = {key(one): tests.of(one) for one in drawn}
    digests = {
        one: _digest(" ".join(name + tests.digests[name.split("::")[0]] for name in names[one])) for one in names
    }
    told = {one: fate["fate"] for one, fate in known.items() if one in names}
    told = {one: fate for one, fate in told.items() if fate[0] == "k" or known[one]["tests"] == digests[one]}
    useless: set[str] = set()

    def run(mutant: Mutant, tree: Path) -> int:
        path = tree / "eprof" / mutant.module
        try:
            compiled(path, mutated(_source(ROOT / "eprof" / mutant.module), mutant))
            return meet(affordable(names[key(mutant)]), tests.seconds, tree, "-x")
        finally:
            Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)

    def affordable(some: list[str]) -> list[str]:
        total = itertools.accumulate(tests.seconds[name] for name in some)
        return [
            name for name, so_far in zip(some, total, strict=True) if so_far <= options.seconds and name not in useless
        ]

    with trees(options.jobs) as folders:
        while waiting := [one for one in drawn if key(one) not in told]:
            for mutant, tree, code in forked(waiting, folders, run):
                failed = _failed(tree)
                some = len(affordable(names[key(mutant)])), len(names[key(mutant)])
                survived = f"survived, {some[0]} of {some[1]} tests"
                fate = survived if code == 0 else f"killed by {failed[0] if failed else 'time'}"
                told[key(mutant)] = fate
                print(f"{fate}\n    {mutant.name}", flush=True)
                with state.open("a") as file:
                    file.write(json.dumps({"key": key(mutant), "fate": fate, "tests": digests[key(mutant)]}) + "\n")
            killers = {fate.removeprefix("killed by ") for fate in told.values()} & set(tests.seconds)
            for _, tree, _ in forked([sorted(killers)], folders, lambda some, tree: meet(some, tests.seconds, tree)):
                useless |= {*_failed(tree)}
            for one in [one for one, fate in told.items() if fate.removeprefix("killed by ") in useless]:
                print(f"{told.pop(one).removeprefix('killed by ')} fails without any change, so it tells nothing")
    return told


def _failed(tree: Path) -> list[str]:
    """The tests that failed in a tree since this was asked last."""
    path = tree.parent / "failed"
    names = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return names


if __name__ == "__main__":
    sys.exit(main())

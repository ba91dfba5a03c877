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
import copy
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
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import pytest

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.toml")
ALLOWED = 0.1
LEFT_OUT = shutil.ignore_patterns(".?*", "__pycache__", "*.pyc")

# Rooms and files that show numbers or only name things, wherever they stand: what is wrong in them is seen.
SHOWS = {"words", "page", "terminal", "cli", "files", "show", "drawing", "schema", "signs", "messages", "collector"}
SHOWS |= {"collect", "rundir", "progress", "completion", "doctor", "demo", "notebook", "errors", "text", "nouns"}


def modules() -> list[str]:
    """The modules that make numbers, by their path below eprof/."""
    every = (path.relative_to(ROOT / "eprof") for path in sorted((ROOT / "eprof").rglob("*.py")))
    return [str(path) for path in every if not SHOWS & {*path.parts, path.stem}]


@cache
def _source(module: str) -> str:
    """A module as it was when mutants were drawn: somebody may work on it meanwhile."""
    return (ROOT / "eprof" / module).read_text()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Unit(NamedTuple):
    """A function, a class or another statement at the left of a module: its name, and a key that says what it does.

    statements: it and all in it; each with whether it runs in a call, and not when the module is imported.
    """

    name: str
    key: str
    statements: list[tuple[ast.stmt, bool]]


def units(tree: ast.Module) -> Iterator[Unit]:
    """What a module consists of."""
    for node in tree.body:
        name = getattr(node, "name", "")
        yield Unit(name, f"{name} {_digest(ast.dump(node))}", [(node, False), *_statements(node, False)])


def _statements(node: ast.AST, called: bool) -> Iterator[tuple[ast.stmt, bool]]:
    called |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, called
        yield from _statements(child, called)


# ------------------------------------------------------------------------------------------------------------ changes

COMPARED = {ast.Lt: [ast.LtE, ast.Gt], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.Lt], ast.GtE: [ast.Gt, ast.Lt]}
COMPARED |= {ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is]}
COMPARED |= {ast.In: [ast.NotIn], ast.NotIn: [ast.In]}
CALCULATED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
CALCULATED |= {ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.LShift: ast.RShift}
CALCULATED |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.BitXor: ast.BitOr}
TWINS = {"min": "max", "fmin": "fmax", "minimum": "maximum", "argmin": "argmax", "any": "all", "isna": "notna"}
TWINS |= {new: old for old, new in TWINS.items()} | {"nanmin": "nanmax", "logical_or": "logical_and"}


@dataclass(frozen=True, eq=False)
class Mutant:
    """A change of a module, with its number among all that can be made in it; where it is, and what becomes what."""

    module: str
    number: int
    line: int
    unit: Unit
    statement: int
    text: str

    @property
    def name(self) -> str:
        """Where and what, as `mutants-equivalent.toml` has it: with the line, not its number."""
        return f"{self.module}: {_source(self.module).splitlines()[self.line - 1].strip()}: {self.text}"


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every change that can be made in a module."""
    for number, (unit, statement, (*_, node), new) in enumerate(_changes(ast.parse(source))):
        old, made = (ast.unparse(part).splitlines() for part in (node, new))
        yield Mutant(module, number, node.lineno, unit, statement, f"{old[0]} -> {made[-1].strip()}")


def mutated(source: str, number: int) -> ast.Module:
    """The module with the change of this number in it."""
    tree = ast.parse(source)
    *_, (owner, name, place, _), new = next(itertools.islice(_changes(tree), number, None))
    if place is None:
        setattr(owner, name, new)
    else:
        getattr(owner, name)[place] = new
    return ast.fix_missing_locations(tree)


Part = tuple[ast.AST, str, int | None, ast.AST]


def _changes(tree: ast.Module) -> Iterator[tuple[Unit, int, Part, ast.AST]]:
    """In which statement of which unit, what is changed, and what is there instead."""
    for unit in units(tree):
        numbers = {id(statement): index for index, (statement, _) in enumerate(unit.statements)}
        for index, (statement, _) in enumerate(unit.statements):
            for part in _parts(statement):
                for new in _instead(*part):
                    yield unit, numbers.get(id(part[3]), index), part, new


def _parts(statement: ast.stmt) -> Iterator[Part]:
    """What a statement consists of: whose part it is, its field there, its place in a list, the part.

    Not annotations, decorators, what a class is declared as, and `strict` of zip, which says what holds in any case; of
    the statements in it only the last two.
    """
    waiting: list[ast.AST] = [statement]
    while waiting:
        owner = waiting.pop()
        for name, value in ast.iter_fields(owner):
            nodes = value if isinstance(value, list) else [value]
            is_kept = name in ("annotation", "returns", "decorator_list") or isinstance(owner, ast.ClassDef)
            for place, node in enumerate(() if is_kept else nodes):
                if not isinstance(node, ast.AST) or getattr(node, "arg", "") == "strict":
                    continue
                if not isinstance(node, ast.stmt):
                    waiting.append(node)
                elif owner is not statement or name != "body" or place < len(nodes) - 2:
                    continue
                yield owner, name, place if value is nodes else None, node


def _instead(owner: ast.AST, name: str, place: int | None, node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    if isinstance(node, ast.stmt):
        yield from _early(owner, node)
    elif name == "test":
        yield ast.UnaryOp(ast.Not(), node)
    elif isinstance(owner, ast.Return) and not (isinstance(node, ast.Constant) and node.value is None):
        yield ast.Constant(None)
    match node:
        case ast.Compare(ops=operators):
            for place, operator in enumerate(operators):
                for new in COMPARED[type(operator)]:
                    yield _with(node, ops=[*operators[:place], new(), *operators[place + 1 :]])
        case ast.BinOp():
            yield from _calculated(node)
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp():
            yield node.operand
        case _:
            yield from _other(node)


def _other(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
            if value > 0 and value != 1 and math.log10(value) % 3 == 0:  # 1e-3 for 1e-6 and the like
                yield ast.Constant(value * (1e-3 if value < 1 else 1e3))
        case ast.Attribute(attr=attribute) if attribute in TWINS:
            yield _with(node, attr=TWINS[attribute])
        case ast.Call(func=ast.Name(id=function)) if function in TWINS:
            yield _with(node, func=ast.Name(TWINS[function], ast.Load()))
        case ast.Call(func=ast.Name(id="abs") | ast.Attribute(attr="abs" | "fabs"), args=[value]):
            yield value
        case ast.Slice(lower=lower, upper=upper):
            for field, bound, operator in (("lower", lower, ast.Add()), ("upper", upper, ast.Sub())):
                if bound is not None and not isinstance(bound, ast.Constant):
                    yield _with(node, **{field: ast.BinOp(bound, operator, ast.Constant(1))})
        case ast.Dict(values=values):
            for place, (first, second) in enumerate(itertools.pairwise(values)):
                if None not in node.keys[place : place + 2] and ast.unparse(first) != ast.unparse(second):
                    yield _with(node, values=[*values[:place], second, first, *values[place + 2 :]])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A node like another but for these fields."""
    new = copy.copy(node)
    vars(new).update(fields)
    return new


def _calculated(node: ast.BinOp) -> Iterator[ast.AST]:
    """Another operator, a term of a sum left out, or a factor that only changes the unit."""
    if type(node.op) in CALCULATED:
        yield _with(node, op=CALCULATED[type(node.op)]())
    numbers = [isinstance(one, ast.Constant) and isinstance(one.value, int | float) for one in (node.left, node.right)]
    texts = [isinstance(one, ast.JoinedStr) or _is_text(one) for one in (node.left, node.right)]
    is_sum = isinstance(node.op, ast.Add | ast.Sub) and not any(texts)
    if is_sum or (isinstance(node.op, ast.Mult | ast.Div) and numbers[1]):
        yield node.left
    if (is_sum and isinstance(node.op, ast.Add)) or (isinstance(node.op, ast.Mult) and numbers[0]):
        yield node.right


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _early(owner: ast.AST, node: ast.stmt) -> Iterator[ast.AST]:
    """A loop that ends after its first turn; a result that is returned before the last statement that makes it."""
    last = owner.body[-1]
    if isinstance(owner, ast.For) and node is last and not isinstance(last, ast.Return | ast.Raise | ast.Continue):
        yield ast.If(ast.Constant(True), [node, ast.Break()], [])
    if isinstance(owner, ast.FunctionDef) and node is not last and isinstance(last, ast.Return) and len(owner.body) > 2:
        before = "\n".join(map(ast.unparse, owner.body[:-2]))
        if isinstance(last.value, ast.Name) and re.search(rf"\b{last.value.id}\b", before):
            yield ast.Pass()


# ----------------------------------------------------------------------------------------------- which tests execute what

MARKS = "eprof_marks"  # a module that only copies of eprof have: bytes of a file, which all processes of a copy share
_MARKS = "import mmap, pathlib\nwith pathlib.Path(__file__).with_suffix('.bin').open('r+b') as file:\n"
_MARKS += "    SEEN = mmap.mmap(file.fileno(), 0)\n"


def marked(source: str, first: int) -> ast.Module:
    """A module in which each statement of a function first sets its byte in `MARKS`, from number `first` on."""
    tree = ast.parse(source)
    statements = [pair for unit in units(tree) for pair in unit.statements]
    numbers = {id(statement): number for number, (statement, called) in enumerate(statements, first) if called}
    for node in list(ast.walk(tree)):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for statement in list(block) if isinstance(block, list) else ():
                if id(statement) in numbers and not _is_head(statement):
                    mark = ast.parse(f"{MARKS}[{numbers[id(statement)]}] = 1").body[0]
                    for part in ast.walk(mark):
                        ast.copy_location(part, statement)
                    block.insert(block.index(statement), mark)
    start = sum(1 for _ in itertools.takewhile(_is_head, tree.body))
    tree.body.insert(start, ast.parse(f"from eprof.{MARKS} import SEEN as {MARKS}").body[0])
    return ast.fix_missing_locations(tree)


def _is_head(node: ast.stmt) -> bool:
    """What must stand first: a docstring, or an import from `__future__`."""
    is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
    return is_future or (isinstance(node, ast.Expr) and _is_text(node.value))


def put(path: Path, program: ast.Module) -> None:
    """Put a program in a module's place: its source, and a file of `__pycache__` that Python does not check."""
    path.write_text(ast.unparse(program))
    binary = Path(importlib.util.cache_from_source(path))
    binary.parent.mkdir(exist_ok=True)
    code = marshal.dumps(compile(program, path, "exec", dont_inherit=True))
    binary.write_bytes(importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + bytes(8) + code)


class Recorder:
    """A plugin of pytest that learns which statements each test executes."""

    def __init__(self, tree: Path) -> None:
        with (tree / "eprof" / f"{MARKS}.bin").open("r+b") as file:
            self._marks = mmap.mmap(file.fileno(), 0)
        self.shared: set[int] = set()  # outside of any test: fixtures and lists of parameters
        self.tests: dict[str, tuple[float, set[int]]] = {}

    def _taken(self) -> set[int]:
        """The numbers of the statements that were executed since this was asked last."""
        numbers = {found.start() for found in re.finditer(b"\1", self._marks)}
        self._marks[:] = bytes(len(self._marks))
        return numbers

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Time a test. One that fails or is skipped raises here, and tells nothing of mutants."""
        self.shared |= self._taken()
        for module in [module for name, module in sys.modules.items() if name.startswith("eprof")]:
            for value in list(vars(module).values()):
                if hasattr(value, "cache_clear"):  # what an earlier test had worked out would be nobody's
                    value.cache_clear()
        began = time.monotonic()
        yield
        self.tests[item.nodeid] = time.monotonic() - began, self._taken()


def record(state: Path, jobs: int) -> None:
    """Bring `state` up to date: a line for each file of tests that is not in it as it is now.

    Keys of units, and for each test its seconds and {number of a unit: which of its statements, as bits}.
    """
    known = {one["file"]: one["digest"] for one in lines(state)}
    files = {str(path.relative_to(ROOT)): _digest(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py")}
    waiting = sorted(name for name, digest in files.items() if known.get(name) != digest)
    if not waiting:
        return
    with trees(jobs) as folders:
        keys, starts, count = [], [], 0
        for module in modules():
            for tree in folders:
                put(tree / "eprof" / module, marked(_source(module), count))
            for unit in units(ast.parse(_source(module))):
                keys.append(unit.key)
                starts.append(count)
                count += len(unit.statements)
        for tree in folders:
            (tree / "eprof" / f"{MARKS}.bin").write_bytes(bytes(count))
            (tree / "eprof" / f"{MARKS}.py").write_text(_MARKS)

        def run(name: str, tree: Path) -> int:
            recorder = Recorder(tree)
            code = pytest.main([*QUIET, name], plugins=[recorder])
            tests, numbers = {}, {}
            for test, (seconds, seen) in recorder.tests.items():
                bits: dict[int, int] = defaultdict(int)
                for place in seen | recorder.shared:
                    unit = bisect.bisect(starts, place) - 1
                    bits[numbers.setdefault(unit, len(numbers))] |= 1 << place - starts[unit]
                tests[test] = round(seconds, 4), {unit: f"{value:x}" for unit, value in bits.items()}
            used = [keys[unit] for unit in numbers]
            add(state, {"file": name, "digest": files[name], "units": used, "tests": tests})
            return code

        for name, _, code in forked(waiting, folders, run):
            print(f"looked at {name}" + ("" if code in (0, NONE_RAN) else f": pytest ends with {code}"), flush=True)


class Tests:
    """The tests that execute a statement, from what `record` kept."""

    def __init__(self, state: Path) -> None:
        self.seconds: dict[str, float] = {}
        self.digests: dict[str, str] = {}
        self._seen: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._named: dict[str, set[str]] = defaultdict(set)  # for functions that changed
        for one in {one["file"]: one for one in lines(state)}.values():
            self.digests[one["file"]] = one["digest"]
            for name, (seconds, seen) in one["tests"].items() if (ROOT / one["file"]).exists() else ():
                self.seconds[name] = seconds
                for unit, bits in seen.items():
                    key = one["units"][int(unit)]
                    self._seen[key].append((name, int(bits, 16)))
                    self._named[key.split(" ")[0]].add(name)
        self._users: dict[str, list[tuple[Unit, int]]] = defaultdict(list)
        for unit in itertools.chain(*(units(ast.parse(_source(module))) for module in modules())):
            for index, (statement, _) in enumerate(unit.statements):
                for name in _names(statement)[1]:
                    self._users[name].append((unit, index))

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that execute what a mutant changes, quickest files and tests first."""
        names = self._executing(mutant.unit, mutant.statement, set())
        if not names and not mutant.unit.statements[mutant.statement][1]:  # nobody uses it; may the module be imported?
            known = [self._seen.get(unit.key, ()) for unit in units(ast.parse(_source(mutant.module)))]
            names = {test for tests in known for test, _ in tests}
        files: Counter[str] = Counter()
        for name in names:
            files[_file(name)] += self.seconds[name]
        return sorted(names, key=lambda name: (files[_file(name)], _file(name), self.seconds[name]))

    def _executing(self, unit: Unit, index: int, asked: set[str]) -> set[str]:
        """What is worked out on import meets the tests that execute a use of its name."""
        statement, called = unit.statements[index]
        if called and unit.key in self._seen:
            return {test for test, bits in self._seen[unit.key] if bits >> index & 1}
        if called:
            return self._named[unit.name]
        names = (_names(statement)[0] | {unit.name}) - asked
        asked |= names
        return {test for name in names for user in self._users[name] for test in self._executing(*user, asked)}


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """The names that a statement gives something, and those that it uses."""
    given, used = {getattr(statement, "name", "")}, set()
    for *_, node in _parts(statement):
        if isinstance(node, ast.alias):
            given.add(node.asname or node.name)
            used.add(node.name)
        elif isinstance(node, ast.Name):
            (given if isinstance(node.ctx, ast.Store) else used).add(node.id)
        elif isinstance(node, ast.Attribute | ast.keyword):
            used.add(getattr(node, "attr", "") or node.arg)
    return given - {""}, used


def _file(test: str) -> str:
    return test.split("::")[0]


# ------------------------------------------------------------------------------------------------------------ running

NONE_RAN = 5
QUIET = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
BESIDE = ["numpy", "pandas", "polars", "pyarrow", "scipy.optimize", "sklearn.linear_model", "hypothesis", "rich"]


def lines(path: Path) -> Iterator[dict]:
    """The lines of a file of JSON, none where there is no file."""
    yield from map(json.loads, path.read_text().splitlines() if path.exists() else ())


def add(path: Path, line: dict) -> None:
    """One more."""
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


@contextlib.contextmanager
def trees(number: int) -> Iterator[list[Path]]:
    """So many copies of the tree, with the real logs beside them where they are at hand."""
    with tempfile.TemporaryDirectory(prefix="eprof-mutants-", ignore_cleanup_errors=True) as folder:
        copies = [Path(folder) / str(job) / "tree" for job in range(number)]
        for tree in copies:
            shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
            if (ROOT.parent / "shared").is_dir():
                (tree.parent / "shared").symlink_to((ROOT.parent / "shared").resolve())
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
    sys.modules["__main__"] = ModuleType("__main__")  # what processes of multiprocessing would run again
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
    files = list(dict.fromkeys(map(_file, names)))
    for some in (files[:4], files[4:16], files[16:]):
        chosen = {name: seconds[name] for name in names if _file(name) in some}

        def run(some: list[str] = some, chosen: dict[str, float] = chosen) -> int:
            signal.alarm(300)  # modules are imported before the first test begins
            return pytest.main([*QUIET, *options, *some], plugins=[Chosen(chosen, tree.parent / "failed")])

        code = os.waitstatus_to_exitcode(os.waitpid(_fork(run), 0)[1]) if some else 0
        if code not in (0, NONE_RAN):
            return code
    return 0


def _failed(tree: Path) -> list[str]:
    """The tests that failed in a tree since this was asked last."""
    path = tree.parent / "failed"
    names = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return names


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """So many mutants of the modules asked for, drawn by what they say: changes elsewhere do not change the draw."""
    drawn = [one for one in modules() if not options.only or any(one.startswith(part) for part in options.only)]
    ranks: dict[Mutant, str] = {}
    times: Counter[str] = Counter()
    for one in itertools.chain(*(mutants(module, _source(module)) for module in drawn)):
        says = f"{options.seed} {one.unit.name} {one.text}"
        times[says] += 1
        ranks[one] = _digest(f"{says} {times[says]}")
    return sorted(ranks, key=ranks.__getitem__)[: options.number]


def fates(drawn: list[Mutant], tests: Tests, options: argparse.Namespace) -> dict[Mutant, str]:
    """What became of each: "killed by TEST", "killed by time" or "survived, N of N tests".

    What --state knows is not run again, but for survivors that other tests execute now. A test that fails without any
    change, too, tells nothing: what it killed meets the others.
    """
    state = options.state / "fates.jsonl"
    known = {one["key"]: one for one in lines(state)}
    names = {one: tests.of(one) for one in drawn}
    keys = {one: f"{one.unit.key} {one.statement} {one.number} {one.text}" for one in drawn}
    seen = {one: _digest(" ".join(name + tests.digests[_file(name)] for name in names[one])) for one in drawn}
    told = {one: known[keys[one]]["fate"] for one in drawn if keys[one] in known}
    told = {one: fate for one, fate in told.items() if fate[0] == "k" or known[keys[one]]["tests"] == seen[one]}
    useless: set[str] = set()

    def affordable(mutant: Mutant) -> list[str]:
        total = itertools.accumulate(tests.seconds[name] for name in names[mutant])
        some = [name for name, so_far in zip(names[mutant], total, strict=True) if so_far <= options.seconds]
        return [name for name in some if name not in useless]

    def run(mutant: Mutant, tree: Path) -> int:
        path = tree / "eprof" / mutant.module
        try:
            put(path, mutated(_source(mutant.module), mutant.number))
            return meet(affordable(mutant), tests.seconds, tree, "-x")
        finally:
            path.write_text(_source(mutant.module))
            Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)

    with trees(options.jobs) as folders:
        while waiting := [one for one in drawn if one not in told]:
            for mutant, tree, code in forked(waiting, folders, run):
                killer = [*_failed(tree), "time" if code < 0 else f"an end of pytest with {code}"][0]
                survived = f"survived, {len(affordable(mutant))} of {len(names[mutant])} tests"
                told[mutant] = survived if code == 0 else f"killed by {killer}"
                print(f"{told[mutant]}\n    {mutant.module}:{mutant.line}: {mutant.text}", flush=True)
                add(state, {"key": keys[mutant], "fate": told[mutant], "tests": seen[mutant]})
            killers = {fate.removeprefix("killed by ") for fate in told.values()} & {*tests.seconds}
            for _, tree, _ in forked([sorted(killers)], folders, lambda some, tree: meet(some, tests.seconds, tree)):
                useless |= {*_failed(tree)}
            for one in [one for one, fate in told.items() if fate.removeprefix("killed by ") in useless]:
                print(f"{told.pop(one).removeprefix('killed by ')} fails without any change, so it tells nothing")
    return told


def report(told: dict[Mutant, str]) -> int:
    """Say what survived; 1 if that is too much."""
    known = {one["change"]: one["why"] for one in tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])}
    alive = [one for one, fate in told.items() if fate[0] == "s"]
    for one in alive:
        print(f"\n{told[one]}, line {one.line}\n{one.name}\n{known.get(one.name, '')}")
    left = [one for one in alive if one.name not in known]
    total = len(told) - len(alive) + len(left)
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
        print("\n".join(f"{one.module}:{one.line}: {one.text}" for one in drawn))
        return 0
    options.state.mkdir(parents=True, exist_ok=True)
    record(options.state / "tests.jsonl", options.jobs)
    return report(fates(drawn, Tests(options.state / "tests.jsonl"), options))


if __name__ == "__main__":
    sys.exit(main())

"""Which tests execute which statements of eprof: every file of tests is run with eprof compiled so that statements say so.

Each statement of a function sets a byte of a file when it is executed (`marked`), also in the processes that tests start.
What is kept goes by what functions say, not by where they stand: files may move and join meanwhile.
"""

import ast
import bisect
import contextlib
import hashlib
import importlib.util
import json
import marshal
import mmap
import os
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import pytest

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".?*", "__pycache__", "*.pyc")

# Rooms and files that show numbers or only name things, wherever they stand: what is wrong in them is seen.
SHOWS = {"words", "page", "terminal", "cli", "files", "show", "drawing", "schema", "messages", "collector"}
SHOWS |= {"collect", "rundir", "progress", "completion", "doctor", "demo", "notebook", "errors", "text", "nouns"}


def modules() -> list[str]:
    """The modules that make numbers, by their path below eprof/."""
    every = (path.relative_to(ROOT / "eprof") for path in sorted((ROOT / "eprof").rglob("*.py")))
    return [str(path) for path in every if not SHOWS & {*path.parts, path.stem}]


@cache
def source_of(module: str) -> str:
    """A module as it was when mutants were drawn: somebody may work on it meanwhile."""
    return (ROOT / "eprof" / module).read_text()


def digest(text: str) -> str:
    """A short name for a text."""
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
        yield Unit(name, f"{name} {digest(ast.dump(node))}", [(node, False), *_statements(node, False)])


def _statements(node: ast.AST, called: bool) -> Iterator[tuple[ast.stmt, bool]]:
    called |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child, called
        yield from _statements(child, called)


Part = tuple[ast.AST, str, int | None, ast.AST]


def parts(statement: ast.stmt) -> Iterator[Part]:
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


def is_text(node: ast.AST) -> bool:
    """Whether it is a literal text."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


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
                if id(statement) in numbers and not _is_docstring(statement):
                    mark = ast.parse(f"{MARKS}[{numbers[id(statement)]}] = 1").body[0]
                    for part in ast.walk(mark):
                        ast.copy_location(part, statement)
                    block.insert(block.index(statement), mark)
    # Before the first function, and no sooner: a script says before where eprof is.
    first_function = next((place for place, node in enumerate(tree.body) if _holds_function(node)), None)
    if first_function is not None:
        tree.body.insert(first_function, ast.parse(f"from eprof.{MARKS} import SEEN as {MARKS}").body[0])
    return ast.fix_missing_locations(tree)


def _holds_function(node: ast.stmt) -> bool:
    return any(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in ast.walk(node))


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and is_text(node.value)


def put(path: Path, program: ast.Module) -> None:
    """Put a program in a module's place: its source, and a file of `__pycache__` that Python does not check."""
    path.write_text(ast.unparse(program))
    binary = Path(importlib.util.cache_from_source(path))
    binary.parent.mkdir(exist_ok=True)
    code = marshal.dumps(compile(program, path, "exec", dont_inherit=True))
    binary.write_bytes(importlib.util.MAGIC_NUMBER + b"\1\0\0\0" + bytes(8) + code)


def restore(path: Path, source: str) -> None:
    """Put a module's own source back."""
    path.write_text(source)
    Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)


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
    files = {str(path.relative_to(ROOT)): digest(path.read_text()) for path in (ROOT / "tests").rglob("test_*.py")}
    waiting = sorted(name for name, digest in files.items() if known.get(name) != digest)
    if not waiting:
        return
    with trees(jobs) as folders:
        keys, starts, count = [], [], 0
        for module in modules():
            for tree in folders:
                put(tree / "eprof" / module, marked(source_of(module), count))
            for unit in units(ast.parse(source_of(module))):
                keys.append(unit.key)
                starts.append(count)
                count += len(unit.statements)
        tree_key = digest(" ".join(keys))
        add(state, {"file": f"tree {tree_key}", "digest": "", "tree": tree_key, "units": keys, "tests": {}})
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
            add(state, {"file": name, "digest": files[name], "tree": tree_key, "units": used, "tests": tests})
            return code

        for name, _, code in forked(waiting, folders, run):
            print(f"looked at {name}" + ("" if code in (0, NONE_RAN) else f": pytest ends with {code}"), flush=True)


class Tests:
    """The tests that execute a statement, from what `record` kept."""

    def __init__(self, state: Path) -> None:
        self.seconds: dict[str, float] = {}
        self._seen: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._named: dict[str, set[str]] = defaultdict(set)
        self._files = {one["file"]: one for one in lines(state)}
        trees = [one for name, one in self._files.items() if name.startswith("tree ")]
        self._then: dict[str, tuple[set[str], set[str]]] = {one["tree"]: ({*one["units"]}, set()) for one in trees}
        for one in self._files.values():
            for name, (seconds, seen) in one["tests"].items() if (ROOT / one["file"]).exists() else ():
                self.seconds[name] = seconds
                self._then[one["tree"]][1].add(name)
                for unit, bits in seen.items():
                    key = one["units"][int(unit)]
                    self._seen[key].append((name, int(bits, 16)))
                    self._named[key.split(" ")[0]].add(name)
        self._users: dict[str, list[tuple[str, Unit, int]]] = defaultdict(list)
        for module in modules():
            for unit in units(ast.parse(source_of(module))):
                for index, (statement, _) in enumerate(unit.statements):
                    for name in _names(statement)[1]:
                        self._users[name].append((module, unit, index))

    def _record(self, test: str) -> dict:
        return self._files[file_of(test)]

    def digest(self, names: Iterable[str]) -> str:
        """Of what tests say."""
        return digest(" ".join(name + self._record(name)["digest"] for name in names))

    def of(self, module: str, unit: Unit, statement: int) -> list[str]:
        """The tests that execute a statement, quickest files and tests first."""
        names = self._executing(module, unit, statement, set())
        if not names and not unit.statements[statement][1]:  # nobody uses it; may the module be imported?
            known = [self._seen.get(one.key, ()) for one in units(ast.parse(source_of(module)))]
            names = {test for tests in known for test, _ in tests}
        files: Counter[str] = Counter()
        for name in names:
            files[file_of(name)] += self.seconds[name]
        return sorted(names, key=lambda name: (files[file_of(name)], file_of(name), self.seconds[name]))

    def _executing(self, module: str, unit: Unit, index: int, asked: set[str]) -> set[str]:
        """What is worked out on import meets the tests that execute a use of its name, in its module if it is private."""
        statement, called = unit.statements[index]
        if called:  # tests that were looked at before it was changed are those of its name
            before = set().union(*(tests for keys, tests in self._then.values() if unit.key not in keys))
            now = {test for test, bits in self._seen.get(unit.key, ()) if bits >> index & 1}
            return now | (before & self._named[unit.name] if before else before)
        names = (_names(statement)[0] | {unit.name}) - asked
        asked |= names
        users = [user for name in names for user in self._users[name] if name[:1] != "_" or user[0] == module]
        return set().union(*(self._executing(*user, asked) for user in users))


def _names(statement: ast.stmt) -> tuple[set[str], set[str]]:
    """The names that a statement gives something, and those that it uses."""
    given, used = {getattr(statement, "name", "")}, set()
    for *_, node in parts(statement):
        if isinstance(node, ast.alias):
            given.add(node.asname or node.name)
            used.add(node.name)
        elif isinstance(node, ast.Name):
            (given if isinstance(node.ctx, ast.Store) else used).add(node.id)
        elif isinstance(node, ast.Attribute | ast.keyword):
            used.add(getattr(node, "attr", "") or node.arg)
    return given - {""}, used


def file_of(test: str) -> str:
    """The file of a test, by the test's name."""
    return test.split("::")[0]


NONE_RAN = 5
QUIET = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
BESIDE = ["numpy", "pandas", "pyarrow", "scipy.optimize", "sklearn.linear_model", "hypothesis", "rich"]


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
            running[fork(lambda task=task, tree=tree: _settle(tree) or run(task, tree))] = task, tree
        pid, status = os.wait()
        task, tree = running.pop(pid)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        free.append(tree)
        yield task, tree, os.waitstatus_to_exitcode(status)


def fork(run: Callable[[], int]) -> int:
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
    """Make a new process one that tests a tree: in it, with its modules, quiet, with a cache of its own."""
    os.setsid()
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    sys.argv[:] = ["pytest"]
    sys.modules["__main__"] = ModuleType("__main__")  # what processes of multiprocessing would run again
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # CI: hypothesis draws the same examples each time, so that a mutant's fate does not change.
    os.environ.update(PYTHONPATH=str(tree), CI="1", EPROF_CACHE=str(tree.parent / "cache"), TMPDIR=str(tree.parent))
    tempfile.tempdir = None
    said = os.open(tree.parent / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)

"""Mutants: change one thing of eprof at a time and see whether a test tells.

    python benchmarks/mutants.py [--number 100] [--seed 1] [--only energy] [--jobs 2] [--state mutants.jsonl]
    python benchmarks/mutants.py --list             what would be changed and by which tests, without running one

Changes are drawn at random from all that can be made in the modules that make numbers, which is every one but those that
show them (`SHOWS`): comparisons, + - * /, `and` and `or`, `not`, & and |, numbers and powers of ten, min and max,
terms of a sum, factors of units, `abs`, bounds of slices, entries of dictionaries, loops and functions that end early,
results of functions. Each goes into a copy of the tree (never into this one), and the tests nearest to the module
(`nearest`) are run there until one fails. A change that all of them pass has survived: write a test that it fails, or,
if no test can, add it to `mutants-equivalent.toml` with the reason.

What was run is kept in --state, a line each: a run that was stopped goes on there. Exit code 1 if more than a tenth
of the mutants survive that are not known to be equivalent.
"""

import argparse
import ast
import difflib
import itertools
import json
import math
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from queue import Queue
from types import UnionType

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.toml")
ALLOWED = 0.1
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", "*.pyc", ".pytest_cache", ".mypy_cache", ".ruff_cache"
)

# Rooms and files that show numbers or only name things, wherever they stand: what is wrong in them is seen.
SHOWS = {"words", "page", "terminal", "cli", "files", "show", "drawing", "schema", "signs", "messages", "collector"}
SHOWS |= {"collect", "rundir", "progress", "completion", "doctor", "demo", "notebook", "errors", "text", "nouns"}
# What goes through all rooms.
WHOLE = ["golden", "oracle"]


def modules() -> list[str]:
    """The modules that make numbers, by their path below eprof/."""
    every = (path.relative_to(ROOT / "eprof") for path in sorted((ROOT / "eprof").rglob("*.py")))
    return [str(path) for path in every if not SHOWS & {*path.parts, path.stem}]


def nearest(module: str) -> list[str]:
    """The files of tests that are to see a change of a module, the nearest first; small ones before large ones.

    The one of its name; those that import it, or something of it; those with its folder's name in theirs; those in a
    folder of that name, or of which CONTRIBUTING.md says that they test it too; and what goes through all rooms.
    """
    names = [name for name in Path(module).with_suffix("").parts if name != "__init__"] or ["eprof"]
    dotted, last = ".".join(["eprof", *names]), names[-1]
    room = ".".join(["eprof", *names[:-1]])
    imports = re.compile(rf"(?:from|import) {dotted}\b|from {room} import [^\n]*\b{last}\b")
    also = _also().items()
    folders = {*names, *(folder for folder, rooms in also if rooms & set(names))}
    found = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        words = {*path.stem.split("_")[1:], path.stem.removeprefix("test_")}
        near = [path.stem == f"test_{last}", imports.search(path.read_text())]
        near += [words & set(names), path.parent.name in folders, words & set(WHOLE)]
        rank = next((number for number, is_so in enumerate(near) if is_so), None)
        if rank is not None:
            found.append((rank, path.stat().st_size, path.stem.removeprefix("test_")))
    return [name for _, _, name in sorted(found)]


@cache
def _also() -> dict[str, set[str]]:
    """Folders of tests that test other rooms, too: "| `tests/collect/` | also `planning/`, `rundir/` |"."""
    rooms: dict[str, set[str]] = {}
    guide = ROOT / "CONTRIBUTING.md"
    for line in guide.read_text().splitlines() if guide.exists() else ():
        folders, also, others = line.partition(" | also ")
        for folder in re.findall(r"`tests/(\w+)/`", folders) if also else ():
            rooms.setdefault(folder, set()).update(re.findall(r"`(\w+)/`", others))
    return rooms


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


# ------------------------------------------------------------------------------------------------------------ running


def fate(mutant: Mutant, tree: Path, seconds: float) -> str:
    """What the tests say of a mutant in a copy of the tree: "killed by FILE", "killed by time" or "survived"."""
    path = tree / "eprof" / mutant.module
    source = path.read_text()
    names = [name for name in nearest(mutant.module) if _SOUND.get(name, True)]
    while names:
        try:
            path.write_text(mutated(source, mutant))
            code, failed = _tested(tree, names, seconds)
        finally:
            path.write_text(source)
        if code in (0, NONE_RAN):
            break
        if code is None and _tested(tree, names, seconds)[0] is None:
            break  # they take too long without any change, too
        # A file of tests that fails without any change says nothing.
        if _sound(tree, failed or names[0], seconds):
            return "killed by time" if code is None else f"killed by test_{failed or names[0]}.py"
        names.remove(failed or names[0])
    return "survived"


NONE_RAN = 5
_SOUND: dict[str, bool] = {}
_FAILED = re.compile(r"^(?:FAILED|ERROR) \S*?test_(\w+)\.py", re.MULTILINE)


def _sound(tree: Path, name: str, seconds: float) -> bool:
    """Whether a file's tests pass in a tree without a change; asked once."""
    if name not in _SOUND:
        _SOUND[name] = _tested(tree, [name], seconds)[0] in (0, NONE_RAN)
        if not _SOUND[name]:
            print(f"test_{name}.py fails without any change, so it tells nothing", flush=True)
    return _SOUND[name]


def _tested(tree: Path, names: Sequence[str], seconds: float) -> tuple[int | None, str | None]:
    """The exit code of pytest on files, and which of them failed; None if they took too long.

    With it end the processes that it started.
    """
    files = [str(next((tree / "tests").rglob(f"test_{name}.py"))) for name in names]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", *files]
    # CI: hypothesis draws the same examples each time, so that a mutant's fate does not change.
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, cwd=tree, env=environment, stdout=said, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None, None
        said.seek(0)
        failed = _FAILED.search(said.read())
    return process.returncode, failed and failed[1]


def copied(folder: Path) -> Path:
    """A copy of the tree, with the real logs beside it where they are at hand."""
    shutil.copytree(ROOT, folder / "tree", ignore=LEFT_OUT)
    shared = ROOT.parent / "shared"
    if shared.is_dir():
        (folder / "shared").symlink_to(shared)
    return folder / "tree"


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """So many mutants of the modules asked for, drawn at random."""
    drawn = [one for one in modules() if not options.only or any(one.startswith(part) for part in options.only)]
    sources = {module: _source(ROOT / "eprof" / module) for module in drawn}
    every = [one for module, source in sources.items() for one in mutants(module, source)]
    random.Random(options.seed).shuffle(every)
    found = (one for one in every if parses(sources[one.module], one))
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


def main() -> int:
    """Draw, run and report; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="draws the same ones again")
    parser.add_argument("--only", action="append", metavar="PATH", help="a module or a folder of eprof/; repeatable")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that are tested at once")
    parser.add_argument("--seconds", type=float, default=900, help="most that the tests of a mutant may take")
    parser.add_argument("--state", type=Path, default=Path("mutants.jsonl"), help="what was run; goes on there")
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    options = parser.parse_args()
    drawn = chosen(options)
    if options.list:
        print("\n".join(f"{one.name}  [{', '.join(nearest(one.module))}]\n{difference(one)}" for one in drawn))
        return 0
    return report(drawn, tested(drawn, options))


def tested(drawn: list[Mutant], options: argparse.Namespace) -> dict[str, str]:
    """The fate of each, by `key`; those that --state knows are not run again."""
    fates: dict[str, str] = {}
    if options.state.exists():
        fates = {one["key"]: one["fate"] for one in map(json.loads, options.state.read_text().splitlines())}
    waiting = [one for one in drawn if key(one) not in fates]
    with tempfile.TemporaryDirectory(prefix="eprof-mutants-") as folder:
        trees: Queue[Path] = Queue()
        for number in range(min(options.jobs, len(waiting))):
            (Path(folder) / str(number)).mkdir()
            trees.put(copied(Path(folder) / str(number)))

        def run(mutant: Mutant) -> tuple[Mutant, str]:
            tree = trees.get()
            try:
                return mutant, fate(mutant, tree, options.seconds)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(options.jobs) as pool:
            for mutant, what in pool.map(run, waiting):
                fates[key(mutant)] = what
                print(f"{what:32} {mutant.name}", flush=True)
                with options.state.open("a") as file:
                    file.write(json.dumps({"key": key(mutant), "fate": what, **asdict(mutant)}) + "\n")
    return fates


def report(drawn: list[Mutant], fates: dict[str, str]) -> int:
    """Say what survived; 1 if that is too much."""
    known = equivalent()
    alive = [one for one in drawn if fates[key(one)] == "survived"]
    told = [one for one in alive if named(one) not in known]
    made, left = (Counter(one.module for one in some) for some in (drawn, told))
    print("\nmodule                 made   alive")
    for module in made:
        print(f"{module:20} {made[module]:6} {left[module]:7}")
    for one in told:
        print(f"\nsurvived: {one.name}\n{difference(one)}")
    for one in alive:
        if named(one) in known:
            print(f"\nequivalent: {one.name}: {known[named(one)]}")
    total = len(drawn) - (len(alive) - len(told))
    print(f"\n{len(told)} of {total} mutants that are not equivalent are alive")
    return int(len(told) > ALLOWED * total)


if __name__ == "__main__":
    sys.exit(main())

"""Mutants: change one operator of eprof at a time and see whether a test tells.

    python benchmarks/mutants.py [--number 100] [--seed 1] [--only counts/counts.py] [--jobs 2] [--state mutants.jsonl]
    python benchmarks/mutants.py --list             what would be changed, without running a test

Changes are drawn at random from all that can be made in `TESTS`' modules: comparisons, + - * /, `and` and `or`, `not`, & and |,
numbers, np.fmin and np.fmax, results of functions. Each goes into a copy of the tree (never into this one), and the
tests nearest to the module are run there, the fast ones first, until one fails. A change that all tests pass has
survived: write a test that it fails, or, if no test can, add it to `mutants-equivalent.toml` with the reason.

What was run is kept in --state, a line each: a run that was stopped goes on there. Exit code 1 if more than a tenth
of the mutants survive that are not known to be equivalent.
"""

import argparse
import ast
import difflib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Queue
from types import UnionType

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path(__file__).with_name("mutants-equivalent.toml")
ALLOWED = 0.1
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "__pycache__", "*.pyc", ".pytest_cache", ".mypy_cache", ".ruff_cache"
)

# The tests nearest to each module, quickest first. What all of them pass goes through `ALL` as well.
TESTS = {
    "counts/counts.py": ["bounds", "counts", "golden", "counts_launches", "checks", "counters_ncu", "oracle"],
    "counts/times.py": ["times", "golden", "end_to_end", "oracle"],
    "energy/attribution.py": ["energy", "golden", "parts", "oracle"],
    "costs/table.py": ["costs", "golden", "energy", "costs_check", "ncu_launches", "whatif", "fitting"],
    "logs/join/combining.py": [
        "logs_joining",
        "golden",
        "parts",
        "logs_properties",
        "logs_made",
        "ncu_logs",
        "logs_folding",
        "logs_many",
        "grouping",
        "oracle",
    ],
    "commands/diff/parts.py": ["parts", "golden", "compare", "diff"],
}
ALL = ["whatif", "tuning", "validation", "rooflines", "every_log", "ncu_every_log"]


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
TWINS |= {"min": "max", "max": "min", "isna": "notna", "notna": "isna", "logical_or": "logical_and"}


def mutants(module: str, source: str) -> list[Mutant]:
    """Every change of one operator that can be made in a module."""
    tree = ast.parse(source)
    lines = source.encode().splitlines(keepends=True)
    offsets = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    data = source.encode()
    found = []
    for first, last, new in _changes(tree):
        start, end = (offsets[row - 1] + column for row, column in (first, last))
        found.append(Mutant(module, first[0], start, end, data[start:end].decode(), new(data[start:end].decode())))
    return [one for one in found if one.old != one.new and _parses(mutated(source, one))]


def mutated(source: str, mutant: Mutant) -> str:
    """The source with the change in it."""
    data = source.encode()
    return (data[: mutant.start] + mutant.new.encode() + data[mutant.end :]).decode()


def _parses(source: str) -> bool:
    try:
        ast.parse(source)
    except SyntaxError:
        return False
    return True


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
    yield from (_between(node.left, node.right, new) for new in CALCULATED.get(type(node.op), []))


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


def _twin(node: ast.Attribute) -> Iterator[Change]:
    if node.attr in TWINS:
        yield _end(node.value), _end(node), lambda _: f".{TWINS[node.attr]}"


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
    ast.Return: _result,
    ast.If | ast.IfExp | ast.While: _condition,
}


def _put(node: ast.AST, new: str) -> Change:
    return _start(node), _end(node), lambda _: new


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
    try:
        for name in [*TESTS[mutant.module], *ALL]:
            path.write_text(mutated(source, mutant))
            code = _tested(tree, name, seconds)
            path.write_text(source)
            # A file of tests that fails without any change says nothing.
            if code not in (0, NONE_RAN) and _sound(tree, name, seconds):
                return "killed by time" if code is None else f"killed by test_{name}.py"
        return "survived"
    finally:
        path.write_text(source)


NONE_RAN = 5
_SOUND: dict[str, bool] = {}


def _sound(tree: Path, name: str, seconds: float) -> bool:
    """Whether a file's tests pass in a tree without a change; asked once."""
    if name not in _SOUND:
        _SOUND[name] = _tested(tree, name, seconds) in (0, NONE_RAN)
        if not _SOUND[name]:
            print(f"test_{name}.py fails without any change, so it tells nothing", flush=True)
    return _SOUND[name]


def _tested(tree: Path, name: str, seconds: float) -> int | None:
    """The exit code of pytest on a file; None if it took too long. With it end the processes that it started."""
    (file,) = (tree / "tests").rglob(f"test_{name}.py")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", str(file)]
    # CI: hypothesis draws the same examples each time, so that a mutant's fate does not change.
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1"}
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def copied(folder: Path) -> Path:
    """A copy of the tree, with the real logs beside it where they are at hand."""
    shutil.copytree(ROOT, folder / "tree", ignore=LEFT_OUT)
    shared = ROOT.parent / "shared"
    if shared.is_dir():
        (folder / "shared").symlink_to(shared)
    return folder / "tree"


def chosen(options: argparse.Namespace) -> list[Mutant]:
    """So many mutants of the modules asked for, drawn at random."""
    modules = [module for module in TESTS if not options.only or module in options.only]
    every = [one for module in modules for one in mutants(module, (ROOT / "eprof" / module).read_text())]
    dice = random.Random(options.seed)
    dice.shuffle(every)
    return every[: options.number]


def equivalent() -> dict[str, str]:
    """Changes that no test can tell, with the reason: module and old and new text, without the line."""
    if not EQUIVALENT.exists():
        return {}
    return {one["change"]: one["why"] for one in tomllib.loads(EQUIVALENT.read_text()).get("mutant", [])}


def difference(mutant: Mutant) -> str:
    """The changed lines, before and after."""
    source = (ROOT / "eprof" / mutant.module).read_text()
    lines = [text.splitlines() for text in (source, mutated(source, mutant))]
    return "\n".join(f"      {line}" for line in list(difflib.unified_diff(*lines, n=0, lineterm=""))[3:])


def named(mutant: Mutant) -> str:
    """A mutant by its changed line, which stays where lines move: "counts/counts.py: a + b -> a - b"."""
    source = (ROOT / "eprof" / mutant.module).read_text()
    lines = [text.splitlines() for text in (source, mutated(source, mutant))]
    before, after = next(pair for pair in zip(*lines, strict=False) if pair[0] != pair[1])
    return f"{mutant.module}: {before.strip()} -> {after.strip()}"


def key(mutant: Mutant) -> str:
    """A mutant of this very source."""
    return f"{mutant.start} {named(mutant)}"


def main() -> int:
    """Draw, run and report; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100, help="how many mutants")
    parser.add_argument("--seed", type=int, default=1, help="draws the same ones again")
    parser.add_argument("--only", action="append", choices=list(TESTS), metavar="MODULE", help="repeatable")
    parser.add_argument("--jobs", type=int, default=1, help="copies of the tree that are tested at once")
    parser.add_argument("--seconds", type=float, default=300, help="most that a file of tests may take")
    parser.add_argument("--state", type=Path, default=Path("mutants.jsonl"), help="what was run; goes on there")
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    options = parser.parse_args()
    drawn = chosen(options)
    if options.list:
        print("\n".join(f"{one.name}\n{difference(one)}" for one in drawn))
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

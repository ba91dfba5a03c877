"""How the code reads, counted: lines, function lengths, dense statements, words that say nothing.

Usage: python benchmarks/style.py [FOLDER ...]. Without folders, every room of `eprof/`. With folders, dense statements
and empty names are listed, too. Last come the longest functions.
"""

import ast
import re
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1] / "eprof"
EMPTY_NAMES = frozenset({"one", "other", "found", "at", "told", "said", "asked", "what", "thing", "it"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_LOOPS = (ast.For, ast.comprehension)


def dense_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements that hold more than one conditional expression, those of statements inside them not counted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and _conditionals(node) > 1:
            yield node


def _conditionals(node: ast.AST) -> int:
    total = 0
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            total += isinstance(child, ast.IfExp) + _conditionals(child)
    return total


def empty_names(tree: ast.Module) -> Iterator[ast.Name]:
    """Loop variables and assigned names that do not say what they hold."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in EMPTY_NAMES:
            yield node


def parallel_assignments(tree: ast.Module) -> int:
    """How often `a, b = x, y` is written."""
    return sum(
        isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple) and isinstance(node.targets[0], ast.Tuple)
        for node in ast.walk(tree)
    )


def function_lengths(tree: ast.Module) -> list[int]:
    """Lines of each function, without its docstring."""
    lengths = []
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            lengths.append((body[-1].end_lineno or 0) - body[0].lineno + 1)
    return lengths


def loop_names(tree: ast.Module) -> list[str]:
    """The variables of loops and comprehensions."""
    targets = [node.target for node in ast.walk(tree) if isinstance(node, _LOOPS)]
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]


def longest_functions(folders: Sequence[Path], most: int = 10) -> list[tuple[int, str]]:
    """The longest functions with their lines, without docstrings."""
    lengths = []
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        tree = ast.parse(path.read_text())
        named = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
        places = [f"{path.relative_to(ROOT.parent)}:{node.lineno} {node.name}" for node in named]
        lengths += zip(function_lengths(tree), places, strict=True)
    return sorted(lengths, reverse=True)[:most]


def main() -> None:
    """Print a row a room, and the sum."""
    chosen = [Path(name) for name in sys.argv[1:]]
    folders = chosen or sorted(path for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__")
    print(f"{'room':22} files  lines  dense  if-else/1k  a,b=x,y/1k  empty/1k  'one'/1k  short%  median  p90  >40")
    every: Counter[str] = Counter()
    lengths: list[int] = []
    for folder in folders:
        counted, own = _of(folder, bool(chosen))
        _show(folder.name, counted, own)
        every += counted
        lengths += own
    _show("all", every, lengths)
    print("\nlongest functions, lines without docstrings")
    for length, place in longest_functions([folder.resolve() for folder in folders]):
        print(f"{length:5} {place}")


def _of(folder: Path, is_listed: bool) -> tuple[Counter[str], list[int]]:
    counted: Counter[str] = Counter()
    lengths: list[int] = []
    for path in sorted(folder.rglob("*.py")) or [folder]:
        text = path.read_text()
        tree = ast.parse(text)
        dense, empty = list(dense_statements(tree)), list(empty_names(tree))
        lengths += function_lengths(tree)
        counted["files"] += 1
        counted["lines"] += text.count("\n")
        counted["dense"] += len(dense)
        counted["conditionals"] += sum(isinstance(node, ast.IfExp) for node in ast.walk(tree))
        counted["parallel"] += parallel_assignments(tree)
        counted["empty"] += len(empty)
        loops = loop_names(tree)
        counted["loops"] += len(loops)
        counted["short"] += sum(len(name) == 1 and name != "_" or name in EMPTY_NAMES for name in loops)
        counted["one"] += len(re.findall(r"\bone\b", text))
        if is_listed:
            for statement in dense:
                print(f"{path}:{statement.lineno}: several conditional expressions in one statement")
            for name in empty:
                print(f"{path}:{name.lineno}: `{name.id}` does not say what it holds")
    return counted, lengths


def _show(name: str, counted: Counter[str], lengths: list[int]) -> None:
    thousands = max(counted["lines"], 1) / 1000
    short = 100 * counted["short"] / max(counted["loops"], 1)
    rates = [counted[key] / thousands for key in ("conditionals", "parallel", "empty", "one")]
    median = statistics.median(lengths) if lengths else 0
    p90 = statistics.quantiles(lengths, n=10)[-1] if len(lengths) > 1 else median
    print(
        f"{name:22} {counted['files']:5} {counted['lines']:6} {counted['dense']:6} {rates[0]:11.1f} {rates[1]:11.1f} "
        f"{rates[2]:9.1f} {rates[3]:9.1f} {short:7.1f} {median:7.0f} {p90:4.0f} {sum(length > 40 for length in lengths):4}"
    )


if __name__ == "__main__":
    main()

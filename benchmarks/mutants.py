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
import copy
import itertools
import math
import os
import re
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import executed
import pytest
from executed import Part, Tests, Unit, digest, file_of, fork, is_text, modules, parts, source_of, units

EQUIVALENT = Path(__file__).with_name("mutants-equivalent.toml")
ALLOWED = 0.1
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
    """A change of a module, with its number among all that can be made in it; where it is, and what becomes what.

    which: the how-manieth of its unit's that say the same.
    """

    module: str
    number: int
    line: int
    unit: Unit
    statement: int
    text: str
    which: int

    @property
    def name(self) -> str:
        """Where and what, as `mutants-equivalent.toml` has it: with the line, not its number."""
        return f"{self.module}: {source_of(self.module).splitlines()[self.line - 1].strip()}: {self.text}"


def mutants(module: str, source: str) -> Iterator[Mutant]:
    """Every change that can be made in a module."""
    times: Counter[tuple[str, str]] = Counter()
    for number, (unit, statement, (*_, node), new) in enumerate(_changes(ast.parse(source))):
        old, made = (ast.unparse(part).splitlines() for part in (node, new))
        text = f"{old[0]} -> {made[-1].strip()}"
        times[unit.key, text] += 1
        yield Mutant(module, number, node.lineno, unit, statement, text, times[unit.key, text])


def mutated(source: str, number: int) -> ast.Module:
    """The module with the change of this number in it."""
    tree = ast.parse(source)
    *_, (owner, name, place, _), new = next(itertools.islice(_changes(tree), number, None))
    if place is None:
        setattr(owner, name, new)
    else:
        getattr(owner, name)[place] = new
    return ast.fix_missing_locations(tree)


def _changes(tree: ast.Module) -> Iterator[tuple[Unit, int, Part, ast.AST]]:
    """In which statement of which unit, what is changed, and what is there instead."""
    for unit in units(tree):
        numbers = {id(statement): index for index, (statement, _) in enumerate(unit.statements)}
        for index, (statement, _) in enumerate(unit.statements):
            for part in parts(statement):
                for new in _instead(*part):
                    yield unit, numbers.get(id(part[3]), index), part, new


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
    texts = [isinstance(one, ast.JoinedStr) or is_text(one) for one in (node.left, node.right)]
    is_sum = isinstance(node.op, ast.Add | ast.Sub) and not any(texts)
    if is_sum or (isinstance(node.op, ast.Mult | ast.Div) and numbers[1]):
        yield node.left
    if (is_sum and isinstance(node.op, ast.Add)) or (isinstance(node.op, ast.Mult) and numbers[0]):
        yield node.right


def _early(owner: ast.AST, node: ast.stmt) -> Iterator[ast.AST]:
    """A loop that ends after its first turn; a result that is returned before the last statement that makes it."""
    last = owner.body[-1]
    if isinstance(owner, ast.For) and node is last and not isinstance(last, ast.Return | ast.Raise | ast.Continue):
        yield ast.If(ast.Constant(True), [node, ast.Break()], [])
    if isinstance(owner, ast.FunctionDef) and node is not last and isinstance(last, ast.Return) and len(owner.body) > 2:
        before = "\n".join(map(ast.unparse, owner.body[:-2]))
        if isinstance(last.value, ast.Name) and re.search(rf"\b{last.value.id}\b", before):
            yield ast.Pass()


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
    files = list(dict.fromkeys(map(file_of, names)))
    for some in (files[:4], files[4:16], files[16:]):
        chosen = {name: seconds[name] for name in names if file_of(name) in some}

        def run(some: list[str] = some, chosen: dict[str, float] = chosen) -> int:
            signal.alarm(300)  # modules are imported before the first test begins
            return pytest.main([*executed.QUIET, *options, *some], plugins=[Chosen(chosen, tree.parent / "failed")])

        code = os.waitstatus_to_exitcode(os.waitpid(fork(run), 0)[1]) if some else 0
        if code not in (0, executed.NONE_RAN) and "-x" in options:
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
    every = [one for module in drawn for one in mutants(module, source_of(module))]
    every.sort(key=lambda one: digest(f"{options.seed} {one.unit.name} {one.name.partition(': ')[2]} {one.which}"))
    return every[: options.number]


def fates(drawn: list[Mutant], tests: Tests, options: argparse.Namespace) -> dict[Mutant, str]:
    """What became of each: "killed by TEST", "killed by time" or "survived, N of N tests".

    What --state knows is not run again, but for survivors that other tests execute now. A test that fails without any
    change, too, tells nothing: what it killed meets the others.
    """
    state = options.state / "fates.jsonl"
    known = {one["key"]: one for one in executed.lines(state)}
    names = {one: tests.of(one.module, one.unit, one.statement) for one in drawn}
    keys = {one: f"{one.unit.key} {one.text} {one.which}" for one in drawn}
    seen = {one: tests.digest(names[one]) for one in drawn}
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
            executed.put(path, mutated(source_of(mutant.module), mutant.number))
            return meet(affordable(mutant), tests.seconds, tree, "-x")
        finally:
            executed.restore(path, source_of(mutant.module))

    with executed.trees(options.jobs) as folders:
        while waiting := [one for one in drawn if one not in told]:
            for mutant, tree, code in executed.forked(waiting, folders, run):
                killer = [*_failed(tree), "time" if code < 0 else f"an end of pytest with {code}"][0]
                survived = f"survived, {len(affordable(mutant))} of {len(names[mutant])} tests"
                told[mutant] = survived if code == 0 else f"killed by {killer}"
                print(f"{told[mutant]}\n    {mutant.module}:{mutant.line}: {mutant.text}", flush=True)
                executed.add(state, {"key": keys[mutant], "fate": told[mutant], "tests": seen[mutant]})
            killers = {fate.removeprefix("killed by ") for fate in told.values()} & {*tests.seconds}
            for _, tree, _ in executed.forked(
                [sorted(killers)], folders, lambda some, tree: meet(some, tests.seconds, tree)
            ):
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
    parser.add_argument(
        "--state", type=Path, default=executed.ROOT / ".bench" / "mutants", help="a folder; goes on there"
    )
    parser.add_argument("--list", action="store_true", help="name the mutants and run nothing")
    options = parser.parse_args()
    options.state = options.state.resolve()  # processes go into other folders
    drawn = chosen(options)
    if options.list:
        print("\n".join(f"{one.module}:{one.line}: {one.text}" for one in drawn))
        return 0
    options.state.mkdir(parents=True, exist_ok=True)
    executed.record(options.state / "tests.jsonl", options.jobs)
    return report(fates(drawn, Tests(options.state / "tests.jsonl"), options))


if __name__ == "__main__":
    sys.exit(main())

"""Reader of profiles of callgrind and cachegrind, decoded or as valgrind wrote them. A function is a row."""

import math
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from pathlib import Path

import numpy as np

from eprof.base.arrays import Bools, Columns
from eprof.base.errors import LogError
from eprof.base.text import pattern
from eprof.logs.rows.log import COUNT, Calls, Log, Names, Table, TableRows
from eprof.logs.rows.stream import Source
from eprof.profilers.callgrind.decode import decoded
from eprof.profilers.callgrind.file_format import Costs, Function, parse
from eprof.profilers.callgrind.signs import KIND, MACHINE, SIMULATED, UNDECODED

_FEW = 3
_ADDRESS = pattern(r"0x[0-9a-fA-F]+")


def read(source: Source, pieces: Iterator[bytes], keep: Container[str] | None, *_: object) -> Log:
    """Read a profile of callgrind or cachegrind. keep: the counters to hold. Raises LogError if it holds no costs."""
    text = b"".join(pieces).decode("utf-8", "replace")
    try:
        costs = parse(text.split("\n"))
        damage = costs.damage
    except LogError as err:
        raise LogError(f"{source.path}: {err}") from err
    is_of_run = UNDECODED in costs.own
    functions = costs if is_of_run else _decoded(costs, Path(source.path))
    # A run directory knows the program, of which this may be a child.
    command = None if is_of_run else costs.header.get("cmd")
    table = _table(functions, keep)
    notes = [*_shortened(functions.notes), *filter(None, [damage])]
    return source.log(
        [table], notes, lines=costs.lines, skipped_lines=costs.skipped, command=command, calls=_calls(functions)
    )


def _decoded(costs: Costs, path: Path) -> Costs:
    return decoded(costs, path.parent, path.stat().st_mtime if path.is_file() else math.inf)


def _shortened(notes: list[str]) -> list[str]:
    rest = len(notes) - _FEW
    return notes if rest <= 0 else [*notes[:_FEW], f"{rest} more objects likewise"]


def _table(costs: Costs, keep: Container[str] | None) -> Table:
    names = _names([costs.functions[place] for place in costs.places.tolist()])
    device = costs.descriptions.get(MACHINE)
    called = Counter[int]()
    for call in costs.calls:
        called[call.callee] += call.number
    rows = TableRows(
        device=Names.of([device] * len(names)),
        kernel=Names.of(names),
        run=np.zeros(len(names), dtype=np.int64),
        launches=np.array([max(called[place], 1) for place in costs.places.tolist()], dtype=np.int64),
        time_s=np.full(len(names), np.nan),
    )
    kept = [name for name in costs.own.names if keep is None or name in keep or name == UNDECODED]
    counters = Columns(tuple(kept), np.where(_unknown(costs.own, kept), np.nan, costs.own.only(kept)))
    return Table(KIND, rows, counters, dict.fromkeys(kept, COUNT), lacks_rows=not costs.is_whole)


def _calls(costs: Costs) -> Calls | None:
    """Who called whom in a callgrind profile, and the instructions beneath (the first event); None without calls."""
    known = costs.places.tolist()
    name_of = dict(zip(known, _names([costs.functions[place] for place in known]), strict=True))
    calls = [call for call in costs.calls if call.caller in name_of and call.callee in name_of and call.costs]
    if not calls:
        return None
    return Calls(
        caller=Names.of(name_of[call.caller] for call in calls),
        callee=Names.of(name_of[call.callee] for call in calls),
        beneath=np.array([float(call.costs[0]) for call in calls]),
    )


def _unknown(own: Columns, names: Sequence[str]) -> Bools:
    """The counts by class of callgrind's functions of which no instruction was decoded, (n_rows, n)."""
    by_class = np.array([name not in SIMULATED for name in names], dtype=bool)
    is_dark = own[UNDECODED] >= own["Ir"] if UNDECODED in own else np.zeros(len(own), dtype=bool)
    unknown: Bools = np.outer(is_dark, by_class)
    return unknown


def _names(functions: list[Function]) -> list[str]:
    times = Counter(function.name for function in functions)
    return [_function_name(function, times[function.name] > 1) for function in functions]


def _function_name(function: Function, is_shared: bool) -> str:
    is_address = _ADDRESS.fullmatch(function.name) is not None
    name = hex(int(function.name, 16)) if is_address else function.name
    if not (is_shared or is_address) or not function.object:
        return name
    return f"{name} ({Path(function.object).name})"

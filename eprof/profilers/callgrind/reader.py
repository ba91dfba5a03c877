"""Reader of profiles of callgrind and cachegrind, decoded or as valgrind wrote them. A function is a row."""

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Columns, group_sums, numbers_of
from eprof.base.errors import LogError
from eprof.base.text import few, listed, pattern, when
from eprof.logs.join.ranks import MARK, OUTSIDE
from eprof.logs.log import COUNT, Calls, Log, Names, Table, TableRows
from eprof.logs.stream import Source
from eprof.profilers.callgrind.decode import decoded, is_of_library, library
from eprof.profilers.callgrind.file_format import Costs, Function, Spot, parse
from eprof.profilers.callgrind.printed import as_profile
from eprof.profilers.callgrind.signs import KIND, MACHINE, SIMULATED, UNDECODED

_FEW = 3
_LEAST, _MOST_LINES = 1e-3, 100  # of all instructions, that a line shown executes; and how many there may be
# Of one function for several processors: "__memmove_avx_unaligned_erms".
_VARIANT = pattern(r"^__(\w+?)_((?:avx|sse|evex|erms|fma)\w*)$")
_ADDRESS = pattern(r"0x[0-9a-fA-F]+")


def read(source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None, *_: object) -> Log:
    """Read a profile of callgrind or cachegrind. keep: the counters to hold. parts: MARK makes a row for each mark.

    Raises LogError if it holds no costs.
    """
    text = as_profile(b"".join(pieces).decode("utf-8", "replace"))
    try:
        costs = parse(text.split("\n"))
        damage = costs.damage
    except LogError as err:
        raise LogError(f"{source.path}: {err}") from err
    path = Path(source.path)
    functions, command = costs, None  # a run directory knows the program, of which this may be a child
    if UNDECODED not in costs.own:
        functions = decoded(costs, path.parent, path.stat().st_mtime if path.is_file() else math.inf)
        command = costs.header.get("cmd")
    notes = functions.notes[:_FEW]
    if len(functions.notes) > _FEW:  # a Python program has a hundred libraries
        notes.append(f"{len(functions.notes) - _FEW} more objects likewise")
    notes += filter(None, [damage])
    sizes = [(cache, costs.descriptions.get(f"{cache} cache", "").partition(" B,")[0]) for cache in ("D1", "LL")]
    caches = [f"{cache} of {int(size) // 1024:,} KiB" for cache, size in sizes if size.isdecimal()]
    if caches:
        notes.append(f"caches were simulated: {listed(caches)}")
    marks = {spot.mark for spot in functions.spots} - {OUTSIDE}
    if parts != MARK and marks:
        told = few(sorted(marks), _FEW)
        notes.append(f"the program set marks ({told}), which --group mark and diff --by mark tell apart")
        functions = functions.without_marks()
    functions = functions.added()
    places = np.unique(functions.places).tolist()
    names = dict(zip(places, _names([functions.functions[place] for place in places]), strict=True))
    table = _table(functions, names, keep, [spot.mark for spot in functions.spots] if parts == MARK else None)
    return source.log(
        [table],
        notes,
        lines=costs.lines,
        skipped_lines=costs.skipped,
        command=command,
        calls=_calls(functions, names),
        by_line=_by_line(functions, names, keep),
        caches=", ".join(caches),
    )


def _by_line(costs: Costs, names: Mapping[int, str], keep: Container[str] | None) -> Table | None:
    """The lines that execute most, at most 100, as rows whose part is the line, "mm.c:12"; None: no line is told."""
    executed = costs.own.values[:, 0]
    told = np.array([spot.line > 0 for spot in costs.spots])[costs.spot_of]
    rows = np.flatnonzero(told & (executed >= _LEAST * executed.sum()))
    rows = rows[np.argsort(-executed[rows], kind="stable")][:_MOST_LINES]
    if not len(rows):
        return None
    some = replace(costs, places=costs.places[rows], spot_of=costs.spot_of[rows], own=costs.own.chosen(rows))
    return _table(some, names, keep, list(map(_place, costs.spots)))


def _table(costs: Costs, names: Mapping[int, str], keep: Container[str] | None, parts: Sequence[str] | None) -> Table:
    """A row for each function; where `parts` names a part for each spot, for each function and part."""
    labels = parts or [OUTSIDE] * len(costs.spots)
    of_rows = list(zip(costs.places.tolist(), (labels[spot] for spot in costs.spot_of.tolist()), strict=True))
    costs = replace(costs, own=Columns(costs.own.names, group_sums(costs.own.values, numbers_of(of_rows))))
    keys = list(dict.fromkeys(of_rows))
    called = Counter[tuple[int, str]]()
    for call in costs.calls:
        called[call.callee, call.spot.mark] += call.number
    rows = TableRows.of(
        Names.of([costs.descriptions.get(MACHINE)] * len(keys)),
        Names.of(names[place] for place, _ in keys),
        launches=[max(called[key], 1) for key in keys],
        part=parts and Names.of(label for _, label in keys),
    )
    kept = [name for name in costs.own.names if keep is None or name in keep or name == UNDECODED]
    values = costs.own.only(kept)
    if UNDECODED in costs.own:  # of a function of which no instruction was decoded, no count by class is known
        is_dark = costs.own[UNDECODED] >= costs.own["Ir"]
        values = np.where(np.outer(is_dark, [name not in SIMULATED for name in kept]), np.nan, values)
    counters = Columns(tuple(kept), values)
    return Table(KIND, rows, counters, dict.fromkeys(kept, COUNT), lacks_rows=not costs.is_whole)


def _calls(costs: Costs, name_of: Mapping[int, str]) -> Calls | None:
    """Who called whom in a profile, with the instructions beneath each call (the first event); None without calls."""
    calls = [call for call in costs.calls if call.caller in name_of and call.callee in name_of and call.costs]
    if not calls:
        return None
    return Calls(
        caller=Names.of(name_of[call.caller] for call in calls),
        callee=Names.of(name_of[call.callee] for call in calls),
        beneath=np.array([float(call.costs[0]) for call in calls]),
        # What stands in a header of the system's was inlined: no line to change.
        places=Names.of("" if call.spot.file.startswith("/usr/") else _place(call.spot) for call in calls),
        libraries={
            name: library(costs.functions[place].object)
            for place, name in name_of.items()
            if is_of_library(costs.functions[place].object)
        },
    )


def _place(spot: Spot) -> str:
    """A line of source as in reports: "mm.c:12"; "" where it is not told."""
    return f"{Path(spot.file).name}:{spot.line}" if spot.line > 0 else ""


def _names(functions: list[Function]) -> list[str]:
    """The names of functions, with their object where two are the same, or a name is only an address.

    What the C library has for several processors goes by its plain name, where no other function has it.
    """
    plain = [_VARIANT.sub(r"\1", name) * is_of_library(home) or name for home, name in functions]
    homes = [function.object for function in functions]
    taken = Counter(zip(homes, plain, strict=True))
    called = [
        short if taken[home, short] == 1 else _VARIANT.sub(r"\1 (\2)", name)
        for short, (home, name) in zip(plain, functions, strict=True)
    ]
    times = Counter(called)
    names = []
    for name, (home, _) in zip(called, functions, strict=True):
        is_address = _ADDRESS.fullmatch(name) is not None
        shown = hex(int(name, 16)) if is_address else name
        names.append(shown + when(home and (is_address or times[name] > 1), f" ({Path(home).name})"))
    return names

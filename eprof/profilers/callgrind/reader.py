"""Reader of profiles of callgrind and cachegrind: decoded, as valgrind wrote them, printed. A function is a row."""

import math
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Columns, group_sums, numbers_of
from eprof.base.errors import LogError
from eprof.base.optional import only
from eprof.base.text import few, listed, pattern, when
from eprof.logs.log import COUNT, MARK, NOT_SHOWN, OUTSIDE, WHOLE_PROGRAM, Calls, Log, Names, Table, TableRows
from eprof.logs.stream import Source
from eprof.profilers.callgrind import KIND, MACHINE, SIMULATED, UNDECODED
from eprof.profilers.callgrind.decode import decoded, is_of_library, library
from eprof.profilers.callgrind.file_format import CallgrindProfile, Function, Spot, parse

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
        costs = costs.with_rest()
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
        homes=_homes(functions, names),
    )


def _homes(costs: CallgrindProfile, names: Mapping[int, str]) -> dict[str, str]:
    """The file name of the object that each function is in, where a profile tells it; cachegrind's tell none."""
    objects = {name: Path(costs.functions[place].object).name for place, name in names.items()}
    return {name: home for name, home in objects.items() if home not in ("", "???") and "version" in costs.header}


def _by_line(costs: CallgrindProfile, names: Mapping[int, str], keep: Container[str] | None) -> Table | None:
    """The source lines that execute most in a profile, 100 at most: rows whose part is "mm.c:12"; None: not told."""
    executed = costs.own.values[:, 0]
    told = np.array([spot.line > 0 for spot in costs.spots])[costs.spot_of]
    rows = np.flatnonzero(told & (executed >= _LEAST * executed.sum()))
    rows = rows[np.argsort(-executed[rows], kind="stable")][:_MOST_LINES]
    if not len(rows):
        return None
    some = replace(costs, places=costs.places[rows], spot_of=costs.spot_of[rows], own=costs.own.chosen(rows))
    return _table(some, names, keep, list(map(_place, costs.spots)))


def _table(
    costs: CallgrindProfile, names: Mapping[int, str], keep: Container[str] | None, parts: Sequence[str] | None
) -> Table:
    """A profile's `Table`, a row for each function; where `parts` names a part for each spot, for each of both."""
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


def _calls(costs: CallgrindProfile, name_of: Mapping[int, str]) -> Calls | None:
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
    """The names of a profile's functions, with their object where two are the same, or a name is only an address.

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


# ----------------------------------------------------------------------------------------------------------------------
# What valgrind, callgrind_annotate and cg_annotate print of a profile, as a profile of callgrind again.

_REFS = {
    **{"I refs": ("Ir",), "I1 misses": ("I1mr",), "LLi misses": ("ILmr",), "L2i misses": ("ILmr",)},
    **{"D refs": ("Dr", "Dw"), "D1 misses": ("D1mr", "D1mw")},
    **{"LLd misses": ("DLmr", "DLmw"), "L2d misses": ("DLmr", "DLmw")},
}
_COUNT = pattern(
    r"[>\s]*(?P<process>==[0-9]+== )?(?P<what>\w+ +(?:refs|misses)): +"
    r"(?P<sum>[0-9,]+)(?: +\( *(?P<read>[0-9,]+) rd +\+ +(?P<written>[0-9,]+) wr\))?\s*"
)
_COMMAND = pattern(r"[>\s]*==[0-9]+== Command: (.*)")
_EVENTS = pattern(r"[>\s]*((?:[A-Z]\w+\s+)+)file:function\s*")
_ROW = pattern(r"[>\s]*((?:(?:[0-9][0-9,]*|\.)(?: *\( *[0-9.]+%\))?\s+)+)(\S.*)")
_NUMBER = pattern(r"(?<![\w.(])(?:[0-9][0-9,]*|\.)(?![0-9.]*%)")
_PLACE = pattern(r"(?:\* +)?(.*?):(.*?)(?: \[(.*)\])?")
_IN_TREE = pattern(r"[*<>] +")  # `--tree`: a function, its callers, its callees
_TOTALS = "PROGRAM TOTALS"


class _Costs(NamedTuple):
    """What valgrind or an annotator printed of a function or a program: executions and misses, by event."""

    name: str
    numbers: Mapping[str, int]
    file: str = "???"
    object: str = "???"


def as_profile(text: str) -> str:
    """Turn printed sums, or an annotator's table of functions, into a callgrind file's text; other texts stay."""
    if "\nfn=" in text:
        return text
    lines = text.split("\n")
    costs = list(_functions(lines)) or list(_programs(lines)) or list(_heads(lines))
    if sum(each.name == WHOLE_PROGRAM for each in costs) > 1:
        costs = [
            each._replace(name=each.name.replace(WHOLE_PROGRAM, f"program {at}")) for at, each in enumerate(costs, 1)
        ]
    # What one of them lacks is not known, and no zero.
    events = [event for event in (costs[0].numbers if costs else ()) if all(event in each.numbers for each in costs)]
    if not events:
        return text
    rows = [[each.numbers[event] for event in events] for each in costs]
    return "\n".join(
        (
            *("# callgrind format", "version: 1", "creator: callgrind, as printed", f"events: {' '.join(events)}", ""),
            *(
                f"ob={each.object}\nfl={each.file}\nfn={each.name}\n0 {' '.join(map(str, row))}\n"
                for each, row in zip(costs, rows, strict=True)
            ),
            f"totals: {' '.join(str(sum(column)) for column in zip(*rows, strict=True))}\n",
        )
    )


def _functions(lines: list[str]) -> Iterator[_Costs]:
    """Yields the functions in the first table of an annotator of profiles, and what of its totals is in none of them.

    In a tree blank lines stand between functions, and what callers and callees take together is beside them.
    Functions that add up to more than all there is hold their callees (`--inclusive=yes`): the totals alone are told.
    """
    totals, events, found, is_tree = list[int](), list[str](), list[_Costs](), False
    for line in lines:
        row, header = _ROW.fullmatch(line), _EVENTS.fullmatch(line)
        if found and row is None and bool(line.strip()) == is_tree:
            break
        if header is not None and not found:
            events = header[1].split()
        elif row is not None and row[2].strip() == _TOTALS:
            totals = _numbers(row[1])
        elif row is not None and events and (place := _PLACE.fullmatch(row[2])):
            is_tree |= _IN_TREE.match(row[2]) is not None
            if is_tree and not row[2].startswith("*"):
                continue
            numbers = _numbers(row[1])
            if len(numbers) == len(events):  # else the row is cut off, and in what is not shown
                found.append(_Costs(place[2], dict(zip(events, numbers, strict=True)), place[1], place[3] or "???"))
    printed = only(list(_programs(lines)))
    whole = dict(zip(events, totals, strict=False)) if totals or printed is None else printed.numbers
    if not all(event in whole for event in events):
        yield from found
        return
    rest = {event: whole[event] - sum(each.numbers[event] for each in found) for event in events}
    if found and min(rest.values()) < 0:
        yield _Costs(WHOLE_PROGRAM, whole)
        return
    yield from found
    if found and any(rest.values()):
        yield _Costs(NOT_SHOWN, rest)


def _programs(lines: list[str]) -> Iterator[_Costs]:
    """The programs whose sums valgrind printed when they ended; lines without a process only where none has one."""
    name, numbers = WHOLE_PROGRAM, dict[str, int]()
    counts = list(map(_COUNT.fullmatch, lines))
    tells_process = any(count and count["process"] for count in counts)
    for line, count in zip(lines, counts, strict=True):
        command = _COMMAND.fullmatch(line)
        is_sum = count is not None and bool(count["process"]) == tells_process
        events = _REFS.get(" ".join(count["what"].split()), ()) if count and is_sum else ()
        if numbers and (command or events[:1] == ("Ir",)):
            yield _Costs(name, numbers)
            numbers = {}
        if command:
            name = command[1].strip()
        if count and events:
            told = count["sum"] if len(events) == 1 else f"{count['read']} {count['written']}"
            numbers |= dict(zip(events, _numbers(told), strict=False))
    if numbers:
        yield _Costs(name, numbers)


def _heads(lines: list[str]) -> Iterator[_Costs]:
    """Yields the sums of programs of which a text has only the heads of their profiles, without costs of functions."""
    told = dict[str, str]()
    for line in lines:
        key, _, value = line.partition(": ")
        told[key] = value.strip()
        if key == "summary" and told.get("events"):
            numbers = dict(zip(told["events"].split(), _numbers(value), strict=False))
            yield _Costs(told.get("cmd") or WHOLE_PROGRAM, numbers)


def _numbers(text: str) -> list[int]:
    return [int(number.replace(",", "").replace(".", "0")) for number in _NUMBER.findall(text)]

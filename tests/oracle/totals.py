"""Rows of one or more logs added up: for each device and kernel, the launches and the total of each counter.

- A row is a launch, or a line over several whose average stands for them.
- The same table of the same process again (a log pasted twice, a copy of it beside it) is counted once.
- Tables of the same counters, or of nearly so, are of further runs: their launches are more of the same.
- Events beside metrics, and lists of counters of which each has its own and that share at most half of the shorter, are
  passes over the same launches: what several passes have is that of the pass with most launches.
- A launch whose cell has no number is a hole: the sum is at least that of the others.
- A counter of fewer launches than another is brought to the larger number by its average: an estimate.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field

from .amounts import Amount, at_least
from .readers import COUNT, EVENTS, NCU, SHARE, SUMMARY, TRACE, USAGE, WIDE, Row

BY_LAUNCH = (WIDE, NCU)
RANK = (TRACE, USAGE, NCU)  # the best time first
Key = tuple[str | None, str]


@dataclass
class Kernel:
    """launches; counter -> its total; percentage -> its mean over launches; seconds; rows of single launches."""

    launches: int = 0
    counters: dict[str, Amount] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    time_s: Amount | None = None
    capability: str | None = None
    rows: list[Row] = field(default_factory=list)


def totals(logs: list[list[Row]]) -> dict[Key, Kernel]:
    """For each device and kernel what the logs tell of it."""
    tables = _once(logs)
    pass_of = _passes(tables)
    for table, number in zip(tables, pass_of, strict=True):
        for row in table:
            row.number = number
    rows = [row for table in tables for row in table]
    devices = {row.device for row in rows if row.device}
    alone = devices.pop() if len(devices) == 1 else None
    by_kernel: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        by_kernel[row.device or alone, row.kernel].append(row)
    return {key: _kernel(members) for key, members in by_kernel.items()}


def _once(logs: list[list[Row]]) -> list[list[Row]]:
    """The tables, without those that are there twice: the same process, and the same in every cell."""
    tables: dict[tuple[int, str, str | None], list[Row]] = defaultdict(list)
    for number, log in enumerate(logs):
        for row in log:
            tables[number, row.table, row.process].append(row)
    kept: dict[tuple[str | None, str], list[Row]] = {}
    for (_, _, process), members in tables.items():
        content = repr([(row.kind, row.device, row.kernel, row.launches, row.values, row.time_s) for row in members])
        kept.setdefault((process, content), members)
    return list(kept.values())


def _passes(tables: list[list[Row]]) -> list[int]:
    """Which pass each table is of."""
    lists = [(table[0].kind, frozenset(name for row in table for name in row.values)) for table in tables]
    passes: list[list[tuple[str, frozenset[str]]]] = []
    for one in sorted(set(lists), key=lambda pair: (-len(pair[1]), sorted(pair[1]), pair[0])):
        alike = [known for known in passes if _are_runs(one, known)]
        if alike:
            alike[0].append(one)
        else:
            passes.append([one])
    return [next(number for number, known in enumerate(passes) if one in known) for one in lists]


def _are_runs(one: tuple[str, frozenset[str]], known: list[tuple[str, frozenset[str]]]) -> bool:
    kind, counters = one
    if any({kind, other} == {EVENTS, SUMMARY} for other, _ in known):
        return False
    return any(counters == other or 2 * len(counters & other) > min(len(counters), len(other)) for _, other in known)


def _kernel(rows: list[Row]) -> Kernel:
    found = Kernel(capability=next((row.capability for row in rows if row.capability), None), rows=rows)
    cells: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        for name in row.values:
            cells[name].append(row)
    sums = {name: _sum(name, members) for name, members in cells.items()}
    found.launches = max((seen for _, seen in sums.values()), default=0)
    found.launches = found.launches or sum(row.launches for row in rows if row.kind in BY_LAUNCH)
    for name, (total, seen) in sums.items():
        kinds = {row.units[name] for row in cells[name] if row.values[name] is not None}
        if kinds == {SHARE}:
            known = [row for row in cells[name] if row.values[name] is not None]
            weight = sum(row.launches for row in known)
            found.shares[name] = sum(row.values[name] * row.launches for row in known) / weight
        elif kinds == {COUNT} and seen:
            found.counters[name] = _brought(total, seen, found.launches)
    _time(found, rows)
    return found


def _sum(name: str, rows: list[Row]) -> tuple[Amount, int]:
    """The total of a counter in the pass with most launches of it, and how many these are."""
    passes = defaultdict(list)
    for row in rows:
        passes[row.number].append(row)
    return max((_sum_of_pass(name, members) for members in passes.values()), key=lambda found: found[1])


def _sum_of_pass(name: str, rows: list[Row]) -> tuple[Amount, int]:
    total, seen, holes = 0.0, 0, False
    some = any(row.values[name] is not None for row in rows)
    for row in rows:
        value = row.values[name]
        if value is not None:
            total += value
            seen += row.launches
        elif row.kind in BY_LAUNCH and some:
            holes = True
            seen += row.launches
    return at_least(total) if holes else Amount(total, total, total), seen


def _brought(total: Amount, seen: int, launches: int) -> Amount:
    if seen == launches:
        return total
    return Amount(total.low, total.guess / seen * launches, math.inf, True)


def _time(found: Kernel, rows: list[Row]) -> None:
    for kind in RANK:
        timed = [row for row in rows if row.kind == kind and row.time_s is not None]
        if timed:
            seconds = math.fsum(row.time_s for row in timed)
            launches = sum(row.launches for row in timed)
            found.launches = found.launches or launches
            lost = kind == NCU and any(row.time_s is None for row in rows)
            exact = at_least(seconds) if lost else Amount(seconds, seconds, seconds)
            found.time_s = exact if lost else _brought(exact, launches, found.launches)
            if kind == NCU:
                found.time_s = found.time_s.roughly()
            return

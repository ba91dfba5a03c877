"""Rows of one or more logs added up: for each device and kernel, the launches and the total of each counter.

- A row is a launch, or a line over several whose average stands for them.
- Events and metrics of one process are two tables of the same launches: what stands in both is counted once.
- The same table of the same process again (a log pasted twice, a copy of it beside it) is counted once.
- Another process is a further run: its launches are more of the same.
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
    rows = _once([row for log in logs for row in log])
    devices = {row.device for row in rows if row.device}
    alone = devices.pop() if len(devices) == 1 else None
    by_kernel: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        by_kernel[row.device or alone, row.kernel].append(row)
    return {key: _kernel(members) for key, members in by_kernel.items()}


def _once(rows: list[Row]) -> list[Row]:
    """Without tables that are there twice: the same process, and the same in every cell."""
    tables: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        tables[row.table, row.process].append(row)
    kept, seen = [], set()
    for (_, process), members in tables.items():
        content = repr([(row.kind, row.device, row.kernel, row.launches, row.values, row.time_s) for row in members])
        if process is None or (process, content) not in seen:
            kept += members
        seen.add((process, content))
    return kept


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
            known = [row for row in _of_one_kind(name, cells[name]) if row.values[name] is not None]
            weight = sum(row.launches for row in known)
            found.shares[name] = sum(row.values[name] * row.launches for row in known) / weight
        elif kinds == {COUNT} and seen:
            found.counters[name] = _brought(total, seen, found.launches)
    _time(found, rows)
    return found


def _of_one_kind(name: str, rows: list[Row]) -> list[Row]:
    """Of the two tables of one process, events and metrics, those of one."""
    both = {row.process for row in rows if row.kind == EVENTS and row.process} & {
        row.process for row in rows if row.kind == SUMMARY
    }
    return [row for row in rows if not (row.kind == EVENTS and row.process in both)]


def _sum(name: str, rows: list[Row]) -> tuple[Amount, int]:
    """The total of a counter, and how many launches it is of."""
    total, seen, holes = 0.0, 0, False
    rows = _of_one_kind(name, rows)
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

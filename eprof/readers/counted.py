"""What a processor counted in a run, event by event and part by part, as rows of a table: perf's and LIKWID's.

A part is an interval, a place (a CPU, a thread, a socket) and the unit of the processor that counted there. An event is
the sum of what is known of its parts; what is lost of them makes it a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Columns
from eprof.base.vocabulary import Mark
from eprof.logs.log import COUNT, OTHER, PERCENT, Launches, Names, Table, TableRows
from eprof.readers.cells import is_wrapped

# The value in a part, and for how much of the time it was counted, in %: 0 where it was not, LOST where its row is lost
# or its counter ran over. A part in which nothing counts the event has no value, and ALL.
Part: TypeAlias = tuple[str, str, str]
Reading: TypeAlias = tuple[float, float]
Parts: TypeAlias = dict[Part, Reading]
ALL, LOST = 100.0, -1.0
# Behind the name of an event: the share of the time in which it was counted, in %, where that is not all of it; and how
# many of its parts have no number.
RUNNING, NOT_ALL = " running", ": parts without a number"
_ABSENT = {RUNNING: ALL, NOT_ALL: 0.0}


def total(parts: Parts) -> float:
    """The sum of what is known of an event's parts; NaN if nothing is."""
    known = [value for value, _ in parts.values() if not math.isnan(value)]
    return sum(known or [math.nan])


def running(parts: Parts) -> float:
    """The least share of the time in which a part of an event was counted, in %, of those that were."""
    return min((share for value, share in parts.values() if not math.isnan(value)), default=ALL)


def has_lost(parts: Parts) -> bool:
    """Whether a row of an event is lost, or one of its counters ran over."""
    return any(share == LOST for _, share in parts.values())


def unknown(parts: Parts) -> int:
    """How many parts of an event have no number, where something counts it."""
    return sum(math.isnan(value) and share < ALL for value, share in parts.values())


def drop_wrapped(events: Mapping[str, Parts], executed: Mapping[tuple[str, ...], float]) -> None:
    """Make counts that ran over LOST, in place. executed: the instructions of each part, or interval and place."""
    for event, parts in events.items():
        for part, (number, _) in parts.items():
            if is_wrapped(event, number, executed.get(part, executed.get(part[:2], math.nan))):
                parts[part] = math.nan, LOST


class Row(Struct):
    """A row of a table of what a processor counted: a program, a cgroup or a region of it, in a run or an interval.

    time_s: NaN where it is not known. interval: its end, where each has a row. more: how many sockets and cores were in
    use, and joules by what they cover, each with its unit.
    """

    kernel: str
    time_s: float = math.nan
    events: dict[str, Parts] = field(default_factory=dict)
    more: dict[str, tuple[float, str]] = field(default_factory=dict)
    device: str | None = None
    interval: str | None = None
    launches: int = 1

    def amounts(self, keep: Container[str] | None) -> dict[str, tuple[float, str]]:
        """Each column's value and unit in a row of a processor's counts. `keep`: the events that get a column."""
        events = {event: parts for event, parts in self.events.items() if keep is None or event in keep}
        amounts = {event: (total(parts), COUNT) for event, parts in events.items()}
        for event, parts in events.items():
            if running(parts) < ALL:
                amounts[event + RUNNING] = running(parts), PERCENT
            if unknown(parts) and not math.isnan(total(parts)):
                amounts[event + NOT_ALL] = float(unknown(parts)), OTHER
        return amounts | self.more


def table(kind: str, rows: Sequence[Row], runs: Sequence[int], keep: Container[str] | None, **more: Any) -> Table:
    """A table of a processor's counts. runs: the number of each row's; `keep`: the events that get a column."""
    amounts = [row.amounts(keep) for row in rows]
    names = dict.fromkeys(chain.from_iterable(amounts))
    # An event that was not scaled was counted all the time, and one that lost nothing is whole.
    absent = {name: value for ending, value in _ABSENT.items() for name in names if name.endswith(ending)}
    own: dict[str, Any] = {"run": np.array(runs)}
    if any(row.interval for row in rows):
        own = {"part": Names.of(row.interval for row in rows)}
    of_rows = TableRows.of(
        Names.of(row.device for row in rows),
        Names.of(row.kernel for row in rows),
        launches=[row.launches for row in rows],
        time_s=[row.time_s for row in rows],
        **own,
    )
    more.setdefault("collected", frozenset(names.keys() - absent.keys()))
    return Table.of_amounts(kind, of_rows, amounts, absent, **more)


def marks(launches: Launches) -> Columns:
    """The marks of a processor's counters: ESTIMATED where one was scaled up, MISSING where parts have no number."""
    is_scaled = launches.counters.beside(RUNNING) < ALL
    lacks = launches.counters.beside(NOT_ALL) > 0
    return launches.marked(Mark.ESTIMATED, is_scaled).marked(Mark.MISSING, lacks).marks

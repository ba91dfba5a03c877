"""What a processor counted in a run, event by event and part by part, as rows of a table: perf's and LIKWID's.

A part is an interval, a place (a CPU, a thread, a socket) and the unit of the processor that counted there. An event is
the sum of what is known of its parts; what is lost of them makes it a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field

from eprof.logs.log import COUNT, NOT_ALL, OTHER, PERCENT, RUNNING, Names, Table, TableRows
from eprof.readers.cells import is_wrapped

Part: TypeAlias = tuple[str, str, str]
# A value, and for how much of the time it was counted, in %: 0 where it was not, LOST where its row is lost or its
# counter ran over. A part in which nothing counts the event has no value, and ALL.
Reading: TypeAlias = tuple[float, float]
ALL, LOST = 100.0, -1.0
_ABSENT = {RUNNING: ALL, NOT_ALL: 0.0}


class Parts(dict[Part, Reading]):
    """What was counted of an event in each part."""

    @property
    def total(self) -> float:
        """The sum of what is known of an event's parts; NaN if nothing is."""
        return sum([value for value, _ in self.values() if not math.isnan(value)] or [math.nan])

    @property
    def running(self) -> float:
        """The least share of the time in which a part of an event was counted, in %, of those that were."""
        return min((share for value, share in self.values() if not math.isnan(value)), default=ALL)

    @property
    def unknown(self) -> int:
        """How many parts of an event have no number, where something counts it."""
        return sum(math.isnan(value) and share < ALL for value, share in self.values())

    @property
    def has_lost(self) -> bool:
        """Whether a row of an event is lost, or one of its counters ran over."""
        return any(share == LOST for _, share in self.values())


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

    def parts(self, event: str) -> Parts:
        """The parts of an event of the row; a new event has none."""
        return self.events.setdefault(event, Parts())

    def drop_wrapped(self, are_instructions: Callable[[str], bool]) -> None:
        """Make counts that ran over LOST, in place, by the instructions of the same part, or interval and place."""
        executed = next((parts for event, parts in self.events.items() if are_instructions(event)), Parts())
        most = {at: number for part, (number, _) in executed.items() for at in (part, part[:2])}
        for event, parts in self.events.items():
            for part, (number, _) in parts.items():
                if is_wrapped(event, number, most.get(part, most.get(part[:2], math.nan))):
                    parts[part] = math.nan, LOST

    def amounts(self, keep: Container[str] | None) -> dict[str, tuple[float, str]]:
        """Each column's value and unit in a row of a processor's counts. `keep`: the events that get a column."""
        events = {event: parts for event, parts in self.events.items() if keep is None or event in keep}
        amounts = {event: (parts.total, COUNT) for event, parts in events.items()}
        for event, parts in events.items():
            if parts.running < ALL:
                amounts[event + RUNNING] = parts.running, PERCENT
            if parts.unknown and not math.isnan(parts.total):
                amounts[event + NOT_ALL] = float(parts.unknown), OTHER
        return amounts | self.more


def table(
    kind: str, rows: Sequence[Row], keep: Container[str] | None, runs: Sequence[int] | None = None, **more: Any
) -> Table:
    """A table of a processor's counts. keep: the events that get a column. runs: that of each row; None: all differ."""
    amounts = [row.amounts(keep) for row in rows]
    names = dict.fromkeys(chain.from_iterable(amounts))
    # An event that was not scaled was counted all the time, and one that lost nothing is whole.
    absent = {name: value for ending, value in _ABSENT.items() for name in names if name.endswith(ending)}
    own: dict[str, Any] = {"run": np.array(runs or range(len(rows)))}
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

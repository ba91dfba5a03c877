"""Tables of many logs put below each other; their counters added up over launches and runs; when each launch ran.

A table of ten rows takes more room and time than its rows do, so short tables are put together. What `combining` makes
of them stays the same, but for the last digits of times, which are added in another order. All counters of a table are
added up at once, as a table has few rows and many of them: for each counter in the order of the rows of each table,
then of the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Array, Columns
from eprof.base.optional import only
from eprof.base.vocabulary import Mark
from eprof.logs.log import TOTALS, Log, Names, Table, TableRows

# Rows beyond which a table is no longer short, and copying it would take room for nothing.
_LONG = 1 << 13
_CELLS = 1 << 20  # that are worked on at once
_APART = 0.05  # by which two passes may differ: some launches of a program are never quite the same


def gathered(logs: Sequence[Log]) -> list[Log]:
    """Gather the tables of all logs in the first, short ones that are alike joined; the other logs have none then."""
    tables = together([table for log in logs for table in log.tables])
    return [replace(log, tables=() if place else tables) for place, log in enumerate(logs)]


def together(tables: Sequence[Table]) -> tuple[Table, ...]:
    """The tables, where short ones of the same kind, columns, units and one part (if any) are joined to one table."""
    groups: dict[tuple[Any, ...], list[Table]] = {}
    for number, table in enumerate(tables):
        groups.setdefault(_signature(table, number), []).append(table)
    joined = []
    for first, *more in groups.values():
        if more:
            alike = (first, *more)
            rows = below_each_other([table.rows for table in alike])
            first = replace(first, rows=rows, counters=Columns.below([table.counters for table in alike]))
        joined.append(first)
    return tuple(joined)


def _signature(table: Table, number: int) -> tuple[Any, ...]:
    """A key that is equal for tables that may be gathered; `number` where a table may not be put below any other."""
    rows = table.rows
    if len(rows) > _LONG:
        return (number,)
    part: str | int | None = None
    if rows.part is not None:
        part = only(rows.part.names) or number
    columns = (*rows.columns(), table.counters.names, tuple(table.units.items()))
    return (table.kind, *columns, table.collected, table.lacks_rows, part)


def below_each_other(rows: Sequence[TableRows]) -> TableRows:
    """The rows of several tables below each other; runs are numbered anew, and no two tables share a number."""
    moved = [rows[0].run[:0]]
    start = 0
    for runs in (piece.run for piece in rows if len(piece)):
        moved.append(runs - runs.min() + start)
        start += int(np.ptp(runs)) + 1
    return replace(TableRows.below(rows), run=np.concatenate(moved))


def timeline(
    placed: Iterable[tuple[Table, Array]], rows: Sequence[tuple[str | None, str, str | None]]
) -> TableRows | None:
    """The launches one by one with their starts, from the tables that tell these; None where none does.

    placed: each table, with the place in `rows` (device, kernel, part) of each of its rows. Of several tools that
    traced one run, those that tell operators are taken, else the first: their launches are the same.
    """
    timed = [(table, row) for table, row in placed if table.rows.start_ns is not None]
    if not timed:
        return None
    kinds = [table.kind for table, _ in timed if table.rows.operator is not None] or [timed[0][0].kind]
    devices = Names.of(device for device, *_ in rows)
    kernels = Names.of(kernel for _, kernel, _ in rows)
    launches = []
    for table, row in timed:
        if table.kind == kinds[0]:
            own = table.rows
            unknown = Names((), np.full(len(own), -1, dtype=np.int32))
            columns = {"stream": own.stream or unknown, "operator": own.operator or unknown}
            names = {"device": devices.chosen(row), "kernel": kernels.chosen(row)}
            launches.append(replace(own, process=None, part=None, **columns, **names))
    return below_each_other(launches)


def blocks(counters: Columns) -> Iterator[tuple[slice, Array]]:
    """Yields a slice of the counters and their values, (n_counters, n_rows), about 2^20 cells at a time."""
    rows, columns = counters.values.shape
    for part in _parts(columns, rows):
        yield part, counters.values[:, part].T


def _parts(counters: int, cells: int) -> list[slice]:
    """Slices that cut `counters` counters of `cells` cells each into groups of 2^20 cells at most, or one counter."""
    width = max(1, _CELLS // max(1, cells))
    return [slice(first, first + width) for first in range(0, counters, width)]


class Rows:
    """The rows of a table: where each belongs in the result, and how many launches it is of."""

    def __init__(self, table: Table, row: Array) -> None:
        # Of thousands of logs each has its own few rows: what is not touched costs nothing.
        self.span = slice(int(row.min()), int(row.max()) + 1)
        self.size = self.span.stop - self.span.start
        self.row = row - self.span.start
        self.launches = table.rows.launches

    def sums(self, cells: Array) -> Array:
        """Cells, (n_counters, n_rows), added up by row of the result: (n_counters, size of `span`)."""
        counters = len(cells)
        place = np.arange(counters)[:, None] * self.size + self.row
        return np.bincount(place.ravel(), cells.ravel(), counters * self.size).reshape(counters, self.size)


class Sums:
    """Sums of counters, and how many launches these are of; (n_counters, n_kernels). is_total: else it is an average.

    is_known: whether some launch has a value. has_holes: whether some launch of those has none; its sum is a lower
    bound then. Averages are of the launches that have a value. is_apart: whether passes contradict each other.
    """

    def __init__(self, kernels: int, is_total: Sequence[bool]) -> None:
        self.is_total = np.array(is_total, dtype=bool)[:, None]
        shape = (len(is_total), kernels)
        self.sum, self.launches = np.zeros(shape), np.zeros(shape)
        self.is_known, self.has_holes, self.is_apart = (np.zeros(shape, dtype=bool) for _ in range(3))

    @classmethod
    def none(cls, kernels: int, units: Mapping[str, str]) -> Sums:
        """The sums of no launch yet, of counters with these units."""
        return cls(kernels, [unit in TOTALS for unit in units.values()])

    def add(self, rows: Rows, places: Array, values: Array) -> None:
        """Add up values (a row a counter, a column a row of a table) of the counters at `places`."""
        is_total = self.is_total[places]
        launches = np.broadcast_to(rows.launches, values.shape)
        known = ~np.isnan(values)
        cells = np.where(is_total, values, values * launches)
        all_launches = seen = rows.sums(launches)
        if not known.all():
            cells = np.where(known, cells, 0.0)
            seen = rows.sums(known * launches)
            all_launches = np.where(is_total, all_launches, seen)
            self.has_holes[places, rows.span] |= all_launches > seen
        self.sum[places, rows.span] += rows.sums(cells)
        self.launches[places, rows.span] += all_launches
        self.is_known[places, rows.span] |= seen > 0

    def take(self, other: Sums) -> None:
        """Take counters of kernels from `other`, another pass over the launches, where these are of more launches.

        Where both know a total a launch and these are apart by more than `_APART` of the larger, `is_apart` says so.
        """
        own_ranks, other_ranks = self._rank(), other._rank()
        with np.errstate(divide="ignore", invalid="ignore"):
            averages = self.sum / self.launches, other.sum / other.launches
            apart = np.abs(averages[0] - averages[1]) > _APART * np.fmax(np.abs(averages[0]), np.abs(averages[1]))
        both = self.is_known & other.is_known & self.is_total & ~self.has_holes & ~other.has_holes
        better = np.zeros(self.sum.shape, dtype=bool)
        equal = ~better
        for own_rank, other_rank in zip(own_ranks, other_ranks, strict=True):
            better |= equal & (other_rank > own_rank)
            equal &= other_rank == own_rank
        for name in ("sum", "launches", "is_known", "has_holes"):
            setattr(self, name, np.where(better, getattr(other, name), getattr(self, name)))
        self.is_apart |= both & apart

    def _rank(self) -> tuple[Array, ...]:
        """The sort keys of two passes: larger is better, the first foremost; the last breaks ties."""
        return self.is_known, self.launches, ~self.has_holes, self.sum

    def result(self, launches: Array) -> tuple[Array, Array]:
        """Totals scaled to `launches` (n_kernels,), or averages, and their `Mark` bits; NaN: not known."""
        values, marks = np.empty(self.sum.shape), np.empty(self.sum.shape, dtype=np.int8)
        for some in _parts(*self.sum.shape):
            total, seen, known = self.sum[some], self.launches[some], self.is_known[some]
            average = np.full(seen.shape, np.nan)
            np.divide(total, seen, out=average, where=known)
            differs = known & (seen != launches)
            values[some] = np.where(self.is_total[some], np.where(known & ~differs, total, average * launches), average)
            marks[some] = np.where(self.has_holes[some] | ~known, int(Mark.MISSING), 0)
            marks[some] |= np.where(differs, int(Mark.ESTIMATED), 0).astype(np.int8)
        return values, marks

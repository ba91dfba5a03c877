"""Counters added up over launches and runs: all counters of a table at once, as a table has few rows and many of them.

Additions are done for each counter in the order of the rows of each table, then of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from eprof.logs.table import Table
from eprof.marks import Mark

Array = np.ndarray[Any, Any]
_CELLS = 1 << 20  # that are worked on at once


def blocks(counters: pd.DataFrame) -> Iterator[tuple[slice, Array]]:
    """The values of all columns, a row a counter; of many rows, some columns after the other."""
    rows, columns = counters.shape
    parts = _parts(columns, rows)
    for part in parts:
        yield part, (counters if len(parts) == 1 else counters.iloc[:, part]).to_numpy().T


def _parts(counters: int, cells: int) -> list[slice]:
    """Slices of so many counters of so many cells each, none of them with many cells."""
    width = max(1, _CELLS // max(1, cells))
    return [slice(first, first + width) for first in range(0, counters, width)]


class Rows:
    """The rows of a table: where each belongs in the result, and how many launches it is of."""

    def __init__(self, table: Table, row: Array, tells_holes: bool) -> None:
        self.tells_holes = tells_holes
        # Of thousands of logs each has its own few rows: what is not touched costs nothing.
        self.span = slice(int(row.min()), int(row.max()) + 1)
        self.size = self.span.stop - self.span.start
        self.row = row - self.span.start
        self.launches = table.rows["launches"].to_numpy()
        self._runs: Callable[[], Array] = table.rows["run"].to_numpy

    def sums(self, cells: Array) -> Array:
        """Cells (a row a counter) added up by row of the result."""
        counters = len(cells)
        place = self.row if counters == 1 else (np.arange(counters)[:, None] * self.size + self.row).ravel()
        return np.bincount(place, cells.ravel(), counters * self.size).reshape(counters, self.size)

    @cached_property
    def _parts(self) -> Array:
        run = self._runs()
        run = run - run.min()
        return np.asarray(pd.factorize(self.row * (run.max() + 1) + run)[0])

    def holes(self, known: Array) -> Array:
        """Cells without a value, of kernels that have one in another launch of that run."""
        parts = self._parts
        return np.stack([~one & (np.bincount(parts, one) > 0)[parts] for one in known])


class Sums:
    """Counters (a row each) by kernel: their sums, and how many launches these are of. is_total: by counter."""

    def __init__(self, kernels: int, is_total: Sequence[bool]) -> None:
        self.is_total = np.array(is_total, dtype=bool)[:, None]
        shape = (len(is_total), kernels)
        self.sum, self.launches = np.zeros(shape), np.zeros(shape)
        self.has_holes = np.zeros(shape, dtype=bool)

    def add(self, rows: Rows, places: Array, values: Array) -> None:
        """Add values (a row a counter, a column a row of a table) to the counters at `places`."""
        is_total, launches = self.is_total[places], np.broadcast_to(rows.launches, values.shape)
        known = ~np.isnan(values)
        cells = np.where(is_total, values, values * launches)
        if not known.all():
            cells, launches = np.where(known, cells, 0.0), np.where(known, launches, 0)
        self.sum[places, rows.span] += rows.sums(cells)
        self.launches[places, rows.span] += rows.sums(launches)
        lost = np.flatnonzero(is_total[:, 0] & ~known.all(axis=1)) if rows.tells_holes else ()
        if len(lost):
            holes = rows.holes(known[lost])
            self.launches[places[lost], rows.span] += rows.sums(holes * rows.launches)
            self.has_holes[places[lost], rows.span] |= rows.sums(holes) > 0

    def result(self, launches: Array) -> tuple[Array, Array]:
        """Totals brought to so many launches, or averages (NaN where there is nothing), and their `Mark` bits."""
        values, marks = np.empty(self.sum.shape), np.empty(self.sum.shape, dtype=np.int8)
        for some in _parts(*self.sum.shape):
            values[some], marks[some] = self._result(some, launches)
        return values, marks

    def _result(self, some: slice, launches: Array) -> tuple[Array, Array]:
        seen, total = self.launches[some], self.sum[some]
        known = seen > 0
        average = np.full(seen.shape, np.nan)
        np.divide(total, seen, out=average, where=known)
        other = known & (seen != launches)
        values = np.where(self.is_total[some], np.where(known & ~other, total, average * launches), average)
        missing = np.where(self.has_holes[some] | ~known, int(Mark.MISSING), 0)
        return values, (missing | np.where(other, int(Mark.ESTIMATED), 0)).astype(np.int8)

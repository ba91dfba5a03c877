"""Rows of one table of one run, added up by kernel: memory grows with the kernels of a log, not with its launches.

Joining logs adds up the rows of a kernel anyway. What it must tell apart stays apart: runs, and cells without a value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, Bools, Floats, Ints, alike
from eprof.logs.rows.cells import as_cell
from eprof.logs.rows.log import COUNT

_HELD_ROWS = 1 << 16

Cells = tuple[Floats, Array]


class Piece(Struct):
    """Rows of one table of one run; all arrays are (n_rows,).

    device, kernel, part: numbers of names; -1: not told. counters: label -> values (NaN = none) and what each cell is
    (see `rows.cells.UNITS`). part: None where it was not asked for, or is not told. rows: how many rows of the log each
    row stands for.
    """

    run: int
    device: Array
    kernel: Array
    launches: Ints
    time_s: Floats | None = None
    counters: dict[str, Cells] = field(default_factory=dict)
    part: Array | None = None
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))

    def __post_init__(self) -> None:
        if not len(self.rows):
            self.rows = np.ones(len(self.kernel), np.int64)

    def times(self) -> Floats:
        """The times of a piece's rows; NaN where the table has none."""
        return np.full(len(self.kernel), np.nan) if self.time_s is None else self.time_s

    def parts(self) -> Array:
        """The parts of a piece's rows; -1 where the table has none."""
        return np.full(len(self.kernel), -1, dtype=np.int32) if self.part is None else self.part

    def columns(self) -> dict[str, Array]:
        """The columns of a piece beside the counters, by name; those that the table has."""
        columns = {name: getattr(self, name) for name in ("device", "kernel", "launches", "rows", "time_s", "part")}
        return {name: column for name, column in columns.items() if column is not None}

    def chosen(self, rows: Array) -> Piece:
        """Some rows of a piece: a mask, or places."""
        counters = {label: (values[rows], kinds[rows]) for label, (values, kinds) in self.counters.items()}
        return replace(self, **{name: column[rows] for name, column in self.columns().items()}, counters=counters)


class Sums:
    """The rows of a table that come piece by piece, all of one run and with the same columns."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._most_rows = _HELD_ROWS

    def add(self, piece: Piece) -> None:
        """Add up some rows to pieces."""
        if not len(piece.kernel):
            return
        self._pieces.append(_added_up(piece))
        if sum(len(piece.kernel) for piece in self._pieces) > self._most_rows:
            whole = self._whole()
            # Where kernels are many, adding up again soon would take time for nothing.
            self._most_rows = max(_HELD_ROWS, 2 * len(whole.kernel))

    def take(self) -> Piece | None:
        """The pieces' sums, a row for each device, kernel, part and pattern of cells without a value; None without
        rows.
        """
        return self._whole() if self._pieces else None

    def _whole(self) -> Piece:
        if len(self._pieces) > 1:
            self._pieces = [_added_up(_joined(self._pieces))]
        return self._pieces[0]


def _added_up(piece: Piece) -> Piece:
    """Rows of pieces added up: totals and times; rates and percentages become averages weighted by launches."""
    kinds_of = [kinds for _, kinds in piece.counters.values()]
    number, first = alike(piece.device, piece.kernel, piece.parts(), np.isnan(piece.times()), *kinds_of)
    size = len(first)
    if size == len(number):
        return piece
    launches = np.bincount(number, piece.launches, size).astype(np.int64)
    rows = np.bincount(number, piece.rows, size).astype(np.int64)
    counters = {
        label: (_sum(values, kinds, piece, number, launches), kinds[first])
        for label, (values, kinds) in piece.counters.items()
    }
    time_s: Floats | None = None if piece.time_s is None else _pieces_total(number, piece.time_s)
    return replace(piece.chosen(first), launches=launches, rows=rows, counters=counters, time_s=time_s)


def _sum(values: Floats, kinds: Array, piece: Piece, number: Ints, launches: Ints) -> Floats:
    is_count: Bools = kinds == as_cell(COUNT)
    if is_count.all():
        return _pieces_total(number, values)
    totals = _pieces_total(number, np.where(is_count, values, values * piece.launches))
    # All cells of a sum are of one kind.
    return totals / np.where(np.bincount(number, is_count) > 0, 1, np.maximum(launches, 1))


def _pieces_total(number: Ints, values: Floats) -> Floats:
    totals: Floats = np.bincount(number, values).astype(np.float64)
    return totals


def _joined(pieces: Sequence[Piece]) -> Piece:
    columns = {name: np.concatenate([piece.columns()[name] for piece in pieces]) for name in pieces[0].columns()}
    counters = {}
    for label in pieces[0].counters:
        values, kinds = zip(*(piece.counters[label] for piece in pieces), strict=True)
        counters[label] = np.concatenate(values), np.concatenate(kinds)
    return replace(pieces[0], **columns, counters=counters)

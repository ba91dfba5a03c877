"""The rows of a log added up by kernel while it is read: memory grows with its kernels, not with its launches.

Joining logs adds up the rows of a kernel anyway. What it must tell apart stays apart: runs, parts, and cells without a
value. `RowSums` take the rows of one table piece by piece; a `TableStore` makes tables of all that a log has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, Columns, Floats, Ints, alike, numbered
from eprof.logs.log import COUNT, LAUNCH, OTHER, Names, Table, TableRows, starts_and_streams
from eprof.readers.cells import ABSENT, MISFIT, REASONS, UNITS, as_cell

_HELD_ROWS = 1 << 16
_COLUMNS = ("run", "device", "kernel", "launches", "time_s", "part", "rows", "least_s", "most_s")  # of a piece

Cells = tuple[Floats, Array]


class NameNumbers:
    """Numbers names from 0 in the order in which they come; rows hold these numbers, not texts."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, name: str) -> int:
        """The number of `name`."""
        return self._numbers.setdefault(name, len(self._numbers))

    def names(self) -> list[str]:
        """All names, by number."""
        return list(self._numbers)

    def codes(self, column: Names) -> Array:
        """The number of each name of a column, new names included; -1 where the name is not known."""
        place, first = numbered(column.codes)
        own = [-1 if name is None else self.of(name) for name in column.chosen(first).texts()]
        return np.array(own, dtype=np.int32)[place]

    def column(self, numbers: Array) -> Names:
        """The names for `numbers` as a column; -1: not known."""
        names = self.names()
        used = np.flatnonzero(np.bincount(numbers + 1, minlength=len(names) + 1)[1:])
        codes = np.full(len(names) + 1, -1, dtype=np.int32)
        codes[used] = np.arange(len(used))
        return Names(tuple(names[number] for number in used), codes[numbers])


class Piece(Struct):
    """Some rows of one table of a log, as a reader hands them on; all arrays are (n_rows,).

    run: a number for each run. device, kernel, part: by `NameNumbers`; -1: not told. time_s: NaN: not told. counters:
    label -> (values, NaN: none; what each cell is, see `cells.UNITS`). rows: how many rows of the log each row stands
    for. least_s, most_s: the shortest and the longest launch of each row.
    """

    run: Ints
    device: Array
    kernel: Array
    launches: Ints
    time_s: Floats
    counters: dict[str, Cells] = field(default_factory=dict)
    part: Array = field(default_factory=lambda: np.zeros(0, np.int32))
    rows: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    least_s: Floats = field(default_factory=lambda: np.zeros(0))
    most_s: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not len(self.part):
            self.part = np.full(len(self.kernel), -1, np.int32)
        if not len(self.rows):
            self.rows = np.ones(len(self.kernel), np.int64)
        if not len(self.least_s):
            self.least_s = self.most_s = self.time_s / np.maximum(self.launches, 1)

    @classmethod
    def of_run(cls, run: int, device: Array, kernel: Array, launches: Ints, time_s: Floats | float = np.nan) -> Piece:
        """A piece without counters whose rows are all of one run; time_s: one for all rows, or (n_rows,)."""
        return cls(np.full(len(kernel), run), device, kernel, launches, np.full(len(kernel), time_s))

    def cells(self, label: str) -> Cells:
        """(Values, kinds) of a counter's cells, (n_rows,) each; NaN and ABSENT where the piece has no such counter."""
        if label in self.counters:
            return self.counters[label]
        return np.full(len(self.kernel), np.nan), np.full(len(self.kernel), ABSENT, dtype=np.int8)

    def chosen(self, rows: Array) -> Piece:
        """The piece of some of its rows: a mask of them, or their numbers."""
        counters = {label: (values[rows], kinds[rows]) for label, (values, kinds) in self.counters.items()}
        return replace(self, **{name: getattr(self, name)[rows] for name in _COLUMNS}, counters=counters)


def _below(pieces: Sequence[Piece]) -> dict[str, Array]:
    """Each column but counters, by name, of pieces put below each other."""
    return {name: np.concatenate([getattr(piece, name) for piece in pieces]) for name in _COLUMNS}


class RowSums:
    """Takes the rows of one table piece by piece, and adds them up by run, device, kernel and part."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []
        self._most_rows = _HELD_ROWS

    def __len__(self) -> int:
        return sum(len(piece.kernel) for piece in self._pieces)

    def add(self, piece: Piece) -> None:
        """Take some rows of a table; once many are held, all of them are added up again."""
        if not len(piece.kernel):
            return
        self._pieces.append(_added_up(piece))
        if len(self) > self._most_rows:
            self.take()
            # Where kernels are many, adding up again soon would take time for nothing.
            self._most_rows = max(_HELD_ROWS, 2 * len(self))

    def take(self) -> Piece | None:
        """All rows taken so far, added up (`_added_up`); None if there are none."""
        if len(self._pieces) > 1:
            counters = {}
            for label in dict.fromkeys(label for piece in self._pieces for label in piece.counters):
                values, kinds = zip(*(piece.cells(label) for piece in self._pieces), strict=True)
                counters[label] = np.concatenate(values), np.concatenate(kinds)
            self._pieces = [_added_up(Piece(**_below(self._pieces), counters=counters))]
        return next(iter(self._pieces), None)


def _added_up(piece: Piece) -> Piece:
    """The piece with a row for each run, device, kernel, part and pattern of lacking values.

    Totals and times add up; rates and percentages become averages weighted by launches.
    """
    kinds_of = [kinds for _, kinds in piece.counters.values()]
    number, first = alike(piece.run, piece.device, piece.kernel, piece.part, np.isnan(piece.time_s), *kinds_of)
    size = len(first)
    if size == len(number):
        return piece

    def total(values: Array) -> Floats:
        return np.bincount(number, values, size).astype(np.float64)

    def extreme(which: np.ufunc, ends_s: Floats) -> Floats:
        of_sums = ends_s[first]
        which.at(of_sums, number, ends_s)
        return of_sums

    launches, rows = total(piece.launches).astype(np.int64), total(piece.rows).astype(np.int64)
    counters: dict[str, Cells] = {}
    for label, (values, kinds) in piece.counters.items():
        is_count = kinds == as_cell(COUNT)
        if is_count.all():
            sums = total(values)
        else:
            weighted = total(np.where(is_count, values, values * piece.launches))
            sums = weighted / np.where(is_count[first], 1, np.maximum(launches, 1))  # all cells of a sum are of a kind
        counters[label] = sums, kinds[first]
    return replace(
        piece.chosen(first),
        launches=launches,
        rows=rows,
        counters=counters,
        time_s=total(piece.time_s),
        least_s=extreme(np.fmin, piece.least_s),
        most_s=extreme(np.fmax, piece.most_s),
    )


class TableStore(Struct, dict=True):
    """What was read of a log so far: pieces by kind of table, with numbers instead of names, and these names.

    by: what splits rows beside device and kernel ("stream", LAUNCH); None: nothing. processes: run -> number of its
    process, where the log tells it. missing: (counter, reason) -> cells. untimed: kind -> rows of the log without time.
    """

    by: str | None = None
    devices: NameNumbers = field(default_factory=NameNumbers)
    kernels: NameNumbers = field(default_factory=NameNumbers)
    parts: NameNumbers = field(default_factory=NameNumbers)
    processes: dict[int, int] = field(default_factory=dict)
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    missing: Counter[tuple[str, int]] = field(default_factory=Counter)
    untimed: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, piece: Piece | None) -> None:
        """Store a piece of a table of this kind: all of its rows, or some of them."""
        if piece is None or not len(piece.kernel):
            return
        self.pieces.setdefault(kind, []).append(piece)
        self.untimed[kind] += int(piece.rows[np.isnan(piece.time_s)].sum())

    def groups(self, pieces: Sequence[Piece]) -> Iterable[tuple[frozenset[str] | None, Sequence[Piece]]]:
        """The pieces of a kind of table, split into tables: (`Table.collected`, pieces) each. Here all are one."""
        return [(None, pieces)]

    def tables(self) -> tuple[Table, ...]:
        """The tables made of all stored pieces, which are dropped from the store."""
        tables = []
        for kind in list(self.pieces):
            for collected, pieces in self.groups(self.pieces.pop(kind)):
                own = _below(pieces)
                process_of = [self.processes.get(run, -1) for run in range(int(own["run"].max()) + 1)]
                rows = TableRows(
                    device=self.devices.column(own["device"]),
                    kernel=self.kernels.column(own["kernel"]),
                    process=np.array(process_of, dtype=np.int64)[own["run"]],
                    part=self.parts.column(own["part"]) if (own["part"] >= 0).any() else None,
                    run=own["run"],
                    launches=own["launches"],
                    time_s=own["time_s"],
                    least_s=own["least_s"],
                    most_s=own["most_s"],
                )
                units = dict.fromkeys((label for piece in pieces for label in piece.counters), "")
                values = np.empty((len(units), len(rows)))
                for column, label in zip(values, units, strict=True):
                    units[label] = self._fill(column, label, pieces)
                if self.by == LAUNCH:
                    rows = starts_and_streams(rows)
                tables.append(Table(kind, rows, Columns(tuple(units), values.T), units, collected))
        return tuple(tables)

    def _fill(self, column: Floats, label: str, pieces: Sequence[Piece]) -> str:
        """Fill `column` with a counter's values, NaN where not of the unit of most cells; returns that unit."""
        cells = [piece.cells(label) for piece in pieces]
        for piece in pieces:
            piece.counters.pop(label, None)  # so that they are not held twice
        kinds = np.concatenate([kinds for _, kinds in cells])
        rows = np.concatenate([piece.rows for piece in pieces])
        votes = np.bincount(kinds[kinds >= 0], rows[kinds >= 0], len(UNITS))
        kind = as_cell(OTHER)
        if votes.any():
            kind = int(votes.argmax())
        is_lost = kinds != kind
        column[:] = np.concatenate([values for values, _ in cells])
        column[is_lost] = np.nan
        reasons = np.where(kinds < 0, kinds, MISFIT)[is_lost].tolist()
        for reason, number in zip(reasons, rows[is_lost].tolist(), strict=True):
            if reason in REASONS:
                self.missing[label, reason] += number
        return UNITS[kind]

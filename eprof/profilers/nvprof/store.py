"""Where the tables of a log grow while it is read: pieces, one a run, put together at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from eprof.base.arrays import Array, Columns, Floats
from eprof.logs.rows.cells import MISFIT, REASONS, UNITS, Rates, as_cell
from eprof.logs.rows.columns import Answers, codes_that_stay
from eprof.logs.rows.log import LAUNCH, OTHER, Names, Shape, Table, TableRows, told_apart
from eprof.profilers.nvprof.pieces import Piece

if TYPE_CHECKING:
    import polars as pl

NO_DEVICE = -1
_EXAMPLES = 3


class Numbers:
    """Numbers for names, first come, first numbered, so that a row holds a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def of(self, name: str) -> int:
        """The store's number of `name`."""
        return self._numbers.setdefault(name, len(self._numbers))

    def names(self) -> list[str]:
        """All names in the store, by number."""
        return list(self._numbers)

    def column(self, numbers: Array) -> Names:
        """The names for `numbers` in the store; -1 is not known."""
        names = self.names()
        used = np.flatnonzero(np.bincount(numbers + 1, minlength=len(names) + 1)[1:])
        codes = np.full(len(names) + 1, -1, dtype=np.int32)
        codes[used] = np.arange(len(used))
        return Names(tuple(names[number] for number in used), codes[numbers])


class Store(Struct, dict=True):
    """What was read so far. `names`: description -> metric name; `keep`: the counters to hold, None for all.

    by: what splits rows beside device and kernel ("stream", LAUNCH); None: nothing. ranges: how many tables of NVTX
    ranges were left out. rates: how many B/s the units of rates are from here on; None: the log did not tell. unused:
    names of counters of tables that have none that is wanted. processes: run -> number of its process, where the log
    tells it. missing: (counter, reason) -> cells. others: what ran and is no kernel -> calls and seconds. shapes:
    number of a kernel -> launches, and the numbers of a `Shape` added up.
    """

    names: Mapping[str, str]
    keep: Container[str] | None
    by: str | None = None
    devices: Numbers = field(default_factory=Numbers)
    kernels: Numbers = field(default_factory=Numbers)
    parts: Numbers = field(default_factory=Numbers)
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    missing: Counter[tuple[str, int]] = field(default_factory=Counter)
    others: dict[str, list[float]] = field(default_factory=dict)
    untimed: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    ranges: int = 0
    rates: Rates | None = None
    unused: dict[str, None] = field(default_factory=dict)
    processes: dict[int, int] = field(default_factory=dict)
    shapes: dict[int, Floats] = field(default_factory=dict)
    _answers: dict[Callable[[str], Any], Answers] = field(default_factory=dict)

    @cached_property
    def _squashed(self) -> dict[str, str]:
        return _squashed(tuple(self.names.items()))

    def canonical(self, label: str) -> str:
        """The metric name for a column label: itself, unless it is a known description."""
        return self.names.get(label) or self._squashed.get(_squash(label), label)

    def keeps(self, counter: str) -> bool:
        """Whether the store keeps the values of a counter."""
        return self.keep is None or counter in self.keep

    def keeps_label(self, label: str) -> bool:
        """The same for a counter as a row of a summary names it."""
        return self.keeps(self.canonical(label.strip()))

    def leave_out(self, counters: Iterable[str]) -> None:
        """Remember some names of counters, none of which is wanted, of a table that has no other."""
        for counter in counters:
            if len(self.unused) <= _EXAMPLES:
                self.unused.setdefault(counter)

    def note(self, sentence: str) -> None:
        """Store a sentence for the user, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def part_of(self, text: str) -> int:
        """The number of a part; -1 for an empty cell."""
        return self.parts.of(text.strip()) if text.strip() else -1

    def each(self, ask: Callable[[str], Any], dtype: npt.DTypeLike = np.bool_) -> Answers:
        """What a function says of texts: the same for all tables of the log, so that no text is asked about again."""
        return self._answers.setdefault(ask, Answers(ask, dtype))

    @cached_property
    def codes(self) -> pl.Series:
        """The codes of texts in tables that polars parses."""
        return codes_that_stay()

    def count_other(self, name: str, calls: float, time_s: float) -> None:
        """Count in the store something that took time on the GPU but is no kernel, such as a copy."""
        before = self.others.setdefault(name, [0.0, 0.0])
        before[0] += calls
        before[1] += 0.0 if np.isnan(time_s) else time_s

    def shaped(self, kernel: Array, shape: Floats) -> None:
        """Store launches of some kernels, (n,), and the four numbers of their shapes, (4, n), added up."""
        rows = np.vstack([np.ones(len(kernel)), shape])
        sums = np.array([np.bincount(kernel, row) for row in rows]).T
        for number in np.unique(kernel).tolist():
            self.shapes[number] = self.shapes.get(number, 0.0) + sums[number]

    def launch_shapes(self) -> tuple[Shape, ...]:
        """The stored shapes of all kernels whose table has them."""
        names = self.kernels.names()
        return tuple(
            Shape(names[kernel], int(sums[0]), *sums[1:].tolist()) for kernel, sums in sorted(self.shapes.items())
        )

    def add(self, kind: str, piece: Piece | None) -> None:
        """Store the rows of one table of one run, or some of them."""
        if piece is None or not len(piece.kernel):
            return
        self.pieces.setdefault(kind, []).append(piece)
        if piece.time_s is not None:
            self.untimed[kind] += int(piece.rows[np.isnan(piece.time_s)].sum())

    def tables(self) -> tuple[Table, ...]:
        """All stored pieces put together, a table a kind and set of counters; lets go of the pieces.

        Rows with different counters stay apart: a launch that a table has no column for is no launch with a hole.
        """
        return tuple(
            self._table(kind, alike, collected)
            for kind in list(self.pieces)
            for collected, alike in _groups(self.pieces.pop(kind))
        )

    def _table(self, kind: str, pieces: list[Piece], collected: frozenset[str]) -> Table:
        sizes = [len(piece.kernel) for piece in pieces]
        has_parts = any(piece.part is not None for piece in pieces)
        rows = TableRows(
            device=self.devices.column(np.concatenate([piece.device for piece in pieces])),
            kernel=self.kernels.column(np.concatenate([piece.kernel for piece in pieces])),
            run=np.repeat([piece.run for piece in pieces], sizes),
            launches=np.concatenate([piece.launches for piece in pieces]),
            time_s=np.concatenate([piece.times() for piece in pieces]),
            process=np.repeat([self.processes.get(piece.run, -1) for piece in pieces], sizes),
            part=self.parts.column(np.concatenate([piece.parts() for piece in pieces])) if has_parts else None,
        )
        units = dict.fromkeys(pieces[0].counters, "")
        values = np.empty((len(units), len(rows)))
        for column, label in zip(values, units, strict=True):
            units[label] = self._fill(column, label, pieces)
        more = None if len(collected) == len(units) else collected
        if self.by == LAUNCH:
            rows = told_apart(rows)
        return Table(kind, rows, Columns(tuple(units), values.T), units, more)

    def _fill(self, column: Floats, label: str, pieces: list[Piece]) -> str:
        """Put the stored values of a counter below each other.

        Gives the unit that most have; those of another are missing.
        """
        cells = [piece.counters.pop(label) for piece in pieces]
        kinds = np.concatenate([kinds for _, kinds in cells])
        rows = np.concatenate([piece.rows for piece in pieces])
        votes = np.bincount(kinds[kinds >= 0], rows[kinds >= 0], len(UNITS))
        kind = int(votes.argmax()) if votes.any() else as_cell(OTHER)

        is_lost = kinds != kind
        column[:] = np.concatenate([values for values, _ in cells])
        column[is_lost] = np.nan
        reasons = np.where(kinds < 0, kinds, MISFIT)[is_lost].tolist()
        for reason, number in zip(reasons, rows[is_lost].tolist(), strict=True):
            if reason in REASONS:
                self.missing[label, reason] += number
        return UNITS[kind]

    def closing_notes(self) -> list[str]:
        """Sentences on cells in the store without a value, and on what ran but is no kernel."""
        notes = [
            f"{counter}: {number} cell{'s' if number > 1 else ''} {REASONS[reason]}, taken as missing"
            for (counter, reason), number in sorted(self.missing.items())
        ]
        notes += [
            f"{number} kernel rows of {kind} have no readable time; it is taken as missing"
            for kind, number in self.untimed.items()
            if number
        ]
        if self.unused:
            names = ", ".join(f"`{name}`" for name in list(self.unused)[:_EXAMPLES])
            more = " and others" if len(self.unused) > _EXAMPLES else ""
            notes.append(
                f"a table has only counters that tell no instructions, bytes or times ({names}{more}); "
                "`eprof counters` lists those that do"
            )
        if self.ranges:
            notes.append("tables by NVTX range were left out: the table of the whole run has their launches too")
        if self.others:
            parts = [f"{int(calls)} {name} ({time_s * 1e3:.6g} ms)" for name, (calls, time_s) in self.others.items()]
            notes.append("not kernels, so left out: " + ", ".join(parts))
        return notes


def _groups(pieces: Sequence[Piece]) -> Iterable[tuple[frozenset[str], list[Piece]]]:
    """The stored pieces that make one table each, and the counters that their runs have in all."""
    collected: dict[int, frozenset[str]] = {}
    for piece in pieces:
        collected[piece.run] = collected.get(piece.run, frozenset()).union(piece.counters)
    groups: dict[tuple[frozenset[str], frozenset[str]], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault((collected[piece.run], frozenset(piece.counters)), []).append(piece)
    return [(of_run, alike) for (of_run, _), alike in groups.items()]


@lru_cache(maxsize=4)
def _squashed(names: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {_squash(description): name for description, name in names}


def _squash(label: str) -> str:
    return " ".join(label.split()).casefold()

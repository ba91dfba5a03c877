"""Where the tables of a log grow while it is read: pieces, one a run, put together at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from eprof.base.arrays import Columns
from eprof.profilers.nvprof.folding import fold
from eprof.rows import log
from eprof.rows.cells import MISFIT, REASONS, UNITS, Rates
from eprof.rows.columns import Coded
from eprof.rows.log import Table, TableRows
from eprof.rows.pieces import Array, Piece
from eprof.rows.threads import Later

NO_DEVICE = -1
_EXAMPLES = 3
_LONG = 1 << 16  # rows of a table that are worth adding up before anybody works on them


class Names:
    """Numbers for names, so that a row holds a number: first come, first numbered."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}

    def code(self, name: str) -> int:
        """The number of `name`."""
        return self._codes.setdefault(name, len(self._codes))

    def names(self) -> list[str]:
        """All names, by number."""
        return list(self._codes)

    def codes(self, column: Coded) -> Array:
        """The numbers (int32) of a column of names."""
        places = list(map(self._codes.get, column.words))
        if None in places:
            places = [self.code(name) for name in column.words]
        return np.array(places, dtype=np.int32).take(column.codes) if places else np.empty(0, np.int32)

    def column(self, codes: Array) -> log.Names:
        """The names for `codes`; -1 is not known."""
        names = list(self._codes)
        used = np.flatnonzero(np.bincount(codes + 1, minlength=len(names) + 1)[1:])
        place = np.full(len(names) + 1, -1, dtype=np.int32)
        place[used] = np.arange(len(used))
        return log.Names(tuple(names[i] for i in used), place[codes])


@dataclass
class Store:
    """What was read so far. `names`: description -> metric name; `keep`: the counters to hold, None for all.

    fold_from: as many rows of a table are held before those of one kernel are added up. by: what else than device and
    kernel tells rows apart ("stream"); None: nothing. ranges: how many tables of NVTX ranges were left out.
    rates: how many B/s the units of rates are from here on; None: the log did not tell. unused: names of counters of
    tables that have none that is wanted. processes: run -> number of its process, where the log tells it.

    Numbers of names and notes come in the order of the log: who changes the store does so by `later`, or waits for it.
    """

    names: Mapping[str, str]
    keep: Container[str] | None
    fold_from: int = 1 << 20
    by: str | None = None
    devices: Names = field(default_factory=Names)
    kernels: Names = field(default_factory=Names)
    parts: Names = field(default_factory=Names)
    pieces: dict[str, list[Piece]] = field(default_factory=dict)
    missing: Counter[tuple[str, int]] = field(default_factory=Counter)
    others: dict[str, list[float]] = field(default_factory=dict)
    untimed: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    ranges: int = 0
    rates: Rates | None = None
    unused: dict[str, None] = field(default_factory=dict)
    processes: dict[int, int] = field(default_factory=dict)
    later: Later = field(default_factory=Later)
    _held: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._squashed = _squashed(tuple(self.names.items()))

    def canonical(self, label: str) -> str:
        """The metric name for a column label: itself, unless it is a known description."""
        return self.names.get(label) or self._squashed.get(_squash(label), label)

    def keeps(self, counter: str) -> bool:
        """Whether the values of a counter are wanted."""
        return self.keep is None or counter in self.keep

    def leave_out(self, counters: Iterable[str]) -> None:
        """Remember some names of counters, none of which is wanted, of a table that has no other."""
        for counter in counters:
            if len(self.unused) <= _EXAMPLES:
                self.unused.setdefault(counter)

    def note(self, sentence: str) -> None:
        """Remember a sentence for the user, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def part_codes(self, column: Coded) -> Array:
        """The numbers of a column of parts; -1 where a cell is empty."""
        codes = self.parts.codes(Coded([word.strip() for word in column.words], column.codes))
        return np.where(codes == self.parts.code(""), np.int32(-1), codes)

    def count_missing(self, counter: str, kinds: Array) -> None:
        """Count the cells of a counter that hold no value, by reason."""
        if kinds.min(initial=0) < 0:
            for reason, number in zip(*np.unique(kinds[kinds < 0], return_counts=True), strict=True):
                self.missing[counter, int(reason)] += int(number)

    def count_other(self, name: str, calls: float, time_s: float) -> None:
        """Count something that took time on the GPU but is no kernel, such as a copy."""
        before = self.others.setdefault(name, [0.0, 0.0])
        before[0] += calls
        before[1] += 0.0 if np.isnan(time_s) else time_s

    def add(self, kind: str, piece: Piece) -> None:
        """Take the rows of one table of one run, or some of them; add up the rows of a kernel where they get many."""
        if not len(piece.kernel):
            return
        self.pieces.setdefault(kind, []).append(piece)
        self._held[kind] += len(piece.kernel)
        if self._held[kind] >= self.fold_from:
            self._fold(kind)

    def _fold(self, kind: str) -> None:
        self.pieces[kind] = fold(self.pieces[kind])
        self._held[kind] = sum(len(piece.kernel) for piece in self.pieces[kind])
        # Where that did not help much, kernels are many: adding up again soon would take time for nothing.
        self.fold_from = max(self.fold_from, 2 * self._held[kind])

    def is_full(self, rows: int) -> bool:
        """Whether a table that holds so many rows should hand them over and go on with none."""
        return rows >= self.fold_from // 2

    def tables(self) -> tuple[Table, ...]:
        """All pieces put together, a table a kind and set of counters; lets go of the pieces.

        Rows with different counters stay apart: a launch that a table has no column for is no launch with a hole.
        """
        for kind, held in self._held.items():
            if held >= min(_LONG, self.fold_from):
                self.pieces[kind] = fold(self.pieces[kind])
        return tuple(
            self._table(kind, alike, collected)
            for kind in list(self.pieces)
            for collected, alike in _groups(self.pieces.pop(kind))
        )

    def _table(self, kind: str, pieces: list[Piece], collected: frozenset[str]) -> Table:
        sizes = [len(piece.kernel) for piece in pieces]
        rows = TableRows(
            device=self.devices.column(np.concatenate([piece.device for piece in pieces])),
            kernel=self.kernels.column(np.concatenate([piece.kernel for piece in pieces])),
            run=np.repeat([piece.run for piece in pieces], sizes),
            launches=np.concatenate([piece.launches for piece in pieces]),
            time_s=np.concatenate([_times(piece) for piece in pieces]),
            process=np.repeat([self.processes.get(piece.run, -1) for piece in pieces], sizes),
            part=self._parts(pieces),
        )
        labels = dict.fromkeys(label for piece in pieces for label in piece.counters)
        units = {label: self._unit(label, pieces) for label in labels}
        values = np.empty((len(units), len(rows)))
        for row, (label, unit) in zip(values, units.items(), strict=True):
            self._fill(row, label, UNITS.index(unit), pieces)
        more = None if len(collected) == len(units) else collected
        return Table(kind, rows, Columns(tuple(units), values.T), units, more)

    def _parts(self, pieces: list[Piece]) -> log.Names | None:
        if all(piece.part is None for piece in pieces):
            return None
        return self.parts.column(np.concatenate([_part(piece) for piece in pieces]))

    def _unit(self, label: str, pieces: list[Piece]) -> str:
        """The unit that most values of a counter have."""
        found = [piece.counters[label] for piece in pieces if label in piece.counters]
        if len({kind for _, kind in found}) == 1:
            return UNITS[found[0][1]]
        votes: Counter[int] = Counter()
        for values, kind in found:
            votes[kind] += int(np.count_nonzero(~np.isnan(values)))
        return UNITS[votes.most_common(1)[0][0]]

    def _fill(self, row: Array, label: str, kind: int, pieces: list[Piece]) -> None:
        """Put the values of a counter below each other; those of another unit are missing."""
        start = 0
        for piece in pieces:
            stop = start + len(piece.kernel)
            values, own = piece.counters.pop(label, (np.nan, kind))
            if own != kind and (number := int(np.count_nonzero(~np.isnan(values)))):
                self.missing[label, MISFIT] += number
            row[start:stop] = values if own == kind else np.nan
            start = stop

    def closing_notes(self) -> list[str]:
        """Sentences on cells without a value, and on what ran but is no kernel."""
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
    """The pieces that make one table each, and the counters that their runs have in all."""
    collected: dict[int, frozenset[str]] = {}
    for piece in pieces:
        collected[piece.run] = collected.get(piece.run, frozenset()).union(piece.counters)
    groups: dict[tuple[frozenset[str], frozenset[str]], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault((collected[piece.run], frozenset(piece.counters)), []).append(piece)
    return [(of_run, alike) for (of_run, _), alike in groups.items()]


def _times(piece: Piece) -> Array:
    return np.full(len(piece.kernel), np.nan) if piece.time_s is None else piece.time_s


def _part(piece: Piece) -> Array:
    return np.full(len(piece.kernel), -1, dtype=np.int32) if piece.part is None else piece.part


@lru_cache(maxsize=4)
def _squashed(names: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {_squash(description): name for description, name in names}


def _squash(label: str) -> str:
    return " ".join(label.split()).casefold()

"""Where the tables of a log of nvprof grow while it is read, and what else there is to remember of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import field

from eprof.base.arrays import Array, Floats
from eprof.logs.rows import folding
from eprof.logs.rows.cells import REASONS, Rates
from eprof.logs.rows.columns import Answers, codes_that_stay
from eprof.logs.rows.folding import Piece
from eprof.logs.rows.log import Shape

if TYPE_CHECKING:
    import polars as pl

NO_DEVICE = -1
_EXAMPLES = 3


class Store(folding.Store, dict=True):
    """What was read of a log of nvprof so far. `names`: description -> metric name; `keep`: the counters to hold, None
    for all.

    rates: how many B/s the units of rates are from here on; None: the log did not tell. ranges: how many tables of NVTX
    ranges were left out. unused: names of counters of tables that have none that is wanted. others: what ran and is no
    kernel -> calls and seconds. shapes: number of a kernel -> launches, and the numbers of a `Shape` added up.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    keep: Container[str] | None = None
    notes: list[str] = field(default_factory=list)
    rates: Rates | None = None
    ranges: int = 0
    unused: dict[str, None] = field(default_factory=dict)
    others: dict[str, list[float]] = field(default_factory=dict)
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

    def groups(self, pieces: Sequence[Piece]) -> Iterable[tuple[frozenset[str] | None, Sequence[Piece]]]:
        """A table for each set of counters: a launch that a table has no column for is no launch with a hole."""
        collected: dict[int, frozenset[str]] = {}
        for piece in pieces:
            run = int(piece.run[0])
            collected[run] = collected.get(run, frozenset()).union(piece.counters)
        groups: dict[tuple[frozenset[str], frozenset[str]], list[Piece]] = {}
        for piece in pieces:
            groups.setdefault((collected[int(piece.run[0])], frozenset(piece.counters)), []).append(piece)
        return [(None if of_run == own else of_run, alike) for (of_run, own), alike in groups.items()]

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


@lru_cache(maxsize=4)
def _squashed(names: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {_squash(description): name for description, name in names}


def _squash(label: str) -> str:
    return " ".join(label.split()).casefold()

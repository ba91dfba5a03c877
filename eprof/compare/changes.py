"""The difference of two sides, cell by cell: what changed counts and times cost, and what changed prices cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from eprof.base.marks import Mark
from eprof.base.vocabulary import BYTES, PARTS
from eprof.compare.matching import Match
from eprof.compare.side import TIME, WORDS, Bools, Floats, Grid, Ints, Side

_MISSING, _ESTIMATED, _SIMULATED = int(Mark.MISSING), int(Mark.ESTIMATED), int(Mark.SIMULATED)
# What is known of a cell's energy. NONE: there is nothing to know (a class total beside its parts, no price needed).
KNOWN, LOWER, LOST, NONE = 0, 1, 2, 3


@dataclass(frozen=True, eq=False)
class Half:
    """One side of every match, (n_matches, n_words); a kernel that the side does not have executed nothing: zeros."""

    number: Floats
    joules: Floats
    price: Floats
    marks: Ints
    counted: Ints
    state: Ints


@dataclass(frozen=True, eq=False)
class Changes:
    """The change of every match and word, (n_matches, n_words), in J; 0 where nothing is compared.

    quantity_j: for changed counts, bytes or time; price_j: for changed prices. compared: both sides know the energy.
    old, new: the means over repeats; old_repeats, new_repeats: each repeat.
    """

    matches: tuple[Match, ...]
    old: Half
    new: Half
    quantity_j: Floats
    price_j: Floats
    compared: Bools
    marks: Ints
    old_repeats: tuple[Half, ...]
    new_repeats: tuple[Half, ...]

    @cached_property
    def unknown(self) -> Bools:
        """Where neither side knows an energy that at least one of them has to pay."""
        lost = (self.old.state == LOST) | (self.new.state == LOST)
        found: Bools = lost & (self.old.state >= LOST) & (self.new.state >= LOST)
        return found

    @cached_property
    def uncompared(self) -> Bools:
        """Where one side at least knows an energy, but the two cannot be compared."""
        valued = (self.old.state <= LOWER) | (self.new.state <= LOWER)
        found: Bools = valued & ~self.compared & ~_nothing(self.old, self.new) & ~_nothing(self.new, self.old)
        return found


def changes(old: Side, new: Side, matches: Sequence[Match]) -> Changes:
    """Split the change of every cell, for the terms E = n c of the model (docs/model.md; [FMM] section II):

    n1 c1 - n0 c0 = (n1 - n0) (c0 + c1) / 2   changed counts, bytes or time, at the mean of the two prices
                  + (c1 - c0) (n0 + n1) / 2   changed price, at the mean of the two counts

    This is the Shapley value of two factors: neither goes first, so swapping OLD and NEW turns every part's sign. With
    equal prices the second is exactly 0. A cell that one side does not know is left out, never taken for 0.
    """
    halves = _halves(old, [one.old for one in matches]), _halves(new, [one.new for one in matches])
    olds, news = _absent(halves[0], halves[1][0], matches, "old"), _absent(halves[1], halves[0][0], matches, "new")
    news = _folded(olds[0], news)
    olds = _folded(news[0], olds)
    a, b = olds[0], news[0]
    a, b = replace(a, price=_price(a, b)), replace(b, price=_price(b, a))
    same_books = old.costs is None or new.costs is None or old.costs.books == new.costs.books
    compared = _compared(a, b, same_books)
    quantity = (b.number - a.number) * ((a.price + b.price) / 2)
    price = (b.price - a.price) * ((a.number + b.number) / 2)
    # A class that only simulated bounds are known of keeps its mark; what is compared exactly misses nothing.
    marks = (a.marks | b.marks) & np.where(a.state == LOWER, -1, ~_MISSING)
    # Adding 0.0 makes 0 of the -0 that comes of a class that pays nothing.
    return Changes(
        tuple(matches),
        a,
        b,
        np.where(compared, quantity, 0.0) + 0.0,
        np.where(compared, price, 0.0) + 0.0,
        compared,
        np.where(compared, marks, 0),
        tuple(olds[1:]),
        tuple(news[1:]),
    )


def _halves(side: Side, places: Sequence[int | None]) -> list[Half]:
    """One side of every match: the mean over the repeats, then each repeat."""
    rows = np.array([0 if place is None else place for place in places], dtype=np.int64)
    price = np.broadcast_to(side.price, (len(rows), len(WORDS)))
    return [
        Half(grid.number[rows], grid.joules[rows], price, grid.marks[rows], grid.counted[rows], states(grid)[rows])
        for grid in (side.mean, *side.repeats)
    ]


def _absent(halves: Sequence[Half], other: Half, matches: Sequence[Match], side: str) -> list[Half]:
    """`halves` where the side does not have the kernel: it executed none of what `other` knows."""
    absent = np.array([getattr(one, side) is None for one in matches], dtype=np.bool_)[:, None]
    if not absent.any():
        return list(halves)
    return [
        Half(
            np.where(absent, np.where(np.isnan(other.number), np.nan, 0.0), half.number),
            np.where(absent, np.where(np.isnan(other.joules), np.nan, 0.0), half.joules),
            np.where(absent, other.price, half.price),
            np.where(absent, other.marks, half.marks),
            np.where(absent, other.counted, half.counted),
            np.where(absent, other.state, half.state),
        )
        for half in halves
    ]


def states(grid: Grid) -> Ints:
    """What is known of every energy of a grid."""
    known, lost = ~np.isnan(grid.joules), (grid.marks & _MISSING) != 0
    found: Ints = np.select([known & ~lost, known, lost], [KNOWN, LOWER, LOST], NONE).astype(np.int64)
    return found


def _price(half: Half, other: Half) -> Floats:
    """The prices; a count of 0 needs none, and takes the other side's."""
    price: Floats = np.where(np.isnan(half.price), np.where(np.isnan(other.price), 0.0, other.price), half.price)
    return price


def _folded(a: Half, halves: Sequence[Half]) -> list[Half]:
    """`halves` with kinds of floating-point instructions added up where `a` knows their total only.

    The price of the sum is its energy over its count. ESTIMATED: a total may hold instructions of no kind.
    """
    found, mean = list(halves), halves[0]
    for total, parts in PARTS.items():
        at, columns = WORDS.index(total), [WORDS.index(part) for part in parts]
        rows = (a.state[:, at] <= LOWER) & (a.state[:, columns] == NONE).all(axis=1)
        rows &= (mean.state[:, at] == NONE) & (mean.state[:, columns] != NONE).any(axis=1)
        if rows.any():
            found = [_copy(half) for half in found]
            for half in found:
                _fold(half, rows, at, columns)
    return found


def _copy(half: Half) -> Half:
    number, joules, price = half.number.copy(), half.joules.copy(), half.price.copy()
    return Half(number, joules, price, half.marks.copy(), half.counted.copy(), half.state.copy())


def _fold(half: Half, rows: Bools, at: int, columns: Sequence[int]) -> None:
    """Add up `columns` of some rows into the column `at`; kinds neither counted nor priced add nothing."""
    kinds = half.state[:, columns]
    number, joules = np.nansum(half.number[:, columns], axis=1), np.nansum(half.joules[:, columns], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        price = np.where(number > 0, joules / number, half.price[:, at])
    state = np.where(kinds == NONE, KNOWN, kinds).max(axis=1)
    joules = np.where(state == LOST, np.nan, joules)
    for table, column in ((half.number, number), (half.joules, joules), (half.price, price)):
        table[rows, at] = column[rows]
    for marks in (half.marks, half.counted):
        marks[rows, at] = (np.bitwise_or.reduce(marks[:, columns], axis=1) | _ESTIMATED)[rows]
    half.state[rows, at] = state[rows]
    for column in columns:
        half.number[rows, column] = half.joules[rows, column] = np.nan
        half.marks[rows, column] = half.counted[rows, column] = 0
        half.state[rows, column] = NONE


def _compared(a: Half, b: Half, same_books: bool) -> Bools:
    """Both know the energy. Two lower bounds are compared where both lack the same thing: what a simulator leaves out.

    A counter that overflowed, on the other hand, may lack half of a kernel on one side and little on the other.
    Levels of memory are not compared between books: a byte of L2 is not the same thing in the two.
    """
    simulated = (a.marks & b.marks & _SIMULATED) != 0
    bounds = (a.state == LOWER) & (b.state == LOWER) & simulated
    found: Bools = (a.state == KNOWN) & (b.state == KNOWN) | bounds
    if not same_books:
        columns = [WORDS.index(word) for word in BYTES]
        found[:, columns] &= (a.joules[:, columns] == 0) & (b.joules[:, columns] == 0)
    return found


def _nothing(half: Half, other: Half) -> Bools:
    """Where a side pays exactly nothing, and the other has nothing to know."""
    found: Bools = (half.state == KNOWN) & (half.joules == 0) & (other.state == NONE)
    return found


__all__ = ["KNOWN", "LOST", "LOWER", "NONE", "TIME", "Changes", "Half", "changes", "states"]

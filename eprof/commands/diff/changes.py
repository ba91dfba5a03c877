"""The difference of two sides, cell by cell: what changed counts and times cost, and what changed prices cost."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, known_or_zero
from eprof.base.brief import Brief
from eprof.base.marks import Mark
from eprof.base.vocabulary import BYTES, FLOAT_PARTS, LEVEL_PARTS
from eprof.commands.diff.matching import Match
from eprof.commands.diff.side import TIME, WORDS, Grid, Side

_MISSING, _ESTIMATED, _SIMULATED = int(Mark.MISSING), int(Mark.ESTIMATED), int(Mark.SIMULATED)
MATCHED, APPEARED, VANISHED = "matched", "appeared", "vanished"
# What is known of a cell's energy. NONE: there is nothing to know (a class total beside its parts, no price needed).
KNOWN, LOWER, LOST, NONE = 0, 1, 2, 3


class Half(Brief, Struct, frozen=True, eq=False):
    """One side of every match, (n_matches, n_words); a kernel that the side does not have executed nothing: zeros."""

    number: Floats
    joules: Floats
    price: Floats
    marks: Ints
    counted: Ints
    state: Ints


class Changes(Brief, Struct, frozen=True, eq=False, dict=True):
    """The change of every match and word, (n_matches, n_words), in J; 0 where nothing is compared.

    quantity_j: for changed counts, bytes or time; price_j: for changed prices. compared: both sides know the energy.
    old, new: the means over repeats; old_repeats, new_repeats: each repeat.
    """

    old_side: Side
    new_side: Side
    matches: tuple[Match, ...]
    old: Half
    new: Half
    quantity_j: Floats
    price_j: Floats
    compared: Bools
    marks: Ints
    old_repeats: tuple[Half, ...]
    new_repeats: tuple[Half, ...]

    @property
    def halves(self) -> tuple[tuple[Side, Half], tuple[Side, Half]]:
        """OLD and NEW with their numbers."""
        return (self.old_side, self.old), (self.new_side, self.new)

    @cached_property
    def rests_on_single_times(self) -> bool:
        """Whether nothing changed but the measured time, and one side timed a single run, so that it may be noise."""
        is_single = min(len(self.old_repeats), len(self.new_repeats)) == 1
        is_modelled = self.old_side.is_modelled or self.new_side.is_modelled
        if not is_single or is_modelled or not self.quantity_j[:, TIME].any():
            return False
        old, new = self.old.number[:, :TIME], self.new.number[:, :TIME]
        has_counts = bool((known_or_zero(old) > 0).any())
        return has_counts and np.array_equal(old, new, equal_nan=True) and not self.price_j.any()

    @cached_property
    def has_energy(self) -> bool:
        """Whether any energy is known of OLD and of NEW. A kernel that only one has is compared with nothing at all."""
        priced = self.old_side.costs is not None and self.new_side.costs is not None
        return priced and bool(self.compared.any())

    @cached_property
    def launches(self) -> tuple[Floats, Floats]:
        """How often each side launches the kernel of each match, (n_matches,); 0 where it does not have it."""
        old, new = self.old_side.named, self.new_side.named
        olds = [0.0 if match.old is None else old[match.old].launches for match in self.matches]
        news = [0.0 if match.new is None else new[match.new].launches for match in self.matches]
        return np.array(olds), np.array(news)

    @property
    def is_zero(self) -> bool:
        """Whether nothing changed between the sides: every count, time and price known, to the last digit."""
        paired = all(match.old is not None and match.new is not None for match in self.matches)
        same_prices = np.array_equal(self.old_side.price, self.new_side.price, equal_nan=True)
        return paired and same_prices and np.array_equal(self.old.number, self.new.number, equal_nan=True)

    @cached_property
    def unknown(self) -> Bools:
        """The cells where neither side knows an energy that at least one of them has to pay."""
        lost = (self.old.state == LOST) | (self.new.state == LOST)
        return np.asarray(lost & (self.old.state >= LOST) & (self.new.state >= LOST))

    @cached_property
    def uncompared(self) -> Bools:
        """The cells where one side at least knows an energy, but the two cannot be compared."""
        valued = (self.old.state <= LOWER) | (self.new.state <= LOWER)
        free = _pays_nothing(self.old, self.new) | _pays_nothing(self.new, self.old)
        return np.asarray(valued & ~self.compared & ~free)

    @cached_property
    def paid(self) -> Bools:
        """The cells of the change that are compared and cost anything on either side."""
        return np.asarray(self.compared & ((self.old.joules != 0) | (self.new.joules != 0)))

    def marks_of(self, rows: slice) -> int:
        """The marks of the change of some matches: those of all that is paid, MISSING if something is left out."""
        marks = int(np.bitwise_or.reduce(self.marks[rows][self.paid[rows]], initial=0))
        lost = self.uncompared[rows].any() or self.unknown[rows].any() or not self.has_energy
        return marks | _MISSING if lost else marks

    def status(self, row: int) -> str:
        """Whether a matched kernel is on both sides."""
        if self.matches[row].old is None:
            return APPEARED
        return VANISHED if self.matches[row].new is None else MATCHED

    def names(self, row: int) -> list[str]:
        """The names of a match: OLD's, then NEW's, as far as the sides have the kernel."""
        names = self.old_side.name_of(self.matches[row].old), self.new_side.name_of(self.matches[row].new)
        return [name for name in names if name is not None]


def changes(old: Side, new: Side, matches: Sequence[Match]) -> Changes:
    """Split the change of every cell, for the terms E = n c of the model (docs/model.md; [FMM] section II):

    n1 c1 - n0 c0 = (n1 - n0) (c0 + c1) / 2   changed counts, bytes or time, at the mean of the two prices
                  + (c1 - c0) (n0 + n1) / 2   changed price, at the mean of the two counts

    This is the Shapley value of two factors: neither goes first, so swapping OLD and NEW turns every part's sign. With
    equal prices the second is exactly 0. A cell that one side does not know is left out, never taken for 0.
    """
    halves_old = _halves(old, [match.old for match in matches])
    halves_new = _halves(new, [match.new for match in matches])
    old_mean, new_mean = halves_old[0], halves_new[0]
    halves_old = _absent(halves_old, new_mean, np.array([match.old is None for match in matches], dtype=np.bool_))
    halves_new = _absent(halves_new, old_mean, np.array([match.new is None for match in matches], dtype=np.bool_))

    halves_new = _folded(halves_old[0], halves_new)
    halves_old = _folded(halves_new[0], halves_old)
    before = replace(halves_old[0], price=_price(halves_old[0], halves_new[0]))
    after = replace(halves_new[0], price=_price(halves_new[0], halves_old[0]))

    same_books = old.costs is None or new.costs is None or old.costs.books == new.costs.books
    compared = _compared(before, after, same_books)
    quantity = (after.number - before.number) * ((before.price + after.price) / 2)
    price = (after.price - before.price) * ((before.number + after.number) / 2)
    # A class that only simulated bounds are known of keeps its mark; what is compared exactly misses nothing.
    marks = (before.marks | after.marks) & np.where(before.state == LOWER, -1, ~_MISSING)

    return Changes(
        old_side=old,
        new_side=new,
        matches=tuple(matches),
        old=before,
        new=after,
        # Adding 0.0 makes 0 of the -0 that comes of a class that pays nothing.
        quantity_j=np.where(compared, quantity, 0.0) + 0.0,
        price_j=np.where(compared, price, 0.0) + 0.0,
        compared=compared,
        marks=np.where(compared, marks, 0),
        old_repeats=tuple(halves_old[1:]),
        new_repeats=tuple(halves_new[1:]),
    )


def _halves(side: Side, places: Sequence[int | None]) -> list[Half]:
    """One side of every matched kernel: the mean over the repeats, then each repeat."""
    rows = np.array([place or 0 for place in places], dtype=np.int64)
    return [
        Half(
            number=grid.number[rows],
            joules=grid.joules[rows],
            price=side.cell_prices(grid)[rows],
            marks=grid.marks[rows],
            counted=grid.counted[rows],
            state=states(grid)[rows],
        )
        for grid in (side.mean, *side.repeats)
    ]


def _absent(halves: list[Half], known: Half, absent: Bools) -> list[Half]:
    """`halves` of a change where the side lacks the kernel: it executed none of what `known` counts."""
    if not absent.any():
        return halves
    rows = absent[:, None]
    none = Half(
        np.where(np.isnan(known.number), np.nan, 0.0),
        np.where(np.isnan(known.joules), np.nan, 0.0),
        known.price,
        known.marks,
        known.counted,
        known.state,
    )
    return [_merged(half, none, lambda mine, theirs: np.where(rows, theirs, mine)) for half in halves]


def _merged(half: Half, partner: Half, merge: Callable[[Any, Any], Any]) -> Half:
    """Every table of one half of the change merged with that of another."""
    return Half(*(merge(getattr(half, name), getattr(partner, name)) for name in Half.__struct_fields__))


def states(grid: Grid) -> Ints:
    """What is known of every energy of a side's grid."""
    known = ~np.isnan(grid.joules)
    lost = (grid.marks & _MISSING) != 0
    return np.select([known & ~lost, known, lost], [KNOWN, LOWER, LOST], NONE).astype(np.int64)


def _price(half: Half, partner: Half) -> Floats:
    """The prices of a change; a count of 0 needs none, and takes the other side's."""
    either = np.where(np.isnan(half.price), partner.price, half.price)
    return np.where(np.isnan(either), 0.0, either)


def _folded(a: Half, halves: list[Half]) -> list[Half]:
    """`halves` of a change with kinds of floating-point instructions added up where `a` knows their total only.

    The price of the sum is its energy over its count. ESTIMATED: a total may hold instructions of no kind.
    """
    mean = halves[0]
    for total, parts in {**FLOAT_PARTS, **LEVEL_PARTS}.items():
        column = WORDS.index(total)
        kinds = [WORDS.index(part) for part in parts]
        only_total = (a.state[:, column] <= LOWER) & (a.state[:, kinds] == NONE).all(axis=1)
        only_kinds = (mean.state[:, column] == NONE) & (mean.state[:, kinds] != NONE).any(axis=1)
        rows = only_total & only_kinds
        if rows.any():
            halves = [_merged(half, half, lambda table, _: table.copy()) for half in halves]
            for half in halves:
                _fold(half, rows, column, kinds)
    return halves


def _fold(half: Half, rows: Bools, column: int, kinds: Sequence[int]) -> None:
    """Add up `kinds` of some rows of a change into a column; kinds neither counted nor priced add nothing."""
    states = half.state[:, kinds]
    state = np.where(states == NONE, KNOWN, states).max(axis=1)
    number = np.nansum(half.number[:, kinds], axis=1)
    joules = np.nansum(half.joules[:, kinds], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        price = np.where(number > 0, joules / number, half.price[:, column])
    joules = np.where(state == LOST, np.nan, joules)

    half.number[rows, column] = number[rows]
    half.joules[rows, column] = joules[rows]
    half.price[rows, column] = price[rows]
    half.state[rows, column] = state[rows]
    for marks in (half.marks, half.counted):
        marks[rows, column] = (np.bitwise_or.reduce(marks[:, kinds], axis=1) | _ESTIMATED)[rows]

    cells = np.ix_(np.flatnonzero(rows), np.asarray(kinds))
    half.number[cells] = half.joules[cells] = np.nan
    half.marks[cells] = half.counted[cells] = 0
    half.state[cells] = NONE


def _compared(before: Half, after: Half, same_books: bool) -> Bools:
    """The cells of the change where both sides know the energy.

    Two lower bounds are compared where both lack the same thing: what a simulator leaves out.

    A counter that overflowed, on the other hand, may lack half of a kernel on one side and little on the other.
    Levels of memory are not compared between books: a byte of L2 is not the same thing in the two.
    """
    simulated = (before.marks & after.marks & _SIMULATED) != 0
    bounds = (before.state == LOWER) & (after.state == LOWER) & simulated
    compared: Bools = (before.state == KNOWN) & (after.state == KNOWN) | bounds
    if not same_books:
        columns = [WORDS.index(word) for word in BYTES]
        compared[:, columns] &= (before.joules[:, columns] == 0) & (after.joules[:, columns] == 0)
    return compared


def _pays_nothing(half: Half, partner: Half) -> Bools:
    """The cells of the change where a side pays exactly nothing, and the other has nothing to know."""
    return np.asarray((half.state == KNOWN) & (half.joules == 0) & (partner.state == NONE))

"""How far a change is known: both sides priced by the same replicas of their prices.

One table's prices are wrong alike on both sides, so that the change is far surer than either energy. Two tables are
taken to be wrong independently of each other. The error of the model is in the energies of both sides, not in the
change.
"""

from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, known_or_zero
from eprof.base.brief import Brief
from eprof.base.marks import Mark
from eprof.commands.diff.changes import MATCHED, Changes
from eprof.commands.diff.schema import Intervals, Range
from eprof.commands.diff.side import TIME, Side
from eprof.energy.attribution import FAMILIES
from eprof.energy.replicas import Replicas, independent, middle, places
from eprof.profile import intervals

_MISSING = int(Mark.MISSING)
_MOST_PAIRS = 1000
_SEED = 20261122
_ROUNDING = 1e-9


class Refits(Struct, frozen=True, eq=False):
    """Both sides' prices by the same replicas. is_paired: both have one table, hence the same errors."""

    old: Replicas
    new: Replicas
    is_paired: bool

    @property
    def document(self) -> Intervals:
        """What the intervals of the difference are, in its document."""
        within = max(self.old.within, self.new.within)
        return Intervals(self.old.share, self.old.number, self.is_paired, within if within > 1 else None)

    def change(self, before: Floats, after: Floats) -> Floats:
        """Joules of OLD or NEW by each replica: (..., n_priced) counts and seconds -> (..., n_replicas)."""
        if self.old is self.new:
            return self.new.joules(after - before)
        return self.new.joules(after) - self.old.joules(before)


def refits(old: Side, new: Side) -> Refits | None:
    """The replicas of the prices of both sides; None where one has none."""
    before, after = (intervals.replicas(side.first) for side in (old, new))
    if before is None or after is None:
        return None
    old_table, new_table = old.first.table, new.first.table
    assert old_table is not None and new_table is not None
    if (old_table.name, old_table.source) != (new_table.name, new_table.source):
        return _independent(before, after)
    is_one_setting = np.array_equal(before.prices, after.prices)
    return Refits(before, before if is_one_setting else after, True)


def _independent(old: Replicas, new: Replicas) -> Refits:
    """Pairs of every replica of OLD with every one of NEW; of many, a part drawn at random, the same each time."""
    pairs = np.arange(old.number * new.number)
    if len(pairs) > _MOST_PAIRS:
        pairs = np.random.default_rng(_SEED).choice(len(pairs), _MOST_PAIRS, replace=False)
    of_old, of_new = np.divmod(pairs, new.number)
    share = max(old.share, new.share)
    return Refits(
        replace(old, prices=old.prices[:, of_old], share=share),
        replace(new, prices=new.prices[:, of_new], share=share),
        False,
    )


def of_side(side: Side) -> dict[str, Range | None] | None:
    """The intervals of a side's energy by family, and of the total; None without replicas."""
    replicas = intervals.replicas(side.first)
    if replicas is None:
        return None
    amounts = known_or_zero(side.mean.number).sum(axis=0)
    families = {family: places(words) for family, words in FAMILIES.items()}
    families["total"] = list(range(len(amounts)))
    ends: dict[str, Range | None] = dict.fromkeys(families)
    for family, columns in families.items():
        if (side.mean.marks[:, columns] & _MISSING).any():
            continue
        chosen = np.zeros_like(amounts)
        chosen[columns] = amounts[columns]
        parts_j = known_or_zero(side.mean.joules[:, columns]).sum(axis=1)
        spread_j = 0.0 if columns == [TIME] else independent(parts_j)
        ends[family] = replicas.interval(replicas.joules(chosen), float(parts_j.sum()), spread_j).tolist()
    return ends


class Spread(Brief, Struct, frozen=True, eq=False, dict=True):
    """The change by each replica. What is compared as a lower bound, or was added up of several prices, has none."""

    changes: Changes
    refits: Refits

    @cached_property
    def amounts(self) -> tuple[Floats, Floats]:
        """The compared counts and seconds of OLD and NEW, (n_matches, n_priced)."""
        old, new = (np.where(self.changes.paid, half.number, 0.0) for _, half in self.changes.halves)
        return old, new

    @cached_property
    def is_open(self) -> Bools:
        """The cells of a change that leave an interval open: lower bounds, or no product of count and price."""
        is_open = (self.changes.marks & _MISSING) != 0
        for side, half in self.changes.halves:
            # Where kinds of several prices were added up, the energy is not count times price.
            expected_j = half.number * known_or_zero(side.price)
            is_open |= np.abs(half.joules - expected_j) > _ROUNDING * np.abs(half.joules)
        return np.asarray(self.changes.paid & is_open)

    @cached_property
    def _matched(self) -> Ints:
        return self.rows_of(MATCHED)

    def rows_of(self, status: str) -> Ints:
        """The matched kernels of a status, for an interval."""
        statuses = [self.changes.status(row) for row in range(len(self.changes.matches))]
        return np.flatnonzero(np.array(statuses) == status)

    @cached_property
    def _of_words(self) -> Floats:
        """The change of each word over all matched kernels by replica, (n_priced, n_replicas)."""
        old, new = self._of_matched
        if self.refits.old is self.refits.new:
            return (new - old) * self.refits.new.prices
        return new * self.refits.new.prices - old * self.refits.old.prices

    @cached_property
    def _of_prices(self) -> Floats:
        """The change by replica due to changed prices, split as `changes.changes` does it, (n_priced, n_replicas)."""
        old, new = self._of_matched
        return (self.refits.new.prices - self.refits.old.prices) * ((old + new) / 2)

    @cached_property
    def _of_matched(self) -> tuple[Floats, Floats]:
        old, new = (amounts[self._matched].sum(axis=0)[:, None] for amounts in self.amounts)
        return old, new

    def of_part(self, columns: list[int], is_price: bool) -> Floats | None:
        """The change of some words over all matched kernels by replica, (n_replicas,); is_price: due to prices."""
        if self.is_open[self._matched][:, columns].any():
            return None
        joules = self._of_prices[columns]
        if not is_price:
            old, new = self.changes.old_side.price[columns], self.changes.new_side.price[columns]
            prices_differ = ~np.isnan(old) & ~np.isnan(new) & (old != new)
            joules = self._of_words[columns] - joules * prices_differ[:, None]
        return np.asarray(joules.sum(axis=0))

    def of_rows(self, rows: Ints) -> Floats | None:
        """The change of some kernels together by replica, (n_replicas,)."""
        if self.is_open[rows].any():
            return None
        old, new = (amounts[rows].sum(axis=0) for amounts in self.amounts)
        return self.refits.change(old, new)

    def interval(self, joules: Floats | None, value_j: float) -> Range | None:
        """The interval of a change by replica, (n_replicas,); None: not known."""
        if joules is None:
            return None
        ends: Range = self.refits.old.interval(joules, value_j).tolist()
        return ends

    def of_total(self, change_j: float | None) -> Range | None:
        """The interval of the whole change."""
        if change_j is None:
            return None
        return self.interval(self.of_rows(np.arange(len(self.changes.matches))), change_j)

    def of_share(self, change_share: float | None) -> Range | None:
        """The interval of the change over the compared energy of OLD, both by the same replica."""
        if change_share is None or self.is_open.any():
            return None
        old, new = (amounts.sum(axis=0) for amounts in self.amounts)
        old_j = self.refits.old.joules(old)
        if (old_j <= 0).any():
            return None
        ends: Range = middle(self.refits.change(old, new) / old_j, change_share, self.refits.old.share).tolist()
        return ends

    def of_kernels(self, change_j: Floats) -> list[Range | None]:
        """The interval of each matched kernel's change. change_j: (n_matches,)."""
        ends = self.refits.old.interval(self.refits.change(*self.amounts), change_j).tolist()
        is_open = np.asarray(self.is_open.any(axis=1))
        return [None if open_ended else pair for pair, open_ended in zip(ends, is_open.tolist(), strict=True)]

    def of_one_side(self, row: int, column: int, change_j: float) -> Range | None:
        """The interval of a word of a kernel that only one side has: its count times the interval of the price."""
        if self.is_open[row, column]:
            return None
        old, new = (float(amounts[row, column]) for amounts in self.amounts)
        low_old, high_old = self.refits.old.price_intervals[column].tolist()
        low_new, high_new = self.refits.new.price_intervals[column].tolist()
        return [min(new * low_new - old * high_old, change_j), max(new * high_new - old * low_old, change_j)]

"""The parts of a change, which add up to it, by word and by group as steps; and how far each is known.

Intervals price both sides by the same replicas of their prices. One table's prices are wrong alike on both sides, so
that the change is far surer than either energy. Two tables are taken to be wrong independently of each other. The error
of the model is in the energies of both sides, not in the change.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, known_or_zero
from eprof.base.brief import Brief
from eprof.base.marks import Mark, names
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.commands.diff.changes import MATCHED, TIME, WORDS, Changes, Side
from eprof.commands.diff.schema import Intervals, Part, Range, Step
from eprof.energy.attribution import FAMILIES
from eprof.energy.replicas import Replicas, independent, middle, places
from eprof.profile import intervals

COUNTED, TIMED, COST, SETTING, METER = "counts", "time", "cost", "setting", "meter"
PRICES = (COST, SETTING, METER)
# The words of every combination of marks: thousands of kernels use them.
MARK_WORDS = {bits: names(bits) for bits in range(16)}
_FAMILIES = {word: count.family for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}
_UNITS = {word: count.unit for word, count in COUNTS.items()} | {CONSTANT: "s"}
_GROUPS = {word: count.group for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}
_MISSING = int(Mark.MISSING)
_MOST_PAIRS = 1000
_SEED = 20261122
_ROUNDING = 1e-9


# ------------------------------------------------------------------------------------------------------------ parts


class _Cell(Struct, frozen=True):
    """What a kernel pays for a word. is_repriced: the prices of the two sides differ, not the mix of kinds alone."""

    column: int
    old: float
    new: float
    old_j: float
    new_j: float
    marks: int
    quantity_j: float
    price_j: float
    is_repriced: bool


def cells(changes: Changes) -> list[list[_Cell]]:
    """What each match pays, word by word."""
    rows: list[list[_Cell]] = [[] for _ in changes.matches]
    if not changes.has_energy:
        return rows
    paid = np.nonzero(changes.paid)
    old, new = changes.old, changes.new
    is_repriced = (old.price != new.price) & (changes.old_side.price != changes.new_side.price)
    tables = old.number, new.number, old.joules, new.joules, changes.marks, changes.quantity_j, changes.price_j
    columns = (table[paid].tolist() for table in (*tables, is_repriced))
    for row, *values in zip(paid[0].tolist(), paid[1].tolist(), *columns, strict=True):
        rows[row].append(_Cell(*values))
    return rows


def all_parts(changes: Changes, spread: "Spread | None") -> list[Part]:
    """The parts of the change: by word over all matched kernels; by word for each kernel that came or went.

    Largest change first.
    """
    rows = cells(changes)
    statuses = changes.statuses.tolist()
    matched = [cell for row, status in zip(rows, statuses, strict=True) if status == MATCHED for cell in row]
    parts = parts_of(matched, changes, None, MATCHED)
    if spread is not None:
        parts = [replace(part, interval_j=spread.of_words([part.what], part.because, part.change_j)) for part in parts]
    for row, status in enumerate(statuses):
        if status == MATCHED:
            continue
        of_row = parts_of(rows[row], changes, changes.names(row)[-1], status)
        if spread is not None:
            of_row = [replace(part, interval_j=spread.of_one_side(row, part.what, part.change_j)) for part in of_row]
        parts += of_row
    return sorted(parts, key=lambda part: -abs(part.change_j))


def parts_of(cells: Iterable[_Cell], changes: Changes, kernel: str | None, kernels: str) -> list[Part]:
    """The parts of some kernels together: for each word one for counts or time, and one for prices if they differ.

    Largest change first. Sums are `math.fsum` of the cells: exact but for one rounding, so that turning OLD and NEW
    turns the sign alone.
    """
    by_column: defaultdict[int, list[_Cell]] = defaultdict(list)
    for cell in cells:
        by_column[cell.column].append(cell)
    of_price = price_because(changes)
    parts = []
    for column, paid in sorted(by_column.items()):
        word = WORDS[column]
        quantities_j, prices_j = [cell.quantity_j for cell in paid], [cell.price_j for cell in paid]
        marks = 0
        for cell in paid:
            marks |= cell.marks
        # Where the mix of kinds alone makes a mean price differ, that is a change of the counts.
        reasons = {COUNTED if word != CONSTANT else TIMED: math.fsum(quantities_j + prices_j)}
        if any(cell.is_repriced for cell in paid):
            reasons = dict.fromkeys(reasons, math.fsum(quantities_j)) | {of_price: math.fsum(prices_j)}
        for because, change_j in reasons.items():
            part = Part(
                what=word,
                kind=_FAMILIES[word],
                unit=_UNITS[word],
                old=math.fsum(cell.old for cell in paid),
                new=math.fsum(cell.new for cell in paid),
                old_j=math.fsum(cell.old_j for cell in paid),
                new_j=math.fsum(cell.new_j for cell in paid),
                marks=MARK_WORDS[marks],
                because=because,
                change_j=change_j,
                kernel=kernel,
                kernels=kernels,
            )
            parts.append(part)
    return sorted(parts, key=lambda part: -abs(part.change_j))


def price_because(changes: Changes) -> str:
    """What the part of a changed price is due to: another setting, another table, or the factor of a meter."""
    old, new = changes.old_side.costs, changes.new_side.costs
    if old is None or new is None or (old.name, old.source) != (new.name, new.source):
        return COST
    if old.setting != new.setting:
        return SETTING
    return METER if changes.old_side.factors or changes.new_side.factors else COST


def steps(parts: Iterable[Part], spread: "Spread | None") -> list[Step]:
    """The parts of the change added up by group and reason; kernels that came or went as steps of their own."""
    bundles: dict[tuple[str | None, str | None, str], list[Part]] = {}
    for part in parts:
        key: tuple[str | None, str | None, str] = (None, None, part.kernels)
        if part.kernels == MATCHED:
            key = (_GROUPS[part.what], part.because, MATCHED)
        bundles.setdefault(key, []).append(part)
    bundled = []
    for (group, because, kernels), members in bundles.items():
        words = list(dict.fromkeys(part.what for part in members))
        change_j = math.fsum(part.change_j for part in members)
        interval_j = None
        if spread is not None and because is not None:
            interval_j = spread.of_words(words, because, change_j)
        elif spread is not None:
            interval_j = spread.of_rows(spread.rows_of(kernels), change_j)
        step = Step(
            group=group,
            because=because,
            kernels=kernels,
            words=words,
            names=len({part.kernel for part in members}),
            old=math.fsum(part.old for part in members),
            new=math.fsum(part.new for part in members),
            change_j=change_j,
            marks=[mark for mark in MARK_WORDS[15] if any(mark in part.marks for part in members)],
            interval_j=interval_j,
        )
        bundled.append(step)
    return sorted(bundled, key=lambda step: -abs(step.change_j))


# ------------------------------------------------------------------------------------------------- how far it is known


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
    if (old_table.name, old_table.source) == (new_table.name, new_table.source):
        is_one_setting = np.array_equal(before.prices, after.prices)
        return Refits(before, before if is_one_setting else after, True)
    # Pairs of every replica of OLD with every one of NEW; of many, a part drawn at random, the same each time.
    pairs = np.arange(before.number * after.number)
    if len(pairs) > _MOST_PAIRS:
        pairs = np.random.default_rng(_SEED).choice(len(pairs), _MOST_PAIRS, replace=False)
    of_old, of_new = np.divmod(pairs, after.number)
    share = max(before.share, after.share)
    return Refits(
        replace(before, prices=before.prices[:, of_old], share=share),
        replace(after, prices=after.prices[:, of_new], share=share),
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
        return np.flatnonzero(self.changes.statuses == status)

    @cached_property
    def _by_word(self) -> tuple[Floats, Floats]:
        """The change of each word over all matched kernels by replica, (n_priced, n_replicas); what prices make of it.

        The second is split as `changes.changes` does it.
        """
        old, new = (amounts[self._matched].sum(axis=0)[:, None] for amounts in self.amounts)
        of_prices = (self.refits.new.prices - self.refits.old.prices) * ((old + new) / 2)
        if self.refits.old is self.refits.new:
            return (new - old) * self.refits.new.prices, of_prices
        return new * self.refits.new.prices - old * self.refits.old.prices, of_prices

    def of_words(self, words: Sequence[str], because: str, change_j: float) -> Range | None:
        """The interval of the change of some words over all matched kernels, by prices or by all else."""
        columns = [WORDS.index(word) for word in words]
        if self.is_open[self._matched][:, columns].any():
            return None
        whole, of_prices = self._by_word
        joules = of_prices[columns]
        if because not in PRICES:
            old, new = self.changes.old_side.price[columns], self.changes.new_side.price[columns]
            prices_differ = ~np.isnan(old) & ~np.isnan(new) & (old != new)
            joules = whole[columns] - joules * prices_differ[:, None]
        return self._interval(joules.sum(axis=0), change_j)

    def of_rows(self, rows: Ints, change_j: float) -> Range | None:
        """The interval of the change of some kernels together."""
        if self.is_open[rows].any():
            return None
        old, new = (amounts[rows].sum(axis=0) for amounts in self.amounts)
        return self._interval(self.refits.change(old, new), change_j)

    def _interval(self, joules: Floats, value_j: float) -> Range:
        """The interval of a change by replica, (n_replicas,)."""
        ends: Range = self.refits.old.interval(joules, value_j).tolist()
        return ends

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

    def of_one_side(self, row: int, word: str, change_j: float) -> Range | None:
        """The interval of a word of a kernel that only one side has: its count times the interval of the price."""
        column = WORDS.index(word)
        if self.is_open[row, column]:
            return None
        old, new = (float(amounts[row, column]) for amounts in self.amounts)
        low_old, high_old = self.refits.old.price_intervals[column].tolist()
        low_new, high_new = self.refits.new.price_intervals[column].tolist()
        return [min(new * low_new - old * high_old, change_j), max(new * high_new - old * low_old, change_j)]

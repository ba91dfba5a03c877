"""The parts of a change, which add up to it, by word and by group as steps; and how far each is known.

Intervals price both sides by the same replicas of their prices. One table's prices are wrong alike on both sides, so
that the change is far surer than either energy. Two tables are taken to be wrong independently of each other. The error
of the model is in the energies of both sides, not in the change.
"""

import math
from collections.abc import Iterable, Sequence
from functools import cached_property, reduce
from operator import or_

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, finite, known_or_zero
from eprof.base.text import ShortRepr
from eprof.base.vocabulary import CONSTANT, COUNTS, MISSING, mark_names
from eprof.commands.diff.changes import MATCHED, Changes
from eprof.commands.diff.schema import Intervals, Part, Range, Step
from eprof.commands.diff.sides import IS_TIME, TIME, WORDS, Side
from eprof.energy.attribution import FAMILIES
from eprof.energy.replicas import Replicas, independent, middle, places

COUNTED, TIMED, CPU_TIMED, COST, SETTING, METER = "counts", "time", "cpu_time", "cost", "setting", "meter"
PROCESSOR = "processor"  # each side's own, at its own prices
PRICES = (COST, SETTING, METER)
# The words of every combination of marks: thousands of kernels use them.
MARK_WORDS = {bits: mark_names(bits) for bits in range(16)}
FAMILY_OF = {word: count.family for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}
UNITS = {word: count.unit for word, count in COUNTS.items()} | {CONSTANT: "s"}
# What a part of the change is of: a group, or one of the other instructions.
_OTHERS = {word: count.name for word, count in COUNTS.items() if count.group == "other"}
GROUP_OF = {word: count.group for word, count in COUNTS.items()} | _OTHERS | {CONSTANT: CONSTANT}
_MOST_PAIRS = 1000
_SEED = 20261122
_ROUNDING = 1e-9


def all_parts(changes: Changes, spread: "Spread") -> list[Part]:
    """The parts of the change, largest first: by word, of all matched kernels and of each that came or went."""
    parts = [
        replace(part, interval_j=spread.of_words([part.what], part.because, part.change_j))
        for part in parts_of(changes, spread.rows_of(MATCHED).tolist(), None, MATCHED)
    ]
    for row in np.flatnonzero(changes.apart != MATCHED).tolist():
        parts += [
            replace(part, interval_j=spread.of_rows([row], part.change_j, part.what))
            for part in parts_of(changes, [row], changes.names(row)[-1], str(changes.apart[row]))
        ]
    return sorted(parts, key=lambda part: -abs(part.change_j))


def parts_of(changes: Changes, rows: Sequence[int], kernel: str | None, kernels: str) -> list[Part]:
    """The parts of the change of the matches `rows`: for each word one by counts or time, one by prices if they differ.

    Largest change first. Sums are `math.fsum` of the cells: exact but for one rounding, so that turning OLD and NEW
    turns the sign alone.
    """
    cells = changes.cells
    parts = []
    for column, word in enumerate(WORDS):
        paid = [row for row in rows if cells["paid"][row][column]]
        if not paid:
            continue
        of_word = {name: [table[row][column] for row in paid] for name, table in cells.items()}
        # Where the mix of kinds alone makes a mean price differ, that is a change of the counts.
        reasons = {because_of(changes, word): math.fsum(of_word["quantity_j"] + of_word["price_j"])}
        if any(of_word["is_repriced"]):
            reasons = dict.fromkeys(reasons, math.fsum(of_word["quantity_j"]))
            reasons[price_because(changes)] = math.fsum(of_word["price_j"])
        sums = {name: math.fsum(of_word[name]) for name in ("old", "new", "old_j", "new_j")}
        part = Part(
            what=word,
            kind=FAMILY_OF[word],
            unit=UNITS[word],
            old=finite(sums["old"]),
            new=finite(sums["new"]),
            old_j=sums["old_j"],
            new_j=sums["new_j"],
            marks=MARK_WORDS[reduce(or_, of_word["marks"])],
            because="",
            change_j=0.0,
            kernel=kernel,
            kernels=kernels,
        )
        parts += [replace(part, because=because, change_j=change_j) for because, change_j in reasons.items()]
    return sorted(parts, key=lambda part: -abs(part.change_j))


def because_of(changes: Changes, word: str) -> str:
    """Why the energy of a word changed, but for prices: "counts", "time", "cpu_time" (cores in use) or "processor"."""
    if changes.is_of_two_processors:
        return PROCESSOR
    if word != CONSTANT:
        return COUNTED
    return TIMED if changes.core_w is None else CPU_TIMED


def price_because(changes: Changes) -> str:
    """Why prices changed: "cost" (another table), "setting" (other clocks) or "meter" (another factor)."""
    old, new = changes.old_side.tables, changes.new_side.tables
    if {(costs.name, costs.source) for costs in old} != {(costs.name, costs.source) for costs in new}:
        return COST
    if {costs.setting.label for costs in old} != {costs.setting.label for costs in new}:
        return SETTING
    return METER if changes.old_side.factors or changes.new_side.factors else COST


def steps(parts: Iterable[Part], spread: "Spread") -> list[Step]:
    """The parts of the change added up by group and reason; kernels that came or went as steps of their own."""
    bundles: dict[tuple[str | None, str | None, str], list[Part]] = {}
    for part in parts:
        key: tuple[str | None, str | None, str] = (None, None, part.kernels)
        if part.kernels == MATCHED:
            # Tables of two processors price other words.
            group_of = FAMILY_OF if part.because == PROCESSOR else GROUP_OF
            key = (group_of[part.what], part.because, MATCHED)
        bundles.setdefault(key, []).append(part)
    bundled = []
    for (group, because, kernels), members in bundles.items():
        words = list(dict.fromkeys(part.what for part in members))
        change_j = math.fsum(part.change_j for part in members)
        interval_j = spread.of_rows(spread.rows_of(kernels), change_j)
        if because is not None:
            interval_j = spread.of_words(words, because, change_j)
        names = len({part.kernel for part in members})
        marks = [mark for mark in MARK_WORDS[15] if any(mark in part.marks for part in members)]
        bundled.append(Step(group, because, kernels, words, names, change_j, marks, interval_j))
    return sorted(bundled, key=lambda step: -abs(step.change_j))


class Refits(Struct, frozen=True, eq=False):
    """Both sides' prices by the same replicas. is_paired: both have one table for one GPU, hence the same errors."""

    old: Replicas
    new: Replicas
    is_paired: bool

    @property
    def document(self) -> Intervals:
        """How the intervals of the difference are made, for its document."""
        within = self.old.within, self.new.within
        is_measured = min(within) > 1  # of both
        return Intervals(self.old.share, self.old.number, self.is_paired, max(within) if is_measured else None)

    def change(self, before: Floats, after: Floats) -> Floats:
        """Joules of NEW less those of OLD by each replica: (..., n_priced) counts and seconds -> (..., n_replicas)."""
        if self.old is self.new:
            return self.new.joules(after - before)
        return self.new.joules(after) - self.old.joules(before)


def spread_of(changes: Changes) -> "Spread":
    """The intervals of a change by replicas of both sides' prices; without replicas, each interval is None."""
    old, new = changes.old_side, changes.new_side
    before, after = old.replicas, new.replicas
    if not changes.has_energy or before is None or after is None:
        return Spread(changes, None)
    old_table, new_table = old.first.table, new.first.table
    assert old_table is not None and new_table is not None
    of_tables = ((table.name, table.source, table.device) for table in (old_table, new_table))
    if len(set(of_tables)) == 1:
        is_one_setting = np.array_equal(before.prices, after.prices)
        return Spread(changes, Refits(before, before if is_one_setting else after, True))
    # Pairs of every replica of OLD with every one of NEW; of many, a part drawn at random, the same each time.
    pairs = np.arange(before.number * after.number)
    if len(pairs) > _MOST_PAIRS:
        pairs = np.random.default_rng(_SEED).choice(len(pairs), _MOST_PAIRS, replace=False)
    of_old, of_new = np.divmod(pairs, after.number)
    share = max(before.share, after.share)
    before = replace(before, prices=before.prices[:, of_old], share=share)
    return Spread(changes, Refits(before, replace(after, prices=after.prices[:, of_new], share=share), False))


def energy_intervals(side: Side) -> dict[str, Range | None] | None:
    """Family, or "total" -> [low, high] in J of OLD's, or NEW's, energy; None: a lower bound. All None: no replicas."""
    replicas = side.replicas
    if replicas is None:
        return None
    # Counts as they are paid for: where a board's limit binds, a kernel pays a part of the prices.
    paid = side.mean.number * np.where(side.price > 0, side.mean.price / np.where(side.price > 0, side.price, 1.0), 1.0)
    amounts = known_or_zero(paid).sum(axis=0)
    families = {family: places(words) for family, words in FAMILIES.items()}
    families["total"] = list(range(len(amounts)))
    ends: dict[str, Range | None] = dict.fromkeys(families)
    for family, columns in families.items():
        if (side.mean.marks[:, columns] & MISSING).any():
            continue
        chosen = np.zeros_like(amounts)
        chosen[columns] = amounts[columns]
        parts_j = known_or_zero(side.mean.joules[:, columns]).sum(axis=1)
        spread_j = 0.0 if columns == [TIME] else independent(parts_j)
        ends[family] = replicas.interval(replicas.joules(chosen), float(parts_j.sum()), spread_j).tolist()
    return ends


class Spread(ShortRepr, Struct, frozen=True, eq=False, dict=True):
    """The intervals of a change, from its joules by each replica. refits: None where the prices' errors are unknown.

    What is compared as a lower bound, or was added up of several prices, has no interval.
    """

    changes: Changes
    refits: Refits | None

    @cached_property
    def amounts(self) -> tuple[Floats, Floats]:
        """The compared counts and seconds of OLD and NEW, (n_matches, n_priced).

        Where a program pays for cores in use, seconds are scaled to as many cores as the first repeat kept in use,
        whose prices the replicas are.
        """
        compared = []
        for side, grid in self.changes.sides:
            number = grid.number
            if side.core_w is not None and side.costs is not None:
                number = np.where(IS_TIME, grid.joules / side.costs.constant_power_w, number)
            compared.append(known_or_zero(np.where(self.changes.paid, number, 0.0)))
        old, new = compared
        return old, new

    @cached_property
    def is_open(self) -> Bools:
        """True for cells that no interval can be made of: lower bounds, and energies that are not count times price."""
        is_open = (self.changes.marks & MISSING) != 0
        for side, grid in self.changes.sides:
            # Where kinds of several prices were added up, the energy is not count times price.
            expected_j = grid.number * known_or_zero(side.price)
            is_product = IS_TIME & (side.core_w is not None)
            is_open |= ~is_product & (np.abs(grid.joules - expected_j) > _ROUNDING * np.abs(grid.joules))
        return np.asarray(self.changes.paid & is_open)

    def rows_of(self, status: str) -> Ints:
        """The rows of the matches whose `Changes.apart` is `status`."""
        return np.flatnonzero(self.changes.apart == status)

    def of_words(self, words: Sequence[str], because: str, change_j: float) -> Range | None:
        """[low, high], J, of some words' change over all matched kernels: by prices if `because` is one, else the rest.

        Split in two as `changes.split` does it. None: not known.
        """
        refits, columns, rows = self.refits, [WORDS.index(word) for word in words], self.rows_of(MATCHED)
        if refits is None or self.is_open[rows][:, columns].any():
            return None
        old, new = (amounts[rows].sum(axis=0)[columns, None] for amounts in self.amounts)
        before, after = refits.old.prices[columns], refits.new.prices[columns]
        joules = (after - before) * ((old + new) / 2)
        if because not in PRICES:
            prices = [side.price[columns] for side, _ in self.changes.sides]
            prices_differ = ~np.isnan(prices).any(axis=0) & self.changes.has_other_price[columns]
            whole = (new - old) * after if refits.old is refits.new else new * after - old * before
            joules = whole - joules * prices_differ[:, None]
        ends: Range = refits.old.interval(joules.sum(axis=0), change_j).tolist()
        return ends

    def of_rows(self, rows: Ints | list[int], change_j: float, word: str = "") -> Range | None:
        """[low, high], J, of the change of the matches `rows` together, of all words or of one; None: not known."""
        chosen = np.array([word in ("", each) for each in WORDS])
        if self.refits is None or self.is_open[rows][:, chosen].any():
            return None
        old, new = (amounts[rows].sum(axis=0) * chosen for amounts in self.amounts)
        ends: Range = self.refits.old.interval(self.refits.change(old, new), change_j).tolist()
        return ends

    def of_share(self, change_share: float | None, still_s: Sequence[float] = (0.0, 0.0)) -> Range | None:
        """[low, high] of the change as a share of OLD's compared energy; each replica makes both. None: not known.

        still_s: seconds of OLD and of NEW without kernels that are added to both.
        """
        if self.refits is None or change_share is None or self.is_open.any():
            return None
        old, new = (amounts.sum(axis=0) + IS_TIME * gap_s for amounts, gap_s in zip(self.amounts, still_s, strict=True))
        old_j = self.refits.old.joules(old)
        if (old_j <= 0).any():
            return None
        ends: Range = middle(self.refits.change(old, new) / old_j, change_share, self.refits.old.share).tolist()
        return ends

    def of_kernels(self, change_j: Sequence[float]) -> list[Range | None]:
        """The interval, J, of the change of each match; None: not known. change_j: (n_matches,)."""
        ends: list[Range | None] = [None] * len(change_j)
        if self.refits is not None:
            ends = self.refits.old.interval(self.refits.change(*self.amounts), np.array(change_j)).tolist()
            for row in np.flatnonzero(self.is_open.any(axis=1)).tolist():
                ends[row] = None
        return ends

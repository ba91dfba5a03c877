"""`attribute`: each kernel's energy (`Split`), counts times costs and constant power times time, within power `Limits`.

Times and clocks are measured, so that prices give way: all but the constant energy of a kernel above its power limit is
lowered by one factor; so is that of all kernels of a device which together draw more than it may. Reports, intervals,
scaling to a meter, what-if questions and `eprof tune` apply limits by the functions here.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, Ints, known_or_zero, known_sum, numbers_of
from eprof.base.errors import CostError
from eprof.base.text import ShortRepr
from eprof.base.vocabulary import (
    COMPUTATION,
    COMPUTATION_WORDS,
    CONSTANT,
    DATA,
    DATA_WORDS,
    ESTIMATED,
    MISSING,
    PRICED,
    RANDOM,
    Mark,
)
from eprof.costs import Charge, Costs, CostTable
from eprof.counts.counts import Counts
from eprof.logs.log import KernelRows

if TYPE_CHECKING:
    import pandas as pd

# The words that make up each family of energies.
FAMILIES: Mapping[str, tuple[str, ...]] = {COMPUTATION: COMPUTATION_WORDS, DATA: DATA_WORDS, CONSTANT: (CONSTANT,)}


class Split(ShortRepr, Struct, frozen=True, eq=False, dict=True):
    """Energy in joules: a row a kernel, a column a priced count, and `constant`; NaN = not known.

    joule_marks: the marks of each, same shape. over_j: joules that prices make of a kernel beyond its power limit
    (`Limits`), (n_kernels,); no column has these. `table` and `marks` are tables of pandas for users.
    """

    joules: Columns
    joule_marks: Columns
    over_j: Floats

    @cached_property
    def table(self) -> "pd.DataFrame":
        """The joules as a table of pandas."""
        return self.joules.frame()

    @cached_property
    def marks(self) -> "pd.DataFrame":
        """The marks of the joules as a table of pandas."""
        return self.joule_marks.frame()

    def chosen(self, rows: Ints) -> "Split":
        """The split of the kernels at the places `rows` alone."""
        return Split(self.joules.chosen(rows), self.joule_marks.chosen(rows), self.over_j[rows])

    @staticmethod
    def below(splits: Sequence["Split"]) -> "Split":
        """Stack the kernels of several devices, each with its own prices; NaN in columns that one lacks."""
        if len(splits) == 1:
            return splits[0]
        names = [name for name in PRICED if any(name in split.joules for split in splits)]
        joules = np.concatenate([split.joules.columns_or(names) for split in splits])
        marks = np.concatenate([split.joule_marks.columns_or(names, 0) for split in splits])
        over_j = np.concatenate([split.over_j for split in splits])
        return Split(Columns(tuple(names), joules), Columns(tuple(names), marks), over_j)

    def adding_up_to(self, total_j: Floats) -> "Split":
        """Scale each kernel's parts so that they add up to `total_j`, (n_kernels,); all are marked ESTIMATED."""
        joules = self.joules.values * (total_j / self.total_j)[:, np.newaxis]
        marks = self.joule_marks.values | ESTIMATED
        return Split(Columns(self.joules.names, joules), Columns(self.joule_marks.names, marks), self.over_j)

    @cached_property
    def computation_j(self) -> Floats:
        """Joules of instructions for each kernel; NaN where none is known."""
        return self._sum(COMPUTATION_WORDS)

    @cached_property
    def data_j(self) -> Floats:
        """Joules of bytes for each kernel; NaN where none is known."""
        return self._sum(DATA_WORDS)

    @property
    def work_j(self) -> Floats:
        """The known joules of everything but constant energy, (n_kernels,); NaN where none is known."""
        return known_sum(self.joules.only([name for name in self.joules.names if name != CONSTANT]))

    @property
    def held(self) -> Floats:
        """The factor by which power limits cut all but constant energy, (n_kernels,), at most 1; 1 where none binds."""
        work_j = known_or_zero(self.work_j)
        return np.where(self.over_j > 0, work_j / np.where(self.over_j > 0, work_j + self.over_j, 1.0), 1.0)

    @property
    def held_together(self) -> float:
        """The factor, at most 1, by which power limits cut all but constant energy of all kernels together."""
        over_j, work_j = float(self.over_j.sum()), float(known_or_zero(self.work_j).sum())
        return work_j / (work_j + over_j) if over_j else 1.0

    @property
    def constant_j(self) -> Floats:
        """Constant power times time for each kernel; NaN where the time is not known."""
        return self.joules[CONSTANT]

    @cached_property
    def total_j(self) -> Floats:
        """Joules of all parts that are known, for each kernel: a lower bound where its row is marked MISSING.

        NaN where computation, data and constant energy are all unknown: that some classes take 0 J is no total.
        """
        parts = np.stack([self.computation_j, self.data_j, self.constant_j])
        return np.where(np.isnan(parts).all(axis=0), np.nan, known_sum(self.joules.values))

    def _sum(self, names: tuple[str, ...]) -> Floats:
        """The sum of the known joules in these columns, (n_kernels,); NaN where that is 0 and some are MISSING."""
        known = known_sum(self.joules.only(names))
        lost = (np.bitwise_or.reduce(self.joule_marks.only(names), axis=1) & MISSING) != 0
        return np.where((known != 0) | ~lost, known, np.nan)

    @cached_property
    def row_marks(self) -> Ints:
        """The marks of each kernel: all those of its cells, joined."""
        return np.asarray(np.bitwise_or.reduce(self.joule_marks.values, axis=1))

    @cached_property
    def family_marks(self) -> Columns:
        """The marks of each kernel's computation, data and constant energy, and of their total: int, (n_kernels, 4)."""
        marks = {name: np.bitwise_or.reduce(self.joule_marks.only(words), axis=1) for name, words in FAMILIES.items()}
        total = np.bitwise_or.reduce(list(marks.values()))
        return Columns.of({**marks, "total": total}, len(self.joules))


def attribute(counts: Counts, costs: Costs) -> Split:
    """Split each kernel's energy among its instructions, its bytes and constant power.

    E = sum_k n_k eps_k + sum_l b_l eps_l + pi0 T        ([FMM] section II; docs/model.md)
    counts: (n_kernels, n_classes), instructions or bytes; time in s. costs: pJ per instruction or byte, W.
    Returns joules, a column for each class that the costs charge or that was counted without a price, and `constant`.
    A class that pays but was not counted, or was counted (not zero) but has no price, is NaN and marked MISSING: the
    row's sum is then a lower bound of E. A class that the table says pays nothing is 0 where it was counted.
    Raises CostError if the counts keep other books than the costs are for.
    """
    if counts.books != costs.books:
        raise CostError(f"{costs.name} prices bytes as {costs.books}, but these are counted as {counts.books}.")
    rows = counts.rows
    marks = rows.time_marks | int(costs.constant_marks) | np.isnan(rows.time_s) * np.int64(Mark.MISSING)
    return _split(counts, costs.charges, rows.time_s * costs.constant_power_w, marks)


def unpriced(counts: Counts) -> Split:
    """The split of counts without any prices: NaN and MISSING but for counts of 0, which take 0 J."""
    rows = len(counts.rows)
    return _split(counts, {}, np.full(rows, np.nan), np.full(rows, MISSING))


def _split(counts: Counts, charges: Mapping[str, Charge], constant_j: Floats, constant_marks: Ints) -> Split:
    """The split of counts by charges, and constant energy as given; a class without charge and count has no column."""
    joules: dict[str, Floats] = {}
    marks: dict[str, Ints] = {}
    for word in counts.amounts.names:
        number, number_marks = counts.amounts[word], counts.amount_marks[word]
        is_told = ~np.isnan(number)
        if word == RANDOM:
            # A surcharge: where nobody tells accesses apart, their bytes pay as those that stream.
            number, number_marks = np.where(is_told, number, 0.0), np.where(is_told, number_marks, 0)
        if is_told.any() or (word in charges and word != RANDOM):
            joules[word], marks[word] = _priced(number, number_marks, charges.get(word))
    joules[CONSTANT], marks[CONSTANT] = constant_j, constant_marks
    rows = len(counts.rows)
    return Split(Columns.of(joules, rows), Columns.of(marks, rows), np.zeros(rows))


def _priced(number: Floats, counted: Ints, charge: Charge | None) -> tuple[Floats, Ints]:
    """The joules of a class of counts, (n_kernels,), and their marks; the charge's own only where a kernel pays.

    charge: None: no price, so that what was counted is NaN and MISSING; a count of 0 is 0 J.
    """
    some = ~np.isnan(number) & (number != 0)
    if charge is None:
        return np.where(number == 0, number, np.nan), some * np.int64(Mark.MISSING)
    if not charge.pays:
        return number * 0.0, np.zeros_like(counted)
    return number * (charge.pj * 1e-12), counted | some * np.int64(charge.marks)


_ACTS_IN_S = 0.01  # a power limit acts on launches of this length
# Times its limit that a board may draw for 100 us (PCI Express CEM 5.0; Intel, ATX 3.0 design guide).
_FOR_A_MOMENT = 3.0
_ROUNDING = 1e-9
_SCALED = 1e-7  # by how much a factor to a meter may be off where idle time takes next to nothing


def joules_by_price(table: CostTable, split: "pd.DataFrame") -> "pd.DataFrame":
    """Deal out each count's joules (a `Split.table`) to the prices in its charge: a column a price, and `constant`.

    A charge's formula is linear in prices, so a price's part is the formula with all others at 0. NaN counts as 0 J.
    """
    prices = {name: price.pj for name, price in table.at().prices.items()}
    joules = {name: np.zeros(len(split)) for name in prices}
    for word in split.columns:
        statement = table.statements.get(str(word))
        if statement is None or statement.formula is None:
            continue
        whole = float(statement.formula(prices))
        if whole <= 0:
            continue
        spent = split[word].fillna(0.0).to_numpy(dtype=float)
        for name in statement.formula.names:
            alone = {**dict.fromkeys(prices, 0.0), name: prices[name]}
            joules[name] += spent * (float(statement.formula(alone)) / whole)
    constant_j = split[CONSTANT].fillna(0.0).to_numpy(dtype=float)
    return Columns((*joules, CONSTANT), np.column_stack([*joules.values(), constant_j])).frame()


class Limits(Struct, frozen=True, eq=False):
    """Power limits of the boards that some kernels ran on, in W (infinite: not known), and the times they hold for.

    time_s: of each kernel, (n_kernels,), NaN where not known in full. kernel_w: what its board may draw in launches as
    short as its own. device: the number of its device; is_in: whether `device_s` has its time.
    device_w, device_s: (n_devices,), what each device may draw for long, and how long its kernels took.
    """

    time_s: Floats
    kernel_w: Floats
    device: Ints
    is_in: Bools
    device_w: Floats
    device_s: Floats

    @property
    def kernel_j(self) -> Floats:
        """The most J that each kernel can take below its power limit and its device's, (n_kernels,); NaN: not known."""
        return np.where(self.is_in, np.fmin(self.kernel_w * self.time_s, self._device_j[self.device]), np.nan)

    @property
    def total_j(self) -> float:
        """The most joules that all kernels together can take below their devices' limits; NaN if a time is unknown."""
        return float(self._device_j.sum()) if self.is_in.all() else np.nan

    @property
    def _device_j(self) -> Floats:
        return np.where(self.device_s > 0, self.device_w * np.where(self.device_s > 0, self.device_s, 1.0), np.inf)

    def factors(self, work_j: Floats, constant_w: Floats | float) -> Floats:
        """The factor, at most 1, on all but constant energy that keeps each kernel, and each device, below its limit.

        work_j: that energy by the prices, (n_kernels, ...), as are the factors. constant_w: constant power, (...,).
        """
        work_j = known_or_zero(work_j)
        along = (-1, *(1,) * (work_j.ndim - 1))
        most_j = (self.kernel_w.reshape(along) - constant_w) * self.time_s.reshape(along)
        factors = _share(most_j, work_j)
        for number, (watts, seconds) in enumerate(zip(self.device_w, self.device_s, strict=True)):
            if not seconds > 0:
                continue
            own = self.is_in & (self.device == number)
            factors[own] *= _share((watts - constant_w) * seconds, (factors[own] * work_j[own]).sum(axis=0))
        return factors

    def slowed_s(self, work_j: Floats, constant_w: float, time_s: Floats) -> Floats:
        """The modelled times `time_s`, (n_kernels,), made long enough for this work below the limits; NaN stays."""
        work_j = known_or_zero(work_j)

        def needed(watts: Floats, joules: Floats, seconds: Floats) -> Floats:
            most_w = np.maximum(watts - constant_w, 0.0)
            with np.errstate(invalid="ignore"):
                is_short = (seconds > 0) & (joules > most_w * seconds * (1 + _ROUNDING))
            return np.where(is_short & (most_w > 0), joules / np.where(most_w > 0, most_w, 1.0), seconds)

        slowed_s = needed(self.kernel_w, work_j, time_s)
        for number, watts in enumerate(self.device_w):
            own = self.is_in & (self.device == number) & (time_s > 0)
            whole_s = slowed_s[own].sum()
            slowed_s[own] *= needed(watts, work_j[own].sum(), whole_s) / (whole_s or 1.0)
        return slowed_s

    def with_one_more(self, is_in: Bools) -> "Limits":
        """One device's limits with an entry more, for all kernels whose time is known only as a sum. is_in: with it."""
        kernel_w, device = np.append(self.kernel_w, np.inf), np.append(self.device, 0)
        return replace(self, kernel_w=kernel_w, device=device, is_in=is_in)


def limits(rows: KernelRows, board_w: Floats, total_s: float | None = None, at_once: Floats | float = 1.0) -> Limits:
    """The limits of kernels whose boards may draw `board_w`, (n_kernels,), for long.

    total_s: the time of all of them, where it is known of them together only. at_once: how many ran at a
    time on the device of each, on average.
    """
    is_whole = rows.is_timed
    time_s = np.where(is_whole & (rows.time_s > 0), rows.time_s, np.nan)
    device = numbers_of(rows.device)
    number = int(device.max(initial=-1)) + 1
    device_w, device_s = np.full(number, np.inf), np.zeros(number)
    np.minimum.at(device_w, device, board_w)
    np.add.at(device_s, device, known_or_zero(time_s) / at_once)
    if total_s is not None:
        is_whole, device_s = np.ones_like(is_whole), np.array([total_s])
    return Limits(time_s, board_w * times_limit(rows), device, is_whole, device_w, device_s)


def times_limit(rows: KernelRows) -> Floats:
    """How many times its limit a board may draw in launches as short as each kernel's mean one, (n_kernels,)."""
    return np.where(rows.time_s / rows.launches >= _ACTS_IN_S, 1.0, _FOR_A_MOMENT)


def within_limits(counts: Counts, costs: Costs, limits: Limits) -> tuple[Split, Costs]:
    """(split, costs): the split that `attribute` makes, lowered to the power limits and ESTIMATED there.

    The costs are as given, but constant power above a limit is another board's: it becomes the share of the limit that
    constant energy has of all energy, ESTIMATED, with a note.
    """
    split, limit_w = attribute(counts, costs), float(limits.device_w.min(initial=np.inf))
    if costs.constant_power_w > limit_w * (1 + _SCALED):
        constant_j, work_j = (float(known_or_zero(joules).sum()) for joules in (split.constant_j, split.work_j))
        watts = limit_w * constant_j / (constant_j + work_j or 1.0)
        what = f"Constant power of {costs.constant_power_w:.4g} W is more than the {limit_w:.4g} W"
        notes = (*costs.notes, f"{what} that the board may draw: the costs are of another board.")
        marks = costs.constant_marks | Mark.ESTIMATED
        held = watts / costs.constant_power_w
        costs = replace(costs, constant_power_w=watts, constant_marks=marks, notes=notes, constant_held=held)
        split = attribute(counts, costs)
    factors = limits.factors(split.work_j, costs.constant_power_w)
    if (factors != 1).any():
        split = given_way(split, factors)
    return split, costs


def given_way(split: Split, factors: Floats) -> Split:
    """The split with all but constant energy times `factors`, (n_kernels,), at most 1; `over_j` gets the difference."""
    gives = np.where(factors < 1, ESTIMATED, 0)
    is_work = np.array([name != CONSTANT for name in split.joules.names])
    joules = split.joules.values * np.where(is_work, factors[:, np.newaxis], 1.0)
    marks = split.joule_marks.values | is_work * gives[:, np.newaxis]
    names = split.joules.names
    over_j = split.over_j + known_or_zero(split.work_j) * (1 - factors)
    return replace(split, joules=Columns(names, joules), joule_marks=Columns(names, marks), over_j=over_j)


def _share(most_j: Floats, work_j: Floats) -> Floats:
    """The factor, at most 1, that brings `work_j` below `most_j`; 1 where one of them is not known."""
    is_over = work_j > np.maximum(most_j, 0.0) * (1 + _ROUNDING)
    return np.where(is_over, np.maximum(most_j, 0.0) / np.where(is_over, work_j, 1.0), 1.0)

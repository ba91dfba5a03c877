"""Attribution: counts times costs, plus constant power times time."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Columns, Floats, Ints, known_or_zero, known_sum
from eprof.base.brief import Brief
from eprof.base.errors import CostError
from eprof.base.marks import ESTIMATED, MISSING, Mark
from eprof.base.vocabulary import COMPUTATION, COMPUTATION_WORDS, CONSTANT, DATA, DATA_WORDS, PRICED, RANDOM
from eprof.costs import Charge, Costs
from eprof.counts.counts import Counts

if TYPE_CHECKING:
    import pandas as pd

# The words that make up each family of energies.
FAMILIES: Mapping[str, tuple[str, ...]] = {COMPUTATION: COMPUTATION_WORDS, DATA: DATA_WORDS, CONSTANT: (CONSTANT,)}


class Split(Brief, Struct, frozen=True, eq=False, dict=True):
    """Energy in joules: a row a kernel, a column a priced count, and `constant`; NaN = not known.

    joule_marks: same shape. over_j: what the prices made beyond what the boards may draw, (n_kernels,), which is in no
    column (`energy/limits.py`). `table` and `marks` are the same as tables of pandas.
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
        """Stack the splits of several devices, each with its own prices; NaN where a device has no such word."""
        if len(splits) == 1:
            return splits[0]
        names = [name for name in PRICED if any(name in split.joules for split in splits)]
        joules = np.concatenate([split.joules.spread(names) for split in splits])
        marks = np.concatenate([split.joule_marks.spread(names, 0) for split in splits])
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
        """The factor `held` for the energy of all kernels together."""
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
        """Known J of these words for each kernel; NaN where nothing is known, or only that some take 0 J."""
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
    """The energy of a class in J and its marks; the charge's own marks only where there is something to pay.

    Where something was counted that the table has no price for it is NaN and MISSING; a zero needs no price.
    """
    some = ~np.isnan(number) & (number != 0)
    if charge is None:
        return np.where(number == 0, number, np.nan), some * np.int64(Mark.MISSING)
    if not charge.pays:
        return number * 0.0, np.zeros_like(counted)
    return number * (charge.pj * 1e-12), counted | some * np.int64(charge.marks)

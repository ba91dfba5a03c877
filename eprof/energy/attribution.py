"""Attribution: counts times costs, plus constant power times time."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from eprof.base.arrays import Floats, Ints, columns_of, framed, known_sum, marks_of
from eprof.base.errors import CostError
from eprof.base.marks import Mark
from eprof.base.vocabulary import BYTES, CONSTANT, INSTRUCTIONS
from eprof.costs import Charge, Costs
from eprof.counting.counts import Counts


@dataclass(frozen=True, eq=False)
class Split:
    """Energy in joules: a row a kernel, a column a priced count, and `constant`; NaN = not known. marks: same shape."""

    table: pd.DataFrame
    marks: pd.DataFrame

    @property
    def computation_j(self) -> pd.Series:
        """Joules of instructions for each kernel; NaN where none is known."""
        return self._sum(INSTRUCTIONS)

    @property
    def data_j(self) -> pd.Series:
        """Joules of bytes for each kernel; NaN where none is known."""
        return self._sum(BYTES)

    @property
    def constant_j(self) -> pd.Series:
        """Constant power times time for each kernel; NaN where the time is not known."""
        return self.table[CONSTANT]

    @property
    def total_j(self) -> pd.Series:
        """Everything that is known, for each kernel: a lower bound where the row is marked MISSING.

        NaN where computation, data and constant energy are all unknown: that some classes take 0 J is no total.
        """
        parts = (self.computation_j, self.data_j, self.constant_j)
        known = np.logical_or.reduce([part.notna().to_numpy() for part in parts])
        return pd.Series(
            np.where(known, known_sum(self.table.to_numpy(dtype=np.float64)), np.nan), index=self.table.index
        )

    def _sum(self, names: tuple[str, ...]) -> pd.Series:
        """What is known of some classes; NaN where nothing is, or where all that is known is that some take 0 J."""
        known = known_sum(columns_of(self.table, names))
        lost = (np.bitwise_or.reduce(marks_of(self.marks, names), axis=1) & int(Mark.MISSING)) != 0
        return pd.Series(np.where((known != 0) | ~lost, known, np.nan), index=self.table.index)

    @property
    def row_marks(self) -> pd.Series:
        """The marks of each kernel: all those of its cells, joined."""
        return join(self.marks, axis=1)


def join(marks: pd.DataFrame, axis: int) -> pd.Series:
    """Join marks with `|` along `axis` (1: a mark for each row; 0: one for each column)."""
    values = marks.to_numpy(dtype=np.int64)
    labels = marks.index if axis == 1 else marks.columns
    return pd.Series(np.bitwise_or.reduce(values, axis=axis), index=labels, dtype="int64")


def attribute(counts: Counts, costs: Costs) -> Split:
    """Split each kernel's energy among its instructions, its bytes and constant power.

    E = sum_k n_k eps_k + sum_l b_l eps_l + pi0 T        ([FMM] section II; model.md 2)
    counts: (n_kernels, n_classes), instructions or bytes; time in s. costs: pJ per instruction or byte, W.
    Returns joules, a column for each class that the costs charge or that was counted without a price, and `constant`.
    A class that pays but was not counted, or was counted (not zero) but has no price, is NaN and marked MISSING: the
    row's sum is then a lower bound of E. A class that the table says pays nothing is 0 where it was counted.
    Raises CostError if the counts keep other books than the costs are for.
    """
    if counts.books != costs.books:
        raise CostError(f"{costs.name} prices bytes as {costs.books}, but these are counted as {counts.books}.")
    words = [str(word) for word in counts.table.columns]
    number, counted = counts.table.to_numpy(dtype=np.float64), counts.marks.to_numpy(dtype=np.int64)
    kept = [at for at, word in enumerate(words) if word in costs.charges or not np.isnan(number[:, at]).all()]
    cells = [_priced(number[:, at], counted[:, at], costs.charges.get(words[at])) for at in kept]
    cells.append(_constant(counts.kernels, costs))
    names, index = [*(words[at] for at in kept), CONSTANT], counts.table.index
    return Split(framed([one[0] for one in cells], names, index), framed([one[1] for one in cells], names, index))


def _priced(number: Floats, counted: Ints, charge: Charge | None) -> tuple[Floats, Ints]:
    """Joules of a class and their marks; the charge's own marks only where there is something to pay.

    Where something was counted that the table has no price for it is NaN and MISSING; a zero needs no price.
    """
    some = ~np.isnan(number) & (number != 0)
    if charge is None:
        return np.where(number == 0, number, np.nan), some * np.int64(Mark.MISSING)
    if not charge.pays:
        return number * 0.0, np.zeros_like(counted)
    return number * (charge.pj * 1e-12), counted | some * np.int64(charge.marks)


def _constant(kernels: pd.DataFrame, costs: Costs) -> tuple[Floats, Ints]:
    """Constant energy pi0 T in joules and its marks."""
    time_s = kernels["time_s"].to_numpy(dtype=np.float64)
    marks = kernels["time_marks"].to_numpy(dtype=np.int64) | int(costs.constant_marks)
    return time_s * costs.constant_power_w, marks | np.isnan(time_s) * np.int64(Mark.MISSING)

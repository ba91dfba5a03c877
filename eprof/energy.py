"""Attribution: counts times costs, plus constant power times time."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from eprof.costs import Charge, Costs
from eprof.counts import Counts
from eprof.errors import CostError
from eprof.marks import Mark
from eprof.vocabulary import BYTES, CONSTANT, INSTRUCTIONS


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
        """Everything that is known, for each kernel: a lower bound where the row is marked MISSING."""
        return self.table.sum(axis=1, min_count=1)

    def _sum(self, names: tuple[str, ...]) -> pd.Series:
        """What is known of some classes; NaN where nothing is, or where all that is known is that some take 0 J."""
        members = [name for name in names if name in self.table]
        known = self.table[members].sum(axis=1, min_count=1)
        lost = (join(self.marks[members], axis=1) & int(Mark.MISSING)) != 0
        return known.where((known != 0) | ~lost)

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
    columns: dict[str, pd.Series] = {}
    marks: dict[str, pd.Series] = {}
    for name in counts.table.columns:
        charge = costs.charges.get(name)
        if charge is not None:
            columns[name], marks[name] = _charged(counts, name, charge)
        elif counts.table[name].notna().any():
            columns[name], marks[name] = _unpriced(counts.table[name])
    columns[CONSTANT], marks[CONSTANT] = _constant(counts.kernels, costs)
    index = counts.table.index
    return Split(pd.DataFrame(columns, index=index), pd.DataFrame(marks, index=index).astype("int64"))


def _charged(counts: Counts, name: str, charge: Charge) -> tuple[pd.Series, pd.Series]:
    """Joules of a class and their marks; the charge's own marks only where there is something to pay."""
    number = counts.table[name]
    if not charge.pays:
        return number * 0.0, pd.Series(0, index=number.index)
    return number * (charge.pj * 1e-12), counts.marks[name] | np.where(number.fillna(0) != 0, int(charge.marks), 0)


def _unpriced(number: pd.Series) -> tuple[pd.Series, pd.Series]:
    """NaN and MISSING where something was counted that the table has no price for; a zero needs no price."""
    marks = np.where(number.fillna(0) != 0, int(Mark.MISSING), 0)
    return number.where(number == 0), pd.Series(marks, index=number.index)


def _constant(kernels: pd.DataFrame, costs: Costs) -> tuple[pd.Series, pd.Series]:
    """Constant energy pi0 T in joules and its marks."""
    unknown = np.where(kernels["time_s"].isna(), int(Mark.MISSING), 0)
    return kernels["time_s"] * costs.constant_power_w, kernels["time_marks"] | unknown | int(costs.constant_marks)

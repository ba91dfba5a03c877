"""Useful work W and traffic Q of kernels, from their counts."""

import numpy as np
import pandas as pd

from eprof.vocabulary import COUNTS


def flops(table: pd.DataFrame, precision: str | None = None) -> pd.Series:
    """Useful floating-point operations: add + mul + 2 fma, of all widths or one ("fp32"); NaN where unknown."""
    total = np.zeros(len(table))
    for count in COUNTS.values():
        if count.flops and precision in (None, count.group):
            total = total + table[count.name].to_numpy(dtype=np.float64) * count.flops
    return pd.Series(total, index=table.index)


def traffic(table: pd.DataFrame, level: str = "dram") -> pd.Series:
    """Bytes from and to a memory level; NaN where one direction is not known."""
    return table[f"{level}_read"] + table[f"{level}_write"]


def intensity(table: pd.DataFrame) -> pd.Series:
    """Arithmetic intensity I = W/Q, flop per DRAM byte ([R] II; model.md 1); NaN where W or Q is unknown or Q is 0."""
    moved = traffic(table)
    return flops(table) / moved.where(moved > 0)


def main_precision(table: pd.DataFrame) -> str | None:
    """The width that most flops are of, "fp64" or "fp32"; None if there are none of either."""
    sums = {precision: float(flops(table, precision).fillna(0.0).sum()) for precision in ("fp64", "fp32")}
    most = max(sums, key=lambda precision: sums[precision])
    return most if sums[most] > 0 else None

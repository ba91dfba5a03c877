"""Useful work W and traffic Q of kernels, from their counts."""

import numpy as np
import pandas as pd

from eprof.base.arrays import Floats, columns_of
from eprof.base.vocabulary import COUNTS


def flops(table: pd.DataFrame, precision: str | None = None) -> pd.Series:
    """Useful floating-point operations: add + mul + 2 fma, of all widths or one ("fp32"); NaN where unknown."""
    return pd.Series(flops_of(table, precision), index=table.index)


def flops_of(table: pd.DataFrame, precision: str | None = None) -> Floats:
    """As `flops`, (n_kernels,). Matrix instructions do flops that are not counted: of all widths, not known then."""
    each = {name: one.flops for name, one in COUNTS.items() if one.flops and precision in (None, one.group)}
    total = np.zeros(len(table))
    for column, flops_each in zip(columns_of(table, each).T, each.values(), strict=True):
        total += column * flops_each
    if precision is None and "tensor" in table:
        total = np.where(table["tensor"].to_numpy(dtype=np.float64) > 0, np.nan, total)
    return total


def traffic(table: pd.DataFrame, level: str = "dram") -> pd.Series:
    """Bytes from and to a memory level; NaN where neither both directions nor their sum are known."""
    return pd.Series(traffic_of(table, level), index=table.index)


def traffic_of(table: pd.DataFrame, level: str = "dram") -> Floats:
    """As `traffic`, (n_kernels,)."""
    read, written = columns_of(table, (f"{level}_read", f"{level}_write")).T
    both = read + written
    if level not in table:
        return np.asarray(both)
    return np.where(np.isnan(both), table[level].to_numpy(dtype=np.float64), both)


def intensity(table: pd.DataFrame) -> pd.Series:
    """Arithmetic intensity I = W/Q, flop per DRAM byte ([R] II; model.md 1); NaN where W or Q is unknown or Q is 0."""
    moved = traffic_of(table)
    return pd.Series(flops_of(table) / np.where(moved > 0, moved, np.nan), index=table.index)


def main_precision(table: pd.DataFrame) -> str | None:
    """The width that most flops are of, "fp64" or "fp32"; None if there are none of either."""
    sums = {precision: float(np.nansum(flops_of(table, precision))) for precision in ("fp64", "fp32")}
    most = max(sums, key=lambda precision: sums[precision])
    return most if sums[most] > 0 else None

"""Useful work W and traffic Q of kernels, from their counts."""

import numpy as np

from eprof.base.arrays import Columns, Floats
from eprof.base.vocabulary import COUNTS

_TENSOR = [name for name, count in COUNTS.items() if count.group == "tensor"]


def flops_of(counts: Columns, precision: str | None = None) -> Floats:
    """Useful floating-point operations: add + mul + 2 fma, of all widths or one ("fp32"); NaN where unknown.

    Of all widths, the flops are not known where tensor cores worked: their peak is another, and the flops of their
    instructions may not be counted.
    """
    total = np.zeros(len(counts))
    for name, count in COUNTS.items():
        if count.flops and precision in (None, count.group):
            total += counts[name] * count.flops
    if precision is None:
        total = np.where((counts.only(_TENSOR) > 0).any(axis=1), np.nan, total)
    return total


def traffic_of(counts: Columns, level: str = "dram") -> Floats:
    """Bytes from and to a memory level; NaN where neither both directions nor their sum are known."""
    both: Floats = counts[f"{level}_read"] + counts[f"{level}_write"]
    if level not in counts:
        return both
    return np.where(np.isnan(both), counts[level], both)


def intensity_of(counts: Columns) -> Floats:
    """Arithmetic intensity I = W/Q, flop per DRAM byte ([R] II); NaN where W or Q is unknown or Q is 0."""
    moved = traffic_of(counts)
    return flops_of(counts) / np.where(moved > 0, moved, np.nan)


def main_precision(counts: Columns) -> str | None:
    """The width that most flops are of, "fp64" or "fp32"; None if there are none of either."""
    sums = {precision: float(np.nansum(flops_of(counts, precision))) for precision in ("fp64", "fp32")}
    most = max(sums, key=lambda precision: sums[precision])
    return most if sums[most] > 0 else None

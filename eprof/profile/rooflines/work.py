"""Useful work W and traffic Q of kernels, from their counts."""

import numpy as np

from eprof.base.arrays import Bools, Columns, Floats, known_or_zero
from eprof.base.vocabulary import COUNTS, FLOAT_PARTS, TENSOR_FLOPS

_TENSOR = [name for name, count in COUNTS.items() if count.group == "tensor"]


def flops_of(counts: Columns, precision: str | None = None) -> Floats:
    """Useful floating-point operations: add + mul + 2 fma, of all widths or one ("fp32"); NaN where unknown.

    Of all widths, they are not known where tensor cores worked, whose peaks no roofline has; `all_flops_of` has their
    flops as well.
    """
    total = np.zeros(len(counts))
    for name, count in COUNTS.items():
        if count.flops and precision in (None, count.group):
            total += counts[name] * count.flops
    if precision is None:
        total = np.where(has_tensor_work(counts), np.nan, total)
    return total


def has_tensor_work(counts: Columns) -> Bools:
    """Which kernels tensor cores worked for, as far as is known, (n_kernels,)."""
    worked: Bools = np.asarray((counts.only(_TENSOR) > 0).any(axis=1))
    return worked


def all_flops_of(counts: Columns) -> Floats:
    """Useful flops, with those of tensor cores on floating-point types; NaN where some are not known."""
    vector: Floats = np.stack([flops_of(counts, group) for group in FLOAT_PARTS]).sum(axis=0)
    types = counts.only(TENSOR_FLOPS)
    have_types = ~np.isnan(types).all(axis=1)
    instructions = known_or_zero(counts.only(["tensor"])).sum(axis=1)
    without_types = np.where(instructions > 0, np.nan, 0.0)
    tensor: Floats = np.where(have_types, types.sum(axis=1), without_types)
    return vector + tensor


def traffic_of(counts: Columns, level: str = "dram") -> Floats:
    """Bytes from and to a memory level; NaN where neither both directions nor their sum are known."""
    both: Floats = counts[f"{level}_read"] + counts[f"{level}_write"]
    if level not in counts:
        return both
    return np.where(np.isnan(both), counts[level], both)


def intensity_of(counts: Columns) -> Floats:
    """Arithmetic intensity I = W/Q, flop per DRAM byte ([R] II); NaN where W or Q is unknown or Q is 0."""
    moved = traffic_of(counts)
    return all_flops_of(counts) / np.where(moved > 0, moved, np.nan)


def main_precision(counts: Columns) -> str | None:
    """The width that most flops are of, "fp64" or "fp32"; None if there are none of either."""
    sums = {precision: float(np.nansum(flops_of(counts, precision))) for precision in ("fp64", "fp32")}
    most = max(sums, key=lambda precision: sums[precision])
    return most if sums[most] > 0 else None

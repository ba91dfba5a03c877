"""Kernels below the lines: how far from the roofline and the arch line each is, and what would lift it."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Bools, Columns, Floats, finite_all, known_sum
from eprof.base.text import when
from eprof.base.vocabulary import BYTES, COMPUTATION_WORDS, COUNTS, FLOAT_PARTS, MISSING, RANDOM
from eprof.costs import Costs
from eprof.counts.counts import Counts
from eprof.energy.attribution import Split
from eprof.energy.modelled_time import UNDER_THE_ROOF, at_peaks, has_modelled_time, highest_s, under_the_roof
from eprof.profile.rooflines.work import flops_of, has_tensor_work, traffic_of

# What the energy of a kernel is made of, as seen from its limits; the six add up to it. The first three are what the
# arch line holds against it: they would be left at the roofline's time, with no other instruction and no other byte.
PARTS = ("flops", "dram", "constant", "waiting", "instructions", "nearer")
# What is at most so much where the energy, or the time, is a lower bound.
_AT_MOST = {
    "flop_per_s": "time_is_bound",
    "speed_share": "time_is_bound",
    "flop_per_j": "energy_is_bound",
    "energy_share": "energy_is_bound",
}
_NUMBERS = ("work_flop", "flop_per_s", "flop_per_j", "roofline_time_s", "speed_share", "energy_share")
LEVELS = ("shared", "l1", "l2", "dram")
_L3 = "l3"  # of CPUs, beside those
_FLOPS = [name for name, count in COUNTS.items() if count.flops or name in FLOAT_PARTS or count.group == "tensor"]


class Dots(Struct, frozen=True, eq=False):
    """Kernels as dots, rows as in the counts; NaN = not known.

    values: `work_flop`, `intensity_X` (flop per byte at level X), `flop_per_s`, `flop_per_j`, `roofline_time_s`,
    `speed_share` (roofline's time over the kernel's), `energy_share` (energy at the arch line over the kernel's), and
    `X_j` for each of `PARTS`, `energy_is_bound`, `time_is_bound` (what is divided by a lower bound is at most that).
    lever: the part that takes most, or None. by_dram: whose DRAM bytes take as long as all flops or longer, at peaks.
    """

    values: Columns
    lever: tuple[str | None, ...]
    by_dram: Bools

    def rows(self) -> list[dict[str, Any]]:
        """A dict a kernel, as plain data."""
        column = {name: finite_all(self.values[name]) for name in self.values.names}
        kernels = _records({name: column[name] for name in _NUMBERS})
        intensities = _records({level: column[f"intensity_{level}"] for level in LEVELS})
        parts = _records({part: column[f"{part}_j"] for part in PARTS})
        for row, (kernel, at_l3, lever) in enumerate(zip(kernels, column[f"intensity_{_L3}"], self.lever, strict=True)):
            kernel |= {"intensity_flop_per_byte": intensities[row], "parts_j": parts[row], "lever": lever}
            if kernel["roofline_time_s"] is not None:
                kernel["limited_by"] = when(self.by_dram[row], "dram") or "flops"
            if at_l3 is not None:
                intensities[row][_L3] = at_l3
            at_most = [name for name, bound in _AT_MOST.items() if column[bound][row] and kernel[name] is not None]
            if at_most:
                kernel["at_most"] = at_most
        return kernels


def _records(columns: Mapping[str, list[float | None]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def place(counts: Counts, costs: Costs, split: Split) -> Dots:
    """Place every kernel: T_roof = max(W tau_flop, Q tau_mem) ([R] II), with W tau_flop summed over FP32 and FP64.

    Instructions whose kinds are not told take as long as multiply-adds, whose place in the pipe they have.
    E = flops + DRAM bytes + pi0 T_roof   (what the arch line allows)
      + pi0 (T - T_roof)                  ("waiting": constant power while below the roofline)
      + other instructions + bytes from nearer levels.
    A kernel that is faster than the roofline of these costs waits 0 s; its speed_share is above 1. One whose flops or
    DRAM bytes were not all counted has no roofline, and none that tensor cores worked for, whose peaks no table has.
    A kernel whose time was modelled is placed at the roofline's time; how far it is from there is not known.
    """
    table = counts.whole
    roofs = at_peaks(under_the_roof(counts.amounts, counts.in_flops), costs.peaks_as_run)
    roof = highest_s(roofs)
    lacks = (counts.amount_marks.only(UNDER_THE_ROOF) & MISSING).any(axis=1)
    lacks |= has_tensor_work(counts.amounts)
    roof = np.where((roof > 0) & ~lacks, roof, np.nan)
    work = flops_of(table)
    # A modelled time is the roofline's over an efficiency that somebody chose: such a kernel stands on the roofline.
    is_modelled = has_modelled_time(counts)
    time = np.where(is_modelled, roof, counts.rows.time_s)
    constant = np.where(is_modelled, costs.constant_power_w * roof, split.constant_j)
    energy = split.total_j - np.nan_to_num(split.constant_j) + np.nan_to_num(constant)
    at_roof = np.fmin(constant, costs.constant_power_w * roof)
    parts = {
        "flops": _sum(split, _FLOPS),
        "dram": _sum(split, ["dram_read", "dram_write", "dram", RANDOM]),
        "constant": np.where(np.isnan(roof), constant, np.where(np.isnan(constant), np.nan, at_roof)),
        "waiting": np.where(np.isnan(roof), 0.0, constant - at_roof),
        "instructions": _sum(split, [name for name in COMPUTATION_WORDS if name not in _FLOPS]),
        "nearer": _sum(split, [name for name in BYTES if not name.startswith("dram")]),
    }
    best = np.nan_to_num(parts["flops"]) + np.nan_to_num(parts["dram"]) + costs.constant_power_w * roof
    with np.errstate(all="ignore"):
        columns = {
            "work_flop": work,
            **{f"intensity_{level}": _over(work, traffic_of(table, level)) for level in (*LEVELS, _L3)},
            "flop_per_s": _over(work, time),
            "flop_per_j": _over(work, np.where(np.isnan(time), np.nan, energy)),
            "roofline_time_s": roof,
            "speed_share": np.where(is_modelled, np.nan, _over(roof, time)),
            "energy_share": np.where(is_modelled | np.isnan(time), np.nan, _over(best, energy)),
            **{f"{name}_j": values for name, values in parts.items()},
            "energy_is_bound": (split.row_marks & MISSING) != 0,
            "time_is_bound": (counts.rows.time_marks & MISSING) != 0,
        }
    return Dots(Columns.of(columns, len(table)), _levers(parts, time), roofs["dram"] >= roof)


def _sum(split: Split, names: list[str]) -> Floats:
    return known_sum(split.joules.only(names))


def _over(above: Floats, below: Floats) -> Floats:
    """Divide `above` by `below`, element by element; NaN where the divisor is not above 0."""
    return above / np.where(below > 0, below, np.nan)


def _levers(parts: dict[str, Floats], time: Floats) -> tuple[str | None, ...]:
    """The largest part of each kernel; None where its time is not known, or nothing is."""
    stacked = np.nan_to_num(np.stack([parts[name] for name in PARTS]))
    largest = stacked.argmax(axis=0)
    known = (stacked.max(axis=0) > 0) & ~np.isnan(time)
    levers = zip(largest.tolist(), known.tolist(), strict=True)
    return tuple(PARTS[part] if is_known else None for part, is_known in levers)

"""Times of kernels on a simulated device: the least by the roofline of a cost table, divided by an efficiency."""

from collections.abc import Collection, Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Columns, Floats, known_or_zero
from eprof.base.errors import UsageError
from eprof.base.optional import either, mapped
from eprof.base.text import when
from eprof.base.vocabulary import COMPUTATION_WORDS, COUNTS, ESTIMATED, MISSING, SIMULATED
from eprof.costs import Costs, Peaks
from eprof.counts.counts import Counts

# [FMM] IV-C: given its mix of instructions, the best that a tuned irregular kernel (the FMM's U list) can reach on a
# Jetson TK1 is slightly above a quarter of the peak; regular microbenchmarks come close to 1.
DEFAULT_EFFICIENCY = 0.25
_FLOPS = [name for name, count in COUNTS.items() if count.flops and count.group in ("fp32", "fp64")]
_DRAM = ("dram_read", "dram_write", "dram")  # the last where reads and writes are not told apart
UNDER_THE_ROOF = [*_FLOPS, *_DRAM]


class Modelled(Struct, frozen=True):
    """How times were modelled: in words, at which efficiency, and whether the user gave that one.

    shares_only: the times are no roofline's over an efficiency: the model only shared out the time that the user gave
    for all kernels together, or it is that by component.
    """

    how: str
    efficiency: float
    given: bool
    shares_only: bool = False


def checked_efficiency(share: float) -> float:
    """Check an efficiency: a share of the roofline above 0 and at most 1. Raises UsageError."""
    if not 0 < share <= 1:
        raise UsageError(f"--efficiency {share:g}: say a fraction of the peak, above 0 and at most 1.")
    return share


def has_modelled_time(counts: Counts) -> Bools:
    """Which kernels, (n_kernels,), have the time of `model_time`: they were simulated, and nobody gave a time."""
    return np.asarray((counts.rows.time_marks & SIMULATED) != 0)


def model_time(
    counts: Counts, costs: Costs, efficiency: float | None = None
) -> tuple[Counts, Modelled | None, list[str]]:
    """Give simulated kernels without a time the one of the roofline ([R] II; docs/model.md):

    T = max(W tau_flop, Q tau_mem) / efficiency, with W tau_flop summed over FP32 and FP64, and tau the reciprocals of
    the table's peaks at the setting. W in flops, Q in DRAM bytes, T in s; marked ESTIMATED and SIMULATED.
    Returns the counts, how their times were modelled (None if none was), and warnings. Raises UsageError if the
    efficiency is not above 0 and at most 1.
    """
    share = either(mapped(checked_efficiency, efficiency), DEFAULT_EFFICIENCY)
    is_simulated = np.asarray((counts.amount_marks.only(COMPUTATION_WORDS) & SIMULATED).any(axis=1))
    need = is_simulated & np.isnan(counts.rows.time_s)
    if not need.any():
        return counts, None, []
    seconds = roofline_s(counts.amounts, costs) / share
    modelled = need & ~np.isnan(seconds) & (seconds > 0)
    warnings = []
    if (need & ~modelled).any():
        warnings.append(
            f"The time of {(need & ~modelled).sum()} simulated {counts.nouns.kernels} is not modelled: they did no "
            f"floating-point work and moved no global memory, or {costs.name} does not tell the peak that it takes "
            "(its [peak] table)."
        )
    if not modelled.any():
        return counts, None, warnings
    # A roof over counts that are not whole is a roof too low: the time is a lower bound then.
    lost = (counts.amount_marks.only(UNDER_THE_ROOF) & MISSING).max(axis=1)
    marks = (counts.rows.time_marks & ~MISSING) | lost | ESTIMATED | SIMULATED
    given = efficiency is not None
    whose = when(given, "given") or "the default, what a tuned irregular kernel reaches on a Jetson TK1 ([FMM] IV-C)"
    roof = f"the roofline of {costs.name} at {costs.setting.label} MHz"
    how = f"modelled by {roof} and an efficiency of {share:g} ({whose})"
    rows = counts.rows.with_times(modelled, seconds, marks)
    return replace(counts, rows=rows), Modelled(how, share, given), warnings


def roofline_s(table: Columns, costs: Costs) -> Floats:
    """The least time at the peaks of `costs`, (n_kernels,) in s; NaN where a peak that is needed is not known."""
    return highest_s(roofs_s(table, costs))


def roofs_s(table: Columns, costs: Costs) -> dict[str, Floats]:
    """The time that each of "fp32", "fp64" and "dram" takes alone at its peak: name -> (n_kernels,) in s."""
    return at_peaks(under_the_roof(table), costs.peaks_as_run)


def under_the_roof(table: Columns, in_flops: Collection[str] = ()) -> dict[str, Floats]:
    """Flops ("fp32", "fp64") and DRAM bytes ("dram") of each kernel: name -> (n_kernels,); 0 where not known.

    Instructions whose kinds are not told are there as multiply-adds, whose place in the pipe they have. Totals that are
    `in_flops` are all of their width, as in `Counts.whole`.
    """
    work = {"fp32": np.zeros(len(table)), "fp64": np.zeros(len(table))}
    for name in _FLOPS:
        work[COUNTS[name].group] += known_or_zero(table[name]) * COUNTS[name].flops
    for total, of_kinds in work.items():
        told = known_or_zero(table.only([total])).sum(axis=1)
        work[total] = np.where(told > 0, told, of_kinds) if total in in_flops else of_kinds + 2 * told
    return {**work, "dram": known_or_zero(table.only(_DRAM)).sum(axis=1)}


def at_peaks(work: Mapping[str, Floats], peaks: Peaks) -> dict[str, Floats]:
    """The time that each part of `work` (`under_the_roof`) takes alone at its peak, s; NaN: its peak is not known."""
    giga_a_second = {"fp32": peaks.sp_gflops, "fp64": peaks.dp_gflops, "dram": peaks.dram_gb_per_s}
    taken_s = {}
    for group, peak in giga_a_second.items():
        taken_s[group] = np.where(work[group] == 0, 0.0, np.nan) if peak is None else work[group] / (peak * 1e9)
    return taken_s


def highest_s(roofs: Mapping[str, Floats]) -> Floats:
    """The roofline's time, (n_kernels,) in s, from the times of `roofs_s`: the longer of all flops and all bytes."""
    return np.maximum(roofs["fp32"] + roofs["fp64"], roofs["dram"])

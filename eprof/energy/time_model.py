"""Time at clocks where it was not measured: the roofline of docs/tune.md, "Time at other settings".

A kernel's DRAM traffic would alone take T_m = bytes / (share of the peak * peak bandwidth), which goes with the memory
clock; what else it does takes T_c, which goes with the core clock. The two overlap as a p-norm, T^p = T_c^p + T_m^p
(p = 1: one after the other; p -> infinity: the roofline's max), so that with the measured T at one setting

    T(s)^p = (T^p - T_m^p) (f_core / f_core(s))^p + T_m^p (f_mem / f_mem(s))^p
"""

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.costs import CostTable

# Of the pairs tried on GTX 980, GTX 1080 Ti and V100 the ones that predict unseen kernels best are near this
# (docs/studies/tuning); `fit` finds the pair for measurements at hand.
EXPONENT, SHARE = 3.0, 0.85
# A kernel cannot move its bytes faster than it ran: what would is bound by memory alone.
_MOST = 0.999


class TimeModel(Struct, frozen=True):
    """exponent: p; share: of the peak bandwidth that DRAM reaches. byte_per_cycle: the peak, in bytes a memory cycle.

    byte_per_cycle None: no peak is known; then nothing tells memory from core time, and half is taken for each.
    """

    byte_per_cycle: float | None
    exponent: float = EXPONENT
    share: float = SHARE

    def memory_time(self, time_s: Floats, dram_byte: Floats, memory_mhz: Floats | float) -> Floats:
        """T_m in s, (n,): at most what was measured."""
        time_s = np.asarray(time_s, dtype=float)
        if self.byte_per_cycle is None:
            return np.asarray(0.5 ** (1 / self.exponent) * time_s)
        at_peak = np.asarray(dram_byte, dtype=float) / (self.share * self.byte_per_cycle * np.asarray(memory_mhz) * 1e6)
        return np.asarray(np.minimum(at_peak, _MOST * time_s))

    def at(
        self,
        time_s: Floats,
        dram_byte: Floats,
        measured_at: tuple[Floats | float, Floats | float],
        wanted: tuple[Floats | float, Floats | float],
    ) -> Floats:
        """Times in s at the clocks `wanted`, from the time at the clocks `measured_at` (core MHz, memory MHz).

        Arrays are broadcast against each other. Where the bytes are not known (NaN) so is the time.
        """
        p = self.exponent
        memory = self.memory_time(time_s, dram_byte, measured_at[1]) ** p
        core = np.asarray(time_s, dtype=float) ** p - memory
        core_ratio = np.asarray(measured_at[0], dtype=float) / wanted[0]
        memory_ratio = np.asarray(measured_at[1], dtype=float) / wanted[1]
        return np.asarray((core * core_ratio**p + memory * memory_ratio**p) ** (1 / p))

    @property
    def words(self) -> str:
        """How times at other clocks were predicted, in a sentence."""
        if self.byte_per_cycle is None:
            return (
                "Times at other settings are guesses: the table gives no peak bandwidth, so half of the time is taken "
                "to go with the core clock and half with the memory clock."
            )
        return (
            f"Times at other settings are modelled: DRAM traffic at {100 * self.share:.0f} % of the peak goes with the "
            f"memory clock, all else with the core clock, overlapping as a p-norm with p = {self.exponent:g}, held to "
            "the measured time."
        )


def of_table(table: CostTable) -> TimeModel:
    """The time model with the peak of DRAM that the table tells, or else the most that it was fitted to."""
    return TimeModel(_byte_per_cycle(table))


def _byte_per_cycle(table: CostTable) -> float | None:
    peak, mhz = table.peaks().dram_gb_per_s, table.default.memory_mhz
    if peak is not None and mhz:
        return peak * 1e3 / mhz
    seen = table.fit.data.get("range", {}) if table.fit is not None else {}
    if seen.get("dram_byte") and seen.get("memory_mhz") and seen["dram_byte"][1] > 0:
        # 1e9 bytes a second; reached, as far as is known, at the highest memory clock.
        return float(seen["dram_byte"][1]) * 1e3 / float(seen["memory_mhz"][1])
    return None

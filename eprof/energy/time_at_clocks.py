"""Time at other clocks: what of a measured time goes with the core's clock, and what with the memory's."""

from operator import attrgetter

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.base.optional import mapped
from eprof.base.text import phrase
from eprof.costs import CostTable

# Of the pairs tried on GTX 980, GTX 1080 Ti and V100 the ones that predict unseen kernels best are near this
# (docs/studies/tuning); `fit` finds the pair for measurements at hand.
EXPONENT, SHARE = 3.0, 0.85
# A kernel cannot move its bytes faster than it ran: what would is bound by memory alone.
_MOST = 0.999
_Pair = tuple[Floats | float, Floats | float]  # of the core and the memory, in MHz


class TimeModel(Struct, frozen=True):
    """How kernels' time goes with the clocks: the roofline of docs/tune.md, "Time at other settings".

    A kernel's DRAM traffic would alone take T_m = bytes / (share of the peak * peak bandwidth), which goes with the
    memory clock; what else it does takes T_c, which goes with the core clock. The two overlap as a p-norm, T^p = T_c^p
    + T_m^p (p = 1: one after the other; p -> infinity: the roofline's max), so that with the measured T at one setting

        T(s)^p = (T^p - T_m^p) (f_core / f_core(s))^p + T_m^p (f_mem / f_mem(s))^p

    Bytes of DRAM also pass the core's clock domain. Where a table tells how many do in a cycle, low core clocks make
    that the narrower of the two, and T_m goes with it.

    exponent: p; share: of the peak bandwidth that DRAM reaches.
    byte_per_cycle: the peak, in bytes a memory cycle; None: not known, and half of the time is taken to go with each.
    path_byte_per_cycle: bytes of DRAM that pass in a core cycle at most; None: not known, as if as many as DRAM has.
    """

    byte_per_cycle: float | None
    exponent: float = EXPONENT
    share: float = SHARE
    path_byte_per_cycle: float | None = None

    def memory_time(
        self, time_s: Floats, dram_byte: Floats, memory_mhz: Floats | float, core_mhz: Floats | float = np.inf
    ) -> Floats:
        """The part of each time that goes with the memory clock: what DRAM traffic takes alone, T_m in s, (n,)."""
        time_s = np.asarray(time_s, dtype=float)
        if self.byte_per_cycle is None:
            return np.asarray(0.5 ** (1 / self.exponent) * time_s)
        at_peak = np.asarray(dram_byte, dtype=float) * self._s_per_byte((core_mhz, memory_mhz))
        return np.asarray(np.minimum(at_peak, _MOST * time_s))

    def _s_per_byte(self, clocks: _Pair) -> Floats:
        """Seconds a byte of DRAM at (core, memory) clocks in MHz, by the slower of DRAM and its way to the core."""
        core_mhz, memory_mhz = clocks
        per_cycle = self.share * (self.byte_per_cycle or 1.0)
        of_memory = 1 / (per_cycle * np.asarray(memory_mhz, dtype=float) * 1e6)
        if self.path_byte_per_cycle is None:
            return of_memory
        return np.maximum(of_memory, 1 / (self.path_byte_per_cycle * np.asarray(core_mhz, dtype=float) * 1e6))

    def at(self, time_s: Floats, dram_byte: Floats, measured_at: _Pair, wanted: _Pair) -> Floats:
        """Times in s at the clocks `wanted`, from the time at the clocks `measured_at` (core MHz, memory MHz).

        Arrays are broadcast against each other. Where the bytes are not known (NaN) so is the time.
        """
        p = self.exponent
        memory = self.memory_time(time_s, dram_byte, measured_at[1], measured_at[0]) ** p
        core = np.asarray(time_s, dtype=float) ** p - memory
        core_ratio = np.asarray(measured_at[0], dtype=float) / wanted[0]
        memory_ratio = self._s_per_byte(wanted) / self._s_per_byte(measured_at)
        return np.asarray((core * core_ratio**p + memory * memory_ratio**p) ** (1 / p))

    @property
    def words(self) -> str:
        """The model of times at other clocks, in a sentence."""
        if self.byte_per_cycle is None:
            return (
                "Times at other settings are guesses: the table gives no peak bandwidth, so half of the time is taken "
                "to go with the core clock and half with the memory clock."
            )
        narrow = phrase(" (the core clock lets {:.4g} B a cycle pass at most)", self.path_byte_per_cycle)
        return (
            f"Times at other settings are modelled: DRAM traffic at {100 * self.share:.0f} % of the peak goes with the "
            f"memory clock{narrow}, all else with the core clock, overlapping as a p-norm with p = {self.exponent:g}, "
            "held to the measured time."
        )


def time_model_of(table: CostTable) -> TimeModel:
    """The time model with the peak of DRAM that the table tells, or else the most that it was fitted to."""
    peak, mhz, seen = table.peaks().dram_gb_per_s, table.default.memory_mhz, table.fit.data.get("range", {})
    byte_per_cycle = None
    if peak is not None and mhz:
        byte_per_cycle = peak * 1e3 / mhz
    elif seen.get("dram_byte") and seen.get("memory_mhz") and seen["dram_byte"][1] > 0:
        # 1e9 bytes a second; reached, as far as is known, at the highest memory clock.
        byte_per_cycle = float(seen["dram_byte"][1]) * 1e3 / float(seen["memory_mhz"][1])
    path = mapped(attrgetter("number"), table.peak.terms.get("dram_path_gb_per_s"))
    return TimeModel(byte_per_cycle, path_byte_per_cycle=path)

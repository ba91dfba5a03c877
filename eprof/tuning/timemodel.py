"""Time at settings where it was not measured: the roofline of model.md 6, with overlap, held to one measured time.

A kernel's DRAM traffic would alone take T_m = bytes / (share of the peak * peak bandwidth), which goes with the memory
clock; what else it does takes T_c, which goes with the core clock. The two overlap as a p-norm, T^p = T_c^p + T_m^p
(p = 1: one after the other; p -> infinity: the roofline's max), so that with the measured T at one setting

    T(s)^p = (T^p - T_m^p) (f_core / f_core(s))^p + T_m^p (f_mem / f_mem(s))^p
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.tuning.grid import Floats

# Of the pairs tried on GTX 980, GTX 1080 Ti and V100 the ones that predict unseen kernels best are near this
# (docs/studies/tuning); `fit` finds the pair for measurements at hand.
EXPONENT, SHARE = 3.0, 0.85
_EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
_SHARES = (0.4, 0.5, 0.6, 0.67, 0.72, 0.77, 0.83, 0.87, 0.91, 0.95, 1.0)
# A kernel cannot move its bytes faster than it ran: what would is bound by memory alone.
_MOST = 0.999


@dataclass(frozen=True)
class TimeModel:
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
        """How times were predicted, in a sentence."""
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


def peak_byte_per_cycle(dram_byte: Floats, time_s: Floats, memory_mhz: Floats) -> float | None:
    """The most bytes that any row moved in a cycle of the memory clock: a peak for data that come without one."""
    with np.errstate(invalid="ignore", divide="ignore"):
        reached = np.asarray(dram_byte) / (np.asarray(time_s) * np.asarray(memory_mhz) * 1e6)
    reached = reached[np.isfinite(reached)]
    return float(reached.max()) if reached.size and reached.max() > 0 else None


@dataclass(frozen=True, eq=False)
class Timed:
    """Rows with measured times: benchmark, core_mhz, memory_mhz, time_s, dram_byte (of that row); n rows."""

    rows: pd.DataFrame
    reference: tuple[float, float]

    def pairs(self) -> pd.DataFrame:
        """Each row beside its benchmark's row at the reference (else the nearest setting); those are left out."""
        rows = self.rows
        off = (rows["core_mhz"] / self.reference[0] - 1).abs() + (rows["memory_mhz"] / self.reference[1] - 1).abs()
        first = (
            rows.assign(off=off).sort_values("off", kind="stable").drop_duplicates("benchmark").set_index("benchmark")
        )
        first = first[["core_mhz", "memory_mhz", "time_s", "dram_byte"]].add_suffix("_0")
        both = rows.join(first, on="benchmark")
        same = (both["core_mhz"] == both["core_mhz_0"]) & (both["memory_mhz"] == both["memory_mhz_0"])
        return both[~same].reset_index(drop=True)


def errors(model: TimeModel, pairs: pd.DataFrame) -> Floats:
    """Signed errors in per cent of times predicted from the reference row, (n,)."""
    predicted = predict(model, pairs)
    return np.asarray(100 * (predicted / pairs["time_s"].to_numpy(dtype=float) - 1))


def predict(model: TimeModel, pairs: pd.DataFrame) -> Floats:
    """Times in s of all rows of `Timed.pairs` from their reference rows, (n,)."""
    columns = {name: pairs[name].to_numpy(dtype=float) for name in pairs if name != "benchmark" and name != "kernel"}
    return model.at(
        columns["time_s_0"],
        columns["dram_byte_0"],
        (columns["core_mhz_0"], columns["memory_mhz_0"]),
        (columns["core_mhz"], columns["memory_mhz"]),
    )


class _Tried:
    """Every pair of a small grid of exponents and shares on the same rows; for each peak it is worked out once."""

    def __init__(self, pairs: pd.DataFrame) -> None:
        self._pairs = pairs
        self._known: dict[float, tuple[list[TimeModel], Floats]] = {}

    def best(self, byte_per_cycle: float | None, rows: npt.NDArray[np.bool_]) -> TimeModel:
        """The pair with the least mean absolute relative error on the chosen rows."""
        if byte_per_cycle is None or not rows.any():
            return TimeModel(byte_per_cycle)
        if byte_per_cycle not in self._known:
            models = [TimeModel(byte_per_cycle, p, share) for p in _EXPONENTS for share in _SHARES]
            self._known[byte_per_cycle] = models, np.abs([errors(one, self._pairs) for one in models])
        models, found = self._known[byte_per_cycle]
        return models[int(np.argmin(found[:, rows].mean(axis=1)))]


@dataclass(frozen=True, eq=False)
class TimeCheck:
    """The time model fitted to all benchmarks, and predictions of each by a model that was fitted to the others.

    pairs: rows with `predicted_s`; signed_percent: errors of rows whose benchmark the model has not seen.
    """

    model: TimeModel
    pairs: pd.DataFrame
    signed_percent: Floats

    @property
    def mean_percent(self) -> float:
        """The mean absolute relative error."""
        return float(np.nanmean(np.abs(self.signed_percent)))

    @property
    def max_percent(self) -> float:
        """The largest one."""
        return float(np.nanmax(np.abs(self.signed_percent)))


def check(timed: Timed, byte_per_cycle: float | None) -> TimeCheck | None:
    """Fit the time model, and test it on each benchmark with a model fitted to the others. None: no two settings.

    byte_per_cycle: of the table; None: the most that the training rows reached.
    """
    pairs = timed.pairs()
    pairs = pairs[np.isfinite(pairs["time_s"]) & np.isfinite(pairs["dram_byte_0"])].reset_index(drop=True)
    if pairs.empty:
        return None
    names: Sequence[str] = list(dict.fromkeys(pairs["benchmark"]))
    tried, everything = _Tried(pairs), np.ones(len(pairs), dtype=bool)
    predicted = np.full(len(pairs), np.nan)
    for name in names:
        mine = (pairs["benchmark"] == name).to_numpy()
        # One benchmark alone has no others: the model then stays as it is without data.
        model = tried.best(byte_per_cycle or _peak(timed.rows[timed.rows["benchmark"] != name]), ~mine)
        predicted[mine] = predict(model, pairs[mine])
    signed = 100 * (predicted / pairs["time_s"].to_numpy(dtype=float) - 1)
    whole = tried.best(byte_per_cycle or _peak(timed.rows), everything)
    return TimeCheck(whole, pairs.assign(predicted_s=predicted), np.asarray(signed))


def _peak(rows: pd.DataFrame) -> float | None:
    columns = (rows[name].to_numpy(dtype=float) for name in ("dram_byte", "time_s", "memory_mhz"))
    return peak_byte_per_cycle(*columns)

"""The time model of `energy`, fitted to measured times and held against kernels that it has not seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.energy.time_model import TimeModel
from eprof.tuning.grid import Floats

_EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
_SHARES = (0.4, 0.5, 0.6, 0.67, 0.72, 0.77, 0.83, 0.87, 0.91, 0.95, 1.0)


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

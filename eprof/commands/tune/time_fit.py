"""The time model of `energy`, fitted to measured times and held against kernels that it has not seen."""

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.energy.time_model import TimeModel

_CLOCKS = ["core_mhz", "memory_mhz"]
_KNOWN = [*_CLOCKS, "time_s", "dram_byte"]
_EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0)
_SHARES = (0.4, 0.5, 0.6, 0.67, 0.72, 0.77, 0.83, 0.87, 0.91, 0.95, 1.0)


class Timed(Struct, frozen=True, eq=False):
    """Rows with measured times: benchmark, core_mhz, memory_mhz, time_s, dram_byte (of that row); n rows."""

    rows: pd.DataFrame
    reference: tuple[float, float]

    def pairs(self) -> pd.DataFrame:
        """Each row beside its benchmark's row at the reference (else the nearest setting); those are left out."""
        rows = self.rows
        off = (rows["core_mhz"] / self.reference[0] - 1).abs() + (rows["memory_mhz"] / self.reference[1] - 1).abs()
        nearest_first = rows.assign(off=off).sort_values("off", kind="stable")
        first = nearest_first.drop_duplicates("benchmark").set_index("benchmark")
        both = rows.join(first[_KNOWN].add_suffix("_0"), on="benchmark")
        same = (both["core_mhz"] == both["core_mhz_0"]) & (both["memory_mhz"] == both["memory_mhz_0"])
        return both[~same].reset_index(drop=True)


def errors(model: TimeModel, pairs: pd.DataFrame) -> Floats:
    """Signed errors in per cent of times that a time fit predicted from the reference row, (n,)."""
    return np.asarray(100 * (predict(model, pairs) / pairs["time_s"].to_numpy(dtype=float) - 1))


def predict(model: TimeModel, pairs: pd.DataFrame) -> Floats:
    """Times in s of all rows of `Timed.pairs` by the time fit, from their reference rows, (n,)."""
    numbers = {name: pairs[name].to_numpy(dtype=float) for name in (*_CLOCKS, *(f"{name}_0" for name in _KNOWN))}
    return model.at(
        numbers["time_s_0"],
        numbers["dram_byte_0"],
        (numbers["core_mhz_0"], numbers["memory_mhz_0"]),
        (numbers["core_mhz"], numbers["memory_mhz"]),
    )


class _Tried:
    """Every pair of a small grid of exponents and shares on the same rows; for each peak it is worked out once."""

    def __init__(self, pairs: pd.DataFrame) -> None:
        self._pairs = pairs
        self._known: dict[float, tuple[list[TimeModel], Floats]] = {}

    def best(self, byte_per_cycle: float | None, rows: npt.NDArray[np.bool_]) -> TimeModel:
        """The fitted pair of the time model with the least mean absolute relative error on the chosen rows."""
        if byte_per_cycle is None or not rows.any():
            return TimeModel(byte_per_cycle)
        if byte_per_cycle not in self._known:
            models = [TimeModel(byte_per_cycle, p, share) for p in _EXPONENTS for share in _SHARES]
            self._known[byte_per_cycle] = models, np.abs([errors(model, self._pairs) for model in models])
        models, sizes = self._known[byte_per_cycle]
        return models[int(np.argmin(sizes[:, rows].mean(axis=1)))]


class TimeCheck(Struct, frozen=True, eq=False):
    """The time model fitted to all benchmarks, and predictions of each by a model that was fitted to the others.

    pairs: rows with `predicted_s`; signed_percent: errors of rows whose benchmark the model has not seen.
    """

    model: TimeModel
    pairs: pd.DataFrame
    signed_percent: Floats

    @property
    def mean_percent(self) -> float:
        """The mean absolute relative error of fitted times."""
        return float(np.nanmean(np.abs(self.signed_percent)))

    @property
    def max_percent(self) -> float:
        """The largest relative error of fitted times."""
        return float(np.nanmax(np.abs(self.signed_percent)))


def check(timed: Timed, byte_per_cycle: float | None) -> TimeCheck | None:
    """Fit the time model, and test it on each benchmark with a model fitted to the others. None: no two settings.

    byte_per_cycle: of the table; None: the most that the training rows reached.
    """
    pairs = timed.pairs()
    pairs = pairs[np.isfinite(pairs["time_s"]) & np.isfinite(pairs["dram_byte_0"])].reset_index(drop=True)
    if pairs.empty:
        return None

    tried = _Tried(pairs)
    predicted = np.full(len(pairs), np.nan)
    for name in dict.fromkeys(pairs["benchmark"]):
        mine = (pairs["benchmark"] == name).to_numpy()
        others = timed.rows[timed.rows["benchmark"] != name]
        # One benchmark alone has no others: the model then stays as it is without data.
        model = tried.best(byte_per_cycle or _peak_byte_per_cycle(others), ~mine)
        predicted[mine] = predict(model, pairs[mine])
    signed = 100 * (predicted / pairs["time_s"].to_numpy(dtype=float) - 1)

    fitted = tried.best(byte_per_cycle or _peak_byte_per_cycle(timed.rows), np.ones(len(pairs), dtype=bool))
    return TimeCheck(fitted, pairs.assign(predicted_s=predicted), np.asarray(signed))


def _peak_byte_per_cycle(rows: pd.DataFrame) -> float | None:
    """The most bytes that any row moved in a cycle of the memory clock: a peak for data that come without one."""
    dram_byte, time_s, memory_mhz = (rows[name].to_numpy(dtype=float) for name in ("dram_byte", "time_s", "memory_mhz"))
    with np.errstate(invalid="ignore", divide="ignore"):
        reached = dram_byte / (time_s * memory_mhz * 1e6)
    return float(np.max(reached, where=np.isfinite(reached), initial=0.0)) or None

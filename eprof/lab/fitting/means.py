"""What names and clocks alone predict: a mean power, and one that is linear in the clocks.

Neither knows a count, so a fit that is further off than these says nothing by its energies. They are trained in every
fold anew, as the fit is.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.lab.measurements.values import Measurements

CONSTANT, LINEAR = "constant power", "mean power of a kernel, linear in clocks"
FIRST = "No better than a plain mean"
_CLOCKS = ["core_mhz", "memory_mhz"]


def level(power_w: Floats) -> float:
    """The mean power c in W with the least sum of ((c - P)/P)^2: the sum of 1/P over the sum of 1/P^2."""
    return float((1 / power_w).sum() / (1 / power_w**2).sum())


class ConstantPower(Struct, frozen=True, eq=False):
    """One number of watts for everything."""

    watts: float

    @classmethod
    def of(cls, measurements: Measurements) -> "ConstantPower":
        """A mean power, trained on these rows."""
        return cls(level(measurements.power_w))

    def predict(self, measurements: Measurements) -> Floats:
        """The mean power for each row, (n,), W."""
        return np.full(len(measurements), self.watts)


class ClockPower(Struct, frozen=True, eq=False):
    """P = P_k (1 + a (f_core - f_core0) + b (f_mem - f_mem0)), P_k the mean of kernel k, or of all if k is new.

    watts: P_k by benchmark. clocks: f0 and slope of each clock, (2, 2), MHz and 1/MHz; slope 0 for one level alone.
    """

    everything: float
    watts: Mapping[str, float]
    clocks: Floats

    @classmethod
    def of(cls, measurements: Measurements) -> "ClockPower":
        """A power linear in the clocks, trained on these rows."""
        rows = measurements.rows
        power = measurements.power_w
        means = pd.Series(power).groupby(rows["benchmark"].to_numpy()).mean()
        watts = {str(name): float(value) for name, value in means.items()}
        own = rows["benchmark"].map(watts).to_numpy(dtype=np.float64)
        clocks = rows[_CLOCKS].to_numpy(dtype=np.float64)
        middle = clocks.mean(axis=0)
        slopes, *_ = np.linalg.lstsq(clocks - middle, power / own - 1, rcond=None)
        return cls(level(power), watts, np.stack([middle, slopes]))

    def predict(self, measurements: Measurements) -> Floats:
        """Power of each row by its clocks alone, (n,), W."""
        rows = measurements.rows
        own = rows["benchmark"].map(dict(self.watts)).fillna(self.everything).to_numpy(dtype=np.float64)
        clocks = rows[_CLOCKS].to_numpy(dtype=np.float64)
        return np.asarray(own * (1 + (clocks - self.clocks[0]) @ self.clocks[1]), dtype=np.float64)


# What is held against a fit: what each trains on rows.
MODELS = {CONSTANT: ConstantPower.of, LINEAR: ClockPower.of}


def better(ours: float, others: Mapping[str, float]) -> tuple[str, float] | None:
    """The best of the means, if it is not further off than our fit; errors in %."""
    error, name = min(((error, name) for name, error in others.items() if np.isfinite(error)), default=(np.inf, ""))
    if not np.isfinite(ours) or error > ours:
        return None
    return name, error


def sentence(where: str, ours: float, others: Mapping[str, float]) -> str | None:
    """A sentence if a plain mean is as good as a fit; errors in % by model. None: it is not."""
    best = better(ours, others)
    if best is None:
        return None
    name, error = best
    end = "What energies add to it does not show in these rows."
    if name == LINEAR and "kernels" not in where:
        end = "That mean knows each kernel's own measured power; counts are for kernels without."
    return f"{FIRST} {where}: {name} is {error:.1f} % off there, eprof {ours:.1f} %. {end}"

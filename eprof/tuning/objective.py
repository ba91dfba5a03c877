"""What a setting is chosen for: least E D^n ([S] 2.1.4) or least time, within a slowdown or a power limit."""

import re
from dataclasses import dataclass

import numpy as np

from eprof.base.errors import UsageError
from eprof.tuning.grid import Floats

_NAMES = {"energy": 0.0, "edp": 1.0, "ed2p": 2.0, "ed3p": 3.0}


@dataclass(frozen=True)
class Objective:
    """Minimise E D^n (n = 0: energy) over the settings that the limits allow; with `for_time`, minimise time instead.

    max_slowdown: 0.05 allows 5 % more time than the fastest setting takes. power_limit_w: mean power E/D at most.
    """

    name: str
    exponent: float = 0.0
    for_time: bool = False
    max_slowdown: float | None = None
    power_limit_w: float | None = None

    def value(self, energy_j: Floats, time_s: Floats) -> Floats:
        """What is minimised, (n_settings,); NaN where energy or time is not known."""
        energy, time = np.asarray(energy_j, dtype=float), np.asarray(time_s, dtype=float)
        if self.for_time:
            return np.where(np.isnan(energy), np.nan, time)
        return energy * time**self.exponent if self.exponent else np.where(np.isnan(time), np.nan, energy)

    def allowed(self, energy_j: Floats, time_s: Floats) -> np.ndarray:
        """Which settings keep the limits, (n_settings,)."""
        energy, time = np.asarray(energy_j, dtype=float), np.asarray(time_s, dtype=float)
        found = ~np.isnan(self.value(energy, time))
        if self.max_slowdown is not None and found.any():
            found &= time <= np.nanmin(time) * (1 + self.max_slowdown) * (1 + 1e-12)
        if self.power_limit_w is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                found &= energy / time <= self.power_limit_w
        return found

    def pick(self, energy_j: Floats, time_s: Floats) -> int | None:
        """The place of the best setting; of equals the one that takes less time, then less energy. None: none may be.

        E, D: (n_settings,), J and s.
        """
        allowed = self.allowed(energy_j, time_s)
        if not allowed.any():
            return None
        places = np.flatnonzero(allowed)
        value = self.value(energy_j, time_s)[places]
        order = np.lexsort((np.asarray(energy_j)[places], np.asarray(time_s)[places], value))
        return int(places[order[0]])

    @property
    def words(self) -> str:
        """What is minimised, in words."""
        what = "time" if self.for_time else _formula(self.exponent)
        limits = []
        if self.max_slowdown is not None:
            limits.append(f"at most {100 * self.max_slowdown:g} % more time than the fastest setting")
        if self.power_limit_w is not None:
            limits.append(f"at most {self.power_limit_w:g} W")
        return f"least {what}" + (f", with {' and '.join(limits)}" if limits else "")


def _formula(exponent: float) -> str:
    if exponent == 0:
        return "energy"
    return "energy x time" + ("" if exponent == 1 else f"^{exponent:g}")


def parse(name: str, max_slowdown: str | None = None, power_limit_w: float | None = None) -> Objective:
    """An objective by its name: `energy`, `edp`, `ed2p`, `ed3p`, `ednp` with a number for n ("ed0.5p"), `time`.

    max_slowdown: "5%" or "5". Raises UsageError.
    """
    slowdown = None if max_slowdown is None else _share(max_slowdown)
    if power_limit_w is not None and not 0 < power_limit_w < float("inf"):
        raise UsageError(f"--power-limit {power_limit_w:g}: must be a power in W above 0.")
    if name == "time":
        return Objective(name, for_time=True, max_slowdown=slowdown, power_limit_w=power_limit_w)
    exponent = _NAMES.get(name)
    if exponent is None:
        written = re.fullmatch(r"ed(\d+(?:\.\d+)?)p", name)
        if written is None:
            raise UsageError(f"--objective {name}: is none of energy, edp, ed2p, ed3p, time (ed0.5p and so on too).")
        exponent = float(written[1])
    return Objective(name, exponent, False, slowdown, power_limit_w)


def _share(text: str) -> float:
    try:
        found = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        found = -1.0
    if not 0 <= found < float("inf"):
        raise UsageError(f"--max-slowdown {text}: is no percentage; write one such as 5%.")
    return found

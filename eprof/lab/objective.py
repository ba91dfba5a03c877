"""`Objective`, what a setting of clocks is chosen for: least E D^n ([S] 2.1.4) or time, within limits; and `Clocks`."""

import re

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Bools, Floats
from eprof.base.errors import UsageError
from eprof.base.optional import mapped
from eprof.base.text import phrase, when
from eprof.base.units import clock_label

# E^2 D has its least where E D^0.5 has.
_EXPONENTS = {"energy": 0.0, "edp": 1.0, "e2d": 0.5, "time": 0.0}
# Times and limits come from different sums: so much is rounding.
_ROUNDING = 1 + 1e-12


class Clocks(Struct, frozen=True):
    """A setting: core and memory clock in MHz."""

    core_mhz: float
    memory_mhz: float

    @property
    def label(self) -> str:
        """The clocks as users write them: "852/924"."""
        return clock_label(self.core_mhz, self.memory_mhz)


class Objective(Struct, frozen=True):
    """Minimise E D^n (n = 0: energy) over the settings that the limits allow; with `for_time`, minimise time instead.

    max_slowdown: 0.05 allows 5 % more time than the run took, or the fastest setting where all were measured.
    power_limit_w: mean power E/D at most.
    """

    name: str
    exponent: float = 0.0
    for_time: bool = False
    max_slowdown: float | None = None
    power_limit_w: float | None = None

    def value(self, energy_j: Floats, time_s: Floats) -> Floats:
        """What the objective minimises, (n_settings,); NaN where energy or time is not known."""
        value = time_s if self.for_time else energy_j * time_s**self.exponent
        return np.where(np.isnan(energy_j) | np.isnan(time_s), np.nan, value)

    def allowed(self, energy_j: Floats, time_s: Floats, since_s: float | None = None) -> Bools:
        """Which settings keep the limits, (n_settings,). since_s: the time slowdowns are of; None: the shortest."""
        allowed = ~np.isnan(self.value(energy_j, time_s))
        if self.max_slowdown is not None and allowed.any():
            since_s = np.nanmin(time_s) if since_s is None else since_s
            allowed &= time_s <= since_s * (1 + self.max_slowdown) * _ROUNDING
        if self.power_limit_w is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                allowed &= energy_j / time_s <= self.power_limit_w
        return allowed

    def pick(self, energy_j: Floats, time_s: Floats, allowed: Bools | None = None) -> int | None:
        """The place of the objective's best setting; of equals the one that takes less time, then less energy.

        None: no setting may be picked. energy_j, time_s, allowed: (n_settings,); None: those within the limits may.
        """
        places = np.flatnonzero(self.allowed(energy_j, time_s) if allowed is None else allowed)
        if not places.size:
            return None
        value = self.value(energy_j, time_s)
        order = np.lexsort((energy_j[places], time_s[places], value[places]))
        return int(places[order[0]])

    def words(self, since: str) -> str:
        """The objective as a phrase, "least energy with at most 5 % more time than {since}"."""
        goal = "energy"
        if self.for_time:
            goal = "time"
        elif self.exponent:
            goal = f"energy x time{when(self.exponent != 1, f'^{self.exponent:g}')}"
        limits = []
        if self.max_slowdown is not None:
            limits.append(f"at most {100 * self.max_slowdown:g} % more time than {since}")
        if self.power_limit_w is not None:
            limits.append(f"at most {self.power_limit_w:g} W")
        within = phrase(" with {}", " and ".join(limits))
        return f"least {goal}{within}"


def parse(name: str, max_slowdown: str | None = None, power_limit_w: float | None = None) -> Objective:
    """An objective by its name, "ed0.5p" with any number; max_slowdown: "5%" or "5". Raises UsageError."""
    slowdown = mapped(lambda text: percentage(text, "--max-slowdown") / 100, max_slowdown)
    if power_limit_w is not None and not 0 < power_limit_w < float("inf"):
        raise UsageError(f"--power-limit {power_limit_w:g}: must be a power in W above 0.")
    written = re.fullmatch(r"ed(\d+(?:\.\d+)?)p", name)
    exponent = _EXPONENTS.get(name)
    if written is not None:
        exponent = float(written[1])
    if exponent is None:
        raise UsageError(f"--objective {name}: is not one of energy, edp, e2d, ed2p, ed3p, time (or ed0.5p).")
    return Objective(name, exponent, name == "time", slowdown, power_limit_w)


def percentage(text: str, option: str) -> float:
    """The number in "5%" or "5": 5.0. Raises UsageError that names the option `option`."""
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(f"{option} {text}: is not a percentage; write one such as 5%.")
    return number

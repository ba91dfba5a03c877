"""What a meter reads: a sensor, and one reading of it; a component of the machine that has a sensor of its own."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Literal, NamedTuple


class Sample(NamedTuple):
    """One reading: s since sampling began, W, J of a running counter, MHz, degrees C; None where there is no sensor."""

    time_s: float
    power_w: float | None = None
    energy_j: float | None = None
    core_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    slowed_by: tuple[str, ...] = ()


class Component(NamedTuple):
    """A part of the machine with a sensor of its own: its power in W, or a counter of its joules.

    read: may raise OSError, RuntimeError or ValueError; None: it says nothing now.
    """

    name: str
    unit: Literal["W", "J"]
    read: Callable[[], float | None]


class Source(ABC):
    """A sensor. `period_s`: how often it is worth reading."""

    name: str
    covers: str
    period_s = 0.02

    @abstractmethod
    def read(self, time_s: float) -> Sample:
        """Read all sensors once. May raise OSError, RuntimeError or ValueError: that sample is then left out."""

    def describe(self) -> dict[str, Any]:
        """What the meter's sensors measured, for the run's record."""
        return {"name": self.name, "covers": self.covers}

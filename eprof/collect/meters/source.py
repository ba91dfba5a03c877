"""What a meter reads: a sensor, and one reading of it; a component of the machine that has a sensor of its own."""

import csv
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

# ----------------------------------------------------------------------------------------------------------------------
# What a meter reads, written into a table at once, row by row, by a thread that goes on while a program runs.


@contextmanager
def recording(path: Path, columns: Sequence[str], row: Callable[[], Iterable[str]], period_s: float) -> Iterator[None]:
    """Write a row every `period_s` s inside the block, below those that the file has.

    row: reads sensors; where it raises OSError, RuntimeError or ValueError, that row is left out.
    """
    stop = threading.Event()
    fresh = not path.exists()
    with path.open("a", newline="", buffering=1) as file:
        rows = csv.writer(file, lineterminator="\n")
        if fresh:
            rows.writerow(columns)

        def work() -> None:
            while True:
                with suppress(OSError, RuntimeError, ValueError):
                    rows.writerow(row())
                if stop.wait(period_s):
                    return

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


class Sample(NamedTuple):
    """One reading: s since sampling began, W, J of a running counter, MHz, degrees C; None where there is no sensor."""

    time_s: float
    power_w: float | None = None
    energy_j: float | None = None
    core_mhz: float | None = None
    memory_mhz: float | None = None
    temperature_c: float | None = None
    slowed_by: tuple[str, ...] = ()


PERIOD_S = 0.02
METHODS = {"W": "sampled power", "J": "energy counter"}


class Component(NamedTuple):
    """A part of the machine with a sensor of its own: its power in W, or a counter of its joules.

    Of a GPU also shares of time in which its units were busy, and its clock. read: may raise OSError, RuntimeError or
    ValueError; None: it says nothing now. period_s: how often it is worth reading.
    """

    name: str
    unit: Literal["W", "J", "share", "MHz"]
    read: Callable[[], float | None]
    period_s: float = PERIOD_S


class Source(ABC):
    """A sensor. `period_s`: how often it is worth reading."""

    name: str
    covers: str
    period_s = PERIOD_S

    @abstractmethod
    def read(self, time_s: float) -> Sample:
        """Read all sensors once. May raise OSError, RuntimeError or ValueError: that sample is then left out."""

    def describe(self) -> dict[str, Any]:
        """What the meter's sensors measured, for the run's record."""
        return {"name": self.name, "covers": self.covers}


class Nothing(Source):
    """No sensor: the power is in a log that another program writes."""

    name = "none"
    covers = "nothing"

    def read(self, time_s: float) -> Sample:
        """A reading of the meter that says nothing."""
        return Sample(time_s)

"""A power meter: any sensor (`Source`), read in a thread while a program runs, and the joules of its samples."""

import csv
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eprof.base.optional import mapped, median_of_known, ratio, relative_range

# ----------------------------------------------------------------------------------------------------------------------
# A thread that writes what sensors say into a table, row by row, while a program runs.


@contextmanager
def recording(path: Path, columns: Sequence[str], row: Callable[[], Iterable[str]], period_s: float) -> Iterator[None]:
    """While the `with` block runs, a thread appends the cells that `row` returns to the CSV file `path`.

    It does so every `period_s` s, and writes no row where `row`, which reads sensors, raises OSError, RuntimeError or
    ValueError. columns: the header of a new file.
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
    """One reading of a `Source`: s since sampling began, W, J of a running counter, MHz, degrees C. None: no sensor.

    slowed_by: why the GPU now runs slower than its setting.
    """

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
    """A part of the machine with a sensor of its own: of its power in W, or a counter of its joules.

    Or a unit of a GPU with the share of time in which it was busy, or a clock. read: the value now in `unit`; None: the
    sensor says nothing now; may raise OSError, RuntimeError or ValueError. period_s: how often it is worth reading.
    """

    name: str
    unit: Literal["W", "J", "share", "MHz"]
    read: Callable[[], float | None]
    period_s: float = PERIOD_S


class Source(ABC):
    """A sensor that a `Meter` reads every `period_s` s. covers: of what, in words. about: more for `run.json`."""

    name: str
    covers: str
    period_s = PERIOD_S
    about: Mapping[str, Any] = {}

    @abstractmethod
    def read(self, time_s: float) -> Sample:
        """Read all sensors once. May raise OSError, RuntimeError or ValueError: that sample is then left out."""

    def describe(self) -> dict[str, Any]:
        """The entries for `run.json` on the meter: name, what is covered, method."""
        return {"name": self.name, "covers": self.covers, **self.about}


class Nothing(Source):
    """No sensor: the power is in a log that another program writes."""

    name = "none"
    covers = "nothing"

    def read(self, time_s: float) -> Sample:
        """An empty sample, as there is no sensor."""
        return Sample(time_s)


COLUMNS = ("time_s", "power_w", "energy_j", "core_mhz", "memory_mhz", "temperature_c")


class Meter:
    """Reads a source's power while a program runs (`sampling`); `result`: the energy until its last end (`mark`).

    window_s, most_runs: how long, and how often at most, the program is to be run for one result.
    """

    # Energy counters and averaged power step about every 0.1 s: 5 s hold 50 steps.
    def __init__(self, source: Source, window_s: float = 5.0, most_runs: int = 1000) -> None:
        self.source = source
        self.window_s = window_s
        self.most_runs = most_runs
        self.samples: list[Sample] = []
        self.lost = 0
        self.ends: list[float] = []
        self._began = 0.0

    @contextmanager
    def sampling(self, path: Path) -> Iterator[None]:
        """Sample the source inside the `with` block, into `samples` and at once into the CSV file `path`."""
        self.samples = []
        self.ends = []
        self.lost = 0
        self._began = time.monotonic()
        with recording(path, COLUMNS, self._row, self.source.period_s):
            yield

    def _row(self) -> list[str]:
        """Read the source into `samples`; returns the cells of the row. `lost` counts the reads that raised."""
        self.lost += 1
        sample = self.source.read(time.monotonic() - self._began)
        self.samples.append(sample)
        self.lost -= 1
        values = {name: getattr(sample, name) for name in COLUMNS}
        digits = {"energy_j": ".3f"}
        return [mapped(format, value, digits.get(name, ".6g")) or "" for name, value in values.items()]

    def mark(self, runs: int) -> None:
        """Note the time: the metered program has now ended for the `runs`-th time."""
        assert runs == len(self.ends) + 1
        self.ends.append(time.monotonic() - self._began)

    def result(self) -> dict[str, Any]:
        """The entries `energy` for `run.json`: joules a run (None: too few samples), method, window, clocks..."""
        end = max(self.ends, default=0.0)
        runs = max(len(self.ends), 1)
        method, joules = METHODS["W"], integrated(self.samples, end)
        if counted := [sample for sample in self.samples if sample.energy_j is not None]:
            method, joules = METHODS["J"], counted_energy(counted, end)
        return {
            "joules": ratio(joules, runs),
            "method": method,
            "runs": runs,
            "window_s": end,
            "samples": len(self.samples),
            "lost_samples": self.lost,
            "core_mhz_spread": relative_range([sample.core_mhz for sample in self.samples]),
            **{name: median_of_known([getattr(sample, name) for sample in self.samples]) for name in COLUMNS[3:]},
            "slowed_by": sorted({reason for sample in self.samples for reason in sample.slowed_by}),
        }


def counted_energy(samples: Sequence[Sample], end_s: float) -> float | None:
    """Joules from 0 to `end_s` s at the mean power between the energy counter's first and last step; None: too few."""
    steps = [
        (now.time_s, float(now.energy_j or 0.0))
        for before, now in zip(samples, samples[1:], strict=False)
        if now.energy_j != before.energy_j
    ]
    inside = [step for step in steps if step[0] <= end_s]
    if len(inside) < 2:
        return None
    (first_s, first_j), (last_s, last_j) = inside[0], inside[-1]
    return (last_j - first_j) / (last_s - first_s) * end_s


def integrated(samples: Sequence[Sample], end_s: float) -> float | None:
    """Joules from 0 to `end_s` s by the trapezoid rule over sampled power; None for less than two samples."""
    inside = [sample for sample in samples if sample.time_s <= end_s]
    points = [(sample.time_s, sample.power_w) for sample in inside if sample.power_w is not None]
    if len(points) < 2 or points[-1][0] <= points[0][0]:
        return None
    area = sum((t1 - t0) * (p0 + p1) / 2 for (t0, p0), (t1, p1) in zip(points, points[1:], strict=False))
    return area / (points[-1][0] - points[0][0]) * end_s


def first(looks: Sequence[Callable[[], tuple[Source | None, str]]]) -> tuple[Meter | None, list[str]]:
    """(The meter of the first source that `looks` find, or None; why each one before it was not found).

    looks: functions that return (source, "") or (None, why).
    """
    reasons: list[str] = []
    for look in looks:
        source, why = look()
        if source is not None:
            return Meter(source), reasons
        reasons.append(why)
    return None, reasons

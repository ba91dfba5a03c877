"""The power rails of a Jetson board: INA3221 sensors below /sys, chosen by their labels."""

import math
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from eprof.base.text import pattern
from eprof.collect.meters.meter import Component, Sample, Source

_BUSES = ("sys/bus/i2c/drivers/ina3221x", "sys/bus/i2c/drivers/ina3221")
_CLOCKS = (
    ("sys/kernel/debug/clock/gbus/rate", "sys/kernel/debug/clock/emc/rate"),
    ("sys/kernel/debug/bpmp/debug/clk/gpcclk/rate", "sys/kernel/debug/bpmp/debug/clk/emc/rate"),
)
_TOTAL = pattern(r"_IN\b|_IN$|system|total", re.IGNORECASE)
_GPU = pattern(r"gpu", re.IGNORECASE)


class Jetson(Source):
    """The whole board where a rail measures it (as the constant power of the papers does), else the GPU's rail."""

    name = "Jetson rails"
    period_s = 0.05

    def __init__(self, rail: Component, clocks: tuple[Path, Path] | None) -> None:
        self._rail = rail
        self._clocks = clocks
        self.covers = f"rail {rail.name}"

    def read(self, time_s: float) -> Sample:
        """Read the Jetson's rail and, where they can be read, the clocks."""
        sample = Sample(time_s, power_w=self._rail.read())
        if self._clocks is None:
            return sample
        core, memory = self._clocks
        return sample._replace(core_mhz=_number(core) / 1e6, memory_mhz=_number(memory) / 1e6)

    def describe(self) -> dict[str, Any]:
        """The entries for `run.json`: name, rail, method, and whether clocks are known."""
        return {**super().describe(), "method": "sampled power", "clocks": self._clocks is not None}


def rails(root: Path) -> Iterator[Component]:
    """Every power rail as a component. Kernels have had two layouts: a file with mW, or two with mV and mA."""
    for bus in _BUSES:
        for label in sorted((root / bus).glob("*/iio:device*/rail_name_*")):
            number = label.name.removeprefix("rail_name_")
            yield _rail(label, 1e3, f"in_power{number}_input")
        for label in sorted((root / bus).glob("*/hwmon/hwmon*/in*_label")):
            number = label.name.removeprefix("in").removesuffix("_label")
            current = f"curr{number}_input"
            if label.with_name(current).exists():
                yield _rail(label, 1e6, f"in{number}_input", current)


def _rail(label: Path, per_watt: float, *files: str) -> Component:
    paths = [label.with_name(file) for file in files]
    return Component(label.read_text(errors="replace").strip(), "W", lambda: math.prod(map(_number, paths)) / per_watt)


def _number(path: Path) -> float:
    return float(path.read_text())


def components(root: Path = Path("/")) -> Iterator[Component]:
    """Every rail of the Jetson with a label. root: where /sys stands."""
    with suppress(OSError):
        yield from (rail for rail in rails(root) if rail.name)


def find(root: Path = Path("/")) -> tuple[Source | None, str]:
    """The meter of the Jetson's best rail and "", or None and why there is none. root: where /sys stands."""
    try:
        labelled = [rail for rail in rails(root) if rail.name]
    except OSError as err:
        return None, f"Jetson rails: cannot be read ({err.strerror})"
    if not labelled:
        return None, "Jetson rails: none here"
    boards = [rail for rail in labelled if _TOTAL.search(rail.name)]
    gpus = [rail for rail in labelled if _GPU.search(rail.name)]
    if not boards and not gpus:
        labels = ", ".join(rail.name for rail in labelled)
        return None, f"Jetson rails: none measures the board or the GPU (seen: {labels})"
    pairs = [(root / core, root / memory) for core, memory in _CLOCKS]
    clocks = next((pair for pair in pairs if all(os.access(path, os.R_OK) for path in pair)), None)
    return Jetson([*boards, *gpus][0], clocks), ""

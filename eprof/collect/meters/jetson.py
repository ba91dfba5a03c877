"""The power rails of a Jetson board: INA3221 sensors below /sys, chosen by their labels."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.text import pattern
from eprof.collect.meters.source import Component, Sample, Source

_BUSES = ("sys/bus/i2c/drivers/ina3221x", "sys/bus/i2c/drivers/ina3221")
_CLOCKS = (
    ("sys/kernel/debug/clock/gbus/rate", "sys/kernel/debug/clock/emc/rate"),
    ("sys/kernel/debug/bpmp/debug/clk/gpcclk/rate", "sys/kernel/debug/bpmp/debug/clk/emc/rate"),
)
_TOTAL = pattern(r"_IN\b|_IN$|system|total", re.IGNORECASE)
_GPU = pattern(r"gpu", re.IGNORECASE)


class Rail(NamedTuple):
    """One rail: either a file with mW, or two with mV and mA."""

    label: str
    milliwatts: Path | None = None
    millivolts: Path | None = None
    milliamperes: Path | None = None

    def watts(self) -> float:
        """Power of the Jetson's rail now, W. Raises OSError, ValueError."""
        if self.milliwatts is not None:
            return _number(self.milliwatts) / 1e3
        assert self.millivolts is not None
        assert self.milliamperes is not None
        return _number(self.millivolts) * _number(self.milliamperes) / 1e6


def _number(path: Path) -> float:
    try:
        return float(path.read_text())
    except ValueError as err:
        raise OSError(f"{path}: holds no number") from err


class Jetson(Source):
    """The whole board where a rail measures it (as the constant power of the papers does), else the GPU's rail."""

    name = "Jetson rails"
    period_s = 0.05

    def __init__(self, rail: Rail, clocks: tuple[Path, Path] | None) -> None:
        self._rail = rail
        self._clocks = clocks
        self.covers = f"rail {rail.label}"

    def read(self, time_s: float) -> Sample:
        """Read the Jetson's rail and, where they can be read, the clocks."""
        sample = Sample(time_s, power_w=self._rail.watts())
        if self._clocks is None:
            return sample
        core, memory = self._clocks
        return sample._replace(core_mhz=_number(core) / 1e6, memory_mhz=_number(memory) / 1e6)

    def describe(self) -> dict[str, Any]:
        """The Jetson's rail, and whether clocks are known."""
        return {**super().describe(), "method": "sampled power", "clocks": self._clocks is not None}


def rails(root: Path) -> Iterator[Rail]:
    """Every power rail of a Jetson below `root` (/), in both layouts that kernels have had."""
    for bus in _BUSES:
        for label in sorted((root / bus).glob("*/iio:device*/rail_name_*")):
            number = label.name.removeprefix("rail_name_")
            yield Rail(_label(label), milliwatts=label.with_name(f"in_power{number}_input"))
        for label in sorted((root / bus).glob("*/hwmon/hwmon*/in*_label")):
            number = label.name.removeprefix("in").removesuffix("_label")
            current = label.with_name(f"curr{number}_input")
            if current.exists():
                yield Rail(_label(label), millivolts=label.with_name(f"in{number}_input"), milliamperes=current)


def _label(path: Path) -> str:
    """The label of a Jetson's rail."""
    return path.read_text(errors="replace").strip()


def components(root: Path = Path("/")) -> Iterator[Component]:
    """Every rail of the Jetson with a label. root: where /sys stands."""
    with suppress(OSError):
        for rail in rails(root):
            if rail.label:
                yield Component(rail.label, "W", rail.watts)


def find(root: Path = Path("/")) -> tuple[Source | None, str]:
    """The Jetson's rail to measure, or why there is none. `root`: where /sys stands."""
    try:
        labelled = [rail for rail in rails(root) if rail.label]
    except OSError as err:
        return None, f"Jetson rails: cannot be read ({err.strerror})"
    if not labelled:
        return None, "Jetson rails: none here"
    boards = [rail for rail in labelled if _TOTAL.search(rail.label)]
    gpus = [rail for rail in labelled if _GPU.search(rail.label)]
    if not boards and not gpus:
        labels = ", ".join(rail.label for rail in labelled)
        return None, f"Jetson rails: none measures the board or the GPU (seen: {labels})"
    pairs = [(root / core, root / memory) for core, memory in _CLOCKS]
    clocks = next((pair for pair in pairs if all(os.access(path, os.R_OK) for path in pair)), None)
    return Jetson([*boards, *gpus][0], clocks), ""

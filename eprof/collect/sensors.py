"""Sensors of this machine: RAPL, Jetson rails and hwmon, read below /sys; which of these, or NVML, is its meter.

Power by component is read in a thread into one table while a program runs. The table has a column of time (s since the
epoch) and one a component: its power (`gpu0_w`) or a counter of its joules (`package-0_j`). A cell is empty where a
sensor gave no answer. In all functions `root` is where /sys stands.
"""

import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eprof.base.optional import mapped
from eprof.base.text import pattern, phrase
from eprof.collect import nvml
from eprof.collect.machine import text_of
from eprof.collect.meter import METHODS, PERIOD_S, Component, Meter, Sample, Source, first, recording


def find_meter(host: bool = False) -> tuple[Meter | None, list[str]]:
    """(The first meter found, or None; why each before it is not there). host: RAPL's; else NVML's or a Jetson's."""
    return first((find_rapl,) if host else (nvml.find, find_jetson))


def components(root: Path = Path("/"), activity: bool = False) -> list[Component]:
    """All components of this machine that have a sensor, of RAPL, Jetson rails, NVML and hwmon, none counted twice.

    activity: also how busy units of GPUs are.
    """
    boards = list(hwmon_components(root))
    source, _ = nvml.find()
    if isinstance(source, nvml.Nvml):
        boards = [*source.components(), *boards]
    if activity:
        boards += [part for board in nvml.sampled_boards()[0] for part in board.components()]
    parts = list(rapl_components(root))
    with suppress(OSError):
        parts += [rail for rail in jetson_rails(root) if rail.name]
    # Whether the platform's counter sees what is plugged in depends on the board: beside boards it is left out.
    return [part for part in parts if not (boards and part.name == _PLATFORM)] + boards


def sampling(parts: Sequence[Component], path: Path, epoch_s: float) -> AbstractContextManager[None]:
    """Inside the `with` block, read all components into the table `path`. epoch_s: when the monotonic clock was 0."""

    def row() -> list[str]:
        return [f"{epoch_s + time.monotonic():.6f}", *map(_cell, parts)]

    columns = ["time_s", *(f"{component.name}_{component.unit.lower()}" for component in parts)]
    return recording(path, columns, row, max((component.period_s for component in parts), default=PERIOD_S))


def _cell(component: Component) -> str:
    try:
        return mapped("{:.6f}".format, component.read()) or ""
    except (OSError, RuntimeError, ValueError):
        return ""


def _number(path: Path) -> float:
    return float(path.read_text())


# ----------------------------------------------------------------------------------------------------------------------
# RAPL, the energy counters of the processor: of a program on the CPU, or of the host beside a GPU. Never the GPU.

_POWERCAP = "sys/class/powercap"
_PLATFORM = "psys"  # the whole board, with the packages that are counted already


class RaplZone:
    """A RAPL counter: joules since it was opened, though the file wraps at its range."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range_uj = int((folder / "max_energy_range_uj").read_text())
        self._last_uj = int(self._file.read_text())
        self._total_uj = 0

    def joules(self) -> float:
        """Joules since the counter was opened; to be read more often than the file wraps."""
        now_uj = int(self._file.read_text())
        self._total_uj += (now_uj - self._last_uj) % (self._range_uj or 1 << 64)
        self._last_uj = now_uj
        return self._total_uj / 1e6


class Rapl(Source):
    """All processor packages, and their memory where it has a counter of its own, added up."""

    name = "RAPL"

    def __init__(self, packages: list[Path], memories: list[Path]) -> None:
        self._zones = [RaplZone(folder) for folder in [*packages, *memories]]
        self.covers = f"processor packages {'with' if memories else 'without'} their memory, and no GPU"
        self.about = {"method": METHODS["J"], "packages": len(packages)}

    def read(self, time_s: float) -> Sample:
        """Read the RAPL counters of all packages and memories, added up."""
        return Sample(time_s, energy_j=sum(zone.joules() for zone in self._zones))


def find_rapl(root: Path = Path("/")) -> tuple[Source | None, str]:
    """(The source of all processor packages by RAPL, ""), or (None, why there is none)."""
    packages, memories = _rapl_domains(root)
    if not packages:
        return None, "RAPL: none here (virtual machines and many containers have none: no /sys/class/powercap)"
    try:
        return Rapl(packages, memories), ""
    except PermissionError:
        return None, "RAPL: only root may read it (sudo chmod a+r /sys/class/powercap/*/energy_uj)"
    except (OSError, ValueError) as err:
        return None, f"RAPL: cannot be read ({err})"


def rapl_counters(root: Path = Path("/")) -> dict[Path, int]:
    """RAPL's files that count uJ, of packages and memories -> where each count wraps; {} where one may not be read."""
    try:
        return {
            domain / "energy_uj": int((domain / "max_energy_range_uj").read_text())
            for domain in chain(*_rapl_domains(root))
            if (domain / "energy_uj").read_text()
        }
    except (OSError, ValueError):
        return {}


def _rapl_domains(root: Path) -> tuple[list[Path], list[Path]]:
    """(The folders of RAPL's packages, those of their memories)."""
    zones = sorted((root / _POWERCAP).glob("intel-rapl:*"))
    packages = [zone for zone in zones if zone.name.count(":") == 1 and _rapl_label(zone) != _PLATFORM]
    return packages, [zone for zone in zones if zone.name.count(":") == 2 and _rapl_label(zone) == "dram"]


def rapl_components(root: Path = Path("/")) -> Iterator[Component]:
    """Every RAPL zone that may be read, as a component: packages, cores in them, their memory, the platform."""
    for zone in sorted((root / _POWERCAP).glob("intel-rapl:*")):
        label = _rapl_label(zone)
        if zone.name.count(":") > 1:
            label += _rapl_label(zone.with_name(zone.name.rpartition(":")[0])).removeprefix("package")
        with suppress(OSError, ValueError):
            yield Component(label or zone.name, "J", RaplZone(zone).joules)


def _rapl_label(zone: Path) -> str:
    """The part that a RAPL zone measures: "package-0", "core", "uncore", "dram", "psys"; "" where it does not say."""
    return text_of(zone / "name").strip()


# ----------------------------------------------------------------------------------------------------------------------
# The power rails of a Jetson board: INA3221 sensors, chosen by their labels.

_JETSON_BUSES = ("sys/bus/i2c/drivers/ina3221x", "sys/bus/i2c/drivers/ina3221")
_JETSON_CLOCKS = (
    ("sys/kernel/debug/clock/gbus/rate", "sys/kernel/debug/clock/emc/rate"),
    ("sys/kernel/debug/bpmp/debug/clk/gpcclk/rate", "sys/kernel/debug/bpmp/debug/clk/emc/rate"),
)
_TOTAL = pattern(r"_IN\b|_IN$|system|total", re.IGNORECASE)
_GPU = pattern(r"gpu", re.IGNORECASE)


class Jetson(Source):
    """One power rail of a Jetson as a source, and the clocks of core and memory where `clocks`, their files, exist."""

    name = "Jetson rails"
    period_s = 0.05

    def __init__(self, rail: Component, clocks: tuple[Path, Path] | None) -> None:
        self._rail = rail
        self._clocks = clocks
        self.covers = f"rail {rail.name}"
        self.about = {"method": METHODS["W"], "clocks": clocks is not None}

    def read(self, time_s: float) -> Sample:
        """Read the Jetson's rail and, where they can be read, the clocks."""
        sample = Sample(time_s, power_w=self._rail.read())
        if self._clocks is None:
            return sample
        core, memory = self._clocks
        return sample._replace(core_mhz=_number(core) / 1e6, memory_mhz=_number(memory) / 1e6)


def jetson_rails(root: Path) -> Iterator[Component]:
    """Every power rail of a Jetson as a component. Linux has had two layouts: a file with mW, or two with mV and mA."""

    def rail(label: Path, per_watt: float, *files: str) -> Component:
        paths = [label.with_name(file) for file in files]
        name = label.read_text(errors="replace").strip()
        return Component(name, "W", lambda: math.prod(map(_number, paths)) / per_watt)

    for bus in _JETSON_BUSES:
        for label in sorted((root / bus).glob("*/iio:device*/rail_name_*")):
            number = label.name.removeprefix("rail_name_")
            yield rail(label, 1e3, f"in_power{number}_input")
        for label in sorted((root / bus).glob("*/hwmon/hwmon*/in*_label")):
            number = label.name.removeprefix("in").removesuffix("_label")
            current = f"curr{number}_input"
            if label.with_name(current).exists():
                yield rail(label, 1e6, f"in{number}_input", current)


def find_jetson(root: Path = Path("/")) -> tuple[Source | None, str]:
    """(The source of a Jetson's whole board if a rail measures that, else of its GPU, ""), or (None, why not)."""
    try:
        labelled = [rail for rail in jetson_rails(root) if rail.name]
    except OSError as err:
        return None, f"Jetson rails: cannot be read ({err.strerror})"
    if not labelled:
        return None, "Jetson rails: none here"
    boards = [rail for rail in labelled if _TOTAL.search(rail.name)]
    gpus = [rail for rail in labelled if _GPU.search(rail.name)]
    if not boards and not gpus:
        labels = ", ".join(rail.name for rail in labelled)
        return None, f"Jetson rails: none measures the board or the GPU (seen: {labels})"
    pairs = [(root / core, root / memory) for core, memory in _JETSON_CLOCKS]
    clocks = next((pair for pair in pairs if all(os.access(path, os.R_OK) for path in pair)), None)
    return Jetson([*boards, *gpus][0], clocks), ""


# ----------------------------------------------------------------------------------------------------------------------
# Boards that the kernel's hardware monitoring meters: AMD's and Intel's GPUs, and the whole node by ACPI.
#
# Not tried on such hardware yet: the names of files are those of the kernel's documentation (Documentation/gpu/amdgpu,
# Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon, Documentation/hwmon/acpi_power_meter).

_HWMON = "sys/class/hwmon"
_METRICS_OF_APU = 2  # the main number of the format of `gpu_metrics` where GPU and CPU share a package


class _Driver(NamedTuple):
    """A driver whose hwmon sensors are of one whole board. board: what that is called. files: the best first, uW or uJ.

    vendor: how OpenCL's name for the maker of the driver's GPUs begins; "" for no GPU.
    """

    board: str
    vendor: str
    unit: Literal["W", "J"]
    files: tuple[str, ...]


_DRIVERS = {
    "amdgpu": _Driver("amdgpu", "Advanced Micro", "W", ("power1_input", "power1_average")),
    "i915": _Driver("intel-gpu", "Intel", "J", ("energy1_input",)),
    "xe": _Driver("intel-gpu", "Intel", "J", ("energy1_input",)),
    "power_meter": _Driver("system", "", "W", ("power1_average",)),
}
# Field of `Sample` -> file, and its unit in those of the field.
_BESIDE = {"core_mhz": ("freq1_input", 1e6), "memory_mhz": ("freq2_input", 1e6), "temperature_c": ("temp1_input", 1e3)}


class Hwmon(Source):
    """One board of hwmon: its power or counter of joules; of amdgpu clocks and temperature, too.

    bus: its PCI address, "0000:03:00.0"; "" where Linux does not tell.
    """

    name = "hwmon"

    def __init__(self, folder: Path, driver: _Driver) -> None:
        self._folder = folder
        self.driver = driver
        self._file = next((name for name in driver.files if (folder / name).exists()), driver.files[0])
        self.bus = (folder / "device").resolve().name
        self.covers = f"the board that {driver.board} meters"
        self.about = {"method": METHODS[driver.unit], "bus": self.bus}
        self.value()

    def value(self) -> float:
        """The board's power in W, or its counter in J, as its driver meters. Raises OSError, ValueError."""
        return _number(self._folder / self._file) / 1e6

    def read(self, time_s: float) -> Sample:
        """Read the board's power or joules, clocks and temperature from hwmon."""
        measured = {"W": "power_w", "J": "energy_j"}[self.driver.unit]
        numbers: dict[str, Any] = {measured: self.value()}
        for name, (file, unit) in _BESIDE.items():
            with suppress(OSError, ValueError):
                numbers[name] = _number(self._folder / file) / unit
        return Sample(time_s)._replace(**numbers)


def hwmon_boards(root: Path = Path("/")) -> Iterator[Hwmon]:
    """Every board that hwmon meters and that may be read, but a GPU of AMD in one package with a CPU of RAPL."""
    for folder in sorted((root / _HWMON).glob("hwmon*")):
        with suppress(OSError, ValueError):
            driver = _DRIVERS.get((folder / "name").read_text().strip())
            form = b""
            with suppress(OSError):
                form = (folder / "device" / "gpu_metrics").read_bytes()[2:3]
            if driver is not None and form != bytes([_METRICS_OF_APU]):
                yield Hwmon(folder, driver)


def hwmon_components(root: Path = Path("/")) -> Iterator[Component]:
    """Every board of hwmon as a component with a name of its own, such as "amdgpu1"."""
    number: dict[str, int] = {}
    for board in hwmon_boards(root):
        kind = board.driver.board
        place = number[kind] = number.get(kind, -1) + 1
        yield Component(f"{kind}{place or ''}", board.driver.unit, board.value)


def hwmon_board(bus: str, vendor: str, root: Path = Path("/")) -> tuple[Source | None, str]:
    """(The source by hwmon of the GPU at PCI address `bus`, or of `vendor`'s only one, ""), or (None, why not)."""
    known = [board for board in hwmon_boards(root) if board.driver.vendor and vendor.startswith(board.driver.vendor)]
    here = [board for board in known if bus in ("", board.bus)]
    if len(here) == 1:
        return here[0], ""
    if here:
        return None, f"hwmon: {len(here)} boards, and OpenCL does not tell which of them the GPU is"
    return None, f"hwmon: no GPU of {vendor} that it meters{phrase(' at {}', bus)}"

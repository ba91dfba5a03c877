"""Boards that the kernel's hardware monitoring meters: AMD's and Intel's GPUs, and the whole node by ACPI.

Not tried on such hardware yet: the names of files are those of the kernel's documentation (Documentation/gpu/amdgpu,
Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon, Documentation/hwmon/acpi_power_meter).
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from eprof.base.text import phrase
from eprof.collect.meters.meter import METHODS, Component, Sample, Source

_FOLDER = "sys/class/hwmon"
_METRICS_OF_APU = 2  # the main number of the format of `gpu_metrics` where GPU and CPU share a package


class _Driver(NamedTuple):
    """A driver whose sensors are of one whole board: what that is called; its files, the best first, in uW or uJ.

    vendor: how the maker of its GPUs begins its name in OpenCL; "" for no GPU.
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


class Hwmon(Source):
    """One board: its power or counter of joules, and where the driver tells them (amdgpu) clocks and temperature.

    bus: its place, as "0000:03:00.0"; "" where the kernel does not tell.
    """

    name = "hwmon"

    def __init__(self, folder: Path, driver: _Driver) -> None:
        self._folder = folder
        self.driver = driver
        self._file = next((name for name in driver.files if (folder / name).exists()), driver.files[0])
        self.bus = (folder / "device").resolve().name
        self.covers = f"the board that {driver.board} meters"
        self.value()

    def value(self) -> float:
        """The board's W, or J of its counter. Raises OSError, ValueError."""
        return int((self._folder / self._file).read_text()) / 1e6

    def read(self, time_s: float) -> Sample:
        """Read the board's power or joules, clocks and temperature now."""
        core_mhz, memory_mhz = self._told("freq1_input", 1e6), self._told("freq2_input", 1e6)
        sample = Sample(time_s, None, None, core_mhz, memory_mhz, self._told("temp1_input", 1e3))
        if self.driver.unit == "W":
            return sample._replace(power_w=self.value())
        return sample._replace(energy_j=self.value())

    def _told(self, name: str, unit: float) -> float | None:
        with suppress(OSError, ValueError):
            return int((self._folder / name).read_text()) / unit
        return None

    def describe(self) -> dict[str, Any]:
        """The entries for `run.json`: name, what is covered, method, place on the bus."""
        return {**super().describe(), "method": METHODS[self.driver.unit], "bus": self.bus}


def boards(root: Path = Path("/")) -> Iterator[Hwmon]:
    """Every board that hwmon meters and that may be read. root: where /sys stands."""
    for folder in sorted((root / _FOLDER).glob("hwmon*")):
        with suppress(OSError, ValueError):
            driver = _DRIVERS.get((folder / "name").read_text().strip())
            if driver is not None and not _lies_in_package(folder):
                yield Hwmon(folder, driver)


def _lies_in_package(folder: Path) -> bool:
    """Whether a GPU of AMD shares its package, and so its joules, with a CPU that RAPL reads."""
    with suppress(OSError):
        return (folder / "device" / "gpu_metrics").read_bytes()[2:3] == bytes([_METRICS_OF_APU])
    return False


def components(root: Path = Path("/")) -> Iterator[Component]:
    """Every board of hwmon as a component with a name of its own, such as "amdgpu1". root: where /sys stands."""
    number: dict[str, int] = {}
    for board in boards(root):
        kind = board.driver.board
        place = number[kind] = number.get(kind, -1) + 1
        yield Component(f"{kind}{place or ''}", board.driver.unit, board.value)


def board(bus: str, vendor: str, root: Path = Path("/")) -> tuple[Source | None, str]:
    """The GPU board at place `bus` ("": the only one of its maker) and "", or None and why there is none."""
    known = [board for board in boards(root) if board.driver.vendor and vendor.startswith(board.driver.vendor)]
    here = [board for board in known if bus in ("", board.bus)]
    if len(here) == 1:
        return here[0], ""
    if here:
        return None, f"hwmon: {len(here)} boards, and OpenCL does not tell which of them the GPU is"
    return None, f"hwmon: no GPU of {vendor} that it meters{phrase(' at {}', bus)}"

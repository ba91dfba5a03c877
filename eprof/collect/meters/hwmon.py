"""Boards that the kernel's hardware monitoring meters: AMD's and Intel's GPUs, and the whole node by ACPI.

Not tried on such hardware yet: the names of files are those of the kernel's documentation (Documentation/gpu/amdgpu,
Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon, Documentation/hwmon/acpi_power_meter).
"""

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from eprof.collect.meters.source import Component

_FOLDER = "sys/class/hwmon"
_METRICS_OF_APU = 2  # the main number of the format of `gpu_metrics` where GPU and CPU share a package


class _Driver(NamedTuple):
    """A driver whose sensors are of one whole board: what that is called; its files, the best first, in uW or uJ."""

    board: str
    unit: Literal["W", "J"]
    files: tuple[str, ...]


_DRIVERS = {
    "amdgpu": _Driver("amdgpu", "W", ("power1_input", "power1_average")),
    "i915": _Driver("intel-gpu", "J", ("energy1_input",)),
    "xe": _Driver("intel-gpu", "J", ("energy1_input",)),
    "power_meter": _Driver("system", "W", ("power1_average",)),
}


def components(root: Path = Path("/")) -> Iterator[Component]:
    """Every board that the kernel's hardware monitoring meters and that may be read. root: where /sys stands."""
    found: dict[str, int] = {}
    for folder in sorted((root / _FOLDER).glob("hwmon*")):
        with suppress(OSError, ValueError):
            driver = _DRIVERS.get((folder / "name").read_text().strip())
            if driver is None or _lies_in_package(folder):
                continue
            names = [name for name in driver.files if (folder / name).exists()] or driver.files
            file = folder / names[0]
            _millionths(file)
            number = found[driver.board] = found.get(driver.board, -1) + 1
            yield Component(f"{driver.board}{number or ''}", driver.unit, partial(_millionths, file))


def _millionths(file: Path) -> float:
    """What a file of hwmon holds in uW or uJ, in W or J. Raises OSError, ValueError."""
    return int(file.read_text()) / 1e6


def _lies_in_package(folder: Path) -> bool:
    """Whether a GPU of AMD shares its package, and so its joules, with a CPU that RAPL reads."""
    with suppress(OSError):
        return (folder / "device" / "gpu_metrics").read_bytes()[2:3] == bytes([_METRICS_OF_APU])
    return False

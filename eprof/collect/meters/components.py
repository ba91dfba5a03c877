"""Power by component: every sensor of this machine, read in a thread into one table while a program runs.

The table has a column of time (s since the epoch) and one a component: its power (`gpu0_w`) or a counter of its joules
(`package-0_j`). A cell is empty where a sensor gave no answer.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from eprof.collect.meters import jetson, nvml, rapl
from eprof.collect.meters.source import PERIOD_S, Component, recording

# ----------------------------------------------------------------------------------------------------------------------
# Boards that the kernel's hardware monitoring meters: AMD's and Intel's GPUs, and the whole node by ACPI.
#
# Not tried on such hardware yet: the names of files are those of the kernel's documentation (Documentation/gpu/amdgpu,
# Documentation/ABI/testing/sysfs-driver-intel-{i915,xe}-hwmon, Documentation/hwmon/acpi_power_meter).

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


def _of_hwmon(root: Path = Path("/")) -> Iterator[Component]:
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


def find(root: Path = Path("/"), activity: bool = False) -> list[Component]:
    """The components of this machine that have a sensor; none where there is none. root: where /sys stands.

    activity: also how busy the units of GPUs are that say so.
    """
    boards = list(_of_hwmon(root))
    source, _ = nvml.find()
    if isinstance(source, nvml.Nvml):
        boards = [*source.components(), *boards]
    if activity:
        boards += [part for board in nvml.sampled_boards()[0] for part in board.components()]
    parts = [*rapl.components(root), *jetson.components(root)]
    # Whether the platform's counter sees what is plugged in depends on the board: beside boards it is left out.
    return [part for part in parts if not (boards and part.name == rapl.PLATFORM)] + boards


def sampling(components: Sequence[Component], path: Path, epoch_s: float) -> AbstractContextManager[None]:
    """Read the power of all components inside the block; each row goes to `path` at once, below those there.

    epoch_s: when the monotonic clock was 0, in s since the epoch.
    """

    def row() -> list[str]:
        return [f"{epoch_s + time.monotonic():.6f}", *map(_cell, components)]

    columns = ["time_s", *(f"{component.name}_{component.unit.lower()}" for component in components)]
    return recording(path, columns, row, max((component.period_s for component in components), default=PERIOD_S))


def _cell(component: Component) -> str:
    try:
        value = component.read()
    except (OSError, RuntimeError, ValueError):
        return ""
    return "" if value is None else f"{value:.6f}"

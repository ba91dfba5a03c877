"""RAPL, the energy counters of the processor: of a program on the CPU, or of the host beside a GPU. Never the GPU."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

from eprof.collect.machine import text_of
from eprof.collect.meters.meter import Component, Sample, Source

_FOLDER = "sys/class/powercap"
PLATFORM = "psys"  # the whole board, with the packages that are counted already


class Zone:
    """A RAPL counter: joules since it was opened, though the file wraps at its range."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "energy_uj"
        self._range_uj = int((folder / "max_energy_range_uj").read_text())
        self._last_uj = self._count()
        self._total_uj = 0

    def _count(self) -> int:
        return int(self._file.read_text())

    def joules(self) -> float:
        """Joules since the counter was opened; to be read more often than the file wraps."""
        now_uj = self._count()
        self._total_uj += (now_uj - self._last_uj) % (self._range_uj or 1 << 64)
        self._last_uj = now_uj
        return self._total_uj / 1e6


class Rapl(Source):
    """All processor packages, and their memory where it has a counter of its own, added up."""

    name = "RAPL"

    def __init__(self, packages: list[Path], memories: list[Path]) -> None:
        self._packages = len(packages)
        self._zones = [Zone(folder) for folder in [*packages, *memories]]
        self.covers = f"processor packages {'with' if memories else 'without'} their memory, and no GPU"

    def read(self, time_s: float) -> Sample:
        """Read the RAPL counters."""
        return Sample(time_s, energy_j=sum(zone.joules() for zone in self._zones))

    def describe(self) -> dict[str, Any]:
        """The entries for `run.json`: name, what is covered, method, number of processor packages."""
        return {**super().describe(), "method": "energy counter", "packages": self._packages}


def find(root: Path = Path("/")) -> tuple[Source | None, str]:
    """The meter of all processor packages and "", or None and why there is none. root: where /sys stands."""
    packages, memories = _domains(root)
    if not packages:
        return None, "RAPL: none here (virtual machines and many containers have none: no /sys/class/powercap)"
    try:
        return Rapl(packages, memories), ""
    except PermissionError:
        return None, "RAPL: only root may read it (sudo chmod a+r /sys/class/powercap/*/energy_uj)"
    except (OSError, ValueError) as err:
        return None, f"RAPL: cannot be read ({err})"


def counters(root: Path = Path("/")) -> dict[Path, int]:
    """File that counts microjoules -> the range at which it wraps, no joule twice; empty where none may be read."""
    try:
        return {
            domain / "energy_uj": int((domain / "max_energy_range_uj").read_text())
            for domain in chain(*_domains(root))
            if (domain / "energy_uj").read_text()
        }
    except (OSError, ValueError):
        return {}


def _domains(root: Path) -> tuple[list[Path], list[Path]]:
    zones = sorted((root / _FOLDER).glob("intel-rapl:*"))
    packages = [zone for zone in zones if zone.name.count(":") == 1 and _label(zone) != PLATFORM]
    return packages, [zone for zone in zones if zone.name.count(":") == 2 and _label(zone) == "dram"]


def components(root: Path = Path("/")) -> Iterator[Component]:
    """Every RAPL zone that may be read, as a component: packages, what lies in them, their memory, the platform."""
    for zone in sorted((root / _FOLDER).glob("intel-rapl:*")):
        label = _label(zone)
        if zone.name.count(":") > 1:
            label += _label(zone.with_name(zone.name.rpartition(":")[0])).removeprefix("package")
        with suppress(OSError, ValueError):
            yield Component(label or zone.name, "J", Zone(zone).joules)


def _label(zone: Path) -> str:
    """The part that a RAPL zone measures: "package-0", "core", "uncore", "dram", "psys"; "" where it does not say."""
    return text_of(zone / "name").strip()

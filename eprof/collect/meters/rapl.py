"""RAPL, the energy counters of the processor: of a program on the CPU, or of the host beside a GPU. Never the GPU."""

from itertools import chain
from pathlib import Path
from typing import Any

from eprof.collect.meters.source import Sample, Source

_FOLDER = "sys/class/powercap"
_PLATFORM = "psys"  # the whole board, with the packages that are counted already
_MEMORY = "dram"


class Rapl(Source):
    """All processor packages, and their memory where it has a counter of its own, added up."""

    name = "RAPL"

    def __init__(self, packages: list[Path], memories: list[Path]) -> None:
        self._packages = len(packages)
        self._domains = [*packages, *memories]
        self._ranges = [int((domain / "max_energy_range_uj").read_text()) for domain in self._domains]
        self._last = [self._count(domain) for domain in self._domains]
        self._total = 0.0
        self.covers = f"processor packages {'with' if memories else 'without'} their memory, and no GPU"

    @staticmethod
    def _count(domain: Path) -> int:
        return int((domain / "energy_uj").read_text())

    def read(self, time_s: float) -> Sample:
        """Read the counters; each wraps at its range."""
        for i, domain in enumerate(self._domains):
            now = self._count(domain)
            step = now - self._last[i]
            if step < 0:
                step += self._ranges[i]
            self._total += step / 1e6
            self._last[i] = now
        return Sample(time_s, energy_j=self._total)

    def describe(self) -> dict[str, Any]:
        """The packages."""
        return {**super().describe(), "method": "energy counter", "packages": self._packages}


def find(root: Path = Path("/")) -> tuple[Source | None, str]:
    """The packages of this machine, or why they cannot be read. root: where /sys stands."""
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
    """The files that count microjoules, none of them those of another, with the range at which each wraps.

    Empty where there are none, or none may be read.
    """
    try:
        return {
            domain / "energy_uj": int((domain / "max_energy_range_uj").read_text())
            for domain in chain(*_domains(root))
            if (domain / "energy_uj").read_text()
        }
    except (OSError, ValueError):
        return {}


def _domains(root: Path) -> tuple[list[Path], list[Path]]:
    """Processor packages, and memories that they do not contain."""
    zones = sorted((root / _FOLDER).glob("intel-rapl:*"))
    packages = [zone for zone in zones if zone.name.count(":") == 1 and _label(zone) != _PLATFORM]
    return packages, [zone for zone in zones if zone.name.count(":") == 2 and _label(zone) == _MEMORY]


def _label(zone: Path) -> str:
    """What a zone measures: "package-0", "core", "uncore", "dram", "psys"; "" where it does not say."""
    try:
        return (zone / "name").read_text().strip()
    except OSError:
        return ""

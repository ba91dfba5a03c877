"""RAPL, the energy counters of the processor: the host's share, measured only on request. Never the GPU."""

from pathlib import Path
from typing import Any

from eprof.collect.meters.source import Sample, Source

_FOLDER = "sys/class/powercap"


class Rapl(Source):
    """All processor packages, added up."""

    name = "RAPL"
    covers = "processor packages of the host, not the GPU"

    def __init__(self, packages: list[Path]) -> None:
        self._packages = packages
        self._ranges = [int((package / "max_energy_range_uj").read_text()) for package in packages]
        self._last = [self._count(package) for package in packages]
        self._total = 0.0

    @staticmethod
    def _count(package: Path) -> int:
        return int((package / "energy_uj").read_text())

    def read(self, time_s: float) -> Sample:
        """Read the counters; each wraps at its range."""
        for i, package in enumerate(self._packages):
            now = self._count(package)
            step = now - self._last[i]
            if step < 0:
                step += self._ranges[i]
            self._total += step / 1e6
            self._last[i] = now
        return Sample(time_s, energy_j=self._total)

    def describe(self) -> dict[str, Any]:
        """The packages."""
        return {**super().describe(), "method": "energy counter", "packages": len(self._packages)}


def find(root: Path = Path("/")) -> tuple[Source | None, str]:
    """The packages of this machine, or why they cannot be read."""
    packages = sorted(path for path in (root / _FOLDER).glob("intel-rapl:*") if path.name.count(":") == 1)
    if not packages:
        return None, "RAPL: none here"
    try:
        return Rapl(packages), ""
    except PermissionError:
        return None, f"RAPL: only root may read it (sudo chmod a+r {packages[0]}/energy_uj)"
    except (OSError, ValueError) as err:
        return None, f"RAPL: cannot be read ({err})"

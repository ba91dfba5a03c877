"""What SimGrid's energy plugins print at the end of a simulation."""

from pathlib import Path
from typing import NamedTuple

from eprof.base.text import pattern

_MOST_BYTES = 64 << 20
_HOSTS = pattern(
    r"\[\s*(\d+\.\d+)\] \[host_energy/INFO\] Total energy consumption: \S+ Joules \(used hosts: (\d+\.\d+) Joules"
)
_LINKS = pattern(r"\[link_energy/INFO\] Total energy over all links: (\d+\.\d+)\n")


class Energy(NamedTuple):
    """Simulated time in s, the energy of the hosts that ran a process, and that of their links; None: not simulated."""

    time_s: float
    hosts_j: float
    links_j: float | None


def read(log: Path) -> Energy | None:
    """The energies in a log of SimGrid; None where the simulation did not come to its end. Raises OSError."""
    hosts = _HOSTS.search(_text(log))
    if hosts is None:
        return None
    used = Energy(float(hosts[1]), float(hosts[2]), None)
    if not of_links(log).is_file():
        return used
    links = _LINKS.search(_text(of_links(log)))
    return used._replace(links_j=float(links[1])) if links else None


def of_links(log: Path) -> Path:
    """SimGrid's log of the energy of links beside one of hosts."""
    return log.with_suffix(".links")


def _text(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as file:
        return file.read(_MOST_BYTES)

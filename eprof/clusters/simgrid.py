"""The files that SimGrid reads, nodes around a switch at one clock; and what its energy plugins print at the end."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from eprof.base.text import pattern
from eprof.collect.collector import Nodes, Speed

# Any algorithm that the table does not pin is SimGrid's own, which no environment variable changes.
_FIXED = ("plugin:host_energy", "smpi/coll-selector:default")
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
<zone id="cluster" routing="Floyd">
{parts}
</zone>
</platform>
"""


def hosts(nodes: Nodes) -> str:
    """The nodes in SimGrid's list of hosts by name, one process each."""
    return "".join(f"{name}\n" for name in _host_names(nodes))


def platform(nodes: Nodes, *speeds: Speed) -> str:
    """SimGrid's platform: nodes with powers at each clock, and a link to the switch and one back; the first in
    force.

    A node's three powers are idle, busy at no load, and busy: it has one core, so the second never counts. SimGrid has
    no power of links with two directions, so these are two links.
    """
    watts = _property("wattage_per_state", *((speed.waiting_w, speed.waiting_w, speed.computing_w) for speed in speeds))
    link_watts = _property("wattage_range", nodes.link_w) if nodes.link_w else ""
    clocks = ",".join(f"{speed.work_per_s}f" for speed in speeds)
    network = f'bandwidth="{nodes.bandwidth_byte_per_s}Bps" latency="{nodes.latency_s}s"'
    parts = [f'<host id="{name}" speed="{clocks}">{watts}</host>' for name in _host_names(nodes)]
    parts.append('<router id="switch"/>')
    parts += [f'<link id="{link}" {network}>{link_watts}</link>' for link, *_ in _ways(nodes)]
    parts += [
        f'<route src="{source}" dst="{target}" symmetrical="NO"><link_ctn id="{link}"/></route>'
        for link, source, target in _ways(nodes)
    ]
    return _PLATFORM.format(parts="\n".join(parts))


def _host_names(nodes: Nodes) -> list[str]:
    return [f"node-{number}" for number in range(nodes.processes)]


def _ways(nodes: Nodes) -> Iterator[tuple[str, str, str]]:
    """Each link of SimGrid's platform with its two ends."""
    for name in _host_names(nodes):
        yield f"{name}-up", name, "switch"
        yield f"{name}-down", "switch", name


def _property(name: str, *states: Sequence[float]) -> str:
    value = ",".join(":".join(map(str, watts)) for watts in states)
    return f'<prop id="{name}" value="{value}"/>'


def settings(nodes: Nodes) -> list[str]:
    """What SimGrid is told for every simulation of these nodes, each after `--cfg=`."""
    plugins = ["plugin:link_energy"] if nodes.link_w else []
    return [*_FIXED, *plugins, *(f"smpi/{algorithm}" for algorithm in nodes.collectives)]


# ---- back

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


def energy(log: Path) -> Energy | None:
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

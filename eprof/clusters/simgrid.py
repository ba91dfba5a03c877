"""The files that SimGrid reads: nodes around a switch at one clock, and the list of them."""

from collections.abc import Iterator, Sequence

from eprof.collect.collector import Nodes, Speed

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

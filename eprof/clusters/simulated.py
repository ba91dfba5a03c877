"""MPI programs on a simulated cluster: its nodes, the files that SimGrid reads, the runs that it left behind."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from eprof.base.errors import CollectError, LogError, UsageError
from eprof.base.text import pattern
from eprof.base.vocabulary import Mark, mark_names, marked, marks_of_names
from eprof.clusters.cluster import POLL, Cluster, Run
from eprof.collect import directory
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
    """SimGrid's host file: a node's name on each line, for one process each."""
    return "".join(f"{name}\n" for name in _host_names(nodes))


def platform(nodes: Nodes, *speeds: Speed) -> str:
    """SimGrid's platform file: nodes with powers at each of `speeds`, the first in force, and links to a switch.

    A node's three powers are idle, busy at no load, and busy: it has one core, so the second never counts. SimGrid has
    no power of links with two directions, so these are two links.
    """
    watts = _property("wattage_per_state", *((speed.waiting_w, speed.waiting_w, speed.computing_w) for speed in speeds))
    link_watts = ""
    if nodes.link_w:
        link_watts = _property("wattage_range", nodes.link_w)
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
    """Yields each link of SimGrid's platform and its two ends."""
    for name in _host_names(nodes):
        yield f"{name}-up", name, "switch"
        yield f"{name}-down", "switch", name


def _property(name: str, *states: Sequence[float]) -> str:
    value = ",".join(":".join(map(str, watts)) for watts in states)
    return f'<prop id="{name}" value="{value}"/>'


def settings(nodes: Nodes) -> list[str]:
    """SimGrid's settings for simulations of these nodes, each to be put behind `--cfg=`."""
    algorithms = [f"smpi/{algorithm}" for algorithm in nodes.collectives]
    if nodes.link_w:
        return [*_FIXED, "plugin:link_energy", *algorithms]
    return [*_FIXED, *algorithms]


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
    if links is None:
        return None
    return used._replace(links_j=float(links[1]))


def of_links(log: Path) -> Path:
    """The path of the log with the energy of links, beside that of hosts."""
    return log.with_suffix(".links")


def _text(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as file:
        return file.read(64 << 20)


SIZE = "N"  # in the name of a program, the argument that is its size
_CLOCK = pattern(r"(\d+(?:\.\d+)?)mhz")
_LIBRARY, _STATES_FLOPS = b"libsimgrid", b"smpi_execute_flops"


def nodes(cluster: Cluster, program: Sequence[str], processes: int, size: float | None) -> Nodes:
    """The nodes of a cluster to simulate a program on. Raises UsageError: it cannot be simulated there."""
    link = cluster.link
    if link is None:
        raise UsageError(f"{cluster.name} has no [network], which a simulation needs.")
    if cluster.nodes is not None and processes > cluster.nodes:
        raise UsageError(f"-n {processes}: {cluster.name} has {cluster.nodes} {cluster.unit}s, with a process each.")
    try:
        content = Path(program[0]).read_bytes()
    except OSError as err:
        raise UsageError(f"{Path(program[0])}: cannot be read ({err.strerror or err}).") from err
    if _LIBRARY not in content:
        raise UsageError(f"{Path(program[0])}: is not linked with SimGrid; compile it with smpicc, smpicxx or smpif90.")
    # The program with its arguments, N for the size: a program of several sizes has one name.
    words = [Path(program[0]).name, *program[1:]]
    for place, word in enumerate(words):
        with suppress(ValueError):
            if float(word) == size:
                words[place] = SIZE
    # A program that does not say how much it computes is timed.
    computes = _STATES_FLOPS not in content
    speeds = []
    for clock in (cluster.default, *(clock for clock in cluster.clocks if clock != cluster.default)):
        computing_w = clock.idle_w + clock.on_chip_w
        waiting_w = computing_w if cluster.waiting == POLL else clock.idle_w
        speeds.append(Speed(clock.core_mhz, 1 / cluster.on_chip_s(clock), waiting_w, computing_w))
    return Nodes(
        processes,
        tuple(speeds),
        link.bandwidth_byte_per_s,
        link.latency_s,
        link.watts,
        link.collectives,
        computes,
        about={
            **{name: getattr(cluster, name) for name in ("name", "unit", "nodes", "waiting")},
            "processes": processes,
            "size": size,
            "program": " ".join(words),
            "marks": mark_names(Mark.SIMULATED | cluster.marks | marked(Mark.ESTIMATED, computes)),
        },
    )


def record(path: Path) -> Mapping[str, Any] | None:
    """The `run.json` of simulated runs; None for anything else. Raises LogError: it is damaged."""
    try:
        manifest = (path.is_dir() and directory.manifest(path)) or {}
    except CollectError as err:
        raise LogError(str(err)) from err
    return manifest if "cluster" in manifest else None


def runs(path: Path, manifest: Mapping[str, Any], notes: list[str]) -> Iterator[Run]:
    """The simulations in a run directory, one a clock. Raises LogError: its record does not say of what."""
    about = manifest["cluster"]
    try:
        marks = marks_of_names(about["marks"])
        program, processes, name = about["program"], about["processes"], about["name"]
    except KeyError:
        processes = None
    if not processes:
        raise LogError(f"{path}: `cluster` in run.json does not say what was simulated.")
    for measurement in manifest.get("measurements", ()):
        core_mhz = _CLOCK.fullmatch(measurement["what"])
        log = path / "logs" / f"{measurement['what']}-1.log"
        if core_mhz is None or measurement.get("failed") or not log.is_file():
            continue
        if used := energy(log):
            energy_j = used.hosts_j + (used.links_j or 0.0)
            run = Run(program, about.get("size"), processes, float(core_mhz[1]), used.time_s, energy_j or None)
            yield replace(run, marks=marks, time_marks=marks, cluster=name)
    notes.append(f"Simulated by SimGrid with {name}: its nodes have no caches and no memory of their own.")
    if Mark.ASSUMED in marks:
        notes.append(f"The powers and times of {name} are assumed: nobody measured them.")
    if Mark.ESTIMATED in marks:
        notes.append("Computing was timed on this machine, and taken for that of a node; it differs from run to run.")
    if (about.get("nodes") or 0) > processes:
        notes.append(f"Nodes of {name} that run no process take power too; it is not in the energy.")

"""MPI programs on a simulated cluster: what to simulate, and the runs that a simulation left (docs/scale.md)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from eprof.base.errors import CollectError, LogError, UsageError
from eprof.base.marks import NONE, Mark, from_names, names
from eprof.base.text import pattern
from eprof.clusters import simgrid
from eprof.clusters.cluster import POLL, Cluster, Run
from eprof.collect import directory
from eprof.collect.collector import Nodes, Speed

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
            "name": cluster.name,
            "unit": cluster.unit,
            "nodes": cluster.nodes,
            "waiting": cluster.waiting,
            "processes": processes,
            "size": size,
            "program": _named(program, size),
            "marks": names(Mark.SIMULATED | cluster.marks | (Mark.ESTIMATED if computes else NONE)),
        },
    )


def _named(program: Sequence[str], size: float | None) -> str:
    """The simulated program with its arguments, N for the size: a program of several sizes has one name."""
    words = [Path(program[0]).name, *program[1:]]
    return " ".join(SIZE if size is not None and _is_size(word, size) else word for word in words)


def _is_size(word: str, size: float) -> bool:
    try:
        return float(word) == size
    except ValueError:
        return False


# ---- back


def record(path: Path) -> Mapping[str, Any] | None:
    """The `run.json` of simulated runs; None for anything else. Raises LogError: it is damaged."""
    try:
        manifest = directory.manifest(path) if path.is_dir() else None
    except CollectError as err:
        raise LogError(str(err)) from err
    return manifest if manifest and "cluster" in manifest else None


def runs(path: Path, manifest: Mapping[str, Any], notes: list[str]) -> Iterator[Run]:
    """The simulations in a run directory, one a clock. Raises LogError: its record does not say of what."""
    about = manifest["cluster"]
    try:
        marks = from_names(about["marks"])
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
        if used := simgrid.energy(log):
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

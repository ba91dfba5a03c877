"""`Cluster`, powers and times of nodes (`costs/clusters/*.toml`); `Run` of a program there, measured or by SimGrid."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import CollectError, CostError, DefinitionError, LogError, UsageError
from eprof.base.optional import gathered, mapped
from eprof.base.resources import folder, tree
from eprof.base.text import did_you_mean, listed, pattern, phrase
from eprof.base.toml import Document, Node
from eprof.base.vocabulary import NONE, Mark, mark_names, marked, marks_of_names
from eprof.collect import directory
from eprof.collect.collector import Nodes, Speed

SCHEMA = 1
INTERRUPT, POLL = "interrupt", "poll"
DEFAULT = "gigabit-demo"
BASES = ("assumed", "measured", "published", "fitted")
_KEYS = (
    *("schema", "name", "about", "unit", "nodes", "source", "basis", "waiting", "memory_bytes", "gamma"),
    *("setting", "time", "message", "network", "node", "storage"),
)
_ALGORITHM = pattern(r"[a-z_]{1,40}:\w{1,40}")
_MOST = 1e15


class Clock(Struct, frozen=True):
    """Powers of one unit (node) at a core clock in W: idle, and above idle while it computes, or waits for memory."""

    core_mhz: float
    idle_w: float
    on_chip_w: float
    off_chip_w: float

    @property
    def busy_w(self) -> float:
        """The power in W of a processor that computes, or polls."""
        return self.idle_w + self.on_chip_w


class Messages(Struct, frozen=True):
    """How long messages take: at these sizes in bytes these times in s, and between them on a line.

    Two points are a start-up time and a time for each byte, t_s + m t_w.
    """

    sizes: tuple[float, ...]
    seconds: tuple[float, ...]

    def of_size(self, size: float) -> float:
        """The time of a message of `size` bytes in s; beyond the largest known size, as between the last two."""
        if size <= self.sizes[-1]:
            return float(np.interp(size, self.sizes, self.seconds))
        slope = (self.seconds[-1] - self.seconds[-2]) / (self.sizes[-1] - self.sizes[-2])
        return self.seconds[-1] + slope * (size - self.sizes[-1])


class Link(Struct, frozen=True):
    """What joins the nodes, for a simulation. watts: of a link in one direction, idle and busy; None: not known.

    collectives: the algorithms of collective operations, in SimGrid's words ("alltoall:pair").
    """

    bandwidth_byte_per_s: float
    latency_s: float
    watts: tuple[float, float] | None
    collectives: tuple[str, ...]


class Storage(Struct, frozen=True):
    """What files take ([S] 4.4's T_IO and dP_IO): seconds a byte read or written, and W above idle meanwhile."""

    byte_s: float
    busy_w: float


class Beside(Struct, frozen=True):
    """What a node of GPUs draws beside the GPUs' kernels, in W: host, network, each GPU that waits. None: not known.

    network_w: network cards and switches as far as host_w leaves them out. gpus, storage: of a node. name: the cluster.
    """

    host_w: float | None = None
    network_w: float | None = None
    gpu_idle_w: float | None = None
    gpus: int | None = None
    storage: Storage | None = None
    marks: Mark = NONE
    name: str = ""
    source: str = ""

    @property
    def idle_w(self) -> float | None:
        """The power of a whole node while it waits, in W; None where a part of it is not known."""
        if self.host_w is None or self.network_w is None or self.gpu_idle_w is None or self.gpus is None:
            return None
        return self.host_w + self.network_w + self.gpus * self.gpu_idle_w


class Cluster(Struct, frozen=True):
    """A cluster's powers and times ([S] 4.4, the machine's vector). gamma: on-chip power grows with f^gamma.

    unit: what one node is called. basis: where the numbers are from, one of `BASES`. waiting: whether processors block
    (INTERRUPT) or poll. interrupt_s: to wake one that blocked; clock_change_s: to change a clock ([S] 6).
    """

    name: str
    about: str
    unit: str
    source: str
    basis: str
    waiting: str
    clocks: tuple[Clock, ...]
    default: Clock
    on_chip_cycles: float
    off_chip_s: float
    messages: Messages
    interrupt_s: float | None = None
    clock_change_s: float | None = None
    gamma: float | None = None
    nodes: int | None = None
    memory_bytes: float | None = None
    link: Link | None = None
    storage: Storage | None = None

    @property
    def marks(self) -> Mark:
        """The marks of all that is modelled with the cluster: ASSUMED, or none."""
        return marked(Mark.ASSUMED, self.basis == "assumed")

    @property
    def warnings(self) -> list[str]:
        """A list of one sentence where the cluster's numbers are assumed; else empty."""
        return [f"The powers and times of {self.name} are assumed: nobody measured them."] * bool(self.marks)

    def at(self, core_mhz: float | None) -> Clock:
        """The powers of one node at a core clock in MHz; None: at the default clock.

        With `gamma` also at clocks that are not listed: dP_c (f/f0)^gamma ([S] 4.20). Without: raises CostError.
        """
        if core_mhz is None:
            return self.default
        for clock in self.clocks:
            if abs(clock.core_mhz - core_mhz) < 1e-6 * core_mhz:
                return clock
        if self.gamma is None:
            known = listed([f"{clock.core_mhz:g}" for clock in self.clocks])
            raise CostError(f"{self.name} has no powers at {core_mhz:g} MHz; it lists {known} MHz.")
        on_chip_w = self.default.on_chip_w * (core_mhz / self.default.core_mhz) ** self.gamma
        return Clock(core_mhz, self.default.idle_w, on_chip_w, self.default.off_chip_w)

    def on_chip_s(self, clock: Clock) -> float:
        """The seconds that one count of a program's on-chip work takes at a clock: t_c = CPI / f."""
        return self.on_chip_cycles / (clock.core_mhz * 1e6)


def beside(name_or_path: str) -> Beside:
    """What a node of GPUs draws, by [node] of a cluster's file; all None without that. Raises DefinitionError."""
    root = definition(name_or_path, "cluster").root.table(_KEYS)
    root.schema(SCHEMA)
    return _beside(root)


def _beside(root: Node) -> Beside:
    node = root["node"]
    if node.value is None:
        return Beside()
    node.table(("gpus", "host_w", "network_w", "gpu_idle_w"))
    return Beside(
        **{name: _optional(node[name]) for name in ("host_w", "network_w", "gpu_idle_w")},
        gpus=mapped(int, _optional(node["gpus"], 1)),
        storage=_storage(root["storage"]),
        marks=marked(Mark.ASSUMED, root["basis"].choice(BASES) == "assumed"),
        name=root["name"].text(),
        source=root["source"].text(),
    )


def load(name_or_path: str) -> Cluster:
    """The cluster called so in `costs/clusters/`, or in a `.toml` file. Raises DefinitionError with file and line."""
    return read(definition(name_or_path, "cluster"))


def read(document: Document) -> Cluster:
    """The cluster that a file describes, already read as TOML. Raises DefinitionError."""
    root = document.root.table(_KEYS)
    root.schema(SCHEMA)
    clocks, default = _clocks(root["setting"], _beside(root).idle_w)
    time = root["time"].table(("on_chip_cycles", "off_chip_s", "interrupt_s", "clock_change_s"))
    return Cluster(
        name=root["name"].text(),
        about=root["about"].text(""),
        unit=root["unit"].text("node"),
        source=root["source"].text(),
        basis=root["basis"].choice(BASES),
        waiting=root["waiting"].choice((INTERRUPT, POLL), INTERRUPT),
        clocks=clocks,
        default=default,
        on_chip_cycles=time["on_chip_cycles"].number(0, _MOST),
        off_chip_s=time["off_chip_s"].number(0, _MOST),
        messages=_messages(root["message"]),
        interrupt_s=_optional(time["interrupt_s"]),
        clock_change_s=_optional(time["clock_change_s"]),
        gamma=_optional(root["gamma"]),
        nodes=mapped(int, _optional(root["nodes"], 1)),
        memory_bytes=_optional(root["memory_bytes"]),
        link=_link(root["network"]),
        storage=_storage(root["storage"]),
    )


def _optional(node: Node, least: float = 0) -> float | None:
    return None if node.value is None else node.number(least, _MOST)


def _clocks(node: Node, idle_w: float | None) -> tuple[tuple[Clock, ...], Clock]:
    """(The clocks in a cluster's file, the default one). idle_w: the idle power of settings that give none."""
    entries = node.entries("a list of settings")
    if not entries:
        raise node.wrong("a list of settings")
    clocks: list[Clock] = []
    defaults: list[Clock] = []
    for entry in entries:
        entry.table(("core_mhz", "idle_w", "on_chip_w", "off_chip_w", "default"))
        clock = Clock(
            entry["core_mhz"].number(1, 1e5),
            idle_w if idle_w is not None and "idle_w" not in entry else entry["idle_w"].number(0, _MOST),
            entry["on_chip_w"].number(0, _MOST),
            _optional(entry["off_chip_w"]) or 0.0,
        )
        if any(clock.core_mhz == other.core_mhz for other in clocks):
            raise entry.error(f"{clock.core_mhz:g} MHz is listed twice.")
        clocks.append(clock)
        if entry["default"].truth(False):
            defaults.append(clock)
    if len(defaults) != 1 and len(clocks) > 1:
        raise node.error("one setting, and no other, is the default; write `default = true` in it.")
    return tuple(clocks), (defaults or clocks)[0]


def _messages(node: Node) -> Messages:
    """Messages in a cluster's file: a table of sizes and times, or a start-up time and a time for each byte."""
    node.table(("bytes", "seconds", "start_s", "byte_s"))
    if "bytes" not in node:
        start_s, byte_s = node["start_s"].number(0, _MOST), node["byte_s"].number(0, _MOST)
        return Messages((0.0, 1.0), (start_s, start_s + byte_s))
    lists = []
    for entry in (node["bytes"], node["seconds"]):
        numbers = tuple(each.number(0, _MOST) for each in entry.entries("a list of numbers"))
        if any(after <= before for before, after in zip(numbers, numbers[1:], strict=False)):
            raise entry.error(f"`{entry.name}` must rise from number to number.")
        lists.append(numbers)
    sizes, seconds = lists
    if len(sizes) != len(seconds) or len(sizes) < 2:
        raise node["seconds"].error("`bytes` and `seconds` are lists of equal length, of two numbers or more.")
    return Messages(sizes, seconds)


def _storage(node: Node) -> Storage | None:
    if node.value is None:
        return None
    node.table(("byte_s", "busy_w"))
    return Storage(node["byte_s"].number(0, _MOST), node["busy_w"].number(0, _MOST))


def _link(node: Node) -> Link | None:
    """The link that [network] of a cluster's file describes; None without that section."""
    if node.value is None:
        return None
    node.table(("bandwidth_byte_per_s", "latency_s", "idle_w", "busy_w", "collectives"))
    watts = None
    if "idle_w" in node or "busy_w" in node:
        watts = node["idle_w"].number(0, _MOST), node["busy_w"].number(0, _MOST)
    collectives = node["collectives"].texts()
    for text in collectives:
        if not _ALGORITHM.fullmatch(text):
            raise node["collectives"].error(f"`{text}` is no operation with its algorithm, such as alltoall:pair.")
    bandwidth = node["bandwidth_byte_per_s"].number(1, _MOST)
    return Link(bandwidth, node["latency_s"].number(0, _MOST), watts, collectives)


def about(cluster: Cluster) -> dict[str, Any]:
    """What JSON documents say of a cluster: its name, about, source, basis, waiting, clocks and number of nodes."""
    told = {name: getattr(cluster, name) for name in ("name", "about", "source", "basis", "waiting")}
    return told | {"clocks_mhz": [clock.core_mhz for clock in cluster.clocks], "nodes": cluster.nodes}


class Part(Struct, frozen=True, kw_only=True):
    """The part of a run's energy on a GPU cluster that one cause takes (None: not known), and its marks by name."""

    energy_j: float | None
    marks: list[str]


class Run(Struct, frozen=True):
    """A parallel program's run, of one size on so many processors at a clock: medians of repeats. None: not known.

    marks, time_marks: bits of `Mark` for energy_j and time_s. cluster: the simulated one's name. unit: what a processor
    is. parts (cause -> its energy), ranks, imbalance: of a GPU cluster alone. where: file and line of the run's row.
    """

    program: str
    size: float | None
    processors: int
    core_mhz: float | None
    time_s: float
    energy_j: float | None
    repeats: int = 1
    marks: int = 0
    cluster: str | None = None
    unit: str = "node"
    where: str = ""
    time_marks: int = 0
    parts: Mapping[str, Part] | None = None
    ranks: int | None = None
    imbalance: float | None = None

    @property
    def problem(self) -> tuple[str, float | None]:
        """What a run solved: the program and its size (None: not known)."""
        return self.program, self.size


def medians(runs: Sequence[Run], notes: list[str]) -> list[Run]:
    """Merge repeats of one program, size, number of processors and clock into one run of median time and known energy.

    Of repeats with `parts`, the run of (lower) median energy stays: medians of parts do not add up. notes: grows.
    """
    groups = gathered(((run.program, run.size, run.processors, run.core_mhz), run) for run in runs)
    if len(groups) < len(runs):
        notes.append(f"{len(runs)} rows are {len(groups)} different runs: repeats are shown as their medians")
    if any(same[0].parts is not None and len(same) % 2 == 0 for same in groups.values()):
        notes.append("of an even number of repeats in parts, the lower in energy of the two in the middle is shown")
    made = []
    for same in groups.values():
        if same[0].parts is not None:
            middle = sorted(same, key=lambda run: run.energy_j or 0.0)[(len(same) - 1) // 2]
            made.append(replace(middle, repeats=len(same)))
            continue
        # A lower bound says nothing where the energy of another repeat is known in full.
        known = [run for run in same if run.energy_j is not None]
        known = [run for run in known if not run.marks & Mark.MISSING] or known
        median = replace(
            (known or same)[0],
            time_s=statistics.median(run.time_s for run in same),
            energy_j=statistics.median(run.energy_j or 0.0 for run in known) if known else None,
            marks=reduce(or_, (run.marks for run in known), 0),
            time_marks=reduce(or_, (run.time_marks for run in same)),
            repeats=len(same),
        )
        made.append(median)
    return made


SHELVES = {"cluster": folder("costs") / "clusters", "program": folder("counters") / "programs"}


def definition(name_or_path: str, noun: str) -> Document:
    """The TOML file of a "cluster" or "program" (`noun`), by its name in eprof or by path. Raises DefinitionError."""
    if name_or_path.endswith(".toml"):
        return Document.read(Path(name_or_path))
    known = [file.name.removesuffix(".toml") for file in tree(SHELVES[noun], ".toml")]
    if name_or_path not in known:
        meant = did_you_mean(name_or_path, known)
        raise DefinitionError(f"There is no {noun} `{name_or_path[:100]}`.{meant} There are {', '.join(known)}.")
    return Document.read(SHELVES[noun] / f"{name_or_path}.toml")


# ----------------------------------------------------------------------------------------------------------------------
# SimGrid: the files that it reads, the nodes that it simulates, the runs that it left behind.

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


def simgrid_hosts(nodes: Nodes) -> str:
    """SimGrid's host file: a node's name on each line, for one process each."""
    return "".join(f"node-{number}\n" for number in range(nodes.processes))


def simgrid_platform(nodes: Nodes, *speeds: Speed) -> str:
    """SimGrid's platform file: nodes with powers at each of `speeds`, the first in force, and links to a switch.

    A node's three powers are idle, busy at no load, and busy: it has one core, so the second never counts. SimGrid has
    no power of links with two directions, so these are two links.
    """
    powers = ",".join(f"{speed.waiting_w}:{speed.waiting_w}:{speed.computing_w}" for speed in speeds)
    link_watts = phrase('<prop id="wattage_range" value="{}:{}"/>', *(nodes.link_w or [None]))
    clocks = ",".join(f"{speed.work_per_s}f" for speed in speeds)
    network = f'bandwidth="{nodes.bandwidth_byte_per_s}Bps" latency="{nodes.latency_s}s"'
    hosts, links, routes = [], [], []
    for name in simgrid_hosts(nodes).split():
        hosts.append(f'<host id="{name}" speed="{clocks}"><prop id="wattage_per_state" value="{powers}"/></host>')
        for link, source, target in ((f"{name}-up", name, "switch"), (f"{name}-down", "switch", name)):
            links.append(f'<link id="{link}" {network}>{link_watts}</link>')
            routes.append(f'<route src="{source}" dst="{target}" symmetrical="NO"><link_ctn id="{link}"/></route>')
    return _PLATFORM.format(parts="\n".join([*hosts, '<router id="switch"/>', *links, *routes]))


def simgrid_settings(nodes: Nodes) -> list[str]:
    """SimGrid's settings to simulate these nodes with, each to be put behind `--cfg=`: plugins, collectives."""
    algorithms = [f"smpi/{algorithm}" for algorithm in nodes.collectives]
    return [*_FIXED, *["plugin:link_energy"] * bool(nodes.link_w), *algorithms]


_HOSTS = pattern(
    r"\[\s*(\d+\.\d+)\] \[host_energy/INFO\] Total energy consumption: \S+ Joules \(used hosts: (\d+\.\d+) Joules"
)
_LINKS = pattern(r"\[link_energy/INFO\] Total energy over all links: (\d+\.\d+)\n")


class SimulatedEnergy(NamedTuple):
    """Simulated time in s, the energy of the hosts that ran a process, and that of their links; None: not simulated."""

    time_s: float
    hosts_j: float
    links_j: float | None


def _text_of(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as file:
        return file.read(64 << 20)


def simulated_energy(log: Path) -> SimulatedEnergy | None:
    """Time and energies in a log of SimGrid and the links' log beside it; None: the simulation did not end. OSError."""
    hosts = _HOSTS.search(_text_of(log))
    if hosts is None:
        return None
    used = SimulatedEnergy(float(hosts[1]), float(hosts[2]), None)
    if not links_log(log).is_file():
        return used
    links = _LINKS.search(_text_of(links_log(log)))
    if links is None:
        return None
    return used._replace(links_j=float(links[1]))


def links_log(log: Path) -> Path:
    """The path of the log with the energy of links, beside that of hosts."""
    return log.with_suffix(".links")


SIZE = "N"  # in the name of a program, the argument that is its size
_CLOCK = pattern(r"(\d+(?:\.\d+)?)mhz")
_LIBRARY, _STATES_FLOPS = b"libsimgrid", b"smpi_execute_flops"


def nodes_to_simulate(cluster: Cluster, program: Sequence[str], processes: int, size: float | None) -> Nodes:
    """What SimGrid is to simulate: `processes` nodes of the cluster, at each of its clocks, the default first.

    program: its words; an argument that equals `size` is called N. Raises UsageError: it cannot be simulated there.
    """
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
        waiting_w = clock.busy_w if cluster.waiting == POLL else clock.idle_w
        speeds.append(Speed(clock.core_mhz, 1 / cluster.on_chip_s(clock), waiting_w, clock.busy_w))
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


def simulation_record(path: Path) -> Mapping[str, Any] | None:
    """The `run.json` of the run directory `path`, if it holds simulated runs; else None. Raises LogError: damaged."""
    try:
        manifest = (path.is_dir() and directory.manifest(path)) or {}
    except CollectError as err:
        raise LogError(str(err)) from err
    return manifest if "cluster" in manifest else None


def simulated_runs(path: Path, manifest: Mapping[str, Any], notes: list[str]) -> Iterator[Run]:
    """The finished simulations in a run directory, a `Run` for each clock; notes: grows by what to say of them.

    manifest: its `run.json`. Raises LogError: it does not say what was simulated.
    """
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
        if used := simulated_energy(log):
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

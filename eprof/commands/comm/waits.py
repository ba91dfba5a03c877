"""What waiting for messages takes: in closed form, for messages that a program sent, and by a benchmark under an MPI.

The closed form is that of [S] 6, whose equations are lost; docs/comm.md has ours. The benchmark is [S] 6.4.2's of
shifts; it runs under Open MPI and MPICH on this machine, and on SimGrid.
"""

import itertools
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from eprof import profilers
from eprof.base.errors import CollectError, CostError
from eprof.base.optional import gathered
from eprof.base.resources import folder
from eprof.base.text import when
from eprof.base.vocabulary import NONE, Mark, marked
from eprof.clusters import mpi
from eprof.clusters.cluster import (
    INTERRUPT,
    POLL,
    Clock,
    Cluster,
    nodes_to_simulate,
    simgrid_hosts,
    simgrid_platform,
    simgrid_settings,
)
from eprof.collect import sensors
from eprof.collect.machine import compiled, executable
from eprof.commands.comm.cpufreq import check_clock, held_at
from eprof.commands.comm.messages import Sent

POLLING, BLOCKING = "polling", "blocking"
MESSAGE = "message"


class Sample(NamedTuple):
    """MPI operations of one kind and size, waited for in one way at one clock (None: the one in force, not known).

    latency_s, energy_j: of one operation of one process. busy: the share of the time that its processor worked.
    operations: how many there were. spread: how far repeats are apart, as a share of their median latency.
    """

    primitive: str
    size: float
    waiting: str
    core_mhz: float | None
    latency_s: float
    energy_j: float | None
    busy: float | None = None
    operations: int = 1
    marks: Mark = NONE
    spread: float = 0.0


def waiting_w(waiting: str, clock: Clock) -> float:
    """The power in W of a processor while a message travels: P_f if it polls, P_0, idle, if it is blocked."""
    return {POLLING: clock.busy_w, BLOCKING: clock.idle_w}[waiting]


def closed_form(
    cluster: Cluster, sent: Sequence[Sent], ways: Sequence[str], clocks: Sequence[Clock]
) -> Iterator[Sample]:
    """A sample in closed form for each message, clock and way to wait.

    With t its time, t_i that of an interrupt, t_d that of a change of the clock:

        polling      P_f t                     at a lower clock    P_f2 t + 2 P_f t_d
        blocking     P_0 t + P_f t_i           at a lower clock    P_02 t + P_f2 t_i + 2 P_f t_d

    The clock is that of the wait alone. Raises CostError: the table lacks a time.
    """
    for message in sent:
        marks = cluster.marks | marked(Mark.MISSING, message.is_floor)
        transfer_s = cluster.messages.of_size(message.size)
        for clock in clocks:
            changes_s = 0.0 if clock == cluster.default else 2 * time_of(cluster, "clock_change_s")
            for waiting in ways:
                interrupt_s = time_of(cluster, "interrupt_s") if waiting == BLOCKING else 0.0
                latency_s = transfer_s + interrupt_s + changes_s
                waited_j = waiting_w(waiting, clock) * transfer_s + clock.busy_w * interrupt_s
                energy_j = waited_j + cluster.default.busy_w * changes_s
                sample = Sample(message.call, message.size, waiting, clock.core_mhz, latency_s, energy_j)
                yield sample._replace(operations=message.number, marks=marks)


def time_of(cluster: Cluster, name: str) -> float:
    """The time `name` of a cluster's table, s: "interrupt_s", "clock_change_s". Raises CostError: it has none."""
    seconds: float | None = getattr(cluster, name)
    if seconds is None:
        instead = when(name == "interrupt_s", "--waiting polling") or f"--clock {cluster.default.core_mhz:g}"
        raise CostError(f"{cluster.name} has no {name} in [time]; write it there, in s, or do without: {instead}.")
    return seconds


def break_even_s(cluster: Cluster) -> float | None:
    """t* = t_i P_f / (P_f - P_0): from this time of a message on, blocking takes fewer joules; None: it never does."""
    saved_w = cluster.default.on_chip_w
    if cluster.interrupt_s is None or not saved_w:
        return None
    return cluster.interrupt_s * cluster.default.busy_w / saved_w


# ----------------------------------------------------------------------------------------------------------------------
# The benchmark: its program compiled, run while clocks are held, and read back.

_LINE = "eprof-comm"
_SIMULATED_ROUNDS = "2"
_REPEATS = "5"
_LIBRARY = ("-shared", "-fPIC", "-Wl,--as-needed", "-ldl")  # without MPI, which the program brings along


class Plan(NamedTuple):
    """What the benchmark of waits runs: operations, their sizes in bytes, ways to wait, the number of processes.

    seconds: for how long each is repeated, where it is measured.
    """

    primitives: Sequence[str]
    sizes: Sequence[int]
    ways: Sequence[str]
    processes: int
    seconds: float

    @property
    def words(self) -> list[str]:
        """The shift benchmark's first arguments: its operations, and their sizes in bytes."""
        return [",".join(self.primitives), ",".join(map(str, self.sizes))]


def benchmark_source(name: str) -> Path:
    """The path of a C source that comes with eprof for `eprof comm`: shift.c, wait.c."""
    return Path(str(folder("calibration") / "mpi" / name))


def compile_library(target: Path, kind: str | None = None) -> None:
    """Compile the library that waits without spinning, for an MPI (None: Open MPI, else MPICH). Raises CollectError."""
    if kind is None and mpi.find()[0] is None and mpi.find("mpich")[0] is not None:
        kind = "mpich"
    compiled(mpi.needed(kind or "openmpi").compiler, benchmark_source("wait.c"), target, *_LIBRARY)


def benchmark_samples(text: str, waiting: str, core_mhz: float | None, processes: int) -> Iterator[Sample]:
    """Yield a sample for each line that the shift benchmark printed. Raises CollectError for a line that is cut off."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == [_LINE]:
            try:
                primitive, size, number, *rest = words[1:]
                time_s, processor_s, energy_j = map(float, rest)
                operations, bytes_ = int(number), int(size)
            except ValueError as err:
                raise CollectError(f"The benchmark printed a line that is cut off: `{line[:100]}`.") from err
            each_j = energy_j / operations / processes if energy_j > 0 else None
            busy = processor_s / processes / time_s if processor_s >= 0 else None
            yield Sample(primitive, bytes_, waiting, core_mhz, time_s / operations, each_j, busy, operations)


def median_samples(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield one sample for each operation and size: of its repeats that of median latency, with their `spread` set."""
    for same in gathered(((sample.primitive, sample.size), sample) for sample in samples).values():
        ordered = sorted(same, key=lambda sample: sample.latency_s)
        median = ordered[(len(ordered) - 1) // 2]
        yield median._replace(spread=(ordered[-1].latency_s - ordered[0].latency_s) / median.latency_s)


def on_this_machine(
    kind: str, plan: Plan, clocks_mhz: Sequence[float], cluster: Cluster
) -> tuple[list[Sample], str, str]:
    """Run the shift benchmark under an MPI of this machine: (samples, the MPI's version, what the joules are from).

    Polling is what MPI does; blocking is the same with the library of `wait.c`. Joules are those of RAPL, else
    powers of the cluster over the time that the processors worked. Each clock is held while it is measured, after the
    one in force. Raises CollectError.
    """
    found = mpi.needed(kind)
    for asked_mhz in clocks_mhz:
        check_clock(asked_mhz)
    counters = [f"{file}={most}" for file, most in sensors.rapl_counters().items()]
    arguments = [*plan.words, f"{plan.seconds:g}s", _REPEATS, ",".join(counters) or "-"]
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="eprof-comm-") as place:
        program = compiled(found.compiler, benchmark_source("shift.c"), Path(place, "shift"))
        shim = compiled(found.compiler, benchmark_source("wait.c"), Path(place, "libwait.so"), *_LIBRARY)
        asleep = {POLLING: [], BLOCKING: ["env", f"LD_PRELOAD={shim}", "EPROF_WAIT_BYTES=0"]}
        for core_mhz, waiting in itertools.product((None, *clocks_mhz), plan.ways):
            command = [*mpi.launch(found, plan.processes), *asleep[waiting], str(program), *arguments]
            with held_at(core_mhz):
                text = mpi.output_of(command)
            samples += median_samples(benchmark_samples(text, waiting, core_mhz, plan.processes))
    if counters:
        return samples, str(found), "RAPL"
    priced = [price_by_busy_time(sample, cluster.at(sample.core_mhz)) for sample in samples]
    return priced, str(found), f"processor time at the powers of {cluster.name} (assumed)"


def price_by_busy_time(sample: Sample, clock: Clock) -> Sample:
    """A sample with its joules: idle power over its time, and power above idle while its processor was busy."""
    power_w = clock.idle_w + (sample.busy or 0.0) * clock.on_chip_w
    return sample._replace(energy_j=power_w * sample.latency_s, marks=Mark.ESTIMATED | Mark.ASSUMED)


def on_simgrid(plan: Plan, clocks: Sequence[Clock], cluster: Cluster) -> tuple[list[Sample], str]:
    """Simulate the shift benchmark, clocks being those of waits: (samples, SimGrid's version). Raises EprofError."""
    tool = profilers.collector("simgrid").find()
    compiler = executable(("smpicc",), ())
    if not tool.usable or compiler is None:
        raise CollectError(f"SimGrid is not installed ({tool.remedy}); leave --mpi out for the closed form.")
    marks = Mark.SIMULATED | cluster.marks
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="eprof-comm-") as place:
        program = compiled(compiler, benchmark_source("shift.c"), Path(place, "shift"), "-DSIMULATED", "-lsimgrid")
        for clock, waiting in itertools.product(clocks, plan.ways):
            way = {POLLING: POLL, BLOCKING: INTERRUPT}[waiting]
            nodes = nodes_to_simulate(replace(cluster, waiting=way), [str(program)], plan.processes, None)
            speeds = {speed.core_mhz: speed for speed in nodes.speeds}
            files = {"platform": simgrid_platform(nodes, speeds[cluster.default.core_mhz], speeds[clock.core_mhz])}
            files["hostfile"] = simgrid_hosts(nodes)
            command = [str(tool.path), "-np", str(plan.processes)]
            for option, content in files.items():
                file = program.with_name(f"{option}.xml")
                file.write_text(content, encoding="utf-8")
                command += [f"-{option}", str(file)]
            command += [f"--cfg={setting}" for setting in (*simgrid_settings(nodes), "smpi/simulate-computation:no")]
            command += ["--log=root.thres:warning", str(program), *plan.words, _SIMULATED_ROUNDS, "1", "-"]
            command.append(str(time_of(cluster, "interrupt_s")) if waiting == BLOCKING else "-")
            command.append(str(time_of(cluster, "clock_change_s")) if clock != cluster.default else "-")
            rows = benchmark_samples(mpi.output_of(command), waiting, clock.core_mhz, plan.processes)
            samples += [sample._replace(marks=marks) for sample in rows]
    return samples, f"SimGrid {tool.version}"

"""The shift benchmark ([S] 6.4.2) under Open MPI and on SimGrid: compiled, run, read back."""

import os
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from eprof.base.errors import CollectError
from eprof.base.marks import Mark
from eprof.base.resources import folder
from eprof.collect import cpufreq, mpi
from eprof.collect.meters import rapl
from eprof.collect.tools import executable
from eprof.comm.model import BLOCKING, POLLING, Sample, known
from eprof.profilers.simgrid import collector as simgrid
from eprof.profilers.simgrid.platform import hosts, platform
from eprof.scaling import simulated
from eprof.scaling.cluster import INTERRUPT, POLL, Clock, Cluster

_LINE = "eprof-comm"
_SIMULATED_ROUNDS = "2"
_REPEATS = 5


class Plan(NamedTuple):
    """What to run: the operations, their sizes in bytes, ways to wait, on so many processes.

    seconds: for how long each is repeated, where it is measured.
    """

    primitives: Sequence[str]
    sizes: Sequence[int]
    ways: Sequence[str]
    processes: int
    seconds: float

    @property
    def words(self) -> list[str]:
        """The benchmark's own first arguments."""
        return [",".join(self.primitives), ",".join(map(str, self.sizes))]


class Measured(NamedTuple):
    """A line of the benchmark: so many operations of one process took so long. None: not known.

    spread: how far the repeats are apart, as a share of their median time.
    """

    primitive: str
    size: int
    operations: int
    time_s: float
    processor_s: float | None
    energy_j: float | None
    spread: float = 0.0


def source(name: str) -> Path:
    """A C source that comes with eprof."""
    return Path(str(folder("calibration") / "mpi" / name))


def library(target: Path) -> None:
    """Compile the library that waits without spinning. Raises CollectError."""
    found, why = mpi.find()
    if found is None:
        raise CollectError(f"{why}; install it: {mpi.INSTALL}.")
    mpi.compiled(found.compiler, source("wait.c"), target, "-shared", "-fPIC")


def lines(text: str) -> Iterator[Measured]:
    """What the benchmark printed, among what others print. Raises CollectError for a line that is cut off."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] != [_LINE]:
            continue
        try:
            primitive, size, operations, *numbers = words[1:]
            time_s, processor_s, energy_j = map(float, numbers)
            yield Measured(
                primitive, int(size), int(operations), time_s, _at_least_0(processor_s), _at_least_0(energy_j)
            )
        except ValueError as err:
            raise CollectError(f"The benchmark printed a line that is cut off: `{line[:100]}`.") from err


def _at_least_0(number: float) -> float | None:
    return number if number >= 0 else None


def medians(measured: Sequence[Measured]) -> Iterator[Measured]:
    """One for the repeats of each operation and size: the one of median time, with their spread."""
    repeats: dict[tuple[str, int], list[Measured]] = {}
    for row in measured:
        repeats.setdefault((row.primitive, row.size), []).append(row)
    for rows in repeats.values():
        times = sorted(row.time_s for row in rows)
        median = statistics.median_low(times)
        row = next(row for row in rows if row.time_s == median)
        yield row._replace(spread=(times[-1] - times[0]) / median)


# ---- measured


def on_open_mpi(plan: Plan, clocks_mhz: Sequence[float], cluster: Cluster) -> tuple[list[Sample], str, str]:
    """Measured on this machine: the samples, the version of Open MPI, what the joules are from.

    Polling is what Open MPI does; blocking is the same with the library of `wait.c`. Joules are those of RAPL, else
    powers of the cluster over the time that the processors worked. Each clock is held while it is measured, after the
    one in force. Raises CollectError.
    """
    found, why = mpi.find()
    if found is None:
        raise CollectError(f"{why}; install it ({mpi.INSTALL}), or leave --mpi out for the closed form of a cluster.")
    for core_mhz in clocks_mhz:
        cpufreq.check(core_mhz)
    counters = [f"{file}={most}" for file, most in rapl.counters().items()]
    samples: list[Sample] = []
    with _folder() as place:
        program = mpi.compiled(found.compiler, source("shift.c"), place / "shift")
        shim = mpi.compiled(found.compiler, source("wait.c"), place / "libwait.so", "-shared", "-fPIC")
        arguments = [*plan.words, f"{plan.seconds:g}s", str(_REPEATS), ",".join(counters) or "-"]
        for core_mhz in (None, *clocks_mhz):
            with cpufreq.held(core_mhz):
                for waiting in plan.ways:
                    asleep = ["env", f"LD_PRELOAD={shim}", "EPROF_WAIT_BYTES=0"] if waiting == BLOCKING else []
                    text = mpi.output_of([*mpi.launch(found, plan.processes), *asleep, str(program), *arguments])
                    rows = medians(list(lines(text)))
                    samples += [_measured(row, waiting, core_mhz, plan.processes, cluster) for row in rows]
    joules_from = "RAPL" if counters else f"processor time at the powers of {cluster.name} (assumed)"
    return samples, f"Open MPI {found.version}", joules_from


def _measured(row: Measured, waiting: str, core_mhz: float | None, processes: int, cluster: Cluster) -> Sample:
    each = row.operations * processes
    latency_s = row.time_s / row.operations
    busy = None if row.processor_s is None else row.processor_s / processes / row.time_s
    energy_j = None if not row.energy_j else row.energy_j / each
    marks = Mark(0)
    if row.energy_j is None and busy is not None:
        clock = cluster.at(core_mhz)
        energy_j = latency_s * (clock.idle_w + busy * clock.on_chip_w)
        marks = Mark.ESTIMATED | Mark.ASSUMED
    return Sample(
        row.primitive, row.size, waiting, core_mhz, latency_s, energy_j, busy, row.operations, marks, row.spread
    )  # fmt: skip


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="eprof-comm-") as name:
        yield Path(name)


# ---- simulated


def on_simgrid(plan: Plan, clocks: Sequence[Clock], cluster: Cluster) -> tuple[list[Sample], str]:
    """Simulated on a cluster: the samples, and SimGrid's version. The clock is that of the waits. Raises EprofError."""
    tool = simgrid.COLLECTOR.find()
    compiler = executable(("smpicc",), ())
    if not tool.usable or compiler is None:
        raise CollectError(f"SimGrid is not installed ({tool.remedy}); leave --mpi out for the closed form.")
    samples: list[Sample] = []
    with _folder() as place:
        program = mpi.compiled(compiler, source("shift.c"), place / "shift", "-DSIMULATED", "-lsimgrid")
        for clock in clocks:
            for waiting in plan.ways:
                command = _simulation(place, program, plan, clock, waiting, cluster)
                text = mpi.output_of([str(tool.path), *command], {**os.environ, "LC_ALL": "C"})
                samples += [_simulated(row, waiting, clock, plan.processes, cluster) for row in lines(text)]
    return samples, f"SimGrid {tool.version}"


def _simulation(
    place: Path, program: Path, plan: Plan, clock: Clock, waiting: str, cluster: Cluster
) -> Iterator[str]:  # fmt: skip
    """The words after `smpirun`, and the files that they name."""
    way = POLL if waiting == POLLING else INTERRUPT
    nodes = simulated.nodes(replace(cluster, waiting=way), [str(program)], plan.processes, None)
    speeds = {speed.core_mhz: speed for speed in nodes.speeds}
    normal, low = speeds[cluster.default.core_mhz], speeds[clock.core_mhz]
    (place / "platform.xml").write_text(platform(nodes, normal, low), encoding="utf-8")
    (place / "hosts.txt").write_text(hosts(nodes), encoding="utf-8")
    yield from ("-np", str(plan.processes), "-platform", str(place / "platform.xml"))
    yield from ("-hostfile", str(place / "hosts.txt"))
    yield from (f"--cfg={setting}" for setting in simgrid.settings(nodes))
    yield from ("--cfg=smpi/simulate-computation:no", "--log=root.thres:warning", str(program), *plan.words)
    yield from (_SIMULATED_ROUNDS, "1", "-")
    yield str(known(cluster, "interrupt_s")) if waiting == BLOCKING else "-"
    yield str(known(cluster, "clock_change_s")) if clock != cluster.default else "-"


def _simulated(row: Measured, waiting: str, clock: Clock, processes: int, cluster: Cluster) -> Sample:
    marks = Mark.SIMULATED | (Mark.ASSUMED if cluster.basis == "assumed" else Mark(0))
    energy_j = None if row.energy_j is None else row.energy_j / row.operations / processes
    latency_s = row.time_s / row.operations
    return Sample(
        row.primitive, row.size, waiting, clock.core_mhz, latency_s, energy_j, None, row.operations, marks
    )  # fmt: skip

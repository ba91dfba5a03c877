"""The shift benchmark ([S] 6.4.2) under Open MPI, MPICH and on SimGrid: compiled, run, read back."""

import itertools
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from eprof import profilers
from eprof.base.errors import CollectError
from eprof.base.optional import gathered
from eprof.base.resources import folder
from eprof.base.vocabulary import Mark
from eprof.clusters import mpi, simulated
from eprof.clusters.cluster import INTERRUPT, POLL, Clock, Cluster
from eprof.clusters.simulated import hosts, platform, settings
from eprof.collect.machine import CORES, compiled, executable
from eprof.collect.meters import rapl
from eprof.commands.comm.model import BLOCKING, POLLING, Sample, known

_LOW, _HIGH = "scaling_min_freq", "scaling_max_freq"
_SLOWEST, _FASTEST = "cpuinfo_min_freq", "cpuinfo_max_freq"


@contextmanager
def held_at(core_mhz: float | None, root: Path = Path("/")) -> Iterator[None]:
    """Hold all cores of the processor at a clock in MHz inside the block, and give back what was in force.

    None: leave the clocks alone. root: where /sys stands. Raises CollectError, with nothing changed.
    """
    if core_mhz is None:
        yield
        return
    cores = check_clock(core_mhz, root)
    before = {core: (_number(core / _LOW), _number(core / _HIGH)) for core in cores}
    try:
        khz = _khz(core_mhz)
        try:
            for core in cores:
                _set(core, khz, khz)
        except OSError as err:
            raise CollectError("--clock: this machine does not let its clock be set, and none was changed.") from err
        yield
    finally:
        for core, (low_khz, high_khz) in before.items():
            with suppress(OSError):
                _set(core, low_khz, high_khz)


def check_clock(core_mhz: float, root: Path = Path("/")) -> list[Path]:
    """The cpufreq folders of all cores, which can be set to `core_mhz`. Raises CollectError if one cannot."""
    cores = sorted((root / CORES).glob("cpu[0-9]*/cpufreq"))
    if not cores:
        raise CollectError("--clock: this machine lets nobody set its clock (no cpufreq in /sys); none was changed.")
    for core in cores:
        if not all(os.access(core / name, os.W_OK) for name in (_LOW, _HIGH)):
            raise CollectError("--clock: only root may set the clock of this machine; none was changed.")
        slowest_khz, fastest_khz = _number(core / _SLOWEST), _number(core / _FASTEST)
        if not slowest_khz <= _khz(core_mhz) <= fastest_khz:
            span = f"{slowest_khz / 1000:g} to {fastest_khz / 1000:g} MHz"
            raise CollectError(f"--clock {core_mhz:g}: this processor has {span}; no clock was changed.")
    return cores


def _khz(core_mhz: float) -> int:
    return round(core_mhz * 1000)


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError) as err:
        raise CollectError(f"--clock: {file} cannot be read, so no clock is changed.") from err


def _set(core: Path, low_khz: int, high_khz: int) -> None:
    """Set both limits of a core's clock, the low one out of the way first: it may never be above the high one."""
    (core / _LOW).write_text(str(_number(core / _SLOWEST)))
    (core / _HIGH).write_text(str(high_khz))
    (core / _LOW).write_text(str(low_khz))


_LINE = "eprof-comm"
_SIMULATED_ROUNDS = "2"
_REPEATS = "5"
_LIBRARY = ("-shared", "-fPIC", "-Wl,--as-needed", "-ldl")  # without MPI, which the program brings along


class Plan(NamedTuple):
    """What to run: operations, their sizes in bytes, ways to wait, and the number of processes.

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


def source(name: str) -> Path:
    """The path of a benchmark's C source that comes with eprof."""
    return Path(str(folder("calibration") / "mpi" / name))


def library(target: Path, kind: str | None = None) -> None:
    """Compile the library that waits without spinning, for an MPI (None: Open MPI, else MPICH). Raises CollectError."""
    if kind is None and mpi.find()[0] is None and mpi.find("mpich")[0] is not None:
        kind = "mpich"
    compiled(mpi.needed(kind or "openmpi").compiler, source("wait.c"), target, *_LIBRARY)


def lines(text: str, waiting: str, core_mhz: float | None, processes: int) -> Iterator[Sample]:
    """A sample for each line of the shift benchmark in `text`. Raises CollectError for a line that is cut off."""
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


def medians(samples: Iterable[Sample]) -> Iterator[Sample]:
    """Yield one sample for each operation and size: of its repeats that of median latency, with their `spread` set."""
    for same in gathered(((sample.primitive, sample.size), sample) for sample in samples).values():
        ordered = sorted(same, key=lambda sample: sample.latency_s)
        median = ordered[(len(ordered) - 1) // 2]
        yield median._replace(spread=(ordered[-1].latency_s - ordered[0].latency_s) / median.latency_s)


def on_this_machine(
    kind: str, plan: Plan, clocks_mhz: Sequence[float], cluster: Cluster
) -> tuple[list[Sample], str, str]:
    """Run the benchmark under an MPI of this machine: its samples, the MPI's version, what the joules are from.

    Polling is what MPI does; blocking is the same with the library of `wait.c`. Joules are those of RAPL, else
    powers of the cluster over the time that the processors worked. Each clock is held while it is measured, after the
    one in force. Raises CollectError.
    """
    found = mpi.needed(kind)
    for asked_mhz in clocks_mhz:
        check_clock(asked_mhz)
    counters = [f"{file}={most}" for file, most in rapl.counters().items()]
    arguments = [*plan.words, f"{plan.seconds:g}s", _REPEATS, ",".join(counters) or "-"]
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="eprof-comm-") as place:
        program = compiled(found.compiler, source("shift.c"), Path(place, "shift"))
        shim = compiled(found.compiler, source("wait.c"), Path(place, "libwait.so"), *_LIBRARY)
        asleep = {POLLING: [], BLOCKING: ["env", f"LD_PRELOAD={shim}", "EPROF_WAIT_BYTES=0"]}
        for core_mhz, waiting in itertools.product((None, *clocks_mhz), plan.ways):
            command = [*mpi.launch(found, plan.processes), *asleep[waiting], str(program), *arguments]
            with held_at(core_mhz):
                text = mpi.output_of(command)
            samples += medians(lines(text, waiting, core_mhz, plan.processes))
    if counters:
        return samples, str(found), "RAPL"
    priced = [_priced(sample, cluster.at(sample.core_mhz)) for sample in samples]
    return priced, str(found), f"processor time at the powers of {cluster.name} (assumed)"


def _priced(sample: Sample, clock: Clock) -> Sample:
    """Give a sample joules: its time at idle power, and at the power above idle while its processor was busy."""
    power_w = clock.idle_w + (sample.busy or 0.0) * clock.on_chip_w
    return sample._replace(energy_j=power_w * sample.latency_s, marks=Mark.ESTIMATED | Mark.ASSUMED)


def on_simgrid(plan: Plan, clocks: Sequence[Clock], cluster: Cluster) -> tuple[list[Sample], str]:
    """Simulate the benchmark, each clock one of the waits alone: samples, and SimGrid's version. Raises EprofError."""
    tool = profilers.collector("simgrid").find()
    compiler = executable(("smpicc",), ())
    if not tool.usable or compiler is None:
        raise CollectError(f"SimGrid is not installed ({tool.remedy}); leave --mpi out for the closed form.")
    marks = Mark.SIMULATED | cluster.marks
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory(prefix="eprof-comm-") as place:
        program = compiled(compiler, source("shift.c"), Path(place, "shift"), "-DSIMULATED", "-lsimgrid")
        for clock, waiting in itertools.product(clocks, plan.ways):
            way = {POLLING: POLL, BLOCKING: INTERRUPT}[waiting]
            nodes = simulated.nodes(replace(cluster, waiting=way), [str(program)], plan.processes, None)
            speeds = {speed.core_mhz: speed for speed in nodes.speeds}
            files = {"platform": platform(nodes, speeds[cluster.default.core_mhz], speeds[clock.core_mhz])}
            files["hostfile"] = hosts(nodes)
            command = [str(tool.path), "-np", str(plan.processes)]
            for option, content in files.items():
                file = program.with_name(f"{option}.xml")
                file.write_text(content, encoding="utf-8")
                command += [f"-{option}", str(file)]
            command += [f"--cfg={setting}" for setting in (*settings(nodes), "smpi/simulate-computation:no")]
            command += ["--log=root.thres:warning", str(program), *plan.words, _SIMULATED_ROUNDS, "1", "-"]
            command.append(str(known(cluster, "interrupt_s")) if waiting == BLOCKING else "-")
            command.append(str(known(cluster, "clock_change_s")) if clock != cluster.default else "-")
            rows = lines(mpi.output_of(command), waiting, clock.core_mhz, plan.processes)
            samples += [sample._replace(marks=marks) for sample in rows]
    return samples, f"SimGrid {tool.version}"

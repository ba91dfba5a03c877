"""What a profiler is to `eprof run`: a `Collector`, which makes a `Step` of a `Request`, and judges its logs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from eprof.base.errors import UsageError
from eprof.collect.process import Ended

CPU, GPU, CLUSTER, PROGRAM = "cpu", "gpu", "cluster", "program"  # what a profiler profiles
TIME, ENERGY, COUNTERS = "time", "energy", "counters"  # the kinds of measurement
# The program alone, before everything else, where all of the others come with some profiler's own output.
PLAIN = "plain"
# In commands that are run for each of several files.
EACH = "{}"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Tool(NamedTuple):
    """A profiler as `Collector.find` finds it on this machine, with the device that it would profile.

    why: what it is good for, or why it is not usable; remedy: what mends that.
    """

    name: str
    usable: bool
    why: str
    path: str | None = None
    version: str | None = None
    remedy: str | None = None
    device: str | None = None
    capability: str | None = None


class Speed(NamedTuple):
    """A clock of simulated nodes: what a node computes in a second, and its power in W, waiting and computing."""

    core_mhz: float
    work_per_s: float
    waiting_w: float
    computing_w: float


class Nodes(NamedTuple):
    """A cluster to simulate, one process a node. speeds: its clocks; the program is run at the first.

    link_w: the power of a link in one direction, idle and busy; None: not known. collectives: the algorithms of
    collective operations ("alltoall:pair"). computes: the program's work is timed on this machine, as it does not say
    how much it is. about: for `run.json`.
    """

    processes: int
    speeds: tuple[Speed, ...]
    bandwidth_byte_per_s: float
    latency_s: float
    link_w: tuple[float, float] | None = None
    collectives: tuple[str, ...] = ()
    computes: bool = False
    about: Mapping[str, Any] = _NOTHING


class Request(NamedTuple):
    """What `eprof run` is to measure: the program, and which of its launches. caches: of a CPU, to be simulated.

    checked: a simulated device is to check every memory access, however long that takes. model: the GPU whose caches a
    simulated device is to have, as the user names it. priced_as: the cost table, as the user names it.
    """

    program: tuple[str, ...]
    kernels: tuple[str, ...] = ()
    launch_skip: int = 0
    launch_count: int | None = None
    nvtx: str | None = None
    lock_clocks: bool = False
    caches: Mapping[str, str] = _NOTHING
    time_only: bool = False
    nodes: Nodes | None = None
    checked: bool = False
    model: str | None = None
    priced_as: str | None = None


class Offer(NamedTuple):
    """The names of the counters that a profiler can collect on this machine, and the device that they are of."""

    device: str | None
    names: frozenset[str]


class Place(NamedTuple):
    """Where a measurement leaves its logs: the run directory, and which repetition it is (from 1)."""

    directory: Path
    number: int = 1

    def log(self, kind: str, suffix: str) -> Path:
        """The file, or pattern, below `logs/` for this repetition's logs of `kind`: "logs/counters-1-%p.csv"."""
        return self.directory / "logs" / f"{kind}-{self.number}{suffix}"


class Then(NamedTuple):
    """A command to run after a measurement: its standard output becomes `log`, made of the file `source`.

    It is run if the source exists. That is kept; the by-products `beside` are not. A source with a * is several files,
    each with its own command and log (`each`). lost: what is lost if no log comes of it, as half a sentence.
    """

    command: tuple[str, ...]
    source: Path
    log: Path
    beside: tuple[Path, ...] = ()
    lost: str = ""

    def each(self) -> "list[Then]":
        """A `Then` for each source file that exists, put in for the word {} of the command and {} in the log's name."""
        return [
            self._replace(
                command=tuple(str(source) if word == EACH else word for word in self.command),
                source=source,
                log=self.log.with_name(self.log.name.replace(EACH, source.stem)),
            )
            for source in sorted(self.source.parent.glob(self.source.name))
        ]


class Step(NamedTuple):
    """One measurement: the command to run, what is in its environment, and which files of `logs/` it leaves.

    what: PLAIN, TIME, ENERGY or COUNTERS. logs: patterns below `logs/`. in_stdout: the profiler writes into the
    program's standard output; then that goes to files of `logs/` that begin so, one a process, and `strip` takes the
    profiler's part out of what is passed on. passes: how often each kernel is run, in words.
    files: path in the run directory -> text of a small file that the profiler needs. then: what is run afterwards.
    """

    what: str
    command: tuple[str, ...]
    why: str
    environment: Mapping[str, str] = _NOTHING
    logs: tuple[str, ...] = ()
    in_stdout: str | None = None
    strip: Callable[[], "Strip"] | None = None
    passes: str = "1"
    files: Mapping[str, str] = _NOTHING
    then: Then | None = None


class Strip(ABC):
    """Takes a profiler's lines out of a program's standard output, piece by piece."""

    @abstractmethod
    def feed(self, piece: bytes, final: bool = False) -> bytes:
        """Take a piece of output; returns what is certainly the program's own so far. final: it is the last piece."""


class Verdict(NamedTuple):
    """What the logs of a measurement say: sentences for the user, the program's exit status if a log has it, kernels.

    failed: the measurement did not take place. kernels: 0 if the profiler says that there were none, None: not known.
    tells_status: whether the exit code, where no log has it, is the program's and not the profiler's own.
    goes_on: another profiler may see kernels where this one saw none. left_out_s: what the program did -> s of its time
    that the counters will not cover; left_out_cpu_s: of its processor time.
    """

    messages: tuple[str, ...] = ()
    program_status: int | None = None
    failed: bool = False
    kernels: int | None = None
    tells_status: bool = True
    goes_on: bool = False
    left_out_s: Mapping[str, float] = _NOTHING
    left_out_cpu_s: float = 0.0


class Collector(ABC):
    """A profiler: whether it is here, what it can count, the commands that run it, and what its logs say of the run.

    rank: the lower, the more it is preferred. kinds: the measurements that it makes. capabilities: the first compute
    capability that it counts on, and the first beyond. processes: a pattern for the paths of its own programs, which a
    time limit spares so that they can write their logs. quicker: what shortens a long run, in words. counts_all: it
    takes no list of counters. costs: the table to price with where no other is named; None: the one made for the
    device. processor: what it profiles (CPU...). samples_activity: it samples how busy a GPU's units are, beside power.
    times_alone: all times are of the program alone, which runs as often as a median needs.
    """

    name: str
    rank: int
    kinds: tuple[str, ...] = (TIME, ENERGY, COUNTERS)
    simulated = False
    counts_all = False
    costs: str | None = None
    processor = GPU
    capabilities: tuple[float, float] = (0.0, float("inf"))
    chooses_launches = False
    locks_clocks = False
    samples_activity = False
    times_alone = False
    processes: str | None = None
    quicker = "a smaller problem"

    def fits(self, capability: str | None) -> bool:
        """Whether the profiler counts on GPUs of a capability; True where that is not known."""
        first, beyond = self.capabilities
        return capability is None or first <= float(capability) < beyond

    def order(self, request: Request) -> tuple[str, ...]:
        """The measurements (TIME...) to make for a request, in order. The program's output is shown in the first."""
        return self.kinds

    def helpers(self) -> tuple[Tool, ...]:
        """Other tools on this machine, found or not, that make the profiler's results better."""
        return ()

    @abstractmethod
    def find(self, program: str = "") -> Tool:
        """Look for the profiler, maybe where `program` is, and a device that it can use. Quick where there is none."""

    def offered(self, tool: Tool, wanted: Collection[str] = ()) -> Offer | None:
        """What this profiler can count on this machine; None where it lists none.

        wanted: names that may be collected; the profiler checks those that no list of its own holds.
        """
        return None

    def basic(self, capability: str) -> dict[str, str]:
        """Counter -> what it is for, to collect on a compute capability without a definition; {}: no such set."""
        return {}

    def check(self, request: Request) -> None:
        """Raise UsageError if the request asks for what the profiler cannot do."""
        if request.model is not None:
            raise UsageError(f"--caches is for simulated devices (--profiler oclgrind); {self.name} models no caches.")

    @abstractmethod
    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The `Step` that makes the measurement `what` (TIME...) of a request; nothing is run. counters: to collect."""

    @abstractmethod
    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """What the logs of a step that has ended say, see `Verdict`.

        errors: its standard error; "" in the first step, whose output is passed on.
        """

    def is_log(self, path: Path) -> bool:
        """Whether a file is a log of the profiler: processes that are not profiled may leave files too."""
        return True

    def progress(self, logs: Sequence[Path]) -> int | None:
        """The number of kernel launches profiled so far, from growing logs; None where they do not show it."""
        return None


def option(name: str, value: str | None) -> list[str]:
    """The words `name value` for a profiler's command; none where the value is empty."""
    return [name, value] if value else []


class ProgramAlone(Collector):
    """No profiler: the program runs once for `eprof timeline`; meanwhile: what is sampled beside it, in words."""

    kinds = (ENERGY,)
    counts_all = True
    processor = PROGRAM
    meanwhile: str

    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The `Step` of one run without a profiler."""
        return Step(what, request.program, f"the program alone, while {self.meanwhile}")

    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """An empty verdict: nothing beside the program ran that could fail."""
        return Verdict()

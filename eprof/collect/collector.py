"""What a profiler is to `eprof run`: a `Collector`, which makes a `Step` of a `Request`, and judges its logs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from eprof.base.errors import UsageError
from eprof.collect.process import Ended

CPU, GPU, CLUSTER, PROGRAM = "cpu", "gpu", "cluster", "program"  # what a profiler profiles
TIME, ENERGY, COUNTERS = "time", "energy", "counters"
# The program alone, before everything else, where all of the others come with some profiler's own output.
PLAIN = "plain"
# In commands that are run for each of several files.
EACH = "{}"
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Tool(NamedTuple):
    """A profiler on this machine. why: what it is good for, or why it cannot be used; remedy: what mends that."""

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
    """What to measure: the program, and which of its launches. caches: those to simulate (`CostTable.caches`).

    checked: a simulated device is to look at every access, however long that takes. model, priced_as: the GPU whose
    caches it is to have, as the user names it; the cost table.
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
    """The counters that a profiler offers, by name, on the device that it names."""

    device: str | None
    names: frozenset[str]


class Place(NamedTuple):
    """Where a measurement leaves its logs: the run directory, and which repetition it is (from 1)."""

    directory: Path
    number: int = 1

    def log(self, kind: str, suffix: str) -> Path:
        """The file or pattern for the logs of a kind of measurement: "logs/counters-1-%p.csv"."""
        return self.directory / "logs" / f"{kind}-{self.number}{suffix}"


class Then(NamedTuple):
    """What makes a log of what a measurement left: a command whose standard output becomes `log`.

    It is run if there is a `source`, which is kept; the files `beside` are by-products, and are not. A source with a *
    is several files: the word {} of the command is each of them, and {} in the name of the log its name.
    lost: what follows if no log comes of it, as half a sentence.
    """

    command: tuple[str, ...]
    source: Path
    log: Path
    beside: tuple[Path, ...] = ()
    lost: str = ""

    def each(self) -> "list[Then]":
        """A `Then` for each source file that is there, with its name put into the command and the log's name."""
        return [
            self._replace(
                command=tuple(str(source) if word == EACH else word for word in self.command),
                source=source,
                log=self.log.with_name(self.log.name.replace(EACH, source.stem)),
            )
            for source in sorted(self.source.parent.glob(self.source.name))
        ]


class Step(NamedTuple):
    """One measurement: what is run, with what in its environment, and which files of `logs/` it leaves.

    what: PLAIN, TIME, ENERGY or COUNTERS. logs: patterns below `logs/`. in_stdout: the profiler writes into the
    program's standard output; then that goes to files of `logs/` that begin so, one a process, and `strip` takes the
    profiler's part out of what is passed on. passes: how often each kernel is run, in words.
    files: small files that the profiler needs, by their path in the run directory. then: what is run after it.
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
    """What the logs of a step say: sentences for the user, the program's exit status if a log has it, kernels seen.

    failed: the measurement did not take place. kernels: 0 if the profiler says that there were none, None: not known.
    tells_status: whether the exit code, where no log has it, is the program's and not the profiler's own.
    goes_on: another profiler may see kernels where this one saw none. left_out_s: of the program's time, what is not
    counted later, by what it is; left_out_cpu_s: of its processor time.
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
    """A profiler: is it here, what can it count, how is it called, and what do its logs say about the run.

    rank: the lower, the more it is preferred. capabilities: the first compute capability that it counts on, and the
    first that it does not. processes: a pattern for the paths of its own programs, which a time limit spares so that
    they can write their logs. quicker: what shortens a long run, in words. counts_all: it takes no list of counters.
    costs: the table to price with where no other is named; None: the one made for the device. processor: what it
    profiles. samples_activity: how busy a GPU's units are is sampled, beside power. times_alone: all times are of the
    program alone, which runs as often as a median needs.
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
        """The kinds of measurement (TIME...) of a run, in order. The program's output passes through in the first."""
        return self.kinds

    def helpers(self) -> tuple[Tool, ...]:
        """Other tools on this machine, found or not, that make the profiler's results better."""
        return ()

    @abstractmethod
    def find(self, program: str = "") -> Tool:
        """Look for the profiler and a device that it can use; `program` may show where. Quick where there is none."""

    def offered(self, tool: Tool, wanted: Collection[str] = ()) -> Offer | None:
        """What this profiler can count on this machine; None where it lists none.

        wanted: names that may be collected; the profiler checks those that no list of its own holds.
        """
        return None

    def basic(self, capability: str) -> dict[str, str]:
        """Counter -> what it is for: to collect where no definition lists any; empty if there is no such set."""
        return {}

    def check(self, request: Request) -> None:
        """Refuse what the profiler cannot do. Raises UsageError."""
        if request.model is not None:
            raise UsageError(f"--caches is for simulated devices (--profiler oclgrind); {self.name} models no caches.")

    @abstractmethod
    def step(self, what: str, tool: Tool, request: Request, place: Place, counters: Sequence[str] = ()) -> Step:
        """The `Step` that makes the measurement `what` (TIME...); runs nothing. counters: the profiler's names."""

    @abstractmethod
    def judge(self, step: Step, ended: Ended, logs: Sequence[Path], errors: str = "") -> Verdict:
        """What the logs of a step that has ended say, see `Verdict`.

        errors: its standard error; "" in the first step, whose output is passed on.
        """

    def is_log(self, path: Path) -> bool:
        """Whether a file is a log of the profiler, where processes that are not profiled leave files too."""
        return True

    def progress(self, logs: Sequence[Path]) -> int | None:
        """How many kernel launches the profiler has done, from its growing logs; None where they do not show it."""
        return None


def option(name: str, value: str | None) -> list[str]:
    """An option of a profiler's command with its value; no words where that is empty."""
    return [name, value] if value else []


class ProgramAlone(Collector):
    """No profiler: the program runs once, `meanwhile` something samples its power or more. For `eprof timeline`."""

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

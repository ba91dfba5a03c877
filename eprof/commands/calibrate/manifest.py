"""`calibration/benchmarks.toml`: the benchmarks, what one launch of each does, and how fast a GPU should be at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from eprof.base.errors import UsageError
from eprof.base.optional import mapped, summed
from eprof.base.resources import folder
from eprof.base.toml import Document, Formula
from eprof.base.vocabulary import COUNTS
from eprof.commands.calibrate.worker import OVERHEAD_S

# Starting the worker, compiling two files, the first warm-up.
_START_S = 25.0
ZEROS = " (zeros)"


class Timing(Struct, frozen=True):
    """Times of a calibration, s. budget: of a setting; launch: of one kernel launch; rounds: measurements a benchmark.

    window: while the meter is read, long enough for 50 updates of most meters. warm: before the window, longer than
    sensors average.
    """

    budget_s: float = 360.0
    window_s: float = 5.0
    warm_s: float = 1.5
    launch_s: float = 0.05
    rounds: int = 3

    @property
    def benchmark_s(self) -> float:
        """The time that one measurement of one benchmark takes, in s."""
        return self.warm_s + self.window_s + OVERHEAD_S

    def benchmarks(self) -> int:
        """How many measurements, each of one benchmark, fit into the budget of a setting."""
        return max(int((self.budget_s - _START_S) / self.benchmark_s), 0)

    def expected_s(self, count: int) -> float:
        """The s that `count` benchmarks take at one setting: `rounds` measurements each, as far as the budget goes."""
        return _START_S + min(count * self.rounds, max(self.benchmarks(), 1)) * self.benchmark_s


# Ten benchmarks in about a minute.
QUICK = Timing(budget_s=75.0, window_s=2.0, warm_s=1.0, rounds=1)


def choose(manifest: Manifest, capability: Capability, only: Sequence[str] = ()) -> list[Benchmark]:
    """The manifest's benchmarks that a GPU of `capability` runs, in order; those that need a profiler only if named.

    only: their names; none: all. Raises UsageError for an unknown name.
    """
    known = {benchmark.name for benchmark in manifest.benchmarks}
    for name in only:
        if name not in known:
            raise UsageError(f"There is no benchmark `{name}`; `eprof calibrate --dry-run` lists them.")
    benchmarks = [benchmark for benchmark in manifest.benchmarks if benchmark.runs_on(capability)]
    if only:
        return [benchmark for benchmark in benchmarks if benchmark.name in only]
    return [benchmark for benchmark in benchmarks if not benchmark.needs_counters]


def choose_quick(manifest: Manifest, capability: Capability) -> list[Benchmark]:
    """The few benchmarks of `--quick`, each with random operands, then with zeros if it has any."""
    chosen: list[Benchmark] = []
    for benchmark in map(manifest.named, manifest.quick):
        if not benchmark.runs_on(capability):
            continue
        chosen.append(benchmark)
        # Nearly idle: what its operands are makes no difference.
        if benchmark.least:
            chosen.append(replace(benchmark, name=f"{benchmark.name}{ZEROS}", scale=0.0))
    return chosen


def jobs(benchmarks: Sequence[Benchmark], done: Mapping[str, int]) -> list[dict[str, Any]]:
    """A job of the worker's plan for each benchmark. done: benchmark -> rounds that need not be run again."""
    same = ("name", "kernel", "block", "blocks", "region", "spread", "scale")
    plan = [{key: getattr(benchmark, key) for key in same} for benchmark in benchmarks]
    return [{**job, "done": done.get(job["name"], 0)} for job in plan]


SCHEMA = 1
REGIONS = ("none", "near", "l2", "l3", "dram")
GPU, CPU = "benchmarks.toml", "cpu.toml"
_BLOCK = 256
Capability = tuple[int, int]


class ByCapability(dict[Capability, float]):
    """Numbers by compute capability; each holds from that capability on."""

    @classmethod
    def of(cls, numbers: Mapping[str, float]) -> ByCapability:
        """The numbers of a table of the manifest. Raises ValueError: a key is no capability."""
        return cls({capability_of(key): float(number) for key, number in numbers.items()})

    def at(self, capability: Capability) -> float | None:
        """The number for a capability: that of the latest one up to it; None: all are later."""
        return mapped(self.__getitem__, max((entry for entry in self if entry <= capability), default=None))


class Counts(dict[str, Formula]):
    """Word of the vocabulary -> formula of its count in one launch."""

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Counts:
        """The counts of a table of the manifest. Raises ValueError: an unknown word, or no formula."""
        for word in texts.keys() - COUNTS.keys():
            raise ValueError(f"`{word}` is not a word of the vocabulary")
        return cls({word: Formula.parse(text) for word, text in texts.items()})


class Rate(Struct, frozen=True, forbid_unknown_fields=True):
    """Operations or bytes that a multiprocessor does a cycle, by capability. ceiling: a faster benchmark is wrong."""

    ceiling: bool
    at: ByCapability


class Benchmark(Struct, frozen=True, eq=False, forbid_unknown_fields=True, rename={"first": "from"}):
    """A microbenchmark: one kernel with one kind of launch.

    count, overhead: word of the vocabulary -> formula of `threads`, `iterations` and the manifest's constants, for one
    launch. least: the fraction of the hardware's rate that it must reach. needs_counters: why its counts are to be
    trusted only where a profiler confirms them; "" if they need no confirmation. unfitted: why no fit takes it; "" if
    one does. flop: words in flops, of what `count` counts as instructions of tensor cores. scale: of operands.
    """

    name: str
    source: str
    kernel: str
    title: str
    first: str = "2.0"
    but_not: tuple[str, ...] = ()
    blocks: str = "sms * resident"
    block: Annotated[int, Meta(ge=1, le=_BLOCK)] = _BLOCK
    region: Literal["none", "near", "l2", "l3", "dram"] = "none"
    spread: Annotated[int, Meta(ge=1, le=8)] = 1
    least: Annotated[float, Meta(ge=0, le=1)] = 0.6
    needs_counters: str = ""
    unfitted: str = ""
    count: Counts = field(default_factory=Counts)
    overhead: Counts = field(default_factory=Counts)
    flop: Counts = field(default_factory=Counts)
    scale: float = 1.0

    def runs_on(self, capability: Capability) -> bool:
        """Whether a GPU of this capability has what the benchmark needs."""
        return capability >= capability_of(self.first) and capability not in map(capability_of, self.but_not)


_KEYS = {"constants": "constant", "rates": "rate", "benchmarks": "benchmark"}


class Manifest(Struct, frozen=True, eq=False, forbid_unknown_fields=True, rename=_KEYS):
    """The benchmarks in the order of running, with what depends on the capability. quick: names of the quick ones."""

    schema: int
    books: Literal["served", "accessed"]
    quick: tuple[str, ...]
    constants: dict[str, ByCapability]
    benchmarks: tuple[Benchmark, ...]
    rates: dict[str, Rate] = {}
    block: int = _BLOCK

    def named(self, name: str) -> Benchmark:
        """The benchmark `name`; KeyError if there is none."""
        return {benchmark.name: benchmark for benchmark in self.benchmarks}[name]

    def values(self, capability: Capability) -> dict[str, float]:
        """The manifest's constants for a capability by name, without those that only later capabilities have."""
        values = {name: table.at(capability) for name, table in self.constants.items()}
        return {name: value for name, value in values.items() if value is not None}

    def counts(
        self, benchmark: Benchmark, capability: Capability, threads: float, iterations: float, overhead: bool = True
    ) -> dict[str, float]:
        """Word -> instructions or bytes of one launch of a benchmark. overhead: with those of the loop itself."""
        values = {**self.values(capability), "threads": threads, "iterations": iterations}
        formulas = [*benchmark.count.items(), *[*benchmark.overhead.items()] * overhead]
        return summed((word, float(formula(values))) for word, formula in formulas)

    def flops(self, benchmark: Benchmark, threads: float, iterations: float) -> dict[str, float]:
        """Flops of tensor cores in one launch of a benchmark, by word."""
        values = {"threads": threads, "iterations": iterations}
        return {word: float(formula(values)) for word, formula in benchmark.flop.items()}


def home() -> Traversable:
    """The folder with the manifest of benchmarks and the kernels."""
    return folder("calibration")


@lru_cache
def load(name: str = GPU) -> Manifest:
    """The manifest in a file that comes with eprof: of benchmarks for GPUs, or for a processor (`CPU`)."""
    return parse(Document.read(home() / name))


def source_text(name: str) -> str:
    """The source to compile of the benchmarks' file `name`; for GPUs behind the block's size and portable.h."""
    if name.endswith(".c"):
        return (home() / name).read_text(encoding="utf-8")
    parts = [(home() / file).read_text(encoding="utf-8") for file in ("portable.h", name)]
    return "\n".join([f"#define BLOCK {_BLOCK}", *parts])


def capability_of(text: str) -> Capability:
    """A compute capability as a pair of numbers: (8, 6) of "8.6". Raises ValueError."""
    major, _, minor = text.partition(".")
    if not major.isdecimal() or not minor.isdecimal():
        raise ValueError(f'`{text}` is not a compute capability such as "8.6"')
    return int(major), int(minor)


def parse(document: Document) -> Manifest:
    """The manifest of benchmarks in `document`. Raises DefinitionError with the line of the first mistake."""
    document.root.schema(SCHEMA)
    block = {"block": document.data.get("block", _BLOCK)}
    benchmarks = [{**block, **entry} for entry in document.data.get("benchmark", [])]
    manifest = document.typed({**document.data, "benchmark": benchmarks}, Manifest, lambda kind, data: kind.of(data))
    known = ("threads", "iterations", *manifest.constants)
    names = [benchmark.name for benchmark in manifest.benchmarks]
    for place, entry in enumerate(document.root["benchmark"].entries()):
        if names[place] in names[:place]:
            raise entry["name"].error(f"there are two benchmarks `{names[place]}`.")
        if "blocks" in entry:
            entry["blocks"].formula(("sms", "resident"))
        for formulas in ("count", "overhead", "flop"):
            for _, formula in entry[formulas].items():
                formula.formula(known)
    for name in document.root["quick"].entries():
        name.choice(names)
    return manifest

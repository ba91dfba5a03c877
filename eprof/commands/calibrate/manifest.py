"""`calibration/benchmarks.toml`: the benchmarks, what one launch of each does, and how fast a GPU should be at it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import UsageError
from eprof.base.optional import mapped
from eprof.base.resources import folder
from eprof.base.toml import Document, Formula, Node
from eprof.base.vocabulary import BOOKS, COUNTS
from eprof.commands.calibrate.worker import OVERHEAD_S

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

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
    plan = []
    for benchmark in benchmarks:
        same = {key: getattr(benchmark, key) for key in ("name", "kernel", "block", "region", "spread", "scale")}
        plan.append({**same, "blocks": benchmark.blocks.text, "done": done.get(benchmark.name, 0)})
    return plan


SCHEMA = 1
REGIONS = ("none", "near", "l2", "l3", "dram")
GPU, CPU = "benchmarks.toml", "cpu.toml"
_BENCHMARK = (
    *("name", "source", "kernel", "title", "from", "but_not", "blocks", "block", "region", "spread", "least"),
    *("needs_counters", "unfitted", "count", "overhead", "flop"),
)
_BLOCK = 256
Capability = tuple[int, int]


class Rate(Struct, frozen=True):
    """Operations or bytes that a multiprocessor does a cycle, by capability. ceiling: a faster benchmark is wrong."""

    ceiling: bool
    at: Mapping[Capability, float]


class Benchmark(Struct, frozen=True, eq=False):
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
    first: Capability
    but_not: tuple[Capability, ...]
    blocks: Formula
    block: int
    region: str
    spread: int
    least: float
    needs_counters: str
    unfitted: str
    count: Mapping[str, Formula]
    overhead: Mapping[str, Formula]
    flop: Mapping[str, Formula]
    scale: float = 1.0

    def runs_on(self, capability: Capability) -> bool:
        """Whether a GPU of this capability has what the benchmark needs."""
        return capability >= self.first and capability not in self.but_not


class Manifest(Struct, frozen=True, eq=False):
    """The benchmarks in the order of running, with what depends on the capability. quick: names of the quick ones."""

    books: str
    quick: tuple[str, ...]
    constants: Mapping[str, Mapping[Capability, float]]
    rates: Mapping[str, Rate]
    benchmarks: tuple[Benchmark, ...]

    def named(self, name: str) -> Benchmark:
        """The benchmark `name`; KeyError if there is none."""
        return {benchmark.name: benchmark for benchmark in self.benchmarks}[name]

    def values(self, capability: Capability) -> dict[str, float]:
        """The manifest's constants for a capability by name, without those that only later capabilities have."""
        values = {name: at(table, capability) for name, table in self.constants.items()}
        return {name: value for name, value in values.items() if value is not None}

    def counts(
        self, benchmark: Benchmark, capability: Capability, threads: float, iterations: float, overhead: bool = True
    ) -> dict[str, float]:
        """Word -> instructions or bytes of one launch of a benchmark. overhead: with those of the loop itself."""
        values = {**self.values(capability), "threads": threads, "iterations": iterations}
        counts = {word: float(formula(values)) for word, formula in benchmark.count.items()}
        if overhead:
            for word, formula in benchmark.overhead.items():
                counts[word] = counts.get(word, 0.0) + float(formula(values))
        return counts

    def flops(self, benchmark: Benchmark, threads: float, iterations: float) -> dict[str, float]:
        """Flops of tensor cores in one launch of a benchmark, by word."""
        values = {"threads": threads, "iterations": iterations}
        return {word: float(formula(values)) for word, formula in benchmark.flop.items()}


def at(table: Mapping[Capability, float], capability: Capability) -> float | None:
    """The number of `table` for a capability: that of the latest one up to it; None: all are later."""
    nearest = max((entry for entry in table if entry <= capability), default=None)
    return mapped(table.__getitem__, nearest)


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
    return int(major), int(minor)


def parse(document: Document) -> Manifest:
    """The manifest of benchmarks in `document`. Raises DefinitionError with the line of the first mistake."""
    root = document.root
    root.schema(SCHEMA)
    root.table(("schema", "books", "block", "quick", "constant", "rate", "benchmark"))
    books = root["books"].choice(BOOKS)
    constants = {name: _by_capability(numbers) for name, numbers in root["constant"].items()}
    rates = {}
    for name, rate in root["rate"].items():
        rate.table(("ceiling", "at"))
        rates[name] = Rate(rate["ceiling"].truth(), _by_capability(rate["at"]))
    block = int(_optional(root["block"], 1, _BLOCK, _BLOCK))
    known = {"threads", "iterations", *constants}
    benchmarks: dict[str, Benchmark] = {}
    for entry in root["benchmark"].entries():
        entry.table(_BENCHMARK)
        blocks = Formula.parse("sms * resident")
        if "blocks" in entry:
            blocks = entry["blocks"].formula(("sms", "resident"))
        benchmark = Benchmark(
            name=entry["name"].text(),
            source=entry["source"].text(),
            kernel=entry["kernel"].text(),
            title=entry["title"].text(),
            first=_capability(entry["from"].text("2.0"), entry["from"]),
            but_not=tuple(_capability(each.text(), each) for each in entry["but_not"].entries()),
            blocks=blocks,
            block=int(_optional(entry["block"], 32, _BLOCK, block)),
            region=entry["region"].choice(REGIONS, "none"),
            spread=int(_optional(entry["spread"], 1, 8, 1)),
            least=_optional(entry["least"], 0, 1, 0.6),
            needs_counters=entry["needs_counters"].text(""),
            unfitted=entry["unfitted"].text(""),
            count=_counts(entry["count"], known),
            overhead=_counts(entry["overhead"], known),
            flop=_counts(entry["flop"], known),
        )
        if benchmark.name in benchmarks:
            raise entry["name"].error(f"there are two benchmarks `{benchmark.name}`.")
        benchmarks[benchmark.name] = benchmark
    quick = tuple(name.choice(tuple(benchmarks)) for name in root["quick"].entries())
    return Manifest(books, quick, constants, rates, tuple(benchmarks.values()))


def _by_capability(node: Node) -> dict[Capability, float]:
    """Capability -> number in a manifest; each holds from that capability on."""
    numbers = {_capability(key, number): number.number(0, 1e9) for key, number in node.items()}
    if not numbers:
        raise node.error('write a table of capabilities: { "7.0" = 1 }.')
    return numbers


def _capability(text: str, node: Node) -> Capability:
    try:
        return capability_of(text)
    except ValueError as err:
        raise node.error(f'`{text}` is not a compute capability such as "8.6".') from err


def _optional(node: Node, least: float, most: float, default: float) -> float:
    return default if node.value is None else node.number(least, most)


def _counts(node: Node, known: Collection[str]) -> dict[str, Formula]:
    """Word -> formula of one launch's count, in a benchmark's table. Raises DefinitionError for an unknown word."""
    for word, formula in node.items():
        if word not in COUNTS:
            raise formula.error(f"`{word}` is not a word of the vocabulary.")
    return {word: formula.formula(known) for word, formula in node.items()}

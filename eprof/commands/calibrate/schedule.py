"""Which benchmarks are run, in which order, for how long: arithmetic of the time budget, jobs for the worker."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import UsageError
from eprof.collect.cuda.worker import OVERHEAD_S
from eprof.commands.calibrate.manifest import Benchmark, Capability, Manifest

# Starting the worker, compiling two files, the first warm-up.
_START_S = 25.0
ZEROS = " (zeros)"


class Timing(Struct, frozen=True):
    """How long things take, s. budget: of one setting. window: while the meter is read: long enough for 50
    updates of most meters. warm: before it, the length over which sensors average and more. launch: one launch.
    """

    budget_s: float = 360.0
    window_s: float = 5.0
    warm_s: float = 1.5
    launch_s: float = 0.05
    rounds: int = 3

    @property
    def benchmark_s(self) -> float:
        """The time of one benchmark, once."""
        return self.warm_s + self.window_s + OVERHEAD_S

    def benchmarks(self) -> int:
        """How many measurements fit into the budget of a setting."""
        return max(int((self.budget_s - _START_S) / self.benchmark_s), 0)

    def expected_s(self, count: int) -> float:
        """What `count` benchmarks take in one setting: all once, and again as far as the budget and `rounds` go."""
        return _START_S + min(count * self.rounds, max(self.benchmarks(), 1)) * self.benchmark_s


# Ten benchmarks in about a minute.
QUICK = Timing(budget_s=75.0, window_s=2.0, warm_s=1.0, rounds=1)


def choose(manifest: Manifest, capability: Capability, only: Sequence[str] = ()) -> list[Benchmark]:
    """The benchmarks to schedule, the most informative first; none that a profiler would have to confirm, unless named.

    Raises UsageError for a name that there is not.
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
    """The jobs of the worker, in the order of the schedule. done: rounds that are measured already, by name."""
    return [
        {
            "name": benchmark.name,
            "kernel": benchmark.kernel,
            "block": benchmark.block,
            "blocks": benchmark.blocks.text,
            "region": benchmark.region,
            "spread": benchmark.spread,
            "scale": benchmark.scale,
            "done": done.get(benchmark.name, 0),
        }
        for benchmark in benchmarks
    ]

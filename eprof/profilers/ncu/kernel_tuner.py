"""Energy for Kernel Tuner: which counters to observe, and joules from them as metrics to tune for (docs/python.md)."""

import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from eprof import costs as cost_tables
from eprof import logs
from eprof.base.brief import Brief
from eprof.base.clocks import label
from eprof.base.errors import DefinitionError, UsageError
from eprof.base.text import few, listed
from eprof.base.vocabulary import COUNTS
from eprof.counts import counters
from eprof.profile.plan import Plan, plan
from eprof.profile.profile import build
from eprof.profilers.ncu import handed_on
from eprof.profilers.ncu.derived import DURATIONS

if TYPE_CHECKING:
    from eprof.costs import CostTable

_PARTS = ("total", "computation", "data", "constant")
_NAMES = dict(zip(("energy_j", "computation_j", "data_j", "constant_j"), _PARTS, strict=True))
_NS_PER_MS = 1e6
_CORE, _MEMORY = "nvml_gr_clock", "nvml_mem_clock"  # Kernel Tuner's parameters for clocks, MHz


class KernelTuner(Brief, Struct, frozen=True, eq=False):
    """Prices for the results of Kernel Tuner on one GPU. setting: "CORE/MEMORY" in MHz; None: as they are tuned."""

    table: "CostTable"
    gpu: str
    setting: str | None
    planned: Plan

    @property
    def counters(self) -> list[str]:
        """The metrics of ncu that Kernel Tuner's `NCUObserver` is to collect for the prices."""
        return list(self.planned.counters)

    @property
    def missing(self) -> list[str]:
        """What Kernel Tuner's counters do not tell: joules of kernels with such work are lower bounds."""
        return [COUNTS[word].label for word in self.planned.missing]

    def observer(self, device: int = 0) -> Any:
        """Kernel Tuner's `NCUObserver` for these counters; it needs the package nvmetrics and a GPU."""
        from kernel_tuner.observers.ncu import NCUObserver

        return NCUObserver(metrics=self.counters, device=device)

    @property
    def metrics(self) -> dict[str, Callable[[Mapping[str, Any]], float]]:
        """For `tune_kernel(metrics=...)`: energy_j, and of it computation_j, data_j, constant_j."""
        # Kernel Tuner asks for one metric after the other of the same result.
        priced = lru_cache(maxsize=1)(lambda items: self.price(dict(items)))
        return {name: partial(self._joules, priced, part) for name, part in _NAMES.items()}

    def _joules(self, priced: Callable[[Any], Mapping[str, float]], part: str, result: Mapping[str, Any]) -> float:
        read = (*self.counters, "time", _CORE, _MEMORY)
        return priced(tuple((name, result[name]) for name in read if name in result))[f"{part}_j"]

    def price(self, result: Mapping[str, Any]) -> dict[str, float]:
        """The joules of one configuration of Kernel Tuner: its counters of one launch, and its time in ms ("time").

        Raises UsageError: a counter or the time is not there; CostError: the table does not know the tuned clocks.
        """
        lacking = [name for name in (*self.counters, "time") if not isinstance(result.get(name), int | float)]
        if lacking:
            raise UsageError(
                f"A result of Kernel Tuner has no number for {few(lacking, 3)}; give tune_kernel "
                "`observers=[energy.observer()]`, and leave out configurations that failed."
            )
        values = {name: float(result[name]) for name in self.counters}
        values[DURATIONS[0]] = _NS_PER_MS * float(result["time"])
        log = handed_on.log_of("Kernel Tuner", [handed_on.Launch("kernel", self.gpu, values, {})])
        profile = build([log], logs.combine([log], counters.capability_of))
        sums = profile.energy(self.table, self._setting_of(result), to_meter=False).sums()
        return {f"{part}_j": float(sums[f"{part}_j"][0]) for part in _PARTS}

    def _setting_of(self, result: Mapping[str, Any]) -> str | None:
        """The clocks of a configuration of Kernel Tuner, where clocks are tuned."""
        if self.setting is not None or not result.keys() & {_CORE, _MEMORY}:
            return self.setting
        default = self.table.default
        core, memory = result.get(_CORE, default.core_mhz), result.get(_MEMORY, default.memory_mhz)
        return label(core, memory)


def kernel_tuner(costs: str, gpu: str | None = None, setting: str | None = None) -> KernelTuner:
    """Prices for the results of Kernel Tuner (github.com/KernelTuner/kernel_tuner).

    gpu: its name, if it is not the first that the table is made for.
    Warns of what has no counter. Raises CostError: no such table, no such setting; DefinitionError: it is not known
    what counts on this GPU.
    """
    table = cost_tables.load(costs)
    names = [gpu] if gpu is not None else table.devices
    name = next((name for name in names if len(counters.capability_of(name)) == 1), None)
    if name is None:
        raise DefinitionError(
            f"The compute capability of {gpu or table.device} is not known; name the GPU, as in "
            'eprof.kernel_tuner("a100", gpu="NVIDIA A100-SXM4-40GB").'
        )
    definition = counters.find("ncu", counters.capability_of(name)[0])
    # nvmetrics collects hardware counters by full names, not what ncu makes by opcode.
    every = counters.names_in_use("ncu")
    offered = {counter for counter in every if "*" not in counter and not counter.startswith("sass__")}
    tuner = KernelTuner(table, name, setting, plan(definition, table.at(setting), offered))
    if tuner.missing:
        warnings.warn(
            f"No counter that nvmetrics collects tells {listed(tuner.missing)}; joules of kernels with such work are "
            "lower bounds.",
            stacklevel=2,
        )
    return tuner

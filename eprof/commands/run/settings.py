"""From the options of `eprof run` to a profiler, the counters that it is to collect, and the measurements to make."""

import contextlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from eprof import profilers
from eprof.base.errors import CollectError, DefinitionError, UsageError
from eprof.base.optional import gathered, mapped
from eprof.base.text import pattern, phrase
from eprof.collect import process
from eprof.collect.collector import CPU, ENERGY, PLAIN, PROGRAM, TIME, Collector, Nodes, Place, Request, Step, Tool
from eprof.collect.machine import ask
from eprof.collect.meter import Component

if TYPE_CHECKING:
    from eprof.collect.meter import Meter
    from eprof.costs import Costs, CostTable

_GPU_LIBRARY = pattern(
    rb"[oO]pen(CL|cl)|clGetPlatformIDs|libcuda|cudart|nvrtc|libamdhip|cupy|pycuda|numba\.cuda|"
    rb"(import|from) (torch|tensorflow|jax)\b"
)
_GPU_FILE = pattern(
    r"lib(OpenCL|cu(da|dart|blas|fft|sparse|rand|solver|dnn)|nv(rtc|ToolsExt|idia)|amdhip|roc|ze_loader)"
)


class Settings(NamedTuple):
    """The options of `eprof run`. costs, setting, efficiency, capability: how to price; the rest: how to measure."""

    program: tuple[str, ...]
    profiler: str = "auto"
    costs: str | None = None
    setting: str | None = None
    efficiency: float | None = None
    capability: str | None = None
    kernels: tuple[str, ...] = ()
    place: str | None = None
    force: bool = False
    repeat: int | None = None
    timeout_s: float | None = None
    launch_skip: int = 0
    launch_count: int | None = None
    nvtx: str | None = None
    time_only: bool = False
    no_energy: bool = False
    host_energy: bool = False
    lock_clocks: bool = False
    checked: bool = False
    marks: tuple[str, ...] = ()
    caches: str | None = None
    nodes: Nodes | None = None
    command_line: tuple[str, ...] = ()
    stdout: int = 1

    @property
    def request(self) -> Request:
        """What a collector is asked for, of these settings."""
        same = {name: getattr(self, name) for name in self._fields if name in Request._fields and name != "caches"}
        return Request(**same, model=self.caches)

    @property
    def whole(self) -> bool:
        """Whether every launch of the program is counted: no option chooses kernels or launches."""
        return not (self.kernels or self.launch_skip or self.launch_count or self.nvtx)


class CounterPlan(NamedTuple):
    """The profiler's counters to collect -> what each is for. missing: sentences on what cannot be counted."""

    definition: str | None = None
    counters: Mapping[str, str] = MappingProxyType({})
    missing: Sequence[str] = ()


def counters_for(collector: Collector, tool: Tool, costs: "Costs | None", capability: str | None) -> CounterPlan:
    """Plan the counters that a profiler collects: for the costs' prices; a basic set for a GPU without definition.

    Raises DefinitionError if the GPU's capability is not known.
    """
    if collector.counts_all:
        return CounterPlan()
    # Late: definitions and prices take a while, and a program without kernels need not wait for them.
    from eprof.base.vocabulary import COUNTS
    from eprof.counts import definition_files
    from eprof.profile.planned_counters import plan

    offer = collector.offered(tool, definition_files.names_in_use(collector.name))
    offered = getattr(offer, "names", None)
    device = getattr(offer, "device", None) or tool.device
    known = capability or tool.capability or _capability(device, offered or (), collector.name)
    try:
        definition = definition_files.find(collector.name, known)
    except DefinitionError:
        basic = collector.basic(known)
        if not basic:
            raise
        kept = {name: why for name, why in basic.items() if offered is None or name in offered}
        lacking = ", ".join(sorted(basic.keys() - kept.keys()))
        return CounterPlan(None, kept, [f"Not offered here, so not collected: {lacking}."] * bool(lacking))
    planned = plan(definition, costs, offered)
    labels_by_reason = gathered((reason, COUNTS[word].label) for word, reason in planned.missing.items())
    missing = [f"{', '.join(labels)} will be missing: {reason}." for reason, labels in labels_by_reason.items()]
    return CounterPlan(definition.name, {name: planned.why(name) for name in planned.counters}, missing)


def _capability(device: str | None, offered: Collection[str], profiler: str) -> str:
    """The compute capability of a GPU, by its name and the counters that it offers. Raises DefinitionError."""
    from eprof.counts import definition_files

    by_name = definition_files.capability_of(device) if device else ()
    if len(by_name) == 1:
        return by_name[0]
    by_counters = definition_files.guess_capability(offered, profiler)
    for capability in by_counters:
        if capability in by_name:
            return capability
    candidates = by_name or by_counters[:4]
    may_be = phrase(" (it may be {})", " or ".join(candidates))
    raise DefinitionError(
        f"The compute capability of {device or 'the GPU'} is not known{may_be}; say it with --capability."
    )


class Setup(NamedTuple):
    """Settings of `eprof run` with the profiler that was chosen: its collector, and its tool as found here.

    looked: all tools that were tried. table: the cost table that is named, else a CPU's usual one.
    """

    settings: Settings
    collector: Collector
    tool: Tool
    looked: Sequence[Tool]
    table: "CostTable | None"

    @property
    def costs(self) -> str | None:
        """The name of the cost table to price with; None: the one made for the device."""
        return self.settings.costs or _stand_in(self.collector, self.tool)

    @property
    def request(self) -> Request:
        """The request to the collector, with the caches of the processor that the prices are of."""
        request = self.settings.request._replace(priced_as=self.costs)
        if self.table is None:
            return request
        return request._replace(caches=self.table.caches, priced_as=self.table.name)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of measurement asked for, in the order of running; energy even where there is no sensor."""
        kinds = self.collector.order(self.request)
        if self.settings.time_only:
            return tuple(kind for kind in kinds if kind in (PLAIN, TIME))
        return tuple(kind for kind in kinds if kind != ENERGY or not self.settings.no_energy)

    def plan(self) -> CounterPlan:
        """The counters that a session is to collect. Raises DefinitionError if the GPU's capability is not known."""
        costs = mapped(lambda table: table.at(self.settings.setting), self.table)
        return counters_for(self.collector, self.tool, costs, self.settings.capability)

    def sensors(self) -> "tuple[Meter | None, list[Component]]":
        """(meter of a run's joules or None, components whose power is read over time); (None, []) without energy."""
        if ENERGY not in self.kinds:
            return None, []
        from eprof.collect import sensors

        over_time = sensors.components(activity=self.collector.samples_activity)
        if self.collector.processor == PROGRAM:
            return None, over_time
        return sensors.find_meter(host=self.settings.host_energy or self.collector.processor == CPU)[0], over_time

    def measured(self, meter: "Meter | None", components: Sequence[Component]) -> list[str]:
        """The kinds of measurement to make, in order: energy only with a sensor; if none is left, the program alone."""
        has_sensor = meter is not None or bool(components)
        return [kind for kind in self.kinds if kind != ENERGY or has_sensor] or [PLAIN]

    def steps(self, plan: CounterPlan, place: Path) -> list[Step]:
        """The steps of a run, one a measurement, as they would be run in the run directory `place`."""
        kinds, request, counters = self.measured(*self.sensors()), self.request, list(plan.counters)
        return [self.collector.step(kind, self.tool, request, Place(place), counters) for kind in kinds]


def prepare(settings: Settings) -> Setup:
    """Choose the profiler, and check all settings that can be checked before anything is run.

    Raises CollectError (126, 127: the program; 1: no profiler), CostError, UsageError.
    """
    table = _table(settings)
    path = process.resolve(settings.program[0])
    collector, tool, looked = choose(settings.profiler, path, settings.program[1:])
    _check_pricing(settings, collector, tool)
    collector.check(settings.request)
    if table is None and collector.processor == CPU:
        table = _usual_table(collector, tool)
    if settings.time_only and TIME not in collector.kinds:
        raise UsageError(f"--time-only: {collector.name} simulates a device and has no time to measure.")
    if settings.marks and collector.simulated:
        raise UsageError(f"--mark: {collector.name} simulates, and when its lines come says nothing of the program.")
    if settings.checked and collector.name != "oclgrind":
        raise UsageError(f"--checked is for the simulated device (--profiler oclgrind); {collector.name} has none.")
    if settings.lock_clocks and not collector.locks_clocks:
        able = [known.name for known in profilers.collectors() if known.locks_clocks]
        raise UsageError(f"--lock-clocks is done by {' or '.join(able)}; {collector.name} cannot.")
    if (settings.launch_skip or settings.launch_count or settings.nvtx) and not collector.chooses_launches:
        able = [known.name for known in profilers.collectors() if known.chooses_launches]
        raise UsageError(
            f"--launch-skip, --launch-count and --nvtx need {' or '.join(able)}; {collector.name} cannot choose "
            "launches."
        )
    return Setup(settings, collector, tool, looked, table)


def choose(wanted: str, program: str = "", arguments: Sequence[str] = ()) -> tuple[Collector, Tool, list[Tool]]:
    """The profiler to use: (its collector, the tool found for it, all tools that were looked at).

    `auto`: the first that is usable here, by what the program is (`uses_gpu`). One that uses a GPU goes to profilers of
    GPUs, the simulated one last, and one that does not to those of CPUs. Where that is not known, to a GPU's where
    there is one, else to those of CPUs. Raises CollectError, saying why each one cannot be used and what mends it.
    """
    tools: list[Tool] = []
    known = [collector for collector in profilers.collectors() if wanted == collector.name]
    if wanted == "auto":
        known = [collector for collector in profilers.collectors() if collector.processor in ("cpu", "gpu")]
        on_gpu = uses_gpu(program, arguments)
        known.sort(key=lambda collector: collector.simulated and not on_gpu)
        if on_gpu:
            known.sort(key=lambda collector: collector.processor == "cpu")
        elif on_gpu is False:
            known = [collector for collector in known if collector.processor == "cpu"]
    for collector in known:
        tools.append(collector.find(program))
        if tools[-1].usable:
            return collector, tools[-1], tools
    refusal = {"auto": "No profiler can be used here."}.get(wanted, f"{wanted} cannot be used here.")
    reasons = gathered((f"{tool.why}{phrase(' ({})', tool.remedy)}.", tool.name) for tool in tools)
    raise CollectError(" ".join([refusal, *(f"{', '.join(same)}: {reason}" for reason, same in reasons.items())]))


def uses_gpu(program: str, arguments: Sequence[str] = ()) -> bool | None:
    """Whether a program uses a GPU: it, or the script that is its first argument, names a GPU's library; None: unknown.

    Machine code that links no such library, nor anything that does, uses none.
    """
    if _names_gpu_library(Path(program)) or any(_names_gpu_library(Path(word)) for word in arguments[:1]):
        return True
    start = b""
    with contextlib.suppress(OSError), Path(program).open("rb") as file:
        start = file.read(4)
    if start != b"\x7fELF" or any(Path(word).is_file() for word in arguments[:1]):
        return None  # a script, or an interpreter of one, may load what it likes
    linked = (line.partition(" => ")[0].strip() for line in ask(["ldd", program]).splitlines())
    return any(map(_GPU_FILE.match, linked))


def _names_gpu_library(path: Path) -> bool:
    """Whether the first 64 MiB of a file, a program or script, hold the name of a library of GPUs."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return _GPU_LIBRARY.search(file.read(64 << 20)) is not None
    except (OSError, ValueError):
        return False


def _table(settings: Settings) -> "CostTable | None":
    """The cost table that the settings name; None: they name none, "estimated" or "none". Raises CostError."""
    if settings.costs is None:
        return None
    from eprof import costs

    if settings.costs in (costs.ESTIMATED, costs.NONE):  # of a GPU that is not known yet, or of none
        return None
    table = costs.load(settings.costs)
    table.at(settings.setting)
    return table


def _check_pricing(settings: Settings, collector: Collector, tool: Tool) -> None:
    """Refuse settings that the report would refuse, as far as is known by now. Raises CostError, UsageError."""
    if settings.efficiency is not None:
        from eprof.energy.modelled_time import checked_efficiency

        if not collector.simulated:
            raise UsageError(f"--efficiency is for simulated devices, whose time is modelled; {collector.name} times.")
        checked_efficiency(settings.efficiency)
    if settings.setting is None or settings.costs is not None or not (collector.costs or tool.device):
        return
    table = _usual_table(collector, tool)
    if table is None:
        raise UsageError(
            f"--setting {settings.setting} is one of a cost table, and there is none for {tool.device}: name it with "
            "--costs."
        )
    table.at(settings.setting)


def _stand_in(collector: Collector, tool: Tool) -> str | None:
    """The cost table that a profiler's collector names for devices without their own; None: this device has one.

    A simulated device never has a table of its own, so none is looked for.
    """
    if collector.costs is None or collector.processor != CPU or tool.device is None:
        return collector.costs
    from eprof import costs

    return collector.costs if costs.for_device(tool.device) is None else None


def _usual_table(collector: Collector, tool: Tool) -> "CostTable | None":
    """The cost table where the user names none: the device's, else the collector's own; None: there is neither."""
    from eprof import costs

    stand_in = _stand_in(collector, tool)
    return mapped(costs.load, stand_in) or costs.for_device(tool.device or "")

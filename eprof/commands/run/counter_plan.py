"""Which counters to collect with the profiler: those of `plan.py`, or a basic set for a GPU without definition.

Apart from `settings`, for it imports definitions and prices, which a program without kernels need not wait for.
"""

from collections.abc import Collection

from msgspec import Struct, field

from eprof.base.errors import DefinitionError
from eprof.base.optional import gathered
from eprof.base.text import phrase
from eprof.base.vocabulary import COUNTS
from eprof.collect.collector import Collector, Tool
from eprof.costs import Costs
from eprof.counts import counters
from eprof.profile.plan import plan


class CounterPlan(Struct, frozen=True):
    """counters: the profiler's name -> what it is for. missing: sentences on what cannot be collected."""

    definition: str | None = None
    counters: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def counters_for(collector: Collector, tool: Tool, costs: Costs | None, capability: str | None) -> CounterPlan:
    """The counters to collect with `collector`. Raises DefinitionError if the GPU's capability is not known."""
    if collector.counts_all:
        return CounterPlan()
    offer = collector.offered(tool, counters.names_in_use(collector.name))
    offered = getattr(offer, "names", None)
    device = getattr(offer, "device", None) or tool.device
    known = capability or tool.capability or _capability(device, offered or (), collector.name)
    try:
        definition = counters.find(collector.name, known)
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
    by_name = counters.capability_of(device) if device else ()
    if len(by_name) == 1:
        return by_name[0]
    by_counters = counters.guess_capability(offered, profiler)
    for capability in by_counters:
        if capability in by_name:
            return capability
    candidates = by_name or by_counters[:4]
    may_be = phrase(" (it may be {})", " or ".join(candidates))
    raise DefinitionError(
        f"The compute capability of {device or 'the GPU'} is not known{may_be}; say it with --capability."
    )

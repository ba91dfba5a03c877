"""Which counters to ask of the profiler that was found: those of `plan.py`, or its basic set where no definition is."""

from dataclasses import dataclass, field
from typing import Any

from eprof.base.errors import DefinitionError
from eprof.base.vocabulary import COUNTS
from eprof.collect.collector import Collector, Tool
from eprof.costs import Costs
from eprof.counting import counters
from eprof.planning.plan import Plan, plan


@dataclass(frozen=True)
class Shopping:
    """counters: the profiler's name -> what it is for. missing: sentences on what cannot be counted."""

    counters: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    definition: str | None = None

    def as_data(self) -> dict[str, Any]:
        """For `run.json`."""
        return {"definition": self.definition, "counters": self.counters, "missing": self.missing}


def counters_for(collector: Collector, tool: Tool, costs: Costs | None, capability: str | None) -> Shopping:
    """What to collect with `collector`. Raises DefinitionError if the GPU's capability is not known."""
    if collector.simulated:
        return Shopping({}, [], f"{collector.name}/{counters.SIMULATED}")
    offer = collector.offered(tool, counters.names_in_use())
    offered = None if offer is None else offer.names
    device = (offer.device if offer is not None else None) or tool.device
    known = _capability(capability or tool.capability, device, offered or ())
    try:
        definition = counters.find(collector.name, known)
    except DefinitionError:
        basic = collector.basic(known)
        if not basic:
            raise
        usable = {name: why for name, why in basic.items() if offered is None or name in offered}
        lost = (
            [f"Not offered here, so not collected: {', '.join(sorted(set(basic) - set(usable)))}."]
            if len(usable) < len(basic)
            else []
        )
        return Shopping(usable, lost, None)
    found = plan(definition, costs, offered)
    missing = _missing(found)
    return Shopping({name: found.why(name) for name in found.counters}, missing, definition.name)


def _missing(found: Plan) -> list[str]:
    """A sentence for each reason, with all that it keeps from being counted."""
    reasons: dict[str, list[str]] = {}
    for word, why in found.missing.items():
        reasons.setdefault(why, []).append(COUNTS[word].label)
    return [f"{', '.join(labels)} will be missing: {why}." for why, labels in reasons.items()]


def _capability(told: str | None, device: str | None, offered: Any) -> str:
    if told is not None:
        return told
    by_name = counters.capability_of(device) if device else ()
    if len(by_name) == 1:
        return by_name[0]
    by_counters = [one for one in counters.guess_capability(offered) if not by_name or one in by_name]
    if by_counters and by_name:
        return by_counters[0]
    may = f" (it may be {' or '.join(by_name or by_counters[:4])})" if by_name or by_counters else ""
    raise DefinitionError(
        f"The compute capability of {device or 'the GPU'} is not known{may}; say it with --capability."
    )

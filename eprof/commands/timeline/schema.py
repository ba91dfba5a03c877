"""The types of the document `eprof.timeline/1` (docs/timeline.md). SI units; None: not known."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from msgspec import Struct, field

from eprof.profile.schema import Document

SCHEMA = "eprof.timeline/1"


class Component(Struct, frozen=True, kw_only=True):
    """Something that a meter saw. energy_j: its integral over the window; a lower bound where unknown_s is more than 0.

    part_of: the component that has its joules, too. idle_w: its power outside of all functions, before and after them.
    offset_s: by how much its clock was moved. moved_j_per_ms: the joules that another ms would move between functions.
    watts: its power over time, (time_s, W) of at most some hundred steps, for a chart.
    """

    name: str
    source: str
    period_s: float
    energy_j: float
    mean_w: float | None
    idle_w: float | None
    unknown_s: float
    offset_s: float
    moved_j_per_ms: float
    part_of: str | None = None
    watts: list[tuple[float, float | None]] = field(default_factory=list)


class Function(Struct, frozen=True, kw_only=True):
    """A function. energy_j: by component, while it was innermost; inclusive_j: with all that it calls.

    All three are None of a component whose power is not known at any time of it. above_idle_j: energy_j less idle power
    while it is known. estimated: its typical stretch is shorter than three samples;
    inclusive_estimated: that with all that it calls is. unknown_s: for so much of its
    time the power of some component is not known, so that its joules are lower bounds. spans: when it ran, from the
    start of the window, for a chart.
    """

    name: str
    calls: int
    time_s: float
    inclusive_s: float
    energy_j: dict[str, float | None]
    inclusive_j: dict[str, float | None]
    above_idle_j: dict[str, float | None]
    estimated: bool
    inclusive_estimated: bool = False
    unknown_s: float = 0.0
    spans: list[tuple[float, float]] = field(default_factory=list)


class Cause(Struct, frozen=True, kw_only=True):
    """What a kind of work, a level of memory or constant power takes of a GPU's joules while a function was innermost.

    function: None: of the whole time; "": in no function. word: of the vocabulary (docs/model.md), or "constant".
    low_j, high_j: by the interval of the prices, and how far off nine of ten kernels are.
    """

    function: str | None
    word: str
    energy_j: float
    low_j: float
    high_j: float
    marks: list[str] = field(default_factory=list)


class Split(Struct, frozen=True, kw_only=True):
    """The joules of a GPU or CPU by cause, from what was sampled or counted and `costs`, held to its meter.

    component: what has the joules. counted: by a CPU's counters, not sampled. metered_j: of the whole time; modelled_j:
    what the prices say of it alone. idle_w: by setting, as the log has it. unseen_pj: what an active multiprocessor
    takes a cycle beyond the prices, at the table's 1 V. watts: over time for a chart, (time_s, W of each of `words`).
    """

    component: str
    counted: bool
    costs: str
    metered_j: float
    modelled_j: float
    idle_w: dict[str, float]
    unseen_pj: float | None
    causes: list[Cause]
    words: list[str]
    watts: list[tuple[float, list[float]]] = field(default_factory=list)


class Timeline(Document, frozen=True, kw_only=True):
    """The whole document. total_j: of components that share no joules. outside_j: by component, in no function.

    splits: of GPUs that were sampled and CPUs that were counted, where a cost table was named.
    """

    schema: str = SCHEMA
    start_utc: str | None
    duration_s: float
    total_j: float
    components: list[Component]
    functions: list[Function]
    outside_s: float
    outside_j: dict[str, float | None]
    splits: list[Split] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def records(self) -> Iterator[dict[str, Any]]:
        """The table of a timeline: a row for each function and component, and one for each component outside of all.

        Of a GPU whose joules are split also a row for each cause.
        """
        for function, component in product(self.functions, self.components):
            yield {
                "function": function.name,
                "calls": function.calls,
                "time_s": function.time_s,
                "component": component.name,
                "energy_j": function.energy_j[component.name],
                "inclusive_j": function.inclusive_j[component.name],
                "above_idle_j": function.above_idle_j[component.name],
                "estimated": function.estimated,
            }
        outside = {"function": "", "calls": 0, "time_s": self.outside_s, "estimated": False}
        for component in self.components:
            yield {**outside, "component": component.name, "energy_j": self.outside_j[component.name]}
        for split in self.splits:
            for cause in split.causes:
                if cause.function is not None:
                    joules = {"energy_j": cause.energy_j, "low_j": cause.low_j, "high_j": cause.high_j}
                    yield {"function": cause.function, "component": split.component, "cause": cause.word, **joules}

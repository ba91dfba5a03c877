"""The document `eprof.timeline/1`, typed: joules by component, function and cause; what a run directory has of it."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import product
from operator import mul
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Floats, finite_all
from eprof.base.errors import LogError
from eprof.base.optional import less, mapped, ratio
from eprof.base.text import few, when
from eprof.base.vocabulary import COUNTS, mark_names
from eprof.collect import directory
from eprof.commands.timeline.fusion import Asked, Fused
from eprof.commands.timeline.joules import Burst, Causes, PowerLevels, by_name, causes, moved_j_per_ms, power_levels
from eprof.costs import CostTable
from eprof.lab.power.activity import Activity
from eprof.lab.power.marks import Pieces
from eprof.lab.power.series import Series, added
from eprof.profile.schema import Document

SCHEMA = "eprof.timeline/1"


class Component(Struct, frozen=True, kw_only=True):
    """A component that a meter saw. energy_j: the integral of its power; a lower bound where unknown_s is more than 0.

    part_of: the component whose joules include this one's. idle_w: its power outside of all functions, before and after
    them. base_w, bursts: where no functions were marked and power has two levels, the lower one, unless idle power is
    known, and the stretches above it (the first hundreds), in s from the start of the window; else None and none.
    new_every_s: how often its meter has a new value, which may be more seldom than it is read (period_s). busy_s: for
    how long something ran on a GPU that was sampled. offset_s: by how much its clock was moved. moved_j_per_ms: the
    joules that another ms would move between functions. watts: its power over time, (time_s, W) of at most some hundred
    steps, for a chart.
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
    new_every_s: float
    busy_s: float | None = None
    part_of: str | None = None
    base_w: float | None = None
    bursts: list[Burst] = field(default_factory=list)
    watts: list[tuple[float, float | None]] = field(default_factory=list)


class Function(Struct, frozen=True, kw_only=True):
    """A function of the program. energy_j: by component, while it was innermost; inclusive_j: with all that it calls.

    above_idle_j: energy_j less idle power in that time. All three are None for a component whose power is not known at
    any moment of the function. estimated: its typical stretch is shorter than three samples; inclusive_estimated: that
    with all that it calls is. unknown_s: for so much of its time the power of some component is not known, so that its
    joules are lower bounds. spans: (begin, end) in s from the start of the window, of the first hundreds, for a chart.
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
    what the prices alone say. idle_w: by setting, as the log has it. unseen_pj: what an active multiprocessor takes a
    cycle beyond the prices, at the table's 1 V. watts: over time for a chart, (time_s, W of each of `words`).
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
    """The document of `eprof timeline`. total_j: of components that share no joules. outside_j: in no function.

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
        """Yield the rows of a timeline's CSV: each function by component, and each component outside of all functions.

        Of a GPU whose joules are split also a row for each cause.
        """
        for function, component in product(self.functions, self.components):
            about = {"function": function.name, "calls": function.calls, "time_s": function.time_s}
            joules = {
                key: getattr(function, key)[component.name] for key in ("energy_j", "inclusive_j", "above_idle_j")
            }
            yield {**about, "component": component.name, **joules, "estimated": function.estimated}
        outside = {"function": "", "calls": 0, "time_s": self.outside_s, "estimated": False}
        for component in self.components:
            yield {**outside, "component": component.name, "energy_j": self.outside_j[component.name]}
        for split in self.splits:
            for cause in split.causes:
                if cause.function is not None:
                    joules = {"energy_j": cause.energy_j, "low_j": cause.low_j, "high_j": cause.high_j}
                    yield {"function": cause.function, "component": split.component, "cause": cause.word, **joules}


_CHART_STEPS, _CHART_SPANS, _CHART_BINS = 600, 400, 300
_MUCH = 0.05  # of joules, or of the time


def document(fused: Fused, asked: Asked, title: str) -> Timeline:
    """The document `eprof.timeline/1` of power and marks on one clock: joules of every component by function."""
    whole_s = fused.end_s - fused.begin_s
    components = []
    for series in fused.series:
        energy_j, known_s = series.seen(fused.begin_s, fused.end_s)
        found = PowerLevels() if fused.marks else power_levels(series.shifted(-fused.begin_s))
        # A CPU's counts do not tell for how long something ran.
        own = [each for each in fused.activities if each.components == (series.component,) and not each.ways]
        busy_s = [_busy_s(each, series) for each in own]
        component = Component(
            name=series.component,
            source=series.source,
            period_s=series.period_s,
            new_every_s=series.new_every_s,
            busy_s=next(iter(busy_s), None),
            energy_j=energy_j,
            mean_w=ratio(energy_j, known_s),
            idle_w=fused.idle_w[series.component],
            unknown_s=max(whole_s - known_s, 0.0) * (known_s < (1 - 1e-9) * whole_s),  # else it is rounding
            offset_s=fused.offsets_s[series.component],
            moved_j_per_ms=moved_j_per_ms(series, fused.exclusive),
            part_of=fused.wholes.get(series.component),
            base_w=found.base_w if fused.idle_w[series.component] is None else None,
            bursts=found.bursts[:_CHART_SPANS],
            watts=_chart(series, fused.begin_s),
        )
        components.append(component)
    functions = list(_functions(fused))
    inside_s = float((fused.exclusive.end_s - fused.exclusive.begin_s).sum())
    paying = [each for each in fused.activities if each.pays]
    splits = [_split(fused, each, asked.costs) for each in paying if asked.costs is not None]
    unpriced = dict.fromkeys(sentence for _, sentences in splits for sentence in sentences)
    return Timeline(
        title=title,
        command_line=list(asked.command_line),
        start_utc=datetime.fromtimestamp(fused.begin_s, UTC).isoformat() if fused.series[0].absolute else None,
        duration_s=whole_s,
        total_j=sum(component.energy_j for component in components if component.part_of is None),
        components=components,
        functions=functions,
        outside_s=whole_s - inside_s,
        outside_j={
            component.name: component.energy_j - sum(function.energy_j[component.name] or 0.0 for function in functions)
            for component in components
        },
        splits=[split for split, _ in splits],
        warnings=[*fused.warnings, *_doubts(fused, functions, asked), *unpriced],
    )


def _busy_s(activity: Activity, power: Series) -> float:
    """For how many of the s in which a GPU's power is known something ran on that GPU.

    Where the last sample of power is taken to hold, all hold until the next, and so do their shares of time; else these
    are of the time before them, of which the first has none that counts.
    """
    later_s = np.clip(power.edges[-1] - activity.edges[-1], 0.0, power.held_s)
    edges = activity.edges + later_s
    return float(np.nansum(activity.busy * power.known_s(edges[:-1], edges[1:])))


def _doubts(fused: Fused, functions: Sequence[Function], asked: Asked) -> Iterator[str]:
    """Yield sentences on idle power that was none, and on a last sample taken to hold for much of the time."""
    below = [
        f"`{function.name}`"
        for function in functions
        for name, above_j in function.above_idle_j.items()
        if not function.estimated and (above_j or 0.0) < -_MUCH * (function.energy_j[name] or 0.0)
    ]
    if below and asked.idle_w is None:
        where = few(list(dict.fromkeys(below)), 3)
        yield f"Power in {where} is lower than before and after all marks, so that was not idle power; --idle says it."
    shares = {each.held_s: each.held_s / (each.edges[-1] - each.edges[0]) for each in fused.series}
    held_s = max(shares, key=shares.__getitem__)
    if shares[held_s] > _MUCH:
        share = f"{100 * shares[held_s]:.0f} % of the time"
        yield f"The last sample is taken to hold as long as most do, {held_s:.3g} s: {share}."


def _split(fused: Fused, activity: Activity, table: CostTable) -> tuple[Split, list[str]]:
    """(A GPU's or CPU's joules by cause, in all, in each function and outside; notes on counts without a price)."""
    power = added([series for series in fused.series if series.component in activity.components])
    whole = np.array([fused.begin_s]), np.array([fused.end_s])
    total = causes(activity, table, power, *whole, np.zeros(1, np.int64), 1)
    rows = list(_causes(None, total, 0))
    inside = fused.exclusive
    if inside.names:
        borders = np.argsort(inside.begin_s)
        begin_s = np.concatenate([inside.begin_s, whole[0], inside.end_s[borders]])
        end_s = np.concatenate([inside.end_s, inside.begin_s[borders], whole[1]])
        owner = np.concatenate([inside.owner, np.full(len(borders) + 1, len(inside.names))]).astype(np.int64)
        own = causes(activity, table, power, begin_s, np.maximum(begin_s, end_s), owner, len(inside.names) + 1)
        for place, name in enumerate((*inside.names, "")):
            rows += _causes(name, own, place)
    # A counter of joules that moves now and then tells nothing finer; the joules of intervals are theirs.
    finest_s = power.period_s * (2 - bool(activity.ways))
    bins = int(np.clip((fused.end_s - fused.begin_s) / finest_s, 1, _CHART_BINS))
    edges = np.linspace(fused.begin_s, fused.end_s, bins + 1)
    seconds = np.diff(edges)
    over_time = causes(activity, table, power, edges[:-1], edges[1:], np.arange(bins), bins)
    watts = (over_time.joules / seconds[:, np.newaxis]).tolist()
    split = Split(
        component=activity.label,
        counted=bool(activity.ways),
        costs=table.name,
        metered_j=power.seen(fused.begin_s, fused.end_s)[0],
        modelled_j=float(total.modelled_j[0]),
        idle_w=dict(total.idle_w),
        unseen_pj=total.unseen_pj,
        causes=rows,
        words=list(over_time.words),
        watts=list(zip((edges[:-1] - fused.begin_s).tolist(), watts, strict=True)),
    )
    lacks = [f"{COUNTS[word].label} has no price in {table.name}; others have its joules." for word in total.unpriced]
    return split, lacks


def _causes(function: str | None, found: Causes, place: int) -> Iterator[Cause]:
    """Yield the joules by cause of one function (None: of all time), which stand in row `place` of `found`."""
    for column, word in enumerate(found.words):
        joules, low, high = (float(table[place, column]) for table in (found.joules, found.low, found.high))
        marks = mark_names(found.marks[word])
        yield Cause(function=function, word=word, energy_j=joules, low_j=low, high_j=high, marks=marks)


def _chart(series: Series, start_s: float) -> list[tuple[float, float | None]]:
    """A power series for a chart: (s since start_s, W) of `_CHART_STEPS` steps at most; W None: unknown, or the end."""
    step = max(1, -(-len(series.watts) // _CHART_STEPS))
    steps = []
    for first in range(0, len(series.watts), step):
        begin_s = float(series.edges[first])
        watts = ratio(*series.seen(begin_s, series.edges[min(first + step, len(series.watts))]))
        steps.append((begin_s - start_s, watts))
    return [*steps, (float(series.edges[-1] - start_s), None)]


def _functions(fused: Fused) -> Iterator[Function]:
    """Yield each function of the marks with its joules by component: own, with callees, and above idle power."""
    own, whole = fused.exclusive, fused.inclusive
    own_s, whole_s = own.summed(own.end_s - own.begin_s), whole.summed(whole.end_s - whole.begin_s)
    own_j, own_known_s = _by_function(fused, own)
    whole_j, _ = _by_function(fused, whole)
    period_s = max(each.new_every_s for each in fused.series)
    known_s = np.stack(list(own_known_s.values())).min(axis=0)
    unknown_s = np.where(own_s - known_s > 1e-9 * own_s, own_s - known_s, 0.0)
    marks = by_name(fused.marks)
    for place, name in enumerate(own.names):
        spans = [(mark.begin_s - fused.begin_s, mark.end_s - fused.begin_s) for mark in marks[name]]
        energy_j = {component: joules[place] for component, joules in own_j.items()}
        yield Function(
            name=name,
            calls=len(spans),
            time_s=float(own_s[place]),
            inclusive_s=float(whole_s[place]),
            energy_j=energy_j,
            inclusive_j={component: joules[place] for component, joules in whole_j.items()},
            above_idle_j={
                component: less(joules, mapped(mul, fused.idle_w[component], float(own_known_s[component][place])))
                for component, joules in energy_j.items()
            },
            unknown_s=float(unknown_s[place]),
            estimated=_is_short(own, place, period_s),
            inclusive_estimated=_is_short(whole, place, period_s),
            spans=spans[:_CHART_SPANS],
        )


def _is_short(pieces: Pieces, place: int, period_s: float) -> bool:
    """Whether the typical stretch of a function holds fewer than three samples of the slowest meter."""
    stretches = (pieces.end_s - pieces.begin_s)[pieces.owner == place]
    return not len(stretches) or float(np.median(stretches)) < 3.0 * period_s


def _by_function(fused: Fused, pieces: Pieces) -> tuple[dict[str, list[float | None]], dict[str, Floats]]:
    """Component -> J of each function (None: not known at any moment); and component -> s in which they are known."""
    known_s = {each.component: pieces.summed(each.known_s(pieces.begin_s, pieces.end_s)) for each in fused.series}
    joules = {each.component: pieces.summed(each.energy_j(pieces.begin_s, pieces.end_s)) for each in fused.series}
    known_j = {name: finite_all(np.where(known_s[name] > 0, of_name, np.nan)) for name, of_name in joules.items()}
    return known_j, known_s


_METER = "power.csv"  # of the one meter that reports use; on a clock of its own


def power_of(path: str) -> str:
    """The path of the power log in a run directory; any other path as it is. Raises LogError: the run has none."""
    if not _is_run(path):
        return path
    for log in (Path(path) / directory.COMPONENTS, Path(path) / _METER):
        if log.is_file():
            return str(log)
    hint = f"; for its marks: eprof timeline POWER --marks {path}, with the log of a meter beside it"
    raise LogError(f"{path}: no power was measured in this run, as no sensor was found{when(marks_of(path), hint)}.")


def marks_of(path: str) -> str | None:
    """The path of the marks in a run directory, None where it has none; any other path as it is."""
    if not _is_run(path):
        return path
    file = Path(path) / directory.MARKS
    return str(file) if file.is_file() else None


def notes_of(path: str) -> Iterator[str]:
    """Sentences on a run directory that is not complete, or whose program ran several times; none for other paths."""
    if not _is_run(path):
        return
    manifest = directory.manifest(Path(path)) or {}
    if manifest.get("status") != directory.COMPLETE:
        yield f"{path} was not finished: power and marks end early."
    runs = sum(int(entry.get("runs", 1)) for entry in manifest.get("measurements", []) if entry["what"] == "energy")
    if runs > 1:
        yield f"The program ran {runs} times while power was read: times, calls and joules are of all {runs} runs."


def _is_run(path: str) -> bool:
    """Whether a path is a run directory of `eprof run`."""
    return Path(path).is_dir() and directory.is_run_directory(Path(path))

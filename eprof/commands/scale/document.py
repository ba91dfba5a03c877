"""The document `eprof.scale/1` (docs/scale.md): a program on a cluster as modelled, or runs as they were measured.

SI units; None: not known.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from eprof.base.errors import LogError
from eprof.base.optional import gathered, mapped, ratio
from eprof.base.text import counted
from eprof.base.vocabulary import Mark, mark_names
from eprof.clusters.cluster import POLL, Beside, Clock, Cluster, Part, Run, about
from eprof.commands.scale import model as closed_form
from eprof.commands.scale.model import CAUSES, Case, Fit, Keep, Point, Program, points
from eprof.lab.objective import Objective
from eprof.profile.schema import Document

SCHEMA = "eprof.scale/1"
MODELLED, MEASURED = "modelled", "measured"


class Row(Struct, frozen=True, kw_only=True):
    """A row of scaling: a program of one size on a number of processors at one clock, modelled or measured.

    efficiency: E1/Ep, both at this clock (4.21). efficiency_to_slowest_clock: E1 at the slowest clock over Ep (4.25).
    speedup: T1/Tp at this clock. overhead_j: Ep - E1 by cause, where causes are known; it adds up. alpha: measured time
    over the modelled one. polling_j: what Ep is if processors poll while they wait. pareto: nothing else of the same
    program and size takes less energy and less time. marks: "simulated", "assumed"... (docs/profile-json.md).
    parts: what makes up the energy on a GPU cluster, by cause. ranks, imbalance: of such a run.
    """

    program: str
    size: float | None
    processors: int
    core_mhz: float | None
    time_s: float
    energy_j: float | None
    power_w: float | None
    efficiency: float | None
    efficiency_to_slowest_clock: float | None
    speedup: float | None
    overhead_j: dict[str, float] | None = None
    polling_j: float | None = None
    alpha: float | None = None
    repeats: int = 1
    marks: list[str] = field(default_factory=list)
    time_marks: list[str] = field(default_factory=list)
    parts: dict[str, Part] | None = None
    ranks: int | None = None
    imbalance: float | None = None
    pareto: bool = False


class Best(Struct, frozen=True, kw_only=True):
    """The best row of a program and size for an objective; None: no energy is known, or a limit leaves no row."""

    objective: str
    program: str
    size: float | None
    processors: int | None = None
    core_mhz: float | None = None
    energy_j: float | None = None
    time_s: float | None = None
    marks: list[str] = field(default_factory=list)
    time_marks: list[str] = field(default_factory=list)


class Scale(Document, frozen=True, kw_only=True):
    """The document of `eprof scale`. kind: "modelled" or "measured". f_star_mhz: at which E1 is least (docs/scale.md).

    shape: the class of the program, 1 to 4 ([S] 4.7-6), modelled only. node: what a node of GPUs draws beside them.
    """

    schema: str = SCHEMA
    kind: str
    cluster: dict[str, Any] | None = None
    program: dict[str, Any] | None = None
    unit: str = "node"
    waiting: str | None = None
    node: dict[str, Any] | None = None
    rows: list[Row]
    best: list[Best]
    keep: list[Keep] = field(default_factory=list)
    shape: int | None = None
    f_star_mhz: float | None = None
    fit: Fit | None = None
    warnings: list[str] = field(default_factory=list)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield a dictionary a row, for the CSV; extra joules and parts of the energy have a column for each cause."""
        for row in self.rows:
            cells = asdict(row)
            overhead = cells.pop("overhead_j") or {}
            parts = cells.pop("parts") or {}
            cells |= {name: " ".join(cells[name]) for name in ("marks", "time_marks")}
            cells |= {f"overhead_{cause}_j": joules for cause, joules in overhead.items()}
            cells |= {f"{cause}_j": part.energy_j for cause, part in parts.items()}
            yield cells | {f"{cause}_marks": " ".join(part.marks) for cause, part in parts.items()}


_WORTHLESS, _NO_REACTION, _NETWORK_LED = 0.98, 1e-3, 0.5
_SMALL_STEP = 1.01
_OF_RUN = ("program", "size", "processors", "core_mhz", "time_s", "energy_j", "repeats", "ranks", "imbalance")
_OF_BEST = ("processors", "core_mhz", "energy_j", "time_s", "marks", "time_marks")


class Asked(NamedTuple):
    """What `eprof scale` was asked. keep: an efficiency to keep, by "size" or "clock". predict: node counts."""

    objectives: Sequence[Objective]
    keep: float | None = None
    keep_by: str = "size"
    deadline_s: float | None = None
    predict: Sequence[int] = ()
    command_line: Sequence[str] = ()


def modelled(case: Case, asked: Asked) -> Scale:
    """The document `eprof.scale/1` of a program modelled at each node count and clock ([S] 4). Raises UsageError."""
    cluster, program = case.cluster, case.program

    def at(clocks: Iterable[Clock], processors: Sequence[int], waiting: str) -> list[Point]:
        return [each for clock in clocks for each in points(cluster, program, case.size, processors, clock, waiting)]

    def run(processors: int, point: Point, time_s: float, energy_j: float) -> Run:
        marks, clock = int(cluster.marks), point.core_mhz
        return Run(program.name, point.size, processors, clock, time_s, energy_j, marks=marks, time_marks=marks)

    modelled = at(case.clocks, case.processors, case.waiting)
    polling = at(case.clocks, case.processors, POLL)
    slowest = min(cluster.clocks, key=lambda clock: clock.core_mhz)
    alone = at({*case.clocks, slowest}, [1], case.waiting)
    rows = _rows(
        [run(point.processors, point, point.time_s, point.energy_j) for point in modelled],
        [run(1, point, point.base_s, point.base_j) for point in alone],
    )
    rows = [
        replace(row, overhead_j=point.overhead_j, polling_j=polled.energy_j, alpha=program.alpha)
        for row, point, polled in zip(rows, modelled, polling, strict=True)
    ]
    keep = []
    if asked.keep is not None:
        kept = {"size": closed_form.size_to_keep, "clock": closed_form.clocks_to_keep}[asked.keep_by]
        keep = [kept(case, number, asked.keep) for number in case.processors if number > 1]
    beyond = []
    if cluster.nodes is not None and max(case.processors) > cluster.nodes:
        beyond.append(f"{cluster.name} has {cluster.nodes} {cluster.unit}s; what stands beyond them is extrapolated.")
    return replace(
        _document(MODELLED, f"{program.name} of {case.size:.10g} {program.size} on {cluster.name}", rows, asked),
        cluster=about(cluster),
        program=_about_program(program),
        unit=cluster.unit,
        waiting=case.waiting,
        keep=keep,
        shape=_scaling_class(case),
        f_star_mhz=closed_form.best_clock_mhz(cluster, program),
        warnings=[*cluster.warnings, *beyond],
    )


def measured(
    runs: Sequence[Run],
    notes: Sequence[str],
    title: str,
    asked: Asked,
    model: tuple[Cluster, Program] | None = None,
    beside: Beside | None = None,
) -> Scale:
    """The document `eprof.scale/1` of measured runs: efficiency, speedup, best node count and clock.

    model: a cluster and a program to fit to the runs, for alpha and predictions. beside: what GPUs' nodes draw beside.
    Raises LogError: there are no runs; UsageError: too few for the fit.
    """
    if not runs:
        raise LogError(f"{title}: has no runs.")
    if model is not None:
        runs = closed_form.runs_of_program(runs, model[1].name)
    runs = sorted(runs, key=_order)
    document = _document(MEASURED, title, _rows(runs, [run for run in runs if run.processors == 1]), asked)
    node = None
    if beside is not None and any(run.parts for run in runs):
        node = {**asdict(beside), "marks": mark_names(beside.marks)}
    rows, lacks = document.rows, []
    of_runs = f"of {counted(len(rows), 'run')}"
    if no_energy := sum(row.energy_j is None for row in rows):
        lacks.append(f"{no_energy} {of_runs} without energy (blank or 0): nothing is taken for it.")
    if no_base := sum(row.efficiency is None and row.energy_j is not None for row in rows):
        lacks.append(
            f"{no_base} {of_runs} without efficiency: it is held against a run on one processor, of the same program "
            "and size at the same clock, whose energy is known as well."
        )
    document = replace(document, unit=runs[0].unit, node=node, warnings=[*notes, *lacks])
    if model is None:
        return document
    cluster, program = model
    fitted = closed_form.fit_program(cluster, program, runs, asked.predict)
    return replace(
        document,
        cluster=about(cluster),
        program=_about_program(program),
        unit=cluster.unit,
        fit=fitted,
        warnings=[*document.warnings, *closed_form.fit_warnings(cluster, fitted)],
    )


def _document(kind: str, title: str, rows: Sequence[Row], asked: Asked) -> Scale:
    """The document `eprof.scale/1` of rows: `pareto` set, and the best row for each objective, program and size."""
    best, front = [], set[int]()
    for (program, size), same in gathered(((row.program, row.size), row) for row in rows).items():
        # Rows of which no other takes at most as much energy and time, and less of one.
        rivals = [row for row in _alike(same) if row.energy_j is not None]
        taken = {(row.energy_j or 0.0, row.time_s) for row in rivals}
        for row in rivals:
            own = (row.energy_j or 0.0, row.time_s)
            if not any(joules <= own[0] and time_s <= own[1] and (joules, time_s) != own for joules, time_s in taken):
                front.add(id(row))
        in_time = _alike([row for row in same if asked.deadline_s is None or row.time_s <= asked.deadline_s])
        energies = np.array([row.energy_j for row in in_time], dtype=float)
        times = np.array([row.time_s for row in in_time])
        for objective in asked.objectives:
            place = objective.pick(energies, times)
            picked = {} if place is None else {name: getattr(in_time[place], name) for name in _OF_BEST}
            best.append(Best(objective=objective.name, program=program, size=size, **picked))
    rows = [replace(row, pareto=id(row) in front) for row in rows]
    return Scale(title=title, command_line=list(asked.command_line), kind=kind, rows=rows, best=best)


def _rows(runs: Sequence[Run], alone: Sequence[Run]) -> list[Row]:
    """A row for each run, set against the run `alone`, on one processor, of the same program, size and clock.

    Its efficiency is None without such a run, or where one of both energies is a lower bound.
    """
    at_clock = {(*run.problem, run.core_mhz): run for run in alone}
    slowest: dict[tuple[str, float | None], Run] = {}
    for run in sorted((run for run in alone if run.core_mhz), key=_order, reverse=True):
        slowest[run.problem] = run
    rows = []
    for run in runs:
        base = at_clock.get((*run.problem, run.core_mhz))
        # The joules beyond those on one node, by cause, where the same causes are known of both.
        joules = [
            {cause: part.energy_j for cause, part in each.parts.items() if part.energy_j is not None}
            for each in (base, run)
            if each is not None and each.parts is not None
        ]
        overhead_j = None
        if len(joules) == 2 and joules[0].keys() == joules[1].keys():
            overhead_j = {cause: energy_j - joules[0][cause] for cause, energy_j in joules[1].items()}
        # A lower bound is not set against a known energy.
        base_j, slowest_j = (
            None if other is None or (other.marks ^ run.marks) & Mark.MISSING else other.energy_j
            for other in (base, slowest.get(run.problem))
        )
        # Of a time that is a lower bound the power is neither a lower nor an upper one.
        power_w = None if run.time_marks & Mark.MISSING else ratio(run.energy_j, run.time_s)
        row = Row(
            **{name: getattr(run, name) for name in _OF_RUN},
            power_w=power_w,
            efficiency=ratio(base_j, run.energy_j),
            efficiency_to_slowest_clock=ratio(slowest_j, run.energy_j),
            speedup=ratio(getattr(base, "time_s", None), run.time_s),
            overhead_j=overhead_j,
            marks=mark_names(run.marks),
            time_marks=mark_names(run.time_marks),
            parts=mapped(dict, run.parts),
        )
        rows.append(row)
    return rows


def _order(run: Run) -> tuple[Any, ...]:
    return run.program, run.size or 0.0, run.core_mhz or 0.0, run.processors


def _alike(rows: Sequence[Row]) -> Sequence[Row]:
    """The rows whose energies can be compared: those without the mark MISSING; all, if none of them has an energy."""
    full = [row for row in rows if "missing" not in row.marks]
    return full if any(row.energy_j is not None for row in full) else rows


def _scaling_class(case: Case) -> int:
    """How well a modelled program scales at the most processors and the first clock: 1 (well) to 4 (not at all).

    1: efficiency stays near 1. 4: it falls, and a larger problem does not help. 3: it falls by the network, and a
    larger problem helps. 2: it falls by other causes, and a larger problem helps. Classes are those of [S] 4.7-6;
    thresholds are ours.
    """
    most = max(case.processors)
    clock = case.clocks[0]
    reached = case.efficiency(case.size, most, clock)
    slope = (case.efficiency(case.size * _SMALL_STEP, most, clock) - reached) / math.log(_SMALL_STEP)
    if reached >= _WORTHLESS:
        return 1
    if slope < _NO_REACTION:
        return 4
    [point] = points(case.cluster, case.program, case.size, [most], clock, case.waiting)
    taken = {cause: abs(joules) for cause, joules in point.overhead_j.items()}
    by_network = sum(taken[cause] for cause in CAUSES[CAUSES.index("messages") :])
    return 2 + (by_network > _NETWORK_LED * sum(taken.values()))


def _about_program(program: Program) -> dict[str, Any]:
    told = {name: getattr(program, name) for name in ("name", "about", "source", "size", "alpha")}
    return told | {"counts": {word: formula.text for word, formula in program.formulas.items()}}

"""The document `eprof.scale/1`: a program on a cluster as it is modelled, or runs as they were measured."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from eprof import __version__
from eprof.base.errors import LogError
from eprof.base.known import ratio
from eprof.base.marks import names
from eprof.profile.document import now
from eprof.scaling import fit
from eprof.scaling import keep as keeping
from eprof.scaling.cluster import INTERRUPT, POLL, Clock, Cluster
from eprof.scaling.model import CAUSES, Point, best_clock_mhz, efficiency, points
from eprof.scaling.program import Program
from eprof.scaling.run import Run
from eprof.scaling.schema import MEASURED, MODELLED, Best, Keep, Row, Scale
from eprof.tuning.objective import Objective

_WORTHLESS, _NO_REACTION, _NETWORK_LED = 0.98, 1e-3, 0.5
_SMALL_STEP = 1.01
_OF_BEST = ("processors", "core_mhz", "energy_j", "time_s", "marks")


class Asked(NamedTuple):
    """What a user wants to know. keep: an efficiency to keep, by "size" or "clock". predict: node counts of a fit."""

    objectives: Sequence[Objective]
    keep: float | None = None
    keep_by: str = "size"
    memory_share: float = keeping.MEMORY_SHARE
    deadline_s: float | None = None
    predict: Sequence[int] = ()
    command_line: Sequence[str] = ()


class Case(NamedTuple):
    """A program of a size on numbers of processors of a cluster, at clocks."""

    cluster: Cluster
    program: Program
    size: float
    processors: Sequence[int]
    clocks: Sequence[Clock]
    waiting: str


def modelled(case: Case, asked: Asked) -> Scale:
    """The closed form ([S] 4): every number of processors at every clock. Raises UsageError."""
    cluster, program = case.cluster, case.program
    slowest = points(cluster, program, [case.size], [1], cluster.slowest, case.waiting)[0].base_j
    rows = [row for clock in case.clocks for row in _modelled_rows(case, clock, slowest)]
    rows = _with_pareto(rows)
    return Scale(
        eprof=__version__,
        title=f"{program.name} of {case.size:.10g} {program.size} on {cluster.name}",
        created_utc=now(),
        command_line=list(asked.command_line),
        kind=MODELLED,
        cluster=_about_cluster(cluster),
        program=_about_program(program),
        unit=cluster.unit,
        waiting=case.waiting,
        rows=rows,
        best=list(_best(rows, asked)),
        keep=list(_keep(case, asked)),
        shape=_shape(case),
        f_star_mhz=best_clock_mhz(cluster, program, case.size),
        warnings=list(_model_warnings(case)),
    )


def measured(
    runs: Sequence[Run], notes: Sequence[str], title: str, asked: Asked, model: tuple[Cluster, Program] | None = None
) -> Scale:
    """Measured runs: efficiency, speedup, best node count and clock. model: fitted to them, for alpha and predictions.

    Raises LogError: there are no runs; UsageError: too few for the fit.
    """
    if not runs:
        raise LogError(f"{title}: has no runs.")
    fitted = None
    about: dict[str, Any] = {"cluster": None, "program": None, "unit": "node"}
    warnings = [*notes]
    if model is not None:
        cluster, program = model
        about = {"cluster": _about_cluster(cluster), "program": _about_program(program), "unit": cluster.unit}
        runs = fit.of_program(runs, program.name)
        fitted = fit.fit(cluster, program, runs, asked.predict, cluster.waiting)
        warnings += fit.warnings(cluster, fitted)
    rows = _with_pareto(list(_measured_rows(runs)))
    warnings += _lacks(rows)
    return Scale(
        eprof=__version__,
        title=title,
        created_utc=now(),
        command_line=list(asked.command_line),
        kind=MEASURED,
        **about,
        waiting=None,
        rows=rows,
        best=list(_best(rows, asked)),
        fit=fitted,
        warnings=warnings,
    )


# ---- rows


def _modelled_rows(case: Case, clock: Clock, slowest_j: float) -> Iterator[Row]:
    interrupt, polling = (
        points(case.cluster, case.program, [case.size], case.processors, clock, waiting)
        for waiting in (INTERRUPT, POLL)
    )
    chosen = polling if case.waiting == POLL else interrupt
    for point, polled in zip(chosen, polling, strict=True):
        yield Row(
            program=case.program.name,
            size=case.size,
            processors=point.processors,
            core_mhz=clock.core_mhz,
            time_s=point.time_s,
            energy_j=point.energy_j,
            power_w=ratio(point.energy_j, point.time_s),
            efficiency=point.efficiency,
            efficiency_to_slowest_clock=ratio(slowest_j, point.energy_j),
            speedup=ratio(point.base_s, point.time_s),
            overhead_j=point.overhead_j,
            polling_j=polled.energy_j,
            alpha=case.program.alpha,
        )


def _measured_rows(runs: Sequence[Run]) -> Iterator[Row]:
    """Rows in the order of program, size, clock and processors, each against its own run on one processor."""
    alone = {(run.program, run.size, run.core_mhz): run for run in runs if run.processors == 1}
    for run in sorted(runs, key=_order):
        base = alone.get((run.program, run.size, run.core_mhz))
        clocks = [mhz for program, size, mhz in alone if (program, size) == (run.program, run.size) and mhz is not None]
        slowest = alone.get((run.program, run.size, min(clocks))) if clocks else None
        slowest_j = slowest.energy_j if slowest else None
        base_j, base_s = (base.energy_j, base.time_s) if base else (None, None)
        yield Row(
            program=run.program,
            size=run.size,
            processors=run.processors,
            core_mhz=run.core_mhz,
            time_s=run.time_s,
            energy_j=run.energy_j,
            power_w=ratio(run.energy_j, run.time_s),
            efficiency=ratio(base_j, run.energy_j),
            efficiency_to_slowest_clock=ratio(slowest_j, run.energy_j),
            speedup=ratio(base_s, run.time_s),
            repeats=run.repeats,
            marks=names(run.marks),
        )


def _order(run: Run) -> tuple[Any, ...]:
    return run.program, run.size or 0.0, run.core_mhz or 0.0, run.processors


def _with_pareto(rows: Sequence[Row]) -> list[Row]:
    """The rows, those marked that no other of the same program and size beats in energy and in time."""
    return [replace(row, pareto=_is_pareto(row, rows)) for row in rows]


def _is_pareto(row: Row, rows: Sequence[Row]) -> bool:
    if row.energy_j is None:
        return False
    for other in rows:
        if (other.program, other.size) != (row.program, row.size) or other.energy_j is None:
            continue
        no_worse = other.energy_j <= row.energy_j and other.time_s <= row.time_s
        if no_worse and (other.energy_j, other.time_s) != (row.energy_j, row.time_s):
            return False
    return True


# ---- answers


def _best(rows: Sequence[Row], asked: Asked) -> Iterator[Best]:
    """The best row of each program and size for each objective, within a deadline and the limits of the objective."""
    for program, size in dict.fromkeys((row.program, row.size) for row in rows):
        same = [row for row in rows if (row.program, row.size) == (program, size)]
        in_time = [row for row in same if asked.deadline_s is None or row.time_s <= asked.deadline_s]
        energies = np.array([math.nan if row.energy_j is None else row.energy_j for row in in_time])
        times = np.array([row.time_s for row in in_time])
        for objective in asked.objectives:
            place = objective.pick(energies, times) if in_time else None
            best = Best(objective=objective.name, program=program, size=size)
            if place is not None:
                row = in_time[place]
                best = replace(best, **{name: getattr(row, name) for name in _OF_BEST})
            yield best


def _keep(case: Case, asked: Asked) -> Iterator[Keep]:
    if asked.keep is None:
        return
    cluster, program, waiting, target = case.cluster, case.program, case.waiting, asked.keep
    for number in (number for number in case.processors if number > 1):
        if asked.keep_by == "clock":
            yield keeping.clocks(cluster, program, case.size, number, case.clocks, waiting, target)
        else:
            yield keeping.size(cluster, program, number, case.clocks[0], waiting, target, asked.memory_share)


def _shape(case: Case) -> int:
    """The class of a program ([S] 4.7-6; the thresholds are ours).

    1: efficiency stays near 1. 4: it falls, and a larger problem does not help. 3: it falls by the network, and a
    larger problem helps. 2: it falls by other causes, and a larger problem helps.
    """
    most = max(case.processors)
    clock = case.clocks[0]
    work = case.program.work(case.size, most)
    reached = efficiency(case.cluster, work, clock, case.waiting)
    larger = case.program.work(case.size * _SMALL_STEP, most)
    slope = (efficiency(case.cluster, larger, clock, case.waiting) - reached) / math.log(_SMALL_STEP)
    if reached >= _WORTHLESS:
        return 1
    if slope < _NO_REACTION:
        return 4
    overhead = points(case.cluster, case.program, [case.size], [most], clock, case.waiting)[0]
    return 3 if _network_share(overhead) > _NETWORK_LED else 2


def _network_share(point: Point) -> float:
    """The share of messages, bytes and waiting in what p processors take more."""
    total = sum(abs(joules) for joules in point.overhead_j.values())
    return sum(abs(point.overhead_j[cause]) for cause in CAUSES[2:]) / total if total else 0.0


# ---- about


def _about_cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "about": cluster.about,
        "source": cluster.source,
        "basis": cluster.basis,
        "waiting": cluster.waiting,
        "clocks_mhz": [clock.core_mhz for clock in cluster.clocks],
        "nodes": cluster.nodes,
    }


def _about_program(program: Program) -> dict[str, Any]:
    return {
        "name": program.name,
        "about": program.about,
        "source": program.source,
        "size": program.size,
        "alpha": program.alpha,
        "counts": {word: formula.text for word, formula in program.formulas.items()},
    }


def _model_warnings(case: Case) -> Iterable[str]:
    cluster = case.cluster
    if cluster.basis == "assumed":
        yield f"The powers and times of {cluster.name} are assumed: nobody measured them."
    if cluster.nodes is not None and max(case.processors) > cluster.nodes:
        yield f"{cluster.name} has {cluster.nodes} {cluster.unit}s; what stands beyond them is extrapolated."


def _lacks(rows: Sequence[Row]) -> Iterable[str]:
    """What cannot be told of measured runs, and why."""
    no_energy = sum(row.energy_j is None for row in rows)
    if no_energy:
        yield f"{no_energy} of {len(rows)} runs without energy (blank or 0): nothing is taken for it."
    no_base = sum(row.efficiency is None and row.energy_j is not None for row in rows)
    if no_base:
        yield (
            f"{no_base} of {len(rows)} runs without efficiency: none on one processor, of the same program and size at "
            "the same clock, has an energy."
        )

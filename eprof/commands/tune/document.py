"""From grids to the document `eprof.tune/1`, from which every report is made (docs/tune.md)."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from eprof.base.arrays import Floats, finite
from eprof.base.marks import names
from eprof.base.text import few
from eprof.base.version import __version__
from eprof.commands.tune import schema
from eprof.commands.tune.build import Tuning
from eprof.commands.tune.grid import Choice, Grid, Point, choose, front, lost, together
from eprof.lab.objective import Objective


def document(tuning: Tuning, objective: Objective, command_line: Sequence[str] = ()) -> schema.Tune:
    """The whole document `eprof.tune/1`."""
    program = together(tuning.grids, tuning.whole)
    whole = choose(program, objective)
    choices = [choose(grid, objective) for grid in tuning.grids]
    slowdown = objective.max_slowdown
    model = lost([(choice.wrong, choice.lost_percent) for choice in choices])
    oracle = lost([(choice.oracle_wrong, choice.oracle_lost_percent) for choice in choices])
    losses = mispredictions = None
    if model is not None and oracle is not None:
        losses = schema.LostBy(model, oracle)
        broken = sum(bool(choice.broken) for choice in choices)
        mispredictions = schema.Mispredictions(model.cases, model.wrong, oracle.wrong, broken)
    return schema.Tune(
        schema=schema.SCHEMA,
        eprof=__version__,
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command_line=list(command_line),
        title=tuning.title,
        program=tuning.whole,
        model=tuning.model,
        objective=objective.name,
        objective_words=objective.words,
        max_slowdown_percent=None if slowdown is None else 100 * slowdown,
        power_limit_w=objective.power_limit_w,
        time=_time(tuning),
        **_picks(program, whole, tuning.points),
        each_its_own=_each_its_own(tuning.grids, choices),
        settings=_settings(program, objective, tuning.points),
        front=[
            schema.FrontPoint(
                tuning.points[place].core_mhz,
                tuning.points[place].memory_mhz,
                float(program.energy_j[place]),
                float(program.time_s[place]),
            )
            for place in front(program)
        ],
        mispredictions=mispredictions,
        energy_lost_percent=losses,
        marks=tuple(names(int(program.marks))),
        processor=tuning.processor,
        notes=[*tuning.notes, *_unpicked(whole, choices, tuning.grids, objective)],
        kernels=[_kernel(grid, choice, tuning.points) for grid, choice in zip(tuning.grids, choices, strict=True)],
    )


def _time(tuning: Tuning) -> schema.Time:
    model, checked = tuning.time_model, tuning.time_check
    used = error = None
    if model is not None:
        used = schema.TimeModelUsed(model.byte_per_cycle, model.exponent, model.share, model.words)
    if checked is not None:
        rows = int(np.isfinite(checked.signed_percent).sum())
        error = schema.TimeError(rows, checked.mean_percent, checked.max_percent, "leave_one_benchmark_out")
    return schema.Time(tuning.time_from, used, error, tuning.of_simulated)


def _picks(grid: Grid, choice: Choice, points: Sequence[Point]) -> dict[str, schema.At | None]:
    return {
        "best": _at(grid, choice.best, points),
        "fastest": _at(grid, choice.fastest, points),
        "measured_best": _at(grid, choice.measured, points),
        "now": _at(grid, grid.now, points),
    }


def _at(grid: Grid, place: int | None, points: Sequence[Point]) -> schema.At | None:
    return None if place is None else schema.At(**_fields(grid, place, points))


def _fields(grid: Grid, place: int, points: Sequence[Point]) -> dict[str, Any]:
    energy, time = grid.energy_j[place], grid.time_s[place]
    point = points[place]
    return {
        "core_mhz": point.core_mhz,
        "memory_mhz": point.memory_mhz,
        "energy_j": finite(energy),
        "time_s": finite(time),
        "power_w": finite(energy / time) if time else None,
        "measured_j": finite(grid.measured_j[place]),
        "measured_s": finite(grid.measured_s[place]),
        "marks": tuple(names(int(point.marks | grid.marks))),
        "why": point.why or None,
    }


def _settings(grid: Grid, objective: Objective, points: Sequence[Point]) -> list[schema.Setting]:
    values = objective.value(grid.energy_j, grid.time_s)
    allowed = objective.allowed(grid.energy_j, grid.time_s)
    return [
        schema.Setting(**_fields(grid, place, points), value=finite(values[place]), allowed=bool(allowed[place]))
        for place in range(len(points))
    ]


def _kernel(grid: Grid, choice: Choice, points: Sequence[Point]) -> schema.Kernel:
    return schema.Kernel(
        name=grid.name,
        kernel=grid.kernel,
        launches=grid.launches,
        **_picks(grid, choice, points),
        wrong=choice.wrong,
        lost_percent=choice.lost_percent,
        oracle_wrong=choice.oracle_wrong,
        oracle_lost_percent=choice.oracle_lost_percent,
        breaks_a_limit=choice.broken,
        energy_j=_listed(grid.energy_j),
        time_s=_listed(grid.time_s),
        measured_j=_listed(grid.measured_j),
        measured_s=_listed(grid.measured_s),
        marks=tuple(names(int(grid.marks))),
    )


def _each_its_own(grids: Sequence[Grid], choices: Sequence[Choice]) -> schema.Joules | None:
    """The program if each kernel ran at its own best clocks and changing them cost nothing; None if one has none."""
    energy_j = time_s = 0.0
    for grid, choice in zip(grids, choices, strict=True):
        if choice.best is None:
            return None
        energy_j += float(grid.energy_j[choice.best])
        time_s += float(grid.time_s[choice.best])
    return schema.Joules(finite(energy_j), finite(time_s))


def _unpicked(whole: Choice, choices: Sequence[Choice], grids: Sequence[Grid], objective: Objective) -> Iterator[str]:
    unpicked = [grid.name for grid, choice in zip(grids, choices, strict=True) if choice.best is None]
    if unpicked:
        yield f"No setting can be picked for {few(unpicked, 1)}: none is known that gives {objective.words}."
    elif whole.best is None:
        is_known = ~np.isnan(np.array([grid.energy_j for grid in grids])).any(axis=0)
        why = "at none is the energy of all of them known"
        if is_known.any():
            why = f"none gives {objective.words}"
        yield f"No setting can be picked for all kernels together: {why}."
    broken = sum(bool(choice.broken) for choice in choices)
    if broken:
        yield f"For {broken} kernels the pick breaks the limit, as measured."


def _listed(values: Floats) -> list[float | None]:
    return [finite(value) for value in values]

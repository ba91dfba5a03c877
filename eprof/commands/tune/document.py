"""From grids to the document `eprof.tune/1`, from which every report is made (docs/tune.md)."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from eprof.base.arrays import finite, finite_all
from eprof.base.marks import names
from eprof.base.text import few
from eprof.commands.tune import schema
from eprof.commands.tune.build import Tuning
from eprof.commands.tune.grid import Choice, Grid, Point, choose, front, lost, together
from eprof.lab.objective import Objective


def document(tuning: Tuning, objective: Objective, command_line: Sequence[str] = ()) -> schema.Tune:
    """The whole document `eprof.tune/1`."""
    grids, points = tuning.grids, tuning.points
    program = together(grids, tuning.whole)
    whole = choose(program, objective)
    choices = [choose(grid, objective) for grid in grids]
    broken = sum(bool(choice.broken) for choice in choices)
    unpicked = [grid.name for grid, choice in zip(grids, choices, strict=True) if choice.best is None]

    model = lost([(choice.wrong, choice.lost_percent) for choice in choices])
    oracle = lost([(choice.oracle_wrong, choice.oracle_lost_percent) for choice in choices])
    losses = mispredictions = None
    if model is not None and oracle is not None:
        losses = schema.LostBy(model, oracle)
        mispredictions = schema.Mispredictions(model.cases, model.wrong, oracle.wrong, broken)

    time_model = time_error = None
    if (fitted := tuning.time_model) is not None:
        time_model = schema.TimeModelUsed(fitted.byte_per_cycle, fitted.exponent, fitted.share, fitted.words)
    if (checked := tuning.time_check) is not None:
        tested = int(np.isfinite(checked.signed_percent).sum())
        time_error = schema.TimeError(tested, checked.mean_percent, checked.max_percent, "leave_one_benchmark_out")

    # The program if each kernel ran at its own best clocks and changing them cost nothing.
    own = None
    if not unpicked:
        best = [(grid, choice.best) for grid, choice in zip(grids, choices, strict=True)]
        own_j, own_s = (sum(getattr(grid, field)[at] for grid, at in best) for field in ("energy_j", "time_s"))
        own = schema.Joules(finite(own_j), finite(own_s))

    notes = [*tuning.notes]
    if unpicked:
        notes.append(f"No setting can be picked for {few(unpicked, 1)}: none is known that gives {objective.words}.")
    elif whole.best is None:
        is_known = ~np.isnan(np.array([grid.energy_j for grid in grids])).any(axis=0)
        why = f"none gives {objective.words}" if is_known.any() else "at none is the energy of all of them known"
        notes.append(f"No setting can be picked for all kernels together: {why}.")
    if broken:
        notes.append(f"For {broken} kernels the pick breaks the limit, as measured.")

    values = objective.value(program.energy_j, program.time_s)
    allowed = objective.allowed(program.energy_j, program.time_s)
    slowdown = objective.max_slowdown
    return schema.Tune(
        command_line=list(command_line),
        title=tuning.title,
        program=tuning.whole,
        model=tuning.model,
        objective=objective.name,
        objective_words=objective.words,
        max_slowdown_percent=None if slowdown is None else 100 * slowdown,
        power_limit_w=objective.power_limit_w,
        time=schema.Time(tuning.time_from, time_model, time_error, tuning.of_simulated),
        **_picks(program, whole, points),
        each_its_own=own,
        settings=[
            schema.Setting(**_at(program, place, points), value=finite(values[place]), allowed=bool(allowed[place]))
            for place in range(len(points))
        ],
        front=[
            schema.FrontPoint(
                points[place].core_mhz,
                points[place].memory_mhz,
                float(program.energy_j[place]),
                float(program.time_s[place]),
            )
            for place in front(program)
        ],
        mispredictions=mispredictions,
        energy_lost_percent=losses,
        marks=tuple(names(int(program.marks))),
        processor=tuning.processor,
        notes=notes,
        kernels=[
            schema.Kernel(
                name=grid.name,
                kernel=grid.kernel,
                launches=grid.launches,
                **_picks(grid, choice, points),
                wrong=choice.wrong,
                lost_percent=choice.lost_percent,
                oracle_wrong=choice.oracle_wrong,
                oracle_lost_percent=choice.oracle_lost_percent,
                breaks_a_limit=choice.broken,
                energy_j=finite_all(grid.energy_j),
                time_s=finite_all(grid.time_s),
                measured_j=finite_all(grid.measured_j),
                measured_s=finite_all(grid.measured_s),
                marks=tuple(names(int(grid.marks))),
            )
            for grid, choice in zip(grids, choices, strict=True)
        ],
    )


def _picks(grid: Grid, choice: Choice, points: Sequence[Point]) -> dict[str, Any]:
    places = {"best": choice.best, "fastest": choice.fastest, "measured_best": choice.measured, "now": grid.now}
    return {pick: None if place is None else schema.At(**_at(grid, place, points)) for pick, place in places.items()}


def _at(grid: Grid, place: int, points: Sequence[Point]) -> dict[str, Any]:
    """Energy and time of a kernel or program at a setting, as fields of the document."""
    energy_j, time_s, point = grid.energy_j[place], grid.time_s[place], points[place]
    return {
        "core_mhz": point.core_mhz,
        "memory_mhz": point.memory_mhz,
        "energy_j": finite(energy_j),
        "time_s": finite(time_s),
        "power_w": finite(energy_j / time_s) if time_s else None,
        "measured_j": finite(grid.measured_j[place]),
        "measured_s": finite(grid.measured_s[place]),
        "marks": tuple(names(int(point.marks | grid.marks))),
        "why": point.why or None,
    }

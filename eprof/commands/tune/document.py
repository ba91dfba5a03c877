"""From grids to the document `eprof.tune/1`, from which every report is made (docs/tune.md)."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import UNSET

from eprof.base.arrays import finite, finite_all
from eprof.base.known import either, mapped, ratio
from eprof.base.marks import names
from eprof.base.text import few, when
from eprof.commands.tune import schema
from eprof.commands.tune.build import Tuning
from eprof.commands.tune.grid import Choice, Grid, Point, choose, front, lost, together
from eprof.lab.objective import Objective
from eprof.show.words.numbers import LITTLE

# What a meter says of a choice.
_JUDGED = ("wrong", "lost_percent", "oracle_wrong", "oracle_lost_percent", "breaks_a_limit")


def document(tuning: Tuning, objective: Objective, command_line: Sequence[str] = ()) -> schema.Tune:
    """The document `eprof.tune/1`: the best settings for each kernel and for all together, and what they save."""
    grids, points = tuning.grids, tuning.points
    program = together(grids, tuning.whole)
    whole = choose(program, objective)
    choices = [choose(grid, objective) for grid in grids]
    model = lost([(choice.wrong, choice.lost_percent) for choice in choices])
    oracle = lost([(choice.oracle_wrong, choice.oracle_lost_percent) for choice in choices])
    losses = mispredictions = None
    if model is not None and oracle is not None:
        broken = sum(bool(choice.breaks_a_limit) for choice in choices)
        losses = schema.LostBy(model, oracle)
        mispredictions = schema.Mispredictions(model.cases, model.wrong, oracle.wrong, broken)

    # The program if each kernel ran at its own best clocks and changing them cost nothing.
    own = None
    is_measured = whole.measured is not None
    told = [grid.measured if is_measured else grid for grid in (program, *grids)]
    best = [(grid, place) for grid in told[1:] if (place := grid.pick(objective)) is not None]
    if len(best) == len(grids):
        own_j, own_s = (sum(getattr(grid, field)[place] for grid, place in best) for field in ("energy_j", "time_s"))
        own = schema.Joules(finite(own_j), finite(own_s))

    joules, seconds = told[0].energy_j.tolist(), told[0].time_s.tolist()
    values, allowed = objective.value(told[0].energy_j, told[0].time_s), told[0].allowed(objective)
    goal = objective.words("the fastest setting" if program.now is None else "now")
    answer, before = either(whole.measured, whole.best), either(program.now, whole.fastest)
    gain = None
    if answer is not None and before is not None and answer != before:
        saved = 1 - float(values[answer] / values[before])
        ends = tuning.saved and tuning.saved(told[0].energy_j, answer, before)
        is_sure = objective.name != "energy" or ((ends or [saved])[0] or 0.0) > 0
        gain = schema.Gain(finite(saved), ends, not allowed[before] or saved >= LITTLE and is_sure)
    return schema.Tune(
        command_line=list(command_line),
        title=tuning.title,
        program=tuning.whole,
        model=tuning.model,
        objective=objective.name,
        objective_words=goal,
        max_slowdown_percent=mapped(lambda share: 100 * share, objective.max_slowdown),
        power_limit_w=objective.power_limit_w,
        time=tuning.time,
        **_picks(program, whole, points),
        is_now_assumed=tuning.is_now_assumed,
        held_by=tuning.held_by or UNSET,
        ran=mapped(lambda place: schema.At(**_at(program, place, points)), tuning.ran),
        gain=gain,
        each_its_own=own,
        settings=[
            schema.Setting(**_at(program, place, points), value=finite(values[place]), allowed=bool(allowed[place]))
            for place in range(len(points))
        ],
        front=[
            schema.FrontPoint(points[place].core_mhz, points[place].memory_mhz, joules[place], seconds[place])
            for place in front(told[0])
        ],
        mispredictions=mispredictions,
        energy_lost_percent=losses,
        marks=tuple(names(int(program.marks))),
        processor=tuning.processor,
        capability=tuning.capability,
        notes=[*tuning.notes, *_notes(grids, choices, whole, goal)],
        kernels=[
            schema.Kernel(
                name=grid.name,
                kernel=grid.kernel,
                launches=grid.launches,
                **_picks(grid, choice, points),
                **{name: getattr(choice, name) for name in _JUDGED},
                **dict[str, Any]((name, finite_all(getattr(grid, name))) for name in schema.LISTS),
                marks=tuple(names(int(grid.marks))),
            )
            for grid, choice in zip(grids, choices, strict=True)
        ],
    )


def _notes(grids: Sequence[Grid], choices: Sequence[Choice], whole: Choice, goal: str) -> Iterator[str]:
    """Sentences on kernels for which no setting can be picked, and on how many picks break a limit. goal: in words."""
    both = zip(grids, choices, strict=True)
    unpicked = [grid.name for grid, choice in both if choice.best is None and choice.measured is None]
    if unpicked:
        yield f"No setting can be picked for {few(unpicked, 1)}: none is known that gives {goal}."
    elif whole.best is None and whole.measured is None:
        is_unknown = np.isnan([grid.energy_j for grid in grids]).any(axis=0).all()
        why = when(is_unknown, "at none is the energy of all of them known") or f"none gives {goal}"
        yield f"No setting can be picked for all kernels together: {why}."
    if broken := sum(bool(choice.breaks_a_limit) for choice in choices):
        yield f"For {broken} kernels the pick breaks the limit, as measured."


def _picks(grid: Grid, choice: Choice, points: Sequence[Point]) -> dict[str, Any]:
    places = {"best": choice.best, "fastest": choice.fastest, "measured_best": choice.measured, "now": grid.now}
    return {pick: mapped(lambda place: schema.At(**_at(grid, place, points)), place) for pick, place in places.items()}


def _at(grid: Grid, place: int, points: Sequence[Point]) -> dict[str, Any]:
    """The fields of the document's `At` for a grid at the setting at `place`: its clocks, energy, time, marks."""
    energy_j, time_s, point = finite(grid.energy_j[place]), finite(grid.time_s[place]), points[place]
    return {
        "core_mhz": point.core_mhz,
        "memory_mhz": point.memory_mhz,
        "energy_j": energy_j,
        "time_s": time_s,
        "power_w": ratio(energy_j, time_s),
        "measured_j": finite(grid.measured_j[place]),
        "measured_s": finite(grid.measured_s[place]),
        "marks": tuple(names(int(point.marks | grid.marks))),
        "why": point.why or None,
    }

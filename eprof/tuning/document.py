"""The document `eprof.tune/1`: which setting is best, as plain data, from which every report is made (docs/tune.md)."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from eprof import __version__
from eprof.base.marks import names
from eprof.base.text import few
from eprof.tuning.build import Tuning
from eprof.tuning.choice import Choice, choose, lost
from eprof.tuning.grid import Floats, Grid, Point, together
from eprof.tuning.objective import Objective

SCHEMA = "eprof.tune/1"


def document(tuning: Tuning, objective: Objective, command_line: Sequence[str] = ()) -> dict[str, Any]:
    """The whole document. Numbers are Python floats; what is not known is None."""
    program = together(tuning.grids, tuning.whole)
    picks = [choose(grid, objective) for grid in tuning.grids]
    whole = choose(program, objective)
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "eprof": __version__,
        "created_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command_line": list(command_line),
        "title": tuning.title,
        "program": tuning.whole,
        "model": dict(tuning.model),
        "objective": objective.name,
        "objective_words": objective.words,
        "max_slowdown_percent": None if objective.max_slowdown is None else 100 * objective.max_slowdown,
        "power_limit_w": objective.power_limit_w,
        "time": _time(tuning),
        **_picked(program, whole, tuning.points),
        "each_its_own": _each_its_own(tuning.grids, picks),
        "settings": _settings(program, objective, tuning.points),
        "mispredictions": None,
        "energy_lost_percent": None,
        "marks": names(int(program.marks)),
        "notes": [*tuning.notes, *_unpicked(whole, picks, tuning.grids, objective)],
        "kernels": [_kernel(grid, pick, tuning.points) for grid, pick in zip(tuning.grids, picks, strict=True)],
    }
    model = lost([(one.wrong, one.lost_percent) for one in picks])
    oracle = lost([(one.oracle_wrong, one.oracle_lost_percent) for one in picks])
    if model is not None and oracle is not None:
        broken = sum(bool(one.broken) for one in picks)
        found["mispredictions"] = {
            "cases": model.cases,
            "model": model.wrong,
            "oracle": oracle.wrong,
            "model_breaks_a_limit": broken,
        }
        found["energy_lost_percent"] = {"model": model.data(), "oracle": oracle.data()}
    return found


def _time(tuning: Tuning) -> dict[str, Any]:
    """Where times are from; the model of time with its error on benchmarks that it was not fitted to."""
    model, checked = tuning.time_model, tuning.time_check
    return {
        "from": tuning.time_from,
        "model": None
        if model is None
        else {
            "byte_per_cycle": model.byte_per_cycle,
            "exponent": model.exponent,
            "share_of_peak": model.share,
            "words": model.words,
        },
        "error": None
        if checked is None
        else {
            "n": int(np.isfinite(checked.signed_percent).sum()),
            "mean_percent": checked.mean_percent,
            "max_percent": checked.max_percent,
            "protocol": "leave_one_benchmark_out",
        },
    }


def _picked(grid: Grid, choice: Choice, points: Sequence[Point]) -> dict[str, Any]:
    return {
        "best": _at(grid, choice.best, points),
        "fastest": _at(grid, choice.fastest, points),
        "measured_best": _at(grid, choice.measured, points),
        "now": _at(grid, grid.now, points),
    }


def _at(grid: Grid, place: int | None, points: Sequence[Point]) -> dict[str, Any] | None:
    """A grid at one setting."""
    if place is None:
        return None
    energy, time = grid.energy_j[place], grid.time_s[place]
    point = points[place]
    return {
        "core_mhz": point.core_mhz,
        "memory_mhz": point.memory_mhz,
        "energy_j": _number(energy),
        "time_s": _number(time),
        "power_w": _number(energy / time) if time else None,
        "measured_j": _number(grid.measured_j[place]),
        "measured_s": _number(grid.measured_s[place]),
        "marks": names(int(point.marks | grid.marks)),
        "why": point.why or None,
    }


def _settings(grid: Grid, objective: Objective, points: Sequence[Point]) -> list[dict[str, Any]]:
    value = objective.value(grid.energy_j, grid.time_s)
    allowed = objective.allowed(grid.energy_j, grid.time_s)
    return [
        {**(_at(grid, place, points) or {}), "value": _number(value[place]), "allowed": bool(allowed[place])}
        for place in range(len(points))
    ]


def _kernel(grid: Grid, choice: Choice, points: Sequence[Point]) -> dict[str, Any]:
    return {
        "name": grid.name,
        "kernel": grid.kernel,
        "launches": grid.launches,
        **_picked(grid, choice, points),
        "wrong": choice.wrong,
        "lost_percent": choice.lost_percent,
        "oracle_wrong": choice.oracle_wrong,
        "oracle_lost_percent": choice.oracle_lost_percent,
        "breaks_a_limit": choice.broken,
        "energy_j": _listed(grid.energy_j),
        "time_s": _listed(grid.time_s),
        "measured_j": _listed(grid.measured_j),
        "measured_s": _listed(grid.measured_s),
        "marks": names(int(grid.marks)),
    }


def _each_its_own(grids: Sequence[Grid], picks: Sequence[Choice]) -> dict[str, Any] | None:
    """The program if each kernel ran at its own best setting and changing clocks cost nothing; None if one has none."""
    if any(one.best is None for one in picks):
        return None
    energy = sum(float(grid.energy_j[pick.best or 0]) for grid, pick in zip(grids, picks, strict=True))
    time = sum(float(grid.time_s[pick.best or 0]) for grid, pick in zip(grids, picks, strict=True))
    return {"energy_j": _number(energy), "time_s": _number(time)}


def _unpicked(whole: Choice, picks: Sequence[Choice], grids: Sequence[Grid], objective: Objective) -> list[str]:
    notes = []
    lost_ones = [grid.name for grid, pick in zip(grids, picks, strict=True) if pick.best is None]
    if lost_ones:
        notes.append(f"No setting can be picked for {few(lost_ones, 1)}: none is known that gives {objective.words}.")
    if whole.best is None and not lost_ones:
        known = ~np.isnan(np.array([grid.energy_j for grid in grids])).any(axis=0)
        why = f"none gives {objective.words}" if known.any() else "at none is the energy of all of them known"
        notes.append(f"No setting can be picked for all kernels together: {why}.")
    broken = sum(bool(one.broken) for one in picks)
    if broken:
        notes.append(f"For {broken} kernels the pick breaks the limit, as measured.")
    return notes


def _listed(values: Floats) -> list[float | None]:
    return [_number(one) for one in values]


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None

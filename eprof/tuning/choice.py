"""Which setting is picked by the model, by time alone and by the meter, and what a wrong pick costs ([FMM] II-E)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eprof.tuning.grid import Floats, Grid
from eprof.tuning.objective import Objective

# Two energies closer than this are the same: which of them is the least is rounding.
_SAME = 1e-9


@dataclass(frozen=True)
class Choice:
    """Places of settings in the grid; None: none could be picked.

    best: by the model. fastest: the time oracle (race-to-halt). measured: by meter and clock, where both are known.
    wrong, oracle_wrong: whether the pick is not the measured best. lost, oracle_lost: how much more energy it used, in
    per cent. broken: whether the model's pick breaks, as measured, a limit that the objective sets.
    """

    best: int | None
    fastest: int | None
    measured: int | None
    wrong: bool | None = None
    oracle_wrong: bool | None = None
    lost_percent: float | None = None
    oracle_lost_percent: float | None = None
    broken: bool | None = None


def choose(grid: Grid, objective: Objective) -> Choice:
    """Pick settings for one kernel or program."""
    best = objective.pick(grid.energy_j, grid.time_s)
    time = grid.measured_s if np.isfinite(grid.measured_s).sum() > 1 else grid.time_s
    fastest = int(np.nanargmin(time)) if np.isfinite(time).any() else None
    measured = objective.pick(grid.measured_j, grid.measured_s) if grid.is_measured else None
    if measured is None:
        return Choice(best, fastest, None)
    least = objective.value(grid.measured_j, grid.measured_s)
    wrong, lost = _against(best, measured, least, grid.measured_j)
    oracle_wrong, oracle_lost = _against(fastest, measured, least, grid.measured_j)
    allowed = objective.allowed(grid.measured_j, grid.measured_s)
    broken = None if best is None or np.isnan(grid.measured_j[best]) else not bool(allowed[best])
    return Choice(best, fastest, measured, wrong, oracle_wrong, lost, oracle_lost, broken)


def _against(pick: int | None, measured: int, value: Floats, energy_j: Floats) -> tuple[bool | None, float | None]:
    """Whether a pick is not the measured best, and the energy it lost, in per cent of that of the best."""
    if pick is None or np.isnan(value[pick]):
        return None, None
    same = abs(value[pick] - value[measured]) <= _SAME * abs(value[measured])
    lost = 0.0 if same else 100 * (energy_j[pick] / energy_j[measured] - 1)
    return not same, float(lost)


@dataclass(frozen=True)
class Lost:
    """Of some cases: how many picks were not the measured best, and the energy these lost, in per cent."""

    cases: int
    wrong: int
    mean_percent: float
    min_percent: float
    max_percent: float
    all_mean_percent: float

    def data(self) -> dict[str, Any]:
        """As plain data; over no wrong case, nothing was lost ([FMM] Table II prints 0)."""
        return {
            "cases": self.cases,
            "wrong": self.wrong,
            "mean_percent": self.mean_percent,
            "min_percent": self.min_percent,
            "max_percent": self.max_percent,
            "all_mean_percent": self.all_mean_percent,
        }


def lost(picks: Sequence[tuple[bool | None, float | None]]) -> Lost | None:
    """Mispredictions as in [FMM] Table II: mean, min, max over the wrong cases; `all_mean` over all. None: no case."""
    known = [(wrong, percent) for wrong, percent in picks if wrong is not None and percent is not None]
    if not known:
        return None
    over = [percent for wrong, percent in known if wrong] or [0.0]
    everything = [percent for _, percent in known]
    wrong = sum(one for one, _ in known)
    return Lost(len(known), wrong, float(np.mean(over)), min(over), max(over), float(np.mean(everything)))

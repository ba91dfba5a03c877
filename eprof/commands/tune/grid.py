"""Energy and time of kernels at every setting, and which is picked by model, time or meter ([FMM] II-E)."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace
from numpy.typing import NDArray

from eprof.base.arrays import Floats, finite
from eprof.base.optional import mapped
from eprof.base.vocabulary import NONE, Mark
from eprof.lab.objective import Clocks, Objective

LISTS = ("energy_j", "time_s", "measured_j", "measured_s")
# Two energies closer than this are the same: which of them is the least is rounding.
_SAME = 1e-9


class Point(Clocks, frozen=True):
    """A setting: its clocks in MHz, the marks of its prices, and a sentence where the table does not list it, else "".

    is_beyond: its core clock is beyond those that the table was fitted to.
    """

    marks: Mark = NONE
    why: str = ""
    is_beyond: bool = False


class Grid(Struct, frozen=True, eq=False):
    """One kernel, or a program, at every setting: (n_settings,) each, NaN = not known.

    energy_j, time_s: what the choice is made from; energy predicted by a table or a fit, time measured or modelled.
    measured_j, measured_s: what a meter and a clock saw at that setting. now: the place of the setting where the
    program runs; None: it is not among these, or all settings were measured. offered: which may be picked.
    """

    name: str
    kernel: str
    energy_j: Floats
    time_s: Floats
    measured_j: Floats
    measured_s: Floats
    offered: NDArray[np.bool_]
    marks: Mark = NONE
    launches: float = 1.0
    now: int | None = None

    @property
    def measured(self) -> "Grid":
        """The same grid with energy_j and time_s as the meter and the clock saw them."""
        return replace(self, energy_j=self.measured_j, time_s=self.measured_s)

    @property
    def known(self) -> int:
        """At how many settings energy and time are known."""
        return int((np.isfinite(self.energy_j) & np.isfinite(self.time_s)).sum())

    def allowed(self, objective: Objective) -> NDArray[np.bool_]:
        """Which settings are offered and keep the objective's limits, (n_settings,).

        A slowdown is against the setting at place `now`, or else against the fastest offered.
        """
        since_s = mapped(lambda place: finite(self.time_s[place]), self.now)
        return objective.allowed(self.energy_j, np.where(self.offered, self.time_s, np.nan), since_s)

    def pick(self, objective: Objective) -> int | None:
        """The place of the objective's best setting among those allowed; None: no setting is allowed."""
        return objective.pick(self.energy_j, self.time_s, self.allowed(objective))


def together(grids: Sequence[Grid], name: str) -> Grid:
    """The grid of the program: energies and times of its kernels added up at each setting; NaN where one is unknown."""
    sums = {column: np.sum([getattr(grid, column) for grid in grids], axis=0) for column in LISTS}
    marks = reduce(Mark.__or__, [grid.marks for grid in grids], NONE)
    return Grid(name, name, **sums, offered=grids[0].offered, marks=marks, now=grids[0].now)


def front(grid: Grid) -> list[int]:
    """The places of the offered settings on the Pareto front of time and energy, fastest first."""
    known = np.flatnonzero(np.isfinite(grid.energy_j) & (grid.time_s > 0) & grid.offered)
    places: list[int] = []
    for place in sorted(known, key=lambda place: (grid.time_s[place], grid.energy_j[place])):
        if not places or grid.energy_j[place] < grid.energy_j[places[-1]]:
            places.append(int(place))
    return places


class PowerModel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What predicted the power: a "table", or a "refit" that has not seen what it predicts (`protocol`), or "none"."""

    kind: str
    name: str = ""
    device: str = ""
    source: str = ""
    basis: str | None = None
    protocol: str = ""
    power_error_percent: float | None | UnsetType = UNSET


class TimeModelUsed(Struct, frozen=True):
    """The model of time at other settings (`energy/clocks.py`)."""

    byte_per_cycle: float | None
    exponent: float
    share_of_peak: float
    words: str


class TimeError(Struct, frozen=True):
    """The time model's error on kernels that it was not fitted to."""

    n: int
    mean_percent: float
    max_percent: float
    protocol: str


class Time(Struct, frozen=True):
    """Where times are from ("measured" or "modelled"). of_simulated: even the time of the run came from a model."""

    source: str = field(name="from")
    model: TimeModelUsed | None
    error: TimeError | None
    of_simulated: bool = False


class Choice(Struct, frozen=True):
    """Places of settings in the grid; None: none could be picked.

    best: by the model. fastest: the time oracle (race to halt). measured: by meter and clock, where both are known.
    wrong, oracle_wrong: whether `best`, or `fastest`, is not the measured best. lost_percent, oracle_lost_percent: how
    much more energy it used. breaks_a_limit: whether `best`, as measured, breaks a limit that the objective sets.
    """

    best: int | None
    fastest: int | None
    measured: int | None
    wrong: bool | None = None
    oracle_wrong: bool | None = None
    lost_percent: float | None = None
    oracle_lost_percent: float | None = None
    breaks_a_limit: bool | None = None


def choose(grid: Grid, objective: Objective) -> Choice:
    """The settings for one kernel or program: the model's best, the fastest and the measured best; and their losses."""
    best = grid.pick(objective)
    # By measured times where there are some to choose from.
    fastest = measured = None
    if np.isfinite(grid.measured_s).sum() > 1:
        fastest = int(np.nanargmin(grid.measured_s))
    elif np.isfinite(offered_s := grid.time_s[grid.offered]).any():
        # Where a lower clock costs no time by the model, the highest clocks are the fastest: the last of the settings.
        fastest = int(np.flatnonzero(grid.offered & (grid.time_s <= (1 + _SAME) * np.nanmin(offered_s)))[-1])
    if grid.known < 2:
        best = None  # of one setting that is known none is the best
    # A best one is measured where the energy of two settings or more is.
    if np.isfinite(grid.measured_j).sum() > 1:
        measured = grid.measured.pick(objective)
    if measured is None:
        return Choice(best, fastest, None)

    value = objective.value(grid.measured_j, grid.measured_s)
    wrong, lost = _loss_of(best, measured, value, grid.measured_j)
    oracle_wrong, oracle_lost = _loss_of(fastest, measured, value, grid.measured_j)
    broken = None
    if best is not None and not np.isnan(grid.measured_j[best]):
        broken = not grid.measured.allowed(objective)[best]
    return Choice(best, fastest, measured, wrong, oracle_wrong, lost, oracle_lost, broken)


def _loss_of(pick: int | None, measured: int, value: Floats, energy_j: Floats) -> tuple[bool | None, float | None]:
    """Whether `pick` is worse by `value` than the measured best, and how much more energy it uses, %; None: unknown."""
    if pick is None or np.isnan(value[pick]):
        return None, None
    if abs(value[pick] - value[measured]) <= _SAME * abs(value[measured]):
        return False, 0.0
    return True, float(100 * (energy_j[pick] / energy_j[measured] - 1))


class Lost(Struct, frozen=True):
    """How much more energy wrong picks used, over these or over all cases; 0 if none is wrong ([FMM] Table II)."""

    cases: int
    wrong: int
    mean_percent: float
    min_percent: float
    max_percent: float
    all_mean_percent: float


def lost(picks: Sequence[tuple[bool | None, float | None]]) -> Lost | None:
    """What mispredicted choices lose ([FMM] Table II). picks: whether wrong, and per cent lost. None: none known."""
    losses = [percent for _, percent in picks if percent is not None]
    if not losses:
        return None
    over_wrong = [percent for wrong, percent in picks if wrong and percent is not None]
    over = over_wrong or [0.0]
    return Lost(len(losses), len(over_wrong), float(np.mean(over)), min(over), max(over), float(np.mean(losses)))

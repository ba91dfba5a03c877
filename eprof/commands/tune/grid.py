"""Energy and time of kernels at every setting: what settings are chosen from."""

from collections.abc import Sequence
from functools import reduce

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.base.clocks import Clocks
from eprof.base.marks import NONE, Mark


class Point(Clocks, frozen=True):
    """A setting: its clocks in MHz, how far the table knows it, and a sentence where it does not."""

    marks: Mark = NONE
    why: str = ""


class Grid(Struct, frozen=True, eq=False):
    """One kernel, or a program, at every setting: (n_settings,) each, NaN = not known.

    energy_j, time_s: what the choice is made from; energy predicted by a table or a fit, time measured or modelled.
    measured_j, measured_s: what a meter and a clock saw at that setting. now: the place of the setting in force.
    """

    name: str
    kernel: str
    energy_j: Floats
    time_s: Floats
    measured_j: Floats
    measured_s: Floats
    marks: Mark = NONE
    launches: float = 1.0
    now: int | None = None

    @property
    def is_measured(self) -> bool:
        """Whether the grid's energy was measured at two settings or more, so that there is a measured best."""
        return int(np.isfinite(self.measured_j).sum()) > 1


def together(grids: Sequence[Grid], name: str) -> Grid:
    """The grid of the program: energies and times of its kernels added up at each setting; NaN where one is unknown."""
    return Grid(
        name,
        name,
        energy_j=np.sum([grid.energy_j for grid in grids], axis=0),
        time_s=np.sum([grid.time_s for grid in grids], axis=0),
        measured_j=np.sum([grid.measured_j for grid in grids], axis=0),
        measured_s=np.sum([grid.measured_s for grid in grids], axis=0),
        marks=reduce(Mark.__or__, [grid.marks for grid in grids], NONE),
        now=grids[0].now,
    )


def front(grid: Grid) -> list[int]:
    """The places of settings in a grid that no other beats in both time and energy, fastest first."""
    known = np.flatnonzero(np.isfinite(grid.energy_j) & (grid.time_s > 0))
    places: list[int] = []
    for place in sorted(known, key=lambda place: (grid.time_s[place], grid.energy_j[place])):
        if not places or grid.energy_j[place] < grid.energy_j[places[-1]]:
            places.append(int(place))
    return places

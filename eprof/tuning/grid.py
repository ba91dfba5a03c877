"""Energy and time of kernels at every setting: what settings are chosen from."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eprof.base.marks import NONE, Mark

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Point:
    """A setting: its clocks in MHz, how far the table knows it, and a sentence where it does not."""

    core_mhz: float
    memory_mhz: float
    marks: Mark = NONE
    why: str = ""

    @property
    def label(self) -> str:
        """As users write it: "852/924"."""
        return f"{self.core_mhz:g}/{self.memory_mhz:g}"


@dataclass(frozen=True, eq=False)
class Grid:
    """One kernel, or a program, at every setting: (n_settings,) each, NaN = not known.

    energy_j, time_s: what the choice is made from; predicted by a table or a fit, time measured where `timed`.
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
        """Whether energy was measured at two settings or more, so that there is a measured best."""
        return int(np.isfinite(self.measured_j).sum()) > 1


def together(grids: Sequence[Grid], name: str) -> Grid:
    """The program: energies and times of its kernels added up at each setting; NaN where one is not known."""

    def added(what: str) -> Floats:
        return np.asarray(np.sum([getattr(one, what) for one in grids], axis=0))

    marks = NONE
    for one in grids:
        marks |= one.marks
    return Grid(
        name,
        name,
        added("energy_j"),
        added("time_s"),
        added("measured_j"),
        added("measured_s"),
        marks,
        now=grids[0].now,
    )

"""A run of a program on a number of nodes."""

import statistics
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.marks import Mark


class Part(Struct, frozen=True, kw_only=True):
    """What one cause takes of a run's energy. None: not known."""

    energy_j: float | None
    marks: list[str]


class Run(Struct, frozen=True):
    """One program of one size on so many processors at a clock: medians over repeats. None: not known.

    marks, time_marks: how far energy and time can be trusted. cluster: the one that was simulated. unit: what a
    processor is. parts: what makes up the energy of a GPU cluster, and ranks, imbalance (`ranks.py`). where: the
    file and line of its row.
    """

    program: str
    size: float | None
    processors: int
    core_mhz: float | None
    time_s: float
    energy_j: float | None
    repeats: int = 1
    marks: int = 0
    cluster: str | None = None
    unit: str = "node"
    where: str = ""
    time_marks: int = 0
    parts: Mapping[str, Part] | None = None
    ranks: int | None = None
    imbalance: float | None = None

    @property
    def problem(self) -> tuple[str, float | None]:
        """What a run solved: the program and its size."""
        return self.program, self.size


def medians(runs: Sequence[Run], notes: list[str]) -> list[Run]:
    """One run for repeats of the same: the medians of their times, and of the energies that are known.

    Of runs in parts, the one of the median energy, of an even number the lower of two: medians of parts do not add up.
    """
    groups: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.program, run.size, run.processors, run.core_mhz), []).append(run)
    if len(groups) < len(runs):
        notes.append(f"{len(runs)} rows are {len(groups)} different runs: repeats are shown as their medians")
    if any(same[0].parts is not None and len(same) % 2 == 0 for same in groups.values()):
        notes.append("of an even number of repeats in parts, the lower in energy of the two in the middle is shown")
    return [_median(same) for same in groups.values()]


def _median(same: Sequence[Run]) -> Run:
    if same[0].parts is not None:
        middle = sorted(same, key=lambda run: run.energy_j or 0.0)[(len(same) - 1) // 2]
        return replace(middle, repeats=len(same))
    # A lower bound says nothing where the energy of another repeat is known in full.
    known = [run for run in same if run.energy_j is not None]
    known = [run for run in known if not run.marks & Mark.MISSING] or known
    first = (known or same)[0]
    return replace(
        first,
        time_s=statistics.median(run.time_s for run in same),
        energy_j=statistics.median(run.energy_j or 0.0 for run in known) if known else None,
        marks=reduce(or_, (run.marks for run in known), 0),
        time_marks=reduce(or_, (run.time_marks for run in same)),
        repeats=len(same),
    )

"""Joules by component and function: the steps of power, cut where functions begin and end.

The innermost function owns the joules of a moment (exclusive); what is around it has them in its inclusive sum. What no
function covers is outside. So E(c) = sum_f E(c, f) + E(c, outside) is the integral of the component's power.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.base.known import gathered, ratio
from eprof.lab.power.marks import Mark
from eprof.lab.power.series import Series

_QUARTER_S = 900.0  # zones of time are so far apart


class Pieces(Struct, frozen=True, eq=False):
    """Stretches of time that do not overlap, and the function that owns each, by its place in `names`."""

    names: tuple[str, ...]
    begin_s: Floats
    end_s: Floats
    owner: Floats

    def summed(self, amounts: Floats) -> Floats:
        """Amounts of the pieces, (n_pieces,), summed by function, (n_names,)."""
        return np.bincount(self.owner.astype(np.int64), amounts, len(self.names)).astype(np.float64)


def exclusive(marks: Sequence[Mark]) -> Pieces:
    """Pieces of time that the innermost function owns: of those that are open, the one that began last."""
    names = tuple(dict.fromkeys(mark.name for mark in marks))
    place = {name: number for number, name in enumerate(names)}
    lasting = [(number, mark) for number, mark in enumerate(marks) if mark.end_s > mark.begin_s]
    ends = [(mark.begin_s, 1, number) for number, mark in lasting]
    ends += [(mark.end_s, 0, number) for number, mark in lasting]
    open_: list[int] = []
    pieces = []
    before_s = -np.inf
    for time_s, begins, number in sorted(ends):
        if open_ and time_s > before_s:
            pieces.append((before_s, time_s, place[marks[open_[-1]].name]))
        if begins:
            open_.append(number)
        else:
            open_.remove(number)
        before_s = time_s
    return Pieces(names, *np.array(pieces, dtype=np.float64).reshape(-1, 3).T)


def inclusive(marks: Sequence[Mark]) -> Pieces:
    """Pieces of time of each function with all that it calls; calls of itself count once. Functions overlap."""
    own = by_name(marks)
    rows = []
    for place, same in enumerate(own.values()):
        end_s = -np.inf
        for mark in sorted(same, key=lambda mark: mark.begin_s):
            if mark.end_s > end_s:
                rows.append((max(mark.begin_s, end_s), mark.end_s, place))
                end_s = mark.end_s
    return Pieces(tuple(own), *np.array(rows, dtype=np.float64).reshape(-1, 3).T)


def by_name(marks: Sequence[Mark]) -> dict[str, list[Mark]]:
    """Function -> its marks, functions in the order in which they first come."""
    return gathered((mark.name, mark) for mark in marks)


def one_rank(marks: Sequence[Mark]) -> tuple[list[Mark], int]:
    """The marks of the rank or thread with the most time in them, and how many other ranks there are.

    Ranks of a node share its meters: joules cannot be divided among them. Marks of none are of the whole program.
    """
    by_rank = gathered((mark.rank, min(mark.end_s - mark.begin_s, 1e9)) for mark in marks if mark.rank)
    seconds = {rank: sum(lasted_s) for rank, lasted_s in by_rank.items()}
    busiest = max(seconds, key=lambda rank: seconds[rank], default="")
    return [mark for mark in marks if mark.rank in ("", busiest)], max(len(seconds) - 1, 0)


def zone_s(series: Series, marks: Sequence[Mark]) -> float:
    """The seconds, in quarter hours, that bring power times without a zone to the marks; 0 where they overlap."""
    if series.zoned or not series.absolute:
        return 0.0
    begin_s, end_s = marks[0].begin_s, max(mark.end_s for mark in marks)
    if series.edges[0] < end_s and series.edges[-1] > begin_s:
        return 0.0
    middle = (series.edges[0] + series.edges[-1]) / 2
    nearest = round(((begin_s + min(end_s, begin_s + 1e6)) / 2 - middle) / _QUARTER_S) * _QUARTER_S
    return float(nearest) if abs(nearest) <= 14 * 3600 else 0.0


def offset_s(series: Series, pieces: Pieces, within_s: float) -> float:
    """The seconds by which the power's clock is behind the marks', where power is steadiest inside the functions.

    The offset within `within_s` at which what the mean power of each function explains of the power is most.
    """
    step = series.period_s / 10  # how finely clocks are compared
    offsets = np.arange(-within_s, within_s + step / 2, step)
    # How well fused clocks fit: sum over functions, and outside, of joules squared over time.
    explained = []
    for offset in offsets:
        moved = series.shifted(offset)
        seconds = pieces.summed(moved.known_s(pieces.begin_s, pieces.end_s))
        joules = pieces.summed(moved.energy_j(pieces.begin_s, pieces.end_s))
        whole_j, whole_s = moved.seen(moved.edges[0], moved.edges[-1])
        rest_j, rest_s = whole_j - joules.sum(), whole_s - seconds.sum()
        known = seconds > 0
        inside = float((joules[known] ** 2 / seconds[known]).sum())
        explained.append(inside + (ratio(rest_j**2, max(rest_s, 0.0)) or 0.0))
    found_s = float(offsets[int(np.argmax(explained))])
    return 0.0 if abs(found_s) < 1e-6 * series.period_s else found_s  # less of an offset is rounding


def moved_j_per_ms(series: Series, pieces: Pieces) -> float:
    """The joules that would go to another function for each ms of error between clocks: the jumps at borders x 1 ms."""
    half = series.period_s
    after = series.energy_j(pieces.begin_s, pieces.begin_s + half) / half
    before = series.energy_j(pieces.begin_s - half, pieces.begin_s) / half
    return float(np.abs(after - before).sum() * 1e-3)

"""Joules by component and function, with what they call; between bases and bursts, where nobody marked functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats, Ints
from eprof.base.optional import gathered, ratio
from eprof.lab.power.marks import Mark, Pieces
from eprof.lab.power.series import Series


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


# ----------------------------------------------------------------------------------------------------------------------
# Base power and bursts in a log that nobody marked: two levels, where the power has them.

# N. Otsu, A threshold selection method from gray-level histograms, IEEE Trans. SMC 9 (1979): two levels explain so much
# of the variance. Of power that is anywhere in a range as often as anywhere else, they explain three quarters.
_TWO_LEVELS = 0.75
_RUNS = 8  # samples a stretch of the upper level at least: chance alone makes one of every four samples
_APART = 0.1  # of the lower level: what is nearer is no burst that a user could know
_BETWEEN = 3  # new values of the meter: a shorter pause does not end a burst
_FEWEST = 20  # samples: of fewer, chance makes two levels often


class Burst(Struct, frozen=True):
    """A stretch of the upper level: its moments in s, as its series has them, and all its joules."""

    begin_s: float
    end_s: float
    energy_j: float


class Levels(Struct, frozen=True):
    """base_w: the median of the lower level; None: there are no two. bursts: the stretches above it."""

    base_w: float | None = None
    bursts: list[Burst] = []


def levels(series: Series) -> Levels:
    """The base power and bursts of a series of power; empty where it has no two levels, or is too short to tell."""
    seconds, known = np.diff(series.edges), np.isfinite(series.watts)
    order = np.argsort(series.watts[known], kind="stable")
    watts, weights = series.watts[known][order], seconds[known][order]
    if len(watts) < _FEWEST or watts[0] == watts[-1]:
        return Levels()
    below_s, below_j = np.cumsum(weights)[:-1], np.cumsum(weights * watts)[:-1]
    total_s, total_j = weights.sum(), (weights * watts).sum()
    between = (total_j * below_s - total_s * below_j) ** 2 / (below_s * (total_s - below_s)) / total_s**2
    place = int(np.argmax(between))
    variance = (weights * (watts - total_j / total_s) ** 2).sum() / total_s
    base_w = watts[np.searchsorted(below_s, below_s[place] / 2)]
    upper_w = (total_j - below_j[place]) / (total_s - below_s[place])
    if between[place] / variance <= _TWO_LEVELS or upper_w - base_w < _APART * base_w:
        return Levels()
    is_high = np.concatenate([[0], series.watts > watts[place], [0]]).astype(np.int8)
    begins_s = series.edges[np.flatnonzero(np.diff(is_high) > 0)]
    ends_s = series.edges[np.flatnonzero(np.diff(is_high) < 0)]
    if len(watts) < _RUNS * len(begins_s):
        return Levels()
    # What a short pause parts is one burst.
    apart = np.append(True, begins_s[1:] - ends_s[:-1] >= _BETWEEN * series.new_every_s)
    first: Ints = np.flatnonzero(apart)
    begins_s, ends_s = begins_s[first], ends_s[np.append(first[1:] - 1, len(ends_s) - 1)]
    joules: Floats = series.energy_j(begins_s, ends_s)
    return Levels(float(base_w), list(map(Burst, begins_s.tolist(), ends_s.tolist(), joules.tolist())))

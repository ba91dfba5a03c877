"""Where a series of runs takes a step: binary segmentation with a t test.

A. J. Scott and M. Knott, A cluster analysis method for grouping means in the analysis of variance, Biometrics 30
(1974): cut where the means of both sides differ most against the noise inside them, and go on in both pieces as long
as that is more than noise. The t test, with the choice of the best of m cuts paid for by m (Bonferroni), tells a
step from four runs on, where permutations would need ten.
"""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats
from eprof.lab.welch import t_outside

LEVEL = 0.01
LEAST = 2  # runs on each side: one alone does not tell its noise
_SAME = 1e-12  # of the largest value: sums of the same joules in another order


class Step(Struct, frozen=True):
    """A step before the run at `place`. p: how often noise alone makes one as clear at the clearest cut."""

    place: int
    p: float


def steps(values: Sequence[float], may_cut: Sequence[bool] | None = None, level: float = LEVEL) -> list[Step]:
    """The steps of a series, in its order.

    may_cut: before which runs there may be a step; runs of one commit are repeats of each other, and have none between
    them. level: of all cuts of a piece together; noise that is normal and the same everywhere takes a step in a series
    without one at most so often.
    """
    series = np.asarray(values, dtype=np.float64)
    cuts = np.ones(len(series), dtype=bool) if may_cut is None else np.asarray(may_cut, dtype=bool)
    return _within(series, cuts, 0, len(series), level)


def _within(series: Floats, cuts: np.ndarray, start: int, end: int, level: float) -> list[Step]:
    places = np.flatnonzero(cuts[start + LEAST : end - LEAST + 1]) + start + LEAST
    if not len(places):
        return []
    t = _t(series[start:end], places - start)
    best = int(np.argmax(t))
    p = min(1.0, len(places) * t_outside(float(t[best]), end - start - 2)) if np.isfinite(t[best]) else 0.0
    if p >= level:
        return []
    place = int(places[best])
    before, after = _within(series, cuts, start, place, level), _within(series, cuts, place, end, level)
    return [*before, Step(place, p), *after]


def _is_flat(series: Floats, tolerance: float) -> np.ndarray:
    """Whether neither side of a step varies, for each place of one."""
    flat = [np.maximum.accumulate(side) - np.minimum.accumulate(side) <= tolerance for side in (series, series[::-1])]
    is_flat = np.ones(len(series) + 1, dtype=bool)
    is_flat[1:] = flat[0]
    is_flat[:-1] &= flat[1][::-1]
    return is_flat


def _t(series: Floats, places: np.ndarray) -> Floats:
    """Student's t of each possible step, with one variance for both sides: infinite where neither varies."""
    number = len(series)
    tolerance = _SAME * np.abs(series).max()
    centred = series - series.mean()
    sums, squares = np.cumsum(centred), np.cumsum(centred**2)
    left, right = sums[places - 1] / places, (sums[-1] - sums[places - 1]) / (number - places)
    inside = squares[-1] - places * left**2 - (number - places) * right**2
    inside = np.where(_is_flat(series, tolerance)[places], 0.0, np.maximum(inside, 0.0))
    distance = np.where(np.abs(left - right) > tolerance, np.abs(left - right), 0.0)
    error = np.sqrt(inside / (number - 2) * (1 / places + 1 / (number - places)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance > 0, distance / error, 0.0)

"""The intervals of a priced profile: how far its energies are known, as prices and the error of the model go.

The error of the model is known for fitted tables alone; that of the counts is not in them. A total that lacks something
ends above at what its board can draw in that time, and nowhere (None) where the limit or the time is not known; a part
of it that lacks something has no interval.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from eprof.base.arrays import Floats, known_or_zero
from eprof.base.marks import Mark
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.energy.attribution import FAMILIES
from eprof.energy.replicas import Replicas, amounts_of, independent, places, replicas_of
from eprof.profile import schema
from eprof.profile.totals import TOTAL, board_limit_w, joule_marks_of, joules_of, time_marks_of, time_of

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

_MISSING = int(Mark.MISSING)
_WORDS_OF_GROUP = {
    group: (CONSTANT,) if group == CONSTANT else tuple(name for name, count in COUNTS.items() if count.group == group)
    for group in GROUPS
}


def replicas(energy: "Energy") -> Replicas | None:
    """The replicas of the prices; None for a table without, or one of another GPU, of whose prices they say nothing."""
    if energy.costs is None or energy.table is None or energy.split is None:
        return None
    if energy.profile.is_named_otherwise(energy.table):
        return None
    return replicas_of(energy.table, energy.costs)


def of_whole(energy: "Energy", refits: Replicas | None) -> schema.Interval | None:
    """The intervals of a profile's energy of all kernels, by family and by group of counts."""
    if refits is None:
        return None
    totals, marks = joules_of(energy), joule_marks_of(energy)
    amounts = _summed(energy)
    families = {
        family: _interval(refits, amounts, words, totals[family], marks[family], _spread(energy, words))
        for family, words in FAMILIES.items()
    }
    return schema.Interval(
        total=of_total(energy, refits),
        share=refits.share,
        replicas=refits.number,
        within=refits.within if refits.within > 1 else None,
        groups=_of_groups(energy, refits, amounts),
        **families,
    )


def of_total(energy: "Energy", refits: Replicas | None, lost: int = 0) -> schema.Range | None:
    """The interval of the energy of all kernels together. lost: MISSING where some of them are not among them."""
    joules = joules_of(energy)[TOTAL]
    if refits is None or joules is None:
        return None
    words = (*COUNTS, CONSTANT)
    low, high = refits.interval(refits.joules(_summed(energy)), joules, _spread(energy, words)).tolist()
    is_whole = not (time_marks_of(energy) | lost) & _MISSING
    most = _most_j(energy, time_of(energy) or math.nan) if is_whole else math.nan
    return _closed(low, high, (joule_marks_of(energy)[TOTAL] | lost) & _MISSING, most)


def of_kernels(energy: "Energy", refits: Replicas | None) -> list[schema.Range | None]:
    """The interval of each kernel's energy."""
    number = len(energy.counts.rows)
    if refits is None or energy.split is None:
        return [None] * number
    total_j, rows = energy.split.total_j, energy.counts.rows
    joules = refits.joules(amounts_of(energy.counts))
    ends = refits.interval(joules, total_j, _spread_of_kernels(energy, total_j)).tolist()
    lacks = (energy.split.row_marks & _MISSING).tolist()
    time_s = np.where((rows.time_marks & _MISSING) == 0, rows.time_s, np.nan)
    most = (time_s * _most_j(energy, 1.0)).tolist()
    known = (~np.isnan(total_j)).tolist()
    rows_of_ends = zip(ends, lacks, most, known, strict=True)
    return [
        _closed(low, high, lack, most_j) if is_known else None for (low, high), lack, most_j, is_known in rows_of_ends
    ]


def _most_j(energy: "Energy", time_s: float) -> float:
    """What the profile's board can draw in a time, in J; NaN where a meter or a model has the last word."""
    if energy.metered is not None or energy.modelled is not None:
        return math.nan
    return board_limit_w(energy) * time_s


def _closed(low_j: float, high_j: float, lacks: int, most_j: float) -> schema.Range:
    """An interval that ends at what the board can draw, where that is known and not below all of it.

    lacks: not 0 where something was not counted or has no price, which then may be all that the board can draw more.
    """
    can_be = math.isfinite(most_j) and most_j > low_j
    if lacks:
        return [low_j, most_j if can_be else None]
    return [low_j, min(high_j, most_j) if can_be else high_j]


def _spread(energy: "Energy", words: tuple[str, ...]) -> float:
    """The energy of these words that has the error of the model, in J; constant power has none."""
    assert energy.split is not None
    if words == (CONSTANT,):
        return 0.0
    if energy.total_s is not None and CONSTANT in words:
        return joules_of(energy)[TOTAL] or 0.0
    parts_j = known_or_zero(energy.split.joules.only(words)).sum(axis=1)
    return independent(parts_j - parts_j.sum() * _metered_shares(energy))


def _spread_of_kernels(energy: "Energy", total_j: Floats) -> Floats:
    """The energy of each kernel that has the error of the model, (n_kernels,), in J.

    Of metered energy, what one kernel takes too much is what the others take too little.
    """
    shares = _metered_shares(energy)
    spread_j: Floats = total_j * np.sqrt(1 - 2 * shares + (shares**2).sum())
    return spread_j


def _metered_shares(energy: "Energy") -> Floats:
    """The share of the metered energy that each kernel takes, (n_kernels,); 0 where no meter gave the total."""
    assert energy.split is not None
    total_j = known_or_zero(energy.split.total_j)
    if energy.metered is None:
        return np.zeros_like(total_j)
    return np.asarray(total_j / energy.metered.meter.joules)


def _summed(energy: "Energy") -> Floats:
    """Counts and time of all kernels of the profile together, for their interval, (n_priced,)."""
    amounts: Floats = known_or_zero(amounts_of(energy.counts)).sum(axis=0)
    if energy.total_s is not None:
        amounts[-1] = energy.total_s
    return amounts


def _of_groups(energy: "Energy", refits: Replicas, amounts: Floats) -> dict[str, schema.Range | None]:
    assert energy.split is not None
    constant_j, constant_marks = joules_of(energy)[CONSTANT], joule_marks_of(energy)[CONSTANT]
    intervals = {}
    for group, words in _WORDS_OF_GROUP.items():
        joules: float | None = float(np.nansum(energy.split.joules.only(words)))
        marks = int(np.bitwise_or.reduce(energy.split.joule_marks.only(words), axis=None))
        if group == CONSTANT:
            joules, marks = constant_j, constant_marks
        if joules:
            intervals[group] = _interval(refits, amounts, words, joules, marks, _spread(energy, words))
    return intervals


def _interval(
    refits: Replicas, amounts: Floats, words: tuple[str, ...], joules: float | None, marks: int, spread_j: float
) -> schema.Range | None:
    if joules is None or marks & _MISSING:
        return None
    chosen = np.zeros_like(amounts)
    chosen[places(words)] = amounts[places(words)]
    ends: schema.Range = refits.interval(refits.joules(chosen), joules, spread_j).tolist()
    return ends

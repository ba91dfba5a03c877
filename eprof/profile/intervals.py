"""The intervals of a priced profile: how far its energies are known, as prices and the error of the model go.

The error of the model is known for fitted tables alone; that of the counts is not in them. What was not counted is
bounded class by class (`energy/bounds.py`), and by what the board can draw in that time; where neither is known, an
interval has no end above (None).
"""

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET

from eprof.base.arrays import Floats, known_or_zero
from eprof.base.marks import Mark
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.energy.attribution import FAMILIES
from eprof.energy.bounds import Uncounted, uncounted
from eprof.energy.replicas import Replicas, amounts_of, independent, places, replicas_of
from eprof.profile import schema
from eprof.profile.totals import TOTAL, board_limit_w, joules_of, time_marks_of, time_of

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
    lost = _uncounted(energy, refits)
    families = {family: _of_part(energy, refits, words, lost) for family, words in FAMILIES.items()}
    groups = {group: _of_part(energy, refits, words, lost) for group, words in _WORDS_OF_GROUP.items()}
    total, most_j = of_total(energy, refits), _most_j(energy, time_of(energy) or math.nan)
    limit_w = board_limit_w(energy) if total is not None and total[1] == most_j else UNSET
    return schema.Interval(
        total=total,
        share=refits.share,
        replicas=refits.number,
        within=refits.within if refits.within > 1 else None,
        groups={group: ends for group, ends in groups.items() if ends is not None},
        uncounted=_room(energy, lost),
        limit_w=limit_w,
        **families,
    )


def _room(energy: "Energy", lost: Uncounted) -> dict[str, float | None]:
    """What was not counted can take so much in J, by group and in all, as far as the board can draw more."""
    most_j = _most_j(energy, time_of(energy) or math.nan)
    room_j = math.inf
    if math.isfinite(most_j) and not time_marks_of(energy) & _MISSING:
        room_j = max(most_j - (joules_of(energy)[TOTAL] or 0.0), 0.0)
    sums = {group: min(float(joules.sum()), room_j) for group, joules in lost.groups.items()}
    sums["total"] = min(float(lost.total.sum()), room_j)
    return {group: joules if math.isfinite(joules) else None for group, joules in sums.items() if joules}


def of_total(energy: "Energy", refits: Replicas | None, lost: int = 0) -> schema.Range | None:
    """The interval of the energy of all kernels together. lost: MISSING where some of them are not among them."""
    joules = joules_of(energy)[TOTAL]
    if refits is None or joules is None:
        return None
    words = (*COUNTS, CONSTANT)
    low, high = refits.interval(refits.joules(_summed(energy)), joules, _spread(energy, words)).tolist()
    is_whole = not (time_marks_of(energy) | lost) & _MISSING
    most = _most_j(energy, time_of(energy) or math.nan) if is_whole else math.nan
    more = math.inf if lost else float(_uncounted(energy, refits).total.sum())
    return _closed(low, high, more, most)


def of_kernels(energy: "Energy", refits: Replicas | None) -> list[schema.Range | None]:
    """The interval of each kernel's energy."""
    number = len(energy.counts.rows)
    if refits is None or energy.split is None:
        return [None] * number
    total_j, rows = energy.split.total_j, energy.counts.rows
    joules = refits.joules(amounts_of(energy.counts))
    ends = refits.interval(joules, total_j, _spread_of_kernels(energy, total_j)).tolist()
    more = _uncounted(energy, refits).total.tolist()
    time_s = np.where((rows.time_marks & _MISSING) == 0, rows.time_s, np.nan)
    most = (time_s * _most_j(energy, 1.0)).tolist()
    known = (~np.isnan(total_j)).tolist()
    return [
        _closed(low, high, more_j, most_j) if is_known else None
        for (low, high), more_j, most_j, is_known in zip(ends, more, most, known, strict=True)
    ]


def _uncounted(energy: "Energy", refits: Replicas) -> Uncounted:
    """The most that uncounted work takes at the high end of the prices; of a metered total, nothing more."""
    assert energy.costs is not None and energy.split is not None
    if energy.metered is not None:
        nothing = np.zeros(len(energy.counts.rows))
        return Uncounted({}, nothing)
    lost = uncounted(energy.counts, energy.costs, energy.split, refits.price_intervals[:, 1])
    if energy.total_s is not None:
        # The time of all kernels is known, that of each is not.
        constant_j = lost.groups.pop(CONSTANT)
        return Uncounted(lost.groups, np.where(np.isinf(constant_j), np.inf, lost.total))
    return lost


def _most_j(energy: "Energy", time_s: float) -> float:
    """What the profile's board can draw in a time, in J; NaN where a meter or a model has the last word."""
    if energy.metered is not None or energy.modelled is not None:
        return math.nan
    return board_limit_w(energy) * time_s


def _closed(low_j: float, high_j: float, more_j: float, most_j: float) -> schema.Range:
    """An interval with what was not counted, that ends at what the board can draw, where that is not below all of it.

    more_j: the most that was not counted, or has no price; infinite where nothing bounds it.
    """
    high_j += more_j
    if math.isfinite(most_j) and most_j > low_j:
        high_j = min(high_j, most_j)
    return [low_j, high_j if math.isfinite(high_j) else None]


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


def _of_part(energy: "Energy", refits: Replicas, words: tuple[str, ...], lost: Uncounted) -> schema.Range | None:
    """The interval of the energy of some words, in J; None where none of them costs anything."""
    assert energy.split is not None
    joules = joules_of(energy)[CONSTANT]
    if words != (CONSTANT,):
        joules = float(np.nansum(energy.split.joules.only(words)))
    amounts = _summed(energy)
    chosen = np.zeros_like(amounts)
    chosen[places(words)] = amounts[places(words)]
    if not joules:
        return None
    low, high = refits.interval(refits.joules(chosen), joules, _spread(energy, words)).tolist()
    groups = {CONSTANT if word == CONSTANT else COUNTS[word].group for word in words}
    more = sum(float(lost.groups[group].sum()) for group in groups if group in lost.groups)
    is_whole = not time_marks_of(energy) & _MISSING
    most = _most_j(energy, time_of(energy) or math.nan) if is_whole else math.nan
    return _closed(low, high, more, most)

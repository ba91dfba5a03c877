"""Intervals of a priced profile's energies, by replicas of prices and the model's error.

The error of the model is known for fitted tables alone; that of the counts is not in them. What was not counted is
bounded class by class (`energy/uncertainty.py`), and by what the board can draw in that time; where neither is known,
an interval has no end above (None).
"""

import math
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import chain

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from eprof.base import cpus
from eprof.base.arrays import Floats, Ints, finite, known_or_zero
from eprof.base.optional import mapped, only
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, GROUP_OF, GROUPS, PRICED
from eprof.energy.uncertainty import Replicas, Uncounted, amounts_of, independent, replicas_of, uncounted
from eprof.profile import schema
from eprof.profile.priced_profile import ROW_OF, TOTAL, PricedProfile, joules_by_group, joules_of, time_of

_WORDS_OF = {group: tuple(word for word in PRICED if GROUP_OF[word] == group) for group in GROUPS}
_IN_GROUP = np.array([[float(GROUP_OF[word] == group) for word in PRICED] for group in GROUPS])
_FAMILIES = {count.group: count.family for count in COUNTS.values()}
GROUPS_OF = {
    family: frozenset(group for group, of in _FAMILIES.items() if of == family) for family in (COMPUTATION, DATA)
}


def in_order(groups: Collection[str]) -> list[str]:
    """Groups of counts in the vocabulary's order: sums over a set would differ in their last digit from run to run."""
    return sorted(groups, key=ROW_OF.__getitem__)


Refits = tuple[Replicas | None, ...]  # of each of `Energy.each`


def replicas(energy: PricedProfile) -> Replicas | None:
    """The replicas of a GPU's or CPU's prices; None: the table has too few, or does not serve the GPU in the logs.

    With another CPU's prices, and more replicas, as far apart as CPUs are; None for another CPU with the same cores.
    """
    table, costs, profile = energy.table, energy.costs, energy.profile
    if costs is None or table is None or energy.split is None:
        return None
    # A meter's joules are known, whatever another CPU's cores would have taken.
    is_anothers = profile.is_of_cpu and energy.metered is None and not profile.is_served_by(table)
    if profile.is_named_otherwise(table):
        cpu = profile.counted[0].device.name
        has_same_cores = cpu is not None and cpus.microarchitecture(cpu) == cpus.microarchitecture(table.device)
        if not is_anothers or has_same_cores:
            return None
    refits = replicas_of(table, costs)
    if refits is None:
        return None
    prices = refits.prices.copy()
    prices[-1] *= costs.constant_held
    refits = replace(refits, prices=prices)
    if not is_anothers:
        return refits
    sockets = (costs.cores or 1.0) / (table.constant.cores or 1.0)
    least_w, most_w = cpus.constant_span_w()
    if profile.is_whole_client(table):
        prices[-1] = costs.constant_power_w
        least_w, most_w = cpus.constant_span_w(profile.counted[0].device.name)
    most_w *= profile.cpu_use.beyond_sockets(table)
    return refits.for_another(cpus.apart(), [sockets * least_w, sockets * most_w])


class Draws:
    """The energies of a profile's kernels by each replica of the prices, held to what their boards may draw."""

    def __init__(self, energy: PricedProfile, refits: Replicas) -> None:
        assert energy.costs is not None and energy.split is not None
        self.energy, self.refits, self.limits = energy, refits, energy.limits
        self.amounts = known_or_zero(amounts_of(energy.counts))
        self.whole_s = time_of(energy) or math.nan
        self.lost = _uncounted(energy, refits)

    @cached_property
    def factors(self) -> Floats:
        """The factor by which power limits cut the work of each kernel in each replica, (n_kernels, n_replicas)."""
        work = self.amounts.copy()
        work[:, -1] = 0.0
        return self.limits.factors(self.refits.joules(work), self.refits.prices[-1])

    def by_group(self, rows: Ints) -> Floats:
        """The energy of each group of counts in some kernels together, by replica: (n_groups, n_replicas), in J."""
        amounts = self.amounts[rows]
        joules = (amounts.T @ self.factors[rows]) * self.refits.prices
        seconds = amounts[:, -1].sum()
        if self.energy.total_s is not None and len(amounts) == len(self.amounts):
            seconds = self.energy.total_s
        joules[-1] = seconds * self.refits.prices[-1]
        in_groups: Floats = _IN_GROUP @ joules
        return in_groups

    @cached_property
    def of_all(self) -> Floats:
        """The energy of each group of counts in all kernels, (n_groups, n_replicas), in J."""
        return self.by_group(np.arange(len(self.amounts)))

    def ends(self, groups: Iterable[str], value_j: float, more_j: float) -> schema.Range:
        """The interval [low, high], J, of the energy of some groups of counts in all kernels, `value_j` by the prices.

        more_j: the most joules that was not counted of them.
        """
        spread_j = _spread(self.energy, tuple(chain.from_iterable(_WORDS_OF[group] for group in groups)))
        joules = self.of_all[[ROW_OF[group] for group in groups]].sum(axis=0)
        low, high = self.refits.interval(joules, value_j, spread_j).tolist()
        return _closed(low, high, more_j, self.limits.total_j, value_j)


# The whole, its total, its kernels and its causes ask for the same.
draws_of_profile = lru_cache(maxsize=4)(Draws)


def of_whole(energy: PricedProfile, refits: Refits) -> schema.Interval | None:
    """The intervals of the energy of all kernels, by family and by group of counts; None: without replicas."""
    of_gpus = [_of_gpu(gpu, own) for gpu, own in _with_replicas(energy, refits)]
    return _together(of_gpus, _has_unpriced(energy)) if energy.gpus else only(of_gpus)


def _with_replicas(energy: PricedProfile, refits: Refits) -> list[tuple[PricedProfile, Replicas]]:
    """The GPUs with prices and the replicas of these; [] where the prices of one GPU have no replicas."""
    known = []
    for gpu, own in zip(energy.each, refits, strict=True):
        if own is not None and len(gpu.counts.rows):
            known.append((gpu, own))
        elif gpu.split is not None and len(gpu.counts.rows):
            return []
    return known


def _has_unpriced(energy: PricedProfile) -> bool:
    """Whether some kernels ran on a GPU without prices, so that an interval of the total has no end above."""
    return any(gpu.split is None and len(gpu.counts.rows) for gpu in energy.gpus)


def _together(of_gpus: Sequence[schema.Interval], is_open: bool) -> schema.Interval | None:
    """The intervals of several GPUs added up, as if all prices were off to one side. is_open: none has an end above."""
    if not of_gpus:
        return None
    uncounted = [interval.uncounted for interval in of_gpus]
    if is_open:
        uncounted.append({TOTAL: None})
    rooms = {group: [own[group] for own in uncounted if group in own] for group in dict.fromkeys(chain(*uncounted))}
    within = [interval.within for interval in of_gpus if interval.within]
    return schema.Interval(
        share=min(interval.share for interval in of_gpus),
        replicas=min(interval.replicas for interval in of_gpus),
        within=max(within, default=None),
        apart=max((interval.apart for interval in of_gpus if interval.apart), default=UNSET),
        computation=_added([interval.computation for interval in of_gpus], is_open),
        data=_added([interval.data for interval in of_gpus], is_open),
        constant=_added([interval.constant for interval in of_gpus], is_open),
        total=_added([interval.total for interval in of_gpus], is_open),
        groups={
            group: _added([interval.groups.get(group) for interval in of_gpus], is_open)
            for group in GROUPS
            if any(group in interval.groups for interval in of_gpus)
        },
        uncounted={group: None if None in own else sum(filter(None, own)) for group, own in rooms.items()},
    )


def _added(ranges: Sequence[schema.Range | None], is_open: bool) -> schema.Range | None:
    """The intervals added up end by end, None without any; no end above (None) if `is_open`, or where one has none."""
    known = [ends for ends in ranges if ends is not None]
    if not known:
        return None
    lows, highs = zip(*known, strict=True)
    has_end = not is_open and None not in highs
    return [sum(filter(None, lows)), sum(filter(None, highs)) if has_end else None]


def _of_gpu(energy: PricedProfile, refits: Replicas) -> schema.Interval:
    """The intervals of one GPU's energy: total, families, groups of counts; and the most that was not counted."""
    draws = draws_of_profile(energy, refits)
    values = dict(zip(GROUPS, joules_by_group(energy, np.arange(len(energy.counts.rows))).tolist(), strict=True))
    total, most_j = _total_of_gpu(energy, refits), draws.limits.total_j

    # The most that uncounted work can take, within what the board can draw.
    room_j = math.inf if math.isnan(most_j) else max(most_j - (joules_of(energy)[TOTAL] or 0.0), 0.0)
    lost = {group: min(float(joules.sum()), room_j) for group, joules in draws.lost.groups.items()}
    lost[TOTAL] = min(float(draws.lost.total.sum()), room_j)

    def ends(groups: Collection[str]) -> schema.Range | None:
        value_j = sum(values[group] for group in groups)
        if not value_j:
            return None
        more_j = sum(float(draws.lost.groups[group].sum()) for group in groups if group in draws.lost.groups)
        low_j, high_j = draws.ends(groups, value_j, more_j)
        # The model's error is that of totals: no part is surely more than all may be.
        return [min(low_j or 0.0, (total or [math.inf])[0] or 0.0), high_j]

    by_group = {group: ends([group]) for group in GROUPS}
    made = schema.Interval(
        total=total,
        share=refits.share,
        replicas=refits.fits or refits.number,
        within=refits.within if refits.within > 1 else None,
        groups={group: own for group, own in by_group.items() if own is not None},
        uncounted={group: finite(joules) for group, joules in lost.items() if joules},
        computation=ends(in_order(GROUPS_OF[COMPUTATION])),
        data=ends(in_order(GROUPS_OF[DATA])),
        constant=by_group[CONSTANT],
    )
    if refits.apart > 1:
        made.apart = refits.apart
    if total is not None and total[1] is not None and math.isclose(total[1], most_j):
        made.limit_w = most_j / draws.whole_s
        sockets = mapped(energy.profile.cpu_use.most_sockets, energy.table) or 1
        if sockets > 1:
            made.sockets = sockets
    return made


def of_total(energy: PricedProfile, refits: Refits, lost: int = 0) -> schema.Range | None:
    """The interval of the energy of all kernels together. lost: MISSING if more kernels may belong to them."""
    of_gpus = [_total_of_gpu(gpu, own) for gpu, own in _with_replicas(energy, refits)]
    return _added(of_gpus, bool(lost) or _has_unpriced(energy))


def _total_of_gpu(energy: PricedProfile, refits: Replicas) -> schema.Range | None:
    """The interval of the energy of one GPU's kernels together, [low, high] in J; None: no energy is known."""
    joules = joules_of(energy)[TOTAL]
    if joules is None:
        return None
    draws = draws_of_profile(energy, refits)
    return draws.ends(GROUPS, joules, float(draws.lost.total.sum()))


def of_kernels(energy: PricedProfile, refits: Replicas | None) -> list[schema.Range | None]:
    """The interval of each kernel's energy on one GPU, in J, below what its board can draw; None: not known."""
    if refits is None or energy.split is None:
        return [None] * len(energy.counts.rows)
    draws, total_j = draws_of_profile(energy, refits), energy.split.total_j
    work = draws.amounts.copy()
    work[:, -1] = 0.0
    constant_j = draws.amounts[:, -1, np.newaxis] * refits.prices[-1]
    joules = refits.joules(work) * draws.factors + constant_j
    ends = refits.interval(joules, total_j, _spread_of_kernels(energy, total_j)).tolist()
    return [
        None if math.isnan(value_j) else _closed(low, high, more_j, most_j, value_j)
        for (low, high), more_j, most_j, value_j in zip(
            ends, draws.lost.total.tolist(), draws.limits.kernel_j.tolist(), total_j.tolist(), strict=True
        )
    ]


def _uncounted(energy: PricedProfile, refits: Replicas) -> Uncounted:
    """The most J of uncounted work at the high end of the prices, by group and kernel; 0 of a metered total."""
    assert energy.costs is not None and energy.split is not None
    if energy.metered is not None:
        return Uncounted({}, np.zeros(len(energy.counts.rows)))
    costs = energy.costs
    if energy.table is not None and costs.peaks.dram_gb_per_s:
        dram = costs.peaks.dram_gb_per_s * energy.profile.cpu_use.beyond_sockets(energy.table)
        costs = replace(costs, peaks=replace(costs.peaks, dram_gb_per_s=dram))
    lost = uncounted(energy.counts, costs, energy.split, refits.price_intervals[:, 1])
    if energy.total_s is not None:
        # The time of all kernels is known, that of each is not.
        constant_j = lost.groups.pop(CONSTANT)
        return Uncounted(lost.groups, np.where(np.isinf(constant_j), np.inf, lost.total))
    return lost


def _closed(low_j: float, high_j: float, more_j: float, most_j: float, value_j: float) -> schema.Range:
    """[low, high] in J, widened by `more_j` above and to hold `value_j`, cut off at the board's `most_j`."""
    high_j += more_j
    if math.isfinite(most_j):
        high_j = max(min(high_j, most_j), value_j)
    return [min(low_j, value_j), finite(high_j)]


def _spread(energy: PricedProfile, words: tuple[str, ...]) -> float:
    """The J of the energy of some counts that the model's own error applies to; 0 for constant power alone."""
    assert energy.split is not None
    if words == (CONSTANT,):
        return 0.0
    if energy.total_s is not None and CONSTANT in words:
        return joules_of(energy)[TOTAL] or 0.0
    parts_j = known_or_zero(energy.split.joules.only(words)).sum(axis=1)
    return independent(parts_j - parts_j.sum() * _metered_shares(energy))


def _spread_of_kernels(energy: PricedProfile, total_j: Floats) -> Floats:
    """The J of each kernel's energy that the model's own error applies to, (n_kernels,).

    Of metered energy, what one kernel takes too much is what the others take too little.
    """
    shares = _metered_shares(energy)
    spread_j: Floats = total_j * np.sqrt(1 - 2 * shares + (shares**2).sum())
    return spread_j


def _metered_shares(energy: PricedProfile) -> Floats:
    """The share of the metered energy that each kernel takes, (n_kernels,); 0 where no meter gave the total."""
    assert energy.split is not None
    total_j = known_or_zero(energy.split.total_j)
    if energy.metered is None:
        return np.zeros_like(total_j)
    return np.asarray(total_j / energy.metered.meter.joules)

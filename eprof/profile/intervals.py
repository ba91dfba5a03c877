"""Intervals of a priced profile's energies, by replicas of prices and the model's error; its causes: what takes most.

The error of the model is known for fitted tables alone; that of the counts is not in them. What was not counted is
bounded class by class (`energy/uncertainty.py`), and by what the board can draw in that time; where neither is known,
an interval has no end above (None).
"""

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property, lru_cache, partial
from itertools import chain, combinations

import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof.base import cpus
from eprof.base.arrays import Floats, Ints, finite, known_or_zero
from eprof.base.optional import mapped, only
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, GROUP_OF, GROUPS, PRICED
from eprof.energy.uncertainty import Replicas, Uncounted, amounts_of, independent, middle, replicas_of, uncounted
from eprof.profile import schema
from eprof.profile.priced_profile import ROW_OF, TOTAL, PricedProfile, joules_by_group, joules_of, time_of

_WORDS_OF = {group: tuple(word for word in PRICED if GROUP_OF[word] == group) for group in GROUPS}
_IN_GROUP = np.array([[float(GROUP_OF[word] == group) for word in PRICED] for group in GROUPS])
_FAMILIES = {count.group: count.family for count in COUNTS.values()}
_OF_FAMILY = {
    family: frozenset(group for group, of in _FAMILIES.items() if of == family) for family in (COMPUTATION, DATA)
}
_IN_BAR = (*_OF_FAMILY.values(), frozenset([CONSTANT]))  # what the bar of a report tells apart


def _in_order(groups: Collection[str]) -> list[str]:
    """Groups of counts in the vocabulary's order: sums over a set would differ in their last digit from run to run."""
    return sorted(groups, key=ROW_OF.__getitem__)


Refits = tuple[Replicas | None, ...]  # of each of `Energy.each`


def replicas(energy: PricedProfile) -> Replicas | None:
    """The replicas of one table's prices; None if it has too few, or the profiled GPU is not the one it was made for.

    Of another CPU's prices they are as far apart as CPUs are, but for CPUs with the same cores.
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
    most_w *= profile.beyond_sockets(table)
    return refits.for_another(cpus.apart(), [sockets * least_w, sockets * most_w])


class _Draws:
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
        """The interval of the energy of some groups in all kernels, whose prices make `value_j` of it.

        more_j: the most that was not counted.
        """
        spread_j = _spread(self.energy, tuple(chain.from_iterable(_WORDS_OF[group] for group in groups)))
        joules = self.of_all[[ROW_OF[group] for group in groups]].sum(axis=0)
        low, high = self.refits.interval(joules, value_j, spread_j).tolist()
        return _closed(low, high, more_j, self.limits.total_j, value_j)


# The whole, its total, its kernels and its causes ask for the same.
_draws = lru_cache(maxsize=4)(_Draws)


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
    """Whether some kernels are of a GPU without prices, which leaves an interval without an end above."""
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
    known = [ends for ends in ranges if ends is not None]
    if not known:
        return None
    lows, highs = zip(*known, strict=True)
    has_end = not is_open and None not in highs
    return [sum(filter(None, lows)), sum(filter(None, highs)) if has_end else None]


def _of_gpu(energy: PricedProfile, refits: Replicas) -> schema.Interval:
    draws = _draws(energy, refits)
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
        computation=ends(_in_order(_OF_FAMILY[COMPUTATION])),
        data=ends(_in_order(_OF_FAMILY[DATA])),
        constant=by_group[CONSTANT],
    )
    if refits.apart > 1:
        made.apart = refits.apart
    if total is not None and total[1] is not None and math.isclose(total[1], most_j):
        made.limit_w = most_j / draws.whole_s
        sockets = mapped(energy.profile.most_sockets, energy.table) or 1
        if sockets > 1:
            made.sockets = sockets
    return made


def of_total(energy: PricedProfile, refits: Refits, lost: int = 0) -> schema.Range | None:
    """The interval of the energy of all kernels together. lost: MISSING if more kernels may belong to them."""
    of_gpus = [_total_of_gpu(gpu, own) for gpu, own in _with_replicas(energy, refits)]
    return _added(of_gpus, bool(lost) or _has_unpriced(energy))


def _total_of_gpu(energy: PricedProfile, refits: Replicas) -> schema.Range | None:
    joules = joules_of(energy)[TOTAL]
    if joules is None:
        return None
    draws = _draws(energy, refits)
    return draws.ends(GROUPS, joules, float(draws.lost.total.sum()))


def of_kernels(energy: PricedProfile, refits: Replicas | None) -> list[schema.Range | None]:
    """The interval of each kernel's energy on one GPU, in J, below what its board can draw; None: not known."""
    if refits is None or energy.split is None:
        return [None] * len(energy.counts.rows)
    draws, total_j = _draws(energy, refits), energy.split.total_j
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
        dram = costs.peaks.dram_gb_per_s * energy.profile.beyond_sockets(energy.table)
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


_MOST_KERNELS = 50  # whose causes a document tells: those that a screen or a page may name
_ALIKE = 1.1  # without replicas: a part is surely the largest from here on
_PROBABLE = 2 / 3  # of the replicas, in which a part is the largest
SURE, PROBABLE, OPEN = "sure", "probable", "open"
_ON_CHIP = _OF_FAMILY[COMPUTATION] | {"shared", "l1", "l2", "l3"}
Partition = tuple[frozenset[str], ...]


def causes_of_energy(energy: PricedProfile, refits: Refits) -> schema.Causes | UnsetType:
    """The causes of the energy of all kernels together; UNSET: nothing is priced, or nothing but constant power."""
    made = []
    for gpu, own in zip(energy.each, refits, strict=True):
        if gpu.split is not None:
            made.append(_by_group(gpu, mapped(partial(_draws, gpu), own), np.arange(len(gpu.counts.rows))))
    return _of_groups(made)


def causes_of_kernels(energy: PricedProfile, replicas: Replicas | None) -> list[schema.Causes | UnsetType]:
    """The causes of each kernel's energy on one GPU; UNSET behind the first 50 kernels, or where none are known."""
    number = len(energy.counts.rows)
    told: list[schema.Causes | UnsetType] = []
    if energy.split is not None:
        draws = mapped(partial(_Draws, energy), replicas)
        rows = (np.array([place]) for place in range(min(number, _MOST_KERNELS)))
        told = [_of_groups([_by_group(energy, draws, row)]) for row in rows]
    return told + [UNSET] * (number - len(told))


class _ByGroup(Struct, frozen=True):
    """The energy of each group in some kernels of a GPU, (n_groups,) in J, and in each replica, (n_groups, n_draws)."""

    joules: Floats
    draws: Floats
    share: float


def _by_group(energy: PricedProfile, draws: _Draws | None, places: np.ndarray) -> _ByGroup:
    """The energy of each group of counts in the kernels at `places`, by replica, spread by the model's own error."""
    joules = joules_by_group(energy, places)
    is_modelled = energy.modelled is not None and not energy.modelled.shares_only and not energy.by_component
    if is_modelled or energy.shares_socket:
        # How much constant power adds to a modelled time, or to some cores, is a choice, which would be shown as found.
        joules[ROW_OF[CONSTANT]] = 0.0
    if draws is None:
        return _ByGroup(joules, joules[:, np.newaxis], 1.0)
    of_replicas = np.where(joules[:, np.newaxis] > 0, draws.by_group(places), 0.0)
    made = np.concatenate([joules[:, np.newaxis], of_replicas], axis=1)
    assert energy.split is not None
    work_j = known_or_zero(energy.split.computation_j[places]) + known_or_zero(energy.split.data_j[places])
    off = (draws.refits.within - 1) * independent(work_j) / (work_j.sum() or 1.0)
    if off and energy.metered is None:
        # The error of the model is that of what the counts cost; constant power has none. Nine of ten lie in x/÷(1 +
        # off): three points of a normal distribution, at its middle (four times of six) and 1.05 times that far on each
        # side.
        is_work = np.ones((len(made), 1))
        is_work[ROW_OF[CONSTANT]] = 0.0
        made = np.concatenate([made * (1 + off) ** (step * is_work) for step in (-1.05, 0, 0, 0, 0, 1.05)], axis=1)
    return _ByGroup(joules, made, draws.refits.share)


def _of_groups(of_gpus: Sequence[_ByGroup]) -> schema.Causes | UnsetType:
    """The causes of the energy of some kernels together, of one GPU or of several; UNSET: none are known."""
    if not of_gpus:
        return UNSET
    joules = sum((own.joules for own in of_gpus), np.zeros(len(GROUPS)))
    if not joules.sum() > 0 or not np.delete(joules, ROW_OF[CONSTANT]).any():
        return UNSET
    groups = [group for group, place in ROW_OF.items() if joules[place] > 0]
    # The replicas of one GPU's prices know nothing of another's: any of the one go with any of the other. Beside prices
    # without replicas they say nothing of the sum.
    numbers = [own.draws.shape[1] for own in of_gpus]
    number = np.arange(max(numbers) if min(numbers) > 1 else 1)
    draws = sum((own.draws[:, number % own.draws.shape[1]] for own in of_gpus), np.zeros((len(GROUPS), len(number))))
    share = max(own.share for own in of_gpus)
    return _chosen(groups, joules[joules > 0], draws[[ROW_OF[group] for group in groups]], share)


def _chosen(groups: Sequence[str], joules: Floats, draws: Floats, share: float) -> schema.Causes:
    """The causes by the finest partition of groups with a surely largest part; else by that with the most certain one.

    No part is the largest only since others are told apart more finely: it is some of the longest piece of a report's
    bar, or larger. groups: of counts; joules: (n_groups,), draws: (n_groups, n_draws), their energy, and by replica.
    """
    rows = {group: row for row, group in enumerate(groups)}
    in_bar = [sum(joules[rows[group]] for group in groups if group in part) for part in _IN_BAR]
    longest = _IN_BAR[int(np.argmax(in_bar))]
    best: Partition = ()
    most = 0.0
    for partition in _partitions(tuple(frozenset([group]) for group in groups), joules):
        parts = [[rows[group] for group in _in_order(part)] for part in partition]
        joules_of, draws_of = (np.stack([values[part].sum(axis=0) for part in parts]) for values in (joules, draws))
        certainty = _certainty(joules_of, draws_of)
        if joules_of.max() < max(in_bar) and partition[joules_of.argmax()].isdisjoint(longest):
            continue
        is_vague = certainty < _PROBABLE and _ON_CHIP & set(groups) in partition
        if (certainty > most and not is_vague) or not best:
            best, most = partition, certainty
            chosen = joules_of, draws_of
        if certainty >= share:
            break
    hows = {SURE: share, PROBABLE: _PROBABLE, OPEN: 0.0}
    how = next(how for how, least in hows.items() if most >= least)
    joules_of, draws_of = chosen
    whole = draws_of.sum(axis=0)
    shares = draws_of[:, whole > 0] / whole[whole > 0]
    of_joules = joules_of / joules_of.sum()
    causes = []
    for row in np.argsort(-of_joules).tolist():
        cause = schema.Cause(_in_order(best[row]), float(of_joules[row]))
        if draws_of.shape[1] > 1:
            cause.interval = middle(shares[row], cause.share, share).tolist()
        causes.append(cause)
    return schema.Causes(how, causes)


def _partitions(singles: Partition, joules: Floats) -> Iterator[Partition]:
    """Yield partitions of groups of counts: as they are; with two of a family joined, a family, both, all on chip."""
    yield singles
    order = np.argsort(-joules).tolist()
    for one, other in combinations(order, 2):
        pair = singles[one] | singles[other]
        if any(pair <= family for family in _OF_FAMILY.values()):
            yield _joined(singles, pair)
    of_families = [_joined(singles, family) for family in _OF_FAMILY.values()]
    yield from of_families
    yield _joined(of_families[0], _OF_FAMILY[DATA])
    yield _joined(singles, _ON_CHIP)


def _joined(partition: Partition, groups: frozenset[str]) -> Partition:
    """The partition with the parts that lie in these groups joined into one."""
    inside = frozenset().union(*(part for part in partition if part <= groups))
    rest = (part for part in partition if not part <= groups)
    return (*filter(None, [inside]), *rest)


def _certainty(joules: Floats, draws: Floats) -> float:
    """The share of the draws, (n_parts, n_draws), in which the part largest in `joules`, (n_parts,), is the largest."""
    if len(joules) == 1:
        return 1.0
    largest = int(joules.argmax())
    others = np.delete(draws, largest, axis=0).max(axis=0)
    if draws.shape[1] == 1:
        others = _ALIKE * others
    return float((draws[largest] >= others).mean())

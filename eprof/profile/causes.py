"""The causes of a kernel's or a program's energy: the parts that take most, as far as prices tell parts apart.

A part is a group of counts, or several of a family together. Replicas of the prices say how surely one is the largest.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations

import numpy as np
from msgspec import UNSET, Struct, UnsetType

from eprof.base.arrays import Floats, known_or_zero
from eprof.base.optional import mapped
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, GROUPS
from eprof.energy.uncertainty import Replicas, independent, middle
from eprof.profile import schema
from eprof.profile.intervals import GROUPS_OF, Draws, Refits, draws_of_profile, in_order
from eprof.profile.priced_profile import ROW_OF, PricedProfile, joules_by_group

_IN_BAR = (*GROUPS_OF.values(), frozenset([CONSTANT]))  # what the bar of a report tells apart
_MOST_KERNELS = 50  # whose causes a document tells: those that a screen or a page may name
_ALIKE = 1.1  # without replicas: a part is surely the largest from here on
_PROBABLE = 2 / 3  # of the replicas, in which a part is the largest
SURE, PROBABLE, OPEN = "sure", "probable", "open"
_ON_CHIP = GROUPS_OF[COMPUTATION] | {"shared", "l1", "l2", "l3"}
Partition = tuple[frozenset[str], ...]


def causes_of_energy(energy: PricedProfile, refits: Refits) -> schema.Causes | UnsetType:
    """The causes of the energy of all kernels together; UNSET: nothing is priced, or nothing but constant power."""
    made = []
    for gpu, own in zip(energy.each, refits, strict=True):
        if gpu.split is not None:
            made.append(_by_group(gpu, mapped(partial(draws_of_profile, gpu), own), np.arange(len(gpu.counts.rows))))
    return _of_groups(made)


def causes_of_kernels(energy: PricedProfile, replicas: Replicas | None) -> list[schema.Causes | UnsetType]:
    """The causes of each kernel's energy on one GPU; UNSET behind the first 50 kernels, or where none are known."""
    number = len(energy.counts.rows)
    told: list[schema.Causes | UnsetType] = []
    if energy.split is not None:
        draws = mapped(partial(draws_of_profile, energy), replicas)
        rows = (np.array([place]) for place in range(min(number, _MOST_KERNELS)))
        told = [_of_groups([_by_group(energy, draws, row)]) for row in rows]
    return told + [UNSET] * (number - len(told))


class _ByGroup(Struct, frozen=True):
    """The energy of each group of counts in some kernels, (n_groups,), J, and in each replica, (n_groups, n_draws).

    share: of the replicas, that an interval holds.
    """

    joules: Floats
    draws: Floats
    share: float


def _by_group(energy: PricedProfile, draws: Draws | None, places: np.ndarray) -> _ByGroup:
    """The energy of each group of counts in one GPU's kernels at `places`, by replica and the model's own error."""
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

    No part may be largest only because others are told apart more finely: it lies in the longest piece of a report's
    bar, or is as large. groups: of counts; joules: (n_groups,), draws: (n_groups, n_draws), their energy by replica.
    """
    rows = {group: row for row, group in enumerate(groups)}
    in_bar = [sum(joules[rows[group]] for group in groups if group in part) for part in _IN_BAR]
    longest = _IN_BAR[int(np.argmax(in_bar))]
    best: Partition = ()
    most = 0.0
    for partition in _partitions(tuple(frozenset([group]) for group in groups), joules):
        parts = [[rows[group] for group in in_order(part)] for part in partition]
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
        cause = schema.Cause(in_order(best[row]), float(of_joules[row]))
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
        if any(pair <= family for family in GROUPS_OF.values()):
            yield _joined(singles, pair)
    of_families = [_joined(singles, family) for family in GROUPS_OF.values()]
    yield from of_families
    yield _joined(of_families[0], GROUPS_OF[DATA])
    yield _joined(singles, _ON_CHIP)


def _joined(partition: Partition, groups: frozenset[str]) -> Partition:
    """A partition of groups of counts with those of its parts that lie within `groups` joined into one."""
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

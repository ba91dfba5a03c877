"""What takes the energy: its parts, largest first, joined as far as the prices need it to tell which is the largest.

Parts that a fit can hardly tell apart (FP64 and the issue of its instructions) trade against each other from replica
to replica, while their sum stays. So shares come from the replicas themselves, not from the intervals of the parts, and
the finest partition is chosen in which one part is surely the largest.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET, UnsetType

from eprof.base.arrays import Floats, known_or_zero
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, GROUPS
from eprof.energy.replicas import Replicas, amounts_of, independent
from eprof.profile import schema
from eprof.profile.totals import CONSTANT_ROW, board_limit_w, joules_by_group

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

_MOST_KERNELS = 50  # whose causes a document tells: those that a screen or a page may name
_ALIKE = 1.1  # without replicas: a part is surely the largest from here on
_PROBABLE = 2 / 3  # of the replicas, in which a part is the largest
SURE, PROBABLE, OPEN = "sure", "probable", "open"
_FAMILIES = {count.group: count.family for count in COUNTS.values()}
_OF_FAMILY = {
    family: frozenset(group for group, of in _FAMILIES.items() if of == family) for family in (COMPUTATION, DATA)
}
_ON_CHIP = _OF_FAMILY[COMPUTATION] | {"shared", "l1", "l2", "l3"}
_PLACES = {group: place for place, group in enumerate(GROUPS)}
Partition = tuple[frozenset[str], ...]


def of_energy(energy: "Energy", replicas: Replicas | None) -> schema.Causes | UnsetType:
    """The causes of the energy of all kernels together."""
    return _of_rows(energy, replicas, np.arange(len(energy.counts.rows)))


def of_kernels(
    energy: "Energy", replicas: Replicas | None, whole: schema.Causes | UnsetType
) -> list[schema.Causes | UnsetType]:
    """The causes of each kernel's energy; of the first ones only where there are thousands. whole: those of all."""
    number = len(energy.counts.rows)
    told = [_of_rows(energy, replicas, np.array([place]), whole) for place in range(min(number, _MOST_KERNELS))]
    return told + [UNSET] * (number - len(told))


def _of_rows(
    energy: "Energy", replicas: Replicas | None, places: np.ndarray, whole: schema.Causes | UnsetType = UNSET
) -> schema.Causes | UnsetType:
    """The causes of the energy of some kernels together, by their places."""
    if energy.split is None:
        return UNSET
    joules = joules_by_group(energy, places)
    is_modelled = energy.modelled is not None and not energy.modelled.shares_only and not energy.by_component
    if is_modelled or energy.shares_socket:
        # How much constant power adds to a modelled time, or to some cores, is a choice, which would be shown as found.
        joules[CONSTANT_ROW] = 0.0
    if not joules.sum() > 0 or not np.delete(joules, CONSTANT_ROW).any():
        return UNSET
    groups = [group for group, place in _PLACES.items() if joules[place] > 0]
    draws = _draws(energy, replicas, places, joules)[[_PLACES[group] for group in groups]]
    if not draws.any():
        # Work in no time: a board draws nothing in it, so that there is nothing to share out.
        return UNSET
    share = replicas.share if replicas is not None else 1.0
    singles = tuple(frozenset([group]) for group in groups)
    ways = _partitions(singles, joules[joules > 0])
    if whole and len(parts := [frozenset(part.groups) & set(groups) for part in whole.parts]) > 1:
        # The parts that the headline tells, unless they leave open which of them is a kernel's largest.
        ways = chain([_Told(part for part in parts if part)], ways)
    return _chosen(groups, joules[joules > 0], draws, ways, share)


def _draws(energy: "Energy", replicas: Replicas | None, places: np.ndarray, joules: Floats) -> Floats:
    """The energy of each group in each replica, (n_groups, n_draws), with the error of the model."""
    if replicas is None:
        return joules[:, np.newaxis]
    amounts = known_or_zero(amounts_of(energy.counts)[places])
    if energy.total_s is not None and len(places) == len(energy.counts.rows):
        amounts[:, -1] = energy.total_s / len(places)
    rows: dict[str, list[int]] = {group: [] for group in GROUPS}
    for place, group in enumerate([*(count.group for count in COUNTS.values()), CONSTANT]):
        rows[group].append(place)
    summed = amounts.sum(axis=0)
    draws = np.stack([summed[of] @ replicas.prices[of] for of in rows.values()])
    draws = np.where(joules[:, np.newaxis] > 0, draws, 0.0)
    draws = np.concatenate([joules[:, np.newaxis], draws], axis=1)
    draws = _held(energy, draws, places)
    assert energy.split is not None
    work_j = known_or_zero(energy.split.computation_j[places]) + known_or_zero(energy.split.data_j[places])
    off = (replicas.within - 1) * independent(work_j) / (work_j.sum() or 1.0)
    if not off or energy.metered is not None:
        return draws
    # The error of the model is that of what the counts cost; constant power has none. Nine of ten lie in x/÷(1 + off):
    # three points of a normal distribution, at its middle (four times of six) and 1.05 times that far on each side.
    is_work = np.ones((len(draws), 1))
    is_work[CONSTANT_ROW] = 0.0
    return np.concatenate([draws * (1 + off) ** (step * is_work) for step in (-1.05, 0, 0, 0, 0, 1.05)], axis=1)


class _Told(tuple[frozenset[str], ...]):
    """A partition that will do where its largest part is probable."""


def _held(energy: "Energy", draws: Floats, places: np.ndarray) -> Floats:
    """The draws with no more power than the board may draw: where it binds, all but constant power gives way."""
    rows = energy.counts.rows
    limit_w = board_limit_w(energy)
    time_s = float(rows.time_s[places].sum())
    if energy.metered is not None or energy.modelled is not None or not math.isfinite(limit_w * time_s):
        return draws
    constant_j = draws[CONSTANT_ROW]
    work_j = draws.sum(axis=0) - constant_j
    most_j = np.maximum(limit_w * time_s - constant_j, 0.0)
    factors = np.broadcast_to(np.where(work_j > most_j, most_j / np.where(work_j > 0, work_j, 1.0), 1.0), draws.shape)
    factors = np.array(factors)
    factors[CONSTANT_ROW] = 1.0
    return np.asarray(draws * factors)


def _chosen(
    groups: Sequence[str], joules: Floats, draws: Floats, ways: Iterable[Partition], share: float
) -> schema.Causes:
    """The finest partition with a part that is surely the largest; else that with the most certain one.

    groups: of counts, (n_groups,) joules and (n_groups, n_draws) draws. ways: partitions, the finest first.
    """
    rows = {group: row for row, group in enumerate(groups)}
    best: Partition = ()
    most = 0.0
    for partition in ways:
        parts = [[rows[group] for group in part] for part in partition]
        joules_of, draws_of = (np.stack([values[part].sum(axis=0) for part in parts]) for values in (joules, draws))
        certainty = _certainty(joules_of, draws_of)
        will_do = certainty >= (_PROBABLE if isinstance(partition, _Told) else share)
        if will_do or certainty > most or not best:
            best, most = partition, certainty
            told = joules_of, draws_of
        if will_do:
            break
    how = SURE if most >= share else OPEN
    if how == OPEN and most >= _PROBABLE:
        how = PROBABLE
    return _causes(best, how, *told, share)


def _partitions(singles: Partition, joules: Floats) -> Iterator[Partition]:
    """Ways to join parts, the finest first: none, two of a family, one family, both, what is on the chip."""
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
    """The partition with all parts that lie in these groups made one."""
    inside = [part for part in partition if part <= groups]
    rest = tuple(part for part in partition if not part <= groups)
    return (frozenset().union(*inside), *rest) if inside else rest


def _certainty(joules: Floats, draws: Floats) -> float:
    """In which share of the draws the part is the largest that the table's own prices make it, (n_parts, n_draws)."""
    if len(joules) == 1:
        return 1.0
    largest = int(joules.argmax())
    others = np.delete(draws, largest, axis=0).max(axis=0)
    least = _ALIKE if draws.shape[1] == 1 else 1.0
    return float((draws[largest] >= least * others).mean())


def _causes(partition: Partition, how: str, joules: Floats, draws: Floats, share: float) -> schema.Causes:
    whole = draws.sum(axis=0)
    shares = draws[:, whole > 0] / whole[whole > 0]
    middle = joules / joules.sum()
    low, high = np.quantile(shares, [(1 - share) / 2, (1 + share) / 2], axis=-1)
    has_width = draws.shape[1] > 1
    parts = [
        schema.Cause(
            groups=sorted(partition[row], key=_PLACES.__getitem__),
            share=float(middle[row]),
            interval=[float(min(low[row], middle[row])), float(max(high[row], middle[row]))] if has_width else None,
        )
        for row in np.argsort(-middle).tolist()
    ]
    return schema.Causes(how, parts)

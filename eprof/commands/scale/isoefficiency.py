"""How a problem must grow, or which clock it takes, to keep its energy efficiency on more processors ([S] 4.24)."""

import math
from collections.abc import Callable, Sequence

from eprof.clusters.cluster import Clock, Cluster
from eprof.commands.scale.model import efficiency
from eprof.commands.scale.program import Program
from eprof.commands.scale.schema import Keep

MEMORY_SHARE = 0.8  # of the processors' memory, [S] 4.7-3
_LEAST_SIZE, _LARGEST_SIZE = 2.0, 1e12
_STEPS = 100  # of a bisection on a scale of logarithms: more digits than a number has
_NO_REACTION = 1e-3  # dEE / d ln n


def size(
    cluster: Cluster, program: Program, processors: int, clock: Clock, waiting: str, target: float, share: float
) -> Keep:
    """The least size that keeps an efficiency of `target`: E1(n) = EE/(1-EE) E0(n, p).

    share: of the memory that may be filled, where program and cluster tell how much that is.
    """

    def reached(at_size: float) -> float:
        return efficiency(cluster, program.work(at_size, processors), clock, waiting)

    largest = _largest(cluster, program, processors, share)
    at_bound = reached(largest)
    if not at_bound >= target:
        slope = (at_bound - reached(largest / math.e)) if largest > math.e * _LEAST_SIZE else 0.0
        bound = "the largest that memory holds" if cluster.memory_bytes and largest < _LARGEST_SIZE else "any size"
        reason = f"the efficiency is {at_bound:.3g} at {largest:.3g}, {bound}"
        if abs(slope) < _NO_REACTION:
            reason = f"the efficiency no longer reacts to the size: it is {at_bound:.3g} at {largest:.3g}"
        return Keep(processors=processors, target=target, size=None, clocks_mhz=[], because=reason)
    found = _least(lambda at_size: reached(at_size) >= target, largest)
    return Keep(processors=processors, target=target, size=found, clocks_mhz=[clock.core_mhz], because=None)


def clocks(
    cluster: Cluster, program: Program, at_size: float, processors: int, listed: Sequence[Clock], waiting: str,
    target: float,
) -> Keep:  # fmt: skip
    """The listed clocks that keep an efficiency of `target` or more."""
    work = program.work(at_size, processors)
    reached = {clock.core_mhz: efficiency(cluster, work, clock, waiting) for clock in listed}
    kept = sorted(mhz for mhz, value in reached.items() if value >= target)
    reason = None if kept else f"the efficiency is {max(reached.values()):.3g} at best"
    return Keep(processors=processors, target=target, size=at_size if kept else None, clocks_mhz=kept, because=reason)


def _least(holds: Callable[[float], bool], largest: float) -> float:
    """The least size from which on the efficiency is kept, by bisection."""
    low, high = math.log(_LEAST_SIZE), math.log(largest)
    if holds(_LEAST_SIZE):
        return _LEAST_SIZE
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if holds(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def _largest(cluster: Cluster, program: Program, processors: int, share: float) -> float:
    """The largest size that the memory of all processors holds, as far as that is known."""
    if cluster.memory_bytes is None or program.memory is None:
        return _LARGEST_SIZE
    most_bytes = share * cluster.memory_bytes * processors

    def is_too_large(at_size: float) -> bool:
        return (program.work(at_size, processors).memory_bytes or 0.0) > most_bytes

    if not is_too_large(_LARGEST_SIZE):
        return _LARGEST_SIZE
    return _least(is_too_large, _LARGEST_SIZE)

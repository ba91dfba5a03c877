"""The least time without a kernel in a program, by its calls of CUDA: where a summary tells these, and no launches."""

from collections.abc import Iterable
from itertools import chain

from msgspec.structs import replace

from eprof.base.text import pattern
from eprof.logs.log import During, HostCalls, Idle

MOST = 0.8  # of a gap, that what explains it covers
MOST_TOLD = 5
# Calls that prepare what kernels need: the longest of them, where it is most of all, comes before these (assumed).
_PREPARES = pattern(
    r"^cu.*(?:Alloc(?!.*Async)|Malloc(?!.*Async)|HostRegister|CtxCreate|CtxRetain|Init$|SetDevice|Load)"
)


def idle_of_calls(
    calls: Iterable[HostCalls], kernels_s: float, copies_s: float, comes_again: bool = True
) -> Idle | None:
    """Idle time of the GPU in a program whose calls of CUDA are told in sums, beside kernels and copies, in s.

    In a thread calls follow each other, and kernels may run meanwhile: all that is left of the calls passed without,
    and no less than what is paid once to prepare kernels, for these come later, and run beside any call or none.
    Calls of several threads may run beside each other: the longest call alone took as long as it did, and so did the
    longest range that the program names. comes_again: whether some kernel was launched more than once.
    """
    longest_first = sorted((call for call in calls if not call.is_range), key=lambda call: -call.time_s)
    ranges = sorted((call for call in calls if call.is_range), key=lambda call: -call.longest_s)
    prepared_s = sum(call.once_s for call in longest_first if _PREPARES.search(call.name))
    of_calls_s = max(sum(call.time_s for call in longest_first) - kernels_s, prepared_s)
    time_s = max([of_calls_s, *(each.longest_s - kernels_s for each in ranges)])
    if not time_s > 0 or not longest_first:
        return None
    copied_s = min(copies_s, time_s - prepared_s)
    once_s = min(sum(call.once_s for call in longest_first), time_s - copied_s)
    again: Iterable[During] = (During(call.name, call.number, call.time_s - call.once_s) for call in longest_first)
    beside = ranges[:1] * (of_calls_s < time_s)
    if beside:
        # The shortest range that has most of what calls leave open tells best where it passed.
        open_s = min(time_s - max(of_calls_s, 0.0), time_s - once_s - copied_s)
        inner = next(each for each in reversed(ranges) if each.longest_s >= MOST * ranges[0].longest_s)
        # In what the range leaves of the longest one kernels have room, but the first call, that starts CUDA, has none.
        rest_s = ranges[0].longest_s - inner.longest_s
        is_start = kernels_s <= rest_s < max(call.once_s for call in longest_first)
        if inner.number == 1 and (is_start or not comes_again):
            once_s += open_s
            beside = [*beside[inner == ranges[0] :], replace(inner, once_s=open_s)]
            open_s = 0.0
        again = chain(again, [During(inner.name, 1, open_s)])
    during = tuple(sorted(again, key=lambda each: -each.time_s)[:MOST_TOLD])
    told = *longest_first, *beside
    surely_s = max(max(call.longest_s for call in told) - kernels_s, 0.0)
    runs = max(call.runs for call in told)
    return Idle(time_s, 0.0, copied_s, copies_s, None, once_s, during, surely_s=surely_s, calls=told, runs=runs)

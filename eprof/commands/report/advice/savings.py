"""What levers save where units have less work, as joules and as words on time. From `eprof.profile/1`."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle

from eprof.base.text import phrase, when
from eprof.base.vocabulary import COUNTS, DATA, RANDOM
from eprof.commands.report.advice.loops import is_of_c
from eprof.commands.report.advice.waiting import comes_compiled, sooner
from eprof.commands.report.view import FAMILY_OF, View, is_interpreted, is_of_library, time_of
from eprof.profile import schema
from eprof.show.intervals import known
from eprof.show.numbers import more_or_less, percent, percent_span

NARROWED = 0.5  # of the bytes are left where types are half as wide
_LITTLE_TIME = 0.01  # of it: a change of less is not worth a word
MOSTLY = 0.3  # of a part, that one kernel has: worth naming it


def time_told(share: float | None) -> str:
    """Words on times that grow by a share: ", 14 % less time"; "" for a little, or where it is not known."""
    if share is None or abs(share) < _LITTLE_TIME:
        return ""
    return f", {more_or_less(share)} time"


def less_time(view: View, least_s: float, most_s: float) -> str:
    """Words on time saved: ", 14 % less time". How busy units were bounds no kernel's time: it may keep them busier."""
    least, most = (saved_s / (view.time.value or math.inf) for saved_s in (least_s, most_s))
    if most < _LITTLE_TIME:
        return ""
    return f", {when(least < _LITTLE_TIME, f'perhaps {percent(most)}') or percent_span(least, most)} less time"


def narrower_bytes_j(kernels: Sequence[schema.Kernel]) -> float:
    """The J of bytes that are not moved where types are half as wide."""
    return (1 - NARROWED) * sum(kernel.energy_j.data or 0.0 for kernel in kernels)


def by_time(view: View, kernels: Sequence[schema.Kernel], *lefts: Mapping[str, float]) -> tuple[float, str]:
    """The J that kernels save as in `ended_sooner`, and the time that they save in words: ", 14 % less time"."""
    saved_j, saved_s = ended_sooner(view, kernels, *lefts)
    return saved_j, less_time(view, saved_s, saved_s)


def ended_sooner(view: View, kernels: Sequence[schema.Kernel], *lefts: Mapping[str, float]) -> tuple[float, float]:
    """The J and s that kernels save where the units that hold them back have less work.

    lefts: for each kernel, unit -> share of its work left; a single one holds for all kernels.
    """
    if view.is_modelled:
        return 0.0, 0.0
    shares = [(kernel, sooner(kernel, left)) for kernel, left in zip(kernels, cycle(lefts), strict=False)]
    saved_s = sum(share * time_of(kernel).or_zero for kernel, share in shares)
    return sum(share * view.timed(kernel) for kernel, share in shares), saved_s


def words_of(view: View, group: str) -> list[str]:
    """The counts of a group that make up its bytes or instructions."""
    return [word for word in view.words if COUNTS[word].group == group and word != RANDOM]


def ends_j(view: View, group: str, saves: float) -> tuple[float, float] | None:
    """(least, most) J that a saving of `saves` J may be, as the group's prices are uncertain; None: no interval."""
    pair, value, everything = known(view.interval(group)), view.groups[group].value, view.everything
    interval = view.document.interval_j
    if pair is None or not value or view.is_certain(group) or interval and group in interval.uncounted:
        return None
    share = value / everything
    low, high = (joules / everything for joules in pair)
    causes = view.causes_of(view.document) or schema.Causes("open", [])
    for part in causes.parts:
        if group in part.groups and part.interval:
            # Its share of a total that grows with it is known better than its joules are.
            high = min(high, part.interval[1] or 1.0)
            low = max(low, (part.interval[0] or 0.0) * (len(part.groups) == 1))
    return saves * low / share, saves * min(high, 1.0) / share


def is_closed(view: View, group: str) -> bool:
    """Whether most joules of a group are in kernels of a library that comes compiled, which its user cannot rewrite."""
    joules = view.joules_by_kernel(group)
    closed = [comes_compiled(kernel) or is_of_library(kernel) or is_interpreted(kernel) for kernel in view.kernels]
    return sum(part for part, is_closed in zip(joules, closed, strict=True) if is_closed) > sum(joules) / 2


def mostly_in(view: View, group: str) -> str:
    """The kernel with most joules of a group: "53 % in u_list"; "" if it has less than 30 %, or is the only one."""
    joules = view.joules_by_kernel(group)
    if FAMILY_OF[group] != DATA:  # a library's instructions become fewer elsewhere
        joules = [
            part * (not (kernel.callers or is_of_c(kernel))) for part, kernel in zip(joules, view.kernels, strict=True)
        ]
    largest = max(range(len(joules)), key=joules.__getitem__)
    share = joules[largest] / (sum(joules) or 1.0)
    if len(joules) < 2 or share < MOSTLY:
        return ""
    kernel = view.kernels[largest]
    return f"{percent(share)} in {view.label(kernel)}{phrase(', {}', view.called_by(kernel))}"

"""`Try`, a change to try, and what it saves in joules, seconds and words; how busy a kernel's units were."""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.labels import library_of
from eprof.base.text import pattern, phrase, when
from eprof.base.vocabulary import COUNTS, DATA, RANDOM
from eprof.commands.report.view import FAMILY_OF, View, is_interpreted, is_of_c, is_of_library, time_of
from eprof.logs.log import RESTS
from eprof.profile import schema
from eprof.show.intervals import known
from eprof.show.numbers import LITTLE, NARROW, more_or_less, percent, percent_span, span

CLOSED = ("cublas", "cudnn", "tensile")  # libraries that come compiled
_MADE = pattern(r"\bcutlass_\d+_\w+?gemm")  # by the generator of CUTLASS, for cuBLAS
NEAR = 0.6  # its peak, or the roofline's speed: below, kernels wait (rule SOLBottleneck of ncu: "below 60.0% of peak")
_ONE_UNIT = 0.02  # of the peak: what is counted of multiprocessors holds the pipes to L1 too
NARROWED = 0.5  # of the bytes are left where types are half as wide
_LITTLE_TIME = 0.01  # of it: a change of less is not worth a word
MOSTLY = 0.3  # of a part, that one kernel has: worth naming it
_ROUNDED = 1e-3  # of a number told in three digits
TENTH = 0.1  # what is told of things that shrink by degrees


class Try(Struct, frozen=True):
    """A change to try, and the J that it saves; s where joules are unknown. ends: the least and most that it saves.

    beside: a remark behind it. each: what shrinks by degrees, "less time": `saves` is then for each tenth of it. most:
    what can be saved, however far it shrinks, and why no more. is_exact: results stay the same. adds: its saving comes
    on top of that of others that add: cores work in some cycles, and wait in others. is_open: what it saves most of was
    not counted. is_vague: it does not tell how, so that half of it is hoped for. beyond: the J, not counted, that the
    high end is of beside all that were.
    """

    act: str
    saves: float
    ends: tuple[float, float] | None = None
    beside: str = ""
    each: str = ""
    most: float | None = None
    why: str = ""
    is_exact: bool = True
    adds: bool = False
    is_open: bool = False
    is_vague: bool = False
    beyond: float = 0.0

    def times(self, factor: float) -> "Try":
        """The change where it saves `factor` times as much; not for one that saves by degrees."""
        ends = self.ends and (factor * self.ends[0], factor * self.ends[1])
        return replace(self, saves=self.saves * factor, ends=ends)

    @property
    def _high(self) -> float:
        return max(self.ends or (self.saves,))

    @property
    def _hoped(self) -> float:
        """The saving to hope for: the high end; by degrees a third of `most`, or without `most` two tenths.

        A tenth fewer is to be hoped for in any case, or what can be saved at most, if that is less.
        """
        if not self.each:
            return self._high
        if self.most is None:
            return 2 * self._high
        return max(self.most / 3, min(self._high, self.most))

    @property
    def likely(self) -> float:
        """The number that changes are ranked by, J or s: the saving to hope for, times `saves` over the high end."""
        hoped = self._hoped / 2 if self.is_vague else self._hoped
        return hoped * self.saves / (self._high or math.inf)

    @property
    def reach(self) -> float:
        """The most that a change may save, as far as it is known."""
        return max(self._hoped, self.most or 0.0)

    def is_worth_it(self, everything: float) -> bool:
        """Whether the saving to hope for, or half of `most`, is 3 % of `everything` or more."""
        return max(self._hoped, (self.most or 0.0) / 2) >= LITTLE * everything

    def text(self, whole: float, unit: str) -> str:
        """The advice in a sentence: "... saves 1.74 mJ (15 % of 11.6 mJ), 14 % less time". whole: all J, or s.

        By degrees: "... saves up to 5.20 mJ (45 % of 11.6 mJ) with types half as wide; 581 µJ for each 10 % fewer".
        """
        is_rate = unit == "W"  # what ends sooner may draw as much: shares alone tell

        def amount(low_j: float, high_j: float) -> str:
            return percent_span(low_j / whole, high_j / whole) if is_rate else span(low_j, high_j, unit)

        def with_share(told: str, share: str) -> str:
            return told if is_rate else f"{told} ({share})"

        low, high = self.ends or (self.saves, self.saves)
        saved, share = amount(low, high), percent_span(low / whole, high / (whole + self.beyond))
        of, tenth = f" of {span(whole, whole + self.beyond, unit)}", phrase(f"each 10{NARROW}% {{}}", self.each)
        most_j, is_open = self.most or 0.0, low < LITTLE * self.saves  # "saves 0 to 500 mJ" would be no advice
        most, most_share = f"up to {amount(most_j, most_j)}", percent(most_j / whole)
        if tenth and most_j:
            saved = when(is_open, f"up to {amount(high, high)}") or saved
            # That a tenth saves a tenth is worth no word.
            is_even = self.each == "less time" or math.isclose(most_j, high / TENTH, rel_tol=_ROUNDED)
            by_degrees = when(not is_even, f"; {saved} for {tenth}")
            return f"{self.act}: saves {with_share(most, most_share + of)} {self.why}{by_degrees}{self.beside}"
        if is_open:
            saved = f"up to {amount(high, high)}"
            if self.saves < high:
                saved = f"some {amount(self.saves, self.saves)}, from next to nothing {saved}"
            share = percent(high / (whole + self.beyond))
        saves = f"{phrase('{} ', tenth)}saves {with_share(saved, share + of)}{self.beside}"
        return f"{self.act}: {saves}{when(most_j, f'; {with_share(most, most_share)} {self.why}')}"


def at_most(act: str, saves: float, *, is_vague: bool = False) -> Try:
    """The change `act`, which saves `saves` J or s at most, and at least nothing. is_vague: as of `Try`."""
    return Try(act, saves, (0.0, saves), is_vague=is_vague)


def busy(kernel: schema.Kernel) -> dict[str, float]:
    """Unit -> how busy it was, as a share of its peak: "sm", "l1", "l2", "dram", as far as counters tell.

    Where they leave out multiprocessors: "issue", what these issue, if it is so much that it holds them back.
    """
    signs = kernel.signs or {}
    units = {name.removesuffix("_busy"): share for name, share in signs.items() if name.endswith("_busy")}
    if "sm" in units or issuing(kernel) < NEAR:
        units.pop("issue", None)
    return units


def issuing(kernel: schema.Kernel) -> float:
    """The share of the slots for instructions that a kernel's multiprocessors issue in; 0: not counted."""
    return min((kernel.signs or {}).get("issue_busy", 0.0), 1.0)


def sooner(kernel: schema.Kernel, left: Mapping[str, float]) -> float:
    """The share of its time that a kernel saves where each unit has only the share `left` of its work.

    The busiest unit holds the kernel back, if it is busy enough for that; then the next one does. 0: no unit does.
    """
    now = busy(kernel)
    most = max(now.values(), default=0.0)
    if most < NEAR:
        return 0.0
    if abs(now.get("l1", 0.0) - now.get("sm", 0.0)) < _ONE_UNIT:
        left = {"sm": left.get("l1", 1.0), **left}
    if abs(issuing(kernel) - now.get("sm", 0.0)) < _ONE_UNIT:
        left = {"sm": left.get("issue", 1.0), **left}
    if "sm" not in now:
        now["issue"] = min(issuing(kernel), most)  # multiprocessors are at least as busy
    return 1 - max(share * left.get(unit, 1.0) for unit, share in now.items()) / most


def comes_compiled(kernel: schema.Kernel) -> bool:
    """Whether a kernel of a GPU is of a library that comes compiled, which its user chooses and does not write."""
    return library_of(kernel.name) in CLOSED or _MADE.search(kernel.name) is not None


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
    """The J of bytes that kernels do not move where types are half as wide."""
    return (1 - NARROWED) * sum(kernel.energy_j.data or 0.0 for kernel in kernels)


def by_time(view: View, kernels: Sequence[schema.Kernel], *lefts: Mapping[str, float]) -> tuple[float, str]:
    """(J, words) on what kernels save as in `ended_sooner`; the words are of their time: ", 14 % less time"."""
    saved_j, saved_s = ended_sooner(view, kernels, *lefts)
    return saved_j, less_time(view, saved_s, saved_s)


def ended_sooner(view: View, kernels: Sequence[schema.Kernel], *lefts: Mapping[str, float]) -> tuple[float, float]:
    """(J, s) that kernels save where the units that hold them back have less work.

    lefts: for each kernel, unit -> share of its work left; a single one holds for all kernels.
    """
    if view.is_modelled:
        return 0.0, 0.0
    shares = [(kernel, sooner(kernel, left)) for kernel, left in zip(kernels, cycle(lefts), strict=False)]
    saved_s = sum(share * time_of(kernel).or_zero for kernel, share in shares)
    return sum(share * view.timed(kernel) for kernel, share in shares), saved_s


def words_of(view: View, group: str) -> list[str]:
    """The counts, by name, that make up a group's bytes or instructions."""
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


def is_of_compiled_library(view: View, group: str) -> bool:
    """Whether most joules of a group are in kernels of a library that comes compiled, which its user cannot rewrite."""
    joules = view.joules_by_kernel(group)
    closed = [comes_compiled(kernel) or is_of_library(kernel) or is_interpreted(kernel) for kernel in view.kernels]
    return sum(part for part, is_closed in zip(joules, closed, strict=True) if is_closed) > sum(joules) / 2


def mostly_in(view: View, group: str) -> str:
    """The kernel with most joules of a group: "53 % in u_list"; "" if it has less than 30 %, or is the only one.

    Of joules of kernels without a name nothing tells which kernel has most, so its 30 % are of the others.
    """
    joules = view.joules_by_kernel(group)
    if FAMILY_OF[group] != DATA:  # a library's instructions become fewer elsewhere
        joules = [
            part * (not (kernel.callers or is_of_c(kernel))) for part, kernel in zip(joules, view.kernels, strict=True)
        ]
    named = [part * (kernel.name not in RESTS) for part, kernel in zip(joules, view.kernels, strict=True)]
    largest = max(range(len(named)), key=named.__getitem__)
    if len(named) < 2 or named[largest] < MOSTLY * sum(named) or not named[largest]:
        return ""
    share = named[largest] / sum(joules)
    kernel = view.kernels[largest]
    return f"{percent(share)} in {view.label(kernel)}{phrase(', {}', view.called_by(kernel))}"

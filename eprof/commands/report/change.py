"""A change that one can make, and what it saves."""

import math

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.text import phrase, when
from eprof.show.numbers import LITTLE, NARROW, percent, percent_span, quantity, span

TENTH = 0.1  # what is told of things that shrink by degrees


class Try(Struct, frozen=True):
    """A change to try, and the J that it saves; s where joules are unknown. ends: at least, at most. beside: its price.

    each: what shrinks by degrees, "less time": `saves` is then for each tenth of it. most: what can be saved, however
    far it shrinks, and why no more. is_exact: results stay the same. adds: what it saves comes on top of what others
    save that add: cores work in some cycles, and wait in others. is_open: what it saves most of was not counted.
    is_vague: it does not tell how, so that half of it is hoped for. beyond: the J, not counted, that the high end is of
    beside all that were.
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
        """The change where it saves `factor` times as much; of one that does not save by degrees."""
        ends = self.ends and (factor * self.ends[0], factor * self.ends[1])
        return replace(self, saves=self.saves * factor, ends=ends)

    @property
    def _high(self) -> float:
        return max(self.ends or (self.saves,))

    @property
    def _hoped(self) -> float:
        """The saving to hope for: the high end; by degrees a third of `most`, or without `most` two tenths."""
        if not self.each:
            return self._high
        if self.most is None:
            return 2 * self._high
        return self.most / 3

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

        By degrees: "... saves up to 5.20 mJ (45 % of 11.6 mJ) at the roofline's speed; 581 µJ for each 10 % less time".
        """
        low, high = self.ends or (self.saves, self.saves)
        saved, share = span(low, high, unit), percent_span(low / whole, high / (whole + self.beyond))
        of, tenth = f"of {span(whole, whole + self.beyond, unit)}", phrase(f"each 10{NARROW}% {{}}", self.each)
        most_j, is_open = self.most or 0.0, low < LITTLE * self.saves  # "saves 0 to 500 mJ" would be no advice
        most, most_share = f"up to {quantity(most_j, unit)}", percent(most_j / whole)
        if tenth and most_j:
            saved = when(is_open, f"up to {quantity(high, unit)}") or saved
            return f"{self.act}: saves {most} ({most_share} {of}) {self.why}; {saved} for {tenth}{self.beside}"
        if is_open:
            saved = f"up to {quantity(high, unit)}"
            if self.saves < high:
                saved = f"some {quantity(self.saves, unit)}, from next to nothing {saved}"
            share = percent(self.saves / whole)
        saves = f"{phrase('{} ', tenth)}saves {saved} ({share} {of}){self.beside}"
        return f"{self.act}: {saves}{when(most_j, f'; {most} ({most_share}) {self.why}')}"


def at_most(act: str, saves: float, *, is_vague: bool = False) -> Try:
    """A change that may save nothing, too."""
    return Try(act, saves, (0.0, saves), is_vague=is_vague)

"""Marks beside numbers: every number that a mark touches says so, with a sign and a title; a terminal has the same."""

from typing import NamedTuple

from markupsafe import Markup, escape

from eprof.base.marks import Mark, names
from eprof.words.numbers import NARROW

# Plain numbers: 5,000 kernels join marks half a million times, and flags take ten times as long.
MISSING, ESTIMATED, SIMULATED, ASSUMED = (int(mark) for mark in Mark)
# A sum that lacks something has "≥" in front, as on a terminal; what else rests on it, a share of it say, has "!".
LETTERS = {MISSING: "!", ESTIMATED: "~", SIMULATED: "s", ASSUMED: "?"}
MEANINGS = {
    MISSING: "missing: something could not be counted or priced",
    ESTIMATED: "estimated: an approximate formula stands behind it",
    SIMULATED: "simulated: counted on a simulated device",
    ASSUMED: "assumed: rests on a choice that its source leaves open",
}
AT_LEAST = f"≥{NARROW}"
UNKNOWN = "–"


class Amount(NamedTuple):
    """A number with its marks. `value` is None where it is not known."""

    value: float | None
    marks: int = 0

    @property
    def lower(self) -> bool:
        """Whether the number is known, but only as a lower bound."""
        return self.value is not None and bool(self.marks & MISSING)


def title(marks: int) -> str:
    """The marks in words, for a tooltip; the line under the figures explains them."""
    return ", ".join(names(marks))


def letters(marks: int) -> Markup:
    """The marks as small raised signs."""
    signs = "".join(letter for mark, letter in LETTERS.items() if marks & mark)
    return Markup('<sup title="{}">{}</sup>').format(title(marks), signs) if signs else Markup("")


def written(text: str | None, marks: int = 0, *, bound: bool = True) -> Markup:
    """A formatted number with its marks; None: not known. bound: a sum, so that missing parts make it a lower bound."""
    if text is None:
        return Markup('<span class="unknown" title="{}">{}</span>').format(title(marks) or "not known", UNKNOWN)
    if bound and marks & MISSING:
        return Markup('<span title="at least">{}</span>{}{}').format(AT_LEAST, text, letters(marks & ~MISSING))
    return escape(text) + letters(marks)


def pills(marks: int, *, leave_out: int = 0) -> Markup:
    """The marks as words in small frames, for the headline and the figures."""
    shown = marks & ~leave_out
    return Markup(" ").join(
        Markup('<span class="pill" title="{}">{}</span>').format(MEANINGS[Mark[name.upper()]], name)
        for name in names(shown)
    )


def legend(marks: int) -> list[tuple[str, str]]:
    """Sign and meaning of each mark in use, for the line that explains them."""
    found = [("≥", "at least this much: something could not be counted or priced")] if marks & MISSING else []
    found += [("!", "of what is known, for the same reason")] if marks & MISSING else []
    return found + [(letter, MEANINGS[mark]) for mark, letter in LETTERS.items() if marks & mark & ~MISSING]

"""Marks beside numbers: every number that a mark touches says so, with a sign, a letter and a title."""

from dataclasses import dataclass

from markupsafe import Markup, escape

from eprof.marks import NONE, Mark, names
from eprof.report.numbers import NARROW

LETTERS = {Mark.MISSING: "m", Mark.ESTIMATED: "e", Mark.SIMULATED: "s", Mark.ASSUMED: "a"}
MEANINGS = {
    Mark.MISSING: "missing: something could not be counted or priced",
    Mark.ESTIMATED: "estimated: an approximate formula stands behind it",
    Mark.SIMULATED: "simulated: counted on a simulated device",
    Mark.ASSUMED: "assumed: rests on a choice that its source leaves open",
}
AT_LEAST = f"≥{NARROW}"
UNKNOWN = "–"


@dataclass(frozen=True)
class Amount:
    """A number with its marks. `value` is None where it is not known."""

    value: float | None
    marks: Mark = NONE

    @property
    def lower(self) -> bool:
        """Whether the number is known, but only as a lower bound."""
        return self.value is not None and bool(self.marks & Mark.MISSING)


def title(marks: Mark) -> str:
    """The marks in words, for a tooltip."""
    return "; ".join(meaning for mark, meaning in MEANINGS.items() if marks & mark)


def letters(marks: Mark) -> Markup:
    """The marks as small raised letters."""
    signs = "".join(letter for mark, letter in LETTERS.items() if marks & mark)
    return Markup('<sup class="m" title="{}">{}</sup>').format(title(marks), signs) if signs else Markup("")


def written(text: str | None, marks: Mark = NONE, *, bound: bool = True) -> Markup:
    """A formatted number with its marks; None: not known. bound: a sum, so that missing parts make it a lower bound."""
    if text is None:
        return Markup('<span class="unknown" title="{}">{}</span>').format(title(marks) or "not known", UNKNOWN)
    if bound and marks & Mark.MISSING:
        return Markup('<span title="at least: something is missing">{}</span>{}{}').format(
            AT_LEAST, text, letters(marks & ~Mark.MISSING)
        )
    return escape(text) + letters(marks)


def pills(marks: Mark, *, leave_out: Mark = NONE) -> Markup:
    """The marks as words in small frames, for the headline and the figures."""
    shown = marks & ~leave_out
    return Markup(" ").join(
        Markup('<span class="pill" title="{}">{}</span>').format(title(Mark[name.upper()]), name)
        for name in names(shown)
    )


def legend(marks: Mark) -> list[tuple[str, str]]:
    """Sign and meaning of each mark in use, for the line that explains them."""
    found = [("≥", "at least this much, because something is missing")] if marks & Mark.MISSING else []
    return found + [(letter, MEANINGS[mark]) for mark, letter in LETTERS.items() if marks & mark]

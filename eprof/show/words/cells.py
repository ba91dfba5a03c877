"""Cells of a table: numbers with what they are, so that each medium rounds, marks and colours them in its own way.

`plain_text` writes a cell for the media that have text alone: the terminal (which adds colours) and Markdown.
"""

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from eprof.base.text import when
from eprof.base.vocabulary import Mark
from eprof.show.words.amounts import MISSING
from eprof.show.words.amounts import signs as raised_signs
from eprof.show.words.numbers import MINUS, percent, plain_or, quantity, signed_percent

UNKNOWN = "unknown"
_LEGEND = {
    Mark.MISSING: "≥ at least, or: of what is known",
    Mark.ESTIMATED: "~ estimated",
    Mark.ASSUMED: "? rests on an assumption",
    Mark.SIMULATED: "s simulated",
}


class Quantity(Struct, frozen=True):
    """A number with its unit and marks; marked MISSING, it is a lower bound. None: not known."""

    value: float | None
    unit: str = ""
    marks: int = 0


class Change(Struct, frozen=True):
    """How much a quantity changed; below 0 it became less. None: not known."""

    value: float | None
    unit: str = ""
    marks: int = 0


class Share(Struct, frozen=True):
    """A part of a whole, in per cent; signed: a growth. None: there is no such share, and the cell is empty."""

    value: float | None
    signed: bool = False
    marks: int = 0


class Factor(Struct, frozen=True):
    """A number of three digits without a unit, such as a speedup. None: the cell is empty."""

    value: float | None


class Written(Struct, frozen=True):
    """A number that is given as text, and the value to sort it by."""

    text: str
    value: float | None = None


class Bar(Struct, frozen=True):
    """A small bar for a change, as a share of the largest one: to the left below 0, to the right above."""

    value: float


class Stack(Struct, frozen=True):
    """A bar of the joules of each group of counts, as long as `scale` at most; only a page draws it."""

    name: str
    joules: Mapping[str, float]
    scale: float


class Tag(Struct, frozen=True):
    """A word about a row, such as "new"."""

    text: str


class Name(Struct, frozen=True):
    """The short name of a kernel, its full name, and a remark, in which `names` are in back ticks.

    place: where the kernel is in the document, if the page can show more of it.
    """

    text: str
    full: str
    note: str = ""
    place: int | None = None


Cell: TypeAlias = str | Quantity | Change | Share | Factor | Written | Bar | Stack | Tag | Name


def plain_text(cell: Cell) -> str:
    """A cell as text, its marks as signs in front: "≥ ~12.3 J"."""
    match cell:
        case str():
            return cell
        case Quantity():
            if cell.value is None:
                return UNKNOWN
            return signs(cell.marks) + quantity(cell.value, cell.unit)
        case Change():
            if cell.value is None:
                return "not known"
            return signs(cell.marks) + signed_quantity(cell.value, cell.unit) if cell.value else "0"
        case Share():
            if cell.value is None:
                return ""
            if cell.signed:
                return signed_percent(cell.value)
            return percent(cell.value)
        case Factor():
            return plain_or("", cell.value)
        case Written() | Tag() | Name():
            return cell.text
        case Bar() | Stack():
            return ""


def signed_quantity(value: float, unit: str) -> str:
    """A change with its sign: "+1.00 J"."""
    return when(value > 0, "+") + quantity(value, unit)


def signs(marks: int) -> str:
    """Marks as signs in front of a number: "≥ ~"."""
    return when(marks & MISSING, "≥ ") + raised_signs(marks & ~MISSING)


def legend(marks: int) -> str:
    """The meaning of each sign of `signs`: "~ estimated · s simulated"."""
    return " · ".join(words for mark, words in _LEGEND.items() if mark & marks)


def decimals(value: float | None, digits: int = 1) -> Written:
    """A number with fixed decimals and a real minus; a dash for what is not known."""
    if value is None:
        return Written("–")
    size = f"{abs(value):.{digits}f}"
    return Written(when(value < 0 and float(size), MINUS) + size, value)


STEPS = 9


class HeatCell(Struct, frozen=True):
    """A setting in the heat map: what stands there, its colour 0..8 (None: no number), signs, and it all in words."""

    text: str
    step: int | None
    sign: str = ""
    title: str = ""
    is_now: bool = False
    is_allowed: bool = True


def colour(energy: float | None, known: Sequence[float]) -> int | None:
    """The colour of a heat map's cell from 0 to 8, in equal ratios between the least and the largest."""
    if energy is None:
        return None
    low, high = min(known), max(known)
    if high <= low or low <= 0:
        return 0
    return min(STEPS - 1, int(STEPS * math.log(energy / low) / math.log(high / low)))

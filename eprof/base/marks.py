"""Marks: what must be said beside a number. They join by `|`, so a result carries the marks of all it was made of."""

from enum import IntFlag
from functools import reduce
from operator import or_


class Mark(IntFlag):
    """Why a number is not simply exact.

    MISSING: something could not be counted or priced, so a total is a lower bound. ESTIMATED: derived by an approximate
    formula. SIMULATED: counted in a simulation, of the device or of its caches. ASSUMED: rests on a choice that its
    source leaves open.
    """

    MISSING = 1
    ESTIMATED = 2
    SIMULATED = 4
    ASSUMED = 8

    def __or__(self, other: int) -> "Mark":
        # As every report joins thousands: IntFlag's own way takes ten times as long.
        return _JOINED[int.__or__(self, other)] if isinstance(other, int) else NotImplemented

    __ror__ = __or__


NONE = Mark(0)
MISSING, ESTIMATED, SIMULATED, ASSUMED = (int(mark) for mark in Mark)  # for arrays of marks
_JOINED = tuple(Mark(joined) for joined in range(16))
_NAMES = tuple([str(flag.name).lower() for flag in Mark if joined & flag.value] for joined in range(16))


def marked(mark: Mark, holds: object) -> Mark:
    """Give `mark` if `holds` is true, else NONE."""
    return mark if holds else NONE


def names(mark: int) -> list[str]:
    """The marks in `mark` as lower-case words, in a fixed order: `names(Mark.MISSING | Mark.ASSUMED)`."""
    return list(_NAMES[mark])


def from_names(words: list[str]) -> Mark:
    """The marks with these names, the inverse of `names`. Raises KeyError for a word that is no mark."""
    return reduce(or_, (Mark[word.upper()] for word in words), NONE)

"""Numbers in the text tables of `nsys stats`: groups of digits and decimals as the user's locale writes them.

`1,234,567`, `1.234.567`, `12,34,567`, `1'234` and `1 234` (with any blank) are whole numbers. Whether `1,234` has
groups or decimals is seen in other cells: every summary has a percentage such as `39.9` or `39,9` in each row.
"""

import re
from collections.abc import Iterable

from eprof.base.text import pattern

_POINTS = ".,"
_BLANKS = " \u00a0\u2009\u202f"
_QUOTES = "'\u2019\ufffd"
_NUMBER = pattern(rf"\d{{1,30}}(?:[{_POINTS}{_BLANKS}{_QUOTES}]\d+)*[{_POINTS}]?", re.ASCII)
_SIGNS = pattern(rf"[{_POINTS}]")
_GROUPED = pattern(rf"\d{{1,4}}(?:[{_BLANKS}{_QUOTES}{_POINTS}]\d{{2,4}})*", re.ASCII)
_NOT_DIGITS = pattern(r"\D", re.ASCII)
_GROUP = 3  # digits of the last group of a whole number


class Numbers:
    """What the cells of a log showed so far of how it writes numbers."""

    def __init__(self, point: str | None = None) -> None:
        self.point = point
        self.has_blanks = False

    def look(self, cells: Iterable[str]) -> None:
        """Look at how nsys writes the numbers in the cells of a row.

        One that can have decimals in one way only shows how all of them are written.
        """
        numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
        self.has_blanks = self.has_blanks or any(" " in cell for cell in numbers)
        points = {point for point in map(_point, numbers) if point}
        if len(points) == 1:
            self.point = points.pop()

    def value(self, cell: str, is_whole: bool) -> float | None:
        """The number in a cell of nsys's; None if there is none, or if it can be read in two ways.

        is_whole: it can have no decimals.
        """
        if not _NUMBER.fullmatch(cell):
            return None
        signs = _SIGNS.findall(cell)
        point = _point(cell)
        if len(signs) == 1 and is_whole and len(cell.rpartition(signs[0])[2]) >= _GROUP:
            point = None
        elif len(signs) == 1 and point is None:
            if self.point is None:
                return None
            point = self.point
        before = cell
        decimals = ""
        if point is not None and point in cell:
            before, _, decimals = cell.rpartition(point)
        if not (before.isdigit() or _is_grouped(before)) or _NOT_DIGITS.search(decimals):
            return None
        return float(f"{_NOT_DIGITS.sub('', before)}.{decimals}")


def _point(cell: str) -> str | None:
    """The sign before decimals in nsys's numbers, as far as one shows it; it need not stand in it (`1.234.567`:
    ",").
    """
    signs: list[str] = _SIGNS.findall(cell)
    if not signs:
        return None
    last = signs[-1]
    before, _, after = cell.rpartition(last)
    if signs.count(last) > 1:
        return "," if last == "." else "."
    if len(signs) > 1 or len(after) != _GROUP or before.startswith("0") or len(before) > _GROUP and before.isdigit():
        return last
    return None


def _is_grouped(text: str) -> bool:
    """Whether nsys writes a whole number in groups, all with one sign between them, the last of three digits or so."""
    signs = set(_NOT_DIGITS.findall(text))
    last = _NOT_DIGITS.split(text)[-1]
    return len(signs) == 1 and len(last) >= _GROUP and _GROUPED.fullmatch(text) is not None

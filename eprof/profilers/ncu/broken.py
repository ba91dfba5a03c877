"""Summaries of Nsight Compute whose rows ncu itself broke in the wrong places (seen in 2022.3 and 2024.1).

`--csv --page raw --print-summary per-gpu` writes the attributes of the device in front of the rows of a kernel, and
`--print-details all` rows without a metric: both are shorter than the header, ncu breaks the line after as many cells
as the header has, and all rows up to the next kernel begin in the midst of a line. The cells are there, in order.
"""

import csv
import io
import re
from collections.abc import Sequence
from itertools import chain

from msgspec import Struct

from eprof.base.text import pattern
from eprof.logs.rows.header import split
from eprof.logs.rows.sections import Rows, Section

NOTE = "ncu broke lines of this summary in the midst of rows; these were put together again"
_SHAPES = {
    "Process ID": pattern(r"\d[\d,]*"),
    "Process Name": pattern(r".*\D.*"),
    "Block Size": pattern(r"\(.*\)|\d+"),
    "Grid Size": pattern(r"\(.*\)|\d+"),
    "Invocations": pattern(r"\d[\d,]*"),
}
_MARK = '","'
_MOST = 1 << 16  # cells without a row


def may_be_broken(lines: Sequence[str], rows: Rows, rest: list[str]) -> bool:
    """Whether some lines of an ncu summary may be pieces of broken rows.

    rest: the cells that were left of the lines before.
    """
    return bool(rest or rows.misfits or any(_MARK in lines[index] for index in rows.others))


class Mended(Struct):
    """Lines with a row each, and the cells of the row that the next lines end."""

    lines: list[str]
    rest: list[str]


def mended(section: Section, lines: Sequence[str], rest: list[str]) -> Mended | None:
    """The lines of an ncu summary with a row each, if some rows are broken; None if none is, or can be mended."""
    shapes = {place: _SHAPES[name] for place, name in enumerate(section.columns) if name in _SHAPES}
    if section.prefix or section.delimiter != "," or len(shapes) < len(_SHAPES):
        return None
    width = len(section.columns)
    fields = [split(line) for line in lines if _MARK in line]
    whole = sum(len(row) == width and _begins(row, 0, shapes) for row in fields)
    if whole == len(fields) and not rest:
        return None
    cells = [*rest, *chain.from_iterable(fields)]
    starts = _starts(cells, width, shapes)
    if len(starts) <= whole and (whole or len(cells) > _MOST):
        return None  # nothing that ncu broke: damaged lines
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        cells[start : start + width] for start in starts
    )
    return Mended(text.getvalue().split("\n"), cells[starts[-1] + width :] if starts else cells)


def others(lines: Sequence[str]) -> list[int]:
    """The lines among those of a broken ncu summary that are no rows, nor pieces of some."""
    return [index for index, line in enumerate(lines) if line and _MARK not in line]


def _starts(cells: Sequence[str], width: int, shapes: dict[int, re.Pattern[str]]) -> list[int]:
    """Where whole rows of a broken ncu summary begin: up to the next row, the end, or a device's attributes."""
    starts = [place for place in range(len(cells) - width + 1) if _begins(cells, place, shapes)]
    ends = {*starts, len(cells)}
    return [
        start
        for start in starts
        if not ends.intersection(range(start + 1, start + width))
        and (start + width in ends or not any(cells[start + width + 1 : start + width + 4]))
    ]


def _begins(cells: Sequence[str], start: int, shapes: dict[int, re.Pattern[str]]) -> bool:
    if start + max(shapes) >= len(cells):
        return False
    return all(shape.fullmatch(cells[start + place]) for place, shape in shapes.items())

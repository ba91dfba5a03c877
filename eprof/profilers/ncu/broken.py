"""Summaries of Nsight Compute whose rows ncu itself broke in the wrong places (seen in 2022.3 and 2024.1).

`--csv --page raw --print-summary per-gpu` writes the attributes of the device in front of the rows of a kernel, and
`--print-details all` rows without a metric: both are shorter than the header, ncu breaks the line after as many cells
as the header has, and all rows up to the next kernel begin in the midst of a line. The cells are there, in order.
"""

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eprof.profilers.ncu.csv import Lines, Rows, Section
from eprof.rows.header import split

NOTE = "ncu broke lines of this summary in the midst of rows; these were put together again"
_SHAPES = {
    "Process ID": re.compile(r"\d[\d,]*"),
    "Process Name": re.compile(r".*\D.*"),
    "Block Size": re.compile(r"\(.*\)|\d+"),
    "Grid Size": re.compile(r"\(.*\)|\d+"),
    "Invocations": re.compile(r"\d[\d,]*"),
}
_MARK = '","'
_MOST = 1 << 16  # cells without a row


def perhaps(lines: Lines, found: Rows, rest: list[str]) -> bool:
    """Whether some lines may be pieces of rows."""
    return bool(rest or found.misfits or any(_MARK in lines.text(index) for index in found.others))


@dataclass
class Mended:
    """A row a line, and the cells of the row that the next lines end."""

    lines: Lines
    rest: list[str]


def mended(section: Section, lines: Lines, rest: list[str]) -> Mended | None:
    """The lines of a summary with a row each, if some rows are broken; None if none is, or can be mended.

    rest: the cells that were left of the lines before.
    """
    places = {place: _SHAPES[name] for place, name in enumerate(section.columns) if name in _SHAPES}
    if section.prefix or section.delimiter != "," or len(places) < len(_SHAPES):
        return None
    texts = [text for text in (lines.text(index) for index in range(len(lines.starts))) if _MARK in text]
    fields = [split(text) for text in texts]
    whole = sum(len(one) == len(section.columns) and _begins(one, 0, places) for one in fields)
    if whole == len(fields) and not rest:
        return None
    cells = [*rest, *(cell for one in fields for cell in one)]
    starts = _rows(cells, len(section.columns), places)
    if len(starts) <= whole and (whole or len(cells) > _MOST):
        return None  # nothing that ncu broke: damaged lines
    rows = [cells[start : start + len(section.columns)] for start in starts]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return Mended(Lines.of(text.getvalue().encode()), cells[starts[-1] + len(section.columns) :] if starts else cells)


def others(lines: Lines) -> list[int]:
    """The lines among those of a broken summary that are no rows, nor pieces of some."""
    filled = np.flatnonzero(lines.ends > lines.starts).tolist()
    return [index for index in filled if _MARK not in lines.text(index)]


def _rows(cells: Sequence[str], width: int, places: dict[int, re.Pattern[str]]) -> list[int]:
    """Where whole rows begin: up to the next row, the end, or the attributes of a device (`"0","","","",...`)."""
    starts = [place for place in range(len(cells) - width + 1) if _begins(cells, place, places)]
    ends = {*starts, len(cells)}
    return [
        start
        for start in starts
        if not ends.intersection(range(start + 1, start + width))
        and (start + width in ends or not any(cells[start + width + 1 : start + width + 4]))
    ]


def _begins(cells: Sequence[str], start: int, places: dict[int, re.Pattern[str]]) -> bool:
    """Whether a row begins with this cell."""
    return all(start + place < len(cells) and shape.fullmatch(cells[start + place]) for place, shape in places.items())

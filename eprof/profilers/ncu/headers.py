"""The header lines of Nsight Compute's tables, among other lines; and of the tables of nsys that may be in the log.

The parts of a kernel's launches in ncu's tables: the stream, or the NVTX range that the launch was in.

With `--nvtx`, tables of launches have a column "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:
Msg". A cell holds the thread, then each open range in quotes, the outermost first:
`1  "<default domain>:step:none:none:none:none:none:none"  "<default domain>:solve:none:none:..." `.

Summaries of Nsight Compute whose rows ncu itself broke in the wrong places (seen in 2022.3 and 2024.1).

`--csv --page raw --print-summary per-gpu` writes the attributes of the device in front of the rows of a kernel, and
`--print-details all` rows without a metric: both are shorter than the header, ncu breaks the line after as many cells
as the header has, and all rows up to the next kernel begin in the midst of a line. The cells are there, in order.
"""

import csv
import io
import re
from collections.abc import Callable, Sequence
from itertools import chain

from eprof.base.text import pattern
from eprof.logs.log import NO_RANGE, RANGES, Names
from eprof.logs.stream import split
from eprof.nvidia import tables as nsys
from eprof.readers.sections import Rows, Section, looks_like_row, rows

LONG, RAW, SUMMARY, UNKNOWN = "ncu-long", "ncu-raw", "ncu-summary", "unknown"
TRACE, LINES = "nsys-trace", "lines"  # a table of nsys that is read as columns; one that is read line by line
_MARKS = ("Process ID", "Kernel Name", "CorrId", "Total Time")
_MARK_BYTES = tuple(mark.encode() for mark in _MARKS)
_SEPARATOR = r"(?:,|;|\t)"
_HEADER = pattern(
    rf'"?(?:ID"?{_SEPARATOR} ?"?)?Process ID"?{_SEPARATOR} ?"?Process Name"?(?:{_SEPARATOR}|$)'
    r'|"?Start ?\((?P<trace>\w+)\)"?,"?Duration ?\(\w+\)"?,"?CorrId"?,'
    r'|^"?(?P<lines>Time) ?\(%\)"?,"?Total Time '
)
# A script may have left out columns: what is needed is a number first, the kernel, and metrics.
_FEWER = pattern(rf'(?<![\w "])"?(?:ID|Process ID)"?{_SEPARATOR}')
_ALIASES = {"Device Id": "Device"}  # of summaries up to 2022
VALUE = {LONG: "Metric Value", SUMMARY: "Average"}
_NEEDED = {kind: ("Metric Name", "Metric Unit", value) for kind, value in VALUE.items()}
_PUSH_POP = "Push/Pop_Range"
_RANGE = pattern(r'"([^"]+)"')
_AFTER = 6  # fields that follow the name of a range: type and value of its payload, of its colour, of its message
BROKEN = "ncu broke lines of this summary in the midst of rows; these were put together again"
_SHAPES = {
    "Process ID": pattern(r"\d[\d,]*"),
    "Process Name": pattern(r".*\D.*"),
    "Block Size": pattern(r"\(.*\)|\d+"),
    "Grid Size": pattern(r"\(.*\)|\d+"),
    "Invocations": pattern(r"\d[\d,]*"),
}
_MARK = '","'
_MOST = 1 << 16  # cells without a row


def headers(lines: Sequence[str], block: bytes) -> list[tuple[int, Section]]:
    """The header lines of ncu's tables among the lines of a block: the place of each, and its section."""
    if not any(mark in block for mark in _MARK_BYTES):
        return []
    places = [place for place, line in enumerate(lines) if any(mark in line for mark in _MARKS)]
    found = [(place, section) for place in places if (section := section_of(lines[place])) is not None]
    # A header may stand on the same line as output that starts with a number, where no other line is a header.
    return [(place, section) for place, section in found if not looks_like_row(lines[place])] or found


def section_of(line: str) -> Section | None:
    """The section that a header line of ncu begins. Output of the program may stand before it on the same line."""
    match = _HEADER.search(line)
    header = match or ("Kernel Name" in line and _FEWER.search(line))
    if not header:
        return None
    before, own = line[: header.start()], line[header.start() :]
    delimiter = max(",;\t", key=own.count)
    section = Section("", [], delimiter=delimiter, is_spaced=f'"{delimiter} "' in own)
    section.columns = [_ALIASES.get(name.strip(), name.strip()) for name in section.split(own)]
    if before.endswith(delimiter):
        section.prefix = len(section.split(before)) - 1
    section.kind = _kind(match, section.columns)
    section.needed = _NEEDED.get(section.kind, ())
    if match is None and section.kind == UNKNOWN:
        return None
    return section


def _kind(match: re.Match[str] | None, columns: Sequence[str]) -> str:
    if match and match["lines"]:
        return LINES
    if match and match["trace"]:
        shape = nsys.shape_of(columns)
        return TRACE if shape is not None and shape.is_trace else UNKNOWN
    names = set(columns)
    if "Kernel Name" not in names:
        return UNKNOWN
    if names.issuperset(("ID", *_NEEDED[LONG])):
        return LONG
    if "ID" not in names and names.issuperset(("Invocations", *_NEEDED[SUMMARY])):
        return SUMMARY
    return RAW if names.issuperset(("ID", "Process ID")) and "Metric Name" not in names else UNKNOWN


def part_column(section: Section, parts: str | None) -> str | None:
    """The column of an ncu table of launches with the part (stream or NVTX range); None if none is there or wanted."""
    sign = {"stream": "Stream", **dict.fromkeys(RANGES, _PUSH_POP)}.get(parts or "")
    if section.kind not in (LONG, RAW) or sign is None:
        return None
    return next((name for name in section.columns if sign in name), None)


def part_labels(section: Section, names: Callable[[str], Names]) -> Names | None:
    """The part of each launch, or None if no parts are wanted. names: gives the cells of a column."""
    if section.part is None:
        return None
    cells = [cell or "" for cell in names(section.part).texts()]
    if section.part == "Stream":
        return Names.of(cell.strip() or None for cell in cells)
    ranges = {cell: innermost(cell) for cell in set(cells)}
    return Names.of(ranges[cell] for cell in cells)


def innermost(cell: str) -> str:
    """The name of the innermost NVTX push/pop range in a cell of ncu's; `NO_RANGE` if it has none."""
    ranges = _RANGE.findall(cell)
    if not ranges:
        return NO_RANGE
    fields = str(ranges[-1]).partition(":")[2].rsplit(":", _AFTER)
    return fields[0].strip() or str(ranges[-1])


def mended(
    section: Section, lines: Sequence[str], parsed: Rows, rest: list[str], wanted: Sequence[int]
) -> tuple[Rows, list[str]] | None:
    """The rows of an ncu summary, broken ones put together, and the cells of the row that the next lines end.

    parsed: the rows among the lines as they stand; rest: cells that were left of the lines before. None: no row is
    broken, or they cannot be mended.
    """
    if not (rest or parsed.misfits or any(_MARK in lines[place] for place in parsed.others)):
        return None
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
    again = rows(section, text.getvalue().split("\n"), wanted)
    others = [place for place, line in enumerate(lines) if line and _MARK not in line]
    return Rows(again.pieces, others, again.misfits), cells[starts[-1] + width :] if starts else cells


def _starts(cells: Sequence[str], width: int, shapes: dict[int, re.Pattern[str]]) -> list[int]:
    """Where in a broken ncu summary's cells whole rows begin: behind each is a row, the end, or a device's data."""
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

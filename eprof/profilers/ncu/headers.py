"""The header lines of Nsight Compute's tables, among other lines; and of the tables of nsys that may be in the log."""

import re
from collections.abc import Iterator, Sequence

from eprof.base.text import pattern
from eprof.logs.rows.sections import Section, looks_like_row
from eprof.profilers.nsys import summary as nsys

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


def may_be_in(block: bytes) -> bool:
    """Whether a block of a log can hold a header line of ncu."""
    return any(mark in block for mark in _MARK_BYTES)


def headers(lines: Sequence[str]) -> list[tuple[int, Section]]:
    """The header lines of ncu's tables among these lines: the place of each, and its section."""
    places = [place for place, line in enumerate(lines) if any(mark in line for mark in _MARKS)]
    plain = list(_sections(lines, [place for place in places if not looks_like_row(lines[place])]))
    # Else a header may stand on the same line as output that starts with a number.
    return plain or list(_sections(lines, places))


def _sections(lines: Sequence[str], places: Sequence[int]) -> Iterator[tuple[int, Section]]:
    for place in places:
        section = section_of(lines[place])
        if section is not None:
            yield place, section


def section_of(line: str) -> Section | None:
    """The section that a header line of ncu begins. Output of the program may stand before it on the same line."""
    match = _HEADER.search(line)
    fewer = _FEWER.search(line) if match is None and "Kernel Name" in line else None
    header = match or fewer
    if header is None:
        return None
    before, own = line[: header.start()], line[header.start() :]
    delimiter = max(",;\t", key=own.count)
    section = Section("", [], delimiter=delimiter, is_spaced=f'"{delimiter} "' in own)
    section.columns = [_ALIASES.get(name.strip(), name.strip()) for name in section.split(own)]
    if before.endswith(delimiter):
        section.prefix = len(section.split(before)) - 1
    section.kind = _kind(section.columns) if match is None else _named_kind(match, section.columns)
    section.needed = _NEEDED.get(section.kind, ())
    return None if match is None and section.kind == UNKNOWN else section


def _named_kind(match: re.Match[str], columns: Sequence[str]) -> str:
    if match["lines"]:
        return LINES
    if not match["trace"]:
        return _kind(columns)
    shape = nsys.shape_of(columns)
    return TRACE if shape is not None and shape.kind == nsys.TRACE else UNKNOWN


def _kind(columns: Sequence[str]) -> str:
    names = set(columns)
    if "Kernel Name" not in names:
        return UNKNOWN
    if "ID" not in names:
        return SUMMARY if {"Invocations", *_NEEDED[SUMMARY]} <= names else UNKNOWN
    if names.issuperset(_NEEDED[LONG]):
        return LONG
    return RAW if "Process ID" in names and "Metric Name" not in names else UNKNOWN

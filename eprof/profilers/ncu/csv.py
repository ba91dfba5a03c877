"""The tables of an Nsight Compute log: where they are among other lines, and their cells as Arrow columns."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from eprof.profilers.nsys import summary as nsys
from eprof.rows.header import split

Array = np.ndarray[Any, Any]
LONG, RAW, SUMMARY, UNKNOWN = "ncu-long", "ncu-raw", "ncu-summary", "unknown"
TRACE, LINES = "nsys-trace", "lines"  # a table of nsys that is read as columns; one that is read line by line
_QUOTE, _NEWLINE = b'"\n'
_LONGEST = 4 << 20  # bytes of a line, see Tuning
_EXAMPLE = 200  # of a line that is no row
_SHORT = 1 << 14
_BLOCK = 1 << 20
_MARKS = (b"Process ID", b"Kernel Name", b"CorrId", b"Total Time")
_SEPARATOR = r"(?:,|;|\t)"
_HEADER = re.compile(
    rf'"?(?:ID"?{_SEPARATOR} ?"?)?Process ID"?{_SEPARATOR} ?"?Process Name"?(?:{_SEPARATOR}|$)'
    r'|"?Start ?\((?P<trace>\w+)\)"?,"?Duration ?\(\w+\)"?,"?CorrId"?,'
    r'|^"?(?P<lines>Time) ?\(%\)"?,"?Total Time '
)
# A script may have left out columns: what is needed is a number first, the kernel, and metrics.
_FEWER = re.compile(rf'(?<![\w "])"?(?:ID|Process ID)"?{_SEPARATOR}')
_ALIASES = {"Device Id": "Device"}  # of summaries up to 2022
_NAMES = {LONG: ("Metric Name", "Metric Unit", "Metric Value"), SUMMARY: ("Metric Name", "Metric Unit", "Average")}
ALL = frozenset(range(1 << 16))  # of the columns, to be read as text
_CODED = pa.dictionary(pa.int32(), pa.string())


@dataclass
class Section:
    """A header line and the lines up to the next: `columns` after `prefix` columns that a script put in front.

    part: the column whose cells tell rows of a kernel apart, if that was asked for and is there.
    """

    kind: str
    columns: list[str]
    prefix: int = 0
    first_line: int = 0
    part: str | None = None
    delimiter: str = ","
    is_spaced: bool = False  # a blank follows each delimiter

    def split(self, line: str) -> list[str]:
        """The fields of a line."""
        return split(
            line.replace(f'"{self.delimiter} "', f'"{self.delimiter}"') if self.is_spaced else line, self.delimiter
        )

    def at(self, name: str) -> int | None:
        """Where a column is in a line; None if there is none."""
        return self.prefix + self.columns.index(name) if name in self.columns else None

    @property
    def least(self) -> int:
        """How many fields a row has at least: rows of metrics end before the columns of rules."""
        named = [self.at(name) for name in _NAMES.get(self.kind, ())]
        return max([one for one in named if one is not None], default=len(self.columns) + self.prefix - 1) + 1


@dataclass
class Rows:
    """The rows of a section that have the same number of fields, by column; and lines that are no rows."""

    tables: list[pa.Table] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)


def sections(block: bytes) -> tuple["Lines", "Lines", list[tuple[Section, "Lines"]]]:
    """The lines of a block, those before the first table in it, and its tables with the lines below their headers."""
    lines = Lines.of(block)
    marks = [mark for mark in _MARKS if mark in block]
    headers = list(_headers(lines, np.flatnonzero(~_look_like_rows(lines)), marks)) if marks else []
    # A header on the same line as output that starts with a number.
    if not headers and marks:
        headers = list(_headers(lines, np.arange(len(lines.starts)), marks))
    ends = [*(index for index, _ in headers), len(lines.starts)][1:]
    found = [
        (one, lines.part(index + (one.kind != LINES), end)) for (index, one), end in zip(headers, ends, strict=True)
    ]
    return lines, lines.part(0, headers[0][0] if headers else len(lines.starts)), found


def _headers(lines: "Lines", indexes: Array, marks: Sequence[bytes]) -> Iterable[tuple[int, Section]]:
    for index in indexes.tolist():
        start, end = lines.starts[index], lines.ends[index]
        if any(lines.data.find(mark, start, end) >= 0 for mark in marks):
            one = _section(lines.text(index))
            if one is not None:
                one.first_line = index + 1
                yield index, one


def _section(line: str) -> Section | None:
    """The section that a header line begins. Output of the program may stand before it on the same line."""
    found = _HEADER.search(line)
    start = found.start() if found else _fewer_columns(line)
    if start is None:
        return None
    own, before = line[start:], line[:start]
    delimiter = max(",;\t", key=own.count)
    section = Section("", [], delimiter=delimiter, is_spaced=f'"{delimiter} "' in own)
    section.columns = [_ALIASES.get(name.strip(), name.strip()) for name in section.split(own)]
    section.prefix = len(split(before, delimiter)) - 1 if before.endswith(delimiter) else 0
    section.kind = _kind(section.columns)
    if found and found.lastgroup:
        shape = nsys.shape_of(section.columns)
        is_trace = shape is not None and shape.kind == nsys.TRACE
        section.kind = LINES if found["lines"] else TRACE if is_trace else UNKNOWN
    return section if found or section.kind != UNKNOWN else None


def _fewer_columns(line: str) -> int | None:
    """Where a header begins that lacks columns which ncu writes; None if there is none."""
    found = _FEWER.search(line) if "Kernel Name" in line else None
    return found.start() if found else None


def _kind(columns: Sequence[str]) -> str:
    named = set(columns)
    if "Kernel Name" not in named:
        return UNKNOWN
    if "ID" in named:
        raw = RAW if "Process ID" in named and "Metric Name" not in named else UNKNOWN
        return LONG if set(_NAMES[LONG]) <= named else raw
    return SUMMARY if {"Invocations", *_NAMES[SUMMARY]} <= named else UNKNOWN


@dataclass
class Lines:
    """Where the lines of a section start and end in the log."""

    data: bytes
    starts: Array
    ends: Array
    numbered: Array | None = None  # which look like rows, if that was looked at

    @classmethod
    def of(cls, data: bytes) -> "Lines":
        """The lines of a log."""
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == _NEWLINE)
        if not data.endswith(b"\n") and data:
            ends = np.append(ends, len(data))
        starts = np.zeros(len(ends), dtype=np.int64)
        starts[1:] = ends[:-1] + 1
        return cls(data, starts, ends)

    def part(self, first: int, last: int) -> "Lines":
        """Some of the lines."""
        numbered = None if self.numbered is None else self.numbered[first:last]
        return Lines(self.data, self.starts[first:last], self.ends[first:last], numbered)

    def text(self, index: int) -> str:
        """One line."""
        return self.data[self.starts[index] : self.ends[index]].decode("utf-8", "replace")

    @property
    def is_cut(self) -> bool:
        """Whether the last line is the end of the log, and ends inside of quotes."""
        last = len(self.starts) - 1
        return last >= 0 and int(self.ends[last]) == len(self.data) and self.text(last).count('"') % 2 == 1

    def whole(self) -> Array:
        """Lines that hold something and do not end inside of quotes."""
        if not len(self.starts):
            return np.zeros(0, dtype=bool)
        base = int(self.starts[0])
        quotes = np.frombuffer(self.data, dtype=np.uint8)[base : int(self.ends[-1])] == _QUOTE
        if not len(quotes):
            return np.zeros(len(self.starts), dtype=bool)
        places = np.minimum(self.starts - base, len(quotes) - 1)
        return np.asarray(~np.logical_xor.reduceat(quotes, places) & (self.ends > self.starts))

    def joined(self, indexes: Array) -> bytes | memoryview:
        """These lines, each with its end; not copied if they follow each other, else in pieces that do."""
        cuts = np.flatnonzero(np.diff(indexes) != 1) + 1
        first, last = indexes[np.concatenate([[0], cuts])], indexes[np.concatenate([cuts - 1, [len(indexes) - 1]])]
        spans = list(zip(self.starts[first].tolist(), self.ends[last].tolist(), strict=True))
        if len(spans) == 1:
            return memoryview(self.data)[spans[0][0] : spans[0][1]]
        return b"\n".join([self.data[start:end] for start, end in spans])


def rows(section: Section, lines: Lines, wanted: Sequence[int] | None, as_text: Iterable[int] = ()) -> Rows:
    """The rows of a section. wanted: places of the columns to read; as_text: those of them with few repetitions."""
    chosen = (lines.ends > lines.starts) if section.prefix else _look_like_rows(lines)
    if lines.is_cut:
        chosen = chosen & (np.arange(len(chosen)) < len(chosen) - 1)
    found = Rows(others=np.flatnonzero(~chosen & (lines.ends > lines.starts)).tolist())
    indexes = np.flatnonzero(chosen)
    if not len(indexes):
        return found
    tails = np.frombuffer(lines.data, dtype=np.uint8)[lines.ends[indexes] - 1] == ord(section.delimiter)
    texts = as_text if isinstance(as_text, frozenset) else frozenset(as_text)
    for part in (indexes[~tails], indexes[tails]):
        if len(part) and not _parse(section, lines.joined(part), len(part), wanted, texts, found):
            whole = lines.whole()[part]
            found.others = sorted([*found.others, *part[~whole].tolist()])
            part = part[whole]
            if len(part):
                _parse(section, lines.joined(part), len(part), wanted, texts, found)
    return found


def _first(text: bytes | memoryview) -> bytes:
    """The first line; most are short, and the whole need not be copied to find one."""
    start = bytes(text[:_SHORT])
    return (start if b"\n" in start else bytes(text[:_LONGEST])).partition(b"\n")[0]


def _look_like_rows(lines: Lines) -> Array:
    """Lines that start with a number, quoted or not."""
    if lines.numbered is None:
        lines.numbered = _numbered(lines)
    return lines.numbered


def _numbered(lines: Lines) -> Array:
    if not len(lines.starts):
        return np.zeros(0, dtype=bool)
    bytes_ = np.frombuffer(lines.data, dtype=np.uint8)
    first = bytes_[lines.starts]
    second = bytes_[np.minimum(lines.starts + 1, len(bytes_) - 1)]
    return np.asarray(_digit(first) | ((first == _QUOTE) & _digit(second)))


def _digit(bytes_: Array) -> Array:
    return np.asarray((bytes_ >= ord("0")) & (bytes_ <= ord("9")))


def _parse(
    section: Section,
    text: bytes | memoryview,
    number: int,
    wanted: Sequence[int] | None,
    as_text: frozenset[int],
    found: Rows,
) -> bool:
    """Parse lines by the number of fields of the first; lines of another number are parsed together after that.

    False, and nothing is kept, if `number` lines did not make as many rows: some line ends inside of quotes.
    """
    least = max([section.least, *(one + 1 for one in wanted or ())])
    if section.is_spaced:
        sign = section.delimiter.encode()
        text = bytes(text).replace(b'"' + sign + b' "', b'"' + sign + b'"')
    widths, tables, misfits = range(least, section.prefix + len(section.columns) + 1), list[pa.Table](), list[str]()
    while number:
        width = _width(_first(text), section.delimiter)
        if width not in widths:
            text, number = _without_misfits(widths, bytes(text), number, misfits, section.delimiter)
            continue
        odd: list[str] = []
        table = _arrow(text, width, wanted, as_text, odd, section.delimiter)
        if table is None or len(table) + len(odd) != number:
            return False
        tables.append(table)
        if not len(table):
            misfits += odd
            break
        text, number = "\n".join(odd).encode(), len(odd)
    found.tables += tables
    found.misfits += misfits
    return True


def _width(line: bytes, delimiter: str) -> int:
    return max(1, len(split(line.decode("utf-8", "replace"), delimiter)))


def _without_misfits(widths: range, text: bytes, number: int, misfits: list[str], delimiter: str) -> tuple[bytes, int]:
    """Lines without the first ones that have more or fewer fields than a row; these go to `misfits`.

    A line may have millions of fields: as a table it would take a column for each.
    """
    place = 0
    while number:
        end = text.find(b"\n", place)
        line = text[place : end if end >= 0 else len(text)]
        if _width(line, delimiter) in widths:
            break
        misfits.append(line[:_EXAMPLE].decode("utf-8", "replace"))
        place, number = place + len(line) + 1, number - 1
    return text[place:], number


def _arrow(
    text: bytes | memoryview,
    width: int,
    wanted: Sequence[int] | None,
    as_text: frozenset[int],
    odd: list[str],
    delimiter: str,
) -> pa.Table | None:
    """Lines as columns; those of another number of fields go to `odd`. None if a field runs over many lines."""
    chosen = [one for one in (range(width) if wanted is None else wanted) if one < width]

    def skip(row: Any) -> str:
        odd.append(row.text)
        return "skip"

    try:
        return pcsv.read_csv(
            pa.BufferReader(text),
            pcsv.ReadOptions(column_names=[str(one) for one in range(width)], block_size=_BLOCK),
            pcsv.ParseOptions(delimiter=delimiter, invalid_row_handler=skip),
            pcsv.ConvertOptions(
                include_columns=[str(one) for one in chosen],
                column_types={str(one): pa.string() if one in as_text else _CODED for one in chosen},
                strings_can_be_null=False,
                null_values=[],
                check_utf8=False,  # it is, see `stream.blocks`
            ),
        ).unify_dictionaries()
    except pa.ArrowInvalid:
        return None


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """Tables as one, of columns with one dictionary each, as that of every `_arrow` is."""
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).unify_dictionaries()


def coded(column: pa.ChunkedArray) -> tuple[Array, list[str]]:
    """The codes and the words of a dictionary column."""
    if not column.num_chunks or not len(column):
        return np.zeros(0, dtype=np.int32), []
    codes = np.concatenate([chunk.indices.to_numpy(zero_copy_only=False) for chunk in column.chunks])
    return codes, [str(word) for word in column.chunk(0).dictionary.to_pylist()]

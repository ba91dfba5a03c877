"""Logs of Nsight Compute (`ncu --csv`) and summaries of Nsight Systems (`nsys stats`): from blocks to a `Log`."""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

import numpy as np
from msgspec import Struct, field

from eprof.base.errors import LogError
from eprof.base.optional import gathered, mapped
from eprof.base.resources import ahead, is_memory_scarce
from eprof.base.text import counted, few, pattern
from eprof.logs.log import CUT_OFF, RANGES, Clock, Log, Table
from eprof.logs.stream import Source, split
from eprof.nvidia import folding
from eprof.nvidia import tables as nsys_tables
from eprof.nvidia.tables import Nsys
from eprof.profilers.ncu import LONG, RAW, SUMMARY, VALUE, sheet
from eprof.profilers.ncu.launches import Long, Wide, check_order, columns_of, is_advice, places_of_names, units_of
from eprof.profilers.ncu.text import COLUMNS, Page, block_with_advice, lines_with_advice, uncommented
from eprof.readers.cells import Locale, Unit
from eprof.readers.sections import NEWLINE, CsvSection, ParsedRows, Piece, looks_like_row, many_rows, rows, size

# Kinds of tables beside those of ncu: of nsys, one that is read as columns, and one that is read line by line.
UNKNOWN, TRACE, LINES = "unknown", "nsys-trace", "lines"
_NO_COLUMNS = (UNKNOWN, LINES)
_MAY_BE_LONG = (LONG, RAW, TRACE)
_LOOK = 20
_SAMPLE_ROWS = 64
_SHOWN = 3
_SHORT = 1 << 18  # bytes


def read(
    source: Source, blocks: Iterator[bytes], keep: Container[str] | None, parts: str | None, fold_rows: int
) -> Log:
    """Read a log of ncu, or of nsys where it stands in one of ncu's forms.

    keep: the counters to hold, by name; None for all. parts: see `logs.read`. fold_rows: how many rows of a table are
    held before those of one kernel are added up. Raises LogError, one sentence, if there are no kernels in it.
    """
    reader = _Reader(source, keep, parts, fold_rows, nsys=Nsys(parts))
    # Starting threads takes longer than reading a short log.
    alone = os.fstat(source.handle.fileno()).st_size < _SHORT or is_memory_scarce()
    # Three threads: one reads, one has pyarrow parse rows, and this one adds them up.
    for block in map(_Block, blocks) if alone else ahead(reader.parsed(ahead(blocks))):
        reader.feed(block)
    return reader.log()


class _Table(Struct):
    """A table of ncu while its rows come, block by block. wanted: the places of the columns to read.

    names: those of them in which texts come again and again. sample: the first rows of a raw page, in full, which show
    how the file writes numbers. pieces: rows that are held. sums: launches that were added up. highest: process -> the
    highest number of a launch in `sums`. rest: cells of a broken row.
    """

    section: CsvSection
    number: int
    wanted: Sequence[int] = ()
    names: Sequence[int] = ()
    pieces: list[Piece] = field(default_factory=list)
    units: dict[int, Unit] | None = None
    sample: list[list[str]] = field(default_factory=list)
    sums: folding.RowSums = field(default_factory=folding.RowSums)
    fold_from: int = 0
    highest: dict[str, int] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)

    def rows(self) -> Long | Wide:
        """The held rows of an ncu table, put together as launches."""
        if self.section.kind == RAW:
            return Wide(self.section, self.units or {}, self.pieces, self.sample)
        return Long.of(self.section, self.pieces)

    @property
    def held(self) -> int:
        """How many rows of an ncu table are held."""
        return sum(size(piece) for piece in self.pieces)


class _Block(Struct):
    """Whole lines of an ncu log. rows: the same, where a thread parsed them ahead as rows of the open `table`."""

    lines: bytes
    table: _Table | None = None
    rows: Piece | None = None


class _Reader(Struct):
    """One log of ncu while it is read: its tables, the lines between them, and what there is to say."""

    source: Source
    keep: Container[str] | None
    parts_by: str | None
    fold_rows: int
    messages: sheet.Messages = field(default_factory=sheet.Messages)
    nsys: Nsys = field(default_factory=Nsys)
    locale: Locale = field(default_factory=Locale)
    page: Page = field(default_factory=Page)
    pages: dict[str, _Table] = field(default_factory=dict)
    tables: list[_Table] = field(default_factory=list)
    collected: sheet.NcuStore = field(default_factory=sheet.NcuStore)
    closed: list[tuple[_Table, Long | Wide]] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    program: str | None = None
    skipped: int = 0
    example: str = ""
    lines: int = 0
    tail: str = ""
    is_cut: bool = False
    is_mended: bool = False

    def parsed(self, blocks: Iterator[bytes]) -> Iterator[_Block]:
        """Yields blocks of ncu's log, rows parsed as of the table that is open now; for a thread that runs ahead."""
        for block in blocks:
            table = next(reversed(self.tables), None)
            yield _Block(block, table, mapped(_all_rows, table, block))

    def feed(self, block: _Block) -> None:
        """Take the next block of an ncu log: rows of the open table, or lines among which headers open others."""
        table = next(reversed(self.tables), None)
        rows = block.rows
        if table is not None and table is not block.table:
            rows = _all_rows(table, block.lines)
        if table is not None and rows is not None:
            self._take(table, [rows])
            self.lines += int(np.count_nonzero(np.frombuffer(block.lines, np.uint8) == NEWLINE))
            return
        lines = block.lines.decode("utf-8", "replace").split("\n")
        if not lines[-1]:
            lines.pop()
        else:
            self.tail = lines[-1]
        starts = _headers(lines, block.lines)
        ends = [place for place, _ in starts] + [len(lines)]
        self._more_lines(lines[: ends[0]])
        for (place, section), end in zip(starts, ends[1:], strict=True):
            section.first_line = self.lines + 1
            self.tables.append(self._opened(section))
            if section.kind != LINES:
                self.lines += 1
                place += 1
            self._more_lines(lines[place:end])

    def _more_lines(self, lines: Sequence[str]) -> None:
        """Take the next lines, which hold no header line: of the ncu table that is open, or before the first."""
        if self.tables and self.tables[-1].section.kind != LINES:
            self._rows(self.tables[-1], lines)
        else:
            self._between(lines, range(len(lines)))
        self.lines += len(lines)

    def _between(self, lines: Sequence[str], places: Iterable[int]) -> None:
        """Take lines that are no rows of ncu's tables: words of ncu, tables of nsys, output of the program."""
        for place in places:
            line = lines[place]
            number = self.lines + 1 + place
            text = uncommented(line)
            if self.messages.hear(number, text) or self.page.feed(number, text) or self.nsys.feed(text):
                continue
            if line.strip(" \t\r#/*>"):
                self._skip(line)
        self._take_page()

    def _take_page(self) -> None:
        """Hold the rows that ncu's page for reading has given since the last call, one table for each kind."""
        for kind in COLUMNS:
            piece = self.page.take(kind)
            if piece is not None:
                if kind not in self.pages:
                    self.pages[kind] = self._opened(self.page.section(kind))
                self._hold(self.pages[kind], [piece])

    def _skip(self, text: str, number: int = 1) -> None:
        self.skipped += number
        if not any(map(str.isalnum, self.example)):  # a ruler: "====="
            self.example = text[:80]

    def _opened(self, section: CsvSection) -> _Table:
        """The new open table of an ncu log below a header: the places of the columns to read, and what tells parts."""
        sign = {"stream": "Stream", **dict.fromkeys(RANGES, _PUSH_POP)}.get(self.parts_by or "")
        if section.kind in (LONG, RAW) and sign is not None:
            section.part = next((name for name in section.columns if sign in name), None)
        table = _Table(section, len(self.tables) + len(self.pages))
        if section.kind == UNKNOWN:
            self.unknown.append(section.first_line)
        elif section.kind == TRACE:
            table.wanted, table.names = nsys_tables.places_in(section)
        elif section.kind != LINES:
            table.wanted, table.names = columns_of(section, self.keep), places_of_names(section)
        return table

    def _rows(self, table: _Table, lines: Sequence[str]) -> None:
        """Take lines below the header of an ncu table one by one: its rows, its row of units, and what is neither."""
        section = table.section
        if section.kind == UNKNOWN:
            return
        if self.program is None and (place := section.at("Process Name")) is not None:
            first = map(section.split, lines[:_LOOK])
            programs = (fields[place] for fields in first if len(fields) >= section.least)
            self.program = next(filter(None, programs), None)
        if section.kind == LONG:
            lines = lines_with_advice(section, lines)
        parsed = rows(section, lines, table.wanted)
        if section.kind == SUMMARY:
            mended = _mended(section, lines, parsed, table.rest, table.wanted)
            if mended is not None:
                self.is_mended = True
                parsed, table.rest = mended
            elif table.rest:
                self._skip(",".join(table.rest))
                table.rest = []
        if section.kind == RAW:
            table.units = table.units or units_of(section, lines, parsed.others)
            fields = map(section.split, lines)
            whole = (row for row in fields if len(row) == section.width and row[section.prefix])
            table.sample += islice(whole, _SAMPLE_ROWS - len(table.sample))
        self._between(lines, parsed.others)
        for text in parsed.misfits:
            self._skip(text)
        self._take(table, parsed.pieces)

    def _take(self, table: _Table, pieces: Sequence[Piece]) -> None:
        if table.section.kind == TRACE:
            self._stray(nsys_tables.add_trace(self.nsys, table.section, pieces))
        else:
            self._hold(table, pieces)

    def _hold(self, table: _Table, pieces: Sequence[Piece]) -> None:
        """Hold more rows of an ncu table; once they are many, add up those of each kernel to save memory."""
        table.pieces += pieces
        # Rows of the raw page are long; those of a summary are never many.
        most = {SUMMARY: math.inf, RAW: max(2, self.fold_rows // 40)}
        if table.held < max(table.fold_from, most.get(table.section.kind, max(2, self.fold_rows // 4))):
            return
        # Rows of whole launches are replaced by sums by kernel; not while it is open how numbers are written.
        held = table.pieces
        rest: list[Piece] = []
        if table.section.kind == LONG:
            whole, last = Long.split_last(table.section, held)
            table.pieces = [whole]
            rest = [last]
        launches = table.rows()
        launches.look(self.locale)
        if launches.is_empty or self.locale.is_open:
            table.pieces = held
            table.fold_from = 2 * table.held
            return
        check_order(table.highest, launches, self.source.path)
        self._stray(launches.stray)
        table.sums.add(self._piece(table, launches))
        table.pieces = rest
        table.fold_from = 0

    def _stray(self, number: int) -> None:
        if number:
            self._skip("(a line that looks like a row, without its numbers)", number)

    def _close(self) -> None:
        """End the log: collect the launches of all ncu tables, with numbers as the whole log writes them."""
        self.page.finish()
        self._take_page()
        self.nsys.finish()
        self.nsys.ends_in_row &= bool(self.tail)
        self.is_cut = self.tail.count('"') % 2 == 1
        if self.tables and self.tables[-1].section.kind not in _NO_COLUMNS and looks_like_row(self.tail):
            section = self.tables[-1].section
            self.is_cut |= 1 < len(section.split(self.tail)) < section.least
        for table in (*self.tables, *self.pages.values()):
            if table.section.kind in (*_NO_COLUMNS, TRACE):
                continue
            if table.rest and not table.pieces:
                self._skip(",".join(table.rest))
            launches = table.rows()
            self._stray(launches.stray)
            if table.sums:
                check_order(table.highest, launches, self.source.path)
            self.closed.append((table, launches))
        # Only now all are there to show how the log writes numbers.
        for _, launches in self.closed:
            if not launches.is_empty:
                launches.look(self.locale)
        for table, launches in self.closed:
            piece = None if launches.is_empty else self._piece(table, launches)
            if table.sums:
                if piece is not None:
                    table.sums.add(piece)
                piece = table.sums.take()
            self.collected.add(table.section.kind, piece)

    def log(self) -> Log:
        """The `Log` of ncu's lines that were fed. Raises LogError, one sentence, if it holds no kernels."""
        self._close()
        tables = list(self.collected.tables())
        notes = [*self.messages.notes(), *self.source.notes, *self._notes(tables)]
        if self.nsys.kernels:
            tables.append(self.nsys.table())
        if not tables:
            raise LogError(f"{self.source.path}: {self._why_nothing()}")
        # "nan" everywhere, as of a launch that failed.
        numbers = ((table.counters.values, table.rows.time_s) for table in tables)
        if self.messages.has_errors and all(
            values.shape[1] and np.isnan(values).all() and np.isnan(time_s).all() for values, time_s in numbers
        ):
            raise LogError(f"{self.source.path}: {self.messages.why_no_table()}")
        if names := sheet.names_of_nvprof(self.collected.remarks):
            told = f"the table is in ncu's form, but its metrics are nvprof's ({few(names, _SHOWN)})"
            raise LogError(f"{self.source.path}: {told}; give the log as nvprof wrote it")
        self.source.lacks_bytes |= self.is_cut
        clocks = gathered((clock.device, clock) for clock in self.collected.clocks)
        processes = list(dict.fromkeys(process for _, process in self.collected.runs))
        first = self.program or self.page.program or None
        programs = (self.messages.processes.get(str(process)) or first for process in processes)
        return self.source.log(
            tables,
            notes,
            lines=self.lines,
            skipped_lines=self.skipped,
            # The program that the first rows are of, with its path if ncu gives it.
            command=next(programs, None),
            # A run of nsys prints a table of each kind.
            runs=max([1, len(processes), *(self.nsys.begun[kind] for kind in self.nsys.sums)]),
            clocks=tuple(Clock.mean(device, own) for device, own in clocks.items()),
            by_shape=self.collected.by_shape(),
            **self.nsys.beside,
        )

    def _piece(self, table: _Table, launches: Long | Wide) -> folding.Piece:
        """Rows of launches, with counters and derived ones, made of an ncu table's held rows."""
        own = launches.sheet(self.locale.style(self.source.path), self.keep)
        return self.collected.piece(own, self.keep, table.number)

    def _notes(self, tables: Sequence[Table]) -> Iterable[str]:
        """Yields notes on an ncu log: on its counters, its pages, nsys's tables, lines that were skipped, its end."""
        yield from sheet.notes_of_counters(tables, self.collected.remarks, self.keep)
        yield from sheet.notes_of_lines(tables, self.collected.remarks, self.page.is_scaled)
        if self.is_mended:
            yield _BROKEN
        yield from self.page.notes()
        yield from self.nsys.notes()
        if self.skipped:
            lines = counted(self.skipped, "line is", "lines are")
            yield f"{lines} no part of a table and skipped, for example: {self.example}"
        if self.is_cut:
            yield CUT_OFF
            yield f"its last line ({self.lines}) is no whole row"
        elif tables and not self.source.ends_with_newline:
            yield f"the last line ({self.lines}) has no line end; if the log was cut off, rows or digits are missing"
        if self.unknown:
            yield f"a table of an unknown kind (line {self.unknown[0]}) was not read"

    def _why_nothing(self) -> str:
        """Why an ncu log has no kernels, and what to do: by nsys's tables, unknown ones, ncu's page, its messages."""
        if not self.closed:
            if reason := self.nsys.why_no_table():
                return reason
            if self.unknown:
                return (
                    f"the table of ncu (line {self.unknown[0]}) has no kernels or no values of metrics; "
                    f"make one with `{sheet.CSV}`"
                )
        if any(table.pieces for table in self.tables):
            return (
                "the log holds no values of metrics, only advice (rules), which is nothing to count with; "
                f"collect metrics with `{sheet.CSV}`"
            )
        if self.closed:
            begins = f"a table begins (line {self.closed[0][0].section.first_line}) but has no rows"
            if not self.skipped:
                return f"{begins}; profile again"
            return (
                f"{begins}: no line below it has as many fields, for example: {self.example}; give the log as ncu "
                "wrote it, with all quotes and with nothing in front of its lines"
            )
        if self.page.launches and not self.page.orphans:
            launches = counted(self.page.launches, "launch", "launches")
            return f"ncu's page names {launches} but no metric, which is nothing to count with; print {sheet.IMPORTED}"
        self.messages.page = self.page.first_line or None
        return self.messages.why_no_table()


def _all_rows(table: _Table, block: bytes) -> Piece | None:
    """The rows of a block whose lines are all rows of an ncu table; None if it is not, or may not be, such a block."""
    if table.section.kind not in _MAY_BE_LONG:
        return None
    if table.section.kind != LONG:
        return many_rows(table.section, block, table.wanted, table.names)
    block = block_with_advice(table.section, block)
    return many_rows(table.section, block, table.wanted, table.names, partial(is_advice, table.section))


# ----------------------------------------------------------------------------------------------------------------------
# Header lines of ncu's tables, and of those of nsys that may be in the log; and broken rows of summaries.
#
# `--csv --page raw --print-summary per-gpu` writes the attributes of the device in front of the rows of a kernel, and
# `--print-details all` rows without a metric: both are shorter than the header, ncu breaks the line after as many cells
# as the header has, and all rows up to the next kernel begin in the midst of a line (seen in 2022.3 and 2024.1). The
# cells are there, in order.

_IN_HEADERS = ("Process ID", "Kernel Name", "CorrId", "Total Time")
_BYTES_IN_HEADERS = tuple(mark.encode() for mark in _IN_HEADERS)
_SEPARATOR = r"(?:,|;|\t)"
_HEADER = pattern(
    rf'"?(?:ID"?{_SEPARATOR} ?"?)?Process ID"?{_SEPARATOR} ?"?Process Name"?(?:{_SEPARATOR}|$)'
    r'|"?Start ?\((?P<trace>\w+)\)"?,"?Duration ?\(\w+\)"?,"?CorrId"?,'
    r'|^"?(?P<lines>Time) ?\(%\)"?,"?Total Time '
)
# A script may have left out columns: what is needed is a number first, the kernel, and metrics.
_FEWER = pattern(rf'(?<![\w "])"?(?:ID|Process ID)"?{_SEPARATOR}')
_ALIASES = {"Device Id": "Device"}  # of summaries up to 2022
_NEEDED = {kind: ("Metric Name", "Metric Unit", value) for kind, value in VALUE.items()}
_PUSH_POP = "Push/Pop_Range"
_BROKEN = "ncu broke lines of this summary in the midst of rows; these were put together again"
_CELLS_OF = {
    "Process ID": pattern(r"\d[\d,]*"),
    "Process Name": pattern(r".*\D.*"),
    "Block Size": pattern(r"\(.*\)|\d+"),
    "Grid Size": pattern(r"\(.*\)|\d+"),
    "Invocations": pattern(r"\d[\d,]*"),
}
_BETWEEN = '","'
_MOST = 1 << 16  # cells without a row


def _headers(lines: Sequence[str], block: bytes) -> list[tuple[int, CsvSection]]:
    """(place, section) of each header line of ncu's tables among the lines of a block."""
    if not any(mark in block for mark in _BYTES_IN_HEADERS):
        return []
    places = [place for place, line in enumerate(lines) if any(mark in line for mark in _IN_HEADERS)]
    found = [(place, section) for place in places if (section := _section_of(lines[place])) is not None]
    # A header may stand on the same line as output that starts with a number, where no other line is a header.
    return [(place, section) for place, section in found if not looks_like_row(lines[place])] or found


def _section_of(line: str) -> CsvSection | None:
    """The section that a header line of ncu begins. Output of the program may stand before it on the same line."""
    match = _HEADER.search(line)
    header = match or ("Kernel Name" in line and _FEWER.search(line))
    if not header:
        return None
    before, own = line[: header.start()], line[header.start() :]
    delimiter = max(",;\t", key=own.count)
    section = CsvSection("", [], delimiter=delimiter, is_spaced=f'"{delimiter} "' in own)
    section.columns = [_ALIASES.get(name.strip(), name.strip()) for name in section.split(own)]
    if before.endswith(delimiter):
        section.prefix = len(section.split(before)) - 1
    section.kind = _kind(match, section.columns)
    section.needed = _NEEDED.get(section.kind, ())
    if match is None and section.kind == UNKNOWN:
        return None
    return section


def _kind(match: re.Match[str] | None, columns: Sequence[str]) -> str:
    """The kind of table that a header line in an ncu log begins, by its columns; UNKNOWN: one that is not read."""
    if match and match["lines"]:
        return LINES
    if match and match["trace"]:
        shape = nsys_tables.nsys_table_of(columns)
        return TRACE if shape is not None and shape.is_trace else UNKNOWN
    names = set(columns)
    if "Kernel Name" not in names:
        return UNKNOWN
    if names.issuperset(("ID", *_NEEDED[LONG])):
        return LONG
    if "ID" not in names and names.issuperset(("Invocations", *_NEEDED[SUMMARY])):
        return SUMMARY
    return RAW if names.issuperset(("ID", "Process ID")) and "Metric Name" not in names else UNKNOWN


def _mended(
    section: CsvSection, lines: Sequence[str], parsed: ParsedRows, rest: list[str], wanted: Sequence[int]
) -> tuple[ParsedRows, list[str]] | None:
    """(rows of an ncu summary, broken ones put together; cells of the row that the next lines end).

    parsed: the rows among the lines as they stand; rest: cells that were left of the lines before. None: no row is
    broken, or they cannot be mended.
    """
    if not (rest or parsed.misfits or any(_BETWEEN in lines[place] for place in parsed.others)):
        return None
    shapes = {place: _CELLS_OF[name] for place, name in enumerate(section.columns) if name in _CELLS_OF}
    if section.prefix or section.delimiter != "," or len(shapes) < len(_CELLS_OF):
        return None
    width = len(section.columns)
    fields = [split(line) for line in lines if _BETWEEN in line]
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
    others = [place for place, line in enumerate(lines) if line and _BETWEEN not in line]
    return ParsedRows(again.pieces, others, again.misfits), cells[starts[-1] + width :] if starts else cells


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
    """Whether a row may begin at cell `start` of a broken ncu summary: the cells from there look like its columns."""
    if start + max(shapes) >= len(cells):
        return False
    return all(shape.fullmatch(cells[start + place]) for place, shape in shapes.items())

"""Walk over a log's lines: what opens a table, what belongs to it, what ends it, what is program output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Array
from eprof.base.text import pattern
from eprof.logs.rows import header as headers
from eprof.logs.rows.cells import OLD_RATES, RATES
from eprof.logs.rows.columns import Form, ParsedRows, parse
from eprof.logs.rows.header import Header
from eprof.profilers.nvprof import text
from eprof.profilers.nvprof.messages import PROFILER_LINE, Messages, is_chatter
from eprof.profilers.nvprof.open_table import ColumnSection, Ignored, Section
from eprof.profilers.nvprof.store import Store
from eprof.profilers.nvprof.summary import SummarySection
from eprof.profilers.nvprof.text import TextSection
from eprof.profilers.nvprof.trace import TraceSection, UsageSection
from eprof.profilers.nvprof.wide import WideSection

if TYPE_CHECKING:
    import polars as pl

_SECTIONS: dict[str, type[Section]] = {
    headers.METRICS: SummarySection,
    headers.EVENTS: SummarySection,
    headers.WIDE: WideSection,
    headers.TRACE: TraceSection,
    headers.SUMMARY: UsageSection,
    headers.IGNORED: Ignored,
}
_NEWLINE, _COMMA, _QUOTE, _ZERO, _NINE = b'\n,"09'
_STEP = 1 << 20  # bytes that stay in the processor's cache
_FOUR_BYTES = "<u4"
_HEADER_STARTS = np.frombuffer(b'"Dev"Sta"Tim"Typ', _FOUR_BYTES)
_LIKE_A_ROW = pattern(r'(?:[^,]*,){0,3}"?[\w ()./-]+ \(\d+\)"?,(?:[^,]*,){3}')
_COMMENT = pattern(r"[ \t]{0,40}(?://+|\*+|#+|>+)(?=[ \t]+\S)")  # what a log stands behind in source code, in a mail
_NAMES_DEVICE = pattern(
    r'[ \t]{0,9}Device "(?P<whole>[^"]{1,200} \(\d{1,6}\))"'
    r'|.{0,40}?GPU Device (?P<number>\d{1,6}): "(?P<name>[^"]{1,200})" with compute capability'
)
_REPLAY = "Some kernel(s) will be replayed"  # versions whose rates are decimal say "Warning: " before it
_EXAMPLE = 120
_PID_DIGITS = 18  # that fit in 64 bits


class Outcome(Struct):
    """What was met besides the tables themselves."""

    messages: Messages = field(default_factory=Messages)
    lines: int = 0
    rows: int = 0
    tables: int = 0
    skipped_lines: int = 0
    example_skipped: str | None = None
    pids: set[str] = field(default_factory=set)
    foreign: tuple[str, int] | None = None
    headerless: tuple[int, str] | None = None
    lost_rows: list[int] = field(default_factory=list)
    broken_rows: int = 0
    unquoted: tuple[int, int] | None = None  # how many fields a row has that lost its quotes, and its header
    devices: dict[str, int] = field(default_factory=dict)  # named beside tables, with the line
    cut_off: bool = False
    ends_in_row: bool = False

    @property
    def lacks_rows(self) -> bool:
        """Whether it is known that nvprof's log had more rows."""
        return bool(self.cut_off or self.ends_in_row or self.lost_rows or self.broken_rows or self.unquoted)


class Walk:
    """The state of reading: feed it blocks of whole lines, then `close` it.

    stretch_bytes: from how many bytes on rows of a long log are parsed together. given: headers for rows without any.
    """

    def __init__(self, store: Store, stretch_bytes: int, given: Sequence[Header] = ()) -> None:
        self.seen = Outcome()
        self._store = store
        self._stretch_bytes = stretch_bytes
        self._given = [_SECTIONS[header.kind](header, 0, store) for header in given]
        self._section: Section | TextSection | None = None
        self._before: Section | None = None
        self._topic = ""
        self._pid = self._whole = ""
        self._runs: dict[str, int] = {}
        self._opened: set[tuple[int, object]] = set()
        self._next_run = 0
        self._last_skipped = False

    def feed(self, block: Block) -> None:
        """Read a block of whole lines of nvprof's log."""
        data = block.data
        place = 0
        slow_until = 0 if block.is_long else len(data)
        while place < len(data):
            if place >= slow_until and isinstance(self._section, ColumnSection) and self._section.takes_stretches:
                stop = block.next_odd(place)
                if stop - place >= self._stretch_bytes and self._stretch(self._section, block, place, stop):
                    place = stop
                    continue
                slow_until = stop
            end = data.find(b"\n", place)
            end = len(data) if end < 0 else end
            self._line(data[place:end].decode())
            place = end + 1

    def parsed(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """The same blocks, their rows parsed like those of the table that is open now; in a thread that runs ahead."""
        for block in blocks:
            section = self._section
            if isinstance(section, ColumnSection):
                block.parse(section.form, self._store.codes, self._stretch_bytes)
            yield block

    def _stretch(self, section: ColumnSection, block: Block, start: int, stop: int) -> bool:
        """Give the open nvprof table many lines at once. False if they must be looked at one by one."""
        rows = block.rows(start, stop, section.form, self._store.codes)
        if rows is None and section.expects_units():
            rows = block.rows(start, stop, section.form, self._store.codes)
        if rows is None or not section.take_stretch(rows):
            return False
        number = len(rows)
        self.seen.lines += number
        self.seen.rows += number
        self._last_skipped = False
        return True

    def close(self, whole: bool) -> None:
        """The nvprof log ends; `whole` if it ends with a line end."""
        in_table = not whole and (self._section is not None or bool(self._given))
        self.seen.cut_off = in_table and self._last_skipped and not self.seen.unquoted
        self.seen.ends_in_row = in_table and not self._last_skipped
        self._end_table()
        for section in self._given:
            section.close()

    def _line(self, line: str) -> None:
        self.seen.lines += 1
        self._last_skipped = False
        self._whole = line
        if behind := _COMMENT.match(line):
            line = line[behind.end() :]
            line = line.lstrip() if line.lstrip().startswith('"') else line
        if line.startswith('"'):
            self._comma_separated(line)  # nothing else starts so
        elif not line.strip():
            if not self._begins_blank(line):
                self._end_table()
        elif message := PROFILER_LINE.fullmatch(line):
            self._profiler_line(message)
        elif is_chatter(line):
            self._name_device(line)
            if isinstance(self._section, TextSection):
                self._section.accepts(line)
            self.seen.messages.hear(self.seen.lines, line)
        elif text.is_header(line):
            self._open_text(line)
        else:
            self._comma_separated(line)

    def _begins_blank(self, line: str) -> bool:
        """Whether a blank line is the row of units of an nvprof table that has no units."""
        section = self._section
        return (
            isinstance(section, TextSection) and section.may_begin_blank and not section.rows and section.accepts(line)
        )

    def _comma_separated(self, line: str) -> None:
        if header := headers.find(line):
            self._open(header)
        elif self._row(line):
            return
        elif text.is_bare_row(line):
            self._open_text(line)
            self._row(line)
        else:
            self._skip(line)

    def _profiler_line(self, message: re.Match[str]) -> None:
        self._end_table()
        pid, words = message["pid"] or "", message["text"]
        if pid in ("PROF", "WARNING", "ERROR"):
            self.seen.foreign = self.seen.foreign or (headers.FOREIGN_NCU, self.seen.lines)
        elif pid.isdigit():
            self._pid = pid
            self.seen.pids.add(pid)
        if words.strip().endswith(("result:", "calls:")):
            self._topic = words.strip()
        if _REPLAY in words:
            self._store.rates = OLD_RATES if words.startswith("Warning: ") else RATES
        self.seen.messages.hear(self.seen.lines, words)

    def _row(self, line: str) -> bool:
        """Give a line to the open nvprof table, or to those without header."""
        section = self._section
        if isinstance(section, TextSection):
            taken = section.accepts(line)
        elif line.count('"') % 2:
            taken = False  # a name may have commas, so an open quote leaves unknown where fields end
        else:
            fields = headers.split(line)
            tables = self._given if section is None else [section]
            taken = any(table.accepts(fields) for table in tables)
        self.seen.rows += taken
        return taken

    def _name_device(self, line: str) -> None:
        match = _NAMES_DEVICE.match(line)
        if match:
            name = match["whole"] or f"{match['name'].strip()} ({match['number']})"
            self.seen.devices.setdefault(name.strip(), self.seen.lines)

    def _skip(self, line: str) -> None:
        """Program output in nvprof's log: counted, one example kept. Rows that lost their header are counted too."""
        self._name_device(line)
        self.seen.skipped_lines += 1
        self._last_skipped = True
        self.seen.example_skipped = self.seen.example_skipped or self._whole[:_EXAMPLE]
        if self._section is not None:
            self._look_for_rows(line)
            return
        if self._before is not None:
            fields = headers.split(line)
            if len(fields) == self._before.header.width and self._before.fits(fields):
                self.seen.lost_rows.append(self.seen.lines)
        elif not self.seen.tables and not self.seen.headerless and _LIKE_A_ROW.match(line):
            self.seen.headerless = self.seen.lines, line[:_EXAMPLE]

    def _look_for_rows(self, line: str) -> None:
        """A line of an open nvprof table that is no row, but was one before something happened to it."""
        header = self._section.header if isinstance(self._section, Section) else None
        if header is None or header.kind == headers.IGNORED:
            return
        number = len(headers.split(line))
        like_a_row = _LIKE_A_ROW.match(line) is not None
        if '"' not in line and number > header.width and (like_a_row or not header.quoted):
            self.seen.unquoted = self.seen.unquoted or (number, header.width)
        elif like_a_row and (line.startswith('"') or header.prefix):
            self.seen.broken_rows += 1

    def _open(self, header: Header) -> None:
        self._end_table()
        if header.kind in (headers.FOREIGN_NCU, headers.FOREIGN_NSYS):
            self.seen.foreign = header.kind, self.seen.lines
            return
        self.seen.tables += 1
        kind = headers.IGNORED if header.kind == headers.SUMMARY and self._of_api() else header.kind
        run = 0 if kind == headers.IGNORED else self._run(header)
        self._section = _SECTIONS[kind](header, run, self._store)

    def _open_text(self, line: str) -> None:
        self._end_table()
        self.seen.tables += 1
        run = 0 if self._of_api() else self._run(line)
        self._section = text.open_table(line, run, self._store, self._of_api())

    def _of_api(self) -> bool:
        return self._topic == "API calls:"

    def _run(self, header: object) -> int:
        """The number of an nvprof table's run: a process, and within it each further table of the same header."""
        run = self._runs.get(self._pid)
        if run is None or (run, header) in self._opened:
            run = self._runs[self._pid] = self._next_run
            self._next_run += 1
            if 0 < len(self._pid) <= _PID_DIGITS:
                self._store.processes[run] = int(self._pid)
        self._opened.add((run, header))
        return run

    def _end_table(self) -> None:
        if self._section is None:
            return
        self._section.close()
        ignored = isinstance(self._section, TextSection | Ignored)
        self._before = None if ignored else self._section  # type: ignore[assignment]
        self._section = None


class Block:
    """Whole lines of an nvprof log. is_long: of a long one, so that it pays to parse many lines together."""

    def __init__(self, data: bytes, is_long: bool) -> None:
        self.data, self.is_long = data, is_long
        self._parsed: dict[tuple[int, int], tuple[Form, ParsedRows | None]] = {}
        if is_long:
            self._odd  # noqa: B018 - now, in the thread that reads ahead

    def parse(self, form: Form, codes: pl.Series, stretch_bytes: int) -> None:
        """Parse the stretches of lines that may be rows, as long as they are likely to be rows of such a table."""
        bounds = [0, *self._odd.tolist(), len(self.data)]
        for start, stop in pairwise(bounds):
            if start:
                start = self.data.find(b"\n", start) + 1
            if stop - start >= stretch_bytes:
                self._parsed[start, stop] = form, self.rows(start, stop, form, codes)

    def rows(self, start: int, stop: int, form: Form, codes: pl.Series) -> ParsedRows | None:
        """The rows in a stretch of lines; None if a line of them is not clean."""
        parsed_as, rows = self._parsed.pop((start, stop), (None, None))
        if parsed_as == form:
            return rows
        return parse(self.data[start:stop], self.lines(start, stop), form, codes)

    def next_odd(self, place: int) -> int:
        """The start of the first line of the block from `place` on that may be no row; its end if there is none."""
        number = int(np.searchsorted(self._odd, place))
        return int(self._odd[number]) if number < len(self._odd) else len(self.data)

    def lines(self, start: int, stop: int) -> int:
        """How many lines of nvprof's log there are between two places of the block."""
        first, last = np.searchsorted(self._ends, (start, stop)).tolist()
        return int(last - first) + (start < stop and self.data[stop - 1] != _NEWLINE)

    @cached_property
    def _bytes(self) -> Array:
        return np.frombuffer(self.data, dtype=np.uint8)

    @cached_property
    def _ends(self) -> Array:
        steps = range(0, len(self.data), _STEP)
        return np.concatenate([np.flatnonzero(self._bytes[step : step + _STEP] == _NEWLINE) + step for step in steps])

    @cached_property
    def _odd(self) -> Array:
        """Starts of a block's lines that are headers, begin with neither a quote nor a digit, or end with a comma."""
        starts = np.append(0, self._ends + 1)
        starts = starts[starts < len(self.data)]
        ends = np.append(self._ends, len(self.data))[: len(starts)]
        first = self._bytes[starts]
        is_row = (first == _QUOTE) | ((first >= _ZERO) & (first <= _NINE))
        fours = np.ndarray(len(self.data), _FOUR_BYTES, self.data + bytes(3), strides=(1,))[starts]
        is_row &= (self._bytes[ends - 1] != _COMMA) & ~np.isin(fours, _HEADER_STARTS)
        return np.asarray(starts[~is_row])

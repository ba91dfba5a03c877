"""Walk over a log's lines: what opens a table, what belongs to it, what ends it, what is program output."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from eprof.profilers.nvprof import text
from eprof.profilers.nvprof.messages import PROFILER_LINE, Messages, is_chatter
from eprof.profilers.nvprof.section import Body, ColumnSection, Form, Ignored, Parsed, Section, parse
from eprof.profilers.nvprof.store import Store
from eprof.profilers.nvprof.summary import SummarySection
from eprof.profilers.nvprof.text import TextSection
from eprof.profilers.nvprof.trace import TraceSection, UsageSection
from eprof.profilers.nvprof.wide import WideSection
from eprof.rows import header as headers
from eprof.rows.cells import OLD_RATES, RATES
from eprof.rows.header import Header
from eprof.rows.pieces import Array
from eprof.rows.stream import Tuning

_SECTIONS: dict[str, type[Section]] = {
    headers.METRICS: SummarySection,
    headers.EVENTS: SummarySection,
    headers.WIDE: WideSection,
    headers.TRACE: TraceSection,
    headers.SUMMARY: UsageSection,
    headers.IGNORED: Ignored,
}
# What is quick to find and may end the rows of a table: an empty line, a line that starts with `=`, a header.
_NEWLINE, _EQUALS = b"\n="
_STEP = 1 << 21
_SHORT = 1 << 15  # bytes of a block that is likely to be read line by line
_HEADER_STARTS = (b'\n"Device",', b'\n"Start",', b'\n"Time(%)"', b'\n"Type",')
_HEADERS = tuple(start[1:] for start in _HEADER_STARTS)
_LIKE_A_ROW = re.compile(r'(?:[^,]*,){0,3}"?[\w ()./-]+ \(\d+\)"?,(?:[^,]*,){3}')
_COMMENT = re.compile(r"[ \t]{0,40}(?://+|\*+|#+|>+)(?=[ \t]+\S)")  # what a log stands behind in source code, in a mail
_NAMES_DEVICE = re.compile(
    r'[ \t]{0,9}Device "(?P<whole>[^"]{1,200} \(\d{1,6}\))"'
    r'|.{0,40}?GPU Device (?P<number>\d{1,6}): "(?P<name>[^"]{1,200})" with compute capability'
)
_REPLAY = "Some kernel(s) will be replayed"  # versions whose rates are decimal say "Warning: " before it
_EXAMPLE = 120
_PID_DIGITS = 18  # that fit in 64 bits


@dataclass
class Outcome:
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
        """Whether it is known that there were more rows."""
        return bool(self.cut_off or self.ends_in_row or self.lost_rows or self.broken_rows or self.unquoted)


class Walk:
    """The state of reading: feed it blocks of whole lines, then `close` it. given: headers for rows without any."""

    def __init__(self, store: Store, tuning: Tuning, given: Sequence[Header] = ()) -> None:
        self.seen = Outcome()
        self._store, self._tuning = store, tuning
        self._given = [_SECTIONS[header.kind](header, 0, store) for header in given]
        self._section: Section | TextSection | None = None
        self._before: Section | None = None
        self._topic = ""
        self._pid = self._whole = ""
        self._runs: dict[str, int] = {}
        self._opened: set[tuple[int, object]] = set()
        self._next_run = 0
        self._last_skipped = False

    def feed(self, marks: "Marks") -> None:
        """Read a block of whole lines."""
        block, place, slow_until = marks.block, 0, 0
        while place < len(block):
            if place >= slow_until and self._is_fast():
                slow_until = self._bodies(block, marks, place)
                if slow_until < 0:
                    place, slow_until = -slow_until, 0
                    continue
            end = block.find(b"\n", place)
            end = len(block) if end < 0 else end
            self._line(block[place:end].decode())
            place = end + 1

    def _bodies(self, block: bytes, marks: "Marks", place: int) -> int:
        """Try to read the rows from `place` on together. Gives minus the place behind, or up to where it failed."""
        if len(block) - place < self._tuning.fast_from:
            return len(block)
        stop = marks.next_break(place)
        for _ in range(2):
            if stop - place < self._tuning.fast_from:
                return stop
            if self._body(marks.body(place, stop)):
                return -stop
            stop = marks.next_header(place, stop)
        return stop

    def close(self, whole: bool) -> None:
        """The log ends; `whole` if it ends with a line end."""
        in_table = not whole and (self._section is not None or bool(self._given))
        self.seen.cut_off = in_table and self._last_skipped and not self.seen.unquoted
        self.seen.ends_in_row = in_table and not self._last_skipped
        self._end_table()
        for section in self._given:
            section.close()
        self._store.later.wait()

    def _is_fast(self) -> bool:
        section = self._section
        return isinstance(section, ColumnSection) and section.fast and not section.units_pending

    def foresee(self, marks: "Marks", workers: Executor) -> None:
        """Have a later block parsed as if it went on as the log does now; if it does not, this was for nothing.

        Most of a long log is one table, or tables of one form, so this is what uses the other cores.
        """
        section = self._section
        if marks.is_foreseen or not isinstance(section, ColumnSection) or not self._is_fast():
            return
        marks.is_foreseen = True
        form = section.form
        for start, stop in marks.bodies(section.has_units):
            if stop - start >= self._tuning.fast_from:
                work = workers.submit(parse, memoryview(marks.block)[start:stop], form)
                marks.foreseen[start, stop] = form, work

    def _body(self, body: Body) -> bool:
        """Give the open table many lines at once. False if they must be looked at one by one."""
        section = self._section
        odd = section.add_body(body, self._is_output) if isinstance(section, ColumnSection) else None
        if odd is None:
            return False
        self.seen.lines += body.lines
        self.seen.rows += body.lines - len(odd)
        self.seen.skipped_lines += len(odd)
        for line in odd:
            self._look_for_rows(line)
        self._last_skipped = False
        return True

    def _is_output(self, line: str) -> bool:
        """Whether a line is program output and nothing else (and not the first, which is kept as an example)."""
        return self.seen.example_skipped is not None and not (
            not line.strip()
            or PROFILER_LINE.fullmatch(line)
            or is_chatter(line)
            or text.is_header(line)
            or headers.find(line)
        )

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
        elif said := PROFILER_LINE.fullmatch(line):
            self._profiler_line(said)
        elif is_chatter(line):
            self._chatter(line)
        elif text.is_header(line):
            self._open_text(line)
        else:
            self._comma_separated(line)

    def _begins_blank(self, line: str) -> bool:
        """Whether a blank line is the row of units of a table that has no units."""
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

    def _chatter(self, line: str) -> None:
        self._name_device(line)
        if isinstance(self._section, TextSection):
            self._section.accepts(line)
        self.seen.messages.hear(self.seen.lines, line)

    def _profiler_line(self, said: re.Match[str]) -> None:
        self._end_table()
        pid, words = said["pid"] or "", said["text"]
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
        """Give a line to the open table, or to those without header."""
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
        """Remember the device that a line beside the tables names: nvprof's, or that of NVIDIA's samples."""
        found = _NAMES_DEVICE.match(line)
        if found:
            name = found["whole"] or f"{found['name'].strip()} ({found['number']})"
            self.seen.devices.setdefault(name.strip(), self.seen.lines)

    def _skip(self, line: str) -> None:
        """Program output: counted, one example kept. Rows that lost their header are counted too."""
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
        """A line below the header of a table that is no row of it, but was one before something happened to it."""
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
        if not issubclass(_SECTIONS[kind], ColumnSection):
            self._store.later.wait()
        self._section = _SECTIONS[kind](header, run, self._store)

    def _open_text(self, line: str) -> None:
        self._end_table()
        self.seen.tables += 1
        self._store.later.wait()
        run = 0 if self._of_api() else self._run(line)
        self._section = text.open_table(line, run, self._store, self._of_api())

    def _of_api(self) -> bool:
        return self._topic == "API calls:"

    def _run(self, header: object) -> int:
        """The number of a table's run: a process, and within it each further table of the same header."""
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


class Marks:
    """A block, and where in it the rows of a table may end. Looked for in steps that stay in the processor's cache."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.foreseen: dict[tuple[int, int], tuple[Form, Future[Parsed]]] = {}
        self.is_foreseen = False
        if len(block) > _SHORT:
            self._breaks  # noqa: B018 - now, beside the reading of the block before

    @cached_property
    def _ends(self) -> Array:
        steps = range(0, len(self.block), _STEP)
        found = [np.flatnonzero(self._data[start : start + _STEP] == _NEWLINE) + start for start in steps]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)

    @cached_property
    def _breaks(self) -> Array:
        starts = self._ends[:-1] + 1 if self.block.endswith(b"\n") else self._ends + 1
        first = self._data[starts]
        return np.asarray(starts[(first == _NEWLINE) | (first == _EQUALS)])

    @property
    def _data(self) -> Array:
        return np.frombuffer(self.block, dtype=np.uint8)

    def next_break(self, place: int) -> int:
        """The start of the first line from `place` on that is empty or starts with `=`."""
        found = int(np.searchsorted(self._breaks, place))
        return int(self._breaks[found]) if found < len(self._breaks) else len(self.block)

    def bodies(self, has_units: bool) -> Iterator[tuple[int, int]]:
        """Where rows may stand together: up to the first break, and from each header (and row of units) to the next."""
        yield 0, self.next_break(0)
        start = 0
        for place in self._breaks.tolist():
            if place < start:
                continue
            start = place
            while self.block.startswith((b"=", b"\n"), start):
                start = self._next_line(start)
            if self.block.startswith(_HEADERS, start):
                for _ in range(1 + has_units):
                    start = self._next_line(start)
                yield start, self.next_break(start)

    def _next_line(self, place: int) -> int:
        return self.block.find(b"\n", place) + 1 or len(self.block)

    def body(self, place: int, stop: int) -> Body:
        """The lines between two places."""
        return Body(memoryview(self.block)[place:stop], self.lines(place, stop), self.foreseen.pop((place, stop), None))

    def next_header(self, place: int, end: int) -> int:
        """The start of the first line between `place` and `end` that is a header with its quotes."""
        found = [self.block.find(start, place, end) for start in _HEADER_STARTS]
        return min([one + 1 for one in found if one >= 0], default=end)

    def lines(self, place: int, end: int) -> int:
        """How many lines there are between two places."""
        first, last = np.searchsorted(self._ends, (place, end)).tolist()
        return int(last - first) + (place < end and self.block[end - 1] != _NEWLINE)

"""Logs of nvprof, in CSV and text: from lines to a `Log`, or why there is none.

`Messages` keeps what nvprof says of missing tables and incomplete counts. `Walk` goes over the lines: what opens a
table, what belongs to it, what ends it, what is output of the program.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
from msgspec import Struct, field

from eprof.base.errors import LogError, UnknownLogError
from eprof.base.gpus import alike, beginning, told_in, unnumbered
from eprof.base.optional import only
from eprof.base.resources import ahead, is_memory_scarce
from eprof.base.text import counted, few, pattern, phrase, when
from eprof.logs.log import CUT_OFF, Log, Shape, Table, of_several_programs
from eprof.logs.stream import Source, Tuning, split
from eprof.profilers import signs
from eprof.profilers.nvprof import tables, text
from eprof.profilers.nvprof.sections import SummarySection, TraceSection, UsageSection, WideSection
from eprof.profilers.nvprof.tables import (
    ColumnSection,
    Form,
    Header,
    NvprofStore,
    OpenTable,
    Rows,
    header_of,
    header_of_fields,
    parse,
)
from eprof.profilers.nvprof.text import TextSection
from eprof.readers.cells import OLD_RATES, RATES
from eprof.readers.messages import ASSERTION, Findings
from eprof.readers.sections import NEWLINE, QUOTE, STEP

PROFILER_LINE = pattern(
    r'(?:[^,"=]{1,40},){0,3}[ \t]{0,40}(?:==(?P<pid>\d+|PROF|WARNING|ERROR)==|={8}(?!.*=\s*$)) (?P<text>.*)'
)
_COMMAND = pattern(r"NVPROF is profiling process (\d+), command: (.*)")
_OF_POWER = pattern(r"(?i).*(power|watts?|_w\b)")
_LONGEST = 4000  # characters of a message that are looked at
# A log has one of these for each launch.
_APPLICATION = "Profiling application: "
_ROUTINE = ("Replaying kernel ", "Profiling result:", "Metric result:", "Event result:")

# Lines of nvprof that carry no `==PID==` and say nothing about counts: not program output.
_CHATTER = pattern(
    r'(?:[^,"=]{1,40},){0,3}\s*(?:No API activities were profiled\.|This can happen because of short execution .*'
    r'|Total CPU (?:Page faults|thrashes|throttles).*: \d+|Device "[^"]+"'
    r"|(?:Regs|SSMem|DSMem|SrcMemType|DstMemType|Src Dev|Dst Dev|Src Ctx|Dst Ctx): .*"
    r"|No (?:kernels|events/metrics) were profiled\.|Internal profil(?:er|ing) error.*)"
)


class Messages:
    """The messages of nvprof in a log, and the commands of the programs that the log names."""

    def __init__(self) -> None:
        self.findings = Findings("nvprof")
        self.commands: dict[str, str] = {}  # by the number of the process
        self.applications: dict[str, None] = {}  # commands again, of which a part of a log may have no other line

    def hear(self, number: int, text: str) -> None:
        """Keep what line `number` of an nvprof log says: a program's command, or a message that is not routine."""
        if command := _COMMAND.match(text):
            self.commands.setdefault(command[1], command[2].strip()[:_LONGEST])
        elif text.startswith(_APPLICATION):
            self.applications[text.removeprefix(_APPLICATION).strip()[:_LONGEST]] = None
        elif not text.startswith(_ROUTINE):
            self.findings.look(number, text[:_LONGEST])

    def notes(self) -> Iterator[str]:
        """Yields notes on an nvprof log with tables: it is of several programs, or nvprof's messages bear on counts."""
        several = of_several_programs(self.commands.values())
        if several is not None:
            yield f"the log is of {several}"
        for message, quote in self.findings.quotes.items():
            if message.note:
                yield f"{message.note.format(detail=quote.detail)} (line {quote.number})"


_STRETCH_BYTES = 1 << 16  # of rows that are read sooner together than line by line
_SECTIONS: dict[str, type[OpenTable]] = {
    tables.METRICS: SummarySection,
    tables.EVENTS: SummarySection,
    tables.WIDE: WideSection,
    tables.TRACE: TraceSection,
    tables.SUMMARY: UsageSection,
}
_OF_HEADERS = np.frombuffer(b'"Dev"Sta"Tim"Typ', "<u4")
_LIKE_A_ROW = pattern(r'(?:[^,]*,){0,3}"?[\w ()./-]+ \(\d+\)"?,(?:[^,]*,){3}|"GPU activities",')
_COMMENT = pattern(r"[ \t]{0,40}(?://+|\*+|#+|>+)(?=[ \t]+\S)")  # what a log stands behind in source code, in a mail
_NAMES_DEVICE = pattern(
    r'[ \t]{0,9}Device "(?P<whole>[^"]{1,200} \(\d{1,6}\))"'
    r'|.{0,40}?GPU Device (?P<number>\d{1,6}): "(?P<name>[^"]{1,200})" with compute capability'
)
_REPLAY = "Some kernel(s) will be replayed"  # versions whose rates are decimal say "Warning: " before it
_EXAMPLE = 120
_SOME = 4  # GPUs that a name may be of
_PID_DIGITS = 18  # that fit in 64 bits


def walk(
    source: Source,
    pieces: Iterator[bytes],
    tuning: Tuning,
    columns: Sequence[str] | None,
    names: Mapping[str, str],
    keep: Container[str] | None,
    parts: str | None,
    size_bytes: int,
) -> Walk:
    """The finished `Walk` over all blocks of an nvprof log of about `size_bytes`; other arguments as in `logs.read`.

    Raises LogError: `columns` are not those of a table.
    """
    given: list[Header] = []
    if columns is not None:
        header = header_of_fields(list(columns))
        if header is None or header.kind in (tables.FOREIGN_NCU, tables.FOREIGN_NSYS, tables.IGNORED):
            raise LogError(
                "the list of columns does not name those of an nvprof table; it needs at least Device, Context, "
                "Stream, Kernel and the counters in the order of the log"
            )
        given.append(header)
        if header.prefix:  # lines may come without the columns that a script put in front, too
            given.append(Header(header.kind, header.columns))
    store = NvprofStore(parts, names=names, keep=keep)
    lines = Walk(source, store, min(_STRETCH_BYTES, tuning.fast_from), given)
    is_long = size_bytes >= tuning.fast_from and not is_memory_scarce()
    blocks: Iterator[Block] = (Block(block, is_long) for block in pieces)
    if is_long:
        # Three threads: one reads, one parses rows, and this one adds them up.
        blocks = ahead(lines.parsed(ahead(blocks)))
    for block in blocks:
        lines.feed(block)
    lines.close()
    return lines


def _line_notes(seen: Outcome, source: Source) -> Iterable[str]:
    """Yields notes on lines of an nvprof log that are no rows of a table: skipped, broken, without quotes, cut off."""
    if seen.skipped_lines:
        lines = counted(seen.skipped_lines, "line is", "lines are")
        yield f"{lines} no part of a table and skipped, for example: {seen.example_skipped}"
    if seen.unquoted:
        yield (
            f"{_lost_quotes(seen.unquoted)}, so rows with commas in a name were not read and totals are lower bounds; "
            "give the log as nvprof wrote it"
        )
    if seen.broken_rows:
        rows = counted(seen.broken_rows, "of them looks like a row", "of them look like rows")
        yield f"{rows} that something happened to, so totals are lower bounds"
    if seen.lost_rows:
        look = counted(len(seen.lost_rows), "of them looks", "of them look")
        yield (
            f"{look} like rows of a table that an empty line or a `==` line "
            f"had ended (the first is line {seen.lost_rows[0]}); they were not read"
        )
    if seen.cut_off:
        yield CUT_OFF
        yield f"its last line ({seen.lines}) is no whole row"
    elif not source.ends_with_newline and seen.ends_in_row:
        yield (
            f"the last row (line {seen.lines}) has no line end; if the log was cut off, its last field is not whole, "
            "so totals are taken for lower bounds"
        )
    if seen.foreign:
        yield f"a table of another profiler (line {seen.foreign[1]}) was not read"


def _lost_quotes(unquoted: tuple[int, int]) -> str:
    return f"the log has lost its quotes (a row has {unquoted[0]} fields and its header {unquoted[1]})"


def _why_nothing(seen: Outcome, store: NvprofStore, has_columns: bool) -> str | None:
    """Why an nvprof log has no kernels, and what to do, the likeliest cause first; None: it is no log of nvprof's."""
    if reason := seen.messages.findings.explanation():
        return reason
    if seen.headerless and not has_columns:
        return (
            f"the rows have no header line (line {seen.headerless[0]} says: {seen.headerless[1]}); pass --columns FILE "
            "with one line of column names"
        )
    if has_columns and not seen.tables:
        return "no row has as many fields as the list of columns; give the list that belongs to this log"
    if store.ranges:
        return (
            "the log holds only tables by NVTX range, and ranges may overlap; give the whole log, with the table below "
            "`Profiling result:`"
        )
    if store.others:
        return (
            f"the log holds copies and memsets ({', '.join(list(store.others)[:3])}) but no kernels; see that the "
            "program launches kernels on the GPU"
        )
    if seen.tables and seen.rows:
        return (
            "the log's tables hold no kernels, only such things as API calls; profile with --metrics, --events or a "
            "GPU trace"
        )
    if seen.unquoted:
        return f"{_lost_quotes(seen.unquoted)}, so fields cannot be told apart; give the log as nvprof wrote it"
    if store.lacks_units:
        return (
            "the row of units of the trace (`s,ms,...`) is not there, so its times tell nothing; give the log as "
            "nvprof wrote it"
        )
    if seen.tables and seen.lines == 1:
        return (
            "this is a list of columns without rows; give it beside the log that has the rows, as in `eprof report "
            "ROWS.csv --columns COLUMNS.csv`, or profile again if more was in it"
        )
    if seen.collapsed:
        return (
            "the blanks between the columns of its table were put together, as Markdown and HTML do, so fields cannot "
            "be told apart; give the log as nvprof wrote it"
        )
    if seen.tables:
        return (
            f"a table begins but has no rows (the log has {seen.lines} lines); the log looks cut off, so profile again"
        )
    if seen.messages.commands:
        return (
            f"nvprof started but wrote no result (the log ends at line {seen.lines}); see that the program ends by "
            "itself, and profile again"
        )
    return None


class Outcome(Struct):
    """What was met in a log of nvprof besides its tables; numbers of lines count from 1.

    foreign: the kind and line of another profiler's table. headerless: line and text of the first row without a header.
    lost_rows: lines of rows below a table's end. broken_rows: how many lines look like rows that were damaged.
    """

    messages: Messages = field(default_factory=Messages)
    lines: int = 0
    rows: int = 0
    tables: int = 0
    skipped_lines: int = 0
    example_skipped: str | None = None
    foreign: tuple[str, int] | None = None
    headerless: tuple[int, str] | None = None
    lost_rows: list[int] = field(default_factory=list)
    broken_rows: int = 0
    unquoted: tuple[int, int] | None = None  # how many fields a row has that lost its quotes, and its header
    collapsed: bool = False  # the blanks between a header's columns, which alone tell the fields of rows, were lost
    devices: dict[str, int] = field(default_factory=dict)  # named beside tables, with the line
    of_run: dict[int, set[str]] = field(default_factory=dict)  # devices that are named beside the tables of a run
    cut_off: bool = False
    ends_in_row: bool = False


class Walk:
    """A log of nvprof while it is read: feed it blocks of whole lines, then `close` it, then ask for its `log`.

    stretch_bytes: from how many bytes on rows of a long log are parsed together. given: headers for rows without any.
    """

    def __init__(self, source: Source, store: NvprofStore, stretch_bytes: int, given: Sequence[Header]) -> None:
        self.source = source
        self.store = store
        self.seen = Outcome()
        self._stretch_bytes = stretch_bytes
        self._given = [_SECTIONS[header.kind](header, 0, store) for header in given]
        self._section: OpenTable | TextSection | None = None
        self._before: OpenTable | None = None
        self._topic = ""
        self._counters = text.METRICS_FOLLOW
        self._pid = self._whole = ""
        self._runs: dict[str, int] = {}
        self._opened: set[tuple[int, object]] = set()
        self._next_run = 0
        self._last_skipped = False

    def feed(self, block: Block) -> None:
        """Read a block of whole lines of nvprof's log: long stretches of rows at once, all others line by line."""
        data = block.data
        place = 0
        slow_until = 0 if block.is_long else len(data)
        while place < len(data):
            section = self._section
            may_be_long = isinstance(section, ColumnSection) and not (section.header.prefix or section.units_pending)
            if place >= slow_until and isinstance(section, ColumnSection) and may_be_long:
                stop = block.next_odd(place)
                if stop - place >= self._stretch_bytes and self._stretch(section, block, place, stop):
                    place = stop
                    continue
                slow_until = stop
            end = data.find(b"\n", place)
            end = len(data) if end < 0 else end
            self._line(data[place:end].decode())
            place = end + 1

    def parsed(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yields blocks of nvprof's log, rows parsed as of the table that is open now; for a thread that runs ahead."""
        for block in blocks:
            section = self._section
            if isinstance(section, ColumnSection):
                block.parse(section.form, self._stretch_bytes)
            yield block

    def _stretch(self, section: ColumnSection, block: Block, start: int, stop: int) -> bool:
        """Give the open nvprof table the block's lines from byte `start` to `stop` at once; False: take them singly."""
        rows = block.rows(start, stop, section.form)
        if rows is None and section.expects_units():
            rows = block.rows(start, stop, section.form)
        if rows is None or not section.all_fit(rows):
            return False
        section.add_lines()
        section.rows += len(rows)
        section.add(rows)
        self.seen.lines += len(rows)
        self.seen.rows += len(rows)
        self._last_skipped = False
        self._whole = ""
        return True

    def close(self) -> None:
        """End the nvprof log: close its open tables, and see whether it was cut off."""
        in_table = not self.source.ends_with_newline and (self._section is not None or bool(self._given))
        # A row has letters or digits, or a quote before them: what ends a comment or a fence is none.
        is_row = '"' in self._whole or any(map(str.isalnum, self._whole))
        has_kernels = type(self._section) is not OpenTable and not isinstance(self._section, text.TextOthers)
        self.seen.cut_off = in_table and self._last_skipped and is_row and has_kernels and not self.seen.unquoted
        # A name in quotes that are closed is whole, and what is behind copies and calls are no kernels.
        may_be_cut = not self._whole.endswith('"') and (self._section is None or self._section.is_in_kernels)
        self.seen.ends_in_row = in_table and not self._last_skipped and may_be_cut
        self._end_table()
        for section in self._given:
            section.close()

    def log(self, has_columns: bool) -> Log:
        """The `Log` of nvprof's lines. has_columns: the user named the columns. Raises LogError: it has no kernels."""
        source, store, seen = self.source, self.store, self.seen
        if len(seen.devices) > 1:
            of_run = {run: name for run, names in seen.of_run.items() if (name := only(names))}
            summaries = store.pieces.get(tables.SUMMARY, [])
            if {run for piece in summaries for run in piece.run.tolist()} <= of_run.keys():  # all, or none
                for piece in summaries:
                    piece.device[:] = [store.devices.of(of_run[run]) for run in piece.run.tolist()]
        are_several = not seen.devices and store.name_cut_off()
        made = store.tables()
        store.leave_out_repeats(made)
        if not made:
            damaged = when(not seen.lines, phrase(" ({})", next(iter(source.notes), "")))
            reason = _why_nothing(seen, store, has_columns)
            if reason is not None:
                raise LogError(f"{source.path}: {reason}{damaged}")
            example = phrase(" (one says: {})", seen.example_skipped)
            instead = "give a log as one of them writes it, or let `eprof run PROGRAM` make one"
            if _OF_POWER.match(example):
                instead = (
                    "watts measured elsewhere go beside a profiler's log, as --energy J (mean watts times seconds)"
                )
            raise UnknownLogError(
                f"{source.path}: no log of a profiler that eprof reads ({', '.join(signs())}) was found in "
                f"{counted(seen.lines, 'line')}{example}; {instead}{damaged}"
            )
        names = store.kernels.names()
        sums_of = sorted(store.shapes.items())
        shapes = tuple(Shape(names[kernel], int(sums[0]), *sums[1:].tolist()) for kernel, sums in sums_of)
        models = {unnumbered(name) for name in seen.devices}
        device = only(seen.devices) or only(models)  # nothing tells which of several of a model ran a kernel
        if not seen.devices and not are_several:  # two that lines beside the tables name are none
            cut_off = only(set(store.longest.values())) or ""
            may_be = beginning(cut_off)
            device = told_in(source.head) or alike(may_be, cut_off)
            if len(may_be) > 1:
                store.notes.append(
                    f'the table cuts the name of the GPU off after "{cut_off}"; it may be {few(may_be, _SOME)}: say '
                    "which with --costs"
                )
        of_kernels = {run for table in made for run in table.rows.run.tolist()}
        command, calls = self._longest(made), tuple(store.calls.values())
        log = source.log(
            made,
            [*seen.messages.notes(), *source.notes, *store.notes, *store.closing_notes(), *_line_notes(seen, source)],
            lines=seen.lines,
            skipped_lines=seen.skipped_lines,
            command=command,
            runs=max([len(of_kernels), *(of_function.runs for of_function in calls)]),
            device=device,
            several_devices=len(seen.devices) > 1 or are_several,
            shapes=shapes,
            idle=store.gaps.idle,
            copies_s=store.copies_s,
            copies=store.copies,
            calls_of_host=calls,
        )
        lacks_rows = seen.cut_off or seen.ends_in_row or seen.lost_rows or seen.broken_rows or seen.unquoted
        return log.of_bounds(bool(lacks_rows))

    def _longest(self, tables: Sequence[Table]) -> str | None:
        """The command in nvprof's log whose kernels take most time; None: not named."""
        commands = self.seen.messages.commands
        times_s: Counter[str] = Counter()
        for rows in (table.rows for table in tables):
            if rows.process is not None:
                processes, place = np.unique(rows.process, return_inverse=True)
                of_process_s = np.bincount(place, np.nan_to_num(rows.time_s))
                for process, time_s in zip(processes.tolist(), of_process_s.tolist(), strict=True):
                    times_s[commands.get(str(process), "")] += time_s
        command = max(commands.values(), key=times_s.__getitem__, default="")
        if len(set(commands.values())) > 1 and times_s[command]:
            percent = 100 * times_s[command] / times_s.total()
            self.store.notes.append(f"`{command[:_EXAMPLE]}` takes {percent:.3g} % of the time of kernels")
        return command or only(self.seen.messages.applications) or None

    def _line(self, line: str) -> None:
        """Take a line of an nvprof log: a row or header, a table's end, a message of nvprof, or program output."""
        self.seen.lines += 1
        self._last_skipped = False
        self._whole = line
        if behind := _COMMENT.match(line):
            line = line[behind.end() :]
            if line.lstrip().startswith('"'):
                line = line.lstrip()
        if line.startswith('"'):
            self._comma_separated(line)  # nothing else starts so
        elif not line.strip():
            # A blank line is the row of units of a table that has no units, or the end of one.
            section = self._section
            if not (isinstance(section, TextSection) and section.takes_blank(line)):
                self._end_table()
        elif message := PROFILER_LINE.fullmatch(line):
            self._end_table()
            pid, words = message["pid"] or "", message["text"]
            if pid in ("PROF", "WARNING", "ERROR"):
                self.seen.foreign = self.seen.foreign or (tables.FOREIGN_NCU, self.seen.lines)
            elif pid:
                self._pid = pid
            if words.strip().endswith(("result:", "calls:")):
                self._topic = words.strip()
            if _REPLAY in words:
                self.store.rates = OLD_RATES if words.startswith("Warning: ") else RATES
            self.seen.messages.hear(self.seen.lines, words)
        elif _CHATTER.fullmatch(line):
            self._name_device(line)
            if isinstance(self._section, TextSection):
                self._section.takes_row(line)
            self.seen.messages.hear(self.seen.lines, line)
        elif text.is_header(line):
            self._open_text(line)
        else:
            self._comma_separated(line)

    def _comma_separated(self, line: str) -> None:
        """Take a line that may be a header of nvprof's CSV, or a row."""
        if header := header_of(line):
            self._end_table()
            if header.kind in (tables.FOREIGN_NCU, tables.FOREIGN_NSYS):
                self.seen.foreign = header.kind, self.seen.lines
                return
            self.seen.tables += 1
            if header.kind == tables.IGNORED:
                self._section = OpenTable(header, 0, self.store)
            elif header.kind == tables.SUMMARY and self._of_api():
                self._section = UsageSection(header, 0, self.store, of_api=True)
            else:
                self._section = _SECTIONS[header.kind](header, self._run(header), self.store)
        elif self._row(line):
            return
        elif text.is_bare_row(line, self.seen.tables > 0):
            self._open_text(line)
            self._row(line)
        elif self._section is None and text.KERNEL.fullmatch(line.rstrip()):  # metrics without a header
            self._section = text.open_table(self._counters, self._run(line), self.store, False)
            self._row(line)
        else:
            self._skip(line)

    def _row(self, line: str) -> bool:
        """Give a line to the open nvprof table, or to tables without header; returns whether one took it as a row."""
        section = self._section
        if isinstance(section, TextSection):
            taken = section.takes_row(line)
        elif line.count('"') % 2:
            taken = False  # a name may have commas, so an open quote leaves unknown where fields end
        else:
            fields = split(line)
            takers = self._given if section is None else [section]
            taken = any(taker.takes_row(fields) for taker in takers)
            if taken and section is not None and section.header.kind == tables.IGNORED:
                # Totals of Unified Memory name the device, which the summary above them does not.
                place = section.header.position("Device")
                if place is not None and tables.DEVICE.search(fields[place]):
                    self.seen.devices.setdefault(fields[place].strip(), self.seen.lines)
        self.seen.rows += taken
        return taken

    def _name_device(self, line: str) -> None:
        """Remember the GPU that a line beside nvprof's tables names, with the line's number and the run."""
        match = _NAMES_DEVICE.match(line)
        if match:
            name = match["whole"] or f"{match['name'].strip()} ({match['number']})"
            self.seen.devices.setdefault(name.strip(), self.seen.lines)
            if not isinstance(self._section, text.TextCounters):
                self.seen.of_run.setdefault(self._runs.get(self._pid, 0), set()).add(name.strip())

    def _skip(self, line: str) -> None:
        """Program output in nvprof's log: counted, one example kept. Rows that lost their header are counted too."""
        self._name_device(line)
        if ASSERTION in line:
            self.seen.messages.hear(self.seen.lines, line)
        self.seen.skipped_lines += 1
        self._last_skipped = True
        # A ruler ("=====") or a comment is an example only where all are such.
        example = self.seen.example_skipped or ""
        is_better = example.startswith("#") and not line.startswith("#")
        if is_better or not any(map(str.isalnum, example)):
            self.seen.example_skipped = self._whole[:_EXAMPLE]
        like_a_row = _LIKE_A_ROW.match(line) is not None
        if isinstance(self._section, OpenTable) and self._section.header.kind != tables.IGNORED:
            # Of an open table, no row, but maybe one before something happened to it.
            header = self._section.header
            number = len(split(line))
            if '"' not in line and number > header.width and (like_a_row or not header.quoted):
                self.seen.unquoted = self.seen.unquoted or (number, header.width)
            elif like_a_row and (line.startswith('"') or header.prefix):
                self.seen.broken_rows += 1
        elif self._section is not None:
            return
        elif self._before is not None:
            fields = split(line)
            if len(fields) == self._before.header.width and self._before.fits(fields):
                self.seen.lost_rows.append(self.seen.lines)
        elif not self.seen.tables and not self.seen.headerless and like_a_row:
            self.seen.headerless = self.seen.lines, line[:_EXAMPLE]

    def _open_text(self, line: str) -> None:
        """Open the table of nvprof's text that `line` begins: a header, or a first row that has lost its header."""
        self._end_table()
        self.seen.tables += 1
        if text.COUNTERS.fullmatch(line):
            self._counters = line
        run = 0 if self._of_api() else self._run(tuple(line.split()))
        self.seen.collapsed |= "  " not in line.strip()
        self._section = text.open_table(line, run, self.store, self._of_api())

    def _of_api(self) -> bool:
        return self._topic == "API calls:"

    def _run(self, header: object) -> int:
        """The number of the run that an nvprof table is of: one a process, a new one where its header comes again."""
        run = self._runs.get(self._pid)
        if run is None or (run, header) in self._opened:
            run = self._runs[self._pid] = self._next_run
            self._next_run += 1
            if 0 < len(self._pid) <= _PID_DIGITS:
                self.store.processes[run] = int(self._pid)
        self._opened.add((run, header))
        return run

    def _end_table(self) -> None:
        """Close nvprof's open table; one of rows in CSV is remembered, to know rows that stand below its end."""
        if self._section is None:
            return
        self._section.close()
        self._before = None
        if isinstance(self._section, OpenTable) and type(self._section) is not OpenTable:
            self._before = self._section
        self._section = None


class Block:
    """A block of whole lines of an nvprof log. is_long: the log is so long that many lines are parsed together."""

    def __init__(self, data: bytes, is_long: bool) -> None:
        self.data, self.is_long = data, is_long
        self._parsed: dict[tuple[int, int], tuple[Form, Rows | None]] = {}
        self._odd: list[int] = [*(_odd_lines(data) if is_long and data else ()), len(data)]

    def parse(self, form: Form, stretch_bytes: int) -> None:
        """Parse ahead, as `form`, those long stretches of the block's lines that may be rows of nvprof's open table."""
        for start, stop in pairwise([0, *self._odd]):
            if start:
                start = self.data.find(b"\n", start) + 1
            if stop - start >= stretch_bytes:
                self._parsed[start, stop] = form, self.rows(start, stop, form)

    def rows(self, start: int, stop: int, form: Form) -> Rows | None:
        """The rows of an nvprof table, parsed as `form`, from byte `start` to `stop`; None: a line is not clean."""
        parsed_as, rows = self._parsed.pop((start, stop), (None, None))
        return rows if parsed_as == form else parse(memoryview(self.data)[start:stop], form)

    def next_odd(self, place: int) -> int:
        """The start of the first line of the block from `place` on that may be no row; its end if there is none."""
        return self._odd[bisect_left(self._odd, place)]


def _odd_lines(data: bytes) -> list[int]:
    """The starts of the lines in a block of nvprof's log that may be no rows: headers, messages, program output."""
    text = np.frombuffer(data, np.uint8)
    steps = ((first, text[:-1][first : first + STEP] == NEWLINE) for first in range(0, len(text), STEP))
    starts = np.concatenate([[0], *(first + 1 + np.flatnonzero(is_end) for first, is_end in steps)])
    letters = text[starts]
    is_row = (letters == QUOTE) | (letters >= ord("0")) & (letters <= ord("9"))
    beginnings = np.ndarray(max(len(text) - 3, 0), "<u4", data, strides=(1,))  # the four bytes from each on
    with_four = starts[starts < len(beginnings)]
    is_row[: len(with_four)] &= ~np.isin(beginnings[with_four], _OF_HEADERS)
    odd: list[int] = starts[~is_row].tolist()
    return odd

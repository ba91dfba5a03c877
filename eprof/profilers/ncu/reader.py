"""Logs of Nsight Compute (`ncu --csv`) and summaries of Nsight Systems (`nsys stats`): from blocks to a `Log`."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eprof.base.errors import LogError
from eprof.base.text import few
from eprof.profilers.ncu import broken, csv, derived, long, wide
from eprof.profilers.ncu import parts as ncu_parts
from eprof.profilers.ncu.csv import Lines, Rows, Section
from eprof.profilers.ncu.derived import TIMES
from eprof.profilers.ncu.folding import Numbers, joined, whole_launches
from eprof.profilers.ncu.long import Long, Part
from eprof.profilers.ncu.messages import CSV, IMPORTED, Messages
from eprof.profilers.ncu.numbers import Locale, Style, Unit
from eprof.profilers.ncu.page import COLUMNS, Page, uncommented
from eprof.profilers.ncu.tables import ASIDE, counting, tables_of
from eprof.profilers.ncu.wide import Sample, Wide
from eprof.profilers.nsys import trace
from eprof.profilers.nsys.summary import Nsys
from eprof.rows.log import Log
from eprof.rows.stream import Source
from eprof.rows.threads import ahead, are_dear

_SIGN = re.compile(
    rb'(?:^|\n)(?:[^\n]*Process ID"?[,;\t] ?"?(?:Process|Kernel) Name'
    rb'|[^\n]{0,300}Kernel Name"?[,;\t][^\n]{0,300}Metric Name'
    rb'|(?:[#/*>]+ *)?==(?:PROF|ERROR|WARNING)== |"?Time ?\(%\)"?,"?Total Time \('
    rb'|"?Start ?\(\w+\)"?,"?Duration ?\(\w+\)"?,"?CorrId"?,|(?:"?PID"?,"?TID"?,"?DevId"?,)?"?Count"?,"?QCount"?,'
    rb"|[ \t]*(?:Time ?\(%\) +Total Time \(|Start \(\w+\) +Duration \(\w+\) +CorrId )"
    rb"|[ \t]*(?:PID +TID +DevId +)?Count +QCount "
    rb"|unrecognised option '|the argument for option '|Invalid option --|[ \t]*Note: The shown averages are calc"
    rb'|"?(?:Address|Line No)"?(?:,| {2,})"?Source"?[, \r\n]|"?Launch Attribute"?(?:,| +)"?Value'
    rb"|[^\n]*, Context \d+, Stream \d+|[#/*> \t]* +Metric Name +Metric Unit +(?:Metric Value|Minimum))"
)
_NVPROF = re.compile(rb'(?:^|\n)(?:==\d+== |"?(?:Device|Start|Time\(%\)|Type)"?,)')
_LABEL = re.compile(r"ncu device \d+ \(CC (\d+\.\d+)\)")
_RATE = re.compile(r"\.(?:pct|ratio|max_rate)$|\.(?:pct_of|per_cycle|peak)_")
_SHOWN, _FEW = 12, 6
_NO_COLUMNS = (csv.UNKNOWN, csv.LINES)
_LOOK = 20
_SHORT = 1 << 18  # bytes
SLOWED = (
    "time is ncu's own (it may lock clocks to their base and flush caches), so estimated: prefer a log of times made "
    "with `nsys stats`, or --time"
)


def capability_of_label(label: str) -> str | None:
    """The compute capability that a device's label tells ("ncu device 0 (CC 8.0)"), else None."""
    found = _LABEL.fullmatch(label)
    return found[1] if found else None


def is_in(block: bytes) -> bool:
    """Whether the first block of a log has a sign of ncu or nsys before any of nvprof."""
    sign = _SIGN.search(block)
    return sign is not None and _NVPROF.search(block, 0, sign.start()) is None


def read(
    source: Source,
    blocks: Iterator[bytes],
    keep: Container[str] | None,
    parts: str | None = None,
    fold_rows: int = 1 << 20,
) -> Log:
    """Read a log of ncu or nsys. keep: the counters to hold, by name; None for all. parts: see `logs.read`.

    fold_rows: how many rows of a table are held before those of one kernel are added up.
    Raises LogError, one sentence, if there are no kernels in it.
    """
    reader = _Reader(source, keep, parts, fold_rows)
    # Starting threads takes longer than reading a short log.
    alone = os.fstat(source.handle.fileno()).st_size < _SHORT or are_dear()
    found = map(csv.sections, blocks)
    for lines, top, sections in found if alone else ahead(found):
        reader.feed(lines, top, sections)
    return reader.log()


@dataclass
class _Open:
    """A section while its rows come, block by block: the columns to read, and those of them to keep as text."""

    section: Section
    wanted: list[int] | None
    texts: Iterable[int]
    found: Rows = field(default_factory=Rows)
    units: dict[int, Unit] | None = None
    sample: Sample = field(default_factory=Sample)
    folded: list[Part] = field(default_factory=list)
    fold_from: int = 0
    numbers: Numbers = field(default_factory=Numbers)
    rest: list[str] = field(default_factory=list)

    def done(self) -> Long | Wide:
        """The rows that are there, put together."""
        if self.section.kind == csv.RAW:
            return Wide(self.section, self.units or {}, self.found, self.sample)
        return long.gather(self.section, self.found)


class _Reader:
    """One log: its sections, the lines between them, and what there is to say."""

    def __init__(self, source: Source, keep: Container[str] | None, parts: str | None, fold_rows: int) -> None:
        self.source, self.keep, self.by, self.fold_rows = source, keep, parts, fold_rows
        self.messages, self.nsys, self.locale = Messages(), Nsys(), Locale()
        self.page, self.pages = Page(), dict[str, _Open]()
        self.skipped, self.example, self.notes = 0, "", list[str]()
        self.sections: list[_Open] = []
        self.opened: list[tuple[_Open, Long | Wide]] = []
        self.several: list[str] = []
        self.unknown: list[int] = []
        self.program: str | None = None
        self.lines, self.is_cut, self.is_mended = 0, False, False

    def feed(self, lines: Lines, top: Lines, found: Sequence[tuple[Section, Lines]]) -> None:
        """The next lines: the rest of the section that is open (`top`), and further sections."""
        if self.sections:
            self._rows(self.sections[-1], top, self.lines + 1)
        else:
            self._between(top, self.lines + 1)
        for section, below in found:
            section.first_line += self.lines
            self._rows(self._open(section), below, section.first_line + (section.kind != csv.LINES))
        self.lines, self.is_cut = self.lines + len(lines.starts), lines.is_cut

    def _between(self, lines: Lines, first: int, indexes: Iterable[int] | None = None) -> None:
        """Lines that are no rows: words of ncu, tables of nsys, output of the program."""
        for index in range(len(lines.starts)) if indexes is None else indexes:
            text = lines.text(index)
            if not self._is_of_use(first + index, uncommented(text)) and text.strip(" \t\r#/*>"):
                self._skip(text)
        for kind in COLUMNS:
            self._take(kind)

    def _is_of_use(self, number: int, text: str) -> bool:
        return self.messages.hear(number, text) or self.page.feed(number, text) or self.nsys.feed(number, text)

    def _take(self, kind: str) -> None:
        """The rows of the page for reading that came."""
        table = self.page.take(kind)
        if table is None:
            return
        if kind not in self.pages:
            self.pages[kind] = self._opened(self.page.section(kind))
        self._hold(self.pages[kind], [table])

    def _skip(self, text: str, number: int = 1) -> None:
        self.skipped += number
        self.example = self.example or text[:80]

    def _open(self, section: Section) -> _Open:
        self.sections.append(self._opened(section))
        return self.sections[-1]

    def _opened(self, section: Section) -> _Open:
        section.part = ncu_parts.column_of(section, self.by)
        if section.kind == csv.UNKNOWN:
            self.unknown.append(section.first_line)
        if section.kind in _NO_COLUMNS:
            return _Open(section, [], ())
        if section.kind == csv.TRACE:
            return _Open(section, *trace.columns_of(section))
        if section.kind == csv.RAW:
            return _Open(section, wide.columns_of(section, self.keep), csv.ALL)
        return _Open(section, *long.columns_of(section))

    def _rows(self, one: _Open, lines: Lines, first: int) -> None:
        """Take lines of a section. first: the number of the first of them in the log."""
        if one.section.kind == csv.UNKNOWN:
            return
        if one.section.kind == csv.LINES:
            self._between(lines, first)
            return
        self.program = self.program or _program(one.section, lines)
        found = csv.rows(one.section, lines, one.wanted, one.texts)
        if one.section.kind == csv.SUMMARY and broken.perhaps(lines, found, one.rest):
            found = self._mended(one, lines, found)
        if one.section.kind == csv.RAW:
            one.units = one.units or wide.units_of(one.section, lines, found)
            one.sample.add(one.section, lines)
        self._between(lines, first, found.others)
        for text in found.misfits:
            self._skip(text)
        if one.section.kind == csv.TRACE:
            self._stray(trace.add(self.nsys, one.section, found.tables))
        else:
            self._hold(one, found.tables)

    def _mended(self, one: _Open, lines: Lines, found: Rows) -> Rows:
        """The rows of a summary that ncu broke, put together again; as they were found if it is not that."""
        mended = broken.mended(one.section, lines, one.rest)
        if mended is None and one.rest:
            self._skip(",".join(one.rest))
        one.rest = mended.rest if mended else []
        if mended is None:
            return found
        self.is_mended = self.is_mended or len(mended.lines.starts) > 0
        whole = csv.rows(one.section, mended.lines, one.wanted, one.texts)
        return Rows(whole.tables, broken.others(lines), whole.misfits)

    def _hold(self, one: _Open, tables: Sequence[pa.Table]) -> None:
        one.found.tables += tables
        if sum(len(table) for table in one.found.tables) >= max(one.fold_from, self._most(one.section)):
            self._fold(one)

    def _most(self, section: Section) -> int:
        """How many rows are held; those of the raw page are long, those of a summary are never many."""
        if section.kind == csv.SUMMARY:
            return 1 << 62
        return max(2, self.fold_rows // (40 if section.kind == csv.RAW else 4))

    def _fold(self, one: _Open) -> None:
        """Add up the launches of each kernel that are there whole, if it is certain how the file writes numbers."""
        rest = []
        held = sum(len(table) for table in one.found.tables)
        if one.section.kind == csv.LONG:
            whole, last = whole_launches(one.section, one.found.tables)
            one.found.tables, rest = [whole], [last]
        done = one.done()
        self._look(done)
        if done.rules or self.locale.is_open:
            one.found.tables, one.fold_from = [*one.found.tables, *rest], 2 * held
            return
        if isinstance(done, Long):
            one.numbers.add(done, self.source.path)
        self._stray(done.stray)
        one.folded = [joined([*one.folded, self._pivot(done, self.locale.style(self.source.path))])]
        one.found.tables, one.fold_from = rest, 0

    def _stray(self, number: int) -> None:
        if number:
            self._skip("(a line that looks like a row, without its numbers)", number)

    def _look(self, done: Long | Wide) -> None:
        if isinstance(done, Wide):
            done.look(self.locale)
        else:
            long.look(done, self.locale)

    def _pivot(self, done: Long | Wide, style: Style) -> Part:
        if isinstance(done, Long):
            return long.pivot(done, style, self.keep)
        part, several = done.pivot(style, self.keep)
        self.several = list(dict.fromkeys([*self.several, *several]))
        return part

    def _close(self) -> None:
        """All rows are there: put them together."""
        self.page.end()
        for kind in COLUMNS:
            self._take(kind)
        for one in (*self.sections, *self.pages.values()):
            if one.section.kind not in (*_NO_COLUMNS, csv.TRACE):
                if one.rest and not one.found.tables:
                    self._skip(",".join(one.rest))
                done = one.done()
                self._stray(done.stray)
                if one.folded and isinstance(done, Long):
                    one.numbers.add(done, self.source.path)
                self.opened.append((one, done))

    def log(self) -> Log:
        """The log, or the one sentence on why there is none."""
        self._close()
        parts = self._parts()
        tables = [*tables_of(parts), *([self.nsys.table()] if self.nsys.kernels else [])]
        if not tables:
            raise LogError(f"{self.source.path}: {self._why_nothing()}")
        self.source.lacks_bytes |= self.is_cut
        processes = {str(one) for part in parts for one in part.rows["process"]}
        return Log(
            path=self.source.path,
            format="+".join(table.kind for table in tables),
            lines=self.lines,
            skipped_lines=self.skipped,
            sha256=self.source.sha256,
            size_bytes=self.source.size_bytes,
            tables=tuple(tables),
            notes=(*self.messages.notes(), *self.source.notes, *self.notes, *self._line_notes(parts)),
            command=self._command(parts),
            example_skipped=self.example or None,
            processes=max(1, len(processes)),
            clocks=derived.joined([clock for part in parts for clock in part.clocks]),
        )

    def _parts(self) -> list[Part]:
        for _, done in self.opened:
            if not done.rules:
                self._look(done)
        style = self.locale.style(self.source.path)
        parts = []
        for one, done in self.opened:
            own = [*one.folded, *([] if done.rules else [self._pivot(done, style)])]
            if own:
                parts.append(joined(own) if one.folded else own[0])
        if self.several:
            self.notes.append(
                f"{few(self.several, _SHOWN)}: "
                "a cell holds the values of several instances, whose sum nothing tells, so not "
                "known"
            )
        return parts

    def _line_notes(self, parts: Sequence[Part]) -> Iterable[str]:
        if any(not np.isnan(part.rows["time_s"]).all() for part in parts):
            yield SLOWED
        missing: dict[str, int] = {}
        for part in parts:
            for name, number in part.missing.items():
                missing[name] = missing.get(name, 0) + number
        if missing and self.keep is not None:
            some = [f"{name} ({number})" for name, number in missing.items()]
            yield f"cells without a number, by metric: {few(some, _SHOWN)}; these are not known"
        yield from not_known(parts)
        if any(part.kind == csv.SUMMARY for part in parts):
            yield "totals of a summary are its averages times the invocations; averages are rounded"
        yield from _mean_rates(parts)
        twice = list(dict.fromkeys(name for part in parts for name in part.twice))
        if twice:
            yield f"{few(twice, _FEW)}: told twice for one launch, with two values; the first is used"
        scaled = list(dict.fromkeys(name for part in parts for name in part.scaled))
        if scaled and not self.page.is_scaled:
            yield (
                f"printed in scaled units, so rounded, and 0 may stand for a few: {few(scaled, _FEW)}; "
                "`--csv --page raw --print-units base` writes them whole"
            )
        if self.is_mended:
            yield broken.NOTE
        yield from self.page.notes()
        yield from self.nsys.notes()
        yield from self._unread(bool(parts))

    def _unread(self, has_tables: bool) -> Iterable[str]:
        if self.skipped:
            what = "1 line is" if self.skipped == 1 else f"{self.skipped} lines are"
            yield f"{what} no part of a table and skipped, for example: {self.example}"
        if self.is_cut:
            yield f"the log looks cut off: its last line ({self.lines}) is no whole row; collect the log again"
        elif has_tables and not self.source.ends_with_newline:
            yield f"the last line ({self.lines}) has no line end; if the log was cut off, rows or digits are missing"
        if self.unknown:
            yield f"a table of an unknown kind (line {self.unknown[0]}) was not read"

    def _command(self, parts: Sequence[Part]) -> str | None:
        """The program that the first rows are of, with its path if ncu said that."""
        if not parts:
            return None
        first = next(iter(parts[0].rows["process"]), None)
        return self.messages.processes.get(str(first)) or self.program

    def _why_nothing(self) -> str:
        said = self.nsys.why_no_table()
        if said and not self.opened:
            return said
        if self.unknown and not self.opened:
            place = self.unknown[0]
            return f"the table of ncu (line {place}) has no kernels or no values of metrics; make one with `{CSV}`"
        if any(one.found.tables for one in self.sections):
            return (
                "the log holds no values of metrics, only advice (rules), which is nothing to count with; "
                f"collect metrics with `{CSV}`"
            )
        if self.opened:
            begins = f"a table begins (line {self.opened[0][1].section.first_line}) but has no rows"
            if self.skipped:
                return (
                    f"{begins}: no line below it has as many fields, for example: {self.example}; give the log as ncu "
                    "wrote it, with all quotes and with nothing in front of its lines"
                )
            return f"{begins}; profile again"
        if self.page.launches and not self.page.orphans:
            what = "1 launch" if self.page.launches == 1 else f"{self.page.launches} launches"
            return f"ncu's page names {what} but no metric, which is nothing to count with; print {IMPORTED}"
        self.messages.page = self.page.first_line or None
        return self.messages.why_no_table()


def _program(section: Section, lines: Lines) -> str | None:
    """The name of the process in the first row."""
    place = section.at("Process Name")
    if place is None:
        return None
    for index in range(min(_LOOK, len(lines.starts))):
        fields = section.split(lines.text(index))
        if len(fields) >= section.least and fields[place]:
            return fields[place]
    return None


def _mean_rates(parts: Sequence[Part]) -> Iterable[str]:
    """A sentence on rates that are averages over several launches, and so no totals."""
    averages = {
        name.removesuffix(derived.TOTAL): None
        for part in parts
        for name, values in part.counters.items()
        if name.endswith(derived.TOTAL) and np.isnan(values[part.rows["launches"] > 1]).any()
    }
    if averages and any(part.kind == csv.SUMMARY for part in parts):
        yield (
            f"{few(list(averages), _FEW)}: a summary has only the mean rate of launches, which tells no total; "
            "print the log without --print-summary"
        )


def not_known(parts: Sequence[Part]) -> Iterable[str]:
    """What a log has instead, if none of its metrics is one that eprof knows."""
    if not parts or any(counting(part.units) for part in parts):
        return
    names = [name for name in dict.fromkeys(name for part in parts for name in part.metrics) if name not in TIMES]
    if not names:
        yield "the log has no metric but times; `eprof counters` lists what to ask ncu for with --metrics"
        return
    names.sort(key=lambda name: name.startswith(ASIDE))
    rates = [name for name in names if not name.startswith(ASIDE) and _RATE.search(name)]
    only = f"{len(rates)} are percentages or rates a cycle, which are no counts; " if rates else ""
    yield (
        f"none of the log's {len(names)} metrics is one that eprof counts with ({only}it has {few(names, _FEW)}); "
        "`eprof counters` lists what to ask ncu for with --metrics"
    )

"""Parser of the tables of `nsys stats`, as CSV, text or JSON: times of kernels (no counters), copies, calls of CUDA.

Text has its columns above dashes, or between bars: `--format table`, or Markdown that somebody made of it.

Numbers of the text form have groups of digits and decimals as the user's locale writes them: `1,234,567`, `1.234.567`,
`12,34,567`, `1'234` and `1 234` (with any blank) are whole numbers. Whether `1,234` has groups or decimals is seen in
other cells: every summary has a percentage such as `39.9` or `39,9` in each row. The database that `nsys` makes of a
report is read by `sqlite`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any, Literal

import numpy as np
from msgspec import Struct, convert, field
from msgspec.structs import replace

from eprof.base.arrays import Columns, alike
from eprof.base.optional import added, mapped
from eprof.base.resources import folder
from eprof.base.text import counted, pattern, phrase, when
from eprof.base.toml import Document
from eprof.logs.log import (
    CUT_OFF,
    LACKS_ROWS,
    LAUNCH,
    NOT_IN_TABLE,
    ON_TOTALS,
    Copies,
    HostCalls,
    Names,
    Table,
    TableRows,
    launch_part,
    starts_and_streams,
)
from eprof.logs.stream import split
from eprof.nvidia import KIND
from eprof.readers.cells import (
    CONTINENTAL,
    ENGLISH,
    SECONDS,
    Locale,
    Shared,
    Style,
    no_kernels,
    ungrouped,
    value,
    values,
)
from eprof.readers.gaps import Gaps, again_of, kind_of_copy
from eprof.readers.sections import CsvSection, Piece, below, joined, names_of

OF_LAUNCHES = "nsys-trace"
STREAM = "Strm"
DATABASE = "nsys-sqlite"
COMMAND = "nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep"
_WITH_UNIT = pattern(r"(.+?) ?\((?:ns|nsec|us|usec|ms|msec|s|sec|[KMGT]?i?B)\)")
_IN_GROUPS = {
    style: pattern(rf"\d{{1,4}}(?:[{style.group}]\d{{2,4}})*[{style.group}]\d{{3,4}}")
    for style in (ENGLISH, CONTINENTAL)
}
_BYTES = [(prefix, power) for power, prefix in enumerate(("", "K", "M", "G", "T"))]
_SCALE = SECONDS | {f"{prefix}B": 1e3**power for prefix, power in _BYTES}
_SCALE |= {f"{prefix}iB": 1024.0**power for prefix, power in _BYTES}
# The names of columns in CSV; and those of a table of nsys for certain, also where no definition knows it.
_HEAD = pattern(r'"?[A-Z][\w ]*(?: ?\([\w%/]+\))?"?,.*\(\w+\)|"?Count"?,"?QCount"?,')
_PERHAPS = pattern(r'(?:"?Time ?\(%\)"?,"?Total Time ?\(|(?:"?PID"?,"?TID"?,"?DevId"?,)?"?Count"?,"?QCount"?,)')
_TEXT = pattern(
    r"\s*(?:Time ?\(%\)\s+Total Time \([a-z]+\)\s+\S.*|(?:PID\s+TID\s+DevId\s+)?Count\s+QCount\s.*"
    r"|Start ?\([a-z]+\)\s+Duration ?\([a-z]+\)\s+CorrId\s.*)"
)
_OTHERS = pattern(r"\s*(?:Time ?\(%\)\s+)?Total(?: Time)?(?: \(.*\))?\s+(?:Num Calls|Operations|Count|Instances)\s")
# Until 2020 the unit of all times or sizes stood in the title alone.
_TITLE = pattern(r"\s*CUDA (?:API|Kernel|Memory Operation) Statistics \((nanoseconds|KiB)\)\s*")
_OF_TITLE = {"nanoseconds": "ns", "KiB": "KiB"}
_WITHOUT_UNIT = ("Total Time", "Total", "Minimum", "Maximum")
_RULER = pattern(r"\s*-+(?:  ?-+)+\s*")
_BAR = "|"
# The GUI's Markdown has no units in its header, but in cells.
_GUI = ["Time", "Total Time"]
_OF_GUI = dict.fromkeys(("Total Time", "Total", "Avg", "Med", "Min", "Max", "StdDev"), " (s)") | {"Time": " (%)"}
_MICRO = str.maketrans("µμ", "uu")
_MEASURED = pattern(r"(\d.*?) ([nuµμm]?s)")
_BORDER = pattern(r"\s*[+|][-+|: ]+[+|]\s*")  # of a table with bars
_APART = pattern(r" {2,}")
_COLUMN = pattern(r"-+")
_ASIDE = pattern(
    r"\s*(?:(?:Processing|Generating|Exporting|Using|Running|NOTICE|SKIPPED)\b.*(?:\.sqlite|\[)"
    r"|\[\d/\d\] Executing '\w+' stats report|\*\* .*\(\w+\):\s*$)"
)
_LACKS = pattern(r"SKIPPED: .* does not contain CUDA (?:kernel|trace) data")
_WORDS = pattern(r"[ \t]+")
_MOST_LAUNCHES = 10**12
_NO_GRAPHS = (
    f"{ON_TOTALS}kernels of CUDA graphs are not in the table, so times and joules are lower bounds; trace again with "
    "`nsys profile --cuda-graph-trace=node`"
)
_CUT = "…"
_NUMBER = pattern(r"\d{1,30}(?:[., \u00a0\u2009\u202f'\u2019\ufffd]\d+)*[.,]?", re.ASCII)
_REMARK = pattern(r"(?<!\s)\s++#\s.*")
_CALL = pattern(r"cu(?:da)?[A-Z]\w*")
_GRAPH_LAUNCH, _KERNEL_LAUNCH = pattern(r"cu(?:da)?GraphLaunch"), pattern(r"cu(?:da)?Launch(?!HostFunc)\w+")
VERSION = pattern(r"_v\d{1,9}(?:_pt[sd][sz])?$")  # "cudaLaunchKernel_v7000"
_COPY = "["  # as in "[CUDA memcpy HtoD]": no kernel begins so, and a last line may be cut off
_KERNEL = "CUDA_KERNEL"  # a category of GPU work
_SHARES = ("Time (%)", "Time(%)")
_ALL_CALLS = 98.0  # percent of the time of all calls
_OF_CALLS = {6: 5, 8: 6}  # numbers in a row of calls: which is that of the longest call
_MEMORIES = ("SrcMemKd", "DstMemKd")
_HELD = 1 << 13  # rows of a trace


class NumberStyle:
    """How an nsys text writes numbers (groups, decimals), as far as rows seen so far show it. style: None: not yet."""

    def __init__(self, style: Style | None = None) -> None:
        self.style = style
        self.has_blanks = False

    def look(self, cells: Iterable[str]) -> None:
        """Learn from the cells of a row: a number that can be read in one style only tells it for all later rows."""
        numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
        self.has_blanks |= any(" " in cell for cell in numbers)
        shown = Locale()
        shown.look(map(ungrouped, numbers), repeat(False, len(numbers)))
        if len(shown.proof) == 1:
            (self.style,) = shown.proof

    def value(self, cell: str, is_whole: bool) -> float | None:
        """The number in a cell; None: there is none, or two numbers may be meant. is_whole: it has no decimals."""
        if not _NUMBER.fullmatch(cell):
            return None
        plain = ungrouped(cell)
        if plain.isdigit() or (is_whole and any(form.fullmatch(plain) for form in _IN_GROUPS.values())):
            return float(re.sub("[.,]", "", plain))
        shown = Locale()
        shown.look([plain], [False])
        style = next(iter(shown.proof), self.style)
        if style is None or not re.fullmatch(rf"(\d+|{_IN_GROUPS[style].pattern})([{style.point}]\d*)?", plain):
            return None
        return value(plain, style)


_ENGLISH = NumberStyle(ENGLISH)  # of CSV and JSON, whatever the locale


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of table of `nsys stats`, by its name there, and its columns' names (`counters/nsys/tables.toml`).

    is_mean: times are means over launches. tells: what a row is of.
    """

    report: str
    name: str
    time: str
    launches: str = ""
    start: str = ""
    others: list[str] = []
    is_mean: bool = False
    tells: Literal["work", "sizes", "calls", "ranges"] = "work"

    @property
    def columns(self) -> set[str]:
        """The columns, without units, that an nsys table of this kind must have."""
        return {self.name, self.time, self.launches or self.name, *self.others}


@cache
def reports() -> dict[str, Report]:
    """The kinds of tables of nsys in `counters/nsys/tables.toml`, by name; the best times of kernels first."""
    document = Document.read(folder("counters") / "nsys" / "tables.toml")
    return {each.report: each for each in convert(document.data["table"], list[Report])}


class NsysTable(Struct, frozen=True):
    """A table of nsys as a log has it: its columns by name, that of time with its unit.

    spans: start and end of each column of the text form in a line; (): its dashes were lost; None: it is CSV or JSON.
    Names of columns: start, of a launch; rate, at which it copies; ends, of the shortest and longest time; "": none.
    """

    report: Report
    columns: tuple[str, ...]
    time: str
    spans: tuple[tuple[int, int], ...] | None = None
    start: str = ""
    rate: str = ""
    ends: tuple[str, ...] = ("", "")

    @property
    def is_trace(self) -> bool:
        """Whether a row of an nsys table is one launch."""
        return not self.report.launches

    @property
    def scale(self) -> float:
        """Seconds in one unit of an nsys table's times, or bytes in one of its sizes."""
        return _SCALE[_unit_of(self.time)]

    @property
    def is_whole(self) -> bool:
        """Whether an nsys table's times can have no decimals: they are in ns, and no means."""
        return self.scale == _SCALE["ns"] and not self.report.is_mean

    def cells(self, line: str, have_blanks: bool) -> list[str]:
        """The cells of a line of an nsys table; [] where they cannot be told. have_blanks: numbers may hold blanks."""
        if _is_barred(line):
            return _between_bars(line, len(self.columns))
        if self.spans is None:
            return split(line)
        if self.spans:
            # Where blanks in front were lost or changed, the first number ends below its column's.
            own = line.strip("\n").lstrip()
            indented = own.rjust(len(own) + self.spans[0][1] - len(own.split()[0]))
            if cells := below(line, self.spans) or below(indented, self.spans):
                return cells
        # Where numbers hold blanks, words do not tell the columns.
        return [] if have_blanks else _WORDS.split(line.strip(" \t"), len(self.columns) - 1)


def _is_barred(line: str) -> bool:
    return line.lstrip().startswith(_BAR)


def _between_bars(line: str, most: int = -1) -> list[str]:
    """The cells between the bars of a line of nsys, the last of which may have bars; no Markdown's back quotes."""
    cells = line.strip().removeprefix(_BAR).removesuffix(_BAR).split(_BAR, most - 1)
    return [cell.strip().strip("`") for cell in cells]


def _unit_of(column: str) -> str:
    return column.rpartition("(")[2].rstrip(")").removesuffix("ec")


class Timed(Struct, frozen=True):
    """Launches of a kernel and the seconds that they took together (NaN: not known). part: their stream, if asked.

    least_s, most_s: of the shortest launch, and of the longest; NaN where they are not told.
    """

    name: str
    device: str | None
    launches: int
    time_s: float
    part: str | None = None
    least_s: float = math.nan
    most_s: float = math.nan

    def __add__(self, other: Timed) -> Timed:
        """Launches of a kernel that two rows of nsys tell, together: sums, the shortest and the longest of both."""
        return replace(
            self,
            launches=self.launches + other.launches,
            time_s=self.time_s + other.time_s,
            least_s=float(np.fmin(self.least_s, other.least_s)),
            most_s=float(np.fmax(self.most_s, other.most_s)),
        )


def _is_copy(name: str) -> bool:
    """Whether what ran is a copy or memset of CUDA, also where somebody put dots for columns before its name."""
    return name.startswith(_COPY) or "[CUDA mem" in name


_Sums = dict[str, dict[tuple[str, str | None, str | None], Timed]]  # by kind of table; then kernel, device and part


def _kinds(sums: _Sums) -> list[str]:
    """The kinds of nsys's tables that told these sums, the best first."""
    return [kind for kind in reports() if kind in sums]


def _best(sums: _Sums) -> list[Timed]:
    """The sums that the best kind of nsys's tables told."""
    return [each for kind in _kinds(sums)[:1] for each in sums[kind].values()]


def nsys_table_of(names: Sequence[str], spans: Sequence[tuple[int, int]] | None = None) -> NsysTable | None:
    """The nsys table that these columns make: the one with most columns that fits; None: no times of kernels."""
    timed = {match[1]: name for name in reversed(names) if (match := _WITH_UNIT.fullmatch(name))}
    known = [each for each in reports().values() if each.time in timed and each.columns <= {each.time, *names}]
    if not known:
        return None
    report = max(known, key=lambda each: len(each.columns))
    rate = next((name for name in names if name.startswith("Throughput (")), "")
    ends = tuple(timed.get(end) or timed.get(f"{end}imum", "") for end in ("Min", "Max"))
    return NsysTable(
        report, tuple(names), timed[report.time], mapped(tuple, spans), timed.get(report.start, ""), rate, ends
    )


class Nsys(Struct):
    """A parser of tables of `nsys stats`, line by line.

    parts: "stream" or LAUNCH, by which the launches of a trace are split; None: by nothing. shape: the table that is
    open. heading: the names of its columns, while its dashes are awaited, or a table's that is not understood. unit: of
    all its times, where a title tells it. is_there: a table of nsys was seen. lacks_kernels: nsys said that it recorded
    none. begun: how many tables of each kind began. sizes: of copies, by name, bytes in place of seconds. bare: calls
    below a lost header, with their shares of the time. shared: the rows of each table, by its kind and number.
    ends_in_row: the last line is no whole row. held: columns -> rows of a trace. open_rows: those of the summary that
    is open, as (kind, numbers, cells); told: the rows of each summary that ended; again: how many of these stood there
    already.
    """

    parts: str | None = None
    shape: NsysTable | None = None
    heading: str | None = None
    unit: str = ""
    numbers: NumberStyle = field(default_factory=NumberStyle)
    begun: Counter[str] = field(default_factory=Counter)
    is_there: bool = False
    lacks_kernels: bool = False
    sums: _Sums = field(default_factory=dict)
    copied: _Sums = field(default_factory=dict)
    sizes: dict[str, Timed] = field(default_factory=dict)
    calls: dict[str, HostCalls] = field(default_factory=dict)
    bare: list[tuple[float, HostCalls]] = field(default_factory=list)
    shared: dict[tuple[str, int], Shared] = field(default_factory=dict)
    ends_in_row: bool = False
    held: dict[tuple[str, ...], list[list[str]]] = field(default_factory=dict)
    open_rows: list[tuple[Report, Timed, Mapping[str, str]]] = field(default_factory=list)
    told: set[tuple[tuple[str, str, float], ...]] = field(default_factory=set)
    again: int = 0
    gaps: Gaps = field(default_factory=lambda: Gaps(began_ns=0))

    def feed(self, line: str) -> bool:
        """Take a line of nsys's tables; returns whether it was understood, or may be skipped."""
        self.ends_in_row = False
        if not line.strip():
            self.shape = self.heading = None
            return True
        if _BORDER.fullmatch(line) or self._is_head(line):
            return True
        if self.shape is None and self.heading and self.numbers.value(line.split()[0], False) is not None:
            # Dashes were lost, as on a page that takes them for a line. A summary has all cells, so words tell them.
            shape = nsys_table_of(_APART.split(self.heading.strip()), ())
            if shape is not None and not shape.is_trace:
                self.begin(shape)
        self.lacks_kernels = self.lacks_kernels or _LACKS.match(line) is not None
        if self.shape is None:
            return self._bare_call(line) or self.heading is not None or _ASIDE.match(line) is not None
        is_row = self.row(self.shape, self.shape.cells(line, self.numbers.has_blanks))
        self.ends_in_row = not is_row and line.lstrip('"| ')[:1].isdigit()
        return is_row

    def _is_head(self, line: str) -> bool:
        """Take a line of an nsys table's head: title, names of columns, dashes; returns False if the line is none."""
        is_barred = _is_barred(line)
        names = _between_bars(line)
        if names[:2] == _GUI:
            names = [name + _OF_GUI.get(name, "") for name in names]
        heading = ",".join(names) if is_barred else line
        shape = None
        if _HEAD.match(heading):
            shape = nsys_table_of([name.strip() for name in split(heading)], () if is_barred else None)
        if shape is not None or _PERHAPS.match(heading):
            self.begin(shape)
            self.heading = "" if shape is None else None
        elif _TEXT.match(line) or (self.shape is None and _OTHERS.match(line)):
            self.shape, self.heading = None, line
            self.is_there = True
        elif title := _TITLE.fullmatch(line):
            self.unit = _OF_TITLE[title[1]]
        elif self.heading is not None and _RULER.fullmatch(line):
            spans = [dashes.span() for dashes in _COLUMN.finditer(line)]
            # Blanks in front of the names may be lost; then they are as many as put each name above its dashes.
            shifted = (" " * lost + self.heading for lost in range(spans[0][1]))
            heading = next((line for line in shifted if below(line, spans)), self.heading)
            ends = [*(start for start, _ in spans[1:]), max(len(heading), spans[-1][1])]
            names = [heading[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)]
            with_unit = _WITHOUT_UNIT * bool(self.unit)
            self.begin(nsys_table_of([name + when(name in with_unit, f" ({self.unit})") for name in names], spans))
            if self.shape is not None:
                self.heading = None
        else:
            return False
        return True

    def begin(self, shape: NsysTable | None) -> None:
        """Begin a table of nsys, and end the open summary. shape: None if the table tells no times of kernels."""
        self._end_summary()
        self.shape, self.is_there = shape, True
        if shape is not None:
            self.begun[shape.report.report] += 1

    def _bare_call(self, line: str) -> bool:
        """Take a row of calls of CUDA below a lost header, in ns: share, total, number, mean, ..., name; else False.

        That the mean is the total over the number shows which numbers these are. Other units have decimals. Such rows
        are used if their shares add up to those of nearly all calls.
        """
        *cells, name = line.split()
        if len(cells) not in _OF_CALLS or not _CALL.fullmatch(name):
            return False
        self.numbers.look(cells)
        share, total, number, mean, *_, longest = (
            self.numbers.value(cell, False) or 0.0 for cell in cells[: _OF_CALLS[len(cells)] + 1]
        )
        is_one = total.is_integer() and number.is_integer() and abs(total - number * mean) <= number <= total
        is_one = is_one and 0 < mean <= longest <= total
        if is_one:
            self.bare.append(
                (share, HostCalls.of_run(VERSION.sub("", name), int(number), 1e-9 * total, 1e-9 * longest))
            )
        return is_one

    def row(self, shape: NsysTable, fields: Sequence[str]) -> bool:
        """Take a row of a table of nsys; returns False if its time or its launches are no numbers."""
        if len(fields) != len(shape.columns):
            return False
        row = dict(zip(shape.columns, map(str.strip, fields), strict=True))
        name, numbers = row[shape.report.name], _ENGLISH
        scales = dict.fromkeys((shape.time, *shape.ends), shape.scale)
        for column in scales:
            if shape.scale == 1.0 and (measured := _MEASURED.fullmatch(row.get(column, ""))):
                row[column], scales[column] = measured[1], SECONDS[measured[2].translate(_MICRO)]
        is_text = shape.spans is not None
        if is_text:
            numbers = self.numbers
            numbers.look(cell.rstrip("% ") for column, cell in row.items() if column != shape.report.name)
            name = _REMARK.sub("", name)  # somebody may have put one behind it
        amounts = (row.get(column, "") for column in (shape.time, *shape.ends))
        total, least, most = (numbers.value(cell, is_text and shape.is_whole) for cell in amounts)
        number = numbers.value(row.get(shape.report.launches, "1"), is_text)
        if total is None or number is None or not number.is_integer() or number > _MOST_LAUNCHES:
            return False
        if shape.is_trace:
            start = numbers.value(row.get(shape.start, ""), is_text and _unit_of(shape.start) == "ns")
            rate = numbers.value(row.get(shape.rate, ""), False)
            row |= {shape.report.name: name, shape.time: repr(total)}
            row |= {shape.start: phrase("{!r}", start), shape.rate: phrase("{!r}", rate)}
            self.held.setdefault(shape.columns, []).append([row[column] for column in shape.columns])
            if len(self.held[shape.columns]) >= _HELD:
                self.finish()
        else:
            limits = zip((least, most), shape.ends, strict=True)
            ends = (math.nan if end is None else end * scales[column] for end, column in limits)
            device = row.get("Device") or None
            told = Timed(name, device, int(number), total * scales[shape.time], None, *ends)
            self.open_rows.append((shape.report, told, row))
            share = next((row[column].rstrip("% ") for column in _SHARES if column in row), "100")
            percent, decimals = numbers.value(share, False), re.split("[.,]", share)[1:]
            table = shape.report.report, self.begun[shape.report.report]
            of_all = 100.0 if percent is None else percent
            so_far = self.shared.get(table, Shared())
            self.shared[table] = so_far.with_row(of_all, sum(map(len, decimals)), told.time_s)
        return True

    @property
    def is_cut(self) -> bool:
        """Whether the table of kernels lost rows: by its percentages, which are rounded, or by its last line."""
        return self.ends_in_row or any(each.lacks_rows for each in self._shared)

    @property
    def lacks_graphs(self) -> bool:
        """Whether nsys left the kernels of CUDA graphs out: graphs were launched, and no more ran than without them."""
        launched = sum(calls.number for name, calls in self.calls.items() if _KERNEL_LAUNCH.fullmatch(name))
        has_graphs = any(map(_GRAPH_LAUNCH.fullmatch, self.calls))
        return has_graphs and sum(kernel.launches for kernel in self.kernels) <= launched

    @property
    def _rest_s(self) -> float:
        """What kernels took that nsys's table lost, by the percentages of its rows; NaN where these do not tell."""
        (best, *_) = _kinds(self.sums)
        # What is lost may be copies, too, or was never in the table.
        if "Category" in reports()[best].others or self.lacks_graphs:
            return math.nan
        return sum(each.rest_s for each in self._shared) or math.nan

    @property
    def _shared(self) -> list[Shared]:
        (best, *_) = _kinds(self.sums)
        return [each for (kind, _), each in self.shared.items() if kind == best]

    def _end_summary(self) -> None:
        """End nsys's open summary: add its rows, unless the log held the same summary before (as text and CSV, say)."""
        rows, self.open_rows = self.open_rows, []
        told = tuple((report.report, timed.name, timed.time_s) for report, timed, _ in rows)
        if told in self.told:
            report, *_ = rows[0]
            del self.shared[report.report, self.begun[report.report]]
            self.begun[report.report] -= 1
            self.again += 1
        else:
            for row in rows:
                self._add(*row)
            self.told |= {told} - {()}

    def finish(self) -> None:
        """End nsys's open summary, and add up the held rows of traces in text or JSON, as those of a trace in CSV."""
        self._end_summary()
        for columns, rows in self.held.items():
            piece: Piece = {place: list(cells) for place, cells in enumerate(zip(*rows, strict=True))}
            add_trace(self, CsvSection(OF_LAUNCHES, list(columns)), [piece])
        self.held = {}

    def _add(self, report: Report, told: Timed, row: Mapping[str, str]) -> None:
        """Add what a row of nsys's summary tells. told: its numbers, bytes for seconds in a table of sizes."""
        longest_s = told.most_s if told.most_s >= 0 else 0.0
        if report.tells == "sizes":
            added(self.sizes, told.name, told)
        elif report.tells == "ranges":
            name = f"range {told.name.removeprefix(':')}"
            added(self.calls, name, HostCalls(name, told.launches, told.time_s, longest_s, is_range=True))
        elif report.tells == "calls":
            if _CALL.fullmatch(told.name):
                name = VERSION.sub("", told.name)
                added(self.calls, name, HostCalls.of_run(name, told.launches, told.time_s, longest_s))
        elif told.name and row.get("Category", _KERNEL) == _KERNEL and not _is_copy(told.name):
            many = told.launches if report.is_mean else 1.0
            self.add(self.sums, report, replace(told, time_s=told.time_s * many))
        else:
            self.add(self.copied, report, replace(told, device=None))

    def add(self, sums: _Sums, report: Report, launched: Timed) -> None:
        """Add launches, or copies and memsets, to `sums`: apart by kind of nsys's table, as several tell the same."""
        added(sums.setdefault(report.report, {}), (launched.name, launched.device, launched.part), launched)

    @property
    def beside(self) -> dict[str, Any]:
        """The arguments of `Source.log` beside kernels: copies, by the best kind of table, and calls of CUDA."""
        if sum(share for share, _ in self.bare) > _ALL_CALLS:
            for _, calls in self.bare:
                added(self.calls, calls.name, calls)
        self.bare = []
        copies = _best(self.copied)
        told = []
        for copy in copies:
            size = self.sizes.get(copy.name, Timed(copy.name, None, 0, 0.0))
            if kind := kind_of_copy(copy.name):
                again = again_of(copy.launches, abs(size.most_s - size.least_s) > 0)
                told.append(Copies(*kind, copy.launches, copy.time_s, size.time_s, again))
        return {
            "copies_s": sum(copy.time_s for copy in copies),
            "copies": self.gaps.copies or tuple(told),
            "idle": None if self.lacks_graphs else self.gaps.idle,
            "calls_of_host": tuple(self.calls.values()),
        }

    @property
    def kernels(self) -> list[Timed]:
        """The kernels, from the best kind of nsys's tables that there is."""
        return _best(self.sums)

    def table(self) -> Table:
        """The `Table` of kernels' times that nsys told; there must be some."""
        kind = KIND if reports()[_kinds(self.sums)[0]].launches else OF_LAUNCHES
        lacks_rows = self.is_cut or self.lacks_graphs
        if lacks_rows and kind == KIND:
            return table_of([*self.kernels, Timed(NOT_IN_TABLE, None, 1, self._rest_s)], kind)
        return replace(table_of(self.kernels, kind, self.parts), lacks_rows=lacks_rows)

    def notes(self) -> Iterable[str]:
        """Notes on tables of nsys that were not used, names that are cut off, and copies."""
        kinds = _kinds(self.sums)
        if kinds and self.lacks_graphs:
            yield _NO_GRAPHS
        elif kinds and self.is_cut:
            yield CUT_OFF if math.isnan(self._rest_s) else LACKS_ROWS
        if self.again:
            yield f"{counted(self.again, 'table')} of nsys stood in the log already, so each was used once"
        if len(kinds) > 1:
            yield f"the times are those of {kinds[0]}; the log tells them again in {', '.join(kinds[1:])}, not used"
        cut = sum(kernel.name.endswith(_CUT) for kernel in self.kernels)
        if cut:
            yield (
                f"nsys cut {cut} names of kernels off in its text (they end in {_CUT}): kernels alike up to there "
                f"are added up, and none is found in a log of counters; write whole names with `{COMMAND}`"
            )
        if copies := _best(self.copied):
            number, seconds = sum(copy.launches for copy in copies), sum(copy.time_s for copy in copies)
            yield no_kernels([("copies and memsets", number, seconds)])

    def why_no_table(self) -> str | None:
        """Why a log of nsys tells no kernels, in a sentence; None if the log is not of nsys."""
        said = f"the log has tables of nsys but none of kernels; make one with `{COMMAND} > times.csv`"
        if self.lacks_kernels:
            said = (
                "nsys recorded no kernel, as it says where it skipped their table; see that the program uses the GPU, "
                "and trace it with `nsys profile --trace=cuda --trace-fork-before-exec=true PROGRAM`, which follows "
                "the processes that it starts"
            )
        return said if self.is_there or self.copied else None


def table_of(kernels: Sequence[Timed], kind: str, parts_by: str | None = None) -> Table:
    """A `Table` of times alone, with a row for each of `kernels`, of which there must be some.

    kind: the table's kind. parts_by: what kernels' parts are; those of LAUNCH become columns of starts and streams.
    """
    parts = [kernel.part for kernel in kernels]
    rows = TableRows.of(
        Names.of(kernel.device for kernel in kernels),
        Names.of(kernel.name for kernel in kernels),
        launches=[kernel.launches for kernel in kernels],
        time_s=[kernel.time_s for kernel in kernels],
        part=Names.of(parts) if any(part is not None for part in parts) else None,
        least_s=np.array([kernel.least_s for kernel in kernels]),
        most_s=np.array([kernel.most_s for kernel in kernels]),
    )
    if parts_by == LAUNCH:
        rows = starts_and_streams(rows)
    return Table(kind, rows, Columns.of({}, len(kernels)), {})


def places_in(section: CsvSection) -> tuple[list[int], list[int]]:
    """(The places of the columns that are read of an nsys trace, of those in which few different texts come again)."""
    shape = _shape(section)
    texts = shape.report.name, "Device", STREAM, *_MEMORIES
    return section.places((*texts, shape.time, shape.start, shape.rate)), section.places(texts)


def add_trace(nsys: Nsys, section: CsvSection, pieces: Sequence[Piece]) -> int:
    """Add rows of an nsys trace to `nsys`; returns how many are no launches, since they lack a time or a name."""
    if not pieces:
        return 0
    shape = _shape(section)
    told = {section.columns[place - section.prefix]: cells for place, cells in joined(pieces).items()}
    names = names_of(told[shape.report.name])
    devices = names_of(told["Device"]) if "Device" in told else Names(("",), np.zeros_like(names.codes))
    seconds = values(told[shape.time], ENGLISH) * shape.scale
    bare_names = [name.strip() for name in names.names]
    is_copy = np.array([*map(_is_copy, bare_names)], dtype=bool)[names.codes]
    is_stray = ~(seconds >= 0) | np.array([not name for name in bare_names], dtype=bool)[names.codes]
    is_kernel = ~is_copy & ~is_stray
    if is_copy.any():
        copies = Timed(_COPY, None, int(is_copy.sum()), float(np.nansum(seconds[is_copy])))
        nsys.add(nsys.copied, shape.report, copies)

    parts = Names((), np.full(len(names), -1, dtype=np.int32))
    if nsys.parts is not None and STREAM in told:
        parts = names_of(told[STREAM])
    if shape.start in told:
        starts = values(told[shape.start], ENGLISH) * round(1e9 * _SCALE[_unit_of(shape.start)])
        start_ns = np.nan_to_num(starts).round().astype(np.int64)
        if nsys.parts == LAUNCH and STREAM in told:
            parts = Names.of(map(launch_part, start_ns.tolist(), parts.texts()))
        time_ns = np.where(np.isnan(starts + seconds), -1, (1e9 * np.nan_to_num(seconds)).round()).astype(np.int64)
        shown = _joined([names, *(names_of(told[end]) for end in _MEMORIES if end in told)])
        size_b, known = np.full(len(seconds), np.nan), ~is_stray
        if shape.rate in told:
            unit = _unit_of(shape.rate).removesuffix("ps").removesuffix("/s")
            size_b = seconds * values(told[shape.rate], ENGLISH) * _SCALE.get(unit, 0.0)
        launched = devices[known], shown[known], start_ns[known], time_ns[known]
        nsys.gaps.add(*launched, is_kernel=is_kernel[known], size_b=size_b[known])

    names, devices, parts = (column.chosen(is_kernel) for column in (names, devices, parts))
    kernel, first = alike(names.codes, devices.codes, parts.codes)
    sums = np.bincount(kernel, seconds[is_kernel], len(first)).tolist()
    launches = np.bincount(kernel, minlength=len(first)).tolist()
    texts = (column.chosen(first).texts() for column in (names, devices, parts))
    for name, device, part, many, time_s in zip(*texts, launches, sums, strict=True):
        nsys.add(nsys.sums, shape.report, Timed(name.strip(), device.strip() or None, many, time_s, part or None))
    return int(is_stray.sum())


def _joined(words: Sequence[Names]) -> Names:
    """Several columns of words as one: each row's words with blanks in between, (n_rows,)."""
    codes, first = alike(*(word.codes for word in words))
    return Names(tuple(map(" ".join, zip(*(word[first].texts() for word in words), strict=True))), codes)


def _shape(section: CsvSection) -> NsysTable:
    shape = nsys_table_of(section.columns)
    assert shape is not None, "a section of this kind has the columns of a trace"
    return shape

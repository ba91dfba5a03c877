"""Times of kernels from `nsys stats`, as CSV, text or JSON: exact totals, no counters; a trace tells the device too.

Numbers of the text form have groups of digits and decimals as the user's locale writes them: `1,234,567`, `1.234.567`,
`12,34,567`, `1'234` and `1 234` (with any blank) are whole numbers. Whether `1,234` has groups or decimals is seen in
other cells: every summary has a percentage such as `39.9` or `39,9` in each row. The database that `nsys` makes of a
report is read by `sqlite`.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import repeat
from typing import Any

import numpy as np
from msgspec import Struct, convert, field
from msgspec.structs import replace

from eprof.base.arrays import Columns, alike
from eprof.base.errors import LogError
from eprof.base.known import added, mapped
from eprof.base.resources import folder
from eprof.base.text import counted, pattern, phrase, when
from eprof.base.toml import Document
from eprof.logs.rows.cells import no_kernels
from eprof.logs.rows.gaps import Gaps, again_of, kind_of_copy
from eprof.logs.rows.log import LAUNCH, Copies, HostCalls, Log, Names, Table, TableRows, part_of, told_apart
from eprof.logs.rows.numbers import CONTINENTAL, ENGLISH, Locale, Style, ungrouped, value, values
from eprof.logs.rows.sections import Piece, Section, below, names_of, split, together
from eprof.logs.rows.stream import Source
from eprof.profilers.nsys.signs import KIND

OF_LAUNCHES = "nsys-trace"
STREAM = "Strm"
DATABASE = "nsys-sqlite"
COMMAND = "nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep"
_WITH_UNIT = pattern(r"(.+?) ?\((?:ns|nsec|us|usec|ms|msec|s|sec|[KMGT]?i?B)\)")
_IN_GROUPS = {
    style: pattern(rf"\d{{1,4}}(?:[{style.group}]\d{{2,4}})*[{style.group}]\d{{3,4}}")
    for style in (ENGLISH, CONTINENTAL)
}
_SCALE = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_SCALE |= {f"{prefix}B": 1e3**power for power, prefix in enumerate(("", "K", "M", "G", "T"))}
_SCALE |= {f"{prefix}iB": 1024.0**power for power, prefix in enumerate(("", "K", "M", "G", "T"))}
_PERHAPS = pattern(r'(?:"?Time ?\(%\)"?,"?Total Time ?\(|(?:"?PID"?,"?TID"?,"?DevId"?,)?"?Count"?,"?QCount"?,)')
_TEXT = pattern(
    r"\s*(?:Time ?\(%\)\s+Total Time \([a-z]+\)\s+\S.*|(?:PID\s+TID\s+DevId\s+)?Count\s+QCount\s.*"
    r"|Start \([a-z]+\)\s+Duration \([a-z]+\)\s+CorrId\s.*)"
)
_OTHERS = pattern(r"\s*(?:Time ?\(%\)\s+)?Total(?: Time)?(?: \(.*\))?\s+(?:Num Calls|Operations|Count|Instances)\s")
# Until 2020 the unit of all times or sizes stood in the title alone.
_TITLE = pattern(r"\s*CUDA (?:API|Kernel|Memory Operation) Statistics \((nanoseconds|KiB)\)\s*")
_OF_TITLE = {"nanoseconds": "ns", "KiB": "KiB"}
_WITHOUT_UNIT = ("Total Time", "Total", "Minimum", "Maximum")
_RULER = pattern(r"\s*-+(?:  ?-+)+\s*")
_APART = pattern(r" {2,}")
_COLUMN = pattern(r"-+")
_ASIDE = pattern(
    r"\s*(?:(?:Processing|Generating|Exporting|Using|Running|NOTICE|SKIPPED)\b.*(?:\.sqlite|\[)"
    r"|\[\d/\d\] Executing '\w+' stats report|\*\* .*\(\w+\):\s*$)"
)
_WORDS = pattern(r"[ \t]+")
_MOST_LAUNCHES = 10**12
_CUT = "…"
_NUMBER = pattern(r"\d{1,30}(?:[., \u00a0\u2009\u202f'\u2019\ufffd]\d+)*[.,]?", re.ASCII)
_OBJECT = pattern(r'\{\s*"')  # never inside of a string: quotes are escaped there
_REMARK = pattern(r"(?<!\s)\s++#\s.*")
_LONGEST = 4 << 20  # characters of an object
_DECODER = json.JSONDecoder()
_CALL = pattern(r"cu(?:da)?[A-Z]\w*")
VERSION = pattern(r"_v\d{1,9}(?:_pt[sd][sz])?$")  # "cudaLaunchKernel_v7000"
_COPY = "["  # as in "[CUDA memcpy HtoD]": no kernel begins so, and a last line may be cut off
_RANGE = "Range"  # the column of NVTX ranges
_ALL_CALLS = 98.0  # percent of the time of all calls
_OF_CALLS = {6: 5, 8: 6}  # numbers in a row of calls: which is that of the longest call
_MEMORIES = ("SrcMemKd", "DstMemKd")
_HELD = 1 << 13  # rows of a trace


class Numbers:
    """How nsys writes numbers, as far as the rows seen so far show it. style: None where nothing tells."""

    def __init__(self, style: Style | None = None) -> None:
        self.style = style
        self.has_blanks = False

    def look(self, cells: Iterable[str]) -> None:
        """Learn from the cells of a row: one that can be read in one way only tells it for all later rows."""
        numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
        self.has_blanks |= any(" " in cell for cell in numbers)
        shown = Locale()
        shown.look(map(ungrouped, numbers), repeat(False, len(numbers)))
        if len(shown.proof) == 1:
            (self.style,) = shown.proof

    def value(self, cell: str, is_whole: bool) -> float | None:
        """The number in a cell; None if it is none, or can be read in two ways. is_whole: it has no decimals."""
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


_ENGLISH = Numbers(ENGLISH)  # of CSV and JSON, whatever the locale


class Report(Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of table of `nsys stats`, and its columns (`counters/nsys/tables.toml`)."""

    report: str
    name: str
    time: str
    launches: str = ""
    start: str = ""
    others: list[str] = []
    is_mean: bool = False
    is_size: bool = False
    is_of_host: bool = False

    @property
    def columns(self) -> set[str]:
        """The columns, without units, that a table of this kind must have."""
        return {self.name, self.time, self.launches or self.name, *self.others}


@cache
def reports() -> dict[str, Report]:
    """The kinds of tables that tell times of kernels, by name, the best first."""
    document = Document.read(folder("counters") / "nsys" / "tables.toml")
    return {each.report: each for each in convert(document.data["table"], list[Report])}


class Shape(Struct, frozen=True):
    """A table of nsys as a log has it: its columns, times with their units.

    spans: where the columns of the text form stand; (): its dashes were lost. start: the column of the start of a
    launch, rate: of how fast it copies; "": not told.
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
        """Seconds in one unit of the time."""
        return _SCALE[_unit_of(self.time)]

    @property
    def is_whole(self) -> bool:
        """Whether the time can have no decimals: it is in ns, and no mean."""
        return self.scale == _SCALE["ns"] and not self.report.is_mean


def _indented(line: str, spans: Sequence[tuple[int, int]]) -> str:
    """A row of the text form whose blanks in front were lost or changed: its first number ends below its column's."""
    words = line.split()
    return line.lstrip().rjust(len(line.strip("\n").lstrip()) + spans[0][1] - len(words[0]))


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
        """Both launches together: sums, the shortest and the longest of both."""
        return replace(
            self,
            launches=self.launches + other.launches,
            time_s=self.time_s + other.time_s,
            least_s=float(np.fmin(self.least_s, other.least_s)),
            most_s=float(np.fmax(self.most_s, other.most_s)),
        )


def shape_of(names: Sequence[str], spans: Sequence[tuple[int, int]] | None = None) -> Shape | None:
    """The nsys table that these columns make: the one with most columns that fits; None: no times of kernels."""
    timed = {match[1]: name for name in reversed(names) if (match := _WITH_UNIT.fullmatch(name))}
    known = [each for each in reports().values() if each.time in timed and each.columns <= {each.time, *names}]
    if not known:
        return None
    report = max(known, key=lambda each: len(each.columns))
    rate = next((name for name in names if name.startswith("Throughput (")), "")
    ends = tuple(timed.get(end) or timed.get(f"{end}imum", "") for end in ("Min", "Max"))
    return Shape(
        report, tuple(names), timed[report.time], mapped(tuple, spans), timed.get(report.start, ""), rate, ends
    )


class Nsys(Struct):
    """A parser of tables of `nsys stats`, line by line. sums: kind of table -> (kernel, device, part) -> launches.

    parts: "stream" or LAUNCH, by which the launches of a trace are split; None: by nothing. begun: how many tables of
    each kind there were: as many as captures. calls: of CUDA's functions. held: columns -> rows of a trace. ends: of
    the sizes of copies, by name.
    """

    parts: str | None = None
    sums: dict[str, dict[tuple[str, str | None, str | None], Timed]] = field(default_factory=dict)
    begun: Counter[str] = field(default_factory=Counter)
    calls: dict[str, HostCalls] = field(default_factory=dict)
    bare: list[tuple[float, str, int, float, float]] = field(default_factory=list)
    shape: Shape | None = None
    heading: str | None = None
    unit: str = ""
    numbers: Numbers = field(default_factory=Numbers)
    copied: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    sizes: dict[str, float] = field(default_factory=dict)
    ends: dict[str, set[float | None]] = field(default_factory=dict)
    gaps: Gaps = field(default_factory=lambda: Gaps(began_ns=0))
    held: dict[tuple[str, ...], list[list[str]]] = field(default_factory=dict)
    text: int | None = None
    foreign: int | None = None

    def feed(self, number: int, line: str) -> bool:
        """Take a line; whether it was understood, or may be skipped."""
        if not line.strip():
            self.shape = self.heading = None
            return True
        if _PERHAPS.match(line):
            self.begin(number, shape_of([name.strip() for name in split(line)]))
            self.heading = "" if self.shape is None else None
            return True
        if _TEXT.match(line) or (self.shape is None and _OTHERS.match(line)):
            self.heading = line
            self.shape = None
            self.text = self.text or number
            return True
        if title := _TITLE.fullmatch(line):
            self.unit = _OF_TITLE[title[1]]
            return True
        if self.heading is not None and _RULER.fullmatch(line):
            # Dashes below the names of the columns show where they are.
            spans = [dashes.span() for dashes in _COLUMN.finditer(line)]
            ends = [*(start for start, _ in spans[1:]), max(len(self.heading), spans[-1][1])]
            columns = [self.heading[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)]
            if self.unit:
                columns = [name + f" ({self.unit})" * (name in _WITHOUT_UNIT) for name in columns]
            self.begin(number, shape_of(columns, spans))
            if self.shape is not None:
                self.heading = None
            return True
        if self.shape is None and self.heading and self.numbers.value(line.split()[0], False) is not None:
            # Dashes were lost, as on a page that takes them for a line. A summary has all cells, so words tell them.
            shape = shape_of(_APART.split(self.heading.strip()), ())
            if shape is not None and not shape.is_trace:
                self.begin(number, shape)
        if self.shape is None:
            return self._bare_call(line) or self.heading is not None or _ASIDE.match(line) is not None
        if self.shape.spans is None:
            return self.row(self.shape, split(line))
        fields = None
        if places := self.shape.spans:
            fields = below(line, places) or below(_indented(line, places), places)
        if fields is None and self.numbers.has_blanks:
            return False  # where numbers hold blanks, words do not tell the columns
        return self.row(self.shape, fields or _WORDS.split(line.strip(" \t"), len(self.shape.columns) - 1))

    def _bare_call(self, line: str) -> bool:
        """Take a row of calls below a header that was cut off, in ns: share, total, number, mean, ..., and the name.

        Its numbers show that they are these: the mean is the total over the number. Other units have decimals. They
        are used if their shares are those of nearly all calls.
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
            self.bare.append((share, name, int(number), 1e-9 * total, 1e-9 * longest))
        return is_one

    def begin(self, number: int, shape: Shape | None) -> None:
        """Begin a table at line `number`. shape: None if the table tells nothing of kernels."""
        self.shape = shape
        if shape is None:
            self.foreign = self.foreign or number
        else:
            self.begun[shape.report.report] += 1

    def row(self, shape: Shape, fields: Sequence[str]) -> bool:
        """Take a row of a table; False if its time or its launches are no numbers."""
        if len(fields) != len(shape.columns):
            return False
        row = dict(zip(shape.columns, (cell.strip() for cell in fields), strict=True))
        is_text = shape.spans is not None
        numbers = self.numbers if is_text else _ENGLISH
        if is_text:
            numbers.look(cell for column, cell in row.items() if column != shape.report.name)
        time = numbers.value(row[shape.time], is_text and shape.is_whole)
        launches = numbers.value(row.get(shape.report.launches, "1"), is_text)
        if time is None or launches is None or not launches.is_integer() or launches > _MOST_LAUNCHES:
            return False
        name = row[shape.report.name]
        if is_text:  # somebody may have put a remark behind it
            name = _REMARK.sub("", name)
        if shape.report.is_size:
            self.sizes[name] = self.sizes.get(name, 0.0) + time * shape.scale
            self.ends.setdefault(name, set()).update(numbers.value(row.get(end, ""), False) for end in shape.ends)
            return True
        least, most = (numbers.value(row.get(end, ""), is_text and shape.is_whole) for end in shape.ends)
        if shape.report.name == _RANGE:
            name, time_s, longest_s = f"range {name.removeprefix(':')}", time * shape.scale, (most or 0.0) * shape.scale
            added(self.calls, name, HostCalls(name, int(launches), time_s, longest_s, is_range=True))
            return True
        if shape.report.is_of_host:
            self._add_calls(name, int(launches), time * shape.scale, (most or 0.0) * shape.scale)
            return True
        if shape.is_trace:
            start = numbers.value(row.get(shape.start, ""), is_text)
            rate = numbers.value(row.get(shape.rate, ""), False)
            row |= {shape.report.name: name, shape.time: repr(time)}
            row |= {shape.start: phrase("{!r}", start), shape.rate: phrase("{!r}", rate)}
            self.held.setdefault(shape.columns, []).append([row[column] for column in shape.columns])
            if len(self.held[shape.columns]) >= _HELD:
                self.finish()
        elif name and row.get("Category", "CUDA_KERNEL") == "CUDA_KERNEL" and not name.startswith(_COPY):
            many = launches if shape.report.is_mean else 1.0
            ends_s = (math.nan if end is None else end * shape.scale for end in (least, most))
            device = row.get("Device") or None
            self.add(shape, Timed(name, device, int(launches), time * shape.scale * many, None, *ends_s))
        else:
            self.add_copies(shape, name, int(launches), time * shape.scale)
        return True

    def finish(self) -> None:
        """Add up the rows of traces that are held, as those of a trace in CSV."""
        for columns, rows in self.held.items():
            piece: Piece = {place: list(cells) for place, cells in enumerate(zip(*rows, strict=True))}
            add_trace(self, Section(OF_LAUNCHES, list(columns)), [piece])
        self.held = {}

    def add(self, shape: Shape, launched: Timed) -> None:
        """Add launches of a kernel to those of the same kernel, device and part in this kind of table."""
        key = launched.name, launched.device, launched.part
        added(self.sums.setdefault(shape.report.report, {}), key, launched)

    def _add_calls(self, name: str, number: int, time_s: float, longest_s: float) -> None:
        if _CALL.fullmatch(name):
            name = VERSION.sub("", name)
            added(self.calls, name, HostCalls.of_run(name, number, time_s, longest_s))

    def add_copies(self, shape: Shape, name: str, number: int, seconds: float) -> None:
        """Add copies or memsets to those of one name in this kind of table; several kinds may tell the same ones."""
        before = self.copied.setdefault(shape.report.report, {}).setdefault(name, [0, 0.0])
        before[0] += number
        before[1] += seconds

    def _is_unlike(self, name: str) -> bool:
        """Whether the copies of a name have unlike sizes."""
        return len(self.ends.get(name, set()) - {None}) > 1

    @property
    def beside(self) -> dict[str, Any]:
        """The arguments of `Source.log` beside kernels: copies, by the best kind of table, and calls of CUDA."""
        if sum(share for share, *_ in self.bare) > _ALL_CALLS:
            for _, name, number, time_s, longest_s in self.bare:
                self._add_calls(name, number, time_s, longest_s)
        self.bare = []
        best = next((self.copied[kind] for kind in reports() if kind in self.copied), {})
        told = tuple(
            Copies(*kind, int(number), time_s, self.sizes.get(name, 0.0), again_of(number, self._is_unlike(name)))
            for name, (number, time_s) in best.items()
            if (kind := kind_of_copy(name))
        )
        return {
            "copies_s": sum(time_s for _, time_s in best.values()),
            "copies": self.gaps.copies or told,
            "calls_of_host": tuple(self.calls.values()),
        }

    @property
    def kernels(self) -> list[Timed]:
        """The kernels, from the best kind of table that there is."""
        best = next((self.sums[kind] for kind in reports() if kind in self.sums), {})
        return list(best.values())

    def table(self) -> Table:
        """The table of kernels' times; there must be some."""
        best = next((kind for kind in reports() if kind in self.sums), "")
        return table_of(self.kernels, OF_LAUNCHES if best and not reports()[best].launches else KIND, self.parts)

    def notes(self) -> Iterable[str]:
        """Notes on tables that were not used, names that are cut off, and copies."""
        kinds = [kind for kind in reports() if kind in self.sums]
        if len(kinds) > 1:
            yield f"the times are those of {kinds[0]}; the log tells them again in {', '.join(kinds[1:])}, not used"
        cut = sum(kernel.name.endswith(_CUT) for kernel in self.kernels)
        if cut:
            yield (
                f"nsys cut {cut} names of kernels off in its text (they end in {_CUT}): kernels alike up to there "
                f"are added up, and none is found in a log of counters; write whole names with `{COMMAND}`"
            )
        if best := next((self.copied[kind] for kind in reports() if kind in self.copied), {}):
            number, seconds = map(sum, zip(*best.values(), strict=True))
            yield no_kernels([("copies and memsets", int(number), seconds)])

    @property
    def captures(self) -> int:
        """How many times nsys was run: a table of one kind is printed once for each."""
        return max((self.begun[kind] for kind in self.sums), default=0)

    def why_no_table(self) -> str | None:
        """Why a log of nsys tells no kernels, in a sentence; None if the log is not of nsys."""
        if self.foreign is not None or self.begun or self.copied or self.sizes:
            return f"the log has tables of nsys but none of kernels; make one with `{COMMAND} > times.csv`"
        if self.text is not None:
            return f"the tables of nsys are printed as text (line {self.text}); write them with `{COMMAND} > times.csv`"
        return None


def table_of(kernels: Sequence[Timed], kind: str, parts_by: str | None = None) -> Table:
    """A table with a row for each of `kernels`, of which there must be some.

    kind: the table's kind, best of one run. parts_by: what their parts are; of LAUNCH become starts and streams.
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
        rows = told_apart(rows)
    return Table(kind, rows, Columns.of({}, len(kernels)), {})


def read(source: Source, blocks: Iterator[bytes], _: object = None, parts: str | None = None, *__: object) -> Log:
    """Read the JSON tables of nsys. Raises LogError: none tells the times of kernels, or the last is cut off."""
    nsys = Nsys(parts)
    shapes: dict[tuple[str, ...], Shape | None] = {}
    skipped = lines = 0
    example = text = ""
    is_closed = True
    for block in blocks:
        lines += block.count(b"\n")
        text += block.decode("utf-8", "replace")
        rows, text = _rows(text)
        # Behind the last whole row an array may end, or nothing begin.
        is_open = rows or not is_closed
        is_closed = "]" in text.partition("{")[0] or not (is_open or _OBJECT.search(text))
        for row in rows:
            columns = tuple(row)
            if columns not in shapes:
                shapes[columns] = shape_of(columns)
                nsys.begin(lines, shapes[columns])
            shape = shapes[columns]
            if shape is not None and not nsys.row(shape, [phrase("{}", value) for value in row.values()]):
                skipped += 1
                example = example or json.dumps(row)[:80]
    if not is_closed:
        raise LogError(f"{source.path}: the JSON is cut off or damaged behind line {lines}; write it again with nsys")
    nsys.finish()
    if not nsys.kernels:
        why = nsys.why_no_table() or f"no row of nsys tells a kernel; make a table with `{COMMAND} > times.csv`"
        raise LogError(f"{source.path}: {why}")
    notes = [*source.notes, *nsys.notes()]
    if skipped:
        rows_have = counted(skipped, "row has", "rows have")
        notes.append(f"{rows_have} no readable time or number of launches and is skipped, for example: {example}")
    about = {"lines": lines, "skipped_lines": skipped, "idle": nsys.gaps.idle, **nsys.beside}
    return source.log([nsys.table()], notes, format_=KIND, **about)


def _rows(text: str) -> tuple[list[dict[str, Any]], str]:
    """The whole objects in the text, and the rest of it behind them: a row that is not whole, or the array's end."""
    rows: list[dict[str, Any]] = []
    place = 0
    start = _OBJECT.search(text)
    while start is not None:
        place = start.start()
        end = start.end()
        try:
            row, place = _DECODER.raw_decode(text, place)
            rows.append(row)
            start = _OBJECT.search(text, place)
        except (ValueError, RecursionError):
            # With another row behind it, this is none, but words of a program.
            start = _OBJECT.search(text, end)
    rest = text[place:]
    return rows, when(len(rest) <= _LONGEST, rest)


def columns_of(section: Section) -> list[int]:
    """The places of those columns of a trace that are read."""
    shape = _shape(section)
    return section.places((shape.report.name, "Device", shape.time, STREAM, shape.start, shape.rate, *_MEMORIES))


def places_of_names(section: Section) -> list[int]:
    """The places of columns in which few different texts come again and again."""
    return section.places((_shape(section).report.name, "Device", STREAM, *_MEMORIES))


def add_trace(nsys: Nsys, section: Section, pieces: Sequence[Piece]) -> int:
    """Add rows of a trace to `nsys`; returns how many are no launches, since they lack a time or a name."""
    if not pieces:
        return 0
    table = together(pieces)
    shape = _shape(section)
    names = names_of(table[section.at(shape.report.name) or 0])
    place = section.at("Device")
    devices = Names(("",), np.zeros_like(names.codes)) if place is None else names_of(table[place])
    seconds = values(table[section.at(shape.time) or 0], ENGLISH) * shape.scale

    bare_names = [name.strip() for name in names.names]
    is_copy = np.array([name.startswith(_COPY) for name in bare_names], dtype=bool)[names.codes]
    is_stray = ~(seconds >= 0) | np.array([not name for name in bare_names], dtype=bool)[names.codes]
    is_kernel = ~is_copy & ~is_stray
    if is_copy.any():
        nsys.add_copies(shape, _COPY, int(is_copy.sum()), float(np.nansum(seconds[is_copy])))
    start = section.at(shape.start)
    start_ns = None
    if start is not None:
        starts = values(table[start], ENGLISH) * round(1e9 * _SCALE[_unit_of(shape.start)])
        start_ns = np.nan_to_num(starts).round().astype(np.int64)
        time_ns = np.where(np.isnan(starts + seconds), -1, (1e9 * np.nan_to_num(seconds)).round()).astype(np.int64)
        rate, size_b = section.at(shape.rate), np.full(len(names), np.nan)
        if rate is not None:
            unit = _unit_of(shape.rate).removesuffix("ps").removesuffix("/s")
            size_b = values(table[rate], ENGLISH) * _SCALE.get(unit, 0.0) * seconds
        words = [names, *(names_of(table[end]) for end in section.places(_MEMORIES))]
        codes, first = alike(*(word.codes for word in words))
        shown = Names(tuple(map(" ".join, zip(*(word[first].texts() for word in words), strict=True))), codes)
        known = ~is_stray
        columns = devices[known], shown[known], start_ns[known], time_ns[known]
        nsys.gaps.add(*columns, is_kernel=is_kernel[known], size_b=size_b[known])
    names, devices = names.chosen(is_kernel), devices.chosen(is_kernel)
    parts = Names((), np.full(len(is_kernel), -1, dtype=np.int32))
    stream = section.at(STREAM)
    if nsys.parts is not None and stream is not None:
        parts = names_of(table[stream])
        if nsys.parts == LAUNCH and start_ns is not None:
            parts = Names.of(map(part_of, start_ns.tolist(), parts.texts()))
    parts = parts.chosen(is_kernel)
    kernel, first = alike(names.codes, devices.codes, parts.codes)
    sums = np.bincount(kernel, seconds[is_kernel], len(first)).tolist()
    launches = np.bincount(kernel, minlength=len(first)).tolist()
    texts = (column.chosen(first).texts() for column in (names, devices, parts))
    for name, device, part, many, time_s in zip(*texts, launches, sums, strict=True):
        nsys.add(shape, Timed(name.strip(), device.strip() or None, many, time_s, part or None))
    return int(is_stray.sum())


def _shape(section: Section) -> Shape:
    shape = shape_of(section.columns)
    assert shape is not None, "a section of this kind has the columns of a trace"
    return shape

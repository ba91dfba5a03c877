"""Times of kernels from `nsys stats`, as CSV or as text: exact totals, no counters; a trace tells the device too.

Numbers of the text form are grouped as the user's locale says: `numbers`. The JSON form is read by `json`,
the database that `nsys` makes of a report by `sqlite`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Columns
from eprof.base.text import pattern
from eprof.logs.rows.header import split
from eprof.logs.rows.launches import LAUNCH, part_of, told_apart
from eprof.logs.rows.log import Names, Table, TableRows
from eprof.profilers.nsys.numbers import Numbers
from eprof.profilers.nsys.signs import KIND

OF_LAUNCHES = "nsys-trace"
STREAM = "Strm"
DATABASE = "nsys-sqlite"
COMMAND = "nsys stats --report cuda_gpu_kern_sum --format csv FILE.nsys-rep"
# The tables that tell the times of kernels, the best first: a log may have several of the same run.
_BEST = ("cuda_gpu_trace", "cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum", "cuda_gpu_sum", "cuda_kern_exec_sum")
TRACE, KERNELS, BY_GRID, ALL, LAUNCHED = _BEST
_UNIT = r" ?\((ns|nsec|us|usec|ms|msec|s|sec)\)"
_TOTAL = pattern(f"Total Time{_UNIT}")
_AVERAGE = pattern(f"KAvg{_UNIT}")
_DURATION = pattern(f"Duration{_UNIT}")
_START = pattern(f"Start{_UNIT}")
_SCALE = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_PERHAPS = pattern(r'(?:"?Time ?\(%\)"?,"?Total Time ?\(|(?:"?PID"?,"?TID"?,"?DevId"?,)?"?Count"?,"?QCount"?,)')
_TEXT = pattern(
    r"\s*(?:Time ?\(%\)\s+Total Time \([a-z]+\)\s+\S.*|(?:PID\s+TID\s+DevId\s+)?Count\s+QCount\s.*"
    r"|Start \([a-z]+\)\s+Duration \([a-z]+\)\s+CorrId\s.*)"
)
_OTHERS = pattern(r"\s*(?:Time ?\(%\)\s+)?Total(?: Time)?(?: \(.*\))?\s+(?:Num Calls|Operations|Count)\s")
_RULER = pattern(r"\s*-+(?:  ?-+)+\s*")
_COLUMN = pattern(r"-+")
_ASIDE = pattern(
    r"\s*(?:(?:Processing|Generating|Exporting|Using|Running|NOTICE|SKIPPED)\b.*(?:\.sqlite|\[)"
    r"|\[\d/\d\] Executing '\w+' stats report|\*\* .*\(\w+\):\s*$)"
)
_WORDS = pattern(r"[ \t]+")
_ENGLISH = Numbers(".")  # of CSV and JSON, whatever the locale
_MOST_LAUNCHES = 10**12
_CUT = "…"


class Shape(Struct, frozen=True):
    """A table: which columns tell the kernel, its launches (None: one a row) and its time. spans: of the text form.

    start: of a launch; None where there are no launches one by one.
    """

    kind: str
    columns: tuple[str, ...]
    name: str
    time: str
    launches: str | None
    spans: tuple[tuple[int, int], ...] | None = None
    start: str | None = None

    @property
    def unit(self) -> str:
        """The unit of the time in an nsys summary: "ns", "us", "ms" or "s"."""
        return _unit_of(self.time)

    @property
    def scale(self) -> float:
        """Seconds in the unit of the time of an nsys summary."""
        return _SCALE[self.unit]

    @property
    def start_scale(self) -> float:
        """Nanoseconds in the unit of the start of an nsys trace."""
        return round(1e9 * _SCALE[_unit_of(self.start or "")])

    @property
    def is_whole(self) -> bool:
        """Whether the time in an nsys summary can have no decimals: nanoseconds that are no average."""
        return self.unit == "ns" and self.kind != LAUNCHED


def _unit_of(column: str) -> str:
    return column.rpartition("(")[2].rstrip(")").removesuffix("ec")


class Timed(Struct, frozen=True):
    """Launches of a kernel and the seconds that they took together (NaN: not known). part: their stream, if asked."""

    name: str
    device: str | None
    launches: int
    time_s: float
    part: str | None = None


def shape_of(names: Sequence[str], spans: Sequence[tuple[int, int]] | None = None) -> Shape | None:
    """The nsys table that these columns make; None if it does not tell the times of kernels."""
    own = set(names)
    columns = tuple(names)
    places = None if spans is None else tuple(spans)
    total = _first(names, _TOTAL)
    average = _first(names, _AVERAGE)
    duration = _first(names, _DURATION)
    if total and {"Instances", "Category", "Operation"} <= own:
        return Shape(ALL, columns, "Operation", total, "Instances", places)
    if total and {"Instances", "Name"} <= own:
        return Shape(BY_GRID if "GridXYZ" in own else KERNELS, columns, "Name", total, "Instances", places)
    if average and {"Count", "Kernel Name"} <= own:
        return Shape(LAUNCHED, columns, "Kernel Name", average, "Count", places)
    if duration and {"CorrId", "Name"} <= own:
        return Shape(TRACE, columns, "Name", duration, None, places, _first(names, _START) or None)
    return None


def _first(names: Sequence[str], form: re.Pattern[str]) -> str:
    return next((name for name in names if form.fullmatch(name)), "")


class Nsys(Struct):
    """The tables of `nsys stats` as lines come. sums: kind of table -> (kernel, device, part) -> launches, seconds.

    parts: "stream" or LAUNCH, by which the launches of a trace are split; None: by nothing.
    """

    parts: str | None = None
    sums: dict[str, dict[tuple[str, str | None, str | None], list[float]]] = field(default_factory=dict)
    shape: Shape | None = None
    heading: str | None = None
    numbers: Numbers = field(default_factory=Numbers)
    others: int = 0
    text: int | None = None
    foreign: int | None = None

    def feed(self, number: int, line: str) -> bool:
        """Take a line of nsys's output; whether it was of use."""
        if not line.strip():
            self.shape = self.heading = None
            return True
        if _PERHAPS.match(line):
            self.shape = shape_of([name.strip() for name in split(line)])
            self.heading = None
            if self.shape is None:
                self.foreign = self.foreign or number
                self.heading = ""
            return True
        if _TEXT.match(line) or (self.shape is None and _OTHERS.match(line)):
            self.heading = line
            self.shape = None
            self.text = self.text or number
            return True
        if self.heading is not None and _RULER.fullmatch(line):
            self._ruler(number, self.heading, [dashes.span() for dashes in _COLUMN.finditer(line)])
            return True
        if self.shape is None:
            return self.heading is not None or _ASIDE.match(line) is not None
        if not self.shape.spans:
            return self.row(self.shape, split(line))
        fields = _below(line, self.shape.spans)
        if fields is None and self.numbers.has_blanks:
            return False  # where numbers hold blanks, words do not tell the columns
        return self.row(self.shape, fields or _WORDS.split(line.strip(" \t"), len(self.shape.spans) - 1))

    def _ruler(self, number: int, heading: str, spans: Sequence[tuple[int, int]]) -> None:
        """Take the line of dashes below the names of the columns of nsys's text table, which shows where they are."""
        ends = [*(start for start, _ in spans[1:]), max(len(heading), spans[-1][1])]
        self.shape = shape_of([heading[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)], spans)
        if self.shape is None:
            self.foreign = self.foreign or number
        else:
            self.heading = None

    def row(self, shape: Shape, fields: Sequence[str]) -> bool:
        """Take a row of an nsys table; whether its time and its launches are numbers."""
        if len(fields) != len(shape.columns):
            return False
        row = dict(zip(shape.columns, (cell.strip() for cell in fields), strict=True))
        is_text = shape.spans is not None
        numbers = self.numbers if is_text else _ENGLISH
        if is_text:
            numbers.look(cell for column, cell in row.items() if column != shape.name)
        time = numbers.value(row[shape.time], is_text and shape.is_whole)
        launches = numbers.value(row[shape.launches], is_text) if shape.launches else 1.0
        if time is None or launches is None or not launches.is_integer() or launches > _MOST_LAUNCHES:
            return False
        name = row[shape.name]
        is_kernel = row.get("Category", "CUDA_KERNEL") == "CUDA_KERNEL" and not name.startswith("[CUDA mem")
        if name and is_kernel:
            many = launches if shape.kind == LAUNCHED else 1.0
            part = self._part(shape, row, numbers) if self.parts else None
            self.add(shape, name, row.get("Device"), int(launches), time * shape.scale * many, part)
        else:
            self.others += 1
        return True

    def _part(self, shape: Shape, row: Mapping[str, str], numbers: Numbers) -> str | None:
        """What a row of an nsys trace is a part of: its stream, or itself."""
        stream = row.get(STREAM) or None
        start = numbers.value(row[shape.start], shape.spans is not None) if shape.start else None
        if self.parts != LAUNCH or start is None:
            return stream
        return part_of(round(start * shape.start_scale), stream)

    def add(
        self, shape: Shape, name: str, device: str | None, launches: int, seconds: float, part: str | None = None
    ) -> None:
        """Launches of a kernel in nsys's tables and the time that they took together."""
        own = self.sums.setdefault(shape.kind, {}).setdefault((name, device or None, part), [0, 0.0])
        own[0] += launches
        own[1] += seconds

    @property
    def kernels(self) -> list[Timed]:
        """The kernels of nsys's output, from the best table that there is."""
        best = next((self.sums[kind] for kind in _BEST if kind in self.sums), {})
        return [Timed(name, device, int(many), time_s, part) for (name, device, part), (many, time_s) in best.items()]

    def table(self) -> Table:
        """The times of kernels that nsys printed; there must be some."""
        best = next((kind for kind in _BEST if kind in self.sums), "")
        return table_of(self.kernels, OF_LAUNCHES if best == TRACE else KIND, self.parts)

    def notes(self) -> Iterable[str]:
        """Sentences for a log whose times were read from nsys's tables."""
        kinds = [kind for kind in _BEST if kind in self.sums]
        if len(kinds) > 1:
            yield f"the times are those of {kinds[0]}; the log tells them again in {', '.join(kinds[1:])}, not used"
        cut = sum(kernel.name.endswith(_CUT) for kernel in self.kernels)
        if cut:
            yield (
                f"nsys cut {cut} names of kernels off in its text (they end in {_CUT}): kernels alike up to there "
                f"are added up, and none is found in a log of counters; write whole names with `{COMMAND}`"
            )

    def why_no_table(self) -> str | None:
        """One sentence if the log is of nsys; None if it is not."""
        if self.foreign is not None or self.others:
            return f"the log has tables of nsys but none of kernels; make one with `{COMMAND} > times.csv`"
        if self.text is not None:
            return f"the tables of nsys are printed as text (line {self.text}); write them with `{COMMAND} > times.csv`"
        return None


def _below(line: str, spans: Sequence[tuple[int, int]]) -> list[str] | None:
    """The fields of a row of nsys's text, which stand below the dashes; None if it does not keep to them."""
    gaps = [line[end:start] for (_, end), (start, _) in zip(spans, spans[1:], strict=False)]
    if any(gap.strip() for gap in gaps) or line[: spans[0][0]].strip():
        return None
    return [line[start:end] for start, end in (*spans[:-1], (spans[-1][0], len(line)))]


def table_of(kernels: Sequence[Timed], kind: str, parts_by: str | None = None) -> Table:
    """A table of times from nsys, a row for each of `kernels`, of which there must be some.

    kind: its source, best of one run.

    parts_by: what their parts are; of LAUNCH become starts and streams.
    """
    parts = [kernel.part for kernel in kernels]
    rows = TableRows(
        device=Names.of(kernel.device for kernel in kernels),
        kernel=Names.of(kernel.name for kernel in kernels),
        run=np.zeros(len(kernels), dtype=np.int64),
        launches=np.array([kernel.launches for kernel in kernels], dtype=np.int64),
        time_s=np.array([kernel.time_s for kernel in kernels], dtype=np.float64),
        part=Names.of(parts) if any(part is not None for part in parts) else None,
    )
    return Table(kind, told_apart(rows) if parts_by == LAUNCH else rows, Columns.of({}, len(kernels)), {})

"""The tables of nvprof's CSV: counters and times, each as a summary (a row a kernel) or a row a launch.

Summaries of counters have a row a kernel and counter, wide traces a column a counter; GPU traces and GPU summaries hold
times.
"""

from __future__ import annotations

import math
import re
from itertools import count

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Array, Floats, Ints, alike, codes_in, middle_share
from eprof.base.optional import added
from eprof.base.text import pattern
from eprof.logs.log import BYTES_PER_S, COUNT, LAUNCH, NOT_IN_TABLE, ON_TOTALS, OTHER, PERCENT, HostCalls, launch_part
from eprof.nvidia.folding import Cells, NameNumbers, Piece, RowSums
from eprof.profilers.nvprof import tables
from eprof.profilers.nvprof.tables import (
    DEVICE,
    LAUNCH_ID,
    WHOLE,
    Answers,
    ColumnSection,
    Form,
    Header,
    NvprofStore,
    OpenTable,
    Rows,
)
from eprof.readers.cells import (
    ABSENT,
    MISFIT,
    OLD_RATES,
    RATES,
    SECONDS,
    Shared,
    as_cell,
    is_number,
    seconds,
    shows_wrong,
)
from eprof.readers.gaps import Gaps

_NAME = {tables.EVENTS: "Event Name", tables.METRICS: "Metric Name"}  # the column of a counter's name
_INSTANCES = " instances)"  # "inst_integer (80 instances)", with --aggregate-mode off: its value is a list
_LIST = pattern(r"\d+(?:,\s*\d+)+")
_ADDED_UP = "counts told by hardware instance (--aggregate-mode off) were added up"
_LEFT_OUT = "what is told by hardware instance (--aggregate-mode off) and no count was left out"
_HELD_CELLS = 1 << 22
# Column labels of things that nvprof prints with a unit, which a table without its row of units has lost.
_RATE = pattern(
    r"throughput|efficiency|hit.rate|utilization|activity|occupancy|stall|overhead|\bipc\b|per.(?:request|warp|cycle)"
    r"|per active cycle",
    re.IGNORECASE,
)
_UNIT = pattern(r"%|[A-Za-z/]*")
_KINDS = {"%": PERCENT, **dict.fromkeys(RATES, BYTES_PER_S)}
_INSTANCE = pattern(r"(.+) \((\d+)\)")  # with --aggregate-mode off: a column a counter and unit of the GPU


class SummarySection(ColumnSection):
    """nvprof's summary of counters, a row a kernel and counter: `"Device","Kernel","Invocations",...,"Avg"`."""

    def __init__(self, header: Header, run: int, store: NvprofStore) -> None:
        super().__init__(header, run, store)
        names = ("Device", "Kernel", "Invocations", _NAME[header.kind])
        self.device, self.kernel, self.calls, self.name = places = tuple(map(header.at, names))
        # The first is read; where any of them went wrong, there is no value.
        values = [header.position(name) for name in ("Total", "Avg", "Min", "Max")]
        self.value, *self._others = [place for place in values if place is not None]
        self.has_total = self.value != header.at("Avg")
        self.form = Form(header.width, places, (self.value,), checked=tuple(self._others))
        is_named = str.strip  # it leaves something
        self.needed = (
            (self.device, DEVICE.search), (self.calls, WHOLE.fullmatch), (self.kernel, is_named), (self.name, is_named)
        )  # fmt: skip
        self.rates = store.rates or RATES
        self._counters = NameNumbers()
        self._counter_of = Answers(lambda name: self._counters.of(store.canonical(name.strip())), np.int32)
        self._cells: list[tuple[Array, ...]] = []
        self._number_of_cells = 0
        self._unused: list[tuple[Array, ...]] = []
        self._is_used = False

    def all_fit(self, rows: Rows) -> bool:
        """As `fits` for rows of nvprof's summary; those by hardware instance are taken one by one."""
        return super().all_fit(rows) and rows.all(self.name, self.store.each(_is_of_whole))

    def take(self, fields: list[str]) -> None:
        """Take a row of nvprof's summary; where a counter went wrong there is no value."""
        fields = [*fields]
        wrong = [fields[place] for place in self._others if shows_wrong(fields[place])]
        if wrong:
            fields[self.value] = wrong[0]
        if not _is_of_whole(fields[self.name]):
            fields[self.name] = fields[self.name].rpartition(" (")[0]
            values = fields[self.value]
            if _LIST.fullmatch(values.strip()):
                self.store.note(_ADDED_UP)
                fields[self.value] = str(sum(map(int, values.split(","))))
            elif "," in values:
                self.store.note(_LEFT_OUT)
                fields[self.value] = ""
        super().take(fields)

    def add(self, rows: Rows) -> None:
        """Keep the cells of the wanted counters of nvprof's summary; if there are none, which kernels ran."""
        wanted = rows.each(self.name, self.store.each(self.store.keeps_label))
        if wanted.any():
            self._is_used = True
            if not wanted.all():
                rows = rows.chosen(wanted)
            self._cells.append((*self._keys(rows), *rows.cells(self.value, self.rates)))
            self._number_of_cells += len(rows)
            if self._number_of_cells >= _HELD_CELLS:
                self.finish()
        elif not self._is_used:
            counters = rows.each(self.name, self._counter_of)
            self._unused.append(self._keys(rows.chosen(counters == counters[0])))

    def _keys(self, rows: Rows) -> tuple[Array, ...]:
        """(device, kernel, launches, counter) of nvprof's rows, (n_rows,) each; the names as the store's numbers."""
        return (
            rows.each(self.device, self.store.each(self.store.device_of, np.int32)),
            rows.each(self.kernel, self.store.each(self.store.kernels.of, np.int32)),
            rows.each(self.calls, self.store.each(int, np.int64)),
            rows.each(self.name, self._counter_of),
        )

    def finish(self) -> None:
        """Store cells of nvprof's summary as rows: one for each device and kernel, more if a counter comes twice."""
        if self._unused and not self._is_used:
            # None of the counters is wanted: the rows show which kernels ran, and how often.
            device, kernel, calls, counter = map(np.concatenate, zip(*self._unused, strict=True))
            _, first = _rows(device, kernel, calls, counter)
            self.store.has_useless = True
            self.store.add(self.header.kind, Piece.of_run(self.run, device[first], kernel[first], calls[first]))
        cells, self._cells, self._unused, self._number_of_cells = self._cells, [], [], 0
        if not cells:
            return
        device, kernel, calls, counter, values, kinds = map(np.concatenate, zip(*cells, strict=True))
        if not self.has_total:
            values = np.where(kinds == as_cell(COUNT), values * calls, values)
        row, first = _rows(device, kernel, calls, counter)
        labels = self._counters.names()
        shape = len(labels), len(first)
        table = np.full(shape, np.nan)
        table_kinds = np.full(shape, ABSENT, np.int8)
        is_known = np.zeros(shape, bool)
        table[counter, row] = values
        table_kinds[counter, row] = kinds
        is_known[counter, row] = True
        # Rows with the same counters go together: a cell without a value is one that the log has.
        pattern_of, first_of = alike(*is_known)
        for number, example in enumerate(first_of.tolist()):
            rows, places = np.flatnonzero(pattern_of == number), np.flatnonzero(is_known[:, example]).tolist()
            launches = first[rows]
            piece = Piece.of_run(self.run, device[launches], kernel[launches], calls[launches])
            piece.counters = {labels[place]: (table[place, rows], table_kinds[place, rows]) for place in places}
            self.store.add(self.header.kind, piece)


def _is_of_whole(name: str) -> bool:
    """Whether a counter of nvprof's summary is of the whole GPU, and not told by hardware instance."""
    return not name.rstrip().endswith(_INSTANCES)


def _rows(device: Array, kernel: Array, calls: Array, counter: Array) -> tuple[Ints, Ints]:
    """(the number of each cell's row, the first cell of each row) for cells of nvprof's summary, rows as they come.

    A row is a device, a kernel and a number of launches; the same counter again (two kernels of one name) opens
    a further one, so that nothing is overwritten.
    """
    row, first = alike(device, kernel)
    cell = row * (int(counter.max()) + 1) + counter
    if np.bincount(cell).max() > 1:
        # How often each cell came before: its place among those that are the same.
        order = np.argsort(cell, kind="stable")
        place = np.arange(len(cell))
        is_first = np.diff(cell[order], prepend=-1) != 0
        before = np.empty(len(cell), dtype=np.int64)
        before[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
        row, first = alike(row, before)
    if (calls[first][row] == calls).all():
        return row, first
    return alike(row, calls)


class _Column(Struct, frozen=True):
    """A counter's column of nvprof's wide trace, by its place in a line. is_instance: of one hardware instance."""

    place: int
    label: str
    heading: str
    is_instance: bool


class WideSection(ColumnSection):
    """nvprof's wide trace, a row a launch: `"Device","Context","Stream","Kernel"[,"Correlation_ID"],COUNTER...`."""

    has_units = True

    def __init__(self, header: Header, run: int, store: NvprofStore) -> None:
        super().__init__(header, run, store)
        self.device, self.kernel = header.at("Device"), header.at("Kernel")
        self.needed = ((self.device, DEVICE.search), (self.kernel, str.strip))
        self.stream = header.at("Stream") if store.by == "stream" else None
        self.rates = store.rates or RATES
        self._units: list[str] | None = None
        self._sums = RowSums()
        self._no_counts: set[str] = set()  # labels with values by hardware instance that cannot be added up
        self._differs: set[str] = set()  # labels of columns that come again with other values

        self._columns: list[_Column] = []
        headings = set(header.columns)
        for place, heading in enumerate(header.columns, header.prefix):
            if heading in tables.WIDE_FIXED:
                continue
            # By hardware instance there is a column for each, from "NAME (0)" on.
            instance = _INSTANCE.fullmatch(heading)
            is_instance = instance is not None and f"{instance[1]} (0)" in headings
            counter = instance[1] if instance and is_instance else heading
            label = store.canonical(counter)
            if store.keeps(label):
                self._columns.append(_Column(place, label, heading, is_instance))
        store.has_useless |= not self._columns
        names = [place for place in (self.device, self.kernel, self.stream) if place is not None]
        # Most logs have nothing but numbers, which are parsed sooner; the first other cell changes it.
        self.form = Form(header.width, tuple(names), numbers=tuple(column.place for column in self._columns))

    def takes_units(self, fields: list[str]) -> bool:
        """Take a line's fields if they are a wide trace's row of units, the first empty; returns whether they are."""
        own = fields[self.header.prefix :]
        if own[0] or not all(_UNIT.fullmatch(field.strip()) for field in own):
            return False
        self._units = fields
        return True

    def expects_units(self) -> bool:
        """Allow percentages, levels and <OVERFLOW> in a wide trace from here on; False if they were allowed already."""
        numbers = self.form.numbers
        if numbers:
            self.form = replace(self.form, values=numbers, numbers=())
        return bool(numbers)

    def add(self, rows: Rows) -> None:
        """Keep the cells of launches in nvprof's wide trace."""
        device = rows.each(self.device, self.store.each(self.store.device_of, np.int32))
        kernel = rows.each(self.kernel, self.store.each(self.store.kernels.of, np.int32))
        piece = Piece.of_run(self.run, device, kernel, np.ones(len(rows), np.int64))
        if self.stream is not None:
            piece.part = rows.each(self.stream, self.store.each(self.store.part_of, np.int32))
        for column in self._columns:
            values, kinds = self._in_unit(column, *rows.cells(column.place, self.rates))
            label = column.label
            if column.is_instance:
                known = values[kinds >= 0]
                if (kinds > as_cell(COUNT)).any() or not (known == np.floor(known)).all():
                    self._no_counts.add(label)
                before, before_kinds = piece.counters.get(label, (0.0, kinds))
                piece.counters[label] = before + values, np.minimum(before_kinds, kinds)
            elif label not in piece.counters:
                piece.counters[label] = values, kinds
            else:  # the same column again, which fills holes of the first
                first, first_kinds = piece.counters[label]
                is_hole = (first_kinds < 0) & (kinds >= 0)
                first = np.where(is_hole, values, first)
                piece.counters[label] = first, np.where(is_hole, kinds, first_kinds)
                again = next(name for number in count(2) if (name := f"{label} ({number})") not in piece.counters)
                piece.counters[again] = values, kinds
                if not np.array_equal(first, values, equal_nan=True):
                    self._differs.add(again)
        self._sums.add(piece)

    def _in_unit(self, column: _Column, values: Floats, kinds: Array) -> Cells:
        """A wide trace's column in base units, by the row of units, and kinds; a rate without a unit is no count."""
        count = as_cell(COUNT)
        if self._units and (unit := self._units[column.place].strip()):
            own = as_cell(_KINDS.get(unit, OTHER))
            kinds = np.where(kinds > count, np.int8(MISFIT), kinds)
            return values * self.rates.get(unit, 1.0), np.where(kinds == count, np.int8(own), kinds)
        if self._units is None and _RATE.search(column.heading) and (kinds == count).any():
            self.store.note("a table of launches has no row of units: its rates and ratios are kept without a unit")
            kinds = np.where(kinds == count, np.int8(as_cell(OTHER)), kinds)
        return values, kinds

    def finish(self) -> None:
        """Hand over the launches of nvprof's wide trace, without columns that say again what is there already."""
        piece = self._sums.take()
        if piece is None:
            return
        labels = {column.label for column in self._columns}
        for again in [label for label in piece.counters if label not in labels]:
            label = again.rpartition(" (")[0]
            if again in self._differs:
                self.store.note(
                    f"column `{label}` occurs again with other values; the later one is kept apart as `{again}`"
                )
            if again not in self._differs or self.store.keep is not None:
                del piece.counters[again]
        # What is no count cannot be added up over instances.
        for label in dict.fromkeys(column.label for column in self._columns if column.is_instance):
            if label not in self._no_counts:
                self.store.note(_ADDED_UP)
                continue
            self.store.note(_LEFT_OUT)
            size = len(piece.kernel)
            piece.counters[label] = np.full(size, np.nan), np.full(size, as_cell(OTHER), dtype=np.int8)
        self.store.add(self.header.kind, piece)


_ON_GPU, _OF_API = "GPU activities", "API calls"
_LIKE_A_CALL = pattern(r"cu(?:da)?[A-Z]\w*")
_NOT_A_KERNEL = ("[CUDA ", "[Unified Memory")
_MOVED = ("Size", "Throughput", "Unified Memory")  # the last is of pages that migrated
_SAME_SIZE = 0.01  # of a size, by which it may differ from its rate times its time
_SHAPE = (
    *(f"{what} {axis}" for what in ("Grid", "Block") for axis in "XYZ"),
    *("Registers Per Thread", "Static SMem", "Dynamic SMem"),
)


def is_kernel(name: str) -> bool:
    """Whether a name in nvprof's trace is of a kernel: not copies, memsets, Unified Memory, which are in brackets."""
    return not name.startswith(_NOT_A_KERNEL)


def _is_stripped(name: str) -> bool:
    return bool(name) and name == name.strip()


class TraceSection(ColumnSection):
    """nvprof's GPU trace, a row a launch or copy: `"Start","Duration",...,"Name"`. rounded: starts' relative error."""

    has_units = True
    rounded = 0.0

    def __init__(self, header: Header, run: int, store: NvprofStore) -> None:
        super().__init__(header, run, store)
        self.device_of = store.devices.of
        self.start, self.duration, self.device, self.name = map(header.at, ("Start", "Duration", "Device", "Name"))
        self.grid = header.position("Grid X")
        self.stream = header.position("Stream") if store.by in ("stream", LAUNCH) else None
        self.has_launch_ids = header.position("Correlation_ID") is None
        self.shape = [header.position(column) for column in _SHAPE]
        moved = {name: header.position(name) for name in _MOVED}
        self.moved = {name: place for name, place in moved.items() if place is not None}
        self.memory = [place for end in ("Src", "Dst") if (place := header.position(f"{end}MemType")) is not None]
        names = tuple(place for place in (self.device, self.stream, self.name, *self.memory) if place is not None)
        self.form = Form(
            header.width,
            names,
            numbers=(self.start, self.duration),
            together=tuple(place for place in self.shape if place is not None),
            maybe=tuple(self.moved.values()),
            with_id=self.name if self.has_launch_ids else None,
        )
        self._unit: float | None = None
        self._start_unit = 1.0
        self._shared_units = [0.0, 0.0]
        self._moved_units: dict[str, str] = {}
        self._sums = RowSums()
        self._end_ns: dict[int, int] = {}

    def takes_units(self, fields: list[str]) -> bool:
        """Take fields if they are an nvprof trace's row of units, of time below Start; returns whether they are."""
        start, duration = fields[self.start].strip(), fields[self.duration].strip()
        if start not in SECONDS or duration not in SECONDS:
            return False
        self._unit = SECONDS[duration]
        self._start_unit = SECONDS[start]
        rates = self.store.rates or RATES
        shared = [fields[place].strip() for place in self.shape[-2:] if place is not None]
        self._shared_units = [rates.get(f"{unit}/s", np.nan) for unit in shared]
        moved = {name: fields[place].strip().removesuffix("/s") for name, place in self.moved.items()}
        self._moved_units = {name: f"{unit}/s" for name, unit in moved.items()}
        return True

    def fits(self, fields: list[str]) -> bool:
        """Whether fields are a row of an nvprof trace: a start, maybe a duration, a name; with units that are known."""
        is_row = bool(
            is_number(fields[self.start])
            and (not fields[self.duration].strip() or is_number(fields[self.duration]))
            and fields[self.name].strip()
        )
        self.store.lacks_units |= is_row and self._unit is None
        return is_row and self._unit is not None

    def all_fit(self, rows: Rows) -> bool:
        """As `fits` for rows of an nvprof trace; those without a duration are looked at one by one."""
        return self._unit is not None and rows.all(self.name, self.store.each(_is_stripped))

    def take(self, fields: list[str]) -> None:
        """Take a row of an nvprof trace, the name without blanks around it and without a launch's number."""
        fields = [*fields]
        fields[self.name] = fields[self.name].strip()
        if self.has_launch_ids:
            fields[self.name] = LAUNCH_ID.sub("", fields[self.name])
        super().take(fields)

    def add(self, rows: Rows) -> None:
        """Keep the kernels' launches of an nvprof trace; count everything else by its name."""
        time_s = rows.numbers(self.duration) * (self._unit or np.nan)
        is_launch = rows.each(self.name, self.store.each(is_kernel))
        if self.grid is not None:  # kernels have one, copies have not; without these columns the name decides
            is_launch = is_launch & rows.is_filled(self.grid)
        name = rows.each(self.name, self.store.each(self.store.kernels.of, np.int32))
        others = codes_in(name[~is_launch])
        texts = self.store.kernels.names() if others else []
        for number in others:
            same_name = (name == number) & ~is_launch
            self.store.count_other(self.run, texts[number], int(same_name.sum()), float(np.nansum(time_s[same_name])))

        devices = rows.each(self.device, self.store.each(self.device_of, np.int32))
        device = devices[is_launch]
        kernel = name[is_launch]
        piece = Piece.of_run(self.run, device, kernel, np.ones(len(kernel), np.int64), time_s[is_launch])
        start_ns = np.nan_to_num(rows.numbers(self.start) * (self._start_unit * 1e9)).round().astype(np.int64)
        time_ns = (1e9 * np.nan_to_num(time_s, nan=-1e-9)).round().astype(np.int64)
        if self.rounded:
            self._settle(devices, start_ns, time_ns)
        shown = name.copy()
        if self.memory and not is_launch.all():
            copies = rows.chosen(~is_launch)
            cells = [copies.each(place, self.store.each(str, np.object_)) for place in (self.name, *self.memory)]
            shown[~is_launch] = [self.store.kernels.of(" ".join(words)) for words in zip(*cells, strict=True)]
        columns = self.store.devices.column(devices), self.store.kernels.column(shown)
        gaps = self.store.traces.setdefault(self.run, Gaps(began_ns=0))
        gaps.add(*columns, start_ns, time_ns, self.run, is_launch, self._size_b(rows, time_s))
        if self.stream is not None and self.store.by == LAUNCH:
            parts = map(launch_part, start_ns.tolist(), rows.each(self.stream, self.store.each(str, np.object_)))
            piece.part = np.array([self.store.part_of(part) for part in parts], dtype=np.int32)[is_launch]
        elif self.stream is not None:
            piece.part = rows.each(self.stream, self.store.each(self.store.part_of, np.int32))[is_launch]
        self._sums.add(piece)
        if None not in self.shape:
            sizes = np.array([rows.numbers(place)[is_launch] for place in self.shape if place is not None])
            shared = self._shared_units[0] * sizes[7] + self._shared_units[1] * sizes[8]
            shape = np.ones(len(kernel)), sizes[:3].prod(axis=0), sizes[3:6].prod(axis=0), sizes[6], shared
            added_up = np.array([np.bincount(kernel, column) for column in shape]).T
            for number in codes_in(kernel):
                added(self.store.shapes, number, added_up[number])

    def _settle(self, devices: Array, start_ns: Ints, time_ns: Ints) -> None:
        """Move starts of nvprof's launches, by no more than they were rounded, to where earlier work ended.

        So neither gaps nor work at the same time are made of rounding.
        """
        for place in np.argsort(start_ns, kind="stable").tolist():
            end_ns = self._end_ns.get(int(devices[place]), 0)
            if abs(int(start_ns[place]) - end_ns) <= self.rounded * start_ns[place]:
                start_ns[place] = end_ns
            self._end_ns[int(devices[place])] = max(end_ns, int(start_ns[place]) + max(int(time_ns[place]), 0))

    def _size_b(self, rows: Rows, time_s: Floats) -> Floats | None:
        """The bytes of copies in rows of an nvprof trace, (n_rows,), NaN for others; None: not told."""
        if not self.moved:
            return None
        # Whether a KB has 1000 or 1024 bytes shows where a size and its rate are in different units.
        for rates in (self.store.rates or RATES, OLD_RATES):
            scales = {name: rates.get(unit, np.nan) for name, unit in self._moved_units.items()}
            moved = {name: rows.numbers(place) * scales[name] for name, place in self.moved.items()}
            size, rate, pages = (moved.get(name, np.full(len(time_s), np.nan)) for name in _MOVED)
            ratios = size / (rate * time_s)
            known = ratios[np.isfinite(ratios)]
            if not len(known) or abs(middle_share(known, 0.0)[0] - 1) < _SAME_SIZE:
                return np.where(np.isnan(size), pages, size)
        return None

    def finish(self) -> None:
        """Hand the launches of an nvprof trace over."""
        self.store.add(self.header.kind, self._sums.take())


def _at(fields: list[str], place: int | None) -> str:
    """The cell at `place` of a row of nvprof's; "" where the table has no such column (None)."""
    return "" if place is None else fields[place]


class UsageSection(OpenTable):
    """nvprof's summary of GPU work and API calls: `["Type",]"Time(%)","Time","Calls","Avg","Min","Max","Name"`.

    No column tells the device. of_api: the log says that the table is of API calls alone. A table that was saved
    without quotes is read too where that is exact: Name is the last column, so whatever comes after the columns before
    it is the name.
    """

    has_units = True

    def __init__(self, header: Header, run: int, store: NvprofStore, of_api: bool = False) -> None:
        super().__init__(header, run, store)
        self.time, self.calls, self.name = map(header.at, ("Time", "Calls", "Name"))
        self.type, self.share = header.position("Type"), header.position("Time(%)")
        self.shared = Shared()
        self._kind = _OF_API if of_api else _ON_GPU
        self._ends = [header.position(name) for name in ("Min", "Max")]
        self.unit: float | None = None
        self._end_units: list[float | None] = [None, None]
        self._activities: list[tuple[str, int, float, list[float]]] = []
        self._of_range = False

    def takes_row(self, fields: list[str]) -> bool:
        """Take fields if they are a row of nvprof's GPU summary; joins a name again that was split at commas."""
        last = self.header.width - 1
        if not self.header.quoted and self.name == last and len(fields) > last:
            fields = [*fields[:last], ",".join(fields[last:])]
        return super().takes_row(fields)

    def takes_units(self, fields: list[str]) -> bool:
        """Take fields if they are the row of units of nvprof's GPU summary; returns whether they are."""
        time = fields[self.time].strip()
        if time not in SECONDS or fields[self.calls].strip():
            return False
        self.unit = SECONDS[time]
        self._end_units = [SECONDS.get(_at(fields, place).strip()) for place in self._ends]
        return True

    def fits(self, fields: list[str]) -> bool:
        """Whether fields are a row of nvprof's GPU summary: a whole number of calls, a time and a name."""
        return bool(
            WHOLE.fullmatch(fields[self.calls])
            and not np.isnan(seconds(fields[self.time], self.unit))
            and fields[self.name].strip()
        )

    def take(self, fields: list[str]) -> None:
        """Keep a row of nvprof's GPU summary: work or calls. Type "Range:" says that the table is of an NVTX range."""
        kind = self._kind
        if self.type is not None:
            kind = fields[self.type]
        elif _OF_API in fields:  # a header that lost its beginning has no type, but the rows still tell
            kind = _OF_API
        name, calls, time_s = fields[self.name].strip(), int(fields[self.calls]), seconds(fields[self.time], self.unit)
        told = zip(self._ends, self._end_units, strict=True)
        ends_s = [seconds(_at(fields, place), unit) for place, unit in told]
        self.is_in_kernels = kind == _ON_GPU and is_kernel(name)
        self._of_range |= kind.startswith("Range")
        if kind == _OF_API:
            added(self.store.calls, name, HostCalls.of_run(name, calls, time_s, ends_s[1]))
        elif kind == _ON_GPU:
            self._activities.append((name, calls, time_s, ends_s))
            percent, _, decimals = _at(fields, self.share).strip().rstrip("%").replace(",", ".").partition(".")
            if percent.isdigit() and decimals.isdigit():
                self.shared = self.shared.with_row(float(f"{percent}.{decimals}"), len(decimals), time_s)
            if self.unit is None:
                self.store.note(
                    "the times of a GPU summary have their unit glued to them, so they are rounded to 4-5 digits"
                )

    def close(self) -> None:
        """Hand over the rows of nvprof's GPU summary, but none of an NVTX range, whose launches other tables have."""
        if self._of_range:
            self.store.ranges += 1
            return
        kernels = []
        for name, calls, time_s, ends_s in self._activities:
            if not is_kernel(name):
                self.store.count_other(self.run, name, calls, time_s, ends_s)
                continue
            kernels.append((self.store.kernels.of(name), calls, time_s, ends_s))
            if _LIKE_A_CALL.fullmatch(name):
                self.store.note(
                    f"`{name}` is named like a call of CUDA and was taken for a kernel; if it is none, the log lost "
                    "the line that says so"
                )
        if kernels and self.shared.percent and self.shared.lacks_rows:
            # What is lost may be copies, too, so that no time of kernels is known of it.
            kernels.append((self.store.kernels.of(NOT_IN_TABLE), 1, math.nan, [math.nan, math.nan]))
            took = f"{100 - self.shared.percent:.2g} % of the time"
            self.store.note(
                f"{ON_TOTALS}by its percentages the summary lacks rows of {took}, so totals are lower bounds"
            )
        if kernels:
            kernel, launches, times_s, ends = zip(*kernels, strict=True)
            device = np.full(len(kernels), tables.NO_DEVICE, dtype=np.int32)
            kernel_numbers, launch_numbers = np.array(kernel, dtype=np.int32), np.array(launches, dtype=np.int64)
            piece = Piece.of_run(self.run, device, kernel_numbers, launch_numbers, np.array(times_s, dtype=np.float64))
            piece.least_s, piece.most_s = np.array(ends).T
            self.store.add(tables.SUMMARY, piece)

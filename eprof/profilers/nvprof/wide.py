"""GPU traces with events or metrics: one row a launch, one column a counter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Array, Floats
from eprof.base.text import pattern
from eprof.logs.rows.cells import MISFIT, RATES, as_cell, unit_of
from eprof.logs.rows.columns import Answers, Form, Rows
from eprof.logs.rows.header import WIDE_FIXED, Header
from eprof.logs.rows.log import COUNT, OTHER
from eprof.profilers.nvprof.open_table import ColumnSection, is_device, is_named
from eprof.profilers.nvprof.pieces import Cells, Piece, Sums
from eprof.profilers.nvprof.store import NO_DEVICE, Store

# Column labels of things that nvprof prints with a unit, which a table without its row of units has lost.
_RATE = pattern(
    r"throughput|efficiency|hit.rate|utilization|activity|occupancy|stall|overhead|\bipc\b|per.(?:request|warp|cycle)"
    r"|per active cycle",
    re.IGNORECASE,
)
_UNIT = pattern(r"%|[A-Za-z/]*")
_INSTANCE = pattern(r"(.+) \((\d+)\)")  # with --aggregate-mode off: a column a counter and unit of the GPU


class _Column(Struct, frozen=True):
    """A column of a counter, by its place in a line. is_instance: it is of one hardware instance of several."""

    place: int
    label: str
    heading: str
    is_instance: bool


class WideSection(ColumnSection):
    """`"Device","Context","Stream","Kernel"[,"Correlation_ID"],<counters>`."""

    has_units = True

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self.device, self.kernel = header.at("Device"), header.at("Kernel")
        self.stream = header.at("Stream") if store.by == "stream" else None
        self._device_of = store.each(store.devices.of, np.int32)
        self.rates = store.rates or RATES
        self._units: list[str] | None = None
        self._sums = Sums()
        self._no_counts: set[str] = set()  # labels with values by hardware instance that cannot be added up
        self._differs: set[str] = set()  # labels of columns that come again with other values

        counters = _counters(header.columns)
        self._columns = [
            _Column(header.prefix + place, store.canonical(counter), heading, counter != heading)
            for place, (heading, counter) in enumerate(zip(header.columns, counters, strict=True))
            if heading not in WIDE_FIXED and store.keeps(store.canonical(counter))
        ]
        if not self._columns:
            store.leave_out(counter for counter in counters if counter not in WIDE_FIXED)
        names = [place for place in (self.device, self.kernel, self.stream) if place is not None]
        # Most logs have nothing but numbers, which are parsed sooner; the first other cell changes it.
        self.form = Form(header.width, tuple(names), numbers=tuple(column.place for column in self._columns))

    def takes_units(self, fields: list[str]) -> bool:
        """Whether fields are the row of units of nvprof's wide trace: its first field is empty."""
        own = fields[self.header.prefix :]
        if own[0] or not all(_UNIT.fullmatch(field.strip()) for field in own):
            return False
        self._units = fields
        return True

    def expects_units(self) -> bool:
        """Once: from here on cells may be percentages, levels, <OVERFLOW>."""
        numbers = self.form.numbers
        if numbers:
            self.form = replace(self.form, values=numbers, numbers=())
        return bool(numbers)

    def fits(self, fields: list[str]) -> bool:
        """A row of nvprof's wide trace: a device with its index, and a kernel."""
        return is_device(fields[self.device]) and is_named(fields[self.kernel])

    def all_fit(self, rows: Rows) -> bool:
        """As `fits` for rows of nvprof's wide trace, called once for each different text."""
        needed = ((self.device, is_device), (self.kernel, is_named))
        return all(rows.each(place, self.store.each(fits)).all() for place, fits in needed)

    def add(self, rows: Rows) -> None:
        """Keep the cells of launches in nvprof's wide trace."""
        device = rows.each(self.device, self._device_of)
        kernel = rows.each(self.kernel, self.store.each(self.store.kernels.of, np.int32))
        piece = Piece(self.run, device, kernel, np.ones(len(rows), np.int64))
        if self.stream is not None:
            piece.part = rows.each(self.stream, self.store.each(self.store.part_of, np.int32))
        for column in self._columns:
            cells = self._in_unit(column, *rows.cells(column.place, self.rates))
            if column.is_instance:
                self._add_instance(column.label, cells, piece)
            else:
                self._add_column(column.label, cells, piece)
        self._sums.add(piece)

    def _in_unit(self, column: _Column, values: Floats, kinds: Array) -> Cells:
        count = as_cell(COUNT)
        unit = unit_of(self._units[column.place], self.rates) if self._units else None
        if unit is not None:
            scale, name = unit
            kinds = np.where(kinds > count, np.int8(MISFIT), kinds)
            return values * scale, np.where(kinds == count, np.int8(as_cell(name)), kinds)
        if self._units is None and _RATE.search(column.heading) and (kinds == count).any():
            self.store.note("a table of launches has no row of units: its rates and ratios are kept without a unit")
            kinds = np.where(kinds == count, np.int8(as_cell(OTHER)), kinds)
        return values, kinds

    def _add_instance(self, label: str, cells: Cells, piece: Piece) -> None:
        values, kinds = cells
        known = values[kinds >= 0]
        if (kinds > as_cell(COUNT)).any() or not (known == np.floor(known)).all():
            self._no_counts.add(label)
        before, before_kinds = piece.counters.get(label, (0.0, kinds))
        piece.counters[label] = before + values, np.minimum(before_kinds, kinds)

    def _add_column(self, label: str, cells: Cells, piece: Piece) -> None:
        """Keep a column of nvprof's wide trace; one of a label that was there fills holes of the first."""
        if label not in piece.counters:
            piece.counters[label] = cells
            return
        values, kinds = cells
        first, first_kinds = piece.counters[label]
        is_hole = (first_kinds < 0) & (kinds >= 0)
        first, first_kinds = np.where(is_hole, values, first), np.where(is_hole, kinds, first_kinds)
        piece.counters[label] = first, first_kinds
        again = next(name for number in count(2) if (name := f"{label} ({number})") not in piece.counters)
        piece.counters[again] = cells
        if not np.array_equal(first, values, equal_nan=True):
            self._differs.add(again)

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
        self._settle_instances(piece)
        self.store.add(self.header.kind, piece)

    def _settle_instances(self, piece: Piece) -> None:
        """What is no count in nvprof's wide trace cannot be added up over instances."""
        for label in dict.fromkeys(column.label for column in self._columns if column.is_instance):
            if label not in self._no_counts:
                self.store.note("counts told by hardware instance (--aggregate-mode off) were added up")
                continue
            self.store.note("what is told by hardware instance (--aggregate-mode off) and no count was left out")
            size = len(piece.kernel)
            piece.counters[label] = np.full(size, np.nan), np.full(size, as_cell(OTHER), dtype=np.int8)


class CutOffSection(WideSection):
    """A table whose devices' names are cut off: the device is known only where its index is there still."""

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self._device_of = Answers(lambda name: store.devices.of(name) if is_device(name) else NO_DEVICE, np.int32)

    def fits(self, fields: list[str]) -> bool:
        """A row of a wide trace without its start: a device, numbers of a context and a stream, and a kernel."""
        device, context, stream, kernel = fields[:4]
        return bool(device and kernel and context.isdecimal() and stream.isdecimal())


def _counters(columns: Sequence[str]) -> list[str]:
    """The counter in each column of nvprof's wide trace, of the whole GPU or of one hardware instance."""
    known = set(columns)
    counters = []
    for column in columns:
        instance = _INSTANCE.fullmatch(column)
        if instance is not None and f"{instance[1]} (0)" in known:
            counters.append(instance[1])
        else:
            counters.append(column)
    return counters

"""GPU traces with events or metrics: one row a launch, one column a counter."""

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from eprof.profilers.nvprof.section import DEVICE, DICTIONARY, Body, ColumnSection, Parsed
from eprof.profilers.nvprof.store import NO_DEVICE, Store
from eprof.rows.cells import LEAST_WRONG, MISFIT, RATES, Rates, as_cell, cells, settle, unit_of
from eprof.rows.columns import Arrays, Column, Columns, coded, no_blanks, words
from eprof.rows.header import WIDE_FIXED, Header
from eprof.rows.log import COUNT, OTHER
from eprof.rows.pieces import Array, Piece

# Column labels of things that nvprof prints with a unit, which a table without its row of units has lost.
_RATE = re.compile(
    r"throughput|efficiency|hit.rate|utilization|activity|occupancy|stall|overhead|\bipc\b|per.(?:request|warp|cycle)"
    r"|per active cycle",
    re.IGNORECASE,
)
_UNIT = re.compile(r"%|[A-Za-z/]*")
_INSTANCE = re.compile(r"(.+) \((\d+)\)")  # with --aggregate-mode off: a column a counter and unit of the GPU


class WideSection(ColumnSection):
    """`"Device","Context","Stream","Kernel"[,"Correlation_ID"],<counters>`: log-formats section 6."""

    has_units = True

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self.device, self.kernel = header.at("Device"), header.at("Kernel")
        counters = _counters(header.columns)
        self.labels = {
            header.prefix + i: store.canonical(counter)
            for i, (column, counter) in enumerate(zip(header.columns, counters, strict=True))
            if column not in WIDE_FIXED and store.keeps(store.canonical(counter))
        }
        if not self.labels:
            store.leave_out(one for one in counters if one not in WIDE_FIXED)
        self._instances = {i for i in self.labels if counters[i - header.prefix] != header.columns[i - header.prefix]}
        self.stream = [header.at("Stream")] if store.by == "stream" else []
        self.wanted = tuple(sorted((self.device, self.kernel, *self.stream, *self.labels)))
        self._units: list[str] | None = None
        self.rates = store.rates or RATES
        self._numeric = True
        self._rows: list[tuple[Array, ...]] = []
        self._cells: dict[int, list[tuple[Array, Array]]] = {i: [] for i in self.labels}

    def takes_units(self, fields: list[str]) -> bool:
        """A units row has an empty first field; a data row has a device there."""
        own = fields[self.header.prefix :]
        if own[0] or not all(_UNIT.fullmatch(field.strip()) for field in own):
            return False
        self._units = fields
        return True

    def fits(self, fields: list[str]) -> bool:
        """A device with its index, and a kernel."""
        return bool(DEVICE.search(fields[self.device]) and fields[self.kernel].strip())

    def all_fit(self, columns: Arrays) -> bool:
        """As `fits`, asked once for each different string."""
        return all(map(DEVICE.search, words(columns[self.device]))) and no_blanks(columns[self.kernel])

    def column_types(self) -> dict[int, pa.DataType]:
        """Counters straight to numbers, as long as that goes well."""
        types = dict.fromkeys(self.labels, pa.float64()) if self._numeric else {}
        return {**types, **dict.fromkeys((self.device, self.kernel, *self.stream), DICTIONARY)}

    def _parse(self, body: Body) -> Parsed | None:
        parsed = super()._parse(body)
        if self._numeric and (parsed is None or not all(_counts(parsed[0][i]) for i in self.labels)):
            self._numeric = False
            parsed = super()._parse(body)
        return parsed

    def add(self, columns: Columns) -> None:
        """Keep the launches' cells."""
        codes = (self._device_codes(columns[self.device]), self.store.kernels.codes(coded(columns[self.kernel])))
        self._rows.append((*codes, *(self.store.part_codes(coded(columns[one])) for one in self.stream)))
        for i in self.labels:
            self._cells[i].append(_values(columns[i], self.rates))
        if self.store.is_full(sum(len(codes[0]) for codes in self._rows)):
            self.finish()

    def _device_codes(self, column: Column) -> Array:
        return self.store.devices.codes(coded(column))

    def finish(self) -> None:
        """Settle each column's unit, and what columns of one label mean; hand the rows over."""
        if not self._rows:
            return
        device, kernel, *streams = (np.concatenate(part) for part in zip(*self._rows, strict=True))
        self._rows = []
        piece = Piece(self.run, device, kernel, np.ones(len(kernel), dtype=np.int64))
        piece.part = streams[0] if streams else None
        again: dict[str, int] = {}
        for i, label in self.labels.items():
            values, kinds = (np.concatenate(part) for part in zip(*self._cells[i], strict=True))
            self._cells[i] = []
            column, kind, kinds = self._in_unit(i, values, kinds)
            first, known = piece.counters.get(label, (column, None))
            if known == kind and i not in self._instances:  # an event and a metric of one name, each with its own holes
                piece.counters[label] = np.where(np.isnan(first), column, first), kind
            place = None if i in self._instances else self._place(label, column, piece, again)
            if i in self._instances:
                self._add_instance(label, column, kind, kinds, piece)
            if place:
                self.store.count_missing(place, kinds)
                piece.counters[place] = column, kind
        self.store.add(self.header.kind, piece)

    def _in_unit(self, i: int, values: Array, kinds: Array) -> tuple[Array, int, Array]:
        """The column's values in its unit, which its row of units tells, or else most of its cells."""
        plain = as_cell(COUNT)
        unit = unit_of(self._units[i], self.rates) if self._units else None
        if unit is not None:
            kinds = np.where((kinds > plain), np.int8(MISFIT), kinds)
            return np.where(kinds < 0, np.nan, values * unit[0]), as_cell(unit[1]), kinds
        kind, kinds = settle(kinds)
        if kind == plain and self._units is None and _RATE.search(self.header.columns[i - self.header.prefix]):
            self.store.note("a table of launches has no row of units: its rates and ratios are kept without a unit")
            kind = as_cell(OTHER)
        return np.where(kinds < 0, np.nan, values), kind, kinds

    def _add_instance(self, label: str, column: Array, kind: int, kinds: Array, piece: Piece) -> None:
        """Add what one unit of the GPU counted to the counter. What is no count cannot be added up."""
        self.store.count_missing(label, kinds)
        before, known = piece.counters.get(label, (0.0, kind))
        if kind != as_cell(COUNT) or known != kind or not (column == np.floor(column))[~np.isnan(column)].all():
            before, kind = np.nan, as_cell(OTHER)
            self.store.note("what is told by hardware instance (--aggregate-mode off) and no count was left out")
        else:
            self.store.note("counts told by hardware instance (--aggregate-mode off) were added up")
        piece.counters[label] = before + column, kind

    def _place(self, label: str, column: Array, piece: Piece, again: dict[str, int]) -> str | None:
        """The label to keep a column under; None if it says again what is there already (descriptions occur twice).

        again: by label, the number of the last one that was kept apart.
        """
        if label not in piece.counters:
            return label
        number = again.get(label, 1) + 1
        place = f"{label} ({number})"
        if np.array_equal(piece.counters[label][0], column, equal_nan=True):
            return None
        while place in piece.counters:
            number, place = number + 1, f"{label} ({number + 1})"
        self.store.note(f"column `{label}` occurs again with other values; the later one is kept apart as `{place}`")
        if self.store.keep is not None:
            return None
        again[label] = number
        return place


class CutOffSection(WideSection):
    """A table whose devices' names are cut off: the device is known only where its index is there still."""

    def fits(self, fields: list[str]) -> bool:
        """A device, numbers of a context and a stream, and a kernel."""
        device, context, stream, kernel = fields[:4]
        return bool(device and kernel and context.isdecimal() and stream.isdecimal())

    def _device_codes(self, column: Column) -> Array:
        devices = coded(column)
        places = [self.store.devices.code(word) if DEVICE.search(word) else NO_DEVICE for word in devices.words]
        return np.array(places, dtype=np.int32).take(devices.codes)


def _counters(columns: Sequence[str]) -> list[str]:
    """The counter that each column tells, or tells for one hardware instance."""
    known = set(columns)
    found = [_INSTANCE.fullmatch(column) for column in columns]
    return [one[1] if one and f"{one[1]} (0)" in known else column for one, column in zip(found, columns, strict=True)]


def _counts(column: pa.Array) -> bool:
    """Whether every cell is a non-negative finite number."""
    if column.null_count or not pa.types.is_floating(column.type):
        return False
    values = column.to_numpy()
    return not (np.signbit(values).any() or not (values < LEAST_WRONG).all())


def _values(column: Column, rates: Rates) -> tuple[Array, Array]:
    if isinstance(column, list) or not pa.types.is_floating(column.type):
        return cells(column, rates)
    values = column.to_numpy()
    return values, np.full(len(values), as_cell(COUNT), dtype=np.int8)

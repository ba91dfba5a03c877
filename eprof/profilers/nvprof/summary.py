"""Summaries of metrics or events: a row a kernel and counter, aggregated by nvprof over launches."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from eprof.base.arrays import Array, Ints, alike, numbered
from eprof.base.text import pattern
from eprof.logs.rows.cells import ABSENT, RATES, as_cell, shows_wrong
from eprof.logs.rows.columns import Answers, Form, Rows
from eprof.logs.rows.header import EVENTS, Header
from eprof.logs.rows.log import COUNT
from eprof.profilers.nvprof.open_table import ColumnSection, is_device, is_named, is_whole
from eprof.profilers.nvprof.pieces import Piece
from eprof.profilers.nvprof.store import Numbers, Store

_INSTANCES = " instances)"  # "inst_integer (80 instances)", with --aggregate-mode off: its value is a list
_LIST = pattern(r"\d+(?:,\s*\d+)+")
_HELD_CELLS = 1 << 22


class SummarySection(ColumnSection):
    """`"Device","Kernel","Invocations","Metric Name",...,"Avg"[,"Total"]`."""

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        name = "Event Name" if header.kind == EVENTS else "Metric Name"
        total = header.position("Total")
        self.device, self.kernel, self.calls, self.name = map(header.at, ("Device", "Kernel", "Invocations", name))
        self.has_total = total is not None
        self.value = header.at("Avg") if total is None else total
        self._others = [place for name in ("Min", "Max", "Avg") if (place := header.position(name)) is not None]
        names = (self.device, self.kernel, self.calls, self.name)
        checked = [place for place in self._others if place != self.value]
        self.form = Form(header.width, names, (self.value,), checked=tuple(checked))
        self._needed = (
            (self.device, is_device), (self.calls, is_whole), (self.kernel, is_named), (self.name, is_named)
        )  # fmt: skip
        self.rates = store.rates or RATES
        self._counters = Numbers()
        self._counter_of = Answers(lambda name: self._counters.of(store.canonical(name.strip())), np.int32)
        self._cells: list[tuple[Array, ...]] = []
        self._number_of_cells = 0
        self._unused: list[tuple[Array, ...]] = []
        self._is_used = False

    def fits(self, fields: list[str]) -> bool:
        """A row of nvprof's summary: a device with its index, a whole number of invocations, and names."""
        return all(fits(fields[place]) for place, fits in self._needed)

    def all_fit(self, rows: Rows) -> bool:
        """As `fits` for rows of nvprof's summary, called once for each different text."""
        needed = [*self._needed, (self.name, _is_of_all)]
        return all(rows.each(place, self.store.each(fits)).all() for place, fits in needed)

    def take(self, fields: list[str]) -> None:
        """Take a row of nvprof's summary; where a counter went wrong there is no value."""
        fields = [*fields]
        wrong = [fields[place] for place in self._others if shows_wrong(fields[place])]
        if wrong:
            fields[self.value] = wrong[0]
        if _is_by_instance(fields[self.name]):
            fields[self.name] = fields[self.name].rpartition(" (")[0]
            fields[self.value] = self._summed(fields[self.value])
        super().take(fields)

    def _summed(self, values: str) -> str:
        if _LIST.fullmatch(values.strip()):
            self.store.note("counts told by hardware instance (--aggregate-mode off) were added up")
            return str(sum(map(int, values.split(","))))
        if "," not in values:
            return values
        self.store.note("what is told by hardware instance (--aggregate-mode off) and no count was left out")
        return ""

    def add(self, rows: Rows) -> None:
        """Keep the cells of the wanted counters of nvprof's summary."""
        wanted = rows.each(self.name, self.store.each(self.store.keeps_label))
        if wanted.any():
            self._is_used = True
            rows = rows if wanted.all() else rows.chosen(wanted)
            self._cells.append((*self._keys(rows), *rows.cells(self.value, self.rates)))
            self._number_of_cells += len(rows)
            if self._number_of_cells >= _HELD_CELLS:
                self.finish()
        elif not self._is_used:
            counters = rows.each(self.name, self._counter_of)
            names = self._counters.names()
            self.store.leave_out(names[number] for number in counters[numbered(counters)[1]].tolist())
            self._unused.append(self._keys(rows.chosen(counters == counters[0])))

    def _keys(self, rows: Rows) -> tuple[Array, ...]:
        return (
            rows.each(self.device, self.store.each(self.store.devices.of, np.int32)),
            rows.each(self.kernel, self.store.each(self.store.kernels.of, np.int32)),
            rows.each(self.calls, self.store.each(int, np.int64)),
            rows.each(self.name, self._counter_of),
        )

    def finish(self) -> None:
        """Turn cells of nvprof's summary to rows: one for each device and kernel (more if a counter comes twice)."""
        if self._cells:
            for piece in self._pieces():
                self.store.add(self.header.kind, piece)
        elif self._unused and not self._is_used:
            # None of the counters is wanted: the rows show which kernels ran, and how often.
            device, kernel, calls, counter = map(np.concatenate, zip(*self._unused, strict=True))
            _, first = _rows(device, kernel, calls, counter)
            self.store.add(self.header.kind, Piece(self.run, device[first], kernel[first], calls[first]))
        self._cells, self._unused, self._number_of_cells = [], [], 0

    def _pieces(self) -> Iterable[Piece]:
        device, kernel, calls, counter, values, kinds = map(np.concatenate, zip(*self._cells, strict=True))
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
        for number, one in enumerate(first_of.tolist()):
            rows, places = np.flatnonzero(pattern_of == number), np.flatnonzero(is_known[:, one]).tolist()
            counters = {labels[place]: (table[place, rows], table_kinds[place, rows]) for place in places}
            launches = first[rows]
            yield Piece(self.run, device[launches], kernel[launches], calls[launches], counters=counters)


def _is_of_all(name: str) -> bool:
    return not _is_by_instance(name)


def _is_by_instance(name: str) -> bool:
    return name.rstrip().endswith(_INSTANCES)


def _rows(device: Array, kernel: Array, calls: Array, counter: Array) -> tuple[Ints, Ints]:
    """Which row each cell of nvprof's summary belongs to, numbered as they come, and the first cell of each row.

    A row is a device, a kernel and a number of launches; the same counter again (two kernels of one name) opens
    a further one, so that nothing is overwritten.
    """
    row, first = alike(device, kernel)
    cell = row * (int(counter.max()) + 1) + counter
    if np.bincount(cell).max() > 1:
        row, first = alike(row, _occurrence(cell))
    if (calls[first][row] == calls).all():
        return row, first
    return alike(row, calls)


def _occurrence(cells: Ints) -> Ints:
    """How often each cell of nvprof's summary came before."""
    order = np.argsort(cells, kind="stable")
    place = np.arange(len(cells))
    is_first = np.diff(cells[order], prepend=-1) != 0
    occurrence = np.empty(len(cells), dtype=np.int64)
    occurrence[order] = place - np.maximum.accumulate(np.where(is_first, place, 0))
    return occurrence

"""Summaries of metrics or events: a row a kernel and counter, aggregated by nvprof over launches."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pandas as pd
import pyarrow as pa

from eprof.profilers.nvprof.section import DEVICE, DICTIONARY, WHOLE, Body, ColumnSection
from eprof.profilers.nvprof.store import Names, Store
from eprof.rows.cells import RATES, as_cell, cells, settle, shows_wrong
from eprof.rows.columns import Arrays, Column, Columns, chosen, coded, no_blanks, words
from eprof.rows.header import EVENTS, Header
from eprof.rows.log import COUNT
from eprof.rows.pieces import Array, Piece

_FEW = 100  # keys for which a call of pandas takes longer than Python itself
_CELLS_A_ROW = 8  # about as many metrics as are collected together
_INSTANCES = " instances)"  # "inst_integer (80 instances)", with --aggregate-mode off: its value is a list
_SIGNS_OF_WRONG = (b"18446744073709551", b"1.84467")  # in a cell of 2^64-1
_LIST = re.compile(r"\d+(?:,\s*\d+)+")


class SummarySection(ColumnSection):
    """`"Device","Kernel","Invocations","Metric Name",...,"Avg"[,"Total"]`: log-formats sections 2 and 3."""

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        name = "Event Name" if header.kind == EVENTS else "Metric Name"
        total = header.position("Total")
        self.device, self.kernel, self.calls, self.name = map(header.at, ("Device", "Kernel", "Invocations", name))
        self.has_total = total is not None
        self.value = header.at("Avg") if total is None else total
        self._others = [place for name in ("Min", "Max", "Avg") if (place := header.position(name)) is not None]
        self.wanted = tuple(sorted((self.device, self.kernel, self.calls, self.name, self.value)))
        self.rates = store.rates or RATES
        self._counters = Names()
        self._parts: list[tuple[Array, ...]] = []
        self._unused: list[tuple[Array, ...]] = []
        self._is_used = False

    def column_types(self) -> dict[int, pa.DataType]:
        """Few different strings: a dictionary of them."""
        return dict.fromkeys((self.device, self.kernel, self.calls, self.name), DICTIONARY)

    def fits(self, fields: list[str]) -> bool:
        """A device with its index, a whole number of invocations, and names."""
        return bool(
            DEVICE.search(fields[self.device])
            and WHOLE.fullmatch(fields[self.calls])
            and fields[self.kernel].strip()
            and fields[self.name].strip()
        )

    def all_fit(self, columns: Arrays) -> bool:
        """As `fits`, asked once for each different string."""
        return (
            all(map(DEVICE.search, words(columns[self.device])))
            and all(map(WHOLE.fullmatch, words(columns[self.calls])))
            and no_blanks(columns[self.kernel])
            and no_blanks(columns[self.name])
        )

    def take(self, fields: list[str]) -> None:
        """As for any table; what a launch whose counter went wrong takes part in is no value."""
        wrong = [fields[place] for place in self._others if shows_wrong(fields[place])]
        if wrong:
            fields = [*fields]
            fields[self.value] = wrong[0]
        super().take(fields)

    def add_body(self, body: Body, is_output: Callable[[str], bool]) -> list[str] | None:
        """As for any table; but where a counter went wrong, rows are looked at one by one."""
        text = bytes(body.text)
        return None if any(sign in text for sign in _SIGNS_OF_WRONG) else super().add_body(body, is_output)

    def add(self, columns: Columns) -> None:
        """Keep the cells of the wanted counters."""
        name, calls = coded(columns[self.name]), coded(columns[self.calls])
        spread = {word for word in name.words if word.rstrip().endswith(_INSTANCES)}
        bare = (word.rpartition(" (")[0] if word in spread else word for word in name.words)
        counters = [self.store.canonical(word.strip()) for word in bare]
        wanted = np.array([self.store.keeps(counter) for counter in counters], dtype=bool).take(name.codes)
        if not wanted.any() and (self._is_used or not len(wanted)):
            return
        numbers = (
            self.store.devices.codes(coded(columns[self.device])),
            self.store.kernels.codes(coded(columns[self.kernel])),
            np.array([int(word) for word in calls.words], dtype=np.int64).take(calls.codes),
            np.array([self._counters.code(counter) for counter in counters], dtype=np.int32).take(name.codes),
        )
        if not wanted.any():
            self.store.leave_out(counters)
            self._unused.append(tuple(one[name.codes == name.codes[0]] for one in numbers))
            return
        self._is_used = True
        texts = columns[self.value]
        if spread:
            texts = self._summed(texts, np.array([word in spread for word in name.words]).take(name.codes))
        if not wanted.all():
            numbers, texts = tuple(one[wanted] for one in numbers), chosen(texts, wanted)
        self._parts.append((*numbers, *cells(texts, self.rates)))
        if self.store.is_full(sum(len(part[0]) for part in self._parts) // _CELLS_A_ROW):
            self.finish()

    def _summed(self, texts: Column, is_spread: Array) -> list[str]:
        """The cells with the lists of counts that hardware instances have, added up."""
        cells_of = list(texts if isinstance(texts, list) else texts.to_pylist())
        for place in np.flatnonzero(is_spread).tolist():
            if _LIST.fullmatch(cells_of[place].strip()):
                cells_of[place] = str(sum(map(int, cells_of[place].split(","))))
                self.store.note("counts told by hardware instance (--aggregate-mode off) were added up")
            elif "," in cells_of[place]:
                cells_of[place] = ""
                self.store.note("what is told by hardware instance (--aggregate-mode off) and no count was left out")
        return cells_of

    def finish(self) -> None:
        """Turn cells to rows: one for each device and kernel (more where a counter of it comes twice)."""
        if not self._parts:
            self._finish_unused()
            return
        device, kernel, calls, counter, values, kinds = (
            np.concatenate(part) for part in zip(*self._parts, strict=True)
        )
        self._parts = []
        if not self.has_total:
            values = np.where(kinds == as_cell(COUNT), values * calls, values)
        row = _rows(device, kernel, calls, counter)
        first = _first(row)
        piece = Piece(self.run, device[first], kernel[first], calls[first])
        is_told = np.zeros((int(counter.max()) + 1, len(first)), dtype=bool)
        is_told[counter, row] = True
        sizes = np.bincount(counter)
        order = np.argsort(counter.astype(np.min_scalar_type(len(sizes))), kind="stable")  # short numbers sort faster
        stop = 0
        for label, size in zip(self._counters.names(), sizes.tolist(), strict=False):
            cell, stop = order[stop : stop + size], stop + size
            if size:
                piece.counters[label] = self._column(label, len(first), row[cell], values[cell], kinds[cell])
        for told in _by_what_is_told(piece, is_told):
            self.store.add(self.header.kind, told)

    def _finish_unused(self) -> None:
        """None of the counters is wanted: the rows tell which kernels ran, and how often."""
        if self._unused and not self._is_used:
            device, kernel, calls, counter = (np.concatenate(part) for part in zip(*self._unused, strict=True))
            first = _first(_rows(device, kernel, calls, counter))
            self.store.add(self.header.kind, Piece(self.run, device[first], kernel[first], calls[first]))
        self._unused = []

    def _column(self, label: str, size: int, row: Array, values: Array, kinds: Array) -> tuple[Array, int]:
        kind, kinds = settle(kinds)
        self.store.count_missing(label, kinds)
        column = np.full(size, np.nan)
        column[row] = np.where(kinds < 0, np.nan, values)
        return column, kind


def _by_what_is_told(piece: Piece, is_told: Array) -> list[Piece]:
    """Rows with the same counters together, so that a cell without a value is one that the log has.

    is_told: (n_counters, n_rows).
    """
    if is_told.all():
        return [piece]
    labels = list(piece.counters)
    is_told = is_told[is_told.any(axis=1)]
    pattern = np.zeros(len(piece.kernel), dtype=np.int64)
    for told in is_told[~is_told.all(axis=1)]:
        pattern = pd.factorize(pattern * 2 + told)[0].astype(np.int64)
    found = []
    for number in range(int(pattern.max()) + 1):
        rows = pattern == number
        told = is_told[:, np.argmax(rows)]
        own = Piece(piece.run, piece.device[rows], piece.kernel[rows], piece.launches[rows])
        for place in np.flatnonzero(told).tolist():
            values, kind = piece.counters[labels[place]]
            own.counters[labels[place]] = values[rows], kind
        found.append(own)
    return found


def _first(row: Array) -> Array:
    """The place of the first cell of each row."""
    first = np.zeros(row.max() + 1, dtype=np.int64)
    first[row[::-1]] = np.arange(len(row))[::-1]
    return first


def _rows(device: Array, kernel: Array, calls: Array, counter: Array) -> Array:
    """Which row each cell belongs to, rows numbered as they come.

    A row is a device, a kernel and a number of launches; the same counter again (two kernels of one name) opens
    a further one, so that nothing is overwritten.
    """
    who = _numbered(device.astype(np.int64) << 32 | kernel)
    cell = who.astype(np.int64) * (int(counter.max()) + 1) + counter
    if np.bincount(cell).max() > 1:
        again = pd.Series(cell).groupby(cell, sort=False).cumcount().to_numpy()
        who = _numbered(who.astype(np.int64) << 32 | again)
    of_first = np.zeros(int(who.max()) + 1, dtype=np.int64)
    of_first[who] = calls
    if (of_first[who] == calls).all():
        return who
    return _numbered(who.astype(np.int64) << 32 | _numbered(calls))


def _numbered(keys: Array) -> Array:
    """A number for each different key, first come, first numbered."""
    if len(keys) > _FEW:
        return np.asarray(pd.factorize(keys)[0])
    numbers: dict[int, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys.tolist()], dtype=np.int64)

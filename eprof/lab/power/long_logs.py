"""Long tables of power meters, block by block: pyarrow parses cells, and rows become means where they are too many.

What is odd in a block goes to the line reader (`meters`), which judges it: cells in quotes, another header, more cells.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Floats, Ints, alike
from eprof.base.errors import LogError
from eprof.base.resources import lines as lines_of
from eprof.base.text import pattern
from eprof.lab.power.activity import meaning, not_read
from eprof.lab.power.meters import JOULE, SAMPLED, SHARE, UNKNOWN, Layout, Power, Row, reading, unit_of
from eprof.lab.power.series import Moment, moment
from eprof.readers.sections import bools, chosen, clean_columns, coded, made, numbers_of, texts_of

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS = 4_500_000  # that are held; of more, two become one
_MOST_TEXTS = 1 << 18  # of cells such as "71.25 W", that are remembered
_START = 1 << 16  # bytes, which show how many cells rows have
_EMPTY_LINES = pattern(rb"\n\n+")


class Rows(Struct):
    """Rows of one device in a long table: first and last moment in s, values of each column, (n,) (shares: float32)."""

    begin_s: Floats
    end_s: Floats
    values: Sequence[Floats]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.begin_s)

    def cut(self, part: slice) -> Rows:
        """The rows in the slice `part`."""
        return Rows(self.begin_s[part], self.end_s[part], [column[part] for column in self.values])


class LongLog(Struct):
    """A long table's rows by device. of_each: how many samples are one row; untold: components without a unit.

    turned: sampled fields that were skipped at times; turns: in how many busy samples, and how many there are. cells:
    column -> text of a cell that is no plain number -> its value.
    """

    layout: Layout
    times: Moment = Moment(math.nan)
    of_each: int = 1
    untold: set[str] = field(default_factory=set)
    turned: set[str] = field(default_factory=set)
    turns: list[int] = field(default_factory=lambda: [0, 0])
    cells: dict[Power, dict[str, float]] = field(default_factory=dict)
    devices: dict[str, list[Rows]] = field(default_factory=dict)
    _odd: dict[str, list[Rows | None]] = field(default_factory=dict)
    _last: dict[str, Rows] = field(default_factory=dict)

    def take(self, device: str, rows: Rows) -> None:
        """Append rows of a device, in their order; once too many are held, two rows become one."""
        places = {power.component: at for at, power in enumerate(self.layout.powers) if power.kind == SHARE}
        if places:
            # Fields that took turns and were not read become NaN, in place.
            shares = {name: rows.values[at] for name, at in places.items()}
            lost = not_read(shares)
            self.turned |= lost.keys()
            self.turns[0] += max((int(skipped.sum()) for skipped in lost.values()), default=0)
            if meaning().busy in shares:
                self.turns[1] += int((shares[meaning().busy] > meaning().least).sum())
            for name, skipped in lost.items():
                rows.values[places[name]][skipped] = np.nan
        self._last[device] = rows.cut(slice(-1, None))
        odd = self._odd.setdefault(device, [])
        odd += [None] * (self.of_each.bit_length() - len(odd))
        for level in range(self.of_each.bit_length() - 1):
            rows = self._halved(device, level, rows)
        self.devices.setdefault(device, []).append(rows)
        while sum(len(part) for parts in self.devices.values() for part in parts) > _MOST_ROWS:
            level = self.of_each.bit_length() - 1
            for each, parts in self.devices.items():
                self._odd[each] += [None] * (level + 1 - len(self._odd[each]))
                self.devices[each] = [self._halved(each, level, _joined(parts))]
            self.of_each *= 2

    def rows(self, device: str) -> Rows:
        """All rows of a device in one `Rows`; the last row may be the mean of fewer samples than others."""
        rest = [odd for odd in reversed(self._odd[device]) if odd is not None]
        joined = _joined([*self.devices[device], *rest])
        for place, power in enumerate(self.layout.powers):
            if power.kind == JOULE and not power.is_step and self.layout.times:  # it counts up to its last sample
                joined.begin_s[-1] = self._last[device].end_s[-1]
                joined.values[place][-1] = self._last[device].values[place][-1]
        self.devices[device], self._odd[device] = [joined], []
        return joined

    def _halved(self, device: str, level: int, rows: Rows) -> Rows:
        """Join each two rows of a device in one: the mean; joules a step: the sum; a counter: the first. Odd: kept."""
        before = self._odd[device][level]
        if before is not None:
            rows = _joined([before, rows])
        even = len(rows) // 2 * 2
        self._odd[device][level] = rows.cut(slice(even, None)) if even < len(rows) else None
        values = []
        for power, column in zip(self.layout.powers, rows.values, strict=True):
            first, second = column[0:even:2], column[1:even:2]
            both = first + second if power.is_step else (first + second) / 2
            # Of a counter the first reading counts; of what is not known once, the other.
            single = np.where(np.isnan(first), second, first)
            is_counter = power.kind == JOULE and not power.is_step
            values.append(single if is_counter else np.where(np.isnan(both), single, both))
        return Rows(rows.begin_s[0:even:2].copy(), rows.end_s[1:even:2].copy(), values)


def _joined(parts: Sequence[Rows]) -> Rows:
    """Stretches of one device's rows as one, in their order."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.begin_s for part in parts]),
        np.concatenate([part.end_s for part in parts]),
        [np.concatenate(columns) for columns in zip(*(part.values for part in parts), strict=True)],
    )


class _Block(Struct):
    """A long table's rows in one block: times in s, the place in `devices`, and values of each column, (n,)."""

    times_s: Floats
    codes: Ints
    devices: Sequence[str]
    values: Sequence[Floats]


def read(layout: Layout, blocks: Iterable[bytes], path: str) -> LongLog:
    """Read a long table from blocks of whole lines, the first with its header. Raises LogError."""
    log = LongLog(layout)
    before = 0
    for block, is_end in _with_last_line(blocks):
        skipped = (before == 0) * (layout.header.place + 1)
        own = block.split(b"\n", skipped)[-1]
        parsed = None if is_end or b'"' in own else _parsed(log, own)
        if parsed is None:
            parsed = _of_rows(log, list(layout.rows(lines_of(own), before + skipped, is_end)), path)
        for code, device in enumerate(parsed.devices):
            own_rows = np.flatnonzero(parsed.codes == code)
            if len(own_rows):
                times_s = parsed.times_s[own_rows]
                columns = [
                    column[own_rows].astype(np.float32 if power.kind in SAMPLED else float)
                    for power, column in zip(layout.powers, parsed.values, strict=True)
                ]
                log.take(device, Rows(times_s, times_s, columns))
        before += block.count(b"\n")
    return log


def _with_last_line(blocks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Yields the blocks with False, the very last line on its own with True: it may be cut."""
    before = b""
    for block in blocks:
        if before:
            yield before, False
        before = block
    cut = before.rfind(b"\n", 0, -1) + 1
    if cut:
        yield before[:cut], False
    yield before[cut:], True


def moments_of(rows: Sequence[Row], path: str) -> list[Moment]:
    """The time of each of a meter's rows; `seconds` NaN where it has none. Raises LogError: one cannot be read."""
    moments = [moment(row.time, row.unit_s or 1.0) for row in rows]
    for row, time in zip(rows, moments, strict=True):
        if row.time and math.isnan(time.seconds):
            cell = f"{path}:{row.number}: `{row.time[:40]}`"
            raise LogError(f"{cell} is no time that is read; write s, or 2026-01-31 12:00:00.")
    return moments


def _of_rows(log: LongLog, rows: Sequence[Row], path: str) -> _Block:
    """A `_Block` of rows that the line reader read. Raises LogError: a time is none."""
    moments = moments_of(rows, path)
    log.times = max([log.times, *moments], key=lambda time: time[1:])
    log.untold |= {cell.component for row in rows for cell in row.readings if not cell.told}
    devices = list(dict.fromkeys(row.readings[0].device for row in rows))
    codes = np.array([devices.index(row.readings[0].device) for row in rows], np.int64)
    cells = np.array([[cell.value for cell in row.readings] for row in rows], float)
    values = list(cells.reshape(-1, len(log.layout.powers)).T)
    return _Block(np.array([time.seconds for time in moments]), codes, devices, values)


def _parsed(log: LongLog, block: bytes) -> _Block | None:
    """A `_Block` of lines that pyarrow parses; None where something in them is odd."""
    import pyarrow as pa

    layout = log.layout
    separator, names = layout.header.separator or " ", layout.header.names
    lines = block
    if not layout.header.separator:
        # One blank for each run of blanks, none at the ends of lines; no empty lines.
        data = np.frombuffer(block.replace(b"\t", b" "), np.uint8)
        is_behind_space = np.append(True, (data <= ord(" "))[:-1])
        kept: bytes = data[(data != ord(" ")) | ~is_behind_space].tobytes()
        lines = _EMPTY_LINES.sub(b"\n", kept.replace(b" \n", b"\n")).lstrip(b"\n")
    first_lines = lines[:_START].splitlines()
    ((commas, _),) = Counter(line.count(separator.encode()) for line in first_lines).most_common(1) or [(0, 0)]
    is_two_words = separator == " " and commas == len(names)  # "GPU 0"

    @cache  # headers and units come again and again
    def is_no_row(*cells: str) -> bool:
        with suppress(LogError):
            return not any(layout.rows([separator.join(cells)], 0, False))
        return False

    types = dict.fromkeys(range(commas + 1), pa.string())
    parsed = clean_columns(memoryview(lines), commas + 1, types, separator, lambda cells: is_no_row(*cells))
    columns = [*(parsed or {}).values()]
    if is_two_words and columns:
        columns[:2] = [made("binary_join_element_wise", columns[0], columns[1], pa.scalar(" "))]
    places = [*(power.at for power in layout.powers), *layout.times, *layout.device_cells]
    has_more = any(np.from_dlpack(made("binary_length", column)).any() for column in columns[len(names) :])
    if len(columns) <= max(places) or has_more or (separator == " " and len(columns) != len(names)):
        return None
    power = layout.powers[0].at
    is_row = bools(made("not_equal", made("utf8_trim_whitespace", columns[power]), pa.scalar(names[power])))
    others = zip(*(texts_of(chosen(column, ~is_row)) for column in columns), strict=True)
    if not all(is_no_row(*cells) for cells in others):
        return None
    cells = {at: made("utf8_trim_whitespace", chosen(columns[at], is_row)) for at in places}
    number = int(is_row.sum())
    told = _devices(layout, [cells[at] for at in layout.device_cells], number)
    values = [_numbers(log, place, cells[power.at]) for place, power in enumerate(layout.powers)]
    times_s = _seconds(log, [cells[at] for at in layout.times], number)
    known = [column for column in values if column is not None]
    if times_s is None or len(known) < len(values):
        return None
    return _Block(times_s, *told, known)


def _devices(layout: Layout, columns: Sequence[pa.Array], number: int) -> tuple[Ints, list[str]]:
    """The place of each row's device, (number,), -1 for rows that are not read; and the names of the devices."""
    if not columns:
        return np.zeros(number, np.int64), [""]
    encoded = [coded(made("dictionary_encode", column)) for column in columns]
    kind, first = alike(*(column.codes for column in encoded))
    told = []
    for row in first.tolist():
        cells = (column.texts[column.codes[row]] for column in encoded)
        told.append(layout.device(dict(zip(layout.device_cells, cells, strict=True))))
    devices = [*dict.fromkeys(device for device in told if device is not None)]
    codes = [-1 if device is None else devices.index(device) for device in told]
    return np.array(codes, np.int64)[kind], devices


def _numbers(log: LongLog, place: int, texts: pa.Array) -> Floats | None:
    """The cells of the power at `place` as numbers, (n,), in W, J or as sampled; None: the line reader must."""
    layout, power = log.layout, log.layout.powers[place]
    numbers = numbers_of(texts)
    values = np.where(np.isin(numbers, list(UNKNOWN)), np.nan, numbers * power.size)
    odd = np.isnan(values)
    values[~np.isfinite(values)] = np.nan
    if not power.told and not np.isnan(values).all():
        log.untold.add(power.component)
    if odd.any():
        cells = coded(made("dictionary_encode", chosen(texts, odd)))
        known = log.cells.setdefault(power, {})
        for text in (text for text in cells.texts if text not in known):
            if text[:1].isalpha() and unit_of(text):
                return None
            try:
                cell = reading(layout.form, power, 0, text, "", layout.header.separator)
            except LogError:
                return None
            known[text] = cell.value
            if not cell.told:
                log.untold.add(power.component)
        values[odd] = np.array([known[text] for text in cells.texts])[cells.codes]
        if len(known) > _MOST_TEXTS:
            known.clear()
    return values


def _seconds(log: LongLog, columns: Sequence[pa.Array], number: int) -> Floats | None:
    """The times of a block's rows in s, NaN where the log has none; None where the line reader must read them."""
    import pyarrow as pa

    if not columns:
        return np.full(number, np.nan)
    if not number:
        return None
    texts = columns[0]
    for column in columns[1:]:
        texts = made("binary_join_element_wise", texts, column, pa.scalar(" "))
    unit_s = log.layout.unit_s or 1.0
    ends = [moment(texts[place].as_py(), unit_s) for place in (0, number - 1)]
    seconds = _dates_s(texts)
    if seconds is None:
        seconds = numbers_of(texts) * unit_s
        if seconds[0]:
            seconds *= ends[0].seconds / seconds[0]  # stamps in ms
    are_same = np.allclose(seconds[[0, -1]], [end.seconds for end in ends], rtol=0, atol=1e-6 * unit_s)
    if np.isnan(seconds).any() or not are_same or ends[0][1:] != ends[1][1:]:
        return None
    log.times = max(log.times, ends[0], key=lambda time: time[1:])
    return seconds


def _dates_s(texts: pa.Array) -> Floats | None:
    """Dates with a time of day in s since 1970, as `moment` reads them; None where one is none, or has another form."""
    import pyarrow as pa

    if np.from_dlpack(made("binary_length", texts)).min() <= len("2026-01-01"):
        return None
    dashed = made("replace_substring", texts, pattern="/", replacement="-")
    for zone in (None, "UTC"):
        with suppress(pa.ArrowInvalid):
            stamps = made("cast", dashed, target_type=pa.timestamp("ns", zone))
            whole_us = np.frombuffer(stamps.buffers()[1], np.int64) // 1000
            return whole_us.astype(np.float64) * 1e-6
    return None

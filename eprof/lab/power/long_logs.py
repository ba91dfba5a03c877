"""Long tables of power meters, block by block: polars parses cells, and rows become means where they are too many.

What is odd in a block goes to the line reader (`meters`), which judges it: cells in quotes, another header, more cells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Floats, Ints
from eprof.base.errors import LogError
from eprof.base.known import either, mapped
from eprof.base.resources import lines as lines_of
from eprof.lab.power.clock import DATES, Moment, moment
from eprof.lab.power.meters import JOULE, SAMPLED, SHARE, Layout, Row, reading, unit_of
from eprof.lab.power.shares import meaning, not_read

if TYPE_CHECKING:
    import polars as pl

_MOST_ROWS = 4_500_000  # that are held; of more, two become one
_BLANK, _TAB, _NEWLINE = b" \t\n"


class Rows(Struct):
    """Rows of a device: first and last moment in s, (n,), and values of each power, (n,), (shares: float32)."""

    begin_s: Floats
    end_s: Floats
    values: Sequence[Floats]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.begin_s)

    def cut(self, part: slice) -> Rows:
        """Some of the rows."""
        return Rows(self.begin_s[part], self.end_s[part], [column[part] for column in self.values])


class LongLog(Struct):
    """The rows of a long table by device. of_each: how many samples a row is; untold: components without a unit.

    turned: fields that were not read in their turn; turns: in how many of how many busy samples.
    """

    layout: Layout
    times: Moment = Moment(math.nan)
    of_each: int = 1
    untold: set[str] = field(default_factory=set)
    turned: set[str] = field(default_factory=set)
    turns: list[int] = field(default_factory=lambda: [0, 0])
    devices: dict[str, list[Rows]] = field(default_factory=dict)
    _odd: dict[str, list[Rows | None]] = field(default_factory=dict)
    _last: dict[str, Rows] = field(default_factory=dict)

    def take(self, device: str, rows: Rows) -> None:
        """Append rows of a device, in their order; once too many are held, two rows become one."""
        self._without_turns(rows)
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
        """All rows of a device as one; the last may be of fewer samples than others."""
        rest = [odd for odd in reversed(self._odd[device]) if odd is not None]
        joined = _joined([*self.devices[device], *rest])
        for place, power in enumerate(self.layout.powers):
            if power.kind == JOULE and not power.is_step and self.layout.times:  # it counts up to its last sample
                joined.begin_s[-1] = self._last[device].end_s[-1]
                joined.values[place][-1] = self._last[device].values[place][-1]
        self.devices[device], self._odd[device] = [joined], []
        return joined

    def _without_turns(self, rows: Rows) -> None:
        """Set fields to NaN, in place, where they took turns and were not read."""
        places = {power.component: at for at, power in enumerate(self.layout.powers) if power.kind == SHARE}
        if not places:
            return
        shares = {name: rows.values[at] for name, at in places.items()}
        lost = not_read(shares)
        self.turned |= lost.keys()
        self.turns[0] += max((int(skipped.sum()) for skipped in lost.values()), default=0)
        if meaning().busy in shares:
            self.turns[1] += int((shares[meaning().busy] > meaning().least).sum())
        for name, skipped in lost.items():
            rows.values[places[name]][skipped] = np.nan

    def _halved(self, device: str, level: int, rows: Rows) -> Rows:
        """Make one row of two: their mean; of joules a step the sum, of a counter the first. An odd one is kept."""
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
    if len(parts) == 1:
        return parts[0]
    return Rows(
        np.concatenate([part.begin_s for part in parts]),
        np.concatenate([part.end_s for part in parts]),
        [np.concatenate(columns) for columns in zip(*(part.values for part in parts), strict=True)],
    )


class _Block(Struct):
    """The rows of a block: the times in s, which of `devices` each is of, and values of each power, (n,)."""

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
    """The time of each row, NaN s where it has none. Raises LogError: one cannot be read."""
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
    """A `_Block` of lines that polars parses; None where something in them is odd."""
    import polars as pl

    layout = log.layout
    width, separator = len(layout.header.names), layout.header.separator or " "
    names = [str(place) for place in range(width + 2)]
    frame = pl.read_csv(
        block if layout.header.separator else _without_blanks(block),
        separator=separator,
        has_header=False,
        schema=dict.fromkeys(names, pl.String),
        quote_char=None,
        truncate_ragged_lines=True,
        missing_columns="insert",
    )
    is_two_words = not layout.header.separator and frame[names[width]].null_count() < len(frame) / 2
    filled = [frame[name].is_not_null() for name in names]
    is_row = ~filled[width + is_two_words]
    if not layout.header.separator:
        is_row &= filled[width + is_two_words - 1]

    def cells(at: int, of: pl.DataFrame) -> pl.Series:
        if is_two_words and at == 0:
            return of[names[0]] + " " + of[names[1]]
        column = of[names[at + is_two_words]]
        return column.str.strip_chars() if layout.header.separator else column

    is_row &= cells(layout.powers[0].at, frame).ne_missing(layout.header.names[layout.powers[0].at])
    others = frame.filter(~is_row).unique()
    lines = [separator.join(cell or "" for cell in row).rstrip(separator) for row in others.iter_rows()]
    try:
        if any(layout.rows(lines, 0, False)):
            return None
    except LogError:
        return None
    frame = frame.filter(is_row)
    told = _devices(layout, [cells(at, frame) for at in layout.device_cells], len(frame))
    columns = [_numbers(log, place, cells(power.at, frame)) for place, power in enumerate(layout.powers)]
    times_s = _seconds(log, [cells(at, frame) for at in layout.times], len(frame))
    known = [column for column in columns if column is not None]
    if times_s is None or len(known) < len(columns):
        return None
    return _Block(times_s, *told, known)


def _without_blanks(block: bytes) -> bytes:
    """The lines with one blank for each run of blanks, and none in front."""
    data = np.frombuffer(block, np.uint8)
    is_blank = (data == _BLANK) | (data == _TAB)
    is_first = ~np.append(True, is_blank[:-1] | (data[:-1] == _NEWLINE))
    kept = ~is_blank | is_first
    squeezed: bytes = np.where(is_blank, np.uint8(_BLANK), data)[kept].tobytes()
    return squeezed


def _devices(layout: Layout, columns: Sequence[pl.Series], number: int) -> tuple[Ints, list[str]]:
    """The place of each row's device, (number,), -1 for rows that are not read; and the names of the devices."""
    import polars as pl

    if not columns:
        return np.zeros(number, np.int64), [""]
    texts = pl.DataFrame([column.fill_null("").alias(str(at)) for at, column in enumerate(columns)])
    kinds = texts.unique(maintain_order=True)
    told = [layout.device(dict(zip(layout.device_cells, row, strict=True))) for row in kinds.iter_rows()]
    devices = list(dict.fromkeys(device for device in told if device is not None))
    codes = pl.Series("code", [either(mapped(devices.index, device), -1) for device in told], pl.Int64)
    joined = texts.join(kinds.with_columns(codes), on=texts.columns, how="left", maintain_order="left")
    return joined["code"].to_numpy(), devices


def _numbers(log: LongLog, place: int, texts: pl.Series) -> Floats | None:
    """The cells of the power at `place` as numbers, (n,), in W, J or as sampled; None where polars cannot tell one."""
    import polars as pl

    layout, power = log.layout, log.layout.powers[place]
    numbers = texts.cast(pl.Float64, strict=False)
    values = numbers.to_numpy(writable=True) * power.size
    values[~np.isfinite(values)] = np.nan
    if not power.told and not np.isnan(values).all():
        log.untold.add(power.component)
    odd = numbers.is_null() & texts.is_not_null()
    if odd.any():
        known = {}
        for text in texts.filter(odd).unique():
            if text[:1].isalpha() and unit_of(text):
                return None
            try:
                cell = reading(layout.form, power, 0, text, "", layout.header.separator)
            except LogError:
                return None
            known[text] = cell.value
            if not cell.told:
                log.untold.add(power.component)
        values[odd.to_numpy()] = texts.filter(odd).replace_strict(known, return_dtype=pl.Float64).to_numpy()
    return values


def _seconds(log: LongLog, columns: Sequence[pl.Series], number: int) -> Floats | None:
    """The times of rows in s, NaN where the log has none; None where one cannot be read here."""
    import polars as pl

    if not columns:
        return np.full(number, np.nan)
    texts = columns[0]
    for column in columns[1:]:
        texts = texts + " " + column
    if texts.null_count() or not number:
        return None
    unit_s = log.layout.unit_s or 1.0
    ends = moment(texts[0], unit_s), moment(texts[-1], unit_s)
    seconds = texts.cast(pl.Float64, strict=False).to_numpy() * unit_s
    if np.isnan(seconds).any():
        for form in DATES:
            read_ = texts.str.to_datetime(form, time_unit="us", strict=False, exact=True)
            if not read_.null_count():
                seconds = read_.dt.replace_time_zone(None).dt.epoch("us").to_numpy() * 1e-6
                break
    elif seconds[0]:
        seconds = seconds * (ends[0].seconds / seconds[0])  # stamps in ms
    are_same = np.allclose(seconds[[0, -1]], [end.seconds for end in ends], rtol=0, atol=1e-6 * unit_s)
    if np.isnan(seconds).any() or not are_same or ends[0][1:] != ends[1][1:]:
        return None
    log.times = max(log.times, ends[0], key=lambda time: time[1:])
    return seconds

"""Times: GPU traces (a row a launch) and GPU summaries (a row a kernel)."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eprof.profilers.nvprof.section import DICTIONARY, WHOLE, ColumnSection, Section
from eprof.profilers.nvprof.store import NO_DEVICE, Store
from eprof.rows.cells import LARGEST, SECONDS, cells, is_number, seconds
from eprof.rows.columns import Arrays, Coded, Column, Columns, coded, no_blanks
from eprof.rows.header import SUMMARY, Header
from eprof.rows.pieces import Array, Piece

_LAUNCH_ID = re.compile(r" \[\d+\]$")
_LAUNCH_ID_ASCII = re.compile(r" \[[0-9]+\]\Z")  # what `_strip_launch_ids` takes off
_LIKE_A_CALL = re.compile(r"cu(?:da)?[A-Z]\w*")
_NOT_A_KERNEL = ("[CUDA ", "[Unified Memory")


def strip_launch_id(name: str) -> str:
    """A kernel name without the ` [123]` that traces without Correlation_ID put behind it."""
    return _LAUNCH_ID.sub("", name)


def _names(texts: Column, have_launch_ids: bool) -> Coded:
    """The names of what ran, without what stands around them."""
    if isinstance(texts, list):
        names = [text.strip() for text in texts]
        return coded([_LAUNCH_ID_ASCII.sub("", name) for name in names] if have_launch_ids else names)
    trimmed = pc.utf8_trim_whitespace(texts)
    return coded(_strip_launch_ids(trimmed) if have_launch_ids else trimmed)


def _strip_launch_ids(names: pa.Array) -> pa.Array:
    """As `strip_launch_id`, for all names; a pattern would take three times as long."""
    bracket = pc.ascii_rtrim(names, "]")
    digits = pc.ascii_rtrim(bracket, "0123456789")
    lengths = [pc.binary_length(texts).to_numpy() for texts in (names, bracket, digits)]
    has_id = (lengths[0] == lengths[1] + 1) & (lengths[1] > lengths[2])
    has_id &= pc.ends_with(digits, " [").to_numpy(zero_copy_only=False)
    bare = pc.binary_slice(digits.view(pa.binary()), 0, -2).view(pa.string())
    return bare if has_id.all() else pc.if_else(pa.array(has_id), bare, names)


def is_kernel(name: str) -> bool:
    """False for copies, memsets and Unified Memory activity, which nvprof names in brackets."""
    return not name.startswith(_NOT_A_KERNEL)


class TraceSection(ColumnSection):
    """`"Start","Duration","Grid X",...,"Device","Context","Stream",...,"Name"`: log-formats section 5."""

    has_units = True

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self.start, self.duration, self.device, self.name = map(header.at, ("Start", "Duration", "Device", "Name"))
        self.grid = header.position("Grid X")
        self.stream = header.position("Stream") if store.by == "stream" else None
        self.has_launch_ids = header.position("Correlation_ID") is None
        wanted = {self.start, self.duration, self.device, self.name, *self._also()}
        self.wanted = tuple(sorted(wanted))
        self._unit: float | None = None
        self._parts: list[tuple[Array, ...]] = []

    def _also(self) -> list[int]:
        """Places of columns that not every table has, or not every reader asks for."""
        return [one for one in (self.grid, self.stream) if one is not None]

    def takes_units(self, fields: list[str]) -> bool:
        """The row of units has units of time below Start and Duration."""
        start, duration = (fields[i].strip() for i in (self.start, self.duration))
        if start not in SECONDS or duration not in SECONDS:
            return False
        self._unit = SECONDS[duration]
        return True

    def fits(self, fields: list[str]) -> bool:
        """A start, a duration or none, and a name; and the units must have been told."""
        return bool(
            self._unit is not None
            and is_number(fields[self.start])
            and (not fields[self.duration].strip() or is_number(fields[self.duration]))
            and fields[self.name].strip()
        )

    def column_types(self) -> dict[int, pa.DataType]:
        """Times are numbers; devices, grids and streams repeat."""
        return {
            self.start: pa.float64(),
            self.duration: pa.float64(),
            **dict.fromkeys((self.device, *self._also()), DICTIONARY),
        }

    def all_fit(self, columns: Arrays) -> bool:
        """As `fits`, for all rows."""
        start, duration = columns[self.start], columns[self.duration]
        return (
            self._unit is not None
            and not start.null_count
            and all(_unsigned(column.drop_null().to_numpy()) for column in (start, duration))
            and no_blanks(columns[self.name])
        )

    def add(self, columns: Columns) -> None:
        """Keep the kernels' launches; count everything else by its name."""
        names = _names(columns[self.name], self.has_launch_ids)
        time_s = _numbers(columns[self.duration]) * (self._unit or np.nan)
        kernel = np.array([is_kernel(word) for word in names.words], dtype=bool)[names.codes] & self._has_grid(columns)
        for other in np.unique(names.codes[~kernel]):
            here = (names.codes == other) & ~kernel
            self.store.count_other(names.words[other], int(here.sum()), float(np.nansum(time_s[here])))
        devices = self.store.devices.codes(coded(columns[self.device]))
        kernels = self.store.kernels.codes(Coded(names.words, names.codes[kernel]))
        rows = (devices[kernel], kernels, time_s[kernel])
        streams = () if self.stream is None else (self.store.part_codes(coded(columns[self.stream]))[kernel],)
        self._parts.append((*rows, *streams))
        if self.store.is_full(sum(len(part[0]) for part in self._parts)):
            self.finish()

    def _has_grid(self, columns: Columns) -> Array:
        """Kernels have a grid, copies have not. Without these columns the name decides."""
        if self.grid is None:
            return np.ones(len(columns[self.name]), dtype=bool)
        grid = coded(columns[self.grid])
        return np.array([bool(word.strip()) for word in grid.words], dtype=bool)[grid.codes]

    def finish(self) -> None:
        """One row a launch."""
        if not self._parts:
            return
        device, kernel, time_s, *streams = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        self._parts = []
        piece = Piece(self.run, device, kernel, np.ones(len(kernel), np.int64), time_s)
        piece.part = streams[0] if streams else None
        add_times(self.store, self.header.kind, piece)


def _numbers(column: Column) -> Array:
    if isinstance(column, list) or not pa.types.is_floating(column.type):
        return cells(column)[0]
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _unsigned(values: Array) -> bool:
    """Whether all values are finite and written without a sign."""
    return bool((values < LARGEST).all() and not np.signbit(values).any())


def add_times(store: Store, kind: str, piece: Piece) -> None:
    """Hand rows with times to the store, and count those that have none."""
    store.untimed[kind] += 0 if piece.time_s is None else int(np.isnan(piece.time_s).sum())
    store.add(kind, piece)


class Usage:
    """The rows of one GPU summary. It does not tell the device."""

    def __init__(self, store: Store, run: int) -> None:
        self._store, self._run = store, run
        self._rows: list[tuple[str, int, float]] = []
        self._of_range = False

    def take(self, kind: str, name: str, calls: int, time_s: float) -> bool:
        """Keep what ran on the GPU. A row of kind "Range:" says that the table tells of an NVTX range."""
        self._of_range |= kind.startswith("Range")
        if kind != "GPU activities":
            return False
        self._rows.append((name, calls, time_s))
        return True

    def close(self) -> None:
        """Hand the rows over, unless a table of the whole run tells their launches too."""
        if self._of_range:
            self._store.ranges += 1
            return
        for name, calls, time_s in self._rows:
            if not is_kernel(name):
                self._store.count_other(name, calls, time_s)
            elif _LIKE_A_CALL.fullmatch(name):
                self._store.note(
                    f"`{name}` is named like a call of CUDA and was taken for a kernel; if it is none, the log lost "
                    "the line that says so"
                )
        kernels = [row for row in self._rows if is_kernel(row[0])]
        piece = Piece(
            self._run,
            np.full(len(kernels), NO_DEVICE, dtype=np.int32),
            np.array([self._store.kernels.code(name) for name, _, _ in kernels], dtype=np.int32),
            np.array([calls for _, calls, _ in kernels], dtype=np.int64),
            np.array([time_s for _, _, time_s in kernels], dtype=np.float64),
        )
        add_times(self._store, SUMMARY, piece)


class UsageSection(Section):
    """`["Type",]"Time(%)","Time","Calls","Avg","Min","Max","Name"`, GPU activities only: log-formats section 7.

    A table that was saved without quotes is read too where that is exact: Name is the last column, so whatever comes
    after the columns before it is the name.
    """

    has_units = True

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self.time, self.calls, self.name = map(header.at, ("Time", "Calls", "Name"))
        self.type = header.position("Type")
        self._unit: float | None = None
        self._usage = Usage(store, run)

    def accepts(self, fields: list[str]) -> bool:
        """As for any table, after the name's commas are put back where the table has no quotes."""
        last = self.header.width - 1
        if not self.header.quoted and self.name == last and len(fields) > last:
            fields = [*fields[:last], ",".join(fields[last:])]
        return super().accepts(fields)

    def takes_units(self, fields: list[str]) -> bool:
        """The row of units has a unit of time below Time and nothing below Calls."""
        time = fields[self.time].strip()
        if time not in SECONDS or fields[self.calls].strip():
            return False
        self._unit = SECONDS[time]
        return True

    def fits(self, fields: list[str]) -> bool:
        """A whole number of calls, a time and a name."""
        return bool(
            WHOLE.fullmatch(fields[self.calls])
            and not np.isnan(seconds(fields[self.time], self._unit))
            and fields[self.name].strip()
        )

    def take(self, fields: list[str]) -> None:
        """Keep what ran on the GPU."""
        # A header that lost its beginning has no type, but the rows still tell.
        kind = fields[self.type] if self.type is not None else ("GPU activities", "API calls")["API calls" in fields]
        time_s = seconds(fields[self.time], self._unit)
        if self._usage.take(kind, fields[self.name].strip(), int(fields[self.calls]), time_s) and self._unit is None:
            self.store.note(
                "the times of a GPU summary have their unit glued to them, so they are rounded to 4-5 digits"
            )

    def close(self) -> None:
        """Hand the rows over."""
        self._usage.close()

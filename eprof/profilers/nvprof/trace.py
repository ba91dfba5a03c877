"""Times: GPU traces (a row a launch) and GPU summaries (a row a kernel)."""

import numpy as np

from eprof.base.arrays import Array, Floats
from eprof.base.text import pattern
from eprof.logs.rows.cells import RATES, SECONDS, is_number, seconds
from eprof.logs.rows.columns import LAUNCH_ID, Form, Rows
from eprof.logs.rows.folding import Piece, Sums
from eprof.logs.rows.log import LAUNCH, part_of
from eprof.profilers.nvprof.tables import NO_DEVICE, SUMMARY, WHOLE, ColumnSection, Header, Section, Store

_LIKE_A_CALL = pattern(r"cu(?:da)?[A-Z]\w*")
_NOT_A_KERNEL = ("[CUDA ", "[Unified Memory")
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
    """`"Start","Duration","Grid X",...,"Device","Context","Stream",...,"Name"`."""

    has_units = True

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self.start, self.duration, self.device, self.name = map(header.at, ("Start", "Duration", "Device", "Name"))
        self.grid = header.position("Grid X")
        self.stream = header.position("Stream") if store.by in ("stream", LAUNCH) else None
        self.has_launch_ids = header.position("Correlation_ID") is None
        self.shape = [header.position(column) for column in _SHAPE]
        names = tuple(place for place in (self.device, self.stream, self.name) if place is not None)
        self.form = Form(
            header.width,
            names,
            numbers=(self.start, self.duration),
            together=tuple(place for place in self.shape if place is not None),
            with_id=self.name if self.has_launch_ids else None,
        )
        self._unit: float | None = None
        self._start_unit = 1.0
        self._shared_units = [0.0, 0.0]
        self._sums = Sums()

    def takes_units(self, fields: list[str]) -> bool:
        """Whether fields are an nvprof trace's row of units: units of time below Start and Duration."""
        start, duration = fields[self.start].strip(), fields[self.duration].strip()
        if start not in SECONDS or duration not in SECONDS:
            return False
        self._unit = SECONDS[duration]
        self._start_unit = SECONDS[start]
        rates = self.store.rates or RATES
        shared = [fields[place].strip() for place in self.shape[-2:] if place is not None]
        self._shared_units = [rates.get(f"{unit}/s", np.nan) for unit in shared]
        return True

    def fits(self, fields: list[str]) -> bool:
        """A row of an nvprof trace: a start, a duration or none, and a name; and the units must be known."""
        return bool(
            self._unit is not None
            and is_number(fields[self.start])
            and (not fields[self.duration].strip() or is_number(fields[self.duration]))
            and fields[self.name].strip()
        )

    def all_fit(self, rows: Rows) -> bool:
        """As `fits` for rows of an nvprof trace; those without a duration are looked at one by one."""
        return self._unit is not None and bool(rows.each(self.name, self.store.each(_is_stripped)).all())

    def take(self, fields: list[str]) -> None:
        """Take a row of an nvprof trace, without what stands around the name."""
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
        others = np.unique(name[~is_launch]).tolist()
        texts = self.store.kernels.names() if others else []
        for number in others:
            same_name = (name == number) & ~is_launch
            self.store.count_other(texts[number], int(same_name.sum()), float(np.nansum(time_s[same_name])))

        device = rows.each(self.device, self.store.each(self.store.devices.of, np.int32))[is_launch]
        kernel = name[is_launch]
        piece = Piece.of_run(self.run, device, kernel, np.ones(len(kernel), np.int64), time_s[is_launch])
        if self.stream is not None:
            piece.part = self._parts(rows, self.stream)[is_launch]
        self._sums.add(piece)
        if None not in self.shape:
            self.store.shaped(kernel, self._shapes(rows)[:, is_launch])

    def _shapes(self, rows: Rows) -> Floats:
        """Of an nvprof trace: blocks, threads, registers of a thread, shared memory of a block, (4, n_rows)."""
        sizes = np.array([rows.numbers(place) for place in self.shape if place is not None])
        static, dynamic = self._shared_units
        shared = static * sizes[7] + dynamic * sizes[8]
        return np.array([sizes[:3].prod(axis=0), sizes[3:6].prod(axis=0), sizes[6], shared])

    def _parts(self, rows: Rows, stream: int) -> Array:
        """The number of each row's part: its stream, or its start and stream where each launch is one."""
        if self.store.by != LAUNCH:
            return rows.each(stream, self.store.each(self.store.part_of, np.int32))
        start_ns = np.nan_to_num(rows.numbers(self.start) * (self._start_unit * 1e9)).round().astype(np.int64)
        parts = map(part_of, start_ns.tolist(), rows.each(stream, self.store.each(str, np.object_)))
        return np.array([self.store.part_of(part) for part in parts], dtype=np.int32)

    def finish(self) -> None:
        """Hand the launches of an nvprof trace over."""
        self.store.add(self.header.kind, self._sums.take())


class UsageSection(Section):
    """`["Type",]"Time(%)","Time","Calls","Avg","Min","Max","Name"`, GPU activities only. It does not tell the device.

    A table that was saved without quotes is read too where that is exact: Name is the last column, so whatever comes
    after the columns before it is the name.
    """

    has_units = True

    def __init__(self, header: Header, run: int, store: Store) -> None:
        super().__init__(header, run, store)
        self.time, self.calls, self.name = map(header.at, ("Time", "Calls", "Name"))
        self.type = header.position("Type")
        self.unit: float | None = None
        self._activities: list[tuple[str, int, float]] = []
        self._of_range = False

    def accepts(self, fields: list[str]) -> bool:
        """Take a row of nvprof's GPU summary, after the name's commas are put back where it has no quotes."""
        last = self.header.width - 1
        if not self.header.quoted and self.name == last and len(fields) > last:
            fields = [*fields[:last], ",".join(fields[last:])]
        return super().accepts(fields)

    def takes_units(self, fields: list[str]) -> bool:
        """Whether fields are the row of units of nvprof's GPU summary: a unit of time below Time, none below Calls."""
        time = fields[self.time].strip()
        if time not in SECONDS or fields[self.calls].strip():
            return False
        self.unit = SECONDS[time]
        return True

    def fits(self, fields: list[str]) -> bool:
        """A row of nvprof's GPU summary: a whole number of calls, a time and a name."""
        return bool(
            WHOLE.fullmatch(fields[self.calls])
            and not np.isnan(seconds(fields[self.time], self.unit))
            and fields[self.name].strip()
        )

    def take(self, fields: list[str]) -> None:
        """Keep what ran on the GPU. A row of type "Range:" says that the table is of an NVTX range."""
        # A header that lost its beginning has no type, but the rows still tell.
        kind = fields[self.type] if self.type is not None else ("GPU activities", "API calls")["API calls" in fields]
        self._of_range |= kind.startswith("Range")
        if kind == "GPU activities":
            time_s = seconds(fields[self.time], self.unit)
            self._activities.append((fields[self.name].strip(), int(fields[self.calls]), time_s))
            self.say_rounded()

    def say_rounded(self) -> None:
        """Note that times of nvprof's GPU summary are rounded, if they are."""
        if self.unit is None:
            self.store.note(
                "the times of a GPU summary have their unit glued to them, so they are rounded to 4-5 digits"
            )

    def close(self) -> None:
        """Hand over the rows of nvprof's GPU summary, unless a trace of the whole run has their launches too."""
        if self._of_range:
            self.store.ranges += 1
            return
        kernels = []
        for name, calls, time_s in self._activities:
            if not is_kernel(name):
                self.store.count_other(name, calls, time_s)
                continue
            kernels.append((self.store.kernels.of(name), calls, time_s))
            if _LIKE_A_CALL.fullmatch(name):
                self.store.note(
                    f"`{name}` is named like a call of CUDA and was taken for a kernel; if it is none, the log lost "
                    "the line that says so"
                )
        if kernels:
            kernel, launches, times_s = zip(*kernels, strict=True)
            device = np.full(len(kernels), NO_DEVICE, dtype=np.int32)
            kernel_numbers, launch_numbers = np.array(kernel, dtype=np.int32), np.array(launches, dtype=np.int64)
            piece = Piece.of_run(self.run, device, kernel_numbers, launch_numbers, np.array(times_s, dtype=np.float64))
            self.store.add(SUMMARY, piece)

"""Databases (SQLite) of nvprof -o: kernels, times, metrics by number (counters/nvprof/numbers.toml); and nsys's."""

import sqlite3
from collections.abc import Container
from contextlib import closing
from functools import cache
from pathlib import Path
from urllib.parse import quote

import numpy as np

from eprof.base import resources
from eprof.base.errors import LogError
from eprof.base.text import when
from eprof.base.toml import Document
from eprof.logs.log import LAUNCH, OTHER, PERCENT, UNKNOWN, Log, launch_part
from eprof.logs.stream import Source, whole_file
from eprof.nvidia import sqlite as nsys_sqlite
from eprof.nvidia.folding import Cells, Piece, RowSums
from eprof.profilers.nvprof import COUNTED
from eprof.profilers.nvprof.tables import NO_DEVICE, NvprofStore
from eprof.readers.cells import ABSENT, INVALID, LARGEST, OVERFLOW, UNITS, UNREADABLE, WRONG, as_cell, is_wrong

_KIND = "nvprof-sqlite"
_NO_CELL = (float("nan"), ABSENT)
_ROWS = 1 << 16  # of a table, that are held as Python's numbers
_KERNEL_TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL")
_METRICS = "CUPTI_ACTIVITY_KIND_METRIC"
_COUNTER_TABLES = tuple(f"CUPTI_ACTIVITY_KIND_{kind}{of}" for kind in ("METRIC", "EVENT") for of in ("", "_INSTANCE"))
_FLAGS = {1: OVERFLOW, 2: INVALID}
_COPY_TABLES = {
    "CUPTI_ACTIVITY_KIND_MEMCPY": "copies",
    "CUPTI_ACTIVITY_KIND_MEMCPY2": "copies between devices",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memsets",
}

_MEMORIES = {1: "pageable", 2: "pinned", 5: "managed", 7: "managed"}


def read(source: Source, _: object, keep: Container[str] | None, parts: str | None, *__: object) -> Log:
    """Read a database of nvprof or nsys, maybe packed. keep, parts: see `logs.read`. Raises LogError."""
    with whole_file(source, ".nvvp") as whole:
        if source.notes:
            raise LogError(f"{source.path}: {source.notes[0].partition(';')[0]}; copy the file again")
        return _read(source, Path(whole.name), keep, parts)


def _read(source: Source, path: Path, keep: Container[str] | None, parts: str | None) -> Log:
    """The `Log` of the database at `path`, opened read-only: by the tables that nvprof or nsys makes."""
    store = NvprofStore(parts if parts == LAUNCH else None, keep=keep)
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)) as base:
            base.text_factory = lambda text: text.decode("utf-8", "replace")
            tables = {name for (name,) in base.execute("select name from sqlite_master where type = 'table'")}
            if nsys_sqlite.STRINGS in tables:
                return nsys_sqlite.read(source, base, tables, parts)
            if "StringTable" not in tables or not tables & set(_KERNEL_TABLES):
                raise LogError(
                    f"{source.path}: this database was made neither by nvprof -o nor by nsys; give the profiler's log"
                )
            of_counters = [name for name in _COUNTER_TABLES if name in tables]
            counted = [name for name in of_counters if base.execute(f"select 1 from {name} limit 1").fetchone()]
            metrics = _Metrics(base, store) if _METRICS in counted else None
            of_kernels = [name for name in _KERNEL_TABLES if name in tables]
            for table in of_kernels:
                _kernels(base, table, store, COUNTED if counted else _KIND, metrics)
            if not counted:  # counters make kernels run one after another
                kernels = dict.fromkeys(of_kernels, "name")
                store.traces[0] = nsys_sqlite.gaps_of(base, kernels, tables.intersection(_COPY_TABLES), _MEMORIES)
            for table, name in _COPY_TABLES.items():
                if table in tables:
                    number, time_ns = base.execute(f"select count(*), total(end - start) from {table}").fetchone()
                    if number:
                        store.count_other(0, name, number, time_ns * 1e-9)
    except (sqlite3.Error, UnicodeDecodeError) as err:  # the latter from what sqlite3 says of damaged bytes
        raise LogError(
            f"{source.path}: the database is damaged or cut off ({err}); export it again with the profiler that made it"
        ) from err
    notes = []
    if metrics:
        notes.append("the export knows metrics by number only; they are named as nvprof 11.8 names them")
    if set(counted) - {_METRICS} or (metrics and metrics.unknown):
        notes.append(
            "the export knows its events, or other counters, by numbers without names, so they are not read; run "
            f"`nvprof -i {Path(source.path).name} --csv --print-gpu-trace --log-file out.csv` where nvprof is"
        )
    if counted:
        notes.append("its times were taken while counters were collected, which makes kernels run one after another")
    if not (made := store.tables()):
        raise LogError(f"{source.path}: the export holds no kernels; see that the program launches kernels on the GPU")
    notes += store.closing_notes()
    return source.log(made, notes, idle=store.gaps.idle, copies_s=store.copies_s, copies=store.copies)


class _Metrics:
    """The metrics in an nvprof database, by the correlation number of a launch. unknown: values of unknown metrics."""

    def __init__(self, base: sqlite3.Connection, store: NvprofStore) -> None:
        self.store = store
        self.unknown = 0
        self._places: dict[object, int] = {}
        self._cells: dict[str, dict[int, tuple[float, int]]] = {}
        cursor = base.execute(f"select id, correlationId, value, flags from {_METRICS}")
        while rows := cursor.fetchmany(_ROWS):
            for number, launch, value, flags in rows:
                name, kind = _numbers().get(number, ("", 0))
                if not name:
                    self.unknown += 1
                elif self.store.keeps(name):
                    place = self._places.setdefault(launch, len(self._places))
                    self._cells.setdefault(name, {})[place] = _value(value, flags, kind)

    def of(self, launches: list[object]) -> dict[str, Cells]:
        """Metric -> values and their kinds, a cell a launch, for launches by correlation number in the database."""
        places = [self._places.get(launch, -1) for launch in launches]
        counters = {}
        for name, cells in self._cells.items():
            values, kinds = zip(*(cells.get(place, _NO_CELL) for place in places), strict=True)
            counters[name] = np.array(values, np.float64), np.array(kinds, np.int8)
        return counters


def _value(value: object, flags: object, kind: int) -> tuple[float, int]:
    """(value, its kind) of a metric's cell in nvprof's database; (NaN, why) where it has no value."""
    if isinstance(flags, int) and flags in _FLAGS:
        return float("nan"), _FLAGS[flags]
    if not isinstance(value, bytes) or len(value) != 8:
        return float("nan"), UNREADABLE
    whole = UNITS[kind] not in (PERCENT, OTHER)
    number = float(int.from_bytes(value, "little")) if whole else float(np.frombuffer(value, "<f8")[0])
    if whole and is_wrong(number):
        return float("nan"), WRONG
    if not 0 <= number < LARGEST:
        return float("nan"), UNREADABLE
    return number, kind


@cache
def _numbers() -> dict[object, tuple[str, int]]:
    """By `numbers.toml`: a metric's number in nvprof's database -> its name, and its unit's index in UNITS."""
    document = Document.read(resources.folder("counters") / "nvprof" / "numbers.toml")
    return {
        number: (name, as_cell(OTHER if unit == "ratio" else unit))
        for unit, metrics in document.data.items()
        for name, numbers in metrics.items()
        for number in numbers
    }


def _kernels(base: sqlite3.Connection, table: str, store: NvprofStore, kind: str, metrics: _Metrics | None) -> None:
    """Add the launches in one table of nvprof's database to `store`; where a start is 0 the time is not known."""
    named = base.execute("select d.id, s.value from CUPTI_ACTIVITY_KIND_DEVICE d join StringTable s on s._id_ = d.name")
    device_of = {number: f"{name} ({number})" for number, name in named.fetchall()}  # as nvprof prints them
    stream = when(store.by == LAUNCH, "k.streamId") or "null"
    launch = when(metrics, "k.correlationId") or "0"
    cursor = base.execute(
        f"select s.value, k.deviceId, k.start, k.end, {launch}, {stream} from {table} k "
        "left join StringTable s on s._id_ = k.name order by k.start"
    )
    sums = RowSums()
    while rows := cursor.fetchmany(_ROWS):
        kernel = [store.kernels.of(str(row[0] or "(a kernel without name)")) for row in rows]
        device = [store.devices.of(device_of[row[1]]) if row[1] in device_of else NO_DEVICE for row in rows]
        times = ([row[place] if isinstance(row[place], int) else UNKNOWN for row in rows] for place in (2, 3))
        starts, ends = (np.array(each, np.int64) for each in times)
        time_s = np.where((starts > 0) & (starts <= ends), (ends - starts) * 1e-9, np.nan)
        piece = Piece.of_run(
            0, np.array(device, np.int32), np.array(kernel, np.int32), np.ones(len(rows), np.int64), time_s
        )
        if store.by == LAUNCH and kind == _KIND:
            parts = [
                store.part_of(launch_part(start, row[5])) for start, row in zip(starts.tolist(), rows, strict=True)
            ]
            piece.part = np.array(parts, np.int32)
        if metrics:
            piece.counters = metrics.of([row[4] for row in rows])
        sums.add(piece)
    store.add(kind, sums.take())

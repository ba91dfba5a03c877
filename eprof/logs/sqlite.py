"""nvprof -o: a SQLite database. It tells kernels and their times; counters are in it by number only, without names."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import numpy as np

from eprof.errors import LogError
from eprof.logs import packing
from eprof.logs.pieces import Piece
from eprof.logs.store import NO_DEVICE, Store
from eprof.logs.stream import Source, unpacked
from eprof.logs.table import Log

_KIND = "nvprof-sqlite"
_COUNTED = f"{_KIND}-counted"  # times of kernels that counters slowed down
_CHUNK = 1 << 20
_ROWS = 1 << 16  # of a table, that are held as Python's numbers
_KERNEL_TABLES = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL")
_COUNTER_TABLES = ("CUPTI_ACTIVITY_KIND_METRIC", "CUPTI_ACTIVITY_KIND_EVENT", "CUPTI_ACTIVITY_KIND_EVENT_INSTANCE")
_COPY_TABLES = {
    "CUPTI_ACTIVITY_KIND_MEMCPY": "copies",
    "CUPTI_ACTIVITY_KIND_MEMCPY2": "copies between devices",
    "CUPTI_ACTIVITY_KIND_MEMSET": "memsets",
}


def read_sqlite(source: Source) -> Log:
    """Read an export whose first bytes are those of a SQLite database, maybe packed with gzip. Raises LogError."""
    if packing.kind(source.head) is None:
        for _ in source.chunks(_CHUNK):
            pass
        return _read(source, Path(source.path))
    with tempfile.NamedTemporaryFile(suffix=".nvvp") as whole:
        for piece in unpacked(source, source.chunks(_CHUNK), _CHUNK):
            whole.write(piece)
        if source.notes:
            raise LogError(f"{source.path}: {source.notes[0].partition(';')[0]}; copy the file again")
        whole.flush()
        return _read(source, Path(whole.name))


def _read(source: Source, path: Path) -> Log:
    store = Store({}, None)
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)) as base:
            base.text_factory = lambda text: text.decode("utf-8", "replace")
            tables = {name for (name,) in base.execute("select name from sqlite_master where type = 'table'")}
            _check(source, tables)
            counted = any(
                base.execute(f"select 1 from {name} limit 1").fetchone() for name in _COUNTER_TABLES if name in tables
            )
            for table in (name for name in _KERNEL_TABLES if name in tables):
                _kernels(base, table, store, _COUNTED if counted else _KIND)
            _copies(base, tables, store)
    except (sqlite3.Error, UnicodeDecodeError) as err:  # the latter from what sqlite3 says of damaged bytes
        raise LogError(
            f"{source.path}: the database is damaged or cut off ({err}); export it again with nvprof -o"
        ) from err
    return _log(source, store, counted)


def _check(source: Source, tables: set[str]) -> None:
    if "StringTable" in tables and tables & set(_KERNEL_TABLES):
        return
    if "StringIds" in tables:
        raise LogError(
            f"{source.path}: this is an export of Nsight Systems, which is not read yet; make a log with nvprof"
        )
    raise LogError(f"{source.path}: this database was not made by nvprof -o; give an nvprof log")


def _kernels(base: sqlite3.Connection, table: str, store: Store, kind: str) -> None:
    """Launches in the order they started; start and end are in ns, and start 0 means that the time is not known."""
    device_of = _devices(base)
    found = base.execute(
        f"select s.value, k.deviceId, k.start, k.end from {table} k left join StringTable s on s._id_ = k.name "
        "order by k.start"
    )
    while rows := found.fetchmany(_ROWS):
        kernel = [store.kernels.code(str(name or "(a kernel without name)")) for name, _, _, _ in rows]
        device = [store.devices.code(device_of[one]) if one in device_of else NO_DEVICE for _, one, _, _ in rows]
        time_s = np.array([_seconds(start, end) for _, _, start, end in rows], np.float64)
        ones = np.ones(len(rows), dtype=np.int64)
        store.add(kind, Piece(0, np.array(device, np.int32), np.array(kernel, np.int32), ones, time_s))


def _seconds(start: object, end: object) -> float:
    """Between two times in ns; NaN where a cell (of a damaged export) holds none, or no end."""
    if isinstance(start, int) and isinstance(end, int) and 0 < start <= end:
        return (end - start) * 1e-9
    return float("nan")


def _devices(base: sqlite3.Connection) -> dict[int, str]:
    """Device names as nvprof prints them: "Tesla K20c (0)"."""
    rows = base.execute(
        "select d.id, s.value from CUPTI_ACTIVITY_KIND_DEVICE d join StringTable s on s._id_ = d.name"
    ).fetchall()
    return {number: f"{name} ({number})" for number, name in rows}


def _copies(base: sqlite3.Connection, tables: set[str], store: Store) -> None:
    for table, name in _COPY_TABLES.items():
        if table in tables:
            number, time_ns = base.execute(f"select count(*), sum(end - start) from {table}").fetchone()
            if number:
                store.count_other(name, number, time_ns * 1e-9 if isinstance(time_ns, int) else 0.0)


def _log(source: Source, store: Store, counted: bool) -> Log:
    notes = []
    if counted:
        notes.append(
            "the export names its counters by number only, so they are not read; run "
            f"`nvprof -i {Path(source.path).name} --csv --print-gpu-trace --log-file out.csv` where nvprof is"
        )
        notes.append("its times were taken while counters were collected, which makes kernels run one after another")
    tables = store.tables()
    if not tables:
        raise LogError(f"{source.path}: the export holds no kernels; see that the program launches kernels on the GPU")
    return Log(
        path=source.path,
        format="+".join(table.kind for table in tables),
        lines=0,
        skipped_lines=0,
        sha256=source.sha256,
        size_bytes=source.size_bytes,
        tables=tables,
        notes=(*notes, *store.closing_notes()),
    )

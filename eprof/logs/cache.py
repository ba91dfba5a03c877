"""Logs as they were read, kept as Parquet: the second report on a large log does not read its text again.

An entry is found by the content of the log (SHA-256), by what was asked of the reader, and by the reader's own code. So
that a large file need not be hashed to find its entry, the path, size, times of change and inode of the file that was
read are remembered with its hash, as git does; a file that was changed a moment before is not trusted with that. Of the
times, that of the content (mtime) can be put back by anybody, that of the inode (ctime) cannot.

Who can write into the folder can make every later report say what he likes: one that others can write to is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pyarrow as pa

from eprof.base.arrays import Array, Columns
from eprof.rows.log import Clock, Log, Names, Table, TableRows

SMALLEST_BYTES = 8 << 20
_LARGEST_BYTES = 4 << 30
_SETTLED_S = 2.0
_ABANDONED_S = 86400.0
_STAMPS = "stamps"
_OURS = stat.S_IRWXU
_ROOMS = ("rows", "profilers", "logs")  # whose code decides what is read from a log
_LISTED = (
    "path",
    "format",
    "lines",
    "skipped_lines",
    "sha256",
    "size_bytes",
    "command",
    "example_skipped",
    "processes",
    "device",
)
_ROWS = {"device", "kernel", "run", "launches", "time_s"}


def place() -> Path | None:
    """The folder of the cache: $EPROF_CACHE ("off": none), else `eprof` in $XDG_CACHE_HOME, else in ~/.cache."""
    told = os.environ.get("EPROF_CACHE")
    if told is not None:
        return None if told.lower() in ("", "off", "0", "no") else Path(told)
    home = os.environ.get("XDG_CACHE_HOME")
    if home and Path(home).is_absolute():
        return Path(home) / "eprof"
    try:
        return Path.home() / ".cache" / "eprof"
    except RuntimeError:
        return None


def refusal(folder: Path) -> str | None:
    """Why a folder is not used as the cache: others than this user can write to it. None if nobody else can."""
    for place in (folder, folder / _STAMPS):
        try:
            found = place.stat()
        except (OSError, ValueError):
            continue
        if found.st_uid != os.geteuid():
            return (
                f"the cache {place} belongs to another user, so it is not used; name one of your own with EPROF_CACHE, "
                "or none with EPROF_CACHE=off"
            )
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others can write to the cache {place}, so it is not used; run `chmod -R go-w {quote(str(folder))}`"
    return None


@dataclass(frozen=True)
class Stamp:
    """What tells that a file is the one that was read: its path, size, inode, and when content and inode changed."""

    path: str
    size: int
    changed_ns: tuple[int, int]
    inode: tuple[int, int]

    @staticmethod
    def of(path: Path) -> Stamp | None:
        """The stamp of an ordinary file that is worth an entry, else None."""
        try:
            found = path.stat()
        except OSError:
            return None
        if not path.is_file() or found.st_size < SMALLEST_BYTES:
            return None
        changed_ns = (found.st_mtime_ns, found.st_ctime_ns)
        return Stamp(str(path.resolve()), found.st_size, changed_ns, (found.st_dev, found.st_ino))

    @property
    def name(self) -> str:
        """A file name for it."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogateescape")).hexdigest()[:40]

    @property
    def is_settled(self) -> bool:
        """Whether a change after the reading would show: not if the file was changed only just now, or in future."""
        return max(self.changed_ns) / 1e9 < time.time() - _SETTLED_S


@dataclass(frozen=True)
class Cache:
    """Entries in a folder. asked: a digest of what was asked of the reader. Whatever goes wrong, there is no entry."""

    folder: Path
    asked: str

    def get(self, stamp: Stamp) -> Log | None:
        """The log in the file that `stamp` is of, if it was read before."""
        with contextlib.suppress(Exception):  # a damaged entry can be wrong in any way
            known = self.folder / _STAMPS / stamp.name
            if stamp.is_settled and known.is_file():
                return self._load(self._entry(stamp.size, known.read_text()), stamp)
            if next(self.folder.glob(f"{stamp.size}-*-{self.asked}"), None) is not None:
                found = self._entry(stamp.size, _hash(Path(stamp.path)))
                return self._load(found, stamp) if found.is_dir() else None
        return None

    def put(self, stamp: Stamp, log: Log) -> None:
        """Keep a log that was read from the file that `stamp` is of; not if the file has changed since."""
        if Stamp.of(Path(stamp.path)) != stamp or log.size_bytes != stamp.size:
            return
        with contextlib.suppress(OSError, pa.ArrowException):
            self._save(log, self._entry(stamp.size, log.sha256))
            _write(self.folder / _STAMPS / stamp.name, log.sha256)
            self._prune()

    def _entry(self, size: int, sha256: str) -> Path:
        return self.folder / f"{size}-{sha256}-{self.asked}"

    def _save(self, log: Log, entry: Path) -> None:
        """Write an entry beside its place, then rename: others see the whole of it or nothing."""
        if entry.is_dir():
            return
        self.folder.mkdir(mode=_OURS, parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(dir=self.folder, prefix=".new-"))
        from pyarrow import parquet  # slow to load, and of no use to a short log

        try:
            kinds = []
            for number, table in enumerate(log.tables):
                parquet.write_table(_arrow(table), beside / f"{number}.parquet", compression="zstd")
                collected = None if table.collected is None else sorted(table.collected)
                kinds.append(
                    {
                        "kind": table.kind,
                        "units": dict(table.units),
                        "collected": collected,
                        "lacks_rows": table.lacks_rows,
                    }
                )
            told: dict[str, Any] = {name: getattr(log, name) for name in _LISTED}
            (beside / "log.json").write_text(
                json.dumps({**told, "notes": log.notes, "tables": kinds, "clocks": [*map(astuple, log.clocks)]})
            )
            beside.rename(entry)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _load(self, entry: Path, stamp: Stamp) -> Log:
        from pyarrow import parquet

        told = json.loads((entry / "log.json").read_text())
        tables = tuple(
            _table(parquet.read_table(entry / f"{number}.parquet"), **one) for number, one in enumerate(told["tables"])
        )
        clocks = tuple(Clock(*one) for one in told["clocks"])
        log = Log(**{name: told[name] for name in _LISTED}, tables=tables, notes=tuple(told["notes"]), clocks=clocks)
        # A cache that may only be read is of use too.
        with contextlib.suppress(OSError):
            os.utime(entry)  # the order of last use, for pruning
            _write(self.folder / _STAMPS / stamp.name, log.sha256)
        return replace(log, path=stamp.path)

    def _prune(self) -> None:
        """Drop the entries that were used longest ago until the rest is small enough, and what killed reports left."""
        for one in self.folder.glob(".new-*"):
            if abs(time.time() - one.stat().st_mtime) > _ABANDONED_S:
                shutil.rmtree(one, ignore_errors=True)
        entries = sorted(
            (one for one in self.folder.glob("*-*-*") if one.is_dir()), key=lambda one: one.stat().st_mtime
        )
        sizes = {one: sum(file.stat().st_size for file in one.iterdir()) for one in entries}
        total = sum(sizes.values())
        for one in entries:
            if total <= _LARGEST_BYTES:
                return
            shutil.rmtree(one, ignore_errors=True)
            total -= sizes[one]


def asked(
    columns: Iterable[str] | None, names: Mapping[str, str], keep: Iterable[str] | None, parts: str | None
) -> str:
    """A digest of what is asked of the reader, and of its code: another reader may read other things."""
    code = hashlib.sha256()
    for room in _ROOMS:
        for file in sorted((Path(__file__).parents[1] / room).rglob("*.py")):
            code.update(file.read_bytes())
    what = [
        None if columns is None else list(columns),
        sorted(names.items()),
        None if keep is None else sorted(keep),
        parts,
    ]
    code.update(json.dumps(what).encode())
    return code.hexdigest()[:16]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=_OURS, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)


def _arrow(table: Table) -> pa.Table:
    """Rows and counters side by side; NaN stays NaN, a name that is not known is null."""
    rows = {f"row {name}": _arrow_column(column) for name, column in table.rows.columns().items()}
    counters = {f"counter {name}": pa.array(table.counters[name]) for name in table.counters.names}
    return pa.table({**rows, **counters})


def _arrow_column(column: Array | Names) -> pa.Array:
    if not isinstance(column, Names):
        return pa.array(column)
    codes = pa.array(column.codes.astype(np.int32), mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.names, pa.string()))


def _table(
    stored: pa.Table, kind: str, units: Mapping[str, str], collected: Iterable[str] | None, lacks_rows: bool
) -> Table:
    columns = {name: stored.column(name).combine_chunks() for name in stored.column_names}
    rows = {name.removeprefix("row "): _read_column(one) for name, one in columns.items() if name.startswith("row ")}
    counters = {name.removeprefix("counter "): one for name, one in columns.items() if name.startswith("counter ")}
    if counters.keys() != units.keys() or not rows.keys() >= _ROWS:
        raise ValueError("an entry of other columns")
    values = Columns.of({name: _read_column(column) for name, column in counters.items()}, len(stored))
    known = None if collected is None else frozenset(collected)
    return Table(kind, TableRows(**rows), values, units, known, lacks_rows)


def _read_column(column: pa.Array) -> Any:
    if not pa.types.is_dictionary(column.type):
        return column.to_numpy(zero_copy_only=False)
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Names(tuple(column.dictionary.to_pylist()), codes)

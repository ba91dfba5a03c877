"""Logs as they were read, kept as arrays of numpy: the second report on a large log does not read its text again.

An entry is found by the content of the log (SHA-256), by the options of the reader, and by the reader's own code. So
that a large file need not be hashed to find its entry, the path, size, times of change and inode of the file that was
read are remembered with its hash, as git does; a file that was changed a moment before is not trusted with that. Of the
times, that of the content (mtime) can be put back by anybody, that of the inode (ctime) cannot.

Who can write into the folder can make every later report say anything: one that others can write to is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple, replace

from eprof.base.arrays import Array, Columns
from eprof.rows.log import Clock, Log, Names, Table, TableRows

SMALLEST_BYTES = 8 << 20
_LARGEST_BYTES = 4 << 30
_SETTLED_S = 2.0
_ABANDONED_S = 86400.0
_STAMPS = "stamps"
_OWNER_ONLY = stat.S_IRWXU
_READERS = ("rows", "profilers", "logs")  # whose code decides what is read from a log
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
_ARRAYS = "tables.npz"


def place() -> Path | None:
    """The folder of the cache: $EPROF_CACHE ("off": none), else `eprof` in $XDG_CACHE_HOME, else in ~/.cache."""
    setting = os.environ.get("EPROF_CACHE")
    if setting is not None:
        return None if setting.lower() in ("", "off", "0", "no") else Path(setting)
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
            status = place.stat()
        except (OSError, ValueError):
            continue
        if status.st_uid != os.geteuid():
            return (
                f"the cache {place} belongs to another user, so it is not used; name one of your own with EPROF_CACHE, "
                "or none with EPROF_CACHE=off"
            )
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"others can write to the cache {place}, so it is not used; run `chmod -R go-w {quote(str(folder))}`"
    return None


class Stamp(Struct, frozen=True):
    """What shows that a file is the one that was read: its path, size, inode, and when content and inode changed."""

    path: str
    size: int
    changed_ns: tuple[int, int]
    inode: tuple[int, int]

    @staticmethod
    def of(path: Path) -> Stamp | None:
        """The stamp of an ordinary file that is worth an entry, else None."""
        try:
            status = path.stat()
        except OSError:
            return None
        if not path.is_file() or status.st_size < SMALLEST_BYTES:
            return None
        changed_ns = (status.st_mtime_ns, status.st_ctime_ns)
        return Stamp(str(path.resolve()), status.st_size, changed_ns, (status.st_dev, status.st_ino))

    @property
    def name(self) -> str:
        """A file name for it."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogateescape")).hexdigest()[:40]

    @property
    def is_settled(self) -> bool:
        """Whether a change after the reading would show: not if the file was changed only just now, or in future."""
        return max(self.changed_ns) / 1e9 < time.time() - _SETTLED_S


class Cache(Struct, frozen=True):
    """Entries in a folder. request: a digest of the options of the reader. Whatever goes wrong, there is no entry."""

    folder: Path
    request: str

    def get(self, stamp: Stamp) -> Log | None:
        """The log in the file that `stamp` is of, if it was read before."""
        with contextlib.suppress(Exception):  # a damaged entry can be wrong in any way
            known = self.folder / _STAMPS / stamp.name
            if stamp.is_settled and known.is_file():
                return self._load(self._entry(stamp.size, known.read_text()), stamp)
            if next(self.folder.glob(f"{stamp.size}-*-{self.request}"), None) is not None:
                entry = self._entry(stamp.size, _hash(Path(stamp.path)))
                return self._load(entry, stamp) if entry.is_dir() else None
        return None

    def put(self, stamp: Stamp, log: Log) -> None:
        """Keep a log that was read from the file that `stamp` is of; not if the file has changed since."""
        if Stamp.of(Path(stamp.path)) != stamp or log.size_bytes != stamp.size:
            return
        with contextlib.suppress(OSError):
            self._save(log, self._entry(stamp.size, log.sha256))
            _write(self.folder / _STAMPS / stamp.name, log.sha256)
            self._prune()

    def _entry(self, size: int, sha256: str) -> Path:
        return self.folder / f"{size}-{sha256}-{self.request}"

    def _save(self, log: Log, entry: Path) -> None:
        """Write an entry beside its place, then rename: others see the whole of it or nothing."""
        if entry.is_dir():
            return
        self.folder.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
        import shutil
        import tempfile

        beside = Path(tempfile.mkdtemp(dir=self.folder, prefix=".new-"))
        try:
            arrays: dict[str, Array] = {}
            tables = [_kept(table, str(number), arrays) for number, table in enumerate(log.tables)]
            np.savez(beside / _ARRAYS, **arrays)  # type: ignore[arg-type]
            document = {name: getattr(log, name) for name in _LISTED}
            document |= {"notes": log.notes, "tables": tables, "clocks": [astuple(clock) for clock in log.clocks]}
            (beside / "log.json").write_text(json.dumps(document))
            beside.rename(entry)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _load(self, entry: Path, stamp: Stamp) -> Log:
        document = json.loads((entry / "log.json").read_text())
        # Opened here, for numpy leaves a damaged file open.
        with (entry / _ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            tables = [_table(kept, str(number), arrays) for number, kept in enumerate(document["tables"])]
        clocks = tuple(Clock(*clock) for clock in document["clocks"])
        known = {name: document[name] for name in _LISTED}
        log = Log(**known, tables=tuple(tables), notes=tuple(document["notes"]), clocks=clocks)
        # A cache that may only be read is of use too.
        with contextlib.suppress(OSError):
            os.utime(entry)  # the order of last use, for pruning
            _write(self.folder / _STAMPS / stamp.name, log.sha256)
        return replace(log, path=stamp.path)

    def _prune(self) -> None:
        """Drop the entries that were used longest ago until the rest is small enough, and what killed reports left."""
        import shutil

        for beside in self.folder.glob(".new-*"):
            if abs(time.time() - beside.stat().st_mtime) > _ABANDONED_S:
                shutil.rmtree(beside, ignore_errors=True)
        entries = [entry for entry in self.folder.glob("*-*-*") if entry.is_dir()]
        entries.sort(key=lambda entry: entry.stat().st_mtime)
        sizes = [sum(file.stat().st_size for file in entry.iterdir()) for entry in entries]
        total = sum(sizes)
        for entry, size in zip(entries, sizes, strict=True):
            if total <= _LARGEST_BYTES:
                return
            shutil.rmtree(entry, ignore_errors=True)
            total -= size


def request_digest(
    columns: Iterable[str] | None, names: Mapping[str, str], keep: Iterable[str] | None, parts: str | None
) -> str:
    """A digest of the options and the code of the reader: another version may read a log otherwise."""
    code = hashlib.sha256()
    for room in _READERS:
        for file in sorted((Path(__file__).parents[1] / room).rglob("*.py")):
            code.update(file.read_bytes())
    options = {"columns": columns and list(columns), "names": sorted(names.items()), "parts": parts}
    code.update(json.dumps({**options, "keep": None if keep is None else sorted(keep)}).encode())
    return code.hexdigest()[:16]


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(mode=_OWNER_ONLY, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)


def _kept(table: Table, place: str, arrays: dict[str, Array]) -> dict[str, Any]:
    """What of a table is kept as JSON; its columns are put into `arrays`."""
    columns = table.rows.columns()
    names = {name: column.names for name, column in columns.items() if isinstance(column, Names)}
    for name, column in columns.items():
        arrays[f"{place} {name}"] = column.codes if isinstance(column, Names) else column
    arrays[f"{place} counters"] = table.counters.values
    return {
        "kind": table.kind,
        "names": names,
        "columns": list(columns),
        "counters": table.counters.names,
        "units": dict(table.units),
        "collected": None if table.collected is None else sorted(table.collected),
        "lacks_rows": table.lacks_rows,
    }


def _table(kept: Mapping[str, Any], place: str, arrays: Mapping[str, Array]) -> Table:
    columns: dict[str, Any] = {name: arrays[f"{place} {name}"] for name in kept["columns"]}
    for name, names in kept["names"].items():
        columns[name] = Names(tuple(names), columns[name])
    rows = TableRows(**columns)
    counters = Columns(tuple(kept["counters"]), arrays[f"{place} counters"])
    if counters.values.shape != (len(rows), len(kept["units"])):
        raise ValueError("an entry of another size")
    collected = None if kept["collected"] is None else frozenset(kept["collected"])
    return Table(kept["kind"], rows, counters, kept["units"], collected, kept["lacks_rows"])

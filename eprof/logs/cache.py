"""Logs as they were read, kept as MessagePack: the second report on a large log does not read its text again.

An entry is found by the content of the log (SHA-256), by the options of the reader, and by the reader's own code. So
that a large file need not be hashed to find its entry, the path, size, times of change and inode of the file that was
read are remembered with its hash, as git does; a file that was changed a moment before is not trusted with that. Of the
times, that of the content (mtime) can be put back by anybody, that of the inode (ctime) cannot.

Who can write into the folder can make every later report say anything: one that others can write to is not used.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from pathlib import Path

import numpy as np
from msgspec import Struct, msgpack
from msgspec.structs import replace

from eprof.base.arrays import Array
from eprof.base.resources import STAMPS
from eprof.logs.log import Log

SMALLEST_BYTES = 8 << 20
_LARGEST_BYTES = 4 << 30
_SETTLED_S = 2.0
_ABANDONED_S = 86400.0
_OWNER_ONLY = stat.S_IRWXU
_DIGEST_BYTES = 32  # in front of an entry: the SHA-256 of the rest, which shows damage


class Stamp(Struct, frozen=True):
    """Identity of a file that was read: its path, size, inode, and when content and inode changed."""

    path: str
    size: int
    changed_ns: tuple[int, int]
    inode: tuple[int, int]

    @staticmethod
    def of(path: Path) -> Stamp | None:
        """The stamp of a regular file of 8 MiB or more; None for a smaller one, and for what is no such file."""
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
        """The file name, 40 hexadecimal digits, under which the cache keeps the SHA-256 of this file's content."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogateescape")).hexdigest()[:40]

    @property
    def is_settled(self) -> bool:
        """Whether the last change is more than 2 s old: any later one then surely gives the file another stamp."""
        return max(self.changed_ns) / 1e9 < time.time() - _SETTLED_S


class Cache(Struct, frozen=True):
    """A folder of logs read before. request: a digest of the reader's options and code. Errors count as no entry."""

    folder: Path
    request: str

    def get(self, stamp: Stamp) -> Log | None:
        """The log that was read before, with the same options, from the file of `stamp`; None if it is not kept."""
        with contextlib.suppress(Exception):  # a damaged entry can be wrong in any way
            known = self.folder / STAMPS / stamp.name
            if stamp.is_settled and known.is_file():
                return self._load(self._entry(stamp.size, known.read_text()), stamp)
            if next(self.folder.glob(f"{stamp.size}-*-{self.request}"), None) is not None:
                with Path(stamp.path).open("rb") as file:
                    sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                return self._load(self._entry(stamp.size, sha256), stamp)
        return None

    def put(self, stamp: Stamp, log: Log) -> None:
        """Keep `log`, which was read from the file of `stamp`; not if the file has changed since, nor on an error."""
        if Stamp.of(Path(stamp.path)) != stamp or log.size_bytes != stamp.size:
            return
        with contextlib.suppress(OSError, OverflowError):  # arrays of more than 4 GB
            entry = self._entry(stamp.size, log.sha256)
            if not entry.exists():
                content = msgpack.encode(log, enc_hook=_plain)
                _write(entry, hashlib.sha256(content).digest() + content)
            _write(self.folder / STAMPS / stamp.name, log.sha256.encode())
            self._prune()

    def _entry(self, size: int, sha256: str) -> Path:
        return self.folder / f"{size}-{sha256}-{self.request}"

    def _load(self, entry: Path, stamp: Stamp) -> Log | None:
        """The log in the file `entry`, with the path of `stamp`; None if damaged. `_prune` sees that it was used."""
        content = memoryview(entry.read_bytes())
        if hashlib.sha256(content[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
            return None
        log = msgpack.decode(content[_DIGEST_BYTES:], type=Log, dec_hook=_array)
        # A cache that may only be read is of use too.
        with contextlib.suppress(OSError):
            os.utime(entry)  # the order of last use, for pruning
            _write(self.folder / STAMPS / stamp.name, log.sha256.encode())
        return replace(log, path=stamp.path)

    def _prune(self) -> None:
        """Delete the entries used longest ago until the rest takes 4 GiB at most, and temporary files a day old."""
        for beside in self.folder.glob(".*"):
            if abs(time.time() - beside.stat().st_mtime) > _ABANDONED_S:
                beside.unlink()
        entries = sorted(self.folder.glob("*-*-*"), key=lambda entry: entry.stat().st_mtime)
        total = sum(entry.stat().st_size for entry in entries)
        for entry in entries:
            if total <= _LARGEST_BYTES:
                return
            total -= entry.stat().st_size
            entry.unlink()


def _write(path: Path, content: bytes) -> None:
    """Write an entry of the cache beside its place, then rename it: others see the whole of it or nothing."""
    path.parent.mkdir(mode=_OWNER_ONLY, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _plain(array: object) -> tuple[str, tuple[int, ...], bytes]:
    """An array as (dtype, shape, bytes), of which `_array` makes it again. Raises TypeError for anything else."""
    if not isinstance(array, np.ndarray):
        raise TypeError(f"a log holds a {type(array).__name__}, which is not kept")
    return array.dtype.str, array.shape, array.tobytes()


def _array(_: type, kept: tuple[str, tuple[int, ...], bytes]) -> Array:
    dtype, shape, content = kept
    return np.frombuffer(content, dtype).reshape(shape).copy()

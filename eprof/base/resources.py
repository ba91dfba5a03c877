"""What eprof finds on a machine: its data folders and cache, small files; cores, memory, a thread that reads ahead."""

from __future__ import annotations

import errno
import os
import resource
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from eprof.base.errors import LogError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

T = TypeVar("T")
# `--costs <(command)`: the shell hands over a pipe under one of these names, and the user means it.
_HANDED_OVER = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")


@cache
def folder(name: str) -> Traversable:
    """The data folder `name`: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).parents[1]
    for place in (package / "data" / name, package.parent / name):
        if place.is_dir():
            return place
    from importlib.resources import files  # slow to load, and needed only for a package in a zip file

    return files("eprof") / "data" / name


def tree(start: Traversable, suffix: str) -> list[Traversable]:
    """All files below `start` whose names end in `suffix`, sorted by path; [] if `start` is no folder."""
    files: list[Traversable] = []
    if not start.is_dir():
        return files
    for entry in sorted(start.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            files += tree(entry, suffix)
        elif entry.name.endswith(suffix):
            files.append(entry)
    return files


def opened(path: Path) -> BinaryIO:
    """A small data file or log, open for reading. Raises OSError, whose `strerror` is a reason in words.

    A named pipe, a device and a socket are refused, for they may give nothing or without end; a folder is too.
    """
    # Without O_NONBLOCK, to open a pipe that nobody writes to would not return.
    number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(number).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "it is a folder")
        if stat.S_ISFIFO(mode) and str(path).startswith(_HANDED_OVER):
            os.set_blocking(number, True)
        elif not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, and no file")
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def content(source: Traversable, most: int) -> bytes:
    """The bytes of a file of at most `most` bytes. Raises OSError as `opened` does, and for a larger one."""
    if not isinstance(source, Path):
        return source.read_bytes()  # in a zip file, whose index has its size
    with opened(source) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MB, the most that is read here")
    return data


def log_content(path: str, most: int) -> bytes:
    """The bytes of a log of at most `most` bytes, as they are in the file. Raises LogError."""
    with _readable(path):
        return content(Path(path), most)


def log_start(path: str, size: int) -> bytes:
    """The first `size` bytes of a log of any size. Raises LogError."""
    with _readable(path), opened(Path(path)) as file:
        return file.read(size)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Within this context an OSError becomes a LogError: a sentence that names `path`."""
    try:
        yield
    except OSError as err:
        raise LogError(f"{path}: cannot be read ({err.strerror or err}).") from err


def lines(data: bytes) -> list[str]:
    """The lines of `data` as text; what is no UTF-8 is replaced, and so are NUL bytes, but for those at the end.

    Without a NUL byte the digits beside it would make another number.
    """
    return data.rstrip(b"\0").decode("utf-8-sig", "replace").replace("\0", "\ufffd").splitlines()


STAMPS = "stamps"  # the folder in the cache that says which files were read


def cache_folder() -> Path | None:
    """The folder of the cache of logs: $EPROF_CACHE ("off": None), else `eprof` in $XDG_CACHE_HOME or in ~/.cache."""
    setting = os.environ.get("EPROF_CACHE")
    if setting is not None and setting.lower() in ("", "off", "0", "no"):
        return None
    if setting is not None:
        return Path(setting)
    home = os.environ.get("XDG_CACHE_HOME")
    if home and Path(home).is_absolute():
        return Path(home) / "eprof"
    try:
        return Path.home() / ".cache" / "eprof"
    except RuntimeError:
        return None


def cache_refusal(folder: Path) -> str | None:
    """Why a folder is not used as the cache of logs: others than this user can write to it. None if nobody else can."""
    for place in (folder, folder / STAMPS):
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


_AHEAD = 3  # items
SCARCE_BYTES = 1 << 30  # of addresses, which a long log takes


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def is_memory_scarce() -> bool:
    """Whether `ulimit -v` is so low that no thread may read ahead; reading then takes many times as long."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    return most != resource.RLIM_INFINITY and most < SCARCE_BYTES


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Yields `items` up to the first None; a thread takes them from their iterator a few ahead of their use."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and for long logs only

    with ThreadPoolExecutor(1) as maker:
        coming = deque(maker.submit(next, items, None) for _ in range(_AHEAD))
        while (item := coming.popleft().result()) is not None:
            coming.append(maker.submit(next, items, None))
            yield item

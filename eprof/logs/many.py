"""Many logs: from the cache, over the cores of this machine, or over those of a Dask cluster; same result each way.

Each file is read by itself, by the same function and with the same order of additions wherever that runs, and results
come back in the order of the paths: the totals are the same to the last digit.
"""

import hashlib
import json
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from eprof import profilers
from eprof.base.errors import LogError, ShortageError, UsageError, shortage
from eprof.base.optional import mapped
from eprof.base.resources import cache_refusal
from eprof.logs import read
from eprof.logs.cache import Cache, Stamp
from eprof.logs.log import Log

# What it takes before other processes are worth their start.
_MANY_BYTES, _MANY_FILES = 96 << 20, 400
# Logs whose tables are put together, always the same ones; and at most so many are given to a process at a time.
_AT_ONCE = 32
Read = Log | LogError
Progress = Callable[[int, int], None]
Tell = Callable[[int], None]  # how many bytes more were read


class Reading(Struct, frozen=True, dict=True):
    """The options of the reader (`logs.read`), and the folder of the cache; None: no cache.

    keep: gives the counters to hold of a profiler's log.
    gather: of every so many logs the first gets the tables of all and the others none: thousands of logs then take no
    more room and time than their rows. Only for what looks at all of them together.
    """

    columns: tuple[str, ...] | None
    names: dict[str, str]
    keep: Callable[[str], frozenset[str]]
    cache: Path | None = None
    parts: str | None = None
    gather: bool = False

    @cached_property
    def _request(self) -> str:
        """A digest of the options and the code of the reader: another version may read a log otherwise."""
        digest = hashlib.sha256()
        for room in ("logs", "nvidia", "profilers", "readers"):
            for file in sorted((Path(__file__).parents[1] / room).rglob("*.py")):
                digest.update(file.read_bytes())
        keep = sorted(name for profiler in profilers.names() for name in self.keep(profiler))
        digest.update(json.dumps([self.columns, sorted(self.names.items()), keep, self.parts]).encode())
        return digest.hexdigest()[:16]

    @cached_property
    def refused(self) -> str | None:
        """A sentence on why the cache is not used; None if it is, or if none was asked for."""
        return mapped(cache_refusal, self.cache)

    def __call__(self, path: Path, progress: Tell | None = None) -> Log:
        """Read one log, or take it from the cache. Raises LogError. progress: called with the number of new bytes."""
        if is_pipe(path):
            # Copied first, because readers look at a file's start more than once.
            import shutil
            import tempfile

            with tempfile.NamedTemporaryFile(prefix="eprof-") as spool:
                with path.open("rb") as pipe:
                    shutil.copyfileobj(pipe, spool)
                spool.flush()
                try:
                    return replace(self._read(Path(spool.name)), path=str(path))
                except LogError as err:
                    raise LogError(str(err).replace(spool.name, str(path))) from err
        before = _state(path)
        log = self._kept(path, progress)
        # Deleted meanwhile, it was still read to its end.
        if (after := _state(path)) is not None and after != before:
            grown = "the file changed while it was read (is its program still running?); report again when it is done"
            log = replace(log, notes=(*log.notes, grown))
        return log

    def _kept(self, path: Path, progress: Tell | None) -> Log:
        """The log of a file from the cache, or else as it is read; it is then put there if the file is large enough."""
        if self.cache is None or self.refused is not None or (stamp := Stamp.of(path)) is None:
            return self._read(path, progress)
        cache = Cache(self.cache, self._request)
        log = cache.get(stamp)
        if log is None:
            log = self._read(path, progress)
            cache.put(stamp, log)
        return replace(log, path=str(path))

    def _read(self, path: Path, progress: Tell | None = None) -> Log:
        return read(path, columns=self.columns, names=self.names, keep=self.keep, progress=progress, parts=self.parts)


def read_all(
    paths: Sequence[Path],
    reading: Reading,
    *,
    scheduler: str | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> dict[Path, Read]:
    """Each of many logs, or the LogError that says why there is none, in the order of the paths.

    scheduler: "tcp://HOST:PORT" of a Dask cluster that sees the same files; None: this machine. workers: processes that
    may be used on it, where that pays. progress: is told how many bytes were read, and how many there are.
    Raises UsageError if the scheduler cannot be used, ShortageError if there is too little memory or the like to read.
    """
    sizes = {path: (_state(path) or (0,))[0] for path in paths}
    total, seen = sum(sizes.values()), 0

    def reach(read_bytes: int) -> None:
        nonlocal seen
        seen = max(seen, read_bytes)
        if progress is not None:
            progress(min(seen, total), total)

    def tell(more: int) -> None:
        reach(seen + more)

    done: dict[Path, Read] = {}
    before = 0
    can_share = not any(map(is_pipe, paths))
    is_much = len(paths) > _MANY_FILES or total > _MANY_BYTES
    if scheduler is not None and can_share:
        coming = _dask(paths, reading, scheduler)
    elif is_much and can_share and len(paths) > 1 and workers > 1:
        coming = _processes(paths, reading, tell, workers)
    else:
        coming = (attempt(path, reading, tell) for path in paths)
    for block in _blocks(paths, _AT_ONCE):
        for path, result in zip(block, coming, strict=False):
            done[path] = result
            before += sizes[path]
            reach(before)  # whoever cannot tell bytes as they come is counted file by file
        if reading.gather:
            done.update(zip(block, _gathered([done[path] for path in block]), strict=True))
    return done


def _blocks(paths: Sequence[Path], size: int) -> list[Sequence[Path]]:
    return [paths[first : first + size] for first in range(0, len(paths), size)]


def _gathered(results: Sequence[Read]) -> list[Read]:
    from eprof.logs.join.sums import gathered

    logs = iter(gathered([result for result in results if isinstance(result, Log)]))
    return [next(logs) if isinstance(result, Log) else result for result in results]


def is_pipe(path: Path) -> bool:
    """Whether a path is a pipe; not if it cannot be looked at, where Path.is_fifo raises."""
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _state(path: Path) -> tuple[int, int, int] | None:
    """Bytes, time of change and inode of an ordinary file; None for others, and for those that went away."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def attempt(path: Path, reading: Reading, tell: Tell | None = None) -> Read:
    """Read one log; where it cannot be read, return the LogError. What a worker process or a Dask task runs.

    Raises ShortageError where it is not the log's fault: it must not be left out of a total for that.
    """
    try:
        return reading(path, tell)
    except Exception as err:
        short = shortage(err)
        if short is not None:
            raise ShortageError(f"{path}: {short}.") from err
        if isinstance(err, LogError):
            return err
        if isinstance(err, OSError):
            return LogError(f"{path}: cannot be read: {err.strerror or err}")
        raise


def _processes(paths: Sequence[Path], reading: Reading, tell: Tell, workers: int) -> Iterator[Read]:
    """Yields the `Log` or LogError of each path in order, by worker processes; one by one here where these fail."""
    from eprof.logs.workers import in_order

    workers = min(workers, len(paths))
    done = 0
    # Few large logs must not go to one process.
    blocks = _blocks(paths, min(1 + len(paths) // (16 * workers), _AT_ONCE))
    try:
        with closing(in_order(blocks, partial(_block, reading=reading), workers)) as coming:
            for results in coming:
                yield from results
                done += len(results)
    except Exception as err:
        # An OSError is of the processes; that of a log is a result.
        if not isinstance(err, OSError | EOFError | NotImplementedError) and shortage(err) is None:
            raise
    yield from (attempt(path, reading, tell) for path in paths[done:])


def _block(paths: Sequence[Path], reading: Reading) -> list[Read]:
    results = [attempt(path, reading) for path in paths]
    if reading.gather and len(paths) == _AT_ONCE:
        return _gathered(results)
    return results


def _dask(paths: Sequence[Path], reading: Reading, scheduler: str) -> Iterator[Read]:
    client = _client(scheduler)
    try:
        tasks = client.map(attempt, [path.absolute() for path in paths], reading=reading, pure=False, retries=3)
        for path, task in zip(paths, tasks, strict=True):
            try:
                result: Read = task.result()
            except Exception as err:  # noqa: BLE001 - whatever a cluster raises is reported with the file that it was for
                result = LogError(f"{path}: the cluster at {scheduler} could not read it ({type(err).__name__}: {err})")
                if shortage(err) is not None:
                    result = attempt(path, reading)
            if isinstance(result, Log):
                yield replace(result, path=str(path))
            else:
                yield LogError(str(result).replace(str(path.absolute()), str(path)))
            task.release()
    finally:
        client.close()


def _client(scheduler: str) -> Any:
    try:
        from dask import distributed
    except ImportError as err:
        raise UsageError("--scheduler needs Dask; install it with: pip install dask distributed") from err
    import socket

    library: Any = distributed  # its classes have no types
    try:
        # Dask itself would try again and again where nobody listens.
        address = re.fullmatch(r"(?:tcp://)?\[?([^\[\]/]+?)\]?:(\d+)", scheduler)
        if address:
            socket.create_connection((address[1], int(address[2])), timeout=10).close()
        return library.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as err:
        raise UsageError(
            f"--scheduler {scheduler}: no Dask scheduler answers there ({err}); start one with `dask scheduler`, or "
            "leave the option out."
        ) from err

"""Reads many logs (`read_all`): from the `Cache`, by worker processes, by a Dask cluster; same result each way.

Each file is read by itself, by the same function and with the same order of additions wherever that runs, and results
come back in the order of the paths: the totals are the same to the last digit.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import stat
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from msgspec import Struct, msgpack
from msgspec.structs import replace

from eprof import profilers
from eprof.base.arrays import Array
from eprof.base.errors import LogError, ShortageError, UsageError, shortage
from eprof.base.optional import mapped
from eprof.base.resources import STAMPS, cache_refusal
from eprof.logs import read
from eprof.logs.log import Log

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

# What it takes before other processes are worth their start.
_MANY_BYTES, _MANY_FILES = 96 << 20, 400
# Logs whose tables are put together, always the same ones; and at most so many are given to a process at a time.
_AT_ONCE = 32
Read = Log | LogError
Progress = Callable[[int, int], None]
Tell = Callable[[int], None]  # how many bytes more were read


class Reading(Struct, frozen=True, dict=True):
    """How to read many logs: the options of `logs.read`, and the folder of the cache (None: no cache).

    keep: profiler -> the counters to hold of its logs. gather: of every 32 logs the first gets the tables of all and
    the others none: thousands of logs then take no more room and time than their rows. Only for what looks at all of
    them together.
    """

    columns: tuple[str, ...] | None
    names: dict[str, str]
    keep: Callable[[str], frozenset[str]]
    cache: Path | None = None
    parts: str | None = None
    gather: bool = False

    @cached_property
    def _request(self) -> str:
        """A digest of the options and of the readers' code, for names of cache entries: others may read otherwise."""
        digest = hashlib.sha256()
        for room in ("logs", "nvidia", "profilers", "readers"):
            for file in sorted((Path(__file__).parents[1] / room).rglob("*.py")):
                digest.update(file.read_bytes())
        keep = sorted(name for profiler in profilers.names() for name in self.keep(profiler))
        digest.update(json.dumps([self.columns, sorted(self.names.items()), keep, self.parts]).encode())
        return digest.hexdigest()[:16]

    @cached_property
    def refused(self) -> str | None:
        """A sentence on why the cache of logs is not used; None if it is, or if none was asked for."""
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
    """The results with the tables of all logs in the first log (`Reading.gather`)."""
    from eprof.logs.passes import gathered_in_first

    logs = iter(gathered_in_first([result for result in results if isinstance(result, Log)]))
    return [next(logs) if isinstance(result, Log) else result for result in results]


def is_pipe(path: Path) -> bool:
    """Whether a path is a pipe; not if it cannot be looked at, where Path.is_fifo raises."""
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _state(path: Path) -> tuple[int, int, int] | None:
    """(Bytes, time of change in ns, inode) of an ordinary file; None for others, and for those that went away."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino


def attempt(path: Path, reading: Reading, tell: Tell | None = None) -> Read:
    """Read one log, or return the LogError that says why not: the work of a worker process or a Dask task.

    Raises ShortageError where the machine is to blame: the log must not be left out of a total for that.
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
    """Read some logs in a worker process; a whole block is gathered there already, so that less is sent."""
    results = [attempt(path, reading) for path in paths]
    if reading.gather and len(paths) == _AT_ONCE:
        return _gathered(results)
    return results


def _dask(paths: Sequence[Path], reading: Reading, scheduler: str) -> Iterator[Read]:
    """Yields the `Log` or LogError of each path in order, by a Dask cluster. Raises UsageError: it cannot be used."""
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
        client = library.Client(scheduler, timeout="10s")
    except (OSError, ValueError) as err:
        raise UsageError(
            f"--scheduler {scheduler}: no Dask scheduler answers there ({err}); start one with `dask scheduler`, or "
            "leave the option out."
        ) from err
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


# ----------------------------------------------------------------------------------------------------------------------
# The cache: logs as they were read, kept as MessagePack, so that a second report does not read their text again.
#
# An entry is found by the content of the log (SHA-256), by the options of the reader, and by the reader's own code. So
# that a large file need not be hashed to find its entry, the path, size, times of change and inode of the file that was
# read are remembered with its hash, as git does; a file that was changed a moment before is not trusted with that. Of
# the times, that of the content (mtime) can be put back by anybody, that of the inode (ctime) cannot.
#
# Who can write into the folder can make every later report say anything: one that others can write to is not used.

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
    """The cache: a folder of logs read before. request: digest of the readers' options and code. Errors: no entry."""

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


# ----------------------------------------------------------------------------------------------------------------------
# Worker processes that end with their parent, however that ends. Those of `concurrent.futures` outlive a parent that is
# killed, and at SIGTERM it hangs.

Job = TypeVar("Job")
Result = TypeVar("Result")
# How many jobs may be done ahead of the next one in order, a process.
_AHEAD = 4
_ENDING = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


def in_order(jobs: Sequence[Job], work: Callable[[Job], Result], number: int) -> Generator[Result, None, None]:
    """Yields what `work` returns for each job, in the order of the jobs, by `number` worker processes.

    Raises EOFError if a process was killed, OSError or MemoryError if one cannot be had, and what `work` raises.
    """
    team: list[_Worker] = []
    try:
        with _undisturbed():
            for _ in range(number):
                team.append(_Worker(work))
        given = wanted = 0  # numbers of jobs
        ready: dict[int, Result] = {}
        while wanted < len(jobs):
            for worker in team:
                # Not far ahead of the next result: results that wait take memory.
                if worker.job is None and given < min(len(jobs), wanted + _AHEAD * len(team)):
                    worker.give(given, jobs[given])
                    given += 1
            ready |= dict([worker.take() for worker in _Worker.finished(team)])
            while wanted in ready:
                yield ready.pop(wanted)
                wanted += 1
    finally:
        for worker in team:
            worker.end()


class _Worker:
    """A worker process, with one job at a time. job: its number; None: it has none."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        from multiprocessing import get_context

        context = get_context("spawn")
        self._ours, worker_end = context.Pipe()
        self._process = context.Process(target=_life, args=(worker_end, work), daemon=True)
        self._process.start()
        worker_end.close()
        self.job: int | None = None

    def give(self, number: int, job: object) -> None:
        """Send a job to the worker process that reads logs."""
        self._ours.send(job)
        self.job = number

    def take(self) -> tuple[int, Any]:
        """(The number of the worker's job, its result). Raises EOFError (it is gone) or what the job raised."""
        result = self._ours.recv()
        if isinstance(result, BaseException):
            raise result
        number = self.job
        assert number is not None
        self.job = None
        return number, result

    @staticmethod
    def finished(team: Sequence[_Worker]) -> list[_Worker]:
        """The worker processes whose result can be taken; waits until there is one."""
        from multiprocessing.connection import wait

        ready = wait([worker._ours for worker in team if worker.job is not None])
        return [worker for worker in team if worker._ours in ready]

    def end(self) -> None:
        """Kill the worker process: its job is of no use any more, and may take long."""
        self._ours.close()
        self._process.kill()
        self._process.join()


def _life(connection: Connection[Any, Any], work: Callable[[Any], Any]) -> None:
    """The life of a worker: it works on jobs until the process that started it is gone."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    with contextlib.suppress(EOFError, OSError):
        while True:
            job = connection.recv()
            try:
                result = work(job)
            except Exception as err:  # noqa: BLE001 - the parent raises it
                result = err
            connection.send(result)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Processes started inside the block ignore Ctrl-C and a closed terminal for good: this process ends them.

    Signals to this process wait until the start is done. A mask alone does not hold them back: threads have their own.
    """
    from multiprocessing import resource_tracker

    # Multiprocessing's own helper: its start, if it came later, would undo the mask below.
    resource_tracker.ensure_running()
    came: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in _ENDING}
        before = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in before:
        signal.signal(number, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)

"""The run directory that a run makes: taken by it alone, its logs never touched by another, `run.json` whole."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError
from eprof.base.text import when
from eprof.collect.directory import MANIFEST, is_run_directory

_SUFFIX = ".eprof"
_MOST_NUMBERS = 100_000
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class RunDirectory(NamedTuple):
    """A directory that this process alone writes to. lock: a descriptor that keeps others off while the process lives.

    replaces: the run directory whose place this one takes once it is complete; `old_lock` is that one's.
    """

    path: Path
    lock: int
    replaces: Path | None = None
    old_lock: int = -1

    @property
    def logs(self) -> Path:
        """The folder of the run directory in which profilers write, and nobody else."""
        return self.path / "logs"

    def save(self, manifest: Mapping[str, Any], last: bool = False) -> None:
        """Write `run.json` in one step: a reader finds the old one or the new one, whole. Raises CollectError.

        last: wait until it is on the disk; before that only the machine, not a process, can lose it.
        """
        beside = self.path / f".{MANIFEST}.new"
        try:
            with beside.open("w", encoding="utf-8", errors="surrogateescape") as file:
                json.dump(manifest, file, indent=1, ensure_ascii=True)
                file.write("\n")
                file.flush()
                if last:
                    os.fsync(file.fileno())
            beside.replace(self.path / MANIFEST)
        except OSError as err:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            if not self.path.is_dir():
                raise CollectError(f"{self.path}: the run directory was removed, with what was collected.") from err
            raise CollectError(
                f"{self.path / MANIFEST}: cannot be written ({_why(err)}); the logs in {self.logs} are kept. Make "
                f"room, and `eprof report {self.path}` reports on them."
            ) from err

    def in_place(self) -> "RunDirectory":
        """Move a complete run to the place of the one that it replaces; returns it there. Raises CollectError."""
        if self.replaces is None:
            return self
        aside = self.replaces.with_name(f".{self.replaces.name}.{os.getpid()}")
        try:
            self.replaces.rename(aside)
            self.path.rename(self.replaces)
            shutil.rmtree(aside)
        except OSError as err:
            where = next(place for place in (self.path, self.replaces) if place.exists())
            raise CollectError(
                f"{self.replaces}: the earlier run cannot be replaced ({_why(err)}); the new one is complete: "
                f"`eprof report {where}` reports on it."
            ) from err
        os.close(self.old_lock)
        return RunDirectory(self.replaces, self.lock)

    def release(self) -> None:
        """Let others remove or replace the run directory."""
        os.close(self.lock)


def create(name: str, force: bool = False, exact: bool = False) -> RunDirectory:
    """Make the run directory `NAME`, or, if that is taken, NAME-2.eprof and so on (`exact`: only this one).

    With `force`, a run directory of this name that no run is writing to is there until the new one, which has a number
    until then, is complete (`in_place`). Raises CollectError.
    """
    wanted = Path(name)
    replaces, old_lock = None, -1
    if force and wanted.is_dir():
        wanted = replaces = wanted.resolve()
        old_lock = _take(wanted)
        exact = False
    first = 1 + (replaces is not None)
    for number in range(first, 2 if exact else _MOST_NUMBERS):
        path = wanted
        if number > 1:
            suffix = when(wanted.name.endswith(_SUFFIX), _SUFFIX)
            path = wanted.with_name(f"{wanted.name.removesuffix(_SUFFIX)}-{number}{suffix}")
        try:
            path.mkdir()
            (path / "logs").mkdir()
            return RunDirectory(path.resolve(), _lock(path, needed=False), replaces, old_lock)
        except FileExistsError as err:
            if exact:
                mend = "use another name, or -f/--force."
                raise CollectError(f"{path}: exists already and is not overwritten; {mend}") from err
        except OSError as err:
            raise CollectError(
                f"{path}: the run directory cannot be made ({_why(err)}); say where with -o DIRECTORY. Nothing was run."
            ) from err
    raise CollectError(f"{wanted}: every number up to {_MOST_NUMBERS} is taken; name a directory with -o.")


def default_name(program: str) -> str:
    """The name of the run directory of a program: "./bin/fmm" -> "fmm.eprof"."""
    stem = Path(program).name.lstrip(".") or "run"
    return f"{stem}{_SUFFIX}"


def _lock(path: Path, needed: bool = True) -> int:
    """Take the lock of a run directory, which ends with this process; returns its file descriptor.

    Raises BlockingIOError if another holds it; OSError if the file system has no locks (some network ones), where it
    is needed.
    """
    # Not on every system, and reading a run directory does not need it.
    import fcntl

    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as err:
        # The directory was made by us alone in any case; a lock only keeps another run's --force off.
        if needed or err.errno not in _NO_LOCKS:
            os.close(lock)
            raise
    return lock


def _why(err: OSError) -> str:
    known = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "no permission to write there",
        errno.EFBIG: "the file would exceed the size limit",
    }
    return known.get(err.errno or 0, err.strerror or str(err))


def _take(path: Path) -> int:
    """Lock a run directory to replace. Raises CollectError if it is none, or if a run is still writing to it."""
    if not is_run_directory(path):
        mend = "so --force does not replace it; remove it yourself."
        raise CollectError(f"{path}: is not a run directory of eprof, {mend}")
    try:
        return _lock(path)
    except BlockingIOError as err:
        raise CollectError(f"{path}: another run is writing to it; wait for its end, or use another name.") from err
    except OSError as err:
        why = "its file system has no locks" if err.errno in _NO_LOCKS else _why(err)
        raise CollectError(f"{path}: cannot be replaced ({why}); remove it yourself, or use another name.") from err

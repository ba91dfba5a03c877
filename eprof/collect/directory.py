"""The run directory: taken by one run alone, its `run.json` always whole, its logs never touched by another run."""

import contextlib
import errno
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError
from eprof.base.resources import content
from eprof.collect import record

SCHEMA = "eprof.run/1"
MANIFEST = "run.json"
COMPONENTS, MARKS = "components.csv", "marks.csv"  # power by component, and what ran when, on one clock
COMPLETE, PARTIAL = "complete", "partial"
_SUFFIX = ".eprof"
_MOST_NUMBERS = 100_000
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_MOST_BYTES = 64 << 20  # of run.json


class RunDirectory(NamedTuple):
    """A directory that this process alone writes to. `lock` keeps it so, and falls when the process dies.

    replaces: the run directory whose place this one takes once it is complete; `old_lock` is that one's.
    """

    path: Path
    lock: int
    replaces: Path | None = None
    old_lock: int = -1

    @property
    def logs(self) -> Path:
        """Where in a run directory profilers write, and nobody else."""
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
        """The directory of a complete run, in the place of the one that it replaces. Raises CollectError."""
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
    first = 2 if replaces else 1
    for number in range(first, 2 if exact else _MOST_NUMBERS):
        path = wanted if number == 1 else _numbered(wanted, number)
        try:
            path.mkdir()
        except FileExistsError as err:
            if exact:
                raise CollectError(
                    f"{path}: exists already and is not overwritten; use another name, or -f/--force."
                ) from err
            continue
        except OSError as err:
            raise _no_directory(path, err) from err
        return RunDirectory(path.resolve(), _claim(path), replaces, old_lock)
    raise CollectError(f"{wanted}: every number up to {_MOST_NUMBERS} is taken; name a directory with -o.")


def _numbered(path: Path, number: int) -> Path:
    stem = path.name.removesuffix(_SUFFIX)
    suffix = _SUFFIX if path.name.endswith(_SUFFIX) else ""
    return path.with_name(f"{stem}-{number}{suffix}")


def default_name(program: str) -> str:
    """The run directory of a program, in the working directory: "./bin/fmm" -> "fmm.eprof"."""
    stem = Path(program).name.lstrip(".") or "run"
    return f"{stem}{_SUFFIX}"


def _claim(path: Path) -> int:
    """Take a folder for a run directory; its lock."""
    try:
        (path / "logs").mkdir()
        return _lock(path, needed=False)
    except OSError as err:
        raise _no_directory(path, err) from err


def _lock(path: Path, needed: bool = True) -> int:
    """Take the lock of a run directory, which falls when this process ends.

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


def _no_directory(path: Path, err: OSError) -> CollectError:
    return CollectError(
        f"{path}: the run directory cannot be made ({_why(err)}); say where with -o DIRECTORY. Nothing was run."
    )


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
    """The lock of a run directory to replace. Raises CollectError if it is none, or if a run is still writing to it."""
    if not is_run_directory(path):
        raise CollectError(
            f"{path}: is not a run directory of eprof, so --force does not replace it; remove it yourself."
        )
    try:
        return _lock(path)
    except BlockingIOError as err:
        raise CollectError(f"{path}: another run is writing to it; wait for its end, or use another name.") from err
    except OSError as err:
        why = "its file system has no locks" if err.errno in _NO_LOCKS else _why(err)
        raise CollectError(f"{path}: cannot be replaced ({why}); remove it yourself, or use another name.") from err


def is_run_directory(path: Path) -> bool:
    """Whether `path` looks like what a run leaves: a `run.json` or, if it was killed early, a `logs` folder."""
    # Unlike Path.is_dir these do not raise where a folder may not be looked into.
    return os.path.isfile(path / MANIFEST) or os.path.isdir(path / "logs")  # noqa: PTH112, PTH113


def manifest(path: Path) -> dict[str, Any] | None:
    """What the `run.json` of a run directory says; None if there is none.

    Raises CollectError if it is not one of ours.
    """
    if (path / MANIFEST).exists() and not (path / MANIFEST).is_file():
        raise CollectError(f"{path / MANIFEST}: is not a plain file; move it away to report on the logs alone.")
    try:
        data = record.without_nulls(record.parse(content(path / MANIFEST, _MOST_BYTES).decode()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as err:
        why = getattr(err, "strerror", None) or err
        raise CollectError(
            f"{path / MANIFEST}: cannot be read ({why}); move it away to report on the logs alone."
        ) from err
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise CollectError(f"{path / MANIFEST}: is not a run of {SCHEMA}; made by another version of eprof?")
    if wrong := record.misfit(data):
        raise CollectError(f"{path / MANIFEST}: is damaged ({wrong}); move it away to report on the logs alone.")
    return data

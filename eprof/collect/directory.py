"""The run directory of `eprof run`: its `run.json`, read and checked; making, locking and replacing the directory."""

import contextlib
import errno
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError
from eprof.base.resources import content
from eprof.base.text import when

# ----------------------------------------------------------------------------------------------------------------------
# The form of `run.json`, as far as eprof uses it: a damaged or foreign one is an error before anything uses it.

_LARGEST = 1e15  # J, s, MHz, or processes
_KINDS: Mapping[Any, str] = {str: "text", list: "list", bool: "truth value"}
_MEASUREMENT: Mapping[str, Any] = {
    **dict.fromkeys(("what", "started_utc"), str),
    **dict.fromkeys(("number", "runs", "page_faults"), int),
    **dict.fromkeys(("seconds", "cpu_seconds", "system_seconds"), float),
    "command": [str],
    "io": dict.fromkeys(("asked_read_bytes", "asked_written_bytes", "read_bytes", "written_bytes"), int)
    | {"device_s": float},
    "left_out_s": {"Python's start and end": float, "imports": float},
    "energy": dict.fromkeys(("joules", "window_s", "core_mhz", "memory_mhz", "core_mhz_spread"), float)
    | {"runs": int, "method": str, "slowed_by": [str]},
}
FORM: Mapping[str, Any] = {
    **dict.fromkeys(("status", "command", "commit", "started_utc"), str),
    **dict.fromkeys(("program", "warnings"), [str]),
    "whole": bool,
    "profiler": {"name": str},
    "device": {"name": str, "capability": str},
    "meter": {"name": str, "covers": str, "devices": list},
    "host": {"name": str},
    "environment": {},
    "pricing": {"costs": str, "setting": str, "efficiency": float},
    "cluster": {"name": str, "program": str, "processes": int, "nodes": int, "size": float, "marks": [str]},
    "measurements": [_MEASUREMENT],
}


def without_nulls(value: Any) -> Any:
    """A value of JSON without nulls at any depth: in `run.json` null means the same as a missing key."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value


def misfit(value: Any, form: Any = FORM, where: str = "run.json") -> str | None:
    """The first thing in `value`, called `where` and without nulls, that is not of `form`: half a sentence; or None.

    form: a type; a list of one form, for all entries; or a table of forms, for those keys that the value has.
    """
    if isinstance(form, Mapping):
        if not isinstance(value, dict):
            return f"{where} is no table of keys and values"
        return next(filter(None, (misfit(value[key], form[key], f"`{key}`") for key in form if key in value)), None)
    if isinstance(form, list):
        if not isinstance(value, list):
            return f"{where} is no list"
        return next(filter(None, (misfit(item, form[0], f"an entry of {where}") for item in value)), None)
    if form in (float, int):
        is_number = isinstance(value, int | form) and not isinstance(value, bool)
        return None if is_number and 0 <= value < _LARGEST else f"{where} is no number for it"
    return None if isinstance(value, form) else f"{where} is no {_KINDS[form]}"


SCHEMA = "eprof.run/1"
MANIFEST = "run.json"
COMPONENTS, MARKS = "components.csv", "marks.csv"  # power by component, and what ran when, on one clock
COMPLETE, PARTIAL = "complete", "partial"
# Keys of `left_out_s`: what is left out of the time of a program alone, beside parts of it that nobody counts.
OTHER_CODE = "Valgrind's processor has no "  # begins a message: libraries may have run other code than without it
QUEUED, SLEPT = "waits for a processor that others had", "what it slept or waited"
_MOST_BYTES = 64 << 20  # of run.json


def is_run_directory(path: Path) -> bool:
    """Whether `path` looks like what a run leaves: a `run.json` or, if it was killed early, a `logs` folder."""
    # Unlike Path.is_dir these do not raise where a folder may not be looked into.
    return os.path.isfile(path / MANIFEST) or os.path.isdir(path / "logs")  # noqa: PTH112, PTH113


def manifest(path: Path) -> dict[str, Any] | None:
    """`run.json` of the run directory `path`, checked against `FORM`, without nulls; None: none. Or a CollectError."""
    file, mend = path / MANIFEST, "move it away to report on the logs alone."
    if file.exists() and not file.is_file():
        raise CollectError(f"{file}: is not a plain file; {mend}")
    try:
        data = without_nulls(json.loads(content(file, _MOST_BYTES).decode()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as err:
        why = getattr(err, "strerror", None) or err
        if isinstance(err, RecursionError):
            why = "it is nested too deeply"
        raise CollectError(f"{file}: cannot be read ({why}); {mend}") from err
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise CollectError(f"{file}: is not a run of {SCHEMA}; made by another version of eprof?")
    if wrong := misfit(data):
        raise CollectError(f"{file}: is damaged ({wrong}); {mend}")
    return data


# ----------------------------------------------------------------------------------------------------------------------
# How a run makes its directory, keeps others off, and writes `run.json`.

_SUFFIX = ".eprof"
_MOST_NUMBERS = 100_000
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class RunDirectory(NamedTuple):
    """The run directory that this process writes to, and no other. lock: the descriptor that keeps others off it.

    replaces: an earlier run directory whose place this one takes when it is complete; old_lock: that one's lock.
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
        """Write `manifest` to `run.json` in one step: readers find the old or the new file, whole. Raises CollectError.

        last: wait until it is on the disk; without that a crash of the machine may lose it.
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
        """Move the complete run to the place of the one that it replaces, if any; returns it. Raises CollectError."""
        if self.replaces is None:
            return self
        import shutil  # slow to import, and no reader needs it

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


def create(name: str, force: bool = False, exact: bool = False) -> RunDirectory:
    """Make and lock the run directory `name`, or, if that is taken, NAME-2.eprof and so on (`exact`: only this one).

    force: an earlier run of this name is to be replaced. The new one has a number until it is complete (`in_place`).
    Raises CollectError: it cannot be made; no run is there, or one that still writes, to be replaced.
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


def _lock(path: Path, needed: bool = True) -> int:
    """Lock a run directory until this process ends; returns the descriptor of the lock.

    Raises BlockingIOError if another process holds the lock; OSError if it is `needed` and the file system has none.
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
    """The reason of an OSError of writing, in words."""
    known = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "no permission to write there",
        errno.EFBIG: "the file would exceed the size limit",
    }
    return known.get(err.errno or 0, err.strerror or str(err))


def _take(path: Path) -> int:
    """Lock a run directory that is to be replaced. Raises CollectError: it is none, or a run still writes to it."""
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

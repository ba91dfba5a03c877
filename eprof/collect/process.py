"""One process, started without a shell and waited for: its end, its signals, its time limit."""

import contextlib
import errno
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError
from eprof.collect.signals import Signals

_IDLE_S = 0.5
_TICK_S = 0.02
_GRACE_S = 5.0
_SPARED = 2
_PROFILERS = ("ncu", "nsys", "nvprof")
_PROFILER_FOLDERS = ("nsight-compute", "nsight_compute", "nsight-systems", "nsight_systems")
# Python ignores these in itself; a program must not inherit that.
_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


class Ended(NamedTuple):
    """How a process ended: its exit code, or the signal that killed it; `seconds` of wall-clock time."""

    code: int | None
    signal: int | None
    seconds: float
    timed_out: bool = False

    @property
    def status(self) -> int:
        """The exit code as a shell tells it: 128+n for signal n."""
        return self.code if self.code is not None else 128 + (self.signal or 0)


class Streams(NamedTuple):
    """The file descriptors that a process gets as standard input, output and error."""

    stdin: int = 0
    stdout: int = 1
    stderr: int = 2


def resolve(program: str) -> str:
    """The path behind a command's name, as a shell finds it. Raises CollectError: 127 not found, 126 not executable."""
    if not program:
        raise CollectError("The program's name is empty.", 127)
    found = program if "/" in program else shutil.which(program)
    if found is None:
        here = f" There is one in this directory: use ./{program}." if Path(program).is_file() else ""
        raise CollectError(f"{program}: program not found in PATH.{here}", 127)
    path = Path(found)
    if not path.exists():
        raise CollectError(f"{program}: there is no such program.", 127)
    if path.is_dir():
        raise CollectError(f"{program}: is a directory, not a program.", 126)
    if not os.access(path, os.X_OK):
        raise CollectError(f"{program}: is not executable; `chmod +x {program}`, or name its interpreter first.", 126)
    return found


def run(
    command: Sequence[str],
    signals: Signals,
    *,
    environment: Mapping[str, str] | None = None,
    streams: Streams | None = None,
    timeout_s: float | None = None,
    tick: Callable[[], None] | None = None,
    wrapped: bool = False,
) -> Ended:
    """Run `command` to its end and send signals on to it. `tick` is called some 50 times a second meanwhile.

    A process that outlives `timeout_s` gets SIGTERM, 5 s later SIGKILL, with all that it started. wrapped: it is a
    profiler around the program, which is spared both so that it can still write its log, for 5 s more: nsys, killed,
    would leave its agent behind.
    Raises CollectError if it cannot be started (126, 127).
    """
    began = time.monotonic()
    pid = _start(command, signals, dict(os.environ if environment is None else environment), streams or Streams())
    deadline = None if timeout_s is None else began + timeout_s
    stops = 0
    while (status := _reaped(pid)) is None:
        if tick is not None:
            tick()
        if deadline is not None and time.monotonic() >= deadline:
            _stop(pid, signal.SIGKILL if stops else signal.SIGTERM, spared=wrapped and stops < _SPARED)
            deadline, stops = time.monotonic() + _GRACE_S, stops + 1
        got = signals.wait(_pause(tick is not None, deadline))
        if got is not None and got[1]:
            _send(pid, got[0], group=signals.own_group)
    seconds = time.monotonic() - began
    if tick is not None:
        tick()
    code = os.waitstatus_to_exitcode(status)
    return Ended(code if code >= 0 else None, -code if code < 0 else None, seconds, stops > 0)


def _pause(ticking: bool, deadline: float | None) -> float:
    pause = _TICK_S if ticking else _IDLE_S
    return pause if deadline is None else min(pause, max(deadline - time.monotonic(), 0.0))


def _start(command: Sequence[str], signals: Signals, environment: dict[str, str], streams: Streams) -> int:
    moves = [
        (os.POSIX_SPAWN_DUP2, source, target)
        for target, source in enumerate((streams.stdin, streams.stdout, streams.stderr))
    ]
    group: dict[str, Any] = {"setpgroup": 0} if signals.own_group else {}
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=moves,
            setsigmask=signals.old_mask,
            setsigdef=_PYTHON_IGNORES,
            **group,
        )
    except ValueError as err:
        raise CollectError(
            f"{command[0]!r}: an argument holds a NUL character, which no program can be given.", 126
        ) from err
    except OSError as err:
        raise _start_error(command[0], err) from err


def _start_error(program: str, err: OSError) -> CollectError:
    if err.errno == errno.ENOENT and Path(program).exists():
        return CollectError(f"{program}: the interpreter named in its first line does not exist.", 126)
    if err.errno == errno.ENOENT:
        return CollectError(f"{program}: there is no such program.", 127)
    if err.errno == errno.ENOEXEC:
        return CollectError(
            f"{program}: is no program for this machine, nor a script whose first line names one (#!/bin/sh).", 126
        )
    if err.errno == errno.E2BIG:
        return CollectError(f"{program}: the arguments and the environment are too long for this system.", 126)
    return CollectError(f"{program}: cannot be run ({err.strerror or err}).", 126)


def _reaped(pid: int) -> int | None:
    done, status = os.waitpid(pid, os.WNOHANG)
    return status if done == pid else None


def _send(pid: int, number: int, group: bool) -> None:
    """Signal a process, or its whole group where a terminal would have done so."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number) if group else os.kill(pid, number)


def _stop(pid: int, number: int, spared: bool) -> None:
    """Signal all below a process, and itself; if it is `spared`, the profiler's other processes below it are too."""
    below = [one for one in reversed(descendants(pid)) if not (spared and _of_a_profiler(one))]
    for one in [*below, *([] if spared else [pid])]:
        _send(one, number, group=False)


def _of_a_profiler(pid: int) -> bool:
    """Whether a process is a part of NVIDIA's profilers: `ncu` is a shell script around three programs in a row."""
    try:
        path = (Path("/proc") / str(pid) / "exe").readlink()
    except OSError:
        return False
    return path.name in _PROFILERS or any(part.lower().startswith(_PROFILER_FOLDERS) for part in path.parts)


def descendants(pid: int) -> list[int]:
    """The processes below `pid`, parents first, as /proc tells; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found

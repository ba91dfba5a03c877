"""One process, started without a shell and waited for: its end, its signals, its time limit."""

import contextlib
import errno
import os
import re
import resource
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from eprof.base.errors import CollectError
from eprof.collect import keeper
from eprof.collect.keeper import Kept, descendants
from eprof.collect.signals import Signals, held

_IDLE_S = 0.5
_TICK_S = 0.02
_GRACE_S = 5.0
_SPARED = 2
# Python ignores these in itself; a program must not inherit that.
_PYTHON_IGNORES = (signal.SIGPIPE, signal.SIGXFSZ)


class Ended(NamedTuple):
    """How a process ended: its exit code, or the signal that killed it; `seconds` of wall-clock time.

    cpu_s: the processor time of the process and all that it waited for.
    """

    code: int | None
    signal: int | None
    seconds: float
    timed_out: bool = False
    cpu_s: float = 0.0

    @property
    def status(self) -> int:
        """The exit code of a process as a shell reports it: 128+n for signal n."""
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
    path = program if "/" in program else shutil.which(program)
    if path is None:
        hint = f" There is one in this directory: use ./{program}." if Path(program).is_file() else ""
        raise CollectError(f"{program}: program not found in PATH.{hint}", 127)
    if not Path(path).exists():
        raise CollectError(f"{program}: there is no such program.", 127)
    if Path(path).is_dir():
        raise CollectError(f"{program}: is a directory, not a program.", 126)
    if not os.access(path, os.X_OK):
        raise CollectError(f"{program}: is not executable; `chmod +x {program}`, or name its interpreter first.", 126)
    return path


def run(
    command: Sequence[str],
    signals: Signals,
    *,
    environment: Mapping[str, str] | None = None,
    streams: Streams | None = None,
    timeout_s: float | None = None,
    tick: Callable[[], None] | None = None,
    profiler: str | None = None,
) -> Ended:
    """Run a process to its end and send signals on to it. `tick` is called some 50 times a second meanwhile.

    A process that outlives `timeout_s` gets SIGTERM, 5 s later SIGKILL, with all that it started. profiler: a pattern
    for the paths of a profiler around the program, which is spared both so that it can still write its log, for 5 s
    more.
    Raises CollectError if it cannot be started (126, 127).
    """
    began, used_s = time.monotonic(), _children_s()
    kept = _start(command, signals, dict(os.environ if environment is None else environment), streams or Streams())
    deadline = None if timeout_s is None else began + timeout_s
    stops = 0
    while (status := kept.ended()) is None:
        if tick is not None:
            tick()
        if deadline is not None and time.monotonic() >= deadline:
            number = signal.SIGKILL if stops else signal.SIGTERM
            _stop(kept, number, profiler if stops < _SPARED else None)
            deadline = time.monotonic() + _GRACE_S
            stops += 1
        got = signals.wait(_pause(tick is not None, deadline))
        if got is not None and got[1]:
            _send(kept.pid, got[0], group=signals.own_group)
    seconds = time.monotonic() - began
    if tick is not None:
        tick()
    code = os.waitstatus_to_exitcode(status)
    cpu_s = _children_s() - used_s
    if code < 0:
        return Ended(None, -code, seconds, stops > 0, cpu_s)
    return Ended(code, None, seconds, stops > 0, cpu_s)


def _children_s() -> float:
    """The processor time of all ended children of eprof, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_alone(command: Sequence[str], output: int, errors: int, **options: Any) -> Ended:
    """As `run`, with nothing to read and signals held. Raises KeyboardInterrupt if a signal stopped it."""
    with Path(os.devnull).open("rb") as nothing, held() as signals:
        ended = run(command, signals, streams=Streams(nothing.fileno(), output, errors), **options)
        signals.drain()
        if signals.stopped_by is not None:
            raise KeyboardInterrupt(signals.stopped_by)
        return ended


def _pause(ticking: bool, deadline: float | None) -> float:
    pause = _TICK_S if ticking else _IDLE_S
    if deadline is None:
        return pause
    return min(pause, max(deadline - time.monotonic(), 0.0))


def _start(command: Sequence[str], signals: Signals, environment: dict[str, str], streams: Streams) -> Kept:
    """Start a process under a keeper, in a group of its own where no terminal signals it."""
    if any("\0" in word for word in command):
        raise CollectError(f"{command[0]!r}: an argument holds a NUL character, which no program can be given.", 126)
    moves = [
        (os.POSIX_SPAWN_DUP2, source, target)
        for target, source in enumerate((streams.stdin, streams.stdout, streams.stderr))
    ]
    group = 0 if signals.own_group else os.getpgrp()

    def spawn() -> int:
        return os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=moves,
            setsigmask=signals.old_mask,
            setsigdef=_PYTHON_IGNORES,
            setpgroup=group,
        )

    try:
        return keeper.start(spawn)
    except OSError as err:
        raise _start_error(command[0], err) from err


def _start_error(program: str, err: OSError) -> CollectError:
    if err.errno == errno.ENOENT and not Path(program).exists():
        return CollectError(f"{program}: there is no such program.", 127)
    reasons = {
        errno.ENOENT: "the interpreter named in its first line does not exist",
        errno.ENOEXEC: "is no program for this machine, nor a script whose first line names one (#!/bin/sh)",
        errno.E2BIG: "the arguments and the environment are too long for this system",
    }
    reason = reasons.get(err.errno or 0, f"cannot be run ({err.strerror or err})")
    return CollectError(f"{program}: {reason}.", 126)


def _send(pid: int, number: int, group: bool) -> None:
    """Signal a process, or its whole group where a terminal would have done so."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number) if group else os.kill(pid, number)


def _stop(kept: Kept, number: int, profiler: str | None) -> None:
    """Signal a process and all that it started; where it is a profiler's, only those that are not."""
    for process in reversed(descendants(kept.keeper)):
        if profiler is None or not (process == kept.pid or re.search(profiler, _executable(process))):
            _send(process, number, group=False)


def _executable(pid: int) -> str:
    """The path of a process's program, in lower case; "" if it is not known."""
    try:
        return str((Path("/proc") / str(pid) / "exe").readlink()).lower()
    except OSError:
        return ""

"""Who keeps a program: a process between eprof and it, which ends it and all that it started if eprof is killed.

Only a parent is told how a process ended, and Linux gives the children of the dead to the nearest `subreaper` above
them. So the keeper starts the program, tells eprof how it ended, and finds also what the program left behind.
"""

import contextlib
import ctypes
import errno
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, NoReturn

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of <linux/prctl.h>
_PAUSE_S = 0.02
_LOOK_S = 0.5  # how often the keeper looks whether eprof lives
_GRACE_S = 1.0  # for a profiler to give clocks back and close its files
_NEWS = struct.Struct("<q")


class Kept(NamedTuple):
    """A program that runs, and its keeper. `life` falls shut when eprof ends, in whatever way."""

    pid: int
    keeper: int
    life: int
    news: int

    def ended(self) -> int | None:
        """The status of the kept program as `waitpid` gives it, once it has ended; SIGKILL where nobody knows."""
        if os.waitpid(self.keeper, os.WNOHANG)[0] != self.keeper:
            return None
        status = os.read(self.news, _NEWS.size)
        os.close(self.life)
        os.close(self.news)
        if not status:  # somebody killed the keeper
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            return int(signal.SIGKILL)
        return int(_NEWS.unpack(status)[0])


def start(spawn: Callable[[], int]) -> Kept:
    """Start a program under a keeper. Raises OSError, as `spawn` does."""
    looked, life = os.pipe()
    news, told = os.pipe()
    keeper = os.fork()
    if not keeper:
        os.close(life)
        _keep(spawn, looked, told)
    os.close(looked)
    os.close(told)
    pid = _NEWS.unpack(os.read(news, _NEWS.size) or _NEWS.pack(-errno.EIO))[0]
    if pid > 0:
        return Kept(pid, keeper, life, news)
    os.waitpid(keeper, 0)
    os.close(life)
    os.close(news)
    raise OSError(-pid, os.strerror(-pid))


def _keep(spawn: Callable[[], int], life: int, news: int) -> NoReturn:
    """The whole life of a keeper, after the fork: it holds nothing of eprof, and no terminal signals it."""
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        os.setpgid(0, 0)
        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
        pid = spawn()
        os.write(news, _NEWS.pack(pid))
        let_go({life, news})
        status = _waited_for(pid, life)
        if status is None:
            _end_all(pid)
        else:
            os.write(news, _NEWS.pack(status))
    except OSError as err:
        with contextlib.suppress(OSError):
            os.write(news, _NEWS.pack(-(err.errno or errno.EIO)))
    finally:
        os._exit(0)


def let_go(needed: set[int], folder: Path | None = None) -> None:
    """Close what a process of ours inherited, or pipes of others would stay open; but keep the lock of a folder."""
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    for link in list(Path("/proc/self/fd").glob("*")):
        if int(link.name) > 2 and int(link.name) not in needed:
            with contextlib.suppress(OSError):
                if link.readlink() != folder:
                    os.close(int(link.name))


def _waited_for(pid: int, life: int) -> int | None:
    """The status of the kept program, once it has ended; None if eprof ended before."""
    poll = select.poll()
    poll.register(life, select.POLLHUP)
    while not poll.poll(0):
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == pid:
            return status
        if not ended:
            signal.sigtimedwait({signal.SIGCHLD}, _LOOK_S)
    return None


def _end_all(pid: int) -> None:
    """End the kept program and all below, until nothing is left."""
    until = time.monotonic() + _GRACE_S
    number: signal.Signals | None = signal.SIGTERM
    while True:
        if number is not None:
            for process in {*descendants(os.getpid()), pid}:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(process, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        number = signal.SIGKILL if time.monotonic() > until else None
        time.sleep(_PAUSE_S)


def descendants(pid: int) -> list[int]:
    """The processes below `pid`, parents first, from /proc; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    below = list(children.get(pid, []))
    for process in below:
        below += children.get(process, [])
    return below

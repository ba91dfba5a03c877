"""Signals of eprof while a program runs: each reaches the program once, and none is lost between two measurements."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

# Sent on to the program. SIGTSTP and SIGCONT act on eprof itself, SIGPIPE and faults are its own.
_FORWARDED = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)
STOPPING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
_LOOK_S = 0.02
_SI_KERNEL = 0x80  # sent by the kernel: a terminal's Ctrl-C, which the whole foreground group gets


class Signals:
    """The signals that eprof holds back and hands on. `old_mask` is what the program starts with."""

    def __init__(self, waited: frozenset[signal.Signals], old_mask: set[signal.Signals], own_group: bool) -> None:
        self.waited = waited
        self.old_mask = old_mask
        self.own_group = own_group
        self.stopped_by: signal.Signals | None = None
        self.between = False  # whether that came while no program was running, so that none could answer it

    def wait(self, seconds: float) -> tuple[signal.Signals, bool] | None:
        """The next signal within `seconds` and whether it must be sent on to the program; None if there is none."""
        info = signal.sigtimedwait(self.waited | {signal.SIGCHLD}, max(seconds, 0.0))
        if info is None:
            return None
        number = signal.Signals(info.si_signo)
        if number in STOPPING and self.stopped_by is None:
            self.stopped_by = number
        shared = info.si_code == _SI_KERNEL and not self.own_group
        return number, number is not signal.SIGCHLD and not shared

    def rest(self, seconds: float) -> None:
        """Let time pass while no program runs, until a signal comes that ends the session; that is left to be taken."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not STOPPING & signal.sigpending():
            time.sleep(_LOOK_S)

    def drain(self) -> None:
        """Take note of the signals that came while no program was running."""
        before = self.stopped_by
        while self.wait(0.0) is not None:
            pass
        self.between = self.between or self.stopped_by is not before


@contextmanager
def held() -> Iterator[Signals]:
    """Hold signals back inside the block; those that eprof ignores from the start (nohup) stay ignored."""
    waited = frozenset(number for number in _FORWARDED if signal.getsignal(number) is not signal.SIG_IGN)
    old = {signal.Signals(number) for number in signal.pthread_sigmask(signal.SIG_BLOCK, waited | {signal.SIGCHLD})}
    signals = Signals(waited, old, own_group=not _in_foreground())
    try:
        yield signals
    finally:
        signals.drain()
        signal.pthread_sigmask(signal.SIG_SETMASK, old)


def _in_foreground() -> bool:
    """Whether a terminal sends its Ctrl-C to our process group; then the program must stay in it."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)

"""Signals that end a command, the end of its process, and its standard streams: closed ones, and narrow encodings."""

import atexit
import codecs
import io
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NoReturn

closed_streams: set[int] = set()  # standard streams that our caller had closed
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TIDYING_S = 5.0
_ended_at_s = float("-inf")
# What a terminal without Unicode shows in the place of signs that tables and sentences have; as wide, but for a few.
_ALIKE = dict(zip("·µμ…→–×−█▓░│└─━╍┅┈▁▂▃▄▅▆▇★«»λ²\u202f\u2009\xa0", "|uu*>-x-#+.|`-=---_.,-=+**<>l2   ", strict=True))
_ALIKE |= {"≥": ">=", "≤": "<=", "∞": "inf", "±": "+-"}


def _alike(err: UnicodeError) -> tuple[str, int]:
    """The error handler "alike" of encodings: signs that look like those lost, else escapes, and where to go on."""
    if not isinstance(err, UnicodeEncodeError):
        raise err
    lost = err.object[err.start : err.end]
    return "".join(_ALIKE.get(sign) or ascii(sign)[1:-1] for sign in lost), err.end


def open_closed_streams() -> None:
    """Open /dev/null for standard streams that our caller closed, as files opened later would take their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            closed_streams.add(number)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - lives as long as we do
    codecs.register_error("alike", _alike)  # for a Latin-1 or ASCII locale; "?" would read as a mark
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        sys.stdout.reconfigure(errors="alike")
    if sys.stderr is sys.__stderr__:
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_Messages(2, "w", closefd=False)),
            getattr(sys.stderr, "encoding", "utf-8"),
            "alike",
            line_buffering=True,
        )


class _Messages(io.FileIO):
    """Standard error, which drops what cannot be written (a full disk, a reader that went away): it is no result."""

    def write(self, data: Any) -> int:
        """Write all of a message to standard error, or nothing."""
        try:
            return super().write(data) or 0
        except OSError:
            return memoryview(data).nbytes


def end_by_signals() -> None:
    """Let SIGTERM and SIGHUP end a command as Ctrl-C does, so that no temporary file or process is left behind."""
    for number in _ENDING:
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(number, _end)


def _end(number: int, _: object) -> None:
    """Raise KeyboardInterrupt with the signal's number; further signals within 5 s do nothing.

    They would cut short what the first one still tidies up or says. After that they count again, as Python drops an
    exception that is raised in a finalizer.
    """
    global _ended_at_s
    now_s = time.monotonic()
    if now_s - _ended_at_s < _TIDYING_S:
        return
    _ended_at_s = now_s
    raise KeyboardInterrupt(number)


def ended_by(err: KeyboardInterrupt) -> signal.Signals:
    """The signal that raised this KeyboardInterrupt: the one that `_end` put into `err`, or else SIGINT."""
    return signal.Signals((*err.args, signal.SIGINT)[0])


def end_now() -> None:
    """Ignore further SIGINT, SIGTERM and SIGHUP, so that none disturbs the last words of a command that ends anyway."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


def give_up_output() -> None:
    """Send what is still to be printed nowhere: standard output cannot take it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end_at_once(code: int) -> NoReturn:
    """End the process as it is: to take apart what is left, as Python does, takes a sixth of a small report's time."""
    atexit._run_exitfuncs()
    with suppress(OSError):  # Python's own end says what cannot be written
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)

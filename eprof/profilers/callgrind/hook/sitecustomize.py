"""Python runs this at its start, under callgrind or alone to be timed: `PYTHONPATH` leads here (`collector.py`).

Counting begins when the program's own code does, ends with it, stops while modules are imported. Now and then a timer
has callgrind write a part of its profile, and faulthandler the line of Python that ran then. It runs in the Python that
is profiled, so it imports nothing of eprof, and little else.
"""

from __future__ import annotations

import _thread
import atexit
import builtins
import itertools
import os
import signal
import sys
import time

TYPE_CHECKING = False  # as in `typing`, which takes long to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

_DUMP_AT, _START, _STOP = 0x43540003, 0x43540004, 0x43540005  # callgrind.h: its client requests, from 'CT' << 16 on
# valgrind.h, amd64: what valgrind takes for a request with the address of its words in rdi, and a return.
_REQUEST = bytes.fromhex("4889f831d248c1c70348c1c70d48c1c73d48c1c7334887db4889d0c3")
# A handler of signals, which runs at once: Python's own waits for the next call, and an operator (a @ b) is none. It
# has callgrind write a part, writes a form feed into a file, sets the timer to 1/16 more, and goes on to two others.
_HANDLER = (
    "575652 48b8{args} 31d248c1c70348c1c70d48c1c73d48c1c7334887db"  # push rdi, rsi, rdx; the request, as above
    "b801000000 bf{file} 48be{feed} ba01000000 0f05"  # write(file, feed, 1)
    "48be{timer} 488b4620 4889c1 48c1e904 4801c8 48894620"  # add a sixteenth to the microseconds behind the timer
    "31d2 b940420f00 48f7f1 48894610 48895618"  # seconds and microseconds
    "b826000000 bf01000000 31d2 0f05"  # setitimer(ITIMER_VIRTUAL, timer, NULL)
    "5a5e5f 575652 48b8{first} ffd0 5a5e5f 48b8{second} ffe0"  # call the one, jump to the other
)
_AT, _FEED_AT, _TIMER_AT = 64, 512, 576  # where in the page they stand
_ACTION_BYTES = 152  # struct sigaction of the C library, which begins with the handler
_FIRST_S = 0.005  # from one line that is told to the next
_SAMPLE, _RESUMED = b"sample", b"resumed"
_MOST_MARKS = 2000  # beginnings and ends that callgrind is told; it takes 7 ms and 80 kB for each
_TIMES, _LINES = "EPROF_PYTHON_TIMES", "EPROF_PYTHON_LINES"
_OWN = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = os.path.dirname(os.__file__)


def _hand_on() -> None:
    """Run the program's own sitecustomize, which this one hides, if there is one."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _OWN]
    own = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = own


class _Valgrind:
    """Requests to valgrind, and a signal handler that makes one, as machine code in a page of memory."""

    def __init__(self) -> None:
        import ctypes
        import mmap

        self._c = ctypes
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._page.write(_REQUEST)
        self._start = ctypes.c_char.from_buffer(self._page)
        self._at = ctypes.addressof(self._start)
        self._code = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(self._at)
        self._kept: list[object] = []

    def request(self, number: int, text: bytes = b"") -> None:
        """Make a client request of valgrind, such as _DUMP_AT, with a text."""
        buffer = self._c.create_string_buffer(text)
        words = self._words(number, buffer)
        self._code(self._c.addressof(words))

    def _words(self, number: int, buffer: Any) -> Any:
        return (self._c.c_ulong * 6)(number, self._c.addressof(buffer))

    def sample(self, signum: int, file: Any) -> None:
        """Have a signal write a part of the profile, and the line of Python into `file`, before Python handles it."""
        import faulthandler

        libc = self._c.CDLL(None)
        actions = [self._c.create_string_buffer(_ACTION_BYTES) for _ in range(2)]
        libc.sigaction(signum, None, actions[0])
        faulthandler.register(signum, file, all_threads=False)
        libc.sigaction(signum, None, actions[1])
        text = self._c.create_string_buffer(_SAMPLE)
        words = self._words(_DUMP_AT, text)
        self._kept += [text, words, file]
        places = {"args": self._c.addressof(words), "feed": self._at + _FEED_AT, "timer": self._at + _TIMER_AT}
        handlers = {"second": actions[0].raw[:8].hex(), "first": actions[1].raw[:8].hex()}
        code = _HANDLER.format(
            file=file.fileno().to_bytes(4, "little").hex(),
            **{name: place.to_bytes(8, "little").hex() for name, place in places.items()},
            **handlers,
        )
        self._put(_AT, bytes.fromhex(code))
        self._put(_FEED_AT, b"\f")
        self._put(_TIMER_AT + 32, round(1e6 * _FIRST_S).to_bytes(8, "little"))
        self._c.memmove(actions[1], (self._at + _AT).to_bytes(8, "little"), 8)
        libc.sigaction(signum, actions[1], None)

    @property
    def wait_s(self) -> float:
        """The time from one sample to the next, s, which grows."""
        return int.from_bytes(self._page[_TIMER_AT + 32 : _TIMER_AT + 40], "little") / 1e6

    def _put(self, place: int, data: bytes) -> None:
        self._page[place : place + len(data)] = data


def _around_imports(before: Callable[[], None], after: Callable[[], None]) -> None:
    """Call `before` and `after` around each import of a module that is not there yet."""
    plain = builtins.__import__
    is_importing = False

    def imported(name: str, *rest: Any, **more: Any) -> Any:
        nonlocal is_importing
        if is_importing or name in sys.modules:
            return plain(name, *rest, **more)
        is_importing = True
        before()
        try:
            return plain(name, *rest, **more)
        finally:
            is_importing = False
            after()

    builtins.__import__ = imported


def _where(frame: FrameType, is_call: bool = True) -> bytes:
    """The innermost line of the user's own code as FILE:LINE:COLUMN:END FUNCTION; columns only if `is_call`."""
    user: FrameType | None = frame
    while user is not None and _is_of_library(user.f_code.co_filename):
        user = user.f_back
    frame = user or frame
    code, columns = frame.f_code, ":"
    if is_call and hasattr(code, "co_positions"):
        position = next(itertools.islice(code.co_positions(), frame.f_lasti // 2, None), None)
        if position is not None and position[2] is not None:
            columns = f"{position[2]}:{position[3]}"
    return f"{os.path.abspath(code.co_filename)}:{frame.f_lineno or 0}:{columns} {code.co_name}".encode()


def _is_of_library(path: str) -> bool:
    return (
        path.startswith((_LIBRARY, _OWN, "<")) or "-packages" in path or path.endswith("eprof/collect/program_marks.py")
    )


def _count() -> None:
    """Have callgrind count from here on, without imports, and write parts of the profile for samples and marks."""
    valgrind = _Valgrind()
    request = valgrind.request
    told, main_thread, left_s = 0, _thread.get_ident(), _FIRST_S
    path = os.environ.get(_LINES, os.devnull)
    lines = open(path if path == os.devnull else f"{path}{os.getpid()}.txt", "wb", buffering=0)  # noqa: SIM115
    lines.write(f"{os.getcwd()}\n{_LIBRARY}\n{_OWN}\n".encode())

    def stop() -> None:
        nonlocal left_s
        left_s = signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0] or left_s
        request(_STOP)

    def start() -> None:
        request(_START)
        signal.setitimer(signal.ITIMER_VIRTUAL, left_s)

    def tell(_: int, frame: FrameType | None) -> None:
        # Python is behind the call that the timer met, which has what ran since then, or somewhere behind an operator.
        if frame is not None:
            request(_DUMP_AT, _RESUMED)
            lines.write(b"@" + _where(frame) + b"\n")
            signal.setitimer(signal.ITIMER_VIRTUAL, valgrind.wait_s)

    def mark(sign: str, name: str) -> None:
        nonlocal told
        told += 1
        if told <= _MOST_MARKS:
            sign = "!" if told == _MOST_MARKS else sign
            where = _where(sys._getframe(1), is_call=False)
            request(_DUMP_AT, f"eprof {_thread.get_native_id()} {sign} {name}\t".encode() + where)

    def end() -> None:
        # Valgrind may deliver a signal late: a Python that ends, or the program in its place, would die of it.
        if _thread.get_ident() == main_thread:
            signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
        stop()

    sys._eprof_mark = mark  # type: ignore[attr-defined]  # `eprof.mark` calls it
    signal.signal(signal.SIGVTALRM, tell)
    valgrind.sample(signal.SIGVTALRM, lines)
    _around_imports(stop, start)
    atexit.register(end)
    # A timer outlives the program that set it, where that becomes another one; and that is not to be counted.
    for name in ("execv", "execve"):
        setattr(os, name, _behind(end, getattr(os, name)))
    start()


def _behind(first: Callable[[], None], second: Callable[..., Any]) -> Callable[..., Any]:
    def both(*words: Any) -> Any:
        first()
        return second(*words)

    return both


def _clocks() -> list[float]:
    """[wall time, processor time, time that the first thread waited for a processor], s."""
    queued_ns = 0
    try:
        with open("/proc/self/schedstat") as file:
            queued_ns = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return [time.perf_counter(), time.process_time(), queued_ns / 1e9]


def _measure(path: str) -> None:
    """At the end append to a file how long the program's own code ran, by each clock, and imports beside it, s."""
    # Clocks while no import goes on; and their differences so far.
    began, counted, import_began_s, imports_s = _clocks(), [0.0] * 3, 0.0, 0.0

    def before() -> None:
        nonlocal import_began_s
        now = _clocks()
        for place, (ended, start) in enumerate(zip(now, began)):  # noqa: B905  # pythons before 3.10 have no `strict`
            counted[place] += ended - start
        import_began_s = now[0]

    def after() -> None:
        nonlocal imports_s
        began[:] = _clocks()
        imports_s += began[0] - import_began_s

    def end() -> None:
        before()
        with open(path, "a") as file:
            file.write(" ".join(f"{seconds:.6f}" for seconds in [*counted, imports_s]) + "\n")

    _around_imports(before, after)
    atexit.register(end)


if __name__ == "sitecustomize":
    _hand_on()
    if os.environ.get(_TIMES):
        _measure(os.environ.pop(_TIMES))
    else:
        _count()

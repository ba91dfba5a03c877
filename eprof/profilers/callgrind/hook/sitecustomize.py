"""What Python runs at its start, under callgrind or alone to be timed: `PYTHONPATH` leads here (`collector.py`).

Counting begins when the program's own code does, ends with it, stops while modules are imported, and every now and then
callgrind is told which line of Python ran. It runs in the Python that is profiled, so it imports nothing of eprof, and
little else.
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
_FIRST_S, _GROWTH = 0.1, 1.05  # between two lines that are told, and how the time between them grows
_MOST_MARKS = 2000  # beginnings and ends that callgrind is told; it takes 7 ms and 80 kB for each
_TIMES = "EPROF_PYTHON_TIMES"
_OWN = os.path.dirname(os.path.abspath(__file__))
_LIBRARY = os.path.dirname(os.__file__)


def _hand_on() -> None:
    """Run the sitecustomize that this one stands before, if there is one."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _OWN]
    own = sys.modules.pop("sitecustomize")
    try:
        __import__("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = own


def _requester() -> Callable[..., None]:
    """A function that makes a client request of valgrind: its number, and a text."""
    import ctypes
    import mmap

    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(_REQUEST)
    start = ctypes.c_char.from_buffer(page)
    code = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(ctypes.addressof(start))

    def request(number: int, text: bytes = b"", _kept: object = (page, start)) -> None:
        buffer = ctypes.create_string_buffer(text)
        words = (ctypes.c_ulong * 6)(number, ctypes.addressof(buffer))
        code(ctypes.addressof(words))

    return request


def _around_imports(before: Callable[[], None], after: Callable[[], None]) -> Callable[[], bool]:
    """Call `before` and `after` around each import of a module that is not there yet; whether one is going on."""
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
    return lambda: is_importing


def _where(frame: FrameType, is_call: bool = True) -> bytes:
    """The innermost line of the user's own code: FILE:LINE:COLUMN:END FUNCTION; without columns where it calls none."""
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
    return path.startswith((_LIBRARY, "<")) or "-packages" in path or path.endswith("eprof/base/mark.py")


def _count() -> None:
    """Have callgrind count from here on, but for imports, and tell it where Python is."""
    request = _requester()
    is_importing = _around_imports(lambda: request(_STOP), lambda: request(_START))
    wait_s, told, main_thread = _FIRST_S, 0, _thread.get_ident()

    def tell(_: int, frame: FrameType | None) -> None:
        nonlocal wait_s
        if frame is not None and not is_importing():
            request(_DUMP_AT, _where(frame))
            wait_s *= _GROWTH
        signal.setitimer(signal.ITIMER_VIRTUAL, wait_s)

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
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        request(_STOP)

    sys._eprof_mark = mark  # type: ignore[attr-defined]  # `eprof.mark` calls it
    signal.signal(signal.SIGVTALRM, tell)
    signal.setitimer(signal.ITIMER_VIRTUAL, wait_s)
    atexit.register(end)
    # A timer outlives the program that set it, where that becomes another one; and that is not to be counted.
    for name in ("execv", "execve"):
        setattr(os, name, _behind(end, getattr(os, name)))
    request(_START)


def _behind(first: Callable[[], None], second: Callable[..., Any]) -> Callable[..., Any]:
    def both(*words: Any) -> Any:
        first()
        return second(*words)

    return both


def _clocks() -> list[float]:
    """The time, that of the processors, and for how long others kept the first thread from one; in s."""
    queued_ns = 0
    try:
        with open("/proc/self/schedstat") as file:
            queued_ns = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return [time.perf_counter(), time.process_time(), queued_ns / 1e9]


def _measure(path: str) -> None:
    """Write down for how long the program's own code ran, by all clocks, and imports beside it, in s."""
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

"""A line on the terminal while logs are read: how far, and how long to go."""

import sys
import time
from collections.abc import Callable

_WAIT_S, _EVERY_S = 1.0, 0.1


def reading(quiet: bool) -> Callable[[int, int], None] | None:
    """What to tell how many bytes of how many were read; None where nobody looks (no terminal, --quiet)."""
    return None if quiet or not sys.stderr.isatty() else _Line().tell


class _Line:
    """One line that is written over itself, not before the work has taken a second, and wiped at its end."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._next = self._start + _WAIT_S

    def tell(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done >= total:
            self._write("" if now > self._start + _WAIT_S else None)
        elif now >= self._next:
            self._next = now + _EVERY_S
            self._write(_words(done, total, now - self._start))

    def _write(self, line: str | None) -> None:
        if line is not None:
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)


def _words(done: int, total: int, seconds: float) -> str:
    left = f", {seconds * (total - done) / done:.0f} s left" if done else ""
    return f"reading {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done / max(total, 1):.0f} %){left}"

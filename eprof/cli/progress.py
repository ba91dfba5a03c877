"""A line on the terminal while something runs: how far it is, and how long it still takes."""

import os
import sys
import time
from collections.abc import Callable

from eprof.base.text import printable

_WAIT_S, _EVERY_S = 1.0, 0.1


def wanted(quiet: bool) -> bool:
    """Whether anybody looks."""
    return not quiet and sys.stderr.isatty()


def show(line: str) -> None:
    """Write a line over the one before; an empty one wipes it."""
    # A line that wraps could not be wiped.
    width = os.get_terminal_size(2).columns or 80
    print(f"\r\x1b[K{printable(line)[: width - 1]}", end="", file=sys.stderr, flush=True)


def reading(quiet: bool) -> Callable[[int, int], None] | None:
    """What takes how many bytes of how many were read; None where nobody looks (no terminal, --quiet)."""
    return _Reading().update if wanted(quiet) else None


class _Reading:
    """A line that does not appear before the work has taken a second, and is wiped at its end."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._next = self._start + _WAIT_S

    def update(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done >= total:
            if now > self._start + _WAIT_S:
                show("")
        elif now >= self._next:
            self._next = now + _EVERY_S
            show(_words(done, total, now - self._start))


def _words(done: int, total: int, seconds: float) -> str:
    left = f", {seconds * (total - done) / done:.0f} s left" if done else ""
    return f"reading {done / 1e6:,.0f} of {total / 1e6:,.0f} MB ({100 * done / max(total, 1):.0f} %){left}"

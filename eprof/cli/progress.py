"""One line on standard error while something takes long: how far it is, and how long it may still take."""

import argparse
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from eprof.base.resources import SCARCE_BYTES, is_memory_scarce
from eprof.base.text import printable
from eprof.cli.output import say

if TYPE_CHECKING:
    from eprof.profile.profile import Profile

# On a terminal the line is redrawn. Elsewhere, in a log of CI for example, every line stays.
_TERMINAL_S = (1.0, 0.25)  # before the first line, between two
_ELSEWHERE_S = (10.0, 30.0)
_READING, _LONG_BYTES = "reading logs", 16 << 20
_SHARE = 0.05  # of the time that goes into finding out what the line says


class Progress:
    """Shows how far long work is that tells it, once it has taken a second (10 s in a log); nothing if `quiet`."""

    def __init__(self, quiet: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._quiet = quiet
        self._clock = clock
        self._is_terminal = sys.stderr.isatty()
        first_s, self._pause_s = _TERMINAL_S if self._is_terminal else _ELSEWHERE_S
        self._next_s = clock() + first_s
        self._is_shown = False
        self._work = ""
        self._work_began_s = 0.0
        self._first = 0.0  # done when the work was first heard of

    def update(self, line: Callable[[], str]) -> None:
        """Show a line of progress if it is time for one. Call it often: `line` is called only when it is shown."""
        now_s = self._clock()
        if self._quiet or now_s < self._next_s:
            return
        words = line()
        self._show(words)
        self._next_s = now_s + max(self._pause_s, (self._clock() - now_s) / _SHARE)

    def begin(self, work: str) -> Self:
        """Show on a terminal which work begins, until `with` ends, as seconds may pass before anything counts."""
        if self._is_terminal and not self._quiet:
            self._show(f"{work} ...")
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.wipe()

    def count(self, work: str, done: float, total: float, unit: str = "") -> None:
        """Show "fitting: 3 of 40, 12 s left"; the end of the work wipes it."""
        if work != self._work:
            self._work = work
            self._work_began_s = self._clock()
            self._first = done
        if done >= total:
            self._work = ""
            self.wipe()
            return

        def line() -> str:
            counted = f"{work}: {done:,} of {total:,}{unit}"
            if done <= self._first:
                return counted
            left_s = (self._clock() - self._work_began_s) * (total - done) / (done - self._first)
            return f"{counted}, {left_s:.0f} s left"

        self.update(line)

    def reading(self, done: int, total: int) -> None:
        """Show progress in reading logs: `done` of `total` bytes."""
        if self._work != _READING and total > _LONG_BYTES and is_memory_scarce():
            least = SCARCE_BYTES >> 10
            self.say(f"little memory is allowed, so long logs are read slowly; `ulimit -v {least}` or more is quicker.")
        self.count(_READING, round(done / 1e6, 1), round(total / 1e6, 1), " MB")

    def say(self, sentence: str) -> None:
        """Print a sentence that stays above the line of progress."""
        self.wipe()
        if not self._quiet:
            say(sentence)

    def wipe(self) -> None:
        """Take the line of progress off the terminal."""
        if self._is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._is_shown = False

    def _show(self, line: str) -> None:
        if not self._is_terminal:
            say(line)
            return
        # A line that wraps could not be wiped.
        width = os.get_terminal_size(2).columns or 80
        print(f"\r\x1b[K{printable(line)[: width - 1]}", end="", file=sys.stderr, flush=True)
        self._is_shown = True


def loaded(options: argparse.Namespace, **more: Any) -> "Profile":
    """The profile of a command's inputs, with the options that commands of logs share; `more`: as `api.load` has it."""
    from eprof.profile import api

    shared = {"capability": options.capability, "kernels": options.kernel_name, "command_line": options.command_line}
    return api.load(*options.inputs, **shared, progress=Progress(options.quiet).reading, **more)

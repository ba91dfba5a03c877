"""What is recorded while a program runs: power by component, and the sections that it or its output marks."""

import os
import re
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from eprof.base.text import visible, when
from eprof.collect import program_marks
from eprof.collect.directory import COMPONENTS, MARKS
from eprof.collect.meters.meter import Component
from eprof.collect.process import Signals
from eprof.commands.run.program_io import write_all

# ----------------------------------------------------------------------------------------------------------------------
# Sections of a program, told by lines of its output as they pass: `eprof run --mark REGEX`.
#
# The output goes on unchanged and at once. A line has the time at which its first byte came.

_END = "end"
_ENDS = re.compile(rb"[\r\n]")
_PIECE = 1 << 16
_LONGEST_LINE = 1 << 12
_PAUSE_MS = 20


class _Section(NamedTuple):
    """A section that has not ended. level: the place of the pattern that began it."""

    level: int
    name: str
    begin_s: float


class Marker:
    """Finds sections of a program by lines of its output, and writes each into a table as it ends; s since the epoch.

    A line that a pattern matches begins a section, named by the first group that matched, else by the whole match. It
    ends the section that the pattern began before it, with all that later patterns began in that. If the pattern has a
    group `end`, sections may hold others: a line in which that group matches ends the last one of its name, and an
    empty `end` the last one.
    """

    def __init__(self, patterns: Sequence[str], path: Path) -> None:
        self._patterns = [re.compile(pattern) for pattern in patterns]
        self.path = path
        self._open: list[_Section] = []
        self.found = self.at_once = 0
        self.failed: OSError | None = None

    def line(self, text: str, time_s: float) -> None:
        """Begin or end sections by a line that came at `time_s`; the first pattern that matches counts."""
        matches = ((level, pattern.search(text)) for level, pattern in enumerate(self._patterns))
        level, match = next(((level, match) for level, match in matches if match), (0, None))
        if match is None:
            return
        nests = _END in match.re.groupindex
        if nests and match[_END] is not None:
            name = _named(match[_END])
            same = [section for section in self._open if section.level == level and name in ("", section.name)]
            if same:
                inner = self._open[self._open.index(same[-1]) :]
                self._close(lambda section: section in inner, time_s)
            return
        self._close(lambda section: section.level > level or (section.level == level and not nests), time_s)
        name = next((group for group in match.groups() if group), match[0])
        self._open.append(_Section(level, _named(name), time_s))
        self.found += 1

    def _close(self, ends: Callable[[_Section], bool], time_s: float) -> None:
        for section in reversed(self._open):
            if ends(section):
                self._write(section.name, section.begin_s, time_s)
        self._open = [section for section in self._open if not ends(section)]

    def program(self, name: str, begin_s: float, end_s: float) -> None:
        """End all open sections with the program, and write down the program itself as the outermost one."""
        self._close(lambda section: True, end_s)
        self._write(name, begin_s, end_s)

    def _write(self, name: str, begin_s: float, end_s: float) -> None:
        """Append a section to the table. One that began and ended at one moment has no time, and is only counted."""
        if f"{begin_s:.6f}" == f"{end_s:.6f}":
            self.at_once += 1
            return
        try:
            program_marks.append(str(self.path), program_marks.row(begin_s, end_s, name, ""))
        except OSError as err:
            self.failed = err


def _named(text: str) -> str:
    return visible(text).strip()[: program_marks.LONGEST_NAME].strip()


@contextmanager
def passing(target: int, line: Callable[[str, float], None]) -> Iterator[int]:
    """Gives a descriptor for a program to write to inside the block; lines are looked at, and all goes on to
    `target`.

    line: called for each line with its text and when it came, by the monotonic clock. At the end of the block all that
    was written has been passed on; what children that go on write later is passed on as long as eprof lives.
    """
    source, own_end = os.pipe()
    ended, passed = threading.Event(), threading.Event()

    def work() -> None:
        lines = _Lines(line)
        waiting = select.poll()
        waiting.register(source, select.POLLIN)
        # If nobody takes the output any more, the pipe is closed, and the program learns it as without us.
        with suppress(OSError):
            while True:
                is_last = ended.is_set()
                if not waiting.poll(_PAUSE_MS):
                    if is_last:
                        lines.close()
                        passed.set()
                    continue
                piece = os.read(source, _PIECE)
                if not piece:
                    break
                now_s = time.monotonic()
                write_all(target, piece)
                lines.take(piece, now_s)
        os.close(source)
        lines.close()
        passed.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        yield own_end
    finally:
        os.close(own_end)
        ended.set()
        passed.wait()


class _Lines:
    """Pieces of output as lines, with the time of their first byte. Of very long lines the beginning."""

    def __init__(self, line: Callable[[str, float], None]) -> None:
        self._line: Callable[[str, float], object] = line
        self._begun = b""
        self._began_s = 0.0

    def take(self, piece: bytes, time_s: float) -> None:
        """Take the next piece of the output, and when it came."""
        *whole, rest = _ENDS.split(piece)
        for text in whole:
            self._add(text, time_s)
            self._finish()
        self._add(rest, time_s)

    def _add(self, text: bytes, time_s: float) -> None:
        if not self._begun:
            self._began_s = time_s
        self._begun += text[: _LONGEST_LINE - len(self._begun)]

    def close(self) -> None:
        """Take the last line, which needs no end; what the program's children write later is none of its lines."""
        self._finish()
        self._line = lambda text, time_s: None

    def _finish(self) -> None:
        if self._begun:
            self._line(self._begun.decode("utf-8", "replace"), self._began_s)
        self._begun = b""


_HELD_BACK = (
    "The program holds its output back where that is no terminal; `stdbuf -oL PROGRAM` (C) or PYTHONUNBUFFERED=1 "
    "(Python) lets each line out."
)
IDLE_S = 1.0  # of power before the program and after it


class Watch:
    """What is recorded in one measurement: power of components, and marks. patterns: of lines of the output (`Marker`).

    listens: whether times of the program mean anything, so that it may set marks itself (`eprof.mark`). Without any of
    them nothing is recorded.
    """

    def __init__(
        self, components: Sequence[Component] = (), patterns: Sequence[str] = (), listens: bool = False
    ) -> None:
        self.components = components
        self.patterns = patterns
        self.listens = listens
        self.environment: dict[str, str] = {}
        self._epoch_s = time.time() - time.monotonic()
        self._marker: Marker | None = None

    @contextmanager
    def recording(self, home: Path, signals: Signals) -> Iterator[None]:
        """Get ready for marks; record power of components into `home`, from 1 s before the block to 1 s after it."""
        if self.components or self.patterns or self.listens:
            self._marker = self._marker or Marker(self.patterns, home / MARKS)
        if self.listens:
            self.environment = {program_marks.VARIABLE: str((home / MARKS).absolute())}
        if not self.components:
            yield
            return
        from eprof.collect.meters.sensors import sampling

        with sampling(self.components, home / COMPONENTS, self._epoch_s):
            signals.rest(IDLE_S)
            yield
            signals.rest(IDLE_S)

    @contextmanager
    def program(self, name: str, target: int) -> Iterator[int]:
        """Watch one run of the program; gives the descriptor for its output, all of which goes on to `target`."""
        begin_s = time.monotonic()
        with passing(target, self._line) if self.patterns else nullcontext(target) as output:
            yield output
        marker = self._marker
        if marker is not None and (self.components or self.patterns or marker.path.exists()):
            marker.program(name, self._epoch_s + begin_s, self._epoch_s + time.monotonic())

    def _line(self, text: str, time_s: float) -> None:
        assert self._marker is not None
        self._marker.line(text, self._epoch_s + time_s)

    def warnings(self) -> Iterator[str]:
        """Sentences on marks that were lost, never matched, or came too late to have a time."""
        marker = self._marker
        if marker is None or not self.patterns:
            return
        if marker.failed is not None:
            yield f"Some marks could not be written and are lost ({marker.failed.strerror})."
        if not marker.found:
            yield f"No line of the output matches --mark {' or '.join(self.patterns)}; stderr is not looked at."
        if marker.at_once:
            some = f"The lines of {marker.at_once} of {marker.found} marked sections"
            mend = when(marker.at_once > marker.found / 2, f" {_HELD_BACK}")
            yield f"{some} came at once: they have no time.{mend}"


NOTHING = Watch()

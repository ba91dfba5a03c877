"""What is recorded while a program runs: power by component, and the sections that it or its output marks."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

from eprof.base import mark
from eprof.collect.directory import COMPONENTS, MARKS
from eprof.collect.marking import Marker, passing
from eprof.collect.meters.source import Component
from eprof.collect.signals import Signals

_HELD_BACK = (
    "The program holds its output back where that is no terminal; `stdbuf -oL PROGRAM` (C) or PYTHONUNBUFFERED=1 "
    "(Python) lets each line out."
)
IDLE_S = 1.0  # of power before the program and after it


class Watch:
    """Of one measurement of a run. patterns: of lines of the output (`Marker`).

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
    def measuring(self, home: Path, signals: Signals) -> Iterator[None]:
        """Watch all runs of the program: power is read, before and after them that of the idle machine."""
        if self.components or self.patterns or self.listens:
            self._marker = self._marker or Marker(self.patterns, home / MARKS)
        if self.listens:
            self.environment = {mark.VARIABLE: str((home / MARKS).absolute())}
        if not self.components:
            yield
            return
        from eprof.collect.meters.components import sampling

        with sampling(self.components, home / COMPONENTS, self._epoch_s):
            signals.rest(IDLE_S)
            yield
            signals.rest(IDLE_S)

    @contextmanager
    def program(self, name: str, target: int) -> Iterator[int]:
        """Watch one run of the program: where its output is to go, so that it comes to `target`."""
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
        """What is wrong with the marks of the watched program, in sentences."""
        marker = self._marker
        if marker is None or not self.patterns:
            return
        if marker.failed is not None:
            yield f"Some marks could not be written and are lost ({marker.failed.strerror})."
        if not marker.found:
            yield f"No line of the output matches --mark {' or '.join(self.patterns)}; stderr is not looked at."
        if marker.at_once:
            sentence = (
                f"The lines of {marker.at_once} of {marker.found} marked sections came at once: they have no time."
            )
            held_back = marker.at_once > marker.found / 2
            yield f"{sentence} {_HELD_BACK}" if held_back else sentence


NOTHING = Watch()

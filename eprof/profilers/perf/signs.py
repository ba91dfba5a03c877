"""How output of `perf stat` is recognised: text, CSV or JSON, also behind a program's output or inside a README."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eprof.base.marks import Mark
from eprof.base.signs import Signs
from eprof.base.text import pattern

if TYPE_CHECKING:
    from eprof.base.arrays import Columns
    from eprof.logs.rows.log import Launches

KIND = "perf-stat"
# Behind the name of an event: the share of the time in which it was counted, in %, where that is not all of it.
RUNNING = " running"
NOT_KNOWN = r"<not counted>|<not supported>"
EVENT = r"(?:[A-Za-z][\w-]*/[^/\n]*/\w*|[A-Za-z][\w.:@-]*)(?: \[\w+\])?"
# Of any other word tables of measured programs would be taken for perf's: 12,sgemm,input0,500,600,8.15.
UNITS = r"msec|nsec|ns|Joules|[KMGT]?i?B(?:ytes)?(?:/s)?|Watts|[KMG]?Hz|cycles|[%CVWJ]"
# A row of `perf stat -x SEP`, from the value on: before it stand a time, a CPU; after it a metric.
ROW = pattern(
    rf"(?<![\w.])(?P<value>[0-9]+(?:[.,][0-9]+)?|{NOT_KNOWN})(?P<sep>[^\w.<>\"'-]{{1,3}}?)(?P<unit>{UNITS}|)(?P=sep)"
    rf"(?P<event>{EVENT})(?P=sep)(?P<more>.*?(?P=sep))??(?P<runtime>[0-9]+)(?P=sep)"
    r"(?P<running>100[.,]00|[0-9]{1,2}[.,][0-9][0-9])(?![0-9])"
)
HEADER = "Performance counter stats for "
STARTED = "# started on "
INTERVALS = " counts unit events"
_MARKS = (HEADER.encode(), INTERVALS.encode(), b'"counter-value"')
# perf writes at the start of a file, or behind all that the program wrote.
_LOOK_BYTES = 1 << 16


def _reader_of(block: bytes) -> str | None:
    if any(mark in block for mark in _MARKS):
        return "reader"
    ends = block[:_LOOK_BYTES] + block[_LOOK_BYTES:][-_LOOK_BYTES:]
    lines = ends.decode("utf-8", "replace").split("\n")
    return "reader" if any(map(ROW.search, lines)) else None


def _marks(launches: Launches) -> Columns:
    """ESTIMATED where perf scaled a value up, because it counted the event only in a part of the time."""
    share = launches.counters.beside(RUNNING)
    return launches.marked(Mark.ESTIMATED, share < 100).marked(Mark.MISSING, share == 0).marks


SIGNS = Signs(reader_of=_reader_of, lower_bounds=_marks, of_programs=True)

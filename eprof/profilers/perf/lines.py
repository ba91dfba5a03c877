"""The lines of perf's output as rows of text, run by run; nothing is computed here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.base.text import pattern
from eprof.logs.rows.cells import LARGEST
from eprof.logs.rows.numbers import ENGLISH, Locale, ungrouped, value
from eprof.profilers.perf.signs import EVENT, HEADER, INTERVALS, NOT_KNOWN, ROW, STARTED, UNITS

_LONGEST_LINE = 4000
_BLANKS = "[,.'\u2019 \u00a0\u202f\ufffd]"
_NUMBER = rf"[0-9]{{1,3}}(?:{_BLANKS}[0-9]{{2,3}})+(?:[.,][0-9]+)?|[0-9]+(?:[.,][0-9]+)?"
_TEXT = pattern(
    rf"[>\s]*+(?:(?P<time>[0-9]+[.,][0-9]{{9}})\s+)?(?:(?P<id>(?:CPU|[SNDC])[0-9][\w-]*|\S+-[0-9]+)\s+(?:[0-9]+\s+)?)?"
    rf"(?P<value>{_NUMBER}|{NOT_KNOWN})\s+(?:(?P<unit>{UNITS})\s+)?(?P<event>{EVENT})(?:[ \t]+(?P<cgroup>[\w/.:-]+))?"
    r"(?P<rest>\s*(?:[#(\[].*)?)"
)
_HEADER = pattern(r"Performance counter stats for (?:'(.*)'|(.*?))(?: \([0-9]+ runs\))?:\s*$")
_ELAPSED = pattern(r"[>\s]*([0-9]+[.,][0-9]+)\s+(?:\+-\s+\S+\s+)?seconds time elapsed\b")
_RUNNING = pattern(r"[(\[] *([0-9]+[.,][0-9]+)%[)\]]\s*$")  # in brackets until Linux 4.0
_UTILIZED = pattern(r"#\s+([0-9.,]+)\s+CPUs utilized")
_JSON = pattern(r'"([\w-]+)"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([0-9.,eE+-]+))')
_CLOCK = pattern(r"\s*[0-9]+[.,][0-9]{6,9}")
_VARIANCE = pattern(r"[0-9.,]+%")
_BEGINNING = pattern(r"[>\s]*(?:[0-9{]|(?:CPU?|[SNDC])(?:[0-9]|$))")  # of a row, as far as it goes
_WHOLE = "100.00"


class Row(NamedTuple):
    """One value, as it is written. time: of an interval; place: the CPU or socket; cpus: how many were in use."""

    time: str
    place: str
    value: str
    unit: str
    event: str
    cgroup: str
    running: str = _WHOLE
    runtime_ns: str = ""
    cpus: str = ""
    is_mean: bool = False


class Run(Struct):
    """One `perf stat`. elapsed: the text of its `seconds time elapsed`."""

    command: str | None = None
    rows: list[Row] = field(default_factory=list)
    elapsed: str = ""
    is_text: bool = False


class Lines:
    """Takes the lines of a file one by one, and tells rows from all else."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.runs: list[Run] = [Run()]
        self.number = 0
        self.others = 0
        self.is_cut = False
        self._locale = Locale()
        self._style = ENGLISH
        self._may_go_on = False

    def feed(self, line: str) -> None:
        """Take one line of perf's output, without its end."""
        self.number += 1
        if len(line) > _LONGEST_LINE or not self._take(line):
            self.others += 1

    def finish(self, rest: str) -> None:
        """Take perf's last line, if it has no end: a row of it may be cut off in the middle of a name or a number."""
        if rest.strip():
            self.number += 1
            is_whole = len(rest) < _LONGEST_LINE and (_ELAPSED.match(rest) or not _TEXT.fullmatch(rest))
            is_taken = is_whole and self._take(rest)
            # Behind a whole row without an end, others may have stood; the last line of text is no row.
            self.is_cut = _BEGINNING.match(rest) is not None and not (is_taken and _ELAPSED.match(rest))
        if len(self._locale.proof) > 1:
            raise LogError(
                f"{self.path}: numbers are written in two ways ({' and '.join(self._locale.proof.values())}), so their "
                "size is not certain; write the log again with LC_ALL=C"
            )
        self._style = next(iter(self._locale.proof), ENGLISH)

    def number_of(self, text: str, run: Run) -> float:
        """The number in a cell of perf's; NaN if it holds none.

        CSV and JSON have no groups of digits, so a comma is a point.
        """
        number = value(ungrouped(text), self._style) if run.is_text else value(text.replace(",", "."), ENGLISH)
        return number if number < LARGEST else math.nan

    def _take(self, line: str) -> bool:
        if HEADER in line and (header := _HEADER.search(line)):
            if self.runs[-1].is_text and self.runs[-1].rows and self.runs[-1].rows[-1].time:
                self.runs[-1].rows.clear()  # --summary: the sums of all intervals follow
            self._begin(Run(header[1] or header[2], is_text=True))
            return True
        if STARTED in line or INTERVALS in line:
            self._begin(Run(is_text=INTERVALS in line))
            return True
        if '"counter-value"' in line:
            return self._take_json(line)
        row = ROW.search(line)
        return self._take_csv(line, row) if row else self._take_text(line)

    def _begin(self, run: Run) -> None:
        """A new run begins in perf's output. A header with the command stands below `# started on`."""
        if not self.runs[-1].rows:
            self.runs.pop()
        self.runs.append(run)

    def _add(self, row: Row) -> bool:
        run = self.runs[-1]
        last = run.rows[-1] if run.rows else row
        if row.time and (not last.time or seconds(row.time) < seconds(last.time)):
            run = Run(run.command, is_text=run.is_text)
            self._begin(run)
        run.rows.append(row)
        return True

    def _take_json(self, line: str) -> bool:
        for text in re.findall(r"\{[^{}]*\}", line):
            cells = {key: (quoted or plain).strip(",") for key, quoted, plain in _JSON.findall(text)}
            if not cells.get("counter-value") or not cells.get("event"):
                continue
            places = [
                f"{kind}{cells[kind]}" for kind in ("cpu", "core", "socket", "die", "node", "thread") if kind in cells
            ]
            utilized = cells.get("metric-unit") == "CPUs utilized"
            time, runtime = cells.get("interval", ""), cells.get("event-runtime", "")
            if not _CLOCK.fullmatch(time):
                time = ""
            if not runtime.isdecimal():
                runtime = ""
            self._add(
                Row(
                    time, " ".join(places), cells["counter-value"],
                    cells.get("unit", ""), cells["event"], cells.get("cgroup", ""), cells.get("pcnt-running", _WHOLE),
                    runtime, cells.get("metric-value", "") if utilized else "",
                    is_mean="variance" in cells,
                )
            )  # fmt: skip
        return True

    def _take_csv(self, line: str, row: re.Match[str]) -> bool:
        sep = row["sep"]
        if sep == "," and "," in row["running"]:
            raise LogError(
                f"{self.path}: line {self.number}: decimals are written with a comma, and so are the cells apart, so "
                "numbers are not certain; write the log again with LC_ALL=C, or with -x ';'"
            )
        before = line[: row.start()].strip("> \t").split(sep)
        text = row["value"]
        if sep == "," and "," in text:
            count, text = text.split(",")
            before[-1] = count
        time = before[0] if _CLOCK.fullmatch(before[0]) else ""
        more = [word for word in (row["more"] or "").split(sep) if word]
        cgroup = [word for word in more if not _VARIANCE.fullmatch(word)]
        metric = line[row.end() :].split(sep)
        utilized = metric[2:3] == ["CPUs utilized"]
        place = sep.join(before[1:] if time else before)
        if before[0] == "summary":  # of all intervals
            return True
        return self._add(
            Row(
                time, place, text, row["unit"], row["event"], sep.join(cgroup), row["running"], row["runtime"],
                metric[1] if utilized else "", is_mean=len(more) > len(cgroup),
            )
        )  # fmt: skip

    def _take_text(self, line: str) -> bool:
        run = self.runs[-1]
        elapsed = _ELAPSED.match(line)
        if elapsed:
            self._look(elapsed[1], False)
            run.elapsed = elapsed[1]
            return True
        if not run.is_text or run.elapsed:
            return False
        share = _RUNNING.search(line)
        if line.lstrip("> ").startswith("#") and self._may_go_on:
            # The second metric of an event has a line of its own, and what follows all metrics stands there.
            if share:
                run.rows[-1] = run.rows[-1]._replace(running=share[1])
            return True
        row = _TEXT.fullmatch(line)
        self._may_go_on = row is not None
        if row is None:
            return False
        self._look(row["value"], not row["unit"])
        utilized = _UTILIZED.search(row["rest"])
        running = share[1] if share else _WHOLE
        return self._add(
            Row(
                row["time"] or "", row["id"] or "", row["value"], row["unit"] or "", row["event"], row["cgroup"] or "",
                running, cpus=utilized[1] if utilized else "", is_mean="+-" in row["rest"],
            )
        )  # fmt: skip

    def _look(self, number: str, is_count: bool) -> None:
        self._locale.look([ungrouped(number)], [is_count])

    def whole_runs(self) -> Iterator[Run]:
        """The runs in perf's output that have rows.

        Rows of CSV that come again and again, without a time, are one run each time.
        """
        for run in self.runs:
            keys = [(row.place, row.event, row.cgroup) for row in run.rows]
            is_timed = any(row.time for row in run.rows)
            size = len(keys)
            if not (run.is_text or is_timed):
                periods = (some for some in range(1, size) if size % some == 0 and keys[some:] == keys[:-some])
                size = next(periods, size)
            for first in range(0, len(keys), size or 1):
                yield replace(run, rows=run.rows[first : first + size])


def seconds(time: str) -> float:
    """The time of an interval of perf's."""
    return float(time.replace(",", "."))

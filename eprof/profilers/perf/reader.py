"""Reader of what `perf stat` writes: text, CSV (`-x`) and JSON (`-j`); several runs may stand in one file.

A run is a row, and so is each cgroup of a run. What perf splits (intervals, CPUs, sockets, the two kinds of cores of a
hybrid processor, the channels of a memory controller) is added up; an event that was counted in several groups is their
mean, by how long each was counted, or that of all the time. Counters have perf's names in lower case, no modifiers, and
what perf prints in MiB is in bytes, as `EVENT bytes`. Joules are measured energy, and clocks give the time of the run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct, convert, field
from msgspec.structs import replace

from eprof.base import cpus
from eprof.base.errors import LogError
from eprof.base.labels import labels
from eprof.base.optional import either, gathered, mapped, only, ratio, summed
from eprof.base.resources import folder
from eprof.base.text import counted, few, pattern, phrase, when
from eprof.base.toml import Document
from eprof.logs import log
from eprof.logs.log import HARDLY_WORKED, ON_TOTALS, Log, Names, Table, TableRows, metered_part
from eprof.logs.stream import Source
from eprof.profilers import perf
from eprof.profilers.perf import LONGEST_LINE, TEXT, plain
from eprof.readers.cells import ENGLISH, LARGEST, Locale, Style, is_wrapped, ungrouped, unused_notes, value
from eprof.readers.sections import fed

# ----------------------------------------------------------------------------------------------------------------------
# The lines of perf's output as rows of text, run by run; nothing is computed here.

_HEADER = pattern(r"Performance counter stats for (?:'(.*)'|(.*?))(?: \([0-9]+ runs\))?:\s*$")
_LISTED = pattern(r"[>\s]*([0-9]{1,6})(?:\s|$)")  # a line in a listing whose lines have numbers
# One that goes on in the next line: of a command with ends of lines in it, or as mail wraps it before "runs):".
_OPEN_HEADER = pattern(r".*Performance counter stats for '(?:[^']*|.*' \([0-9]*\s*)$")
_ELAPSED = pattern(r"[>\s]*([0-9]+[.,][0-9]+)\s+(?:\+-\s+\S+\s+)?seconds time elapsed\b")
_CPU_TIME = pattern(r"[>\s]*([0-9]+[.,][0-9]+) seconds (?:user|sys)\s*$")
_RUNNING = pattern(r"[(\[] *([0-9]+[.,][0-9]+)%[)\]]\s*$")  # in brackets until Linux 4.0
_UTILIZED = pattern(r"#\s+([0-9.,]+)\s+CPUs utilized")
_JSON = pattern(r'"([\w-]+)"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([0-9.,eE+-]+))')
_PLACES = ("cpu", "core", "socket", "die", "node", "thread")
_CLOCK = pattern(r"\s*[0-9]+[.,][0-9]{6,9}")
_VARIANCE = pattern(r"[0-9.,]+%")
_BEGINNING = pattern(r"[>\s]*(?:[0-9{]|(?:CPU?|[SNDC])(?:[0-9]|$))")  # of a row, as far as it goes
# A function in a table of `perf report`; and the event whose samples the table shares out, where its head is there.
_SAMPLED = pattern(
    r"[>#\s]*+(?:Samples: .* of event '([^']+)'.*|([0-9]{1,3}\.[0-9]{2})%\s++\S+\s++\S+\s++\[[.k]\]\s++(\S.*))"
)
_WHOLE = "100.00"
TASK_CLOCK, CPU_CLOCK = "task-clock", "cpu-clock"
SYSTEM = "system wide"  # perf stat -a says so in place of a command


class _Events(Struct, forbid_unknown_fields=True):
    """The events that are more than counts, and perf's words in JSON (`counters/perf/events.toml`)."""

    software: frozenset[str]
    cycles: tuple[str, ...]
    instructions: tuple[str, ...]
    energy: dict[str, str]
    bytes: dict[str, int]
    devices: dict[str, str]
    json: dict[str, str]


_EVENTS = convert(Document.read(folder("counters") / "perf" / "events.toml").data, _Events)


class Row(NamedTuple):
    """One value of perf, as written. time: of an interval; place: the CPU or socket; cpus: how many were in use."""

    time: str = ""
    place: str = ""
    value: str = ""
    unit: str = ""
    event: str = ""
    cgroup: str = ""
    running: str = _WHOLE
    runtime_ns: str = ""
    cpus: str = ""
    is_mean: bool = False

    @classmethod
    def of(cls, cells: Mapping[str, str | None], **more: Any) -> Row:
        """A value of perf, from its cells by the names of the fields of `Row`; those in `more` replace them."""
        told = {name: cells[name] or "" for name in cls._fields if name in cells} | more
        return cls(**told | {"event": perf.spelled(told["event"])})


class Run(Struct):
    """One run of `perf stat`. elapsed, cpu: texts of its `seconds time elapsed`, and its `seconds user` and `sys`."""

    command: str | None = None
    rows: list[Row] = field(default_factory=list)
    elapsed: str = ""
    cpu: list[str] = field(default_factory=list)
    is_text: bool = False
    style: Style = ENGLISH

    def number(self, text: str) -> float:
        """The number in a cell of perf's; NaN: none. CSV and JSON have no groups of digits, so a comma is a point."""
        number = value(text.replace(",", "."), ENGLISH)
        if self.is_text:
            number = value(ungrouped(text), self.style)
        if not number < LARGEST:
            return math.nan
        return number

    def of(self, *events: str) -> Iterator[Row]:
        """The rows of some of perf's events, by their plain names."""
        return (row for row in self.rows if plain(row.event)[0] in events)

    def clock_s(self, row: Row) -> float:
        """What a clock of the kernel shows, in s. It counts ns; perf prints ms, or what was counted, without a unit."""
        number = self.number(row.value)
        if not row.unit and number % 1 == 0:
            return number / 1e9
        return number / 1e3

    @property
    def time_s(self) -> float:
        """The s that perf's run took, by elapsed time, else last interval, duration_time, or CPUs in use; else NaN."""
        if self.elapsed:
            return self.number(self.elapsed)
        if self.rows[-1].time:
            return seconds(self.rows[-1].time)
        durations = [self.number(row.value) for row in self.of(perf.DURATION)]
        if durations:
            return max(durations) / 1e9
        used = [(self.clock_s(row), self.number(row.cpus)) for row in self.of(TASK_CLOCK, CPU_CLOCK) if row.cpus]
        return max((clock_s / cpus for clock_s, cpus in used if cpus > 0), default=math.nan)

    @property
    def cpus(self) -> list[float]:
        """How many CPUs perf's `cpu-clock` ran on, which is of all CPUs: each number that the run tells."""
        return [self.number(row.cpus) for row in self.of(CPU_CLOCK) if row.cpus]

    @property
    def is_of_all(self) -> bool:
        """Whether perf counted on all CPUs, or apart on some of them, idle or not (-a, -A)."""
        named = (self.command or "").startswith((SYSTEM, "CPU(s)"))
        apart = any(_PLACE.match(row.place) for row in self.rows)  # perf splits nothing else by them
        # Of the events that perf counts by itself it takes this clock for all CPUs, and task-clock for a program.
        is_default = [plain(row.event)[0] for row in self.rows[: len(_BY_DEFAULT)]] == _BY_DEFAULT
        nearly = _NEARLY_ALL if is_default else _OF_ALL
        return named or apart or any(cpus > 1.5 and abs(cpus / round(cpus) - 1) < nearly for cpus in self.cpus)

    @property
    def innermost_cgroups(self) -> list[str]:
        """The cgroups of perf's run that hold no others, which would count the same again."""
        cgroups = dict.fromkeys(row.cgroup for row in self.rows if plain(row.event)[0] not in _EVENTS.software)
        return [
            each
            for each in cgroups
            if not any(other.startswith(each.rstrip("/") + "/") for other in cgroups if other != each)
        ]

    @property
    def busy_s(self) -> float:
        """The processor time of perf's program, in the cgroups that count, in s; 0: not told.

        On all CPUs, or on each apart (-a, -A), the clock runs whether or not the program does.
        """
        cgroups = self.innermost_cgroups
        if self.command == SYSTEM and not any(cgroups):
            return 0.0
        clocks: dict[str, float] = {}  # one that is named twice, with another modifier, is the same time again
        for row in self.of(TASK_CLOCK):
            clock_s = self.clock_s(row)
            if clock_s > 0 and not row.place and (not cgroups or row.cgroup in cgroups):
                clocks[row.event] = clocks.get(row.event, 0.0) + clock_s
        return max(clocks.values(), default=0.0) or sum(map(self.number, self.cpu))


class Lines(Struct):
    """Takes the lines of perf's output one by one, and tells rows from all else.

    number: of lines; others: how many are no rows. event, sampled: of tables of `perf report`: the event of the open
    one, and (event, (share in %, function)). may_go_on: the last line was a row of text, which another may follow up.
    header: the first line of one whose command has several. listed: the number of a line in a listing.
    """

    path: str
    lacks_header: bool = False
    runs: list[Run] = field(default_factory=lambda: [Run()])
    number: int = 0
    others: int = 0
    event: str = ""
    sampled: list[tuple[str, tuple[float, str]]] = field(default_factory=list)
    is_cut: bool = False
    locale: Locale = field(default_factory=Locale)
    may_go_on: bool = False
    header: str = ""
    listed: float = math.nan

    def __post_init__(self) -> None:
        self.runs[0].is_text = self.lacks_header

    def feed(self, line: str) -> None:
        """Take one line of perf's output, without its end."""
        self.number += 1
        if len(line) > LONGEST_LINE or not self._take(line):
            self.others += 1
            sampled = _SAMPLED.fullmatch(line[:LONGEST_LINE])
            self.event = (sampled and sampled[1]) or self.event
            if sampled and sampled[2]:
                self.sampled.append((self.event, (float(sampled[2]), sampled[3].strip())))

    def finish(self, rest: str) -> None:
        """End perf's output with `rest`, a last line without an end, maybe cut off; settle how numbers are written.

        Raises LogError: they are written in two ways.
        """
        if rest.strip():
            self.number += 1
            is_whole = len(rest) < LONGEST_LINE and (_ELAPSED.match(rest) or not TEXT.fullmatch(rest))
            is_taken = is_whole and self._take(rest)
            # Behind a whole row without an end, others may have stood; the last line of text is no row.
            self.is_cut = _BEGINNING.match(rest) is not None and not (is_taken and _ELAPSED.match(rest))
        if len(self.locale.proof) > 1:
            raise LogError(
                f"{self.path}: numbers are written in two ways ({' and '.join(self.locale.proof.values())}), so their "
                "size is not certain; write the log again with LC_ALL=C"
            )
        for run in self.runs:
            run.style = next(iter(self.locale.proof), ENGLISH)

    def _take(self, line: str) -> bool:
        listed = _LISTED.match(line)
        self.listed, before = math.nan, self.listed
        if listed and (perf.HEADER in line or int(listed[1]) == before + 1):  # lines are numbered from the header on
            self.listed, line = int(listed[1]), line[listed.end() :]
        if self.header:
            line, self.header = f"{self.header.rstrip()} {line.strip()}", ""
        if perf.HEADER in line and (header := _HEADER.search(line)):
            if self.runs[-1].rows and self.runs[-1].is_text and self.runs[-1].rows[-1].time:
                self.runs[-1].rows.clear()  # --summary: the sums of all intervals follow
            self._begin(Run(header[1] or header[2], is_text=True))
            return True
        if len(line) < LONGEST_LINE and _OPEN_HEADER.fullmatch(line):
            self.header = line
            return True
        if perf.STARTED in line or perf.INTERVALS in line:
            self._begin(Run(is_text=perf.INTERVALS in line or self.lacks_header))
            return True
        if '"counter-value"' in line:
            return self._take_json(line)
        if row := perf.ROW.search(line):
            return self._take_csv(line, row)
        return self._take_text(line)

    def _begin(self, run: Run) -> None:
        """Begin a run of perf in the place of one without rows: a header with the command is below `# started on`."""
        if not self.runs[-1].rows:
            self.runs.pop()
        self.runs.append(run)

    def _add(self, row: Row) -> bool:
        """Add a row to perf's open run; if its interval is earlier than the last, to a new one. True: it is taken."""
        run = self.runs[-1]
        last = (run.rows or [row])[-1]
        if row.time and (not last.time or seconds(row.time) < seconds(last.time)):
            run = Run(run.command, is_text=run.is_text)
            self._begin(run)
        run.rows.append(row)
        return True

    def _take_json(self, line: str) -> bool:
        for text in re.findall(r"\{[^{}]*\}", line):
            cells = {key: (quoted or plain).strip(",") for key, quoted, plain in _JSON.findall(text)}
            told = {name: cells[key] for key, name in _EVENTS.json.items() if key in cells}
            if not told.get("value") or not told.get("event"):
                continue
            told["time"] = when(_CLOCK.fullmatch(told.get("time", "")), told.get("time", ""))
            told["runtime_ns"] = when(told.get("runtime_ns", "").isdecimal(), told.get("runtime_ns", ""))
            place = " ".join(f"{kind}{cells[kind]}" for kind in _PLACES if kind in cells)
            utilized = cells.get("metric-unit") == "CPUs utilized"
            cpus = when(utilized, cells.get("metric-value", ""))
            self._add(Row.of(told, place=place, cpus=cpus, is_mean="variance" in cells))
        return True

    def _take_csv(self, line: str, row: re.Match[str]) -> bool:
        sep = row["sep"]
        if sep == "," and "," in row["running"]:
            raise LogError(
                f"{self.path}: line {self.number}: decimals are written with a comma, and so are the cells apart, so "
                "numbers are not certain; write the log again with LC_ALL=C, or with -x ';'"
            )
        before = line[: row.start()].rpartition('"')[2].strip("> \t").split(sep)
        text = row["value"]
        if sep == "," and "," in text:
            before[-1], text = text.split(",")
        if before[0] == "summary" or before[-2:-1] == ["0"]:  # of all intervals; of no CPU, where nothing counts it
            return True
        time = when(_CLOCK.fullmatch(before[0]), before[0])
        place = sep.join(before[1:] if time else before)
        more = [word for word in (row["more"] or "").split(sep) if word]
        cgroup = [word for word in more if not _VARIANCE.fullmatch(word)]
        metric = line[row.end() :].split(sep)
        cpus = metric[1] if metric[2:3] == ["CPUs utilized"] else ""
        told = {"time": time, "place": place, "value": text, "cgroup": sep.join(cgroup), "cpus": cpus}
        return self._add(Row.of(row.groupdict(), **told, is_mean=len(more) > len(cgroup)))

    def _take_text(self, line: str) -> bool:
        run = self.runs[-1]
        elapsed = _ELAPSED.match(line)
        if elapsed:
            self.locale.look([ungrouped(elapsed[1])], [False])
            run.elapsed = elapsed[1]
            return True
        if run.elapsed and (cpu := _CPU_TIME.match(line)):
            run.cpu.append(cpu[1])
        row = TEXT.fullmatch(line)
        is_next = False
        if row is not None and not self.may_go_on and run.rows:
            # Behind lines that are no rows, the first event of the open run again is of another run, pasted without
            # its header: perf prints all rows of a run in one piece.
            written = (row["time"] or "", perf.spelled(row["event"]), row["place"] or "", row["cgroup"] or "")
            is_next = written == ("", run.rows[0].event, run.rows[0].place, run.rows[0].cgroup)
        is_before = self.lacks_header and run.command is None and not run.rows and not perf.alone(line)
        if not run.is_text or is_before or run.elapsed and not is_next:
            return False
        if is_next:
            self._begin(Run(run.command, is_text=True))
        if row is not None and row["of"] == "0":  # nothing counts the event there
            return True
        share = _RUNNING.search(line)
        if self.may_go_on and (line.lstrip("> ").startswith("#") or share and row is None):
            # The second metric of an event has a line of its own, and what follows all metrics stands there, or in the
            # line that mail wraps.
            if share:
                is_mean = run.rows[-1].is_mean or "+-" in line
                run.rows[-1] = run.rows[-1]._replace(running=share[1], is_mean=is_mean)
            return True
        self.may_go_on = row is not None
        if row is None:
            return False
        self.locale.look([ungrouped(row["value"])], [not row["unit"]])
        cpus = "".join(_UTILIZED.findall(row["rest"])[:1])
        running = share[1] if share else _WHOLE
        return self._add(Row.of(row.groupdict(), running=running, cpus=cpus, is_mean="+-" in row["rest"]))

    def whole_runs(self) -> Iterator[Run]:
        """Yields perf's runs that have rows. CSV rows without time that repeat are taken apart, a run each time."""
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
    """The end of one of perf's intervals in s, of its text."""
    return float(time.replace(",", "."))


# The domain; of AMD's cores each by itself, "core" without an s.
_ENERGY = pattern(r"power/energy-([^/]*)/*|power_(?:per_)?core/energy-(?:per-)?(core)/*")
_RAPL_J = 2**-32  # the scale of these events (Linux, arch/x86/events/rapl.c)
_EXAMPLES = 3
_MOST_SAMPLED, _LABEL = 2, 30  # functions, and characters of each
# Of a socket or a node, where every unit counts; behind it stands how many CPUs the row is of.
_SOCKET = pattern(r"^((?:socket|node)?[SN][0-9]+)(?:[^\w-][0-9]*)*$")
_PLACE = pattern(r"CPU[0-9]|[SND][0-9]|(?:cpu|core|socket|die|node)[0-9]")
# A domain, what it is, a domain inside of it, and whose joules these are.
_INSIDE = (("pkg", "packages", "cores", "their cores'"), ("psys", "the whole platform", "pkg", "the packages'"))
_FEW_UNITS = 40  # half of the last digit that is printed is worth a word where it is more than this part of the joules
_IDLE_HZ = 2e8  # a CPU's cycles in each second, idle or not: fewer are a tenth of the time or less, at 2 GHz (assumed)
_BY_DEFAULT = [CPU_CLOCK, "context-switches", "cpu-migrations", "page-faults"]
_OF_ALL, _NEARLY_ALL = 1e-4, 5e-3  # a clock this near to a whole number of CPUs runs on all of them
_MUCH_MORE = 0.05  # of a sum, that is worth a word
_ALL, _RAN_OVER = 100.0, -1.0  # shares of the time, and what stands there where a counter ran over


def domain(event: str) -> str | None:
    """The domain of a perf energy event: "pkg" of `power/energy-pkg/`; None for others."""
    match = _ENERGY.fullmatch(event)
    return match and (match[1] or f"{match[2]}s")


_Part = tuple[str, str, str]  # the interval, the place and the unit of the processor


class _Sum(Struct):
    """An event in one run of perf by part (interval, place, unit): its value, and its running time in %.

    A part that was never counted has no value, and 0 %. spent: of a program, which runs on the kinds of cores in turn,
    its time on each in %, which is that of the event that was counted for the longest there.
    """

    parts: dict[_Part, tuple[float, float]] = field(default_factory=dict)
    readings: dict[_Part, list[tuple[float, float]]] = field(default_factory=dict)  # of parts in several groups
    spent: dict[_Part, float] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The sum of what perf knows of a counter; NaN if nothing is.

        perf scales what a program did on each kind of cores up to the whole time (lore.kernel.org: "inflated per-PMU
        counts"). Of a kind that had all of it beside others, or of unknown time, the value is what was counted.
        """
        known = {part: value for part, (value, _) in self.parts.items() if not math.isnan(value)}
        if not known:
            return math.nan
        total = 0.0
        kinds = gathered((part[:2], (value, self.spent.get(part, _ALL))) for part, value in known.items())
        for cells in kinds.values():
            shares = [share for _, share in cells]
            whole = sum(shares)
            are_at_once = whole > _ALL + 1 and max(shares) >= _ALL
            if are_at_once or not whole:
                total += sum(value for value, _ in cells)
            else:
                total += sum(value * share for value, share in cells) / min(whole, _ALL)
        return total

    @property
    def taken_back(self) -> float:
        """How much more perf's own sum is, 0.37 for 37 %, where a program spent more than all its time on its cores.

        So it is of several threads, whose times on a kind perf adds up: its scaling may have been right of some.
        """
        spent = summed((part[:2], share) for part, share in self.spent.items()).values()
        if max(spent, default=0.0) <= _ALL + 1 or not self.value:
            return 0.0
        return sum(value for value, _ in self.parts.values() if not math.isnan(value)) / self.value - 1

    @property
    def running(self) -> float:
        """The least % of the time in which perf counted a part; a kind of cores that never ran does not matter."""
        kinds = {pmu for *_, pmu in self.parts}
        known = [share for value, share in self.parts.values() if len(kinds) < 2 or not math.isnan(value)]
        return min(known, default=0.0)


class _Counted(Struct):
    """What perf counted for one row of the table: a run, or a cgroup of it.

    interval: the end of its interval, where each has a row; intervals: how many the run has. places: where
    something was counted, and by which unit. watched: how many CPUs were counted, of a machine of unknown sockets.
    """

    kernel: str
    time_s: float
    interval: str | None = None
    events: dict[str, _Sum] = field(default_factory=dict)
    joules: dict[str, _Sum] = field(default_factory=dict)
    packages: int | None = None
    cores: float | None = None
    watched: float = 0.0
    intervals: int = 1
    spent: dict[_Part, float] = field(default_factory=dict)
    places: set[tuple[str, str]] = field(default_factory=set)

    def amounts(self, keep: Container[str] | None) -> dict[str, tuple[float, str]]:
        """Each counter's value and unit; NaN where perf did not count it. `keep`: the events that get a column."""
        events = {name: total for name, total in self.events.items() if keep is None or name in keep}
        amounts = {name: (total.value, log.COUNT) for name, total in events.items()}
        for name, total in events.items():
            share = 0.0 if self.lacks(total) else total.running
            if share < _ALL and not math.isnan(total.value):
                amounts[name + perf.RUNNING] = (share, log.PERCENT)
        sizes = {log.SOCKETS: self.packages, log.CORES: self.cores, log.CPUS: self.watched}
        amounts |= {name: (float(size), log.OTHER) for name, size in sizes.items() if size}
        energy = {name: total.value for name, total in self.joules.items() if not self.is_unknown(total)}
        widest = next((name for name in _EVENTS.energy if name in energy), None)
        if widest == "pkg":
            covers = either(mapped(counted, self.packages, "processor package"), "processor packages")
            if "ram" in energy:
                covers += " and DRAM"
            amounts[covers] = (energy["pkg"] + energy.get("ram", 0.0), log.JOULE)
        elif widest is not None:
            amounts[_EVENTS.energy[widest]] = (energy[widest], log.JOULE)
        return amounts

    def lacks(self, total: _Sum) -> bool:
        """Whether perf's event has no row for an interval or a CPU that others of its unit have, or one ran over."""
        units = {unit for *_, unit in total.parts}
        places = {place for place, unit in self.places if unit in units or _SOCKET.fullmatch(place)}
        is_short = len({part[:2] for part in total.parts}) < self.intervals * len(places)
        return is_short or any(share == _RAN_OVER for _, share in total.parts.values())

    def is_unknown(self, joules: _Sum) -> bool:
        """Whether perf lacks the joules of an interval or a socket: the rest is then not taken for measured energy."""
        return self.lacks(joules) or any(math.isnan(value) for value, _ in joules.parts.values())


def read(
    source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None = None, *_: object
) -> Log:
    """Read all runs in a log of `perf stat`.

    `keep`: the counters that get a column. parts: INTERVAL has a row for each of `-I`'s. Raises LogError if nothing is
    counted.
    """
    first = next(pieces, b"")
    lines = Lines(source.path, perf.is_without_header(first))
    lines.finish(fed(chain([first], pieces), lines.feed))
    runs = list(lines.whole_runs())
    by_run = []
    for run in runs:
        if parts != log.INTERVAL:
            by_run.append([*_rows(run)])
            continue
        own, begin_s = list[_Counted](), 0.0
        for time, of_interval in groupby(run.rows, key=attrgetter("time")):
            own += _rows(replace(run, rows=list(of_interval), elapsed="", cpu=[]), begin_s, time or None)
            begin_s = seconds(time or "0")
        by_run.append(own)
    rows = [row for own in by_run for row in own]
    times = [[row.time for row in run.rows] for run in runs]
    is_cut = lines.is_cut or any(each[0] != "" and each.count(each[-1]) < each.count(each[0]) for each in times)
    # Runs of other events are passes over the same program, each in a table of its own; but what is told by interval
    # is one run, of which such runs are stretches that lost some events.
    is_one_run = any(map(any, times))
    events = [frozenset(name for row in own for name in (*row.events, *row.joules)) for own in by_run]
    alike = gathered((not is_one_run and names, own) for names, own in zip(events, by_run, strict=True))
    device = _device(frozenset().union(*events))
    tables = [_table(list(chain.from_iterable(of_same)), keep, is_cut, device) for of_same in alike.values()]
    totals = [total for row in rows for total in (*row.events.values(), *row.joules.values())]
    if all(np.isnan(table.counters.values).all() for table in tables) or all(math.isnan(each.value) for each in totals):
        raise LogError(f"{source.path}: {_nothing(runs, rows)}")
    commands = {run.command for run in runs} - {None, SYSTEM}
    return source.log(
        tables,
        [*source.notes, *_notes(runs, rows, keep), *_samples(lines.sampled)],
        lines=lines.number,
        skipped_lines=lines.others,
        command=only(commands),
        device=device,
    )


def _device(events: Iterable[str]) -> str | None:
    """The CPU, as far as names of events tell it; None: they do not."""
    names = (name for name, own in _EVENTS.devices.items() for event in events if re.fullmatch(f"(?i){own}", event))
    return next(names, None)


def _rows(run: Run, begin_s: float = 0.0, interval: str | None = None) -> Iterable[_Counted]:
    """The rows of a table for a run of perf that began at `begin_s`, one a cgroup. interval: its end, if it is one."""
    cgroups, is_of_all = run.innermost_cgroups or [""], run.is_of_all
    kernel = run.command or when(is_of_all, SYSTEM) or log.WHOLE_PROGRAM
    time_s = run.time_s - begin_s
    intervals = len({row.time for row in run.rows})
    rows_of = {each: _Counted(each or kernel, math.nan, interval, intervals=intervals) for each in cgroups}
    if len(cgroups) == 1:
        rows_of[cgroups[0]].time_s = time_s
    for row in run.rows:
        if row.cgroup in rows_of:
            _count(rows_of[row.cgroup], row, run, not is_of_all)
    # The counters of packages ran for so many times the time of the run, and clocks tell how many cores were busy.
    sockets_ns = sum(float(row.runtime_ns or 0) for row in run.rows if domain(plain(row.event)[0]) == "pkg")
    sockets = ratio(sockets_ns / 1e9, time_s) or 0.0
    for each in rows_of.values():
        # Counts of floating-point events that ran over say nothing.
        executed = next((each.events[name].parts for name in _EVENTS.instructions if name in each.events), {})
        for event, total in each.events.items():
            for part, (number, _) in total.parts.items():
                if is_wrapped(event, number, executed.get(part, (math.nan, 0.0))[0]):
                    total.parts[part] = (math.nan, _RAN_OVER)
        each.packages = len({place for place, _ in each.places if _SOCKET.fullmatch(place)}) or None
        if 1 <= sockets < LARGEST and abs(sockets - round(sockets)) < 0.05:
            each.packages = round(sockets)
        if len(cgroups) == 1 and run.busy_s > 0 and time_s > 0:
            each.cores = run.busy_s / time_s
        # Of packages apart, the clock is that of one.
        if is_of_all and not (each.packages and any(place for place, _ in each.places)):
            each.watched = max(run.cpus, default=0.0)
    return rows_of.values()


def _count(counts: _Counted, row: Row, run: Run, in_turn: bool) -> None:
    """Add one value that perf printed to the counts, or the joules, of its row of the table.

    in_turn: a program ran on the kinds of cores in turn.
    """
    event, pmu = plain(row.event)
    if event in _EVENTS.software:
        return
    value = run.number(row.value)
    sums = counts.events
    energy = domain(event)
    if energy is not None:
        event, sums = energy, counts.joules
        if not row.unit and value % 1 == 0:  # what the counter counted: perf failed to read its scale
            value *= _RAPL_J
    elif row.unit in _EVENTS.bytes:
        event, value = event + perf.BYTES_OF, value * _EVENTS.bytes[row.unit]
    elif row.unit:
        return
    unit = pmu or when(event.startswith("unc_"), "unc")
    place = _SOCKET.sub(r"\1", row.place)
    counts.places.add((place, unit))
    known = sums.setdefault(event, _Sum(spent=counts.spent)).parts
    part = (row.time, place, unit)
    share = 0.0 if math.isnan(value) else run.number(row.running)
    if in_turn and perf.is_core(unit):
        counts.spent[part] = max(share, counts.spent.get(part, 0.0))
    if part in known:
        readings = sums[event].readings.setdefault(part, [known[part]])
        readings.append((value, share))
        # Of several groups: the mean by how long each was counted, and the longest of their times.
        known[part] = max(readings, key=itemgetter(1))
        counted_for = [reading for reading in readings if reading[1] > 0]
        if known[part][1] < _ALL and counted_for:
            whole = sum(share for _, share in counted_for)
            known[part] = sum(value * share for value, share in counted_for) / whole, known[part][1]
    else:
        known[part] = (value, share)


def _table(rows: Sequence[_Counted], keep: Container[str] | None, is_cut: bool, device: str | None) -> Table:
    amounts = [row.amounts(keep) for row in rows]
    names = dict.fromkeys(chain.from_iterable(amounts))
    # An event that was not scaled was counted all the time.
    absent = {name: _ALL for name in names if name.endswith(perf.RUNNING)}
    own: dict[str, Any] = {"run": np.arange(len(rows))}
    if any(row.interval for row in rows):
        own = {"part": Names.of(row.interval for row in rows)}
    kernels = Names.of(row.kernel for row in rows)
    of_rows = TableRows.of(Names.of([device] * len(rows)), kernels, time_s=[row.time_s for row in rows], **own)
    collected = frozenset(names - absent.keys())
    return Table.of_amounts(perf.KIND, of_rows, amounts, absent, collected=collected, lacks_rows=is_cut)


def _nothing(runs: Sequence[Run], rows: Sequence[_Counted]) -> str:
    names = [f"`{name}`" for row in rows for name, total in row.events.items() if math.isnan(total.value)]
    program = next((row.kernel for row in rows if row.kernel not in (log.WHOLE_PROGRAM, SYSTEM)), "PROGRAM")
    callgrind = f"`eprof run --profiler callgrind {program}`"
    what = f"{few(list(dict.fromkeys(names)), _EXAMPLES)} could not be counted, as in virtual machines without counters"
    remedy = f"{callgrind}, or on a machine with counters"
    if not names:
        events = dict.fromkeys(f"`{row.event}`" for run in runs for row in run.rows)
        asked = f"only {few(list(events), _EXAMPLES)} {when(len(events) == 1, 'was') or 'were'} asked for"
        what = when(events, asked) or "no line below its header is a count"
        remedy = f"`perf stat -e cycles,instructions {program}`; where these cannot be counted, {callgrind}"
    times = [row.time_s for row in rows if not math.isnan(row.time_s)]
    who = when(len(times) > 1, f"{len(times)} runs together") or "the run"
    told = when(times, f"; it tells only that {who} took {sum(times):.6g} s{_constant(sum(times))}")
    return f"perf counted nothing of the processor ({what}){told}; count with {remedy}"


def _constant(time_s: float, sockets: int = 1) -> str:
    """The end of one of perf's notes: what constant power of whole sockets takes at most in this time."""
    low_w, high_w = cpus.constant_span_w()
    most_j = float(f"{high_w * sockets * time_s:.3g}")
    each = f"{counted(sockets, 'socket')} of {low_w:g} to {high_w:g} W"
    return f", in which constant power takes {most_j:,g} J at most ({each})"


def _by_running_times(cells: Sequence[Row], rows: Sequence[_Counted]) -> Iterator[str]:
    """A note on power, or on the longest time of a run, by how long perf's counters ran where no time is told."""
    whole = [row for row in cells if row.runtime_ns and row.running == _WHOLE]
    # On each package the counter of its joules ran as long as the run took.
    packages_s = sum(float(row.runtime_ns) for row in whole if domain(plain(row.event)[0]) == "pkg") / 1e9
    packages = [(row, row.joules["pkg"]) for row in rows if "pkg" in row.joules]
    if packages_s and not any(row.is_unknown(joules) or joules.running < _ALL for row, joules in packages):
        watts = sum(joules.value for _, joules in packages) / packages_s
        yield f"{ON_TOTALS}each package drew {watts:.3g} W, as its joules were counted for {packages_s:.3g} s in all"
    elif whole and all(row.kernel == SYSTEM for row in rows):
        # What counted on all CPUs, or of none, counted as long as the run took, each unit of it.
        most_s = min(float(row.runtime_ns) for row in whole) / 1e9
        constant = _constant(most_s, max(row.packages or 1 for row in rows))
        yield f"{ON_TOTALS}the run took at most {most_s:.3g} s, as long as its counters counted{constant}"


def _samples(sampled: Iterable[tuple[str, tuple[float, str]]]) -> Iterator[str]:
    """A sentence on each table of `perf report` that stands beside the counts; none on a table that comes twice."""
    for event, shares in gathered(sampled).items():
        names = labels([function for _, function in shares], _LABEL)
        most = sorted(zip((share for share, _ in shares), names, strict=True), reverse=True)[:_MOST_SAMPLED]
        told = ", ".join(f"{share:.0f} % in {name}" for share, name in most)
        of = phrase("`{}`", event) or "an event that it does not name"
        if sum(share for share, _ in shares) < _ALL + 1:
            yield f"{ON_TOTALS}samples of `perf report`: {told} (of {of}); joules are not split by them"


def _notes(runs: Sequence[Run], rows: Sequence[_Counted], keep: Container[str] | None) -> Iterator[str]:
    events = [(name, total, row) for row in rows for name, total in row.events.items()]
    yield from unused_notes(dict.fromkeys(name for name, total, _ in events if not math.isnan(total.value)), keep)
    cells = [row for run in runs for row in run.rows]
    if all(math.isnan(row.time_s) for row in rows):
        yield from _by_running_times(cells, rows)
    clock_s = sum(run.clock_s(row) for run in runs for row in run.of(CPU_CLOCK))
    mean_hz = sum(total.value for name, total, _ in events if name in _EVENTS.cycles) / (clock_s or math.nan)
    if 0 < mean_hz < _IDLE_HZ and all(row.kernel == SYSTEM for row in rows):
        slow = when(mean_hz < 1e6, "< 1 MHz") or f"{mean_hz / 1e6:.0f} MHz"
        yield f"{ON_TOTALS}{HARDLY_WORKED} ({slow} each, idle time and all): most joules are idle"
    times = [tuple(map(run.number, run.cpu)) for run in runs if len(run.cpu) == 2]  # user, sys
    user_s, sys_s = np.sum(times or [(0.0, 0.0)], axis=0)
    in_kernel = list(log.much_in_kernel(user_s + sys_s, sys_s))
    yield from in_kernel
    scaled = [name for name, total, _ in events if 0 < total.running < _ALL]
    lost = [name for name, total, _ in events if math.isnan(total.value)]
    lacking = [name for name, total, row in events if row.lacks(total) and name not in lost]
    joules = [
        f"power/energy-{name}/"
        for row in rows
        for name, total in row.joules.items()
        if row.is_unknown(total) and total.value >= 0
    ]
    known_j = [row.joules for row in rows if not any(map(row.is_unknown, row.joules.values()))]
    for whole, of, part, whose in _INSIDE:
        both = [(joules[whole].value, joules[part].value) for joules in known_j if {whole, part} <= joules.keys()]
        whole_j, part_j = (sum(pair[place] for pair in both) for place in (0, 1))
        yield from metered_part(whole_j, of, part_j, whose)
    told = {name for row in rows for name in row.joules}
    told = told & {"pkg", "ram"} or told
    printed = gathered(
        (row.event, (run.number(row.value), row.value.replace(",", ".").partition(".")[2]))
        for run in runs
        for row in run.rows
        if row.unit == "Joules" and domain(plain(row.event)[0]) in told
    )
    for event, cells_j in printed.items():
        known = [(joules, 0.5 * 0.1 ** len(decimals)) for joules, decimals in cells_j if joules >= 0]
        total_j, half_j = (sum(pair[place] for pair in known) for place in (0, 1))
        if half_j > total_j / _FEW_UNITS:
            span = f"{max(total_j - half_j, 0.0):.3g} to {total_j + half_j:.3g} J"
            yield f"{ON_TOTALS}by the decimals that perf printed, `{event}` is {span}"
    metered = {row.kernel for row in rows if row.joules}
    if metered and (others := {row.kernel for row in rows} - metered):
        yield f"{ON_TOTALS}joules of {few(sorted(metered), 2)} are left out, for {few(sorted(others), 2)} has none"
    cgroups = sorted({row.cgroup for row in cells if row.cgroup} - {row.kernel for row in rows})
    sentences = (
        (scaled, "events", "counted in a part of the time and scaled up by perf, so these are estimated"),
        (lost, "events", "not counted, not supported on that machine, or run over (2^47), so missing"),
        (
            *(lacking, "events"),
            "rows of some intervals or CPUs are lost, or their counters ran over (near a multiple of 2^47, or more "
            "than the instructions allow), so these are lower bounds",
        ),
        (joules, "events", "perf has no number for some intervals or sockets, so these joules are no measured energy"),
        (cgroups, "cgroups", "holds other cgroups, so it is left out; what ran in it alone is not in the counts"),
    )
    for names, noun, sentence in sentences:
        if names:
            yield f"{few([f'`{name}`' for name in dict.fromkeys(names)], _EXAMPLES, noun)}: {sentence}"
    if (more := max((total.taken_back for _, total, _ in events), default=0.0)) > _MUCH_MORE:
        yield (
            f"{ON_TOTALS}the kinds of cores were on for more than the whole time, as of several threads: numbers are "
            f"those of their shares of it, and perf's own sums, scaled up, are up to {more:.0%} more"
        )
    if any(row.is_mean for row in cells):
        yield "values are means over the runs of `perf stat -r`, so a row is one run"
    if any(row.event.endswith((":u", "/u")) for row in cells):  # as for users without privileges
        counted_of = f"{when(in_kernel, ON_TOTALS)}only user space was counted (`:u`)"
        yield f"{counted_of}; what the kernel did for the program is not in the counts"

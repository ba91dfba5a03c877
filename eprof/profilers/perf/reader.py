"""Reader of what `perf stat` writes: text, CSV (`-x`) and JSON (`-j`); several runs may stand in one file.

A run is a row, and so is each cgroup of a run. What perf splits (intervals, CPUs, sockets, the two kinds of cores of a
hybrid processor, the channels of a memory controller) is added up; an event that was counted in several groups is their
mean, by how long each was counted, or that of all the time. Counters have perf's names in lower case, no modifiers, and
what perf prints in MiB is in bytes, as `EVENT bytes`. Joules are measured energy, and clocks give the time of the run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, product
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
from eprof.logs.log import HARDLY_WORKED, ON_TOTALS, WHOLE_MACHINE, Log, metered_part
from eprof.logs.stream import Source
from eprof.profilers import perf
from eprof.profilers.perf import LONGEST_LINE, TEXT, plain
from eprof.readers.cells import ENGLISH, LARGEST, Locale, Style, ungrouped, unused_notes, value
from eprof.readers.counted import ALL, LOST, Part, Parts, Reading, Row, table
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
_SHOWN = pattern(r".*\bperf\S* stat\s(.*)")  # the command above what it wrote
_CPUID = pattern(r".*\bUsing CPUID (\S+)")  # of perf -v
_JSON = pattern(r'"([\w-]+)"\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([0-9.,eE+-]+))')
_PLACES = ("cpu", "core", "socket", "die", "node", "thread")
_CLOCK = pattern(r"\s*[0-9]+[.,][0-9]{6,9}")
_VARIANCE = pattern(r"[0-9.,]+%")
_BEGINNING = pattern(r"[>\s]*(?:[0-9{]|(?:CPU?|[SNDC])(?:[0-9]|$))")  # of a row, as far as it goes
# A last line behind a row that is the beginning of one: a place and numbers at most, or some cells of CSV.
_BROKEN = pattern(r"[>\s]*(?:(?:CPU|[SNDC])[0-9][\w-]*\s+)?[0-9][0-9.,\s]*|[>\s]*[0-9][^\s,;|]*[,;|]\S.*")
_STEP = pattern(r"(?:.*\s)?(?:-I|--interval-print[= ])\s*([0-9]{1,9})\b.*")  # of perf's intervals, in ms
# A function in a table of `perf report`; and the event whose samples the table shares out, where its head is there.
_SAMPLED = pattern(
    r"[>#\s]*+(?:Samples: .* of event '([^']+)'.*|([0-9]{1,3}\.[0-9]{2})%\s++\S+\s++\S+\s++\[[.k]\]\s++(\S.*))"
)
_WHOLE = "100.00"
TASK_CLOCK, CPU_CLOCK = "task-clock", "cpu-clock"


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


class Value(NamedTuple):
    """A value of perf, as written. time: of an interval; place: the CPU or socket; cpus: how many were in use."""

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
    def of(cls, cells: Mapping[str, str | None], **more: Any) -> Value:
        """A value of perf, from its cells by the names of the fields of `Value`; those in `more` replace them."""
        told = {name: cells[name] or "" for name in cls._fields if name in cells} | more
        time = told.get("time", "").replace(",", ".")
        return cls(**told | {"event": perf.spelled(told["event"]), "time": time})

    def is_again(self, first: Sequence[Value]) -> bool:
        """Whether perf tells the event of the `first` value again, of the same place and cgroup, at no time."""
        of = attrgetter("event", "place", "cgroup")
        return not self.time and any(of(self) == of(value) for value in first)


class Run(Struct):
    """One run of `perf stat`. elapsed, cpu: texts of its `seconds time elapsed`, and its `seconds user` and `sys`.

    is_unscaled: whether its values are what was counted, however short (`--no-scale`). step_s: of its intervals.
    """

    command: str | None = None
    values: list[Value] = field(default_factory=list)
    elapsed: str = ""
    cpu: list[str] = field(default_factory=list)
    is_text: bool = False
    is_unscaled: bool = False
    step_s: float = math.nan
    style: Style = ENGLISH

    @property
    def keys(self) -> list[tuple[str, str, str]]:
        """What tells the rows of perf's run apart: place, event and cgroup."""
        return [(row.place, row.event, row.cgroup) for row in self.values]

    def is_cut_behind(self, earlier: Run) -> bool:
        """Whether a run has the first rows of an earlier one of perf's and no more, nor its time: its end is lost."""
        size = len(self.keys)
        is_beginning = 0 < size < len(earlier.keys) and earlier.keys[:size] == self.keys
        lacks_time = (earlier.elapsed and not self.elapsed) or math.isnan(self.time_s) > math.isnan(earlier.time_s)
        return bool(is_beginning and lacks_time and self.command == earlier.command)

    def number(self, text: str) -> float:
        """The number in a cell of perf's; NaN: none. CSV and JSON have no groups of digits, so a comma is a point."""
        number = value(text.replace(",", "."), ENGLISH)
        if self.is_text:
            number = value(ungrouped(text), self.style)
        if not number < LARGEST:
            return math.nan
        return number

    def of(self, *events: str) -> Iterator[Value]:
        """The values of some of perf's events, by their plain names."""
        return (value for value in self.values if plain(value.event)[0] in events)

    def clock_s(self, clock: Value) -> float:
        """What a clock of the kernel shows, in s. It counts ns; perf prints ms, or what was counted, without a unit."""
        number = self.number(clock.value)
        if not clock.unit and number % 1 == 0:
            return number / 1e9
        return number / 1e3

    @property
    def program(self) -> str | None:
        """The command line of the program that perf ran; None: it counted CPUs, or what ran already."""
        return None if _NO_PROGRAM.fullmatch(self.command or WHOLE_MACHINE) else self.command

    @property
    def time_s(self) -> float:
        """The s that perf's run took, by elapsed time, else last interval, duration_time, or CPUs in use; else NaN."""
        if self.elapsed:
            return self.number(self.elapsed)
        if self.values[-1].time:
            return float(self.values[-1].time) - self.begin_s
        durations = [self.number(row.value) for row in self.of(perf.DURATION)]
        if durations:
            return max(durations) / 1e9
        used = [(self.clock_s(row), self.number(row.cpus)) for row in self.of(TASK_CLOCK, CPU_CLOCK) if row.cpus]
        return max((clock_s / cpus for clock_s, cpus in used if cpus > 0), default=math.nan)

    @property
    def begin_s(self) -> float:
        """When perf's first interval in the log began, by all their time, the next one or what was asked for."""
        first, *more = dict.fromkeys(float(value.time or 0) for value in self.values)
        steps_s = [time - first for time in more[:1]] or [self.step_s]
        begin_s = max(first - steps_s[0], 0.0)
        if self.elapsed:
            begin_s = max([first, *more][-1] - self.number(self.elapsed), 0.0)
        # perf's first interval takes a little longer than the others.
        if begin_s > _LATE * steps_s[0]:
            return begin_s
        return 0.0  # also where no step is known

    @property
    def cpus(self) -> list[float]:
        """How many CPUs perf's `cpu-clock` ran on, which is of all CPUs: each number that the run tells."""
        return [self.number(row.cpus) for row in self.of(CPU_CLOCK) if row.cpus]

    @property
    def is_of_all(self) -> bool:
        """Whether perf counted on all CPUs, or apart on some of them, idle or not (-a, -A)."""
        named = (self.command or "").startswith((WHOLE_MACHINE, "CPU(s)"))
        apart = any(_PLACE.match(row.place) for row in self.values)  # perf splits nothing else by them
        # Of the events that perf counts by itself it takes this clock for all CPUs, and task-clock for a program.
        is_default = [plain(row.event)[0] for row in self.values[: len(_BY_DEFAULT)]] == _BY_DEFAULT
        nearly = _NEARLY_ALL if is_default else _OF_ALL
        return named or apart or any(cpus > 1.5 and abs(cpus / round(cpus) - 1) < nearly for cpus in self.cpus)

    @property
    def innermost_cgroups(self) -> list[str]:
        """The cgroups of perf's run that hold no others, which would count the same again."""
        cgroups = dict.fromkeys(row.cgroup for row in self.values if plain(row.event)[0] not in _EVENTS.software)
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
        if self.command == WHOLE_MACHINE and not any(cgroups):
            return 0.0
        counted = [each for each in self.of(TASK_CLOCK) if not each.place and (not cgroups or each.cgroup in cgroups)]
        # A clock that is named twice, with another modifier, is the same time again.
        clocks_s = summed((each.event, self.clock_s(each)) for each in counted if self.clock_s(each) > 0)
        return max(clocks_s.values(), default=0.0) or sum(map(self.number, self.cpu))

    @property
    def user_cycles(self) -> float:
        """The cycles of user space, where perf counted them there alone (`:u`); else NaN."""
        cycles = list(self.of(*_EVENTS.cycles))
        is_of_user = cycles and all(value.event.endswith(_OF_USER) for value in cycles)
        return sum(self.number(value.value) for value in cycles) if is_of_user else math.nan

    def reading(self, value: Value) -> Iterator[tuple[tuple[str, Part], Reading]]:
        """A count or joules of perf, by event and part; none of what the kernel counts by itself, or of other units."""
        event, pmu = plain(value.event)
        number = self.number(value.value)
        if domain(event) is not None:
            if not value.unit and number % 1 == 0:  # what the counter counted: perf failed to read its scale
                number *= _RAPL_J
        elif value.unit in _EVENTS.bytes:
            event, number = event + perf.BYTES_OF, number * _EVENTS.bytes[value.unit]
        elif value.unit or event in _EVENTS.software:
            return
        unit = pmu or when(event.startswith("unc_"), "unc")
        share = 0.0 if math.isnan(number) else self.number(value.running)
        if self.is_unscaled and 0 < share < ALL:  # as perf would have scaled it
            number *= ALL / share
        yield (event, (value.time, _SOCKET.sub(r"\1", value.place), unit)), (number, share)


class Lines(Struct):
    """Takes the lines of perf's output one by one, and tells rows from all else.

    number: of lines; others: how many are no rows. sampled: lines of tables of `perf report`. may_go_on: the last line
    was a row of text, which another may follow up. header: the first line of one whose command has several. listed: the
    number of a line in a listing. options: those of the last command that the log shows, and its program. cpu: by its
    number.
    """

    path: str
    lacks_header: bool = False
    runs: list[Run] = field(default_factory=lambda: [Run()])
    number: int = 0
    others: int = 0
    sampled: list[re.Match[str]] = field(default_factory=list)
    is_cut: bool = False
    locale: Locale = field(default_factory=Locale)
    may_go_on: bool = False
    header: str = ""
    listed: float = math.nan
    options: str = ""
    cpu: str | None = None

    def __post_init__(self) -> None:
        self.runs[0].is_text = self.lacks_header

    def feed(self, line: str) -> None:
        """Take one line of perf's output, without its end."""
        self.number += 1
        is_behind_row = self.may_go_on
        is_taken = len(line) <= LONGEST_LINE and self._take(line)
        if line.strip():
            self.is_cut = is_behind_row and not is_taken and _BROKEN.fullmatch(line) is not None
        if not is_taken:
            self.others += 1
            self.may_go_on = False
            self.sampled += filter(None, [_SAMPLED.fullmatch(line[:LONGEST_LINE])])
            if shown := _SHOWN.match(line[:LONGEST_LINE]):
                self.options = shown[1]
            if cpuid := _CPUID.match(line[:LONGEST_LINE]):
                self.cpu = cpus.of_cpuid(cpuid[1])

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
            if self.runs[-1].values and self.runs[-1].is_text and self.runs[-1].values[-1].time:
                self.runs[-1].values.clear()  # --summary: the sums of all intervals follow
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
        if not self.runs[-1].values:
            self.runs.pop()
        self.runs.append(run)

    def _add(self, row: Value) -> bool:
        """Add a row to perf's open run; to a new one if its interval is earlier, or behind other lines the first event
        comes again. True: it is taken.
        """
        run = self.runs[-1]
        last = (run.values or [row])[-1]
        if last.time and not row.time and self.may_go_on:  # --summary: the sums of all intervals
            return True
        is_next = not self.may_go_on and row.is_again(run.values[:1])
        if is_next or row.time and (not last.time or float(row.time) < float(last.time)):
            run = Run(run.command, is_text=run.is_text)
            self._begin(run)
        run.is_unscaled = "--no-scale" in self.options.split()
        if step := _STEP.fullmatch(self.options):
            run.step_s = int(step[1]) / 1e3
        run.values.append(row)
        self.may_go_on = True
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
            self._add(Value.of(told, place=place, cpus=cpus, is_mean="variance" in cells))
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
        return self._add(Value.of(row.groupdict(), **told, is_mean=len(more) > len(cgroup)))

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
        # Behind lines that are no rows, the first event of the open run again is of another run, pasted without its
        # header: perf prints all rows of a run in one piece.
        is_next = row is not None and not self.may_go_on and Value.of(row.groupdict()).is_again(run.values[:1])
        is_before = self.lacks_header and run.command is None and not run.values and not perf.alone(line)
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
                is_mean = run.values[-1].is_mean or "+-" in line
                run.values[-1] = run.values[-1]._replace(running=share[1], is_mean=is_mean)
            return True
        self.may_go_on = row is not None
        if row is None:
            return False
        self.locale.look([ungrouped(row["value"])], [not row["unit"]])
        cpus = "".join(_UTILIZED.findall(row["rest"])[:1])
        running = share[1] if share else _WHOLE
        return self._add(Value.of(row.groupdict(), running=running, cpus=cpus, is_mean="+-" in row["rest"]))

    def whole_runs(self) -> Iterator[Run]:
        """Yields perf's runs that have rows. CSV rows without time that repeat are taken apart, a run each time."""
        for run in self.runs:
            # The event is no unit of what is a cgroup by other rows: `12 cycles test`.
            cgroups = {row.cgroup for row in run.values} - {""}
            run.values = [
                row._replace(unit="", event=row.unit, cgroup=row.event) if row.unit and row.event in cgroups else row
                for row in run.values
            ]
            keys = run.keys
            is_timed = any(row.time for row in run.values)
            size = len(keys)
            if not (run.is_text or is_timed):
                periods = (some for some in range(1, size) if size % some == 0 and keys[some:] == keys[:-some])
                size = next(periods, size)
            for first in range(0, len(keys), size or 1):
                yield replace(run, values=run.values[first : first + size])


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
_WITHOUT_DRAM = ("pkg", "cores")
_FEW_UNITS = 40  # half of the last digit that is printed is worth a word where it is more than this part of the joules
_OF_USER = (":u", "/u")
_CUT_OFF = "(cut off)"  # the places that the rest of a list is of
_LATE = 0.5  # of an interval: a first one that ends later than this behind its length began later than perf (assumed)
_LEAST_HZ = 4e8  # a CPU's lowest clock at work, as of Intel's and AMD's laptops (assumed)
_IDLE_HZ = 2e8  # a CPU's cycles in each second, idle or not: fewer are a tenth of the time or less, at 2 GHz (assumed)
# What perf's header says where no program was run for it; which CPUs.
_NO_PROGRAM = pattern(r"system wide|CPU\(s\) (?P<cpus>\S+)|(?:process|thread) id .*|BPF program\(s\) .*")
_BY_DEFAULT = [CPU_CLOCK, "context-switches", "cpu-migrations", "page-faults"]
_OF_ALL, _NEARLY_ALL = 1e-4, 5e-3  # a clock this near to a whole number of CPUs runs on all of them
_MUCH_MORE = 0.05  # of a sum, that is worth a word


def domain(event: str) -> str | None:
    """The domain of a perf energy event: "pkg" of `power/energy-pkg/`; None for others."""
    match = _ENERGY.fullmatch(event)
    return match and (match[1] or f"{match[2]}s")


class _Row(Row):
    """What perf counted in a run, an interval or a cgroup of it.

    joules: by domain. taken_back: how much more perf's own sum of an event is, 0.37 for 37 %, where a program spent
    more than all its time on its cores. So it is of several threads: perf's scaling may have been right of some.
    """

    joules: dict[str, Parts] = field(default_factory=dict)
    packages: int | None = None
    taken_back: float = 0.0

    def measure(self, run: Run, time_s: float, places: Collection[str]) -> None:
        """Work out how many sockets and cores perf's run kept busy, and its joules by what they cover.

        places: where something was counted. time_s: of the run, of which this may be one of several cgroups.
        """
        # The counters of packages ran for so many times the time of the run, and clocks tell how many cores were busy.
        sockets_ns = sum(float(value.runtime_ns or 0) for value in run.values if domain(plain(value.event)[0]) == "pkg")
        sockets = ratio(sockets_ns / 1e9, time_s) or 0.0
        self.packages = len(set(filter(_SOCKET.fullmatch, places))) or None
        if 1 <= sockets < LARGEST and abs(sockets - round(sockets)) < 0.05:
            self.packages = round(sockets)
        sizes: dict[str, float | None] = {log.SOCKETS: self.packages}
        if len(run.innermost_cgroups) < 2:
            self.time_s = time_s
            sizes[log.CORES] = run.busy_s / time_s if time_s > 0 else None
        # Of packages apart, the clock is that of one.
        if run.is_of_all and not (self.packages and any(places)):
            sizes[log.CPUS] = max(run.cpus, default=0.0)
        self.more = {name: (float(size), log.OTHER) for name, size in sizes.items() if size}
        energy = {name: parts.total for name, parts in self.joules.items() if not parts.unknown}
        widest = next((name for name in _EVENTS.energy if name in energy), None)
        if widest is not None:
            covers, ram_j = _EVENTS.energy[widest], 0.0
            if widest == "pkg":
                covers = either(mapped(counted, self.packages, "processor package"), "processor packages")
            if widest in _WITHOUT_DRAM and "ram" in energy:
                covers, ram_j = f"{covers} and DRAM", energy["ram"]
            self.more[covers] = energy[widest] + ram_j, log.JOULE


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
    whole = next((run for run in runs[:-1] if runs[-1].is_cut_behind(run)), None)
    if whole is not None:
        rest = runs.pop().keys
        lines.is_cut = False
        source.notes.append(
            f"{ON_TOTALS}a further run is cut off behind {len(rest)} of {len(whole.keys)} rows, so it is left out"
        )
    last = next((run.values[-1] for run in runs[-1:]), Value())
    if lines.is_cut and last.place:  # the list of CPUs or sockets goes on
        runs[-1].values.append(last._replace(place=_CUT_OFF, value="", runtime_ns=""))
    by_run = [list(_rows(run, parts == log.INTERVAL)) for run in runs]
    rows = list(chain.from_iterable(by_run))
    times = [[value.time for value in run.values] for run in runs]
    is_cut = lines.is_cut or any(each[0] != "" and each.count(each[-1]) < each.count(each[0]) for each in times)
    # Runs of other events are passes over the same program, each in a table of its own; but what is told by interval
    # is one run, of which such runs are stretches that lost some events.
    is_one_run = any(map(any, times))
    events = [frozenset(name for row in own for name in (*row.events, *row.joules)) for own in by_run]
    units = {unit for row in rows for parts in row.events.values() for *_, unit in parts}
    device = lines.cpu or _device(units.union(*events))
    for row in rows:
        row.device = device
    alike = gathered((not is_one_run and names, own) for names, own in zip(events, by_run, strict=True))
    together = [list(chain.from_iterable(of_same)) for of_same in alike.values()]
    tables = [table(perf.KIND, own, keep, lacks_rows=is_cut) for own in together]
    totals = [parts.total for row in rows for parts in (*row.events.values(), *row.joules.values())]
    if all(np.isnan(each.counters.values).all() for each in tables) or all(map(math.isnan, totals)):
        raise LogError(f"{source.path}: {_nothing(runs, rows)}")
    return source.log(
        tables,
        [*source.notes, *_notes(runs, rows, keep), *_samples(lines.sampled)],
        lines=lines.number,
        skipped_lines=lines.others,
        command=only({run.program for run in runs if run.command}),
        device=device,
    )


def _device(events: Iterable[str]) -> str | None:
    """The CPU, as far as names of events, and of the units that counted them, tell it; None: they do not."""
    names = (name for name, own in _EVENTS.devices.items() for event in events if re.fullmatch(f"(?i){own}", event))
    return next(names, None)


def _rows(run: Run, apart: bool) -> Iterator[_Row]:
    """The rows of a table for a run of perf, one a cgroup. apart: and one an interval."""
    stretches = [run]
    if apart:
        of_intervals = groupby(run.values, key=attrgetter("time"))
        stretches = [replace(run, values=list(values), elapsed="", cpu=[]) for _, values in of_intervals]
    begin_s = run.begin_s
    for stretch in stretches:
        interval = when(apart, stretch.values[0].time)
        for cgroup in stretch.innermost_cgroups or [""]:
            took_s = stretch.time_s
            if interval:
                took_s = float(interval) - begin_s
            row = _row(stretch, cgroup, took_s)
            row.interval = interval or None
            yield row
        begin_s = float(interval or 0)


def _row(run: Run, cgroup: str, time_s: float) -> _Row:
    """The row of a table for a cgroup of a run, or of an interval, that took `time_s`."""
    row = _Row(cgroup or run.command or when(run.is_of_all, WHOLE_MACHINE) or log.WHOLE_PROGRAM)
    readings = chain.from_iterable(run.reading(value) for value in run.values if value.cgroup == cgroup)
    merged = {of_part: _mean(several) for of_part, several in gathered(readings).items()}
    for (event, part), reading in merged.items():
        sums = row.events if domain(event) is None else row.joules
        sums.setdefault(domain(event) or event, Parts())[part] = reading
    places = {(place, unit) for _, (_, place, unit) in merged}
    for parts in (*row.events.values(), *row.joules.values()):
        _settle(parts, {value.time for value in run.values}, places)
    row.drop_wrapped(_EVENTS.instructions.__contains__)
    if not run.is_of_all:
        _take_back(row, merged)
    row.measure(run, time_s, [place for place, _ in places])
    return row


def _mean(readings: Sequence[Reading]) -> Reading:
    """A part of an event of several groups: its mean by how long each was counted, and the longest of their times."""
    value, share = max(readings, key=itemgetter(1))
    counted_for = sum(each for _, each in readings if each > 0)
    if len(readings) > 1 and share < ALL and counted_for:
        value = sum(value * each for value, each in readings if each > 0) / counted_for
    return value, share


def _settle(parts: Parts, times: Collection[str], places: Collection[tuple[str, str]]) -> None:
    """Mark the parts of an event LOST, in place, that others of its unit have, as those of an interval or a CPU.

    A kind of cores that never ran does not matter.
    """
    units = {unit for *_, unit in parts}
    ahead = {part[:2] for part in parts}
    for part in [part for part, (number, _) in parts.items() if len(units) > 1 and math.isnan(number)]:
        del parts[part]
    expected = {place for place, unit in places if unit in units or _SOCKET.fullmatch(place)}
    for time, place in set(product(times, expected)) - ahead:
        parts[time, place, ""] = math.nan, LOST


def _take_back(row: _Row, merged: Mapping[tuple[str, Part], Reading]) -> None:
    """Weigh what a program did on kinds of cores in turn, in place, by its time on each.

    That is the time of the event that was counted for the longest there. perf scales what the program did on each kind
    up to the whole time (lore.kernel.org: "inflated per-PMU counts"). Of a kind that had all of it beside others, or of
    unknown time, the value is what was counted.
    """
    spent: dict[Part, float] = {}
    for (_, part), (_, share) in merged.items():
        if perf.is_core(part[2]):
            spent[part] = max(share, spent.get(part, 0.0))
    are_several = max(summed((part[:2], share) for part, share in spent.items()).values(), default=0.0) > ALL + 1
    for parts in row.events.values():
        scaled = parts.total
        for own in gathered((part[:2], part) for part, (number, _) in parts.items() if not math.isnan(number)).values():
            shares = [spent.get(part, ALL) for part in own]
            whole = sum(shares)
            if len(own) > 1 and whole and (whole <= ALL + 1 or max(shares) < ALL):
                for part, share in zip(own, shares, strict=True):
                    parts[part] = parts[part][0] * share / min(whole, ALL), parts[part][1]
        if are_several and parts.total:
            row.taken_back = max(row.taken_back, scaled / parts.total - 1)


def _nothing(runs: Sequence[Run], rows: Sequence[_Row]) -> str:
    names = [f"`{name}`" for row in rows for name, parts in row.events.items() if math.isnan(parts.total)]
    program = next(filter(None, (run.program for run in runs)), "PROGRAM")
    labels_ = filter(None, (_NO_PROGRAM.fullmatch(run.command or "") for run in runs))
    on = next((f"-C {label['cpus']} " for label in labels_ if label["cpus"]), "")
    callgrind = f"`eprof run --profiler callgrind {program}`"
    what = f"{few(list(dict.fromkeys(names)), _EXAMPLES)} could not be counted, as in virtual machines without counters"
    remedy = f"{callgrind}, or on a machine with counters"
    if not names:
        events = dict.fromkeys(f"`{value.event}`" for run in runs for value in run.values)
        asked = f"only {few(list(events), _EXAMPLES)} {when(len(events) == 1, 'was') or 'were'} asked for"
        what = when(events, asked) or "no line below its header is a count"
        remedy = f"`perf stat {on}-e cycles,instructions {program}`; where these cannot be counted, {callgrind}"
    times = [row.time_s for row in rows if not math.isnan(row.time_s)]
    who = when(len(times) > 1, f"{len(times)} runs together") or "the run"
    packages = max((row.packages or 0 for row in rows), default=0)
    told = when(times, f"; it tells only that {who} took {sum(times):.6g} s{_constant(sum(times), packages)}")
    least = [
        f"{parts.total:.6g} J of {_EVENTS.energy.get(name, name)}"
        for row in rows
        for name, parts in row.joules.items()
        if parts.unknown and parts.total > 0
    ]
    seen = when(least, f"; where rows are lost, a meter saw at least {few(least, _EXAMPLES)}")
    return f"perf counted nothing of the processor ({what}){told}{seen}; count with {remedy}"


def _constant(time_s: float, sockets: int) -> str:
    """The end of one of perf's notes: what constant power of whole sockets, 0: untold, takes at most in this time."""
    low_w, high_w = cpus.constant_span_w()
    most_j = float(f"{high_w * (sockets or 1) * time_s:.3g}")
    watts, each = f"{low_w:g} to {high_w:g} W", f" ({counted(sockets, 'socket')} of "
    if not sockets:
        each = " in each socket ("
    return f", in which constant power takes {most_j:,g} J at most{each}{watts})"


def _notes(runs: Sequence[Run], rows: Sequence[_Row], keep: Container[str] | None) -> Iterator[str]:
    events = [(name, parts) for row in rows for name, parts in row.events.items()]
    lost = [name for name, parts in events if math.isnan(parts.total)]
    yield from unused_notes(dict.fromkeys(name for name, parts in events if not math.isnan(parts.total)), keep)
    values = [value for run in runs for value in run.values]
    if all(math.isnan(row.time_s) for row in rows):
        yield from _by_running_times(values, rows)
    clock_s = sum(run.clock_s(clock) for run in runs for clock in run.of(CPU_CLOCK))
    mean_hz = sum(parts.total for name, parts in events if name in _EVENTS.cycles) / (clock_s or math.nan)
    if 0 < mean_hz < _IDLE_HZ and all(row.kernel == WHOLE_MACHINE for row in rows):
        slow = when(mean_hz < 1e6, "< 1 MHz") or f"{mean_hz / 1e6:.0f} MHz"
        yield f"{ON_TOTALS}{HARDLY_WORKED} ({slow} each, idle time and all): most joules are idle"
    in_kernel = list(_in_kernel(runs))
    yield from in_kernel
    yield from _of_joules(runs, rows)
    scaled = [name for name, parts in events if 0 < parts.running < ALL]
    lacking = [name for name, parts in events if parts.has_lost and name not in lost]
    joules = [
        f"power/energy-{name}/"
        for row in rows
        for name, parts in row.joules.items()
        if parts.unknown and parts.total >= 0
    ]
    cgroups = sorted({value.cgroup for value in values if value.cgroup} - {row.kernel for row in rows})
    by_perf = when(not any(run.is_unscaled for run in runs), " by perf")
    sentences = (
        (scaled, "events", f"counted in a part of the time and scaled up{by_perf}, so these are estimated"),
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
    if (more := max(row.taken_back for row in rows)) > _MUCH_MORE:
        yield (
            f"{ON_TOTALS}the kinds of cores were on for more than the whole time, as of several threads: numbers are "
            f"those of their shares of it, and perf's own sums, scaled up, are up to {more:.0%} more"
        )
    if any(value.is_mean for value in values):
        yield "values are means over the runs of `perf stat -r`, so a row is one run"
    if any(value.event.endswith(_OF_USER) for value in values):  # as for users without privileges
        counted_of = f"{when(in_kernel, ON_TOTALS)}only user space was counted (`:u`)"
        yield f"{counted_of}; what the kernel did for the program is not in the counts"


def _by_running_times(values: Sequence[Value], rows: Sequence[_Row]) -> Iterator[str]:
    """A note on power, or on the longest time of a run, by how long perf's counters ran where no time is told."""
    whole = [value for value in values if value.runtime_ns and value.running == _WHOLE]
    # On each package the counter of its joules ran as long as the run took.
    packages_s = sum(float(value.runtime_ns) for value in whole if domain(plain(value.event)[0]) == "pkg") / 1e9
    packages = [row.joules["pkg"] for row in rows if "pkg" in row.joules]
    if packages_s and not any(parts.unknown or parts.running < ALL for parts in packages):
        watts = sum(parts.total for parts in packages) / packages_s
        yield f"{ON_TOTALS}each package drew {watts:.3g} W, as its joules were counted for {packages_s:.3g} s in all"
    elif whole and all(row.kernel == WHOLE_MACHINE for row in rows):
        # What counted on all CPUs, or of none, counted as long as the run took, each unit of it.
        most_s = min(float(value.runtime_ns) for value in whole) / 1e9
        constant = _constant(most_s, max(row.packages or 0 for row in rows))
        yield f"{ON_TOTALS}the run took at most {most_s:.3g} s, as long as its counters counted{constant}"


def _in_kernel(runs: Sequence[Run]) -> Iterator[str]:
    """A note if much of the processor time was in the kernel, as perf tells it; else by the cycles of user space.

    What these take of the time of a processor at the lowest clock is the most that it was not in the kernel.
    """
    times = [tuple(map(run.number, run.cpu)) for run in runs if len(run.cpu) == 2]  # user, sys
    if times:
        user_s, sys_s = np.sum(times, axis=0)
        yield from log.much_in_kernel(user_s + sys_s, sys_s)
        return
    told = [run for run in runs if run.busy_s and run.user_cycles >= 0]
    used_s, user_s = (sum(run.busy_s for run in told), sum(run.user_cycles for run in told) / _LEAST_HZ)
    yield from log.much_in_kernel(used_s, used_s - user_s, least="At least ")


def _of_joules(runs: Sequence[Run], rows: Sequence[_Row]) -> Iterator[str]:
    """Notes on perf's joules: of domains inside of others, printed with few digits, and of some rows only."""
    known = [row.joules for row in rows if not any(parts.unknown for parts in row.joules.values())]
    for whole, of, part, whose in _INSIDE:
        both = [(joules[whole].total, joules[part].total) for joules in known if {whole, part} <= joules.keys()]
        yield from metered_part(sum(of_whole for of_whole, _ in both), of, sum(of_part for _, of_part in both), whose)
    told = {name for row in rows for name in row.joules}
    told = told & {"pkg", "ram"} or told
    printed = gathered(
        (value.event, (run.number(value.value), value.value.replace(",", ".").partition(".")[2]))
        for run in runs
        for value in run.values
        if value.unit == "Joules" and domain(plain(value.event)[0]) in told
    )
    for event, several in printed.items():
        total_j = sum(joules for joules, _ in several if joules >= 0)
        half_j = sum(0.5 * 0.1 ** len(decimals) for joules, decimals in several if joules >= 0)
        if half_j > total_j / _FEW_UNITS:
            span = f"{max(total_j - half_j, 0.0):.3g} to {total_j + half_j:.3g} J"
            yield f"{ON_TOTALS}by the decimals that perf printed, `{event}` is {span}"


def _samples(lines: Iterable[re.Match[str]]) -> Iterator[str]:
    """A sentence on each table of `perf report` that stands beside the counts; none on a table that comes twice."""
    event, tables = "", dict[str, list[tuple[float, str]]]()
    for line in lines:
        event = line[1] or event
        if line[2]:
            tables.setdefault(event, []).append((float(line[2]), line[3].strip()))
    for event, shares in tables.items():
        names = labels([function for _, function in shares], _LABEL)
        most = sorted(zip((share for share, _ in shares), names, strict=True), reverse=True)[:_MOST_SAMPLED]
        told = ", ".join(f"{share:.0f} % in {name}" for share, name in most)
        of = phrase("`{}`", event) or "an event that it does not name"
        if sum(share for share, _ in shares) < ALL + 1:
            yield f"{ON_TOTALS}samples of `perf report`: {told} (of {of}); joules are not split by them"

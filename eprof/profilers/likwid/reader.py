"""Reader of what likwid-perfctr writes: CSV (`-O`) or text; several runs may stand in one file.

Marker regions are kernels, else the whole program is one. Counts are added up over threads: counters of a socket have
their value on one thread of it, and no or 0 on the others. The channels of a memory controller count the same event and
are added up too. Only tables of raw counts are read, and the run time from those of metrics; tables of statistics tell
both again. The groups of events of several runs are passes over the same regions.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import count, pairwise

import numpy as np
from msgspec import Struct, convert, field

from eprof.base import cpus
from eprof.base.arrays import Floats
from eprof.base.errors import LogError
from eprof.base.optional import gathered, only, summed
from eprof.base.resources import folder
from eprof.base.text import few, pattern, when
from eprof.base.toml import Document
from eprof.logs import log
from eprof.logs.log import ON_TOTALS, WHOLE_PROGRAM, Log, metered_part
from eprof.logs.stream import Source
from eprof.profilers.likwid import KIND
from eprof.readers.cells import LARGEST, unused_notes
from eprof.readers.counted import ALL, LOST, Part, Parts, Reading, Row, table
from eprof.readers.sections import fed

_ABOUT = pattern(r"CPU (name|type|clock):[\s,]*+((?:.*[^\s,])?)[\s,]*")
# likwid-bench, which is often what is profiled, tells what its loop moves.
_BENCHMARK = pattern(r"(Size per thread|Data volume \(Byte\)):\s*+([0-9]{1,18})\s*")
_MOVED, _BEYOND_L2 = "likwid-bench: Data volume", 4e6  # bytes of a thread's arrays that no L2 holds
_TITLES = (
    pattern(
        r"TABLE,(?:Region (?P<region>.*),)?Group (?P<number>\d{1,9}) Raw,(?P<group>[^,]*)(?:,(?P<rows>\d{1,9}))?.*"
    ),
    pattern(r"(?:Region (?P<region>.*), )?Group (?P<number>\d{1,9}): (?P<group>\S+)(?P<rows>)"),
    pattern(r"Group (?P<number>\d{1,9}) (?P<group>\S+): Region (?P<region>.*)(?P<rows>)"),  # until LIKWID 4.0
)
_THREAD = pattern(r"(?:HWThread|Core) [0-9]+")
_TIME = pattern(r"(?:RDTSC )?Runtime(?: \((?:RDTSC|gettimeofday)\))? \[s\]")
_NUMBER = pattern(r"[0-9]{1,40}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?")
_CLOCK = pattern(r"([0-9]{1,2}(?:\.[0-9]{1,12})?) GHz")
# Of a time line (-t): the events of a group, and what was counted in an interval, by event and then by thread.
_TIMELINE = pattern(r"# GID([|,])EventCount\1CpuCount\1Total runtime \[s\]\1(?P<events>.+)")
_OF_CORES = pattern(r"(?:FIXC|PMC|PWR|TMP)[0-9]+")  # counters of which a table has no more for an event
_BETWEEN = pattern(r"[\s,]+")
_BEFORE_EVENTS = 4
_TIME_LINE = "time line"
_BOTH = "processor packages and DRAM"
_NAMED = 3
# A region holds others where it has hardly more instructions and cycles of its own; counts have 7 digits,
# and threads do not begin and end a region together.
_OWN, _ROUNDING, _SKEW = 0.05, 1e-5, 0.01
_SPECK = 0.01  # of the time: a region that takes less changes no total
_MOST_CALLS = 10**12  # more are damage
# Tables with a column for each thread, and how many columns stand before those.
_TABLES = {"Event": 2, "Region Info": 1, "Metric": 1}


class _A64fx(Struct, forbid_unknown_fields=True):
    nj: dict[str, int]
    metrics: list[str]
    covers: str


class _Events(Struct, forbid_unknown_fields=True):
    """The events that are more than counts (`counters/likwid/events.toml`)."""

    instructions: tuple[str, ...]
    cycles: tuple[str, ...]
    reference: tuple[str, ...]
    flops: tuple[str, ...]
    precisions: dict[str, str]
    packages: tuple[str, ...]
    dram: tuple[str, ...]
    a64fx: _A64fx

    @property
    def joules(self) -> tuple[str, ...]:
        """The events of LIKWID that are joules of sockets."""
        return (*self.packages, *self.dram)

    def are_instructions(self, event: str) -> bool:
        """Whether LIKWID's event is of all instructions."""
        return event.startswith(self.instructions)

    def are_of_work(self, event: str) -> bool:
        """Whether LIKWID's event is of instructions or cycles, which no program does without."""
        return event.startswith((*self.instructions, *self.cycles, *self.reference))


_EVENTS = convert(Document.read(folder("counters") / "likwid" / "events.toml").data, _Events)
_A64FX = _EVENTS.a64fx


class _Block(Row):
    """What LIKWID counted of a region, or of the whole program, with one group of events: a row of a table.

    Parts are threads, and their counters. number: of the group in its run, from 1. missing: how many rows its title
    announces that were not read yet; 0 where it announces none. sockets: how many have joules of their package; 0: not
    told. joules: metrics of an A64FX. times: texts of its run time, of each thread and table. is_share: the group was
    counted in a part of the run only. clock_hz: of the time stamp counter; NaN: not told.
    """

    group: str = ""
    number: int = 1
    missing: int = 0
    sockets: int = 0
    joules: dict[str, float] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)
    is_share: bool = False
    clock_hz: float = math.nan

    def add(self, event: str, counter: str, readings: Sequence[Reading], interval: str = "") -> None:
        """Add what a counter of LIKWID's has of an event, thread by thread."""
        parts = self.parts(event)
        if any(counter == each for *_, each in parts):  # the row again, or one of a region whose title is lost
            parts[interval, "again", counter] = math.nan, LOST
            return
        parts |= {(interval, str(thread), counter): reading for thread, reading in enumerate(readings)}
        if event in _EVENTS.packages:
            self.sockets = sum(joules > 0 for joules, _ in readings)

    def lose_channels(self) -> None:
        """Mark what LIKWID counts channel by channel, in place, where the table may go on with further channels."""
        for parts in self.events.values():
            if not all(_OF_CORES.fullmatch(counter) for *_, counter in parts):
                parts["", "lost", ""] = math.nan, LOST

    @property
    def cells(self) -> list[tuple[str, Part]]:
        """Each count of a thread that LIKWID's table has, by its event and part."""
        return [(event, part) for event, parts in self.events.items() for part in parts if part[1].isdecimal()]

    @property
    def numbers(self) -> Floats:
        """An array of the time of a LIKWID block, then each of its cells; 0 for what is not known."""
        counts = [self.events[event][part][0] for event, part in self.cells]
        numbers: Floats = np.nan_to_num(np.array([self.time_s, *counts]))
        return numbers

    def without(self, numbers: Floats) -> None:
        """Take the numbers of regions inside of this one of LIKWID's away, in place."""
        time_s, *counts = np.maximum(self.numbers - numbers, 0.0).tolist()
        self.time_s = round(time_s, 9)
        for (event, part), rest in zip(self.cells, counts, strict=True):
            known, share = self.events[event][part]
            if not math.isnan(known):
                self.events[event][part] = rest, share

    def drop_idle_counters(self) -> list[str]:
        """Drop LIKWID's cycles and instructions that are 0 on all threads where others are not; returns their names."""
        work = {event: parts.total for event, parts in self.events.items() if _EVENTS.are_of_work(event)}
        idle = [event for event, number in work.items() if number == 0 < np.nansum([*work.values()])]
        for event in idle:
            del self.events[event]
        return idle

    def sum_of(self, names: Iterable[str]) -> float:
        """The sum of what LIKWID's threads counted of some events; 0 where nothing is known."""
        return float(np.nansum([self.events[name].total for name in names if name in self.events]))

    def lacks(self, names: Iterable[str]) -> bool:
        """Whether threads have no number of some of LIKWID's events."""
        return any(self.events[name].unknown for name in names if name in self.events)

    def measure(self) -> None:
        """Work out how many cores a LIKWID group kept busy, and its joules by what they cover."""
        if _A64FX.nj.keys() <= self.events.keys():
            if not self.is_share and not self.lacks(_A64FX.nj):
                self.more[_A64FX.covers] = self._joules_of_a64fx(), log.JOULE
            return
        self.more[log.CORES] = self._cores(), log.OTHER
        packages, dram = self.sum_of(_EVENTS.packages), self.sum_of(_EVENTS.dram)
        if packages and not self.lacks(_EVENTS.joules):
            self.more[_BOTH if dram else "processor packages"] = packages + dram, log.JOULE
            self.more[log.SOCKETS] = float(self.sockets), log.OTHER

    def _cores(self) -> float:
        """How many cores a region kept busy: its cycles over those of its busiest thread, which may idle too.

        Where no cycles tell it, LIKWID looked at no more than it has columns of threads.
        """
        cycles = next((own for event, own in self.events.items() if event.startswith(_EVENTS.cycles)), Parts())
        busy = summed((thread, number) for (_, thread, _), (number, _) in cycles.items() if number > 0).values()
        if not busy:
            return float(len({thread for _, (_, thread, _) in self.cells}))
        cores = sum(busy) / max(busy)
        # Cycles that pass at a known clock tell it too, where they were counted all the time, on all threads.
        by_clock = self.sum_of(_EVENTS.reference) / (self.clock_hz * self.time_s or math.nan)
        if by_clock > 0 and not self.is_share and not self.lacks(_EVENTS.reference):
            cores = min(cores, by_clock)
        return cores

    def _joules_of_a64fx(self) -> float:
        if len(self.joules) == len(_A64FX.metrics):  # as LIKWID's metrics have them
            return sum(self.joules.values())
        counts = {event: self.events[event].total for event in _A64FX.nj}
        nj = sum(counts[event] * size for event, size in _A64FX.nj.items())
        if all(counts[event] % size == 0 for event, size in _A64FX.nj.items()):  # numbers that are nJ already
            nj = sum(counts.values())
        return nj / 1e9


class _LikwidLines(Struct):
    """The state of LIKWID's reader between two lines. table: the one that is open; threads: how many it has.

    groups: the events of each group of a time line. is_scaled: LIKWID says that the kernel counted events in turn, so
    that all counts are estimates. is_damaged: the end of a row is lost, or the title of a table. is_open: a table of
    text has rows and no end yet.
    """

    blocks: list[_Block] = field(default_factory=list)
    cpu: dict[str, str] = field(default_factory=dict)
    table: str | None = None
    threads: int = 0
    groups: list[list[str]] = field(default_factory=list)
    is_scaled: bool = False
    is_damaged: bool = False
    is_open: bool = False
    lines: int = 0
    others: int = 0

    def feed(self, line: str) -> None:
        """Take one line of LIKWID's output, without its end."""
        self.lines += 1
        line = line.lstrip(" ")
        is_cut = line.startswith("|") and not line.rstrip().endswith("|")
        # What is lost of a metric is no count.
        self.is_damaged |= is_cut and "Metric" not in (self.table, _cells(line)[0])
        if about := _ABOUT.fullmatch(line):
            self.cpu[about[1]] = about[2]
            return
        if told := _BENCHMARK.fullmatch(line):
            self.cpu[told[1]] = told[2]
        if self._title(line) or self._header(line) or self._row(_cells(line)) or self._interval(line):
            self.is_open = self.table == "Event" and line.startswith("|")
            return
        self.is_open &= not line.startswith("+-")
        self.others += 1
        self.is_scaled |= "Perf_event uses multiplexing" in line
        if line and not line.startswith("+-"):
            self.table = None

    def _title(self, line: str) -> bool:
        """Take a line if it is the title of a LIKWID table, and begin a block if that has raw counts; whether it is."""
        title = next(filter(None, (each.fullmatch(line.rstrip()) for each in _TITLES)), None)
        if title is None and not line.startswith(("TABLE,", "STRUCT,")):
            return False
        self.table = None
        if title is not None:
            region = title["region"] or WHOLE_PROGRAM
            number, rows = int(title["number"]), int(title["rows"] or 0)
            clock = _CLOCK.fullmatch(self.cpu.get("clock", ""))
            clock_hz = 1e9 * float(clock[1]) if clock else math.nan
            block = _Block(
                region, device=self._device, group=title["group"], number=number, missing=rows, clock_hz=clock_hz
            )
            if region == WHOLE_PROGRAM and float(self.cpu.get("Size per thread", 0)) > _BEYOND_L2:
                block.parts(_MOVED)["", "", ""] = float(self.cpu.get("Data volume (Byte)", math.nan)), ALL
            self.blocks.append(block)
        return True

    @property
    def _device(self) -> str | None:
        """The CPU that LIKWID names, with its type where the name does not tell the microarchitecture."""
        name, kind = self.cpu.get("name"), self.cpu.get("type")
        if name and kind and cpus.microarchitecture(name) is None:
            return f"{name}, {kind}"
        return name or kind

    def _header(self, line: str) -> bool:
        """Take a line if it is the header of a LIKWID table; whether it is. Statistics, without threads, stay out."""
        table, *columns = _cells(line)
        if table not in _TABLES:
            return False
        self.threads = sum(_THREAD.fullmatch(column) is not None for column in columns)
        self.is_damaged |= bool(table == "Event" and self.threads and (not self.blocks or self.blocks[-1].cells))
        self.table = table if self.threads else None
        return True

    def _row(self, cells: Sequence[str]) -> bool:
        """Take cells if they are a row of the open LIKWID table (event, time, joules or calls); whether they are."""
        if self.table is None or not self.blocks or len(cells) != _TABLES[self.table] + self.threads:
            return False
        block, texts = self.blocks[-1], cells[-self.threads :]
        readings = _readings(texts)
        known = [number for number, _ in readings if not math.isnan(number)]
        block.missing -= self.table == "Event"
        if _TIME.fullmatch(cells[0]):  # an event, too, in groups that users write
            block.times += [text for text, (number, _) in zip(texts, readings, strict=True) if not math.isnan(number)]
        elif self.table == "Event":
            block.add(cells[0], cells[1], readings)
        elif cells[0] in _A64FX.metrics and known and all(share == ALL for _, share in readings):
            block.joules[cells[0]] = sum(known)
        elif cells[0] == "call count" and known:
            block.launches = int(min(max(1.0, *known), _MOST_CALLS))
        return True

    def _interval(self, line: str) -> bool:
        """Take a line of a LIKWID time line: its header, or an interval, which becomes a block; whether it is one."""
        if header := _TIMELINE.fullmatch(line.rstrip()):
            self.groups.append(header["events"].replace("|", ",").split(","))
            return True
        cells = _BETWEEN.split(line.strip(", \t"))
        if not self.groups or len(cells) <= _BEFORE_EVENTS or not all(map(_NUMBER.fullmatch, cells[:_BEFORE_EVENTS])):
            return False
        group, events, threads = (int(float(text)) for text in cells[:3])
        readings = _readings(cells[_BEFORE_EVENTS:])
        names = self.groups[group - 1] if 0 < group <= len(self.groups) else []
        if not names or events != len(names) or len(readings) != events * threads:
            self.is_damaged = True
            return True
        block = _Block(
            WHOLE_PROGRAM, device=self._device, interval=cells[3], group=f"{_TIME_LINE} {group}", number=group
        )
        for first, name in enumerate(names):
            block.add(name, str(first), readings[first * threads : (first + 1) * threads], str(len(self.blocks)))
        self.blocks.append(block)
        return True


def _readings(texts: Sequence[str]) -> list[Reading]:
    """What LIKWID's threads have in a row: nothing where they read no such counter; LOST is what is damaged."""
    numbers = [_number(text) for text in texts]
    damaged = ALL if all(map(math.isnan, numbers)) else LOST
    return [
        (number, damaged if math.isnan(number) and text not in ("", "-") else ALL)
        for text, number in zip(texts, numbers, strict=True)
    ]


def _number(text: str) -> float:
    """A number that LIKWID printed; NaN for what is none, or damage."""
    if _NUMBER.fullmatch(text) and (number := float(text)) < LARGEST:
        return number
    return math.nan


def _cells(line: str) -> list[str]:
    """The cells of a line of a LIKWID table, without the commas that fill lines of CSV up."""
    inside, separator = (line.strip().strip("|"), "|") if line.startswith("|") else (line.rstrip(", "), ",")
    return [cell.strip() for cell in inside.split(separator)]


def read(
    source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None = None, *_: object
) -> Log:
    """Read all tables of counts in a log of likwid-perfctr.

    `keep`: the counters that get a column. parts: INTERVAL has a row for each of a time line. Raises LogError if there
    is none.
    """
    walk = _LikwidLines()
    rest = fed(pieces, walk.feed)
    if walk.is_open and walk.blocks:
        walk.blocks[-1].lose_channels()
    blocks = _with_times(walk.blocks, parts == log.INTERVAL)
    idle = dict.fromkeys(event for block in blocks for event in block.drop_idle_counters())
    _name_by_precision(blocks)
    of_nesting = list(_unnest(blocks))
    blocks = [block for block in blocks if block.cells]
    if not blocks:
        raise LogError(f"{source.path}: no table of LIKWID's raw counts is in it; was likwid-perfctr stopped?")
    for block in blocks:
        block.drop_wrapped(_EVENTS.are_instructions)
    _share_joules(blocks)
    for block in blocks:
        block.measure()
        if walk.is_scaled:
            for counts in block.events.values():
                counts |= {part: (number, 0.0) for part, (number, _) in counts.items() if not math.isnan(number)}
    # A title or rows that one announces are lacking, or the last line has no end.
    is_cut = walk.is_damaged or any(block.missing > 0 for block in walk.blocks) or bool(rest.strip())
    tables = []
    by_events = gathered((f"{block.group}: {' '.join(sorted(block.events))}", block) for block in blocks)
    for collection, alike in by_events.items():
        run_of = defaultdict[str, Iterator[int]](count)  # a region that stands in a file again is of a further run
        runs = [next(run_of[block.kernel]) for block in alike]
        lacks_rows = is_cut or any(block.is_share for block in alike)
        tables.append(table(KIND, alike, keep, runs, lacks_rows=lacks_rows, collected=frozenset({collection})))
    notes = [*source.notes, *of_nesting, *_notes(blocks, walk.is_scaled, is_cut)]
    if idle:
        notes.append(f"0 though the program ran, so not counted: {few(list(idle), _NAMED)}")
    events = dict.fromkeys(event for block in blocks for event in block.events)
    notes += unused_notes([event for event in events if event not in (*_EVENTS.joules, *_A64FX.nj)], keep)
    return source.log(tables, notes, lines=walk.lines, skipped_lines=walk.others)


def _with_times(blocks: Sequence[_Block], apart: bool) -> list[_Block]:
    """LIKWID's blocks with their times, those of a time line for each interval, or if not `apart` for each group."""
    made: list[_Block] = []
    whole: dict[int, _Block] = {}
    begin_s = 0.0
    for block in blocks:
        block.time_s = _exact(block.times)
        if not block.time_s and block.sum_of(filter(_EVENTS.are_of_work, block.events)) > 0:
            block.time_s = math.nan  # LIKWID did not find the clock that it goes by
        kept = block
        if block.interval is not None:
            end_s = float(block.interval)
            block.time_s, begin_s = round(end_s - begin_s, 9), end_s
            kept = block if apart else whole.setdefault(block.number, block)
        if kept is block:
            made.append(block)
        for event, parts in block.events.items():
            kept.parts(event).update(parts)
    for block in whole.values():
        block.time_s, block.interval, block.is_share = round(begin_s, 9), None, len(whole) > 1
    return made


def _exact(times: Sequence[str]) -> float:
    """The s of LIKWID's slowest thread, from the table that writes it with most digits; NaN: not known."""
    # How many digits of each text tell something.
    digits = [len(text.partition("e")[0].replace(".", "").lstrip("0")) for text in times]
    exact = [float(text) for text, number in zip(times, digits, strict=True) if number == max(digits)]
    return max(exact, default=math.nan)


def _name_by_precision(blocks: Sequence[_Block]) -> None:
    """Name LIKWID's flops of any type, in place, by the group that takes them for one; not if a log has both groups."""
    precisions = {_EVENTS.precisions[block.group] for block in blocks if block.group in _EVENTS.precisions}
    if len(precisions) != 1:
        return
    names = {event: f"{event} ({only(precisions)})" for event in _EVENTS.flops}
    for block in blocks:
        if block.group in _EVENTS.precisions:
            block.events = {names.get(event, event): parts for event, parts in block.events.items()}


def _unnest(blocks: Sequence[_Block]) -> Iterator[str]:
    """Subtract from each LIKWID region, in place, those inside of it; yield notes on these, and on what is uncertain.

    LIKWID does not tell. A region holds those that follow it (or stand before it, if none does), where it counts no
    less than their sum of anything and hardly more instructions and cycles, in all runs and groups of events.
    """
    series: dict[tuple[object, ...], list[_Block]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    for block in blocks:
        if block.kernel != WHOLE_PROGRAM:
            group = block.group, *(event for event, _ in block.cells)
            seen[group, block.kernel] += 1
            series.setdefault((group, seen[group, block.kernel]), []).append(block)
    inside = [_holders(of_run) or _holders(of_run[::-1]) for of_run in series.values()]
    names = [{holder.kernel: [block.kernel for block in held] for holder, held in each} for each in inside]
    proven = [region for region in next(iter(names), ()) if all(each.get(region) == names[0][region] for each in names)]
    held_by = [(holder, held) for each in inside for holder, held in reversed(each) if holder.kernel in proven]
    for holder, held in held_by:  # outermost first, while what they hold is whole
        holder.without(np.sum([block.numbers for block in held], axis=0))
    if proven:
        yield f"{ON_TOTALS}{few(proven, 1, 'regions')} held other regions; rows show the rest, so nothing counts twice"
    siblings = {block.kernel for _, held in held_by for block in held}
    alone = {block.kernel: block for of_run in series.values() for block in of_run if block.kernel not in siblings}
    pairs = [
        (part, whole)
        for both in pairwise(alone.values())
        for part, whole in (both, both[::-1])
        # A region that holds others has no room for more.
        if whole.kernel not in proven and _fits(part.numbers, whole.numbers)
    ]
    if pairs:
        part, whole = max(pairs, key=lambda pair: pair[0].time_s)
        matters = part.time_s > _SPECK * sum(block.time_s for block in alone.values())
        yield (
            f"{when(matters, ON_TOTALS)}if region {part.kernel} lies inside of {whole.kernel}, it counts twice (LIKWID "
            "does not tell)"
        )


def _fits(part: Floats, whole: Floats) -> bool:
    """Whether LIKWID region `part` may lie in `whole`: no number of it (time and cells) is larger."""
    if part.shape != whole.shape:
        return False
    rounding = np.full(len(part), _ROUNDING)
    rounding[0] = _SKEW
    return bool(((part <= whole * (1 + rounding)) | (whole == 0)).all() and part[0] > 0)


def _holders(blocks: Sequence[_Block]) -> list[tuple[_Block, list[_Block]]]:
    """LIKWID's regions of a run that hold several of those behind them, each with the regions directly inside of it."""
    holders = []
    outer: list[_Block] = []  # the regions behind that nothing holds, the nearest last
    for block in reversed(blocks):
        whole = block.numbers
        names = ["", *(event for event, _ in block.cells)]
        closed = np.array([name.startswith((*_EVENTS.instructions, *_EVENTS.cycles)) for name in names])
        if not closed.any():
            closed[0] = True
        inner: list[_Block] = []
        part = np.zeros(len(whole))
        for number, follower in enumerate(reversed(outer), start=1):
            more = follower.numbers
            if more.shape != whole.shape or not _fits(part + more, whole):
                break
            part = part + more
            if number > 1 and (part >= (1 - _OWN) * whole)[closed].all():
                inner = outer[-number:]
        if inner:
            holders.append((block, inner))
            del outer[-len(inner) :]
        outer.append(block)
    return holders


def _share_joules(blocks: Sequence[_Block]) -> None:
    """Give LIKWID's groups that were counted in turn in one run, in place, the time and joules of all together."""
    runs: list[list[_Block]] = []
    for block in blocks:
        if block.kernel == WHOLE_PROGRAM and not block.group.startswith(_TIME_LINE):
            if block.number == 1 or not runs:
                runs.append([])
            runs[-1].append(block)
    for run in (run for run in runs if len(run) > 1):
        for event in _EVENTS.joules:
            of_groups = [block.events.pop(event, Parts()) for block in run]
            if not any(math.isnan(parts.total) for parts in of_groups):
                of_run = Parts({(str(at), *part[1:]): own[part] for at, own in enumerate(of_groups) for part in own})
                for block in run:
                    block.events[event] = of_run
        total_s = sum(block.time_s for block in run)
        for block in run:
            block.time_s, block.is_share = round(total_s, 6), True


def _notes(blocks: Sequence[_Block], is_scaled: bool, is_cut: bool) -> Iterator[str]:
    metered = [(block.more[_BOTH][0], block.sum_of(_EVENTS.dram)) for block in blocks if _BOTH in block.more]
    both_j, dram_j = (sum(joules[place] for joules in metered) for place in (0, 1))
    yield from metered_part(both_j, "packages and DRAM", dram_j, "DRAM's, idle or not")
    if is_cut:
        yield "titles or rows of tables are lost, or the file ends in the middle of one, so counts are lower bounds"
    if is_scaled:
        yield "the kernel counted events in turn and LIKWID scaled them up, so all counts are estimated"
    if any(block.is_share for block in blocks):
        yield (
            "groups of events were counted in turn, each in a part of the run, so their counts are lower bounds, and "
            "joules are taken only where all groups have them"
        )
    lost = dict.fromkeys(event for block in blocks for event in block.events if block.lacks([event]))
    if lost:
        yield (
            f"{few(list(lost), _NAMED)}: LIKWID has no number on some threads, or one that ran over (near a multiple "
            "of 2^47, or more than the thread's instructions), or rows of channels are cut off, so what the others "
            "counted is a lower bound"
        )
    if any(_A64FX.covers in block.more and len(block.joules) < len(_A64FX.metrics) for block in blocks):
        yield "EA_CORE, EA_L2 and EA_MEMORY are taken for 8, 32 and 256 nJ a count, as on chips of 48 cores, or for nJ"

"""Reader of what likwid-perfctr writes: CSV (`-O`) or text; several runs may stand in one file.

Marker regions are kernels, else the whole program is one. Counts are added up over threads: counters of a socket have
their value on one thread of it, and no or 0 on the others. The channels of a memory controller count the same event and
are added up too. Only tables of raw counts are read, and the run time from those of metrics; tables of statistics tell
both again. The groups of events of several runs are passes over the same regions.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from itertools import chain, count, pairwise, zip_longest
from typing import Any

import numpy as np
from msgspec import Struct, convert, field

from eprof.base import cpus
from eprof.base.arrays import Floats
from eprof.base.errors import LogError
from eprof.base.optional import gathered, only
from eprof.base.resources import folder
from eprof.base.text import few, pattern, when
from eprof.base.toml import Document
from eprof.logs import log
from eprof.logs.log import ON_TOTALS, WHOLE_PROGRAM, Log, Names, Table, TableRows, metered_part
from eprof.logs.stream import Source
from eprof.profilers.likwid import KIND, NOT_ALL, SCALED
from eprof.readers.cells import LARGEST, is_wrapped, unused_notes
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
)
_THREAD = pattern(r"(?:HWThread|Core) [0-9]+")
_TIME = pattern(r"(?:RDTSC )?Runtime(?: \((?:RDTSC|gettimeofday)\))? \[s\]")
_NUMBER = pattern(r"[0-9]{1,40}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?")
_CLOCK = pattern(r"([0-9]{1,2}(?:\.[0-9]{1,12})?) GHz")
# Of a time line (-t): the events of a group, and what was counted in an interval, by event and then by thread.
_TIMELINE = pattern(r"# GID([|,])EventCount\1CpuCount\1Total runtime \[s\]\1(?P<events>.+)")
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

    def are_of_work(self, event: str) -> bool:
        """Whether LIKWID's event is of instructions or cycles, which no program does without."""
        return event.startswith((*self.instructions, *self.cycles, *self.reference))


_EVENTS = convert(Document.read(folder("counters") / "likwid" / "events.toml").data, _Events)
_A64FX = _EVENTS.a64fx


class _Block(Struct):
    """What LIKWID counted of a region, or of the whole program, with one group of events.

    number: of the group in its run, from 1. missing: how many rows its title announces that were not read yet; 0 where
    it announces none. cells: each row with its threads' numbers, NaN where LIKWID has none; counters: the events and
    counters of these. counts: event -> their sum. sockets: how many have joules of their package; 0: not told. joules:
    metrics of an A64FX. lost: event -> how many threads have no number for it, or one that ran over. times: texts of
    its run time, of each thread and table. interval: its end on a time line, where each has a block. is_share: the
    group was counted in a part of the run only. clock_hz: of the time stamp counter; NaN: not told.
    """

    device: str | None
    region: str
    group: str
    number: int
    missing: int = 0
    cells: list[tuple[str, list[float]]] = field(default_factory=list)
    counters: set[tuple[str, str]] = field(default_factory=set)
    counts: dict[str, float] = field(default_factory=dict)
    sockets: int = 0
    joules: dict[str, float] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    times: list[str] = field(default_factory=list)
    calls: int = 1
    interval: str | None = None
    is_share: bool = False
    clock_hz: float = math.nan

    def drop_idle_counters(self) -> list[str]:
        """Drop LIKWID's cycles and instructions that are 0 on all threads where others are not; returns their names."""
        working = {event for event, numbers in self.cells if _EVENTS.are_of_work(event) and np.nansum(numbers) > 0}
        if not working:
            return []
        idle = [event for event, numbers in self.cells if _EVENTS.are_of_work(event) and set(numbers) == {0.0}]
        self.cells = [(event, numbers) for event, numbers in self.cells if event not in idle]
        return idle

    def add_up(self) -> None:
        """Add the threads of a LIKWID group up, without those whose counters ran over."""
        executed = next((numbers for event, numbers in self.cells if event.startswith(_EVENTS.instructions)), [])
        for event, numbers in self.cells:
            known = [
                number
                for number, instructions in zip_longest(numbers, executed[: len(numbers)], fillvalue=math.nan)
                if not math.isnan(number) and not is_wrapped(event, number, instructions)
            ]
            wrapped = sum(not math.isnan(number) for number in numbers) - len(known)
            if wrapped:
                self.lost[event] = self.lost.get(event, 0) + wrapped
            self.counts[event] = self.counts.get(event, 0.0) + sum(known or [math.nan])

    @property
    def time_s(self) -> float:
        """The s of a LIKWID group's slowest thread, from the table that writes it with most digits; NaN: not known."""
        # How many digits of each text tell something.
        digits = [len(text.partition("e")[0].replace(".", "").lstrip("0")) for text in self.times]
        exact = [float(text) for text, number in zip(self.times, digits, strict=True) if number == max(digits)]
        return max(exact, default=math.nan)

    @property
    def collection(self) -> str:
        """A text of a LIKWID group's name and its events: blocks with the same text go into one table."""
        return f"{self.group}: {' '.join(sorted(self.counts))}"

    @property
    def is_of_a64fx(self) -> bool:
        """Whether LIKWID counted the energy of an A64FX."""
        return _A64FX.nj.keys() <= self.counts.keys()

    def amounts(self, keep: Container[str] | None = None) -> dict[str, tuple[float, str]]:
        """LIKWID's counts by event (in `keep`), busy cores, and joules by what they cover, each with its unit."""
        counts = {event: (number, log.COUNT) for event, number in self.counts.items() if keep is None or event in keep}
        lost = {event + NOT_ALL: (float(number), log.OTHER) for event, number in self.lost.items() if event in counts}
        return counts | self._cores() | self._joules() | lost

    def _cores(self) -> dict[str, tuple[float, str]]:
        """How many cores a region kept busy: its cycles over those of its busiest thread, which may idle too.

        Where no cycles tell it, LIKWID looked at no more than it has columns of threads.
        """
        cycles = next((numbers for event, numbers in self.cells if event.startswith(_EVENTS.cycles)), [])
        busy = [number for number in cycles if number > 0]
        if self.is_of_a64fx:
            return {}
        if not busy:
            return {log.CORES: (float(max(len(numbers) for _, numbers in self.cells)), log.OTHER)}
        cores = sum(busy) / max(busy)
        # Cycles that pass at a known clock tell it too, where they were counted all the time, on all threads.
        by_clock = _known_sum(self.counts, _EVENTS.reference) / (self.clock_hz * self.time_s or math.nan)
        if by_clock > 0 and not self.is_share and self.lost.keys().isdisjoint(_EVENTS.reference):
            cores = min(cores, by_clock)
        return {log.CORES: (cores, log.OTHER)}

    def _joules(self) -> dict[str, tuple[float, str]]:
        """The joules of a LIKWID group by what they cover, and the number of sockets; {} if a socket's are lost."""
        if self.is_of_a64fx:
            if self.is_share or not self.lost.keys().isdisjoint(_A64FX.nj):
                return {}
            if len(self.joules) == len(_A64FX.metrics):  # as LIKWID's metrics have them
                return {_A64FX.covers: (sum(self.joules.values()), log.JOULE)}
            sizes = _A64FX.nj
            if all(self.counts[event] % size == 0 for event, size in sizes.items()):  # numbers that are nJ already
                sizes = dict.fromkeys(sizes, 1)
            return {_A64FX.covers: (sum(self.counts[event] * size for event, size in sizes.items()) / 1e9, log.JOULE)}
        packages, dram = (_known_sum(self.counts, names) for names in (_EVENTS.packages, _EVENTS.dram))
        if not packages or not self.lost.keys().isdisjoint(_EVENTS.joules):
            return {}
        covers = _BOTH if dram else "processor packages"
        return {covers: (packages + dram, log.JOULE), log.SOCKETS: (float(self.sockets), log.OTHER)}


def _known_sum(counts: Mapping[str, float], names: Sequence[str]) -> float:
    return sum(counts[name] for name in names if not math.isnan(counts.get(name, math.nan)))


class _LikwidLines(Struct):
    """The state of LIKWID's reader between two lines. table: the one that is open; threads: how many it has.

    groups: the events of each group of a time line. is_scaled: LIKWID says that the kernel counted events in turn, so
    that all counts are estimates. is_damaged: the end of a row is lost, or the title of a table.
    """

    blocks: list[_Block] = field(default_factory=list)
    cpu: dict[str, str] = field(default_factory=dict)
    table: str | None = None
    threads: int = 0
    groups: list[list[str]] = field(default_factory=list)
    is_scaled: bool = False
    is_damaged: bool = False
    lines: int = 0
    others: int = 0

    def feed(self, line: str) -> None:
        """Take one line of LIKWID's output, without its end."""
        self.lines += 1
        is_cut = line.startswith("|") and not line.rstrip().endswith("|")
        # What is lost of a metric is no count.
        self.is_damaged |= is_cut and "Metric" not in (self.table, _cells(line)[0])
        if about := _ABOUT.fullmatch(line):
            self.cpu[about[1]] = about[2]
            return
        if told := _BENCHMARK.fullmatch(line):
            self.cpu[told[1]] = told[2]
        if self._title(line) or self._header(line) or self._row(_cells(line)) or self._interval(line):
            return
        self.others += 1
        self.is_scaled |= "Perf_event uses multiplexing" in line
        if line and not line.startswith("+-"):
            self.table = None

    def is_cut(self, rest: str) -> bool:
        """Whether LIKWID's output lacks a title or rows that it announces, or its last line has no end."""
        lacks_rows = any(block.missing > 0 for block in self.blocks)
        return lacks_rows or self.is_damaged or bool(rest.strip())

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
            block = _Block(self._device, region, title["group"], number, rows, clock_hz=clock_hz)
            if region == WHOLE_PROGRAM and float(self.cpu.get("Size per thread", 0)) > _BEYOND_L2:
                block.counts[_MOVED] = float(self.cpu.get("Data volume (Byte)", math.nan))
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
        block = self.blocks[-1]
        texts = cells[-self.threads :]
        numbers = [_number(text) for text in texts]
        known = [number for number in numbers if not math.isnan(number)]
        lacking = sum(text not in ("", "-") for text in texts) - len(known)
        block.missing -= self.table == "Event"
        if _TIME.fullmatch(cells[0]):  # an event, too, in groups that users write
            block.times += [text for text, number in zip(texts, numbers, strict=True) if not math.isnan(number)]
        elif self.table == "Event":
            event, counter = cells[:2]
            if (event, counter) in block.counters:
                block.lost[event] = 1  # the row again, or one of a region whose title is lost
                return True
            block.counters.add((event, counter))
            block.cells.append((event, numbers))
            if event in _EVENTS.packages:
                block.sockets = sum(joules > 0 for joules in known)
            if known and lacking:
                block.lost[event] = block.lost.get(event, 0) + lacking
        elif cells[0] in _A64FX.metrics and not lacking:
            block.joules[cells[0]] = sum(known)
        elif cells[0] == "call count" and known:
            block.calls = int(min(max(1.0, *known), _MOST_CALLS))
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
        numbers = [_number(text) for text in cells[_BEFORE_EVENTS:]]
        names = self.groups[group - 1] if 0 < group <= len(self.groups) else []
        if not names or events != len(names) or len(numbers) != events * threads:
            self.is_damaged = True
            return True
        block = _Block(self._device, WHOLE_PROGRAM, f"{_TIME_LINE} {group}", group, interval=cells[3])
        block.cells = [(name, numbers[first * threads : (first + 1) * threads]) for first, name in enumerate(names)]
        packages = next((of_threads for name, of_threads in block.cells if name in _EVENTS.packages), [])
        block.sockets = sum(joules > 0 for joules in packages)
        self.blocks.append(block)
        return True


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
    blocks = _with_times(walk.blocks, parts == log.INTERVAL)
    idle = dict.fromkeys(event for block in blocks for event in block.drop_idle_counters())
    _name_by_precision(blocks)
    of_nesting = list(_unnest(blocks))
    for block in blocks:
        block.add_up()
    blocks = [block for block in blocks if block.cells]
    if not blocks:
        raise LogError(f"{source.path}: no table of LIKWID's raw counts is in it; was likwid-perfctr stopped?")
    is_cut = walk.is_cut(rest)
    _share_time(blocks)
    alike = gathered((block.collection, block) for block in blocks)
    tables = [_table(of_collection, keep, walk.is_scaled, is_cut) for of_collection in alike.values()]
    notes = [*source.notes, *of_nesting, *_notes(blocks, walk.is_scaled, is_cut)]
    if idle:
        notes.append(f"0 though the program ran, so not counted: {few(list(idle), _NAMED)}")
    events = dict.fromkeys(event for block in blocks for event in block.counts)
    notes += unused_notes([event for event in events if event not in (*_EVENTS.joules, *_A64FX.nj)], keep)
    return source.log(tables, notes, lines=walk.lines, skipped_lines=walk.others)


def _name_by_precision(blocks: Sequence[_Block]) -> None:
    """Name LIKWID's flops of any type, in place, by the group that takes them for one; not if a log has both groups."""
    precisions = {_EVENTS.precisions[block.group] for block in blocks if block.group in _EVENTS.precisions}
    if len(precisions) != 1:
        return
    names = {event: f"{event} ({only(precisions)})" for event in _EVENTS.flops}
    for block in blocks:
        if block.group in _EVENTS.precisions:
            block.cells = [(names.get(event, event), numbers) for event, numbers in block.cells]
            block.lost = {names.get(event, event): number for event, number in block.lost.items()}


def _with_times(blocks: Sequence[_Block], apart: bool) -> list[_Block]:
    """LIKWID's blocks, those of a time line with the time of their interval, or if not `apart` one for each group."""
    made: list[_Block] = []
    whole: dict[int, _Block] = {}
    begin_s = 0.0
    for block in blocks:
        if block.interval is None or apart:
            made.append(block)
        elif block.number not in whole:
            made.append(whole.setdefault(block.number, block))
        else:
            kept = whole[block.number]
            kept.cells = [
                (name, [sum(both) for both in zip(numbers, more, strict=True)])
                for (name, numbers), (_, more) in zip(kept.cells, block.cells, strict=True)
            ]
        if block.interval is not None:
            end_s = float(block.interval)
            block.times = [f"{end_s - begin_s:.9f}"]
            begin_s = end_s
    for block in whole.values():
        block.times, block.interval, block.is_share = [f"{begin_s:.9f}"], None, len(whole) > 1
    return made


def _unnest(blocks: Sequence[_Block]) -> Iterator[str]:
    """Subtract from each LIKWID region, in place, those inside of it; yield notes on these, and on what is uncertain.

    LIKWID does not tell. A region holds those that follow it (or stand before it, if none does), where it counts no
    less than their sum of anything and hardly more instructions and cycles, in all runs and groups of events.
    """
    series: dict[tuple[object, ...], list[_Block]] = {}
    seen: Counter[tuple[object, ...]] = Counter()
    for block in blocks:
        if block.region != WHOLE_PROGRAM:
            group = (block.group, *(event for event, _ in block.cells))
            seen[group, block.region] += 1
            series.setdefault((group, seen[group, block.region]), []).append(block)
    inside = [_holders(of_run) or _holders(of_run[::-1]) for of_run in series.values()]
    names = [{holder.region: [block.region for block in held] for holder, held in each} for each in inside]
    proven = [region for region in next(iter(names), ()) if all(each.get(region) == names[0][region] for each in names)]
    for holder, held in chain.from_iterable(map(reversed, inside)):  # outermost first, while what they hold is whole
        if holder.region in proven:
            whole_cells = _cells_of(holder)
            parts = np.sum([_cells_of(block) for block in held], axis=0)
            rest = iter(np.maximum(whole_cells - parts, 0.0).tolist())
            holder.times = [f"{next(rest):.9f}"]
            holder.cells = [(event, [next(rest) for _ in numbers]) for event, numbers in holder.cells]
    if proven:
        yield f"{ON_TOTALS}{few(proven, 1, 'regions')} held other regions; rows show the rest, so nothing counts twice"
    siblings = {
        block.region for holder, held in chain.from_iterable(inside) if holder.region in proven for block in held
    }
    alone = {block.region: block for of_run in series.values() for block in of_run if block.region not in siblings}
    pairs = [
        (part, whole)
        for both in pairwise(alone.values())
        for part, whole in (both, both[::-1])
        # A region that holds others has no room for more.
        if whole.region not in proven and _fits(_cells_of(part), _cells_of(whole))
    ]
    if pairs:
        part, whole = max(pairs, key=lambda pair: pair[0].time_s)
        matters = part.time_s > _SPECK * sum(block.time_s for block in alone.values())
        yield (
            f"{when(matters, ON_TOTALS)}if region {part.region} lies inside of {whole.region}, it counts twice (LIKWID "
            "does not tell)"
        )


def _cells_of(block: _Block) -> Floats:
    """An array of the time of a LIKWID block, then each count of each thread; 0 for what is not known."""
    counts = [number for _, numbers in block.cells for number in numbers]
    cells: Floats = np.nan_to_num(np.array([block.time_s, *counts]))
    return cells


def _fits(part: Floats, whole: Floats) -> bool:
    """Whether LIKWID region `part` may lie in `whole`: no number of it, as `_cells_of` has them, is larger."""
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
        whole = _cells_of(block)
        names = ["", *(event for event, numbers in block.cells for _ in numbers)]
        closed = np.array([name.startswith((*_EVENTS.instructions, *_EVENTS.cycles)) for name in names])
        if not closed.any():
            closed[0] = True
        inner: list[_Block] = []
        part = np.zeros(len(whole))
        for number, follower in enumerate(reversed(outer), start=1):
            more = _cells_of(follower)
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


def _share_time(blocks: Sequence[_Block]) -> None:
    """Give LIKWID's groups that were counted in turn in one run, in place, the time and joules of all together."""
    runs: list[list[_Block]] = []
    for block in blocks:
        if block.region != WHOLE_PROGRAM or block.group.startswith(_TIME_LINE):
            continue
        if block.number == 1 or not runs:
            runs.append([])
        runs[-1].append(block)
    for run in runs:
        if len(run) > 1:
            joules = {name: sum(block.counts.pop(name, math.nan) for block in run) for name in _EVENTS.joules}
            known = {name: number for name, number in joules.items() if not math.isnan(number)}
            total_s = sum(block.time_s for block in run)
            for block in run:
                block.counts |= known
                block.times, block.is_share = [f"{total_s:f}"], True


def _notes(blocks: Sequence[_Block], is_scaled: bool, is_cut: bool) -> Iterator[str]:
    metered = [block.counts for block in blocks if _BOTH in block.amounts()]
    both = [_known_sum(counts, _EVENTS.packages) + _known_sum(counts, _EVENTS.dram) for counts in metered]
    dram_j = sum(_known_sum(counts, _EVENTS.dram) for counts in metered)
    yield from metered_part(sum(both), "packages and DRAM", dram_j, "DRAM's, idle or not")
    if is_cut:
        yield "titles or rows of tables are lost, or the file ends in the middle of one, so counts are lower bounds"
    if is_scaled:
        yield "the kernel counted events in turn and LIKWID scaled them up, so all counts are estimated"
    if any(block.is_share for block in blocks):
        yield (
            "groups of events were counted in turn, each in a part of the run, so their counts are lower bounds, and "
            "joules are taken only where all groups have them"
        )
    if lost := list(dict.fromkeys(event for block in blocks for event in block.lost)):
        yield (
            f"{few(lost, _NAMED)}: LIKWID has no number on some threads, or one that ran over (near a multiple of "
            "2^47, or more than the thread's instructions), so what the others counted is a lower bound"
        )
    if any(block.is_of_a64fx and len(block.joules) < len(_A64FX.nj) for block in blocks):
        yield "EA_CORE, EA_L2 and EA_MEMORY are taken for 8, 32 and 256 nJ a count, as on chips of 48 cores, or for nJ"


def _table(blocks: Sequence[_Block], keep: Container[str] | None, is_scaled: bool, is_cut: bool) -> Table:
    """The table of LIKWID's blocks with the same events, a row each."""
    scaled = {SCALED: (1.0, log.OTHER)} if is_scaled else {}
    amounts = [block.amounts(keep) | scaled for block in blocks]
    absent = {name: 0.0 for each in amounts for name in each if name.endswith(NOT_ALL)}
    run_of = defaultdict[str, Iterator[int]](count)  # a region that stands in a file again is of a further run
    own: dict[str, Any] = {"run": np.array([next(run_of[block.region]) for block in blocks])}
    if blocks[0].interval is not None:
        own = {"part": Names.of(block.interval for block in blocks)}
    rows = TableRows.of(
        Names.of(block.device for block in blocks),
        Names.of(block.region for block in blocks),
        launches=[block.calls for block in blocks],
        time_s=[block.time_s for block in blocks],
        **own,
    )
    lacks_rows = is_cut or any(block.is_share for block in blocks)
    collected = frozenset({blocks[0].collection})
    return Table.of_amounts(KIND, rows, amounts, absent, collected=collected, lacks_rows=lacks_rows)

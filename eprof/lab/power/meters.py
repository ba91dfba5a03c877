"""Logs of power meters as rows: what each meter writes is said by a file of `counters/meters`, and read here.

A form is a table (a header, rows below it) or lines (patterns that readings stand in). A column is watts or joules by
the unit in its cells, in its header, below it, or in the meter's file. Samples of Prometheus (metrics with labels) are
put side by side first: a row for each moment and device. Read are what an exporter answers (`name{gpu="0"} 1.5`, maybe
with a time in ms), once or again and again; tables of queries; what `promtool query range` prints.
"""

from __future__ import annotations

import csv
import math
import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct

from eprof.base.errors import LogError
from eprof.base.optional import gathered, mapped
from eprof.base.resources import folder, tree
from eprof.base.text import pattern, when
from eprof.base.toml import Document
from eprof.lab.measurements.values import spelled
from eprof.lab.power.series import moment

WATT, JOULE = "W", "J"
# What a meter samples beside its power: shares of time in which units were busy, clocks; watts that pace its joules;
# in per cent for how long anything ran, which has no price.
SHARE, MHZ, PACE, BUSY = SAMPLED = ("share", "MHz", "sampled W", "busy %")
_LOOK = 400  # lines in which a header is looked for
_NEAR = 20  # lines behind it, in which rows begin
_LONGEST = 4096  # characters of a line or name that a meter writes; patterns take long for what is longer
_SOME = 10_000  # rows in which devices are looked for
_WORDS = {**spelled("power_w"), **dict.fromkeys(("Watt", "Watts"), 1.0), "milliwatts": 1e-3, "microwatts": 1e-6}
_UNITS = {word: (WATT, size) for word, size in _WORDS.items()}
_UNITS |= {word: (JOULE, size) for word, size in {**spelled("energy_j"), "Joule": 1.0, "Joules": 1.0}.items()}
_UNITS |= {word.lower(): unit for word, unit in _UNITS.items()}
_SECONDS = {**spelled("time_s"), "secs": 1.0, "seconds": 1.0, "msec": 1e-3, "millis": 1e-3, "milliseconds": 1e-3}
_WRITTEN = "|".join(map(re.escape, [*_UNITS, *_SECONDS, "MW", "MJ"]))
_HEADER = pattern(
    rf"(?P<name>.*?)(?:[\s_]*[\[(]\s*(?P<unit>[^\])]*?)\s*[\])]|(?:^|[\s_.])(?P<word>{_WRITTEN})(?:_total)?)", re.I
)
_POWER = pattern(r".*(power|watt).*", re.I)
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_BEFORE_NAMES = pattern(r"""\A([^,;|\t]*(\"{3}|'{3}|`)(?=\w))?\s*(#+\s*((columns|fields|header)\s*[:=])?)?""", re.I)
_CELL = pattern(rf"({_NUMBER})\s*([^\W\d]+)?")
_COMMA = pattern(r"([-+]?\d+),(\d+)(\s*[^\W\d]+)?")
_THREE = pattern(r"[-+]?[1-9]\d{0,2},\d{3}(\s*[^\W\d]+)?")  # decimals or thousands
_OF_ALL = "power|energy|draw|usage|socket|consumption|watts?|joules?"  # words of columns that name no component
_DIGIT = pattern(r"[-+.\[(]?\d")
_COMMA_TIME = pattern(r"\d+,\d+")  # in s, with a comma before its decimals
_ROUNDED = 0.006  # W or J by which rows with two decimals are off
_BLANKS = "blanks"
# What DCGM writes for a number that is blank, not found, not supported or not permitted, whole or with decimals.
UNKNOWN = dict.fromkeys([2.0**63, *(2.0**47 + reason for reason in range(4))], math.nan)
_UNKNOWN = pattern(r"(92233720368547757\d\d|14073748835532[89]|14073748835533[01])(\.0*)?")


class Column(Struct, forbid_unknown_fields=True):
    """Columns of a meter's table, by the pattern `name`: component, and unit where none is written, or `SAMPLED`."""

    name: str
    component: str
    unit: str = ""
    value: str = ""


class Table(Struct, forbid_unknown_fields=True):
    """How a meter's table looks: its header has a name for each of `header`, none of `runs` (a row is a whole run).

    rows: a pattern for the cells of a column, whose group is the device where the column tells it. threads: the place
    of their number; each name behind the time then has a value a thread, which are added up.
    Where all rows are of one and the same CPU, each is of the whole machine.
    each: the command by which each row is a moment. Without it, and without columns of `rows`, rows that add up to the
    first below their header are its parts; all are where `once`, a line, tells how long a program ran.
    run: a line where another run begins, if rows stand above it and below.
    never, later: columns of a table that nobody described which are no power, or are it where no other is.
    """

    header: list[str]
    runs: list[str] = []
    time: list[str] = []
    separator: str = ""
    rows: dict[str, str] = {}
    threads: int | None = None
    device: list[str] = []
    columns: list[Column] = []
    within: dict[str, str] = {}
    each: str = ""
    once: str = ""
    run: str = "(?!)"
    never: str = "(?!)"
    later: str = "(?!)"


class Lines(Struct, forbid_unknown_fields=True):
    """How a meter's log of lines looks: what lines `begin` or `end` a record, and readings (in_line: in the first).

    names: what components are called here.
    """

    reading: str
    begin: str = ""
    end: str = ""
    in_line: bool = False
    unit: str = ""
    names: dict[str, str] = {}
    within: dict[str, str] = {}


class Meter(Struct, forbid_unknown_fields=True):
    """How the logs of a meter are recognised and read (docs/timeline.md).

    value: what a row says of watts or joules: a "sample", which holds until the next, a "mean" since the one before, or
    "joules" since then. devices: "one"; "added" (those of one moment are parts of one); "rows" (each has a row a
    moment, also where no column tells which); "" (nobody knows). usual: its interval where nobody said another. zero:
    "absent": what is always 0 is not there. start_s: when the first row's time begins, by the log's clock. explained:
    the components whose joules a profiler's counts in the same log explain.
    """

    meter: str
    log: str
    reads: str
    value: Literal["sample", "mean", "joules"] = "sample"
    devices: Literal["", "one", "added", "rows"] = ""
    zero: Literal["", "absent"] = ""
    usual: str = ""
    interval: list[str] = []
    start_s: float | None = None
    generic: bool = False
    explained: list[str] = []
    table: Table | None = None
    lines: Lines | None = None
    samples: Samples | None = None

    def layout(self, path: str, lines: Sequence[str]) -> Layout | None:
        """Where the cells of a long log are; None where its rows are read line by line only. Raises LogError."""
        if self.table is None or self.table.threads is not None or self.devices == "added" or self.samples:
            return None
        found = layout(self.table, path, lines)
        return found if found is None or found.fits or not self.table.each else None

    def interval_s(self, lines: Sequence[str]) -> float | None:
        """The interval in s that a log tells of its readings, or the usual one of its command; None: it tells none."""
        for text in self.interval:
            for match in filter(None, (re.search(text, line[:_LONGEST]) for line in lines[:_LOOK])):
                ((unit, number),) = match.groupdict().items()
                return float(number or self.usual.split()[0]) * _SECONDS[unit] or None
        return None


class NoSeries(Struct, forbid_unknown_fields=True):
    """A kind of file with joules or watts, not over time. sign: a pattern of its first lines; use: what reads it."""

    sign: str
    what: str
    use: str = ""


class Reading(NamedTuple):
    """What one cell of a meter's log says, in W, J or as `kind` says; NaN: no number. told: its unit is known."""

    component: str
    device: str
    value: float
    kind: str = WATT
    told: bool = True
    is_step: bool = False
    within: str = ""


class Row(NamedTuple):
    """What a meter saw at one time. time: as written, or ""; unit_s: the unit of times that are numbers, if known."""

    number: int
    time: str
    readings: Sequence[Reading]
    elapsed_s: float | None = None
    unit_s: float | None = None


@cache
def known() -> tuple[list[Meter], list[NoSeries]]:
    """The meters of `counters/meters`, generic tables last, and the kinds of file that are no log of power."""
    meters, others = [], []
    for file in tree(folder("counters") / "meters", ".toml"):
        document = Document.read(file)
        others += document.typed(document.data.get("none", []), list[NoSeries])
        if "meter" in document.data:
            meters.append(document.typed(document.data, Meter))
            if (samples := meters[-1].samples) is not None:
                other = Document.read(folder("counters") / "meters" / samples.table_of)
                meters[-1].table = other.typed(other.data["table"], Table)
    return sorted(meters, key=lambda meter: meter.generic), others


def rows(meter: Meter, path: str, lines: Sequence[str]) -> Iterator[Row]:
    """The rows of a log if it is this meter's, else none. Raises LogError, with the line."""
    if meter.lines is not None:
        return _of_lines(meter.lines, lines)
    if meter.samples is not None and meter.table is not None:
        table, numbers = side_by_side(meter.samples, lines)
        return (row._replace(number=numbers[row.number - 1]) for row in _of_table(meter.table, path, table))
    return _of_table(meter.table or Table([]), path, lines)


def _unit_in_header(text: str) -> str:
    """The unit in a header: "W" in "power.draw [W]"; "?" for one in brackets that is no unit of power or time."""
    match = _HEADER.fullmatch(text[:_LONGEST])
    if match is None:
        return ""
    unit: str = match["unit"] or match["word"] or ""
    return unit if not unit or re.fullmatch(_WRITTEN, unit, re.I) else "?"


def unit_of(text: str) -> tuple[str, float] | None:
    """(WATT or JOULE, size in W or J) of a unit; None: it is neither, or MW or MJ, where M may be mega or milli."""
    if text in ("MW", "MJ"):
        return None
    return _UNITS.get(text) or _UNITS.get(text.lower())


def _amount(text: str, kind: str, size: float) -> tuple[float, bool]:
    """A cell's number times `size`, or in its own unit, in W or J (NaN: none), and whether it has a unit of its own."""
    if text[-1:].isdigit() and "_" not in text:  # most are plain numbers, which need no pattern
        with suppress(ValueError):
            number = float(text)
            return UNKNOWN.get(number, number) * size, False
    match = _CELL.fullmatch(text.strip().removesuffix("%" if kind == BUSY else ""))
    if match is not None and not match[2]:
        return float(match[1]) * size, False
    own = mapped(lambda match: unit_of(match[2]), match)
    if match is None or own is None or own[0] != kind:
        return math.nan, False
    return float(match[1]) * own[1], True


def _without_groups(number: str) -> str:
    """A number as text without signs between groups of three digits, and a point before its decimals."""
    if number[-3:-2] == ",":  # of two decimals
        return number.replace(".", "").replace(",", ".")
    return number.replace(",", "")


def _of_lines(form: Lines, lines: Sequence[str]) -> Iterator[Row]:
    """The rows of a log in which readings stand in lines. A reading that comes again begins another row, too."""
    begin, end, reading = (re.compile(text or "(?!)") for text in (form.begin, form.end, form.reading))
    time, elapsed_s, found = "", None, dict[tuple[str, str], Reading]()
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST:
            continue
        begun = begin.search(line)
        if begun:
            if found:
                yield Row(number, time, list(found.values()), elapsed_s)
            told = begun.groupdict()
            time, found = told.get("time") or "", {}
            if _COMMA_TIME.fullmatch(time):
                time = time.replace(",", ".")
            elapsed_s = mapped(lambda elapsed_ms: float(elapsed_ms) * 1e-3, told.get("elapsed_ms"))
        for match in reading.finditer(line) if begun or not form.in_line else ():
            told = match.groupdict()
            written = told["component"] or told["component2"].capitalize()
            component, device = form.names.get(written, written), told.get("device") or ""
            kind, size = unit_of(told.get("unit") or form.unit) or (WATT, 1.0)
            value, _ = _amount(_without_groups(told["value"]), kind, size)
            if (component, device) in found:
                yield Row(number, time, list(found.values()), elapsed_s)
                time, found = "", {}
            within = form.within.get(component, "")
            found[component, device] = Reading(component, device, value, kind, within=within)
        ended = end.search(line)
        if ended and found:
            yield Row(number, ended["time"], list(found.values()))
            found = {}
    if found:
        yield Row(len(lines), time, list(found.values()), elapsed_s)


class Power(NamedTuple):
    """A column to read of a meter's table. told: its unit is written, or known of the meter; else cells may say it."""

    at: int
    component: str
    kind: str
    size: float
    told: bool
    is_step: bool = False


class _Header(NamedTuple):
    """The header of a meter's table: its line's place, the separator, names; words: names that begin with a letter."""

    place: int
    separator: str
    names: list[str]
    words: Sequence[str] = ()


class Layout(Struct):
    """Where the cells of a meter's table are. fits: (place, pattern of its cells); unit_s: of times, None: unknown."""

    form: Table
    header: _Header
    powers: list[Power]
    times: list[int]
    device_at: int | None
    fits: Sequence[tuple[int, re.Pattern[str]]]
    unit_s: float | None

    @property
    def device_cells(self) -> list[int]:
        """The places of the cells that tell the device of a row."""
        places = [*(at for at, _ in self.fits), self.device_at]
        return [at for at in dict.fromkeys(places) if at is not None]

    def device(self, cells: Mapping[int, str] | Sequence[str]) -> str | None:
        """The device of a row by its cells; None: the row is of nothing that is read, such as a part of a GPU."""
        fits = {at: test.fullmatch(cells[at]) for at, test in self.fits}
        if not all(fits.values()):
            return None
        device = "" if self.device_at is None else cells[self.device_at]
        fit = fits.get(self.device_at or 0)
        return fit[1] if fit and fit.re.groups and device else device

    def row(self, number: int, cells: list[str], is_last: bool) -> Row | None:
        """The `Row` of a line's cells; None where it is none: a header, units, something else. Raises LogError."""
        form, names = self.form, self.header.names
        lacks = max(max(power.at for power in self.powers if power.kind != BUSY) + 1 - len(cells), 0)
        # A line of one cell, among rows of many, is a sentence.
        if cells == names or (lacks and (is_last or len(cells) <= max(self.times, default=1))):
            return None
        cells += [""] * max(len(names) - len(cells), 0)
        device = self.device(cells)
        if device is None:
            return None
        units = [unit_of(cells[power.at]) if cells[power.at][:1].isalpha() else None for power in self.powers]
        if any(units):
            for place, (power, unit) in enumerate(zip(self.powers, units, strict=True)):
                kind, size = unit or (power.kind, power.size)
                self.powers[place] = power._replace(kind=kind, size=size, told=True)
            self.unit_s = self.unit_s or next((_SECONDS.get(cells[at].lower()) for at in self.times), None)
            return None
        sep = self.header.separator
        readings = [reading(form, power, number, cells[power.at], device, sep) for power in self.powers]
        time = " ".join(cells[at] for at in self.times)
        # A line among the rows that has neither a time nor a number is none of the meter's.
        is_prose = bool(self.times) or not any(map(_DIGIT.search, cells))
        if is_prose and all(math.isnan(cell.value) for cell in readings) and math.isnan(moment(time).seconds):
            return None
        return Row(number, time, readings, unit_s=self.unit_s)

    def rows(self, lines: Sequence[str], before: int, is_end: bool = True) -> Iterator[Row]:
        """The rows of lines behind `before` others; is_end: the log ends with them. Raises LogError, with the line."""
        for number, cells in _body(self.form, self.header, lines, before, is_end):
            row = self.row(number, cells, is_end and number == before + len(lines))
            if row is not None:
                yield row


def _is_header(form: Table, names: Sequence[str]) -> bool:
    """Whether a line has all that the header of a meter's table has, and nothing of runs or of a command (`--show`)."""

    def has(text: str) -> bool:
        return any(map(_compiled(text).fullmatch, names))

    is_told = all(map(has, form.header)) and not any(map(has, form.runs))
    return is_told and not (form.header and any(name.startswith("--") for name in names))


@cache  # asked for some hundred names a log, of each meter
def _compiled(name: str) -> re.Pattern[str]:
    return re.compile(name, re.I)


def _is_other_header(form: Table, names: Sequence[str], lines: Sequence[str], at: int, is_end: bool) -> bool:
    """Whether a line has all that the header of a meter has, and a row follows: its columns may be others than before.

    A sentence or a command that names a column is none. at: where lines behind it begin; is_end: the log ends there.
    """
    if not form.header or not names[-1:] or not names[-1][:1].isalpha() or not _is_header(form, names):
        return False
    behind = lines[at : at + _NEAR]
    told = (_cells(line, _names(line, form.separator)[0]) for line in behind)
    are_rows = (len(cells) - len(names) in (0, 1) and any(map(_DIGIT.match, cells)) for cells in told)
    return any(are_rows) or not (behind or is_end)


def layout(form: Table, path: str, lines: Sequence[str]) -> Layout | None:
    """Where the cells of a log are, told by its first lines; None where no line is a header. Raises LogError."""
    for header in _headers(form.separator, tuple(lines[: 2 * _LOOK])):
        names = header.names
        # Most lines are rows of numbers, and the first name that each meter's header has begins with a letter.
        if form.header and not any(map(_compiled(form.header[0]).fullmatch, header.words)):
            continue
        if not _is_header(form, names):
            continue
        # One a component: of several the first, joules before watts.
        powers: dict[str, Power] = {}
        behind = lines[header.place + 1 :]
        untold = _unknown(form, header, behind[:_LOOK])
        for power in _described(form, names) if form.columns else _undescribed(form, names, path):
            before = powers.get(power.component)
            if power.at not in untold and (before is None or (power.kind == JOULE != before.kind)):
                powers[power.component] = power
        if not powers or form.header and _is_prose(form, header, powers.values(), behind):
            continue
        times = _times(form, header, behind)
        if form.header or times:
            device_at = _device(form, header, behind)
            unit_s = next((_SECONDS.get(_unit_in_header(names[at]).lower()) for at in times), None)
            told = ((_place_of(names, name), re.compile(text)) for name, text in form.rows.items())
            fits = [(at, test) for at, test in told if at is not None]
            if form.each and _is_of_one_cpu(form, header, fits, behind):
                fits = []
            return Layout(form, header, list(powers.values()), times, device_at, fits, unit_s)
    return None


def _is_of_one_cpu(form: Table, header: _Header, fits: list[tuple[int, re.Pattern[str]]], lines: Sequence[str]) -> bool:
    """Whether rows of a meter's table are all of one CPU, which is the whole machine that other logs have a row of."""
    rows = [cells for _, cells in _body(form, header, lines, header.place + 1) if len(cells) == len(header.names)]
    numbered = [[cells[at] for at, _ in fits] for cells in rows if cells != header.names]
    are_numbers = all(cell.isdecimal() for cells in numbered for cell in cells)
    return are_numbers and all(cells == numbered[0] for cells in numbered)


def _unknown(form: Table, header: _Header, lines: Sequence[str]) -> set[int]:
    """The places of columns to leave out: all of their numbers are those by which DCGM says that it does not know."""
    if not any(map(_UNKNOWN.search, lines)):
        return set()
    rows = [cells for _, cells in _body(form, header, lines, header.place + 1)]
    numbers = {at: [row[at] for row in rows if row[at:] and row[at][:1].isdigit()] for at in range(len(header.names))}
    return {at for at, cells in numbers.items() if cells and all(map(_UNKNOWN.fullmatch, cells))}


def _is_prose(form: Table, header: _Header, powers: Iterable[Power], behind: Sequence[str]) -> bool:
    """Whether a line that looks like a table's header is only prose: another header comes before any row."""
    for line in behind[:_NEAR]:
        if _is_header(form, _names(line, form.separator)[1]):
            return True
        is_of_threads = form.threads is not None and line[:1].isdigit()
        cells = _cells(line, header.separator)
        more = len(cells) - len(header.names)
        at = more * (not header.separator)  # "GPU 0" is two
        if is_of_threads or (more in (0, 1) and any(_DIGIT.match(cells[power.at + at]) for power in powers)):
            return False
    return False


def _of_table(form: Table, path: str, lines: Sequence[str]) -> Iterator[Row]:
    """The rows of a table with a header; none where no line is one. Raises LogError, with the line."""
    found = layout(form, path, lines)
    if found is not None:
        first = found.header.place + 1
        told = found.rows(lines[first:], first)
        yield from _whole(found, list(told), lines) if form.each else told


def _whole(layout: Layout, rows: list[Row], lines: Sequence[str]) -> list[Row]:
    """The rows of a table without those, below each header, that are parts of the first. Raises LogError: two runs."""
    form, header = layout.form, layout.header
    _refuse_other_runs(form, rows, lines)
    if layout.fits or not rows or any(re.search(form.each, line) for line in lines[: header.place + 1]):
        return rows
    headers = [at for at, line in enumerate(lines, 1) if _names(line, form.separator)[1] == header.names]
    groups = list(gathered((bisect(headers, row.number), row) for row in rows).values())
    most = max(range(len(layout.powers)), key=lambda at: rows[0].readings[at].value)

    def adds_up(group: list[Row]) -> bool:
        first, *others = (row.readings[most].value for row in group)
        return abs(first - sum(others)) <= _ROUNDED * len(group)

    several = [group for group in groups if len(group) > 1]
    has_run_once = any(re.search(form.once, line) for line in lines)
    # The last may be cut.
    return [group[0] for group in groups] if has_run_once or all(map(adds_up, several[:-1] or several)) else rows


def _refuse_other_runs(form: Table, rows: Iterable[Row], lines: Sequence[str]) -> None:
    """Raises LogError where a meter's log has rows of two runs: nothing tells how long one was after the other."""
    known = [row.number for row in rows if not all(math.isnan(cell.value) for cell in row.readings)]
    if not known:
        return
    once = [number for number, line in enumerate(lines, 1) if re.search(form.once, line)]
    if len(once) > 1:
        raise LogError(f":{once[1]}: a second program ran so long; cut the log in two above what that one printed.")
    for number, line in enumerate(lines[: known[-1] - 1], 1):
        if number > known[0] and re.search(form.run, line):
            raise LogError(f":{number}: another run begins, and nothing tells when; cut the log in two there.")


def reading(form: Table, power: Power, number: int, text: str, device: str, separator: str) -> Reading:
    """The `Reading` of a table's cell. Raises LogError: its comma may be of decimals or of thousands."""
    if "," in text and (comma := _COMMA.fullmatch(text)):
        if separator != ";" and _THREE.fullmatch(text):
            either = "may have decimals or thousands behind its comma; write it with a point."
            raise LogError(f":{number}: `{text}` {either}")
        text = f"{comma[1]}.{comma[2]}{comma[3] or ''}"
    value, has_unit = _amount(text, power.kind, power.size)
    told = power.told or has_unit or math.isnan(value)
    within = form.within.get(power.component, "")
    return Reading(power.component, device, value, power.kind, told, power.is_step, within)


@lru_cache(4)  # meters ask in turn for those of the same lines
def _headers(separator: str, lines: tuple[str, ...]) -> list[_Header]:
    """Candidates for the header of a table: each of the first lines, split; behind them one for rows without any."""
    found = (_names(line, separator) for line in lines[:_LOOK])
    headers = [_Header(at, *each, [name for name in each[1] if name[:1].isalpha()]) for at, each in enumerate(found)]
    return headers + _of_rows(lines)


def _names(line: str, form: str) -> tuple[str, list[str]]:
    """Split a line that may be a header: its separator and its cells. form: the separator that a meter's file gives."""
    text = _BEFORE_NAMES.sub("", line).strip()
    separator = max(",;\t|", key=text.count)
    if form.startswith(_BLANKS) and (separator not in text or form == _BLANKS):
        separator = ""
    return separator, _cells(text, separator)


def _of_rows(lines: Sequence[str]) -> list[_Header]:
    """The header that rows of nvidia-smi lack (noheader): a date, and by the first rows one cell in W that changes."""
    for place, line in enumerate(lines[:_LOOK]):
        cells = _cells(line, ",")
        watts = [at for at, cell in enumerate(cells) if _amount(cell, WATT, 1.0)[1]]
        if not watts or not moment(cells[0]).absolute:
            continue
        if len(watts) > 1:
            behind = [_cells(other, ",") for other in lines[place : place + _LOOK]]
            alike = [other for other in behind if len(other) == len(cells) and all(other[at] for at in watts)]
            watts = [at for at in watts if len({other[at] for other in alike[: max(2, len(alike) - 1)]}) > 1]
        if len(watts) != 1:
            break
        names = {0: "timestamp", watts[0]: "power.draw [W]"}
        told = [names.get(at, when("GPU-" in cell, "uuid")) for at, cell in enumerate(cells)]
        return [_Header(place - 1, ",", told, told)]
    return []


def _cells(line: str, separator: str) -> list[str]:
    if not separator:
        return line.split()
    return [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]


def _body(
    form: Table, header: _Header, lines: Sequence[str], before: int, is_end: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yields (number, cells) of a table's lines behind `before` others. Numbers that a decimal comma cut are joined.

    is_end: the log ends with these lines. Raises LogError: another header begins.
    """
    width = len(header.names)
    for number, line in enumerate(lines, before + 1):
        text = line
        if header.separator in ("", ","):
            text = line.strip().lstrip("#").strip()
        cells = _cells(text, header.separator) if form.threads is None else _of_threads(form, header, number, line)
        if cells != header.names and _is_other_header(form, cells, lines, number - before, is_end):
            raise LogError(f":{number}: another header begins, with other columns; cut the log in two there.")
        if not header.separator and len(cells) == width + 1:
            cells[:2] = [" ".join(cells[:2])]  # "GPU 0"
        if not header.separator and len(cells) != width:
            continue
        if len(cells) == 2 * width - 1 > width and all(cell.isdigit() for cell in cells[2::2]):
            cells = [cells[0], *(f"{whole}.{part}" for whole, part in zip(cells[1::2], cells[2::2], strict=True))]
        yield number, cells


def _of_threads(form: Table, header: _Header, number: int, line: str) -> list[str]:
    """The cells of a row with a value a thread for each name, added up; none: it is no such row. Raises LogError."""
    if _cells(line.strip().lstrip("#").strip(), header.separator)[:1] == header.names[:1]:
        raise LogError(
            f":{number}: another group begins, LIKWID took turns between groups, so that no power is known throughout."
        )
    cells = re.split("[ ,]", line.strip())
    first = (form.threads or 0) + 2  # behind the threads stands the time
    if len(cells) < first or not all(cell.isdecimal() for cell in cells[: first - 1]):
        return []
    threads, names = int(cells[first - 2]), len(header.names) - first
    if len(cells) - first != threads * names:
        raise LogError(
            f":{number}: {len(cells) - first} values, but its header has {names} names for each of {threads} threads."
        )
    starts = range(first, len(cells), max(threads, 1))
    sums = [sum(_amount(cell, JOULE, 1.0)[0] for cell in cells[start : start + threads]) for start in starts]
    return [*cells[:first], *map(str, sums)]


def _place_of(names: Sequence[str], text: str) -> int | None:
    """The place of the first column whose name matches a pattern, with its unit or without; None: none does."""
    fits = _compiled(text).fullmatch
    return next((at for at, name in enumerate(names) if fits(name) or fits(_name_without_unit(name))), None)


def _name_without_unit(name: str) -> str:
    """A column's name without a unit behind it."""
    match = _HEADER.fullmatch(name[:_LONGEST])
    return match["name"] if match and match["name"] and _unit_in_header(name) != "?" else name


def _times(form: Table, header: _Header, lines: Sequence[str]) -> list[int]:
    """The places of the columns that make up the time: the first whose names fit and whose first row has a time."""
    rows = (cells for _, cells in _body(form, header, lines, header.place + 1))
    first = next((cells for cells in rows if len(cells) >= len(header.names) - 1), [])
    found: list[int] = []
    for text in form.time:
        at = [_place_of(header.names, part) for part in text.split(r" \+ ")]
        if any(place is None or place >= len(first) for place in at):
            continue
        places = [place for place in at if place is not None]
        if not math.isnan(moment(" ".join(first[place] for place in places)).seconds):
            return places
        found = found or places
    return found


def _device(form: Table, header: _Header, lines: Sequence[str]) -> int | None:
    """The place of the column that tells devices apart, the one with most of them; None: no column does.

    In a table that nobody described, a column with another value in most rows only numbers the rows.
    """
    places = [at for text in form.device for at, name in enumerate(header.names) if _compiled(text).fullmatch(name)]
    some = [cells for _, (_, cells) in zip(range(_SOME), _body(form, header, lines, header.place + 1), strict=False)]
    seen = {at: len({cells[at] for cells in some if at < len(cells)}) for at in places}
    most = len(some) if form.columns else max(len(some) / 2, 2)
    return max((at for at in places if seen[at] <= most), key=seen.__getitem__, default=None)


def _described(form: Table, names: Sequence[str]) -> Iterator[Power]:
    """Yield the columns that a meter's file describes, by their names; a unit in the header comes before the file's."""
    for column, (at, name) in product(form.columns, enumerate(names)):
        match = re.fullmatch(column.name, name, re.I)
        unit = unit_of(_unit_in_header(name)) or unit_of(column.unit)
        if column.unit in SAMPLED:
            unit = column.unit, 0.01 if column.unit == BUSY else 1.0
        if match and unit:
            yield Power(at, match.expand(column.component), *unit, bool(column.unit), column.value == "joules")


def _undescribed(form: Table, names: Sequence[str], path: str) -> Iterator[Power]:
    """Columns of power of a table that nobody described, by their names and units. Raises LogError: MW may be mW."""
    times = [at for text in form.time if (at := _place_of(names, text)) is not None]
    # Likely ones first. What is no table may have 100,000 cells in a line.
    for at in sorted(range(len(names)), key=lambda at: re.fullmatch(form.later, names[at], re.I) is not None):
        name, written = names[at], _unit_in_header(names[at])
        if re.fullmatch(form.never, name, re.I) or (at in times and not unit_of(written)):
            continue
        if written in ("MW", "MJ"):
            base = written[1]
            raise LogError(f"`{name}` may be in m{base} or in millions of {base}; write it in {base}.")
        unit = unit_of(written)
        if unit is not None and names.count(name) > 1:
            raise LogError(f"two columns are called `{name}`; rename one.")
        if unit is not None or (written == "" and _POWER.fullmatch(name)):
            bare = _name_without_unit(name) if unit else name
            yield Power(at, _component(bare), *(unit or (WATT, 1.0)), unit is not None)
        elif name.lower() == "value" and "power" in Path(path).name.lower():
            yield Power(at, _component(Path(path).name.partition(".")[0]), WATT, 1.0, False)


def _component(name: str) -> str:
    """The component that a column's name means: "cpu" for "CPU power"; "power" where it names none ("energy")."""
    bare = re.sub(rf"(^|[\s._-])({_OF_ALL})(?=$|[\s._-])", " ", name.lower())
    bare = re.sub(r" [._-]+", " ", bare)
    return " ".join(bare.split()) or "power"


_SERIES = r"(?P<name>\w+)\{(?P<labels>.*)\}"
_SAMPLE = pattern(_SERIES + r"\s+(?P<value>[^\s=]+)(?:\s+(?P<time>\d+))?\s*")
_TITLE = pattern(_SERIES + r"(?:\s*=>\s*)?")
_AT = pattern(r"(?P<value>\S+) @\[(?P<time>\d+(?:\.\d+)?)\]\s*")
_LABEL = pattern(r'(?<!\w)(\w++)="?((?:[^"\\,]|\\.)*)"?')
_MOMENT = pattern(r"(?:# ?)?(\d{10,13}(?:\.\d+)?|\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)\s*")
_NAME, _VALUE, _TIME = ("__name__", "metric", "name"), ("value",), ("time", "timestamp", "ts")


class Samples(Struct, forbid_unknown_fields=True):
    """Which metrics of Prometheus are read: `name`, a pattern; the labels for devices and hosts, the best first.

    part: a label of parts of devices, which are left out. table_of: the file beside it with the table of such names.
    """

    name: str
    device: list[str]
    host: list[str]
    part: str
    table_of: str


class _Sample(NamedTuple):
    """A sample of Prometheus as it is written: its metric, labels, value, and time ("": none)."""

    name: str
    labels: Mapping[str, str]
    value: str
    time: str


def side_by_side(form: Samples, lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Samples of Prometheus as lines of CSV `timestamp,gpu,...`, a column a metric, and the log's line of each.

    Both are empty if the log holds none of the metrics in `form`.
    """
    if not any(re.search(form.name, line[:2000]) for line in lines[:400]):  # lines in which names are looked for
        return [], []
    rows: dict[tuple[int, str, str, str], dict[str, str]] = {}
    numbers = [1]
    scrape = 0
    for number, sample in _samples(lines):
        if not re.fullmatch(form.name, sample.name) or sample.labels.get(form.part):
            continue
        host, device = _first(form.host, sample.labels), _first(form.device, sample.labels)
        if sample.name in rows.get((scrape, sample.time, host, device), ()):  # the next answer, where none has a time
            scrape += 1
        key = scrape, sample.time, host, device
        if key not in rows:
            numbers.append(number)
        rows.setdefault(key, {})[sample.name] = sample.value
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    has_times = any(time for _, time, _, _ in rows)
    has_hosts = len({host for _, _, host, _ in rows}) > 1
    table = [",".join([*["timestamp"] * has_times, "gpu", *names])]
    for (_, time, host, device), row in rows.items():
        label = when(has_hosts, f"{host} ") + device
        table.append(",".join([*[time] * has_times, label, *(row.get(name, "") for name in names)]))
    return table, numbers


def _first(names: Sequence[str], labels: Mapping[str, str]) -> str:
    return next((labels[name].replace(",", " ") for name in names if labels.get(name)), "")


def _samples(lines: Sequence[str]) -> Iterator[tuple[int, _Sample]]:
    """Yields (number of the line, sample) of Prometheus' text form, a long table or a wide one, in their order."""
    time, title, header = "", None, list[str]()
    for number, line in enumerate(lines, 1):
        if (sample := _SAMPLE.fullmatch(line)) is not None:
            labels, at = dict(_LABEL.findall(sample["labels"])), sample["time"] or time
            yield number, _Sample(sample["name"], labels, sample["value"], at)
        elif (told := _MOMENT.fullmatch(line)) is not None:
            time = told[1]
        elif (value := _AT.fullmatch(line)) is not None and title is not None:
            yield number, _Sample(title["name"], dict(_LABEL.findall(title["labels"])), value["value"], value["time"])
        elif (begun := _TITLE.fullmatch(line)) is not None:
            title = begun
        elif "," in line and not line.startswith("#"):
            cells = [cell.strip() for cell in next(csv.reader([line]), [])]
            if any(cell.lower() in _TIME for cell in cells):
                header = cells
            elif len(cells) == len(header):
                yield from ((number, sample) for sample in _of_row(header, cells))


def _of_row(header: Sequence[str], cells: Sequence[str]) -> Iterator[_Sample]:
    """The samples of a row: one with its name and labels in cells, or one in each column with a series' name."""
    told = {name if name.isupper() else name.lower(): cell for name, cell in zip(header, cells, strict=True)}
    labels = {**told, **dict(zip(header, cells, strict=True))}
    time = _first(_TIME, told)
    if _first(_NAME, told) and _first(_VALUE, told):
        yield _Sample(_first(_NAME, told), labels, _first(_VALUE, told), time)
        return
    for name, cell in zip(header, cells, strict=True):
        series = _TITLE.fullmatch(name)
        if series is not None and cell:
            yield _Sample(series["name"], dict(_LABEL.findall(series["labels"])), cell, time)

"""What a program did, and when: ranges with names, from CSV, nsys (NVTX), PyTorch (Kineto), Caliper, `otf2-print`.

The innermost function owns the joules of a moment (exclusive); what is around it has them in its inclusive sum. What no
function covers is outside. So E(c) = sum_f E(c, f) + E(c, outside) is the integral of the component's power.
"""

from __future__ import annotations

import csv
import math
import sqlite3
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import DecodeError, Struct
from msgspec.json import decode

from eprof.base.arrays import Floats
from eprof.base.errors import LogError
from eprof.base.optional import either, gathered, ratio
from eprof.base.resources import lines as lines_of
from eprof.base.resources import log_start
from eprof.base.text import pattern
from eprof.lab.power.series import Series
from eprof.logs import stream

_SQLITE = b"SQLite format 3\0"
_RANGES = (59, 60, 70, 71)  # event types of NVTX that have an end
_COLUMNS = ("begin_s", "end_s", "name")
_OTF2 = pattern(r"(ENTER|LEAVE) +(\d+) +(\d+) +Region: \"(.*)\" <\d+>")
_OTF2_CLOCK = pattern(r"CLOCK_PROPERTIES +Ticks per Seconds: ([1-9]\d*),.*")
# Profiles of Caliper (as recorded, and as JSON), TAU, mpiP, CrayPat, IPM: sums over a run.
_PROFILES = (b"__rec=", b'"column_metadata"', b'"columns"', b"templated_functions", b"@ mpiP", b"CrayPat", b"##IPM")
_BEGINS, _ENDS = "event.begin#", "event.end#"
# When a record of Caliper was made, in s; whose it is.
_OFFSETS = {"time.offset.ns": 1e-9, "time.offset": 1e-6}
_RANKS = ("mpi.rank", "pthread.id", "omp.thread.id")


class Mark(Struct, frozen=True):
    """A range of time that a program marked: its name, from when to when in s, and on which rank or thread."""

    name: str
    begin_s: float
    end_s: float
    rank: str = ""


class Marks(Struct, frozen=True):
    """The marks of a file. absolute: in seconds since the epoch. notes: what is not in them."""

    marks: tuple[Mark, ...]
    absolute: bool
    notes: tuple[str, ...] = ()


def read(path: str) -> Marks:
    """Read what a program did and when from a file. Raises LogError, with the line where there is one."""
    if log_start(path, len(_SQLITE)) == _SQLITE:
        return _of_nsys(path)
    content = stream.unpacked_content(path, 1 << 30)
    if content.lstrip()[:1] == b"[":
        return _of_caliper(path, content)
    if any(sign in content[: 1 << 16] for sign in _PROFILES):
        raise LogError(
            f"{path}: is a profile, which has no times; give a trace (of Caliper: event-trace, written by "
            "cali-query -q 'SELECT * FORMAT json')."
        )
    if content.lstrip()[:1] == b"{":
        return _of_kineto(path, content)
    lines = lines_of(content)
    if any(_OTF2.match(line) or line.startswith("=== OTF2-PRINT ===") for line in lines[:1000]):
        return _of_otf2(path, lines)
    return _of_csv(path, lines)


def read_all(paths: Iterable[str]) -> Marks:
    """The marks of several files, none for no file. Raises LogError: some have dates and others have none."""
    parts = [read(path) for path in paths]
    if len({part.absolute for part in parts}) > 1:
        raise LogError("Some marks have dates and others have none; give those of one clock.")
    marks = tuple(mark for part in parts for mark in part.marks)
    return Marks(marks, any(part.absolute for part in parts), tuple(note for part in parts for note in part.notes))


def _checked(path: str, marks: Iterable[Mark], absolute: bool, notes: Sequence[str] = ()) -> Marks:
    kept = tuple(marks)
    if not kept:
        raise LogError(f"{path}: no ranges of a program are in it; give begin_s,end_s,name in CSV, or NVTX ranges.")
    return Marks(kept, absolute, tuple(notes))


def _of_csv(path: str, lines: Sequence[str]) -> Marks:
    """The marks of a table begin_s,end_s,name[,rank]. A mark without an end goes on to the end of the power.

    Programs write a mark when it begins, without its end, and again when it ends; each of them may write the header.
    """
    try:
        rows = list(csv.reader(lines))
    except csv.Error as err:
        raise LogError(f"{path}: a line is no row of a table ({err}).") from err
    names = [name.strip().lower() for name in next(iter(rows), [])]
    lacks = [name for name in _COLUMNS if name not in names]
    if lacks:
        raise LogError(
            f"{path}:1: no column {' or '.join(lacks)}; marks are begin_s,end_s,name in CSV, an nsys database, a trace "
            "of PyTorch, a trace of Caliper as JSON, or what otf2-print printed."
        )
    marks = []
    for number, row in enumerate(rows[1:], 2):
        if not any(row) or row == rows[0]:
            continue
        if len(row) < len(names):
            raise LogError(f"{path}:{number}: {len(row)} cells, but the header has {len(names)}.")
        cells = {name: cell.strip() for name, cell in zip(names, row, strict=False)}
        begin, end, name = (cells[name] for name in _COLUMNS)
        end_s = _second(path, number, end) if end else math.inf
        marks.append(Mark(name, _second(path, number, begin), end_s, cells.get("rank", "")))
    ended = {(mark.begin_s, mark.name, mark.rank) for mark in marks if mark.end_s < math.inf}
    marks = [mark for mark in marks if mark.end_s < math.inf or (mark.begin_s, mark.name, mark.rank) not in ended]
    worst = next((mark for mark in marks if mark.end_s < mark.begin_s), None)
    if worst is not None:
        begins = f"before its beginning at {worst.begin_s:g} s."
        raise LogError(f"{path}: `{worst.name}` ends at {worst.end_s:g} s, {begins}")
    return _checked(path, marks, any(mark.begin_s > 1e9 for mark in marks))


def _second(path: str, number: int, text: str) -> float:
    """A cell of marks in line `number` as a time in s. Raises LogError: it is none."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds):
        raise LogError(f"{path}:{number}: `{text[:40]}` is no time in s.")
    return seconds


def _of_nsys(path: str) -> Marks:
    """The marks of an SQLite export of nsys: NVTX ranges, since the epoch where it tells when the session began."""
    connection = sqlite3.connect(f"file:{Path(path).resolve()}?mode=ro", uri=True)
    try:
        tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
        if "NVTX_EVENTS" not in tables:
            mend = "mark the program's parts with NVTX."
            raise LogError(f"{path}: the export of Nsight Systems has no NVTX ranges; {mend}")
        start_ns = 0
        if "TARGET_INFO_SESSION_START_TIME" in tables:
            start_ns = connection.execute("select utcEpochNs from TARGET_INFO_SESSION_START_TIME").fetchone()[0]
        query = (
            "select coalesce(text, (select value from StringIds where id = textId)), start, end, globalTid "
            f"from NVTX_EVENTS where end is not null and end >= start and eventType in {_RANGES} order by start"
        )
        marks = [
            Mark(str(name), (start_ns + begin) * 1e-9, (start_ns + end) * 1e-9, str(thread))
            for name, begin, end, thread in connection.execute(query)
            if name is not None
        ]
    except (sqlite3.Error, TypeError) as err:
        raise LogError(f"{path}: the database is damaged ({err}).") from err
    finally:
        connection.close()
    return _checked(path, marks, bool(start_ns))


def _of_kineto(path: str, content: bytes) -> Marks:
    """The marks of a PyTorch trace: annotations (record_function, and the profiler's steps)."""
    from eprof.readers.pytorch_trace import parsed_trace

    try:
        trace = parsed_trace(content)
    except DecodeError as err:
        raise LogError(f"{path}: is no trace of PyTorch ({err}).") from err
    base_s = trace.base_ns * 1e-9
    marks = [
        Mark(event.name, base_s + event.ts * 1e-6, base_s + (event.ts + event.dur) * 1e-6, event.thread)
        for event in trace.events
        if event.ph == "X" and event.cat == "user_annotation" and event.dur >= 0
    ]
    return _checked(path, marks, base_s > 1e9 or any(mark.begin_s > 1e9 for mark in marks))


def _of_caliper(path: str, content: bytes) -> Marks:
    """The marks of a trace of Caliper: `cali-query -q "SELECT * FORMAT json"` of what `event-trace` recorded.

    A record begins or ends one region ("event.begin#function": "main") at "time.offset", in us, or in ns by its name.
    """
    try:
        records = decode(content, type=list[dict[str, Any]])
    except DecodeError as err:
        raise LogError(f"{path}: is no trace of Caliper, a list of records in JSON ({err}).") from err
    steps = []
    for record in records:
        key = next((key for key in record if key.startswith((_BEGINS, _ENDS))), None)
        offset = next((name for name in _OFFSETS if isinstance(record.get(name), int | float)), None)
        if key is not None and offset is not None:
            rank = " ".join(str(record[name]) for name in _RANKS if name in record)
            time_s = float(record[offset]) * _OFFSETS[offset]
            steps.append((rank, key.startswith(_BEGINS), str(record[key]), time_s))
    ended, endless = _ended_and_endless(steps)
    marks = [mark for mark in [*ended, *endless] if mark.end_s >= mark.begin_s]
    return _checked(path, sorted(marks, key=attrgetter("begin_s")), False)


def _of_otf2(path: str, lines: Sequence[str]) -> Marks:
    """The marks that `otf2-print` printed: regions; rank is the location. A tick is taken for 1 ns if not told."""
    per_s = next((float(match[1]) for match in map(_OTF2_CLOCK.fullmatch, lines) if match), None)
    tick_s = either(ratio(1.0, per_s), 1e-9)
    first = next((float(match[3]) for match in map(_OTF2.match, lines) if match), 0.0)
    steps = (match.groups() for match in map(_OTF2.match, lines) if match)
    marks, endless = _ended_and_endless(
        (location, kind == "ENTER", region, (float(ticks) - first) * tick_s) for kind, location, ticks, region in steps
    )
    notes = ["times of otf2-print are ticks, taken for ns; with -A it prints how long a tick is"] * (per_s is None)
    if endless:
        notes.append(f"{len(endless)} regions never end and were left out")
    return _checked(path, sorted(marks, key=attrgetter("begin_s")), False, notes)


def _ended_and_endless(steps: Iterable[tuple[str, bool, str, float]]) -> tuple[list[Mark], list[Mark]]:
    """The marks of regions by their `steps` (rank, whether it begins, name, s), and marks of those that never end."""
    open_: dict[str, list[tuple[str, float]]] = {}
    marks = []
    for rank, begins, name, time_s in steps:
        stack = open_.setdefault(rank, [])
        if begins:
            stack.append((name, time_s))
        elif stack and stack[-1][0] == name:
            marks.append(Mark(*stack.pop(), time_s, rank))
    return marks, [Mark(*region, math.inf, rank) for rank, stack in open_.items() for region in stack]


# ----------------------------------------------------------------------------------------------------------------------
# Which function owns a moment: the innermost.

_QUARTER_S = 900.0  # zones of time are so far apart


class Pieces(Struct, frozen=True, eq=False):
    """Stretches of a program's time that do not overlap, and the function that owns each, by its place in `names`."""

    names: tuple[str, ...]
    begin_s: Floats
    end_s: Floats
    owner: Floats

    def summed(self, amounts: Floats) -> Floats:
        """Amounts of the pieces, (n_pieces,), summed by function, (n_names,)."""
        return np.bincount(self.owner.astype(np.int64), amounts, len(self.names)).astype(np.float64)


def exclusive(marks: Sequence[Mark]) -> Pieces:
    """Pieces of time that the innermost function owns: of those that are open, the one that began last."""
    names = tuple(dict.fromkeys(mark.name for mark in marks))
    place = {name: number for number, name in enumerate(names)}
    lasting = [(number, mark) for number, mark in enumerate(marks) if mark.end_s > mark.begin_s]
    ends = [(mark.begin_s, 1, number) for number, mark in lasting]
    ends += [(mark.end_s, 0, number) for number, mark in lasting]
    open_: list[int] = []
    pieces = []
    before_s = -np.inf
    for time_s, begins, number in sorted(ends):
        if open_ and time_s > before_s:
            pieces.append((before_s, time_s, place[marks[open_[-1]].name]))
        if begins:
            open_.append(number)
        else:
            open_.remove(number)
        before_s = time_s
    return Pieces(names, *np.array(pieces, dtype=np.float64).reshape(-1, 3).T)


def one_rank(marks: Sequence[Mark]) -> tuple[list[Mark], int]:
    """The marks of the rank or thread with the most time in them, and how many other ranks there are.

    Ranks of a node share its meters: joules cannot be divided among them. Marks of none are of the whole program.
    """
    by_rank = gathered((mark.rank, min(mark.end_s - mark.begin_s, 1e9)) for mark in marks if mark.rank)
    seconds = {rank: sum(lasted_s) for rank, lasted_s in by_rank.items()}
    busiest = max(seconds, key=lambda rank: seconds[rank], default="")
    return [mark for mark in marks if mark.rank in ("", busiest)], max(len(seconds) - 1, 0)


def zone_offset_s(series: Series, marks: Sequence[Mark]) -> float:
    """The seconds, in quarter hours, that bring power times without a zone to the marks; 0 where they overlap."""
    if series.zoned or not series.absolute:
        return 0.0
    begin_s, end_s = marks[0].begin_s, max(mark.end_s for mark in marks)
    if series.edges[0] < end_s and series.edges[-1] > begin_s:
        return 0.0
    middle = (series.edges[0] + series.edges[-1]) / 2
    nearest = round(((begin_s + min(end_s, begin_s + 1e6)) / 2 - middle) / _QUARTER_S) * _QUARTER_S
    return float(nearest) if abs(nearest) <= 14 * 3600 else 0.0

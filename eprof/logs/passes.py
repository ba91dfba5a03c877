"""Which tables of logs tell of the same launches (passes, copies), and which of further ones; and `CounterSums`.

Profilers count only so much at once, so a program is run again for other counters: once for events and once for
metrics, or once for each of several lists. What such passes have in common must not be added up. Tables of the same
counters, or nearly so (a damaged log lacks some), are of further runs.

The same run may be there twice: a log beside its copy, or appended to itself. Its launches count once. Two runs of a
program that does the same each time may have the same counts, but not the same process; where the logs do not tell
processes, the same cells are taken for the same run. So is a table of sums beside the launches that it adds up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np
from msgspec.structs import replace

from eprof import profilers
from eprof.base.arrays import Array, Columns, alike, numbered
from eprof.base.optional import either, only
from eprof.base.text import phrase, when
from eprof.base.vocabulary import Mark
from eprof.logs.log import TOTALS, Log, Names, Table, TableRows
from eprof.profilers import signs_of

_EVENTS, _METRICS = "nvprof-events-summary", "nvprof-metrics-summary"
_OPPOSITE = {_EVENTS: _METRICS, _METRICS: _EVENTS}
_SHAPES = ("launch__", "achieved_occupancy", "sm__warps_active")
_Calls = tuple[tuple[str, float], ...]  # (kernel, calls), by name
# A table's kind, the counters that its runs have, and whether it tells their processes: alike in tables of one pass.
_Signature = tuple[str, frozenset[str], bool]
_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_SHIFT = np.uint64(29)
_EXAMPLES = 3
_ROUNDED_S = 1e-9  # of a launch: times in whole ns


def passes(tables: Sequence[Table]) -> list[list[int]]:
    """The tables grouped into passes over the same launches: for each pass the places of its tables in `tables`.

    Tables of nearly the same counters are further runs of one pass, and add up; counters of several passes stand side
    by side.
    """
    signatures: list[_Signature] = []
    for table in tables:
        # Times are no list of counters, nor are launch shapes, which every pass has.
        counters = either(table.collected, frozenset(table.units)) - profilers.aside()
        told = frozenset(counter for counter in counters if not counter.startswith(_SHAPES))
        tells_processes = bool((either(table.rows.process, np.full(1, -1)) >= 0).any())
        signatures.append((table.kind, told, tells_processes))
    groups: list[list[_Signature]] = []
    for signature in sorted(set(signatures), key=lambda each: (-len(each[1]), sorted(each[1]), each[0])):
        alike = next((known for known in groups if _are_runs(signature, known)), None)
        if alike is None:
            groups.append([signature])
        else:
            alike.append(signature)
    return [[place for place, signature in enumerate(signatures) if signature in known] for known in groups]


def added_runs(log: Log) -> int:
    """How many runs of a log its rows add up; passes over the same launches count as one run.

    0 where no two runs share a kernel, as those of different programs.
    """
    tables, _ = without_summaries([part for table in log.tables for part in by_collection(table)])
    runs = [{run for place in places for run in tables[place].rows.run.tolist()} for places in passes(tables)]
    if log.runs > len(set().union(*runs)):
        return log.runs  # some of them had no kernels
    run_of: dict[str | None, int] = {}  # the first run of each kernel
    rows = (zip(table.rows.kernel.texts().tolist(), table.rows.run.tolist(), strict=True) for table in tables)
    is_added = any(run_of.setdefault(kernel, run) != run for kernel, run in chain.from_iterable(rows))
    return max(map(len, runs), default=0) * is_added


def _are_runs(signature: _Signature, known: Sequence[_Signature]) -> bool:
    """Whether a table is of further runs of the pass `known`: the two share most of the shorter list of counters.

    Where neither tells processes (excerpts), they must share most of the longer list.
    """
    kind, own, is_told = signature
    if are_opposite({kind}, {each for each, *_ in known}):
        return False
    if not own:  # times: those of one kind of table are used, of a trace or of a summary
        return kind in [each for each, *_ in known]
    return any(
        own == other or 2 * len(own & other) > (min if is_told or is_other_told else max)(len(own), len(other))
        for _, other, is_other_told in known
    )


def are_opposite(kinds: Collection[str], others: Collection[str]) -> bool:
    """Whether tables of `kinds` can never be further runs of tables of `others`.

    nvprof writes events apart from metrics. Pages and reports of ncu in several forms are views of one collection.
    """
    views, other_views = ({kind for kind in group if kind in profilers.unions()} for group in (kinds, others))
    if views and other_views and views != other_views:
        return True
    return any(_OPPOSITE.get(kind) in others for kind in kinds)


def by_collection(table: Table) -> Iterable[Table]:
    """A table of ncu or the like split into tables whose runs have the same counters; other kinds are so already."""
    if table.kind not in profilers.unions() or not len(table.rows):
        return [table]
    known = ~np.isnan(np.column_stack([table.rows.time_s, table.counters.values]))
    if known.all():
        return [table]
    run = numbered(table.rows.run)[0]
    order = np.argsort(run, kind="stable")
    of_run = np.logical_or.reduceat(known[order], np.unique(run[order], return_index=True)[1])
    patterns, pattern = np.unique(of_run, axis=0, return_inverse=True)
    pattern = pattern.ravel()[run]
    parts = []
    for number, has in enumerate(patterns[:, 1:]):
        part = table.chosen(pattern == number)
        labels = tuple(compress(part.counters.names, has))
        counters = Columns(labels, part.counters.values[:, has])
        parts.append(replace(part, counters=counters, units={label: part.units[label] for label in labels}))
    return parts


def without_copies(tables: Sequence[Table], logs: Sequence[Log]) -> tuple[list[Table], list[str]]:
    """(The tables of `logs` without runs that are copies of earlier ones, a sentence on what stands twice)."""
    twins = []
    first: dict[str, str] = {}
    for log in logs:
        if log.sha256 in first:
            twins.append(f"{log.path} is the same file as {first[log.sha256]}")
        first.setdefault(log.sha256, log.path)
    again = repeats(tables)
    if not again:
        return list(tables), [f"{twin}; it was added as if it were a further run" for twin in twins]
    more = when(len(twins) > _EXAMPLES, f"{len(twins) - _EXAMPLES} more")
    these = phrase(" ({})", ", ".join(filter(None, [*twins[:_EXAMPLES], more])))
    number = sum(len(runs) for runs in again.values())
    stand, are = "a table stands", "is"
    if number > 1:
        stand, are = f"{number} tables stand", "are"
    left = list(tables)
    for place, runs in again.items():
        left[place] = left[place].chosen(~np.isin(left[place].rows.run, runs))
    return [table for table in left if len(table.rows)], [
        f"{stand} in these logs twice, cell by cell{these}, and {are} counted once; if they are of different runs, "
        "make each run a file of its own and add --group rank"
    ]


def without_summaries(tables: Sequence[Table]) -> tuple[list[Table], list[str]]:
    """(The tables without summaries of runs whose launches stand in another table too, notes on these).

    Profilers write both of one run. The summary names no device, and has the launches' calls and times by kernel.
    """
    runs: dict[bool, list[tuple[int, int, TableRows]]] = {True: [], False: []}
    for place, table in enumerate(tables):
        for run in table.rows.run[numbered(table.rows.run)[1]].tolist():
            rows = table.rows.chosen(table.rows.run == run)
            is_of_sums = bool((rows.device.codes < 0).all())
            runs[is_of_sums].append((place, run, rows))
    of_launches: dict[_Calls, list[Array]] = {}
    if not runs[True]:
        return list(tables), []
    for _, _, rows in runs[False]:
        calls, times_s = _by_kernel(rows)
        of_launches.setdefault(calls, []).append(times_s)
    left, notes = list(tables), []
    for place, run, rows in runs[True]:
        calls, times_s = _by_kernel(rows)
        launches = sum(number for _, number in calls)
        apart_s = _ROUNDED_S * launches
        if any((abs(times_s - each_s) <= apart_s).all() for each_s in of_launches.get(calls, [])):
            left[place] = left[place].chosen(left[place].rows.run != run)
            notes.append(
                f"a table of sums tells the {launches:,.0f} launches of another table again, so it was not used"
            )
    return [table for table, own in zip(left, tables, strict=True) if len(table.rows) or not len(own.rows)], notes


def _by_kernel(rows: TableRows) -> tuple[_Calls, Array]:
    """((kernel, launches) of some rows, by name; the s of each kernel in the same order; NaN: some are not known)."""
    codes, names = rows.kernel.codes, rows.kernel.names
    calls, times_s = (np.bincount(codes, column, len(names)) for column in (rows.launches, rows.time_s))
    order = sorted(np.flatnonzero(calls).tolist(), key=names.__getitem__)
    return tuple((names[place], float(calls[place])) for place in order), times_s[order]


def repeats(tables: Sequence[Table]) -> dict[int, list[int]]:
    """Place of a table -> its runs that are copies, cell by cell, of earlier runs in a table before it or in itself."""
    alike: dict[tuple[object, ...], list[tuple[int, int]]] = {}
    for place, table in enumerate(tables):
        if signs_of(table.profiler).counts_repeat:
            continue
        rows = table.rows
        runs, first = np.unique(rows.run, return_index=True)
        processes = either(rows.process, np.full(len(rows), -1))[first]  # -1: not told
        for run, process in zip(runs.tolist(), processes.tolist(), strict=True):
            alike.setdefault((table.kind, frozenset(table.units), process), []).append((place, run))
    candidates = [places for places in alike.values() if len(places) > 1]
    prints = {place: _prints(tables[place]) for places in candidates for place in dict(places)}
    again: dict[int, list[int]] = {}
    for places in candidates:
        seen: set[int] = set()
        for place, run in places:
            if prints[place][run] in seen:
                again.setdefault(place, []).append(run)
            seen.add(prints[place][run])
    return again


def _prints(table: Table) -> dict[int, int]:
    """Run of a table -> a fingerprint of all its cells, added up by kernel first, as readers of long logs do."""
    rows = table.rows
    run, first_of_run = numbered(rows.run)
    launches = rows.launches
    known = {"device": rows.device, "kernel": rows.kernel, "part": rows.part}
    columns = {name: words for name, words in known.items() if words is not None}
    key, first = alike(run, *(column.codes for column in columns.values()))
    hashes = _mixed("launches", np.bincount(key, launches))
    for name, words in columns.items():
        texts = np.array([*map(hash, words.names), 0], dtype=np.int64)
        hashes += _mixed(name, texts[words.codes[first]])
    hashes += _of_counter("time_s", key, rows.time_s, launches)
    for part, values in blocks(table.counters):
        for label, cells in zip(table.counters.names[part], values, strict=True):
            hashes += _of_counter(label, key, cells, None if table.units[label] in TOTALS else launches)
    runs = rows.run[first_of_run]
    prints = np.zeros(len(runs), dtype=np.uint64)
    np.add.at(prints, run[first], _stirred(hashes))
    return dict(zip(runs.tolist(), prints.tolist(), strict=True))


def _of_counter(label: str, key: Array, values: Array, launches: Array | None) -> Array:
    """A counter's share in the fingerprints, by key. launches: weights of its averages (rounded); None: of totals."""
    sums = np.bincount(key, np.nan_to_num(values * either(launches, 1)))
    if launches is not None:
        sums = sums.astype(np.float32).astype(np.float64)
    return _mixed(label, sums + 0.0) + _mixed(f"{label} lost", np.bincount(key, np.isnan(values)))


def _mixed(label: str, values: Array) -> Array:
    """For fingerprints of runs: a hash of each number (64 bits) of a column with this label."""
    return _stirred(values.view(np.uint64) ^ np.uint64(hash(label) & 0xFFFFFFFFFFFFFFFF))


def _stirred(numbers: Array) -> Array:
    """For fingerprints of runs: a hash of each number (uint64); one bit changed there turns about half of its bits."""
    for odd in _ODD:
        numbers = (numbers ^ (numbers >> _SHIFT)) * odd
    return np.asarray(numbers ^ (numbers >> _SHIFT))


# ----------------------------------------------------------------------------------------------------------------------
# Tables put below each other; their counters added up over launches and runs; when each launch ran.
#
# A table of ten rows takes more room and time than its rows do, so short tables are put together. What `join` makes of
# them stays the same, but for the last digits of times, which are added in another order. All counters of a table are
# added up at once, as a table has few rows and many of them: for each counter in the order of the rows of each table,
# then of the tables.

# Rows beyond which a table is no longer short, and copying it would take room for nothing.
_LONG = 1 << 13
_CELLS = 1 << 20  # that are worked on at once
_APART = 0.05  # by which two passes may differ: some launches of a program are never quite the same


def gathered_in_first(logs: Sequence[Log]) -> list[Log]:
    """Gather the tables of all logs in the first, short ones that are alike joined; the other logs have none then.

    Logs that tell where functions are keep theirs: functions of one name in several programs are told apart later.
    """
    if any(log.homes for log in logs):
        return list(logs)
    tables = short_ones_joined([table for log in logs for table in log.tables])
    return [replace(log, tables=() if place else tables) for place, log in enumerate(logs)]


def short_ones_joined(tables: Sequence[Table]) -> tuple[Table, ...]:
    """The tables, where short ones of the same kind, columns, units and one part (if any) are joined to one table."""
    groups: dict[tuple[Any, ...], list[Table]] = {}
    for number, table in enumerate(tables):
        rows = table.rows
        key: tuple[Any, ...] = (number,)  # a long table is put below no other, nor one of several parts
        if len(rows) <= _LONG:
            part: str | int | None = None
            if rows.part is not None:
                part = only(rows.part.names) or number
            columns = (*rows.columns(), table.counters.names, tuple(table.units.items()))
            key = (table.kind, *columns, table.collected, table.lacks_rows, part)
        groups.setdefault(key, []).append(table)
    joined = []
    for first, *more in groups.values():
        if more:
            alike = (first, *more)
            rows = below_each_other([table.rows for table in alike])
            first = replace(first, rows=rows, counters=Columns.below([table.counters for table in alike]))
        joined.append(first)
    return tuple(joined)


def below_each_other(rows: Sequence[TableRows]) -> TableRows:
    """The rows of several tables below each other; runs are numbered anew, and no two tables share a number."""
    moved = [rows[0].run[:0]]
    start = 0
    for runs in (piece.run for piece in rows if len(piece)):
        moved.append(runs - runs.min() + start)
        start += int(np.ptp(runs)) + 1
    return replace(TableRows.below(rows), run=np.concatenate(moved))


def timeline(
    placed: Iterable[tuple[Table, Array]], rows: Sequence[tuple[str | None, str, str | None]]
) -> TableRows | None:
    """The launches one by one with their starts (`Launches.timeline`), from tables that tell these; None: none does.

    placed: each table, with the place in `rows` (device, kernel, part) of each of its rows. Of several kinds of table
    of one run, the first that tells operators is taken, else the first: their launches are the same.
    """
    timed = [(table, row) for table, row in placed if table.rows.start_ns is not None]
    if not timed:
        return None
    kinds = [table.kind for table, _ in timed if table.rows.operator is not None] or [timed[0][0].kind]
    devices = Names.of(device for device, *_ in rows)
    kernels = Names.of(kernel for _, kernel, _ in rows)
    launches = []
    for table, row in timed:
        if table.kind == kinds[0]:
            own = table.rows
            unknown = Names((), np.full(len(own), -1, dtype=np.int32))
            columns = {"stream": own.stream or unknown, "operator": own.operator or unknown}
            names = {"device": devices.chosen(row), "kernel": kernels.chosen(row)}
            launches.append(replace(own, process=None, part=None, **columns, **names))
    return below_each_other(launches)


def blocks(counters: Columns) -> Iterator[tuple[slice, Array]]:
    """Yields a slice of the counters and their values, (n_counters, n_rows), about 2^20 cells at a time."""
    rows, columns = counters.values.shape
    for part in _parts(columns, rows):
        yield part, counters.values[:, part].T


def _parts(counters: int, cells: int) -> list[slice]:
    """Slices that cut `counters` counters of `cells` cells each into groups of 2^20 cells at most, or one counter."""
    width = max(1, _CELLS // max(1, cells))
    return [slice(first, first + width) for first in range(0, counters, width)]


class RowPlaces:
    """Where each row of a log's table belongs among the joined rows, and how many launches the row is of."""

    def __init__(self, table: Table, row: Array) -> None:
        # Of thousands of logs each has its own few rows: what is not touched costs nothing.
        self.span = slice(int(row.min()), int(row.max()) + 1)
        self.size = self.span.stop - self.span.start
        self.row = row - self.span.start
        self.launches = table.rows.launches

    def sums(self, cells: Array) -> Array:
        """Cells of the table, (n_counters, n_rows), added up by joined row: (n_counters, size), the rows of `span`."""
        counters = len(cells)
        place = np.arange(counters)[:, None] * self.size + self.row
        return np.bincount(place.ravel(), cells.ravel(), counters * self.size).reshape(counters, self.size)


class CounterSums:
    """Sums of counters, and how many launches these are of; all (n_counters, n_kernels). is_total: no average.

    is_known: whether some launch has a value. has_holes: whether another has none; the sum is a lower bound then.
    Averages are of the launches that have a value. is_apart: whether passes contradict each other.
    """

    def __init__(self, kernels: int, is_total: Sequence[bool]) -> None:
        self.is_total = np.array(is_total, dtype=bool)[:, None]
        shape = (len(is_total), kernels)
        self.sum, self.launches = np.zeros(shape), np.zeros(shape)
        self.is_known, self.has_holes, self.is_apart = (np.zeros(shape, dtype=bool) for _ in range(3))

    @classmethod
    def none(cls, kernels: int, units: Mapping[str, str]) -> CounterSums:
        """Sums of no launch yet. units: counter -> unit, which tells totals from averages."""
        return cls(kernels, [unit in TOTALS for unit in units.values()])

    def add(self, rows: RowPlaces, places: Array, values: Array) -> None:
        """Add a table's values, (n_counters, n_rows), to the sums of the counters at `places`."""
        is_total = self.is_total[places]
        launches = np.broadcast_to(rows.launches, values.shape)
        known = ~np.isnan(values)
        cells = np.where(is_total, values, values * launches)
        all_launches = seen = rows.sums(launches)
        if not known.all():
            cells = np.where(known, cells, 0.0)
            seen = rows.sums(known * launches)
            all_launches = np.where(is_total, all_launches, seen)
            self.has_holes[places, rows.span] |= all_launches > seen
        self.sum[places, rows.span] += rows.sums(cells)
        self.launches[places, rows.span] += all_launches
        self.is_known[places, rows.span] |= seen > 0

    def take(self, other: CounterSums) -> None:
        """Take counters of kernels from `other`, another pass over the launches, where these are of more launches.

        Where both know a total a launch and these are apart by more than `_APART` of the larger, `is_apart` says so.
        """
        own_ranks, other_ranks = self._rank(), other._rank()
        with np.errstate(divide="ignore", invalid="ignore"):
            averages = self.sum / self.launches, other.sum / other.launches
            apart = np.abs(averages[0] - averages[1]) > _APART * np.fmax(np.abs(averages[0]), np.abs(averages[1]))
        both = self.is_known & other.is_known & self.is_total & ~self.has_holes & ~other.has_holes
        better = np.zeros(self.sum.shape, dtype=bool)
        equal = ~better
        for own_rank, other_rank in zip(own_ranks, other_ranks, strict=True):
            better |= equal & (other_rank > own_rank)
            equal &= other_rank == own_rank
        for name in ("sum", "launches", "is_known", "has_holes"):
            setattr(self, name, np.where(better, getattr(other, name), getattr(self, name)))
        self.is_apart |= both & apart

    def _rank(self) -> tuple[Array, ...]:
        """Sort keys by which `take` chooses a pass: larger is better, the first foremost; the last breaks ties."""
        return self.is_known, self.launches, ~self.has_holes, self.sum

    def result(self, launches: Array) -> tuple[Array, Array]:
        """(Totals scaled to `launches`, (n_kernels,), or averages; their `Mark` bits); NaN: not known.

        ESTIMATED: a counter saw other launches. MISSING: the sum is a lower bound, or not known.
        """
        values, marks = np.empty(self.sum.shape), np.empty(self.sum.shape, dtype=np.int8)
        for some in _parts(*self.sum.shape):
            total, seen, known = self.sum[some], self.launches[some], self.is_known[some]
            average = np.full(seen.shape, np.nan)
            np.divide(total, seen, out=average, where=known)
            differs = known & (seen != launches)
            values[some] = np.where(self.is_total[some], np.where(known & ~differs, total, average * launches), average)
            marks[some] = np.where(self.has_holes[some] | ~known, int(Mark.MISSING), 0)
            marks[some] |= np.where(differs, int(Mark.ESTIMATED), 0).astype(np.int8)
        return values, marks

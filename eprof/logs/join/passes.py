"""Which tables tell of the same launches, counted in several passes, and which of further launches.

Profilers count only so much at once, so a program is run again for other counters: once for events and once for
metrics, or once for each of several lists. What such passes have in common must not be added up. Tables of the same
counters, or nearly so (a damaged log lacks some), are of further runs.

The same run may be there twice: a log beside its copy, or appended to itself. Its launches count once. Two runs of a
program that does the same each time may have the same counts, but not the same process; where the logs do not tell
processes, the same cells are taken for the same run. So is a table of sums beside the launches that it adds up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, compress

import numpy as np
from msgspec.structs import replace

from eprof import profilers
from eprof.base.arrays import Array, Columns, alike, numbered
from eprof.base.optional import either
from eprof.base.text import phrase, when
from eprof.logs.join.sums import blocks
from eprof.logs.log import TOTALS, Log, Table, TableRows
from eprof.profilers import signs_of

_EVENTS, _METRICS = "nvprof-events-summary", "nvprof-metrics-summary"
_OPPOSITE = {_EVENTS: _METRICS, _METRICS: _EVENTS}
_SHAPES = ("launch__", "achieved_occupancy", "sm__warps_active")
_Calls = tuple[tuple[str, float], ...]  # (kernel, calls), by name
_Signature = tuple[str, frozenset[str], bool]
_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_SHIFT = np.uint64(29)
_EXAMPLES = 3
_ROUNDED_S = 1e-9  # of a launch: times in whole ns


def passes(tables: Sequence[Table]) -> list[list[int]]:
    """The tables grouped into passes over the same launches: for each pass the places of its tables in `tables`.

    Tables of one pass add up, those of several stand side by side.
    """
    signatures = [_signature(table) for table in tables]
    groups: list[list[_Signature]] = []
    for signature in sorted(set(signatures), key=lambda each: (-len(each[1]), sorted(each[1]), each[0])):
        alike = next((known for known in groups if _are_runs(signature, known)), None)
        if alike is None:
            groups.append([signature])
        else:
            alike.append(signature)
    return [[place for place, signature in enumerate(signatures) if signature in known] for known in groups]


def added_runs(log: Log) -> int:
    """Number of runs of a log that are added up, rather than standing side by side as passes over the same launches.

    0 where each has rows of its own, as different programs have: no row adds any up.
    """
    tables, _ = without_summaries([part for table in log.tables for part in by_collection(table)])
    runs = [{run for place in places for run in tables[place].rows.run.tolist()} for places in passes(tables)]
    if log.runs > len(set().union(*runs)):
        return log.runs  # some of them had no kernels
    run_of: dict[str | None, int] = {}  # the first run of each kernel
    rows = (zip(table.rows.kernel.texts().tolist(), table.rows.run.tolist(), strict=True) for table in tables)
    is_added = any(run_of.setdefault(kernel, run) != run for kernel, run in chain.from_iterable(rows))
    return max(map(len, runs), default=0) * is_added


def _signature(table: Table) -> _Signature:
    """The table's kind, the counters that its runs have, and whether it tells their processes.

    Tables in which these are alike are of one pass. Times are no list of counters, nor are launch shapes, which every
    pass has.
    """
    counters = either(table.collected, frozenset(table.units)) - profilers.aside()
    told = frozenset(counter for counter in counters if not counter.startswith(_SHAPES))
    return table.kind, told, bool((either(table.rows.process, np.full(1, -1)) >= 0).any())


def _are_runs(signature: _Signature, known: Sequence[_Signature]) -> bool:
    """Whether a table is of further runs of the pass `known`: they share most of the shorter list of counters.

    Where neither tells processes (excerpts), they share most of the longer list, too.
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
    """The table split into tables whose runs have the same counters. nvprof's readers keep these apart themselves."""
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
    """The tables of `logs` without copies of runs that stand there already, and sentences on what stands twice."""
    twins = []
    first: dict[str, str] = {}
    for log in logs:
        if log.sha256 in first:
            twins.append(f"{log.path} is the same file as {first[log.sha256]}")
        first.setdefault(log.sha256, log.path)
    again = _again(tables)
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
    """The tables without runs of sums that only tell the launches of another run again, and notes on these.

    Profilers write both of one run. The sums name no device, and have the launches' calls and times by kernel.
    """
    of_launches: dict[_Calls, list[Array]] = {}
    sums = []
    for place, table in enumerate(tables):
        for run in table.rows.run[numbered(table.rows.run)[1]].tolist():
            rows = table.rows.chosen(table.rows.run == run)
            calls, times_s = _by_kernel(rows)
            if (rows.device.codes < 0).all():
                sums.append((place, run, calls, times_s))
            else:
                of_launches.setdefault(calls, []).append(times_s)
    left, notes = list(tables), []
    for place, run, calls, times_s in sums:
        launches = sum(number for _, number in calls)
        apart_s = _ROUNDED_S * launches
        if any((abs(times_s - each_s) <= apart_s).all() for each_s in of_launches.get(calls, [])):
            left[place] = left[place].chosen(left[place].rows.run != run)
            notes.append(
                f"a table of sums tells the {launches:,.0f} launches of another table again, so it was not used"
            )
    return [table for table, own in zip(left, tables, strict=True) if len(table.rows) or not len(own.rows)], notes


def _by_kernel(rows: TableRows) -> tuple[_Calls, Array]:
    """The calls by kernel of some rows, and the seconds of each kernel in the same order; NaN: some are not known."""
    codes, names = rows.kernel.codes, rows.kernel.names
    calls, times_s = (np.bincount(codes, column, len(names)) for column in (rows.launches, rows.time_s))
    order = sorted(np.flatnonzero(calls).tolist(), key=names.__getitem__)
    return tuple((names[place], float(calls[place])) for place in order), times_s[order]


def _again(tables: Sequence[Table]) -> dict[int, list[int]]:
    """Place of a table -> the runs in it that are copies of earlier ones, in a table before it or in itself."""
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
    repeats: dict[int, list[int]] = {}
    for places in candidates:
        seen: set[int] = set()
        for place, run in places:
            if prints[place][run] in seen:
                repeats.setdefault(place, []).append(run)
            seen.add(prints[place][run])
    return repeats


def _prints(table: Table) -> dict[int, int]:
    """Run -> a fingerprint of all its cells, which are first added up by kernel, as readers of long logs do."""
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
    """A counter's share in the fingerprints, by key. launches: weights of an average (rounded); None: a total."""
    sums = np.bincount(key, np.nan_to_num(values * either(launches, 1)))
    if launches is not None:
        sums = sums.astype(np.float32).astype(np.float64)
    return _mixed(label, sums + 0.0) + _mixed(f"{label} lost", np.bincount(key, np.isnan(values)))


def _mixed(label: str, values: Array) -> Array:
    """A hash of each number (64 bits) of a column with this label."""
    return _stirred(values.view(np.uint64) ^ np.uint64(hash(label) & 0xFFFFFFFFFFFFFFFF))


def _stirred(numbers: Array) -> Array:
    """A hash of each number (uint64): where one bit of a number changes, about half of the bits of its hash do."""
    for odd in _ODD:
        numbers = (numbers ^ (numbers >> _SHIFT)) * odd
    return np.asarray(numbers ^ (numbers >> _SHIFT))

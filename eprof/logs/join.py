"""`combine`: the tables of several logs of one program become `Launches`, a row for each device and kernel.

The rules. Rows of the same device and kernel are launches of the same thing. A run that stands in the logs twice counts
once (`passes`). Tables of the same counters are further runs: totals and launches add up. Tables of other counters are
passes over the same launches (`passes`): their counters stand side by side, and one that several passes have is taken
from the one with most launches. Where counters saw different numbers of launches, all are brought to the largest by
their averages over launches, and marked ESTIMATED. A cell that is there and holds no value makes the total a lower
bound, marked MISSING, and so does a table that lost rows. Times of one kind of table add up over runs; a kernel timed
by several kinds has the time of the best: trace, then SQLite export, then summaries, because these mostly tell of the
same run. Time that was taken beside counters (by ncu, or in an nvprof export) is of a run that they slowed down: the
last resort, marked ESTIMATED.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, combinations, compress
from typing import NamedTuple

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof import profilers
from eprof.base.arrays import Array, Columns, alike, numbered
from eprof.base.gpus import UNNAMED, Traits, capability_of_label, normal_label, start_of_label, unnumbered
from eprof.base.kernels import match_names
from eprof.base.optional import either, gathered, mapped, only
from eprof.base.text import counted, cut, few, pattern, phrase, when
from eprof.base.vocabulary import Mark
from eprof.logs.log import COUNT, CUT_NAME, JOULE, KernelRows, Launches, Log, Table, of_several_programs
from eprof.logs.passes import (
    CounterSums,
    RowPlaces,
    are_opposite,
    blocks,
    by_collection,
    passes,
    short_ones_joined,
    timeline,
    without_copies,
    without_summaries,
)
from eprof.profilers import advice

# Of tables that time the same kernels, the best kinds first. Others come after them, and those of slowed launches last.
_BEST_TIMES = (
    "nvprof-gpu-trace", "nvprof-sqlite", "nsys-sqlite", "nsys-trace", "nsys-summary", "kineto-trace",
    "nvprof-gpu-summary",
)  # fmt: skip
_NUMBERED = pattern(r"ncu device (\d+)(?: \(CC (.*)\))?")
_NAMELESS = pattern(rf"{UNNAMED} \((\d+)\)()")  # as above: a number, and no capability
_EXAMPLES = 3
_Row = tuple[str | None, str, str | None]
Times = dict[str, CounterSums]
CapabilityOf = Callable[[str], tuple[str, ...]]


class _Named(NamedTuple):
    """The device of tables that name none: the only one that logs name elsewhere, or the user (by_user); or None."""

    device: str | None
    by_user: bool


def combine(logs: Sequence[Log], capability_of: CapabilityOf | None = None, named: str | None = None) -> Launches:
    """Join the tables of one or more logs, a row for each device and kernel: see the rules at the module's head.

    capability_of: the compute capabilities that a GPU of some name may have, which keeps devices of one number
    apart. named: the GPU of logs that name none, by the user. Counters are totals over a row's launches where their
    unit is one of TOTALS, else averages weighted by launches. Raises nothing: `warnings` names what does not match.
    """
    programs = of_several_programs([log.command for log in logs if log.command])
    warnings = [*filter(None, [phrase("joined logs of {}", programs)])]
    logs, spelling_notes = _in_one_spelling(logs)
    collected = short_ones_joined([part for log in logs for table in log.tables for part in by_collection(table)])
    tables, summaries = without_summaries(collected)
    tables, twice = without_copies(tables, logs)
    tables, views = _without_views(tables)
    warnings += [*twice, *summaries, *views, *spelling_notes]
    kernels = _Kernels()
    beside = only({log.device for log in logs if log.device})
    by_user = named is not None and (beside is None or Traits(start=start_of_label(beside)).is_start_of(named))
    device = _Named(named if by_user else beside, by_user)
    _name_devices(tables, kernels, capability_of or (lambda _: ()), warnings, device)
    placed = list(_place(tables, kernels, device, warnings))
    placed = list(_settle_parts(placed, kernels, warnings))
    size = len(kernels.rows)
    units = _units(placed, warnings)
    names = [kernel + phrase(" ({})", part) for _, kernel, part in kernels.rows]
    sums, times = _added_up(placed, size, units, names, warnings)
    launches = sums.launches.max(axis=0, initial=0.0)
    values, marks = sums.result(launches)
    # No meter saw what others did: joules of fewer launches are a lower bound.
    is_joule = np.array([unit == JOULE for unit in units.values()], dtype=bool)
    fewer = is_joule[:, None] & sums.is_known & (sums.launches < launches)
    values[fewer] = sums.sum[fewer]
    warnings += _disagreements(sums, marks, units, launches, names)
    marks[fewer] = int(Mark.MISSING)
    marks[sums.is_apart] |= np.int8(Mark.ESTIMATED)
    best = _best_time(times, names, {table.kind for table, _ in placed if table.lacks_rows}, warnings)
    if units and (best.launches > 0).any():
        warnings += _unmatched(launches, best, names)
    time_s, time_marks = _to_launches(best, launches, names, warnings)
    # Of a kernel without counters or time, the launches in the table that has most of them.
    seen = [np.bincount(row, table.rows.launches, size) for table, row in placed]
    timed = np.where(best.launches > 0, best.launches, np.max([np.zeros(size), *seen], axis=0))
    least_s, most_s = np.full(size, np.nan), np.full(size, np.nan)
    for table, row in placed:
        own = table.rows
        # The mean of a run, however its rows were added up on the way.
        codes, first = alike(row, own.run)
        of_run_s, of_run = (np.bincount(codes, column, len(first)) for column in (own.time_s, own.launches))
        for ends_s, of_launches_s, extreme in ((least_s, own.least_s, np.fmin), (most_s, own.most_s, np.fmax)):
            extreme.at(ends_s, row[first], of_run_s / np.maximum(of_run, 1))
            if of_launches_s is not None:
                extreme.at(ends_s, row, of_launches_s)
    devices, whole_names, parts = np.array([*kernels.rows], dtype=object).reshape(size, 3).T
    return Launches(
        KernelRows(
            device=devices,
            kernel=whole_names,
            launches=np.where(launches > 0, launches, timed).astype(np.int64),
            time_s=time_s,
            time_marks=time_marks,
            part=parts if kernels.has_parts else None,
            least_s=least_s,
            most_s=most_s,
        ),
        Columns(tuple(units), values.T),
        Columns(tuple(units), marks.T),
        units,
        {label: table.profiler for table, _ in reversed(placed) for label in table.units},
        tuple(warnings),
        lacks_rows=any(table.lacks_rows and len(table.units) > 0 for table, _ in placed),
        timeline=timeline(placed, list(kernels.rows)),
    )


def _without_views(tables: Sequence[Table]) -> tuple[list[Table], list[str]]:
    """(The tables without those of nsys that repeat the launches of another kind of table, notes on the latter).

    Repeats have as many launches in the same time. Names of kernels are not compared: a table may have shortened ones.
    """
    kept: dict[tuple[int, float], str] = {}
    notes: list[str] = []
    again: set[int] = set()
    for place in sorted(range(len(tables)), key=lambda place: _rank(tables[place].kind)):
        table = tables[place]
        launches = int(table.rows.launches.sum())
        time_s = float(np.nansum(table.rows.time_s))
        if not table.kind.startswith("nsys") or not time_s > 0:
            continue
        apart_s = 1e-9 * launches + 1e-9 * time_s  # nsys rounds to whole ns
        same = next((kept[run] for run in kept if run[0] == launches and abs(time_s - run[1]) <= apart_s), None)
        if same is None or same == table.kind:
            kept.setdefault((launches, time_s), table.kind)
        else:
            again.add(place)
            notes.append(f"{table.kind} tells the {launches:,} launches of {same} again, so it was not used")
    return [table for place, table in enumerate(tables) if place not in again], notes


def _rank(kind: str) -> tuple[bool, int, str]:
    """A sort key of a kind of table: the kind with the best times of kernels comes first, that of slowed ones last."""
    return _is_slowed(kind), (*_BEST_TIMES, kind).index(kind), kind


def _is_slowed(kind: str) -> bool:
    """Whether tables of a kind have the times of launches that counters slowed down."""
    return any(kind in signs.slowed for signs in profilers.signs().values())


def _is_timed(table: Table) -> bool:
    return not np.isnan(table.rows.time_s).all()


def _added_up(
    placed: Sequence[tuple[Table, Array]],
    size: int,
    units: Mapping[str, str],
    names: Sequence[str],
    warnings: list[str],
) -> tuple[CounterSums, Times]:
    """(Sums of counters over launches and runs, sums of times by kind of table): of passes, the one of most launches.

    placed: each table with its rows' joined rows, of which there are `size`, called `names`. warnings: grows.
    """
    whole = CounterSums.none(size, units)
    times = dict[str, CounterSums]()
    of_passes = passes([table for table, _ in placed])
    # Counters in tables whose other counters differ count once.
    counters: list[set[str]] = []  # by which passes are told apart: those of its list, where a table has one
    kinds: list[set[str]] = []
    for tables in ([placed[place][0] for place in places] for places in of_passes):
        listed = (table.units.keys() & either(table.collected, table.units.keys()) for table in tables)
        counters.append(set[str]().union(*listed) - profilers.aside())
        kinds.append({table.kind for table in tables})
    shared = {
        label
        for first, second in combinations(range(len(of_passes)), 2)
        if not are_opposite(kinds[first], kinds[second])
        for label in counters[first] & counters[second]
    }
    if shared:
        warnings.append(
            f"{_listed(sorted(shared))}: counted in tables whose other counters are not the same, so these are taken "
            "for passes over the same launches, and it is counted once"
        )
    for places in of_passes:
        sums, seconds = _of_pass([placed[place] for place in places], size, units)
        whole.take(sums)
        for kind, of_kind in seconds.items():
            times.setdefault(kind, CounterSums(size, [True])).take(of_kind)
    if whole.is_apart.any():
        apart = list(compress(units, np.asarray(whole.is_apart.any(axis=1))))
        kernels = _these(np.asarray(whole.is_apart.any(axis=0)), names)
        warnings.append(
            f"{kernels}: tables that should be of the same launches tell different counts a launch of "
            f"{_listed(apart)}, so these are estimated; see that they are of one program with one input"
        )
    return whole, {kind: times[kind] for kind in sorted(times, key=_rank)}


def _of_pass(placed: Sequence[tuple[Table, Array]], size: int, units: Mapping[str, str]) -> tuple[CounterSums, Times]:
    """The sums of `_added_up` over the tables of one pass, which all add up."""
    sums = CounterSums.none(size, units)
    times = {table.kind: CounterSums(size, [True]) for table, _ in placed if _is_timed(table)}
    place = {label: number for number, label in enumerate(units)}
    for table, row in placed:
        rows = RowPlaces(table, row)
        labels = table.counters.names
        for part, values in blocks(table.counters):
            places = np.array([place[label] for label in labels[part]], dtype=np.intp)
            fits = np.array([table.units[label] == units[label] for label in labels[part]], dtype=bool)
            if not fits.all():  # what has no value has no unit either
                fits |= np.isnan(values).all(axis=1)
            sums.add(rows, places[fits], values[fits])
        if _is_timed(table):
            times[table.kind].add(rows, np.zeros(1, dtype=np.intp), table.rows.time_s[None])
    return sums, times


def _listed(labels: Sequence[str]) -> str:
    return few([f"`{label}`" for label in labels], _EXAMPLES, "counters")


class _Kernels(Struct):
    """Numbers the joined rows as they come: one for each (device, kernel, part); part: None where rows are not split.

    devices: label for matching -> the device's name in the joined rows.
    """

    devices: dict[str, str] = field(default_factory=dict)
    rows: dict[_Row, int] = field(default_factory=dict)
    has_parts: bool = False

    def device(self, name: str) -> str:
        """A device's name in the joined rows: as its label first came; some drivers leave "NVIDIA" out."""
        return self.devices.setdefault(normal_label(name), name.strip())

    def numbers(self, table: Table, alone: str | None) -> Array:
        """The number of the joined row of each row of `table`, (n_rows,). alone: the device of rows that name none."""
        rows = table.rows
        self.has_parts |= rows.part is not None
        columns = [column for column in (rows.device, rows.kernel, rows.part) if column is not None]
        codes, first = alike(*(column.codes for column in columns))
        numbers = []
        for device, kernel, *part in zip(*(column.chosen(first).texts() for column in columns), strict=True):
            row = either(mapped(self.device, device), alone), kernel, next(iter(part), None)
            numbers.append(self.rows.setdefault(row, len(self.rows)))
        return np.array(numbers, dtype=np.int64)[codes]


def _devices(table: Table) -> list[str]:
    """The labels of the devices that a table's rows name, as they come."""
    devices = table.rows.device
    first = numbered(devices.codes)[1]
    return [name for name in devices.chosen(first).texts() if name is not None]


def _name_devices(
    tables: Sequence[Table], kernels: _Kernels, capability_of: CapabilityOf, warnings: list[str], named: _Named
) -> None:
    """Record in `kernels` which labels are of one device: "ncu device 0 (CC 8.0)" is device 0 of other tables.

    Not where that device is of another capability, or its own is unknown and several such labels have its number.
    named: the device that is named beside the tables; if these have one without name, it is taken to be that.
    """
    labels: dict[str, bool] = {}
    for table in tables:
        for name in _devices(table):
            labels[name] = labels.get(name, False) or _is_timed(table) or _is_slowed(table.kind)
    numbered = {name: match for name in labels if (match := _NUMBERED.match(name))}
    nameless = numbered | {name: match for name in labels if (match := _NAMELESS.match(name))}
    fits = all(not match[2] or match[2] in capability_of(named.device or "") for match in nameless.values())
    if named.device and labels.keys() == nameless.keys() and fits and (len(labels) == 1 or named.by_user):
        for name, match in nameless.items():
            label = named.device if len(labels) == 1 else f"{named.device} ({match[1]})"
            kernels.devices[normal_label(name)] = kernels.devices.setdefault(normal_label(label), label)
            if not named.by_user:
                warnings.append(f"{name} is taken to be {named.device}, which a line beside the tables names")
        return
    for name in labels:
        same = mapped(_as_named, numbered.get(name), labels, capability_of)
        rivals = {match[2] for match in numbered.values() if name in numbered and match[1] == numbered[name][1]}
        if same is not None and (len(rivals) == 1 or capability_of(same)):
            kernels.devices[normal_label(name)] = kernels.devices.setdefault(normal_label(same), same.strip())
            warnings.append(f"{name} is taken to be {same}, as other logs name it")
        else:
            kernels.device(name)


def _as_named(numbered: re.Match[str], labels: Mapping[str, bool], capability_of: CapabilityOf) -> str | None:
    """The label of the one named device that "ncu device N (CC x.y)" may be; None: none, or several.

    labels: label -> whether some table times that device.
    """
    number, capability = numbered.groups()
    timed = (label for label, is_timed in labels.items() if is_timed and label.endswith(f"({number})"))
    known = only({normal_label(label): label for label in timed}.values())
    fits = known is None or capability is None or capability in (capability_of(known) or [capability])
    return known if fits else None


def _only_part(table: Table) -> str | None:
    """The part of all rows of a table (the rank of a log of one rank), else None."""
    return mapped(lambda part: only(part.names), table.rows.part)


def _place(
    tables: Sequence[Table], kernels: _Kernels, named: _Named, warnings: list[str]
) -> Iterable[tuple[Table, Array]]:
    """Each table with the number of each of its rows' joined row, (n_rows,); without rows whose device nothing tells.

    named: the device for where no table names one.
    """
    all_devices = list(dict.fromkeys(kernels.devices.values()))
    if not all_devices and named.device is not None:
        all_devices = [kernels.device(named.device)]
        if not named.by_user:
            name = unnumbered(named.device)
            told = phrase("of compute capability {}", capability_of_label(name)) or name
            warnings.append(f"{CUT_NAME}; by what the logs tell it is {told}")
    # Where a rank has one GPU, its rows without a device are of it.
    of_rank: dict[str, list[str]] = {}
    for table in tables:
        if (part := _only_part(table)) is not None:
            own = [kernels.device(name) for name in _devices(table)]
            of_rank[part] = list(dict.fromkeys([*of_rank.get(part, ()), *own]))
    of_rank = {part: devices for part, devices in of_rank.items() if devices}
    for table in tables:
        known = of_rank.get(_only_part(table) or "", all_devices)
        nowhere = table.rows.device.codes < 0
        if len(known) > 1 and nowhere.any():
            command = advice.trace(table.profiler)
            warnings.append(
                f"{int(nowhere.sum())} rows of {table.kind} do not tell their device, and there are {len(known)} "
                f"({', '.join(known[:_EXAMPLES])}), so they were not used; make a log with `{command}`"
            )
            table = table.chosen(~nowhere)
        if len(table.rows):
            yield table, kernels.numbers(table, only(known))


def _settle_parts(
    placed: Sequence[tuple[Table, Array]], kernels: _Kernels, warnings: list[str]
) -> Iterable[tuple[Table, Array]]:
    """`placed` with rows that tell no part moved to their kernel's only part; of several, all become one row."""
    untold = {(device, kernel) for device, kernel, part in kernels.rows if part is None}
    if not kernels.has_parts or not untold:
        return placed
    told = (row for row in kernels.rows if row[2] is not None and row[:2] in untold)
    parts = gathered(((device, kernel), part) for device, kernel, part in told)
    rows: dict[_Row, int] = {}
    moved = np.empty(len(kernels.rows), dtype=np.int64)
    for (device, kernel, part), number in kernels.rows.items():
        known = parts.get((device, kernel), [part])
        moved[number] = rows.setdefault((device, kernel, only(known)), len(rows))
    kernels.rows = rows
    several = [kernel for (_, kernel), known in parts.items() if len(known) > 1]
    if several:
        warnings.append(
            f"{_these(np.ones(len(several), dtype=bool), several)}: some tables do not tell the part that the others "
            "do, so the kernel's counts and time cannot be shared out among its parts; collect both in tables that tell"
        )
    return [(table, moved[row]) for table, row in placed]


def _units(placed: Sequence[tuple[Table, Array]], warnings: list[str]) -> dict[str, str]:
    """Counter -> the unit that it has in the first table with a value; warns of tables where it has another unit."""
    units: dict[str, str] = {}
    for table, _ in placed:
        known: set[str] = set()  # the counters of which some row has a value
        for part, values in blocks(table.counters):
            known.update(compress(table.counters.names[part], ~np.asarray(np.isnan(values).all(axis=1))))
        for label, unit in table.units.items():
            if label in known and units.setdefault(label, unit) != unit:
                warnings.append(
                    f"`{label}` is a {units[label]} in one table and a {unit} in another, which was not used"
                )
    labels = dict.fromkeys(label for table, _ in placed for label in table.units)
    return {label: units.get(label, COUNT) for label in labels}


class _Time(Struct):
    """Times by kernel, (n_kernels,): s (NaN: not known), of how many launches; whether slowed down; a lower bound."""

    seconds: Array
    launches: Array
    is_slowed: Array
    is_bound: Array


def _best_time(times: Times, names: Sequence[str], lacking: Collection[str], warnings: list[str]) -> _Time:
    """The time of each kernel from the best kind of table that has one. lacking: kinds of table that lost rows."""
    size = len(names)
    best = _Time(np.full(size, np.nan), np.zeros(size), np.zeros(size, dtype=bool), np.zeros(size, dtype=bool))
    for kind, sums in times.items():
        known = sums.is_known[0]
        again = known & ~np.isnan(best.seconds)
        # Nobody misses a time that was only the last resort.
        if again.any() and not _is_slowed(kind):
            kernels = _these(again, names)
            warnings.append(f"{kernels}: timed by a better table too, so the times of {kind} were not used")
        new = known & ~again
        best.seconds[new] = sums.sum[0, new]
        best.launches[new] = sums.launches[0, new]
        best.is_slowed[new] = _is_slowed(kind)
        best.is_bound[new] = sums.has_holes[0, new] | (kind in lacking)
    return best


def _to_launches(best: _Time, launches: Array, names: Sequence[str], warnings: list[str]) -> tuple[Array, Array]:
    """(Times in s scaled to `launches`, those of the counters; their `Mark` bits), both (n_kernels,)."""
    timed = best.launches
    differs = (timed > 0) & (launches > 0) & (timed != launches)
    if differs.any():
        first = int(np.flatnonzero(differs)[0])
        of_times = counted(int(timed[first]), "launch", "launches")
        warnings.append(
            f"{_these(differs, names)}: times are of {of_times}, counters of {launches[first]:.0f}"
            f"{when(differs.sum() > 1, ' (first kernel)')}; brought to the counters' launches, so estimated"
        )
    factor = np.divide(launches, timed, out=np.ones(len(names)), where=differs)
    marks = np.where(np.isnan(best.seconds) | best.is_bound, int(Mark.MISSING), 0)
    marks |= np.where(differs | best.is_slowed, int(Mark.ESTIMATED), 0)
    return best.seconds * factor, marks


def _disagreements(
    sums: CounterSums, marks: Array, units: Mapping[str, str], launches: Array, names: Sequence[str]
) -> Iterable[str]:
    """A warning for each group of counters that saw fewer launches of the same kernels than other counters did."""
    labels = list(units)
    estimated = (marks & int(Mark.ESTIMATED)) != 0
    found = np.flatnonzero(estimated.any(axis=1)).tolist()
    meters = [label if unit == JOULE else "" for label, unit in units.items()]  # each has a sentence of its own
    groups = gathered(
        ((meters[place], estimated[place].tobytes(), sums.launches[place, estimated[place]].tobytes()), place)
        for place in found
    )
    for counters in groups.values():
        fewer = estimated[counters[0]]
        first = int(np.flatnonzero(fewer)[0])
        seen = counted(int(sums.launches[counters[0], first]), "launch", "launches")
        seen_j = float(sums.sum[counters[0], fewer].sum())
        how = "brought to the larger number by averages, so estimated"
        if meters[counters[0]]:
            how = f"no joules are scaled, so these {seen_j:.6g} J are a lower bound"
        yield (
            f"{_these(fewer, names)}: {_listed([labels[counter] for counter in counters])} saw "
            f"{seen}, other counters {launches[first]:.0f}"
            f"{when(fewer.sum() > 1, ' (first kernel)')}; {how}"
        )


def _unmatched(launches: Array, best: _Time, names: Sequence[str]) -> Iterable[str]:
    """Warnings on kernels with a time but no counters, on those with counters but no time, and on mangled names."""
    time_s, timed = best.seconds, best.launches
    no_counters = (timed > 0) & (launches == 0)
    no_time = (launches > 0) & (timed == 0)
    if no_counters.any():
        yield f"{_these(no_counters, names)}: no counters, {float(np.nansum(time_s[no_counters])):.6g} s"
    if no_time.any():
        yield f"{_these(no_time, names)}: counters but no time, though other kernels have one"
    mangled = [{names[int(i)].startswith("_Z") for i in np.flatnonzero(chosen)} for chosen in (no_counters, no_time)]
    if True in mangled[0] ^ mangled[1] and False in mangled[0] | mangled[1]:
        yield "some logs have mangled kernel names (_Z...) and others not, so these do not match; use one --demangling"


def _these(chosen: Array, names: Sequence[str]) -> str:
    """The kernels where `chosen` is true, in words: the first few by name, and how many more there are."""
    return few([f"`{cut(names[int(row)], 60)}`" for row in np.flatnonzero(chosen)], _EXAMPLES, "kernels")


def told_apart(logs: Sequence[Log]) -> list[Log]:
    """The logs with functions of one name in several programs or libraries told apart: "main (a.out)"."""
    homes = gathered(chain.from_iterable(log.homes.items() for log in logs))
    several = {name for name, of_logs in homes.items() if len(set(of_logs)) > 1}
    return [
        log.renamed({name: f"{name} ({home})" for name, home in log.homes.items() if name in several}) for log in logs
    ]


def _in_one_spelling(logs: Sequence[Log]) -> tuple[Sequence[Log], list[str]]:
    """(The logs with kernels in traces called as ncu calls them, notes on times that were left out).

    Where names do not tell which kernel a trace timed, ncu's own time of it stands: a kernel is never timed twice.
    """
    counted = _kernels(logs, profilers.unions())
    if not counted:
        return logs, []
    names, ambiguous = match_names(_kernels(logs, profilers.timed()), counted)
    if not names and not ambiguous:
        return logs, []
    respelled = []
    for log in logs:
        tables = list(log.tables)
        for place, table in enumerate(tables):
            if table.kind in profilers.timed():
                kernel = table.rows.kernel
                rows = replace(table.rows, kernel=kernel.renamed(names.get(name, name) for name in kernel.names))
                is_clear = np.array([name not in ambiguous for name in kernel.names], dtype=bool)
                tables[place] = replace(table, rows=rows).chosen(is_clear[kernel.codes])
        respelled.append(replace(log, tables=tuple(tables)))
    notes = []
    if ambiguous:
        more = when(len(ambiguous) > _EXAMPLES, " and others")
        notes.append(
            f"a trace times {', '.join(f'`{name}`' for name in ambiguous[:_EXAMPLES])}{more}, which may be one of "
            "several kernels that ncu names otherwise: these times were not used"
        )
    return respelled, notes


def _kernels(logs: Sequence[Log], kinds: Collection[str]) -> set[str]:
    """The names of kernels in the logs' tables of these kinds."""
    tables = [table for log in logs for table in log.tables if table.kind in kinds]
    return {table.rows.kernel.names[code] for table in tables for code in set(table.rows.kernel.codes.tolist())}

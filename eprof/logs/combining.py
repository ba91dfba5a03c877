"""Several logs of one program joined: a row for each device and kernel.

The rules. Rows of the same device and kernel are launches of the same thing. A counter met again is a further run:
totals and launches add up. Different counters stand side by side; where they saw different numbers of launches, all are
brought to the largest by their averages over launches, and marked ESTIMATED. A launch of a trace whose cell holds no
value makes the total a lower bound, marked MISSING. Times of one kind of table add up over runs; a kernel timed by
several kinds has the time of the best: trace, then SQLite export, then summaries, because these mostly tell of the same
run. Time that was taken beside counters (by ncu, or in an nvprof export) is of a run that they slowed down: the last
resort, marked ESTIMATED.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from eprof import advice
from eprof.logs import spelling
from eprof.logs.gathering import named, together
from eprof.logs.header import SUMMARY, TRACE, WIDE
from eprof.logs.sums import Rows, Sums, blocks
from eprof.logs.table import COUNT, Launches, Log, Table, framed, matrix, objects
from eprof.marks import Mark

Array = np.ndarray[Any, Any]
_SLOWED = ("nvprof-sqlite-counted", "ncu-long", "ncu-raw", "ncu-report", "ncu-summary")
_TIME_KINDS = (TRACE, "nvprof-sqlite", "nsys-summary", SUMMARY, *_SLOWED)
_BY_LAUNCH = (WIDE, "nvprof-sqlite-counted", "ncu-long", "ncu-raw", "ncu-report")
_NUMBERED = re.compile(r"ncu device (\d+)(?: \(CC .*\))?")
_EXAMPLES = 3
_Row = tuple[str | None, str, str | None]
Times = dict[str, Sums]


def combine(logs: Sequence[Log]) -> Launches:
    """Join the tables of one or more logs: see the rules at the head of this module.

    Counters are totals over a row's launches where their unit is COUNT, else averages weighted by launches. Raises
    nothing: what does not match is said in `warnings`.
    """
    warnings = list(_same_twice(logs))
    logs, told = spelling.agree(logs)
    warnings += told
    kernels = _Kernels()
    placed = list(_place(together([table for log in logs for table in log.tables]), kernels, warnings))
    placed = list(_settle_parts(placed, kernels, warnings))
    size = len(kernels.rows)
    units = _units(placed, warnings)
    sums, times = _added_up(placed, size, units)
    launches = sums.launches.max(axis=0) if units else np.zeros(size)
    names = [kernel if part is None else f"{kernel} ({part})" for _, kernel, part in kernels.rows]
    values, marks = sums.result(launches)
    warnings += _disagreements(sums, marks, list(units), launches, names)
    time_s, timed, slowed = _best_time(times, names, warnings)
    if units and (timed > 0).any():
        warnings += _unmatched(launches, time_s, timed, names)
    time_s, time_marks = _to_launches(time_s, timed, launches, names, warnings)
    time_marks = np.where(slowed, time_marks | int(Mark.ESTIMATED), time_marks)
    return Launches(
        framed(
            {
                "device": objects([device for device, _, _ in kernels.rows]),
                "kernel": objects([kernel for _, kernel, _ in kernels.rows]),
                "launches": np.where(launches > 0, launches, np.where(timed > 0, timed, _seen(placed, size))).astype(
                    np.int64
                ),
                "time_s": time_s,
                "time_marks": time_marks,
                **({"part": objects([part for *_, part in kernels.rows])} if kernels.has_parts else {}),
            }
        ),
        matrix(list(units), values),
        matrix(list(units), marks),
        units,
        tuple(warnings),
    )


def _seen(placed: Sequence[tuple[Table, Array]], size: int) -> Array:
    """How many launches of each kernel some table tells of, whatever it knows of them."""
    told = [np.bincount(row, table.rows["launches"].to_numpy(), size) for table, row in placed]
    return np.asarray(np.max(told, axis=0)) if told else np.zeros(size)


def _added_up(placed: Sequence[tuple[Table, Array]], size: int, units: Mapping[str, str]) -> tuple[Sums, Times]:
    """The sums of all counters in their units, and those of the times of each kind of table."""
    sums = Sums(size, [unit == COUNT for unit in units.values()])
    kinds = {table.kind for table, _ in placed}
    times = {kind: Sums(size, [True]) for kind in _TIME_KINDS if kind in kinds}
    place = {label: number for number, label in enumerate(units)}
    for table, row in placed:
        rows = Rows(table, row, table.kind in _BY_LAUNCH)
        labels = table.counters.columns.tolist()
        for part, values in blocks(table.counters):
            own = [place[label] if table.units[label] == units[label] else -1 for label in labels[part]]
            places = np.array(own, dtype=np.intp)
            sums.add(rows, places[places >= 0], values[places >= 0])
        if table.kind in times:
            times[table.kind].add(rows, np.zeros(1, dtype=np.intp), table.rows["time_s"].to_numpy()[None])
    return sums, times


@dataclass
class _Kernels:
    """The rows to be: a number for each device, kernel and part, as they come. Without parts, that is None."""

    devices: dict[str, str] = field(default_factory=dict)
    rows: dict[_Row, int] = field(default_factory=dict)
    has_parts: bool = False

    def device(self, name: str) -> str:
        """The name a device goes by. Newer drivers write "NVIDIA GeForce ..." where older ones wrote "GeForce ..."."""
        return self.devices.setdefault(name.strip().removeprefix("NVIDIA "), name.strip())

    def numbers(self, table: Table, alone: str | None) -> Array:
        """The row that each row of `table` belongs to. `alone`: the device of rows that do not tell theirs."""
        device, kernel = named(table, "device"), named(table, "kernel")
        devices = [alone, *(self.device(str(name)) for name in device.categories)]
        kernels = [str(name) for name in kernel.categories]
        pair = (device.codes.astype(np.int64) + 1) * len(kernels) + kernel.codes
        parts: list[str | None] = [None]
        if "part" in table.rows:
            self.has_parts = True
            part = named(table, "part")
            parts = [None, *(str(name) for name in part.categories)]
            pair = pair * len(parts) + part.codes + 1
        codes, pairs = pd.factorize(pair)
        width = len(kernels) * len(parts)
        own = [
            (devices[one // width], kernels[one % width // len(parts)], parts[one % len(parts)])
            for one in pairs.tolist()
        ]
        return np.array([self.rows.setdefault(one, len(self.rows)) for one in own], dtype=np.int64)[codes]


def _same_twice(logs: Sequence[Log]) -> Iterable[str]:
    first: dict[str, str] = {}
    for log in logs:
        if log.sha256 in first:
            yield f"{log.path} is the same file as {first[log.sha256]}; it was added as if it were a further run"
        first.setdefault(log.sha256, log.path)


def _devices(table: Table) -> list[str]:
    """The devices of a table, as they come."""
    names = named(table, "device")
    return [str(names.categories[code]) for code in pd.unique(names.codes).tolist() if code >= 0]


def _name_devices(tables: Sequence[Table], kernels: _Kernels, warnings: list[str]) -> None:
    """Say which labels are one device: "ncu device 0 (CC 8.0)" is device 0 of other tables of ncu or time."""
    labels = {name: table.kind for table in tables for name in _devices(table)}
    for name, kind in labels.items():
        index = _NUMBERED.match(name)
        same = {
            one.strip().removeprefix("NVIDIA "): one
            for one, other in labels.items()
            if index and other in (*_TIME_KINDS, *_SLOWED) and one.endswith(f"({index[1]})")
        }
        if len(same) == 1 and kind in _SLOWED:
            ((key, known),) = same.items()
            kernels.devices[name] = kernels.devices.setdefault(key, known)
            warnings.append(f"{name} is taken to be {known}, as other logs name it")
        else:
            kernels.device(name)


def _only_part(table: Table) -> str | None:
    """The part of all rows of a table (a log of one rank), else None."""
    if "part" not in table.rows:
        return None
    names = named(table, "part").categories
    return str(names[0]) if len(names) == 1 else None


def _devices_of_ranks(tables: Sequence[Table], kernels: _Kernels) -> dict[str, list[str]]:
    """The devices that tables of one part only name: where a rank has one GPU, its rows without a device are of it."""
    found: dict[str, list[str]] = {}
    for table in tables:
        part = _only_part(table)
        for name in _devices(table) if part is not None else ():
            device = kernels.device(name)
            if device not in found.setdefault(part or "", []):
                found[part or ""].append(device)
    return found


def _place(tables: Sequence[Table], kernels: _Kernels, warnings: list[str]) -> Iterable[tuple[Table, Array]]:
    """Tables with the row of the result that each of their rows belongs to."""
    _name_devices(tables, kernels, warnings)
    every = list(dict.fromkeys(kernels.devices.values()))
    of_rank = _devices_of_ranks(tables, kernels)
    for table in tables:
        known = of_rank.get(_only_part(table) or "", every)
        nowhere = named(table, "device").codes < 0
        if len(known) > 1 and nowhere.any():
            warnings.append(
                f"{int(nowhere.sum())} rows of {table.kind} do not tell their device, and there are {len(known)} "
                f"({', '.join(known[:_EXAMPLES])}), so they were not used; make a log with `{advice.trace(table.kind)}`"
            )
            table = Table(table.kind, table.rows[~nowhere], table.counters[~nowhere], table.units)
        if len(table.rows):
            yield table, kernels.numbers(table, known[0] if len(known) == 1 else None)


def _settle_parts(
    placed: Sequence[tuple[Table, Array]], kernels: _Kernels, warnings: list[str]
) -> Iterable[tuple[Table, Array]]:
    """Rows that do not tell their part put to the kernel's only part, or all of its rows together (see the rules)."""
    untold = {(device, kernel) for device, kernel, part in kernels.rows if part is None}
    if not kernels.has_parts or not untold:
        return placed
    parts: dict[tuple[str | None, str], list[str]] = {}
    for device, kernel, part in kernels.rows:
        if part is not None and (device, kernel) in untold:
            parts.setdefault((device, kernel), []).append(part)
    rows: dict[_Row, int] = {}
    moved = np.empty(len(kernels.rows), dtype=np.int64)
    for (device, kernel, part), number in kernels.rows.items():
        known = parts.get((device, kernel), [])
        settled = part if not known else known[0] if len(known) == 1 else None
        moved[number] = rows.setdefault((device, kernel, settled), len(rows))
    kernels.rows = rows
    several = [kernel for (_, kernel), known in parts.items() if len(known) > 1]
    if several:
        warnings.append(
            f"{_these(np.ones(len(several), dtype=bool), several)}: some tables do not tell the part that the others "
            "do, so the kernel's counts and time cannot be shared out among its parts; collect both in tables that tell"
        )
    return [(table, moved[row]) for table, row in placed]


def _with_values(table: Table) -> set[str]:
    """The counters of which some row has a value."""
    labels: list[str] = table.counters.columns.tolist()
    found: set[str] = set()
    for part, values in blocks(table.counters):
        found.update(compress(labels[part], ~np.asarray(np.isnan(values).all(axis=1))))
    return found


def _units(placed: Sequence[tuple[Table, Array]], warnings: list[str]) -> dict[str, str]:
    """The unit of each counter: that of the first table that has a value of it."""
    units: dict[str, str] = {}
    for table, _ in placed:
        known = _with_values(table)
        for label, unit in table.units.items():
            if label in known and units.setdefault(label, unit) != unit:
                warnings.append(
                    f"`{label}` is a {units[label]} in one table and a {unit} in another, which was not used"
                )
    labels = dict.fromkeys(label for table, _ in placed for label in table.units)
    return {label: units.get(label, COUNT) for label in labels}


def _best_time(times: Times, names: Sequence[str], warnings: list[str]) -> tuple[Array, Array, Array]:
    """Seconds (NaN = not known), the launches that they are of, and whether the profiler slowed these down."""
    time_s, timed, slowed = np.full(len(names), np.nan), np.zeros(len(names)), np.zeros(len(names), dtype=bool)
    for kind, one in times.items():
        known, new = one.launches[0] > 0, np.isnan(time_s)
        # Nobody misses a time that was only the last resort.
        if (known & ~new).any() and kind not in _SLOWED:
            warnings.append(
                f"{_these(known & ~new, names)}: timed by a better table too, so the times of {kind} were not used"
            )
        time_s = np.where(new & known, one.sum[0], time_s)
        timed = np.where(new & known, one.launches[0], timed)
        slowed |= new & known & (kind in _SLOWED)
    return time_s, timed, slowed


def _to_launches(
    time_s: Array, timed: Array, launches: Array, names: Sequence[str], warnings: list[str]
) -> tuple[Array, Array]:
    """Times brought to the launches that the counters are of, and their marks."""
    other = (timed > 0) & (launches > 0) & (timed != launches)
    if other.any():
        one = int(np.flatnonzero(other)[0])
        warnings.append(
            f"{_these(other, names)}: times are of {_many(timed[one])}, counters of {launches[one]:.0f}"
            f"{' (first kernel)' if other.sum() > 1 else ''}; brought to the counters' launches, so estimated"
        )
    scaled = np.where(other, time_s * np.divide(launches, timed, out=np.ones(len(names)), where=timed > 0), time_s)
    marks = np.where(np.isnan(time_s), int(Mark.MISSING), np.where(other, int(Mark.ESTIMATED), 0))
    return scaled, marks


def _many(launches: float) -> str:
    return f"{launches:.0f} launch{'' if launches == 1 else 'es'}"


def _disagreements(
    sums: Sums, marks: Array, labels: Sequence[str], launches: Array, names: Sequence[str]
) -> Iterable[str]:
    """One sentence for counters that saw the same smaller number of launches of the same kernels."""
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    estimated = (marks & int(Mark.ESTIMATED)) != 0
    for one in np.flatnonzero(estimated.any(axis=1)).tolist():
        fewer = estimated[one]
        groups.setdefault((fewer.tobytes(), sums.launches[one, fewer].tobytes()), []).append(one)
    for alike in groups.values():
        fewer = estimated[alike[0]]
        first = int(np.flatnonzero(fewer)[0])
        more = f" and {len(alike) - _EXAMPLES} more counters" if len(alike) > _EXAMPLES else ""
        yield (
            f"{_these(fewer, names)}: {', '.join(f'`{labels[one]}`' for one in alike[:_EXAMPLES])}{more} saw "
            f"{sums.launches[alike[0], first]:.0f} launches, other counters {launches[first]:.0f}"
            f"{' (first kernel)' if fewer.sum() > 1 else ''}; brought to the larger number by averages, so estimated"
        )


def _unmatched(launches: Array, time_s: Array, timed: Array, names: Sequence[str]) -> Iterable[str]:
    """Kernels with a time but no counters, and the other way round."""
    no_counters, no_time = (timed > 0) & (launches == 0), (launches > 0) & (timed == 0)
    if no_counters.any():
        yield f"{_these(no_counters, names)}: no counters, {float(np.nansum(time_s[no_counters])):.6g} s"
    if no_time.any():
        yield f"{_these(no_time, names)}: counters but no time, though other kernels have one"
    mangled = [{names[int(i)].startswith("_Z") for i in np.flatnonzero(some)} for some in (no_counters, no_time)]
    if True in mangled[0] ^ mangled[1] and False in mangled[0] | mangled[1]:
        yield "some logs have mangled kernel names (_Z...) and others not, so these do not match; use one --demangling"


def _these(which: Array, names: Sequence[str]) -> str:
    """The kernels where `which` is true, the first of them by name."""
    chosen = [names[int(i)] for i in np.flatnonzero(which)]
    first = ", ".join(f"`{name if len(name) <= 60 else name[:57] + '...'}`" for name in chosen[:_EXAMPLES])
    return first + (f" and {len(chosen) - _EXAMPLES} more kernels" if len(chosen) > _EXAMPLES else "")

"""Launches of a long log of ncu added up while read, so that memory grows with its kernels (as `nvprof.folding`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from eprof.base.errors import LogError
from eprof.profilers.ncu import derived
from eprof.profilers.ncu.csv import Section, coded, together
from eprof.profilers.ncu.long import Long, Part
from eprof.profilers.ncu.numbers import Array
from eprof.rows.log import COUNT

_LAUNCH = ("Process ID", "ID")


def whole_launches(section: Section, tables: Sequence[pa.Table]) -> tuple[pa.Table, pa.Table]:
    """The rows of a table of one row a metric that are of whole launches; and those of the last, which may go on."""
    table = together(tables)
    last = np.ones(len(table), dtype=bool)
    for place in (section.at(name) for name in _LAUNCH):
        if place is not None:
            codes = coded(table[str(place)])[0]
            last &= codes == codes[-1]
    others = np.flatnonzero(~last)
    cut = int(others[-1]) + 1 if len(others) else 0
    return table.slice(0, cut), _own(table.slice(cut))


def _own(table: pa.Table) -> pa.Table:
    """A few rows without the words that only other rows use: carried along, they would grow with the log."""
    return pa.table(
        {
            name: column.cast(pa.string()).combine_chunks().dictionary_encode()
            if pa.types.is_dictionary(column.type)
            else pa.array(column.to_pylist(), column.type)
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )


class Numbers:
    """The numbers of the launches that were added up: one that comes again could not be told from a new one."""

    def __init__(self) -> None:
        self._highest: dict[str, int] = {}

    def add(self, long: Long, path: str) -> None:
        """Take the launches of some rows. Raises LogError if one may have been there before."""
        if "ID" not in long.codes or not len(long.texts):
            return
        first = long.launches[0]
        words = [long.words["ID"][code] for code in long.codes["ID"][first].tolist()]
        numbers = np.array([int(word.replace(",", "")) for word in words], dtype=np.int64)
        process = long.codes["Process ID"][first] if "Process ID" in long.codes else np.zeros(len(first), np.int32)
        names = long.words.get("Process ID", [""])
        for one in np.unique(process).tolist():
            own = numbers[process == one]
            before = self._highest.get(names[one], -1)
            if own.min() <= before:
                raise LogError(
                    f"{path}: launch {own.min()} of process {names[one]} comes far behind launch {before}, and so long "
                    "a log is added up launch by launch; write one log a process, with its launches in order of ID"
                )
            self._highest[names[one]] = int(own.max())


def joined(parts: Sequence[Part]) -> Part:
    """Parts of one section as one, with a row for each kernel, process and pattern of metrics without a number."""
    units: dict[str, str] = {}
    missing: dict[str, int] = {}
    for part in parts:
        units = {**part.units, **units}
        for name, number in part.missing.items():
            missing[name] = missing.get(name, 0) + number
    rows = {name: np.concatenate([part.rows[name] for part in parts]) for name in parts[0].rows}
    counters = {name: np.concatenate([part.column(name) for part in parts]) for name in units}
    metrics = list(dict.fromkeys(name for part in parts for name in part.metrics))
    scaled = list(dict.fromkeys(name for part in parts for name in part.scaled))
    twice = list(dict.fromkeys(name for part in parts for name in part.twice))
    clocks = derived.joined([clock for part in parts for clock in part.clocks])
    return _added_up(Part(parts[0].kind, rows, counters, units, metrics, missing, scaled, clocks, twice))


def _added_up(part: Part) -> Part:
    time_s, launches = part.rows["time_s"], part.rows["launches"]
    key = _alike(part.rows, [time_s, *part.counters.values()])
    size = int(key.max(initial=-1)) + 1
    first = np.full(size, len(key), dtype=np.int64)
    np.minimum.at(first, key, np.arange(len(key)))
    number = np.bincount(key, launches, size)
    rows = {name: column[first] for name, column in part.rows.items()}
    rows |= {"launches": number.astype(np.int64), "time_s": np.bincount(key, time_s, size)}
    sums = {
        name: np.bincount(key, values, size)
        if part.units[name] == COUNT
        else np.bincount(key, values * launches, size) / np.maximum(number, 1)
        for name, values in part.counters.items()
    }
    return replace(part, rows=rows, counters=sums)


def _alike(rows: Mapping[str, Array], columns: Sequence[Array]) -> Array:
    """The same number for rows of one device, kernel, process and part that lack the same values."""
    key = np.zeros(len(rows["kernel"]), dtype=np.int64)
    for name in ("device", "kernel", "process", "part"):
        if name in rows:
            codes = pd.factorize(rows[name])[0].astype(np.int64)
            key = pd.factorize(key * (len(key) + 1) + codes)[0].astype(np.int64)
    for column in columns:
        lost = np.isnan(column)
        if lost.any() and not lost.all():
            key = pd.factorize(key * 2 + lost)[0].astype(np.int64)
    return np.asarray(key)

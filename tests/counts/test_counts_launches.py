"""Launches by hand and from real logs, for the tests of the counts room."""

from pathlib import Path

import numpy as np
import pytest

from eprof import logs
from eprof.base.arrays import Columns
from eprof.counts import definition_files
from eprof.logs.log import KernelRows, Launches

DATA = Path(__file__).parents[3] / "shared" / "data" / "nvprof"
UNITS = {
    name: counter.unit
    for definition in definition_files.definitions()
    for counter in definition.counters.values()
    for name in counter.profiler_names
}


def make(values, launches=1, time_s=np.nan, names=None, units=None, marks=None, device="Tesla K20c (0)"):
    """Launches with these counters: name -> a value, or a list with one value a kernel."""
    columns = {name: np.atleast_1d(np.asarray(value, dtype=float)) for name, value in values.items()}
    length = max([len(column) for column in columns.values()] + [len(names or [0])])
    numbers = np.empty((length, len(columns)))
    for at, column in enumerate(columns.values()):
        numbers[:, at] = column
    rows = KernelRows(
        device=np.full(length, device, dtype=object),
        kernel=np.array(names or [f"k{number}(float*)" for number in range(length)], dtype=object),
        launches=np.array(np.broadcast_to(launches, length)),
        time_s=np.array(np.broadcast_to(np.asarray(time_s, dtype=float), length)),
        time_marks=np.zeros(length, dtype=np.int64),
    )
    known = Columns(tuple(columns), np.zeros(numbers.shape, dtype=np.int8))
    for name, mark in (marks or {}).items():
        known[name][:] = np.asarray(mark, dtype=np.int8)
    all_units = {**{name: UNITS.get(name, "count") for name in values}, **(units or {})}
    return Launches(rows, Columns(tuple(columns), numbers), known, all_units)


def real(*names, **options):
    """A real log, as Launches; the test is skipped where the logs are not at hand."""
    paths = [DATA / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("the real logs are not at hand")
    return logs.combine([logs.read(path, names=definition_files.descriptions(), **options) for path in paths])


def row(counts, number=0):
    """One kernel's counts, by word."""
    return counts.table.iloc[number].to_dict()

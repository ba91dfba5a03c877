"""Launches whose metrics of ncu others collected, and hand on by name: nsight-python, Kernel Tuner."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
from msgspec import Struct

from eprof.logs.rows.cells import is_wrong
from eprof.logs.rows.log import Log
from eprof.logs.rows.units import Unit, unit_of
from eprof.profilers.ncu import derived, notes
from eprof.profilers.ncu.sheet import Remarks, Sheet, part_of
from eprof.profilers.ncu.tables import tables_of

KIND = "ncu-metrics"


class Launch(Struct):
    """A launch. values: its metrics, in `units`; in base units where a metric has none there. part: its range."""

    kernel: str
    gpu: str | None
    values: dict[str, float]
    units: dict[str, str]
    part: str | None = None


def log_of(path: str, launches: Sequence[Launch], keep: Container[str] | None = None, split: bool = False) -> Log:
    """A log of launches whose metrics of ncu others collected.

    keep: the counters to hold, None for all. split: by their parts.
    """
    part = part_of(_sheet(launches, keep, split), keep)
    return Log(
        path=path,
        format=KIND,
        sha256="",
        size_bytes=0,
        tables=tuple(tables_of([part])),
        notes=tuple(notes.of_parts([part], keep)),
        clocks=part.clocks,
    )


def _sheet(launches: Sequence[Launch], keep: Container[str] | None, split: bool) -> Sheet:
    names = list(dict.fromkeys(name for launch in launches for name in launch.values))
    units: dict[str, Unit] = {}
    for launch in launches:
        for name in launch.values:
            if name not in units and derived.is_read(name, keep):
                units[name] = unit_of(launch.units.get(name, ""))
    matrix = np.full((len(units), len(launches)), np.nan)
    for row, name in zip(matrix, units, strict=True):
        for place, launch in enumerate(launches):
            value = launch.values.get(name, np.nan)
            if not is_wrong(value):
                row[place] = value * unit_of(launch.units.get(name, "")).factor
    return Sheet(
        kind=KIND,
        device=["0"] * len(launches),
        capability=[None] * len(launches),
        gpu=[launch.gpu for launch in launches],
        kernel=[launch.kernel for launch in launches],
        process=["0"] * len(launches),
        launches=np.ones(len(launches), dtype=np.int64),
        units=units,
        values=matrix,
        part=[launch.part for launch in launches] if split else None,
        remarks=Remarks(metrics=names),
    )

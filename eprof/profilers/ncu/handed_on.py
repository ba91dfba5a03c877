"""Launches whose metrics of ncu others collected, and hand on by name: nsight-python, Kernel Tuner.

Results of nsight-python (NVIDIA's `@nsight.analyze.kernel`): its data frames, and the CSV that it makes of them.

Columns: docs.nvidia.com/nsight-python, "Raw Data CSV" and "Processed Data CSV": a row a run and metric, or their means
over the runs; behind the columns that are always there, one for each argument of the decorated function.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import LogError, UsageError
from eprof.counts import counters
from eprof.logs.rows.cells import is_wrong
from eprof.logs.rows.log import Log
from eprof.logs.rows.numbers import Unit, unit_of
from eprof.logs.rows.stream import Source
from eprof.profilers.ncu import derived
from eprof.profilers.ncu.sheet import Collected, Remarks, Sheet, notes_of_counters

KIND = "ncu-metrics"
_VALUES = ("Value", "AvgValue")
_NEEDED = ("Annotation", "Metric", "Kernel", "Unit")
# What is no argument of the function, and may differ between the metrics of one launch.
_OF_METRIC = frozenset(
    (*_VALUES, "Metric", "Unit", "StdDev", "MinValue", "MaxValue", "NumRuns", "CI95_Lower", "CI95_Upper")
    + ("RelativeStdDevPct", "StableMeasurement", "Normalized", "Geomean", "Transformed")
)
_ALWAYS = frozenset(("Annotation", "Kernel", "GPU", "Host", "ComputeClock", "MemoryClock"))
Row = Mapping[Any, Any]


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
    collected = Collected()
    collected.add(KIND, collected.piece(_sheet(launches, keep, split), keep))
    tables = collected.tables()
    return Log(
        path=path,
        format=KIND,
        sha256="",
        size_bytes=0,
        tables=tables,
        notes=tuple(notes_of_counters(tables, collected.remarks, keep)),
        clocks=tuple(collected.clocks),
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


def read(source: Source, pieces: Iterator[bytes], keep: Container[str] | None, parts: str | None, *_: object) -> Log:
    """Read a CSV of nsight-python. Raises LogError: it is cut off, or holds no metrics."""
    lines = b"".join(pieces).decode("utf-8", "replace").splitlines()
    try:
        log = of_rows(source.path, csv.DictReader(lines), keep, parts)
    except csv.Error as err:
        raise LogError(f"{source.path}: a line is no row of a table ({err})") from err
    return replace(log, lines=len(lines), sha256=source.sha256, size_bytes=source.size_bytes)


def of_frame(frame: Any, parts: str | None) -> Log:
    """The log of a data frame of nsight-python. Raises UsageError: it is none; LogError: it has other columns."""
    if not hasattr(frame, "to_dict"):
        raise UsageError(
            f"eprof.load takes names of files and data frames of nsight-python, no {type(frame).__name__}."
        )
    return of_rows("data frame", frame.to_dict("records"), counters.names_in_use("ncu"), parts)


def of_rows(path: str, rows: Iterable[Row], keep: Container[str] | None, parts: str | None) -> Log:
    """The log of the rows of an nsight-python table. Raises LogError with what is wrong with them."""
    launches: dict[object, Launch] = {}
    seen: Counter[object] = Counter()
    for row in rows:
        _check(path, row)
        about = tuple((name, str(row[name])) for name in row if name not in _OF_METRIC)
        metric = str(row["Metric"])
        # The metrics of one run stand together, those of the next run, or derived ones, behind them.
        run = seen[about, metric]
        seen[about, metric] += 1
        arguments = [f"{name}={row[name]}" for name in row if name not in _OF_METRIC | _ALWAYS]
        part = " ".join([str(row["Annotation"]), *arguments])
        new = Launch(str(row["Kernel"]), str(row.get("GPU") or "") or None, {}, {}, part)
        launch = launches.setdefault((about, run), new)
        launch.values[metric] = _number(next(row[name] for name in _VALUES if name in row))
        launch.units[metric] = str(row["Unit"])
    if not launches:
        raise LogError(f"{path}: holds no rows of nsight-python.")
    return log_of(path, list(launches.values()), keep, split=parts == "nvtx")


def _check(path: str, row: Row) -> None:
    """Raises LogError for a row that nsight-python does not write."""
    lacking = [name for name in _NEEDED if row.get(name) is None]
    if lacking or not any(name in row for name in _VALUES):
        raise LogError(
            f"{path}: is no result of nsight-python, or cut off: {', '.join(lacking) or 'a value'} is not there; give "
            "the frame that `to_dataframe()` returns, or the CSV of `output_csv=True`."
        )
    if str(row.get("Normalized", False)) not in ("False", ""):
        raise LogError(
            f"{path}: its values are normalized against {row['Normalized']}, which are no counts; profile without "
            "`normalize_against`."
        )


def _number(value: Any) -> float:
    """A cell of nsight-python's table as a number; NaN where it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan

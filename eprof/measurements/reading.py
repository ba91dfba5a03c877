"""Reads files of measurements by a column mapping."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from eprof.measurements import mapping as mappings
from eprof.measurements.mapping import ENERGIES, POWERS, TIMES, Columns
from eprof.measurements.values import COUNTED, ROW_COLUMNS, USED, MeasurementError, Measurements


def read(
    paths: str | Path | Iterable[str | Path],
    mapping: str | Columns | None = None,
    reference: tuple[float, float] | None = None,
) -> Measurements:
    """Read one or several files of the same family. Raises MeasurementError, DefinitionError."""
    listed = [paths] if isinstance(paths, str | Path) else list(paths)
    parts = [_read_one(Path(path), mapping) for path in listed]
    return parts[0]


def _read_one(path: Path, mapping: str | Columns | None) -> Measurements:
    frame = pd.read_csv(path)
    columns = mappings.choose(frame.columns, str(path)) if mapping is None else mapping
    if isinstance(columns, str):
        columns = mappings.load(columns)
    rows = _rows(frame, columns)
    rates, domains = _rates(frame, rows, columns)
    reference = columns.reference or (rows["core_mhz"].max(), rows["memory_mhz"].max())
    kind = COUNTED if columns.kind == "energies" else columns.kind
    return Measurements(
        rows, rates, domains, kind, reference, (), (str(path),), columns.name, columns.kind == "energies"
    )


def _column(frame: pd.DataFrame, what: Any) -> pd.Series:
    return frame[what] if isinstance(what, str) else pd.Series(float(what), index=frame.index)


def _scaled(frame: pd.DataFrame, columns: Columns, units: Mapping[str, float]) -> pd.Series | None:
    for key, unit in units.items():
        if key in columns.columns and (not isinstance(columns.columns[key], str) or columns.columns[key] in frame):
            return _column(frame, columns.columns[key]) * unit
    return None


def _rows(frame: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    named = columns.columns["benchmark"]
    words = [one for one in (named if isinstance(named, list) else [named]) if one in frame]
    benchmark = (
        frame[words].astype(str).agg("/".join, axis=1) if words else frame[columns.columns["benchmark_id"]].astype(str)
    )
    rows = pd.DataFrame({"benchmark": benchmark})
    kernel = columns.columns.get("kernel")
    rows["kernel"] = frame[kernel].astype(str) if kernel in frame else benchmark
    for key in ("core_mhz", "memory_mhz"):
        rows[key] = _column(frame, columns.columns[key]).astype(float)
    time = _scaled(frame, columns, TIMES)
    rows["time_s"] = np.nan if time is None else time
    power = _scaled(frame, columns, POWERS)
    energy = _scaled(frame, columns, ENERGIES)
    if power is None and energy is not None:
        power = energy / rows["time_s"]
    if power is None:
        raise MeasurementError("no power")
    rows["power_w"] = power
    rows["core_v"], rows["memory_v"] = np.nan, np.nan
    rows["line"] = np.arange(len(rows)) + 2
    return rows[list(ROW_COLUMNS)]


def _rates(frame: pd.DataFrame, rows: pd.DataFrame, columns: Columns) -> tuple[pd.DataFrame, dict[str, str]]:
    if columns.kind == "energies":
        found: dict[str, pd.Series] = {}
        domains = {}
        for benchmark in rows["benchmark"].unique():
            for domain in ("core", "memory"):
                found[f"{domain}: {benchmark}"] = (rows["benchmark"] == benchmark) / rows["time_s"] / 1e9
                domains[f"{domain}: {benchmark}"] = domain
        return pd.DataFrame(found), domains
    present = columns.present(frame.columns)
    values = {name: frame[name].astype(float) for term in present for name in term.formula.names}
    rates = {}
    for term in present:
        number = term.formula(values)
        rates[term.name] = (
            number / rows["time_s"] / 1e9 if columns.kind != USED else number * rows[f"{term.domain}_mhz"] / 1e3
        )
    return pd.DataFrame(rates), {term.name: term.domain for term in present}

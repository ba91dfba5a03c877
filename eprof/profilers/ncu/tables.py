"""From the parts of a log of Nsight Compute to its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from eprof.base.arrays import Columns
from eprof.logs.rows.log import Names, Table, TableRows
from eprof.profilers.ncu.sheet import Part

ASIDE = ("device__", "launch__", "profiler__", "c2clink__", "nvlink__", "numa__")  # what no kernel does
_PID_DIGITS = 18  # that fit in 64 bits


def tables_of(parts: Sequence[Part]) -> list[Table]:
    """The tables of an ncu log: its parts of one kind below each other; every process of every part is a run."""
    kinds = dict.fromkeys(part.kind for part in parts)
    return [_table([part for part in parts if part.kind == kind]) for kind in kinds]


def _table(parts: Sequence[Part]) -> Table:
    units: dict[str, str] = {}
    for part in parts:
        units = {**part.units, **units}
    if not counting(units):
        units = {name: unit for name, unit in units.items() if not name.startswith(ASIDE)}
    processes = [(place, process) for place, part in enumerate(parts) for process in part.names["process"].texts()]
    run_of = {process: run for run, process in enumerate(dict.fromkeys(processes))}
    numbers = {text: int(text) for _, text in run_of if text and text.isdecimal() and len(text) <= _PID_DIGITS}
    rows = TableRows(
        device=_column_names(parts, "device"),
        kernel=_column_names(parts, "kernel"),
        run=np.array([run_of[process] for process in processes], dtype=np.int64),
        launches=np.concatenate([part.rows["launches"] for part in parts]),
        time_s=np.concatenate([part.rows["time_s"] for part in parts]),
        process=np.array([numbers.get(text or "", -1) for _, text in processes], dtype=np.int64),
        part=_column_names(parts, "part") if any("part" in part.names for part in parts) else None,
    )
    values = np.full((len(units), len(processes)), np.nan)
    for name, row in zip(units, values, strict=True):
        np.concatenate([part.column(name) for part in parts], out=row)
    return Table(parts[0].kind, rows, Columns(tuple(units), values.T), units)


def _column_names(parts: Sequence[Part], column: str) -> Names:
    texts = [part.names[column].texts() if column in part.names else np.full(part.size, None) for part in parts]
    return Names.of(np.concatenate(texts).tolist())


def counting(names: Iterable[str]) -> bool:
    """Whether a program can be counted with these metrics of an ncu table: not with what they say of the device
    alone.
    """
    return any("__" in name and not name.startswith(ASIDE) for name in names)

"""From the parts of a log of Nsight Compute to its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from eprof.base.arrays import Columns
from eprof.profilers.ncu.sheet import Part
from eprof.rows.log import Names, Table, TableRows

ASIDE = ("device__", "launch__", "profiler__", "c2clink__", "nvlink__", "numa__")  # what no kernel does
_PID_DIGITS = 18  # that fit in 64 bits


def tables_of(parts: Sequence[Part]) -> list[Table]:
    """The sections of one kind below each other; every process of every section is a run."""
    return [
        _table([part for part in parts if part.kind == kind]) for kind in dict.fromkeys(part.kind for part in parts)
    ]


def _table(parts: Sequence[Part]) -> Table:
    units: dict[str, str] = {}
    for part in parts:
        units = {**part.units, **units}
    if not counting(units):
        units = {name: unit for name, unit in units.items() if not name.startswith(ASIDE)}
    runs: dict[tuple[int, str | None], int] = {}
    processes = [(place, one) for place, part in enumerate(parts) for one in part.rows["process"].tolist()]
    table = TableRows(
        device=Names.of(_words(parts, "device")),
        kernel=Names.of(_words(parts, "kernel")),
        run=np.array([runs.setdefault(one, len(runs)) for one in processes], dtype=np.int64),
        launches=np.concatenate([part.rows["launches"] for part in parts]),
        time_s=np.concatenate([part.rows["time_s"] for part in parts]),
        process=np.array([_number(one) for _, one in processes], dtype=np.int64),
        part=Names.of(_words(parts, "part")) if any("part" in part.rows for part in parts) else None,
    )
    values = np.full((len(units), len(processes)), np.nan)
    for name, row in zip(units, values, strict=True):
        np.concatenate([part.column(name) for part in parts], out=row)
    return Table(parts[0].kind, table, Columns(tuple(units), values.T), units)


def _number(process: str | None) -> int:
    """The number of a process; -1 where it is not told."""
    return int(process) if process is not None and process.isdecimal() and len(process) <= _PID_DIGITS else -1


def _words(parts: Sequence[Part], name: str) -> list[str | None]:
    return [one for part in parts for one in part.rows.get(name, np.full(part.size, None)).tolist()]


def counting(names: Iterable[str]) -> bool:
    """Whether a program can be counted with these metrics: not with what they say of the device alone."""
    return any("__" in name and not name.startswith(ASIDE) for name in names)

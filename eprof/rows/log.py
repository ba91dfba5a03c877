"""What a reader makes of a log: `Log`, its `Table`s, and `Launches`, which joins the tables of one or more logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

# Units of a counter's values after reading. Only "count" is a count; the others are kept as what they are.
COUNT, PERCENT, BYTES_PER_S, LEVEL, OTHER = "count", "percent", "byte_per_s", "level", "other"


@dataclass(frozen=True, eq=False)
class Table:
    """One kind of table of one log, the same kind of several runs put below each other.

    rows: `device` ("Tesla K20c (0)", or NaN where the format does not tell), `kernel` (full name as printed, without a
    launch id), `run` (0, 1, ... for appended runs and processes), `launches` (how many launches the row stands for: 1
    in a trace that is not long), `time_s` (their total time without counter collection; NaN where the table has none).
    Devices and kernels are categorical: a row holds a number, not a name. Where the reader knows it, `process`: the
    number of the run's process (-1 = not told). Where it was asked for, `part`: the rank, stream or NVTX range of the
    row (categorical, NaN = not told).
    counters: float64, same index, a column a counter as the log names it; *totals* over the row's launches where the
    unit is COUNT, else averages; NaN = there, but without a value: overflowed, invalid. units: counter -> one of the
    units above. collected: the counters that its runs have in tables of this kind, where these are more than the
    columns; None: the columns. lacks_rows: the log is known to have lost rows, so all sums are lower bounds.
    """

    kind: str
    rows: pd.DataFrame
    counters: pd.DataFrame
    units: Mapping[str, str]
    collected: frozenset[str] | None = None
    lacks_rows: bool = False

    def chosen(self, rows: np.ndarray[Any, Any]) -> Table:
        """The rows where `rows` is true."""
        return replace(self, rows=self.rows[rows], counters=self.counters[rows])


@dataclass(frozen=True)
class Clock:
    """The mean clocks of a device over `time_s` s of its launches, in MHz; None for what a log does not tell."""

    device: str | None
    time_s: float
    core_mhz: float | None
    memory_mhz: float | None

    @staticmethod
    def mean(device: str | None, clocks: Sequence[Clock]) -> Clock:
        """One for several, weighted by their times."""

        def of(told: Sequence[tuple[float | None, float]]) -> float | None:
            known = [(mhz, time_s) for mhz, time_s in told if mhz is not None]
            return sum(mhz * time_s for mhz, time_s in known) / sum(time_s for _, time_s in known) if known else None

        core, memory = (of([(getattr(one, name), one.time_s) for one in clocks]) for name in ("core_mhz", "memory_mhz"))
        return Clock(device, sum(one.time_s for one in clocks), core, memory)


@dataclass(frozen=True, eq=False)
class Log:
    """One file as it was read. `format` names the kinds of table in it; `notes` are sentences for the user.

    clocks: those that the launches ran at, a device each, where the log tells them.
    device: the only one that lines beside the tables name.
    """

    path: str
    format: str
    lines: int
    skipped_lines: int
    sha256: str
    size_bytes: int
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()
    command: str | None = None
    example_skipped: str | None = None
    processes: int = 1
    clocks: tuple[Clock, ...] = ()
    device: str | None = None


@dataclass(frozen=True, eq=False)
class Launches:
    """The tables of one or more logs joined: one row for each device and kernel, summed over launches and runs.

    kernels: `device` (None where no log tells), `kernel`, `launches`, `time_s` (total, NaN = not known), `time_marks`
    (int, `Mark`); where logs tell parts, `part` (text, None = not told), and a row for each. counters: float64, same
    index, NaN = not known. marks: same shape as counters, int8 `Mark` bits. units: counter -> unit. warnings: sentences
    about what did not match. lacks_rows: a log was cut or damaged, so that launches of any kernel may be missing; of
    those that are there, all counters are.
    """

    kernels: pd.DataFrame
    counters: pd.DataFrame
    marks: pd.DataFrame
    units: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    lacks_rows: bool = False


def framed(columns: Mapping[str, Any]) -> pd.DataFrame:
    """As pandas.DataFrame(columns, copy=False), in half the time where there are few rows."""
    frame = pd.DataFrame(dict(enumerate(columns.values())), copy=False)
    frame.columns = _headings(tuple(columns))
    return frame


def matrix(labels: Sequence[str], values: np.ndarray[Any, Any]) -> pd.DataFrame:
    """A table of numbers with a column a label; values: a row a label, not copied."""
    return pd.DataFrame(values.T, columns=_headings(tuple(labels)), copy=False)


def objects(values: Sequence[Any]) -> pd.Index:
    """A column of Python's own values, for `framed`."""
    column: pd.Index = pd.Index(values, dtype=object)
    return column


def name_column(names: Sequence[str]) -> pd.Categorical:
    """A column of names, each held once."""
    places: dict[str, int] = {}
    codes = np.array([places.setdefault(name, len(places)) for name in names], dtype=np.int32)
    return pd.Categorical.from_codes(codes, dtype=categories(tuple(places)), validate=False)


@lru_cache(maxsize=64)
def categories(names: tuple[str, ...]) -> pd.CategoricalDtype:
    """The same for thousands of short logs of one program; making it takes longer than reading one."""
    return pd.CategoricalDtype(pd.Index(names, dtype=object))


@lru_cache(maxsize=64)
def _headings(labels: tuple[str, ...]) -> pd.Index:
    """The same for thousands of short logs; making it takes as long as a table."""
    return pd.Index(labels) if labels else pd.RangeIndex(0)

"""Launches as tables of pandas, which tests can pick apart by name."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from msgspec.structs import replace

from eprof import logs
from eprof.base.arrays import Columns
from eprof.counts.counts import Counts
from eprof.logs.log import KernelRows


@dataclass(eq=False)
class Frames:
    """`Launches` with a table of pandas for its rows, its counters and their marks."""

    kernels: pd.DataFrame
    counters: pd.DataFrame
    marks: pd.DataFrame
    units: Mapping[str, str]
    warnings: tuple[str, ...]
    lacks_rows: bool


def combine(*args):
    """As `logs.combine`, with tables of pandas."""
    joined = logs.combine(*args)
    frames = (part.frame() for part in (joined.rows, joined.counters, joined.marks))
    return Frames(*frames, joined.units, joined.warnings, joined.lacks_rows)


def columns(frame):
    """A table of pandas as `Columns`."""
    return Columns(tuple(frame.columns), frame.to_numpy())


def counts_of(kernels, table, marks, how, books):
    """Counts of tables of pandas, such as their `kernels`, `table` and `marks` are."""
    rows = KernelRows(**{str(name): kernels[name].to_numpy() for name in kernels})
    amounts = Columns(tuple(table.columns), table.to_numpy(dtype=np.float64))
    return Counts(rows, amounts, Columns(tuple(marks.columns), marks.to_numpy(dtype=np.int64)), how, books)


def counts_with(counts, kernels=None, table=None, marks=None):
    """Counts with other tables than their own."""
    frames = (
        counts.kernels if kernels is None else kernels,
        counts.table if table is None else table,
        counts.marks if marks is None else marks,
    )
    return replace(counts_of(*frames, counts.how, counts.books), warnings=counts.warnings)

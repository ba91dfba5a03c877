"""What the time by component needs beside instructions and bytes: how launches were shaped, transactions, conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.counts.definition import COMPONENTS, SIGNS
from eprof.logs.rows.log import Log

if TYPE_CHECKING:
    from eprof.counts.counts import Counts, Sheet


def of_sheet(sheet: Sheet) -> Columns:
    """The launch shapes, `COMPONENTS` and `SIGNS` as far as counters tell: totals over launches, (n_kernels, n)."""
    columns = dict.fromkeys((*COMPONENTS, *SIGNS), np.full(sheet.length, np.nan))
    for name, entries in sheet.definition.components.items():
        cells = sheet.first_known(name, entries)
        if cells is not None:
            columns[name] = cells.values * np.where(cells.averaged, sheet.launches.rows.launches, 1)
    return Columns.of(columns, sheet.length)


def below(shapes: Sequence[Columns | None]) -> Columns | None:
    """The launch shapes of several devices below each other; None where those of one are not known."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    return Columns(known[0].names, np.concatenate([shape.values for shape in known]))


def with_traces(counts: Counts, logs: Iterable[Log]) -> Counts:
    """The counts with the launch shapes of traces where counters tell none: the mean of each kernel."""
    shapes = [shape for log in logs for shape in log.shapes]
    if counts.shape is None or not shapes:
        return counts
    columns = {name: counts.shape[name] for name in counts.shape.names}
    for name in ("blocks", "threads", "registers", "shared_byte"):
        sums: dict[str, tuple[float, int]] = {}
        for shape in shapes:
            total, launches = sums.get(shape.kernel, (0.0, 0))
            sums[shape.kernel] = total + getattr(shape, name), launches + shape.launches
        mean = {kernel: total / launches for kernel, (total, launches) in sums.items()}
        traced = np.array([mean.get(kernel, np.nan) for kernel in counts.rows.kernel], dtype=np.float64)
        columns[name] = np.where(np.isnan(columns[name]), traced * counts.rows.launches, columns[name])
    return replace(counts, shape=Columns.of(columns, len(counts.rows)))

"""When each launch ran, for whom, and which row of the result it is of."""

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Array
from eprof.logs.join.gathering import below_each_other
from eprof.logs.rows.log import Names, Table, TableRows


def timeline(
    placed: Iterable[tuple[Table, Array]], rows: Sequence[tuple[str | None, str, str | None]]
) -> TableRows | None:
    """When each launch ran: launches of the tables that tell it, under the names of the result; None where none does.

    placed: each table, with the place in `rows` (device, kernel, part) of each of its rows. Of several tools that
    traced one run, those that tell operators are taken, else the first: their launches are the same.
    """
    timed = [(table, row) for table, row in placed if table.rows.start_ns is not None]
    if not timed:
        return None
    kinds = [table.kind for table, _ in timed if table.rows.operator is not None] or [timed[0][0].kind]
    devices = Names.of(device for device, *_ in rows)
    kernels = Names.of(kernel for _, kernel, _ in rows)
    return below_each_other(
        [
            replace(_bare(table.rows), device=devices.chosen(row), kernel=kernels.chosen(row))
            for table, row in timed
            if table.kind == kinds[0]
        ]
    )


def _bare(rows: TableRows) -> TableRows:
    """Launches with the columns that any timeline has, so that those of several tables go below each other."""
    unknown = Names((), np.full(len(rows), -1, dtype=np.int32))
    return replace(rows, process=None, part=None, stream=rows.stream or unknown, operator=rows.operator or unknown)

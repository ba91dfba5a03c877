"""Tables of many logs put below each other, and when each of their launches ran.

A table of ten rows takes more room and time than its rows do. What `combining` makes of gathered tables stays the same,
but for the last digits of times, which are added in another order.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Array, Columns
from eprof.logs.rows.log import Log, Names, Table, TableRows

# Rows beyond which a table is no longer short, and copying it would take room for nothing.
_LONG = 1 << 13


def gathered(logs: Sequence[Log]) -> list[Log]:
    """The same logs, their short tables gathered in the first, for what looks at all logs together."""
    tables = together([table for log in logs for table in log.tables])
    return [replace(log, tables=() if place else tables) for place, log in enumerate(logs)]


def together(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Short tables that are alike (kind, columns, units, and the part if each is of one) as one table each."""
    if len(tables) == 1:
        return (tables[0],)
    groups: dict[tuple[Any, ...], list[Table]] = {}
    for number, table in enumerate(tables):
        groups.setdefault(_signature(table, number), []).append(table)
    joined = []
    for first, *more in groups.values():
        if more:
            values = np.concatenate([table.counters.values for table in (first, *more)])
            rows = below_each_other([table.rows for table in (first, *more)])
            first = replace(first, rows=rows, counters=Columns(first.counters.names, values))
        joined.append(first)
    return tuple(joined)


def _signature(table: Table, number: int) -> tuple[Any, ...]:
    """What is the same for tables that may be gathered; `number` where a table may not be put below any other."""
    rows = table.rows
    if len(rows) > _LONG:
        return (number,)
    part: str | int | None = None
    if rows.part is not None:
        part = rows.part.names[0] if len(rows.part.names) == 1 else number
    columns = (*rows.columns(), table.counters.names, tuple(table.units.items()))
    return (table.kind, *columns, table.collected, table.lacks_rows, part)


def below_each_other(rows: Sequence[TableRows]) -> TableRows:
    """Gathered tables of the same columns as one; no two of them share the number of a run."""
    moved = [rows[0].run[:0]]
    start = 0
    for runs in (piece.run for piece in rows if len(piece)):
        moved.append(runs - runs.min() + start)
        start += int(np.ptp(runs)) + 1
    return replace(TableRows.below(rows), run=np.concatenate(moved))


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
    launches = []
    for table, row in timed:
        if table.kind == kinds[0]:
            own = table.rows
            unknown = Names((), np.full(len(own), -1, dtype=np.int32))
            columns = {"stream": own.stream or unknown, "operator": own.operator or unknown}
            names = {"device": devices.chosen(row), "kernel": kernels.chosen(row)}
            launches.append(replace(own, process=None, part=None, **columns, **names))
    return below_each_other(launches)

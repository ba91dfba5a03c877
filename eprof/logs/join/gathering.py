"""Tables of many short logs put below each other: a table of ten rows takes more room and time than its rows do.

What `combining` makes of them stays the same, but for the last digits of times, which are added in another order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from eprof.rows.log import Log, Table

Array = np.ndarray[Any, Any]
# Rows beyond which a table is no longer short, and copying it would take room for nothing.
_LONG = 1 << 13
_NAMES = ("device", "kernel", "part")


def gathered(logs: Sequence[Log]) -> list[Log]:
    """The same logs, but the first has all tables and the others none. Only for what looks at all of them together."""
    tables = together([table for log in logs for table in log.tables])
    return [replace(log, tables=() if place else tables) for place, log in enumerate(logs)]


def together(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Short tables that are alike (kind, columns, units, and the part if each is of one) as one table each."""
    if len(tables) == 1:
        return (tables[0],)
    groups: dict[tuple[Any, ...], list[Table]] = {}
    for number, table in enumerate(tables):
        groups.setdefault(_likeness(table, number), []).append(table)
    return tuple(_joined(alike) if len(alike) > 1 else alike[0] for alike in groups.values())


def _likeness(table: Table, number: int) -> tuple[Any, ...]:
    """What is the same for tables that may be one; `number` where it may not be with any other."""
    if len(table.rows) > _LONG:
        return (number,)
    part: tuple[Any, ...] = ()
    if "part" in table.rows:
        names = named(table, "part").categories
        part = (names[0] if len(names) == 1 else number,)
    columns = (tuple(table.rows.columns), tuple(table.counters.columns), tuple(table.units.items()))
    return (table.kind, *columns, table.collected, table.lacks_rows, *part)


def named(table: Table, column: str) -> "pd.Categorical":
    """A column of names: a number a row, and the name of each number; -1 where there is none."""
    found = table.rows[column].array
    return found if isinstance(found, pd.Categorical) else pd.Categorical(found)


def _joined(tables: Sequence[Table]) -> Table:
    sizes = [len(table.rows) for table in tables]
    rows = {column: _column(tables, str(column), sizes) for column in tables[0].rows}
    frame = pd.DataFrame(rows, copy=False)
    values = np.concatenate([table.counters.to_numpy() for table in tables])
    counters = pd.DataFrame(values, index=frame.index, columns=tables[0].counters.columns, copy=False)
    return replace(tables[0], rows=frame, counters=counters)


def _column(tables: Sequence[Table], column: str, sizes: Sequence[int]) -> Any:
    if column in _NAMES:
        return _names([named(table, column) for table in tables])
    values = [table.rows[column].to_numpy() for table in tables]
    return _runs(values, sizes) if column == "run" else np.concatenate(values)


def _names(columns: Iterable["pd.Categorical"]) -> "pd.Categorical":
    """Names below each other; each name is held once."""
    codes: dict[Any, int] = {}
    found = []
    for one in columns:
        own = [codes.setdefault(name, len(codes)) for name in one.categories]
        # The last is for -1: no name.
        found.append(np.array([*own, -1], dtype=np.int32)[one.codes])
    return pd.Categorical.from_codes(np.concatenate(found), categories=pd.Index(list(codes), dtype=object))


def _runs(values: Sequence[Array], sizes: Sequence[int]) -> Array:
    """Numbers of runs that no two tables share."""
    spans = [int(one.max() - one.min()) + 1 if len(one) else 0 for one in values]
    starts = np.cumsum([0, *spans[:-1]]) - [int(one.min()) if len(one) else 0 for one in values]
    moved: Array = np.concatenate(values) + np.repeat(starts, sizes)
    return moved

"""Tables of counts and joules as arrays: of a few kernels, pandas finds a column slower than numpy adds it up."""

from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@lru_cache(maxsize=64)
def _header(names: tuple[str, ...]) -> pd.Index:
    return pd.Index(names, dtype=object)


def framed(columns: Sequence[npt.NDArray[np.generic]], names: Sequence[str], index: pd.Index) -> pd.DataFrame:
    """A table of columns of one type, (n_rows,) each."""
    values = np.stack(columns) if columns else np.empty((0, len(index)))
    return pd.DataFrame(values.T, columns=_header(tuple(names)), index=index)


def columns_of(table: pd.DataFrame, names: Iterable[str]) -> Floats:
    """Those of `names` that the table has, in their order, as (n_rows, n_columns) of float64."""
    return np.asarray(table.to_numpy(dtype=np.float64)[:, _places(table, names)])


def marks_of(table: pd.DataFrame, names: Iterable[str]) -> Ints:
    """As `columns_of`, for marks."""
    return np.asarray(table.to_numpy(dtype=np.int64)[:, _places(table, names)])


def _places(table: pd.DataFrame, names: Iterable[str]) -> list[int]:
    place = {name: at for at, name in enumerate(table.columns)}
    return [place[name] for name in names if name in place]


def scaled(table: pd.DataFrame, names: Iterable[str], factor: float) -> pd.DataFrame:
    """The table with some of its columns multiplied."""
    values = table.to_numpy(dtype=np.float64, copy=True)
    values[:, _places(table, names)] *= factor
    return pd.DataFrame(values, columns=table.columns, index=table.index, copy=False)


def known_or_zero(values: Floats) -> Floats:
    """The same with 0 where nothing is known."""
    return np.where(np.isnan(values), 0.0, values)


def known_sum(values: Floats) -> Floats:
    """The sum of what is known in each row of (n_rows, n); NaN where nothing is."""
    known = ~np.isnan(values)
    total = np.zeros(len(values))
    for column in np.where(known, values, 0.0).T:  # one after the other: the same sum whatever the number of rows
        total += column
    return np.where(known.any(axis=1), total, np.nan)

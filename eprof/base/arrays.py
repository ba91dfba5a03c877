"""Tables of named numpy columns (`Columns`; pandas imports slowly), rows numbered by equal keys, sums without NaN."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from eprof.base.text import ShortRepr

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.object_]
Array = npt.NDArray[Any]


class Columns(ShortRepr, Struct, frozen=True, eq=False, dict=True):
    """A table of named columns of one numpy type. values: (n_rows, n_columns)."""

    names: tuple[str, ...]
    values: Array

    @classmethod
    def of(cls, columns: Mapping[str, Array], rows: int) -> Columns:
        """A table of these columns, (rows,) each. rows: their number, needed where there is no column."""
        if not columns:
            return cls((), np.empty((rows, 0)))
        return cls(tuple(columns), np.stack(list(columns.values())).T)

    @cached_property
    def places(self) -> dict[str, int]:
        """The place of each of the table's columns, by name."""
        return {name: place for place, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.values)

    def __contains__(self, name: str) -> bool:
        return name in self.places

    def __getitem__(self, name: str) -> Array:
        """A column by name, (n_rows,)."""
        return np.asarray(self.values[:, self.places[name]])

    def only(self, names: Iterable[str]) -> Array:
        """The columns of those `names` that the table has, in the order of `names`, (n_rows, n)."""
        return np.asarray(self.values[:, [self.places[name] for name in names if name in self.places]])

    def columns_or(self, names: Sequence[str], nothing: float = np.nan) -> Array:
        """The columns of `names`, (n_rows, n_names); one that the table lacks is filled with `nothing`."""
        values = np.full((len(self), len(names)), nothing, dtype=self.values.dtype)
        for place, name in enumerate(names):
            if name in self:
                values[:, place] = self[name]
        return values

    def beside(self, ending: str) -> Array:
        """For each column `x` the table's column `x` + `ending`, NaN where it has none: (n_rows, n_columns)."""
        return self.columns_or([name + ending for name in self.names])

    def chosen(self, rows: Array) -> Columns:
        """The table of some rows. rows: a mask of them, or their numbers in the order that they get."""
        return Columns(self.names, self.values[rows])

    def replaced(self, columns: Mapping[str, Array]) -> Columns:
        """A copy of the table with the values of `columns`, (n_rows,) each, in its columns of these names."""
        values = self.values.copy()
        for name, column in columns.items():
            values[:, self.places[name]] = column
        return Columns(self.names, values)

    @classmethod
    def below(cls, tables: Sequence[Columns]) -> Columns:
        """One table of several with the same columns: their rows, one table's below the other's."""
        return cls(tables[0].names, np.concatenate([table.values for table in tables]))

    def frame(self) -> pd.DataFrame:
        """The table as one of pandas."""
        import pandas as pd

        return pd.DataFrame(self.values, columns=pd.Index(self.names, dtype=object))


def numbered(keys: Array) -> tuple[Ints, Ints]:
    """Number different keys (whole numbers) from 0 as they first come: (number of each key, first place of each)."""
    size = len(keys)
    low = int(keys.min(initial=0))
    span = int(keys.max(initial=0)) - low + 1
    if span > 4 * size + 1024:
        _, first, codes = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank[codes], first[order]
    # Few different keys need no sorting: where a place is written several times, the last write stays.
    first_of = np.full(span, -1, dtype=np.int64)
    first_of[keys[::-1] - low] = np.arange(size)[::-1]
    used = np.flatnonzero(first_of >= 0)
    used = used[np.argsort(first_of[used])]
    number = np.empty(span, dtype=np.int64)
    number[used] = np.arange(len(used))
    return number[keys - low], first_of[used]


def alike(*columns: Array) -> tuple[Ints, Ints]:
    """Number rows of several columns of whole numbers, as `numbered` does keys: equal rows have the same number."""
    keys = np.zeros(len(columns[0]), dtype=np.int64)
    most = 4 * len(keys) + 1024  # with more, `numbered` would have to sort
    kinds = 1
    for column in columns:
        low = int(column.min(initial=0))
        width = int(column.max(initial=0)) - low + 1
        if width > most:
            column, first = numbered(column)
            low, width = 0, len(first)
        if kinds * width > most:
            keys, first = numbered(keys)
            kinds = len(first)
        if width > 1:
            keys = keys * width + (column - low)
            kinds *= width
    return numbered(keys)


def numbers_of(keys: Iterable[Hashable]) -> Ints:
    """The number of each key, as `numbered` gives it, (n_keys,); keys are texts, or tuples of texts."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def known_or_zero(values: Floats) -> Floats:
    """A copy of an array with 0 for NaN."""
    return np.where(np.isnan(values), 0.0, values)


def finite(number: Any) -> float | None:
    """The number as a float for a document; None for NaN and infinity."""
    number = float(number)
    return number if math.isfinite(number) else None


def finite_all(column: Floats) -> list[float | None]:
    """`finite` of each number of a column, at once, because cell by cell is slow."""
    boxed = column.astype(object)
    boxed[~np.isfinite(column)] = None
    numbers: list[float | None] = boxed.tolist()
    return numbers


def known_sum(values: Floats) -> Floats:
    """The sum of each row of (n_rows, n) without its NaN, (n_rows,); NaN where a row has nothing else."""
    known = ~np.isnan(values)
    total = np.zeros(len(values))
    for column in np.where(known, values, 0.0).T:  # one after the other: the same sum whatever the number of rows
        total += column
    return np.where(known.any(axis=1), total, np.nan)


def codes_in(codes: Ints) -> list[int]:
    """The different codes (-1 or above), ascending; as `np.unique`, but without numpy.ma: see `middle_share`."""
    occurring: list[int] = (np.flatnonzero(np.bincount(codes + 1)) - 1).tolist()
    return occurring


def middle_share(numbers: Floats | Sequence[float], share: float) -> Floats:
    """The two quantiles around the middle `share` (0 to 1) of n numbers: (..., n) -> (2, ...); NaN where one is NaN.

    As `np.quantile` has them, which imports numpy.ma: that takes longer than all that a small report does with it.
    """
    ordered = np.sort(numbers, axis=-1)
    last = ordered.shape[-1] - 1
    place = last * np.array([(1 - share) / 2, (1 + share) / 2])
    before = place.astype(np.int64)
    part = place - before
    low, high = ordered[..., before], ordered[..., np.minimum(before + 1, last)]
    step = high - low
    ends = np.where(part < 0.5, low + step * part, high - step * (1 - part))
    return np.moveaxis(np.where(np.isnan(ordered[..., -1:]), np.nan, ends), -1, 0)


def group_sums(values: Floats, codes: Ints) -> Floats:
    """Sums of the rows of each group, without NaN: (n_rows, n) -> (n_groups, n); NaN where a group has nothing else.

    codes: each row's group, from 0.
    """
    size = int(codes.max(initial=-1)) + 1
    total = np.full((size, values.shape[1]), np.nan)
    for column, cells in enumerate(values.T):
        known = ~np.isnan(cells)
        has_known = np.bincount(codes[known], minlength=size) > 0
        total[has_known, column] = np.bincount(codes[known], cells[known], size)[has_known]
    return total


def group_marks(marks: Ints, codes: Ints) -> Ints:
    """The bitwise or of marks over the rows of each group: (n_rows, n) -> (n_groups, n). codes: as in `group_sums`."""
    total = np.zeros((int(codes.max(initial=-1)) + 1, marks.shape[1]), dtype=np.int64)
    np.bitwise_or.at(total, codes, marks)
    return total


HOLDS = 2.0**47
_NEAR = 0.1  # of what the counter holds


def wraps(too_high: Any) -> Floats:
    """How many overflows of a hardware counter make a count too high by `too_high`; 0: overflows are not the reason.

    too_high: how far the count is above what it can be, or above 0 for a thread that counted next to nothing. Each
    overflow adds 2^47, what the counter holds: a whole multiple of that, to a tenth, is the sign.
    """
    often = np.asarray(too_high, dtype=np.float64) / HOLDS
    whole = np.round(often)
    return np.where((whole >= 1) & (np.abs(often - whole) < _NEAR), whole, 0.0)

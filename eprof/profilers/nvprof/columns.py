"""Rows of a table by column: few lines as lists of text, long stretches of lines as pyarrow parses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from eprof.base.arrays import Array, Bools, Floats
from eprof.base.text import pattern
from eprof.logs.log import BYTES_PER_S, COUNT, OTHER, PERCENT
from eprof.readers.cells import LEAST_WRONG, RATES, Rates, as_cell, cells, shows_wrong
from eprof.readers.sections import (
    Coded,
    bools,
    chosen,
    clean_columns,
    coded,
    floats,
    made,
    mask,
    numbers_of,
    texts_of,
)

if TYPE_CHECKING:
    import pyarrow as pa

# What traces without Correlation_ID put behind a kernel's name.
LAUNCH_ID = pattern(r" \[[0-9]+\]$")
_UNITS = ("", "%", *RATES)
# What cells with these units are, and those with any other.
_KINDS = np.array([as_cell(kind) for kind in (COUNT, PERCENT, *[BYTES_PER_S] * len(RATES), OTHER)], dtype=np.int8)
_DIGITS = "0123456789"


class Answers(dict[str, Any]):
    """A function of texts that come again and again: `ask` is called once for each different text, in their order."""

    def __init__(self, ask: Callable[[str], Any], dtype: npt.DTypeLike) -> None:
        super().__init__()
        self._ask = ask
        self._dtype = dtype

    def __missing__(self, text: str) -> Any:
        """Ask for a text that is new."""
        self[text] = answer = self._ask(text)
        return answer

    def of_texts(self, texts: Sequence[str]) -> Array:
        """What `ask` returned for each text, (n_texts,)."""
        return np.fromiter(map(self.__getitem__, texts), self._dtype, len(texts))


class Form(Struct, frozen=True, dict=True):
    """How the lines of a table are parsed: how many fields a line has, and the places of the columns that are wanted.

    names: columns in which few different texts come again and again. values: columns of numbers, maybe with units.
    numbers: columns of numbers without. together: such columns, which a line fills all or none of; maybe: any of them.
    with_id: the one of `names` whose texts end in a launch id (" [123]"), which is left out. checked: columns of
    counts that are not kept. A line where a count may have gone wrong is not clean (see `parse`).
    """

    width: int
    names: tuple[int, ...]
    values: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()
    together: tuple[int, ...] = ()
    maybe: tuple[int, ...] = ()
    with_id: int | None = None
    checked: tuple[int, ...] = ()

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The places of all columns that are wanted, ascending."""
        return tuple(sorted((*self.names, *self.values, *self.numbers, *self.together, *self.maybe)))


class Rows:
    """Rows of a table, whose columns are taken by their place in a line.

    Of lines that were split one by one they are lists of texts. pyarrow makes codes of texts, texts, or numbers (NaN
    where a cell is empty) of them.
    """

    def __init__(self, size: int, columns: Mapping[int, Any]) -> None:
        self._size = size
        self._columns = columns

    def __len__(self) -> int:
        """The number of rows."""
        return self._size

    def each(self, place: int, answers: Answers) -> Array:
        """The answer to each text in the column at `place`, (n_rows,)."""
        column = self._columns[place]
        return answers.of_texts(column.texts)[column.codes] if isinstance(column, Coded) else answers.of_texts(column)

    def all(self, place: int, answers: Answers) -> bool:
        """Whether the answer is true for all texts in the column at `place`: only different ones are looked at."""
        column = self._columns[place]
        return bool(answers.of_texts(column.texts if isinstance(column, Coded) else column).all())

    def cells(self, place: int, rates: Rates = RATES) -> tuple[Floats, Array]:
        """The values (NaN = none) and kinds of cells in the column at `place`, see `cells.cells`."""
        column = self._columns[place]
        if isinstance(column, np.ndarray):
            return column, np.full(len(column), as_cell(COUNT), dtype=np.int8)
        if isinstance(column, list):
            return cells(column, rates)
        endings = coded(made("dictionary_encode", made("ascii_ltrim", column, characters=f"{_DIGITS}.eE+-")))
        units = {unit: code for code, unit in enumerate(_UNITS)}
        unit = np.array([units.get(text, len(_UNITS)) for text in endings.texts])[endings.codes]
        values = numbers_of(made("ascii_rtrim", column, characters="KMGTB/s%"))
        values = values * np.array([1.0, 1.0, *(rates[unit] for unit in RATES), np.nan])[unit]
        kinds = _KINDS[unit]
        is_odd = ~_may_be_count(values)
        if is_odd.any():
            values[is_odd], kinds[is_odd] = cells(texts_of(chosen(column, is_odd)), rates)
        return values, kinds

    def numbers(self, place: int) -> Floats:
        """A column of numbers; NaN where a cell holds none."""
        return self.cells(place)[0]

    def is_filled(self, place: int) -> Bools:
        """Whether each cell in the column at `place` holds anything but blanks."""
        column = self._columns[place]
        if isinstance(column, list):
            return np.array([bool(text.strip()) for text in column], dtype=bool)
        return np.asarray(~np.isnan(column))

    def chosen(self, rows: Bools) -> Rows:
        """The rows of the columns where `rows` is true."""
        return Rows(int(rows.sum()), {place: chosen(column, rows) for place, column in self._columns.items()})


def _may_be_count(values: Floats) -> Bools:
    return (values < LEAST_WRONG) & ~np.signbit(values)


def parse(lines: memoryview, form: Form) -> Rows | None:
    """Parse lines of CSV, in UTF-8 with plain line ends, by pyarrow; None if one is not clean: see `clean_columns`."""
    import pyarrow as pa

    numbers = (*form.numbers, *form.together, *form.maybe)
    types = dict.fromkeys(form.names, pa.dictionary(pa.int32(), pa.string()))
    types |= dict.fromkeys((*form.values, *form.checked), pa.string())
    types |= dict.fromkeys(numbers, pa.float64())
    if form.with_id is not None:
        types[form.with_id] = pa.string()
    columns = clean_columns(lines, form.width, types)
    if columns is None or any(_has_wrong(columns.pop(place)) for place in form.checked):
        return None
    if form.with_id is not None:
        columns[form.with_id] = made("dictionary_encode", _without_ids(columns[form.with_id]))
    for place in numbers:
        lacking = columns[place].null_count
        columns[place] = floats(columns[place])
        if np.count_nonzero(~(columns[place] < LEAST_WRONG)) > lacking:
            return None
    gaps = [np.isnan(columns[place]) for place in form.together]
    are_counts = all(_may_be_count(columns[place]).all() for place in form.numbers)
    if not (are_counts and all(np.array_equal(gap, gaps[0]) for gap in gaps)):
        return None
    columns |= {place: coded(columns[place]) for place in form.names}
    return Rows(len(columns[form.names[0]].codes), columns)


def _has_wrong(texts: pa.Array) -> bool:
    """Whether one of the texts is a count that went wrong."""
    return any(map(shows_wrong, texts_of(made("filter", texts, made("match_substring", texts, pattern="84467")))))


def _without_ids(names: pa.Array) -> pa.Array:
    """Names of a trace without the launch ids at their ends. By regular expression it would take six times as long."""
    in_bracket = made("ascii_rtrim", names, characters="]")
    before = made("ascii_rtrim", in_bracket, characters=_DIGITS)
    lengths, of_ids, rest = (np.from_dlpack(made("binary_length", texts)) for texts in (names, in_bracket, before))
    has_id = (of_ids == lengths - 1) & (rest < of_ids) & bools(made("ends_with", before, pattern=" ["))
    return made("if_else", mask(has_id), made("utf8_slice_codeunits", before, start=0, stop=-2), names)

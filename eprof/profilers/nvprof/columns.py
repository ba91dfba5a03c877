"""Rows of a table by column: few lines as lists of text, long stretches of lines as polars parses them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from eprof.base.arrays import Array, Bools, Floats, Ints, numbered
from eprof.base.text import pattern
from eprof.logs.rows.cells import LEAST_WRONG, RATES, Rates, as_cell, cells
from eprof.logs.rows.log import BYTES_PER_S, COUNT, OTHER, PERCENT
from eprof.logs.rows.sections import split

if TYPE_CHECKING:
    import polars as pl

# What traces without Correlation_ID put behind a kernel's name.
LAUNCH_ID = pattern(r" \[[0-9]+\]$")
_QUOTE, _COMMA, _NEWLINE = b'",\n'
_UNITS = ("", "%", *RATES)
# What cells with these units are, and those with any other.
_KINDS = np.array([as_cell(kind) for kind in (COUNT, PERCENT, *[BYTES_PER_S] * len(RATES), OTHER)], dtype=np.int8)
_STEP = 1 << 18  # bytes that stay in the processor's cache


class Answers:
    """A function of texts that come again and again: `ask` is called once for each different text, in their order.

    All columns of codes that it is given must share one set of codes, see `codes_that_stay`.
    """

    def __init__(self, ask: Callable[[str], Any], dtype: npt.DTypeLike) -> None:
        self._ask = ask
        self._by_code: Array = np.zeros(0, dtype)
        self._is_known = np.zeros(0, dtype=bool)

    def of_texts(self, texts: Sequence[str]) -> Array:
        """What `ask` returned for each text, (n_texts,)."""
        known = {text: self._ask(text) for text in dict.fromkeys(texts)}
        return np.array([known[text] for text in texts], dtype=self._by_code.dtype)

    def by_code(self, column: Coded) -> Array:
        """The answers, indexed by code; filled in for all codes that the column uses."""
        lacking = int(column.used.max(initial=0)) + 1 - len(self._is_known)
        if lacking > 0:
            self._by_code, self._is_known = (np.pad(known, (0, lacking)) for known in (self._by_code, self._is_known))
        if not self._is_known[column.used].all():
            new = np.flatnonzero(~self._is_known[column.codes])
            rows = new[numbered(column.codes[new])[1]]
            self._by_code[column.codes[rows]] = self.of_texts(column.texts_of(rows))
            self._is_known[column.codes[rows]] = True
        return self._by_code


class Coded(Struct, frozen=True):
    """A column of texts as codes, (n_rows,). used: the distinct ones. texts_of: gives the texts of some rows."""

    codes: Array
    used: Ints
    texts_of: Callable[[Array], Sequence[str]]


class LineRows:
    """Rows of lines that were split one by one."""

    def __init__(self, columns: Mapping[int, Sequence[str]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values())))

    def each(self, place: int, answers: Answers) -> Array:
        """The answer to each text in the column at `place`, (n_rows,)."""
        return answers.of_texts(self._columns[place])

    def all(self, place: int, answers: Answers) -> bool:
        """Whether the answer is true for all texts in the column at `place`."""
        return bool(self.each(place, answers).all())

    def cells(self, place: int, rates: Rates = RATES) -> tuple[Floats, Array]:
        """The values (NaN = none) and kinds of cells in the column at `place`, see `cells.cells`."""
        return cells(self._columns[place], rates)

    def numbers(self, place: int) -> Floats:
        """A column of numbers; NaN where a cell holds none."""
        return cells(self._columns[place])[0]

    def is_filled(self, place: int) -> Bools:
        """Whether each cell in the column at `place` holds anything but blanks."""
        return np.array([bool(text.strip()) for text in self._columns[place]], dtype=bool)

    def chosen(self, rows: Bools) -> LineRows:
        """The rows of the columns where `rows` is true."""
        return LineRows({place: list(compress(texts, rows)) for place, texts in self._columns.items()})


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


class ParsedRows:
    """Rows that polars parsed; of these `rows` only, by their places."""

    def __init__(self, frame: pl.DataFrame, rows: Ints | slice = slice(None)) -> None:
        self._frame = frame
        self._rows = rows
        self._coded: dict[int, Coded] = {}

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._places())

    def each(self, place: int, answers: Answers) -> Array:
        """The answer to each text in the column at `place`, (n_rows,)."""
        column = self._column(place)
        return answers.by_code(column)[column.codes]

    def all(self, place: int, answers: Answers) -> bool:
        """Whether the answer is true for all texts in the column at `place`: only different ones are looked at."""
        column = self._column(place)
        return bool(answers.by_code(column)[column.used].all())

    def _column(self, place: int) -> Coded:
        """The column of texts at `place` as codes, made once."""
        if place not in self._coded:
            codes = self._frame[f"{place} code"].to_numpy()[self._rows]
            self._coded[place] = Coded(codes, np.flatnonzero(np.bincount(codes)), partial(self._texts, place))
        return self._coded[place]

    def _texts(self, place: int, rows: Array) -> list[str]:
        return self._frame[str(place)].gather(self._places()[rows]).cast(str).to_list()

    def cells(self, place: int, rates: Rates = RATES) -> tuple[Floats, Array]:
        """The values (NaN = none) and kinds of cells in the column at `place`, see `cells.cells`."""
        values = self.numbers(place)
        if f"{place} unit" not in self._frame.columns:
            return values, np.full(len(values), as_cell(COUNT), dtype=np.int8)
        units = self._frame[f"{place} unit"].to_numpy()[self._rows]
        values = values * np.array([1.0, 1.0, *(rates[unit] for unit in RATES), np.nan])[units]
        kinds = _KINDS[units]
        is_odd = ~_may_be_count(values)
        if is_odd.any():
            values[is_odd], kinds[is_odd] = cells(self._texts(place, is_odd), rates)
        return values, kinds

    def numbers(self, place: int) -> Floats:
        """A column of numbers; NaN where a cell holds none."""
        return self._frame[f"{place} number"].to_numpy()[self._rows]

    def is_filled(self, place: int) -> Bools:
        """Whether each cell in the column at `place` holds a number."""
        return ~np.isnan(self.numbers(place))

    def chosen(self, rows: Bools) -> ParsedRows:
        """The parsed rows of the columns where `rows` is true."""
        return ParsedRows(self._frame, self._places()[rows])

    def _places(self) -> Ints:
        return np.arange(self._frame.height)[self._rows]


# Some rows of a table, whose columns are taken by their place in a line.
Rows: TypeAlias = LineRows | ParsedRows


def _may_be_count(values: Floats) -> Bools:
    return (values < LEAST_WRONG) & ~np.signbit(values)


def codes_that_stay() -> pl.Series:
    """An empty series. While it lives, polars gives a text of its type the same code in every block."""
    import polars as pl

    return pl.Series([], dtype=pl.Categorical(pl.Categories.random()))


def parse(lines: bytes, number: int, form: Form, codes: pl.Series) -> ParsedRows | None:
    """Parse `number` lines of CSV, in UTF-8 with plain line ends, by polars; None if a line is not clean.

    Clean lines have `form.width` fields, of which the last is not empty, and no quotes inside of fields. Lines with one
    empty field more than that are not noticed here. codes: of the texts of `form.names`, see `codes_that_stay`.
    """
    import polars as pl

    if not _quotes_are_plain(lines, number, form.width):
        return None
    last, beyond = str(form.width - 1), str(form.width)
    schema: dict[str, pl.DataType] = dict.fromkeys(map(str, range(form.width + 1)), pl.String())
    schema |= {str(place): codes.dtype for place in form.names if place != form.with_id}
    schema |= {str(place): pl.Float64() for place in (*form.numbers, *form.together, *form.maybe, *form.checked)}
    columns = {place: pl.col(str(place)).fill_null("") for place in (*form.names, *form.values)}
    if form.with_id is not None:
        columns[form.with_id] = columns[form.with_id].str.replace(LAUNCH_ID.pattern, "").cast(codes.dtype)
    # In the same pass: a pass over a column alone costs as much again.
    numbers = {place: pl.col(str(place)) for place in (*form.numbers, *form.together, *form.maybe)}
    told = [columns[place].to_physical().alias(f"{place} code") for place in form.names]
    for place in form.values:
        numbers[place] = columns[place].str.strip_chars_end("KMGTB/s%")
        unit = columns[place].str.slice(numbers[place].str.len_chars()).cast(pl.Enum(_UNITS), strict=False)
        told.append(unit.to_physical().fill_null(len(_UNITS)).alias(f"{place} unit"))
    for place, number_of in numbers.items():
        told.append(number_of.cast(pl.Float64, strict=False).fill_null(np.nan).alias(f"{place} number"))
    is_clean = pl.col(last).is_not_null() & pl.col(beyond).is_null()
    for place in (*form.checked, *form.together):
        is_clean &= pl.col(str(place)).fill_null(0.0) < LEAST_WRONG
    for place in form.together:
        is_clean &= pl.col(str(place)).is_null() == pl.col(str(form.together[0])).is_null()
    scan = pl.scan_csv(lines, has_header=False, schema=schema, missing_columns="insert", ignore_errors=True)
    try:
        frame = scan.select(*columns.values(), *told, is_clean.alias("clean")).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    if frame.height != number or not frame["clean"].all():
        return None
    if not all(_may_be_count(frame[f"{place} number"].to_numpy()).all() for place in form.numbers):
        return None
    return ParsedRows(frame)


def _quotes_are_plain(lines: bytes, number: int, width: int) -> bool:
    """Whether all lines to parse have as many quotes as the first, and only around fields."""
    first = lines[: lines.find(b"\n") + 1]
    if not lines.endswith(b"\n") or len(split(first.decode().rstrip("\n"))) != width:
        return False
    text = np.frombuffer(lines, np.uint8)
    opening = int(text[0] == _QUOTE)
    closing = quotes = 0
    for start in range(0, len(text), _STEP):
        step = text[start : start + _STEP + 1]  # and the first byte of the next
        is_quote = step == _QUOTE
        ends_field = (step == _COMMA) | (step == _NEWLINE)
        opening += int(np.count_nonzero(ends_field[:-1] & is_quote[1:]))
        closing += int(np.count_nonzero(is_quote[:-1] & ends_field[1:]))
        quotes += int(np.count_nonzero(is_quote[:-1]))
    return 2 * opening == 2 * closing == quotes == number * first.count(b'"')

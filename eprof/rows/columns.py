"""Rows of a table by column: few lines as lists of text, long stretches of lines as polars parses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Array, Bools, Floats, numbered
from eprof.base.text import pattern
from eprof.rows.cells import LARGEST, LEAST_WRONG, RATES, Rates, as_cell, cells
from eprof.rows.header import split
from eprof.rows.log import BYTES_PER_S, COUNT, PERCENT, Names

if TYPE_CHECKING:
    import polars as pl

# What traces without Correlation_ID put behind a kernel's name.
LAUNCH_ID = pattern(r" \[[0-9]+\]$")
_QUOTE, _COMMA, _NEWLINE = b'",\n'
_STEP = 1 << 18  # bytes that stay in the processor's cache


class LineRows:
    """Rows of lines that were split one by one."""

    def __init__(self, columns: Mapping[int, Sequence[str]]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        """The number of rows."""
        return len(next(iter(self._columns.values())))

    def names(self, place: int) -> Names:
        """A column of names, of rows as lists."""
        return Names.of(self._columns[place])

    def cells(self, place: int, rates: Rates = RATES) -> tuple[Floats, Array]:
        """A column of values of rows as lists, and what each cell is."""
        return cells(self._columns[place], rates)

    def chosen(self, rows: Bools) -> LineRows:
        """The rows of the columns where `rows` is true."""
        return LineRows({place: list(compress(texts, rows)) for place, texts in self._columns.items()})


class Form(Struct, frozen=True, dict=True):
    """How the lines of a table are parsed: how many fields a line has, and the places of the columns that are wanted.

    names: columns in which few different texts come again and again. values: columns of numbers, maybe with units.
    with_id: the one of `names` whose texts end in a launch id (" [123]"), which is left out. checked: columns of
    counts; a line where one of them may have gone wrong is not clean.
    """

    width: int
    names: tuple[int, ...]
    values: tuple[int, ...]
    with_id: int | None = None
    checked: tuple[int, ...] = ()

    @cached_property
    def places(self) -> tuple[int, ...]:
        """All places of columns that are wanted."""
        return tuple(sorted((*self.names, *self.values)))


class ParsedRows:
    """Rows that polars parsed."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame
        self._names: dict[int, Names] = {}

    @classmethod
    def of_values(cls, texts: pl.Series) -> ParsedRows:
        """Parsed rows of one column of values, at place 0."""
        column = texts.alias("0").to_frame()
        return cls(column.with_columns(_as_number("0").alias(_number(0))))

    def __len__(self) -> int:
        """The number of rows."""
        return self._frame.height

    def names(self, place: int) -> Names:
        """A column of names, of rows that polars parsed."""
        if place not in self._names:
            column = self._frame[str(place)]
            codes, first = numbered(self._frame[_code(place)].to_numpy())
            self._names[place] = Names(tuple(column[first.tolist()].to_list()), codes.astype(np.int32))
        return self._names[place]

    def numbers(self, place: int) -> Floats:
        """A column of values as far as they are plain numbers; NaN for others."""
        return self._frame[_number(place)].to_numpy()

    def cells(self, place: int, rates: Rates = RATES) -> tuple[Floats, Array]:
        """A column of values of rows that polars parsed, and what each cell is."""
        values, is_plain = _plain(self.numbers(place))
        kinds = np.full(len(values), as_cell(COUNT), dtype=np.int8)
        if not is_plain.all():
            values = values.copy()
            texts = self._frame[str(place)].filter(~is_plain)
            values[~is_plain], kinds[~is_plain] = _with_units(texts, rates)
        return values, kinds

    def chosen(self, rows: Bools) -> ParsedRows:
        """The parsed rows of the columns where `rows` is true."""
        return ParsedRows(self._frame.filter(rows))


# Some rows of a table, whose columns are taken by their place in a line.
Rows: TypeAlias = LineRows | ParsedRows


def _code(place: int) -> str:
    """The column of polars' own numbers of the names at `place`."""
    return f"{place} code"


def _number(place: int) -> str:
    """The column of the numbers that the texts at `place` are; NaN for a text that is none."""
    return f"{place} number"


def _as_number(column: str) -> pl.Expr:
    import polars as pl

    return pl.col(column).cast(pl.Float64, strict=False).fill_null(np.nan)


def _plain(values: Floats) -> tuple[Floats, Bools]:
    """The numbers of a column, and which of them may be counts."""
    return values, (values < LEAST_WRONG) & ~np.signbit(values)


def _with_units(texts: pl.Series, rates: Rates) -> tuple[Floats, Array]:
    """Percentages and rates of a column together; what is neither as `cells` reads it, each different text once."""
    numbers = texts.str.strip_chars_end("KMGTB/s%")
    units = _named(texts.str.slice(numbers.str.len_chars()))
    values, is_number = _plain(ParsedRows.of_values(numbers).numbers(0))
    scales = np.array([{**rates, "%": 1.0}.get(unit, np.nan) for unit in units.names])
    kinds = np.array([as_cell(PERCENT if unit == "%" else BYTES_PER_S) for unit in units.names], dtype=np.int8)
    values = values * scales[units.codes]
    kinds = kinds[units.codes]

    is_odd = np.isnan(values) | ~is_number | (values >= LARGEST)
    if is_odd.any():
        odd = _named(texts.filter(is_odd))
        odd_values, odd_kinds = cells(odd.names, rates)
        values[is_odd], kinds[is_odd] = odd_values[odd.codes], odd_kinds[odd.codes]
    return values, kinds


def _named(texts: pl.Series) -> Names:
    import polars as pl

    names = texts.alias("0").cast(pl.Categorical())
    return ParsedRows(pl.DataFrame([names, names.to_physical().alias(_code(0))])).names(0)


def parse(lines: bytes, number: int, form: Form) -> ParsedRows | None:
    """The rows of so many lines of CSV, in UTF-8 with plain line ends; None if a line is not clean.

    Clean lines have `form.width` fields, of which the last is not empty, and no quotes inside of fields. Lines with one
    empty field more than that are not noticed here.
    """
    import polars as pl

    if not _quotes_are_plain(lines, number, form.width):
        return None
    last, beyond = str(form.width - 1), str(form.width)
    schema: dict[str, pl.DataType] = dict.fromkeys(map(str, range(form.width + 1)), pl.String())
    schema |= {str(place): pl.Categorical() for place in form.names if place != form.with_id}
    columns = {place: pl.col(str(place)).fill_null("") for place in form.places}
    if form.with_id is not None:
        names = columns[form.with_id].str.replace(LAUNCH_ID.pattern, "")
        columns[form.with_id] = names.cast(pl.Categorical())
    # In the same pass: a pass over a column alone costs as much again.
    numbers = [_as_number(str(place)).alias(_number(place)) for place in form.values]
    codes = [columns[place].to_physical().alias(_code(place)) for place in form.names]
    is_clean = pl.col(last).is_not_null() & pl.col(beyond).is_null()
    for place in form.checked:
        is_clean &= ~(_as_number(str(place)) >= LEAST_WRONG) | _as_number(str(place)).is_nan()
    scan = pl.scan_csv(lines, has_header=False, schema=schema, missing_columns="insert")
    try:
        frame = scan.select(*columns.values(), *numbers, *codes, is_clean.alias("clean")).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    if frame.height != number or not frame["clean"].all():
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

"""Tables in CSV: a header line and the lines below it, as columns.

Short texts are split in Python. Long ones go to polars; whatever is odd with them is left to Python, which takes the
lines one by one.
"""

from __future__ import annotations

import csv
from collections.abc import Container, Iterable, Sequence
from itertools import chain, compress
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Array, numbered
from eprof.logs.rows.log import Names

if TYPE_CHECKING:
    import polars as pl

Cells: TypeAlias = "list[str] | pl.Series"
Piece: TypeAlias = dict[int, Cells]  # some rows: the cells of each column that is read, by its place in a line
_EXAMPLE = 200  # characters of a line that is no row
_DIGITS = tuple("0123456789")
_LONG = 1 << 20  # bytes of text: from there on it is worth to import polars
_ROW_NUMBER = "^[0-9][0-9.,]*$"


class Section(Struct):
    """A header line and the lines up to the next: `columns` after `prefix` columns that a script put in front.

    needed: columns that a row must have; it may end behind them. part: the column whose cells split the rows of a
    kernel, if wanted and there. is_spaced: a blank follows each delimiter.
    """

    kind: str
    columns: list[str]
    prefix: int = 0
    first_line: int = 0
    part: str | None = None
    delimiter: str = ","
    is_spaced: bool = False
    needed: tuple[str, ...] = ()

    def split(self, line: str) -> list[str]:
        """The fields of a line of a CSV section."""
        if self.is_spaced:
            line = line.replace(f'"{self.delimiter} "', f'"{self.delimiter}"')
        return split(line, self.delimiter)

    def at(self, name: str) -> int | None:
        """Where a column is in a line of a CSV section; None if there is none."""
        return self.prefix + self.columns.index(name) if name in self.columns else None

    def places(self, names: Iterable[str]) -> list[int]:
        """The places in a line of those of `names` that the CSV section has."""
        return [place for name in names if (place := self.at(name)) is not None]

    @property
    def width(self) -> int:
        """How many fields a line of a CSV section has at most."""
        return self.prefix + len(self.columns)

    @property
    def least(self) -> int:
        """How many fields a row of a CSV section has at least: rows of metrics end before the columns of rules."""
        return max(self.places(self.needed), default=self.width - 1) + 1


class Rows(Struct):
    """The rows among some lines, by column; the places of lines that are no rows, and rows of a wrong length."""

    pieces: list[Piece] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)


def split(line: str, delimiter: str = ",") -> list[str]:
    """The fields of one CSV line, a header or a row; none of a line that is none (a field of more than 128 KB)."""
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        return []


def below(line: str, spans: Sequence[tuple[int, int]]) -> list[str] | None:
    """The cells of a line of a table in text, with columns at `spans`; None if there is text between the columns."""
    ends = [*(end for _, end in spans[:-1]), len(line)]
    between = [line[: spans[0][0]], *(line[end:start] for end, (start, _) in zip(ends, spans[1:], strict=False))]
    if any(gap.strip() for gap in between):
        return None
    return [line[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)]


def looks_like_row(line: str) -> bool:
    """Whether a line may be a row of a CSV section: it starts with a number, quoted or not."""
    return line.startswith(_DIGITS) or (line.startswith('"') and line.startswith(_DIGITS, 1))


def rows(section: Section, lines: Sequence[str], wanted: Sequence[int]) -> Rows:
    """The rows among lines of a CSV section. wanted: places of the columns to read."""
    parsed = Rows()
    least = max(section.least, *(place + 1 for place in wanted), 0)
    cells: list[list[str]] = [[] for _ in wanted]
    for index, line in enumerate(lines):
        if not line:
            continue
        # A line that ends inside of quotes is cut off, or a cell with a line end.
        if line.count('"') % 2 or not (section.prefix or looks_like_row(line)):
            parsed.others.append(index)
            continue
        fields = section.split(line)
        if not least <= len(fields) <= section.width:
            parsed.misfits.append(line[:_EXAMPLE])
            continue
        for column, place in zip(cells, wanted, strict=True):
            column.append(fields[place])
    if cells and cells[0]:
        parsed.pieces.append(dict(zip(wanted, cells, strict=True)))
    return parsed


def many_rows(section: Section, text: bytes, wanted: Sequence[int], names: Container[int] = ()) -> Piece | None:
    """The rows of a text all of whose lines are rows, and no header lines. None if it is short, or anything is odd.

    names: the places of columns in which few different texts come again and again.
    """
    if len(text) < _LONG or section.is_spaced or section.prefix or not text.endswith(b"\n"):
        return None
    import polars as pl

    # A column more than there are shows lines that are too long.
    places = range(section.width + 1)
    schema = {str(place): pl.Categorical if place and place in names else pl.String for place in places}
    needed = dict.fromkeys([0, *wanted, section.least - 1, places[-1]])
    scan = pl.scan_csv(text, has_header=False, schema=schema, separator=section.delimiter, missing_columns="insert")
    try:
        table = scan.select(map(str, needed)).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    beyond = table.drop_in_place(str(places[-1]))
    lines = np.count_nonzero(np.frombuffer(text, dtype=np.uint8) == ord("\n"))
    if len(table) != lines or beyond.null_count() < len(table):
        return None  # lines inside of cells, or too many cells
    if any(column.null_count() for column in table) or not table["0"].str.contains(_ROW_NUMBER).all():
        return None
    return {place: table[str(place)] for place in wanted}


def together(pieces: Sequence[Piece]) -> Piece:
    """Pieces of a CSV section below each other."""
    if len(pieces) == 1:
        return pieces[0]
    joined: Piece = {}
    for place in next(iter(pieces), joined):
        columns = [piece[place] for piece in pieces]
        types = [column.dtype for column in columns if not isinstance(column, list)]
        if types:
            import polars as pl

            joined[place] = pl.concat([pl.Series("", column, types[0]) for column in columns])
        else:
            joined[place] = list(chain.from_iterable(columns))
    return joined


def size(piece: Piece) -> int:
    """How many rows a piece of a CSV section has."""
    return len(next(iter(piece.values())))


def texts_of(cells: Cells) -> list[str]:
    """Cells of a CSV section as a list."""
    return cells if isinstance(cells, list) else cells.to_list()


def chosen(cells: Cells, which: Array) -> Cells:
    """The cells of a CSV section where `which` is true."""
    if isinstance(cells, list):
        return list(compress(cells, which))
    import polars as pl

    return cells.filter(pl.Series(which))


def names_of(cells: Cells) -> Names:
    """The cells as `Names`; quick where few different texts come again and again, or in long runs."""
    if isinstance(cells, list):
        return Names.of(cells)
    import polars as pl

    if cells.dtype == pl.Categorical:
        codes, first = numbered(cells.to_physical().to_numpy())
        return Names(tuple(cells.gather(first).to_list()), codes.astype(np.int32))
    # Each comes in many rows below each other.
    run = cells.rle_id().to_numpy()
    names = Names.of(cells.gather(np.flatnonzero(np.diff(run, prepend=np.uint32(1 << 31)))).to_list())
    return names.chosen(run)


def are_last(cells: Cells) -> Array:
    """True for each cell that is the same as the last one, (n_rows,)."""
    if isinstance(cells, list):
        return np.array([cell == cells[-1] for cell in cells])
    return np.asarray((cells == cells[-1]).to_numpy())

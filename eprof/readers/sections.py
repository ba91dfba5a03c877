"""Tables in CSV (`Section`): a header line and the lines below it, as columns.

Short texts are split in Python. Long ones go to pyarrow; whatever is odd with them is left to Python, which takes the
lines one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from itertools import chain, compress, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field

from eprof.base.arrays import Array, Bools, Floats, numbered
from eprof.logs.log import Names
from eprof.logs.stream import split

if TYPE_CHECKING:
    import pyarrow as pa

Cells: TypeAlias = "list[str] | pa.Array"
IsSpare: TypeAlias = Callable[[list[str]], bool]
Piece: TypeAlias = dict[int, Cells]  # some rows: the cells of each column that is read, by its place in a line
_EXAMPLE = 200  # characters of a line that is no row
_DIGITS = tuple("0123456789")
_START = 1 << 14  # bytes, which show how many fields rows have
_LONG = 1 << 20  # bytes of text: from there on it is worth to import pyarrow
_ROW_NUMBER = "^[0-9][0-9.,]*$"
_PLAIN = r"^[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,2})?$"
QUOTE, NEWLINE = b'"\n'
STEP = 1 << 18  # bytes that stay in the processor's cache


class Coded(NamedTuple):
    """A column of texts as codes, (n_rows,), and the texts that they stand for, each once, in the order of coming."""

    codes: Array
    texts: Sequence[str]


class CsvSection(Struct):
    """A table in CSV: a header line and the lines up to the next; `columns` after `prefix` ones that a script added.

    kind: of the table (`Table.kind`). needed: columns that a row must have; it may end behind them. part: the column
    whose cells split the rows of a kernel, if wanted and there. is_spaced: a blank follows each delimiter.
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
        """The place of a column in a line of a CSV section; None if there is none."""
        return self.prefix + self.columns.index(name) if name in self.columns else None

    def places(self, names: Iterable[str]) -> list[int]:
        """The places in a line of those of `names` that the CSV section has."""
        return [place for name in names if (place := self.at(name)) is not None]

    @property
    def width(self) -> int:
        """The most fields that a line of a CSV section has."""
        return self.prefix + len(self.columns)

    @property
    def least(self) -> int:
        """The fewest fields that a row of a CSV section has: rows of metrics end before the columns of rules."""
        return max(self.places(self.needed), default=self.width - 1) + 1


class ParsedRows(Struct):
    """The rows among some lines, by column. others: places of lines that are no rows; misfits: rows of wrong length."""

    pieces: list[Piece] = field(default_factory=list)
    others: list[int] = field(default_factory=list)
    misfits: list[str] = field(default_factory=list)


def below(line: str, spans: Sequence[tuple[int, int]]) -> list[str] | None:
    """The cells of a line of a table in text, whose columns are at `spans` (start, end); None: text is in between."""
    ends = [*(end for _, end in spans[:-1]), len(line)]
    between = [line[: spans[0][0]], *(line[end:start] for end, (start, _) in zip(ends, spans[1:], strict=False))]
    if any(gap.strip() for gap in between):
        return None
    return [line[start:end].strip() for (start, _), end in zip(spans, ends, strict=True)]


def fed(blocks: Iterable[bytes], take: Callable[[str], None]) -> str:
    """Call `take` with each line of a log's blocks, without its end; returns what stands behind the last line end."""
    rest = ""
    for block in blocks:
        *lines, rest = (rest + block.decode("utf-8", "replace")).split("\n")
        for line in lines:
            take(line)
    return rest


def looks_like_row(line: str) -> bool:
    """Whether a line may be a row of a CSV section: it starts with a number, quoted or not."""
    return line.startswith(_DIGITS) or (line.startswith('"') and line.startswith(_DIGITS, 1))


def rows(section: CsvSection, lines: Sequence[str], wanted: Sequence[int]) -> ParsedRows:
    """The rows among lines of a CSV section. wanted: places of the columns to read."""
    parsed = ParsedRows()
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


def many_rows(
    section: CsvSection,
    text: bytes,
    wanted: Sequence[int],
    names: Container[int] = (),
    spare: IsSpare = lambda _: False,
) -> Piece | None:
    """The rows of a long text whose lines are all rows of a CSV section, by pyarrow; None: short, or anything is odd.

    wanted: places of the columns to read. names: those in which few different texts come again and again. spare:
    whether the fields of a row say nothing, so that it may be left out where it is longer or shorter than the others.
    """
    if len(text) < _LONG or section.is_spaced or section.prefix:
        return None
    import pyarrow as pa

    def may_be_skipped(fields: list[str]) -> bool:
        return section.least <= len(fields) <= section.width and looks_like_row(fields[0]) and spare(fields)

    types = {place: pa.dictionary(pa.int32(), pa.string()) if place in names else pa.string() for place in (0, *wanted)}
    first = map(section.split, text[:_START].decode("utf-8", "ignore").splitlines())
    width = next((len(fields) for fields in first if not may_be_skipped(fields)), 0)
    if not max(section.least, *(place + 1 for place in types)) <= width <= section.width:
        return None
    columns = clean_columns(memoryview(text), width, types, section.delimiter, may_be_skipped)
    if columns is None:
        return None
    are_whole = bools(made("ascii_is_decimal", columns[0])).all()  # told ten times sooner
    if not (are_whole or bools(made("match_substring_regex", columns[0], pattern=_ROW_NUMBER)).all()):
        return None
    return {place: columns[place] for place in wanted}


def clean_columns(
    lines: memoryview,
    width: int,
    types: Mapping[int, pa.DataType],
    delimiter: str = ",",
    spare: IsSpare = lambda _: False,
) -> dict[int, pa.Array] | None:
    """Place -> column, by pyarrow, of lines of CSV in UTF-8 with plain line ends; None if a line is not clean.

    Clean lines have `width` fields, quotes only around fields or, doubled, inside of quoted ones, and numbers where
    `types` says so. Of others, those whose fields are `spare` are left out.
    """
    import pyarrow as pa
    from pyarrow import csv

    number = _plain_lines(lines, delimiter) or _plain_lines(bytes(lines).replace(b'""', b""), delimiter)
    options = csv.ConvertOptions(
        check_utf8=False,
        column_types={str(place): kind for place, kind in types.items()},
        include_columns=[*map(str, types)],
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    skipped: list[str] = []

    def on_other(row: csv.InvalidRow) -> str:
        skipped.append(row.text)
        return "skip" if spare(split(row.text, delimiter)) else "error"

    form = csv.ParseOptions(delimiter=delimiter, invalid_row_handler=on_other)
    whole = csv.ReadOptions(use_threads=False, block_size=len(lines) + 1, column_names=[*map(str, range(width))])
    try:
        table = csv.read_csv(pa.py_buffer(lines), whole, form, options)
    except pa.ArrowInvalid:
        return None
    if len(table) + len(skipped) != number:
        return None
    return {place: table.column(str(place)).chunk(0) for place in types}


def _plain_lines(lines: memoryview | bytes, delimiter: str) -> int:
    """The number of lines; 0 if one has no end, or a quote stands anywhere but at an end of a field."""
    text = np.frombuffer(lines, np.uint8)
    if not len(text) or text[-1] != NEWLINE:
        return 0
    quotes = opening = plain = int(text[0] == QUOTE)
    number = 1 + int(text[0] == NEWLINE)
    for start in range(0, len(text) - 2, STEP):
        step = text[start : start + STEP + 2]  # with a byte before and behind
        is_quote, is_end = step[1:-1] == QUOTE, step == NEWLINE
        number += int(np.count_nonzero(is_end[1:-1]))
        is_end |= step == ord(delimiter)
        opens = is_quote & is_end[:-2]
        opening += int(np.count_nonzero(opens))
        quotes += int(np.count_nonzero(is_quote))
        plain += int(np.count_nonzero(opens ^ (is_quote & is_end[2:])))
    return number if plain == quotes == 2 * opening else 0


def numbers_of(texts: pa.Array) -> Floats:
    """The numbers in an array of texts; NaN where one holds no plain number."""
    import pyarrow as pa

    try:
        return floats(made("cast", texts, target_type=pa.float64()))
    except pa.ArrowInvalid:
        is_plain = made("match_substring_regex", texts, pattern=_PLAIN)
        numbers = np.full(len(texts), np.nan)
        numbers[bools(is_plain)] = floats(made("cast", made("filter", texts, is_plain), target_type=pa.float64()))
        return numbers


def floats(numbers: pa.Array) -> Floats:
    """An array of numbers of pyarrow as one of NumPy, NaN for null; pyarrow's own ways would import pandas."""
    values = np.frombuffer(numbers.buffers()[1], np.float64)[numbers.offset :][: len(numbers)]
    return np.where(bools(made("is_valid", numbers)), values, np.nan) if numbers.null_count else values


def bools(truths: pa.Array) -> Bools:
    """An array of truths of pyarrow, without nulls, as one of NumPy."""
    bits = np.unpackbits(np.frombuffer(truths.buffers()[1], np.uint8), bitorder="little")
    return bits[truths.offset :][: len(truths)].view(np.bool_)


def made(function: str, *arrays: Any, **options: object) -> pa.Array:
    """Call a function of pyarrow by its name; to import its module `compute` takes a tenth of a second."""
    from pyarrow import _compute

    found = _compute.get_function(function)
    kind = getattr(_compute, found._doc.options_class, None)
    return found.call([*arrays], kind(**options) if options and kind else None)


def mask(rows: Bools) -> pa.Array:
    """Truths as an array of pyarrow."""
    import pyarrow as pa

    return pa.Array.from_buffers(pa.bool_(), len(rows), [None, pa.py_buffer(np.packbits(rows, bitorder="little"))])


def joined(pieces: Sequence[Piece]) -> Piece:
    """One piece of several of a CSV section, their rows below each other."""
    if len(pieces) == 1:
        return pieces[0]
    joined: Piece = {}
    for place in next(iter(pieces), joined):
        columns = [piece[place] for piece in pieces]
        types = [column.type for column in columns if not isinstance(column, list)]
        if types:
            import pyarrow as pa

            arrays = [_array(column, types[0]) if isinstance(column, list) else column for column in columns]
            joined[place] = pa.chunked_array(arrays).unify_dictionaries().combine_chunks()
        else:
            joined[place] = list(chain.from_iterable(columns))
    return joined


def _array(texts: list[str], kind: pa.DataType) -> pa.Array:
    """Texts as an array of pyarrow of type `kind`; pyarrow's own way would import pandas."""
    import pyarrow as pa

    cells = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
    array = pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(cells)))
    return array if kind == array.type else made("dictionary_encode", array)


def size(piece: Piece) -> int:
    """The number of rows of a piece of a CSV section."""
    return len(next(iter(piece.values())))


def texts_of(cells: Cells) -> list[str]:
    """Cells of a CSV section as a list of texts; pyarrow's own way takes four times as long."""
    if isinstance(cells, list):
        return cells
    if hasattr(cells, "indices"):
        codes, texts = coded(cells)
        return [texts[code] for code in codes.tolist()]
    _, ends, data = cells.buffers()
    whole = b"" if data is None else data.to_pybytes()
    places = pairwise(np.frombuffer(ends, np.int32)[cells.offset :][: len(cells) + 1].tolist())
    if whole.isascii():
        text = whole.decode()
        return [text[start:stop] for start, stop in places]
    return [whole[start:stop].decode() for start, stop in places]


def bytes_of(cells: Cells) -> bytes:
    """The cells of a CSV section behind each other: whether some hold a character is seen there soonest."""
    if isinstance(cells, list):
        return "".join(cells).encode("utf-8", "replace")
    _, ends, data = cells.buffers()
    first, last = np.frombuffer(ends, np.int32)[[cells.offset, cells.offset + len(cells)]].tolist()
    return b"" if data is None else data[first:last].to_pybytes()


def chosen(cells: Any, which: Array) -> Any:
    """The cells of a column, in whatever form, where `which` is true."""
    if isinstance(cells, list):
        return list(compress(cells, which))
    if isinstance(cells, np.ndarray):
        return cells[which]
    if isinstance(cells, Coded):
        return used(cells.codes[which], cells.texts)
    return made("filter", cells, mask(which))


def names_of(cells: Cells) -> Names:
    """The cells as `Names`; quick where few different texts come again and again, or in long runs."""
    if isinstance(cells, list):
        return Names.of(cells)
    if hasattr(cells, "indices"):
        codes, texts = used(*coded(cells))
        return Names(tuple(texts), codes)
    # Each comes in many rows below each other.
    is_first = ~_are_alike(cells[1:], cells[:-1])
    names = Names.of(texts_of(cells[:1]) + texts_of(chosen(cells[1:], is_first)))
    return names.chosen(np.append(0, np.cumsum(is_first)))


def coded(cells: pa.Array) -> Coded:
    """A column that pyarrow gave codes, as `Coded`."""
    return Coded(np.from_dlpack(cells.indices), texts_of(cells.dictionary))


def used(codes: Array, texts: Sequence[str]) -> Coded:
    """Codes numbered anew in the order of their coming, with those of `texts` that they use."""
    numbers, first = numbered(codes)
    return Coded(numbers.astype(np.int32), [texts[code] for code in codes[first].tolist()])


def are_last(cells: Cells) -> Array:
    """True for each cell that is the same as that of the last row, (n_rows,)."""
    if isinstance(cells, list):
        return np.array([cell == cells[-1] for cell in cells])
    if hasattr(cells, "indices"):
        cells = cells.indices
    return _are_alike(cells, cells[-1])


def _are_alike(cells: pa.Array, others: pa.Array | pa.Scalar) -> Bools:
    return bools(made("equal", cells, others))

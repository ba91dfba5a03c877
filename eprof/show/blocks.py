"""Blocks that show a result on page, terminal and Markdown: sentences, notes, tables and their cells.

A command's `words.py` describes a result as blocks: a headline, sentences, tables of typed cells, notes. `as_html.py`
draws them as HTML, `console.py` by rich, `export.py` as Markdown. A column that a medium has no room for is left out
there (`Column.media`); which blocks a medium shows, and in which order, it says itself. Charts are no blocks: they are
the page's own. Cells are numbers with what they are, so that each medium rounds, marks and colours them in its own way;
`plain_text` writes a cell for the media that have text alone: the terminal (which adds colours) and Markdown.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum, Flag, auto
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.labels import fitted
from eprof.base.text import when
from eprof.base.vocabulary import Mark
from eprof.show.amounts import MISSING
from eprof.show.amounts import signs as raised_signs
from eprof.show.numbers import MINUS, percent, plain_or, quantity, signed_percent

UNKNOWN = "unknown"
_LEGEND = {
    Mark.MISSING: "≥ at least, or: of what is known",
    Mark.ESTIMATED: "~ estimated",
    Mark.ASSUMED: "? rests on an assumption",
    Mark.SIMULATED: "s simulated",
}


class Quantity(Struct, frozen=True):
    """A number with its unit and marks; marked MISSING, it is a lower bound. None: not known."""

    value: float | None
    unit: str = ""
    marks: int = 0


class Change(Struct, frozen=True):
    """How much a quantity changed; below 0 it became less. None: not known."""

    value: float | None
    unit: str = ""
    marks: int = 0


class Share(Struct, frozen=True):
    """A part of a whole (0.25), shown in per cent; signed: a growth. None: there is none, and the cell is empty."""

    value: float | None
    signed: bool = False
    marks: int = 0


class Factor(Struct, frozen=True):
    """A number of three digits without a unit, such as a speedup. None: the cell is empty."""

    value: float | None


class Written(Struct, frozen=True):
    """A number that is given as text, and the value to sort it by."""

    text: str
    value: float | None = None


class Bar(Struct, frozen=True):
    """A small bar for a change, as a share of the largest one: to the left below 0, to the right above."""

    value: float


class Stack(Struct, frozen=True):
    """A bar of the joules of each group of counts, as long as `scale` at most; only a page draws it."""

    name: str
    joules: Mapping[str, float]
    scale: float


class Tag(Struct, frozen=True):
    """A word about a row, such as "new"."""

    text: str


class Name(Struct, frozen=True):
    """The short name of a kernel, its full name, and a remark, in which `names` are in back ticks.

    place: where the kernel is in the document, if the page can show more of it.
    """

    text: str
    full: str
    note: str = ""
    place: int | None = None


Cell: TypeAlias = str | Quantity | Change | Share | Factor | Written | Bar | Stack | Tag | Name


def plain_text(cell: Cell) -> str:
    """A cell as text, its marks as signs in front: "≥ ~12.3 J"."""
    match cell:
        case str():
            return cell
        case Quantity():
            if cell.value is None:
                return UNKNOWN
            return signs(cell.marks) + quantity(cell.value, cell.unit)
        case Change():
            if cell.value is None:
                return "not known"
            return signs(cell.marks) + signed_quantity(cell.value, cell.unit) if cell.value else "0"
        case Share():
            if cell.value is None:
                return ""
            if cell.signed:
                return signed_percent(cell.value)
            return percent(cell.value)
        case Factor():
            return plain_or("", cell.value)
        case Written() | Tag() | Name():
            return cell.text
        case Bar() | Stack():
            return ""


def signed_quantity(value: float, unit: str) -> str:
    """A change with its sign: "+1.00 J"."""
    return when(value > 0, "+") + quantity(value, unit)


def signs(marks: int) -> str:
    """Marks as signs in front of a number: "≥ ~"."""
    return when(marks & MISSING, "≥ ") + raised_signs(marks & ~MISSING)


def legend(marks: int) -> str:
    """The meaning of each sign of `signs`: "~ estimated · s simulated"."""
    return " · ".join(words for mark, words in _LEGEND.items() if mark & marks)


def decimals(value: float | None, digits: int = 1) -> Written:
    """A number with fixed decimals and a real minus; a dash for what is not known."""
    if value is None:
        return Written("–")
    size = f"{abs(value):.{digits}f}"
    return Written(when(value < 0 and float(size), MINUS) + size, value)


class Medium(Flag):
    """The media that show a result, as flags."""

    NONE = 0
    PAGE = auto()
    TERMINAL = auto()
    MARKDOWN = auto()
    ALL = PAGE | TERMINAL | MARKDOWN


def everywhere_if(is_shown: bool) -> Medium:
    """The media that show a column: all of them if `is_shown`, else none."""
    return Medium.ALL if is_shown else Medium.NONE


class Tone(Enum):
    """How a sentence is drawn: as others, or in quiet letters."""

    PLAIN = auto()
    QUIET = auto()


class Headline(Struct, frozen=True):
    """The answer of a command in one sentence, what follows from that, and the marks of the number in it."""

    text: str
    lead: str = ""
    marks: int = 0


class Sentence(Struct, frozen=True):
    """A sentence or two."""

    text: str
    tone: Tone = Tone.PLAIN


def quiet(text: str) -> Sentence:
    """A sentence in quiet letters: about the whole document, or what explains a chart or table above it."""
    return Sentence(text, Tone.QUIET)


class Point(Struct, frozen=True):
    """A sentence or two under a word that says what they are about: "Try", "Trust"."""

    label: str
    text: str


class Verdict(Struct, frozen=True):
    """A gate that was passed or failed; None: it could not be judged, and is drawn as failed. text: on the gate."""

    passed: bool | None
    text: str


class Column(Struct, frozen=True):
    """A column of a table. from_width: a terminal of fewer columns leaves it out."""

    label: str
    align: Literal["left", "right", "center"] = "right"
    media: Medium = Medium.ALL
    from_width: int = 0


def texts(*labels: str) -> list[Column]:
    """Columns of a table with these labels for words, aligned left."""
    return [Column(label, "left") for label in labels]


def numbers(*labels: str) -> list[Column]:
    """Columns of a table with these labels for numbers, aligned right."""
    return [Column(label) for label in labels]


def limit(number: int, verbose: bool) -> int | None:
    """The most rows that a table shows: `number`, or None, which means all, if `verbose`."""
    return None if verbose else number


class Row(Struct, frozen=True):
    """The cells of a row; total: it is the sum of the others, or what they are compared with."""

    cells: Sequence[Cell]
    total: bool = False


class Table(Struct, frozen=True):
    """A table. Its first column says what a row is.

    note: a sentence below it. left_out: what is said of the rows for which there is no room; hidden: their names, which
    those shown stay different from. browsable: on a page, readers sort and filter it. headless: a terminal does without
    the labels of its columns.
    """

    columns: Sequence[Column]
    rows: Sequence[Row]
    title: str = ""
    note: str = ""
    left_out: str = ""
    browsable: bool = False
    headless: bool = False
    hidden: Sequence[str] = ()

    def on(self, medium: Medium, width: int | None = None) -> "Table":
        """The table with only the columns that a medium shows, and a terminal of `width` columns has room for."""
        places = [
            place
            for place, column in enumerate(self.columns)
            if medium in column.media and (width is None or width >= column.from_width)
        ]
        rows = [replace(row, cells=[row.cells[place] for place in places]) for row in self.rows]
        return replace(self, columns=[self.columns[place] for place in places], rows=rows)

    def fitted(self, width: int) -> "Table":
        """The table with names of about `width` characters at most; different ones stay different."""
        rows = []
        shown = [plain_text(row.cells[0]) for row in self.rows]
        names = shown if all(len(name) <= width for name in shown) else fitted([*shown, *self.hidden], width)
        for row, name in zip(self.rows, names[: len(shown)], strict=True):
            cell: Cell = name
            if isinstance(row.cells[0], Name):
                cell = replace(row.cells[0], text=name)
            rows.append(replace(row, cells=[cell, *row.cells[1:]]))
        return replace(self, rows=rows)


Entry = TypeVar("Entry")
Field: TypeAlias = tuple[Column, Callable[[Entry], Cell]]


def table_of(
    entries: Iterable[Entry],
    *fields: Field[Entry],
    is_total: Callable[[Entry], bool] = lambda entry: False,
    title: str = "",
    note: str = "",
    left_out: str = "",
    browsable: bool = False,
) -> Table:
    """A table with a row for each entry. fields: pairs of a column and the function that makes its cell of an entry."""
    rows = [Row([cell(entry) for _, cell in fields], is_total(entry)) for entry in entries]
    return Table([column for column, _ in fields], rows, title, note, left_out, browsable)


class Legend(Struct, frozen=True):
    """A block: the line that explains the signs of these marks."""

    marks: int


class Notes(Struct, frozen=True):
    """Warnings and remarks, what matters most first. noun: what one of them is called."""

    texts: Sequence[str]
    noun: str = "note"


Block: TypeAlias = Headline | Sentence | Point | Verdict | Table | Legend | Notes


class Section(Struct, frozen=True):
    """A card of a page: blocks, and charts that are drawn already, under a heading.

    anchor: what links to it end in; link: its name among the links of the page.
    """

    anchor: str
    link: str
    heading: str
    blocks: Sequence[Block | str]

"""What a result shows, said once: blocks that the page, the terminal and Markdown each draw in their own way.

A command's `words.py` describes a result as blocks: a headline, sentences, tables of typed `cells`, notes.
`show/page/as_html.py` draws them as HTML, `show/console.py` by rich, `show/export.py` as Markdown. A column that a
medium has no room for is left out there (`Column.media`); which blocks a medium shows, and in which order, it says
itself. Charts are no blocks: they are the page's own.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, Flag, auto
from typing import Literal, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.labels import fitted
from eprof.show.words.cells import Cell, Name, plain_text


class Medium(Flag):
    """The media that show a result, as flags."""

    NONE = 0
    PAGE = auto()
    TERMINAL = auto()
    MARKDOWN = auto()
    ALL = PAGE | TERMINAL | MARKDOWN


def everywhere_if(is_shown: bool) -> Medium:
    """All media, or none: where a column is shown."""
    return Medium.ALL if is_shown else Medium.NONE


class Tone(Enum):
    """How a sentence is drawn: as others, or in quiet letters."""

    PLAIN = auto()
    QUIET = auto()


class Headline(Struct, frozen=True):
    """The answer in one sentence, what follows from it, and the marks of the number in it."""

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
    """A gate that was passed or failed. None: it could not be judged, which is no better than failed."""

    passed: bool | None
    text: str


class Column(Struct, frozen=True):
    """A column of a table. from_width: a terminal of fewer columns leaves it out."""

    label: str
    align: Literal["left", "right", "center"] = "right"
    media: Medium = Medium.ALL
    from_width: int = 0


def texts(*labels: str) -> list[Column]:
    """Columns of words for a table."""
    return [Column(label, "left") for label in labels]


def numbers(*labels: str) -> list[Column]:
    """Columns of numbers for a table."""
    return [Column(label) for label in labels]


def limit(number: int, verbose: bool) -> int | None:
    """A limit for rows: `number`, or None, which means all, if `verbose`."""
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
    """A table of a row an entry. fields: its columns, each with the cell that it makes of an entry."""
    rows = [Row([cell(entry) for _, cell in fields], is_total(entry)) for entry in entries]
    return Table([column for column, _ in fields], rows, title, note, left_out, browsable)


class Legend(Struct, frozen=True):
    """The line that says what the signs of these marks mean."""

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

"""Draws blocks (`show/blocks.py`) on a terminal, by rich. In a narrow table names give way, never numbers.

Last come lists of what comes with eprof: cost tables, counter definitions.
"""

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import fill, wrap
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from eprof.base.text import by_sign, cut, phrase, printable, visible, when
from eprof.show.blocks import (
    Bar,
    Block,
    Cell,
    Change,
    Headline,
    Legend,
    Medium,
    Name,
    Notes,
    Point,
    Sentence,
    Table,
    Tone,
    Verdict,
    legend,
    limit,
    plain_text,
)
from eprof.show.numbers import NARROW, and_more


class _Terminal(Console):
    """Standard output. A broken pipe raises, since rich would end the process by itself."""

    def on_broken_pipe(self) -> None:
        """Raise BrokenPipeError: what is to happen is the caller's to decide."""
        raise BrokenPipeError


def terminal() -> Console:
    """A console for standard output; nothing in what is printed is taken for markup."""
    return _Terminal(highlight=False, markup=False, emoji=False)


def into(buffer: io.StringIO, width: int) -> Console:
    """A console for a buffer, of `width` columns: no colours, whatever FORCE_COLOR says."""
    return Console(
        file=buffer, width=width, no_color=True, force_terminal=False, highlight=False, markup=False, emoji=False
    )


_LESS, _MORE = "color(32)", "color(166)"
_NARROWEST, _WIDEST = 14, 60
_APART = 3  # of columns: two spaces, and a divider, which a table without labels has not
_NAMED = 22  # columns for the names of a table without labels, in which what follows may take two lines
_TOLD = 44  # of what follows, before names are cut; it has as many lines as it needs
_NOTES = 8
_UNIT = re.compile(r"(?<=\d) (?=(?:%|[kMGmµn]?(?:J|W|s|B|Hz|V))(?!\w))")  # the space before one
_HALF_BAR = 12


def show(blocks: Iterable[Block | RenderableType], verbose: bool = False) -> None:
    """Print blocks on the terminal; every note if `verbose`. What is no block is printed as it is."""
    console = terminal()
    for part in drawn(blocks, console.width, verbose):
        console.print(part)


def text(blocks: Iterable[Block | RenderableType], verbose: bool = False, width: int = 110) -> str:
    """Blocks as the terminal shows them, as plain text of `width` columns."""
    buffer = io.StringIO()
    console = into(buffer, width)
    for part in drawn(blocks, width, verbose):
        console.print(part)
    return buffer.getvalue()


def drawn(blocks: Iterable[Block | RenderableType], width: int, verbose: bool) -> Iterator[RenderableType]:
    """Yield blocks as rich draws them on the terminal, with an empty line around tables."""
    was_table = False
    for block in blocks:
        is_table = isinstance(block, Table) and not block.headless
        if is_table or was_table:
            yield ""
        match block:
            case Headline():
                yield Text(_wrapped(block.text, width), style="bold")
                if block.lead:
                    yield Text(_wrapped(block.lead, width))
            case Sentence():
                yield Text(_wrapped(block.text, width), style=when(block.tone is Tone.QUIET, "dim"))
            case Point():
                lines = _wrapped(block.text, width, " " * (len(block.label) + 2))
                yield Text.assemble((block.label, "bold"), lines[len(block.label) :])
            case Verdict():
                yield Text(_wrapped(block.text, width), style="green" if block.passed else "red")
            case Table():
                yield from _table(block, width)
            case Legend():
                if block.marks:
                    yield Text(legend(block.marks), style="dim")
            case Notes():
                shown = block.texts[: limit(_NOTES, verbose)]
                for note in shown:
                    lines = _wrapped(f"{block.noun}: {note}", width)
                    yield Text.assemble((f"{block.noun}:", "yellow"), lines[len(block.noun) + 1 :])
                if rest := and_more(len(block.texts) - len(shown), block.noun):
                    yield Text(f"{rest} (-v shows them)", style="dim")
            case _:
                yield block
        was_table = is_table


def _wrapped(text: str, width: int, indent: str = "") -> str:
    """Text for the terminal in lines of `width` columns, none of which ends between a number and its unit.

    rich would break there, and at the hyphens of options.
    """
    shown = _UNIT.sub(NARROW, visible(" ".join(text.splitlines())))
    lines = wrap(shown, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(map(printable, lines))


def _table(table: Table, width: int) -> Iterator[RenderableType]:
    """Yield a table as rich draws it in `width` columns, names cut, columns without room left out; then its notes."""
    from_width = max(column.from_width for column in table.columns)
    table = table.on(Medium.TERMINAL, width)
    rows = [[_cell(cell) for cell in row.cells[1:]] for row in table.rows]
    labels = [when(not table.headless, column.label) for column in table.columns]
    widths = [max([len(label), *(row[place].cell_len for row in rows)]) for place, label in enumerate(labels[1:])]
    if not table.headless:
        numbers = [wide * (column.align != "left") for column, wide in zip(table.columns[1:], widths, strict=True)]
        needed = [_NARROWEST + _APART * place + sum(numbers[:place]) for place in range(1, len(numbers) + 1)]
        # A number that is cut is a wrong one: what has no room is left out.
        shown = max(1, sum(each <= width for each in needed))
        if shown < len(widths):
            from_width = max(from_width, needed[-1])
        rows, labels, widths = [row[:shown] for row in rows], labels[: shown + 1], widths[:shown]
    columns = table.columns[: len(labels)]
    narrowest, apart = _NARROWEST, _APART
    if table.headless:
        narrowest, apart = _NAMED, 2
    drawn = RichTable(
        box=None if table.headless else SIMPLE_HEAD,
        show_header=not table.headless,
        pad_edge=False,
        show_edge=False,
        padding=(0, 1),
        title=table.title or None,
        title_justify="left",
    )
    drawn.add_column(labels[0], overflow="ellipsis", no_wrap=True, min_width=_NARROWEST)
    for column, label, wide in zip(columns[1:], labels[1:], widths, strict=True):
        is_number = column.align != "left"
        drawn.add_column(label, justify=column.align, no_wrap=is_number, min_width=wide * is_number)

    wants = [*widths[:-1], *(min(wide, _TOLD) if table.headless else wide for wide in widths[-1:])]
    room = max(narrowest, min(_WIDEST, width - sum(wide + apart for wide in wants)))
    fitted = table.fitted(room).rows
    if table.headless and widths:
        named = max([_NARROWEST, *(len(plain_text(row.cells[0])) for row in fitted)])
        left = width - named - apart - sum(wide + apart for wide in widths[:-1])
        for row, cells in zip(table.rows, rows, strict=True):
            cells[-1] = Text(_wrapped(plain_text(row.cells[-1]), max(left, _NARROWEST)))
    for row, cells in zip(fitted, rows, strict=True):
        cell = row.cells[0]
        name = Text(printable(plain_text(cell)))
        if isinstance(cell, Name) and cell.note and room >= _NAMED:
            note = printable(cut(cell.note.replace("`", ""), 4 * room))
            name.append("\n" + fill(note, room, initial_indent="  ", subsequent_indent="  "), style="dim")
        drawn.add_row(name, *cells, style=when(row.total, "bold"))
    yield drawn
    if table.note:
        yield Text(printable(table.note), style="dim")
    if table.left_out:
        yield Text(printable(f"{table.left_out} (-v shows them)"), style="dim")
    if width < from_width:
        yield Text(f"more columns are shown from a width of {from_width} on", style="dim")


def _cell(cell: Cell) -> Text:
    """A cell as rich draws it: a change coloured by its sign, a `Bar` of blocks from its middle."""
    if isinstance(cell, Bar):
        filled = "█" * max(1, round(abs(cell.value) * _HALF_BAR))
        less, more = when(cell.value < 0, filled).rjust(_HALF_BAR), when(cell.value > 0, filled).ljust(_HALF_BAR)
        return Text.assemble((less, _LESS), ("│", "dim"), (more, _MORE))
    style = ""
    if isinstance(cell, Change) and cell.value is None:
        style = "dim"
    elif isinstance(cell, Change) and cell.value:
        style = by_sign(cell.value, _LESS, _MORE)
    return Text(printable(plain_text(cell)), style=style)


Row = Mapping[str, Any]
BOOKS = {"both": "", "other": "", "served": "served", "accessed": "accessed", "component": "time", "step": "step"}


def marks_of(marks: Sequence[str]) -> str:
    """The words " [estimated, assumed]" behind a row's text; empty without marks."""
    return phrase(" [{}]", ", ".join(marks))


def listing_table(*columns: str) -> RichTable:
    """An empty rich table with these columns, to list cost tables, counters and such."""
    table = RichTable(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1))
    for name in columns:
        narrow = name in ("way", "pays", "settings", "count", "name", "books", "profiler", "basis")
        table.add_column(name, no_wrap=narrow, overflow="fold")
    return table


def show_list(parts: Iterable[RenderableType]) -> None:
    """Print the parts of a list on the terminal; of texts, only characters that can be printed."""
    console = terminal()
    for part in parts:
        if isinstance(part, str):
            part = Text(printable(part))
        console.print(part)

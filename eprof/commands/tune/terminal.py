"""Clocks in a terminal: the blocks of `commands/tune/words.py`, and a heat map of core by memory clock."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import phrase, printable, when
from eprof.commands.tune import words
from eprof.commands.tune.document import Tune
from eprof.show.words.blocks import Block, quiet
from eprof.show.words.cells import HeatCell

# From less to more, as the page has them; light text on the dark ones.
_STEPS = (230, 223, 222, 215, 208, 172, 130, 94, 52)
_DARK_FROM = 6
_WIDE = 80  # columns of the narrowest terminal


def blocks(document: Tune, verbose: bool) -> Iterator[Block | RenderableType]:
    """What the terminal shows of clocks: the heat map, core clock across, memory clock down; then the other blocks."""
    heat = words.heat(document)
    if heat is not None:
        yield ""
        room = (_WIDE - 6) // (2 + max(len(cell.text + cell.sign) for cell in heat.cells.values()))
        cells = words.thinned(heat.cells, room)
        cores = sorted({core for core, _ in cells})
        some = when(len(cells) < len(heat.cells), " some of the clocks")
        yield quiet(f"{heat.caption} Core MHz across{some}, memory MHz down.")
        table = Table("", *(f"{core:g}" for core in cores), box=None, pad_edge=False)
        for column in table.columns:
            column.justify = "right"
        for memory in sorted({memory for _, memory in cells}, reverse=True):
            table.add_row(f"{memory:g}", *(_drawn(cells.get((core, memory))) for core in cores))
        yield table
        now = phrase(", now at {}", getattr(document.now, "label", None))
        yield quiet(f"{heat.legend}{now}")
    yield from words.blocks(document, verbose)


def _drawn(cell: HeatCell | None) -> Text:
    if cell is None:
        return Text("")
    style = "dim"
    if cell.step is not None:
        ink = 255 if cell.step >= _DARK_FROM else 16
        style = f"color({ink}) on color({_STEPS[cell.step]})"
    return Text(printable(cell.text + cell.sign), style=style)

"""Clocks in a terminal: the blocks of `commands/tune/words.py`, and a heat map of core by memory clock."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import printable
from eprof.commands.tune import words
from eprof.commands.tune.schema import Tune
from eprof.commands.tune.words import Heat
from eprof.show.words.blocks import Block, Headline, Sentence, Tone
from eprof.show.words.cells import HeatCell

# From less to more, as the page has them; light text on the dark ones.
_STEPS = (230, 223, 222, 215, 208, 172, 130, 94, 52)
_DARK_FROM = 6


def blocks(document: Tune, verbose: bool) -> Iterator[Block | RenderableType]:
    """What the terminal shows of clocks, in its order."""
    for block in words.blocks(document, verbose):
        yield block
        if isinstance(block, Headline):
            yield from _heat(document)


def _heat(document: Tune) -> Iterator[Block | RenderableType]:
    """The heat map on the terminal: energy at each setting, core clock across, memory clock down, highest on top."""
    heat = words.heat(document)
    if heat is None:
        return
    yield ""
    yield Sentence(f"{heat.caption} Core MHz across, memory MHz down.", Tone.QUIET)
    yield _table(heat)
    now = f", now at {document.now.label}" if document.now is not None else ""
    yield Sentence(f"{heat.legend}{now}", Tone.QUIET)


def _table(heat: Heat) -> Table:
    cores = sorted({core for core, _ in heat.cells})
    table = Table("", *(f"{core:g}" for core in cores), box=None, pad_edge=False)
    for column in table.columns:
        column.justify = "right"
    for memory in sorted({memory for _, memory in heat.cells}, reverse=True):
        cells = [heat.cells.get((core, memory)) for core in cores]
        table.add_row(f"{memory:g}", *map(_cell, cells))
    return table


def _cell(cell: HeatCell | None) -> Text:
    if cell is None:
        return Text("")
    words = printable(cell.text + cell.sign)
    if cell.step is None:
        return Text(words, style="dim")
    ink = 255 if cell.step >= _DARK_FROM else 16
    return Text(words, style=f"color({ink}) on color({_STEPS[cell.step]})")

"""A difference on the terminal: the answer in fifteen lines; with -v also both sides, what changed, counts, notes."""

import math
from collections.abc import Iterator
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from eprof.base.known import ratio
from eprof.base.labels import labels
from eprof.base.text import counted, printable, when
from eprof.commands.diff import tables as diff_tables
from eprof.commands.diff import why
from eprof.commands.diff import words as diff_words
from eprof.commands.diff.schema import Document
from eprof.show.terminal import drawing
from eprof.show.words.blocks import Block, Headline, Notes, Sentence, Tone, Verdict
from eprof.show.words.cells import signed_quantity
from eprof.show.words.numbers import quantity

_LINES, _USED = 15, 76
_KERNELS, _NAME, _BAR = 4, 24, 24


_Text: TypeAlias = Headline | Sentence | Verdict


def show(document: Document, verbose: bool = False) -> None:
    """Print a difference on the terminal; every kernel, count and note if `verbose`."""
    drawing.show(_blocks(diff_words.answered(document), verbose), verbose)


def text(document: Document, verbose: bool = False, width: int = 110) -> str:
    """A difference as the terminal shows it, as plain text of `width` columns."""
    return drawing.text(_blocks(diff_words.answered(document), verbose), verbose, width)


def _blocks(document: Document, verbose: bool) -> Iterator[Block | RenderableType]:
    yield _line(Text(printable(diff_words.head(document)), style="dim"))
    answer: list[_Text] = [
        Sentence(diff_words.unlike(document)),
        diff_words.headline(document),
        Sentence(diff_words.noise(document)),
    ]
    yield from (block for block in answer if block.text)
    if verbose:
        yield from _details(document)
        return
    more = when(document.warnings, counted(len(document.warnings), "note")) or "every number"
    trust = Sentence(f"{diff_words.trust(document)} -v: {more}.", Tone.QUIET)
    last: list[_Text] = [*_gates(document), trust]
    if not document.is_zero and len(document.kernels) > 1:
        yield from _kernels(document, max(2, _LINES - 1 - sum(map(_lines, [*answer, *last]))))
    elif not document.is_zero and (parts := diff_words.bar(document)):
        yield _bar(parts)
    yield from last


def _lines(block: _Text) -> int:
    """How many lines a block of a difference takes on a terminal of 80 columns."""
    texts = [block.text]
    if isinstance(block, Headline):
        texts.append(block.lead)
    return sum(math.ceil(len(text) / _USED) for text in texts)


def _gates(document: Document) -> list[Verdict]:
    """The gate of a difference that did not pass, or how many did; standard error has each that did not."""
    verdicts = diff_words.verdicts(document)
    if len(verdicts) < 2:
        return verdicts
    passed = sum(verdict.passed is True for verdict in verdicts)
    return [Verdict(passed == len(verdicts), f"{passed} of {len(verdicts)} gates passed.")]


def _kernels(document: Document, room: int) -> Iterator[RenderableType]:
    """A line a kernel of the difference: by how much it changed, and why; and how many more there are."""
    rows = min(_KERNELS, room)
    if len(document.kernels) > rows:
        rows = min(_KERNELS, room - 1)
    shown = document.kernels[:rows]
    lines = [[f"  {label}"] for label in labels([kernel.name for kernel in shown], _NAME)]
    unit = "J" if document.has_energy else "s"
    for line, kernel in zip(lines, shown, strict=True):
        change, share = diff_tables.change_of(kernel, document.has_energy)
        whole = ratio(change, share)
        line.append("not known" if change is None else signed_quantity(change, unit))
        line.append(when(whole, f"of {quantity(abs(whole or 0.0), unit)}"))
        line.append(why.of_kernel(kernel, document.nouns, brief=True))

    grid = Grid.grid(padding=(0, 1, 0, 0))
    for place in range(len(lines[0]) - 1):
        width = max(cell_len(printable(line[place])) for line in lines)
        grid.add_column(justify="right" if place else "left", no_wrap=True, min_width=width)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for line in lines:
        grid.add_row(*(Text(printable(cell)) for cell in line))
    yield grid
    rest = len(document.kernels) - rows
    if rest > 0:
        yield Text(f"  and {counted(rest, f'more {document.nouns.kernel}')}", style="dim")


def _bar(parts: list[tuple[str, float, str]]) -> RenderableType:
    whole = max(1.0, sum(abs(share) for _, share, _ in parts))
    pieces = []
    for label, share, amount in parts:
        bar = "█" * round(_BAR * abs(share) / whole)
        pieces.append(" ".join(filter(None, [label, bar, amount])))
    return _line(Text(printable("  " + "  ".join(pieces))))


def _line(content: Text) -> RenderableType:
    grid = Grid.grid()
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_row(content)
    return grid


def _details(document: Document) -> Iterator[Block]:
    document = diff_words.unmarked(document)
    if ratios := diff_words.ratios(document):
        yield Sentence(ratios)
    yield diff_tables.sides(document)
    if document.steps and not document.is_zero:
        yield diff_tables.steps(document)
    yield diff_tables.kernels(document)
    counts = diff_tables.counts(document)
    if counts.rows:
        yield counts
    for sentence in diff_words.beside(document):
        yield Sentence(sentence, Tone.QUIET)
    yield diff_words.legend(document)
    yield from diff_words.verdicts(document)
    yield Notes(document.warnings)

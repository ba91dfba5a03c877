"""A difference on the terminal: the answer in fifteen lines; with -v also both sides, what changed, counts, notes."""

import math
from collections.abc import Iterator
from typing import TypeAlias

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as Grid
from rich.text import Text

from eprof.base.labels import labels
from eprof.base.optional import mapped, ratio
from eprof.base.text import counted, printable, when
from eprof.commands.diff import answer, likeness, words
from eprof.commands.diff.schema import Document
from eprof.show import console
from eprof.show.blocks import Block, Headline, Notes, Sentence, Verdict, quiet, signed_quantity
from eprof.show.numbers import percent, quantity

_LINES, _USED = 15, 76
_KERNELS, _NAME, _SHORTEST, _BAR = 4, 24, 12, 18
_THIN = 0.01  # of the change
_SPECK = 0.01  # of the largest change: a kernel that changed less is not worth a line


_Text: TypeAlias = Headline | Sentence | Verdict


def show(document: Document, verbose: bool = False) -> None:
    """Print a difference on the terminal; every kernel, count and note if `verbose`."""
    console.show(_blocks(answer.answered(document), verbose), verbose)


def text(document: Document, verbose: bool = False, width: int = 110) -> str:
    """A difference as the terminal shows it, as plain text of `width` columns."""
    return console.text(_blocks(answer.answered(document), verbose), verbose, width)


def _blocks(document: Document, verbose: bool) -> Iterator[Block | RenderableType]:
    """Yield the blocks of a screen: head, answer, kernels or bars, gates, trust; if `verbose` all tables and notes."""
    yield _line(Text(printable(words.head(document)), style="dim"))
    texts: list[_Text] = [Sentence(words.unlike(document)), answer.headline(document)]
    if likeness.is_shown(document):  # else the headline says it
        texts.append(Sentence(words.noise(document)))
    yield from (block for block in texts if block.text)
    if verbose:
        document = words.unmarked(document)
        yield Sentence(words.ratios(document))
        yield words.sides_table(document)
        if words.moving(document):
            yield words.steps_table(document)
        yield words.kernels_table(document)
        if (counts := words.counts_table(document)).rows:
            yield counts
        yield from (quiet(sentence) for sentence in words.beside(document))
        yield words.legend(document)
        yield from words.verdicts(document)
        yield Notes(document.warnings)
        return

    # The gate, or how many passed; standard error has each that did not.
    last: list[_Text] = [*words.verdicts(document)]
    if len(last) > 1:
        passed = [gate for gate in document.gates if gate.failed is False]
        noisy = sum(gate.is_noise and (gate.growth or 0) > gate.limit for gate in passed)
        of_noise = when(noisy, f", {noisy} of them because the runs do not tell growth from noise")
        last = [Verdict(len(passed) == len(last), f"{len(passed)} of {len(last)} gates passed{of_noise}.")]
    more = when(document.warnings, counted(len(document.warnings), "note")) or "every number"
    last.append(quiet(f"{words.trust(document)} -v: {more}."))
    is_same = document.is_zero or likeness.is_one_run(document)
    if not is_same and len(document.kernels) > 1:
        shown = [text for block in (*texts, *last) for text in (block.text, getattr(block, "lead", ""))]
        used = sum(math.ceil(len(text) / _USED) for text in shown)  # on a terminal of 80 columns
        yield from _kernels(document, max(2, _LINES - 1 - used))
    elif not is_same and (bars := _bars(document)):
        yield _line(Text(bars))
    yield from last


def _bars(document: Document) -> str:
    """The largest steps of a change with a bar each, as many as have room in a line; empty where there is no change.

    Where parts nearly cancel, their joules say more than shares of what is left.
    """
    change = document.change_j
    if not change or not likeness.has_finding(document):
        return ""
    steps = [step for step in words.moving(document) if abs(step.change_j / change) >= _THIN][:_KERNELS]
    shares = [step.change_j / change for step in steps]
    longest = max(1.0, sum(map(abs, shares)))
    is_cancelled = max(map(abs, shares), default=0.0) > answer.CANCELS
    text = ""
    for step, share in zip(steps, shares, strict=True):
        size = percent(share)
        if is_cancelled:
            size = signed_quantity(step.change_j, document.nouns.joule)
        bar = "█" * round(_BAR * abs(share) / longest)
        piece = "  " + printable(" ".join(filter(None, [words.step_label(step, document.nouns), bar, size])))
        if text and len(text) + len(piece) > _USED:
            break
        text += piece
    return text


def _kernels(document: Document, room: int) -> Iterator[RenderableType]:
    """A line a kernel of the difference: by how much it changed, and why; and how many more there are."""
    each, by = "while it runs", when(document.a_second, "time_s")
    if likeness.launched_otherwise(document):
        each, by = f"a {document.nouns.launch}", "launches"
    changes = words.changes_of(document)
    sizes = [abs(change or 0.0) for change, _ in changes]
    least = _SPECK * max(sizes)
    worth_it = sum(size >= least for size in sizes)
    rows = min(_KERNELS, room, max(worth_it, 1))
    if len(document.kernels) > rows:
        rows = min(rows, room - 1)
    shown = document.kernels[:rows]
    lines = []
    for kernel, (change, share) in zip(shown, changes, strict=False):
        whole = ratio(change, share)
        cause = when(likeness.is_shown(document), answer.cause_of_kernel(kernel, document.nouns, brief=True))
        if by and kernel.old is not None and kernel.new is not None:
            both = (ratio(document.amount(side), getattr(side, by)) or 0.0 for side in (kernel.old, kernel.new))
            cause = f"{' → '.join(quantity(amount, document.unit) for amount in both)} {each}"
        amount = mapped(signed_quantity, change, document.unit) or "not known"
        lines.append([amount, when(whole, f"of {quantity(abs(whole or 0.0), document.unit)}"), cause])

    widths = [max(cell_len(line[place]) for line in lines) for place in range(3)]
    names = labels([kernel.name for kernel in document.kernels], max(_SHORTEST, min(_NAME, _USED - sum(widths))))
    grid = Grid.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True, min_width=max(map(cell_len, names[:rows])) + 2)
    for width in widths[:2]:
        grid.add_column(justify="right", no_wrap=True, min_width=width)
    grid.add_column(no_wrap=True, overflow="ellipsis")
    for name, line in zip(names, lines, strict=False):
        grid.add_row(*(Text(printable(cell)) for cell in (f"  {name}", *line)))
    yield grid
    rest = len(document.kernels) - rows
    if rest > 0:
        yield Text(f"  and {counted(rest, f'more {document.nouns.kernel}')}", style="dim")


def _line(content: Text) -> RenderableType:
    grid = Grid.grid()
    grid.add_column(no_wrap=True, overflow="ellipsis")
    grid.add_row(content)
    return grid

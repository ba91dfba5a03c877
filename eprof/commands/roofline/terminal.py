"""`eprof roofline` in a terminal: the lines drawn with characters, their balances, and what would lift each kernel."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from eprof.base.text import phrase, printable, when
from eprof.commands.roofline import words
from eprof.profile import schema
from eprof.show import console, cost_words
from eprof.show.blocks import Block, Headline, Notes, Sentence, limit, quiet
from eprof.show.numbers import plain, quantity

_ROWS, _KERNELS, _LETTERS = 14, 12, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WIDEST, _MARGIN = 110, 14
_MACHINE = 24  # columns of text for a machine in a table
_STROKES = "━╍┅┈·∙∘+"
_STYLES = ("color(33)", "color(208)", "color(71)", "color(170)", "color(214)", "color(110)")
_PLOTS = (("flop_per_s", "Speed", "flop/s"), ("flop_per_j", "Energy efficiency", "flop/J"), ("power_w", "Power", "W"))

Document = schema.Roofline | Mapping[str, Any]


def show(document: Document, verbose: bool = False) -> None:
    """Print rooflines on the terminal: the lines, the balances and the kernels."""
    console.show(_summary(document, verbose), verbose)


def text(document: Document, verbose: bool = False, width: int = 110) -> str:
    """Rooflines as the terminal shows them, as plain text of `width` columns."""
    return console.text(_summary(document, verbose), verbose, width)


def _summary(document: Document, verbose: bool) -> Iterator[Block | RenderableType]:
    document = schema.typed(document, schema.Roofline)
    yield quiet(phrase("{} · ", document.title) + cost_words.all_named(document.machines))
    first = words.headline(document)
    yield Headline(first)
    yield from (Sentence(line) for line in words.leads(document) if line != first)
    for key, title, unit in _PLOTS if verbose or document.cap_sweep else _PLOTS[:2]:
        yield ""
        yield quiet(f"{title}, {unit}, against flop per DRAM byte")
        yield _Plot(document, key)
    legend = Text()
    for kind, machine in enumerate(document.machines):
        stroke, style = _style(kind)
        legend.append(f"{stroke * 3} ", style=style)
        legend.append(printable(words.label(machine)).replace(" ", "\u00a0") + "   ")
    yield legend
    yield words.sweep_table(document) or _Machines(document.machines)
    yield from (quiet(note) for note in words.notes(document.machines))
    if words.has_places(document):
        yield words.dot_table(document, limit(_KERNELS, verbose), _LETTERS)
    yield Notes(document.warnings, "warning")


def _style(kind: int) -> tuple[str, str]:
    return _STROKES[kind % len(_STROKES)], _STYLES[kind % len(_STYLES)]


class _Machines(Struct, frozen=True):
    """The numbers behind the lines, in as many tables as the width asks for."""

    machines: Sequence[schema.Machine]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        step = max(1, (options.max_width - _MACHINE) // (_MACHINE + 3))
        tables = [
            words.machine_table(self.machines[start : start + step]) for start in range(0, len(self.machines), step)
        ]
        yield from console.drawn(tables, options.max_width, verbose=True)


class _Plot(Struct, frozen=True):
    """A log-log plot in characters: each machine has a stroke of its own, kernels are letters."""

    document: schema.Roofline
    key: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [
            (point.intensity_flop_per_byte, getattr(point, self.key), *_style(kind))
            for kind, machine in enumerate(self.document.machines)
            for point in machine.lines or ()
        ]
        dots = [
            (dot.intensity_flop_per_byte.dram, getattr(dot, self.key), letter, "bold")
            for letter, dot in zip(_LETTERS, self.document.kernels, strict=False)
            if dot.intensity_flop_per_byte.dram and getattr(dot, self.key)
        ]
        width = max(30, min(options.max_width, _WIDEST) - _MARGIN)
        intensities = [x for x, *_ in lines]
        left, right = min(intensities), max(intensities)
        heights = [y for _, y, *_ in (*lines, *dots)]
        high = math.ceil(math.log10(max(heights)) * 3) / 3
        low = max(math.floor(math.log10(min(heights)) * 3) / 3, high - 4)
        rows = [[(" ", "")] * width for _ in range(_ROWS)]
        # What comes first in the document is drawn last, above the others.
        for x, y, sign, style in (*reversed(lines), *reversed(dots)):
            column = round((width - 1) * math.log(x / left) / math.log(right / left))
            row = round((_ROWS - 1) * (high - math.log10(y)) / (high - low))
            if 0 <= row < _ROWS and 0 <= column < width:
                rows[row][column] = (sign, style)
        text = Text()
        for place, signs in enumerate(rows):
            value = 10 ** (high - (high - low) * place / (_ROWS - 1))
            tick = when(place % 4 == 0 or place == _ROWS - 1, printable(quantity(value, "")))
            text.append(f"{tick:>9} │", style="dim")
            for sign, style in signs:
                text.append(sign, style=style)
            text.append("\n")
        middle = plain(math.sqrt(left * right))
        labels = f"{plain(left):<{width // 2}}{middle}".ljust(width - 6)
        text.append(f"{' ' * 10}└{'─' * width}\n{' ' * 11}{labels}{plain(right):>6}", style="dim")
        yield text

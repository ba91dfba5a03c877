"""`eprof roofline` in a terminal: the lines drawn with characters, their balances, and what would lift each kernel."""

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import printable
from eprof.terminal.screen import into, terminal
from eprof.words.lever import EXPLAINED, lever, share_of
from eprof.words.names import cores, cut
from eprof.words.numbers import plain, quantity
from eprof.words.roofline import ROWS, capped, headline, label, match, verdict

_ROWS, _KERNELS, _LETTERS = 14, 12, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_STROKES = "━╍┅┈·∙∘+"
_STYLES = ("color(33)", "color(208)", "color(71)", "color(170)", "color(214)", "color(110)")
_PLOTS = (("flop_per_s", "Speed", "flop/s"), ("flop_per_j", "Energy efficiency", "flop/J"), ("power_w", "Power", "W"))


def show(document: dict[str, Any], verbose: bool = False) -> None:
    """Print the lines, the balances and the kernels on standard output."""
    console = terminal()
    for part in _parts(document, verbose, console.width):
        console.print(part)


def text(document: dict[str, Any], verbose: bool = False, width: int = 110) -> str:
    """The same as plain text of `width` columns."""
    buffer = io.StringIO()
    console = into(buffer, width)
    for part in _parts(document, verbose, width):
        console.print(part)
    return buffer.getvalue()


def _parts(document: dict[str, Any], verbose: bool, width: int) -> Iterable[RenderableType]:
    if document["title"]:
        yield Text(printable(document["title"]), style="dim")
    first = headline(document)
    yield Text(printable(first), style="bold")
    for line in (*map(match, document["equal_power"]), *map(verdict, document["machines"])):
        if line != first:
            yield Text(printable(line))
    for key, title, unit in _PLOTS if verbose else _PLOTS[:2]:
        yield Text()
        yield Text(f"{title}, {unit}, against flop per DRAM byte", style="dim")
        yield _plot(document, key, unit, min(width, 110))
    yield _legend(document["machines"])
    yield Text()
    yield from _balances(document["machines"], width)
    if document["kernels"]:
        yield Text()
        yield _kernels(document["kernels"], None if verbose else _KERNELS, width)
        yield Text(EXPLAINED, style="dim")
    for warning in document["warnings"] if verbose else document["warnings"][:4]:
        yield Text.assemble(("warning: ", "yellow"), printable(warning))


def _plot(document: dict[str, Any], key: str, unit: str, width: int) -> Text:
    """A log-log plot in characters: each machine has a stroke of its own, kernels are letters."""
    machines, kernels = document["machines"], document["kernels"][: len(_LETTERS)]
    room = max(30, width - 14)
    lines = [[(point["intensity_flop_per_byte"], point[key]) for point in one["lines"]] for one in machines]
    dots = [(one["intensity_flop_per_byte"]["dram"], one[key]) for one in kernels]
    known = [(x, y) for x, y in dots if x and y]
    low_x, high_x = lines[0][0][0], lines[0][-1][0]
    values = [y for line in lines for _, y in line] + [y for _, y in known]
    low, high = math.floor(math.log10(min(values)) * 3) / 3, math.ceil(math.log10(max(values)) * 3) / 3
    low = max(low, high - 4)
    grid: list[list[tuple[str, str]]] = [[(" ", "")] * room for _ in range(_ROWS)]

    def put(x: float, y: float, sign: str, style: str) -> None:
        column = round((room - 1) * math.log(x / low_x) / math.log(high_x / low_x))
        row = round((_ROWS - 1) * (high - math.log10(y)) / (high - low))
        if 0 <= row < _ROWS and 0 <= column < room:
            grid[row][column] = (sign, style)

    for at, line in reversed(list(enumerate(lines))):
        for x, y in line:
            put(x, y, _STROKES[at % len(_STROKES)], _STYLES[at % len(_STYLES)])
    for at, (x, y) in reversed(list(enumerate(dots))):
        if x and y:
            put(x, y, _LETTERS[at], "bold")
    return _drawn(grid, low, high, low_x, high_x, unit)


def _drawn(grid: list[list[tuple[str, str]]], low: float, high: float, left: float, right: float, unit: str) -> Text:
    found = Text()
    for at, row in enumerate(grid):
        value = 10 ** (high - (high - low) * at / (_ROWS - 1))
        tick = printable(quantity(value, "")) if at % 4 == 0 or at == _ROWS - 1 else ""
        found.append(f"{tick:>9} │", style="dim")
        for sign, style in row:
            found.append(sign, style=style)
        found.append("\n")
    found.append(" " * 10 + "└" + "─" * len(grid[0]) + "\n", style="dim")
    middle = plain(math.sqrt(left * right))
    found.append(" " * 11 + f"{plain(left):<{len(grid[0]) // 2}}{middle}".ljust(len(grid[0]) - 6), style="dim")
    found.append(f"{plain(right):>6}", style="dim")
    return found


def _legend(machines: Sequence[Mapping[str, Any]]) -> Text:
    line = Text()
    for at, machine in enumerate(machines):
        line.append(f"{_STROKES[at % len(_STROKES)] * 3} ", style=_STYLES[at % len(_STYLES)])
        line.append(printable(label(machine)).replace(" ", "\u00a0") + "   ")
    return line


def _balances(machines: Sequence[Mapping[str, Any]], width: int) -> Iterable[RenderableType]:
    """The numbers behind the lines: a column a machine, in as many tables as the width asks for."""
    step = max(1, (width - 26) // 24)
    for start in range(0, len(machines), step):
        some = machines[start : start + step]
        table = _table("", *(printable(label(one)) for one in some))
        for name, read in ROWS:
            table.add_row(name, *(printable(read(one)) for one in some))
        if any(one["power_cap_w"] is not None for one in some):
            table.add_row("capped, flop/B", *(printable(capped(one)) for one in some))
        yield table
    notes = dict.fromkeys(f"{one['name']}: {note}" for one in machines for note in one["notes"])
    for note in notes:
        yield Text(printable(note), style="dim")


def _kernels(kernels: Sequence[Mapping[str, Any]], limit: int | None, width: int) -> RenderableType:
    """A row a kernel: its letter in the plots, how far below the lines, and what would lift it."""
    wide = width >= 100
    columns = [
        "flop/B",
        "of roofline",
        "of arch line",
        *(["flop/s", "flop/J"] if wide else []),
        "largest part of its energy",
    ]
    table = _table("kernel", *columns)
    table.columns[-1].justify = "left"
    table.columns[-1].no_wrap = False
    shown = list(kernels[:limit])
    room = max(14, min(40, width - (96 if wide else 74)))
    for at, (one, (start, end)) in enumerate(zip(shown, cores([one["name"] for one in shown]), strict=True)):
        letter = _LETTERS[at] if at < len(_LETTERS) else " "
        share = [printable(share_of(one, key) or "unknown") for key in ("speed_share", "energy_share")]
        rates = [_rate(one["flop_per_s"]), _rate(one["flop_per_j"])] if wide else []
        table.add_row(
            f"{letter} {printable(cut(one['name'][start:end], room))}",
            _rate(one["intensity_flop_per_byte"]["dram"]),
            *share,
            *rates,
            printable(lever(one)),
        )
    if len(kernels) > len(shown):
        table.caption = f"and {len(kernels) - len(shown):,} more kernels (-v shows them)"
    return table


def _rate(value: float | None) -> str:
    return "–" if value is None else printable(plain(value))


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), caption_justify="left")
    table.add_column(first, no_wrap=True, overflow="ellipsis")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table

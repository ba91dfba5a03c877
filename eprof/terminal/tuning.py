"""Clocks in a terminal: the pick in a sentence, a heat map of core by memory clock, kernels, and what is lost."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import printable
from eprof.terminal.screen import into, terminal
from eprof.terminal.validation import fill, number
from eprof.words.numbers import quantity
from eprof.words.tuning import heat, label, lost_words, same, time_words, verdict

_KERNELS = 10
_NOTES = 6
# From less to more, as the page has them.
_STEPS = (230, 223, 222, 215, 208, 172, 130, 94, 52)


def show(document: Any, verbose: bool = False) -> None:
    """Print the summary on standard output; every kernel and note if `verbose`."""
    console = terminal()
    for part in _summary(document.plain(), verbose, console.width):
        console.print(part)


def text(document: Any, verbose: bool = False, width: int = 110) -> str:
    """The same summary as plain text of `width` columns."""
    buffer = io.StringIO()
    console = into(buffer, width)
    for part in _summary(document.plain(), verbose, console.width):
        console.print(part)
    return buffer.getvalue()


def _summary(document: Mapping[str, Any], verbose: bool, width: int) -> Iterable[RenderableType]:
    said = verdict(document)
    yield Text(printable(f"{document['title']} · {document['objective_words']}"), style="dim")
    yield Text(printable(said.sentence), style="bold")
    if said.consequence:
        yield Text(printable(said.consequence))
    yield Text()
    yield from _heat(document)
    if len(document["kernels"]) > 1:
        yield _kernels(document, None if verbose else _KERNELS, width)
    for sentence in (*lost_words(document), time_words(document)):
        if sentence:
            yield Text(printable(sentence))
    notes = document["notes"] if verbose else document["notes"][:_NOTES]
    for note in notes:
        yield Text(f"Note: {printable(note)}", style="dim")
    if len(document["notes"]) > len(notes):
        yield Text(f"{len(document['notes']) - len(notes)} more notes; -v prints them.", style="dim")


def _heat(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    """Energy relative to the best, core clock across, memory clock down, highest on top."""
    cells = heat(document)
    if not cells.cores:
        return
    table = Table(
        box=None,
        pad_edge=False,
        title_justify="left",
        title=printable(f"{cells.caption} Core MHz across, memory MHz down."),
    )
    table.add_column("", justify="right")
    for core in cells.cores:
        table.add_column(f"{core:g}", justify="right")
    for memory in cells.memories:
        found = [cells.cells.get((core, memory)) for core in cells.cores]
        words = [Text("") if one is None else _cell(one.text + one.sign, one.step) for one in found]
        table.add_row(f"{memory:g}", *words)
    yield table
    now = document["now"]
    yield Text(printable(cells.legend + (f", now at {label(now)}" if now else "")), style="dim")


def _cell(words: str, step: int | None) -> Text:
    if step is None:
        return Text(words, style="dim")
    ink = "color(255)" if step >= 6 else "color(16)"
    return Text(words, style=f"{ink} on color({_STEPS[step]})")


def _kernels(document: Mapping[str, Any], most: int | None, width: int) -> Table:
    rows = sorted(document["kernels"], key=lambda one: -((one["best"] or {}).get("energy_j") or 0))
    shown = rows if most is None else rows[:most]
    more = f", {len(shown)} of {len(rows)} (-v: all)" if len(shown) < len(rows) else ""
    measured = any(one["measured_best"] for one in rows)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title=f"Kernels{more}")
    table.add_column("kernel", no_wrap=True)
    heads = ("best", "energy", "time", "fastest", "saves", *(("measured", "lost %", "fastest %") if measured else ()))
    fill(table, heads, [(one["name"], _row(one, measured)) for one in shown], width)
    return table


def _row(one: Mapping[str, Any], measured: bool) -> list[str]:
    best, fastest = one["best"], one["fastest"]
    cells = [
        label(best),
        _quantity(best, "energy_j", "J"),
        _quantity(best, "time_s", "s"),
        "same" if same(best, fastest) else label(fastest),
        _saves(best, fastest),
    ]
    if measured:
        cells += [label(one["measured_best"]), number(one["lost_percent"]), number(one["oracle_lost_percent"])]
    return cells


def _quantity(one: Mapping[str, Any] | None, what: str, unit: str) -> str:
    value = None if one is None else one[what]
    return "-" if value is None else quantity(value, unit)


def _saves(best: Mapping[str, Any] | None, fastest: Mapping[str, Any] | None) -> str:
    """Energy of the best setting against that of the fastest."""
    if best is None or fastest is None or not best["energy_j"] or not fastest["energy_j"]:
        return "-"
    return f"{100 * (1 - best['energy_j'] / fastest['energy_j']):.1f} %"

"""The same answers in a terminal, by rich. Everything shown comes from the document, made printable first."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eprof.export import marked
from eprof.plain import printable
from eprof.report.headline import headline
from eprof.report.view import View
from eprof.vocabulary import COUNTS, GROUPS

_KERNELS = 10
_BAR = 64
_STYLES = {
    "constant": "bright_black",
    "tensor": "color(89)",
    "fp64": "color(130)",
    "fp32": "color(208)",
    "fp16": "color(173)",
    "int": "color(214)",
    "sfu": "color(223)",
    "other": "color(180)",
    "shared": "color(117)",
    "l1": "color(74)",
    "l2": "color(25)",
    "dram": "color(18)",
    "system": "color(60)",
    "requested": "color(109)",
}
_LEGEND = {
    "missing": "≥ at least: something could not be counted or priced",
    "estimated": "~ estimated",
    "assumed": "? rests on an assumption",
    "simulated": "s simulated",
}


def show(document: dict[str, Any], verbose: bool = False) -> None:
    """Print the summary of a profile on standard output; every kernel and note if `verbose`."""
    _print(_summary(document, verbose), Console(highlight=False))


def text(document: dict[str, Any], verbose: bool = False, width: int = 110) -> str:
    """The same summary as plain text of `width` columns."""
    buffer = io.StringIO()
    _print(_summary(document, verbose), Console(file=buffer, width=width, no_color=True, highlight=False))
    return buffer.getvalue()


def _print(parts: Iterable[RenderableType], console: Console) -> None:
    for part in parts:
        console.print(part)


def _summary(document: dict[str, Any], verbose: bool) -> Iterable[RenderableType]:
    head = headline(View(document))
    yield Text(_subject(document), style="dim")
    yield Text(printable(head.sentence), style="bold")
    if head.consequence:
        yield Text(printable(head.consequence))
    if document["costs"] is not None:
        yield from _split(document)
    yield _kernels(document, None if verbose else _KERNELS)
    yield _counts(document)
    yield from _footnotes(document, verbose)


def _subject(document: dict[str, Any]) -> str:
    devices = [f"{one['name'] or 'GPU not named'} (capability {one['capability']})" for one in document["devices"]]
    words = [document["title"], ", ".join(devices)]
    costs = document["costs"]
    if costs is not None:
        words.append(f"costs {costs['name']} at {setting(costs['setting'])}")
    return printable(" · ".join(words))


def setting(values: Mapping[str, float | None]) -> str:
    """A DVFS setting in words: "852/924 MHz", or "its one setting" where the table does not name clocks."""
    core, memory = values["core_mhz"], values["memory_mhz"]
    if core is None and memory is None:
        return "its one setting"
    return f"{_clock(core)}/{_clock(memory)} MHz"


def _clock(value: float | None) -> str:
    return "?" if value is None else f"{value:g}"


def groups(document: dict[str, Any]) -> dict[str, float]:
    """Joules by group (constant, fp64, ..., dram), those that are known and not zero, in stacking order."""
    sums = dict.fromkeys(GROUPS, 0.0)
    sums["constant"] = document["energy_j"]["constant"] or 0.0
    for name, count in document["counts"].items():
        sums[COUNTS[name].group] += count["energy_j"] or 0.0
    return {group: joules for group, joules in sums.items() if joules > 0}


def _split(document: dict[str, Any]) -> Iterable[RenderableType]:
    parts = groups(document)
    total = sum(parts.values())
    if total > 0:
        yield Padding(_bar(parts, total), (1, 0, 0, 0))
        yield _legend(parts, total)
    table = _table("part", "energy", "of what is known")
    for part in ("computation", "data", "constant", "total"):
        joules = document["energy_j"][part]
        share = f"{100 * joules / total:.1f} %" if joules is not None and total > 0 else ""
        table.add_row(part, marked(joules, "J", document["energy_marks"][part]), share)
    yield table


def _bar(parts: Mapping[str, float], total: float) -> Text:
    """A 100 % bar whose cells add up to its width exactly: rounding is done on the running sum."""
    bar, done, drawn = Text(), 0.0, 0
    for group, joules in parts.items():
        done += joules
        cells = round(_BAR * done / total) - drawn
        drawn += cells
        bar.append(("░" if group == "constant" else "█") * cells, style=_STYLES[group])
    return bar


def _legend(parts: Mapping[str, float], total: float) -> Text:
    line = Text()
    for group, joules in parts.items():
        line.append("■ ", style=_STYLES[group])
        line.append(f"{GROUPS[group]} {100 * joules / total:.0f} %   ")
    return line


def _kernels(document: dict[str, Any], limit: int | None) -> RenderableType:
    priced = document["costs"] is not None
    energy = ("energy", "computation", "data", "constant") if priced else ()
    table = _table("kernel", "launches", "time", *energy, "flop/B")
    several = len(document["devices"]) > 1
    for kernel in document["kernels"][:limit]:
        device = f" on {kernel['device']}" if several else ""
        marks = kernel["energy_marks"]
        joules = [
            marked(kernel["energy_j"][part], "J", marks[part]) for part in ("total", "computation", "data", "constant")
        ]
        intensity = kernel["intensity_flop_per_byte"]
        table.add_row(
            printable(kernel["name"] + device),
            f"{kernel['launches']:,}",
            marked(kernel["time_s"], "s", _time_marks(marks)),
            *(joules if priced else ()),
            "" if intensity is None else f"{intensity:.3g}",
        )
    rest = len(document["kernels"]) - len(document["kernels"][:limit])
    if rest:
        table.caption = f"and {rest:,} more kernels (-v shows them)"
    return table


def _time_marks(marks: Mapping[str, Sequence[str]]) -> list[str]:
    return [mark for mark in marks["constant"] if mark == "estimated"]


def _counts(document: dict[str, Any]) -> RenderableType:
    table = _table("counted", "number", "energy", "each")
    charges = (document["costs"] or {}).get("charges", {})
    for name, count in document["counts"].items():
        charge = charges.get(name)
        unit = "B" if count["unit"] == "byte" else ""
        each = "no price" if charge is None else f"{charge['pj']:.4g} pJ" if charge["pays"] else "pays nothing"
        energy = marked(count["energy_j"], "J", count["marks"]) if charge and charge["pays"] else ""
        number_marks = [mark for mark in count["marks"] if mark != "assumed"]
        table.add_row(COUNTS[name].label, marked(count["value"], unit, number_marks), energy, each if charges else "")
    return table


def _footnotes(document: dict[str, Any], verbose: bool) -> Iterable[RenderableType]:
    used = {mark for marks in document["energy_marks"].values() for mark in marks}
    used |= {mark for count in document["counts"].values() for mark in count["marks"]}
    legend = [words for mark, words in _LEGEND.items() if mark in used]
    if legend and document["costs"] is not None:
        yield Text(" · ".join(legend), style="dim")
    if document["time_from"]:
        yield Text(f"Time: {printable(document['time_from'])}", style="dim")
    shown = document["warnings"] if verbose else document["warnings"][:8]
    for warning in shown:
        yield Text.assemble(("warning: ", "yellow"), printable(warning))
    if len(shown) < len(document["warnings"]):
        yield Text(f"and {len(document['warnings']) - len(shown)} more warnings (-v shows them)", style="dim")


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), caption_justify="left")
    table.add_column(first, overflow="ellipsis", no_wrap=True, ratio=None, max_width=60)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table

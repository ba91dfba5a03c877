"""The same answers in a terminal, by rich. Everything shown comes from the document, made printable first."""

import io
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from eprof.base.marks import Mark, names
from eprof.base.text import printable
from eprof.base.vocabulary import COUNTS, GROUPS
from eprof.files.export import marked
from eprof.terminal.screen import into, terminal
from eprof.words.badges import Amount
from eprof.words.headline import headline
from eprof.words.lever import lever, share_of
from eprof.words.modelled import answer_words, clock_words
from eprof.words.names import cores, cut
from eprof.words.numbers import plain, quantity
from eprof.words.ranks import rank_words
from eprof.words.view import View, energy_of, time_of

_KERNELS = 10
_WARNINGS = 8
_NARROWEST = 14
_WIDE = 90
_WIDTHS = {"calls": 5, "time": 8, "energy": 11, "comp.": 6, "data": 6, "const.": 6, "number": 9, "each": 12}
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
    console = terminal()
    _print(_summary(document, verbose, console.width), console)


def text(document: dict[str, Any], verbose: bool = False, width: int = 110) -> str:
    """The same summary as plain text of `width` columns."""
    buffer = io.StringIO()
    _print(
        _summary(document, verbose, width),
        into(buffer, width),
    )
    return buffer.getvalue()


def _print(parts: Iterable[RenderableType], console: Console) -> None:
    for part in parts:
        console.print(part)


def _summary(document: dict[str, Any], verbose: bool, width: int) -> Iterable[RenderableType]:
    view = View(document)
    head = headline(view)
    yield Text(_subject(document), style="dim")
    yield Text(printable(head.sentence), style="bold")
    if head.consequence:
        yield Text(printable(head.consequence))
    if view.has_energy:
        yield from _split(view)
    yield from _groups(view, verbose)
    yield Text()
    yield _kernels(view, None if verbose else _KERNELS, width)
    yield from _modelled(view, verbose)
    counted = _counts(view, verbose)
    if counted.row_count:
        yield from (Text(), counted)
    yield from _footnotes(view, verbose)


def _subject(document: dict[str, Any]) -> str:
    devices = Counter(_device(one) for one in document["devices"])
    words = [document["title"], ", ".join(f"{n} × {one}" if n > 1 else one for one, n in devices.items())]
    costs = document["costs"]
    if costs is not None:
        words.append(f"costs {costs['name']} at {setting(costs['setting'])}")
    return printable(" · ".join(words))


def _device(device: Mapping[str, Any]) -> str:
    capability = f" (capability {device['capability']})" if device["capability"] else ""
    return f"{device['name'] or 'GPU not named'}{capability}"


def setting(values: Mapping[str, float | None]) -> str:
    """A DVFS setting in words: "852/924 MHz", or "its one setting" where the table does not name clocks."""
    core, memory = values["core_mhz"], values["memory_mhz"]
    if core is None or memory is None:
        return "its one setting"
    return f"{core:g}/{memory:g} MHz"


def _amount(amount: Amount, unit: str) -> str:
    return marked(amount.value, unit, names(amount.marks))


def _split(view: View) -> Iterable[RenderableType]:
    """The 100 % bar with its legend, and the three parts with their sum."""
    parts = {group: amount.value for group, amount in view.groups.items() if amount.value}
    whole = sum(parts.values())
    if whole > 0:
        yield Padding(_bar(parts, whole), (1, 0, 0, 0))
        yield _legend(parts, whole)
        yield Text()
    table = _table("part", "energy", "of what is known" if view.energy("total").lower else "share")
    for part in ("computation", "data", "constant", "total"):
        amount = view.energy(part)
        table.add_row(part, _amount(amount, "J"), _share(amount.value, whole))
    measured = view.document["energy_j"].get("measured")
    if measured is not None:
        table.add_row("measured", quantity(measured, "J"), "by the meter, per run")
    yield table


def _share(value: float | None, whole: float) -> str:
    return f"{100 * value / whole:.1f} %" if value is not None and whole > 0 else ""


def _glyph(group: str) -> str:
    """How a group is filled, so that the three families can be told apart without colours."""
    family = next((count.family for count in COUNTS.values() if count.group == group), group)
    return {"computation": "▓", "data": "█"}.get(family, "░")


def _bar(parts: Mapping[str, float], whole: float) -> Text:
    """A 100 % bar whose cells add up to its width exactly: rounding is done on the running sum."""
    bar, done, drawn = Text(), 0.0, 0
    for group, joules in parts.items():
        done += joules
        cells = round(_BAR * done / whole) - drawn
        drawn += cells
        bar.append(_glyph(group) * cells, style=_STYLES[group])
    return bar


def _legend(parts: Mapping[str, float], whole: float) -> Text:
    line = Text()
    for group, joules in parts.items():
        line.append(_glyph(group) * 2 + " ", style=_STYLES[group])
        percent = f"{100 * joules / whole:.0f}" if joules >= 0.005 * whole else "<1"
        line.append(f"{GROUPS[group]} {percent} %".replace(" ", "\u00a0") + "   ")
    return line


def _kernels(view: View, limit: int | None, width: int) -> RenderableType:
    """The kernels, largest first, each with how its known energy splits into the three parts."""
    split = ("energy", "comp.", "data", "const.") if view.has_energy else ()
    wide = width >= _WIDE
    table = _table("kernel", "calls", "time", *split, *(["flop/B"] if wide else []))
    room = max(_NARROWEST, min(60, width - (72 if split else 32)))
    shown = view.kernels[:limit]
    for kernel, (start, end) in zip(shown, cores([one["name"] for one in shown]), strict=True):
        device = f" on {kernel['device']}" if view.several_devices else ""
        intensity = kernel["intensity_flop_per_byte"]
        table.add_row(
            printable(cut(kernel["name"][start:end], room - len(device)) + device),
            f"{kernel['launches']:,}",
            _amount(time_of(kernel), "s"),
            *(_kernel_split(kernel) if split else ()),
            *(["" if intensity is None else printable(plain(intensity))] if wide else []),
        )
    rest = len(view.kernels) - len(view.kernels[:limit])
    notes = [f"and {rest:,} more kernels (-v shows them)"] if rest else []
    notes += [] if wide else [f"flop/B is shown from {_WIDE} columns on"]
    table.caption = "; ".join(notes) or None
    return table


def _kernel_split(kernel: Mapping[str, Any]) -> list[str]:
    total = energy_of(kernel, "total")
    parts = [energy_of(kernel, part).value for part in ("computation", "data", "constant")]
    return [_amount(total, "J"), *(_share(part, total.value or 0.0).replace(".0 %", " %") or "–" for part in parts)]


def _groups(view: View, verbose: bool) -> Iterable[RenderableType]:
    """Phases: each group with the same split as the whole; of many ranks the first, all if `verbose`."""
    groups = view.document.get("groups")
    if not groups:
        return
    split = ("energy", "comp.", "data", "const.") if view.has_energy else ()
    table = _table("group", "calls", "time", *split)
    ranks = view.document.get("ranks")
    shown = groups if verbose or not ranks else groups[:_KERNELS]
    for one in shown:
        table.add_row(
            printable(cut(one["name"], 30)),
            f"{one['launches']:,}",
            _amount(time_of(one), "s"),
            *(_kernel_split(one) if split else ()),
        )
    if len(shown) < len(groups):
        table.caption = f"and {len(groups) - len(shown):,} more groups (-v shows them)"
    yield from (Text(), table)
    if ranks:
        yield Text(printable(rank_words(ranks)))


def _modelled(view: View, verbose: bool) -> Iterable[RenderableType]:
    """What the model says of limits, clocks and changes: the answers asked for, the best one, all if `verbose`."""
    limits, clocks = view.document.get("limits"), view.document.get("clocks")
    if not view.has_energy or not (limits or clocks or view.document.get("what_if")):
        return
    yield Text()
    yield Text("Modelled, not measured:", style="dim")
    if limits and view.kernels and limits["kernels"][0]["speed_share"] is not None:
        yield Text(printable(f"- {_limit(view, limits['kernels'][0])}"))
    if clocks:
        yield Text(printable(f"- {clock_words(clocks)}"))
    answers = list(view.document.get("what_if") or [])
    best = min((one["change_j"] or 0.0 for one in answers), default=0.0)
    asked = [one for one in answers if verbose or one["asked"] or one["change_j"] == best]
    for one in asked:
        yield Text(printable(f"- {answer_words(one)}"))


def _limit(view: View, limit: Mapping[str, Any]) -> str:
    """How far the largest kernel is from its limits."""
    share = share_of(limit, "energy_share")
    arch = f" and {share} of the arch line's flop/J" if share is not None else ""
    name = cut(view.kernels[0]["name"][slice(*cores([view.kernels[0]["name"]])[0])], 30)
    return f"{name}: {share_of(limit, 'speed_share')} of the roofline's speed{arch}; {lever(limit)}."


def _counts(view: View, verbose: bool) -> Table:
    """What was counted, and what each costs; zeros and what could not be counted only if `verbose`."""
    energy = ("energy", "each") if view.costs else ()
    table = _table("count", "number", *energy)
    for name, word in view.words.items():
        if not word.value.value and not verbose:
            continue
        charge = view.charges.get(name)
        each = "no price" if charge is None else f"{charge['pj']:.4g} pJ" if charge["pays"] else "pays nothing"
        joules = _amount(word.energy, "J") if charge and charge["pays"] else ""
        number = _amount(word.value, "B" if word.unit == "byte" else "")
        table.add_row(word.label, number, *((joules, each) if energy else ()))
    return table


def _footnotes(view: View, verbose: bool) -> Iterable[RenderableType]:
    legend = [words for mark, words in _LEGEND.items() if Mark[mark.upper()] & view.marks]
    if legend and view.costs:
        yield Text(" · ".join(legend), style="dim")
    document = view.document
    if document["time_from"]:
        yield Text(f"Time: {printable(document['time_from'])}", style="dim")
    shown = document["warnings"] if verbose else document["warnings"][:_WARNINGS]
    for warning in shown:
        yield Text.assemble(("warning: ", "yellow"), printable(warning))
    if len(shown) < len(document["warnings"]):
        yield Text(f"and {len(document['warnings']) - len(shown)} more warnings (-v shows them)", style="dim")


def _table(first: str, *others: str) -> Table:
    """A table whose first column gives way when the terminal is narrow, never a number."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), caption_justify="left")
    table.add_column(first, overflow="ellipsis", no_wrap=True, min_width=_NARROWEST)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True, min_width=_WIDTHS.get(name, len(name)))
    return table

"""A difference on the terminal, by rich, and as plain text."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import printable
from eprof.files.export import marked
from eprof.terminal.report import setting
from eprof.terminal.screen import into, terminal
from eprof.words import diff as diff_words
from eprof.words.names import cores, cut, short
from eprof.words.numbers import percent, quantity, signed_percent

_KERNELS = 10
_WARNINGS = 8
_BAR = 24
_LESS, _MORE = "color(32)", "color(166)"
_WIDTHS = {"OLD": 11, "NEW": 11, "change": 9, "by": 12, "share": 7}
_HOW = {"similar name": "similar", "name without arguments": "bare name"}
_LEGEND = {
    "missing": "≥ at least, or: of what is known",
    "estimated": "~ estimated",
    "assumed": "? rests on an assumption",
    "simulated": "s simulated",
}
_Document = Mapping[str, Any]


def show(document: _Document, verbose: bool = False) -> None:
    """Print a difference on standard output; every kernel, part and note if `verbose`."""
    console = terminal()
    for part in _summary(document, verbose, console.width):
        console.print(part)


def text(document: _Document, verbose: bool = False, width: int = 110) -> str:
    """The same as plain text of `width` columns."""
    buffer = io.StringIO()
    console = into(buffer, width)
    for part in _summary(document, verbose, width):
        console.print(part)
    return buffer.getvalue()


def _summary(document: _Document, verbose: bool, width: int) -> Iterable[RenderableType]:
    said = diff_words.words(document)
    yield Text(_subject(document), style="dim")
    yield Text(printable(said.headline), style="bold")
    if said.lead:
        yield Text(printable(said.lead))
    if said.noise:
        yield Text(printable(said.noise))
    yield Text()
    yield _sides(document)
    if document["steps"] and not document["is_zero"]:
        yield Text()
        yield _steps(document)
        still = diff_words.unchanged(document)
        if still:
            yield Text(still, style="dim")
    yield Text()
    yield _kernels(document, None if verbose else _KERNELS, width)
    if verbose or not (document["change_j"] or document["is_zero"]):
        counted = _counts(document)
        if counted.row_count:
            yield from (Text(), counted)
    yield Text()
    if document["change_j"]:
        yield Text(printable(said.model), style="dim")
    yield from _footnotes(document, verbose)


def _subject(document: _Document) -> str:
    return printable(" → ".join(_named(document[side]) for side in ("old", "new")))


def _named(side: Mapping[str, Any]) -> str:
    devices = ", ".join(dict.fromkeys(one["name"] or "GPU not named" for one in side["devices"]))
    costs = side["costs"]
    priced = f", costs {costs['name']} at {setting(costs['setting'])}" if costs is not None else ""
    return f"{side['name']} ({devices}{priced})"


def _sides(document: _Document) -> Table:
    """OLD, NEW and the change: energy by family, time, power."""
    table = _table("", "OLD", "NEW", "change", "")
    old, new = document["old"], document["new"]
    if document["old"]["costs"] is not None or document["new"]["costs"] is not None:
        for part in ("computation", "data", "constant", "total"):
            cells = [marked(side["energy_j"][part], "J", side["energy_marks"][part]) for side in (old, new)]
            change = _part_change(document, part)
            whole = _compared_old(document, part)
            table.add_row(part, *cells, _signed(change, "J"), _growth(change, whole))
    change = document["change_time_s"]
    times = [marked(side["time_s"], "s", side["time_marks"]) for side in (old, new)]
    table.add_row("time", *times, _signed(change, "s"), _growth(change, old["time_s"]))
    measured = [side["energy_j"]["measured"] for side in (old, new)]
    if None not in measured:
        cells = [quantity(value, "J") for value in measured]
        change = measured[1] - measured[0]
        table.add_row("measured", *cells, _signed(change, "J"), _growth(change, measured[0]))
    return table


def _part_change(document: _Document, kind: str) -> float | None:
    if document["change_j"] is None:
        return None
    if kind == "total":
        return float(document["change_j"])
    return float(sum(part["change_j"] for part in document["parts"] if part["kind"] == kind))


def _compared_old(document: _Document, kind: str) -> float | None:
    """What the change is to be compared with: the compared energy of OLD, each word once."""
    if kind == "total":
        return document["old"]["compared_j"]  # type: ignore[no-any-return]
    seen: dict[tuple[str, Any], float] = {}
    for part in document["parts"]:
        if part["kind"] == kind:
            seen[part["what"], part["kernel"]] = part["old_j"]
    return sum(seen.values())


def _signed(value: float | None, unit: str) -> Text:
    if value is None:
        return Text("not known", style="dim")
    if value == 0:
        return Text("0")
    return Text(printable(("+" if value > 0 else "") + quantity(value, unit)), style=_MORE if value > 0 else _LESS)


def _growth(change: float | None, old: float | None) -> str:
    return printable(signed_percent(change / old)) if change is not None and old else ""


def _steps(document: _Document) -> Table:
    """The waterfall: what the change is made of, largest first; the bars go left for less, right for more."""
    table = _table("what changed", "by", "share", "less · more")
    scale = max(abs(step["change_j"]) for step in document["steps"]) or 1.0
    for step in diff_words.moving(document):
        share = step["change_j"] / document["change_j"] if document["change_j"] else None
        table.add_row(
            printable(diff_words.label(step)),
            Text.assemble(_mark_signs(step["marks"]), _signed(step["change_j"], "J")),
            "" if share is None else printable(percent(share)),
            _bar(step["change_j"] / scale),
        )
    table.add_row("change", _signed(document["change_j"], "J"), "100 %" if document["change_j"] else "", "")
    return table


def _mark_signs(marks: Iterable[str]) -> Text:
    signs = {"missing": "≥ ", "estimated": "~", "assumed": "?", "simulated": "s"}
    return Text("".join(signs[mark] for mark in marks), style="dim")


def _bar(share: float) -> Text:
    half = _BAR // 2
    cells = max(1, round(abs(share) * half)) if share else 0
    bar = Text()
    bar.append(" " * (half - cells) + "█" * cells if share < 0 else " " * half, style=_LESS)
    bar.append("│", style="dim")
    bar.append("█" * cells + " " * (half - cells) if share > 0 else " " * half, style=_MORE)
    return bar


def _kernels(document: _Document, limit: int | None, width: int) -> Table:
    """The kernels, largest change first, with how they were matched if not by their full name."""
    energy = document["change_j"] is not None
    unit, key = ("J", "energy_j") if energy else ("s", "time_s")
    table = _table("kernel", "OLD", "NEW", "change", "")
    room = max(14, min(60, width - 50))
    shown = document["kernels"][:limit]
    for kernel, (start, end) in zip(shown, cores([one["name"] for one in shown]), strict=True):
        cells = [_amount(kernel[side], key, unit) for side in ("old", "new")]
        change, old = _kernel_change(kernel, energy)
        name = cut(kernel["name"][start:end], room)
        growth = {"appeared": "new", "vanished": "gone"}.get(kernel["status"], _growth(change, old))
        table.add_row(printable(name), *cells, _signed(change, unit), growth)
        match = kernel["match"]
        if match is not None and match["how"] != "name":
            how = _HOW.get(match["how"], match["how"])
            old_name = short(kernel["old"]["name"], room - len(how) - 9)
            was = printable(f"  was {old_name} ({how})")
            table.add_row(Text(was, style="dim"), "", "", "", "")
    rest = len(document["kernels"]) - len(shown)
    if rest:
        table.caption = f"and {rest:,} more kernels (-v shows them)"
    return table


def _kernel_change(kernel: Mapping[str, Any], energy: bool) -> tuple[float | None, float | None]:
    """The change of a kernel and what it is measured against."""
    if energy:
        return kernel["change_j"], kernel["old"]["compared_j"] if kernel["old"] else None
    times = [kernel[side]["time_s"] if kernel[side] else 0.0 for side in ("old", "new")]
    return (None if None in times else times[1] - times[0]), times[0]


def _amount(side: Mapping[str, Any] | None, key: str, unit: str) -> str:
    if side is None:
        return "–"
    return marked(side[key], unit, side["marks"] if key == "energy_j" else [])


def _counts(document: _Document) -> Table:
    table = _table("count", "OLD", "NEW", "change", "")
    for name, cell in document["counts"].items():
        unit = "B" if cell["unit"] == "byte" else ""
        amounts = [marked(cell[side], unit, cell["marks"]) for side in ("old", "new")]
        label = diff_words.what({"what": name})
        table.add_row(label, *amounts, _signed(cell["change"], unit), _growth(cell["change"], cell["old"]))
    return table


def _footnotes(document: _Document, verbose: bool) -> Iterable[RenderableType]:
    used = {mark for side in ("old", "new") for mark in document[side]["marks"]} | set(document["marks"])
    if document["change_j"] is not None and used:
        yield Text(" · ".join(words for mark, words in _LEGEND.items() if mark in used), style="dim")
    for gate in document["gates"]:
        style = "red" if gate["failed"] or gate["failed"] is None else "green"
        yield Text(printable(diff_words.gate(gate)), style=style)
    shown = document["warnings"] if verbose else document["warnings"][:_WARNINGS]
    for warning in shown:
        yield Text.assemble(("note: ", "yellow"), printable(warning))
    if len(shown) < len(document["warnings"]):
        yield Text(f"and {len(document['warnings']) - len(shown)} more notes (-v shows them)", style="dim")


def _table(first: str, *others: str) -> Table:
    """A table whose first column gives way when the terminal is narrow, never a number."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False, padding=(0, 1), caption_justify="left")
    table.add_column(first, overflow="ellipsis", no_wrap=True, min_width=14)
    for name in others:
        width = _WIDTHS.get(name)
        table.add_column(name, justify="center" if "·" in name else "right", no_wrap=True, min_width=width)
    return table

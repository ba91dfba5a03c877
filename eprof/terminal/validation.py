"""A validation in a terminal: errors by protocol and baseline, the worst kernels, and what to make of it."""

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import convert
from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import printable
from eprof.terminal.screen import into, terminal
from eprof.validation.schema import Gate
from eprof.words.names import cut
from eprof.words.validation import protocol, verdict

_KERNELS = 8
_NOTES = 6
_NARROWEST, _WIDEST = 14, 48


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
    yield Text(printable(document["title"]), style="dim")
    yield Text(printable(said.sentence), style="bold")
    yield Text(printable(said.consequence))
    yield Text()
    yield _protocols(document)
    if document["baselines"]:
        yield _baselines(document)
    if document.get("by_benchmark"):
        yield _kernels(document, None if verbose else _KERNELS, width)
    if document.get("runs"):
        yield _runs(document)
    for one in document.get("candidates", ()):
        yield Text(printable(_candidate(one)))
    yield from _gate(document)
    notes = document["notes"] if verbose else document["notes"][:_NOTES]
    for note in notes:
        yield Text(f"Note: {printable(note)}", style="dim")
    if len(document["notes"]) > len(notes):
        yield Text(f"{len(document['notes']) - len(notes)} more notes; -v prints them.", style="dim")


def number(value: float | None, digits: int = 1) -> str:
    """A number with a fixed number of decimals; a dash for what is not known."""
    return "-" if value is None else f"{value:.{digits}f}"


def _protocols(document: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title="Error in % of the measured power")
    table.add_column("tested by")
    for head in ("rows", "mean", "sd", "min", "max", "bias", "RMSE W"):
        table.add_column(head, justify="right")
    for name, one in document["protocols"].items():
        keys = ("mean_percent", "sd_percent", "min_percent", "max_percent", "bias_percent", "rmse_w")
        table.add_row(protocol(name), str(one["n"]), *(number(one[key]) for key in keys))
    return table


def _baselines(document: Mapping[str, Any]) -> Table:
    names = list(next(iter(document["baselines"].values())))
    table = Table(
        box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title="Against simpler models, mean error in %"
    )
    table.add_column("model")
    for name in names:
        table.add_column(protocol(name), justify="right")
    table.add_row("eprof", *(number(document["protocols"][name]["mean_percent"]) for name in names), style="bold")
    for model, by_protocol in document["baselines"].items():
        table.add_row(model, *(number(by_protocol[name]["mean_percent"]) for name in names))
    return table


def _kernels(document: Mapping[str, Any], most: int | None, width: int) -> Table:
    rows = document["by_benchmark"]
    shown = rows if most is None else rows[:most]
    rest = len(rows) - len(shown)
    more = f", worst {len(shown)} of {len(rows)} (-v: all)" if rest else ""
    table = Table(
        box=SIMPLE_HEAD,
        pad_edge=False,
        title_justify="left",
        title=f"Kernels, error in %, {protocol(document['main_protocol'])}{more}",
    )
    table.add_column("kernel", no_wrap=True)
    fill(table, ("mean", "bias", "max", "RMSE W", "meas. W", "pred. W"), [_kernel(one) for one in shown], width)
    return table


def _kernel(one: Mapping[str, Any]) -> tuple[str, list[str]]:
    errors = [number(one[key]) for key in ("mean_percent", "bias_percent", "max_percent", "rmse_w")]
    return one["benchmark"], [*errors, number(one["reference"]["measured_w"]), number(one["reference"]["predicted_w"])]


def fill(table: Table, heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]], width: int) -> None:
    """Columns of numbers as wide as they must be; the name, in the column that is there, takes what is left."""
    left = width
    for at, head in enumerate(heads):
        wide = max([len(head), *(len(cells[at]) for _, cells in rows)])
        table.add_column(head, justify="right", no_wrap=True, min_width=wide)
        left -= wide + 3
    for name, cells in rows:
        table.add_row(cut(printable(name), max(_NARROWEST, min(_WIDEST, left - 2))), *cells)


def _runs(document: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title_justify="left", title="Whole programs")
    table.add_column("run")
    for head in ("measured J", "predicted J", "error %"):
        table.add_column(head, justify="right")
    for one in document["runs"]:
        bound = "≥ " if "missing" in one["marks"] else ""
        told = "-" if one["predicted_j"] is None else f"{bound}{one['predicted_j']:.4g}"
        table.add_row(printable(one["path"]), f"{one['measured_j']:.4g}", told, number(one["error_percent"]))
    return table


def _candidate(one: Mapping[str, Any]) -> str:
    near = one["neighbours"][0] if one["neighbours"] else None
    if near is None:
        return f"{one['kernel']}: nothing to compare with."
    return (
        f"{one['kernel']}: most like {near['benchmark']}, with {100 * (1 - near['distance']):.0f} % of the power "
        f"going to the same things; that one is off by {number(near['mean_percent'])} % on average."
    )


def _gate(document: Mapping[str, Any]) -> Iterable[RenderableType]:
    gate = document.get("gate")
    if gate is not None:
        yield Text(gate_words(convert(gate, Gate)), style="green" if gate["passed"] else "red")


def gate_words(gate: Gate) -> str:
    """Whether the gate was passed, and by how much."""
    return (
        f"Gate {'passed' if gate.passed else 'failed'}: {protocol(gate.protocol)} has a mean error of "
        f"{number(gate.value_percent)} %, allowed are {gate.max_error_percent:g} %."
    )

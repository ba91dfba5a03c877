"""A fit in a terminal: what it costs, how well that is known, and how far off kernels are that it has not seen."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from eprof.base.text import printable
from eprof.terminal.screen import into, terminal

_PROTOCOLS = {
    "fit": "to the rows it was fitted to",
    "leave_one_setting_out": "at settings that were left out",
    "leave_one_benchmark_out": "of kernels that were left out",
}
_TRUST = {"told": "", "loosely": "loosely told", "not told": "the data cannot tell", None: ""}
_NOTES = 6


def show(document: Mapping[str, Any], verbose: bool = False) -> None:
    """Print the summary on standard output; every note if `verbose`."""
    console = terminal()
    for part in _summary(document, verbose):
        console.print(part)


def text(document: Mapping[str, Any], verbose: bool = False, width: int = 110) -> str:
    """The same summary as plain text of `width` columns."""
    buffer = io.StringIO()
    console = into(buffer, width)
    for part in _summary(document, verbose):
        console.print(part)
    return buffer.getvalue()


def _summary(document: Mapping[str, Any], verbose: bool) -> Iterable[RenderableType]:
    yield Text(
        printable(
            f"{document['rows']} rows, {document['benchmarks']} kernels, {document['settings']} settings "
            f"(columns read as {document['mapping']}); {document['form']}"
        ),
        style="dim",
    )
    yield Text(_headline(document), style="bold")
    yield Text()
    yield _errors(document)
    if document["prices"]:
        yield _prices(document)
    yield Text(_constant(document))
    for sentence in _together(document):
        yield Text(printable(sentence))
    notes = document["notes"] if verbose else document["notes"][:_NOTES]
    for note in notes:
        yield Text(f"Note: {printable(note)}", style="dim")
    if len(document["notes"]) > len(notes):
        yield Text(f"{len(document['notes']) - len(notes)} more notes; -v prints them.", style="dim")


def _headline(document: Mapping[str, Any]) -> str:
    """The error that matters to somebody with a kernel of their own."""
    errors = document["mean_absolute_error_percent"]
    out = errors.get("leave_one_benchmark_out")
    if out is not None:
        factor = document["left_out_within_factor"]
        return (
            f"Power of a kernel that this fit has not seen is {out:.1f} % off on average; nine of ten are within a "
            f"factor of {factor:.2f}."
        )
    return (
        f"Power is {errors['fit']:.1f} % off on average, on the rows that it was fitted to; unseen kernels not tried."
    )


def _errors(document: Mapping[str, Any]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("mean error of power")
    table.add_column("%", justify="right")
    for name, value in document["mean_absolute_error_percent"].items():
        table.add_row(_PROTOCOLS.get(name) or printable(name), f"{value:.1f}")
    return table


def _prices(document: Mapping[str, Any]) -> Table:
    place = _place(document)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    unit = f"pJ{place}"
    if not document["relative_voltages"]:
        unit = "pJ/V^2"
    if document["kind"] != "counts":
        unit = f"pJ a cycle of full use,{place}"
    table.add_column(unit)
    table.add_column("", justify="right")
    table.add_column("90 % of resampled fits", justify="right")
    table.add_column("")
    for price in document["prices"]:
        between = "" if price["low"] is None else f"{price['low']:.2g} to {price['high']:.2g}"
        table.add_row(printable(price["name"]), _value(price), between, _TRUST[price["told"]])
    return table


def _place(document: Mapping[str, Any]) -> str:
    """At which clocks; "" for a processor."""
    reference = document["reference"]
    return f" at {reference['core_mhz']:g}/{reference['memory_mhz']:g} MHz" if reference else ""


def _value(price: Mapping[str, Any]) -> str:
    """A price with as many digits as the data tell."""
    if price["told"] == "not told":
        return "-"
    return f"{price['pj']:.3g}" if price["told"] == "told" else f"{price['pj']:.2g}"


def _constant(document: Mapping[str, Any]) -> str:
    constant = document["constant"]
    between = "" if constant["low_w"] is None else f" ({constant['low_w']:.3g} to {constant['high_w']:.3g} W)"
    return (
        f"Constant power {constant['power_w']:.3g} W{between}{_place(document)}. "
        "How it splits into parts of core, memory and rest cannot be told; a nearly idle kernel would pin it."
    )


def _together(document: Mapping[str, Any]) -> Iterable[str]:
    for group in document["collinear"]:
        yield f"Hard to tell apart, for they come and go together: {', '.join(group)}."

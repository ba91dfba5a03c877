"""A fit in words: what it costs, how well that is known, and how far off kernels are that it has not seen."""

from collections.abc import Iterator, Mapping
from typing import Any

from eprof.base.clocks import label
from eprof.base.text import phrase
from eprof.show.words.blocks import Block, Headline, Notes, Row, Sentence, Table, Tone, numbers, texts

Document = Mapping[str, Any]  # `eprof.fit/1`
_PROTOCOLS = {
    "fit": "to the rows it was fitted to",
    "leave_one_setting_out": "at settings that were left out",
    "leave_one_benchmark_out": "of kernels that were left out",
}
_TRUST = {"told": "", "loosely": "loosely known", "not told": "the data cannot tell", None: ""}


def blocks(document: Document) -> Iterator[Block]:
    """What a terminal shows of a fit."""
    size = f"{document['rows']} rows, {document['benchmarks']} kernels, {document['settings']} settings"
    yield Sentence(f"{size} (columns read as {document['mapping']}); {document['form']}", Tone.QUIET)
    yield Headline(_headline(document))
    errors = document["mean_absolute_error_percent"]
    rows = [Row([_PROTOCOLS.get(name, name), f"{value:.1f}"]) for name, value in errors.items()]
    yield Table([*texts("mean error of power"), *numbers("%")], rows)
    if document["prices"]:
        yield _prices(document)
    yield Sentence(_constant(document))
    for group in document["collinear"]:
        yield Sentence(f"Hard to tell apart, for they come and go together: {', '.join(group)}.")
    yield Notes(document["notes"])


def _headline(document: Document) -> str:
    """The headline of a fit: the error that matters to somebody with a kernel of their own."""
    errors = document["mean_absolute_error_percent"]
    unseen = errors.get("leave_one_benchmark_out")
    if unseen is None:
        return f"Power is {errors['fit']:.1f} % off on average, on the rows it was fitted to; unseen kernels not tried."
    factor = document["left_out_within_factor"]
    return (
        f"Power of a kernel that this fit has not seen is {unseen:.1f} % off on average; nine of ten are within a "
        f"factor of {factor:.2f}."
    )


def _prices(document: Document) -> Table:
    unit = f"pJ{_place(document)}"
    if not document["relative_voltages"]:
        unit = "pJ/V^2"
    if document["kind"] != "counts":
        unit = f"pJ a cycle of full use,{_place(document)}"
    rows = [
        Row([price["name"], _value(price), _span(price["low"], price["high"], ".2g"), _TRUST[price["told"]]])
        for price in document["prices"]
    ]
    return Table([*texts(unit), *numbers("", "90 % of resampled fits"), *texts("")], rows)


def _place(document: Document) -> str:
    """At which clocks the fit's prices are; "" for a processor."""
    reference = document["reference"]
    return f" at {label(reference['core_mhz'], reference['memory_mhz'])} MHz" if reference else ""


def _value(price: Mapping[str, Any]) -> str:
    """A fitted price with as many digits as the data tell."""
    match price["told"]:
        case "not told":
            return "-"
        case "told":
            return f"{price['pj']:.3g}"
    return f"{price['pj']:.2g}"


def _span(low: float | None, high: float | None, digits: str) -> str:
    return phrase(f"{{:{digits}}} to {{:{digits}}}", low, high)


def _constant(document: Document) -> str:
    constant = document["constant"]
    known = phrase(" ({} W)", _span(constant["low_w"], constant["high_w"], ".3g"))
    return (
        f"Constant power {constant['power_w']:.3g} W{known}{_place(document)}. The data cannot tell how it splits into "
        "parts of core, memory and rest; a nearly idle kernel would."
    )

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
    errors = document["mean_absolute_error_percent"]
    # The error that matters to somebody with a kernel of their own.
    answer = f"Power is {errors['fit']:.1f} % off on average, on the rows it was fitted to; unseen kernels not tried."
    if (unseen := errors.get("leave_one_benchmark_out")) is not None:
        answer = (
            f"Power of a kernel that this fit has not seen is {unseen:.1f} % off on average; nine of ten are within a "
            f"factor of {document['left_out_within_factor']:.2f}."
        )
    yield Headline(answer)
    rows = [Row([_PROTOCOLS.get(name, name), f"{value:.1f}"]) for name, value in errors.items()]
    yield Table([*texts("mean error of power"), *numbers("%")], rows)
    if document["prices"]:
        unit = f"pJ{_place(document)}"
        if not document["relative_voltages"]:
            unit = "pJ/V^2"
        if document["kind"] != "counts":
            unit = f"pJ a cycle of full use,{_place(document)}"
        rows = []
        for price in document["prices"]:
            # As many digits as the data tell.
            value = {"told": "{:.3g}", "not told": "-"}.get(price["told"], "{:.2g}").format(price["pj"])
            rows.append(Row([price["name"], value, _span(price["low"], price["high"], ".2g"), _TRUST[price["told"]]]))
        yield Table([*texts(unit), *numbers("", "90 % of resampled fits"), *texts("")], rows)
    constant = document["constant"]
    known = phrase(" ({} W)", _span(constant["low_w"], constant["high_w"], ".3g"))
    yield Sentence(
        f"Constant power {constant['power_w']:.3g} W{known}{_place(document)}. The data cannot tell how it splits into "
        "parts of core, memory and rest; a nearly idle kernel would."
    )
    for group in document["collinear"]:
        yield Sentence(f"Hard to tell apart, for they come and go together: {', '.join(group)}.")
    yield Notes(document["notes"])


def _place(document: Document) -> str:
    """At which clocks the fit's prices are; "" for a processor."""
    reference = document["reference"]
    return f" at {label(reference['core_mhz'], reference['memory_mhz'])} MHz" if reference else ""


def _span(low: float | None, high: float | None, digits: str) -> str:
    return phrase(f"{{:{digits}}} to {{:{digits}}}", low, high)

"""The document `eprof.fit/1`, as plain data (docs/fit.md); and a fit in words: prices, and how well they are known."""

from collections.abc import Iterator, Mapping
from typing import Any

from eprof.base.arrays import finite
from eprof.base.optional import mapped
from eprof.base.text import phrase, when
from eprof.base.units import clock_label
from eprof.lab.fitting.quality import FIRST, Quality
from eprof.lab.fitting.solve import CONSTANTS, Fit
from eprof.lab.measurements.values import DOMAINS, Measurements
from eprof.show.blocks import Block, Headline, Notes, Row, Sentence, Table, numbers, quiet, texts

Document = Mapping[str, Any]  # `eprof.fit/1`
_PROTOCOLS = {
    "fit": "to the rows it was fitted to",
    "leave_one_setting_out": "at settings that were left out",
    "leave_one_benchmark_out": "of kernels that were left out",
}
_TRUST = {"told": "", "loosely": "loosely known", "not told": "the data cannot tell", None: ""}


SCHEMA = "eprof.fit/1"
_UNITS = {
    "core_w_per_v": "W/V",
    "memory_w_per_v": "W/V",
    "w": "W",
    "core_w_per_mhz_v2": "W/(MHz V^2)",
    "memory_w_per_mhz_v2": "W/(MHz V^2)",
}


def document(measurements: Measurements, fitted: Fit, quality: Quality) -> dict[str, Any]:
    """The document `eprof.fit/1` of a fit and how well it is known; what is not known is None."""
    watts, low, high = quality.constant_w
    prices = [
        {
            "name": term,
            "domain": fitted.domains[term],
            "pj": float(fitted.prices_pj[term]),
            **_price_interval(quality, term),
            "told": str(quality.status[term]) if len(quality.replicas) else None,
        }
        for term in fitted.prices_pj.index
        if not measurements.own
    ]
    # Clocks that a processor chose by itself are not known.
    reference = None
    if measurements.is_clocked:
        reference = dict(zip(("core_mhz", "memory_mhz"), fitted.reference, strict=True))
    urgent = [note for note in quality.notes if note.startswith(FIRST)]
    return {
        "schema": SCHEMA,
        "sources": list(measurements.sources),
        "mapping": measurements.mapping,
        "kind": measurements.kind,
        "form": fitted.form.words,
        "rows": len(measurements),
        "benchmarks": int(measurements.rows["benchmark"].nunique()),
        "settings": len(measurements.settings),
        "reference": reference,
        "mean_absolute_error_percent": {name: finite(value) for name, value in quality.errors.items()},
        "left_out_within_factor": finite(quality.within),
        "plain_error_percent": {
            name: {model: finite(value) for model, value in errors.items()} for name, errors in quality.plain.items()
        },
        "prices": prices,
        "constant": {
            "power_w": watts,
            "low_w": finite(low),
            "high_w": finite(high),
            "terms": [
                {"name": name, "value": fitted.constants[name], "unit": _UNITS[name], **_price_interval(quality, name)}
                for name in CONSTANTS
            ],
        },
        "voltages": {
            domain: [{"mhz": float(mhz), "volts": float(volts)} for mhz, volts in fitted.volts[domain].items()]  # type: ignore[arg-type]
            for domain in DOMAINS
        },
        "relative_voltages": fitted.form.voltages != "given",
        "condition": finite(quality.condition),
        "collinear": [list(group) for group in quality.collinear],
        "ranges": {
            str(name): {"low": float(quality.ranges["low"][name]), "high": float(quality.ranges["high"][name])}
            for name in quality.ranges.index
        },
        "replicas": len(quality.replicas),
        "notes": [*urgent, *measurements.notes, *(note for note in quality.notes if note not in urgent)],
    }


def _price_interval(quality: Quality, name: str) -> dict[str, float | None]:
    """The interval of the price or constant `name` over resampled fits, as {"low", "high"}; None: not resampled."""
    if name not in quality.replicas:
        return {"low": None, "high": None}
    return {end: finite(quality.intervals[end][name]) for end in ("low", "high")}


def blocks(document: Document) -> Iterator[Block]:
    """Yield what a terminal shows of a document `eprof.fit/1`: errors, prices, constant power, notes."""
    size = f"{document['rows']} rows, {document['benchmarks']} kernels, {document['settings']} settings"
    yield quiet(f"{size} (columns read as {document['mapping']}); {document['form']}")
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
            digits = {"told": 3, "not told": 0}.get(price["told"], 2)
            value = when(digits, _rounded(price["pj"], digits)) or "-"
            rows.append(Row([price["name"], value, _span(price["low"], price["high"], 2), _TRUST[price["told"]]]))
        yield Table([*texts(unit), *numbers("", "90 % of resampled fits"), *texts("")], rows)
    constant = document["constant"]
    known = phrase(" ({} W)", _span(constant["low_w"], constant["high_w"], 3))
    yield Sentence(
        f"Constant power {constant['power_w']:.3g} W{known}{_place(document)}. The data cannot tell how it splits into "
        "parts of core, memory and rest; a nearly idle kernel would."
    )
    for group in document["collinear"]:
        yield Sentence(f"Hard to tell apart, for they come and go together: {', '.join(group)}.")
    yield Notes(document["notes"])


def _place(document: Document) -> str:
    """The clocks of the fit's prices, " at 1000/3505 MHz"; "" where they are not known, as of a CPU."""
    reference = document["reference"]
    return phrase(" at {} MHz", mapped(lambda pair: clock_label(pair["core_mhz"], pair["memory_mhz"]), reference))


def _span(low: float | None, high: float | None, digits: int) -> str:
    return phrase("{} to {}", *(mapped(_rounded, end, digits) for end in (low, high)))


def _rounded(number: float, digits: int) -> str:
    """A number with so many significant digits, and without an exponent: "150"."""
    return f"{float(f'{number:.{digits}g}'):.15g}"

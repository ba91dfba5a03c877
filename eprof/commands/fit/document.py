"""A fit as plain data that JSON can hold: `eprof.fit/1` (docs/fit.md)."""

from typing import Any

from eprof.base.arrays import finite
from eprof.lab.fitting.quality import FIRST, Quality
from eprof.lab.fitting.search import CONSTANTS
from eprof.lab.fitting.solve import Fit
from eprof.lab.measurements.values import DOMAINS, Measurements

SCHEMA = "eprof.fit/1"
_UNITS = {
    "core_w_per_v": "W/V",
    "memory_w_per_v": "W/V",
    "w": "W",
    "core_w_per_mhz_v2": "W/(MHz V^2)",
    "memory_w_per_mhz_v2": "W/(MHz V^2)",
}


def document(measurements: Measurements, fitted: Fit, quality: Quality) -> dict[str, Any]:
    """The document of a fit: everything that is known of it; what is not known is None."""
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
    if name not in quality.replicas:
        return {"low": None, "high": None}
    return {end: finite(quality.intervals[end][name]) for end in ("low", "high")}

"""The report page's sections on trust and method: meter against prediction, the fit of prices, provenance."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup
from msgspec import structs

from eprof.base.optional import gathered, only
from eprof.base.text import phrase, when
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.commands.report.page.script import Card
from eprof.commands.report.trust import lacks_some, metered_error
from eprof.commands.report.view import View
from eprof.profile import schema
from eprof.show import as_html, cost_words
from eprof.show.amounts import LETTERS, MEANINGS, MISSING, Amount, bits, letters, quantity_of, share_of
from eprof.show.cost_words import clocks_and_volts
from eprof.show.intervals import known
from eprof.show.numbers import NARROW, percent, plain, quantity, quantity_or, signed_percent, span, utc

Row = tuple[str, Markup, Markup]
_PROTOCOLS = {
    "fit": "on what it was fitted to",
    "leave_one_setting_out": "on settings left out",
    "leave_one_benchmark_out": "on programs left out",
}


def section(view: View) -> Card | None:
    """The report page's section on how far to trust it, or None where the energy is not known, or 0."""
    total = view.energy("total")
    if not total.value:
        return None
    measured = view.document.energy_j.measured or None
    energies = [view.energy_of_count(count) for count in view.document.counts.values()]
    energies.append(view.energy(CONSTANT))
    rows = []
    for mark, sign in LETTERS.items():
        marked = [energy.or_zero for energy in energies if energy.marks & mark]
        if mark == MISSING or not marked:
            continue
        share = sum(marked) / total.value
        bar = as_html.bar(as_html.laid([("plain", share)], 1.0), f"{percent(share)} of the known energy")
        rows.append((sign, MEANINGS[mark], quantity(sum(marked), "J"), percent(share), bar))
    # What a fitted table says of its fit (rows, errors, ranges); empty for others, and for several tables.
    costs = only(view.document.prices)
    fit = (costs and costs.fit) or {}
    sentence = "Not measured: there is no meter reading to compare the prediction with."
    if view.to_meter is not None:
        sentence = metered_error(view, view.to_meter)
    elif measured:
        error, lower = signed_percent(total.or_zero / measured - 1), when(total.lower, ", a lower bound,")
        against = f"against the meter's {quantity(measured, 'J')} (predicted less measured)"
        sentence = f"The prediction{lower} is {error} {against}."
    elif errors := fit.get("error_percent"):
        worst = max(errors, key=errors.get)
        sentence += f" Its prices were fitted: {_error(worst, errors[worst], 'mean error ')}."
    content = {
        "sentence": sentence,
        "runs": list(_bars(view, total, measured)),
        "rests": rows,
        "fit": list(_fit_words(view, fit)),
    }
    return Card("trust", "Trust", "How far to trust it", "trust.html", content)


def _error(protocol: str, value: float, noun: str = "") -> str:
    return f"{value:g}{NARROW}% {noun}{_PROTOCOLS.get(protocol, protocol)}"


def _bars(view: View, total: Amount, measured: float | None) -> Iterator[Row]:
    """Yield rows (label, bar, joules) for the meter, the prediction and its interval, as far as each is known."""
    interval, (low, high) = view.document.interval_j, view.interval("total") or (None, None)
    if not measured and low is None:
        return
    scale = max(total.or_zero, measured or 0.0, high or 0.0)
    if measured:
        yield _trust_bar("Measured", "constant", Amount(measured), scale)
    is_partial = high is not None and lacks_some(view)
    if high is not None:
        total = Amount(total.value, total.marks & ~MISSING)
    yield _trust_bar(when(is_partial, "Counted") or "Predicted", "plain", total, scale)
    if interval and low is not None and high is not None:
        segment = as_html.Segment("plain", 100 * low / scale, 100 * (high - low) / scale)
        bar = as_html.bar([segment], f"from {quantity(low, 'J')} to {quantity(high, 'J')}")
        whose = only({costs.interval_is for costs in view.document.prices}) or "The table's intervals"
        if interval.share < 1:
            whose = f"{percent(interval.share)} of {interval.replicas} refits"
        if is_partial:
            whose = f"With what was not counted{when(interval.limit_w, ', to the power limit')}"
        yield whose, bar, Markup(span(low, high, "J"))


def _trust_bar(label: str, group: str, amount: Amount, scale: float) -> Row:
    joules = amount.or_zero
    bar = as_html.bar(as_html.laid([(group, joules)], scale), f"{label}: {quantity(joules, 'J')}")
    return label, bar, quantity_of(amount, "J")


def _fit_words(view: View, fit: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(label, value) rows on the fit of the cost table; none for a table that is not fitted."""
    if "rows" in fit:
        size = f"{fit['rows']} rows, {fit.get('benchmarks', '?')} programs, {fit.get('settings', '?')} settings"
        yield "Fitted to", f"{', '.join(map(str, fit.get('data', [])))}: {size}"
    errors = fit.get("error_percent") or {}
    if errors:
        yield "Mean error", ", ".join(_error(name, value) for name, value in errors.items())
    # The key is the file's: whether the fit could tell a price apart from the others.
    loose = [name for name, verdict in (fit.get("told") or {}).items() if verdict != "told"]
    if loose:
        yield "Not well known", f"{', '.join(loose)}: trust their sum more than each"
    # Trust ends where this run leaves what the fit has seen, in clocks or mean power.
    setting = (view.costs and view.costs.setting) or {}
    here = {**setting, "power_w": view.document.power_w}
    ranges = fit.get("range") or {}
    for key in ("core_mhz", "memory_mhz", "power_w"):
        value, (low, high) = here.get(key), ranges.get(key, (None, None))
        if value is not None and low is not None and not low * 0.999 <= value <= high * 1.001:
            yield "Outside", f"{key} is {value:.4g} here, the fit saw {low:g} to {high:g}"
    for note in fit.get("notes") or []:
        yield "Note", str(note)


_BOOKS = {
    "served": "served: a byte is charged once, at the level that served it",
    "accessed": "accessed: a byte is charged at every level that it passes",
}
Term = tuple[str, str, Markup, str, Markup, Markup]


def of_method(view: View) -> Card:
    """The report page's section on method and provenance; there always is one."""
    document, total = view.document, view.energy("total")
    if known(view.interval("total")):
        total = Amount(total.value, total.marks & ~MISSING)
    paid = [view.words[name] for name, charge in view.charges.items() if charge.pays and name in view.words]
    unknown = [word for word in view.words.values() if word.value.value is None]
    reasons = ["; ".join(dict.fromkeys(way.note for way in word.how if way.note)) or "not counted" for word in unknown]
    # The sum by hand: group, name, count, price, energy and share of every term that is not 0.
    terms: list[Term] = []
    for name, word in view.words.items():
        charge = view.charges.get(name)
        if charge is not None and charge.pays and word.energy.value:
            count, price = quantity_of(word.value, COUNTS[name].symbol), cost_words.price(charge, plain)
            terms.append((word.count.group, word.count.label, count, price, *_energy(word.energy, total)))
    if view.costs is not None:
        power = quantity_or("by GPU", document.constant_w, "W")
        constant = _energy(view.energy(CONSTANT), total)
        terms.append((CONSTANT, "Constant power", quantity_of(view.time, "s"), power, *constant))
    content = {
        "terms": terms,
        "unknown_terms": [word.count.label for word in paid if word.energy.value is None],
        "total": when(total.value is not None, quantity_of(total, "J")),
        "prices": [_prices(view, costs) for costs in document.prices],
        "counts": {name: word for name, word in view.words.items() if word.value.value is not None},
        "uncounted": gathered(zip(reasons, (word.count.label for word in unknown), strict=True)),
        "kernels": len(view.kernels),
        "definition": document.definition,
        "devices": [_device(view, device) for device in document.devices],
        "inputs": document.inputs,
        "warnings": document.warnings,
        "time_from": document.time_from,
        "command": shlex.join(document.command_line),
        "eprof": document.eprof,
        "schema": document.schema,
        "created": utc(document.created_utc),
    }
    return Card("method", "Method", "Method and provenance", "method.html", content)


def _energy(amount: Amount, total: Amount) -> tuple[Markup, Markup]:
    return quantity_of(amount, "J"), share_of(amount, total)


def _prices(view: View, costs: schema.TableInForce) -> Mapping[str, Any]:
    """What the section on method shows of one cost table; counts of one price for one reason stand together."""
    # Counts of one price for one reason stand together.
    labels = gathered(
        ((cost_words.price(charge, plain), charge.formula, charge.why, bits(charge.marks)), view.nouns.label(name))
        for name, charge in costs.charges.items()
    )
    charges = [
        {"labels": ", ".join(names), "price": price + letters(marks), "formula": formula, "why": why}
        for (price, formula, why, marks), names in labels.items()
    ]
    return structs.asdict(costs) | {
        "name": costs.name + cost_words.of_gpu(costs),
        "basis": costs.basis or "not stated",
        "setting": clocks_and_volts(costs.setting),
        "books": _BOOKS.get(costs.books, costs.books),
        "constant": quantity(costs.constant_power_w, "W"),
        "marks": bits(costs.marks),
        # A note that is among the warnings stands there.
        "notes": [note for note in costs.notes if note not in view.document.warnings],
        "charges": charges,
    }


def _device(view: View, device: schema.Device) -> str:
    """A device in words, for the section on method: its name, number and capability, and what told that."""
    nouns = view.nouns
    name = device.name or f"The {nouns.processor} is not named in the logs"
    if device.index is not None:
        name += f" ({device.index})"
    if not device.capability:
        return f"{name}, {nouns.capability} not known"
    return f"{name}, {nouns.capability} {device.capability}{phrase(' (from: {})', device.capability_from)}"

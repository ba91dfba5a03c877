"""Method and provenance: what it takes to repeat the page by hand, and everything that should be known about it."""

import shlex
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.base.text import phrase, when
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.profile import schema
from eprof.show.report.section import Section
from eprof.show.report.view import View
from eprof.show.words.badges import Amount, bits, letters, quantity_of, share_of
from eprof.show.words.costs import clocks_and_volts
from eprof.show.words.numbers import NARROW, plain, quantity, quantity_or, utc, whole

_BOOKS = {
    "served": "served: a byte is charged once, at the level that served it",
    "accessed": "accessed: a byte is charged at every level that it passes",
}
Term = tuple[str, str, Markup, str, Markup, Markup]


def section(view: View) -> Section:
    """The section on method and provenance; it is always there."""
    document, total = view.document, view.energy("total")
    content = {
        "terms": _terms(view, total),
        "total": None if total.value is None else quantity_of(total, "J"),
        "costs": view.costs and _costs(view, view.costs),
        "counts": [_count(view, name) for name in view.words],
        "definition": document.definition,
        "devices": [_device(view, device) for device in document.devices],
        "inputs": [_input(log) for log in document.inputs],
        "warnings": document.warnings,
        "time_from": document.time_from,
        "command": shlex.join(document.command_line),
        "eprof": document.eprof,
        "schema": document.schema,
        "created": utc(document.created_utc),
    }
    return Section("method", "Method", "Method and provenance", "method.html", content)


def _terms(view: View, total: Amount) -> list[Term]:
    """The method by hand: group, name, count, price, energy and share of every term of the sum that is not 0."""
    if view.costs is None:
        return []
    terms = []
    for name, word in view.words.items():
        charge = view.charges.get(name)
        if charge is None or not charge.pays or word.energy.value == 0:
            continue
        count = quantity_of(word.value, COUNTS[name].symbol)
        terms.append((word.count.group, word.count.label, count, _price(charge), *_energy(word.energy, total)))
    power = quantity(view.costs.constant_power_w, "W")
    time, constant = quantity_of(view.time, "s"), _energy(view.energy(CONSTANT), total)
    return [*terms, (CONSTANT, "Constant power", time, power, *constant)]


def _energy(amount: Amount, total: Amount) -> tuple[Markup, Markup]:
    return quantity_of(amount, "J"), share_of(amount, total)


def _price(charge: schema.Charge) -> str:
    return f"{plain(charge.pj)}{NARROW}pJ" if charge.pays else "pays nothing"


def _costs(view: View, costs: schema.Costs) -> Mapping[str, Any]:
    return {
        "name": costs.name,
        "device": costs.device,
        "source": costs.source,
        "basis": costs.basis or "not stated",
        "setting": clocks_and_volts(costs.setting),
        "setting_from": costs.setting_from,
        "books": _BOOKS.get(costs.books, costs.books),
        "constant": quantity(costs.constant_power_w, "W"),
        "constant_why": costs.constant_why,
        "marks": bits(costs.marks),
        # A note that is among the warnings stands there.
        "notes": [note for note in costs.notes if note not in view.document.warnings],
        "charges": _charges(view, costs),
    }


def _charges(view: View, costs: schema.Costs) -> list[Mapping[str, Any]]:
    """The method of pricing: what each count pays, those of one price for one reason together."""
    labels: dict[tuple[Any, ...], list[str]] = {}
    for name, charge in costs.charges.items():
        key = (_price(charge), charge.formula, charge.why, bits(charge.marks))
        labels.setdefault(key, []).append(view.nouns.label(name))
    return [
        {"labels": ", ".join(names), "price": price + letters(marks), "formula": formula, "why": why}
        for (price, formula, why, marks), names in labels.items()
    ]


def _count(view: View, name: str) -> Mapping[str, Any]:
    word = view.words[name]
    return {
        "name": name,
        "label": word.count.label,
        "value": quantity_of(word.value, word.count.symbol),
        "missing": word.value.value is None,
        "how": [_derivation(view, derivation) for derivation in word.how],
    }


def _derivation(view: View, derivation: schema.Derivation) -> Mapping[str, Any]:
    """A count's formula with what it rests on; for how many kernels, if not for all."""
    kernels = derivation.kernels
    return {
        "formula": derivation.formula,
        "note": derivation.note,
        "marks": bits(derivation.marks),
        "kernels": when(kernels != len(view.kernels), f"{whole(kernels)} {view.nouns.of(kernels)}"),
    }


def _device(view: View, device: schema.Device) -> str:
    nouns = view.nouns
    name = device.name or f"The {nouns.processor} is not named in the logs"
    if device.index is not None:
        name += f" ({device.index})"
    if not device.capability:
        return f"{name}, {nouns.capability} not known"
    return f"{name}, {nouns.capability} {device.capability}{phrase(' (from: {})', device.capability_from)}"


def _input(log: schema.Input) -> Mapping[str, Any]:
    return {
        "path": log.path,
        "format": log.format,
        "lines": whole(log.lines),
        "skipped": whole(log.skipped_lines),
        "size": quantity_or("", log.size_bytes, "B"),
        "sha256": log.sha256 or "not known",
        "command": log.command,
        "notes": log.notes,
    }

"""Method and provenance: what it takes to repeat the page by hand, and everything that should be known about it."""

import shlex
from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.base.vocabulary import COUNTS
from eprof.page.section import Section
from eprof.words.badges import Amount, letters, written
from eprof.words.numbers import NARROW, percent, plain, quantity, whole
from eprof.words.view import View, marks_of, number, ratio


def section(view: View) -> Section:
    """The section; it is always there."""
    document = view.document
    content = {
        "terms": _terms(view),
        "total": _total(view),
        "costs": _costs(view),
        "counts": [_count(view, name) for name in view.words],
        "definition": document.get("definition") or {},
        "devices": [_device(device) for device in document.get("devices") or []],
        "inputs": [_input(entry) for entry in document.get("inputs") or []],
        "warnings": list(document.get("warnings") or []),
        "time_from": document.get("time_from"),
        "command": shlex.join(map(str, document.get("command_line") or [])),
        "eprof": document.get("eprof"),
        "schema": document.get("schema"),
        "created": utc(document.get("created_utc")),
    }
    return Section("method", "Method", "Method and provenance", "method.html", content)


def utc(stamp: Any) -> str:
    """A time stamp as people write it: 2026-11-21 14:02:11 UTC."""
    text = str(stamp or "")
    return text.replace("T", " ").replace("Z", " UTC") if text else "time not known"


def _price(picojoules: Any) -> str:
    value = number(picojoules)
    return "not known" if value is None else f"{plain(value)}{NARROW}pJ"


def _terms(view: View) -> list[tuple[str, str, Markup, str, Markup, Markup]]:
    """Group, name, count, price, energy and share of every term of the sum that is not 0."""
    total = view.energy("total")
    found = []
    for name, word in view.words.items():
        charge = view.charges.get(name)
        if not (charge and charge.get("pays")) or word.energy.value == 0:
            continue
        unit = "B" if word.unit == "byte" else ""
        count = written(None if word.value.value is None else quantity(word.value.value, unit), word.value.marks)
        found.append(
            (word.group, word.label, count, _price(charge.get("pj")), _joules(word.energy), _share(word.energy, total))
        )
    if view.costs:
        found.append(_constant_term(view, total))
    return found


def _constant_term(view: View, total: Amount) -> tuple[str, str, Markup, str, Markup, Markup]:
    time, constant = view.time, view.energy("constant")
    power = number((view.costs or {}).get("constant_power_w"))
    return (
        "constant",
        "Constant power",
        written(None if time.value is None else quantity(time.value, "s"), time.marks),
        "not known" if power is None else quantity(power, "W"),
        _joules(constant),
        _share(constant, total),
    )


def _joules(amount: Amount) -> Markup:
    return written(None if amount.value is None else quantity(amount.value, "J"), amount.marks)


def _share(amount: Amount, total: Amount) -> Markup:
    share = ratio(amount, total)
    return written(None if share.value is None else percent(share.value), share.marks, bound=False)


def _total(view: View) -> Markup | None:
    total = view.energy("total")
    return _joules(total) if total.value is not None else None


def _costs(view: View) -> dict[str, Any] | None:
    if view.costs is None:
        return None
    costs = view.costs
    power = number(costs.get("constant_power_w"))
    return {
        "name": costs.get("name"),
        "device": costs.get("device"),
        "source": costs.get("source"),
        "setting": setting(costs),
        "setting_from": costs.get("setting_from"),
        "books": _BOOKS.get(str(costs.get("books")), costs.get("books")),
        "constant": "not known" if power is None else quantity(power, "W"),
        "constant_why": costs.get("constant_why"),
        "marks": marks_of(costs),
        # A note that is among the warnings stands there.
        "notes": [note for note in costs.get("notes") or [] if note not in (view.document.get("warnings") or [])],
        "charges": _charges(view),
    }


_BOOKS = {
    "served": "served: a byte is charged once, at the level that served it",
    "accessed": "accessed: a byte is charged at every level that it passes",
}


def setting(costs: Mapping[str, Any]) -> str:
    """The clocks and voltages of a cost table: "core 852 MHz at 1.03 V, memory 924 MHz at 1.01 V".

    Voltages that a fit estimated are known only relative to those of its reference setting.
    """
    found = []
    given = costs.get("setting") or {}
    for part in ("core", "memory"):
        clock, volts, share = (number(given.get(f"{part}_{end}")) for end in ("mhz", "v", "v_rel"))
        if clock is not None:
            at = f" at {volts:g}{NARROW}V" if volts is not None else ""
            at = f" at {share:.3g} of its reference voltage" if share is not None else at
            found.append(f"{part} {clock:g}{NARROW}MHz{at}")
    return ", ".join(found)


def _charges(view: View) -> list[dict[str, Any]]:
    """What each word pays, those of one price for one reason together."""
    found: dict[tuple[Any, ...], list[str]] = {}
    for name, charge in view.charges.items():
        count = COUNTS.get(name)
        marks = marks_of(charge)
        pays = bool(charge.get("pays"))
        key = (_price(charge.get("pj")) if pays else "pays nothing", charge.get("formula"), charge.get("why"), marks)
        found.setdefault(key, []).append(count.label if count else name)
    return [
        {
            "labels": ", ".join(labels),
            "price": Markup("{}{}").format(price, letters(marks)),
            "formula": formula,
            "why": why,
        }
        for (price, formula, why, marks), labels in found.items()
    ]


def _count(view: View, name: str) -> dict[str, Any]:
    word = view.words[name]
    unit = "B" if word.unit == "byte" else ""
    value = word.value.value
    return {
        "name": name,
        "label": word.label,
        "value": written(None if value is None else quantity(value, unit), word.value.marks),
        "missing": value is None,
        "how": [_way(way, len(view.kernels)) for way in word.how],
    }


def _way(way: Mapping[str, Any], all_kernels: int) -> dict[str, Any]:
    """A formula with what it rests on; for how many kernels, if not for all."""
    kernels = number(way.get("kernels"))
    marks: int = marks_of(way)
    return {
        "formula": way.get("formula"),
        "note": way.get("note"),
        "marks": marks,
        "kernels": ""
        if kernels is None or kernels == all_kernels
        else f"{whole(kernels)} {'kernel' if kernels == 1 else 'kernels'}",
    }


def _device(device: Mapping[str, Any]) -> str:
    name = device.get("name") or "The GPU is not named in the logs"
    index = f" ({device['index']})" if device.get("index") is not None else ""
    capability = device.get("capability")
    known = f", compute capability {capability}" if capability else ", compute capability not known"
    source = f" (from: {device['capability_from']})" if capability and device.get("capability_from") else ""
    return f"{name}{index}{known}{source}"


def _input(entry: Mapping[str, Any]) -> dict[str, Any]:
    size = number(entry.get("size_bytes"))
    return {
        "path": entry.get("path"),
        "format": entry.get("format"),
        "lines": whole(number(entry.get("lines")) or 0),
        "skipped": whole(number(entry.get("skipped_lines")) or 0),
        "size": quantity(size, "B") if size is not None else "",
        "sha256": entry.get("sha256") or "not known",
        "command": entry.get("command"),
        "notes": list(entry.get("notes") or []),
    }

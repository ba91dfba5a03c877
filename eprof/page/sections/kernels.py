"""Which kernels: stacked bars, the largest first; template instances of one name together when there are many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from eprof.base.vocabulary import GROUPS
from eprof.page import svg
from eprof.page.section import Section
from eprof.words import names
from eprof.words.badges import MISSING, Amount, written
from eprof.words.numbers import percent, quantity, whole
from eprof.words.view import View, energy_of, ratio, total

SHOWN = 20
GROUP_ABOVE = 50
MEMBERS = 3
NAME_LENGTH = 34
_UNITS = {"total": "J", "time": "s", "instructions": ""}
_HEADINGS = {
    "total": "Which kernels take it",
    "time": "Which kernels take the time",
    "instructions": "Which kernels execute most",
}
_WHAT = {"total": "energy", "time": "time", "instructions": "the number of instructions"}


@dataclass(frozen=True)
class Row:
    """One bar: a kernel, or several of one base name. `at` is the kernel's place in the document."""

    name: str
    full: str
    at: int | None
    bar: Markup
    amount: Markup
    share: Markup
    members: Sequence["Row"] = field(default_factory=tuple)
    more: str = ""
    filter: str = ""


@dataclass(frozen=True)
class Bunch:
    """Kernels drawn as one bar."""

    base: str
    places: list[int]
    amount: Amount


def section(view: View) -> Section | None:
    """The section, or None if there is nothing to rank kernels by."""
    whole_amount = view.ranked(view.document)
    if not view.kernels or not whole_amount.value:
        return None
    bunches = _bunches(view)
    shown, rest = bunches[:SHOWN], bunches[SHOWN:]
    scale = max(bunch.amount.value or 0.0 for bunch in shown) or 1.0
    content = {
        "sentence": _sentence(view, bunches),
        "legend": _legend(view),
        "rows": [_row(view, bunch, scale) for bunch in shown],
        "rest": _rest(view, rest),
        "open": any(_lost(view, bunch.amount) for bunch in shown),
    }
    return Section("kernels", "Kernels", _HEADINGS[view.measure], "kernels.html", content)


def _bunches(view: View) -> list[Bunch]:
    """One bunch a kernel, or one a base name where there are more than 50 kernels; largest first."""
    places: dict[object, list[int]] = {}
    many = len(view.kernels) > GROUP_ABOVE
    for at in view.order:
        places.setdefault(names.base(view.kernels[at]["name"]) if many else at, []).append(at)
    bunches = [
        Bunch(str(key), members, total(view.ranked(view.kernels[at]) for at in members))
        for key, members in places.items()
    ]
    return sorted(bunches, key=lambda bunch: -(bunch.amount.value or 0.0))


def _sentence(view: View, bunches: list[Bunch]) -> Markup:
    """The answer: how few kernels take most of it."""
    all_of_it = view.ranked(view.document)
    if len(view.kernels) == 1:
        return Markup("There is one kernel. Bar length is {}.").format(_WHAT[view.measure])
    running, needed = 0.0, 0
    for bunch in bunches:
        running += bunch.amount.value or 0.0
        needed += 1
        if running >= 0.8 * (all_of_it.value or 0.0):
            break
    share = written(percent(running / (all_of_it.value or 1.0)), all_of_it.marks, bound=False)
    many = len(bunches) != len(view.kernels)
    thing = "names" if many else "kernels"
    who = (
        f"{whole(needed)} of {whole(len(bunches))} {thing} take"
        if needed > 1
        else f"One of {whole(len(bunches))} {thing} takes"
    )
    known = " of what is known" if all_of_it.lower else ""
    grouped = " Template instances of one name stand together; open a name to see them." if many else ""
    chosen = f"Bar length is {_WHAT[view.measure]}. Choose a kernel to see it below.{grouped}"
    return Markup("{} {}{}. {}").format(who, share, known, chosen)


def _legend(view: View) -> list[tuple[str, str]]:
    if view.measure != "total":
        return []
    return [(group, GROUPS[group]) for group, amount in view.groups.items() if amount.value]


def _lost(view: View, amount: Amount) -> bool:
    return bool(amount.marks & MISSING)


def _row(view: View, bunch: Bunch, scale: float) -> Row:
    if len(bunch.places) == 1:
        return _single(view, bunch.places[0], scale)
    members = tuple(_single(view, at, scale) for at in bunch.places[:MEMBERS])
    left = len(bunch.places) - len(members)
    label = f"{names.cut(bunch.base, NAME_LENGTH - 6)} ×{whole(len(bunch.places))}"
    amount, share = _numbers(view, bunch.amount)
    parts = _added(view, bunch.places)
    return Row(
        label,
        bunch.base,
        None,
        _bar(view, parts, bunch.amount, scale, bunch.base),
        amount,
        share,
        members,
        f"{whole(left)} more in the table" if left else "Show in the table",
        bunch.base,
    )


def _single(view: View, at: int, scale: float) -> Row:
    kernel = view.kernels[at]
    amount = view.ranked(kernel)
    name = kernel["name"]
    start, end = names.core(name)
    bar = _bar(view, _colours(view, kernel, amount), amount, scale, names.cut(name[start:end], 80))
    label, full = names.cut(name[start:end], NAME_LENGTH), name
    if view.several_devices:
        device = str(kernel.get("device") or "unnamed GPU")
        label = f"{names.cut(name[start:end], NAME_LENGTH - 16)} · {names.cut(device, 14)}"
        full = f"{name} on {device}"
    return Row(label, full, at, bar, *_numbers(view, amount))


def _numbers(view: View, amount: Amount) -> tuple[Markup, Markup]:
    share = ratio(amount, view.ranked(view.document))
    unit = _UNITS[view.measure]
    return (
        written(None if amount.value is None else quantity(amount.value, unit), amount.marks),
        written(None if share.value is None else percent(share.value), share.marks, bound=False),
    )


def _colours(view: View, kernel: Mapping[str, Any], amount: Amount) -> dict[str, float]:
    if view.measure != "total":
        return {"plain": amount.value or 0.0}
    return {group: part.value or 0.0 for group, part in view.groups_of(kernel).items()}


def _added(view: View, places: list[int]) -> dict[str, float]:
    """The colours of a bunch. Columns, because there may be thousands of kernels in it."""
    kernels = [view.kernels[at] for at in places]
    if view.measure != "total":
        return {"plain": sum(view.ranked(kernel).value or 0.0 for kernel in kernels)}
    sums: dict[str, float] = dict.fromkeys(GROUPS, 0.0)
    sums["constant"] = sum(energy_of(kernel, "constant").value or 0.0 for kernel in kernels)
    for name, word in view.words.items():
        sums[word.group] += float(np.nansum(view.column(name).joules[places]))
    return sums


def _bar(view: View, parts: dict[str, float], amount: Amount, scale: float, name: str) -> Markup:
    unit = _UNITS[view.measure]
    segments = svg.laid(parts.items(), scale)
    spoken = [f"{GROUPS[group]} {quantity(value, 'J')}" for group, value in parts.items() if value and group in GROUPS]
    value = "not known" if amount.value is None else quantity(amount.value, unit)
    at_least = "at least " if amount.lower else ""
    label = f"{name}: {at_least}{value}" + (f" ({', '.join(spoken)})" if spoken else "")
    return svg.bar(segments, label, open_end=_lost(view, amount))


def _rest(view: View, rest: list[Bunch]) -> tuple[str, Markup, Markup] | None:
    """Everything that is not drawn, as a text row: drawn to scale, it would flatten all others."""
    if not rest:
        return None
    count = sum(len(bunch.places) for bunch in rest)
    amount, share = _numbers(view, total(bunch.amount for bunch in rest))
    return f"{whole(count)} other {'kernel' if count == 1 else 'kernels'}, not drawn", amount, share

"""Where the energy goes: one bar of everything, and below it the part above constant power enlarged."""

from dataclasses import dataclass

from markupsafe import Markup

from eprof.base.vocabulary import COUNTS, DATA, GROUPS
from eprof.page import svg
from eprof.page.section import Section
from eprof.words.badges import AT_LEAST, MISSING, Amount, written
from eprof.words.headline import at_least
from eprof.words.numbers import percent, quantity
from eprof.words.view import View, ratio

_SHORT = {"sfu": "SFU", "other": "Other", "shared": "Shared", "system": "Host", "requested": "Requested"}


@dataclass(frozen=True)
class Part:
    """A line of the key below the bars."""

    group: str
    label: str
    energy: Markup
    share: Markup


def section(view: View) -> Section | None:
    """The section, or None if no energy above 0 is known."""
    if not view.has_energy or not view.energy("total").value:
        return None
    known = {group: amount for group, amount in view.groups.items() if amount.value}
    content = {
        "sentence": _sentence(view),
        "all": _all(view, known) if "constant" in known else None,
        "above": _above(view, known) if view.above.value else None,
        "parts": _parts(view),
        "unknown": _unknown(view),
    }
    return Section("where", "Where it goes", "Where the energy goes", "where.html", content)


def _sentence(view: View) -> Markup:
    """What each part takes: "Computation takes 955 mJ, data movement 1.16 J, constant power 10.3 J."."""
    pieces = []
    for part, name in (("computation", "Computation takes"), ("data", "data movement"), ("constant", "constant power")):
        amount = view.energy(part)
        unknown = Markup("{} is not known").format(name.removesuffix(" takes"))
        pieces.append(unknown if amount.value is None else Markup("{} {}").format(name, _joules(amount)))
    return Markup("{}, {}, {}.").format(*pieces)


def _segments(parts: dict[str, Amount], whole: Amount) -> list[svg.Segment]:
    """Segments with labels: name and share; constant power says its joules too."""
    laid = svg.laid(((group, amount.value or 0.0) for group, amount in parts.items()), whole.value or 1.0)
    return [
        svg.Segment(
            one.group,
            one.start,
            one.width,
            _SHORT.get(one.group, GROUPS[one.group]),
            _value(one, parts[one.group]),
            parts[one.group].marks | whole.marks,
        )
        for one in laid
    ]


def _value(segment: svg.Segment, amount: Amount) -> str:
    share = percent(segment.width / 100)
    least = AT_LEAST if amount.lower else ""
    return f"{share} · {least}{quantity(amount.value or 0, 'J')}" if segment.group == "constant" else share


def _all(view: View, known: dict[str, Amount]) -> dict[str, Markup | str]:
    total = view.energy("total")
    segments = _segments(known, total)
    # Only constant power is named here: the rest is named in the enlarged bar, where there is room.
    bare = [one if one.group == "constant" else svg.Segment(one.group, one.start, one.width) for one in segments]
    spoken = ", ".join(f"{GROUPS[one.group]} {percent(one.width / 100)}" for one in segments)
    return {
        "caption": Markup("All {}").format(written(quantity(total.value or 0, "J"), total.marks)),
        "bar": svg.labelled(bare, f"{at_least(total, 'J')}: {spoken}"),
    }


def _above(view: View, known: dict[str, Amount]) -> dict[str, object]:
    parts = {group: amount for group, amount in known.items() if group != "constant"}
    whole = view.above.value or 1.0
    segments = _segments(parts, view.above)
    spoken = ", ".join(f"{GROUPS[one.group]} {percent(one.width / 100)}" for one in segments)
    constant = (view.energy("constant").value or 0.0) / (view.energy("total").value or 1.0)
    boundary = 100 - sum(one.width for one in segments if _is_data(one.group))
    enlarged = ", enlarged" if constant > 0 else ""
    return {
        "caption": Markup("The {} above constant power{}").format(
            written(quantity(whole, "J"), view.above.marks), enlarged
        ),
        "wedge": svg.wedge(100 * constant) if constant > 0 else None,
        "bar": svg.labelled(segments, f"{at_least(view.above, 'J')} above constant power: {spoken}"),
        "braces": svg.braces(boundary),
        "computation": _brace(view, "computation", "Computation"),
        "data": _brace(view, DATA, "Data movement"),
    }


def _brace(view: View, part: str, name: str) -> Markup | None:
    amount = view.energy(part)
    if amount.value is None:
        return Markup("{} is not known").format(name)
    return Markup("{} {} · {}").format(name, _share(amount, view.above), _joules(amount))


def _is_data(group: str) -> bool:
    return any(count.group == group and count.family == DATA for count in COUNTS.values())


def _parts(view: View) -> list[Part]:
    total = view.energy("total")
    return [Part(group, GROUPS[group], _joules(amount), _share(amount, total)) for group, amount in view.groups.items()]


def _joules(amount: Amount) -> Markup:
    return written(None if amount.value is None else quantity(amount.value, "J"), amount.marks)


def _share(amount: Amount, whole: Amount) -> Markup:
    share = ratio(amount, whole)
    return written(None if share.value is None else percent(share.value), share.marks, bound=False)


def _unknown(view: View) -> list[str]:
    """What is not in the picture, by reason: "not counted: Tensor, DRAM write"."""
    reasons: dict[str, list[str]] = {}
    constant = view.energy("constant")
    if constant.value is None or constant.lower:
        reasons["no time"] = ["constant power" if constant.value is None else "constant power of some kernels"]
    for word in view.words.values():
        if word.energy.value is None and word.energy.marks & MISSING:
            reasons.setdefault("not counted" if word.value.value is None else "no price", []).append(word.label)
        elif word.energy.lower:
            reasons.setdefault("not known for every kernel", []).append(word.label)
    return [f"{', '.join(labels)} ({reason})" for reason, labels in reasons.items()]

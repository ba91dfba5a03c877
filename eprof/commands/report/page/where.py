"""The report page's sections on where the energy goes: a bar, one above constant power; phases, operators, time."""

from collections import Counter

from markupsafe import Markup, escape
from msgspec.structs import replace

from eprof.base.text import capital, listed, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, GROUPS, Count
from eprof.commands.report.headline import NAMED, PARTS, at_least, constant_range, name_of
from eprof.commands.report.page.script import Card
from eprof.commands.report.view import FAMILY_OF, View, energy_of
from eprof.commands.report.words import (
    component_table,
    component_words,
    group_table,
    operator_table,
    operator_words,
    rank_words,
)
from eprof.show import as_html
from eprof.show.amounts import AT_LEAST, MISSING, Amount, quantity_of, share_of
from eprof.show.intervals import in_brackets
from eprof.show.numbers import percent, quantity, whole

_SHORT = {
    "idle": "Idle",
    "sfu": "SFU",
    "other": "Other",
    "shared": "Shared",
    "system": "Host",
    "requested": "Requested",
}
_IDLE = "idle"
_AT_REST = {CONSTANT, _IDLE}


def section(view: View) -> Card | None:
    """The report page's section on where the energy goes, or None if no energy above 0 is known."""
    total = view.energy("total")
    if not total.value:
        return None
    known = {group: amount for group, amount in view.groups.items() if amount.value}
    if view.document.idle_j:
        # With the rest, so that the bar is all that the heading tells.
        idle = Amount(view.document.idle_j, view.energy(CONSTANT).marks)
        known = {CONSTANT: known.get(CONSTANT, Amount(0.0)), _IDLE: idle} | known
        total = Amount(total.or_zero + view.document.idle_j, total.marks)
    # Whether constant power is all that is known of a total that has other parts too.
    is_alone = (view.energy("total").lower or view.is_partial) and set(known) <= _AT_REST
    everything, above = None, None
    if CONSTANT in known:
        # Constant power alone is named here; the enlarged bar names the rest.
        segments = _segments(view, known, total)
        bare = [replace(segment, label=when(segment.group in _AT_REST, segment.label)) for segment in segments]
        spoken = _spoken(view, segments)
        if is_alone:
            bare = [replace(segment, value=quantity(known[segment.group].or_zero, "J")) for segment in bare]
            spoken = f"{GROUPS[CONSTANT]}, and parts that are not known"
        is_open = total.lower or view.is_partial
        everything = {
            "caption": Markup("All {}{}").format(quantity_of(total, "J"), when(view.is_partial, " counted")),
            "bar": as_html.labelled(bare, f"{at_least(total, 'J')}: {spoken}", open_end=is_open),
        }
    if view.above.value:
        above = _above(view, total, known)
    counted = total
    if view.is_above:
        counted = view.above
    if is_alone:
        counted = Amount(None, counted.marks)  # 100 % of what is known would be no share of anything
    pieces = []
    parts = {COMPUTATION: _computation(view), DATA: "data movement", CONSTANT: "constant power"}
    if view.is_above:
        del parts[CONSTANT]
    for part, name in parts.items():
        amount = view.energy(part)
        if amount.value is None:
            pieces.append(Markup("{} is not known").format(name))
        else:
            verb = when(part == COMPUTATION, " take" + when(not view.caches_are_in_cycles, "s"))
            interval = in_brackets(view.interval(part), "J")
            pieces.append(Markup("{}{} {}{}").format(name, verb, quantity_of(amount, "J"), interval))
    if constant := constant_range(view):
        pieces.append(escape(constant))
    rows = []
    for group, amount in known.items():
        # With its interval where the prices do not tell how large it is.
        interval = when(group != _IDLE and not view.is_certain(group), in_brackets(view.interval(group), "J"))
        label = _label(view, group) + interval
        rows.append((group, label, quantity_of(amount, "J"), share_of(amount, counted)))
    # What each part in the headline stands for that is of several groups.
    causes = view.causes_of(view.document)
    joined = [
        (capital(name_of(view, part)), listed([view.in_prose(group) for group in part.groups]))
        for part in (causes.parts[:PARTS] if causes else ())
        if len(part.groups) > NAMED
    ]
    content = {
        "sentence": Markup("{}.").format(Markup(", ").join(pieces)),
        "all": everything,
        "above": above,
        "parts": rows,
        "joined": joined,
        "unknown": _unknown(view),
    }
    return Card("where", "Where it goes", "Where the energy goes", "where.html", content)


def _label(view: View, group: str) -> str:
    return when(group == _IDLE, f"Idle: no {view.nouns.kernel} runs") or view.group_label(group)


def _above(view: View, total: Amount, known: dict[str, Amount]) -> dict[str, str]:
    """The bar of the energy above constant power, as wide as the bar of all, with caption, wedge and braces."""
    above = view.above
    segments = _segments(view, {group: amount for group, amount in known.items() if group not in _AT_REST}, above)
    constant = sum(known[group].or_zero for group in _AT_REST & known.keys()) / (total.value or 1.0)
    boundary = 100 - sum(segment.width for segment in segments if FAMILY_OF[segment.group] == DATA)
    enlarged = when(constant > 0, ", enlarged")
    return {
        "caption": Markup("The {} above constant power{}").format(quantity_of(above, "J"), enlarged),
        "wedge": when(constant > 0, as_html.wedge(100 * constant)),
        "bar": as_html.labelled(
            segments, f"{at_least(above, 'J')} above constant power: {_spoken(view, segments)}", open_end=above.lower
        ),
        "braces": as_html.braces(boundary),
        "computation": _brace(view, COMPUTATION, _computation(view)),
        "data": _brace(view, DATA, "Data movement"),
    }


def _segments(view: View, parts: dict[str, Amount], whole: Amount) -> list[as_html.Segment]:
    """The segments of a bar of energy by group: each as wide as its share of `whole`, with name, share, some joules."""
    segments = []
    for bare in as_html.laid(((group, amount.or_zero) for group, amount in parts.items()), whole.value or 1.0):
        group, amount = bare.group, parts[bare.group]
        label = _SHORT.get(group) or _label(view, group)
        if group != _IDLE and view.group_label(group) != view.nouns.group(group):
            label = view.group_label(group)
        value = percent(bare.width / 100)
        if group in _AT_REST:
            value += f" · {when(amount.lower, AT_LEAST)}{quantity(amount.or_zero, 'J')}"
        segments.append(replace(bare, label=label, value=value, marks=amount.marks | whole.marks))
    return segments


def _spoken(view: View, segments: list[as_html.Segment]) -> str:
    return ", ".join(f"{_label(view, segment.group)} {percent(segment.width / 100)}" for segment in segments)


def _brace(view: View, part: str, name: str) -> Markup:
    amount = view.energy(part)
    if amount.value is None:
        return Markup("{} is not known").format(name)
    return Markup("{} {} · {}").format(name, share_of(amount, view.above), quantity_of(amount, "J"))


def _unknown(view: View) -> list[str]:
    """The parts of a report's energy that are missing, by reason: "Tensor, DRAM write (not counted)".

    Where a group lacks all of its counts, that is the group.
    """
    reasons: dict[str, list[str]] = {}
    lacking: dict[str, list[Count]] = {}
    constant = view.energy(CONSTANT)
    if constant.value is None:
        reasons["no time"] = ["constant power"]
    elif constant.lower:
        reasons["no time"] = [f"constant power of some {view.nouns.kernels}"]
    for word in view.words.values():
        if word.energy.value is None and word.energy.marks & MISSING:
            reason = "not counted" if word.value.value is None else "no price"
            lacking.setdefault(reason, []).append(word.count)
        elif word.energy.lower:
            lacking.setdefault(f"of some {view.nouns.kernels}", []).append(word.count)
    in_group = Counter(word.count.group for word in view.words.values())
    for reason, counts in lacking.items():
        lost = Counter(count.group for count in counts)
        wholly = {group: view.nouns.group(group) for group in lost if lost[group] == in_group[group]}
        names = dict.fromkeys(wholly.get(count.group, count.label) for count in counts)
        reasons.setdefault(reason, []).extend(names)
    return [f"{', '.join(labels)} ({reason})" for reason, labels in reasons.items()]


_OPERATORS, _COMPONENT_ROWS = 100, 100  # of the largest


def of_phases(view: View) -> Card | None:
    """The report page's section on phases and groups, or None where the kernels are in no groups."""
    groups, ranks = view.document.groups, view.document.ranks
    if not groups:
        return None
    sentence = f"{whole(len(groups))} groups; no energy is known."
    if joules := view.energy("total").value:
        largest = max(groups, key=lambda group: energy_of(group, "total").or_zero)
        share = percent(energy_of(largest, "total").or_zero / joules)
        sentence = f"{largest.name} takes {share} of the energy. The groups add up to the whole."
    content = {
        "sentence": sentence,
        "ranks": ranks and rank_words(ranks, view.nouns),
        "how": view.document.grouped,
        "table": group_table(view, groups),
    }
    return Card("phases", "Phases", "Phases", "phases.html", content)


def of_operators(view: View) -> Card | None:
    """The report page's section on operators that PyTorch called, in which modules; None if no log tells operators."""
    if not view.document.operators:
        return None
    content = {"sentence": operator_words(view), "ranks": None, "how": None, "table": operator_table(view, _OPERATORS)}
    return Card("operators", "Operators", "Operators", "phases.html", content)


def of_components(view: View) -> Card | None:
    """The report page's section on time by component, or None where nobody asked for it."""
    if not view.document.time_components:
        return None
    table = component_table(view, _COMPONENT_ROWS)
    content = {"sentence": component_words(view), "ranks": None, "how": None, "table": table}
    return Card("components", "Time", "Time by component", "phases.html", content)


def _computation(view: View) -> str:
    return "Computation" + when(view.caches_are_in_cycles, " and caches")

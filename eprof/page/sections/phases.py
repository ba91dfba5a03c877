"""Phases and groups: the energy of kernels that belong together, with the same breakdown as the whole."""

from dataclasses import dataclass

from markupsafe import Markup

from eprof.base.vocabulary import GROUPS
from eprof.page import svg
from eprof.page.section import Section
from eprof.words.badges import Amount, written
from eprof.words.numbers import percent, plain, quantity, whole
from eprof.words.ranks import rank_words
from eprof.words.view import View, energy_of, ratio, time_of


@dataclass(frozen=True)
class Phase:
    """A group as a row: its bar and its numbers."""

    name: str
    bar: Markup
    cells: list[Markup]


def section(view: View) -> Section | None:
    """The section, or None where the kernels are in no groups."""
    groups = view.document.get("groups")
    if not groups:
        return None
    scale = max((energy_of(one, "total").value or 0.0 for one in groups), default=0.0)
    priced = scale > 0
    content = {
        "sentence": _sentence(view, groups),
        "ranks": rank_words(view.document["ranks"]) if view.document.get("ranks") else None,
        "how": view.document.get("grouped"),
        "columns": [
            "Kernels",
            "Calls",
            "Time",
            *(["Energy", "Share", "Comp.", "Data", "Constant"] if priced else []),
            "flop/B",
        ],
        "rows": [_phase(view, one, scale) for one in groups],
    }
    return Section("phases", "Phases", "Phases", "phases.html", content)


def _sentence(view: View, groups: list[dict[str, object]]) -> str:
    all_of_it = view.energy("total")
    if not all_of_it.value:
        return f"{whole(len(groups))} groups; no energy is known."
    largest = max(groups, key=lambda one: energy_of(one, "total").value or 0.0)
    share = percent((energy_of(largest, "total").value or 0.0) / all_of_it.value)
    return f"{largest['name']} takes {share} of the energy. The groups add up to the whole."


def _phase(view: View, one: dict[str, object], scale: float) -> Phase:
    total, time = energy_of(one, "total"), time_of(one)
    parts = {group: amount.value or 0.0 for group, amount in view.groups_of(one).items()}
    spoken = ", ".join(f"{GROUPS[group]} {quantity(value, 'J')}" for group, value in parts.items() if value)
    bar = svg.bar(svg.laid(parts.items(), scale), f"{one['name']}: {spoken}") if scale else Markup("")
    cells = [
        written(whole(len(one["kernels"]))),  # type: ignore[arg-type]
        written(whole(one["launches"])),  # type: ignore[arg-type]
        written(None if time.value is None else quantity(time.value, "s"), time.marks),
    ]
    if scale:
        cells.append(written(None if total.value is None else quantity(total.value, "J"), total.marks))
        cells.append(_share(total, view.energy("total")))
        cells += [_share(energy_of(one, part), total) for part in ("computation", "data", "constant")]
    intensity = one["intensity_flop_per_byte"]
    cells.append(written(None if intensity is None else plain(intensity)))  # type: ignore[arg-type]
    return Phase(str(one["name"]), bar, cells)


def _share(part: Amount, of: Amount) -> Markup:
    share = ratio(part, of)
    return written(None if share.value is None else percent(share.value), share.marks, bound=False)

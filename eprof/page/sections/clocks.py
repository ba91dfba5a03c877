"""Other clock settings: the modelled energy of the same work at every pair of clocks, as a heat map."""

import math
from collections.abc import Mapping
from typing import Any

from eprof.page.section import Section
from eprof.words.modelled import clock_words, same
from eprof.words.numbers import NARROW, quantity
from eprof.words.view import View

STEPS = 9


def section(view: View) -> Section | None:
    """The section, or None where the table knows one setting only."""
    clocks = view.document.get("clocks")
    if not clocks:
        return None
    cells = {(one["core_mhz"], one["memory_mhz"]): one for one in clocks["settings"]}
    known = [one["energy_j"] for one in clocks["settings"] if one["energy_j"]]
    scale = min(known), max(known)
    memories = sorted({memory for _, memory in cells}, reverse=True)
    cores = sorted({core for core, _ in cells})
    content = {
        "sentence": _sentence(clocks),
        "cores": [f"{core:g}" for core in cores],
        "rows": [
            (f"{memory:g}", [_cell(cells.get((core, memory)), clocks, scale) for core in cores]) for memory in memories
        ],
    }
    return Section("clocks", "Clocks", "Other clock settings", "clocks.html", content)


def _cell(one: Mapping[str, Any] | None, clocks: Mapping[str, Any], scale: tuple[float, float]) -> dict[str, Any]:
    if one is None or not one["energy_j"]:
        return {"text": "–", "step": None, "this": False, "lowest": False}
    low, high = scale
    step = int(STEPS * math.log(one["energy_j"] / low) / math.log(high / low)) if high > low else 0
    return {
        "text": _scaled(one["energy_j"], low),
        "step": min(STEPS - 1, step),
        "this": one["this"],
        "lowest": same(one, clocks["lowest"]),
    }


def _unit(low: float) -> str:
    """The unit that all cells are written in: that of the lowest."""
    return quantity(low, "J").rpartition(NARROW)[2]


def _scaled(value: float, low: float) -> str:
    power = {"fJ": -15, "pJ": -12, "nJ": -9, "µJ": -6, "mJ": -3, "J": 0, "kJ": 3, "MJ": 6}.get(_unit(low), 0)
    number = value / 10.0**power
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"


def _sentence(clocks: Mapping[str, Any]) -> str:
    unit = _unit(min(one["energy_j"] for one in clocks["settings"] if one["energy_j"]))
    here = " the outlined cell is this run," if any(one["this"] for one in clocks["settings"]) else ""
    return f"{clock_words(clocks)} Cells show {unit};{here} ★ the lowest. Modelled: {clocks['assumes']}."

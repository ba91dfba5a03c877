"""Other clock settings: the modelled energy of the same work at every pair of clocks, as a heat map."""

import math
from collections.abc import Mapping
from typing import Any

from eprof.report.numbers import NARROW, percent, quantity
from eprof.report.section import Section
from eprof.report.view import View

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
        return {"text": "–", "step": None, "this": False, "lowest": False, "title": "not known"}
    low, high = scale
    step = int(STEPS * math.log(one["energy_j"] / low) / math.log(high / low)) if high > low else 0
    return {
        "text": _scaled(one["energy_j"], low),
        "step": min(STEPS - 1, step),
        "this": one["this"],
        "lowest": _same(one, clocks["lowest"]),
        "title": quantity(one["time_s"], "s"),
    }


def _unit(low: float) -> str:
    """The unit that all cells are written in: that of the lowest."""
    return quantity(low, "J").rpartition(NARROW)[2]


def _scaled(value: float, low: float) -> str:
    power = {"fJ": -15, "pJ": -12, "nJ": -9, "µJ": -6, "mJ": -3, "J": 0, "kJ": 3, "MJ": 6}.get(_unit(low), 0)
    number = value / 10.0**power
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool((one["core_mhz"], one["memory_mhz"]) == (other["core_mhz"], other["memory_mhz"]))


def _sentence(clocks: Mapping[str, Any]) -> str:
    """Where the lowest is, what it saves, what it costs in time; and how much rests on the times."""
    lowest, here = clocks["lowest"], next((one for one in clocks["settings"] if one["this"]), None)
    at = f"{lowest['core_mhz']:g}{NARROW}MHz core and {lowest['memory_mhz']:g}{NARROW}MHz memory"
    found = f"Lowest prediction: {at}, {quantity(lowest['energy_j'], 'J')}"
    if here is None:
        found += "."
    elif _same(here, lowest):
        found += ": this run's setting."
    else:
        energy = _than(lowest["energy_j"], here["energy_j"], "energy")
        found += f": {energy}, {_than(lowest['time_s'], here['time_s'], 'time')}."
        low, high = lowest["energy_range_j"]
        if high > low * 1.005:
            found += f" It would be {quantity(low, 'J')} to {quantity(high, 'J')} if times followed one clock alone."
    unit = _unit(min(one["energy_j"] for one in clocks["settings"] if one["energy_j"]))
    here_words = " the outlined cell is this run," if here is not None else ""
    cells = f"Cells show {unit};{here_words} ★ the lowest; resting on one shows the time."
    return f"{found} {cells} Modelled: {clocks['assumes']}."


def _than(now: float, before: float, what: str) -> str:
    change = now / before - 1
    return f"{percent(abs(change))} {'less' if change < 0 else 'more'} {what}"

"""Other clock settings: the modelled energy of the same work at every pair of clocks, as a heat map."""

import math
from collections.abc import Mapping
from typing import Any

from eprof.page.section import Section
from eprof.profile import schema
from eprof.words.badges import UNKNOWN
from eprof.words.modelled import clock_words, same_clocks
from eprof.words.numbers import NARROW, PREFIXES, quantity
from eprof.words.view import View

STEPS = 9
_POWERS = {f"{prefix}J": power for power, prefix in PREFIXES.items()}


def section(view: View) -> Section | None:
    """The section, or None where the table knows one setting only."""
    clocks = view.document.clocks
    if not clocks:
        return None
    cells = {(setting.core_mhz, setting.memory_mhz): setting for setting in clocks.settings if setting.energy_j}
    cores = sorted({setting.core_mhz for setting in clocks.settings})
    memories = sorted({setting.memory_mhz for setting in clocks.settings}, reverse=True)
    known = [setting.energy_j for setting in clocks.settings if setting.energy_j]
    low, high = min(known), max(known)
    unit = quantity(low, "J").rpartition(NARROW)[2]
    content = {
        "sentence": _sentence(clocks, unit),
        "cores": [f"{core:g}" for core in cores],
        "rows": [
            (f"{memory:g}", [_cell(cells.get((core, memory)), clocks, low, high, unit) for core in cores])
            for memory in memories
        ],
    }
    return Section("clocks", "Clocks", "Other clock settings", "clocks.html", content)


def _cell(
    setting: schema.AtClocks | None, clocks: schema.Clocks, low: float, high: float, unit: str
) -> Mapping[str, Any]:
    if setting is None or setting.energy_j is None:
        return {"text": UNKNOWN, "step": None, "this": False, "lowest": False}
    share = math.log(setting.energy_j / low) / math.log(high / low) if high > low else 0.0
    return {
        "text": _scaled(setting.energy_j / 10.0 ** _POWERS[unit]),
        "step": min(STEPS - 1, int(STEPS * share)),
        "this": setting.this,
        "lowest": same_clocks(setting, clocks.lowest),
    }


def _scaled(number: float) -> str:
    """Three digits, whatever the power of ten: all cells are written in the unit of the lowest."""
    if number >= 99.95:
        return f"{number:.0f}"
    return f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"


def _sentence(clocks: schema.Clocks, unit: str) -> str:
    here = " the outlined cell is this run," if any(setting.this for setting in clocks.settings) else ""
    return f"{clock_words(clocks)} Cells show {unit};{here} ★ the lowest. Modelled: {clocks.assumes}."

"""Other clock settings: the modelled energy of the same work at every pair of clocks, as a heat map."""

from eprof.profile import schema
from eprof.show.page.heat import energy_map
from eprof.show.report.section import Section
from eprof.show.report.view import View
from eprof.show.report.whatif import clock_words, same_clocks
from eprof.show.words.heat import HeatCell, colour
from eprof.show.words.numbers import NARROW, quantity


def section(view: View) -> Section | None:
    """The section on other clocks, or None where the table knows one setting only."""
    clocks = view.document.clocks
    if not clocks:
        return None
    known = {(setting.core_mhz, setting.memory_mhz): setting for setting in clocks.settings if setting.energy_j}
    joules = [setting.energy_j or 0.0 for setting in known.values()]
    unit = quantity(min(joules), "J").rpartition(NARROW)[2]
    cells = {pair: _cell(setting, clocks, joules, unit) for pair, setting in known.items()}
    here = ", outlined: this run" if any(setting.this for setting in clocks.settings) else ""
    sentence = f"{clock_words(clocks)} In {unit}; ★: the lowest{here}. Modelled: {clocks.assumes}."
    content = {"sentence": sentence, "heat": energy_map(cells)}
    return Section("clocks", "Clocks", "Other clock settings", "clocks.html", content)


def _cell(setting: schema.AtClocks, clocks: schema.Clocks, joules: list[float], unit: str) -> HeatCell:
    sign = "*" if same_clocks(setting, clocks.lowest) else ""
    text = quantity(setting.energy_j or 0.0, "J").removesuffix(f"{NARROW}{unit}")
    return HeatCell(text, colour(setting.energy_j, joules), sign, is_now=setting.this)

"""Heat maps of energy by clocks: their cells as every medium has them, and how a page draws them."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct

from eprof.base.text import phrase
from eprof.show.as_html import piece

STEPS = 9


class HeatCell(Struct, frozen=True):
    """A cell of a heat map, a setting: its text, its colour step 0..8 (None: no number), signs, and all in words."""

    text: str
    step: int | None
    sign: str = ""
    title: str = ""
    is_now: bool = False
    is_allowed: bool = True


def heat_step(energy: float | None, known: Sequence[float]) -> int | None:
    """The colour step, 0 to 8, of a heat map's cell, in equal ratios between the least and the largest of `known`."""
    if energy is None:
        return None
    low, high = min(known), max(known)
    if high <= low or low <= 0:
        return 0
    return min(STEPS - 1, int(STEPS * math.log(energy / low) / math.log(high / low)))


def energy_map(cells: Mapping[tuple[float, float], HeatCell]) -> Markup:
    """A heat map of energy by (core, memory) clock; the present setting and those not allowed are marked."""
    drawn = {}
    for clocks, cell in cells.items():
        kinds = [phrase("h{}", cell.step) or "no"]
        if cell.is_now:
            kinds.append("now")
        if not cell.is_allowed:
            kinds.append("off")
        sign = piece(cell.sign, " <b>{}</b>", cell.sign.replace("*", "★"))
        title = piece(cell.title, ' title="{}"', cell.title)
        drawn[clocks] = Markup('<td class="{}"{}>{}{}</td>').format(" ".join(kinds), title, cell.text, sign)
    return heat_table(drawn)


def heat_table(cells: Mapping[tuple[float, float], Markup]) -> Markup:
    """A heat map of cells by (core MHz, memory MHz): core clocks across, memory clocks down, highest on top."""
    cores = sorted({core for core, _ in cells})
    memories = sorted({memory for _, memory in cells}, reverse=True)
    nothing = Markup('<td class="no"></td>')
    # A terminal has the cells alone, and does not wait for Jinja.
    from eprof.show.html_page import templates

    rows = [(memory, [cells.get((core, memory), nothing) for core in cores]) for memory in memories]
    drawn = templates().get_template("validation_heat.html").render(cores=cores, rows=rows)
    return Markup(drawn)  # noqa: S704  escaped there

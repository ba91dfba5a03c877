"""Maps by clocks: core clock across, memory clock down, highest on top."""

from collections.abc import Mapping

from markupsafe import Markup

from eprof.show.page.shell import templates
from eprof.show.words.heat import HeatCell


def energy_map(cells: Mapping[tuple[float, float], HeatCell]) -> Markup:
    """A heat map of energy by clocks."""
    return heat_table({clocks: _cell(cell) for clocks, cell in cells.items()})


def _cell(cell: HeatCell) -> Markup:
    kinds = ["no" if cell.step is None else f"h{cell.step}"]
    if cell.is_now:
        kinds.append("now")
    if not cell.is_allowed:
        kinds.append("off")
    sign = Markup(" <b>{}</b>").format(cell.sign.replace("*", "★")) if cell.sign else ""
    title = Markup(' title="{}"').format(cell.title) if cell.title else ""
    return Markup('<td class="{}"{}>{}{}</td>').format(" ".join(kinds), title, cell.text, sign)


def heat_table(cells: Mapping[tuple[float, float], Markup]) -> Markup:
    """A heat map of cells by (core MHz, memory MHz): core clocks across, memory clocks down, highest on top."""
    cores = sorted({core for core, _ in cells})
    memories = sorted({memory for _, memory in cells}, reverse=True)
    nothing = Markup('<td class="no"></td>')
    rows = [(memory, [cells.get((core, memory), nothing) for core in cores]) for memory in memories]
    drawn = templates().get_template("validation_heat.html").render(cores=cores, rows=rows)
    return Markup(drawn)  # noqa: S704  escaped there

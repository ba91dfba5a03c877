"""The page of `eprof scale`, one file that fetches nothing (docs/scale.md)."""

from collections.abc import Iterator, Sequence

import numpy as np
from markupsafe import Markup
from msgspec.structs import replace

from eprof.base.optional import gathered
from eprof.base.text import phrase, when
from eprof.base.vocabulary import Mark
from eprof.commands.scale import words
from eprof.commands.scale.document import MODELLED, Best, Row, Scale
from eprof.show import as_html
from eprof.show.blocks import Section, legend, plain_text, quiet
from eprof.show.html_page import Figure, card, method
from eprof.show.numbers import quantity
from eprof.show.plot import STROKES, Dot, Line, Panel, axis, keys, panel_html

_ALIKE = 0.02  # of a chart's height lines are apart by less
# The colours of reports: kernels' are warm, cold and hatched there too.
_COLOURS = {
    "computation": "fp32",
    "data": "dram",
    "constant": "constant",
    "imbalance": "int",
    "between": "sfu",
    "unused": "tensor",
    "metered": "fp16",
    "host": "plain",
    "network": "system",
    "storage": "l2",
}
_EFFICIENCY = (
    "Energy efficiency is the energy on one processor over that on p, at the same clock (Song's iso-energy-efficiency)"
    ". It is above 1 where processors save work together."
)
_SIGNS = legend(sum(Mark))
_COUNTS = 7  # node counts that an axis has room for
_LARGE, _SMALL = 1.0, 0.2  # areas of dots


def figures(document: Scale) -> Iterator[Figure]:
    """Yield the page's key figures: node count, clock and joules that are best for each objective of one problem."""
    if len({(best.program, best.size) for best in document.best}) != 1 or len(document.rows) == 1:
        return
    for best in document.best:
        label = words.OBJECTIVES.get(best.objective, best.objective).capitalize()
        if best.processors is None or best.energy_j is None:
            yield Figure(label, "none")
            continue
        where = words.place(document, replace(best, core_mhz=None))
        yield Figure(label, where, phrase("{:g} MHz, ", best.core_mhz) + _joules(document, best))


def sections(document: Scale) -> Iterator[Section]:
    """Yield the cards of the page of `eprof scale`: best, curves, causes, what keeps efficiency, fit, all rows."""
    if len(document.rows) > 1:
        yield card("best", "Best", "Best node counts and clocks", *words.points(document), words.best(document))
    if charts := _charts(document):
        legend = (
            "One line for each program, size and clock; of lines that are alike within 2 % one is drawn. Axes are "
            f"logarithmic.{when(words.stand_out(document), ' Large dots: nothing takes less energy and less time.')}"
        )
        yield card("curves", "Curves", "Efficiency, energy and time", charts, keys(_series(document)), quiet(legend))
    if document.rows[0].parts:
        yield card("causes", "Causes", "Energy by cause", _bars(document), words.parts(document), quiet(_SIGNS))
    if document.keep:
        yield card("keep", "Keep", "How to keep the efficiency", words.kept(document.keep))
    if document.fit is not None:
        yield card("fit", "Predicted", "Predicted from small runs", words.predictions(document.fit))
    if document.kind == MODELLED:
        yield card("why", "Why", "Why the efficiency falls", words.causes(document))
    yield card("rows", "All", "All rows", words.rows(document))
    parts = {"Efficiency": [_EFFICIENCY]}
    cluster, program, node = document.cluster, document.program, document.node
    if node:
        powers = {"host": "host_w", "network": "network_w", "idle GPU": "gpu_idle_w"}
        watts = ", ".join(f"{name} {phrase('{:g} W', node[key]) or 'unknown'}" for name, key in powers.items())
        parts["Nodes"] = [f"{node['name'] or 'As asked'}: {watts}. {node['source']}".strip()]
    if cluster:
        parts["Cluster"] = [f"{cluster['name']}: {cluster['about']}. Source: {cluster['source']}."]
    if program:
        counts = "; ".join(f"{word} = {formula}" for word, formula in program["counts"].items())
        of_counts = f"{counts}; alpha = {program['alpha']:g}. {program['source']}."
        parts["Program"] = [f"{program['name']}: {program['about']}. {of_counts}"]
    yield method(document, parts, document.warnings)


def _series(document: Scale) -> dict[str, list[Row]]:
    """Name of a chart's line (program, size and clock) -> its rows, those with an energy."""
    known = (row for row in document.rows if row.energy_j is not None)
    clock = " at {:g} MHz"
    return gathered((f"{row.program}{words.of_size(row.size)}{phrase(clock, row.core_mhz)}", row) for row in known)


def _charts(document: Scale) -> Markup:
    """Charts of efficiency over processors, and energy over time; empty where there is too little to draw.

    A row is where it is across and up; 0: nowhere. A line that no eye could tell from one before is not drawn again.
    """
    on_one = f"joules on one {document.unit} / on all"
    charts = (("Energy efficiency", on_one, f"{document.unit}s"), ("Energy", "J", "time, s"))
    shown = []
    is_rare = words.stand_out(document)
    for title, unit, below in charts:
        lines: list[Line] = []
        dots = []
        for kind, (name, rows) in enumerate(_series(document).items()):
            places = [(row.time_s, row.energy_j or 0.0) for row in rows]
            if unit != "J":
                places = [(row.processors, row.efficiency or 0.0) for row in rows]
            placed = [(row, place) for row, place in zip(rows, places, strict=True) if all(place)]
            points = sorted(point for _, point in placed)
            if not points or any(_is_alike(points, line.points) for line in lines):
                continue
            lines.append(Line(points, kind % STROKES))
            for row, point in placed:
                size = {True: _LARGE}.get(row.pareto and is_rare, _SMALL)
                what = f"{name}, {row.processors}: {_joules(document, row)} in {quantity(row.time_s, 's')}"
                dots.append(Dot(*point, size, "", what, kind=kind % STROKES))
        if len(dots) > 1:
            across, up = axis([dot.x for dot in dots]), axis([dot.y for dot in dots])
            counts = sorted({dot.x for dot in dots})
            if below != "time, s" and len(counts) <= _COUNTS:
                across = replace(across, marked=counts)
            panel = Panel(title, unit, title, across, up, lines, dots[:400], below=below)
            shown.append(panel_html(panel, f"{title} over {below}", named=False))
    return as_html.piece(shown, '<div class="plots">{}</div>', Markup("").join(shown))


def _is_alike(points: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> bool:
    return np.shape(points) == np.shape(others) and np.allclose(points, others, rtol=_ALIKE, atol=0)


def _bars(document: Scale) -> Markup:
    """A bar for each node count, with a segment a cause of its energy; open at its end if the energy lacks a part."""
    rows = [row for row in document.rows if row.parts]
    largest = max(sum(_known(row).values()) for row in rows)
    causes = [cause for cause in _COLOURS if any(cause in _known(row) for row in rows)]
    key = Markup('<li><i class="swatch s-{}"></i>{}</li>')
    keys = Markup("").join(key.format(_COLOURS[cause], words.CAUSES[cause]) for cause in causes)
    line = Markup('<div class="row"><span class="name">{}</span>{}<span class="num">{}</span><span></span></div>')
    lines = []
    for row in rows:
        known = _known(row)
        spoken = ", ".join(f"{words.CAUSES[cause]} {quantity(energy_j, 'J')}" for cause, energy_j in known.items())
        segments = as_html.laid([(_COLOURS[cause], energy_j) for cause, energy_j in known.items()], largest)
        bar = as_html.bar(segments, spoken, open_end="missing" in row.marks)
        lines.append(line.format(words.place(document, row), bar, _joules(document, row)))
    return Markup('<ul class="legend">{}</ul>{}').format(keys, Markup("").join(lines))


def _joules(document: Scale, entry: Row | Best) -> str:
    """The energy of a row as text: "735 J"; of a lower bound, with the sign of one."""
    return plain_text(replace(words.amount(document, entry), value=entry.energy_j or 0.0))


def _known(row: Row) -> dict[str, float]:
    """The joules of each cause that is known to take any on a node count, in the order of `_COLOURS`."""
    joules = ((cause, row.parts[cause].energy_j) for cause in _COLOURS if row.parts and cause in row.parts)
    return {cause: energy_j for cause, energy_j in joules if energy_j is not None and energy_j > 0}

"""The page of `eprof comm`, one file that fetches nothing (docs/comm.md)."""

from collections.abc import Iterator
from functools import partial

from markupsafe import Markup

from eprof.base.optional import gathered
from eprof.base.text import when
from eprof.commands.comm import words
from eprof.commands.comm.document import Comm, Row
from eprof.commands.comm.waits import POLLING
from eprof.show.amounts import bits
from eprof.show.blocks import Section, quiet
from eprof.show.html_page import Figure, card, method
from eprof.show.numbers import percent, quantity, signed_percent
from eprof.show.plot import STROKES, Dot, Line, Panel, axis, keys, panel_html

_CHARTS = {"j_per_mb": "Joules per MB", "latency": "Latency"}


def figures(document: Comm) -> Iterator[Figure]:
    """Yield the page's key figures: least energy of a program's messages, break-even time, most that is saved."""
    if document.totals:
        first = document.totals[0]
        least = min(document.totals, key=lambda total: total.energy_j)
        for title, total in (("All messages", first), ("Least", least)):
            way = words.way(document, total.waiting, total.core_mhz)
            yield Figure(title, quantity(total.energy_j, "J"), way, bits(total.marks))
    if document.break_even_s is not None:
        yield Figure("Blocking saves joules from", quantity(document.break_even_s, "s"), "a message on")
    if document.limits and not document.totals:
        most = min(document.limits, key=lambda limit: limit.j_per_mb)
        yield Figure("Saved at most", percent(1 - most.j_per_mb), words.way(document, most.waiting, most.core_mhz))


def sections(document: Comm) -> Iterator[Section]:
    """Yield the cards of the page of `eprof comm`: when a way to wait pays, curves by size, all rows, method."""
    heading = when(document.totals, "All messages") or "When it pays"
    yield card("pays", heading, heading, *words.points(document), *words.tables(document))
    if charts := _charts(document):
        legend = "Against polling at the first clock, which is 1; a line an operation, logarithmic axes."
        names = keys(_kinds(_series(document)))
        yield card("curves", "Curves", "Joules and latency by size", charts, names, quiet(legend))
    yield card("rows", "All", "All rows", words.rows(document))
    joules = "Energy of an operation over its bytes, 1 MB = 10^6 B; its change is that of latency times that of power."
    parts = {"Joules per MB": [joules, f"Joules are from {document.joules_from}."]}
    if cluster := document.cluster:
        parts["Cluster"] = [f"{cluster['name']}: {cluster['about']}. Source: {cluster['source']}."]
    yield method(document, parts, document.warnings)


_Series = dict[tuple[str, str], list[Row]]


def _series(document: Comm) -> _Series:
    """(Operation, way to wait) -> its rows, a line of the chart; not polling at the first clock, which is 1."""
    base = POLLING, document.rows[0].core_mhz
    compared = (row for row in document.rows if row.relative and (row.waiting, row.core_mhz) != base)
    way = partial(words.way, document)
    return gathered(((row.primitive, way(row.waiting, row.core_mhz)), row) for row in compared)


def _kinds(series: _Series) -> list[str]:
    """The names of the chart's colours: the ways to wait; where there is one only, the operations."""
    primitives, ways = ([*dict.fromkeys(names)] for names in zip(*series, strict=True))
    return ways if len(ways) > 1 else primitives


def _charts(document: Comm) -> Markup:
    """Charts of joules per MB and latency over the message's size; empty where there are fewer than two sizes."""
    series = _series(document)
    if len({row.bytes for rows in series.values() for row in rows}) < 2:
        return Markup("")
    kinds = _kinds(series)
    shown = []
    for name, title in _CHARTS.items():
        lines, dots = [], []
        for (primitive, way), rows in series.items():
            points = sorted((row.bytes, getattr(row.relative, name)) for row in rows)
            kind = kinds.index(way if way in kinds else primitive) % STROKES
            lines.append(Line(points, kind))
            for size, factor in points:
                what = f"{primitive}, {way}, {words.size_text(size)}: {signed_percent(factor - 1)}"
                dots.append(Dot(size, factor, 0.1, "", what, kind=kind))
        across, up = axis([dot.x for dot in dots]), axis([1.0, *(dot.y for dot in dots)])
        panel = Panel(title, "over that of polling", title, across, up, lines, dots, below="bytes")
        shown.append(panel_html(panel, f"{title} over size", named=False))
    return Markup('<div class="plots">{}</div>').format(Markup("").join(shown))

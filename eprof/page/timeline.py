"""The page of `eprof timeline`, one file that fetches nothing (docs/timeline.md)."""

from collections.abc import Iterator

from markupsafe import Markup

from eprof.page.figures import Figure
from eprof.page.frame import card, method, page, quiet
from eprof.page.svg import pct
from eprof.timeline.schema import Component, Function, Timeline
from eprof.words import timeline as words
from eprof.words.blocks import Section
from eprof.words.numbers import quantity

_HEIGHT, _TOP, _LANE = 150, 14, 20
_COMPONENTS, _LANES, _COLOURS = 6, 10, 6


def html(document: Timeline) -> str:
    """One self-contained HTML file from a document `eprof.timeline/1`."""
    return page(
        document,
        "timeline",
        subtitle=[words.subject(document)],
        headline=words.headline(document),
        figures=_figures(document),
        sections=_sections(document),
    )


def _figures(document: Timeline) -> Iterator[Figure]:
    yield Figure("Energy", quantity(document.total_j, "J"))
    yield Figure("Time", quantity(document.duration_s, "s"))
    for component in document.components[:4]:
        yield Figure(component.name, quantity(component.mean_w, "W"), quantity(component.energy_j, "J"))


def _sections(document: Timeline) -> Iterator[Section]:
    legend = "Power of each component as its meter saw it, from zero; below, when the functions ran that take most."
    yield card("power", "Power", "Power over time", _chart(document), quiet(legend))
    if document.functions:
        yield card(
            "functions", "Functions", "Joules by function", *words.trust(document), words.functions(document, None)
        )
    yield card("components", "Components", "What the meters saw", words.components(document))
    yield method(
        document,
        {
            "Joules": [
                "Power holds from a sample to the next. The innermost function owns the joules of a moment; what is "
                "around it has them in the column with callees. Functions and the rest add up to the integral of each "
                "component.",
                "A component that is part of another is in its joules, and not added again.",
            ]
        },
        document.warnings,
    )


def _chart(document: Timeline) -> Markup:
    """A panel a component, and lanes of functions below, on one axis of time."""
    panels = [_panel(document, component) for component in document.components[:_COMPONENTS]]
    lanes = [_lane(document, function, place) for place, function in enumerate(words.by_energy(document)[:_LANES])]
    return Markup('<div class="lanes">{}</div>').format(Markup("").join([*panels, *lanes]))


def _panel(document: Timeline, component: Component) -> Markup:
    """The power of a component as steps, from zero; a hole where nothing is known."""
    most = max((watts for _, watts in component.watts if watts is not None), default=0.0) or 1.0
    bars = Markup("")
    for (begin, watts), (end, _) in zip(component.watts, component.watts[1:], strict=False):
        if watts is not None:
            height = (_HEIGHT - _TOP) * watts / most
            across = _across(document, begin, end)
            bars += Markup('<rect class="c-dram" x="{}" width="{}" y="{:.1f}" height="{:.1f}"/>').format(
                *across, _HEIGHT - height, height
            )
    about = f"up to {quantity(most, 'W')}"
    return _row(component.name, about, _HEIGHT, f"power of {component.name} over time, {about}", bars)


def _lane(document: Timeline, function: Function, place: int) -> Markup:
    """When a function ran."""
    groups = ("fp64", "int", "shared", "l1", "tensor", "fp16")
    spans = Markup("").join(
        Markup('<rect class="c-{}" x="{}" width="{}" y="2" height="{}"/>').format(
            groups[place % _COLOURS], *_across(document, begin, end), _LANE - 4
        )
        for begin, end in function.spans
    )
    joules = quantity(words.total_of(document, function.energy_j), "J")
    return _row(function.name, joules, _LANE, f"when {function.name} ran", spans)


def _row(name: str, about: str, height: int, spoken: str, body: Markup) -> Markup:
    """What is drawn of a component or function, behind its name."""
    return Markup(
        '<span class="full" title="{}">{}</span><span class="quiet">{}</span>'
        '<svg width="100%" height="{}" role="img" aria-label="{}">{}</svg>'
    ).format(name, name, about, height, spoken, body)


def _across(document: Timeline, begin_s: float, end_s: float) -> tuple[str, str]:
    """Where a stretch of time is and how wide, in per cent."""
    scale = 100 / document.duration_s
    begin, end = max(begin_s, 0.0) * scale, min(end_s, document.duration_s) * scale
    return pct(begin), pct(max(end - begin, 0.0))

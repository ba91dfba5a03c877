"""The page of `eprof timeline`, one file that fetches nothing; and its trace for Perfetto (docs/timeline.md)."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from eprof import __version__
from eprof.base.optional import gathered, mapped
from eprof.base.text import phrase, visible, when
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.commands.timeline import words
from eprof.commands.timeline.document import Component, Function, Split, Timeline
from eprof.commands.timeline.fusion import Fused
from eprof.commands.timeline.joules import UNSEEN
from eprof.lab.power.marks import Mark
from eprof.show.amounts import written
from eprof.show.as_html import pct
from eprof.show.blocks import Quantity, Section, plain_text, quiet
from eprof.show.export import trace_name, trace_number, trace_of
from eprof.show.html_page import Figure, card, method
from eprof.show.numbers import quantity, quantity_or

_HEIGHT, _LEAST_HEIGHT, _TOP, _LANE = 240, 64, 8, 20
_WIDE = 1000  # in which panels are drawn
_TICKS = 4
_COMPONENTS, _LANES, _COLOURS = 6, 10, 6
_DARKEST = 8
_NO_SCALE = Markup('<i class="scale"></i>')


def figures(document: Timeline) -> Iterator[Figure]:
    """Yield the page's key figures: mean power of each component (four at most), with its joules if several."""
    if len(document.components) > 1:
        for component in document.components[:4]:
            energy = plain_text(Quantity(component.energy_j, "J", words.missing(component)))
            yield Figure(component.name, quantity_or("not known", component.mean_w, "W"), energy)
    elif document.functions:  # else the headline tells it
        yield Figure("Mean power", quantity_or("not known", document.components[0].mean_w, "W"))


def sections(document: Timeline) -> Iterator[Section]:
    """Yield the cards of a timeline's page: power over time, joules by cause and by function, components."""
    legend = "Power of each component as its meter saw it, from zero; dashed: idle or base power."
    if document.functions:
        legend += " Below, when functions ran, the outer ones first, each with the joules of all that ran in it."
    colours: list[Markup] = []
    if document.splits:
        named = Markup('<li><i class="swatch s-{}"></i>{}</li>')
        alike = _by_colour(list(words.whole_by_word(document)))
        items = [named.format(colour.removeprefix("c-"), _labels(same)) for colour, same in alike.items()]
        colours = [Markup('<ul class="legend">{}</ul>').format(Markup("").join(items))]
    yield card("power", "Power", "Power over time", *colours, _chart(document), quiet(legend))
    if document.splits:
        yield card("causes", "By cause", "Joules by cause", *words.by_prices(document), words.causes(document))
    if not document.functions:
        yield card("marks", "Marks", "What ran when", *words.trust(document))
    else:
        several = len(document.components) > 1
        table = words.functions(document, True, by_component=not several)
        yield card("functions", "Functions", "Joules by function", *words.trust(document), table)
        if several:
            answer = "What each function takes of its own in each component: the darker, the more."
            yield card("heat", "Heat", "Joules by component and function", _heat(document), quiet(answer))
    yield card("components", "Components", "What the meters saw", words.components(document))
    joules = [
        "Power holds from a sample to the next, the last one as long as most do. The innermost function owns the "
        "joules of a moment; what is around it has them in the column with callees. Functions and the rest add up to "
        "the integral of each component.",
        "A component that is part of another is in its joules, and not added again.",
    ]
    yield method(document, {"Joules": joules}, document.warnings)


def _chart(document: Timeline) -> Markup:
    """A timeline's chart: a panel a component, lanes of functions below, the outer ones first, on one axis of time."""
    components = document.components[:_COMPONENTS]
    height = max(_LEAST_HEIGHT, _HEIGHT // len(components))
    panels = [_panel(document, component, height) for component in components]
    inclusive_j = {each.name: words.total_of(document, each.inclusive_j) or 0.0 for each in document.functions}
    outer_first = sorted(document.functions, key=lambda function: -inclusive_j[function.name])
    lanes = [_lane(document, function, place) for place, function in enumerate(outer_first[:_LANES])]
    tick = Markup('<text class="tick" x="{}" y="13" text-anchor="{}">{}</text>')
    ticks = []
    for part in range(_TICKS + 1):
        time_s = document.duration_s * part / _TICKS
        anchor = {0: "start", _TICKS: "end"}.get(part, "middle")
        ticks.append(tick.format(pct(100 * part / _TICKS), anchor, quantity(time_s, "s") if time_s else "0"))
    axis = Markup('<svg width="100%" height="18">{}</svg>').format(Markup("").join(ticks))
    rows = [*panels, *lanes, _row("", Markup(""), axis)]
    return Markup('<div class="lanes">{}</div>').format(Markup("").join(rows))


def _panel(document: Timeline, component: Component, height: int) -> Markup:
    """The power of a component over time as steps from zero; a hole where it is unknown. Dashed: idle or base power."""
    split = next((split for split in document.splits if split.component == component.name), None)
    drawn_w = [watts for _, watts in component.watts if watts is not None]
    if split is not None:
        drawn_w = [sum(watts) for _, watts in split.watts]
    most = max(drawn_w, default=0.0) or 1.0
    outline: list[str] = []
    was_known = False
    for (begin, watts), (end, _) in zip(component.watts, component.watts[1:], strict=False):
        if watts is not None:
            start = when(not was_known, f"M{_x(document, begin)} {height}")
            outline.append(f"{start}V{height - (height - _TOP) * watts / most:.1f}H{_x(document, end)}")
        elif was_known:
            outline.append(f"V{height}")
        was_known = watts is not None
    if split is None:
        body = Markup('<path class="c-dram" d="{}V{}"/>').format("".join(outline), height)
    else:
        body = _stacked(document, split, height, most)
    for lower_w in [watts for watts in (component.idle_w, component.base_w) if watts is not None][:1]:
        y = f"{height - (height - _TOP) * min(lower_w / most, 1.0):.1f}"
        body += Markup('<line class="idle" x1="0" x2="{0}" y1="{1}" y2="{1}"/>').format(_WIDE, y)
    drawing = Markup(
        '<svg width="100%" height="{1}" role="img" aria-label="power of {2} over time, up to {3}">'
        '<svg width="100%" height="{1}" viewBox="0 0 {0} {1}" preserveAspectRatio="none">{4}</svg>{5}</svg>'
    )
    grid = Markup('<line class="grid" x1="0%" x2="100%" y1="{0}" y2="{0}"/>')
    tick = Markup('<text class="tick end" x="42" y="{}">{}</text>')
    marks, ticks = [], []
    # Grid lines at one or two round powers.
    size = 10.0 ** math.floor(math.log10(most))
    step = max(digit * size for digit in (0.5, 1.0, 2.0, 5.0) if digit * size <= most)
    for watts in [step / 2] * (most < 1.6 * step) + [step]:
        top = height - (height - _TOP) * watts / most
        marks.append(grid.format(f"{top:.1f}"))
        ticks.append(tick.format(f"{max(top + 4, 10):.1f}", quantity(watts, "W")))
    scale = Markup('<svg class="scale" width="44" height="{}" aria-hidden="true">{}</svg>')
    about = f"mean {quantity_or('not known', component.mean_w, 'W')}"
    body = drawing.format(_WIDE, height, component.name, quantity(most, "W"), body, Markup("").join(marks))
    return _row(component.name, Markup(about), body, scale.format(height, Markup("").join(ticks)))


def _stacked(document: Timeline, split: Split, height: int, most: float) -> Markup:
    """The power of a GPU or CPU over time by cause, each on those before it; constant power lies below."""
    alike = _by_colour(sorted(split.words, key=lambda word: word != CONSTANT))
    ends = [*(time_s for time_s, _ in split.watts[1:]), document.duration_s]
    below = [0.0] * len(ends)
    shape = Markup('<path class="{}" d="{}"><title>{}</title></path>')
    drawn = []
    for colour, same in alike.items():
        places = [split.words.index(word) for word in same]
        own_w = [sum(watts[place] for place in places) for _, watts in split.watts]
        above = [base + watts for base, watts in zip(below, own_w, strict=True)]
        steps = list(zip(split.watts, ends, above, below, strict=True))

        def y(watts: float) -> str:
            return f"{height - (height - _TOP) * min(watts / most, 1.0):.1f}"

        there = "".join(f"V{y(top)}H{_x(document, end)}" for _, end, top, _ in steps)
        back = "".join(f"V{y(base)}H{_x(document, begin)}" for (begin, _), _, _, base in reversed(steps))
        drawn.append(shape.format(colour, f"M0 {y(below[0])}{there}{back}Z", _labels(same)))
        below = above
    return Markup("").join(drawn)


def _by_colour(causes: Sequence[str]) -> dict[str, list[str]]:
    """Class of a colour in CSS -> the causes that are drawn in it."""
    colours = {CONSTANT: "c-constant", UNSEEN: "c-int"}
    return gathered((colours.get(word) or f"c-{COUNTS[word].group}", word) for word in causes)


def _labels(causes: Sequence[str]) -> str:
    return ", ".join(map(words.cause_label, causes))


def _lane(document: Timeline, function: Function, place: int) -> Markup:
    """A row of a timeline's chart: when a function ran, and the joules of all that ran in it."""
    groups = ("fp64", "int", "shared", "l1", "tensor", "fp16")
    rect = Markup('<rect class="c-{}" x="{}" width="{}" y="2" height="{}"/>')
    spans, scale = [], 100 / document.duration_s
    for begin_s, end_s in function.spans:
        begin, end = max(begin_s, 0.0) * scale, min(end_s, document.duration_s) * scale
        spans.append(rect.format(groups[place % _COLOURS], pct(begin), pct(max(end - begin, 0.0)), _LANE - 4))
    drawing = Markup('<svg width="100%" height="{}" role="img" aria-label="when {} ran">{}</svg>')
    joules = mapped(quantity, words.total_of(document, function.inclusive_j), "J")
    drawn = drawing.format(_LANE, function.name, Markup("").join(spans))
    return _row(function.name, written(joules, words.marks(function, inclusive=True)), drawn)


def _row(name: str, about: Markup, drawing: Markup, scale: Markup = _NO_SCALE) -> Markup:
    """A row of a timeline's chart: a name, a remark, the scale of the drawing if it has one, and the drawing."""
    return Markup('<span class="full" title="{0}">{0}</span><span class="quiet">{1}</span>{2}{3}').format(
        name, about, scale, drawing
    )


def _x(document: Timeline, time_s: float) -> str:
    """The x coordinate, 0 to 1000 as text, of a time in s since the start in a panel of the timeline."""
    return f"{_WIDE * min(max(time_s / document.duration_s, 0.0), 1.0):.1f}"


def _heat(document: Timeline) -> Markup:
    """Table of joules in HTML: a row a function, the last one outside of all; a column a component; darker is more."""
    components = document.components
    rows = [
        (function.name, function.energy_j, [words.marks(function)] * len(components))
        for function in words.by_energy(document)
    ]
    rows.append((words.OUTSIDE, document.outside_j, [words.marks_outside(document, each) for each in components]))
    most_j = max((joules or 0.0 for _, energy_j, _ in rows for joules in energy_j.values()), default=0.0) or 1.0
    heads = Markup("").join(Markup('<th scope="col">{}</th>').format(component.name) for component in components)
    line, cell = Markup('<tr><th scope="row">{}</th>{}</tr>'), Markup('<td class="h{}">{}</td>')
    lines = []
    for name, energy_j, marks in rows:
        cells = []
        for component, mark in zip(components, marks, strict=True):
            joules = energy_j[component.name]
            step = round(_DARKEST * max(joules or 0.0, 0.0) / most_j)
            cells.append(cell.format(step, written(mapped(quantity, joules, "J"), mark)))
        lines.append(line.format(name, Markup("").join(cells)))
    return Markup(
        '<div class="wide" tabindex="0" role="region" aria-label="Joules by component and function">'
        '<table class="heat by-function"><thead><tr><td class="no"></td>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(heads, Markup("").join(lines))


_POWER, _FUNCTIONS = 1, 2  # processes of the trace


def to_trace(document: Timeline, fused: Fused) -> bytes:
    """A timeline's trace in JSON for Perfetto: power in W at each step, marks with joules; times in us, to the ns.

    The joules of a mark are those of all that runs in it. Of unknown power the counter is 0; the mark says how long.
    """
    head = {"eprof": __version__, "title": visible(document.title), "first_s": fused.begin_s}
    return trace_of(head, _events(fused))


def _events(fused: Fused) -> Iterator[dict[str, Any]]:
    """Yield the trace's events: each change of a component's power, 0 behind the last, then the marks."""
    yield trace_name("process_name", _POWER, 0, "power")
    for series in fused.series:
        name = visible(series.component + phrase(", part of {},", fused.wholes.get(series.component)))
        times_s = (series.edges - fused.begin_s).tolist()
        for time_s, watts in zip(times_s, [*np.nan_to_num(series.watts).tolist(), 0.0], strict=True):
            # Perfetto adds the unit, which is the name of the argument.
            power = {"W": trace_number(watts)}
            yield {"ph": "C", "name": name, "pid": _POWER, "ts": _microseconds(time_s), "args": power}
    if not fused.marks:
        return
    yield trace_name("process_name", _FUNCTIONS, 0, "functions")
    lanes: list[_Thread] = []
    for mark in sorted(fused.marks, key=lambda mark: (mark.begin_s, -mark.end_s)):
        if not any(lane.takes(mark) for lane in lanes):
            lanes.append(_Thread())
            lanes[-1].takes(mark)
    for number, lane in enumerate(lanes, 1):
        yield trace_name("thread_name", _FUNCTIONS, number, "functions" + when(number > 1, f" (overlap {number - 1})"))
        for mark in lane.marks:
            seen = {series.component: series.seen(mark.begin_s, mark.end_s) for series in fused.series}
            joules = {component: energy_j for component, (energy_j, known_s) in seen.items() if known_s > 0}
            total_j = sum(energy_j for component, energy_j in joules.items() if component not in fused.wholes)
            unknown_s = mark.end_s - mark.begin_s - min(known_s for _, known_s in seen.values())
            arguments = {"energy_j": trace_number(total_j)} if joules else {}
            if len(fused.series) > 1:
                arguments |= {f"{visible(component)}_j": trace_number(own_j) for component, own_j in joules.items()}
            if unknown_s > 1e-6:
                arguments["power_not_known_s"] = trace_number(unknown_s)
            begin_us, end_us = _microseconds(mark.begin_s - fused.begin_s), _microseconds(mark.end_s - fused.begin_s)
            about = {"ph": "X", "name": visible(mark.name), "cat": "function", "pid": _FUNCTIONS, "tid": number}
            yield {**about, "ts": begin_us, "dur": round(end_us - begin_us, 3), "args": arguments}


def _microseconds(time_s: float) -> float:
    return round(time_s * 1e9) / 1e3


class _Thread:
    """A thread of the trace: marks within or behind each other. Perfetto would drop those that overlap otherwise."""

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self._open: list[Mark] = []

    def takes(self, mark: Mark) -> bool:
        """Add a mark, which begins no earlier than those of the lane, if it fits; return whether it did."""
        self._open = [around for around in self._open if around.end_s > mark.begin_s]
        if self._open and mark.end_s > self._open[-1].end_s:
            return False
        self._open.append(mark)
        self.marks.append(mark)
        return True

"""A document `eprof.timeline/1` in words: the total, the largest functions, components, what is not sure."""

from collections.abc import Iterator, Sequence

from eprof.base.known import ratio
from eprof.base.marks import NONE, Mark
from eprof.base.text import counted
from eprof.timeline.schema import Component, Function, Timeline
from eprof.words.blocks import Block, Column, Headline, Notes, Point, Row, Sentence, Table, Tone, numbers, texts
from eprof.words.cells import Cell, Name, Quantity, Share
from eprof.words.numbers import and_more, percent, quantity, whole

TITLE = "Timeline"
OUTSIDE = "in no function"
_FUNCTIONS = 6


def subject(document: Timeline) -> str:
    """What was metered over time, and for how long."""
    names = ", ".join(component.name for component in document.components[:4])
    more = f" and {len(document.components) - 4} more" if len(document.components) > 4 else ""
    return f"{names}{more} over {quantity(document.duration_s, 's')}"


def headline(document: Timeline) -> Headline:
    """The headline of a timeline: the total, the function that takes most of it, and what idle power is of it."""
    added = [component for component in document.components if component.part_of is None]
    bound = "At least " if any(component.unknown_s for component in added) else ""
    text = f"{bound}{quantity(document.total_j, 'J')} in {quantity(document.duration_s, 's')}."
    return Headline(text, " ".join(filter(None, [_largest(document), _idle(document)])))


def _largest(document: Timeline) -> str:
    if not document.functions or not document.total_j:
        return ""
    function = by_energy(document)[0]
    joules = total_of(document, function.energy_j)
    return f"{function.name} takes {percent(joules / document.total_j)} of it, {quantity(joules, 'J')}."


def _idle(document: Timeline) -> str:
    """How much of a timeline's joules an idle machine would have taken, where that was seen."""
    top = [component for component in document.components if component.part_of is None]
    if any(component.idle_w is None for component in top):
        return ""
    idle_w = sum(component.idle_w or 0.0 for component in top)
    share = ratio(idle_w * document.duration_s, document.total_j)
    return f"Idle power, {quantity(idle_w, 'W')}, would take {percent(share)} in that time." if share else ""


def total_of(document: Timeline, joules: dict[str, float]) -> float:
    """The joules of all components of a timeline that share none."""
    return sum(joules[component.name] for component in document.components if component.part_of is None)


def by_energy(document: Timeline) -> list[Function]:
    """The functions of a timeline, those that take most first."""
    return sorted(document.functions, key=lambda function: -total_of(document, function.energy_j))


def outer_first(document: Timeline) -> list[Function]:
    """The functions of a timeline by what they take with all that they call."""
    return sorted(document.functions, key=lambda function: -total_of(document, function.inclusive_j))


def marks(function: Function) -> int:
    """What is not sure of a function's joules in a timeline."""
    return _function_marks(function, function.estimated)


def _function_marks(function: Function, is_estimated: bool) -> int:
    estimated = Mark.ESTIMATED if is_estimated else NONE
    missing = Mark.MISSING if function.unknown_s else NONE
    return int(estimated) | int(missing)


def blocks(document: Timeline, verbose: bool) -> Iterator[Block]:
    """A timeline, for a terminal and for Markdown; every function if `verbose`."""
    yield Sentence(f"{document.title} · {subject(document)}", Tone.QUIET)
    yield headline(document)
    if document.functions:
        yield functions(document, None if verbose else _FUNCTIONS)
    yield components(document)
    yield from trust(document)
    yield Notes(document.warnings)


def trust(document: Timeline) -> Iterator[Point]:
    """What slow samples and clocks that are apart do to the joules of functions in a timeline."""
    if not document.functions:
        return
    slow = [function.name for function in document.functions if function.estimated]
    worst = max(document.components, key=lambda component: component.moved_j_per_ms)
    texts = [f"A clock that is 1 ms off moves at most {quantity(worst.moved_j_per_ms, 'J')} between functions."]
    if slow:
        period = quantity(max(component.period_s for component in document.components), "s")
        functions = counted(len(slow), "function")
        texts.append(f"Samples come every {period}. Shorter than three of them, so ~ estimated: {functions}.")
    yield Point("Trust", " ".join(texts))


def functions(document: Timeline, limit: int | None, by_component: bool = True) -> Table:
    """Joules of a timeline by function and component, exclusive; and what a function takes with all it calls."""
    several = by_component and len(document.components) > 1
    names = [component.name for component in document.components] if several else []
    columns = [
        Column("function", "left"),
        Column("calls"),
        Column("time"),
        Column("energy"),
        Column(""),
        *(Column(name, from_width=100) for name in names),
        Column("above idle", from_width=100),
        Column("with callees"),
    ]
    ordered = by_energy(document)
    lines = [_function(document, function, names) for function in ordered[:limit]]
    left_out = and_more(len(ordered) - len(lines), "functions")
    outside = total_of(document, document.outside_j)
    cells: list[Cell] = [
        OUTSIDE,
        "",
        Quantity(document.outside_s, "s"),
        Quantity(outside, "J"),
        _share(document, outside),
    ]
    lines.append(Row([*cells, *(Quantity(document.outside_j[name], "J") for name in names), "", ""], total=True))
    return Table(columns, lines, left_out=left_out)


def _function(document: Timeline, function: Function, names: Sequence[str]) -> Row:
    unsure = marks(function)
    joules = total_of(document, function.energy_j)
    above = [function.above_idle_j[component.name] for component in document.components if component.part_of is None]
    above_j = None if None in above else sum(value or 0.0 for value in above)
    cells: list[Cell] = [
        Name(function.name, function.name),
        whole(function.calls),
        Quantity(function.time_s, "s"),
        Quantity(joules, "J", unsure),
        _share(document, joules),
        *(Quantity(function.energy_j[name], "J", unsure) for name in names),
        "" if above_j is None else Quantity(above_j, "J", unsure),
        Quantity(
            total_of(document, function.inclusive_j), "J", _function_marks(function, function.inclusive_estimated)
        ),
    ]
    return Row(cells)


def _share(document: Timeline, joules: float) -> Share:
    return Share(ratio(joules, document.total_j))


def components(document: Timeline) -> Table:
    """What each meter of a timeline saw."""
    columns = [*texts("component"), *numbers("energy", "mean", "idle", "samples every"), *texts("")]
    return Table(columns, [_component(component) for component in document.components])


def _component(component: Component) -> Row:
    marks = int(Mark.MISSING if component.unknown_s else NONE)
    remark = f"part of {component.part_of}" if component.part_of else ""
    idle: Cell = "not seen" if component.idle_w is None else Quantity(component.idle_w, "W")
    cells: list[Cell] = [
        component.name,
        Quantity(component.energy_j, "J", marks),
        Quantity(component.mean_w, "W"),
        idle,
    ]
    return Row([*cells, Quantity(component.period_s, "s"), remark])

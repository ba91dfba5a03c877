"""Rooflines as three panels over flop/B: speed, efficiency and power; kernels are dots below the lines of machines."""

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.labels import labels
from eprof.base.vocabulary import Nouns
from eprof.show.page import plot
from eprof.show.words.numbers import plain, quantity

_NAMED = 12  # dots: more of them have no names
_TAG, _TITLE = 12, 60
_PANELS = (
    ("Speed", "flop/s", "flop_per_s"),
    ("Energy efficiency", "flop/J", "flop_per_j"),
    ("Power", "W", "power_w"),
)
_POINTS = 193
_BINDS = 0.5  # of the speed that a limit allows: kernels that reach less are held back by something else
_BINDING = {True: ("memory", "fewer DRAM bytes"), False: ("arithmetic", "fewer or narrower flops")}

Lines = Callable[[float], tuple[float, float, float]]


class Curves(Struct, frozen=True):
    """A machine: its time balance in flop/B, and a function from flop/B to its limits in flop/s, flop/J and W."""

    balance: float
    lines: Lines


class Dot(Struct, frozen=True):
    """A kernel: its flop per DRAM byte, and its height in each panel. place: its number in the document.

    roofs: the heights that it cannot pass by itself, by panel, where these are known.
    """

    name: str
    intensity: float | None
    heights: Mapping[str, float | None]
    energy_j: float
    place: int | None = None
    roofs: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def is_drawable(self) -> bool:
        """Whether the kernel has a place in all three panels."""
        return bool(self.intensity) and all(self.heights.values())


def drawn(
    machines: Sequence[Curves],
    dots: Sequence[Dot],
    nouns: Nouns,
    span: tuple[float, float] | None = None,
) -> list[Markup]:
    """The HTML of three panels over flop/B: speed, efficiency and power. span: from where to where lines are drawn."""
    balances = [machine.balance for machine in machines]
    if span is None:
        around = [0.5, *balances, *(4 * balance for balance in balances)]
        axis = plot.axis([*around, *(dot.intensity for dot in dots if dot.intensity)], 2)
        span = axis.low, axis.high
    x = plot.Axis(*span)
    steps = {x.low * (x.high / x.low) ** (step / (_POINTS - 1)) for step in range(_POINTS)}
    grid = sorted(steps.union(balance for balance in balances if x.low < balance < x.high))
    curves: list[list[tuple[float, ...]]] = [
        [(intensity, *machine.lines(intensity)) for intensity in grid] for machine in machines
    ]
    tags = [*labels([dot.name for dot in dots[:_NAMED]], _TAG), *[""] * len(dots[_NAMED:])]
    names = labels([dot.name for dot in dots], _TITLE)
    largest = max((dot.energy_j for dot in dots), default=1.0) or 1.0
    made = []
    for place, (title, unit, key) in enumerate(_PANELS):
        lines = [
            plot.Line([(point[0], point[place + 1]) for point in points], kind % plot.STROKES)
            for kind, points in enumerate(curves)
        ]
        circles = []
        for dot, tag, name in zip(dots, tags, names, strict=True):
            height = dot.heights[key] or 0.0
            about = f"{name}: {quantity(height, unit)} at {plain(dot.intensity or 0.0)} flop/B"  # when pointed at
            area = dot.energy_j / largest
            circles.append(plot.Dot(dot.intensity or 0.0, height, area, tag, about, dot.place, dot.roofs.get(key)))
        heights = [y for line in lines for _, y in line.points] + [circle.y for circle in circles]
        heights += [circle.roof for circle in circles if circle.roof]
        panel = plot.Panel(title, unit, key, x, plot.axis(heights), lines, circles, balances)
        if key == "flop_per_s":  # the roofline itself
            panel = replace(panel, height=plot.LARGE, notes=_limits(curves))
        drawn_are = f"{len(lines)} lines and {len(dots)} {nouns.kernels}"
        spoken = f"{title} in {unit} against flop per DRAM byte, with {drawn_are}"
        made.append(plot.drawn(panel, spoken, named=len(dots) <= _NAMED))
    return made


def _limits(curves: Sequence[Sequence[tuple[float, ...]]]) -> list[plot.Note]:
    """Notes beside the roofline: the memory's B/s on the slope, flop/s on the roof; none for several machines."""
    if len(curves) > 1:
        return []
    points = curves[0]
    low, slow, high, fast = *points[0][:2], *points[-1][:2]
    slope = [point for point in points if math.isclose(point[1] / point[0], slow / low, rel_tol=1e-6)]
    middle = slope[len(slope) // 2][0]
    nearest = sorted(((point[0], point[1]) for point in slope), key=lambda point: abs(math.log(point[0] / middle)))
    memory = plot.Note(nearest, f"memory: {quantity(slow / low, 'B/s')}")
    return [memory, plot.Note([(high, fast)], f"arithmetic: {quantity(fast, 'flop/s')}", is_above=True)]

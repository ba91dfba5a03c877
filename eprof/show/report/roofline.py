"""The three panels of a roofline: speed, energy efficiency and power against intensity, with lines and kernels."""

import math
from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.labels import labels
from eprof.base.nouns import Nouns
from eprof.show.page import plot
from eprof.show.words.numbers import plain, quantity

NAMED = 12
_TAG, _TITLE = 12, 60
_PANELS = (
    ("Speed", "flop/s", "flop_per_s"),
    ("Energy efficiency", "flop/J", "flop_per_j"),
    ("Power", "W", "power_w"),
)
_POINTS = 193

Lines = Callable[[float], tuple[float, float, float]]


class Curves(Struct, frozen=True):
    """A machine: its time balance in flop/B, and flop/s, flop/J and W at an intensity."""

    balance: float
    lines: Lines


class Dot(Struct, frozen=True):
    """A kernel: its flop per DRAM byte and its height in each panel. place: where it is in the document.

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
        """Whether the kernel has a place in all three roofline panels."""
        return bool(self.intensity) and all(self.heights.values())


def drawn(
    machines: Sequence[Curves],
    dots: Sequence[Dot],
    nouns: Nouns,
    named: int = NAMED,
    span: tuple[float, float] | None = None,
) -> list[Markup]:
    """The three roofline panels with one x axis. span: from which to which flop/B the lines are known."""
    balances = [machine.balance for machine in machines]
    x = plot.Axis(*span) if span else _axis(balances, dots)
    steps = {x.low * (x.high / x.low) ** (step / (_POINTS - 1)) for step in range(_POINTS)}
    grid = sorted(steps.union(balance for balance in balances if x.low < balance < x.high))
    curves: list[list[tuple[float, ...]]] = [
        [(intensity, *machine.lines(intensity)) for intensity in grid] for machine in machines
    ]
    tags = [*labels([dot.name for dot in dots[:named]], _TAG), *[""] * len(dots[named:])]
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
            about = _title(name, dot, key, unit)
            area = dot.energy_j / largest
            circles.append(plot.Dot(dot.intensity or 0.0, height, area, tag, about, dot.place, dot.roofs.get(key)))
        heights = [y for line in lines for _, y in line.points] + [circle.y for circle in circles]
        heights += [circle.roof for circle in circles if circle.roof]
        panel = plot.Panel(title, unit, key, x, plot.axis(heights), lines, circles, balances)
        if key == "flop_per_s":  # the roofline itself
            panel = replace(panel, height=plot.LARGE, notes=_limits(curves) if len(machines) == 1 else ())
        drawn_are = f"{len(lines)} lines and {len(dots)} {nouns.kernels}"
        spoken = f"{title} in {unit} against flop per DRAM byte, with {drawn_are}"
        made.append(plot.drawn(panel, spoken, named=len(dots) <= named))
    return made


def _limits(curves: Sequence[Sequence[tuple[float, ...]]]) -> list[plot.Note]:
    """What limits a machine's speed, beside its roofline: bytes on the slope, flops on the roof."""
    points = curves[0]
    low, slow, high, fast = *points[0][:2], *points[-1][:2]
    slope = [point for point in points if math.isclose(point[1] / point[0], slow / low, rel_tol=1e-6)]
    middle = slope[len(slope) // 2]
    memory = plot.Note(middle[0], middle[1], f"memory: {quantity(slow / low, 'B/s')}")
    return [memory, plot.Note(high, fast, f"arithmetic: {quantity(fast, 'flop/s')}", is_above=True)]


def _axis(balances: Sequence[float], dots: Sequence[Dot]) -> plot.Axis:
    intensities = [dot.intensity for dot in dots if dot.intensity]
    return plot.axis([0.5, *balances, *(4 * balance for balance in balances), *intensities], 2)


def _title(name: str, dot: Dot, key: str, unit: str) -> str:
    """What a kernel's dot in a roofline panel says when pointed at."""
    height, intensity = quantity(dot.heights[key] or 0.0, unit), plain(dot.intensity or 0.0)
    return f"{name}: {height} at {intensity} flop/B"

"""Plots with logarithmic axes as inline SVG: lines, a dashed balance point, dots whose area says how much.

x and widths are in per cent, y in pixels, so that text keeps its size at every width.
"""

import math
from collections.abc import Iterable, Sequence
from functools import partial

from markupsafe import Markup
from msgspec import Struct

from eprof.show.page.svg import pct
from eprof.show.words.numbers import NARROW, plain, quantity

HEIGHT, _TOP, _BOTTOM = 210, 8, 24
_ROOM = 270.0  # pixels across a panel, for placing names
_LETTER = 6.6
STROKES = 8  # of lines, as report.css draws them


class Axis(Struct, frozen=True):
    """Values from `low` to `high` on a logarithmic scale."""

    low: float
    high: float

    def position(self, value: float) -> float:
        """Where a value is on the plot's axis: 0 at the low end, 1 at the high one."""
        return math.log(value / self.low) / math.log(self.high / self.low)

    @property
    def ticks(self) -> list[float]:
        """Ticks of the plot: powers of ten inside, some if there are many; 1, 2, 5 where there are hardly any."""
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        if last - first < 1:
            return self._between(first - 1, last, (1, 2, 5)) or self._between(first - 1, last, (1.5, 3, 4, 7))
        step = max(1, math.ceil((last - first) / 4))
        return [10.0**power for power in range(first, last + 1, step)]

    def _between(self, first: int, last: int, digits: Sequence[float]) -> list[float]:
        steps = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        inside = [step for step in steps if self.low <= step <= self.high]
        return inside if len(inside) > 1 or len(digits) > 3 else []


def axis(values: Sequence[float], room: float = 1.25) -> Axis:
    """An axis of a plot around some values above 0; at least a factor of four long."""
    low, high = min(values) / room, max(values) * room
    if high / low < 4:
        middle = math.sqrt(low * high)
        low, high = middle / 2, middle * 2
    return Axis(low, high)


class Line(Struct, frozen=True):
    """A line through points (x, y); `kind` numbers its colour and stroke."""

    points: Sequence[tuple[float, float]]
    kind: int = 0


class Dot(Struct, frozen=True):
    """A kernel: where it is, its share of the largest area, a short name if there is room, all of it in words.

    roof: a height that it cannot pass, drawn as a short bar.
    """

    x: float
    y: float
    share: float
    name: str
    title: str
    place: int | None = None
    roof: float | None = None


class Panel(Struct, frozen=True):
    """One plot. `balances`: flop/B of the dashed lines, one a line. key: what the script reads for further dots.

    below: what stands across.
    """

    title: str
    unit: str
    key: str
    x: Axis
    y: Axis
    lines: Sequence[Line]
    dots: Sequence[Dot]
    balances: Sequence[float] = ()
    below: str = "flop per DRAM byte"


def drawn(panel: Panel, spoken: str, *, named: bool = True) -> Markup:
    """A plot's panel as HTML: tick labels beside a fluid SVG. `spoken` says in words what is to be seen."""
    lines = [
        Markup('<svg x="{}" overflow="visible"><path class="balance l{}" d="M0 {}V{}"/></svg>').format(
            pct(100 * panel.x.position(balance)), kind % STROKES, _TOP, HEIGHT - _BOTTOM
        )
        for kind, balance in enumerate(panel.balances)
        if panel.x.low < balance < panel.x.high and balance not in panel.balances[:kind]
    ]
    return Markup(
        '<figure class="plot" role="group" aria-label="{}"><figcaption><b>{}</b> {}</figcaption>'
        '<svg class="ticks" width="46" height="{}" aria-hidden="true">{}</svg>'
        '<svg class="area" width="100%" height="{}" overflow="visible" data-plot="{}" data-x="{} {}" data-y="{} {}">'
        "{}</svg>"
        '<span class="axis">{}</span></figure>'
    ).format(
        spoken,
        panel.title,
        panel.unit,
        HEIGHT,
        _y_ticks(panel.y),
        HEIGHT,
        panel.key,
        f"{panel.x.low:.6g}",
        f"{panel.x.high:.6g}",
        f"{panel.y.low:.6g}",
        f"{panel.y.high:.6g}",
        Markup("").join([_grid(panel), _curves(panel), Markup("").join(lines), _dots(panel, named)]),
        panel.below,
    )


def keys(names: Iterable[str]) -> Markup:
    """Which line of the plot is which: the names of the kinds, in their order."""
    items = [
        Markup('<span><svg width="26" height="10"><path class="line l{}" d="M0 5H26"/></svg> {}</span> ').format(
            place % STROKES, name
        )
        for place, name in enumerate(names)
    ]
    return Markup('<p class="keys">{}</p>').format(Markup("").join(items))


def _y(panel_axis: Axis, value: float) -> float:
    """Pixels from the top of the plot."""
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - panel_axis.position(value))


def _tick(value: float) -> str:
    """The label of a plot's tick: a round number, without zeros behind the point."""
    text = quantity(value, "") if value >= 1000 else plain(value)
    number, gap, prefix = text.partition(NARROW)
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{gap}{prefix}"


def _y_ticks(y: Axis) -> Markup:
    return Markup("").join(
        Markup('<text x="40" y="{}" class="end">{}</text>').format(f"{_y(y, tick) + 4:.0f}", _tick(tick))
        for tick in y.ticks
    )


def _grid(panel: Panel) -> Markup:
    bottom = HEIGHT - _BOTTOM
    rows = [Markup('<path class="grid" d="M0 {}h9999"/>').format(f"{_y(panel.y, tick):.1f}") for tick in panel.y.ticks]
    columns = [
        Markup(
            '<svg x="{}" overflow="visible"><path class="grid" d="M0 {}V{}"/><text y="{}" class="mid">{}</text></svg>'
        ).format(pct(100 * panel.x.position(tick)), _TOP, bottom, HEIGHT - 8, _tick(tick))
        for tick in panel.x.ticks
    ]
    inner = Markup('<svg class="clip" width="100%" height="{}">{}</svg>').format(bottom + 1, Markup("").join(rows))
    return inner + Markup("").join(columns)


def _curves(panel: Panel) -> Markup:
    """The plot's lines, stretched with the width; their strokes are not."""
    paths = Markup("").join(
        Markup('<path class="line l{}" d="M{}"/>').format(
            line.kind, "L".join(f"{x:.1f} {y:.1f}" for x, y in _thinned(_placed(panel, line)))
        )
        for line in panel.lines
    )
    return Markup(
        '<svg y="{}" width="100%" height="{}" viewBox="0 0 100 100" preserveAspectRatio="none">{}</svg>'
    ).format(_TOP, HEIGHT - _TOP - _BOTTOM, paths)


_Points = list[tuple[float, float]]


def _placed(panel: Panel, line: Line) -> _Points:
    """The points of a plot's line in per cent of the width and of the height."""
    return [(100 * panel.x.position(x), 100 * (1 - panel.y.position(y))) for x, y in line.points]


def _thinned(points: _Points) -> _Points:
    """Points without which a plot's line would be off by more than 0.2 % of the height (Douglas and Peucker 1973)."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    off = [abs(y - (y0 + (y1 - y0) * (x - x0) / (x1 - x0))) if x1 > x0 else 0.0 for x, y in points]
    worst = max(range(len(points)), key=lambda place: off[place])
    if off[worst] < 0.2:
        return [points[0], points[-1]]
    return _thinned(points[: worst + 1])[:-1] + _thinned(points[worst:])


def _dots(panel: Panel, named: bool) -> Markup:
    """Circles of the plot, the largest below; names beside them where they hit neither dot nor name."""
    circles = []
    names = []
    taken = [_box(panel, dot) for dot in panel.dots]
    for dot in sorted(panel.dots, key=lambda dot: -dot.share):
        x, y, radius = panel.x.position(dot.x), _y(panel.y, dot.y), _radius(dot)
        kernel = "" if dot.place is None else Markup(' data-kernel="{}"').format(dot.place)
        circles.append(
            Markup('<circle class="dot" cx="{}" cy="{}" r="{}"{}><title>{}</title></circle>').format(
                pct(100 * x), f"{y:.1f}", f"{radius:.1f}", kernel, dot.title
            )
        )
        room = _room_for(dot, x * _ROOM, y, radius, taken) if named else None
        if room is not None:
            dx, dy, side = room
            names.append(
                Markup('<svg x="{}" overflow="visible"><text x="{}" y="{}" class="tag{}">{}</text></svg>').format(
                    pct(100 * x), f"{dx:.0f}", f"{y + dy:.0f}", side, dot.name
                )
            )
    return Markup("").join([*map(partial(_roof, panel), panel.dots), *circles, *names])


def _roof(panel: Panel, dot: Dot) -> Markup:
    """A short bar in the plot at what a kernel cannot pass; nothing where that is not known."""
    if dot.roof is None:
        return Markup("")
    return Markup(
        '<svg x="{}" overflow="visible"><path class="line" d="M-9 {}h18"><title>{}</title></path></svg>'
    ).format(
        pct(100 * panel.x.position(dot.x)), f"{_y(panel.y, dot.roof):.1f}", f"peak of the mix: {quantity(dot.roof, '')}"
    )


def _radius(dot: Dot) -> float:
    return 3 + 7 * math.sqrt(max(0.0, dot.share))


_Box = tuple[float, float, float, float]


def _box(panel: Panel, dot: Dot) -> _Box:
    x, y, radius = panel.x.position(dot.x) * _ROOM, _y(panel.y, dot.y), _radius(dot)
    return x - radius, y - radius, x + radius, y + radius


def _room_for(dot: Dot, x: float, y: float, radius: float, taken: list[_Box]) -> tuple[float, float, str] | None:
    """Where a dot's name goes: right, left, above or below; None if it would hit something or leave the plot."""
    width = _LETTER * len(dot.name)
    for dx, dy, side, left in (
        (radius + 3, 4, "", x + radius + 3),
        (-radius - 3, 4, " end", x - radius - 3 - width),
        (0, -radius - 4, " mid", x - width / 2),
        (0, radius + 12, " mid", x - width / 2),
    ):
        box = (left, y + dy - 10, left + width, y + dy + 2)
        inside = box[0] >= 0 and box[2] <= _ROOM and box[1] >= 0 and box[3] <= HEIGHT - _BOTTOM
        if inside and not any(_overlap(box, neighbour) for neighbour in taken):
            taken.append(box)
            return dx, dy, side
    return None


def _overlap(first: _Box, second: _Box) -> bool:
    is_beside = first[2] <= second[0] or second[2] <= first[0]
    is_above = first[3] <= second[1] or second[3] <= first[1]
    return not is_beside and not is_above

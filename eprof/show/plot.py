"""Plots with logarithmic axes as inline SVG: lines, a dashed balance point, dots whose area says how much.

x and widths are in per cent, y in pixels, so that text keeps its size at every width.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from eprof.base.text import when
from eprof.show.as_html import pct, piece
from eprof.show.numbers import NARROW, plain, quantity

HEIGHT, LARGE, _TOP, _BOTTOM = 210, 360, 8, 24
# Pixels across a panel, for placing names: from a phone on; on wide pages, where a large panel has names of its own.
_NARROW, _WIDE = (270.0, 400.0, 640.0), (640.0, 900.0, 1380.0)
_LETTER = 6.6
_SHORT = 3.0  # axes have finer ticks
STROKES = 8  # of lines, as report.css draws them


class Axis(Struct, frozen=True):
    """Values from `low` to `high` on a logarithmic scale. marked: the values of its ticks; without, round ones."""

    low: float
    high: float
    marked: Sequence[float] = ()

    def position(self, value: float) -> float:
        """The place of a value on the axis: 0 at the low end, 1 at the high one."""
        return math.log(value / self.low) / math.log(self.high / self.low)

    @property
    def ticks(self) -> list[float]:
        """Values of ticks: `marked`, else powers of ten, some of many; on a short axis 1, 2, 5 or finer."""
        if self.marked:
            return list(self.marked)
        if self.high < _SHORT * self.low:
            power = math.floor(math.log10(self.low))
            return self._between(power, power + 1, (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8))
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        if last - first < 1:
            few = self._between(first - 1, last, (1, 2, 5))
            if len(few) > 1:
                return few
            return self._between(first - 1, last, (1.5, 3, 4, 7))
        step = max(1, math.ceil((last - first) / 4))
        return [10.0**power for power in range(first, last + 1, step)]

    def _between(self, first: int, last: int, digits: Sequence[float]) -> list[float]:
        steps = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        return [step for step in steps if self.low <= step <= self.high]


def axis(values: Sequence[float], room: float = 1.25, least: float = 4.0) -> Axis:
    """A logarithmic axis around `values` (above 0), by a factor `room` each way; at least a factor `least` long."""
    low, high = min(values) / room, max(values) * room
    if high / low < least:
        middle = math.sqrt(low * high)
        low, high = middle / math.sqrt(least), middle * math.sqrt(least)
    return Axis(low, high)


class Line(Struct, frozen=True):
    """A line through points (x, y); `kind` numbers its colour and stroke."""

    points: Sequence[tuple[float, float]]
    kind: int = 0


class Dot(Struct, frozen=True):
    """A kernel as a circle: its place, its share of the largest area, a short name if there is room, a title in full.

    roof: a height that it cannot pass, drawn as a short bar. kind: the line whose colour it has.
    """

    x: float
    y: float
    share: float
    name: str
    title: str
    place: int | None = None
    roof: float | None = None
    kind: int = 0


class Note(Struct, frozen=True):
    """A text beside a line, at one of `points` (x, y) of it, the best first: below and right, or above and left."""

    points: Sequence[tuple[float, float]]
    text: str
    is_above: bool = False


class Panel(Struct, frozen=True):
    """One plot. balances: flop/B of dashed lines, one for each line. key: what the script reads for further dots.

    below: the label of the x axis. notes: texts beside lines.
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
    height: int = HEIGHT
    notes: Sequence[Note] = ()

    def top(self, value: float) -> float:
        """The place of a value on the y axis, in pixels from the top of the plot."""
        return _TOP + (self.height - _TOP - _BOTTOM) * (1 - self.y.position(value))


def panel_html(panel: Panel, spoken: str, *, named: bool = True) -> Markup:
    """A panel as HTML: SVG with tick labels beside it. spoken: what it shows, read aloud. named: dots have names."""
    lines = [
        Markup('<svg x="{}" overflow="visible"><path class="balance l{}" d="M0 {}V{}"/></svg>').format(
            pct(100 * panel.x.position(balance)), kind % STROKES, _TOP, panel.height - _BOTTOM
        )
        for kind, balance in enumerate(panel.balances)
        if panel.x.low < balance < panel.x.high and balance not in panel.balances[:kind]
    ]
    ticks = [
        Markup('<text x="40" y="{}" class="end">{}</text>').format(f"{panel.top(tick) + 4:.0f}", _tick(tick))
        for tick in panel.y.ticks
    ]
    size = when(panel.height > HEIGHT, " large")
    return Markup(
        '<figure class="plot{}" role="group" aria-label="{}"><figcaption><b>{}</b> {}</figcaption>'
        '<svg class="ticks" width="46" height="{}" aria-hidden="true">{}</svg>'
        '<svg class="area" width="100%" height="{}" overflow="visible" data-plot="{}" data-x="{} {}" data-y="{} {}">'
        "{}</svg>"
        '<span class="axis">{}</span></figure>'
    ).format(
        size,
        spoken,
        panel.title,
        panel.unit,
        panel.height,
        Markup("").join(ticks),
        panel.height,
        panel.key,
        f"{panel.x.low:.6g}",
        f"{panel.x.high:.6g}",
        f"{panel.y.low:.6g}",
        f"{panel.y.high:.6g}",
        Markup("").join([_grid(panel), _curves(panel), *lines, _drawn_dots(panel, named)]),
        panel.below,
    )


def keys(names: Iterable[str]) -> Markup:
    """The key of a plot as HTML: a sample of each line with its name, in order."""
    items = [
        Markup('<span><svg width="26" height="10"><path class="line l{}" d="M0 5H26"/></svg> {}</span> ').format(
            place % STROKES, name
        )
        for place, name in enumerate(names)
    ]
    return Markup('<p class="keys">{}</p>').format(Markup("").join(items))


def _tick(value: float) -> str:
    """The label of a plot's tick: a round number, without zeros behind the point."""
    text = plain(value)
    if value >= 1000 or value < 0.01:
        text = quantity(value, "")
    number, gap, prefix = text.partition(NARROW)
    if "." in number:
        number = number.rstrip("0").rstrip(".")
    return f"{number}{gap}{prefix}"


def _grid(panel: Panel) -> Markup:
    """The grid lines of a panel at the ticks of both axes, and the labels of the x axis, as SVG."""
    bottom = panel.height - _BOTTOM
    rows = [Markup('<path class="grid" d="M0 {}h9999"/>').format(f"{panel.top(tick):.1f}") for tick in panel.y.ticks]
    columns = [
        Markup(
            '<svg x="{}" overflow="visible"><path class="grid" d="M0 {}V{}"/><text y="{}" class="mid">{}</text></svg>'
        ).format(pct(100 * panel.x.position(tick)), _TOP, bottom, panel.height - 8, _tick(tick))
        for tick in panel.x.ticks
    ]
    inner = Markup('<svg class="clip" width="100%" height="{}">{}</svg>').format(bottom + 1, Markup("").join(rows))
    return inner + Markup("").join(columns)


def _curves(panel: Panel) -> Markup:
    """The plot's lines, stretched with the width; their strokes are not."""
    paths = []
    for line in panel.lines:
        # In per cent of the width and of the height.
        points = [(100 * panel.x.position(x), 100 * (1 - panel.y.position(y))) for x, y in line.points]
        drawn_as = "L".join(f"{x:.1f} {y:.1f}" for x, y in _thinned(points))
        paths.append(Markup('<path class="line l{}" d="M{}"/>').format(line.kind, drawn_as))
    return Markup(
        '<svg y="{}" width="100%" height="{}" viewBox="0 0 100 100" preserveAspectRatio="none">{}</svg>'
    ).format(_TOP, panel.height - _TOP - _BOTTOM, Markup("").join(paths))


_Points = list[tuple[float, float]]


def _thinned(points: _Points) -> _Points:
    """Drop points of a plot's line that move it by less than 0.2 % of the height (Douglas and Peucker 1973)."""
    (x0, y0), (x1, y1) = points[0], points[-1]
    off = [abs(y - (y0 + (y1 - y0) * (x - x0) / (x1 - x0))) if x1 > x0 else 0.0 for x, y in points]
    worst = max(range(len(points)), key=lambda place: off[place])
    if off[worst] < 0.2:
        return [points[0], points[-1]]
    return _thinned(points[: worst + 1])[:-1] + _thinned(points[worst:])


_Box = tuple[float, float, float, float]
_Tag = tuple[float, float, str]  # pixels right of a point and below it, and to which side the text runs
_LINE = 12  # pixels of a line of text, of which so many lie below its base
_BELOW_BASE = 2
_BETWEEN = 4  # pixels between lines of two texts, at least


class _Sheet:
    """A panel that is `width` pixels wide, and what is drawn on it so far."""

    def __init__(self, panel: Panel, width: float) -> None:
        self._panel = panel
        self._width = width
        self._taken: list[_Box] = []
        for dot in panel.dots:
            x, y = self._pixels(dot.x, dot.y)
            radius = _radius(dot)
            self._taken.append((x - radius, y - radius, x + radius, y + radius))
        self._on_lines = [self._pixels(*point) for line in panel.lines for point in line.points]
        self._balances = [width * panel.x.position(balance) for balance in panel.balances]

    def _pixels(self, x: float, y: float) -> tuple[float, float]:
        return self._width * self._panel.x.position(x), self._panel.top(y)

    def box(self, point: tuple[float, float], tag: _Tag, text: str) -> _Box:
        """The box of a text beside a point (x, y) of the panel."""
        x, y = self._pixels(*point)
        return _box(x + tag[0], y + tag[1], tag[2], text)

    def take(self, box: _Box) -> None:
        """Mark the box of a text as taken, and a little above and below: texts placed later keep off it."""
        left, top, right, bottom = box
        self._taken.append((left, top - _BETWEEN, right, bottom + _BETWEEN))

    def hits(self, box: _Box) -> bool:
        """Whether the box of a text leaves the plot, or lies on a dot or on a text placed before."""
        left, top, right, bottom = box
        is_inside = left >= 0 and right <= self._width and top >= 0 and bottom <= self._panel.height - _BOTTOM
        return not is_inside or any(
            left < other[2] and other[0] < right and top < other[3] and other[1] < bottom for other in self._taken
        )

    def strikes(self, box: _Box) -> bool:
        """Whether a line of the plot, or that of a balance, goes through the box of a text."""
        left, top, right, bottom = box
        is_on_line = any(left <= x <= right and top <= y <= bottom for x, y in self._on_lines)
        return is_on_line or any(left <= balance <= right for balance in self._balances)


class _Room:
    """The places of texts on a panel, the same at all its `widths` in pixels: off dots, off other texts, off lines.

    A note stands at the first of its points where its text hits nothing; at the first of all if there is none.
    """

    def __init__(self, panel: Panel, widths: Sequence[float]) -> None:
        self._sheets = [_Sheet(panel, width) for width in widths]
        self.notes = []
        for note in panel.notes:
            tag = _NOTED[note.is_above]
            free = (point for point in note.points if note.is_above or self._strikes(point, tag, note.text) == 0)
            point = next(free, None)
            if point is not None:
                self._take(point, tag, note.text)
            self.notes.append((note, point or note.points[0]))
        by_share = sorted((dot for dot in panel.dots if dot.name), key=lambda dot: -dot.share)
        self.names = {dot: self._beside(dot, may_be_struck=dot is by_share[0]) for dot in by_share}

    def _beside(self, dot: Dot, may_be_struck: bool) -> _Tag | None:
        """The place of a dot's name; None if it would hit a dot or a text everywhere, or leave the plot.

        may_be_struck: whether lines may go through it where they must, for the name of the largest dot.
        """
        point, free = (dot.x, dot.y), []
        for tag in _around(_radius(dot)):
            strikes = self._strikes(point, tag, dot.name)
            if strikes == 0 or may_be_struck and strikes is not None:
                free.append((strikes, tag))
        if not free:
            return None
        _, tag = min(free, key=lambda candidate: candidate[0])
        self._take(point, tag, dot.name)
        return tag

    def _strikes(self, point: tuple[float, float], tag: _Tag, text: str) -> int | None:
        """At how many widths lines go through a text; None: at some it hits a dot or a text, or leaves the plot."""
        boxes = [(sheet, sheet.box(point, tag, text)) for sheet in self._sheets]
        if any(sheet.hits(box) for sheet, box in boxes):
            return None
        return sum(sheet.strikes(box) for sheet, box in boxes)

    def _take(self, point: tuple[float, float], tag: _Tag, text: str) -> None:
        for sheet in self._sheets:
            sheet.take(sheet.box(point, tag, text))


def _around(radius: float) -> Iterator[_Tag]:
    """Yields the places of a name around a dot, the nearest first, then a line of text farther off, and two."""
    aslant = 0.7 * radius
    yield from ((radius + 3, 4, ""), (-radius - 3, 4, " end"))
    for farther in (0, _LINE, 2 * _LINE):
        yield (0, -radius - 4 - farther, " mid")
        yield (0, radius + _LINE + farther, " mid")
        for side, right in (("", aslant + 3), (" end", -aslant - 3)):
            yield (right, aslant + 10 + farther, side)
            yield (right, -aslant - 2 - farther, side)


_NOTED: dict[bool, _Tag] = {False: (9, 12, ""), True: (0, -6, " end")}


def _box(x: float, base: float, side: str, text: str) -> _Box:
    """The box of a text (left, top, right, bottom) that begins, has its middle or ends at a point, by `side`."""
    width = _LETTER * len(text)
    left = x - {"": 0.0, " mid": width / 2, " end": width}[side]
    return left, base - _LINE + _BELOW_BASE, left + width, base + _BELOW_BASE


def _drawn_dots(panel: Panel, named: bool) -> Markup:
    """Draw a panel's dots as SVG, large ones beneath small ones, its notes, and if `named` the dots' names that fit."""
    roofs, circles, texts = [], [], []
    for dot in sorted(panel.dots, key=lambda dot: -dot.share):
        x, y = pct(100 * panel.x.position(dot.x)), panel.top(dot.y)
        if dot.roof is not None:
            roof = Markup(
                '<svg x="{}" overflow="visible"><path class="roof" d="M-9 {}h18"><title>{}</title></path></svg>'
            )
            roofs.append(roof.format(x, f"{panel.top(dot.roof):.1f}", f"peak of the mix: {quantity(dot.roof, '')}"))
        kernel = piece(dot.place is not None, ' data-kernel="{}"', dot.place)
        circle = Markup('<circle class="dot d{}" cx="{}" cy="{}" r="{}"{}><title>{}</title></circle>')
        circles.append(circle.format(dot.kind, x, f"{y:.1f}", f"{_radius(dot):.1f}", kernel, dot.title))
    rooms = {"": _Room(panel, _NARROW)}
    if panel.height > HEIGHT:
        rooms = {" narrow": rooms[""], " wide": _Room(panel, _WIDE)}
    for only, room in rooms.items():
        for dot, tag in room.names.items():
            if named and tag:
                texts.append(_text(panel, (dot.x, dot.y), tag, f"tag{tag[2]}{only}", dot.name))
        for note, point in room.notes:
            tag = _NOTED[note.is_above]
            texts.append(_text(panel, point, tag, f"note{tag[2]}{only}", note.text))
    return Markup("").join([*roofs, *circles, *texts])


def _text(panel: Panel, point: tuple[float, float], tag: _Tag, kind: str, text: str) -> Markup:
    x, y = pct(100 * panel.x.position(point[0])), panel.top(point[1])
    drawn = Markup('<svg x="{}" overflow="visible"><text x="{}" y="{}" class="{}">{}</text></svg>')
    return drawn.format(x, f"{tag[0]:.0f}", f"{y + tag[1]:.0f}", kind, text)


def _radius(dot: Dot) -> float:
    return 3 + 7 * math.sqrt(max(0.0, dot.share))

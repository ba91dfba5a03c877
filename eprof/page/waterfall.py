"""The waterfall of a difference: OLD, a step for each part of the change, NEW. Each bar starts where the last ended."""

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from eprof.compare.schema import Document, Side
from eprof.page.drawing import change as drawn_change
from eprof.page.svg import pct, whisker
from eprof.words.badges import written
from eprof.words.cells import Change, signed_quantity
from eprof.words.diff import bits, is_shown, moving, step_label
from eprof.words.intervals import cell, known
from eprof.words.names import cut
from eprof.words.numbers import quantity, signed_percent

_NAME = 38
# Steps smaller than this against the largest are drawn together as one row: alone, nobody would see them.
_DRAWN = 0.002
# A waterfall does not start at 0 if its levels differ by less than this share of the highest.
_ZOOM = 0.25


class Bar(Struct, frozen=True):
    """A row of the waterfall. kind: "total", "less", "more", "unclear" (the change does not stand out of the noise)."""

    name: str
    kind: str
    picture: Markup
    amount: Markup
    share: str
    interval: str = ""


class Axis(Struct, frozen=True):
    """Where the axis starts, and how many J its whole width is."""

    start: float
    width: float

    def place(self, joules: float) -> float:
        """Where an energy is drawn, in per cent."""
        return 100 * (joules - self.start) / self.width

    @property
    def note(self) -> str:
        """A sentence if it does not start at 0."""
        return f"The axis starts at {quantity(self.start, 'J')}, not at 0." if self.start else ""


def axis(levels: Sequence[float]) -> Axis:
    """The axis for the levels that a waterfall runs through."""
    low, high = min(levels), max(levels)
    start = min(0.0, low)
    if low > 0 and high - low < _ZOOM * high:
        start = max(0.0, low - 0.15 * (high - low))
    return Axis(start, (high - start) or 1.0)


class _Move(Struct, frozen=True):
    """A step as it is drawn: from one level to another."""

    label: str
    change_j: float
    marks: int
    ends: tuple[float, float] | None = None


def waterfall(document: Document) -> tuple[list[Bar], Axis] | None:
    """The bars and their axis; None if there is no change to draw."""
    moves = _moves(document)
    old, new = document.old.compared_j, document.new.compared_j
    if not moves or old is None or new is None:
        return None
    levels = [old]
    for move in moves:
        levels.append(levels[-1] + move.change_j)
    reached = [
        level + end for level, move in zip(levels, moves, strict=False) if move.ends is not None for end in move.ends
    ]
    scale = axis([*levels, *reached, new])

    stands_out = is_shown(document)
    bars = [_total("OLD", document.old, old, scale)]
    bars += [_step(move, level, scale, old, stands_out) for move, level in zip(moves, levels[:-1], strict=True)]
    return [*bars, _total("NEW", document.new, new, scale)], scale


def _moves(document: Document) -> list[_Move]:
    """The steps, those too small to be seen in one."""
    moves = [
        _Move(step_label(step), step.change_j, bits(step.marks), known(step.interval_j)) for step in moving(document)
    ]
    most = max((abs(move.change_j) for move in moves), default=0.0)
    small = [move for move in moves if abs(move.change_j) < _DRAWN * most]
    if len(small) < 2:
        return moves
    marks = 0
    for move in small:
        marks |= move.marks
    together = _Move(f"{len(small)} smaller parts", sum(move.change_j for move in small), marks)
    return [*(move for move in moves if move not in small), together]


def _total(label: str, side: Side, joules: float, scale: Axis) -> Bar:
    size = quantity(joules, "J")
    bar = Markup('<rect class="w-total" y="2" width="{}" height="14"/>').format(pct(scale.place(joules)))
    return Bar(f"{label} · {cut(side.name, _NAME)}", "total", _svg(f"{label}: {size}", bar), written(size), "")


def _step(move: _Move, level: float, scale: Axis, old: float, stands_out: bool) -> Bar:
    kind = _kind(move, stands_out)
    left = scale.place(min(level, level + move.change_j))
    width = 100 * abs(move.change_j) / scale.width
    share = signed_percent(move.change_j / old) if old else ""
    join = Markup('<line class="w-join" x1="{0}" x2="{0}" y1="-13" y2="16"/>').format(pct(scale.place(level)))
    bar = Markup('<rect class="w-{}" x="{}" y="2" width="{}" height="14"/>').format(kind, pct(left), pct(width))
    interval = cell(move.ends, "J", signed=True)
    spoken = [signed_quantity(move.change_j, "J"), interval, f"{share} of OLD" if share else ""]
    label = f"{move.label}: {', '.join(filter(None, spoken))}"
    picture = _svg(label, join + bar + _whisker(move, level, scale))
    return Bar(move.label, kind, picture, drawn_change(Change(move.change_j, "J", move.marks)), share, interval)


def _whisker(move: _Move, level: float, scale: Axis) -> Markup:
    """The interval of a step, at the end that it reaches."""
    if move.ends is None:
        return Markup("")
    low, high = (scale.place(level + end) for end in move.ends)
    return whisker((low, high))


def _kind(move: _Move, stands_out: bool) -> str:
    if not stands_out:
        return "unclear"
    return "less" if move.change_j < 0 else "more"


def _svg(label: str, content: Markup) -> Markup:
    return Markup('<svg class="bar" width="100%" height="18" role="img" aria-label="{}">{}</svg>').format(
        label, content
    )

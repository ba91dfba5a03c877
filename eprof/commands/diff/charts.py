"""What changed, as bars from a common zero: less to the left, more to the right, and the whole change below."""

from markupsafe import Markup
from msgspec import Struct

from eprof.base.text import phrase
from eprof.commands.diff.schema import Document
from eprof.commands.diff.words.sentences import is_shown, moving, step_label
from eprof.show.page.drawing import change as drawn_change
from eprof.show.page.svg import pct, whisker
from eprof.show.words.badges import bits
from eprof.show.words.cells import Change, signed_quantity
from eprof.show.words.intervals import cell, known
from eprof.show.words.numbers import percent


class Bar(Struct, frozen=True):
    """A row of the chart. kind: "less", "more", "unclear" (the change does not stand out of the noise)."""

    name: str
    kind: str
    picture: Markup
    amount: Markup
    share: str
    interval: str = ""
    is_total: bool = False


class _Part(Struct, frozen=True):
    """A part of the change, with the ends of its interval."""

    label: str
    change_j: float
    marks: int
    ends: tuple[float, float] | None


def bars(document: Document) -> list[Bar]:
    """The chart of a difference: a bar for each part of the change, largest first, and one for the whole; or none."""
    if document.change_j is None or not moving(document):
        return []
    parts = [
        _Part(step_label(step, document.nouns), step.change_j, bits(step.marks), known(step.interval_j))
        for step in moving(document)
    ]
    whole = _Part("Change", document.change_j, bits(document.marks), known(document.interval_j))
    reached = [0.0, *(joules for part in (*parts, whole) for joules in (part.change_j, *(part.ends or ())))]
    low, high = min(reached), max(reached)
    width = (high - low) or 1.0
    stands_out = is_shown(document)
    return [_bar(part, whole, (-low / width, width), stands_out) for part in (*parts, whole)]


def _bar(part: _Part, whole: _Part, axis: tuple[float, float], stands_out: bool) -> Bar:
    """A bar of the chart of a difference; axis: where zero is, as a share of the width, and how many J the width is."""
    zero, width_j = axis

    def place(joules: float) -> float:
        return 100 * (zero + joules / width_j)

    kind = "less" if part.change_j < 0 else "more"
    kind = kind if stands_out else "unclear"
    left, right = sorted((place(0.0), place(part.change_j)))
    share = percent(part.change_j / whole.change_j) if whole.change_j else ""
    interval = cell(part.ends, "J", signed=True)
    spoken = [signed_quantity(part.change_j, "J"), interval, phrase("{} of the change", share)]
    drawn = [
        Markup('<line class="w-join" x1="{0}" x2="{0}" y1="-4" y2="22"/>').format(pct(place(0.0))),
        Markup('<rect class="w-{}" x="{}" y="2" width="{}" height="14"/>').format(kind, pct(left), pct(right - left)),
        whisker(None if part.ends is None else (place(part.ends[0]), place(part.ends[1]))),
    ]
    picture = Markup('<svg class="bar" width="100%" height="18" role="img" aria-label="{}">{}</svg>').format(
        f"{part.label}: {', '.join(filter(None, spoken))}", Markup("").join(drawn)
    )
    amount = drawn_change(Change(part.change_j, "J", part.marks))
    return Bar(part.label, kind, picture, amount, share, interval, part is whole)

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


def bars(document: Document) -> list[Bar]:
    """The chart of a difference: a bar for each part of the change, largest first, and one for the whole; or none."""
    steps = moving(document)
    if document.change_j is None or not steps:
        return []
    parts = [
        (step_label(step, document.nouns), step.change_j, bits(step.marks), known(step.interval_j)) for step in steps
    ]
    parts.append(("Change", document.change_j, bits(document.marks), known(document.interval_j)))
    reached = [0.0, *(joules for _, change_j, _, ends in parts for joules in (change_j, *(ends or ())))]
    low = min(reached)
    width_j = (max(reached) - low) or 1.0

    def place(joules: float) -> float:
        return float(100 * (-low / width_j + joules / width_j))

    drawn: list[Bar] = []
    for label, change_j, marks, ends in parts:
        kind = "less" if change_j < 0 else "more"
        if not is_shown(document):
            kind = "unclear"
        left, right = sorted((place(0.0), place(change_j)))
        share = percent(change_j / document.change_j) if document.change_j else ""
        interval = cell(ends, "J", signed=True)
        spoken = [signed_quantity(change_j, "J"), interval, phrase("{} of the change", share)]
        shapes = [
            Markup('<line class="w-join" x1="{0}" x2="{0}" y1="-4" y2="22"/>').format(pct(place(0.0))),
            Markup('<rect class="w-{}" x="{}" y="2" width="{}" height="14"/>').format(
                kind, pct(left), pct(right - left)
            ),
            whisker(None if ends is None else (place(ends[0]), place(ends[1]))),
        ]
        picture = Markup('<svg class="bar" width="100%" height="18" role="img" aria-label="{}">{}</svg>').format(
            f"{label}: {', '.join(filter(None, spoken))}", Markup("").join(shapes)
        )
        amount = drawn_change(Change(change_j, "J", marks))
        drawn.append(Bar(label, kind, picture, amount, share, interval, is_total=len(drawn) == len(steps)))
    return drawn

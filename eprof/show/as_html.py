"""Blocks of `eprof.show.blocks` as HTML, with small charts as inline SVG.

Cells are here, what is around them in `reports/blocks.html`. Charts have x and width in percent, so that text keeps its
size at every width.
"""

from collections.abc import Iterable

from markupsafe import Markup, escape
from msgspec import Struct

from eprof.base.optional import mapped
from eprof.base.text import by_sign, capital, cut, when
from eprof.base.vocabulary import GROUPS
from eprof.show.amounts import AT_LEAST, MISSING, bits, letters, pills, quantity_of, signs, written
from eprof.show.blocks import (
    Bar,
    Block,
    Cell,
    Change,
    Factor,
    Medium,
    Name,
    Quantity,
    Share,
    Stack,
    Table,
    Tag,
    Written,
    plain_text,
    signed_quantity,
)
from eprof.show.numbers import quantity, whole

GAP_FROM = 1.2  # per cent of the width; gaps between narrower segments would eat them


class Segment(Struct, frozen=True):
    """A piece of a bar: its group (the colour), where it starts and how wide it is in per cent, and its label."""

    group: str
    start: float
    width: float
    label: str = ""
    value: str = ""
    marks: int = 0


def pct(number: float) -> str:
    """A percentage as an SVG length: 12.5 -> "12.5%"."""
    return f"{number:.3f}".rstrip("0").rstrip(".") + "%"


def piece(holds: object, form: str, *values: object) -> Markup:
    """Fill the HTML template `form` with the escaped `values` if `holds` is true; else empty markup."""
    if not holds:
        return Markup("")
    return Markup(form).format(*values)  # noqa: S704  forms are ours; values are escaped


def laid(parts: Iterable[tuple[str, float]], scale: float) -> list[Segment]:
    """Lay out (group, value) pairs side by side as segments of an SVG bar; a value of `scale` fills its width."""
    segments = []
    start = 0.0
    for group, value in parts:
        if value > 0:
            width = 100 * value / scale
            segments.append(Segment(group, start, width))
            start += width
    return segments


def rect(segment: Segment, *, gaps: bool = True) -> Markup:
    """One segment of an SVG bar as a rectangle; the style says how high.

    gaps: with a line of the card's colour around a wide segment.
    """
    gap = when(gaps and segment.width > GAP_FROM, " g")
    # Rounded at the edges, so that neighbours still touch.
    start, end = round(segment.start, 2), round(segment.start + segment.width, 2)
    drawn = Markup('<rect class="c-{}{}" x="{:g}%" width="{:g}%"/>')
    return drawn.format(segment.group, gap, start, round(end - start, 2))


def bar(
    segments: list[Segment], label: str, *, open_end: bool = False, interval: tuple[float, float] | None = None
) -> Markup:
    """A stacked bar in SVG. open_end: dashes at its end say that something is missing there. interval: in per cent."""
    body = Markup("").join(rect(segment) for segment in segments)
    end = max((segment.start + segment.width for segment in segments), default=0.0)
    return Markup('<svg class="bar" height="18" role="img" aria-label="{}">{}{}</svg>').format(
        label, body + whisker(interval), when(open_end, _open_end(min(end, 99.0), 18))
    )


def whisker(interval: tuple[float, float] | None) -> Markup:
    """A thin SVG line over a bar, from one end of an interval to the other, in per cent of the width."""
    if interval is None:
        return Markup("")
    low, high = pct(interval[0]), pct(interval[1])
    line = Markup('<rect class="wh" x="{}" y="8" width="{}" height="2"/>').format(low, pct(interval[1] - interval[0]))
    ends = Markup("").join(
        Markup('<rect class="wh" x="{}" y="5" width="2" height="8"/>').format(x) for x in (low, high)
    )
    return line + ends


def _open_end(end: float, height: int) -> Markup:
    """A pointer behind a bar's end: what is missing would go on there."""
    pointer = Markup('<svg x="{}" width="9" height="{}"><path class="open" d="M2 {}l6 4-6 4z"/></svg>')
    return pointer.format(pct(end), height, height / 2 - 4)


def mini(segments: list[Segment]) -> Markup:
    """The small SVG bar in a table cell; the cell's text says the same."""
    body = Markup("").join(rect(segment, gaps=False) for segment in segments)
    return Markup('<svg class="mini" width="60" height="8" aria-hidden="true">{}</svg>').format(body)


def share_bar(group: str, filled: float | None, outlined: float | None, label: str) -> Markup:
    """The bar of a count: filled to its share of the energy, outlined to its share of the counts, per cent of width."""
    fill = piece(filled, '<rect class="c-{} edge" width="{:.2f}%"/>', group, filled)
    line = piece(outlined, '<rect class="outline" width="{:.2f}%"/>', outlined)
    return Markup('<svg class="bar" height="18" role="img" aria-label="{}">{}{}</svg>').format(label, fill, line)


def labelled(segments: list[Segment], label: str, *, open_end: bool = False) -> Markup:
    """A tall SVG bar with names in its segments: on all pages where they fit on a phone, else on wide ones, or not.

    open_end: with dashes beside its end, as `bar` draws them.
    """
    body = Markup("")
    for segment in segments:
        body += rect(segment)
        width = 14 + 7.4 * max(len(segment.label), len(segment.value) + 1)
        if not segment.label or segment.width * 6.8 < width:
            continue
        fits_a_phone = segment.width >= 15 and segment.width * 3.0 >= width
        raised = piece(segment.marks, '<tspan class="m" dy="-4">{}</tspan>', signs(segment.marks))
        body += Markup(
            '<svg x="{}" overflow="visible"><text class="t-{}{}"><tspan x="8" y="18" class="b">{}</tspan>'
            '<tspan x="8" y="34">{}</tspan>{}</text></svg>'
        ).format(
            pct(segment.start), segment.group, when(not fits_a_phone, " wide"), segment.label, segment.value, raised
        )
    end = when(open_end, _open_end(100.0, 42))
    return Markup('<svg class="bar tall" height="42" role="img" aria-label="{}">{}{}</svg>').format(label, body, end)


def wedge(start: float) -> Markup:
    """The light SVG wedge from the part above constant power to the enlarged bar below it."""
    return Markup(
        '<svg class="wedge" width="100%" height="26" viewBox="0 0 100 100" preserveAspectRatio="none" '
        'aria-hidden="true">'
        '<path d="M{} 0H100V100H0Z"/></svg>'
    ).format(f"{start:.3f}")


def braces(boundary: float) -> Markup:
    """Two SVG lines under the enlarged bar: computation from 0 to `boundary` per cent, data movement from there on."""
    rest = 100 - boundary
    warm = piece(boundary > 0, '<rect class="warm" width="{}" height="3"/>', pct(boundary))
    cold = piece(rest > 0, '<rect class="cold" x="{}" width="{}" height="3"/>', pct(boundary), pct(rest))
    return Markup('<svg class="bar braces" height="3" aria-hidden="true">{}{}</svg>').format(warm, cold)


_NAME, _NOTE = 46, 120


def cell(content: Cell) -> Markup:
    """A cell of a table as HTML."""
    match content:
        case Quantity():
            return written(mapped(quantity, content.value, content.unit), content.marks)
        case Change():
            return change(content)
        case Bar():
            width = 50 * min(abs(content.value), 1.0)
            left, kind = 50.0, "more"
            if content.value < 0:
                left, kind = 50 - width, "less"
            return Markup(
                '<svg class="mini" width="80" height="10" aria-hidden="true">'
                '<line class="w-join" x1="50%" x2="50%" y1="0" y2="10"/>'
                '<rect class="w-{}" x="{}" y="1" width="{}" height="8"/></svg>'
            ).format(kind, pct(left), pct(width))
        case Stack():
            if not content.scale:
                return Markup("")
            spoken = ", ".join(
                f"{GROUPS[group]} {quantity(value, 'J')}" for group, value in content.joules.items() if value
            )
            return bar(laid(content.joules.items(), content.scale), f"{content.name}: {spoken}")
        case Share() if content.marks and content.value is not None:
            return written(plain_text(content), content.marks, bound=False)
        case Tag():
            return Markup('<span class="pill">{}</span>').format(content.text)
        case Name():
            text = escape(content.text)
            if content.place is not None:
                text = Markup('<button type="button" class="name" data-kernel="{}" title="{}">{}</button>').format(
                    content.place, content.full, text
                )
            note = content.note.replace("`", "")
            return text + piece(note, '<small title="{}">{}</small>', note, cut(note, _NOTE))
    return escape(plain_text(content))


def change(content: Change) -> Markup:
    """A change as HTML with its sign, and a triangle for its direction."""
    if content.value is None:
        return written(None, content.marks)
    if content.value == 0:
        return Markup("0")
    return Markup('<span class="{}"><i aria-hidden="true">{}</i> {}{}</span>{}').format(
        by_sign(content.value, "less", "more"),
        by_sign(content.value, "▼", "▲"),
        when(content.marks & MISSING, AT_LEAST),
        signed_quantity(content.value, content.unit),
        letters(content.marks & ~MISSING),
    )


def sort_value(content: Cell) -> str:
    """The number that a browsable table sorts a cell by, as text; empty where it has none."""
    if isinstance(content, Quantity | Change | Share | Factor | Written) and content.value is not None:
        return f"{content.value:.9g}"
    return ""


def on_page(table: Table) -> Table:
    """The table with the columns that a page shows, and names short enough for it."""
    return table.on(Medium.PAGE).fitted(_NAME)


def heading(label: str) -> str:
    """The label of a column as a page writes it; units and names of machines stay as they are."""
    if "/" in label or any(letter.isdigit() for letter in label):
        return label
    return capital(label)


def kind(block: Block | Cell | Markup) -> str:
    """The name of a block's or cell's type, by which the template chooses; "Markup" for what is drawn already."""
    return type(block).__name__


FUNCTIONS = {
    "cell": cell,
    "heading": heading,
    "kind": kind,
    "letters": letters,
    "on_page": on_page,
    "pills": pills,
    "sort_value": sort_value,
    "MISSING": MISSING,
    "bits": bits,
    "quantity": quantity,
    "quantity_of": quantity_of,
    "whole": whole,
}

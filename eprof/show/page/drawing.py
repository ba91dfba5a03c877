"""Draws the blocks of `eprof.show.words.blocks` as HTML: cells here, what is around them in `reports/blocks.html`."""

from markupsafe import Markup, escape

from eprof.base.text import capital, cut, when
from eprof.base.vocabulary import GROUPS
from eprof.show.page import svg
from eprof.show.words.badges import AT_LEAST, MISSING, letters, pills, written
from eprof.show.words.blocks import Block, Medium, Table
from eprof.show.words.cells import (
    Bar,
    Cell,
    Change,
    Factor,
    Name,
    Quantity,
    Share,
    Stack,
    Tag,
    Written,
    plain_text,
    signed_quantity,
)
from eprof.show.words.numbers import quantity

_NAME, _NOTE = 46, 120


def cell(content: Cell) -> Markup:
    """A cell of a table as HTML."""
    match content:
        case Quantity():
            number = None if content.value is None else quantity(content.value, content.unit)
            return written(number, content.marks)
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
            ).format(kind, svg.pct(left), svg.pct(width))
        case Stack():
            if not content.scale:
                return Markup("")
            spoken = ", ".join(
                f"{GROUPS[group]} {quantity(value, 'J')}" for group, value in content.joules.items() if value
            )
            return svg.bar(svg.laid(content.joules.items(), content.scale), f"{content.name}: {spoken}")
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
            return text + svg.piece(note, '<small title="{}">{}</small>', note, cut(note, _NOTE))
    return escape(plain_text(content))


def change(content: Change) -> Markup:
    """A change as HTML with its sign, and a triangle for its direction."""
    if content.value is None:
        return written(None, content.marks)
    if content.value == 0:
        return Markup("0")
    sign, kind = ("▲", "more") if content.value > 0 else ("▼", "less")
    return Markup('<span class="{}"><i aria-hidden="true">{}</i> {}{}</span>{}').format(
        kind,
        sign,
        when(content.marks & MISSING, AT_LEAST),
        signed_quantity(content.value, content.unit),
        letters(content.marks & ~MISSING),
    )


def sort_value(content: Cell) -> str:
    """What a browsable HTML table sorts a cell by; nothing where there is no number."""
    if isinstance(content, Quantity | Change | Share | Factor | Written) and content.value is not None:
        return f"{content.value:.9g}"
    return ""


def on_page(table: Table) -> Table:
    """The table with the columns of a page."""
    return table.on(Medium.PAGE).fitted(_NAME)


def heading(label: str) -> str:
    """The label of a column as a page writes it; units and names of machines stay as they are."""
    is_name = "/" in label or any(letter.isdigit() for letter in label)
    return label if is_name else capital(label)


def kind(block: Block | Cell | Markup) -> str:
    """Which block or cell it is, for the HTML template; Markup, a chart, is drawn already."""
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
}

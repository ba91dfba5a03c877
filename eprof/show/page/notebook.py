"""Blocks as a cell of a notebook, without scripts or styles of its own.

Notebooks keep only tags and style attributes of what they show, and github.com not even these: without them it is plain
tables.
"""

import re
from collections.abc import Iterable
from functools import cache

from markupsafe import Markup

from eprof.base.text import cut, visible
from eprof.show.page.as_html import pct, piece
from eprof.show.page.frame import asset
from eprof.show.words.blocks import Block, Headline, Legend, Medium, Notes, Sentence, Table
from eprof.show.words.cells import Bar, Cell, legend, plain_text

_NAME = 60
_WIDTH = 100  # columns of a terminal that has as much room


def cell(blocks: Iterable[Block | Markup]) -> str:
    """Blocks as the HTML of a notebook's cell."""
    return visible(Markup("<div>{}</div>").format(Markup("\n").join(map(_block, blocks))))


def _block(block: Block | Markup) -> Markup:
    match block:
        case Headline():
            return Markup("<p><b>{}</b><br>{}</p>").format(block.text, block.lead)
        case Sentence():
            return Markup("<p>{}</p>").format(block.text)
        case Legend():
            return Markup("<p><small>{}</small></p>").format(legend(block.marks))
        case Notes() if block.texts:
            items = Markup("").join(Markup("<li>{}</li>").format(text) for text in block.texts)
            number = len(block.texts)
            return Markup("<details><summary>{} {}{}</summary><ol>{}</ol></details>").format(
                number, block.noun, "s"[: number - 1], items
            )
        case Table():
            table = block.on(Medium.TERMINAL, _WIDTH)
            labels = Markup("").join(Markup("<th>{}</th>").format(column.label) for column in table.columns)
            rows = []
            for name, *others in (row.cells for row in table.rows):
                head = Markup('<th title="{}" style="text-align:left">{}</th>')
                first = head.format(getattr(name, "full", ""), cut(plain_text(name), _NAME))
                rows.append(Markup("<tr>{}{}</tr>").format(first, Markup("").join(map(_cell, others))))
            below = piece(table.left_out, "<p><small>{}</small></p>", table.left_out)
            return Markup("<table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table>{}").format(
                labels, Markup("\n").join(rows), below
            )
        case Markup():
            return block
    return Markup("")


def _cell(cell: Cell) -> Markup:
    if not isinstance(cell, Bar):
        return Markup("<td>{}</td>").format(plain_text(cell))
    half = 50 * min(abs(cell.value), 1.0)
    start, color = 50.0, "warm"
    if cell.value < 0:
        start, color = 50 - half, "cold"
    style = f"margin-left:{pct(start)};width:{pct(half)};background-color:{colors()[color]}"
    return Markup('<td><div style="width:100px"><div style="height:10px;{}"></div></div></td>').format(style)


@cache
def colors() -> dict[str, str]:
    """Colours as "#rrggbb" by group of counts, alike on light and dark ground: those of pages on dark ground."""
    named = r'(?:\[class\*="-(\w+)"\]\s*\{\s*--c|--(\w+))'  # a group's own rule, or a colour that several share
    colours = re.findall(named + r":\s*(?:(#\w+)|light-dark\(#\w+,\s*(#\w+)\))", asset("report.css"))
    return {group or name: plain or dark for group, name, plain, dark in colours}

"""A result in a notebook's cell: headline, bar and a short table, without scripts or styles of its own.

Notebooks keep only tags and style attributes of what they show, and github.com not even these: without them it is plain
tables.
"""

import re
from collections.abc import Iterable
from functools import cache

from markupsafe import Markup

from eprof.base.text import cut, visible
from eprof.base.vocabulary import GROUPS
from eprof.commands.diff.difference import Difference
from eprof.commands.diff.schema import Document
from eprof.commands.diff.words import sentences as diff_words
from eprof.commands.diff.words import tables as diff_tables
from eprof.commands.diff.words import trust as diff_trust
from eprof.profile import document as documents
from eprof.profile.profile import Energy, Profile
from eprof.show.page.shell import asset
from eprof.show.page.svg import pct
from eprof.show.report.headline import headline
from eprof.show.report.tables import kernel_table
from eprof.show.report.view import View
from eprof.show.words.blocks import Block, Headline, Legend, Medium, Notes, Sentence, Table
from eprof.show.words.cells import Bar, Cell, Name, legend, plain_text
from eprof.show.words.numbers import percent

_KERNELS = 8
_NAME = 60
_WIDTH = 100  # columns of a terminal that has as much room


def html(result: Profile | Energy | Difference) -> str:
    """A result as a cell of a notebook; a profile with the prices that are taken by default."""
    if isinstance(result, Difference):
        return _difference(result.typed)
    return _report(result.energy() if isinstance(result, Profile) else result)


def _report(energy: Energy) -> str:
    """A report in a cell of a notebook."""
    view = View(documents.document(energy))
    kernels = kernel_table(view, _KERNELS)
    marks = Legend(view.marks if view.costs else 0)
    return _drawn([headline(view), _bar(view), kernels, marks, Notes(view.document.warnings, "warning")])


def _difference(document: Document) -> str:
    """A difference in a cell of a notebook."""
    document = diff_words.answered(document)
    blocks: list[Block | Markup] = []
    if unlike := diff_trust.unlike(document):
        blocks.append(Sentence(unlike))
    blocks.append(diff_words.headline(document))
    if document.steps and not document.is_zero:
        blocks.append(diff_tables.steps(document))
    blocks += [diff_tables.kernels(document, _KERNELS), diff_words.legend(document), Notes(document.warnings)]
    return _drawn(blocks)


def _drawn(blocks: Iterable[Block | Markup]) -> str:
    return visible(Markup("<div>{}</div>").format(Markup("\n").join(map(_block, blocks))))


def _block(block: Block | Markup) -> Markup:
    """A block in a cell of a notebook."""
    match block:
        case Headline():
            return Markup("<p><b>{}</b><br>{}</p>").format(block.text, block.lead)
        case Sentence():
            return Markup("<p>{}</p>").format(block.text)
        case Legend():
            return Markup("<p><small>{}</small></p>").format(legend(block.marks))
        case Notes() if block.texts:
            return _notes(block)
        case Table():
            return _table(block.on(Medium.TERMINAL, _WIDTH))
    return block if isinstance(block, Markup) else Markup("")


def _notes(notes: Notes) -> Markup:
    """Notes in a cell of a notebook, folded away, but for how many there are."""
    items = Markup("").join(Markup("<li>{}</li>").format(text) for text in notes.texts)
    number = len(notes.texts)
    return Markup("<details><summary>{} {}{}</summary><ol>{}</ol></details>").format(
        number, notes.noun, "s"[: number - 1], items
    )


def _table(table: Table) -> Markup:
    """A table in a cell of a notebook."""
    labels = Markup("").join(Markup("<th>{}</th>").format(column.label) for column in table.columns)
    rows = Markup("\n").join(map(_notebook_row, (row.cells for row in table.rows)))
    below = Markup("<p><small>{}</small></p>").format(table.left_out) if table.left_out else ""
    return Markup("<table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table>{}").format(labels, rows, below)


def _notebook_row(cells: Iterable[Cell]) -> Markup:
    name, *others = cells
    full = name.full if isinstance(name, Name) else ""
    first = Markup('<th title="{}" style="text-align:left">{}</th>').format(full, cut(plain_text(name), _NAME))
    return Markup("<tr>{}{}</tr>").format(first, Markup("").join(map(_cell, others)))


def _cell(cell: Cell) -> Markup:
    """A table's cell in a notebook."""
    if not isinstance(cell, Bar):
        return Markup("<td>{}</td>").format(plain_text(cell))
    half = 50 * min(abs(cell.value), 1.0)
    start, color = (50 - half, "cold") if cell.value < 0 else (50, "warm")
    style = f"margin-left:{pct(start)};width:{pct(half)};background-color:{_colors()[color]}"
    return Markup('<td><div style="width:100px"><div style="height:10px;{}"></div></div></td>').format(style)


def _bar(view: View) -> Markup:
    """Where the energy goes, as a bar with its legend in a notebook; nothing where no energy is known."""
    joules = {group: amount.value for group, amount in view.groups.items() if amount.value}
    whole = sum(joules.values())
    if not whole:
        return Markup("")
    colors = _colors()
    pieces, labels = [], []
    for group, value in joules.items():
        style = f"background-color:{colors[group]}"
        pieces.append(Markup('<span style="{};width:{}"></span>').format(style, pct(100 * value / whole)))
        label = f"{GROUPS[group]} {percent(value / whole)}"
        labels.append(Markup('<span style="{}">&emsp;</span> {}').format(style, label))
    return Markup('<div style="display:flex;height:14px;max-width:60em">{}</div><p><small>{}</small></p>').format(
        Markup("").join(pieces), Markup(" &ensp; ").join(labels)
    )


@cache
def _colors() -> dict[str, str]:
    """The colours of groups of counts in a notebook, on light and dark ground alike: the pages' on dark ground."""
    colours = re.findall(r"--(\w+):\s*(?:(#\w+)|light-dark\(#\w+,\s*(#\w+)\))", asset("report.css"))
    return {name: plain or dark for name, plain, dark in colours}

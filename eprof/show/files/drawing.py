"""Draws the blocks of `eprof.show.words.blocks` as Markdown, for a pull request or a notebook."""

from collections.abc import Iterable, Iterator
from itertools import accumulate

from eprof.base.text import counted, in_code, in_markdown
from eprof.show.words.blocks import Block, Headline, Legend, Medium, Notes, Point, Row, Sentence, Table, Verdict
from eprof.show.words.cells import Cell, Name, legend, plain_text

_NAME = 60
_NOTES = 40_000  # characters: a comment takes 65,536
_RULES = {"left": "---", "right": "---:", "center": ":---:"}


def markdown(heading: str, blocks: Iterable[Block]) -> bytes:
    """Blocks as a Markdown file: its heading, then the blocks. Verdicts that follow each other are one list."""
    text = heading
    previous: Block | None = None
    for block in blocks:
        drawn = "\n".join(_lines(block)).rstrip()
        if drawn:
            is_list = isinstance(block, Verdict) and isinstance(previous, Verdict)
            text += ("\n" if is_list else "\n\n") + drawn
            previous = block
    return (text + "\n").encode("utf-8", "backslashreplace")


def _lines(block: Block) -> Iterator[str]:
    match block:
        case Headline():
            yield f"**{in_markdown(block.text)}** {in_markdown(block.lead)}"
        case Sentence():
            yield in_markdown(block.text)
        case Point():
            yield f"**{block.label}:** {in_markdown(block.text)}"
        case Verdict():
            yield f"- {'✅' if block.passed else '❌'} {in_markdown(block.text)}"
        case Table():
            yield from _table(block.on(Medium.MARKDOWN).fitted(_NAME))
        case Legend():
            yield legend(block.marks)
        case Notes():
            if block.texts:
                yield f"<details><summary>{counted(len(block.texts), block.noun)}</summary>"
                yield ""
                lines = [f"- {in_markdown(note)}" for note in block.texts]
                ends = accumulate(map(len, lines))
                shown = [line for line, end in zip(lines, ends, strict=True) if end <= _NOTES]
                yield from shown
                if len(shown) < len(lines):
                    yield f"- and {counted(len(lines) - len(shown), f'more {block.noun}')} in the JSON"
                yield ""
                yield "</details>"


def _table(table: Table) -> Iterator[str]:
    if table.title:
        yield from (in_markdown(table.title), "")
    yield _line(in_markdown(column.label) for column in table.columns)
    yield "|" + "|".join(_RULES[column.align] for column in table.columns) + "|"
    yield from (_row(row) for row in table.rows)
    if table.left_out:
        yield _line([in_markdown(table.left_out), *("" for _ in table.columns[1:])])
    if table.note:
        yield from ("", in_markdown(table.note))


def _row(row: Row) -> str:
    cells = [_cell(cell) for cell in row.cells]
    return _line(f"**{cell}**" if row.total and cell else cell for cell in cells)


def _line(cells: Iterable[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


def _cell(cell: Cell) -> str:
    if not isinstance(cell, Name):
        return in_markdown(plain_text(cell))
    note = f" ({in_markdown(cell.note)})" if cell.note else ""
    return in_code(cell.text) + note

"""A difference as JSON, as Markdown for a pull request, and as a cell of a notebook."""

from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup

from eprof.base.text import counted, cut, in_code
from eprof.commands.diff import answer
from eprof.commands.diff import tables as diff_tables
from eprof.commands.diff import words as diff_words
from eprof.commands.diff.schema import Document
from eprof.show import export, html_page
from eprof.show.blocks import Block, Notes, Sentence, quiet
from eprof.show.export import markdown

if TYPE_CHECKING:
    from eprof.commands.diff.compare import Difference

# What keeps the longest comment below 65,536 characters.
_KERNELS, _GATES, _NOTES = 20, 20, 20
_NAME, _LETTERS = 80, 600
_WHERE = "in the JSON and on the page"


def to_json(document: Document) -> bytes:
    """A difference as JSON, UTF-8, a line a kernel, so that text tools and diffs stay usable."""
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return export.to_json(plain)


def to_markdown(document: Document) -> bytes:
    """A difference as Markdown for a pull request, within 65,536 characters: answer, gates, parts, kernels, notes."""
    heading = f"### Energy: {in_code(cut(document.old.name, _NAME))} → {in_code(cut(document.new.name, _NAME))}"
    document = answer.answered(document)
    blocks: list[Block] = [
        Sentence(diff_words.unlike(document)),
        answer.headline(document),
        quiet(diff_words.trust(document)),
    ]
    # What did not pass first.
    verdicts = sorted(diff_words.verdicts(document), key=lambda verdict: verdict.passed is True)
    blocks += verdicts[:_GATES]
    if len(verdicts) > _GATES:
        blocks.append(Sentence(f"And {counted(len(verdicts) - _GATES, 'more gate')}, {_WHERE}."))
    document = diff_words.unmarked(document)
    if diff_words.moving(document):
        blocks.append(diff_tables.steps(document))
    blocks += [diff_tables.kernels(document, _KERNELS), Sentence(diff_words.noise(document))]
    blocks += map(Sentence, diff_words.beside(document))
    notes = [cut(text, _LETTERS) for text in document.warnings[:_NOTES]]
    if rest := document.warnings[_NOTES:]:
        notes.append(f"And {counted(len(rest), 'more note')}, {_WHERE}.")
    return markdown(heading, [*blocks, diff_words.legend(document), Notes(notes)])


def html(difference: "Difference") -> str:
    """A difference as a cell of a notebook."""
    document = answer.answered(difference.typed)
    blocks: list[Block | Markup] = []
    if unlike := diff_words.unlike(document):
        blocks.append(Sentence(unlike))
    blocks.append(answer.headline(document))
    if diff_words.moving(document):
        blocks.append(diff_tables.steps(document))
    blocks += [diff_tables.kernels(document, 8), diff_words.legend(document), Notes(document.warnings)]
    return html_page.notebook_cell(blocks)

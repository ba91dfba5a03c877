"""A difference as JSON, as the table of a CSV, as Markdown for a pull request, and as a cell of a notebook."""

import math
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from eprof.base.text import counted, cut, in_code
from eprof.base.vocabulary import COUNTS, mark_names
from eprof.commands.diff import answer, words
from eprof.commands.diff.causes import parts_of
from eprof.commands.diff.changes import Changes
from eprof.commands.diff.schema import Document
from eprof.show import html_page
from eprof.show.blocks import Block, Notes, Sentence, quiet
from eprof.show.export import markdown

if TYPE_CHECKING:
    import pandas as pd


# What keeps the longest comment below 65,536 characters.
_KERNELS, _GATES, _NOTES = 20, 20, 20
_NAME, _LETTERS = 80, 600
# The columns of the CSV.
_NAMES = ("kernel_old", "kernel_new", "status", "match", "score")
_PART = ("what", "kind", "because", "unit", "old", "new", "old_j", "new_j", "change_j")
_NUMBERS = ("score", "old", "new", "old_j", "new_j", "change_j")
_WHERE = "in the JSON and on the page"


def to_markdown(document: Document) -> bytes:
    """A difference as Markdown for a pull request, within 65,536 characters: answer, gates, parts, kernels, notes."""
    heading = f"### Energy: {in_code(cut(document.old.name, _NAME))} → {in_code(cut(document.new.name, _NAME))}"
    document = answer.answered(document)
    blocks: list[Block] = [
        Sentence(words.unlike(document)),
        answer.headline(document),
        quiet(words.trust(document)),
    ]
    # What did not pass first.
    verdicts = sorted(words.verdicts(document), key=lambda verdict: verdict.passed is True)
    blocks += verdicts[:_GATES]
    if len(verdicts) > _GATES:
        blocks.append(Sentence(f"And {counted(len(verdicts) - _GATES, 'more gate')}, {_WHERE}."))
    document = words.unmarked(document)
    if words.moving(document):
        blocks.append(words.steps_table(document))
    blocks += [words.kernels_table(document, _KERNELS), Sentence(words.noise(document))]
    blocks += map(Sentence, words.beside(document))
    notes = [cut(text, _LETTERS) for text in document.warnings[:_NOTES]]
    if rest := document.warnings[_NOTES:]:
        notes.append(f"And {counted(len(rest), 'more note')}, {_WHERE}.")
    return markdown(heading, [*blocks, words.legend(document), Notes(notes)])


def html(difference: Any) -> str:
    """A `Difference` as HTML for a cell of a notebook: answer, steps, the first kernels, warnings."""
    document = answer.answered(difference.typed)
    blocks: list[Block | Markup] = []
    if unlike := words.unlike(document):
        blocks.append(Sentence(unlike))
    blocks.append(answer.headline(document))
    if words.moving(document):
        blocks.append(words.steps_table(document))
    blocks += [words.kernels_table(document, 8), words.legend(document), Notes(document.warnings)]
    return html_page.notebook_cell(blocks)


def frame(changes: Changes) -> "pd.DataFrame":
    """The table of the CSV: a row for each part of each kernel's change, with both names, what, why, counts and joules.

    Words that were counted but have no energy to compare have rows too, without `change_j`.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for row, pair in enumerate(changes.matches):
        status = str(changes.statuses[row])
        names_of_both = [kernel and kernel.name for kernel in changes.kernels[row]]
        head = dict(zip(_NAMES, (*names_of_both, status, pair.how, pair.score), strict=True))
        parts = parts_of(changes, [row], None, status)
        for part in parts:
            rows.append(head | {key: getattr(part, key) for key in _PART} | {"marks": " ".join(part.marks)})
        words = {part.what for part in parts}
        for column, count in enumerate(COUNTS.values()):
            old, new = changes.old.number[row, column], changes.new.number[row, column]
            if count.name in words or (old == 0 and new == 0) or (math.isnan(old) and math.isnan(new)):
                continue
            marks = mark_names(int(changes.old.counted[row, column] | changes.new.counted[row, column]))
            counted = {"what": count.name, "kind": count.family, "unit": count.unit, "old": old, "new": new}
            rows.append(head | counted | {"marks": " ".join(marks)})
    # Object columns, because names in logs may hold what is no text to Arrow; numbers become numbers again.
    columns = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in (*_NAMES, *_PART, "marks")}
    return pd.DataFrame(columns).astype(dict.fromkeys(_NUMBERS, "float64"))

"""A difference in a notebook: headline, what made it up, and a short table."""

from markupsafe import Markup

from eprof.commands.diff.difference import Difference
from eprof.commands.diff.words import sentences as diff_words
from eprof.commands.diff.words import tables as diff_tables
from eprof.commands.diff.words import trust as diff_trust
from eprof.show.page import notebook
from eprof.show.words.blocks import Block, Notes, Sentence

_KERNELS = 8


def html(difference: Difference) -> str:
    """A difference as a cell of a notebook."""
    document = diff_words.answered(difference.typed)
    blocks: list[Block | Markup] = []
    if unlike := diff_trust.unlike(document):
        blocks.append(Sentence(unlike))
    blocks.append(diff_words.headline(document))
    if document.steps and not document.is_zero:
        blocks.append(diff_tables.steps(document))
    blocks += [diff_tables.kernels(document, _KERNELS), diff_words.legend(document), Notes(document.warnings)]
    return notebook.cell(blocks)

"""A report as a file: JSON, Markdown."""

from collections.abc import Mapping
from typing import Any

from eprof.base.text import in_markdown
from eprof.profile import schema
from eprof.show.files.export import markdown, to_json
from eprof.show.report.headline import headline
from eprof.show.report.levers import what_to_try
from eprof.show.report.tables import kernel_table, operator_table, split_table
from eprof.show.report.trust import trust
from eprof.show.report.view import View
from eprof.show.words import costs as costs_words
from eprof.show.words.blocks import Block, Notes, Sentence, Tone

__all__ = ["to_json", "to_markdown"]


def to_markdown(document: schema.Profile | Mapping[str, Any], limit: int = 50) -> bytes:
    """A report as Markdown for a pull request or a notebook: the headline, the split, the kernels, the warnings."""
    view = View(document)
    heading = f"## {in_markdown(view.document.title)}"
    blocks: list[Block] = [headline(view)]
    if view.costs is not None:
        blocks.append(Sentence(f"Costs: {costs_words.priced(view.costs)}.", Tone.QUIET))
    notes = Notes(view.document.warnings, "warning")
    operators = [operator_table(view, limit)] if view.document.operators else []
    return markdown(
        heading,
        [*blocks, what_to_try(view), trust(view), split_table(view), *operators, kernel_table(view, limit), notes],
    )

"""A difference as files: JSON, and Markdown for a pull request."""

from collections.abc import Iterator
from typing import Any

import msgspec

from eprof.base.text import in_code
from eprof.compare.schema import Document
from eprof.files import export
from eprof.files.drawing import markdown
from eprof.words import costs as costs_words
from eprof.words import diff as diff_words
from eprof.words import diff_tables
from eprof.words.blocks import Block, Notes, Sentence, Tone

_KERNELS = 20


def to_json(document: Document) -> bytes:
    """The document as JSON, UTF-8, a line a kernel, so that text tools and diffs stay usable."""
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return export.to_json(plain)


def to_markdown(document: Document) -> bytes:
    """For a pull request: the sentence, the gates, what changed, the kernels, the notes folded away."""
    heading = f"### Energy: {in_code(document.old.name)} → {in_code(document.new.name)}"
    return markdown(heading, _blocks(document))


def _blocks(document: Document) -> Iterator[Block]:
    words = diff_words.words(document)
    yield diff_words.headline(document)
    priced = [costs_words.priced(side.costs) for side in (document.old, document.new) if side.costs is not None]
    if priced:
        yield Sentence(f"Costs: {', '.join(dict.fromkeys(priced))}.", Tone.QUIET)
    yield from diff_words.verdicts(document)
    if document.steps and not document.is_zero:
        yield diff_tables.steps(document)
    yield diff_tables.kernels(document, _KERNELS)
    if words.noise:
        yield Sentence(words.noise)
    if document.change_j:
        yield Sentence(words.model)
    yield diff_words.legend(document)
    yield Notes(document.warnings)

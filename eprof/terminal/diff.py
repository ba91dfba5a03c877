"""A difference on the terminal: the headline, OLD beside NEW, what changed, kernels, the model's reading, notes."""

from collections.abc import Iterator

from eprof.compare.schema import Document, Side
from eprof.terminal import drawing
from eprof.words import costs as costs_words
from eprof.words import diff as diff_words
from eprof.words import diff_tables
from eprof.words.blocks import Block, Notes, Sentence, Tone

_KERNELS = 10


def show(document: Document, verbose: bool = False) -> None:
    """Print a difference on standard output; every kernel, count and note if `verbose`."""
    drawing.show(_blocks(document, verbose), verbose)


def text(document: Document, verbose: bool = False, width: int = 110) -> str:
    """The same as plain text of `width` columns."""
    return drawing.text(_blocks(document, verbose), verbose, width)


def _blocks(document: Document, verbose: bool) -> Iterator[Block]:
    words = diff_words.words(document)
    yield Sentence(f"{_subject(document.old)} → {_subject(document.new)}", Tone.QUIET)
    yield diff_words.headline(document)
    if words.noise:
        yield Sentence(words.noise)
    yield diff_tables.sides(document)
    if document.steps and not document.is_zero:
        yield diff_tables.steps(document)
    yield diff_tables.kernels(document, None if verbose else _KERNELS)
    if verbose or not (document.change_j or document.is_zero):
        counts = diff_tables.counts(document)
        if counts.rows:
            yield counts
    if document.change_j:
        yield Sentence(words.model, Tone.QUIET)
    yield diff_words.legend(document)
    yield from diff_words.verdicts(document)
    yield Notes(document.warnings)


def _subject(side: Side) -> str:
    devices = ", ".join(dict.fromkeys(device.name or "GPU not named" for device in side.devices))
    if side.costs is None:
        return f"{side.name} ({devices})"
    return f"{side.name} ({devices}, costs {costs_words.priced(side.costs)})"

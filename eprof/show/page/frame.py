"""The frame of a page of headings and blocks: a validation, clocks, a history, scaling, messages, a timeline."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from markupsafe import Markup
from msgspec.structs import replace

from eprof.base.text import visible
from eprof.commands.comm.schema import Comm
from eprof.commands.history.schema import History
from eprof.commands.scale.schema import Scale
from eprof.commands.timeline.schema import Timeline
from eprof.commands.tune.schema import Tune
from eprof.commands.validate.schema import Validation
from eprof.show.page.frame import Figure
from eprof.show.page.shell import filled, templates
from eprof.show.words.blocks import Block, Headline, Section, Sentence, Table, Tone, Verdict
from eprof.show.words.numbers import utc

Document: TypeAlias = Comm | History | Scale | Timeline | Tune | Validation


def page(
    document: Document,
    kind: str,
    subtitle: Sequence[str],
    headline: Headline,
    figures: Iterable[Figure],
    sections: Iterable[Section],
    verdicts: Sequence[Verdict] = (),
) -> str:
    """A page of headings and blocks in its frame: one self-contained HTML file.

    kind: the command; subtitle: what stands beside the title, before the time.
    """
    text = filled(
        "validation.html",
        ["report.css", "diff.css", "validation.css"],
        ["diff.js"],
        title=document.title,
        kind=kind,
        subtitle=" · ".join([*subtitle, utc(document.created_utc)]),
        headline=headline,
        verdicts=verdicts,
        figures=list(figures),
        sections=list(sections),
    )
    # Our own files hold no such characters, so that only names change.
    return visible(text)


def method(document: Document, parts: Mapping[str, Sequence[str]], notes: Sequence[str]) -> Section:
    """The last section of a framed page: how the numbers came to be, then the notes, the command and the version."""
    command = " ".join(document.command_line)
    parts = {
        **parts,
        "Notes": notes,
        "Command": [command],
        "Made by": [f"eprof {document.eprof}, {document.schema}"],
    }
    known = {heading: sentences for heading, sentences in parts.items() if any(sentences)}
    drawn = templates().get_template("validation_method.html").render(parts=known)
    return Section("method", "Method", "Method and provenance", [Markup(drawn)])  # noqa: S704  escaped there


def card(anchor: str, link: str, heading: str, *blocks: Block | str) -> Section:
    """A section of a framed page, without sentences that say nothing and titles of tables that repeat its own."""
    filled = [block for block in blocks if not isinstance(block, Sentence) or block.text]
    return Section(anchor, link, heading, [_under(block, (link, heading)) for block in filled])


def _under(block: Block | str, said: Sequence[str]) -> Block | str:
    """A block of a framed page below a heading: a table's title that the heading said is not said again."""
    if isinstance(block, Table) and block.title in said:
        return replace(block, title="")
    return block


def quiet(text: str) -> Sentence:
    """What explains a chart or table in a framed page, below it."""
    return Sentence(text, Tone.QUIET)

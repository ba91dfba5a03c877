"""The frame of a page of headings and blocks: a validation, clocks, a history, scaling, messages, a timeline."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.text import visible, when
from eprof.show.page.shell import filled, templates
from eprof.show.page.svg import piece
from eprof.show.words.badges import MISSING
from eprof.show.words.blocks import Block, Headline, Section, Sentence, Table, Tone, Verdict
from eprof.show.words.cells import HeatCell
from eprof.show.words.numbers import NARROW, utc


class Document(Protocol):
    """What a framed page needs of a document: where it comes from."""

    @property
    def title(self) -> str:
        """What it is about."""

    @property
    def schema(self) -> str:
        """The form of the document: "eprof.tune/1"."""

    @property
    def eprof(self) -> str:
        """The version of eprof that made it."""

    @property
    def created_utc(self) -> str:
        """When it was made."""

    @property
    def command_line(self) -> Sequence[str]:
        """The command that made it."""


class Figure(Struct, frozen=True):
    """A label, a number in large digits, its unit and note in small ones, and its marks."""

    label: str
    value: str
    note: str = ""
    marks: int = 0

    @property
    def digits(self) -> str:
        """The number of a key figure without its unit."""
        return self.value.removesuffix(NARROW + self.unit)

    @property
    def unit(self) -> str:
        """The unit of a key figure without its number."""
        return when(self.known, self.value.partition(NARROW)[2])

    @property
    def lower(self) -> bool:
        """Whether the number of a key figure is a lower bound."""
        return self.known and bool(self.marks & MISSING)

    @property
    def signs(self) -> int:
        """The marks raised behind the number of a key figure; "at least" stands in front of it."""
        return self.known * (self.marks & ~MISSING)

    @property
    def known(self) -> bool:
        """Whether a key figure has a number."""
        return self.value[:1].isdigit() or self.value[:1] in "+−<>"


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


# ------------------------------------------------------------------------------------------------------ maps by clocks


def energy_map(cells: Mapping[tuple[float, float], HeatCell]) -> Markup:
    """A heat map of energy by clocks."""
    return heat_table({clocks: _cell(cell) for clocks, cell in cells.items()})


def _cell(cell: HeatCell) -> Markup:
    kinds = ["no" if cell.step is None else f"h{cell.step}"]
    if cell.is_now:
        kinds.append("now")
    if not cell.is_allowed:
        kinds.append("off")
    sign = piece(cell.sign, " <b>{}</b>", cell.sign.replace("*", "★"))
    title = piece(cell.title, ' title="{}"', cell.title)
    return Markup('<td class="{}"{}>{}{}</td>').format(" ".join(kinds), title, cell.text, sign)


def heat_table(cells: Mapping[tuple[float, float], Markup]) -> Markup:
    """A heat map of cells by (core MHz, memory MHz): core clocks across, memory clocks down, highest on top."""
    cores = sorted({core for core, _ in cells})
    memories = sorted({memory for _, memory in cells}, reverse=True)
    nothing = Markup('<td class="no"></td>')
    rows = [(memory, [cells.get((core, memory), nothing) for core in cores]) for memory in memories]
    drawn = templates().get_template("validation_heat.html").render(cores=cores, rows=rows)
    return Markup(drawn)  # noqa: S704  escaped there

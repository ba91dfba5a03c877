"""HTML pages: a template of `reports/` filled into one safe file, the frame of pages, notebooks' cells.

eprof's own words are explained where they first stand and at the end; names show what nobody would see in them. The
frame of a page of headings and blocks is here too: a validation, clocks, a history, scaling, messages, a timeline.
"""

import base64
import contextlib
import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Protocol, TypeVar

import msgspec
from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.resources import cache_folder, cache_refusal, folder
from eprof.base.text import cut, visible, when
from eprof.show import as_html
from eprof.show.amounts import MISSING
from eprof.show.as_html import pct, piece
from eprof.show.blocks import (
    Bar,
    Block,
    Cell,
    Headline,
    Legend,
    Medium,
    Notes,
    Section,
    Sentence,
    Table,
    legend,
    plain_text,
)
from eprof.show.numbers import NARROW, utc

_TEMPLATES = "templates"
# What is no running text.
_SILENT = {"script", "style", "title", "svg", "code", "pre", "button", "nav", "a", "textarea", "summary", "abbr"}
_TAG = re.compile(r"(<[^<>]*>)")
Masked = TypeVar("Masked", bound=Mapping[str, Any] | msgspec.Struct)
_ASCII = bytes(range(128))


def filled(template: str, styles: Sequence[str], scripts: Sequence[str], **content: Any) -> str:
    """The HTML of a page from its template; one self-contained file.

    styles, scripts: files of `reports/`, in their order on the page.
    """
    style = "".join(map(asset, styles))
    script = "".join(map(asset, scripts))
    page = templates().get_template(template)
    policy = (
        f"default-src 'none'; script-src '{_sha256(script)}'; style-src '{_sha256(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    text = page.render(
        policy=policy,
        style=Markup(style),  # noqa: S704  our own files, and hashed
        script=Markup(script),  # noqa: S704
        **content,
    )
    return explained(text.encode("utf-8", "replace").decode("utf-8"))


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache
def asset(name: str) -> str:
    """The text of a file of `reports/` with LF line ends, as browsers hash it; code and styles without spare spaces."""
    text = (folder("reports") / name).read_text(encoding="utf-8").replace("\r\n", "\n")
    if name.endswith(".html"):
        return text
    lines = [line.strip() for line in text.split("\n")]
    if name.endswith(".css"):
        return _squeezed("".join(lines), r"[{};,]|(?<=:)")
    code = [line for line in lines if line and not line.startswith("//")]
    return _squeezed("\n".join(code), r"[=<>&|?:,;{}()]|[*/+-](?=[^+-])")


def _squeezed(text: str, signs: str) -> str:
    """A style or script without the spaces around what `signs` matches, but for those in strings.

    Line ends stay: they may end a statement.
    """
    pieces = re.compile(rf"""("(?:[^"\\\n]|\\.)*")|[ ]*({signs})[ ]*""")
    return pieces.sub(lambda piece: piece[1] or piece[2], text)


@lru_cache
def templates() -> Environment:
    """The page templates of `reports/`, with what draws cells and marks."""
    environment = Environment(
        loader=FunctionLoader(asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=_compiled(),
    )
    environment.globals.update(as_html.FUNCTIONS)
    return environment


class _Kept(FileSystemBytecodeCache):
    """A cache of compiled templates in a folder; where that cannot be written to, nothing new is kept."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template, if there is room and permission."""
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def _compiled() -> FileSystemBytecodeCache | None:
    """The cache of compiled templates, as compiling them takes half of a report; None: there is no safe folder.

    What lies there is run, so the folder must be this user's alone.
    """
    place = cache_folder()
    if place is None:
        return None
    place = place / _TEMPLATES
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_mine = cache_refusal(place.parent) is None and cache_refusal(place) is None
    except OSError:
        return None
    if not is_mine:
        return None
    return _Kept(str(place))


@lru_cache
def words() -> dict[str, str]:
    """The glossary of pages, term -> what it means (reports/glossary.toml)."""
    return tomllib.loads((folder("reports") / "glossary.toml").read_text(encoding="utf-8"))


def explained(page: str) -> str:
    """Add explanations of glossary terms to a page's HTML: to each where it first stands, and a list at the end."""
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, words()))})\b", re.IGNORECASE)
    met: dict[str, str] = {}

    def explain(found: re.Match[str]) -> str:
        word = found[0].lower()
        if word in met:
            return found[0]
        met[word] = words()[word]
        return Markup('<abbr title="{}">{}</abbr>').format(met[word], Markup(found[0]))

    head, body, rest = page.partition("<main")
    pieces = _TAG.split(body + rest)
    silent: list[str] = []
    for place, text in enumerate(pieces):
        if place % 2 == 0:
            if not silent and len(met) < len(words()):
                pieces[place] = pattern.sub(explain, text)
            continue
        name = text.strip("</>").partition(" ")[0]
        if name in _SILENT and not text.endswith("/>"):
            if text.startswith("</"):
                silent = silent[:-1]
            else:
                silent.append(name)
    meanings = Markup("").join(
        Markup("<div><dt>{}</dt><dd>{}</dd></div>").format(word, met[word]) for word in sorted(met)
    )
    section = Markup(
        '<section id="words" class="card" aria-labelledby="h-words"><h2 id="h-words">Words</h2>'
        '<dl class="facts long">{}</dl></section>\n'
    )
    shown = when(met, section.format(meanings))
    return head + "".join(pieces).replace("</main>", f"{shown}</main>", 1)


def unmasked(document: Masked) -> Masked:
    """The document for a page, with `visible` texts: no character that nobody sees.

    Most documents have no such characters, which is quickly seen in their JSON, where control characters below 32
    are escapes.
    """
    with contextlib.suppress(UnicodeEncodeError):
        text = msgspec.json.encode(document)
        foreign = text.translate(None, _ASCII).decode()
        if b"\\u00" not in text and b"\x7f" not in text and visible(foreign) == foreign:
            return document
    made: Masked = msgspec.convert(_shown(msgspec.to_builtins(document)), type(document))
    return made


def _shown(value: Any) -> Any:
    """Plain data in which all texts, keys too, are `visible`."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return value


class Document(Protocol):
    """What a framed page needs to know of a document's origin."""

    @property
    def title(self) -> str:
        """What the document is about."""

    @property
    def schema(self) -> str:
        """The form of the document: "eprof.tune/1"."""

    @property
    def eprof(self) -> str:
        """The version of eprof that made the document."""

    @property
    def created_utc(self) -> str:
        """When the document was made."""

    @property
    def command_line(self) -> Sequence[str]:
        """The command that made the document."""


class Figure(Struct, frozen=True):
    """A key figure: a label, a number with its unit in large digits, a note in small ones, and the number's marks."""

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


def page(document: Document, words: Any, own: Any) -> str:
    """The HTML of a page of headings and blocks in the common frame; one self-contained file.

    words, own: modules of the command. `words` has `subject` (what stands beside the title, before the time),
    `headline` and, where gates are judged, `verdicts`; `own` has `figures` and `sections`.
    """
    verdicts = getattr(words, "verdicts", lambda _: ())
    text = filled(
        "validation.html",
        ["report.css", "diff.css", "validation.css"],
        ["diff.js"],
        title=document.title,
        kind=document.schema.removeprefix("eprof.").partition("/")[0],
        subtitle=" · ".join(filter(None, [words.subject(document), utc(document.created_utc)])),
        headline=words.headline(document),
        verdicts=verdicts(document),
        figures=list(own.figures(document)),
        sections=list(own.sections(document)),
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
    """A section of a framed page, without empty sentences and titles of tables that repeat the heading."""
    filled: list[Block | str] = []
    for block in blocks:
        if isinstance(block, Table) and block.title in (link, heading):
            filled.append(replace(block, title=""))
        elif not isinstance(block, Sentence) or block.text:
            filled.append(block)
    return Section(anchor, link, heading, filled)


_NAME = 60
_WIDTH = 100  # columns of a terminal that has as much room


def notebook_cell(blocks: Iterable[Block | Markup]) -> str:
    """Blocks as the HTML of a notebook's cell."""
    return visible(Markup("<div>{}</div>").format(Markup("\n").join(map(_block, blocks))))


def _block(block: Block | Markup) -> Markup:
    """A block as HTML of a notebook's cell, with the columns of a wide terminal; "" for other kinds of block."""
    match block:
        case Headline():
            return Markup("<p><b>{}</b><br>{}</p>").format(block.text, block.lead)
        case Sentence():
            return Markup("<p>{}</p>").format(block.text)
        case Legend():
            return Markup("<p><small>{}</small></p>").format(legend(block.marks))
        case Notes() if block.texts:
            items = Markup("").join(Markup("<li>{}</li>").format(text) for text in block.texts)
            number = len(block.texts)
            return Markup("<details><summary>{} {}{}</summary><ol>{}</ol></details>").format(
                number, block.noun, "s"[: number - 1], items
            )
        case Table():
            table = block.on(Medium.TERMINAL, _WIDTH)
            labels = Markup("").join(Markup("<th>{}</th>").format(column.label) for column in table.columns)
            rows = []
            for name, *others in (row.cells for row in table.rows):
                head = Markup('<th title="{}" style="text-align:left">{}</th>')
                first = head.format(getattr(name, "full", ""), cut(plain_text(name), _NAME))
                rows.append(Markup("<tr>{}{}</tr>").format(first, Markup("").join(map(_cell, others))))
            below = piece(table.left_out, "<p><small>{}</small></p>", table.left_out)
            return Markup("<table><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table>{}").format(
                labels, Markup("\n").join(rows), below
            )
        case Markup():
            return block
    return Markup("")


def _cell(cell: Cell) -> Markup:
    """A cell of a notebook's table as HTML: its text, or a coloured bar."""
    if not isinstance(cell, Bar):
        return Markup("<td>{}</td>").format(plain_text(cell))
    half = 50 * min(abs(cell.value), 1.0)
    start, color = 50.0, "warm"
    if cell.value < 0:
        start, color = 50 - half, "cold"
    style = f"margin-left:{pct(start)};width:{pct(half)};background-color:{group_colours()[color]}"
    return Markup('<td><div style="width:100px"><div style="height:10px;{}"></div></div></td>').format(style)


@cache
def group_colours() -> dict[str, str]:
    """Colours as "#rrggbb" by group of counts, alike on light and dark ground: those of pages on dark ground."""
    named = r'(?:\[class\*="-(\w+)"\]\s*\{\s*--c|--(\w+))'  # a group's own rule, or a colour that several share
    colours = re.findall(named + r":\s*(?:(#\w+)|light-dark\(#\w+,\s*(#\w+)\))", asset("report.css"))
    return {group or name: plain or dark for group, name, plain, dark in colours}

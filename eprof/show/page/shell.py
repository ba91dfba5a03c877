"""A page from its template: one file, whose policy runs and loads nothing but what was hashed here; and its words.

eprof's own words are explained where they first stand and at the end; names show what nobody would see in them.
"""

import base64
import contextlib
import hashlib
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from eprof.base.resources import cache_folder, cache_refusal, folder
from eprof.base.text import visible, when
from eprof.show.page import drawing

_TEMPLATES = "templates"
# What is no running text.
_SILENT = {"script", "style", "title", "svg", "code", "pre", "button", "nav", "a", "textarea", "summary", "abbr"}
_TAG = re.compile(r"(<[^>]*>)")
Document = TypeVar("Document", bound=Mapping[str, Any] | msgspec.Struct)
_ASCII = bytes(range(128))


def filled(template: str, styles: Sequence[str], scripts: Sequence[str], **content: Any) -> str:
    """A page from its template, filled: one self-contained HTML file.

    styles, scripts: files of `reports/`, in their order on the page.
    """
    style = "".join(map(asset, styles))
    script = "".join(map(asset, scripts))
    page = templates().get_template(template)
    text = page.render(
        policy=_policy(style, script),
        style=Markup(style),  # noqa: S704  our own files, and hashed
        script=Markup(script),  # noqa: S704
        **content,
    )
    return explained(text.encode("utf-8", "replace").decode("utf-8"))


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_sha256(script)}'; style-src '{_sha256(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache
def asset(name: str) -> str:
    """A file of `reports/` for a template, line ends as browsers hash them; without spaces that mean nothing."""
    text = (folder("reports") / name).read_text(encoding="utf-8").replace("\r\n", "\n")
    if name.endswith(".html"):
        return text
    lines = [line.strip() for line in text.split("\n")]
    if name.endswith(".css"):
        return _squeezed("".join(lines), r"[{};,]|(?<=:)")
    code = [line for line in lines if line and not line.startswith("//")]
    return _squeezed("\n".join(code), r"[=<>&|?:,;{}()]|[*/+-](?=[^+-])")


def _squeezed(text: str, signs: str) -> str:
    """A style or script for a template without spaces around `signs`, but for those in strings.

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
    environment.globals.update(drawing.FUNCTIONS)
    return environment


class _Kept(FileSystemBytecodeCache):
    """Compiled templates in a folder; a folder that cannot be written to keeps what it has."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write a compiled template, if there is room and permission."""
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def _compiled() -> FileSystemBytecodeCache | None:
    """Where compiled templates are kept, as compiling them takes half of a report; None: nowhere.

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
    return _Kept(str(place)) if is_mine else None


# ---------------------------------------------------------------------------------------------------------- its words


@lru_cache
def words() -> dict[str, str]:
    """The words that pages explain, with what they mean (reports/glossary.toml)."""
    return tomllib.loads((folder("reports") / "glossary.toml").read_text(encoding="utf-8"))


def explained(page: str) -> str:
    """A page with its words explained."""
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
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            if not silent and len(met) < len(words()):
                pieces[place] = pattern.sub(explain, piece)
            continue
        name = piece.strip("</>").partition(" ")[0]
        if name in _SILENT and not piece.endswith("/>"):
            if piece.startswith("</"):
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


def unmasked(document: Document) -> Document:
    """The document for a page, with `visible` texts: no character that nobody sees.

    Most have no others, which is quickly seen in their JSON.
    """
    if not _has_unseen(document):
        return document
    shown = _shown(msgspec.to_builtins(document))
    made: Document = msgspec.convert(shown, type(document)) if isinstance(document, msgspec.Struct) else shown
    return made


def _has_unseen(document: Mapping[str, Any] | msgspec.Struct) -> bool:
    try:
        text = msgspec.json.encode(document)
    except UnicodeEncodeError:
        return True
    # In JSON, control characters below 32 are escapes.
    if b"\\u00" in text or b"\x7f" in text:
        return True
    if text.isascii():
        return False
    foreign = text.translate(None, _ASCII).decode()
    return visible(foreign) != foreign


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {_shown(key): _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return value

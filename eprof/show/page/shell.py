"""A page from its template: one file, with a policy that runs and loads nothing but what was hashed here."""

import base64
import contextlib
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup

from eprof.base import caching
from eprof.base.resources import folder
from eprof.show.page import drawing
from eprof.show.page.glossary import explained

_TEMPLATES = "templates"


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
    place = caching.place()
    if place is None:
        return None
    place = place / _TEMPLATES
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_mine = caching.refusal(place.parent) is None and caching.refusal(place) is None
    except OSError:
        return None
    return _Kept(str(place)) if is_mine else None

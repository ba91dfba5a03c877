"""The page: everything in one file, with a policy that runs and loads nothing but what was hashed here."""

import base64
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from eprof.base.resources import folder
from eprof.page import packed
from eprof.page.figures import figures
from eprof.page.sections import sections
from eprof.page.sections.method import setting, utc
from eprof.page.unmasked import unmasked
from eprof.words import badges
from eprof.words.headline import headline
from eprof.words.numbers import NARROW
from eprof.words.view import View


def html(document: Mapping[str, Any]) -> str:
    """One self-contained HTML file from a document `eprof.profile/1`."""
    view = View(unmasked(document))
    document = view.document
    style, script = _asset("report.css"), _asset("report.js")
    cards = sections(view)
    entries = {key: text for card in cards for key, text in card.data.items()}
    entries["meanings"] = packed.text(["missing", "estimated", "simulated", "assumed"])
    page = (
        _templates()
        .get_template("page.html")
        .render(
            policy=_policy(style, script),
            style=Markup(style),  # noqa: S704  our own file, and hashed
            script=Markup(script),  # noqa: S704
            data=Markup(packed.joined(entries)),  # noqa: S704  escaped for script tags in `packed`
            title=document.get("title") or "profile",
            subtitle=_subtitle(view),
            headline=headline(view),
            figures=figures(view),
            legend=badges.legend(view.marks),
            warnings=len(document.get("warnings") or []),
            sections=cards,
            MISSING=badges.MISSING,
            pills=badges.pills,
            letters=badges.letters,
        )
    )
    return page.encode("utf-8", "replace").decode("utf-8")


def _policy(style: str, script: str) -> str:
    return (
        f"default-src 'none'; script-src '{_sha256(script)}'; style-src '{_sha256(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache
def _asset(name: str) -> str:
    """A file of `reports/`, line ends as browsers hash them; style and script without spaces that mean nothing."""
    text = (folder("reports") / name).read_text(encoding="utf-8").replace("\r\n", "\n")
    if name.endswith(".html"):
        return text
    lines = [line.strip() for line in text.split("\n")]
    if name.endswith(".css"):
        return _squeezed("".join(lines), r"[{};,]|(?<=:)")
    code = [line for line in lines if line and not line.startswith("//")]
    return _squeezed("\n".join(code), r"[=<>&|?:,;{}()]|[*/+-](?=[^+-])")


def _squeezed(text: str, signs: str) -> str:
    """Without spaces around `signs`, but for those in strings. Line ends stay: they may end a statement."""
    pieces = re.compile(rf"""("(?:[^"\\\n]|\\.)*")|[ ]*({signs})[ ]*""")
    return pieces.sub(lambda found: found[1] or found[2], text)


@lru_cache
def _templates() -> Environment:
    return Environment(
        loader=FunctionLoader(_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _subtitle(view: View) -> str:
    """Device, clocks and time of the header."""
    devices = view.document.get("devices") or []
    names = list(dict.fromkeys(device.get("name") or "unnamed GPU" for device in devices))
    if len(devices) > 1 and len(names) == 1:
        names = [f"{len(devices)} × {names[0]}"]
    clocks = [piece.partition(" at ")[0] for piece in setting(view.costs).split(", ")] if view.costs else []
    table = view.costs.get("name") if view.costs else None
    costs = f"costs of {table}" if table else ""
    parts = [
        ", ".join(names[:3]) + (" …" if len(names) > 3 else ""),
        costs,
        *clocks,
        utc(view.document.get("created_utc"))[:16],
    ]
    return " · ".join(part for part in parts if part) + (f"{NARROW}UTC" if view.document.get("created_utc") else "")

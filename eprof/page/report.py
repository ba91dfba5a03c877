"""The page of a profile: headline, figures and a card for each section, in one file."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.page import packed
from eprof.page.figures import figures
from eprof.page.sections import sections
from eprof.page.sections.method import setting, utc
from eprof.page.shell import filled
from eprof.page.unmasked import unmasked
from eprof.words import badges
from eprof.words.headline import headline
from eprof.words.numbers import NARROW
from eprof.words.view import View


def html(document: Mapping[str, Any]) -> str:
    """One self-contained HTML file from a document `eprof.profile/1`."""
    view = View(unmasked(document))
    document = view.document
    cards = sections(view)
    entries = {key: text for card in cards for key, text in card.data.items()}
    entries["meanings"] = packed.text(["missing", "estimated", "simulated", "assumed"])
    return filled(
        "page.html",
        ["report.css"],
        ["report.js"],
        data=Markup(packed.joined(entries)),  # noqa: S704  escaped for script tags in `packed`
        title=document.get("title") or "profile",
        subtitle=_subtitle(view),
        headline=headline(view),
        figures=figures(view),
        legend=badges.legend(view.marks),
        warnings=len(document.get("warnings") or []),
        sections=cards,
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

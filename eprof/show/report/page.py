"""The page of a report: a function of the document `eprof.profile/1` (docs/profile-json.md)."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.base.marks import Mark
from eprof.base.text import few
from eprof.base.vocabulary import CPU
from eprof.profile import schema
from eprof.show.page import frame
from eprof.show.page.frame import unmasked
from eprof.show.report import first_screen, packed
from eprof.show.report.headline import headline
from eprof.show.report.key_figures import figures
from eprof.show.report.levers import what_to_try
from eprof.show.report.sections import sections
from eprof.show.report.shared_marks import shared, without
from eprof.show.report.trust import trust
from eprof.show.report.view import View
from eprof.show.words import badges
from eprof.show.words import costs as costs_words
from eprof.show.words.costs import clocks_and_volts
from eprof.show.words.devices import named
from eprof.show.words.numbers import NARROW, utc

_DEVICES = 3


def html(document: schema.Profile | Mapping[str, Any]) -> str:
    """The page of a report: one self-contained HTML file."""
    document = unmasked(schema.typed(document, schema.Profile))
    full = View(document)
    hidden = shared(document)
    view = View(without(document, hidden)) if hidden else full
    cards = sections(view, full)
    data = {key: text for card in cards for key, text in card.data.items()}
    data["meanings"] = packed.text([str(mark.name).lower() for mark in Mark])
    parts = [few(named(document.devices), _DEVICES)]
    if document.costs is not None:
        clocks = [part.partition(" at ")[0] for part in clocks_and_volts(document.costs.setting).split(", ")]
        parts += [f"costs {costs_words.named(document.costs)}", *clocks]
        if document.device.processor == CPU and document.costs.gpu_match == "other":
            parts.append(f"prices of an {document.costs.device}")
    if document.created_utc:
        parts.append(f"{utc(document.created_utc)[:16]}{NARROW}UTC")
    return frame.filled(
        "page.html",
        ["report.css"],
        ["report.js"],
        data=Markup(packed.joined(data)),  # noqa: S704  escaped for script tags in `packed`
        title=document.title or "profile",
        subtitle=" · ".join(part for part in parts if part),
        headline=headline(full),
        figures=figures(view),
        where=first_screen.where(view),
        points=[what_to_try(view), trust(full)],
        legend=badges.legend(view.marks),
        warnings=len(document.warnings),
        sections=cards,
        nouns=view.nouns,
    )

"""The page of a validation, one file that fetches nothing (docs/validate.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from eprof.page.section import Section
from eprof.page.sections.method import utc
from eprof.page.shell import filled
from eprof.page.unmasked import unmasked
from eprof.page.views import validation as view
from eprof.words.validation import Verdict, verdict


def html(document: Any) -> str:
    """One self-contained HTML file from a document `eprof.validation/1`."""
    document = unmasked(document.plain())
    made = (
        view.programs(document),
        view.protocols(document),
        view.trust(document),
        view.kernels(document),
        view.distribution(document),
        view.settings(document),
        view.baselines(document),
        view.all_kernels(document),
        view.method(document),
    )
    sections = [one for one in made if one is not None]
    return page(document, "validation", _subtitle(document), verdict(document), view.figures(document), sections)


def page(
    document: Mapping[str, Any],
    kind: str,
    subtitle: str,
    words: Verdict,
    figures: Sequence[view.Figure],
    sections: Sequence[Section],
) -> str:
    """The frame that validation and tuning share."""
    return filled(
        "validation.html",
        ["report.css", "validation.css"],
        ["validation.js"],
        document=document,
        kind=kind,
        subtitle=subtitle,
        words=words,
        gate=view.gate(document),
        figures=figures,
        sections=sections,
    )


def _subtitle(document: Mapping[str, Any]) -> str:
    costs = document.get("costs")
    parts = [f"costs of {costs['name']}" if costs else "", utc(document["created_utc"])]
    return " · ".join(part for part in parts if part)

"""The page of a validation, one file that fetches nothing (docs/validate.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from eprof.page.report import _asset, _policy, _templates
from eprof.page.section import Section
from eprof.page.sections.method import utc
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
    style, script = _asset("report.css") + _asset("validation.css"), _asset("validation.js")
    text = (
        _templates()
        .get_template("validation.html")
        .render(
            policy=_policy(style, script),
            style=Markup(style),  # noqa: S704  our own files, and hashed
            script=Markup(script),  # noqa: S704
            document=document,
            kind=kind,
            subtitle=subtitle,
            words=words,
            gate=view.gate(document),
            figures=figures,
            sections=sections,
        )
    )
    return text.encode("utf-8", "replace").decode("utf-8")


def _subtitle(document: Mapping[str, Any]) -> str:
    costs = document.get("costs")
    parts = [f"costs of {costs['name']}" if costs else "", utc(document["created_utc"])]
    return " · ".join(part for part in parts if part)

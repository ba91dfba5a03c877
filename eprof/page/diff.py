"""The page of a difference: headline, waterfall, kernels, counts, the model's reading, what is left out, provenance."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.page.report import _asset, _policy, _templates
from eprof.page.sections.method import utc
from eprof.page.unmasked import unmasked
from eprof.page.views import diff as view
from eprof.words import badges
from eprof.words import diff as diff_words
from eprof.words.badges import MISSING
from eprof.words.view import marks_of

SHOWN = 200


def html(document: Mapping[str, Any]) -> str:
    """One self-contained HTML file from a document `eprof.diff/1`."""
    document = unmasked(document)
    style, script = _asset("report.css") + _asset("diff.css"), _asset("diff.js")
    marks = marks_of(document) | marks_of(document["old"]) | marks_of(document["new"])
    said = diff_words.words(document)
    page = (
        _templates()
        .get_template("diff.html")
        .render(
            policy=_policy(style, script),
            style=Markup(style),  # noqa: S704  our own files, and hashed
            script=Markup(script),  # noqa: S704
            document=document,
            created=utc(document["created_utc"]),
            words=said,
            marks=marks_of(document),
            figures=view.figures(document),
            legend=badges.legend(marks) if document["change_j"] is not None else [],
            waterfall=view.waterfall(document),
            sides=view.sides(document),
            kernels=view.kernels(document, SHOWN),
            counts=view.counts(document),
            bounds=view.bounds(document["model"]),
            lost=view.lost(document),
            provenance=view.provenance(document),
            gate=diff_words.gate,
            MISSING=MISSING,
            pills=badges.pills,
        )
    )
    return page.encode("utf-8", "replace").decode("utf-8")

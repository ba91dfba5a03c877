"""The page of `eprof tune`, one file that fetches nothing (docs/tune.md)."""

from typing import Any

from eprof.page.sections.method import utc
from eprof.page.unmasked import unmasked
from eprof.page.validation import page
from eprof.page.views import tuning as view
from eprof.words.tuning import verdict


def html(document: Any) -> str:
    """One self-contained HTML file from a document `eprof.tune/1`."""
    document = unmasked(document.plain())
    made = (
        view.clocks(document),
        view.trade(document),
        view.kernels(document),
        view.meter(document),
        view.method(document),
    )
    sections = [one for one in made if one is not None]
    name = document["model"].get("name")
    parts = [f"costs of {name}" if name else "", utc(document["created_utc"])]
    subtitle = " · ".join(part for part in parts if part)
    # What tuning has no gate for, the shared frame asks for none.
    return page({**document, "gate": None}, "tune", subtitle, verdict(document), view.figures(document), sections)

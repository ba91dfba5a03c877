"""The HTML report: a function of the document `eprof.profile/1` (docs/profile-json.md)."""

from collections.abc import Mapping
from typing import Any

from eprof.profile import schema

__all__ = ["html"]


def html(document: schema.Profile | Mapping[str, Any]) -> str:
    """The page of a report: one file, nothing fetched.

    jinja2 is loaded here, because JSON and terminal reports do without it.
    """
    from eprof.page.report import html as page

    return page(document)

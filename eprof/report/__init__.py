"""The HTML report: a function of the document `eprof.profile/1` (docs/profile-json.md)."""

from eprof.report.page import html

__all__ = ["html"]

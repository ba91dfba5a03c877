"""Operators: the energy of what a framework such as PyTorch called, and in which modules."""

from eprof.page.section import Section
from eprof.words.operators import sentence
from eprof.words.report import operator_table
from eprof.words.view import View

_ROWS = 100


def section(view: View) -> Section | None:
    """The section, or None where no log tells operators."""
    if not view.document.operators:
        return None
    content = {"sentence": sentence(view), "ranks": None, "how": None, "table": operator_table(view, _ROWS)}
    return Section("operators", "Operators", "Operators", "phases.html", content)

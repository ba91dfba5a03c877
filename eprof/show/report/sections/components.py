"""Time by component: what each kernel's cycles go to, as the model has them."""

from eprof.show.report.components import sentence, table
from eprof.show.report.section import Section
from eprof.show.report.view import View

_ROWS = 100


def section(view: View) -> Section | None:
    """The section on time by component, or None where nobody asked for it."""
    if not view.document.time_components:
        return None
    content = {"sentence": sentence(view), "ranks": None, "how": None, "table": table(view, _ROWS)}
    return Section("components", "Time", "Time by component", "phases.html", content)

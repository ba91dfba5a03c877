"""The sections of the page, one module a question. Each makes its `Section` from the view, or None if it has no data.

To add one, write a module with `section(view) -> Section | None` and a template in `reports/`, and list it here.
"""

from collections.abc import Callable

from eprof.show.report import components
from eprof.show.report.section import Section
from eprof.show.report.sections import (
    kernel,
    kernels,
    limits,
    method,
    phases,
    table,
    trust,
    whatif,
    where,
)
from eprof.show.report.view import View

_ANSWERS: tuple[Callable[[View], Section | None], ...] = (
    where.section,
    phases.section,
    phases.of_operators,
    kernels.section,
    table.section,
    kernel.section,
    components.section,
    limits.section,
    whatif.clocks_section,
    whatif.section,
)
_EVIDENCE: tuple[Callable[[View], Section | None], ...] = (trust.section, method.section)


def sections(view: View, full: View) -> list[Section]:
    """All sections of a report that have something to say about this document, in reading order.

    view: without the marks that all numbers share; full: with them, for the sections on what the numbers rest on.
    """
    made = [make(view) for make in _ANSWERS] + [make(full) for make in _EVIDENCE]
    return [section for section in made if section is not None]

"""Phases, groups and operators of a framework: the energy of kernels that belong together."""

from eprof.profile import schema
from eprof.show.report.section import Section
from eprof.show.report.tables import group_table, operator_table, operator_words, rank_words
from eprof.show.report.view import View, energy_of
from eprof.show.words.numbers import percent, whole

_OPERATORS = 100  # of the largest


def section(view: View) -> Section | None:
    """The section on phases and groups, or None where the kernels are in no groups."""
    groups = view.document.groups
    ranks = view.document.ranks
    if not groups:
        return None
    content = {
        "sentence": _sentence(view, groups),
        "ranks": rank_words(ranks, view.nouns) if ranks else None,
        "how": view.document.grouped,
        "table": group_table(view, groups),
    }
    return Section("phases", "Phases", "Phases", "phases.html", content)


def of_operators(view: View) -> Section | None:
    """The section on operators that PyTorch called, and in which modules; None where no log tells operators."""
    if not view.document.operators:
        return None
    content = {"sentence": operator_words(view), "ranks": None, "how": None, "table": operator_table(view, _OPERATORS)}
    return Section("operators", "Operators", "Operators", "phases.html", content)


def _sentence(view: View, groups: list[schema.Group]) -> str:
    joules = view.energy("total").value
    if not joules:
        return f"{whole(len(groups))} groups; no energy is known."
    largest = max(groups, key=lambda group: energy_of(group, "total").value or 0.0)
    share = percent((energy_of(largest, "total").value or 0.0) / joules)
    return f"{largest.name} takes {share} of the energy. The groups add up to the whole."

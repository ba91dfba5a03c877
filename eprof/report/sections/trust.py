"""How far to trust it: the meter against the prediction, what the energy rests on, how well the prices were fitted."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.report import svg
from eprof.report.badges import LETTERS, MEANINGS, MISSING, Amount, written
from eprof.report.numbers import percent, quantity, signed_percent
from eprof.report.section import Section
from eprof.report.view import View, cell_energy, number

# Errors that the makers of a model publish for it are in the notes of their tables, and in the warnings.
_WORDS = {"estimated": "an estimate", "simulated": "a simulated device", "assumed": "an assumption"}


def section(view: View) -> Section | None:
    """The section, or None where no energy is known."""
    total = view.energy("total")
    if not total.value:
        return None
    measured = number(view.energy_measured)
    content = {
        "sentence": _sentence(view, total, measured),
        "runs": _runs(total, measured) if measured else [],
        "rests": _rests(view, total),
        "fit": fit_words((view.costs or {}).get("fit")),
    }
    return Section("trust", "Trust", "How far to trust it", "trust.html", content)


def _sentence(view: View, total: Amount, measured: float | None) -> str:
    if measured:
        error = signed_percent((total.value or 0.0) / measured - 1)
        lower = ", a lower bound," if total.lower else ""
        return (
            f"The prediction{lower} is {error} against the meter's {quantity(measured, 'J')} (predicted less measured)."
        )
    fitted = (view.costs or {}).get("fit")
    more = " How well the prices were fitted stands below." if fitted else ""
    return f"Not measured: no meter's reading stands beside this prediction.{more}"


def _runs(total: Amount, measured: float) -> list[tuple[str, Markup, Markup]]:
    scale = max(total.value or 0.0, measured)
    rows = [("Measured", "constant", Amount(measured)), ("Predicted", "plain", total)]
    return [
        (
            label,
            svg.bar(svg.laid([(group, one.value or 0.0)], scale), f"{label}: {quantity(one.value or 0.0, 'J')}"),
            _joules(one),
        )
        for label, group, one in rows
    ]


def _joules(amount: Amount) -> Markup:
    return written(None if amount.value is None else quantity(amount.value, "J"), amount.marks)


def _rests(view: View, total: Amount) -> list[tuple[str, str, str, str, Markup]]:
    """For each mark: its sign, its meaning, how much energy carries it, its share, and a bar."""
    cells = [cell_energy(cell) for cell in (view.document.get("counts") or {}).values()]
    cells.append(view.energy("constant"))
    found = []
    for mark, sign in LETTERS.items():
        if mark == MISSING or not any(cell.marks & mark for cell in cells):
            continue
        joules = sum(cell.value or 0.0 for cell in cells if cell.marks & mark)
        share = joules / (total.value or 1.0)
        bar = svg.bar(svg.laid([("plain", share)], 1.0), f"{percent(share)} of the known energy")
        found.append((sign, MEANINGS[mark], quantity(joules, "J"), percent(share), bar))
    return found


def fit_words(fit: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """What a fitted table tells of itself, as label and value; empty for a published one."""
    return [(str(label), str(value)) for label, value in (fit or {}).items() if isinstance(value, str | int | float)]

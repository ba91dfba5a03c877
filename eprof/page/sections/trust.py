"""How far to trust it: the meter against the prediction, what the energy rests on, how well the prices were fitted."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.page import svg
from eprof.page.section import Section
from eprof.words.badges import LETTERS, MEANINGS, MISSING, Amount, written
from eprof.words.numbers import NARROW, percent, quantity, signed_percent
from eprof.words.view import View, cell_energy, number

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
        "runs": _runs(view, total, measured),
        "rests": _rests(view, total),
        "fit": fit_words(view),
    }
    return Section("trust", "Trust", "How far to trust it", "trust.html", content)


def _sentence(view: View, total: Amount, measured: float | None) -> str:
    if measured:
        error = signed_percent((total.value or 0.0) / measured - 1)
        lower = ", a lower bound," if total.lower else ""
        return (
            f"The prediction{lower} is {error} against the meter's {quantity(measured, 'J')} (predicted less measured)."
        )
    errors = ((view.costs or {}).get("fit") or {}).get("error_percent") or {}
    name = max(errors, key=lambda one: errors[one], default="")
    off = f" Its prices were fitted: {errors[name]:g}{NARROW}% mean error {_PROTOCOLS.get(name, name)}." if name else ""
    return f"Not measured: no meter's reading stands beside this prediction.{off}"


def _runs(view: View, total: Amount, measured: float | None) -> list[tuple[str, Markup, Markup]]:
    """The meter's bar, the prediction's, and the range of the refits: those of the three that there are."""
    within = (view.document.get("interval_j") or {}).get("total")
    if not measured and not within:
        return []
    scale = max([total.value or 0.0, measured or 0.0, *(within or ())])
    rows = [("Measured", "constant", Amount(measured))] if measured else []
    rows.append(("Predicted", "plain", total))
    return [
        (
            label,
            svg.bar(svg.laid([(group, one.value or 0.0)], scale), f"{label}: {quantity(one.value or 0.0, 'J')}"),
            _joules(one),
        )
        for label, group, one in rows
    ] + _range(view, scale)


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


_PROTOCOLS = {
    "fit": "on what it was fitted to",
    "leave_one_setting_out": "on settings left out",
    "leave_one_benchmark_out": "on programs left out",
}


def fit_words(view: View) -> list[tuple[str, str]]:
    """What a fitted table tells of its fit, as label and value; empty for a published one."""
    fit = (view.costs or {}).get("fit") or {}
    found = []
    if "rows" in fit:
        size = f"{fit['rows']} rows, {fit.get('benchmarks', '?')} programs, {fit.get('settings', '?')} settings"
        found.append(("Fitted to", f"{', '.join(map(str, fit.get('data', [])))}: {size}"))
    errors = [
        f"{value:g}{NARROW}% {_PROTOCOLS.get(name, name)}" for name, value in (fit.get("error_percent") or {}).items()
    ]
    found += [("Mean error", ", ".join(errors))] if errors else []
    loose = [name for name, told in (fit.get("told") or {}).items() if told != "told"]
    found += [("Not well told", f"{', '.join(loose)}: trust their sum more than each")] if loose else []
    found += [("Outside", words) for words in _outside(view, fit.get("range") or {})]
    return found + [("Note", str(note)) for note in fit.get("notes") or []]


def _outside(view: View, seen: Mapping[str, Any]) -> list[str]:
    """Where this run leaves what the fit has seen: clocks, mean power."""
    setting = (view.costs or {}).get("setting") or {}
    here = {**{key: setting.get(key) for key in ("core_mhz", "memory_mhz")}, "power_w": view.power.value}
    found = []
    for key, value in here.items():
        low, high = seen.get(key, (None, None))
        if value is not None and low is not None and not low * 0.999 <= value <= high * 1.001:
            found.append(f"{key} is {value:.4g} here, the fit saw {low:g} to {high:g}")
    return found


def _range(view: View, scale: float) -> list[tuple[str, Markup, Markup]]:
    """What the replicas of the fit make of these counts, as a bar from low to high."""
    within = view.document.get("interval_j") or {}
    if not within.get("total"):
        return []
    low, high = within["total"]
    bar = svg.bar([svg.Segment("plain", 100 * low / scale, 100 * (high - low) / scale)], _spoken(low, high))
    label = f"{percent(within['share'])} of {within['replicas']} refits"
    return [(label, bar, Markup("±{}").format(quantity((high - low) / 2, "J")))]


def _spoken(low: float, high: float) -> str:
    return f"from {quantity(low, 'J')} to {quantity(high, 'J')}"

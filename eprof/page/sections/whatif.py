"""What if: modelled answers, a row a question; and sliders that the script works out."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from eprof.base.marks import from_names
from eprof.page import packed
from eprof.page.section import Section
from eprof.page.svg import laid, mini
from eprof.words.badges import MISSING, Amount, written
from eprof.words.numbers import percent, quantity
from eprof.words.view import DRAM, View, cell_energy


def section(view: View) -> Section | None:
    """The section, or None if nothing was asked."""
    answers = view.document.get("what_if")
    before = view.energy("total")
    if not answers or not before.value:
        return None
    scale = max([before.value, *(one["energy_j"]["total"] or 0.0 for one in answers)])
    sliders = _sliders(view)
    content = {
        "sentence": _sentence(answers),
        "rows": [_row(one, scale) for one in answers],
        "before": _joules(before),
        "bar": mini(laid([("plain", before.value)], scale)),
        "sliders": bool(sliders),
    }
    return Section("whatif", "What if", "What if", "whatif.html", content, sliders)


def _sentence(answers: list[Mapping[str, Any]]) -> str:
    best = min(answers, key=lambda one: one["change_j"] or 0.0)
    if not (best["change_j"] or 0.0) < 0 or best["change_share"] is None:
        return "Nothing of this would take less energy. Every answer is modelled, none is measured."
    return (
        f"{best['says'][:1].upper()}{best['says'][1:]}: {percent(-best['change_share'])} less, the most of these. "
        "Every answer is modelled, none is measured."
    )


def _row(one: Mapping[str, Any], scale: float) -> dict[str, Any]:
    value = one["energy_j"]["total"]
    return {
        "says": one["says"][:1].upper() + one["says"][1:],
        "assumes": one["assumes"],
        "bar": mini(laid([("plain", value or 0.0)], scale)),
        "energy": _joules(Amount(value, int(from_names(list(one["marks"]))))),
        "change": _change(one["change_share"]),
        "time": _change(one["time_share"]),
    }


def _change(share: float | None) -> str:
    if share is None:
        return "–"
    if abs(share) < 5e-5:
        return "the same"
    return f"{'▼' if share < 0 else '▲'} {percent(abs(share))}"


def _joules(amount: Amount) -> Markup:
    return written(None if amount.value is None else quantity(amount.value, "J"), amount.marks)


def _sliders(view: View) -> dict[str, str]:
    """What the script needs: constant energy, DRAM's, all the rest, in J; nothing where one of them is not known."""
    constant, total = view.energy("constant"), view.energy("total")
    cells = view.document.get("counts") or {}
    dram = sum(cell_energy(cells[name]).value or 0.0 for name in DRAM if name in cells)
    if not constant.value or total.value is None or constant.marks & MISSING:
        return {}
    parts = {"constant": constant.value, "dram": dram, "other": total.value - constant.value - dram}
    return {"what": packed.text({**parts, "marks": total.marks})}

"""One kernel: why it is expensive. Filled bar: share of the energy; outline: share of the count; the gap tells."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from eprof.page import svg
from eprof.page.section import Section
from eprof.words.badges import MISSING, Amount, written
from eprof.words.numbers import percent, plain, quantity, whole
from eprof.words.view import View, cell_energy, energy_of, power_of, ratio, time_of

FAMILIES = (("computation", "Instructions", "instruction", "instructions"), ("data", "Bytes", "byte", "bytes"))
GAP = 0.05


@dataclass(frozen=True)
class Meter:
    """One line: a count, its bar, its energy and both shares."""

    label: str
    detail: Markup
    bar: Markup
    energy: Markup
    share: Markup


@dataclass(frozen=True)
class Line:
    """The numbers behind a `Meter`, before they are written."""

    label: str
    group: str
    unit: str
    value: Amount
    energy: Amount
    of_count: float | None
    of_energy: float | None


def section(view: View) -> Section | None:
    """The section for the largest kernel; the script shows others."""
    if not view.kernels:
        return None
    kernel = view.kernels[view.order[0]]
    panels = [_panel(view, kernel, *family) for family in FAMILIES]
    content = {
        "name": kernel["name"],
        "device": kernel.get("device") if view.several_devices else None,
        "facts": _facts(view, kernel),
        "message": _message(view, kernel),
        "panels": [panel for panel in panels if panel["lines"] or panel["none"]],
        "explained": _explained(view),
    }
    return Section("kernel", "One kernel", "One kernel", "kernel.html", content)


def _explained(view: View) -> str:
    if view.has_energy:
        return "A filled bar is a share of the energy, the outline around it the share of the count."
    return "Bars are shares of the count; energies are not known."


def _facts(view: View, kernel: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Label and number of each fact that is known of the kernel."""
    total, constant, time = energy_of(kernel, "total"), energy_of(kernel, "constant"), time_of(kernel)
    found = [
        ("Energy", total, "J", True),
        ("Constant power", ratio(constant, total), "%", False),
        ("Time", time, "s", True),
        ("Calls", Amount(kernel.get("launches")), "#", True),
        ("Mean power", power_of(kernel), "W", True),
        ("Energy per flop", view.per_flop(kernel), "J", True),
        ("Flop per DRAM byte", view.intensity(kernel), "", False),
    ]
    write = {"%": percent, "#": whole, "": plain}
    return [
        (
            label,
            written(
                write[unit](amount.value) if unit in write else quantity(amount.value, unit), amount.marks, bound=bound
            ),
        )
        for label, amount, unit, bound in found
        if amount.value is not None
    ]


def lines(view: View, kernel: Mapping[str, Any], family: str, unit: str) -> list[Line]:
    """The counts of one family that the kernel has or lacks, in the order of the vocabulary."""
    cells = kernel["counts"]
    counted = view.instruction_words if unit == "instruction" else view.byte_words
    values = {name: view.cell_value(name, cells[name]) for name in view.words if name in cells}
    whole_count = sum(values[name].value or 0.0 for name in counted if name in values)
    whole_energy = energy_of(kernel, family).value
    found = []
    for name, value in values.items():
        word = view.words[name]
        if word.family != family:
            continue
        energy = cell_energy(cells[name])
        part = value.value / whole_count if name in counted and value.value is not None and whole_count else None
        share = energy.value / whole_energy if energy.value is not None and whole_energy else None
        found.append(Line(word.label, word.group, word.unit, value, energy, part, share))
    return found


def _panel(view: View, kernel: Mapping[str, Any], family: str, title: str, unit: str, plural: str) -> dict[str, Any]:
    found = lines(view, kernel, family, unit)
    shown = [line for line in found if line.value.value != 0 or line.energy.value]
    scale = max([0.0001, *(max(line.of_count or 0, line.of_energy or 0) for line in shown)])
    energy = energy_of(kernel, family)
    write = _meter if view.has_energy else _count_meter
    return {
        "title": title,
        "energy": written(quantity(energy.value, "J"), energy.marks) if energy.value is not None else None,
        "lines": [write(line, 100 / scale, plural, energy) for line in shown],
        "none": ", ".join(line.label for line in found if line not in shown),
    }


def _meter(line: Line, by: float, plural: str, whole_energy: Amount) -> Meter:
    """Filled: share of the energy; outlined: share of the count. `by`: per cent of the width for a share of 1."""
    share = percent(line.of_energy) if line.of_energy is not None else None
    energy = quantity(line.energy.value, "J") if line.energy.value is not None else None
    marks = line.energy.marks | (whole_energy.marks if share else 0)
    spoken = f"{line.label}: {share or 'an unknown share'} of the energy, {percent(line.of_count or 0)} of the {plural}"
    bar = svg.meter(line.group, by * (line.of_energy or 0), by * (line.of_count or 0), spoken)
    return Meter(line.label, _detail(line), bar, written(energy, line.energy.marks), written(share, marks, bound=False))


def _count_meter(line: Line, by: float, plural: str, _: Amount) -> Meter:
    """The same where no energy is known: the filled bar is the share of the count."""
    marks = line.value.marks & ~MISSING
    share = percent(line.of_count) if line.of_count is not None else None
    bar = svg.meter(
        line.group, by * (line.of_count or 0), None, f"{line.label}: {percent(line.of_count or 0)} of the {plural}"
    )
    lost = Markup("not counted") if line.value.value is None else Markup("")
    return Meter(line.label, lost, bar, written(_amount(line), marks), written(share, marks, bound=False))


def _amount(line: Line) -> str | None:
    value = line.value.value
    return None if value is None else quantity(value, "B" if line.unit == "byte" else "")


def _detail(line: Line) -> Markup:
    amount = _amount(line)
    if amount is None:
        return Markup("not counted")
    unpriced = line.energy.value is None and line.energy.marks & MISSING
    of = "" if unpriced else " of the count"
    share = f" · {percent(line.of_count)}{of}" if line.of_count is not None else ""
    price = " · no price" if unpriced else ""
    return Markup("{}{}{}").format(written(amount, line.value.marks), share, price)


def _message(view: View, kernel: Mapping[str, Any]) -> str:
    """The count whose energy is furthest above its share: "DRAM read: 6 % of the bytes, 30 % of their energy."."""
    found = [
        ((line.of_energy or 0.0) - line.of_count, line, plural)
        for family, _, unit, plural in FAMILIES
        for line in lines(view, kernel, family, unit)
        if line.of_count is not None
    ]
    gap, line, plural = max(found, key=lambda one: one[0], default=(0.0, None, ""))
    if line is None or gap < GAP:
        return ""
    count, energy = percent(line.of_count or 0), percent(line.of_energy or 0)
    return f"{line.label}: {count} of the {plural}, {energy} of their energy."

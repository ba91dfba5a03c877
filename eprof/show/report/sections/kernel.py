"""One kernel: why it is expensive. Filled bar: share of the energy; outline: share of the count."""

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup
from msgspec import Struct

from eprof.base.known import mapped
from eprof.base.known import ratio as ratio_of
from eprof.base.text import when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, Count
from eprof.profile import schema
from eprof.show.page import svg
from eprof.show.report.section import Section
from eprof.show.report.view import View, above_of, energy_of, power_of, time_of
from eprof.show.words.badges import MISSING, Amount, quantity_of, ratio, written
from eprof.show.words.numbers import percent, plain, quantity, whole


class Family(Struct, frozen=True):
    """Instructions or bytes: the energy that they take, and what they are called."""

    part: str
    title: str
    unit: str
    plural: str


FAMILIES = (
    Family(COMPUTATION, "Instructions", "instruction", "instructions"),
    Family(DATA, "Bytes", "byte", "bytes"),
)


class Meter(Struct, frozen=True):
    """One line: a count, its bar, its energy and both shares."""

    label: str
    detail: Markup
    bar: Markup
    energy: Markup
    share: Markup


class Line(Struct, frozen=True):
    """The numbers behind a `Meter`, before they are written."""

    count: Count
    value: Amount
    energy: Amount
    of_count: float | None
    of_energy: float | None

    @property
    def written_value(self) -> str | None:
        """The kernel's count with its unit."""
        return mapped(quantity, self.value.value, self.count.symbol)


def section(view: View) -> Section | None:
    """The section on one kernel, the largest; the script shows others."""
    if not view.kernels:
        return None
    kernel = view.kernels[view.order[0]]
    panels = [_panel(view, kernel, family) for family in FAMILIES]
    total, per_byte = energy_of(kernel, "total"), view.intensity(kernel)
    constant = ratio(energy_of(kernel, CONSTANT), total)
    # The rest of the page counts energy above modelled constant power: this is another number, and says so.
    modelled = when(view.is_modelled, " as modelled")
    labels = [f"Energy{when(modelled, ' with constant power')}{modelled}", f"Constant power{modelled}"]
    facts = [
        (labels[0], total, quantity_of(total, "J")),
        (labels[1], constant, written(percent(constant.value or 0), constant.marks, bound=False)),
        ("Time", time_of(kernel), quantity_of(time_of(kernel), "s")),
        ("Calls", Amount(kernel.launches), written(whole(kernel.launches))),
        ("Mean power", power_of(kernel), quantity_of(power_of(kernel), "W")),
        ("Energy per flop", view.per_flop(kernel), quantity_of(view.per_flop(kernel), "J")),
        ("Flop per DRAM byte", per_byte, written(plain(per_byte.value or 0), per_byte.marks, bound=False)),
    ]
    content = {
        "name": kernel.name,
        "device": kernel.device if view.several_devices else None,
        "labels": labels,
        "facts": [(label, text) for label, amount, text in facts if amount.value is not None],
        "message": _message(view, kernel),
        "panels": [panel for panel in panels if panel["lines"] or panel["none"]],
        "explained": _explained(view),
    }
    heading = f"One {view.nouns.kernel}"
    return Section("kernel", heading, heading, "kernel.html", content)


def _explained(view: View) -> str:
    if view.has_energy:
        return "A filled bar is a share of the energy, the outline around it the share of the count."
    return "Bars are shares of the count; energies are not known."


def lines(view: View, kernel: schema.Kernel, family: Family) -> list[Line]:
    """The counts of one family that the kernel has or lacks, in the order of the vocabulary."""
    exclusive = view.instruction_words if family.unit == "instruction" else view.byte_words
    values = {name: view.amount(kernel, name) for name in view.words if name in kernel.counts}
    all_counts = sum(values[name].value or 0.0 for name in exclusive if name in values)
    all_joules = energy_of(kernel, family.part).value
    made = []
    for name, value in values.items():
        count = view.words[name].count
        if count.family != family.part:
            continue
        energy = view.energy_of_count(kernel.counts[name])
        of_count = ratio_of(value.value, all_counts) if name in exclusive else None
        made.append(Line(count, value, energy, of_count, ratio_of(energy.value, all_joules)))
    return made


def _panel(view: View, kernel: schema.Kernel, family: Family) -> Mapping[str, Any]:
    known = lines(view, kernel, family)
    shown = [line for line in known if line.value.value != 0 or line.energy.value]
    scale = max([0.0001, *(max(line.of_count or 0, line.of_energy or 0) for line in shown)])
    energy = energy_of(kernel, family.part)
    write = _meter if view.has_energy else _count_meter
    return {
        "title": family.title,
        "energy": None if energy.value is None else quantity_of(energy, "J"),
        "lines": [write(line, 100 / scale, family, energy) for line in shown],
        "none": ", ".join(line.count.label for line in known if line not in shown),
    }


def _meter(line: Line, by: float, family: Family, all_energy: Amount) -> Meter:
    """The bars of one count of the kernel: filled, its share of the energy; outlined, of the count.

    `by`: per cent of the width for a share of 1.
    """
    of_energy = line.of_energy or 0
    of_count = line.of_count or 0
    share = None
    marks = line.energy.marks
    if line.of_energy is not None:
        share, marks = percent(line.of_energy), marks | all_energy.marks
    spoken = f"{share or 'an unknown share'} of the energy, {percent(of_count)} of the {family.plural}"
    bar = svg.meter(line.count.group, by * of_energy, by * of_count, f"{line.count.label}: {spoken}")
    energy = quantity_of(line.energy, "J")
    return Meter(line.count.label, _detail(line), bar, energy, written(share, marks, bound=False))


def _count_meter(line: Line, by: float, family: Family, _: Amount) -> Meter:
    marks = line.value.marks & ~MISSING
    of_count = line.of_count or 0
    share = mapped(percent, line.of_count)
    spoken = f"{line.count.label}: {percent(of_count)} of the {family.plural}"
    bar = svg.meter(line.count.group, by * of_count, None, spoken)
    lost = Markup("not counted") if line.value.value is None else Markup("")
    value = written(line.written_value, marks)
    return Meter(line.count.label, lost, bar, value, written(share, marks, bound=False))


def _detail(line: Line) -> Markup:
    if line.written_value is None:
        return Markup("not counted")
    has_price = line.energy.value is not None or not line.energy.marks & MISSING
    of, price = (" of the count", "") if has_price else ("", " · no price")
    share = when(line.of_count is not None, f" · {percent(line.of_count or 0.0)}{of}")
    return Markup("{}{}{}").format(written(line.written_value, line.value.marks), share, price)


def _message(view: View, kernel: schema.Kernel) -> str:
    """The kernel's dearest count: "DRAM read takes most above constant power: 71 % of it, with 30 % of the bytes."."""
    priced = [(line, family) for family in FAMILIES for line in lines(view, kernel, family) if line.energy.value]
    if not priced:
        return ""
    line, family = max(priced, key=lambda pair: pair[0].energy.value or 0.0)
    share = percent((line.energy.value or 0.0) / (above_of(kernel).value or 1.0))
    count = when(line.of_count is not None, f", with {percent(line.of_count or 0.0)} of the {family.plural}")
    return f"{line.count.label} takes most above constant power: {share} of it{count}."

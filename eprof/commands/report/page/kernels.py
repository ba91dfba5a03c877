"""The report page's sections on kernels: a chart of those that take most, alike ones together; one, count by count."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from markupsafe import Markup
from msgspec import Struct

from eprof.base.kernels import base
from eprof.base.labels import DEVICE_WIDTH, WIDTH
from eprof.base.optional import gathered, mapped, summed
from eprof.base.optional import ratio as ratio_of
from eprof.base.text import bracketed, cut, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA, GROUPS, Count
from eprof.commands.report.headline import at_least
from eprof.commands.report.page.script import Card
from eprof.commands.report.view import View, above_of, energy_of, power_of, time_of
from eprof.profile import schema
from eprof.show import as_html
from eprof.show.amounts import MISSING, Amount, quantity_of, ratio, share_of, total, written
from eprof.show.intervals import known, label
from eprof.show.numbers import percent, plain, quantity, span, whole

SHOWN = 20
GROUP_ABOVE = 50
MEMBERS = 3
_FEWEST = 2  # bars; of one kernel, the bar of all tells the same
_MOST = 0.8  # of all, that the kernels take which the sentence counts
_HEADINGS = {
    "total": "Which {} take it",
    "time": "Which {} take the time",
    "dram": "Which {} move most bytes",
    "instructions": "Which {} execute most",
}
_LENGTHS = {"total": "energy", "time": "time", "dram": "bytes of DRAM", "instructions": "the number of instructions"}


class Row(Struct, frozen=True):
    """A bar of the page's chart of kernels: of the one at `place` in the document, or of several of one base name."""

    name: str
    full: str
    place: int | None
    bar: Markup
    amount: Markup
    share: Markup
    members: Sequence["Row"] = ()
    more: str = ""


class Bunch(Struct, frozen=True):
    """Kernels of one base name that the chart draws as one bar."""

    base: str
    places: list[int]
    amount: Amount


def section(view: View) -> Card | None:
    """The report page's chart of kernels that take most, or None if nothing ranks kernels, or there is one."""
    if len(view.kernels) < _FEWEST or not view.ranked(view.document).value:
        return None
    # A kernel each, or a base name where there are many.
    names = list(map(str, range(len(view.kernels))))
    if len(view.kernels) > GROUP_ABOVE:
        names = [base(kernel.name) for kernel in view.kernels]
    members = gathered((names[place], place) for place in view.order)
    bunches = [
        Bunch(name, places, total(view.ranked(view.kernels[place]) for place in places))
        for name, places in members.items()
    ]
    bunches.sort(key=lambda bunch: -bunch.amount.or_zero)
    shown, rest = bunches[:SHOWN], bunches[SHOWN:]
    whiskers = {place: _interval(view, place) for bunch in shown for place in bunch.places}
    scale = max(bunch.amount.or_zero for bunch in shown)
    for bunch in shown:
        if len(bunch.places) == 1 and (ends := whiskers[bunch.places[0]]):
            scale = max(scale, ends[1])
    legend = []
    if view.measure == "total":
        legend = [(group, view.group_label(group)) for group, amount in view.groups.items() if amount.value]
    whisker_label = ""
    if any(whiskers.values()) and (interval := view.document.interval_j):
        whisker_label = label(interval.share)
    others = None
    if rest:  # drawn to scale, they would flatten all others
        count = sum(len(bunch.places) for bunch in rest)
        numbers = _numbers(view, total(bunch.amount for bunch in rest))
        others = f"{whole(count)} other {view.nouns.of(count)}, not drawn", *numbers
    content = {
        "sentence": _sentence(view, bunches),
        "legend": legend,
        "rows": [_row(view, bunch, scale or 1.0) for bunch in shown],
        "rest": others,
        "interval": whisker_label,
        "open": any(bunch.amount.marks & MISSING for bunch in shown),
    }
    nouns = view.nouns.kernels
    heading = _HEADINGS[view.measure].format(nouns)
    return Card("kernels", nouns.capitalize(), heading, "kernels.html", content)


def _interval(view: View, place: int) -> tuple[float, float] | None:
    if view.measure != "total" or view.is_above:
        return None
    return known(view.kernels[place].interval_j)


def _sentence(view: View, bunches: list[Bunch]) -> Markup:
    """The sentence above the chart of kernels: how few take four fifths of all, and what the length of a bar is."""
    all_kernels, everything = view.ranked(view.document), view.with_rest(view.ranked(view.document))
    running = list(accumulate(bunch.amount.or_zero for bunch in bunches))
    needed = min(bisect_left(running, _MOST * all_kernels.or_zero) + 1, len(bunches))
    share = written(percent(running[needed - 1] / (everything.value or 1.0)), all_kernels.marks, bound=False)
    is_grouped = len(bunches) != len(view.kernels)
    noun = "names" if is_grouped else view.nouns.kernels
    subject = f"{whole(needed)} of {whole(len(bunches))} {noun} take"
    if needed == 1:
        subject = f"One of {whole(len(bunches))} {noun} takes"
    known = when(all_kernels.lower, " of what is known")
    if view.document.idle_j:
        known = f" of all {quantity(everything.or_zero, 'J')}"
    grouped = when(is_grouped, " Template instances of one name stand together; open a name to see them.")
    return Markup("{} {}{}. Bar length is {}. Choose a {} to see it below.{}").format(
        subject, share, known, _LENGTHS[view.measure], view.nouns.kernel, grouped
    )


def _row(view: View, bunch: Bunch, scale: float) -> Row:
    """The chart's bar for a bunch: of one kernel, or of several added up, with the largest of these behind it."""
    if len(bunch.places) == 1:
        return _kernel_row(view, bunch.places[0], scale)
    # By columns, because there may be thousands of kernels in it.
    kernels = [view.kernels[place] for place in bunch.places]
    parts = {"plain": bunch.amount.or_zero}
    if view.measure == "total":
        parts = dict.fromkeys(GROUPS, 0.0)
        for name, word in view.words.items():
            parts[word.count.group] += float(np.nansum(view.column(name).joules[bunch.places]))
        if not view.is_above:
            parts[CONSTANT] = sum(energy_of(kernel, CONSTANT).or_zero for kernel in kernels)
    left = len(bunch.places) - MEMBERS
    more = f"{whole(left)} more in the table" if left > 0 else "Show in the table"
    return Row(
        f"{cut(bunch.base, WIDTH - 6)} ×{whole(len(bunch.places))}",
        bunch.base,
        None,
        _bar(view, parts, bunch.amount, scale, bunch.base),
        *_numbers(view, bunch.amount),
        members=[_kernel_row(view, place, scale) for place in bunch.places[:MEMBERS]],
        more=more,
    )


def _kernel_row(view: View, place: int, scale: float) -> Row:
    """The chart's bar of the kernel at `place` in the document, with its device where there are several."""
    kernel = view.kernels[place]
    amount = view.ranked(kernel)
    label, full = view.label(kernel), kernel.name
    parts = {"plain": amount.or_zero}
    if view.measure == "total":
        parts = {group: part.or_zero for group, part in view.groups_of(kernel).items()}
    bar = _bar(view, parts, amount, scale, label, _interval(view, place))
    if view.several_devices:
        device = kernel.device or f"{view.nouns.processor} not named"
        label = f"{label} · {cut(device, DEVICE_WIDTH - 2)}"
        full = f"{kernel.name} on {device}"
    return Row(label, full, place, bar, *_numbers(view, amount))


def _numbers(view: View, amount: Amount) -> tuple[Markup, Markup]:
    return quantity_of(amount, view.unit), share_of(amount, view.with_rest(view.ranked(view.document)))


def _bar(
    view: View,
    parts: Mapping[str, float],
    amount: Amount,
    scale: float,
    name: str,
    ends: tuple[float, float] | None = None,
) -> Markup:
    """A stacked bar of `parts`, drawn to `scale`, with its interval (`ends`), and in words for screen readers."""
    spoken = [f"{GROUPS[group]} {quantity(value, 'J')}" for group, value in parts.items() if value and group in GROUPS]
    value = "not known" if amount.value is None else at_least(amount, view.unit)
    detail = bracketed(", ".join(spoken))
    interval = None
    if ends:
        interval = 100 * ends[0] / scale, 100 * ends[1] / scale
        value += f", {span(*ends, 'J')}"
    drawn = as_html.laid(parts.items(), scale)
    return as_html.bar(drawn, f"{name}: {value}{detail}", open_end=bool(amount.marks & MISSING), interval=interval)


class Family(Struct, frozen=True):
    """One of two families of counts, instructions or bytes: the energy's part that they take, and their names."""

    part: str
    title: str
    unit: str
    plural: str


FAMILIES = (
    Family(COMPUTATION, "Instructions", "instruction", "instructions"),
    Family(DATA, "Bytes", "byte", "bytes"),
)


class CountBar(Struct, frozen=True):
    """A line of the section on one kernel: a count, its bar, its energy and both shares."""

    label: str
    detail: str
    bar: Markup
    energy: Markup
    share: Markup


class Line(Struct, frozen=True):
    """The numbers behind a `CountBar`, before they are written."""

    count: Count
    value: Amount
    energy: Amount
    of_count: float | None
    of_energy: float | None

    @property
    def written_value(self) -> str | None:
        """The kernel's count with its unit."""
        return mapped(quantity, self.value.value, self.count.symbol)


def of_one(view: View) -> Card | None:
    """The report page's section on the kernel that takes most; the script shows others in its place."""
    if not view.kernels:
        return None
    kernel = view.kernels[view.order[0]]
    panels = [_panel(view, kernel, family) for family in FAMILIES]
    per_byte, energy = view.intensity(kernel), view.counted_energy(kernel)
    constant = ratio(energy_of(kernel, CONSTANT), energy_of(kernel, "total"))
    label = f"Energy{when(view.is_above, ' above constant power')}"  # as on the rest of the page
    of_total = [
        ("Constant power", constant, written(percent(constant.or_zero), constant.marks, bound=False)),
        ("Mean power", power_of(kernel), quantity_of(power_of(kernel), "W")),
        ("Energy per flop", view.per_flop(kernel), quantity_of(view.per_flop(kernel), "J")),
    ]
    facts = [
        (label, energy, quantity_of(energy, "J")),
        *of_total * (not view.is_above),
        ("Time", time_of(kernel), quantity_of(time_of(kernel), "s")),
        ("Calls", Amount(kernel.launches), written(whole(kernel.launches))),
        ("Flop per DRAM byte", per_byte, written(plain(per_byte.or_zero), per_byte.marks, bound=False)),
    ]
    explained = "Bars are shares of the count; energies are not known."
    if view.has_energy:
        explained = "Filled: the share of the energy of all instructions, or all bytes; outlined: of their count."
    if not any(panel["lines"] for panel in panels):
        explained = ""
    content: dict[str, Any] = {
        "name": kernel.name,
        "device": when(view.several_devices, kernel.device or ""),
        "above": view.is_above,
        "facts": [(label, text) for label, amount, text in facts if amount.value is not None],
        "message": "",
        "panels": [panel for panel in panels if panel["lines"] or panel["left"]],
        "explained": explained,
    }
    # The kernel's dearest group of counts.
    told = [line for family in FAMILIES for line in lines(view, kernel, family)]
    joules = summed((line.count.group, line.energy.or_zero) for line in told)
    if any(joules.values()):
        group = max(joules, key=joules.__getitem__)
        of = f"{quantity(joules[group], 'J')} of {quantity(above_of(kernel).or_zero, 'J')}"
        content["message"] = f"Most above constant power: {view.group_label(group)}, {of}."
    heading = f"One {view.nouns.kernel}"
    return Card("kernel", heading, heading, "kernel.html", content)


def lines(view: View, kernel: schema.Kernel, family: Family) -> list[Line]:
    """A `Line` for each count of one family in the kernel, in the order of the vocabulary, also for unknown values."""
    exclusive = view.exclusive[family.unit]
    values = {name: view.amount(kernel, name) for name in view.words if name in kernel.counts}
    all_counts = sum(values[name].or_zero for name in exclusive if name in values)
    all_joules = energy_of(kernel, family.part).value
    made = []
    for name, value in values.items():
        count = view.words[name].count
        if count.family != family.part:
            continue
        energy, of_count = view.energy_of_count(kernel.counts[name]), None
        if name in exclusive:
            of_count = ratio_of(value.value, all_counts)
        made.append(Line(count, value, energy, of_count, ratio_of(energy.value, all_joules)))
    return made


def _panel(view: View, kernel: schema.Kernel, family: Family) -> Mapping[str, Any]:
    """What the section on one kernel shows of a family of counts: bars of those that take something, other names."""
    known = lines(view, kernel, family)
    shown = [line for line in known if line.value.value or line.energy.value]
    # Classes that are paid for with all others, by issue, take nothing of their own.
    free = [line for line in shown if view.has_energy and line.energy.value == 0]
    shown = [line for line in shown if line not in free]
    left = [line for line in known if line not in shown and line not in free]
    labels = {
        "At no price of their own": [f"{line.count.label} ({line.written_value})" for line in free],
        "Counted, and none": [line.count.label for line in left if line.value.value == 0],
        "Not counted": [line.count.label for line in left if line.value.value is None],
    }
    scale = max([0.0001, *(max(line.of_count or 0, line.of_energy or 0) for line in shown)])
    energy = energy_of(kernel, family.part)
    write = _energy_bar if view.has_energy else _count_bar
    return {
        "title": family.title,
        "energy": None if energy.value is None else quantity_of(energy, "J"),
        "lines": [write(line, 100 / scale, family, energy) for line in shown],
        "left": [(what, ", ".join(names)) for what, names in labels.items() if names],
    }


def _energy_bar(line: Line, by: float, family: Family, all_energy: Amount) -> CountBar:
    """A count of the kernel with its bar: filled to its share of the energy, outlined to its share of the counts.

    `by`: per cent of the width for a share of 1.
    """
    of_energy, of_count = line.of_energy or 0, line.of_count or 0
    share, marks = mapped(percent, line.of_energy), line.energy.marks
    if share:
        marks |= all_energy.marks
    spoken = f"{share or 'an unknown share'} of the energy, {percent(of_count)} of the {family.plural}"
    bar = as_html.share_bar(line.count.group, by * of_energy, by * of_count, f"{line.count.label}: {spoken}")
    detail = "not counted"
    if line.written_value is not None:
        has_price = line.energy.value is not None or not line.energy.marks & MISSING
        of_all = when(line.of_count is not None, f" · {percent(of_count)}{when(has_price, ' of the count')}")
        detail = written(line.written_value, line.value.marks) + of_all + when(not has_price, " · no price")
    return CountBar(line.count.label, detail, bar, quantity_of(line.energy, "J"), written(share, marks, bound=False))


def _count_bar(line: Line, by: float, family: Family, _: Amount) -> CountBar:
    """A count of the kernel with its bar, where no energies are known: filled to its share of the counts."""
    marks = line.value.marks & ~MISSING
    of_count = line.of_count or 0
    share = mapped(percent, line.of_count)
    spoken = f"{line.count.label}: {percent(of_count)} of the {family.plural}"
    bar = as_html.share_bar(line.count.group, by * of_count, None, spoken)
    lost = when(line.value.value is None, "not counted")
    value = written(line.written_value, marks)
    return CountBar(line.count.label, lost, bar, value, written(share, marks, bound=False))

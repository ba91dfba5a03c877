"""The page of a report, with its key figures: a function of the document `eprof.profile/1` (docs/profile-json.md)."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from markupsafe import Markup
from msgspec.structs import replace

from eprof.base.text import few, phrase, when
from eprof.base.vocabulary import CONSTANT, CPU, Mark
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.headline import headline
from eprof.commands.report.hotspots import hotspots
from eprof.commands.report.page import evidence, kernels, limits_and_whatif, script, table, where
from eprof.commands.report.page.script import Card
from eprof.commands.report.trust import lacks_some, trust
from eprof.commands.report.view import DRAM, View, power_of
from eprof.profile import schema
from eprof.show import amounts, cost_words, html_page
from eprof.show.amounts import MISSING, Amount, ratio, with_marks, without
from eprof.show.cost_words import clocks_and_volts, devices_named
from eprof.show.html_page import Figure, unmasked
from eprof.show.intervals import known, wide
from eprof.show.numbers import NARROW, percent, plain, quantity, signed_percent, span, utc

# To add a section, write `section(view) -> Card | None` and a template in `reports/`, and list it here.
_ANSWERS: tuple[Callable[[View], Card | None], ...] = (
    where.section,
    where.of_phases,
    where.of_operators,
    kernels.section,
    table.section,
    kernels.of_one,
    where.of_components,
    limits_and_whatif.section,
    limits_and_whatif.of_clocks,
    limits_and_whatif.of_what_if,
)
_EVIDENCE: tuple[Callable[[View], Card | None], ...] = (evidence.section, evidence.of_method)
_DEVICES = 3


_UNKNOWN, _UNMEASURED = _NOT = ("not known", "not measured")


def html(document: schema.Profile | Mapping[str, Any]) -> str:
    """The page of a report: one self-contained HTML file."""
    document = unmasked(schema.typed(document, schema.Profile))
    full = View(document)
    # Marks that all known energies share, but "missing" and those of the counting, save "simulated", stand below alone.
    energies = [kernel.energy_marks.total for kernel in document.kernels if kernel.energy_j.total]
    energies += [count.marks for count in document.counts.values() if count.energy_j]
    of_counting = {mark for count in document.counts.values() for way in count.how for mark in way.marks}
    shared = set.intersection(*map(set, energies)) if energies else set()
    shown = without(document, shared - (of_counting - {"simulated"}) - {"missing"})
    is_told = full.energy("total").lower and known(full.interval("total")) is not None
    if is_told:
        shown = _counted_part(shown)
    view = View(shown, is_partial=is_told and lacks_some(full))
    # What the numbers rest on is said with the marks that all of them share.
    cards = [card for card in (*(make(view) for make in _ANSWERS), *(make(full) for make in _EVIDENCE)) if card]
    energy, *others = _figures(view)
    data = {key: text for card in cards for key, text in card.data.items()}
    data["meanings"] = script.text([str(mark.name).lower() for mark in Mark])
    parts = [few(devices_named(document.devices), _DEVICES)]
    parts += [cost_words.all_named(document.prices)]
    if document.costs is not None and len(document.prices) == 1:
        clocks = [part.partition(" at ")[0] for part in clocks_and_volts(document.costs.setting).split(", ")]
        parts += clocks
        if document.device.processor == CPU and document.costs.gpu_match == "other":
            parts.append(f"prices of an {document.costs.device}")
    if document.created_utc:
        parts.append(f"{utc(document.created_utc)[:16]}{NARROW}UTC")
    return html_page.filled(
        "page.html",
        ["report.css"],
        ["report.js"],
        data=Markup(script.joined(data)),  # noqa: S704  escaped in `script`
        title=document.title or "profile",
        name=re.sub(r"^\S*/", "", document.title) or "profile",
        subtitle=" · ".join(part for part in parts if part),
        headline=headline(full),
        # Only energy has a figure that says "not known"; other unknown ones are left out.
        figures=[energy, *(figure for figure in others if figure.value not in _NOT)],
        where=hotspots(view),
        points=[what_to_try(view), trust(full)],
        legend=amounts.legend(view.marks),
        warnings=len(document.warnings),
        sections=cards,
        nouns=view.nouns,
    )


def _counted_part(document: schema.Profile) -> schema.Profile:
    """The document without marks "missing": energies are as counted, and an interval tells what more there may be."""

    def rest(words: tuple[str, ...]) -> list[str]:
        return [word for word in words if word != "missing"]

    def counted(entry: Any) -> Any:
        return replace(entry, energy_marks=with_marks(entry.energy_marks, rest, are_marks=True))

    made: schema.Profile = counted(document)
    clocks = document.clocks
    if clocks:
        clocks = replace(clocks, marks=rest(tuple(clocks.marks)))
    return replace(
        made,
        marks=rest(tuple(document.marks)),
        clocks=clocks,
        kernels=[counted(kernel) for kernel in document.kernels],
        groups=document.groups and [counted(group) for group in document.groups],
        operators=document.operators and [counted(operator) for operator in document.operators],
        what_if=document.what_if and [replace(each, marks=rest(tuple(each.marks))) for each in document.what_if],
    )


def _figures(view: View) -> list[Figure]:
    """The key figures of a report's page: energy, time, power, energy per flop, the meter; counts without energy."""
    time_of = f"{view.nouns.kernel.capitalize()} time"
    time, total, measured = _figure(time_of, view.time, "s"), view.energy("total"), view.document.energy_j.measured
    # Predicted less measured, over measured; or the factor that scaled to the meter.
    meter = Figure("Against the meter", _UNMEASURED)
    if view.to_meter is not None:
        joules = quantity(view.to_meter.metered_j, "J")
        meter = Figure("Scaled to the meter", f"×{NARROW}{plain(view.to_meter.factor)}", f"({joules} metered)")
    elif measured and total.value is not None:
        error = signed_percent((total.value - measured) / measured)
        meter = Figure("Against the meter", error, f"({quantity(measured, 'J')} measured)", total.marks)
    if not view.has_energy:
        unpriced = Figure("Energy", _UNKNOWN, "no cost table" if view.costs is None else "no price")
        if measured:
            unpriced = _figure("Energy", Amount(measured), "J", note="measured")
        return [
            unpriced,
            time,
            _figure("Mean power", ratio(Amount(measured), view.time), "W", note="measured"),
            _figure("Instructions", view.instructions(view.document), ""),
            _figure("To and from DRAM", view.summed(view.document, DRAM), "B"),
            meter,
        ]
    above = _figure("Energy above constant power", view.above, "J", note="predicted")
    if modelled := view.document.modelled_time:
        constant = view.energy(CONSTANT)
        least_j = view.at_the_roofline(constant.or_zero, lambda kernel: kernel.energy_j.constant)
        least_s = view.at_the_roofline(view.time.or_zero, lambda kernel: kernel.time_s)
        more = when(view.time.lower, "or more; ")
        note = f"{more}at the roofline's speed, and at {percent(modelled.efficiency)} of it"
        joules, seconds = span(least_j, constant.or_zero, "J"), span(least_s, view.time.or_zero, "s")
        return [
            above,
            Figure("Constant power", joules, note, constant.marks & ~MISSING),
            Figure(time_of, seconds, note, view.time.marks & ~MISSING),
            meter,
        ]
    of_flops = _figure("Energy per flop", view.per_flop(view.document), "J")
    if view.is_above:
        constant_figure = _figure("Constant power", view.energy(CONSTANT), "J", note="of the cores in use, assumed")
        return [above, constant_figure, time, of_flops, meter]
    energy, ends = total, view.interval("total")
    note, of_counted = f"{view.total_is}{phrase(', {}', wide(ends, 'J'))}", ""
    if view.is_partial and ends:
        note, of_counted = f"counted, at most {quantity(ends[1] or 0.0, 'J')} in all", "of what was counted"
    if idle_j := view.document.idle_j:
        note = f"{quantity(idle_j, 'J')} idle; {view.nouns.kernels} {quantity(energy.or_zero, 'J')} {note}"
        energy = Amount(energy.or_zero + idle_j, energy.marks)
    power = power_of(view.document)
    if view.time.lower:
        # Energy that lacks the constant part of kernels without a time, over the time of the others, is no power.
        power = Amount(None)
    return [
        _figure("Energy", energy, "J", note=note),
        time,
        _figure("Mean power", power, "W", of_counted),
        of_flops,
        meter,
    ]


def _figure(label: str, amount: Amount, unit: str, note: str = "") -> Figure:
    if amount.value is None:
        return Figure(label, _UNKNOWN)
    return Figure(label, quantity(amount.value, unit), note, amount.marks)

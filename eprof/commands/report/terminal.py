"""A report in a terminal: the first screen, or all of it with -v."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from eprof.base.text import counted, cut, phrase, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, DATA
from eprof.commands.report import words
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.headline import gaps_lead, gaps_sentence, headline, is_constant_alone, least_constant
from eprof.commands.report.hotspots import hotspots
from eprof.commands.report.trust import counted_alone, in_part, metered_split_in_short, trust
from eprof.commands.report.trust import notes as trust_notes
from eprof.commands.report.view import DRAM, FAMILY_OF, View
from eprof.logs.runs import PARTIAL
from eprof.profile import schema
from eprof.show import console, cost_words
from eprof.show.blocks import Block, Headline, Legend, Notes, Point, Sentence, Tone
from eprof.show.console import terminal
from eprof.show.cost_words import devices_named, with_capability
from eprof.show.numbers import percent
from eprof.show.rooflines import lever, share_reached

_LINES = 15
_BAR = 64
_SHORT_BAR = 30
_LINE = 80
_SHORTEST_TITLE = 24
_STYLES = {
    "constant": "bright_black",
    "tensor": "color(125)",
    "fp64": "color(130)",
    "fp32": "color(208)",
    "fp16": "color(173)",
    "int": "color(214)",
    "sfu": "color(223)",
    "other": "color(180)",
    "shared": "color(117)",
    "l1": "color(74)",
    "l2": "color(31)",
    "l3": "color(26)",
    "dram": "color(62)",
    "system": "color(97)",
    "requested": "color(109)",
}
# How the bar is filled, so that the three families can be told apart without colours, and what they are called.
_FILLS = {CONSTANT: "░", COMPUTATION: "▓", DATA: "█"}
_NAMES = {CONSTANT: "constant", COMPUTATION: "computing", DATA: "data"}

Document = schema.Profile | Mapping[str, Any]
Part = Block | RenderableType


def show(document: Document, verbose: bool = False) -> None:
    """Print the first screen of a report on the terminal, or all of it if `verbose`."""
    console.show(_parts(document, verbose, terminal().width), verbose)


def text(document: Document, verbose: bool = False, width: int = 110) -> str:
    """A report as the terminal shows it, as plain text of `width` columns."""
    return console.text(_parts(document, verbose, width), verbose, width)


def _parts(document: Document, verbose: bool, width: int) -> list[Part]:
    """The blocks of a report on the terminal: a first screen, in 15 lines if they suffice, or with -v the whole."""
    view = View(document)
    if verbose:
        return list(_everything(view))
    # 15 lines where they suffice; what tells how sure a number is, is never dropped for that.
    above, below = list(_above(view, width)), list(_below(view))
    parts: list[Part] = []
    for number in (5, 4, 3):
        parts = [*above, hotspots(view, number), *below]
        if _number_of_lines(parts, width) <= _LINES:
            break
    # Why a row takes so much is worth more than fifteen lines, if it takes more than those anyway.
    briefly: list[Part] = [*above, hotspots(view, 3, True), *below]
    if _number_of_lines(parts, width) > _LINES >= _number_of_lines(briefly, width):
        parts = briefly
    notes = trust_notes(view, what_to_try(view).text)
    partial = [note for note in notes if PARTIAL in note]
    noted = [*parts, *(Point("Note", note.rstrip(".") + ".") for note in (partial or notes)[:1])]
    if partial or _number_of_lines(noted, width) <= _LINES:
        return noted
    return parts


def _number_of_lines(parts: list[Part], width: int) -> int:
    return len(console.text(parts, width=width).splitlines())


def _above(view: View, width: int) -> Iterator[Part]:
    """What a first screen says above its rows: what was profiled, the headline, the bar."""
    devices = "".join(f" · {device}" for device in devices_named(view.document.devices))
    behind = cut(devices, width - _SHORTEST_TITLE)
    # Without the folders of the program, whose path may hold spaces on Windows.
    title = view.document.title
    end = title.find(".exe" if "\\" in title else " ")
    if end <= 0:
        end = len(title)
    title = re.split(r"[/\\]", title[:end])[-1] + title[end:]
    yield Sentence(cut(title, width - len(behind)) + behind, Tone.QUIET)
    told = headline(view)
    lead = " ".join(filter(None, [gaps_sentence(view), metered_split_in_short(view)]))
    if gaps_lead(view) or view.is_modelled:
        lead = when(view.has_energy, told.lead)
    yield Headline(told.text, lead)
    parts = {group: amount.value for group, amount in view.groups.items() if amount.value}
    if view.is_above:
        parts.pop(CONSTANT, None)
    is_told = view.above.value is not None and not counted_alone(view) and not is_constant_alone(view)
    is_mixed = len({FAMILY_OF[group] for group in parts}) > 1
    if is_told and is_mixed and not least_constant(view)[0]:  # beside it, much more was not counted
        families = _family_legend(view, parts)
        yield _filled(parts, min(_SHORT_BAR, _LINE - len(families))).append(families, style="dim")


def _below(view: View) -> Iterator[Part]:
    """What a first screen says below its rows: what to try, answers to what-ifs, how far it is to be trusted."""
    if view.document.ranks:
        yield Sentence(words.slowest_words(view.document.ranks))
    yield what_to_try(view)
    if view.document.time_components:
        yield Point("Time", words.component_words(view))
    for what_if in view.document.what_if or ():
        if what_if.asked:
            yield Point("If", words.answer_words(what_if).removeprefix("If "))
    notes = len(view.document.warnings)
    yield Point("Trust", f"{trust(view).text} -v: {when(notes, counted(notes, 'note')) or 'every number'}.")


def _everything(view: View) -> Iterator[Part]:
    """The report with -v, in tables: every kernel, count, answer and note."""
    document = view.document
    told = [document.title, ", ".join(devices_named(document.devices, with_capability))]
    if document.prices:
        prices = [cost_words.priced(costs) + cost_words.of_gpu(costs) for costs in document.prices]
        told.append(f"costs {', '.join(prices)}")
    yield Sentence(" · ".join(told), Tone.QUIET)
    yield headline(view)
    if view.has_energy:
        yield from _bar(view)
        yield words.split_table(view)
    if document.groups:
        yield words.group_table(view, document.groups)
        if document.ranks:
            yield Sentence(words.rank_words(document.ranks, view.nouns))
    if view.document.operators:
        yield words.operator_table(view, None)
    yield words.kernel_table(view, None)
    if view.document.time_components:
        yield words.component_table(view, None)
    if view.has_energy:
        lines = []
        limits = view.document.limits
        clocks = view.document.clocks
        answers = view.document.what_if or ()
        if limits and view.kernels and limits.kernels[0].speed_share is not None:
            first = limits.kernels[0]
            arch = phrase(" and {} of the best flop/J", share_reached(first, "energy_share"))
            speed = f"{share_reached(first, 'speed_share')} of the roofline's speed{arch}"
            lines.append(f"{view.label(view.kernels[0])}: {speed}; {lever(first)}.")
        if clocks:
            lines.append(words.clock_words(clocks, document))
        lines += map(words.answer_words, answers)
        if lines:
            yield Sentence("Modelled, not measured:", Tone.QUIET)
        for line in lines:
            yield Sentence(f"- {line}")
    counts = words.count_table(view, verbose=True)
    if counts.rows:
        yield counts
    yield Legend(view.marks if view.costs else 0)
    yield from map(Sentence, in_part(view))
    if view.document.time_from:
        yield Sentence(f"Time: {view.document.time_from}", Tone.QUIET)
    yield Notes(view.document.warnings, "warning")


def _bar(view: View) -> Iterator[RenderableType]:
    """A report's 100 % bar on the terminal, and its legend of groups below."""
    parts = {group: amount.value for group, amount in view.groups.items() if amount.value}
    total_j = sum(parts.values())
    if view.above.value is None or total_j <= 0:
        return
    yield Padding(_filled(parts, _BAR), (1, 0, 0, 0))
    names = Text()
    for group, joules in parts.items():
        share = when(joules >= 0.005 * total_j, f"{100 * joules / total_j:.0f}") or "<1"
        names.append(f"{_FILLS[FAMILY_OF[group]] * 2} ", style=_STYLES[group])
        names.append(f"{view.group_label(group)} {share} %".replace(" ", "\u00a0") + "   ")
    yield names


def _filled(parts: Mapping[str, float], cells: int) -> Text:
    """A bar of `cells` characters, filled by each group in proportion to its joules."""
    total_j = sum(parts.values())
    bar = Text()
    running_j = 0.0
    drawn = 0
    for group, joules in parts.items():
        # Rounding is done on the running sum, so that the cells add up to the width exactly.
        running_j += joules
        length = round(cells * running_j / total_j) - drawn
        drawn += length
        bar.append(_FILLS[FAMILY_OF[group]] * length, style=_STYLES[group])
    return bar


def _family_legend(view: View, parts: Mapping[str, float]) -> str:
    """The legend of the bar: families with shares; of a CPU whose cycles pay for its caches too, the rest is DRAM."""
    total_j = sum(parts.values())
    names, legend = _NAMES, ""
    if view.caches_are_in_cycles:
        names = {**_NAMES, COMPUTATION: "computing and caches", DATA: "DRAM" + when(view.to_meter, " bytes")}
    for family, name in names.items():
        joules = sum(value for group, value in parts.items() if FAMILY_OF[group] == family)
        legend += when(joules, f"  {_FILLS[family]} {name} {percent(joules / total_j)}")
    is_lost = view.caches_are_in_cycles and view.summed(view.document, DRAM).value is None
    return legend + when(is_lost, f"  {_FILLS[DATA]} DRAM not counted")

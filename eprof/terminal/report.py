"""The summary of a profile in a terminal."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from eprof.base.vocabulary import COUNTS
from eprof.base.vocabulary import GROUPS as LABELS
from eprof.profile import schema
from eprof.terminal import drawing
from eprof.words import costs as costs_words
from eprof.words.blocks import Block, Legend, Notes, Sentence, Tone
from eprof.words.headline import headline
from eprof.words.lever import lever, reached
from eprof.words.modelled import answer_words, clock_words
from eprof.words.names import short
from eprof.words.ranks import rank_words
from eprof.words.report import count_table, group_table, kernel_table, operator_table, split_table
from eprof.words.view import View

_KERNELS = 10
_BAR = 64
_STYLES = {
    "constant": "bright_black",
    "tensor": "color(89)",
    "fp64": "color(130)",
    "fp32": "color(208)",
    "fp16": "color(173)",
    "int": "color(214)",
    "sfu": "color(223)",
    "other": "color(180)",
    "shared": "color(117)",
    "l1": "color(74)",
    "l2": "color(25)",
    "dram": "color(18)",
    "system": "color(60)",
    "requested": "color(109)",
}
# How a group is filled, so that the three families can be told apart without colours.
_FILLS = {count.group: {"computation": "▓", "data": "█"}[count.family] for count in COUNTS.values()}

Document = schema.Profile | Mapping[str, Any]
Part = Block | RenderableType


def show(document: Document, verbose: bool = False) -> None:
    """Print the summary on standard output; every kernel and note if `verbose`."""
    drawing.show(_summary(document, verbose), verbose)


def text(document: Document, verbose: bool = False, width: int = 110) -> str:
    """The same summary as plain text of `width` columns."""
    return drawing.text(_summary(document, verbose), verbose, width)


def _summary(document: Document, verbose: bool) -> Iterator[Part]:
    view = View(document)
    yield Sentence(_subject(view.document), Tone.QUIET)
    yield headline(view)
    if view.has_energy:
        yield from _bar(view)
        yield split_table(view)
    yield from _groups(view, verbose)
    if verbose and view.document.operators:
        yield operator_table(view, None)
    yield kernel_table(view, None if verbose else _KERNELS)
    if view.has_energy:
        yield from _modelled(view, verbose)
    counts = count_table(view, verbose)
    if counts.rows:
        yield counts
    yield Legend(view.marks if view.costs else 0)
    if view.document.time_from:
        yield Sentence(f"Time: {view.document.time_from}", Tone.QUIET)
    yield Notes(view.document.warnings, "warning")


def _subject(document: schema.Profile) -> str:
    devices = Counter(_device(device) for device in document.devices)
    named = [f"{number} × {name}" if number > 1 else name for name, number in devices.items()]
    words = [document.title, ", ".join(named)]
    if document.costs is not None:
        words.append(f"costs {costs_words.priced(document.costs)}")
    return " · ".join(words)


def _device(device: schema.Device) -> str:
    capability = f" (capability {device.capability})" if device.capability else ""
    return f"{device.name or 'GPU not named'}{capability}"


def _bar(view: View) -> Iterator[RenderableType]:
    """The 100 % bar with its legend."""
    parts = {group: amount.value for group, amount in view.groups.items() if amount.value}
    total = sum(parts.values())
    if total <= 0:
        return
    bar, legend = Text(), Text()
    running = 0.0
    drawn = 0
    for group, joules in parts.items():
        # Rounding is done on the running sum, so that the cells add up to the width exactly.
        running += joules
        cells = round(_BAR * running / total) - drawn
        drawn += cells
        fill, style = _FILLS.get(group, "░"), _STYLES[group]
        bar.append(fill * cells, style=style)
        percent = f"{100 * joules / total:.0f}" if joules >= 0.005 * total else "<1"
        legend.append(f"{fill * 2} ", style=style)
        legend.append(f"{LABELS[group]} {percent} %".replace(" ", "\u00a0") + "   ")
    yield Padding(bar, (1, 0, 0, 0))
    yield legend


def _groups(view: View, verbose: bool) -> Iterator[Part]:
    """Phases: each group with the same split as the whole; of many ranks the first, all if `verbose`."""
    groups = view.document.groups
    ranks = view.document.ranks
    if not groups:
        return
    yield group_table(view, groups[:_KERNELS] if ranks and not verbose else groups)
    if ranks:
        yield Sentence(rank_words(ranks))


def _modelled(view: View, verbose: bool) -> Iterator[Part]:
    """What the model says of limits, clocks and changes: the answers asked for, the best one, all if `verbose`."""
    lines = []
    limits = view.document.limits
    clocks = view.document.clocks
    answers = view.document.what_if or []
    if limits and view.kernels and limits.kernels[0].speed_share is not None:
        lines.append(_limit(view.kernels[0], limits.kernels[0]))
    if clocks:
        lines.append(clock_words(clocks))
    best = min((answer.change_j or 0.0 for answer in answers), default=0.0)
    lines += [answer_words(answer) for answer in answers if verbose or answer.asked or answer.change_j == best]
    if lines:
        yield Sentence("Modelled, not measured:", Tone.QUIET)
    for line in lines:
        yield Sentence(f"- {line}")


def _limit(kernel: schema.Kernel, limit: schema.Limit) -> str:
    """How far the largest kernel is from its limits."""
    share = reached(limit, "energy_share")
    arch = "" if share is None else f" and {share} of the arch line's flop/J"
    return f"{short(kernel.name, 30)}: {reached(limit, 'speed_share')} of the roofline's speed{arch}; {lever(limit)}."

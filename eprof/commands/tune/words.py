"""A document `eprof.tune/1` in words, tables and the heat map's cells: for page, terminal and Markdown alike."""

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from eprof.base.labels import labels
from eprof.base.optional import growth, mapped
from eprof.base.text import bracketed, capital, phrase, printable, when
from eprof.commands.tune.document import At, Gain, Kernel, Picked, Tune, label, same
from eprof.lab.objective import Clocks
from eprof.show import blocks as show
from eprof.show import cost_words
from eprof.show.blocks import Block, Cell, Column, Headline, Name, Notes, Quantity, Row, Sentence, Table
from eprof.show.heat_map import HeatCell, heat_step
from eprof.show.intervals import known
from eprof.show.numbers import LITTLE, NARROW, more_or_less, percent_span, quantity, quantity_or
from eprof.show.numbers import error_percent as percent

if TYPE_CHECKING:
    from rich.console import RenderableType

TITLE = "# Clocks"
_OF_SIMULATED = (
    "The choice is the model's until times are measured: simulated kernels take the roofline's time at every clock "
    "(docs/tune.md)."
)
_HOW = {"modelled": "predicted, with modelled times", "measured": "predicted for measured times"}
_NO_SMI = ("jetson", "tegra")  # GPUs that nvidia-smi does not set
_LOCKS_CORE, _LOCKS_MEMORY = 7.0, 8.0  # compute capabilities since which it locks these clocks
_WIDE = 125  # columns of a terminal


def headline(document: Tune) -> Headline:
    """The headline of tuning: what the best clocks save and cost against those that ran, or the fastest."""
    best, before = document.answer(document), document.baseline(document)
    if best is None:
        known_there = [setting for setting in document.settings if setting.value is not None]
        cannot = when(len(known_there) < 2, "Nothing tells which setting gives") or "No setting gives"
        return Headline(f"{cannot} {document.objective_words}.", "The notes say why.")
    how = when(document.measured_best is None, _HOW[document.time.source]) or "as measured"
    against = baseline(document)
    setting, gives = f"{best.label}{NARROW}MHz", f"gives the {document.objective_words}"
    text = f"{setting} {gives}"
    lead = [f"For {document.program}, {how}.", phrase("Not measured there: {}.", best.why)]
    if same(best, before):
        stay = when(document.is_of_run, ": nothing to change")
        text = f"{setting}, {against}, {gives}{stay}"
    elif before is not None:
        changes = _changes(document, best, before, document.gain)
        told = f"{before.label}{NARROW}MHz, {against}"
        text += phrase(f": {{}} than {told}", changes)
        if not is_recommended(document):
            is_little = document.gain is None or (document.gain.share or 0.0) < LITTLE
            better = when(is_little, f"better by {100 * LITTLE:g}{NARROW}%") or "surely better"
            text = f"No setting is {better} than {told}: {setting} {gives}, {changes}"
        outside = [setting for setting in document.settings if same(setting, before) and not setting.allowed]
        lead.append(when(outside, f"{before.label}{NARROW}MHz is outside the limit."))
    if document.held_by and document.ran is not None:
        there = phrase(": {} than there", when(not same(best, document.ran), _changes(document, best, document.ran)))
        locked = f"{document.held_by}, which locks clocks to their base by default, ran it at {document.ran.label}"
        lead.append(f"{locked}{there}.")
    if document.time.of_simulated:
        lead.append(_OF_SIMULATED)
    model, measured = document.best, document.measured_best
    if model is not None and measured is not None:
        off = phrase(" (its power is {} off on average)", mapped(percent, document.model.power_error_percent or None))
        picks = phrase(f" picks {model.label}{NARROW}MHz: {{}} than that.", _changes(document, model, measured))
        if same(model, measured):
            picks = " picks it too."
        lead.append(when(picks, f"The model{off}{picks}"))
    lead.append(_command(document, best))
    return Headline(f"{text}.", " ".join(filter(None, lead)))


def is_recommended(document: Tune) -> bool:
    """Whether the answer saves enough, and surely enough, to change clocks for; so, too, where no gain is known."""
    return document.gain is None or document.gain.is_worth_it


def _changes(document: Tune, best: At, before: At, gain: Gain | None = None) -> str:
    """How energy and time change from `before`: "3.9 % less energy and 2.1 % more time"; "" where one is unknown."""
    nouns = zip(("energy", "time"), document.amounts(document), strict=True)
    changes = [change(noun, getattr(best, field), getattr(before, field)) for noun, field in nouns]
    ends = mapped(lambda gain: known(gain.energy_range), gain)
    changes[0] += bracketed(mapped(lambda ends: percent_span(*ends), ends) or "")
    return when(all(changes), " and ".join(changes))


def _command(document: Tune, best: At) -> str:
    """A sentence with the command of nvidia-smi that sets the best clocks; "" where it has none, or none is needed.

    GPUs whose clocks cannot be locked, but for GeForce boards, take application clocks.
    """
    now, device = document.now, document.model.device.lower()
    is_of_gpu = document.is_of_run and not document.processor and not document.time.of_simulated
    is_change = is_recommended(document) and not same(best, now)
    if now is None or not is_of_gpu or not is_change or any(name in device for name in _NO_SMI):
        return ""
    is_of_memory = best.memory_mhz != now.memory_mhz
    since = float(document.capability or 0.0)
    if since >= _LOCKS_MEMORY or since >= _LOCKS_CORE and not is_of_memory:
        memory = when(is_of_memory, f" -lmc {best.memory_mhz:g}")
        return f"To set it: sudo nvidia-smi -lgc {best.core_mhz:g}{memory}."
    return when("geforce" not in device, f"To set it: sudo nvidia-smi -ac {best.memory_mhz:g},{best.core_mhz:g}.")


def baseline(document: Tune) -> str:
    """What the best setting is held against, in words: "where it ran", "the fastest setting"."""
    if document.is_now_assumed:
        default = "the table's default, taken for where it ran"
        where = when(document.held_by, f"the top clock, taken for where it runs without {document.held_by}")
        return f"{where or default} (--setting tells)"
    if not document.is_of_run:
        return "the fastest setting"
    return when(document.held_by, "where it runs") or "where it ran"


def subject(document: Tune) -> str:
    """The cost table that tuning rests on, and its basis; "" where fits predicted the power."""
    return when(document.model.name, cost_words.all_named([document.model]))


def change(noun: str, value: float | None, before: float | None) -> str:
    """The change of energy or time (`noun`): "3.9 % less energy", "the same time"; "" where one is not known."""
    share = growth(value, before)
    if share is None:
        return ""
    if abs(share) < 0.5e-4:
        return f"the same {noun}"
    return f"{more_or_less(share, write=lambda size: percent(100 * size))} {noun}"


def blocks(document: Tune, verbose: bool) -> Iterator[Block]:
    """Yield the blocks on which clocks to choose, for a terminal and for Markdown; every kernel if `verbose`."""
    table = kernels(document, show.limit(10, verbose))
    whole = Row([Name(document.program, document.program), *_picked_cells(document, document)], total=True)
    yield replace(table, rows=[whole, *table.rows])
    yield from map(Sentence, [*lost_words(document), time_words(document)])
    yield Notes(document.notes)


def lost_words(document: Tune) -> Iterator[str]:
    """Yield how often the model, and the fastest setting, miss the measured best, and at what loss; or nothing."""
    losses = document.energy_lost_percent
    if losses is None:
        return
    for picker, lost in (("The model", losses.model), ("The fastest setting", losses.oracle)):
        loss = ""
        if lost.wrong:
            loss = (
                f"; over those it uses {percent(lost.mean_percent)} more energy on average "
                f"({percent(lost.min_percent)} to {percent(lost.max_percent)})"
            )
        yield f"{picker} is not the measured best for {lost.wrong} of {lost.cases} kernels{loss}."


def time_words(document: Tune) -> str:
    """Sentences on where times at other clocks are from, and how far modelled ones are off."""
    model, tested = document.time.model, ""
    if (error := document.time.error) is not None:
        tested = (
            f" On these kernels, each left out in turn, modelled times are off by {percent(error.mean_percent)} on "
            f"average, {percent(error.max_percent)} at most."
        )
    if document.time.source == "measured":
        return f"Times are as measured.{tested}"
    untested = " Their error was not measured for this profile (docs/tune.md has it for four data sets)."
    return str(getattr(model, "words", "")) + (tested or untested)


def by_energy(document: Tune) -> list[Kernel]:
    """The kernels of a document, those first that use most energy at their best setting."""

    def joules(kernel: Kernel) -> float:
        return getattr(document.answer(kernel), document.amounts(kernel)[0], None) or 0.0

    return sorted(document.kernels, key=joules, reverse=True)


def kernels(document: Tune, most: int | None = None) -> Table:
    """Table of every kernel's best setting against that of the run, or its own fastest. most: rows; None: all."""
    listed = by_energy(document)
    shown = listed[:most]
    fastest = show.everywhere_if(not document.is_of_run)
    measured = show.everywhere_if(any(each.measured_best is not None and each.best is not None for each in listed))
    room = bool(measured) * _WIDE  # 80 columns hold what is asked for first
    columns = [
        Column(document.nouns.kernel, "left"),
        *map(Column, ("best", "energy")),
        Column("time", from_width=room),
        Column("fastest", media=fastest),
        Column("saves %"),
        Column("more time %", from_width=room),
        Column("model", media=measured),
        Column("loses %", media=measured),
    ]
    named = zip(shown, labels([kernel.name for kernel in shown]), strict=True)
    rows = [Row([Name(name, kernel.name), *_picked_cells(document, kernel)]) for kernel, name in named]
    more = len(listed) - len(shown)
    return Table(columns, rows, left_out=when(more, f"{more} more with less energy"), browsable=True)


def _picked_cells(document: Tune, picked: Picked) -> list[Cell]:
    """A kernel's or the program's cells of `kernels`: best setting, energy, time, fastest, changes, the model's."""
    best, before = document.answer(picked), document.baseline(picked)
    energy, time = document.amounts(picked)
    amounts: list[Cell] = []
    changes: list[Cell] = []
    for field, unit, sign in ((energy, "J", -1), (time, "s", 1)):
        value = getattr(best, field, None)
        share = growth(value, getattr(before, field, None))
        amounts.append(mapped(Quantity, value, unit) or "–")
        changes.append(show.decimals(mapped(lambda part, sign: sign * 100 * part + 0.0, share, sign)))  # no minus zero
    fastest = when(same(best, picked.fastest), "same") or label(picked.fastest)
    lost = show.decimals(getattr(picked, "lost_percent", None))
    return [label(best), *amounts, fastest, *changes, label(picked.best), lost]


class Heat(Struct, frozen=True):
    """A heat map of energy: its cells by (core MHz, memory MHz), and sentences above and below."""

    cells: Mapping[tuple[float, float], HeatCell]
    caption: str
    legend: str


def heat(document: Tune) -> Heat | None:
    """The heat map of the program's energy at each pair of clocks; None where no energy is known."""
    energy, time = document.amounts(document)
    known = [joules for setting in document.settings if (joules := getattr(setting, energy)) is not None]
    if not known:
        return None
    signs = ["* best"]
    if not document.is_of_run:
        signs.append("» fastest")
    if document.measured_best is not None and document.best is not None:
        signs.append("m the model's pick")
    if any(setting.why for setting in document.settings):
        signs.append("? the table was not measured there")
    how = when(document.measured_best is not None, "Measured ")
    caption = f"{how}energy of {document.program} at each setting, {quantity(min(known), 'J')} at the lowest."
    cells = {}
    for setting in document.settings:
        words = ["not known"]
        joules, seconds = getattr(setting, energy), getattr(setting, time)
        if joules is not None and seconds is not None:
            words = [f"{quantity(joules, 'J')} in {quantity(seconds, 's')}"]
        if setting.measured_j is not None and setting.energy_j is not None:
            words[0] += f", predicted {quantity(setting.energy_j, 'J')}"
        words += filter(None, [setting.why, when(not setting.allowed, "may not be picked")])
        cells[setting.core_mhz, setting.memory_mhz] = HeatCell(
            quantity_or("–", joules, "J"),
            heat_step(joules, known),
            _heat_signs(document, document, setting) + when(setting.why, "?"),
            f"{setting.label} MHz: {'; '.join(words)}",
            same(setting, document.now),
            setting.allowed,
        )
    return Heat(cells, capital(caption), ", ".join(signs))


def thinned(cells: Mapping[tuple[float, float], HeatCell], most: int) -> Mapping[tuple[float, float], HeatCell]:
    """The heat map's cells of about `most` core clocks: those with a sign, and others evenly between."""
    cores = sorted({core for core, _ in cells})
    told = {core for (core, _), cell in cells.items() if cell.is_now or set(cell.sign) - {"?"}}
    others = [core for core in cores if core not in told]
    shown = {*told, *others[:: max(1, math.ceil(len(others) / max(1, most - len(told))))]}
    return {clocks: cell for clocks, cell in cells.items() if clocks[0] in shown}


def kernel_heat(document: Tune, kernel: Kernel) -> Mapping[tuple[float, float], HeatCell]:
    """The heat map's cells for one kernel, by (core MHz, memory MHz)."""
    energies = getattr(kernel, document.amounts(kernel)[0])
    known = [energy for energy in energies if energy is not None]
    return {
        (setting.core_mhz, setting.memory_mhz): HeatCell(
            quantity_or("–", energy, "J"), heat_step(energy, known), _heat_signs(document, kernel, setting)
        )
        for setting, energy in zip(document.settings, energies, strict=True)
    }


def _heat_signs(document: Tune, picked: Picked, setting: Clocks) -> str:
    """The signs of a setting in a heat map: * the answer, » the fastest, m the model's pick where power was metered."""
    signs = {"*": document.answer(picked)}
    if picked.measured_best is not None:
        signs["m"] = picked.best
    if not document.is_of_run:
        signs["»"] = picked.fastest
    return "".join(sign for sign in "*»m" if same(signs.get(sign), setting))


# From less to more, as the page has them; light text on the dark ones.
_STEPS = (230, 223, 222, 215, 208, 172, 130, 94, 52)
_DARK_FROM = 6
_LEAST_WIDE = 80  # columns of the narrowest terminal


def on_terminal(document: Tune, verbose: bool) -> Iterator["Block | RenderableType"]:
    """Yield what a terminal shows of tuning: a heat map, core clock across and memory clock down, then `blocks`."""
    from rich.table import Table as Grid
    from rich.text import Text

    def drawn(cell: HeatCell) -> Text:
        style = "dim"
        if cell.step is not None:
            ink = {True: 255}.get(cell.step >= _DARK_FROM, 16)
            style = f"color({ink}) on color({_STEPS[cell.step]})"
        return Text(printable(cell.text + cell.sign), style=style)

    if (energies := heat(document)) is not None:
        yield ""
        room = (_LEAST_WIDE - 6) // (2 + max(len(cell.text + cell.sign) for cell in energies.cells.values()))
        cells = thinned(energies.cells, room)
        cores = sorted({core for core, _ in cells})
        some = when(len(cells) < len(energies.cells), " some of the clocks")
        yield show.quiet(f"{energies.caption} Core MHz across{some}, memory MHz down.")
        grid = Grid("", *(f"{core:g}" for core in cores), box=None, pad_edge=False)
        for column in grid.columns:
            column.justify = "right"
        for memory in sorted({memory for _, memory in cells}, reverse=True):
            row = (cells.get((core, memory)) for core in cores)
            grid.add_row(f"{memory:g}", *(mapped(drawn, cell) or "" for cell in row))
        yield grid
        now = phrase(", now at {}", getattr(document.now, "label", None))
        yield show.quiet(f"{energies.legend}{now}")
    yield from blocks(document, verbose)

"""A document `eprof.roofline/1` in sentences and tables; and in a terminal, with lines drawn in characters."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, zip_longest
from typing import Any

from msgspec import Struct
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from eprof.base.labels import label_of, labels
from eprof.base.optional import mapped
from eprof.base.text import by_sign, in_markdown, phrase, printable, when
from eprof.base.vocabulary import nouns_of
from eprof.profile import schema
from eprof.show import console, cost_words
from eprof.show.blocks import Block, Column, Headline, Name, Notes, Row, Sentence, Table, limit, numbers, quiet
from eprof.show.export import markdown
from eprof.show.numbers import percent, plain, plain_or, quantity
from eprof.show.rooflines import limit_table, mended, racing, share_reached

_SIGNIFICANT = 0.05


def label(machine: schema.Machine) -> str:
    """A machine of a roofline in a few words: "14 × jetson-tk1 852/924 FP32", "my-gpu FP32 at random"."""
    number = when(machine.number != 1, f"{machine.number:g} × ")
    cap = phrase(", {:.4g} W", machine.power_cap_w)
    order = when(machine.access_b, " at random")
    return f"{number}{_named(machine.name, machine.setting)} {machine.precision.upper()}{order}{cap}"


def _named(name: str, setting: str) -> str:
    return name + when(setting != "fixed", f" {setting}")


def leads(document: schema.Roofline) -> list[str]:
    """The sentences above the rooflines: on equal power, a cap sweep, a test of the cap, then on each machine."""
    nouns, machines = nouns_of(document.processor), document.machines
    sentences = list(map(match, document.equal_power))
    if document.cap_sweep:
        sentences.append(swept(document))
        machines = machines[:1]
    if test := document.cap_test:
        surely = by_sign(test.p - _SIGNIFICANT, "differ", "cannot be told apart")
        sentences.append(
            f"Speeds by the roofline are {test.uncapped_percent:+.3g} % off (median of {test.kernels} "
            f"{nouns.kernels}), with the power cap {test.capped_percent:+.3g} %. The two sets of errors {surely} "
            f"(Kolmogorov-Smirnov D = {test.statistic:.2g}, p = {test.p:.2g})."
        )
    return [*sentences, *(f"{label(machine)}: {racing(machine, nouns)}" for machine in machines)]


def swept(document: schema.Roofline) -> str:
    """A sentence on what the lowest power cap of a sweep leaves of power and speed."""
    sweep, machine = document.cap_sweep, document.machines[0]
    assert sweep
    last = sweep.steps[-1]
    memory_bound, *_, compute_bound = last.speed_shares
    return (
        f"{_named(machine.name, machine.setting)} with 1/{last.divisor} of its {quantity(sweep.usable_power_w, 'W')} "
        f"above constant power still draws {quantity(last.peak_power_w, 'W')}, {percent(last.peak_power_share)} of the "
        f"highest power. It keeps {percent(memory_bound)} of its speed at {plain(sweep.intensities[0])} flop/B, "
        f"{percent(compute_bound)} at {plain(sweep.intensities[-1])}."
    )


def sweep_table(document: schema.Roofline) -> Table | None:
    """Table of a machine under power caps, a row a cap: what is left of power, speed and flop/J; None without caps."""
    sweep = document.cap_sweep
    if not sweep:
        return None
    where = [plain(intensity) for intensity in sweep.intensities]
    columns = [Column("power", "left"), *numbers("cap", "highest", *(f"speed at {place}" for place in where))]
    columns += [Column(f"flop/J at {place}", from_width=136) for place in where]
    rows = []
    for step in sweep.steps:
        power = {1: "all"}.get(step.divisor, f"1/{step.divisor}")
        shares = map(percent, (step.peak_power_share, *step.speed_shares, *step.efficiency_shares))
        rows.append(Row([power, quantity(step.power_cap_w, "W"), *shares]))
    note = "Power: above constant power. Shares of what the machine does with all of it, at so many flop/B."
    return Table(columns, rows, note=note)


def match(equal: schema.EqualPower) -> str:
    """Sentences on how many of a machine draw as much power as the reference, and which of the two is better where."""
    name, reference = _named(equal.name, equal.setting), _named(equal.reference, equal.reference_setting)
    return (
        f"{equal.number:g} × {name} draw up to {quantity(equal.peak_power_w, 'W')}, {reference} "
        f"{quantity(equal.reference_peak_power_w, 'W')} (exactly equal: {equal.number_exact:.4g}). "
        f"Faster: {regions(equal.faster)}. More flop/J: {regions(equal.more_efficient)}."
    )


def regions(ranges: Sequence[schema.Region]) -> str:
    """Whose line is higher where: "gtx680 below 3.76 flop/B (up to 1.07 times), jetson-tk1 from there on"."""
    texts = []
    for region in ranges:
        low, high = plain_or("", region.low), plain_or("", region.high)
        where = phrase("below {} flop/B", high) or "everywhere"
        if low:
            where = f"from {low}{phrase(' to {}', high)} flop/B"
        least, most = (f"{factor:.2f}" if factor < 10 else f"{factor:.3g}" for factor in (region.least, region.most))
        times = most
        if least != most:
            times = {"1.00": f"up to {most}"}.get(least, f"{least} to {most}")
        texts.append(f"{region.winner or 'both the same'} {where}{when(region.winner, f' ({times} times)')}")
    return "; ".join(texts)


def headline(document: schema.Roofline) -> str:
    """The headline: on equal power, on a cap sweep, on the first kernel with a roofline, or on the first machine."""
    if document.equal_power:
        return match(document.equal_power[0])
    if document.cap_sweep:
        return swept(document)
    for dot in document.kernels:
        speed = share_reached(dot, "speed_share")
        if speed is not None:
            name = label_of(dot.name, [other.name for other in document.kernels], 40)
            others = when(dot is not document.kernels[0], " of those with a roofline")
            limit = when(dot.limited_by == "dram", "DRAM") or "Arithmetic"
            reaches = f"{limit} limits its speed, and it reaches {speed} of that{phrase('; {}', mended(dot))}."
            return f"{name} takes the most energy{others}. {reaches}"
    if document.kernels and not has_places(document):
        is_timed = any(dot.time_s is not None for dot in document.kernels)
        lacks = when(is_timed, "flops or DRAM bytes were not counted") or "no time is known"
        how = phrase("; {}", document.to_count or "")
        return f"No {nouns_of(document.processor).kernel} can be held against the roofline: {lacks}{how}."
    return f"{label(document.machines[0])}: {racing(document.machines[0], nouns_of(document.processor))}"


def has_places(document: schema.Roofline) -> bool:
    """Whether any kernel with a time has a place in the plots: a speed against the roofline, or flops per DRAM byte."""
    timed = [dot for dot in document.kernels if dot.time_s is not None]
    return any(dot.speed_share is not None or dot.intensity_flop_per_byte.dram is not None for dot in timed)


_ROWS: tuple[tuple[str, Callable[[schema.Machine], str]], ...] = (
    ("peak", lambda machine: quantity(machine.peak_flop_per_s, "flop/s")),
    ("DRAM", lambda machine: quantity(machine.dram_byte_per_s, "B/s")),
    ("a flop costs", lambda machine: f"{machine.flop_pj:.4g} pJ"),
    ("a DRAM byte costs", lambda machine: f"{machine.dram_pj_per_byte:.4g} pJ"),
    ("constant power", lambda machine: quantity(machine.constant_power_w, "W")),
    ("time balance, flop/B", lambda machine: plain(machine.time_balance)),
    ("energy balance, flop/B", lambda machine: plain(machine.energy_balance)),
    ("half of the best flop/J from, flop/B", lambda machine: plain(machine.effective_energy_balance)),
    ("of a flop at peak, not constant power", lambda machine: percent(machine.flop_efficiency)),
    ("best speed", lambda machine: quantity(machine.best_flop_per_s, "flop/s")),
    ("best efficiency", lambda machine: quantity(machine.peak_flop_per_j, "flop/J")),
    ("highest power", lambda machine: quantity(machine.peak_power_w, "W")),
    ("the fastest is most efficient", lambda machine: when(machine.race_to_halt, "yes") or "no"),
)

_ROWS_AT_RANDOM: tuple[tuple[str, Callable[[schema.Machine], str]], ...] = (
    ("a random access costs", lambda machine: quantity((machine.access_pj or 0.0) * 1e-12, "J")),
    ("random accesses", lambda machine: quantity(machine.access_per_s or 0.0, "/s")),
    ("random accesses for a joule", lambda machine: quantity(machine.access_per_j or 0.0, "/J")),
)


def machine_table(machines: Sequence[schema.Machine]) -> Table:
    """Table of the numbers behind the rooflines (peaks, prices, balances, best values): a column a machine."""
    rows = [Row([name, *(read(machine) for machine in machines)]) for name, read in _ROWS]
    if any(machine.access_b for machine in machines):
        for name, read in _ROWS_AT_RANDOM:
            rows.append(Row([name, *(when(machine.access_b, read(machine)) for machine in machines)]))
    if any(machine.power_cap_w is not None for machine in machines):
        capped = []
        for machine in machines:
            begin, end = mapped(plain, machine.capped_from or None), mapped(plain, machine.capped_to)
            ends = " ".join(filter(None, [phrase("from {}", begin), phrase("to {}", end)])) or "everywhere"
            is_limited = machine.power_cap_w is not None and machine.capped_from != machine.capped_to
            capped.append(when(is_limited, ends) or "nowhere")
        rows.append(Row(["capped, flop/B", *capped]))
    return Table([Column("", "left"), *numbers(*map(label, machines))], rows)


def dot_table(document: schema.Roofline, limit: int | None, letters: str = "") -> Table:
    """Table of how far below the rooflines the kernels are. letters: what names them in the plots of a terminal."""
    dots = document.kernels[:limit]
    short = labels([dot.name for dot in dots])
    texts = [f"{letter} {name}".lstrip() for letter, name in zip_longest(letters[: len(short)], short, fillvalue="")]
    names = [Name(text, dot.name) for text, dot in zip(texts, dots, strict=True)]
    rest = len(document.kernels) - len(dots)
    return limit_table(list(zip(names, dots, strict=True)), nouns_of(document.processor), rest)


def notes(machines: Sequence[schema.Machine]) -> list[str]:
    """The notes of the rooflines' machines, once each."""
    return list(dict.fromkeys(f"{machine.name}: {note}" for machine in machines for note in machine.notes))


def to_markdown(document: schema.Roofline) -> bytes:
    """A roofline as Markdown: the balances of the machines, and how far kernels are below the lines."""
    costs = quiet(f"Costs: {cost_words.all_named(document.machines).removeprefix('costs ')}.")
    numbers = sweep_table(document) or machine_table(document.machines)
    blocks: list[Block] = [Sentence(headline(document)), costs, numbers]
    if document.kernels:
        blocks.append(dot_table(document, None))
    heading = f"## {in_markdown(document.title or 'Rooflines')}"
    return markdown(heading, [*blocks, Notes(document.warnings, "warning")])


# ----------------------------------------------------------------------------------------------------------------------
# In a terminal.

_HEIGHT, _KERNELS, _LETTERS = 14, 12, "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_WIDEST, _MARGIN = 110, 14
_MACHINE = 24  # columns of text for a machine in a table
_STROKES = "━╍┅┈·∙∘+"
_STYLES = ("color(33)", "color(208)", "color(71)", "color(170)", "color(214)", "color(110)")
_PLOTS = (("flop_per_s", "Speed", "flop/s"), ("flop_per_j", "Energy efficiency", "flop/J"), ("power_w", "Power", "W"))


def text(document: schema.Roofline | Mapping[str, Any], verbose: bool = False, width: int = 110) -> str:
    """Rooflines as the terminal shows them, as plain text of `width` columns."""
    return console.text(on_terminal(schema.typed(document, schema.Roofline), verbose), verbose, width)


def on_terminal(document: schema.Roofline, verbose: bool) -> Iterator[Block | RenderableType]:
    """What a terminal shows of rooflines: the lines drawn with characters, balances, what would lift each kernel."""
    yield quiet(phrase("{} · ", document.title) + cost_words.all_named(document.machines))
    first = headline(document)
    yield Headline(first)
    yield from (Sentence(line) for line in leads(document) if line != first)
    for key, title, unit in _PLOTS if verbose or document.cap_sweep else _PLOTS[:2]:
        yield ""
        yield quiet(f"{title}, {unit}, against flop per DRAM byte")
        yield _Plot(document, key)
    legend = Text()
    for stroke, style, machine in zip(cycle(_STROKES), cycle(_STYLES), document.machines, strict=False):
        legend.append(f"{stroke * 3} ", style=style)
        legend.append(printable(label(machine)).replace(" ", "\u00a0") + "   ")
    yield legend
    yield sweep_table(document) or _Machines(document.machines)
    yield from (quiet(note) for note in notes(document.machines))
    if has_places(document):
        yield dot_table(document, limit(_KERNELS, verbose), _LETTERS)
    yield Notes(document.warnings, "warning")


class _Machines(Struct, frozen=True):
    """The renderable that shows `machine_table` in a terminal, in as many tables as its width asks for."""

    machines: Sequence[schema.Machine]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        step = max(1, (options.max_width - _MACHINE) // (_MACHINE + 3))
        tables = [machine_table(self.machines[start : start + step]) for start in range(0, len(self.machines), step)]
        yield from console.drawn(tables, options.max_width, verbose=True)


class _Plot(Struct, frozen=True):
    """Rooflines as a log-log plot in characters: each machine has a stroke of its own, kernels are letters."""

    document: schema.Roofline
    key: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [
            (point.intensity_flop_per_byte, getattr(point, self.key), stroke, style)
            for stroke, style, machine in zip(cycle(_STROKES), cycle(_STYLES), self.document.machines, strict=False)
            for point in machine.lines or ()
        ]
        dots = [
            (dot.intensity_flop_per_byte.dram, getattr(dot, self.key), letter, "bold")
            for letter, dot in zip(_LETTERS, self.document.kernels, strict=False)
            if dot.intensity_flop_per_byte.dram and getattr(dot, self.key)
        ]
        width = max(30, min(options.max_width, _WIDEST) - _MARGIN)
        intensities = [x for x, *_ in lines]
        left, right = min(intensities), max(intensities)
        heights = [y for _, y, *_ in (*lines, *dots)]
        high = math.ceil(math.log10(max(heights)) * 3) / 3
        low = max(math.floor(math.log10(min(heights)) * 3) / 3, high - 4)
        rows = [[(" ", "")] * width for _ in range(_HEIGHT)]
        # What comes first in the document is drawn last, above the others.
        for x, y, sign, style in (*reversed(lines), *reversed(dots)):
            column = round((width - 1) * math.log(x / left) / math.log(right / left))
            row = round((_HEIGHT - 1) * (high - math.log10(y)) / (high - low))
            if 0 <= row < _HEIGHT and 0 <= column < width:
                rows[row][column] = (sign, style)
        text = Text()
        for place, signs in enumerate(rows):
            value = 10 ** (high - (high - low) * place / (_HEIGHT - 1))
            tick = when(place % 4 == 0 or place == _HEIGHT - 1, printable(quantity(value, "")))
            text.append(f"{tick:>9} │", style="dim")
            for sign, style in signs:
                text.append(sign, style=style)
            text.append("\n")
        middle = plain(math.sqrt(left * right))
        labels = f"{plain(left):<{width // 2}}{middle}".ljust(width - 6)
        text.append(f"{' ' * 10}└{'─' * width}\n{' ' * 11}{labels}{plain(right):>6}", style="dim")
        yield text

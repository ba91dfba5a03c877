"""The page's sections on limits that hold kernels back, on other clocks, and on what-if answers with their sliders."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from eprof.base.labels import labels
from eprof.base.optional import growth, mapped
from eprof.base.text import by_sign, capital, listed, when
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.commands.report.advice import worth_trying
from eprof.commands.report.page import script
from eprof.commands.report.page.script import Card
from eprof.commands.report.view import DRAM, FLOPS, View
from eprof.commands.report.words import clock_words, is_same, same_clocks
from eprof.profile import schema
from eprof.show.amounts import MISSING, UNKNOWN, Amount, bits, quantity_of
from eprof.show.as_html import laid, mini
from eprof.show.blocks import Name
from eprof.show.heat_map import HeatCell, energy_map, heat_step
from eprof.show.numbers import NARROW, percent, plain, quantity, whole
from eprof.show.rooflines import Curves, Dot, Lines, limit_table, panels, power_of, racing

_BINDS = 0.5  # of the speed that a limit allows: kernels that reach less are held back by something else
_BINDING = {True: ("memory", "fewer DRAM bytes"), False: ("arithmetic", "fewer or narrower flops")}
SHOWN, ROWS = 60, 10


def section(view: View) -> Card | None:
    """The report page's section on rooflines, or None if the costs give no peaks, or no kernel has a place there."""
    limits = view.document.limits
    if not limits or not view.kernels:
        return None
    first = limits.machines[0]
    # The first machine, and others whose precision has more than 5 % of all flops.
    machines = [machine for machine in limits.machines if machine.of == first.of]
    work = {machine.precision: 0.0 for machine in machines}
    for name, flops in FLOPS.items():
        if name in view.words and COUNTS[name].group in work:
            work[COUNTS[name].group] += flops * view.words[name].value.or_zero
    least = 0.05 * sum(work.values())
    machines = [first, *(machine for machine in machines[1:] if work[machine.precision] > least)]
    # Of several GPUs with lines of their own, the first.
    drawable = []
    for place in view.order:
        kernel, limit = view.kernels[place], limits.kernels[place]
        if first.of and kernel.device not in first.of:
            continue
        heights = {"flop_per_s": limit.flop_per_s, "flop_per_j": limit.flop_per_j, "power_w": power_of(limit)}
        dot = Dot(kernel.name, limit.intensity_flop_per_byte.dram, heights, kernel.energy_j.total or 0.0, place)
        if dot.is_drawable:
            drawable.append(dot)
    if not drawable:
        return None
    curves = [Curves(machine.time_balance, _lines(machine)) for machine in machines]
    legend = [
        (kind, f"{GROUPS[machine.precision]}, balance {plain(machine.time_balance)} flop/B")
        for kind, machine in enumerate(machines)
    ]
    rows = [
        (Name(label, dot.name, place=dot.place), limits.kernels[dot.place or 0])
        for dot, label in zip(drawable, labels([dot.name for dot in drawable[:ROWS]]), strict=False)
    ]
    content = {
        "sentence": _sentence(view, machines[0], drawable),
        "verdict": capital(racing(machines[0], view.nouns)),
        "panels": panels(curves, drawable[:SHOWN], view.nouns),
        "legend": legend if len(machines) > 1 else [],
        "table": limit_table(rows, view.nouns, len(drawable) - len(rows), levels=False),
    }
    data = {"dots": "1"} if len(drawable) > SHOWN else {}
    return Card("limits", "Limits", _heading(view, drawable), "limits.html", content, data)


def _lines(machine: schema.Machine) -> Lines:
    """A function from flop/B to a machine's limits: flop/s, flop/J and W, without a power cap."""

    def at(intensity: float) -> tuple[float, float, float]:
        time = max(1 / machine.peak_flop_per_s, 1 / (machine.dram_byte_per_s * intensity))
        above = (machine.flop_pj + machine.dram_pj_per_byte / intensity) * 1e-12
        energy = above + machine.constant_power_w * time
        return 1 / time, 1 / energy, energy / time

    return at


def _heading(view: View, drawable: Sequence[Dot]) -> str:
    """The heading on limits: which binds the kernels that take most energy, or that they are far; what moves it."""
    limits = view.document.limits.kernels if view.document.limits else []
    sides: dict[bool, list[tuple[Dot, schema.Limit]]] = {True: [], False: []}
    for dot in drawable:
        limit = limits[dot.place or 0]
        sides[limit.limited_by == "dram"].append((dot, limit))
    joules = {side: sum(dot.energy_j for dot, _ in held) for side, held in sides.items()}
    is_memory = joules[True] >= joules[False]
    limit_is, remedy = _BINDING[is_memory]
    share = percent(joules[is_memory] / (sum(joules.values()) or 1.0))
    held = [(dot.energy_j, limit) for dot, limit in sides[is_memory] if limit.speed_share is not None]
    reached = sum(energy_j * (limit.speed_share or 0.0) for energy_j, limit in held)
    reached /= sum(energy_j for energy_j, _ in held) or math.inf
    if held and reached < _BINDS:
        at_most = when(any("speed_share" in (limit.at_most or ()) for _, limit in held), "at most ")
        reach = f"{capital(view.nouns.kernels)} reach {at_most}{percent(reached)} of the speed that {limit_is} allows"
        return f"{reach}: more utilisation would help most"
    return f"{capital(limit_is)} limits speed for {share} of the energy: {remedy} would raise it"


def _sentence(view: View, machine: schema.Machine, drawable: Sequence[Dot]) -> str:
    """The sentences on what the rooflines show: lines, dots, the time balance, and how many kernels are not drawn."""
    balance = machine.time_balance
    best = f"the best that the {view.nouns.processor} can do at this setting in {machine.precision.upper()}"
    lines = f"The line is {best}; area is energy."
    if view.is_modelled:
        lines += " Dots stand on it: their time is a model, and only where they stand along it was counted."
        lines += " Power is that at the roofline's speed, more than elsewhere on this page."
    precision = machine.precision.upper()
    side = f"Memory limits speed left of the dashed time balance, {plain(balance)} flop/B, where flops are {precision}."
    own = [kernel for kernel in view.kernels if not machine.of or kernel.device in machine.of]
    if len(own) < len(view.kernels):
        side += f" Drawn are those of {listed([label or 'the GPU that is not named' for label in machine.of or ()])}."
    lost = len(own) - len(drawable)
    if not lost:
        return f"{lines} {side}"
    kernels = f"{whole(lost)} {view.nouns.of(lost)} {'is' if lost == 1 else 'are'}"
    return f"{lines} {side} {kernels} not drawn: flops, DRAM bytes or time are not known."


_ACTS = 5  # of the changes that are worth trying
_HYPOTHETICAL = ("pi0=", "=free")  # what nobody can do, in questions that every report asks


def of_what_if(view: View) -> Card | None:
    """The report page's section on what-if answers, or None if there is none."""
    answers, before = view.document.what_if, view.counted_energy(view.document)
    if not answers or not before.value:
        return None
    acts = worth_trying(view)[:_ACTS]
    constant, total, dram_j = view.energy(CONSTANT), view.energy("total"), _joules_of(view, DRAM)
    sliders: dict[
        str, str
    ] = {}  # what the script adds up, J: constant energy, that of DRAM, of active cycles, the rest
    if not view.is_above and constant.value and total.value is not None and not constant.marks & MISSING:
        cycles_j = _joules_of(view, (name for name, count in COUNTS.items() if count.unit == "cycle"))
        parts = {"constant": constant.value, "dram": dram_j, "cycles": cycles_j}
        sliders["what"] = script.text({**parts, "other": total.value - sum(parts.values()), "marks": total.marks})
    joules = [_joules(view, answer) for answer in answers]
    scale = max(before.value, *(energy or 0.0 for energy in joules))
    possible: list[dict[str, Any]] = []
    thought: list[dict[str, Any]] = []
    for answer, energy in zip(answers, joules, strict=True):
        row = {
            "says": capital(answer.says),
            "assumes": answer.assumes,
            "bar": mini(laid([("plain", energy or 0.0)], scale)),
            "energy": quantity_of(Amount(energy, bits(answer.marks)), "J"),
            "change": _answer_change(mapped(growth, energy, before.value)),
            "time": _answer_change(answer.time_share),
        }
        is_thought = not answer.asked and any(sign in answer.question for sign in _HYPOTHETICAL)
        (thought if is_thought else possible).append(row)
    of = when(view.is_above, " Joules are those above constant power.")
    idle = when(view.document.idle_j, f" Joules are those of {view.nouns.kernels}, without idle time.")
    content = {
        "sentence": f"Every answer is modelled, none is measured.{of}{idle}",
        "acts": [capital(act) for act in acts],
        "rows": possible,
        "thought": thought,
        "before": quantity_of(before, "J"),
        "bar": mini(laid([("plain", before.value)], scale)),
        "sliders": bool(sliders),
        "has_dram": bool(dram_j),
    }
    return Card("whatif", "What if", "What if", "whatif.html", content, sliders)


def _joules(view: View, answer: schema.Answer) -> float | None:
    """The energy of an answer, J, without constant power where the page counts without; None: not known."""
    if view.is_above:
        return sum(filter(None, [answer.energy_j.computation, answer.energy_j.data])) or None
    return answer.energy_j.total


def _answer_change(share: float | None) -> str:
    if share is None:
        return UNKNOWN
    if is_same(share):
        return "the same"
    return f"{by_sign(share, '▼', '▲')} {percent(abs(share))}"


def _joules_of(view: View, words: Iterable[str]) -> float:
    counts = view.document.counts
    return sum(view.energy_of_count(counts[name]).or_zero for name in words if name in counts)


def of_clocks(view: View) -> Card | None:
    """The report page's section on other clocks, or None where the cost table knows one setting only."""
    clocks = view.document.clocks
    if not clocks:
        return None
    known = {(setting.core_mhz, setting.memory_mhz): setting for setting in clocks.settings if setting.energy_j}
    joules = [setting.energy_j or 0.0 for setting in known.values()]
    unit = quantity(min(joules), "J").rpartition(NARROW)[2]
    cells = {}
    for pair, setting in known.items():
        sign = when(same_clocks(setting, clocks.lowest), "*")
        number = quantity(setting.energy_j or 0.0, "J").removesuffix(f"{NARROW}{unit}")
        step = heat_step(setting.energy_j, joules) if setting.offered else None
        cells[pair] = HeatCell(number, step, sign, is_now=setting.this, is_allowed=setting.offered)
    here = when(any(setting.this for setting in clocks.settings), ", outlined: this run")
    if here and view.costs and view.costs.setting_from == "the table's default":
        here = ", outlined: the table's default, as the log tells no clocks"
    faint = when(
        not all(cell.is_allowed for cell in cells.values()), ", faint: a pair that the table does not vouch for"
    )
    sentence = (
        f"{clock_words(clocks, view.document)} In {unit}; ★: the lowest{here}{faint}. Modelled: {clocks.assumes}."
    )
    content = {"sentence": sentence, "heat": energy_map(cells)}
    return Card("clocks", "Clocks", "Other clock settings", "clocks.html", content)

"""Which limit holds kernels back, memory or arithmetic: speed, efficiency and power, below the lines of a setting."""

import math
from collections.abc import Sequence

from eprof.base.labels import labels
from eprof.base.text import capital, listed, when
from eprof.base.vocabulary import COUNTS, GROUPS
from eprof.commands.report.sections import Section
from eprof.commands.report.view import FLOPS, View
from eprof.profile import schema
from eprof.show.blocks import Name
from eprof.show.numbers import percent, plain, whole
from eprof.show.rooflines import Curves, Dot, Lines, limit_table, panels, power_of, racing

_BINDS = 0.5  # of the speed that a limit allows: kernels that reach less are held back by something else
_BINDING = {True: ("memory", "fewer DRAM bytes"), False: ("arithmetic", "fewer or narrower flops")}
SHOWN, ROWS = 60, 10


def section(view: View) -> Section | None:
    """The section on how far from the limits, or None if the costs give no peaks, or no kernel has a place there."""
    limits = view.document.limits
    if not limits or not view.kernels:
        return None
    first = limits.machines[0]
    machines = _used(view, [machine for machine in limits.machines if machine.of == first.of])
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
    return Section("limits", "Limits", _heading(view, drawable), "limits.html", content, data)


def _used(view: View, machines: Sequence[schema.Machine]) -> list[schema.Machine]:
    """The first machine, and others whose precision has more than 5 % of all flops."""
    work = {machine.precision: 0.0 for machine in machines}
    for name, flops in FLOPS.items():
        if name in view.words and COUNTS[name].group in work:
            work[COUNTS[name].group] += flops * view.words[name].value.or_zero
    least = 0.05 * sum(work.values())
    return [machines[0], *(machine for machine in machines[1:] if work[machine.precision] > least)]


def _lines(machine: schema.Machine) -> Lines:
    """A function from flop/B to a machine's limits: flop/s, flop/J and W, without a power cap."""

    def at(intensity: float) -> tuple[float, float, float]:
        time = max(1 / machine.peak_flop_per_s, 1 / (machine.dram_byte_per_s * intensity))
        above = (machine.flop_pj + machine.dram_pj_per_byte / intensity) * 1e-12
        energy = above + machine.constant_power_w * time
        return 1 / time, 1 / energy, energy / time

    return at


def _heading(view: View, drawable: Sequence[Dot]) -> str:
    """Which limit binds the kernels that take most of the energy, or that they are far from it; and what moves it."""
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

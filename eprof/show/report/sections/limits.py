"""How far from the limits: speed, energy efficiency and power of the kernels, below the lines of this setting."""

from collections.abc import Sequence

from eprof.base.labels import labels
from eprof.base.text import capital
from eprof.base.vocabulary import COUNTS, GROUPS
from eprof.profile import schema
from eprof.show.report import roofline as panels
from eprof.show.report.lever import limit_table, power_of, racing
from eprof.show.report.section import Section
from eprof.show.report.view import FLOPS, View
from eprof.show.words.blocks import Table
from eprof.show.words.cells import Name
from eprof.show.words.numbers import percent, plain, whole

SHOWN, ROWS = 60, 10


def section(view: View) -> Section | None:
    """The section on how far from the limits, or None if the costs give no peaks."""
    limits = view.document.limits
    if not limits or not view.kernels:
        return None
    machines = _used(view, limits.machines)
    dots = [_dot(view.kernels[place], limits.kernels[place], place) for place in view.order]
    drawable = [dot for dot in dots if dot.is_drawable]
    shown = drawable[:SHOWN]
    curves = [panels.Curves(machine.time_balance, _lines(machine)) for machine in machines]
    content = {
        "sentence": _sentence(view, machines[0], drawable),
        "verdict": capital(racing(machines[0], view.nouns)),
        "panels": panels.drawn(curves, shown, view.nouns),
        "legend": _legend(machines) if len(machines) > 1 else [],
        "table": _table(view, limits.kernels, drawable),
    }
    data = {"dots": "1"} if len(drawable) > len(shown) else {}
    return Section("limits", "Limits", "How far from the limits", "limits.html", content, data)


def _used(view: View, machines: Sequence[schema.Machine]) -> list[schema.Machine]:
    """The machines whose limits count, of the widths of the flops: the first, and others from 5 % of all flops on."""
    work = {machine.precision: 0.0 for machine in machines}
    for name, flops in FLOPS.items():
        if name in view.words and COUNTS[name].group in work:
            work[COUNTS[name].group] += flops * (view.words[name].value.value or 0.0)
    least = 0.05 * sum(work.values())
    return [machines[0], *(machine for machine in machines[1:] if work[machine.precision] > least)]


def _lines(machine: schema.Machine) -> panels.Lines:
    """The limits of a machine at an intensity: flop/s, flop/J and W, without a power cap."""

    def at(intensity: float) -> tuple[float, float, float]:
        time = max(1 / machine.peak_flop_per_s, 1 / (machine.dram_byte_per_s * intensity))
        above = (machine.flop_pj + machine.dram_pj_per_byte / intensity) * 1e-12
        energy = above + machine.constant_power_w * time
        return 1 / time, 1 / energy, energy / time

    return at


def _dot(kernel: schema.Kernel, limit: schema.Limit, place: int) -> panels.Dot:
    return panels.Dot(
        kernel.name,
        limit.intensity_flop_per_byte.dram,
        {"flop_per_s": limit.flop_per_s, "flop_per_j": limit.flop_per_j, "power_w": power_of(limit)},
        kernel.energy_j.total or 0.0,
        place,
    )


def _table(view: View, limits: Sequence[schema.Limit], drawable: Sequence[panels.Dot]) -> Table:
    shown = drawable[:ROWS]
    kernels = [
        (Name(label, dot.name, place=dot.place), limits[dot.place or 0])
        for dot, label in zip(shown, labels([dot.name for dot in shown]), strict=True)
    ]
    return limit_table(kernels, view.nouns, len(drawable) - len(kernels), levels=False)


def _sentence(view: View, machine: schema.Machine, drawable: Sequence[panels.Dot]) -> str:
    balance = machine.time_balance
    best = f"the best that {machine.name} can do at this setting in {machine.precision.upper()}"
    lines = f"The line is {best}; area is energy."
    if view.is_modelled:
        lines += " Dots stand on it: their time is a model, and only where they stand along it was counted."
    if not drawable:
        return f"{lines} No {view.nouns.kernel} is drawn: flops, DRAM bytes or time are not known."

    left = sum(dot.energy_j for dot in drawable if (dot.intensity or 0.0) < balance)
    share = percent(left / (sum(dot.energy_j for dot in drawable) or 1.0))
    side = (
        f"{share} of the energy is left of the dashed time balance, {plain(balance)} flop/B, where memory limits speed."
    )
    lost = len(view.kernels) - len(drawable)
    if not lost:
        return f"{lines} {side}"
    are = "is" if lost == 1 else "are"
    kernels = f"{whole(lost)} {view.nouns.of(lost)}"
    return f"{lines} {side} {kernels} {are} not drawn: flops, DRAM bytes or time are not known."


def _legend(machines: Sequence[schema.Machine]) -> list[tuple[int, str]]:
    return [
        (kind, f"{GROUPS[machine.precision]}, balance {plain(machine.time_balance)} flop/B")
        for kind, machine in enumerate(machines)
    ]

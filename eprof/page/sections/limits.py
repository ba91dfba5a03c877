"""How far from the limits: speed, energy efficiency and power of the kernels, below the lines of this setting."""

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from eprof.base.vocabulary import COUNTS, GROUPS
from eprof.page import plot
from eprof.page.section import Section
from eprof.words import names
from eprof.words.lever import EXPLAINED, lever, share_of
from eprof.words.numbers import percent, plain, quantity, whole
from eprof.words.view import FLOPS, View

SHOWN, NAMED, ROWS = 60, 12, 10
PANELS = (
    ("Speed", "flop/s", "flop_per_s"),
    ("Energy efficiency", "flop/J", "flop_per_j"),
    ("Power", "W", "power_w"),
)
_POINTS = 193


def section(view: View) -> Section | None:
    """The section, or None if the costs tell no peaks."""
    limits = view.document.get("limits")
    if not limits or not view.kernels:
        return None
    described = _used(view, limits["machines"])
    machines = [_Machine(one) for one in described]
    drawable = [at for at in view.order if _drawable(view, limits["kernels"], at)]
    shown = [_placed(view, limits["kernels"], at) for at in drawable[:SHOWN]]
    content = {
        "sentence": _sentence(view, machines[0], limits["kernels"], drawable),
        "verdict": verdict(described[0]),
        "panels": panels([one.lines for one in machines], [one.balance for one in machines], shown),
        "legend": _legend(described) if len(machines) > 1 else [],
        "rows": [_row(one) for one in shown[:ROWS]],
        "rest": max(0, len(drawable) - ROWS),
        "explained": EXPLAINED,
    }
    data = {"dots": "1"} if len(drawable) > len(shown) else {}
    return Section("limits", "Limits", "How far from the limits", "limits.html", content, data)


def _used(view: View, machines: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The machines of the widths that the flops are of: the first, and others from 5 % of all flops on."""
    work = {one["precision"]: 0.0 for one in machines}
    for name, flops in FLOPS.items():
        if name in view.words and COUNTS[name].group in work:
            work[COUNTS[name].group] += flops * (view.words[name].value.value or 0.0)
    whole_work = sum(work.values())
    return [one for at, one in enumerate(machines) if at == 0 or work[one["precision"]] > 0.05 * whole_work]


class _Machine:
    """The lines of a machine as the document describes it: model.md 6, uncapped."""

    def __init__(self, one: Mapping[str, Any]) -> None:
        self.one = one
        self.balance: float = one["time_balance"]

    def lines(self, at: float) -> tuple[float, float, float]:
        """Flop/s, flop/J and W at an intensity."""
        one = self.one
        time = max(1 / one["peak_flop_per_s"], 1 / (one["dram_byte_per_s"] * at))
        energy = (one["flop_pj"] + one["dram_pj_per_byte"] / at) * 1e-12 + one["constant_power_w"] * time
        return 1 / time, 1 / energy, energy / time


def _placed(view: View, limits: Sequence[Mapping[str, Any]], at: int) -> dict[str, Any]:
    """A kernel with its limits."""
    kernel = view.kernels[at]
    return {
        **limits[at],
        "at": at,
        "name": kernel["name"],
        "power_w": kernel.get("power_w"),
        "energy_j": kernel["energy_j"]["total"],
    }


def _drawable(view: View, limits: Sequence[Mapping[str, Any]], at: int) -> bool:
    """Whether a kernel has a place in all three panels."""
    one = limits[at]
    values = one["intensity_flop_per_byte"]["dram"], one["flop_per_s"], one["flop_per_j"]
    return all(values) and bool(view.kernels[at].get("power_w"))


def panels(
    lines: Sequence[Any],
    balances: Sequence[float],
    kernels: Sequence[Mapping[str, Any]],
    named: int = NAMED,
    span: tuple[float, float] | None = None,
) -> list[Markup]:
    """The three panels with one x axis. lines: functions of the flop/B, one a machine; span: where they are known."""
    intensities = [one["intensity_flop_per_byte"]["dram"] for one in kernels]
    x = plot.Axis(*span) if span else plot.axis([0.5, *balances, *(4 * one for one in balances), *intensities], 2)
    grid = [x.low * (x.high / x.low) ** (step / (_POINTS - 1)) for step in range(_POINTS)]
    # The bend of a roof lies between two points of the grid: it is drawn sharp.
    grid = sorted({*grid, *(one for one in balances if x.low < one < x.high)})
    read = [[(at, *line(at)) for at in grid] for line in lines]
    most = max((one["energy_j"] for one in kernels), default=1.0) or 1.0
    short = _short_names(kernels[:named])
    found = []
    for place, (title, unit, key) in enumerate(PANELS):
        drawn = [
            plot.Line([(point[0], point[place + 1]) for point in line], kind % 6) for kind, line in enumerate(read)
        ]
        dots = [
            plot.Dot(
                one["intensity_flop_per_byte"]["dram"],
                one[key],
                one["energy_j"] / most,
                short[at] if at < len(short) else "",
                _titled(one, key, unit),
                one.get("at"),
            )
            for at, one in enumerate(kernels)
        ]
        heights = [y for line in drawn for _, y in line.points] + [dot.y for dot in dots]
        panel = plot.Panel(title, unit, key, x, plot.axis(heights), drawn, dots, balances)
        spoken = f"{title} in {unit} against flop per DRAM byte, with {len(lines)} lines and {len(dots)} kernels"
        found.append(plot.drawn(panel, spoken, named=len(kernels) <= named))
    return found


def _titled(one: Mapping[str, Any], key: str, unit: str) -> str:
    intensity = plain(one["intensity_flop_per_byte"]["dram"])
    return f"{names.short(one['name'], 60)}: {quantity(one[key], unit)} at {intensity} flop/B"


def _short_names(kernels: Sequence[Mapping[str, Any]]) -> list[str]:
    return [names.cut(names.base(one["name"]).rpartition("::")[2].partition(" (")[0], 12) for one in kernels]


def _sentence(view: View, machine: _Machine, limits: Sequence[Mapping[str, Any]], drawable: Sequence[int]) -> str:
    """What the lines are, and which side of the balance most energy is on."""
    name, precision, balance = machine.one["name"], machine.one["precision"].upper(), machine.balance
    what = f"The line is the best that {name} can do at this setting in {precision}; area is energy."
    if not drawable:
        return f"{what} No kernel is drawn: flops, DRAM bytes or time are not known."
    joules = {at: view.kernels[at]["energy_j"]["total"] or 0.0 for at in drawable}
    left = sum(joules[at] for at in drawable if limits[at]["intensity_flop_per_byte"]["dram"] < balance)
    side = f"{percent(left / (sum(joules.values()) or 1.0))} of the energy is left of the dashed time balance"
    lost = len(view.kernels) - len(drawable)
    missing = f" {whole(lost)} kernels are not drawn: flops, DRAM bytes or time are not known." if lost else ""
    return f"{what} {side}, {plain(balance)} flop/B, where memory limits speed.{missing}"


def verdict(one: Mapping[str, Any]) -> str:
    """Race-to-halt, as a sentence."""
    half, balance = plain(one["effective_energy_balance"]), plain(one["time_balance"])
    if one["race_to_halt"]:
        return (
            f"Racing to finish is right to first order: half of the best flop/J is reached at {half} flop/B, "
            f"not above the time balance of {balance}."
        )
    return (
        f"Racing to finish is not enough: half of the best flop/J is reached at {half} flop/B only, above the time "
        f"balance of {balance}."
    )


def _legend(machines: Sequence[Mapping[str, Any]]) -> list[tuple[int, str]]:
    return [
        (at, f"{GROUPS[one['precision']]}, balance {plain(one['time_balance'])} flop/B")
        for at, one in enumerate(machines)
    ]


def _row(one: Mapping[str, Any]) -> dict[str, Any]:
    start, end = names.core(one["name"])
    return {
        "at": one["at"],
        "name": names.cut(one["name"][start:end], 34),
        "full": one["name"],
        "intensity": plain(one["intensity_flop_per_byte"]["dram"]),
        "speed": share_of(one, "speed_share") or "–",
        "energy": share_of(one, "energy_share") or "–",
        "lever": lever(one),
    }

"""Rooflines in words and as three panels: how much of its limits each kernel reaches, and what would lift it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import UNSET, Struct, field
from msgspec.structs import replace

from eprof.base.labels import labels
from eprof.base.optional import mapped, ratio
from eprof.base.text import capital, phrase, when
from eprof.base.vocabulary import Nouns
from eprof.profile import schema
from eprof.show.amounts import UNKNOWN
from eprof.show.blocks import Column, Medium, Name, Row, Table, everywhere_if, numbers, texts
from eprof.show.numbers import and_more, percent, plain, quantity, quantity_or

if TYPE_CHECKING:
    from eprof.show.plot import Note

_EXPLAINED = (
    "Modelled. Waiting: constant power while slower than the roofline; the rest of it is constant power. Nearer bytes: "
    "of caches"
)
_OF_MIX = (
    " Peak of its mix: the most flop/s with its own floating-point instructions ([T] 3.4.4), where a special "
    "function is a flop too; a short bar on the page."
)
_LEVELS = {"l3": "L3", "l2": "L2", "l1": "L1", "shared": "shared"}
# What takes most of a kernel's energy, and what would save it: behind that word, and by itself.
_PARTS = {
    "flops": ("flops", "fewer or narrower ones", "fewer or narrower flops"),
    "dram": ("DRAM bytes", "more flop/B", "more flops for each DRAM byte"),
    "constant": ("constant power", "less of what limits speed", "less of what limits it"),
    "waiting": ("waiting", "more utilisation", "more utilisation"),
    "instructions": ("other instructions", "fewer of them", "fewer other instructions"),
    "nearer": ("nearer bytes", "fewer of them", "fewer bytes of caches"),
}
_OF_TIME = {"constant", "waiting"}
_WIDE = 100  # columns of a terminal


def share_reached(limit: schema.Limit, key: str) -> str | None:
    """A kernel's speed or efficiency (`key`) as a share of the roofline's: "58 %", "at most 58 %"; None: unknown."""
    share: float | None = getattr(limit, key)
    if share is None:
        return None
    return when(key in (limit.at_most or ()), "at most ") + percent(share)


def power_of(limit: schema.Limit) -> float | None:
    """Mean power of a kernel, W: flop/s over flop/J; None: not known."""
    return ratio(limit.flop_per_s or None, limit.flop_per_j)


def lever(limit: schema.Limit) -> str:
    """The largest part of a kernel's energy, its share, and its remedy: "waiting 72 %: more utilisation"."""
    if limit.lever is None:
        return "not known: no time"
    if not any(joules for part, joules in limit.parts_j.items() if part not in _OF_TIME):
        return "not known: nothing but time was counted"
    part, remedy, _ = _PARTS[limit.lever]
    return f"{part} {phrase('{}', _lever_share(limit))}: {remedy}"


def mended(limit: schema.Limit) -> str:
    """A clause on a kernel's best remedy: "more utilisation would save most (72 % of its energy is waiting)"; or ""."""
    share = _lever_share(limit)
    if limit.lever is None or share is None:
        return ""
    part, _, remedy = _PARTS[limit.lever]
    return f"{remedy} would save most ({share} of its energy is {part})"


def _lever_share(limit: schema.Limit) -> str | None:
    """The share of a kernel's energy that its largest part takes, as text; None where no energy is known."""
    joules = sum(value or 0.0 for value in limit.parts_j.values())
    return mapped(percent, ratio(limit.parts_j.get(limit.lever or "") or 0.0, joules))


def limit_table(kernels: Sequence[tuple[Name, schema.Limit]], nouns: Nouns, rest: int, levels: bool = True) -> Table:
    """The table of kernels with the shares of speed and efficiency that they reach, and what would save most.

    rest: how many more kernels there are. levels: with columns of nearer memory levels and speeds, where there is room.
    """
    mixed = (Medium.PAGE | Medium.TERMINAL) & everywhere_if(any(limit.mix_peak_flop_per_s for _, limit in kernels))
    shown = everywhere_if(levels)
    all_levels, rates = Medium.PAGE & shown, (Medium.PAGE | Medium.TERMINAL) & shown
    columns = [
        Column(nouns.kernel, "left"),
        *numbers("of best speed", "of best efficiency"),
        *texts("largest part of its energy"),
        Column("flop/B"),
        *(Column(_LEVELS[level], media=all_levels) for level in nouns.nearer),
        Column("flop/s", media=rates, from_width=_WIDE),
        Column("peak of its mix", media=mixed, from_width=_WIDE),
        Column("flop/J", media=rates, from_width=_WIDE),
    ]
    rows = []
    for name, limit in kernels:
        of_levels = [getattr(limit.intensity_flop_per_byte, level) for level in ("dram", *nouns.nearer)]
        intensities = [UNKNOWN if value in (None, UNSET) else plain(value) for value in of_levels]
        speeds = (limit.flop_per_s, limit.mix_peak_flop_per_s or None, limit.flop_per_j)
        written = [quantity_or(UNKNOWN, value, "") for value in speeds]
        shares = [share_reached(limit, key) or UNKNOWN for key in ("speed_share", "energy_share")]
        rows.append(Row([name, *shares, lever(limit), *intensities, *written]))
    note = f"{_EXPLAINED}{when('shared' in nouns.nearer, ' and shared memory')}.{when(mixed, _OF_MIX)}"
    return Table(columns, rows, note=note, left_out=and_more(rest, nouns.kernel))


def racing(machine: schema.Machine, nouns: Nouns) -> str:
    """Two sentences on whether to run as fast as one can is also most efficient, without the machine's name."""
    half, end = plain(machine.effective_energy_balance), mapped(plain, machine.capped_to)
    if machine.capped_from == machine.capped_to:  # both are the time balance without a cap
        limits = f"memory limits speed up to {plain(machine.time_balance)} flop/B"
    elif not machine.capped_from:  # bytes alone draw more than the cap allows
        limits = f"the power cap limits speed {phrase('up to {} flop/B', end) or 'at every flop/B'}"
    else:
        cap = phrase("to {} flop/B", end) or "on"
        limits = f"memory limits speed up to {plain(machine.capped_from)} flop/B, the power cap from there {cap}"
    if machine.race_to_halt:
        reached = f"Half of the best flop/J is reached at {half} flop/B"
        return f"what is fastest is also most efficient. {reached}, and {limits}."
    return (
        f"what is fastest is not yet most efficient. {capital(limits)}, but half of the best flop/J takes {half} "
        f"flop/B: below that a {nouns.kernel} still pays mostly for bytes."
    )


_NAMED = 12  # dots: more of them have no names
_TAG, _TITLE = 12, 60
_PANELS = (
    ("Speed", "flop/s", "flop_per_s"),
    ("Energy efficiency", "flop/J", "flop_per_j"),
    ("Power", "W", "power_w"),
)
_POINTS = 193

Lines = Callable[[float], tuple[float, float, float]]


class Curves(Struct, frozen=True):
    """A machine: its time balance in flop/B, and a function from flop/B to its limits in flop/s, flop/J and W."""

    balance: float
    lines: Lines


class Dot(Struct, frozen=True):
    """A kernel: its flop per DRAM byte, and its height in each panel. place: its number in the document.

    roofs: the heights that it cannot pass by itself, by panel, where these are known.
    """

    name: str
    intensity: float | None
    heights: Mapping[str, float | None]
    energy_j: float
    place: int | None = None
    roofs: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def is_drawable(self) -> bool:
        """Whether the kernel has a place in all three panels."""
        return bool(self.intensity) and all(self.heights.values())


def panels(
    machines: Sequence[Curves],
    dots: Sequence[Dot],
    nouns: Nouns,
    span: tuple[float, float] | None = None,
) -> list[Markup]:
    """The HTML of three panels over flop/B: speed, efficiency and power. span: from where to where lines are drawn."""
    from eprof.show import plot

    balances = [machine.balance for machine in machines]
    if span is None:
        around = [0.5, *balances, *(4 * balance for balance in balances)]
        axis = plot.axis([*around, *(dot.intensity for dot in dots if dot.intensity)], 2)
        span = axis.low, axis.high
    x = plot.Axis(*span)
    steps = {x.low * (x.high / x.low) ** (step / (_POINTS - 1)) for step in range(_POINTS)}
    grid = sorted(steps.union(balance for balance in balances if x.low < balance < x.high))
    curves: list[list[tuple[float, ...]]] = [
        [(intensity, *machine.lines(intensity)) for intensity in grid] for machine in machines
    ]
    tags = [*labels([dot.name for dot in dots[:_NAMED]], _TAG), *[""] * len(dots[_NAMED:])]
    names = labels([dot.name for dot in dots], _TITLE)
    largest = max((dot.energy_j for dot in dots), default=1.0) or 1.0
    made = []
    for place, (title, unit, key) in enumerate(_PANELS):
        lines = [
            plot.Line([(point[0], point[place + 1]) for point in points], kind % plot.STROKES)
            for kind, points in enumerate(curves)
        ]
        circles = []
        for dot, tag, name in zip(dots, tags, names, strict=True):
            height = dot.heights[key] or 0.0
            about = f"{name}: {quantity(height, unit)} at {plain(dot.intensity or 0.0)} flop/B"  # when pointed at
            area = dot.energy_j / largest
            circles.append(plot.Dot(dot.intensity or 0.0, height, area, tag, about, dot.place, dot.roofs.get(key)))
        heights = [y for line in lines for _, y in line.points] + [circle.y for circle in circles]
        heights += [circle.roof for circle in circles if circle.roof]
        panel = plot.Panel(title, unit, key, x, plot.axis(heights), lines, circles, balances)
        if key == "flop_per_s":  # the roofline itself
            panel = replace(panel, height=plot.LARGE, notes=_limits(curves))
        drawn_are = f"{len(lines)} lines and {len(dots)} {nouns.kernels}"
        spoken = f"{title} in {unit} against flop per DRAM byte, with {drawn_are}"
        made.append(plot.panel_html(panel, spoken, named=len(dots) <= _NAMED))
    return made


def _limits(curves: Sequence[Sequence[tuple[float, ...]]]) -> "list[Note]":
    """Notes beside the roofline: the memory's B/s on the slope, flop/s on the roof; none for several machines."""
    from eprof.show.plot import Note

    if len(curves) > 1:
        return []
    points = curves[0]
    low, slow, high, fast = *points[0][:2], *points[-1][:2]
    slope = [point for point in points if math.isclose(point[1] / point[0], slow / low, rel_tol=1e-6)]
    middle = slope[len(slope) // 2][0]
    nearest = sorted(((point[0], point[1]) for point in slope), key=lambda point: abs(math.log(point[0] / middle)))
    memory = Note(nearest, f"memory: {quantity(slow / low, 'B/s')}")
    return [memory, Note([(high, fast)], f"arithmetic: {quantity(fast, 'flop/s')}", is_above=True)]

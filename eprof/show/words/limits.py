"""Kernels and the limits of the roofline: how much each reaches, and what would lift it (profile/rooflines/dots.py)."""

from collections.abc import Sequence

from msgspec import UNSET

from eprof.base.optional import mapped, ratio
from eprof.base.text import capital, phrase, when
from eprof.base.vocabulary import Nouns
from eprof.profile import schema
from eprof.show.words.amounts import UNKNOWN
from eprof.show.words.blocks import Column, Medium, Row, Table, everywhere_if, numbers, texts
from eprof.show.words.cells import Name
from eprof.show.words.numbers import and_more, percent, plain, quantity_or

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
    """The best remedy, as a clause: "more utilisation would save most (72 % of its energy is waiting)"; or ""."""
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

    rest: how many more there are. levels: with nearer levels and speeds, where there is room.
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
    half, limits = plain(machine.effective_energy_balance), _limits_of_speed(machine)
    if machine.race_to_halt:
        reached = f"Half of the best flop/J is reached at {half} flop/B"
        return f"what is fastest is also most efficient. {reached}, and {limits}."
    return (
        f"what is fastest is not yet most efficient. {capital(limits)}, but half of the best flop/J takes {half} "
        f"flop/B: below that a {nouns.kernel} still pays mostly for bytes."
    )


def _limits_of_speed(machine: schema.Machine) -> str:
    """A clause on what limits speed, and from which flop/B on: "memory limits speed up to 3.2 flop/B"."""
    if machine.capped_from == machine.capped_to:  # both are the time balance without a cap
        return f"memory limits speed up to {plain(machine.time_balance)} flop/B"
    end = mapped(plain, machine.capped_to)
    if not machine.capped_from:
        # Bytes alone draw more than the cap allows.
        return f"the power cap limits speed {phrase('up to {} flop/B', end) or 'at every flop/B'}"
    cap = phrase("to {} flop/B", end) or "on"
    return f"memory limits speed up to {plain(machine.capped_from)} flop/B, the power cap from there {cap}"

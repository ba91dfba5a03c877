"""Kernels below the lines: how much of them each reaches, and what would lift it (rooflines/dots.py)."""

from collections.abc import Iterable

from eprof.profile import schema
from eprof.words.badges import UNKNOWN
from eprof.words.blocks import Column, Medium, Row, Table
from eprof.words.cells import Name
from eprof.words.numbers import percent, plain, quantity

EXPLAINED = (
    "Modelled. Waiting: constant power while slower than the roofline. Constant power: what is left at the roofline's "
    "time. Nearer bytes: of caches and shared memory."
)
_PARTS = {
    "flops": ("flops", "fewer or narrower ones"),
    "dram": ("DRAM bytes", "more flop/B"),
    "constant": ("constant power", "less of it"),
    "waiting": ("waiting", "more utilisation"),
    "instructions": ("other instructions", "fewer of them"),
    "nearer": ("nearer bytes", "fewer of them"),
}
_WIDE = 100  # columns of a terminal


def reached(limit: schema.Limit, key: str) -> str | None:
    """`speed_share` or `energy_share` in words: "58 %", or "at most 58 %" where the energy is a lower bound."""
    share: float | None = getattr(limit, key)
    if share is None:
        return None
    at_most = "at most " if key in (limit.at_most or ()) else ""
    return f"{at_most}{percent(share)}"


def power_of(limit: schema.Limit) -> float | None:
    """Mean power of a kernel in W where it stands: flop/s over flop/J."""
    return limit.flop_per_s / limit.flop_per_j if limit.flop_per_s and limit.flop_per_j else None


def lever(limit: schema.Limit) -> str:
    """One phrase: what takes most of the energy, its share, and what would save it."""
    if limit.lever is None:
        return "not known: no time"
    joules = sum(value or 0.0 for value in limit.parts_j.values())
    share = percent((limit.parts_j[limit.lever] or 0.0) / joules) if joules else ""
    part, remedy = _PARTS[limit.lever]
    return f"{part} {share}: {remedy}"


def limit_table(kernels: Iterable[tuple[Name, schema.Limit]], left_out: str = "", levels: bool = True) -> Table:
    """A row a kernel. levels: intensities at nearer levels and the speeds too, where there is room for them."""
    all_levels = Medium.PAGE if levels else Medium(0)
    rates = Medium.PAGE | Medium.TERMINAL if levels else Medium(0)
    columns = [
        Column("kernel", "left"),
        Column("flop/B"),
        Column("L2", media=all_levels),
        Column("L1", media=all_levels),
        Column("shared", media=all_levels),
        Column("flop/s", media=rates, from_width=_WIDE),
        Column("flop/J", media=rates, from_width=_WIDE),
        Column("of roofline"),
        Column("of arch line"),
        Column("largest part of its energy", "left"),
    ]
    return Table(columns, [_row(*kernel) for kernel in kernels], note=EXPLAINED, left_out=left_out)


def _row(name: Name, limit: schema.Limit) -> Row:
    intensity = limit.intensity_flop_per_byte
    levels = (intensity.dram, intensity.l2, intensity.l1, intensity.shared)
    intensities = [UNKNOWN if value is None else plain(value) for value in levels]
    rates = [UNKNOWN if value is None else quantity(value, "") for value in (limit.flop_per_s, limit.flop_per_j)]
    return Row(
        [
            name,
            *intensities,
            *rates,
            *(reached(limit, key) or UNKNOWN for key in ("speed_share", "energy_share")),
            lever(limit),
        ]
    )

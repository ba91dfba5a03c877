"""Machines scaled to equal power: how many of one make up another, and which wins at which intensity ([T] 5.2.3)."""

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import CostError
from eprof.profile.rooflines.machine import Machine

_FROM, _TO, _STEPS = 1e-3, 1e5, 1601


class Region(Struct, frozen=True):
    """Intensities from `low` to `high` (flop/B; 0 and infinity at the ends) at which `winner` is better.

    least and most: how many times better, at its ends or wherever that is.
    """

    low: float
    high: float
    winner: str
    least: float
    most: float


class Match(Struct, frozen=True):
    """So many of `machine` that they draw at most what `reference` draws; exact: the number before it was rounded."""

    machine: Machine
    reference: Machine
    exact: float
    speed: tuple[Region, ...]
    energy: tuple[Region, ...]

    def data(self) -> dict[str, Any]:
        """As plain data; an open end is None."""
        return {
            "name": self.machine.name,
            "setting": self.machine.setting,
            "reference": self.reference.name,
            "reference_setting": self.reference.setting,
            "number": self.machine.number,
            "number_exact": self.exact,
            "peak_power_w": self.machine.peak_power_w,
            "reference_peak_power_w": self.reference.peak_power_w,
            "faster": [_region(region) for region in self.speed],
            "more_efficient": [_region(region) for region in self.energy],
        }


def _region(region: Region) -> dict[str, Any]:
    return {
        "from": region.low or None,
        "to": None if np.isinf(region.high) else region.high,
        "winner": region.winner,
        "least": region.least,
        "most": region.most,
    }


def label(machine: Machine) -> str:
    """A machine by its table, and by its setting where that has a name: "jetson-tk1 852/924"."""
    return machine.name if machine.setting == "fixed" else f"{machine.name} {machine.setting}"


def equal_power(reference: Machine, other: Machine) -> Match:
    """As many of `other` as draw the highest power of `reference`, rounded to a whole number but at least 1.

    Highest power: the power line's peak, pi0 + pi_flop + pi_mem or the cap. Networks between them are left out, so the
    many are seen at their best ([T] 4.1, 5.2.3). Raises CostError if `other` is the larger one.
    """
    exact = reference.peak_power_w / other.peak_power_w
    if exact < 0.5:
        raise CostError(
            f"{label(other)} alone draws up to {other.peak_power_w:.4g} W, over twice as much as {label(reference)} "
            f"({reference.peak_power_w:.4g} W); name the larger one first."
        )
    many = replace(other, number=float(max(1, round(exact))))
    return Match(
        many,
        reference,
        exact,
        _regions(reference, many, Machine.roofline),
        _regions(reference, many, Machine.arch_line),
    )


def _regions(first: Machine, second: Machine, read: Callable[[Machine, Floats], Floats]) -> tuple[Region, ...]:
    """Where which of two is better: a grid finds the changes of sign, bisection the places."""
    grid = np.geomspace(_FROM, _TO, _STEPS)

    def excess(intensity: Floats) -> Floats:
        return np.asarray(np.log(read(second, intensity) / read(first, intensity)))

    values = excess(grid)
    # Two lines that are the same differ by rounding alone.
    signs = np.where(np.abs(values) < 1e-9, 0, np.sign(values)).astype(int)
    edges = [0, *(np.flatnonzero(np.diff(signs)) + 1).tolist(), len(grid)]
    regions = []
    for start, end in zip(edges[:-1], edges[1:], strict=True):
        low = 0.0 if start == 0 else _crossing(excess, grid[start - 1], grid[start])
        high = float("inf") if end == len(grid) else _crossing(excess, grid[end - 1], grid[end])
        sizes = np.exp(np.abs(values[start:end]))
        winner = {0: "", 1: label(second), -1: label(first)}[int(signs[start])]
        regions.append(Region(low, high, winner, float(sizes.min()), float(sizes.max())))
    return tuple(regions)


def _crossing(excess: Callable[[Floats], Floats], low: float, high: float) -> float:
    rising = float(excess(np.array(low))) < float(excess(np.array(high)))
    for _ in range(60):
        middle = (low * high) ** 0.5
        if (float(excess(np.array(middle))) < 0) == rising:
            low = middle
        else:
            high = middle
    return float((low * high) ** 0.5)

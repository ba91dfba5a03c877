"""Cells of a map of energy by clocks: core clock across, memory clock down."""

import math
from collections.abc import Sequence

from msgspec import Struct

STEPS = 9


class HeatCell(Struct, frozen=True):
    """A setting in the heat map: what stands there, its colour 0..8 (None: no number), signs, and it all in words."""

    text: str
    step: int | None
    sign: str = ""
    title: str = ""
    is_now: bool = False
    is_allowed: bool = True


def colour(energy: float | None, known: Sequence[float]) -> int | None:
    """The colour of a heat map's cell from 0 to 8, in equal ratios between the least and the largest."""
    if energy is None:
        return None
    low, high = min(known), max(known)
    if high <= low or low <= 0:
        return 0
    return min(STEPS - 1, int(STEPS * math.log(energy / low) / math.log(high / low)))

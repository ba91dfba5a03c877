"""One step of the search for voltages: the best ones for fixed coefficients, monotone in the clock.

For fixed coefficients the sum of squares is a quartic of the voltage of each level, apart from all others of its
domain. Monotone voltages: neighbours that would cross are pooled, their quartics added (pool adjacent violators).
"""

import numpy as np

from eprof.base.arrays import Floats

LOWEST, HIGHEST = 0.4, 2.0
_GRID = np.linspace(0.0, 1.0, 17)
_NEWTON_STEPS = 7


def lowest_points(quartics: Floats, low: Floats, high: Floats) -> Floats:
    """The voltages where each quartic (l, 5; highest power first) is least in [low, high]: a grid, then Newton."""
    points = low[:, None] + (high - low)[:, None] * _GRID
    a, b, c, d, e = quartics.T[:, :, None]
    best = np.argmin((((a * points + b) * points + c) * points + d) * points + e, axis=1)
    step = (high - low) / (len(_GRID) - 1)
    volts: Floats = low + step * best
    left, right = np.maximum(volts - step, low), np.minimum(volts + step, high)
    a, b, c, d, _ = quartics.T
    for _ in range(_NEWTON_STEPS):
        slope = ((4 * a * volts + 3 * b) * volts + 2 * c) * volts + d
        bend = (12 * a * volts + 6 * b) * volts + 2 * c
        with np.errstate(divide="ignore", invalid="ignore"):
            move = np.where(bend > 0, slope / bend, 0.0)
        volts = np.clip(volts - move, left, right)
    return volts


def monotone(quartics: Floats, low: Floats, high: Floats) -> Floats:
    """(l,) voltages within their bounds, none below the one before it, that make the sum of the quartics least."""
    volts = lowest_points(quartics, low, high)
    if len(volts) < 2 or (np.diff(volts) >= 0).all():
        return volts
    blocks: list[tuple[Floats, int, float]] = []
    for level, quartic in enumerate(quartics):
        pooled = quartic
        size = 1
        lowest = float(volts[level])
        while blocks and blocks[-1][2] > lowest:
            below, size_below, _ = blocks.pop()
            pooled = pooled + below
            size += size_below
            lowest = float(lowest_points(pooled[None], low[[level]], high[[level]])[0])
        blocks.append((pooled, size, lowest))
    return np.concatenate([np.full(size, lowest) for _, size, lowest in blocks])


def around(quartics: Floats, pinned: int) -> Floats:
    """(l,) monotone voltages of a domain's levels; that of level `pinned` is 1."""
    number = len(quartics)
    below, above = monotone_part(quartics, 0, pinned), monotone_part(quartics, pinned + 1, number)
    return np.concatenate([below, [1.0], above])


def monotone_part(quartics: Floats, start: int, end: int) -> Floats:
    """The voltages of levels below (`start` 0) or above the pinned one."""
    low, high = (LOWEST, 1.0) if start == 0 else (1.0, HIGHEST)
    size = max(end - start, 0)
    if size == 0:
        return np.zeros(0)
    return monotone(quartics[start:end], np.full(size, low), np.full(size, high))

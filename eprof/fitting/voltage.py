"""One step of the search for voltages: the best ones for fixed coefficients, monotone in the clock.

For fixed coefficients the sum of squares is a quartic of the voltage of each level, apart from all others of its domain.
Monotone voltages: neighbours that would cross are pooled, their quartics added (pool adjacent violators).
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LOWEST, HIGHEST = 0.4, 2.0


def lowest_point(quartic: Floats, low: float, high: float) -> float:
    """Where a quartic (5 coefficients, highest power first) is least in [low, high]."""
    slope = quartic[:4] * np.array([4.0, 3.0, 2.0, 1.0])
    candidates = [low, high]
    largest = np.abs(slope).max()
    if largest > 0:
        roots = np.roots(slope / largest)
        real = roots.real[np.abs(roots.imag) <= 1e-7 * (1 + np.abs(roots.real))]
        candidates += [float(one) for one in real if low < one < high]
    points = np.array(candidates)
    return float(points[np.argmin(np.polyval(quartic, points))])


def monotone(quartics: Floats, low: float, high: float) -> Floats:
    """(l,) voltages in [low, high], none below the one before it, that make the sum of the quartics (l, 5) least."""
    blocks: list[tuple[Floats, int, float]] = []
    for quartic in quartics:
        one, size = quartic, 1
        volts = lowest_point(one, low, high)
        while blocks and blocks[-1][2] > volts:
            before, number, _ = blocks.pop()
            one, size = one + before, size + number
            volts = lowest_point(one, low, high)
        blocks.append((one, size, volts))
    return np.concatenate([np.full(size, volts) for _, size, volts in blocks]) if blocks else np.zeros(0)


def around(quartics: Floats, pinned: int) -> Floats:
    """(l,) monotone voltages of a domain's levels; that of level `pinned` is 1."""
    below = monotone(quartics[:pinned], LOWEST, 1.0)
    above = monotone(quartics[pinned + 1 :], 1.0, HIGHEST)
    return np.concatenate([below, [1.0], above])

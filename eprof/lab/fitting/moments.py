"""The measurements, compressed: a small matrix a setting holds all that least squares need to know of its rows.

Within a setting clocks and voltages are the same for all rows, so power is linear in z = (rates, 1) there and the sums
of w^2 (z, P)^T (z, P) suffice, whatever the voltages are. Thousands of rows become tens of matrices of (terms + 2)^2.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from eprof.base.arrays import Floats, Ints
from eprof.lab.measurements.values import CORE, Measurements

CONSTANTS = ("core_w_per_v", "memory_w_per_v", "w", "core_w_per_mhz_v2", "memory_w_per_mhz_v2")
# A rate of 1e9 events a second times 1 pJ is 1e-3 W; clock-tree terms count clocks in GHz inside the solver.
WATTS_PER_PJ = 1e-3


class Layout(Struct, frozen=True, eq=False):
    """The unknowns, (p,): energies of the terms in nJ, then constant power. domain: -1 none, 0 core, 1 memory.

    power: the power of its domain's voltage that an unknown is multiplied with. clocked: whether with the clock, too.
    column: which of z = (rates, 1) it belongs to.
    """

    names: tuple[str, ...]
    domain: Ints
    power: Ints
    clocked: npt.NDArray[np.bool_]
    column: Ints

    @classmethod
    def of(cls, domains: Mapping[str, str], clock_tree: bool, levels: tuple[int, int] = (2, 2)) -> "Layout":
        """The unknowns of a fit for these terms. With one level of a domain, what goes with its voltage is in `w`."""
        terms = list(domains)
        constants = {"core_w_per_v": (0, 1, False), "memory_w_per_v": (1, 1, False), "w": (-1, 0, False)}
        if clock_tree:
            constants |= {"core_w_per_mhz_v2": (0, 2, True), "memory_w_per_mhz_v2": (1, 2, True)}
        kept = {name: about for name, about in constants.items() if about[0] < 0 or levels[about[0]] > 1}
        of_terms = [(int(domains[term] != CORE), 2, False) for term in terms]
        domain, power, clocked = np.array([*of_terms, *kept.values()], dtype=np.int64).T
        column = np.array([*range(len(terms)), *[len(terms)] * len(kept)], dtype=np.int64)
        return cls((*terms, *kept), domain, power, clocked.astype(np.bool_), column)


class Settings(Struct, frozen=True, eq=False):
    """The settings of some rows. clocks: (s, 2) GHz, core and memory. level: (s, 2) number of each clock's level."""

    clocks: Floats
    levels: tuple[Floats, Floats]
    level: Ints
    row: Ints

    @classmethod
    def of(cls, measurements: Measurements) -> "Settings":
        """Find the settings; `row` says which one each row is at."""
        pairs = measurements.rows[["core_mhz", "memory_mhz"]].to_numpy(dtype=np.float64)
        clocks, row = np.unique(pairs, axis=0, return_inverse=True)
        levels = np.unique(clocks[:, 0]), np.unique(clocks[:, 1])
        level = np.stack([np.searchsorted(levels[domain], clocks[:, domain]) for domain in (0, 1)], axis=1)
        return cls(clocks / 1e3, (levels[0], levels[1]), level, row.reshape(-1))


def rows_of(measurements: Measurements) -> Floats:
    """Rows to compress, (n, k + 2): rates, 1, measured power."""
    rates = measurements.rates.to_numpy(dtype=np.float64)
    return np.column_stack([rates, np.ones(len(rates)), measurements.power_w])


def moments(rows: Floats, weights: Floats, settings: Settings) -> Floats:
    """Moments of the measurements, (s, k + 2, k + 2): for each setting the sum of w^2 z^T z over its rows."""
    number = len(settings.clocks)
    sums = np.zeros((number, rows.shape[1], rows.shape[1]))
    order = np.argsort(settings.row, kind="stable")
    ends = np.cumsum(np.bincount(settings.row, minlength=number))
    weighted = (rows * weights[:, None])[order]
    for setting, part in enumerate(np.split(weighted, ends[:-1])):
        sums[setting] = part.T @ part
    return sums


def scales(layout: Layout, settings: Settings, volts: tuple[Floats, Floats]) -> Floats:
    """What each unknown of a fit is multiplied with at each setting, (s, p): V, V^2, f V^2 or 1."""
    both = np.stack([volts[0][settings.level[:, 0]], volts[1][settings.level[:, 1]]], axis=1)
    return scales_at(layout, settings.clocks, both)


def scales_at(layout: Layout, clocks: Floats, volts: Floats) -> Floats:
    """What each unknown is multiplied with at clocks (n, 2) in GHz and voltages (n, 2)."""
    columns = np.maximum(layout.domain, 0)  # of an unknown of no domain `power` is 0, so nothing of its column is used
    volt = volts.take(columns, axis=1)
    scale = np.where(layout.power > 0, volt, 1.0)
    scale *= np.where(layout.power > 1, volt, 1.0)
    scale *= np.where(layout.clocked, clocks.take(columns, axis=1), 1.0)
    return scale

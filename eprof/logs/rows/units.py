"""Units as Nsight Compute writes them, scaled row by row, and what its metrics are."""

from functools import lru_cache

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Array
from eprof.base.text import pattern
from eprof.logs.rows.log import BYTES_PER_S, COUNT, OTHER, PERCENT

_PREFIX = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
# In nanoseconds, ncu's base unit of time.
_TIME = {"ns": 1.0, "nsecond": 1.0, "us": 1e3, "usecond": 1e3, "ms": 1e6, "msecond": 1e6, "s": 1e9, "second": 1e9}
_PERCENT = {"%": 1.0, "‰": 0.1}
_SCALED = pattern(
    r"([KMGTP]?)(byte|hz|inst|cycle|sector|warp|block|thread|request|wavefront|branches|op|register|bit)s?"
)
_NEVER_COUNTS = pattern(r"device__attribute_|.*\.(ratio|pct|max_rate)$|.*\.(per_|pct_of_|peak_)")
_WHOLE_UNITS = ("", "inst", "sector", "warp", "block", "thread", "request", "byte", "cycle", "ns", "nsecond")
_ROUNDED = 0.01  # 1.00 of a scaled unit may be 0.995


class Unit(Struct, frozen=True):
    """What a printed unit is: `value * factor` is in `base`; `kind` is eprof's unit of a counter."""

    factor: float
    base: str
    kind: str

    @property
    def is_scaled(self) -> bool:
        """Whether ncu prints counts in thousands, millions...; times, which are measured, are not meant."""
        return self.factor != 1 and self.base != "ns"


NO_UNIT = Unit(1.0, "", COUNT)


@lru_cache(maxsize=256)
def unit_of(text: str) -> Unit:
    """The unit that ncu writes in a cell: `Mbyte` is 1e6 `byte`, `cycle/nsecond` 1e9 `cycle/second`, `usecond` 1e3
    `ns`.
    """
    text = text.strip()
    above, slash, below = text.partition("/")
    if text in _PERCENT:
        return Unit(_PERCENT[text], "%", PERCENT)
    if not slash:
        return _simple(text)
    unit = _simple(above)
    if below not in _TIME:
        return Unit(unit.factor, f"{unit.base}/{below}", OTHER)
    factor = unit.factor * _TIME["s"] / _TIME[below]
    return Unit(factor, f"{unit.base}/second", BYTES_PER_S if unit.base == "byte" else OTHER)


def _simple(text: str) -> Unit:
    if text in _TIME:
        return Unit(_TIME[text], "ns", COUNT)
    match = _SCALED.fullmatch(text)
    if match is None:
        return Unit(1.0, text, COUNT)
    return Unit(_PREFIX[match[1]], match[2], OTHER if match[2] == "hz" else COUNT)


def kind_of(metric: str, unit: Unit) -> str:
    """What the values of a metric of ncu are to eprof: ratios and attributes without a printed unit are no counts."""
    if unit.kind == COUNT and _NEVER_COUNTS.match(metric):
        return OTHER
    return unit.kind


def is_whole(metric: str, unit: str) -> bool:
    """Whether a value of an ncu metric can have no decimals: a sum of counted things, in a unit without prefix."""
    return unit in _WHOLE_UNITS and "__" in metric and metric.endswith((".sum", ".max", ".min"))


def known_counts(numbers: Array, is_count: Array) -> Array:
    """Values of metrics of ncu; counts below zero are not known."""
    return np.where((numbers < 0) & is_count, np.nan, numbers)


def differ(values: Array, taken: Array) -> Array:
    """Where two known values of one metric of ncu differ by more than their rounding."""
    return np.asarray(np.abs(values - taken) > _ROUNDED * np.abs(taken))

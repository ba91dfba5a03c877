"""Counters that wrapped: what a counter of 48 bits, whose last bit is its sign, holds at most, and how a wrap shows."""

from typing import Any

import numpy as np

from eprof.base.arrays import Floats

HOLDS = 2.0**47
_NEAR = 0.1  # of what the counter holds


def wraps(too_high: Any) -> Floats:
    """How often counters wrapped, if that is what made a count too high by so much; 0: something else did, or nothing.

    too_high: above what the count can be, or above 0 for a thread that counted next to nothing. A wrap adds what the
    counter holds, so a multiple of that, to a tenth, is the sign.
    """
    often = np.asarray(too_high, dtype=np.float64) / HOLDS
    whole = np.round(often)
    return np.where((whole >= 1) & (np.abs(often - whole) < _NEAR), whole, 0.0)

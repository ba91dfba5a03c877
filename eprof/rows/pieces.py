"""Rows of one table of one run, as a reader hands them over."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass
class Piece:
    """The rows of one table of one run. counters: label -> values and what they are (an index into UNITS).

    part: a number for the stream of each row, -1 where it has none; None: not asked for, or not told.
    """

    run: int
    device: Array
    kernel: Array
    launches: Array
    time_s: Array | None = None
    counters: dict[str, tuple[Array, int]] = field(default_factory=dict)
    part: Array | None = None

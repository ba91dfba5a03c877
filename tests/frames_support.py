"""Launches as tables of pandas, which tests can pick apart by name."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from eprof import logs


@dataclass(eq=False)
class Frames:
    """`Launches` with a table of pandas for its rows, its counters and their marks."""

    kernels: pd.DataFrame
    counters: pd.DataFrame
    marks: pd.DataFrame
    units: Mapping[str, str]
    warnings: tuple[str, ...]
    lacks_rows: bool


def combine(*args):
    """As `logs.combine`, with tables of pandas."""
    joined = logs.combine(*args)
    frames = (part.frame() for part in (joined.rows, joined.counters, joined.marks))
    return Frames(*frames, joined.units, joined.warnings, joined.lacks_rows)

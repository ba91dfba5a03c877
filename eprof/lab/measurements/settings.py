"""Settings of measured rows, pairs of core and memory clock: of each row, the different ones, as users write them."""

import pandas as pd

from eprof.base.errors import EprofError
from eprof.base.optional import gathered
from eprof.base.units import clock_label, clock_pair, no_clock_pair
from eprof.lab.measurements import Measurements

# Core and memory clock in MHz.
SettingKey = tuple[float, float]


def distinct_settings(rows: pd.DataFrame) -> list[SettingKey]:
    """The different settings of the rows, (core MHz, memory MHz), sorted by memory and then core clock."""
    pairs = rows[["memory_mhz", "core_mhz"]].drop_duplicates().sort_values(["memory_mhz", "core_mhz"])
    return [(float(core), float(memory)) for memory, core in pairs.itertuples(index=False)]


def setting_of_each(rows: pd.DataFrame) -> list[SettingKey]:
    """The setting of each row, (core MHz, memory MHz)."""
    return [(float(core), float(memory)) for core, memory in zip(rows["core_mhz"], rows["memory_mhz"], strict=True)]


def setting_label(setting: SettingKey) -> str:
    """A setting as users write it: "852/924"."""
    return clock_label(*setting)


def parse_setting(text: str) -> SettingKey:
    """A setting from what users write, the inverse of `setting_label`. Raises EprofError."""
    pair = clock_pair(text)
    if pair is None or not all(pair):
        raise EprofError(no_clock_pair(text))
    return pair


def rows_by_setting(measurements: Measurements) -> dict[str, list[int]]:
    """Label of a setting ("852/924") -> the places of the rows that were measured at it."""
    return gathered((setting_label(key), place) for place, key in enumerate(setting_of_each(measurements.rows)))

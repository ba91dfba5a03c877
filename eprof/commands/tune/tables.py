"""The document `eprof.tune/1` as a table of rows."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from eprof.commands.tune.schema import PICKS, Picked, Tune, same

_LISTS = ("energy_j", "time_s", "measured_j", "measured_s")


def frame(document: Tune) -> pd.DataFrame:
    """The table of tuning: a row for each kernel and setting, and for all together; `pick` says which were chosen."""
    whole = {name: [getattr(setting, name) for setting in document.settings] for name in _LISTS}
    rows = list(_rows(document.program, document, whole, document))
    for kernel in document.kernels:
        rows += _rows(kernel.name, kernel, {name: getattr(kernel, name) for name in _LISTS}, document)
    return pd.DataFrame(rows)


def _rows(name: str, picks: Picked, lists: dict[str, list[Any]], document: Tune) -> Iterator[dict[str, Any]]:
    for place, setting in enumerate(document.settings):
        yield {
            "kernel": name,
            "core_mhz": setting.core_mhz,
            "memory_mhz": setting.memory_mhz,
            **{column: values[place] for column, values in lists.items()},
            "pick": " ".join(pick for pick in PICKS if same(getattr(picks, pick), setting)),
        }

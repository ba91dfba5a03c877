"""The document `eprof.timeline/1` as a table of rows."""

from itertools import product
from typing import Any

import pandas as pd

from eprof.commands.timeline.schema import Cause, Timeline


def frame(document: Timeline) -> pd.DataFrame:
    """The table of a timeline: a row for each function and component, and one for each component outside of all.

    Of a GPU whose joules are split also a row for each cause.
    """
    rows: list[dict[str, Any]] = [
        {
            "function": function.name,
            "calls": function.calls,
            "time_s": function.time_s,
            "component": component.name,
            "energy_j": function.energy_j[component.name],
            "inclusive_j": function.inclusive_j[component.name],
            "above_idle_j": function.above_idle_j[component.name],
            "estimated": function.estimated,
        }
        for function, component in product(document.functions, document.components)
    ]
    outside = {"function": "", "calls": 0, "time_s": document.outside_s, "estimated": False}
    rows += [
        {**outside, "component": component.name, "energy_j": document.outside_j[component.name]}
        for component in document.components
    ]
    rows += [
        {"function": cause.function, "component": split.component, "cause": cause.word, **_joules(cause)}
        for split in document.splits
        for cause in split.causes
        if cause.function is not None
    ]
    return pd.DataFrame(rows)


def _joules(cause: Cause) -> dict[str, float]:
    return {"energy_j": cause.energy_j, "low_j": cause.low_j, "high_j": cause.high_j}

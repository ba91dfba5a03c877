"""The document `eprof.timeline/1` as a table of rows."""

from itertools import product
from typing import Any

import pandas as pd

from eprof.commands.timeline.schema import Timeline


def frame(document: Timeline) -> pd.DataFrame:
    """The table of a timeline: a row for each function and component, and one for each component outside of all."""
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
    return pd.DataFrame(rows)

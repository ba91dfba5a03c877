"""The document `eprof.history/1` as a table of rows."""

import pandas as pd

from eprof.commands.history.schema import History


def frame(document: History) -> pd.DataFrame:
    """The table of a history: a row for each run and kernel, and one for the run as a whole."""
    rows = []
    for place, run in enumerate(document.runs):
        about = {"run": run.path, "commit": run.commit, "time_utc": run.time_utc}
        rows.append({**about, "kernel": "", "energy_j": run.energy_j["total"]})
        rows += [{**about, "kernel": kernel.name, "energy_j": kernel.energy_j[place]} for kernel in document.kernels]
    return pd.DataFrame(rows)

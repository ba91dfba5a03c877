"""Which loss and ridge predict kernels best that were left out, on the public measurements with counts.

python docs/studies/power/forms.py DATA        DATA: the folder with nvdvfs_counts_*.csv (README.md); some minutes

For speed, every other clock of sets with many settings is left away. Prints the mean absolute relative error of power,
%, of each form on each set. The last lines choose for each GPU the form that is best on the sets of all other GPUs, so
that no GPU takes part in the choice that it is predicted by.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from msgspec.structs import replace
from prior import GPUS

from eprof.lab.fitting import Form
from eprof.lab.fitting.quality import error, left_out
from eprof.lab.fitting.solve import form_for
from eprof.lab.measurements import Measurements, read

RIDGES = (0.001, 0.003, 0.01)
FEW_SETTINGS = 5


def errors(data: Path) -> pd.DataFrame:
    """Error by form (rows) and set (columns), %."""
    by_set = {}
    for device, names in GPUS.items():
        for name in names:
            measurements = thinned(read(data / f"{name}.csv", device=device))
            default = replace(form_for(measurements, device), starts=1)
            of_forms = {}
            for words, form in _forms(default).items():
                predicted = left_out(measurements, form, "benchmark")
                of_forms[words] = error(predicted, measurements.power_w)
            by_set[name.removeprefix("nvdvfs_counts_")] = of_forms
            print(f"{name} done", file=sys.stderr, flush=True)
    return pd.DataFrame(by_set)


def thinned(measurements: Measurements) -> Measurements:
    """The rows at every other core and memory clock, if there are many settings."""
    if len(measurements.settings) <= FEW_SETTINGS:
        return measurements
    rows = measurements.rows
    levels = [rows[name].rank(method="dense").astype(int) for name in ("core_mhz", "memory_mhz")]
    return measurements.take(((levels[0] % 2 == 1) & (levels[1] % 2 == 1)).to_numpy())


def _forms(default: Form) -> dict[str, Form]:
    forms = {}
    for loss in ("l2", "soft", "l1"):
        forms[f"{loss}, no ridge"] = replace(default, loss=loss, ridge=0.0, prior=None)
        for ridge in RIDGES:
            forms[f"{loss}, ridge {ridge:g}"] = replace(default, loss=loss, ridge=ridge)
    return forms


def chosen(table: pd.DataFrame) -> pd.DataFrame:
    """For each set the form that is best on the sets of the other GPUs, and its error.

    "Best" has the least mean of errors that are relative to the mean of their set.
    """
    relative = table / table.mean()
    rows = {}
    for names in GPUS.values():
        own = [name.removeprefix("nvdvfs_counts_") for name in names]
        best = relative.drop(columns=own).mean(axis=1).idxmin()
        for name in own:
            rows[name] = (best, table.loc[best, name])
    return pd.DataFrame(rows, index=["chosen by the other GPUs", "error"]).T


if __name__ == "__main__":
    found = errors(Path(sys.argv[1]))
    print(found.assign(mean=found.mean(axis=1)).round(2).to_string())
    print(chosen(found).to_string())
    print(f"mean {np.mean(chosen(found)['error']):.2f}")

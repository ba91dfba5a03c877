"""Makes counters/measurements/priors/energies.toml, and asks how much of the prior's gain is the kernels it has seen.

python docs/studies/power/prior.py DATA            prints the file
python docs/studies/power/prior.py DATA --check    leaves each kernel out of the prior, too (some minutes)
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from msgspec.structs import replace

from eprof.fitting import Form, fit
from eprof.fitting.defaults import RIDGE
from eprof.fitting.quality import error, groups
from eprof.measurements import Measurements, read

GPUS = {
    "GeForce GTX 980": ("nvdvfs_counts_gtx980_low", "nvdvfs_counts_gtx980_high"),
    "GeForce GTX 1080 Ti": ("nvdvfs_counts_gtx1080ti",),
    "Tesla V100": ("nvdvfs_counts_v100",),
}
PLAIN = Form(starts=1)


def energies(parts: list[Measurements]) -> pd.Series:
    """Mean energies of one GPU's measurements, pJ."""
    return sum(fit(one, PLAIN).prices_pj for one in parts) / len(parts)


def show(measured: dict[str, list[Measurements]]) -> None:
    """Print the file's entries, in two digits."""
    for device, parts in measured.items():
        values = ", ".join(f"{term} = {float(f'{pj:.2g}'):g}" for term, pj in energies(parts).items())
        print(f'\n[[gpu]]\ndevice = "{device}"\npj = {{ {values} }}')


def check(measured: dict[str, list[Measurements]]) -> None:
    """Leave-one-benchmark-out errors with a prior that has not seen the benchmark on any GPU."""
    for device, parts in measured.items():
        for part in parts:
            labels, predicted = groups(part, "benchmark"), np.empty(len(part))
            for label in range(int(labels.max()) + 1):
                out = labels == label
                kernel = part.rows["benchmark"][out].iloc[0]
                others = [
                    energies([one.take((one.rows["benchmark"] != kernel).to_numpy()) for one in many])
                    for name, many in measured.items()
                    if name != device
                ]
                prior = (sum(others) / len(others)).to_dict()
                form = replace(PLAIN, loss="l1", ridge=RIDGE, prior=prior)
                predicted[out] = fit(part.take(~out), form).predict(part.take(out))
            print(f"{Path(part.sources[0]).stem}: {error(predicted, part.power_w):.2f} %", flush=True)


if __name__ == "__main__":
    data = Path(sys.argv[1])
    found = {device: [read(data / f"{name}.csv") for name in names] for device, names in GPUS.items()}
    check(found) if "--check" in sys.argv else show(found)

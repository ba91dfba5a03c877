"""Makes counters/measurements/priors/energies.toml, and asks how much of the prior's gain is the kernels it has seen.

python docs/studies/power/prior.py DATA            prints the entries of the file
python docs/studies/power/prior.py DATA --check    leaves each kernel out of the prior, too (some minutes)
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from msgspec.structs import replace

from eprof.lab.fitting import Form, fit
from eprof.lab.fitting.cross_validation import folds
from eprof.lab.fitting.quality import error
from eprof.lab.fitting.solve import form_for, gpus_alike, mean_energies
from eprof.lab.measurements import Measurements, read

GPUS = {
    "GeForce GTX 980": ("nvdvfs_counts_gtx980_low", "nvdvfs_counts_gtx980_high"),
    "GeForce GTX 1080 Ti": ("nvdvfs_counts_gtx1080ti",),
    "Tesla P100": ("nvdvfs_counts_p100",),
    "Tesla V100": ("nvdvfs_counts_v100",),
}
PLAIN = Form(starts=1)
# Its price differs between GPUs of one kind as between kinds, and two of the four cannot tell theirs.
NOT_DRAWN = "fp64_instruction"


def measured(data: Path) -> dict[str, list[Measurements]]:
    """The measurements of each GPU."""
    return {device: [read(data / f"{name}.csv", device=device) for name in names] for device, names in GPUS.items()}


def energies(parts: list[Measurements]) -> pd.Series:
    """Mean energies of one GPU's measurements, pJ."""
    return (sum(fit(part, PLAIN).prices_pj for part in parts) / len(parts)).drop(NOT_DRAWN)


def entries(gpus: Mapping[str, list[Measurements]]) -> str:
    """The file's entries, in two digits."""
    written = []
    for device, parts in gpus.items():
        prices = ", ".join(f"{term} = {float(f'{pj:.2g}'):g}" for term, pj in energies(parts).items())
        written.append(f'[[gpu]]\ndevice = "{device}"\npj = {{ {prices} }}\n')
    return "\n".join(written)


def check(gpus: Mapping[str, list[Measurements]]) -> None:
    """Print leave-one-benchmark-out errors with a prior that has not seen the benchmark on any GPU."""
    for device, parts in gpus.items():
        others = {name: gpus[name] for name in gpus_alike(gpus, device)}
        for part in parts:
            form = replace(form_for(part, device), starts=1)
            predicted = np.empty(len(part))
            for fold in folds("leave_one_benchmark_out", part.rows):
                unseen = {name: [_without(fold.label, other) for other in many] for name, many in others.items()}
                prior = mean_energies([energies(many).to_dict() for many in unseen.values()])
                trained = fit(part.take(fold.train), replace(form, prior=prior))
                predicted[fold.test] = trained.predict(part.take(fold.test))
            print(f"{Path(part.sources[0]).stem}: {error(predicted, part.power_w):.2f} %", flush=True)


def _without(kernel: str, part: Measurements) -> Measurements:
    return part.take((part.rows["benchmark"] != kernel).to_numpy())


if __name__ == "__main__":
    all_measured = measured(Path(sys.argv[1]))
    if "--check" in sys.argv:
        check(all_measured)
    else:
        print(entries(all_measured), end="")

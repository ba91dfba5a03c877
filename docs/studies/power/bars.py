"""Errors of eprof's fits on the public measurements, as a Markdown table: fit, and with settings and kernels left out.

python docs/studies/power/bars.py DATA [NAME...]      DATA: the folder with the CSVs (docs/studies/power/README.md)

Everything is estimated on the rows that are not left out, voltages too. `default`: the form that `eprof fit` takes,
whose prior leaves this GPU's own measurements out; `plain`: least squares without ridge.
"""

import sys
import time
from pathlib import Path

from msgspec.structs import replace

from eprof.lab.fitting import Form, fit
from eprof.lab.fitting.cross_validation import of_form
from eprof.lab.fitting.quality import error, left_out
from eprof.lab.fitting.solve import form_for
from eprof.lab.measurements import read

# name: (GPU, bars of fit, of settings left out, of benchmarks left out)
SETS = {
    "nvdvfs_counts_gtx980_low": ("GeForce GTX 980", 5.0, 5.0, 7.3),
    "nvdvfs_counts_gtx980_high": ("GeForce GTX 980", 8.5, 8.5, 12.2),
    "nvdvfs_counts_gtx1080ti": ("GeForce GTX 1080 Ti", 8.5, 8.5, 13.0),
    "nvdvfs_counts_p100": ("Tesla P100", None, None, None),
    "nvdvfs_counts_v100": ("Tesla V100", 10.2, 10.9, 16.1),
    "gpmtool_gtxtitanx_tpds2019": (None, 6.1, 6.2, 6.6),
    "gpmtool_gtxtitanx_micro_named": (None, 3.8, 3.9, 4.0),
    "gpmtool_gtxtitanx_hpca2018": (None, 4.8, 5.2, 5.2),
    "gpmtool_gtxtitanx_apps": (None, 5.4, 5.4, 6.6),
    "gpmtool_teslak40c": (None, 6.5, 6.8, 7.1),
    "gpmtool_gtx980": (None, 3.3, 3.5, 3.6),
    "gpmtool_titanv": (None, 5.3, 6.9, 6.2),
    "gpmtool_amd580x": (None, 4.7, 5.6, 4.9),
    "nvdvfs_v100_micro": (None, 7.4, 9.3, 7.7),
    "nvdvfs_v100_apps": (None, 6.6, 8.4, 9.4),
    "nvdvfs_rtx8000_micro": (None, 7.9, 8.0, 8.0),
    "nvdvfs_rtx8000_apps": (None, 6.8, 6.9, 10.0),
    "gpuptx_gtxtitanx_apps": (None, 2.8, 4.1, None),
    "gpuptx_gtxtitanx_micro": (None, 2.5, 3.7, None),
}
PLAIN = Form(starts=1)


def main(data: Path, names: list[str]) -> None:
    """Print the table; a line a data set and form."""
    print("| data set | form | fit | leave one setting out | leave one benchmark out | bars | s of one fit |")
    print("|---|---|---:|---:|---:|---|---:|")
    for name in names or SETS:
        device, *bars = SETS[name]
        measurements = read(data / f"{name}.csv", device=device)
        forms = {"plain": PLAIN}
        default = replace(form_for(measurements, device), starts=1)
        if default != PLAIN:
            forms = {"default": default, **forms}
        for label, form in forms.items():
            start = time.perf_counter()
            found = [error(fit(measurements, form).predict(measurements), measurements.power_w)]
            seconds = time.perf_counter() - start
            for by in ("setting", "benchmark"):
                predicted = left_out(of_form(form), measurements, by)
                found.append(float("nan") if predicted is None else error(predicted, measurements.power_w))
            cells = " | ".join("-" if value != value else f"{value:.2f}" for value in found)
            limits = " / ".join("-" if bar is None else f"{bar:g}" for bar in bars)
            print(f"| {name} | {label} | {cells} | {limits} | {seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

"""The form that `eprof fit` takes if it is not told otherwise, and the prior that it draws energies to.

Chosen by leaving benchmarks out of the public measurements (docs/fit.md): with a prior, least absolute residuals and a
weak ridge; without one, least squares, unless there are wild rows or kernels.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pandas as pd

from eprof.base.gpus import may_be_same
from eprof.base.resources import folder
from eprof.base.toml import Document
from eprof.fitting.form import Form
from eprof.fitting.moments import Floats
from eprof.fitting.solve import fit
from eprof.measurements.diagnostics import wild
from eprof.measurements.values import COUNTED, Measurements

RIDGE = 0.01
_ENOUGH = 4  # terms that the prior must know
_MANY = 10  # kernels, so that a few of them can be told from the rest
_FAR = 1.8  # times the measured power, or its inverse
_FEW_OF = 0.2  # of the kernels


def form_for(measurements: Measurements, device: str | None = None) -> Form:
    """The default form for these measurements. `device`: their GPU, whose own data the prior then leaves out."""
    if measurements.own:
        # Two unknown energies a benchmark: a few rows each tell them badly, and settings that are left out suffer.
        return Form(ridge=RIDGE)
    prior = pooled(measurements, device)
    if not prior:
        return Form(loss=_loss(measurements))
    return Form(loss="l1", ridge=RIDGE, prior=prior)


def form_without_prior(measurements: Measurements) -> Form:
    """The default form drawn to no other GPU's energies, so that no prior can hold what is to be predicted."""
    default = form_for(measurements)
    if default.prior is None:
        return default
    return Form(loss=_loss(measurements))


def _loss(measurements: Measurements) -> str:
    """Squares, unless rows are wild, or a few kernels as a whole: in absolute residuals these count little."""
    if wild(measurements).any():
        return "l1"
    if measurements.own or measurements.rows["benchmark"].nunique() < _MANY:
        return "l2"
    steady = fit(measurements, Form(loss="l1", starts=1))
    return "l1" if len(far_off(measurements, steady.predict(measurements))) else "l2"


def far_off(measurements: Measurements, predicted_w: Floats) -> pd.Series:
    """Predicted over measured power, middle row, of the few benchmarks that are far off as a whole; most first.

    Empty where there are none, or so many that it is the fit that is off.
    """
    ratios = pd.Series(predicted_w / measurements.power_w).groupby(measurements.rows["benchmark"].to_numpy()).median()
    far = ratios[(ratios > _FAR) | (ratios < 1 / _FAR)].sort_values(ascending=False)
    return far if len(far) <= max(1, _FEW_OF * len(ratios)) else far.iloc[:0]


def prior_may_have_seen(form: Form, device: str | None) -> str | None:
    """A sentence if the prior may have seen the very measurements: nobody said which GPU they are of."""
    if form.prior is None or device is not None:
        return None
    return (
        f"No --device was given, so energies are drawn to those of all GPUs of the prior ({', '.join(known())}). If "
        "these measurements are of one of them, the prior has seen it, and errors of what is left out are too small."
    )


def pooled(measurements: Measurements, device: str | None = None) -> Mapping[str, float] | None:
    """Energies of the terms, pJ: the mean over the GPUs of the prior but `device`; None if it does not know enough."""
    if measurements.kind != COUNTED or measurements.own:
        return None
    gpus = {name: energies for name, energies in known().items() if device is None or not may_be_same(name, device)}
    means = {}
    for term in measurements.terms:
        values = [energies[term] for energies in gpus.values() if term in energies]
        if values:
            means[term] = float(np.mean(values))
    return means if len(means) >= _ENOUGH else None


@lru_cache(maxsize=1)
def known() -> Mapping[str, Mapping[str, float]]:
    """GPU -> term -> pJ, from `counters/measurements/priors/energies.toml`."""
    document = Document.read(folder("counters") / "measurements" / "priors" / "energies.toml")
    return {str(gpu["device"]): dict(gpu["pj"]) for gpu in document.data["gpu"]}

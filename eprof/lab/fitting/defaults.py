"""The form that `eprof fit` takes by default, and the prior that it draws energies to.

Chosen by leaving benchmarks out of the public measurements (docs/fit.md): least squares; with a prior a weak ridge and
large residuals as absolute ones; least absolute residuals where there are wild rows or kernels.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache

import pandas as pd
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.gpus import may_be_same
from eprof.base.resources import folder
from eprof.base.toml import Document
from eprof.base.vocabulary import CPU
from eprof.costs.estimate import chips
from eprof.counts.counters import capabilities_like
from eprof.lab.fitting.form import Form
from eprof.lab.fitting.solve import fit
from eprof.lab.measurements.diagnostics import wild
from eprof.lab.measurements.values import COUNTED, Measurements

_RIDGE = 0.003
_OWN_RIDGE = 0.01  # of energies that belong to one benchmark each
_ENOUGH = 4  # terms that the prior must know
_MANY = 10  # kernels, so that a few of them can be told from the rest
_FAR = 1.8  # times the measured power, or its inverse
_FEW_OF = 0.2  # of the kernels


def form_for(measurements: Measurements, device: str | None = None) -> Form:
    """The default form for these measurements. `device`: their GPU, whose own data the prior then leaves out."""
    if measurements.own:
        return Form(ridge=ridge_for(measurements, None))
    if measurements.processor == CPU:
        return Form(voltages="one", clock_tree=False, loss=_loss(measurements), starts=1)
    prior, loss = pooled(measurements, device), _loss(measurements)
    if prior and loss == "l2":
        loss = "soft"
    return Form(loss=loss, ridge=ridge_for(measurements, prior), prior=prior)


def ridge_for(measurements: Measurements, prior: Mapping[str, float] | None) -> float:
    """How strongly the default form draws energies to `prior`, or to zero."""
    if measurements.own:
        # Two unknown energies a benchmark: a few rows each tell them badly, and settings that are left out suffer.
        return _OWN_RIDGE
    return _RIDGE if prior else 0.0


def form_without_prior(measurements: Measurements) -> Form:
    """The default form drawn to no other GPU's energies, so that no prior can hold what is to be predicted."""
    default = form_for(measurements)
    if default.prior is None:
        return default
    return replace(default, ridge=0.0, prior=None)


def _loss(measurements: Measurements) -> str:
    """The default loss: squares, unless rows are wild, or a few kernels as a whole: these count little then."""
    if wild(measurements).any():
        return "l1"
    if measurements.own or measurements.rows["benchmark"].nunique() < _MANY:
        return "l2"
    steady = fit(measurements, Form(loss="l1", starts=1))
    return "l1" if len(far_off(measurements, steady.predict(measurements))) else "l2"


def far_off(measurements: Measurements, predicted_w: Floats) -> pd.Series:
    """Predicted over measured power of the few benchmarks that the default form has far off as a whole.

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
    """The prior's energies of the terms, pJ: the mean over GPUs like `device`; None if they know too few of them."""
    if measurements.kind != COUNTED or measurements.own or measurements.processor == CPU:
        return None
    energies = mean([known()[name] for name in alike(known(), device)])
    of_terms = {term: energies[term] for term in measurements.terms if term in energies}
    return of_terms if len(of_terms) >= _ENOUGH else None


def mean(energies: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The prior's mean energy of each term over the GPUs that have it."""
    return {str(term): float(pj) for term, pj in pd.DataFrame(list(energies)).mean().items()}


def alike(names: Collection[str], device: str | None) -> list[str]:
    """The prior's GPUs of one kind with `device` and not the same; all others where its kind is not known."""
    if device is None:
        return list(names)
    others = [name for name in names if not may_be_same(name, device)]
    kind = _has_full_rate_fp64(device)
    same_kind = [name for name in others if _has_full_rate_fp64(name) == kind]
    return same_kind or others


def _has_full_rate_fp64(device: str) -> bool | None:
    """Whether a GPU has about as many FP64 units as FP32 ones; None: not known."""
    capabilities = capabilities_like(device)
    has_full_rate = {chips()[capability].full_rate for capability in capabilities if capability in chips()}
    return has_full_rate.pop() if len(has_full_rate) == 1 else None


@cache
def known() -> Mapping[str, Mapping[str, float]]:
    """The prior's energies, GPU -> term -> pJ, from `counters/measurements/priors/energies.toml`."""
    document = Document.read(folder("counters") / "measurements" / "priors" / "energies.toml")
    return {str(gpu["device"]): dict(gpu["pj"]) for gpu in document.data["gpu"]}

"""The form that `eprof fit` takes if it is not told otherwise, and the prior that it draws energies to.

Chosen by leaving benchmarks out of the public measurements (docs/fit.md): with a prior, least absolute residuals and a
weak ridge; without one, least squares, unless there are wild rows.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from eprof.definition import Document
from eprof.fitting.form import Form
from eprof.measurements.doubts import wild
from eprof.measurements.values import COUNTED, Measurements
from eprof.resources import folder

RIDGE = 0.01
_ENOUGH = 4  # terms that the prior must know


def form_for(measurements: Measurements, device: str | None = None) -> Form:
    """The default form for these measurements. `device`: their GPU, whose own data the prior then leaves out."""
    if measurements.own:
        # Two unknown energies a benchmark: a few rows each tell them badly, and settings that are left out suffer.
        return Form(ridge=RIDGE)
    prior = pooled(measurements, device)
    if not prior:
        return Form(loss="l1" if wild(measurements).any() else "l2")
    return Form(loss="l1", ridge=RIDGE, prior=prior)


def form_without_prior(measurements: Measurements) -> Form:
    """The default form drawn to no other GPU's energies, so that no prior can hold what is to be predicted."""
    default = form_for(measurements)
    if default.prior is None:
        return default
    return Form(loss="l1" if wild(measurements).any() else "l2")


def flattered(form: Form, device: str | None) -> str | None:
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
    gpus = {name: energies for name, energies in known().items() if device is None or not _same(name, device)}
    found = {}
    for term in measurements.terms:
        values = [one[term] for one in gpus.values() if term in one]
        if values:
            found[term] = float(np.mean(values))
    return found if len(found) >= _ENOUGH else None


@lru_cache(maxsize=1)
def known() -> Mapping[str, Mapping[str, float]]:
    """GPU -> term -> pJ, from `counters/measurements/priors/energies.toml`."""
    document = Document.read(folder("counters") / "measurements" / "priors" / "energies.toml")
    return {str(one["device"]): dict(one["pj"]) for one in document.data["gpu"]}


def _same(one: str, other: str) -> bool:
    """Whether two names are of one GPU: the words of the shorter one are in the other."""
    words = [set(name.lower().replace("nvidia", "").replace("-", " ").split()) for name in (one, other)]
    return bool(words[0]) and bool(words[1]) and (words[0] <= words[1] or words[1] <= words[0])

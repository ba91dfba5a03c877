"""What is validated: our form, refitted in every fold, and the baselines that it must beat (docs/validate.md).

Only training rows are looked at. A baseline that cannot run here is named in a sentence, not left out in silence.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from msgspec import Struct

from eprof.base.arrays import Floats, Ints
from eprof.lab.fitting import means
from eprof.lab.fitting.form import Form
from eprof.lab.fitting.solve import fit
from eprof.lab.measurements import Measurements
from eprof.lab.validation.cross_validation import Model

_SEED = 0
_ANN_INPUTS = 10
_ANN_HIDDEN = (4, 4)
_ANN_STARTS = 2
# What a level of cache or scratchpad serves: the "texture events" of [S] 5, which MLR goes without.
_EXTRA = ("l1_", "l2_", "shared_", "texture_")
_NO_NETWORK = "The neural network (BP-ANN) is not among the baselines: it needs scikit-learn; pip install scikit-learn."


def of_form(form: Form, name: str = "eprof", seed: int = _SEED) -> Model:
    """Our form as a model beside the baselines: voltages and coefficients are estimated anew from each fold's rows."""
    return Model(name, partial(fit, form=form, seed=seed))


class _Linear(Struct, frozen=True, eq=False):
    weights: Floats
    terms: tuple[str, ...]

    def predict(self, measurements: Measurements) -> Floats:
        return np.asarray(_inputs(measurements, self.terms) @ self.weights[1:] + self.weights[0])


def _regression(measurements: Measurements, *, extra: bool) -> _Linear:
    """The baseline of least squares: power on event rates and both clocks, with an intercept, signs free ([S] 5).

    extra: also with the rates of L1, L2 and shared memory (MLR+); without, only instructions and DRAM (MLR). Weights
    are of least norm, so that columns that say the same are no error.
    """
    terms = _terms(measurements, extra)
    inputs = np.column_stack([np.ones(len(measurements.rows)), _inputs(measurements, terms)])
    scale = np.abs(inputs).max(axis=0)
    scale[scale == 0] = 1.0
    weights, *_ = np.linalg.lstsq(inputs / scale, measurements.power_w, rcond=None)
    return _Linear(weights / scale, terms)


def _terms(measurements: Measurements, extra: bool) -> tuple[str, ...]:
    return tuple(str(term) for term in measurements.terms if extra or not str(term).startswith(_EXTRA))


def _inputs(measurements: Measurements, terms: Sequence[str]) -> Floats:
    """Inputs of the baselines: rates of `terms`, then the clocks: (n, n_terms + 2)."""
    clocks = measurements.rows[["core_mhz", "memory_mhz"]].to_numpy(dtype=float)
    return np.column_stack([measurements.rates[list(terms)].to_numpy(dtype=float), clocks])


class _Scale(Struct, frozen=True, eq=False):
    """Mean and spread of columns, to bring them to mean 0 and spread 1."""

    middle: Floats
    spread: Floats

    @classmethod
    def of(cls, values: Floats) -> "_Scale":
        spread = values.std(axis=0)
        return cls(values.mean(axis=0), np.where(spread == 0, 1.0, spread))

    def apply(self, values: Floats) -> Floats:
        return (values - self.middle) / self.spread

    def undo(self, values: Floats) -> Floats:
        return np.asarray(values * self.spread + self.middle)


class _Network(Struct, frozen=True, eq=False):
    network: Any
    columns: Ints
    inputs: _Scale
    power: _Scale
    terms: tuple[str, ...]

    def predict(self, measurements: Measurements) -> Floats:
        inputs = _inputs(measurements, self.terms)[:, self.columns]
        return self.power.undo(self.network.predict(self.inputs.apply(inputs)))


def _network(measurements: Measurements) -> _Network:
    """The network, a baseline: Song's BP-ANN, 10 inputs, two hidden layers of 4 sigmoid neurons, 1 output ([S] 5).

    Its inputs are the ten rates and clocks that correlate best with the power of the training rows, standardised as the
    power is. The best of a few starts, by the error on the training rows, is kept.
    """
    terms = _terms(measurements, extra=True)
    inputs = _inputs(measurements, terms)
    # Ten at most, whose correlation with power is strongest; they vary.
    varying = np.flatnonzero(inputs.std(axis=0) > 0)
    strength = [abs(float(np.corrcoef(inputs[:, column], measurements.power_w)[0, 1])) for column in varying]
    strongest = varying[np.argsort(strength)[::-1][:_ANN_INPUTS]]
    columns = np.sort(strongest)
    inputs = inputs[:, columns]
    scales = _Scale.of(inputs), _Scale.of(measurements.power_w)
    network = _best_network(scales[0].apply(inputs), scales[1].apply(measurements.power_w))
    return _Network(network, columns, *scales, terms)


def _best_network(inputs: Floats, power: Floats) -> Any:
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_limits

    networks = []
    for start in range(_ANN_STARTS):
        network = MLPRegressor(
            hidden_layer_sizes=_ANN_HIDDEN,
            activation="logistic",
            solver="lbfgs",
            alpha=1e-3,
            max_iter=300,
            random_state=_SEED + start,
        )
        # Matrices are so small that one thread is quickest; that it could be trained longer need not be said.
        with np.errstate(all="ignore"), threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            networks.append(network.fit(inputs, power))
    return min(networks, key=lambda network: network.loss_)


PLAIN = (Model(means.CONSTANT, means.ConstantPower.of), Model(means.LINEAR, means.ClockPower.of))
REGRESSION = Model("linear regression (MLR)", partial(_regression, extra=False))
EXTRA_REGRESSION = Model("linear regression, extra counters (MLR+)", partial(_regression, extra=True))
NETWORK = Model("neural network (BP-ANN 10-4-4-1)", _network)


def baselines(measurements: Measurements) -> tuple[list[Model], list[str]]:
    """The models to hold ours against, and a sentence for each that cannot run here."""
    models = [*PLAIN, of_form(Form(voltages="one", clock_tree=False), "V = 1 everywhere"), REGRESSION]
    notes = []
    if not _has_sklearn():
        notes.append(_NO_NETWORK)
    if _terms(measurements, extra=True) == _terms(measurements, extra=False):
        notes.append("MLR+ is not among the baselines: there are no counts of caches or shared memory to add.")
    else:
        models.append(EXTRA_REGRESSION)
    if _has_sklearn():
        models.append(NETWORK)
    return models, notes


def _has_sklearn() -> bool:
    return find_spec("sklearn") is not None

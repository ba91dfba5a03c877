"""What is validated: our form, refitted in every fold, and the baselines that it must beat (model.md 9).

Only training rows are looked at. A baseline that cannot run here is named in a sentence, not left out in silence.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from eprof.fitting import means
from eprof.fitting.form import Form
from eprof.fitting.solve import fit
from eprof.measurements import Measurements
from eprof.validation.run import Model, Predictor
from eprof.validation.scores import Floats

_SEED = 0
_ANN_INPUTS = 10
_ANN_HIDDEN = (4, 4)
_ANN_STARTS = 2
# What a level of cache or scratchpad serves: the "texture events" of [S] 5, which its plain regression goes without.
_EXTRA = ("l1_", "l2_", "shared_", "texture_")


@dataclass(frozen=True)
class FormModel:
    """Our form: voltages and coefficients are estimated anew from each fold's training rows."""

    form: Form = field(default_factory=Form)
    name: str = "eprof"
    seed: int = _SEED

    def train(self, measurements: Measurements) -> Predictor:
        """Fit the form to these rows."""
        return fit(measurements, self.form, self.seed)


@dataclass(frozen=True)
class ConstantPower:
    """One number for everything (`fitting/means.py`)."""

    name: str = means.CONSTANT

    def train(self, measurements: Measurements) -> Predictor:
        """The power with the least sum of squared relative errors."""
        return means.ConstantPower.of(measurements)


@dataclass(frozen=True)
class ClockPower:
    """The mean of a kernel, or of all if it is new, times a line in both clocks (`fitting/means.py`)."""

    name: str = means.LINEAR

    def train(self, measurements: Measurements) -> Predictor:
        """Means of the kernels, slopes that they share."""
        return means.ClockPower.of(measurements)


@dataclass(frozen=True, eq=False)
class _Linear:
    weights: Floats
    terms: tuple[str, ...]

    def predict(self, measurements: Measurements) -> Floats:
        return np.asarray(_inputs(measurements, self.terms) @ self.weights[1:] + self.weights[0])


@dataclass(frozen=True)
class LinearRegression:
    """Ordinary least squares of power on event rates and both clocks, with an intercept and signs left free ([S] 5).

    extra: also with the rates of L1, L2 and shared memory (MLR+); without, only instructions and DRAM (MLR).
    """

    extra: bool = False

    @property
    def name(self) -> str:
        """Song's names."""
        return "linear regression, extra counters (MLR+)" if self.extra else "linear regression (MLR)"

    def train(self, measurements: Measurements) -> Predictor:
        """Weights of least norm, so that columns that say the same are no error."""
        terms = _terms(measurements, self.extra)
        inputs = np.column_stack([np.ones(len(measurements.rows)), _inputs(measurements, terms)])
        power = measurements.rows["power_w"].to_numpy(dtype=float)
        scale = np.abs(inputs).max(axis=0)
        scale[scale == 0] = 1.0
        weights, *_ = np.linalg.lstsq(inputs / scale, power, rcond=None)
        return _Linear(weights / scale, terms)


def _terms(measurements: Measurements, extra: bool) -> tuple[str, ...]:
    return tuple(str(one) for one in measurements.rates.columns if extra or not str(one).startswith(_EXTRA))


def has_extra(measurements: Measurements) -> bool:
    """Whether there is any count that MLR+ has and MLR goes without."""
    return _terms(measurements, extra=True) != _terms(measurements, extra=False)


def _inputs(measurements: Measurements, terms: Sequence[str]) -> Floats:
    """Rates of `terms`, then the clocks: (n, n_terms + 2)."""
    clocks = measurements.rows[["core_mhz", "memory_mhz"]].to_numpy(dtype=float)
    return np.column_stack([measurements.rates[list(terms)].to_numpy(dtype=float), clocks])


@dataclass(frozen=True, eq=False)
class _Network:
    network: object
    columns: Floats
    middle: Floats
    spread: Floats
    power: tuple[float, float]
    terms: tuple[str, ...]

    def predict(self, measurements: Measurements) -> Floats:
        inputs = (_inputs(measurements, self.terms)[:, self.columns] - self.middle) / self.spread
        found = self.network.predict(inputs)  # type: ignore[attr-defined]
        return np.asarray(found * self.power[1] + self.power[0])


@dataclass(frozen=True)
class NeuralNetwork:
    """Song's BP-ANN: 10 inputs, two hidden layers of 4 sigmoid neurons, 1 output ([S] 5).

    Its inputs are the ten rates and clocks that go best with the power of the training rows. The best of a few starts,
    by the error on the training rows, is kept.
    """

    name: str = "neural network (BP-ANN 10-4-4-1)"

    def train(self, measurements: Measurements) -> Predictor:
        """Train on standardised inputs and power, by L-BFGS."""
        from sklearn.neural_network import MLPRegressor

        terms = _terms(measurements, extra=True)
        inputs, power = _inputs(measurements, terms), measurements.rows["power_w"].to_numpy(dtype=float)
        columns = _telling(inputs, power)
        middle, spread = inputs[:, columns].mean(axis=0), inputs[:, columns].std(axis=0)
        about = float(power.mean()), float(power.std()) or 1.0
        scaled, wanted = (inputs[:, columns] - middle) / spread, (power - about[0]) / about[1]
        best, least = None, np.inf
        for start in range(_ANN_STARTS):
            network = MLPRegressor(
                hidden_layer_sizes=_ANN_HIDDEN,
                activation="logistic",
                solver="lbfgs",
                alpha=1e-3,
                max_iter=300,
                random_state=_SEED + start,
            )
            with np.errstate(all="ignore"), _quiet():
                network.fit(scaled, wanted)
            if network.loss_ < least:
                best, least = network, network.loss_
        return _Network(best, columns, middle, spread, about, terms)


def _telling(inputs: Floats, power: Floats) -> Floats:
    """The places of the inputs, ten at most, whose correlation with power is strongest; none that never varies."""
    varies = np.flatnonzero(inputs.std(axis=0) > 0)
    strength = [abs(float(np.corrcoef(inputs[:, one], power)[0, 1])) for one in varies]
    chosen = varies[np.argsort(strength)[::-1][:_ANN_INPUTS]]
    return np.sort(chosen)


@contextmanager
def _quiet() -> Iterator[None]:
    """No warning that the network could be trained longer; one thread, as its matrices are too small for several."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


PLAIN: tuple[Model, ...] = (ConstantPower(), ClockPower())


def baselines() -> tuple[list[Model], list[str]]:
    """The models to hold ours against, and a sentence for each that this machine cannot run."""
    found: list[Model] = [
        *PLAIN,
        FormModel(Form(voltages="one", clock_tree=False), "V = 1 everywhere"),
        LinearRegression(),
        LinearRegression(extra=True),
    ]
    if not _has_sklearn():
        return found, [
            "The neural network (BP-ANN) is not among the baselines: it needs scikit-learn; pip install 'eprof[fit]'."
        ]
    return [*found, NeuralNetwork()], []


def _has_sklearn() -> bool:
    from importlib.util import find_spec

    return find_spec("sklearn") is not None

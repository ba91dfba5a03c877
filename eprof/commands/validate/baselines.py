"""Models that eprof's is compared with: baselines of [S] 5, which know event rates and clocks.

`cross_validation.BASELINES_WITHOUT_COUNTS` know the kernel's name and clocks alone.
"""

import warnings
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec

import numpy as np

from eprof.base.arrays import Floats
from eprof.lab.fitting.cross_validation import BASELINES_WITHOUT_COUNTS, CLOCKS, SEED, Model, of_form
from eprof.lab.fitting.solve import Form
from eprof.lab.measurements import Measurements

# What a level of cache or scratchpad serves: the "texture events" of [S] 5, which MLR goes without.
_EXTRA = ("l1_", "l2_", "shared_", "texture_")


def _regression(train: Measurements, test: Measurements, *, extra: bool) -> Floats:
    """The baseline of least squares: power on event rates and both clocks, with an intercept, signs free ([S] 5).

    Returns the power of `test`, in W. extra: also with the rates of L1, L2 and shared memory (MLR+); without, only
    instructions and DRAM (MLR). Weights are of least norm, so that columns that say the same are no error.
    """
    terms = _terms(train, extra)
    inputs = np.column_stack([np.ones(len(train)), _inputs(train, terms)])
    scale = np.abs(inputs).max(axis=0)
    scale[scale == 0] = 1.0
    weights, *_ = np.linalg.lstsq(inputs / scale, train.power_w, rcond=None)
    weights /= scale
    return np.asarray(_inputs(test, terms) @ weights[1:] + weights[0])


def _terms(measurements: Measurements, extra: bool = True) -> tuple[str, ...]:
    return tuple(str(term) for term in measurements.terms if extra or not str(term).startswith(_EXTRA))


def _inputs(measurements: Measurements, terms: Sequence[str]) -> Floats:
    """The inputs of regression and network: rates of `terms`, then both clocks: (n, n_terms + 2)."""
    clocks = measurements.rows[CLOCKS].to_numpy(dtype=float)
    return np.column_stack([measurements.rates[list(terms)].to_numpy(dtype=float), clocks])


def _network(train: Measurements, test: Measurements) -> Floats:
    """The baseline of a neural network: Song's BP-ANN, 10 inputs, two hidden layers of 4 sigmoid neurons ([S] 5).

    Its inputs are the ten rates and clocks that correlate best with the power of the training rows, brought to mean 0
    and spread 1 as the power is. The best of a few starts, by the error on the training rows, is kept.
    """
    from sklearn.neural_network import MLPRegressor
    from threadpoolctl import threadpool_limits

    terms = _terms(train)
    inputs, power_w = _inputs(train, terms), train.power_w
    spread = inputs.std(axis=0)
    # Ten at most, whose correlation with power is strongest; they vary.
    varying = np.flatnonzero(spread > 0)
    strength = [abs(float(np.corrcoef(inputs[:, column], power_w)[0, 1])) for column in varying]
    columns = np.sort(varying[np.argsort(strength)[::-1][:10]])
    middle = inputs.mean(axis=0)
    scaled, others = ((each - middle)[:, columns] / spread[columns] for each in (inputs, _inputs(test, terms)))
    middle_w, spread_w = power_w.mean(), power_w.std() or 1.0
    networks = []
    for start in range(2):
        sizes = {"hidden_layer_sizes": (4, 4), "activation": "logistic", "solver": "lbfgs"}
        network = MLPRegressor(**sizes, alpha=1e-3, max_iter=300, random_state=SEED + start)
        # Matrices are so small that one thread is quickest; that it could be trained longer need not be said.
        with np.errstate(all="ignore"), threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            networks.append(network.fit(scaled, (power_w - middle_w) / spread_w))
    best = min(networks, key=lambda network: network.loss_)
    return np.asarray(best.predict(others) * spread_w + middle_w)


REGRESSION = Model("linear regression (MLR)", partial(_regression, extra=False))
EXTRA_REGRESSION = Model("linear regression, extra counters (MLR+)", partial(_regression, extra=True))
NETWORK = Model("neural network (BP-ANN 10-4-4-1)", _network)


def baselines(measurements: Measurements) -> tuple[list[Model], list[str]]:
    """(models to compare eprof's with; a sentence for each baseline that cannot run here)."""
    one_volt = of_form(Form(voltages="one", clock_tree=False), "V = 1 everywhere")
    models = [*BASELINES_WITHOUT_COUNTS, one_volt, REGRESSION]
    notes = []
    has_sklearn = find_spec("sklearn") is not None
    if not has_sklearn:
        needs = "it needs scikit-learn; pip install scikit-learn."
        notes.append(f"The neural network (BP-ANN) is not among the baselines: {needs}")
    if _terms(measurements) == _terms(measurements, extra=False):
        notes.append("MLR+ is not among the baselines: there are no counts of caches or shared memory to add.")
    else:
        models.append(EXTRA_REGRESSION)
    if has_sklearn:
        models.append(NETWORK)
    return models, notes

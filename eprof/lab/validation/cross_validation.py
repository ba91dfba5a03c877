"""Train and test over folds, so that nothing leaks: a model sees the training rows, the others without their power."""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats, Ints
from eprof.base.errors import EprofError
from eprof.base.threads import cores
from eprof.lab.fitting.form import Form
from eprof.lab.fitting.quality import CONSTANT, LINEAR, ClockPower, ConstantPower
from eprof.lab.fitting.solve import fit
from eprof.lab.measurements import Measurements
from eprof.lab.validation.protocols import Fold
from eprof.logs.workers import in_order

Progress = Callable[[int, int], None]
_WORTH_PROCESSES_S = 3.0
# Called with what is being done, and how far it is: (words, done, in all).
Report = Callable[[str, int, int], None]


class Predictor(Protocol):
    """What training gives. `predict` sees rows whose power is NaN."""

    def predict(self, measurements: Measurements) -> Floats:
        """Predict power of rows that the training did not see, in W, (n,)."""
        ...


class Model(Struct, frozen=True):
    """Anything that can be trained on measurements: our form, or a baseline to hold it against.

    train: learns from these rows alone; a function of a module, as processes are given it.
    """

    name: str
    train: Callable[[Measurements], Predictor]


def blind(measurements: Measurements) -> Measurements:
    """The same rows without their measured power (NaN): all that a predictor may know."""
    return replace(measurements, rows=measurements.rows.assign(power_w=np.nan))


def cross_validate(
    model: Model,
    measurements: Measurements,
    folds: Sequence[Fold],
    *,
    processes: int | None = None,
    progress: Progress | None = None,
    tested: Measurements | None = None,
) -> Floats:
    """Predict every row that a fold tests, in W, (n,); NaN for rows that none tests.

    Each fold trains a model of its own. Folds run in several processes where that pays: processes: how many at most
    (None: as many as there are cores, 1: none); they import the calling script, which guards itself, as any that starts
    processes, by `if __name__ == "__main__"`. progress: called with (folds done, folds in all). tested: the same rows
    as they are to be predicted, if not as they were measured: with other times.
    Raises EprofError if a fold cannot be trained, with what it left out.
    """
    predicted = np.full(len(measurements.rows), np.nan)
    predict = partial(one_fold, model, measurements, tested=tested)
    for done, (fold, watts) in enumerate(_predictions(predict, folds, processes), start=1):
        predicted[fold.test] = watts
        if progress is not None:
            progress(done, len(folds))
    return predicted


def train_and_test(model: Model, train: Measurements, test: Measurements) -> Floats:
    """Train on one set of measurements, predict another, in W, (n_test,)."""
    return np.asarray(model.train(train).predict(blind(test)), dtype=float)


def one_fold(model: Model, measurements: Measurements, fold: Fold, tested: Measurements | None = None) -> Floats:
    """Train and test in one fold: predictions of its test rows. Raises EprofError that names what the fold left out."""
    try:
        return train_and_test(model, measurements.take(fold.train), (tested or measurements).take(fold.test))
    except EprofError as err:
        raise EprofError(f"{model.name}, without {fold.label}: {err}") from err


def _predictions(
    predict: Callable[[Fold], Floats], folds: Sequence[Fold], processes: int | None
) -> Iterator[tuple[Fold, Floats]]:
    """Train and test in every fold: the first here, to see how long one takes; the others in processes if long."""
    # Of the processor: on a busy machine, more processes are no way to be done sooner.
    started_s = time.thread_time()
    for fold in folds[:1]:
        yield fold, predict(fold)
    left_s = (time.thread_time() - started_s) * (len(folds) - 1)
    workers = min(processes or cores(), len(folds) - 1)
    if workers < 2 or left_s < _WORTH_PROCESSES_S:
        yield from ((fold, predict(fold)) for fold in folds[1:])
        return
    done = 1
    with (
        suppress(EOFError, OSError),
        closing(in_order(folds[1:], partial(_single_threaded, predict), workers)) as watts,
    ):
        for fold_watts in watts:
            yield folds[done], fold_watts
            done += 1
    # A process was killed, or could not be had: the rest is done here.
    yield from ((fold, predict(fold)) for fold in folds[done:])


def _single_threaded(predict: Callable[[Fold], Floats], fold: Fold) -> Floats:
    """A fold in a process beside others: one thread for linear algebra, as each of them has a core."""
    if find_spec("threadpoolctl") is None:
        return predict(fold)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return predict(fold)


def scaled(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predictions with one measured scale factor per benchmark: measured over predicted power at the reference.

    The row that gave the factor is left out (NaN), and so are benchmarks that were not measured there.
    """
    factors = _factors(measurements, predicted, reference)
    mended = np.asarray(predicted * measurements.rows["benchmark"].map(factors).to_numpy(dtype=float))
    mended[_at(measurements, reference)] = np.nan
    return mended


def scaled_by_one(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predictions times the factor of one benchmark, measured over predicted power at the reference: (k, n).

    Each of the k benchmarks that were measured there gives the factor once; its own rows are left out (NaN).
    """
    benchmarks = measurements.rows["benchmark"].to_numpy()
    factors = _factors(measurements, predicted, reference)
    mended = [np.where(benchmarks == name, np.nan, predicted * factor) for name, factor in factors.items()]
    return np.array(mended).reshape(len(factors), len(predicted))


def _factors(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> dict[Any, float]:
    """Measured over predicted power, the scale factor, of each benchmark that was measured at the reference."""
    here = _at(measurements, reference)
    factors: dict[Any, float] = {}
    ratios = measurements.power_w[here] / predicted[here]
    for name, factor in zip(measurements.rows["benchmark"][here], ratios, strict=True):
        factors.setdefault(name, float(factor))
    return factors


def _at(measurements: Measurements, reference: tuple[float, float]) -> npt.NDArray[np.bool_]:
    rows = measurements.rows
    is_here = (rows["core_mhz"] == reference[0]) & (rows["memory_mhz"] == reference[1])
    return is_here.to_numpy(dtype=np.bool_)


# ---- what predictions are held against

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


PLAIN = (Model(CONSTANT, ConstantPower.of), Model(LINEAR, ClockPower.of))
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

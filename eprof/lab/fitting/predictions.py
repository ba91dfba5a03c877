"""Predictions of measured power: by a cost table as it is, and by models that have not seen the row.

A table is evaluated as in reports. In train and test over folds nothing leaks: a model sees the training rows, the
others without their power.
"""

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import CostError, EprofError
from eprof.base.known import gathered, mapped
from eprof.base.text import when
from eprof.base.threads import cores
from eprof.base.vocabulary import CPU
from eprof.costs import Costs, CostTable
from eprof.lab.fitting.protocols import Fold, label, setting_of
from eprof.lab.fitting.search import Form
from eprof.lab.fitting.solve import fit
from eprof.lab.measurements import Measurements
from eprof.logs.workers import in_order

CONSTANT_POWER = "constant power"
_ACTIVE = "active multiprocessors"
# 1e9 events a second at 1 pJ each are 1 mW.
_W_PER_PJ = 1e-3
_NAMED = 4


class Priced(Struct, frozen=True, eq=False):
    """Predicted watts by term and constant power, (n, n_terms + 1); NaN rows where the table has no such setting."""

    parts: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def power_w(self) -> Floats:
        """The predicted power of each row in W, (n,)."""
        return self.parts.sum(axis=1, skipna=False).to_numpy(dtype=float)


def price(table: CostTable, measurements: Measurements, setting: str | None = None) -> Priced:
    """Predict each row's power in W by a cost table's prices, as reports do: P = sum_i rate_i eps_i(s) + pi0(s).

    setting: at which all rows are priced; None: each at its own. Multiprocessors that pay and were not counted are
    taken to be active all the time. Memory at a clock that the table has for one of its boards alone is that board's.
    Raises CostError: the table does not price what was counted, or has none of the settings.
    """
    table = table.with_memory_at(measurements.rows["memory_mhz"].unique().tolist())
    at_default = table.at()
    happened = measurements.rates.columns[(measurements.rates.fillna(0) != 0).any()]
    unpriced = [str(term) for term in happened if _pj(at_default, str(term)) is None]
    if unpriced:
        raise CostError(
            f"{table.name} has no price for {', '.join(unpriced)}, which these measurements count; it prices "
            f"{', '.join(at_default.prices)}. Give a table that was fitted to measurements of this kind (`eprof fit`)."
        )
    terms = list(measurements.terms)
    counts_active = any("sm_active" in term for term in terms)
    rates = measurements.rates.to_numpy(dtype=float)
    # A CPU's rows are at clocks of its own choice, and priced at the table's.
    is_clocked = table.default.core_mhz is not None and measurements.is_clocked and measurements.processor != CPU
    watts = np.full((len(rates), len(terms) + 2), np.nan)
    refused: list[str] = []
    interpolated: list[str] = []
    for own, rows in rows_by_setting(measurements).items():
        try:
            costs = table.at(setting or (own if is_clocked else None))
        except CostError as err:
            refused.append(str(err))
            continue
        if "interpolated" in costs.setting_from:
            interpolated.append(costs.setting.label)
        pj = np.array([_pj(costs, term) or 0.0 for term in terms])
        watts[rows, : len(terms)], watts[rows, -2] = rates[rows] * pj * _W_PER_PJ, 0.0
        watts[rows, -1] = costs.constant_power_w
        active, mhz = costs.charges.get("sm_active_cycle"), costs.setting.core_mhz
        if active is not None and costs.sm_count is not None and mhz is not None and not counts_active:
            watts[rows, -2] = active.pj * costs.sm_count * mhz * 1e-6
    if np.isnan(watts).all():
        raise CostError(next(iter(refused), f"{table.name} predicts none of these rows."))
    parts = pd.DataFrame(watts, columns=[*terms, _ACTIVE, CONSTANT_POWER])
    if not parts[_ACTIVE].any():
        del parts[_ACTIVE]
    notes = []
    if refused:
        notes.append(f"{len(refused)} settings are not predicted: {refused[0]}")
    if interpolated:
        names = ", ".join(interpolated[:_NAMED]) + when(len(interpolated) > _NAMED, " ...")
        notes.append(f"{table.name} does not list {names}: voltages there are interpolated.")
    words = [*(_word(at_default, term) for term in terms), "sm_active_cycle"]
    formulas = [table.statements[word].formula for word in words if word is not None and word in table.statements]
    paid = set(terms).union(*(formula.names for formula in formulas if formula))
    uncounted = ", ".join(name for name, price in at_default.prices.items() if name not in paid and price.pj > 0)
    if uncounted:
        lower = "which these measurements do not count: predictions are lower bounds."
        notes.append(f"{table.name} prices {uncounted}, {lower}")
    if table.default.core_mhz is None and len(measurements.settings) > 1:
        notes.append(f"{table.name} holds at one setting only; it is applied to {len(measurements.settings)}.")
    return Priced(parts, tuple(notes))


def _word(costs: Costs, term: str) -> str | None:
    """The word of the vocabulary that a term of measurements pays as (`fp64` for `fp64_instruction`); None: no word.

    A price may be one of several that a word pays. Terms are of bytes by each level that they pass: without a price of
    their name, they pay as their word only in a table that keeps these books.
    """
    stem = term.rpartition("_")[0]
    words = [word for word in (stem, f"{stem}_fma", f"{stem}_read") if word in costs.charges]
    if term in costs.prices:
        return next((word for word in words if term in (costs.charges[word].formula or "")), None)
    return words[0] if words and costs.books == "accessed" else None


def _pj(costs: Costs, term: str) -> float | None:
    """The price in pJ of a term of measurements: that of its word, or else of its own name; None: neither is known."""
    word = _word(costs, term)
    if word is not None:
        return costs.charges[word].pj
    return mapped(lambda price: price.pj, costs.prices.get(term))


def rows_by_setting(measurements: Measurements) -> dict[str, list[int]]:
    """Label of a setting ("852/924") -> the places of the rows that were measured at it."""
    return gathered((label(key), place) for place, key in enumerate(setting_of(measurements.rows)))


def by_price(table: CostTable, split: pd.DataFrame) -> pd.DataFrame:
    """Deal out joules of words, (n, n_words), to the prices in their formulas; (n, n_prices + 1), last constant power.

    A formula is linear in the prices, so a price's part is the formula with all others at zero.
    """
    prices = {name: price.pj for name, price in table.at().prices.items()}
    joules = {name: np.zeros(len(split)) for name in prices}
    for word in split.columns:
        statement = table.statements.get(str(word))
        if statement is None or statement.formula is None:
            continue
        whole = float(statement.formula(prices))
        if whole <= 0:
            continue
        spent = split[word].fillna(0.0).to_numpy(dtype=float)
        for name in statement.formula.names:
            alone = {**dict.fromkeys(prices, 0.0), name: prices[name]}
            joules[name] += spent * (float(statement.formula(alone)) / whole)
    return pd.DataFrame({**joules, CONSTANT_POWER: split["constant"].fillna(0.0).to_numpy(dtype=float)})


Progress = Callable[[int, int], None]
_WORTH_PROCESSES_S = 3.0
# Called with what is being done, and how far it is: (words, done, in all).
Report = Callable[[str, int, int], None]


class Model(Struct, frozen=True):
    """Anything that can be trained on measurements: our form, or a baseline to hold it against.

    predict: (training rows, other rows, whose power is NaN) -> power of the others in W, (n,); a function of a module,
    as processes are given it.
    """

    name: str
    predict: Callable[[Measurements, Measurements], Floats]


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
    blind = replace(test, rows=test.rows.assign(power_w=np.nan))  # all that a model may know
    return np.asarray(model.predict(train, blind), dtype=float)


def one_fold(model: Model, measurements: Measurements, fold: Fold, tested: Measurements | None = None) -> Floats:
    """Train and test in one fold: predicted W of its test rows. Raises EprofError that names what the fold left out."""
    try:
        return train_and_test(model, measurements.take(fold.train), (tested or measurements).take(fold.test))
    except EprofError as err:
        raise EprofError(f"{model.name}, without {fold.label}: {err}") from err


def _predictions(
    predict: Callable[[Fold], Floats], folds: Sequence[Fold], processes: int | None
) -> Iterator[tuple[Fold, Floats]]:
    """Yields each fold with predictions of its test rows: the first here, the others in processes if they take long."""
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
    alone = partial(_single_threaded, predict)
    with suppress(EOFError, OSError), closing(in_order(folds[1:], alone, workers)) as watts:
        for fold_watts in watts:
            yield folds[done], fold_watts
            done += 1
    # A process was killed, or could not be had: the rest is done here.
    yield from ((fold, predict(fold)) for fold in folds[done:])


def _single_threaded(predict: Callable[[Fold], Floats], fold: Fold) -> Floats:
    """The predictions of a fold, in a process beside others: with one thread for linear algebra, as each has a core."""
    if find_spec("threadpoolctl") is None:
        return predict(fold)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return predict(fold)


def scaled(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predicted W times a factor of each row's own benchmark, its measured over predicted power at the reference; (n,).

    The row that gave the factor is left out (NaN), and so are benchmarks that were not measured there.
    """
    here, factors = _factors(measurements, predicted, reference)
    own = measurements.rows["benchmark"].map(factors).to_numpy(dtype=float)
    return np.where(here, np.nan, predicted * own)


def scaled_by_one(measurements: Measurements, predicted: Floats, reference: tuple[float, float]) -> Floats:
    """Predicted W times the factor of one benchmark, its measured over predicted power at the reference: (k, n).

    Each of the k benchmarks that were measured there gives the factor once; its own rows are left out (NaN).
    """
    benchmarks = measurements.rows["benchmark"].to_numpy()
    _, factors = _factors(measurements, predicted, reference)
    mended = [np.where(benchmarks == name, np.nan, predicted * factor) for name, factor in factors.items()]
    return np.array(mended).reshape(len(factors), len(predicted))


def _factors(
    measurements: Measurements, predicted: Floats, reference: tuple[float, float]
) -> tuple[npt.NDArray[np.bool_], dict[Any, float]]:
    """Whether each row is at the reference setting, (n,); and benchmark -> its measured over predicted power there."""
    rows = measurements.rows
    here = ((rows["core_mhz"] == reference[0]) & (rows["memory_mhz"] == reference[1])).to_numpy(dtype=np.bool_)
    factors: dict[Any, float] = {}
    ratios = measurements.power_w[here] / predicted[here]
    for name, factor in zip(rows["benchmark"][here], ratios, strict=True):
        factors.setdefault(name, float(factor))
    return here, factors


CONSTANT, LINEAR = "constant power", "mean power of a kernel, linear in clocks"
_CLOCKS = ["core_mhz", "memory_mhz"]
_SEED = 0
# What a level of cache or scratchpad serves: the "texture events" of [S] 5, which MLR goes without.
_EXTRA = ("l1_", "l2_", "shared_", "texture_")


def of_form(form: Form, name: str = "eprof", seed: int = _SEED) -> Model:
    """A `Model` that fits `form` as eprof does: voltages and coefficients are estimated anew from each fold's rows."""
    return Model(name, partial(_by_form, form=form, seed=seed))


def _by_form(train: Measurements, test: Measurements, *, form: Form, seed: int) -> Floats:
    return fit(train, form, seed).predict(test)


def constant_power(train: Measurements, test: Measurements) -> Floats:
    """The baseline of one power in W for all rows, the c with the least sum of ((c - P)/P)^2 over the training rows."""
    return np.full(len(test), (1 / train.power_w).sum() / (1 / train.power_w**2).sum())


def clock_power(train: Measurements, test: Measurements) -> Floats:
    """The baseline P = P_k (1 + a (f_core - f_core0) + b (f_mem - f_mem0)), W; P_k, f0: means of a kernel, a clock."""
    power = train.power_w
    means = pd.Series(power).groupby(train.rows["benchmark"].to_numpy()).mean()
    clocks, others = (rows[_CLOCKS].to_numpy(dtype=np.float64) for rows in (train.rows, test.rows))
    middle = clocks.mean(axis=0)
    own = train.rows["benchmark"].map(means).to_numpy(dtype=np.float64)
    slopes, *_ = np.linalg.lstsq(clocks - middle, power / own - 1, rcond=None)
    of_all = constant_power(train, test)
    of_kernels = test.rows["benchmark"].map(means).to_numpy(dtype=np.float64)
    return np.asarray(np.where(np.isnan(of_kernels), of_all, of_kernels) * (1 + (others - middle) @ slopes))


def _regression(train: Measurements, test: Measurements, *, extra: bool) -> Floats:
    """The baseline of least squares: power on event rates and both clocks, with an intercept, signs free ([S] 5).

    extra: also with the rates of L1, L2 and shared memory (MLR+); without, only instructions and DRAM (MLR). Weights
    are of least norm, so that columns that say the same are no error.
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
    """Inputs of the baselines: rates of `terms`, then the clocks: (n, n_terms + 2)."""
    clocks = measurements.rows[_CLOCKS].to_numpy(dtype=float)
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
        network = MLPRegressor(**sizes, alpha=1e-3, max_iter=300, random_state=_SEED + start)
        # Matrices are so small that one thread is quickest; that it could be trained longer need not be said.
        with np.errstate(all="ignore"), threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            networks.append(network.fit(scaled, (power_w - middle_w) / spread_w))
    best = min(networks, key=lambda network: network.loss_)
    return np.asarray(best.predict(others) * spread_w + middle_w)


PLAIN = (Model(CONSTANT, constant_power), Model(LINEAR, clock_power))
REGRESSION = Model("linear regression (MLR)", partial(_regression, extra=False))
EXTRA_REGRESSION = Model("linear regression, extra counters (MLR+)", partial(_regression, extra=True))
NETWORK = Model("neural network (BP-ANN 10-4-4-1)", _network)


def baselines(measurements: Measurements) -> tuple[list[Model], list[str]]:
    """The models to compare eprof's with, and a sentence for each that cannot run here."""
    models = [*PLAIN, of_form(Form(voltages="one", clock_tree=False), "V = 1 everywhere"), REGRESSION]
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

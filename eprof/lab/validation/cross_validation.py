"""Train and test over folds, so that nothing leaks: a model sees the training rows, the others without their power."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import EprofError
from eprof.base.threads import cores
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

"""Train and test over folds, so that nothing leaks: a model sees the training rows, the others without their power."""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from eprof.base.errors import EprofError
from eprof.measurements import Measurements
from eprof.validation.protocols import Fold
from eprof.validation.scores import Floats

Progress = Callable[[int, int], None]
_WORTH_PROCESSES_S = 3.0


class Predictor(Protocol):
    """What training gives. `predict` sees rows whose power is NaN."""

    def predict(self, measurements: Measurements) -> Floats:
        """Predict power in W, (n,)."""
        ...


class Model(Protocol):
    """Anything that can be trained on measurements: our form, or a baseline to hold it against."""

    @property
    def name(self) -> str:
        """What tables and reports call it."""
        ...

    def train(self, measurements: Measurements) -> Predictor:
        """Learn from these rows alone."""
        ...


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
    asked: Measurements | None = None,
) -> Floats:
    """Predict every row that a fold tests, in W, (n,); NaN for rows that none tests.

    Each fold trains a model of its own. Folds run in several processes where that pays: processes: how many at most
    (None: as many as there are cores, 1: none). progress: called with (folds done, folds in all). asked: the same rows
    as they are to be predicted, if not as they were measured: with other times.
    Raises EprofError if a fold cannot be trained, with what it left out.
    """
    predicted = np.full(len(measurements.rows), np.nan)
    for done, (fold, watts) in enumerate(
        _runs(_Task(model, measurements, asked or measurements), folds, processes), start=1
    ):
        predicted[fold.test] = watts
        if progress is not None:
            progress(done, len(folds))
    return predicted


def train_and_test(model: Model, train: Measurements, test: Measurements) -> Floats:
    """Train on one set of measurements, predict another, in W, (n_test,)."""
    return np.asarray(model.train(train).predict(blind(test)), dtype=float)


def one_fold(model: Model, measurements: Measurements, fold: Fold, asked: Measurements | None = None) -> Floats:
    """Predictions of the fold's test rows. Raises EprofError that names what the fold left out."""
    try:
        return train_and_test(model, measurements.take(fold.train), (asked or measurements).take(fold.test))
    except EprofError as err:
        raise EprofError(f"{model.name}, without {fold.label}: {err}") from err


@dataclass(frozen=True, eq=False)
class _Task:
    """What all folds share."""

    model: Model
    measurements: Measurements
    asked: Measurements

    def fold(self, fold: Fold) -> Floats:
        return one_fold(self.model, self.measurements, fold, self.asked)


def _runs(task: _Task, folds: Sequence[Fold], processes: int | None) -> Iterator[tuple[Fold, Floats]]:
    """The first fold here, to see how long one takes; the others here too, or in processes if they take long."""
    if not folds:
        return
    started = time.monotonic()
    yield folds[0], task.fold(folds[0])
    left_s = (time.monotonic() - started) * (len(folds) - 1)
    workers = min(processes or os.cpu_count() or 1, len(folds) - 1)
    if workers < 2 or left_s < _WORTH_PROCESSES_S or "fork" not in multiprocessing.get_all_start_methods():
        for fold in folds[1:]:
            yield fold, task.fold(fold)
        return
    yield from _in_processes(task, folds[1:], workers)


def _in_processes(task: _Task, folds: Sequence[Fold], workers: int) -> Iterator[tuple[Fold, Floats]]:
    """The folds in `workers` processes, in the order in which they come to an end."""
    # Forked, not spawned: a script or notebook that calls us need not be written for processes of its own.
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), initializer=_remember, initargs=(task,))
    with pool:
        pending = {pool.submit(_remembered_fold, fold): fold for fold in folds}
        try:
            while pending:
                finished, _ = wait(pending, return_when=FIRST_COMPLETED)
                for one in finished:
                    yield pending.pop(one), one.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_HELD: list[Any] = []


def _remember(task: _Task) -> None:
    """Keep what all folds of this process need, so that it crosses over once; one thread for linear algebra."""
    _HELD[:] = [task]
    if find_spec("threadpoolctl") is not None:
        from threadpoolctl import threadpool_limits

        _HELD.append(threadpool_limits(1))


def _remembered_fold(fold: Fold) -> Floats:
    found: Floats = _HELD[0].fold(fold)
    return found


def scaled(measurements: Measurements, predicted: Floats, at: tuple[float, float]) -> Floats:
    """Predictions with one measured scale factor per benchmark: measured over predicted power at the setting `at`.

    The row that gave the factor is left out (NaN), and so are benchmarks that were not measured there.
    """
    rows = measurements.rows
    here = ((rows["core_mhz"] == at[0]) & (rows["memory_mhz"] == at[1])).to_numpy()
    factors = rows["power_w"].to_numpy(dtype=float)[here] / predicted[here]
    by_name: dict[Any, float] = {}
    for name, factor in zip(rows["benchmark"].to_numpy()[here], factors, strict=True):
        by_name.setdefault(name, float(factor))
    found = np.asarray(predicted * np.array([by_name.get(name, np.nan) for name in rows["benchmark"]]))
    found[here] = np.nan
    return found

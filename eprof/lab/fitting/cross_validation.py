"""Cross-validation of fits: protocols (which rows are left out in turn: folds), and power of rows that were left out.

A benchmark is one kernel with one input, a setting a pair of clocks. No protocol looks at the measured power. Nothing
leaks: a model sees the training rows, the others without their power.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from importlib.util import find_spec

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints
from eprof.base.errors import EprofError
from eprof.base.resources import cores
from eprof.lab.fitting.solve import Form, fit
from eprof.lab.measurements import Measurements
from eprof.lab.measurements.settings import SettingKey, distinct_settings, setting_label, setting_of_each
from eprof.logs.many import in_order


def errors_percent(measured: Floats, predicted: Floats) -> Floats:
    """Errors 100 (predicted - measured) / measured, signed, (n,); NaN where either is not known."""
    safe = np.where(measured > 0, measured, math.nan)
    return np.asarray(100.0 * (predicted - measured) / safe)


def mean_error_percent(measured: Floats, predicted: Floats) -> float | None:
    """The mean size of `errors_percent`, in per cent; None where none is known."""
    sizes = np.abs(errors_percent(measured, predicted))
    known = sizes[np.isfinite(sizes)]
    return float(known.mean()) if len(known) else None


FIT = "fit"
HOLDOUT = "holdout"
LEAVE_ONE_SETTING_OUT = "leave_one_setting_out"
LEAVE_ONE_BENCHMARK_OUT = "leave_one_benchmark_out"
K_FOLD = "k_fold"
K_FOLD_BENCHMARKS = "k_fold_benchmarks"
TRANSFER = "transfer"
TABLE = "table"

# Those first that say most about a new kernel.
MEANINGS = {
    TRANSFER: "trained on other measurements, tested on these",
    TABLE: "the table as it is, on rows that it does not name among its own",
    LEAVE_ONE_BENCHMARK_OUT: "each kernel predicted from all others: a new kernel at known clocks",
    K_FOLD_BENCHMARKS: "kernels dealt at random into k parts, each predicted from the others",
    HOLDOUT: "trained on some settings, tested on the others (the seeds' T and V)",
    LEAVE_ONE_SETTING_OUT: "each setting predicted from all others: a known kernel at new clocks",
    K_FOLD: "rows dealt at random into k parts, each predicted from the others: known kernels at known clocks",
    FIT: "trained and tested on the same rows: how well the form can follow the data, not how well it predicts",
}

# Whose rows a model has not seen.
LEFT_OUT = {
    TABLE: "of the other measured kernels",
    HOLDOUT: "at settings that were held out",
    LEAVE_ONE_SETTING_OUT: "at settings that were left out",
    LEAVE_ONE_BENCHMARK_OUT: "for kernels that were left out",
    K_FOLD: "for rows that were left out",
    K_FOLD_BENCHMARKS: "for kernels that were left out",
}


class Fold(Struct, frozen=True, eq=False):
    """A fold of a protocol: places of the rows to train on and of those to predict; `label` says what was left out."""

    label: str
    train: Ints
    test: Ints

    @classmethod
    def without(cls, label: str, out: Bools) -> "Fold":
        """The fold that predicts the rows `out`, (n,), and trains on all others."""
        return cls(label, np.flatnonzero(~out), np.flatnonzero(out))


def holdout(rows: pd.DataFrame, tested: Sequence[SettingKey] = ()) -> list[Fold]:
    """One fold that tests on the settings `tested`, or else on every other one, and trains on the rest.

    Every other one, as on a chess board of clocks, keeps each core and memory clock in training if there are several.
    Raises EprofError: a setting that was not measured, or none left to train on or to test.
    """
    known = distinct_settings(rows)
    absent = [setting for setting in tested if setting not in known]
    if absent:
        there = ", ".join(map(setting_label, known))
        raise EprofError(f"--holdout {setting_label(absent[0])}: no row was measured there; there are {there}.")
    cores, memories = (sorted({setting[place] for setting in known}) for place in (0, 1))
    chess_board = {setting for setting in known if (cores.index(setting[0]) + memories.index(setting[1])) % 2}
    chosen = set(tested) or chess_board
    out = np.array([setting in chosen for setting in setting_of_each(rows)], dtype=bool)
    if out.all() or not out.any():
        raise EprofError("Hold-out needs settings to train on and others to test on; all rows are on one side.")
    names = ", ".join(setting_label(setting) for setting in known if setting in chosen)
    return [Fold.without(names, out)]


def folds(name: str, rows: pd.DataFrame, *, holdout_settings: Sequence[SettingKey] = (), k: int = 10) -> list[Fold]:
    """The folds of the protocol `name`. Raises EprofError where the rows cannot be split that way."""
    everything, benchmarks = np.arange(len(rows)), rows["benchmark"].to_numpy()
    if name == FIT:
        return [Fold("nothing left out", everything, everything)]
    if name == HOLDOUT:
        return holdout(rows, holdout_settings)
    if name == LEAVE_ONE_SETTING_OUT:
        keys, known = np.array(setting_of_each(rows)), distinct_settings(rows)
        if len(known) < 2:
            raise EprofError(
                f"Leaving one setting out needs two settings or more; all rows are at {setting_label(known[0])} MHz. "
                "Use --protocol leave-one-benchmark-out."
            )
        return [Fold.without(setting_label(setting), (keys == setting).all(axis=1)) for setting in known]
    codes, names = pd.factorize(benchmarks)
    if name == LEAVE_ONE_BENCHMARK_OUT:
        if len(names) < 2:
            raise EprofError(f"Leaving one benchmark out needs two or more; all rows are of {names[0]}.")
        return [Fold.without(str(name), codes == code) for code, name in enumerate(names)]
    # Rows, or all rows of a benchmark, are dealt to k parts at random.
    groups, groups_are = {K_FOLD: (everything, "rows"), K_FOLD_BENCHMARKS: (codes, "benchmarks")}[name]
    several = int(groups.max(initial=-1)) + 1
    if not 2 <= k <= several:
        raise EprofError(f"--folds {k}: needs 2 to {several}, as there are {several} {groups_are}.")
    part = np.random.default_rng(SEED).permutation(np.arange(several) % k)
    return [Fold.without(f"part {number + 1} of {k}", part[groups] == number) for number in range(k)]


def defaults(measurements: Measurements) -> tuple[list[str], list[str]]:
    """The protocols for a fit where none is given, those that these rows allow, and sentences on those they do not.

    FIT shows how well the form can follow the rows; the others, how well it predicts.
    """
    names = [FIT]
    notes = []
    if len(measurements.settings) > 1:
        names.append(LEAVE_ONE_SETTING_OUT)
    else:
        notes.append("One setting only: nothing is known of other clocks, and no setting can be left out.")
    if measurements.own:
        notes.append("No counts: each kernel has unknowns of its own, and none can be predicted from the others.")
    elif measurements.rows["benchmark"].nunique() > 1:
        names.append(LEAVE_ONE_BENCHMARK_OUT)
    else:
        notes.append("One kernel only: nothing is known of other kernels.")
    return names, notes


_WORTH_PROCESSES_S = 3.0
SEED = 0  # of what is random
# Called with how far it is, (done, in all); a report also with what is being done, before these.
Progress = Callable[[int, int], None]
Report = Callable[[str, int, int], None]


class Model(Struct, frozen=True):
    """A model of power that can be trained on measurements: eprof's form, or a baseline to compare it with.

    predict: (training rows, rows to predict, whose power is NaN) -> their power in W, (n,); a function of a module,
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
    """Train a model on the measurements `train` and predict the power of those of `test` in W, (n_test,)."""
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


CONSTANT_BASELINE, LINEAR_BASELINE = "constant power", "mean power of a kernel, linear in clocks"
CLOCKS = ["core_mhz", "memory_mhz"]


def of_form(form: Form, name: str = "eprof") -> Model:
    """A `Model` that fits `form` as eprof does: voltages and coefficients are estimated anew from each fold's rows."""
    return Model(name, partial(_by_form, form=form))


def _by_form(train: Measurements, test: Measurements, *, form: Form) -> Floats:
    return fit(train, form).predict(test)


def constant_power(train: Measurements, test: Measurements) -> Floats:
    """The baseline of one power in W for all rows, the c with the least sum of ((c - P)/P)^2 over the training rows."""
    return np.full(len(test), (1 / train.power_w).sum() / (1 / train.power_w**2).sum())


def clock_power(train: Measurements, test: Measurements) -> Floats:
    """The baseline P = P_k (1 + a (f_core - f_core0) + b (f_mem - f_mem0)), W; P_k, f0: means of a kernel, a clock."""
    power = train.power_w
    means = pd.Series(power).groupby(train.rows["benchmark"].to_numpy()).mean()
    clocks, others = (rows[CLOCKS].to_numpy(dtype=np.float64) for rows in (train.rows, test.rows))
    middle = clocks.mean(axis=0)
    own = train.rows["benchmark"].map(means).to_numpy(dtype=np.float64)
    slopes, *_ = np.linalg.lstsq(clocks - middle, power / own - 1, rcond=None)
    of_all = constant_power(train, test)
    of_kernels = test.rows["benchmark"].map(means).to_numpy(dtype=np.float64)
    return np.asarray(np.where(np.isnan(of_kernels), of_all, of_kernels) * (1 + (others - middle) @ slopes))


BASELINES_WITHOUT_COUNTS = (Model(CONSTANT_BASELINE, constant_power), Model(LINEAR_BASELINE, clock_power))

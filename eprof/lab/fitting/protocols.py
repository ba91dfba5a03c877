"""Which rows a model is made from and which it is tested on: every protocol is a list of folds.

A benchmark is one kernel with one input, a setting a pair of clocks. No protocol looks at the measured power.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from msgspec import Struct
from numpy.typing import NDArray

from eprof.base.arrays import Floats
from eprof.base.errors import EprofError
from eprof.base.units import clock_label, clock_pair, no_clock_pair
from eprof.lab.measurements import Measurements


def errors_percent(measured: Floats, predicted: Floats) -> Floats:
    """Errors 100 (predicted - measured) / measured, signed, (n,); NaN where either is not known."""
    safe = np.where(measured > 0, measured, math.nan)
    return np.asarray(100.0 * (predicted - measured) / safe)


def mean_error_percent(measured: Floats, predicted: Floats) -> float | None:
    """The mean size of `errors_percent`; None where none is known."""
    sizes = np.abs(errors_percent(measured, predicted))
    known = sizes[np.isfinite(sizes)]
    return float(known.mean()) if len(known) else None


Places = NDArray[np.int64]
SettingKey = tuple[float, float]

FIT = "fit"
HOLDOUT = "holdout"
LEAVE_ONE_SETTING_OUT = "leave_one_setting_out"
LEAVE_ONE_BENCHMARK_OUT = "leave_one_benchmark_out"
K_FOLD = "k_fold"
K_FOLD_BENCHMARKS = "k_fold_benchmarks"
TRANSFER = "transfer"
TABLE = "table"

MEANINGS = {
    TABLE: "the table as it is, on rows that it does not name among its own",
    FIT: "trained and tested on the same rows: how well the form can follow the data, not how well it predicts",
    HOLDOUT: "trained on some settings, tested on the others (the seeds' T and V)",
    LEAVE_ONE_SETTING_OUT: "each setting predicted from all others: a known kernel at new clocks",
    LEAVE_ONE_BENCHMARK_OUT: "each kernel predicted from all others: a new kernel at known clocks",
    K_FOLD: "rows dealt at random into k parts, each predicted from the others: known kernels at known clocks",
    K_FOLD_BENCHMARKS: "kernels dealt at random into k parts, each predicted from the others",
    TRANSFER: "trained on other measurements, tested on these",
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
    """Places of the rows to train on and of the rows to predict; `label` says what was left out."""

    label: str
    train: Places
    test: Places


def settings(rows: pd.DataFrame) -> list[SettingKey]:
    """The different settings of the rows, (core MHz, memory MHz), sorted by memory and then core clock."""
    pairs = rows[["memory_mhz", "core_mhz"]].drop_duplicates().sort_values(["memory_mhz", "core_mhz"])
    return [(float(core), float(memory)) for memory, core in pairs.itertuples(index=False)]


def holdout(rows: pd.DataFrame, tested: Sequence[SettingKey] = ()) -> list[Fold]:
    """One fold that tests on the settings `tested`, or else on every other one, and trains on the rest.

    The chess board keeps every core and every memory clock in the training rows where there are several of both.
    Raises EprofError: a setting that was not measured, or nothing left on one side.
    """
    known = settings(rows)
    absent = [setting for setting in tested if setting not in known]
    if absent:
        there = ", ".join(map(label, known))
        raise EprofError(f"--holdout {label(absent[0])}: no row was measured there; there are {there}.")
    cores, memories = (sorted({setting[place] for setting in known}) for place in (0, 1))
    chess_board = {setting for setting in known if (cores.index(setting[0]) + memories.index(setting[1])) % 2}
    chosen = set(tested) or chess_board
    out = np.array([setting in chosen for setting in setting_of(rows)], dtype=bool)
    if out.all() or not out.any():
        raise EprofError("Hold-out needs settings to train on and others to test on; all rows are on one side.")
    names = ", ".join(label(setting) for setting in known if setting in chosen)
    return [Fold(names, np.flatnonzero(~out), np.flatnonzero(out))]


def _without(name: str, out: NDArray[np.bool_]) -> Fold:
    return Fold(name, np.flatnonzero(~out), np.flatnonzero(out))


def setting_of(rows: pd.DataFrame) -> list[SettingKey]:
    """The setting of each row, (core MHz, memory MHz)."""
    return [(float(core), float(memory)) for core, memory in zip(rows["core_mhz"], rows["memory_mhz"], strict=True)]


def label(setting: SettingKey) -> str:
    """A setting as users write it: "852/924"."""
    return clock_label(*setting)


def parse(text: str) -> SettingKey:
    """A setting from what users write, the inverse of `label`. Raises EprofError."""
    pair = clock_pair(text)
    if pair is None or not all(pair):
        raise EprofError(no_clock_pair(text))
    return pair


def folds(
    name: str, rows: pd.DataFrame, *, holdout_settings: Sequence[SettingKey] = (), k: int = 10, seed: int = 0
) -> list[Fold]:
    """The folds of the protocol `name`. Raises EprofError where the rows cannot be split that way."""
    everything, benchmarks = np.arange(len(rows)), rows["benchmark"].to_numpy()
    if name == FIT:
        return [Fold("nothing left out", everything, everything)]
    if name == HOLDOUT:
        return holdout(rows, holdout_settings)
    if name == LEAVE_ONE_SETTING_OUT:
        keys, known = setting_of(rows), settings(rows)
        if len(known) < 2:
            raise EprofError(
                f"Leaving one setting out needs two settings or more; all rows are at {label(known[0])} MHz. "
                "Use --protocol leave-one-benchmark-out."
            )
        return [_without(label(setting), np.array([key == setting for key in keys])) for setting in known]
    if name == LEAVE_ONE_BENCHMARK_OUT:
        names = list(dict.fromkeys(benchmarks))
        if len(names) < 2:
            raise EprofError(f"Leaving one benchmark out needs two or more; all rows are of {names[0]}.")
        return [_without(str(name), benchmarks == name) for name in names]
    # Rows, or all rows of a benchmark, are dealt to k parts at random.
    groups, groups_are = everything, "rows"
    if name == K_FOLD_BENCHMARKS:
        groups, groups_are = pd.factorize(benchmarks)[0], "benchmarks"
    elif name != K_FOLD:
        raise ValueError(f"{name!r} is no protocol that splits rows")
    several = int(groups.max(initial=-1)) + 1
    if not 2 <= k <= several:
        raise EprofError(f"--folds {k}: needs 2 to {several}, as there are {several} {groups_are}.")
    part = np.random.default_rng(seed).permutation(np.arange(several) % k)
    return [_without(f"part {number + 1} of {k}", part[groups] == number) for number in range(k)]


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

"""Times of kernels whose log has none: recovered from pairs of counters, or said by the user."""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof import advice
from eprof.counters import Definition, TimePair
from eprof.counts import Sheet
from eprof.errors import UsageError
from eprof.logs.table import Launches
from eprof.marks import Mark

Floats = npt.NDArray[np.float64]
SECTOR_BYTES = 32
_GOOD, _FEW = 1000, 16  # sectors a launch: from here rounding is below 0.1 %, and from here below 5 %
_FAST = 1e8  # B/s: nvprof rounds rates down to whole 10**6 B/s, from here on by less than 1 %
_SPREAD = 0.05
TOGETHER = "(all kernels together, by --time)"


def recover(launches: Launches, definition: Definition) -> tuple[Launches, str | None, tuple[str, ...]]:
    """Give kernels without a time the one that their counters imply: bytes moved over the rate at which they moved.

    T = bytes / rate. Bytes are totals over a kernel's launches and rates their averages, so T is the total too. Of
    several pairs the weighted median is taken; pairs of few bytes or low rates are left out where better ones exist.
    Marked ESTIMATED.
    Returns the launches, a phrase that says where the times come from (None if none was recovered), and warnings.
    """
    need = launches.kernels["time_s"].isna().to_numpy()
    if not need.any() or not definition.time_pairs:
        return launches, None, ()
    times, weights = _pairs(Sheet(launches, definition), definition.time_pairs)
    times[:, ~need] = np.nan
    found, number, spread = _medians(times, weights)
    got = ~np.isnan(found)
    if not got.any():
        return launches, None, ()
    kernels = launches.kernels.copy()
    kernels.loc[got, "time_s"] = found[got]
    marks = kernels["time_marks"][got].astype("int64") & ~int(Mark.MISSING)
    kernels.loc[got, "time_marks"] = marks | int(Mark.ESTIMATED)
    timed = replace(launches, kernels=kernels)
    warnings = _warnings(launches, found, spread, advice.commands(advice.TIMES, definition.capabilities))
    return timed, _phrase(number[got], spread[got], need.size), warnings


def _pairs(sheet: Sheet, pairs: Sequence[TimePair]) -> tuple[Floats, Floats]:
    """Times in s and their weights, each (n_pairs, n_kernels); NaN and 0 where a pair says nothing.

    A pair's weight grows with its sectors a launch up to `_GOOD`, and with its rate up to `_FAST`: below, they are
    rounded too much.
    """
    times = np.full((len(pairs), sheet.length), np.nan)
    weights = np.zeros_like(times)
    launches = sheet.launches.kernels["launches"].to_numpy(dtype=np.float64)
    for row, pair in enumerate(pairs):
        moved, rate = sheet.evaluate(pair.bytes), sheet.evaluate(pair.rate)
        if moved is None or rate is None:
            continue
        with np.errstate(all="ignore"):
            time, sectors = moved.values / rate.values, moved.values / launches / SECTOR_BYTES
        usable = np.isfinite(time) & (rate.values > 0) & (sectors >= _FEW)
        times[row] = np.where(usable, time, np.nan)
        good = np.minimum(np.minimum(sectors / _GOOD, rate.values / _FAST), 1.0)
        weights[row] = np.where(usable, good, 0.0)
    weak = (weights == 1.0).any(axis=0) & (weights < 1.0)
    return np.where(weak, np.nan, times), np.where(weak, 0.0, weights)


def _medians(times: Floats, weights: Floats) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """Weighted median, number of pairs and spread (largest less smallest over the median), each (n_kernels,)."""
    number = (~np.isnan(times)).sum(axis=0)
    order = np.argsort(times, axis=0)  # NaN last
    ranked, weight = np.take_along_axis(times, order, axis=0), np.take_along_axis(weights, order, axis=0)
    below = np.cumsum(weight, axis=0)
    middle = (below >= below[-1] / 2).argmax(axis=0)
    median = np.where(number > 0, np.take_along_axis(ranked, middle[None], axis=0)[0], np.nan)
    last = np.take_along_axis(ranked, np.maximum(number - 1, 0)[None], axis=0)[0]
    with np.errstate(invalid="ignore"):
        return median, number, (last - ranked[0]) / median


def _phrase(number: npt.NDArray[np.int64], spread: Floats, kernels: int) -> str:
    low, high = int(number.min()), int(number.max())
    pairs = f"{high}" if low == high else f"{low} to {high}"
    whose = f" for {number.size} of {kernels} kernels" if number.size < kernels else ""
    agree = f", which agree within {max(spread.max(), 1e-4):.2%}" if high > 1 else ""
    return f"recovered from {pairs} pair{'s' if high > 1 else ''} of counters (bytes over rate){whose}{agree}"


def _warnings(launches: Launches, found: Floats, spread: Floats, better: str) -> tuple[str, ...]:
    apart = np.where(np.isnan(found), 0.0, spread)
    if not (apart > _SPREAD).any():
        return ()
    worst = int(np.argmax(apart))
    kernel = str(launches.kernels["kernel"].iloc[worst]).partition("(")[0]
    number = int((apart > _SPREAD).sum())
    which = f"for {number} kernels, most " if number > 1 else ""
    return (
        f"The times that pairs of counters imply lie more than {_SPREAD:.0%} apart {which}in `{kernel}` "
        f"({apart[worst]:.0%}); the median is used. A trace ({better}) or --time is better.",
    )


# ------------------------------------------------------------------------------------------------- said by the user


def given(launches: Launches, specs: Sequence[str]) -> Launches:
    """Put in the times that a user gave with `--time KERNEL=SECONDS` (a name or "regex:...").

    Seconds are the total over a kernel's launches, without counter collection; they replace what the log says and are
    exact. Totals ("SECONDS" alone) are for `total` and `share`. Raises UsageError: no number, no such kernel.
    """
    kernels = launches.kernels.copy()
    for spec in specs:
        name, equals, number = spec.rpartition("=")
        if equals:
            chosen = _chosen(kernels["kernel"], name, spec)
            kernels = _spread(kernels, chosen, _seconds(number, spec))
    return replace(launches, kernels=kernels)


def total(specs: Sequence[str]) -> float | None:
    """The total time of all kernels that `--time SECONDS` gives, if one does. Raises UsageError: no number, or two."""
    found = [_seconds(spec, spec) for spec in specs if "=" not in spec]
    if len(found) > 1:
        raise UsageError(f"--time gives two total times, {found[0]:g} s and {found[1]:g} s; give one.")
    return found[0] if found else None


def share(launches: Launches, total_s: float) -> Launches:
    """Make the kernels' times add up to `total_s`, after `recover`.

    Exact for a single kernel. Where every kernel has a time, these are scaled: ESTIMATED. Otherwise no split would be
    honest: what is left of the total becomes a row of its own, TOGETHER, so that at least the sum is right. Raises
    UsageError if nothing is left.
    """
    kernels = launches.kernels.copy()
    known = kernels["time_s"]
    if len(kernels) == 1:
        kernels["time_s"], kernels["time_marks"] = total_s, 0
    elif known.notna().all() and known.sum() > 0:
        kernels["time_s"] = known * (total_s / known.sum())
        kernels["time_marks"] = (kernels["time_marks"].astype("int64") & ~int(Mark.MISSING)) | int(Mark.ESTIMATED)
    else:
        return _together(launches, total_s - known.sum())
    return replace(launches, kernels=kernels)


def _together(launches: Launches, seconds: float) -> Launches:
    """`launches` with a row for the time that all kernels without one took together; its counts are 0."""
    if not seconds > 0:
        raise UsageError(
            f"--time: the kernels whose times are known take {-seconds:.3g} s longer than the total given. "
            "Give --time KERNEL=SECONDS for the others, or a trace."
        )
    row = {"device": launches.kernels["device"].iloc[0], "kernel": TOGETHER, "launches": 0, "time_s": seconds}
    label = launches.kernels.index.max() + 1
    kernels = pd.concat([launches.kernels, pd.DataFrame([{**row, "time_marks": 0}], index=[label])])
    zeros = pd.DataFrame(0.0, index=[label], columns=launches.counters.columns)
    counters = pd.concat([launches.counters, zeros])
    marks = pd.concat([launches.marks, zeros.astype(launches.marks.dtypes)])
    return replace(launches, kernels=kernels, counters=counters, marks=marks)


def _seconds(text: str, spec: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--time {spec}: `{text}` is no number of seconds; write SECONDS or KERNEL=SECONDS.")
    return seconds


def _chosen(names: "pd.Series[str]", name: str, spec: str) -> "pd.Series[bool]":
    """Which kernels a `--time` value is about: full name, name before the arguments, or regular expression."""
    if name.startswith("regex:"):
        try:
            pattern = re.compile(name.removeprefix("regex:"))
        except re.error as err:
            raise UsageError(f"--time {spec}: not a regular expression ({err}).") from err
        chosen = names.map(lambda one: pattern.search(str(one)) is not None)
    else:
        chosen = names == name
        if not chosen.any():
            chosen = names.str.partition("(")[0].str.strip() == name
    if not chosen.any():
        known = ", ".join(dict.fromkeys(str(one).partition("(")[0] for one in names.head(5)))
        raise UsageError(
            f"--time {spec}: no kernel is called `{name}`; the log has {known}{' ...' if len(names) > 5 else ''}."
        )
    return chosen.astype(bool)


def _spread(kernels: pd.DataFrame, chosen: "pd.Series[bool]", seconds: float) -> pd.DataFrame:
    """Where several rows match, they share the time by their known times, else by their launches: ESTIMATED."""
    kernels = kernels.copy()
    shares = kernels.loc[chosen, "time_s"]
    if shares.isna().any() or not shares.sum() > 0:
        shares = kernels.loc[chosen, "launches"].astype(float)
    kernels.loc[chosen, "time_s"] = seconds * shares / shares.sum()
    kernels.loc[chosen, "time_marks"] = 0 if chosen.sum() == 1 else int(Mark.ESTIMATED)
    return kernels

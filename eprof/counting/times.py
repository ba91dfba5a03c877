"""Times of kernels whose log has none: recovered from pairs of counters, or said by the user."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.base import advice
from eprof.base.errors import UsageError
from eprof.base.kernels import selector, short
from eprof.base.marks import Mark
from eprof.base.text import few
from eprof.counting.counts import Sheet
from eprof.counting.definition import Definition, TimePair
from eprof.rows.log import Launches

Floats = npt.NDArray[np.float64]
SECTOR_BYTES = 32
_GOOD, _FEW = 1000, 16  # sectors a launch: from here rounding is below 0.1 %, and from here below 5 %
_FAST = 1e8  # B/s: nvprof rounds rates down to whole 10**6 B/s, from here on by less than 1 %
_SPREAD = 0.05
_SAME = 1e-9  # relative: sums of times that are this close are the same


def recover(launches: Launches, definition: Definition) -> tuple[Launches, str | None, tuple[str, ...]]:
    """Give kernels without a time the one that their counters imply: bytes moved over the rate at which they moved.

    T = bytes / rate. Bytes are totals over a kernel's launches and rates their averages, so T is the total too. Of
    several pairs the weighted median is taken; pairs of few bytes or low rates, and pairs that lack launches, are left
    out where better ones exist. Marked ESTIMATED; where all pairs lack launches, also MISSING: a lower bound.
    Returns the launches, a phrase that says where the times come from (None if none was recovered), and warnings.
    """
    need = launches.kernels["time_s"].isna().to_numpy()
    if not need.any() or not definition.time_pairs:
        return launches, None, ()
    times, weights, low = _pairs(Sheet(launches, definition), definition.time_pairs)
    times[:, ~need] = np.nan
    found, number, spread = _medians(times, weights)
    got = ~np.isnan(found)
    if not got.any():
        return launches, None, ()
    kernels = launches.kernels.copy()
    kernels.loc[got, "time_s"] = found[got]
    marks = kernels["time_marks"][got].astype("int64") & ~int(Mark.MISSING)
    kernels.loc[got, "time_marks"] = marks | int(Mark.ESTIMATED) | np.where(low[got], int(Mark.MISSING), 0)
    timed = replace(launches, kernels=kernels)
    warnings = _warnings(launches, found, spread, advice.commands(advice.TIMES, definition.capabilities))
    return timed, _phrase(number[got], spread[got], need.size), warnings


def _pairs(sheet: Sheet, pairs: Sequence[TimePair]) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Times in s and their weights, each (n_pairs, n_kernels); NaN and 0 where a pair says nothing.

    And the kernels (n_kernels,) of which all pairs are lower bounds.

    A pair's weight grows with its sectors a launch up to `_GOOD`, and with its rate up to `_FAST`: below, they are
    rounded too much.
    """
    times = np.full((len(pairs), sheet.length), np.nan)
    weights = np.zeros_like(times)
    low = np.zeros(times.shape, dtype=np.bool_)
    launches = sheet.launches.kernels["launches"].to_numpy(dtype=np.float64)
    for row, pair in enumerate(pairs):
        moved, rate = sheet.evaluate(pair.bytes), sheet.evaluate(pair.rate)
        if moved is None or rate is None:
            continue
        with np.errstate(all="ignore"):
            time, sectors = moved.values / rate.values, moved.values / launches / SECTOR_BYTES
        usable = np.isfinite(time) & (rate.values > 0) & (sectors >= _FEW) & ~moved.high & ~rate.high & ~rate.low
        times[row] = np.where(usable, time, np.nan)
        good = np.minimum(np.minimum(sectors / _GOOD, rate.values / _FAST), 1.0)
        weights[row] = np.where(usable, good, 0.0)
        low[row] = moved.low & usable
    has_whole = ((weights > 0) & ~low).any(axis=0)
    weights[low & has_whole] = 0.0
    weak = ((weights == 1.0).any(axis=0) & (weights < 1.0)) | (low & has_whole)
    lacks = np.asarray(low.any(axis=0) & ~has_whole, dtype=np.bool_)
    return np.where(weak, np.nan, times), np.where(weak, 0.0, weights), lacks


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
    exact. Totals ("SECONDS" alone) are for `total` and `share`. Raises UsageError: no number, no such kernel, or two
    times for one kernel.
    """
    kernels = launches.kernels.copy()
    for chosen, seconds in _told(kernels["kernel"], specs):
        kernels = _spread(kernels, chosen, seconds)
    return replace(launches, kernels=kernels)


def total(specs: Sequence[str]) -> float | None:
    """The total time of all kernels that `--time SECONDS` gives, if one does. Raises UsageError: no number, or two."""
    totals = [_seconds(spec, spec) for spec in specs if "=" not in spec]
    if len(set(totals)) > 1:
        raise UsageError(f"--time gives two total times, {totals[0]:g} s and {totals[1]:g} s; give one.")
    return totals[0] if totals else None


def share(
    launches: Launches, total_s: float, specs: Sequence[str] = (), recovered: str | None = None
) -> tuple[Launches, str | None]:
    """Make the kernels' times add up to `total_s`, after `given` with these specs and `recover`.

    Times that the specs give stay. A single other kernel took the rest: exact. Several share the rest in proportion to
    their times, where each of them has one: ESTIMATED. Else nothing tells how to share it: the times stay as they are,
    and the total is that of all kernels together only.
    recovered: where those times come from, if not from the log. Returns the launches and how the total was shared, in
    words; None if it was not. Raises UsageError: the total contradicts times that are given or known.
    """
    kernels = launches.kernels
    told = pd.Series(False, index=kernels.index)
    for chosen, _ in _told(kernels["kernel"], specs):
        told |= chosen
    left_s, others = total_s - float(kernels.loc[told, "time_s"].sum()), ~told
    _no_contradiction(total_s, left_s, bool(others.any()))
    if not others.any():
        return launches, "given by --time"
    times_s = kernels.loc[others, "time_s"]
    is_one_kernel = len(kernels.loc[others, ["device", "kernel"]].drop_duplicates()) == 1
    if is_one_kernel and len(times_s) > 1:
        # Ranks, streams or ranges of a kernel whose time is known.
        return replace(launches, kernels=_spread(kernels, others, left_s)), "given by --time"
    if len(times_s) > 1 and (times_s.isna().any() or not times_s.sum() > 0):
        if times_s.sum() >= left_s:
            raise UsageError(
                f"--time: the kernels whose times are known take {times_s.sum() - left_s:.3g} s longer than the total "
                "given. Give --time KERNEL=SECONDS for the others, or a trace."
            )
        return launches, None
    shared = replace(launches, kernels=scaled_to(kernels, others, left_s))
    if len(times_s) < 2:
        return shared, "given by --time"
    return shared, f"given by --time, shared out as the times {recovered or 'in the logs'}"


def scaled_to(kernels: pd.DataFrame, chosen: "pd.Series[bool]", seconds: float) -> pd.DataFrame:
    """The times of the chosen kernels made to add up to `seconds`, in proportion: ESTIMATED, but for a single one."""
    if chosen.sum() == 1:
        return kernels.assign(
            time_s=kernels["time_s"].mask(chosen, seconds), time_marks=kernels["time_marks"].mask(chosen, 0)
        )
    factor = seconds / kernels.loc[chosen, "time_s"].sum()
    marks = (kernels["time_marks"].astype("int64") & ~int(Mark.MISSING)) | int(Mark.ESTIMATED)
    return kernels.assign(
        time_s=kernels["time_s"].mask(chosen, kernels["time_s"] * factor),
        time_marks=kernels["time_marks"].mask(chosen, marks),
    )


def _no_contradiction(total_s: float, left_s: float, others: bool) -> None:
    """Raises UsageError if times given for kernels are more than the total, or all of them and not the total."""
    given_s = total_s - left_s
    if given_s and others and left_s <= _SAME * total_s:
        raise UsageError(
            f"--time: the kernels' times add up to {given_s:g} s, which leaves nothing of the total of {total_s:g} s "
            "for the others; give one or the other."
        )
    if not others and abs(left_s) > _SAME * total_s:
        raise UsageError(
            f"--time: the kernels' times add up to {given_s:g} s, and the total is {total_s:g} s; leave one out."
        )


def _told(names: "pd.Series[str]", specs: Sequence[str]) -> list[tuple["pd.Series[bool]", float]]:
    """The kernels and the seconds of each `KERNEL=SECONDS`. Raises UsageError if two contradict each other."""
    told: dict[str, tuple[pd.Series[bool], float]] = {}
    for spec in specs:
        name, equals, number = spec.rpartition("=")
        if not equals:
            continue
        chosen, seconds = _chosen(names, name, spec), _seconds(number, spec)
        again = False
        for other, (others, other_s) in told.items():
            both = chosen & others
            same = seconds == other_s and bool((chosen == others).all())
            if both.any() and not same:
                kernel = short(str(names[both].iloc[0]))
                raise UsageError(f"--time {other} and --time {spec} both give the time of `{kernel}`; give one.")
            again |= same
        if not again:
            told[spec] = chosen, seconds
    return list(told.values())


def _seconds(text: str, spec: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--time {spec}: `{text}` is no number of seconds; write SECONDS or KERNEL=SECONDS.")
    return seconds


def _chosen(names: "pd.Series[str]", name: str, spec: str) -> "pd.Series[bool]":
    """Which kernels a `--time` value is about: those of this full name, else those that `-k` would select."""
    chosen = names == name
    if not chosen.any():
        chosen = names.astype(str).map(selector([name], f"--time {spec}:"))
    if not chosen.any():
        known = few([short(kernel) for kernel in names.astype(str)], 5)
        raise UsageError(f"--time {spec}: no kernel is called `{name}`; the log has {known}.")
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

"""Times of kernels whose log has none: recovered from pairs of counters, or said by the user."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, Texts
from eprof.base.errors import UsageError
from eprof.base.kernels import selector, short
from eprof.base.marks import Mark
from eprof.base.text import counted, few, when
from eprof.counts.counts import Sheet
from eprof.counts.definition import Definition, TimePair
from eprof.logs.rows.log import KernelRows, Launches
from eprof.profilers import advice

_MISSING, _ESTIMATED = int(Mark.MISSING), int(Mark.ESTIMATED)
SECTOR_BYTES = 32
_ELAPSED = "elapsed_cycles"
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
    rows = launches.rows
    need = np.isnan(rows.time_s)
    if not need.any() or not definition.time_pairs:
        return launches, None, ()
    times, weights, low = _pairs(Sheet(launches, definition), definition.time_pairs)
    times[:, ~need] = np.nan
    medians, number, spread = _medians(times, weights)
    recovered = ~np.isnan(medians)
    if not recovered.any():
        return launches, None, ()
    marks = (rows.time_marks & ~_MISSING) | _ESTIMATED | np.where(low, _MISSING, 0)
    timed = replace(
        rows,
        time_s=np.where(recovered, medians, rows.time_s),
        time_marks=np.where(recovered, marks, rows.time_marks),
    )
    warnings = _warnings(rows, medians, spread, advice.commands(advice.TIMES, definition.capabilities))
    return replace(launches, rows=timed), _phrase(number[recovered], spread[recovered], need.size), warnings


def by_cycles(launches: Launches, definition: Definition, per_s: float | None) -> tuple[Launches, str | None]:
    """Give kernels without a time that of the cycles that all multiprocessors elapsed, `per_s` of them a second.

    ESTIMATED and ASSUMED: the clock is that of a data sheet. Returns the launches, and where their times come from.
    """
    sheet, need = Sheet(launches, definition), np.isnan(launches.rows.time_s)
    cycles = sheet.look_up(_ELAPSED) if per_s and _ELAPSED in definition.counters else None
    if cycles is None or per_s is None or not (need & (cycles.values > 0)).any():
        return launches, None
    need &= cycles.values > 0
    marks = np.int64(_ESTIMATED | int(Mark.ASSUMED)) | np.where(cycles.low, _MISSING, 0)[need]
    rows = _with_times(launches.rows, need, (cycles.values / per_s)[need], marks)
    how = f"elapsed cycles over the {per_s / 1e9:.4g} billion a second of all multiprocessors by the data sheet"
    return replace(launches, rows=rows), how


def _pairs(sheet: Sheet, pairs: Sequence[TimePair]) -> tuple[Floats, Floats, Bools]:
    """Times in s and weights by pairs of counters, each (n_pairs, n_kernels); NaN and 0 where a pair says nothing.

    And the kernels (n_kernels,) of which all pairs are lower bounds.

    A pair's weight grows with its sectors a launch up to `_GOOD`, and with its rate up to `_FAST`: below, they are
    rounded too much.
    """
    times = np.full((len(pairs), sheet.length), np.nan)
    weights = np.zeros_like(times)
    low = np.zeros(times.shape, dtype=np.bool_)
    launches = sheet.launches.rows.launches.astype(np.float64)
    for row, pair in enumerate(pairs):
        moved, rate = sheet.evaluate(pair.bytes), sheet.evaluate(pair.rate)
        if moved is None or rate is None:
            continue
        with np.errstate(all="ignore"):
            time = moved.values / rate.values
            sectors = moved.values / launches / SECTOR_BYTES
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


def _medians(times: Floats, weights: Floats) -> tuple[Floats, Ints, Floats]:
    """Of recovered times: weighted median, number of pairs and spread (range over median), each (n_kernels,)."""
    number = (~np.isnan(times)).sum(axis=0)
    order = np.argsort(times, axis=0)  # NaN last
    ranked = np.take_along_axis(times, order, axis=0)
    weight = np.take_along_axis(weights, order, axis=0)
    below = np.cumsum(weight, axis=0)
    middle = (below >= below[-1] / 2).argmax(axis=0)
    median = np.where(number > 0, np.take_along_axis(ranked, middle[None], axis=0)[0], np.nan)
    last = np.take_along_axis(ranked, np.maximum(number - 1, 0)[None], axis=0)[0]
    with np.errstate(invalid="ignore"):
        return median, number, (last - ranked[0]) / median


def _phrase(number: Ints, spread: Floats, kernels: int) -> str:
    low, high = int(number.min()), int(number.max())
    pairs = when(low < high, f"{low} to ") + counted(high, "pair")
    of_kernels = when(number.size < kernels, f" for {number.size} of {kernels} kernels")
    agree = when(high > 1, f", which agree within {max(spread.max(), 1e-4):.2%}")
    return f"bytes over bytes a second, of {pairs} of counters{of_kernels}{agree}"


def _warnings(rows: KernelRows, medians: Floats, spread: Floats, better: str) -> tuple[str, ...]:
    apart = np.where(np.isnan(medians), 0.0, spread)
    if not (apart > _SPREAD).any():
        return ()
    worst = int(np.argmax(apart))
    kernel = rows.kernel[worst].partition("(")[0]
    number = int((apart > _SPREAD).sum())
    which = when(number > 1, f"for {number} kernels, most ")
    return (
        f"The times that pairs of counters imply lie more than {_SPREAD:.0%} apart {which}in `{kernel}` "
        f"({apart[worst]:.0%}); the median is used. A trace ({better}) or --time is better.",
    )


def by_share(
    launches: Launches, definition: Definition, total_s: float, everything: Launches
) -> tuple[Launches, str | None]:
    """Share the time of a program over its kernels that have none, by the weights w of the definition's `time_share`.

    T_k = T w_k / sum w, where the sum is over everything that the program did: ESTIMATED, but for a single kernel.
    Returns the launches and what their times go by, in words; None where nothing tells, and they are as they were.
    """
    rows = launches.rows
    need = np.isnan(rows.time_s)
    weights, whole = (
        Sheet(some, definition).first_known("time_share", definition.time_share) for some in (launches, everything)
    )
    if not need.any() or weights is None or whole is None or np.isnan(whole.values).any() or not whole.values.any():
        return launches, None
    marks = np.int64(_ESTIMATED * (len(everything.rows) > 1))
    seconds = total_s * weights.values / whole.values.sum()
    return replace(launches, rows=_with_times(rows, need, seconds[need], marks)), weights.ways[0].note


def given(launches: Launches, specs: Sequence[str]) -> Launches:
    """Put in the kernels' times that a user gave with `--time KERNEL=SECONDS` (a name or "regex:...").

    Seconds are the total over a kernel's launches, without counter collection; they replace what the log says and are
    exact. Totals ("SECONDS" alone) are for `total` and `share`. Raises UsageError: no number, no such kernel, or two
    times for one kernel.
    """
    rows = launches.rows
    for chosen, seconds in _parsed(rows.kernel, specs):
        rows = _spread(rows, chosen, seconds)
    return replace(launches, rows=rows)


def total(specs: Sequence[str]) -> float | None:
    """The total time of all kernels that `--time SECONDS` gives, if one does. Raises UsageError: no number, or two."""
    totals = [_seconds(spec, spec) for spec in specs if "=" not in spec]
    if len(set(totals)) > 1:
        raise UsageError(f"--time gives two total times, {totals[0]:g} s and {totals[1]:g} s; give one.")
    return next(iter(totals), None)


def share(
    launches: Launches, total_s: float, specs: Sequence[str] = (), recovered: str | None = None
) -> tuple[Launches, str | None]:
    """Make the kernels' times add up to `total_s`, after `given` with these specs and `recover`.

    Times that the specs give stay. A single other kernel took the rest: exact. Several share the rest in proportion to
    their times, where each of them has one: ESTIMATED. Else nothing shows how to share it: the times stay as they are,
    and the total is that of all kernels together only.
    recovered: where those times come from, if not from the log. Returns the launches and how the total was shared, in
    words; None if it was not. Raises UsageError: the total contradicts times that are given or known.
    """
    rows = launches.rows
    others = np.ones(len(rows), dtype=np.bool_)
    for chosen, _ in _parsed(rows.kernel, specs):
        others &= ~chosen
    left_s = total_s - float(np.nansum(rows.time_s[~others]))
    _no_contradiction(total_s, left_s, bool(others.any()))
    if not others.any():
        return launches, "given by --time"
    times_s = rows.time_s[others]
    is_one_kernel = rows.chosen(others).n_kernels == 1
    if is_one_kernel and len(times_s) > 1:
        # Ranks, streams or ranges of a kernel whose time is known.
        return replace(launches, rows=_spread(rows, others, left_s)), "given by --time"
    known_s = float(np.nansum(times_s))
    if len(times_s) > 1 and (np.isnan(times_s).any() or not known_s > 0):
        if known_s >= left_s:
            raise UsageError(
                f"--time: the kernels whose times are known take {known_s - left_s:.3g} s longer than the total "
                "given. Give --time KERNEL=SECONDS for the others, or a trace."
            )
        return launches, None
    shared = replace(launches, rows=scaled_to(rows, others, left_s))
    if len(times_s) < 2:
        return shared, "given by --time"
    return shared, f"given by --time, shared out as the times {recovered or 'in the logs'}"


def scaled_to(rows: KernelRows, chosen: Bools, seconds: float) -> KernelRows:
    """The times of the chosen kernels made to add up to `seconds`, in proportion: ESTIMATED, but for a single one."""
    if chosen.sum() == 1:
        return _with_times(rows, chosen, np.float64(seconds), np.int64(0))
    factor = seconds / np.nansum(rows.time_s[chosen])
    marks = (rows.time_marks & ~_MISSING) | _ESTIMATED
    return _with_times(rows, chosen, rows.time_s[chosen] * factor, marks[chosen])


def _with_times(rows: KernelRows, chosen: Bools, seconds: Any, marks: Any) -> KernelRows:
    """Kernels with other times and their marks for the chosen ones."""
    time_s = rows.time_s.copy()
    time_marks = rows.time_marks.copy()
    time_s[chosen] = seconds
    time_marks[chosen] = marks
    return replace(rows, time_s=time_s, time_marks=time_marks)


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


def _parsed(names: Texts, specs: Sequence[str]) -> list[tuple[Bools, float]]:
    """The kernels and the seconds of each `KERNEL=SECONDS`. Raises UsageError if two contradict each other."""
    times: dict[str, tuple[Bools, float]] = {}
    for spec in specs:
        name, equals, number = spec.rpartition("=")
        if not equals:
            continue
        chosen, seconds = _chosen(names, name, spec), _seconds(number, spec)
        if not any(_is_again(names, chosen, seconds, spec, before, time) for before, time in times.items()):
            times[spec] = chosen, seconds
    return list(times.values())


def _is_again(names: Texts, chosen: Bools, seconds: float, spec: str, before: str, time: tuple[Bools, float]) -> bool:
    """Whether a `--time` spec says the same as one before it.

    Raises UsageError if both give other times for a kernel.
    """
    both = chosen & time[0]
    is_same = seconds == time[1] and bool((chosen == time[0]).all())
    if both.any() and not is_same:
        kernel = short(names[both][0])
        raise UsageError(f"--time {before} and --time {spec} both give the time of `{kernel}`; give one.")
    return is_same


def _seconds(text: str, spec: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--time {spec}: `{text}` is not a number of seconds; write SECONDS or KERNEL=SECONDS.")
    return seconds


def _chosen(names: Texts, name: str, spec: str) -> Bools:
    """Which kernels a `--time` value is about: those of this full name, else those that `-k` would select."""
    chosen = np.asarray(names == name, dtype=np.bool_)
    if not chosen.any():
        selects = selector([name], f"--time {spec}:")
        chosen = np.array([selects(kernel) for kernel in names], dtype=np.bool_)
    if not chosen.any():
        known = few([short(kernel) for kernel in names], 5)
        raise UsageError(f"--time {spec}: no kernel is called `{name}`; the log has {known}.")
    return chosen


def _spread(rows: KernelRows, chosen: Bools, seconds: float) -> KernelRows:
    """Where a `--time` matches several kernels, they share it by their known times, else by launches: ESTIMATED."""
    shares = rows.time_s[chosen]
    if np.isnan(shares).any() or not shares.sum() > 0:
        shares = rows.launches[chosen].astype(np.float64)
    return _with_times(rows, chosen, seconds * shares / shares.sum(), _ESTIMATED * (chosen.sum() > 1))

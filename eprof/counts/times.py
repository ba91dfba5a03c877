"""Times of kernels whose log has none: from pairs of counters, cycles or the program's time, or given by `--time`."""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from eprof.base import units
from eprof.base.arrays import Bools, Floats, Ints, Texts
from eprof.base.errors import UsageError
from eprof.base.kernels import selector, short
from eprof.base.signs import A_SECOND
from eprof.base.text import counted, few, when
from eprof.base.vocabulary import ASSUMED, ESTIMATED, MISSING
from eprof.counts.definition import Definition, TimePair
from eprof.counts.evaluation import CounterSheet
from eprof.logs.log import BYTES_PER_S, COUNT, PERCENT, KernelRows, Launches
from eprof.profilers import advice

SECTOR_BYTES = 32
_ELAPSED = "elapsed_cycles"
ONE_SECOND = "not told, so one second of equally long launches (J are W)"
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
    times, weights, low = _pairs(CounterSheet(launches, definition), definition.time_pairs)
    times[:, ~need] = np.nan
    medians, number, spread = _medians(times, weights)
    recovered = ~np.isnan(medians)
    if not recovered.any():
        return launches, None, ()
    marks = (rows.time_marks & ~MISSING) | ESTIMATED | np.where(low, MISSING, 0)
    apart = np.where(recovered, spread, 0.0)
    warnings = []
    if (apart > _SPREAD).any():
        worst = int(np.argmax(apart))
        far = int((apart > _SPREAD).sum())
        which = when(far > 1, f"for {far} kernels, most ")
        better = advice.commands(advice.TIMES, definition.capabilities)
        warnings.append(
            f"The times that pairs of counters imply lie more than {_SPREAD:.0%} apart {which}in "
            f"`{rows.kernel[worst].partition('(')[0]}` ({apart[worst]:.0%}); the median is used. A trace ({better}) or "
            "--time is better."
        )
    least, most = int(number[recovered].min()), int(number[recovered].max())
    pairs = when(least < most, f"{least} to ") + counted(most, "pair")
    of_kernels = when(recovered.sum() < need.size, f" for {recovered.sum()} of {need.size} kernels")
    agree = when(most > 1, f", which agree within {max(apart.max(), 1e-4):.2%}")
    how = f"bytes over bytes a second, of {pairs} of counters{of_kernels}{agree}"
    return replace(launches, rows=rows.with_times(recovered, medians, marks)), how, tuple(warnings)


def by_cycles(launches: Launches, definition: Definition, per_s: float | None) -> tuple[Launches, str | None]:
    """Give kernels without a time their elapsed cycles over `per_s`, the cycles of all multiprocessors in a second.

    ESTIMATED and ASSUMED: the clock is that of a data sheet. Returns the launches, and where their times come from in
    words (None: no time was given).
    """
    if not per_s or _ELAPSED not in definition.counters:
        return launches, None
    cycles = CounterSheet(launches, definition).look_up(_ELAPSED)
    if cycles is None:
        return launches, None
    need = np.isnan(launches.rows.time_s) & (cycles.values > 0)
    if not need.any():
        return launches, None
    marks = (ESTIMATED | ASSUMED) | np.where(cycles.low, MISSING, 0)
    rows = launches.rows.with_times(need, cycles.values / per_s, marks)
    how = f"elapsed cycles over the {per_s / 1e9:.4g} billion a second of all multiprocessors by the data sheet"
    return replace(launches, rows=rows), how


def of_a_second(launches: Launches, definition: Definition) -> tuple[Launches, str | None]:
    """Give the kernels of a log of rates, without times and counts, one second in all, shared by their launches.

    ASSUMED: joules are watts then. Returns the launches, and what their times are in words (None: no time was given).
    """
    rows, counters = launches.rows, launches.counters
    known = [name for name in counters.names if not np.isnan(counters[name]).all()]
    counted = [name for name in definition.of_words.intersection(known) if launches.units.get(name) == COUNT]
    is_rate = [name.endswith(A_SECOND) or launches.units.get(name) in (PERCENT, BYTES_PER_S) for name in known]
    if not any(is_rate) or not np.isnan(rows.time_s).all() or any(not name.endswith(A_SECOND) for name in counted):
        return launches, None
    spread = rows.launches / rows.launches.sum()
    return replace(launches, rows=rows.with_times(np.isnan(rows.time_s), spread, ASSUMED)), ONE_SECOND


def _pairs(sheet: CounterSheet, pairs: Sequence[TimePair]) -> tuple[Floats, Floats, Bools]:
    """(Times in s, weights, is_low): the first two (n_pairs, n_kernels), NaN and 0 where a pair says nothing.

    is_low, (n_kernels,): all pairs of the kernel are lower bounds. A pair's weight grows with its sectors a launch up
    to `_GOOD`, and with its rate up to `_FAST`: below, they are rounded too much.
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
    """(Weighted median, number, spread: range over median) of the times of each kernel's pairs, each (n_kernels,)."""
    order = np.argsort(times, axis=0)  # NaN last
    below = np.cumsum(np.take_along_axis(weights, order, axis=0), axis=0)
    middle = (below >= below[-1] / 2).argmax(axis=0)
    median = np.take_along_axis(np.take_along_axis(times, order, axis=0), middle[None], axis=0)[0]
    with np.errstate(invalid="ignore"):
        spread = (np.fmax.reduce(times) - np.fmin.reduce(times)) / median
    return median, (~np.isnan(times)).sum(axis=0), spread


def by_share(
    launches: Launches, definition: Definition, total_s: float, everything: Launches
) -> tuple[Launches, str | None]:
    """Share a program's time T over its kernels that have none, by the weights w of the definition's `time_share`.

    T_k = T w_k / sum w, where the sum is over `everything` that the program did: ESTIMATED, but for a single kernel.
    Returns the launches and what their times go by, in words; None where nothing tells, and the launches are the same.
    """
    rows = launches.rows
    need = np.isnan(rows.time_s)
    weights, whole = (
        CounterSheet(some, definition).first_known("time_share", definition.time_share)
        for some in (launches, everything)
    )
    if not need.any() or weights is None or whole is None or np.isnan(whole.values).any() or not whole.values.any():
        return launches, None
    marks = ESTIMATED * (len(everything.rows) > 1)
    seconds = total_s * weights.values / whole.values.sum()
    return replace(launches, rows=rows.with_times(need, seconds, marks)), weights.ways[0].note


def given(launches: Launches, specs: Sequence[str]) -> Launches:
    """Put in the kernels' times that a user gave with `--time KERNEL=TIME` (a name or "regex:...").

    Seconds are the total over a kernel's launches, without counter collection; they replace what the log says and are
    exact. Totals ("TIME" alone) are for `total` and `share`. Raises UsageError: no number, no such kernel, or two
    times for one kernel.
    """
    rows = launches.rows
    for chosen, seconds in _parsed(rows.kernel, specs):
        rows = _spread(rows, chosen, seconds)
    return replace(launches, rows=rows)


def total(specs: Sequence[str]) -> float | None:
    """The total s of all kernels, of `--time TIME`; None if no spec is one. Raises UsageError: no number, or two."""
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
    given_s = float(np.nansum(rows.time_s[~others]))
    left_s = total_s - given_s
    if not others.any():
        if abs(left_s) > _SAME * total_s:
            raise UsageError(
                f"--time: the kernels' times add up to {given_s:g} s, and the total is {total_s:g} s; leave one out."
            )
        return launches, "given by --time"
    if given_s and left_s <= _SAME * total_s:
        raise UsageError(
            f"--time: the kernels' times add up to {given_s:g} s, which leaves nothing of the total of {total_s:g} s "
            "for the others; give one or the other."
        )
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
                "given. Give --time KERNEL=TIME for the others, or a trace."
            )
        return launches, None
    shared = replace(launches, rows=scaled_to(rows, others, left_s))
    if len(times_s) < 2:
        return shared, "given by --time"
    return shared, f"given by --time, shared out as the times {recovered or 'in the logs'}"


def scaled_to(rows: KernelRows, chosen: Bools, seconds: float) -> KernelRows:
    """Scale the chosen kernels' times to add up to `seconds`: marked ESTIMATED; a single one is exact, no mark."""
    if chosen.sum() == 1:
        return rows.with_times(chosen, seconds, 0)
    factor = seconds / np.nansum(rows.time_s[chosen])
    return rows.with_times(chosen, rows.time_s * factor, (rows.time_marks & ~MISSING) | ESTIMATED)


def _parsed(names: Texts, specs: Sequence[str]) -> list[tuple[Bools, float]]:
    """(Mask of kernels, seconds) of each `--time KERNEL=TIME`, the same one only once. Raises UsageError: two clash."""
    times: dict[str, tuple[Bools, float]] = {}
    for spec in specs:
        name, equals, number = spec.rpartition("=")
        if not equals:
            continue
        chosen, seconds = _chosen(names, name, spec), _seconds(number, spec)
        is_again = False
        for before, (others, others_s) in times.items():
            is_same = seconds == others_s and bool((chosen == others).all())
            if (chosen & others).any() and not is_same:
                kernel = short(names[chosen & others][0])
                raise UsageError(f"--time {before} and --time {spec} both give the time of `{kernel}`; give one.")
            is_again |= is_same
        if not is_again:
            times[spec] = chosen, seconds
    return list(times.values())


def _seconds(text: str, spec: str) -> float:
    seconds = units.amount(text, units.TIME)
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--time {spec}: `{text}` is no time; write it or KERNEL=TIME, in s, ms, us or min: 7ms.")
    return seconds


def _chosen(names: Texts, name: str, spec: str) -> Bools:
    """True for the kernels of a `--time` value, (n_kernels,): by full name, else as `-k` does. Raises UsageError."""
    chosen = np.asarray(names == name, dtype=np.bool_)
    if not chosen.any():
        selects = selector([name], f"--time {spec}:")
        chosen = np.array([selects(kernel) for kernel in names], dtype=np.bool_)
    if not chosen.any():
        known = few([short(kernel) for kernel in names], 5)
        raise UsageError(f"--time {spec}: no kernel is called `{name}`; the log has {known}.")
    return chosen


def _spread(rows: KernelRows, chosen: Bools, seconds: float) -> KernelRows:
    """Give chosen rows `seconds` in all; several share it by their times, if all known, else launches: ESTIMATED."""
    shares = rows.time_s
    if np.isnan(shares[chosen]).any() or not shares[chosen].sum() > 0:
        shares = rows.launches.astype(np.float64)
    return rows.with_times(chosen, seconds * shares / shares[chosen].sum(), ESTIMATED * (chosen.sum() > 1))

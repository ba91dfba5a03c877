"""The power of each benchmark by the log of a meter that another program recorded beside (`--meter-log`).

The worker writes down when each benchmark's window began and ended; the log has the power of that time. Both clocks are
UTC, or the log's dates have no zone, or its clock is off: that is found where the counts explain power best. When power
changes would not do: benchmarks follow each other so evenly that each could be taken for the next.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from eprof.base.arrays import Floats
from eprof.base.errors import LogError
from eprof.base.text import counted, listed, pattern
from eprof.commands.calibrate.worker import MEASURED
from eprof.lab.power import clock, logs
from eprof.lab.power.marks import Mark, zone_offset_s
from eprof.lab.power.series import Series

Event = Mapping[str, Any]
_GPU = pattern(r"(amd|intel-)?gpu.*|nvml.*|card.*", re.IGNORECASE)
_LEAST_SAMPLES = 3  # in a window
_LEAST_KNOWN = 0.9  # of a window
_SEARCH_S, _STEP_S = 60.0, 0.1  # how far clocks may be apart
_OFF = 0.05  # of the power: counts that explain it better have the right times
_BETTER, _GOOD = 0.5, 0.15  # times as far off, and at most so far: what another offset must come to


class MeterLog(NamedTuple):
    """A log of a meter, and which of its components the device is; "": the only one, or the only GPU."""

    path: Path
    component: str = ""


def with_power(
    events: Sequence[Event], log: MeterLog, rates: Callable[[Event], Mapping[str, float]], say: Callable[[str], None]
) -> list[Event]:
    """The worker's results with the mean W that the log has of their time, or why it has none (`no_power`).

    rates: what a result counts in a second, by kind. say: takes sentences on the log, and on clocks that are apart.
    Raises LogError where it knows nothing of any window.
    """
    measured = [event for event in events if _has_window(event)]
    if not measured:
        return list(events)
    notes: list[str] = []
    series = _series_of_device(logs.read(str(log.path), notes), log)
    windows = np.array([event["utc_s"] for event in measured])
    counted_s = pd.DataFrame([rates(event) for event in measured]).fillna(0.0).assign(constant=1.0)
    if not series.absolute:
        raise LogError(
            f"{series.source}: its times are no dates, so nothing tells what ran when; let the meter write dates or "
            "seconds since 1970."
        )
    first_s, last_s = float(windows.min()), float(windows.max())
    marks = [Mark("benchmarks", first_s, last_s)]
    if zone_s := zone_offset_s(series, marks):
        say(f"{series.source}: its dates have no zone; moved by {zone_s / 3600:+g} h they meet the benchmarks.")
        series = series.shifted(zone_s)
    if series.edges[0] - _SEARCH_S > last_s or series.edges[-1] + _SEARCH_S < first_s:
        raise LogError(
            f"{series.source}: has the power from {clock.written(series.edges[0])} to "
            f"{clock.written(series.edges[-1])} UTC, but the benchmarks ran from {clock.written(first_s)} to "
            f"{clock.written(last_s)} UTC; give the log of that time."
        )
    if offset_s := _offset_s(series, windows, counted_s.to_numpy(dtype=np.float64)):
        way = {True: "behind", False: "ahead"}[offset_s > 0]
        say(f"{series.source}: its clock is {abs(offset_s):.1f} s {way}, by what its power would be; moved by that.")
        series = series.shifted(offset_s)
    for note in notes:
        say(f"{note}.")
    return [_with_power(event, series) for event in events]


def _has_window(event: Event) -> bool:
    """Whether a result says when its window was; those of eprof before `--meter-log` do not."""
    return event["event"] == MEASURED and "utc_s" in event


def _series_of_device(known: Sequence[Series], log: MeterLog) -> Series:
    names = [series.component for series in known]
    if log.component and log.component not in names:
        raise LogError(f"{log.path}: has no component `{log.component}`; it has {listed(names)}.")
    gpus = [name for name in names if _GPU.fullmatch(name)]
    for fitting in ([log.component] if log.component else names, gpus):
        if len(fitting) == 1:
            return known[names.index(fitting[0])]
    raise LogError(f"{log.path}: say which of its components the device is, by --component: {listed(names)}.")


def _offset_s(series: Series, windows: Floats, rates: Floats) -> float:
    """By how many s the log's clock is behind (below 0: ahead), by where counts explain its power best; 0: not off."""
    here = best = _unexplained(series, windows, rates)
    best_s = 0.0
    if here <= _OFF:
        return best_s
    for offset_s in np.arange(-_SEARCH_S, _SEARCH_S + _STEP_S / 2, _STEP_S):
        there = _unexplained(series, windows - offset_s, rates)
        if there < best:
            best_s, best = float(offset_s), there
    return best_s * (best < min(_BETTER * here, _GOOD))


def _unexplained(series: Series, windows: Floats, rates: Floats) -> float:
    """The rms relative error of power in the windows by the prices that fit it best; infinite: little power is known.

    windows: begin and end in s, (n, 2); rates: what was counted a second, (n, n_kinds).
    """
    known_s = series.known_s(windows[:, 0], windows[:, 1])
    joules = series.energy_j(windows[:, 0], windows[:, 1])
    known = (known_s >= _LEAST_KNOWN * (windows[:, 1] - windows[:, 0])) & (joules > 0)
    if known.mean() < _LEAST_KNOWN or known.sum() <= rates.shape[1]:
        return np.inf
    weighted = rates[known] / (joules[known] / known_s[known])[:, None]
    weighted /= np.maximum(np.abs(weighted).max(axis=0), 1e-300)
    prices = np.linalg.lstsq(weighted, np.ones(len(weighted)))[0]
    return float(np.sqrt(np.mean((weighted @ prices - 1.0) ** 2)))


def _with_power(event: Event, series: Series) -> Event:
    if not _has_window(event):
        return event
    begin_s, end_s = event["utc_s"]
    joules, known_s = series.seen(begin_s, end_s)
    samples = int(((series.edges >= begin_s) & (series.edges < end_s)).sum())
    if samples >= _LEAST_SAMPLES and known_s >= _LEAST_KNOWN * (end_s - begin_s):
        return {**event, "power_w": joules / known_s}
    why = (
        f"{series.source} has {counted(samples, 'sample')} of {series.component} in its {end_s - begin_s:.1f} s, and "
        f"{_LEAST_SAMPLES} are needed in all of it (a longer --window, or a meter that is read more often)"
    )
    return {**event, "power_w": None, "no_power": why}

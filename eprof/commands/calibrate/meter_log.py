"""The power of each benchmark by the log of a meter that another program recorded beside (`--meter-log`).

The worker writes down when each benchmark's window began and ended; the log has the power of that time. Both clocks are
UTC, or the log's dates have no zone, or its clock is off: that is found where power fits the windows best.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eprof.base.arrays import Floats
from eprof.base.errors import LogError
from eprof.base.text import counted, listed, pattern
from eprof.collect.worker import MEASURED
from eprof.lab.power import fuse, logs
from eprof.lab.power.marks import Mark
from eprof.lab.power.series import Series

_GPU = pattern(r"(amd|intel-)?gpu.*|nvml.*|card.*", re.IGNORECASE)
_LEAST_SAMPLES = 3  # in a window
_LEAST_KNOWN = 0.9  # of a window
_SEARCH_S, _STEP_S = 60.0, 0.1  # how far clocks may be apart
_LAG_S = 1.0  # of a sensor; less is no clock that is off
_BETTER = 0.1  # of the power's variance: what another offset must explain besides


class Wanted(NamedTuple):
    """A log of a meter, and which of its components the device is; "": the only one, or the only GPU."""

    path: Path
    component: str = ""


def with_power(
    events: Sequence[Mapping[str, Any]], wanted: Wanted, say: Callable[[str], None]
) -> list[Mapping[str, Any]]:
    """The worker's results with the power of their windows by the meter's log, or why there is none (`no_power`).

    say: takes sentences on the log, and on clocks that are apart. Raises LogError where it knows nothing of any window.
    """
    windows = [event["utc_s"] for event in events if event["event"] == MEASURED]
    if not windows:
        return list(events)
    notes: list[str] = []
    series = _component(logs.read(str(wanted.path), notes), wanted)
    series = _in_time(series, windows, say)
    for note in notes:
        say(f"{note}.")
    return [_with_power(event, series) for event in events]


def _component(known: Sequence[Series], wanted: Wanted) -> Series:
    names = [series.component for series in known]
    if wanted.component and wanted.component not in names:
        raise LogError(f"{wanted.path}: has no component `{wanted.component}`; it has {listed(names)}.")
    gpus = [name for name in names if _GPU.fullmatch(name)]
    for fitting in ([wanted.component] if wanted.component else names, gpus):
        if len(fitting) == 1:
            return known[names.index(fitting[0])]
    raise LogError(f"{wanted.path}: say which of its components the device is, by --component: {listed(names)}.")


def _in_time(series: Series, windows: Sequence[Sequence[float]], say: Callable[[str], None]) -> Series:
    """The power of the log by the clock of the windows. Raises LogError where it has none of their time."""
    if not series.absolute:
        raise LogError(
            f"{series.source}: its times are no dates, so nothing tells what ran when; let the meter write dates or "
            "seconds since 1970."
        )
    marks = [Mark(str(number), begin_s, end_s) for number, (begin_s, end_s) in enumerate(windows)]
    if zone_s := fuse.zone_s(series, marks):
        say(f"{series.source}: its dates have no zone; moved by {zone_s / 3600:+g} h they meet the benchmarks.")
        series = series.shifted(zone_s)
    first_s, last_s = marks[0].begin_s, max(mark.end_s for mark in marks)
    if series.edges[0] - _SEARCH_S > last_s or series.edges[-1] + _SEARCH_S < first_s:
        raise LogError(
            f"{series.source}: has the power from {_clock(series.edges[0])} to {_clock(series.edges[-1])} UTC, but the "
            f"benchmarks ran from {_clock(first_s)} to {_clock(last_s)} UTC; give the log of that time."
        )
    offset_s = _offset_s(series, fuse.exclusive(marks))
    if abs(offset_s) > max(_LAG_S, series.period_s):
        say(
            f"{series.source}: its clock is {abs(offset_s):.1f} s {'behind' if offset_s > 0 else 'ahead'}, by where "
            "power changes with the benchmarks; moved by that."
        )
        series = series.shifted(offset_s)
    return series


def _offset_s(series: Series, pieces: fuse.Pieces) -> float:
    """By how much the log's clock is behind; 0 unless that explains clearly more of its power."""
    known = ~np.isnan(series.watts)
    seconds = np.diff(series.edges)[known]
    watts = series.watts[known]
    mean_w = np.average(watts, weights=seconds)
    variance = float(((watts - mean_w) ** 2 * seconds).sum())
    best_s = fuse.offset_s(series, pieces, _SEARCH_S, _STEP_S)
    gain = fuse.explained(series.shifted(best_s), pieces) - fuse.explained(series, pieces)
    return best_s if gain > _BETTER * variance else 0.0


def _with_power(event: Mapping[str, Any], series: Series) -> Mapping[str, Any]:
    if event["event"] != MEASURED:
        return event
    begin_s, end_s = event["utc_s"]
    edges: tuple[Floats, Floats] = np.array([begin_s]), np.array([end_s])
    known_s = float(series.known_s(*edges)[0])
    samples = int(((series.edges >= begin_s) & (series.edges < end_s)).sum())
    if samples >= _LEAST_SAMPLES and known_s >= _LEAST_KNOWN * (end_s - begin_s):
        return {**event, "power_w": float(series.energy_j(*edges)[0]) / known_s}
    why = (
        f"{series.source} has {counted(samples, 'sample')} of {series.component} in its {end_s - begin_s:.1f} s, and "
        f"{_LEAST_SAMPLES} are needed in all of it (a longer --window, or a meter that is read more often)"
    )
    return {**event, "power_w": None, "no_power": why}


def _clock(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%d %H:%M:%S")

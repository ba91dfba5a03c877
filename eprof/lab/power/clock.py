"""Times as meters write them: seconds, dates in many forms, times of day; and clocks that are set while they log."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np

from eprof.base.arrays import Floats
from eprof.base.text import pattern

DAY_S, _HOUR_S = 86400.0, 3600.0
_FORMATS = [
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%d %H:%M:%S",
    "%m-%d-%Y %H:%M:%S",
    "%Y%m%d %H:%M:%S",
    "%d.%m.%Y %H:%M:%S.%f",
    "%d.%m.%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
    "%a %b %d %H:%M:%S %Y %z",
    "%m/%d/%Y %I:%M:%S %p",
    "%I:%M:%S %p",
    "%H:%M:%S.%f",
    "%H:%M:%S:%f",
    "%H:%M:%S,%f",
    "%H:%M:%S",
]
_UTC = pattern(r"(.*\d) ?(?:UTC|GMT|Z)( \d{4})?")
# Ada writes blanks before short numbers: "2024- 12- 3  12: 8: 3. 26", whose last are milliseconds.
_BLANK = pattern(r"(?<=[-:]) +(?=\d)| (?= \d)")
_MILLISECONDS = pattern(r"(.*\d)\. +(\d{1,3})")


class Moment(NamedTuple):
    """Seconds, NaN for what is no time; whether they are since the epoch, and sure to be UTC; or since midnight."""

    seconds: float
    absolute: bool = False
    zoned: bool = False
    of_day: bool = False


def moment(text: str, unit_s: float = 1.0) -> Moment:
    """A meter's cell as a `Moment`: a number of `unit_s`, or ms to ns since 1970 by its size; or a date (UTC)."""
    if not text:
        return Moment(math.nan)
    try:
        seconds = float(text.replace(",", ".")) * unit_s
    except ValueError:
        return _date(text.strip())
    if not math.isfinite(seconds):
        return Moment(math.nan)
    # Milliseconds taken for seconds lie thousands of years ahead.
    part = next((unit for least, unit in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)) if seconds >= least), 1.0)
    return Moment(seconds * part, seconds > 1e9, seconds > 1e9)


def _date(text: str) -> Moment:
    if len(text) > 64:  # characters of a date
        return Moment(math.nan)
    if len(text) > len("2026-01-01"):
        with suppress(ValueError):
            return _since_epoch(datetime.fromisoformat(_dashed(text)))
    told = _UTC.fullmatch(text)
    if told:
        text = told[1] + (told[2] or "")
    if late := _MILLISECONDS.fullmatch(text):
        text = f"{late[1]}.{late[2]:>03}"
    text = _BLANK.sub("", _dashed(text))
    for place, form in enumerate(_FORMATS):
        try:
            read = datetime.strptime(text, form)
        except ValueError:
            continue
        _FORMATS.insert(0, _FORMATS.pop(place))  # the next is most often of this form
        if "%d" in form:
            return _since_epoch(read, told is not None)
        return Moment((read - datetime(1900, 1, 1)).total_seconds(), of_day=True)
    return Moment(math.nan)


def _dashed(text: str) -> str:
    """A date with dashes for slashes if it begins with its year; of 01/02/2026 nobody knows which is the month."""
    return text.replace("/", "-") if text[:4].isdigit() else text


def _since_epoch(read: datetime, zoned: bool = False) -> Moment:
    if read.tzinfo:
        return Moment(read.timestamp(), True, True)
    return Moment(read.replace(tzinfo=UTC).timestamp(), True, zoned)


def without_changes(times: Floats) -> tuple[Floats, list[tuple[float, float]]]:
    """Times in s with changes of the clock by an hour undone, and (when, by how many s) for each change.

    Dates without a zone have them on nights when clocks change: from 03:00 to 02:00, or 02:00 to 03:00, in one sample.
    """
    steps = np.diff(times)
    forward = steps[steps > 0]
    if len(forward) < max(len(steps) - 1, 1):
        return times, []
    period_s = float(np.median(forward))
    set_s = np.zeros_like(times)
    changes = []
    for way in (-_HOUR_S, _HOUR_S):
        odd = np.abs(steps - way - period_s) <= period_s
        # The hour that it leaves or enters is full, as nearly as samples can tell; the jump only on the nights of it.
        at_hour = (times[1:] % _HOUR_S) <= 2 * period_s
        for place in np.flatnonzero(odd & at_hour & (period_s < _HOUR_S / 12)):
            stamp = datetime.fromtimestamp(times[place + 1], UTC)
            if stamp.weekday() == 6 and stamp.hour <= 4:
                set_s[place + 1 :] -= way
                changes.append((float(times[place + 1]), way))
    return times + set_s, changes


def spread(times: Floats) -> Floats:
    """The moments of samples in s, (n,), where those of one coarse stamp share the time to the next evenly."""
    first = np.flatnonzero(np.append(True, np.diff(times) != 0))
    sizes = np.diff(np.append(first, len(times)))
    if (sizes == 1).all() or len(first) < 2:
        return times
    each_s = np.diff(times[first]) / sizes[:-1]
    usual_s = float(np.median(each_s[1:] if len(each_s) > 1 else each_s))
    each_s = np.minimum(np.append(each_s, usual_s), 2 * usual_s)
    within = np.arange(len(times)) - np.repeat(first, sizes)
    begin = times[first].copy()
    if each_s[0] > usual_s:  # the log began within the first stamp
        begin[0], each_s[0] = times[first[1]] - sizes[0] * usual_s, usual_s
    return np.asarray(np.repeat(begin, sizes) + within * np.repeat(each_s, sizes))


def written(epoch_s: float) -> str:
    """A moment in UTC, to the second: "2026-01-31 12:00:00"."""
    return (datetime(1970, 1, 1) + timedelta(seconds=float(epoch_s))).isoformat(" ", "seconds")

"""Power of a component over time: times as meters write them, power as steps, joules, which components share these.

Times are seconds, dates in many forms, times of day; clocks may be set while they log.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cached_property
from os.path import commonprefix
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats
from eprof.base.text import listed, pattern, when

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
    """A time that a meter wrote, s (NaN: none); whether it is since the epoch, sure to be UTC; or since midnight."""

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
    """A date with its time of day, or a time of day alone, in one of the known forms as a `Moment`; NaN: it is none."""
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


def spread_stamps(times: Floats) -> Floats:
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


def utc_text(epoch_s: float) -> str:
    """A moment in UTC, to the second: "2026-01-31 12:00:00"."""
    return (datetime(1970, 1, 1) + timedelta(seconds=float(epoch_s))).isoformat(" ", "seconds")


MOST_W = 1e8  # more than any machine draws
_GAP = 10.0  # periods without a sample: nothing is known of them
_WHOLLY = 1 - 1e-6  # of a step is known
_FEW = 3  # changes of power tell nothing of how often a meter has news
_MOSTLY = 0.5  # of the samples of a counter that stands between them


class Series(Struct, frozen=True, eq=False, dict=True):
    """Power of a component: `watts[i]`, (n,), from `edges[i]` to `edges[i + 1]`, (n + 1,), in s. NaN: not known.

    absolute: the edges are seconds since the epoch, and no times from some start. zoned: these are sure to be UTC, as
    the log has such seconds or a zone; else they are dates of a clock in any zone. held_s: how long the last sample is
    taken to hold, for want of a next one. within: a pattern of the components of the same log whose joules include
    these, as the meter's file says. explained: the log may have counts of what drew the power.
    """

    component: str
    source: str
    edges: Floats
    watts: Floats
    absolute: bool
    zoned: bool = False
    within: str = ""
    explained: bool = False
    held_s: float = 0.0

    @classmethod
    def of_power(
        cls, component: str, source: str, times: Floats, watts: Floats, absolute: bool, holds: bool = True
    ) -> Series:
        """A series of samples of power, each of which holds until the next; if it `holds`, the last one, too."""
        held_s = float(np.median(np.diff(times)))
        edges = np.append(times, times[-1] + held_s)
        if not holds:
            edges, watts, held_s = times, watts[:-1], 0.0
        return cls(component, source, edges, np.where(_gaps(edges), np.nan, watts), absolute, held_s=held_s)

    @classmethod
    def of_counter(cls, component: str, source: str, times: Floats, joules: Floats, absolute: bool) -> Series:
        """A series of the mean power between samples of a counter of joules; NaN where the counter fell.

        A counter that is read more often than it moves is taken at the moments at which it moved.
        """
        gaps = _gaps(times)
        stands = np.diff(joules) == 0
        kept = np.flatnonzero(np.append(True, ~stands))
        if len(kept) < 2 or stands.mean() < _MOSTLY:
            kept = np.arange(len(times))
        elif stands[-1]:
            kept = np.append(kept, len(times) - 1)
        spent = np.diff(joules[kept])
        watts = np.where(spent < 0, np.nan, spent) / np.diff(times[kept])
        unknown = np.logical_or.reduceat(gaps, kept[:-1])
        return cls(component, source, times[kept], np.where(unknown, np.nan, watts), absolute)

    @classmethod
    def of_means(cls, component: str, source: str, edges: Floats, watts: Floats, absolute: bool) -> Series:
        """A series of mean powers, (n,), each of the time up to an edge from the one before, (n + 1,)."""
        return cls(component, source, edges, np.where(_gaps(edges), np.nan, watts), absolute)

    def ended(self) -> Series:
        """A series without the time that its last sample is taken to hold, unless no other or no power is known."""
        if np.isnan(self.watts[:-1]).all() or np.isnan(self.watts[-1]):
            return self
        return replace(self, edges=self.edges[:-1], watts=self.watts[:-1], held_s=0.0)

    @property
    def period_s(self) -> float:
        """The median time in s that a sample holds."""
        return float(np.median(np.diff(self.edges)))

    @cached_property
    def new_every_s(self) -> float:
        """After how many s the meter has a new value: one that is read more often than it measures repeats itself."""
        starts = np.flatnonzero(np.append(True, np.diff(self.watts) != 0))
        stand_s = np.diff(self.edges[starts])
        # A steady machine repeats itself, too: the short stretches tell what the meter does.
        return max(float(np.quantile(stand_s, 0.25)), self.period_s) if len(stand_s) > _FEW else self.period_s

    @property
    def unknown_s(self) -> float:
        """The seconds of the series in which the power is not known."""
        return float(np.diff(self.edges)[np.isnan(self.watts)].sum())

    @cached_property
    def _joules(self) -> Floats:
        """The known joules from the first edge to each, (n + 1,)."""
        return np.append(0.0, np.cumsum(np.nan_to_num(self.watts) * np.diff(self.edges)))

    @cached_property
    def _known(self) -> Floats:
        """The seconds in which power is known from the first edge to each, (n + 1,)."""
        return np.append(0.0, np.cumsum(np.diff(self.edges) * ~np.isnan(self.watts)))

    def energy_j(self, begin_s: Floats, end_s: Floats) -> Floats:
        """The known energy of each stretch, from `begin_s` to `end_s`, (n_stretches,), J: the integral of the steps."""
        return np.asarray(np.interp(end_s, self.edges, self._joules) - np.interp(begin_s, self.edges, self._joules))

    def known_s(self, begin_s: Floats, end_s: Floats) -> Floats:
        """The seconds of each stretch, from `begin_s` to `end_s`, in which the power is known, (n_stretches,)."""
        return np.asarray(np.interp(end_s, self.edges, self._known) - np.interp(begin_s, self.edges, self._known))

    def seen(self, begin_s: float, end_s: float) -> tuple[float, float]:
        """The known energy of one stretch, J, and for how long of it the power is known, s."""
        stretch = np.array([begin_s]), np.array([end_s])
        return float(self.energy_j(*stretch)[0]), float(self.known_s(*stretch)[0])

    def shifted(self, offset_s: float) -> Series:
        """The same series of power, later by `offset_s`."""
        return replace(self, edges=self.edges + offset_s)


def added(series: Sequence[Series]) -> Series:
    """The power of several components added up; NaN where that of one of them is not known."""
    if len(series) == 1:
        return series[0]
    edges = np.unique(np.concatenate([each.edges for each in series]))
    seconds = np.diff(edges)
    watts = np.sum([each.energy_j(edges[:-1], edges[1:]) for each in series], axis=0) / seconds
    known_s = np.min([each.known_s(edges[:-1], edges[1:]) for each in series], axis=0)
    return replace(series[0], edges=edges, watts=np.where(known_s > _WHOLLY * seconds, watts, np.nan))


def _gaps(times: Floats) -> Bools:
    """Which steps between times, (n - 1,), are gaps: longer than 10 times the median."""
    seconds = np.diff(times)
    return np.asarray(seconds > _GAP * np.median(seconds))


# ----------------------------------------------------------------------------------------------------------------------
# Which components share joules.

_NUMBER = r"[-_ ]?(\d[\w-]*)?"  # which of several
# Meters of the whole machine, the widest first: all else is in them, also of other logs.
_MACHINE = (
    pattern(r"vdd_in|pom_5v_in|system\d*|total|node|syswatt", re.IGNORECASE),
    pattern(r"(energy-)?psys|platform", re.IGNORECASE),
)
_WITHOUT_GPUS = 1  # the place of what has no GPUs of their own boards in it
# A package, and what lies in it in the same log.
_PACKAGE = pattern(rf"(?:(?:energy-)?(?:pkg|package)|cpu|socket){_NUMBER}|pkgwatt", re.IGNORECASE)
_IN_PACKAGE = pattern(rf"(?:cores?|uncore|pp[01]){_NUMBER}|energy-cores|energy-gpu|corwatt|gfxwatt", re.IGNORECASE)
_WHOLE_WORDS = pattern(r"(?:.*[\s._-])?")  # that names begin with
# What several meters may be of; one without a number has the joules of all that have one.
_KINDS = (
    _PACKAGE,
    pattern(rf"(?:energy-)?(?:d?ram|mem|memory){_NUMBER}|ramwatt", re.IGNORECASE),
    pattern(rf"gpu{_NUMBER}", re.IGNORECASE),
)
_GPU = pattern(r"(?:gpu|nvml|nvidia|tesla|geforce|quadro).*", re.IGNORECASE)
_MOST = 1.05  # of the power of a whole that a part may have, as meters differ


class Shared(NamedTuple):
    """Power series, renamed until all names differ. wholes: component -> the one whose joules include its own.

    Such joules are never added up. too_large: component -> the one that, by its name, holds it, but has less energy.
    """

    series: list[Series]
    wholes: dict[str, str]
    too_large: dict[str, str]


def shared(series: Sequence[Series]) -> Shared:
    """Rename power series apart, and find which components share joules with others, whatever the series' order."""
    # With their log or a number where components are called the same.
    names: list[str] = []
    for each in series:
        alike = [other for other in series if other.component == each.component]
        name = each.component + when(len(alike) > 1, f" ({Path(each.source).name})")
        before = sum(other == name or other.startswith(f"{name} #") for other in names)
        names.append(name + when(before, f" #{before + 1}"))
    named = [replace(each, component=name) for each, name in zip(series, names, strict=True)]
    wholes: dict[str, str] = {}
    too_large: dict[str, str] = {}
    for place, part in enumerate(series):
        candidates = list(_candidates(place, series))
        found = next((other for other in candidates if _fits(part, series[other])), None)
        if found is not None:
            wholes[names[place]] = names[found]
        elif candidates:
            too_large[names[place]] = names[candidates[0]]
    return Shared(named, wholes, too_large)


def _candidates(place: int, series: Sequence[Series]) -> Iterator[int]:
    """The places of series whose joules, by their names, include those of the series at `place`, the widest first."""
    part = series[place]
    for other, whole in enumerate(series):
        if part.within and whole.source == part.source and re.fullmatch(part.within, whole.component):
            yield other
    widest_first = sorted(range(len(series)), key=lambda other: _width(series[other]))
    rank = _rank(part)
    wider = widest_first[: widest_first.index(place)]
    for other in wider if rank < len(_MACHINE) else widest_first:
        other_rank = _rank(series[other])
        has_no_gpu = other_rank == _WITHOUT_GPUS and _GPU.fullmatch(part.component)
        if other != place and other_rank < len(_MACHINE) and not has_no_gpu:
            yield other
    for other in widest_first:
        if series[other].source == part.source and _same(_PACKAGE, series[other], _IN_PACKAGE, part):
            yield other
    for other in wider:
        if any(_same(kind, series[other], kind, part) for kind in _KINDS):
            yield other


def _rank(series: Series) -> int:
    """How much of a machine a meter sees: its place in `_MACHINE`, the widest 0; the number of these for any other."""
    return next((rank for rank, kind in enumerate(_MACHINE) if kind.fullmatch(series.component)), len(_MACHINE))


def _width(series: Series) -> tuple[int, bool, float, str, str]:
    """The sort key of a power series: those of a whole machine first, then those without a number, the most joules."""
    joules, _ = series.seen(series.edges[0], series.edges[-1])
    is_numbered = any(match[1] for kind in _KINDS if (match := kind.fullmatch(series.component)))
    return _rank(series), is_numbered, -joules, series.source, series.component


def _fits(part: Series, whole: Series) -> bool:
    """Whether `part` may be in the power of `whole`: while both are known it has no more joules, give or take 5 %."""
    # A part without a number is of all packages, of which the whole is one.
    found, package = _IN_PACKAGE.fullmatch(part.component), _PACKAGE.fullmatch(whole.component)
    if found and package and package[1] and not found[1]:
        return True
    edges = np.unique(np.concatenate([part.edges, whole.edges]))
    begin_s, end_s = edges[:-1], edges[1:]
    seconds = end_s - begin_s
    both = (part.known_s(begin_s, end_s) > seconds / 2) & (whole.known_s(begin_s, end_s) > seconds / 2)
    part_j = float(part.energy_j(begin_s, end_s)[both].sum())
    return not both.any() or part_j <= _MOST * float(whole.energy_j(begin_s, end_s)[both].sum())


def _same(kind: re.Pattern[str], whole: Series, of_part: re.Pattern[str], part: Series) -> bool:
    """Whether two components that may share joules are of these kinds, and of one number where both have one.

    The words that both begin with say nothing: "total_cpu package" and "total_cpu core" are a package and its cores.
    """
    both = [whole.component, part.component]
    alike = _WHOLE_WORDS.match(commonprefix(both))
    for start in (0, alike.end() if alike else 0):
        found, other = kind.fullmatch(both[0][start:]), of_part.fullmatch(both[1][start:])
        if found is not None and other is not None:
            return not found[1] or not other[1] or found[1] == other[1]
    return False


def sharing_warnings(found: Shared) -> Iterator[str]:
    """Sentences on joules that are shared: what is added up, and what is not."""
    source = {each.component: each.source for each in found.series}
    for part, whole in found.wholes.items():
        if source[part] != source[whole]:
            yield (
                f"{part} of {source[part]} is taken to have the joules of {whole} of {source[whole]}, and is not "
                "added; if they are of different machines, rename its column."
            )
    for whole in dict.fromkeys(found.wholes.values()):
        alike = [part for part, of in found.wholes.items() if of == whole and source[part] == source[whole]]
        same = [part for part in alike if any(kind.fullmatch(whole) and kind.fullmatch(part) for kind in _KINDS)]
        if same:
            yield f"{source[whole]}: the joules of {listed(same)} are taken to be in those of {whole}, and added once."
    for part, whole in found.too_large.items():
        yield (
            f"{part} of {source[part]} has more joules than {whole} of {source[whole]}, so it is not taken to lie in "
            "it, and is added."
        )
    added = [each for each in found.series if each.component not in found.wholes]
    if len({each.source for each in added}) > 1:
        names = listed([f"{each.component} ({each.source})" for each in added][:6])
        yield f"The total adds up {names}: give one log if two of them see the same joules."

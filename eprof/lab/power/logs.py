"""Reads a power meter's log as `Series`: rows of `meters` get times, devices a series each; disorder is left out."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from shlex import quote

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats, Ints
from eprof.base.errors import LogError
from eprof.base.optional import either, gathered
from eprof.base.resources import lines as lines_of
from eprof.base.resources import log_start
from eprof.base.text import by_sign, counted, few, pattern, phrase, when
from eprof.lab.power import long_logs
from eprof.lab.power.long_logs import LongLog
from eprof.lab.power.meters import BUSY, JOULE, PACE, SAMPLED, SHARE, WATT, Meter, NoSeries, Reading, Row, known
from eprof.lab.power.meters import rows as rows_of
from eprof.lab.power.series import DAY_S, MOST_W, Series, moment, spread_stamps, without_changes
from eprof.logs import stream

_MOST_BYTES = 256 << 20
_OF_REPORT = 0.1  # of the lines of a file: what has fewer rows is a report with a table of watts in it
_FEW = 0.1  # of the samples of a meter may be below 0; what has more is no power drawn
_MOSTLY = 0.8  # of the moments of several devices have a row of each
_NEAR_S = 0.5  # devices of one moment are read more quickly one behind the other than this
_FALLS = {JOULE: 1 / 3, "s": 1 / 8}  # of the steps of counters and times may be falls; what has more is neither
_PACKED = {b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}
_START = 4000  # lines of a long log that tell which meter wrote it, and its devices
_LONG = 1 << 20  # bytes that are read at once
_LONGEST_CUT = 1 << 16  # bytes at the end of a log in which its last lines are
_NO_UNIT = "no unit is written for its time; taken for s"
_FINE = "nvidia-smi --query-gpu=timestamp,power.draw --format=csv -lms 100"  # of a meter that logs such times
_RUNS = "; where a row is a whole run, `eprof tune` reads it (--mapping)"
_NUMBER_AT_END = pattern(r"(?<![\w.])\d[\d.]*\Z")


class _Track(Struct):
    """A component's samples in a meter's log: times in s and values (NaN: not known) in W, J or as `kind` says."""

    component: str
    kind: str
    is_step: bool
    within: str
    times: Floats
    values: Floats

    def is_mean(self, meter: Meter) -> bool:
        """Whether a value is of the time up to its moment, and not what was seen at it."""
        return self.is_step or meter.value == "mean" or self.kind in SAMPLED


class _Log(Struct):
    """A meter's log being read, with what is found out: notes on what is not in it; the kind of its times (`Moment`).

    interval_s: how often the meter was read, where that is known; is_asked: rows are as far apart, by the user.
    """

    path: str
    meter: Meter
    notes: list[str]
    interval_s: float | None
    is_asked: bool
    absolute: bool = False
    zoned: bool = False
    of_day: bool = False

    def note(self, words: str) -> None:
        """Add a sentence to the notes, behind the log's path."""
        self.notes.append(f"{self.path}: {words}")

    def error(self, words: str) -> LogError:
        """A LogError that names the log."""
        return LogError(f"{self.path}: {words}")


def read(path: str, notes: list[str], interval_s: float | None = None) -> list[Series]:
    """The power series of a meter's log; see `sampled`, whose other series are dropped."""
    return sampled(path, notes, interval_s)[0]


def sampled(path: str, notes: list[str], interval_s: float | None = None) -> tuple[list[Series], list[Series]]:
    """The power series of a meter's log, and series of what it sampled beside them: shares of time, clocks in MHz.

    notes: takes sentences on what is not in it. interval_s: how often the meter was read, where its log does not tell.
    Raises LogError, with the line where there is one.
    """
    blocks = _blocks(path, notes)
    head = list(islice(blocks, 2))
    layout = None
    if len(head) > 1:
        lines = lines_of(head[0])[:_START]
        meter, _ = _recognised(path, lines)
        layout = meter.layout(path, lines)
    if layout is not None:
        long = long_logs.read(layout, chain(head, blocks), path)
        log = _Log(path, meter, [], interval_s or meter.interval_s(lines), interval_s is not None)
        tracks = _of_long(log, long)
        untold = long.untold
    else:
        lines = _lines(path, chain(head, blocks))
        meter, rows = _recognised(path, lines)
        log = _Log(path, meter, [], interval_s or meter.interval_s(lines), interval_s is not None)
        tracks = list(_tracks(meter, rows, _moments(log, rows)))
        untold = {reading.component for row in rows for reading in row.readings if not reading.told}
    busy = [track for track in tracks if track.kind == BUSY]
    tracks = [part for track in tracks if track.kind != BUSY for part in _of_devices(log, track)]
    if meter.zero:
        tracks = [track for track in tracks if (track.values > 0).any()]
    beside = [track for track in tracks if track.kind in SAMPLED and track.kind != PACE]
    tracks = [track for track in tracks if track.kind not in SAMPLED]
    known_ = [track for track in tracks if not np.isnan(track.values).all()]
    if not known_:
        names = [track.component for track in tracks] or ["its power"]
        raise log.error(f"no cell of {few(names, 3)} holds a number.")
    if untold:
        log.note(f"no unit is written for {', '.join(sorted(untold))}; taken for W")
    # Beside counters, which end with their last sample, power does, too.
    holds = not any(track.kind == JOULE for track in known_)
    series = [_series(log, track, holds) for track in known_]
    ends_s = [each.edges[-1] for each in series]
    is_apart = max(ends_s) - min(ends_s) > min(each.period_s for each in series) / 2
    if holds and (is_apart or any(each.unknown_s for each in series)):
        # Joules are lower bounds, as some power is not known: what is held on would be none.
        pairs = zip(series, known_, strict=True)
        series = [each if track.is_mean(log.meter) else each.ended() for each, track in pairs]
    for each in series:
        if each.unknown_s:
            why = "gaps, holes, counters that fell, clocks that went back"
            log.note(f"the power of {each.component} is not known for {each.unknown_s:.3g} s ({why})")
    # Of devices without any reading, beside others that have some, no power is known: joules of all are lower bounds.
    told = {track.component for track in known_}
    kinds = {name.rpartition(" ")[0] for name in told} - {""}
    for name, silent in {track.component: track for track in tracks if track.component not in told}.items():
        with suppress(LogError):  # too few rows
            if name.rpartition(" ")[0] in kinds:
                series.append(_series(log, replace(silent, kind=WATT, is_step=False), holds))
    notes.extend(dict.fromkeys(log.notes))
    return series, _beside_power(log, beside, busy, holds)


def _beside_power(log: _Log, sampled: Sequence[_Track], busy: Sequence[_Track], holds: bool) -> list[Series]:
    """What was sampled beside power as series; what is odd in its times and devices was said of power.

    busy: tracks of for how long anything ran; those that cannot be read are left out, as power is known without them.
    """
    shares: list[Series] = []
    for track in sampled:
        share = _series(log, track, holds)
        # Fields of one device have the same times, which are held once.
        same = next((each.edges for each in shares[::-1] if np.array_equal(each.edges, share.edges)), share.edges)
        shares.append(replace(share, edges=same))
    for track in busy:
        with suppress(LogError):
            parts = [part for part in _of_devices(log, track) if np.isfinite(part.values).any()]
            shares += [_series(log, part, holds) for part in parts]
    return shares


def are_sampled(paths: Iterable[str]) -> bool:
    """Whether files are logs of how busy a GPU's units were, by their first lines. Raises LogError: only some are."""
    are = {}
    for path in paths:
        try:
            _, rows = _recognised(path, lines_of(next(_blocks(path, []), b""))[:_START])
        except (LogError, csv.Error):
            rows = []
        are[path] = any(reading.kind == SHARE for row in rows[:1] for reading in row.readings)
    if any(are.values()) and not all(are.values()):
        other = next(path for path, is_log in are.items() if not is_log)
        raise LogError(f"{other}: is no log of sampled activity, as others are; give those alone.")
    return any(are.values())


def what_it_is(path: str) -> str | None:
    """What a file with joules or watts but no kernels is, and what reads it, as a phrase; None: it is no such file."""
    meters, others = known()
    try:
        lines = _lines(path, _blocks(path, []))
        if (other := _other_report(others, lines)) is not None:
            use = other.use or "it tells no kernels; give its joules with --energy, beside a profiler's log"
            return f"{other.what}; {use.replace('PATH', quote(path))}"
        told = ((meter, list(rows_of(meter, path, lines))) for meter in meters)
        meter, rows = next(((meter, rows) for meter, rows in told if _is_by(meter, rows, lines)), (None, []))
    except (LogError, csv.Error):
        return None
    if meter is None or (meter.generic and _are_runs(rows)):
        return None
    return (
        f"power over time, as {meter.meter} writes it, which tells no kernels: `eprof timeline {quote(path)}` reads "
        "it; or give its joules with --energy, beside a profiler's log"
    )


def _is_by(meter: Meter, rows: Sequence[Row], lines: Sequence[str]) -> bool:
    """Whether `rows` show that this meter wrote the log: there are some; of a generic table, a tenth of its lines."""
    return bool(rows) and (not meter.generic or len(rows) >= _OF_REPORT * len(lines))


def _are_runs(rows: Sequence[Row]) -> bool:
    """Whether each row of a table is of a whole run, not of a moment: its times or counted joules fall too often."""
    device = rows[0].readings[0].device
    own = [row for row in rows if row.readings[0].device == device]
    moments = [moment(row.time) for row in own]
    joules = [row.readings[0].value for row in own if row.readings[0].kind == JOULE and not row.readings[0].is_step]
    is_date = any(time.absolute or time.of_day for time in moments)
    times = np.array([time.seconds for time in moments])
    return _falls(np.array(joules), JOULE) or (not is_date and _falls(times, "s"))


def _falls(values: Floats, unit: str) -> bool:
    """Whether more steps of `values`, (n,), fall than faults explain, and not all do. unit: a key of `_FALLS`."""
    steps = np.diff(values)
    return bool((steps < 0).sum() > max(1, _FALLS[unit] * len(values)) and (steps > 0).any())


def _other_report(others: Iterable[NoSeries], lines: Sequence[str]) -> NoSeries | None:
    return next((other for other in others if any(re.search(other.sign, line[:2000]) for line in lines[:50])), None)


def _pace_s(log: _Log, joules: Floats, watts: Floats, of_each: int) -> float | None:
    """How long a meter's row lasts in s: a counter's joules, (n,), over the sum of watts, (n,); None: not known.

    of_each: how many samples a row is the mean of, for the note.
    """
    told = np.flatnonzero(~np.isnan(joules))
    if len(told) < 2 or not np.nansum(watts) > 0:
        return None
    spent_j = np.diff(joules[told])
    grew = spent_j >= 0  # a counter that fell was set back
    drawn_w = np.add.reduceat(np.nan_to_num(watts[: told[-1]]), told[:-1])
    if not spent_j[grew].sum() > 0 or not drawn_w[grew].sum() > 0:
        return None
    step_s = float(spent_j[grew].sum() / drawn_w[grew].sum())
    log.note(f"has no times; a row is {1e3 * step_s / of_each:.4g} ms, by its joules over its watts")
    return step_s


def _of_long(log: _Log, long: LongLog) -> list[_Track]:
    """The samples of each component in a long table; sets in `log` of what kind times are. Raises LogError."""
    has_times, times = bool(long.layout.times), long.times
    step_s = log.interval_s and log.interval_s * long.of_each
    by_device = {device: long.rows(device) for device in long.devices}
    for own in by_device.values():
        kinds = {power.kind: own.values[place] for place, power in enumerate(long.layout.powers)}
        if not has_times and not step_s and {JOULE, PACE} <= kinds.keys():
            step_s = _pace_s(log, kinds[JOULE], kinds[PACE], long.of_each)
        if long.of_each > 1 and long.layout.device_at is None and (own.begin_s == own.end_s).mean() > _MOSTLY:
            raise _several_rows_error(log, "power")
    if not has_times and not step_s:
        raise _no_times_error(log)
    if long.of_each > 1:
        log.note(f"is long; {long.of_each} samples of a device are one, their mean")
    if long.turned:
        log.note(
            f"{', '.join(sorted(long.turned))} took turns with other fields: a 0 in "
            f"{100 * long.turns[0] / long.turns[1]:.0f} % of the busy samples is no measurement, and others stand in."
        )
    if log.meter.generic and has_times and long.layout.unit_s is None and not (times.absolute or times.of_day):
        log.note(_NO_UNIT)
    log.interval_s, log.absolute, log.zoned, log.of_day = step_s, *times[1:]
    tracks = []
    for device, own in by_device.items():
        if not has_times:
            own.begin_s = np.multiply(step_s or 0.0, np.arange(len(own)), dtype=float)
            own.end_s = own.begin_s + (step_s or 0.0)
        for place, power in enumerate(long.layout.powers):
            label = power.component + phrase(" {}", device)
            within = long.layout.form.within.get(power.component, "")
            is_step = power.is_step or log.meter.value == "joules"
            track = _Track(label, power.kind, is_step, within, own.begin_s, own.values[place])
            if track.is_mean(log.meter):
                track.times = own.end_s
            tracks.append(track)
    return tracks


def _no_times_error(log: _Log) -> LogError:
    usual = when(log.meter.usual, f" ({log.meter.meter}: {log.meter.usual})")
    return log.error(
        f"{log.meter.meter} wrote no times, and nothing in the log says how often it read; say so with "
        f"`eprof timeline {quote(log.path)} --interval 1s`{usual}."
    )


def _recognised(path: str, lines: Sequence[str]) -> tuple[Meter, list[Row]]:
    """The meter that wrote a log, and its rows. Raises LogError: none that is known, or there is no power over time."""
    meters, others = known()
    empty: tuple[Meter, list[Row]] | None = None
    for meter in meters:
        other = _other_report(others, lines) if meter.generic else None
        if other is not None and empty is None:
            use = other.use.replace("PATH", quote(path)) or "log samples instead (docs/timeline.md)"
            raise LogError(f"{path}: is {other.what}, and no power over time; {use}.")
        try:
            rows = list(rows_of(meter, path, lines))
        except (LogError, csv.Error) as err:
            raise LogError(f"{path}{when(not str(err).startswith(':'), ': ')}{err}") from err
        has_readings = any(not math.isnan(reading.value) for row in rows for reading in row.readings)
        if has_readings and _is_by(meter, rows, lines):
            return meter, rows
        is_sure = _is_by(meter, rows, lines) and not (meter.table and meter.table.separator)
        empty = empty or ((meter, rows) if is_sure else None)
    if empty is None:
        raise LogError(
            f"{path}: no power over time was found; give a table with a column of time (`time_s`, `timestamp`) and "
            "columns of power with their unit in the header (`cpu_w`, `power.draw [W]`), or a log that "
            f"docs/timeline.md names{_RUNS}."
        )
    return empty


def _blocks(path: str, notes: list[str]) -> Iterator[bytes]:
    """The lines of a meter's log, unpacked, without a last one that may be cut inside a number. Raises LogError."""
    log_start(path, 0)  # what is no file is refused before it is waited for
    source = stream.open_source(path)
    before = last = b""
    with source.handle:
        how = next((name for sign, name in _PACKED.items() if source.head.startswith(sign)), None)
        if how:
            raise LogError(f"{path}: is packed with {how}; unpack it first (gzip and zstd are read as they are).")
        for block in stream.blocks(source, stream.Tuning()):
            if len(last) < _LONG:  # the first one is short
                last += block
                continue
            yield last
            before, last = last[-_LONGEST_CUT:], block
    notes.extend(f"{path}: {note}" for note in source.notes)
    ends = lines_of(before + last[-_LONGEST_CUT:])[-2:]
    if len(ends) > 1 and not source.ends_with_newline:
        # The last number may lack digits: not if it has as many decimals as the one before.
        above, number = ("".join(_NUMBER_AT_END.findall(line.rstrip(" \t,;"))) for line in ends)
        decimals = len(number.partition(".")[2])
        is_whole = decimals == len(above.partition(".")[2]) > 0 and ends[1][-1:].isdigit()
        if number and not is_whole:
            notes.append(f"{path}: the last line has no end, so its last number may be cut; it was left out")
            last = last[: last.rfind(b"\n") + 1]
    yield last


def _lines(path: str, blocks: Iterable[bytes]) -> list[str]:
    """The lines of a log that is held as a whole. Raises LogError."""
    content = bytearray()
    for block in blocks:
        content += block
        if len(content) > _MOST_BYTES:
            raise LogError(f"{path}: holds more than {_MOST_BYTES >> 20} MB of text; cut it in parts.")
    return lines_of(bytes(content))


def _moments(log: _Log, rows: Sequence[Row]) -> list[float]:
    """The time of each row in s, NaN where it has none; sets in `log` of what kind times are. Raises LogError."""
    meter = log.meter
    read_ = long_logs.moments_of(rows, log.path)
    times = [time.seconds for time in read_]
    lost = sum(map(math.isnan, times))
    if len(rows) == 1 and not meter.table and meter.value == "sample":
        raise log.error(
            f"is one reading of {meter.meter}, and no power over time; log samples instead (docs/timeline.md)."
        )
    if lost == len(rows):
        device = rows[0].readings[0].device
        own = [{cell.kind: cell.value for cell in row.readings} for row in rows if row.readings[0].device == device]
        joules, watts = (np.array([row.get(kind, math.nan) for row in own]) for kind in (JOULE, PACE))
        log.interval_s, log.is_asked = log.interval_s or _pace_s(log, joules, watts, 1), True
        if not log.interval_s:
            raise _no_times_error(log)
        if meter.devices == "rows" and not device:
            log.note("nothing tells whose each row is, so all are taken for one GPU's")
        return times
    if lost:
        log.note(f"{counted(lost, 'reading')} without a time were left out")
    elapsed = [row.elapsed_s for row in rows if row.elapsed_s is not None]
    if len(elapsed) == len(rows):  # finer than the stamps
        times = (times[0] + np.cumsum(elapsed) - elapsed[0]).tolist()
        log.interval_s = elapsed[0]
    if meter.generic and rows[0].unit_s is None and not any(time.absolute or time.of_day for time in read_):
        log.note(_NO_UNIT)
    log.absolute, log.zoned, log.of_day = (any(time[at] for time in read_) for at in (1, 2, 3))
    return times


def _tracks(meter: Meter, rows: Sequence[Row], moments: Sequence[float]) -> Iterator[_Track]:
    """Yield the samples of each component and device; of a meter whose devices are "added", their sum a component."""
    samples: dict[tuple[str, str], list[tuple[float, Reading]]] = {}
    has_times = not all(map(math.isnan, moments))
    for row, time_s in zip(rows, moments, strict=True):
        if has_times and math.isnan(time_s):
            continue
        for reading in row.readings:
            label = reading.component + when(reading.device and meter.devices != "added", f" {reading.device}")
            samples.setdefault((label, reading.device), []).append((time_s, reading))
    tracks = {}
    for (label, device), own in samples.items():
        _, first = own[0]
        times, values = np.array([(time_s, reading.value) for time_s, reading in own]).T
        is_step = first.is_step or meter.value == "joules"
        tracks[label, device] = _Track(label, first.kind, is_step, first.within, times, values)
    if meter.devices != "added":
        yield from tracks.values()
        return
    # Devices whose joules are added up, moment by moment; not known where one of them is not there.
    for name in dict.fromkeys(component for component, _ in tracks):
        same = [track for (component, _), track in tracks.items() if component == name]
        pairs = (dict.fromkeys(zip(track.times.tolist(), track.values.tolist(), strict=True)) for track in same)
        parts: dict[float, list[float]] = gathered(chain.from_iterable(pairs))
        most = max(map(len, parts.values()))
        summed = [sum(values) if len(values) == most else math.nan for values in parts.values()]
        yield replace(same[0], times=np.array(list(parts)), values=np.array(summed))


def _of_devices(log: _Log, track: _Track) -> Iterator[_Track]:
    """Yield `track`, or one for each device where rows of several come together and no column tells them apart.

    Raises LogError: nobody knows whether rows of one moment are of several devices or of one that is read more often.
    """
    times, values = track.times, track.values
    near, sizes = _rows_at_each_moment(times, True), _rows_at_each_moment(times, False)
    most = int(np.median(near))
    is_several = log.meter.devices == "rows" and most > 1 and float((near == most).mean()) > _MOSTLY
    first = np.cumsum(sizes) - sizes
    usual = float(np.median(sizes))
    is_one_moment = len(times) > 1 == len(sizes)
    if is_one_moment and not log.is_asked:
        raise log.error(
            f"all {len(times):,} rows of {track.component} have one time, so nothing tells how long they are apart; "
            f"log fractions of a second (`{_FINE}`), or say how often one is read (`eprof timeline --interval 100ms`)."
        )
    if is_one_moment or log.meter.devices == "one" or (usual < 2 and not is_several):
        yield track
    elif usual >= 2 and (np.isnan(values) | (values == np.repeat(values[first], sizes))).all():
        log.note(f"rows of {track.component} at one moment are the same, and count once")
        yield replace(track, times=times[first], values=values[first])
    elif is_several and (near[:-1] == most).all() and near[-1] <= most:
        log.note(f"no column tells its {most} GPUs apart; they are taken from the order of the rows of a moment")
        for place in range(most):
            name = f"{track.component} {place}"
            yield replace(track, component=name, times=times[place::most], values=values[place::most])
    elif log.is_asked and not is_several:
        yield track
    else:
        raise _several_rows_error(log, track.component)


def _several_rows_error(log: _Log, component: str) -> LogError:
    return log.error(
        f"several rows of {component} have one time: of several devices, or of one that is read more often than its "
        "clock moves? Add a column that tells devices apart (`index`), or say how often one is read (`eprof timeline "
        "--interval 100ms`)."
    )


def _rows_at_each_moment(times: Floats, is_near: bool) -> Ints:
    """How many rows in turn share one moment, (n_moments,); is_near: times that are nearly the same are one moment."""
    steps = np.diff(times)
    if not len(steps) or np.isnan(steps).any():
        return np.ones(len(times), np.int64)
    usual = np.sort(np.abs(steps))[: math.ceil(0.98 * len(steps))]
    least_s = is_near * min(usual.mean() / 2, _NEAR_S)
    begins = np.flatnonzero(np.append(True, np.abs(steps) > least_s))
    return np.diff(np.append(begins, len(times)))


def _series(log: _Log, track: _Track, holds: bool) -> Series:
    """The samples of a component as a `Series`. Samples that go back in time are left out: power is not known there.

    Nor is it where values are below 0. Raises LogError: there are too few, or they are no power.
    """
    path, name, times, values = log.path, track.component, track.times, track.values
    is_mean = track.is_mean(log.meter)
    if track.kind == JOULE and not track.is_step:  # a counter goes on where it was not read
        times, values = times[~np.isnan(values)], values[~np.isnan(values)]
    low = int((values < 0).sum())
    if low > _FEW * len(values):
        raise log.error(f"{name} is below 0 in {low:,} of {len(values):,} samples: nothing draws that.")
    if low:
        log.note(f"{counted(low, 'sample')} of {name} below 0 are not known")
    if log.is_asked and (np.isnan(times) | (np.diff(times, append=np.inf) == 0)).any():
        begin_s = float(np.nan_to_num(times[0]))
        times = np.array(begin_s + (log.interval_s or 0.0) * (np.arange(len(times)) + is_mean))
    times, values, turned_s = _in_order(log, name, times, np.where(values < 0, np.nan, values))
    if len(times) < 2 and not (is_mean and log.interval_s and len(times)):
        raise log.error(f"{name} has fewer than two samples, so nothing is known between them.")
    start_s = None if log.absolute else log.meter.start_s
    if is_mean:
        usual_s = log.interval_s or float(np.median(np.diff(times)))
        edges = np.append(either(start_s, times[0] - usual_s), times)
        watts = values / np.diff(edges) if track.is_step else values
        made = Series.of_means(name, path, edges, watts, log.absolute)
    elif track.kind == JOULE:
        if start_s is not None:
            times, values = np.append(start_s, times), np.append(0.0, values)
        if _falls(values, JOULE):
            raise log.error(f"{name} falls again and again, so its joules are no counter; log W, or a counter{_RUNS}.")
        made = Series.of_counter(name, path, times, values, log.absolute)
    else:
        made = Series.of_power(name, path, times, values, log.absolute, holds)
    steps = np.searchsorted(made.edges, turned_s, side="right") - 1
    is_high = made.watts >= MOST_W
    watts = np.where(is_high, np.nan, made.watts)
    watts[np.minimum(steps, len(watts) - 1)] = np.nan
    if is_high.any():
        log.note(f"{counted(int(is_high.sum()), 'sample')} of {name} of {MOST_W:.0e} W and more: not known")
    return replace(made, watts=watts, zoned=log.zoned, within=track.within, explained=name in log.meter.explained)


def _in_order(log: _Log, name: str, times: Floats, values: Floats) -> tuple[Floats, Floats, list[float]]:
    """Times and values without samples that go back in time, and after which times in s these were. Raises LogError."""
    steps = np.diff(times)
    if not log.absolute and not log.of_day and _falls(times, "s"):
        falls = f"{int((steps < 0).sum()):,} of {len(times):,} rows"
        raise log.error(f"its times go back in {falls}, so rows are of no moments{_RUNS}.")
    if (steps < 0).any() and (steps <= 0).all():  # newest first
        times, values = times[::-1], values[::-1]
    if log.of_day:
        # They go on over midnight.
        times = times + DAY_S * np.append(0, np.cumsum(np.diff(times) < -DAY_S / 2))
    if log.absolute and not log.zoned:
        times, changes = without_changes(times)
        for _, change_s in changes:
            way = by_sign(change_s, "back", "forward")
            log.note(
                f"its clock was set {way} by an hour while it logged, as in the night when clocks change; its times "
                "go on as before, log in UTC to be sure"
            )
    times = spread_stamps(times)
    latest = np.maximum.accumulate(times)
    kept = np.append(True, times[1:] > latest[:-1])[: len(times)]
    if kept.all():
        return times, values, []
    seen = set(zip(times[kept].tolist(), values[kept].tolist(), strict=True))
    again = np.array([pair in seen for pair in zip(times.tolist(), values.tolist(), strict=True)], bool)
    left_out, twice = ~kept & ~again, ~kept & again
    if twice.any():
        log.note(f"{int(twice.sum())} samples of {name} are there twice, and count once")
    if left_out.any():
        behind = "do not come later than the one before, and were left out"
        log.note(f"{int(left_out.sum())} samples of {name} {behind}")
    return times[kept], values[kept], latest[left_out].tolist()

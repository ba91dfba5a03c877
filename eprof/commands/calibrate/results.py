"""Results of a calibration: the worker's JSON lines, judged, as rows for a fit; and power from another meter's log.

A row that is not what it claims says why. `--meter-log`: the worker writes down when each benchmark's window began and
ended; the log has the power of that time. Its dates may have no zone, or its clock be off: that is found where the
counts explain power best. When power changes would not do: benchmarks follow each other so evenly that each could be
taken for the next.
"""

import json
import math
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats
from eprof.base.errors import LogError
from eprof.base.optional import gathered, median_of_known, relative_range, summed
from eprof.base.text import bracketed, counted, listed, pattern
from eprof.base.vocabulary import RANDOM
from eprof.commands.calibrate.manifest import REGIONS, Benchmark, Capability, Manifest, capability_of
from eprof.commands.calibrate.worker import BEGAN, FAILED, LEFT_OUT, LOST, MEASURED
from eprof.lab.power import logs
from eprof.lab.power.marks import Mark, zone_offset_s
from eprof.lab.power.series import Series, utc_text

# Above this, something is counted that was not done. Clocks are read at moments, so a little is no mistake; where the
# rate is no ceiling, some GPUs of the capability have twice the units, or two kinds of them.
IMPOSSIBLE, SUSPICIOUS = 1.1, 4.0


def resource(word: str) -> str:
    """The unit of the hardware that a vocabulary's word keeps busy: "fp32" of "fp32_fma", "dram" of "dram_read"."""
    return word.partition("_")[0]


def peaks(manifest: Manifest, device: Mapping[str, Any], core_mhz: float, memory_mhz: float | None) -> dict[str, float]:
    """Hardware unit -> instructions or bytes a second that the whole device can do at these clocks, where known."""
    capability = capability_of(str(device["capability"]))
    cycles = float(device["sms"]) * core_mhz * 1e6
    rates = {name: rate.at.at(capability) for name, rate in manifest.rates.items()}
    known = {name: rate * cycles for name, rate in rates.items() if rate is not None and cycles > 0}
    ratio = device.get("fp32_to_fp64")
    if ratio and "fp32" in known:
        known["fp64"] = known["fp32"] / float(ratio)
    mhz = memory_mhz or float(device.get("memory_khz") or 0) / 1e3
    if mhz and device.get("bus_bits"):
        # Two transfers a cycle of the clock that the driver and NVML report.
        known["dram"] = 2 * mhz * 1e6 * float(device["bus_bits"]) / 8
    return known


def fraction(counts: Mapping[str, float], time_s: float, known: Mapping[str, float]) -> tuple[float | None, str | None]:
    """(largest share of a peak that one launch of a benchmark reached, that peak's hardware unit).

    counts: what the launch is to do, in time_s; known: `peaks`. (None, None) if one of the peaks is not known.
    """
    if not counts or not set(map(resource, counts)) <= known.keys():
        return None, None
    used = summed((resource(word), count / time_s / known[resource(word)]) for word, count in counts.items())
    busiest = max(used, key=used.__getitem__)
    return used[busiest], busiest


# Beyond this the clock, hence the voltage, is another one than the setting's.
_OTHER_CLOCK = 0.03
# Where a cache is chosen by how much is read: of OpenCL no instruction chooses one.
_LEVELS_BY_SIZE = ("cpu", "opencl")
_FASTER = 1.2  # times what lies behind it, a cache must be
_LEVELS = ("l1", "l2", "l3", "dram")
# The words of measurements.csv: those that the mapping `eprof` prices. The loop's branches have no price of their own.
_WORDS = (
    *(f"fp{bits}_{kind}" for bits in (64, 32, 16) for kind in ("fma", "add", "mul")),
    *("tensor_fp16", "integer", "special", "conversion", "random"),
    *(f"{level}_{way}" for level in ("shared", "l1", "l2", "l3", "dram") for way in ("read", "write")),
)
_DESCRIBED = ("benchmark", "kernel", "core_mhz", "memory_mhz", "time_s", "power_w", "temperature_c")
_JUDGED = (
    *("benchmark", "core_mhz", "memory_mhz", "seen_core_mhz", "time_s", "power_w", "power_spread", "temperature_c"),
    *("fraction", "bound", "rounds", "used"),
)
Event = Mapping[str, Any]


class Row(Struct, frozen=True):
    """One benchmark at one setting: medians over rounds, per launch.

    counts: the vocabulary's words, of one launch. fraction: of the hardware's peak at `bound`; None: not known.
    reasons: why it is left out of the fit; empty if it is not. notes: what is odd, but no reason.
    """

    benchmark: str
    kernel: str
    core_mhz: float
    memory_mhz: float
    time_s: float
    power_w: float | None
    power_spread: float
    temperature_c: float | None
    seen_core_mhz: float | None
    counts: Mapping[str, float]
    fraction: float | None
    bound: str | None
    rounds: int
    reasons: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def used(self) -> bool:
        """Whether a benchmark's row goes into the fit: nothing speaks against that."""
        return not self.reasons


def read(path: Path) -> list[dict[str, Any]]:
    """The worker's events in results.jsonl without a last line that was cut off; [] without a file. Raises LogError."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    events = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            events.append({"event": event["event"], **event})
        except (ValueError, KeyError, TypeError) as err:
            if number == len(lines):
                break
            wrong = f"{path}:{number}: not a result of a calibration; remove the line to go on without it."
            raise LogError(wrong) from err
    return events


def of_setting(events: Sequence[Event], setting: str) -> list[Event]:
    """The worker's events at one setting ("1500/2600")."""
    return [event for event in events if event.get("setting") == setting]


def done(events: Sequence[Event]) -> dict[str, int]:
    """Benchmark -> rounds that need not be run again: those with results; a number above all if it failed."""
    rounds: Counter[str] = Counter(event["name"] for event in events if event["event"] == MEASURED)
    return {**rounds, **dict.fromkeys(failures(events), sys.maxsize)}


def failures(events: Sequence[Event]) -> dict[str, str]:
    """Benchmark -> why it failed, by the worker's events; without one during which the device itself was lost."""
    failed = {}
    for event in events:
        if event["event"] == FAILED:
            failed[event["name"]] = str(event.get("why", ""))
        elif event["event"] == LOST:
            failed.pop(event["name"], None)
    return failed


def crashed(events: Sequence[Event]) -> str | None:
    """The benchmark that had begun and has no result when the worker ended; None if there is none."""
    last = next((event for event in reversed(events) if event["event"] in (BEGAN, MEASURED, FAILED, LEFT_OUT)), {})
    return last.get("name") if last.get("event") == BEGAN else None


def rows(
    manifest: Manifest,
    benchmarks: Sequence[Benchmark],
    device: Mapping[str, Any],
    events: Sequence[Event],
    held: tuple[int, int | None] | None,
    contradictions: Mapping[str, Sequence[str]],
) -> list[Row]:
    """The results at one setting, judged: a `Row` for each measured benchmark, in the order of `benchmarks`.

    held: the clocks that were held; None: those in force. contradictions: of machine code, by benchmark.
    """
    measured = gathered((str(event["name"]), event) for event in events if event["event"] == MEASURED)
    setting = _clocks(measured, held, device)
    made = {}
    for benchmark in benchmarks:
        if rounds := measured.get(benchmark.name):
            made[benchmark] = _row(manifest, device, benchmark, rounds, setting, contradictions.get(benchmark.name, ()))
    if device["processor"] in _LEVELS_BY_SIZE:
        return _of_their_levels(made)
    return list(made.values())


def _of_their_levels(rows: Mapping[Benchmark, Row]) -> list[Row]:
    """The rows, with a reason to leave one out where its cache was no faster than the level behind, so held no bytes.

    Others on the machine may fill a cache that all cores share, a virtual machine may have less of it than it says, and
    OpenCL tells the size of one cache and not of which. Of mixes, whose arithmetic may hide it, reads decide.
    """
    by_work: dict[tuple[object, str], Row] = {(_work(each), each.region): row for each, row in rows.items()}
    reasons: dict[Benchmark, str] = {}
    for benchmark, row in rows.items():
        farther = REGIONS[REGIONS.index(benchmark.region) + 1 :]
        behind = next(filter(None, (by_work.get((_work(benchmark), region)) for region in farther)), None)
        if behind is None or not _level(benchmark) or _is_mix(benchmark):
            continue
        if _bytes_s(row) < _FASTER * _bytes_s(behind):
            why = f"it ran at {_bytes_s(row) / _bytes_s(behind):.2f} times the speed of {behind.benchmark}"
            reasons[benchmark] = f"{why}: its cache did not hold what it reads"
    slow = {_level(benchmark): benchmark.name for benchmark in reversed(reasons)}
    for benchmark in filter(_is_mix, rows):
        if (name := slow.get(_level(benchmark))) is not None:
            reasons[benchmark] = f"{name} shows that this cache does not hold what is read from it"
    own = [(row, filter(None, [reasons.get(benchmark)])) for benchmark, row in rows.items()]
    return [replace(row, reasons=(*row.reasons, *more)) for row, more in own]


def _level(benchmark: Benchmark) -> str:
    """The cache level, or "dram", whose bytes a benchmark counts; "" for none, or shared memory."""
    return next((resource(word) for word in benchmark.count if resource(word) in _LEVELS), "")


def _is_mix(benchmark: Benchmark) -> bool:
    return any(word.endswith("_fma") for word in benchmark.count)


def _work(benchmark: Benchmark) -> tuple[object, ...]:
    """A key for what a turn of a benchmark's loop does, without the level of its bytes: equal for the same work."""
    level = f"{_level(benchmark)}_"
    counts = {(word.removeprefix(level), formula.text) for word, formula in benchmark.count.items() if word != RANDOM}
    return benchmark.spread, frozenset(counts)


def _bytes_s(row: Row) -> float:
    return sum(count for word, count in row.counts.items() if resource(word) in _LEVELS) / row.time_s


def _clocks(
    measured: Mapping[str, Sequence[Event]], held: tuple[int, int | None] | None, device: Mapping[str, Any]
) -> tuple[float, float]:
    """(Core, memory) MHz of results: clocks that were held, else those most benchmarks ran at, else the driver's.

    NaN for both where one is not known: a processor's, which nobody holds, or a GPU's that nobody tells.
    """
    seen = [event["seen"] for events in measured.values() for event in events]
    setting: list[float] = []
    for domain, held_mhz in zip(("core", "memory"), held or (None, None), strict=True):
        known = sorted(mhz for clocks in seen if (mhz := clocks.get(f"{domain}_mhz")))
        # The clock that most results are near to; of several, the one seen most often.
        near = {mhz: (sum(_is_near(mhz, clock) for clock in known), known.count(mhz)) for mhz in known}
        commonest = max(near, key=near.__getitem__, default=None)
        setting.append(float(held_mhz or commonest or float(device.get(f"{domain}_khz") or 0) / 1e3))
    core, memory = setting
    return (core, memory) if core and memory else (math.nan, math.nan)


def _is_near(mhz: float, setting: float) -> bool:
    return abs(mhz - setting) <= _OTHER_CLOCK * setting


def _row(
    manifest: Manifest,
    device: Mapping[str, Any],
    benchmark: Benchmark,
    rounds: Sequence[Event],
    setting: tuple[float, float],
    contradictions: Sequence[str],
) -> Row:
    """Judge the rounds of one benchmark at one setting: their medians, and reasons to leave the row out of the fit."""
    last = rounds[-1]
    capability = capability_of(str(device["capability"]))
    launch = benchmark, capability, last["blocks"] * last["block"], last["iterations"]
    # Rounds may differ in iterations: their times are brought to those of the last.
    time_s = statistics.median(event["time_s"] * last["iterations"] / event["iterations"] for event in rounds)
    watts = [event["power_w"] for event in rounds if event["power_w"] is not None]
    power, spread = median_of_known(watts), relative_range(watts) or 0.0
    seen = [event["seen"] for event in rounds]
    core, memory, temperature = (
        median_of_known([clocks.get(name) for clocks in seen]) for name in ("core_mhz", "memory_mhz", "temperature_c")
    )
    known = peaks(manifest, device, core or setting[0], memory)
    reached, bound = fraction(manifest.counts(*launch, overhead=False), time_s, known)
    reasons = list(contradictions)
    if reached is not None and bound is not None:
        is_ceiling = bound == "dram" or (bound in manifest.rates and manifest.rates[bound].ceiling)
        ran = f"it ran at {reached:.0%} of the peak of {bound}"
        if reached < benchmark.least:
            reasons.append(f"{ran}, less than {benchmark.least:.0%}")
        if reached > SUSPICIOUS or (is_ceiling and reached > IMPOSSIBLE):
            reasons.append(f"{ran}: it cannot have done what it claims")
    if core is not None and setting[0] > 0 and not _is_near(core, setting[0]):
        slowed_by = ", ".join(sorted({reason for clocks in seen for reason in clocks.get("slowed_by", ())}))
        reasons.append(f"it ran at {core:.0f} MHz{bracketed(slowed_by)}, the setting is {setting[0]:.0f} MHz")
    if power is None or power <= 0:
        reasons.append(last.get("no_power", "the meter gave no power"))
    if benchmark.needs_counters:
        reasons.append(f"its counts are not confirmed: {benchmark.needs_counters}")
    if benchmark.unfitted:
        reasons.append(benchmark.unfitted)
    oddities = []
    if spread > 0.05:
        oddities.append(f"its rounds differ by {spread:.0%} in power")
    moved = max((clocks.get("core_mhz_spread") or 0.0 for clocks in seen), default=0.0)
    if moved > 0.01:
        oddities.append(f"its clock moved by {moved:.0%}")
    return Row(
        benchmark.name,
        benchmark.kernel,
        *setting,
        time_s=time_s,
        power_w=power,
        power_spread=spread,
        temperature_c=temperature,
        seen_core_mhz=core,
        counts={**manifest.counts(*launch), **manifest.flops(benchmark, *launch[2:])},
        fraction=reached,
        bound=bound,
        rounds=len(rounds),
        reasons=tuple(reasons),
        notes=tuple(oddities),
    )


def accessed(counts: Mapping[str, float], capability: Capability, has_l3: bool = False) -> dict[str, float]:
    """The counts, with bytes at all cache levels that they pass, not only that which serves them: L3 (if any), L2, L1.

    Not on Kepler (3.x), whose global loads leave L1 out; stores count in L1, one unit for both, from Volta (7.0) on.
    """
    totals = dict(counts)
    pass_l1 = {"read": capability[0] != 3, "write": capability[0] >= 7}
    for way, passes_l1 in pass_l1.items():
        beyond_l2 = counts.get(f"l3_{way}", 0.0) + counts.get(f"dram_{way}", 0.0)
        if has_l3:
            totals[f"l3_{way}"] = beyond_l2
        totals[f"l2_{way}"] = counts.get(f"l2_{way}", 0.0) + beyond_l2
        totals[f"l1_{way}"] = counts.get(f"l1_{way}", 0.0) + passes_l1 * totals[f"l2_{way}"]
    return totals


def mapping(rows: Sequence[Row], device: Mapping[str, Any]) -> str:
    """The column mapping's name by which `eprof fit` reads `measurements`: with clocks, or with a device instead."""
    if device["processor"] == "cpu":
        return "eprof-cpu"
    if any(math.isnan(row.core_mhz) for row in rows):
        return "eprof-no-clocks"
    return "eprof"


def untold(rows: Sequence[Row], device: Mapping[str, Any]) -> dict[str, str]:
    """Cache level that bytes pass but no used benchmark reads from -> the level behind it, whose price has both."""
    capability = capability_of(str(device["capability"]))
    used = [row.counts for row in rows if row.used]
    served = _resources(used)
    passed = _resources([accessed(counts, capability) for counts in used])
    return {
        level: next(filter(served.__contains__, _LEVELS[place:]))
        for place, level in enumerate(_LEVELS)
        if level in passed - served
    }


def _resources(counts: Sequence[Mapping[str, float]]) -> set[str]:
    return {resource(word) for of_row in counts for word, count in of_row.items() if count}


def measurements(rows: Sequence[Row], device: Mapping[str, Any]) -> pd.DataFrame:
    """The table of rows that go into a fit, as `eprof fit` reads it by its `mapping`: counts of one launch by word.

    A word whose hardware unit no row uses has no column: it was not measured, which is not the same as 0. Nor has a
    cache level that serves no benchmark: nothing tells its bytes from those of the level behind it.
    """
    used = [row for row in rows if row.used]
    capability = capability_of(str(device["capability"]))
    has_l3 = any("l3_read" in row.counts for row in used)
    counts = [accessed(row.counts, capability, has_l3) for row in used]
    kinds = _resources(counts) - set(untold(rows, device))
    words = [word for word in _WORDS if resource(word) in kinds]
    described = pd.DataFrame([{name: getattr(row, name) for name in _DESCRIBED} for row in used])
    if mapping(rows, device) != "eprof" and used:
        kind = {"cpu": "cpu"}.get(device["processor"], "gpu")
        described = described.drop(columns=["core_mhz", "memory_mhz"]).assign(**{kind: device["name"]})
    counted = pd.DataFrame([{word: of_row.get(word, 0.0) for word in words} for of_row in counts])
    return pd.concat([described, counted], axis=1)


def everything(rows: Sequence[Row]) -> pd.DataFrame:
    """The table rows.csv of a calibration: how each row was judged, and why it was left out of the fit."""
    columns = {name: [getattr(row, name) for row in rows] for name in _JUDGED}
    why = ["; ".join(row.reasons) for row in rows]
    judged = pd.DataFrame({**columns, "why": why, "notes": ["; ".join(row.notes) for row in rows]})
    return judged.rename(columns={"fraction": "fraction_of_peak"})


_GPU = pattern(r"(amd|intel-)?gpu.*|nvml.*|card.*", re.IGNORECASE)
_LEAST_SAMPLES = 3  # in a window
_LEAST_KNOWN = 0.9  # of a window
_SEARCH_S, _STEP_S = 60.0, 0.1  # how far clocks may be apart
_OFF = 0.05  # of the power: counts that explain it better have the right times
_BETTER, _GOOD = 0.5, 0.15  # times as far off, and at most so far: what another offset must come to


class MeterLog(NamedTuple):
    """The file of `--meter-log`, and which of its components the device is; "": the only one, or the only GPU."""

    path: Path
    component: str = ""


def with_power(
    events: Sequence[Event], log: MeterLog, rates: Callable[[Event], Mapping[str, float]], say: Callable[[str], None]
) -> list[Event]:
    """The worker's events, each result with the mean W that a meter's log has of its window, or why none (`no_power`).

    rates: what a result counts in a second, by kind. say: takes sentences on the log, and on clocks that are apart.
    Raises LogError: the log has no dates, or none of the benchmarks' time.
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
            f"{series.source}: has the power from {utc_text(series.edges[0])} to "
            f"{utc_text(series.edges[-1])} UTC, but the benchmarks ran from {utc_text(first_s)} to "
            f"{utc_text(last_s)} UTC; give the log of that time."
        )
    if offset_s := _offset_s(series, windows, counted_s.to_numpy(dtype=np.float64)):
        way = {True: "behind", False: "ahead"}[offset_s > 0]
        say(f"{series.source}: its clock is {abs(offset_s):.1f} s {way}, by what its power would be; moved by that.")
        series = series.shifted(offset_s)
    for note in notes:
        say(f"{note}.")
    return [_with_mean_w(event, series) for event in events]


def _with_mean_w(event: Event, series: Series) -> Event:
    """The worker's event with the mean W of its window, or why the log does not tell it; one without a window as is."""
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


def _has_window(event: Event) -> bool:
    """Whether a worker's event is a result that says when its window was; before `--meter-log` none did."""
    return event["event"] == MEASURED and "utc_s" in event


def _series_of_device(known: Sequence[Series], log: MeterLog) -> Series:
    """The power of the component named, of the log's only one, or of its only GPU. Raises LogError: none of these."""
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

"""What was measured: the worker's JSON lines, judged, as rows for a fit. A row that is not what it claims says why."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from eprof.base.errors import LogError
from eprof.calibration.manifest import Benchmark, Capability, Manifest, capability_of
from eprof.calibration.peaks import IMPOSSIBLE, SUSPICIOUS, fraction, peaks, resource
from eprof.collect.cuda.worker import BEGAN, FAILED, LEFT_OUT, MEASURED

# Beyond this the clock, hence the voltage, is another one than the setting's.
_OTHER_CLOCK = 0.03
_RESTLESS = 0.01
_APART = 0.05
# The words of measurements.csv: those that the mapping `eprof` prices. The loop's branches have no price of their own.
_WORDS = (
    *(f"fp{bits}_{kind}" for bits in (64, 32, 16) for kind in ("fma", "add", "mul")),
    *("tensor", "integer", "special", "conversion"),
    *(f"{level}_{way}" for level in ("shared", "l1", "l2", "dram") for way in ("read", "write")),
)
Event = Mapping[str, Any]


@dataclass(frozen=True)
class Row:
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
        """Whether it goes into the fit."""
        return not self.reasons


def read(path: Path) -> list[dict[str, Any]]:
    """The events in a file of JSON lines, without a last line that was cut off. Raises LogError for other damage."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    found = []
    for number, line in enumerate(lines, 1):
        try:
            event = json.loads(line)
            found.append({"event": event["event"], **event})
        except (ValueError, KeyError, TypeError) as err:
            if number == len(lines):
                break
            raise LogError(
                f"{path}:{number}: not a result of a calibration; remove the line to go on without it."
            ) from err
    return found


def of_setting(events: Sequence[Event], setting: str) -> list[Event]:
    """The events of one setting."""
    return [one for one in events if one.get("setting") == setting]


def done(events: Sequence[Event]) -> dict[str, int]:
    """Rounds that need not be run again, by benchmark: measured ones, and all for those that failed."""
    found: dict[str, int] = {}
    for one in events:
        if one["event"] == MEASURED:
            found[one["name"]] = found.get(one["name"], 0) + 1
        elif one["event"] == FAILED:
            found[one["name"]] = 10**6
    return found


def crashed(events: Sequence[Event]) -> str | None:
    """The benchmark that had begun and did not end; None if none had."""
    begun = None
    for one in events:
        if one["event"] == BEGAN:
            begun = str(one["name"])
        elif one["event"] in (MEASURED, FAILED, LEFT_OUT):
            begun = None
    return begun


def rows(
    manifest: Manifest,
    device: Mapping[str, Any],
    events: Sequence[Event],
    wanted: tuple[int, int | None] | None,
    doubts: Mapping[str, Sequence[str]],
) -> list[Row]:
    """The rows of one setting, in the manifest's order. wanted: the clocks that were held; None: those in force.

    doubts: what the machine code of a benchmark contradicts, by name.
    """
    measured: dict[str, list[Event]] = {}
    for one in events:
        if one["event"] == MEASURED:
            measured.setdefault(one["name"], []).append(one)
    core, memory = _clocks(measured, wanted, device)
    return [
        _row(manifest, device, benchmark, measured[benchmark.name], (core, memory), doubts.get(benchmark.name, ()))
        for benchmark in manifest.benchmarks
        if benchmark.name in measured
    ]


def _clocks(
    measured: Mapping[str, Sequence[Event]], wanted: tuple[int, int | None] | None, device: Mapping[str, Any]
) -> tuple[float, float]:
    """The setting: the clocks that were held, else those that most benchmarks ran at, else those of the driver.

    Raises LogError where none of them tells: a table at 0 MHz would be wrong in silence.
    """
    seen = [one for ones in measured.values() for one in ones]
    core = wanted[0] if wanted else _commonest([one["seen"].get("core_mhz") for one in seen])
    memory = wanted[1] if wanted and wanted[1] else _commonest([one["seen"].get("memory_mhz") for one in seen])
    found = core or float(device["core_khz"] or 0) / 1e3, memory or float(device["memory_khz"] or 0) / 1e3
    if not all(found):
        raise LogError(
            "Neither the meter nor the driver tells the clocks that the benchmarks ran at; hold them with "
            "--settings CORE/MEMORY."
        )
    return float(found[0]), float(found[1])


def _commonest(clocks: Sequence[float | None]) -> float | None:
    """The clock that most are near to, and of those near to it the one that is seen most often."""
    known = sorted(one for one in clocks if one)
    return max(known, key=lambda one: (sum(_near(one, other) for other in known), known.count(one)), default=None)


def _near(one: float, other: float) -> bool:
    return abs(one - other) <= _OTHER_CLOCK * other


def _row(
    manifest: Manifest,
    device: Mapping[str, Any],
    benchmark: Benchmark,
    measured: Sequence[Event],
    setting: tuple[float, float],
    doubts: Sequence[str],
) -> Row:
    last = measured[-1]
    capability = capability_of(str(device["capability"]))
    counts = manifest.counts(benchmark, capability, last["blocks"] * last["block"], last["iterations"])
    times = [one["time_s"] * last["iterations"] / one["iterations"] for one in measured]
    powers = [one["power_w"] for one in measured if one["power_w"] is not None]
    power = statistics.median(powers) if powers else None
    spread = (max(powers) - min(powers)) / power if power and len(powers) > 1 else 0.0
    time_s = statistics.median(times)
    seen = [one["seen"] for one in measured]
    core, memory = (_middle([one.get(key) for one in seen]) for key in ("core_mhz", "memory_mhz"))
    known = peaks(manifest, device, core or setting[0], memory)
    claimed = manifest.counts(benchmark, capability, last["blocks"] * last["block"], last["iterations"], overhead=False)
    reached, bound = fraction(claimed, time_s, known)
    reasons = [
        *doubts,
        *_too_slow(manifest, benchmark, reached, bound),
        *_other_clock(core, setting[0], seen),
        *([] if power is not None and power > 0 else ["the meter told no power"]),
        *([f"its counts are not confirmed: {benchmark.needs_counters}"] if benchmark.needs_counters else []),
    ]
    return Row(
        benchmark.name,
        benchmark.kernel,
        *setting,
        time_s=time_s,
        power_w=power,
        power_spread=spread,
        temperature_c=_middle([one.get("temperature_c") for one in seen]),
        seen_core_mhz=core,
        counts=counts,
        fraction=reached,
        bound=bound,
        rounds=len(measured),
        reasons=tuple(reasons),
        notes=tuple(_oddities(spread, seen)),
    )


def _too_slow(manifest: Manifest, benchmark: Benchmark, reached: float | None, bound: str | None) -> list[str]:
    if reached is None or bound is None:
        return []
    if reached < benchmark.least:
        return [f"it ran at {reached:.0%} of the peak of {bound}, less than {benchmark.least:.0%}"]
    ceiling = bound == "dram" or (bound in manifest.rates and manifest.rates[bound].ceiling)
    if reached > (IMPOSSIBLE if ceiling else SUSPICIOUS):
        return [f"it ran at {reached:.0%} of the peak of {bound}: it cannot have done what it claims"]
    return []


def _other_clock(core: float | None, wanted: float, seen: Sequence[Mapping[str, Any]]) -> list[str]:
    if core is None or not wanted or _near(core, wanted):
        return []
    why = sorted({reason for one in seen for reason in one.get("slowed_by", ())})
    because = f" ({', '.join(why)})" if why else ""
    return [f"it ran at {core:.0f} MHz{because}, the setting is {wanted:.0f} MHz"]


def _oddities(spread: float, seen: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    if spread > _APART:
        found.append(f"its rounds differ by {spread:.0%} in power")
    restless = max((one.get("core_mhz_spread") or 0.0 for one in seen), default=0.0)
    if restless > _RESTLESS:
        found.append(f"its clock moved by {restless:.0%}")
    return found


def _middle(values: Sequence[float | None]) -> float | None:
    known = [one for one in values if one is not None]
    return statistics.median(known) if known else None


def accessed(counts: Mapping[str, float], capability: Capability) -> dict[str, float]:
    """Served counts in accessed books: a byte of memory passes L2, and what passes L2 passes L1.

    Not on Kepler (3.x), whose global loads leave L1 out; stores are counted in L1 from Volta (7.0) on, where it is one
    unit for both.
    """
    found = dict(counts)
    for way in ("read", "write"):
        found[f"l2_{way}"] = counts.get(f"l2_{way}", 0.0) + counts.get(f"dram_{way}", 0.0)
        through = capability[0] != 3 if way == "read" else capability[0] >= 7
        found[f"l1_{way}"] = counts.get(f"l1_{way}", 0.0) + (found[f"l2_{way}"] if through else 0.0)
    return found


def measurements(found: Sequence[Row], capability: Capability) -> pd.DataFrame:
    """The rows that go into a fit, as `eprof fit` reads them (mapping `eprof`): counts of one launch by word, accessed.

    A kind of which no row has anything is no column: it was not measured, which is not the same as 0.
    """
    used = [(one, accessed(one.counts, capability)) for one in found if one.used]
    kinds = {resource(word) for _, counts in used for word, count in counts.items() if count}
    words = [word for word in _WORDS if resource(word) in kinds]
    return pd.DataFrame(
        [
            {
                "benchmark": one.benchmark,
                "kernel": one.kernel,
                "core_mhz": one.core_mhz,
                "memory_mhz": one.memory_mhz,
                "time_s": one.time_s,
                "power_w": one.power_w,
                "temperature_c": one.temperature_c,
                **{word: counts.get(word, 0.0) for word in words},
            }
            for one, counts in used
        ]
    )


def everything(found: Sequence[Row]) -> pd.DataFrame:
    """All rows with how they were judged, for people."""
    return pd.DataFrame(
        [
            {
                "benchmark": one.benchmark,
                "core_mhz": one.core_mhz,
                "memory_mhz": one.memory_mhz,
                "seen_core_mhz": one.seen_core_mhz,
                "time_s": one.time_s,
                "power_w": one.power_w,
                "power_spread": one.power_spread,
                "temperature_c": one.temperature_c,
                "fraction_of_peak": one.fraction,
                "bound": one.bound,
                "rounds": one.rounds,
                "used": one.used,
                "why": "; ".join(one.reasons),
                "notes": "; ".join(one.notes),
            }
            for one in found
        ]
    )

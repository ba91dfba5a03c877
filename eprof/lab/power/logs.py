"""Reads logs of power meters: tables with a column of time, and what tools print (`tools`).

A column is watts, or a counter of joules, by the unit in its header or its cells. What cannot be read of a cell is not
known, and no zero.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.base.resources import lines as lines_of
from eprof.base.resources import log_content
from eprof.base.text import few, pattern
from eprof.lab.measurements.units import spelled
from eprof.lab.power.series import Series
from eprof.lab.power.tools import JOULE, READERS, WATT, Samples

_MOST_BYTES = 256 << 20
_NAMED = 3
# What a unit is in W or J.
_UNITS = {word.lower(): (WATT, size) for word, size in {**spelled("power_w"), "watt": 1.0, "watts": 1.0}.items()}
_UNITS |= {word.lower(): (JOULE, size) for word, size in {**spelled("energy_j"), "joules": 1.0}.items()}
_TIMES = ("time_s", "timestamp", "time", "t", "t_s", "seconds", "epoch_s")
_NAMES = ("index", "gpu", "device", "uuid", "name")  # columns that tell one component from another
_IN_HEADER = pattern(
    r"(?P<name>.*?)[\s_]*(?:\[(?P<unit>\w+)\]|\((?P<unit2>\w+)\)|_(?P<unit3>[kmuM]?[wjWJ]|watts|joules))"
)
_CELL = pattern(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([mu]?[WJ])?")
_PLAIN = pattern(r"-?\d+(?:\.\d+)?")
_POWER = pattern(r".*power.*|.*watt.*")
_OF_GPU = ("power.draw", "socket_power")  # of nvidia-smi and amd-smi
_LIMITS = pattern(r".*(limit|cap|max|min|average|instant).*")
_FORMATS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S")
# What has joules or watts, but not over time, by a word that is in it.
_NO_SERIES = {
    "ROCm System Management Interface": "one reading of rocm-smi",
    "Instantaneous power reading": "one reading of the BMC",
    "PCUClocks": "what pcm-power printed, without times",
    "x-ncar-energy": "the energy of jobs, by PBS",
    "JOB-STEP": "the energy of jobs, by EAR",
    "ConsumedEnergy": "the energy of jobs, by sacct",
    " COMPLETED ": "a list of jobs, by sacct",
    " PENDING ": "a list of jobs, by sacct",
}


def read(path: str, notes: list[str]) -> list[Series]:
    """The power series of a meter's log, and notes on what is not in it.

    Raises LogError, with the line where there is one.
    """
    lines = lines_of(log_content(path, _MOST_BYTES))
    readers = (*READERS, _of_table)
    table = next((made for reader in readers if (made := reader(path, lines)) is not None), None)
    if table is None or not table.samples:
        raise LogError(f"{path}: {_why_nothing(lines)}")
    known = [name for name, samples in table.samples.items() if not all(math.isnan(value) for _, value in samples)]
    if not known:
        raise LogError(f"{path}: no cell of {few(list(table.samples), _NAMED)} holds a number.")
    if table.untold:
        notes.append(f"{path}: no unit is written for {', '.join(sorted(table.untold))}; taken for W")
    return [_series(path, table, component, notes) for component in known]


def _why_nothing(lines: Sequence[str]) -> str:
    """Why a file is no log of power."""
    for sign, what in _NO_SERIES.items():
        if any(sign in line for line in lines[:50]):
            return f"is {what}, and no power over time; log samples instead (docs/timeline.md)."
    return (
        "no power over time was found; give a table with a column of time (`time_s`, `timestamp`) and columns of power "
        "with their unit in the header (`cpu_w`, `power.draw [W]`), or a log that docs/timeline.md names."
    )


def _series(path: str, table: Samples, component: str, notes: list[str]) -> Series:
    """The samples of a component's power as steps.

    Samples that go back in time are left out: power is not known there.
    """
    kept: list[tuple[float, float]] = []
    is_counter = table.kinds[component] == JOULE
    samples = [sample for sample in table.samples[component] if not (is_counter and math.isnan(sample[1]))]
    turned_s: list[float] = []
    for time_s, value in samples:
        if not kept or time_s > kept[-1][0]:
            kept.append((time_s, value))
        elif time_s < kept[-1][0]:
            turned_s.append(kept[-1][0])
    back = len(samples) - len(kept)
    if back:
        notes.append(f"{path}: {back} samples of {component} do not come later than the one before, and were left out")
    if len(kept) < 2:
        raise LogError(f"{path}: {component} has fewer than two samples, so nothing is known between them.")
    times, values = np.array(kept).T
    if is_counter:
        made = Series.of_counter(component, path, times, values, table.absolute)
    else:
        # Beside counters, which end with their last sample, power does, too.
        holds = JOULE not in table.kinds.values()
        made = Series.of_power(component, path, times, values, table.absolute, holds)
    if turned_s:
        watts = made.watts.copy()
        steps = np.searchsorted(made.edges, turned_s, side="right") - 1
        watts[np.minimum(steps, len(watts) - 1)] = np.nan
        made = replace(made, watts=watts)
    if made.unknown_s:
        why = "gaps, holes, counters that fell, clocks that went back"
        notes.append(f"{path}: the power of {component} is not known for {made.unknown_s:.3g} s ({why})")
    return replace(made, zoned=table.zoned)


# ---- tables


def _of_table(path: str, lines: Sequence[str]) -> Samples | None:
    """Power from a table with a header: a column of time, columns of power."""
    place = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines:
        return None
    separator = max(",;\t", key=lines[place].count)
    names = [name.strip() for name in next(csv.reader([lines[place]], delimiter=separator))]
    lower = [name.lower() for name in names]
    time_at = next((lower.index(name) for name in _TIMES if name in lower), None)
    if time_at is None:
        return None
    columns = dict(_columns(path, names, time_at))
    if not columns:
        return None
    told = {at for at in columns if _unit(names[at])}
    by = next((lower.index(name) for name in _NAMES if name in lower), None)
    table = Samples({}, {})
    for number, row in enumerate(csv.reader(lines[place + 1 :], delimiter=separator), place + 2):
        if len(row) <= max(time_at, *columns):
            continue
        time = _time(row[time_at].strip())
        if math.isnan(time.seconds):
            raise LogError(f"{path}:{number}: `{row[time_at].strip()[:40]}` is no time.")
        table.absolute |= time.absolute
        table.zoned |= time.zoned
        for at, (name, kind, scale) in columns.items():
            label = f"{name} {row[by].strip()}" if by is not None else name
            value, has_unit = _value(row[at])
            table.add(label, kind, time.seconds, value * scale)
            if not (has_unit or at in told or math.isnan(value)):
                table.untold.add(label)
    return table


def _columns(path: str, names: Sequence[str], time_at: int) -> Iterator[tuple[int, tuple[str, str, float]]]:
    """The columns of power in a meter's table: place -> component, kind and factor.

    A counter of joules stands for the power beside it.
    """
    found: dict[str, tuple[int, str, float]] = {}
    for place, name in enumerate(names):
        unit = _IN_HEADER.fullmatch(name)
        written = _unit(name)
        if written in ("MW", "MJ"):
            raise LogError(
                f"{path}: `{name}` may be in m{written[1]} or in millions of {written[1]}; write it in {written[1]}."
            )
        kind, scale = _UNITS.get(written.lower(), ("", 1.0))
        if not kind and _POWER.fullmatch(name.lower()):
            kind = WATT
        component = _component(unit["name"] if unit and written else name)
        if place == time_at or not kind or _LIMITS.fullmatch(name.lower()):
            continue
        if component not in found or kind == JOULE:
            found[component] = place, kind, scale
    for component, (place, kind, scale) in found.items():
        yield place, (component, kind, scale)


def _component(name: str) -> str:
    """What a column of a power table is of: "cpu_w", "CPU power [W]" of the CPU, "energy_j" of all metered."""
    if name.lower() in _OF_GPU:
        return "gpu"
    bare = re.sub(r"(^|[\s._-])(power|energy|draw|socket|consumption|watts?|joules?)(?=$|[\s._-])", " ", name.lower())
    return " ".join(bare.split()) or "power"


def _unit(name: str) -> str:
    """The unit in a header of a power table; "" where none is."""
    unit = _IN_HEADER.fullmatch(name)
    return next((text for text in unit.groups()[1:] if text), "") if unit else ""


def _value(text: str) -> tuple[float, bool]:
    """A cell of a power table in its column's unit, and whether it has one of its own; NaN for no number."""
    if _PLAIN.fullmatch(text):
        return float(text), False
    match = _CELL.fullmatch(text.strip())
    if match is None:
        return math.nan, False
    return float(match[1]) * (_UNITS[match[2].lower()][1] if match[2] else 1.0), bool(match[2])


class _Time(NamedTuple):
    """Seconds, NaN for what is no time; whether they are since the epoch, and whether they are sure to be UTC."""

    seconds: float
    absolute: bool
    zoned: bool


def _time(text: str) -> _Time:
    """The time in a cell of a power table. A date without a zone is taken as UTC."""
    try:
        seconds = float(text)
    except ValueError:
        return _date(text)
    return _Time(seconds * _second_of(seconds), seconds > 1e9, seconds > 1e9)


def _second_of(time: float) -> float:
    """The unit of a power table's time since the epoch, in s: milliseconds as seconds lie thousands of years ahead."""
    return next((unit for least, unit in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)) if time >= least), 1.0)


def _date(text: str) -> _Time:
    for form in _FORMATS:
        try:
            return _Time(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp(), True, False)
        except ValueError:
            continue
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _Time(math.nan, True, False)
    if moment.tzinfo:
        return _Time(moment.timestamp(), True, True)
    return _Time(moment.replace(tzinfo=UTC).timestamp(), True, False)

"""Reads logs of power meters: tables with a column of time, and what tegrastats, turbostat and perf print.

A column is watts, or a counter of joules, by the unit in its header or its cells. What cannot be read of a cell is not
known, and no zero.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
from msgspec import Struct, field

from eprof.base.errors import LogError
from eprof.base.resources import lines as lines_of
from eprof.base.resources import log_content
from eprof.base.text import pattern
from eprof.timeline.series import Series

_MOST_BYTES = 256 << 20
_WATT, _JOULE = "W", "J"
# What a unit is in W or J.
_UNITS = {"w": (_WATT, 1.0), "mw": (_WATT, 1e-3), "uw": (_WATT, 1e-6), "j": (_JOULE, 1.0), "uj": (_JOULE, 1e-6)}
_UNITS |= {"kw": (_WATT, 1e3), "kj": (_JOULE, 1e3)}
_UNITS |= {"watts": (_WATT, 1.0), "watt": (_WATT, 1.0), "joules": (_JOULE, 1.0), "mj": (_JOULE, 1e-3)}
_TIMES = ("time_s", "timestamp", "time", "t", "t_s", "seconds", "epoch_s")
_NAMES = ("index", "gpu", "device", "uuid", "name")  # columns that tell one component from another
_IN_HEADER = pattern(
    r"(?P<name>.*?)[\s_]*(?:\[(?P<unit>\w+)\]|\((?P<unit2>\w+)\)|_(?P<unit3>[kmuM]?[wjWJ]|watts|joules))"
)
_CELL = pattern(r"([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)\s*([mu]?[WJ])?")
_POWER = pattern(r".*power.*|.*watt.*")
_LIMITS = pattern(r".*(limit|cap|max|min|average|instant).*")
_RAIL = pattern(r"\b(V\w+|POM_\w+) (\d+)(?:mW)?/\d+(?:mW)?")
_TEGRA_DATE = pattern(r"(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) ")
_INTERVAL = pattern(r"\s*(\d+\.\d+)([,;\t])(?:[^,;\t]*\2(?:\d+\2)?)?([\d.]+)\2Joules\2power/energy-(\w+)/.*")
_FORMATS = ("%Y/%m/%d %H:%M:%S.%f", "%Y/%m/%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S")
_TEGRA_FORMAT = "%m-%d-%Y %H:%M:%S"
# Single readings of what a tool shows on a screen.
_NO_SERIES = (
    "ROCm System Management Interface",
    "Instantaneous power reading",
    "x-ncar-energy",
    "PCUClocks",
    "JOB-STEP",
)


class _Table(Struct):
    """Samples of watts and of joules by component, as (time, value); absolute: the times are since the epoch.

    untold: components whose unit is written neither in their header nor in their cells.
    """

    kinds: dict[str, str]
    samples: dict[str, list[tuple[float, float]]]
    absolute: bool = False
    untold: set[str] = field(default_factory=set)

    def add(self, component: str, kind: str, time_s: float, value: float) -> None:
        """Take a sample."""
        self.kinds.setdefault(component, kind)
        self.samples.setdefault(component, []).append((time_s, value))


def read(path: str, notes: list[str]) -> list[Series]:
    """The series of a log, and notes on what is not in it. Raises LogError, with the line where there is one."""
    lines = lines_of(log_content(path, _MOST_BYTES))
    table = next((made for reader in _READERS if (made := reader(path, lines)) is not None), None)
    if table is None or not table.samples:
        raise LogError(f"{path}: {_why_nothing(lines)}")
    if table.untold:
        notes.append(f"{path}: no unit is written for {', '.join(sorted(table.untold))}; taken for W")
    return [_series(path, table, component, notes) for component in table.samples]


def _why_nothing(lines: Sequence[str]) -> str:
    if any(sign in line for line in lines[:50] for sign in _NO_SERIES):
        return "is a single reading or a sum, and no power over time; log samples instead (docs/timeline.md)."
    return (
        "no power over time was found; give a table with a column of time (`time_s`, `timestamp`) and columns of power "
        "with their unit in the header (`cpu_w`, `power.draw [W]`), or logs of tegrastats, turbostat, perf stat -I."
    )


def _series(path: str, table: _Table, component: str, notes: list[str]) -> Series:
    """The samples of a component as steps. Samples that go back in time are left out."""
    kept: list[tuple[float, float]] = []
    for time_s, value in table.samples[component]:
        if not kept or time_s > kept[-1][0]:
            kept.append((time_s, value))
    back = len(table.samples[component]) - len(kept)
    if back:
        notes.append(f"{path}: {back} samples of {component} do not come later than the one before, and were left out")
    if len(kept) < 2:
        raise LogError(f"{path}: {component} has fewer than two samples, so nothing is known between them.")
    times, values = np.array(kept).T
    if table.kinds[component] == _JOULE:
        made = Series.of_counter(component, path, times, values, table.absolute)
    else:
        # Beside counters, which end with their last sample, power does, too.
        holds = _JOULE not in table.kinds.values()
        made = Series.of_power(component, path, times, values, table.absolute, holds)
    if made.unknown_s:
        why = "gaps, holes, counters that fell"
        notes.append(f"{path}: the power of {component} is not known for {made.unknown_s:.3g} s ({why})")
    return made


# ---- tables


def _of_table(path: str, lines: Sequence[str]) -> _Table | None:
    """A table with a header: a column of time, columns of power."""
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
    by = next((lower.index(name) for name in _NAMES if name in lower), None)
    table = _Table({}, {})
    for number, row in enumerate(csv.reader(lines[place + 1 :], delimiter=separator), place + 2):
        if len(row) <= max(time_at, *columns):
            continue
        time_s, absolute = _time(row[time_at].strip())
        if math.isnan(time_s):
            raise LogError(f"{path}:{number}: `{row[time_at].strip()[:40]}` is no time.")
        table.absolute |= absolute
        for at, (name, kind, scale) in columns.items():
            label = f"{name} {row[by].strip()}" if by is not None else name
            value, has_unit = _value(row[at])
            table.add(label, kind, time_s, value * scale)
            if not (has_unit or _unit(names[at]) or math.isnan(value)):
                table.untold.add(label)
    return table


def _columns(path: str, names: Sequence[str], time_at: int) -> Iterator[tuple[int, tuple[str, str, float]]]:
    """The columns of power: place -> component, kind and factor. A counter of joules stands for the power beside it."""
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
            kind = _WATT
        component = _component(unit["name"] if unit and written else name)
        if place == time_at or not kind or _LIMITS.fullmatch(name.lower()):
            continue
        if component not in found or kind == _JOULE:
            found[component] = place, kind, scale
    for component, (place, kind, scale) in found.items():
        yield place, (component, kind, scale)


def _component(name: str) -> str:
    """What a column is of: "cpu_w", "CPU power [W]" are of the CPU; "power.draw", "energy_j" of all that is metered."""
    bare = re.sub(r"(^|[\s._-])(power|energy|draw|socket|consumption|watts?|joules?)(?=$|[\s._-])", " ", name.lower())
    return " ".join(bare.split()) or "power"


def _unit(name: str) -> str:
    """The unit in a header; "" where none is."""
    unit = _IN_HEADER.fullmatch(name)
    return next((text for text in unit.groups()[1:] if text), "") if unit else ""


def _value(text: str) -> tuple[float, bool]:
    """A cell in the unit of its column, and whether it has one of its own; NaN for what is no number ("[N/A]")."""
    match = _CELL.fullmatch(text.strip())
    if match is None:
        return math.nan, False
    return float(match[1]) * (_UNITS[match[2].lower()][1] if match[2] else 1.0), bool(match[2])


def _time(text: str) -> tuple[float, bool]:
    """Seconds, and whether they are since the epoch; NaN for what is no time. Without a zone a time is taken as UTC."""
    try:
        seconds = float(text)
    except ValueError:
        return _date(text), True
    return seconds * _second_of(seconds), seconds > 1e9


def _second_of(time: float) -> float:
    """The unit of a time since the epoch, in s: as seconds, milliseconds and less lie thousands of years ahead."""
    return next((unit for least, unit in ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3)) if time >= least), 1.0)


def _date(text: str) -> float:
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# ---- what tools print


def _of_tegrastats(path: str, lines: Sequence[str]) -> _Table | None:
    """NVIDIA Jetson's rails, now and on average, a line a second or as its times say."""
    if not any(_RAIL.search(line) and "RAM" in line for line in lines[:20]):
        return None
    table = _Table({}, {})
    for number, line in enumerate(lines):
        date = _TEGRA_DATE.match(line)
        time_s = float(number)
        if date:
            time_s = datetime.strptime(date[1], _TEGRA_FORMAT).replace(tzinfo=UTC).timestamp()
            table.absolute = True
        for rail, milliwatts in _RAIL.findall(line):
            table.add(rail, _WATT, time_s, float(milliwatts) * 1e-3)
    return table


def _of_turbostat(path: str, lines: Sequence[str]) -> _Table | None:
    """Turbostat's rows of the whole machine ("-"), one each interval. Watts that are 0 throughout are not metered."""
    header = next((line.split() for line in lines if "CPU" in line.split() and "Busy%" in line.split()), None)
    if header is None:
        return None
    interval = next((float(line.split()[1]) for line in lines if re.fullmatch(r"INTERVAL: [\d.]+", line.strip())), 1.0)
    table = _Table({}, {})
    rows = [line.split() for line in lines if line.split()[:1] == ["-"]]
    for name in (name for name in header if name.endswith("Watt")):
        at = header.index(name)
        watts = [float(row[at]) if len(row) == len(header) and _CELL.fullmatch(row[at]) else math.nan for row in rows]
        for number, value in enumerate(watts) if any(value > 0 for value in watts) else ():
            table.add(name, _WATT, number * interval, value)
    return table


def _of_perf(path: str, lines: Sequence[str]) -> _Table | None:
    """Perf stat -I: joules of each interval, at its end."""
    table = _Table({}, {})
    spent: dict[str, float] = {}
    for match in filter(None, map(_INTERVAL.fullmatch, lines)):
        name = f"energy-{match[4]}"
        if name not in spent:
            table.add(name, _JOULE, 0.0, 0.0)
        end_s, joules = float(match[1]), float(match[3])
        is_same = table.samples[name][-1][0] == end_s  # another socket
        spent[name] = spent.get(name, 0.0) + joules
        if is_same:
            table.samples[name].pop()
        table.add(name, _JOULE, end_s, spent[name])
    return table if table.samples else None


_READERS: tuple[Callable[[str, Sequence[str]], _Table | None], ...] = (
    _of_perf,
    _of_tegrastats,
    _of_turbostat,
    _of_table,
)

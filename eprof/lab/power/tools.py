"""What tools print of power over time: tegrastats, turbostat, perf, likwid-perfctr, ipmitool."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct, field

from eprof.base.errors import LogError
from eprof.base.text import pattern

WATT, JOULE = "W", "J"
_RAIL = pattern(r"\b(V\w+|POM_\w+) (\d+)(?:mW)?/\d+(?:mW)?")
_TEGRA_DATE = pattern(r"(\d\d-\d\d-\d{4} \d\d:\d\d:\d\d) ")
_TEGRA_FORMAT = "%m-%d-%Y %H:%M:%S"
_NUMBER = pattern(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
_INTERVAL = pattern(r"\s*(\d+\.\d+)([,;\t])(?:[^,;\t]*\2(?:\d+\2)?)?([\d.]+)\2Joules\2power/energy-(\w+)/.*")
_LIKWID = pattern(r"# GID[|,](?:Metrics|Event)Count[|,]CpuCount[|,]Total runtime \[s\][|,](.*)")
# What LIKWID calls the joules of an interval: its metrics (group ENERGY), and its events.
_LIKWID_JOULES = {
    "Energy [J]": "package",
    "Energy PP0 [J]": "core",
    "Energy DRAM [J]": "dram",
    "Energy Core [J]": "core",
    "Energy PKG [J]": "package",
    "PWR_PKG_ENERGY": "package",
    "PWR_PP0_ENERGY": "core",
    "PWR_DRAM_ENERGY": "dram",
    "PWR_PLATFORM_ENERGY": "platform",
    "RAPL_PKG_ENERGY": "package",
    "RAPL_CORE_ENERGY": "core",
}
_IPMI = pattern(r"\s*(Instantaneous power reading|IPMI timestamp)\s*:\s+(.*?)\s*")
_IPMI_WATTS = pattern(r"(\d+)\s+Watts")
_IPMI_DATES = ("%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S UTC")


class Samples(Struct):
    """Samples of watts and of joules by component, as (time, value); absolute: the times are since the epoch.

    zoned: one of them told its zone, or was no date.

    untold: components whose unit is written neither in their header nor in their cells.
    """

    kinds: dict[str, str]
    samples: dict[str, list[tuple[float, float]]]
    absolute: bool = False
    zoned: bool = False
    untold: set[str] = field(default_factory=set)

    def add(self, component: str, kind: str, time_s: float, value: float) -> None:
        """Take a sample of power that a tool printed."""
        self.kinds.setdefault(component, kind)
        self.samples.setdefault(component, []).append((time_s, value))

    def count(self, component: str, end_s: float, joules: float) -> None:
        """Take the joules that a tool printed of an interval, which go on where the last one ended."""
        if component not in self.samples:
            self.add(component, JOULE, 0.0, 0.0)
        # Where the joules are not known the counter falls, which is how readers know it.
        step = -1.0 if math.isnan(joules) else joules
        self.add(component, JOULE, end_s, self.samples[component][-1][1] + step)


def of_tegrastats(path: str, lines: Sequence[str]) -> Samples | None:
    """NVIDIA Jetson's rails, now and on average, a line a second or as its times say."""
    if not any(_RAIL.search(line) and "RAM" in line for line in lines[:20]):
        return None
    table = Samples({}, {})
    for number, line in enumerate(lines):
        date = _TEGRA_DATE.match(line)
        time_s = float(number)
        if date:
            time_s = datetime.strptime(date[1], _TEGRA_FORMAT).replace(tzinfo=UTC).timestamp()
            table.absolute = True
        for rail, milliwatts in _RAIL.findall(line):
            table.add(rail, WATT, time_s, float(milliwatts) * 1e-3)
    return table


def of_turbostat(path: str, lines: Sequence[str]) -> Samples | None:
    """Turbostat's rows of the whole machine ("-"), one each interval. Watts that are 0 throughout are not metered."""
    header = next((line.split() for line in lines if "CPU" in line.split() and "Busy%" in line.split()), None)
    if header is None:
        return None
    interval = next((float(line.split()[1]) for line in lines if re.fullmatch(r"INTERVAL: [\d.]+", line.strip())), 1.0)
    table = Samples({}, {})
    rows = [line.split() for line in lines if line.split()[:1] == ["-"]]
    for name in (name for name in header if name.endswith("Watt")):
        at = header.index(name)
        watts = [float(row[at]) if len(row) == len(header) and _NUMBER.fullmatch(row[at]) else math.nan for row in rows]
        for number, value in enumerate(watts) if any(value > 0 for value in watts) else ():
            table.add(name, WATT, number * interval, value)
    return table


def of_perf(path: str, lines: Sequence[str]) -> Samples | None:
    """Perf stat -I: joules of each interval, at its end."""
    table = Samples({}, {})
    spent: dict[str, float] = {}
    for match in filter(None, map(_INTERVAL.fullmatch, lines)):
        name = f"energy-{match[4]}"
        if name not in spent:
            table.add(name, JOULE, 0.0, 0.0)
        end_s, joules = float(match[1]), float(match[3])
        is_same = table.samples[name][-1][0] == end_s  # another socket
        spent[name] = spent.get(name, 0.0) + joules
        if is_same:
            table.samples[name].pop()
        table.add(name, JOULE, end_s, spent[name])
    return table if table.samples else None


def of_likwid(path: str, lines: Sequence[str]) -> Samples | None:
    """`likwid-perfctr -t`: the joules of each interval, by event and then by thread, at its end.

    A package's joules are those of one of its threads; the others have 0. Raises LogError: rows that do not fit.
    """
    heads = [match[1] for match in map(_LIKWID.fullmatch, lines) if match]
    if not heads:
        return None
    if len(heads) > 1:
        raise LogError(f"{path}: LIKWID took turns between groups, so that no power is known throughout; measure one.")
    names = re.split("[|,]", heads[0])
    table = Samples({}, {})
    for number, line in enumerate(lines, 1):
        cells = re.split("[ ,]", line.strip())
        if len(cells) < _LIKWID_FIRST or not all(cell.isdecimal() for cell in cells[: _LIKWID_FIRST - 1]):
            continue
        threads = int(cells[2])
        if len(cells) - _LIKWID_FIRST != threads * len(names):
            raise LogError(
                f"{path}:{number}: {len(cells) - _LIKWID_FIRST} values, but its header has {len(names)} names for each "
                f"of {threads} threads."
            )
        for name, joules in _likwid_joules(names, threads, cells):
            table.count(name, float(cells[3]), joules)
    return table


_LIKWID_FIRST = 4  # group, number of counts, number of threads, time


def _likwid_joules(names: Sequence[str], threads: int, cells: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The joules of a row by component, summed over threads; NaN where one has none."""
    for place, name in enumerate(names):
        first = _LIKWID_FIRST + place * threads
        if name in _LIKWID_JOULES:
            values = [float(cell) if _NUMBER.fullmatch(cell) else math.nan for cell in cells[first : first + threads]]
            yield _LIKWID_JOULES[name], sum(values)


def of_ipmi(path: str, lines: Sequence[str]) -> Samples | None:
    """`ipmitool dcmi power reading`, again and again, with its time stamps. Of one reading nothing is made."""
    found = [match.groups() for match in map(_IPMI.fullmatch, lines) if match]
    table = Samples({}, {}, absolute=True)
    watts: float | None = None
    for label, text in found:
        if label != "IPMI timestamp":
            reading = _IPMI_WATTS.fullmatch(text)
            watts = float(reading[1]) if reading else math.nan
        elif watts is not None:
            table.add("system", WATT, _ipmi_time(text), watts)
            table.zoned |= text.endswith("UTC")
            watts = None
    samples = table.samples.get("system", [])
    return table if len(samples) > 1 and not any(math.isnan(time_s) for time_s, _ in samples) else None


def _ipmi_time(text: str) -> float:
    """Seconds since the epoch; NaN for another form."""
    for form in _IPMI_DATES:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return math.nan


READERS = (of_perf, of_likwid, of_ipmi, of_tegrastats, of_turbostat)

"""Nsight Compute's tables of one row a metric: launches (details page, `--metrics`) and summaries of kernels."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from eprof.profilers.ncu import derived, instances, parts
from eprof.profilers.ncu.csv import LONG, Rows, Section, coded, together
from eprof.profilers.ncu.derived import TIMES as TIMES
from eprof.profilers.ncu.numbers import Array, Locale, Style, Unit, counted, is_whole, kind_of, unit_of, values
from eprof.rows.log import COUNT, Clock

NAME = "device__attribute_display_name"
# Labels of the details page whose metric is known: read off the sections in ../shared/data/ncu/v100-*.ncu-rep.
LABELS = {
    "Duration": "gpu__time_duration.sum",
    "Elapsed Cycles": "gpc__cycles_elapsed.max",
    "SM Active Cycles": "sm__cycles_active.avg",
    "Executed Instructions": "smsp__inst_executed.sum",
    "Issued Instructions": "smsp__inst_issued.sum",
    "Threads": "launch__thread_count",
    "Grid Size": "launch__grid_size",
    "Block Size": "launch__block_size",
    "Registers Per Thread": "launch__registers_per_thread",
}
# And of labels that are so only in some units.
_RATE_LABELS = {
    ("Memory Throughput", "byte/second"): "dram__bytes.sum.per_second",
    ("SM Frequency", "hz"): "gpc__cycles_elapsed.avg.per_second",
    ("SM Frequency", "cycle/second"): "gpc__cycles_elapsed.avg.per_second",
    ("DRAM Frequency", "hz"): "dram__cycles_elapsed.avg.per_second",
    ("DRAM Frequency", "cycle/second"): "dram__cycles_elapsed.avg.per_second",
}
_LABEL_AND_NAME = re.compile(r".* \(([a-z][a-z0-9]*__[\w.]+)\)")
_SAMPLE = 4096
_ROUNDED = 0.01  # 1.00 of a scaled unit may be 0.995
_FEW = 512
_WHOLE = re.compile("[0-9][0-9,]{0,15}")
_KEYS = {
    LONG: ("Process ID", "ID"),
    "ncu-summary": ("Process ID", "Kernel Name", "Block Size", "Grid Size", "Device", "CC"),
}
_METRIC = ("Metric Name", "Metric Unit", "Invocations")
_TOLD = ("Process ID", "Kernel Name", "Device", "CC")


@dataclass
class Part:
    """What one section of a log holds: what its launches are, their metrics, and words for the user.

    rows: device, kernel, process (text, None = not told), launches, time_s (s, NaN = not known); part, if asked for.
    counters: by name, a value a row. scaled: counts that were printed in scaled units, and so rounded. clocks: a device
    each. twice: metrics that a launch has with two values, of which the first is taken.
    """

    kind: str
    rows: dict[str, Array]
    counters: dict[str, Array]
    units: dict[str, str]
    metrics: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    scaled: list[str] = field(default_factory=list)
    clocks: tuple[Clock, ...] = ()
    twice: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many rows there are."""
        return len(self.rows["launches"])

    def column(self, name: str) -> Array:
        """The values of a counter; NaN if it is not there."""
        return self.counters[name] if name in self.counters else np.full(self.size, np.nan)


@dataclass
class Long:
    """The rows of one section that carry a metric, as codes and words."""

    section: Section
    codes: dict[str, Array]
    words: dict[str, list[str]]
    texts: pa.Array
    stray: int = 0
    whole: pa.Array | None = None  # `texts` before the values of instances were cut off

    @property
    def rules(self) -> bool:
        """Whether there are rows but none with a metric."""
        return not len(self.texts)

    @cached_property
    def launches(self) -> tuple[Array, Array]:
        """The first row of each launch, and the launch of each row. Most rows are of the launch of the one before."""
        names = [name for name in _KEYS[self.section.kind] if name in self.codes]
        changes = np.ones(len(self.texts), dtype=bool)
        changes[1:] = np.logical_or.reduce([codes[1:] != codes[:-1] for codes in (self.codes[name] for name in names)])
        starts = np.flatnonzero(changes)
        key = np.zeros(len(starts), dtype=np.int64)
        for name in names:
            key = numbered(key * max(1, len(self.words[name])) + self.codes[name][starts])[0]
        launch, first = numbered(key)
        return starts[first], np.repeat(launch, np.diff(starts, append=len(changes)))


def numbered(keys: Array) -> tuple[Array, Array]:
    """0, 1, ... for each new key as they come; and the place where each is first."""
    if len(keys) < _FEW:
        known: dict[int, int] = {}
        codes = np.array([known.setdefault(key, len(known)) for key in keys.tolist()], dtype=np.int64)
        size = len(known)
    else:
        codes, kinds = pd.factorize(keys)
        size = len(kinds)
    first = np.zeros(size, dtype=np.int64)
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first


def columns_of(section: Section) -> tuple[list[int], list[int]]:
    """Places of the columns that are read, and of those that are read as text."""
    value = "Metric Value" if section.kind == LONG else "Average"
    named = (*dict.fromkeys((*_KEYS[section.kind], *_TOLD)), *_METRIC)
    told = [section.part] if section.part is not None else []
    places = [section.at(name) for name in (*dict.fromkeys((*named, *told)), value)]
    return [one for one in places if one is not None], [one for one in [section.at(value)] if one is not None]


def gather(section: Section, found: Rows) -> Long:
    """Put the pieces of a section together and leave out rows of rules, and lines that only look like rows."""
    wanted, texts = columns_of(section)
    table = together(found.tables) if found.tables else None
    codes, words = {}, {}
    for place in wanted:
        if place not in texts:
            name = section.columns[place - section.prefix]
            codes[name], words[name] = coded(table[str(place)]) if table is not None else (np.zeros(0, np.int32), [])
    codes["Metric Name"], words["Metric Name"] = _named(codes["Metric Name"], words["Metric Name"])
    cells = table[str(texts[0])].combine_chunks() if table is not None else pa.array([], pa.string())
    keep = np.ones(len(cells), dtype=bool)
    for name in ("ID", "Process ID", "Invocations"):
        if name in codes:
            _leave_out(keep, codes[name], words[name], _WHOLE.fullmatch)
    stray = len(keep) - int(keep.sum())
    _leave_out(keep, codes["Metric Name"], words["Metric Name"], bool)
    if not keep.all():
        codes, cells = {name: one[keep] for name, one in codes.items()}, cells.filter(pa.array(keep))
    return Long(section, codes, words, instances.totals(cells), stray, cells)


def _named(codes: Array, words: list[str]) -> tuple[Array, list[str]]:
    """Metrics by name where the page has label and name, as `--print-metric-name label-name` does."""
    found = [_LABEL_AND_NAME.fullmatch(word) if word.endswith(")") else None for word in words]
    if not any(found):
        return codes, words
    names = [one[1] if one else word for one, word in zip(found, words, strict=True)]
    own = list(dict.fromkeys(names))
    place = {name: number for number, name in enumerate(own)}
    return np.array([place[name] for name in names], dtype=codes.dtype)[codes], own


def _leave_out(keep: Array, codes: Array, words: Sequence[str], is_good: Callable[[str], object]) -> None:
    """Turn `keep` off where the word is not good."""
    good = [bool(is_good(word)) for word in words]
    if not all(good):
        keep &= np.array(good)[codes]


def look(long: Long, locale: Locale) -> None:
    """Show the numbers of a section to the one who decides how the file writes them."""
    step = max(1, len(long.texts) // _SAMPLE)
    own = Locale()
    for every in dict.fromkeys((step, 1)):  # one program wrote the section, in one style: a part of it tells which
        if not own.proof:
            texts = long.texts if every == 1 else pc.take(long.texts, pa.array(np.arange(0, len(long.texts), every)))
            own.look(texts, _wholes(long, every))
    locale.join(own)


def _wholes(long: Long, every: int) -> Array:
    """Which of the cells (every so many) can have no decimals."""
    names, units = long.words["Metric Name"], long.words["Metric Unit"]
    if long.section.kind != LONG:
        return np.zeros(len(range(0, len(long.texts), every)), dtype=bool)
    key = long.codes["Metric Name"][::every].astype(np.int64) * len(units) + long.codes["Metric Unit"][::every]
    kinds, first = numbered(key)
    pairs = [divmod(one, len(units)) for one in key[first].tolist()]
    return np.array([is_whole(LABELS.get(names[name], names[name]), units[unit]) for name, unit in pairs], dtype=bool)[
        kinds
    ]


def pivot(long: Long, style: Style, keep: Container[str] | None) -> Part:
    """A row a launch (or summarised kernel), a column a metric."""
    metric, columns = _metrics(long)
    names = [name for name, _ in columns]
    known = [derived.is_read(name, keep) for name in names]
    first, launch = long.launches
    unit, texts = long.codes["Metric Unit"], long.texts
    if not all(known):
        columns = [one for one, is_known in zip(columns, known, strict=True) if is_known]
        chosen = np.array(known, dtype=bool)[metric]
        metric = (np.cumsum(known) - 1)[metric[chosen]]
        launch, unit, texts = launch[chosen], unit[chosen], texts.filter(pa.array(chosen))
    kinds = {name: kind_of(name, unit) for name, unit in columns}
    is_count = np.array([kind == COUNT for kind in kinds.values()], dtype=bool)
    factors = _factors(long)[unit]
    numbers = counted(values(texts, style) * factors, is_count[metric])
    matrix = np.full((len(columns), len(first)), np.nan)
    there = np.flatnonzero(~np.isnan(numbers))[::-1]  # a metric that two sections show: the first counts
    matrix[metric[there], launch[there]] = numbers[there]
    taken = matrix[metric, launch]
    missing = np.bincount(metric[np.isnan(taken)], minlength=len(columns))
    other = np.bincount(metric[are_unlike(numbers, taken)], minlength=len(columns))
    twice = [name for (name, _), number in zip(columns, other.tolist(), strict=True) if number]
    rows = _rows(long, first, style)
    if long.section.kind != LONG:
        matrix[is_count] *= rows["launches"]
    counters = dict(zip(kinds, matrix, strict=True))
    rows["time_s"] = derived.seconds(counters, rows["launches"])
    made = derived.totals(counters, rows["time_s"], rows["launches"], keep)
    made |= _by_opcode(long, long.launches[1], len(first), style, keep)
    clocks = derived.clocks(counters, rows["device"], rows["time_s"], rows["launches"])
    kinds |= dict.fromkeys(made, COUNT)
    kinds = {name: kind for name, kind in kinds.items() if keep is None or name in keep}
    counters = {name: (counters | made)[name] for name in kinds}
    lost = {name: number for (name, _), number in zip(columns, missing.tolist(), strict=True) if number}
    rounded = np.bincount(metric[(factors != 1) & is_count[metric]], minlength=len(columns))
    scaled = [
        name for (name, unit), number in zip(columns, rounded.tolist(), strict=True) if number and not unit.is_time
    ]
    return Part(long.section.kind, rows, counters, kinds, names, lost, scaled, clocks, twice)


def are_unlike(values: Array, taken: Array) -> Array:
    """Where two known values of one metric differ by more than their rounding."""
    return np.asarray(np.abs(values - taken) > _ROUNDED * np.abs(taken))


def _by_opcode(long: Long, launch: Array, number: int, style: Style, keep: Container[str] | None) -> dict[str, Array]:
    """Counters for each opcode, from the metrics that have a value for each."""
    found: dict[str, Array] = {}
    for code, name in enumerate(long.words["Metric Name"]):
        if long.section.kind != LONG or not instances.PER_OPCODE.fullmatch(name):
            continue
        rows = np.flatnonzero(long.codes["Metric Name"] == code)
        whole = (long.texts if long.whole is None else long.whole).take(pa.array(rows)).to_pylist()
        own = instances.columns(
            name, instances.opcodes(name, whole, style), values(long.texts.take(pa.array(rows)), style), keep
        )
        for counter, cells in own.items():
            found[counter] = np.full(number, np.nan)
            found[counter][launch[rows]] = cells
    return found


def _metrics(long: Long) -> tuple[Array, list[tuple[str, Unit]]]:
    """The column of each row, and what the columns are. One label in two units ("Memory Throughput") is two metrics."""
    units = [unit_of(text) for text in long.words["Metric Unit"]]
    bases = list({unit.base: unit for unit in reversed(units)}.values())
    place = {unit.base: number for number, unit in enumerate(bases)}
    base = np.array([place[unit.base] for unit in units], dtype=np.int64)[long.codes["Metric Unit"]]
    labels_, label_codes = long.words["Metric Name"], long.codes["Metric Name"]
    codes, first = numbered(base * max(1, len(labels_)) + label_codes)
    columns: dict[str, Unit] = {}
    for label_code, base_code in zip(label_codes[first].tolist(), base[first].tolist(), strict=True):
        label, unit = labels_[label_code], bases[base_code]
        name = _RATE_LABELS.get((label, unit.base)) or LABELS.get(label, label)
        while name in columns:
            label = name = f"{label} ({unit.base or 'without unit'})"
        columns[name] = unit
    return codes, list(columns.items())


def _factors(long: Long) -> Array:
    return np.array([unit_of(text).factor for text in long.words["Metric Unit"]], dtype=np.float64)


def _rows(long: Long, first: Array, style: Style) -> dict[str, Array]:
    def words(name: str) -> list[str | None]:
        if name not in long.codes:
            return [None] * len(first)
        return [long.words[name][code] for code in long.codes[name][first].tolist()]

    launches = np.ones(len(first), dtype=np.int64)
    if long.section.kind != LONG:
        launches = values(pa.array(words("Invocations"), pa.string()), style).astype(np.int64)
    part = long.section.part
    return {
        **({} if part is None else {"part": np.array(parts.labels(long.section, words(part)), dtype=object)}),
        "device": labels(words("Device"), words("CC"), _names(long, len(first))),
        "kernel": np.array(words("Kernel Name"), dtype=object),
        "process": np.array(words("Process ID"), dtype=object),
        "launches": launches,
    }


def _names(long: Long, number: int) -> list[str | None]:
    """The name of the GPU, if a row tells it (one for the section: it is asked for with a list of metrics)."""
    names: list[str | None] = [None] * number
    if NAME in long.words["Metric Name"]:
        launch = long.launches[1]
        for row in np.flatnonzero(long.codes["Metric Name"] == long.words["Metric Name"].index(NAME)):
            names[launch[row]] = long.texts[int(row)].as_py()
    return names


def labels(devices: Sequence[str | None], capabilities: Sequence[str | None], names: Sequence[str | None]) -> Array:
    """What devices are called: by name and number where the log tells the name, else by number and capability."""
    found: list[str | None] = []
    for device, capability, name in zip(devices, capabilities, names, strict=True):
        if name:
            found.append(f"{name} ({device or 0})")
        elif device:
            found.append(f"ncu device {device} (CC {capability})" if capability else f"ncu device {device}")
        else:
            found.append(f"ncu device 0 (CC {capability})" if capability else None)
    return np.array(found, dtype=object)

"""Nsight Compute's tables of one row a metric: launches (details page, `--metrics`) and summaries of kernels."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eprof.late import pandas as pd
from eprof.logs import ncu_instances, ncu_parts
from eprof.logs.ncu_numbers import Array, Locale, Style, Unit, counted, is_whole, kind_of, unit_of, values
from eprof.logs.ncu_rows import LONG, Rows, Section, coded
from eprof.logs.table import COUNT

TIMES = ("gpu__time_duration.sum", "gpu__time_duration")
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
_SAMPLE = 4096
_WHOLE = re.compile("[0-9][0-9,]{0,15}")
_KEYS = {
    LONG: ("Process ID", "ID"),
    "ncu-summary": ("Process ID", "Kernel Name", "Block Size", "Grid Size", "Device", "CC"),
}
_METRIC = ("Metric Name", "Metric Unit", "Invocations")
_TOLD = ("Process ID", "Kernel Name", "Device", "CC")


@dataclass
class Part:
    """What one section of a log holds: what its launches are, their metrics, and words for the user."""

    kind: str
    rows: pd.DataFrame
    counters: pd.DataFrame
    units: dict[str, str]
    metrics: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)


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
    table = pa.concat_tables(found.tables).unify_dictionaries() if found.tables else None
    names = [section.columns[one - section.prefix] for one in wanted if one not in texts]
    codes, words = {}, {}
    for place, name in zip([one for one in wanted if one not in texts], names, strict=True):
        codes[name], words[name] = coded(table[str(place)]) if table is not None else (np.zeros(0, np.int64), [])
    cells = table[str(texts[0])].combine_chunks() if table is not None else pa.array([], pa.string())
    numbered = np.ones(len(cells), dtype=bool)
    for name in ("ID", "Process ID", "Invocations"):
        if name in codes:
            numbered &= np.array([bool(_WHOLE.fullmatch(word)) for word in words[name]], dtype=bool)[codes[name]]
    has_metric = np.array([bool(word) for word in words["Metric Name"]], dtype=bool)[codes["Metric Name"]]
    keep, stray = numbered & has_metric, int((~numbered).sum())
    if not keep.all():
        codes, cells = {name: one[keep] for name, one in codes.items()}, cells.filter(pa.array(keep))
    return Long(section, codes, words, ncu_instances.totals(cells), stray, cells)


def look(long: Long, locale: Locale) -> None:
    """Show the numbers of a section to the one who decides how the file writes them."""
    step = max(1, len(long.texts) // _SAMPLE)
    own = Locale()
    for every in dict.fromkeys((step, 1)):  # one program wrote the section, in one style: a part of it tells which
        if not own.proof:
            own.look(pc.take(long.texts, pa.array(np.arange(0, len(long.texts), every))), _wholes(long, every))
    locale.join(own)


def _wholes(long: Long, every: int) -> Array:
    """Which of the cells (every so many) can have no decimals."""
    metric, unit = long.codes["Metric Name"][::every], long.codes["Metric Unit"][::every]
    size = max(1, len(long.words["Metric Unit"]))
    whole = np.zeros((len(long.words["Metric Name"]), size), dtype=bool)
    for one in pd.unique(metric * size + unit) if long.section.kind == LONG else ():
        name, text = long.words["Metric Name"][one // size], long.words["Metric Unit"][one % size]
        whole[one // size, one % size] = is_whole(name, text)
    return np.asarray(whole[metric, unit]) if len(metric) else np.zeros(0, dtype=bool)


def pivot(long: Long, style: Style, keep: Container[str] | None) -> Part:
    """A row a launch (or summarised kernel), a column a metric."""
    first, launch = _launches(long)
    metric, columns = _metrics(long)
    known = np.array([keep is None or name in keep or name in TIMES for name, _ in columns], dtype=bool)
    chosen = known[metric]
    numbers = np.full(len(metric), np.nan)
    numbers[chosen] = values(long.texts if chosen.all() else long.texts.filter(pa.array(chosen)), style)
    numbers *= _factors(long)
    is_count = np.array([kind_of(name, unit) == COUNT for name, unit in columns], dtype=bool)
    numbers = counted(numbers, is_count[metric])
    matrix = np.full((len(first), len(columns)), np.nan)
    there = np.flatnonzero(~np.isnan(numbers))[::-1]  # a metric that two sections show: the first counts
    matrix[launch[there], metric[there]] = numbers[there]
    rows = _rows(long, first, style)
    told = [(place, name, unit) for place, (name, unit) in enumerate(columns) if known[place]]
    kinds = {name: kind_of(name, unit) for _, name, unit in told}
    totals = np.array([kinds[name] == COUNT for _, name, _ in told], dtype=bool)
    data = matrix[:, [place for place, _, _ in told]]
    if long.section.kind != LONG:
        data = np.where(totals[None, :], data * rows["launches"].to_numpy()[:, None], data)
    counters = pd.DataFrame(data, columns=[name for _, name, _ in told], dtype=np.float64)
    rows["time_s"] = seconds(counters)
    by_opcode = _by_opcode(long, launch, len(first), style, keep)
    if by_opcode:
        counters = pd.concat([counters, pd.DataFrame(by_opcode)], axis=1)
    kinds |= dict.fromkeys(by_opcode, COUNT)
    kinds = {name: kind for name, kind in kinds.items() if keep is None or name in keep}
    missing = _missing(long, launch, metric, matrix, [(place, name) for place, name, _ in told])
    metrics = [name for name, _ in columns]
    return Part(long.section.kind, rows, counters[list(kinds)], kinds, metrics, missing)


def _by_opcode(long: Long, launch: Array, number: int, style: Style, keep: Container[str] | None) -> dict[str, Array]:
    """Counters for each opcode, from the metrics that have a value for each."""
    found: dict[str, Array] = {}
    for code, name in enumerate(long.words["Metric Name"]):
        if long.section.kind != LONG or not ncu_instances.PER_OPCODE.fullmatch(name):
            continue
        rows = np.flatnonzero(long.codes["Metric Name"] == code)
        whole = (long.texts if long.whole is None else long.whole).take(pa.array(rows)).to_pylist()
        own = ncu_instances.columns(
            name, ncu_instances.opcodes(name, whole, style), values(long.texts.take(pa.array(rows)), style), keep
        )
        for counter, cells in own.items():
            found[counter] = np.full(number, np.nan)
            found[counter][launch[rows]] = cells
    return found


def seconds(counters: pd.DataFrame) -> Array:
    """The time of each row from its duration in ns; NaN where there is none."""
    time = np.full(len(counters), np.nan)
    for name in TIMES:
        if name in counters:
            time = np.where(np.isnan(time), counters[name].to_numpy() / 1e9, time)
    return time


def _launches(long: Long) -> tuple[Array, Array]:
    """The first row of each launch, and the launch of each row."""
    key = np.zeros(len(long.texts), dtype=np.int64)
    for name in _KEYS[long.section.kind]:
        if name in long.codes:
            key = pd.factorize(key * max(1, len(long.words[name])) + long.codes[name])[0]
    launch, kinds = pd.factorize(key)
    first = np.zeros(len(kinds), dtype=np.int64)
    first[launch[::-1]] = np.arange(len(launch))[::-1]
    return first, launch


def _metrics(long: Long) -> tuple[Array, list[tuple[str, Unit]]]:
    """The column of each row, and what the columns are. One label in two units ("Memory Throughput") is two metrics."""
    units = [unit_of(text) for text in long.words["Metric Unit"]]
    bases = list(dict.fromkeys(unit.base for unit in units))
    base = np.array([bases.index(unit.base) for unit in units], dtype=np.int64)[long.codes["Metric Unit"]]
    codes, pairs = pd.factorize(long.codes["Metric Name"] * max(1, len(bases)) + base)
    columns: list[tuple[str, Unit]] = []
    taken: set[str] = set()
    for one in pairs:
        label, own = long.words["Metric Name"][one // len(bases)], bases[one % len(bases)]
        name = LABELS.get(label, label)
        name = name if name not in taken else f"{label} ({own or 'without unit'})"
        taken.add(name)
        columns.append((name, next(unit for unit in units if unit.base == own)))
    return codes, columns


def _factors(long: Long) -> Array:
    factors = np.array([unit_of(text).factor for text in long.words["Metric Unit"]], dtype=np.float64)
    return np.asarray(factors[long.codes["Metric Unit"]])


def _rows(long: Long, first: Array, style: Style) -> pd.DataFrame:
    def words(name: str) -> list[Any]:
        if name not in long.codes:
            return [None] * len(first)
        return [long.words[name][code] for code in long.codes[name][first]]

    launches = np.ones(len(first), dtype=np.int64)
    if long.section.kind != LONG:
        texts = pa.array(words("Invocations"), pa.string())
        launches = values(texts, style).astype(np.int64)
    process = words("Process ID")
    part = long.section.part
    told = {} if part is None else {"part": pd.Series(ncu_parts.labels(long.section, words(part)), dtype=object)}
    return pd.DataFrame(
        {
            **told,
            "device": labels(words("Device"), words("CC"), _names(long, len(first))),
            "kernel": pd.Series(words("Kernel Name"), dtype=object),
            "process": pd.Series(process, dtype=object),
            "launches": launches,
        }
    )


def _names(long: Long, number: int) -> list[str | None]:
    """The name of the GPU, if a row tells it (one for the section: it is asked for with a list of metrics)."""
    if NAME not in long.words["Metric Name"]:
        return [None] * number
    launch = _launches(long)[1]
    rows = np.flatnonzero(long.codes["Metric Name"] == long.words["Metric Name"].index(NAME))
    names: list[str | None] = [None] * number
    for row in rows:
        names[launch[row]] = long.texts[int(row)].as_py()
    return names


def labels(devices: Sequence[str | None], capabilities: Sequence[str | None], names: Sequence[str | None]) -> pd.Series:
    """What devices are called: by name and number where the log tells the name, else by number and capability."""
    found: list[str | None] = []
    for device, capability, name in zip(devices, capabilities, names, strict=True):
        if name:
            found.append(f"{name} ({device or 0})")
        elif device:
            found.append(f"ncu device {device} (CC {capability})" if capability else f"ncu device {device}")
        else:
            found.append(f"ncu device 0 (CC {capability})" if capability else None)
    return pd.Series(found, dtype=object)


def _missing(
    long: Long, launch: Array, metric: Array, matrix: Array, told: Sequence[tuple[int, str]]
) -> dict[str, int]:
    """Metrics with a row but no number, and for how many launches; texts such as `CachePreferNone` count too."""
    holes = np.isnan(matrix[launch, metric])
    counts = np.bincount(metric[holes], minlength=matrix.shape[1])
    return {name: int(counts[place]) for place, name in told if counts[place]}

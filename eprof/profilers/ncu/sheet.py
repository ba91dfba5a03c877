"""The launches of a table and their metrics, whichever form ncu printed it in: what eprof makes of them, and says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, Columns, alike
from eprof.base.resources import folder
from eprof.base.text import few, pattern
from eprof.base.toml import Document
from eprof.logs.rows.log import COUNT, Clock, Names, Table, TableRows
from eprof.logs.rows.numbers import Unit, kind_of
from eprof.profilers.ncu import derived
from eprof.profilers.ncu.headers import SUMMARY
from eprof.profilers.ncu.signs import SLOWED

GPU_NAME = "device__attribute_display_name"
Words = Sequence[str | None] | Names
ASIDE = ("device__", "launch__", "profiler__", "c2clink__", "nvlink__", "numa__")  # what no kernel does
_PID_DIGITS = 18  # that fit in 64 bits
_RATE = pattern(r"\.(?:pct|ratio|max_rate)$|\.(?:pct_of|per_cycle|peak)_")
_SHOWN, _FEW = 12, 6


@cache
def labels_of_page() -> Mapping[str, Any]:
    """The metrics of ncu's details page by label: `label`, and `rate` by label and unit
    (`counters/ncu/labels.toml`).
    """
    return Document.read(folder("counters") / "ncu" / "labels.toml").data


def metric_of(label: str) -> str:
    """The metric that a label of ncu's details page stands for; others are metrics."""
    return str(labels_of_page()["label"].get(label, label))


class Remarks(Struct):
    """What there is to say about metrics.

    metrics: the names of all, also of those that are not read. missing: how many rows have a metric without a number.
    scaled: counts that were printed in scaled units, and so rounded. twice: metrics that a launch has with two values,
    of which the first is taken. several: metrics whose cells hold only the values of several instances.
    """

    metrics: list[str] = field(default_factory=list)
    missing: dict[str, int] = field(default_factory=dict)
    scaled: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    several: list[str] = field(default_factory=list)

    @classmethod
    def of_all(cls, parts: Iterable[Part]) -> Remarks:
        """The remarks on several sheets of ncu, each once."""
        remarks = [part.remarks for part in parts]
        missing: Counter[str] = Counter()
        for remark in remarks:
            missing.update(remark.missing)
        return cls(
            metrics=_once(remark.metrics for remark in remarks),
            missing=dict(missing),
            scaled=_once(remark.scaled for remark in remarks),
            twice=_once(remark.twice for remark in remarks),
            several=_once(remark.several for remark in remarks),
        )


def _once(lists: Iterable[list[str]]) -> list[str]:
    return list(dict.fromkeys(chain.from_iterable(lists)))


class Sheet(Struct):
    """A row a launch (or kernel of a summary), a column a metric.

    device, capability, gpu (its name), kernel, process, part: texts of the rows, None = not in the log.
    units: the metrics that are read. values: (n_metrics, n_rows), in base units; of a summary they are averages.
    by_opcode: counters for each opcode, totals.
    """

    kind: str
    device: Words
    capability: Words
    gpu: Words
    kernel: Words
    process: Words
    launches: Array
    units: dict[str, Unit]
    values: Array
    remarks: Remarks
    part: Words | None = None
    by_opcode: dict[str, Array] = field(default_factory=dict)


class Part(Struct):
    """The counters of a sheet, or of several below each other.

    names: device, kernel, process; part, if asked for. rows: launches, time_s (s, NaN = not known).
    counters: by name, a value a row: totals of counts, else averages. clocks: a device each.
    """

    kind: str
    names: dict[str, Names]
    rows: dict[str, Array]
    counters: dict[str, Array]
    units: dict[str, str]
    remarks: Remarks
    clocks: tuple[Clock, ...] = ()

    @property
    def size(self) -> int:
        """How many rows a sheet of ncu has."""
        return len(self.rows["launches"])

    def column(self, name: str) -> Array:
        """The values of a counter in a sheet of ncu; NaN if it is not there."""
        return self.counters[name] if name in self.counters else np.full(self.size, np.nan)


def part_of(sheet: Sheet, keep: Container[str] | None) -> Part:
    """The counters of a sheet: its metrics of ncu, and what follows from them. keep: those to hold; None for all."""
    launches = sheet.launches
    kinds = {name: kind_of(name, unit) for name, unit in sheet.units.items()}
    is_count = np.array([kind == COUNT for kind in kinds.values()], dtype=bool)
    counters = dict(zip(kinds, np.where(is_count[:, None], sheet.values * launches, sheet.values), strict=True))
    texts = {"kernel": sheet.kernel, "process": sheet.process, "part": sheet.part}
    names = {name: _names(words) for name, words in texts.items() if words is not None}
    names = {"device": _labels(_names(sheet.device), _names(sheet.capability), _names(sheet.gpu)), **names}
    time_s = derived.seconds(counters, launches)
    clocks = derived.clocks(counters, names["device"].texts(), time_s, launches)

    made = derived.totals(counters, time_s, launches, keep) | sheet.by_opcode
    counters |= made
    kinds |= dict.fromkeys(made, COUNT)
    units = {name: kind for name, kind in kinds.items() if keep is None or name in keep}

    return Part(
        kind=sheet.kind,
        names=names,
        rows={"launches": launches, "time_s": time_s},
        counters={name: counters[name] for name in units},
        units=units,
        remarks=sheet.remarks,
        clocks=clocks,
    )


def _names(words: Words) -> Names:
    return words if isinstance(words, Names) else Names.of(words)


def _labels(*columns: Names) -> Names:
    """What devices of an ncu sheet are called: by name and number where the log has these, else with the capability."""
    kind, first = alike(*(column.codes for column in columns))
    labels: list[str | None] = []
    for device, capability, gpu in zip(*(column.chosen(first).texts() for column in columns), strict=True):
        if gpu:
            labels.append(f"{gpu} ({device or 0})")
        elif capability:
            labels.append(f"ncu device {device or 0} (CC {capability})")
        else:
            labels.append(f"ncu device {device}" if device else None)
    return Names.of(labels).chosen(kind)


def joined(parts: Sequence[Part]) -> Part:
    """Sheets of one ncu table as one, with a row for each kernel, process and pattern of metrics without a number."""
    units: dict[str, str] = {}
    for part in parts:
        units = {**part.units, **units}
    whole = Part(
        kind=parts[0].kind,
        names={name: Names.joined(part.names[name] for part in parts) for name in parts[0].names},
        rows={name: np.concatenate([part.rows[name] for part in parts]) for name in parts[0].rows},
        counters={name: np.concatenate([part.column(name) for part in parts]) for name in units},
        units=units,
        remarks=Remarks.of_all(parts),
        clocks=derived.joined([clock for part in parts for clock in part.clocks]),
    )
    return _added_up(whole)


def _added_up(part: Part) -> Part:
    """Rows of an ncu sheet of one device, kernel, process and part that lack the same values, added up to one.

    Totals are added, averages weighted by launches.
    """
    launches = part.rows["launches"]
    texts = [column.codes for column in part.names.values()]
    lacks = [np.isnan(values) for values in (part.rows["time_s"], *part.counters.values())]
    group, first = alike(*texts, *lacks)
    size = len(first)
    number = np.bincount(group, launches, size)

    def added(name: str, values: Array) -> Array:
        if part.units[name] == COUNT:
            return np.bincount(group, values, size)
        return np.bincount(group, values * launches, size) / np.maximum(number, 1)

    return replace(
        part,
        names={name: column.chosen(first) for name, column in part.names.items()},
        rows={"launches": number.astype(np.int64), "time_s": np.bincount(group, part.rows["time_s"], size)},
        counters={name: added(name, values) for name, values in part.counters.items()},
    )


def tables_of(parts: Sequence[Part]) -> list[Table]:
    """The tables of an ncu log: its parts of one kind below each other; every process of every part is a run."""
    kinds = dict.fromkeys(part.kind for part in parts)
    return [_table([part for part in parts if part.kind == kind]) for kind in kinds]


def _table(parts: Sequence[Part]) -> Table:
    units: dict[str, str] = {}
    for part in parts:
        units = {**part.units, **units}
    if not counting(units):
        units = {name: unit for name, unit in units.items() if not name.startswith(ASIDE)}
    processes = [(place, process) for place, part in enumerate(parts) for process in part.names["process"].texts()]
    run_of = {process: run for run, process in enumerate(dict.fromkeys(processes))}
    numbers = {text: int(text) for _, text in run_of if text and text.isdecimal() and len(text) <= _PID_DIGITS}
    rows = TableRows(
        device=_column_names(parts, "device"),
        kernel=_column_names(parts, "kernel"),
        run=np.array([run_of[process] for process in processes], dtype=np.int64),
        launches=np.concatenate([part.rows["launches"] for part in parts]),
        time_s=np.concatenate([part.rows["time_s"] for part in parts]),
        process=np.array([numbers.get(text or "", -1) for _, text in processes], dtype=np.int64),
        part=_column_names(parts, "part") if any("part" in part.names for part in parts) else None,
    )
    values = np.full((len(units), len(processes)), np.nan)
    for name, row in zip(units, values, strict=True):
        np.concatenate([part.column(name) for part in parts], out=row)
    return Table(parts[0].kind, rows, Columns(tuple(units), values.T), units)


def _column_names(parts: Sequence[Part], column: str) -> Names:
    texts = [part.names[column].texts() if column in part.names else np.full(part.size, None) for part in parts]
    return Names.of(np.concatenate(texts).tolist())


def counting(names: Iterable[str]) -> bool:
    """Whether a program can be counted with these metrics of an ncu table: not with what they say of the device
    alone.
    """
    return any("__" in name and not name.startswith(ASIDE) for name in names)


def notes_of_parts(parts: Sequence[Part], keep: Container[str] | None) -> Iterator[str]:
    """What there is to say on counters of ncu, whichever form they were printed in."""
    if any(not np.isnan(part.rows["time_s"]).all() for part in parts):
        yield SLOWED
    remarks = Remarks.of_all(parts)
    if remarks.several:
        names = few(remarks.several, _SHOWN)
        yield f"{names}: a cell holds the values of several instances, whose sum nothing tells, so not known"
    if keep is not None:
        missing = [f"{name} ({number})" for name, number in remarks.missing.items()]
        if missing:
            yield f"cells without a number, by metric: {few(missing, _SHOWN)}; these are not known"
    # Totals that rates do not give for any row, for lack of cycles, say, count nothing.
    countable = [
        name
        for part in parts
        for name in part.units
        if not name.endswith(derived.TOTAL) or not np.isnan(part.column(name)).all()
    ]
    if parts and not counting(countable):
        yield _not_counted(remarks.metrics)


def notes_of_lines(parts: Sequence[Part], is_page_scaled: bool) -> Iterator[str]:
    """What there is to say on counters that ncu printed. is_page_scaled: that the page rounds was said."""
    is_summary = any(part.kind == SUMMARY for part in parts)
    if is_summary:
        yield "totals of a summary are its averages times the invocations; averages are rounded"
    averages: dict[str, None] = {}  # of several launches, and so no totals
    for part in parts:
        several = part.rows["launches"] > 1
        for name, values in part.counters.items():
            if name.endswith(derived.TOTAL) and np.isnan(values[several]).any():
                averages[name.removesuffix(derived.TOTAL)] = None
    if averages and is_summary:
        yield (
            f"{few(list(averages), _SHOWN)}: a summary has only the mean rate of launches, which tells no total; "
            "print the log without --print-summary"
        )
    remarks = Remarks.of_all(parts)
    if remarks.twice:
        yield f"{few(remarks.twice, _FEW)}: told twice for one launch, with two values; the first is used"
    if remarks.scaled and not is_page_scaled:
        yield (
            f"printed in scaled units, so rounded, and 0 may stand for a few: {few(remarks.scaled, _FEW)}; "
            "`--csv --page raw --print-units base` writes them whole"
        )


def _not_counted(metrics: Sequence[str]) -> str:
    """A note on what an ncu log has instead, if none of its metrics is one that eprof knows."""
    names = sorted((name for name in metrics if name not in derived.TIMES), key=lambda name: name.startswith(ASIDE))
    if not names:
        return "the log has no metric but times; `eprof counters` lists what to ask ncu for with --metrics"
    rates = [name for name in names if not name.startswith(ASIDE) and _RATE.search(name)]
    only = f"{len(rates)} are percentages or rates a cycle, which are no counts; " if rates else ""
    return (
        f"none of the log's {len(names)} metrics is one that eprof counts with ({only}it has {few(names, _FEW)}); "
        "`eprof counters` lists what to ask ncu for with --metrics"
    )

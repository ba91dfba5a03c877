"""The launches of a table and their metrics, whichever form ncu printed it in; and what eprof makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Array, alike
from eprof.base.resources import folder
from eprof.base.toml import Document
from eprof.logs.rows.log import COUNT, Clock, Names
from eprof.logs.rows.units import Unit, kind_of
from eprof.profilers.ncu import derived

GPU_NAME = "device__attribute_display_name"
Words = Sequence[str | None] | Names


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

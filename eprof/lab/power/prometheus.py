"""Samples of metrics with labels, as Prometheus has them, put side by side: a row for each moment and device.

Read are what an exporter answers (`name{gpu="0"} 1.5`, maybe with a time in ms), once or again and again; tables of
queries, with a sample or a moment a row; what `promtool query range` prints.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from eprof.base.text import pattern, when

_SERIES = r"(?P<name>\w+)\{(?P<labels>.*)\}"
_SAMPLE = pattern(_SERIES + r"\s+(?P<value>[^\s=]+)(?:\s+(?P<time>\d+))?\s*")
_TITLE = pattern(_SERIES + r"(?:\s*=>\s*)?")
_AT = pattern(r"(?P<value>\S+) @\[(?P<time>\d+(?:\.\d+)?)\]\s*")
_LABEL = pattern(r'(?<!\w)(\w++)="?((?:[^"\\,]|\\.)*)"?')
_MOMENT = pattern(r"(?:# ?)?(\d{10,13}(?:\.\d+)?|\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|[+-]\d\d:?\d\d)?)\s*")
_NAME, _VALUE, _TIME = ("__name__", "metric", "name"), ("value",), ("time", "timestamp", "ts")


class Samples(Struct, forbid_unknown_fields=True):
    """Which metrics are read: `name`, a pattern; by which labels devices and hosts are told, the first that is there.

    part: a label of parts of devices, which are left out. table_of: the file beside it with the table of such names.
    """

    name: str
    device: list[str]
    host: list[str]
    part: str
    table_of: str


class _Sample(NamedTuple):
    name: str
    labels: Mapping[str, str]
    value: str
    time: str


def side_by_side(form: Samples, lines: Sequence[str]) -> tuple[list[str], list[int]]:
    """Samples as lines of CSV `timestamp,gpu,...`, a column a metric, and the log's line of each; empty if none fit."""
    if not any(re.search(form.name, line[:2000]) for line in lines[:400]):  # lines in which names are looked for
        return [], []
    rows: dict[tuple[int, str, str, str], dict[str, str]] = {}
    numbers = [1]
    scrape = 0
    for number, sample in _samples(lines):
        if not re.fullmatch(form.name, sample.name) or sample.labels.get(form.part):
            continue
        host, device = _first(form.host, sample.labels), _first(form.device, sample.labels)
        if sample.name in rows.get((scrape, sample.time, host, device), ()):  # the next answer, where none has a time
            scrape += 1
        key = scrape, sample.time, host, device
        if key not in rows:
            numbers.append(number)
        rows.setdefault(key, {})[sample.name] = sample.value
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    has_times = any(time for _, time, _, _ in rows)
    has_hosts = len({host for _, _, host, _ in rows}) > 1
    table = [",".join([*["timestamp"] * has_times, "gpu", *names])]
    for (_, time, host, device), row in rows.items():
        label = when(has_hosts, f"{host} ") + device
        table.append(",".join([*[time] * has_times, label, *(row.get(name, "") for name in names)]))
    return table, numbers


def _first(names: Sequence[str], labels: Mapping[str, str]) -> str:
    return next((labels[name].replace(",", " ") for name in names if labels.get(name)), "")


def _samples(lines: Sequence[str]) -> Iterator[tuple[int, _Sample]]:
    """Yields (number of the line, sample) of Prometheus' text form, a long table or a wide one, in their order."""
    time, title, header = "", None, list[str]()
    for number, line in enumerate(lines, 1):
        if (sample := _SAMPLE.fullmatch(line)) is not None:
            yield number, _Sample(sample["name"], _labels(sample["labels"]), sample["value"], sample["time"] or time)
        elif (told := _MOMENT.fullmatch(line)) is not None:
            time = told[1]
        elif (value := _AT.fullmatch(line)) is not None and title is not None:
            yield number, _Sample(title["name"], _labels(title["labels"]), value["value"], value["time"])
        elif (begun := _TITLE.fullmatch(line)) is not None:
            title = begun
        elif "," in line and not line.startswith("#"):
            cells = [cell.strip() for cell in next(csv.reader([line]), [])]
            if any(cell.lower() in _TIME for cell in cells):
                header = cells
            elif len(cells) == len(header):
                yield from ((number, sample) for sample in _of_row(header, cells))


def _of_row(header: Sequence[str], cells: Sequence[str]) -> Iterator[_Sample]:
    """The samples of a row: one with its name and labels in cells, or one in each column with a series' name."""
    told = {name if name.isupper() else name.lower(): cell for name, cell in zip(header, cells, strict=True)}
    labels = {**told, **dict(zip(header, cells, strict=True))}
    time = _first(_TIME, told)
    if _first(_NAME, told) and _first(_VALUE, told):
        yield _Sample(_first(_NAME, told), labels, _first(_VALUE, told), time)
        return
    for name, cell in zip(header, cells, strict=True):
        series = _TITLE.fullmatch(name)
        if series is not None and cell:
            yield _Sample(series["name"], _labels(series["labels"]), cell, time)


def _labels(text: str) -> dict[str, str]:
    return dict(_LABEL.findall(text))

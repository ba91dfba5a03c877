"""A log of nvprof or ncu in CSV, row by row. After docs/formats.md."""

from __future__ import annotations

import csv
import gzip
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SUMMARY, EVENTS, WIDE, TRACE, USAGE, NCU = "metrics summary", "events summary", "wide", "trace", "usage", "ncu"
COUNT, SHARE, OTHER = "count", "share", "other"
WENT_WRONG = 2.0**64 * (1 - 1e-9)  # a counter that ran backwards: 2^64 - 1 and the like
SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "second": 1.0, "msecond": 1e-3, "usecond": 1e-6}
SECONDS |= {"nsecond": 1e-9}
SCALES = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class NotUnderstood(Exception):
    """This log is not one for the oracle."""


@dataclass
class Row:
    """One launch, or one line of a summary over `launches` of them. None: a cell without a number."""

    table: str
    kind: str
    process: str | None
    device: str | None
    capability: str | None
    kernel: str
    launches: int
    values: dict[str, float | None] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    time_s: float | None = None
    number: int = 0  # of its pass
    opcodes: dict[str, float] | None = None  # warp instructions by opcode with modifiers


def read(path: Path) -> list[Row]:
    """The rows of a log. Raises NotUnderstood."""
    data = path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:6] == b"SQLite" or b"\0" in data[:4096]:
        raise NotUnderstood("not text")
    lines = data.decode("utf-8-sig", errors="replace").splitlines()
    rows = list(_ncu(lines)) if any(_is_ncu(line) for line in lines) else list(_nvprof(lines))
    if not rows:
        raise NotUnderstood("no table in CSV")
    place = hashlib.sha256(data).hexdigest()
    for row in rows:
        row.table = f"{place} {row.table}"
    return rows


def _fields(line: str) -> list[str]:
    return next(csv.reader([line], skipinitialspace=True), [])


# ------------------------------------------------------------------------------------------------------------ nvprof

FIRST = {"Device", "Start", "Time(%)", "Type"}


@dataclass
class _Table:
    """A table of nvprof as it stands: its header, and the fields of each line below. `before`: columns of a script."""

    process: str | None
    header: list[str]
    before: int
    of_host: bool
    lines: list[list[str]] = field(default_factory=list)


def _nvprof(lines: list[str]) -> Iterator[Row]:
    for number, table in enumerate(_tables(lines)):
        kind = None if table.of_host else _kind(table.header)
        first = table.lines[0] if table.lines else []
        has_units = kind in (WIDE, TRACE, USAGE) and bool(first) and _is_units(first, kind)
        units = dict(zip(table.header, first, strict=True)) if has_units else {}
        for fields in table.lines[has_units:] if kind else ():
            row = _nvprof_row(kind, dict(zip(table.header, fields, strict=True)), table.header, units)
            if row is not None:
                row.table, row.process = str(number), table.process
                yield row


def _tables(lines: list[str]) -> list[_Table]:
    """Tables with the lines that fit them: an empty line or one of nvprof's own ends a table."""
    found: list[_Table] = []
    process, of_host, is_open = None, False, False
    for line in lines:
        if not line.strip() or line.startswith("=="):
            mark = re.match(r"==(\d+)== ", line)
            process = mark[1] if mark else process
            of_host = line.rstrip().endswith("API calls:")
            is_open = False
            continue
        fields = _fields(line)
        begin = _header(fields)
        if begin:
            before = fields.index(begin)
            found.append(_Table(process, fields[before:], before, of_host))
            is_open = True
        elif is_open and len(fields) in (len(found[-1].header), len(found[-1].header) + found[-1].before):
            found[-1].lines.append(fields[-len(found[-1].header) :])
    return found


def _header(fields: list[str]) -> str | None:
    begin = next((name for name in fields if name in FIRST), None)
    return begin if begin and ({"Kernel", "Name"} & set(fields)) and fields.index(begin) <= 2 else None


def _kind(header: list[str]) -> str | None:
    if header[:3] == ["Device", "Kernel", "Invocations"]:
        return EVENTS if "Event Name" in header else SUMMARY
    if header[:4] == ["Device", "Context", "Stream", "Kernel"]:
        return WIDE
    if header[0] == "Start" and "Duration" in header:
        return TRACE
    return USAGE if "Calls" in header and "Name" in header else None


def _is_units(fields: list[str], kind: str) -> bool:
    if kind == WIDE:
        return fields[0] == ""
    return any(one in SECONDS for one in fields[:3])


def _nvprof_row(kind: str, cells: dict[str, str], header: list[str], units: dict[str, str]) -> Row | None:
    if kind in (SUMMARY, EVENTS):
        if not cells["Invocations"].isdigit():
            return None
        launches = int(cells["Invocations"])
        name = cells["Event Name" if kind == EVENTS else "Metric Name"]
        value, unit = _value(cells.get("Total", cells["Avg"]))
        if value is not None and unit == COUNT and "Total" not in cells:
            value *= launches
        return Row("", kind, None, _device(cells), None, cells["Kernel"], launches, {name: value}, {name: unit})
    if kind == WIDE:
        row = Row("", kind, None, _device(cells), None, cells["Kernel"], 1)
        for name in header[4:]:
            if name != "Correlation_ID" and header.count(name) == 1:
                row.values[name], row.units[name] = _value(cells[name], units.get(name, ""))
        return row
    name = cells["Name"]
    if (
        name.startswith("[CUDA mem")
        or name.startswith("[Unified")
        or cells.get("Type", "GPU activities") != "GPU activities"
    ):
        return None
    if kind == TRACE:
        kernel = name if "Correlation_ID" in cells else re.sub(r" \[\d+\]$", "", name)
        return Row("", kind, None, _device(cells), None, kernel, 1, time_s=_time(cells["Duration"], units["Duration"]))
    if not cells["Calls"].isdigit() or "Time" not in units:
        return None
    return Row("", kind, None, None, None, name, int(cells["Calls"]), time_s=_time(cells["Time"], units["Time"]))


def _device(cells: dict[str, str]) -> str | None:
    return cells["Device"].removeprefix("NVIDIA ") or None


def _time(text: str, unit: str) -> float | None:
    try:
        return float(text) * SECONDS[unit]
    except (ValueError, KeyError):
        return None


def _value(text: str, unit: str = "") -> tuple[float | None, str]:
    """A cell as number and kind; None where there is no number. Rates and levels are of no concern here."""
    if text.endswith("%"):
        text, unit = text[:-1], "%"
    try:
        number = float(text)
    except ValueError:
        return None, OTHER if re.search(r"/s$|\(\d+\)$", text) or unit not in ("", "%") else COUNT
    kind = {"": COUNT, "%": SHARE}.get(unit, OTHER)
    if number != number or abs(number) >= WENT_WRONG:
        return None, kind
    return number, OTHER if number < 0 else kind


# --------------------------------------------------------------------------------------------------------------- ncu


def _is_ncu(line: str) -> bool:
    return re.match(r'[^"]{0,200}"?ID"?,"?Process ID"?,', line) is not None


def _ncu(lines: list[str]) -> Iterator[Row]:
    header: list[str] = []
    units: list[str] = []
    launches: dict[tuple[str, str], Row] = {}
    for line in lines:
        if _is_ncu(line):
            header, units = _fields(line[re.search('"?ID"?,"?Process ID', line).start() :]), []
            continue
        fields = _fields(line) if header else []
        if len(fields) == len(header) and fields[:1] == [""]:
            units = fields
        elif len(fields) > 5 and fields[0].isdigit():
            _ncu_row(launches, header, units, fields)
    for row in launches.values():
        row.time_s = row.values.pop("gpu__time_duration.sum", None)
        yield row


def _ncu_row(launches: dict[tuple[str, str], Row], header: list[str], units: list[str], fields: list[str]) -> None:
    """Put a line to its launch: a metric of it, or all of them."""
    cells = dict(zip(header, fields, strict=False))
    key = (cells["Process ID"], cells["ID"])
    if key not in launches:
        device = f"ncu {cells['Device']}" if "Device" in cells else None
        launches[key] = Row("", NCU, cells["Process ID"], device, cells.get("CC"), cells["Kernel Name"], 1)
    if "Metric Name" in header:
        metrics = [(cells["Metric Name"], cells.get("Metric Unit", ""), cells.get("Metric Value", ""))]
    else:
        metrics = list(zip(header, units, fields, strict=False))
    for name, unit, text in metrics:
        if "__" in name:
            _put(launches[key], name, unit, text)


def _put(row: Row, name: str, unit: str, text: str) -> None:
    """A metric of a launch. A total is what ends in .sum, in the base unit."""
    if name == "sass__inst_executed_per_opcode_with_modifier_all":
        row.opcodes = _opcodes(text)
        return
    value = _grouped(text)
    if value is not None and abs(value) >= WENT_WRONG:
        value = None
    if name == "gpu__time_duration.sum":
        value = value * SECONDS[unit] if value is not None and unit in SECONDS else None
    elif scaled := re.fullmatch(r"([KMGT]?)byte", unit):
        value = None if value is None else value * SCALES[scaled[1]]
    if name in row.values and row.values[name] != value:
        raise NotUnderstood(f"{name} has two values in one launch")
    row.values[name] = value
    row.units[name] = COUNT if name.endswith(".sum") else OTHER


def _opcodes(text: str) -> dict[str, float] | None:
    """The numbers of "30 (FFMA: 10; HMMA.16816.F32: 20)", if they add up."""
    total, _, rest = text.partition(" (")
    pairs = re.findall(r"([A-Z][\w.]*): ([\d,]+)", rest)
    numbers = {name: float(number.replace(",", "")) for name, number in pairs}
    return numbers if numbers and sum(numbers.values()) == _grouped(total) else None


def _grouped(text: str) -> float | None:
    """A number with or without groups of digits, "5,318,969,728.00"; a comma is never a decimal point here."""
    if not re.fullmatch(r"-?\d[\d,]*(\.\d+)?(e[+-]?\d+)?", text):
        return None
    return float(text.replace(",", ""))


# --------------------------------------------------------------------------------------------------- names of metrics


def names(summaries: list[Path]) -> dict[str, str]:
    """Description -> metric, as summaries have both: traces of old versions are headed by descriptions."""
    found = {}
    for path in summaries:
        for table in _tables(path.read_text(errors="replace").splitlines()):
            if _kind(table.header) == SUMMARY:
                found |= {fields[4]: fields[3] for fields in table.lines}
    return found


def named(rows: list[Row], known: dict[str, str]) -> list[Row]:
    """Rows with descriptions turned to names."""
    for row in rows:
        row.values = {known.get(name, name): value for name, value in row.values.items()}
        row.units = {known.get(name, name): unit for name, unit in row.units.items()}
    return rows

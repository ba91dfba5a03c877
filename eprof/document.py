"""The document `eprof.profile/1`: a priced profile as plain data (docs/profile-json.md)."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from eprof import __version__
from eprof.energy import join
from eprof.marks import Mark, names
from eprof.profile import FAMILIES, SCHEMA, Energy, family_marks, flops
from eprof.vocabulary import COUNTS

if TYPE_CHECKING:
    from eprof.costs import Costs
    from eprof.logs.table import Log
    from eprof.profile import Device

_MARK_WORDS = {bits: names(bits) for bits in range(16)}


def document(energy: Energy) -> dict[str, Any]:
    """The whole document. Numbers are Python floats and ints; NaN became None."""
    frame = energy.to_frame()
    devices = [_device(one.device) for one in energy.profile.counted]
    time_s = _sum(energy.counts.kernels["time_s"])
    parts, part_marks = _energies(energy)
    warnings = energy.warnings
    return {
        "schema": SCHEMA,
        "eprof": __version__,
        "title": energy.profile.title,
        "created_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command_line": list(energy.profile.command_line),
        "inputs": [_input(log) for log in energy.profile.logs],
        "device": devices[0],
        "devices": devices,
        "definition": _definition(energy),
        "costs": _costs(energy.costs) if energy.costs else None,
        "time_s": time_s,
        "time_marks": _MARK_WORDS[_time_mark(energy)],
        "time_from": "; ".join(dict.fromkeys(one.time_from for one in energy.profile.counted if one.time_from)) or None,
        "power_w": _ratio(parts["total"], time_s),
        "launches": int(frame["launches"].sum()),
        "energy_j": parts,
        "energy_marks": part_marks,
        "counts": _total_counts(energy),
        "intensity_flop_per_byte": _intensity(energy),
        "marks": part_marks["total"],
        "warnings": warnings,
        "kernels": list(_kernels(energy)),
    }


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _sum(column: pd.Series) -> float | None:
    return _number(column.sum(min_count=1))


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _device(device: "Device") -> dict[str, Any]:
    return {
        "name": device.name,
        "index": device.index,
        "capability": device.capability,
        "capability_from": device.capability_from,
    }


def _input(log: "Log") -> dict[str, Any]:
    return {
        "path": log.path,
        "format": log.format,
        "lines": log.lines,
        "skipped_lines": log.skipped_lines,
        "sha256": log.sha256,
        "size_bytes": log.size_bytes,
        "command": log.command,
        "notes": list(log.notes),
    }


def _definition(energy: Energy) -> dict[str, Any]:
    used = list(dict.fromkeys(one.definition for one in energy.profile.counted))
    return {"name": ", ".join(one.name for one in used), "source": " ".join(one.source for one in used)}


def _costs(costs: "Costs") -> dict[str, Any]:
    setting = costs.setting
    return {
        "name": costs.name,
        "device": costs.device,
        "source": costs.source,
        "books": costs.books,
        "setting": {
            "core_mhz": setting.core_mhz,
            "core_v": setting.core_v,
            "memory_mhz": setting.memory_mhz,
            "memory_v": setting.memory_v,
        },
        "setting_from": costs.setting_from,
        "constant_power_w": costs.constant_power_w,
        "constant_why": costs.constant_why,
        "charges": {
            name: {
                "pays": charge.pays,
                "pj": charge.pj,
                "formula": charge.formula,
                "why": charge.why,
                "marks": names(charge.marks),
            }
            for name, charge in costs.charges.items()
        },
        "marks": names(costs.marks),
        "notes": list(costs.notes),
    }


def _energies(energy: Energy) -> tuple[dict[str, float | None], dict[str, list[str]]]:
    """Energy of the whole run by family, and the marks on each."""
    empty: dict[str, float | None] = dict.fromkeys((*FAMILIES, "total", "measured"))
    if energy.split is None:
        return empty, {part: ["missing"] for part in (*FAMILIES, "total")}
    split = energy.split
    parts = {
        "computation": _sum(split.computation_j),
        "data": _sum(split.data_j),
        "constant": _sum(split.constant_j),
        "total": _sum(split.total_j),
    }
    marks = join(family_marks(split), axis=0)
    return {**empty, **parts}, {str(part): _MARK_WORDS[int(mark)] for part, mark in marks.items()}


def _cell_marks(energy: Energy, name: str) -> pd.Series:
    """The marks of a count's cells together with those of its energy."""
    marks = energy.counts.marks[name]
    if energy.split is not None and name in energy.split.marks:
        marks = marks | energy.split.marks[name]
    return marks.astype("int64")


def _time_marks(energy: Energy) -> pd.Series:
    """The marks of each kernel's time; MISSING where it is not known."""
    kernels = energy.counts.kernels
    unknown = np.where(kernels["time_s"].isna(), int(Mark.MISSING), 0)
    return kernels["time_marks"].astype("int64") | unknown


def _time_mark(energy: Energy) -> int:
    return int(np.bitwise_or.reduce(_time_marks(energy).to_numpy(dtype=np.int64)))


def _total_counts(energy: Energy) -> dict[str, Any]:
    found = {}
    for name in energy._listed():
        value = energy.counts.table[name]
        joules = energy.split.table[name] if energy.split is not None and name in energy.split.table else None
        mark = int(np.bitwise_or.reduce(_cell_marks(energy, name).to_numpy(dtype=np.int64)))
        found[name] = {
            "value": _sum(value),
            "unit": COUNTS[name].unit,
            "energy_j": _sum(joules) if joules is not None else None,
            "marks": _MARK_WORDS[mark],
            "how": [
                {"formula": way.formula, "note": way.note, "marks": names(way.mark), "kernels": way.kernels}
                for way in energy.counts.how.get(name, ())
            ],
        }
    return found


def _intensity(energy: Energy) -> float | None:
    table = energy.counts.table
    work = flops(table)
    traffic = table["dram_read"] + table["dram_write"]
    if work.isna().any() or traffic.isna().any():
        return None
    return _ratio(float(work.sum()), float(traffic.sum()))


def _kernels(energy: Energy) -> Iterator[dict[str, Any]]:
    """A dict for each kernel, largest energy first. Columns become lists once: 5,000 kernels in a blink."""
    frame = energy.to_frame()
    order = energy._order(_keys(energy))
    listed = energy._listed()
    cells = [_column(energy, name, order) for name in listed]
    marks = _family_words(energy, order)
    times = [_MARK_WORDS[int(mark)] for mark in _time_marks(energy).loc[order]]
    records = frame[
        ["device", "kernel", "launches", "time_s", "power_w", "intensity_flop_per_byte"]
        + ["computation_j", "data_j", "constant_j", "total_j"]
    ].to_numpy(dtype=object)
    for row, (device, kernel, launches, time_s, power_w, flop_b, *joules) in enumerate(records):
        parts = dict(zip(("computation", "data", "constant", "total"), map(_number, joules), strict=True))
        words = {family: marks[family][row] for family in marks}
        yield {
            "name": kernel,
            "device": None if pd.isna(device) else device,
            "launches": int(launches),
            "time_s": _number(time_s),
            "time_marks": times[row],
            "power_w": _number(power_w),
            "counts": {
                name: cell for name, column in zip(listed, cells, strict=True) if (cell := column[row]) is not None
            },
            "energy_j": {**parts, "measured": None},
            "energy_marks": words,
            "intensity_flop_per_byte": _number(flop_b),
            "marks": words["total"],
        }


def _keys(energy: Energy) -> pd.DataFrame:
    frame = energy.counts.kernels[["device", "kernel", "time_s"]].copy()
    frame["total_j"] = energy.split.total_j if energy.split is not None else np.nan
    return frame


def _family_words(energy: Energy, order: pd.Index) -> dict[str, list[list[str]]]:
    if energy.split is None:
        return {part: [["missing"]] * len(order) for part in (*FAMILIES, "total")}
    marks = family_marks(energy.split).loc[order]
    return {str(part): [_MARK_WORDS[int(mark)] for mark in marks[part]] for part in marks}


def _column(energy: Energy, name: str, order: pd.Index) -> list[dict[str, Any] | None]:
    """A count's cell for each kernel; None where it neither was counted nor is missing."""
    values = energy.counts.table[name].loc[order].tolist()
    marks = _cell_marks(energy, name).loc[order].tolist()
    split = energy.split
    joules = (
        split.table[name].loc[order].tolist() if split is not None and name in split.table else [math.nan] * len(values)
    )
    unit = COUNTS[name].unit
    charge = energy.costs.charges.get(name) if energy.costs is not None else None
    wanted = charge is not None and charge.pays
    cells: list[dict[str, Any] | None] = []
    for value, joule, mark in zip(values, joules, marks, strict=True):
        if math.isnan(value) and not (wanted and mark & Mark.MISSING):
            cells.append(None)
            continue
        cells.append(
            {
                "value": None if math.isnan(value) else value,
                "unit": unit,
                "energy_j": None if math.isnan(joule) else joule,
                "marks": _MARK_WORDS[mark],
            }
        )
    return cells

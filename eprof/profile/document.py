"""The document `eprof.profile/1`: a priced profile as plain data (docs/profile-json.md)."""

import math
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from eprof import __version__
from eprof.base.arrays import Array, Ints
from eprof.base.marks import Mark, names
from eprof.base.vocabulary import COUNTS, LEVEL_PARTS
from eprof.energy.attribution import FAMILIES
from eprof.logs.join.ranks import PARTS, RANK
from eprof.profile import whatif
from eprof.profile.grouping import Grouping, shown, spread_of_ranks
from eprof.profile.profile import SCHEMA, Energy
from eprof.rooflines import described, flops_of, machines, main_precision, place, traffic_of

if TYPE_CHECKING:
    from eprof.costs import Costs
    from eprof.profile.profile import Device
    from eprof.rows.log import Log

_INTENSITY = "intensity_flop_per_byte"
_MARK_WORDS = {bits: names(bits) for bits in range(16)}


def document(energy: Energy) -> dict[str, Any]:
    """The whole document. Numbers are Python floats and ints; NaN became None."""
    apart = energy
    energy, place_of = apart.whole()
    frame = energy.sums()
    cells = _Cells(energy)
    devices = [_device(one.device) for one in energy.profile.counted]
    time_s = time_of(energy)
    parts, part_marks = energies(energy)
    warnings = apart.warnings
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
        "costs": {**_costs(energy.costs, energy.listed), **_fit(energy)} if energy.costs else None,
        "time_s": time_s,
        "time_marks": _MARK_WORDS[_time_mark(energy)],
        "time_from": energy.time_from,
        "power_w": _ratio(parts["total"], time_s) if energy.is_timed else None,
        "launches": int(frame["launches"].sum()),
        "energy_j": parts,
        "energy_marks": part_marks,
        "counts": _total_counts(energy, cells),
        "intensity_flop_per_byte": _intensity(energy),
        "marks": part_marks["total"],
        **_groups(apart, place_of),
        **_modelled(energy),
        "warnings": warnings,
        "kernels": list(_kernels(energy, frame, cells)),
    }


def _groups(energy: Energy, place_of: np.ndarray) -> dict[str, Any]:
    """`groups` and how they were made, if there are groups. place_of: of each row in the document's kernels."""
    if energy.grouping is None:
        return {}
    members = energy.grouping.members(energy.counts.rows)
    if energy.grouping.by in PARTS:
        return _parts(energy, energy.grouping, members, place_of)
    groups = [_group(name, energy.only(places), places) for name, places in members.items() if len(places)]
    return {"grouped": energy.grouping.how, "groups": groups}


def _parts(energy: Energy, grouping: Grouping, members: dict[str, np.ndarray], place_of: np.ndarray) -> dict[str, Any]:
    """As `_groups`, for ranks, streams and ranges; of thousands those with the most energy; and how ranks differ."""
    counts, split = energy.counts, energy.split
    weight = counts.rows.time_s
    if split is not None and not np.isnan(split.total_j).all():
        weight = split.total_j
    groups = []
    for one in shown(members, weight):
        group = _group(one.name, energy.only(one.places), np.unique(place_of[one.places]))
        if grouping.untold in members and one.name != grouping.untold:
            _bound(group)
        groups.append({**group, "stands_for": one.stands_for} if one.stands_for > 1 else group)
    found: dict[str, Any] = {"grouped": grouping.how, "groups": groups}
    if grouping.by == RANK:
        found["ranks"] = spread_of_ranks(members, counts, split)
    return found


def _bound(group: dict[str, Any]) -> None:
    """Mark all of a group as lower bounds: some of what no log tells the part of may be its."""
    cells = group["counts"].values()
    group["power_w"] = None
    for holder, key in [
        (group, "time_marks"),
        (group, "marks"),
        *((group["energy_marks"], part) for part in group["energy_marks"]),
        *((cell, "marks") for cell in cells),
    ]:
        holder[key] = list(dict.fromkeys([*holder[key], "missing"]))
    for cell in cells:
        if cell["value"] is not None:
            cell["lower_bound"] = True


def _group(name: str, energy: Energy, places: np.ndarray) -> dict[str, Any]:
    """The totals of some kernels, like those of the whole; `kernels` are their places in the document."""
    cells = _Cells(energy)
    time_s = time_of(energy)
    parts, marks = energies(energy)
    counted = _total_counts(energy, cells)
    return {
        "name": name,
        "kernels": places.tolist(),
        "launches": int(energy.counts.rows.launches.sum()),
        "time_s": time_s,
        "time_marks": _MARK_WORDS[_time_mark(energy)],
        "power_w": _ratio(parts["total"], time_s) if energy.is_timed else None,
        "counts": {word: {key: cell[key] for key in cell if key != "how"} for word, cell in counted.items()},
        "energy_j": {**parts, "measured": None},
        "energy_marks": marks,
        "intensity_flop_per_byte": _intensity(energy),
        "marks": marks["total"],
    }


def _modelled(energy: Energy) -> dict[str, Any]:
    """`limits`, `clocks` and `what_if`: what the model says of other machines, clocks and programs."""
    if energy.costs is None or energy.split is None:
        return {}
    found: dict[str, Any] = {}
    drawn = machines(energy.costs)
    if drawn:
        precision = main_precision(energy.counts.amounts)
        drawn.sort(key=lambda one: one.precision != precision)
        rows = place(energy.counts, energy.costs, energy.split).rows()
        found["limits"] = {"machines": [described(one) for one in drawn], "kernels": rows}
    within = whatif.interval(energy)
    if within is not None:
        found["interval_j"] = within
    grid = whatif.clocks(energy)
    if grid is not None:
        found["clocks"] = grid
    asked = [energy.what_if(question) for question in energy.questions]
    answers = [*asked, *(one for one in whatif.usual(energy) if one.question not in energy.questions)]
    if answers:
        found["what_if"] = [{**one.data(), "asked": at < len(asked)} for at, one in enumerate(answers)]
    return found


def _number(value: Any) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


def _numbers(column: np.ndarray) -> list[float | None]:
    """A column as Python floats, None for what is not known; a whole column at once, because cell by cell is slow."""
    boxed = column.astype(object)
    boxed[~np.isfinite(column)] = None
    found: list[float | None] = boxed.tolist()
    return found


def _sum(column: np.ndarray) -> float | None:
    """The sum of what is known; None if nothing is."""
    known = np.asarray(column, dtype=float)
    known = known[~np.isnan(known)]
    return _number(known.sum()) if known.size else None


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


def _costs(costs: "Costs", listed: Collection[str]) -> dict[str, Any]:
    """The table in force. What bytes of a level pay that are not told apart stands there only where there are such."""
    return {
        "name": costs.name,
        "device": costs.device,
        "source": costs.source,
        "books": costs.books,
        "setting": costs.setting_data,
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
            if name not in LEVEL_PARTS or name in listed
        },
        "marks": names(costs.marks),
        "notes": list(costs.notes),
    }


def _fit(energy: Energy) -> dict[str, Any]:
    """What a fitted table tells of its fit, without the replicas themselves."""
    record = energy.table.fit if energy.table is not None else None
    return {"fit": {key: value for key, value in record.data.items() if key != "replicas"}} if record else {}


def energies(energy: Energy) -> tuple[dict[str, float | None], dict[str, list[str]]]:
    """Energy of the whole run by family, J (None: not known), and the marks on each."""
    empty: dict[str, float | None] = dict.fromkeys((*FAMILIES, "total"))
    empty["measured"] = energy.measured.joules if energy.measured is not None else None
    if energy.split is None:
        return empty, {part: ["missing"] for part in (*FAMILIES, "total")}
    split = energy.split
    parts = {
        "computation": _sum(split.computation_j),
        "data": _sum(split.data_j),
        "constant": _sum(split.constant_j),
        "total": _sum(split.total_j),
    }
    joined = split.family_marks
    marks = dict(zip(joined.names, np.bitwise_or.reduce(joined.values, axis=0).tolist(), strict=True))
    if energy.total_s is not None and energy.costs is not None:
        constant = energy.total_s * energy.costs.constant_power_w
        known = [joules for joules in (parts["computation"], parts["data"], constant) if joules is not None]
        parts = {**parts, "constant": constant, "total": math.fsum(known)}
        marks["constant"] = int(energy.costs.constant_marks)
        marks["total"] = marks["computation"] | marks["data"] | marks["constant"]
    return {**empty, **parts}, {part: _MARK_WORDS[mark] for part, mark in marks.items()}


class _Cells:
    """Counts, their energies and marks as arrays, (n_kernels, n_listed): pandas is slow cell by cell."""

    def __init__(self, energy: Energy) -> None:
        self.names = list(energy.listed)
        self.values = energy.counts.amounts.only(self.names)
        self.marks = energy.counts.amount_marks.only(self.names)
        # Counted, but not all of it: a counter that overflowed in some launches.
        self.bounds = ((self.marks & int(Mark.MISSING)) != 0) & ~np.isnan(self.values)
        self.joules = np.full_like(self.values, math.nan)
        self.wanted = np.zeros(len(self.names), dtype=bool)
        if energy.split is not None and energy.costs is not None:
            priced = [name in energy.split.joules for name in self.names]
            self.joules[:, priced] = energy.split.joules.only(self.names)
            self.marks[:, priced] |= energy.split.joule_marks.only(self.names)
            paying = {name for name, charge in energy.costs.charges.items() if charge.pays}
            self.wanted = np.array([name in paying for name in self.names], dtype=bool)

    def cells(self, at: int) -> list[dict[str, Any] | None]:
        """A count for each kernel; None where it neither was counted nor is missing."""
        unit = COUNTS[self.names[at]].unit
        lost = bool(self.wanted[at])
        values, joules = _numbers(self.values[:, at]), _numbers(self.joules[:, at])
        marks = self.marks[:, at].tolist()
        missing = int(Mark.MISSING)
        found: list[dict[str, Any] | None] = [
            {"value": value, "unit": unit, "energy_j": joule, "marks": _MARK_WORDS[mark]}
            if value is not None or (lost and mark & missing)
            else None
            for value, joule, mark in zip(values, joules, marks, strict=True)
        ]
        for row in np.flatnonzero(self.bounds[:, at]):
            found[row]["lower_bound"] = True  # type: ignore[index]
        return found


def _time_marks(energy: Energy) -> Ints:
    """The marks of each kernel's time; MISSING where it is not known."""
    rows = energy.counts.rows
    return rows.time_marks | np.where(np.isnan(rows.time_s), int(Mark.MISSING), 0)


def time_of(energy: Energy) -> float | None:
    """The time of all kernels in s: of them together where only that is told, else the sum of what is known."""
    return _sum(energy.counts.rows.time_s) if energy.total_s is None else energy.total_s


def _time_mark(energy: Energy) -> int:
    if energy.total_s is not None:
        return 0
    return int(np.bitwise_or.reduce(_time_marks(energy)))


def _total_counts(energy: Energy, cells: _Cells) -> dict[str, Any]:
    marks = np.bitwise_or.reduce(cells.marks, axis=0)
    return {
        name: {
            "value": _sum(cells.values[:, at]),
            "unit": COUNTS[name].unit,
            "energy_j": _sum(cells.joules[:, at]),
            "marks": _MARK_WORDS[int(marks[at])],
            **({"lower_bound": True} if cells.bounds[:, at].any() else {}),
            "how": [
                {"formula": way.formula, "note": way.note, "marks": names(way.mark), "kernels": way.kernels}
                for way in energy.counts.how.get(name, ())
            ],
        }
        for at, name in enumerate(cells.names)
    }


def _intensity(energy: Energy) -> float | None:
    table = energy.counts.whole
    work, moved = flops_of(table), traffic_of(table)
    return None if np.isnan(work).any() or np.isnan(moved).any() else _ratio(float(work.sum()), float(moved.sum()))


def _kernels(energy: Energy, frame: dict[str, Array], counted: _Cells) -> Iterator[dict[str, Any]]:
    """A dict for each kernel. Columns become lists once: 5,000 kernels in a blink."""
    cells = zip(*(counted.cells(at) for at in range(len(counted.names))), strict=True)
    marks = _family_words(energy)
    known = {name: _numbers(frame[name]) for name in ("time_s", "power_w", _INTENSITY)}
    joules = zip(*(_numbers(frame[f"{part}_j"]) for part in marks), strict=True)
    rows = zip(
        frame["device"],
        frame["kernel"],
        frame["launches"].tolist(),
        (_MARK_WORDS[mark] for mark in _time_marks(energy).tolist()),
        joules,
        cells if counted.names else [()] * len(energy.counts.rows),
        strict=True,
    )
    for row, (device, kernel, launches, time_marks, parts, counts) in enumerate(rows):
        words = {family: marks[family][row] for family in marks}
        yield {
            "name": kernel,
            "device": device,
            "launches": int(launches),
            "time_s": known["time_s"][row],
            "time_marks": time_marks,
            "power_w": known["power_w"][row],
            "counts": {name: cell for name, cell in zip(counted.names, counts, strict=True) if cell is not None},
            "energy_j": {**dict(zip(marks, parts, strict=True)), "measured": None},
            "energy_marks": words,
            _INTENSITY: known[_INTENSITY][row],
            "marks": words["total"],
        }


def _family_words(energy: Energy) -> dict[str, list[list[str]]]:
    if energy.split is None:
        return {part: [["missing"]] * len(energy.counts.rows) for part in (*FAMILIES, "total")}
    marks = energy.split.family_marks
    return {part: [_MARK_WORDS[mark] for mark in marks[part].tolist()] for part in marks.names}

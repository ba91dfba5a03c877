"""The document `eprof.diff/1`: a difference as plain data (docs/diff.md)."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from eprof import __version__
from eprof.base.marks import Mark, names
from eprof.base.text import few
from eprof.base.vocabulary import COUNTS
from eprof.compare import lost
from eprof.compare.changes import LOWER, Half
from eprof.compare.gates import Outcome
from eprof.compare.parts import MARK_WORDS, name_of, of_kernel, status, steps
from eprof.compare.side import TIME, WORDS, Side
from eprof.compare.warnings import warnings
from eprof.compare.welch import CONFIDENCE, Test, welch
from eprof.profile.profile import FAMILIES

if TYPE_CHECKING:
    from eprof.compare.difference import Difference

SCHEMA = "eprof.diff/1"
_MISSING = int(Mark.MISSING)


def document(difference: "Difference") -> dict[str, Any]:
    """The whole document. Numbers are Python floats and ints; what is not known is None."""
    old, new = difference.old, difference.new
    changes = difference.changes
    compared = difference.compared_j(changes.old)
    return {
        "schema": SCHEMA,
        "eprof": __version__,
        "created_utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command_line": list(difference.command_line),
        "old": _side(old, difference.compared_j(changes.old)),
        "new": _side(new, difference.compared_j(changes.new)),
        "change_j": difference.change_j,
        "change_share": _ratio(difference.change_j, compared),
        "change_time_s": _less(difference.time_s(changes.new), difference.time_s(changes.old)),
        "speedup": difference.speedup,
        "greenup": difference.greenup,
        "powerup": difference.powerup,
        "is_zero": difference.is_zero,
        "same_inputs": difference.same_inputs,
        "partial": difference.is_partial,
        "parts": difference.parts,
        "steps": steps(difference.parts),
        "uncompared": lost.uncompared(difference),
        "unknown": lost.unknown(difference),
        "counts": _counts(difference),
        "case": difference.reading.reading.case if difference.reading.reading else None,
        "model": difference.reading.document(),
        "tests": {
            "confidence": CONFIDENCE,
            "method": "Welch's t test",
            "energy": _test(difference.test() if difference.has_energy else None),
            "time": _test(difference.time_test()),
            "measured": _test(welch(_measured(old), _measured(new))),
        },
        "gates": [_gate(one) for one in difference.gates],
        "marks": names(difference.marks),
        "warnings": warnings(difference),
        "kernels": _kernels(difference),
    }


def number(value: Any) -> float | None:
    """A finite number, or None."""
    found = float(value)
    return found if math.isfinite(found) else None


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None


def _less(one: float | None, other: float | None) -> float | None:
    return one - other if one is not None and other is not None else None


# -------------------------------------------------------------------------------------------------------- a side


def _side(side: Side, compared_j: float | None) -> dict[str, Any]:
    energies, marks = _energies(side)
    time_s = _sum(side.mean.number[:, TIME])
    measured = _measured(side)
    time_marks = names(int(np.bitwise_or.reduce(side.mean.counted[:, TIME])))
    profile = side.first.profile
    return {
        "title": profile.title,
        "name": _name(side),
        "inputs": [
            {"path": log.path, "format": log.format, "sha256": log.sha256, "command": log.command}
            for energy in side.energies
            for log in energy.profile.logs
        ],
        "devices": [
            {"name": one.device.name, "index": one.device.index, "capability": one.device.capability}
            for one in profile.counted
        ],
        "definition": ", ".join(dict.fromkeys(one.definition.name for one in profile.counted)),
        "costs": _costs(side),
        "repeats": len(side.energies),
        "launches": number(side.kernels["launches"].sum()),
        "time_s": time_s,
        "time_marks": time_marks,
        "time_from": side.first.time_from,
        "power_w": _ratio(energies["total"], time_s) if "missing" not in time_marks else None,
        "energy_j": {**energies, "measured": math.fsum(measured) / len(measured) if measured else None},
        "energy_marks": marks,
        "compared_j": compared_j,
        "marks": marks["total"],
    }


def _name(side: Side) -> str:
    """What to call the side in a table: its run directory or its log, with how many more there are."""
    profile = side.first.profile
    paths = [log.path for log in profile.logs]
    first = profile.run.path.name if profile.run is not None else paths[0].rstrip("/").rpartition("/")[2]
    more = len(side.energies) - 1
    if more:
        return f"{first} and {more} more"
    return first if profile.run is not None else few([first, *paths[1:]], 1)


def _costs(side: Side) -> dict[str, Any] | None:
    costs = side.costs
    if costs is None:
        return None
    return {
        "name": costs.name,
        "device": costs.device,
        "source": costs.source,
        "books": costs.books,
        "setting": costs.setting_data,
        "setting_from": costs.setting_from,
        "constant_power_w": costs.constant_power_w,
        "marks": names(costs.marks),
    }


def _energies(side: Side) -> tuple[dict[str, float | None], dict[str, list[str]]]:
    """Energy by family, of what is known, with marks; the same sums as `eprof.profile/1` has."""
    if side.costs is None:
        return dict.fromkeys((*FAMILIES, "total")), {part: ["missing"] for part in (*FAMILIES, "total")}
    energies: dict[str, float | None] = {}
    marks: dict[str, int] = {}
    for family, members in FAMILIES.items():
        columns = [WORDS.index(word) for word in members]
        energies[family] = _sum(side.mean.joules[:, columns])
        marks[family] = int(np.bitwise_or.reduce(side.mean.marks[:, columns].ravel(), initial=0))
    energies["total"] = _sum(side.mean.joules)
    return energies, {
        **{family: names(mark) for family, mark in marks.items()},
        "total": names(int(np.bitwise_or.reduce(list(marks.values())))),
    }


def _sum(table: "np.ndarray[Any, Any]") -> float | None:
    """The sum of what is known; None if nothing is."""
    known = table[~np.isnan(table)]
    return math.fsum(known.tolist()) if known.size else None


def _measured(side: Side) -> list[float]:
    """What a meter saw in each repeat, J."""
    return [one.measured.joules for one in side.energies if one.measured is not None]


# ------------------------------------------------------------------------------------------- counts, tests, gates


def _counts(difference: "Difference") -> dict[str, Any]:
    """Every word that one side counted: its total on both sides; None where a side does not know all of it."""
    found = {}
    for at, word in enumerate(COUNTS):
        amounts = [_whole(half, at) for half in (difference.changes.old, difference.changes.new)]
        if not amounts[0] and not amounts[1] and None not in amounts or amounts == [None, None]:
            continue
        marks = (difference.changes.old.counted[:, at] | difference.changes.new.counted[:, at]).ravel()
        found[word] = {
            "old": amounts[0],
            "new": amounts[1],
            "change": None if _bounded(difference, at) else _less(amounts[1], amounts[0]),
            "unit": COUNTS[word].unit,
            "marks": names(int(np.bitwise_or.reduce(marks))),
        }
    return found


def _bounded(difference: "Difference", at: int) -> bool:
    """Whether a lower bound of one side keeps a word from being compared."""
    changes = difference.changes
    lower = (changes.old.state[:, at] == LOWER) | (changes.new.state[:, at] == LOWER)
    return bool((lower & ~changes.compared[:, at]).any())


def _whole(half: Half, at: int) -> float | None:
    column = half.number[:, at]
    return None if np.isnan(column).any() else math.fsum(column.tolist())


def _test(test: Test | None) -> dict[str, Any] | None:
    if test is None:
        return None
    return {
        "change": test.change,
        "low": test.low,
        "high": test.high,
        "p": test.p,
        "shown": test.shown,
        "old": {"mean": test.old_mean, "sd": test.old_sd, "n": test.old_n},
        "new": {"mean": test.new_mean, "sd": test.new_sd, "n": test.new_n},
    }


def _gate(one: Outcome) -> dict[str, Any]:
    judged = one.why_not is None
    return {
        "gate": one.gate.text,
        "what": one.gate.what,
        "kernel": one.kernel,
        "limit": one.gate.limit,
        "old": one.old if judged else None,
        "new": one.new if judged else None,
        "unit": one.unit,
        "growth": one.growth,
        "failed": one.failed if judged else None,
        "why_not": one.why_not,
    }


# ------------------------------------------------------------------------------------------------------- kernels


def _kernels(difference: "Difference") -> list[dict[str, Any]]:
    """A dict for each match, largest change first; without energy, the largest time first."""
    found = [_kernel(difference, row) for row in range(len(difference.matches))]
    return sorted(found, key=lambda one: (-abs(one["change_j"] or 0.0), -_most(one, "time_s")))


def _most(kernel: dict[str, Any], key: str) -> float:
    return max((one[key] or 0.0 for one in (kernel["old"], kernel["new"]) if one is not None), default=0.0)


def _kernel(difference: "Difference", row: int) -> dict[str, Any]:
    one, changes = difference.matches[row], difference.changes
    compared = changes.compared[row]
    parts = of_kernel(difference, row)
    sides = [
        None if place is None else _kernel_side(side, half, place, row, difference)
        for side, half, place in ((difference.old, changes.old, one.old), (difference.new, changes.new, one.new))
    ]
    lost_here = changes.uncompared[row].any() or changes.unknown[row].any() or not difference.has_energy
    moving = compared & ((changes.old.joules[row] != 0) | (changes.new.joules[row] != 0))
    marks = int(np.bitwise_or.reduce(changes.marks[row][moving], initial=0)) | (_MISSING if lost_here else 0)
    before, after = ((None if side is None else side) for side in sides)
    paired = before is not None and after is not None
    return {
        "name": name_of(difference, row),
        "status": status(difference, row),
        "match": None if one.how is None else {"how": one.how, "score": one.score},
        "old": before,
        "new": after,
        "change_j": math.fsum(part["change_j"] for part in parts) if difference.has_energy else None,
        "speedup": _ratio(before["time_s"], after["time_s"]) if paired else None,  # type: ignore[index]
        "greenup": _ratio(before["compared_j"], after["compared_j"]) if paired else None,  # type: ignore[index]
        "partial": bool(changes.uncompared[row].any()),
        "marks": MARK_WORDS[marks],
        "test": _test(difference.test(row)) if difference.has_energy else None,
        "parts": [
            {key: part[key] for key in ("what", "kind", "because", "old", "new", "change_j", "marks")} for part in parts
        ],
    }


def _kernel_side(side: Side, half: Half, place: int, row: int, difference: "Difference") -> dict[str, Any]:
    kernel = side.named[place]
    priced = side.costs is not None
    compared = difference.changes.compared[row]
    return {
        "name": kernel.name,
        "device": kernel.device,
        "launches": kernel.launches,
        "time_s": number(half.number[row, TIME]),
        "energy_j": _sum(side.mean.joules[place]) if priced else None,
        "compared_j": math.fsum(half.joules[row][compared].tolist()) if difference.has_energy else None,
        "marks": MARK_WORDS[int(np.bitwise_or.reduce(side.mean.marks[place]))] if priced else ["missing"],
    }


# --------------------------------------------------------------------------------------------------------- frame


def frame(difference: "Difference") -> pd.DataFrame:
    """A row a part of every kernel: which kernel on either side, what, because of what, counts and joules.

    Words that were counted but have no energy to compare stand there too, without `change_j`.
    """
    rows = [row for at in range(len(difference.matches)) for row in _frame_rows(difference, at)]
    columns = ["kernel_old", "kernel_new", "status", "match", "score", "what", "kind", "because", "unit", "old", "new"]
    columns += ["old_j", "new_j", "change_j", "marks"]
    # Object columns, because names in logs may hold what is no text to Arrow; numbers become numbers again.
    found = pd.DataFrame({name: pd.Series([row.get(name) for row in rows], dtype=object) for name in columns})
    numbers = ["score", "old", "new", "old_j", "new_j", "change_j"]
    return found.astype(dict.fromkeys(numbers, "float64"))


def _frame_rows(difference: "Difference", at: int) -> Sequence[dict[str, Any]]:
    one = difference.matches[at]
    head = {
        "kernel_old": None if one.old is None else difference.old.named[one.old].name,
        "kernel_new": None if one.new is None else difference.new.named[one.new].name,
        "status": status(difference, at),
        "match": one.how,
        "score": one.score,
    }
    parts = of_kernel(difference, at)
    told = {part["what"] for part in parts}
    found = [{**head, **part, "marks": " ".join(part["marks"])} for part in parts]
    changes = difference.changes
    for column, word in enumerate(COUNTS):
        before, after = changes.old.number[at, column], changes.new.number[at, column]
        if word in told or not (before or after) or (np.isnan(before) and np.isnan(after)):
            continue
        marks = names(int(changes.old.counted[at, column] | changes.new.counted[at, column]))
        shared = {"what": word, "kind": COUNTS[word].family, "because": None, "unit": COUNTS[word].unit}
        found.append({**head, **shared, "old": before, "new": after, "marks": " ".join(marks)})
    return found

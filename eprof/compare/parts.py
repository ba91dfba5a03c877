"""The parts of a change as plain data: their `change_j` add up."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from eprof.base.marks import names
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.compare.side import WORDS

if TYPE_CHECKING:
    from eprof.compare.difference import Difference

MATCHED, APPEARED, VANISHED = "matched", "appeared", "vanished"
COUNTED, TIMED, COST, SETTING = "counts", "time", "cost", "setting"
# The words of every combination of marks: thousands of kernels ask for them.
MARK_WORDS = {bits: names(bits) for bits in range(16)}
_FAMILIES = {word: CONSTANT if word == CONSTANT else COUNTS[word].family for word in WORDS}
_UNITS = {word: "s" if word == CONSTANT else COUNTS[word].unit for word in WORDS}
Row = dict[str, Any]


def status(difference: "Difference", row: int) -> str:
    """Whether a kernel is on both sides."""
    one = difference.matches[row]
    return APPEARED if one.old is None else VANISHED if one.new is None else MATCHED


def price_because(difference: "Difference") -> str:
    """What a changed price is due to: another setting of one table, or another table."""
    one, other = difference.old.costs, difference.new.costs
    same_table = one is not None and other is not None and (one.name, one.source) == (other.name, other.source)
    return SETTING if same_table and one is not None and other is not None and one.setting != other.setting else COST


def all_parts(difference: "Difference") -> list[Row]:
    """By word over all matched kernels; by word for each kernel that came or went. Largest change first."""
    stands = np.array([status(difference, row) for row in range(len(difference.matches))])
    matched = np.flatnonzero(stands == MATCHED)
    found = [{**part, "kernel": None, "kernels": MATCHED} for part in _by_word(difference, matched)]
    for row in np.flatnonzero(stands != MATCHED):
        name = name_of(difference, int(row))
        parts = _by_word(difference, np.array([row]))
        found += [{**part, "kernel": name, "kernels": str(stands[row])} for part in parts]
    return sorted(found, key=lambda part: -abs(part["change_j"]))


def name_of(difference: "Difference", row: int) -> str:
    """The kernel's name on NEW, else on OLD."""
    one = difference.matches[row]
    if one.new is not None:
        return difference.new.named[one.new].name
    assert one.old is not None
    return difference.old.named[one.old].name


def of_kernel(difference: "Difference", row: int) -> list[Row]:
    """The parts of one kernel, largest first; the same as `_by_word` makes of one row, but quick for thousands."""
    if not difference.has_energy:
        return []
    changes, found = difference.changes, []
    old_j, new_j = changes.old.joules[row].tolist(), changes.new.joules[row].tolist()
    for at in np.flatnonzero(changes.compared[row]).tolist():
        if not old_j[at] and not new_j[at]:
            continue
        word = WORDS[at]
        shared = {
            "what": word,
            "kind": _FAMILIES[word],
            "unit": _UNITS[word],
            "old": float(changes.old.number[row, at]),
            "new": float(changes.new.number[row, at]),
            "old_j": old_j[at],
            "new_j": new_j[at],
            "marks": MARK_WORDS[int(changes.marks[row, at])],
        }
        because = TIMED if word == CONSTANT else COUNTED
        quantity, price = float(changes.quantity_j[row, at]), float(changes.price_j[row, at])
        if _priced_apart(difference, at, changes.old.price[row, at] != changes.new.price[row, at]):
            found.append({**shared, "because": because, "change_j": quantity})
            found.append({**shared, "because": price_because(difference), "change_j": price})
        else:
            found.append({**shared, "because": because, "change_j": quantity + price})
    return sorted(found, key=lambda part: -abs(part["change_j"]))


def _by_word(difference: "Difference", rows: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> Iterator[Row]:
    """The parts of some kernels together: for each word one for counts or time, and one for prices if they differ.

    Sums are `math.fsum` of the cells: exact but for one rounding, so that turning OLD and NEW turns the sign alone.
    """
    changes = difference.changes
    if not len(rows) or not difference.has_energy:
        return
    paid = changes.compared[rows] & ((changes.old.joules[rows] != 0) | (changes.new.joules[rows] != 0))
    for at in np.flatnonzero(paid.any(axis=0)):
        word, here = WORDS[at], rows[paid[:, at]]
        shared = {
            "what": word,
            "kind": _FAMILIES[word],
            "unit": _UNITS[word],
            "old": math.fsum(changes.old.number[here, at].tolist()),
            "new": math.fsum(changes.new.number[here, at].tolist()),
            "old_j": math.fsum(changes.old.joules[here, at].tolist()),
            "new_j": math.fsum(changes.new.joules[here, at].tolist()),
            "marks": MARK_WORDS[int(np.bitwise_or.reduce(changes.marks[here, at]))],
        }
        because = TIMED if word == CONSTANT else COUNTED
        quantities, prices = changes.quantity_j[here, at].tolist(), changes.price_j[here, at].tolist()
        if _priced_apart(difference, int(at), (changes.old.price[here, at] != changes.new.price[here, at]).any()):
            yield {**shared, "because": because, "change_j": math.fsum(quantities)}
            yield {**shared, "because": price_because(difference), "change_j": math.fsum(prices)}
        else:
            yield {**shared, "because": because, "change_j": math.fsum([*quantities, *prices])}


def _priced_apart(difference: "Difference", at: int, differ: Any) -> bool:
    """Whether the tables differ in this price. Where the mix of kinds alone makes a mean price differ, that is a change
    of the counts.
    """
    return bool(differ) and bool(difference.old.price[at] != difference.new.price[at])


def steps(parts: list[Row]) -> list[Row]:
    """The parts added up for a waterfall: by group and reason, kernels that came or went as steps of their own."""
    bundles: dict[tuple[str, str, str], list[Row]] = {}
    for part in parts:
        matched = part["kernels"] == MATCHED
        group = CONSTANT if part["what"] == CONSTANT else COUNTS[part["what"]].group
        key = (group, part["because"], MATCHED) if matched else ("", "", part["kernels"])
        bundles.setdefault(key, []).append(part)
    found = [
        {
            "group": group or None,
            "because": because or None,
            "kernels": kernels,
            "words": list(dict.fromkeys(part["what"] for part in members)),
            "names": len({part["kernel"] for part in members}),
            "old": math.fsum(part["old"] for part in members),
            "new": math.fsum(part["new"] for part in members),
            "change_j": math.fsum(part["change_j"] for part in members),
            "marks": [mark for mark in MARK_WORDS[15] if any(mark in part["marks"] for part in members)],
        }
        for (group, because, kernels), members in bundles.items()
    ]
    return sorted(found, key=lambda step: -abs(step["change_j"]))

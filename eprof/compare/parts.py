"""The parts of a change, which add up to it: by word, and by group as the steps of a waterfall."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from eprof.base.marks import names
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.compare.changes import MATCHED, Changes
from eprof.compare.schema import KernelPart, Part, Step
from eprof.compare.side import WORDS

COUNTED, TIMED, COST, SETTING = "counts", "time", "cost", "setting"
# The words of every combination of marks: thousands of kernels use them.
MARK_WORDS = {bits: names(bits) for bits in range(16)}
_FAMILIES = {word: count.family for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}
_UNITS = {word: count.unit for word, count in COUNTS.items()} | {CONSTANT: "s"}
_GROUPS = {word: count.group for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}


def all_parts(changes: Changes) -> list[Part]:
    """By word over all matched kernels; by word for each kernel that came or went. Largest change first."""
    statuses = np.array([changes.status(row) for row in range(len(changes.matches))])
    parts = list(_by_word(changes, np.flatnonzero(statuses == MATCHED), None, MATCHED))
    for row in np.flatnonzero(statuses != MATCHED).tolist():
        parts += _by_word(changes, np.array([row]), changes.names(row)[-1], str(statuses[row]))
    return sorted(parts, key=lambda part: -abs(part.change_j))


def of_kernel(changes: Changes, row: int) -> list[Part]:
    """The parts of one kernel, largest change first."""
    parts = _by_word(changes, np.array([row]), changes.names(row)[-1], changes.status(row))
    return sorted(parts, key=lambda part: -abs(part.change_j))


def short_form(part: Part) -> KernelPart:
    """A part as the document lists it below its kernel."""
    return KernelPart(
        what=part.what,
        kind=part.kind,
        because=part.because,
        old=part.old,
        new=part.new,
        change_j=part.change_j,
        marks=part.marks,
    )


def _by_word(
    changes: Changes, rows: "np.ndarray[Any, np.dtype[np.intp]]", kernel: str | None, kernels: str
) -> Iterator[Part]:
    """The parts of some kernels together: for each word one for counts or time, and one for prices if they differ.

    Sums are `math.fsum` of the cells: exact but for one rounding, so that turning OLD and NEW turns the sign alone.
    """
    if not len(rows) or not changes.has_energy:
        return
    paid = changes.paid[rows]
    for column in np.flatnonzero(paid.any(axis=0)).tolist():
        word, here = WORDS[column], rows[paid[:, column]]
        quantities = changes.quantity_j[here, column].tolist()
        prices = changes.price_j[here, column].tolist()
        because = TIMED if word == CONSTANT else COUNTED
        reasons = {because: quantities + prices}
        if _priced_apart(changes, column, here):
            reasons = {because: quantities, price_because(changes): prices}
        for reason, joules in reasons.items():
            yield Part(
                what=word,
                kind=_FAMILIES[word],
                unit=_UNITS[word],
                old=math.fsum(changes.old.number[here, column].tolist()),
                new=math.fsum(changes.new.number[here, column].tolist()),
                old_j=math.fsum(changes.old.joules[here, column].tolist()),
                new_j=math.fsum(changes.new.joules[here, column].tolist()),
                marks=MARK_WORDS[int(np.bitwise_or.reduce(changes.marks[here, column]))],
                because=reason,
                change_j=math.fsum(joules),
                kernel=kernel,
                kernels=kernels,
            )


def _priced_apart(changes: Changes, column: int, rows: "np.ndarray[Any, np.dtype[np.intp]]") -> bool:
    """Whether the tables differ in this price. Where the mix of kinds alone makes a mean price differ, that is a change
    of the counts.
    """
    tables_differ = changes.old_side.price[column] != changes.new_side.price[column]
    return bool(tables_differ) and bool((changes.old.price[rows, column] != changes.new.price[rows, column]).any())


def price_because(changes: Changes) -> str:
    """What a changed price is due to: another setting of one table, or another table."""
    old, new = changes.old_side.costs, changes.new_side.costs
    if old is None or new is None or (old.name, old.source) != (new.name, new.source):
        return COST
    return SETTING if old.setting != new.setting else COST


def steps(parts: Iterable[Part]) -> list[Step]:
    """The parts added up for a waterfall: by group and reason, kernels that came or went as steps of their own."""
    bundles: dict[tuple[str | None, str | None, str], list[Part]] = {}
    for part in parts:
        key = (_GROUPS[part.what], part.because, MATCHED) if part.kernels == MATCHED else (None, None, part.kernels)
        bundles.setdefault(key, []).append(part)
    found = [
        Step(
            group=group,
            because=because,
            kernels=kernels,
            words=list(dict.fromkeys(part.what for part in members)),
            names=len({part.kernel for part in members}),
            old=math.fsum(part.old for part in members),
            new=math.fsum(part.new for part in members),
            change_j=math.fsum(part.change_j for part in members),
            marks=[mark for mark in MARK_WORDS[15] if any(mark in part.marks for part in members)],
        )
        for (group, because, kernels), members in bundles.items()
    ]
    return sorted(found, key=lambda step: -abs(step.change_j))

"""The parts of a change, which add up to it: by word, and by group as steps."""

import math
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

from eprof.base.marks import names
from eprof.base.vocabulary import CONSTANT, COUNTS
from eprof.commands.diff.changes import MATCHED, Changes
from eprof.commands.diff.intervals import Spread
from eprof.commands.diff.schema import Part, Step
from eprof.commands.diff.side import WORDS

Table: TypeAlias = "np.ndarray[Any, Any]"
Rows: TypeAlias = "np.ndarray[Any, np.dtype[np.intp]]"

COUNTED, TIMED, COST, SETTING, METER = "counts", "time", "cost", "setting", "meter"
PRICES = (COST, SETTING, METER)
# The words of every combination of marks: thousands of kernels use them.
MARK_WORDS = {bits: names(bits) for bits in range(16)}
_FAMILIES = {word: count.family for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}
_UNITS = {word: count.unit for word, count in COUNTS.items()} | {CONSTANT: "s"}
_GROUPS = {word: count.group for word, count in COUNTS.items()} | {CONSTANT: CONSTANT}


def all_parts(changes: Changes, spread: Spread | None) -> list[Part]:
    """The parts of the change: by word over all matched kernels; by word for each kernel that came or went.

    Largest change first.
    """
    statuses = np.array([changes.status(row) for row in range(len(changes.matches))])
    parts = list(_by_word(changes, spread, np.flatnonzero(statuses == MATCHED), None, MATCHED))
    for row in np.flatnonzero(statuses != MATCHED).tolist():
        parts += _by_word(changes, spread, np.array([row]), changes.names(row)[-1], str(statuses[row]))
    return sorted(parts, key=lambda part: -abs(part.change_j))


def of_kernel(changes: Changes, row: int) -> list[Part]:
    """The parts of one kernel, largest change first: the same as `_by_word` makes of it, but quick for thousands."""
    if not changes.has_energy:
        return []
    columns = np.flatnonzero(changes.paid[row])
    apart = changes.old.price[row, columns] != changes.new.price[row, columns]
    apart &= changes.old_side.price[columns] != changes.new_side.price[columns]
    kernel, kernels = changes.names(row)[-1], changes.status(row)
    parts = []
    for column, is_apart in zip(columns.tolist(), apart.tolist(), strict=True):
        word = WORDS[column]
        because = TIMED if word == CONSTANT else COUNTED
        quantity, price = float(changes.quantity_j[row, column]), float(changes.price_j[row, column])
        reasons = {because: quantity + price}
        if is_apart:
            reasons = {because: quantity, price_because(changes): price}
        for reason, change_j in reasons.items():
            part = Part(
                what=word,
                kind=_FAMILIES[word],
                unit=_UNITS[word],
                old=float(changes.old.number[row, column]),
                new=float(changes.new.number[row, column]),
                old_j=float(changes.old.joules[row, column]),
                new_j=float(changes.new.joules[row, column]),
                marks=MARK_WORDS[int(changes.marks[row, column])],
                because=reason,
                change_j=change_j,
                kernel=kernel,
                kernels=kernels,
            )
            parts.append(part)
    return sorted(parts, key=lambda part: -abs(part.change_j))


def _by_word(changes: Changes, spread: Spread | None, rows: Rows, kernel: str | None, kernels: str) -> Iterator[Part]:
    """The parts of some kernels together: for each word one for counts or time, and one for prices if they differ.

    Sums are `math.fsum` of the cells: exact but for one rounding, so that turning OLD and NEW turns the sign alone.
    """
    if not changes.has_energy:
        return
    paid = changes.paid[rows]
    columns = np.flatnonzero(paid.any(axis=0))
    paid = paid[:, columns]

    def cells(table: Table) -> Table:
        """What is paid of a table, and 0 for the rest."""
        return np.where(paid, table[rows][:, columns], 0)

    quantities, prices = cells(changes.quantity_j), cells(changes.price_j)
    words = zip(
        columns.tolist(),
        _sums(cells(changes.old.number)),
        _sums(cells(changes.new.number)),
        _sums(cells(changes.old.joules)),
        _sums(cells(changes.new.joules)),
        np.bitwise_or.reduce(cells(changes.marks), axis=0).tolist(),
        _reasons(changes, columns, cells(changes.old.price) != cells(changes.new.price), quantities, prices),
        strict=True,
    )
    for column, old, new, old_j, new_j, marks, reasons in words:
        for because, change_j in reasons.items():
            interval_j = None
            if spread is not None and kernels == MATCHED:
                interval_j = spread.interval(spread.of_part([column], because in PRICES), change_j)
            elif spread is not None:
                interval_j = spread.of_one_side(int(rows[0]), column, change_j)
            yield Part(
                what=WORDS[column],
                kind=_FAMILIES[WORDS[column]],
                unit=_UNITS[WORDS[column]],
                old=old,
                new=new,
                old_j=old_j,
                new_j=new_j,
                marks=MARK_WORDS[marks],
                because=because,
                change_j=change_j,
                kernel=kernel,
                kernels=kernels,
                interval_j=interval_j,
            )


def _sums(table: Table) -> list[float]:
    return [math.fsum(column) for column in table.T.tolist()]


def _reasons(
    changes: Changes, columns: Table, prices_differ: Table, quantities: Table, prices: Table
) -> list[dict[str, float]]:
    """Why the energy of each word changed, and by how much.

    Prices are a reason where the tables differ in them. Where the mix of kinds alone makes a mean price differ, that is
    a change of the counts.
    """
    apart = prices_differ.any(axis=0) & (changes.old_side.price[columns] != changes.new_side.price[columns])
    of_price = price_because(changes)
    reasons = []
    for column, quantity, price, together, is_apart in zip(
        columns.tolist(),
        _sums(quantities),
        _sums(prices),
        _sums(np.concatenate([quantities, prices])),
        apart.tolist(),
        strict=True,
    ):
        because = TIMED if WORDS[column] == CONSTANT else COUNTED
        reasons.append({because: quantity, of_price: price} if is_apart else {because: together})
    return reasons


def price_because(changes: Changes) -> str:
    """What the part of a changed price is due to: another setting, another table, or the factor of a meter."""
    old, new = changes.old_side.costs, changes.new_side.costs
    if old is None or new is None or (old.name, old.source) != (new.name, new.source):
        return COST
    if old.setting != new.setting:
        return SETTING
    return METER if changes.old_side.factors or changes.new_side.factors else COST


def steps(parts: Iterable[Part], spread: Spread | None) -> list[Step]:
    """The parts of the change added up by group and reason; kernels that came or went as steps of their own."""
    bundles: dict[tuple[str | None, str | None, str], list[Part]] = {}
    for part in parts:
        key: tuple[str | None, str | None, str] = (None, None, part.kernels)
        if part.kernels == MATCHED:
            key = (_GROUPS[part.what], part.because, MATCHED)
        bundles.setdefault(key, []).append(part)
    bundled = []
    for (group, because, kernels), members in bundles.items():
        words = list(dict.fromkeys(part.what for part in members))
        change_j = math.fsum(part.change_j for part in members)
        interval_j = None
        if spread is not None and kernels == MATCHED:
            columns = [WORDS.index(word) for word in words]
            interval_j = spread.interval(spread.of_part(columns, because in PRICES), change_j)
        elif spread is not None:
            interval_j = spread.interval(spread.of_rows(spread.rows_of(kernels)), change_j)
        step = Step(
            group=group,
            because=because,
            kernels=kernels,
            words=words,
            names=len({part.kernel for part in members}),
            old=math.fsum(part.old for part in members),
            new=math.fsum(part.new for part in members),
            change_j=change_j,
            marks=[mark for mark in MARK_WORDS[15] if any(mark in part.marks for part in members)],
            interval_j=interval_j,
        )
        bundled.append(step)
    return sorted(bundled, key=lambda step: -abs(step.change_j))

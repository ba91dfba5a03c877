"""What is left out of the change, word by word, and why."""

import numpy as np

from eprof.base.arrays import Bools
from eprof.base.vocabulary import BYTES
from eprof.commands.diff.changes import KNOWN, LOST, LOWER, NONE, Changes, Half
from eprof.commands.diff.schema import Uncompared, Unknown
from eprof.commands.diff.side import TIME, WORDS, Side


def uncompared(changes: Changes) -> list[Uncompared]:
    """Words left out of the change that one side knows, in how many kernels, what each side knows, and why."""
    return [
        Uncompared(
            what=WORDS[column],
            kernels=int(rows.sum()),
            old_j=_known_of_lost(changes.old, rows, column),
            new_j=_known_of_lost(changes.new, rows, column),
            why=_why(changes, rows, column),
        )
        for column, rows in _columns(changes.uncompared)
    ]


def unknown(changes: Changes) -> list[Unknown]:
    """Words left out of the change, whose energy neither side knows."""
    return [
        Unknown(what=WORDS[column], kernels=int(rows.sum()), why=_neither(changes, rows, column))
        for column, rows in _columns(changes.unknown)
    ]


def _columns(table: Bools) -> list[tuple[int, Bools]]:
    """The columns (words) in which something is left out, each with its rows."""
    return [(column, table[:, column]) for column in np.flatnonzero(table.any(axis=0)).tolist()]


def _known_of_lost(half: Half, rows: Bools, column: int) -> float | None:
    joules = half.joules[rows, column]
    known = joules[~np.isnan(joules)]
    return float(known.sum()) if known.size else None


def _why(changes: Changes, rows: Bools, column: int) -> str:
    old, new = changes.old_side.costs, changes.new_side.costs
    if old is not None and new is not None and old.books != new.books and WORDS[column] in BYTES:
        return "OLD and NEW keep other books of bytes (served, accessed); price both with one table"
    reasons = [
        _lacks(side, half, rows, column) for side, half in changes.halves if (half.state[rows, column] != KNOWN).any()
    ]
    return "; ".join(reasons)


def _lacks(side: Side, half: Half, rows: Bools, column: int) -> str:
    """What a side lacks of a word that is left out, in some kernels."""
    states = half.state[rows, column]
    if (states == LOWER).any():
        quantity = "time" if column == TIME else "count"
        return f"{side.label} knows only a lower bound of the {quantity} (part of it was not counted, or overflowed)"
    if side.costs is None:
        return f"{side.label} has no cost table"
    if column == TIME:
        return f"{side.label} has no time"
    lost = states >= LOST
    counted = ~np.isnan(half.number[rows, column][lost])
    if counted.all() and (states[lost] != NONE).all():
        return f"{side.costs.name} has no price for what {side.label} counted"
    return f"{side.label} did not count it"


def _neither(changes: Changes, rows: Bools, column: int) -> str:
    if column == TIME:
        return "no time on either side"
    old, new = (~np.isnan(half.number[rows, column]) for _, half in changes.halves)
    if old.all() and new.all():
        return "counted, but without a price"
    if not old.any() and not new.any():
        return "not counted on either side"
    return "not counted, or without a price"

"""What cannot be compared, word by word, and why."""

from typing import TYPE_CHECKING, Any

import numpy as np

from eprof.base.vocabulary import BYTES, CONSTANT, COUNTS
from eprof.compare.changes import LOST, LOWER, NONE, Changes, Half
from eprof.compare.side import TIME, WORDS, Side

if TYPE_CHECKING:
    from eprof.compare.difference import Difference


def label(word: str) -> str:
    """A word in the user's terms."""
    return "Constant power" if word == CONSTANT else COUNTS[word].label


def uncompared(difference: "Difference") -> list[dict[str, Any]]:
    """Words that one side knows, in how many kernels, what each side knows of them in J, and why they are left out."""
    changes, found = difference.changes, []
    table = changes.uncompared
    for at in np.flatnonzero(table.any(axis=0)):
        rows = table[:, at]
        found.append(
            {
                "what": WORDS[at],
                "kernels": int(rows.sum()),
                "old_j": _known(changes.old, rows, int(at)),
                "new_j": _known(changes.new, rows, int(at)),
                "why": _why(difference, rows, int(at)),
            }
        )
    return found


def unknown(difference: "Difference") -> list[dict[str, Any]]:
    """Words whose energy neither side knows."""
    table = difference.changes.unknown
    return [
        {"what": WORDS[at], "kernels": int(table[:, at].sum()), "why": _neither(difference.changes, table[:, at], at)}
        for at in np.flatnonzero(table.any(axis=0)).tolist()
    ]


def _known(half: Half, rows: "np.ndarray[Any, Any]", at: int) -> float | None:
    joules = half.joules[rows, at]
    known = joules[~np.isnan(joules)]
    return float(known.sum()) if known.size else None


def _why(difference: "Difference", rows: "np.ndarray[Any, Any]", at: int) -> str:
    changes, word = difference.changes, WORDS[at]
    if _books_differ(difference) and word in BYTES:
        return "OLD and NEW keep other books of bytes (served, accessed); price both with one table"
    reasons = [
        _lacks(side, half, rows, at)
        for side, half in ((difference.old, changes.old), (difference.new, changes.new))
        if (half.state[rows, at] != 0).any()
    ]
    return "; ".join(reasons)


def _books_differ(difference: "Difference") -> bool:
    one, other = difference.old.costs, difference.new.costs
    return one is not None and other is not None and one.books != other.books


def _lacks(side: Side, half: Half, rows: "np.ndarray[Any, Any]", at: int) -> str:
    """What a side lacks of a word in some kernels."""
    states = half.state[rows, at]
    if (states == LOWER).any():
        what = "time" if at == TIME else "count"
        return f"{side.label} knows only a lower bound of the {what} (part of it was not counted, or overflowed)"
    if at == TIME:
        return f"{side.label} has no time" if side.costs is not None else f"{side.label} has no cost table"
    if side.costs is None:
        return f"{side.label} has no cost table"
    counted = ~np.isnan(half.number[rows, at][states >= LOST])
    if counted.all() and (states[states >= LOST] != NONE).all():
        return f"{side.costs.name} has no price for what {side.label} counted"
    return f"{side.label} did not count it"


def _neither(changes: Changes, rows: "np.ndarray[Any, Any]", at: int) -> str:
    if at == TIME:
        return "no time on either side"
    counted = [~np.isnan(half.number[rows, at]) for half in (changes.old, changes.new)]
    if counted[0].all() and counted[1].all():
        return "counted, but without a price"
    if not counted[0].any() and not counted[1].any():
        return "not counted on either side"
    return "not counted, or without a price"

"""Gates: how much more energy NEW may take, for a check that fails a pull request (`--fail-above`)."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from eprof.base.errors import UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.marks import Mark
from eprof.base.text import cut, few, printable
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.compare.side import TIME, WORDS, Bools

if TYPE_CHECKING:
    from eprof.compare.changes import Changes
    from eprof.compare.difference import Difference

Cells = tuple[Any, ...]

TOTAL, SECONDS, EACH = "total", "time", "*"
_FORM = re.compile(r"(?:(?P<kernel>.+):)?(?:(?P<what>[a-z][a-z0-9_]*)=)?(?P<percent>\d+(?:\.\d*)?|\.\d+)\s*%?")
_FAMILIES = ("computation", "data", CONSTANT)


@dataclass(frozen=True)
class Gate:
    """One `--fail-above`: what may grow by at most `limit` (0.02 for 2 %), in one kernel, in each ("*"), or in all."""

    text: str
    what: str
    kernel: str | None
    limit: float

    def columns(self) -> list[int]:
        """The columns of a grid that it is about."""
        if self.what == TOTAL:
            return list(range(len(WORDS)))
        if self.what == SECONDS:
            return [TIME]
        return [at for at, word in enumerate(WORDS) if self.what in _names(word)]


@dataclass(frozen=True)
class Outcome:
    """A gate on two amounts, `old` and `new` in `unit`. why_not: it cannot be judged, and so does not pass either."""

    gate: Gate
    kernel: str | None
    old: float = math.nan
    new: float = math.nan
    unit: str = ""
    why_not: str | None = None

    @property
    def growth(self) -> float | None:
        """(new - old) / old; None if `old` is 0 or nothing is known."""
        return (self.new - self.old) / self.old if self.old and self.why_not is None else None

    @property
    def failed(self) -> bool:
        """Whether it grew by more than the limit; from nothing, any growth is more."""
        return self.new > self.old and (self.growth is None or self.growth > self.gate.limit)


def _names(word: str) -> set[str]:
    """What a gate may call a column: the word, its group, its family."""
    if word == CONSTANT:
        return {CONSTANT}
    return {word, COUNTS[word].group, COUNTS[word].family}


def parse(text: str) -> Gate:
    """Read "2%", "dram_read=5%", "KERNEL:2%", "KERNEL:time=5%", "*:10%". Raises UsageError."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"--fail-above {text}: write [KERNEL:][WHAT=]PERCENT%, such as 2%, dram_read=5%, my_kernel:2% or '*:10%'."
        )
    what = found["what"] or TOTAL
    known = {TOTAL, SECONDS, *_FAMILIES, *GROUPS, *COUNTS}
    if what not in known:
        raise UsageError(
            f"--fail-above {text}: there is no `{what}`; use total, time, {', '.join(_FAMILIES)}, a group "
            f"({', '.join(GROUPS)}) or a word of the vocabulary, such as dram_read."
        )
    return Gate(text, what, found["kernel"], float(found["percent"]) / 100)


def judge(gates: Sequence[Gate], difference: "Difference") -> list[Outcome]:
    """Judge every gate, on every kernel that it names.

    A gate on what is known on one side only, or not at all, does not pass unseen: its outcome says why it cannot be
    judged. Raises UsageError if a gate names no kernel.
    """
    return [outcome for gate in gates for outcome in _judged(gate, difference)]


def _judged(gate: Gate, difference: "Difference") -> list[Outcome]:
    rows = np.ones(len(difference.matches), dtype=np.bool_)
    if gate.kernel is None:
        return [_outcome(gate, None, rows, difference)]
    names = [_both(difference, at) for at in range(len(rows))]
    if gate.kernel == EACH:
        chosen = list(range(len(rows)))
    else:
        chosen = [at for at, both in enumerate(names) if gate.kernel in both]
        chosen = chosen or [at for at, both in enumerate(names) if gate.kernel in {bare(one) for one in both}]
        chosen = chosen or [at for at, both in enumerate(names) if gate.kernel in {own_name(one) for one in both}]
    if not chosen:
        known = few(list(dict.fromkeys(cut(printable(bare(both[-1])), 60) for both in names)), 6)
        raise UsageError(f"--fail-above {gate.text}: neither side has a kernel `{gate.kernel}`; there are {known}.")
    return [_outcome(gate, names[at][-1], np.arange(len(rows)) == at, difference) for at in chosen]


def _both(difference: "Difference", at: int) -> list[str]:
    """The names of a match: OLD's, then NEW's if it is another one."""
    one = difference.matches[at]
    found = [] if one.old is None else [str(difference.old.kernels["kernel"].iloc[one.old])]
    return found if one.new is None else [*found, str(difference.new.kernels["kernel"].iloc[one.new])]


def _outcome(gate: Gate, kernel: str | None, rows: Bools, difference: "Difference") -> Outcome:
    columns = gate.columns()
    cells = np.ix_(np.flatnonzero(rows), np.array(columns))
    changes = difference.changes
    if gate.what == SECONDS or (difference.old.costs is None and difference.new.costs is None):
        return _counted(gate, kernel, cells, columns, changes)
    one_sided = changes.uncompared[cells].any(axis=0)
    if one_sided.any():
        words = ", ".join(WORDS[columns[at]] for at in np.flatnonzero(one_sided)[:4])
        return Outcome(gate, kernel, why_not=f"the energy of {words} cannot be compared")
    compared = changes.compared[cells]
    if not compared.any():
        return Outcome(gate, kernel, why_not="its energy is not known on either side")
    old, new = (math.fsum(half.joules[cells][compared].tolist()) for half in (changes.old, changes.new))
    return Outcome(gate, kernel, old, new, "J")


def _counted(gate: Gate, kernel: str | None, cells: Cells, columns: list[int], changes: "Changes") -> Outcome:
    """Without prices a class is judged by its counts; time always is."""
    if gate.what in (TOTAL, *_FAMILIES):
        return Outcome(gate, kernel, why_not="no cost table prices these logs; choose one with --costs")
    old, new = changes.old.number[cells], changes.new.number[cells]
    # A class that neither side tells apart (a total beside its parts) is no loss; one that one side knows is.
    told = ~(np.isnan(old).all(axis=0) & np.isnan(new).all(axis=0))
    old, new = old[:, told], new[:, told]
    bounds = [(half.counted[cells] & int(Mark.MISSING)).any() for half in (changes.old, changes.new)]
    if not old.size or np.isnan(old).any() or np.isnan(new).any() or bounds[0] != bounds[1]:
        return Outcome(gate, kernel, why_not="it is not known for every kernel of both sides")
    unit = "s" if gate.what == SECONDS else COUNTS[WORDS[columns[0]]].unit
    return Outcome(gate, kernel, math.fsum(old.ravel().tolist()), math.fsum(new.ravel().tolist()), unit)

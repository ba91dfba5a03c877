"""Gates: how much more energy NEW may take, for a check that fails a pull request (`--fail-above`)."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.labels import labels
from eprof.base.marks import Mark
from eprof.base.text import few, pattern, printable
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.commands.diff import schema
from eprof.commands.diff.changes import Changes
from eprof.commands.diff.side import TIME, WORDS
from eprof.lab.welch import welch

# The cells of a grid that a gate is about: rows and columns as `numpy.ix_` gives them.
Cells = tuple[Any, ...]

TOTAL, ABOVE, SECONDS, EACH = "total", "above_constant", "time", "*"
_FORM = pattern(r"(?:(?P<kernel>.+):)?(?:(?P<what>[a-z][a-z0-9_]*)=)?(?P<percent>\d+(?:\.\d*)?|\.\d+)\s*%?")
_FAMILIES = ("computation", "data", CONSTANT)
# What a gate may call a column: the word, its group, its family.
_NAMES = {word: {word, count.group, count.family} for word, count in COUNTS.items()} | {CONSTANT: {CONSTANT}}


class Gate(Struct, frozen=True):
    """One `--fail-above`: what may grow by at most `limit` (0.02 for 2 %), in one kernel, in each ("*"), or in all."""

    text: str
    what: str
    kernel: str | None
    limit: float

    def columns(self) -> list[int]:
        """The columns of a grid that the gate is about."""
        if self.what in (TOTAL, ABOVE):
            return list(range(len(WORDS) if self.what == TOTAL else TIME))
        if self.what == SECONDS:
            return [TIME]
        return [column for column, word in enumerate(WORDS) if self.what in _NAMES[word]]


class Outcome(Struct, frozen=True):
    """A gate on two amounts, `old` and `new` in `unit`. why_not: it cannot be judged, and so does not pass either.

    is_noise: repeats of both sides do not show that the two differ (Welch's test).
    """

    gate: Gate
    kernel: str | None
    old: float = math.nan
    new: float = math.nan
    unit: str = ""
    why_not: str | None = None
    is_noise: bool = False

    @property
    def growth(self) -> float | None:
        """How much a gate's amount grew, (new - old) / old; None if `old` is 0 or nothing is known."""
        return (self.new - self.old) / self.old if self.old and self.why_not is None else None

    @property
    def failed(self) -> bool:
        """Whether a gate failed: it grew by more than the limit, and not by noise; from nothing, any growth is more."""
        is_above = self.new > self.old and (self.growth is None or self.growth > self.gate.limit)
        return is_above and not self.is_noise

    def document(self) -> schema.Gate:
        """The outcome of a gate as the document has it."""
        old, new, failed = (self.old, self.new, self.failed) if self.why_not is None else (None, None, None)
        return schema.Gate(
            gate=self.gate.text,
            what=self.gate.what,
            kernel=self.kernel,
            limit=self.gate.limit,
            old=old,
            new=new,
            unit=self.unit,
            growth=self.growth,
            failed=failed,
            why_not=self.why_not,
            is_noise=self.is_noise,
        )


def parse(text: str) -> Gate:
    """Read a gate: "2%", "dram_read=5%", "KERNEL:2%", "KERNEL:time=5%", "*:10%". Raises UsageError."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise UsageError(
            f"--fail-above {text}: write [KERNEL:][WHAT=]PERCENT%, such as 2%, dram_read=5%, my_kernel:2% or '*:10%'."
        )
    amount = form["what"] or TOTAL
    known = {TOTAL, SECONDS, *_FAMILIES, *GROUPS, *COUNTS}
    if amount not in known:
        raise UsageError(
            f"--fail-above {text}: there is no `{amount}`; use total, time, {', '.join(_FAMILIES)}, a group "
            f"({', '.join(GROUPS)}) or a word of the vocabulary, such as dram_read."
        )
    return Gate(text, amount, form["kernel"], float(form["percent"]) / 100)


def judge(gates: Sequence[Gate], changes: Changes) -> list[Outcome]:
    """Judge every gate, on every kernel that it names.

    A gate on what is known on one side only, or not at all, does not pass unseen: its outcome says why it cannot be
    judged. Where time is a model, or all that changed is the time of a single run, the total is that above constant
    power. Raises UsageError if a gate names no kernel.
    """
    if changes.old_side.is_modelled or changes.new_side.is_modelled or changes.rests_on_single_times:
        gates = [replace(gate, what=ABOVE) if gate.what == TOTAL else gate for gate in gates]
    return [outcome for gate in gates for outcome in _outcomes(gate, changes)]


def _outcomes(gate: Gate, changes: Changes) -> list[Outcome]:
    rows = range(len(changes.matches))
    if gate.kernel is None:
        return [_outcome(gate, None, list(rows), changes)]
    names = [changes.names(row) for row in rows]
    chosen = _chosen(gate.kernel, names)
    if not chosen:
        known = few(labels([printable(both[-1]) for both in names], 60), 6)
        raise UsageError(f"--fail-above {gate.text}: neither side has a kernel `{gate.kernel}`; there are {known}.")
    return [_outcome(gate, names[row][-1], [row], changes) for row in chosen]


def _chosen(kernel: str, names: Sequence[Sequence[str]]) -> list[int]:
    """The kernels of a gate: of the full name `kernel`, else those whose bare name is, else their last word."""
    if kernel == EACH:
        return list(range(len(names)))
    for form in (str, bare, own_name):
        rows = [row for row, both in enumerate(names) if kernel in map(form, both)]
        if rows:
            return rows
    return []


def _outcome(gate: Gate, kernel: str | None, rows: Sequence[int], changes: Changes) -> Outcome:
    columns = gate.columns()
    cells = np.ix_(np.asarray(rows), np.asarray(columns))
    if gate.what == SECONDS or (changes.old_side.costs is None and changes.new_side.costs is None):
        return _of_counts(gate, kernel, cells, columns, changes)
    one_sided = changes.uncompared[cells].any(axis=0)
    if one_sided.any():
        words = ", ".join(WORDS[columns[place]] for place in np.flatnonzero(one_sided)[:4])
        return Outcome(gate, kernel, why_not=f"the energy of {words} cannot be compared")
    compared = changes.compared[cells]
    if not compared.any():
        return Outcome(gate, kernel, why_not="its energy is not known on either side")
    old, new = (math.fsum(half.joules[cells][compared].tolist()) for _, half in changes.halves)
    repeats = changes.old_repeats, changes.new_repeats
    samples = [[math.fsum(half.joules[cells][compared].tolist()) for half in side] for side in repeats]
    return Outcome(gate, kernel, old, new, "J", is_noise=_is_noise(*samples))


def _is_noise(old: Sequence[float], new: Sequence[float]) -> bool:
    """Whether the repeats of both sides do not show that a gate's amount changed; unknown repeats are left out."""
    known = [[amount for amount in side if not math.isnan(amount)] for side in (old, new)]
    test = welch(*known)
    return test is not None and not test.shown


def _of_counts(gate: Gate, kernel: str | None, cells: Cells, columns: list[int], changes: Changes) -> Outcome:
    """A gate on counts: without prices a class is judged by them; time always is."""
    if gate.what in (TOTAL, *_FAMILIES):
        return Outcome(gate, kernel, why_not="no cost table prices these logs; choose one with --costs")
    numbers = np.stack([half.number[cells] for _, half in changes.halves])
    # A class that neither side tells apart (a total beside its parts) is no loss; one that one side knows is.
    numbers = numbers[:, :, ~np.isnan(numbers).all(axis=(0, 1))]
    is_bound = [bool((half.counted[cells] & int(Mark.MISSING)).any()) for _, half in changes.halves]
    if not numbers.size or np.isnan(numbers).any() or is_bound[0] != is_bound[1]:
        return Outcome(gate, kernel, why_not=f"it is not known for every {changes.old_side.nouns.kernel} of both sides")
    old, new = (math.fsum(table.ravel().tolist()) for table in numbers)
    unit = "s" if gate.what == SECONDS else COUNTS[WORDS[columns[0]]].unit
    repeats = changes.old_repeats, changes.new_repeats
    samples = [[float(np.nansum(half.number[cells])) for half in side] for side in repeats]
    return Outcome(gate, kernel, old, new, unit, is_noise=_is_noise(*samples))

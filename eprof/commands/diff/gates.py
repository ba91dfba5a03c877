"""Gates: how much more energy NEW may take, for a check that fails a pull request (`--fail-above`)."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.known import ratio
from eprof.base.labels import labels
from eprof.base.marks import Mark
from eprof.base.text import few, pattern, printable, when
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.commands.diff.changes import FOLLOWS_TIME, TIME, WORDS, Changes, Grid, combined
from eprof.commands.diff.schema import Gate
from eprof.lab.welch import welch

TOTAL, ABOVE, SECONDS, EACH = "total", "above_constant", "time", "*"
_FORM = pattern(r"(?:(?P<kernel>.+):)?(?:(?P<what>[a-z][a-z0-9_]*)=)?(?P<percent>\d+(?:\.\d*)?|\.\d+)\s*%?")
_FAMILIES = ("computation", "data", CONSTANT)
# What a limit may call a column: the word, its group, its family.
_NAMES = {word: {word, count.group, count.family} for word, count in COUNTS.items()} | {CONSTANT: {CONSTANT}}


class Limit(Struct, frozen=True):
    """One `--fail-above`: what may grow by at most `share` (0.02 for 2 %), in one kernel, in each ("*"), or in all."""

    text: str
    what: str
    kernel: str | None
    share: float

    def columns(self) -> list[int]:
        """The columns of a grid that the limit is about."""
        match self.what:
            case "total":
                return list(range(len(WORDS)))
            case "above_constant":
                return np.flatnonzero(~FOLLOWS_TIME).tolist()
            case "time":
                return [TIME]
        return [column for column, word in enumerate(WORDS) if self.what in _NAMES[word]]


def parse(text: str) -> Limit:
    """Read a limit: "2%", "dram_read=5%", "KERNEL:2%", "KERNEL:time=5%", "*:10%". Raises UsageError."""
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
    return Limit(text, amount, form["kernel"], float(form["percent"]) / 100)


def judge(limits: Sequence[Limit], changes: Changes) -> list[Gate]:
    """Judge every limit, on every kernel that it names.

    A gate on what is known on one side only, or not at all, does not pass unseen: its outcome says why it cannot be
    judged. Where time is a model, or all that changed is the time of a single run, the total is that above constant
    power. Raises UsageError if a limit names no kernel.
    """
    is_above_only = changes.old_side.is_modelled or changes.new_side.is_modelled or changes.rests_on_single_times
    names = [changes.names(row) for row in range(len(changes.matches))]
    gates = []
    for limit in limits:
        if is_above_only and limit.what == TOTAL:
            limit = replace(limit, what=ABOVE)
        if limit.kernel is None:
            gates.append(_judged(limit, None, list(range(len(names))), changes))
            continue
        gates += [_judged(limit, names[row][-1], [row], changes) for row in _chosen(limit, limit.kernel, names)]
    return gates


def _chosen(limit: Limit, kernel: str, names: Sequence[Sequence[str]]) -> list[int]:
    """The kernels of a limit: of the full name `kernel`, else those whose bare name is, else their last word."""
    if kernel == EACH:
        return list(range(len(names)))
    for form in (str, bare, own_name):
        rows = [row for row, both in enumerate(names) if kernel in map(form, both)]
        if rows:
            return rows
    known = few(labels([printable(both[-1]) for both in names], 60), 6)
    raise UsageError(f"--fail-above {limit.text}: neither side has a kernel `{kernel}`; there are {known}.")


def _judged(limit: Limit, kernel: str | None, rows: list[int], changes: Changes) -> Gate:
    """The outcome of a gate: it failed if its amount grew by more than the limit, and not by noise.

    From nothing, any growth is more.
    """
    gate = Gate(gate=limit.text, what=limit.what, kernel=kernel, limit=limit.share)
    columns = limit.columns()
    # Without prices a class is judged by its counts; time always is.
    is_counted = limit.what == SECONDS or (changes.old_side.costs is None and changes.new_side.costs is None)
    why_not = (_why_not_counted if is_counted else _why_not_priced)(limit, rows, columns, changes)
    if why_not:
        return replace(gate, why_not=why_not)

    def amount(grid: Grid) -> float:
        if not is_counted:
            return changes.compared_j(grid, rows, columns)
        numbers = grid.number[rows][:, columns]
        return math.fsum(numbers[~np.isnan(numbers)].tolist())

    old, new = amount(changes.old), amount(changes.new)
    samples = [
        [known for grid in repeats if not math.isnan(known := amount(grid))]
        for repeats in (changes.old_repeats, changes.new_repeats)
    ]
    test = welch(*samples)
    growth = ratio(new - old, old)
    is_noise = test is not None and not test.shown
    is_above = new > old and (growth is None or growth > limit.share)
    unit = "J"
    if is_counted:
        unit = "s" if limit.what == SECONDS else COUNTS[WORDS[columns[0]]].unit
    failed = is_above and not is_noise
    return replace(gate, old=old, new=new, unit=unit, growth=growth, failed=failed, is_noise=is_noise)


def _why_not_priced(limit: Limit, rows: list[int], columns: list[int], changes: Changes) -> str:
    """Why a gate on energy cannot be judged; empty if it can."""
    one_sided = np.flatnonzero(changes.uncompared[rows][:, columns].any(axis=0))
    if one_sided.size:
        words = ", ".join(WORDS[columns[place]] for place in one_sided[:4])
        return f"the energy of {words} cannot be compared"
    return when(not changes.compared[rows][:, columns].any(), "its energy is not known on either side")


def _why_not_counted(limit: Limit, rows: list[int], columns: list[int], changes: Changes) -> str:
    """Why a gate on counts or time cannot be judged; empty if it can."""
    if limit.what in (TOTAL, *_FAMILIES):
        return "no cost table prices these logs; choose one with --costs"
    is_unknown = np.isnan(np.stack([half.number[rows][:, columns] for _, half in changes.halves]))
    # A class that neither side tells apart (a total beside its parts) is no loss; one that one side knows is.
    is_unknown = is_unknown[:, :, ~is_unknown.all(axis=(0, 1))]
    old_is_bound, new_is_bound = (
        bool(combined(half.counted[rows][:, columns]) & int(Mark.MISSING)) for _, half in changes.halves
    )
    if not is_unknown.size or is_unknown.any() or old_is_bound != new_is_bound:
        return f"it is not known for every {changes.old_side.nouns.kernel} of both sides"
    return ""

"""Two sides compared: `Difference`, its numbers, and its document `eprof.diff/1`.

And its gates: how much more energy NEW may take, for a check that fails a pull request (`--fail-above`).
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.brief import Result, brief
from eprof.base.errors import LogError, UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.known import ratio
from eprof.base.labels import labels, no_such_kernel, selection
from eprof.base.marks import Mark
from eprof.base.text import few, listed, pattern, phrase, printable, when
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.commands.diff.changes import (
    COUNTED,
    FOLLOWS_TIME,
    REPEATS,
    TIME,
    WORDS,
    Changes,
    Grid,
    Side,
    combined,
    side,
    split,
)
from eprof.commands.diff.document import document, frame
from eprof.commands.diff.matching import Matching, match
from eprof.commands.diff.schema import Document, Gate, Part
from eprof.profile.grouping import part_of
from eprof.profile.priced import Energy
from eprof.profile.profile import Profile

if TYPE_CHECKING:
    import pandas as pd


TOTAL, ABOVE, SECONDS, EACH = "total", "above_constant", "time", "*"
_FORM = pattern(r"(?:(?P<kernel>.+):)?(?:(?P<what>[a-z][a-z0-9_]*)=)?(?P<percent>\d+(?:\.\d*)?|\.\d+)\s*%?")
_FAMILIES = ("computation", "data", CONSTANT)
# What a limit may call a column: the word, its group, its family.
_NAMES = {word: {word, count.group, count.family} for word, count in COUNTS.items()} | {CONSTANT: {CONSTANT}}


def parse(text: str) -> Gate:
    """Read a `--fail-above` text as a gate to be judged: "2%", "dram_read=5%", "KERNEL:2%", "KERNEL:time=5%", "*:10%".

    Raises UsageError.
    """
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise UsageError(
            f"--fail-above {text}: write [KERNEL:][WHAT=]PERCENT%, such as 2%, dram_read=5%, my_kernel:2% or '*:10%'."
        )
    what = form["what"] or TOTAL
    if what not in {TOTAL, SECONDS, *_FAMILIES, *GROUPS, *COUNTS}:
        raise UsageError(
            f"--fail-above {text}: there is no `{what}`; use total, time, {', '.join(_FAMILIES)}, a group "
            f"({', '.join(GROUPS)}) or a word of the vocabulary, such as dram_read."
        )
    return Gate(text, what, form["kernel"], float(form["percent"]) / 100)


def judge(gates: Sequence[Gate], changes: Changes) -> list[Gate]:
    """The gates with outcomes, one for each kernel that a gate names: by full name, else bare name, else last word.

    Where a side does not know the amount of a gate, it neither passes nor fails: `why_not` says why. Where time is a
    model, or may be noise, a gate on the total is on the energy above constant power, if there is any. Raises
    UsageError if a gate names no kernel.
    """
    is_above_only = changes.is_modelled or not changes.time_is_told
    is_above_only &= bool(changes.paid[:, ~FOLLOWS_TIME].any())
    every = range(len(changes.matches))
    names = [changes.names(row) for row in every]
    judged = []
    for gate in gates:
        if is_above_only and gate.what == TOTAL:
            gate = replace(gate, what=ABOVE)
        if gate.kernel is None:
            judged.append(_judged(gate, list(every), changes))
            continue
        rows = list(every)
        if gate.kernel != EACH:
            for form in (str, bare, own_name):
                rows = [row for row in every if gate.kernel in map(form, names[row])]
                if rows:
                    break
            else:
                known = few(labels([printable(both[-1]) for both in names], 60), 6)
                raise UsageError(
                    f"--fail-above {gate.gate}: neither side has a kernel `{gate.kernel}`; there are {known}."
                )
        judged += [_judged(replace(gate, kernel=names[row][-1]), [row], changes) for row in rows]
    return judged


def _judged(gate: Gate, rows: list[int], changes: Changes) -> Gate:
    """A gate with its outcome over the matches `rows`: failed if its amount grew by more than the limit and noise.

    From 0, any growth is above the limit.
    """
    match gate.what:
        case "total":
            columns = list(range(len(WORDS)))
        case "above_constant":
            columns = np.flatnonzero(~FOLLOWS_TIME).tolist()
        case "time":
            columns = [TIME]
        case what:
            columns = [column for column, word in enumerate(WORDS) if what in _NAMES[word]]
    # Without prices a class is judged by its counts; time always is.
    is_counted = gate.what == SECONDS or (changes.old_side.costs is None and changes.new_side.costs is None)
    if why_not := _why_not(gate, rows, columns, changes, is_counted):
        return replace(gate, why_not=why_not)

    def amount(grid: Grid) -> float:
        if not is_counted:
            return changes.compared_j(grid, rows, columns)
        numbers = grid.number[rows][:, columns]
        return math.fsum(numbers[~np.isnan(numbers)].tolist())

    old, new = amount(changes.old), amount(changes.new)
    test = changes.test(amount)
    growth = ratio(new - old, old)
    is_noise = test is not None and not test.shown
    # What may be noise of the clock fails only with counts that grew by as much.
    if FOLLOWS_TIME[columns].any() and not changes.time_is_told:
        is_noise |= not _is_more_work(rows, gate.limit, changes)
    if test is None and growth and not changes.is_modelled:
        is_noise |= abs(growth) <= REPEATS
    is_above = new > old and (growth is None or growth > gate.limit)
    unit = "J"
    if gate.what == SECONDS:
        unit = "s"
    elif is_counted:
        unit = COUNTS[WORDS[columns[0]]].unit
    failed = is_above and not is_noise
    return replace(gate, old=old, new=new, unit=unit, growth=growth, failed=failed, is_noise=is_noise)


def _is_more_work(rows: list[int], limit: float, changes: Changes) -> bool:
    """Whether kernels execute more instructions or flops, or move more bytes, by more than a limit."""
    old, new = changes.counted_by_both
    totals = [[table[rows][:, unit].sum() for table in (old, new)] for unit in COUNTED]
    return any(after > before * (1 + limit) for before, after in totals)


def _why_not(gate: Gate, rows: list[int], columns: list[int], changes: Changes, is_counted: bool) -> str:
    """Why a gate on energy, or on counts or time, cannot be judged; empty if it can."""
    if not is_counted:
        unpriced = changes.old_side.unpriced | changes.new_side.unpriced
        devices = {kernel.device for row in rows for kernel in changes.kernels[row] if kernel is not None}
        if lacking := sorted(map(str, devices & unpriced)):
            return f"no cost table prices what ran on {listed(lacking)}; choose one with --costs"
        one_sided = np.flatnonzero(changes.uncompared[rows][:, columns].any(axis=0))
        if one_sided.size:
            words = ", ".join(WORDS[columns[place]] for place in one_sided[:4])
            return f"the energy of {words} cannot be compared"
        return when(not changes.compared[rows][:, columns].any(), "its energy is not known on either side")
    if gate.what in (TOTAL, *_FAMILIES):
        return "no cost table prices these logs; choose one with --costs"
    is_unknown = np.isnan(np.stack([grid.number[rows][:, columns] for _, grid in changes.sides]))
    # A class that neither side tells apart (a total beside its parts) is no loss; one that one side knows is.
    is_unknown = is_unknown[:, :, ~is_unknown.all(axis=(0, 1))]
    old_is_bound, new_is_bound = (
        bool(combined(grid.counted[rows][:, columns]) & int(Mark.MISSING)) for _, grid in changes.sides
    )
    if not is_unknown.size or is_unknown.any() or old_is_bound != new_is_bound:
        return f"it is not known for every {changes.old_side.nouns.kernel} of both sides"
    return ""


class Difference(Result, Struct, frozen=True, eq=False):
    """NEW against OLD. typed: the document, which has every number; changes: what it is made from, cell by cell."""

    _notebook: ClassVar[str] = "eprof.commands.diff.files"

    typed: Document
    changes: Changes

    @property
    def change_j(self) -> float | None:
        """The change of the compared energy: the sum of all parts; None if no energy is compared."""
        return self.typed.change_j

    @property
    def speedup(self) -> float | None:
        """T_old / T_new ([T] 3.5); None where a time is not known, or a lower bound."""
        return self.typed.speedup

    @property
    def greenup(self) -> float | None:
        """E_old / E_new ([T] eq. 16) of the energy that is compared; None if none is."""
        return self.typed.greenup

    @property
    def powerup(self) -> float | None:
        """P_new / P_old = speedup / greenup; None where constant energy is not in the comparison."""
        return self.typed.powerup

    @property
    def parts(self) -> list[Part]:
        """The parts of the change: by word over all matched kernels, and by word for each kernel that came or went.

        Their `change_j` add up to `change_j`, in whatever order they are added with `math.fsum`.
        """
        return self.typed.parts

    @property
    def gates(self) -> list[Gate]:
        """The gates of `fail_above` with their outcomes: passed, failed, or why they cannot be judged."""
        return self.typed.gates

    def document(self) -> dict[str, Any]:
        """The difference as the plain data of `docs/diff.md`: what is saved, and what every report is made of."""
        plain: dict[str, Any] = msgspec.to_builtins(self.typed)
        return plain

    def to_frame(self) -> "pd.DataFrame":
        """The table of the CSV: a row for each part of each kernel's change."""
        return frame(self.changes)

    def __repr__(self) -> str:
        """The number of kernels and the change in J; `document` and `to_frame` have the other numbers."""
        change = phrase("{:+.6g} J", self.change_j) or "not known"
        return brief(Difference, f"of {len(self.changes.matches)} {self.typed.nouns.kernels}: {change}")


def compare(
    old: Sequence[Energy],
    new: Sequence[Energy],
    *,
    match_by_hand: Sequence[str] = (),
    similar: bool = True,
    kernels: Sequence[str] = (),
    fail_above: Sequence[str] = (),
    by: Sequence[str] = (),
    command_line: Sequence[str] = (),
) -> Difference:
    """Compare two variants, each one priced profile or several repeats of it.

    match_by_hand, similar: see `matching.match`. kernels: which ones, by name, "regex:..." or label on either
    side; none: all. fail_above: gates, see `parse`. by: the groups that their rows are (`Energy.by`).
    Raises UsageError (a match or a gate that names nothing, repeats priced differently), LogError (no kernel is left)
    and EprofError (a gate that cannot be judged).
    """
    gates = [parse(text) for text in fail_above]
    before, after = side("OLD", old), side("NEW", new)
    matching = match(before.named, after.named, match_by_hand, similar)
    if kernels:
        before, after, matching = _kept(before, after, matching, kernels)
    changes = split(before, after, matching.matches)
    return Difference(document(changes, matching.notes, judge(gates, changes), command_line, by), changes)


def _kept(old: Side, new: Side, matching: Matching, kernels: Sequence[str]) -> tuple[Side, Side, Matching]:
    """OLD, NEW and their matches without the kernels that are not selected; a match stays if either of its names is.

    Raises LogError if none is.
    """
    names_old, names_new = ([kernel.name for kernel in side.named] for side in (old, new))
    keep = selection(kernels, names_old, names_new)
    chosen = [
        pair
        for pair in matching.matches
        if (pair.old is not None and keep(names_old[pair.old])) or (pair.new is not None and keep(names_new[pair.new]))
    ]
    if not chosen:
        raise LogError(no_such_kernel(kernels, list(dict.fromkeys([*names_old, *names_new]))))
    places_old = [pair.old for pair in chosen if pair.old is not None]
    places_new = [pair.new for pair in chosen if pair.new is not None]
    rows_old: dict[int | None, int] = {place: row for row, place in enumerate(places_old)}
    rows_new: dict[int | None, int] = {place: row for row, place in enumerate(places_new)}
    renumbered = tuple(replace(pair, old=rows_old.get(pair.old), new=rows_new.get(pair.new)) for pair in chosen)
    note = (
        f"{len(chosen)} of {len(matching.matches)} {old.nouns.kernels} are selected by -k/--kernel-name; totals are of "
        "these only."
    )
    return old.taken(places_old), new.taken(places_new), Matching(renumbered, (*matching.notes, note))


def diff(
    old: Any,
    new: Any,
    *,
    costs: str | None = None,
    setting: str | None = None,
    new_costs: str | None = None,
    new_setting: str | None = None,
    efficiency: float | None = None,
    to_meter: bool | None = None,
    old_metered_j: float | None = None,
    new_metered_j: float | None = None,
    match: Sequence[str] = (),
    similar: bool = True,
    fail_above: Sequence[str] = (),
    by: Sequence[str] = (),
) -> Difference:
    """What changed from `old` to `new`, and why: parts of the change in energy that add up (docs/diff.md).

    old, new: a log, a run directory, a `Profile`, a priced one (`Energy`), or a list of these: repeats. costs, setting:
    of both sides, but for `new_costs` and `new_setting`. to_meter: each side is scaled to its own meter, or to the
    joules given (`Profile.energy`). match: "OLD=NEW" pairs kernels by hand; similar: whether names
    that are only alike are paired. fail_above: gates such as "2%"; `Difference.gates` has their outcomes. by: compares
    groups in the place of kernels, as `Energy.grouped` names them: ["mark"].
    """
    from eprof.profile import api

    price = partial(
        Profile.energy, costs=costs, setting=setting, efficiency=efficiency, to_meter=to_meter, estimate=not fail_above
    )
    old_price = partial(price, metered_j=old_metered_j)
    new_price = partial(price, costs=new_costs or costs, setting=new_setting or setting, metered_j=new_metered_j)
    load = partial(api.load, parts=part_of(by))
    before, after = (
        [
            energy.by(*by)
            for energy in api.energies(given if isinstance(given, list | tuple) else [given], load, price_side)
        ]
        for given, price_side in ((old, old_price), (new, new_price))
    )
    return compare(before, after, match_by_hand=match, similar=similar, fail_above=fail_above, by=by)

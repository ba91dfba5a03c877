"""Two sides compared: `Difference`, its numbers, and its document `eprof.diff/1`.

And its gates: how much more energy NEW may take, for a check that fails a pull request (`--fail-above`).
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof.base.arrays import known_or_zero
from eprof.base.brief import Result, brief
from eprof.base.errors import LogError, UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.known import less, mapped, ratio
from eprof.base.labels import labels, no_such_kernel, selection
from eprof.base.marks import Mark, names
from eprof.base.text import few, pattern, printable, when
from eprof.base.version import __version__
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.commands.diff import document as lists
from eprof.commands.diff import parts
from eprof.commands.diff.changes import FOLLOWS_TIME, LOWER, TIME, WORDS, Changes, Grid, Side, changes, combined, side
from eprof.commands.diff.document import reading, total_time
from eprof.commands.diff.matching import Match, Matching, match
from eprof.commands.diff.parts import Spread, causes, refits
from eprof.commands.diff.schema import AboveConstant, Document, Gate, Part, Range, Tests
from eprof.commands.diff.warnings import uncompared, unknown, unlike, warnings
from eprof.lab.welch import CONFIDENCE, Test, welch
from eprof.profile.profile import Energy, Profile

if TYPE_CHECKING:
    import pandas as pd


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


class Difference(Result, Struct, frozen=True, eq=False, dict=True):
    """NEW against OLD. Energies in J; "compared" is what both sides know, and all parts of the change are of it."""

    _notebook: ClassVar[str] = "eprof.commands.diff.files"

    old: Side
    new: Side
    matching: Matching
    changes: Changes
    gates: tuple[Gate, ...] = ()
    command_line: tuple[str, ...] = ()

    @property
    def matches(self) -> tuple[Match, ...]:
        """Every kernel of both sides of the difference once."""
        return self.matching.matches

    @cached_property
    def parts(self) -> list[Part]:
        """What the difference is made of: by word over all matched kernels, and by word for each that came or went.

        Their `change_j` add up to `change_j`, in whatever order they are added with `math.fsum`.
        """
        return parts.all_parts(self.changes, self.spread)

    @cached_property
    def spread(self) -> Spread | None:
        """The change by each replica of the prices; None where a side's prices have none."""
        if not self.has_energy:
            return None
        return mapped(partial(Spread, self.changes), refits(self.old, self.new))

    @cached_property
    def change_j(self) -> float | None:
        """The change of the compared energy: the sum of all parts; None if no energy is compared."""
        return math.fsum(part.change_j for part in self.parts) if self.has_energy else None

    @property
    def change_share(self) -> float | None:
        """The change as a fraction of what OLD took, of the compared energy."""
        return ratio(self.change_j, self.compared_j(self.changes.old))

    @property
    def has_energy(self) -> bool:
        """Whether any energy is known on both sides of the difference."""
        return self.changes.has_energy

    def compared_j(self, half: Grid) -> float | None:
        """The energy of one side, as far as the difference compares it."""
        return self.changes.compared_j(half) if self.has_energy else None

    @property
    def is_partial(self) -> bool:
        """Whether some energy that one side knows is left out of the difference because the other does not."""
        return bool(self.changes.uncompared.any())

    @cached_property
    def speedup(self) -> float | None:
        """T_old / T_new ([T] 3.5); None where a time is a lower bound, of which no quotient is known."""
        old, new = self.changes.old, self.changes.new
        if (old.state[:, TIME] == LOWER).any() or (new.state[:, TIME] == LOWER).any():
            return None
        return ratio(total_time(old), total_time(new))

    @cached_property
    def greenup(self) -> float | None:
        """E_old / E_new ([T] eq. 16), of what is compared."""
        return ratio(self.compared_j(self.changes.old), self.compared_j(self.changes.new))

    @cached_property
    def powerup(self) -> float | None:
        """P_new / P_old = speedup / greenup; None where constant energy is not in the comparison."""
        has_constant = self.changes.compared[:, TIME].all()
        return ratio(self.speedup, self.greenup) if has_constant else None

    @cached_property
    def is_zero(self) -> bool:
        """Whether there is no difference: every count, time and price that is known, to the last digit."""
        return self.changes.is_zero

    @cached_property
    def same_inputs(self) -> bool:
        """Whether both sides of the difference are made from the same logs."""
        return bool(self.old.origins) and self.old.origins == self.new.origins

    def test(self) -> Test | None:
        """Welch's test on the compared energy of the difference; None without repeats."""
        return self.changes.energy_test()

    def time_test(self) -> Test | None:
        """Welch's test on the time of the difference."""
        repeats = self.changes.old_repeats, self.changes.new_repeats
        old, new = ([time for half in side if (time := total_time(half)) is not None] for side in repeats)
        return welch(old, new)

    @cached_property
    def typed(self) -> Document:
        """The whole difference as the document that every report is made of."""
        model = reading(self.old, self.new)
        energy_test = self.test() if self.has_energy else None
        return Document(
            eprof=__version__,
            created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            command_line=list(self.command_line),
            old=lists.side_of(self.old, self.compared_j(self.changes.old)),
            new=lists.side_of(self.new, self.compared_j(self.changes.new)),
            intervals=self.spread.refits.document if self.spread else None,
            change_time_s=less(total_time(self.changes.new), total_time(self.changes.old)),
            speedup=self.speedup,
            powerup=self.powerup,
            is_zero=self.is_zero,
            rests_on_single_times=self.changes.rests_on_single_times,
            same_inputs=self.same_inputs,
            partial=self.is_partial,
            parts=self.parts,
            unlike=unlike(self.changes),
            uncompared=uncompared(self.changes),
            unknown=unknown(self.changes),
            counts=lists.counts(self.changes),
            case=model.case,
            model=model,
            tests=Tests(
                confidence=CONFIDENCE,
                method="Welch's t test",
                energy=lists.test_of(energy_test),
                time=lists.test_of(self.time_test()),
                measured=lists.test_of(welch(self.old.measured, self.new.measured)),
            ),
            gates=list(self.gates),
            warnings=self.warnings,
            above_constant=self._above_constant(),
            **self._answer(),
        )

    def _answer(self) -> dict[str, Any]:
        """What the difference of all energy and that above constant power both have."""
        spread = self.spread
        interval_j = interval_share = None
        if spread is not None:
            interval_share = spread.of_share(self.change_share)
            if self.change_j is not None:
                interval_j = spread.of_rows(np.arange(len(self.matches)), self.change_j)
        whole, of_kernels = causes(self.changes, spread.refits if spread else None)
        return {
            "change_j": self.change_j,
            "interval_j": interval_j,
            "change_share": self.change_share,
            "interval_share": interval_share,
            "greenup": self.greenup,
            "steps": parts.steps(self.parts, spread),
            "causes": whole,
            "marks": names(self.changes.marks_of(slice(None))),
            "kernels": lists.kernels(self.changes, spread, of_kernels),
        }

    def _above_constant(self) -> AboveConstant | UnsetType:
        if not self.has_energy or not (self.old.is_modelled or self.new.is_modelled):
            return UNSET
        old, new = self.old.above_constant(), self.new.above_constant()
        counted = replace(self, old=old, new=new, changes=changes(old, new, self.matches))
        return AboveConstant(
            old_j=counted.compared_j(counted.changes.old) or 0.0,
            new_j=counted.compared_j(counted.changes.new) or 0.0,
            test=lists.test_of(counted.test()),
            constant_old_j=_constant_ends(self.old),
            constant_new_j=_constant_ends(self.new),
            efficiency_old=self.old.efficiency,
            efficiency_new=self.new.efficiency,
            **counted._answer(),
        )

    @cached_property
    def warnings(self) -> list[str]:
        """What a reader should know of this difference, as sentences."""
        same = ["OLD and NEW are made from the same logs."] if self.same_inputs else []
        return [*same, *warnings(self.changes, self.matching.notes)]

    def document(self) -> dict[str, Any]:
        """The difference as the plain data of `docs/diff.md`: what is saved, and what every report is made of."""
        plain: dict[str, Any] = msgspec.to_builtins(self.typed)
        return plain

    def to_frame(self) -> "pd.DataFrame":
        """The difference as rows, one a part of every kernel, with units in the columns; the same as the CSV."""
        return lists.frame(self.changes)

    def __repr__(self) -> str:
        """What it is about; `document` and `to_frame` show the numbers."""
        change = "not known" if self.change_j is None else f"{self.change_j:+.6g} J"
        return brief(Difference, f"of {len(self.matches)} {self.old.nouns.kernels}: {change}")


def compare(
    old: Sequence[Energy],
    new: Sequence[Energy],
    *,
    match_by_hand: Sequence[str] = (),
    similar: bool = True,
    kernels: Sequence[str] = (),
    fail_above: Sequence[str] = (),
    command_line: Sequence[str] = (),
) -> Difference:
    """Compare two variants, each one priced profile or several repeats of it.

    match_by_hand, similar: see `matching.match`. kernels: which ones, by name, "regex:..." or label on either
    side; none: all. fail_above: gates, see `gates.parse`.
    Raises UsageError (a match or a gate that names nothing, repeats priced differently), LogError (no kernel is left)
    and EprofError (a gate that cannot be judged).
    """
    limits = [parse(text) for text in fail_above]
    before, after = side("OLD", old), side("NEW", new)
    matching = match(before.named, after.named, match_by_hand, similar)
    if kernels:
        before, after, matching = _kept(before, after, matching, kernels)
    change = changes(before, after, matching.matches)
    gates = judge(limits, change)
    return Difference(before, after, matching, change, tuple(gates), tuple(command_line))


def _constant_ends(side: Side) -> Range:
    """Constant energy in J at the roofline's own speed, and at the efficiency in force; given times stay."""
    joules = known_or_zero(side.mean.joules[:, TIME])
    is_model = (side.mean.counted[:, TIME] & int(Mark.SIMULATED)) != 0
    fastest = np.where(is_model, joules * (side.efficiency or 1.0), joules)
    return [math.fsum(fastest.tolist()), math.fsum(joules.tolist())]


def _kept(old: Side, new: Side, matching: Matching, kernels: Sequence[str]) -> tuple[Side, Side, Matching]:
    """The matches of the difference of which either name is selected, and the sides without all other kernels.

    Raises LogError if none is.
    """
    names = [[kernel.name for kernel in each.named] for each in (old, new)]
    keep = selection(kernels, *names)
    chosen = [
        pair
        for pair in matching.matches
        if (pair.old is not None and keep(old.named[pair.old].name))
        or (pair.new is not None and keep(new.named[pair.new].name))
    ]
    if not chosen:
        raise LogError(no_such_kernel(kernels, list(dict.fromkeys(chain(*names)))))
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
) -> Difference:
    """What changed from `old` to `new`, and why: parts of the change in energy that add up (docs/diff.md).

    old, new: a log, a run directory, a `Profile`, a priced one (`Energy`), or a list of these: repeats. costs, setting:
    of both sides, but for `new_costs` and `new_setting`. to_meter: each side is scaled to its own meter, or to the
    joules given (`Profile.energy`). match: "OLD=NEW" pairs kernels by hand; similar: whether names
    that are only alike are paired. fail_above: gates such as "2%"; `Difference.gates` has their outcomes.
    """
    from eprof.profile import api
    from eprof.profile.api import energies

    price = partial(
        Profile.energy,
        costs=costs,
        setting=setting,
        efficiency=efficiency,
        to_meter=to_meter,
        estimate=not fail_above,
    )
    old_price = partial(price, metered_j=old_metered_j)
    new_price = partial(price, costs=new_costs or costs, setting=new_setting or setting, metered_j=new_metered_j)
    before = energies(_repeats_of(old), api.load, old_price)
    after = energies(_repeats_of(new), api.load, new_price)
    return compare(before, after, match_by_hand=match, similar=similar, fail_above=fail_above)


def _repeats_of(given: Any) -> Sequence[Any]:
    return given if isinstance(given, list | tuple) else [given]

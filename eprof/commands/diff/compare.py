"""Two sides compared: `compare`, `diff` for Python users, and `Difference`, their result."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.base.labels import no_such_kernel, selection
from eprof.base.text import NotebookResult, phrase, short_repr
from eprof.commands.diff import standing
from eprof.commands.diff.changes import Changes, split
from eprof.commands.diff.document import document, frame
from eprof.commands.diff.gates import judge, parse
from eprof.commands.diff.matching import ALONE, BARE, BY_HAND, NAME, SIMILAR, Matching, match
from eprof.commands.diff.schema import Document, Gate, Part
from eprof.commands.diff.sides import TIME, Side, side
from eprof.profile.grouping import part_of
from eprof.profile.profile import Energy, Profile
from eprof.profilers import advice

if TYPE_CHECKING:
    import pandas as pd


class Difference(NotebookResult, Struct, frozen=True, eq=False):
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
        return short_repr(Difference, f"of {len(self.changes.matches)} {self.typed.nouns.kernels}: {change}")


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
    of_rates = before.is_of_rates or after.is_of_rates
    named_old, named_new = before.named, after.named
    if of_rates:  # launches of a second tell no kernels apart
        named_old, named_new = ([replace(kernel, launches=1.0) for kernel in side] for side in (named_old, named_new))
    matching = match(named_old, named_new, match_by_hand, similar)
    if before.nouns.is_of_cpu != after.nouns.is_of_cpu:
        matching = matching.without(NAME, BARE, SIMILAR, ALONE)
    if kernels:
        before, after, matching = _kept(before, after, matching, kernels)
    if of_rates:
        before, after, matching = _of_a_second(before, after, matching)

    def difference(matching: Matching) -> Difference:
        changes = split(before, after, matching.matches)
        return Difference(document(changes, matching.notes, judge(gates, changes), command_line, by), changes)

    found, by_name = difference(matching), matching.without(SIMILAR)
    if by_name != matching and standing.are_strangers(found.typed):  # what strangers share in letters is chance
        return difference(by_name)
    return found


def _kept(old: Side, new: Side, matching: Matching, kernels: Sequence[str]) -> tuple[Side, Side, Matching]:
    """OLD, NEW and their matches without the kernels that are not selected; a match stays if either of its names is.

    The name of a kernel that was matched by hand is selected on its own side alone: of one log, two kernels compare.
    Raises LogError if none is.
    """
    names = [[kernel.name for kernel in side.named] for side in (old, new)]
    keep = selection(kernels, *names)
    kept = [{place for place, name in enumerate(of_side) if keep(name)} for of_side in names]
    pairs = [(pair.old, pair.new) for pair in matching.matches if pair.how == BY_HAND]
    by_hand = [(of_old, of_new) for of_old, of_new in pairs if of_old is not None and of_new is not None]
    for here, there in ((0, 1), (1, 0)):
        own = {pair[here] for pair in by_hand}
        meant = {names[there][pair[there]] for pair in by_hand}
        kept[here] = {place for place in kept[here] if place in own or names[here][place] not in meant}
    chosen = [pair for pair in matching.matches if pair.old in kept[0] or pair.new in kept[1]]
    if not chosen:
        raise LogError(no_such_kernel(kernels, list(dict.fromkeys([*names[0], *names[1]]))))
    note = (
        f"{len(chosen)} of {len(matching.matches)} {old.nouns.kernels} are selected by -k/--kernel-name; totals are of "
        "these only."
    )
    return _taken(old, new, Matching(tuple(chosen), (*matching.notes, note)))


def _of_a_second(old: Side, new: Side, matching: Matching) -> tuple[Side, Side, Matching]:
    """OLD, NEW and their pairs, all kernels together in one second on both sides, so that joules are watts.

    Each kernel lasts as on the side that knows its time, or as OLD's share of all launches. Raises LogError if no
    kernel with a time is on both sides.
    """
    pairs = [(pair, pair.old, pair.new) for pair in matching.matches if pair.old is not None and pair.new is not None]
    times_s = np.array([[old.mean.number[left, TIME], new.mean.number[right, TIME]] for _, left, right in pairs])
    is_timed = (times_s.reshape(-1, 2) > 0).all(axis=1)
    if not is_timed.any():
        capabilities = [part.device.capability for part in old.first.profile.counted]
        rates, other = ("OLD", "NEW") if old.is_of_rates else ("NEW", "OLD")
        raise LogError(
            f"{rates} tells nothing but rates, without a time, and {other} no time of a {old.nouns.kernel} that both "
            f"have, so nothing is compared; give --{rates.lower()}-time and --{other.lower()}-time, or traces "
            f"({advice.commands(advice.TIMES, capabilities)})."
        )
    notes = matching.notes
    if left_out := len(matching.matches) - int(is_timed.sum()):
        notes += (f"{left_out} of {len(matching.matches)} {old.nouns.kernels} have no partner with a time; left out.",)
    chosen = tuple(pairs[place][0] for place in np.flatnonzero(is_timed).tolist())
    old, new, matching = _taken(old, new, Matching(chosen, notes))
    times_s = times_s[is_timed]
    seconds = times_s[:, int(old.is_of_rates and not new.is_of_rates)]
    factors = (seconds / seconds.sum())[:, None] / times_s
    return old.scaled(factors[:, 0]), new.scaled(factors[:, 1]), matching


def _taken(old: Side, new: Side, matching: Matching) -> tuple[Side, Side, Matching]:
    """OLD and NEW with the kernels of these matches alone, which are renumbered."""
    chosen = matching.matches
    places_old = [pair.old for pair in chosen if pair.old is not None]
    places_new = [pair.new for pair in chosen if pair.new is not None]
    rows_old: dict[int | None, int] = {place: row for row, place in enumerate(places_old)}
    rows_new: dict[int | None, int] = {place: row for row, place in enumerate(places_new)}
    renumbered = tuple(replace(pair, old=rows_old.get(pair.old), new=rows_new.get(pair.new)) for pair in chosen)
    return old.taken(places_old), new.taken(places_new), Matching(renumbered, matching.notes)


def variant(inputs: Sequence[Any], by: Sequence[str], **options: Any) -> list[Energy]:
    """The repeats of OLD, or NEW, in the groups `by`. options: of `api.load` and of `Profile.energy`."""
    from eprof.profile import api

    of_load = ("gpu", "capability", "columns", "time", "progress")
    reading = {name: options.pop(name) for name in of_load if name in options}
    read = partial(api.load, parts=part_of(by), **reading)
    return [energy.by(*by) for energy in api.energies(inputs, read, partial(Profile.energy, **options))]


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
    alike: dict[str, Any] = {"efficiency": efficiency, "to_meter": to_meter, "estimate": not fail_above}
    olds, news = (given if isinstance(given, list | tuple) else [given] for given in (old, new))
    before = variant(olds, by, costs=costs, setting=setting, metered_j=old_metered_j, **alike)
    of_new = new_costs or costs, new_setting or setting
    after = variant(news, by, costs=of_new[0], setting=of_new[1], metered_j=new_metered_j, **alike)
    return compare(before, after, match_by_hand=match, similar=similar, fail_above=fail_above, by=by)

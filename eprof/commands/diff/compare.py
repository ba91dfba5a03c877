"""`compare` two variants, and `diff` for Python users: the `Difference`, and the document that is made of it."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from eprof import __version__
from eprof.base.arrays import finite, known_or_zero
from eprof.base.errors import LogError
from eprof.base.labels import no_such_kernel, selection
from eprof.base.optional import less, mapped, ratio
from eprof.base.text import NotebookResult, few, phrase, short_repr
from eprof.base.vocabulary import COUNTS, MISSING, SIMULATED, Mark, in_document, mark_names
from eprof.commands.diff import likeness, schema
from eprof.commands.diff.causes import (
    MARK_WORDS,
    Spread,
    all_parts,
    causes,
    energy_intervals,
    parts_of,
    reading,
    spread_of,
    steps,
)
from eprof.commands.diff.changes import LOWER, MATCHED, TIME, WORDS, Changes, Side, combined, known_sum, side_of, split
from eprof.commands.diff.gates import judge, parse
from eprof.commands.diff.matching import ALONE, BARE, BY_HAND, EQUAL, NAME, SIMILAR, Matching, match
from eprof.commands.diff.schema import Document, Gate, Part
from eprof.commands.diff.warnings import uncompared, unknown, unlike, warnings
from eprof.costs import DEFAULT
from eprof.energy.attribution import FAMILIES
from eprof.energy.clocks import Clocks
from eprof.lab.welch import CONFIDENCE, welch
from eprof.profile.document import gaps_of
from eprof.profile.grouping import part_of
from eprof.profile.profile import Energy, Profile
from eprof.profile.schema import Gaps, RunJoules
from eprof.profilers import advice

if TYPE_CHECKING:
    import pandas as pd


class Difference(NotebookResult, Struct, frozen=True, eq=False):
    """The result of `compare`, NEW against OLD. typed: its document; changes: what that is made from, cell by cell."""

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
        from eprof.commands.diff.files import frame

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
    old, new = _at_told_clocks(old, new, by)
    before, after = side_of("OLD", old), side_of("NEW", new)
    of_rates = before.is_of_rates or after.is_of_rates
    named_old, named_new = before.named, after.named
    if of_rates:  # launches of a second tell no kernels apart
        named_old, named_new = ([replace(kernel, launches=1.0) for kernel in side] for side in (named_old, named_new))
    matching = match(named_old, named_new, match_by_hand, similar)
    if before.nouns.is_of_cpu != after.nouns.is_of_cpu:
        matching = matching.without(NAME, BARE, SIMILAR, ALONE, EQUAL)
    if kernels:
        before, after, matching = _kept(before, after, matching, kernels)
    if of_rates:
        before, after, matching = _of_a_second(before, after, matching)

    def difference(matching: Matching) -> Difference:
        changes = split(before, after, matching.matches)
        return Difference(_document(changes, matching.notes, judge(gates, changes), command_line, by), changes)

    found, by_name = difference(matching), matching.without(SIMILAR, EQUAL)
    if by_name != matching and likeness.are_strangers(found.typed):  # what strangers share is chance
        return difference(by_name)
    return found


def _at_told_clocks(old: Sequence[Energy], new: Sequence[Energy], by: Sequence[str]) -> list[list[Energy]]:
    """[OLD, NEW], each a list of repeats, at the clocks that some logs tell, ASSUMED of those whose logs tell none.

    A table's default is no fact of a run: of other clocks it would make a change. What a user asked for stays.
    """
    told: dict[tuple[str, str], Clocks] = {}  # by table: an estimate is of one GPU
    for energy in (*old, *new):
        if energy.costs is not None and (clocks := _told_clocks(energy)):
            told.setdefault((energy.costs.name, energy.costs.device), clocks)
    return [[_assumed_at(told, energy, by) for energy in energies] for energies in (old, new)]


def _told_clocks(energy: Energy) -> Clocks | None:
    """The clocks that a profile's log, or saved report, tells and that it is priced at; None: there are none such."""
    profile, costs = energy.profile, energy.costs
    if costs is not None and costs.setting_from.startswith("asked"):
        setting = costs.setting
        return Clocks(setting.core_mhz, setting.memory_mhz, "the report") if profile.saved is not None else None
    return profile.clocks if profile.clocks is not None and profile.clocks.core_mhz is not None else None


def _assumed_at(told: Mapping[tuple[str, str], Clocks], energy: Energy, by: Sequence[str]) -> Energy:
    """A priced profile at the clocks told for its table, if its log tells none; itself, where these change nothing."""
    profile, costs = energy.profile, energy.costs
    if costs is None or costs.setting_from != DEFAULT or energy.metered is not None:
        return energy
    clocks = told.get((costs.name, costs.device))
    is_told = not isinstance(profile, Profile) or profile.clocks is not None
    if clocks is None or is_told or energy.table is None or profile.is_of_cpu or profile.is_simulated:
        return energy
    made = replace(profile, clocks=clocks).energy(energy.table, to_meter=False)
    at = made.costs
    if at is None or (at.setting, at.busy_mhz) == (costs.setting, costs.busy_mhz):
        return energy
    note = (
        f"The log tells no clocks: taken to be {clocks.core_mhz:g} MHz, as of another log that is compared (assumed)."
    )
    at = replace(at.marked(Mark.ASSUMED), setting_from="the clocks of the other log, assumed")
    priced = replace(made.priced(at), profile=profile, notes=(*made.notes, note), is_guessed=energy.is_guessed)
    return priced.by(*by)


def _kept(old: Side, new: Side, matching: Matching, kernels: Sequence[str]) -> tuple[Side, Side, Matching]:
    """OLD, NEW and their matches, of the kernels that `-k` selects; a match stays if either of its names is selected.

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
    """OLD, NEW and their pairs, with all kernels scaled to one second together on each side: joules are watts.

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
    """Read and price the repeats of OLD, or NEW, a row a group of `by`. options: of `api.load` and `Profile.energy`."""
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
    alike: dict[str, Any] = {"efficiency": efficiency, "to_meter": to_meter}
    olds, news = (given if isinstance(given, list | tuple) else [given] for given in (old, new))
    before = variant(olds, by, costs=costs, setting=setting, metered_j=old_metered_j, **alike)
    of_new = new_costs or costs, new_setting or setting
    after = variant(news, by, costs=of_new[0], setting=of_new[1], metered_j=new_metered_j, **alike)
    return compare(before, after, match_by_hand=match, similar=similar, fail_above=fail_above, by=by)


_OF_COSTS = ("name", "device", "source", "books", "setting_from", "constant_power_w", "basis")


def _document(
    changes: Changes, notes: Sequence[str], gates: Sequence[schema.Gate], command_line: Sequence[str], by: Sequence[str]
) -> schema.Document:
    """The whole difference, as the document that reports are made of. notes: of the matching. by: groups of `--by`."""
    old, new = changes.old_side, changes.new_side
    spread = spread_of(changes)
    answer = _answer(schema.Document, changes, spread)
    old_s, new_s = (finite(grid.number[:, TIME].sum()) for _, grid in changes.sides)
    is_bound = changes.of_rates or any((grid.state[:, TIME] == LOWER).any() for _, grid in changes.sides)
    speedup = None if is_bound else ratio(old_s, new_s)  # of lower bounds no quotient is known
    # Of a part of the energy there is no power.
    is_whole = changes.compared[:, TIME].all() and not changes.uncompared.any()
    powerup = ratio(speedup, answer["greenup"]) if is_whole else None
    if changes.of_rates:
        powerup, answer["greenup"] = ratio(1.0, answer["greenup"]), None
    same_inputs = bool(old.origins) and old.origins == new.origins
    same = ["OLD and NEW are made from the same logs."] * same_inputs
    left_out, lost = uncompared(changes), unknown(changes)
    old_j, new_j = (changes.known_j(grid) for _, grid in changes.sides)
    folders = int(not same_inputs and _name(old) == _name(new))

    intervals = None
    if (refits := spread.refits) is not None:
        within = refits.old.within, refits.new.within
        intervals = schema.Intervals(refits.old.share, refits.old.number, refits.is_paired)
        if min(within) > 1:  # measured of both
            intervals = replace(intervals, within=max(within))
    above_constant: schema.AboveConstant | UnsetType = UNSET
    counted = changes
    if changes.has_energy and changes.is_modelled:
        counted = split(old.above_constant(), new.above_constant(), changes.matches)
        above_constant = schema.AboveConstant(
            old_j=counted.compared_j(counted.old),
            new_j=counted.compared_j(counted.new),
            test=counted.test(counted.compared_j),
            constant_old_j=_constant_range_j(old),
            constant_new_j=_constant_range_j(new),
            efficiency_old=old.efficiency,
            efficiency_new=new.efficiency,
            **_answer(schema.AboveConstant, counted, spread_of(counted)),
        )

    old_side, new_side = (_side(side, known_j, _name(side, folders)) for side, known_j in ((old, old_j), (new, new_j)))
    if changes.of_rates:  # all is of one second
        timeless: dict[str, Any] = {"time_s": None, "time_marks": ["missing"], "power_w": None}
        timeless |= {"copies_s": UNSET, "still_s": UNSET}
        old_side, new_side = replace(old_side, **timeless), replace(new_side, **timeless)
    return schema.Document(
        eprof=__version__,
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command_line=list(command_line),
        by=list(by) or UNSET,
        old=old_side,
        new=new_side,
        intervals=intervals,
        change_time_s=None if changes.of_rates else less(new_s, old_s),
        speedup=speedup,
        powerup=powerup,
        is_zero=changes.is_zero,
        rests_on_time=changes.rests_on_time,
        same_inputs=same_inputs,
        partial=bool(changes.uncompared.any()),
        unlike=unlike(changes),
        uncompared=left_out,
        unknown=lost,
        counts=counts(changes),
        model=reading(old, new),
        tests=schema.Tests(
            confidence=CONFIDENCE,
            method="Welch's t test",
            energy=changes.test(changes.known_j),
            time=changes.test(lambda grid: float(grid.number[:, TIME].sum())),
            measured=welch(old.measured, new.measured),
            dated=changes.are_dated,
        ),
        gates=list(gates),
        warnings=[*same, *warnings(changes, left_out, lost, notes)],
        above_constant=above_constant,
        a_second=changes.of_rates or UNSET,
        per_launch=_per_launch(counted),
        with_still=_with_still(old_side, new_side, spread),
        **answer,
    )


def _with_still(old: schema.Side, new: schema.Side, spread: Spread) -> schema.WithStill | UnsetType:
    """The compared energy with that of the time without kernels; UNSET: a side does not tell one of these."""
    whole_j, still_s = [], []
    for side in (old, new):
        if not (side.compared_j and side.still_j and side.still_s):
            return UNSET
        whole_j.append(side.compared_j + side.still_j)
        still_s.append(side.still_s)
    share = ratio(whole_j[1] - whole_j[0], whole_j[0])
    return schema.WithStill(whole_j[0], whole_j[1], share, spread.of_share(share, still_s))


def _per_launch(changes: Changes) -> schema.PerLaunch | UnsetType:
    """What would change if NEW launched each kernel of both sides as often as OLD; UNSET: it does, or no energy is."""
    is_on_both = changes.statuses == MATCHED
    of_old, of_new = (launches[is_on_both] for launches in changes.launches)
    if not changes.has_energy or changes.old_side.nouns.is_of_cpu or np.array_equal(of_old, of_new):
        return UNSET
    new, matches = changes.new_side, np.array(changes.matches, dtype=object)[is_on_both].tolist()
    launches = np.array([kernel.launches for kernel in new.named])
    launches[[match.new for match in matches]] = of_old
    each = split(changes.old_side, new.launched(launches), matches)
    answer = _answer(schema.PerLaunch, each, spread_of(each))
    return UNSET if answer["change_j"] is None else schema.PerLaunch(**answer)


def _answer(of: type[Struct], changes: Changes, spread: Spread) -> dict[str, Any]:
    """Name -> value of those fields of `of` that tell the change: its parts, causes, kernels, intervals and marks."""
    parts = all_parts(changes, spread)
    change_j = change_share = greenup = interval_j = interval_share = None
    if changes.has_energy:
        old_j, new_j = (changes.compared_j(grid) for _, grid in changes.sides)
        change_j = math.fsum(part.change_j for part in parts)
        change_share, greenup = ratio(change_j, old_j), ratio(old_j, new_j)
        interval_j = spread.of_rows(np.arange(len(changes.matches)), change_j)
        interval_share = spread.of_share(change_share)
    whole, of_kernels = causes(changes, spread)
    fields = {
        "change_j": change_j,
        "interval_j": interval_j,
        "change_share": change_share,
        "interval_share": interval_share,
        "greenup": greenup,
        "parts": parts,
        "steps": steps(parts, spread),
        "causes": whole,
        "marks": mark_names(changes.marks_of(slice(None))),
        "kernels": kernels(changes, spread, of_kernels),
    }
    return {name: value for name, value in fields.items() if name in of.__struct_fields__}


def _constant_range_j(side: Side) -> schema.Range:
    """[low, high] J of a variant's constant energy: modelled times at the roofline's speed, and at the one assumed."""
    joules = known_or_zero(side.mean.joules[:, TIME])
    is_model = (side.mean.counted[:, TIME] & SIMULATED) != 0
    fastest = np.where(is_model, joules * (side.efficiency or 1.0), joules)
    return [math.fsum(fastest.tolist()), math.fsum(joules.tolist())]


def _side(variant: Side, compared_j: float | None, name: str) -> schema.Side:
    """OLD, or NEW, as the document has it. compared_j: the part of its energy that the other side knows, too, J."""
    profile, mean = variant.first.profile, variant.mean
    measured_j = ratio(math.fsum(variant.measured), len(variant.measured))
    columns = {family: [WORDS.index(word) for word in words] for family, words in FAMILIES.items()}
    columns["total"] = list(range(len(WORDS)))
    # The same sums as `eprof.profile/1` has.
    joules: dict[str, float | None] = dict.fromkeys(columns)
    energy_marks = dict.fromkeys(columns, ["missing"])
    if variant.tables:
        joules = {family: known_sum(mean.joules[:, places]) for family, places in columns.items()}
        energy_marks = {family: mark_names(combined(mean.marks[:, places])) for family, places in columns.items()}
    energy = RunJoules(**joules, measured=measured_j)
    time_s, time_marks = known_sum(mean.number[:, TIME]), mark_names(combined(mean.counted[:, TIME]))
    to_meter: schema.ToMeter | UnsetType = UNSET
    if factors := variant.factors:
        to_meter = schema.ToMeter(math.fsum(variant.measured) / len(factors), math.fsum(factors) / len(factors))
    prices = [
        schema.TableOfSide(
            **{name: getattr(costs, name) for name in _OF_COSTS},
            setting=costs.setting_data,
            marks=mark_names(costs.marks),
            serves=gpu.table is None or gpu.profile.is_served_by(gpu.table),
        )
        for gpu in variant.first.each
        if (costs := gpu.costs) is not None
    ]
    gaps = gaps_of(variant.first) or Gaps(None)
    is_traced = gaps.surely_s is None  # sums of calls that may overlap tell no time between kernels
    return schema.Side(
        title=profile.title,
        name=name,
        inputs=[schema.Log(log.path, log.format, log.sha256, log.command) for log in variant.logs],
        devices=[
            schema.Device(device.name, device.index, device.capability, in_document(counted.definition.processor))
            for counted in profile.counted
            for device in [counted.device]
        ],
        definition=", ".join(dict.fromkeys(counted.definition.name for counted in profile.counted)),
        costs=next(iter(prices), None),
        costs_of_others=prices[1:] or UNSET,
        repeats=len(variant.energies),
        launches=finite(math.fsum(kernel.launches for kernel in variant.named)),
        time_s=time_s,
        time_marks=time_marks,
        time_from=variant.first.time_from,
        power_w=None if "missing" in time_marks else ratio(energy.total, time_s),
        energy_j=energy,
        energy_marks=energy_marks,
        compared_j=compared_j,
        marks=energy_marks["total"],
        interval_j=energy_intervals(variant),
        to_meter=to_meter,
        own_clocks=variant.own_clocks or UNSET,
        copies_s=gaps.copies_s or UNSET,
        still_s=(is_traced and gaps.still_s) or UNSET,
        still_j=(is_traced and gaps.time_s and gaps.energy_j and gaps.energy_j / gaps.time_s * gaps.still_s) or UNSET,
    )


def _name(variant: Side, folders: int = 0) -> str:
    """The name of OLD, or NEW, in the document: its first run directory, or log, and how many more there are.

    folders: how many of the folders around it belong to the name.
    """
    profile = variant.first.profile
    named = [each.profile.run or each.profile.saved for each in variant.energies]
    runs = {place if run is None else run.path for place, run in enumerate(named)}
    paths = [log.path for log in profile.logs]
    run = named[0]
    first = "/".join(Path(paths[0] if run is None else run.path).parts[-1 - folders :])
    if len(variant.energies) > 1 or run is not None:
        return few([first] * len(runs), 1)
    return few([first, *paths[1:]], 1)


def counts(changes: Changes) -> dict[str, schema.Count]:
    """The totals of each word that OLD or NEW counted in its own kernels, and their change; None: a part is lacking."""
    totals = {}
    own = [
        grid.rows(np.flatnonzero(launches).tolist())
        for (_, grid), launches in zip(changes.sides, changes.launches, strict=True)
    ]
    for column, word in enumerate(COUNTS):
        old, new = (finite(math.fsum(grid.number[:, column].tolist())) for grid in own)
        if (old, new) in ((0, 0), (None, None)):
            continue
        # A lower bound of one side keeps a word from being compared: part of it was not counted, perhaps all.
        is_lower = ((changes.old.counted | changes.new.counted)[:, column] & MISSING) != 0
        is_bound = (is_lower & ~changes.compared[:, column]).any() or changes.is_net[:, column].any()
        totals[word] = schema.Count(
            old=old,
            new=new,
            change=None if is_bound else less(new, old),
            unit=COUNTS[word].unit,
            marks=mark_names(combined(changes.old.counted[:, column] | changes.new.counted[:, column])),
            simpler=", ".join(changes.simpler.get(word, ())) or UNSET,
        )
    return totals


def kernels(changes: Changes, spread: Spread, causes_of: Sequence[list[schema.Cause]]) -> list[schema.Kernel]:
    """The kernels in the document, each match, largest change first: of energy, or without it of time.

    causes_of: those of each match.
    """
    kernels = []
    for row, (pair, status) in enumerate(zip(changes.matches, changes.statuses.tolist(), strict=True)):
        rows = slice(row, row + 1)
        name = changes.names(row)[-1]
        parts = parts_of(changes, [row], name, status)
        both: list[schema.KernelSide | None] = [None, None]
        for label, (own, (side, grid)) in enumerate(zip((pair.old, pair.new), changes.sides, strict=True)):
            if own is None:
                continue
            energy_j, marks = None, ["missing"]
            if side.costs is not None:
                energy_j, marks = known_sum(side.mean.joules[own]), MARK_WORDS[combined(side.mean.marks[own])]
            both[label] = schema.KernelSide(
                name=side.named[own].name,
                device=side.named[own].device,
                launches=side.named[own].launches,
                time_s=finite(grid.number[row, TIME]),
                energy_j=energy_j,
                compared_j=changes.known_j(grid, rows),
                marks=marks,
            )
        old, new = both
        change_j = math.fsum(part.change_j for part in parts) if changes.has_energy else None
        kernels.append(
            schema.Kernel(
                name=name,
                status=status,
                match=mapped(schema.Match, pair.how, pair.score or 0.0),
                old=old,
                new=new,
                change_j=change_j,
                speedup=ratio(getattr(old, "time_s", None), getattr(new, "time_s", None)),
                greenup=ratio(getattr(old, "compared_j", None), getattr(new, "compared_j", None)),
                partial=bool(changes.uncompared[row].any()),
                marks=MARK_WORDS[changes.marks_of(rows)],
                test=changes.test(partial(changes.known_j, rows=rows)),
                parts=[
                    schema.KernelPart(**{name: getattr(part, name) for name in schema.KernelPart.__struct_fields__})
                    for part in parts
                ],
                causes=causes_of[row][:3],
            )
        )
    ends = spread.of_kernels([kernel.change_j or 0.0 for kernel in kernels])
    kernels = [replace(kernel, interval_j=pair) for kernel, pair in zip(kernels, ends, strict=True)]

    def size(kernel: schema.Kernel) -> tuple[float, float]:
        old_s, new_s = ((side and side.time_s) or 0.0 for side in (kernel.old, kernel.new))
        return abs(kernel.change_j or 0.0), abs(new_s - old_s)

    return sorted(kernels, key=size, reverse=True)

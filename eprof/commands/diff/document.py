"""The document of a difference, made from its changes; what its model reads in them; the rows of the CSV.

The model ([T] 3.5; [R] II): the old variant does work W (flop) and moves traffic Q (B), the new one f W and Q/m; all
intensities and balances are in flop/B. eta is the flop efficiency eps_flop/(eps_flop + pi0 tau_flop).
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from eprof import __version__
from eprof.base.arrays import Columns, finite, known_or_zero
from eprof.base.errors import CostError
from eprof.base.optional import less, mapped, ratio
from eprof.base.text import few
from eprof.base.vocabulary import COUNTS, MISSING, SIMULATED, in_document, mark_names
from eprof.commands.diff import schema
from eprof.commands.diff.causes import causes
from eprof.commands.diff.changes import MATCHED, Changes, split
from eprof.commands.diff.parts import MARK_WORDS, Spread, all_parts, energy_intervals, parts_of, spread_of, steps
from eprof.commands.diff.sides import LOWER, TIME, WORDS, Grid, combined, known_sum
from eprof.commands.diff.sides import Side as Variant
from eprof.commands.diff.warnings import uncompared, unknown, unlike, warnings
from eprof.energy.attribution import FAMILIES
from eprof.lab.welch import CONFIDENCE, welch
from eprof.profile.document import gaps_of
from eprof.profile.rooflines.machine import Machine, machine
from eprof.profile.rooflines.work import flops_of, main_precision, traffic_of
from eprof.profile.schema import Gaps, RunJoules

if TYPE_CHECKING:
    import pandas as pd


# If fewer of the flops than this are of one width, one balance cannot stand for all.
_ONE_WIDTH = 0.9
_OF_COSTS = ("name", "device", "source", "books", "setting_from", "constant_power_w", "basis")
# The columns of the CSV.
_NAMES = ("kernel_old", "kernel_new", "status", "match", "score")
_PART = ("what", "kind", "because", "unit", "old", "new", "old_j", "new_j", "change_j")
_NUMBERS = ("score", "old", "new", "old_j", "new_j", "change_j")


def reading(old: Variant, new: Variant) -> schema.Model:
    """What the two-level model says of the change; only `missing` (why not) if it cannot read OLD and NEW."""
    unread = schema.Model(
        missing="The model reads flops of one width and bytes of DRAM, known of every kernel, at the prices and peaks "
        "of one setting of one table."
    )
    tables = [Columns(tuple(WORDS), side.mean.number) for side in (old, new)]
    work, moved = ([float(amounts(table).sum()) for table in tables] for amounts in (flops_of, traffic_of))
    prices = {(costs.name, costs.setting) for costs in (*old.tables, *new.tables)}
    if (
        len(prices) != 1
        or old.is_of_rates
        or new.is_of_rates
        or not (old.costs and new.costs)
        or not all(amount > 0 for amount in (*work, *moved))
    ):
        return unread
    precision = main_precision(tables[0])
    of_width = [float(np.nansum(flops_of(table, precision))) for table in tables]
    if precision is None or any(part < _ONE_WIDTH * whole for part, whole in zip(of_width, work, strict=True)):
        return unread
    try:
        return assess((work[0], moved[0]), (work[1], moved[1]), machine(old.costs, precision))
    except CostError:  # no roofline at this setting
        return unread


def assess(old: tuple[float, float], new: tuple[float, float], machine: Machine) -> schema.Model:
    """The model of a change from (flop, B) to (flop, B), all above 0: speedup, greenup, and the break-even in work.

    The break-even is the f with f + Bhat(f m I)/(m I) = 1 + Bhat(I)/I: below it the change saves energy ([T] eqs. 17,
    27). The left side rises with f, at slope 1 where the new variant is compute bound and eta where it is memory bound.
    """
    f, m, intensity = new[0] / old[0], old[1] / new[1], old[0] / old[1]
    balance, eta = machine.time_balance, machine.flop_efficiency
    scaled = eta * machine.energy_balance

    def bytes_cost(intensity: float) -> float:
        """Bhat(I) = eta B_eps + (1 - eta) max(0, B_tau - I) ([R] II)."""
        return scaled + (1 - eta) * max(0.0, balance - intensity)

    before = 1 + bytes_cost(intensity) / intensity
    after = f + bytes_cost(f * m * intensity) / (m * intensity)
    break_even = before - scaled / (m * intensity)
    if break_even * m * intensity < balance:  # it is memory bound there
        break_even = (before - (scaled + (1 - eta) * balance) / (m * intensity)) / eta
    return schema.Model(
        missing=None,
        precision=machine.precision,
        work_factor=f,
        traffic_factor=m,
        intensity_flop_per_byte=intensity,
        time_balance=balance,
        energy_balance=machine.energy_balance,
        speedup=max(1.0, balance / intensity) / max(f, balance / (m * intensity)),
        greenup=before / after,
        break_even_work_factor=break_even,
    )


def document(
    changes: Changes, notes: Sequence[str], gates: Sequence[schema.Gate], command_line: Sequence[str], by: Sequence[str]
) -> schema.Document:
    """The whole difference, as the document that reports are made of. notes: of the matching. by: groups of `--by`."""
    old, new = changes.old_side, changes.new_side
    spread = spread_of(changes)
    parts = all_parts(changes, spread)
    answer = _answer(changes, parts, spread)
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

    above_constant: schema.AboveConstant | UnsetType = UNSET
    counted = changes
    if changes.has_energy and changes.is_modelled:
        counted = split(old.above_constant(), new.above_constant(), changes.matches)
        spread_of_counted = spread_of(counted)
        above_constant = schema.AboveConstant(
            old_j=counted.compared_j(counted.old),
            new_j=counted.compared_j(counted.new),
            test=counted.test(counted.compared_j),
            constant_old_j=_constant_range_j(old),
            constant_new_j=_constant_range_j(new),
            efficiency_old=old.efficiency,
            efficiency_new=new.efficiency,
            **_answer(counted, all_parts(counted, spread_of_counted), spread_of_counted),
        )

    old_side, new_side = (
        _timeless(side_of(side, known_j, _name(side, folders)), changes.of_rates)
        for side, known_j in ((old, old_j), (new, new_j))
    )
    return schema.Document(
        eprof=__version__,
        created_utc=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        command_line=list(command_line),
        by=list(by) or UNSET,
        old=old_side,
        new=new_side,
        intervals=mapped(lambda refits: refits.document, spread.refits),
        change_time_s=None if changes.of_rates else less(new_s, old_s),
        speedup=speedup,
        powerup=powerup,
        is_zero=changes.is_zero,
        rests_on_time=changes.rests_on_time,
        same_inputs=same_inputs,
        partial=bool(changes.uncompared.any()),
        parts=parts,
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
    spread = spread_of(each)
    answer = _answer(each, all_parts(each, spread), spread)
    if answer["change_j"] is None:
        return UNSET
    return schema.PerLaunch(**{name: answer[name] for name in schema.PerLaunch.__struct_fields__})


def _answer(changes: Changes, parts: list[schema.Part], spread: Spread) -> dict[str, Any]:
    """Field -> value, for the fields that `Document` and `AboveConstant` have in common, of the energy in `changes`."""
    change_j = change_share = greenup = interval_j = interval_share = None
    if changes.has_energy:
        old_j, new_j = (changes.compared_j(grid) for _, grid in changes.sides)
        change_j = math.fsum(part.change_j for part in parts)
        change_share, greenup = ratio(change_j, old_j), ratio(old_j, new_j)
        interval_j = spread.of_rows(np.arange(len(changes.matches)), change_j)
        interval_share = spread.of_share(change_share)
    whole, of_kernels = causes(changes, spread)
    return {
        "change_j": change_j,
        "interval_j": interval_j,
        "change_share": change_share,
        "interval_share": interval_share,
        "greenup": greenup,
        "steps": steps(parts, spread),
        "causes": whole,
        "marks": mark_names(changes.marks_of(slice(None))),
        "kernels": kernels(changes, spread, of_kernels),
    }


def _constant_range_j(side: Variant) -> schema.Range:
    """[low, high] J of a variant's constant energy: modelled times at the roofline's speed, and at the one assumed."""
    joules = known_or_zero(side.mean.joules[:, TIME])
    is_model = (side.mean.counted[:, TIME] & SIMULATED) != 0
    fastest = np.where(is_model, joules * (side.efficiency or 1.0), joules)
    return [math.fsum(fastest.tolist()), math.fsum(joules.tolist())]


def side_of(variant: Variant, compared_j: float | None, name: str) -> schema.Side:
    """The document's entry on OLD, or NEW. compared_j: the part of its energy that the other has, too, J."""
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
        schema.Costs(
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
        copies_s=gaps.copies_s or UNSET,
        still_s=(is_traced and gaps.still_s) or UNSET,
        still_j=(is_traced and gaps.time_s and gaps.energy_j and gaps.energy_j / gaps.time_s * gaps.still_s) or UNSET,
    )


def _timeless(side: schema.Side, of_rates: Sequence[str]) -> schema.Side:
    """OLD or NEW without times, where all is of one second."""
    if not of_rates:
        return side
    return replace(side, time_s=None, time_marks=["missing"], power_w=None, copies_s=UNSET, still_s=UNSET)


def _name(variant: Variant, folders: int = 0) -> str:
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
        both = zip((pair.old, pair.new), changes.sides, strict=True)
        old, new = (_on_side(changes, side, grid, row, own) for own, (side, grid) in both)
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


def _on_side(changes: Changes, side: Variant, grid: Grid, row: int, own: int | None) -> schema.KernelSide | None:
    """The kernel of the match `row` in OLD, or NEW, at the place `own` of its kernels; None where it has none."""
    if own is None:
        return None
    energy_j, marks = None, ["missing"]
    if side.costs is not None:
        energy_j, marks = known_sum(side.mean.joules[own]), MARK_WORDS[combined(side.mean.marks[own])]
    return schema.KernelSide(
        name=side.named[own].name,
        device=side.named[own].device,
        launches=side.named[own].launches,
        time_s=finite(grid.number[row, TIME]),
        energy_j=energy_j,
        compared_j=changes.known_j(grid, slice(row, row + 1)),
        marks=marks,
    )


def frame(changes: Changes) -> "pd.DataFrame":
    """The table of the CSV: a row for each part of each kernel's change, with both names, what, why, counts and joules.

    Words that were counted but have no energy to compare stand there too, without `change_j`.
    """
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for row, pair in enumerate(changes.matches):
        status = str(changes.statuses[row])
        names_of_both = [kernel and kernel.name for kernel in changes.kernels[row]]
        head = dict(zip(_NAMES, (*names_of_both, status, pair.how, pair.score), strict=True))
        parts = parts_of(changes, [row], None, status)
        for part in parts:
            rows.append(head | {key: getattr(part, key) for key in _PART} | {"marks": " ".join(part.marks)})
        words = {part.what for part in parts}
        for column, count in enumerate(COUNTS.values()):
            old, new = changes.old.number[row, column], changes.new.number[row, column]
            if count.name in words or (old == 0 and new == 0) or (math.isnan(old) and math.isnan(new)):
                continue
            marks = mark_names(int(changes.old.counted[row, column] | changes.new.counted[row, column]))
            counted = {"what": count.name, "kind": count.family, "unit": count.unit, "old": old, "new": new}
            rows.append(head | counted | {"marks": " ".join(marks)})
    # Object columns, because names in logs may hold what is no text to Arrow; numbers become numbers again.
    columns = {name: pd.Series([row.get(name) for row in rows], dtype=object) for name in (*_NAMES, *_PART, "marks")}
    return pd.DataFrame(columns).astype(dict.fromkeys(_NUMBERS, "float64"))

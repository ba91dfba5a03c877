"""The document `eprof.profile/1`: a priced profile as the structures of `schema.py` (docs/profile-json.md)."""

from collections.abc import Sequence
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from eprof import __version__
from eprof.base.arrays import finite, finite_all
from eprof.base.gpus import Traits
from eprof.base.optional import gathered, mapped, ratio
from eprof.base.vocabulary import (
    COUNTS,
    LEVEL_PARTS,
    MISSING,
    PAY_WHERE_PRICED,
    Mark,
    in_document,
    mark_names,
    marks_of_names,
)
from eprof.counts.definition import SHARES
from eprof.energy.time_by_component import components, gpu_at_setting, seconds, work_of
from eprof.logs.log import PARTS, RANK
from eprof.profile import causes, intervals, priced_profile, schema, whatif
from eprof.profile.functions import by_line, callers, inclusive, operators
from eprof.profile.grouping import shown, spread_of_ranks
from eprof.profile.priced_profile import ENERGIES, TOTAL, PricedProfile, sum_of_known
from eprof.profile.rooflines import dots_of, machine_data, machines, main_precision
from eprof.profile.to_meter import is_priced_by_counts
from eprof.profile.warnings import warnings_of
from eprof.profile.whatif_model import at_all_clocks

if TYPE_CHECKING:
    from eprof.counts.counts import Counts
    from eprof.energy.uncertainty import Replicas

T = TypeVar("T")
_MUCH = 2.0  # times the shortest launches of a kernel: runs that differ so much are told apart
_IMPLIED = {*LEVEL_PARTS, *PAY_WHERE_PRICED}
_WORDS = [mark_names(marks) for marks in range(16)]


def document(energy: PricedProfile) -> schema.Profile:
    """The document `eprof.profile/1` of a priced profile."""
    profile = energy.profile
    whole, place_of = energy.whole()
    refits = tuple(map(intervals.replicas, energy.each))
    sums = _sums(whole)
    sums["energy_j"].measured = energy.measured_j
    prices = [costs for gpu in whole.each if (costs := _costs(gpu, _whose(whole, gpu))) is not None]
    devices = []
    for counted in profile.counted:
        its, processor = counted.device, in_document(counted.definition.processor)
        told = its.told if its.told != Traits() else UNSET
        devices.append(schema.Device(its.name, its.index, its.capability, its.capability_from, processor, told))
    used = list(dict.fromkeys(counted.definition for counted in profile.counted))
    counts = {}
    for name, count in _Cells(whole).totals().items():
        ways = whole.counts.how.get(name, ())
        how = [schema.Derivation(way.formula, way.note, _WORDS[way.mark], way.kernels) for way in ways]
        counts[name] = schema.TotalCount(**msgspec.structs.asdict(count), how=how)
    modelled_time: schema.ModelledTime | UnsetType = UNSET
    run: schema.RunTimes | UnsetType = UNSET
    if energy.modelled is not None and not energy.modelled.shares_only:
        modelled_time = schema.ModelledTime(energy.modelled.efficiency, energy.modelled.given)
    if profile.run is not None:
        alone_s = profile.run.repeats_s and profile.run.alone_s
        times = profile.run.started_utc, profile.run.repeats, alone_s, alone_s and profile.run.used_s
        run = schema.RunTimes(*times)
    made = schema.Profile(
        eprof=__version__,
        title=profile.title,
        created_utc=schema.now(),
        command_line=list(profile.command_line),
        inputs=[msgspec.convert(log, schema.Input, from_attributes=True) for log in profile.logs],
        device=devices[0],
        devices=devices,
        definition=schema.Definition(
            ", ".join(definition.name for definition in used), " ".join(definition.source for definition in used)
        ),
        costs=next(iter(prices), None),
        costs_of_others=prices[1:] or UNSET,
        time_from=energy.time_from,
        left_out_s=(profile.run and profile.run.left_out_s) or UNSET,
        busy_cores=(profile.is_of_cpu and not energy.shares_socket and profile.cpu_use.cores) or UNSET,
        in_use=(profile.is_of_cpu and profile.cpu_use.told) or UNSET,
        modelled_time=modelled_time,
        counts=counts,
        warnings=warnings_of(energy),
        kernels=_with_lines(_in_places(whole, list(map(_kernels, whole.each, refits))), energy),
        commit=mapped(attrgetter("commit"), profile.run) or UNSET,
        run=run,
        causes=causes.causes_of_energy(whole, refits),
        to_meter=_to_meter(whole),
        gaps=gaps_of(whole),
        operators=operators(energy, place_of) or UNSET,
        **sums,
        **_groups(energy, place_of, refits),
        **_modelled(whole, refits),
    )
    if energy.metered is not None:
        _without_bounds(made)
    return made


def _in_places(energy: PricedProfile, of_gpus: Sequence[list[T]]) -> list[T]:
    """Merge lists, one for each GPU with an entry a kernel, into one list in the order of the document's kernels."""
    if len(of_gpus) == 1:
        return of_gpus[0]
    placed: dict[int, T] = {}
    for gpu, of_kernels in zip(energy.gpus, of_gpus, strict=True):
        placed |= dict(zip(energy.places_of(gpu).tolist(), of_kernels, strict=True))
    return [placed[place] for place in range(len(placed))]


def _sums(energy: PricedProfile, lost: int = 0) -> dict[str, Any]:
    """Fields that a document has of all kernels and of a group: launches, time, power, energy, intensity, their marks.

    lost: MISSING if kernels may be missing from the sums.
    """
    joules, time_s = priced_profile.joules_of(energy), priced_profile.time_of(energy)
    marks = {family: _WORDS[mark | lost] for family, mark in priced_profile.joule_marks_of(energy).items()}
    is_whole = energy.is_timed and not lost
    return {
        "launches": int(energy.counts.rows.launches.sum()),
        "time_s": time_s,
        "time_marks": _WORDS[priced_profile.time_marks_of(energy) | lost],
        "power_w": mapped(energy.profile.at_once.__mul__, ratio(joules[TOTAL], time_s)) if is_whole else None,
        "energy_j": schema.RunJoules(**joules),
        "energy_marks": schema.JouleMarks(**marks),
        "intensity_flop_per_byte": priced_profile.intensity_of_all(energy),
        "marks": marks[TOTAL],
    }


def _whose(energy: PricedProfile, gpu: PricedProfile) -> list[str | None] | UnsetType:
    """The labels of the devices that a GPU's prices are for; UNSET where all devices have the same prices."""
    return [part.device.label for part in gpu.profile.counted] if energy.gpus else UNSET


def _costs(energy: PricedProfile, whose: list[str | None] | UnsetType) -> schema.TableInForce | None:
    """The cost table of a GPU for the document, at its setting; None: nothing is priced. whose: as `_whose`."""
    costs = energy.costs
    if costs is None or energy.split is None:
        return None
    table, profile = energy.table, energy.profile
    # Those that cost tables may leave out only if they are in the document.
    charges = {
        name: schema.Charge(charge.pays, charge.pj, charge.formula, charge.why, _WORDS[charge.marks])
        for name, charge in costs.charges.items()
        if name not in _IMPLIED or name in energy.listed
    }
    made = schema.TableInForce(
        name=costs.name,
        device=costs.device,
        source=costs.source,
        basis=costs.basis,
        interval_is=mapped(attrgetter("interval_is"), table),
        books=costs.books,
        setting=costs.setting_data,
        setting_from=costs.setting_from,
        constant_power_w=costs.constant_power_w,
        constant_why=costs.constant_why,
        charges=charges,
        marks=_WORDS[costs.marks],
        notes=list(costs.notes),
        held=energy.split.held_together,
        of=whose,
    )
    if table is not None:
        if not all(table.is_for(part.device.name or "") for part in profile.counted):
            made.gpu_match = "similar" if profile.is_served_by(table) else "other"
        if table.constant.cores and profile.cpu_use.cores and energy.shares_socket:
            made.cores = schema.Cores(profile.cpu_use.cores, table.constant.cores)
        if table.fit.data:
            made.fit = {key: value for key, value in table.fit.data.items() if key != "replicas"}
    return made


def _to_meter(energy: PricedProfile) -> schema.ToMeter | UnsetType:
    """How the prices were scaled to a meter's joules, for the document; UNSET where they were not."""
    scaling = energy.metered
    table = energy.table
    if scaling is None or table is None:
        return UNSET
    return schema.ToMeter(
        metered_j=scaling.meter.joules,
        source=scaling.meter.source,
        shape=table.name,
        own=energy.profile.is_served_by(table),
        basis=table.basis,
        factor=scaling.factor,
        modelled_j=scaling.modelled_j,
        idle_s=scaling.idle_s,
        idle_j=scaling.idle_j,
        within=scaling.within,
    )


def gaps_of(energy: PricedProfile) -> schema.Gaps | UnsetType:
    """How long no kernel ran and copies took, for the document; UNSET where the logs do not tell."""
    idle, copies_s = energy.profile.idle, energy.profile.copies_s
    overlaps = energy.profile.at_once > 1
    if not (copies_s or energy.profile.copies or overlaps or idle and (idle.time_s or idle.before_s)):
        return UNSET
    runs = max((log.runs for log in energy.profile.logs if log.copies_s), default=1)
    gaps = schema.Gaps(None, None, copies_s, runs=runs)
    if idle is not None:
        gaps = msgspec.convert(idle, schema.Gaps, from_attributes=True)
        watts = [gpu.costs.constant_power_w for gpu in energy.each if gpu.costs is not None]
        # By time alone, power between kernels is not told apart from that in them.
        if watts and (energy.metered is None or is_priced_by_counts(energy)):
            gaps.energy_j = idle.time_s * energy.profile.at_once * sum(watts)
    gaps.at_once = energy.profile.at_once
    gaps.copies = list(energy.profile.copies)
    return gaps


class _Cells:
    """A document's counts, with energies and marks, as arrays (n_kernels, n_listed): pandas is slow cell by cell."""

    def __init__(self, energy: PricedProfile, lost: int = 0) -> None:
        self.names = list(energy.listed)
        self.rows = len(energy.counts.rows)
        unit_of = {name: COUNTS[name].unit for name in self.names} | dict.fromkeys(energy.counts.in_flops, "flop")
        self.units = [unit_of[name] for name in self.names]
        self.values = energy.counts.amounts.only(self.names)
        self.marks = energy.counts.amount_marks.only(self.names) | lost
        self.is_bound = ((self.marks & MISSING) != 0) & ~np.isnan(self.values)
        self.joules = np.full_like(self.values, np.nan)
        self.pays = np.zeros(len(self.names), dtype=bool)
        if energy.split is not None:
            priced = [name in energy.split.joules for name in self.names]
            self.joules[:, priced] = energy.split.joules.only(self.names)
            self.marks[:, priced] |= energy.split.joule_marks.only(self.names)
            paying = energy.paying
            self.pays = np.array([name in paying for name in self.names], dtype=bool)

    def by_kernel(self) -> list[dict[str, schema.Count]]:
        """The counts of each kernel in the document: those counted, and those that are priced but missing."""
        of_rows: list[dict[str, schema.Count]] = [{} for _ in range(self.rows)]
        for place, (name, unit) in enumerate(zip(self.names, self.units, strict=True)):
            values, marks = self.values[:, place], self.marks[:, place]
            is_lost = self.pays[place] & ((marks & MISSING) != 0)
            cells = zip(
                of_rows,
                (~np.isnan(values) | is_lost).tolist(),
                finite_all(values),
                finite_all(self.joules[:, place]),
                marks.tolist(),
                self.is_bound[:, place].tolist(),
                strict=True,
            )
            for counts, is_listed, value, joules, mark, is_bound in cells:
                if is_listed:
                    counts[name] = schema.Count(
                        value=value,
                        unit=unit,
                        energy_j=joules,
                        marks=_WORDS[mark],
                        lower_bound=is_bound or UNSET,
                    )
        return of_rows

    def totals(self) -> dict[str, schema.Count]:
        """Each count of all kernels together in the document."""
        marks = np.bitwise_or.reduce(self.marks, axis=0).tolist()
        is_bound = self.is_bound.any(axis=0).tolist()
        return {
            name: schema.Count(
                value=sum_of_known(self.values[:, place]),
                unit=self.units[place],
                energy_j=sum_of_known(self.joules[:, place]),
                marks=_WORDS[marks[place]],
                lower_bound=is_bound[place] or UNSET,
            )
            for place, name in enumerate(self.names)
        }


def _kernels(energy: PricedProfile, replicas: "Replicas | None") -> list[schema.Kernel]:
    """The kernels of a GPU in the document. Columns become lists once, so that 5,000 kernels take a moment only."""
    rows = energy.sums()
    marks = [_joule_marks(*[MISSING] * len(ENERGIES))] * len(energy.counts.rows)
    if energy.split is not None:
        marks = [_joule_marks(*of_families) for of_families in energy.split.family_marks.values.tolist()]
    joules = zip(*(finite_all(rows[f"{family}_j"]) for family in ENERGIES), strict=True)
    columns = {
        "name": rows["kernel"].tolist(),
        "device": rows["device"].tolist(),
        "launches": rows["launches"].tolist(),
        "time_s": finite_all(rows["time_s"]),
        "time_marks": [_WORDS[mark] for mark in priced_profile.kernel_time_marks(energy).tolist()],
        "power_w": finite_all(rows["power_w"]),
        "counts": _Cells(energy).by_kernel(),
        "energy_j": [schema.RunJoules(*families) for families in joules],
        "energy_marks": marks,
        "interval_j": intervals.of_kernels(energy, replicas),
        "intensity_flop_per_byte": finite_all(rows["intensity_flop_per_byte"]),
        "causes": causes.causes_of_kernels(energy, replicas),
        "marks": [families.total for families in marks],
    }
    columns["signs"] = _signs(energy.counts)
    profile = energy.profile
    is_alone = len(profile.logs) == len({*columns["device"]}) == 1
    if is_alone and profile.parts is None and not profile.has_given_time:  # its times are those of the kernels
        by_shape = profile.logs[0].by_shape
        columns["by_shape"] = [by_shape.get(name, UNSET) for name in columns["name"]]
    least_s, most_s = energy.counts.rows.least_s, energy.counts.rows.most_s
    if least_s is not None and most_s is not None:
        spans = zip(least_s.tolist(), most_s.tolist(), strict=True)
        columns["launch_s"] = [[least, most] if most >= _MUCH * least > 0 else UNSET for least, most in spans]
    if energy.split is not None and energy.split.over_j.any():
        columns["held"] = [factor if factor < 1 else UNSET for factor in energy.split.held.tolist()]
    if energy.metered is not None:
        columns["by_time_j"] = finite_all(energy.metered.by_time_j(energy.counts.rows.time_s))
    if (with_callees := inclusive(energy)) is not None:
        columns["inclusive_j"] = finite_all(with_callees.energy_j)
        columns["inclusive_above_j"] = finite_all(with_callees.above_j)
        columns["inclusive_marks"] = [_WORDS[mark] for mark in with_callees.marks.tolist()]
    return [schema.Kernel(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]


def _signs(counts: "Counts") -> list[dict[str, float] | UnsetType]:
    """For each kernel a dict of shares that tell why it waits, and of the shape of its launches; UNSET: none known."""
    if counts.shape is None:
        return [UNSET] * len(counts.rows)
    shape, launches = counts.shape, counts.rows.launches
    with np.errstate(divide="ignore", invalid="ignore"):
        conflicts = shape["conflicts"] / (shape["conflicts"] + shape["shared"])
    shares = {name: shape[name] / launches for name in ("occupancy", *SHARES, "blocks", "threads", "multiprocessors")}
    shares["bank_conflict"] = np.where(np.isnan(conflicts), shares["bank_conflict"], conflicts)
    rows = zip(*(finite_all(values) for values in shares.values()), strict=True)
    told = [{name: share for name, share in zip(shares, row, strict=True) if share is not None} for row in rows]
    return [signs or UNSET for signs in told]


def _with_lines(kernels: list[schema.Kernel], energy: PricedProfile) -> list[schema.Kernel]:
    """The same kernels, to which source lines, largest energy first, and callers were added where logs tell them."""
    own_callers = callers(energy)
    for made in kernels:
        made.callers = own_callers.get(made.name, UNSET)
    lines = by_line(energy)
    if lines is None or lines.split is None or lines.counts.rows.part is None:
        return kernels
    above_j = np.nan_to_num(lines.split.computation_j) + np.nan_to_num(lines.split.data_j)
    rows = zip(
        lines.counts.rows.kernel.tolist(),
        lines.counts.rows.part.tolist(),
        finite_all(above_j),
        _Cells(lines).by_kernel(),
        strict=True,
    )
    largest_first = sorted(rows, key=lambda row: -(row[2] or 0.0))
    of_kernel = gathered((kernel, schema.Line(*line)) for kernel, *line in largest_first)
    for made in kernels:
        made.lines = of_kernel.get(made.name) or UNSET
    return kernels


@cache
def _joule_marks(*marks: int) -> schema.JouleMarks:
    """The marks of each of `ENERGIES` in words. Thousands of kernels share a few of these."""
    return schema.JouleMarks(*(_WORDS[mark] for mark in marks))


def _without_bounds(made: schema.Profile) -> None:
    """Change MISSING to ESTIMATED in a metered document: the factor gave to all kernels what was not counted."""
    for entry in (made, *made.kernels, *(made.groups or ())):
        marks = {family: _estimated(words) for family, words in msgspec.structs.asdict(entry.energy_marks).items()}
        entry.energy_marks = schema.JouleMarks(**marks)
        entry.marks = entry.energy_marks.total
    for kernel in made.kernels:
        if kernel.inclusive_marks is not UNSET:
            kernel.inclusive_marks = _estimated(kernel.inclusive_marks)
    for modelled in (*(made.what_if or ()), *filter(None, [made.clocks])):
        modelled.marks = _estimated(modelled.marks)


def _estimated(words: list[str]) -> list[str]:
    """Marks in words, with "estimated" in the place of "missing"."""
    mark = marks_of_names(words)
    if mark & Mark.MISSING:
        mark = mark & ~Mark.MISSING | Mark.ESTIMATED
    return _WORDS[mark]


def _groups(energy: PricedProfile, place_of: np.ndarray, refits: intervals.Refits) -> dict[str, Any]:
    """The document's fields on groups (`--group`); {} without. place_of: the place of each row's kernel in it."""
    grouping = energy.grouping
    if grouping is None:
        return {}
    members = grouping.members(energy.counts.rows)
    made: dict[str, Any] = {"grouped": grouping.how, "groups": []}
    for part in shown(members, energy.weights):
        # Some of what no log tells the part of may belong to any of the others.
        is_bound = grouping.by in PARTS and grouping.untold in members and part.name != grouping.untold
        lost, of_part = MISSING * is_bound, energy.only(part.places)
        group = schema.Group(
            name=part.name,
            kernels=np.unique(place_of[part.places]).tolist(),
            counts=_Cells(of_part, lost).totals(),
            interval_j=intervals.of_total(of_part, refits, lost),
            stands_for=part.stands_for if part.stands_for > 1 else UNSET,
            causes=causes.causes_of_energy(of_part, refits),
            **_sums(of_part, lost),
        )
        made["groups"].append(group)
    if grouping.by == RANK:
        made["ranks"] = spread_of_ranks(members, energy.counts, energy.split)
    return made


def _modelled(energy: PricedProfile, refits: intervals.Refits) -> dict[str, Any]:
    """The document's fields that rest on models: limits, cycles, intervals, clocks, what-if answers; {}: no prices."""
    if energy.split is None:
        return {}
    answers = [whatif.ask(energy, question) for question in energy.questions]
    usual = [answer for answer in whatif.usual(energy) if answer.question not in energy.questions]
    models = {
        "limits": _limits(energy),
        "time_components": _time_components(energy),
        "interval_j": intervals.of_whole(energy, refits),
        "clocks": at_all_clocks(energy),
        "what_if": [_answer(answer, is_asked=True) for answer in answers] + [_answer(answer) for answer in usual],
    }
    return {name: model for name, model in models.items() if model}


def _limits(energy: PricedProfile) -> schema.Limits | None:
    """The machines and how far each kernel is from its GPU's lines; None: a GPU has no prices, or none has peaks."""
    known: list[schema.Machine] = []
    rows: list[list[dict[str, Any]]] = []
    for gpu in energy.each:
        if gpu.costs is None or gpu.split is None:
            return None
        precision = main_precision(gpu.counts.amounts)
        of_gpu = sorted(machines(gpu.costs), key=lambda machine: machine.precision != precision)
        for machine in of_gpu:
            known.append(msgspec.convert(machine_data(machine), schema.Machine))
            known[-1].of = _whose(energy, gpu)
        rows.append(dots_of(gpu.counts, gpu.costs, gpu.split).rows())
    if not known:
        return None
    return schema.Limits(known, msgspec.convert(_in_places(energy, rows), list[schema.Limit]))


def _answer(answer: whatif.Answer, is_asked: bool = False) -> schema.Answer:
    return schema.Answer(
        question=answer.question,
        says=answer.says,
        assumes=answer.assumes,
        modelled=True,
        energy_j=schema.Joules(**answer.energy_j),
        time_s=answer.time_s,
        change_j=answer.change_j,
        change_share=answer.change_share,
        time_share=answer.time_share,
        marks=_WORDS[answer.marks],
        asked=is_asked,
    )


def _time_components(energy: PricedProfile) -> schema.TimeComponents | None:
    """The cycles of each kernel by component; None unless `by_component` was asked and the costs describe the GPU."""
    if energy.costs is None or not energy.by_component:
        return None
    machine = gpu_at_setting(energy.costs)
    if machine is None:
        return None
    units = machine.units
    of_launch = components(work_of(energy.counts, machine), machine)
    launches = energy.counts.rows.launches
    time_s = seconds(of_launch, machine, launches)
    cycles = of_launch.cycles.values * launches[:, None]
    columns = (of_launch.active_warps.tolist(), of_launch.rounds.tolist(), map(list, of_launch.missing))
    kernels = [schema.KernelCycles(None, {}, *row) for row in zip(*columns, strict=True)]
    for row in np.flatnonzero(time_s > 0):
        kernels[row].time_s = finite(time_s[row])
        kernels[row].cycles = dict(zip(of_launch.cycles.names, cycles[row].tolist(), strict=True))
    return schema.TimeComponents(
        device=energy.costs.device,
        core_mhz=machine.core_hz / 1e6,
        source=units.source,
        assumes=units.why,
        marks=mark_names(units.marks | Mark.ESTIMATED),
        kernels=kernels,
    )

"""A priced profile scaled to metered joules: what a meter saw of it, the table for the split's shape, the result."""

from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from eprof.base.errors import MeterError, UsageError
from eprof.base.gpus import capability_of_label, data_sheet, most_w, power_limit_w, sheets_with
from eprof.base.optional import mapped
from eprof.base.text import capital, counted, few
from eprof.base.vocabulary import COUNTS
from eprof.costs import CostTable, Scale
from eprof.costs.estimate import estimated, of_capability, parsed
from eprof.energy import meter_factor
from eprof.energy.meter_factor import Meter, Metered
from eprof.profile.counted_profile import CountedProfile
from eprof.profile.priced_profile import PricedProfile

E = TypeVar("E", bound=PricedProfile)
GIVEN = "--energy"
BY_TIME = "time-alone"
_BY_TIME = f"""
schema = 1
name = "{BY_TIME}"
device = "any processor"
source = "no prices: a meter's joules are shared out by time"
books = "accessed"
notes = ["Joules are split by time alone, for nothing counted has a price: on four GPUs that is 11 to 26 % off."]
[pj]
[constant_power]
w = 1.0
why = "the mean power that the meter saw"
mark = "estimated"
[charge]
""" + "".join(f'{word} = {{ nothing = "energy is split by time alone" }}\n' for word in COUNTS)
_MOST_W = 1500.0


def meter_of(profile: CountedProfile, metered_j: float | None) -> Meter:
    """What a meter saw of the profiled run: `metered_j` if the user gives it, else what the run directory holds.

    Raises MeterError: there is none, or it is not of these kernels alone.
    """
    why = ""
    if not profile.whole or (profile.run is not None and not profile.run.whole):
        nouns = profile.nouns
        why = f"only some of its {nouns.kernels} are looked at (-k, or {nouns.launches} that were left out)"
    elif len(profile.counted) > 1:
        why = f"the logs are of {len(profile.counted)} devices"
    if metered_j is not None:
        if why:
            raise MeterError(f"{GIVEN} is of a whole run on one {profile.nouns.processor}, but {why}.")
        return Meter(meter_factor.checked(metered_j), GIVEN)

    measured = profile.measured
    if measured is None and profile.metered:
        why = why or f"a meter saw only some of its {profile.nouns.kernels}"
    if measured is None:
        raise MeterError(
            f"--to-meter: {why or 'no meter was read in this run'}; say what a meter saw of the whole run, such as "
            f"{GIVEN} 812J (eprof diff: --old-energy and --new-energy)."
        )
    own_boards = 0 if profile.is_of_cpu else 1
    if why or measured.boards not in (None, own_boards):
        why = why or f"the meter covers {measured.covers}"
        raise MeterError(f"--to-meter: {why}: the joules are not this {profile.nouns.processor}'s.")
    source = measured.method
    if measured.runs:
        source = f"the meter ({measured.method}, {counted(measured.runs, 'run')})"
    return Meter(measured.joules, source, measured.seconds)


def shape_of(profile: CountedProfile, meter: Meter) -> CostTable:
    """The cost table whose prices a meter is to scale, for a GPU that no table is made for: the estimated one.

    Where the logs tell of the board what few of its compute capability have, it is estimated as these. Without a data
    sheet, constant power is taken to be half of the mean power that the meter saw: for the split of the four GPUs of
    docs/studies/power that is as good. Where the logs do not name the GPU, time alone gives the shape.
    Raises MeterError: no GPU draws this power.
    """
    device = profile.counted[0].device
    name = device.name
    if profile.is_of_cpu:
        raise MeterError("No CPU's prices can be estimated; say with --costs which table gives the shape of the split.")
    if name is None:
        return by_time()
    if device.capability is not None and capability_of_label(name) is not None:
        alike = sheets_with(device.capability, device.told)
        if len(alike) < len(sheets_with(device.capability)):
            return of_capability(device.capability, name, device.told)
    kernels_s = float(np.nansum(profile.counts().rows.time_s))
    whole_s = max(meter.duration_s or 0.0, kernels_s)
    if data_sheet(name) is not None or not whole_s > 0:
        return estimated(name)
    mean_w = meter.joules / whole_s
    if mean_w > _MOST_W:
        raise MeterError(
            f"The {meter.joules:.4g} J of {meter.source} over {whole_s:.4g} s are {mean_w:.4g} W, which no GPU board "
            f"draws. {meter_factor.what_to_check(meter)}"
        )
    guess = "half of the mean power that the meter saw, as no data sheet of this GPU is known"
    return estimated(name, idle_w=mean_w / 2, idle_from=guess)


def by_time() -> CostTable:
    """A cost table without prices, whose constant power the meter gives: energy is then split by time alone."""
    return parsed(_BY_TIME)


def held_to(energy: E, meter: Meter) -> E:
    """The priced profile with all prices and constant power times the factor that makes its total what the meter saw.

    Raises MeterError: the joules cannot be those of these kernels. UsageError: no cost table gives the shape.
    """
    costs = energy.costs
    table = energy.table
    if costs is None or table is None:
        raise UsageError("--to-meter needs a cost table for the shape of the split; name one with --costs.")
    if energy.total_s is not None:
        raise MeterError(
            f"Metered energy cannot be split: only the time of all {energy.counts.nouns.kernels} together is known; "
            "give a trace along with the log, or --time KERNEL=TIME."
        )
    if not is_priced_by_counts(energy):
        return _split_by_time(energy, meter)
    is_own = energy.profile.is_served_by(table)
    least = meter_factor.LEAST
    if energy.profile.is_of_cpu and not is_own:
        least = meter_factor.LEAST_OF_CPUS
    limit_w, board_w = _limits(energy.profile)
    scaling = meter_factor.metered(energy.counts, costs, meter, is_own, limit_w, least, most_w=board_w)
    if is_own and table.within > 1 and scaling.limit_w is None:
        scaling = replace(scaling, within=table.within)
    # How well a fit knows one GPU says nothing of another.
    replicas = () if energy.profile.is_named_otherwise(table) else table.replicas(costs.setting.clocks)
    metered = replace(energy, metered=scaling)
    factors = meter_factor.factors(energy.counts, replicas, scaling, metered.limits)
    scale = Scale(scaling.factor, factors)
    assumed = tuple(note.replace(meter_factor.SAME, meter_factor.PROPORTIONAL) for note in costs.notes)
    scaled = replace(costs.scaled(scaling.factor), notes=assumed)
    held = metered.priced(scaled)
    if scaling.limit_w is not None and held.split is not None:
        split = held.split.adding_up_to(scaling.by_time_j(held.counts.rows.time_s))
        held = replace(held, split=split)
    return replace(held, table=replace(table, scale=scale), notes=(*energy.notes, *_notes(held, scaling)))


def _limits(profile: CountedProfile) -> tuple[float | None, float | None]:
    """The limit of the profile's board in W, and the most that owners and partners may have set; None: not known."""
    name = profile.counted[0].device.name
    return profile.limit_w or mapped(power_limit_w, name), profile.limit_w or mapped(most_w, name)


def is_priced_by_counts(energy: PricedProfile) -> bool:
    """Whether anything beside time was counted and has a price, so that counts can split what a meter saw."""
    split = energy.split
    return split is not None and bool(np.nansum(split.total_j) > np.nansum(split.constant_j))


def _split_by_time(energy: E, meter: Meter) -> E:
    """The priced profile whose kernels share the metered joules by their times alone."""
    table = by_time()
    limit_w, board_w = _limits(energy.profile)
    counts = energy.profile.counts("accessed")
    scaling = meter_factor.metered(counts, table.at(), meter, limit_w=limit_w, least=0.0, most=_MOST_W, most_w=board_w)
    scaling = replace(scaling, within=meter_factor.WITHIN_BY_TIME, limit_w=None)
    costs = table.at().scaled(scaling.factor)
    notes = (*energy.notes, *_notes(energy, scaling))
    shared = replace(energy, counts=counts, metered=scaling).priced(costs)
    return replace(shared, table=replace(table, scale=Scale(scaling.factor)), notes=notes)


def _notes(energy: PricedProfile, scaling: Metered) -> list[str]:
    """Notes on a split of metered joules: kernels at power limits, idle time not told, overlaps, work not counted."""
    notes = []
    kernels = energy.counts.nouns.kernels
    if scaling.limit_w is not None:
        notes.append(
            f"The mean power is at the {scaling.limit_w:g} W that this board may draw: there the clock gives way until "
            f"every {energy.counts.nouns.kernel} draws the same. {capital(kernels)} have their shares of time; prices "
            "split each of them."
        )
    elif energy.split is not None and (energy.split.over_j > 0).any():
        held = energy.counts.rows.kernel[energy.split.over_j > 0].tolist()
        notes.append(f"{few(held, 2)}: held at what the board may draw, and the factor gives the others the rest.")
    if scaling.idle_s is None:
        notes.append(f"{GIVEN} says nothing of idle time: all of it is split over the {kernels}.")
    kernels_s = float(energy.counts.rows.time_s.sum())
    if scaling.meter.duration_s is not None and kernels_s > 1.05 * scaling.meter.duration_s:
        notes.append(
            f"The {kernels}' times add up to {kernels_s:.4g} s, more than the {scaling.meter.duration_s:.4g} s that "
            "were metered: they overlap, or were timed in a slower run. No idle time is taken off."
        )
    if energy.lacks_some and is_priced_by_counts(energy):
        notes.append(
            "Some work has no count or no price. The metered total is complete, but the factor shares what is missing "
            f"out over all {kernels}: what a {energy.counts.nouns.kernel} is shown to take can be too much or too "
            "little."
        )
    return notes

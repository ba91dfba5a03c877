"""The model behind what-if: a priced profile with other counts, prices, clocks or times, and what it then takes.

What-if questions, `eprof tune` and the map of energy and time at all clocks that a table knows change the same values
in the same way, so that they agree.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs
from msgspec.structs import replace

from eprof.base.arrays import Floats, known_or_zero
from eprof.base.errors import CostError, UsageError
from eprof.base.optional import mapped
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, MISSING, Mark, mark_names
from eprof.costs import Costs, CostTable, Peaks
from eprof.counts.counts import Counts
from eprof.energy.attribution import Limits
from eprof.energy.clocks import with_cycles
from eprof.energy.modelled_time import UNDER_THE_ROOF, at_peaks, has_modelled_time, highest_s, under_the_roof
from eprof.energy.time_at_clocks import time_model_of
from eprof.profile import schema
from eprof.profile.priced_profile import PricedProfile
from eprof.profile.rooflines import has_tensor_work, traffic_of

SHARE = "each {} keeps its share of the roofline's speed"
AT_CLOCKS = "DRAM traffic goes with the memory clock, the rest of the time with the core clock"
HALVES = "half of the time goes with each clock, a guess: no peak bandwidth is known"


class Work(Struct, frozen=True, eq=False, dict=True):
    """The counts of a what-if scenario's kernels, with the sums that every price needs worked out once.

    together: the kernels whose time is known only as one sum, if there are some. Arrays "of each time", (n_times,),
    have an entry a kernel, and then one for `together`, as if these were one kernel. idle_before: kernels without flops
    and DRAM bytes in the logs, where a question changed the counts since. held: the factor by which boards' power
    limits cut the energy of each kernel but constant, (n_kernels,).
    """

    counts: Counts
    held: Floats
    together: npt.NDArray[np.bool_] | None = None
    idle_before: npt.NDArray[np.bool_] | None = None

    def of_each_time(self, of_kernels: Floats) -> Floats:
        """Append the sum over the kernels whose time is known together only, if any: (n_kernels,) -> (n_times,)."""
        if self.together is None:
            return of_kernels
        return np.append(of_kernels, of_kernels[self.together].sum())

    @cached_property
    def sums(self) -> dict[str, tuple[float, int]]:
        """Word -> the amount over all kernels, cut as power limits cut energy (NaN: not known), and its marks."""
        values = self.counts.amounts.values * self.held[:, np.newaxis]
        known = ~np.isnan(values)
        whole = np.where(known.any(axis=0), np.where(known, values, 0.0).sum(axis=0), np.nan)
        marks = np.bitwise_or.reduce(self.counts.amount_marks.values, axis=0)
        pairs = zip(whole.tolist(), marks.tolist(), strict=True)
        return dict(zip(self.counts.amounts.names, pairs, strict=True))

    @cached_property
    def dram_byte(self) -> Floats:
        """DRAM bytes of each time in a what-if question; NaN where reads or writes are not known."""
        return self.of_each_time(traffic_of(self.counts.amounts))

    @cached_property
    def is_modelled(self) -> npt.NDArray[np.bool_]:
        """True for times that are modelled by the roofline, and keep their share of it at other clocks."""
        return np.asarray(self.of_each_time(has_modelled_time(self.counts).astype(np.float64)) > 0)

    @cached_property
    def under_the_roof(self) -> dict[str, Floats]:
        """Each kernel's "fp32" and "fp64" flops and "dram" bytes, (n_kernels,), which bound its time; 0: not known."""
        return under_the_roof(self.counts.amounts, self.counts.in_flops)

    def roof_s(self, peaks: Peaks) -> Floats:
        """The roofline's time in s for each time, (n_times,): 0 without FLOP and DRAM bytes, NaN where not known.

        NaN: a peak is not known, as of kernels with work of tensor cores, whose peaks no table has.
        """
        roof = np.where(self.on_tensor_cores, np.nan, highest_s(at_peaks(self.under_the_roof, peaks)))
        if self.together is None:
            return roof
        # What is under the roof of some of them only says nothing of the time that all took.
        return self.of_each_time(np.where(self.together & (self.uncounted | self.idle), np.nan, roof))

    @property
    def idle(self) -> npt.NDArray[np.bool_]:
        """True for kernels without flops and DRAM bytes in the logs, (n_kernels,); a question's zeros do not count."""
        if self.idle_before is not None:
            return self.idle_before
        return np.asarray(sum(self.under_the_roof.values()) == 0)

    @cached_property
    def on_tensor_cores(self) -> npt.NDArray[np.bool_]:
        """Which kernels tensor cores worked for, (n_kernels,)."""
        return has_tensor_work(self.counts.amounts)

    @cached_property
    def uncounted(self) -> npt.NDArray[np.bool_]:
        """True for kernels some of whose flops or DRAM bytes were not counted, (n_kernels,)."""
        marks = self.counts.amount_marks.only(UNDER_THE_ROOF)
        return np.asarray((marks & MISSING).any(axis=1))


class Scenario(Struct, frozen=True, eq=False):
    """A priced profile that may be changed: the counts and times (s, NaN = not known) of its kernels, and its costs.

    time_s: (n_times,), as `Work` has them. time_marks: of all times together. limits: what the boards may draw, of each
    time. free: the words that cost nothing, whatever `costs` says.
    """

    work: Work
    time_s: Floats
    time_marks: int
    costs: Costs
    table: CostTable | None
    limits: Limits
    free: frozenset[str] = frozenset()

    @property
    def charged(self) -> Costs:
        """The costs of a what-if scenario, at price 0 for what is free there."""
        if not self.free:
            return self.costs
        free = {word: replace(self.costs.charges[word], pj=0.0) for word in self.free & self.costs.charges.keys()}
        return replace(self.costs, charges={**self.costs.charges, **free})

    def roof_s(self) -> Floats:
        """The roofline's time in s at the scenario's costs, (n_times,), as `Work.roof_s`."""
        return self.work.roof_s(self.costs.peaks_as_run)

    @property
    def work_j(self) -> Floats:
        """The known J of all but constant power in each time of a what-if scenario, (n_times,)."""
        amounts, charges = self.work.counts.amounts, self.charged.charges
        pj = np.array([charges[word].pj if word in charges and charges[word].pays else 0.0 for word in amounts.names])
        return self.work.of_each_time(known_or_zero(amounts.values) @ pj * 1e-12 * self.work.held)

    @property
    def noun(self) -> str:
        """The word for one of a what-if scenario's kernels."""
        return self.work.counts.nouns.kernel

    @property
    def known_s(self) -> npt.NDArray[np.bool_]:
        """True for each time that is known, (n_times,), and for kernels whose time is in that of all together."""
        known = ~np.isnan(self.time_s)
        if self.work.together is not None:
            known |= np.append(self.work.together, False)
        return known

    def taking(self, time_s: Floats, clock_ratio: float = 1.0) -> "Scenario":
        """The scenario's work in other times, (n_times,): active cycles follow time and core clock, all else stays.

        clock_ratio: the core clock there over that of the scenario.
        """
        factors = clock_ratio * time_s / np.where(self.time_s > 0, self.time_s, np.nan)
        of_kernels = factors[: len(self.work.counts.rows)]
        if self.work.together is not None:
            of_kernels = np.where(self.work.together, factors[-1], of_kernels)
        counts = with_cycles(self.work.counts, np.where(np.isnan(of_kernels), 1.0, of_kernels))
        return replace(self, time_s=time_s, work=replace(self.work, counts=counts))

    def taken_at(self, core_mhz: float, memory_mhz: float) -> "Scenario":
        """The scenario with its times taken to be those at these clocks."""
        setting = replace(self.costs.setting, core_mhz=core_mhz, memory_mhz=memory_mhz)
        return replace(self, costs=replace(self.costs, setting=setting))

    def below_limits(self) -> "Scenario":
        """The scenario with times long enough for its power to stay below the boards' limits; itself where it does.

        A board that is held back lowers its clocks: the cycles stay.
        """
        slowed_s = self.limits.slowed_s(self.work_j, self.costs.constant_power_w, self.time_s)
        if np.array_equal(slowed_s, self.time_s, equal_nan=True):
            return self
        return replace(self, time_s=slowed_s)


class Totals(Struct, frozen=True):
    """The energy by family (J) and time (s) of all kernels of a what-if scenario; None = not known.

    lacks: the words of which some energy is not known, and the places of the times that are not.
    """

    parts: Mapping[str, float | None]
    time_s: float | None
    marks: Mark
    lacks: frozenset[str | int]


def totals(scenario: Scenario) -> Totals:
    """Price a what-if scenario as a whole, as `attribute` does it, which is linear: counts are added up first."""
    known: dict[str, list[float]] = {COMPUTATION: [], DATA: []}
    lost, marks, charges = dict.fromkeys(known, False), 0, scenario.charged.charges
    lacks: set[str | int] = set(np.flatnonzero(~scenario.known_s).tolist())
    marks |= MISSING * bool(lacks)
    for word, (value, word_marks) in scenario.work.sums.items():
        family, charge = COUNTS[word].family, charges.get(word)
        pays = charge is not None and charge.pays
        if (pays and word_marks & Mark.MISSING) or (charge is None and value > 0):
            lacks.add(word)
            marks |= MISSING
        if np.isnan(value) or charge is None:
            lost[family] |= word in lacks
        elif not pays:
            known[family].append(0.0)
        else:
            known[family].append(value * charge.pj * 1e-12)
            marks |= word_marks | int(charge.marks) * bool(value)
    parts = {family: _sum_known(known[family], lost[family]) for family in known}
    time_s = _sum_known(scenario.time_s[~np.isnan(scenario.time_s)].tolist(), False)
    constant = mapped(scenario.costs.constant_power_w.__mul__, time_s)
    marks |= scenario.time_marks | int(scenario.costs.constant_marks)
    everything = [*known[COMPUTATION], *known[DATA]]
    if constant is not None:
        everything.append(constant)
    whole = {**parts, CONSTANT: constant, "total": _sum_known(everything, False)}
    return Totals(whole, time_s, Mark(marks), frozenset(lacks))


def _sum_known(values: Sequence[float], lost: bool) -> float | None:
    """The sum of the values; None where there are none, or where some are lost and the known ones are 0."""
    whole = math.fsum(values)
    if not values or lost and not whole:
        return None
    return whole


def of_priced(energy: PricedProfile) -> Scenario:
    """The scenario in which nothing of a priced profile is changed. Raises UsageError: it has no prices."""
    if energy.costs is None or energy.split is None:
        raise UsageError("What-if prices a profile again, and no cost table is chosen: name one with --costs.")
    rows, limits = energy.counts.rows, energy.limits
    marks = int(np.bitwise_or.reduce(rows.time_marks))
    if energy.total_s is None:
        work = Work(energy.counts, energy.split.held)
        return Scenario(work, rows.time_s, marks, energy.costs, energy.table, limits)
    together = np.isnan(rows.time_s)
    time_s = np.append(rows.time_s, energy.total_s - rows.time_s[~together].sum())
    work = Work(energy.counts, energy.split.held, together)
    limits = limits.with_one_more(~np.isnan(time_s))
    return Scenario(work, time_s, marks & ~MISSING, energy.costs, energy.table, limits)


def at_setting(now: Scenario, setting: str) -> Scenario:
    """The scenario at another DVFS setting of the same table, with times by `time_model`. Raises CostError."""
    assert now.table is not None
    # Prices of another GPU's table stay assumed.
    priced = now.table.at(setting).marked(now.costs.marks & Mark.ASSUMED)
    held_w = priced.constant_power_w * now.costs.constant_held
    core_mhz, before_mhz = priced.setting.core_mhz, now.costs.setting.core_mhz
    clock_ratio = core_mhz / before_mhz if core_mhz and before_mhz else 1.0
    cores_mhz = mapped(lambda mhz: mhz * clock_ratio, now.costs.cores_mhz)
    moved = replace(now, costs=replace(priced, constant_power_w=held_w, cores_mhz=cores_mhz))
    return moved.taking(_times_at(now, moved), clock_ratio)


def _times_at(now: Scenario, moved: Scenario) -> Floats:
    """Times in s at another setting: T T_roof'/T_roof of simulated kernels; NaN where DRAM bytes are not known."""
    assert now.table is not None
    here, there = now.costs.setting, moved.costs.setting
    if (here.core_mhz, here.memory_mhz) == (there.core_mhz, there.memory_mhz):
        return now.time_s
    modelled = now.work.is_modelled
    kept = kept_share(now, moved) if modelled.any() else now.time_s
    if here.core_mhz is None or here.memory_mhz is None or there.core_mhz is None or there.memory_mhz is None:
        return kept
    clocks = (here.core_mhz, here.memory_mhz), (there.core_mhz, there.memory_mhz)
    return np.where(modelled, kept, time_model_of(now.table).at(now.time_s, now.work.dram_byte, *clocks))


def kept_share(now: Scenario, there: Scenario) -> Floats:
    """Times in s in the scenario `there` if each kernel keeps its share of the roofline's speed; NaN: no roofline."""
    roof = now.roof_s()
    return now.time_s * (there.roof_s() / np.where(roof > 0, roof, np.nan))


def assumed(now: Scenario) -> str:
    """What a what-if scenario takes for granted on times at other settings, in words."""
    modelled = now.work.is_modelled
    share = SHARE.format(now.noun)
    times = HALVES
    if now.table is not None and time_model_of(now.table).byte_per_cycle is not None:
        times = AT_CLOCKS
    if modelled.all():
        times = share
    elif modelled.any():
        times += f"; where time is simulated, {share}"
    elif np.isnan(now.work.dram_byte).any() and times == AT_CLOCKS:
        times += f"; where DRAM bytes are not known, the {now.noun}'s time is not"
    if now.table is not None and now.table.voltages.are:
        times += f"; core voltages are {now.table.voltages.are}"
    return times


_SAME = 1 + 1e-9  # two times closer than this are the same


def at_all_clocks(energy: PricedProfile) -> schema.Clocks | None:
    """Modelled energy and time at every pair of clocks with known voltages; None if the table knows one setting.

    None too where some time is not known, here or there, or only that of all kernels together: constant energy that is
    left out would pass for none. No setting draws more than the boards may. How much rests on times shows the range of
    the lowest: the same prices with times that follow the core clock alone, or the memory clock alone.
    """
    table = energy.table
    if energy.costs is None or table is None or energy.costs.peaks == Peaks():
        return None
    if energy.total_s is not None or not energy.is_timed:
        return None
    start = of_priced(energy)
    listed = (*table.settings, start.costs.setting)
    known = {(each.core_mhz, each.memory_mhz) for each in listed if each.core_mhz and each.memory_mhz}
    pairs = product(sorted({memory for _, memory in known}, reverse=True), sorted({core for core, _ in known}))
    settings = [at for memory, core in pairs if (at := _at_clocks(start, table, core, memory)) is not None]
    offered = [setting for setting in settings if setting.offered and setting.energy_j is not None]
    if len(offered) < 2:
        return None
    lowest = min(offered, key=lambda at: (at.energy_j, at.time_s, at.memory_mhz, at.core_mhz))
    least_s = min(setting.time_s or 0.0 for setting in offered)
    as_fast = [setting for setting in offered if (setting.time_s or 0.0) <= _SAME * least_s]
    return schema.Clocks(
        modelled=True,
        assumes=assumed(start),
        marks=mark_names(totals(_scenario_at(start, lowest)).marks | Mark.ESTIMATED),
        voltages=table.voltages.are or None,
        settings=settings,
        lowest=structs.replace(lowest, energy_range_j=_range(start, lowest)),
        fastest=max(as_fast, key=lambda at: (at.memory_mhz, at.core_mhz)),
    )


def _at_clocks(start: Scenario, table: CostTable, core_mhz: float, memory_mhz: float) -> schema.AtClocks | None:
    """Modelled energy and time at a pair of clocks; None: the table has no prices there, or some time is not known."""
    try:
        scenario = at_setting(start, f"{core_mhz:g}/{memory_mhz:g}").below_limits()
    except CostError:
        return None
    if not scenario.known_s.all():
        return None
    there, now = totals(scenario), start.costs.setting
    is_this = (core_mhz, memory_mhz) == (now.core_mhz, now.memory_mhz)
    is_listed = any((core_mhz, memory_mhz) == (each.core_mhz, each.memory_mhz) for each in table.settings)
    return schema.AtClocks(
        core_mhz=core_mhz,
        memory_mhz=memory_mhz,
        energy_j=there.parts["total"],
        time_s=there.time_s,
        this=is_this,
        offered=is_this or is_listed and table.is_fitted_to(core_mhz),
    )


def _scenario_at(start: Scenario, there: schema.AtClocks) -> Scenario:
    return at_setting(start, f"{there.core_mhz:g}/{there.memory_mhz:g}").below_limits()


def _range(start: Scenario, lowest: schema.AtClocks) -> schema.Range:
    """[lowest, highest] J at the setting `lowest`, over three models of time and over how far voltages may fall."""
    assert start.table is not None
    now, energies = start.costs.setting, [lowest.energy_j]
    clocks_mhz = (now.core_mhz, lowest.core_mhz), (now.memory_mhz, lowest.memory_mhz)
    by_clock_s = [start.time_s * before / after for before, after in clocks_mhz if before]
    for fall in {1.0, *start.table.intervals.core_v_fall}:
        there = _scenario_at(replace(start, table=start.table.with_fall(fall)), lowest)
        scenarios = [there, *(there.taking(time_s) for time_s in by_clock_s)]
        energies += [totals(scenario).parts["total"] for scenario in scenarios]
    known = [joules for joules in energies if joules is not None]
    return [min(known, default=None), max(known, default=None)]

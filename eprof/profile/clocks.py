"""Energy and time of a profile at the other clocks that its table knows, and which of them take least.

The choice is that of `eprof tune` for the same log and costs: among the settings that the table lists and was fitted
to, and the one that ran.
"""

from collections.abc import Sequence

from msgspec import structs
from msgspec.structs import replace

from eprof.base.errors import CostError
from eprof.base.vocabulary import Mark, mark_names
from eprof.costs import CostTable, Peaks
from eprof.profile import schema
from eprof.profile.priced import Priced
from eprof.profile.scenario import Scenario, assumed, at_setting, of_priced, totals

_SAME = 1 + 1e-9  # two times closer than this are the same


def clocks(energy: Priced) -> schema.Clocks | None:
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
    settings = [setting for pair in _pairs(start, table) if (setting := _at(start, table, *pair)) is not None]
    offered = [setting for setting in settings if setting.offered and setting.energy_j is not None]
    if len(offered) < 2:
        return None
    lowest = min(offered, key=lambda at: (at.energy_j, at.time_s, at.memory_mhz, at.core_mhz))
    return schema.Clocks(
        modelled=True,
        assumes=assumed(start),
        marks=mark_names(totals(_scenario_at(start, lowest)).marks | Mark.ESTIMATED),
        voltages=table.voltages.are or None,
        settings=settings,
        lowest=structs.replace(lowest, energy_range_j=_range(start, lowest)),
        fastest=_fastest(offered),
    )


def _pairs(start: Scenario, table: CostTable) -> list[tuple[float, float]]:
    """Every pair of a core and a memory clock that the table lists, and the clocks of the run, in MHz."""
    listed = [setting for setting in (*table.settings, start.costs.setting)]
    cores = {setting.core_mhz for setting in listed if setting.core_mhz and setting.memory_mhz}
    memories = {setting.memory_mhz for setting in listed if setting.core_mhz and setting.memory_mhz}
    return [(core, memory) for memory in sorted(memories, reverse=True) for core in sorted(cores)]


def _at(start: Scenario, table: CostTable, core_mhz: float, memory_mhz: float) -> schema.AtClocks | None:
    """The profile at a pair of clocks; None where the table knows no prices there, or some time is not known."""
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


def _fastest(offered: Sequence[schema.AtClocks]) -> schema.AtClocks:
    """The fastest setting; of those that are as fast, the one with the highest clocks."""
    least_s = min(setting.time_s or 0.0 for setting in offered)
    as_fast = [setting for setting in offered if (setting.time_s or 0.0) <= _SAME * least_s]
    return max(as_fast, key=lambda at: (at.memory_mhz, at.core_mhz))


def _scenario_at(start: Scenario, there: schema.AtClocks) -> Scenario:
    return at_setting(start, f"{there.core_mhz:g}/{there.memory_mhz:g}").below_limits()


def _range(start: Scenario, lowest: schema.AtClocks) -> schema.Range:
    """Lowest and highest J at a setting, over three models of its time, and over how far voltages may fall."""
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

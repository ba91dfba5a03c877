"""The DVFS setting at which a profile was taken, for `eprof tune`, and what tells so."""

from msgspec import Struct

from eprof.base.errors import CostError
from eprof.base.optional import either, mapped
from eprof.costs import CostTable
from eprof.energy.clocks import setting_of as setting_at
from eprof.lab.measurements.settings import parse_setting, setting_label
from eprof.logs.runs import Run
from eprof.profile.profile import Energy
from eprof.profilers import signs_of


class SettingInForce(Struct, frozen=True):
    """The setting at which a profile was taken, `label` ("852/924"), and a sentence on what tells it, `how`, or "".

    held_by: a profiler that may have held the clocks there; the program then runs at `usual` without it. is_assumed:
    nothing tells where it runs.
    """

    label: str
    how: str = ""
    is_assumed: bool = False
    held_by: str = ""
    usual: str = ""

    @property
    def runs_at(self) -> str:
        """The setting at which the program runs without a profiler, "852/924"."""
        return self.usual or self.label


def setting_in_force(energy: Energy, table: CostTable, given: str | None) -> SettingInForce:
    """Find at which setting a profile was taken, and what tells so.

    In this order: `given`; what its run directory says; what its meter or ncu saw, if the table is made for that GPU;
    the table's default, an assumption.
    Where a profiler that holds the clocks saw them, `given` is where the program runs without that profiler; without
    `given` this is taken to be the table's highest core clock. Raises CostError: a table with one setting only.
    """
    if table.default.core_mhz is None:
        raise CostError(f"{table.name} holds at one setting only, so there is nothing to choose from.")
    run, seen = energy.profile.run, energy.profile.clocks
    if not energy.profile.is_served_by(table):
        seen = None
    seen_label = mapped(lambda seen: setting_at(table, seen), seen)
    is_held = seen is not None and bool(signs_of(seen.seen_by).slowed)
    if seen is not None and seen_label is not None and is_held and not (run and run.is_at_own_clocks):
        how = f"The profile was taken at {seen_label} MHz, as {seen.seen_by} saw."
        usual_mhz, memory_mhz = parse_setting(either(given, seen_label))
        if given is None:
            usual_mhz = max(usual_mhz, *(setting.core_mhz or 0.0 for setting in table.settings))
        usual = setting_label((usual_mhz, memory_mhz))
        if usual != seen_label:
            return SettingInForce(seen_label, how, given is None, seen.seen_by, usual)
    if given is not None:
        return SettingInForce(setting_label(parse_setting(given)))
    recorded = str(mapped(Run.pricing, energy.profile.priced_as, "setting") or "")
    if recorded:
        return SettingInForce(
            setting_label(parse_setting(recorded)),
            f"The profile was taken at {recorded} MHz, as its run directory says.",
        )
    if seen is not None and seen_label is not None:
        return SettingInForce(seen_label, f"The profile was taken at {seen_label} MHz, as {seen.seen_by} saw.")
    default = table.default.label
    why = f"The profile is taken to be from {default} MHz, the table's default; say so with --setting if it is not."
    return SettingInForce(default, why, is_assumed=True)

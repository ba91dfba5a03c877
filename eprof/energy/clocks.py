"""`Clocks` that a program ran at, as its meter or log of ncu saw them; costs at these, counts and times at others."""

from collections.abc import Sequence
from operator import attrgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Floats, Ints
from eprof.base.optional import mapped
from eprof.base.text import when
from eprof.base.units import clock_label
from eprof.base.vocabulary import MISSING, Mark
from eprof.costs import Costs, CostTable
from eprof.counts.counts import Counts
from eprof.counts.evaluation import Way
from eprof.logs.log import Clock, Log
from eprof.logs.runs import Run

RETIRED_A_CYCLE = 8.0  # instructions, by the widest cores (Golden Cove, Zen 5); others retire four to six
_ALWAYS = "taken to be active all the time"
_CYCLES = _OF_CORES, _OF_SMS = "core_active", "sm_active_cycle"
_STEP_MHZ = 10  # as ncu's page prints it; a mean over launches is no better known
_NOTEWORTHY = 0.03


class Clocks(Struct, frozen=True):
    """Core and memory clock at which a program ran, in MHz (None: not known), and who saw them: "the meter", "ncu"."""

    core_mhz: float | None
    memory_mhz: float | None
    seen_by: str

    @property
    def label(self) -> str | None:
        """Both clocks of the run as a setting, "1290/877"; None if one is not known."""
        if self.core_mhz is None or self.memory_mhz is None:
            return None
        return clock_label(self.core_mhz, self.memory_mhz)


def clocks_of(run: Run | None, logs: Sequence[Log]) -> Clocks | None:
    """The clocks that go with the kernels' times: as the run's meter saw them, else the mean that one profiler logged.

    None: not known, or some times are from elsewhere: the profiler that logs clocks may hold them at their base (ncu).
    """
    seen = mapped(Run.measured, run)
    if seen is not None and seen.core_mhz is not None:
        return Clocks(seen.core_mhz, seen.memory_mhz, "the meter")
    timed = {table.profiler for log in logs for table in log.tables if not np.isnan(table.rows.time_s).all()}
    profilers = {table.profiler for log in logs if log.clocks for table in log.tables}
    if len(profilers) != 1 or timed - profilers:
        return None
    mean = Clock.mean(None, [clock for log in logs for clock in log.clocks])
    return Clocks(mapped(_rounded, mean.core_mhz, _STEP_MHZ), mapped(_rounded, mean.memory_mhz, 1), profilers.pop())


def _rounded(mhz: float, step: int) -> float:
    return float(step * round(mhz / step))


def costs_at(table: CostTable, clocks: Clocks) -> Costs:
    """The costs at the table's setting nearest to a run's clocks, with a note if one of them is over 3 % off."""
    setting = table.nearest(clocks.core_mhz, clocks.memory_mhz)
    costs = table.at(setting)
    if costs.busy_mhz and clocks.core_mhz:
        costs = replace(costs, busy_mhz=clocks.core_mhz)
    far = _far_off(costs, clocks)
    if setting is not None:
        voltages = costs.setting_from.partition("; ")[2]
        origin = f"nearest to the clocks of the run, as {clocks.seen_by} saw them"
        costs = replace(costs, setting_from="; ".join(filter(None, [origin, voltages])))
    if not far:
        return costs
    note = f"The run is priced at other clocks than its own: {'; '.join(far)}."
    return replace(costs, notes=(*costs.notes, note))


def with_active_cycles(counts: Counts, costs: Costs, cores: float = 1.0) -> Counts:
    """The counts with active cycles of cores or multiprocessors where these pay and were not counted: units times time.

    ESTIMATED and ASSUMED, at the clock of the costs, or of the run where these have none. Of a CPU, `cores` are active
    all the time. Of a GPU, as many multiprocessors as had warps, with the instructions that these issued in a cycle,
    where the log tells; else all, or as many as a launch has blocks. Cycles stay unknown of a kernel of which nothing
    else is priced, for time alone tells nothing of what a processor did. Where a CPU's instructions have no time, their
    cycles are at least as many as these need.
    """
    sms = costs.sm_count or mapped(attrgetter("number"), costs.multiprocessors)
    if counts.shape is not None and sms is not None:
        active, issued = (counts.shape[name] / counts.rows.launches for name in ("sm_active", "a_cycle"))
        how = "multiprocessors, for the share of the time that they had warps"
        counts = _with_cycles(counts, costs, _OF_SMS, sms * active, how)
        issues = f"instructions a cycle of {how}"
        counts = _with_cycles(counts, costs, "warp_issue", sms * active * issued, issues)
    who = "one core is" if cores == 1 else f"{cores:.3g} cores are"
    paying = [word for word, charge in costs.charges.items() if charge.pays and word in counts.amounts]
    is_counted = ~np.isnan(counts.amounts.only(paying)).all(axis=1)
    counts = _with_cycles(counts, costs, _OF_CORES, np.where(is_counted, cores, np.nan), f"{who} {_ALWAYS}")
    if costs.sm_count is None:
        fewest = counts.amounts["retired"] / RETIRED_A_CYCLE
        note = f"at least: no core retires more than {RETIRED_A_CYCLE:g} instructions a cycle"
        marks = counts.amount_marks["retired"] | MISSING
        return _filled(counts, costs, _OF_CORES, fewest, marks, f"retired / {RETIRED_A_CYCLE:g}", note)
    busy = np.full_like(counts.rows.time_s, costs.sm_count)
    if counts.shape is not None:
        busy = np.fmin(busy, counts.shape["blocks"] / counts.rows.launches)
    return _with_cycles(
        counts, costs, _OF_SMS, np.where(is_counted, busy, np.nan), f"every multiprocessor is {_ALWAYS}"
    )


def _with_cycles(counts: Counts, costs: Costs, word: str, units: Floats, who: str) -> Counts:
    """The counts with the active cycles `word`, as of `units`, (n_kernels,), busy all the time, where these pay.

    Counts that are known stay. who: says in the derivation what was taken to be active.
    """
    mhz = costs.setting.core_mhz or costs.busy_mhz
    cycles = counts.rows.time_s * (mhz or np.nan) * 1e6 * units
    told = units[np.isnan(counts.amounts[word]) & ~np.isnan(cycles)]
    numbers = when((told != 1).any(), f" * {float(np.max(told, initial=0.0)):.6g}")
    marks = counts.rows.time_marks | int(Mark.ESTIMATED | Mark.ASSUMED)
    note = f"{who}, at the clock of {when(costs.setting.core_mhz, 'the cost table') or 'the run, or of the data sheet'}"
    return _filled(counts, costs, word, cycles, marks, f"time * {mhz or 0:g} MHz{numbers}", note)


def _filled(counts: Counts, costs: Costs, word: str, cycles: Floats, marks: Ints, formula: str, note: str) -> Counts:
    """The counts with `cycles` as the count of `word`, (n_kernels,), where it pays and is not known."""
    charge, amounts = costs.charges.get(word), counts.amounts[word]
    made_up = np.isnan(amounts) & ~np.isnan(cycles)
    if charge is None or not charge.pays or not made_up.any():
        return counts
    way = Way(formula, note, int(np.bitwise_or.reduce(marks[made_up])), int(made_up.sum()))
    return replace(
        counts,
        amounts=counts.amounts.replaced({word: np.where(made_up, cycles, amounts)}),
        amount_marks=counts.amount_marks.replaced({word: np.where(made_up, marks, counts.amount_marks[word])}),
        how={**counts.how, word: (*(each for each in counts.how.get(word, ()) if each.formula), way)},
    )


def at_clock(counts: Counts, time_s: Floats, clock_ratio: float) -> Counts:
    """Counts of the same work at another core clock: `time_s`, (n_kernels,), are the new times, cycles follow.

    clock_ratio: the other clock over that of the counts.
    """
    ticking = with_cycles(counts, clock_ratio * time_s / counts.rows.time_s)
    return replace(ticking, rows=replace(counts.rows, time_s=time_s))


def with_cycles(counts: Counts, factors: Floats) -> Counts:
    """The counts with `factors` times the active cycles of each kernel, (n_kernels,)."""
    known = [word for word in _CYCLES if not np.isnan(counts.amounts[word]).all()]
    if not known or (factors == 1).all():
        return counts
    return replace(counts, amounts=counts.amounts.replaced({word: counts.amounts[word] * factors for word in known}))


def slowed(counts: Counts, factor: float) -> Counts:
    """Counts of the same work in `factor` times the time: cycles made of time follow it, counted ones stay."""
    cycles = {}
    for word in _CYCLES:
        is_made_up = (counts.amount_marks[word] & int(Mark.ASSUMED)) != 0
        cycles[word] = np.where(is_made_up, factor * counts.amounts[word], counts.amounts[word])
    rows = replace(counts.rows, time_s=factor * counts.rows.time_s)
    return replace(counts, rows=rows, amounts=counts.amounts.replaced(cycles))


def setting_of(table: CostTable, clocks: Clocks) -> str | None:
    """The setting that a run was at, "1290/877": the table's nearest, or the run's own clocks where that is far off."""
    costs = costs_at(table, clocks)
    return clocks.label if _far_off(costs, clocks) else costs.setting.label


def _far_off(costs: Costs, clocks: Clocks) -> list[str]:
    """A phrase on each clock of a run, core or memory, that is over 3 % off the clock of the costs' setting."""
    seen_and_known = {
        "core": (clocks.core_mhz, costs.setting.core_mhz),
        "memory": (clocks.memory_mhz, costs.setting.memory_mhz),
    }
    return [
        f"its {domain} clock was {seen:g} MHz, as {clocks.seen_by} saw, and the nearest that {costs.name} knows is "
        f"{known:g} MHz"
        for domain, (seen, known) in seen_and_known.items()
        if seen is not None and known is not None and abs(seen - known) > _NOTEWORTHY * known
    ]

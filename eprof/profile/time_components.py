"""Time of a profile's kernels by component, for its document (docs/time-components.md)."""

from collections import Counter

import numpy as np

from eprof.base.arrays import finite
from eprof.base.optional import mapped
from eprof.base.text import phrase
from eprof.base.vocabulary import Mark, mark_names
from eprof.costs import Costs
from eprof.counts.counts import Counts
from eprof.energy.modelled_time import Modelled
from eprof.energy.time_components import (
    components,
    machine_of,
    mix_of,
    mix_peak_flop_per_s,
    seconds,
    with_times,
    work_of,
)
from eprof.profile import schema
from eprof.profile.priced import Priced


def of_energy(energy: Priced) -> schema.TimeComponents | None:
    """The cycles of each kernel by component; None unless `by_component` was asked and the costs describe the GPU."""
    if energy.costs is None or not energy.by_component:
        return None
    machine = machine_of(energy.costs)
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


def mix_peaks(energy: Priced) -> list[float | None]:
    """The peak of each kernel's own mix of instructions in flop/s ([T] 3.4.4); [] where the costs cannot tell it."""
    machine = mapped(machine_of, energy.costs)
    if machine is None:
        return []
    return [finite(peak) for peak in mix_peak_flop_per_s(mix_of(energy.counts), machine)]


def time_by_component(counts: Counts, costs: Costs) -> tuple[Counts, Modelled | None, list[str]]:
    """Give kernels without a time the one modelled by component, as `simulated.model_time` does the roofline's.

    Returns the counts, how times were modelled (None if none was), and what the model had to do without.
    """
    machine = machine_of(costs)
    if machine is None:
        lacks = f"--time components: {costs.name} has no [time_components], which describes the GPU's multiprocessors"
        return counts, None, [f"{lacks}, so no time is taken apart; docs/time-components.md lists the tables that do."]
    timed, number = with_times(counts, machine)
    missing = Counter(word for words in components(work_of(counts, machine), machine).missing for word in words)
    notes = list(filter(None, [phrase("Time by component is modelled without {}.", _listed(missing, counts))]))
    if not number:
        return timed, None, notes
    return timed, Modelled("modelled by component", 1.0, given=False, shares_only=True), notes


def _listed(missing: Counter[str], counts: Counts) -> str:
    """What is missing, as text, and for how many kernels if not for all: "launch shape, registers (3 of 7 kernels)"."""
    kernels = len(counts.rows)
    return ", ".join(
        word if number == kernels else f"{word} ({number} of {kernels} {counts.nouns.kernels})"
        for word, number in missing.items()
    )

"""Time of a profile's kernels by component, for its document (docs/time-components.md)."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from eprof.base.arrays import finite
from eprof.base.marks import Mark, names
from eprof.base.nouns import Nouns
from eprof.costs import Costs
from eprof.counting.counts import Counts
from eprof.energy.components import (
    Components,
    Machine,
    components,
    machine_of,
    mix_of,
    mix_peak_flop_per_s,
    seconds,
    work_of,
)
from eprof.profile import schema

if TYPE_CHECKING:
    from eprof.profile.profile import Energy


def of_energy(energy: "Energy") -> schema.TimeComponents | None:
    """The cycles of each kernel by component; None where nobody asked, or the costs do not describe the GPU."""
    if energy.costs is None or not energy.by_component:
        return None
    machine = machine_of(energy.costs)
    if machine is None:
        return None
    units = machine.units
    return schema.TimeComponents(
        device=energy.costs.device,
        core_mhz=machine.core_hz / 1e6,
        source=units.source,
        assumes=units.why,
        marks=names(units.marks | Mark.ESTIMATED),
        kernels=_kernels(energy.counts, components(work_of(energy.counts), machine), machine),
    )


def _kernels(counts: Counts, of_launch: Components, machine: Machine) -> list[schema.KernelCycles]:
    """A structure a kernel: the cycles of all its launches."""
    launches = counts.rows.launches
    time_s = seconds(of_launch, machine, launches)
    cycles = of_launch.cycles.values * launches[:, None]
    return [
        schema.KernelCycles(
            time_s=finite(time_s[row]) if time_s[row] > 0 else None,
            cycles=dict(zip(of_launch.cycles.names, cycles[row].tolist(), strict=True)) if time_s[row] > 0 else {},
            active_warps=float(of_launch.active_warps[row]),
            rounds=float(of_launch.rounds[row]),
            missing=list(of_launch.missing[row]),
        )
        for row in range(len(launches))
    ]


def mix_peaks(energy: "Energy") -> list[float | None]:
    """The peak of each kernel's own mix of instructions in flop/s ([T] 3.4.4); empty where the costs cannot tell it."""
    machine = None if energy.costs is None else machine_of(energy.costs)
    if machine is None:
        return []
    return [finite(peak) for peak in mix_peak_flop_per_s(mix_of(energy.counts), machine)]


def notes(counts: Counts, costs: Costs, modelled: int) -> Iterator[str]:
    """What the user should know of times by component: why there are none, or what they had to do without."""
    machine = machine_of(costs)
    nouns = counts.nouns
    if machine is None:
        yield (
            f"--time components: {costs.name} has no [time_components], which describes the GPU's multiprocessors, so "
            "no time is taken apart; docs/time-components.md lists the tables that do."
        )
        return
    missing = Counter(word for words in components(work_of(counts), machine).missing for word in words)
    if missing:
        yield f"Time by component is modelled without {_listed(missing, len(counts.rows), nouns)}."
    if modelled:
        which = nouns.kernel if modelled == 1 else nouns.kernels
        yield f"The time of {modelled} {which} that the logs do not tell is the one modelled by component."


def _listed(missing: Counter[str], kernels: int, nouns: Nouns) -> str:
    """What is missing, and of how many kernels where not of all: "launch shape, registers (3 kernels)"."""
    return ", ".join(
        word if number == kernels else f"{word} ({number} {nouns.kernel if number == 1 else nouns.kernels})"
        for word, number in missing.items()
    )

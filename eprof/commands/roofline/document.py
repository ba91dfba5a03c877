"""The document `eprof.roofline/1`: machines with their lines, kernels below them, equal power (docs/roofline.md)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import UNSET, UnsetType, convert, structs

from eprof.base.errors import EprofError
from eprof.base.known import ratio
from eprof.base.version import __version__
from eprof.commands.roofline.machines import compared
from eprof.profile import document as profile_document
from eprof.profile import schema
from eprof.profile.components import mix_peaks
from eprof.profile.rooflines import Machine, described

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

_STEPS = 193


def document(
    machines: Sequence[Machine],
    equal_power: Sequence[schema.EqualPower] = (),
    energy: "Energy | None" = None,
    command_line: Sequence[str] = (),
    warnings: Sequence[str] = (),
    sweep: schema.CapSweep | None = None,
) -> schema.Roofline:
    """The document `eprof.roofline/1`: everything that a roofline report shows.

    The kernels of `energy` are placed below its own costs' lines.

    sweep: what the machines lose, if they are one machine under ever lower power caps.
    """
    profile = None if energy is None else profile_document.document(energy)
    dots = [] if profile is None or energy is None else _dots(profile, energy)
    intensities = np.geomspace(*_span(machines, dots), _STEPS)
    drawn = [{**described(machine), "lines": machine.lines(intensities)} for machine in machines]
    warnings = list(warnings)
    cap_test = _cap_test(machines[0], dots, warnings) if sweep is None else UNSET
    made = schema.Roofline(
        eprof=__version__,
        title=None,
        created_utc=profile_document.now(),
        command_line=list(command_line),
        machines=convert(drawn, list[schema.Machine]),
        equal_power=list(equal_power),
        cap_sweep=sweep or UNSET,
        cap_test=cap_test,
        inputs=[],
        kernels=dots,
        warnings=warnings,
    )
    if profile is None:
        return made
    return structs.replace(
        made,
        title=profile.title,
        inputs=profile.inputs,
        processor=profile.device.processor,
        warnings=[*made.warnings, *profile.warnings],
    )


def _cap_test(machine: Machine, dots: Sequence[schema.Dot], warnings: list[str]) -> schema.CapTest | UnsetType:
    """Whether the machine's power cap explains the kernels' times better; unset where that cannot be said."""
    # Of a kernel's energy, that of flops and DRAM bytes, as the capped line has it.
    times = [
        (dot.time_s, dot.roofline_time_s, (dot.parts_j.get("flops") or 0.0) + (dot.parts_j.get("dram") or 0.0))
        for dot in dots
        if dot.speed_share and not dot.at_most
    ]
    if machine.usable_power_w is None or not times:
        return UNSET
    try:
        found = compared(machine, *np.array(times, dtype=float).T)
    except EprofError as err:
        warnings.append(str(err))
        return UNSET
    return found or UNSET


def _dots(profile: schema.Profile, energy: "Energy") -> list[schema.Dot]:
    if not profile.limits:
        return []
    for limit, peak in zip(profile.limits.kernels, mix_peaks(energy.whole()[0]), strict=False):
        limit.mix_peak_flop_per_s = peak or UNSET
    return [
        schema.Dot(
            name=kernel.name,
            device=kernel.device,
            launches=kernel.launches,
            time_s=kernel.time_s,
            energy_j=kernel.energy_j.total,
            power_w=ratio(limit.flop_per_s, limit.flop_per_j),
            marks=kernel.marks,
            **structs.asdict(limit),
        )
        for kernel, limit in zip(profile.kernels, profile.limits.kernels, strict=True)
    ]


def _span(machines: Sequence[Machine], dots: Sequence[schema.Dot]) -> tuple[float, float]:
    """The flop/B that rooflines draw: an octave or more around every balance and kernel, in whole powers of two."""
    drawn = [dot.intensity_flop_per_byte.dram for dot in dots if dot.intensity_flop_per_byte.dram]
    for machine in machines:
        drawn += [machine.time_balance, machine.energy_balance, machine.half_efficiency_intensity]
    low, high = min([0.5, *drawn]), max([64.0, *drawn])
    return float(2 ** np.floor(np.log2(low) - 1)), float(2 ** np.ceil(np.log2(high) + 1))

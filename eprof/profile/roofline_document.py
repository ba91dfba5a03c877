"""The document `eprof.roofline/1`: machines with their lines, kernels below them, equal power (docs/roofline.md)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import convert, structs

from eprof import __version__
from eprof.base.known import ratio
from eprof.profile import document as profile_document
from eprof.profile import schema
from eprof.rooflines import Machine, Match, described

if TYPE_CHECKING:
    from eprof.profile.profile import Energy

_STEPS = 193


def document(
    machines: Sequence[Machine],
    matches: Sequence[Match] = (),
    energy: "Energy | None" = None,
    command_line: Sequence[str] = (),
    warnings: Sequence[str] = (),
) -> schema.Roofline:
    """Everything that a roofline report shows. The kernels of `energy` are placed below its own costs' lines."""
    profile = None if energy is None else profile_document.document(energy)
    dots = [] if profile is None else _dots(profile)
    intensities = np.geomspace(*_span(machines, dots), _STEPS)
    drawn = [{**described(machine), "lines": machine.lines(intensities)} for machine in machines]
    made = schema.Roofline(
        eprof=__version__,
        title=None,
        created_utc=profile_document.now(),
        command_line=list(command_line),
        machines=convert(drawn, list[schema.Machine]),
        equal_power=convert([match.data() for match in matches], list[schema.EqualPower]),
        inputs=[],
        kernels=dots,
        warnings=list(warnings),
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


def _dots(profile: schema.Profile) -> list[schema.Dot]:
    if not profile.limits:
        return []
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
    """The flop/B to draw: an octave or more around every balance and every kernel, in whole powers of two."""
    drawn = [dot.intensity_flop_per_byte.dram for dot in dots if dot.intensity_flop_per_byte.dram]
    for machine in machines:
        drawn += [machine.time_balance, machine.energy_balance, machine.half_efficiency_intensity]
    low, high = min([0.5, *drawn]), max([64.0, *drawn])
    return float(2 ** np.floor(np.log2(low) - 1)), float(2 ** np.ceil(np.log2(high) + 1))

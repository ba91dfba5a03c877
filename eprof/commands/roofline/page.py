"""The page of `eprof roofline`: a function of the document `eprof.roofline/1` (docs/roofline.md)."""

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from eprof.base.vocabulary import nouns_of
from eprof.commands.roofline.words import dot_table, headline, label, leads, machine_table, notes, sweep_table
from eprof.profile import schema
from eprof.show import cost_words, html_page, plot, rooflines
from eprof.show.blocks import Notes
from eprof.show.html_page import unmasked
from eprof.show.numbers import utc

DRAWN, LISTED = 300, 200


def html(document: schema.Roofline | Mapping[str, Any]) -> str:
    """The page of `eprof roofline`: one self-contained HTML file from a document `eprof.roofline/1`."""
    document = unmasked(schema.typed(document, schema.Roofline))
    machines = document.machines
    dots = [
        rooflines.Dot(
            kernel.name,
            kernel.intensity_flop_per_byte.dram,
            {"flop_per_s": kernel.flop_per_s, "flop_per_j": kernel.flop_per_j, "power_w": kernel.power_w},
            kernel.energy_j or 0.0,
            roofs={"flop_per_s": kernel.mix_peak_flop_per_s or None},
        )
        for kernel in document.kernels
    ]
    points = document.machines[0].lines or []
    span = points[0].intensity_flop_per_byte, points[-1].intensity_flop_per_byte
    curves = [rooflines.Curves(machine.time_balance, _lines(machine)) for machine in document.machines]
    drawable = [dot for dot in dots if dot.is_drawable]
    return html_page.filled(
        "roofline.html",
        ["report.css"],
        ["roofline.js"],
        title=document.title or ", ".join(dict.fromkeys(machine.name for machine in machines)),
        subtitle=f"{cost_words.all_named(machines)} · {utc(document.created_utc)}",
        headline=headline(document),
        leads=leads(document),
        legend=[(kind % plot.STROKES, label(machine)) for kind, machine in enumerate(machines)],
        panels=rooflines.panels(curves, drawable[:DRAWN], nouns_of(document.processor), span=span),
        numbers=machine_table(machines[:1] if document.cap_sweep else machines),
        caps=sweep_table(document),
        notes=notes(machines),
        kernels=dot_table(document, LISTED),
        warnings=Notes(document.warnings, "warning"),
        nouns=nouns_of(document.processor),
        command=shlex.join(document.command_line),
        eprof=document.eprof,
        schema=document.schema,
    )


def _lines(machine: schema.Machine) -> rooflines.Lines:
    """A machine's lines as a function of flop per byte: (flop/s, flop/J, W), straight between points on log axes."""
    names = ("intensity_flop_per_byte", "flop_per_s", "flop_per_j", "power_w")
    intensities, *heights = np.log([[getattr(point, name) for point in machine.lines or []] for name in names])

    def at(intensity: float) -> tuple[float, float, float]:
        place = np.log(intensity)
        speed, efficiency, power = (float(np.exp(np.interp(place, intensities, height))) for height in heights)
        return speed, efficiency, power

    return at

"""Rooflines in time, energy and power: what a GPU can do at best, and how far from it each kernel is (docs/model.md).

`machine` turns the costs of one setting into a `Machine` with its balances and lines, `dots` places kernels below them,
`equal` compares machines scaled to the same power, `caps` machines with less power, `work` counts useful work. The
types are to be imported from here.
"""

from eprof.commands.roofline.caps import CapTest, Sweep, compared, sweep, swept
from eprof.commands.roofline.equal import Match, equal_power
from eprof.profile.rooflines.dots import PARTS, Dots, place
from eprof.profile.rooflines.machine import PRECISIONS, Level, Machine, described, machine, machines
from eprof.profile.rooflines.work import (
    all_flops_of,
    flops_of,
    has_tensor_work,
    intensity_of,
    main_precision,
    traffic_of,
)

__all__ = [
    "PARTS",
    "PRECISIONS",
    "CapTest",
    "Dots",
    "Level",
    "Machine",
    "Match",
    "Sweep",
    "described",
    "equal_power",
    "all_flops_of",
    "flops_of",
    "has_tensor_work",
    "intensity_of",
    "machine",
    "machines",
    "main_precision",
    "place",
    "sweep",
    "swept",
    "compared",
    "traffic_of",
]

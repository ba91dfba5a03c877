"""Rooflines in time, energy and power: what a GPU can do at best, and how far from it each kernel is (docs/model.md).

`machine` turns the costs of one setting into a `Machine` with its balances and lines, `dots` places kernels below them,
`equal` compares machines scaled to the same power, `caps` machines with less power, `work` counts useful work. The
types are to be imported from here.
"""

from eprof.rooflines.caps import CapTest, Sweep, compared, sweep, swept
from eprof.rooflines.dots import PARTS, Dots, place
from eprof.rooflines.equal import Match, equal_power
from eprof.rooflines.machine import PRECISIONS, Level, Machine, described, machine, machines
from eprof.rooflines.work import all_flops_of, flops_of, has_tensor_work, intensity_of, main_precision, traffic_of

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

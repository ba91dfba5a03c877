"""Rooflines in time, energy and power: what a GPU can do at best, and how far from it each kernel is (docs/model.md).

`machine` turns the costs of one setting into a `Machine` with its balances and lines, `dots` places kernels below them,
`work` counts useful work. The types are to be imported from here.
"""

from eprof.profile.rooflines.dots import PARTS, Dots, place
from eprof.profile.rooflines.machine import PRECISIONS, Level, Machine, at_random, described, machine, machines
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
    "Dots",
    "Level",
    "Machine",
    "at_random",
    "described",
    "all_flops_of",
    "flops_of",
    "has_tensor_work",
    "intensity_of",
    "machine",
    "machines",
    "main_precision",
    "place",
    "traffic_of",
]

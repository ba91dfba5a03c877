"""The heading above the rooflines says which limit binds, and what would move it."""

from types import SimpleNamespace as Record

import pytest

from eprof.commands.report.sections import rooflines

MACHINE = Record(dram_byte_per_s=1e11, peak_flop_per_s=1e12)  # balance: 10 flop/B


def limit(intensity, speed, at_most=()):
    """A kernel of 1 Gflop, with so many flops a byte, that reaches a share of the roofline's speed."""
    time_s = max(1e9 / 1e12, 1e9 / intensity / 1e11)
    per_byte = Record(dram=intensity)
    return Record(
        intensity_flop_per_byte=per_byte, work_flop=1e9, roofline_time_s=time_s, speed_share=speed, at_most=at_most
    )


@pytest.mark.parametrize(
    ("kernels", "heading"),
    [
        (
            [(3.0, limit(1.0, 0.9)), (1.0, limit(100.0, 0.2))],
            "Memory limits speed for 75 % of the energy: fewer DRAM bytes would raise it",
        ),
        (
            [(1.0, limit(1.0, 0.9)), (3.0, limit(100.0, 0.8))],
            "Arithmetic limits speed for 75 % of the energy: fewer or narrower flops would raise it",
        ),
        (
            [(3.0, limit(1.0, 0.1)), (1.0, limit(2.0, 0.5)), (1.0, limit(100.0, 1.0))],
            "Kernels reach 20 % of the speed that memory allows: more utilisation would help most",
        ),
        (
            [(3.0, limit(100.0, 0.1, ["speed_share"]))],
            "Kernels reach at most 10 % of the speed that arithmetic allows: more utilisation would help most",
        ),
        ([(1.0, limit(1.0, None))], "Memory limits speed for 100 % of the energy: fewer DRAM bytes would raise it"),
    ],
)
def test_the_heading_names_the_limit_of_most_energy_and_what_moves_it(kernels, heading):
    dots = [rooflines.Dot("k", 1.0, {}, energy_j, place) for place, (energy_j, _) in enumerate(kernels)]
    document = Record(limits=Record(kernels=[each for _, each in kernels]))
    view = Record(document=document, nouns=Record(kernels="kernels"))
    assert rooflines._heading(view, MACHINE, dots).replace("\u202f", " ") == heading

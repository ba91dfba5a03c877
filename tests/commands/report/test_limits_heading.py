"""The heading above the rooflines says which limit binds, and what would move it."""

from types import SimpleNamespace as Record

import pytest

from eprof.commands.report.page import limits_and_whatif


def limit(limited_by, speed, at_most=()):
    """A kernel that reaches a share of the speed that DRAM or flops allow."""
    return Record(limited_by=limited_by, speed_share=speed, at_most=at_most)


@pytest.mark.parametrize(
    ("kernels", "heading"),
    [
        (
            [(3.0, limit("dram", 0.9)), (1.0, limit("flops", 0.2))],
            "Memory limits speed for 75 % of the energy: fewer DRAM bytes would raise it",
        ),
        (
            [(1.0, limit("dram", 0.9)), (3.0, limit("flops", 0.8))],
            "Arithmetic limits speed for 75 % of the energy: fewer or narrower flops would raise it",
        ),
        (
            [(3.0, limit("dram", 0.1)), (1.0, limit("dram", 0.5)), (1.0, limit("flops", 1.0))],
            "Kernels reach 20 % of the speed that memory allows: more utilisation would help most",
        ),
        (
            [(3.0, limit("flops", 0.1, ["speed_share"]))],
            "Kernels reach at most 10 % of the speed that arithmetic allows: more utilisation would help most",
        ),
        ([(1.0, limit("dram", None))], "Memory limits speed for 100 % of the energy: fewer DRAM bytes would raise it"),
    ],
)
def test_the_heading_names_the_limit_of_most_energy_and_what_moves_it(kernels, heading):
    dots = [limits_and_whatif.Dot("k", 1.0, {}, energy_j, place) for place, (energy_j, _) in enumerate(kernels)]
    document = Record(limits=Record(kernels=[each for _, each in kernels]))
    view = Record(document=document, nouns=Record(kernels="kernels"))
    assert limits_and_whatif._heading(view, dots).replace("\u202f", " ") == heading

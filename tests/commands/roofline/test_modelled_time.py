"""A kernel whose time was modelled stands on the roofline: nothing is said of how far from it the kernel is."""

from pathlib import Path

import pytest
from msgspec.structs import replace

import eprof
from eprof.profile.document import document

SIMULATED = Path(__file__).parents[3] / "samples" / "logs" / "simulated" / "gemm-naive.txt"


def test_the_efficiency_of_the_model_changes_no_limit():
    profile = eprof.load(SIMULATED)
    first, second = (document(profile.energy("jetson-tk1", efficiency=share)) for share in (0.25, 0.5))
    assert first.limits and second.limits
    for one, other in zip(first.limits.kernels, second.limits.kernels, strict=True):
        assert one.flop_per_j == pytest.approx(other.flop_per_j, rel=1e-12)
        assert replace(one, flop_per_j=None) == replace(other, flop_per_j=None)
    assert first.time_s == 2 * second.time_s


def test_no_share_of_the_roofline_is_shown_of_a_model():
    shown = document(eprof.load(SIMULATED).energy("jetson-tk1"))
    assert shown.limits
    for limit in shown.limits.kernels:
        assert limit.speed_share is None and limit.energy_share is None
        assert limit.parts_j["waiting"] == 0.0

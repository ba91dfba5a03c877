"""Base power and bursts of logs that nobody marked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eprof.commands.timeline.joules import power_levels
from eprof.lab.power.series import Series


def series(watts):
    return Series("gpu", "log", np.arange(len(watts) + 1.0), np.asarray(watts, dtype=float), False)


@given(
    st.floats(1, 500),
    st.floats(0.5, 5),
    st.lists(st.integers(10, 60), min_size=1, max_size=4),
    st.integers(10, 60),
    st.integers(0, 2**32 - 1),
)
def test_bursts_upon_a_base_are_found_where_they_are(base_w, growth, lengths, pause, seed):
    noise = np.random.default_rng(seed)
    pieces = [base_w * noise.uniform(0.98, 1.02, pause)]
    for length in lengths:
        pieces += [base_w * (1 + growth) * noise.uniform(0.98, 1.02, length), base_w * noise.uniform(0.98, 1.02, pause)]
    watts = np.concatenate(pieces)
    found = power_levels(series(watts))
    assert found.base_w == pytest.approx(base_w, rel=0.02)
    edges = np.cumsum([len(piece) for piece in pieces])
    assert [(burst.begin_s, burst.end_s) for burst in found.bursts] == list(zip(edges[::2], edges[1::2], strict=False))
    inside = sum(watts[int(burst.begin_s) : int(burst.end_s)].sum() for burst in found.bursts)
    assert sum(burst.energy_j for burst in found.bursts) == pytest.approx(inside)


@pytest.mark.parametrize("number", [20, 60, 2000])
def test_noise_has_no_two_levels(number):
    noise = np.random.default_rng(1)
    for _ in range(20):
        assert power_levels(series(100 + 20 * noise.normal(size=number))).base_w is None
        assert power_levels(series(noise.uniform(50, 150, number))).base_w is None


def test_steady_power_and_a_few_samples_tell_no_base():
    assert power_levels(series([80.0] * 100)).base_w is None
    assert power_levels(series([80.0] * 50 + [84.0] * 50)).base_w is None, "5 % more is no burst"
    assert power_levels(series([10.0] * 5 + [100.0] * 5)).base_w is None
    assert power_levels(series([np.nan] * 100)).base_w is None

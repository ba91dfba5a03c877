"""Arithmetic on arrays, against numpy's own."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from eprof.base.arrays import codes_in, middle_share

NUMBERS = st.floats(0, 1e9) | st.sampled_from([np.nan, 1.0, 1e-12])


@given(arrays(np.float64, array_shapes(max_dims=3, max_side=40), elements=NUMBERS), st.floats(0, 1))
@pytest.mark.filterwarnings("ignore:invalid value")
def test_the_middle_share_ends_at_quantiles(numbers, share):
    expected = np.quantile(numbers, [(1 - share) / 2, (1 + share) / 2], axis=-1)
    np.testing.assert_array_equal(middle_share(numbers, share), expected)


@given(arrays(np.int64, st.integers(0, 50), elements=st.integers(-1, 60)))
def test_codes_that_occur_are_the_unique_ones(codes):
    assert codes_in(codes) == np.unique(codes).tolist()

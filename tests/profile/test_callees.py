"""Energy with callees: shares of what ran beneath each call, circles of functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.base.arrays import Floats
from eprof.base.marks import Mark
from eprof.profile import callees

NOTHING, ESTIMATED, MISSING = 0, int(Mark.ESTIMATED), int(Mark.MISSING)


def _summed(joules, beneath) -> Floats:
    return callees._summed(joules, np.zeros(len(joules), dtype=int), beneath).energy_j


def test_a_caller_gets_the_share_that_ran_beneath_its_calls():
    # main calls a and b; both call leaf, b twice as long. Joules: main 1, a 2, b 3, leaf 30.
    beneath = {0: {1: 110.0, 2: 220.0}, 1: {3: 100.0}, 2: {3: 200.0}}
    assert _summed(np.array([1.0, 2.0, 3.0, 30.0]), beneath).tolist() == [36, 12, 23, 30]


def test_functions_that_call_each_other_have_the_energy_of_the_circle():
    beneath = {0: {1: 50.0}, 1: {2: 40.0}, 2: {1: 30.0, 3: 10.0}}
    assert _summed(np.array([1.0, 2.0, 4.0, 8.0]), beneath).tolist() == [15, 14, 14, 8]


def test_a_caller_has_the_marks_of_all_that_it_calls_and_no_other():
    # main -> a <-> b -> leaf, whose energy is a lower bound; other is called by main too.
    beneath = {0: {1: 50.0, 4: 9.0}, 1: {2: 40.0}, 2: {1: 30.0, 3: 10.0}}
    marks = np.array([NOTHING, ESTIMATED, NOTHING, MISSING, NOTHING])
    above = ESTIMATED | MISSING
    assert callees._summed(np.ones(5), marks, beneath).marks.tolist() == [above, above, above, MISSING, NOTHING]


@given(
    joules=st.lists(st.floats(0, 1e3), min_size=2, max_size=12),
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.floats(1, 1e6)), max_size=30),
)
@settings(max_examples=60)
def test_roots_have_all_of_it(joules, edges):
    """Callers come before callees here, so there are no circles: what nobody calls has the sum of all."""
    number = len(joules)
    beneath: dict[int, dict[int, float]] = {}
    for one, other, weight in edges:
        caller, callee = sorted((one % number, other % number))
        if caller != callee:
            beneath.setdefault(caller, {})[callee] = weight
    called = {callee for callees in beneath.values() for callee in callees}
    summed = _summed(np.array(joules), beneath)
    assert sum(summed[root] for root in range(number) if root not in called) == pytest.approx(sum(joules))


def test_a_chain_of_many_thousand_calls_is_no_recursion_of_ours():
    number = 20_000
    summed = _summed(np.ones(number), {place: {place + 1: 1.0} for place in range(number - 1)})
    assert summed[0] == number

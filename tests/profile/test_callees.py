"""Energy with callees: shares of what ran beneath each call, circles of functions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eprof
from eprof.base.arrays import Floats
from eprof.base.vocabulary import Mark
from eprof.profile import functions

NOTHING, ESTIMATED, MISSING = 0, int(Mark.ESTIMATED), int(Mark.MISSING)


def _summed(joules, beneath) -> Floats:
    both = np.stack([joules, 0.25 * joules], axis=1)
    summed = functions._summed(both, np.zeros(len(joules), dtype=int), beneath)
    assert summed.above_j == pytest.approx(0.25 * summed.energy_j)
    return summed.energy_j


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
    assert functions._summed(np.ones((5, 2)), marks, beneath).marks.tolist() == [above, above, above, MISSING, NOTHING]


def test_what_a_library_does_is_told_by_the_programs_own_function_above_it():
    # main and sort call qsort, which calls memcpy; build calls memcpy on its own, from two lines.
    called_by = {
        "qsort": {("main", "a.c:1"): 30.0, ("sort", "a.c:2"): 90.0},
        "memcpy": {("qsort", ""): 60.0, ("build", "a.c:3"): 15.0, ("build", "a.c:4"): 5.0, ("memcpy2", ""): 0.0},
    }
    told = functions._own_callers("memcpy", called_by, {"qsort", "memcpy"})
    assert [(caller.name, caller.place, round(caller.share, 6)) for caller in told] == [
        ("sort", "a.c:2", 0.5625),
        ("build", "a.c:3", 0.25),
        ("main", "a.c:1", 0.1875),
    ]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.dictionaries(st.sampled_from("abcdxy"), st.integers(0, 9)), max_size=4)
)
def test_shares_of_callers_are_no_more_than_all_whoever_calls_whom(calls):
    called_by = {name: {(caller, ""): float(number) for caller, number in of.items()} for name, of in calls.items()}
    for name in called_by:
        told = functions._own_callers(name, called_by, set("abcd"))
        assert sum(caller.share for caller in told) <= 1 + 1e-9 and {caller.name for caller in told} <= set("xy")


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


PROFILE = """version: 1
creator: callgrind-3.19.0
cmd: ./a
positions: instr
events: Ir Dr Dw
ob=/a
fn=main
0x10 4 0 1
cfn=work
calls=3 0x40
0x14 {work} 5 0
cfn=other
calls=3 0x80
0x18 {other} 5 0
fn=work
0x40 {work} 5 0
fn=other
0x80 {other} 5 0
fn=lone
0xa0 7 5 0
cfn=other
calls=1 0x80
0xa4 {lone} 0 0
totals: 61 15 1
"""


def test_a_function_of_two_ranks_has_the_callees_of_its_own_rank(tmp_path):
    """Each rank alone, and both together with a row a rank: the same joules for each function of each rank."""
    shares = [{"work": 30, "other": 20, "lone": 20}, {"work": 10, "other": 40, "lone": 10}]
    paths = []
    for rank, instructions in enumerate(shares):
        paths.append(tmp_path / f"rank{rank}" / "callgrind.out.1")
        paths[-1].parent.mkdir()
        paths[-1].write_text(PROFILE.format(**instructions))
    together = eprof.load(*paths, parts="rank", time=["main=2", "work=10", "other=6", "lone=4"]).energy("icelake-sp")
    rows = together.counts.rows
    found = dict(zip(zip(rows.part, rows.kernel, strict=True), functions.inclusive(together).energy_j, strict=True))
    own, above, found_above = (
        dict(zip(zip(rows.part, rows.kernel, strict=True), joules, strict=True))
        for joules in (together.split.total_j, together.split.work_j, functions.inclusive(together).above_j)
    )
    for rank, instructions in zip("01", shares, strict=True):
        in_main = instructions["other"] / (instructions["other"] + instructions["lone"])
        main_j = own[rank, "main"] + own[rank, "work"] + in_main * own[rank, "other"]
        assert found[rank, "main"] == pytest.approx(main_j)
        assert found[rank, "work"] == pytest.approx(own[rank, "work"])
        work_j = above[rank, "main"] + above[rank, "work"] + in_main * above[rank, "other"]
        assert found_above[rank, "main"] == pytest.approx(work_j) and 0 < work_j < main_j
        assert found[rank, "lone"] == pytest.approx(own[rank, "lone"] + (1 - in_main) * own[rank, "other"])

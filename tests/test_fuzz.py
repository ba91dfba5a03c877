"""The fuzzer's invariants on a small sample of every damage, and on everything that it ever found."""

import random
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

HERE = Path(__file__).parent / "fuzz"
sys.path.insert(0, str(HERE))
import damage
from check import attempt, check, check_less, check_whole
from seeds import SEEDS

FINDINGS = sorted((HERE / "findings").glob("*"))
OTHERS = [make() for make in SEEDS.values()]


@pytest.mark.parametrize("name", SEEDS)
def test_every_seed_is_a_log_and_stands_in_the_corpus(name):
    data = SEEDS[name]()
    assert attempt(data) is not None
    check_whole(data)
    if name != "nvprof-sqlite":  # SQLite writes its version into the file
        assert (HERE / "corpus" / name).read_bytes() == data, "run tests/fuzz/seeds.py again"


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(SEEDS)), seed=st.integers(0, 2**32))
def test_damaged_logs_give_an_answer_or_one_sentence(name, seed):
    check(damage.damaged(SEEDS[name](), seed, OTHERS))


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(SEEDS)), seed=st.integers(0, 2**32), how=st.sampled_from(damage.ONLY_LESS))
def test_a_log_that_lost_something_has_no_higher_total(name, seed, how):
    data = SEEDS[name]()
    check_less(data, how(data, random.Random(seed), OTHERS))


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: path.name)
def test_what_the_fuzzer_found_stays_mended(path):
    check(path.read_bytes())
    check_whole(path.read_bytes())


def test_the_checks_can_fail(monkeypatch):
    data = SEEDS["nvprof-summary"]()
    with pytest.raises(AssertionError, match="of a part"):
        check_less(data.replace(b"1000,1000,1000", b"1,1,1"), data)
    monkeypatch.setattr("check.SLOW_S", -1e9)
    with pytest.raises(AssertionError, match="too slow"):
        check(data)

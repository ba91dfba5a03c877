"""The fuzzers' invariants on a small sample of every damage, and on everything that they ever found."""

import random
import sys
from pathlib import Path

import pytest
from frames_support import combine
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.base.kernels import bare
from eprof.commands.diff import matching

HERE = Path(__file__).parents[1] / "fuzz"
sys.path.insert(0, str(HERE))
import check as checks
import damage
import others
import written
from check import attempt, check, check_less, check_rows
from run import Run, add_totals, read_totals
from seeds import BY_LIBRARIES, REFUSED, SEEDS
from targets import TARGETS, LogTarget, is_part

FINDINGS = sorted(path for path in (HERE / "findings").glob("*/*"))
LOGS = sorted(name for name, target in TARGETS.items() if isinstance(target, LogTarget))


@pytest.fixture(autouse=True)
def only_endless_work_is_too_slow(monkeypatch):
    """The limits of the nightly runs are for a machine that does nothing else."""
    monkeypatch.setattr(checks, "SLOW_S", 60.0)


@pytest.mark.parametrize("name", SEEDS)
def test_every_seed_is_a_log_and_stands_in_the_corpus(name):
    target = TARGETS[name]
    assert attempt(target.seed, columns=target.columns) is not None
    for turn in (0, 1):
        target.check(target.seed, turn)
    if name not in BY_LIBRARIES:
        assert (HERE / "corpus" / name).read_bytes() == target.seed, "run tests/fuzz/seeds.py again"


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_log_is_refused(name):
    assert attempt(TARGETS[name].seed) is None


@pytest.mark.parametrize("name", others.SEEDS)
def test_every_other_seed_is_good(name):
    checks.refusals.clear()
    TARGETS[name].check(TARGETS[name].seed, 0)
    assert not checks.refusals, list(checks.refusals)


@settings(max_examples=40)
@given(name=st.sampled_from(sorted(TARGETS)), number=st.integers(0, 2**32))
def test_damaged_inputs_give_an_answer_or_one_sentence(name, number):
    target = TARGETS[name]
    target.check(target.spoilt(number), number)


@settings(max_examples=15)
@given(name=st.sampled_from(LOGS), seed=st.integers(0, 2**32), how=st.sampled_from(damage.ONLY_LESS))
def test_a_log_that_lost_something_has_no_higher_total(name, seed, how):
    target = TARGETS[name]
    check_less(target.seed, how(target.seed, random.Random(seed), target.others), target.columns)


OUTPUT = b"an output line of the program\n" * 160  # longer than the head in which NUL bytes tell a binary file


@settings(max_examples=150)
@given(
    name=st.sampled_from([name for name in LOGS if name not in BY_LIBRARIES]),
    place=st.integers(0, 2**32),
    replaced=st.integers(0, 1),
    before=st.sampled_from([b"", OUTPUT]),
)
def test_a_nul_byte_in_a_log_makes_no_other_number_without_a_mark(name, place, replaced, before):
    target = TARGETS[name]
    at = place % (len(target.seed) - replaced + 1)
    spoilt = before + target.seed[:at] + b"\0" + target.seed[at + replaced :]
    whole, read = (attempt(data, columns=target.columns) for data in (before + target.seed, spoilt))
    if whole is not None and read is not None and not all(table.lacks_rows for table in read.tables):
        assert checks.totals(read) == checks.totals(whole)


@pytest.mark.parametrize("path", FINDINGS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_the_fuzzer_found_stays_mended(path):
    target = TARGETS[path.parent.name]
    data = path.read_bytes()
    for turn in (1, 2) if isinstance(target, LogTarget) and not is_part(data, target.seed) else (0,):
        target.check(data, turn)


def test_a_number_stands_for_the_same_input_always():
    for name in ("ncu-raw", "nvprof-wide"):
        assert [TARGETS[name].spoilt(number) for number in range(50)] == [
            TARGETS[name].spoilt(number) for number in range(50)
        ]


USAGE_HEAD = b"Time(%)      Time     Calls       Avg       Min       Max  Name\n"
COUNTERS_HEAD = (
    b'Invocations    Metric Name    Metric Description    Min    Max    Avg\nDevice "a (0)"\n    Kernel: k\n'
)
LONG_LINES = {
    "spaces in a text summary": USAGE_HEAD + b" 60.0%  3.0ms 3 1 1 1  k" + b" " * 300_000 + b".\n",
    "spaces before a text summary": USAGE_HEAD + b" " * 300_000 + b"x\n",
    "spaces in text metrics": COUNTERS_HEAD + b" 2  ipc  Executed" + b" " * 300_000 + b" IPC  1  1\n",
    "words in text metrics": COUNTERS_HEAD + b" 2  ipc  Executed" + b" a" * 300_000 + b"\n",
    "spaces behind a kernel": COUNTERS_HEAD + b"    Kernel: k" + b" " * 300_000 + b".\n",
    "digits in a message": b"==1== " + b"1" * 300_000 + b" record\n",
    "digits in a cell": SEEDS["nvprof-metrics"]().replace(b"500,500,500", b"1,1," + b"1" * 300_000 + b"K1"),
    "fields of a row": SEEDS["ncu-raw"]().replace(b'"10"', b"1," * 300_000),
    "columns of one name": SEEDS["nvprof-wide"]().replace(b'"inst_integer"', b'"a",' * 200_000),
}


@pytest.mark.parametrize("what", LONG_LINES)
def test_a_very_long_line_takes_no_time_as_the_square_of_its_length(what):
    check_rows(LONG_LINES[what])


def test_names_of_many_letters_are_compared_in_no_time_as_the_square_of_their_length():
    with checks.strictly(b""):
        assert 0.99 < matching.ratio("x" * 200_000 + "a(int)", "x" * 200_000 + "b(int)") < 1
        assert matching.ratio("x" * 200_000, "y" * 200_000) == 0
        assert matching.ratio("f<" + "x" * 400 + ">(int)", "f<" + "x" * 400 + ">(int)") == 1
        bare("<" * 200_000)


def test_some_of_the_lines_are_part_of_a_log():
    assert is_part(b"a\nc\n", b"a\nb\nc\n") and is_part(b"\nb", b"a\nb\nc\n")
    assert not is_part(b"c\na\n", b"a\nb\nc\n") and not is_part(b"a\na\n", b"a\nb\nc\n")


def test_the_checks_can_fail(monkeypatch):
    data = SEEDS["nvprof-metrics"]()
    with pytest.raises(AssertionError, match="of a part"):
        check_less(data.replace(b"1000,1000,1000", b"1,1,1"), data)
    monkeypatch.setattr(checks, "SLOW_S", -1e9)
    with pytest.raises(AssertionError, match="too slow"):
        check(data)


@pytest.mark.parametrize("name", ["nvprof-metrics", "nvprof-sqlite", "ncu-raw", "nsys", "oclgrind"])
def test_rows_are_looked_at_before_they_are_summed(name, monkeypatch):
    calls = []
    monkeypatch.setattr(checks, "_sound", lambda values, what: calls.append(what))
    check_rows(TARGETS[name].seed)
    assert "a number of launches" in calls and len(calls) > 1


@pytest.mark.parametrize(("values", "unit"), [([-1], "count"), ([1, float("inf")], "count"), ([float("inf")], "other")])
def test_values_that_are_none_are_seen(values, unit):
    checks._sound_counts([0, float("nan"), 1e30], "count")
    checks._sound_counts([-3.5], "other")
    with pytest.raises(AssertionError, match="a count that is none"):
        checks._sound_counts(values, unit)


def test_the_smallest_input_of_a_finding_is_kept_and_all_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("run.HERE", tmp_path)
    target = TARGETS["nsys"]
    monkeypatch.setattr(type(target), "check", lambda *_: 1 / 0)
    run = Run(target)
    run.some(5)
    assert (run.inputs, run.broken) == (5, 5) and (tmp_path / "findings" / "nsys").is_dir()
    (kept,) = (tmp_path / "findings" / "nsys").iterdir()
    assert kept.read_bytes() == min((target.spoilt(number) for number in range(5)), key=len)
    for _ in range(2):
        add_totals(tmp_path / "totals.json", "nsys", random=run.inputs, broken=run.broken)
    assert read_totals(tmp_path / "totals.json") == {"nsys": {"random": 10, "broken": 10}}


def test_an_endless_reader_is_stopped(monkeypatch):
    monkeypatch.setattr(checks, "ENDLESS_S", 0.05)
    monkeypatch.setattr(checks, "read", lambda *_, **__: [None for _ in iter(int, 1)])
    with pytest.raises(TimeoutError):
        attempt(b"")


@settings(max_examples=40)
@given(
    facts=written.facts, name=st.sampled_from(list(written.FORMATS)), wrapping=st.sampled_from(list(written.WRAPPINGS))
)
def test_a_log_says_what_was_written_into_it(facts, name, wrapping):
    log = attempt(written.write(facts, name, wrapping))
    assert log is not None, list(checks.refusals)
    joined = combine([log])
    _, counter, has_times = written.FORMATS[name]
    rows = {row["kernel"]: i for i, row in joined.kernels.iterrows()}
    assert rows.keys() == {one.name for one in facts}
    for one in facts:
        row = rows[one.name]
        assert joined.kernels["launches"][row] == one.launches
        if counter is not None:
            assert joined.counters[counter][row] == one.launches * one.count
        if has_times:
            assert joined.kernels["time_s"][row] == pytest.approx(one.launches * one.time_ns * 1e-9, rel=1e-6)


@settings(max_examples=15)
@given(
    facts=written.facts,
    name=st.sampled_from(list(written.FORMATS)),
    seed=st.integers(0, 2**32),
    how=st.sampled_from(damage.ONLY_LESS),
)
def test_a_written_log_that_lost_something_has_no_higher_total(facts, name, seed, how):
    data = written.write(facts, name)
    check_less(data, how(data, random.Random(seed), [data]))

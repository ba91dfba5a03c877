"""Times: recovered from pairs of counters, or said by the user."""

import numpy as np
import pytest
from test_counts_launches import make, real

from eprof import counters, times
from eprof.errors import UsageError
from eprof.marks import Mark

E = int(Mark.ESTIMATED)


def recover(launches, capability):
    return times.recover(launches, counters.find("nvprof", capability))


def test_lavamd_on_a_gtx_760():
    launches, source, warnings = recover(real("gtx760-dev1-metrics-summary-lavamd.csv"), "3.0")
    assert launches.kernels["time_s"].iloc[0] == pytest.approx(0.16201, rel=1e-4)
    assert pytest.approx(0.16201, rel=1e-3) == 5680729 * 32 / (1.044944 * 2**30)
    assert launches.kernels["time_marks"].iloc[0] == E
    assert source == "recovered from 6 pairs of counters (bytes over rate), which agree within 0.05%"
    assert warnings == ()


def test_two_launches_on_a_k20c_are_a_total():
    launches, _, _ = recover(real("k20c-metrics-summary.csv"), "3.5")
    assert launches.kernels["launches"].iloc[0] == 2
    assert launches.kernels["time_s"].iloc[0] == pytest.approx(2 * 44206708 * 32 / 24.389612e9, rel=1e-4)


def test_a_titan_agrees_with_its_clock():
    """88 336 276 SM cycles on 14 SMs at the time that the rates imply: the base clock of the card is 837 MHz."""
    launches, _, _ = recover(real("titan-wide-trace-events-and-metrics.csv"), "3.5")
    hertz = 88336276 / 14 / launches.kernels["time_s"].iloc[0]
    assert 0.83e9 < hertz < 1.1e9


@pytest.mark.parametrize(
    ("name", "capability", "pairs"),
    [
        ("gtx950-cuda8-metrics-summary-heartwall.csv", "5.2", "8 pairs"),
        ("gtx1080-wide-trace-metrics-correlation-id.csv", "6.1", "pairs"),
        ("gtx1080ti-cuda8-metrics-summary-cublas-templates.csv", "6.1", "pairs"),
    ],
)
def test_pairs_of_healthy_logs_agree(name, capability, pairs):
    launches, source, warnings = recover(real(name), capability)
    assert pairs in source and warnings == ()
    assert launches.kernels["time_s"].notna().all()


PAIR = {"dram_read_transactions": 1e6, "dram_read_throughput": 32e9}


def test_known_times_are_left_alone():
    launches = make(PAIR, time_s=[0.5, np.nan], names=["a", "b"])
    timed, source, _ = recover(launches, "3.5")
    assert timed.kernels["time_s"].tolist() == [0.5, pytest.approx(0.001)]
    assert timed.kernels["time_marks"].tolist() == [0, E]
    assert source == "recovered from 1 pair of counters (bytes over rate) for 1 of 2 kernels"
    assert launches.kernels["time_s"].isna().sum() == 1, "the argument is not changed"


def test_nothing_to_recover_from():
    launches = make({"dram_read_transactions": 1e6})
    assert recover(launches, "3.5") == (launches, None, ())
    assert recover(make(PAIR, time_s=1.0), "3.5")[1:] == (None, ())


def test_rates_of_zero_and_few_bytes_are_left_out():
    poor = {
        "l2_write_transactions": 100.0,
        "l2_write_throughput": 1e9,
        "l2_read_transactions": 0.0,
        "l2_read_throughput": 0.0,
    }
    timed, source, _ = recover(make(PAIR | poor), "3.5")
    assert timed.kernels["time_s"].iloc[0] == pytest.approx(0.001)
    assert "1 pair " in source
    alone, _, _ = recover(make({"l2_write_transactions": 100.0, "l2_write_throughput": 32e6}), "3.5")
    assert alone.kernels["time_s"].iloc[0] == pytest.approx(1e-4), "a poor pair is better than none"
    assert recover(make({"l2_write_transactions": 3.0, "l2_write_throughput": 32e6}), "3.5")[1] is None


def test_few_bytes_a_launch_are_few_however_many_launches():
    """100,000 sectors in all are 100 for each of 1,000 launches: rounded too much beside a pair of 2,000 a launch."""
    many = {"dram_read_transactions": 2e6, "dram_read_throughput": 32e9}
    few = {"l2_read_transactions": 1e5, "l2_read_throughput": 32e9}
    timed, source, _ = recover(make(many | few, launches=1000), "3.5")
    assert "1 pair " in source and timed.kernels["time_s"].iloc[0] == pytest.approx(0.002)
    single, source, _ = recover(make(many | few, launches=1), "3.5")
    assert "2 pairs " in source and single.kernels["time_s"].iloc[0] < 0.002


def test_pairs_far_apart_are_warned_of():
    far = {"l2_read_transactions": 1e6, "l2_read_throughput": 16e9}
    close = {"l2_write_transactions": 1e6, "l2_write_throughput": 31.9e9}
    timed, _, warnings = recover(make(PAIR | far | close, names=["mine(int)"]), "3.5")
    assert timed.kernels["time_s"].iloc[0] == pytest.approx(32e6 / 31.9e9), "the median"
    assert len(warnings) == 1 and "more than 5% apart in `mine`" in warnings[0] and "100%" in warnings[0]
    many, _, warnings = recover(make(PAIR | far, names=["a", "b"]), "3.5")
    assert "for 2 kernels, most in `a`" in warnings[0]


@pytest.mark.parametrize("definition", counters.definitions(), ids=lambda one: one.name)
def test_every_pair_can_be_used(definition):
    for pair in definition.time_pairs:
        names = definition.counters_of(pair.bytes)[:1]
        rates = definition.counters_of(pair.rate)
        values = {name: 1e6 for name in names} | {name: 1e9 for name in rates}
        assert times.recover(make(values), definition)[1] is not None, pair.bytes.text


# ------------------------------------------------------------------------------------------------- said by the user


def test_the_time_of_a_single_kernel():
    assert times.total(["a=1", "0.25"]) == 0.25 and times.total(["a=1"]) is None
    timed = times.share(make({"inst_misc": 1.0}), 0.25)
    assert timed.kernels["time_s"].tolist() == [0.25] and timed.kernels["time_marks"].tolist() == [0]


def test_times_by_name():
    names = ["k<int, n=3>(float*)", "plain(int)", "other"]
    timed = times.given(make({}, names=names), ["k<int, n=3>(float*)=1.5", "plain=2", "regex:^oth=3e-3"])
    assert timed.kernels["time_s"].tolist() == [1.5, 2, 0.003]
    assert timed.kernels["time_marks"].tolist() == [0, 0, 0]


def test_a_name_that_fits_several_rows_is_shared():
    launches = make({}, names=["a(int)", "a(float)", "b"], launches=[1, 3, 1])
    timed = times.given(launches, ["a=4"])
    assert timed.kernels["time_s"].tolist()[:2] == [1, 3] and timed.kernels["time_marks"].tolist() == [E, E, 0]
    timed = times.given(make({}, names=["a(int)", "a(float)"], time_s=[1.0, 1.0]), ["regex:a=4"])
    assert timed.kernels["time_s"].tolist() == [2, 2]


def test_a_total_is_shared_in_proportion():
    timed = times.share(make({}, names=["a", "b"], time_s=[1.0, 3.0]), 8)
    assert timed.kernels["time_s"].tolist() == [2, 6] and timed.kernels["time_marks"].tolist() == [E, E]


def test_a_total_that_nothing_splits_is_a_row_of_its_own():
    launches = make({"inst_misc": [5.0, 6.0]}, names=["a", "b"], time_s=[1.0, np.nan])
    timed = times.share(launches, 8)
    assert timed.kernels["kernel"].tolist() == ["a", "b", times.TOGETHER]
    assert timed.kernels["time_s"].sum() == 8 and timed.kernels["launches"].tolist()[2] == 0
    assert timed.counters["inst_misc"].tolist() == [5, 6, 0]
    assert timed.kernels["time_marks"].tolist()[2] == 0
    with pytest.raises(UsageError, match="take 0.5 s longer than the total given"):
        times.share(launches, 0.5)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["fast"], "--time fast: `fast` is no number of seconds"),
        (["a=soon"], "--time a=soon: `soon` is no number of seconds"),
        (["a=-1"], "`-1` is no number of seconds"),
        (["a=nan"], "`nan` is no number of seconds"),
        (["a=inf"], "`inf` is no number of seconds"),
        (["c=1"], "no kernel is called `c`; the log has a, b."),
        (["regex:(=1"], "not a regular expression"),
        (["a=1", "b=1", "1", "2"], "gives two total times, 1 s and 2 s; give one"),
    ],
)
def test_what_cannot_be(specs, message):
    with pytest.raises(UsageError) as caught:
        times.given(make({}, names=["a(int)", "b"]), specs)
        times.total(specs)
    assert message in str(caught.value)

"""Times: recovered from pairs of counters, or said by the user."""

import re
from pathlib import Path

import numpy as np
import pytest
from logs_support import EVENTS, event, profiled
from test_counts_launches import make, real

import eprof
from eprof import costs
from eprof.base.errors import EprofError, UsageError
from eprof.base.vocabulary import Mark
from eprof.commands.tune import grids
from eprof.counts import definition_files, times

E = int(Mark.ESTIMATED)


def recover(launches, capability):
    return times.recover(launches, definition_files.find("nvprof", capability))


def test_lavamd_on_a_gtx_760():
    launches, source, warnings = recover(real("gtx760-dev1-metrics-summary-lavamd.csv"), "3.0")
    assert launches.rows.time_s[0] == pytest.approx(0.16201, rel=1e-4)
    assert pytest.approx(0.16201, rel=1e-3) == 5680729 * 32 / (1.044944 * 2**30)
    assert launches.rows.time_marks[0] == E
    assert source == "bytes over bytes a second, of 6 pairs of counters, which agree within 0.05%"
    assert warnings == ()


def test_two_launches_on_a_k20c_are_a_total():
    launches, _, _ = recover(real("k20c-metrics-summary.csv"), "3.5")
    assert launches.rows.launches[0] == 2
    assert launches.rows.time_s[0] == pytest.approx(2 * 44206708 * 32 / 24.389612e9, rel=1e-4)


def test_a_titan_agrees_with_its_clock():
    """88 336 276 SM cycles on 14 SMs at the time that the rates imply: the base clock of the card is 837 MHz."""
    launches, _, _ = recover(real("titan-wide-trace-events-and-metrics.csv"), "3.5")
    hertz = 88336276 / 14 / launches.rows.time_s[0]
    assert 0.83e9 < hertz < 1.1e9


def test_elapsed_cycles_are_time_where_nothing_else_tells_it(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text(profiled(1, EVENTS, event("elapsed_cycles_sm", 13 * 706e6, launches=2)))
    energy = eprof.load(path).energy()
    assert energy.time_s == pytest.approx(2.0, rel=0.01), "13 multiprocessors at 706 MHz"
    assert energy.counts.rows.time_marks[0] == E | int(Mark.ASSUMED)
    assert "elapsed cycles over the 9.177 billion a second" in energy.time_from
    assert energy.energy_j >= energy.costs.constant_power_w * energy.time_s
    path.write_text(path.read_text().replace("Tesla K20c", "Tesla K40c"))
    seconds = 2 * 13 * 706 / (15 * 745)
    assert eprof.load(path).energy().time_s == pytest.approx(seconds, rel=0.01), "shipped at 745 MHz, not at 875"
    timed = eprof.load(path, time=["1.5"])
    assert timed.energy().time_s == 1.5 and "elapsed" not in timed.energy().time_from


@pytest.mark.parametrize(
    ("name", "capability", "pairs"),
    [
        ("gtx950-cuda8-metrics-summary-heartwall.csv", "5.2", "9 pairs"),
        ("gtx1080-wide-trace-metrics-correlation-id.csv", "6.1", "pairs"),
        ("gtx1080ti-cuda8-metrics-summary-cublas-templates.csv", "6.1", "pairs"),
    ],
)
def test_pairs_of_healthy_logs_agree(name, capability, pairs):
    launches, source, warnings = recover(real(name), capability)
    assert pairs in source and warnings == ()
    assert not np.isnan(launches.rows.time_s).any()


PAIR = {"dram_read_transactions": 1e6, "dram_read_throughput": 32e9}


def test_known_times_are_left_alone():
    launches = make(PAIR, time_s=[0.5, np.nan], names=["a", "b"])
    timed, source, _ = recover(launches, "3.5")
    assert timed.rows.time_s.tolist() == [0.5, pytest.approx(0.001)]
    assert timed.rows.time_marks.tolist() == [0, E]
    assert source == "bytes over bytes a second, of 1 pair of counters for 1 of 2 kernels"
    assert np.isnan(launches.rows.time_s).sum() == 1, "the argument is not changed"


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
    assert timed.rows.time_s[0] == pytest.approx(0.001)
    assert "1 pair " in source
    alone, _, _ = recover(make({"l2_write_transactions": 100.0, "l2_write_throughput": 32e6}), "3.5")
    assert alone.rows.time_s[0] == pytest.approx(1e-4), "a poor pair is better than none"
    assert recover(make({"l2_write_transactions": 3.0, "l2_write_throughput": 32e6}), "3.5")[1] is None


def test_few_bytes_a_launch_are_few_however_many_launches():
    """100,000 sectors in all are 100 for each of 1,000 launches: rounded too much beside a pair of 2,000 a launch."""
    many = {"dram_read_transactions": 2e6, "dram_read_throughput": 32e9}
    few = {"l2_read_transactions": 1e5, "l2_read_throughput": 32e9}
    timed, source, _ = recover(make(many | few, launches=1000), "3.5")
    assert "1 pair " in source and timed.rows.time_s[0] == pytest.approx(0.002)
    single, source, _ = recover(make(many | few, launches=1), "3.5")
    assert "2 pairs " in source and single.rows.time_s[0] < 0.002


def test_pairs_that_lack_launches_bound_the_time_or_stand_back():
    """Bytes that lack launches give too short a time: used only where nothing better is known, and marked so."""
    lacks = {"dram_read_transactions": int(Mark.MISSING)}
    alone, source, _ = recover(make(PAIR, marks=lacks), "3.5")
    assert alone.rows.time_s[0] == pytest.approx(1e-3)
    assert alone.rows.time_marks[0] == E | int(Mark.MISSING) and "1 pair" in source
    better = {"l2_read_transactions": 3e6, "l2_read_throughput": 32e9}
    both, source, warnings = recover(make(PAIR | better, marks=lacks), "3.5")
    assert both.rows.time_s[0] == pytest.approx(3e-3) and "1 pair" in source and warnings == ()
    assert both.rows.time_marks[0] == E
    two = make({name: [value, value] for name, value in PAIR.items()}, names=["whole", "lacking"])
    two.marks["dram_read_transactions"][1] = int(Mark.MISSING)
    assert recover(two, "3.5")[0].rows.time_marks.tolist() == [E, E | int(Mark.MISSING)]


def test_two_pairs_are_said_to_agree():
    other = {"l2_read_transactions": 1e6, "l2_read_throughput": 32e9}
    _, source, warnings = recover(make(PAIR | other), "3.5")
    assert source == "bytes over bytes a second, of 2 pairs of counters, which agree within 0.01%" and not warnings
    _, source, _ = recover(make(PAIR), "3.5")
    assert source == "bytes over bytes a second, of 1 pair of counters"


def test_kernels_with_one_pair_and_with_several_are_said_in_one_phrase():
    other = {"l2_read_transactions": [1e6, np.nan], "l2_read_throughput": [32e9, np.nan]}
    _, source, _ = recover(make({name: [value, value] for name, value in PAIR.items()} | other), "3.5")
    assert source == "bytes over bytes a second, of 1 to 2 pairs of counters, which agree within 0.01%"


def test_pairs_far_apart_are_warned_of():
    far = {"l2_read_transactions": 1e6, "l2_read_throughput": 16e9}
    close = {"l2_write_transactions": 1e6, "l2_write_throughput": 31.9e9}
    timed, _, warnings = recover(make(PAIR | far | close, names=["mine(int)"]), "3.5")
    assert timed.rows.time_s[0] == pytest.approx(32e6 / 31.9e9), "the median"
    assert len(warnings) == 1 and "more than 5% apart in `mine`" in warnings[0] and "100%" in warnings[0]
    many, _, warnings = recover(make(PAIR | far, names=["a", "b"]), "3.5")
    assert "for 2 kernels, most in `a`" in warnings[0]


@pytest.mark.parametrize("definition", definition_files.definitions(), ids=lambda one: one.name)
def test_every_pair_can_be_used(definition):
    for pair in definition.time_pairs:
        names = definition.counters_of(pair.bytes)[:1]
        rates = definition.counters_of(pair.rate)
        values = {name: 1e6 for name in names} | {name: 1e9 for name in rates}
        assert times.recover(make(values), definition)[1] is not None, pair.bytes.text


# ------------------------------------------------------------------------------------------------- said by the user


def test_the_time_of_a_single_kernel():
    assert times.total(["a=1", "0.25"]) == 0.25 and times.total(["a=1"]) is None
    timed, how = times.share(make({"inst_misc": 1.0}), 0.25)
    assert how == "given by --time"
    assert timed.rows.time_s.tolist() == [0.25] and timed.rows.time_marks.tolist() == [0]


def test_times_by_name():
    names = ["k<int, n=3>(float*)", "plain(int)", "other"]
    timed = times.given(make({}, names=names), ["k<int, n=3>(float*)=1.5", "plain=2", "regex:^oth=3e-3"])
    assert timed.rows.time_s.tolist() == [1.5, 2, 0.003]
    assert timed.rows.time_marks.tolist() == [0, 0, 0]


def test_a_name_that_fits_several_rows_is_shared():
    launches = make({}, names=["a(int)", "a(float)", "b"], launches=[1, 3, 1])
    timed = times.given(launches, ["a=4"])
    assert timed.rows.time_s.tolist()[:2] == [1, 3] and timed.rows.time_marks.tolist() == [E, E, 0]
    timed = times.given(make({}, names=["a(int)", "a(float)"], time_s=[1.0, 1.0]), ["regex:a=4"])
    assert timed.rows.time_s.tolist() == [2, 2]


def test_rows_that_a_name_fits_share_by_their_known_times_and_else_by_their_launches():
    timed = make({"inst_integer": [1.0, 1.0]}, launches=[1, 1], time_s=[3.0, 1.0], names=["k(int)", "k(float)"])
    assert times.given(timed, ["k=8"]).rows.time_s.tolist() == [6.0, 2.0]
    half = make({"inst_integer": [1.0, 1.0]}, launches=[1, 3], time_s=[3.0, np.nan], names=["k(int)", "k(float)"])
    assert times.given(half, ["k=8"]).rows.time_s.tolist() == [2.0, 6.0]


@pytest.mark.parametrize(
    ("written", "time_s"), [("7ms", 0.007), ("2 min", 120), ("5 µs", 5e-6), ("1.5S", 1.5), (".5", 0.5)]
)
def test_times_have_the_units_that_people_type(written, time_s):
    assert times.given(make({}, names=["a"]), [f"a={written}"]).rows.time_s.tolist() == [pytest.approx(time_s)]
    assert times.total([written]) == pytest.approx(time_s)


def test_a_total_is_shared_in_proportion():
    launches = make({}, names=["a", "b"], time_s=[1.0, 3.0])
    timed, how = times.share(launches, 8)
    assert timed.rows.time_s.tolist() == [2, 6] and timed.rows.time_marks.tolist() == [E, E]
    assert how == "given by --time, shared out as the times in the logs"
    assert times.share(launches, 8, recovered="recovered from 1 pair")[1].endswith("as the times recovered from 1 pair")


def test_times_of_kernels_stay_and_the_others_share_what_is_left():
    launches = make({}, names=["a", "b", "c"], time_s=[9.0, 1.0, 3.0])
    timed, how = times.share(times.given(launches, ["a=2"]), 10, ["a=2", "10"])
    assert timed.rows.time_s.tolist() == [2, 2, 6] and timed.rows.time_marks.tolist() == [0, E, E]
    assert how == "given by --time, shared out as the times in the logs"
    specs = ["a=2", "b=3", "10"]
    timed, how = times.share(times.given(make({}, names=["a", "b", "c"]), specs), 10, specs)
    assert timed.rows.time_s.tolist() == [2, 3, 5] and timed.rows.time_marks.tolist() == [0, 0, 0]
    assert how == "given by --time", "a single kernel took the rest"


def test_a_total_that_nothing_shares_out_invents_no_kernel_and_no_time():
    launches = make({"inst_misc": [5.0, 6.0, 7.0]}, names=["a", "b", "c"], time_s=[1.0, np.nan, np.nan])
    assert times.share(launches, 8) == (launches, None)
    with pytest.raises(UsageError, match="take 0.5 s longer than the total given"):
        times.share(launches, 0.5)


@pytest.mark.parametrize(
    ("specs", "says"),
    [
        (["a=1", "a=2"], "--time a=1 and --time a=2 both give the time of `a`"),
        (["regex:.=3", "b=3"], "both give the time of `b`"),
        (["1", "a=5"], "add up to 5 s, which leaves nothing of the total of 1 s"),
        (["1", "a=1"], "leaves nothing"),
        (["1", "a=0.5", "b=0.75"], "add up to 1.25 s, and the total is 1 s"),
        (["2", "a=0.5", "b=0.75"], "add up to 1.25 s, and the total is 2 s"),
    ],
)
def test_times_that_contradict_each_other_are_wrong_usage(specs, says, tmp_path):
    with pytest.raises(UsageError, match=re.escape(says)):
        eprof.load(two_kernels(tmp_path), time=specs)


@pytest.mark.parametrize(
    "specs", [["a=1", "a=1"], ["a=1", "regex:^a=1"], ["3", "a=1", "b=2"], ["3", "3.0", "a=1"], ["3", "a=1"]]
)
def test_times_that_say_the_same_are_none(specs, tmp_path):
    profile = eprof.load(two_kernels(tmp_path), time=specs)
    by_name = dict(profile.counts().kernels[["kernel", "time_s"]].to_numpy().tolist())
    assert by_name["a(int)"] == 1 and (len(specs) == 2 and "3" not in specs or by_name["b(int)"] == 2)


def two_kernels(folder, name="two.csv"):
    """Two kernels of a K20c without times."""
    lines = ['"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"']
    for kernel, number in (("a(int)", 4e9), ("b(int)", 1e9)):
        for metric in ("inst_integer", "flop_count_dp_fma", "dram_read_transactions", "dram_write_transactions"):
            lines.append(f'"Tesla K20c (0)","{kernel}",1,"{metric}","x",{number:.0f},{number:.0f},{number:.0f}')
    (folder / name).write_text("\n".join(lines) + "\n")
    return folder / name


def test_a_total_alone_gives_the_whole_its_constant_energy_and_no_kernel_one(tmp_path):
    log = two_kernels(tmp_path)
    bare, energy = (eprof.load(log, time=specs).energy("jetson-tk1") for specs in ([], ["2"]))
    found, without = energy.document(), bare.document()
    assert [kernel["name"] for kernel in found["kernels"]] == ["a(int)", "b(int)"]
    assert all(kernel["time_s"] is None and kernel["power_w"] is None for kernel in found["kernels"])
    assert all("missing" in kernel["energy_marks"]["constant"] for kernel in found["kernels"])
    assert found["time_s"] == 2 and found["time_marks"] == []
    assert found["time_from"] == "given by --time for all kernels together"
    constant = 2 * energy.costs.constant_power_w
    assert found["energy_j"]["constant"] == pytest.approx(constant)
    assert found["energy_j"]["total"] == pytest.approx(without["energy_j"]["total"] + constant)
    assert found["power_w"] == pytest.approx(found["energy_j"]["total"] / 2)
    assert "missing" not in found["energy_marks"]["constant"]
    assert any("nothing tells how 2 of them share it" in warning for warning in found["warnings"])
    assert eprof.load(log, time=["2"]).energy().document()["time_s"] == 2, "without costs too"
    with pytest.raises(EprofError, match="time of all kernels together"):
        grids.from_profile(energy, costs.load("jetson-tk1"))


def test_groups_know_what_the_total_leaves_them(tmp_path):
    lines = two_kernels(tmp_path).read_text()
    log = tmp_path / "three.csv"
    log.write_text(lines + lines.partition('Avg"\n')[2].replace("a(int)", "c(int)").replace("b(int)", "c(long)"))
    energy = eprof.load(log, time=["c=1", "5"]).energy("jetson-tk1").grouped("^[ab]=these", "^c=those")
    these, those = energy.document()["groups"]
    assert (these["name"], these["time_s"], those["time_s"]) == ("these", 4, 1)
    split = eprof.load(log, time=["c=1", "5"]).energy("jetson-tk1").grouped("^a=one", "^b=two").document()["groups"]
    assert [group["time_s"] for group in split] == [None, None, 1] and split[0]["power_w"] is None


def test_a_total_is_shared_out_as_modelled_times_are(tmp_path):
    log = tmp_path / "both.txt"
    log.write_text(simulated("gemm-naive.txt") + simulated("gemm-tiled.txt"))
    free = eprof.load(log).energy("jetson-tk1")
    told = eprof.load(log, time=["0.5"]).energy("jetson-tk1")
    modelled_s, shared_s = (one.counts.kernels["time_s"].to_numpy() for one in (free, told))
    assert len(shared_s) > 1 and shared_s.sum() == pytest.approx(0.5)
    assert shared_s == pytest.approx(modelled_s * 0.5 / modelled_s.sum())
    document = told.document()
    assert document["time_s"] == pytest.approx(0.5) and "estimated" in document["time_marks"]
    assert "shared out as if modelled" in document["time_from"]


def simulated(name):
    return (Path(__file__).parents[2] / "samples" / "logs" / "simulated" / name).read_text()


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["fast"], "--time fast: `fast` is no time"),
        (["a=soon"], "--time a=soon: `soon` is no time"),
        (["a=-1"], "`-1` is no time"),
        (["a=nan"], "`nan` is no time"),
        (["a=inf"], "`inf` is no time"),
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

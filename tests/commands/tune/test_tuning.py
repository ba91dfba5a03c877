"""Choosing clocks: objectives, the time model, mispredictions, grids of profiles and of measurements."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from validation_support import CORES, MEMORIES, PRICES, made, table

import eprof
from eprof import costs
from eprof.base.errors import CostError, EprofError, UsageError
from eprof.base.vocabulary import Mark
from eprof.commands.tune import document, grids, words
from eprof.commands.tune.grids import (
    Grid,
    Point,
    PowerModel,
    TimeModel,
    choose,
    front,
    lost,
    paired,
    time_check,
    together,
)
from eprof.commands.tune.setting_in_force import SettingInForce, setting_in_force
from eprof.energy.attribution import attribute
from eprof.energy.clocks import at_clock
from eprof.energy.time_at_clocks import time_model_of
from eprof.lab.objective import Objective, parse
from eprof.logs.runs import Run

positive = st.floats(0.01, 100)
REFIT = PowerModel(kind="refit", protocol="none")
lists = st.integers(2, 12).flatmap(
    lambda n: st.tuples(st.lists(positive, min_size=n, max_size=n), st.lists(positive, min_size=n, max_size=n))
)
quick = settings(max_examples=25)


# ---- objectives


@given(lists, st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]))
@quick
def test_the_pick_is_the_best_of_all_by_brute_force(both, exponent):
    energy, time = map(np.array, both)
    pick = Objective("x", exponent).pick(energy, time)
    assert energy[pick] * time[pick] ** exponent <= min(e * t**exponent for e, t in zip(energy, time, strict=True)) * (
        1 + 1e-12
    )


@given(lists, st.floats(0, 3), st.floats(0, 3))
@quick
def test_more_weight_on_time_never_picks_a_slower_setting(both, one, other):
    energy, time = map(np.array, both)
    low, high = sorted((one, other))
    slow, fast = (Objective("x", n).pick(energy, time) for n in (low, high))
    assert time[fast] <= time[slow] * (1 + 1e-9)


@given(lists, st.floats(0, 1))
@quick
def test_a_slowdown_limit_is_kept_and_the_pick_is_the_best_that_keeps_it(both, slowdown):
    energy, time = map(np.array, both)
    pick = Objective("energy", max_slowdown=slowdown).pick(energy, time)
    inside = time <= time.min() * (1 + slowdown) * (1 + 1e-12)
    assert inside[pick] and energy[pick] == energy[inside].min()


@given(lists, positive)
@quick
def test_least_time_within_a_power_limit(both, limit):
    energy, time = map(np.array, both)
    pick = Objective("time", for_time=True, power_limit_w=limit).pick(energy, time)
    inside = energy / time <= limit
    assert (pick is None) == (not inside.any())
    assert pick is None or (inside[pick] and time[pick] == time[inside].min())


def test_settings_that_are_not_known_are_not_picked():
    energy, time = np.array([np.nan, 5.0, 1.0]), np.array([1.0, 1.0, np.nan])
    assert Objective("energy").pick(energy, time) == 1
    assert Objective("time", for_time=True).pick(energy, time) == 1
    assert Objective("energy").pick(energy[:1], time[:1]) is None


def test_objectives_by_name():
    assert [parse(name).exponent for name in ("energy", "edp", "ed2p", "ed3p", "ed0.5p")] == [0, 1, 2, 3, 0.5]
    assert parse("energy", "5%").max_slowdown == pytest.approx(0.05)
    assert "5 % more time than now" in parse("edp", "5").words("now") and "energy x time" in parse("edp").words("now")
    for arguments in (
        ("best",),
        ("energy", "x"),
        ("energy", "-1%"),
        ("energy", None, 0.0),
        ("energy", None, float("nan")),
    ):
        with pytest.raises(UsageError):
            parse(*arguments)


# ---- the time model


@given(
    st.floats(1e-4, 1),
    st.floats(0, 1e9),
    st.floats(1, 8),
    st.floats(300, 1500),
    st.floats(300, 1500),
    st.floats(0.3, 3),
)
@quick
def test_time_is_the_measured_one_where_it_was_measured_and_scales_with_both_clocks(
    time, dram, p, core, memory, factor
):
    model = TimeModel(64.0, p)
    assert model.at(time, dram, (core, memory), (core, memory)) == pytest.approx(time)
    assert model.at(time, dram, (core, memory), (core * factor, memory * factor)) == pytest.approx(time / factor)
    more = [float(model.at(time, dram, (core, memory), (core * f, memory))) for f in (1.0, 1.5, 2.0)]
    assert more == sorted(more, reverse=True)


def test_low_core_clocks_make_the_way_to_dram_narrow():
    """By hand: 1e9 B in 10 ms at 1000/1000 MHz; DRAM gives 100 B a cycle of its own, the core lets 200 B pass."""
    model = TimeModel(100.0, share=1.0, path_byte_per_cycle=200.0)
    assert model.memory_time(0.01, 1e9, 1000.0, 1000.0) == pytest.approx(0.01 * 0.999)
    assert model.at(0.01, 1e9, (1000, 1000), (500, 1000)) == pytest.approx(0.01, rel=0.03), "DRAM is still as narrow"
    assert model.at(0.01, 1e9, (1000, 1000), (250, 1000)) == pytest.approx(0.02, rel=0.03)
    assert model.at(0.02, 1e9, (250, 1000), (1000, 1000)) == pytest.approx(0.01, rel=0.03), "and back"
    assert "200 B a cycle" in model.words
    free = TimeModel(100.0, share=1.0)
    assert free.at(0.01, 1e9, (1000, 1000), (250, 1000)) == pytest.approx(0.01, rel=0.1)


def test_a_stream_on_an_a100_takes_what_was_measured_at_low_clocks():
    """GB/s of a stream by core clock, dgemm_stream of Optimal-GPU-frequency-using-DNN-based-models at 19c292a."""
    model = time_model_of(costs.load("A100-SXM4-80GB"))
    for core_mhz, gb_per_s in ((1110, 1772), (960, 1755), (870, 1737), (780, 1576), (690, 1437), (510, 1169)):
        seconds = model.at(1 / 1769.6, 1e9, (1410, 1593), (core_mhz, 1593))
        assert seconds == pytest.approx(1 / gb_per_s, rel=0.11), core_mhz


def test_a_kernel_without_traffic_goes_with_the_core_clock_and_one_that_streams_with_the_memory_clock():
    model = TimeModel(64.0, share=1.0)
    assert model.at(1.0, 0.0, (1000, 1000), (500, 500)) == pytest.approx(2.0)
    assert model.at(1.0, 0.0, (1000, 1000), (1000, 500)) == pytest.approx(1.0)
    assert model.at(1.0, 64e9, (1000, 1000), (500, 1000)) == pytest.approx(1.0, rel=0.01)
    assert model.at(1.0, 64e9, (1000, 1000), (1000, 500)) == pytest.approx(2.0, rel=0.01)
    assert np.isnan(model.at(1.0, np.nan, (1000, 1000), (500, 500)))


@pytest.mark.parametrize(("p", "halved_s"), [(1.0, 1.5), (3.0, 4.5 ** (1 / 3))])
def test_without_a_peak_half_of_a_kernel_is_memory(p, halved_s):
    """T^p = T_c^p + T_m^p with equal terms: at half of one clock that term takes twice as long."""
    model = TimeModel(None, p)
    assert model.memory_time(2.0, np.nan, 1000.0) == pytest.approx(2.0 * 0.5 ** (1 / p))
    assert model.at(1.0, np.nan, (1000, 1000), (1000, 500)) == pytest.approx(halved_s)
    assert model.at(1.0, np.nan, (1000, 1000), (500, 1000)) == pytest.approx(halved_s)


def test_the_time_model_finds_the_exponent_that_times_were_made_with():
    measured = made(benchmarks=8)  # p = 3 and 50 bytes a memory cycle
    found = time_check(measured, 50.0)
    assert (found.model.exponent, found.model.share) == (3.0, 1.0)
    assert found.error.mean_percent < 1e-6
    assert len(found.pairs) == len(measured) - 8


def test_a_kernel_is_timed_by_a_model_that_has_not_seen_it():
    measured = made(benchmarks=6)
    first = time_check(measured, 50.0)
    rows = measured.rows.copy()
    odd = (rows["benchmark"] == "kernel0") & ~((rows["core_mhz"] == 1000) & (rows["memory_mhz"] == 1000))
    rows.loc[odd, "time_s"] *= 7
    second = time_check(replace(measured, rows=rows), 50.0)
    mine = (first.pairs["benchmark"] == "kernel0").to_numpy()
    assert np.array_equal(first.pairs["predicted_s"][mine], second.pairs["predicted_s"][mine])


# ---- mispredictions


def grid(energy, time, measured):
    values = [np.array(one, dtype=float) for one in (energy, time, measured, time)]
    return Grid("k", "k", *values, offered=np.ones(len(energy), dtype=bool))


def test_of_modelled_times_that_are_equal_the_highest_clocks_are_the_fastest():
    """What memory limits takes as long at every core clock; nobody calls the lowest of them the fastest."""
    modelled = replace(grid([3.0, 1.0, 2.0, 5.0], [2.0, 1.0, 1.0, 1.5], [np.nan] * 4), measured_s=np.full(4, np.nan))
    assert choose(modelled, parse("energy")).fastest == 2


def test_a_wrong_pick_loses_what_was_measured():
    one = choose(grid([1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [10.0, 8.0, 12.0]), Objective("energy"))
    assert (one.best, one.fastest, one.measured) == (0, 2, 1)
    assert one.wrong and one.lost_percent == pytest.approx(25)
    assert one.oracle_wrong and one.oracle_lost_percent == pytest.approx(50)


def test_a_tie_is_no_misprediction():
    one = choose(grid([1.0, 2.0], [3.0, 2.0], [8.0, 8.0 * (1 + 1e-13)]), Objective("energy"))
    assert one.wrong is False and one.lost_percent == 0


def test_a_pick_that_breaks_the_limit_as_measured_is_told():
    rows = replace(grid([1.0, 2.0], [1.0, 1.0], [5.0, 6.0]), measured_s=np.array([1.5, 1.0]))
    assert choose(rows, Objective("energy", max_slowdown=0.1)).breaks_a_limit


def test_table_two_is_over_the_wrong_cases():
    found = lost([(True, 10.0), (False, 0.0), (True, 20.0), (None, None)])
    assert (found.cases, found.wrong, found.mean_percent, found.min_percent, found.max_percent) == (3, 2, 15, 10, 20)
    assert found.all_mean_percent == 10
    right = lost([(False, 0.0)])
    assert (right.wrong, right.mean_percent, right.max_percent) == (0, 0, 0)
    assert lost([(None, None)]) is None


@given(st.lists(lists, min_size=1, max_size=4))
@quick
def test_a_program_is_the_sum_of_its_kernels(kernels):
    several = min(len(one[0]) for one in kernels)
    grids = [grid(energy[:several], time[:several], energy[:several]) for energy, time in kernels]
    whole = together(grids, "all")
    assert whole.energy_j == pytest.approx(np.sum([one.energy_j for one in grids], axis=0))
    own = sum(one.energy_j[choose(one, Objective("energy")).best] for one in grids)
    assert own <= whole.energy_j[choose(whole, Objective("energy")).best] * (1 + 1e-9)


@given(lists)
@quick
def test_the_front_is_what_no_setting_beats_in_both(both):
    energy, time = map(np.array, both)
    places = front(grid(energy, time, energy))
    for place in range(len(energy)):
        beaten = any(
            time[other] <= time[place]
            and energy[other] <= energy[place]
            and (time[other], energy[other]) != (time[place], energy[place])
            for other in range(len(energy))
        )
        equals = (time == time[place]) & (energy == energy[place])
        assert beaten != any(equals[kept] for kept in places)
    assert list(time[places]) == sorted(time[places])


# ---- grids


@pytest.fixture
def known(tmp_path):
    """The known model as a loaded cost table, with a peak that makes modelled times right."""
    path = tmp_path / "made.toml"
    path.write_text(table().replace("[charge]", '[peak]\ndram_byte_per_memory_cycle = 50\nwhy = "made"\n[charge]'))
    return eprof_costs(path)


def eprof_costs(path):
    from eprof import costs

    return costs.load(str(path))


def test_measurements_priced_with_the_model_that_made_them_pick_the_measured_best(known):
    measured = made(benchmarks=6)
    watts, about, notes = grids.predicted(measured, known)
    assert watts == pytest.approx(measured.power_w) and not notes
    assert about.power_error_percent < 1e-6
    tuning = grids.from_measurements(measured, watts, about)
    for name, n in (("energy", 0), ("edp", 1), ("ed2p", 2)):
        found = document.document(tuning, parse(name))
        assert found.mispredictions.model == 0 and found.energy_lost_percent.model.mean_percent == 0
        for kernel in found.kernels:
            value = np.array(kernel.measured_j) * np.array(kernel.measured_s) ** n
            at = found.settings[int(np.argmin(value))]
            assert kernel.best.label == at.label


def test_modelled_times_are_not_the_measured_ones_but_near(known):
    measured = made(benchmarks=6)
    watts, about, _ = grids.predicted(measured, known)
    checked = time_check(measured)
    asked = grids.modelled(measured, checked)
    assert asked.counts().to_numpy() == pytest.approx(measured.counts().to_numpy())
    tuning = grids.from_measurements(measured, watts, about, modelled_rows=asked, checked=checked)
    assert tuning.time.source == "modelled"
    for one in tuning.grids:
        assert one.time_s != pytest.approx(one.measured_s, rel=1e-9)
        assert one.time_s == pytest.approx(one.measured_s, rel=0.25)
        there = [point.label for point in tuning.points].index(Point(*measured.reference).label)
        assert one.time_s[there] == one.measured_s[there]


def test_a_refit_has_not_seen_the_kernel_it_is_for():
    measured = made(benchmarks=5, noise=0.02)
    first, about, _ = grids.predicted(measured, None, processes=1)
    mine = (measured.rows["benchmark"] == "kernel2").to_numpy()
    power = np.where(mine, 5 * measured.power_w, measured.power_w)
    second, _, _ = grids.predicted(replace(measured, rows=measured.rows.assign(power_w=power)), None, processes=1)
    assert about.protocol == "leave_one_benchmark_out"
    assert np.array_equal(first[mine], second[mine])
    assert not np.allclose(first[~mine], second[~mine])


def test_bad_measurements_are_refused_in_a_sentence(known):
    measured = made(benchmarks=3)
    with pytest.raises(EprofError, match="holds no times"):
        grids.from_measurements(replace(measured, rows=measured.rows.assign(time_s=np.nan)), measured.power_w, REFIT)
    some = np.where(np.arange(len(measured.rows)) % 2, np.nan, measured.rows["time_s"])
    assert grids.refuse_untunable(replace(measured, rows=measured.rows.assign(time_s=some))) is None, (
        "every other row has one"
    )
    one = made(cores=(500.0,), memories=(500.0,))
    with pytest.raises(EprofError, match="All rows are at one setting"):
        grids.from_measurements(one, one.power_w, REFIT)
    with pytest.raises(EprofError, match="One kernel only"):
        grids.predicted(made(benchmarks=1), None)
    with pytest.raises(EprofError, match="counts of DRAM bytes"):
        bare = measured.only([name for name in PRICES if name != "dram_byte"])
        grids.modelled(bare, time_check(bare))


# ---- profiles

METRICS = """==1== NVPROF is profiling process 1, command: ./made
==1== Profiling application: ./made
==1== Profiling result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"Made GPU (0)","k1",1,"inst_fp_32","FP",{fp32},{fp32},{fp32}
"Made GPU (0)","k1",1,"inst_integer","Integer",{integer},{integer},{integer}
"Made GPU (0)","k1",1,"l2_read_transactions","L2",{l2},{l2},{l2}
"Made GPU (0)","k1",1,"dram_read_transactions","DRAM",{dram},{dram},{dram}
"Made GPU (0)","k1",1,"dram_write_transactions","DRAM",0,0,0
"""


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(METRICS.format(fp32=10**9, integer=10**8, l2=10**7, dram=5 * 10**6))
    return eprof.load(path, capability="3.5", time=["0.01"])


def test_a_profile_is_priced_as_reports_price_it_at_every_setting(profile, known):
    energy = profile.energy(known)
    tuning = grids.from_profile(energy, known, now=SettingInForce("1000/1000"))
    found = document.document(tuning, parse("energy"))
    assert len(tuning.points) == len(CORES) * len(MEMORIES)
    (one,) = tuning.grids
    assert one.time_s[one.now] == pytest.approx(0.01)
    assert one.energy_j[one.now] == pytest.approx(float(energy.split.total_j.sum()))
    for at, point in enumerate(tuning.points):
        seconds = float(TimeModel(50.0).at(0.01, 16e7, (1000, 1000), (point.core_mhz, point.memory_mhz)))
        assert one.time_s[at] == pytest.approx(seconds)
        there = profile.energy(known, point.label)
        dynamic = float((there.split.total_j - there.split.constant_j).sum())
        assert one.energy_j[at] == pytest.approx(dynamic + there.costs.constant_power_w * seconds)
    assert found.best.energy_j == pytest.approx(one.energy_j.min())
    assert "estimated" in found.marks and found.mispredictions is None


def test_no_setting_draws_more_than_the_board_and_the_one_that_ran_takes_what_its_report_says(profile, known):
    free = profile.energy(known)
    constant_w, limit_w = free.costs.constant_power_w, 0.9 * free.energy_j / 0.01
    assert constant_w < limit_w
    limited = replace(free.costs, peaks=replace(free.costs.peaks, power_limit_w=limit_w))
    held = replace(free, table=replace(known, devices=(*known.devices, "Tesla K20c")), notes=()).priced(limited)
    assert held.energy_j == pytest.approx(0.9 * free.energy_j)
    (one,) = grids.from_profile(held, known, now=SettingInForce("1000/1000")).grids
    assert one.energy_j[one.now] == pytest.approx(held.energy_j) and one.time_s[one.now] == 0.01
    assert (one.energy_j <= limit_w * one.time_s * (1 + 1e-9)).all()


def test_a_profile_is_held_against_the_setting_that_ran_and_measurements_against_the_fastest(profile, known):
    found = document.document(
        grids.from_profile(profile.energy(known, "700/500"), known, now=SettingInForce("700/500")), parse("energy")
    )
    assert found.baseline(found) == found.now and found.now.label == "700/500"
    assert words.headline(found).text.endswith("than 700/500\u202fMHz, where it ran.")
    saved = 100 * (1 - found.best.energy_j / found.now.energy_j)
    (row,) = words.kernels(found).rows
    assert words.kernels(found).columns[5].label == "saves %" and row.cells[5].value == pytest.approx(saved)
    measured = made(benchmarks=3)
    watts, about, _ = grids.predicted(measured, known)
    found = document.document(grids.from_measurements(measured, watts, about), parse("energy"))
    assert found.baseline(found) == found.fastest and found.now is None


def test_settings_that_the_table_has_not_seen_are_told(profile, known):
    tuning = grids.from_profile(
        profile.energy(known, "700/500"), known, ["1000/1000", "600/900", "100/500"], SettingInForce("1000/1000")
    )
    assert [point.label for point in tuning.points] == ["600/900", "1000/1000"]
    assert tuning.points[0].marks & Mark.ESTIMATED and "interpolated" in tuning.points[0].why
    assert any(note.startswith("100/500 is left out") for note in tuning.notes)


def test_a_table_with_one_setting_has_nothing_to_choose_from(profile):
    gtx680 = eprof_costs("gtx680")
    with pytest.raises(CostError, match="nothing to choose from"):
        grids.from_profile(profile.energy("gtx680"), gtx680)
    with pytest.raises(CostError, match="nothing to choose from"):
        setting_in_force(profile.energy("gtx680"), gtx680, None)


def test_a_default_setting_is_said_to_be_an_assumption(profile, known):
    assert setting_in_force(profile.energy(known), known, "700/800") == SettingInForce("700/800")
    with pytest.raises(EprofError, match="`0/800` is not a setting"):
        setting_in_force(profile.energy(known), known, "0/800")
    assumed = setting_in_force(profile.energy(known), known, None)
    assert assumed.label == "1000/1000" and assumed.is_assumed and "say so with --setting" in assumed.how
    found = document.document(grids.from_profile(profile.energy(known), known, now=assumed), parse("energy"))
    said = words.headline(found).text
    assert found.is_now_assumed and "where it ran" in said and "the table's default, taken for where it ran" in said


def test_a_profile_without_times_is_refused(tmp_path, known):
    path = tmp_path / "metrics.csv"
    path.write_text(METRICS.format(fp32=10, integer=10, l2=10, dram=10))
    bare = eprof.load(path, capability="3.5").energy(known)
    with pytest.raises(EprofError, match="No kernel has a time"):
        grids.from_profile(bare, known)


# ---- real data


def test_the_time_oracle_and_the_model_on_the_gtx_980(real_power):
    """In the measurements of NV-DVFS race-to-halt is wrong for 25 of 30 kernels, 9.3 % lost on average over those, 18.9 % at worst."""
    from eprof.lab.measurements import read

    measured = read([real_power("nvdvfs_counts_gtx980_low.csv")])
    tuning = grids.from_measurements(measured, measured.power_w, REFIT, checked=time_check(measured))
    found = document.document(tuning, parse("energy"))
    oracle = found.energy_lost_percent.oracle
    assert (oracle.cases, oracle.wrong) == (30, 25)
    assert oracle.mean_percent == pytest.approx(9.3, abs=0.06)
    assert oracle.max_percent == pytest.approx(18.9, abs=0.06)
    assert found.mispredictions.model == 0  # the meter against itself
    assert found.time.error.mean_percent < 5.5


def test_the_headline_of_measurements_is_what_was_measured_and_the_model_stands_behind_it(real_power):
    """The model says 800/1000; the log's joules, added up, have their least at 700/1000."""
    from eprof.lab.measurements import read

    measured = read([real_power("nvdvfs_counts_gtx980_low.csv")])
    rows = measured.rows
    joules = (rows["power_w"] * rows["time_s"]).groupby([rows["core_mhz"], rows["memory_mhz"]]).sum()
    watts, about, _ = grids.predicted(measured, costs.load("gtx980"))
    found = document.document(grids.from_measurements(measured, watts, about), parse("energy"))
    assert found.best.label == "800/1000" and joules.idxmin() == (700, 1000)
    said = words.headline(found)
    assert said.text.startswith("700/1000\u202fMHz gives the least energy") and "as measured" in said.lead
    saved = 100 * (1 - joules[700, 1000] / joules[1000, 1000])
    assert f"{saved:.1f} % less energy" in said.text and "picks 800/1000" in said.lead
    assert words.heat(found).cells[1000.0, 1000.0].text == f"{joules[1000, 1000]:.2f}\u202fJ"
    assert min(point.energy_j for point in found.front) == pytest.approx(joules.min())


@given(lists, st.floats(0, 1), st.data())
@quick
def test_within_a_slowdown_of_the_run_no_setting_takes_more_energy_or_more_time_than_allowed(both, slowdown, data):
    energy, time = map(np.array, both)
    now = data.draw(st.integers(0, len(energy) - 1))
    offered = np.array(data.draw(st.lists(st.booleans(), min_size=len(energy), max_size=len(energy))))
    offered[now] = True
    of_run = replace(grid(energy, time, energy), now=now, offered=offered)
    pick = of_run.pick(Objective("energy", max_slowdown=slowdown))
    assert offered[pick] and energy[pick] <= energy[now] and time[pick] <= time[now] * (1 + slowdown) * (1 + 1e-12)


def priced(name):
    from conftest import SHARED

    if not (SHARED / name).exists():
        pytest.skip("needs a real log, which is not part of this project")
    return eprof.load(SHARED / name).energy()


def tuned(name, setting=None, **objective):
    energy = priced(name)
    now = setting_in_force(energy, energy.table, setting)
    return document.document(grids.from_profile(energy, energy.table, now=now), parse("energy", **objective))


def test_ncu_locks_the_base_clocks_so_the_top_clock_is_what_others_are_held_against():
    """The log's 1290 MHz are ncu's; the board boosts to 1530 MHz, for all that the log tells."""
    found = tuned("ncu/v100-miniweather-baseline.ncu-rep")
    assert (found.now.label, found.ran.label, found.best.label) == ("1530/877", "1290/877", "945/877")
    assert found.is_now_assumed and found.held_by == "ncu"
    said = words.headline(found)
    saved, least, most = (100 * share for share in (found.gain.share, *found.gain.energy_range))
    assert saved == pytest.approx(100 * (1 - found.best.energy_j / found.now.energy_j))
    assert f"{saved:.0f} % less energy ({least:.0f} to {most:.0f}\u202f%)" in said.text
    assert "1530/877\u202fMHz, the top clock, taken for where it runs without ncu" in said.text
    assert "by default, ran it at 1290/877: 11 % less energy and 22 % more time than there" in said.lead
    limited = tuned("ncu/v100-miniweather-baseline.ncu-rep", max_slowdown="15%")
    assert found.now.time_s < limited.best.time_s <= 1.15 * found.now.time_s


def test_a_run_that_left_the_clocks_alone_is_where_the_program_runs():
    energy = priced("ncu/v100-miniweather-baseline.ncu-rep")
    for words_of_run, runs_at in ((["eprof", "run"], "1290/877"), (["eprof", "run", "--lock-clocks"], "1530/877")):
        run = Run(Path("x"), {"command_line": words_of_run}, {})
        there = replace(energy, profile=replace(energy.profile, run=run))
        assert setting_in_force(there, there.table, None).runs_at == runs_at


def test_the_interval_of_a_gain_is_what_other_prices_and_other_times_make_of_both_settings():
    """By hand, of the one kernel: 1125 MHz against 1755, each replica pays for both; DRAM's time, and the core's."""
    energy = priced("ncu-modern/h100-pcie-rmsnorm.ncu-rep")
    found = tuned("ncu-modern/h100-pcie-rmsnorm.ncu-rep")
    at = {setting.label: setting for setting in found.settings}

    def joules(label, costs, time_s=None):
        ratio = at[label].core_mhz / found.ran.core_mhz
        return attribute(at_clock(energy.counts, np.array([time_s or at[label].time_s]), ratio), costs).total_j.sum()

    best, now = found.best.label, found.now.label
    both = zip(energy.table.replicas(best), energy.table.replicas(now), strict=True)
    shares = [1 - joules(best, low) / joules(now, high) for low, high in both]
    costs_at = {label: energy.table.at(label) for label in (best, now)}
    core_s = {label: found.ran.time_s * found.ran.core_mhz / at[label].core_mhz for label in costs_at}
    for times in (core_s, dict.fromkeys(costs_at, found.ran.time_s)):
        shares.append(1 - joules(best, costs_at[best], times[best]) / joules(now, costs_at[now], times[now]))
    assert found.gain.energy_range == pytest.approx([min(shares), max(shares)])
    assert 0.05 < min(shares) < found.gain.share < max(shares)


def test_of_little_or_no_sure_gain_is_said_that_no_setting_is_better():
    ran = tuned("ncu-modern/h100-pcie-rmsnorm.ncu-rep", "1100/1593")
    said = words.headline(ran)
    assert ran.now.label == "1100/1593" and not ran.is_now_assumed and not ran.gain.is_worth_it
    assert said.text.startswith("No setting is better by 3\u202f% than 1100/1593") and "nvidia-smi" not in said.lead
    unsure = replace(ran, gain=replace(ran.gain, share=0.2, energy_range=[-0.1, 0.3]))
    assert words.headline(unsure).text.startswith("No setting is surely better than")


def test_measurements_that_are_alike_give_no_reason_to_change_clocks(real_power):
    """The meter's least is at 2000/4500 MHz: 31.4 J in 5.2 % more time than the 31.5 J of the fastest."""
    from eprof.lab.measurements import read

    measured = read([real_power("nvdvfs_counts_gtx1080ti.csv")])
    found = document.document(grids.from_measurements(measured, measured.power_w, REFIT), parse("energy"))
    said = words.headline(found).text
    assert said.startswith("No setting is better by 3\u202f% than 2000/5500") and "5.2 % more time" in said


@pytest.mark.parametrize(
    ("log", "why"),
    [("ncu/b200-raw-wide.csv", "DRAM bytes were not counted"), ("nvprof/text-p100-gpu-trace.txt", "only time was")],
)
def test_where_one_setting_alone_has_a_number_nothing_is_chosen(log, why):
    energy = priced(log)
    with pytest.raises(EprofError, match=f"Cannot tell which clocks are best: {why}.*eprof run PROGRAM"):
        grids.from_profile(energy, energy.table)
    assert choose(grid([np.nan, 1.0], [1.0, 1.0], [np.nan] * 2), Objective("energy")).best is None


def test_nvidia_smi_locks_core_clocks_since_volta_and_memory_clocks_since_ampere():
    found = tuned("ncu/v100-miniweather-baseline.ncu-rep")
    other_memory = replace(found, now=replace(found.now, memory_mhz=800.0))

    def commands(document, capability, device=""):
        model = replace(document.model, device=device or document.model.device)
        return words.headline(replace(document, capability=capability, model=model)).lead.partition("nvidia-smi ")[2]

    assert commands(found, "7.0") == "-lgc 945." and commands(other_memory, "8.0") == "-lgc 945 -lmc 877."
    assert commands(other_memory, "7.0") == commands(found, "6.0") == "-ac 877,945."
    assert commands(found, "6.1", "NVIDIA GeForce GTX 1080 Ti") == ""


def test_a_gpu_without_a_table_is_not_sent_to_an_estimate_of_one_setting(tmp_path, eprof_command):
    path = tmp_path / "metrics.csv"
    path.write_text(METRICS.format(fp32=10, integer=10, l2=10, dram=10).replace("Made GPU", "Tesla K20c"))
    result = eprof_command("tune", str(path), "--time", "0.01")
    assert result.returncode and "No cost table is made" in result.stderr and "estimated" not in result.stderr


def test_a_profile_is_held_to_its_own_clocks_and_clocks_beyond_the_fit_are_not_recommended():
    energy = priced("ncu/v100-miniweather-baseline.ncu-rep")
    now = setting_in_force(energy, energy.table, "1290/877")
    tuning = grids.from_profile(energy, energy.table, now=now)
    found = document.document(tuning, parse("energy", "12%"))
    assert found.now.label == "1290/877" and found.now.energy_j == pytest.approx(energy.energy_j)
    assert found.best.energy_j < found.now.energy_j and found.now.time_s < found.best.time_s < 1.12 * found.now.time_s
    assert {at.core_mhz for at in found.settings if not at.allowed and at.time_s < found.now.time_s} == {1462, 1530}
    assert any("1462/877, 1530/877 MHz is a guess; these are not recommended" in note for note in found.notes)
    assert all(802 <= at.core_mhz <= 1380 for at in found.front)
    said = words.headline(found)
    assert "more time than now: " in said.text and said.text.endswith("than 1290/877\u202fMHz, where it ran.")
    assert said.lead.endswith("To set it: sudo nvidia-smi -lgc 1087.")
    fastest = document.document(tuning, parse("time"))
    assert fastest.best.label == fastest.fastest.label == "1380/877", "not beyond the 1380 MHz of the fit"


@pytest.fixture
def real_power():
    from conftest import SHARED

    def find(name):
        path = SHARED / "power" / name
        if not path.exists():
            pytest.skip(f"needs the measurements {name}, which are not part of this project")
        return path

    return find


def test_points_have_labels():
    assert Point(852.0, 924.0).label == "852/924"


def test_pairs_begin_at_the_reference_wherever_it_stands_else_at_the_nearest_setting():
    """The reference is neither the first row nor the last, and one kernel was never measured there."""
    settings_ = [(500.0, 900.0), (1000.0, 300.0), (1000.0, 900.0), (1000.0, 1800.0), (2000.0, 900.0)]
    rows = pd.DataFrame(
        [(name, core, memory, 10 * number + place, 1.0) for number, name in enumerate("ab") for place, (core, memory) in
         enumerate(settings_) if (name, core, memory) != ("b", 1000.0, 900.0)],
        columns=["benchmark", "core_mhz", "memory_mhz", "time_s", "dram_byte"],
    )  # fmt: skip
    pairs = paired(rows, (1000.0, 900.0))
    begins = pairs.groupby("benchmark")[["core_mhz_0", "memory_mhz_0", "time_s_0"]].first()
    assert list(begins.loc["a"]) == [1000.0, 900.0, 2.0]
    # 50 % of the core clock are nearer than two thirds of the memory's; of two as near, the first.
    assert list(begins.loc["b"]) == [500.0, 900.0, 10.0]
    assert len(pairs) == 4 + 3
    assert not ((pairs.core_mhz == pairs.core_mhz_0) & (pairs.memory_mhz == pairs.memory_mhz_0)).any()


def test_a_heat_map_of_many_clocks_keeps_those_that_are_spoken_of():
    cells = {(float(core), 877.0): words.HeatCell("1 J", 0) for core in range(100, 287)}
    cells[155.0, 877.0] = words.HeatCell("1 J", 0, "*")
    cells[156.0, 877.0] = words.HeatCell("1 J", 0, is_now=True)
    shown = words.thinned(cells, 8)
    assert len(shown) <= 8 and {(155.0, 877.0), (156.0, 877.0)} <= set(shown)
    assert words.thinned(cells, 187) == cells

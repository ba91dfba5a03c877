"""Fitting: known coefficients come back, also with unknown voltages; nothing of what is left out is used; real data."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

pytest.importorskip("scipy")

from frames_support import counts_of

from eprof import costs
from eprof.base.vocabulary import COUNTS, Mark
from eprof.energy.attribution import attribute
from eprof.lab.fitting import Form, fit
from eprof.lab.fitting import quality as quality_of_fits
from eprof.lab.fitting.cross_validation import of_form
from eprof.lab.fitting.quality import bootstrap, collinearity, error, examine, left_out, within
from eprof.lab.fitting.solve import (
    HIGHEST,
    LOWEST,
    Layout,
    Search,
    Settings,
    form_for,
    gpus_alike,
    level_volts,
    lowest_points,
    moments,
    monotone,
    pooled,
    prior_energies,
    rows_of,
)
from eprof.lab.fitting.table_text import Head, number, text
from eprof.lab.measurements import MeasurementError, Measurements, read

DATA = Path(__file__).parents[3] / "shared" / "data" / "power"
TERMS = {"fp32_instruction": "core", "integer_instruction": "core", "l2_byte": "core", "dram_byte": "memory"}
CORE_MHZ, MEMORY_MHZ = (500.0, 700.0, 900.0, 1100.0), (2000.0, 3000.0, 4000.0)


def made(prices, constants, core_volts, memory_volts, seed=0, benchmarks=12, noise=0.0):
    """Measurements that follow the form exactly; constants: c1_core, c1_mem, w, b_core, b_mem (W a MHz)."""
    random = np.random.default_rng(seed)
    base = random.lognormal(4.0, 1.0, (benchmarks, len(TERMS)))
    rows, rates = [], []
    for at in range(benchmarks):
        for core, v_core in zip(CORE_MHZ, core_volts, strict=True):
            for memory, v_memory in zip(MEMORY_MHZ, memory_volts, strict=True):
                rate = base[at] * random.uniform(0.5, 1.0, len(TERMS)) * core / 1000
                volts = np.array([v_core, v_core, v_core, v_memory])
                c1_core, c1_memory, w, b_core, b_memory = constants
                power = float((rate * np.array(prices) * 1e-3 * volts**2).sum())
                power += c1_core * v_core + c1_memory * v_memory + w
                power += b_core * core * v_core**2 + b_memory * memory * v_memory**2
                power *= math.exp(noise * random.normal())
                rows.append((f"k{at}", f"k{at}", 0, core, memory, 1e-3, power, v_core, v_memory, len(rows) + 2))
                rates.append(rate)
    names = [
        "benchmark",
        "kernel",
        "threads",
        "core_mhz",
        "memory_mhz",
        "time_s",
        "power_w",
        "core_v",
        "memory_v",
        "line",
    ]
    return Measurements(
        pd.DataFrame(rows, columns=names),
        pd.DataFrame(rates, columns=list(TERMS)),
        TERMS,
        "counts",
        (CORE_MHZ[-1], MEMORY_MHZ[-1]),
        sources=("made.csv",),
        mapping="made",
    )


def blind(measurements):
    return replace(measurements, rows=measurements.rows.assign(core_v=math.nan, memory_v=math.nan))


prices = st.tuples(*[st.floats(1.0, 500.0) for _ in TERMS])
watts = st.tuples(st.floats(1, 40), st.floats(1, 40), st.floats(1, 40), st.just(0.0), st.just(0.0))
rising = st.lists(st.floats(0.01, 0.12), min_size=4, max_size=4).map(
    lambda steps: [1 - sum(steps[at:3]) for at in range(4)]
)


@settings(max_examples=8)
@given(prices, watts, rising, st.integers(0, 9))
def test_known_coefficients_come_back_with_given_voltages(energies, constants, core, seed):
    measurements = made(energies, constants, core, (0.8, 0.9, 1.05), seed)
    found = fit(measurements, Form(voltages="given", clock_tree=False))
    assert found.prices_pj.to_numpy() == pytest.approx(energies, rel=1e-3)
    assert found.predict(measurements) == pytest.approx(measurements.power_w, rel=1e-5)
    assert found.constant_w((core[0], 0.8), (500, 2000)) == pytest.approx(
        constants[0] * core[0] + constants[1] * 0.8 + constants[2], rel=1e-3
    )


@settings(max_examples=4)
@given(prices, st.floats(1, 40), rising, st.integers(0, 9))
def test_known_coefficients_come_back_with_unknown_voltages(energies, watt, core, seed):
    measurements = blind(made(energies, (watt, watt, watt, 0, 0), core, (0.85, 0.9, 1.0), seed))
    found = fit(measurements, Form(clock_tree=False))
    assert found.predict(measurements) == pytest.approx(measurements.power_w, rel=5e-3)
    assert found.prices_pj.to_numpy() == pytest.approx(energies, rel=0.05, abs=0.5)
    assert found.volts["core"].to_numpy() == pytest.approx(core, abs=0.02)
    assert found.volts["core"].iloc[-1] == 1.0


def test_the_clock_tree_comes_back():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0.02, 0.003), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0))
    found = fit(measurements, Form(voltages="given"))
    assert found.constants["core_w_per_mhz_v2"] == pytest.approx(0.02, rel=1e-3)
    assert found.constants["memory_w_per_mhz_v2"] == pytest.approx(0.003, rel=1e-2)
    without = fit(measurements, Form(voltages="given", clock_tree=False))
    assert error(without.predict(measurements), measurements.power_w) > 0.5


def test_least_absolute_residuals_let_no_wild_row_decide():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.01)
    power = measurements.power_w.copy()
    power[::7] *= 4
    wild = replace(measurements, rows=measurements.rows.assign(power_w=power))
    form = Form(voltages="given", clock_tree=False)
    by_loss = {loss: fit(wild, replace(form, loss=loss)).predict(measurements) for loss in ("l1", "soft", "l2")}
    errors = {loss: error(predicted, measurements.power_w) for loss, predicted in by_loss.items()}
    assert errors["l1"] < 2 and errors["soft"] < 4
    assert errors["l2"] > 3 * max(errors["l1"], errors["soft"])


def test_a_soft_loss_takes_small_residuals_for_squares():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.005)
    soft, squares = (fit(measurements, Form(voltages="given", loss=loss)).prices_pj for loss in ("soft", "l2"))
    assert soft.to_numpy() == pytest.approx(squares.to_numpy(), rel=2e-3)


def test_a_ridge_draws_what_the_data_cannot_tell_to_its_prior():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.02)
    twin = measurements.rates.assign(integer_instruction=measurements.rates["fp32_instruction"])
    alike = replace(measurements, rates=twin)
    prior = {"fp32_instruction": 40.0, "integer_instruction": 20.0, "l2_byte": 30.0, "dram_byte": 200.0}
    found = fit(alike, Form(voltages="given", clock_tree=False, ridge=0.01, prior=prior)).prices_pj
    assert found["fp32_instruction"] / found["integer_instruction"] == pytest.approx(2.0, rel=0.2)
    condition, groups = collinearity(alike, fit(alike, Form(voltages="given", clock_tree=False)))
    assert condition > 1e6
    assert any({"fp32_instruction", "integer_instruction"} <= set(group) for group in groups)


def test_a_prior_that_is_wrong_by_a_factor_common_to_all_does_little():
    true = (50, 20, 30, 200)
    measurements = made(true, (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.02)
    prior = {term: 2.0 * pj for term, pj in zip(TERMS, true, strict=True)}
    found = fit(measurements, Form(voltages="given", clock_tree=False, ridge=0.01, prior=prior))
    assert (found.prices_pj.to_numpy() < 1.6 * np.array(true)).all()
    assert error(found.predict(measurements), measurements.power_w) < 2.5


def test_a_prior_is_of_other_gpus_of_the_same_kind():
    measurements = blind(made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0)))
    everything = form_for(measurements).prior
    gpus = prior_energies()
    assert everything["dram_byte"] == pytest.approx(np.mean([prices["dram_byte"] for prices in gpus.values()]))

    # A V100 has FP64 at full rate, as a P100; an RTX 3090 has not, nor have GTX cards.
    v100 = pooled(measurements, "Tesla V100-SXM2-16GB (0)")
    assert v100["dram_byte"] == gpus["Tesla P100"]["dram_byte"]
    geforces = [gpus["GeForce GTX 980"]["dram_byte"], gpus["GeForce GTX 1080 Ti"]["dram_byte"]]
    assert pooled(measurements, "NVIDIA GeForce RTX 3090")["dram_byte"] == pytest.approx(np.mean(geforces))
    assert form_for(measurements, "GTX 980").prior["dram_byte"] == geforces[1]
    assert pooled(measurements, "a GPU that nobody knows") == pooled(measurements) == everything
    assert form_for(replace(measurements, kind="utilisation")) == Form()


def test_no_prior_holds_fp64_nor_a_gpu_itself():
    names = list(prior_energies())
    assert all("fp64_instruction" not in prices for prices in prior_energies().values())
    for name in names:
        assert name not in gpus_alike(names, name) and gpus_alike(names, name)


def test_what_is_left_out_is_not_used():
    measurements = blind(made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.03))
    power = measurements.power_w.copy()
    mine = (measurements.rows["benchmark"] == "k3").to_numpy()
    power[mine] *= 5
    changed = replace(measurements, rows=measurements.rows.assign(power_w=power))
    model = of_form(Form(starts=1))
    before, after = (left_out(model, one, "benchmark") for one in (measurements, changed))
    assert after[mine] == pytest.approx(before[mine], rel=1e-12)
    assert not np.allclose(after[~mine], before[~mine], rtol=1e-4)


def test_a_level_without_rows_has_a_voltage_between_its_neighbours():
    curve = pd.Series([0.8, 0.9, 1.0], index=[500.0, 700.0, 900.0])
    assert level_volts(curve, np.array([600.0, 900.0])).tolist() == pytest.approx([0.85, 1.0])
    assert level_volts(curve, np.array([400.0, 1000.0])).tolist() == pytest.approx([0.75, 1.05])
    assert level_volts(pd.Series([1.0], index=[877.0]), np.array([900.0])).tolist() == [1.0]


def test_no_voltage_falls_below_a_share_of_the_lowest_that_was_fitted():
    """At a clock far below, the line would go to 0.3 V of 0.8; the floor is a share of those 0.8, not of 1."""
    low, high = LOWEST * 0.8, HIGHEST * 1.2
    curve = pd.Series([0.8, 1.2], index=[500.0, 900.0])
    assert level_volts(curve, np.array([1.0, 90.0, 5000.0])).tolist() == pytest.approx([low, 0.39, high])
    volts = pd.Series([80.0, 120.0], index=[500.0, 900.0])
    assert level_volts(volts, np.array([1.0])).tolist() == pytest.approx([LOWEST * 80]), "in whatever unit"


def test_given_voltages_with_holes_are_those_of_their_clock():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0))
    found = fit(measurements, Form(voltages="given", clock_tree=False))
    holed = measurements.rows.assign(
        core_v=measurements.rows["core_v"].mask(measurements.rows.index % 2 == 0), memory_v=math.nan
    )
    assert found.predict(replace(measurements, rows=holed)) == pytest.approx(found.predict(measurements))


def test_the_energy_of_a_benchmark_without_rows_is_not_known():
    """Each benchmark has an energy of its own: one that is left out costs no 0 pJ, and its power is not predicted."""
    base = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), benchmarks=4)
    benchmarks = base.rows["benchmark"]
    rates = pd.DataFrame({f"{name}_core": (benchmarks == name) * 1.0 for name in benchmarks.unique()})
    own = replace(base, rates=rates, domains=dict.fromkeys(rates, "core"), own=True)
    seen = (benchmarks != "k3").to_numpy()
    found = fit(own.take(seen), Form(voltages="given", clock_tree=False))
    assert found.prices_pj.isna().to_dict() == {name: name == "k3_core" for name in rates}
    predicted = found.predict(own)
    assert np.isnan(predicted[~seen]).all() and np.isfinite(predicted[seen]).all()


def test_the_reference_may_be_left_out():
    measurements = blind(made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0)))
    part = measurements.take((measurements.rows["core_mhz"] < 1000).to_numpy())
    found = fit(part, Form(clock_tree=False))
    assert found.reference == (900.0, 4000.0) and found.volts["core"][900.0] == 1.0
    assert error(found.predict(measurements), measurements.power_w) < 3


def test_moments_hold_all_that_least_squares_need():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0))
    rows, places = rows_of(measurements), Settings.of(measurements)
    found = moments(rows, np.full(len(rows), 0.5), places)
    assert found.shape == (12, 6, 6)
    assert found.sum(axis=0) == pytest.approx(0.25 * rows.T @ rows)


@pytest.mark.parametrize("pins", [(0, 0), (1, 1), (3, 2)])
@pytest.mark.parametrize("off", [1e-2, 1e-3])
def test_a_newton_step_leaves_the_square_of_what_the_voltages_were_off(pins, off):
    """Of exact data, whichever levels have the voltage 1; a level that is held stays where it was."""
    core, memory = np.array([0.8, 0.9, 1.0, 1.15]), np.array([0.9, 1.0, 1.2])
    true = core / core[pins[0]], memory / memory[pins[1]]
    measurements = made((50, 20, 30, 200), (5, 7, 10, 0, 0), *true)
    places, rows = Settings.of(measurements), rows_of(measurements)
    layout = Layout.of(TERMS, clock_tree=False, levels=(4, 3))
    sums = moments(rows, 1.0 / measurements.power_w, places)
    search = Search(layout, places, sums, Form(clock_tree=False), (pins[0], 4 + pins[1]), float(len(rows)))
    unknowns = np.array([0.05, 0.02, 0.03, 0.2, 5.0, 7.0, 10.0])
    assert layout.names == (*TERMS, "core_w_per_v", "memory_w_per_v", "w")
    is_pinned = [np.arange(len(volts)) == pin for volts, pin in zip(true, pins, strict=True)]
    signs = np.array([1.0, -1.0, 1.0, -1.0]), np.array([-1.0, 1.0, 1.0])
    start = [volts + off * np.where(held, 0, sign) for volts, held, sign in zip(true, is_pinned, signs, strict=True)]
    start, free = np.concatenate(start), np.ones(7, bool)
    found = search._newton(start, unknowns, free)
    for volts, wanted, held in zip((found[:4], found[4:]), true, is_pinned, strict=True):
        assert abs(volts - wanted).max() < 10 * off**2 and (volts[held] == 1).all() and (np.diff(volts) >= 0).all()
    free[1] = False
    found = search._newton(start, unknowns, free)
    assert found[1] == start[1] and abs(found - start)[[0, 2, 3]].max() > 0


@settings(max_examples=40)
@given(st.lists(st.tuples(*[st.floats(-3, 3) for _ in range(4)]), min_size=1, max_size=6))
def test_voltages_are_monotone_and_the_best_of_a_grid_is_no_better(coefficients):
    quartics = np.array([(abs(a) + 0.1, b, c, d, 0.0) for a, b, c, d in coefficients])
    low, high = np.full(len(quartics), 0.4), np.full(len(quartics), 2.0)
    grid = np.linspace(0.4, 2.0, 161)
    best = lowest_points(quartics, low, high)
    for one, volts in zip(quartics, best, strict=True):
        assert np.polyval(one, volts) <= np.polyval(one, grid).min() + 1e-4
    found = monotone(quartics, low, high)
    assert (np.diff(found) >= 0).all() and found.min() >= 0.4 and found.max() <= 2.0
    flat = min(sum(np.polyval(one, volts) for one in quartics) for volts in grid)
    assert sum(np.polyval(one, volts) for one, volts in zip(quartics, found, strict=True)) <= flat + 1e-3


def test_the_factor_of_left_out_kernels_holds_more_than_nine_tenths_of_few():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), benchmarks=20)
    off = np.exp(np.linspace(-0.2, 0.2, len(measurements)))
    factor = within(off * measurements.power_w, measurements)
    assert math.log(factor) == pytest.approx(0.2 * 0.9 * 21 / 20, rel=0.02)
    assert math.isnan(within(np.full(len(measurements), np.nan), measurements))


def test_intervals_take_no_prior_for_certain():
    measurements = blind(made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0)))
    nothing = replace(measurements, rates=measurements.rates.assign(integer_instruction=1.0))
    form = Form(voltages="one", ridge=0.01, prior=dict.fromkeys(TERMS, 40.0))
    prices = [again.prices_pj["integer_instruction"] for again in bootstrap(nothing, form, 20)]
    # Not told by the data at all: as wide as GPUs differ, a factor of two as standard deviation.
    assert np.std(np.log(prices)) > 0.3


# ------------------------------------------------------------------------------------------------ tables


def words(measurements):
    """The same rows as counts in the vocabulary, for `attribute`."""
    counts = measurements.counts()
    table = pd.DataFrame(0.0, index=counts.index, columns=list(COUNTS))
    table["fp32"], table["integer"] = counts["fp32_instruction"], counts["integer_instruction"]
    table["l2_read"], table["dram_read"] = 0.75 * counts["l2_byte"], counts["dram_byte"]
    table["l2_write"] = 0.25 * counts["l2_byte"]
    kernels = measurements.rows[["kernel", "time_s"]].assign(device="x", launches=1, time_marks=0)
    return counts_of(kernels, table, pd.DataFrame(0, index=table.index, columns=table.columns), {}, "accessed")


@pytest.mark.parametrize("voltages", ["estimated", "given"])
def test_a_table_predicts_what_its_fit_predicts(tmp_path, voltages):
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0.02, 0.001), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.01)
    if voltages == "estimated":
        measurements = blind(measurements)
    fitted = fit(measurements, Form(voltages=voltages))
    quality = examine(measurements, fitted, replicas=8, leaving_out=())
    path = tmp_path / "mine.toml"
    path.write_text(text(measurements, fitted, quality, Head("mine", "A GPU", ("A GPU",), "made up")))
    assert costs.check(str(path)) == []
    table = costs.load(str(path))
    assert table.relative == (voltages == "estimated") and table.books == "accessed"
    predicted, counts = fitted.predict(measurements), words(measurements)
    for place in ("500/2000", "900/3000", "1100/4000"):
        core, memory = (float(one) for one in place.split("/"))
        mine = ((measurements.rows["core_mhz"] == core) & (measurements.rows["memory_mhz"] == memory)).to_numpy()
        joules = attribute(counts, table.at(place)).total_j
        watts = (joules / measurements.rows["time_s"]).to_numpy()
        assert watts[mine] == pytest.approx(predicted[mine], rel=5e-3)
    spread = [attribute(counts, one).total_j.sum() for one in table.replicas("1100/4000")]
    assert len(spread) == 8 and 0 < np.std(spread) / np.mean(spread) < 0.05
    assert table.explain()["fit"]["benchmarks"] == 12


def test_a_table_of_one_setting_holds_there_alone(tmp_path):
    measurements = blind(made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0)))
    here = (measurements.rows["core_mhz"] == 900) & (measurements.rows["memory_mhz"] == 3000)
    one = measurements.take(here.to_numpy())
    fitted = fit(one, Form())
    path = tmp_path / "one.toml"
    path.write_text(text(one, fitted, examine(one, fitted, 4, ()), Head("one", "A GPU", (), "made up")))
    table = costs.load(str(path))
    assert [setting.label for setting in table.settings] == ["900/3000"]
    watts = attribute(words(one), table.at()).total_j / one.rows["time_s"]
    assert watts.to_numpy() == pytest.approx(fitted.predict(one), rel=5e-3)
    assert any("one setting" in note for note in table.notes)


def test_an_energy_is_told_if_its_interval_is_above_0_and_no_wider_than_a_factor_of_three():
    """As docs/fit.md has it."""
    intervals = pd.DataFrame({"low": [1.0, 1.0, 0.0, 2.0], "high": [3.0, 3.1, 0.1, 2.0]}, index=list(TERMS))
    assert quality_of_fits.certainty(intervals).tolist() == ["told", "loosely", "not told", "told"]


def test_what_the_data_cannot_tell_is_marked_and_has_few_digits(tmp_path):
    measurements = blind(
        made((50, 0.0, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.05)
    )
    fitted = fit(measurements, Form())
    quality = examine(measurements, fitted, 20, ())
    assert quality.status["integer_instruction"] == "not told" and quality.status["dram_byte"] == "told"
    path = tmp_path / "mine.toml"
    path.write_text(text(measurements, fitted, quality, Head("mine", "A GPU", (), "made up")))
    at = costs.load(str(path)).at()
    assert at.charges["integer"].marks & Mark.ESTIMATED and "cannot tell" in at.charges["integer"].why
    assert not at.charges["dram_read"].marks
    digits = f"{at.prices['integer_instruction'].pj:g}".replace(".", "").strip("0")
    assert len(digits) <= 2


@pytest.mark.parametrize("prior", [None, dict.fromkeys(TERMS, 40.0)])
def test_a_term_that_a_replica_has_not_drawn_is_not_zero_there(tmp_path, prior):
    measurements = blind(
        made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), noise=0.005)
    )
    alone = (measurements.rows["benchmark"] == "k5").to_numpy()
    rates = measurements.rates.assign(
        integer_instruction=measurements.rates["integer_instruction"].where(alone, 0.0) * 9
    )
    true = measurements.rates["integer_instruction"] * 0.02
    power = measurements.power_w + (rates["integer_instruction"] * 0.02 - true).to_numpy()
    lone = replace(measurements, rates=rates, rows=measurements.rows.assign(power_w=power))
    fitted = fit(lone, Form(voltages="one", ridge=0.01 if prior else 0.0, prior=prior))
    quality = examine(lone, fitted, 24, ())
    undrawn = quality.replicas["integer_instruction"].isna()
    assert 2 < undrawn.sum() < 18 and not quality.replicas.drop(columns="integer_instruction").isna().any(axis=None)
    assert not any("lean on the prior" in note for note in quality.notes)  # there are 12 benchmarks
    assert quality.intervals["low"]["integer_instruction"] > 5 and quality.status["integer_instruction"] == "told"
    path = tmp_path / "mine.toml"
    path.write_text(text(lone, fitted, quality, Head("mine", "A GPU", (), "made up")))
    assert costs.check(str(path)) == []
    written = np.array(costs.load(str(path)).fit.replicas["integer_instruction"])
    assert set(written) == set(written[~undrawn.to_numpy()]) and written.min() > 5


def test_with_few_benchmarks_it_is_said_that_energies_lean_on_the_prior():
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0), benchmarks=5)
    for prior, said in ((None, False), (dict.fromkeys(TERMS, 40.0), True)):
        fitted = fit(measurements, Form(voltages="given", ridge=0.01 if prior else 0.0, prior=prior))
        (note,) = examine(measurements, fitted, 0, ()).notes
        assert "There are 5 benchmarks" in note and ("lean on the prior" in note) == said


@pytest.mark.parametrize("replicas", [0, 5])
def test_a_term_that_nothing_does_has_no_interval(tmp_path, replicas):
    measurements = made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0))
    never = replace(measurements, rates=measurements.rates.assign(integer_instruction=0.0))
    fitted = fit(never, Form(voltages="given"))
    quality = examine(never, fitted, replicas, ())
    assert quality.intervals.loc["integer_instruction"].isna().all()
    assert quality.status["integer_instruction"] == "not told"
    path = tmp_path / "mine.toml"
    path.write_text(text(never, fitted, quality, Head("mine", "A GPU", (), "made up")))
    assert costs.check(str(path)) == [] and "nan" not in path.read_text()
    assert "integer_instruction" not in costs.load(str(path)).fit.data.get("interval_pj", {})


def test_utilisations_make_no_table():
    measurements = blind(made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0)))
    used = replace(measurements, kind="utilisation")
    fitted = fit(used, Form())
    with pytest.raises(MeasurementError, match="prices events"):
        text(used, fitted, examine(used, fitted, 2, ()), Head("mine", "A GPU", (), "made up"))


def test_a_term_that_no_word_pays_is_named():
    measurements = blind(made((50, 20, 30, 200), (5, 5, 10, 0, 0), (0.8, 0.85, 0.9, 1.0), (0.9, 0.95, 1.0)))
    names = {"l2_byte": "sm_cycle"}
    odd = replace(
        measurements,
        rates=measurements.rates.rename(columns=names),
        domains={names.get(term, term): domain for term, domain in TERMS.items()},
    )
    fitted = fit(odd, Form())
    with pytest.raises(MeasurementError, match="sm_cycle.*--without"):
        text(odd, fitted, examine(odd, fitted, 2, ()), Head("mine", "A GPU", (), "made up"))


@given(st.floats(1e-12, 1e15, allow_nan=False), st.integers(1, 6))
def test_numbers_of_a_table_are_toml_and_near(value, digits):
    import tomllib

    found = tomllib.loads(f"x = {number(value, digits)}")["x"]
    assert found == pytest.approx(value, rel=0.6 * 10.0 ** (1 - digits))


# ------------------------------------------------------------------------------------------------ real data

# Bars of the fits: fit, and where that is quick leave one benchmark out; docs/studies/power/bars.py does them all.
BARS = {
    "nvdvfs_counts_gtx980_low": (5.0, None),
    "nvdvfs_counts_gtx980_high": (8.5, None),
    "nvdvfs_counts_gtx1080ti": (8.5, 13.0),
    "nvdvfs_counts_v100": (10.2, 16.1),
    "gpmtool_gtxtitanx_tpds2019": (6.1, None),
    "gpmtool_gtxtitanx_micro_named": (3.8, None),
    "gpmtool_gtxtitanx_hpca2018": (4.8, None),
    "gpmtool_gtxtitanx_apps": (5.4, None),
    "gpmtool_teslak40c": (6.5, None),
    "gpmtool_gtx980": (3.3, None),
    "gpmtool_titanv": (5.3, None),
    "gpmtool_amd580x": (4.7, None),
    "nvdvfs_v100_micro": (7.4, None),
    "nvdvfs_v100_apps": (6.6, None),
    "nvdvfs_rtx8000_micro": (7.9, None),
    "nvdvfs_rtx8000_apps": (6.8, None),
    "gpuptx_gtxtitanx_apps": (2.8, None),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="no shared measurements here")
@pytest.mark.parametrize("name", BARS)
def test_the_bars_of_the_public_measurements_are_met(name):
    measurements = read(DATA / f"{name}.csv")
    fit_bar, benchmark_bar = BARS[name]
    form = replace(form_for(measurements), starts=1)
    assert error(fit(measurements, form).predict(measurements), measurements.power_w) <= fit_bar
    if benchmark_bar is not None:
        # Squares are quick, and without the prior nothing of the other GPUs is in it.
        plain = Form(starts=1)
        assert error(left_out(of_form(plain), measurements, "benchmark"), measurements.power_w) <= benchmark_bar

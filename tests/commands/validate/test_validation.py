"""Scores, protocols, and that nothing of the rows to predict reaches what predicts them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from validation_support import made

from eprof import costs
from eprof.base.errors import EprofError
from eprof.commands.validate import words
from eprof.commands.validate.baselines import EXTRA_REGRESSION, NETWORK, REGRESSION, baselines
from eprof.commands.validate.document import document
from eprof.commands.validate.similar_kernels import distances, mixes, nearest
from eprof.commands.validate.study import Plan, grouped, histogram, scaled, scaled_by_one, score, validate
from eprof.lab.fitting import Form, cross_validation, fit, table_power
from eprof.lab.fitting.cross_validation import BASELINES_WITHOUT_COUNTS, of_form
from eprof.lab.measurements.settings import parse_setting, setting_label

QUICK = Form(starts=1)
watts = st.lists(st.floats(0.1, 1e4), min_size=2, max_size=30)


# ---- scores


def test_scores_by_hand():
    one = score(np.array([100.0, 50.0, 10.0]), np.array([110.0, 40.0, 10.0]))
    assert one.mean_percent == pytest.approx(10.0)
    assert one.sd_percent == pytest.approx(10.0)
    assert (one.min_percent, one.max_percent, one.n, one.missing) == (0.0, pytest.approx(20.0), 3, 0)
    assert one.bias_percent == pytest.approx(-10 / 3)
    assert one.rmse_w == pytest.approx(np.sqrt(200 / 3))


def test_what_is_not_predicted_is_counted_and_in_no_number():
    one = score(np.array([100.0, 50.0]), np.array([110.0, np.nan]))
    assert (one.n, one.missing, one.mean_percent) == (1, 1, pytest.approx(10.0))
    nothing = score(np.array([100.0]), np.array([np.nan]))
    assert (nothing.n, nothing.missing, nothing.mean_percent, nothing.rmse_w) == (0, 1, None, None)


@given(watts, st.floats(0.1, 10))
def test_relative_errors_do_not_depend_on_the_unit(measured, factor):
    measured = np.array(measured)
    predicted = measured[::-1].copy()
    one, other = score(measured, predicted), score(measured * factor, predicted * factor)
    assert other.mean_percent == pytest.approx(one.mean_percent)
    assert other.rmse_w == pytest.approx(one.rmse_w * factor)
    assert one.min_percent <= one.median_percent <= one.p90_percent * (1 + 1e-12) <= one.max_percent * (1 + 1e-9)


@given(watts)
def test_a_perfect_prediction_has_no_error_and_one_off_by_a_share_has_that(measured):
    measured = np.array(measured)
    assert score(measured, measured).max_percent == 0
    assert score(measured, 1.25 * measured).mean_percent == pytest.approx(25)
    assert score(measured, 1.25 * measured).sd_percent == pytest.approx(0, abs=1e-9)


def test_groups_are_the_rows_that_share_a_key():
    measured = made(benchmarks=3)
    predicted = measured.power_w * np.where(measured.rows["benchmark"] == "kernel1", 1.1, 1.0)
    found = {key: one.mean_percent for key, one in grouped(measured, "benchmark", predicted)}
    assert found == {"kernel0": 0, "kernel1": pytest.approx(10), "kernel2": 0}


def test_a_histogram_counts_every_known_error_once():
    edges = [-10.0, -5.0, 0.0, 5.0, 10.0]
    assert histogram(np.array([-99.0, -7, -1, 0, 4, 99, np.nan, 10]), edges) == [2, 1, 2, 2]


# ---- protocols


@pytest.mark.parametrize("text", ["", "852", "852/", "0/924", "852/0", "a/b", "nan/924"])
def test_a_setting_is_two_clocks(text):
    with pytest.raises(EprofError):
        parse_setting(text)
    assert parse_setting("852/924") == (852.0, 924.0) and setting_label((852.0, 924.0)) == "852/924"


def rows_of(pairs):
    frame = pd.DataFrame(pairs, columns=["benchmark", "core_mhz", "memory_mhz"])
    return frame.astype({"core_mhz": float, "memory_mhz": float})


row = st.tuples(st.sampled_from("abcdef"), st.sampled_from([100, 200, 300]), st.sampled_from([1, 2]))


@given(
    st.lists(row, min_size=4, max_size=40),
    st.sampled_from(sorted(set(cross_validation.MEANINGS) - {"table", "transfer"})),
)
@settings(max_examples=25)
def test_folds_cover_every_row_once_and_train_on_all_others(pairs, name):
    rows = rows_of(pairs)
    try:
        folds = cross_validation.folds(name, rows, k=3)
    except EprofError:
        kinds = {"leave_one_setting_out": rows.groupby(["core_mhz", "memory_mhz"]).ngroups < 2}
        kinds |= {"holdout": True, "leave_one_benchmark_out": rows["benchmark"].nunique() < 2}
        assert kinds.get(name, rows["benchmark"].nunique() < 3)
        return
    if name == cross_validation.FIT:
        assert list(folds[0].train) == list(folds[0].test) == list(range(len(rows)))
        return
    tested = np.concatenate([one.test for one in folds])
    assert len(set(tested)) == len(tested)
    assert name == cross_validation.HOLDOUT or sorted(tested) == list(range(len(rows)))
    for one in folds:
        assert len(one.test)
        assert sorted([*one.train, *one.test]) == list(range(len(rows)))


@given(st.lists(row, min_size=6, max_size=40))
@settings(max_examples=30)
def test_what_is_left_out_is_wholly_left_out(pairs):
    rows = rows_of(pairs)
    for name, keys in (
        ("leave_one_benchmark_out", ["benchmark"]),
        ("k_fold_benchmarks", ["benchmark"]),
        ("leave_one_setting_out", ["core_mhz", "memory_mhz"]),
        ("holdout", ["core_mhz", "memory_mhz"]),
    ):
        try:
            folds = cross_validation.folds(name, rows, k=2)
        except EprofError:
            continue
        for one in folds:
            train = set(map(tuple, rows.iloc[one.train][keys].to_numpy()))
            test = set(map(tuple, rows.iloc[one.test][keys].to_numpy()))
            assert not train & test


def test_the_seeds_hold_out_is_a_list_of_settings():
    rows = made(benchmarks=2).rows
    (fold,) = cross_validation.holdout(rows, [(500.0, 500.0), (700.0, 800.0)])
    assert set(map(tuple, rows.iloc[fold.test][["core_mhz", "memory_mhz"]].to_numpy())) == {(500, 500), (700, 800)}
    with pytest.raises(EprofError, match="--holdout 1/2: no row was measured there"):
        cross_validation.holdout(rows, [(1.0, 2.0)])


def test_hold_out_without_a_list_keeps_every_clock_among_the_training_rows():
    rows = made(benchmarks=1).rows
    (fold,) = cross_validation.holdout(rows)
    train = rows.iloc[fold.train]
    assert train["core_mhz"].nunique() == rows["core_mhz"].nunique()
    assert train["memory_mhz"].nunique() == rows["memory_mhz"].nunique()


def test_one_setting_or_one_kernel_cannot_be_left_out():
    with pytest.raises(EprofError, match="all rows are at 500/500 MHz"):
        cross_validation.folds("leave_one_setting_out", made(cores=(500.0,), memories=(500.0,)).rows)
    with pytest.raises(EprofError, match="all rows are of kernel0"):
        cross_validation.folds("leave_one_benchmark_out", made(benchmarks=1).rows)
    with pytest.raises(EprofError, match="--folds 1: needs 2 to 96"):
        cross_validation.folds("k_fold", made().rows, k=1)


# ---- nothing leaks


@dataclass
class Watching:
    """A model that keeps what it was shown."""

    name: str = "watching"

    def __post_init__(self):
        self.trained, self.asked = [], []

    def predict(self, train, test):
        self.trained.append(train)
        self.asked.append(test)
        return np.full(len(test), 1.0)


@pytest.mark.parametrize("name", ["holdout", "leave_one_setting_out", "leave_one_benchmark_out", "k_fold"])
def test_models_see_the_training_rows_and_the_others_without_their_power(name):
    measured, model = made(benchmarks=4), Watching()
    folds = cross_validation.folds(name, measured.rows, k=5)
    cross_validation.cross_validate(model, measured, folds, processes=1)
    for fold, trained, asked in zip(folds, model.trained, model.asked, strict=True):
        assert list(trained.rows["line"]) == list(measured.rows["line"].iloc[fold.train])
        assert list(asked.rows["line"]) == list(measured.rows["line"].iloc[fold.test])
        assert np.isnan(asked.power_w).all() and np.isfinite(trained.power_w).all()


def peeks(model, measured, fold):
    """Whether the predictions of a fold change with the measured power of the rows to predict."""
    power = measured.power_w.copy()
    power[fold.test] *= np.random.default_rng(1).uniform(0.3, 3.0, len(fold.test))
    other = replace(measured, rows=measured.rows.assign(power_w=power))
    return not np.array_equal(
        cross_validation.one_fold(model(measured), measured, fold), cross_validation.one_fold(model(other), other, fold)
    )


HONEST = [
    lambda _: of_form(QUICK),
    lambda _: of_form(Form(voltages="one", clock_tree=False)),
    lambda _: BASELINES_WITHOUT_COUNTS[0],
    lambda _: REGRESSION,
    lambda _: EXTRA_REGRESSION,
]


@pytest.mark.parametrize("model", HONEST)
@pytest.mark.parametrize("name", ["holdout", "leave_one_setting_out", "leave_one_benchmark_out"])
def test_no_prediction_depends_on_the_power_that_it_is_held_against(model, name):
    measured = made(benchmarks=5, noise=0.02)
    assert not peeks(model, measured, cross_validation.folds(name, measured.rows)[0])


@dataclass
class VoltagesOfAllRows:
    """A planted leak: voltages estimated on all rows, the rest on the training rows, as one must not do."""

    everything: object
    name: str = "leaks"

    def predict(self, train, test):
        own = fit(self.everything, QUICK)
        known = []
        for measured in (train, test):
            at = own.voltages(measured)
            known.append(replace(measured, rows=measured.rows.assign(core_v=at[:, 0], memory_v=at[:, 1])))
        return fit(known[0], replace(QUICK, voltages="given")).predict(known[1])


def test_a_planted_leak_is_found_and_shows_as_an_error_that_is_too_low():
    # One core clock per setting: what its voltage is, its own rows alone can tell.
    measured = made(benchmarks=6, cores=(500.0, 700.0, 800.0, 900.0, 1000.0), memories=(1000.0,), per_setting=0.08)
    folds = cross_validation.folds("leave_one_setting_out", measured.rows)
    assert peeks(VoltagesOfAllRows, measured, folds[1])
    honest = score(measured.power_w, cross_validation.cross_validate(of_form(QUICK), measured, folds, processes=1))
    leaking = score(
        measured.power_w, cross_validation.cross_validate(VoltagesOfAllRows(measured), measured, folds, processes=1)
    )
    assert leaking.mean_percent < 0.6 * honest.mean_percent


def test_processes_give_what_one_process_gives(monkeypatch):
    measured = made(benchmarks=6, noise=0.05)
    folds = cross_validation.folds("leave_one_benchmark_out", measured.rows)
    alone = cross_validation.cross_validate(REGRESSION, measured, folds, processes=1)
    monkeypatch.setattr(cross_validation, "_WORTH_PROCESSES_S", 0.0)
    told = []
    several = cross_validation.cross_validate(
        REGRESSION, measured, folds, processes=2, progress=lambda *at: told.append(at)
    )
    assert np.array_equal(alone, several)
    assert told == [(one, 6) for one in range(1, 7)]


def test_an_error_in_a_fold_says_which(monkeypatch):
    class Refuses(Watching):
        def predict(self, train, test):
            raise EprofError("too few.")

    measured = made(benchmarks=2)
    monkeypatch.setattr(cross_validation, "_WORTH_PROCESSES_S", 0.0)
    with pytest.raises(EprofError, match="watching, without kernel0: too few."):
        cross_validation.cross_validate(
            Refuses(), measured, cross_validation.folds("leave_one_benchmark_out", measured.rows)
        )


# ---- models


def test_the_form_predicts_what_was_made_from_it():
    measured = made(benchmarks=10)
    folds = cross_validation.folds("leave_one_benchmark_out", measured.rows)
    predicted = cross_validation.cross_validate(of_form(QUICK), measured, folds, processes=1)
    assert score(measured.power_w, predicted).mean_percent < 1.0


@pytest.mark.parametrize(("cores", "is_said"), [((1000.0,), False), ((500.0, 1000.0), True)])
def test_a_table_of_one_setting_says_that_it_is_applied_to_others(cores, is_said):
    measured = made(benchmarks=3, cores=cores, memories=(1000.0,))
    measured = replace(measured, rates=measured.rates[["dram_byte"]])
    notes = " ".join(table_power.power_by_table(costs.load("gtx680"), measured).notes)
    assert ("gtx680 holds at one setting only; it is applied to 2." in notes) == is_said


def test_constant_power_is_the_least_relative_error():
    measured = made(benchmarks=4)
    watts = float(BASELINES_WITHOUT_COUNTS[0].predict(measured, measured)[0])

    def lost(value):
        return float(((value / measured.power_w - 1) ** 2).sum())

    assert lost(watts) < min(lost(watts * 1.01), lost(watts * 0.99))


def test_extra_counters_are_caches_and_shared_memory():
    measured = made(benchmarks=4)
    others = replace(measured, rates=measured.rates.assign(l2_byte=2 * measured.rates["l2_byte"]))
    for model, looks in ((REGRESSION, False), (EXTRA_REGRESSION, True)):
        assert np.array_equal(model.predict(measured, others), model.predict(measured, measured)) is not looks
    others = replace(measured, rates=measured.rates.assign(dram_byte=2 * measured.rates["dram_byte"]))
    assert not np.array_equal(REGRESSION.predict(measured, others), REGRESSION.predict(measured, measured))


def test_the_network_is_ten_four_four_one(monkeypatch):
    neural = pytest.importorskip("sklearn.neural_network")
    made_of, seen = [], []

    class Network(neural.MLPRegressor):
        def fit(self, inputs, power):
            made_of.append((self.hidden_layer_sizes, self.activation))
            seen.append(inputs)
            return super().fit(inputs, power)

    monkeypatch.setattr(neural, "MLPRegressor", Network)
    measured = made(benchmarks=6)
    watts = NETWORK.predict(measured, measured)
    assert set(made_of) == {((4, 4), "logistic")}
    assert seen[0].shape[1] <= 10
    assert seen[0].mean(axis=0) == pytest.approx(0, abs=1e-9)
    assert seen[0].std(axis=0) == pytest.approx(1)
    assert score(measured.power_w, watts).mean_percent < 10


def test_a_baseline_that_cannot_run_is_named(monkeypatch):
    monkeypatch.setattr("eprof.commands.validate.baselines.find_spec", lambda name: None)
    found, said = baselines(made(benchmarks=3))
    assert not any("neural" in one.name for one in found)
    assert "needs scikit-learn" in said[0]


def test_one_scale_factor_mends_what_is_off_by_a_factor_and_its_row_is_not_scored():
    measured = made(benchmarks=3)
    factors = measured.rows["benchmark"].map({"kernel0": 1.3, "kernel1": 0.8, "kernel2": 1.0}).to_numpy()
    found = scaled(measured, measured.power_w * factors, measured.reference)
    at = ((measured.rows["core_mhz"] == 1000) & (measured.rows["memory_mhz"] == 1000)).to_numpy()
    assert np.isnan(found[at]).all() and at.sum() == 3
    assert found[~at] == pytest.approx(measured.power_w[~at])


def test_one_factor_for_a_card_is_of_each_kernel_in_turn_and_scores_the_others():
    """Each kernel is predicted by a factor of its own, and at other settings by yet another: only one counts."""
    measured = made(benchmarks=3)
    rows = measured.rows
    kernel = rows["benchmark"].to_numpy()
    wrong = {name: factor for factor, name in zip((2.0, 0.5, 1.25), dict.fromkeys(kernel), strict=True)}
    at_reference = (rows["core_mhz"] == measured.reference[0]) & (rows["memory_mhz"] == measured.reference[1])
    own = np.array([wrong[name] for name in kernel]) * np.where(at_reference, 1.0, 3.0)
    assert 0 < at_reference.sum() < len(rows)
    mended = scaled_by_one(measured, own * measured.power_w, measured.reference)
    assert len(mended) == 3
    for watts, metered in zip(mended, wrong, strict=True):
        others = kernel != metered
        assert np.isnan(watts[~others]).all()
        expected = own / wrong[metered] * measured.power_w
        assert watts[others] == pytest.approx(expected[others])
    nowhere = scaled_by_one(measured, measured.power_w, (1.0, 1.0))
    assert nowhere.shape == (0, len(measured))


def test_a_study_with_one_factor_for_the_card():
    measured = made(benchmarks=5, noise=0.01)
    outcomes = validate(measured, Plan(["leave_one_benchmark_out"], form=QUICK, scale="card", processes=1)).outcomes
    assert list(outcomes) == ["leave_one_benchmark_out", "leave_one_benchmark_out_card_scaled"]
    card = outcomes["leave_one_benchmark_out_card_scaled"]
    assert card.scores.n == 4 * len(measured)
    assert card.predicted == pytest.approx(measured.power_w, rel=0.2)


# ---- likeness


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=3, max_size=3), min_size=2, max_size=6))
def test_distances_of_mixes(shares):
    values = np.array(shares) / np.sum(shares, axis=1, keepdims=True)
    far = distances(values[0], values)
    assert far[0] == pytest.approx(0, abs=1e-12)
    assert ((far >= 0) & (far <= 1 + 1e-9)).all()
    assert distances(values[1], values)[0] == pytest.approx(far[1])


def test_the_nearest_kernel_is_another_one_with_the_same_mix():
    parts = pd.DataFrame({"a": [1.0, 2.0, 0.0], "b": [1.0, 2.1, 5.0]})
    found = nearest(mixes(parts, pd.Series(["x", "y", "z"])))
    assert list(found["nearest"]) == ["y", "x", "y"]
    assert found.loc["x", "distance"] < 0.02


def test_kernels_that_are_like_another_one_are_scored_apart_from_the_others():
    measured = made(benchmarks=8, cores=(500.0, 1000.0), memories=(500.0, 1000.0), noise=0.05)
    found = document(validate(measured, Plan(["fit"], form=QUICK)))
    likeness, distance = found.measured.likeness, {one.benchmark: one.distance for one in found.measured.by_benchmark}
    errors = {True: [], False: []}
    for row in found.rows:
        errors[distance[row.benchmark] <= likeness.distance].append(abs(row.error_percent))
    assert (likeness.near.n, likeness.far.n) == (len(errors[True]), len(errors[False]))
    assert likeness.near.mean_percent == pytest.approx(np.mean(errors[True]))
    assert likeness.far.mean_percent == pytest.approx(np.mean(errors[False]))

    def said(near, far):
        halves = {"near": replace(likeness.near, mean_percent=near), "far": replace(likeness.far, mean_percent=far)}
        return words.similarity(replace(found, measured=replace(found.measured, likeness=replace(likeness, **halves))))

    assert said(3.0, 3.1).startswith("Similarity says little here") and "off by 3.0 %, the others by 3.1 %" in said(
        3.0, 3.1
    )
    assert said(3.0, 4.0).startswith("Look for a kernel like yours")


# ---- studies


def test_a_study_runs_what_it_is_told_and_scales_where_kernels_are_new():
    measured = made(benchmarks=5, noise=0.01)
    found = validate(measured, Plan(["fit", "leave_one_benchmark_out"], form=QUICK, scale="kernel", processes=1))
    assert list(found.outcomes) == ["fit", "leave_one_benchmark_out", "leave_one_benchmark_out_scaled"]
    assert found.main == "leave_one_benchmark_out"
    assert found.outcomes["leave_one_benchmark_out_scaled"].scores.n == len(measured) - 5
    assert found.outcomes["leave_one_benchmark_out_scaled"].scores.missing == 0


def test_train_on_one_and_test_on_another():
    train, test = made(benchmarks=10, seed=1), made(benchmarks=3, seed=2)
    found = validate(test, Plan(form=QUICK), train=train)
    assert found.outcomes["transfer"].scores.mean_percent < 2
    lacking = train.only(["fp32_instruction", "dram_byte"])
    with pytest.raises(EprofError, match="only one of the two counts integer_instruction, l2_byte"):
        validate(test, Plan(form=QUICK), train=lacking)


def test_without_a_protocol_the_rows_are_split_as_far_as_they_can_be():
    several = validate(made(4, cores=(500.0, 700.0), memories=(500.0, 1000.0)), Plan(form=QUICK, processes=1))
    assert list(several.outcomes) == ["fit", "leave_one_setting_out", "leave_one_benchmark_out"]
    single = validate(made(benchmarks=4, cores=(700.0,), memories=(800.0,)), Plan(processes=1))
    assert list(single.outcomes) == ["fit", "leave_one_benchmark_out"] and single.plan.form is not None
    assert any(note.startswith("One setting only") for note in single.notes)
    held_out = validate(made(benchmarks=4), Plan(form=QUICK, holdout=[(500.0, 500.0)], processes=1))
    assert list(held_out.outcomes) == ["holdout"]


def test_kernels_with_unknowns_of_their_own_cannot_be_left_out():
    with pytest.raises(EprofError, match="none can be predicted from the others"):
        validate(replace(made(), own=True), Plan(["leave_one_benchmark_out"], form=QUICK))


def test_mlr_plus_is_named_where_there_is_nothing_to_add():
    measured = made(benchmarks=3).only(["fp32_instruction", "integer_instruction", "dram_byte"])
    found = validate(measured, Plan(["fit"], form=QUICK, baselines=True))
    assert not any("MLR+" in name for name in found.baselines)
    assert any("MLR+ is not among the baselines" in note for note in found.notes)


def test_a_plain_mean_that_is_as_good_is_said_without_asking_for_baselines():
    measured = made(8)
    noise = np.random.default_rng(1)
    dull = replace(measured, rows=measured.rows.assign(power_w=90 + noise.normal(0, 1, len(measured))))
    said = validate(dull, Plan(protocols=["leave_one_benchmark_out"], form=QUICK, processes=1)).notes
    assert any(note.startswith("No better than a plain mean for kernels that were left out") for note in said)
    telling = validate(measured, Plan(protocols=["leave_one_benchmark_out"], form=QUICK, processes=1)).notes
    assert not any("plain mean" in note for note in telling)


def test_rows_that_are_fewer_than_unknowns_are_told():
    few = made(8).take(np.arange(3))
    assert any("3 rows cannot tell" in note for note in validate(few, Plan(protocols=["fit"], form=QUICK)).notes)


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("dram_byte", "DRAM byte"),
        ("fp32_instruction", "FP32 instruction"),
        ("warp_issue_instruction", "warp issue instruction"),
    ],
)
def test_terms_are_called_as_everywhere(term, name):
    from eprof.commands.validate import words
    from eprof.commands.validate.similar_kernels import Candidate, Neighbour

    assert words.term_name(term) == name
    sentence = words.candidate_words(Candidate("mine", [Neighbour("theirs", 0.1, 5.0)], [term]))
    assert sentence.endswith(f" No measured kernel spends as much on {name}.")

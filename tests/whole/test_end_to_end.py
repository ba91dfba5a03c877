"""From log text to joules, in process: what must hold whatever the numbers are."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eprof

HEADER = '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
METRICS = ("flop_count_sp_fma", "flop_count_sp_add", "flop_count_sp_mul", "inst_integer", "l2_write_transactions")

counts = st.integers(min_value=0, max_value=10**12)
kernels = st.dictionaries(
    st.sampled_from(["a(int)", "b<(bool)1>(float*, int)", "c::d", "void e<int, 3>()"]),
    st.tuples(st.integers(1, 50), st.fixed_dictionaries({metric: counts for metric in METRICS})),
    min_size=1,
)
no_fixture_reset = settings(max_examples=5)


def rows(runs):
    return [
        f'"Tesla K20c (0)","{name}",{launches},"{metric}","words, with a comma",{value},{value},{value}\n'
        for name, (launches, values) in runs.items()
        for metric, value in values.items()
    ]


def log(tmp_path, lines, name="log.csv", pid=1):
    path = tmp_path / name
    start = f"=={pid}== NVPROF is profiling process {pid}, command: ./x\n=={pid}== Metric result:\n"
    path.write_text(start + HEADER + "".join(lines))
    return path


def energy(*paths, **options):
    return eprof.load(*paths, **options).energy("jetson-tk1")


def totals(document):
    """Joules by kernel; 0 where all that is known is that some classes take none."""
    return {kernel["name"]: kernel["energy_j"]["total"] or 0.0 for kernel in document["kernels"]}


@no_fixture_reset
@given(kernels)
def test_energy_is_what_a_pencil_says(tmp_path, runs):
    document = energy(log(tmp_path, rows(runs))).document()
    found = totals(document)
    sp, integer = 2 * 27.357 * 1.03**2, 56.546 * 1.03**2
    for name, (launches, values) in runs.items():
        flops = sum(values[f"flop_count_sp_{kind}"] for kind in ("fma", "add", "mul"))
        by_hand = launches * (flops * sp + values["inst_integer"] * integer) * 1e-12
        data = sum(
            (count["energy_j"] or 0)
            for kernel in document["kernels"]
            if kernel["name"] == name
            for word, count in kernel["counts"].items()
            if count["unit"] == "byte"
        )
        assert found[name] == pytest.approx(by_hand + data, rel=1e-9, abs=1e-15)


@no_fixture_reset
@given(kernels, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing(tmp_path, runs, random):
    lines = rows(runs)
    before = totals(energy(log(tmp_path, lines)).document())
    random.shuffle(lines)
    assert totals(energy(log(tmp_path, lines)).document()) == pytest.approx(before, rel=1e-12)


@no_fixture_reset
@given(kernels)
def test_two_runs_are_twice_the_energy_and_a_copy_is_none(tmp_path, runs):
    one, two = log(tmp_path, rows(runs), "one.csv"), log(tmp_path, rows(runs), "two.csv", pid=2)
    once, twice = energy(one).document(), energy(one, two).document()
    copied = energy(one, log(tmp_path, rows(runs), "copy.csv")).document()
    assert (totals(copied), copied["launches"]) == (totals(once), once["launches"])
    assert totals(twice) == pytest.approx({name: 2 * joules for name, joules in totals(once).items()}, rel=1e-12)
    assert twice["launches"] == 2 * once["launches"]


@no_fixture_reset
@given(kernels)
def test_metrics_split_over_two_files_make_the_same_profile(tmp_path, runs):
    whole = energy(log(tmp_path, rows(runs), "all.csv")).document()
    lines = rows(runs)
    integers = [line for line in lines if "inst_integer" in line]
    others = [line for line in lines if "inst_integer" not in line]
    parts = energy(log(tmp_path, integers, "1.csv"), log(tmp_path, others, "2.csv")).document()
    assert parts["counts"] == whole["counts"]
    assert totals(parts) == totals(whole)


@no_fixture_reset
@given(kernels)
def test_the_document_is_strict_json_and_adds_up(tmp_path, runs):
    document = energy(log(tmp_path, rows(runs))).document()
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again == document
    known = [document["energy_j"][part] for part in ("computation", "data", "constant")]
    assert (document["energy_j"]["total"] or 0.0) == pytest.approx(
        math.fsum(x for x in known if x is not None), rel=1e-12
    )


def test_the_frame_has_the_units_it_promises(tmp_path):
    runs = {"a(int)": (3, dict.fromkeys(METRICS, 1000))}
    frame = energy(log(tmp_path, rows(runs)), time=["0.5"]).to_frame()
    row = frame.iloc[0]
    assert row["integer"] == 3000
    assert row["integer_j"] == pytest.approx(3000 * 56.546 * 1.03**2 * 1e-12)
    assert row["time_s"] == 0.5
    assert row["constant_j"] == pytest.approx(0.5 * (2.806 * 1.03 + 3.858 * 1.01))
    assert row["power_w"] == pytest.approx(row["total_j"] / 0.5)


def test_setting_and_table_can_be_chosen_again_without_reading_again(tmp_path):
    profile = eprof.load(log(tmp_path, rows({"a(int)": (1, dict.fromkeys(METRICS, 10**9))})))
    fast, slow = (profile.energy("jetson-tk1", setting=setting) for setting in ("852/924", "396/924"))
    ratio = slow.split.computation_j.sum() / fast.split.computation_j.sum()
    assert ratio == pytest.approx((0.77 / 1.03) ** 2)

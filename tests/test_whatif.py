"""What-if: every answer against the same thing priced anew, and questions that cannot be asked."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eprof
from eprof import costs, whatif
from eprof.energy import attribute
from eprof.errors import CostError, UsageError
from eprof.marks import Mark
from eprof.modelled import roofline_s
from eprof.tuning import build

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "samples" / "logs" / "invented"
SIMULATED = sorted((ROOT / "samples" / "logs" / "simulated").glob("*.txt*"))[0]
K20C = ROOT.parent / "shared" / "data" / "nvprof" / "k20c-metrics-summary.csv"


@pytest.fixture(scope="module")
def profile():
    """Six kernels of the FMM, with times: invented numbers in nvprof's format."""
    return eprof.load(SAMPLE / "tk1-fmm-counters.csv", SAMPLE / "tk1-fmm-times.csv")


@pytest.fixture(scope="module")
def energy(profile):
    return profile.energy("jetson-tk1")


def whole(split):
    return float(split.total_j.sum())


def again(energy, priced, time_s=None, table=None):
    """The total of a profile priced anew, the long way."""
    kernels = energy.counts.kernels
    counts = replace(
        energy.counts,
        kernels=kernels if time_s is None else kernels.assign(time_s=time_s),
        table=energy.counts.table if table is None else table,
    )
    return whole(attribute(counts, priced))


def roof(energy, priced, table=None):
    return roofline_s(energy.counts.table if table is None else table, priced)


def times(energy):
    return energy.counts.kernels["time_s"].to_numpy()


# ---- answers


@pytest.mark.parametrize("table", ["jetson-tk1", "gtx680", "gtx580", "fermi-keckler", "i7-950"])
def test_changing_nothing_changes_nothing(profile, table):
    """The quick way to price a whole profile gives what attribution gives, marks and all."""
    energy = profile.energy(table)
    document, answer = energy.document(), energy.what_if("pi0=1")
    for part, joules in answer.energy_j.items():
        assert joules == pytest.approx(document["energy_j"][part], rel=1e-12), part
    assert answer.change_j == 0 and answer.time_share == 0
    assert answer.marks == Mark.ESTIMATED | sum(Mark[word.upper()] for word in document["marks"])


@pytest.mark.skipif(not K20C.exists(), reason="needs ../shared/data")
def test_a_real_log_whose_time_is_recovered():
    energy = eprof.load(K20C, capability="3.5").energy("jetson-tk1")
    assert energy.what_if("pi0=1").energy_j["total"] == pytest.approx(energy.document()["energy_j"]["total"])
    assert "estimated" in energy.what_if("race").data()["marks"]


def test_less_constant_power(energy):
    document = energy.document()["energy_j"]
    for question in ("pi0=0.5", "pi0=-50%", "pi0=50%"):
        assert energy.what_if(question).change_j == pytest.approx(-document["constant"] / 2)
    assert energy.what_if("pi0=3W").energy_j["constant"] == pytest.approx(3 * times(energy).sum())


def test_a_class_for_free_and_fewer_of_it(energy):
    counts = energy.document()["counts"]
    free = energy.what_if("integer=free")
    assert free.change_j == pytest.approx(-counts["integer"]["energy_j"]) and free.time_share == 0
    assert energy.what_if("data=free").energy_j["data"] == 0
    table = energy.counts.table.copy()
    table[["dram_read", "dram_write"]] *= 0.8
    slower = times(energy) + roof(energy, energy.costs, table) - roof(energy, energy.costs)
    assert energy.what_if("dram=-20%").energy_j["total"] == pytest.approx(again(energy, energy.costs, slower, table))
    assert energy.what_if("dram=-20%").time_share < 0  # v_list is memory bound
    assert energy.what_if("fp64=2").time_share > 0


def test_another_setting(energy, profile):
    priced = costs.load("jetson-tk1").at("396/528")
    # docs/tune.md: what DRAM moves at 85 % of its peak goes with the memory clock, the rest with the core clock.
    table = energy.counts.table
    memory = (table["dram_read"] + table["dram_write"]).to_numpy() / (0.85 * energy.costs.peaks.dram_gb_per_s * 1e9)
    core = times(energy) ** 3 - memory**3
    slower = (core * (852 / 396) ** 3 + memory**3 * (924 / 528) ** 3) ** (1 / 3)
    answer = energy.what_if("setting=396/528")
    assert answer.energy_j["total"] == pytest.approx(again(energy, priced, slower))
    assert answer.time_s == pytest.approx(slower.sum())
    both = energy.what_if("setting=396/528, pi0=0.5")
    assert both.energy_j["constant"] == pytest.approx(answer.energy_j["constant"] / 2)


def test_another_table(energy):
    priced = costs.load("gtx680").at()
    faster = times(energy) * roof(energy, priced) / roof(energy, energy.costs)
    answer = energy.what_if("costs=gtx680")
    assert answer.energy_j["total"] == pytest.approx(again(energy, priced, faster))
    assert answer.marks & Mark.MISSING  # integers have no price there
    assert "as if on that platform" in answer.says


def test_a_table_with_other_books(energy, tmp_path):
    text = (ROOT / "costs" / "gtx680.toml").read_text()
    text = text.replace('books = "served"', 'books = "accessed"').replace('name = "gtx680"', 'name = "mine"')
    (tmp_path / "mine.toml").write_text(text)
    table = costs.load(str(tmp_path / "mine.toml"))
    counts = energy.profile.counts("accessed")
    expected = attribute(counts, table.at()).data_j.sum()
    assert energy.what_if(f"costs={tmp_path / 'mine.toml'}").energy_j["data"] == pytest.approx(float(expected))


def test_racing_to_finish(energy):
    at_roof = np.minimum(times(energy), roof(energy, energy.costs))
    answer = energy.what_if("race")
    assert answer.time_s == pytest.approx(at_roof.sum())
    assert answer.change_j == pytest.approx((at_roof.sum() - times(energy).sum()) * energy.costs.constant_power_w)


@pytest.mark.parametrize("cap_w", [7.0, 7.5, 8.0, 9.0, 100.0])
def test_a_power_cap_holds_for_every_kernel(energy, cap_w):
    answer = energy.what_if(f"cap={cap_w}W")
    split = energy.split
    above = (split.total_j - split.constant_j).to_numpy()
    slowed = np.maximum(times(energy), above / (cap_w - energy.costs.constant_power_w))
    assert answer.time_s == pytest.approx(slowed.sum())
    assert answer.energy_j["total"] <= cap_w * slowed.sum() * (1 + 1e-12)
    assert answer.change_j >= 0


def test_what_is_missing_stays_missing(profile):
    bare = eprof.load(SAMPLE / "tk1-fmm-counters.csv").energy("jetson-tk1")
    answer = bare.what_if("dram=-20%")
    assert answer.energy_j["constant"] is None and answer.time_s is None and answer.time_share is None
    assert answer.marks & Mark.MISSING and answer.marks & Mark.ESTIMATED
    assert answer.change_j < 0


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("", "write setting="),
        ("nonsense=1", "write setting="),
        ("dram", "write setting="),
        ("dram=lots", "say a factor"),
        ("dram=-120%", "0 or more"),
        ("dram=-1", "0 or more"),
        ("cap=5W", "constant power alone"),
        ("cap=0", "nothing to compute with"),
        ("cap=-100%", "nothing to compute with"),
        ("setting=fast", "not a setting"),
        ("setting=9999/924", "has no setting"),
        ("costs=nothing", "no cost table"),
    ],
)
def test_questions_that_cannot_be_answered(energy, question, says):
    with pytest.raises((UsageError, CostError), match=says):
        energy.what_if(question)


def test_without_costs_there_is_nothing_to_ask(profile):
    bare = replace(profile.energy("jetson-tk1"), costs=None, split=None, table=None)
    with pytest.raises(UsageError, match="--costs"):
        bare.what_if("race")


def test_a_table_with_one_setting_has_no_other(profile):
    with pytest.raises(CostError, match="one setting only"):
        profile.energy("gtx680").what_if("setting=852/924")


# ---- clocks


def test_every_clock_is_the_answer_to_its_question(energy):
    grid = whatif.clocks(energy)
    assert len(grid["settings"]) == 28
    for row in grid["settings"]:
        answer = energy.what_if(f"setting={row['core_mhz']:g}/{row['memory_mhz']:g}")
        assert row["energy_j"] == pytest.approx(answer.energy_j["total"])
    mine = [row for row in grid["settings"] if row["this"]]
    assert len(mine) == 1 and mine[0]["energy_j"] == pytest.approx(energy.document()["energy_j"]["total"])
    assert grid["lowest"]["energy_j"] == min(row["energy_j"] for row in grid["settings"])
    assert grid["fastest"]["time_s"] == min(row["time_s"] for row in grid["settings"])
    # The fastest is not the best: a lower memory clock takes 2 % more time, at less constant power.
    assert (grid["lowest"]["core_mhz"], grid["lowest"]["memory_mhz"]) == (852, 528)
    assert (grid["fastest"]["core_mhz"], grid["fastest"]["memory_mhz"]) == (852, 924)


@pytest.mark.parametrize("setting", [None, "396/204"])
@pytest.mark.parametrize("what", ["timed", "simulated"])
def test_report_and_tune_name_the_same_energies_and_times(profile, what, setting):
    """At every setting that both know; for a simulated profile also what a report at that setting says."""
    if what == "simulated":
        profile = eprof.load(SIMULATED)
    energy = profile.energy("jetson-tk1", setting=setting)
    grid = {f"{row['core_mhz']:g}/{row['memory_mhz']:g}": row for row in whatif.clocks(energy)["settings"]}
    tuned = build.from_profile(energy, costs.load("jetson-tk1"))
    for at, point in enumerate(tuned.points):
        joules, seconds = (sum(getattr(one, name)[at] for one in tuned.grids) for name in ("energy_j", "time_s"))
        assert grid[point.label]["energy_j"] == pytest.approx(joules, rel=1e-12)
        assert grid[point.label]["time_s"] == pytest.approx(seconds, rel=1e-12)
        if what == "simulated":
            there = profile.energy("jetson-tk1", setting=point.label).document()
            assert there["energy_j"]["total"] == pytest.approx(joules, rel=1e-12)
            assert there["time_s"] == pytest.approx(seconds, rel=1e-12)


def test_the_range_of_the_lowest_says_what_rests_on_the_times(profile):
    grid = whatif.clocks(profile.energy("jetson-tk1", setting="396/204"))
    low, high = grid["lowest"]["energy_range_j"]
    assert low <= grid["lowest"]["energy_j"] <= high and low < high


def test_one_setting_has_no_grid(profile):
    assert whatif.clocks(profile.energy("gtx680")) is None


# ---- how well the prices are known


def complete(energy):
    """As if nothing were missing: the interval is about the prices alone."""
    return replace(energy, split=replace(energy.split, marks=energy.split.marks * 0))


def test_the_interval_is_that_of_the_replicas(profile):
    energy = complete(profile.energy("v100"))
    found = whatif.interval(energy)
    totals = [again_with(energy, one) for one in costs.load("v100").replicas()]
    assert found["replicas"] == len(totals) >= 10
    assert found["total"] == pytest.approx(np.percentile(totals, [5, 95]).tolist())
    assert found["total"][0] < energy.document()["energy_j"]["total"] < found["total"][1]
    assert "replicas" not in energy.document()["costs"]["fit"]


def test_a_lower_bound_has_no_upper_end(profile):
    counted = complete(profile.energy("v100"))
    lost = counted.split.marks.copy()
    lost["dram_read"] = int(Mark.MISSING)
    energy = replace(counted, split=replace(counted.split, marks=lost))
    found = whatif.interval(energy)
    assert found["total"] is None and found["data"] is None and found["computation"] is not None


def again_with(energy, priced):
    return whole(attribute(energy.counts, priced))


def test_a_published_table_has_no_interval(energy):
    assert whatif.interval(energy) is None
    assert "interval_j" not in energy.document() and "fit" not in energy.document()["costs"]


# ---- in the document


def test_the_document_holds_asked_and_usual_answers(energy):
    document = energy.asking("pi0=3W", "race").document()
    questions = [one["question"] for one in document["what_if"]]
    assert questions[:2] == ["pi0=3W", "race"] and questions.count("race") == 1 and "dram=-20%" in questions
    assert all(one["modelled"] and "estimated" in one["marks"] for one in document["what_if"])
    json.dumps(document, allow_nan=False)
    with pytest.raises(UsageError):
        energy.asking("nonsense")


def test_limits_of_every_kernel_are_in_the_document(energy):
    document = energy.document()
    limits = document["limits"]
    assert [one["precision"] for one in limits["machines"]] == ["fp64", "fp32"]
    for kernel, limit in zip(document["kernels"], limits["kernels"], strict=True):
        assert math.fsum(limit["parts_j"].values()) == pytest.approx(kernel["energy_j"]["total"])
        assert limit["speed_share"] == pytest.approx(limit["roofline_time_s"] / kernel["time_s"])


def test_what_is_taken_for_granted_about_other_clocks_is_said(energy):
    assert energy.what_if("setting=396/204").assumes == whatif.AT_CLOCKS
    table = energy.counts.table.copy()
    table.loc[table.index[0], "dram_read"] = np.nan
    partly = replace(energy, counts=replace(energy.counts, table=table))
    assert energy.what_if("setting=396/204").time_s != partly.what_if("setting=396/204").time_s
    said = partly.what_if("setting=396/204").assumes
    assert said.startswith(whatif.AT_CLOCKS) and said.endswith(whatif.SHARE)

"""What-if: every answer against the same thing priced anew, and questions that cannot be asked."""

import json
import math
import re
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from frames_support import columns, counts_with
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

import eprof
from eprof import costs
from eprof.base.errors import CostError, UsageError
from eprof.base.vocabulary import Mark
from eprof.commands.tune import grids
from eprof.commands.tune.document import document as tune_document
from eprof.commands.tune.setting_in_force import setting_in_force
from eprof.energy.attribution import attribute
from eprof.energy.modelled_time import roofline_s
from eprof.lab import objective
from eprof.profile import whatif, whatif_model
from eprof.profile.document import document
from eprof.profile.priced_profile import joules_of, limit_by_table_w, time_of
from eprof.profile.whatif_model import at_all_clocks

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "samples" / "logs" / "invented"
SIMULATED = ROOT / "samples" / "logs" / "simulated" / "gemm-naive.txt"
SHARED = ROOT.parent / "shared" / "data"
K20C = SHARED / "nvprof" / "k20c-metrics-summary.csv"
TITAN = SHARED / "nvprof" / "titan-wide-trace-events-and-metrics.csv"
UNTIMED = SHARED / "repro" / "power-of-untimed.csv"


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
    kernels = None if time_s is None else energy.counts.kernels.assign(time_s=time_s)
    return whole(attribute(counts_with(energy.counts, kernels=kernels, table=table), priced))


def roof(energy, priced, table=None):
    return roofline_s(energy.counts.amounts if table is None else columns(table), priced)


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
    assert Mark.ESTIMATED in energy.what_if("race").marks


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


def test_cores_that_ran_above_their_setting_do_at_another_too(energy):
    """1065 MHz are 1.25 times the 852 of the setting, and so are the peaks of flops that bound time at 396."""
    faster = energy.priced(replace(energy.costs, cores_mhz=1065.0))
    there = costs.load("jetson-tk1").at("396/528")
    sp_gflops, dp_gflops = 1.25 * there.peaks.sp_gflops, 1.25 * there.peaks.dp_gflops
    there = replace(there, peaks=replace(there.peaks, sp_gflops=sp_gflops, dp_gflops=dp_gflops))
    assert faster.what_if("setting=396/528,race").time_s == pytest.approx(roof(energy, there).sum())


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


def test_a_table_of_ones_own_for_this_gpu_leaves_times_as_they_are(energy, tmp_path):
    """Another file for the same GPU, in which DRAM costs nothing: no time changes, and the DRAM bytes are saved."""
    text = (ROOT / "costs" / "jetson-tk1.toml").read_text()
    free = re.sub(r"dram_byte = [\d.]+", "dram_byte = 0.0", text)
    assert free != text
    (tmp_path / "mine.toml").write_text(free)
    answer = energy.what_if(f"costs={tmp_path / 'mine.toml'}")
    assert answer.time_s == pytest.approx(answer.before_s) and "as if on that platform" not in answer.says
    assert answer.energy_j["total"] == pytest.approx(
        again(energy, costs.load(str(tmp_path / "mine.toml")).at("852/924"))
    )


def test_racing_to_finish(energy):
    at_roof = np.minimum(times(energy), roof(energy, energy.costs))
    answer = energy.what_if("race")
    assert answer.time_s == pytest.approx(at_roof.sum())
    assert answer.change_j == pytest.approx((at_roof.sum() - times(energy).sum()) * energy.costs.constant_power_w)


@pytest.mark.parametrize("cap_w", [7.0, 7.5, 8.0, 9.0, 100.0])
def test_a_power_cap_holds_for_every_kernel(energy, cap_w):
    answer = energy.what_if(f"cap={cap_w}W")
    split = energy.split
    above = split.total_j - split.constant_j
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
        ("counts=0.5", "write setting="),
        ("race=1", "write setting="),
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


@pytest.mark.parametrize(
    ("question", "what"),
    [
        ("race,time=-10%", "time"),
        ("setting=396/924,setting=852/924", "setting"),
        ("costs=gtx680,costs=jetson-tk1", "costs"),
        ("pi0=-50%,pi0=20W", "pi0"),
        ("cap=8W,cap=-50%", "cap"),
        ("data=-50%,dram=free", "dram"),
        ("dram_read=0,data=-50%", "dram_read"),
        ("time=2,race", "time"),
    ],
)
def test_changes_of_the_same_thing_exclude_each_other(energy, question, what):
    first, second = question.split(",")
    with pytest.raises(UsageError) as refused:
        energy.what_if(question)
    assert f"{first} and {second} exclude each other, as both change `{what}`" in str(refused.value)
    assert f"--what-if {first} --what-if {second}" in str(refused.value)


# ---- what several changes make together

SEVERAL = ("pi0=-50%", "cap=-50%", "cap=100W", "dram=-20%", "dram=free", "int=0", "data=-50%", "l2=+100%", "fp64=free")
LOGS = [
    ("samples/logs/invented/tk1-fmm-counters.csv", "samples/logs/invented/tk1-fmm-times.csv"),
    ("../shared/data/nvprof/k20c-metrics-summary.csv",),
    ("../shared/data/nvprof/titan-wide-trace-events-and-metrics.csv",),
    ("../shared/data/nvprof/gtx1080ti-cuda8-metrics-summary.csv",),
    ("../shared/data/ncu/v100-miniweather-baseline.ncu-rep",),
    ("../shared/data/ncu-modern/a100-sxm4-silu.ncu-rep",),
]


@lru_cache
def of_log(names):
    if not all((ROOT / name).exists() for name in names):
        pytest.skip("needs ../shared/data")
    return eprof.load(*(ROOT / name for name in names)).energy()


@pytest.mark.parametrize("names", LOGS, ids=lambda names: Path(names[0]).stem)
def test_every_pair_of_changes_holds_together(names):
    """In any order the same, the parts add up, no faster than the roofline, and no more power than the board draws."""
    energy = of_log(names)
    limit_w = energy.limits.total_j / time_of(energy)
    for pair in combinations((*SEVERAL, "time=-99%", "race"), 2):
        answer, other = (answered(energy, ",".join(order)) for order in (pair, pair[::-1]))
        assert (answer is None) == (other is None), pair
        if answer is None:
            continue
        assert replace(answer, question="", says="", assumes="") == replace(other, question="", says="", assumes="")
        assert math.fsum(answer.energy_j[part] or 0.0 for part in PARTS[:3]) == pytest.approx(answer.energy_j["total"])
        assert answer.energy_j["total"] <= limit_w * answer.time_s * (1 + 1e-9), pair
        if pair[1] == "time=-99%":
            raced = energy.what_if(f"{pair[0]},race")
            assert answer.time_s == pytest.approx(raced.time_s) and whatif.AT_ROOF.format("kernel") in answer.assumes


def test_less_time_takes_less_constant_power_and_fewer_active_cycles():
    energy = of_log(LOGS[1])
    document = energy.document()
    running_j = document["counts"]["sm_active_cycle"]["energy_j"]
    tenth_j = 0.1 * (document["energy_j"]["constant"] + running_j)
    assert running_j > 0 and energy.what_if("time=-10%").change_j == pytest.approx(-tenth_j)
    race = energy.what_if("race")
    gone = -race.time_share * (document["energy_j"]["constant"] + running_j)
    assert race.change_j == pytest.approx(-gone)


@pytest.mark.parametrize("setting", ["1005/1215", "1410/1215"])
def test_active_cycles_go_with_the_core_clock(setting):
    """By hand: 1090 MHz ran, and cycles are the clock times the time."""
    energy = of_log(LOGS[5])
    answer, there = energy.what_if(f"setting={setting}"), energy.table.at(setting)
    ratio = there.setting.core_mhz / energy.costs.setting.core_mhz
    cycles = energy.document()["counts"]["sm_active_cycle"]["value"] * ratio * answer.time_s / time_of(energy)
    joules = attribute(energy.counts, there)
    work = float(joules.work_j.sum()) - float(joules.joules["sm_active_cycle"].sum())
    cycle_j = cycles * there.charges["sm_active_cycle"].pj * 1e-12
    assert answer.energy_j["total"] == pytest.approx(work + cycle_j + there.constant_power_w * answer.time_s)


def timed_together(energy):
    """The same, with the time of all kernels known together only."""
    kernels = energy.counts.kernels.assign(time_s=np.nan)
    together = replace(energy, counts=counts_with(energy.counts, kernels=kernels), total_s=time_of(energy))
    return together.priced(energy.costs)


def test_active_cycles_go_with_a_time_that_is_known_of_all_kernels_together():
    together = timed_together(of_log(LOGS[1]))
    document = together.document()
    running_j, constant_j = document["counts"]["sm_active_cycle"]["energy_j"], document["energy_j"]["constant"]
    assert running_j > 0 and together.what_if("time=-10%").change_j == pytest.approx(-0.1 * (running_j + constant_j))


def test_a_cap_in_per_cent_is_of_what_the_peaks_take_whatever_is_free(energy):
    capped, free = energy.what_if("cap=-95%"), energy.what_if("cap=-95%,dram=free")
    assert free.says == f"DRAM for free; {capped.says}" and free.time_s < capped.time_s


def test_the_roofline_of_another_gpu_holds_no_time():
    if not K20C.exists():
        pytest.skip("needs ../shared/data")
    answer = eprof.load(K20C, capability="3.5").energy("jetson-tk1").what_if("time=-50%")
    assert answer.time_share == pytest.approx(-0.5) and whatif.AT_ROOF.format("kernel") not in answer.assumes


def test_a_table_lets_through_what_any_of_its_boards_may_draw():
    """300 W of the P100 for NVLink, and not 250 of that for PCI Express; else what the table tells; else anything."""
    assert limit_by_table_w(costs.load("p100")) == 300
    assert limit_by_table_w(costs.load("mi300a")) == costs.load("mi300a").peaks().power_limit_w == 760
    assert limit_by_table_w(costs.load("fermi-keckler")) == math.inf


@pytest.mark.parametrize("case", ["each", "together", "simulated"])
def test_what_another_board_lets_through_holds_where_time_was_measured(monkeypatch, case):
    monkeypatch.setattr(whatif, "limit_by_table_w", lambda table: 60.0 if case != "simulated" else 1.0)
    energy = eprof.load(SIMULATED).energy("jetson-tk1") if case == "simulated" else of_log(LOGS[1])
    if case == "together":
        energy = timed_together(energy)
    answer = energy.what_if("costs=v100,race" if case == "each" else "costs=v100,pi0=1W,l2=+10000%,time=0.01")
    watts = answer.energy_j["total"] / answer.time_s
    assert watts <= 60 * (1 + 1e-9), watts
    assert (whatif.LIMITED.format("kernel") in answer.assumes) is (case != "simulated")


def test_on_another_platform_no_board_draws_more_than_its_own_limit():
    """At the prices of a V100 the work of this log would take a kilowatt there: its board lets 300 W through."""
    log = SHARED / "nvprof" / "gtx1080ti-cuda8-metrics-summary-cublas-templates.csv"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    answer = eprof.load(log).energy("jetson-tk1").what_if("costs=v100")
    assert answer.energy_j["total"] / answer.time_s <= 300 * (1 + 1e-9)
    assert whatif.LIMITED.format("kernel") in answer.assumes


# ---- what holds for every answer

PARTS = ("computation", "data", "constant", "total")
TABLES = ("jetson-tk1", "gtx680", "gtx580", "fermi-keckler", "i7-950")
WORDS = ("fp64_fma", "fp32_fma", "fp32_add", "integer", "l2_read", "dram_read", "dram_write")
amounts = st.one_of(st.just(0.0), st.just(math.nan), st.floats(1.0, 1e12))
# From far below the roofline of these tables to far above it, and not known.
moments = st.one_of(st.just(math.nan), st.just(0.0), st.floats(1e-9, 1e3))
kernels = st.lists(st.tuples(moments, *[amounts] * len(WORDS)), min_size=1, max_size=6)
factors = st.floats(0, 1).map(lambda factor: f"{factor:.6f}")
counted = st.sampled_from(["dram", "fp64", "fp32", "integer", "data", "computation", "l2_read", "dram_write"])
changes = st.one_of(
    st.just("race"),
    st.tuples(counted, factors).map("=".join),
    st.tuples(st.sampled_from(["pi0", "time"]), factors).map("=".join),
    st.tuples(counted, st.just("free")).map("=".join),
    st.sampled_from(["cap=130W", "cap=800W", "dram=3", "time=2", "costs=gtx680", "setting=396/204", "setting=612/924"]),
)
every = settings(max_examples=40)


@lru_cache
def invented(table):
    """The six kernels priced with a table."""
    return eprof.load(SAMPLE / "tk1-fmm-counters.csv", SAMPLE / "tk1-fmm-times.csv").energy(table)


def priced(like, rows, total_s=None):
    """A priced profile of kernels with these times and counts, NaN = not known, at the costs of `like`."""
    table = like.counts.table.iloc[[0] * len(rows)].reset_index(drop=True) * math.nan
    marks = like.counts.marks.iloc[[0] * len(rows)].reset_index(drop=True) * 0
    table[list(WORDS)] = [row[1:] for row in rows]
    marks[list(WORDS)] = np.where(np.isnan(table[list(WORDS)]), int(Mark.MISSING), 0)
    frame = like.counts.kernels.iloc[[0] * len(rows)].reset_index(drop=True)
    frame = frame.assign(kernel=[f"k{at}" for at in range(len(rows))], time_s=[row[0] for row in rows], time_marks=0)
    counts = counts_with(like.counts, kernels=frame, table=table, marks=marks)
    return replace(like, counts=counts, total_s=total_s).priced(like.costs)


def of_kernels(table, rows):
    """As `priced`; in turns with the time of each kernel, or with one of all together."""
    known = sum(row[0] for row in rows if not math.isnan(row[0]))
    together = len(rows) % 2 and any(math.isnan(row[0]) for row in rows)
    return priced(invented(table), rows, known + 0.5 if together else None)


def answered(energy, question):
    try:
        return energy.what_if(question)
    except (UsageError, CostError):
        return None


def less_or_same(after, before):
    return after is None or before is None or after <= before * (1 + 1e-9) + 1e-300


@given(st.sampled_from(TABLES), kernels, st.lists(changes, min_size=1, max_size=4))
@example("jetson-tk1", [(1e-3, 1e6, 0.0, 0.0, 1e6, 1e10, 1e10, 1e9)], ["dram=0.5"])
@every
def test_no_energy_and_no_time_is_below_zero(table, rows, question):
    answer = answered(of_kernels(table, rows), ",".join(question))
    if answer is not None:
        assert all(joules is None or joules >= 0 for joules in answer.energy_j.values())
        assert answer.time_s is None or answer.time_s >= 0
        assert answer.time_share is None or answer.time_share >= -1


@given(st.sampled_from(TABLES), kernels, counted, st.floats(0, 2), st.floats(0, 2))
@example("jetson-tk1", [(math.nan, 0.0, 0.0, 328.0, 0.0, 0.0, 0.0, 0.0)], "fp32", 0.0, 0.5)
@every
def test_fewer_of_anything_never_takes_more_energy_or_time(table, rows, what, one, other):
    energy = of_kernels(table, rows)
    few, many = (energy.what_if(f"{what}={factor:.9f}") for factor in sorted((one, other)))
    assert less_or_same(few.energy_j["total"], many.energy_j["total"]) and less_or_same(few.time_s, many.time_s)


@given(st.sampled_from(TABLES), kernels)
@every
def test_racing_raises_nothing_and_gives_no_kernel_a_time(table, rows):
    energy = of_kernels(table, rows)
    joules, time_s, answer = joules_of(energy)["total"], time_of(energy), energy.what_if("race")
    assert less_or_same(answer.energy_j["total"], joules)
    assert (answer.time_s is None) == (time_s is None) and less_or_same(answer.time_s, time_s)


SAME = ["dram=1", "fp64=+0%", "l2=100%", "pi0=1,time=1", "fp32=1.0,integer=1", "shared=+0%"]


@given(st.sampled_from(TABLES), kernels, st.lists(st.sampled_from(SAME), min_size=1, max_size=3, unique=True))
@every
def test_what_changes_nothing_gives_the_same_digits(table, rows, question):
    energy = of_kernels(table, rows)
    label = energy.costs.setting.label
    for asked in (",".join(question), *([f"setting={label}", f"costs={table}"] if "/" in label else [])):
        answer, joules = energy.what_if(asked), joules_of(energy)
        assert [answer.energy_j[part] for part in PARTS] == [joules[part] for part in PARTS]
        assert answer.time_s == time_of(energy) and answer.change_j in (0, None)


@given(kernels, st.lists(changes, min_size=2, max_size=4, unique_by=lambda change: change.partition("=")[0]))
@every
def test_the_order_in_which_changes_are_written_does_not_matter(rows, question):
    energy = of_kernels("jetson-tk1", rows)
    one, other = (answered(energy, ",".join(words)) for words in (question, question[::-1]))
    assert (one is None) == (other is None)
    if one is not None:
        for before, after in (
            (one.time_s, other.time_s),
            *((one.energy_j[part], other.energy_j[part]) for part in PARTS),
        ):
            assert less_or_same(before, after) and less_or_same(after, before) and (before is None) == (after is None)


def test_a_change_of_prices_outlives_the_setting_written_after_it(energy):
    one, other = (energy.what_if(text) for text in ("pi0=3W,integer=free,setting=396/528", "setting=396/528,pi0=3W"))
    assert one.energy_j["constant"] == other.energy_j["constant"] == pytest.approx(3 * one.time_s)
    assert one.energy_j["computation"] < other.energy_j["computation"]


@pytest.mark.parametrize("what", ["dram", "fp64", "data"])
def test_none_of_it_is_one_question_however_it_is_written(energy, what):
    answers = [energy.what_if(f"{what}={none}") for none in ("0", "0.0", "-100%", "0%")]
    assert all(replace(answer, question="") == replace(answers[0], question="") for answer in answers)
    assert "100 % fewer" in answers[0].says and answers[0].time_share < 0
    assert energy.what_if(f"{what}=free").time_share == 0


def test_a_kernel_faster_than_the_roofline_keeps_its_share_of_the_roofline(profile):
    """Two memory-bound kernels with a roofline of 1 s: at 4 s a quarter can be gained of 4/4, at 0.1 s all in ratio."""
    like = profile.energy("jetson-tk1")
    byte = like.costs.peaks.dram_gb_per_s * 1e9
    slow, fast = ((seconds, 0.0, 0.0, 0.0, 0.0, 0.0, byte, 0.0) for seconds in (4.0, 0.1))
    one, other = (priced(like, [row]).what_if("dram=-25%") for row in (slow, fast))
    assert one.time_s == pytest.approx(3.75) and other.time_s == pytest.approx(0.075)
    faster = whatif.FASTER.format("kernel")
    assert faster not in one.assumes and f"{faster} (1 of 1)" in other.assumes


@pytest.mark.skipif(not TITAN.exists(), reason="needs ../shared/data")
def test_a_report_of_a_real_log_saves_no_more_time_than_there_is():
    document = eprof.load(TITAN).energy("jetson-tk1").document()
    answers = {answer["question"]: answer for answer in document["what_if"]}
    assert answers["dram=-20%"]["time_share"] == pytest.approx(-0.2)
    assert all(answer["energy_j"]["constant"] >= 0 for answer in answers.values())


def test_bytes_whose_way_is_not_told_are_below_the_roof_too(profile):
    """A memory-bound kernel gains as much whether a log tells reads from writes or only their sum."""
    like = profile.energy("jetson-tk1")
    byte = like.costs.peaks.dram_gb_per_s * 1e9
    told = priced(like, [(4.0, 0.0, 0.0, 0.0, 0.0, 0.0, byte, 0.0)])
    table = told.counts.table.assign(dram_read=math.nan, dram_write=math.nan, dram=byte)
    summed = replace(told, counts=counts_with(told.counts, table=table))
    for question, time_s in (("race", 1.0), ("dram=-20%", 3.8)):
        assert [each.what_if(question).time_s for each in (told, summed)] == pytest.approx([time_s, time_s])


def test_instructions_whose_kinds_are_not_told_are_below_the_roof_too(profile):
    """As the report's roofline has them: each takes the place of a multiply-add, here for 1 s beside 0.5 s of bytes."""
    like = profile.energy("jetson-tk1")
    peaks = like.costs.peaks
    energy = priced(like, [(4.0, 0.0, 0.0, 0.0, 0.0, 0.0, peaks.dram_gb_per_s * 5e8, 0.0)])
    kinds = [name for name in energy.counts.amounts.names if name.startswith("fp32_")]
    table = energy.counts.table.assign(**dict.fromkeys(kinds, math.nan), fp32=peaks.sp_gflops * 5e8)
    energy = replace(energy, counts=counts_with(energy.counts, table=table))
    [kernel] = energy.document()["limits"]["kernels"]
    assert kernel["roofline_time_s"] == pytest.approx(1) and energy.what_if("race").time_s == pytest.approx(1)


def test_a_kernel_without_a_roofline_keeps_its_time_when_it_races(profile):
    """Of three kernels one has nothing under the roof, one flops that were not all counted, one is memory bound."""
    like = profile.energy("jetson-tk1")
    byte = like.costs.peaks.dram_gb_per_s * 1e9
    bare, partly = (5.0, 0.0, 0.0, 0.0, 1e9, 0.0, 0.0, 0.0), (7.0, math.nan, 1.0, 0.0, 0.0, 0.0, byte, 0.0)
    bound = (4.0, 0.0, 0.0, 0.0, 0.0, 0.0, byte, 0.0)
    assert priced(like, [bare, partly, bound]).what_if("race").time_s == pytest.approx(5 + 7 + 1)


def with_tensor_work(energy, flops):
    """The same kernels with so many FP16 flops of tensor cores each."""
    table = energy.counts.table.assign(tensor_fp16=flops)
    return replace(energy, counts=counts_with(energy.counts, table=table))


def test_kernels_on_tensor_cores_have_no_roofline_and_keep_their_time(profile):
    like = profile.energy("jetson-tk1")
    byte = like.costs.peaks.dram_gb_per_s * 1e9
    bound = (4.0, 0.0, 0.0, 0.0, 0.0, 0.0, byte, 0.0)
    energy = with_tensor_work(priced(like, [bound, bound]), [1e12, 0.0])
    race, fewer = energy.what_if("race"), energy.what_if("dram=-20%")
    assert race.time_s == pytest.approx(4 + 1) and fewer.time_s == pytest.approx(4 + 3.8)
    said = "kernels with tensor work (1 of 2) keep their time, for no table has the peaks of tensor cores"
    assert said in race.assumes and said in fewer.assumes


@pytest.mark.parametrize("question", ["race", "cap=-50%", "costs=gtx680"])
def test_what_needs_the_peaks_of_tensor_cores_cannot_be_told(energy, question):
    with pytest.raises(UsageError, match="no table has the peaks of tensor cores"):
        with_tensor_work(energy, 1e9).what_if(question)
    assert with_tensor_work(energy, 1e9).what_if("cap=8W").time_s


def test_a_power_cap_gives_no_kernel_a_time(profile):
    like = profile.energy("jetson-tk1")
    known = (1.0, 1e12, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    alone, both = (priced(like, rows).what_if("cap=8W") for rows in ([known], [known, (math.nan, *known[1:])]))
    assert alone.time_s > 1 and both.time_s == pytest.approx(alone.time_s)
    assert both.marks & Mark.MISSING


def test_questions_that_change_nothing_are_not_listed(profile):
    """At the roofline nothing is gained by racing, without bytes nothing by fewer, and no cap is reached."""
    like = profile.energy("jetson-tk1")
    flops = like.costs.peaks.dp_gflops * 1e9
    energy = priced(like, [(1.0, flops / 2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)])
    assert energy.what_if("race").change_j == 0 and energy.what_if("dram=-20%").change_j == 0
    assert [answer.question for answer in whatif.usual(energy)] == ["pi0=-50%", "fp64=free"]
    listed = [answer["question"] for answer in energy.asking("race").document()["what_if"]]
    assert listed == ["race", "pi0=-50%", "fp64=free"], "but one that was asked is answered"


def test_what_an_answer_lacks_is_no_saving(energy):
    """The other table has no price for integers: what they took is not saved, it is not known."""
    answer = energy.what_if("costs=gtx680")
    assert answer.energy_j["total"] is not None and answer.marks & Mark.MISSING
    assert answer.change_j is None and answer.change_share is None


def test_another_table_of_this_gpu_is_asked_for_these_clocks(profile):
    energy = profile.energy("jetson-tk1", setting="396/204")
    assert energy.what_if("costs=jetson-tk1").change_j == 0


# ---- power


@pytest.mark.skipif(not UNTIMED.exists(), reason="needs ../shared/data")
def test_no_power_and_no_lowest_setting_without_all_times():
    energy = eprof.load(UNTIMED, time=["a=1e-3"]).energy("jetson-tk1")
    document = energy.document()
    timed, other = sorted(document["kernels"], key=lambda kernel: kernel["time_s"] is None)
    assert document["power_w"] is None and other["power_w"] is None and "clocks" not in document
    assert timed["power_w"] == pytest.approx(9.8, rel=0.02), "a kernel's own is known, and marked a lower bound"
    assert "missing" in timed["marks"]
    whole = energy.grouped("^a=a", "^b=b").document()["groups"]
    assert [group["power_w"] for group in whole] == [pytest.approx(timed["power_w"]), None]
    every = eprof.load(UNTIMED, time=["a=1e-3", "b=1"]).energy("jetson-tk1").document()
    assert every["power_w"] == pytest.approx(every["energy_j"]["total"] / 1.001)


def test_power_over_a_time_that_is_a_lower_bound_is_not_known(energy):
    marks = energy.counts.kernels["time_marks"].copy()
    marks.iloc[0] = int(Mark.MISSING)
    kernels_ = energy.counts.kernels.assign(time_marks=marks)
    partly = replace(energy, counts=counts_with(energy.counts, kernels=kernels_))
    document = partly.document()
    assert document["power_w"] is None and "clocks" not in document
    assert [kernel["power_w"] is None for kernel in document["kernels"]] == [True] + [False] * 5
    assert partly.to_frame()["power_w"].isna().tolist() == [True] + [False] * 5


# ---- clocks


def test_every_clock_is_the_answer_to_its_question(energy):
    grid = at_all_clocks(energy)
    assert len(grid.settings) == 28
    for row in grid.settings:
        answer = energy.what_if(f"setting={row.core_mhz:g}/{row.memory_mhz:g}")
        assert row.energy_j == pytest.approx(answer.energy_j["total"])
    mine = [row for row in grid.settings if row.this]
    assert len(mine) == 1 and mine[0].energy_j == pytest.approx(energy.document()["energy_j"]["total"])
    assert grid.lowest.energy_j == min(row.energy_j for row in grid.settings)
    assert grid.fastest.time_s == min(row.time_s for row in grid.settings)
    # The fastest is not the best: a lower memory clock takes 2 % more time, at less constant power.
    assert (grid.lowest.core_mhz, grid.lowest.memory_mhz) == (852, 528)
    assert (grid.fastest.core_mhz, grid.fastest.memory_mhz) == (852, 924)


def test_the_lowest_prediction_of_what_is_not_whole_is_at_least_that(profile):
    from eprof.commands.report.words import clock_words

    energy = profile.energy("jetson-tk1")
    grid, made = at_all_clocks(energy), document(energy)
    assert "at least" in clock_words(structs.replace(grid, marks=["missing"]), made)
    assert "at least" not in clock_words(structs.replace(grid, marks=[]), made)


@pytest.mark.parametrize("setting", [None, "396/204"])
@pytest.mark.parametrize("what", ["timed", "simulated"])
def test_report_and_tune_name_the_same_energies_and_times(profile, what, setting):
    """At every setting that both know; for a simulated profile also what a report at that setting says."""
    if what == "simulated":
        profile = eprof.load(SIMULATED)
    energy = profile.energy("jetson-tk1", setting=setting)
    grid = {f"{row.core_mhz:g}/{row.memory_mhz:g}": row for row in at_all_clocks(energy).settings}
    tuned = grids.from_profile(energy, costs.load("jetson-tk1"))
    for at, point in enumerate(tuned.points):
        joules, seconds = (sum(getattr(one, name)[at] for one in tuned.grids) for name in ("energy_j", "time_s"))
        assert grid[point.label].energy_j == pytest.approx(joules, rel=1e-12)
        assert grid[point.label].time_s == pytest.approx(seconds, rel=1e-12)
        if what == "simulated":
            there = profile.energy("jetson-tk1", setting=point.label).document()
            assert there["energy_j"]["total"] == pytest.approx(joules, rel=1e-12)
            assert there["time_s"] == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    ("names", "table"),
    [
        (("samples/logs/simulated/gemm-naive.txt",), "jetson-tk1"),
        (("samples/logs/simulated/gemm-naive.txt",), "gtx980"),
        (("../shared/data/nvprof/gtx950-cuda8-metrics-summary-heartwall.csv",), "gtx980"),
        (("../shared/data/nvprof/k20c-metrics-summary.csv",), "gtx980"),
        (("../shared/data/ncu-modern/rtx3070-scan.ncu-rep",), "gtx980"),
        (("../shared/data/ncu-modern/a100-sxm4-silu.ncu-rep",), None),
        (("../shared/data/ncu/v100-miniweather-baseline.ncu-rep",), None),
    ],
    ids=str,
)
def test_report_and_tune_recommend_the_same_clocks(names, table):
    """Of pairs that a table does not list, clocks that it was not fitted to and clocks of another GPU too."""
    if not all((ROOT / name).exists() for name in names):
        pytest.skip("needs ../shared/data")
    energy = eprof.load(*(ROOT / name for name in names)).energy(table)
    now = setting_in_force(energy, energy.table, None)
    tuned = tune_document(grids.from_profile(energy, energy.table, now=now), objective.parse("energy"))
    lowest = at_all_clocks(energy).lowest
    assert f"{lowest.core_mhz:g}/{lowest.memory_mhz:g}" == tuned.best.label
    assert lowest.energy_j == pytest.approx(tuned.best.energy_j) and lowest.time_s == pytest.approx(tuned.best.time_s)


def test_the_setting_that_ran_is_in_the_map_and_the_fastest_has_the_highest_clocks():
    grid = at_all_clocks(of_log(LOGS[5]))
    assert [(row.core_mhz, row.offered) for row in grid.settings if row.this] == [(1090, True)], "which no table lists"
    bound = at_all_clocks(eprof.load(SIMULATED).energy("jetson-tk1"))
    as_fast = [row for row in bound.settings if row.time_s == bound.fastest.time_s]
    assert len(as_fast) > 1 and (bound.fastest.core_mhz, bound.fastest.memory_mhz) == (852, 924)


def test_a_time_of_all_kernels_together_tells_nothing_of_other_clocks(energy):
    assert at_all_clocks(energy) is not None and at_all_clocks(timed_together(energy)) is None


def test_clocks_that_the_table_does_not_vouch_for_are_drawn_and_not_recommended(energy):
    known = costs.load("jetson-tk1")
    listed = {setting.label for setting in known.settings}
    grid = at_all_clocks(energy)
    offered = {f"{row.core_mhz:g}/{row.memory_mhz:g}" for row in grid.settings if row.offered}
    assert offered == listed and len(grid.settings) > len(listed)
    seen = structs.replace(known.fit, data={**known.fit.data, "range": {"core_mhz": [300, 800]}})
    fitted = replace(energy, table=structs.replace(known, fit=seen))
    assert {row.core_mhz for row in at_all_clocks(fitted).settings if row.offered} == {396, 540, 648, 756, 852}, (
        "852 ran"
    )
    at = at_all_clocks(fitted).lowest
    assert (at.core_mhz, at.memory_mhz) == (852, 924), "852/528 takes less, and was not fitted to"


def test_the_range_of_the_lowest_says_what_rests_on_the_times(profile):
    grid = at_all_clocks(profile.energy("jetson-tk1", setting="396/204"))
    low, high = grid.lowest.energy_range_j
    assert low <= grid.lowest.energy_j <= high and low < high


def test_the_range_reads_times_by_either_clock(profile):
    """From 396/204 the lowest doubles the core clock and more than doubles the memory clock: each alone is a bound."""
    energy = profile.energy("jetson-tk1", setting="396/204")
    lowest = at_all_clocks(energy).lowest
    there = costs.load("jetson-tk1").at(f"{lowest.core_mhz:g}/{lowest.memory_mhz:g}")
    ratios = [396 / lowest.core_mhz, 204 / lowest.memory_mhz]
    by_clock = [again(energy, there, times(energy) * ratio) for ratio in ratios]
    assert lowest.energy_range_j == pytest.approx([min(lowest.energy_j, *by_clock), max(lowest.energy_j, *by_clock)])
    assert ratios[1] < ratios[0] and min(by_clock) < lowest.energy_j, "the memory clock decides"


def test_clocks_above_the_power_limit_of_the_board_are_not_recommended(energy):
    free = at_all_clocks(energy)
    watts = {(row.core_mhz, row.memory_mhz): row.energy_j / row.time_s for row in free.settings}
    limit_w = min(watts[row.core_mhz, row.memory_mhz] for row in (free.lowest, free.fastest)) * 0.99
    limited = structs.replace(
        energy, costs=structs.replace(energy.costs, peaks=structs.replace(energy.costs.peaks, power_limit_w=limit_w))
    )
    grid = at_all_clocks(limited)
    assert len(grid.settings) == len(free.settings)
    for row in (grid.lowest, grid.fastest):
        assert watts[row.core_mhz, row.memory_mhz] <= limit_w
    assert grid.lowest.energy_j > free.lowest.energy_j


def test_one_setting_has_no_grid(profile):
    assert at_all_clocks(profile.energy("gtx680")) is None


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
    assert energy.what_if("setting=396/204").assumes == whatif_model.AT_CLOCKS
    table = energy.counts.table.copy()
    table.loc[table.index[0], "dram_read"] = np.nan
    partly = replace(energy, counts=counts_with(energy.counts, table=table))
    answer = partly.what_if("setting=396/204")
    assert answer.assumes == f"{whatif_model.AT_CLOCKS}; where DRAM bytes are not known, the kernel's time is not"
    first_s = grids.from_profile(energy, energy.table).grids[0].time_s
    points = grids.from_profile(energy, energy.table).points
    there = next(at for at, point in enumerate(points) if point.label == "396/204")
    assert answer.time_s == pytest.approx(energy.what_if("setting=396/204").time_s - first_s[there])
    assert answer.change_j is None and at_all_clocks(partly) is None


def test_clocks_whose_voltages_nobody_read_are_answered_as_far_as_these_are_known():
    log = SHARED / "ncu-modern" / "h100-pcie-rmsnorm.ncu-rep"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    energy = eprof.load(log).energy(setting="1755/1593")
    told = energy.document()["clocks"]
    assert told["voltages"].startswith("carried over from the A100's") and "assumed" in told["marks"]
    answer = energy.what_if("setting=1125/1593")
    assert answer.assumes.endswith(f"core voltages are {told['voltages']}")
    low_j, high_j = told["lowest"]["energy_range_j"]
    table = energy.table
    ends = [replace(energy, table=table.with_fall(fall)).what_if("setting=1125/1593") for fall in (1.5, 0.4)]
    assert low_j <= ends[0].energy_j["total"] < answer.energy_j["total"] < ends[1].energy_j["total"] <= high_j

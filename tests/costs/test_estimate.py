"""Estimated tables: for a GPU that nobody measured."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eprof import costs
from eprof.base.errors import CostError
from eprof.base.gpus import Traits, capabilities, data_sheet, normal_name, power_limit_w, sheets
from eprof.base.vocabulary import nouns_of
from eprof.costs.estimate import chips, estimated, of_capability, shape
from eprof.counts.definition_files import capability_of
from eprof.show import intervals

WATTS = st.floats(1, 440)


@given(WATTS)
def test_intervals_hold_their_price_and_constant_power_grows_with_idle_power(idle_w):
    table = estimated("GeForce RTX 4090", idle_w=idle_w)
    costs = table.at()
    for name, (low, high) in table.replica_intervals().prices_pj.items():
        assert low <= costs.prices[name].pj <= high
    low_w, high_w = table.replica_intervals().constant_w
    assert costs.constant_power_w == pytest.approx(idle_w, rel=1e-3)
    assert low_w < idle_w < high_w
    more = estimated("GeForce RTX 4090", idle_w=1.02 * idle_w)
    assert more.at().constant_power_w > costs.constant_power_w
    # Tensor work takes a share of what constant power leaves of the limit.
    same = set(costs.prices) - {"tensor_fp16_flop"}
    assert all(more.at().prices[name] == costs.prices[name] for name in same)
    assert more.at().prices["tensor_fp16_flop"].pj < costs.prices["tensor_fp16_flop"].pj * 1.001


def test_intervals_are_90_percent_of_the_replicas():
    table = estimated("GeForce RTX 4090")
    prices = sorted(costs.prices["dram_byte"].pj for costs in table.replicas())
    low, high = table.replica_intervals().prices_pj["dram_byte"]
    outside = [price for price in prices if not low <= price <= high]
    assert table.interval_share == 0.9
    assert len(outside) == pytest.approx(0.1 * len(prices), abs=1)


def test_the_table_says_that_nobody_measured_this_gpu_and_marks_all_it_charges():
    costs = estimated("NVIDIA GeForce RTX 4090 (0)").at()
    assert costs.basis == "estimated"
    assert "nobody measured this GPU" in costs.notes[0]
    assert all(charge.marks for charge in costs.charges.values() if charge.pays)
    assert costs.constant_marks
    assert costs.books == "accessed"


def test_the_data_sheet_gives_constant_power_and_the_limit():
    costs = estimated("RTX 4090").at()
    assert costs.peaks.power_limit_w == 450
    assert (costs.peaks.dram_gb_per_s, costs.peaks.sp_gflops) == pytest.approx((1008, 82580), rel=0.01)
    assert costs.constant_power_w == pytest.approx(450 * shape()["constant"]["gddr_5nm"]["share"], rel=1e-3)
    assert estimated("RTX 4090", tdp_w=300).at().constant_power_w == pytest.approx(
        costs.constant_power_w / 1.5, rel=1e-3
    )
    assert estimated("NVIDIA A100-SXM4-40GB").at().constant_power_w == pytest.approx(
        400 * shape()["constant"]["hbm"]["share"], rel=1e-3
    )


def test_idle_power_narrows_the_interval_of_constant_power():
    def width(table):
        low, high = table.replica_intervals().constant_w
        return high / low

    assert width(estimated("RTX 4090", idle_w=52)) < width(estimated("RTX 4090"))


@pytest.mark.parametrize(
    "name, kind",
    [
        ("Tesla P100-PCIE-16GB", "full_rate"),
        ("NVIDIA H100 PCIe", "full_rate"),
        ("GeForce RTX 3090", "low_rate"),
        ("Tesla T4", "low_rate"),
    ],
)
def test_fp64_is_priced_by_what_the_chip_has_for_it(name, kind):
    factor = shape()["process"][chips()[capability_of(normal_name(name))[0]].process]
    expected_pj = factor * shape()["pj"][f"fp64_{kind}_instruction"]
    assert estimated(name).at().charges["fp64_fma"].pj == pytest.approx(expected_pj, rel=1e-3)


def test_fp64_is_priced_by_the_capability_where_a_log_tells_no_more():
    costs = estimated("ncu device 0 (CC 8.6)", idle_w=30).at()
    factor = shape()["process"][chips()["8.6"].process]
    assert costs.charges["fp64_fma"].pj == pytest.approx(factor * shape()["pj"]["fp64_low_rate_instruction"], rel=1e-3)


def test_tensor_work_takes_its_share_of_what_the_limit_leaves_at_peak_and_pays_by_the_rate_of_its_type():
    table = estimated("RTX 4090")
    pj = {word: table.at().charges[word].pj for word in ("tensor_fp16", "tensor_bf16", "tensor_tf32", "tensor_fp8")}
    assert pj["tensor_bf16"] == pj["tensor_fp16"] == pytest.approx(pj["tensor_tf32"] / 2)
    assert pj["tensor_fp8"] == pytest.approx(pj["tensor_fp16"] / 2)
    costs = table.at()
    left_w = 450 - costs.constant_power_w
    assert pj["tensor_fp16"] * 4 * costs.peaks.sp_gflops * 1e-3 == pytest.approx(
        shape()["tensor"]["share"] * left_w, rel=2e-3
    )
    low, high = table.replica_intervals().prices_pj["tensor_fp16_flop"]
    assert high / low > 3
    assert "at full rate" in table.sources["tensor_fp16_flop"]
    assert "tensor" in table.at().unpriced


def test_prices_go_with_the_process_and_a_byte_of_dram_does_not():
    old, new = estimated("GeForce GTX 1080 Ti").at().prices, estimated("GeForce RTX 4090").at().prices
    factor = shape()["process"]["5 and 4 nm"] / shape()["process"]["28 to 16 nm"]
    assert new["l1_byte"].pj == pytest.approx(factor * old["l1_byte"].pj, rel=1e-3)
    assert new["dram_byte"].pj == old["dram_byte"].pj


@pytest.mark.parametrize(
    "name, number", [("RTX 4090", 128), ("RTX 3090", 82), ("NVIDIA A100-PCIE-40GB", 108), ("H200", 132)]
)
def test_multiprocessors_follow_from_the_peak_and_all_together_reach_it(name, number):
    table = estimated(name)
    assert table.sm_count == pytest.approx(number, rel=0.1)
    lanes = chips()[capability_of(data_sheet(name).name)[0]].lanes
    peak_gflops = 2 * lanes * table.sm_count * table.busy_mhz * 1e-3
    assert peak_gflops == pytest.approx(table.at().peaks.sp_gflops, rel=1e-3)
    assert table.at().charges["sm_active_cycle"].pj > 0


def test_a_laptop_draws_less_than_a_desktop_board_whatever_it_does():
    desktop, laptop = (estimated(f"GeForce RTX 4080{kind}").at() for kind in ("", " Laptop GPU"))
    assert laptop.constant_power_w < desktop.constant_power_w / 2
    assert laptop.prices["l1_byte"].pj == desktop.prices["l1_byte"].pj


def test_constant_power_of_a_board_below_all_that_were_measured_is_known_half_as_well():
    widths = []
    for name in ("L4", "GeForce RTX 4090"):
        table = estimated(name)
        low_w, high_w = table.replica_intervals().constant_w
        widths.append(math.log(high_w / low_w))
    assert widths[0] == pytest.approx(2 * widths[1], rel=0.02)
    assert "none was below" in estimated("L4").sources["constant_power"]


def test_an_estimate_of_a_capability_spans_its_boards():
    low_w, high_w = of_capability("8.9").replica_intervals().constant_w
    for name in ("L4", "RTX 4090"):
        assert low_w < estimated(name).at().constant_power_w < high_w


def test_fp64_of_a_gpu_that_eprof_does_not_know_has_no_price():
    assert "FP64" in estimated("Imaginary 9000", tdp_w=300).at().unpriced["fp64_fma"]


@pytest.mark.parametrize(
    "name, options, part",
    [
        ("V100", {}, "Tesla V100-PCIE"),
        ("RTX 4091", {}, "Did you mean GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 2080 Laptop GPU", {}, "--tdp-w"),
        ("Imaginary 9000", {}, "--idle-w"),
        ("", {}, "which GPU"),
        ("RTX 4090", {"idle_w": 500}, "450 W"),
        ("RTX 4090", {"idle_w": 0}, "above 0"),
        ("RTX 4090", {"tdp_w": float("nan")}, "above 0"),
        ("RTX 4090", {"tdp_w": 1e9}, "at most"),
    ],
)
def test_what_cannot_be_estimated_is_said_in_one_sentence(name, options, part):
    with pytest.raises(CostError, match=part):
        estimated(name, **options)


@given(st.text(max_size=40).filter(lambda name: bool(name.split())))
def test_any_name_makes_a_table_that_loads(name):
    assert estimated(name, idle_w=30).at().constant_power_w == 30


def test_names_of_logs_find_their_data_sheet():
    assert power_limit_w("NVIDIA A100-SXM4-80GB") == 400
    assert power_limit_w("NVIDIA A100 80GB PCIe") == 300
    assert power_limit_w("Tesla V100-SXM2-16GB (0)") == 300
    assert power_limit_w("NVIDIA GeForce RTX 4060 Ti") == 160
    assert power_limit_w("NVIDIA GeForce RTX 3080 Laptop GPU") == 165
    assert power_limit_w("NVIDIA GeForce RTX 2080 Laptop GPU") is None
    assert data_sheet("4090").name == "GeForce RTX 4090"


def test_every_board_has_a_compute_capability():
    from eprof.base.gpus import _listed

    unknown = [sheet.name for sheet in _listed().values() if not capability_of(normal_name(sheet.name))]
    assert all(name.startswith("AMD ") for name in unknown), "AMD's have none"


def test_intervals_of_an_estimated_table_are_no_refits():
    table = estimated("RTX 4090")
    assert "nobody measured" in table.interval_is
    sentence = intervals.meaning(nouns_of(), 0.9, 60, table.interval_is, table.basis)
    assert "refits" not in sentence and "GPUs left out" in sentence


def test_multiprocessors_of_boards_fit_their_peaks():
    """FP32 lanes of all multiprocessors at a clock that such boards have."""
    checked = 0
    for sheet in sheets():
        single, known = sheet.peaks.get("sp_gflops"), capabilities(sheet.name)
        if sheet.sms is None or single is None:
            continue
        lanes = {64.0 if capability in ("7.0", "7.2", "7.5", "8.0") else 128.0 for capability in known}
        (mhz,) = {1e3 * single / (2 * lane * sheet.sms) for lane in lanes}
        assert 600 < mhz < 2800, (sheet.name, mhz)
        checked += 1
    assert checked > 120


@pytest.mark.parametrize(
    ("capability", "sms", "device", "limit_w"),
    [
        ("12.0", 48, "GeForce RTX 5070", 250),
        ("12.0", 188, "a GPU of compute capability 12.0 with 188 multiprocessors", 600),
        ("8.9", 47, "a GPU of compute capability 8.9", 450),
        ("8.9", None, "a GPU of compute capability 8.9", 450),
    ],
)
def test_multiprocessors_tell_boards_of_one_capability_apart(capability, sms, device, limit_w):
    table = of_capability(capability, None, Traits(sms))
    assert table.device == device and table.is_for(f"CC {capability}")
    costs = table.at()
    assert costs.peaks.power_limit_w == limit_w
    assert costs.sm_count == sms or sms in (47, None)
    assert (costs.peaks.sp_gflops is not None) == (sms in (48, 188)), "what bounds is of boards that it can be"
    boards = [sheet for sheet in sheets() if capability in capabilities(sheet.name) and sheet.sms == sms]
    if boards:
        assert costs.constant_power_w < max(sheet.limit_w for sheet in boards)


def test_an_estimate_takes_the_constant_power_that_is_published_of_its_board():
    published, made = costs.load("gtx-titan").at(), estimated("GeForce GTX TITAN").at()
    assert made.constant_power_w == published.constant_power_w == 120
    assert estimated("GeForce GTX 780 Ti").at().constant_power_w < 90, "of as much power: a share of it"
    of_limit = estimated("GeForce GTX TITAN", tdp_w=200).at().constant_power_w
    assert of_limit == pytest.approx(estimated("GeForce GTX 780 Ti", tdp_w=200).at().constant_power_w), "the user's own"

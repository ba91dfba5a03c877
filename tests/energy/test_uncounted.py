"""What was not counted is bounded by what hardware can do: more counters never widen it, and nothing missing is 0."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eprof import costs
from eprof.base.arrays import Columns
from eprof.base.vocabulary import COUNTS, PRICED, Mark
from eprof.costs import Peaks
from eprof.counts.counts import Counts
from eprof.energy.attribution import attribute
from eprof.energy.uncertainty import prices_of, uncounted
from eprof.logs.log import KernelRows
from eprof.profile.causes import _chosen

TIME_S, SM_CYCLES = 1e-3, 1e8
PAYING = sorted(word for word, charge in costs.load("v100").at().charges.items() if charge.pays)
PEAKS = Peaks(sp_gflops=10_000.0, dp_gflops=5_000.0, dram_gb_per_s=900.0)


def counted(known, name="kernel(float*)", device="V100", shape=None):
    """Counts of one kernel: what is not in `known` is missing."""
    rows = KernelRows(
        device=np.array([device], dtype=object),
        kernel=np.array([name], dtype=object),
        launches=np.array([1]),
        time_s=np.array([TIME_S]),
        time_marks=np.array([0]),
    )
    amounts = {word: np.array([known.get(word, np.nan)]) for word in COUNTS}
    marks = {word: np.array([0 if word in known else int(Mark.MISSING)]) for word in COUNTS}
    return Counts(rows, Columns.of(amounts, 1), Columns.of(marks, 1), {}, "accessed", shape=shape)


def most(known, name="kernel(float*)", device="V100", shape=None):
    """The bounds by group in J, and that of all together."""
    table = replace(costs.load("v100").at(), peaks=PEAKS)
    counts = replace(counted(known, name, device, shape), books=table.books)
    bounds = uncounted(counts, table, attribute(counts, table), prices_of(table))
    return (
        {group: float(joules[0]) for group, joules in bounds.groups.items()},
        float(bounds.total[0]),
        prices_of(table),
    )


def price(prices, word):
    return prices[PRICED.index(word)]


def test_the_busiest_unit_leaves_others_no_more_cycles():
    rooms = {"fp32_room": 64 * SM_CYCLES * 0.1, "fp64_most": 0.0, "l1_room": 128 * SM_CYCLES * 0.2, "l2_room": np.nan}
    rooms["dram_room"] = 0.03 * TIME_S
    shape = Columns.of({name: np.array([room]) for name, room in rooms.items()}, 1)
    groups, _, prices = most({"sm_active_cycle": SM_CYCLES}, shape=shape)
    assert groups["fp32"] == pytest.approx(1.01 * 6.4 * SM_CYCLES * price(prices, "fp32_fma"))
    before = most({"sm_active_cycle": SM_CYCLES})[0]
    assert groups["fp64"] == 0 and groups["l2"] == before["l2"] and groups["other"] < before["other"]
    assert groups["l1"] == pytest.approx(1.01 * 0.2 * before["l1"])
    assert groups["dram"] == pytest.approx(1.01 * 0.03 * before["dram"])
    assert groups["tensor"] == pytest.approx(1.01 * 0.1 * before["tensor"])


def test_each_class_is_bounded_by_its_own_rate():
    groups, _, prices = most({"sm_active_cycle": SM_CYCLES})
    assert groups["dram"] == pytest.approx(900e9 * TIME_S * price(prices, "dram_read"))
    assert groups["l2"] == pytest.approx(128 * SM_CYCLES * price(prices, "l2_read"))
    assert groups["fp64"] == pytest.approx(2.5e12 * TIME_S * price(prices, "fp64_fma"))
    assert groups["constant"] == 0


def test_instructions_are_bounded_by_what_was_issued_and_is_of_no_class():
    issued = {"warp_issue": 1e6, "sm_active_cycle": SM_CYCLES}
    groups, _, prices = most(issued)
    assert groups["fp32"] == pytest.approx(32e6 * price(prices, "fp32_fma"))
    groups, total, prices = most({**issued, "fp32_fma": 31e6})
    assert groups["int"] == pytest.approx(1e6 * price(prices, "integer"))
    assert total < sum(groups.values())


def test_a_product_on_tensor_cores_has_next_to_no_other_arithmetic():
    known = {"sm_active_cycle": SM_CYCLES, "tensor_fp16": 1e9}
    named, plain = most(known, "sm80_xmma_gemm_f16f16_tilesize128x128x32")[0], most(known)[0]
    assert named["fp64"] == 0 and 0 < named["fp32"] < plain["fp32"] / 10


@pytest.mark.parametrize(
    "name", ["fmha_cutlassF_f16_aligned_64x64_rf_sm80", "sm80_xmma_wgrad_implicit_gemm_f16", "dequantize_gemm_int4"]
)
def test_what_is_no_plain_product_may_do_any_arithmetic(name):
    known = {"sm_active_cycle": SM_CYCLES, "tensor_fp16": 1e9}
    assert most(known, name)[0] == most(known)[0]


def test_the_epilogue_of_an_fp64_product_is_fp64():
    groups, _, prices = most({"sm_active_cycle": SM_CYCLES, "tensor_fp64": 1.28e9}, "cutlass_80_tensorop_d884gemm")
    assert groups["fp64"] == pytest.approx(1e7 * price(prices, "fp64_fma"))


def test_maxima_need_no_arithmetic_of_their_type():
    known = dict.fromkeys(["fp64_fma", "fp64_add", "fp64_mul"], 0.0)
    assert most({"sm_active_cycle": SM_CYCLES, **known})[0]["fp64"] > 0


@pytest.mark.parametrize(
    ("device", "group", "times"),
    [
        ("GeForce RTX 5070 (0)", "fp64", 1.15),
        ("ncu device 0 (CC 8.0)", "dram", 2040 / 900),
        ("Tesla K40m (0)", "shared", 2.0),
    ],
)
def test_a_bound_holds_for_every_board_that_it_may_be(device, group, times):
    known = {"sm_active_cycle": SM_CYCLES}
    assert most(known, device=device)[0][group] == pytest.approx(times * most(known)[0][group])


@given(st.sets(st.sampled_from(PAYING)), st.sampled_from(PAYING))
def test_one_more_counter_never_widens_what_is_left(words, word):
    known = dict.fromkeys(words, 1e6)
    before = most(known)[0]
    after = most({**known, word: 1e6})[0]
    group = COUNTS[word].group
    assert after[group] <= before[group] * (1 + 1e-9) or word in ("warp_issue", "sm_active_cycle")


def test_nothing_is_left_where_all_was_counted():
    assert most(dict.fromkeys(PAYING, 1.0))[1] == 0
    assert most({**dict.fromkeys(PAYING, 1.0), "tensor_fp8": 1.0})[1] == np.inf, "counted, and without a price"


def test_a_cpus_core_moves_and_computes_no_more_than_one_core_can():
    table = replace(
        costs.load("icelake-sp").in_sockets(1 / 36).at(), peaks=costs.load("icelake-sp").in_sockets(1 / 36).peaks()
    )
    cycles, instructions = 1.2e6, 1e6
    counts = counted({"core_active": cycles, "retired": instructions})
    bounds = uncounted(counts, table, attribute(counts, table), prices_of(table))
    prices = prices_of(table)
    assert bounds.groups["dram"][0] == pytest.approx(40e9 * TIME_S * price(prices, "dram"), rel=0.01)
    narrow = 4 * instructions * (price(prices, "fp64_narrow") + price(prices, "fp64"))
    assert bounds.groups["fp64"][0] == pytest.approx(max(narrow, 16 * instructions * price(prices, "fp64")))


def test_arithmetic_in_fp32_without_a_price_costs_no_more_than_in_fp64():
    table = costs.load("sapphirerapids").in_sockets(1 / 52).at()
    whole = dict.fromkeys(("fp64_fma", "fp64_add", "fp64_mul", "fp64_other", "fp64_narrow", "dram"), 0.0)
    counts = counted({"core_active": 3e7, "retired": 1e7, **whole, "fp32_fma": 4e6, "fp32_add": 1e6})
    assert "fp32_fma" not in table.charges
    bounds = uncounted(counts, table, attribute(counts, table), prices_of(table))
    # 64.1 pJ a flop of FP64, two flops each multiply-add.
    most_j = (2 * 4e6 + 1e6) * 64.1e-12
    assert bounds.groups["fp32"][0] == pytest.approx(most_j)
    assert bounds.total[0] >= bounds.groups["fp32"][0]


def test_parts_that_trade_against_each_other_are_one():
    """FP64 and issue from 0.1 to 0.5 each, always 0.6 together, beside 0.4 of constant power."""
    fp64 = np.linspace(0.1, 0.5, 41)
    draws = np.stack([np.full(41, 0.4), fp64, 0.6 - fp64])
    groups = ["constant", "fp64", "other"]
    joules = np.array([0.4, 0.32, 0.28])
    made = _chosen(groups, joules, draws, 0.9)
    assert made.largest == "sure" and made.parts[0].groups == ["fp64", "other"]
    assert made.parts[0].interval == pytest.approx([0.6, 0.6])


def test_a_part_that_is_surely_the_largest_is_joined_with_none():
    draws = np.stack([np.linspace(0.5, 0.6, 11), np.linspace(0.1, 0.3, 11), np.linspace(0.3, 0.1, 11)])
    groups = ["dram", "fp64", "constant"]
    joules = draws[:, 5]
    made = _chosen(groups, joules, draws, 0.9)
    assert made.largest == "sure" and [part.groups for part in made.parts][0] == ["dram"] and len(made.parts) == 3

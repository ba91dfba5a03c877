"""Attribution: linear in counts and in costs, conserving energy, honest about what is not known."""

import math
from functools import reduce
from operator import or_

import numpy as np
import pandas as pd
import pytest
from frames_support import counts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eprof import costs
from eprof.base.arrays import Columns
from eprof.base.errors import CostError
from eprof.base.vocabulary import BYTES, COMPUTATION_WORDS, CONSTANT, COUNTS, NONE, PARTS, Mark
from eprof.costs import Charge, Costs, Setting
from eprof.energy.attribution import Split, attribute, joules_by_price
from eprof.energy.clocks import at_clock, with_active_cycles

few = settings(max_examples=10)

MISSING, ESTIMATED, ASSUMED = int(Mark.MISSING), int(Mark.ESTIMATED), int(Mark.ASSUMED)


def make_counts(rows, times, marks=None, time_marks=None, books="served"):
    """Counts from a dict a kernel; a word that is not given is not counted (NaN, MISSING)."""
    index = pd.RangeIndex(len(rows))
    table = pd.DataFrame(rows, index=index, columns=list(COUNTS), dtype="float64")
    marked = pd.DataFrame(np.where(table.isna(), MISSING, 0), index=index, columns=list(COUNTS)).astype("int64")
    for (row, word), mark in (marks or {}).items():
        marked.loc[row, word] = mark
    kernels = pd.DataFrame(
        {
            "device": "GPU (0)",
            "kernel": [f"k{number}" for number in range(len(rows))],
            "launches": 1,
            "time_s": np.array(times, dtype="float64"),
            "time_marks": np.array(time_marks or [0] * len(rows), dtype="int64"),
        },
        index=index,
    )
    return counts_of(kernels, table, marked, {}, books)


def make_costs(prices, watts=10.0, marks=None, constant_marks=NONE, books="served"):
    """Costs of some words in pJ; None: the word pays nothing."""
    charges = {
        word: Charge(
            pj is not None, pj or 0.0, "p" if pj is not None else None, "why", Mark((marks or {}).get(word, 0))
        )
        for word, pj in prices.items()
    }
    return Costs(
        name="test", device="GPU", source="us", books=books, setting=Setting(), setting_from="", charges=charges,
        constant_power_w=watts, constant_why="", constant_marks=constant_marks, marks=NONE,
    )  # fmt: skip


def energy(rows, prices, times=(1.0,), **more) -> Split:
    known = {key: more.pop(key) for key in ("marks", "time_marks") if key in more}
    return attribute(make_counts(rows, times, **known), make_costs(prices, **more))


def test_the_equation():
    split = energy([{"fp64_fma": 1e12, "dram_read": 2e12}], {"fp64_fma": 278.0, "dram_read": 377.0}, [3.0], watts=6.8)
    assert split.computation_j[0] == pytest.approx(278.0)
    assert split.data_j[0] == pytest.approx(754.0)
    assert split.constant_j[0] == pytest.approx(20.4)
    assert split.total_j[0] == pytest.approx(1052.4)
    assert split.row_marks[0] == 0


def test_a_count_that_pays_but_was_not_counted_is_missing():
    split = energy([{"fp64_fma": 1e12}], {"fp64_fma": 10.0, "integer": 5.0})
    assert math.isnan(split.table["integer"][0])
    assert split.marks["integer"][0] == MISSING
    assert split.computation_j[0] == 10.0
    assert split.total_j[0] == 20.0
    assert split.row_marks[0] == MISSING


def test_a_count_without_a_price_is_missing():
    split = energy([{"fp64_fma": 1e12, "special": 7.0}], {"fp64_fma": 10.0})
    assert math.isnan(split.table["special"][0])
    assert split.marks["special"][0] == MISSING
    assert split.total_j[0] == 20.0


def test_a_zero_needs_no_price():
    split = energy([{"special": 0.0}, {"special": 2.0}], {"fp64_fma": None}, [1.0, 1.0])
    assert split.table["special"][0] == 0.0
    assert split.marks["special"].tolist() == [0, MISSING]


def test_what_was_neither_counted_nor_priced_does_not_show():
    split = energy([{"fp64_fma": 1.0}], {"fp64_fma": 1.0})
    assert "special" not in split.table
    assert list(split.table.columns) == list(split.marks.columns) == ["fp64_fma", CONSTANT]


def test_what_pays_nothing_is_zero_and_never_missing():
    split = energy([{"control": 1e15}, {}], {"control": None}, [1.0, 1.0])
    assert split.table["control"][0] == 0.0
    assert split.marks["control"].tolist() == [0, 0]
    assert split.total_j.tolist() == [10.0, 10.0]


def test_a_time_that_is_not_known_leaves_constant_energy_missing():
    split = energy([{"fp64_fma": 1e12}], {"fp64_fma": 10.0}, [math.nan])
    assert math.isnan(split.constant_j[0])
    assert split.marks[CONSTANT][0] == MISSING
    assert split.total_j[0] == 10.0


def test_marks_of_time_and_of_constant_power_reach_constant_energy():
    split = energy([{}], {}, time_marks=[ESTIMATED], constant_marks=Mark.ASSUMED)
    assert split.marks[CONSTANT][0] == ESTIMATED | ASSUMED


def test_marks_of_counts_and_of_charges_join():
    split = energy([{"l1_read": 8.0}], {"l1_read": 2.0}, marks={(0, "l1_read"): ESTIMATED})
    assert split.marks["l1_read"][0] == ESTIMATED
    rows = [{"l1_read": 8.0}, {"l1_read": 0.0}, {}]
    split = attribute(make_counts(rows, [1.0] * 3), make_costs({"l1_read": 2.0}, marks={"l1_read": Mark.ASSUMED}))
    assert split.marks["l1_read"].tolist() == [ASSUMED, 0, MISSING]


def test_a_total_that_does_not_apply_is_not_missing():
    rows = [{"fp64": math.nan, "fp64_fma": 1e12}, {"fp64": 2e12}]
    away = {(0, "fp64"): 0, (1, "fp64_fma"): 0}
    split = energy(rows, {"fp64": 10.0, "fp64_fma": 10.0}, [0.0, 0.0], marks=away)
    assert split.marks["fp64"].tolist() == [0, 0]
    assert split.row_marks.tolist() == [0, 0]
    assert split.computation_j.tolist() == [10.0, 20.0]


def test_nothing_known_is_not_zero():
    split = energy([{}], {"fp64_fma": 1.0, "dram_read": 1.0}, [math.nan])
    assert math.isnan(split.total_j[0])
    assert math.isnan(split.computation_j[0])
    assert math.isnan(split.data_j[0])


def test_books_are_not_mixed():
    with pytest.raises(CostError, match="test prices bytes as served, but these are counted as accessed"):
        attribute(make_counts([{}], [1.0], books="accessed"), make_costs({}))


def test_no_kernels_no_energy():
    split = energy([], {"fp64_fma": 1.0}, [])
    assert not len(split.total_j) and not len(split.row_marks)


def test_inputs_are_not_changed():
    counted, priced = make_counts([{"fp64_fma": 1.0}], [1.0]), make_costs({"fp64_fma": 1.0, "control": None})
    inputs = counted.amounts.values, counted.amount_marks.values, counted.rows.time_s
    before = [values.copy() for values in inputs]
    attribute(counted, priced)
    for was, now in zip(before, inputs, strict=True):
        np.testing.assert_array_equal(was, now)


def test_the_tk1_at_s1():
    """A kernel by hand with the numbers of [FMM] Table I, S1."""
    row = dict.fromkeys(COUNTS, 0.0) | {
        "fp64_fma": 1e9,
        "fp64_add": 2e9,
        "integer": 6e9,
        "dram_read": 1e9,
        "l2_read": 3e9,
        "shared_read": 4e9,
        "control": 1e9,
    }
    for total in PARTS:
        row[total] = math.nan
    away = {(0, total): 0 for total in PARTS}
    split = attribute(make_counts([row], [0.1], marks=away), costs.load("jetson-tk1").at("852/924"))
    assert split.computation_j[0] == pytest.approx(3e9 * 2 * 139.1e-12 + 6e9 * 60e-12, rel=1e-3)
    assert split.data_j[0] == pytest.approx((377.0 + 3 * 90.2 + 4 * 35.4) * 1e-3, rel=1e-3)
    assert split.constant_j[0] == pytest.approx(0.68, rel=5e-3)
    assert split.row_marks[0] == 0


# Properties. Counts up to what a long run counts; prices up to a microjoule; some unknown.

WORDS = ["fp64_fma", "integer", "special", "control", "l1_read", "dram_write"]
numbers = st.floats(0, 1e18, allow_subnormal=False)
rows = st.lists(
    st.fixed_dictionaries({word: st.one_of(numbers, st.just(math.nan)) for word in WORDS}), min_size=1, max_size=6
)
known_rows = st.lists(st.fixed_dictionaries(dict.fromkeys(WORDS, numbers)), min_size=1, max_size=6)
times = st.one_of(st.floats(0, 1e6, allow_subnormal=False), st.just(math.nan))
price_lists = st.dictionaries(
    st.sampled_from(WORDS), st.one_of(st.none(), st.floats(0, 1e6, allow_subnormal=False)), max_size=len(WORDS)
)


def timed(drawn):
    return [1.0 + number for number in range(len(drawn))]


def same(left, right):
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-12)


@few
@given(rows, price_lists, st.floats(0.1, 1e3))
def test_twice_the_counts_twice_the_energy(drawn, prices, factor):
    priced = make_costs(prices)
    once = attribute(make_counts(drawn, timed(drawn)), priced)
    more = [{word: factor * value for word, value in row.items()} for row in drawn]
    many = attribute(make_counts(more, [factor * time for time in timed(drawn)]), priced)
    same(many.table, factor * once.table)
    pd.testing.assert_frame_equal(many.marks, once.marks)


@few
@given(st.data(), price_lists)
def test_energies_of_counts_add_up(data, prices):
    first = data.draw(known_rows)
    second = data.draw(
        st.lists(st.fixed_dictionaries(dict.fromkeys(WORDS, numbers)), min_size=len(first), max_size=len(first))
    )
    both = [{word: one[word] + two[word] for word in WORDS} for one, two in zip(first, second, strict=True)]
    priced = make_costs(prices)
    parts = [attribute(make_counts(drawn, timed(drawn)), priced) for drawn in (first, second)]
    whole = attribute(make_counts(both, [2 * time for time in timed(both)]), priced)
    same(whole.table, parts[0].table + parts[1].table)


@few
@given(rows, price_lists, st.floats(0.1, 1e3), st.floats(0, 1e4))
def test_twice_the_costs_twice_the_energy(drawn, prices, factor, watts):
    counted = make_counts(drawn, timed(drawn))
    once = attribute(counted, make_costs(prices, watts))
    dear = {word: None if pj is None else factor * pj for word, pj in prices.items()}
    many = attribute(counted, make_costs(dear, factor * watts))
    same(many.table, factor * once.table)


@few
@given(rows, price_lists, st.data())
def test_the_order_of_kernels_does_not_matter(drawn, prices, data):
    counted, priced = make_counts(drawn, timed(drawn)), make_costs(prices)
    order = data.draw(st.permutations(range(len(drawn))))
    shuffled = counted.chosen(np.array(order, dtype=np.int64))
    plain, mixed = attribute(counted, priced), attribute(shuffled, priced)
    np.testing.assert_array_equal(plain.joules.values[order], mixed.joules.values)
    np.testing.assert_array_equal(plain.joule_marks.values[order], mixed.joule_marks.values)


@few
@given(known_rows, price_lists, st.data())
def test_grouping_kernels_conserves_energy(drawn, prices, data):
    priced = make_costs(prices)
    counted = make_counts(drawn, timed(drawn))
    groups = data.draw(st.lists(st.integers(0, 2), min_size=len(drawn), max_size=len(drawn)))
    summed = counted.table[WORDS].groupby(groups).sum()
    time = counted.kernels["time_s"].groupby(groups).sum()
    grouped = attribute(make_counts(summed.to_dict("records"), time.tolist()), priced)
    apart = attribute(counted, priced)
    for part in ("computation_j", "data_j", "constant_j"):
        same(np.nansum(getattr(grouped, part)), np.nansum(getattr(apart, part)))


@few
@given(rows, price_lists, st.lists(times, min_size=6, max_size=6))
def test_the_parts_add_up_to_the_total(drawn, prices, duration):
    split = energy(drawn, prices, duration[: len(drawn)])
    parts = np.stack([split.computation_j, split.data_j, split.constant_j])
    same(np.nansum(parts, axis=0), np.nan_to_num(split.total_j))
    assert set(split.table.columns) <= {*COMPUTATION_WORDS, *BYTES, CONSTANT}


@few
@given(rows, price_lists, st.lists(times, min_size=6, max_size=6))
def test_energy_that_is_not_known_is_marked_missing(drawn, prices, duration):
    split = energy(drawn, prices, duration[: len(drawn)])
    paying = [word for word in WORDS if prices.get(word) is not None] + [CONSTANT]
    unknown = split.table[paying].isna()
    missing = (split.marks[paying] & MISSING) != 0
    pd.testing.assert_frame_equal(unknown, missing)


@settings(max_examples=12)
@given(st.sampled_from(["852/924", "612/528", "396/204", "852/792"]), st.sampled_from(list(COUNTS)))
def test_every_charge_of_the_tk1_reaches_the_energy(setting, word):
    priced = costs.load("jetson-tk1").at(setting)
    split = attribute(make_counts([{word: 1e12}], [0.0]), priced)
    charge = priced.charges.get(word)
    if charge is None:
        assert math.isnan(split.table[word][0]) and split.marks[word][0] == MISSING
    else:
        assert split.table[word][0] == pytest.approx(charge.pj)
        assert split.marks[word][0] == int(charge.marks)


@few
@given(rows, price_lists, st.lists(times, min_size=6, max_size=6))
def test_marks_of_a_kernel_and_of_a_family_are_those_of_its_cells_joined(drawn, prices, duration):
    split = energy(drawn, prices, duration[: len(drawn)])
    cells = split.marks.to_dict("list")
    computation = [mark for word, marks in cells.items() if word in COMPUTATION_WORDS for mark in marks]
    assert reduce(or_, computation, 0) == reduce(or_, split.family_marks["computation"].tolist(), 0)
    for row, mark in enumerate(split.row_marks.tolist()):
        assert mark == reduce(or_, [marks[row] for marks in cells.values()]) == split.family_marks["total"][row]


def test_cycles_of_multiprocessors_that_nobody_counted_are_those_of_all_of_them_all_the_time():
    """By hand: 10 multiprocessors at 1000 MHz for 2 s are 2e10 cycles; a launch of 3 blocks keeps 3 busy."""
    rows = [{"fp32_fma": 1.0}, {"fp32_fma": 1.0}, {"fp32_fma": 1.0, "sm_active_cycle": 7.0}, {}]
    counts = make_counts(rows, [2.0, 2.0, 2.0, 2.0])
    untold = dict.fromkeys(("sm_active", "a_cycle"), np.full(4, math.nan))
    shape = Columns.of({"blocks": np.array([math.nan, 3.0, 3.0, 3.0]), **untold}, 4)
    prices = replace(make_costs({"fp32_fma": 1.0, "sm_active_cycle": 5.0}), setting=Setting(1000.0), sm_count=10.0)
    cycles = with_active_cycles(replace(counts, shape=shape), prices)
    assert cycles.table["sm_active_cycle"].tolist()[:3] == [2e10, 6e9, 7.0]
    assert cycles.marks["sm_active_cycle"].tolist() == [ESTIMATED | ASSUMED, ESTIMATED | ASSUMED, 0, MISSING]
    assert np.isnan(cycles.table["sm_active_cycle"][3]), "time alone tells nothing of a kernel"
    (way,) = cycles.how["sm_active_cycle"]
    assert way.formula == "time * 1000 MHz * 10" and way.kernels == 2
    assert with_active_cycles(counts, replace(prices, sm_count=None)) is counts
    assert with_active_cycles(counts, replace(prices, setting=Setting())) is counts


def test_instructions_follow_from_those_a_cycle_and_the_share_of_the_time_with_warps():
    """By hand: 10 multiprocessors at 1000 MHz for 2 s, half of the time with warps and 1.5 instructions: 1.5e10."""
    counts = make_counts([{}, {"warp_issue": 3.0}, {}], [2.0, 2.0, 2.0])
    told = {"sm_active": [0.5, 0.5, math.nan], "a_cycle": [1.5, 1.5, 1.5], "blocks": [math.nan] * 3}
    shape = Columns.of({name: np.array(values) for name, values in told.items()}, 3)
    prices = replace(make_costs({"warp_issue": 1.0, "sm_active_cycle": 5.0}), setting=Setting(1000.0), sm_count=10.0)
    made = with_active_cycles(replace(counts, shape=shape), prices)
    assert made.table["warp_issue"].tolist()[:2] == [1.5e10, 3.0] and np.isnan(made.table["warp_issue"][2])
    assert made.table["sm_active_cycle"].tolist()[:2] == [1e10, 1e10], "not all of them all the time"
    assert made.marks["warp_issue"].tolist() == [ESTIMATED | ASSUMED, 0, MISSING]


def test_cycles_at_another_clock_are_those_that_pass_then():
    """By hand: half the clock and the same time are half the cycles; half the clock and twice the time as many."""
    counts = make_counts([{"sm_active_cycle": 8.0, "fp32_fma": 3.0}] * 2, [1.0, 1.0])
    slower = at_clock(counts, np.array([1.0, 2.0]), 0.5)
    assert slower.table["sm_active_cycle"].tolist() == [4.0, 8.0]
    assert slower.table["fp32_fma"].tolist() == [3.0, 3.0] and slower.rows.time_s.tolist() == [1.0, 2.0]


def test_random_accesses_pay_beside_their_bytes_where_somebody_tells_them_apart():
    """A surcharge: a row that does not tell them, and a table without its price, are no lower bounds."""
    prices = {word: 0.0 for word in COUNTS} | {"dram_read": 20.0, "random": 3000.0}
    none_of_it = {word: 0.0 for word in COUNTS} | {"dram_read": 64e6}
    rows = [none_of_it | {"random": 1e6}, none_of_it | {"random": np.nan}]
    split = attribute(make_counts(rows, [1e-3, 1e-3]), make_costs(prices))
    streamed_j, constant_j = 64e6 * 20e-12, 10.0 * 1e-3
    assert split.total_j == pytest.approx([streamed_j + constant_j + 1e6 * 3000e-12, streamed_j + constant_j])
    assert split.data_j == pytest.approx([streamed_j + 3e-3, streamed_j])
    assert not (split.row_marks & MISSING).any()
    untold = attribute(make_counts(rows[1:], [1e-3]), make_costs(prices))
    assert "random" not in untold.joules.names
    assert not (untold.row_marks & MISSING).any()


def test_joules_of_a_word_are_dealt_out_to_all_prices_that_it_pays():
    """A byte from DRAM of an A100 pays the way there and DRAM itself; one from L2 pays another price alone."""
    table = costs.load("a100")
    pj = {name: price.pj for name, price in table.at().prices.items()}
    split = pd.DataFrame(
        {"dram_read": [10.0, 0.0, 1e-9], "l2_read": [2.0, np.nan, 0.0], "constant": [5.0, 1.0, np.nan]}
    )
    found = joules_by_price(table, split)
    of_way = pj["dram_path_byte"] / (pj["dram_path_byte"] + pj["dram_byte"])
    assert found["dram_path_byte"].tolist() == pytest.approx([10 * of_way, 0, 1e-9 * of_way])
    assert found["dram_byte"].tolist() == pytest.approx([10 * (1 - of_way), 0, 1e-9 * (1 - of_way)])
    assert found.sum(axis=1).tolist() == pytest.approx([17.0, 1.0, 1e-9])

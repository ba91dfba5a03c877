"""Differences: parts that add up to the last digit, nothing missing taken for zero, the model's bounds."""

import math
import re
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import diff_support as support
import numpy as np
import pytest
from diff_support import KERNEL, MISSING, PRICES, SIMULATED, costs, energy, kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import eprof
from eprof.base.errors import UsageError
from eprof.base.vocabulary import CONSTANT, nouns_of
from eprof.commands.diff import answer, terminal
from eprof.commands.diff import words as diff_words
from eprof.commands.diff.causes import assess
from eprof.commands.diff.compare import compare
from eprof.lab.welch import Test as WelchTest
from eprof.lab.welch import t_outside, t_quantile, welch
from eprof.logs.runs import Run
from eprof.profile.rooflines import Machine
from eprof.show.numbers import NARROW, quantity

few = settings(max_examples=12)


def exact_sum(parts):
    return float(sum(Fraction(part["change_j"]) for part in parts))


def by_what(difference):
    return {(part.what, part.because): part.change_j for part in difference.parts if part.kernel is None}


def conserved(difference):
    """The parts add up to the change, of everything and of every kernel, and to the difference of both totals."""
    document = difference.document()
    assert exact_sum(document["parts"]) == document["change_j"]
    # Steps are sums of parts, rounded once each: where large parts cancel, that rounding is against the parts.
    rounding = 1e-15 * sum(abs(part["change_j"]) for part in document["parts"])
    assert math.isclose(exact_sum(document["steps"]), document["change_j"], rel_tol=0, abs_tol=rounding)
    for one in document["kernels"]:
        assert exact_sum(one["parts"]) == one["change_j"]
    old, new = document["old"]["compared_j"], document["new"]["compared_j"]
    assert math.isclose(document["change_j"], new - old, rel_tol=1e-9, abs_tol=1e-12 * max(old, new) + rounding)
    kernels = math.fsum(one["change_j"] for one in document["kernels"])
    assert math.isclose(kernels, document["change_j"], rel_tol=1e-9, abs_tol=1e-12 * max(old, new) + rounding)


# ---------------------------------------------------------------------------------------------------- the equation


def test_changed_counts_and_times_by_hand():
    found = compare([energy({"k": kernel()})], [energy({"k": kernel(dram_read=1e9, integer=9e8, time=0.10)})])
    parts = by_what(found)
    assert parts["dram_read", "counts"] == pytest.approx(-3e9 * 377e-12)
    assert parts["integer", "counts"] == pytest.approx(2e8 * 60e-12)
    assert parts["constant", "time"] == pytest.approx(-0.25 * 6.8)
    assert parts["fp32_fma", "counts"] == 0
    assert found.change_j == pytest.approx(-1.131 + 0.012 - 1.7)
    assert found.speedup == pytest.approx(3.5)
    assert found.greenup == pytest.approx(
        found.changes.compared_j(found.changes.old) / found.changes.compared_j(found.changes.new)
    )
    assert found.powerup == pytest.approx(found.speedup / found.greenup)
    assert found.document()["marks"] == []
    conserved(found)


def test_another_setting_is_a_part_of_its_own_by_hand():
    dearer = {**support.PRICES, "dram_read": 277.0}
    found = compare(
        [energy({"k": kernel()})],
        [energy({"k": kernel(dram_read=1e9, time=0.45)}, priced=costs(dearer, watts=6.0, setting="396/924"))],
    )
    parts = by_what(found)
    assert parts["dram_read", "counts"] == pytest.approx(-3e9 * 327e-12)
    assert parts["dram_read", "setting"] == pytest.approx(-100e-12 * 2.5e9)
    assert parts["constant", "time"] == pytest.approx(0.1 * 6.4)
    assert parts["constant", "setting"] == pytest.approx(-0.8 * 0.4)
    assert ("integer", "setting") not in parts
    conserved(found)


def test_another_table_says_cost():
    found = compare([energy({"k": kernel()})], [energy({"k": kernel()}, priced=costs(watts=60.0, name="other"))])
    assert by_what(found)["constant", "cost"] == pytest.approx(53.2 * 0.35)
    assert found.typed.model.missing


def test_kernels_that_came_and_went_are_parts_of_their_own():
    came = kernel(time=1.0, integer=8e8)
    found = compare([energy({"a": kernel(), "gone": kernel()})], [energy({"a": kernel(), "xyzzy": came})])
    document = found.document()
    stands = {one["name"]: one["status"] for one in document["kernels"]}
    assert stands == {"a": "matched", "gone": "vanished", "xyzzy": "appeared"}
    gone = [part for part in document["parts"] if part["kernel"] == "gone"]
    assert exact_sum(gone) == pytest.approx(-document["old"]["compared_j"] / 2)
    assert {step["kernels"] for step in document["steps"]} == {"matched", "vanished", "appeared"}
    conserved(found)


def test_prices_of_a_kernel_that_came_are_those_of_its_own_side():
    other = energy({"a": kernel(), "xyzzy": kernel()}, priced=costs(watts=1.0, setting="396/924"))
    found = compare([energy({"a": kernel()})], [other])
    own = [part for part in found.parts if part.kernel == "xyzzy"]
    assert {part.because for part in own} == {"counts", "time"}
    conserved(found)


def test_no_cell_of_a_log_with_itself_changes():
    side = energy({"k": kernel(), "other": kernel(time=None)}, sha256="x")
    found = compare([side], [side])
    assert found.change_j == 0 and found.typed.is_zero and found.typed.same_inputs and not found.typed.partial
    assert all(part.change_j == 0 for part in found.parts)
    assert all(math.copysign(1, part.change_j) == 1 for part in found.parts)
    assert not found.changes.uncompared.any()


# ------------------------------------------------------------------------------------------------------ properties

numbers = st.one_of(st.none(), st.just(0.0), st.floats(1, 1e13))
words = ["fp32_fma", "fp32_add", "fp32_mul", "integer", "shared_read", "dram_read", "dram_write", "time"]
kernels = st.dictionaries(
    st.sampled_from("abcd"), st.fixed_dictionaries({word: numbers for word in words}), min_size=1, max_size=4
)
tables = st.builds(
    lambda pj, watts, setting, name: costs(
        dict(zip(support.PRICES, pj, strict=True)), watts=watts, setting=setting, name=name
    ),
    st.lists(st.one_of(st.none(), st.floats(0.01, 900)), min_size=len(support.PRICES), max_size=len(support.PRICES)),
    st.floats(0, 200),
    st.sampled_from(["852/924", "396/924"]),
    st.sampled_from(["one", "other"]),
)


def side(drawn, table, launches=None):
    return energy({name: {w: v for w, v in row.items() if v is not None} for name, row in drawn.items()}, priced=table)


@few
@given(kernels, kernels, tables, tables)
def test_parts_add_up_whatever_is_known(old, new, one, other):
    found = compare([side(old, one)], [side(new, other)])
    if found.typed.has_energy:
        conserved(found)
    assert found.document()["change_j"] is None or math.isfinite(found.document()["change_j"])


@few
@given(kernels, kernels, tables, tables)
def test_turning_old_and_new_turns_every_sign(old, new, one, other):
    a, b = side(old, one), side(new, other)
    there, back = compare([a], [b]), compare([b], [a])
    turned = {"appeared": "vanished", "vanished": "appeared", "matched": "matched"}
    forward = {(p.what, p.because, p.kernel, p.kernels): p.change_j for p in there.parts}
    backward = {(p.what, p.because, p.kernel, turned[p.kernels]): -p.change_j for p in back.parts}
    assert forward == backward
    if there.change_j is not None:
        assert there.change_j == -back.change_j


@few
@given(kernels, tables)
def test_nothing_changes_between_equal_sides(drawn, table):
    found = compare([side(drawn, table)], [side(drawn, table)])
    assert found.typed.is_zero and found.change_j in (0, None) and not found.typed.partial


@few
@given(kernels, kernels, tables)
def test_what_one_side_lacks_is_in_no_part(old, new, table):
    found = compare([side(old, table)], [side(new, table)])
    for row, one in enumerate(found.changes.matches):
        if one.old is None or one.new is None:
            continue
        a, b = found.changes.old_side.mean.joules[one.old], found.changes.new_side.mean.joules[one.new]
        lost = np.isnan(a) != np.isnan(b)
        assert not found.changes.quantity_j[row][lost].any() and not found.changes.compared[row][lost].any()
        needed = lost & ~((found.changes.old.state[row] == 3) | (found.changes.new.state[row] == 3))
        assert found.changes.uncompared[row][needed].all()


# ------------------------------------------------------------------------------------------------ what is not known


def test_a_class_that_one_side_did_not_count_is_left_out_and_named():
    found = compare([energy({"k": kernel()})], [energy({"k": kernel(dram_read=None)})])
    document = found.document()
    assert document["partial"] and "missing" in document["marks"]
    assert [one["what"] for one in document["uncompared"]] == ["dram_read"]
    assert document["uncompared"][0]["old_j"] == pytest.approx(4e9 * 377e-12)
    assert document["uncompared"][0]["new_j"] is None
    assert document["change_j"] == 0
    assert any("DRAM read" in text and "NEW did not count it" in text for text in document["warnings"])
    assert document["counts"]["dram_read"]["change"] is None
    conserved(found)


def test_a_class_that_neither_side_counted_leaves_a_mark():
    found = compare([energy({"k": kernel(integer=None)})], [energy({"k": kernel(integer=None, time=0.3)})])
    document = found.document()
    (lost,) = found.typed.unknown
    assert (lost.what, lost.kernels, lost.why) == ("integer", 1, "not counted on either side")
    assert document["marks"] == ["missing"] and not document["partial"]
    conserved(found)


def test_missing_time_on_one_side_leaves_constant_energy_out():
    found = compare([energy({"k": kernel()})], [energy({"k": kernel(time=None, dram_read=1e9)})])
    document = found.document()
    assert [one["what"] for one in document["uncompared"]] == ["constant"]
    assert "NEW has no time" in document["uncompared"][0]["why"]
    assert document["speedup"] is None and document["powerup"] is None
    assert document["change_j"] == pytest.approx(-3e9 * 377e-12)
    conserved(found)


def test_a_counter_that_overflowed_on_one_side_is_not_compared():
    overflowed = energy({"k": kernel(integer=1e6)}, marks={("k", "integer"): MISSING})
    document = compare([energy({"k": kernel()})], [overflowed]).document()
    assert [one["what"] for one in document["uncompared"]] == ["integer"]
    assert "lower bound" in document["uncompared"][0]["why"] and "NEW" in document["uncompared"][0]["why"]
    both = compare([overflowed], [overflowed]).document()
    assert [one["what"] for one in both["uncompared"]] == ["integer"]


def test_lower_bounds_of_a_simulator_are_compared_and_marked():
    marks = {("k", "fp32_fma"): MISSING | SIMULATED}
    found = compare(
        [energy({"k": kernel()}, marks=marks)], [energy({"k": kernel(fp32_fma=5e8)}, marks=marks)]
    ).document()
    part = next(part for part in found["parts"] if part["what"] == "fp32_fma")
    assert part["change_j"] == pytest.approx(-5e8 * 58e-12)
    assert part["marks"] == ["missing", "simulated"]
    assert found["uncompared"] == [] and "missing" in found["marks"]


def test_a_class_without_a_price_on_one_side():
    some = {word: pj for word, pj in support.PRICES.items() if word != "integer"}
    document = compare([energy({"k": kernel()})], [energy({"k": kernel()}, priced=costs(some, name="less"))]).document()
    assert document["uncompared"][0]["why"] == "less has no price for what NEW counted"


def test_a_total_is_compared_with_the_sum_of_its_kinds():
    total = {**{word: v for word, v in KERNEL.items() if not word.startswith("fp32_")}, "fp32": 2e9}
    for there, back in (((total, KERNEL), 1), ((KERNEL, total), -1)):
        found = compare(*([energy({"k": one})] for one in there))
        parts = by_what(found)
        assert parts["fp32", "counts"] == pytest.approx(back * (1.3e9 - 2e9) * 58e-12)
        assert ("fp32_fma", "counts") not in parts
        part = next(part for part in found.parts if part.what == "fp32")
        assert "estimated" in part.marks and not found.typed.partial
        conserved(found)


def test_another_mix_of_kinds_is_a_change_of_counts_not_of_prices():
    """A total at 58 pJ against kinds at 58 and 30 pJ of the same table: all of the change is of the counts."""
    prices = {**support.PRICES, "fp32_add": 30.0}
    total = {**{word: v for word, v in KERNEL.items() if not word.startswith("fp32_")}, "fp32": 2e9}
    found = compare([energy({"k": total}, prices=prices)], [energy({"k": KERNEL}, prices=prices)])
    ((_, because),) = [key for key in by_what(found) if key[0] == "fp32"]
    assert because == "counts"
    assert by_what(found)["fp32", "counts"] == pytest.approx((1.1 * 58 + 0.2 * 30 - 2 * 58) * 1e-3)
    (kernel_parts,) = [one["parts"] for one in found.document()["kernels"]]
    assert [part["because"] for part in kernel_parts if part["what"] == "fp32"] == ["counts"]
    conserved(found)


def test_tables_of_one_name_from_different_sources_are_different_tables():
    here, there = costs(watts=60.0), costs(watts=50.0, setting="396/924")
    for source, because in (("us", "setting"), ("them", "cost")):
        found = compare(
            [energy({"k": kernel()}, priced=here)], [energy({"k": kernel()}, priced=replace(there, source=source))]
        )
        assert by_what(found)["constant", because] == pytest.approx(-10 * 0.35)


def test_a_step_of_kernels_that_went_counts_each_kernel_once():
    found = compare([energy({"a": kernel(), "gone": kernel(), "lost": kernel()})], [energy({"a": kernel()})])
    step = next(step for step in found.document()["steps"] if step["kernels"] == "vanished")
    assert step["names"] == 2 and len(step["words"]) > 2


def test_parts_are_listed_by_size_whatever_their_sign():
    """Savings of 1.131 and 0.17 J around more integers for 0.6 J: a saving is as large as a loss of as many joules."""
    found = compare([energy({"k": kernel()})], [energy({"k": kernel(dram_read=1e9, time=0.325, integer=107e8)})])
    (row,) = found.document()["kernels"]
    for parts in (row["parts"], found.document()["parts"]):
        assert [part["what"] for part in parts][:3] == ["dram_read", "integer", "constant"]
        sizes = [abs(part["change_j"]) for part in parts]
        assert sizes == sorted(sizes, reverse=True)


def test_other_books_leave_bytes_out():
    document = compare(
        [energy({"k": kernel()})], [energy({"k": kernel()}, priced=costs(name="b", books="accessed"))]
    ).document()
    assert {one["what"] for one in document["uncompared"]} == {"shared_read", "dram_read", "dram_write"}
    assert "books" in document["uncompared"][0]["why"]
    assert document["change_j"] == 0


def test_without_any_prices_counts_and_time_are_compared():
    found = compare([energy({"k": kernel()}, priced=None)], [energy({"k": kernel(time=0.7)}, priced=None)])
    document = found.document()
    assert document["change_j"] is None and document["parts"] == [] and document["marks"] == ["missing"]
    assert document["speedup"] == 0.5 and document["greenup"] is None
    assert document["counts"]["dram_read"]["change"] == 0
    assert document["kernels"][0]["change_j"] is None


def test_prices_on_one_side_only():
    document = compare([energy({"k": kernel()})], [energy({"k": kernel()}, priced=None)]).document()
    assert document["change_j"] is None and document["partial"]
    assert any("NEW has no cost table" in text for text in document["warnings"])


def test_other_gpus_and_other_programs_are_said():
    others = energy({"other": kernel(), "another": kernel()}, device="K20c (0)")
    document = compare([energy({"k": kernel()})], [others]).typed
    said = diff_words.unlike(document)
    assert said == "Not the same: GPU GPU → K20c." and "no kernel in common" in answer.headline(document).text
    alone = compare([energy({"k": kernel()})], [energy({"other": kernel()})]).typed
    assert diff_words.unlike(alone) == "Not the same: kernel k → other." and alone.is_zero


def test_what_one_side_counts_in_no_kernel_is_no_change_of_a_kernel_that_came():
    """OLD tells no time: NEW's other kernel adds none of its constant power, which OLD's kernels take, too."""
    new = energy({"k": kernel(), "more": kernel()})
    document = compare([energy({"k": kernel(time=None)})], [new]).typed
    assert "constant" not in {part.what for part in document.parts if part.change_j}
    assert document.change_j == pytest.approx(2.0129) and "OLD has no time" in document.uncompared[-1].why
    assert "predicted: 2.01 J → 4.03 J of 8.79 J." in answer.headline(document).text.replace(NARROW, " ")
    nothing = compare([energy({"k": {}})], [energy({"other": kernel(), "more": kernel()})]).typed
    assert nothing.change_j is None and "NEW has 2 kernels (8.79\u202fJ predicted" in answer.headline(nothing).text


def test_what_is_left_out_makes_a_change_no_lower_bound_and_no_power():
    found = compare([energy({"k": kernel(integer=None)})], [energy({"k": kernel(dram_read=1e9, time=0.2)})]).typed
    text = terminal.text(found, verbose=True)
    assert "≥ 4.35 J" in text and not re.search("≥ [−+]", text.partition("≥ at least")[0])
    assert found.powerup is None and found.speedup == pytest.approx(1.75)


def test_counts_are_told_where_noise_hides_what_they_make():
    sides = [[energy({"k": kernel(time=s, dram_read=b)}) for s in (0.1, 0.9)] for b in (4e9, 2e9)]
    said = answer.headline(compare(*sides).typed).text.replace(NARROW, " ")
    assert said.startswith("No difference can be shown")
    assert said.endswith("In counts NEW moves 40 % fewer DRAM bytes.")


def test_a_lower_bound_of_nothing_is_no_count():
    """A log that says "at least 0 B" did not count them."""
    bound = energy({"k": kernel(dram_read=0.0)}, marks={("k", "dram_read"): MISSING}, priced=None)
    document = compare([energy({"k": kernel()}, priced=None)], [bound]).typed
    assert document.counts["dram_read"].change is None
    assert "DRAM bytes" not in answer.headline(document).text


def test_other_numbers_of_launches_are_said():
    document = compare([energy({"k": kernel()})], [energy({"k": kernel()}, launches={"k": 3})]).document()
    assert any("k (1 to 3)" in text for text in document["warnings"])


def test_some_kernels_only():
    both = energy({"a": kernel(), "b": kernel()}), energy({"a": kernel(time=1.0), "b": kernel()})
    found = compare([both[0]], [both[1]], kernels=["b"])
    assert found.change_j == 0 and len(found.changes.matches) == 1
    assert found.document()["old"]["energy_j"]["total"] == pytest.approx(both[0].split.total_j.sum() / 2)


# --------------------------------------------------------------------------------------------------------- repeats


def repeats(*times, **changed):
    return [energy({"k": kernel(time=one, **changed)}) for one in times]


def test_repeats_are_averaged_and_tested():
    found = compare(repeats(0.30, 0.32, 0.34), repeats(0.20, 0.21, 0.22))
    document = found.document()
    assert document["old"]["repeats"] == 3 and document["old"]["time_s"] == pytest.approx(0.32)
    test = document["tests"]["energy"]
    assert test["shown"] and test["low"] < test["change"] < test["high"] < 0
    assert test["change"] == pytest.approx(document["change_j"])
    assert document["kernels"][0]["test"]["p"] == test["p"]
    conserved(found)


def test_noise_hides_a_small_difference():
    document = compare(repeats(0.30, 0.40, 0.20), repeats(0.31, 0.22, 0.39)).document()
    assert not document["tests"]["energy"]["shown"]
    assert document["tests"]["energy"]["low"] < 0 < document["tests"]["energy"]["high"]


def test_counts_that_repeat_to_the_digit_leave_no_doubt():
    document = compare(repeats(0.3, 0.3), repeats(0.3, 0.3, dram_read=1e9)).document()
    assert document["tests"]["energy"]["shown"] and document["tests"]["energy"]["p"] == 0
    assert document["change_j"] == pytest.approx(-3e9 * 377e-12)


def test_one_run_tells_nothing_of_noise():
    once = [energy({"k": kernel()})]
    for sides, said in (((once, once), "each"), ((once, once * 2), "OLD"), ((once * 2, once), "NEW")):
        assert f"; one run of {said}." in diff_words.trust(compare(*sides).typed)


def test_a_repeat_without_a_kernel_ran_it_zero_times():
    found = compare([energy({"a": kernel()}), energy({"a": kernel(), "b": kernel()})], [energy({"a": kernel()})])
    gone = next(one for one in found.document()["kernels"] if one["name"] == "b")
    assert gone["status"] == "vanished" and gone["old"]["launches"] == 0.5
    conserved(found)


def test_a_repeat_with_a_kernel_of_its_own_counts_in_the_test():
    """What nobody counts of the kernel that only one repeat has is no energy that this repeat lacks."""
    more = energy({"k": kernel(), "extra": kernel(integer=7e9)})
    document = compare([energy({"k": kernel()})] * 3 + [more], repeats(0.2, 0.2)).typed
    test = document.tests.energy
    assert test.old.n == 4 and test.change == pytest.approx(document.change_j), "the means are those of the change"
    head = answer.headline(document).text
    assert not test.shown and test.low < test.change < test.high and f"differ by {quantity(test.change, 'J')}" in head


def test_a_time_that_some_repeats_lack_is_estimated_from_the_others():
    found = compare(repeats(0.3, None), repeats(0.3, 0.3))
    assert found.change_j == 0
    assert "estimated" in found.document()["old"]["time_marks"]


def test_repeats_with_other_prices_are_refused():
    with pytest.raises(UsageError, match="OLD are priced differently"):
        compare([energy({"k": KERNEL}), energy({"k": KERNEL}, priced=costs(watts=1.0))], [energy({"k": KERNEL})])


def test_welch_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    dice = np.random.default_rng(7)
    for sizes in ((2, 2), (3, 5), (10, 4)):
        a, b = dice.normal(1, 0.2, sizes[0]).tolist(), dice.normal(1.1, 0.5, sizes[1]).tolist()
        found = welch(a, b)
        theirs = stats.ttest_ind(b, a, equal_var=False)
        interval = theirs.confidence_interval(0.95)
        assert isinstance(found, WelchTest)
        assert found.p == pytest.approx(theirs.pvalue, rel=1e-9)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-9)


def test_students_t_against_printed_tables():
    # Any statistics textbook: two-sided 95 % quantiles of Student's t.
    for freedom, quantile in ((1, 12.706), (2, 4.303), (4, 2.776), (10, 2.228), (30, 2.042)):
        assert t_quantile(0.95, freedom) == pytest.approx(quantile, abs=6e-4)
    assert t_outside(1.0, 1) == pytest.approx(0.5)


# ------------------------------------------------------------------------------------------------------- the model

machines = st.builds(
    lambda flop, byte, peak, bandwidth, watts: Machine("m", "d", "s", "fp32", peak, bandwidth, flop, byte, watts),
    st.floats(1e-12, 1e-9),
    st.floats(1e-12, 1e-9),
    st.floats(1e10, 1e13),
    st.floats(1e9, 1e12),
    st.floats(0, 300),
)
FERMI = Machine("fermi", "", "", "fp64", 515e9, 144e9, 25e-12, 360e-12, 0.0)


@settings(max_examples=40)
@given(machines, st.floats(0.01, 1000), st.floats(0.1, 30))
def test_at_the_break_even_work_factor_nothing_is_saved(machine, intensity, m):
    even = assess((intensity, 1.0), (intensity, 1 / m), machine).break_even_work_factor
    if even > 1e-3:
        assert assess((intensity, 1.0), (even * intensity, 1 / m), machine).greenup == pytest.approx(1, rel=1e-9)
        assert assess((intensity, 1.0), (1.01 * even * intensity, 1 / m), machine).greenup < 1


def test_the_equations_without_constant_power_by_hand():
    # [T] table 2: B_tau = 3.576, B_eps = 14.4 flop/B. I = 1, f = 1.5, m = 2: still memory bound.
    found = assess((1.0, 1.0), (1.5, 0.5), FERMI)
    assert found.speedup == pytest.approx(2.0)
    assert found.greenup == pytest.approx((1 + 14.4) / (1.5 + 14.4 / 2))
    assert found.break_even_work_factor == pytest.approx(1 + 0.5 * 14.4)
    assert assess((1.0, 1.0), (2.0, 0.25), FERMI).speedup == pytest.approx(515 / 144 / 2)
    assert assess((10.0, 1.0), (11.0, 0.5), FERMI).speedup == pytest.approx(1 / 1.1)


def test_the_reading_is_made_from_the_tables_prices_and_says_what_is_missing():
    found = compare([energy({"k": kernel()})], [energy({"k": kernel(dram_read=1e9)})])
    model = found.document()["model"]
    assert model["work_factor"] == 1 and model["traffic_factor"] == pytest.approx(2.5)
    assert model["intensity_flop_per_byte"] == pytest.approx(2.3e9 / 5e9)
    assert model["energy_balance"] == pytest.approx(377 / 29)
    for changed in ({"dram_read": None}, {"fp32_add": None}, {"dram_read": 0.0, "dram_write": 0.0}):
        unread = compare([energy({"k": kernel()})], [energy({"k": kernel(**changed)})]).typed
        assert unread.model.missing and not diff_words.beside(unread)
    bare = compare([energy({"k": kernel()}, peaks=False)], [energy({"k": kernel()}, peaks=False)])
    mixed = compare([energy({"k": kernel(fp64_fma=1e9)})], [energy({"k": kernel()})])
    assert bare.typed.model.missing and mixed.typed.model.missing


# ----------------------------------------------------------------------------------------------------------- gates


def gates(*texts, **changed):
    """Of two equal runs of each, so that time is told."""
    new = energy({"k": kernel(**changed), "ns::other<1>(int)": kernel()})
    old = energy({"k": kernel(), "ns::other<1>(int)": kernel()})
    return compare([old, old], [new, new], fail_above=texts).gates


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        ("24%", False),
        ("23.6%", True),
        ("time=99%", True),
        ("time=101%", False),
        ("constant=50", True),
        ("dram_read=0%", False),
        ("dram=0%", False),
        ("integer=0%", True),
        ("computation=9%", True),
        ("k:48%", False),
        ("k:47%", True),
        ("k:integer=99%", True),
        ("ns::other<1>(int):0%", False),
        ("other:0%", False),
    ],
)
def test_gates(text, failed):
    # OLD: 2 kernels of 4.393 J and 0.35 s. k's integers double (+42 mJ), its time goes to 0.65 s (+2.04 J) or 1.05 s.
    (found,) = gates(text, integer=1.4e9, time=0.35 * 3 if "time" in text or "constant" in text else 0.65)
    assert found.failed is failed, (found, found.growth)


def test_every_kernel_can_be_gated():
    found = gates("*:1%", dram_read=5e9)
    assert [(one.kernel, one.failed) for one in found] == [("k", True), ("ns::other<1>(int)", False)]


def of_run(start, **numbers):
    """A program's run of `eprof run` that began at `start`."""
    priced = energy({"k": kernel(**numbers)})
    return replace(priced, profile=replace(priced.profile, run=Run(Path(f"{start}.eprof"), {"started_utc": start}, {})))


def test_time_alone_is_a_change_between_runs_in_turns_only():
    """Noise of the clock: the counts are the same. Repeats of one run follow each other, on one idle or busy machine."""
    old, slow = energy({"k": kernel()}), energy({"k": kernel(time=4.0)})
    one, two = [of_run("1"), of_run("1", time=0.2001)], [of_run("2", time=4.0), of_run("2", time=4.001)]
    three, four = [of_run("3")] * 9, [of_run("4", time=4.0)]
    for before, after in (([old], [slow]), ([old, old], [slow]), (one, two), (one + two, four), (one + three, four)):
        difference = compare(before, after, fail_above=["2%", "time=2%", "k:constant=2%"])
        total, *of_time = difference.gates
        assert difference.changes.rests_on_time and difference.change_j > 0
        assert (total.what, total.failed, total.growth) == ("above_constant", False, 0.0)
        assert all(gate.growth > 0.02 and gate.is_noise and not gate.failed for gate in of_time)
        assert "counts are equal" in answer.headline(difference.typed).text
    one_after_the_other = compare([*one, of_run("1.5")], [*two, *four], fail_above=["2%"])
    assert one_after_the_other.typed.tests.energy is None and not one_after_the_other.gates[0].failed
    in_turns = compare(one + three, two + four, fail_above=["2%", "time=2%"])
    assert in_turns.typed.tests.energy.old.n == 2 and all(gate.failed for gate in in_turns.gates)
    noisy = [energy({"k": kernel(time=time)}) for time in (0.2, 4.0, 9.0)]
    (total, seconds) = compare([old, slow], noisy, fail_above=["2%", "time=2%"]).gates
    assert total.what == "above_constant" and total.growth == 0
    assert seconds.growth > 0.02 and seconds.is_noise and not seconds.failed
    repeated = compare([old, old], [slow, slow], fail_above=["2%"])
    assert repeated.gates[0].failed
    more = compare([old], [energy({"k": kernel(time=4.0, dram_read=5e9)})], fail_above=["2%", "time=2%", "time=50%"])
    assert not more.changes.rests_on_time and [gate.failed for gate in more.gates] == [True, True, False]
    assert more.gates[0].growth < 0.3 and more.gates[2].is_noise, "a fifth more bytes are no tenfold time"
    prices = compare([old], [energy({"k": kernel()})], fail_above=["2%"])
    assert not prices.changes.rests_on_time


def test_time_beside_changed_counts_is_more_than_noise_between_runs_in_turns_only():
    """Nine repeats of one run, all slow, are one slow machine: the few counts more are not what made the time longer."""
    slow = {"time": 4.0, "integer": 1.01 * KERNEL["integer"]}
    one, two = [of_run("1")] * 8 + [of_run("1", time=0.2001)], [of_run("2", **slow)] * 8 + [of_run("2", **slow)]
    three, four = [of_run("3", time=0.2002)] * 9, [of_run("4", **slow | {"time": 4.001})] * 9
    limits = ["2%", "time=2%", "k:constant=2%"]
    for new in (two, two + four):
        found = compare(one, new, fail_above=limits)
        total, *of_time = found.gates
        assert not found.changes.rests_on_time and not found.changes.time_is_told
        assert (total.what, total.failed) == ("above_constant", False) and 0 < total.growth < 0.02
        assert all(gate.growth > 10 and gate.is_noise and not gate.failed for gate in of_time)
    in_turns = compare(one + three, two + four, fail_above=limits)
    assert in_turns.changes.time_is_told and not in_turns.changes.rests_on_time
    assert [(gate.what, gate.failed) for gate in in_turns.gates] == [
        (what, True) for what in ("total", "time", "constant")
    ]


def test_repeats_of_more_work_are_judged_by_all_of_their_energy():
    """5.3e9 B, with those of shared memory, become 6.3e9, 18.9 % more; 0.377 J are 18.7 % of 2.0129 J."""
    more = {"time": 4.0, "dram_read": KERNEL["dram_read"] + 1e9}
    old, new = ([of_run(name, **changed)] * 5 for name, changed in (("1", {}), ("2", more)))
    (total, of_kernel, seconds) = compare(old, new, fail_above=["18.8%", "k:18.8%", "time=18.8%"]).gates
    assert [gate.failed for gate in (total, of_kernel, seconds)] == [True] * 3
    assert (total.what, of_kernel.what, seconds.what) == ("total", "total", "time")
    assert total.new - total.old == pytest.approx(0.377 + 6.8 * 3.65)


def test_time_that_goes_against_counts_is_told_by_runs_in_turns_only():
    """4e9 B less at 377 pJ, 1.508 J; 3.65 s more at 6.8 W, 24.82 J: a slow machine may be all of that."""
    waits = {"time": 4.0, "dram_read": KERNEL["dram_read"] - 4e9}
    limits = ["2%", "time=2%"]
    old, new = ([of_run(name, **changed)] * 5 for name, changed in (("1", {}), ("2", waits)))
    found = compare(old, new, fail_above=limits)
    total, seconds = found.gates
    assert (total.what, total.failed) == ("above_constant", False) and total.new - total.old == pytest.approx(-1.508)
    assert seconds.is_noise and not seconds.failed and found.typed.change_j == pytest.approx(24.82 - 1.508)
    text = answer.headline(found.typed).text.replace(NARROW, " ")
    assert text.startswith("No difference is shown: NEW moves ") and "time goes against what was counted" in text
    (backwards,) = compare(new, old, fail_above=["2%"]).gates
    assert backwards.what == "above_constant" and backwards.failed, "the bytes grew, whatever the clocks say"
    in_turns = compare(
        [*old, *[of_run("3")] * 5], [*new, *[of_run("4", **waits | {"time": 4.001})] * 5], fail_above=limits
    )
    assert [gate.failed for gate in in_turns.gates] == [True, True]
    assert (
        "more energy" in answer.headline(in_turns.typed).text
        or "times the energy" in answer.headline(in_turns.typed).text
    )
    little = compare(old, [of_run("2", time=0.36, dram_read=KERNEL["dram_read"] - 4e9)] * 5)
    assert not little.changes.rests_on_time, "68 mJ against 1.508 J: the sign is that of the counts"


def on_cores(cores, **numbers):
    """A program that keeps so many of the 8 cores of a socket busy, and pays 3 W for each."""
    alone = {"what": "time", "command": ["./a"], "seconds": 1.0, "cpu_seconds": cores}
    priced = energy({"k": kernel(**numbers)}, priced=costs(watts=3.0 * cores))
    run = Run(Path("a.eprof"), {"program": ["./a"], "command": "./a", "measurements": [alone]}, {})
    constant = SimpleNamespace(is_per_socket=True, cores=8)
    table = SimpleNamespace(name="table", device="CPU", source="us", constant=constant, serves=lambda _: False)
    return replace(priced, table=table, profile=replace(priced.profile, run=run))


def test_cores_in_use_are_an_amount_and_no_other_price():
    """Constant energy of a CPU's program is core-seconds times the watts of a core, whatever cores were busy."""
    document = compare([on_cores(0.4, time=1.0)], [on_cores(0.9, time=0.5, integer=1e9)]).typed
    (constant,) = (part for part in document.parts if part.what == CONSTANT)
    assert (constant.because, constant.unit) == ("cpu_time", "s")
    assert (constant.old, constant.new) == (pytest.approx(0.4), pytest.approx(0.45))
    assert constant.change_j == pytest.approx(3.0 * 0.05)
    lead = answer.headline(document).lead.replace(NARROW, " ")
    assert "450 ms instead of 400 ms of CPU time" in lead and "cost table" not in lead

    noise = compare([on_cores(0.4, time=1.0)], [on_cores(0.9, time=0.9)], fail_above=["2%"])
    assert noise.typed.rests_on_time and not noise.gates[0].failed
    head = answer.headline(noise.typed)
    assert "counts are equal" in head.text and "in turns" in head.text and not head.lead

    # Repeats that kept other numbers of cores busy are repeats.
    repeats = compare([on_cores(cores) for cores in (0.4, 0.5)], [on_cores(cores, integer=1e9) for cores in (0.8, 0.9)])
    (constant,) = (part for part in repeats.parts if part.what == CONSTANT)
    assert constant.change_j == pytest.approx(0.35 * 3 * 0.4)
    assert repeats.change_j == pytest.approx(repeats.typed.tests.energy.change)
    assert (repeats.typed.old.name, repeats.typed.new.name) == ("a.eprof", "a.eprof"), "not and one more"


def test_a_gate_says_which_energy_it_judged():
    gate = compare([on_cores(0.4, time=1.0)], [on_cores(0.9, time=0.9)], fail_above=["2%"]).typed.gates[0]
    says = [diff_words.gate_words(gate, nouns_of(of)).replace(NARROW, " ") for of in ("gpu", "cpu")]
    assert "energy above constant power (45 % of all) did not" in says[0], "2.01 J beside 0.9 s at 2.7 W"
    assert "energy above constant power and core cycles (45 % of all) did not" in says[1]


def test_other_numbers_of_launches_of_which_nothing_is_known_are_told_alone():
    sides = [energy({"k": {}}, priced=None, launches={"k": number}) for number in (1, 9)]
    document = compare([sides[0]], [sides[1]]).typed
    assert answer.headline(document).text == "Energy is not compared, and nothing else is known on both sides."
    assert diff_words.unlike(document) == "Not the same: launches 1 → 9."


def test_why_one_side_has_no_prices_and_what_prices_both():
    old, new = energy({"k": kernel()}, priced=None, device=" (0)"), energy({"k": kernel()})
    assert (
        answer.headline(compare([old], [new]).typed).lead == "The log of OLD names no GPU; --costs table prices both."
    )
    guessed = energy({"k": kernel()}, priced=costs(name="estimated"), device="TITAN Xp (0)")
    lead = answer.headline(compare([guessed], [old]).typed).lead
    assert lead == 'The log of NEW names no GPU; --costs "TITAN Xp" prices both.'


def test_counts_that_repeat_almost_to_the_digit_are_the_same():
    """Start-up code sees other addresses in each run. What follows time, cycles too, is not gated then."""
    old = energy({"k": kernel(core_active=1e9)}, prices={**PRICES, "core_active": 900.0})
    for more, failed in ((1.0004, False), (1.01, False), (9, True)):
        cycles = {"core_active": 2e9, "integer": KERNEL["integer"] * more}
        slow = energy({"k": kernel(time=4.0, **cycles)}, prices={**PRICES, "core_active": 900.0})
        found = compare([old], [slow], fail_above=["2%"])
        (total,) = found.gates
        assert total.failed is failed and total.what == "above_constant"
        assert found.typed.rests_on_time is (more == 1.0004)


def test_repeats_that_differ_in_their_counts_are_told():
    unlike = compare([energy({"k": kernel()}), energy({"k": kernel(integer=9e9)})], [energy({"k": kernel()})])
    assert diff_words.unlike(unlike.typed).startswith("Not the same: repeats among themselves (OLD in integer by 92")
    scalar = [energy({"k": kernel(fp64_scalar=flops, integer=1e9 + flops)}) for flops in (1e8, 9e8)]
    told = diff_words.unlike(compare(scalar, scalar[:1]).typed).replace(NARROW, " ")
    assert told == "Not the same: repeats among themselves (OLD in integer by 42 %).", "no flops of other words"
    alike = compare([energy({"k": kernel()}), energy({"k": kernel(time=9.0)})], [energy({"k": kernel()})])
    assert "repeats" not in diff_words.unlike(alike.typed)


def test_a_class_that_one_side_lacks_does_not_pass_unseen():
    (total, dram, integer) = gates("2%", "dram_read=2%", "integer=2%", dram_read=None)
    assert "cannot be compared" in total.why_not and "dram_read" in dram.why_not
    assert integer.why_not is None and not integer.failed
    (time,) = gates("time=2%", time=None)
    assert "not known" in time.why_not


def test_growth_from_nothing_fails():
    (found,) = compare(
        [energy({"k": kernel(shared_read=0.0)})], [energy({"k": kernel()})], fail_above=["shared_read=500%"]
    ).gates
    assert found.failed and found.growth is None


def test_without_prices_a_class_is_gated_by_its_count():
    sides = [energy({"k": kernel()}, priced=None)], [energy({"k": kernel(dram_read=5e9)}, priced=None)]
    dram, total = compare(*sides, fail_above=["dram_read=10%", "10%"]).gates
    assert dram.failed and dram.unit == "byte" and dram.growth == pytest.approx(0.25)
    assert "no cost table" in total.why_not


@pytest.mark.parametrize("priced", [(True, False), (False, True)], ids=["old", "new"])
def test_a_gate_of_joules_with_prices_on_one_side_is_not_judged_by_counts(priced):
    sides = [[energy({"k": kernel()}, **({} if is_priced else {"priced": None}))] for is_priced in priced]
    for gate in compare(*sides, fail_above=["dram_read=10%", "10%"]).gates:
        assert "cannot be compared" in gate.why_not and gate.failed is None


def why_not(old, new):
    (gate,) = compare([old], [new], fail_above=["2%"]).gates
    assert (gate.failed is None) is bool(gate.why_not)
    return (gate.why_not or "").replace(NARROW, " ")


def test_a_gate_holds_one_program_on_one_kind_of_device_against_itself():
    """Other devices, kernels and work cannot pass unseen, nor fail by chance; fewer flops are what is to be judged."""
    old = energy({"k": kernel()})
    assert why_not(old, energy({"k": kernel()}, device="TITAN Xp (0)")) == "OLD ran on GPU, and NEW on TITAN Xp"
    constant = SimpleNamespace(is_per_socket=False)
    table = SimpleNamespace(name="table", constant=constant, serves=lambda _: True, replicas=lambda _: ())
    boards = [replace(energy({"k": kernel()}, device=f"{name} (0)"), table=table) for name in ("V100-16", "V100-32")]
    assert why_not(*boards) == "", "boards of one table"
    assert why_not(old, energy({"k": kernel()}, device="")) == "", "a log that names none is as before"
    assert why_not(old, energy({"xyzzy": kernel(), "plugh": kernel()})).startswith("no kernel of OLD is in NEW")
    fp32 = ("fp32_fma", "fp32_add", "fp32_mul")
    idle, less = (energy({"k": kernel(**{word: KERNEL[word] * share for word in fp32})}) for share in (0.0, 0.1))
    assert why_not(old, idle) == "NEW does none of OLD's 2.30 Gflop: another program, or other work"
    assert why_not(idle, old) == "OLD does none of NEW's 2.30 Gflop: another program, or other work"
    assert why_not(old, less) == "" and why_not(idle, idle) == ""


@pytest.mark.parametrize("text", ["", "x", "-1%", "drum=2%", "2%%", "k:", "nan%", "=2%"])
def test_gates_that_cannot_be_read(text):
    with pytest.raises(UsageError, match="--fail-above"):
        gates(text)


def test_a_gate_for_a_kernel_that_is_not_there():
    with pytest.raises(UsageError, match="neither side has a kernel `zz`"):
        gates("zz:2%")


def test_a_lower_bound_of_time_or_count_has_no_speedup_and_no_change(tmp_path):
    """OLD lacks the time and a cell of one launch: nothing tells by how much NEW is slower, or counts more."""
    from logs_support import K20C, profiled

    names = ("flop_count_dp_fma", "inst_integer")
    head = ",".join(f'"{name}"' for name in ("Device", "Context", "Stream", "Kernel", *names))

    def logs_of(name, cells, times):
        wide = [f'"{K20C}","1","7","k(int)",{cell},5' for cell in cells]
        timed = [f'{at},{ms},1,"{K20C}","1","7","k(int) [{at}]"' for at, ms in enumerate(times)]
        header = ('"Start","Duration","Grid X","Device","Context","Stream","Name"', "ms,ms,,,,,")
        made = {"counts": profiled(1, head, ",,,,,", *wide), "times": profiled(1, *header, *timed)}
        for kind, text in made.items():
            (tmp_path / f"{name}-{kind}.csv").write_text(text)
        return [str(tmp_path / f"{name}-{kind}.csv") for kind in made]

    old = logs_of("old", (1000, '"<OVERFLOW>"'), (1.0, ""))
    new = logs_of("new", (1000, 1000), (1.0, 5.0))
    for one, two in ((old, new), (new, old)):
        found = eprof.diff(one, two, costs="jetson-tk1").document()
        assert found["speedup"] is None and found["counts"]["fp64_fma"]["change"] is None
        assert found["counts"]["integer"]["change"] == 0

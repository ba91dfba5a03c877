"""Bounds through formulas: a count that is marked a lower bound is never above the truth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_counts_launches import UNITS, make, row

import eprof
from eprof.base.toml import CHOOSING, Formula
from eprof.base.vocabulary import COUNTS, Mark
from eprof.counts import counts, definition_files
from eprof.counts.evaluation import FormulaTerm

M = int(Mark.MISSING)
DEFINITIONS = [
    ("nvprof", "2.0"),
    ("nvprof", "3.5"),
    ("nvprof", "5.2"),
    ("nvprof", "7.0"),
    ("ncu", "7.0"),
    ("ncu", "9.0"),
]
LOG = """==1== NVPROF is profiling process 1, command: ./x
==1== Profiling result:
"Device","Context","Stream","Kernel","Correlation_ID",{names}
{units}
"""


def term(values, low=False, high=False):
    values = np.array(values, dtype=float)
    return FormulaTerm.of(values, np.full(values.shape, low), np.full(values.shape, high))


def sides(text, **terms):
    result = Formula.parse(text, CHOOSING)(terms)
    return bool(result.low[0]), bool(result.high[0])


@pytest.mark.parametrize(
    ("text", "is_low", "is_high"),
    [
        ("low + exact", True, False),
        ("low + high", True, True),
        ("low - exact", True, False),
        ("exact - low", False, True),
        ("low - low", True, True),
        ("exact - high", True, False),
        ("32 * (exact - low)", False, True),
        ("100 - low", False, True),
        ("low * exact / 100", True, False),
        ("exact / low", False, True),
        ("low / (1 - exact / 100)", True, False),
        ("exact - (exact - low)", True, False),
        ("2 + exact", False, False),
        ("max(0, low - exact)", True, False),
        ("min(exact, exact - low)", False, True),
        ("min(low, high)", True, True),
        ("max(1, exact)", False, False),
    ],
)
def test_a_formula_carries_the_side_of_its_bounds(text, is_low, is_high):
    parts = {"exact": term([3.0]), "low": term([5.0], low=True), "high": term([7.0], high=True)}
    assert sides(text, **parts) == (is_low, is_high)


def test_the_size_of_a_difference_is_that_of_its_parts():
    result = Formula.parse("32 * (a - b)")({"a": term([10.0]), "b": term([12.0])})
    assert (result.values[0], result.size[0]) == (-64.0, 704.0)


@st.composite
def logs(draw):
    """A definition, counters of one kernel over some launches, and the launches whose cells are lost."""
    profiler, capability = draw(st.sampled_from(DEFINITIONS))
    definition = definition_files.find(profiler, capability)
    names = draw(st.lists(st.sampled_from(sorted(definition.profiler_names)), min_size=1, max_size=40, unique=True))
    number = draw(st.integers(1, 3))
    whole = {name: draw(st.lists(st.integers(0, 10**6), min_size=number, max_size=number)) for name in names}
    lost = {name: draw(st.integers(0, number - 1)) for name in draw(st.sets(st.sampled_from(names)))}
    return definition, whole, lost


@settings(max_examples=100)
@given(logs(), st.sampled_from(["served", "accessed"]))
def test_what_lacks_launches_is_a_lower_bound_or_not_known(log, books):
    definition, whole, lost = log
    launches = len(next(iter(whole.values())))

    def total(name, values):
        return float(sum(values)) if UNITS[name] == "count" else 50.0

    sums = {name: total(name, values) for name, values in whole.items()}
    seen = {name: total(name, values[: launches - lost.get(name, 0)]) for name, values in whole.items()}
    marks = {name: M if lost.get(name) and UNITS[name] == "count" else 0 for name in whole}
    true = counts.count(make(sums, launches=launches), definition, books)
    found = counts.count(make(seen, launches=launches, marks=marks), definition, books)
    for word in COUNTS:
        ways = [[way.formula for way in counted.how.get(word, ())] for counted in (true, found)]
        value, mark = found.table[word].iloc[0], found.marks[word].iloc[0]
        if ways[0] != ways[1] or np.isnan(value):
            continue
        truth = true.table[word].iloc[0]
        assert value <= truth * (1 + 1e-12), (word, ways[0])
        assert mark & M or value == pytest.approx(truth, rel=1e-12), (word, ways[0])


def test_what_a_bound_is_subtracted_from_is_not_known():
    lacks = {"dram_read_transactions": M}
    values = {"dram_read_transactions": 100.0, "l2_read_transactions": 600.0, "sysmem_read_transactions": 0.0}
    counted = counts.count(make(values, launches=2, marks=lacks), definition_files.find("nvprof", "3.5"))
    assert np.isnan(row(counted)["l2_read"]) and counted.marks["l2_read"].iloc[0] == M
    assert row(counted)["dram_read"] == 3200 and counted.marks["dram_read"].iloc[0] == M


def test_an_entry_that_only_leaves_out_the_bound_is_no_way_out():
    """FP32 instructions less special ones, of which launches are lost: all FP32 instructions are not the answer."""
    values = {"inst_fp_32": 2e9, "flop_count_sp_special": 9e8}
    counted = counts.count(
        make(values, launches=2, marks={"flop_count_sp_special": M}), definition_files.find("nvprof", "5.2")
    )
    assert np.isnan(row(counted)["fp32"]) and counted.marks["fp32"].iloc[0] == M
    without = counts.count(make({"inst_fp_32": 2e9}, launches=2), definition_files.find("nvprof", "5.2"))
    assert row(without)["fp32"] == 2e9


def test_a_sum_of_which_some_is_known_is_a_lower_bound_where_its_definition_says_so():
    """Kernel by kernel: all known, one lost, none known."""
    names = [f"fp_arith_inst_retired.{width}_packed_double" for width in ("128b", "256b", "512b")]
    columns = dict(zip(names, ([10.0, 10.0, np.nan], [1.0, np.nan, np.nan], [2.0, 2.0, np.nan]), strict=True))
    launches = make(columns | {"fp_arith_inst_retired.scalar_double": [3.0, 3.0, np.nan]}, names=["a", "b", "c"])
    counted = counts.count(launches, definition_files.find("perf", "any"))
    assert counted.table["fp64"].tolist()[:2] == [3 + 20 + 4 + 16, 3 + 20 + 16]
    assert np.isnan(counted.table["fp64"].iloc[2])
    assert [mark & M for mark in counted.marks["fp64"]] == [0, M, M]


def test_atomics_that_l1_handed_to_l2_are_a_lower_bound_of_what_l2_did():
    sent = {"l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum": [1000.0, 1000.0]}
    sent["l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum"] = [50.0, np.nan]
    for books in ("served", "accessed"):
        counted = counts.count(make(sent, names=["a", "b"]), definition_files.find("ncu", "12.0"), books)
        for word in ("l2_read", "l2_write"):
            assert counted.table[word].tolist() == [32 * 1050, 32 * 1000]
            assert [mark & (M | Mark.ESTIMATED) for mark in counted.marks[word]] == [M | Mark.ESTIMATED] * 2
    # Beside what L2 itself counted they stand in for its atomics.
    both = sent | {"lts__t_sectors_srcunit_tex_op_read.sum": [7.0, 7.0]}
    counted = counts.count(make(both, names=["a", "b"]), definition_files.find("ncu", "12.0"), "accessed")
    assert counted.table["l2_read"].tolist() == [32 * 1057, 32 * 1007]
    assert [mark & M for mark in counted.marks["l2_read"]] == [0, M]


def test_a_better_way_is_found_beside_a_bound():
    """A difference that is not known gives way to hit counters, which are."""
    values = {"l2_read_transactions": 600.0, "dram_read_transactions": 100.0, "sysmem_read_transactions": 0.0}
    hits = {f"l2_subp{number}_read_{unit}_hit_sectors": 10.0 for number in range(4) for unit in ("l1", "tex")}
    counted = counts.count(
        make(values | hits, launches=2, marks={"dram_read_transactions": M}), definition_files.find("nvprof", "3.5")
    )
    assert row(counted)["l2_read"] == 32 * 80 and counted.marks["l2_read"].iloc[0] == 0


@pytest.mark.parametrize(
    "name", ["false-lower-bound-l2", "false-lower-bound-special", "intensity-overflow", "flops-only"]
)
def test_bounds_of_the_repros(name, real_repro):
    """What is said to be at least so much is at most the truth, energy and counts alike."""
    costs = "jetson-tk1" if name == "false-lower-bound-l2" else "gtx980"
    found = eprof.load(real_repro(f"{name}.csv")).energy(costs).document()
    if name == "false-lower-bound-l2":  # the truth of its lost cell is not known: at least what was seen
        assert found["counts"]["dram_read"]["value"] == 3_200_000 and found["counts"]["l2_read"]["value"] is None
        return
    true = eprof.load(real_repro(f"{name}-true.csv")).energy("gtx980").document()
    assert "missing" in found["marks"]
    assert (found["energy_j"]["total"] or 0.0) <= true["energy_j"]["total"]
    whole = {word: found["counts"].get(word, {}).get("value") for word in ("fp64", "fp32", "fp16")}
    for word, cell in found["counts"].items():
        if cell["value"] and word not in whole and word in true["counts"]:
            assert cell["value"] <= true["counts"][word]["value"], word
    if name == "flops-only":
        assert found["counts"]["fp64"]["lower_bound"]


def test_a_total_of_parts_that_are_not_known_is_not_known(tmp_path):
    """That some classes take 0 J is no total."""
    log = tmp_path / "misc.csv"
    log.write_text(
        LOG.format(names='"inst_misc"', units=",,,,,") + '"Tesla K20c (0)","1","7","a(int)",1,100\n', encoding="utf-8"
    )
    found = eprof.load(log).energy("jetson-tk1").document()
    assert [found["energy_j"][part] for part in ("computation", "data", "constant", "total")] == [None] * 4


def test_a_negative_difference_is_not_known_where_it_is_large_and_0_where_it_is_rounding():
    values = {"dram_read_transactions": 100.0, "dram_write_transactions": 50.0, "l2_write_transactions": 40.0}
    small = counts.count(make(values), definition_files.find("nvprof", "3.5"))
    assert row(small)["l2_write"] == 0 and small.marks["l2_write"].iloc[0] & int(Mark.ESTIMATED)
    large = counts.count(make(values | {"l2_write_transactions": 10.0}), definition_files.find("nvprof", "3.5"))
    assert np.isnan(row(large)["l2_write"]) and large.marks["l2_write"].iloc[0] == M
    assert any("not used" in sentence for sentence in large.warnings)


def test_lost_rows_bound_every_count_and_leave_differences_known():
    """Of the launches that are there all counters are, so that a difference lacks what its parts lack."""
    values = {"dram_read_transactions": 100.0, "l2_read_transactions": 600.0, "sysmem_read_transactions": 0.0}
    launches = replace(make(values, launches=2), lacks_rows=True)
    counted = counts.count(launches, definition_files.find("nvprof", "3.5"))
    assert row(counted)["l2_read"] == 16000 and counted.marks["l2_read"].iloc[0] & M
    assert row(counted)["tensor"] == 0 and counted.marks["tensor"].iloc[0] == 0, "what the GPU lacks it lacks"

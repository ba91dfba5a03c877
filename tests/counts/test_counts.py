"""Counting: numbers checked by hand on real logs, every way of every definition, marks, class totals, grouping."""

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from test_counts_launches import DATA, UNITS, make, real, row

from eprof.base.errors import UsageError
from eprof.base.vocabulary import COUNTS, PARTS, Mark
from eprof.costs import load as load_costs
from eprof.counts import counts, definition_files
from eprof.counts.evaluation import SECONDS, CounterSheet
from eprof.energy.attribution import attribute
from eprof.profile.grouping import merged

E, M, A = int(Mark.ESTIMATED), int(Mark.MISSING), int(Mark.ASSUMED)


def count(launches, capability, books="served"):
    return counts.count(launches, definition_files.find("nvprof", capability), books)


# --------------------------------------------------------------------------------------------------- real logs


def test_lavamd_on_a_gtx_760():
    counted = count(real("gtx760-dev1-metrics-summary-lavamd.csv"), "3.0")
    found = row(counted)
    assert found["fp64_fma"] == 4390400000
    assert found["fp64_add"] == 1536768000
    assert found["fp64_mul"] == 1097728000
    assert found["fp64_other"] == 7024896000 - 4390400000 - 1536768000 - 1097728000 == 0
    assert found["fp32_other"] == 219520000
    assert found["integer"] == 714631072
    assert found["conversion"] == 219520000
    assert found["control"] == 278567168
    assert found["load_store"] == 818571712
    assert found["misc"] == 980582048
    assert found["warp_issue"] == 419296680
    assert found["dram_read"] == 5680729 * 32
    assert found["dram_write"] == 8510927 * 32
    assert found["system_write"] == 2 * 32
    assert found["l1_read"] == found["l1_write"] == found["tensor"] == found["local_read"] == 0
    assert found["l2_read"] == pytest.approx(32 * 18777824 * 0.96866389)
    assert found["l2_write"] == 32 * (8780950 - 8510927 - 2)
    assert found["shared_read"] == pytest.approx(256 * 0.76267718 * 44782080)
    assert found["shared_write"] == pytest.approx(256 * 0.76267718 * 1016983)
    marks = counted.marks.iloc[0]
    exact = ["fp64_fma", "fp32_other", "integer", "dram_read", "l1_read", "l1_write", "l2_read", "tensor", "local_read"]
    assert (marks[exact] == 0).all()
    assert marks["shared_read"] == E
    assert np.isnan(found["fp64"]) and np.isnan(found["fp32"]) and marks["fp64"] == marks["fp32"] == 0
    assert counted.warnings == ()
    accessed = row(count(real("gtx760-dev1-metrics-summary-lavamd.csv"), "3.0", "accessed"))
    assert accessed["l2_read"] == 32 * 18778004
    assert accessed["l1_read"] == 32 * 18777824
    assert accessed["l1_write"] == 32 * 8780956
    assert accessed["dram_read"] == found["dram_read"]


def test_a_stencil_on_a_k20c_two_launches():
    counted = count(real("k20c-metrics-summary.csv"), "3.5")
    found = row(counted)
    assert found["fp32_fma"] == 2 * 16776911424
    assert found["fp32_mul"] == 2 * 2581063296
    assert found["fp32_other"] == 0 and counted.marks["fp32_other"].iloc[0] == 0
    assert found["integer"] == 2 * 4201702848
    assert found["dram_read"] == 2 * 44206708 * 32
    assert found["l1_read"] == 2 * 32 * (98060928 - 54934656)
    assert found["l2_read"] == pytest.approx(2 * 32 * 54934656 * 0.20063428)
    assert counted.marks["l2_read"].iloc[0] == E, "a hit rate averaged over two launches"
    assert "average over several launches" in counted.how["l2_read"][0].note


def test_a_stencil_on_a_k20c_from_events_alone():
    counted = count(real("k20c-events-summary-no-total.csv"), "3.5")
    found = row(counted)
    assert found["dram_read"] == 2 * 32 * (24317906 + 24496789)
    assert found["l2_read"] == 2 * 32 * (3811673 + 3767170 + 3816246 + 3978662)
    assert found["shared_read"] == 2 * 128 * 222905088
    assert counted.marks["shared_read"].iloc[0] == A
    assert found["l2_write"] == 2 * 32 * (12020656 + 12027190 + 12031044 + 12024896 - 23007453 - 23016925 - 2 - 4)
    assert counted.how["dram_read"][0].formula == "32 * sum(fb_subp{0..1}_read_sectors)"


def test_a_titan_with_metrics_and_events_headed_by_descriptions():
    counted = count(real("titan-wide-trace-events-and-metrics.csv"), "3.5")
    assert len(counted.table) == 4
    found = row(counted)
    assert found["fp32_fma"] == 868323960
    assert found["fp32_mul"] == 144720660
    assert found["dram_read"] == 32 * (3707280 + 3713705) == 32 * 7420985
    assert found["l2_read"] == 0 and counted.marks["l2_read"].iloc[0] == 0
    assert found["l2_write"] == 32 * (15362736 - 15362483)
    assert found["l1_read"] == 32 * (12700672 - 7395328)
    assert found["global_write"] == 4 * 59858190
    assert found["shared_read"] == pytest.approx(256 * 0.42583091 * 32920500)


def test_heartwall_on_a_gtx_950():
    counted = count(real("gtx950-cuda8-metrics-summary-heartwall.csv"), "5.2")
    found = row(counted)
    assert found["special"] == 20 * 16813105
    assert found["fp32_other"] == 20 * (967152105 - 94804497 - 845931279 - 5439524 - 16813105)
    assert counted.marks["fp32_other"].iloc[0] == A
    assert found["l1_read"] == 20 * 32 * (134097191 - 126089742)
    assert found["l2_write"] == 20 * 32 * (6339863 - 4415292 - 5)
    assert found["fp16_fma"] == 0 and counted.marks["fp16_fma"].iloc[0] == 0


def test_a_vector_add_on_a_gtx_1080():
    launches = real("gtx1080-wide-trace-metrics-correlation-id.csv")
    accessed = row(count(launches, "6.1", "accessed"))
    assert accessed["l1_read"] == 832
    assert accessed["l1_write"] == 13 * 32
    assert accessed["l2_read"] == 92 * 32
    assert accessed["global_read"] == pytest.approx(800, rel=1e-6), "two arrays of 100 floats"
    assert accessed["global_write"] == pytest.approx(400, rel=1e-6)
    assert accessed["dram_read"] == 640 and accessed["dram_write"] == 128
    assert accessed["fp32_add"] == 100
    served = row(count(launches, "6.1"))
    assert served["l1_read"] == 0 and served["l2_read"] == 832
    assert served["l2_write"] == 32 * (26 - 4 - 5)


def test_a_v100_with_few_counters():
    counted = count(real("v100-events-and-metrics-summary-with-total.csv"), "7.0")
    found = row(counted)
    assert found["fp32"] == 1048576, "only the class total was collected"
    assert np.isnan(found["fp32_fma"]) and counted.marks["fp32_fma"].iloc[0] == 0
    assert found["dram_read"] == 246126 * 32
    assert counted.marks["tensor"].iloc[0] == M and "nvprof has no counter" in counted.how["tensor"][0].note


def test_flops_alone_are_a_last_resort():
    counted = count(real("titanx-pascal-wide-trace-two-flop-metrics.csv"), "6.1")
    assert row(counted)["fp32"] == 10756893856 / 2
    assert counted.marks["fp32"].iloc[0] == M, "adds and multiplies are instructions of one flop: a lower bound"


# -------------------------------------------------------------------------------- test vectors of other people's logs


def test_ecc_on_a_k20m_makes_the_difference_negative():
    values = {"dram_read_transactions": 128650, "dram_write_transactions": 142118}
    values |= {"l2_read_transactions": 111074, "l2_write_transactions": 110882}
    counted = count(make(values, launches=4, names=["boundprim2(float*)"]), "3.5")
    assert row(counted)["l2_read"] == 0
    assert counted.marks["l2_read"].iloc[0] == E
    assert any("l2 read" in one and "-562,432" in one and "the only kernel" in one for one in counted.warnings)
    with_ecc = row(count(make(values | {"ecc_transactions": 20000}, launches=4), "3.5"))
    assert with_ecc["l2_read"] == 32 * (111074 - (128650 - 20000))
    assert with_ecc["dram_read"] == 32 * 128650, "DRAM did deliver the ECC sectors"


def test_one_store_a_thread_on_a_gtx_1070():
    values = {"inst_integer": 983040, "inst_misc": 655360, "inst_control": 163840, "inst_compute_ld_st": 163840}
    values |= {"inst_executed": 61440, "gst_transactions": 20480, "gld_transactions": 2}
    values |= {"l2_tex_write_transactions": 20480, "l2_write_transactions": 20493, "tex_cache_transactions": 0}
    found = row(count(make(values, names=["k(int*)"]), "6.1", "accessed"))
    assert found["integer"] == 983040 and found["misc"] == 655360
    assert found["l1_write"] == 163840 * 4, "one int a thread"
    assert found["l1_read"] == 0, "gld_transactions is 2 without any load, and not used"


def test_the_counters_of_the_seed_on_a_jetson_tk1():
    values = {"flops_dp_fma": 1000, "flops_dp_add": 200, "flops_dp_mul": 300, "inst_integer": 5000}
    values |= {"l1_global_load_hit": 10, "l2_subp0_total_read_sector_queries": 100, "gld_request": 7, "gst_request": 8}
    values |= {"l1_shared_load_transactions": 40, "l1_shared_store_transactions": 20}
    values |= {"fb_subp0_read_sectors": 30, "fb_subp1_read_sectors": 31, "l2_subp0_total_write_sector_queries": 50}
    hits = {f"l2_subp{number}_read_l1_hit_sectors": 60 + number for number in range(4)}
    counted = count(make(values | hits, device="GK20A (0)"), "3.2")
    found, marks = row(counted), counted.marks.iloc[0]
    assert (found["fp64_fma"], found["fp64_add"], found["fp64_mul"], found["integer"]) == (1000, 200, 300, 5000)
    assert found["l1_read"] == 128 * 10 and marks["l1_read"] == 0
    assert found["l2_read"] == 32 * (60 + 61 + 62 + 63) and marks["l2_read"] == 0
    assert found["dram_read"] == 32 * 61 and marks["dram_read"] == 0
    assert found["shared_read"] == 128 * 40 and marks["shared_read"] == A
    assert found["l2_write"] == 32 * 4 * 50 and marks["l2_write"] == E | A, "slice 0 of four, and no DRAM writes known"
    assert np.isnan(found["dram_write"]) and marks["dram_write"] == M
    without_hits = count(make(values, device="GK20A (0)"), "3.2")
    assert row(without_hits)["l2_read"] == 32 * (4 * 100 - 61)
    assert without_hits.marks["l2_read"].iloc[0] == E | A
    assert "scaled to four" in without_hits.how["l2_read"][0].note


# --------------------------------------------------------------------------------------- every way of every definition


@cache
def needs(definition, name):
    """The smallest sets of counters that make a name of the definition known; of several names for a counter the first."""
    if name in definition.parameters or name in definition.told:
        return [frozenset()]
    if name in definition.quantities:
        return [found for entry in definition.quantities[name] for found in entry_needs(definition, entry)]
    counter = definition.counters[name]
    if counter.names:
        return [frozenset(counter.names[:1])]
    return [frozenset(counter.slices[: 1 if counter.partial else counter.expect])]


def entry_needs(definition, entry):
    found = [frozenset()]
    for name in sorted(entry.formula.names):
        found = list(dict.fromkeys(one | more for one, more in product(found, needs(definition, name))))
    return found


def all_entries(definition):
    used = definition.used()
    places = [("quantity", name, entries) for name, entries in definition.quantities.items() if name in used]
    places += [(s, word, entries) for s, words in definition.words.items() for word, entries in words.items()]
    for section, name, entries in places:
        for rank in range(len(entries)):
            yield f"{section}-{name}-{rank}", entries, rank


@pytest.mark.parametrize("definition", definition_files.definitions(), ids=lambda one: one.name)
def test_every_way_is_used_by_some_log(definition, monkeypatch):
    """No way is hidden behind a better one: there is a set of counters for which it is the first that can be used."""
    monkeypatch.setattr(
        "eprof.counts.evaluation._TOLERANCE", 1.0
    )  # equal values for all make many differences negative
    ways = list(all_entries(definition))
    # Of CPUs whose events eprof does not know, instructions and cycles are all that it can make of a log.
    assert len(ways) > (1 if definition.name == "likwid/any" else 8)
    assert [name for name, entries, rank in ways if not is_used_once(definition, entries, rank)] == []


NAMES = [
    ("k", "Tesla K20c (0)"),
    ("k", None),
    *((name, "NVIDIA GeForce RTX 4090") for name in ("k", "s16816gemm_fp16")),
]
NAMES += [(name, "NVIDIA GeForce RTX 4090") for name in ("bf16", "tf32", "e4m3", "nvfp4")]
NAMES += [("k", "AMD Instinct MI300X (0)")]


USED = {}


def is_used_once(definition, entries, rank):
    """The same, asked once of entries that mean the same in several definitions: these extend each other."""
    met, waiting = {}, [name for entry in entries for name in names_of(entry)]
    while waiting:
        name = waiting.pop()
        if name not in met:
            met[name] = [getattr(definition, part).get(name) for part in ("quantities", "counters", "parameters")]
            waiting += [more for entry in met[name][0] or () for more in names_of(entry)]
    key = repr((entries, rank, sorted(met.items()), definition.told))
    if key not in USED:
        USED[key] = is_used(definition, entries, rank)
    return USED[key]


def names_of(entry):
    return entry.formula.names | (entry.mark_if.names if entry.mark_if else set())


def is_used(definition, entries, rank):
    """Whether some log makes a word by this entry; and then its values are known and its marks are the entry's."""
    needs_names = bool(definition.told)
    for factor, needed, (kernel, device) in product(
        (1.0, 0.0), sorted(entry_needs(definition, entries[rank]), key=len), NAMES if needs_names else NAMES[:1]
    ):
        counted = needed - {SECONDS}  # that is no counter, but the time of the launches
        values = {name: factor * (50.0 if UNITS[name] == "percent" else 1000.0) for name in counted}
        time_s = 1.0 if needed != counted else np.nan
        sheet = CounterSheet(make(values, time_s=time_s, names=[kernel], device=device), definition)
        before = (sheet.first_known("word", [entry]) for entry in entries[:rank])
        if not all(one is None or np.isnan(one.values).all() for one in before):
            continue
        cells = sheet.first_known("word", entries[: rank + 1])
        if cells is not None and not np.isnan(cells.values).all():
            assert not np.isnan(cells.values).any(), entries[rank]
            condition = entries[rank].mark_if and sheet.evaluate(entries[rank].mark_if)
            is_unsaid = condition is not None and condition.values[0] == 0
            assert (cells.marks[0] & int(entries[rank].mark)) == int(entries[rank].mark) or is_unsaid, entries[rank]
            return True
    return False


def test_a_missing_slice_is_not_a_zero_slice():
    three = {f"l2_subp{number}_read_sysmem_sector_queries": 5.0 for number in (0, 1, 3)}
    counted = count(make(three), "3.5")
    assert np.isnan(row(counted)["system_read"]) and counted.marks["system_read"].iloc[0] == M
    counted = count(make(three | {"l2_subp2_read_sysmem_sector_queries": 7.0}), "3.5")
    assert row(counted)["system_read"] == 32 * 22
    five = {f"l2_subp{number}_read_sysmem_sector_queries": 5.0 for number in range(6)}
    assert row(count(make(five), "3.5"))["system_read"] == 32 * 30, "a chip with more slices than expected"
    del five["l2_subp2_read_sysmem_sector_queries"]
    assert np.isnan(row(count(make(five), "3.5"))["system_read"]), (
        "as many slices as expected, but one among them lacks"
    )


def test_some_slices_stand_for_all_by_their_mean():
    two = {f"l2_subp{number}_total_read_sector_queries": value for number, value in enumerate((100.0, 300.0))}
    counted = count(make(two), "3.5", "accessed")
    assert row(counted)["l2_read"] == 32 * 4 * 200 and counted.marks["l2_read"].iloc[0] == E


def test_what_rounding_of_averages_may_do_is_no_news_for_sectors_nor_for_instructions():
    """Of two launches an average may be off by half a count: 32 bytes a sector, 1 an instruction."""
    sectors = {"l2_write_transactions": 1000.0, "dram_write_transactions": 1002.0}
    counted = count(make(sectors, launches=2), "3.5")
    assert row(counted)["l2_write"] == 0 and not counted.warnings
    kinds = {"flop_count_dp_fma": 1010.0, "flop_count_dp_add": 0.0, "flop_count_dp_mul": 0.0}
    counted = count(make(kinds | {"inst_fp_64": 1000.0}, launches=2), "3.5")
    assert row(counted)["fp64_other"] == 0
    assert any("-10); set to 0 and marked estimated" in warning for warning in counted.warnings)


def test_each_kernel_takes_the_best_way_it_has():
    values = {"dram_read_transactions": [10.0, np.nan, np.nan], "fb_subp0_read_sectors": [1.0, 2.0, np.nan]}
    counted = count(make(values | {"fb_subp1_read_sectors": [1.0, 3.0, np.nan]}), "3.5")
    assert counted.table["dram_read"].tolist()[:2] == [320, 160] and np.isnan(counted.table["dram_read"][2])
    assert counted.marks["dram_read"].tolist() == [0, 0, M]
    assert [(way.formula, way.kernels) for way in counted.how["dram_read"]] == [
        ("32 * dram_read_transactions", 1),
        ("32 * sum(fb_subp{0..1}_read_sectors)", 1),
    ]


WITH_RATES = [one for one in definition_files.definitions() if "dram_read_rate" in one.counters]


@pytest.mark.parametrize("definition", WITH_RATES, ids=lambda one: one.name)
def test_bytes_a_second_are_bytes_where_a_kernel_has_no_better_count_of_them(definition):
    """Of ten launches in 0.5 s: the first kernel was counted in another run, of the second the rate alone is known."""
    values = {f"dram_{way}_throughput": [3e9, 4e9] for way in ("read", "write")}
    values |= {f"dram_{way}_transactions": [10.0, np.nan] for way in ("read", "write")}
    counted = counts.count(make(values, launches=10, time_s=0.5), definition, "served")
    for way in ("dram_read", "dram_write"):
        assert counted.table[way].tolist() == [320, 2e9]
        assert counted.marks[way].tolist() == [0, E]


@pytest.mark.parametrize("capability", ["2.0", "3.5", "5.2", "6.1", "6.2", "7.0"])
def test_bytes_of_l2_a_second_are_bytes_where_no_better_count_is_there(capability):
    rates = {"l2_read_throughput": 64e9, "l2_write_throughput": 32e9}
    counted = count(make(rates, launches=4, time_s=0.25), capability, "accessed")
    assert (row(counted)["l2_read"], row(counted)["l2_write"]) == (16e9, 8e9)
    assert counted.marks["l2_read"].iloc[0] == counted.marks["l2_write"].iloc[0] == E
    better = {"l2_read_transactions": 5.0, "l2_write_transactions": 6.0}
    assert row(count(make(rates | better, time_s=0.25), capability, "accessed"))["l2_read"] == 160


def test_instructions_issued_tell_those_executed_and_the_cycles():
    """Where only those were collected: a replay is an issue more, and issues a cycle are those of active ones."""
    counters = {"inst_issued": 1030.0, "inst_replay_overhead": 0.03, "issued_ipc": 2.06}
    for capability in ("2.0", "3.5", "7.0"):
        told = row(count(make(counters), capability))
        assert told["warp_issue"] == pytest.approx(1000) and told["sm_active_cycle"] == pytest.approx(500)
    assert row(count(make(counters | {"inst_executed": 990.0}), "3.5"))["warp_issue"] == 990


@pytest.mark.parametrize("capability", ["5.2", "6.1", "7.0"])
def test_bytes_of_l1_and_shared_memory_a_second(capability):
    """A store passes L1 on its way to L2; global ones alone are a lower bound."""
    stores = {"gst_throughput": 8e9}
    counted = count(make(stores, time_s=0.5), capability, "accessed")
    assert row(counted)["l1_write"] == 4e9 and counted.marks["l1_write"].iloc[0] == M | E
    counted = count(make({"gst_transactions": 100.0}), capability, "accessed")
    assert row(counted)["l1_write"] == 3200 and counted.marks["l1_write"].iloc[0] == M
    counted = count(make({"gst_transactions": 100.0, "local_store_transactions": 7.0}), capability, "accessed")
    assert row(counted)["l1_write"] == 3424 and counted.marks["l1_write"].iloc[0] in (0, A)
    counted = count(make(stores | {"l2_tex_write_throughput": 10e9}, time_s=0.5), capability, "accessed")
    assert row(counted)["l1_write"] == 5e9 and counted.marks["l1_write"].iloc[0] == E
    shared = {"shared_load_throughput": 16e9, "shared_store_throughput": 4e9}
    counted = count(make(shared, time_s=0.5), capability)
    assert (row(counted)["shared_read"], row(counted)["shared_write"]) == (8e9, 2e9)
    assert counted.marks["shared_read"].iloc[0] == counted.marks["shared_write"].iloc[0] == E | A
    counted = count(make(shared | {"shared_efficiency": 50.0}, time_s=0.5), capability)
    assert row(counted)["shared_read"] == 4e9 and counted.marks["shared_read"].iloc[0] == E


def test_sectors_of_the_unified_l1_a_second():
    rates = {"tex_cache_throughput": 32e9, "l2_tex_read_throughput": 8e9}
    for books, expected in (("accessed", 16e9), ("served", 12e9)):
        counted = count(make(rates, time_s=0.5), "6.1", books)
        assert row(counted)["l1_read"] == expected and counted.marks["l1_read"].iloc[0] == E


def test_old_and_new_names_are_the_same_counter():
    counted = count(make({"flops_dp_fma": [1.0, np.nan], "flop_count_dp_fma": [np.nan, 2.0]}), "3.5")
    assert counted.table["fp64_fma"].tolist() == [1, 2]


def test_marks_of_the_input_are_carried_into_every_cell_that_used_them():
    simulated = int(Mark.SIMULATED)
    launches = make({"inst_integer": [1.0, 2.0], "inst_misc": [1.0, 2.0]}, marks={"inst_integer": [simulated, 0]})
    counted = count(launches, "3.5")
    assert counted.marks["integer"].tolist() == [simulated, 0]
    assert counted.marks["misc"].tolist() == [0, 0]
    assert counted.how["integer"][0].mark == simulated


def test_a_counter_in_the_wrong_unit_is_not_used():
    launches = make({"shared_load_transactions": 10, "shared_efficiency": 50}, units={"shared_efficiency": "count"})
    counted = count(launches, "3.5")
    assert row(counted)["shared_read"] == 1280
    assert counted.warnings == (
        "Not used, for the log gives them in a unit that the definition does not expect: "
        "shared_efficiency (count instead of percent).",
    )


def test_a_mark_applies_only_where_it_matters():
    values = {"shared_load_transactions": [10.0, 0.0], "shared_efficiency": [50.0, 0.0]}
    assert count(make(values, launches=3), "3.5").marks["shared_read"].tolist() == [E, 0]
    parts = {f"flop_count_sp_{kind}": 1.0 for kind in ("fma", "add", "mul")} | {"inst_fp_32": 9.0}
    assert count(make(parts | {"flop_count_sp_special": 0.0}), "3.5").marks["fp32_other"].tolist() == [0]
    assert count(make(parts | {"flop_count_sp_special": 2.0}), "3.5").marks["fp32_other"].tolist() == [A]


def test_an_average_stays_an_estimate_where_the_mark_of_its_formula_does_not_apply():
    """No local loads, so the formula's own mark falls away; the hit rate is an average over launches all the same."""
    loads = {"l1_global_load_hit": 10.0, "local_load_transactions": 0.0, "l1_cache_local_hit_rate": 50.0}
    values = loads | {"tex_cache_transactions": 8.0, "l2_tex_read_transactions": 8.0}
    several, single = count(make(values, launches=3), "3.5"), count(make(values, launches=1), "3.5")
    assert row(several)["l1_read"] == row(single)["l1_read"] == 1280
    assert several.marks["l1_read"].tolist() == [E] and single.marks["l1_read"].tolist() == [0]


def test_a_fourth_follows_from_three():
    values = {"flop_count_sp": 100.0, "flop_count_sp_fma": 20.0, "flop_count_sp_add": 50.0}
    found = row(count(make(values), "3.5"))
    assert (found["fp32_fma"], found["fp32_add"], found["fp32_mul"]) == (20, 50, 10)


def test_class_totals_and_their_parts_exclude_each_other():
    values = {"inst_fp_64": [10.0, 10.0, np.nan, np.nan], "flop_count_dp_fma": [2.0, 2.0, 2.0, np.nan]}
    values |= {"flop_count_dp_add": [3.0, np.nan, 3.0, np.nan], "flop_count_dp_mul": [4.0, np.nan, np.nan, np.nan]}
    counted = count(make(values), "3.5")
    assert counted.table["fp64"].fillna(-1).tolist() == [-1, 10, -1, -1]
    assert counted.marks["fp64"].tolist() == [0, 0, 0, M]
    assert counted.table["fp64_fma"].fillna(-1).tolist() == [2, -1, 2, -1]
    assert counted.marks["fp64_mul"].tolist() == [0, 0, M, M]
    assert counted.table["fp64_other"].fillna(-1).tolist() == [1, -1, -1, -1]
    assert counted.marks["fp64_other"].tolist() == [0, 0, M, M]
    assert sum(way.kernels for way in counted.how["fp64"]) == 1


def test_half_precision_on_volta_is_counted_as_a_whole():
    values = {"inst_fp_16": 100.0, "flop_count_hp_fma": 400.0, "flop_count_hp_add": 0.0, "flop_count_hp_mul": 0.0}
    counted = count(make(values), "7.0")
    assert row(counted)["fp16"] == 100 and np.isnan(row(counted)["fp16_fma"])
    assert counted.marks[["fp16", "fp16_fma", "fp16_other"]].iloc[0].tolist() == [0, 0, 0]
    assert row(count(make(values), "6.1"))["fp16_fma"] == 400


def test_rounded_averages_make_no_noise():
    values = {"inst_fp_64": 99.0, "flop_count_dp_fma": 100.0, "flop_count_dp_add": 0.0, "flop_count_dp_mul": 0.0}
    quiet = count(make(values, launches=5), "3.5")
    assert row(quiet)["fp64_other"] == 0 and quiet.marks["fp64_other"].iloc[0] == E and quiet.warnings == ()
    assert count(make(values, launches=1), "3.5").warnings != ()


def test_nothing_but_names_is_counted_as_nothing():
    counted = count(make({}, names=["a", "b"]), "3.5")
    assert counted.table.shape == (2, len(COUNTS)) and list(counted.table.columns) == list(COUNTS)
    assert counted.table["integer"].isna().all() and (counted.marks["integer"] == M).all()
    assert (counted.table["tensor"] == 0).all()


def test_other_books_are_refused():
    with pytest.raises(UsageError, match="`asked` are not books; use one of: served, accessed"):
        count(make({}), "3.5", "asked")


# ------------------------------------------------------------------------------------------------------- properties

WORDS = {"inst_integer": "integer", "inst_misc": "misc", "dram_read_transactions": "dram_read"}
LINEAR = ["inst_integer", "inst_misc", "inst_bit_convert", "dram_read_transactions", "dram_write_transactions"]
LINEAR += ["flop_count_dp_fma", "flop_count_dp_add", "flop_count_dp_mul", "shared_load_transactions"]
number = st.integers(0, 10**12).map(float)


@given(
    st.lists(st.tuples(number, number), min_size=len(LINEAR), max_size=len(LINEAR)),
    st.integers(0, 1000),
    st.integers(0, 1000),
)
@settings(max_examples=10)
def test_counts_are_linear_in_the_counters(values, first, second):
    def counted(pick):
        found = count(make({name: pick(*pair) for name, pair in zip(LINEAR, values, strict=True)}), "5.0", "accessed")
        return found.table.iloc[0].fillna(0).to_numpy()

    both = counted(lambda x, y: first * x + second * y)
    apart = first * counted(lambda x, y: x) + second * counted(lambda x, y: y)
    np.testing.assert_allclose(both, apart, rtol=1e-12)


@pytest.mark.parametrize("definition", definition_files.definitions(), ids=lambda one: one.name)
def test_twice_the_work_is_twice_the_counts(definition):
    """Every formula is of degree one in the counts (percentages and rates are no counts)."""
    names = sorted(definition.profiler_names)
    random_values = np.random.default_rng(3).integers(1, 90, (len(names), 4)).astype(float)
    once = dict(zip(names, random_values, strict=True))
    twice = {name: value * (2 if UNITS[name] == "count" else 1) for name, value in once.items()}
    both = make({name: [*once[name], *twice[name]] for name in names}, names=list("abcdefgh"))
    for books in ("served", "accessed"):
        counted = counts.count(both, definition, books).table.to_numpy()
        np.testing.assert_allclose(counted[4:], 2 * counted[:4], rtol=1e-9)


def grouped_by(labels, apart):
    """The kernels as parts of kernels of these names, added up."""
    names = np.array(labels, dtype=object)
    parts = np.array([str(number) for number in range(len(labels))], dtype=object)
    return merged(replace(apart, rows=replace(apart.rows, kernel=names, part=parts)), None)[0]


def some_counts(values, times):
    length = len(times)
    columns = {name: [one[number] for one in values] for number, name in enumerate(LINEAR)}
    table = {name: np.array([np.nan if value < 0 else value for value in column]) for name, column in columns.items()}
    timed = [np.nan if time < 0 else time for time in times]
    return count(make(table, time_s=timed, names=[f"k{one}" for one in range(length)]), "3.5")


@given(
    st.integers(1, 8).flatmap(
        lambda size: st.tuples(
            st.lists(
                st.lists(st.integers(-1, 10**9), min_size=len(LINEAR), max_size=len(LINEAR)),
                min_size=size,
                max_size=size,
            ),
            st.lists(st.floats(-1, 10), min_size=size, max_size=size),
            st.lists(st.sampled_from("abc"), min_size=size, max_size=size),
        )
    )
)
@settings(max_examples=10)
def test_grouping_conserves_counts_and_energy(drawn):
    values, times, labels = drawn
    apart = some_counts(values, times)
    grouped = grouped_by(labels, apart)
    assert grouped.kernels["kernel"].tolist() == list(dict.fromkeys(labels))
    np.testing.assert_allclose(grouped.table.sum().to_numpy(), apart.table.sum().to_numpy(), rtol=1e-12)
    assert np.isclose(grouped.kernels["time_s"].sum(), apart.kernels["time_s"].sum())
    for word in COUNTS:
        joined = np.bitwise_or.reduce(apart.marks[word].to_numpy())
        assert np.bitwise_or.reduce(grouped.marks[word].to_numpy()) == joined
    priced = load_costs("jetson-tk1").at(None)
    before, after = attribute(apart, priced), attribute(grouped, priced)
    np.testing.assert_allclose(after.table.sum().sum(), before.table.sum().sum(), rtol=1e-12)


def test_a_group_with_an_unknown_says_so():
    launches = make({"inst_integer": [1.0, np.nan, 5.0]}, time_s=[1.0, np.nan, 2.0])
    grouped = grouped_by(["a", "a", "b"], count(launches, "3.5"))
    assert grouped.table["integer"].tolist() == [1, 5]
    assert grouped.marks["integer"].tolist() == [M, 0]
    assert grouped.kernels["time_s"].tolist() == [1, 2]
    assert grouped.kernels["time_marks"].tolist() == [M, 0]
    assert grouped.kernels["launches"].tolist() == [2, 1]


def test_devices_below_each_other():
    one = count(make({"inst_integer": [1.0, 2.0]}, device="A (0)"), "3.5")
    two = count(make({"inst_integer": [3.0]}, device="B (1)"), "6.1")
    both = counts.concat([one, two])
    assert both.table["integer"].tolist() == [1, 2, 3]
    assert both.kernels["device"].tolist() == ["A (0)", "A (0)", "B (1)"]
    assert [(way.formula, way.kernels) for way in both.how["integer"]] == [("inst_integer", 3)]
    assert counts.concat([one]) is one
    with pytest.raises(UsageError):
        counts.concat([one, replace(two, books="accessed")])
    with pytest.raises(UsageError):
        counts.concat([])


def test_types_are_what_is_promised():
    counted = count(make({"inst_integer": [1.0, 2.0]}), "3.5")
    assert (counted.table.dtypes == "float64").all() and (counted.marks.dtypes == "int64").all()
    assert list(counted.kernels.columns) == ["device", "kernel", "launches", "time_s", "time_marks"]
    assert isinstance(counted.table, pd.DataFrame) and set(PARTS) <= set(counted.table.columns)


def test_matrix_products_on_a_gt_630_of_the_fermi_kind():
    from eprof import logs

    columns = DATA / "columns-for-headerless-rows-events-2x.csv"
    if not columns.exists():
        pytest.skip("the real logs are not at hand")
    launches = real("gt630-dev1-events-rows-headerless.csv", columns=logs.read_columns(columns))
    found = row(count(launches, "2.1"))
    assert found["l1_read"] == 128 * (17464 + 105336 + 280604)
    assert found["dram_read"] == 32 * (2154517 + 2157870 + 2158695 + 2159451), "four DRAM parts"
    assert found["l2_read"] == 32 * (4586172 + 4603372)
    assert found["global_write"] == 4 * (65536 + 262144 + 589824)
    loads, stores, conflicts = 655360 + 5242880 + 17694720, 65536 + 524288 + 1769472, 0
    assert found["shared_read"] == 128 * (loads + conflicts) and found["shared_write"] == 128 * stores


def test_a_bitonic_sort_on_a_k40c_that_caches_in_l1():
    counted = count(real("k40c-wide-trace-events-only-no-units-row.csv"), "3.5")
    found = row(counted)
    assert found["l1_read"] == 128 * 14390886 and counted.marks["l1_read"].iloc[0] == 0
    assert found["l2_read"] == 32 * (1337336 + 1337664 + 1337956 + 1338056)
    assert found["global_read"] == 4 * 1061158912
    assert found["system_write"] == 32 * (230 + 238 + 239 + 485)


def test_a_level_that_is_only_known_as_accessed_is_shown_so():
    """L1 sectors without L2's counters: what L1 served is not known, what passed it is."""
    values = {f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_ld.sum": 10.0 for space in ("global", "local")}
    launches = make(values | {"l1tex__t_sectors_pipe_tex_mem_texture.sum": 0.0}, device="NVIDIA A100 (0)")
    definition = definition_files.find("ncu", "8.0")
    served, accessed = (counts.count(launches, definition, books) for books in ("served", "accessed"))
    shown = counts.with_accessed(served, accessed)
    assert np.isnan(row(served)["l1_read"]) and row(shown)["l1_read"] == 640
    assert "what of it the level served is not known" in shown.how["l1_read"][0].note
    hits = make(
        values | {"lts__t_sectors_srcunit_tex_op_read.sum": 5.0, "l1tex__t_sectors_pipe_tex_mem_texture.sum": 0.0}
    )
    known = counts.count(hits, definition)
    assert counts.with_accessed(known, counts.count(hits, definition, "accessed")).table["l1_read"].iloc[0] == 480

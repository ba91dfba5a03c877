"""Definitions for Nsight Compute: test vectors of its samples, one vocabulary with nvprof, fallbacks, the table of names."""

import re

import numpy as np
import pytest
from msgspec.structs import replace
from test_counts_launches import make, row

from eprof import logs
from eprof.base.arrays import Columns
from eprof.base.errors import DefinitionError
from eprof.base.vocabulary import COUNTS, Mark
from eprof.counts import counts, definition_files
from eprof.counts.definition import common
from eprof.logs import read
from eprof.profile import device, planned_counters

E, M, A = int(Mark.ESTIMATED), int(Mark.MISSING), int(Mark.ASSUMED)
PER_OPCODE = "sass__thread_inst_executed_true_per_opcode"
CHIPS = sorted(
    (
        chip
        for definition in definition_files.definitions()
        if definition.profiler == "ncu"
        for chip in definition.capabilities
    ),
    key=float,
)
KNOWN = ["7.0", "7.2", "7.5", "8.0", "8.6", "8.7", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1"]
UNKNOWN = "99.0"  # a capability that no GPU has yet
OWN_DRAM = ["7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "12.0"]
SHARED_LD, SHARED_ST = (f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{way}.sum" for way in ("ld", "st"))
L1_LD, L1_ST = (f"l1tex__t_sectors_pipe_lsu_mem_global_op_{way}.sum" for way in ("ld", "st"))
L2_LD, L2_ST = (f"lts__t_sectors_srcunit_tex_op_{way}.sum" for way in ("read", "write"))
DRAM_LD, DRAM_ST = (f"dram__bytes_{way}.sum" for way in ("read", "write"))


def op(kind):
    return f"smsp__sass_thread_inst_executed_op_{kind}_pred_on.sum"


def count(values, capability, books="served", **how):
    return counts.count(make(values, device=None, **how), definition_files.find("ncu", capability), books)


def sample(inst, shared, l1, l2, dram):
    """A row of the reports packaged with Nsight Compute 2024.1.1 (RTX A4500): reads and writes of each level."""
    values = {"smsp__inst_executed.sum": inst}
    for names, pair in zip(((SHARED_LD, SHARED_ST), (L1_LD, L1_ST), (L2_LD, L2_ST), (DRAM_LD, DRAM_ST)),
                           (shared, l1, l2, dram), strict=True):  # fmt: skip
        values |= dict(zip(names, pair, strict=True))
    no_locals = {name.replace("global", "local"): 0 for name in (L1_LD, L1_ST)}
    no_atomics = {f"lts__t_sectors_op_{kind}.sum": 0 for kind in ("atom", "red")}
    no_texture = {"l1tex__t_sectors_pipe_tex_mem_texture.sum": 0}
    no_host = {f"lts__t_sectors_aperture_sysmem_op_{way}.sum": 0 for way in ("read", "write")}
    return values | no_locals | no_atomics | no_texture | no_host


TRANSPOSE = sample(23592960, (67446928, 2097152), (8388608, 8388608), (8388608, 8388608), (268457472, 265940992))
NO_CONFLICTS = sample(23592960, (2098898, 2097152), (8388608, 8388608), (8388608, 8388608), (268468352, 265895552))
ADD = sample(1376256, (0, 0), (786432, 786432), (786432, 786432), (25170176, 22777984))
ADD_UNCOALESCED = sample(655360, (0, 0), (2359296, 2359296), (786680, 1510280), (25172480, 22920320))
SOBEL = sample(5916528, (0, 0), (1565698, 7268), (286232, 7268), (4196352, 35456))
SOBEL_FLOAT = sample(5195632, (0, 0), (1565558, 7268), (284861, 7268), (4195712, 69376))
VECTORS = [TRANSPOSE, NO_CONFLICTS, ADD, ADD_UNCOALESCED, SOBEL, SOBEL_FLOAT]


# ------------------------------------------------------------------------------------------------------ definitions


def test_every_chip_from_volta_on_has_one():
    assert set(KNOWN) <= set(CHIPS) and len(CHIPS) == len(set(CHIPS))
    assert (
        definition_files.named("9.0").name == "ncu/hopper-9.0"
        and definition_files.named("7.0").name == "nvprof/volta-7.0"
    )
    with pytest.raises(DefinitionError, match=r"ncu on compute capability 6\.0; definitions exist for .*12\.1"):
        definition_files.find("ncu", "6.0")


@pytest.mark.parametrize("capability", KNOWN)
def test_names_that_a_chip_does_not_have_are_not_asked_for(capability):
    wanted = definition_files.find("ncu", capability).profiler_names
    assert (DRAM_LD in wanted) == (capability in OWN_DRAM and capability != "12.0")
    assert ("dram__bytes_op_read.sum" in wanted) == (capability == "12.0")
    assert (op("uniform") in wanted) == (float(capability) >= 7.5)
    assert (op("fp8") in wanted) == (float(capability) >= 8.9)
    assert (op("fp4") in wanted) == (float(capability) >= 10)
    assert (op("ffma2") in wanted) == (capability in ("10.0", "10.3"))
    blackwell = float(capability) >= 10
    assert any("tensor_subpipe" in name for name in wanted) == blackwell
    assert any("tensor_op_hmma" in name for name in wanted) == (not blackwell)
    assert ("sm__inst_executed_pipe_tc.sum" in wanted) == (capability in ("10.0", "10.3", "11.0"))
    assert any("aperture_sysmem" in name for name in wanted) == (capability not in ("10.0", "10.3", "11.0", "12.0"))
    assert ("lts__d_sectors_fill_device.sum" in wanted) == (capability in ("7.2", "8.7", "12.1"))


@pytest.mark.parametrize("capability", KNOWN)
def test_a_definition_tells_what_to_collect(capability):
    """With everything offered, all that the chip has is planned for; only host memory has no counter on some.

    ncu lists a metric with a value for each opcode by its plain name. Where it does not, a pipe tells of the opcode.
    """
    definition = definition_files.find("ncu", capability)
    offered = {name for name in definition.profiler_names if "[" not in name}
    found = planned_counters.plan(definition, None, offered)
    assert set(found.missing) <= {"system_read", "system_write"}
    mufu, pipe = f"{PER_OPCODE}[MUFU]", "smsp__thread_inst_executed_pipe_xu_pred_on.sum"
    assert {op("dfma"), mufu} <= set(found.counters) and pipe not in found.counters
    lacking = planned_counters.plan(definition, None, offered - {PER_OPCODE})
    assert lacking.missing == found.missing
    assert {op("dfma"), pipe} <= set(lacking.counters)
    assert all("[" not in name and name.endswith(".sum") for name in lacking.counters)


def test_a_definition_is_used_instead_of_the_smallest_set():
    from eprof.collect.collector import Tool
    from eprof.commands.run.settings import counters_for
    from eprof.profilers.ncu.collector import Ncu

    class Here(Ncu):
        def offered(self, tool, wanted=()):
            return None

    tool = Tool("ncu", True, "", device="NVIDIA H100 80GB HBM3", capability="9.0")
    bought = counters_for(Here(), tool, None, None)
    assert bought.definition == "ncu/hopper-9.0" and op("bit") in bought.counters
    unknown = counters_for(Here(), Tool("ncu", True, "", capability=UNKNOWN), None, None)
    assert unknown.definition is None and set(unknown.counters) == set(Ncu().basic(UNKNOWN))


def test_the_profiler_follows_the_counters():
    assert set(definition_files.guess_capability([DRAM_LD, "inst"], "ncu")) <= set(CHIPS)
    assert definition_files.guess_capability(["dram__bytes_op_read.sum", "dram__bytes_op_write.sum", L1_LD], "ncu") == (
        "12.0",
    )
    assert device.identify("NVIDIA H100 80GB HBM3 (0)", None, [L1_LD], "ncu").capability == "9.0"
    unnamed = device.identify(None, None, [L1_LD], "ncu")
    assert unnamed.capability is None and {"7.0", "8.6"} <= set(unnamed.may_be)


def test_of_a_gpu_that_is_not_known_is_counted_what_all_that_it_may_be_count_alike():
    may_be = device.identify(None, None, [L1_LD], "ncu").may_be
    each = [definition_files.find("ncu", capability) for capability in may_be]
    alike = common(each)
    counted = {word for ways in alike.words.values() for word in ways}
    assert "warp_issue" in counted and counted < {word for ways in each[0].words.values() for word in ways}
    steps = {name: name for name in alike.quantities}
    for section, ways in alike.words.items():
        for word in ways:
            for other in each:
                own = {other.alike_by(way, steps): way.mark for way in other.words[section][word]}
                assert all(own[alike.alike_by(way, steps)] & ~way.mark == 0 for way in ways[word])
    assert {"fp32_fma", "l2"} <= counted, "pairs of multiply-adds, of GB100 alone, make a lower bound"
    assert common(each[:1]).words == each[0].words
    assert not counted & alike.uncountable.keys()


@pytest.mark.parametrize(
    ("kernel", "least", "most"),
    [
        ("ampere_sgemm_32x32_sliced1x4_tn", "8.0", "12.1"),
        ("void cutlass::Kernel<cutlass_75_wmma_tensorop_s161616gemm_f16_32x32_128x2_tn_align8>", "7.5", "12.1"),
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32", "9.0", "9.0"),
        ("void cutlass::device_kernel<SM90_TMA_LOAD>(Params)", "9.0", "12.1"),
        ("nvjet_sm100_tst_128x256_64x4_2x1_v_bz_TNT", "10.0", "10.3"),
        ("my_ampere_sm8000(float *)", "7.0", "12.1"),
    ],
)
def test_kernels_of_libraries_narrow_down_a_gpu_that_no_log_names(kernel, least, most):
    found = device.identify(None, None, [L1_LD], "ncu", [kernel, "axpy(int)"])
    may_be = found.may_be or (found.capability,)
    assert (may_be[0], may_be[-1]) == (least, most)


# -------------------------------------------------------------------------------------------- test vectors, checked by hand


def test_bytes_of_the_samples_by_the_level_that_served_them():
    found = row(count(TRANSPOSE, "8.6"))
    assert found["warp_issue"] == 23592960
    assert found["l1_read"] == found["l1_write"] == 0
    assert (found["dram_read"], found["dram_write"]) == (268457472, 265940992)
    assert found["l2_write"] == 32 * 8388608 - 265940992
    assert found["shared_read"] == 128 * 67446928, "occupied: 32 times the requested bytes, for 32-way conflicts"
    assert row(count(NO_CONFLICTS, "8.6"))["shared_read"] == 128 * 2098898
    add = row(count(ADD_UNCOALESCED, "8.6"))
    assert add["l1_read"] == 32 * (2359296 - 786680)
    assert add["l1_write"] == 32 * (2359296 - 1510280), "stores that L1 merged"
    sobel = count(SOBEL, "8.6")
    assert row(sobel)["l1_read"] == 32 * (1565698 - 286232) and row(sobel)["l1_write"] == 0
    assert row(sobel)["l2_read"] == 32 * 286232 - 4196352 and sobel.marks["l2_read"].iloc[0] == E
    assert row(sobel)["l2_write"] == 32 * 7268 - 35456
    assert (sobel.marks[["l1_read", "l1_write", "dram_read", "dram_write", "warp_issue"]].iloc[0] == 0).all()
    hits = count(SOBEL | {"lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum": 155000}, "8.6")
    assert row(hits)["l2_read"] == 32 * 155000 and hits.marks["l2_read"].iloc[0] == 0


@pytest.mark.parametrize("values", VECTORS)
def test_bytes_of_the_samples_at_every_level_passed(values):
    counted = count(values, "8.6", "accessed")
    found = row(counted)
    assert (found["l1_read"], found["l1_write"]) == (32 * values[L1_LD], 32 * values[L1_ST])
    assert (found["l2_read"], found["l2_write"]) == (32 * values[L2_LD], 32 * values[L2_ST])
    assert (found["dram_read"], found["dram_write"]) == (values[DRAM_LD], values[DRAM_ST])
    assert (counted.marks[["l1_read", "l1_write", "l2_read", "l2_write", "dram_read"]].iloc[0] == 0).all()
    assert counts.check(make(values), definition_files.find("ncu", "8.6")) == []


def test_what_is_served_adds_up_to_what_was_asked_of_l1():
    """Sobel<double>, cold caches: L1 hits, L2 hits and DRAM reads are together what the threads read."""
    found = row(count(SOBEL, "8.6"))
    assert found["l1_read"] + found["l2_read"] + found["dram_read"] == 32 * 1565698


def test_instructions_of_sobel_in_double_precision():
    values = {
        op("dfma"): 28297216,
        op("dadd"): 13629441,
        op("dmul"): 7331840,
        op("fp64"): 28297216 + 13629441 + 7331840,
    }
    values |= {op("ffma"): 2097152, op("fadd"): 0, op("fmul"): 0, op("fp32"): 2097152 + 3143680}
    values |= {op("conversion"): 9424900, op("integer"): 35650912 + 24113152 + 4194304, op("bit"): 11530240}
    values |= {op("memory"): 9424900 + 7968, "smsp__sass_thread_inst_executed_pred_on.sum": 187623337}
    mufu = {"sass__thread_inst_executed_true_per_opcode[MUFU]": 3143680}
    counted = count(values | mufu, "8.6")
    found, marks = row(counted), counted.marks.iloc[0]
    assert (found["fp64_fma"], found["fp64_add"], found["fp64_mul"], found["fp64_other"]) == (
        28297216, 13629441, 7331840, 0)  # fmt: skip
    assert (found["fp32_fma"], found["fp32_other"], found["special"]) == (2097152, 0, 3143680)
    assert found["integer"] == 75488608 and found["conversion"] == 9424900 and found["load_store"] == 9432868
    assert marks["special"] == marks["fp64_fma"] == marks["conversion"] == 0
    assert marks["integer"] == marks["fp32_other"] == A
    by_pipe = count(values | {"smsp__thread_inst_executed_pipe_xu_pred_on.sum": 3143680 + 9424900}, "8.6")
    assert row(by_pipe)["special"] == 3143680 and by_pipe.marks["special"].iloc[0] == E
    assert counts.check(make(values | mufu), definition_files.find("ncu", "8.6")) == []


def test_reports_of_the_full_set_have_rates_a_cycle():
    values = {f"{op(kind)}.per_cycle_elapsed[total]": 28297216 for kind in ("dfma", "dadd")}
    counted = count(values, "8.6")
    assert row(counted)["fp64_fma"] == 28297216
    assert counted.marks["fp64_fma"].iloc[0] == E and counted.marks["fp64_mul"].iloc[0] == M
    assert row(count(values | {op("dfma"): 5}, "8.6"))["fp64_fma"] == 5


# --------------------------------------------------------------------------------------------------- one vocabulary

SAME = {
    "flop_count_dp_fma": op("dfma"), "flop_count_dp_add": op("dadd"), "flop_count_dp_mul": op("dmul"),
    "flop_count_sp_fma": op("ffma"), "flop_count_sp_add": op("fadd"), "flop_count_sp_mul": op("fmul"),
    "inst_fp_64": op("fp64"), "inst_fp_32": op("fp32"), "inst_fp_16": op("fp16"), "inst_integer": op("integer"),
    "inst_bit_convert": op("conversion"), "inst_control": op("control"), "inst_compute_ld_st": op("memory"),
    "inst_inter_thread_communication": op("inter_thread_communication"), "inst_misc": op("misc"),
    "inst_executed": "smsp__inst_executed.sum", "gld_transactions": L1_LD, "gst_transactions": L1_ST,
    "local_load_transactions": L1_LD.replace("global", "local"),
    "local_store_transactions": L1_ST.replace("global", "local"),
    "l2_tex_read_transactions": L2_LD, "l2_tex_write_transactions": L2_ST, "dram_read_bytes": DRAM_LD,
    "dram_write_bytes": DRAM_ST, "sysmem_read_transactions": "lts__t_sectors_aperture_sysmem_op_read.sum",
    "sysmem_write_transactions": "lts__t_sectors_aperture_sysmem_op_write.sum",
    "l2_subp0_read_tex_hit_sectors": "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "shared_load_transactions": SHARED_LD, "shared_store_transactions": SHARED_ST,
}  # fmt: skip


@pytest.mark.parametrize("books", ["served", "accessed"])
def test_the_same_kernel_by_nvprof_and_by_ncu(books):
    """Equal counters give equal words; only half precision is told apart by ncu alone, and special functions."""
    amounts = {name: 1000.0 + 10 * number for number, name in enumerate(SAME)}
    amounts |= {"inst_fp_64": 9000, "inst_fp_32": 9000, "gld_transactions": 5000, "gst_transactions": 6000}
    amounts |= {
        "dram_read_bytes": 64,
        "dram_write_bytes": 96,
        "sysmem_read_transactions": 1,
        "sysmem_write_transactions": 2,
    }
    theirs = {"l2_subp1_read_tex_hit_sectors": 0, "l2_read_transactions": amounts["l2_tex_read_transactions"],
              "l2_write_transactions": amounts["l2_tex_write_transactions"], "flop_count_sp_special": 0}  # fmt: skip
    ours = {op("bit"): 0, "lts__t_sectors_op_atom.sum": 0, "lts__t_sectors_op_red.sum": 0,
            "l1tex__t_sectors_pipe_tex_mem_texture.sum": 0,
            "smsp__thread_inst_executed_pipe_xu_pred_on.sum": amounts["inst_bit_convert"]}  # fmt: skip
    old = counts.count(make(amounts | theirs), definition_files.find("nvprof", "7.0"), books)
    new = count({SAME[name]: value for name, value in amounts.items()} | ours, "7.0", books)
    differ = {"tensor", "global_read", "global_write", "l1_write" if books == "served" else ""}
    for word in COUNTS:
        if word not in differ and not np.isnan(row(old)[word]):
            assert row(new)[word] == pytest.approx(row(old)[word]), word
    assert {word for word in COUNTS if np.isnan(row(new)[word])} <= {
        word for word in COUNTS if np.isnan(row(old)[word])
    }


def test_a_real_log_of_nvprof_renamed_by_the_table_says_the_same(real_log):
    """A V100 log of nvprof under the names that `counters/nvprof-ncu.toml` gives: same words, read by ncu's definition."""
    from eprof.commands.counters.command import other_names

    path = real_log("v100-events-and-metrics-summary-with-total.csv")
    launches = logs.combine([read(path, keep=definition_files.names_in_use("nvprof"))])
    named = {old: pair.ncu for pair in other_names() for old in pair.nvprof if re.fullmatch(r"[\w.]+", pair.ncu)}
    names = tuple(named.get(name, name) for name in launches.counters.names)
    renamed = replace(
        launches,
        counters=Columns(names, launches.counters.values),
        marks=Columns(names, launches.marks.values),
        units=dict(zip(names, launches.units.values(), strict=True)),
    )
    old, new = (
        counts.count(one, definition_files.find(by, "7.0")) for one, by in ((launches, "nvprof"), (renamed, "ncu"))
    )
    for word, number in {
        "fp32": 1_048_576,
        "warp_issue": 458_752,
        "dram_read": 32 * 246_126,
        "dram_write": 32 * 142_439,
    }.items():
        assert row(old)[word] == row(new)[word] == number, word


def test_half_precision_is_counted_in_instructions_and_marked():
    values = {op("fp16"): 100, op("hfma"): 60, op("hadd"): 0, op("hmul"): 10}
    counted = count(values, "8.0")
    found, marks = row(counted), counted.marks.iloc[0]
    assert (found["fp16_fma"], found["fp16_add"], found["fp16_mul"], found["fp16_other"]) == (60, 0, 10, 30)
    assert (marks["fp16_fma"], marks["fp16_add"], marks["fp16_mul"], marks["fp16_other"]) == (0, 0, A, A)
    assert "packed" in counted.how["fp16_fma"][0].note
    assert row(count({op("fp16"): 100}, "8.0"))["fp16"] == 100
    flops = make(values | {op("hfma"): 240})
    assert any("instructions and not flops" in one for one in counts.check(flops, definition_files.find("ncu", "8.0")))


# ---------------------------------------------------------------------------------------------------------- fallbacks


def test_tensor_work_is_thirty_two_times_its_warp_instructions():
    pipe, half = "sm__inst_executed_pipe_tensor.sum", "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
    counted = count({pipe: [10, 0]}, "8.6")
    assert counted.table["tensor"].tolist() == [320, 0] and counted.marks["tensor"].tolist() == [A, 0]
    assert row(count({pipe: 10, half: 4}, "8.0"))["tensor"] == 32 * 6, "HFMA2.MMA is no matrix work"
    assert count({pipe: 10}, "8.0").marks["tensor"].iloc[0] == A | E
    seen = count({pipe: [104857600, 14336], op("hfma"): [3355443200, 0]}, "8.0")
    assert seen.table["tensor"].tolist() == [0, 32 * 14336], "two kernels of A100 logs: packed moves, and matrices"
    assert row(count({pipe: 10, "sm__inst_executed_pipe_fp64_op_dmma.sum": 5}, "8.6"))["tensor"] == 32 * 15
    fifth = count({pipe: 10, "sm__inst_executed_pipe_tc.sum": 3}, "10.0")
    assert row(fifth)["tensor"] == 32 * 13 and fifth.marks["tensor"].iloc[0] == A
    kinds = {f"sm__inst_executed_pipe_tensor_subpipe_{kind}.sum": 7 for kind in ("hmma", "imma")}
    assert row(count(kinds, "12.0"))["tensor"] == 32 * 14


def test_pairs_of_single_precision_on_a_b200():
    values = {op("ffma"): 100, op("ffma2"): 50}
    assert row(count(values, "10.0"))["fp32_fma"] == 200
    assert count(values, "10.0").marks["fp32_fma"].iloc[0] == A
    assert count({op("ffma"): 100}, "10.0").marks["fp32_fma"].iloc[0] == M, "without the pairs a lower bound"
    assert count({op("ffma"): 100}, "9.0").marks["fp32_fma"].iloc[0] == 0


def test_dram_under_its_new_name_and_substitutes():
    assert row(count({"dram__bytes_op_read.sum": 64}, "12.0"))["dram_read"] == 64
    fill = {"lts__d_sectors_fill_device.sum": 3, "lts__t_sectors_op_write_lookup_miss.sum": 2}
    for capability in ("7.2", "8.7", "12.1"):
        counted = count(fill, capability)
        assert (row(counted)["dram_read"], row(counted)["dram_write"]) == (96, 64)
        assert counted.marks["dram_read"].iloc[0] == counted.marks["dram_write"].iloc[0] == E
        assert "no DRAM counters" in counted.how["dram_read"][0].note
    thor = count({"lts__d_sectors_fill_sysmem.sum": 5}, "11.0")
    assert row(thor)["dram_read"] == 160 and row(thor)["system_read"] == 0
    assert count({}, "10.0", names=["k"]).marks["system_read"].iloc[0] == M


def test_bytes_of_global_accesses_at_l1_stand_for_their_sectors():
    moved = {f"l1tex__t_bytes_pipe_lsu_mem_global_op_{way}.sum": 320 for way in ("ld", "st")}
    counted = count(moved, "8.9", "accessed")
    assert (row(counted)["l1_read"], row(counted)["l1_write"]) == (320, 320)
    assert counted.marks["l1_read"].iloc[0] == counted.marks["l1_write"].iloc[0] == M


def test_totals_alone_are_told_apart_where_they_can_be_and_never_counted_twice():
    """As logs for a roofline have them: bytes at each level, reads and writes together, which are no reads."""
    totals = {"l1tex__t_bytes.sum": 1000, "lts__t_bytes.sum": 600, "dram__bytes.sum": 150}
    served = count(totals, "8.6")
    parts = [f"{level}_{way}" for level in ("l1", "l2", "dram") for way in ("read", "write")]
    assert served.table[parts].isna().all(axis=None) and (served.marks[parts] == 0).all(axis=None)
    assert served.table[["l1", "l2", "dram"]].iloc[0].tolist() == [400, 450, 150]
    assert served.marks[["l1", "l2", "dram"]].iloc[0].tolist() == [E, E, 0]
    accessed = count(totals, "8.6", "accessed")
    assert accessed.table[["l1", "l2", "dram"]].iloc[0].tolist() == [1000, 600, 150]
    some = count(totals | {DRAM_LD: 100, L1_LD: 20, L1_LD.replace("global", "local"): 0}, "8.6", "accessed")
    assert some.table[["l1", "l2", "dram_read", "dram_write"]].iloc[0].tolist() == [1000, 600, 100, 50]
    assert some.table[["l1_read", "l1_write", "dram", "l2_read", "l2_write"]].isna().all(axis=None)


def test_what_passes_between_the_halves_of_an_l2_is_counted_once():
    """On an A100 all clients' bytes are L1's and once more those of DRAM, on other chips of two halves half of them."""
    totals = {"l1tex__t_bytes.sum": 1000, "lts__t_bytes.sum": 600, "dram__bytes.sum": 150}
    for capability, l2 in (("8.0", 450), ("9.0", 525), ("10.0", 525)):
        served, accessed = (row(count(totals, capability, books)) for books in ("served", "accessed"))
        assert (served["l1"], served["l2"], accessed["l2"]) == (1000 - l2, l2 - 150, l2)
    assert row(count({"lts__t_bytes.sum": 600}, "8.0", "accessed"))["l2"] == 600, "without DRAM's, as many at most"


def test_all_bytes_of_dram_are_better_than_two_guessed_halves():
    misses = {f"lts__t_sectors_op_{way}_lookup_miss.sum": 3 for way in ("read", "write")}
    counted = count({"dram__bytes.sum": 150} | misses, "8.0")
    assert row(counted)["dram"] == 150 and np.isnan(row(counted)["dram_read"])
    guessed = count(misses, "8.0")
    assert row(guessed)["dram_read"] == 96 and np.isnan(row(guessed)["dram"])


def test_shared_memory_requested_before_occupied():
    values = {f"smsp__sass_data_bytes_mem_shared_op_{kind}.sum": 100 for kind in ("ld", "ldsm", "st", "atom", "ldgsts")}
    counted = count(values | {SHARED_LD: 9}, "8.0")
    assert (row(counted)["shared_read"], row(counted)["shared_write"]) == (300, 300)
    assert counted.marks["shared_read"].iloc[0] == 0
    only = count({SHARED_LD: [9, 0]}, "8.0")
    assert only.table["shared_read"].tolist() == [9 * 128, 0] and only.marks["shared_read"].tolist() == [A, 0]


def test_asynchronous_copies_write_shared_memory_too():
    """Wavefronts of copies beside those of stores; where these are not known, but copies were executed, a bound."""
    copied = "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts.sum"
    executed = {"smsp__inst_executed_op_ldgsts.sum": [5, 0], SHARED_ST: [3, 3]}
    known, unknown = count(executed | {copied: [7, 0]}, "8.6"), count(executed, "8.6")
    assert known.table["shared_write"].tolist() == [128 * 10, 128 * 3]
    assert known.marks["shared_write"].tolist() == [A, A]
    assert unknown.table["shared_write"].tolist() == [128 * 3, 128 * 3]
    assert unknown.marks["shared_write"].tolist() == [M | A, A]
    assert count({SHARED_ST: 3}, "8.6").marks["shared_write"].iloc[0] == A


@pytest.mark.parametrize("form", ["smsp__sass_inst_executed_op_shared_{}.sum", "smsp__inst_executed_op_shared_{}.sum"])
def test_shared_accesses_of_warps_are_a_lower_bound_of_wavefronts(form):
    accesses = {form.format("ld"): 10.0, form.format("st"): 4.0}
    conflicts = {f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{way}.sum": 3.0 for way in ("ld", "st")}
    counted = count(accesses | conflicts, "8.9")
    assert (row(counted)["shared_read"], row(counted)["shared_write"]) == (128 * 13, 128 * 7)
    assert counted.marks["shared_read"].iloc[0] == M | A
    assert row(count(accesses, "8.9"))["shared_read"] == 1280
    assert row(count(accesses | conflicts | {SHARED_LD: 20.0}, "8.9"))["shared_read"] == 128 * 20
    none = count({form.format(way): 0.0 for way in ("ld", "st")}, "8.9")
    assert row(none)["shared_read"] == 0 and none.marks["shared_read"].iloc[0] == 0


def test_what_l1_missed_of_global_loads_is_a_lower_bound_of_reads_of_l2():
    missed = {"lts__t_bytes_equiv_l1sectormiss_pipe_lsu_mem_global_op_ld.sum": 4096.0}
    counted = count(missed, "8.0", "accessed")
    assert row(counted)["l2_read"] == 4096 and counted.marks["l2_read"].iloc[0] == M
    assert row(count(missed | {L2_LD: 200.0}, "8.0", "accessed"))["l2_read"] == 6400


def test_bulk_copies_pass_l1_by():
    values = {
        L1_LD: 100,
        L1_LD.replace("global", "local"): 0,
        "l1tex__t_sectors_pipe_tex_mem_texture.sum": 0,
        L2_LD: 1080,
    }
    unknown = count(values, "9.0")
    assert np.isnan(row(unknown)["l1_read"]) and unknown.marks["l1_read"].iloc[0] == M, "far below 0 is not 0"
    bulk = {"l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum": 32 * 1000}
    counted = count(values | bulk, "9.0")
    assert row(counted)["l1_read"] == 32 * 20 and counted.marks["l1_read"].iloc[0] == 0


def test_atomics_read_and_write_in_l2():
    values = {L2_LD: 100, L2_ST: 50, "lts__t_sectors_op_atom.sum": 7, "lts__t_sectors_op_red.sum": 3}
    found = row(count(values, "8.6", "accessed"))
    assert (found["l2_read"], found["l2_write"]) == (32 * 110, 32 * 60)
    all_clients = {name.replace("srcunit_tex_", ""): value for name, value in values.items()}
    counted = count(all_clients, "8.6", "accessed")
    assert row(counted)["l2_read"] == 32 * 110 and counted.marks["l2_read"].iloc[0] == E


@pytest.mark.parametrize("factor", [{DRAM_LD: 2}, {op("ffma"): 9}, {op("integer"): 99}, {L2_LD: 9}])
def test_tampered_counters_are_noticed(factor):
    values = {DRAM_LD: 64000, "dram__sectors_read.sum": 2000, op("ffma"): 100, op("fadd"): 0, op("fmul"): 0, L2_LD: 100}
    values |= {op(kind): 100 for kind in ("fp64", "fp32", "fp16", "integer", "bit", "conversion", "control", "memory")}
    values |= {op("inter_thread_communication"): 0, op("misc"): 0, "lts__t_sectors_op_read.sum": 101}
    values |= {"smsp__sass_thread_inst_executed_pred_on.sum": 800}
    definition = definition_files.find("ncu", "8.0")
    assert counts.check(make(values), definition) == []
    broken = {name: value * factor.get(name, 1) for name, value in values.items()}
    assert len(counts.check(make(broken), definition)) >= 1


# ----------------------------------------------------------------------------------------------------- table of names


@pytest.mark.parametrize(("old", "new"), [(old, new) for old, new in SAME.items() if not old.startswith("l2_subp")])
def test_the_table_says_what_the_vocabulary_test_takes_for_the_same(old, new):
    from eprof.commands.counters.command import other_names

    assert any(old in pair.nvprof and pair.ncu.removeprefix("32 * ") == new for pair in other_names())


def test_a_way_through_other_steps_counts_alike():
    each = [definition_files.find("nvprof", capability) for capability in ("2.0", "3.5", "5.2", "6.0", "7.0")]
    alike = common(each)
    ways = {way.formula.text: alike.counters_of(way.formula) for way in alike.words["bytes"]["dram_read"]}
    assert ["dram_read_transactions"] in ways.values()
    assert all("_misses" not in counter for behind in ways.values() for counter in behind)  # other slices each
    for definition in each:
        texts = [
            definition.alike_by(way, {})
            for whole in definition.words["bytes"]["dram_read"]
            for way in definition.unfolded(whole, ())
        ]
        assert any(text.strip("()") == "32 * dram_read_transactions" for text in texts)

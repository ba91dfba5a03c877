"""Tensor work in flops by type, from metrics of ncu: how they add up, on real reports and made logs; active cycles."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from test_counts_launches import make, row

import eprof
from eprof.base.arrays import Columns
from eprof.base.vocabulary import COUNTS, TENSOR_PARTS, Mark
from eprof.counts import counts, definition_files
from eprof.logs import combine, read
from eprof.profile import planned_counters
from eprof.profile.rooflines import all_flops_of, flops_of
from eprof.profilers.ncu import tensor_ops
from eprof.profilers.ncu.derived import flops_by_type

E, M, A = int(Mark.ESTIMATED), int(Mark.MISSING), int(Mark.ASSUMED)
DATA = Path(__file__).parents[3] / "shared" / "data"
MODERN, NVPROF = DATA / "ncu-modern", DATA / "nvprof"
OPS = "sm__ops_path_tensor_src_{}.sum"
TYPES = TENSOR_PARTS["tensor"]


def count(values, capability, profiler="ncu"):
    return counts.count(make(values, device=None), definition_files.find(profiler, capability), "served")


def real(name):
    if not (MODERN / name).exists():
        pytest.skip("the real logs are not at hand")
    return combine([read(MODERN / name)])


# ------------------------------------------------------------------------------------------------- names of metrics


def name_of(op=None, dst=None, sparsity=None):
    """The metric of some FP16 operations, as NVIDIA names it."""
    middle = f"op_{op}_" if op else ""
    end = (f"_dst_{dst}" if dst else "") + (f"_sparsity_{sparsity}" if sparsity else "")
    return f"sm__ops_path_tensor_{middle}src_fp16{end}.sum"


@st.composite
def collected(draw):
    """Metrics that a log may have of a type, whole or split in each way, with those that they contain; and the sum."""
    values, total = {}, 0
    for dst in ("fp16", "fp32"):
        halves = {sparsity: draw(st.integers(0, 2**40)) for sparsity in ("on", "off")}
        total += sum(halves.values())
        if draw(st.booleans()):
            values[name_of(dst=dst)] = sum(halves.values())
        if name_of(dst=dst) not in values or draw(st.booleans()):
            values |= {name_of(dst=dst, sparsity=sparsity): value for sparsity, value in halves.items()}
        if draw(st.booleans()):
            values[name_of(op="hmma", dst=dst)] = sum(halves.values())
    if draw(st.booleans()):
        values[name_of()] = total
    return values, total


@given(collected())
def test_operations_of_a_type_are_added_up_once_however_they_are_split(log):
    values, total = log
    metrics = {name: np.array([float(value)]) for name, value in values.items()}
    (made,) = [value for name, value in tensor_ops.totals(metrics, None).items() if "_op_" not in name]
    assert made.tolist() == [total]


def test_half_of_a_split_by_sparsity_is_no_sum():
    assert tensor_ops.parts([name_of(dst="fp32", sparsity="off")]) == {}


def test_operations_of_some_instructions_have_a_name_of_their_own():
    names = [name_of(op, None, sparsity) for op, sparsity in product(("hmma", "hgmma"), ("on", "off"))]
    assert tensor_ops.parts(names) == {tensor_ops.by_op_name("fp16"): tuple(names)}
    assert tensor_ops.whole_name("fp16") in tensor_ops.parts([*names, OPS.format("fp16")])


@pytest.mark.parametrize("dst", ["fp16", "fp32"])
@pytest.mark.parametrize("op", [None, "hmma"])
def test_what_adds_up_in_one_of_two_types_is_a_lower_bound(tmp_path, op, dst):
    log = wide(tmp_path, {name_of(op, dst): ("", 4096)})
    counted = counts.count(combine([read(log)]), definition_files.find("ncu", "8.0"), "served")
    assert row(counted)["tensor_fp16"] == 4096 and counted.marks["tensor_fp16"].iloc[0] == M


@pytest.mark.parametrize(
    ("capability", "kind", "word"), [("7.5", "fp16_dst_fp16", "fp16"), ("8.0", "bf16_dst_fp32", "bf16")]
)
def test_where_a_type_adds_up_in_one_way_only_that_is_all(tmp_path, capability, kind, word):
    """TU102 counts what adds up in FP32 for all of its 16-bit types together; BF16 adds up in FP32."""
    mixed = {OPS.format("fp16_bf16_tf32_dst_fp32"): ("", 0)} if capability == "7.5" else {}
    log = wide(tmp_path, mixed | {OPS.format(kind): ("", 4096)}, capability)
    counted = counts.count(combine([read(log)]), definition_files.find("ncu", capability), "served")
    assert row(counted)[f"tensor_{word}"] == 4096 and counted.marks[f"tensor_{word}"].iloc[0] == 0


@pytest.mark.parametrize(
    "suffix", [".avg", ".sum.peak_sustained", ".sum.pct_of_peak_sustained_elapsed", "_realtime.sum"]
)
def test_rates_and_samples_are_no_operations(suffix):
    assert tensor_ops.parts([f"sm__ops_path_tensor_src_tf32_dst_fp32{suffix}"]) == {}


# ------------------------------------------------------------------------------------------------------ real reports


@pytest.mark.parametrize(
    ("report", "capability", "peaks"),
    [
        # Flops a cycle and multiprocessor of NVIDIA's white papers: 312 Tflop/s of FP16 at 1410 MHz on 108 of them.
        (
            "a100-sxm4-silu.ncu-rep",
            "8.0",
            {"fp16_dst_fp32_sparsity_off": 2048, "tf32_dst_fp32_sparsity_off": 1024, "fp64": 128},
        ),
        ("h100-pcie-rmsnorm.ncu-rep", "9.0", {"fp8_sparsity_off": 8192, "fp64": 256}),
    ],
)
def test_an_operation_is_a_flop_after_the_peaks_that_ncu_writes(report, capability, peaks):
    launches = real(report)
    multiprocessors = launches.counters["device__attribute_multiprocessor_count"][0]
    for kind, peak in peaks.items():
        assert launches.counters[f"{OPS.format(kind)}.peak_sustained"][0] == peak * multiprocessors
    counted = counts.count(launches, definition_files.find("ncu", capability), "served")
    assert (counted.table[list(TYPES)].fillna(0) == 0).all(axis=None), "neither program uses tensor cores"
    assert not (counted.marks[["tensor_fp16", "tensor_tf32", "tensor_bf16", "tensor_fp64"]] & M).any(axis=None)


def test_packed_half_precision_keeps_the_tensor_pipe_of_an_a100_busy_and_is_no_tensor_work():
    """SiLU on FP16: 2,162,690 HFMA2 a launch, and the pipe busy for 1,081,345 cycles, to the last digit."""
    launches = real("a100-sxm4-silu.ncu-rep")
    busy = launches.counters["sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active[total]"]
    assert 2 * busy == pytest.approx(launches.counters["sass__inst_executed_per_opcode[HFMA2]"])
    old = [
        "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active[total]",
        "sass__thread_inst_executed_true_per_opcode[HFMA2]",
    ]
    values = {name: launches.counters[name] for name in old} | {
        "sass__thread_inst_executed_true_per_opcode[HFMA2_32I]": [0.0] * len(busy)
    }
    counted = count(values, "8.0")
    assert counted.table["tensor_fp16"].to_numpy() == pytest.approx(0, abs=1e-5 * 2048 * busy.max())


@pytest.mark.parametrize(
    ("report", "multiprocessors", "mean"),
    [("rtxpro6000-text-mma-warptile.txt", 188, 6721133.16), ("h100-sxm-text-cublas-tf32.txt", 132, 4212598.67)],
)
def test_active_cycles_are_their_mean_times_the_multiprocessors(report, multiprocessors, mean):
    launches = real(report)
    capability = "12.0" if "rtx" in report else "9.0"
    counted = counts.count(launches, definition_files.find("ncu", capability), "served")
    assert row(counted)["sm_active_cycle"] == pytest.approx(mean * multiprocessors)


@pytest.mark.parametrize(("report", "capability"), [("a100-sxm4-silu", "8.0"), ("h100-pcie-rmsnorm", "9.0")])
def test_totals_of_an_l2_in_two_halves_are_what_l1_asked_for(report, capability):
    counted = real(f"{report}.ncu-rep").counters
    asked, dram = (
        sum(counted[name.format(way)][0] for way in ("read", "write"))
        for name in ("lts__t_sectors_srcunit_tex_op_{}.sum", "dram__bytes_{}.sum")
    )
    totals = {"lts__t_bytes.sum": 32 * counted["lts__t_sectors.sum"][0], "dram__bytes.sum": dram}
    found = counts.count(make(totals, device=None), definition_files.find("ncu", capability), "accessed")
    assert row(found)["l2"] == pytest.approx(32 * asked, rel=0.035)


# -------------------------------------------------------------------------------------------------------- made logs


def wide(tmp_path, metrics, capability="8.0", gpu="NVIDIA A100-SXM4-40GB", name="made.csv"):
    """A made log of `ncu --csv --page raw`: one launch of a CUTLASS kernel with these metrics, name -> (unit, value)."""
    fixed = {
        "ID": "0", "Process ID": "1", "Process Name": "gemm", "Host Name": "127.0.0.1",
        "Kernel Name": "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_f16_256x128_32x3_tn_align8>(Params)",
        "Context": "1", "Stream": "7", "Block Size": "(256, 1, 1)", "Grid Size": "(32, 64, 1)", "Device": "0", "CC": capability,
        "device__attribute_display_name": gpu,
    }  # fmt: skip
    head = [*fixed, *metrics]
    units = [*("" for _ in fixed), *(unit for unit, _ in metrics.values())]
    values = [*fixed.values(), *(str(value) for _, value in metrics.values())]
    path = tmp_path / name
    path.write_text("\n".join(",".join(f'"{cell}"' for cell in line) for line in (head, units, values)) + "\n")
    return path


TABLE = """
schema = 1
name = "made-a100"
device = "A100 of this test"
devices = ["A100-SXM4-40GB"]
source = "made for a test"
books = "accessed"
[pj]
tensor_fp16_flop = 0.7
dram_byte = 105.0
[constant_power]
w = 54.0
why = "made for a test"
[charge]
tensor_fp16 = { formula = "tensor_fp16_flop", why = "made for a test" }
tensor = { unpriced = "instructions of unknown size" }
dram_read = { formula = "dram_byte", why = "made for a test" }
dram_write = { formula = "dram_byte", why = "made for a test" }
"""


def test_a_cutlass_kernel_on_an_a100_ends_with_tensor_work_as_its_largest_part(tmp_path):
    """2 * 8192^3 flops at 0.7 pJ are 0.770 J; 1 GB at 105 pJ/B 0.105 J; 54 W for 4.2 ms 0.227 J."""
    flops = 2 * 8192**3
    zeros = {OPS.format(kind): ("", 0) for kind in ("bf16_dst_fp32", "tf32_dst_fp32", "fp64", "int8", "int4", "int1")}
    log = wide(tmp_path, zeros | {
        OPS.format("fp16_dst_fp16"): ("", 0),
        OPS.format("fp16_dst_fp32"): ("", flops),
        "sm__inst_executed_pipe_tensor.sum": ("inst", flops // 4096),
        "dram__bytes_read.sum": ("byte", 8e8),
        "dram__bytes_write.sum": ("byte", 2e8),
        "gpu__time_duration.sum": ("ns", 4.2e6),
    })  # fmt: skip
    (tmp_path / "made-a100.toml").write_text(TABLE)
    document = eprof.load(log).energy(str(tmp_path / "made-a100.toml")).document()

    kernel = document["kernels"][0]
    assert kernel["counts"]["tensor_fp16"]["value"] == flops
    assert kernel["counts"]["tensor_fp16"]["energy_j"] == pytest.approx(0.7696, rel=1e-3)
    assert "tensor" not in kernel["counts"], "instructions are not charged beside their flops"
    assert document["energy_j"]["computation"] == pytest.approx(0.7696, rel=1e-3)
    assert document["energy_j"]["total"] == pytest.approx(0.7696 + 0.105 + 0.2268, rel=1e-3)
    assert document["marks"] == [] or "missing" not in document["marks"]
    assert kernel["intensity_flop_per_byte"] is None, "FP32 and FP64 were not collected"


def test_flops_of_tensor_cores_count_in_the_intensity_and_in_no_roofline():
    plain = {word: 0.0 for word, known in COUNTS.items() if known.flops}
    values = {**plain, "fp32_fma": 100.0, "tensor": np.nan, **dict.fromkeys(TYPES, 0.0), "tensor_fp16": 4096.0}
    columns = Columns.of({word: np.array([value, value]) for word, value in values.items()}, 2)
    columns["tensor_bf16"][1] = np.nan
    assert all_flops_of(columns)[0] == 4096 + 200 and np.isnan(all_flops_of(columns)[1])
    assert np.isnan(flops_of(columns)).all() and flops_of(columns, "fp32").tolist() == [200, 200]


def test_utilisation_times_cycles_times_the_peak_is_the_work_where_a_log_has_no_more(tmp_path):
    """Utilisation and cycles as a text log of an RTX PRO 6000 has them: a GEMM of 8192^3 in FP16."""
    log = wide(tmp_path, {
        "sm__pipe_tensor_subpipe_hmma_cycles_active.avg.pct_of_peak_sustained_active": ("%", 84.98),
        "sm__cycles_active.avg": ("cycle", 6721133.16),
        "launch__sm_count": ("SM", 188),
    }, "12.0", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition")  # fmt: skip
    counted = counts.count(combine([read(log)]), definition_files.find("ncu", "12.0"), "served")
    assert row(counted)["tensor_fp16"] == pytest.approx(2 * 8192**3, rel=1e-3)
    assert counted.marks["tensor_fp16"].iloc[0] == E, "the kernel's name tells the type"
    assert row(counted)["tensor_tf32"] == 0 and not counted.marks["tensor_tf32"].iloc[0]


BUSY = {"sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active[total]": 1e6}


@pytest.mark.parametrize(
    ("kernel", "type_", "flop_per_cycle"),
    [
        ("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x64", "tf32", 512),
        ("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4", "tf32", 512),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688tf32gemm_256x64>(Params)", "tf32", 512),
        ("ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn", "bf16", 1024),
        ("void f<cutlass::bfloat16_t, float>(T1*)", "bf16", 1024),
        ("void g<__nv_bfloat16>(const T1*)", "bf16", 1024),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT", "bf16", 1024),
        ("nvjet_hsh_256x128_64x4_1x2_h_bz_TNT", "fp16", 1024),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_nn", "fp16", 1024),
        ("cutlass_75_tensorop_s1688gemm_f16_128x128_nn_align8", "fp16", 1024),
        ("sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize64x64x64_cublas", "fp8", 2048),
        ("void wmma_gemm_kernel<__half>(const T1*)", "fp16", 1024),
        ("ampere_hgemm_128x64_tn", "fp16", 1024),
        ("void h<cutlass::float_e4m3_t, cutlass::half_t>(T2*)", "fp8", 2048),
    ],
)
def test_a_kernels_name_tells_the_type_of_its_tensor_work(kernel, type_, flop_per_cycle):
    """A board that is no GeForce, its pipe busy in each of a million cycles: the rates of the chip's data sheet."""
    launches = make(BUSY, names=[kernel], device="NVIDIA RTX 6000 Ada Generation")
    counted = counts.count(launches, definition_files.find("ncu", "8.9"), "served")
    expected = dict.fromkeys(("fp16", "bf16", "tf32", "fp8"), 0) | {type_: flop_per_cycle * 1e6}
    assert {kind: row(counted)[f"tensor_{kind}"] for kind in expected} == expected
    assert counted.marks[f"tensor_{type_}"].iloc[0] == E


def test_the_tensor_pipe_of_a_b200_is_not_its_tc_pipe():
    """An HMMA of flash attention is no UTCMMA: a full pipe does a quarter of the chip's peak of FP16 (2.25 Pflop/s)."""
    busy, tc = (f"sm__pipe_{name}_cycles_active.avg.pct_of_peak_sustained_active[total]" for name in ("tensor", "tc"))
    definition = definition_files.find("ncu", "10.0")
    for counted_too, flops, marks in (({}, 2048e6, E | M), ({tc: 0}, 2048e6, E), ({tc: 1e6}, 10240e6, E | A)):
        counted = counts.count(make({busy: 1e6} | counted_too, names=["flash<bfloat16_t>"]), definition, "served")
        assert row(counted)["tensor_bf16"] == flops and counted.marks["tensor_bf16"].iloc[0] == marks


@pytest.mark.parametrize(
    ("kernel", "type_", "flops"),
    [
        ("ampere_s16816gemm_fp16_256x128_ldg8_stages_64x3_nn", "fp16", 2 * 16 * 8 * 16),
        ("cutlass_80_tensorop_s1688gemm_128x128_32x3_nn_align4", "tf32", 2 * 16 * 8 * 8),
        ("Gemm<arch::Mma<cutlass::gemm::GemmShape<(int)16, (int)8, (int)8>, (int)32, cutlass::half_t>>", "fp16", 2048),
        ("gemm<MMA_Atom<SM80_16x8x16_F32BF16BF16F32_TN>>(cutlass::bfloat16_t *)", "bf16", 4096),
        ("gemm_128x1688_of<__half>", None, None),
        ("ampere_i16832gemm_int8_128x128", None, None),
    ],
)
def test_a_kernels_name_tells_the_shape_of_its_matrix_instructions(kernel, type_, flops):
    launches = make({"sm__inst_executed_pipe_tensor.sum": 1000}, names=[kernel], device="NVIDIA A100-PCIE-40GB")
    counted = row(counts.count(launches, definition_files.find("ncu", "8.0"), "served"))
    if type_ is None:
        assert counted["tensor"] == 32_000 and np.isnan(counted["tensor_fp16"])
        return
    assert np.isnan(counted["tensor"]) and counted[f"tensor_{type_}"] == 1000 * flops
    assert sum(counted[f"tensor_{kind}"] for kind in ("fp64", "fp16", "bf16", "tf32", "int8")) == 1000 * flops


@pytest.mark.parametrize(
    ("device", "kernel", "share", "marks"),
    [
        ("NVIDIA GeForce RTX 4090", "ampere_fp16_s16816gemm_fp16_128x128", 0.5, E),
        ("NVIDIA GeForce RTX 4090", "ampere_h16816gemm_128x128", 1.0, E),
        ("NVIDIA GeForce RTX 4070 Laptop GPU", "void k<__half>(T1*)", 0.5, E | A),
        ("NVIDIA L4", "ampere_fp16_s16816gemm_fp16_128x128", 1.0, E),
        ("NVIDIA RTX 6000 Ada Generation", "k", 1.0, E | A),
        ("ncu device 0 (CC 8.9)", "ampere_fp16_s16816gemm_fp16_128x128", 1.0, E | A),
    ],
)
def test_a_geforce_that_adds_up_in_fp32_does_half(device, kernel, share, marks):
    counted = counts.count(make(BUSY, names=[kernel], device=device), definition_files.find("ncu", "8.9"), "served")
    assert row(counted)["tensor_fp16"] == share * 1024e6
    assert counted.marks["tensor_fp16"].iloc[0] == marks


@pytest.mark.parametrize(("multiprocessors", "share"), [(128, 0.5), (142, 1.0)])
@pytest.mark.parametrize("number", [1, 4])
def test_multiprocessors_tell_a_geforce_where_the_log_does_not_name_it(multiprocessors, share, number):
    values = BUSY | {"launch__sm_count": number * float(multiprocessors)}  # added up over launches, as all counters
    launches = make(
        values, number, names=["k_s16816gemm_fp16"], device="ncu device 0 (CC 8.9)", units={"launch__sm_count": "SM"}
    )
    counted = counts.count(launches, definition_files.find("ncu", "8.9"), "served")
    assert row(counted)["tensor_fp16"] == share * 1024e6 and counted.marks["tensor_fp16"].iloc[0] == E


def test_what_a_chip_cannot_multiply_is_told_by_no_name():
    """Weights in FP8 on an A100 are multiplied as BF16; nothing is lost to a type that it does not have."""
    launches = make(BUSY, names=["void k<float_e4m3_t, __nv_bfloat16>(T1*)"], device="NVIDIA A100-SXM4-40GB")
    counted = counts.count(launches, definition_files.find("ncu", "8.0"), "served")
    assert row(counted)["tensor_bf16"] == 2048e6


def test_opcodes_with_their_shapes_tell_the_flops_of_each_type(tmp_path):
    opcodes = {
        "HMMA.16816.F32": 10, "HMMA.16816.F32.BF16": 20, "HMMA.1688.F32.TF32": 30, "DMMA.884": 40, "IMMA.16832.S8.S8": 50,
        "FFMA": 60, "HFMA2.MMA": 70,
    }  # fmt: skip
    listed = "; ".join(f"{opcode}: {number}" for opcode, number in opcodes.items())
    cell = f"{sum(opcodes.values())} ({listed})"
    log = wide(tmp_path, {"sass__inst_executed_per_opcode_with_modifier_all": ("inst", cell)})
    counted = row(counts.count(combine([read(log)]), definition_files.find("ncu", "8.0"), "served"))
    expected = {
        "fp16": 10 * 4096,
        "bf16": 20 * 4096,
        "tf32": 30 * 2048,
        "fp64": 40 * 512,
        "int8": 50 * 8192,
        "other": 0,
    }
    assert {kind: counted[f"tensor_{kind}"] for kind in expected} == expected


@pytest.mark.parametrize("capability", ["8.0", "8.9", "9.0", "10.0", "12.0"])
def test_opcodes_tell_all_types_of_a_chip(tmp_path, capability):
    log = wide(
        tmp_path,
        {"sass__inst_executed_per_opcode_with_modifier_all": ("inst", "5 (HMMA.16816.F32: 2; FFMA: 3)")},
        capability,
    )
    counted = counts.count(combine([read(log)]), definition_files.find("ncu", capability), "served")
    assert counted.table[[*TYPES]].iloc[0].to_dict() == {**dict.fromkeys(TYPES, 0), "tensor_fp16": 8192}
    assert not counted.marks[[*TYPES]].any(axis=None)


@pytest.mark.parametrize(
    ("warp_instructions", "opcode"), [(4 * 12_288, "HGMMA.64x96x16.F32.BF16"), (4 * 18_432, "HGMMA.64x64x16.F32.BF16")]
)
def test_warps_of_a_group_share_the_flops_of_their_instruction(warp_instructions, opcode):
    """Attention on a GH200: 3072 queries, keys and values of 128 in BF16. ncu counted 86,016 and 110,592 in all."""
    flops = flops_by_type({opcode: warp_instructions, "HGMMA.64x128x16.F32.BF16": 4 * 9_216, "FFMA": 5})
    assert flops is not None and flops["bf16"] == 2 * (2 * 3072 * 3072 * 128) == sum(flops.values())


def test_hopper_has_instructions_of_a_group_for_each_type():
    opcodes = {
        "HGMMA.64x8x16.F32": "fp16",
        "HGMMA.64x8x8.F32.TF32": "tf32",
        "QGMMA.64x8x32.F32.E4M3.E4M3": "fp8",
        "IGMMA.64x8x32.S8.S8": "int8",
    }
    for opcode, kind in opcodes.items():
        assert flops_by_type({opcode: 4})[kind] == 2 * 64 * 8 * int(opcode.split(".")[1].split("x")[2])


@pytest.mark.parametrize("opcode", ["HGMMA.F32", "UTCHMMA.2CTA", "HMMA.884.F32.F32.STEP0", "HMMA.161616.F32"])
def test_a_matrix_instruction_of_unknown_size_makes_all_types_unknown(opcode):
    assert flops_by_type({"HMMA.16816.F32": 10, opcode: 1}) is None


def test_types_that_are_told_replace_instructions_and_others_are_missing():
    pipe = "sm__inst_executed_pipe_tensor.sum"
    counted = count({pipe: [100, 100, 0], "sm__ops_path_tensor_src_fp16*.sum": [4096, np.nan, np.nan]}, "8.6")
    assert counted.table["tensor_fp16"].fillna(-1).tolist() == [4096, -1, -1]
    assert counted.table["tensor"].fillna(-1).tolist() == [-1, 3200, 0]
    assert counted.marks["tensor_fp16"].tolist() == [0, 0, 0]
    assert counted.marks["tensor_bf16"].tolist() == [M, 0, 0], "another type may have worked, too"
    assert row(counted)["tensor_fp8"] == 0, "this chip has none"


def test_a_volta_instruction_is_512_flops():
    counted = count({"sm__inst_executed_pipe_tensor.sum": 1000}, "7.0")
    assert row(counted)["tensor_fp16"] == 512_000 and counted.marks["tensor_fp16"].iloc[0] == E


def test_nvprof_cannot_tell_tensor_work_and_says_so():
    counted = count({"tensor_precision_fu_utilization": 9}, "7.0", "nvprof")
    assert np.isnan(row(counted)["tensor_fp16"]) and counted.marks["tensor_fp16"].iloc[0] == M
    assert "0 to 10" in counted.how["tensor_fp16"][0].note


def test_active_cycles_of_nvprof_are_counted_or_follow_from_the_efficiency():
    assert row(count({"active_cycles": 700}, "3.5", "nvprof"))["sm_active_cycle"] == 700
    counted = count({"sm_efficiency": 80.0, "elapsed_cycles_sm": 1000}, "3.5", "nvprof")
    assert row(counted)["sm_active_cycle"] == 800 and counted.marks["sm_active_cycle"].iloc[0] == E


def test_active_cycles_are_instructions_over_those_in_each_of_them():
    path = NVPROF / "titan-wide-trace-events-and-metrics.csv"
    if not path.exists():
        pytest.skip("the real logs are not at hand")
    launches = eprof.load(path, cache=False).counted[0].launches
    definition = definition_files.find("nvprof", "3.5")
    told = counts.count(launches, definition, "served").amounts["sm_active_cycle"]
    names = [name for name in launches.counters.names if name != "active_cycles"]
    alone = replace(launches, counters=Columns(tuple(names), launches.counters.only(names)))
    made = counts.count(alone, definition, "served")
    assert made.amounts["sm_active_cycle"] == pytest.approx(told, rel=0.03)  # of other passes
    assert {way.formula for way in made.how["sm_active_cycle"]} == {"inst_executed / ipc"}
    # What has no unit was added up over launches.
    of_two = make({"inst_executed": 6000, "ipc": 3.0}, launches=2, device=None, units={"ipc": "count"})
    assert row(counts.count(of_two, definition, "served"))["sm_active_cycle"] == 4000
    ncu = {"smsp__inst_executed.sum": 6000, "sm__inst_executed.avg.per_cycle_active": 1.5}
    units = {"sm__inst_executed.avg.per_cycle_active": "other"}
    in_ncu = counts.count(make(ncu, device=None, units=units), definition_files.find("ncu", "8.6"), "served")
    assert row(in_ncu)["sm_active_cycle"] == 4000 and in_ncu.marks["sm_active_cycle"].iloc[0] == 0


# --------------------------------------------------------------------------------------------------------- planning


def test_where_one_type_is_priced_all_are_collected(tmp_path):
    path = tmp_path / "made-a100.toml"
    path.write_text(TABLE)
    table = eprof.costs.load(str(path)).at()
    planned = planned_counters.plan(definition_files.find("ncu", "8.0"), table)
    words = {word for own in planned.counters.values() for word in own}
    types = {"tensor_fp64", "tensor_tf32", "tensor_bf16", "tensor_fp16", "tensor_int8", "tensor_other"}
    assert types <= words and "tensor" not in words and "sm_active_cycle" not in words


def test_a_tensor_pipe_that_is_busy_for_longer_than_its_multiprocessor_is_a_contradiction(tmp_path):
    log = tmp_path / "a.csv"
    cells = '"1","1","a.out","host","k()","1","7","(32, 1, 1)","(1, 1, 1)","0","8.0","Command line profiler metrics"'
    names = '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size"'
    head = f'{names},"Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    cycles = f'{cells},"sm__cycles_active.sum","cycle","1000"\n'
    busy = cells + ',"sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active","%%","%s"\n'
    warnings = {}
    for percent in ("90", "150"):
        log.write_text(head + cycles + busy % percent)
        warnings[percent] = " ".join(eprof.load(log).energy().warnings)
    assert "contradict" in warnings["150"] and "contradict" not in warnings["90"]

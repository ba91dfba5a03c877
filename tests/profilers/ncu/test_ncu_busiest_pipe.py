"""What ncu's sentences tell, in text pages and in the rules of tables: tensor work by the busiest pipe, flops."""

import numpy as np
import pytest
from conftest import SHARED
from frames_support import combine as frames
from test_ncu_logs import log_of

from eprof.base.vocabulary import Mark
from eprof.counts import counts, definition_files
from eprof.logs import combine, read, stream
from eprof.profile.api import load
from eprof.profile.document import document
from eprof.profilers.ncu.text import of_advice
from eprof.readers import sections

ESTIMATED_ASSUMED = int(Mark.ESTIMATED | Mark.ASSUMED)
BUSY = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
SENTENCE = (
    "Tensor is the highest-utilized pipeline (93.4%) based on elapsed cycles in the workload, taking into account the "
    "rates of its different instructions. It is the logical aggregation of individual tensor pipelines. It's dominated "
    "by its Tensor (FP) sub-pipeline."
)
SHARED_PIPE = (
    "Shared is the highest-utilized pipeline (74.4%) based on active cycles, taking into account the rates of its "
    "different instructions. It executes 64-bit floating point and tensor operations. It's dominated by its {} sub-pipeline."
)
HEADER = (
    '"ID","Process ID","Process Name","Kernel Name","Stream","Device","CC","Section Name","Metric Name","Metric Unit",'
    '"Metric Value","Rule Name","Rule Type","Rule Description"'
)


def tensor(name, capability, word="tensor_fp16"):
    """Flops and marks of the one kernel of a real log."""
    path = SHARED / "ncu-modern" / name
    if not path.exists():
        pytest.skip("the real logs are not at hand")
    counted = counts.count(combine([read(path)]), definition_files.find("ncu", capability), "served")
    return counted.table[word].iloc[0], counted.marks[word].iloc[0]


@pytest.mark.parametrize(
    ("log", "capability", "word", "size"),
    [
        ("h100-sxm-text-cutlass-tma.txt", "9.0", "tensor_fp16", 8192),
        ("h100-sxm-text-cublas-tf32.txt", "9.0", "tensor_tf32", 8192),
        ("rtxpro6000-text-cublas-fp16.txt", "12.0", "tensor_fp16", 8192),
        ("rtxpro6000-text-mma-warptile.txt", "12.0", "tensor_fp16", 8192),
        # Added up in FP32, which a GeForce card does at half the rate; its 48 multiprocessors tell that it is one.
        ("rtx5070-text-wmma-fp16-4096.txt", "12.0", "tensor_fp16", 4096),
    ],
)
def test_a_text_page_tells_the_flops_of_a_product_of_matrices(log, capability, word, size):
    counted, marks = tensor(log, capability, word)
    assert counted == pytest.approx(2 * size**3, rel=0.01) and marks & int(Mark.ESTIMATED)
    others = {"tensor_fp16", "tensor_tf32", "tensor_bf16", "tensor_fp8"} - {word}
    assert all(tensor(log, capability, other)[0] == 0 for other in others)


def test_where_another_pipe_is_busier_tensor_work_is_unknown():
    counted, marks = tensor("rtxpro6000-text-cublaslt-fp8.txt", "12.0")
    assert np.isnan(counted) and marks == int(Mark.MISSING)


@pytest.mark.parametrize(
    ("advice", "value"),
    [
        (SENTENCE, (BUSY, "934")),
        (SHARED_PIPE.format("Tensor (INT)"), (BUSY.replace("elapsed", "active"), "744")),
        (SHARED_PIPE.format("FP64"), None),
        ("FMA is the highest-utilized pipeline (76.1%) based on active cycles. It's dominated by its Tensor", None),
        ("Tensor is the highest-utilized pipeline (25.0%).", None),
        ("All compute pipelines are under-utilized.", None),
    ],
)
def test_a_sentence_prints_a_metric_if_it_is_about_tensor_work(advice, value):
    assert [(name, number) for name, _, number in of_advice(advice)] == [value] * (value is not None)


ROOFLINE = (
    "The ratio of peak float (FP32) to double (FP64) performance on this device is 2:1. The workload achieved 7% of this "
    "device's FP32 peak performance and 34% of its FP64 peak performance."
)


@pytest.mark.parametrize("advice", [ROOFLINE, ROOFLINE.lower().replace("achieved", "achieved  close to")])
def test_the_sentence_on_the_roofline_prints_both_shares_and_their_ratio(advice):
    assert [number for _, _, number in of_advice(advice.replace("the workload", "The kernel"))] == [
        "7",
        "34",
        "345",
        "2",
    ]


@pytest.mark.parametrize(
    ("waiting", "sign"),
    [
        ("for sibling warps at a CTA barrier. A high number", "barrier_stall"),
        ("for a scoreboard dependency on a MIO (memory input/output) operation (not to L1TEX). The", "shared_stall"),
        ("for the MIO (memory input/output) instruction queue to be not full. This", "shared_stall"),
        ("for the execution pipe to be available. This", "math_stall"),
        ("on a fixed latency execution dependency. Typically", "wait_stall"),
        ("for a branch target to be computed, and", "branch_stall"),
        ("for an immediate constant cache (IMC) miss. A read", "constant_stall"),
        ("on a memory barrier. Avoid", "fence_stall"),
        ("to be selected to fetch an instruction or waiting on an instruction cache miss. Many", "fetch_stall"),
    ],
)
def test_the_sentence_on_stalls_tells_what_warps_wait_for(waiting, sign):
    said = (
        f"On average, each warp of this kernel spends 20.4 cycles being stalled waiting {waiting} so. This stall type "
    )
    (metric, unit, value), *others = of_advice(f"{said} represents about 58.2% of the total average of 35.0 cycles.")
    assert (unit, value, others) == ("‰", "582", [])
    ways = definition_files.find("ncu", "8.6").components[sign]
    assert any(metric in definition_files.find("ncu", "8.6").counters_of(way.formula) for way in ways)


CONFLICTS = (
    "The memory access pattern for shared loads might not be optimal and causes on average a 8.0 - way bank conflict across "
    "all 65536 shared load requests.This results in 262144 bank conflicts,  which represent 49.98% of the overall 524502 "
    "wavefronts for shared loads."
)


@pytest.mark.parametrize(
    ("log", "signs"),
    [
        # What the sentences say: 75 % of sectors, 46.9 % and 52.7 % of stalls, 14 % of 469,509,552 wavefronts. Of 30.8
        # sectors a request 16 are enough. Registers let one block of 8 warps run where 64 fit.
        ("traces/nsys/nsightful-copy_blocked.ncu.csv", {"excess": 0.75, "lg_throttle": 0.469, "memory_stall": 0.527}),
        ("ncu-modern/rtxpro6000-text-mma-warptile.txt", {"bank_conflict": 66982616 / 469509552}),
        ("ncu-modern/rtx3050laptop-indian-grouping.csv", {"request_sectors": 50410305 / 1638400}),
        (
            "ncu/cc80-details-page-rules-estimated-speedup.csv",
            {
                "occupancy_limit": 0.125,
                "registers_limit": 0.125,
                "shared_limit": 1,
                "block_limit": 1,
                "spills": 18883760,
            },
        ),
        (None, {"bank_conflict": 262144 / 524502}),
    ],
)
def test_rules_and_limits_tell_signs(tmp_path, log, signs):
    path = SHARED / (log or "")
    if log is None:
        path = tmp_path / "rules.csv"
        path.write_text("\n".join(line.replace(SENTENCE, CONFLICTS) for line in table()) + "\n")
    if not path.exists():
        pytest.skip("the real logs are not at hand")
    kernel = document(load(path, cache=False).energy()).kernels[0]
    assert {name: kernel.signs[name] for name in signs} == pytest.approx(signs, rel=1e-4)


def test_flops_of_a_product_are_the_share_of_the_peak_that_the_roofline_tells():
    """A cuBLAS SGEMM of 8192^3: the share is printed in whole per cent."""
    counted, marks = tensor("rtxpro6000-text-cublaslt-fp8.txt", "12.0", "fp32")
    assert counted == pytest.approx(8192**3, rel=0.5 / 72) and marks == int(Mark.ESTIMATED | Mark.MISSING)


def test_both_shares_count_with_their_own_peak_launch_by_launch(tmp_path):
    log = log_of(tmp_path, *[line.replace(SENTENCE, ROOFLINE) for line in table()])
    table_ = counts.count(combine([log]), definition_files.find("ncu", "8.0"), "served").table
    cycles = 4370008 * 132
    assert table_["fp32"].iloc[0] == pytest.approx(64 * 0.07 * cycles)
    assert table_["fp64"].iloc[0] == pytest.approx(64 / 2 * 0.34 * cycles) and np.isnan(table_["fp64"].iloc[1])


def table(decimal_point="."):
    """Two launches in a CSV of the default page; the second does no tensor work to speak of."""
    lines = [HEADER]
    for launch, rule in enumerate((SENTENCE, "FMA is the highest-utilized pipeline (76.1%) based on elapsed cycles.")):
        start = f'"{launch}","1","gemm","gemm_{launch}","7","0","9.0","Section"'
        metrics = [("SM Active Cycles", "cycle", f"4212598{decimal_point}67"), ("Elapsed Cycles", "cycle", "4370008")]
        metrics += [("# SMs", "SM", "132"), ("SM Frequency", "Ghz", f"1{decimal_point}45")]
        lines += [f'{start},"{name}","{unit}","{value}"' for name, unit, value in metrics]
        lines.append(f'{start},"","","","HighPipeUtilization","OPT","{rule}"')
    return lines


@pytest.mark.parametrize("decimal_point", [".", ","])
@pytest.mark.parametrize(("long", "chunk"), [(1, 500), (1, 4 << 20), (1 << 20, 4 << 20)])
def test_the_rules_of_a_table_tell_it_for_each_launch(tmp_path, monkeypatch, decimal_point, long, chunk):
    monkeypatch.setattr(sections, "_LONG", long)
    monkeypatch.setattr(stream, "_HEAD", min(chunk, 4096))
    log = log_of(tmp_path, *table(decimal_point), tuning=stream.Tuning(chunk_bytes=chunk))
    busy = frames([log]).counters[f"{BUSY}[total]"].tolist()
    assert busy[0] == pytest.approx(0.934 * 4370008 * 132) and np.isnan(busy[1])
    assert log.skipped_lines == 0

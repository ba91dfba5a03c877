"""What the default page of Nsight Compute implies: bytes of DRAM from cycles, instructions from rates a cycle."""

import math

import numpy as np
import pytest
from conftest import SHARED
from test_ncu_logs import log_of

from eprof.base.vocabulary import Mark
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.view import View
from eprof.counts import counts, definition_files
from eprof.logs import combine, read
from eprof.profile.api import load
from eprof.profile.document import document

ESTIMATED, MISSING, ASSUMED = int(Mark.ESTIMATED), int(Mark.MISSING), int(Mark.ASSUMED)
LINES = {"dram": "Memory Throughput  ", "warp_issue": "Executed Instructions"}


def counted(log, capability, word):
    """A count of the one kernel of a log, and its marks."""
    amounts = counts.count(combine([log]), definition_files.find("ncu", capability), "served")
    return amounts.table[word].iloc[0], amounts.marks[word].iloc[0]


def real_text(name):
    path = SHARED / "ncu-modern" / name
    if not path.exists():
        pytest.skip("the real logs are not at hand")
    return path.read_text()


@pytest.mark.parametrize(
    ("name", "capability", "words"),
    [
        ("h100-sxm-text-cublas-tf32.txt", "9.0", ("dram", "warp_issue")),
        ("h100-sxm-text-cutlass-tma.txt", "9.0", ("dram", "warp_issue")),
        ("rtxpro6000-text-cublas-fp16.txt", "12.0", ("dram", "warp_issue")),
        ("rtxpro6000-text-mma-warptile.txt", "12.0", ("dram", "warp_issue")),
    ],
)
def test_a_page_without_its_counts_still_tells_them(tmp_path, name, capability, words):
    text = real_text(name)
    left = [line for line in text.split("\n") if "byte/s" not in line and LINES["warp_issue"] not in line]
    assert len(left) < text.count("\n")
    (tmp_path / "whole.txt").write_text(text)
    whole, less = read(tmp_path / "whole.txt"), log_of(tmp_path, *left)
    for word in words:
        value, marks = counted(less, capability, word)
        assert value == pytest.approx(counted(whole, capability, word)[0], rel=0.01)
        assert marks == ESTIMATED


def test_bytes_of_dram_are_the_share_of_the_data_sheets_bandwidth(tmp_path):
    # 51.84 % of an L4's 300 GB/s for 14.17 s, as the page says of the same launch.
    (tmp_path / "log.txt").write_text(real_text("l4-text-fp16-mma-16384-seconds.txt"))
    value, marks = counted(read(tmp_path / "log.txt"), "8.9", "dram")
    assert value == pytest.approx(0.5184 * 300e9 * 14.17, rel=0.01) and marks == ESTIMATED


def page(capability, *rows, tail="Context 1, Stream 7"):
    ruler = f"    {'-' * 30} ----------- --------------"
    lines = [f"    {name:30} {unit:>11} {value:>14}" for name, unit, value in rows]
    head = f"    {'Metric Name':30} Metric Unit   Metric Value"
    return ["[7] app@127.0.0.1", f"  axpy(int) (2, 1, 1)x(64, 1, 1), {tail}, Device 0, CC {capability}",
            "    Section: GPU", ruler, head, ruler, *lines, ruler]  # fmt: skip


CYCLES = (
    ("DRAM Frequency", "Ghz", "2.00"),
    ("Duration", "us", "10.00"),
    ("Average DRAM Active Cycles", "cycle", "5,000"),
    ("Total DRAM Elapsed Cycles", "cycle", "801,000"),  # of 40 channels, by a rounded frequency
)


@pytest.mark.parametrize(("capability", "channel_b"), [("8.0", 32), ("9.0", 32), ("8.6", 8), ("12.0", 8)])
def test_a_channel_moves_as_many_bytes_a_cycle_as_it_is_wide(tmp_path, capability, channel_b):
    value, marks = counted(log_of(tmp_path, *page(capability, *CYCLES)), capability, "dram")
    assert (value, marks) == (40 * 5000 * channel_b, ESTIMATED)


@pytest.mark.parametrize("lacking", ["DRAM Frequency", "Duration", "Total DRAM Elapsed Cycles"])
def test_without_the_number_of_channels_bytes_are_not_known(tmp_path, lacking):
    rows = [row for row in CYCLES if row[0] != lacking]
    assert math.isnan(counted(log_of(tmp_path, *page("8.0", *rows)), "8.0", "dram")[0])


def test_a_roofline_page_tells_flops_by_its_rates(tmp_path):
    rates = [
        (f"Predicated-On {kind} Thread Instructions Executed Per Cycle", "inst/cycle", str(rate))
        for kind, rate in (("FFMA", 400), ("FADD", 100), ("FMUL", 0))
    ]
    header = '"ID","Process ID","Process Name","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
    rows = [
        f'"0","7","app","axpy(int)","0","8.0","Roofline","{name}","{unit}","{value}"'
        for name, unit, value in (*rates, ("Elapsed Cycles", "cycle", "1000"))
    ]
    log = log_of(tmp_path, header, *rows)
    assert counted(log, "8.0", "fp32_fma") == (400_000, ESTIMATED)
    assert counted(log, "8.0", "fp32_add") == (100_000, ESTIMATED)


BUSY_PAGE = """==PROF== Disconnected from process 7377
[7377] matmul_naive@127.0.0.1
  matmul_naive(const float *, float *) (188, 250, 1)x(16, 16, 1), Context 1, Stream 7, Device 0, CC {capability}
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- -------------
    Metric Name             Metric Unit  Metric Value
    ----------------------- ----------- -------------
    DRAM Frequency                  Ghz          9.49
    DRAM Throughput                   %         25.07
    Duration                         {unit}         27.01
    L1/TEX Cache Throughput           %         97.55
    L2 Cache Throughput               %         21.20
    Compute (SM) Throughput           %         97.50
    ----------------------- ----------- -------------

    Section: Launch Statistics
    ---------------------- --------------- ---------------
    Metric Name                Metric Unit    Metric Value
    ---------------------- --------------- ---------------
    Grid Size                                       47,000
    # SMs                               SM              {sms}
    ---------------------- --------------- ---------------
"""


@pytest.mark.parametrize(
    ("capability", "sms", "unit", "expected_b"),
    [
        # By hand: 25.07 % of the 936.2 GB/s of an RTX 3090's data sheet for 27.01 ms. With cycles of DRAM, which newer
        # pages have, the same log has 6.17 GB: its clock is 9.49 GHz of 9.75.
        ("8.6", 82, "ms", 6.339e9),
        ("8.6", 82, "us", 0.2507 * 936.2e9 * 27.01e-6),
        ("8.6", 82, "ns", None),  # too short for DRAM's full clock
        ("8.6", 9999, "ms", None),  # one of many boards, whose peaks are apart
    ],
)
def test_the_utilisation_of_dram_tells_its_bytes_where_the_board_is_known(tmp_path, capability, sms, unit, expected_b):
    path = tmp_path / "details.txt"
    path.write_text(BUSY_PAGE.format(capability=capability, sms=sms, unit=unit))
    profile = load(path, cache=False)
    (moved,) = profile.counts().amounts["dram"]
    if expected_b is None:
        assert np.isnan(moved)
    else:
        assert moved == pytest.approx(expected_b, rel=1e-3)
    made = document(profile.energy())
    if unit == "ms" and sms == 82:  # what holds the kernel back is told without a count of its bytes
        assert "fewer bytes (L1 or shared memory is 98\u202f% busy" in what_to_try(View(made)).text
    (kernel,) = made.kernels
    busy = [kernel.signs[f"{part}_busy"] for part in ("sm", "l1", "l2", "dram")]
    assert busy == pytest.approx([0.975, 0.9755, 0.212, 0.2507])


@pytest.mark.parametrize(
    ("log", "word", "expected", "mark"),
    [
        # A peak of 4608 FFMA a cycle is that of 36 multiprocessors of 128 lanes; their mean cycles are 1,245,723 and 1,243,692.
        ("ncu-modern/sm120-cutlass-basic-rules-body-items.csv", "sm_active_cycle", 36 * (1245723.36 + 1243692), 0),
        # 44.56 % of four a cycle, and as much in the second.
        ("ncu-modern/sm120-cutlass-basic-rules-body-items.csv", "warp_issue", 8 * 0.4456 * 36 * 1320278, ESTIMATED),
        # Busy in 0 % of cycles.
        ("ncu-modern/sm120-cutlass-basic-rules-body-items.csv", "tensor", 0, ESTIMATED),
        ("ncu-modern/sm120-cutlass-basic-rules-body-items.csv", "fp64_other", 0, ESTIMATED),
        # A summary has the mean over launches of a mean over multiprocessors, of which all launches have 34.
        ("ncu/text-details-heat3d.txt", "sm_active_cycle", 34 * (7.44e6 * 20 + 6.97e6 * 10 + 516 * 4), 0),
        # The mean over multiprocessors was not counted; cycles of warps were, of which a multiprocessor has 48 at most.
        ("ncu-modern/rtx5060ti-occupancy-one-nan-launch.ncu-rep", "sm_active_cycle", 88.7e6, MISSING),
        # 435,944 wavefronts of 128 B, by the name that stores have where instructions are patched.
        ("ncu-modern/rtx3070-scan.ncu-rep", "shared_write", 128 * 435944, ASSUMED),
        # Launched without shared memory.
        ("ncu/gtx1080-raw-wide-kernel-time-program-output.txt", "shared_read", 0, ESTIMATED),
        ("ncu/cc80-details-page-rules-estimated-speedup.csv", "shared_write", 0, 0),
    ],
)
def test_a_page_tells_multiprocessors_and_idle_pipes(log, word, expected, mark):
    if not (SHARED / log).exists():
        pytest.skip("the real logs are not at hand")
    counted_ = load(SHARED / log, cache=False).counts()
    assert counted_.amounts[word].sum() == pytest.approx(expected, rel=5e-3)
    assert set(counted_.amount_marks[word].tolist()) == {mark}


@pytest.mark.parametrize(
    ("log", "most_j"),
    [
        # By hand: 0 % of the FP64 peak is less than 0.5 % of it; 2,000,000 flops; no adds, multiplies or multiply-adds.
        ("ncu-modern/rtxpro6000-text-cublaslt-fp8.txt", 0.1),
        ("nvprof/volta-sqlite-kernel-metric-tables.nvvp.gz", 2e-4),
        ("ncu/cc80-roofline-metrics-no-preamble.csv", 0),
    ],
)
def test_flops_that_a_log_states_bound_fp64(log, most_j):
    if not (SHARED / log).exists():
        pytest.skip("the real logs are not at hand")
    uncounted = document(load(SHARED / log, cache=False).energy()).interval_j.uncounted
    assert uncounted.get("fp64", 0) <= most_j


@pytest.mark.parametrize(
    ("kilobytes", "act"),
    [
        (None, "move fewer bytes (L1 or shared memory is 80\u202f% busy; keep more in registers)"),
        (4, "move fewer bytes (L1 or shared memory is 80\u202f% busy; keep more in registers)"),
        (0, "move fewer L1 bytes (L1 is 80\u202f% busy; tile in shared memory and registers)"),
    ],
)
def test_what_holds_a_kernel_back_is_told_where_nothing_but_time_was_counted(tmp_path, kilobytes, act):
    """What ncu calls L1/TEX moves the bytes of shared memory too."""
    sections = [
        "  f(int) (2, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 9.0",
        "    Section: GPU Speed Of Light Throughput",
        "    ----------------------- ----------- -------------",
        "    Metric Name             Metric Unit  Metric Value",
        "    ----------------------- ----------- -------------",
        "    Duration                         ms         41.00",
        "    L1/TEX Cache Throughput           %         80.00",
        "    L2 Cache Throughput               %         20.00",
        "    ----------------------- ----------- -------------",
    ]
    if kilobytes is not None:
        sections += [
            "",
            "    Section: Launch Statistics",
            "    -------------------------------- --------------- -----------",
            "    Metric Name                          Metric Unit Metric Value",
            "    -------------------------------- --------------- -----------",
            "    Dynamic Shared Memory Per Block    Kbyte/block           0",
            f"    Static Shared Memory Per Block     Kbyte/block           {kilobytes}",
            "    -------------------------------- --------------- -----------",
        ]
    log_of(tmp_path, *sections)
    told = what_to_try(View(document(load(next(tmp_path.iterdir())).energy()))).text
    assert told.startswith(act), told
    assert "(75\u202f% of" in told and told.endswith("PROGRAM`")


def test_a_unit_that_alone_was_told_bounds_no_saving(tmp_path):
    """Without DRAM's bytes another unit would hold the kernel back, and nothing tells which."""
    sections = [
        "  f(int) (2, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.9",
        "    Section: GPU Speed Of Light Throughput",
        "    ----------------------- ----------- -------------",
        "    Metric Name             Metric Unit  Metric Value",
        "    ----------------------- ----------- -------------",
        "    DRAM Throughput                   %         94.59",
        "    Duration                    usecond        272.16",
        "    ----------------------- ----------- -------------",
    ]
    log_of(tmp_path, *sections)
    told = what_to_try(View(document(load(next(tmp_path.iterdir())).energy()))).text
    assert "until another unit" not in told and "100\u202f%" not in told
    assert "each 10\u202f% fewer saves 590\u202fµJ (10\u202f% of 5.90\u202fmJ), 10\u202f% less time" in told


# As in a page of an H200 (`ncu uv run scalingelections.py`), without rows that do not bear on `Try`.
HELD_BY_L1 = """==PROF== Disconnected from process 77
[77] elections@127.0.0.1
  void _cuda_independent<32>(unsigned int *) (128, 128, 1)x(32, 32, 1), Context 1, Stream 7, Device 0, CC 9.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    DRAM Frequency                  Ghz         3.20
    SM Frequency                    Ghz         1.50
    Elapsed Cycles                cycle       307595
    DRAM Throughput                   %        10.69
    Duration                         us       205.22
    L1/TEX Cache Throughput           %        {l1}
    L2 Cache Throughput               %        15.54
    Compute (SM) Throughput           %        66.51
    ----------------------- ----------- ------------
"""


@pytest.mark.parametrize(("l1", "first"), [("79.90", "L1 or shared memory is 80"), ("70.00", "DRAM bytes")])
def test_the_unit_that_holds_a_kernel_back_is_to_try_before_dram_where_a_tenth_saves_more(tmp_path, l1, first):
    """Of 205.22 us at 94.5 W, 19.4 mJ: a tenth of L1's bytes is a tenth of it, 1.94 mJ, as SMs are 66.51 / 79.9 as busy.

    At 70 % they are nearly as busy as L1, which saves 19.4 mJ x (1 - 66.51 / 70) = 0.97 mJ at most. Of DRAM's 8.51 mJ half
    is 4.25 mJ, a third of which is to be hoped for: 1.42 mJ.
    """
    path = tmp_path / "details.txt"
    path.write_text(HELD_BY_L1.format(l1=l1))
    said = what_to_try(View(document(load(path, cache=False).energy()))).text
    assert first in said.partition(";")[0] and said.startswith("move fewer ")
    if first.startswith("L1"):
        assert "3.25 mJ" in said.replace("\u202f", " ") and "1.94 mJ for each 10 % fewer" in said.replace("\u202f", " ")


def test_l2_passed_no_more_bytes_than_dram_over_the_share_that_it_missed(tmp_path):
    """Launch by launch: 0.1 GB of DRAM over 0.1 and over 1 are 1.0 GB and 0.1 GB, not 0.2 GB over their mean of 0.55."""
    lines = []
    for hits in ("90.00", "0.00"):
        lines += [
            "  f(int) (2, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.9",
            "    Section: Memory Workload Analysis",
            "    ----------------------- ----------- -------------",
            "    Metric Name             Metric Unit  Metric Value",
            "    ----------------------- ----------- -------------",
            "    Duration                         ms          1.00",
            "    Memory Throughput           Gbyte/s        100.00",
            f"    L2 Hit Rate                       %         {hits}",
            "    ----------------------- ----------- -------------",
        ]
    found = counts.count(combine([log_of(tmp_path, *lines)]), definition_files.find("ncu", "8.9"), "served")
    assert found.shape["l2_room"].tolist() == pytest.approx([1e8 / 0.09995 + 1e8 / 0.99995])


@pytest.mark.parametrize(
    ("name", "capability"),
    [
        ("ncu-modern/a100-sxm4-silu.ncu-rep", "8.0"),
        ("ncu-modern/h100-pcie-rmsnorm.ncu-rep", "9.0"),
        ("ncu-modern/rtx3070-scan.ncu-rep", "8.6"),
        ("ncu/v100-miniweather-baseline.ncu-rep", "7.0"),
    ],
)
def test_the_most_that_passed_l2_holds_where_its_sectors_were_counted(name, capability):
    """In 24 launches of five GPUs the sectors of all units of L2 were 0.28 to 0.99 of it."""
    if not (SHARED / name).exists():
        pytest.skip("the real logs are not at hand")
    launches = combine([read(SHARED / name)])
    found = counts.count(launches, definition_files.find("ncu", capability), "served")
    assert "lts__t_sector_hit_rate.pct[total]" in launches.counters
    counted = 32 * np.asarray(launches.counters["lts__t_sectors.sum"])
    assert (counted <= 1.01 * found.shape["l2_room"]).all() and (counted > 0).all()

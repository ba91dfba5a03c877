"""What ncu's statistics of launches tell of a GPU that no log names: multiprocessors, compute capability, board."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_ncu_logs import NEW, TIME, log_of, row
from test_ncu_page import page

import eprof
from eprof.base.gpus import Traits, capabilities_by_limits, sheets_with
from eprof.base.vocabulary import PRICED
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.trust import locked_clock, trust
from eprof.commands.report.view import View
from eprof.energy.uncertainty import prices_of, uncounted
from eprof.profilers.ncu import derived

FITTING = dict(zip(derived._FITTING, (16, 12, 47, 12), strict=True))


def told(**metrics):
    """The multiprocessors that the metrics of one launch tell."""
    arrays = {name: np.array([number], dtype=float) for name, number in metrics.items()}
    return derived.multiprocessors(arrays, np.ones(1), np.full(1, np.nan))


@given(sms=st.integers(1, 200), blocks=st.integers(1, 10**7))
def test_waves_tell_the_multiprocessors_or_nothing(sms, blocks):
    waves = {"launch__grid_size": blocks, "launch__waves_per_multiprocessor": round(blocks / (12 * sms), 2)}
    number = told(**waves, **FITTING)
    assert number == sms if blocks > 2 * 12 * sms * sms else np.isnan(number) or number == sms


@given(sms=st.integers(1, 200), instructions=st.integers(0, 10**9))
def test_instructions_of_all_and_of_a_scheduler_tell_the_multiprocessors_or_nothing(sms, instructions):
    mean = round(instructions / (4 * sms), 2)
    number = told(**{"smsp__inst_executed.sum": instructions, "smsp__inst_executed.avg": mean})
    assert number == sms if instructions > 10 * sms**3 else np.isnan(number) or number == sms


def test_launches_that_tell_different_numbers_tell_none():
    metrics = {"launch__grid_size": [25640, 25640], "launch__waves_per_multiprocessor": [26.06, 35.61]}
    arrays = {name: np.array(numbers, dtype=float) for name, numbers in metrics.items()}
    arrays |= {name: np.full(2, number) for name, number in FITTING.items()}
    assert np.isnan(derived.multiprocessors(arrays, np.ones(2), np.full(2, np.nan)))


@pytest.mark.parametrize(
    ("limits", "capabilities"),
    [
        ((16, 12, 128), {"8.6", "8.7"}),
        ((16, 1, 1024), {"7.5", "8.6", "8.7"}),  # 32 of 48 warps: a second block does not fit
        ((24, 6, 250), {"8.9", "12.0"}),
        ((32, 2, 1024), {"7.0", "7.2", "8.0", "9.0", "10.0", "10.3"}),
        ((16, 13, 128), set()),
    ],
)
def test_limits_of_blocks_tell_the_capability(limits, capabilities):
    assert capabilities_by_limits(*limits) == capabilities


def test_a_page_of_2022_that_names_no_gpu_tells_the_board(tmp_path):
    """An RTX 3090, by its waves: blocks over the 12 that fit into each of 82 multiprocessors."""
    limits = {"SM": 16, "Registers": 12, "Shared Mem": 47, "Warps": 12}
    kernel = "spmm(int, float *), 2022-Feb-05 12:20:10, Context 1, Stream 7"
    rows = [("Duration", "usecond", "441.57"), ("Executed Instructions", "inst", "122,515,110")]
    rows += [(f"Block Limit {what}", "block", f"{number}") for what, number in limits.items()]
    rows += [("Grid Size", "", "25,640"), ("Block Size", "", "128"), ("Waves Per SM", "", "26.06")]
    energy = eprof.load(log_of(tmp_path, *page((kernel, *rows))).path).energy(estimate=True)
    assert energy.profile.counted[0].device.capability == "8.6"
    assert energy.table.device == "GeForce RTX 3090"
    assert energy.split.constant_j.sum() == pytest.approx(441.57e-6 * energy.costs.constant_power_w)


@pytest.mark.parametrize(("core_ghz", "is_told"), [("1.39", True), ("1.77", False)])
def test_the_base_clock_tells_the_board_whose_peak_makes_bytes_of_the_share_of_dram(tmp_path, core_ghz, is_told):
    """An RTX 3090 of 936.2 GB/s, with nothing but the Speed Of Light: 93.23 % of it for 3.81 ms are 3.33 GB."""
    cells = ('"0"', '"k(int)"', '"0"', '"8.6"', '"GPU Speed Of Light Throughput"')
    told = [("Duration", "ms", "3.81"), ("DRAM Throughput", "%", "93.23"), ("DRAM Frequency", "Ghz", "9.49")]
    told += [("SM Frequency", "Ghz", core_ghz), ("SM Active Cycles", "cycle", "5,338,311.68")]
    header = '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
    rows = [",".join([*cells, *(f'"{cell}"' for cell in row)]) for row in told]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([header, *rows, ""]))
    energy = eprof.load(path).energy(estimate=True)
    assert (energy.table.device == "GeForce RTX 3090") == is_told
    assert ("RTX 3090, probably the board, by the clock" in trust(View(energy.document())).text) == is_told
    (moved,) = energy.counts.amounts["dram"]
    assert moved == pytest.approx(is_told * 0.9323 * 936.2e9 * 3.81e-3, rel=1e-3) or not is_told and np.isnan(moved)


@pytest.mark.parametrize(
    ("core_ghz", "locked"), [("0.58", "580 MHz, where ncu locks cores (36 % of their top)"), ("1.59", "")]
)
def test_a_clock_far_below_the_top_is_told(tmp_path, core_ghz, locked):
    """A T4: 8.141 Tflop/s are two a cycle of 64 lanes on 40 multiprocessors, at 1590 MHz."""
    header = '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
    cells = '"0","k(int)","Tesla T4","7.5","GPU Speed Of Light Throughput"'
    told = [("Duration", "ms", "3.81"), ("SM Frequency", "Ghz", core_ghz), ("Executed Instructions", "inst", "1000000")]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([header, *(f'{cells},"{name}","{unit}","{value}"' for name, unit, value in told), ""]))
    assert locked_clock(View(eprof.load(path).energy(estimate=True).document())).replace("\u202f", " ") == locked


@pytest.mark.parametrize(
    ("capability", "told", "names"),
    [
        ("7.5", Traits(40, None, 5.0), ["Tesla T4", "T4"]),
        ("7.5", Traits(40, None, 7.0), ["GeForce RTX 2070 SUPER"]),
        ("7.5", Traits(40, None, 6.8), ["GeForce RTX 2070 SUPER"]),  # 448 GB/s on 256 bits: 7.00 GHz
        ("8.6", Traits(80, None, 6.25), ["A10G"]),
        ("9.0", Traits(None, None, 3.2), ["H200", "H200 NVL"]),
        ("9.0", Traits(78, None, 2.6), ["H20"]),
        ("8.6", Traits(None, None, 9.49, 1390.0), ["GeForce RTX 3090"]),  # 936.2 GB/s on 384 bits: 9.75 GHz
        ("12.0", Traits(36, None, 13.79), ["GeForce RTX 5060 Ti"]),  # 448 GB/s on 128 bits: 14.0 GHz
        ("12.0", Traits(36, None, 1.0), ["GeForce RTX 5060 Ti", "GeForce RTX 5070 Laptop GPU"]),  # of none
    ],
)
def test_the_clock_of_dram_tells_boards_apart_by_the_bus_that_they_would_have(capability, told, names):
    assert [sheet.name for sheet in sheets_with(capability, told)] == names


def test_shares_of_dram_and_of_l2_bound_their_bytes_on_the_board_that_the_statistics_tell(tmp_path):
    """A Tesla T4: 320 GB/s for 0.47 % of 96.32 ms are 145 MB, and it may draw 70 W."""
    limits = {"SM": 16, "Registers": 1, "Shared Mem": 16, "Warps": 1}
    rows = [("DRAM Frequency", "Ghz", "5.00"), ("SM Frequency", "Mhz", "584.99")]
    rows += [("Elapsed Cycles", "cycle", "56,344,784"), ("Duration", "msecond", "96.32")]
    rows += [("DRAM Throughput", "%", "0.47"), ("L2 Cache Throughput", "%", "0.40")]
    rows += [(f"Block Limit {what}", "block", f"{number}") for what, number in limits.items()]
    rows += [("Block Size", "", "1,024"), ("Grid Size", "", "1,024"), ("Waves Per SM", "", "25.60")]
    kernel = "sgemm(int, float *) (32, 32, 1)x(32, 32, 1), Context 1, Stream 7, Device 0, CC 7.5"
    energy = eprof.load(log_of(tmp_path, *page((kernel, *rows))).path).energy(estimate=True)
    assert energy.table.device == "Tesla T4"
    assert energy.counts.amounts["dram"][0] == pytest.approx(320e9 * 0.0047 * 96.32e-3)
    prices = prices_of(energy.costs)
    of_byte_j = max(prices[PRICED.index(word)] for word in ("l2_read", "l2_write"))
    l2_j = uncounted(energy.counts, energy.costs, energy.split, prices).groups["l2"][0]
    assert l2_j == pytest.approx(1.01 * 0.004 * 128 * 40 * 56344784 * of_byte_j)


@pytest.mark.parametrize("also_short", [False, True])
def test_launches_too_short_to_tell_the_peak_of_dram_do_not_raise_that_of_the_others(tmp_path, also_short):
    """250 GB/s, as both launches of 20 us tell; the short ones move bytes too, but their share of the peak says less."""
    launches = [("gemv", 20_000, 4_000_000), *[("gemv", 5_000, 625_000)] * also_short, ("copy", 20_000, 4_000_000)]
    rows = []
    for number, (kernel, ns, moved) in enumerate(launches):
        share = round(100 * moved / ns / 250, 2)
        metrics = [(TIME, "ns", ns), ("dram__bytes.sum", "byte", moved)]
        metrics += [("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%", share)]
        rows += [row(number, *metric, kernel=kernel) for metric in metrics]
    (counted,) = eprof.load(log_of(tmp_path, NEW, *rows).path).counted
    assert counted.device.told.dram_gb_per_s == pytest.approx(250, rel=1e-3)


def test_a_log_without_times_gets_them_counted(tmp_path):
    kernel = "conv(float *), 2023-May-07 14:53:47, Context 1, Stream 31"
    log = log_of(tmp_path, *page((kernel, ("dram__bytes_read.sum", "Mbyte", "9.45"))))
    tried = what_to_try(View(eprof.load(log.path).energy().document())).text
    assert "count with `ncu --set full --csv --page raw --log-file counts.csv PROGRAM`" in tried

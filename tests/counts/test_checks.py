"""Checks: healthy logs pass, tampered ones get one sentence for each check that fails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from test_counts_launches import make, real

from eprof.base.arrays import Columns
from eprof.base.vocabulary import Mark
from eprof.counts import counts, definition_files

HEALTHY = [
    ("gtx760-dev1-metrics-summary-lavamd.csv", "3.0"),
    ("k20c-metrics-summary.csv", "3.5"),
    ("k20c-events-summary-no-total.csv", "3.5"),
    ("titan-wide-trace-events-and-metrics.csv", "3.5"),
    ("k40c-wide-trace-events-only-no-units-row.csv", "3.5"),
    ("k40c-wide-trace-metrics-invalid-value.csv", "3.5"),
    ("gtx950-cuda8-metrics-summary-heartwall.csv", "5.2"),
    ("gtx1080-wide-trace-metrics-correlation-id.csv", "6.1"),
    ("gtx1080ti-cuda8-metrics-summary.csv", "6.1"),
    ("gtx1080ti-cuda8-metrics-summary-cublas-templates.csv", "6.1"),
    ("v100-events-and-metrics-summary-with-total.csv", "7.0"),
]


def tamper(launches, factors):
    counters = launches.counters
    factor = np.array([factors.get(name, 1) for name in counters.names])
    return replace(launches, counters=Columns(counters.names, counters.values * factor))


def check(launches, capability):
    return counts.check(launches, definition_files.find("nvprof", capability))


@pytest.mark.parametrize(("name", "capability"), HEALTHY)
def test_healthy_logs_pass(name, capability):
    assert check(real(name), capability) == []


@pytest.mark.parametrize(
    ("name", "capability", "factors", "message"),
    [
        (
            "k20c-metrics-summary.csv",
            "3.5",
            {"inst_executed": 0.02},  # beyond what any weighing of the launches' efficiencies could explain
            "32 * inst_executed * warp_nonpred_execution_efficiency",
        ),
        (
            "titan-wide-trace-events-and-metrics.csv",
            "3.5",
            {"inst_misc": 0.99},
            "not_predicated_off_thread_inst_executed",
        ),
        ("titan-wide-trace-events-and-metrics.csv", "3.5", {"l2_read_transactions": 1.1}, "L2 read metric is the sum"),
        (
            "titan-wide-trace-events-and-metrics.csv",
            "3.5",
            {"l2_subp2_read_tex_hit_sectors": 0, "l2_tex_read_transactions": 2},
            "texture",
        ),
        ("titan-wide-trace-events-and-metrics.csv", "3.5", {"fb_subp0_write_sectors": 1.2}, "DRAM write metric"),
        ("titan-wide-trace-events-and-metrics.csv", "3.5", {"l1_shared_load_transactions": 2}, "shared load metric"),
        ("titan-wide-trace-events-and-metrics.csv", "3.5", {"dram_read_transactions": 9}, "DRAM reads answer L2 reads"),
        ("gtx760-dev1-metrics-summary-lavamd.csv", "3.0", {"flop_count_dp_fma": 1.01}, "FP64 flops are adds"),
        ("gtx760-dev1-metrics-summary-lavamd.csv", "3.0", {"inst_fp_64": 0.9}, "some of the FP64 instructions"),
        ("gtx950-cuda8-metrics-summary-heartwall.csv", "5.2", {"inst_integer": 2}, "add up to all thread-level"),
        ("gtx950-cuda8-metrics-summary-heartwall.csv", "5.2", {"flop_count_sp_add": 1.1}, "FP32 flops are adds"),
        (
            "gtx1080-wide-trace-metrics-correlation-id.csv",
            "6.1",
            {"dram_read_bytes": 2},
            "DRAM reads are sectors of 32 B",
        ),
        (
            "gtx1080-wide-trace-metrics-correlation-id.csv",
            "6.1",
            {"l2_tex_read_transactions": 9},
            "some of all L2 reads",
        ),
        ("v100-events-and-metrics-summary-with-total.csv", "7.0", {"dram_write_transactions": 1.1}, "L2 write misses"),
    ],
)
def test_tampered_logs_fail(name, capability, factors, message):
    found = check(tamper(real(name), factors), capability)
    assert any(message in one for one in found), found


def test_the_sentence_has_the_numbers_and_the_worst_kernel():
    values = {"flop_count_dp": [10.0, 10.0, 30.0], "flop_count_dp_add": [0.0, 2.0, 10.0], "flop_count_dp_mul": 0.0}
    found = check(make(values | {"flop_count_dp_fma": 5.0}, names=["a(int)", "b", "c"]), "3.5")
    assert found == [
        "The counters contradict each other for 2 of 3 kernels; worst in `c`: FP64 flops are adds, multiplies and twice "
        "the multiply-adds, but flop_count_dp = 30 and flop_count_dp_add + flop_count_dp_mul + 2 * flop_count_dp_fma = 20 "
        "(33.3% apart)."
    ]


def test_rounded_averages_of_many_launches_are_forgiven():
    values = {"flop_count_dp": 13917, "flop_count_dp_add": 652, "flop_count_dp_mul": 0, "flop_count_dp_fma": 6632}
    off = {name: 20.0 * value for name, value in values.items()}
    assert check(make(off, launches=20), "5.2") == []
    tiny = {"flop_count_dp": 20.0, "flop_count_dp_add": 0.0, "flop_count_dp_mul": 0.0, "flop_count_dp_fma": 0.0}
    assert check(make(tiny, launches=20), "5.2") == []
    assert len(check(make(tiny, launches=1), "5.2")) == 1


def test_incomplete_sums_are_not_checked():
    values = {"flop_count_dp": 20.0, "flop_count_dp_add": 0.0, "flop_count_dp_mul": 0.0, "flop_count_dp_fma": 0.0}
    assert check(make(values, marks={"flop_count_dp_fma": [int(Mark.MISSING)]}), "5.2") == []


def test_checks_without_their_counters_do_not_run():
    assert check(make({"flop_count_dp": 5.0}), "3.5") == []
    assert check(make({}), "7.0") == []


@given(st.lists(st.tuples(st.integers(100, 10**6), st.integers(1, 32)), min_size=1, max_size=5))
def test_launches_that_agree_each_agree_in_sums_whatever_they_weigh(launches):
    """A short launch weighs as much in the mean of a percentage as a long one, and that is no contradiction."""
    classes = ("fp_32", "fp_64", "bit_convert", "control", "compute_ld_st", "inter_thread_communication", "misc")
    values = {
        **{f"inst_{name}": 0 for name in classes},
        "inst_integer": sum(warps * threads for warps, threads in launches),
        "inst_executed": sum(warps for warps, _ in launches),
        "warp_nonpred_execution_efficiency": 100 * sum(threads for _, threads in launches) / 32 / len(launches),
    }
    assert check(make(values, launches=len(launches)), "3.5") == []
    beyond = {**values, "inst_integer": 40 * values["inst_executed"]}
    assert len(check(make(beyond, launches=len(launches)), "3.5")) == 1


@pytest.mark.parametrize("definition", definition_files.definitions(), ids=lambda one: one.name)
def test_every_check_can_fail(definition):
    """Every check has values that break it."""
    for one in definition.checks:
        alone = replace(definition, checks=(one,))
        names = sorted(definition.counters_of(one.left) + definition.counters_of(one.right))
        samples = ({name: (1e6 if name == high else 3.0) for name in names} for high in names)
        assert any(counts.check(make(values), alone) for values in samples), one.note

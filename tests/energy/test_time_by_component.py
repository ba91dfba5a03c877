"""Time by component ([S] 5.5) and the peak of a kernel's own mix ([T] 3.4.4): closed forms and printed numbers."""

import tomllib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import eprof
from eprof.costs import load
from eprof.energy.time_by_component import COMPONENTS, GpuAtSetting, Work, components, gpu_at_setting, seconds
from eprof.profile.rooflines import mix_peak_flop_per_s

ROOT = Path(__file__).parents[2]
ONE = np.ones(1)
UNKNOWN = np.full(1, np.nan)
C2075 = GpuAtSetting(
    replace(load("gtx580").multiprocessors, number=14, latency_cycles=600.0), core_hz=1.15e9, byte_per_s=144e9
)
WARPS = 3584 * 4
REDUCTION = Work(
    blocks=3584 * ONE,
    threads=128 * ONE,
    registers=16 * ONE,
    shared_byte=512 * ONE,
    occupancy=UNKNOWN,
    instructions={"fp32": 40 * 32 * WARPS * ONE, "special": 2 * 32 * WARPS * ONE},
    loads=2 * WARPS * ONE,
    stores=0.25 * WARPS * ONE,
    shared=10 * WARPS * ONE,
    conflicts=6 * WARPS * ONE,
    texture=0 * ONE,
    texture_misses=0 * ONE,
    dram_byte=0 * ONE,
)


def test_the_closed_form_of_a_c2075():
    """The example that was worked out by hand for [S] 5.5, every number to its printed digits."""
    result = components(REDUCTION, C2075)
    rounds = 32
    of_a_round = {name: float(result.cycles[name][0]) / rounds for name in COMPONENTS}
    assert C2075.byte_per_cycle == pytest.approx(8.944, abs=5e-4)
    assert C2075.departure_cycles == pytest.approx(14.311, abs=5e-4)
    assert C2075.hiding_warps == pytest.approx(41.9, abs=0.05)
    assert result.rounds[0] == rounds and result.active_warps[0] == 32
    assert of_a_round["loads"] == pytest.approx(614.31, abs=5e-3)
    assert of_a_round["computation"] == pytest.approx(32 * 56)
    assert of_a_round["shared"] + of_a_round["conflicts"] == pytest.approx(1024)
    assert of_a_round["stores"] == pytest.approx(3.58, abs=5e-3)
    assert result.total[0] / rounds == pytest.approx(3433.89, abs=5e-3)
    assert result.total[0] == pytest.approx(109_884, abs=0.5)
    assert seconds(result, C2075, ONE)[0] == pytest.approx(95.552e-6, abs=5e-10)
    assert result.cycles["conflicts"][0] / result.total[0] == pytest.approx(0.1118, abs=5e-5)
    assert result.missing == ((),)


def test_the_peak_of_the_fmm_on_a_gtx_580():
    """[T] 3.4.4: three FMAs, four adds and a root: 32 flops a cycle and multiprocessor, 788 Gflop/s."""
    machine = gpu_at_setting(load("gtx580").at())
    peak = mix_peak_flop_per_s({"fp32_fma": 3 * ONE, "fp32_add": 4 * ONE, "special": ONE}, machine)[0]
    assert peak / machine.core_hz / 16 == pytest.approx(32)
    assert int(peak / 1e9) == 788


def test_the_peak_of_fmas_is_that_of_the_table():
    """Of nothing but FMAs it is the roof: [T] table 3 prints 1581.06 Gflop/s, the clock of the text gives 1577."""
    costs = load("gtx580").at()
    peak = mix_peak_flop_per_s({"fp32_fma": ONE}, gpu_at_setting(costs))[0]
    assert peak / 1e9 == pytest.approx(costs.peaks.sp_gflops, rel=0.003)
    assert np.isnan(mix_peak_flop_per_s({"integer": ONE}, gpu_at_setting(costs))[0])


def test_bytes_that_dram_cannot_deliver_are_waited_for():
    """The time is then that of the bandwidth, and nothing else changes."""
    moved = replace(REDUCTION, dram_byte=144e9 * ONE)
    result = components(moved, C2075)
    assert seconds(result, C2075, ONE)[0] == pytest.approx(1.0)
    assert result.cycles["loads"][0] == components(REDUCTION, C2075).cycles["loads"][0]


def test_without_a_launch_shape_one_round_of_the_warps_that_were_active():
    work = replace(REDUCTION, blocks=UNKNOWN, threads=UNKNOWN, conflicts=UNKNOWN, occupancy=0.5 * ONE)
    result = components(work, C2075)
    assert result.rounds[0] == 1 and result.active_warps[0] == 24
    assert result.missing == (("launch shape", "bank conflicts"),)
    # What a warp does each for itself does not depend on how many there are at a time.
    assert result.cycles["computation"][0] == pytest.approx(components(REDUCTION, C2075).cycles["computation"][0])


@pytest.mark.parametrize(
    ("change", "warps"),
    [
        ({}, 32),  # eight blocks, the most
        ({"threads": 512 * ONE, "blocks": 896 * ONE}, 48),  # all warps
        ({"registers": 63 * ONE}, 16),  # 32768 / (63 * 128)
        ({"shared_byte": 16384 * ONE}, 12),  # three blocks
        ({"loads": 100 * WARPS * ONE, "threads": 512 * ONE, "blocks": 896 * ONE}, 32),  # Little's law: 41.9
        ({"blocks": 14 * ONE}, 4),  # no more blocks than there are
    ],
)
def test_what_limits_active_warps(change, warps):
    assert components(replace(REDUCTION, **change), C2075).active_warps[0] == warps


def test_texture_misses_take_a_load():
    """[S] 5.9: a cycle an address, and the penalty of a global load."""
    hits = components(replace(REDUCTION, texture=WARPS * ONE), C2075)
    misses = components(replace(REDUCTION, texture=WARPS * ONE, texture_misses=WARPS * ONE), C2075)
    assert hits.cycles["texture"][0] == pytest.approx(32 * 32)
    assert misses.cycles["texture"][0] == pytest.approx(32 * (32 + 600))


@given(factor=st.floats(1, 100), conflicts=st.floats(0, 1e9))
def test_more_work_never_takes_less(factor, conflicts):
    more = replace(REDUCTION, conflicts=(6 * WARPS + conflicts) * ONE, dram_byte=1e6 * factor * ONE)
    assert components(more, C2075).total[0] >= components(REDUCTION, C2075).total[0] * (1 - 1e-12)
    assert (components(more, C2075).cycles.values >= 0).all()


# ---- docs/time-components.md by hand: no function of eprof, but what a report and a table say

SAMPLES = ROOT / "samples" / "logs" / "invented"
FMM = [str(SAMPLES / name) for name in ("tk1-fmm-counters.csv", "tk1-fmm-times.csv")]
UNITS = {"integer": "integer", "special": "special", "conversion": "conversion"}
NO_COMPUTATION = ("load_store", "tensor", "warp_issue")


def by_hand(kernel, table, peak_byte_per_s):
    """Cycles of a kernel by component, of a log without launch shapes: as many warps as fit, in one round."""
    units = table["time_components"]
    count = {word: cell["value"] / kernel["launches"] for word, cell in kernel["counts"].items() if cell["value"]}

    def byte(*words):
        return sum(count.get(word, 0) for word in words)

    served = table["books"] == "served"
    loads = byte("l1_read", "l2_read", "dram_read") if served else byte("l1_read")
    stores = byte("l2_write", "dram_write") if served else byte("l2_write")
    transactions, every_warp = units["transaction_byte"], units["warps"] * units["number"]
    computation = 0.0
    for word, threads in count.items():
        if kernel["counts"][word]["unit"] == "instruction" and word not in NO_COMPUTATION:
            kind = word.partition("_")[0] if word.startswith("fp") else UNITS.get(word, "fp32")
            computation += threads / units["lanes"].get(kind, units["lanes"]["fp32"])
    apart = transactions / (peak_byte_per_s / (units["number"] * CORE_MHZ[table["name"]] * 1e6))
    cycles = {
        "loads": units["latency_cycles"] + (loads / transactions / every_warp - 1) * apart if loads else 0,
        "computation": computation / units["number"],
        "shared": byte("shared_read", "shared_write")
        / (32 * 4)
        / (units["lanes"]["load_store"] / 32)
        / units["number"],
        "stores": stores / transactions / every_warp * apart,
    }
    dram = byte("dram_read", "dram_write", "dram") / (peak_byte_per_s / (CORE_MHZ[table["name"]] * 1e6))
    cycles |= {"conflicts": 0, "texture": 0, "bandwidth": max(0, dram - sum(cycles.values()))}
    return {part: kernel["launches"] * number for part, number in cycles.items()}


CORE_MHZ = {"jetson-tk1": 852, "gtx680": 1150, "v100": 1380}
# Bytes of DRAM in 1e9 a second, as `[peak]` of each table has them at its usual setting.
PEAK = {"jetson-tk1": 14.784, "gtx680": 192.2, "v100": 898.048}


@pytest.mark.parametrize("name", list(CORE_MHZ))
def test_every_kernel_can_be_recomputed_by_hand(name):
    table = tomllib.loads((ROOT / "costs" / f"{name}.toml").read_text())
    table["name"] = name
    document = eprof.load(*FMM, cache=False).energy(name, by_component=True).document()
    made = document["time_components"]
    assert made["core_mhz"] == CORE_MHZ[name] and len(made["kernels"]) == 6
    seen = set()
    for kernel, of_kernel in zip(document["kernels"], made["kernels"], strict=True):
        expected = by_hand(kernel, table, PEAK[name] * 1e9)
        assert of_kernel["cycles"] == pytest.approx(expected), kernel["name"]
        seconds_ = sum(expected.values()) / (CORE_MHZ[name] * 1e6)
        assert of_kernel["time_s"] == pytest.approx(seconds_)
        seen |= {word for word, cell in kernel["counts"].items() if cell["value"]}
    assert {"control", "misc", "integer", "fp64_other", "load_store"} <= seen

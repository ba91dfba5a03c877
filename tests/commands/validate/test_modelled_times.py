"""Modelled against measured times: by component and the roofline's, on made-up rows and on public counts."""

from pathlib import Path

import pandas as pd
import pytest

from eprof import costs
from eprof.base.errors import CostError, EprofError
from eprof.commands.validate import words
from eprof.commands.validate.study import AS_SIMULATED, BY_COMPONENT, ROOFLINE, UNBOUND, times
from eprof.lab import measurements
from eprof.show.blocks import Sentence

POWER = Path(__file__).parents[4] / "shared" / "data" / "power"
CORE_MHZ, MEMORY_MHZ = 1000.0, 1000.0
BYTES_PER_S = 64 * MEMORY_MHZ * 1e6
ROW = {
    "bench_name": "made",
    "arg_set": "up",
    "kernel": "moves",
    "core_mhz": CORE_MHZ,
    "mem_mhz": MEMORY_MHZ,
    "time_ms": 2.0,
    "power_w": 80.0,
    "n_fp32_thread_inst": 1e6,
    "n_fp64_thread_inst": 0,
    "n_int_thread_inst": 1e6,
    "n_sfu_sp": 0,
    "n_warp_inst": 1e5,
    "n_cf_inst": 100,
    "n_flop_sp": 1e6,
    "n_flop_dp": 0,
    "n_shared_ld_trans": 0,
    "n_shared_st_trans": 0,
    "n_gld_trans": 1,
    "n_gst_trans": 1,
    "n_tex_trans": 1e6,
    "n_l2_rd_trans": 1e6,
    "n_l2_wr_trans": 1e6,
    "n_dram_rd_trans": 1e6,
    "n_dram_wr_trans": 1e6,
    "achieved_occupancy": 0.5,
}


def read(tmp_path, **changed):
    path = tmp_path / "rows.csv"
    pd.DataFrame([{**ROW, **changed}, {**ROW, **changed, "kernel": "moves again"}]).to_csv(path, index=False)
    return measurements.read(path, mapping="nvdvfs-counts")


def test_a_kernel_that_only_moves_bytes_takes_their_time(tmp_path):
    """64 MB at the peak of 64 GB/s are 1 ms, half of what was measured; the model and the roofline agree."""
    assert pytest.approx(64e6 / BYTES_PER_S) == 1e-3
    scored = times(costs.load("gtx980"), read(tmp_path))
    for model in (BY_COMPONENT, ROOFLINE):
        assert scored.scores[model].mean_percent == pytest.approx(50)
        assert scored.scores[model].bias_percent == pytest.approx(-50)
    assert scored.scores[AS_SIMULATED].bias_percent == pytest.approx(100)
    assert scored.scores[UNBOUND].mean_percent > 50
    assert scored.scores[BY_COMPONENT].rmse_w is None
    assert scored.missing == ["launch shape"]  # and no shared memory, so no conflicts


def test_a_kernel_that_only_computes_takes_its_instructions(tmp_path):
    """4e9 integer instructions on 16 x 128 lanes at 1 GHz: 1.953 ms; the roofline knows no integers."""
    scored = times(costs.load("gtx980"), read(tmp_path, n_int_thread_inst=4e9, time_ms=4e9 / 16 / 128 / 1e6))
    assert scored.scores[BY_COMPONENT].bias_percent == pytest.approx(0, abs=2)  # and the wait for loads
    assert scored.scores[ROOFLINE].mean_percent > 40


def test_what_cannot_be_scored(tmp_path):
    with pytest.raises(CostError, match=r"a100 does not describe multiprocessors"):
        times(costs.load("a100"), read(tmp_path))
    without = pd.read_csv(tmp_path / "rows.csv").drop(columns="n_flop_sp")
    without.to_csv(tmp_path / "without.csv", index=False)
    with pytest.raises(EprofError, match="does not say what flops these rows did"):
        times(costs.load("gtx980"), measurements.read(tmp_path / "without.csv", mapping="nvdvfs-counts"))


@pytest.mark.parametrize(
    ("data", "table", "by_component", "roofline"),
    [
        ("gtx980_low", "gtx980", 22.8, 39.9),
        ("gtx980_high", "gtx980", 29.1, 55.8),
        ("gtx1080ti", "gtx1080ti", 31.4, 54.5),
        ("p100", "p100", 38.2, 66.2),
        ("v100", "v100", 35.5, 52.6),
    ],
)
def test_the_errors_that_the_document_tells(data, table, by_component, roofline):
    path = POWER / f"nvdvfs_counts_{data}.csv"
    if not path.exists():
        pytest.skip("needs the public counts, which are not part of this project")
    scored = times(costs.load(table), measurements.read(path, device=costs.load(table).devices[0]))
    assert scored.scores[BY_COMPONENT].mean_percent == pytest.approx(by_component, abs=0.05)
    assert scored.scores[ROOFLINE].mean_percent == pytest.approx(roofline, abs=0.05)
    assert not scored.scores[BY_COMPONENT].missing
    assert scored.missing == ["launch shape", "bank conflicts"]


def test_rows_at_clocks_that_the_table_has_not_are_told(tmp_path):
    scored = times(costs.load("v100"), read(tmp_path))
    assert {scores.n for scores in scored.scores.values()} == {0}
    said = [block.text for block in words.times(scored) if isinstance(block, Sentence)]
    assert said[0] == "No row has a modelled time: the cost table has none of these settings, or rows lack counts."
    known = words.times(times(costs.load("gtx980"), read(tmp_path)))
    assert not any("No row" in block.text for block in known if isinstance(block, Sentence))

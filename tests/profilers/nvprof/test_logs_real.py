"""Real logs: each is read or refused with one sentence, and values agree with what the files say."""

import csv
from functools import cache

import numpy as np
import pytest
from frames_support import combine
from logs_support import NAMES, ONE_BY_ONE, TINY, TOGETHER, cell, picture, read, read_tuned, real, unit
from msgspec.structs import replace

from eprof.base.errors import LogError
from eprof.logs import read_columns
from eprof.profile import api

pytestmark = pytest.mark.skipif(not NAMES, reason="needs the real logs, which are not part of this project")


def rows_below(name, start):
    """The CSV rows of a real log after the first line that starts with `start`, read on its own."""
    with real(name).open() as log:
        lines = iter(log)
        header = next(line for line in lines if line.startswith(start))
        return next(csv.reader([header])), [row for row in csv.reader(lines)]


@pytest.mark.parametrize("name", NAMES)
def test_every_real_file_is_read_or_refused_with_one_sentence(name):
    try:
        log = read(real(name))
    except LogError as err:
        assert (
            str(err).startswith(str(real(name))) and "\n" not in str(err) and len(str(err)) > len(str(real(name))) + 20
        )
        return
    assert log.tables and log.format == "+".join(table.kind for table in log.tables)
    launches = combine([log])
    assert len(launches.kernels) and (launches.kernels["launches"] > 0).all()
    assert all("\n" not in note for note in log.notes)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tuning", [TOGETHER, TINY], ids=["together", "tiny blocks"])
def test_how_much_is_read_at_once_changes_nothing(name, tuning):
    size = real(name).stat().st_size
    if tuning is TINY and size > 20_000:
        # Shorter than any row still, but for the longest logs.
        tuning = replace(TINY, chunk_bytes=61 if size < 50_000 else 499 if size < 200_000 else 1499)
    assert outcome(name, tuning) == one_by_one(name)


def outcome(name, tuning):
    try:
        return picture(read_tuned(real(name), tuning))
    except LogError as err:
        return str(err)


@cache
def one_by_one(name):
    return outcome(name, ONE_BY_ONE)


def test_metrics_summary_of_a_k20c():
    log = read(real("k20c-metrics-summary.csv"))
    assert (log.format, log.lines, log.skipped_lines, log.command) == ("nvprof-metrics-summary", 130, 0, "./test")
    assert cell(log, "flop_count_sp") == 2 * 36134886144
    assert cell(log, "dram_read_transactions") == 2 * 44206708
    assert (cell(log, "gst_requested_throughput"), unit(log, "gst_requested_throughput")) == (20.741408e9, "byte_per_s")
    assert (cell(log, "sm_efficiency"), unit(log, "sm_efficiency")) == (97.188709, "percent")
    assert (cell(log, "ldst_fu_utilization"), unit(log, "ldst_fu_utilization")) == (6, "level")


def test_events_summary_without_total_multiplies_by_launches():
    log = read(real("k20c-events-summary-no-total.csv"))
    assert cell(log, "tex0_cache_sector_queries") == 2 * 28622496
    assert cell(log, "__l1_global_store_transactions") == 2 * 19781019
    assert cell(log, "atom_count") == 0


def test_events_and_metrics_in_one_log_keep_their_own_columns():
    log = read(real("v100-events-and-metrics-summary-with-total.csv"))
    assert log.format == "nvprof-events-summary+nvprof-metrics-summary"
    assert cell(log, "inst_executed") == 458752
    assert cell(log, "l2_subp1_read_sector_misses") == 123061
    assert cell(log, "dram_write_transactions") == 142439
    assert [len(table.rows) for table in log.tables] == [1, 1]


def test_units_may_differ_between_min_max_and_avg():
    log = read(real("gtx1080ti-cuda8-metrics-summary.csv"))
    assert cell(log, "flop_count_sp") == 20 * 1792106581
    assert cell(log, "sysmem_write_throughput") == 0
    assert cell(log, "l2_utilization") == 4


def test_second_device_and_a_valid_zero():
    log = read(real("gtx760-dev1-metrics-summary-lavamd.csv"))
    assert cell(log, "flop_count_sp") == 0 and unit(log, "flop_count_sp") == "count"
    assert list(log.tables[0].rows.frame()["device"]) == ["GeForce GTX 760 (1)"]


def test_template_names_with_commas():
    kernels = combine([read(real("gtx1080ti-cuda8-metrics-summary-cublas-templates.csv"))]).kernels["kernel"]
    assert any(name.startswith("void gemm_kernel2x2_tile_multiple_core<double, bool=1,") for name in kernels)
    assert len(kernels) == 4


def test_wide_trace_by_names():
    log = read(real("gtx1080-wide-trace-metrics-correlation-id.csv"))
    assert cell(log, "elapsed_cycles_sm") == 89355 and cell(log, "inst_per_warp") == 10.75
    assert cell(log, "gld_requested_throughput") == pytest.approx(435.219311 * 2**20)
    assert "Correlation_ID" not in log.tables[0].counters.frame()
    assert list(log.tables[0].rows.frame()["kernel"]) == ["_Z6vecAddIfEvPT_S1_S1_i"]


def test_wide_trace_by_descriptions():
    names = {"Executed  ipc": "ipc", "Multiprocessor Activity": "sm_efficiency"}
    log = read(real("k40c-wide-trace-metrics-invalid-value.csv"), names=names)
    assert cell(log, "sm_efficiency") == 54.991268 and cell(log, "ipc") == 0.269401
    assert "Executed IPC" not in log.tables[0].counters.frame()
    assert np.isnan(cell(log, "Local Memory Overhead"))
    assert "Local Memory Overhead: 1 cell <INVALID>, taken as missing" in log.notes


def test_a_description_twice_with_other_values_is_kept_apart():
    log = read(real("titan-wide-trace-events-and-metrics.csv"))
    table = log.tables[0]
    apart = [label for label in table.counters.names if label.endswith(" (2)")]
    for label in apart:
        assert not table.counters.frame()[label].equals(table.counters.frame()[label.removesuffix(" (2)")])
        assert any(f"`{label}`" in note for note in log.notes)
    assert cell(log, "tex0_cache_sector_queries", "__kernel___forma_kernel__0__") == 3943424


def test_wide_trace_without_units_row_keeps_its_first_launch():
    header, rows = rows_below("k40c-wide-trace-events-only-no-units-row.csv", '"Device"')
    log = read(real("k40c-wide-trace-events-only-no-units-row.csv"))
    launches = combine([log])
    assert len(rows) == 253 and launches.kernels["launches"].tolist() == [253]
    for place, label in enumerate(header[4:], 4):
        assert launches.counters[label][0] == sum(int(row[place]) for row in rows)
        assert launches.units[label] == "count"


def test_wide_trace_with_an_empty_units_row():
    log = read(real("titanx-pascal-wide-trace-two-flop-metrics.csv"))
    assert cell(log, "flop_count_sp") == 10756893856 and cell(log, "flop_count_dp") == 0
    assert list(log.tables[0].rows.frame()["device"]) == ["TITAN X (Pascal) (0)"]


def test_gpu_trace_scales_by_its_units_and_strips_launch_ids():
    log = read(real("k20c-gpu-trace.csv"))
    kernels = combine([log]).kernels.set_index("kernel")
    first = kernels.loc["__kernel___forma_kernel__0__(float*, int, int, float*, int, int, float*)"]
    assert first["launches"] == 3
    assert first["time_s"] == pytest.approx((13.091854 + 13.079533 + 13.089741) * 1e-3)
    assert any("3 [CUDA memcpy HtoD] (122.367 ms)" in note for note in log.notes)


def test_gpu_trace_in_nanoseconds():
    kernels = combine([read(real("k40c-gpu-trace-ns-gb-units.csv"))]).kernels
    assert kernels["time_s"].tolist() == pytest.approx([18171856e-9])


def test_prefixed_runs_and_a_failed_one():
    log = read(real("gt630-gpu-trace-many-runs-one-failed-prefixed.csv"))
    assert log.tables[0].rows.frame()["run"].tolist() == [0, 1, 2, 3, 4] and log.skipped_lines == 0
    seconds = [1.015436e-03, 9.946846e-03, 0.098359, 0.952754, 7.741216]
    assert log.tables[0].rows.frame()["time_s"].tolist() == pytest.approx(seconds)
    assert any("aborted itself (signal 134)" in note for note in log.notes)
    assert log.runs == 5, "not the two that launched nothing"


def test_unified_memory_rows_are_no_kernels():
    header, rows = rows_below("titan-xp-gpu-trace-unified-memory-columns.csv", '"Start"')
    kernels = [row for row in rows[1:] if row[2]]
    log = read(real("titan-xp-gpu-trace-unified-memory-columns.csv"))
    joined = combine([log]).kernels
    assert joined["launches"].sum() == len(kernels)
    assert joined["time_s"].sum() == pytest.approx(sum(float(row[1]) for row in kernels) * 1e-3)
    assert any("[Unified Memory GPU page faults]" in note for note in log.notes)


def test_gpu_summary_old_and_new():
    old = combine([read(real("gtx1070-gpu-summary-srad.csv"))]).kernels.set_index("kernel")
    assert old.loc["reduce(long, int, int, float*, float*)", "time_s"] == pytest.approx(1069.573e-6)
    assert old.loc["reduce(long, int, int, float*, float*)", "launches"] == 200 and len(old) == 6
    new = combine([read(real("titan-xp-gpu-summary-type-column-api-unified-memory.csv"))]).kernels
    assert new["time_s"][0] == pytest.approx(304.577034e-3) and new["launches"][0] == 6000
    assert len(new) == 4 and set(new["device"]) == {"TITAN Xp (0)"}, "as the totals of Unified Memory say"


def test_summary_saved_without_quotes():
    log = read(real("summary-unquoted-hand-edited.csv"))
    kernels = combine([log]).kernels
    assert kernels["time_s"].tolist() == pytest.approx([0.23743, 0.23726]) and kernels["launches"].tolist() == [
        150,
        150,
    ]
    assert kernels["kernel"][0].endswith("float*, float, int, int, int)")
    assert not log.tables[0].lacks_rows, "what has no line end is a row of copies"
    assert any("rounded" in note for note in log.notes)


def test_rows_without_header_are_read_with_a_list_of_columns():
    columns = read_columns(real("columns-for-headerless-rows-events-2x.csv"))
    log = read(real("gt630-dev1-events-rows-headerless.csv"), columns=columns)
    joined = combine([log])
    assert joined.kernels["device"].tolist() == ["GeForce GT 630 (1)"] and joined.kernels["launches"].tolist() == [3]
    assert joined.counters["gld_request"].tolist() == [65536 + 524288 + 1769472]
    assert "Input Size" not in joined.counters


@pytest.mark.parametrize(
    "name", ["titanblack-dev2-overflow-and-invalid-rows.csv", "k40c-overflow-rows-prefixed-unquoted.csv"]
)
def test_overflow_in_rows_without_header(name):
    """The list of columns has one in front that only one of the two files has in its rows."""
    columns = read_columns(real("columns-for-headerless-rows-metrics-3x.csv"))
    log = read(real(name), columns=columns)
    assert any(note.startswith("Achieved Occupancy: ") and "<OVERFLOW>" in note for note in log.notes)
    assert log.tables[0].units["Global Load Throughput"] == "other" and log.skipped_lines == 0


def test_rows_without_header_are_refused_without_a_list():
    with pytest.raises(LogError, match="have no header line .*pass --columns FILE"):
        read(real("gt630-dev1-events-rows-headerless.csv"))


def test_sqlite_export():
    log = read(real("volta-sqlite-kernel-metric-tables.nvvp.gz"))
    kernels = combine([log]).kernels
    assert log.format == "nvprof-sqlite-counted" and kernels["launches"].tolist() == [100]
    assert kernels["device"].tolist() == ["Tesla V100-SXM2-32GB (0)"]
    assert kernels["time_s"].tolist() == [pytest.approx(3579064e-9)]
    assert combine([log]).counters["flop_count_dp"].tolist() == [100 * 20_000]  # as nvprof 11.8 prints it


def test_text_metrics():
    log = read(real("text-gtx1070-metrics-thrust-templates.txt"))
    assert log.tables[0].counters.frame()["dram_read_throughput"].tolist() == pytest.approx(
        [1.1651 * 2**30, 2.1467 * 2**30]
    )
    assert log.tables[0].counters.frame()["gld_efficiency"].tolist() == [22.92, 47.47]
    other = read(real("text-p100-metrics-no-csv.txt"))
    assert other.tables[0].rows.frame()["launches"].tolist() == [1255, 53832]
    assert any("results might be incorrect" in note for note in other.notes)


def test_text_trace():
    log = read(real("text-p100-gpu-trace.txt"))
    joined = combine([log]).kernels
    assert joined["time_s"][0] == pytest.approx((1.5863 + 1.5971 + 1.5967 + 1.5948) * 1e-3)
    assert joined["kernel"].tolist() == ["__kernel___forma_kernel__0__(float*, int, int, float*)"]
    assert joined["device"].tolist() == ["Tesla P100-PCIE"] and log.skipped_lines == 0  # cut, of one GPU alone
    assert any("4 or 5 digits" in note for note in log.notes)


def test_text_summaries():
    joined = combine([read(real("text-summary-type-column.txt"))]).kernels
    assert joined["kernel"][0] == "fill(void)" and joined["time_s"][0] == pytest.approx(2.2027e-3) and len(joined) == 6
    many = read(real("text-v100-nbody-several-runs.txt"))
    joined = combine([many]).kernels.set_index("kernel")
    assert many.runs == 7 and not many.tables[0].lacks_rows
    assert many.command == "./nbody 15", "of its two kernels' runs the one that takes 99.6 % of the time"
    (start,) = (calls for calls in many.calls_of_host if calls.name == "cudaMallocManaged")
    assert (start.runs, start.time_s) == (7, pytest.approx(1.12652)), "of all runs, as kernels are"
    forces = api.load(real("text-v100-nbody-several-runs.txt")).energy().document()["kernels"][0]
    assert forces["launch_s"] == pytest.approx([461.91e-6, 124.52e-3]), "Min of one run, Max of another"
    assert joined.loc["bodyForce(Body*, float, int)", "launches"] == 20
    assert joined.loc["bodyForce(Body*, float, int)", "time_s"] == pytest.approx(4.6211e-3 + 1.10627)

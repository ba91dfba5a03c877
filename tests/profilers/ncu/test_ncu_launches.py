"""What follows from the metrics of each launch of ncu: totals of rates, times, clocks. Made-up logs, and real ones."""

import numpy as np
import pytest
from conftest import SHARED
from frames_support import combine
from logs_support import read_tuned
from test_ncu_logs import FFMA, NEW, SUMMARY, TIME, log_of, row, wide

import eprof
from eprof import logs
from eprof.base.vocabulary import Mark
from eprof.commands.report.advice import worth_trying
from eprof.commands.report.view import View
from eprof.counts import counts, definition_files
from eprof.logs import many, read
from eprof.logs.stream import Tuning
from eprof.profile.document import document
from eprof.show.numbers import percent, quantity

RATE, CYCLES = f"{FFMA}.per_cycle_elapsed", "smsp__cycles_elapsed.avg"
OPCODES = "sass__thread_inst_executed_true_per_opcode"
THROUGHPUT = "Memory Throughput"
IN_USE = definition_files.names_in_use("ncu")
UNLIKE = ((1000, 100), (10, 10_000))  # cycles and a rate a cycle: 200,000 instructions
TRUTH = sum(cycles * rate for cycles, rate in UNLIKE)
ESTIMATED, MISSING = int(Mark.ESTIMATED), int(Mark.MISSING)


def counted(log, capability="8.0"):
    return counts.count(logs.combine([log]), definition_files.find("ncu", capability))


def unlike_rows(*more):
    return [
        row(number, *cells)
        for number, (cycles, rate) in enumerate(UNLIKE)
        for cells in ((RATE, "inst/cycle", f"{rate}.0"), (CYCLES, "cycle", cycles), (TIME, "ns", cycles), *more)
    ]


def test_a_clock_and_a_time_stand_in_for_cycles(tmp_path):
    """1 GHz, and as many ns as cycles. That clock, not the highest that the GPU has."""
    rows = [(n, 7, "axpy", rate, 1e9, cycles, 2e6) for n, (cycles, rate) in enumerate(UNLIKE)]
    names = (RATE, "sm__cycles_elapsed.avg.per_second", TIME, "device__attribute_max_gpu_frequency_khz")
    text = wide(*rows, names=names, units=("inst/cycle", "hz", "ns", ""))
    found = counted(log_of(tmp_path, text, keep=IN_USE))
    assert found.table["fp32_fma"].tolist() == [pytest.approx(TRUTH)]
    assert found.marks["fp32_fma"].tolist() == [ESTIMATED]


@pytest.mark.parametrize("page", ["long", "raw", "folded"])
def test_rates_of_unlike_launches_are_made_totals_launch_by_launch(tmp_path, page):
    if page == "raw":
        rows = [(n, 7, "axpy", rate, cycles, cycles) for n, (cycles, rate) in enumerate(UNLIKE)]
        text = wide(*rows, names=(RATE, CYCLES, TIME), units=("inst/cycle", "cycle", "ns"))
    else:
        text = "\n".join([NEW, *unlike_rows()]) + "\n"
    path = tmp_path / "log.csv"
    path.write_text(text)
    if page == "folded":
        log = read_tuned(path, Tuning(fold_rows=8, chunk_bytes=256), keep=IN_USE)
    else:
        log = read(path, keep=IN_USE)
    found = counted(log)
    assert found.table["fp32_fma"].tolist() == [TRUTH]
    assert found.marks["fp32_fma"].tolist() == [ESTIMATED]


def test_counters_of_unlike_launches_do_not_contradict_each_other(tmp_path):
    names = (
        f"{OPCODES}",
        *(f"{RATE.replace('ffma', kind)}" for kind in ("ffma", "fadd", "fmul", "dfma", "dadd", "dmul")),
    )
    rows = [
        (n, 7, "axpy", f"{cycles * rate} (FFMA: {cycles * rate})", rate, 0, 0, 0, 0, 0, cycles, cycles)
        for n, (cycles, rate) in enumerate(UNLIKE)
    ]
    units = ("inst", *["inst/cycle"] * 6, "cycle", "ns")
    log = log_of(tmp_path, wide(*rows, names=(*names, CYCLES, TIME), units=units), keep=IN_USE)
    assert combine([log]).counters[f"{RATE}[total]"].tolist() == [TRUTH]
    assert counts.check(logs.combine([log]), definition_files.find("ncu", "9.0")) == []


def test_a_launch_without_its_cycles_leaves_a_lower_bound(tmp_path):
    lines = [line for line in unlike_rows() if not (line.startswith('"1"') and CYCLES in line)]
    found = counted(log_of(tmp_path, NEW, *lines, keep=IN_USE))
    assert found.table["fp32_fma"].tolist() == [100_000] and found.marks["fp32_fma"].iloc[0] & MISSING


@pytest.mark.parametrize(("invocations", "known"), [(1, True), (2, False)])
def test_the_mean_rate_of_a_summary_tells_no_total(tmp_path, invocations, known):
    start = f'"7","prog","host","axpy","(32,1,1)","(64,1,1)","0","8.0","{invocations}","Command line"'
    cells = ((RATE, "inst/cycle", "5,050.00"), (CYCLES, "cycle", "505.00"), (FFMA.replace("ffma", "fadd"), "inst", "1"))
    rows = [f'{start},"{name}","{unit}","0","0","{value}"' for name, unit, value in cells]
    log = log_of(tmp_path, SUMMARY, *rows, keep=IN_USE)
    found = counted(log).table["fp32_fma"].iloc[0]
    assert found == 5050 * 505 if known else np.isnan(found)
    assert any(f"{RATE}: a summary has only the mean rate" in note for note in log.notes) != known


def test_bytes_of_dram_from_the_page_for_reading(tmp_path):
    """Two launches, of 1 ms at 100 GB/s and of 3 ms at 300 GB/s: 1 GB, and not 2 times 2 ms at 200 GB/s."""
    rows = [
        row(number, *cells, section="Memory Workload Analysis")
        for number, (milliseconds, rate) in enumerate(((1, 100), (3, 300)))
        for cells in (
            (THROUGHPUT, "%", "9.00"),
            (THROUGHPUT, "Gbyte/s", f"{rate}.00"),
            ("Duration", "ms", milliseconds),
        )
    ]
    log = log_of(tmp_path, NEW, *rows, row(0, "L2 Hit Rate", "%", "12.34"), keep=IN_USE)
    found = counted(log)
    assert found.table["dram"].iloc[0] == pytest.approx(1e9) and found.marks["dram"].iloc[0] == ESTIMATED
    shared = counted(log_of(tmp_path, NEW, *rows, row(0, "L2 Hit Rate", "%", "12.34"), keep=IN_USE), "8.7")
    assert np.isnan(shared.table["dram_read"].iloc[0]), "a chip without DRAM of its own means something else"


def test_counted_bytes_go_before_those_of_a_rate(tmp_path):
    rows = [
        row(0, "dram__bytes.sum.per_second", "Gbyte/second", "300.00"),
        row(0, "dram__sectors_read.sum", "sector", "1,000"),
        row(0, "dram__bytes_read.sum.per_second", "Gbyte/second", "1.00"),
        row(0, TIME, "ns", "1,000,000"),
    ]
    assert counted(log_of(tmp_path, NEW, *rows, keep=IN_USE)).table["dram_read"].tolist() == [32_000]


def test_the_time_of_each_launch_from_its_bytes_and_their_rate(tmp_path):
    """Of one GB at 1 GB/s and one at 9 GB/s: 1.11 s. Together they are 2 GB at a mean of 5 GB/s, which is 0.4 s."""
    read_, rate = "dram__bytes_read.sum", "dram__bytes_read.sum.per_second"
    rows = [
        row(number, *cells)
        for number, gigabytes in enumerate((1, 9))
        for cells in ((read_, "Gbyte", "1.000000"), (rate, "Gbyte/second", f"{gigabytes}.00"))
    ]
    joined = combine([log_of(tmp_path, NEW, *rows, keep=IN_USE)])
    assert joined.kernels["time_s"].tolist() == pytest.approx([1 + 1 / 9])
    assert joined.kernels["time_marks"].tolist() == [ESTIMATED]


def test_a_time_that_lacks_a_launch_is_a_lower_bound(tmp_path):
    rows = [row(0, FFMA, "inst", "5"), row(0, TIME, "ns", "70"), row(1, FFMA, "inst", "5"), row(1, TIME, "ns", "nan")]
    joined = combine([log_of(tmp_path, NEW, *rows)])
    assert joined.kernels["time_s"].tolist() == pytest.approx([70e-9])
    assert joined.kernels["time_marks"].tolist() == [ESTIMATED | MISSING]


def test_a_kernel_that_was_not_counted_is_not_the_most_negative(tmp_path):
    """L2 of one kernel has more reads than L1 asked for; of the other nothing is known."""
    loads = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    rows = [
        row(0, loads, "sector", "nan", "unknown(int)"),
        row(0, "lts__t_sectors_srcunit_tex_op_read.sum", "sector", "nan", "unknown(int)"),
        row(1, loads, "sector", "1,000", "known(int)"),
        row(1, "lts__t_sectors_srcunit_tex_op_read.sum", "sector", "2,000", "known(int)"),
    ]
    (said,) = [one for one in counted(log_of(tmp_path, NEW, *rows, keep=IN_USE)).warnings if "negative" in one]
    assert "most in `known`: -32,000" in said


@pytest.mark.parametrize("grouped", ["5,04,10,305", "5.04.10.305", "5 04 10 305", "5'04'10'305", "50,410,305"])
def test_groups_of_digits_of_any_country(tmp_path, grouped):
    """In India groups are of two digits but for the last; `1,234` alone would leave the commas open."""
    other = "1.234" if grouped == "5.04.10.305" else "1,234"
    rows = [row(0, "a__b.avg", "", grouped), row(0, "c__d.avg", "", other if grouped[1] in ",.0" else "7")]
    table = log_of(tmp_path, NEW, *rows).tables[0]
    assert table.counters.frame()["a__b.avg"].tolist() == [50_410_305]
    assert table.counters.frame()["c__d.avg"].tolist() == [1234 if grouped[1] in ",.0" else 7]


@pytest.mark.parametrize("page", ["long", "raw"])
@pytest.mark.parametrize(("second", "is_said"), [("2,000,000", True), ("1,001,000", False)])
def test_a_metric_that_is_told_twice_with_two_values_is_said(tmp_path, page, second, is_said):
    first = "1,000,000"
    if page == "long":
        text = "\n".join([NEW, row(0, FFMA, "inst", first), row(0, FFMA, "inst", second, section="Another"), ""])
    else:
        text = wide((0, 7, "axpy", first, second), names=(FFMA, FFMA), units=("inst", "inst"))
    log = log_of(tmp_path, text.encode(), keep=IN_USE)
    assert log.tables[0].counters.frame()[FFMA].tolist() == [1e6]
    assert any(note.startswith(f"{FFMA}: told twice") for note in log.notes) == is_said


# ------------------------------------------------------------------------------------------------------------- clocks

MODERN = SHARED / "ncu-modern"
CORE, MEMORY = "sm__cycles_elapsed.avg.per_second", "dram__cycles_elapsed.avg.per_second"
NAMES = ("device__attribute_display_name", FFMA, TIME, CORE, MEMORY)


def v100(path, *launches):
    """A log of launches (ns, core MHz) of a V100 that says its clocks."""
    rows = [(n, 7, "axpy", "Tesla V100-SXM2-32GB", 10**9, ns, core, 877) for n, (ns, core) in enumerate(launches)]
    text = wide(*rows, names=NAMES, units=("", "inst", "ns", "Mhz", "Mhz")).replace('"9.0"', '"7.0"')
    path.write_text(text)
    return path


def test_clocks_are_means_over_the_time_of_launches_that_are_long_enough(tmp_path):
    path = v100(tmp_path / "log.csv", (1_000_000, 1000), (3_000_000, 1200), (9_000, 300))
    (clock,) = read(path).clocks
    assert (clock.device, clock.core_mhz, clock.memory_mhz) == ("Tesla V100-SXM2-32GB (0)", 1150, 877)
    long = tmp_path / "long.csv"
    long.write_text(
        "\n".join(
            [
                NEW,
                *(
                    row(n, *one)
                    for n in range(9)
                    for one in ((FFMA, "inst", 5), (TIME, "ns", 1_000_000), (CORE, "Ghz", "1.00" if n < 3 else "1.30"))
                ),
                "",
            ]
        )
    )
    (folded,) = read_tuned(long, Tuning(fold_rows=8, chunk_bytes=256), keep=IN_USE).clocks
    assert folded.core_mhz == pytest.approx(1200) and folded.memory_mhz is None
    assert not log_of(tmp_path, NEW, row(0, FFMA, "inst", 5), row(0, TIME, "ns", 9)).clocks
    untimed = log_of(tmp_path, NEW, row(0, FFMA, "inst", 5), row(0, CORE, "Ghz", "1.20"))
    assert untimed.clocks[0].core_mhz == pytest.approx(1200), "a clock needs no time"


@pytest.mark.skipif(not MODERN.is_dir(), reason="needs a real log, which is not part of this project")
def test_cycles_that_nobody_counted_are_at_the_clock_of_the_log():
    """13 launches at 2.40 GHz, told in rates: each second has the cycles of 36 multiprocessors of a RTX 5060 Ti."""
    energy = eprof.load(MODERN / "sm120-cutlass-roofline-body-items.csv", cache=False).energy()
    assert energy.counts.amounts["sm_active_cycle"].sum() == pytest.approx(36 * 2.4e9, rel=1e-6)


@pytest.mark.parametrize(
    ("core", "setting"), [(1293, "1290/877"), (1375, "1380/877"), (1100, "1100/877"), (1530, "1530/877")]
)
def test_a_run_is_priced_at_its_own_clocks(tmp_path, core, setting):
    profile = eprof.load(v100(tmp_path / "log.csv", (1_000_000, core)))
    energy = profile.energy()
    assert energy.costs.setting.label == setting and "as ncu saw them" in energy.costs.setting_from
    given = profile.energy(setting=setting)
    assert energy.split.total_j.sum() == given.split.total_j.sum()
    assert "asked for" in given.costs.setting_from
    assert not any("other clocks than its own" in note for note in energy.warnings)


@pytest.mark.parametrize(("core", "setting"), [(1600, "1530/877"), (700, "802/877")])
def test_clocks_outside_of_the_table_are_warned_of(tmp_path, core, setting):
    energy = eprof.load(v100(tmp_path / "log.csv", (1_000_000, core))).energy()
    assert energy.costs.setting.label == setting
    (note,) = [one for one in energy.warnings if "other clocks than its own" in one]
    assert f"its core clock was {core} MHz, as ncu saw, and the nearest that v100 knows is" in note


def test_clocks_of_another_run_or_gpu_do_not_price(tmp_path):
    path = v100(tmp_path / "log.csv", (1_000_000, 1290))
    profile = eprof.load(path)
    assert profile.energy("gtx980").costs.setting == eprof.load(path, time=["1"]).energy("gtx980").costs.setting
    assert eprof.load(path, time=["axpy=0.5"]).energy().costs.setting.label == "1380/877", "a time without ncu"
    times = tmp_path / "times.csv"
    times.write_text(
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "100.0,500000,1,500000,500000,500000,500000,0,axpy\n"
    )
    assert eprof.load(path, times).energy().costs.setting.label == "1380/877", "a time of nsys"


def test_clocks_are_kept_in_the_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(many, "SMALLEST_BYTES", 0)
    path = v100(tmp_path / "log.csv", (1_000_000, 1290))
    log, stamp = read(path), many.Stamp.of(path)
    kept = many.Cache(tmp_path / "cache", "asked")
    kept.put(stamp, log)
    assert kept.get(stamp).clocks == log.clocks


def test_the_clock_of_real_reports():
    path = SHARED / "ncu" / "v100-miniweather-baseline.ncu-rep"
    if not path.exists():
        pytest.skip("needs a real report, which is not part of this project")
    pytest.importorskip("ncu_report", reason="needs pip install ncu-report")
    profile = eprof.load(path)
    energy = profile.energy()
    assert energy.costs.setting.label == "1290/877"
    assert energy.split.total_j.sum() == profile.energy(setting="1290/877").split.total_j.sum()
    assert energy.split.total_j.sum() < profile.energy(setting="1380/877").split.total_j.sum()


def test_a_nul_is_no_part_of_a_name():
    path = SHARED / "ncu-modern" / "rtx5060ti-occupancy-one-nan-launch.ncu-rep"
    if not path.exists():
        pytest.skip("needs a real report, which is not part of this project")
    pytest.importorskip("ncu_report", reason="needs pip install ncu-report")
    log = read(path)
    assert log.command.endswith("MatrixTranspose_occupancy_optimized.exe")
    joined = combine([log])
    assert joined.kernels["launches"].tolist() == [45] and joined.kernels["time_marks"].tolist() == [
        ESTIMATED | MISSING
    ]


def shaped(tmp_path, *launches):
    """What is worth trying of launches of one kernel: (block in x, blocks in x, µs)."""
    names = (TIME, *(f"launch__{of}_dim_{axis}" for of in ("block", "grid") for axis in "xyz"))
    rows = [(n, 7, "axpy", 1000 * us, block, 2, 1, blocks, 3, 1) for n, (block, blocks, us) in enumerate(launches)]
    (tmp_path / "log.csv").write_text(wide(*rows, names=names, units=("ns", *[""] * 6)))
    view = View(document(eprof.load(tmp_path / "log.csv", cache=False).energy("NVIDIA A100-PCIE-40GB")))
    return view, [act for act in worth_trying(view) if "in blocks of" in act]


def test_blocks_of_the_fastest_shape_are_advised(tmp_path):
    """All is constant power: 15 launches of 310 µs in the mean and 3 of 100 could all take 100 µs."""
    slow, fast = [(64, 64, us) for us in (300, 320, 310)], [(32, 128, us) for us in (90, 100, 110)]
    view, (act,) = shaped(tmp_path, *slow * 5, *fast)
    assert act.startswith(
        "launch axpy in blocks of 32 x 2 (100\u202fµs; as many threads in 64 x 2: 310\u202fµs): saves"
    )
    assert f"({percent(15 * 210 / (15 * 310 + 3 * 100))} of {quantity(view.whole, 'J')})" in act
    timed = eprof.load(tmp_path / "log.csv", cache=False, time=["1s"]).energy("NVIDIA A100-PCIE-40GB").document()
    assert "by_shape" not in timed["kernels"][0], "a given time is not that of the launches"


@pytest.mark.parametrize(
    "launches",
    [
        [(64, 64, 300), (64, 64, 310), (32, 128, 90), (32, 128, 95)],  # too few of a shape
        [(64, 64, us) for us in (95, 310, 320)] + [(32, 128, us) for us in (90, 100, 110)],  # times overlap
        [(64, 128, us) for us in (300, 310, 320)] + [(32, 128, us) for us in (90, 100, 110)],  # twice the threads
        [(64, 64, us) for us in (300, 310, 320)] + [(64, 64, us) for us in (90, 100, 110)],  # one shape
    ],
)
def test_of_shapes_that_no_times_tell_apart_none_is_advised(tmp_path, launches):
    assert shaped(tmp_path, *launches)[1] == []


def test_the_blocks_of_a_real_report():
    """By hand: 11 launches of each of four shapes, over 1024 x 1024 threads."""
    path = SHARED / "ncu-modern" / "rtx5060ti-occupancy-one-nan-launch.ncu-rep"
    if not path.exists():
        pytest.skip("needs a real report, which is not part of this project")
    pytest.importorskip("ncu_report", reason="needs pip install ncu-report")
    (shapes,) = read(path).by_shape.values()
    assert {shape.block[:2]: shape.launches for shape in shapes} == dict.fromkeys(
        [(16, 16), (32, 16), (16, 32), (32, 32)], 11
    )
    assert {shape.threads for shape in shapes} == {(1024, 1024, 1)}
    assert sum(shape.time_s for shape in shapes) == pytest.approx(1.7027e-3, rel=1e-3)

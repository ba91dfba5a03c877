"""ncu's page for reading, tables that a script rewrote, and every table of nsys with times. All logs are made up."""

import numpy as np
import pytest
from frames_support import combine
from logs_support import read_tuned
from test_ncu_logs import FFMA, NEW, TIME, log_of, row

import eprof
from eprof.base.errors import LogError
from eprof.base.vocabulary import Mark
from eprof.logs.stream import Tuning

LINE = "axpy(int, float *) (2, 1, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.0"
OLD_LINE = "void axpy<(int)4, float>(T2, T1 *), 2021-Mar-04 20:05:20, Context 1, Stream 7"


def page(*launches, indent="  ", heading=True):
    """ncu's page: each launch is the line of its kernel, and (metric, unit, value)..."""
    lines = ["==PROF== Connected to process 77 (/home/me/prog)", "==PROF== Disconnected from process 77"]
    lines.append("[77] prog@127.0.0.1")
    for kernel, *metrics in launches:
        wide = [max(len(one[0]) for one in metrics), 11, 14]
        ruler = f"{indent * 2}{'-' * wide[0]} {'-' * wide[1]} {'-' * wide[2]}"
        names = f"{indent * 2}{'Metric Name':{wide[0]}} {'Metric Unit':>{wide[1]}} {'Metric Value':>{wide[2]}}"
        lines += [f"{indent}{kernel}", f"{indent * 2}Section: Command line profiler metrics", ruler]
        lines += [names, ruler] if heading else []
        lines += [f"{indent * 2}{name:{wide[0]}} {unit:>{wide[1]}} {value:>{wide[2]}}" for name, unit, value in metrics]
        lines += [ruler, f"{indent * 2}WRN   This kernel is small.", f"{indent * 5}Make it larger.  1,5 times.", ""]
    return lines


def total(log, name):
    """Kernel -> (launches, total of a counter)."""
    joined = combine([log])
    cells = joined.counters[name].tolist()
    return dict(
        zip(joined.kernels["kernel"], zip(joined.kernels["launches"].tolist(), cells, strict=True), strict=True)
    )


@pytest.mark.parametrize("heading", [True, False])
@pytest.mark.parametrize(("front", "indent"), [("", "  "), ("", " "), ("// ", "  "), ("> ", "  "), ("# ", "  ")])
def test_launches_of_the_page_are_added_up(tmp_path, front, indent, heading):
    first = (LINE, (FFMA, "inst", "1,024"), ("dram__bytes_read.sum", "Kbyte", "12.67"), (TIME, "us", "1.50"))
    second = (LINE, (FFMA, "inst", "1,000"), ("dram__bytes_read.sum", "Mbyte", "1.00"), (TIME, "usecond", "2.50"))
    log = log_of(tmp_path, *(front + one for one in page(first, second, indent=indent, heading=heading)))
    assert total(log, FFMA) == {"axpy(int, float *)": (2, 2024)}
    assert total(log, "dram__bytes_read.sum") == {"axpy(int, float *)": (2, 1012670)}
    joined = combine([log])
    assert joined.kernels["time_s"].tolist() == pytest.approx([4e-6])
    assert joined.kernels["device"].tolist() == ["ncu device 0 (CC 8.0)"]
    assert (log.format, log.skipped_lines) == ("ncu-long", 0) and log.command == "/home/me/prog"
    assert any("rounds scaled numbers" in note for note in log.notes)


def test_the_lanes_that_blocks_fill_weigh_as_long_as_launches_take(tmp_path):
    """The shape stands in the kernel's line: one thread a block for 9 us, 48 (of 64 lanes) for 3 us."""
    launches = [(9, "(1, 1, 1)x(1, 1, 1)"), (3, "(7, 1, 1)x(8, 6, 1)")]
    own = [(LINE.replace("(2, 1, 1)x(64, 1, 1)", shape), (TIME, "us", f"{us}.00")) for us, shape in launches]
    lines = page(*((*launch, (FFMA, "inst", "1")) for launch in own))
    signs = eprof.load(log_of(tmp_path, *lines).path).energy("a100").document()["kernels"][0]["signs"]
    assert signs["lanes"] == pytest.approx((9 / 32 + 3 * 48 / 64) / 12)
    assert (signs["blocks"], signs["threads"]) == (4, 24.5)


@pytest.mark.parametrize(("second", "launches"), [("dram__bytes_write.sum", 1), ("dram__bytes_read.sum", 2)])
def test_excerpts_of_two_runs_over_the_same_launches(tmp_path, second, launches):
    excerpts = [
        line for metric in ("dram__bytes_read.sum", second) for line in page((LINE, (metric, "byte", "320")))[3:]
    ]
    assert combine([log_of(tmp_path, *excerpts)]).kernels["launches"].tolist() == [launches]


def test_the_page_of_2021_tells_no_device(tmp_path):
    lines = page((OLD_LINE, (FFMA, "inst", "7"), (f"{FFMA[:50]}.per_cycle", "inst/cycle", "0,5")), heading=False)
    log = log_of(tmp_path, *lines)
    assert not any("rounds scaled numbers" in note for note in log.notes)
    assert total(log, FFMA) == {"void axpy<(int)4, float>(T2, T1 *)": (1, 7)}
    assert combine([log]).kernels["device"].tolist() == [None]


def test_labels_of_sections_and_values_that_are_none(tmp_path):
    launch = (LINE, ("Elapsed Cycles", "cycle", "3,268"), ("Duration", "us", "5.66"), ("L2 Hit Rate", "%", "(!) nan"))
    failed = (LINE.replace("axpy", "lost"), ("Duration", "nsecond", "(!) nan"), ("Grid Size", "", "(!) n/a"))
    joined = combine([log_of(tmp_path, *page(launch, failed))])
    assert joined.kernels["launches"].tolist() == [1, 1]
    assert joined.kernels["time_s"].tolist() == pytest.approx([5.66e-6, np.nan], nan_ok=True)


@pytest.mark.parametrize("blank", [" ", "\u00a0", "\u202f", "'", "\u2019"])
@pytest.mark.parametrize("page_of", [True, False])
def test_groups_of_digits_with_blanks_between(tmp_path, page_of, blank):
    """As the locales of France, Finland and Switzerland have it."""
    cells = ((FFMA, "inst", f"23{blank}982{blank}976"), ("dram__bytes_read.sum", "Kbyte", f"1{blank}234,56"))
    lines = page((LINE, *cells)) if page_of else [NEW, *(row(0, *one) for one in cells)]
    log = log_of(tmp_path, *lines)
    (found,) = total(log, FFMA).values()
    assert found == (1, 23982976) and total(log, "dram__bytes_read.sum").popitem()[1] == (1, 1234560)


def test_a_name_longer_than_its_column(tmp_path):
    lines = page((LINE, (FFMA, "inst", "5"), ("dram__bytes_read.sum", "byte", "9")), heading=False)
    ruler = f"    {'-' * 20} {'-' * 11} {'-' * 14}"
    lines = [ruler if one.strip().startswith("---") else one for one in lines]
    lines = [" ".join(one.split()) if FFMA in one else one for one in lines]
    assert total(log_of(tmp_path, *lines), FFMA) == {"axpy(int, float *)": (1, 5)}


@pytest.mark.parametrize("per", ["kernel", "gpu"])
def test_summaries_of_the_page(tmp_path, per):
    kernel = "axpy(int, float *) (2, 1, 1)x(64, 1, 1)"
    told = (
        [f"  {kernel}, Device 1, CC 9.0, Invocations 300"]
        if per == "kernel"
        else ["  Device 1, CC 9.0", f"    {kernel}, Invocations 300"]
    )
    ruler = f"      {'-' * len(FFMA)} ----------- -------- -------- --------"
    lines = [
        "[77] prog@127.0.0.1",
        *told,
        "    Section: Command line profiler metrics",
        ruler,
        f"      {'Metric Name':{len(FFMA)}} Metric Unit  Minimum  Maximum  Average",
        ruler,
        f"      {FFMA}        inst     9.00 1,011.00    10.50",
        ruler,
    ]
    log = log_of(tmp_path, *lines)
    assert total(log, FFMA) == {"axpy(int, float *)": (300, 3150)} and log.format == "ncu-summary"
    assert combine([log]).kernels["device"].tolist() == ["ncu device 1 (CC 9.0)"]
    assert any("averages times the invocations" in note for note in log.notes)


def test_a_long_page_is_added_up_while_it_is_read(tmp_path):
    launch = (LINE, (FFMA, "inst", "3"), ("dram__bytes_read.sum", "Kbyte", "2.00"))
    path = tmp_path / "long.txt"
    path.write_text("\n".join(page(*[launch] * 500)) + "\n")
    log = read_tuned(path, Tuning(chunk_bytes=4096, fold_rows=200))
    assert total(log, FFMA) == {"axpy(int, float *)": (500, 1500)}
    assert len(log.tables[0].rows) < 500


def test_the_page_and_a_table_of_csv_in_one_log(tmp_path):
    lines = [
        *page((LINE, (FFMA, "inst", "5"))),
        NEW,
        row(0, FFMA, "inst", "8", pid=78),
        *page((LINE, (FFMA, "inst", "7"))),
    ]
    assert total(log_of(tmp_path, *lines), FFMA) == {"axpy(int, float *)": (3, 20)}


def test_rows_below_no_kernel_are_told(tmp_path):
    whole = page((LINE, (FFMA, "inst", "5")))
    rows = [one for one in whole if "Context" not in one]
    with pytest.raises(LogError, match="are not below a line that names their kernel"):
        log_of(tmp_path, *rows)
    log = log_of(tmp_path, *rows, *whole)
    assert total(log, FFMA) == {"axpy(int, float *)": (1, 5)}
    assert any("1 row is below no line of ncu's page" in note for note in log.notes)


@pytest.mark.parametrize(("rate", "unit"), [("2.00", "cycle/nsecond"), ("2,000,000,000.00", "hz"), ("2.00", "Ghz")])
@pytest.mark.parametrize("keep", [None, {FFMA}])
def test_a_time_from_cycles_and_their_rate(tmp_path, rate, unit, keep):
    cycles, faster = "sm__cycles_elapsed.avg", "sm__cycles_elapsed.avg.per_second"
    rows = [
        row(n, *one)
        for n in (0, 1)
        for one in ((FFMA, "inst", "9"), (cycles, "cycle", "3,000.50"), (faster, unit, rate))
    ]
    assert combine([log_of(tmp_path, NEW, *rows, keep=keep)]).kernels["time_s"].tolist() == pytest.approx([3000.5e-9])
    told = [
        *rows,
        row(0, TIME, "ns", "7"),
        row(1, TIME, "ns", "n/a"),
        row(2, faster, unit, rate),
        row(2, cycles, "cycle", "0"),
    ]
    found = log_of(tmp_path, NEW, *told, keep=keep).tables[0].rows.frame()["time_s"]
    assert found.tolist() == pytest.approx([7e-9, 1500.25e-9, np.nan], nan_ok=True)
    assert combine([log_of(tmp_path, NEW, *rows, row(2, cycles, "cycle", "5"))]).kernels["time_marks"].tolist() == [
        int(Mark.ESTIMATED | Mark.MISSING)  # the third launch has none
    ]


@pytest.mark.parametrize("delimiter", [";", "\t", ", "])
@pytest.mark.parametrize("index", [False, True])
def test_tables_that_a_script_rewrote(tmp_path, delimiter, index):
    kernel = 'f("a"", ""b"", 1)'
    lines = [NEW, row(0, FFMA, "inst", "1,024", kernel), row(1, FFMA, "inst", "1", kernel)]
    lines = [one.replace('","', f'"{delimiter}"') for one in lines]
    if index:
        lines = [f"{number}{delimiter[0]}{one}" for number, one in zip(["", 0, 1], lines, strict=True)]
    (found,) = total(log_of(tmp_path, *lines), FFMA).values()
    assert found == (2, 1025)


@pytest.mark.parametrize("lacking", [{"Process Name", "Host Name"}, {"Process ID", "Process Name", "Context", "CC"}])
def test_columns_that_a_script_left_out(tmp_path, lacking):
    names = NEW.replace('"', "").split(",")
    cells = [dict(zip(names, one, strict=True)) for one in (range(15), range(15))]
    cells = [
        one | {"ID": n, "Kernel Name": "k", "Metric Name": FFMA, "Metric Unit": "inst", "Metric Value": "1,024"}
        for n, one in enumerate(cells)
    ]
    left = [name for name in names if name not in lacking]
    lines = [",".join(f'"{name}"' for name in left), *(",".join(f'"{one[name]}"' for name in left) for one in cells)]
    log = log_of(tmp_path, *lines)
    assert total(log, FFMA) == {"k": (2, 2048)} and log.command is None


@pytest.mark.parametrize(
    "header", ['"ID","Kernel Name","Stream","{}"', '"Start (ns)","Duration (ns)","CorrId","Device"']
)
def test_tables_that_lack_too_much(tmp_path, header):
    with pytest.raises(LogError, match="no table|has no kernels"):
        log_of(tmp_path, "==PROF== Connected to process 7 (/prog)", header.format(FFMA), '"0","k","7","1,024"')


def test_a_table_whose_rows_lost_their_quotes_is_not_guessed(tmp_path):
    lines = [one.replace('"', "") for one in (NEW, row(0, FFMA, "inst", "1,024"))]
    with pytest.raises(LogError, match="no line below it has as many fields, for example: 0,7,prog"):
        log_of(tmp_path, *lines)


def test_launches_without_one_known_value_are_still_launches(tmp_path):
    log = log_of(tmp_path, NEW, row(0, FFMA, "", "n/a"), row(1, FFMA, "", "n/a"))
    assert combine([log]).kernels["launches"].tolist() == [2]


# ------------------------------------------------------------------------------------------------------------ nsys

SUM = "Time (%),Total Time (ns),Instances,Avg (ns),Name"
EXEC = "Count,QCount,TAvg (ns),KAvg (ns),API Name,Kernel Name"
TRACE = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,Strm,Name"
)


def launched(start, ns, device="NVIDIA A100 (0)", kernel='"f(int, int)"'):
    return f"{start},{ns},9,1,1,1,32,1,1,16,0.000,0.000,,,,,{device},1,7,{kernel}"


COPY = "5,777,9,,,,,,,,,,4.1,6337.5,Pinned,Device,NVIDIA A100 (0),1,13,[CUDA memcpy Host-to-Device]"


def times(log):
    kernels = combine([log]).kernels
    return {
        (device, kernel): (launches, pytest.approx(time_s))
        for device, kernel, launches, time_s in kernels[["device", "kernel", "launches", "time_s"]].to_numpy().tolist()
    }


def test_a_trace_of_nsys_tells_the_devices(tmp_path):
    other = launched(4, 9, "NVIDIA A100 (1)", "[CUDA memset]")
    lines = ["Processing [x.sqlite] with [cuda_gpu_trace.py]... ", TRACE, launched(1, 100), COPY, launched(2, 50)]
    log = log_of(tmp_path, *lines, launched(3, 7, "NVIDIA A100 (1)"), other)
    assert times(log) == {
        ("NVIDIA A100 (0)", "f(int, int)"): (2, 150e-9),
        ("NVIDIA A100 (1)", "f(int, int)"): (1, 7e-9),
    }
    assert log.skipped_lines == 0 and log.notes == ("not kernels, so left out: 2 copies and memsets (0.000786 ms)",)
    with pytest.raises(LogError, match="tables of nsys but none of kernels"):
        log_of(tmp_path, TRACE, COPY)


def test_a_long_trace_of_nsys_in_pieces(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("\n".join([TRACE, *(launched(n, 100 + n % 2) for n in range(2000))]) + "\n")
    assert times(read_tuned(path, Tuning(chunk_bytes=4096))) == {("NVIDIA A100 (0)", "f(int, int)"): (2000, 201e-6)}


def test_one_report_of_nsys_with_many_tables_counts_a_kernel_once(tmp_path):
    api = ["Time (%),Total Time (ns),Num Calls,Avg (ns),Name", "9.0,1,2,3,cudaMalloc", ""]
    sums = [SUM, '90.0,300,2,150.0,"f(int, int)"', "10.0,30,1,30.0,g", ""]
    execs = [EXEC, '2,2,900.5,150.5,cudaLaunchKernel,"f(int, int)"', "1,1,9.0,30.0,cudaLaunchKernel,g", ""]
    log = log_of(tmp_path, *api, *sums, *execs)
    assert times(log) == {(None, "f(int, int)"): (2, 300e-9), (None, "g"): (1, 30e-9)}
    assert log.notes == (
        "the times are those of cuda_gpu_kern_sum; the log tells them again in cuda_kern_exec_sum, not used",
    )
    assert times(log_of(tmp_path, *execs))[None, "f(int, int)"] == (2, 301e-9)
    both = times(log_of(tmp_path, TRACE, launched(1, 300), "", *sums, *execs))
    assert both == {("NVIDIA A100 (0)", "f(int, int)"): (1, 300e-9)}


def test_a_table_of_nsys_below_one_of_ncu(tmp_path):
    joined = combine([log_of(tmp_path, NEW, row(0, FFMA, "inst", "8", "g"), "", SUM, "100.0,30,1,30.0,g")])
    assert joined.kernels["time_s"].tolist() == pytest.approx([30e-9]) and joined.counters[FFMA].tolist() == [8]


@pytest.mark.parametrize("title", ["Time (%)", "Time(%)"])
def test_tables_of_nsys_as_text(tmp_path, title):
    lines = [
        "CUDA API Statistics:",
        f" {title:8}  Total Time (ns)  Num Calls  Name",
        " --------  ---------------  ---------  ----------",
        "     76.2           65,498         64  cudaMalloc",
        "",
        f" {title:8}  Total Time (ns)  Instances  Average      Name    ",
        " --------  ---------------  ---------  ---------  ----------",
        "     90.0        1,234,567      2,000  617.3      f(int, int)",
        "      9.0            1,000          1  1,000.0    void g<h…",
        "      1.0              100          1  100.0      void g<h…",
        "",
        f" {title:8}  Total Time (ns)  Operations  Operation",
        " --------  ---------------  ----------  ---------",
        "    100.0              999           9  [CUDA memcpy HtoD]",
    ]
    log = log_of(tmp_path, *lines)
    assert times(log) == {(None, "f(int, int)"): (2000, 1234567e-9), (None, "void g<h…"): (2, 1100e-9)}
    assert log.skipped_lines == 1 and "nsys cut 1 names of kernels off" in log.notes[0]
    assert log.copies_s == pytest.approx(999e-9)
    with pytest.raises(LogError, match="tables of nsys but none of kernels"):
        log_of(tmp_path, *lines[:5])


def test_a_text_trace_of_nsys_with_empty_columns(tmp_path):
    lines = [
        " Start (ns)  Duration (ns)  CorrId  GrdX       Device        Strm  Name",
        " ----------  -------------  ------  ----  ---------------  ----  ------------------",
        "        100            832       1    64  NVIDIA A100 (0)     7  f(int, int)",
        "        200            900       2        NVIDIA A100 (0)     7  [CUDA memcpy HtoD]",
    ]
    assert times(log_of(tmp_path, *lines)) == {("NVIDIA A100 (0)", "f(int, int)"): (1, 832e-9)}


TIMES = [("Elapsed Cycles", "cycle", "32,515"), ("Duration", "us", "1,106.46"), ("Block Size", "", "128")]
TOLD = {"gpc__cycles_elapsed.max": 32515, "gpu__time_duration.sum": 1106460, "launch__block_size": 128}


@pytest.mark.parametrize("remark", ["", "  # 32,515 cycles: fewer are better", " // why 2?", "   too long", " <- 3 ms"])
def test_what_somebody_wrote_behind_a_value_is_no_part_of_it(tmp_path, remark):
    values = {value for _, _, value in TIMES}
    lines = [one + remark if one.split()[-1:] and one.split()[-1] in values else one for one in page((LINE, *TIMES))]
    log = log_of(tmp_path, *lines)
    assert {name: total(log, name).popitem()[1] for name in TOLD} == {name: (1, count) for name, count in TOLD.items()}


@pytest.mark.parametrize("heading", [False, True])
def test_a_page_that_lost_its_rulers_has_rows_by_their_labels(tmp_path, heading):
    lines = page((LINE, *TIMES, ("My Label", "us", "5.00")), heading=heading)
    log = log_of(tmp_path, *(one for one in lines if "---" not in one))
    assert {name: total(log, name).popitem()[1] for name in TOLD} == {name: (1, count) for name, count in TOLD.items()}


def test_rows_of_labels_outside_a_section_are_none(tmp_path):
    lines = [LINE, f"    {'Duration':20} us   5.00"]
    with pytest.raises(LogError, match="names 1 launch but no metric"):
        log_of(tmp_path, *lines)


def test_a_table_at_the_left_edge_is_of_ncu(tmp_path):
    """A page that lost its indentation and the kernel's line, as in notes."""
    lines = [one.strip() for one in page((LINE, *TIMES))[3:]]
    with pytest.raises(LogError, match="are not below a line that names their kernel"):
        log_of(tmp_path, *(one for one in lines if "Context" not in one and "WRN" not in one))

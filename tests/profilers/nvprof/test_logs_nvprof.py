"""Layouts of nvprof that are rare but real, each in the smallest made-up log that shows it."""

import sqlite3
import struct

import pytest
from frames_support import combine
from logs_support import (
    EVENTS,
    K20C,
    METRICS,
    ONE_BY_ONE,
    TINY,
    TOGETHER,
    USAGE,
    example_of_skipped,
    metric,
    profiled,
    read,
    read_tuned,
    totals,
    write,
)

import eprof
from eprof import logs
from eprof.base.errors import LogError
from eprof.commands.report.trust import notes
from eprof.commands.report.view import View
from eprof.profile.document import document

TEXT_USAGE = "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name"
TEXT_METRICS = (
    "Invocations                               Metric Name                        Metric Description"
    "         Min         Max         Avg"
)
TEXT_ROW = "          2                              inst_integer                      Integer Instructions"
WIDE = '"Device","Context","Stream","Kernel"'


def times(log):
    """Kernel -> launches and seconds."""
    kernels = combine([log]).kernels
    return {kernel: (n, t) for kernel, n, t in zip(kernels.kernel, kernels.launches, kernels.time_s, strict=True)}


def counted(log):
    """(device, kernel, counter) -> total."""
    return {key: value for key, value in totals(log).items() if key[2] not in ("launches", "time_s")}


def in_text(tmp_path, *lines):
    """A log with these lines below nvprof's own."""
    return read(write(tmp_path, profiled(7, *lines)))


# --- tables by NVTX range repeat the launches of the whole run

RANGED_TEXT = (
    TEXT_USAGE,
    " GPU activities:  100.00%  6.0000us         3  2.0000us  2.0000us  2.0000us  axpy(int)",
    "      API calls:  100.00%  9.0000us         3  3.0000us  3.0000us  3.0000us  cudaLaunchKernel",
    "",
    "==7== NVTX result:",
    '==7==   Thread "<unnamed>" (id = 1)',
    '==7==     Domain "<unnamed>"',
    '==7==       Range "forward"',
    TEXT_USAGE,
    "          Range:  100.00%  8.0000us         1  8.0000us  8.0000us  8.0000us  forward",
    " GPU activities:  100.00%  4.0000us         2  2.0000us  2.0000us  2.0000us  axpy(int)",
)
RANGED_CSV = (
    '"Type",' + USAGE,
    ",%,us,,us,us,us,",
    '"GPU activities",100.0,6.0,3,2.0,2.0,2.0,"axpy(int)"',
    "",
    "==7== NVTX result:",
    '==7==       Range "forward"',
    '"Type",' + USAGE,
    ",%,us,,us,us,us,",
    '"Range:",100.0,8.0,1,8.0,8.0,8.0,"forward"',
    '"GPU activities",100.0,4.0,2,2.0,2.0,2.0,"axpy(int)"',
)


@pytest.mark.parametrize("lines", [RANGED_TEXT, RANGED_CSV], ids=["text", "csv"])
def test_launches_in_nvtx_ranges_are_counted_once(tmp_path, lines):
    log = in_text(tmp_path, *lines)
    assert times(log) == {"axpy(int)": (3, pytest.approx(6e-6))}
    assert any("by NVTX range were left out" in note for note in log.notes)


@pytest.mark.parametrize("lines", [RANGED_TEXT[4:], RANGED_CSV[4:]], ids=["text", "csv"])
def test_ranges_alone_are_refused(tmp_path, lines):
    with pytest.raises(LogError, match="only tables by NVTX range"):
        in_text(tmp_path, *lines)


# --- traces made for people

USED_TWICE = (
    TEXT_USAGE,
    " GPU activities:  100.00%  4.0000us         2  2.0000us  2.0000us  2.0000us  axpy(int)",
    "      API calls:  100.00%  9.0000us         2  3.0000us  3.0000us  3.0000us  cudaLaunchKernel",
)

TRACE_TEXT = (
    "   Start  Duration            Grid Size      Block Size     Regs*    SSMem*    DSMem*           Device   Context"
    "    Stream  Name"
)


@pytest.mark.parametrize(("unit", "scale"), [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)])
def test_text_trace_with_a_row_of_units(tmp_path, unit, scale):
    log = in_text(
        tmp_path,
        TRACE_TEXT,
        f"      ms        {unit}                                                        B         B",
        "0.000000  9.00e-03            (101 1 1)       (128 1 1)        27         0         0  Tesla K20c (0)         1"
        "         7  axpy(int) [115]",
        "2.300330  0.036064            (101 1 1)       (128 1 1)        27         0         0  Tesla K20c (0)         1"
        "         7  axpy(int) [117]",
    )
    assert times(log) == {"axpy(int)": (2, pytest.approx(0.045064 * scale))}
    assert not log.skipped_lines


@pytest.mark.parametrize("units", ["", "%"], ids=["no units", "percent"])
def test_text_trace_with_counters(tmp_path, units):
    header = "         Device   Context    Stream                Kernel  inst_integer  hit_rate"
    log = in_text(
        tmp_path,
        header,
        units and units.rjust(len(header)),
        "Tesla V100-SXM2         1         7  matrix_multiply_kern          2000      9.39",
        "Tesla V100-SXM2         1         7                  axpy    <OVERFLOW>     59.12",
        "Tesla V100-SXM2         1         7  void gemm<float, int    9.7055e+11     68.65",
        "Tesla V100-SXM2         1         7  matrix_multiply_kern          3000     67.68",
        "the program's last words",
    )
    launches = combine([log])
    assert launches.kernels["kernel"].tolist() == ["matrix_multiply_kern", "axpy", "void gemm<float, int"]
    assert launches.kernels["launches"].tolist() == [2, 1, 1]
    assert launches.counters["inst_integer"].tolist() == pytest.approx([5000, float("nan"), 9.7055e11], nan_ok=True)
    assert launches.kernels["device"].tolist() == ["Tesla V100-SXM2"] * 3  # cut; all that begin so are one GPU's
    assert any("cuts off the names" in note for note in log.notes) and log.skipped_lines == 1


def test_text_traces_keep_a_device_that_is_whole(tmp_path):
    wide = "         Device   Context    Stream                Kernel  inst_integer"
    log = in_text(
        tmp_path,
        TRACE_TEXT,
        "90.000us  36.000us            (101 1 1)       (128 1 1)        27        0B        0B  Tesla K20c (0)         1"
        "         7  axpy(int) [115]",
        "==7== Metric result:",
        wide,
        "",
        " Tesla K20c (1)         1         7             axpy(int)          2000",
    )
    assert combine([log]).kernels["device"].tolist() == ["Tesla K20c (0)", "Tesla K20c (1)"]
    assert not any("names of devices" in note for note in log.notes)


def test_trace_of_calls_holds_no_kernels(tmp_path):
    with pytest.raises(LogError, match="hold no kernels"):
        in_text(tmp_path, "   Start  Duration  Name", "88.000us  1.0000us  cudaLaunchKernel (axpy(int) [115])")


# --- --aggregate-mode off: a value a hardware instance


def test_counts_of_hardware_instances_are_added_up(tmp_path):
    lines = [
        METRICS,
        f'"{K20C}","axpy(int)",2,"inst_integer (3 instances)","Integer Instructions",,,"5,6,7"',
        f'"{K20C}","axpy(int)",2,"ipc (2 instances)","Executed IPC",,,"0.5,0.25"',
    ]
    log = in_text(tmp_path, *lines)
    launches = combine([log])
    assert launches.counters["inst_integer"].tolist() == [36]
    assert launches.counters["ipc"].isna().all()
    assert any("added up" in note for note in log.notes) and any("no count" in note for note in log.notes)


def test_thousands_are_not_taken_for_instances(tmp_path):
    log = in_text(tmp_path, METRICS, metric("inst_integer", '"1,234"'))
    assert combine([log]).counters["inst_integer"].isna().all()


def test_counts_of_hardware_instances_in_text(tmp_path):
    row = TEXT_ROW.replace("inst_integer", "inst_integer (3 instances)")
    log = in_text(
        tmp_path,
        TEXT_METRICS,
        f'Device "{K20C}"',
        "    Kernel: axpy(int)",
        row + "  -  -  [          5          6   7 ]",
    )
    assert combine([log]).counters["inst_integer"].tolist() == [36]


@pytest.mark.parametrize("tuning", [None, TOGETHER], ids=["line by line", "together"])
def test_counts_of_hardware_instances_in_a_trace(tmp_path, tuning):
    lines = [
        WIDE + ',"inst_integer (0)","inst_integer (1)","ipc (0)","ipc (1)"',
        ",,,,,,,",
        f'"{K20C}","1","7","axpy(int)",5,6,0.5,0.25',
        f'"{K20C}","1","7","axpy(int)",7,8,0.5,0.25',
    ]
    path = write(tmp_path, profiled(7, *lines))
    launches = combine([read(path) if tuning is None else read_tuned(path, tuning)])
    assert launches.counters["inst_integer"].tolist() == [26]
    assert launches.counters["ipc"].isna().all()


# --- text that was pasted


@pytest.mark.parametrize(
    "lines",
    [
        (TEXT_METRICS, f'Device "{K20C}"    Kernel: axpy(int)', TEXT_ROW + "   5   5   5"),
        (TEXT_METRICS + f'Device "{K20C}"    Kernel: axpy(int)', TEXT_ROW + "   5   5   5"),
        (TEXT_METRICS + f'Device "{K20C}"', "\tKernel: axpy(int)", TEXT_ROW + "   5   5   5"),
    ],
)
def test_lines_that_a_terminal_joined(tmp_path, lines):
    assert counted(in_text(tmp_path, *lines)) == {(K20C, "axpy(int)", "inst_integer"): 10}


@pytest.mark.parametrize("prefix", ["    ", "\t", "// ", " * ", "# ", "> ", "//"])
def test_logs_in_source_code_and_mails(tmp_path, prefix):
    lines = profiled(
        7, TEXT_METRICS, f'Device "{K20C}"', "    Kernel: axpy(int)", TEXT_ROW + "   5   5   5", "", *USED_TWICE
    )
    text = "\n".join(f"{prefix}{line}" for line in lines.split("\n"))
    log = read(write(tmp_path, text if prefix != "//" else text.replace("//", "// ").replace("// \n", "//\n")))
    assert counted(log) == {(K20C, "axpy(int)", "inst_integer"): 10}
    launches = combine([log]).kernels
    assert launches["time_s"].tolist() == [pytest.approx(4e-6)] and launches["launches"].tolist() == [2]


def test_comma_separated_logs_in_source_code(tmp_path):
    lines = [METRICS, metric("inst_integer", 5), "", EVENTS, f'"{K20C}","axpy(int, float*)",2,"branch",3,3,3']
    text = "\n".join(f" * {line}".rstrip() for line in profiled(7, *lines).split("\n"))
    found = counted(read(write(tmp_path, text)))
    assert found == {
        (K20C, "axpy(int, float*)", "inst_integer"): 10,
        (K20C, "axpy(int, float*)", "branch"): 6,
    }


def test_a_trace_that_is_indented(tmp_path):
    text = "\n".join("    " + line for line in profiled(7, TRACE_TEXT).split("\n"))
    row = "    182.89ms  1.9769ms  (512 1 1)  (128 1 1)  31  0B  0B  Tesla P100-PCIE  1  7  axpy(int) [118]\n"
    assert times(read(write(tmp_path, text + row))) == {"axpy(int)": (1, pytest.approx(1.9769e-3))}


# --- tables that lost something


def test_a_device_without_index(tmp_path):
    log = in_text(tmp_path, TEXT_METRICS, 'Device "TITAN X "', "    Kernel: axpy(int)", TEXT_ROW + "   5   5   5")
    assert counted(log) == {("TITAN X (0)", "axpy(int)", "inst_integer"): 10}
    assert any("has no index" in note for note in log.notes)


@pytest.mark.parametrize("kept", ["", "Avg", "Avg       Min", "Avg       Min       Max"])
def test_a_summary_whose_columns_were_cut(tmp_path, kept):
    values = "  2.0000us" * len(kept.split())
    log = in_text(
        tmp_path,
        f"            Type  Time(%)      Time     Calls  {kept}  Name",
        f" GPU activities:   60.00%  6.0000us         3{values}  void axpy<int, 2>(int, float*)",
        f"                   40.00%  4.0000us         1{values}  [CUDA memcpy HtoD]",
        f"      API calls:   40.00%  4.0000us         1{values}  cudaMalloc",
    )
    assert times(log) == {"void axpy<int, 2>(int, float*)": (3, pytest.approx(6e-6))}


@pytest.mark.parametrize("blank", ["", "\r"])
@pytest.mark.parametrize("begun", [1, 0])
def test_a_summary_whose_types_stand_on_lines_of_their_own(tmp_path, blank, begun):
    """As in editors that broke its long lines, with blank lines beside: nothing of it is lost."""
    lines = [TEXT_USAGE, blank, " GPU activities:", blank]
    lines += [" 100.00%  6.0000us         3  2.0000us  2.0000us  2.0000us  axpy(int)", blank]
    lines += ["      API calls:   ", blank, " 99.00%  9.0000us     3  3.0000us  3.0000us  3.0000us  cudaFree"]
    log = in_text(tmp_path, *lines[:1], *lines[2 - begun :])
    assert times(log) == {"axpy(int)": (3, pytest.approx(6e-6))} and not log.skipped_lines
    assert [(calls.name, calls.number) for calls in log.calls_of_host] == [("cudaFree", 3)]


@pytest.mark.parametrize(("shares", "rest"), [((60.0, 39.99), None), ((60.0, 30.0), "10"), ((0.35, 0.25), "99")])
@pytest.mark.parametrize("form", ["text", "csv"])
def test_rows_that_a_summary_lost_are_missing_from_its_totals(tmp_path, form, shares, rest):
    """Two rows of two decimals each: up to 0.01 % is their rounding. What was lost may be copies, so it has no time."""
    kernel, copy = shares
    if form == "text":
        rows = [f" GPU activities:  {kernel:.2f}%  6.0000us  3  2.0000us  2.0000us  2.0000us  axpy(int)"]
        rows.append(f"                  {copy:.2f}%  4.0000us  1  4.0000us  4.0000us  4.0000us  [CUDA memcpy HtoD]")
        log = in_text(tmp_path, TEXT_USAGE, *rows)
    else:
        rows = [
            '"GPU activities",{:.2f},6.0,3,2.0,2.0,2.0,"axpy(int)"',
            '"GPU activities",{:.2f},4.0,1,4.0,4.0,4.0,"[CUDA memcpy HtoD]"',
        ]
        rows = [row.format(share) for row, share in zip(rows, shares, strict=True)]
        log = read(write(tmp_path, "\n".join(['"Type",' + USAGE, ",%,us,,us,us,us,", *rows, ""])))
    told = times(log)
    assert told.pop("axpy(int)") == (3, pytest.approx(6e-6))
    assert list(told) == ["(not in the table)"] * (rest is not None)
    assert any(f"lacks rows of {rest} % of the time" in note for note in log.notes) == (rest is not None)


def test_types_that_a_program_prints_are_no_table(tmp_path):
    with pytest.raises(LogError, match="no log of a profiler"):
        read(write(tmp_path, "API calls:\n  5 of them\n"))


@pytest.mark.parametrize("header", [TRACE_TEXT, TEXT_USAGE])
def test_a_table_in_text_with_a_blank_line_below_its_header(tmp_path, header):
    row = "250.00ms  2.0000us   (1 1 1)   (32 1 1)   8   0B   0B   GPU (0)   1   7   axpy(int) [1]"
    if header == TEXT_USAGE:
        row = "                  100.00%  2.0000us         1  2.0000us  2.0000us  2.0000us  axpy(int)"
    assert times(in_text(tmp_path, header, "", row)) == {"axpy(int)": (1, pytest.approx(2e-6))}


def test_a_summary_without_header(tmp_path):
    log = read(write(tmp_path, "\n".join(["it is slow:", *RANGED_TEXT[1:3], "who knows why?", ""])))
    assert times(log) == {"axpy(int)": (3, pytest.approx(6e-6))}
    assert log.skipped_lines == 2 and example_of_skipped(log) == "it is slow:"


@pytest.mark.parametrize("above", [(), (TEXT_METRICS, ""), ("some words of somebody:",)])
@pytest.mark.parametrize("prefix", ["    ", "// ", "\t"])
def test_metrics_below_a_kernel_without_header_or_device(tmp_path, above, prefix):
    lines = [*above, "Kernel: axpy(int)", TEXT_ROW + "   5   5   5", "Kernel: dot(int)", TEXT_ROW + "   7   7   7"]
    log = read(write(tmp_path, "".join(f"{prefix}{line}\n" for line in lines)))
    assert counted(log) == {(None, "axpy(int)", "inst_integer"): 10, (None, "dot(int)", "inst_integer"): 14}
    assert log.runs == 1


def test_events_below_a_header_and_an_empty_line(tmp_path):
    header = "Invocations                                Event Name         Min         Max         Avg       Total"
    row = "          2                                    branch           3           3           3           6"
    assert counted(in_text(tmp_path, header, "", "    Kernel: axpy(int)", row)) == {(None, "axpy(int)", "branch"): 6}


def test_a_kernel_that_a_program_prints_is_no_table(tmp_path):
    with pytest.raises(LogError, match="no log of a profiler"):
        read(write(tmp_path, "  Kernel: axpy\n  it took 5 ms\n"))


OF_CUDA_PROFILE = (("memcpyHtoDasync", "30.000"), ("_Z4axpyPf", "12.500"), ("_Z4axpyPf", "7.500"), ("memset32", "1.0"))


@pytest.mark.parametrize(
    "form", ["method=[ {} ] gputime=[ {} ] cputime=[ 9.000 ] occupancy=[ 0.5 ] ", "{},{},9.000,0.5"]
)
def test_logs_of_the_profiler_before_nvprof_are_read(tmp_path, form):
    head = "# CUDA_PROFILE_LOG_VERSION 2.0\n# CUDA_DEVICE 0 Tesla C1060\n# TIMESTAMPFACTOR fff\n"
    rows = "".join(form.format(*row) + "\n" for row in OF_CUDA_PROFILE)
    log = read(write(tmp_path, f"{head}method,gputime,cputime,occupancy\n{rows}"))
    rows = combine([log]).kernels
    assert (rows["kernel"].tolist(), rows["launches"].tolist()) == (["_Z4axpyPf"], [2])
    assert rows["time_s"].tolist() == [pytest.approx(20e-6)]
    assert log.device == "Tesla C1060 (0)" and log.skipped_lines == 0
    assert [(copies.way, copies.number, copies.time_s) for copies in log.copies] == [("HtoD", 1, pytest.approx(30e-6))]


def test_examples_of_skipped_lines_are_whole(tmp_path):
    log = in_text(tmp_path, *USED_TWICE, "# a remark")
    assert example_of_skipped(log) == "# a remark"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# CUDA_PROFILE_LOG_VERSION 2.0\nmethod=[ memcpyHtoD ] gputime=[ 1.0 ]\n", "no kernels"),
        ("======== CPU profiling result (bottom up):\nTime(%)      Time  Name\n 80.56%  8.59s  main\n", "of the CPU"),
        ("======== Profiling result:\nNo API activities were profiled.\n", "neither kernels nor API calls"),
    ],
)
def test_what_holds_no_kernels_says_what_it_is(tmp_path, text, sentence):
    with pytest.raises(LogError, match=sentence):
        read(write(tmp_path, text))


@pytest.mark.parametrize("tuning", [TOGETHER, ONE_BY_ONE, TINY], ids=["together", "one by one", "tiny blocks"])
def test_kernels_without_a_useful_counter_are_kept(tmp_path, tuning):
    kernels = ("axpy(int)", "dot(int)")
    rows = [metric(name, "99.5%", kernel=kernel, launches=3) for kernel in kernels for name in ("ipc", "occupancy")]
    path = write(tmp_path, profiled(7, METRICS, *rows))
    log = read_tuned(path, tuning, keep={"inst_integer"})
    launches = combine([log])
    assert dict(zip(launches.kernels["kernel"], launches.kernels["launches"], strict=True)) == dict.fromkeys(kernels, 3)
    assert not len(launches.counters.columns)
    assert any("(`ipc`, `occupancy`)" in note for note in log.notes)


def test_a_useless_table_changes_no_launches(tmp_path):
    first = profiled(7, METRICS, metric("ipc", "1.5", launches=9))
    second = profiled(8, METRICS, metric("inst_integer", 5, launches=2))
    log = read(write(tmp_path, first + second), keep={"inst_integer"})
    kernels = combine([log])
    assert kernels.kernels["launches"].tolist() == [2] and kernels.counters["inst_integer"].tolist() == [10]
    assert not combine([log]).marks.to_numpy().any()


# --- exports (nvprof -o)

INTEGER, IPC, READ_RATE, EVENT = 20971594, 20971634, 20971554, 335544321  # of a V100


def exported(path, metrics, events=()):
    """An export with launches 1, 2... of one kernel, and its metrics: (number, launch, 8 bytes, flags)."""
    with sqlite3.connect(path) as base:
        base.executescript(
            """create table StringTable(_id_ integer primary key, value text);
            create table CUPTI_ACTIVITY_KIND_DEVICE(id int, name int);
            create table CUPTI_ACTIVITY_KIND_KERNEL(name int, deviceId int, start int, end int, correlationId int);
            create table CUPTI_ACTIVITY_KIND_METRIC(id int, value blob, correlationId int, flags int);
            create table CUPTI_ACTIVITY_KIND_EVENT(id int, value int, correlationId int);
            insert into StringTable values(1, 'axpy(int)'), (2, 'Tesla V100');
            insert into CUPTI_ACTIVITY_KIND_DEVICE values(0, 2);
            insert into CUPTI_ACTIVITY_KIND_KERNEL values(1, 0, 10, 20, 1), (1, 0, 30, 45, 2);"""
        )
        base.executemany("insert into CUPTI_ACTIVITY_KIND_METRIC values(?, ?, ?, ?)", metrics)
        base.executemany("insert into CUPTI_ACTIVITY_KIND_EVENT values(?, ?, ?)", events)
    return path


def whole(number):
    """8 bytes of a count."""
    return struct.pack("<Q", number)


def test_metrics_of_an_export(tmp_path):
    cells = [(INTEGER, whole(5), 1, 0), (INTEGER, whole(7), 2, 0), (IPC, struct.pack("<d", 0.5), 1, 0)]
    cells += [(READ_RATE, whole(3 << 30), launch, 0) for launch in (1, 2)]
    log = read(exported(tmp_path / "x.nvvp", cells))
    launches = combine([log])
    assert launches.counters["inst_integer"].tolist() == [12] and not launches.marks["inst_integer"].any()
    assert launches.counters["dram_read_throughput"].tolist() == [3 << 30]
    assert dict(launches.units) == {"inst_integer": "count", "ipc": "other", "dram_read_throughput": "byte_per_s"}
    assert launches.kernels[["device", "launches"]].to_numpy().tolist() == [["Tesla V100 (0)", 2]]
    assert launches.kernels["time_s"].tolist() == [pytest.approx(25e-9)]
    assert not any("not read" in note for note in log.notes)


def test_a_launch_without_metrics_in_an_export_has_none_of_another(tmp_path):
    """The second cell is of a launch that the kernels do not have."""
    cells = [(INTEGER, whole(5), 2, 0), (INTEGER, whole(100), 9, 0)]
    launches = combine([read(exported(tmp_path / "x.nvvp", cells))])
    assert launches.counters["inst_integer"].tolist() == [5] and launches.marks["inst_integer"].all()


def test_metrics_of_an_export_that_have_no_value(tmp_path):
    cells = [(INTEGER, whole(5), 1, 0), (INTEGER, whole(7), 2, 1), (IPC, b"short", 1, 0), (IPC, None, 2, 2)]
    log = read(exported(tmp_path / "x.nvvp", cells))
    launches = combine([log])
    assert launches.counters["inst_integer"].tolist() == [5] and launches.marks["inst_integer"].all()
    assert {"inst_integer: 1 cell <OVERFLOW>, taken as missing", "ipc: 1 cell <INVALID>, taken as missing"} < {
        *log.notes
    }


def test_events_of_an_export_are_told(tmp_path):
    log = read(exported(tmp_path / "x.nvvp", [(INTEGER, whole(5), 1, 0), (7, whole(5), 1, 0)], [(EVENT, 3, 1)]))
    assert any("numbers without names, so they are not read" in note for note in log.notes)


def test_unwanted_metrics_of_an_export_are_told(tmp_path):
    log = read(exported(tmp_path / "x.nvvp", [(IPC, struct.pack("<d", 0.5), 1, 0)]), keep={"inst_integer"})
    assert any(note.startswith("`ipc`: counted, and not used") for note in log.notes)
    assert combine([log]).kernels["launches"].tolist() == [2]


@pytest.mark.parametrize("wanted", [{"inst_integer"}, set()])
def test_metrics_that_nothing_is_made_of_are_named_beside_those_that_are_used(tmp_path, wanted):
    names = ["inst_integer", "cf_executed", "replays", "a_b", "c_d"]
    summary = profiled(7, METRICS, *(metric(name, "5") for name in names))
    wide = profiled(7, WIDE + "".join(f',"{name}"' for name in names), ",,,," * 2, f'"{K20C}","1","7","k"' + ",5" * 5)
    for text in (summary, wide):
        log = read(write(tmp_path, text), keep=wanted)
        said = [note for note in log.notes if "cf_executed" in note]
        of_whole = "`cf_executed`, `replays`, `a_b` and 1 more metric: counted, and not used"
        assert len(said) == 1 and said[0].startswith(of_whole if wanted else "a table has only counters that tell no")


def test_metrics_of_other_generations_are_named(tmp_path):
    """Nothing on Kepler is made of `gst_transactions`, which Maxwell has a use for."""
    path = write(tmp_path, profiled(7, METRICS, metric("inst_integer", "5"), metric("gst_transactions", "6")))
    energy = eprof.load(path, cache=False).energy("gtx680")
    (told,) = (note for note in energy.warnings if note == "Not used with nvprof/kepler-3.5: `gst_transactions`.")
    assert told not in notes(View(document(energy))), "it says nothing that a first screen needs"


# --- what nvprof means by GB/s: 2**30 B/s, and 10**9 up to CUDA 6.5, which begins a message with "Warning:"

REPLAYED = "Some kernel(s) will be replayed on device 0 in order to collect all events/metrics."


@pytest.mark.parametrize(
    ("before", "base"),
    [("", 1024), (f"==7== {REPLAYED}\n", 1024), (f"==7== Warning: {REPLAYED}\n", 1000)],
    ids=["not told", "new", "old"],
)
@pytest.mark.parametrize("tuning", [TOGETHER, ONE_BY_ONE], ids=["together", "one by one"])
def test_rates_are_in_the_units_of_the_version(tmp_path, before, base, tuning):
    values = {"a": ("2.5KB/s", 2.5 * base), "b": ("3.0MB/s", 3 * base**2), "c": ("4.0GB/s", 4 * base**3)}
    rows = [metric(name, text) for name, (text, _) in values.items()]
    wide = [WIDE + ',"d"', ",,,,GB/s", f'"{K20C}","1","7","axpy(int, float*)",2.0']
    log = read_tuned(write(tmp_path, before + profiled(7, METRICS, *rows, "", *wide)), tuning)
    launches = combine([log]).counters
    for name, (_, value) in values.items():
        assert launches[name].tolist() == [pytest.approx(value)]
    assert launches["d"].tolist() == [pytest.approx(2 * base**3)]


@pytest.mark.parametrize(("kernel", "base"), [("    Kernel: k", 1024), ("\tKernel: k", 1000)], ids=["new", "old"])
def test_rates_in_text_of_the_version(tmp_path, kernel, base):
    row = "          1        dram_read_throughput        Device Memory Read Throughput  2.0GB/s  2.0GB/s  2.0GB/s"
    log = in_text(tmp_path, TEXT_METRICS, f'Device "{K20C}"', kernel, row)
    assert combine([log]).counters["dram_read_throughput"].tolist() == [pytest.approx(2 * base**3)]


def test_a_tab_before_kernels_tells_old_rates_whatever_is_said_of_replays(tmp_path):
    row = "          1        dram_read_throughput        Device Memory Read Throughput  2.0GB/s  2.0GB/s  2.0GB/s"
    log = in_text(tmp_path, f"==7== {REPLAYED}", TEXT_METRICS, f'Device "{K20C}"', "\tKernel: k", row)
    assert combine([log]).counters["dram_read_throughput"].tolist() == [2e9]


@pytest.mark.parametrize(
    ("end", "is_cut"),
    [("*/", False), ("```", False), ("                   50.00%  6.00", True), ("      API calls:  1.0%", True)],
)
def test_only_a_row_that_is_not_whole_is_cut_off(tmp_path, end, is_cut):
    """As in a comment of a program, whose last line has no end."""
    rows = [TEXT_USAGE, " GPU activities:  100.00%  6.0000us         3  2.0000us  2.0000us  2.0000us  axpy(int)"]
    pages = ["   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name"]
    pages += ["     258  31.751KB  4.0000KB  32.000KB  8.000000MB  9.149400ms  Host To Device"]
    for lines, may_be in ((rows, is_cut), ([*rows, "", *pages], False)):
        log = read(write(tmp_path, profiled(7, *lines).rstrip("\n") + f"\n{end}"))
        assert log.tables[0].lacks_rows == may_be
        assert any("cut off" in note for note in log.notes) == may_be


def test_a_trace_without_its_row_of_units_is_not_said_to_be_cut_off(tmp_path):
    lines = ['"Start","Duration","Grid X","Device","Name"', "s,ms,,,", '0.5,13.1,64,"Tesla K20c (0)","add(float*)"']
    for kept, said in ((lines, None), (lines[:1] + lines[2:], "the row of units of the trace"), (lines[:1], "cut off")):
        path = tmp_path / "trace.csv"
        path.write_text("\n".join(["==1== Profiling result:", *kept, ""]))
        if said is None:
            assert read(path).tables[0].rows.time_s[0] == pytest.approx(0.0131)
        else:
            with pytest.raises(LogError, match=said):
                read(path)


def test_a_trace_whose_blanks_were_put_together_says_so(tmp_path):
    """A trace in text that went through Markdown or HTML: its columns cannot be told apart."""
    rows = (
        "Start Duration Grid Size Block Size Regs* SSMem* DSMem* Size Throughput Device Context Stream Name",
        "351.49ms 1.5863ms (512 256 1) (16 32 1) 14 0B 0B - - Tesla P100-PCIE 1 7 k(float*) [120]",
    )
    path = tmp_path / "trace.txt"
    path.write_text(
        "\n".join(["==7== NVPROF is profiling process 7, command: ./k", "==7== Profiling result:", *rows, ""])
    )
    with pytest.raises(LogError, match="blanks between the columns of its table were put together"):
        read(path)


@pytest.mark.parametrize("has_sizes", [True, False])
def test_pages_of_a_trace_in_text_have_a_size(tmp_path, has_sizes):
    """The column of Unified Memory holds bytes of pages, faults of a group, or where the CPU faulted."""
    size, copied = ("      Size  Throughput", "         -           -") if has_sizes else ("", "")
    head = f"   Start  Duration            Grid Size      Block Size     Regs*{size}           Device   Context    Stream        Unified Memory  Virtual Address  Name"
    rows = [
        (
            "1.0000ms",
            "        -",
            "          -               -         -",
            "               -         -         -",
            "PC 0x58344172",
            "[Unified Memory CPU page faults]",
        ),
        (
            "2.0000ms",
            "500.00us",
            "   (64 1 1)      (1024 1 1)        16",
            "    Tesla T4 (0)         1         7",
            "            -",
            "axpy(int*) [128]",
        ),
        (
            "2.6000ms",
            "10.000us",
            "          -               -         -",
            "    Tesla T4 (0)         -         -",
            "  64.000000KB",
            "[Unified Memory Memcpy HtoD]",
        ),
        (
            "2.7000ms",
            "20.000us",
            "          -               -         -",
            "    Tesla T4 (0)         -         -",
            "   1.000000MB",
            "[Unified Memory Memcpy HtoD]",
        ),
    ]
    lines = [
        f"{start}  {took}  {grid}{copied}  {device}  {pages}  0x7b552e000000  {name}"
        for start, took, grid, device, pages, name in rows
    ]
    log = read(write(tmp_path, "\n".join(["==1== Profiling result:", head, *lines, ""])))
    (moved,) = [copies for copies in log.copies if copies.way == "HtoD"]
    assert (moved.memory, moved.number, moved.size_b) == ("unified", 2, (1 << 16) + (1 << 20))
    assert log.tables[0].rows.time_s.tolist() == [pytest.approx(5e-4)] and not log.skipped_lines


@pytest.mark.parametrize("second, device", [("Tesla T4 (1)", "Tesla T4"), ("Tesla V100 (1)", None)])
def test_several_gpus_of_a_model_name_it(tmp_path, second, device):
    """Totals of Unified Memory name two GPUs: which of them ran a kernel is not told, but of one model it is the same."""
    head = "   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name"
    pages = "       1  1.6016MB  1.6016MB  1.6016MB  1.601563MB  175.6180us  Host To Device"
    lines = [
        "==1== Profiling result:",
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name",
        " GPU activities:  100.00%  2.0000ms         2  1.0000ms  1.0000ms  1.0000ms  axpy(int*)",
        "",
        "==1== Unified Memory profiling result:",
        *(line for name in ("Tesla T4 (0)", second) for line in (f'Device "{name}"', head, pages)),
        "",
    ]
    log = read(write(tmp_path, "\n".join(lines)))
    assert log.device == device and log.tables[0].rows.time_s.tolist() == [pytest.approx(2e-3)]


def test_the_line_of_an_application_names_the_command_where_no_other_does(tmp_path):
    table = (
        "==7== Metric result:\nInvocations  Metric Name  Metric Description  Min  Max  Avg\n"
        'Device "GeForce GTX 1050 (0)"\n    Kernel: k(int)\n          1  flop_count_dp  Flops  54  54  54\n'
    )
    path = tmp_path / "log.txt"
    path.write_text(f"==7== Profiling application: mul.exe 3000\n==7== Profiling result:\n{table}")
    assert logs.read(path).command == "mul.exe 3000"
    path.write_text(f"==7== NVPROF is profiling process 7, command: ./a\n==7== Profiling application: b\n{table}")
    assert logs.read(path).command == "./a"

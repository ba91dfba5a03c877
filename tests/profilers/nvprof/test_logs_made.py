"""Made-up logs: variants that no real file shows (log-formats section 18), damage, and the sentences for it."""

import gzip
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from frames_support import combine
from logs_support import (
    K20C,
    METRICS,
    TOGETHER,
    TRACE,
    TRACE_UNITS,
    USAGE,
    cell,
    example_of_skipped,
    launch,
    metric,
    profiled,
    read,
    read_tuned,
    totals,
    unit,
    write,
)

from eprof.base.errors import LogError
from eprof.logs import read_columns
from eprof.profile import api
from eprof.profilers import signs
from eprof.readers.messages import permission_remedy, understand

SUMMARY = profiled(7, "==7== Metric result:", METRICS, metric("inst_integer", 10), metric("ipc", "1.500000"))
WIDE = '"Device","Context","Stream","Kernel","inst_integer","dram_read_throughput","l2_utilization"'

OF_AMD = "this is of a profiler of AMD GPUs"
READ = ", ".join(sorted(signs()))


def refused(tmp_path, text, **how):
    """The sentence that a log is refused with, without the path."""
    path = write(tmp_path, text, **how)
    with pytest.raises(LogError) as err:
        read(path)
    assert str(err.value).startswith(f"{path}: ") and "\n" not in str(err.value)
    return str(err.value).removeprefix(f"{path}: ")


# --- variants without a real example


def test_two_gpus_in_one_table(tmp_path):
    lines = [METRICS, metric("inst_integer", 10), metric("inst_integer", 20, device="Tesla K20c (1)")]
    found = totals(read(write(tmp_path, profiled(1, *lines))))
    assert found[K20C, "axpy(int, float*)", "inst_integer"] == 20
    assert found["Tesla K20c (1)", "axpy(int, float*)", "inst_integer"] == 40


def test_jetson(tmp_path):
    log = read(write(tmp_path, profiled(1, METRICS, metric("inst_integer", 3, device="GK20A (0)"))))
    assert combine([log]).kernels["device"].tolist() == ["GK20A (0)"]


@pytest.mark.parametrize("name", ['say("hello", int)', "größe(int)", "核(float*)", 'op<"a,b">(int)', "k" * 10_000])
@pytest.mark.parametrize("size", [1, 1 << 60], ids=["together", "one by one"])
def test_names_with_quotes_letters_and_length(tmp_path, name, size):
    path = write(tmp_path, profiled(1, METRICS, metric("inst_integer", 10, kernel=name)))
    log = read_tuned(path, type(TOGETHER)(fast_from=size))
    assert combine([log]).kernels["kernel"].tolist() == [name]


def test_launch_ids_stay_where_a_correlation_id_is(tmp_path):
    text = profiled(1, TRACE + ',"Correlation_ID"', TRACE_UNITS + ",", launch(2.0, number=9) + ",5")
    assert combine([read(write(tmp_path, text))]).kernels["kernel"].tolist() == ["axpy(int, float*) [9]"]


def test_lambda_in_brackets_stays(tmp_path):
    text = profiled(1, TRACE, TRACE_UNITS, launch(2.0, kernel="run<[lambda() (instance 1)]>(int)"))
    assert combine([read(write(tmp_path, text))]).kernels["kernel"].tolist() == ["run<[lambda() (instance 1)]>(int)"]


def test_launch_without_time_is_missing_not_zero(tmp_path):
    log = read(write(tmp_path, profiled(1, TRACE, TRACE_UNITS, launch(2.0), launch(""))))
    assert any("1 kernel rows" in note and "no readable time" in note for note in log.notes)
    assert combine([log]).kernels["time_s"].tolist() == [pytest.approx(2e-3)]


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("12", 24, "count"),
        ("8589934592", 2 * 8589934592, "count"),
        ("1.500000", 3.0, "count"),
        ("99.500000%", 99.5, "percent"),
        ("2.5KB/s", 2560, "byte_per_s"),
        ("2.5MB/s", 2.5 * 2**20, "byte_per_s"),
        ("2.5GB/s", 2.5 * 2**30, "byte_per_s"),
        ("7.0B/s", 7, "byte_per_s"),
        ('"Low (1)"', 1, "level"),
        ("-3", -3, "other"),
    ],
)
def test_values_and_their_units(tmp_path, text, value, kind):
    row = metric("x", 1).rsplit(",", 3)[0] + f",{text},{text},{text}"
    log = read(write(tmp_path, profiled(1, METRICS, row)))
    assert cell(log, "x") == pytest.approx(value) and unit(log, "x") == kind


@pytest.mark.parametrize("text", ["<OVERFLOW>", '"<OVERFLOW>"', "<INVALID>", "nan", "inf", "", "n/a", "1e999", "what"])
def test_no_value_is_missing(tmp_path, text):
    row = metric("x", 1).rsplit(",", 1)[0] + f",{text}"
    log = read(write(tmp_path, profiled(1, METRICS, metric("y", 1), row)))
    assert np.isnan(cell(log, "x")) and cell(log, "y") == 2
    assert any(note.startswith("x: 1 cell ") and note.endswith("taken as missing") for note in log.notes)


def test_a_cell_of_another_unit_is_missing(tmp_path):
    rows = [metric("x", value, kernel=f"k{value}") for value in ("1.0MB/s", "2.0MB/s", "3%")]
    log = read(write(tmp_path, profiled(1, METRICS, *rows)))
    assert log.tables[0].counters.frame()["x"].isna().tolist() == [False, False, True]
    assert any("another unit" in note for note in log.notes)


def test_units_row_scales_and_levels_stay_levels(tmp_path):
    rows = [f'"{K20C}","1","7","k",5,2.0,"Mid (5)"', f'"{K20C}","1","7","k",7,"<OVERFLOW>","Low (1)"']
    log = read(write(tmp_path, profiled(1, WIDE, ",,,,,GB/s,", *rows)))
    table = log.tables[0]
    assert table.counters.frame()["dram_read_throughput"].tolist()[0] == 2 * 2**30
    assert dict(table.units) == {
        "inst_integer": "count",
        "dram_read_throughput": "byte_per_s",
        "l2_utilization": "level",
    }
    assert "dram_read_throughput: 1 cell <OVERFLOW>, taken as missing" in log.notes
    assert combine([log]).counters["l2_utilization"].tolist() == [3]


def test_program_output_between_header_and_units(tmp_path):
    log = read(
        write(tmp_path, profiled(1, WIDE, "step 1, done", ",,,,,GB/s,", f'"{K20C}","1","7","k",5,2.0,"Mid (5)"'))
    )
    assert cell(log, "dram_read_throughput") == 2 << 30
    assert log.skipped_lines == 1 and example_of_skipped(log) == "step 1, done"


def test_keep_limits_what_is_held(tmp_path):
    wide = profiled(1, WIDE, ",,,,,GB/s,", f'"{K20C}","1","7","k",5,2.0,"Mid (5)"')
    for text in (SUMMARY, wide):
        log = read(write(tmp_path, text), keep={"inst_integer"})
        assert list(log.tables[0].counters.frame()) == ["inst_integer"]


def test_two_kernels_of_one_name_add_up(tmp_path):
    lines = [METRICS, metric("a", 1), metric("b", 2), metric("a", 10), metric("b", 20)]
    found = totals(read(write(tmp_path, profiled(1, *lines))))
    assert found[K20C, "axpy(int, float*)", "a"] == 22 and found[K20C, "axpy(int, float*)", "launches"] == 4


def test_api_calls_of_an_old_summary_are_not_kernels(tmp_path):
    text = profiled(1, USAGE, "%,ms,,ms,ms,ms,", '100,2.5,3,1,1,1,"k(int)"', "", "==1== API calls:", USAGE)
    log = read(write(tmp_path, text + '%,ms,,ms,ms,ms,\n99,7.5,3,1,1,1,"cudaMalloc"\n'))
    assert combine([log]).kernels["kernel"].tolist() == ["k(int)"]


# --- packing, encoding, damage


@pytest.mark.parametrize(
    "data",
    [
        SUMMARY.encode("utf-8-sig"),
        SUMMARY.replace("\n", "\r\n").encode(),
        SUMMARY.encode("utf-16"),
        SUMMARY.replace("\n", "\r\n").encode("utf-16-be").join([b"\xfe\xff", b""]),
        gzip.compress(SUMMARY.encode(), mtime=0),
        gzip.compress(SUMMARY[:100].encode(), mtime=0) + gzip.compress(SUMMARY[100:].encode(), mtime=0),
        SUMMARY.replace("\n", "\r", 3).encode(),
    ],
    ids=["BOM", "CRLF", "UTF-16", "UTF-16 BE", "gzip", "two gzips", "mixed line ends"],
)
def test_packing_and_encoding_change_nothing(tmp_path, data):
    assert totals(read(write(tmp_path, data))) == totals(read(write(tmp_path, SUMMARY, "plain.csv")))


def test_latin_1_is_read_and_noted(tmp_path):
    log = read(write(tmp_path, SUMMARY.replace("axpy", "größe"), encoding="latin-1"))
    assert combine([log]).kernels["kernel"].tolist() == ["größe(int, float*)"]
    assert any("Latin-1" in note for note in log.notes)


def test_truncated_gzip_keeps_what_could_be_unpacked(tmp_path):
    rows = [metric("inst_integer", 10, kernel=f"kernel_{i}") for i in range(5000)]
    packed = gzip.compress(profiled(1, METRICS, *rows).encode())
    log = read(write(tmp_path, packed[: len(packed) // 2]))
    assert 0 < len(log.tables[0].rows) < 5000
    assert any("gzip file is cut off" in note for note in log.notes)


def test_cut_row_is_skipped_and_noted(tmp_path):
    log = read(write(tmp_path, SUMMARY[:-40]))
    assert "inst_integer" in log.tables[0].counters and "ipc" not in log.tables[0].counters.frame()
    assert any("looks cut off" in note for note in log.notes)


def test_rows_after_an_empty_line_are_not_read_but_said(tmp_path):
    text = profiled(1, METRICS, metric("a", 1), "", metric("b", 1))
    log = read(write(tmp_path, text))
    assert list(log.tables[0].counters.frame()) == ["a"]
    assert any("look" in note and "like rows of a table" in note and "line 7" in note for note in log.notes)


def test_a_very_long_line_is_skipped_in_bounded_memory(tmp_path):
    path = write(tmp_path, SUMMARY)
    with path.open("ab") as out:
        for _ in range(150):
            out.write(b"x," * (1 << 19))
        out.write(b"\n" + SUMMARY.replace("==7==", "==8==").encode())
    code = (
        "import sys; from eprof.logs import read, combine; log = read(sys.argv[1]);"
        "print(log.skipped_lines, combine([log]).counters['inst_integer'][0],"
        # Not getrusage: it counts what the process was before it became this one, a worker of pytest.
        " int(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))) // 1024)"
    )
    skipped, total, megabytes = subprocess.check_output([sys.executable, "-c", code, str(path)], text=True).split()
    assert (skipped, total) == ("1", "40.0") and int(megabytes) < 280


@pytest.mark.parametrize(
    "line",
    [
        "a,b",
        '"',
        "a" * 200,
        "=====",
        "======== Results ========",
        "==Results== fine",
        "1,2,3,4,5,6,7,8",
        '"x","y",1,"z","w",1,2,3',
    ],
)
def test_program_output_is_skipped_counted_and_shown(tmp_path, line):
    lines = SUMMARY.splitlines()
    log = read(write(tmp_path, "\n".join([*lines[:-1], line, lines[-1], ""])))
    assert totals(log) == totals(read(write(tmp_path, SUMMARY, "plain.csv")))
    assert (log.skipped_lines, example_of_skipped(log)) == (1, line[:120])


# --- the sentences for logs that hold nothing


SAID = [
    (
        "==1== Warning: ERR_NVGPUCTRPERM - The user does not have permission to profile on the target device.",
        "nvprof had no permission to read the GPU's counters (line 4 says: Warning: ERR_NVGPUCTRPERM - The user does not have "
        "permission to profile on the target device.); " + permission_remedy(),
    ),
    (
        "======== Error: Application received signal 11",
        "the program ended in a segmentation fault (line 4 says: Error: Application received signal 11); run it without "
        "nvprof: if it ends well, profile with another version of nvprof; else find the access with gdb, mend it, and "
        "profile again",
    ),
    (
        "======== Error: Application received signal 2",
        "Ctrl-C or a batch system (at a time limit, say) interrupted the program (line 4 says: Error: Application received "
        "signal 2); let it run to its end, or give it less work, and profile again",
    ),
    (
        "x: x.cu:240: void f(int*): Assertion `t == 964' failed.\n======== Error: Application received signal 134",
        "an assertion of the program failed (line 4 says: x: x.cu:240: void f(int*): Assertion `t == 964' failed.); mend the "
        "program, and profile again",
    ),
    (
        "==1== Generated result file: /home/me/run.nvvp",
        "the log holds no table, because nvprof wrote its result to /home/me/run.nvvp (line 4 says: Generated result file: "
        "/home/me/run.nvvp); give eprof that file: `eprof report /home/me/run.nvvp`",
    ),
    (
        "======== Error: Application received signal 7",
        "the program was stopped by signal 7 (line 4 says: Error: Application received signal 7); mend the program so that "
        "it ends by itself, and profile again",
    ),
    (
        "======== Error: Application returned non-zero code 3",
        "the program failed with code 3 (line 4 says: Error: Application returned non-zero code 3); mend the program, and "
        "profile again",
    ),
    (
        "No kernels were profiled.",
        "nvprof ran, but met no kernel (line 4 says: No kernels were profiled.); see that the program launches kernels on "
        "this GPU; for child processes add --profile-child-processes",
    ),
    (
        "No events/metrics were profiled.",
        "nvprof ran, but counted no events or metrics (line 4 says: No events/metrics were profiled.); see that the program "
        "launches kernels, and what --kernels, --devices, --events and --metrics ask for",
    ),
    (
        "======== Error: Unable to import nvprof generated profile data.",
        "nvprof could not read back the data that it had collected (line 4 says: Error: Unable to import nvprof generated "
        "profile data.); see that the folder for temporary files has space and is writable, and profile again",
    ),
    (
        "======== Warning: nvprof is not supported on devices with compute capability 8.0 and higher.",
        "nvprof does not support GPUs of compute capability 8.0 and higher (line 4 says: Warning: nvprof is not supported on "
        "devices with compute capability 8.0 and higher.); use ncu (Nsight Compute) there: `ncu --set full -o log "
        "PROGRAM`, then `eprof report log.ncu-rep`",
    ),
    (
        "==1== Warning: Skipping profiling on device 0 since profiling is not supported on devices with compute capability 7.5"
        " and higher",
        "nvprof collects no counters on GPUs of this compute capability (line 4 says: Warning: Skipping profiling on device 0 "
        "since profiling is not supported on devices with compute capability 7.5 and higher); use ncu (Nsight "
        "Compute) there: `ncu --set full -o log PROGRAM`, then `eprof report log.ncu-rep`",
    ),
    (
        "Internal profiler error 4:999",
        "nvprof failed with an internal error (line 4 says: Internal profiler error 4:999); profile again with fewer counters, "
        "or with another version of nvprof",
    ),
    (
        '==1== Warning: Event "gld_request" cannot be found on device 0',
        "this GPU has none of the counters that were asked for (`gld_request` is one) (line 4 says: Warning: Event "
        '"gld_request" cannot be found on device 0); ask for those that `nvprof --query-metrics --query-events` lists',
    ),
]


@pytest.mark.parametrize(("line", "sentence"), SAID, ids=[line[:40] for line, _ in SAID])
def test_a_log_without_table_says_why(tmp_path, line, sentence):
    assert refused(tmp_path, profiled(1, line)) == sentence


@pytest.mark.parametrize(
    ("said", "status"), [("received signal 6", 134), ("received signal 134", 134), ("returned non-zero code 137", 137)]
)
def test_a_signal_is_told_as_a_shell_does(said, status):
    assert understand("nvprof", [f"======== Error: Application {said}\n"]).status == status


def test_a_log_that_stops_early(tmp_path):
    assert refused(tmp_path, profiled(1)).startswith("nvprof started but wrote no result (the log ends at line 3)")


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF\x02\x01" + bytes(200), "this is a program, not a log"),
        (b"PK\x03\x04" + bytes(200), "this is a zip archive"),
        (b"\x89PNG\r\n\x1a\n" + bytes(200), "this is a picture"),
        (bytes(range(256)) * 8, "this is a binary file"),
        (b"\x1f\x8b\x08\x00", "the gzip data are damaged or cut off"),
        (gzip.compress(b"", mtime=0), "the gzip data are damaged or cut off"),
        (b"NVR\0" + bytes(100), "the report holds no profiled kernel"),
        (b"==PROF== Connected to process 5 (/x)\n", "ncu watched 1 process but wrote no table"),
        (b'"ID","Process ID","Process Name"\n"0","1","x"\n', "the table of ncu (line 1) has no kernels"),
        (b"Time (%),Total Time (ns),Num Calls,Name\n1,2,3,f\n", "the log has tables of nsys but none of kernels"),
        (b"ID,Kernel Name,Metric Name,Metric Unit,Metric Value\n0,k,SQ_INSTS_VALU,inst,7\n", OF_AMD),
        (b"SQLite format 3\0\x10\0CREATE TABLE rocpd_string(id)", OF_AMD),
        (b"hello\nworld\n", f"no log of a profiler that eprof reads ({READ}) was found in 2 lines (one says: hello)"),
        (METRICS.encode() + b"\n", "this is a list of columns without rows; give it beside the log"),
        (b"==1== Profiling result:\n" + METRICS.encode() + b"\n", "a table begins but has no rows"),
        (b"SQLite format 3\0" + bytes(100), "the database is damaged or cut off"),
    ],
)
def test_what_is_no_log_is_told_apart(tmp_path, data, sentence):
    assert refused(tmp_path, data).startswith(sentence)


def test_paths_that_cannot_be_read(tmp_path):
    with pytest.raises(LogError, match="there is no such file"):
        read(tmp_path / "missing.csv")
    with pytest.raises(LogError, match="this is a folder"):
        read(tmp_path)


def test_only_copies_is_no_log_of_kernels(tmp_path):
    text = profiled(
        1, TRACE, TRACE_UNITS, launch(1.0, "x").replace("x [1]", "[CUDA memcpy HtoD]").replace("64,1,1", ",,")
    )
    assert refused(tmp_path, text).startswith("the log holds copies and memsets ([CUDA memcpy HtoD]) but no kernels")


def test_nsys_database_is_told_apart(tmp_path):
    with sqlite3.connect(tmp_path / "x.sqlite") as base:
        base.execute("create table StringIds (id int, value text)")
    base.close()
    with pytest.raises(LogError, match="Nsight Systems"):
        read(tmp_path / "x.sqlite")


@pytest.mark.parametrize("text", ["", "Device\n", "a,b\nc,d\n"])
def test_a_list_of_columns_is_one_line(tmp_path, text):
    path = write(tmp_path, text or "\n", "columns.csv")
    with pytest.raises(LogError, match="one line with the names of the columns"):
        read_columns(path)


def test_a_list_of_columns_must_be_of_a_table(tmp_path):
    with pytest.raises(LogError, match="Device, Context, Stream, Kernel"):
        read(write(tmp_path, "1,2,3\n"), columns=["a", "b", "c"])


WARNINGS = {
    'One or more events or metrics overflowed. Rerun with "--print-gpu-trace" for detail.': "counters overflowed",
    "One or more events or metrics can't be profiled.": "can't be profiled",
    "Some events/metrics can't be associated with any kernel.": "can't be associated",
    "5 records have invalid timestamps due to insufficient device buffer space.": "5 records have invalid timestamps",
    "Found 3 invalid records in the result.": "3 records are invalid",
    "Some profiling data are not recorded. Make sure cudaDeviceReset() is called": "were not recorded",
    "The aggregate event values were extrapolated from limited profile data": "extrapolated",
}


@pytest.mark.parametrize("said", WARNINGS)
def test_warnings_of_incomplete_counts_become_notes(tmp_path, said):
    log = read(write(tmp_path, f"==7== Warning: {said}\n" + SUMMARY))
    assert any(WARNINGS[said] in note and note.endswith("(line 1)") for note in log.notes)


def test_lost_times_of_kernels_explain_that_there_are_none(tmp_path):
    lost = next(said for said in WARNINGS if "invalid timestamps" in said)
    text = f"==7== Warning: {lost}\n==7== Profiling result:\nNo kernels were profiled.\n"
    with pytest.raises(LogError, match=r"line 1 says: .*larger --device-buffer-size"):
        read(write(tmp_path, text))


def test_importing_logs_imports_no_pandas():
    code = "import sys, eprof, eprof.logs; print([name for name in ('pandas', 'pyarrow') if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


@pytest.mark.parametrize(("number", "is_read"), [("9e29", True), ("1.1e30", False), ("9e31", False), ("1e40", False)])
def test_numbers_that_nothing_can_be_counted_to_are_damage(tmp_path, number, is_read):
    """Beside a count that is sound: that one stays."""
    path = tmp_path / "large.csv"
    path.write_text(
        profiled(1, METRICS, metric("inst_integer", number, launches=1), metric("inst_control", 7, launches=1))
    )
    counts = api.load(path, cache=False).energy("gtx680").document()["counts"]
    assert counts["control"]["value"] == 7
    assert (counts.get("integer", {}).get("value") == float(number)) == is_read

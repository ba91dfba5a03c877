"""Logs of Nsight Compute and nsys: the real ones as they are, and made-up ones (marked so) for what no real one shows."""

import gzip

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED
from frames_support import combine
from hypothesis import given
from hypothesis import strategies as st
from logs_support import example_of_skipped, read_tuned

from eprof.base.errors import LogError
from eprof.base.gpus import capability_of_label
from eprof.base.vocabulary import Mark
from eprof.logs import read
from eprof.logs.stream import Tuning
from eprof.readers import sections
from eprof.readers.cells import unit_of
from eprof.readers.sections import CsvSection

REAL = SHARED / "ncu"
LOGS = sorted(path for path in REAL.glob("*") if path.suffix != ".tsv") if REAL.is_dir() else []
OLD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream","Section Name",'
    '"Metric Name","Metric Unit","Metric Value"'
)
NEW = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)
RULES = NEW + ',"Rule Name","Rule Type","Rule Description","Estimated Speedup Type","Estimated Speedup"'
SUMMARY = (
    '"Process ID","Process Name","Host Name","Kernel Name","Block Size","Grid Size","Device","CC","Invocations",'
    '"Section Name","Metric Name","Metric Unit","Minimum","Maximum","Average"'
)
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"
TIME = "gpu__time_duration.sum"


def row(number, metric, unit, value, kernel="axpy(int, float *)", pid=7, device=0, cc="8.0", section="Command line"):
    """A row of the long form of 2021 and later."""
    kernel = kernel.replace('"', '""')
    return (
        f'"{number}","{pid}","prog","127.0.0.1","{kernel}","1","7","(32, 1, 1)","(64, 1, 1)","{device}","{cc}",'
        f'"{section}","{metric}","{unit}","{value}"'
    )


def wide(*rows, names=(FFMA, "dram__bytes.sum", TIME), units=("inst", "Mbyte", "usecond")):
    """A raw page: each row is (id, process, kernel, values...)."""
    head = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Device", "CC", *names]
    lines = [head, [""] * 9 + list(units)]
    lines += [[n, pid, "prog", "host", kernel, 1, 7, 0, "9.0", *values] for n, pid, kernel, *values in rows]
    return "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines) + "\n"


def log_of(tmp_path, *lines, name="log.csv", **options):
    """Read a log of these lines."""
    path = tmp_path / name
    data = lines[0] if isinstance(lines[0], bytes) else ("\n".join(lines) + "\n").encode()
    path.write_bytes(data)
    return read(path, **options)


def refused(tmp_path, *lines):
    """The sentence for a log that holds nothing."""
    with pytest.raises(LogError) as caught:
        log_of(tmp_path, *lines)
    sentence = str(caught.value)
    assert "\n" not in sentence and "log.csv: " in sentence
    return sentence.partition("log.csv: ")[2]


def real(name):
    """A real log, read; skips where the shared data is not there."""
    if not (REAL / name).exists():
        pytest.skip(f"needs the real log {name}, which is not part of this project")
    return read(REAL / name)


def value(log, kernel, counter):
    """The total of a counter of the kernels whose name starts so."""
    joined = combine([log])
    mine = joined.kernels["kernel"].str.startswith(kernel)
    return joined.counters.loc[mine, counter].sum(min_count=1)


@pytest.mark.skipif(not LOGS, reason="the real logs are not part of this project")
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_real_log_is_read_or_told_in_one_sentence(path):
    try:
        log = read(path)
    except LogError as err:
        assert str(err).startswith(f"{path}: ") and "\n" not in str(err) and len(str(err)) < 600
        return
    assert combine([log]).kernels["launches"].sum() > 0


def test_the_long_form_of_2022_with_program_output():
    log = real("a100-details-kernel-time-program-output.csv")
    (table,) = log.tables
    assert log.format == "ncu-long" and log.skipped_lines == 1 and log.command == "/usr/bin/python3.6"
    assert table.counters.frame().shape == (2, 22) and table.rows.frame()["device"].isna().all()
    assert list(table.counters.frame()["lts__t_bytes.sum"])[0] == 233_856
    assert np.isclose(table.rows.frame()["time_s"].sum(), (7488 + 4224) * 1e-9)
    assert table.units["dram__bytes.sum"] == "count"
    assert table.units["gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"] == "percent"


def test_launches_of_one_kernel_add_up():
    log = real("a100-pcie-cutlass-details-program-output.csv")
    assert log.tables[0].rows.frame()["launches"].sum() == 11
    assert set(log.tables[0].rows.frame()["device"]) == {"ncu device 0 (CC 8.0)"}
    joined = combine([log])
    assert len(joined.kernels) == 4 and joined.kernels["launches"].sum() == 11
    assert value(log, "ampere_s16816gemm", "sm__inst_executed_pipe_tensor.sum") % 4_194_304_000 == 0
    assert any("8 lines are no part of a table" in note for note in log.notes)


@pytest.mark.parametrize("log", ["ncu/a100-pcie-cutlass-details-program-output.csv", "nvprof/k20c-metrics-summary.csv"])
def test_a_ruler_is_no_example_of_skipped_lines(log, tmp_path):
    if not (SHARED / log).exists():
        pytest.skip(f"needs the real log {log}, which is not part of this project")
    path = tmp_path / "log.csv"
    path.write_text(f"=======\nchecksum 42\n{(SHARED / log).read_text()}")
    assert example_of_skipped(read(path)) == "checksum 42"


def test_a_table_rewritten_by_a_script_and_one_of_windows():
    log = real("details-rewritten-by-pandas-unquoted.csv")
    assert log.tables[0].counters.frame().shape[0] == 9
    log = real("rtx5070-windows-bom-details.csv")
    assert value(log, "unnamed>::gemm_naive_kernel", "dram__bytes_op_read.sum") == 54_207_744
    assert log.tables[0].units["smsp__thread_inst_executed_per_inst_executed.ratio"] == "other"
    assert set(log.tables[0].rows.frame()["device"]) == {"ncu device 0 (CC 12.0)"}


def test_ragged_rows_and_rules_and_one_label_in_two_units():
    log = real("cc80-details-page-rules-estimated-speedup.csv")
    (table,) = log.tables
    assert len(table.rows) == 6 and log.skipped_lines == 0
    assert (
        table.units["Memory Throughput"] == "percent" and table.counters.frame()["Memory Throughput"].iloc[0] == 23.97
    )
    assert table.units["dram__bytes.sum.per_second"] == "byte_per_s"
    assert table.counters.frame()["dram__bytes.sum.per_second"].iloc[0] == 488.17e9
    assert table.counters.frame()["gpc__cycles_elapsed.max"].iloc[0] == 63_779
    assert np.isclose(table.rows.frame()["time_s"].iloc[0], 56.06e-6) and np.isclose(
        table.rows.frame()["time_s"].max(), 30.86e-3
    )


def test_the_raw_page_of_2025_and_of_2019():
    log = real("b200-raw-wide.csv")
    (table,) = log.tables
    assert (
        log.format == "ncu-raw" and len(table.rows) == 16 and set(table.rows.frame()["device"]) == {"NVIDIA B200 (0)"}
    )
    assert table.rows.frame()["time_s"].iloc[0] == pytest.approx(687_488e-9)
    log = real("gtx1080-raw-wide-kernel-time-program-output.txt")
    (table,) = log.tables
    assert set(table.rows.frame()["device"]) == {"NVIDIA GeForce GTX 1080 (0)"}
    assert table.counters.frame()["dram__read_bytes"].iloc[0] == 7552
    assert table.counters.frame()["inst_executed"].isna().all()
    assert any("several instances" in note and "thread_inst_executed_true" in note for note in log.notes)


def test_nsys_times_are_exact_and_ncu_times_are_estimates(tmp_path):
    log = real("nsys-cuda-gpu-kern-sum.csv")
    joined = combine([log])
    assert log.format == "nsys-summary" and joined.kernels["launches"].sum() == 679
    assert (joined.kernels["time_marks"] == 0).all()
    assert joined.kernels.set_index("kernel").loc["add_f16", "time_s"] == pytest.approx(5952e-9)
    counted = log_of(tmp_path, NEW, row(0, FFMA, "inst", "1,234,567", "add_f16"), row(0, TIME, "us", "9.5", "add_f16"))
    alone = combine([counted]).kernels
    assert alone["time_s"][0] == pytest.approx(9.5e-6) and alone["time_marks"][0] == Mark.ESTIMATED
    both = combine([counted, log]).kernels.set_index("kernel")
    assert both.loc["add_f16", "time_s"] == pytest.approx(5952e-9) and both.loc["add_f16", "time_marks"] == 0


def test_units_differ_from_row_to_row(tmp_path):
    """Synthetic, as are all tests below: units are scaled launch by launch."""
    log = log_of(
        tmp_path,
        NEW,
        row(0, "dram__bytes.sum", "Kbyte", "1.50"),
        row(1, "dram__bytes.sum", "Mbyte", "2.25"),
        row(2, "dram__bytes.sum", "byte", "12"),
        row(0, TIME, "usecond", "1.50"),
        row(1, TIME, "ms", "2.50"),
        row(2, TIME, "ns", "7"),
    )
    assert list(log.tables[0].counters.frame()["dram__bytes.sum"]) == [1500, 2_250_000, 12]
    assert list(log.tables[0].rows.frame()["time_s"]) == pytest.approx([1.5e-6, 2.5e-3, 7e-9])
    assert value(log, "axpy", "dram__bytes.sum") == 2_251_512


def test_a_metric_named_as_another_is_told_apart_is_one_of_its_own(tmp_path):
    lines = [row(0, "Foo", "byte", 5), row(0, "Foo (ns)", "inst", 7), row(0, "Foo", "us", 9)]
    table = log_of(tmp_path, NEW, *lines).tables[0]
    assert table.counters.frame().iloc[0].to_dict() == {"Foo": 5, "Foo (ns)": 7, "Foo (ns) (ns)": 9000}


def test_columns_of_one_metric_are_the_last_of_them(tmp_path):
    names, units = ("Duration", TIME, "a__b.sum", "a__b.sum", "a__b.sum (2)"), ("us", "ns", "inst", "inst", "inst")
    log = log_of(tmp_path, wide((0, 7, "k", "3.5", "4000", 1, 2, 3), names=names, units=units).encode())
    assert log.tables[0].counters.frame().iloc[0].to_dict() == {TIME: 4000, "a__b.sum": 1, "a__b.sum (2)": 3}


def test_a_line_that_only_looks_like_a_row_is_left_out_while_launches_are_added_up(tmp_path):
    rows = [row(f"{n}x" if n == 3 else n, FFMA, "inst", n) for n in range(40)]
    path = tmp_path / "log.csv"
    path.write_text("\n".join([NEW, *rows, ""]))
    for tuning in (Tuning(), Tuning(chunk_bytes=600, fold_rows=8)):
        log = read_tuned(path, tuning)
        assert value(log, "axpy", FFMA) == sum(range(40)) - 3 and log.skipped_lines == 1


def test_rows_that_end_before_a_column_that_is_needed_are_none(tmp_path):
    lines = [row(0, FFMA, "inst", 5), row(1, FFMA, "inst", 6) + ',"2"']
    log = log_of(tmp_path, NEW + ',"Invocations"', *lines)
    assert list(log.tables[0].counters.frame()[FFMA]) == [6] and log.skipped_lines == 1
    assert "has no rows" in refused(tmp_path, NEW + ',"Invocations"', lines[0])


def test_a_raw_page_that_pyarrow_splits_is_that_which_python_splits(tmp_path, monkeypatch):
    rows = [(n, 7, f"k{n % 3}", n, "n/a" if n % 5 else f"1; {n}", f"{n},000") for n in range(20)]
    path = tmp_path / "log.csv"
    path.write_bytes(wide(*rows).encode())
    in_python = read_tuned(path, Tuning(chunk_bytes=300))
    monkeypatch.setattr(sections, "_LONG", 1)
    by_pyarrow = read_tuned(path, Tuning(chunk_bytes=300))
    pd.testing.assert_frame_equal(by_pyarrow.tables[0].counters.frame(), in_python.tables[0].counters.frame())
    assert by_pyarrow.notes == in_python.notes and by_pyarrow.lines == in_python.lines
    assert any("several instances" in note for note in in_python.notes)


ROW = '"1","7","kernel<a, ""b"">","inst","1,234"\n'
LINES_OF_ANY_KIND = [
    ROW,
    ROW.replace("1,234", ""),
    ROW.replace("1,234", "n/a (a: 1; b: 2)"),
    "2,7,plain,cycle,5\n",
    "2,7,empty,,5\n",
    "2,7,short\n",
    ROW.replace("\n", ',"rule","advice, in words"\n'),
    ROW.replace("\n", ',"rule","advice","too long"\n'),
    "the program says, as it likes, some, things, here\n",
    '"2","7","cut off\n',
    '"2","7","a quote " in a cell","inst","3"\n',
    '"2","7","a blank behind" ,"inst","3"\n',
    "==PROF== Disconnected\n",
    "\n",
]


@given(lines=st.lists(st.sampled_from(LINES_OF_ANY_KIND), min_size=1), odd=st.booleans())
def test_rows_that_pyarrow_splits_are_those_that_python_splits(lines, odd):
    lines = lines if odd else [line for line in lines if line in LINES_OF_ANY_KIND[:4]] or [ROW]
    columns = ["ID", "Process ID", "Kernel Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Description"]
    section = CsvSection("ncu-long", columns, needed=("Metric Value",))
    by_lines = sections.rows(section, "".join(lines).split("\n")[:-1], [0, 2, 4])
    before, sections._LONG = sections._LONG, 1
    try:
        piece = sections.many_rows(section, "".join(lines).encode(), [0, 2, 4])
    finally:
        sections._LONG = before
    if piece is None:
        assert odd, "nothing here is odd"
        return
    assert not by_lines.others and not by_lines.misfits
    assert {place: sections.texts_of(cells) for place, cells in piece.items()} == by_lines.pieces[0]


@pytest.mark.parametrize(
    ("text", "factor", "base", "kind"),
    [
        ("byte", 1, "byte", "count"),
        ("Gbyte", 1e9, "byte", "count"),
        ("Tbyte/s", 1e12, "byte/second", "byte_per_s"),
        ("byte/nsecond", 1e9, "byte/second", "byte_per_s"),
        ("cycle/usecond", 1e6, "cycle/second", "other"),
        ("Ghz", 1e9, "hz", "other"),
        ("msecond", 1e6, "ns", "count"),
        ("s", 1e9, "ns", "count"),
        ("%", 1, "%", "percent"),
        ("inst", 1, "inst", "count"),
        ("inst/cycle", 1, "inst/cycle", "other"),
        ("register/thread", 1, "register/thread", "other"),
        ("Kbyte/block", 1e3, "byte/block", "other"),
        ("", 1, "", "count"),
    ],
)
def test_units(text, factor, base, kind):
    assert (unit_of(text).factor, unit_of(text).base, unit_of(text).kind) == (factor, base, kind)


STYLES = {
    "English": ("1,759,000.00", 1_759_000),
    "English, one group and decimals": ("1,410.55", 1410.55),
    "English, decimals only": ("103.5", 103.5),
    "English, leading zero": ("0.125", 0.125),
    "English, four digits before": ("1234.567", 1234.567),
    "Continental": ("27.595.520", 27_595_520),
    "Continental, one group and decimals": ("1.410,55", 1410.55),
    "Continental, decimals only": ("117,34", 117.34),
    "Continental, leading zero": ("0,125", 0.125),
    "exponent": ("1.25e+06", 1_250_000),
}


@pytest.mark.parametrize("name", STYLES)
def test_numbers_in_the_style_of_a_locale(tmp_path, name):
    text, wanted = STYLES[name]
    log = log_of(tmp_path, NEW, row(0, "a__b.avg", "", text), row(0, "c__d.avg", "", "5"))
    assert (
        log.tables[0].counters.frame()["a__b.avg"][0] == wanted and log.tables[0].counters.frame()["c__d.avg"][0] == 5
    )


def test_a_file_is_read_in_one_style(tmp_path):
    """What is open in one value (`117,344`) is decided by the others."""
    open_ = row(0, "a__b.avg", "", "117,344")
    assert log_of(tmp_path, NEW, open_, row(0, "b.avg", "", "1.5")).tables[0].counters.frame()["a__b.avg"][0] == 117_344
    assert log_of(tmp_path, NEW, open_, row(0, "b.avg", "", "1,5")).tables[0].counters.frame()["a__b.avg"][0] == 117.344
    assert log_of(tmp_path, NEW, row(0, FFMA, "inst", "117,344")).tables[0].counters.frame()[FFMA][0] == 117_344
    assert log_of(tmp_path, NEW, row(0, FFMA, "inst", "117.344")).tables[0].counters.frame()[FFMA][0] == 117_344
    assert "may have decimals or groups of three digits" in refused(tmp_path, NEW, open_)
    both = refused(tmp_path, NEW, row(0, "a.avg", "", "1,234,567"), row(0, "b.avg", "", "1.234.567"))
    assert "written in two ways" in both
    assert "LC_ALL=C" in both
    page = wide((0, 1, "k", "5", "1.234.567,25", "2,5"))
    assert log_of(tmp_path, page).tables[0].counters.frame()["dram__bytes.sum"][0] == 1_234_567.25e6


@pytest.mark.parametrize("text", ["n/a", "nan", "(!) n/a", "(!) nan", "", "inf", "CachePreferNone", "1; 2; 3"])
def test_a_cell_without_a_number_is_missing(tmp_path, text):
    log = log_of(tmp_path, NEW, row(0, FFMA, "inst", text), row(0, "x.sum", "inst", 3), row(1, FFMA, "inst", "4"))
    assert np.isnan(log.tables[0].counters.frame()[FFMA][0])
    joined = combine([log])
    assert joined.counters[FFMA][0] == 4 and joined.marks[FFMA][0] & Mark.MISSING


def test_processes_and_ids_tell_launches_apart(tmp_path):
    log = log_of(
        tmp_path,
        NEW,
        row(0, FFMA, "inst", 1, pid=1),
        row(1, FFMA, "inst", 2, pid=1),
        row(0, FFMA, "inst", 4, pid=2),
        row(0, FFMA, "inst", 8, pid=3, device=1, cc="9.0"),
        row(0, FFMA, "inst", 16, 'axpy(int, "float" *, <unnamed>::T)', pid=4),
    )
    rows = log.tables[0].rows.frame()
    assert len(rows) == 5 and rows["run"].nunique() == 4 and log.runs == 4
    joined = combine([log])
    found = dict(
        zip(joined.kernels[["device", "kernel"]].itertuples(index=False, name=None), joined.counters[FFMA], strict=True)
    )
    assert found == {
        ("ncu device 0 (CC 8.0)", "axpy(int, float *)"): 7,
        ("ncu device 1 (CC 9.0)", "axpy(int, float *)"): 8,
        ("ncu device 0 (CC 8.0)", 'axpy(int, "float" *, <unnamed>::T)'): 16,
    }


def test_a_device_with_a_number_is_the_named_one_of_another_page(tmp_path):
    long = log_of(tmp_path, NEW, row(0, FFMA, "inst", 3, "k", cc="9.0"))
    names = (FFMA, "device__attribute_display_name")
    raw = log_of(tmp_path, wide((0, 7, "k", "4", "NVIDIA H200"), names=names, units=("inst", "")))
    joined = combine([long, raw])
    assert joined.kernels["device"].to_list() == ["NVIDIA H200 (0)"]
    assert joined.counters[FFMA][0] == 4 and joined.marks[FFMA][0] == Mark.ESTIMATED, "two forms that differ"
    assert any("is taken to be NVIDIA H200 (0)" in warning for warning in joined.warnings)


def test_capability_of_a_label():
    assert capability_of_label("ncu device 0 (CC 8.0)") == "8.0"
    assert capability_of_label("ncu device 12 (CC 12.1)") == "12.1"
    assert capability_of_label("Tesla K20c (0)") is None and capability_of_label("ncu device 0") is None


def test_output_and_errors_between_rows(tmp_path):
    log = log_of(
        tmp_path,
        "step 1",
        "==PROF== Connected to process 7 (/opt/prog)",
        "output without an end" + NEW,
        row(0, FFMA, "inst", 1),
        "7 steps, 3 of them long",
        '"5","6" said the program',
        row(1, FFMA, "inst", 2),
        "",
        "==ERROR== LaunchFailed",
        row(2, FFMA, "inst", 4),
        '"3","7","prog","127.0.0.1","axp',
    )
    assert list(log.tables[0].counters.frame()[FFMA]) == [1, 2, 4]
    assert log.skipped_lines >= 4 and log.command == "/opt/prog"
    assert any("LaunchFailed" in note for note in log.notes)
    log = log_of(tmp_path, "\n".join([NEW, row(0, FFMA, "inst", 1), row(1, FFMA, "inst", 2)]).encode()[:-1])
    assert list(log.tables[0].counters.frame()[FFMA]) == [1] and any("looks cut off" in note for note in log.notes)


@pytest.mark.parametrize("value", ["nan", "7"])
def test_a_launch_that_failed_and_counted_nothing_is_no_report(tmp_path, value):
    lines = ["==ERROR== LaunchFailed", NEW, row(0, FFMA, "inst", value), row(0, TIME, "ns", "nan")]
    if value == "7":
        assert log_of(tmp_path, *lines).tables[0].counters[FFMA].tolist() == [7]
        return
    said = refused(tmp_path, "\n".join(lines).encode())
    assert (
        "a kernel failed while ncu profiled it (line 1 says: LaunchFailed); run the program without ncu first" in said
    )


def test_rule_rows_with_line_ends_and_quotes(tmp_path):
    log = log_of(
        tmp_path,
        RULES,
        row(0, FFMA, "inst", 1) + ",",
        row(0, "", "", "", section="SpeedOfLight") + ',"Rule","OPT","Say ""high"", then\nuse 5, or',
        'more","global","5.1"',
        row(0, "x.sum", "inst", 2) + ",",
        row(1, FFMA, "inst", 4) + ",",
    )
    assert list(log.tables[0].counters.frame()[FFMA]) == [1, 4] and log.tables[0].counters.frame()["x.sum"][0] == 2


def test_several_tables_in_one_file(tmp_path):
    log = log_of(
        tmp_path,
        "==PROF== Connected to process 7 (/opt/prog)",
        NEW,
        row(0, FFMA, "inst", 1),
        "==PROF== Connected to process 8 (/opt/prog)",
        NEW,
        row(0, FFMA, "inst", 2),
        wide((0, 7, "other()", "4", "1.50", "2.5")),
    )
    assert log.format == "ncu-long+ncu-raw"
    assert list(log.tables[0].counters.frame()[FFMA]) == [1, 2] and list(log.tables[0].rows.frame()["run"]) == [0, 1]
    assert log.tables[1].counters.frame()["dram__bytes.sum"][0] == 1_500_000


def test_summaries_are_averages_times_invocations(tmp_path):
    part = '"7","prog","host","axpy(int, float *)","(32, 1, 1)","(64, 1, 1)","0","7.5","4","Command line"'
    log = log_of(tmp_path, SUMMARY, f'{part},"{FFMA}","inst","1","9","2,000.50"', f'{part},"{TIME}","us","1","9","2.5"')
    (table,) = log.tables
    assert log.format == "ncu-summary" and table.rows.frame()["launches"][0] == 4
    assert table.counters.frame()[FFMA][0] == 8002 and table.rows.frame()["time_s"][0] == pytest.approx(10e-6)


def test_columns_of_a_script_in_front(tmp_path):
    log = log_of(tmp_path, "case," + NEW, "small," + row(0, FFMA, "inst", 3), "small," + row(1, FFMA, "inst", 4))
    assert list(log.tables[0].counters.frame()[FFMA]) == [3, 4]


def test_encodings_and_packing_change_nothing(tmp_path):
    text = "\n".join(["hello", NEW, row(0, FFMA, "inst", "1,234,567"), row(0, TIME, "ns", "5"), ""])
    for data in (
        b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        text.encode("utf-16"),
        gzip.compress(text.encode()),
        text.encode().rstrip(),
        ("x" * 70 + "\n").encode() * 100 + text.encode(),
    ):
        log = log_of(tmp_path, data)
        assert log.tables[0].counters.frame()[FFMA][0] == 1_234_567 and log.size_bytes == len(data)


def test_only_wanted_counters_are_kept_and_the_log_says_what_it_has(tmp_path):
    lines = [NEW, row(0, FFMA, "inst", 3), row(0, "b.sum", "inst", 3), row(0, TIME, "ns", 3)]
    log = log_of(tmp_path, *lines, keep={FFMA})
    assert list(log.tables[0].counters.frame()) == [FFMA] and log.tables[0].rows.frame()["time_s"][0] == pytest.approx(
        3e-9
    )
    log = log_of(tmp_path, *lines, keep={"another"})
    assert any(
        f"none of the log's 2 metrics is one that eprof counts with (it has {FFMA}, b.sum)" in note
        for note in log.notes
    )
    share = row(0, "sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "50.5")
    log = log_of(tmp_path, NEW, share, keep={FFMA})
    assert any("1 are percentages or rates a cycle" in note and "--metrics" in note for note in log.notes)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("==PROF== Connected to process 5 (/x)", "ncu watched 1 process but wrote no table"),
        ("==ERROR== ERR_NVGPUCTRPERM - The user does not", "ncu had no permission to read the GPU's counters"),
        ("==ERROR== The application returned an error code (7).", "the program ended with an error"),
        ("==ERROR== The application returned an error code (11).", "the program ended with an error"),
        (
            "==ERROR== The application returned an error code (137).",
            "the program was killed, as a rule because memory ran",
        ),
        (
            "x.cu:3: f(): Assertion `a' failed.\n==ERROR== The application was killed",
            "an assertion of the program failed",
        ),
        ("==WARNING== No kernels were profiled.", "ncu profiled no kernel"),
        ("==ERROR== Profiling failed because a driver resource was unavailable.", "another profiler holds"),
        ("==ERROR== Something new", "ncu failed (line 1 says: Something new)"),
        (
            "==PROF== Report: /tmp/x.ncu-rep",
            "ncu wrote its result to a report file (line 1 says: Report: /tmp/x.ncu-rep); give eprof that file: `eprof "
            "report /tmp/x.ncu-rep`",
        ),
        (
            '==ERROR== Failed to profile "f" in process 1\n==PROF== Trying to shutdown target application\n'
            "==ERROR== The application returned an error code (15).\n==PROF== Report: /tmp/x.ncu-rep",
            'ncu failed to profile a launch of "f" (line 1 says: Failed to profile "f" in process 1); what came before is '
            "in its report: `eprof report /tmp/x.ncu-rep`; else profile fewer launches (--launch-count)",
        ),
        (
            '==ERROR== Failed to profile "f" in process 1\n==ERROR== The application returned an error code (15).',
            'ncu failed to profile a launch of "f" (line 1 says: Failed to profile "f" in process 1); profile fewer',
        ),
        ("[1] a@b\n    Metric Name    Metric Unit Metric Value\n", "the tables of ncu's page for reading (line 2)"),
        (NEW, "a table begins (line 1) but has no rows"),
        (RULES + "\n" + row(0, "", "", "") + ',"r","OPT","do this","",""', "the log holds no values of metrics"),
        (
            '==PROF== Disconnected from process 1\n...,"Kernel Name","...","Metric Name","Metric Unit","Average"\n'
            '...,"k(int)","...","dram__bytes.sum","byte","8"',
            "ncu printed a table that lost columns (line 2), which is nothing to count with; print",
        ),
        (" Time (%)  Total Time (ns)  Instances  Name\n", "the log has tables of nsys but none of kernels"),
        (
            "Time (%),Total Time (ns),Num Calls,Name\n1,2,3,cudaMalloc\n",
            "the log has tables of nsys but none of kernels",
        ),
        (
            "Time (%),Total Time (ns),Num Calls,Name\n1,2,3,read\n\nProcessing [x.sqlite] with [cuda_gpu_kern_sum.py]...\n"
            "SKIPPED: x.sqlite does not contain CUDA kernel data.\n",
            "nsys recorded no kernel, as it says where it skipped their table; see that the program uses the GPU",
        ),
        (NEW + "\n" + row(0, "inst_executed", "inst", 5), "the table is in ncu's form, but its metrics are nvprof's"),
        ("NVR\0\1\2", "the report file is cut off at byte 6 of 6"),
    ],
)
def test_no_table_is_told_with_a_remedy(tmp_path, text, sentence):
    said = refused(tmp_path, text.encode())
    assert said.startswith(sentence) and ("; " in said)


def test_nsys_tables_of_other_versions(tmp_path):
    old = "Processing [x.sqlite] with [gpukernsum.py]...\nTime(%),Total Time (us),Instances,Average,Minimum,Maximum,Name\n"
    log = log_of(tmp_path, (old + '99.0,12.5,5,2.5,1,3,"f(int, float)"\n1.0,1,1,1,1,1,[CUDA memcpy HtoD]\n').encode())
    (found,) = combine([log]).kernels[["kernel", "launches", "time_s"]].itertuples(index=False, name=None)
    assert found == ("f(int, float)", 5, pytest.approx(12.5e-6))
    mixed = "Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n80,8,2,4,CUDA_KERNEL,k\n20,2,1,2,MEMORY_OPER,m\n"
    log = log_of(tmp_path, mixed.encode())
    assert list(log.tables[0].rows.frame()["kernel"]) == ["k"]


@pytest.mark.parametrize("cut", range(40, 1200, 61))
def test_a_log_that_is_cut_off_is_told_or_read_without_the_last_row(tmp_path, cut):
    lines = [NEW, *(row(n, metric, "inst", "1,000,000") for n in range(3) for metric in (FFMA, "x.sum"))]
    whole = "\n".join(lines) + "\n"
    try:
        log = log_of(tmp_path, whole[:cut].encode())
    except LogError as err:
        assert "\n" not in str(err)
        return
    values = log.tables[0].counters.values
    assert set(values[~np.isnan(values)]) <= {1_000_000}


def test_both_ways_of_writing_one_log_say_the_same(tmp_path):
    """The raw page and the long form of the same launches, and their order, make no difference."""
    launches = [(0, 7, "f", "12", "1.50", "2.5"), (1, 7, "g", "5", "3.25", "4.5"), (2, 7, "f", "7", "2.00", "1.5")]
    raw = log_of(tmp_path, wide(*launches))
    units = ("inst", "Mbyte", "usecond")
    rows = [
        row(n, metric, unit, text, kernel, pid, cc="9.0")
        for n, pid, kernel, *texts in launches
        for metric, unit, text in zip((FFMA, "dram__bytes.sum", TIME), units, texts, strict=True)
    ]
    for order in (rows, rows[::-1]):
        one, other = combine([raw]), combine([log_of(tmp_path, NEW, *order)])
        for joined in (one, other):
            joined.kernels.index = joined.counters.index = joined.kernels["kernel"]
        assert one.counters.sort_index().equals(other.counters[list(one.counters)].sort_index())
        assert one.kernels["time_s"].sort_index().equals(other.kernels["time_s"].sort_index())


# ------------------------------------------------------------------------------------------------- block by block


@pytest.mark.parametrize("chunk", [64, 700, 5000])
def test_a_log_in_small_pieces_is_the_same(tmp_path, chunk):
    """Rows, words of ncu, rules over several lines and a second table may begin and end in any block."""
    from logs_support import read_tuned

    from eprof.logs.stream import Tuning

    rule = row(0, "", "", "", section="SpeedOfLight") + ',"Rule","OPT","Say ""high"", then\nuse 5","global","5.1"'
    lines = ["step 1", "==PROF== Connected to process 7 (/opt/prog)", RULES]
    lines += [row(n, metric, "inst", f"{n},00{n}") + "," for n in range(1, 9) for metric in (FFMA, "x.sum")]
    lines += [rule, "7 steps", wide((0, 7, "k", "4", "1.50", "2.5"), (1, 7, "k", "5", "2.50", "3.5")).rstrip()]
    path = tmp_path / "log.csv"
    path.write_text("\n".join(lines) + "\n")
    whole, pieces = read(path), read_tuned(path, Tuning(chunk_bytes=chunk))
    assert whole.tables[0].counters.frame()[FFMA].sum() == sum(1001 * n for n in range(1, 9))
    assert list(whole.tables[1].counters.frame()["dram__bytes.sum"]) == [1_500_000, 2_500_000]
    assert (pieces.lines, pieces.skipped_lines, pieces.notes) == (whole.lines, whole.skipped_lines, whole.notes)
    for one, other in zip(whole.tables, pieces.tables, strict=True):
        assert one.counters.frame().equals(other.counters.frame()) and one.rows.frame().equals(other.rows.frame())


# ---------------------------------------------------------------------------------------------- values for each opcode

OPCODES = "sass__thread_inst_executed_true_per_opcode"


def by_opcode(tmp_path, page, *cells, **options):
    """A log with the metric that has a value for each opcode, a launch a cell."""
    if page == "raw":
        rows = [(n, 7, "k", cell, "5") for n, cell in enumerate(cells)]
        return log_of(tmp_path, wide(*rows, names=(OPCODES, TIME), units=("", "ns")), **options)
    return log_of(tmp_path, NEW, *(row(n, OPCODES, "", cell, "k") for n, cell in enumerate(cells)), **options)


@pytest.mark.parametrize("page", ["long", "raw"])
def test_values_for_each_opcode_are_counters(tmp_path, page):
    """As `--print-metric-instances details` prints them; the first is the packaged Sobel<double> sample, shortened."""
    log = by_opcode(tmp_path, page, "67,091,808 (IMAD: 35,650,912; DFMA: 28,297,216; MUFU: 3,143,680)", "7 (MUFU: 7)")
    counters = log.tables[0].counters.frame()
    assert list(counters[OPCODES]) == [67_091_808, 7]
    assert list(counters[f"{OPCODES}[DFMA]"]) == [28_297_216, 0], "an opcode that is not listed did not run"
    assert list(counters[f"{OPCODES}[MUFU]"]) == [3_143_680, 7]
    assert log.tables[0].units[f"{OPCODES}[MUFU]"] == "count"
    few = by_opcode(tmp_path, page, "7 (MUFU: 7)", keep={f"{OPCODES}[MUFU]", f"{OPCODES}[HMMA]"})
    assert few.tables[0].counters.frame().to_dict("list") == {f"{OPCODES}[HMMA]": [0], f"{OPCODES}[MUFU]": [7]}


@pytest.mark.parametrize("page", ["long", "raw"])
@pytest.mark.parametrize("cell", ["7", "7 (3; 4)", "3; 4", "9 (MUFU: 3; IMAD: 4)", "n/a", "7 (MUFU: n/a; IMAD: 4)"])
def test_opcodes_that_are_not_told_are_not_known(tmp_path, page, cell):
    """Totals alone, values without names, or values that do not add up to the total."""
    log = by_opcode(tmp_path, page, cell, "7 (MUFU: 7)", keep={OPCODES, f"{OPCODES}[MUFU]"})
    counters = log.tables[0].counters.frame()
    assert np.isnan(counters[f"{OPCODES}[MUFU]"][0]) and counters[f"{OPCODES}[MUFU]"][1] == 7
    total = counters[OPCODES][0]
    assert np.isnan(total) if cell in ("3; 4", "n/a") else total in (7, 9)


def test_instances_of_other_metrics_leave_their_total(tmp_path):
    log = log_of(tmp_path, wide((0, 7, "k", "12 (4; 8)", "1.50 (0x1: 1.00; 0x2: 0.50)", "2.5")))
    assert (
        log.tables[0].counters.frame()[FFMA][0] == 12
        and log.tables[0].counters.frame()["dram__bytes.sum"][0] == 1_500_000
    )


def test_opcodes_in_the_style_of_a_locale(tmp_path):
    log = by_opcode(tmp_path, "raw", "1.234.567 (IMAD: 1.234.560; MUFU: 7)")
    assert log.tables[0].counters.frame()[f"{OPCODES}[IMAD]"][0] == 1_234_560


def test_a_gpu_that_is_named_where_its_number_stands_is_that_gpu(tmp_path):
    header = '"ID","Kernel Name","Device","CC","Metric Name","Metric Unit","Metric Value"\n'
    row = '"0","k","NVIDIA H100","9.0","dram__bytes_read.sum","byte","1,048,576"\n'
    (tmp_path / "k.csv").write_text(header + row)
    assert combine([read(tmp_path / "k.csv")]).kernels["device"].to_list() == ["NVIDIA H100 (0)"]

"""nsys: databases, JSON, text in every locale and behind much other output; reports that only nsys reads. Most are made up."""

import csv
import gzip
import json
import math
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from frames_support import combine
from logs_support import METRICS, metric, profiled, read_tuned

from eprof.base.errors import LogError
from eprof.logs import read
from eprof.logs.log import NOT_IN_TABLE, Copies
from eprof.logs.stream import Tuning
from eprof.nvidia import tables
from eprof.profile import api

TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces" / "nsys"


def times(log):
    kernels = combine([log]).kernels
    return {
        (device, kernel): (launches, pytest.approx(time_s, nan_ok=True))
        for device, kernel, launches, time_s in kernels[["device", "kernel", "launches", "time_s"]].to_numpy().tolist()
    }


def log_of(tmp_path, text, name="x.txt"):
    path = tmp_path / name
    path.write_text(text)
    return read(path)


def test_a_table_of_kernels_is_an_entry_of_the_definition(tmp_path, monkeypatch):
    text = "Time (%),Total Time (us),Dispatches,Avg (us),Shader\n75,9,3,3,blur\n25,3,1,3,sharpen\n"
    with pytest.raises(LogError, match="none of kernels"):
        log_of(tmp_path, text)
    more = tables.Report("gpu_shader_sum", name="Shader", time="Total Time", launches="Dispatches")
    known = {**tables.reports(), more.report: more}
    monkeypatch.setattr(tables, "reports", lambda: known)
    assert times(log_of(tmp_path, text)) == {(None, "blur"): (3, 9e-6), (None, "sharpen"): (1, 3e-6)}


def test_a_table_in_csv_is_known_by_its_columns_alone(tmp_path, monkeypatch):
    """Whatever its first column is called: sizes of copies, and a report that only a definition knows."""
    kernels = "Time (%),Total Time (ns),Instances,Name\n100,900,3,blur\n\n"
    copies = "Time (%),Total Time (ns),Count,Operation\n100,50,2,[CUDA memcpy HtoD]\n\n"
    sizes = "Total (MB),Count,Avg (MB),Min (MB),Max (MB),Operation\n8.000,2,4,2,6,[CUDA memcpy HtoD]\n\n"
    log = log_of(tmp_path, kernels + copies + sizes)
    assert [copy.size_b for copy in log.copies] == [8e6] and log.skipped_lines == 0
    shaders = 'Shader,"Shader Time (us)",Dispatches\nblur,7,1\n'
    assert times(log_of(tmp_path, kernels + shaders)) == {(None, "blur"): (3, 9e-7)}
    more = tables.Report("gpu_shader_sum", name="Shader", time="Shader Time", launches="Dispatches")
    known = {more.report: more, **tables.reports()}
    monkeypatch.setattr(tables, "reports", lambda: known)
    assert times(log_of(tmp_path, kernels + shaders)) == {(None, "blur"): (1, 7e-6)}


def test_what_a_table_tells_is_an_entry_of_the_definition(tmp_path, monkeypatch):
    """Of sizes each row has a smallest and a largest copy; of ranges a longest one; calls are of CUDA alone."""
    told = {"sizes": "[CUDA memcpy HtoD]", "ranges": ":solve", "calls": "cudaFree_v3020"}
    text = "Time (%),Total Time (ns),Instances,Name\n100,900,3,blur\n\n"
    text += "Time (%),Total Time (ns),Count,Operation\n100,50,2,[CUDA memcpy HtoD]\n\n"
    known = dict(tables.reports())
    for tells, name in told.items():
        unit = "MB" if tells == "sizes" else "ns"
        text += (
            f"Time (%),Total Time ({unit}),{tells},Max ({unit}),Min ({unit}),Of\n99,6,2,4,2,{name}\n1,1,1,1,1,other\n\n"
        )
        known[tells] = tables.Report(tells, name="Of", time="Total Time", launches=tells, tells=tells)
    monkeypatch.setattr(tables, "reports", lambda: known)
    log = log_of(tmp_path, text)
    assert times(log) == {(None, "blur"): (3, 9e-7)}
    assert log.copies == (Copies("HtoD", "", 2, pytest.approx(5e-8), 6e6, 0.0),)
    assert [(call.name, call.number, call.is_range) for call in log.calls_of_host] == [
        ("range solve", 2, True),
        ("range other", 1, True),
        ("cudaFree", 2, False),
    ]


# ------------------------------------------------------------------------------------------------------- databases

STRINGS = {1: "f(int, int)", 2: "f", 3: "void g<float>(T1)", 4: "g", 9: "cudaLaunchKernel"}
# start, end, device, stream, correlation, process, demangled, short
LAUNCHES = [
    (100, 350, 0, 7, 1, 501, 1, 2),
    (400, 500, 0, 13, 2, 501, 1, 2),
    (600, 607, 0, 7, 3, 501, 3, 4),
    (700, 750, 1, 7, 4, 501, 1, 2),
]
SCHEMA = """
create table StringIds (id integer, value text);
create table CUPTI_ACTIVITY_KIND_KERNEL (start integer, end integer, deviceId integer, streamId integer,
    correlationId integer, globalPid integer, demangledName integer, shortName integer);
create table CUPTI_ACTIVITY_KIND_RUNTIME (start integer, end integer, correlationId integer, nameId integer);
create table TARGET_INFO_GPU (id integer, name text);
"""


def export(path, launches=LAUNCHES, gpus=((0, "NVIDIA A100"), (1, "NVIDIA A100")), more=()):
    """A database as nsys writes it, as far as it is read."""
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(SCHEMA)
        base.executemany("insert into StringIds values (?, ?)", STRINGS.items())
        for start, end, device, stream, correlation, pid, *names in launches:
            row = (start, end, device, stream, correlation, pid << 24, *names)
            base.execute("insert into CUPTI_ACTIVITY_KIND_KERNEL values (?, ?, ?, ?, ?, ?, ?, ?)", row)
            # As in a real export: two calls with the number of one launch.
            base.executemany("insert into CUPTI_ACTIVITY_KIND_RUNTIME values (0, 1, ?, 9)", [(correlation,)] * 2)
        base.executemany("insert into TARGET_INFO_GPU values (?, ?)", gpus)
        for statement in more:
            base.execute(statement)
    return path


def test_a_database_tells_each_kernel_on_each_device(tmp_path):
    log = read(export(tmp_path / "x.sqlite"))
    assert log.format == "nsys-summary" and not log.notes and log.runs == 1
    assert times(log) == {
        ("NVIDIA A100 (0)", "f(int, int)"): (2, 350e-9),
        ("NVIDIA A100 (0)", "void g<float>(T1)"): (1, 7e-9),
        ("NVIDIA A100 (1)", "f(int, int)"): (1, 50e-9),
    }


def test_a_packed_database_says_the_same(tmp_path):
    path = export(tmp_path / "x.sqlite")
    (tmp_path / "x.sqlite.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert times(read(tmp_path / "x.sqlite.gz")) == times(read(path))


def test_a_database_tells_streams(tmp_path):
    path = export(tmp_path / "x.sqlite")
    kernels = api.load(path, parts="stream").counts().kernels
    found = {(row.device, row.kernel, row.part): row.launches for row in kernels.itertuples()}
    assert found == {
        ("NVIDIA A100 (0)", "f(int, int)", "7"): 1,
        ("NVIDIA A100 (0)", "f(int, int)", "13"): 1,
        ("NVIDIA A100 (0)", "void g<float>(T1)", "7"): 1,
        ("NVIDIA A100 (1)", "f(int, int)", "7"): 1,
    }


def test_two_processes_that_call_two_gpus_by_one_number_are_on_two_devices(tmp_path):
    launches = [(0, 10, 0, 7, 1, 501, 1, 2), (0, 30, 0, 7, 1, 502, 1, 2)]
    ordinals = ["create table TARGET_INFO_CUDA_DEVICE (gpuId integer, cudaId integer, pid integer)"]
    ordinals += [f"insert into TARGET_INFO_CUDA_DEVICE values ({gpu}, 0, {pid})" for gpu, pid in ((2, 501), (3, 502))]
    gpus = [(0, "Tesla V100"), (2, "NVIDIA A100"), (3, "NVIDIA H100")]
    log = read(export(tmp_path / "x.sqlite", launches, gpus, ordinals))
    assert times(log) == {
        ("NVIDIA A100 (2)", "f(int, int)"): (1, 10e-9),
        ("NVIDIA H100 (3)", "f(int, int)"): (1, 30e-9),
    }
    assert log.runs == 2


@pytest.mark.parametrize(
    ("gpus", "devices"), [((), {None}), (((1, "NVIDIA A100"),), {"GPU without name (0)"})]
)  # fmt: skip
def test_gpus_that_a_database_does_not_name(tmp_path, gpus, devices):
    log = read(export(tmp_path / "x.sqlite", LAUNCHES[:1], gpus))
    assert {device for device, _ in times(log)} == devices


def test_a_launch_without_a_time_takes_none_from_the_others(tmp_path):
    """An end before the start, text in place of a number: such launches have no time, and are counted in a note."""
    odd = [(900, 850, 0, 7, 5, 501, 1, 2), ("?", 900, 0, 7, 6, 501, 3, 4)]
    log = read(export(tmp_path / "x.sqlite", [*LAUNCHES[:3], *odd]))
    rows = log.tables[0].rows.frame()
    known = rows[~np.isnan(rows["time_s"])]
    assert known["launches"].sum() == 3 and known["time_s"].sum() == pytest.approx(357e-9)
    assert rows["launches"].sum() == 5
    assert "2 launches of kernels have no readable time" in log.notes


def test_what_a_database_cannot_tell_is_said(tmp_path):
    more = [
        "create table CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start integer, end integer)",
        "insert into CUPTI_ACTIVITY_KIND_GRAPH_TRACE values (0, 2000000)",
        "create table CUPTI_ACTIVITY_KIND_MEMCPY (start integer, end integer)",
        "insert into CUPTI_ACTIVITY_KIND_MEMCPY values (0, 1000000)",
        "create table DIAGNOSTIC_EVENT (text text)",
        "insert into DIAGNOSTIC_EVENT values ('Not all CUDA events might have been collected.')",
    ]
    lost, graphs, copies = read(export(tmp_path / "x.sqlite", more=more)).notes
    assert lost == "nsys says: Not all CUDA events might have been collected; launches may be missing"
    assert graphs.startswith("1 launch of CUDA graphs is traced as a whole (2 ms)")
    assert copies == "not kernels, so left out: 1 copies (1 ms)"


@pytest.mark.parametrize("parts", [None, "stream"])
def test_a_graph_that_is_traced_as_a_whole_runs_as_one_kernel(tmp_path, parts):
    """f runs from 100 to 350 and from 400 to 500, a graph from 500 to 580, g from 600 to 607: 70 ns are idle."""
    columns = "(start integer, end integer, deviceId integer, streamId integer, globalPid integer)"
    more = [
        f"create table CUPTI_ACTIVITY_KIND_GRAPH_TRACE {columns}",
        f"insert into CUPTI_ACTIVITY_KIND_GRAPH_TRACE values (500, 580, 0, 7, {501 << 24})",
    ]
    log = read(export(tmp_path / "x.sqlite", LAUNCHES[:3], more=more), parts=parts)
    assert times(log)["NVIDIA A100 (0)", "(CUDA graphs)"] == (1, 80e-9)
    assert log.idle.time_s == pytest.approx(70e-9)


@pytest.mark.parametrize(("text", "command"), [("create table X (a)", None), ("", "python a.py")])
def test_a_database_tells_what_was_profiled(tmp_path, text, command):
    more = [text] if text else [
        "create table META_DATA_CAPTURE (name text, value text)",
        "insert into META_DATA_CAPTURE values ('PROCESS_0:COMMAND', 'python'), ('PROCESS_0:ARGUMENT_0', 'a.py')",
    ]  # fmt: skip
    assert read(export(tmp_path / "x.sqlite", more=more)).command == command


def test_a_database_without_kernels_says_so(tmp_path):
    with pytest.raises(LogError, match="holds no kernels; see that the program launches kernels"):
        read(export(tmp_path / "x.sqlite", []))


@pytest.mark.parametrize("keep", [5000, 9000, 12000])
def test_a_cut_database_is_refused_in_one_sentence(tmp_path, keep):
    path = export(tmp_path / "x.sqlite", LAUNCHES * 300)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(LogError, match=r"x\.sqlite: the (database is damaged or cut off|export .* holds no kernels)"):
        read(path)


def real(name):
    if not (TRACES / name).is_file():
        pytest.skip(f"needs the real log {name}, which is not part of this project")
    return TRACES / name


def test_a_real_database_says_what_the_csv_of_its_run_says():
    base = read(real("flame-torch-ex.sqlite")).tables[0].rows.frame()
    trace = read(real("flame-torch-ex_cuda_gpu_trace_base.csv")).tables[0].rows.frame()
    assert base["launches"].sum() == trace["launches"].sum() == 2482
    assert base["time_s"].sum() == pytest.approx(trace["time_s"].sum(), rel=1e-12)
    assert set(base["device"]) == set(trace["device"]) == {"NVIDIA RTX A4500 (0)"}


def test_a_real_database_adds_up_to_the_launches_that_another_reader_saw():
    """pipit's own table of the run: a row where a kernel begins and one where it ends."""
    with gzip.open(real("pipit-cloverleaf_gpu_trace.csv.gz"), "rt") as file:
        events = [row for row in csv.DictReader(file) if row["type"] == "kernel"]
    sign = {"Enter": -1, "Leave": 1}
    ns = sum(sign[row["Event Type"]] * int(row["Timestamp (ns)"]) for row in events)
    rows = read(real("pipit-cloverleaf-perlmutter.sqlite")).tables[0].rows.frame()
    assert 2 * rows["launches"].sum() == len(events)
    assert rows["time_s"].sum() == pytest.approx(ns * 1e-9, rel=1e-12)


def test_a_real_database_tells_the_innermost_range_of_each_launch():
    path = real("flame-torch-ex.sqlite")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        text = "coalesce(text, (select value from StringIds where id = textId))"
        query = f"select globalTid, start, end, {text} from NVTX_EVENTS where eventType = 59 and end is not null"
        ranges = base.execute(query).fetchall()
        calls = base.execute("select correlationId, globalTid, start from CUPTI_ACTIVITY_KIND_RUNTIME").fetchall()
        kernels = base.execute("select correlationId, end - start from CUPTI_ACTIVITY_KIND_KERNEL").fetchall()
    call_of = {number: (thread, start) for number, thread, start in reversed(calls)}
    sums = {}
    for number, ns in kernels:
        thread, at = call_of[number]
        around = [(end - start, name) for own, start, end, name in ranges if own == thread and start <= at <= end]
        name = min(around)[1] if around else "(outside of ranges)"
        sums[name] = sums.get(name, 0.0) + ns * 1e-9
    rows = read(path, parts="nvtx").tables[0].rows.frame()
    assert rows.groupby("part")["time_s"].sum().to_dict() == pytest.approx(sums) and len(sums) > 1


def test_a_launch_with_two_api_calls_is_one_launch():
    """Of this real export a join with its API calls makes 10 launches."""
    assert read(real("pipit-saxpy-mpi-rank0.sqlite")).tables[0].rows.frame()["launches"].sum() == 5


# ------------------------------------------------------------------------------------------------------------ JSON

SUMS = [
    {"Time (%)": 90.0, "Total Time (ns)": 300, "Instances": 2, "Avg (ns)": 150.0, "Name": 'f<char, "{">(int[3])'},
    {"Time (%)": 10.0, "Total Time (ns)": 1234567, "Instances": 1, "Avg (ns)": 30.0, "Name": "g"},
]
SUMMED = {(None, 'f<char, "{">(int[3])'): (2, 300e-9), (None, "g"): (1, 1234567e-9)}
API = [{"Time (%)": 9.0, "Total Time (ns)": 5, "Num Calls": 1, "Name": "cudaMalloc"}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("quote", [int, str])
def test_tables_of_nsys_as_json(tmp_path, indent, quote):
    rows = [{**row, "Total Time (ns)": quote(row["Total Time (ns)"])} for row in SUMS]
    text = (
        f"Processing [x.sqlite] with [a.py]...\n{json.dumps(API, indent=indent)}\n\n{json.dumps(rows, indent=indent)}\n"
    )
    assert times(log_of(tmp_path, text)) == SUMMED
    assert times(log_of(tmp_path, "words of { a program } {\n" * 500 + text)) == SUMMED
    path = tmp_path / "x.txt"
    assert times(read_tuned(path, Tuning(chunk_bytes=97))) == SUMMED


def test_a_trace_as_json_tells_devices(tmp_path):
    rows = [
        {"Start (ns)": 1, "Duration (ns)": 100, "CorrId": 1, "Device": "NVIDIA A100 (0)", "Name": "f"},
        {"Start (ns)": 3, "Duration (ns)": None, "CorrId": 2, "Device": "NVIDIA A100 (0)", "Name": "f"},
        {"Start (ns)": 5, "Duration (ns)": 9, "CorrId": 3, "Device": "NVIDIA A100 (0)", "Name": "[CUDA memset]"},
    ]
    log = log_of(tmp_path, json.dumps(rows))
    assert times(log) == {("NVIDIA A100 (0)", "f"): (1, 100e-9)}
    assert log.skipped_lines == 1 and "1 row has no readable time or number of launches" in log.notes[1]


@pytest.mark.parametrize("left_out", [1, 5, 60, 110, 150])
def test_json_that_is_cut_off_is_refused(tmp_path, left_out):
    with pytest.raises(LogError, match="the JSON is cut off or damaged behind line"):
        log_of(tmp_path, json.dumps(SUMS)[:-left_out])


def test_json_without_kernels_says_so(tmp_path):
    with pytest.raises(LogError, match="the log has tables of nsys but none of kernels"):
        log_of(tmp_path, json.dumps(API))


# ------------------------------------------------------------------------------------------------------------ text


def table(total="3,481,709", share="95.0", second="182,472", instances="1"):
    return (
        " Time (%)  Total Time (ns)  Instances   Avg (ns)     Name    \n"
        " --------  ---------------  ---------  -----------  ---------\n"
        f" {share:>8}  {total:>15}  {instances:>9}  {'':>11}  f(int)\n"
        f" {'5.0':>8}  {second:>15}  {'1':>9}  {'':>11}  g()\n\n"
    )


@pytest.mark.parametrize(("before", "dots"), [(0, 0), (4_000, 0), (5_000, 0), (100_000, 0), (9_000_000, 900)])
def test_a_table_behind_much_output_of_the_program_is_found(tmp_path, before, dots):
    line = f"step of the program: 12.3 {'.' * dots}\n"
    log = log_of(tmp_path, line * (before // len(line)) + "\n" + table())
    assert times(log) == {(None, "f(int)"): (1, 3481709e-9), (None, "g()"): (1, 182472e-9)}
    assert log.skipped_lines == before // len(line)


@pytest.mark.parametrize("lost", [0, 1, 4])
def test_a_row_that_lost_blanks_in_front_of_it(tmp_path, lost):
    lines = [
        "     Time (%)  Total Time (ns)  Instances     GridXYZ         BlockXYZ      Name ",
        "     --------  ---------------  ---------  --------------  --------------  ------",
        "        100.0          1819490          1     4    4    1    32   32    1  f(int)",
    ]
    text = "\n".join([*lines[:2], lines[2][lost:], ""])
    assert times(log_of(tmp_path, text)) == {(None, "f(int)"): (1, pytest.approx(1819490e-9))}


# Rows of nsys 2020.4, without blanks inside, and cells of a trace that are empty.
TRACE_OF_2020 = """> nsys stats --report gputrace report1.qdrep

 Start(sec)  Duration(nsec)  CorrId  GrdX    Bytes    Thru(MB/s)      Device        Strm         Name
 ----------  --------------  ------  ----  ---------  ----------  ----------------  ----  ------------------
   0.362270       1,392,358      71        4,000,000   2,872.824  A100-PCIE-40 (0)    13  [CUDA memcpy HtoD]
   0.364801         222,080      74     1                         A100-PCIE-40 (0)    13  f(int)
   0.365033         388,706      76        4,000,000  10,290.554  A100-PCIE-40 (0)    13  [CUDA memcpy DtoH]
   0.365533         111,000      79     1                         A100-PCIE-40 (0)    13  f(int)
"""


@pytest.mark.parametrize("lost", [0, 1])
def test_a_trace_in_text_of_2020_also_where_its_header_lost_its_blank(tmp_path, lost):
    """No kernel runs for 364.801 - 362.270 ms less the first copy's 1.392358, and for 365.533 - 364.801 - 0.22208 ms."""
    log = log_of(tmp_path, TRACE_OF_2020.replace(" Start(sec)", " Start(sec)"[lost:]))
    assert times(log) == {("A100-PCIE-40 (0)", "f(int)"): (2, 333080e-9)}
    assert log.copies_s == pytest.approx(1781064e-9) and log.skipped_lines == 1
    assert log.idle.time_s == pytest.approx(1.138642e-3 + 0.50992e-3)


WITH_GRAPHS = """ Time (%)  Total Time (ns)  Num Calls   Avg (ns)     Name
 --------  ---------------  ---------  -----------  ------------------------
     96.2       93,250,733         55  1,695,467.9  cudaStreamSynchronize
      2.6        2,474,195         55     44,985.4  cudaGraphLaunch_v10000
      0.4          394,422   {calls:>8}      8,764.9  cudaLaunchKernel
      0.1           94,422          9      8,764.9  cudaLaunchHostFunc

"""


@pytest.mark.parametrize(("launched", "lacks"), [(44, False), (45, True), (46, True)])
def test_no_gap_is_told_where_kernels_of_graphs_are_not_in_the_table(tmp_path, launched, lacks):
    """45 kernels ran, as many as were launched one by one: none of the 55 graphs is in the table."""
    path = tmp_path / "x.txt"
    path.write_text(WITH_GRAPHS.format(calls=launched) + table(instances="44"))  # and one of g()
    document = api.load(path, cache=False).energy(None).document()
    assert any("kernels of CUDA graphs are not in the table" in each for each in document["warnings"]) == lacks
    assert ("gaps" not in document) == lacks
    assert ("missing" in document["time_marks"]) == lacks


def test_copies_behind_dots_in_place_of_columns_are_no_kernels(tmp_path):
    text = """Time (%)  Total Time (sec)  Count  Avg (sec) ...  Operation
--------  ----------------  -----  --------- ...  ------------------
    83.3            2.5000      2     1.2500 ...  [CUDA memcpy HtoD]
    16.7            0.5000      1     0.5000 ...  [CUDA memset]

"""
    log = log_of(tmp_path, table() + "\n" + text)
    assert not [name for _, name in times(log) if "CUDA" in name]
    assert log.copies_s == pytest.approx(3.0)


def test_remarks_behind_rows_are_no_part_of_names(tmp_path):
    text = table().replace("f(int)", "f(int)  # 0.3 ms of it on the device").replace("g()", "g()# 1")
    assert set(times(log_of(tmp_path, text))) == {(None, "f(int)"), (None, "g()# 1")}


def test_tables_whose_unit_stands_in_their_title(tmp_path):
    text = """Generating CUDA Kernel Statistics...
CUDA Kernel Statistics (nanoseconds)

Time(%)  Total Time   Instances  Average  Minimum    Maximum  Name
-------  ----------  ----------  -------  -------  ---------  ------
  100.0        3360           2   1680.0     1664       1696  f(int)


CUDA Memory Operation Statistics (nanoseconds)

Time(%)  Total Time  Operations     Average   Minimum   Maximum  Name
-------  ----------  ----------  ----------  --------  --------  ------------------
  100.0    89602913           2  44801456.5  41565528  48037385  [CUDA memcpy HtoD]


CUDA Memory Operation Statistics (KiB)

   Total  Operations   Average     Minimum   Maximum  Name
--------  ----------  --------  ----------  --------  ------------------
538906.0           2  269453.0  250000.000  288906.0  [CUDA memcpy HtoD]
"""
    log = log_of(tmp_path, text)
    assert times(log) == {(None, "f(int)"): (2, pytest.approx(3360e-9))}
    (copies,) = log.copies
    assert (copies.number, copies.time_s, copies.size_b) == (2, pytest.approx(0.089602913), 538906 * 1024)
    assert copies.again_s == 0, "of unlike sizes, so neither is the other again"
    (alike,) = log_of(tmp_path, text.replace("250000.000  288906.0", "269453.000  269453.0")).copies
    assert alike.again_s is None


CALLS = """   {share}   294859478      2  147429739.0    675112  294184366  cudaMalloc
   22.8    92865680      2   46432840.0  44841150   48024530  cudaMemcpy
    4.5    18405301      2    {mean}     25789   18379512  cudaLaunchKernel

"""


@pytest.mark.parametrize(
    ("share", "mean", "number"),
    [
        ("72.3", "9202650.5", 3),
        ("72.3", "9302650.5", 0),  # which is not the total over the number, so this row is none of calls
        ("52.3", "9202650.5", 0),  # the rest of the table is not there
    ],
)
def test_calls_below_a_header_that_was_cut_off_are_known_by_their_numbers(tmp_path, share, mean, number):
    calls = log_of(tmp_path, CALLS.format(share=share, mean=mean) + table()).calls_of_host
    assert len(calls) == number
    if number:
        assert (calls[0].name, calls[0].number) == ("cudaMalloc", 2)
        assert (calls[0].time_s, calls[0].longest_s) == pytest.approx((0.294859478, 0.294184366))


GROUPED = ["3,481,709", "3.481.709", "34,81,709", "3'481'709", "3\u2019481\u2019709", "3\u202f481\u202f709"]
GROUPED += ["3\u00a0481\u00a0709", "3 481 709", "348,1709", "3481709"]


@pytest.mark.parametrize("total", GROUPED)
@pytest.mark.parametrize("share", ["95.0", "95,0"])
def test_groups_of_digits_of_any_locale(tmp_path, total, share):
    log = log_of(tmp_path, table(total, share))
    assert times(log) == {(None, "f(int)"): (1, 3481709e-9), (None, "g()"): (1, 182472e-9)}


@pytest.mark.parametrize("instances", ["2,000", "2.000", "2'000", "2\u202f000", "2 000", "2000"])
def test_launches_in_groups(tmp_path, instances):
    assert times(log_of(tmp_path, table(instances=instances)))[None, "f(int)"] == (2000, 3481709e-9)


@pytest.mark.parametrize(
    ("total", "share", "us"),
    [
        ("1.234", "95.0", 1.234),
        ("1.234", "95,0", 1234.0),
        ("1,234", "95.0", 1234.0),
        ("1,234", "95,0", 1.234),
        ("12.345,678", "95,0", 12345.678),
        ("1'234.5", "95.0", 1234.5),
        ("0.123", "95.0", 0.123),
    ],
)
def test_a_percentage_tells_which_sign_stands_before_decimals(tmp_path, total, share, us):
    log = log_of(tmp_path, table(total, share, "7").replace("(ns)", "(us)"))
    assert times(log)[None, "f(int)"] == (1, us * 1e-6)


def test_a_number_that_may_be_read_in_two_ways_is_not_read(tmp_path):
    text = (
        " Count  QCount  TAvg (ns)  KAvg (ns)  API Name  Kernel Name\n"
        " -----  ------  ---------  ---------  --------  -----------\n"
        "     2       2        900      1,234  cudaL     f\n"
        "     2       2        900        100  cudaL     g\n"
    )
    log = log_of(tmp_path, text)
    assert times(log) == {(None, "g"): (2, 200e-9)}
    assert log.skipped_lines == 1


@pytest.mark.parametrize("total", ["1,2,3", "1.2,3.4", "1,234.567.8", "1''234", "1,234,5", "-5", "1e3", "nan"])
def test_what_is_no_number_in_any_locale_is_no_time(tmp_path, total):
    assert (None, "f(int)") not in times(log_of(tmp_path, table(total)))


# --------------------------------------------------------------------------------------------------- what is refused


def test_a_chrome_trace_of_a_converter_names_the_database(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('[{"name": "axpy", "ph": "X", "cat": "cuda", "ts": 1.5, "dur": 1.3, "pid": "Device 0"}]')
    with pytest.raises(LogError, match=r"converter .* `nsys export --type sqlite REPORT.nsys-rep`"):
        read(path)


@pytest.mark.parametrize("name", ["a b.nsys-rep", "a b.qdrep"])
@pytest.mark.parametrize("head", [b"NVIDIA Tegra Profiler Report 1.\n\x0b\0", b"\x08\x01\0another container"])
def test_a_report_of_nsys_says_which_command_reads_it(tmp_path, name, head):
    path = tmp_path / name
    path.write_bytes(head + bytes(5000))
    with pytest.raises(LogError) as err:
        read(path)
    said = str(err.value)
    assert f"`nsys stats --report cuda_gpu_kern_sum --format csv '{path}' > times.csv`" in said
    assert f"`nsys export --type sqlite '{path}'`" in said
    assert "nvprof" not in said


def test_a_real_report_of_nsys_is_told_by_its_first_bytes(tmp_path):
    path = tmp_path / "renamed"
    path.write_bytes(real("ayushos-vectoradd-gpumetrics-v3.nsys-rep").read_bytes())
    with pytest.raises(LogError, match="this is a report file of Nsight Systems.*nsys stats"):
        read(path)


def test_a_table_of_ncu_below_one_of_nvprof_is_left_out_and_said(tmp_path):
    ncu = '"ID","Process ID","Process Name","Host Name","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'
    log = log_of(tmp_path, profiled(1, METRICS, metric("inst_integer", 5)) + "\n" + ncu)
    assert log.format == "nvprof-metrics-summary"
    assert "a table of another profiler (line 7) was not read" in log.notes


def test_a_summary_in_text_that_lost_its_dashes_is_read_alike(tmp_path):
    """Synthetic: pages of Markdown and HTML take a row of dashes for a line."""
    rows = [
        " Time (%)  Total Time (ns)  Instances  Avg (ns)  Name",
        " --------  ---------------  ---------  --------  -----------------",
        "     75.0            3,000          3   1,000.0  void f<int>(int, a)",
        "     25.0            1,000          1   1,000.0  g(float *)",
        "",
    ]
    told = []
    for name, lines in (("whole.txt", rows), ("lost.txt", [rows[0], *rows[2:]])):
        (tmp_path / name).write_text("\n".join(lines))
        table = read(tmp_path / name).tables[0].rows
        told.append((table.kernel.texts().tolist(), table.launches.tolist(), table.time_s.tolist()))
    assert told[0] == told[1]
    assert told[0][:2] == (["void f<int>(int, a)", "g(float *)"], [3, 1]) and sum(told[0][2]) == pytest.approx(4e-6)


@pytest.mark.parametrize("start", [3000, None])
def test_a_start_that_is_not_told_leaves_the_gaps_open(tmp_path, start):
    about = {"Duration (ns)": 500, "CorrId": 1, "Device": "A100 (0)", "Strm": "7", "Name": "f"}
    path = tmp_path / "trace"
    path.write_text(json.dumps([{"Start (ns)": began, **about} for began in (1000, start)]))
    log = read(path)
    assert times(log) == {("A100 (0)", "f"): (2, 1e-6)}
    assert (log.idle and log.idle.time_s) == (start and pytest.approx(1.5e-6))


BARRED = (
    ("Time (%)", "Total Time (ns)", "Instances", "Avg (ns)", "Min (ns)", "Max (ns)", "Name"),
    ("75.0", "9,000,000", "3", "3,000,000.0", "1,000,000", "5,000,000", "blur<(bool)1 || (int)2>(float *)"),
    ("25.0", "3,000,000", "1", "3,000,000.0", "3,000,000", "3,000,000", "sharpen(int)"),
)
BARRED_CALLS = (
    ("Time (%)", "Total Time (ns)", "Num Calls", "Avg (ns)", "Min (ns)", "Max (ns)", "Name"),
    ("100.0", "20,000,000", "2", "10,000,000.0", "5,000,000", "15,000,000", "cudaMemcpy"),
)
UNKNOWN = (("Time (%)", "Total Time (ns)", "Waits", "Reason"), ("100.0", "20,000,000", "2", "poll"))


def barred(rows, *, is_markdown, quote=","):
    """A table as `nsys stats --format table` draws it, or in Markdown, with names as code."""
    code = "`" if is_markdown else ""
    cells = [
        rows[0],
        *((*(cell.replace(",", quote) for cell in row[:-1]), f"{code}{row[-1]}{code}") for row in rows[1:]),
    ]
    border = "|---:|:---|" if is_markdown else "+------+---------+"
    first, *others = [f"| {' | '.join(row)} |" for row in cells]
    return "\n".join(
        [*([] if is_markdown else [border]), first, border, *others, *([] if is_markdown else [border]), "", ""]
    )


@pytest.mark.parametrize("quote", [",", "’", ""])
@pytest.mark.parametrize("is_markdown", [True, False])
def test_tables_with_bars(tmp_path, is_markdown, quote):
    tables_ = [barred(rows, is_markdown=is_markdown, quote=quote) for rows in (BARRED, BARRED_CALLS, UNKNOWN)]
    log = log_of(tmp_path, "# Results\n" + "".join(tables_))
    blur, sharpen = BARRED[1][-1], BARRED[2][-1]
    assert times(log) == {(None, blur): (3, 9e-3), (None, sharpen): (1, 3e-3)}
    assert list(log.tables[0].rows.least_s) == pytest.approx([1e-3, 3e-3])
    assert [(call.name, call.number, call.time_s) for call in log.calls_of_host] == [("cudaMemcpy", 2, 0.02)]
    assert log.skipped_lines == 1, "the heading"


def test_a_trace_with_bars(tmp_path):
    text = (
        "+-----+-----+\n| Start (ns) | Duration (ns) | CorrId | GrdX | Device | Strm | Name |\n+-----+-----+\n"
        "| 1,000 | 500 | 7 | 1 | NVIDIA A100 (0) | 7 | blur(int) |\n| 2,000 | 700 | 8 | 1 | NVIDIA A100 (0) | 7 | blur(int) |\n"
    )
    assert times(log_of(tmp_path, text)) == {("NVIDIA A100 (0)", "blur(int)"): (2, 1.2e-6)}


@pytest.mark.parametrize("sign", ["// ", "# ", " * ", "> "])
def test_text_in_a_comment_or_a_quotation(tmp_path, sign):
    lines = [
        " Time (%)  Total Time (ns)  Instances  Avg (ns)  Name     ",
        " --------  ---------------  ---------  --------  ---------",
        "     75.0            9,000          3   3,000.0  blur(int)",
        "     25.0            3,000          1   3,000.0  sharpen()",
    ]
    log = log_of(tmp_path, "".join(f"{sign}{line}\n" for line in lines))
    assert times(log) == {(None, "blur(int)"): (3, 9e-6), (None, "sharpen()"): (1, 3e-6)}


HEAD_CSV = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
ROWS_CSV = ["75.0,9000,3,3000.0,blur(int)\n", "24.9,2990,1,2990.0,sharpen()\n", "0.1,10,1,10.0,add()\n"]


@pytest.mark.parametrize(
    ("rows", "rest_s"),
    [
        (ROWS_CSV, None),
        ([*ROWS_CSV[:2], "0.0,10,1,10.0,add()\n"], None),
        (ROWS_CSV[:1], 3e-6),  # 9 us are 75 % of 12 us
        ([ROWS_CSV[1], "12.5,1500,1,1500.0,add()\n", "7.2,864"], 4490e-9 * (100 / 37.4 - 1)),
        ([*ROWS_CSV, "0.0,1"], math.nan),
        ([*ROWS_CSV, "0.0,1\n"], None),
        ([*ROWS_CSV, "\n0.0,1 in all"], None),
    ],
)
def test_a_summary_that_lost_rows_has_what_its_percentages_leave(eprof_command, tmp_path, rows, rest_s):
    """Percentages are rounded; those that are all of the time do not tell what a last line without its end took."""
    is_cut = rest_s is not None
    log = log_of(tmp_path, HEAD_CSV + "".join(rows))
    found = times(log)
    assert ((None, NOT_IN_TABLE) in found) == is_cut == any("cut off" in note for note in log.notes)
    if is_cut:
        assert found[None, NOT_IN_TABLE] == (1, pytest.approx(rest_s, nan_ok=True))
    _, time_ns, *_, name = rows[0].strip().split(",")
    assert found[None, name][1] == pytest.approx(1e-9 * int(time_ns)), "each row that is there is whole"
    said = eprof_command("report", "x.txt").stdout
    number = f"{len(found) - is_cut} kernel{'s' * (len(found) - is_cut > 1)}{' or more' * is_cut} take"
    assert ("at least" in said) == (is_cut and math.isnan(rest_s)) and number in said.replace("One ", "1 ")


def test_a_table_of_all_work_may_have_lost_copies(tmp_path):
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Category,Operation\n"
    found = times(log_of(tmp_path, head + "75.0,9000,3,3000.0,CUDA_KERNEL,blur(int)\n"))
    assert found[None, NOT_IN_TABLE] == (1, pytest.approx(math.nan, nan_ok=True))


def test_a_summary_that_stands_twice_is_used_once(tmp_path):
    """As text and as CSV, or pasted twice; two runs of one program never take the same nanoseconds."""
    lines = [line.rstrip().rsplit(",", 4) for line in ROWS_CSV]
    text = [
        " Time (%)  Total Time (ns)  Instances  Avg (ns)   Name      ",
        " --------  ---------------  ---------  --------  -----------",
    ]
    text += [f" {share:>8}  {total:>15}  {number:>9}  {mean:>8}  {name}" for share, total, number, mean, name in lines]
    once = HEAD_CSV + "".join(ROWS_CSV)
    for again in (once, "\n".join(["", *text, ""])):
        log = log_of(tmp_path, once + "\n" + again + "\n")
        assert times(log) == times(log_of(tmp_path, once)) and log.runs == 1
        assert "1 table of nsys stood in the log already, so each was used once" in log.notes
    other = log_of(tmp_path, once + "\n" + once.replace("2990", "2991"))
    assert times(other)[None, "sharpen()"] == (2, 5.981e-6) and other.runs == 2


def test_a_last_row_of_columns_that_is_short_is_cut(tmp_path):
    trace = "Start (ns),Duration (ns),CorrId,Device,Name\n100,50,1,A100 (0),blur(int)\n200,5"
    assert log_of(tmp_path, trace).tables[0].lacks_rows
    assert not log_of(tmp_path, trace.removesuffix("\n200,5")).tables[0].lacks_rows


@pytest.mark.parametrize("point", [".", ","])
def test_a_table_of_the_gui_has_units_in_its_cells(tmp_path, point):
    text = (
        "Words\n\n| Time | Total Time | Instances | Avg | Min | Max | Name |\n|:---|:---|:---|:---|:---|:---|:---|\n"
        "| 75.0% | 110.277 ms | 1993 | 55.332 μs | 1.407 μs | 1.055 ms | `blur(int)` |\n"
        "| 25.0% | 1.500 s | 2 | 750.000 ms | 900 ns | 1.5 s | `sharpen<int>()` |\n\n"
    )
    log = log_of(tmp_path, text.replace("μ", "µ").replace(".", point))
    assert times(log) == {(None, "blur(int)"): (1993, 0.110277), (None, "sharpen<int>()"): (2, 1.5)}
    assert log.tables[0].rows.least_s.tolist() == pytest.approx([1.407e-6, 9e-7])
    assert log.tables[0].rows.most_s.tolist() == pytest.approx([1.055e-3, 1.5])

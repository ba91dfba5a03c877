"""Tables of AMD's profilers: rocprof, rocprofv3, Omniperf, rocprof-compute."""

import csv
import math
import re
from collections import Counter

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

import eprof
from eprof import logs
from eprof.base.errors import LogError
from eprof.base.vocabulary import Mark
from eprof.commands.report.hotspots import hotspots
from eprof.commands.report.view import View
from eprof.logs.log import NOT_IN_TABLE, OF_RADEON
from eprof.profile.document import document
from eprof.profilers.rocprof import reader

ROCPROF = SHARED / "rocprof"
needs_data = pytest.mark.skipif(not ROCPROF.is_dir(), reason="needs the real logs of rocprof")
OLD = "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj"
TIMES = "DispatchNs,BeginNs,EndNs,CompleteNs"


def table(folder, header, *rows, name="results.csv"):
    (folder / name).write_text("\n".join([header, *rows]) + "\n")
    return logs.read(folder / name)


def old(folder, counters, *launches):
    """A table of rocprof: of each launch its kernel, its counters, when it began and ended in ns."""
    rows = [
        f'{number},"{kernel}",8,0,0,1,1,256,256,0,0,4,0,16,64,0x0,0x1,{",".join(map(str, [*counts, 0, begin, end, 0]))}'
        for number, (kernel, counts, begin, end) in enumerate(launches)
    ]
    return table(folder, ",".join([OLD, *counters, TIMES]), *rows)


def reckoned(path):
    """Launches, ns, and sums of counters of each kernel, by the rows of a table alone.

    Of a counter whose sum is not told that of its channels; of one that several runs counted what the first has.
    """
    kernels, times, sums, runs = {}, {}, {}, {}
    with path.open(encoding="utf-8-sig", newline="") as handle:
        for place, row in enumerate(csv.DictReader(handle)):
            name = row.get("KernelName") or row.get("Kernel_Name") or row["Name"]
            launch = (
                (row.get("Process_Id"), row.get("Dispatch_Id") or row["Dispatch_ID"])
                if "Counter_Name" in row
                else place
            )
            kernels[launch] = re.sub(r"(\.kd)?( \[clone \.kd\])?$", "", name), int(row.get("Calls") or 1)
            begin, end = (
                row.get(old) or row.get(new)
                for old, new in (("BeginNs", "Start_Timestamp"), ("EndNs", "End_Timestamp"))
            )
            rounded = begin is None or "E" in begin
            lasts = math.nan if rounded else int(end.partition(".")[0]) - int(begin.partition(".")[0])
            times.setdefault(launch, float(row["TotalDurationNs"]) if "Calls" in row else lasts)
            pairs = [(row["Counter_Name"], row["Counter_Value"])] if "Counter_Name" in row else row.items()
            for counter, value in pairs:
                counter = re.sub(r"\[\d+\]$", "[]", counter)
                if re.fullmatch(r"[\d.]+(e[+-]\d+)?", value) and runs.setdefault((launch, counter), begin) == begin:
                    sums.setdefault(launch, Counter())[counter] += float(value)
    found = {}
    for launch, (kernel, calls) in kernels.items():
        count, time, total = found.get(kernel, (0, 0.0, Counter()))
        own = sums.get(launch, Counter())
        of_channels = {name.replace("[]", "_sum"): value for name, value in own.items() if "[]" in name}
        found[kernel] = count + calls, time + times[launch], total + Counter(of_channels | own)
    return found


def moved(sums):
    """Bytes that a kernel read and wrote past L2, as AMD's documents have them; None: not counted."""
    if "TCC_EA0_RDREQ_sum" in sums:
        size = 128 if sums["TCC_BUBBLE_sum"] == 0 else 64  # on MI350, which counts no bubbles
        read = size * sums["TCC_EA0_RDREQ_sum"] + 64 * sums["TCC_BUBBLE_sum"] - 32 * sums["TCC_EA0_RDREQ_32B_sum"]
    elif "TCC_EA_RDREQ_sum" in sums:
        read = 64 * sums["TCC_EA_RDREQ_sum"] - 32 * sums["TCC_EA_RDREQ_32B_sum"]
    else:
        read = 1024 * (sums["FETCH_SIZE"] + sums["FetchSize"]) or None
    fabric = "TCC_EA0" if "TCC_EA0_WRREQ_sum" in sums else "TCC_EA"
    written = 32 * (sums[f"{fabric}_WRREQ_sum"] + sums[f"{fabric}_WRREQ_64B_sum"])
    return read, (written or 1024 * (sums["WRITE_SIZE"] + sums["WriteSize"])) or None


@needs_data
@pytest.mark.parametrize(
    ("table", "tells"),
    [
        ("omniperf2-mi100-tcconly/pmc_perf.csv", "time bytes"),
        ("omniperf2-mi100-vcopy/pmc_perf.csv", "time bytes issue"),
        ("omniperf2-mi200-roofonly/pmc_perf.csv", "time bytes"),
        ("omniperf2-mi200-vcopy/pmc_perf.csv", "time bytes issue vector"),
        ("omniperf2-mi200-vcopy/timestamps.csv", "time"),
        ("omniperf2-mi300a-vcopy/pmc_perf.csv", "bytes issue vector"),
        ("omniperf2-mi300x-vcopy/pmc_perf.csv", "bytes issue vector"),
        ("rocprofcompute3-mi300x-rocpd-vcopy/pmc_perf.csv", "time bytes issue vector"),
        ("rocprofcompute3-mi350-vcopy/pmc_perf.csv", "bytes issue vector"),
        ("rocprof1-mi250x-laplacian1/data_movement.csv", "bytes"),
        ("rocprof1-mi250x-laplacian1/results.csv", "time"),
        ("rocprof1-mi250x-laplacian1/results.stats.csv", "time"),
        ("rocprof1-mi250x-laplacian-templates/results.csv", "time"),
        ("rocprof1-mi250-nbody-derived-excerpt.csv", "time bytes"),
        ("rocprof3-gfx1151-llama/decode_fetch_counter_collection.csv", "time bytes"),
        ("rocprof3-gfx1151-llama/decode_stall_counter_collection.csv", "time"),
        ("rocprof3-gfx1151-llama/decode_kernel_trace.csv", "time"),
        ("rocprof3-doc/kernel_trace.csv", "time"),
        ("rocprof3-kernel-stats-mi250x-rocblas.csv", "time"),
    ],
)
def test_what_a_kernel_took_is_what_its_rows_add_up_to(table, tells):
    """Launches, time, bytes and instructions of each kernel, reckoned without any of eprof's code."""
    kernels = eprof.load(ROCPROF / table, cache=False).energy("none").document()["kernels"]
    expected = reckoned(ROCPROF / table)
    kernels = [kernel for kernel in kernels if kernel["name"] != NOT_IN_TABLE]
    assert {kernel["name"] for kernel in kernels} == set(expected)
    for kernel in kernels:
        launches, time_ns, sums = expected[kernel["name"]]
        found = {word: count["value"] for word, count in kernel["counts"].items()}
        assert kernel["launches"] == launches
        if "time" in tells:
            assert kernel["time_s"] == pytest.approx(1e-9 * time_ns, rel=1e-12)
        if "bytes" in tells:
            for word, amount in zip(("dram_read", "dram_write"), moved(sums), strict=True):
                assert (found.get(word) or None) == (amount and pytest.approx(amount))
        if "issue" in tells:
            assert found["warp_issue"] == sums["SQ_INSTS"]
        if "vector" in tells:  # every vector instruction is in one class
            fp = [word for word in found if re.fullmatch(r"fp\d\d_(fma|add|mul)", word)]
            told = sum(found[word] for word in (*fp, "integer", "special", "conversion", "tensor", "misc"))
            assert told == pytest.approx(64 * sums["SQ_INSTS_VALU"] + sums["SQ_INSTS_SALU"])


@needs_data
def test_bytes_and_times_of_two_runs_are_one_kernels_joules():
    home = ROCPROF / "rocprof1-mi250x-laplacian1"
    with (home / "data_movement.csv").open() as handle:
        rows = [row for row in csv.DictReader(handle) if row["KernelName"] == "laplacian_kernel"]
    kib = sum(float(row["FETCH_SIZE"]) + float(row["WRITE_SIZE"]) for row in rows)
    with (home / "results.csv").open() as handle:
        time_s = (
            sum(int(row["DurationNs"]) for row in csv.DictReader(handle) if row["KernelName"] == "laplacian_kernel")
            / 1e9
        )
    profile = eprof.load(home / "data_movement.csv", home / "results.csv", gpu="MI250X", cache=False)
    (kernel,) = (each for each in profile.energy().document()["kernels"] if each["name"] == "laplacian_kernel")
    moved = [kernel["counts"][word] for word in ("dram_read", "dram_write")]
    assert sum(count["value"] for count in moved) == pytest.approx(1024 * kib)
    assert sum(count["energy_j"] for count in moved) == pytest.approx(102e-12 * 1024 * kib, rel=1e-6)
    assert kernel["time_s"] == pytest.approx(time_s) and kernel["launches"] == 1001


@needs_data
@pytest.mark.parametrize(
    ("folder", "gpu", "read_b"),
    [
        ("omniperf2-mi100-vcopy", "AMD Instinct MI100", 8.4e6),
        ("omniperf2-mi200-vcopy", "AMD Instinct MI210", 8.4e6),
        ("omniperf2-mi300x-vcopy", "AMD Instinct MI300X", 8.4e6),
        ("rocprofcompute3-mi300x-rocpd-vcopy", "AMD Instinct MI300X", 8.4e6),
        ("rocprofcompute3-mi350-vcopy", "AMD Instinct MI350", 8.4e6),
    ],
)
def test_a_copy_reads_what_it_reads_on_all_generations(folder, gpu, read_b):
    """Three launches of a copy of 2^20 doubles, 8,388,608 B."""
    profile = eprof.load(ROCPROF / folder / "pmc_perf.csv", cache=False)
    (device,) = {part.device.name for part in profile.counted}
    counts = profile.energy("none").document()["counts"]
    assert device == gpu
    assert counts["dram_read"]["value"] / 3 == pytest.approx(read_b, rel=0.01)


@needs_data
def test_times_of_a_folder_of_omniperf_are_of_the_kernels_that_were_counted():
    folder = ROCPROF / "omniperf2-mi200-vcopy"
    profile = eprof.load(*folder.glob("[pt]*.csv"), cache=False)
    assert profile.energy("none").counts.rows.launches.tolist() == [3]


SUMS = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"'


@pytest.mark.parametrize(
    ("rows", "launches", "time_s"),
    [
        (['"copy(int*)",2,700,350,70', '"add",1,300,300,30'], [2, 1], [700e-9, 300e-9]),  # of the same run
        (['"copy(int*)",2,700,350,70', '"add",1,310,310,30'], [4, 2], [1400e-9, 610e-9]),  # took longer
        (['"copy(int*)",3,700,350,70', '"add",1,300,300,30'], [5, 2], [1400e-9, 600e-9]),  # ran more often
        (['"copy(int*)",2,700,350,70'], [4, 1], [1400e-9, 300e-9]),  # ran less
    ],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_sums_of_the_launches_beside_them_are_no_more_launches(tmp_path, rows, launches, time_s, is_first):
    old(tmp_path, [], ("copy(int*)", [], 100, 600), ("copy(int*)", [], 700, 900), ("add", [], 1000, 1300))
    table(tmp_path, SUMS, *rows, name="results.stats.csv")
    paths = [tmp_path / "results.csv", tmp_path / "results.stats.csv"]
    profile = eprof.load(*(paths if is_first else paths[::-1]), cache=False)
    found = dict(zip(profile.rows.kernel, zip(profile.rows.launches, profile.rows.time_s, strict=True), strict=True))
    assert found["copy(int*)"] == (launches[0], pytest.approx(time_s[0]))
    assert found["add"] == (launches[1], pytest.approx(time_s[1]))
    assert {each.device.index for each in profile.counted} == {8}
    is_summary = launches == [2, 1]
    assert any("tells the 3 launches of another table again" in text for text in profile.warnings) is is_summary
    assert any("runs or processes are added up" in text for text in profile.warnings) is not is_summary


def test_sums_alone_are_of_a_gpu_that_nothing_names(tmp_path):
    table(tmp_path, SUMS, '"copy(int*)",2,700,350,100', name="results.stats.csv")
    profile = eprof.load(tmp_path / "results.stats.csv", gpu="MI250X", cache=False)
    assert [each.device.name for each in profile.counted] == ["AMD Instinct MI250X"]
    assert profile.rows.launches.tolist() == [2]


def test_a_table_that_was_cut_off_has_the_rest_that_its_percentages_leave(tmp_path):
    """Of two runs: the first row is half of 1.4 us, of which 1 us is told; with a barrier, the second tells all of its 1 us."""
    first = ['"copy(int*)",2,700,350,50', '"add",1,300,300,21.43']
    log = table(tmp_path, SUMS, *first, SUMS, '"add",1,900,900,90.0', '"<barrier packet>",3,100,33,10.0')
    rows = log.tables[0].rows
    found = dict(zip(zip(rows.kernel.texts(), rows.run.tolist(), strict=True), rows.time_s, strict=True))
    assert found == {
        ("copy(int*)", 0): pytest.approx(700e-9),
        ("add", 0): pytest.approx(300e-9),
        (NOT_IN_TABLE, 0): pytest.approx(400e-9, rel=1e-3),
        ("add", 1): pytest.approx(900e-9),
    }
    assert any("cut off" in note for note in log.notes)
    assert not table(tmp_path, SUMS, first[0], '"add",1,700,700,49.9').notes


def test_how_many_launches_a_lost_part_of_a_table_had_is_not_told(tmp_path):
    table(tmp_path, SUMS, '"copy(int*)",2,700,350,70')
    view = View(document(eprof.load(tmp_path / "results.csv", cache=False).energy(None)))
    said = {row.cells[0].full: row.cells[-1] for row in hotspots(view).rows}
    assert said == {"copy(int*)": "2 launches of 350\u202fns", NOT_IN_TABLE: "launches not told"}


def test_a_row_for_each_counter_is_as_a_row_for_each_launch(tmp_path):
    wide = old(
        tmp_path,
        ["FETCH_SIZE", "SQ_WAVES"],
        ("copy(int*) [clone .kd]", [10, 4], 100, 600),
        ("copy(int*)", [20, 8], 700, 900),
    )
    header = '"Correlation_Id","Dispatch_Id","Agent_Id","Process_Id","Kernel_Name","Counter_Name","Counter_Value",'
    rows = [
        f'{launch},{launch},"Agent 8",1,"copy(int*)","{name}",{value},{begin},{end}'
        for launch, name, value, begin, end in (
            *((1, "FETCH_SIZE", 10, 100, 600), (1, "SQ_WAVES", 4, 150, 650)),
            *((2, "FETCH_SIZE", 20, 700, 900), (2, "SQ_WAVES", 8, 750, 950), (2, "SQ_WAVES", 8, 990, 999)),
        )
    ]
    long = table(tmp_path, header + '"Start_Timestamp","End_Timestamp"', *rows)
    for log in (wide, long):
        (found,) = log.tables
        assert found.kind == "rocprof-counters" and set(found.rows.kernel.texts()) == {"copy(int*)"}
        assert found.rows.time_s.tolist() == pytest.approx([500e-9, 200e-9])
        assert found.counters["FETCH_SIZE"].tolist() == [10, 20] and found.counters["SQ_WAVES"].tolist() == [4, 8]
        assert set(found.rows.device.texts()) == {"GPU without name (8)"}


def test_what_a_version_calls_a_column_is_an_entry_of_the_definition(tmp_path, monkeypatch):
    header, row = f"{OLD},SQ_WAVES,{TIMES}", '0,"f",8,0,0,1,1,256,256,0,0,4,0,16,64,0x0,0x1,5,0,100,350,0'
    new = header.replace("BeginNs", "FromNs")
    assert np.isnan(table(tmp_path, new, row).tables[0].rows.time_s).all()
    columns = {**reader._COLUMNS, "begin": [*reader._COLUMNS["begin"], "FromNs"]}
    monkeypatch.setattr(reader, "_COLUMNS", columns)
    assert table(tmp_path, new, row, name="new.csv").tables[0].rows.time_s.tolist() == [pytest.approx(250e-9)]


def test_channels_add_up_where_their_sum_is_not_told(tmp_path):
    log = old(tmp_path, ["TCC_EA_WRREQ[0]", "TCC_EA_WRREQ[1]", "TCC_HIT[0]", "TCC_HIT_sum"], ("k", [3, 4, 5, 9], 1, 2))
    counters = log.tables[0].counters
    assert (counters["TCC_EA_WRREQ_sum"].tolist(), counters["TCC_HIT_sum"].tolist()) == ([7], [9])


def test_what_is_not_known_is_no_zero(tmp_path):
    rounded = old(tmp_path, ["FETCH_SIZE"], ("k", [8], "8.1097E+14", "8.1097E+14"))
    assert rounded.tables[0].rows.time_s.tolist() == [pytest.approx(float("nan"), nan_ok=True)]
    idle = old(tmp_path, ["SQ_WAVES", "FETCH_SIZE"], ("k", [0, 0], 1, 5))
    assert idle.tables[0].kind == "rocprof-counters" and any("all counters are 0" in note for note in idle.notes)
    (tmp_path / "results.csv").write_text((tmp_path / "results.csv").read_text() + '1,"k",8,0,0')
    assert logs.read(tmp_path / "results.csv").tables[0].lacks_rows


def test_tables_below_each_other_are_runs_of_their_own(tmp_path):
    old(tmp_path, ["FETCH_SIZE"], ("k", [10], 100, 600))
    text = (tmp_path / "results.csv").read_text()
    (tmp_path / "results.csv").write_text(text + text.replace(",10,", ",20,"))
    (found,) = logs.read(tmp_path / "results.csv").tables
    assert found.counters["FETCH_SIZE"].tolist() == [10, 20] and not found.lacks_rows


def test_headers_that_differ_in_blanks_are_those_of_one_table(tmp_path):
    """rocprof sets its columns of sizes to the right, as wide as their widest number. Another table is told."""
    lines = [f"{OLD},FETCH_SIZE".replace(",grd", ",      grd"), f"0,k{',0' * 15},8"]
    again = [f"{OLD},FETCH_SIZE".replace(",grd", ",   grd"), f"0,k{',0' * 15},9"]
    log = table(tmp_path, *lines, "```", "", *again)
    assert log.tables[0].counters["FETCH_SIZE"].tolist() == [8, 9] and not log.notes
    other = table(tmp_path, *lines, "```", "", f"{OLD},WRITE_SIZE", f"0,k{',0' * 15},9")
    assert other.tables[0].counters["FETCH_SIZE"].tolist() == [8]
    assert any("other tables below the first are not read" in note for note in other.notes)


def test_a_time_is_known_where_it_is_told_and_makes_sense(tmp_path):
    backwards = old(tmp_path, ["FETCH_SIZE"], ("k", [8], 600, 100), ("k", [8], 100, 600))
    assert backwards.tables[0].rows.time_s.tolist() == pytest.approx([math.nan, 500e-9], nan_ok=True)
    told = table(tmp_path, f"{OLD},FETCH_SIZE,DurationNs", f"0,k{',0' * 15},8,7840")
    assert told.tables[0].rows.time_s.tolist() == pytest.approx([7840e-9])


def test_a_row_that_is_short_is_lost_and_makes_lower_bounds(tmp_path):
    rows = [f"{number},k{',0' * 15},8,7840" for number in range(3)]
    found = table(tmp_path, f"{OLD},FETCH_SIZE,DurationNs", rows[0], rows[1][:20], rows[2]).tables[0]
    assert found.lacks_rows and found.counters["FETCH_SIZE"].tolist() == [8, 8]


def test_bytes_and_instructions_of_each_level_are_what_amd_documents(tmp_path):
    """32 B a lookup of L1, 64 B a request to L2, writes past it of 64 or of 32 B; 64 lanes, and scalar loads once."""
    counters = {"TCC_EA_WRREQ_sum": 100, "TCC_EA_WRREQ_64B_sum": 70, "TCC_EA_RDREQ_sum": 50, "TCC_EA_RDREQ_32B_sum": 20}
    counters |= {"TCP_TOTAL_CACHE_ACCESSES_sum": 4000, "TCP_TCC_READ_REQ_sum": 300, "TCP_TCC_WRITE_REQ_sum": 200}
    counters |= {"TCP_TCC_ATOMIC_WITH_RET_REQ_sum": 7, "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum": 4}
    counters |= {"SQ_INSTS_VMEM": 30, "SQ_INSTS_LDS": 5, "SQ_INSTS_SMEM": 3}
    old(tmp_path, list(counters), ("k", counters.values(), 100, 600))
    counts = eprof.load(tmp_path / "results.csv", gpu="MI250X", cache=False).energy().document()["counts"]
    expected = {"dram_write": 64 * 70 + 32 * 30, "dram_read": 64 * 30 + 32 * 20, "l1_read": 32 * 4000}
    expected |= {"l2_read": 64 * 311, "l2_write": 64 * 211, "load_store": 64 * 35 + 3}
    assert {word: counts[word]["value"] for word in expected} == expected


def test_times_are_exact_to_the_nanosecond_whatever_the_clock_counts_from(tmp_path):
    log = old(tmp_path, ["FETCH_SIZE"], ("k", [8], 1_764_345_600_123_456_701, 1_764_345_600_123_456_708))
    assert log.tables[0].rows.time_s.tolist() == [7 * 1e-9]


def test_reads_of_an_mi300_that_has_no_long_ones_are_short(tmp_path):
    """Where the GPU is not told, zeros may be of a later one, which does not count them: each read is taken for 128 B."""
    (tmp_path / "sysinfo.csv").write_text("command,gpu_model\n./gather,MI300X_A1\n")
    header = "Dispatch_ID,GPU_ID,Kernel_Name,TCC_EA0_RDREQ_sum,TCC_EA0_RDREQ_32B_sum,TCC_BUBBLE_sum,Start_Timestamp,End_Timestamp"
    for name, size in (("pmc_perf.csv", 64), ("other.csv", 128)):
        (tmp_path / name).write_text(f"{header}\n0,2,gather,1000,0,0,5000000000,5000001000\n")
        counts = eprof.load(tmp_path / name, cache=False).energy("none").document()["counts"]
        assert counts["dram_read"]["value"] == 1000 * size
        assert ("estimated" in counts["dram_read"]["marks"]) == (size == 128)


@pytest.mark.parametrize(
    ("model", "counter", "is_told"),
    [("MI300X_A1", "FETCH_SIZE", True), ("MI200", "FETCH_SIZE", False), ("", "FETCH_SIZE", False), ("", "EA0", True)],
)
def test_what_passes_the_fabric_may_be_the_infinity_caches_from_mi300_on(eprof_here, tmp_path, model, counter, is_told):
    """The GPU's name tells, or names of counters that came with MI300."""
    (tmp_path / "sysinfo.csv").write_text(f"command,gpu_model\n./gather,{model}\n")
    counters = {"FETCH_SIZE": "FETCH_SIZE", "EA0": "TCC_EA0_RDREQ_sum,TCC_EA0_RDREQ_32B_sum,TCC_BUBBLE_sum"}[counter]
    numbers = ",".join(["1000", "0", "100"][: counters.count(",") + 1])
    header = f"Dispatch_ID,GPU_ID,Kernel_Name,{counters},Start_Timestamp,End_Timestamp"
    (tmp_path / "pmc_perf.csv").write_text(f"{header}\n0,2,gather,{numbers},5000000000,5000001000\n")
    told = "DRAM: part of it may be the Infinity Cache's (256 MB)."
    for options in ([], ["-v"]):
        said = " ".join(eprof_here("report", "pmc_perf.csv", *options).stdout.split())
        assert (told in said) == is_told, said


def long_table(launches):
    header = "Correlation_Id,Dispatch_Id,Agent_Id,Process_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp"
    rows = [
        f'{number},{number},"Agent 1",1,"k<{number % 3}>(int, int)",{name},{value:.6f},{begin},{begin + lasts}'
        for number, (value, begin, lasts) in enumerate(launches, start=1)
        for name in ("FETCH_SIZE", "SQ_WAVES")
    ]
    return "\n".join([header, *rows, ""])


def wide_table(launches):
    rows = [
        f'{number},"k<{number % 3}>(int, int) [clone .kd]",8,0,0,1,1,256,256,0,0,4,0,16,64,0x0,0x1,{begin},{begin + lasts},{value:.6f},{value:.6f}'
        for number, (value, begin, lasts) in enumerate(launches)
    ]
    return "\n".join([f"{OLD},BeginNs,EndNs,FETCH_SIZE,SQ_WAVES", *rows, ""])


def summed(log):
    (found,) = log.tables
    columns = {**{name: found.counters[name] for name in found.counters.names}, "time": found.rows.time_s}
    return {name: float(np.nansum(column)) for name, column in columns.items()}


LAUNCHES = st.lists(
    st.tuples(st.integers(1, 10**9), st.integers(10**12, 10**18), st.integers(1, 10**9)), min_size=1, max_size=6
)


@given(launches=LAUNCHES, share=st.floats(0, 1), made=st.sampled_from([long_table, wide_table]))
@settings(max_examples=150, deadline=None)
def test_a_table_that_was_cut_is_a_lower_bound_and_says_so(tmp_path_factory, launches, share, made):
    """Wherever its end is lost, no sum is above what it was; and only where a row ends nothing can tell."""
    path, text = tmp_path_factory.mktemp("cut") / "results.csv", made(launches)
    path.write_text(text)
    whole = summed(logs.read(path))
    assert whole["FETCH_SIZE"] == whole["SQ_WAVES"] == pytest.approx(sum(value for value, *_ in launches))
    assert whole["time"] == pytest.approx(1e-9 * sum(lasts for *_, lasts in launches), rel=1e-12)
    left = text[: int(share * len(text))]
    path.write_text(left)
    try:
        log = logs.read(path)
    except LogError:
        return
    assert all(amount <= whole[name] * (1 + 1e-12) for name, amount in summed(log).items())
    ends_in_row = text[len(left) - 1 : len(left) + 1].strip("\n") == text[len(left) - 1 : len(left) + 1]
    assert log.tables[0].lacks_rows or not ends_in_row


@given(
    launches=LAUNCHES,
    made=st.sampled_from([long_table, wide_table]),
    damage=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=8), st.integers(0, 40)), max_size=5),
)
@settings(max_examples=150, deadline=None)
def test_a_damaged_table_gives_an_answer_or_a_sentence(tmp_path_factory, launches, made, damage):
    path, text = tmp_path_factory.mktemp("damaged") / "results.csv", made(launches).encode()
    for share, put, lost in damage:
        place = int(share * len(text))
        text = text[:place] + put + text[place + lost :]
    path.write_bytes(text)
    try:
        document = eprof.load(path, cache=False).energy("none").document()
    except eprof.EprofError as err:
        assert "\n" not in str(err)
    else:
        assert all(kernel["launches"] >= 1 for kernel in document["kernels"])


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        (
            '"Name","Calls","TotalDurationNs","AverageNs","Percentage"',
            '"hipLaunchKernel",3,9,3,100',
            "most time is in hipLaunchKernel",
        ),
        (
            "Name,Calls,TotalDurationNs,AverageNs",
            "__hipPushCallConfiguration,3,9,3\nhsa_queue_create,3,99,33",
            "hsa_queue_create.*no k",
        ),
        ("Dispatch_ID,Kernel_Name", "", "no kernel ran"),
        ("workload_name,command,ip_blocks", "copy,./copy,SQ", "whose counts are in pmc_perf.csv"),
        ('"Kernel_Name","Counter_Name","Counter_Value"', '"axpy(float*)","FETCH_SIZE",64.0', "but lost the first ones"),
    ],
)
def test_what_holds_no_kernels_is_refused(tmp_path, header, row, says):
    with pytest.raises(LogError, match=says):
        table(tmp_path, header, row)


def test_a_log_of_amd_asks_for_amds_profilers_and_a_gpu_of_amd(eprof_here, tmp_path):
    old(tmp_path, ["FETCH_SIZE"], ("k", [8000], 0, 1_000_000))
    said = " ".join(eprof_here("report", "results.csv").stdout.split())
    assert "of `rocprof-compute profile` tell it" in said and 'as in --costs "MI250X"' in said
    named = " ".join(eprof_here("report", "results.csv", "--costs", "MI250X").stdout.split())
    assert "of constant power (110 W for 1.00 ms)" in named and "Nothing but time" not in named
    old(tmp_path, ["GRBM_COUNT"], ("k", [8], 0, 1_000_000))
    assert eprof_here("report", "results.csv").stdout.count("count with") == 1


def test_times_of_amds_kernels_are_asked_of_amds_profiler(eprof_here, tmp_path):
    (tmp_path / "results.csv").write_text("Index,KernelName,gpu-id,FETCH_SIZE\n0,k,0,8000\n")
    said = " ".join(eprof_here("report", "results.csv", "--costs", "MI250X", "-v").stdout.split())
    assert (
        "(rocprofv3 --kernel-trace --output-format csv -- PROGRAM)" in said
        and "nvprof" not in said
        and "nsys" not in said
    )


def test_launches_that_a_table_leaves_out_are_no_idle_time(tmp_path):
    header = "Kind,Agent_Id,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp"
    rows = [f"KERNEL_DISPATCH,1,{{}},k,{begin},{begin + 1000}" for begin in (0, 50_000, 100_000)]
    whole = table(tmp_path, header, *(row.format(number) for number, row in enumerate(rows, 7)))
    assert whole.idle is not None and whole.idle.time_s > 9e-5
    part = table(tmp_path, header, *(row.format(number) for number, row in zip((7, 8, 900), rows, strict=True)))
    assert part.idle is None and any("nothing tells when no kernel ran" in note for note in part.notes)


def test_only_a_trace_of_a_run_that_counted_nothing_tells_when_no_kernel_ran(eprof_here, tmp_path):
    """Omniperf, and counters of rocprofv3 in the same run, start a kernel when the one before has ended."""
    launches = [(begin, begin + 1000) for begin in (10**12, 10**12 + 60_000)]
    omniperf = "Dispatch_ID,Kernel_Name,GPU_ID,queue-id,DispatchNs,Start_Timestamp,End_Timestamp,CompleteNs"
    rows = [f"{number},k,2,0,0,{begin},{end},0" for number, (begin, end) in enumerate(launches)]
    timed = table(tmp_path, omniperf, *rows, name="timestamps.csv")
    assert timed.idle is None and "Omniperf and rocprofv2 may start" in " ".join(timed.notes)
    assert "no kernel ran" not in eprof_here("report", "timestamps.csv").stdout

    header = "Kind,Agent_Id,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp"
    rows = [f"KERNEL_DISPATCH,1,{number},k,{begin},{end}" for number, (begin, end) in enumerate(launches)]
    assert table(tmp_path, header, *rows, name="kernel_trace.csv").idle.time_s == pytest.approx(59e-6)
    counters = (
        "Correlation_Id,Dispatch_Id,Agent_Id,Kernel_Name,Counter_Name,Counter_Value,Start_Timestamp,End_Timestamp"
    )
    table(tmp_path, counters, "1,1,1,k,SQ_WAVES,8,77000000000,77000001000", name="counter_collection.csv")
    assert table(tmp_path, header, *rows, name="kernel_trace.csv").idle  # another run counted
    table(tmp_path, counters, f"1,0,1,k,SQ_WAVES,8,{10**12},{10**12 + 1000}", name="counter_collection.csv")
    traced = table(tmp_path, header, *rows, name="kernel_trace.csv")
    assert traced.idle is None and "counter_collection.csv was counted in the same run" in " ".join(traced.notes)


def test_a_sum_whose_calls_are_not_told_is_lost_and_makes_lower_bounds(tmp_path):
    log = table(tmp_path, "Name,Calls,TotalDurationNs,AverageNs", "k,3,3000,1000", "j,,5000,1000")
    (rows,) = log.tables
    assert rows.lacks_rows and rows.rows.launches.tolist() == [3] and rows.rows.kernel.texts().tolist() == ["k"]


STATS = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"'
ARGUMENTS = st.lists(st.sampled_from(["int", " unsigned int*", " std::pair<int, 3>", " 7"]), min_size=1, max_size=5)


@given(kernels=st.lists(st.tuples(ARGUMENTS, st.integers(1, 99), st.integers(1, 10**12)), min_size=1, max_size=5))
@settings(max_examples=60, deadline=None)
def test_names_with_commas_and_no_quotes_are_whole(tmp_path_factory, kernels):
    """The numbers of a kernel stand at the end of its row, so all before them is its name."""
    names = [f"void k{place}<int, 4>({','.join(arguments)})" for place, (arguments, *_) in enumerate(kernels)]
    rows = [f"{name},{calls},{ns},1,{100 / len(names)}" for name, (_, calls, ns) in zip(names, kernels, strict=True)]
    log = table(tmp_path_factory.mktemp("bare"), STATS, *rows, '"<barrier packet>",38,0,0,0.0')
    (found,) = log.tables
    assert not found.lacks_rows and found.rows.kernel.texts().tolist() == names
    assert found.rows.launches.tolist() == [calls for _, calls, _ in kernels]
    assert found.rows.time_s.tolist() == pytest.approx([1e-9 * ns for *_, ns in kernels])


def test_rows_with_more_cells_than_columns_are_lost_and_told(tmp_path):
    log = table(tmp_path, STATS, '"k(int, int)",1,1000,1000,100', "j,1,1000,1000,50,7,7", "f(int,1,1000,1000,50,8")
    assert log.tables[0].lacks_rows and log.tables[0].rows.kernel.texts().tolist() == ["k(int, int)"]
    assert any("2 rows were left out, whose cells do not fit the header" in note for note in log.notes)


@pytest.mark.parametrize(("unit", "scale"), [("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9)])
def test_kernels_as_rocprof_compute_lists_them(tmp_path, unit, scale):
    header = f"Kernel_Name,Count,Sum({unit}),Mean({unit}),Median({unit}),Pct"
    (found,) = table(tmp_path, header, f'"k(int, int)",150,{0.0056 * scale},{0.00003 * scale},1,87.0').tables
    assert (found.rows.launches.tolist(), found.rows.time_s.tolist()) == ([150], pytest.approx([0.0056]))


def test_reads_of_l2_are_exact_where_the_generation_is_told_and_else_estimated(tmp_path):
    asked = ["TCP_TCC_READ_REQ_sum", "TCP_TCC_ATOMIC_WITH_RET_REQ_sum", "TCP_TCC_ATOMIC_WITHOUT_RET_REQ_sum"]
    for more, each_b, is_estimated in (
        ("TCC_EA_RDREQ_sum", 64, False),
        ("TCC_EA_WRREQ_LEVEL_sum", 64, False),
        ("TCC_EA0_WRREQ_LEVEL_sum", 128, True),
        ("SQ_WAVES", 64, True),
    ):
        old(tmp_path, [*asked, more], ("k", [2, 0, 0, 1], 0, 1000))
        counted = eprof.load(tmp_path / "results.csv", gpu="MI250X").counts("accessed")
        assert counted.table["l2_read"].tolist() == [2 * each_b]
        assert bool(counted.amount_marks["l2_read"][0] & Mark.ESTIMATED) == is_estimated


def test_matrix_cores_count_512_operations_at_a_time_and_types_of_later_gpus_are_none(tmp_path):
    """The name of what L2 asks of memory tells that the GPU is older than MI300: it knows no FP8."""
    matrix = [f"SQ_INSTS_VALU_MFMA_MOPS_{kind}" for kind in ("F16", "F64", "F32")]
    old(tmp_path, [*matrix, "TCC_EA_RDREQ_sum"], ("k", [3, 2, 1, 9], 0, 1000))
    counted = eprof.load(tmp_path / "results.csv", gpu="MI250X").counts().table.iloc[0]
    flops = counted[["tensor_fp16", "tensor_fp64", "tensor_other"]] / 512
    assert flops.tolist() == [3, 2, 1] and counted["tensor_fp8"] == counted["tensor_tf32"] == 0
    assert math.isnan(counted["tensor_int8"])


@needs_data
def test_a_type_that_was_counted_as_none_is_not_among_what_was_not_counted(eprof_here):
    said = " ".join(eprof_here("report", ROCPROF / "omniperf2-mi200-roofonly" / "pmc_perf.csv").stdout.split())
    assert "Compute units: taken to be always active" in said
    assert "tensor INT8, FP16 other" in said and "matrix cores" not in said


def test_without_times_kernels_are_ranked_by_the_bytes_that_they_move(eprof_here, tmp_path):
    rows = [f'{place},"{kernel}",8,0,0,1,1,256,256,0,0,4,0,16,64,0x0,0x1,{kib},1' for place, (kernel, kib) in
            enumerate([("aaa", 1), ("most", 3000), ("zzz", 20)])]  # fmt: skip
    table(tmp_path, f"{OLD},FETCH_SIZE,WRITE_SIZE", *rows)
    told = eprof_here("report", "results.csv").stdout
    moved, everything = 3001 * 1024, (3021 + 3) * 1024
    first = next(line for line in told.splitlines() if line.startswith("most"))
    assert f"{moved / 1e6:.2f} MB" in first and f"{100 * moved / everything:.3g} %" in first
    said = " ".join(told.split())
    assert "counted, but no time" in said and "Try give times" in said, "no kernel to begin with: one has all"
    page = eprof_here("report", "results.csv", "-o", "page.html")
    assert page.returncode == 0 and "Which kernels move most bytes" in (tmp_path / "page.html").read_text()


def test_begin_with_the_kernel_that_takes_most_before_many_small_ones(eprof_here, tmp_path):
    launches = [("large", [80], 0, 500_000), *[(f"small_{each}", [5], 0, 8_000) for each in range(20)]]
    old(tmp_path, ["MemUnitBusy"], *launches)
    said = " ".join(eprof_here("report", "results.csv").stdout.split())
    assert "Try begin with large, 76 % of the time (its memory unit works or waits 80 % of it" in said
    assert "; do more in each launch of small_0" in said and "; count with `rocprof-compute" in said
    old(tmp_path, ["MemUnitBusy"], ("mul<1>", [90], 0, 500_000), ("mul<2>", [50], 500_000, 800_000), *launches[1:])
    said = " ".join(eprof_here("report", "results.csv").stdout.split())
    assert "the 2 instances of mul, " in said and "(its memory unit works or waits 75 % of it" in said, "by time"
    old(tmp_path, ["WriteSize"], *launches)
    assert "; count the rest with `rocprof-compute" in " ".join(eprof_here("report", "results.csv").stdout.split())


def test_products_of_tensile_take_batches(eprof_here, tmp_path):
    """10,000 launches of which each spares at most the 4 us of a whole launch of the other kernel, as do its 1,000."""
    gemm = "Cijk_Alik_Bljk_I8II_BH_UserArgs_MT64x64x256_MI16x16x1_SN"
    table(tmp_path, STATS, f'"{gemm}",10000,60000000,6000,90', '"scale(int)",1000,4000000,4000,10')
    said = " ".join(eprof_here("report", "results.csv").stdout.split())
    assert (
        "batch the products of tensile gemm I8II 64x64x256 (now 6.00 µs), and do more in each launch of 1 more kernel: saves up to 44.0"
        in said
    )


def test_a_table_of_another_kind_below_the_first_is_told_to_be_left_out(tmp_path):
    old(tmp_path, ["FETCH_SIZE"], ("k", [8000], 0, 1_000_000))
    path = tmp_path / "results.csv"
    counted = path.read_text()
    assert not any("other tables" in note for note in logs.read(path).notes)
    path.write_text(counted + counted)
    assert not any("other tables" in note for note in logs.read(path).notes), "runs of one kind are read"
    path.write_text(counted + '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"t",1,9,9,100\n')
    assert any("other tables below the first are not read" in note for note in logs.read(path).notes)


_TRACE = "Kind,Agent_Id,Dispatch_Id,Kernel_Name,SGPR_Count,Start_Timestamp,End_Timestamp\n"


@pytest.mark.parametrize("end", ["\n", ""])
def test_text_around_a_table_is_no_lost_row(eprof_here, tmp_path, end):
    """Markdown, with commas and a table of its own: nothing of the launches is lost."""
    rows = "KERNEL_DISPATCH,1,1,k,16,1000,2000\nKERNEL_DISPATCH,1,2,k,16,3000,5000\n"
    prose = f"```\n\n| a | b |\n|---|---|\nMore text, with commas, follows.\n\nThe end, at last{end}"
    (tmp_path / "a.md").write_text(f"# Text, first\n\n```\n{_TRACE}{rows}{prose}")
    said = " ".join(eprof_here("report", "a.md").stdout.split())
    assert "takes 3.00 µs" in said and "at least" not in said and "left out" not in said
    (tmp_path / "a.md").write_text(f"```\n{_TRACE}{rows}KERNEL_DISPATCH,1,3,k\n{prose}")
    said = " ".join(eprof_here("report", "a.md").stdout.split())
    assert "1 row was left out, whose cells do not fit" in said and "at least 3.00 µs" in said


@pytest.mark.parametrize(
    ("kernel", "registers", "is_radeon"),
    [
        ("k", 128, True),
        ("k", 112, False),
        ("Cijk_Alik_Bljk_ISA1201_WS32_WG16", 16, True),
        ("Cijk_Alik_Bljk_ISA90a_WS64_WG16", 16, False),
        ("flash_gfx1100", 16, True),
        ("flash_gfx942", 16, False),
    ],
)
def test_radeons_are_counted_by_a_profiler_that_knows_them(eprof_here, tmp_path, kernel, registers, is_radeon):
    (tmp_path / "t.csv").write_text(f"{_TRACE}KERNEL_DISPATCH,1,1,{kernel},{registers},1000,2000\n")
    said = " ".join(eprof_here("report", "t.csv").stdout.split())
    assert ("count with `rocprofv3 --kernel-trace --pmc" in said) == is_radeon
    assert ("rocprof-compute" in said) != is_radeon
    assert ("MI250X" in said) != is_radeon


@pytest.mark.parametrize("line", ["Analysis mode = cli", "0. Top Stat"])
def test_tables_that_an_analysis_printed_are_refused_with_the_way_out(eprof_here, tmp_path, line):
    (tmp_path / "printed.txt").write_text(f"{line}\n\u2552\u2550\n| 0 | yax(double*) | 1.00 | 12364156.00 |\n")
    ended = eprof_here("report", "printed.txt")
    assert ended.returncode == 1 and "the counts are in pmc_perf.csv, in the workload's folder" in ended.stderr


@needs_data
@pytest.mark.parametrize("part", ["rocprofcompute3-mi350-vcopy/pmc_perf_0.csv", "omniperf2-mi200-vcopy/timestamps.csv"])
def test_counts_that_stand_beside_a_part_of_them_are_named(eprof_here, tmp_path, part):
    log = ROCPROF / part
    (tmp_path / log.name).write_bytes(log.read_bytes())
    assert "`rocprof-compute profile -n" in " ".join(eprof_here("report", log.name).stdout.split())
    (tmp_path / "pmc_perf.csv").write_bytes(log.with_name("pmc_perf.csv").read_bytes())
    said = " ".join(eprof_here("report", log.name).stdout.split())
    assert "give pmc_perf.csv, which has all counts, instead" in said
    assert "`rocprof-compute profile -n" not in said


def test_counters_without_a_use_slow_launches_down_too(tmp_path):
    """Times are estimated, and what passes between launches is the profiler's: no gaps are told."""
    launches = [("a", [12.5], 1000, 2000), ("a", [13.5], 9000, 9500)]
    assert old(tmp_path, [], *((kernel, [], *times) for kernel, _, *times in launches)).idle
    counted = old(tmp_path, ["OccupancyPercent"], *launches)
    assert counted.tables[0].kind == "rocprof-counters" and not counted.idle


SUMMARY = (
    "| NAME | DOMAIN | CALLS | DURATION (nsec) | AVERAGE (nsec) | PERCENT (INC) | MIN (nsec) | MAX (nsec) | STDDEV |"
)
OF_KERNELS = [
    '| void scale<float>(float*, char const*, "x") | KERNEL_DISPATCH | 4 | 6000 | 1.5e+03 | 60.0 | 1000 | 2500 | 7.0e+02 |',
    "| norm                              | KERNEL_DISPATCH | 1 | 1500 | 1.5e+03 | 15.0 | 1500 | 1500 | 0.0e+00 |",
]
OF_CALLS = "| hipLaunchKernel                    | HIP_API         | 5 | 2500 | 5.0e+02 | 25.0 | 100 | 900 | 1.0e+02 |"


def test_a_summary_as_rocprofv3_prints_it(tmp_path):
    """`-S`: a table by domain, and one of all, which tells the kernels again; among other words."""
    rule = "|-----|------|----|"
    domain = ["ROCPROFV3 KERNEL_DISPATCH SUMMARY:", "", SUMMARY, rule, *OF_KERNELS, ""]
    whole = ["ROCPROFV3 SUMMARY:", "", SUMMARY.replace("NAME ", "NAME   "), rule, OF_CALLS, *OF_KERNELS, "", "done"]
    log = table(tmp_path, "W20260101 rocprofv3", *domain, *whole, name="summary.txt")
    rows = log.tables[0].rows
    assert list(rows.kernel.texts()) == ['void scale<float>(float*, char const*, "x")', "norm"]
    assert rows.launches.tolist() == [4, 1] and rows.time_s.tolist() == pytest.approx([6e-6, 1.5e-6])
    assert rows.least_s.tolist() == pytest.approx([1e-6, 1.5e-6]) and rows.most_s.tolist() == pytest.approx(
        [2.5e-6, 1.5e-6]
    )
    assert log.tables[0].kind == "rocprof-times" and not log.notes
    in_ms = table(tmp_path, SUMMARY.replace("nsec", "msec"), OF_KERNELS[1], name="ms.txt")
    assert in_ms.tables[0].rows.time_s.tolist() == pytest.approx([1.5])
    with pytest.raises(LogError, match="no kernel ran"):
        table(tmp_path, SUMMARY, OF_CALLS, name="calls.txt")


def test_a_trace_that_rocpd_wrote_of_two_runs(tmp_path):
    """Each database has a Guid, and its own numbers of launches; registers tell a Radeon."""
    header = "Guid,Kind,Agent_Id,Queue_Id,Dispatch_Id,Kernel_Name,Start_Timestamp,End_Timestamp,Sgpr_Count"
    rows = [
        f"{guid},KERNEL_DISPATCH,Agent 1,1,{number},step,10{number}0,10{number}7,128"
        for guid, number in ("a1", "a2", "b1")
    ]
    log = table(tmp_path, header, *rows)
    assert log.tables[0].rows.time_s.tolist() == pytest.approx([7e-9] * 3)
    assert OF_RADEON in log.notes


RANKS = [
    "KERNELS_SUMMARY_BY_RANK:",
    " ProcessID Hostname          Name  Calls  DURATION (nsec)  AVERAGE (nsec)  PERCENT (INC)  MIN (nsec)  MAX (nsec)    STD_DEV",
    "      4711      n01  scale(int, 8)      4             6000          1500.0           80.0        1000        2500 700.000001",
]


@pytest.mark.parametrize("behind", [[], ["", *RANKS], RANKS])
def test_a_summary_as_rocpd_prints_it(tmp_path, behind):
    """Blanks stand between its cells, and in names; a summary by rank tells the same again."""
    summary = [
        "         Name  Calls  DURATION (usec)  AVERAGE (usec)  PERCENT (INC)  MIN (nsec)  MAX (nsec)    STD_DEV",
        "scale(int, 8)      4             6000          1500.0           80.0     1000000     2500000 700.000001",
        '  "norm" , 2       1             1500          1500.0           20.0     1500000     1500000   0.000000',
    ]
    log = table(tmp_path, "rocpd ran", "KERNELS_SUMMARY:", *summary, *behind, name="summary.txt")
    rows = log.tables[0].rows
    assert list(rows.kernel.texts()) == ["scale(int, 8)", '"norm" , 2']
    assert rows.launches.tolist() == [4, 1] and rows.time_s.tolist() == pytest.approx([6e-3, 1.5e-3])
    assert rows.most_s.tolist() == pytest.approx([2.5e-3, 1.5e-3]) and not log.notes
    as_csv = table(tmp_path, 'Name,Calls,"DURATION (nsec)","MIN (nsec)","MAX (nsec)"', '"a, b",3,600,100,300')
    assert as_csv.tables[0].rows.time_s.tolist() == pytest.approx([6e-7])


def test_a_launch_that_began_at_no_time_has_none(tmp_path):
    """As rocprofv2 writes of some: the days since the machine started are no time of a kernel."""
    log = old(tmp_path, [], ("a", [], 0, 140469300947216), ("b", [], 1, 8))
    assert log.tables[0].rows.time_s.tolist() == pytest.approx([math.nan, 7e-9], nan_ok=True)


_FENCED = f"```\n{_TRACE}KERNEL_DISPATCH,1,1,k,16,1000,2000\n```"


@pytest.mark.parametrize(
    "behind",
    [
        "",
        "| Kernel | Runs |\n|---|---|\n| k | 8 |\n",
        "k,Agent 1,3,j,16,1000,2000\n",
        "\n| Name | Calls |\n|---|---|\n| j | 3 |\n",
        f"\n```\n{_TRACE.replace('SGPR_Count', 'Extra')}KERNEL_DISPATCH,1,2,j,16,1000,2000\n```\n",
    ],
)
def test_a_table_ends_at_its_fence(tmp_path, behind):
    (tmp_path / "a.md").write_text(f"Text\n{_FENCED}\n{behind}")
    log = logs.read(tmp_path / "a.md")
    (found,) = log.tables
    assert found.rows.kernel.texts().tolist() == ["k"] and not found.lacks_rows
    assert any("other tables" in note for note in log.notes) == ("Extra" in behind)


def test_rows_of_other_tables_below_a_blank_line_are_not_lost(tmp_path):
    whole, short = "KERNEL_DISPATCH,1,1,k,16,1000,2000", "KERNEL_DISPATCH,1,2,k"
    other = table(tmp_path, _TRACE.strip(), whole, "", "GPUBusy,Waves", "100,262144")
    assert not other.tables[0].lacks_rows and not other.notes
    for rows in ((whole, short), (short, whole), (whole, "", short, "", whole.replace(",1,k", ",3,k"))):
        log = table(tmp_path, _TRACE.strip(), *rows)
        assert log.tables[0].lacks_rows and any("1 row was left out" in note for note in log.notes)


def test_a_table_cut_at_its_closing_fence_is_whole(tmp_path):
    (tmp_path / "a.md").write_text(_FENCED)
    assert not logs.read(tmp_path / "a.md").tables[0].lacks_rows


@pytest.mark.parametrize(("calls", "time", "share"), [("1,200", "44,242", "0.014317"), ("1.200", "44.242", "0,014317")])
def test_a_summary_has_digits_in_groups(tmp_path, calls, time, share):
    header = "| NAME | DOMAIN | CALLS | DURATION (nsec) | PERCENT (INC) |"
    log = table(tmp_path, header, f"| add(int, 7) | KERNEL_DISPATCH | {calls} | {time} | {share} |", name="s.txt")
    (rows,) = (found.rows for found in log.tables)
    assert rows.time_s.tolist() == pytest.approx([44_242e-9]) and rows.launches.tolist() == [1200]


def test_calls_of_the_host_are_no_kernels_where_a_table_of_them_was_cut_or_stands_beside(tmp_path):
    calls = '"hsa_queue_create",3,99,33,60.0'
    with pytest.raises(LogError, match="these are calls of the host"):
        table(tmp_path, STATS, calls)
    log = table(tmp_path, STATS, '"k",1,70,70,100.0', "", STATS, calls)
    assert log.tables[0].rows.kernel.texts().tolist() == ["k"] and any(
        "calls of the host" in note for note in log.notes
    )


@pytest.mark.parametrize(
    ("counters", "expected"),
    [
        # 600 work-items in groups of 100, a group has 2 waves of 64 work-items, the second not full: 6 x 2 = 12 waves.
        ({"VALUInsts": 5}, 64 * 5 * 12),
        # As a log of ROCm 5.3 has: twice as many waves were counted as the grid makes.
        ({"VALUInsts": 5, "Wavefronts": 24}, 64 * 5 * 12),
        ({"VALUInsts": 5, "SQ_INSTS_VALU": 70}, 64 * 70),
    ],
)
def test_means_of_a_wave_are_of_as_many_waves_as_the_grid_makes(tmp_path, counters, expected):
    row = f'0,"k()",8,0,0,1,1,600,100,0,0,4,0,16,64,0x0,0x1,{",".join(map(str, counters.values()))},0,1000,2000,0'
    table(tmp_path, ",".join([OLD, *counters, TIMES]), row)
    (kernel,) = eprof.load(tmp_path / "results.csv", cache=False).energy("none").document()["kernels"]
    assert kernel["counts"]["misc"]["value"] == expected


def test_means_of_a_wave_where_no_grid_is_told(tmp_path):
    table(tmp_path, "Index,KernelName,gpu-id,VALUInsts,Wavefronts,BeginNs,EndNs", "0,k(),8,5,24,1000,2000")
    (kernel,) = eprof.load(tmp_path / "results.csv", cache=False).energy("none").document()["kernels"]
    assert kernel["counts"]["misc"]["value"] == 64 * 5 * 24

"""Tables of AMD's profilers: rocprof, rocprofv3, Omniperf, rocprof-compute."""

import csv

import pytest
from conftest import SHARED

import eprof
from eprof import logs
from eprof.base.errors import LogError

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
        f'{number},"{kernel}",8,0,0,1,1,256,256,0,0,4,0,16,64,0x0,0x1,{",".join(map(str, counts))},0,{begin},{end},0'
        for number, (kernel, counts, begin, end) in enumerate(launches)
    ]
    return table(folder, f"{OLD},{','.join(counters)},{TIMES}", *rows)


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


def test_channels_add_up_where_their_sum_is_not_told(tmp_path):
    log = old(tmp_path, ["TCC_EA_WRREQ[0]", "TCC_EA_WRREQ[1]", "TCC_HIT[0]", "TCC_HIT_sum"], ("k", [3, 4, 5, 9], 1, 2))
    counters = log.tables[0].counters
    assert (counters["TCC_EA_WRREQ_sum"].tolist(), counters["TCC_HIT_sum"].tolist()) == ([7], [9])


def test_what_is_not_known_is_no_zero(tmp_path):
    rounded = old(tmp_path, ["FETCH_SIZE"], ("k", [8], "8.1097E+14", "8.1097E+14"))
    assert rounded.tables[0].rows.time_s.tolist() == [pytest.approx(float("nan"), nan_ok=True)]
    idle = old(tmp_path, ["SQ_WAVES", "FETCH_SIZE"], ("k", [0, 0], 1, 5))
    assert idle.tables[0].kind == "rocprof-times" and any("all counters are 0" in note for note in idle.notes)
    (tmp_path / "results.csv").write_text((tmp_path / "results.csv").read_text() + '1,"k",8,0,0')
    assert logs.read(tmp_path / "results.csv").tables[0].lacks_rows


@pytest.mark.parametrize(
    ("header", "row", "says"),
    [
        (
            '"Name","Calls","TotalDurationNs","AverageNs","Percentage"',
            '"hipLaunchKernel",3,9,3,100',
            "calls of the host",
        ),
        ("Dispatch_ID,Kernel_Name", "", "no kernel ran"),
        ("workload_name,command,ip_blocks", "copy,./copy,SQ", "whose counts are in pmc_perf.csv"),
    ],
)
def test_what_holds_no_kernels_is_refused(tmp_path, header, row, says):
    with pytest.raises(LogError, match=says):
        table(tmp_path, header, row)


def test_a_log_of_amd_asks_for_amds_profilers_and_a_gpu_of_amd(eprof_command, tmp_path):
    old(tmp_path, ["FETCH_SIZE"], ("k", [8000], 0, 1_000_000))
    said = " ".join(eprof_command("report", "results.csv").stdout.split())
    assert "of `rocprof-compute profile` tell it" in said and 'as in --costs "MI250X"' in said
    named = " ".join(eprof_command("report", "results.csv", "--costs", "MI250X").stdout.split())
    assert "of constant power (110 W for 1.00 ms)" in named and "Nothing but time" not in named

"""Levers of the first screen on small logs: what each is about, and the numbers that it is told with."""

import pytest
from conftest import SHARED
from msgspec.structs import replace

import eprof
from eprof.commands.report.advice import _levers, _sorted, what_to_try
from eprof.commands.report.advice.savings import Try, comes_compiled
from eprof.commands.report.headline import headline
from eprof.commands.report.hotspots import hotspots
from eprof.commands.report.trust import trust
from eprof.commands.report.view import View
from eprof.profile import api
from eprof.profile.document import document


def view_of(path, text):
    path.write_text(text)
    return View(document(api.load(path, cache=False).energy()))


ROW = '"Tesla K40c (0)","{kernel}",1,"{name}","{name}",{value},{value},{value}\n'
HEAD = (
    "==1== NVPROF is profiling process 1, command: ./a.out\n==1== Profiling application: ./a.out\n"
    "==1== Profiling result:\n==1== Metric result:\n"
    '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
)


def moving(kernel, rate, level, flops):
    """Rows of a kernel that reads 2,097,152 sectors of DRAM at so many GB/s."""
    rows = [("dram_read_transactions", 2097152), ("dram_read_throughput", f"{rate}GB/s")]
    rows += [("dram_write_transactions", 0), ("dram_utilization", f'"{level}"'), ("flop_count_sp_add", flops)]
    return "".join(ROW.format(kernel=kernel, name=name, value=value) for name, value in rows)


def test_a_kernel_can_gain_what_another_reaches_for_the_same_bytes(tmp_path):
    """64 MiB at 40 and at 10 GiB/s: 1.5625 and 6.25 ms, so the slower one gains 4.6875 ms at most."""
    text = HEAD + moving("inorder", 40, "High (8)", 0)
    slow = moving("scattered", 10, "Low (3)", 0)
    view = view_of(tmp_path / "slow.csv", text + slow)
    change = _sorted(view)[0]
    assert "in scattered as inorder does (as many DRAM bytes in 4.00 times the time" in change.act
    (kernel,) = (kernel for kernel in view.kernels if kernel.name == "scattered")
    assert kernel.time_s == pytest.approx(6.25e-3, rel=1e-3)
    assert change.likely == pytest.approx(0.75 * view.timed(kernel), rel=1e-3)
    assert "scattered" in what_to_try(view).text
    for other in (
        moving("scattered", 10, "Low (3)", 2 * 2**26),  # which computes: two flops a byte
        moving("scattered", 10, "High (7)", 0),  # whose DRAM is busy
        slow.replace("2097152", "1048576"),  # which moves half of the bytes
    ):
        view = view_of(tmp_path / "other.csv", text + other)
        assert not any("as inorder does" in change.act for change in _levers(view))


RUN = """            Type  Time(%)      Time     Calls       Avg       Min       Max  Name
 GPU activities:  100.00%  {time}         1  {time}  {time}  {time}  {kernel}
 ...
 Device "{device} (0)"
   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name
    1000  64.000KB  4.0000KB  0.9961MB  62.50000MB  20.00000ms  Host To Device
     100         -         -         -           -  {faults}  Gpu page fault groups
 Total CPU Page faults: 13739

"""


def test_kernels_of_a_summary_are_of_the_gpu_whose_pages_it_tells_and_wait_for_them(tmp_path):
    """Of two runs with 1 s and 2 s of a kernel, 400 ms and 600 ms are page faults: 1 s may be saved of 3 s."""
    first = RUN.format(time="1.00000s", kernel="f(int)", device="Quadro P4000", faults="400.0000ms")
    again = RUN.format(time="2.00000s", kernel="g(int)", device="Tesla V100-PCIE-16GB", faults="600.0000ms")
    view = view_of(tmp_path / "runs.txt", first + again)
    assert {kernel.name: kernel.device for kernel in view.kernels} == {
        "f(int)": "Quadro P4000 (0)",
        "g(int)": "Tesla V100-PCIE-16GB (0)",
    }
    change = _sorted(view)[0]
    assert (
        "cudaMemPrefetchAsync (pages came 2,000 times" in change.act
        and "after 1.00\u202fs of page faults" in change.act
    )
    assert change.likely == pytest.approx(view.energy("total").value / 3)
    assert view.document.gaps.copies_s == 0, "kernels run meanwhile"
    two = first.replace('Device "Quadro', 'Device "Tesla P100 (1)"\n Device "Quadro')
    view = view_of(tmp_path / "two.txt", two + again)
    assert {kernel.name: kernel.device for kernel in view.kernels}["f(int)"] is None, "one of two"


CONFLICTS = """==PROF== Connected to process 1 (/a.out)
  {kernel}(const float *, int) (32, 32, 1)x(32, 32, 1), Context 1, Stream 7, Device 0, CC 12.0
    Section: Command line profiler metrics
    ---------------------------------------------------- ----------- ------------
    Metric Name                                          Metric Unit Metric Value
    ---------------------------------------------------- ----------- ------------
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum            {number}
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum            {number}
    ---------------------------------------------------- ----------- ------------

"""


@pytest.mark.parametrize("lacks", ["op_ld", "op_st"])
def test_bank_conflicts_of_loads_or_of_stores_alone_are_advice(tmp_path, lacks):
    rows = CONFLICTS.format(kernel="plain", number="1,015,808").splitlines(keepends=True)
    text = "".join(row for row in rows if f"shared_{lacks}" not in row)
    assert len(text.splitlines()) == len(rows) - 1
    tried = what_to_try(view_of(tmp_path / "half.txt", text)).text
    assert tried.startswith("avoid bank conflicts of shared memory (1.02\u202fM in plain): pad its arrays")


def test_local_memory_is_advice_where_it_is_all_that_was_counted(tmp_path):
    """3 GB of loads and 2 GB of stores, without a time."""
    ways = {"ld": 3, "st": 2}
    local = [(f"l1tex__t_bytes_pipe_lsu_mem_local_op_{way}.sum", "Gbyte", n) for way, n in ways.items()]
    none = [(name, unit, 0) for name, unit, _ in local]
    view = view_of(tmp_path / "two.txt", page_of("spilling", *local) + page_of("lean", *none))
    act = "spill no registers (5.00 GB of local memory, most in spilling): smaller tiles or arrays, __launch_bounds__ ("
    assert what_to_try(view).text.replace("\u202f", " ").startswith(act)
    assert "spill" not in what_to_try(view_of(tmp_path / "one.txt", page_of("lean", *none))).text


def efficient(kernel, **pct):
    """Rows of nvprof of a kernel whose loads and stores use so many % of what they move, and no others."""
    return "".join(ROW.format(kernel=kernel, name=f"{way}_efficiency", value=f"{pct[way]}%") for way in pct)


@pytest.mark.parametrize(
    ("pct", "told"),
    [
        ({"gld": 25, "gst": 100}, "75 % of the sectors that wide asks for are not used ("),
        ({"gld": 40, "gst": 15}, "60 % of the sectors that wide asks for are not used, 85 % of its stores' ("),
        ({"gld": 100, "gst": 25}, "75 % of the sectors that wide stores to are not filled ("),
        ({"gld": 0, "gst": 25}, "75 % of the sectors that wide asks for are not used ("),  # it loads nothing
        ({"gld": 90, "gst": 90}, ""),
    ],
)
def test_efficiencies_of_loads_and_stores_are_advice_without_times_or_work(tmp_path, pct, told):
    """Of seconds of equally long launches nothing tells which kernel takes most, nor what a change saves."""
    view = view_of(tmp_path / "log.csv", HEAD + efficient("wide", **pct) + 3 * efficient("even", gld=100, gst=100))
    tried = what_to_try(view).text.replace("\u202f", " ")
    assert tried.startswith(f"coalesce accesses: {told}what that saves was not counted)") == bool(told)
    assert "coalesce" in tried or not told
    assert "begin with" not in tried and "takes most" not in tried


def test_bank_conflicts_are_advice_where_they_are_all_that_was_counted(tmp_path):
    """32 x 32 blocks of 32 warps, each of whose accesses takes 32 turns in place of one, loads and stores."""
    plain, padded = (CONFLICTS.format(kernel=name, number=n) for name, n in (("plain", "1,015,808"), ("padded", "0")))
    view = view_of(tmp_path / "both.txt", plain + padded)
    assert "avoid bank conflicts of shared memory (2.03\u202fM in plain, none in padded)" in what_to_try(view).text
    view = view_of(tmp_path / "none.txt", padded)
    assert "bank conflicts" not in what_to_try(view).text


def page_of(kernel, *metrics):
    """A page of ncu of one launch, with metrics (name, unit, value) and no time."""
    rows = "".join(f"    {name:<75} {unit:>12} {value:>14}\n" for name, unit, value in metrics)
    line = f"    {'-' * 75} {'-' * 12} {'-' * 14}\n"
    return (
        "==PROF== Connected to process 1 (/a.out)\n[1] a.out@127.0.0.1\n"
        f"  {kernel}(int, float *), 2022-Jan-02 10:00:00, Context 1, Stream 7\n"
        f"    Section: Command line profiler metrics\n{line}{rows}{line}\n"
    )


def lit(*busy_pct, active=1.0, beside=()):
    """A page of ncu of a launch of 1 ms whose multiprocessors, L1 and DRAM are so busy, in a share of its cycles."""
    names = ["sm__throughput.avg", "l1tex__throughput.avg", "gpu__dram_throughput.avg"]
    ends = ["elapsed", "active", "elapsed"]
    metrics = [
        (f"{name}.pct_of_peak_sustained_{end}", "%", share)
        for name, end, share in zip(names, ends, busy_pct, strict=True)
    ]
    metrics += [("sm__cycles_active.avg", "cycle", active * 1e6), ("sm__cycles_elapsed.avg", "cycle", 1e6)]
    return page_of("sums", ("gpu__time_duration.sum", "usecond", 1000), *metrics, *beside)


APART = "coalesce accesses or avoid bank conflicts in sums (L1 is 90 % busy with 2.0 % of the instructions"
FREE = [("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "", 0)]
FREE += [("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "", 1000)]
SECTORS = [("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "%", 100)]


@pytest.mark.parametrize(
    ("page", "told", "saved_s"),
    [
        (lit(2, 90, 18), APART, 0.8e-3),  # until DRAM is as busy as L1 is now: 1 - 18 / 90 of 1 ms
        (lit(2, 40, 20), APART.replace("90", "40"), 0.8e-3),  # until DRAM is always busy: 1 - 0.2 of 1 ms
        (lit(2, 90, 18, beside=FREE), APART.replace(" or avoid bank conflicts", ""), 0.8e-3),
        (lit(2, 90, 18, beside=SECTORS), APART.replace("coalesce accesses or ", ""), 0.8e-3),
        (lit(2, 90, 18, beside=[*SECTORS, *FREE]), "", 0.0),
        (lit(30, 90, 18), "", 0.0),  # each instruction takes three cycles, as one of 16 bytes a thread may
        (lit(2, 90, 18, active=0.08), "", 0.0),  # L1 works in 7.2 % of all cycles: 3.6 for each instruction
    ],
)
def test_an_l1_that_is_busy_with_few_instructions_serves_accesses_that_lie_apart(tmp_path, page, told, saved_s):
    view = view_of(tmp_path / "page.txt", page)
    apart = [change for change in _levers(view) if "of the instructions that it could take" in change.act]
    assert [change.most for change in apart] == pytest.approx([saved_s] * bool(told), rel=1e-3)
    assert not told or what_to_try(view).text.replace("\u202f", " ").startswith(told)


def working(blocks, active):
    """A page of ncu of a launch of 1 ms with so many blocks, whose 84 multiprocessors work in a share of its cycles."""
    shape = [("launch__grid_size", "", blocks), ("launch__block_size", "", 128)]
    return lit(1, 20, 3, active=active, beside=[*shape, ("launch__sm_count", "SM", 84)])


@pytest.mark.parametrize(
    ("blocks", "active", "told", "saved_s"),
    [
        # 64 of 84 even blocks keep 76 % at work: of 1 ms may be left 0.02 / 0.762.
        (64, 0.02, "share the work of sums evenly among its blocks (", (1 - 0.02 / (64 / 84)) * 1e-3),
        (64, 0.55, "launch more blocks of sums, or other kernels beside it (", 0.45e-3),  # they take about as long
        (16, 0.1, "launch more blocks of sums, or other kernels beside it (", 0.9e-3),  # 19 % would be little, too
        (
            85,
            0.5,
            "launch more blocks of sums, or other kernels beside it (",
            0.5e-3,
        ),  # one waits for a turn of its own
        (8400, 0.5, "share the work of sums evenly among its blocks (", 0.5e-3),
    ],
)
def test_idle_multiprocessors_lack_blocks_or_wait_for_the_longest(tmp_path, blocks, active, told, saved_s):
    view = view_of(tmp_path / "page.txt", working(blocks, active))
    (change,) = (change for change in _levers(view) if "have work" in change.act)
    assert change.act.startswith(told) and change.most == pytest.approx(saved_s)
    is_uneven = told.startswith("share")
    assert ("if its 64 blocks took equally long" in change.act) == (is_uneven and blocks == 64)
    assert not is_uneven or not any("more blocks" in other.act for other in _levers(view))


HUGE = [("dram__bytes_read.sum", "Tbyte", 0.9), ("dram__bytes_write.sum", "Tbyte", 0.1)]


@pytest.mark.parametrize(
    ("signature", "how"),
    [
        ("render(int, float *)", "smaller data, side by side for neighbouring threads: a launch moves 1.00 TB, "),
        ("jacobi_step(int, float *)", "larger tiles in shared memory and registers: a launch moves 1.00 TB, "),
        (
            "stage(const __half *, const __half *, float *, int, int, int)",
            "larger tiles in shared memory and registers: a launch moves 1.00 TB, ",
        ),
    ],
)
def test_tiles_are_for_products_and_stencils_by_name_or_parameters(tmp_path, signature, how):
    """No GPU holds the 1 TB that a launch moves."""
    page = lit(2, 30, 90, beside=HUGE).replace("sums(int, float *)", signature)
    page = page.replace("Stream 7", "Stream 7, Device 0, CC 8.6")
    assert how in what_to_try(view_of(tmp_path / "page.txt", page)).text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (("load_32x128", "load_32x256"), "or store narrower types"),
        (("load_32x128", "keep_32x128"), "fuse kernels that pass arrays on"),
        (("load_fp8_32", "load_fp8_64"), ""),
    ],
)
def test_neither_are_alternatives_fused_nor_types_of_8_bits_halved(tmp_path, names, told):
    pages = [lit(2, 30, 90, beside=[("dram__bytes_read.sum", "Gbyte", 2)]) for _ in names]
    text = "".join(page.replace("sums(", f"{name}(") for page, name in zip(pages, names, strict=True))
    text = text.replace("Stream 7", "Stream 7, Device 0, CC 8.6")
    (act,) = (change.act for change in _levers(view_of(tmp_path / "page.txt", text)) if "DRAM bytes" in change.act)
    assert (told in act) if told else "narrower" not in act
    assert ("fuse" in act) == told.startswith("fuse")


def test_of_rates_alone_changes_save_shares_and_no_watts():
    """No time is told: 10 of 40 W."""
    assert Try("rest", 10.0).text(40.0, "W") == "rest: saves 25\u202f%"
    by_degrees = Try("rest", 1.0, each="fewer", most=20.0, why="at most").text(40.0, "W").replace("\u202f", " ")
    assert by_degrees == "rest: saves up to 50 % at most; 2.5 % for each 10 % fewer"
    assert Try("rest", 10.0).text(40.0, "J").replace("\u202f", " ") == "rest: saves 10.0 J (25 % of 40.0 J)"


@pytest.mark.parametrize(("shortest_us", "launches", "is_told"), [(4, 2, False), (4, 20, True), (2, 2, True)])
def test_the_shortest_launch_is_a_start_if_it_is_short_or_of_many(tmp_path, shortest_us, launches, is_told):
    """Launches of 8 us and as many shorter ones: these work, too, unless one of many did little or they take 2 us."""
    times = [8, shortest_us] * (launches // 2)
    pages = [lit(2, 30, 40).replace("1000\n", f"{us}\n").replace("sums(", f"{'ab'[us < 8]}(") for us in times]
    view = view_of(tmp_path / "page.txt", "".join(pages))
    (change,) = (change for change in _levers(view) if "do more in each launch" in change.act)
    assert ("as the shortest launch does" in change.why) == is_told
    assert (change.most or 0.0) == pytest.approx(is_told * shortest_us * 1e-6 * launches)


@pytest.mark.parametrize(("dram", "saved_s"), [(90, 0.5e-3), (35, 0.0)])
def test_half_of_the_bytes_take_half_of_the_time_where_dram_is_busy(tmp_path, dram, saved_s):
    flops = [(f"smsp__sass_thread_inst_executed_op_d{op}_pred_on.sum", "inst", 1e9) for op in ("add", "mul", "fma")]
    view = view_of(tmp_path / "page.txt", lit(4, 20, dram, beside=flops))
    (change,) = (change for change in _levers(view) if "FP32 for FP64" in change.act)
    assert change.likely == pytest.approx(saved_s) and change.is_open == (not saved_s)


@pytest.mark.parametrize(("name", "is_told"), [("voronoi", True), ("sgemm", False)])
def test_multiprocessors_at_their_peak_need_fewer_instructions_though_none_was_counted(tmp_path, name, is_told):
    """Busy 90 % of the time, then L1 at 30 %: two thirds of 1 ms are saved at most; a product needs what it does."""
    view = view_of(tmp_path / "page.txt", lit(90, 30, 3).replace("sums(", f"{name}("))
    changes = [change for change in _levers(view) if "multiprocessors are 90\u202f% busy" in change.act]
    assert [change.most for change in changes] == pytest.approx([2e-3 / 3] * is_told)
    assert not any(change.act.startswith("execute") for change in _levers(view_of(tmp_path / "l.txt", lit(50, 90, 3))))


def test_nobody_is_told_to_execute_fewer_instructions_where_tensor_cores_are_what_is_busy():
    view = shared_view("ncu", "b200-raw-wide.csv")
    (kernel,) = view.kernels
    assert kernel.signs["older_tensor"] == pytest.approx(kernel.signs["sm_busy"], rel=0.02)
    assert not any(change.act.startswith("execute") for change in _levers(view))


@pytest.mark.parametrize(("shared_gb", "told"), [(4, "up to 31 % are loads of shared memory: larger tiles"), (3, "")])
def test_many_loads_of_shared_memory_call_for_tiles_in_registers(tmp_path, shared_gb, told):
    """4 GB are 31.25 M loads of a warp, of 128 B each, among 100 M instructions; 3 GB are 23.4 M."""
    metrics = [
        ("smsp__inst_executed.sum", "inst", 1e8),
        ("smsp__sass_data_bytes_mem_shared_op_ld.sum", "Gbyte", shared_gb),
    ]
    page = page_of("sums", ("gpu__time_duration.sum", "usecond", 1000), *metrics)
    view = view_of(tmp_path / "page.txt", page.replace("Stream 7", "Stream 7, Device 0, CC 8.9"))
    (act,) = (change.act for change in _levers(view) if change.act.startswith("execute fewer instructions"))
    assert (told or "unroll").replace(" %", "\u202f%") in act and ("shared" in act) == bool(told)


@pytest.mark.parametrize(("used", "told"), [(12.5, "70 %"), (100, "")])
def test_bytes_that_sectors_are_used_for_tell_uncoalesced_stores_without_a_time(tmp_path, used, told):
    """Loads use all of 1,000 sectors, stores `used` % of 4,000: of 5,000 sectors 3,500 come in vain."""
    metrics = [("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "sector", "1,000")]
    metrics += [("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "sector", "4,000")]
    metrics += [("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", "%", 100)]
    metrics += [("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", "%", used)]
    view = view_of(tmp_path / "page.txt", page_of("turn", *metrics))
    assert headline(view).text == "One kernel profiled: at least 128\u202fkB L1 write counted, but no time."
    advice = f"coalesce accesses: {told} of the sectors that turn asks for are not used, 88 % of its stores' (what"
    assert what_to_try(view).text.replace("\u202f", " ").startswith(advice) == bool(told)
    assert ("coalesce" in what_to_try(view).text) == bool(told)


@pytest.mark.parametrize(("used", "told"), [(50, "500 in turn"), (90, "200 in turn"), (100, "")])
def test_no_more_wavefronts_are_bank_conflicts_than_their_bytes_leave_empty(tmp_path, used, told):
    metrics = [
        (f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{op}.sum", "", n) for op, n in (("ld", 0), ("st", 500))
    ]
    metrics += [(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum", "", "1,000") for op in ("ld", "st")]
    metrics += [("smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct", "%", used)]
    tried = what_to_try(view_of(tmp_path / "page.txt", page_of("turn", *metrics))).text
    assert (told in tried) if told else ("bank conflicts" not in tried)


TRACE = """==1== Profiling result:
   Start  Duration            Grid Size      Block Size  Size  Throughput  Device   Context    Stream  Name
154.623s  5.5000ms                    -               -  68.665MB  12.117GB/s  GPU (0)         1         7  [CUDA memcpy HtoD]
154.628s  900.00ms          (188 188 1)       (16 16 1)         -           -  GPU (0)         1         7  f(int) [120]
155.529s  5.6000ms                    -               -  68.665MB  11.863GB/s  GPU (0)         1         {stream}  [CUDA memcpy DtoH]
{more}"""


def test_neither_gaps_nor_overlaps_are_made_of_starts_that_are_rounded(tmp_path):
    """The copy ends 0.5 ms after the kernel's start, as printed, and the second one starts 1 ms after its end."""
    gaps = view_of(tmp_path / "one.txt", TRACE.format(stream=7, more="")).document.gaps
    assert gaps.time_s == 0 and gaps.alone_s == pytest.approx(11.1e-3)
    beside = "154.800s  5.6000ms                    -               -  68.665MB  11.863GB/s  GPU (0)         1         8  [CUDA memcpy DtoH]\n"
    gaps = view_of(tmp_path / "two.txt", TRACE.format(stream=7, more=beside)).document.gaps
    assert gaps.alone_s == pytest.approx(11.1e-3) and gaps.copies_s == pytest.approx(16.7e-3), "one runs beside it"


def test_a_table_that_lacks_most_of_the_time_is_asked_for_first(tmp_path):
    text = '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"a",1,300000000,300000000,30.0\n"b",1,100000000,100000000,10.0\n'
    tried = what_to_try(view_of(tmp_path / "results.stats.csv", text)).text.replace("\u202f", " ")
    assert tried.startswith("give the whole table, which lacks 60 % of the time; ")


def test_kernels_with_which_rocm_copies_are_spared_and_short_launches_of_others_add_to_that(tmp_path):
    """60 ms of copies and 40 ms of fills, beside a kernel of 600 ms; 300 ms in launches of 5 us, and one of 2 us."""
    kernels = [("__amd_rocclr_copyBuffer.kd", 50_000, 60), ("__amd_rocclr_fillBufferAligned.kd", 10_000, 40)]
    kernels += [("gemv(float*) [clone .kd]", 1000, 600), ("bias(float*) [clone .kd]", 60_000, 300)]
    rows = [f'"{name}",{calls},{ms}000000,{ms * 10**6 // calls},{ms / 10}\n' for name, calls, ms in kernels]
    rows.append('"last(float*) [clone .kd]",1,2000,2000,0.0\n')
    text = f'"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n{"".join(rows)}'
    tried = what_to_try(view_of(tmp_path / "results.stats.csv", text)).text.replace("\u202f", " ")
    copies = "copy and fill less (__amd_rocclr_copyBuffer and 1 more kernel, 60,000×): "
    assert (
        tried.startswith(copies) and ": saves up to 100 ms (10 % of 1.00 s); do more in each launch of bias (" in tried
    )


@pytest.mark.parametrize(
    ("kernel", "how", "is_halved"),
    [
        ("gemv", "store narrower types, or keep its result in registers for what uses it", True),
        ("dequant_gemv", "its weights are packed: multiply each with several vectors at a time, in batches", False),
        ("gather_int4_rows", "keep its result in registers for what uses it", False),
        ("print4", "store narrower types, or keep its result in registers for what uses it", True),
    ],
)
def test_nobody_is_told_to_store_packed_weights_in_types_half_as_wide(tmp_path, kernel, how, is_halved):
    view = view_of(tmp_path / "log.csv", HEAD + moving(kernel, 40, "Max (10)", 0))
    (change,) = (change for change in _levers(view) if change.act.startswith("move fewer DRAM bytes"))
    assert (
        f"({how})" in change.act and change.why.startswith("with types half as wide") == bool(change.most) == is_halved
    )


@pytest.mark.parametrize(
    "log",
    [
        "ncu-modern/l4-text-fp16-mma-16384-seconds.txt",
        "nvprof/k40c-wide-trace-events-only-no-units-row.csv",
        "ncu-modern/a100-sxm4-silu.ncu-rep",
    ],
)
def test_fewer_bytes_save_no_more_than_they_take_and_the_time_that_they_take_of_the_rest(log):
    """Where DRAM takes the share s of all joules and t of the time, without it no more is saved than s + t (1 - s)."""
    if not (SHARED / log).exists():
        pytest.skip("needs ../shared/data")
    energy = api.load(SHARED / log).energy()
    view = View(document(energy))
    (change,) = (change for change in _levers(view) if change.act.startswith("move fewer DRAM bytes"))
    tenth, all_gone = (-energy.what_if(question).time_share for question in ("dram=-10%", "dram=0"))
    high = next(part.interval[1] for part in view.document.causes.parts if "dram" in part.groups and part.interval)
    assert change.ends[1] <= (0.1 * high + tenth * (1 - high)) * view.everything * (1 + 1e-9)
    assert change.most <= (high + max(all_gone, 10 * tenth) * (1 - high)) * view.everything * (1 + 1e-9)


def test_nobody_is_told_to_rewrite_what_cublas_took_from_cutlass():
    """Its L2 is 89 % busy, and its bytes were not counted; its user chooses the type, not the tiles."""
    log = SHARED / "ncu-modern" / "rtxpro6000-text-cublas-fp16.txt"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    view = View(document(api.load(log).energy()))
    assert view.kernels[0].signs["l2_busy"] > 0.85
    acts = [change.act for change in _sorted(view)]
    assert not any("fewer L2 bytes" in act for act in acts) and acts[0].startswith("use FP8 for FP16")
    for name, is_compiled in (
        (view.kernels[0].name, True),
        ("ampere_fp16_s16816gemm_fp16_128x128_ldg8_nn", True),
        ("void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::half_t>>(Params)", False),
        ("my_gemm(float*)", False),
    ):
        assert comes_compiled(replace(view.kernels[0], name=name)) is is_compiled


def test_types_half_as_wide_say_which_levels_beside_dram_they_are_counted_for():
    """Half of DRAM's joules alone would be less than what is said to be saved."""
    log = SHARED / "ncu-modern" / "a100-sxm4-silu.ncu-rep"
    if not log.exists():
        pytest.skip("needs ../shared/data")
    view = View(eprof.load(log).energy().document())
    (change,) = (change for change in _levers(view) if change.act.startswith("move fewer DRAM bytes"))
    assert change.why == "with types half as wide (L1 and L2 too)"
    halves = {level: view.joules_of(level) / 2 for level in ("dram", "l1", "l2")}
    assert halves["dram"] + halves["l1"] + halves["l2"] <= 1.01 * change.most


def shared_view(*path):
    log = SHARED.joinpath(*path)
    if not log.exists():
        pytest.skip("needs ../shared/data")
    return View(document(api.load(log).energy()))


def test_a_neighbour_is_named_where_another_kernel_ran_and_several_launches_where_the_kernel_came_again(tmp_path):
    one = moving("gemv", 40, "Max (10)", 0)
    fewer = {}
    for name, rows in (
        ("several launches", one.replace('"gemv",1,', '"gemv",3,')),
        ("kernels that pass arrays on", one + moving("axpy", 40, "Max (10)", 0)),
    ):
        levers = _levers(view_of(tmp_path / "log.csv", HEAD + rows))
        (fewer[name],) = (change.act for change in levers if change.act.startswith("move fewer DRAM bytes"))
    assert "(do the work of several launches in one pass, or store narrower types)" in fewer["several launches"]
    assert "fuse kernels that pass arrays on, or store narrower types)" in fewer["kernels that pass arrays on"]


@pytest.mark.parametrize(
    ("log", "is_largest"), [("h100-sxm-text-cutlass-tma.txt", True), ("l4-text-fp16-mma-16384-seconds.txt", False)]
)
def test_no_tile_larger_than_a_multiprocessor_holds_is_advised(log, is_largest):
    """Of CUTLASS's 128x256x64 on an H100, 128 x 256 FP32 sums are 128 KiB, half of the registers."""
    view = shared_view("ncu-modern", log)
    (change,) = (change for change in _levers(view) if change.act.startswith("move fewer DRAM bytes"))
    assert ("larger tiles" in change.act) == (not is_largest)
    assert ("blocks in an order that reuses what L2 holds: along the other side" in change.act) == is_largest


def test_what_was_counted_alone_is_told_of_the_kernel_that_has_nothing_else():
    """Of kernel b 5 G integer instructions were counted alone; of a FP64, DRAM and L2 too, which take 88 % of it."""
    rows = {row.cells[0].text: row.cells[-1] for row in hotspots(shared_view("repro", "power-of-untimed.csv")).rows}
    assert rows == {"b": "little but integer instructions was counted", "a": "L2 and DRAM 87\u202f%"}


def test_the_only_thing_that_was_not_counted_has_one_number():
    told = trust(shared_view("cpu", "perf-csv-hybrid-alderlake-with-metricgroup-rows.csv")).text
    assert told.endswith(" Not counted, at most 81.4\u202fJ: DRAM.")


def test_a_page_of_ncu_names_its_program_in_the_line_of_its_process():
    """The page begins "[208] gemm_bench@127.0.0.1", and lost the lines before it."""
    assert shared_view("ncu-modern", "h100-sxm-text-cublas-tf32.txt").document.title == "gemm_bench"


def test_bank_conflicts_come_before_more_warps():
    """15.65 transactions of shared memory a load, of which 16 bytes a thread need four: 1 - 4 / 15.64771 are too many.

    The occupancy is 12 %, but warps that are added would wait for the same banks.
    """
    view = shared_view("nvprof", "k40c-wide-trace-metrics-invalid-value.csv")
    assert view.kernels[0].signs["bank_conflict"] == pytest.approx(1 - 4 / 15.64771)
    change = next(change for change in _sorted(view) if "in subSeqMax" in change.act)
    assert change.act.startswith("avoid bank conflicts of shared memory in subSeqMax (74\u202f% of its transactions)")
    assert change.most == pytest.approx((1 - 4 / 15.64771) * view.timed(view.kernels[0]))


def test_accesses_that_ask_for_too_much_are_told_though_nothing_else_was_counted():
    """50.4 M sectors in 1.64 M requests are 30.8 each, and 32 threads that move 8 bytes each need eight."""
    tried = what_to_try(shared_view("ncu-modern", "rtx3050laptop-indian-grouping.csv")).text
    assert tried.startswith("coalesce accesses: 74\u202f% of the sectors that load_kernel asks for are not used")


@pytest.mark.parametrize(("ns", "is_long"), [(332_000_000_000, True), (9_000_000_000, False)])
def test_a_launch_that_takes_minutes_is_counted_on_a_smaller_size(tmp_path, ns, is_long):
    text = f'"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"mm",1,{ns},{ns},100.0\n'
    tried = what_to_try(view_of(tmp_path / "results.stats.csv", text)).text
    assert ("on a smaller size (a launch of 332\u202fs would be replayed" in tried) == is_long and "count with" in tried


@pytest.mark.parametrize(
    ("log", "act", "saved_s"),
    [
        ("ncu-modern/celeritas-roofline-track.csv", "use FP32 for FP64 in demo_interactor::iterate_kn, if ", 0.0),
        # The launch of NormKernel1 took ...591775 - ...190813 ns, at 7.341689 % of the waves.
        (
            "rocprof/rocprof3-agentid-number-excerpt.csv",
            "keep more waves in flight in NormKernel1 (occupancy 7.3\u202f%)",
            400_962e-9 * (1 - 0.07341689),
        ),
        # The first launch fetched 1979347.875 KiB and wrote 1043147.625; 1.91 of all launches.
        ("rocprof/rocprof1-mi250x-laplacian1/data_movement.csv", "keep planes of laplacian_kernel in L2 or on", None),
    ],
)
def test_what_counts_tell_is_advised_though_nobody_named_the_gpu(log, act, saved_s):
    view = shared_view(log)
    assert what_to_try(view).text.startswith(act)
    change = next(change for change in _sorted(view) if change.act.startswith(act))
    if saved_s is None:
        assert "it reads 1.91 bytes of DRAM for each that it stores" in change.act and not view.saved_unit
    else:
        assert (change.most or change.saves) == pytest.approx(saved_s, rel=2e-3)


def test_a_share_stands_beside_the_number_that_it_is_of():
    """From nothing up to 20 J of 100 J: a fifth."""
    told = Try("fuse", 10.0, (0.0, 20.0)).text(100.0, "J").replace("\u202f", " ")
    assert told == "fuse: saves some 10.0 J, from next to nothing up to 20.0 J (20 % of 100 J)"

"""How long no kernel ran in a trace: against a count of nanoseconds one by one, and the same trace in two formats."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import eprof
from eprof import logs
from eprof.base.labels import remedy_of
from eprof.base.vocabulary import Mark
from eprof.commands.report.advice import _levers as levers
from eprof.commands.report.advice import what_to_try, worth_trying
from eprof.commands.report.advice.between_kernels import Between
from eprof.commands.report.headline import gaps_sentence, headline
from eprof.commands.report.hotspots import hotspots
from eprof.commands.report.page import table
from eprof.commands.report.trust import trust
from eprof.commands.report.view import View
from eprof.logs.log import HostCalls, Names, idle_of_calls
from eprof.profile.document import document
from eprof.readers.gaps import Gaps
from eprof.show import export
from eprof.show.numbers import percent, quantity

SHARED = Path(__file__).parents[3] / "shared" / "data"
LAUNCHES = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 60),
        st.integers(1, 9),
        st.booleans(),
        st.sampled_from(["HtoD", "DtoH", "n"]),
    ),
    min_size=1,
    max_size=12,
)
RANGES = st.lists(
    st.tuples(st.integers(-5, 60), st.integers(0, 40), st.sampled_from(["IO 1", "IO 2", "f"])), max_size=9
)
FLAME = SHARED / "traces" / "nsys"
needs_data = pytest.mark.skipif(not FLAME.is_dir(), reason="needs ../shared/data")


def taken(launches, gaps):
    devices, starts, times, are_copies, names = zip(*launches, strict=True)
    columns = Names.of(devices), Names.of(names), np.array(starts), np.array(times)
    # The times of copies are their sizes.
    gaps.add(*columns, is_kernel=~np.array(are_copies), size_b=np.array(times, dtype=float))


def covered(launches, device, is_copy):
    own = [(start, start + time) for name, start, time, copies, _ in launches if (name, copies) == (device, is_copy)]
    return {at for start, end in own for at in range(start, end)}


@given(LAUNCHES, st.integers(0, 12))
def test_gaps_are_the_nanoseconds_without_a_kernel_and_copies_lie_in_them(launches, cut):
    launches = sorted(launches, key=lambda launch: launch[1])
    gaps = Gaps()
    for piece in (launches[:cut], launches[cut:]):
        if piece:
            taken(piece, gaps)
    idle, longest, copied, copies, alone, firsts, waited = 0, 0, 0, 0, 0, 0, 0
    for device in {launch[0] for launch in launches}:
        kernels = [(start, name) for on, start, _, is_copy, name in launches if on == device and not is_copy]
        running, copying = (covered(launches, device, is_copy) for is_copy in (False, True))
        copies += len(copying)
        alone += len(copying - running)
        if not kernels:
            continue
        still = [at for at in range(kernels[0][0], kernels[-1][0]) if at not in running]
        idle += len(still)
        began = min(start for on, start, *_ in launches if on == device)
        firsts += len(set(range(began, kernels[0][0])) - copying)  # from the first copy on
        waited += len(set(range(began, kernels[0][0])) - copying)
        copied += len(copying.intersection(still))
        stretches = "".join(" x"[at in still] for at in range(62)).split()
        longest = max([longest, *map(len, stretches)])
        names = [name for _, name in kernels]
        for place, name in enumerate(names[1:], start=1):
            if name not in names[:place] and names.count(name) > 1:
                between = set(range(kernels[place - 1][0], kernels[place][0]))
                firsts += len(between - running - copying)
    if all(launch[3] for launch in launches):
        assert gaps.idle is None
    else:
        told = gaps.idle
        times_s = (told.time_s, told.longest_s, told.copied_s, told.copies_s, told.alone_s, told.short_s)
        expected = (idle + waited, longest, copied, copies, alone, idle - copied)  # all of these gaps are short
        assert times_s == pytest.approx([at * 1e-9 for at in expected])
        assert firsts <= round(told.first_s * 1e9) <= idle + waited - copied
    again = 0
    for place, (device, _, time, is_copy, name) in enumerate(launches):
        likes = [at for at, (on, _, took, _, _) in enumerate(launches[:place]) if (on, took) == (device, time)]
        first = next((at for at in likes if launches[at][3:] == (True, name)), place)
        is_between = any(on == device and not copies for on, _, _, copies, _ in launches[first:place])
        again += time * (is_copy and name != "n" and is_between)
    assert sum(each.again_s for each in gaps.copies) == pytest.approx(again * 1e-9)


@given(LAUNCHES, RANGES)
def test_what_the_cpu_did_is_the_shortest_range_around_most_of_a_gap(launches, ranges):
    launches = sorted((launch for launch in launches if not launch[3]), key=lambda launch: launch[1])
    if not launches:
        return
    gaps = Gaps()
    taken(launches, gaps)
    starts, times, names = map(list, zip(*ranges, strict=True)) if ranges else ([], [], [])
    ends = np.array(starts, dtype=int) + np.array(times, dtype=int)
    gaps.explain(Names.of(names), np.array(starts, dtype=int), ends)
    told_s = {}
    for start, end in gaps.stretches.tolist():
        covers = []
        for at, time, name in ranges:
            covered = len(set(range(at, at + time)).intersection(range(start, end)))
            if 5 * covered >= 4 * (end - start) and 2 * covered >= time:
                covers.append((time, name.split()[0], covered))
        shortest = {(name, covered) for time, name, covered in covers if time == min(covers)[0]}
        if len(shortest) > 1:
            return  # of two as short as each other, either may be told
        for name, covered in shortest:
            told_s[name] = told_s.get(name, 0.0) + covered * 1e-9
    assert {each.doing: each.time_s for each in gaps.idle.during} == pytest.approx(told_s)


def test_rows_out_of_order_and_launches_without_a_time_leave_it_open():
    for launches in ([("a", 5, -1, False, "k")], [("a", 5, 1, False, "k")]):
        gaps = Gaps()
        taken([("a", 9, 1, False, "k")], gaps)
        taken(launches, gaps)
        assert gaps.idle is None
    assert Gaps().idle is None


@needs_data
def test_a_database_and_a_table_of_one_trace_have_the_same_gaps():
    database, table = (logs.read(FLAME / f"flame-torch-ex{end}") for end in (".sqlite", "_cuda_gpu_trace_base.csv"))
    assert database.idle.time_s == pytest.approx(table.idle.time_s, rel=1e-9)
    assert database.idle.longest_s == pytest.approx(table.idle.longest_s, rel=1e-9) and table.idle.copied_s > 0
    notes = " ".join(database.notes)
    told_ms = [float(text) for text in re.findall(r"(?:copies|memsets) \(([0-9.]+) ms\)", notes)]
    assert told_ms and database.copies_s == pytest.approx(1e-3 * sum(told_ms), rel=1e-5)
    assert 0.19 < table.idle.time_s < 0.20


def view_of(*path, **prices):
    return View(eprof.load(SHARED.joinpath(*path)).energy(**prices).document())


@needs_data
def test_gaps_take_constant_power_and_closing_them_is_advised():
    profile = eprof.load(SHARED / "traces" / "kineto" / "hta-alexnet-a100-2023.json.gz")
    energy = profile.energy()
    document = energy.document()
    assert document["gaps"]["energy_j"] == pytest.approx(profile.idle.time_s * energy.costs.constant_power_w)
    view = View(document)
    told = "No kernel ran for 12.9\u202fs, 10.8\u202fs of it in aten::cudnn_convolution: 857\u202fJ (607"
    assert headline(view).text.startswith(told)
    pinned = [act for act in worth_trying(view) if "pinned" in act]
    assert all("less what pinning takes once" in act for act in pinned), "each copy comes once"
    assert any("43.1\u202fms in [param|clear_cache]" in act for act in worth_trying(view))
    once = quantity(view.document.gaps.first_s * energy.costs.constant_power_w, "J")
    assert what_to_try(view).text.startswith("do more in each run (12.8\u202fs before first launches is paid once: ")
    assert f"saves up to {once} (99\u202f%" in what_to_try(view).text, "most of all joules"
    metered = profile.energy(metered_j=1.0).document()["gaps"]
    assert metered["time_s"] == document["gaps"]["time_s"] and metered["energy_j"] is None, "by time alone"
    some = eprof.load(SHARED / "traces" / "kineto" / "hta-alexnet-a100-2023.json.gz", kernels=["elementwise_kernel"])
    assert some.idle is None


@needs_data
def test_what_is_copied_once_is_pinned_and_what_comes_again_is_kept():
    """1 GB each in 195.2, 190.5 and 380.8 ms: 12.0 GB/s of PCIe 3.0 (0.76 of 15.75) take 83.54 ms and 10 µs each."""
    view = view_of("nvprof", "k40c-gpu-trace-ns-gb-units.csv")
    assert headline(view).text.startswith(
        "Copies took 767\u202fms: 53.7\u202fJ (39.2 to 73.6\u202fJ); the start-up before the GPU's first work took 8.32"
    )
    tried = what_to_try(view).text
    size = 2**30 if "now 4.20" in tried else 1e9
    saved_s = 0.195202034 + 0.190486077 + 0.380820055 - 3 * (size / (0.76 * 15.75e9) + 10e-6)
    assert tried.startswith("copy with pinned memory, cudaMallocHost (now ")
    assert f"saves up to {saved_s * view.document.constant_w:.1f}\u202fJ (6" in tried
    assert "less what pinning takes once; count with" in tried and "do more with" not in tried
    assert not any(act.startswith("keep data") for act in worth_trying(view)), "each comes once"
    again = [act for act in worth_trying(view_of("nvprof", "k20c-gpu-trace.csv")) if act.startswith("keep data")]
    assert again and "163\u202fms of copies move as many bytes as one before them" in again[0]
    assert not any("pinned" in act for act in worth_trying(view_of("nvprof", "k20c-gpu-trace.csv"))), "PCIe 2.0 is full"


@needs_data
def test_pinned_memory_makes_faster_what_comes_again(tmp_path):
    """A trace of three iterations as if its board had PCIe 3.0, whose first copies pay for pinning."""
    text = (SHARED / "nvprof" / "k20c-gpu-trace.csv").read_text()
    log = tmp_path / "k40c.csv"
    log.write_text(text.replace("Tesla K20c", "Tesla K40c"))
    view = View(eprof.load(log).energy().document())
    pinned = next(act for act in worth_trying(view) if act.startswith("copy with pinned memory"))
    took_s = 0.122367219 + 0.122456341
    saved_s = (took_s - 2 * 805306368 / (0.76 * 15.75e9)) * 2 / 3
    assert f"saves {quantity(saved_s * view.document.constant_w, 'J')} " in pinned


@needs_data
def test_sizes_of_copies_are_read_in_all_units_and_formats():
    told = {
        name: logs.read(SHARED / "nvprof" / name).copies
        for name in ("text-p100-gpu-trace.txt", "k20c-gpu-trace.csv", "titan-xp-gpu-trace-unified-memory-columns.csv")
    }
    assert [(each.way, each.memory, each.size_b) for each in told["text-p100-gpu-trace.txt"]] == [
        ("HtoD", "pageable", 2**28),
        ("DtoH", "pageable", 2**28),
    ]
    assert sum(each.size_b for each in told["k20c-gpu-trace.csv"]) == pytest.approx(6 * 2**28), "MB of 10^6 B"
    pages = [each for each in told["titan-xp-gpu-trace-unified-memory-columns.csv"] if each.memory == "unified"]
    assert {each.way: each.number for each in pages}["HtoD"] == 160
    database, table = (logs.read(FLAME / f"flame-torch-ex{end}") for end in (".sqlite", "_cuda_gpu_trace_base.csv"))
    (exact,), (rounded,) = database.copies, table.copies
    assert (
        (exact.way, exact.memory, exact.number)
        == (rounded.way, rounded.memory, rounded.number)
        == ("HtoD", "pageable", 122)
    )
    assert rounded.size_b == pytest.approx(exact.size_b, rel=1e-3) and exact.size_b == 46796608
    (summed, _) = logs.read(FLAME / "ayushos-vectoradd-nsys-stats.md").copies
    assert summed.size_b == pytest.approx(80.8e9) and summed.again_s is None


@needs_data
def test_copies_beside_each_other_count_once_and_those_beside_kernels_save_nothing():
    view = view_of("nvprof", "gtx950-gpu-trace-three-streams.csv")
    assert view.document.gaps.copies_s == pytest.approx(29.346866e-3), "not 56.8 ms, the sum over three streams"
    alone = "copies took 29.3\u202fms, 18.3\u202fms of it while no kernel ran: 471\u202fmJ (250 to 885\u202fmJ)"
    assert alone in headline(view).lead
    assert what_to_try(view).text.startswith("copy while kernels run") and "saves up to 471" in what_to_try(view).text
    # A trace as text tells it too, less what its starts are rounded by.
    rounded = view_of("nvprof", "text-p100-gpu-trace.txt").document.gaps
    assert rounded.alone_s == pytest.approx(50.2e-3, rel=1e-3) and rounded.time_s == rounded.first_s


@given(st.integers(2, 30), st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.integers(1, 50))
def test_waits_of_the_first_iteration_are_no_saving_however_few_iterations_there_are(iterations, loop, wait):
    """Kernels of 1 us; in the first iteration each waits as long, and later all follow 1 us behind the last."""
    names = [*loop, "z"] * iterations
    waits = np.where(np.arange(len(names)) <= len(loop), 1000 * wait, 1)
    starts = np.cumsum(waits + 1000)
    gaps = Gaps()
    gaps.add(Names.of(["a"] * len(names)), Names.of(names), starts, np.full(len(names), 1000))
    least_ns = 1000 * wait * len(loop)  # the first kernel ends no gap
    assert least_ns <= round(gaps.idle.first_s * 1e9) <= round(gaps.idle.time_s * 1e9)


@needs_data
def test_what_the_cpu_did_is_told_and_what_a_start_takes_is_no_saving():
    view = view_of("traces", "nsys", "nsightful-power_iteration.sqlite")
    assert "no kernel ran for 659\u202fms, 644\u202fms of it in IO: " in headline(view).lead
    assert "644\u202fms in IO: do it less often, or beside kernels): saves up to 12.9" in what_to_try(view).text
    view = view_of("traces", "kineto", "tracelens-h100-bert-small.json.gz")
    graphs = "launch in CUDA graphs (52 gaps between kernels, 47.6\u202fµs each; theirs, assumed, 1.5 µs)"
    assert what_to_try(view).text.startswith(graphs)
    told = "each run: 191\u202fms ({}) before first launches is paid once"
    most = "do more in each run (191\u202fms before first launches is paid once: see what the host does then"
    # With copies, or of gaps where a meter has them; a start that is most of the meter's time leads.
    for prices, still_ms, paid in (({}, 198, told), ({"metered_j": 60.0}, 193, most)):
        view = view_of("traces", "nsys", "flame-torch-ex.sqlite", **prices)
        assert f"no kernel ran for {still_ms}\u202fms, 191\u202fms of it before first launches" in headline(view).lead
        once = quantity(view.document.gaps.first_s * Between.of(view).power, "J")
        assert paid.format(once) in what_to_try(view).text and once in what_to_try(view).text
    gaps = view_of("traces", "nsys", "flame-torch-ex_cuda_gpu_trace_base.csv").document.gaps
    assert gaps.first_s == pytest.approx(view.document.gaps.first_s), "whichever names kernels have"
    assert gaps.time_s - gaps.first_s - gaps.copied_s - gaps.short_s < 1e-3, "all long gaps are in the first iteration"
    view = view_of("traces", "kineto", "hta-mi250-rocm62.json.gz")
    assert "6.54\u202fms of it in hipLaunchKernel. " in headline(view).text


@needs_data
@pytest.mark.parametrize("end", [".sqlite", "_cuda_gpu_trace_base.csv"])
@pytest.mark.parametrize("estimate", [True, False])  # without prices, time is saved
def test_kernels_that_convert_layouts_are_spared(end, estimate):
    view = view_of("traces", "nsys", f"flame-torch-ex{end}", estimate=estimate)
    assert view.has_energy == estimate
    (change,) = (change for change in levers(view) if "channels_last" in change.act)
    (kernel,) = (kernel for kernel in view.kernels if "nchwToNhwc" in kernel.name)
    assert "converted 640 times, by nchwToNhwcKernel" in change.act and kernel.launches == 640
    assert change.ends == (0.0, view.ranked(kernel).value) and change.saves > 0.05 * view.ranked(view.document).value
    assert what_to_try(view).text.startswith("keep tensors in channels_last")


def test_layouts_that_miopen_converts_are_spared():
    from eprof.base.labels import remedy_of

    assert "channels_last" in remedy_of("batched_transpose_16x64_pack_1x4_ediv_1x2_half", "spared_kernel")
    assert not remedy_of("batched_transpose_of_mine", "spared_kernel")


def test_a_rate_is_no_time():
    from eprof.lab.measurements.mapping import _LIKE

    assert not _LIKE["time_s"].search("n_fp32_thread_per_s") and _LIKE["time_s"].search("run_ms")


@needs_data
def test_what_is_paid_once_is_told_of_each_run():
    lead = headline(view_of("nvprof", "k40c-gpu-trace-many-runs-repeated-headers-prefixed.csv")).text
    assert "the start-up of 69 runs before the GPU's first work took 284\u202fs (up to 27.3\u202fkJ)" in lead
    view = view_of("nvprof", "text-v100-nbody-several-runs.txt")  # three of them without a kernel
    paid = "(163\u202fms is paid once in each of 7 runs, 161\u202fms of it in cudaMallocManaged; "
    assert paid in what_to_try(view).text
    assert view.document.gaps.time_s == pytest.approx(7 * 0.163, rel=0.005), "calls less kernels, both of all runs"
    assert "counts.csv ./nbody 15`" in what_to_try(view).text
    assert headline(view).text.startswith("No kernel ran for up to 1.14\u202fs in 7 runs: 57.0"), (
        "the title names one of them"
    )
    assert "7 runs or processes are added up; " in trust(view).text


@needs_data
def test_joules_of_copies_are_those_of_their_own_time():
    view = view_of("nvprof", "text-p100-gpu-trace.txt")
    assert headline(view).text.startswith("Copies took 50.2\u202fms: 2.28\u202fJ"), "45.4 W for 29.494 + 20.734 ms"
    assert view.document.idle_j == pytest.approx(2.34, abs=0.005), "gaps between kernels, too"


@needs_data
def test_a_trace_of_one_launch_tells_what_passed_before():
    view = View(eprof.load(SHARED / "traces" / "kineto" / "hta-triton-2kernels.json.gz").energy().document())
    assert gaps_sentence(view).endswith(
        "the start-up before the GPU's first work took 1.35\u202fms (up to 153\u202fmJ)."
    )
    view = view_of("nvprof", "titan-xp-gpu-summary-type-column-api-unified-memory.csv")
    assert "(1.09\u202fs is paid once a run, 1.06\u202fs of it in cudaMemcpyToSymbol; " in what_to_try(view).text


@needs_data
@pytest.mark.parametrize(
    ("log", "is_told"),
    [("traces/nsys/yktian-paddle-gcn-nsys-stats.txt", True), ("nvprof/gtx1070-gpu-summary-srad.csv", False)],
)
def test_modules_are_loaded_lazily_only_where_cuda_may_be_new_enough(log, is_told):
    assert ("since CUDA 11.7, CUDA_MODULE_LOADING=LAZY" in what_to_try(view_of(log)).text) == is_told


@needs_data
def test_what_names_and_times_tell_is_said_beside_how_to_count_and_to_price():
    view = view_of("ncu", "nsys-cuda-gpu-kern-sum.csv")
    (change,) = (change for change in levers(view) if "packed" in change.act)
    unpacked = [kernel for kernel in view.kernels if kernel.name.startswith("dequant")]
    assert change.ends == (0.0, pytest.approx(sum(view.ranked(kernel).value for kernel in unpacked)))
    told = ["unpacked 225 times, by dequant_q4_k_f16 and 1 more kernel", "; count with `ncu ", "; name the GPU"]
    assert all(part in what_to_try(view).text for part in told)
    of_nvprof = what_to_try(view_of("nvprof", "gtx1070-gpu-summary-srad.csv")).text
    assert "count with `nvprof --metrics all " in of_nvprof and "srad.out 100 0.5 30 30` (up to Volta)" in of_nvprof
    assert not remedy_of("dequantize_mul_mat_vec_q4_K", "spared_kernel"), "it unpacks as it multiplies"


def test_of_many_launches_those_of_the_kernel_that_takes_most_are_counted(tmp_path):
    rows = "60.0,6000000,1500,4000,long_kernel\n40.0,4000000,9000,444,frequent_kernel\n"
    (tmp_path / "times.csv").write_text(f"Time (%),Total Time (ns),Instances,Avg (ns),Name\n{rows}")
    told = what_to_try(view_of(tmp_path / "times.csv")).text
    assert "in a few of 1,500 launches with `eprof run -k regex:long_kernel --launch-count 100" in told


def test_what_a_table_lost_is_no_launch_of_those_that_would_be_counted(tmp_path):
    """Of a table cut at 70 %, 800 + 700 launches and those of the rest, which nothing tells."""
    rows = "30.0,3000000,800,3750,one_kernel\n40.0,4000000,700,5714,other_kernel\n"
    (tmp_path / "times.csv").write_text(f"Time (%),Total Time (ns),Instances,Avg (ns),Name\n{rows}")
    told = what_to_try(view_of(tmp_path / "times.csv")).text
    assert "(all 1,500 or more launches would be replayed several times) with `eprof run -k regex:other_kernel" in told


@pytest.mark.parametrize("launches", [15, 30])
def test_where_no_time_is_known_nothing_takes_most_and_times_are_asked_for(tmp_path, launches):
    """Of 25 launches 15 are 60 %, of 40 launches 30 are 75 %; nothing tells how long any takes."""
    head = (
        '==1== Metric result:\n"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
    )
    row = '"GeForce GTX 1070 (0)","{}(int)",{},"gld_efficiency","Global Memory Load Efficiency",81%,82%,82%\n'
    (tmp_path / "log.csv").write_text(head + row.format("often", launches) + row.format("seldom", 10))
    told = what_to_try(view_of(tmp_path / "log.csv")).text
    assert told == "give times along with it: `nvprof --print-gpu-trace --csv PROGRAM`"


@pytest.mark.parametrize(("copies", "again_ms"), [(1, 0), (4, 6)])
def test_what_each_run_copies_once_is_no_saving(tmp_path, copies, again_ms):
    run = (
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        f" GPU activities:   80.00%  4.0000ms         {copies}  1.0000ms  1.0000ms  1.0000ms  [CUDA memcpy HtoD]\n"
        "                   20.00%  1.0000ms         9  111.11us  111.11us  111.11us  axpy(int)\n\n"
    )
    (tmp_path / "log.txt").write_text(f"==1== Profiling result:\n{run}==2== Profiling result:\n{run}")
    told = what_to_try(view_of(tmp_path / "log.txt")).text
    assert (f"saves up to {again_ms}.00\u202fms" in told) == bool(again_ms)


@pytest.mark.parametrize(
    ("way", "copies", "act"),
    [
        ("HtoD", 1, "do more with what is copied, or make it on the GPU ("),
        ("DtoH", 1, "do on the GPU what the host does with results, and copy less of them back ("),
        ("HtoD", 9, "keep data on the GPU, where they stay the same ("),
        ("DtoH", 9, "keep data on the GPU, until the host needs them ("),
    ],
)
def test_less_is_copied_in_another_way_to_the_host_than_from_it(tmp_path, way, copies, act):
    log = tmp_path / "log.txt"
    log.write_text(
        "==1== Profiling result:\n            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        f" GPU activities:   80.00%  4.0000ms         {copies}  1.0000ms  1.0000ms  1.0000ms  [CUDA memcpy {way}]\n"
        "                   20.00%  1.0000ms         9  111.11us  111.11us  111.11us  axpy(int)\n"
    )
    assert what_to_try(view_of(log)).text.startswith(act)
    (change,) = (change for change in levers(view_of(log)) if change.act.startswith(act))
    assert change.is_vague == act.startswith("do more"), "only what is done on the GPU instead tells how"


@pytest.mark.parametrize("memset_ms", [0, 3])
def test_memsets_are_no_copies(tmp_path, memset_ms):
    (tmp_path / "log.txt").write_text(
        "==1== Profiling result:\n"
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        " GPU activities:   80.00%  4.0000ms         4  1.0000ms  1.0000ms  1.0000ms  [CUDA memcpy HtoD]\n"
        f"                   10.00%  {memset_ms}.0000ms         3  1.0000ms  1.0000ms  1.0000ms  [CUDA memset]\n"
        "                   10.00%  1.0000ms         9  111.11us  111.11us  111.11us  axpy(int)\n"
    )
    view = view_of(tmp_path / "log.txt")
    assert "4 copies in 4.00\u202fms" in what_to_try(view).text
    told = headline(view).text
    assert ("opies and memsets (3.00\u202fms) took 7.00\u202fms" in told) == bool(memset_ms), told


@needs_data
@pytest.mark.parametrize(
    "name", ["k20c-gpu-trace.csv", "gtx950-gpu-trace-three-streams.csv", "k40c-gpu-trace-ns-gb-units.csv"]
)
def test_copies_and_gaps_of_a_trace_that_stands_twice_in_a_log_count_once(tmp_path, name):
    text = (SHARED / "nvprof" / name).read_bytes()
    (tmp_path / name).write_bytes(text + text)
    once, twice = logs.read(SHARED / "nvprof" / name), logs.read(tmp_path / name)
    assert logs.combine([twice]).rows.launches.sum() == logs.combine([once]).rows.launches.sum()
    assert once.copies and (twice.copies, twice.idle) == (once.copies, once.idle)
    assert twice.copies_s == pytest.approx(once.copies_s)


@needs_data
def test_page_faults_are_no_copies():
    view = view_of("nvprof", "titan-xp-gpu-trace-unified-memory-columns.csv")
    told = {copies.way: copies for copies in view.document.gaps.copies}
    assert told["GPU page faults"].time_s == pytest.approx(3.2073e-3, rel=1e-5) and told["GPU page faults"].number == 20
    assert view.document.gaps.copies_s == pytest.approx(5.49e-3, rel=1e-3), "too little to tell, beside 625 ms"
    begun = "625\u202fms, 618\u202fms of it before first launches: 44.7\u202fJ (32.6 to 61.3\u202fJ)"
    assert begun in headline(view).text, "while the host fills managed memory"
    assert logs.read(SHARED / "nvprof" / "titan-xp-gpu-trace-unified-memory-columns.csv").copies_s == pytest.approx(
        (0.003776 + 0.001312 + 2.55053 + 0.71792) * 1e-3, rel=1e-5
    )
    prefetched = "cudaMemPrefetchAsync (pages came 160 times, at 10.9\u202fGB/s, after 3.21\u202fms of page faults)"
    assert any(prefetched in act for act in worth_trying(view)), "kernels wait for the faults too"
    (spared,) = (change for change in levers(view) if "cudaMemPrefetchAsync" in change.act)
    assert spared.saves > (3.2073e-3 * 0.8 + view.document.gaps.alone_s * 0.1) * view.document.constant_w


@pytest.mark.parametrize("is_full", [False, True])
def test_prefetching_saves_no_more_than_faults_and_nothing_where_the_gpu_is_full(tmp_path, is_full):
    """Pages take their time in any case. In blocks of 2 MB they go only to make room for others."""
    evicted = "       512  2.0000MB  2.0000MB  2.0000MB  1.000000GB  80.00000ms  Device To Host\n" * is_full
    (tmp_path / "log.txt").write_text(
        "==1== NVPROF is profiling process 1, command: ./a\n==1== Profiling result:\n"
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        " GPU activities:  100.00%  1.00000s         9  111.11ms  111.11ms  111.11ms  axpy(int)\n\n"
        '==1== Unified Memory profiling result:\nDevice "NVIDIA GeForce GTX 1080 Ti (0)"\n'
        "   Count  Avg Size  Min Size  Max Size  Total Size  Total Time  Name\n"
        f"   65536  32.000KB  4.0000KB  996.00KB  2.000000GB  200.0000ms  Host To Device\n{evicted}"
        "    9482         -         -         -           -   1.360747s  Gpu page fault groups\n"
    )
    view = view_of(tmp_path / "log.txt")
    (change,) = (change for change in levers(view) if "prefetch" in change.act)
    assert change.act.startswith("work on as many bytes at a time as the GPU holds" if is_full else "prefetch")
    kept_s = 280e-3 / 3 if is_full else 200e-3  # a GiB of the three that moved came once; else all pages come
    assert change.saves == pytest.approx((1 - kept_s) * (view.document.constant_w or 1.0))


@needs_data
def test_the_largest_leads_where_no_joules_are_known():
    view = view_of("nvprof", "k20c-gpu-summary-no-type-column.csv")
    assert headline(view).text == (
        "No kernel ran for up to 345\u202fms; copies took 245\u202fms. 6 kernels take 112\u202fms."
    )


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 20), st.sampled_from("ab")), max_size=5), max_size=3),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=5),
)
def test_calls_of_cuda_bound_how_long_no_kernel_ran_however_many_threads_call(threads, kernels):
    """threads: of each call the pause before it, its time and its function; kernels: starts and times."""
    calls, ends = [], []
    for thread in threads:
        now = 0
        for pause, took, name in thread:
            calls.append(HostCalls.of_run(name, 1, took, None))
            now += pause + took
        ends.append(now)
    running = {at for start, took in kernels for at in range(start, start + took)}
    still_s = len(set(range(max(ends, default=0))) - running)
    told = idle_of_calls(calls, sum(took for _, took in kernels), 0.0)
    if told is not None:
        assert told.surely_s <= still_s and told.first_s <= told.time_s
        assert len([thread for thread in threads if thread]) > 1 or told.time_s <= still_s


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("cuMemHostAlloc", "in cuMemHostAlloc; it pins memory of the host: pin less)"),
        ("cuCtxCreate", "in cuCtxCreate; it starts CUDA; quicker with nvidia-persistenced)"),
        ("cuMemAlloc", "in cuMemAlloc)"),
        ("cudaMalloc", "in cudaMalloc; the first call starts CUDA; quicker with nvidia-persistenced"),
    ],
)
def test_what_prepares_kernels_passes_before_them_and_only_the_runtime_starts_cuda_with_any_call(tmp_path, call, why):
    """300 ms once, then 200 ms of kernels beside 10 ms of launches: they ran while the host was in no call."""
    text = (
        "Time (%),Total Time (ns),Num Calls,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        f"96.8,300000000,1,300000000,300000000,300000000,300000000,0,{call}\n"
        "3.2,10000000,1000,10000,10000,9000,20000,100,cuLaunchKernel\n\n"
        "Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name\n"
        "100.0,200000000,1000,200000,200000,190000,210000,100,axpy\n"
    )
    path = tmp_path / "stats.csv"
    path.write_text(text)
    profile = eprof.load(path)
    assert profile.idle.time_s == pytest.approx(0.3) and profile.idle.surely_s == pytest.approx(0.1)
    view = View(profile.energy().document())
    (still,) = [row.cells for row in hotspots(view).rows if "no kernel" in str(row.cells[0])]
    assert still[2].value == pytest.approx(0.6) and why in what_to_try(view).text


@needs_data
@pytest.mark.parametrize(
    ("path", "calls_s", "surely_s", "least"),
    [
        (
            "traces/nsys/yktian-paddle-gcn-nsys-stats.txt",
            1.743487,
            1.062988,
            "1.06 to 1.74\u202fs (one cudaMalloc took 1.06\u202fs)",
        ),
        (
            "nvprof/titan-xp-gpu-summary-type-column-api-unified-memory.csv",
            1.532855,
            1.064432,
            "656\u202fms to 1.12\u202fs (one cudaMemcpyToSymbol took 1.06\u202fs)",
        ),
        (
            "nvprof/gtx1070-gpu-summary-srad.csv",
            0.133485,
            0.126938,
            "125 to 132\u202fms (one cudaMalloc took 127\u202fms)",
        ),
        (
            "nvprof/text-summary-type-column.txt",
            0.112670,
            0.098831,
            "94.4 to 108\u202fms (one cudaEventCreate took 98.8\u202fms)",
        ),
        (
            "ncu/nsys-text-stats-thousands.txt",
            0.995591,
            0.791065,
            "790 to 995\u202fms (one cudaMallocHost took 791\u202fms)",
        ),
    ],
)
def test_calls_of_cuda_that_a_summary_tells_lead_where_they_take_more_than_kernels(path, calls_s, surely_s, least):
    profile = eprof.load(SHARED / path)
    kernels_s = float(profile.counts().rows.time_s.sum())
    assert profile.idle.time_s == pytest.approx(calls_s - kernels_s, rel=1e-4)
    assert profile.idle.surely_s == pytest.approx(surely_s - kernels_s, rel=1e-4)
    view = View(profile.energy().document())
    assert headline(view).text.startswith(f"No kernel ran for {least}")
    assert what_to_try(view).text.startswith("do more in each run (")


@needs_data
def test_copies_within_the_gpu_are_told_and_summaries_tell_the_longest_launch():
    view = view_of("nvprof", "titan-xp-gpu-summary-type-column-api-unified-memory.csv")
    assert "copies took 20.1\u202fms (within the GPU: DRAM is read and written)" in headline(view).text
    assert any(change.act.startswith("swap pointers for copies within the GPU (2,000 ") for change in levers(view))
    path = SHARED / "nvprof" / "titan-xp-gpu-summary-type-column-api-unified-memory.csv"
    assert eprof.load(path, kernels=["cuda_time_step"]).idle is None, "not of some kernels"
    assert view.kernels[0].launch_s == pytest.approx([45.538e-6, 1.74375e-3])
    assert hotspots(view).rows[1].cells[-1] == "6,000 launches of 50.8\u202fµs (to 1.74\u202fms)"


@needs_data
@pytest.mark.parametrize("name", ["pipit-saxpy-mpi-rank0.sqlite", "pipit-cloverleaf-perlmutter.sqlite"])
def test_shares_of_the_first_screen_are_of_kernels_and_of_the_time_without(name):
    view = view_of("traces", "nsys", name)
    gaps, kernels_j = view.document.gaps, view.energy("total").value
    still_s = gaps.time_s + gaps.alone_s - gaps.copied_s
    whole_j = kernels_j + still_s * view.document.constant_w
    (still,) = [row.cells for row in hotspots(view).rows if "no kernel" in str(row.cells[0])]
    assert still[1].value + kernels_j == pytest.approx(whole_j) == pytest.approx(view.whole)
    assert still[2].value == pytest.approx(1 - kernels_j / whole_j)
    assert still[3] == f"of all {quantity(whole_j, 'J')}" and f"of {quantity(whole_j, 'J')})" in worth_trying(view)[0]
    assert [row.cells[2].value for row in hotspots(view).rows] == sorted(
        (row.cells[2].value for row in hotspots(view).rows), reverse=True
    )
    largest = next(row.cells for row in hotspots(view).rows if row.cells != still)
    assert percent(largest[2].value) in table.section(view).content["rows"][0].cells[1][1], "one number, one meaning"


@needs_data
def test_captures_of_nsys_in_one_file_are_runs():
    assert logs.read(FLAME / "ayushos-vectoradd-nsys-stats.md").runs == 5
    assert logs.read(FLAME / "yktian-paddle-gcn-nsys-stats.txt").runs == 1


@needs_data
def test_the_command_that_counts_is_of_the_program_and_of_few_launches():
    many = what_to_try(view_of("nvprof", "titan-xp-gpu-summary-type-column-api-unified-memory.csv")).text
    assert 'in the first of 6,000 launches with `nvprof --kernels "::cuda_compute_flux:1" --metrics all' in many
    assert many.endswith("./euler3d_adapt ../../data/cfd/fvcorr.domn.097K`")
    assert "--log-file counts.csv ./jacobi`" in what_to_try(view_of("nvprof", "k20c-gpu-trace.csv")).text
    report = what_to_try(view_of("ncu-modern", "rtx5060ti-occupancy-one-nan-launch.ncu-rep")).text
    assert report.endswith("count the rest with `eprof run PROGRAM`"), "a report has all that was counted"
    traced = what_to_try(view_of("traces", "nsys", "pipit-saxpy-mpi-rank0.sqlite")).text
    assert traced.endswith("counts.csv PROGRAM`"), "a name alone may lack its arguments"


@pytest.mark.parametrize(("before", "after"), [("", ""), ("6.0,1,", "6x0,1,"), (',6.0,"big(int)"', "")])
def test_calls_of_a_log_that_lost_kernels_tell_nothing_sure(tmp_path, before, after):
    rows = '"GPU activities",60.0,6.0,1,6.0,6.0,6.0,"big(int)"\n"GPU activities",40.0,4.0,1,4.0,4.0,4.0,"k(int)"\n'
    path = tmp_path / "summary.csv"
    path.write_text(
        '==1== Profiling result:\n"Type","Time(%)","Time","Calls","Avg","Min","Max","Name"\n,%,ms,,ms,ms,ms,\n'
        + rows.replace(before, after, 1)
        + '"API calls",99.0,100.0,1,100.0,100.0,100.0,"cudaMalloc"\n'
    )
    energy = eprof.load(path, cache=False).energy("p100")
    idle = energy.profile.idle
    assert (idle is None) == bool(before), "others may have run meanwhile"
    assert idle is None or idle.surely_s == pytest.approx(0.09)
    assert bool(energy.counts.rows.time_marks[0] & int(Mark.MISSING)) == bool(before), "what is left is a lower bound"


def test_the_call_of_cuda_that_takes_most_says_what_to_do_about_the_host(tmp_path):
    log = tmp_path / "copies.txt"
    log.write_text(
        "==1== Profiling application: ./a\n==1== Profiling result:\n"
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        " GPU activities:   99.00%  1.20000s   1000000  1.2000us  1.1000us  9.0000us  [CUDA memcpy HtoD]\n"
        "                    1.00%  10.000ms       100  100.00us  99.000us  110.00us  k(double*)\n"
        "      API calls:   95.00%  9.00000s   1000000  9.0000us  3.0000us  17.000ms  cudaMemcpy\n"
        "                    5.00%  400.00ms         1  400.00ms  400.00ms  400.00ms  cudaMalloc\n"
    )
    view = view_of(log)
    tried = what_to_try(view).text.replace("\u202f", " ")
    assert tried.startswith(
        "wait less for the host (9.00 s in 1,000,000 calls of cudaMemcpy: fewer, larger copies, or "
    )
    (change,) = (change for change in levers(view) if "wait less" in change.act)
    assert change.saves <= 9.0 + 0.4 - 0.01 - 0.4


SUMMARY = "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"


@pytest.mark.parametrize(("resets", "saves"), [(210, 8.8 - 0.1 + 2.1 * 209 / 210), (1, None), (0, None)])
def test_a_reset_in_a_loop_frees_what_is_allocated_anew(tmp_path, resets, saves):
    log = tmp_path / "log.txt"
    reset = f"                    5.00%  2.10000s       {resets}  10.000ms  1.9000us  33.345ms  cudaDeviceReset\n"
    log.write_text(
        f"==1== Profiling application: ./a\n==1== Profiling result:\n{SUMMARY}"
        " GPU activities:  100.00%  3.00000s      1680  814.13us  185.02us  2.2629ms  k(float *)\n"
        f"      API calls:   30.00%  8.80000s      1080  8.1203ms  1.8000us  100.00ms  cudaMalloc\n{reset * bool(resets)}"
        "                   60.00%  9.00000s      1680  5.3571ms  1.8000us  6.0000ms  cudaDeviceSynchronize\n"
    )
    acts = [change for change in levers(view_of(log)) if change.act.startswith("reset the device once, at the end")]
    assert [change.saves for change in acts] == ([pytest.approx(saves, rel=1e-4)] if saves else [])


def test_instances_of_one_template_are_begun_with_together_as_large_as_their_rows_are(tmp_path):
    """Of 17.5 s, in 0.5 of which no kernel ran; instances of a library's template stay apart."""
    log = tmp_path / "log.txt"
    names = ["void update<bool=0>(int)", "void update<bool=1>(int)", "void cub::scan<int=0>(int)", "void other(int)"]
    rows = "".join(f"   25.00%  {4 + (name[5] == 'u') / 2:.5f}s      1000  4ms  4ms  4ms  {name}\n" for name in names)
    log.write_text(
        f"==1== Profiling result:\n{SUMMARY} GPU activities:   {rows.strip()}\n"
        "      API calls:   99.00%  17.5000s      9999  1.7500ms  2.0000ms  2.1000ms  cudaLaunchKernel\n"
    )
    tried = what_to_try(view_of(log)).text.replace("\u202f", " ")
    assert "begin with the 2 instances of update, 51 % of the time" in tried


@pytest.mark.parametrize("last", ["inner", "outer"])
@pytest.mark.parametrize("range_ms", [0, 50, 900])
def test_ranges_that_the_program_names_bound_how_long_no_kernel_ran(tmp_path, range_ms, last):
    """Calls of 100 ms, 10 of them kernels'; ranges (NVTX) that take longer tell how long, and the inner one where."""
    log = tmp_path / "log.csv"

    def table(number, names, *rows):
        head = f"Time (%),Total Time (ns),{number},Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),{names}\n"
        told = ((f"{ms * 10**6}", "1", *[f"{ms * 10**6}"] * 4, "0.0", name) for ms, name in rows)
        return head + "".join(f"{100 / len(rows):.1f},{','.join(row)}\n" for row in told) + "\n"

    names = {"inner": range_ms * 0.9, "outer": range_ms}
    ranges = [(int(names[name]), f"PushPop,:{name}") for name in sorted(names, key=lambda name: name == last)]
    log.write_text(
        table("Instances", "Style,Range", *ranges[: 2 * bool(range_ms)])
        + table("Num Calls", "Name", (100, "cudaFree"))
        + table("Instances", "Name", (10, "k(float *)"))
    )
    idle = eprof.load(log, cache=False).idle
    assert idle.time_s == pytest.approx(max(range_ms, 100) / 1e3 - 0.01) == idle.surely_s
    assert [doing.doing for doing in idle.during if "range" in doing.doing] == ["range inner"] * (range_ms > 100)
    assert ("one range outer" in headline(view_of(log)).text) == (range_ms > 100)


@pytest.mark.parametrize(
    ("setup_ms", "instances", "comes_again", "is_once"),
    [(90, 1, True, True), (90, 3, True, False), (98.5, 1, True, False), (98.5, 1, False, True)],
)
def test_a_range_that_starts_cuda_is_paid_once(setup_ms, instances, comes_again, is_once):
    """Of 100 ms the range of the setup holds the first call, of 20 ms, and no kernels where the rest has room for them.

    Where no kernel comes again, nothing else does either.
    """
    calls = [
        HostCalls.of_run("cudaMalloc", 2, 0.021, 0.020),
        HostCalls("range main", 1, 0.1, 0.1, is_range=True),
        HostCalls("range setup", instances, 1e-3 * setup_ms, 1e-3 * setup_ms, is_range=True),
    ]
    told = idle_of_calls(calls, 0.002, 0.0, comes_again)
    assert told.first_s == pytest.approx(0.098 if is_once else 0.020)
    assert ("range setup" in [call.name for call in told.calls]) == is_once


def test_a_summary_without_the_longest_calls_tells_no_least_time(tmp_path):
    (tmp_path / "log.txt").write_text(
        "==1== Profiling result:\n"
        "            Type  Time(%)      Time     Calls       Avg  Name\n"
        " GPU activities:  100.00%  1.0000ms        10  100.00us  axpy(int)\n"
        "      API calls:   80.00%  8.0000ms        20  400.00us  cudaMemcpy\n"
        "                   20.00%  2.0000ms        20  100.00us  cudaFree\n"
    )
    view = view_of(tmp_path / "log.txt")
    assert view.document.gaps.surely_s == 0 and [call.longest_s for call in view.document.gaps.calls] == [0, 0]
    assert "No kernel ran for up to 9.00\u202fms" in headline(view).text


@pytest.mark.parametrize(
    ("copies", "shortest", "is_again"), [(4, "0.5000ms", False), (4, "0.9000ms", True), (40, "0.5000ms", True)]
)
def test_few_copies_of_unlike_size_are_of_buffers_of_their_own(tmp_path, copies, shortest, is_again):
    (tmp_path / "log.txt").write_text(
        "==1== Profiling result:\n"
        "            Type  Time(%)      Time     Calls       Avg       Min       Max  Name\n"
        f" GPU activities:   80.00%  4.0000ms        {copies:2}  1.0000ms  {shortest}  1.5000ms  [CUDA memcpy HtoD]\n"
        "                   20.00%  1.0000ms         9  111.11us  111.11us  111.11us  axpy(int)\n"
    )
    assert ("keep data on the GPU" in what_to_try(view_of(tmp_path / "log.txt")).text) == is_again


@needs_data
def test_barriers_hold_back_a_kernel_whose_busiest_unit_is_no_busier_than_it_issues():
    """A unit that is busy 61 % of the time leaves the cycles in which nothing is issued: at most so much is saved."""
    view = view_of("ncu-modern", "rtx3070-scan.ncu-rep")
    (kernel,) = (kernel for kernel in view.kernels if "barrier_stall" in kernel.signs)
    kernel.signs.update(sm_busy=0.61, l1_busy=0.56, issue_busy=0.63, barrier_stall=0.55)
    (change,) = (change for change in levers(view) if "barriers" in change.act)
    assert change.most == pytest.approx(0.37 * view.timed(kernel)) and "in every cycle" in change.why
    kernel.signs["barrier_stall"] = 0.45
    assert not any("barriers" in change.act for change in levers(view)), "others wait for something else"


@needs_data
def test_copies_on_streams_are_split_further_and_pinning_is_told_by_its_end():
    """Of three streams the second copy begins at 666.80 ms, before the first has ended (663.64 + 5.43 = 669.08).

    cudaFreeHost of one cudaMallocHost takes 142 ms of 791: the start of CUDA has no such end.
    """
    acts = [change.act for change in levers(view_of("nvprof", "gtx950-gpu-trace-three-streams.csv"))]
    assert "copy while kernels run, in smaller pieces" in acts
    tried = what_to_try(view_of("ncu", "nsys-text-stats-thousands.txt")).text
    pinned = "791\u202fms of it in cudaMallocHost; it pins much memory of the host, which takes 142\u202fms to free"
    assert pinned in tried and "starts CUDA" not in tried


@needs_data
def test_ranges_of_the_program_that_cover_no_gap_are_told_by_their_parts_of_it():
    """Four gaps of 234 to 253 ms: MPI_Recv 36.00 + 18.99 + 12.46 + 17.30 ms in them, MPI_Send twice some 11.1 in each.

    The first two of MPI_Send, and the last MPI_Recv, are before the first kernel and after the last.
    """
    view = view_of("traces", "nsys", "pipit-saxpy-mpi-rank0.sqlite")
    received_s = 1e-3 * (35.998435 + 18.993031 + 12.461345 + 17.295373)
    told = {each.doing: (each.gaps, each.time_s) for each in view.document.gaps.during}
    assert told["MPI_Recv"] == (4, pytest.approx(received_s, rel=1e-6)) and told["MPI_Send"][0] == 8
    assert "in gaps, of these 88.9\u202fms in MPI_Send and 84.7\u202fms in MPI_Recv: do that" in what_to_try(view).text


def trace_of(tmp_path, rows):
    head = "Start (ns),Duration (ns),CorrId,Device,Strm,Name\n"
    path = tmp_path / "trace.csv"
    path.write_text(
        head + "".join(f"{start},{time},1,A100-SXM4-40GB ({gpu}),{7 + gpu},{name}\n" for start, time, gpu, name in rows)
    )
    return eprof.load(path, cache=False).energy("a100")


def test_kernels_that_run_at_a_time_share_constant_power(tmp_path):
    """Two of 10 ms begin 1 ms apart, so one or both run for 11 ms; the third, of 4 ms, is alone: 24 ms in 15 ms."""
    start = 1_000_000_001
    rows = [
        (start, 10_000_000, 0, "gemm"),
        (start + 1_000_000, 10_000_000, 0, "nccl"),
        (start + 12_000_000, 4_000_000, 0, "add"),
    ]
    energy = trace_of(tmp_path, rows)
    alone = trace_of(tmp_path, [(start, 15_000_000, 0, "gemm")])
    assert energy.energy_j == pytest.approx(alone.energy_j, rel=1e-6)
    assert energy.time_s == pytest.approx(0.024), "the time of a kernel is its own"
    constant = energy.split.joule_marks["constant"]
    assert (constant & int(Mark.ESTIMATED)).all(), "a kernel's share is by its time alone"
    for label in ("0", None):  # a database tells the GPU's number, and some traces nothing
        told = replace(energy.profile, kernels_s=tuple((label, *times) for _, *times in energy.profile.kernels_s))
        assert told.at_once == pytest.approx(1.6, rel=1e-6)
    assert energy.limits.total_j == pytest.approx(alone.limits.total_j, rel=1e-6)
    view = View(document(energy))
    assert view.document.power_w == pytest.approx(energy.energy_j / 0.015), (
        "of the GPU, in the 15 ms in which it worked"
    )
    assert "1.6 kernels ran at a time on average, and share constant power" in trust(view).text
    (tmp_path / "saved.json").write_bytes(export.to_json(view.document))
    again = eprof.load(tmp_path / "saved.json").energy("a100")
    assert again.energy_j == pytest.approx(energy.energy_j)


def test_what_runs_on_another_gpu_shares_nothing(tmp_path):
    rows = [(1_000_000_001, 10_000_000, gpu, "gemm") for gpu in (0, 1)]
    alone = trace_of(tmp_path, rows[:1])
    assert trace_of(tmp_path, rows).energy_j == pytest.approx(2 * alone.energy_j)


@pytest.mark.parametrize(("digits", "at_once"), [(1, 320 / 203), (10_000, 1.0)])
def test_starts_that_are_rounded_tell_no_kernels_at_a_time(tmp_path, digits, at_once):
    """40 launches of 8 us, 5 us apart, take 320 us in 39 x 5 + 8 = 203 us; rounded to 10 us they may be of one stream."""
    starts = [round((1_000_003_001 + 5_000 * number) / digits) * digits for number in range(40)]
    energy = trace_of(tmp_path, [(start, 8_000, 0, "add") for start in starts])
    assert energy.costs.at_once == pytest.approx(at_once, rel=0.01)

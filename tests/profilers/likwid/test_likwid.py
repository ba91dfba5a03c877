"""Tables of likwid-perfctr: real ones, made ones in both forms, and what may go wrong with them."""

import csv as csv_module
import gzip
import math
from collections import defaultdict

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import example, given, settings
from hypothesis import strategies as st
from likwid_support import csv, text

import eprof
from eprof import logs
from eprof.base.errors import EprofError, LogError
from eprof.base.vocabulary import Mark
from eprof.commands.report.advice import what_to_try
from eprof.commands.report.advice.collecting import how_to_count
from eprof.commands.report.advice.loops import fewer_cycles
from eprof.commands.report.view import View
from eprof.counts.definition_files import find
from eprof.logs.log import JOULE, NOT_ALL
from eprof.readers.cells import is_wrapped

CPU = SHARED / "cpu"
READABLE = sorted(CPU.glob("likwid-[ct]*"))
needs_data = pytest.mark.skipif(not READABLE, reason="needs ../shared/data")
FP64 = (
    ("FP_ARITH_INST_RETIRED_128B_PACKED_DOUBLE", 2),
    ("FP_ARITH_INST_RETIRED_SCALAR_DOUBLE", 1),
    ("FP_ARITH_INST_RETIRED_256B_PACKED_DOUBLE", 4),
    ("FP_ARITH_INST_RETIRED_512B_PACKED_DOUBLE", 8),
)


@pytest.fixture
def load(tmp_path):
    """The profile of texts, a file each."""

    def loading(*texts):
        paths = [tmp_path / f"likwid-{number}.csv" for number in range(len(texts))]
        for path, each in zip(paths, texts, strict=True):
            path.write_text(each)
        return eprof.load(*paths)

    return loading


def counted(profile, word, books="accessed"):
    """Each kernel's count, and its mark."""
    counts = profile.counts(books)
    marks = [Mark(int(mark)) for mark in counts.marks[word]]
    return dict(zip(counts.rows.kernel, zip(counts.table[word], marks, strict=True), strict=True))


def raw(profile, counter):
    """A counter of each region."""
    launches = profile.counted[0].launches
    return dict(zip(launches.rows.kernel, launches.counters[counter], strict=True))


# ------------------------------------------------------------------------------------------------------- real machines


@needs_data
def test_a_program_on_sapphire_rapids_counts_to_six_digits_and_is_priced_as_an_i7_950():
    profile = eprof.load(CPU / "likwid-csv-xeon-8468-avx512.csv")
    (device,) = [part.device for part in profile.counted]
    assert (device.name, device.capability) == ("Intel(R) Xeon(R) Platinum 8468", "sapphirerapids")
    assert raw(profile, "INSTR_RETIRED_ANY") == {"whole program": 788523104678}
    assert profile.counted[0].launches.rows.time_s == pytest.approx([100.103], rel=1e-5)
    (number, mark) = counted(profile, "fp64")["whole program"]
    assert (number, mark) == (5 * 2 + 1350006895 + 7 * 4 + 846056250137 * 8, Mark(0))
    energy = profile.energy(costs="i7-950")
    assert energy.split.total_j.sum() == pytest.approx(number * 670e-12 + 122 * 100.1028, rel=1e-9)
    assert any("the counts are from Intel(R) Xeon(R) Platinum 8468" in each for each in energy.warnings)


@needs_data
def test_groups_of_three_runs_are_joined_by_region():
    profile = eprof.load(*sorted(CPU.glob("likwid-csv-i5-7500-*")))
    assert [part.device.capability for part in profile.counted] == ["skylake"]
    fp64, l3_read, l3_write = (counted(profile, word) for word in ("fp64", "l3_read", "l3_write"))
    assert fp64["multMatMat_NAO_OTIM"] == (4194314, Mark(0)), "256^2 x 64 additions and multiplications, and a few"
    assert l3_read["multMatMat_NAO_OTIM"] == (64 * 760032, Mark(0))
    assert l3_write["multMatVet_COM_OTIM"] == (64 * 233, Mark(0))
    rows = profile.counted[0].launches.rows
    times = dict(zip(rows.kernel, rows.time_s, strict=True))
    assert times["multMatVet_NAO_OTIM"] == 1.546768e-05, "the table with most digits"


@needs_data
def test_152_regions_with_their_calls():
    profile = eprof.load(CPU / "likwid-csv-i3-7100u-l3.csv")
    rows = profile.counted[0].launches.rows
    assert len(rows) == 152
    assert dict(zip(rows.kernel, rows.launches, strict=True))["Tderi_grad_Padrao_NOpt_10"] == 50
    # 38 regions T_Newton hold three others each; the largest: 1019.984 s, of which 1019.939 s are those of its three.
    times = dict(zip(rows.kernel, rows.time_s, strict=True))
    assert times["T_Newton_Padrao_NOpt_4096"] == pytest.approx(0.045123, abs=1e-5)
    assert times["T_Sist_Lin_Padrao_NOpt_4096"] == 951.8742
    assert any("T_Newton_" in note and "held other regions" in note for log in profile.logs for note in log.notes)


def of_regions(*regions):
    """A run with regions: their name, seconds, and what each of two threads executed, from a hundred instructions on."""
    log = ""
    for name, seconds, executed in regions:
        cycles = [2 * number for number in executed]
        events = [("INSTR_RETIRED_ANY", "FIXC0", executed), ("CPU_CLK_UNHALTED_CORE", "FIXC1", cycles)]
        log += csv("L3", events, name, 2, seconds)
    return log


LEAVES = (("solve", 8.0, [700, 0]), ("init", 1.0, [103, 7]), ("io", 0.9, [193, 3]))


@pytest.mark.parametrize(
    ("regions", "total", "said"),
    [
        ((("all", 10.0, [1000, 10]), *LEAVES), 1010, "all held other regions"),
        ((*LEAVES, ("all", 10.0, [1000, 10])), 1010, "all held other regions"),
        (
            (("outer", 11.0, [1210, 10]), ("all", 10.0, [1000, 10]), *LEAVES, ("last", 1.0, [200, 0])),
            1220,
            "held other regions",
        ),
        # On its first thread it counts less than they do; it has half of its instructions alone; it is as large as one.
        ((("all", 10.0, [990, 20]), *LEAVES), 2016, "lies inside of"),
        ((("all", 10.0, [2000, 10]), *LEAVES), 3016, "lies inside of"),
        ((("one", 8.0, [700, 0]), ("solve", 8.0, [700, 0])), 1400, "lies inside of"),
    ],
)
def test_what_lies_in_other_regions_counts_once(tmp_path, regions, total, said):
    path = tmp_path / "regions.csv"
    path.write_text(of_regions(*regions))
    profile = eprof.load(path)
    assert sum(counted(profile, "retired")[name][0] for name, *_ in regions) == total
    (notes,) = (log.notes for log in profile.logs)
    assert any(said in note for note in notes), notes


@needs_data
def test_lines_that_likwid_hardly_sees_of_a_zen_2_are_no_count():
    profile = eprof.load(CPU / "likwid-text-epyc7702-mem.out")
    for word in ("dram_read", "fp64"):  # of the 100 GB that the log says were moved 59 MB were seen
        number, mark = counted(profile, word)["whole program"]
        assert math.isnan(number) and mark == Mark.MISSING


@pytest.mark.parametrize("channels", [2, 4])
def test_channels_of_a_zen_2_are_counted_as_a_lower_bound(load, channels):
    cpu = "AMD EPYC 7702 64-Core Processor"
    events = [(f"DRAM_CHANNEL_{number}", f"DFC{number}", [10 + number]) for number in range(channels)]
    group = csv("MEM", [("RETIRED_INSTRUCTIONS", "PMC0", [9]), *events], cpu=cpu)
    assert counted(load(group), "dram") == {
        "whole program": (64 * sum(10 + number for number in range(channels)), Mark.MISSING)
    }


@needs_data
def test_haswell_counts_lines_and_no_operations():
    profile = eprof.load(CPU / "likwid-text-e5-2650v3-l3.out")
    assert counted(profile, "l3_read") == {"whole program": (64 * 694247989, Mark(0))}
    assert "Broadwell is the first" in find("likwid", "haswell").uncountable["fp64"]


ABOUT = "CPU name:\tIntel(R) Core(TM) i3-2120 CPU @ 3.30GHz\nCPU type:\tIntel Core SandyBridge processor\n"


@pytest.mark.parametrize(
    ("said", "cause", "remedy"),
    [
        (
            "ERROR - [/src/perfgroup.c:perfgroup_readGroup:830] No such file or directory.\nCannot read group file "
            "MEM_DP.txt. Searched in /usr/share/likwid/perfgroups/arm8/MEM_DP.txt\nAccess to performance group MEM_DP "
            "not allowed\n",
            "LIKWID has no group MEM_DP for this CPU",
            "`likwid-perfctr -a` lists those",
        ),
        ("Cannot read group file /root/.likwid/groups/arm8/L3.txt\n", "LIKWID has no group L3", "likwid-perfctr -a"),
        (
            "Cannot use performance monitoring with perf_event_paranoid = 4\n",
            "kernel.perf_event_paranoid is 4",
            "run as root",
        ),
        ("Failed to execute the daemon '/usr/sbin/likwid-accessD'\n", "could not reach the counters", "modprobe msr"),
        (
            "ERROR: x\nAccess to performance group MEM not allowed\n",
            "may not read what group MEM counts",
            "run as root",
        ),
        ("|  Metric  |  Core 0 |\n|  CPI  |  4.82 |\n", "metrics, without the table of events", "whole output"),
        ("Metric,HWThread 0\nCPI,4.82\n", "metrics, without the table of events", "whole output"),
        ("# Cores: 3\n# GID|MetricsCount|CpuCount|CPI\n1 1 1 0.5 4.8\n", "metrics over time", "without -t"),
    ],
)
def test_why_likwid_counted_nothing_is_said_with_what_to_do(tmp_path, said, cause, remedy):
    for before in ("", ABOUT):
        (tmp_path / "likwid.txt").write_text(before + said)
        with pytest.raises(LogError) as caught:
            logs.read(tmp_path / "likwid.txt")
        assert cause in str(caught.value) and remedy in str(caught.value)


@needs_data
def test_what_holds_no_counts_is_refused_in_a_sentence():
    with pytest.raises(LogError, match="messages of LIKWID and no counts"):
        logs.read(CPU / "likwid-err-paranoid.err")


@pytest.mark.parametrize("columns", ["HWThread 0", "Core 0", "Sum    |  Min  |  Max"])
def test_metrics_alone_are_refused_in_a_sentence(tmp_path, columns):
    table = f"what came out:\n\n+---+---+\n|      Metric      |   {columns}   |\n+---+---+\n| DP [MFLOP/s] STAT | 5.5 | 5 | 6 |\n"
    (tmp_path / "log.md").write_text(table)
    with pytest.raises(LogError, match="LIKWID's metrics, without the table of events .* give its whole output"):
        logs.read(tmp_path / "log.md")


@needs_data
@settings(deadline=None)
@given(st.sampled_from(READABLE), st.integers(min_value=0), st.sampled_from([b"", b"\xff\0|", b",,,\n", b"|||\n"]))
def test_a_log_cut_anywhere_is_read_or_refused_in_a_sentence(tmp_path_factory, path, place, rest):
    data = path.read_bytes()[:6000]
    cut = tmp_path_factory.getbasetemp() / "cut.csv"
    cut.write_bytes(data[: place % len(data)] + rest)
    try:
        eprof.load(cut)
    except EprofError as error:
        assert "\n" not in str(error)


# ------------------------------------------------------------------------------------------------------ made by the rules

MEMORY = [
    ("INSTR_RETIRED_ANY", "FIXC0", [1000, 3000]),
    ("PWR_PKG_ENERGY", "PWR0", [99.4171, 0]),
    ("PWR_DRAM_ENERGY", "PWR3", [12.8004, "-"]),
    ("CAS_COUNT_RD", "MBOX0C0", [10, 0]),
    ("CAS_COUNT_WR", "MBOX0C1", [3, 0]),
    ("CAS_COUNT_RD", "MBOX1C0", [20, "-"]),
    ("CAS_COUNT_WR", "MBOX1C1", [4, 0]),
]


@pytest.mark.parametrize("write", [csv, text])
def test_threads_and_channels_are_added_up_and_energy_is_measured(load, write):
    profile = load(write("MEM", MEMORY, "solve", threads=2, seconds=3.215063, calls=2))
    assert raw(profile, "INSTR_RETIRED_ANY") == {"solve": 4000}
    assert counted(profile, "dram_read") == {"solve": (64 * 30, Mark(0))}
    assert counted(profile, "dram_write") == {"solve": (64 * 7, Mark(0))}
    launches = profile.counted[0].launches
    assert (launches.rows.launches[0], launches.rows.time_s[0]) == (2, 3.215063)
    assert launches.units["processor packages and DRAM"] == JOULE
    assert launches.energy_j() == {"processor packages and DRAM": pytest.approx(112.2175)}


@pytest.mark.parametrize(("seconds", "cores"), [(1.0, 2.0), (10.0, 0.2)])
def test_threads_that_idle_keep_no_cores_busy(load, seconds, cores):
    """Two threads alike: of 2 GHz in one second both were busy, in ten both slept."""
    counts = [("INSTR_RETIRED_ANY", "FIXC0", [9, 9]), ("CPU_CLK_UNHALTED_CORE", "FIXC1", [3e9, 3e9])]
    log = csv("L3", [*counts, ("CPU_CLK_UNHALTED_REF", "FIXC2", [2e9, 2e9])], threads=2, seconds=seconds)
    assert load(log.replace("CPU type:", "CPU clock:,2.0 GHz,,,\nCPU type:")).cpu_use.cores == pytest.approx(cores)
    assert load(log).cpu_use.cores == pytest.approx(2.0)


@pytest.mark.parametrize("write", [csv, text])
def test_cycles_of_0_beside_others_were_not_counted(load, write):
    """Fixed counters of a Zen that stood still; a program of no instructions at all has cycles of 0."""
    zen = "AMD EPYC 7742 64-Core Processor"
    still = [("ACTUAL_CPU_CLOCK", "FIXC1", [0, 0]), ("MAX_CPU_CLOCK", "FIXC2", [0, 0])]
    counts = [*still, ("RETIRED_INSTRUCTIONS", "PMC0", [4000, 6000]), ("CPU_CLOCKS_UNHALTED", "PMC1", [1000, 2000])]
    profile = load(write("L2", counts, threads=2, seconds=3.0, cpu=zen))
    assert counted(profile, "core_active") == {"whole program": (3000, Mark(0))}
    assert counted(profile, "retired") == {"whole program": (10_000, Mark(0))}
    assert profile.cpu_use.cores == pytest.approx(1.5)
    none = [*still, ("RETIRED_INSTRUCTIONS", "PMC0", [0, 0])]
    assert counted(load(write("L2", none, threads=2, seconds=3.0, cpu=zen)), "core_active")["whole program"][0] == 0


@pytest.mark.parametrize("write", [csv, text])
def test_cycles_of_a_zen_are_those_that_are_counted_beside_its_instructions(load, write):
    """The fixed counter runs on while LIKWID reads the others: CPI, too, is of the cycles of the core's own counter."""
    counts = [("ACTUAL_CPU_CLOCK", "FIXC1", [160_000]), ("RETIRED_INSTRUCTIONS", "PMC0", [7000])]
    counts += [("CPU_CLOCKS_UNHALTED", "PMC1", [20_000])]
    profile = load(write("L3", counts, "solve", seconds=4e-4, cpu="AMD Ryzen 7 3700X 8-Core Processor"))
    assert counted(profile, "core_active") == {"solve": (20_000, Mark(0))}
    tried = what_to_try(View(profile.energy().document())).text
    assert tried.startswith("repeat the work") and tried.endswith("counted are too short to tell")


events = st.dictionaries(
    st.sampled_from([name for name, _ in FP64]), st.lists(st.integers(0, 10**14), min_size=2, max_size=2)
)  # below what looks like a counter that wrapped


@given(events.filter(bool), st.floats(1e-5, 1e5), st.sampled_from([None, "solve", "a, b: c"]))
@example({"FP_ARITH_INST_RETIRED_SCALAR_DOUBLE": [0, 0]}, 1.0, None)
def test_csv_and_text_tell_the_same(tmp_path_factory, counts, seconds, region):
    table = [(event, f"PMC{number}", values) for number, (event, values) in enumerate(counts.items())]
    path = tmp_path_factory.getbasetemp() / "both.csv"
    tables = []
    for write in (csv, text):
        path.write_text(write("FLOPS_DP", table, region, threads=2, seconds=seconds))
        tables += logs.read(path).tables
    for read in tables:
        assert read.rows.kernel.names == (region or "whole program",)
        assert read.rows.time_s == pytest.approx([seconds], abs=1e-4, rel=1e-6)
        assert dict(zip(read.counters.names, read.counters.values[0], strict=True)) == {
            event: sum(values) for event, values in counts.items()
        } | {"cores in use": 2.0}


@given(st.lists(st.integers(0, 10**12), min_size=4, max_size=4))
def test_operations_are_lanes_times_instructions(tmp_path_factory, numbers):
    table = [
        (event, f"PMC{place}", [number]) for place, ((event, _), number) in enumerate(zip(FP64, numbers, strict=True))
    ]
    path = tmp_path_factory.getbasetemp() / "flops.csv"
    path.write_text(csv("FLOPS_DP", table, seconds=1.0))
    operations = sum(lanes * number for (_, lanes), number in zip(FP64, numbers, strict=True))
    assert counted(eprof.load(path), "fp64") == {"whole program": (operations, Mark(0))}


def test_operations_over_bytes_are_the_intensity(load):
    slots = [(event, f"PMC{place}", [1000]) for place, (event, _) in enumerate(FP64)]
    singles = [(event.replace("DOUBLE", "SINGLE"), slot, [10]) for event, slot, _ in slots]
    lines = [("CAS_COUNT_RD", "MBOX0C0", [20]), ("CAS_COUNT_WR", "MBOX0C1", [5])]
    document = load(csv("MEM_DP", slots + singles + lines, seconds=1.0)).energy(costs="i7-950").document()
    assert document["counts"]["fp64"]["unit"] == "flop"
    assert document["intensity_flop_per_byte"] == (15 * 1000 + 29 * 10) / (64 * 25)


@pytest.mark.parametrize("indent", ["", "    "])
def test_titles_of_likwid_4_0_name_the_region_last_and_may_be_indented(load, indent):
    log = text("L3", [("INSTR_RETIRED_ANY", "FIXC0", [4000])], "solve", seconds=0.25, calls=3)
    old = log.replace("Region solve, Group 1: L3", "Group 1 L3: Region solve")
    profile = load("".join(indent + line for line in old.splitlines(keepends=True)))
    assert raw(profile, "INSTR_RETIRED_ANY") == {"solve": 4000}
    rows = profile.counted[0].launches.rows
    assert (rows.launches[0], rows.time_s[0]) == (3, 0.25)


def test_a_run_that_stands_below_another_adds_up(load):
    first = csv("FLOPS_DP", [("FP_ARITH_INST_RETIRED_SCALAR_DOUBLE", "PMC1", [100])], "solve", seconds=1.0)
    second = csv("FLOPS_DP", [("FP_ARITH_INST_RETIRED_SCALAR_DOUBLE", "PMC1", [11])], "solve", seconds=0.5)
    profile = load(first + second)
    assert raw(profile, "FP_ARITH_INST_RETIRED_SCALAR_DOUBLE") == {"solve": 111}
    rows = profile.counted[0].launches.rows
    assert (rows.launches[0], rows.time_s[0]) == (2, 1.5)


def test_counters_of_every_group_do_not_add_up_over_groups(load):
    instructions = ("INSTR_RETIRED_ANY", "FIXC0", [5000])
    flops = csv(
        "FLOPS_DP", [instructions, ("FP_ARITH_INST_RETIRED_SCALAR_DOUBLE", "PMC1", [100])], "solve", seconds=1.0
    )
    lines = csv("L3", [instructions, ("L2_LINES_IN_ALL", "PMC0", [7])], "solve", seconds=1.001)
    for texts in ([flops, lines], [flops + lines]):
        profile = load(*texts)
        assert raw(profile, "INSTR_RETIRED_ANY") == {"solve": 5000}
        assert counted(profile, "l3_read")["solve"] == (64 * 7, Mark(0))
        assert profile.counted[0].launches.rows.time_s == [1.001]
        assert not profile.warnings


def test_groups_that_were_counted_in_turn_are_lower_bounds_over_the_time_of_all(load):
    first = csv("L3", [("L2_LINES_IN_ALL", "PMC0", [7])], seconds=3.0)
    second = csv("L2", [("L1D_REPLACEMENT", "PMC0", [9])], seconds=2.0, number=2)
    profile = load(first + second)
    assert profile.counted[0].launches.rows.time_s == [5.0]
    assert counted(profile, "l3_read")["whole program"] == (64 * 7, Mark.MISSING)
    assert any("in turn" in note for note in profile.logs[0].notes)


@pytest.mark.parametrize(("others", "joules"), [([("PWR_PKG_ENERGY", "PWR0", [20])], 30.5), ([], None)])
def test_joules_of_groups_counted_in_turn_add_up_or_are_left_out(load, others, joules):
    first = csv("L3", [("L2_LINES_IN_ALL", "PMC0", [7]), ("PWR_PKG_ENERGY", "PWR0", [10.5])], seconds=3.0)
    second = csv("L2", [("L1D_REPLACEMENT", "PMC0", [9]), *others], seconds=2.0, number=2)
    assert load(first + second).energy("i7-950").measured_j == joules


def test_a_table_that_lacks_rows_is_a_lower_bound(load):
    whole = csv("L3", [("L2_LINES_IN_ALL", "PMC0", [7]), ("L2_TRANS_L2_WB", "PMC1", [8])])
    for cut in (whole[: whole.index("L2_TRANS")], whole[:-6]):
        profile = load(cut)
        assert counted(profile, "l3_read")["whole program"] == (64 * 7, Mark.MISSING)
        assert np.isnan(counted(profile, "l3_write")["whole program"][0])


@pytest.mark.parametrize(("table", "mark"), [("Event", Mark.MISSING), ("Metric", Mark(0))])
def test_a_row_that_lost_its_end_lacks_counts_unless_it_is_a_metrics(load, table, mark):
    log = text("L3", [("L2_LINES_IN_ALL", "PMC0", [7])], region="sort", seconds=2.0)
    header = next(line for line in log.split("\n") if table in line)
    profile = load(log.replace(header, header[:-12] + "\n\n" + header[-12:]) + log.replace("sort", "merge"))
    assert counted(profile, "l3_read")["merge"] == (64 * 7, mark)


def test_counts_that_perf_event_scaled_are_estimated(load):
    warning = "WARN: Perf_event uses multiplexing. Raw event results are scaled to an estimated value.\n"
    profile = load(warning + text("L3", [("L2_LINES_IN_ALL", "PMC0", [7])]))
    assert counted(profile, "l3_read")["whole program"] == (64 * 7, Mark.ESTIMATED)


@pytest.mark.parametrize("form", [csv, text])
@pytest.mark.parametrize("broken", ["nan", "inf", "-nan", "1e400"])
def test_a_sum_that_lacks_a_thread_is_a_lower_bound(load, form, broken):
    events = [("L2_LINES_IN_ALL", "PMC0", [7, broken, 5]), ("L2_TRANS_L2_WB", "PMC1", [8, 1, 2])]
    profile = load(form("L3", events, threads=3))
    assert counted(profile, "l3_read")["whole program"] == (64 * 12, Mark.MISSING)
    assert counted(profile, "l3_write")["whole program"] == (64 * 11, Mark(0)), "the other event is whole"
    assert any("L2_LINES_IN_ALL" in note and "lower bound" in note for log in profile.logs for note in log.notes)


def test_threads_that_do_not_read_a_counter_of_their_socket_are_no_loss(load):
    profile = load(csv("MEM", [("CAS_COUNT_RD", "MBOX0C0", [7, "-", "", 0])], threads=4))
    assert raw(profile, "CAS_COUNT_RD") == {"whole program": 7}
    assert not any("lower bound" in note for log in profile.logs for note in log.notes)


def test_joules_that_lack_a_socket_are_not_known(load):
    events = [("L2_LINES_IN_ALL", "PMC0", [7, 1]), ("PWR_PKG_ENERGY", "PWR0", [20.5, "nan"])]
    assert load(csv("L3", events, threads=2, seconds=2.0)).energy("i7-950").measured_j is None


def test_tables_of_statistics_and_of_gpus_are_not_read(load):
    threads = text("L3", [("L2_LINES_IN_ALL", "PMC0", [7, 8])], "solve", threads=2, seconds=1.0)
    profile = load(
        threads + text("L3", [("L2_LINES_IN_ALL", "GPU0", [9])], "on the GPU", seconds=1.0).replace("HWThread", "GPU")
    )
    assert raw(profile, "L2_LINES_IN_ALL") == {"solve": 15}


def test_a_cpu_that_its_name_does_not_tell_goes_by_its_type(load):
    profile = load(csv("L3", [("L2_LINES_IN_ALL", "PMC0", [7])], cpu="Genuine Intel(R) CPU 0000%@"))
    (device,) = [part.device for part in profile.counted]
    assert device.name == "Genuine Intel(R) CPU 0000%@, Intel Skylake SP processor"
    assert device.capability == "skylake-sp"


def test_operations_of_zen_4_are_of_the_type_that_the_user_says(tmp_path):
    path = tmp_path / "zen4.csv"
    events = [
        ("RETIRED_SSE_AVX_FLOPS_ALL", "PMC2", [1000]),
        ("CAS_CMD_RD", "UMC0C0", [5]),
        ("CAS_CMD_RD", "UMC1C0", [6]),
    ]
    path.write_text(csv("Custom", events, cpu="AMD EPYC 9654 96-Core Processor"))
    told = eprof.load(path)
    assert np.isnan(counted(told, "fp64")["whole program"][0])
    assert any("flops of a type that" in note and "zen4-" in note for note in told.energy().warnings)
    assert counted(told, "dram_read")["whole program"] == (64 * 11, Mark(0))
    for kind, other in (("fp64", "fp32"), ("fp32", "fp64")):
        profile = eprof.load(path, capability=f"zen4-{kind}")
        assert counted(profile, kind)["whole program"] == (1000, Mark.ASSUMED)
        assert counted(profile, f"{other}_add")["whole program"] == (0, Mark(0))


@pytest.mark.parametrize("group", ["FLOPS_SP", "MEM_SP", "FLOPS_DP", "MEM_DP"])
def test_operations_of_a_zen_are_of_the_type_that_likwids_group_is_of(load, group):
    flops = ("RETIRED_SSE_AVX_FLOPS_ALL", "PMC2", [1000])
    of_zen = {"cpu": "AMD EPYC 7402 24-Core Processor", "seconds": 1.0}
    both = [group, group[:-2] + {"SP": "DP", "DP": "SP"}[group[-2:]]]
    kind, other = {"SP": ("fp32", "fp64"), "DP": ("fp64", "fp32")}[group[-2:]]
    profile = load(csv(group, [flops], **of_zen))
    assert counted(profile, kind)["whole program"] == (1000, Mark.ASSUMED)
    assert counted(profile, other)["whole program"] == (0, Mark.ASSUMED)
    # Who counted by both groups has the same flops twice, of a type that nothing tells.
    profile = load("".join(csv(each, [flops], **of_zen) for each in both))
    assert np.isnan(counted(profile, "fp32")["whole program"][0])


def test_without_cycles_each_thread_is_a_core_and_loads_without_stores_are_a_lower_bound(load):
    """In a group of the user's own, without cycles, whose time is an event."""
    rows = [("Runtime (RDTSC) [s]", "TSC", [0.375, 0.125]), ("LS_DISPATCH_LOADS", "PMC0", [3000, 5000])]
    profile = load(csv("Custom", rows, threads=2, cpu="AMD EPYC 7402 24-Core Processor"))
    assert (profile.cpu_use.cores, profile.counted[0].launches.rows.time_s[0]) == (2.0, 0.375)
    assert counted(profile, "load_store")["whole program"] == (8000, Mark.MISSING | Mark.ESTIMATED)
    assert not any("not used" in note for note in profile.warnings)


# ------------------------------------------------------------------------------------------- counters that ran over


@pytest.fixture
def read(tmp_path):
    """Reads a text as a log."""

    def reading(written, **options):
        (tmp_path / "likwid.csv").write_text(written)
        return logs.read(tmp_path / "likwid.csv", **options)

    return reading


def test_what_the_meter_of_dram_saw_is_told(read):
    group = [("INSTR_RETIRED_ANY", "FIXC0", [9]), ("PWR_PKG_ENERGY", "PWR0", [15]), ("PWR_DRAM_ENERGY", "PWR3", [5])]
    notes = read(csv("MEM_DP", group)).notes
    assert "Totals: of the 20 J of packages and DRAM 25 % are DRAM's, idle or not (5 J)" in notes
    assert not any("DRAM" in note for note in read(csv("MEM_DP", group[:2])).notes)


WRAP = 2**47


@pytest.mark.parametrize(
    ("instructions", "counts", "known"),
    [
        # As in a run of hpgmgfv on 72 ranks: a thread counted 2^47 more than it can have.
        ((4e12, 4e12, 4e12), (7.9e11, 7.9e11, WRAP + 7.9e11), 2 * 7.9e11),
        ((4e12, 4e12, 4e12), (WRAP + 1e6, 2 * WRAP - 5e9, 5e9), 5e9),
        ((3e14, 4e12, 4e12), (1.5 * WRAP, 1.0, 2.0), 1.5 * WRAP + 3),  # a run of a day counts so much
        ((4e12, 4e12, 4e12), (WRAP * 0.99, 0.0, 0.0), WRAP * 0.99),
    ],
)
def test_counters_that_ran_over_are_not_known(read, instructions, counts, known):
    event = "FP_ARITH_INST_RETIRED_512B_PACKED_DOUBLE"
    events = [("INSTR_RETIRED_ANY", "FIXC0", instructions), (event, "PMC0", counts)]
    log = read(csv("FLOPS_DP", events, threads=3, seconds=100.0))
    (table,) = log.tables
    assert table.counters[event].tolist() == [known]
    is_lost = known != sum(counts)
    assert any("ran over" in note for note in log.notes) == is_lost
    assert (event + NOT_ALL in table.counters) == is_lost
    assert table.counters["INSTR_RETIRED_ANY"].tolist() == [sum(instructions)]


def test_other_events_may_count_as_much_as_they_like(read):
    log = read(csv("CLOCK", [("CPU_CLK_UNHALTED_REF", "FIXC2", (WRAP + 1, WRAP))], threads=2, seconds=1e5))
    assert log.tables[0].counters["CPU_CLK_UNHALTED_REF"].tolist() == [2 * WRAP + 1]


def test_events_that_nothing_uses_are_named(read):
    log = read(
        csv("X", [("NO_SUCH_EVENT", "PMC0", (3,)), ("PWR_PKG_ENERGY", "PWR0", (3,))]), keep={"INSTR_RETIRED_ANY"}
    )
    assert [note for note in log.notes if "not used" in note] == [
        "`NO_SUCH_EVENT`: counted, and not used, for eprof knows no use of such"
    ]


REAL_SUMS = CPU / "rrze-spechpc-icl-spr.csv.gz"


@pytest.mark.skipif(not REAL_SUMS.is_file(), reason="needs ../shared/data")
def test_no_real_sum_is_taken_for_one_that_ran_over_and_some_that_did_are_found():
    """Sums over ranks: a program counts the same on any number of them, so one that ran over stands 2^47 above the rest."""
    with gzip.open(REAL_SUMS, "rt") as file:
        rows = list(csv_module.DictReader(file))
    sums = defaultdict(list)
    for row in rows:
        for width in ("128", "256", "512"):
            if row[f"fp64_{width}_inst"]:
                count, instructions = float(row[f"fp64_{width}_inst"]), float(row["instructions"])
                found = is_wrapped(f"FP_ARITH_INST_RETIRED_{width}B_PACKED_DOUBLE", count, instructions)
                sums[row["suite"], row["benchmark"], width].append((count, found))
    wrong, missed, found = 0, 0, 0
    for alike in sums.values():
        usual = np.median([count for count, _ in alike])
        wrong += sum(is_found for count, is_found in alike if count < usual + WRAP / 2)
        found += sum(is_found for count, is_found in alike if count > usual + WRAP / 2)
        missed += sum(not is_found for count, is_found in alike if count > usual + 0.9 * WRAP)
    # In a sum, what ran over is seen where it is more than the instructions; by thread, all of it is (above).
    assert (wrong, found, missed) == (0, 54, 48)


def a64fx(sizes=(1, 1, 1), metrics="", more=()):
    """Two threads of an A64FX under group ENERGY; what a register counts, times `sizes`."""
    counts = {"EA_CORE": [1000001, 2000002], "EA_L2": [50001, 0], "EA_MEMORY": [7001, 0]}
    events = [
        (event, f"PMC{at}", [value * size for value in counts[event]])
        for at, (event, size) in enumerate(zip(counts, sizes, strict=True))
    ]
    return csv("ENERGY", [*events, *more], threads=2, seconds=2.0, cpu="Fujitsu A64FX") + metrics


A64FX_J = (8 * 3000003 + 32 * 50001 + 256 * 7001) / 1e9
METRICS = "Energy Core [J],0.02,0.01\nEnergy L2 [J],0.002,0\nEnergy HBM [J],0.003,0\n"


@pytest.mark.parametrize(
    ("text", "joules"),
    [
        (a64fx(), A64FX_J),
        (a64fx((8, 32, 256)), A64FX_J),  # newer versions print nJ
        (a64fx(metrics=METRICS), 0.035),  # LIKWID knows the chip
        (a64fx(metrics=METRICS.replace("0.003", "nan")), A64FX_J),
        (a64fx().replace("7001,0", "7001,nan"), None),
        (a64fx().replace("EA_L2", "OTHER"), None),
    ],
)
def test_the_energy_counters_of_an_a64fx_are_a_meter(load, text, joules):
    profile = load(text)
    if joules is None:
        assert profile.measured is None
        return
    assert profile.measured.joules == pytest.approx(joules, rel=1e-12)
    assert (profile.measured.covers, profile.measured.seconds) == ("cores, L2 and memory", 2.0)
    assert any("256 nJ" in note for note in profile.logs[0].notes) == (joules == A64FX_J)


def test_joules_of_a_part_of_the_run_are_not_those_of_an_a64fx(load):
    second = csv("L2", [("L1D_CACHE_REFILL", "PMC0", [7, 7])], threads=2, seconds=1.0, number=2, cpu="Fujitsu A64FX")
    assert load(a64fx() + second).measured is None


def test_metrics_of_the_same_name_are_no_meter_on_other_processors(load):
    """On Zen the group ENERGY prints `Energy Core [J]` too."""
    assert load(csv("L3", [("L2_LINES_IN_ALL", "PMC0", [7])], seconds=1.0) + METRICS).measured is None


def test_a_cpu_that_no_definition_is_for_has_instructions_and_cycles(load):
    events = [("INSTR_RETIRED_ANY", "FIXC0", [3000]), ("CPU_CLK_UNHALTED_CORE", "FIXC1", [1000])]
    phi = csv("BRANCH", [*events, ("NO_SUCH_EVENT", "PMC0", [7])], seconds=1.0, cpu="Intel(R) Xeon Phi(TM) CPU 7250")
    profile = load(phi.replace("Intel Skylake SP processor", "Intel Xeon Phi (Knights Landing) (Co)Processor"))
    counts = profile.energy().document()["counts"]
    assert (counts["retired"]["value"], counts["core_active"]["value"]) == (3000, 1000)
    assert counts["dram_read"]["value"] is None


def test_the_memory_on_the_package_of_a_xeon_phi_counts_beside_ddr(load):
    """Lines by LIKWID's HBM_CACHE: what MCDRAM gave without what it missed, and what was written but not by DDR."""
    lines = {"EDC_RPQ_INSERTS": 9_000_000, "EDC_WPQ_INSERTS": 800_000, "EDC_MISS_CLEAN": 900, "EDC_MISS_DIRTY": 500}
    lines |= {"MC_CAS_READS": 100_000, "MC_CAS_WRITES": 700}
    events = [(event, f"BOX{unit}", [number // 2]) for event, number in lines.items() for unit in range(2)]
    events += [("INSTR_RETIRED_ANY", "FIXC0", [136_000_000]), ("CPU_CLK_UNHALTED_CORE", "FIXC1", [94_000_000])]
    name = "Intel(R) Xeon Phi(TM) CPU 7250 @ 1.40GHz"
    log = text("HBM_CACHE", events, region="gemm", seconds=0.07, cpu=name)
    profile = load(log.replace("Intel Skylake SP processor", "Intel Xeon Phi (Knights Landing) (Co)Processor"))
    assert counted(profile, "dram_read")["gemm"] == (64 * (9_000_000 - 900 - 500 + 100_000), Mark(0))
    assert counted(profile, "dram_write")["gemm"] == (64 * (800_000 - 100_000 + 700), Mark(0))
    moved = 64 * 9_799_300
    (change,) = (each for each in fewer_cycles(View(profile.energy("icelake-sp").document())) if each.adds is False)
    of_ddr = load(log.replace("EDC_", "X_").replace("Intel Skylake SP processor", "Intel Xeon Phi"))
    assert counted(of_ddr, "dram_read")["gemm"] == (64 * 100_000, Mark.MISSING)
    bare = csv("L2", [("INST_RETIRED", "FIXC0", [9e9]), ("CPU_CYCLES", "PMC0", [9e9])], seconds=1, cpu="Elbrus 8C")
    unknown = load(bare.replace("Intel Skylake SP processor", "")).energy("icelake-sp")
    assert "`eprof run PROGRAM`" in how_to_count(View(unknown.document()), True), "whose groups nobody knows"
    assert "move fewer bytes past L2 (627 MB," in change.act.replace("\u202f", " ")
    assert change.saves == pytest.approx((94e6 * 972.3e-12 + moved * 199.9e-12) / 10, rel=1e-3)


def test_a_damaged_cell_of_a_time_line_makes_lower_bounds(read):
    """Of 120 J and 160.4 J the second is damaged: so 120 J of the two intervals are known, and no energy is measured."""
    line = "# GID|EventCount|CpuCount|Total runtime [s]|PWR_PKG_ENERGY|INSTR_RETIRED_ANY\n"
    log = read(f"{line}1 2 2 1.0 120.0 0 7 8\n1 2 2 2.0 160.4-1 0 9 10\n")
    (table,) = log.tables
    assert table.counters["INSTR_RETIRED_ANY"].tolist() == [34] and JOULE not in table.units.values()
    assert table.counters["PWR_PKG_ENERGY"].tolist() == [120] and "PWR_PKG_ENERGY" + NOT_ALL in table.counters
    assert any(note.startswith("PWR_PKG_ENERGY: LIKWID has no number") for note in log.notes)


_CYCLES = ("CPU_CLK_UNHALTED_CORE", "FIXC1", [2000])
_READ = [("CAS_COUNT_RD", f"MBOX{channel}C0", [10]) for channel in range(2)]


def test_a_time_of_0_beside_cycles_is_missing(load):
    """LIKWID goes by the clock of the processor, which it did not find ("CPU clock: 0.00 GHz")."""
    rows = load(text("MEM", [_CYCLES, *_READ], seconds=0.0)).counted[0].launches.rows
    assert np.isnan(rows.time_s).all()


def test_a_table_without_its_end_makes_lower_bounds(load):
    """Two of its rows of a memory controller's channels are there, 64 B x (10 + 10); the end of the table is not."""
    whole = text("MEM", [_CYCLES, *_READ])
    cut = whole.rpartition("+--")[0].rstrip("+-")
    while cut.splitlines()[-1].startswith("+"):
        cut = cut.rpartition("+")[0].rstrip("+-")
    for log, mark in ((whole, Mark(0)), (cut, Mark.MISSING)):
        assert list(counted(load(log), "dram_read").values()) == [(1280, mark)]
        assert list(counted(load(log), "core_active").values()) == [(2000, Mark(0))]

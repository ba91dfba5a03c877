"""Which cost table prices a CPU: its own, else that of its nearest relative; by how many sockets; with which core cycles."""

import pytest
from conftest import SHARED
from likwid_support import csv
from msgspec.structs import replace

import eprof
from eprof import costs
from eprof.base import cpus
from eprof.base.resources import folder
from eprof.base.toml import Document
from eprof.base.vocabulary import Mark
from eprof.energy.clocks import with_active_cycles

CPU = SHARED / "cpu"
needs_data = pytest.mark.skipif(not CPU.exists(), reason="needs ../shared/data")
SPR = "Intel(R) Xeon(R) Platinum 8470"
WIDTHS = ("SCALAR", "128B_PACKED", "256B_PACKED", "512B_PACKED")


@pytest.fixture
def load(tmp_path):
    """Loads texts as logs."""

    def write(text):
        path = tmp_path / "likwid.csv"
        path.write_text(text)
        return eprof.load(path, cache=False)

    return write


def log(cpu=SPR, joules=(400.0, 300.0), cycles=(4e9, 1e9), without=()):
    """Two threads, one a socket, for 2 s; events of these names are left out."""
    events = [("INSTR_RETIRED_ANY", "FIXC0", [7e9, 1e9]), ("CPU_CLK_UNHALTED_CORE", "FIXC1", [*cycles])]
    events += [
        (f"FP_ARITH_INST_RETIRED_{width}_DOUBLE", f"PMC{n}", [1e8 * (n + 1), 5e7]) for n, width in enumerate(WIDTHS)
    ]
    events += [("CAS_COUNT_RD", "MBOX0C0", [3e7, 1e7]), ("CAS_COUNT_WR", "MBOX0C1", [1e7, 1e6])]
    events += [("PWR_PKG_ENERGY", "PWR0", [*joules])]
    events = [
        (name, slot, [f"{value:.0f}" for value in values]) for name, slot, values in events if name not in without
    ]
    return csv("MEM_DP", events, threads=2, seconds=2.0, cpu=cpu).replace("Skylake SP", "SapphireRapids")


def test_joules_of_a_log_are_its_counts_times_the_prices(load):
    """By hand: W of two sockets, pJ of the table, FP64 by width."""
    energy = load(log()).energy()
    assert energy.costs.name == "sapphirerapids" and not energy.costs.marks & Mark.ASSUMED
    prices = {name: price.pj * 1e-12 for name, price in costs.load("sapphirerapids").at().prices.items()}
    narrow, wide = 1.5e8 + 2 * 2.5e8, 4 * 3.5e8 + 8 * 4.5e8
    expected = {
        "constant": 2 * 176.3 * 2.0,
        "core_active": 5e9 * prices["core_active_cycle"],
        "retired": 8e9 * prices["retired_instruction"],
        "fp64": (narrow + wide) * prices["fp64_flop"],
        "fp64_narrow": narrow * prices["fp64_narrow_flop"],
        "dram_read": 64 * 4e7 * prices["dram_byte"],
        "dram_write": 64 * 1.1e7 * prices["dram_byte"],
    }
    split = energy.split.table.iloc[0]
    assert {word: split[word] for word in expected} == pytest.approx(expected, rel=1e-9)
    assert energy.split.total_j[0] == pytest.approx(sum(expected.values()), rel=1e-9)
    assert not energy.lacks_some, "caches have no price of their own, and the total holds"
    document = energy.document()
    assert document["interval_j"]["total"][0] < energy.split.total_j[0] < document["interval_j"]["total"][1]
    one_socket = costs.load("sapphirerapids").replica_intervals().constant_w
    low, high = (4 * watts for watts in one_socket)
    least = min(low, document["interval_j"]["total"][0])  # no part is surely more than the whole may be
    assert document["interval_j"]["constant"] == pytest.approx([least, high])


@pytest.mark.parametrize("mhz", [2000, 2300])
@pytest.mark.parametrize("intensity", [0.3, 1.5, 1.7])
def test_whatever_a_roofline_says_is_of_the_peaks_that_its_line_is_drawn_with(load, intensity, mhz):
    """One core of a Xeon 8470 for 2 s and 25.6 GB: 20 bytes of DRAM and 32 flops a cycle, of 1040 and 1664 for 52."""
    flops = 64 * 4e8 * intensity
    events = [("INSTR_RETIRED_ANY", "FIXC0", ["9000000000"]), ("CPU_CLK_UNHALTED_CORE", "FIXC1", [f"{2e6 * mhz:.0f}"])]
    events += [("CPU_CLK_UNHALTED_REF", "FIXC2", ["4000000000"])]
    none = [*(f"{width}_SINGLE" for width in WIDTHS), *(f"{width}_DOUBLE" for width in WIDTHS[:3])]
    events += [(f"FP_ARITH_INST_RETIRED_{kind}", f"PMC{n}", ["0"]) for n, kind in enumerate(none)]
    events += [("FP_ARITH_INST_RETIRED_512B_PACKED_DOUBLE", "PMC7", [f"{flops / 8:.0f}"])]
    events += [("CAS_COUNT_RD", "MBOX0C0", ["300000000"]), ("CAS_COUNT_WR", "MBOX0C1", ["100000000"])]
    text = csv("MEM_DP", events, threads=1, seconds=2.0, cpu=SPR).replace("Skylake SP", "SapphireRapids")
    energy = load(text).energy()
    limits = energy.document()["limits"]
    (kernel,), machine = limits["kernels"], limits["machines"][0]
    assert (machine["precision"], machine["time_balance"]) == ("fp64", pytest.approx(1.6))
    assert machine["dram_byte_per_s"] == pytest.approx(1e6 * mhz * 1040 / 52)
    least_s = max(64 * 4e8 / machine["dram_byte_per_s"], flops / machine["peak_flop_per_s"])
    assert kernel["roofline_time_s"] == pytest.approx(least_s)
    assert kernel["speed_share"] == pytest.approx(least_s / 2.0)
    assert kernel["limited_by"] == ("dram" if intensity < machine["time_balance"] else "flops")
    assert energy.what_if("race").time_s == pytest.approx(least_s)
    assert energy.what_if("setting=2000/4800,race").time_s == pytest.approx(least_s), "at the clock that it had"
    assert energy.what_if("costs=sapphirerapids,race").time_s == pytest.approx(least_s), "at the clock that it had"


def test_another_table_has_as_many_cores_in_use_as_the_logs_own(load):
    """Of 5.65 Gflop and 3.264 GB: here flops take longest, 64 Gflop/s a core, there bytes, 40 GB/s a core."""
    energy = load(log(without=("PWR_PKG_ENERGY",))).energy()
    there = energy.what_if("costs=icelake-sp")
    assert there.time_s == pytest.approx(2.0 * (3.264e9 / 40e9) / (5.65e9 / 64e9))
    whole_w = costs.load("icelake-sp").at().constant_power_w
    assert there.energy_j["constant"] == pytest.approx(1.25 / 36 * whole_w * there.time_s)


@pytest.mark.parametrize(
    ("joules", "sockets", "is_told"),
    [((400, 300), 2, True), ((400, 0), 1, True), ((400, "-"), 1, True), (None, 1.25 / 52, False)],
)
def test_sockets_in_use_are_those_with_joules_else_the_share_of_busy_cores(load, joules, sockets, is_told):
    text = log(without=("PWR_PKG_ENERGY",)) if joules is None else log().replace("400,300", ",".join(map(str, joules)))
    profile = load(text)
    assert profile.cpu_use.sockets == (sockets if is_told else None)
    energy = profile.energy()
    assert energy.split.constant_j[0] == pytest.approx(sockets * 176.3 * 2.0)
    assert bool(energy.costs.constant_marks & Mark.ASSUMED) != is_told
    assert any("1.25 of 52 cores" in note for note in energy.costs.notes) != is_told
    assert energy.costs.peaks.dp_gflops == pytest.approx(sockets * 3328)


@pytest.mark.parametrize(
    ("cpu", "table"),
    [
        ("Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz", "icelake-sp"),
        ("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz", "icelake-sp"),
        ("Intel(R) Core(TM) i7-1065G7 CPU @ 1.30GHz", "icelake-sp"),
        ("Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz", "icelake-sp"),
        ("INTEL(R) XEON(R) PLATINUM 8592+", "sapphirerapids"),
        ("12th Gen Intel(R) Core(TM) i7-12700", "sapphirerapids"),
        ("AMD EPYC 7763 64-Core Processor", "icelake-sp"),
        ("AMD EPYC 9654 96-Core Processor", "sapphirerapids"),
        ("Neoverse-V2", "sapphirerapids"),
        ("Intel(R) Core(TM) i7 CPU 950 @ 3.07GHz", "i7-950"),
        ("CC icelake-sp", "icelake-sp"),
        ("Example(R) E9", None),
        ("GeForce GTX 1650", None),
    ],
)
def test_a_cpu_goes_by_its_nearest_relative(cpu, table):
    found = costs.for_device(cpu)
    assert (found and found.name) == table


def test_every_microarchitecture_has_a_relative_of_the_nearest_year():
    sections = Document.read(folder("counters") / "cpus.toml").data
    assert {entry["costs"] for entry in sections.values()} <= set(costs.tables())
    assert all(costs.load(entry["costs"]).processor == "cpu" for entry in sections.values())
    assert {cpus.fp64_flops_a_cycle(name) for name in sections} == {4, 8, 16, 32}
    assert [cpus.nearest_costs(name) for name in sections] == [entry["costs"] for entry in sections.values()]


def test_a_relatives_prices_are_assumed_and_say_whose_they_are(load):
    profile = load(log(cpu="Intel(R) Xeon(R) Platinum 8592+", without=("PWR_PKG_ENERGY",)))
    energy = profile.energy()
    assert energy.costs.name == "sapphirerapids"
    assert energy.costs.constant_marks & Mark.ASSUMED and energy.costs.charges["retired"].marks & Mark.ASSUMED
    assert any("8592+" in note and "assumption" in note for note in energy.costs.notes)
    assert load(log(cpu="Intel(R) Xeon(R) Platinum 8592+")).energy().metered is not None, "a meter knows better"


def test_cycles_that_nobody_counted_are_those_of_a_core_for_each_thread_all_the_time(load):
    energy = load(log(without=("CPU_CLK_UNHALTED_CORE",))).energy()
    assert energy.counts.amounts["core_active"][0] == 2 * 2.0 * 2000e6
    marks = energy.counts.amount_marks["core_active"][0]
    assert marks == int(Mark.ESTIMATED | Mark.ASSUMED)
    (way,) = energy.counts.how["core_active"]
    assert (way.formula, way.kernels) == ("time * 2000 MHz * 2", 1)
    counted = load(log()).energy().counts
    assert counted.amounts["core_active"][0] == 5e9 and not counted.amount_marks["core_active"][0]
    old = load(log(without=("CPU_CLK_UNHALTED_CORE",))).energy("i7-950").counts
    assert not old.amounts["core_active"][0] > 0, "where they do not pay, nothing is made up"


def test_older_tables_say_nothing_of_the_new_words_and_lose_nothing(load):
    energy = load(log()).energy("i7-950")
    assert not any("Instructions retired" in warning for warning in energy.warnings)
    assert {"retired", "core_active", "fp64_narrow"}.isdisjoint(energy.costs.unpriced)


def test_cycles_are_made_up_only_where_they_pay(load):
    energy = load(log(without=("CPU_CLK_UNHALTED_CORE",))).energy()
    counts = energy.profile.counts("accessed")
    nothing = replace(energy.costs.charges["core_active"], pays=False)
    costs_at = replace(energy.costs, charges={**energy.costs.charges, "core_active": nothing})
    assert with_active_cycles(counts, costs_at) is counts
    assert with_active_cycles(counts, energy.costs) is not counts


def test_regions_on_one_and_on_two_sockets_ran_on_two(load):
    region = "TABLE,Region {},Group 1 Raw,"
    one = log(joules=(400.0, 0.0)).replace("TABLE,Group 1 Raw,", region.format("one"))
    two = log().replace("TABLE,Group 1 Raw,", region.format("two"))
    assert load(one + two).cpu_use.sockets == load(two + one).cpu_use.sockets == 2


@pytest.mark.parametrize(("number", "sockets", "fewest"), [(63, 2, 1), (36, 1, 1), (109, 4, 2)])
def test_bounds_of_a_machine_are_those_of_as_many_sockets_as_its_cpus_fill(load, number, sockets, fewest):
    rows = [f"{10 * number}000.00,msec,cpu-clock,{10 * number}000000000,100.00,{number}.000,CPUs utilized"]
    rows += [f"{value},,{event},1,100.00,," for event, value in (("instructions", 6e9), ("cycles", 7e9))]
    profile = load("# started on Mon Apr 29 01:02:05 2024\n\n" + "\n".join(rows) + "\n")
    energy = profile.energy()
    assert energy.table.constant.cores == 36 and profile.cpu_use.most_sockets(energy.table) == sockets
    assert energy.split.constant_j[0] == pytest.approx(97.1 * 10 * fewest), "two threads a core, as nothing tells"
    document = energy.document()
    priced_j = energy.costs.peaks.dram_gb_per_s * 1e10 * energy.costs.charges["dram_read"].pj * 1e-12
    assert document["interval_j"]["uncounted"]["dram"] >= sockets / fewest * priced_j
    assert document["interval_j"]["total"][1] >= sockets * cpus.constant_span_w()[1] * 10


@needs_data
def test_a_log_of_perf_names_no_cpu_and_is_priced_by_what_its_cores_did():
    energy = eprof.load(CPU / "perf-text-intel-50threads.txt").energy()
    assert energy.table.name == "icelake-sp" and energy.split.row_marks[0] & Mark.ASSUMED
    busy = 647.20251 / 13.035091229
    assert energy.profile.cpu_use.cores == pytest.approx(busy, rel=1e-6)
    assert energy.split.constant_j[0] == pytest.approx(97.1 * busy / 36 * 13.035091229, rel=1e-6)
    counted_j = 2_015_511_676_522 * 972.3e-12 + 1_695_370_525_580 * 123e-12
    assert energy.split.total_j[0] - energy.split.constant_j[0] == pytest.approx(counted_j, rel=1e-6)
    assert eprof.load(CPU / "perf-text-intel-50threads.txt").energy(estimate=False).costs is None


@needs_data
def test_what_a_meter_saw_of_a_cpu_that_no_log_names_is_not_split_by_anothers_prices():
    energy = eprof.load(CPU / "perf-csv-xeon-e5-2630v3-rapl.csv").energy()
    assert energy.costs is None and energy.measured.joules == pytest.approx(3257.22)
    assert energy.counts.rows.kernel.tolist() == ["system wide"]

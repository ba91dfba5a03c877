"""`eprof comm`: closed forms of waiting, SimGrid's joules, Open MPI's runs, messages of programs, clocks, the library."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from eprof.base.errors import CollectError, CostError, LogError, UsageError
from eprof.base.toml import Document
from eprof.base.vocabulary import Mark
from eprof.cli import main
from eprof.clusters import cluster, mpi
from eprof.collect import sensors
from eprof.collect.machine import compiled
from eprof.commands.comm import command, messages, waits, words
from eprof.commands.comm import document as comm_document
from eprof.commands.comm.cpufreq import held_at
from eprof.commands.comm.messages import Sent
from eprof.commands.comm.waits import BLOCKING, POLLING, Sample

HERE = Path(__file__).parent
TRACES = HERE.parents[3] / "shared" / "data" / "traces" / "mpi"
needs_simgrid = pytest.mark.skipif(not shutil.which("smpicc"), reason="SimGrid is not installed (libsimgrid-dev)")
KINDS = [kind for kind in ("openmpi", "mpich") if mpi.find(kind)[0]]
needs_mpi = pytest.mark.skipif(not mpi.find()[0], reason="Open MPI is not installed (openmpi-bin, libopenmpi-dev)")

# The powers of [S] 6.4.4 and the clocks of 6.4.1, power at 1900 MHz as the clock; times as SimGrid gave them.
NW_ICE = """
schema = 1
name = "nw-ice"
source = "a rack of [S] 6.4, kW as W"
basis = "assumed"
setting = [
  {core_mhz = 2330, idle_w = 7.8, on_chip_w = 1.6, default = true},
  {core_mhz = 1900, idle_w = 7.8, on_chip_w = 1.304721030042918},
]
time = {on_chip_cycles = 1, off_chip_s = 0, interrupt_s = 10e-6, clock_change_s = 10e-6}
message = {bytes = [1024, 16384, 58000, 262144, 1048576], seconds = [16.7e-6, 35.09e-6, 58.75e-6, 265.66e-6, 1e-3]}
network = {bandwidth_byte_per_s = 1250e6, latency_s = 1e-6}
"""
SIZES = [1024, 16384, 58000, 262144, 1048576]


def table(tmp_path, text=NW_ICE):
    path = tmp_path / "table.toml"
    path.write_text(text)
    return str(path)


@pytest.fixture
def nw_ice(tmp_path):
    return cluster.read(Document.read(Path(table(tmp_path))))


def case(machine, ways=(POLLING, BLOCKING)):
    return comm_document.Case(ways, machine.clocks, machine, 2)


def test_polling_alone_has_no_answer_and_the_way_to_one(nw_ice):
    case = comm_document.Case([POLLING], nw_ice.clocks, nw_ice, 2)
    said = words.headline(comm_document.modelled(case, [1024]))
    assert said.text == "Blocking was not asked for." and "--waiting polling,blocking" in said.lead


def relative(document, size, waiting, core_mhz=2330):
    [row] = [row for row in document.rows if (row.bytes, row.waiting, row.core_mhz) == (size, waiting, core_mhz)]
    return row.relative


# -------------------------------------------------------------------------------------------------------- closed forms


def test_limits_and_break_even_are_those_of_the_closed_forms(nw_ice):
    document = comm_document.modelled(case(nw_ice), SIZES)
    limits = {(limit.waiting, limit.core_mhz): limit.j_per_mb for limit in document.limits}
    assert limits[BLOCKING, 2330] == pytest.approx(0.8298, abs=5e-5)
    assert limits[POLLING, 1900] == pytest.approx(0.9686, abs=5e-5)
    assert document.break_even_s == pytest.approx(58.75e-6, rel=1e-12)


def test_joules_against_polling_are_those_of_the_closed_forms(nw_ice):
    document = comm_document.modelled(case(nw_ice), SIZES)
    assert relative(document, 16384, BLOCKING).j_per_mb == pytest.approx(1.115, abs=5e-4)
    assert relative(document, 262144, BLOCKING).j_per_mb == pytest.approx(0.867, abs=5e-4)
    assert relative(document, 58000, BLOCKING).j_per_mb == pytest.approx(1, rel=1e-12)  # the break-even
    low_w, transfer_s = 7.8 + 1.6 * 1.9 / 2.33, 1e-3
    joules = {POLLING: low_w * transfer_s + 2 * 9.4e-5, BLOCKING: 7.8 * transfer_s + low_w * 1e-5 + 2 * 9.4e-5}
    for waiting, energy_j in joules.items():
        assert relative(document, 1048576, waiting, 1900).j_per_mb == pytest.approx(energy_j / (9.4 * transfer_s))


def test_joules_per_mb_are_latency_times_power_in_every_row(nw_ice):
    for row in comm_document.modelled(case(nw_ice), SIZES).rows:
        assert row.relative.j_per_mb == pytest.approx(row.relative.latency * row.relative.power, rel=1e-12)
        assert row.j_per_mb == pytest.approx(row.power_w * row.latency_s / (row.bytes / 1e6), rel=1e-12)


@given(st.floats(1e-6, 1e-2), st.floats(1e-6, 1e-3), st.floats(1, 1e3), st.floats(1, 1e3))
def test_blocking_takes_fewer_joules_from_the_break_even_on(transfer_s, interrupt_s, idle_w, on_chip_w):
    clock = cluster.Clock(1000, idle_w, on_chip_w, 0)
    times = cluster.Messages((0, 1), (transfer_s, transfer_s))
    machine = cluster.Cluster("x", "", "node", "", "assumed", POLLING, (clock,), clock, 1, 0, times, interrupt_s)
    polled, blocked = waits.closed_form(machine, [Sent("message", 1, 1)], [POLLING, BLOCKING], [clock])
    assert polled.energy_j == pytest.approx((idle_w + on_chip_w) * transfer_s)
    beyond = transfer_s - waits.break_even_s(machine)
    if abs(beyond) > 1e-9 * transfer_s:
        assert (blocked.energy_j < polled.energy_j) == (beyond > 0)


def test_a_way_pays_from_the_least_size_from_which_all_take_less_and_come_in_time(nw_ice):
    document = comm_document.modelled(case(nw_ice), SIZES)
    found = {(entry.waiting, entry.core_mhz): (entry.bytes, entry.because) for entry in document.thresholds}
    assert found[BLOCKING, 2330] == (262144, None)  # at 58 kB 10 us are 17 % of the time
    assert found[POLLING, 1900] == (1048576, None)  # at 256 kB 20 us are 7.5 %
    short = comm_document.modelled(case(nw_ice), SIZES[:2])
    assert {entry.because for entry in short.thresholds} == {"it takes no fewer joules"}


@pytest.mark.parametrize(
    ("idle_w", "sizes", "told"),
    [
        (7.8, SIZES, ["EPROF_WAIT_BYTES=262144", "EPROF_WAIT_US=58.8"]),  # a lower clock saves nothing of 7.8 W
        # 0.8 W less, for 22 uJ more and 30 us: 5 % of 1 MiB's time.
        (7.0, SIZES, [..., ..., "EPROF_WAIT_MHZ=1900", "EPROF_WAIT_MHZ_BYTES=1048576"]),
        (7.0, SIZES[:4], [..., ...]),
        (7.8, SIZES[:2], ["EPROF_WAIT_BYTES=1125899906842624", ...]),
    ],
)
def test_the_library_is_told_what_pays(tmp_path, idle_w, sizes, told):
    machine = cluster.load(table(tmp_path, NW_ICE.replace("1900, idle_w = 7.8", f"1900, idle_w = {idle_w}")))
    found = words.settings(comm_document.modelled(case(machine), sizes))
    assert len(found) == len(told)
    assert all(asked in (..., word) for asked, word in zip(told, found, strict=True))


def samples(polled, blocked, spread=0.0):
    """Operations of 8 bytes each of two sizes: (latency, joules) by way to wait."""
    for waiting, pairs in ((POLLING, polled), (BLOCKING, blocked)):
        for size, (latency_s, energy_j) in zip((8, 80), pairs, strict=True):
            yield Sample("put", size, waiting, None, latency_s, energy_j, spread=spread)


@pytest.mark.parametrize(
    ("blocked", "spread", "least", "because"),
    [
        ([(1, 0.5), (1, 0.5)], 0.0, 8, None),
        ([(1, 0.5), (1, 1.5)], 0.0, None, "it takes no fewer joules"),  # a larger size does not pay
        ([(1, 1.0), (1, 1.0)], 0.0, None, "it takes no fewer joules"),
        ([(1.06, 0.5), (1.05, 0.5)], 0.0, 80, None),
        ([(1, 0.5), (1.06, 0.5)], 0.0, None, "messages come more than 5 % later"),
        ([(1, 0.8), (1, 0.8)], 0.3, None, "repeats differ by more than it saves"),
        ([(1, None), (1, None)], 0.0, None, "polling, or joules, to compare with are not known"),
    ],
)
def test_why_a_way_to_wait_does_not_pay(nw_ice, blocked, spread, least, because):
    measured = list(samples([(1, 1), (1, 1)], blocked, spread))
    document = comm_document.measured(case(nw_ice), measured, "Open MPI 0", "a meter")
    [threshold] = document.thresholds
    assert (threshold.bytes, threshold.because) == (least, because)


def test_a_table_without_the_cost_of_a_wait_is_not_priced_as_if_it_were_0(tmp_path):
    machine = cluster.load(table(tmp_path, NW_ICE.replace("interrupt_s = 10e-6, ", "")))
    with pytest.raises(CostError, match=r"nw-ice has no interrupt_s in \[time\]; .*--waiting polling"):
        comm_document.modelled(case(machine), SIZES)
    assert comm_document.modelled(case(machine, [POLLING]), SIZES).break_even_s is None


# ------------------------------------------------------------------------------------------------------------ messages

MPIP = """@ mpiP
---------------------------------------------------------------------------
@--- Aggregate Sent Message Size (top twenty, descending, bytes) ----------
---------------------------------------------------------------------------
Call                 Site      Count      Total       Avrg  Sent%
Isend                   1         30      3e+05      1e+04  74.99
---------------------------------------------------------------------------
@--- Callsite Message Sent statistics (all, sent bytes) -------------------
---------------------------------------------------------------------------
Name              Site Rank   Count       Max      Mean       Min       Sum
Isend                1    0      10     10000     10000     10000     1e+05
Isend                1    1      20     10000     10000     10000     2e+05
Isend                1    *      30     10000     10000     10000     3e+05

Isend                2    *      10     10000     10000     10000     1e+05
Allreduce            3    *       4         8         8         8        32
---------------------------------------------------------------------------
@--- End of Report --------------------------------------------------------
---------------------------------------------------------------------------
"""


def read(tmp_path, text):
    path = tmp_path / "report"
    path.write_text(text)
    return messages.read_messages(str(path))


def test_the_rows_of_all_ranks_are_the_messages_and_those_of_one_size_are_added_up(tmp_path):
    sent, notes = read(tmp_path, MPIP)
    assert sent == [Sent("Isend", 40, 10000.0), Sent("Allreduce", 4, 8.0, True)]
    assert notes == ["Collective operations are priced as one message a call, the least that they can be."]


def test_a_report_of_the_largest_call_sites_alone_is_a_lower_bound(tmp_path):
    start, end = MPIP.index("@--- Callsite"), MPIP.index("@--- End")
    sent, notes = read(tmp_path, MPIP[:start] + MPIP[end:])
    assert sent == [Sent("Isend", 30, 10000.0, True)]
    assert "more messages than these" in notes[0]


@settings(max_examples=60)
@given(cut=st.integers(0, MPIP.index("@--- End") + 5))
def test_a_report_that_is_cut_off_never_gives_a_total_that_looks_whole(tmp_path_factory, cut):
    try:
        sent, notes = read(tmp_path_factory.mktemp("cut"), MPIP[:cut])
    except LogError as err:
        assert "\n" not in str(err)
    else:
        assert all(message.is_floor for message in sent) and "may be cut off" in notes[0]


def test_messages_cost_what_their_sizes_take(tmp_path, nw_ice):
    sent = [Sent("Isend", 40, 16384), Sent("Allreduce", 4, 1024, True)]
    totals = comm_document.of_program(case(nw_ice), "a program", sent, []).totals
    polled, blocked = totals[0], totals[1]
    assert (polled.messages, polled.bytes) == (44, 40 * 16384 + 4 * 1024)
    assert polled.time_s == pytest.approx(40 * 35.09e-6 + 4 * 16.7e-6)
    assert polled.energy_j == pytest.approx(9.4 * polled.time_s)
    assert blocked.energy_j == pytest.approx(7.8 * polled.time_s + 44 * 9.4e-5)
    assert polled.marks == ["missing", "assumed"]


def shared(name):
    path = TRACES / name
    if not path.is_file():
        pytest.skip("the shared data is not here")
    return str(path)


def test_a_report_of_mpip_from_its_manual_is_read():
    sent, notes = messages.read_messages(shared("mpip-3.5-userguide-amg-sections.txt"))
    # The manual shows no end of the report, one call site of the first table and five of those that sent most.
    assert sum(message.number for message in sent) == 320 + 71742 + 13332 + 1068 + 1530 + 4126
    assert Sent("Send", 320, 6000.0, True) in sent and all(message.is_floor for message in sent)
    assert 'does not end with "End of Report"' in notes[0]
    assert "some call sites, 87 % of the bytes sent" in notes[1]


@pytest.mark.parametrize("name", ["ping-pong-otf2", "ping-pong-otf2-papi"])
def test_a_trace_of_otf2_print_is_read(name, tmp_path):
    path = shared(f"{name}.otf2-print.txt")
    sent, notes = messages.read_messages(path)
    text = Path(path).read_text()
    sizes = [int(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith("MPI_SEND")]
    assert len(sizes) == 16 == sum(message.number for message in sent)
    assert sum(message.number * message.size for message in sent) == sum(sizes)
    assert not notes and not any(message.is_floor for message in sent)
    cut = text[: text.index("PROGRAM_END")]
    sent, notes = read(tmp_path, cut)
    assert all(message.is_floor for message in sent) and "may be cut off" in notes[0]
    with pytest.raises(LogError, match="a message without its length"):
        read(tmp_path, text[: text.index(", Length")])


ONE_SIDED = """PROGRAM_BEGIN          0      10  x
RMA_WIN_CREATE         0      11  Window: "Win 1" <0>
RMA_PUT                0      12  Window: "Win 1, Bytes: 7" <0>, Remote: 1 ("rank 1" <1>), Bytes: 4096, Matching: 0
RMA_PUT                0      13  Window: "Win 1" <0>, Remote: 1 ("rank 1" <1>), Bytes: 4096, Matching: 1
RMA_GET                0      14  Window: "Win 1" <0>, Remote: 1 ("rank 1" <1>), Bytes: 64, Matching: 2
RMA_ATOMIC             0      15  Window: "Win 1" <0>, Remote: 1 ("rank 1" <1>), Type: FETCH_ADD, Sent: 8, Received: 16, Matching: 3
RMA_OP_COMPLETE_REMOTE 0      16  Window: "Win 1" <0>, Matching: 3
RMA_PUT                0      17  Window: "CUDA_WINDOW" <1>, Remote: 2 ("CUDA[0:7]" <2>), Bytes: 1048576, Matching: 4
MPI_COLLECTIVE_END     0      18  Operation: WIN_FENCE
PROGRAM_END            0      19  x
"""


def test_one_sided_operations_are_messages_and_copies_to_a_gpu_are_none(tmp_path):
    sent, notes = read(tmp_path, ONE_SIDED)
    assert sorted(sent) == [Sent("Atomic", 1, 24, True), Sent("Get", 1, 64), Sent("Put", 2, 4096)]
    assert any("1 copies between hosts and their GPUs are no messages" in note for note in notes)
    assert any("1 collective operations are not priced" in note for note in notes)
    sent, notes = read(tmp_path, ONE_SIDED.replace("PROGRAM_END", "PROGRAM_ENE"))
    assert len(sent) == 3 and all(message.is_floor for message in sent)
    with pytest.raises(LogError, match=r"x:3: a message without its length|:3: a message without its length"):
        read(tmp_path, ONE_SIDED.replace("Bytes: 4096, Matching: 0", "Byte"))


def test_what_rests_on_assumed_powers_is_marked_in_every_form(tmp_path, nw_ice, capsys):
    measured_there = replace(nw_ice, basis="measured")
    for machine, marks in ((nw_ice, ["assumed"]), (measured_there, [])):
        document = comm_document.modelled(case(machine), SIZES)
        assert document.rows and all(row.marks == marks for row in document.rows)
        assert any("assumed" in warning for warning in document.warnings) == bool(marks)
    code, out, _ = run(capsys, "--cluster", table(tmp_path), "--sizes", "16KiB", "-v", "-o", str(tmp_path / "a.csv"))
    assert code == 0 and "?" in out
    header, *rows = (tmp_path / "a.csv").read_text().splitlines()
    assert rows and all(line.split(",")[header.split(",").index("marks")] == "assumed" for line in rows)


@pytest.mark.parametrize("text", ["", "hello", "@ mpiP\n", "PROGRAM_BEGIN x\n"])
def test_a_file_without_messages_is_refused(tmp_path, text):
    with pytest.raises(LogError, match="has no messages; give a report of mpiP"):
        read(tmp_path, text)


# ----------------------------------------------------------------------------------------------------- the benchmark


def test_lines_of_the_benchmark_are_found_among_others_and_their_median_is_taken():
    lines = ["hello", *(f"eprof-comm put 8 10 {time_s} {2 * time_s} -1" for time_s in (0.3, 0.1, 0.2))]
    [sample] = waits.median_samples(waits.benchmark_samples("\n".join(lines), POLLING, None, 2))
    assert sample[:4] == ("put", 8, POLLING, None)
    assert (sample.latency_s, sample.energy_j, sample.busy, sample.operations) == (0.02, None, 1.0, 10)
    assert sample.spread == pytest.approx(1.0)
    [sample] = waits.benchmark_samples("eprof-comm put 8 10 0.3 -1 4", BLOCKING, 1900, 2)
    assert (sample.energy_j, sample.busy, sample.core_mhz) == (0.2, None, 1900)
    with pytest.raises(CollectError, match="a line that is cut off"):
        list(waits.benchmark_samples("eprof-comm put 8 1", POLLING, None, 2))


def counters(root, **zones):
    for name, (label, micro_j) in zones.items():
        zone = root / "sys/class/powercap" / name.replace("_", ":").replace("rapl", "intel-rapl")
        zone.mkdir(parents=True)
        for file, content in (("name", label), ("energy_uj", micro_j), ("max_energy_range_uj", 1000)):
            (zone / file).write_text(f"{content}\n")


def test_counters_that_see_the_same_joules_are_never_added(tmp_path):
    counters(
        tmp_path, rapl_0=("package-0", 1), rapl_0_0=("core", 1), rapl_0_1=("dram", 1), rapl_1=("psys", 1)
    )  # fmt: skip
    files = sensors.rapl_counters(tmp_path)
    assert [(file.parent.name, most) for file, most in files.items()] == [
        ("intel-rapl:0", 1000),
        ("intel-rapl:0:1", 1000),
    ]
    assert sensors.rapl_counters(tmp_path / "nowhere") == {}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The benchmark, the library, and a program that uses it, for each MPI that is here; cores that stand in for /sys."""
    place = tmp_path_factory.mktemp("built")
    compiled(mpi.needed("openmpi").compiler, waits.benchmark_source("shift.c"), place / "shift")
    for kind in KINDS:
        compiler = mpi.needed(kind).compiler
        compiled(compiler, HERE / "late.c", place / f"late.{kind}")
        waits.compile_library(place / f"libwait.{kind}.so", kind)
    return place


def started(*command, kind="openmpi", **options):
    words = [str(word) for word in command]
    launch = mpi.launch(mpi.find(kind)[0], 2)
    return subprocess.run([*launch, *words], capture_output=True, text=True, timeout=300, **options)


@needs_mpi
def test_one_process_of_a_node_reads_its_counters(built, tmp_path):
    """A second one would not find the counter where it runs."""
    for folder in ("first", "other"):
        (tmp_path / folder).mkdir()
    (tmp_path / "first" / "counter").write_text("5\n")
    script = tmp_path / "start.sh"
    arguments = "put 8 2 1 counter=1000"
    script.write_text(
        f'cd {tmp_path}/$([ "$OMPI_COMM_WORLD_LOCAL_RANK" = 0 ] && echo first || echo other)\nexec {built}/shift {arguments}\n'
    )
    done = started("sh", script)
    assert [sample.operations for sample in waits.benchmark_samples(done.stdout, POLLING, None, 2)] == [2], done.stderr


@needs_mpi
def test_what_open_mpi_takes_is_measured_with_and_without_the_library(nw_ice, monkeypatch):
    monkeypatch.setattr(sensors, "rapl_counters", dict)
    plan = waits.Plan(["put", "strided"], [8, 2048], [POLLING, BLOCKING], 2, 1e-4)
    measured, version, joules_from = waits.on_this_machine("openmpi", plan, [], nw_ice)
    assert [(sample.primitive, sample.size, sample.waiting) for sample in measured] == [
        (primitive, size, waiting) for waiting in plan.ways for size in plan.sizes for primitive in plan.primitives
    ]
    assert version.startswith("Open MPI ") and joules_from == "processor time at the powers of nw-ice (assumed)"
    for sample in measured:
        assert sample.energy_j == pytest.approx(sample.latency_s * (7.8 + 1.6 * sample.busy))
        assert sample.latency_s > 0 and sample.busy > 0 and Mark.ASSUMED in sample.marks
    document = comm_document.measured(case(nw_ice), measured, version, joules_from)
    assert document.processes == 2 and "No meter" in document.warnings[0] and document.limits == []


def test_a_processor_of_which_nobody_knows_how_long_it_worked_is_priced_as_idle(nw_ice):
    sample = Sample("put", 8, POLLING, None, 0.5, None)
    assert waits.price_by_busy_time(sample, nw_ice.default).energy_j == pytest.approx(0.5 * 7.8)
    assert waits.price_by_busy_time(sample._replace(busy=1.0), nw_ice.default).energy_j == pytest.approx(0.5 * 9.4)


class Without:
    """Open MPI as it is called, where it is not installed: each command prints what the benchmark would."""

    def __init__(self, joules):
        self.joules, self.commands = joules, []

    def find(self, kind):
        return mpi.Mpi("mpicc", "mpirun", "5.0", kind), ""

    def compiled(self, compiler, source, target, *options):
        return target

    def launch(self, found, processes):
        return ["mpirun", "-n", str(processes)]

    def output_of(self, command):
        self.commands.append(command)
        way = 2 if "env" in command else 1
        # 10 operations: seconds of all, seconds of processors together, joules of all (below 0: no meter).
        return "".join(
            f"eprof-comm put 2048 10 {way * time_s} {0.25 * 3 * way * time_s} {self.joules}\n"
            for time_s in (0.3, 0.1, 0.2)
        )


@pytest.mark.parametrize("joules", [-1, 0, 6.0])
def test_what_processes_take_is_priced_or_metered_without_open_mpi_too(nw_ice, monkeypatch, joules):
    """3 processes that work a quarter of their time; a meter's joules are of all of them and all operations."""
    without = Without(joules)
    for name in ("find", "launch", "output_of"):
        monkeypatch.setattr(mpi, name, getattr(without, name))
    monkeypatch.setattr(waits, "compiled", without.compiled)
    monkeypatch.setattr(sensors, "rapl_counters", lambda: {"counter": 1000} if joules >= 0 else {})
    plan = waits.Plan(["put"], [2048], [POLLING, BLOCKING], 3, 1e-4)
    measured, version, joules_from = waits.on_this_machine("openmpi", plan, [], nw_ice)
    assert (version, joules_from.split(" ")[0]) == ("Open MPI 5.0", "RAPL" if joules >= 0 else "processor")
    assert [sample.waiting for sample in measured] == [POLLING, BLOCKING]
    assert [sample.latency_s for sample in measured] == pytest.approx([0.02, 0.04])
    assert all(sample.busy == pytest.approx(0.25) and sample.spread == pytest.approx(1.0) for sample in measured)
    if joules < 0:
        assert [sample.energy_j for sample in measured] == pytest.approx(
            [0.02 * (7.8 + 0.25 * 1.6), 0.04 * (7.8 + 0.25 * 1.6)]
        )
        assert all(sample.marks == Mark.ESTIMATED | Mark.ASSUMED for sample in measured)
    else:
        assert [sample.energy_j for sample in measured] == [joules / 10 / 3 or None] * 2
        assert not any(sample.marks for sample in measured)
    polled, blocked = without.commands
    assert polled[:4] == ["mpirun", "-n", "3", polled[3]] and polled[-5:-1] == ["put", "2048", "0.0001s", "5"]
    assert polled[-1] == ("counter=1000" if joules >= 0 else "-") and "EPROF_WAIT_BYTES=0" in blocked
    rows = comm_document.measured(case(nw_ice), measured, version, joules_from).rows
    assert rows[1].relative is None if joules == 0 else rows[1].relative.latency == pytest.approx(2)
    if joules:
        assert [row.power_w for row in rows] == pytest.approx([8.2, 8.2] if joules < 0 else [10.0, 5.0])
        assert rows[0].j_per_mb == pytest.approx(rows[0].energy_j / 2048 * 1e6)


@needs_mpi
@pytest.mark.parametrize(
    ("kind", "told", "sleeps"),
    [
        *((kind, "BYTES=0", True) for kind in KINDS),
        ("openmpi", "BYTES=40000", True),  # those of each call with data, and of no other
        ("openmpi", "US=50", True),
        ("openmpi", "BYTES=1000000000 EPROF_WAIT_US=1000000000", False),
    ],
)
def test_the_library_sleeps_in_large_waits_changes_no_data_and_restores_the_timer(built, kind, told, sleeps):
    library = (f"LD_PRELOAD={built}/libwait.{kind}.so", *f"EPROF_WAIT_{told}".split(), "EPROF_WAIT_REPORT=1")
    done = started("env", *library, built / f"late.{kind}", kind=kind)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split() == ["right", timer_slack(), "right", timer_slack()]
    waits = [int(number) for number in re.findall(r"libwait: slept in (\d+) waits", done.stderr)]
    assert len(waits) == 2 and (min(waits) >= 20 if sleeps else max(waits) == 0)


@needs_mpi
def test_the_library_does_nothing_to_other_programs_and_refuses_another_mpi(built):
    library = {**os.environ, "LD_PRELOAD": str(built / f"libwait.{KINDS[0]}.so"), "EPROF_WAIT_MHZ": "1900"}
    done = subprocess.run(["sh", "-c", "echo $((1+1))"], env=library, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", "")
    assert b"libmpi" not in (built / f"libwait.{KINDS[0]}.so").read_bytes()
    if len(KINDS) == 2:
        done = started("env", f"LD_PRELOAD={built}/libwait.mpich.so", built / "late.openmpi")
        assert done.returncode == 1 and "compiled for another MPI than Open MPI" in done.stderr


LOW_CLOCK = """
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
/* Rank 1 looks at the cores while rank 0 waits; then it sends, or kills it. It waits itself only when rank 0 has looked. */
int main(int count, char **words)
{
    static double data[5000];
    int rank, mine = getpid(), other, is_sent = 0;
    MPI_Request sent;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!rank)
        unlink("seen");
    MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, 0, &other, 1, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank) {
        usleep(60000);
        system("cat cpu*/cpufreq/scaling_max_freq");
        if (count > 1)
            kill(other, SIGKILL), usleep(1000000);
        MPI_Isend(data, 5000, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD, &sent);
        while (!is_sent)
            MPI_Test(&sent, &is_sent, MPI_STATUS_IGNORE);
        while (access("seen", F_OK))
            usleep(1000);
    } else {
        MPI_Recv(data, 5000, MPI_DOUBLE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        system("cat cpu*/cpufreq/scaling_max_freq; touch seen");
    }
    MPI_Finalize();
}
"""


@needs_mpi
def test_the_clock_is_lowered_while_a_process_waits_and_comes_back_even_if_that_is_killed(tmp_path):
    """A folder stands in for /sys: what processes do to its files is real, what a clock takes is not."""
    cores = sorted(os.sched_getaffinity(0))
    for core in cores:
        for name, text in (
            ("cpufreq/scaling_max_freq", "3000000"),
            ("cpufreq/cpuinfo_min_freq", "400000"),
            ("cpufreq/affected_cpus", core),
            ("topology/thread_siblings_list", core),
        ):
            (tmp_path / f"cpu{core}" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / f"cpu{core}" / name).write_text(f"{text}\n")
    compiler = mpi.needed("openmpi").compiler
    (tmp_path / "low.c").write_text(LOW_CLOCK)
    program = compiled(compiler, tmp_path / "low.c", tmp_path / "low")
    library = compiled(
        compiler, waits.benchmark_source("wait.c"), tmp_path / "lib.so", *waits._LIBRARY, f'-DCORES="{tmp_path}"'
    )
    words = ["env", f"LD_PRELOAD={library}", "EPROF_WAIT_MHZ=1900"]

    def clocks():
        return [int((tmp_path / f"cpu{core}/cpufreq/scaling_max_freq").read_text()) for core in cores]

    unbound = started("--bind-to", "none", *words, program, cwd=tmp_path)
    assert unbound.stdout.split() == ["3000000"] * 2 * len(cores)
    assert unbound.stderr.count("libwait: ") == (len(cores) > 1) and clocks() == [3000000] * len(cores)
    if len(cores) > 1:
        done = started("--bind-to", "core", *words, program, cwd=tmp_path)
        assert sorted(done.stdout.split()) == ["1900000", *["3000000"] * (2 * len(cores) - 1)], done.stderr
        killed = started("--bind-to", "core", *words, program, "x", cwd=tmp_path)
        assert killed.returncode != 0 and "1900000" in killed.stdout
    for _ in range(100):  # the shell that gives it back was not waited for
        if clocks() == [3000000] * len(cores):
            break
        time.sleep(0.02)
    assert clocks() == [3000000] * len(cores)


@needs_mpi
@pytest.mark.skipif(not shutil.which("gfortran") or not shutil.which("mpif90"), reason="no Fortran compiler of MPI")
def test_fortran_s_calls_pass_through_the_library(built, tmp_path):
    source = tmp_path / "late.f90"
    source.write_text(
        """program late
  use mpi
  integer :: rank, status(MPI_STATUS_SIZE), ierror
  real(8) :: mine(5000), total(5000)
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  total = rank + 1
  mine = rank
  call MPI_Allreduce(MPI_IN_PLACE, total, 5000, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 1) call execute_command_line("sleep 0.05")
  if (rank == 1) call MPI_Send(mine, 5000, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, ierror)
  if (rank == 0) call MPI_Recv(mine, 5000, MPI_DOUBLE_PRECISION, 1, 7, MPI_COMM_WORLD, status, ierror)
  if (all(total == 3) .and. all(mine == 1)) print *, "right"
  call MPI_Finalize(ierror)
end program
"""
    )
    compiled("mpif90", source, tmp_path / "late")
    done = started("env", f"LD_PRELOAD={built}/libwait.openmpi.so", "EPROF_WAIT_REPORT=1", tmp_path / "late")
    assert done.stdout.split() == ["right"] * 2, done.stderr
    assert re.search(r"slept in [1-9]\d* waits, [1-9]\d+ times", done.stderr)


def timer_slack():
    """Of this process, in ns, which those that it starts inherit."""
    return Path("/proc/self/timerslack_ns").read_text().strip()


@needs_simgrid
def test_simgrid_takes_what_the_closed_forms_say(nw_ice):
    """Another program gave, for put by eight processes, 1.41, 1.11, 0.87 and 0.84 of polling, rounded."""
    sizes = [1024, 16384, 262144, 1048576]
    plan = waits.Plan(["put"], sizes, [POLLING, BLOCKING], 8, 1)
    simulated, version = waits.on_simgrid(plan, [nw_ice.default], nw_ice)
    document = comm_document.simulated(case(nw_ice), simulated, version)
    printed = dict(zip(sizes, (1.41, 1.11, 0.87, 0.84), strict=True))
    for size in sizes:
        against = relative(document, size, BLOCKING)
        transfer_s = next(row.latency_s for row in document.rows if row.bytes == size)
        assert against.j_per_mb == pytest.approx((7.8 * transfer_s + 9.4e-5) / (9.4 * transfer_s), rel=1e-3)
        assert against.j_per_mb == pytest.approx(printed[size], rel=0.02)
    assert set(document.rows[0].marks) == {"simulated", "assumed"}


@needs_simgrid
def test_simgrid_lowers_the_clock_of_the_waits_alone(nw_ice):
    plan = waits.Plan(["put", "get", "accumulate", "strided"], [65536], [POLLING, BLOCKING], 2, 1)
    simulated, _ = waits.on_simgrid(plan, nw_ice.clocks, nw_ice)
    rows = {(row.primitive, row.waiting, row.core_mhz): row for row in simulated}
    low_w = 7.8 + 1.6 * 1.9 / 2.33
    for primitive in plan.primitives:
        transfer_s = rows[primitive, POLLING, 2330].latency_s
        for waiting, energy_j in ((POLLING, low_w * transfer_s), (BLOCKING, 7.8 * transfer_s + low_w * 1e-5)):
            assert rows[primitive, waiting, 1900].energy_j == pytest.approx(energy_j + 2 * 9.4e-5, rel=1e-3)


@needs_simgrid
def test_the_library_on_simgrid_takes_what_its_naps_add_up_to(tmp_path):
    """The library itself, with pstates for clocks: rank 0 waits for 1 MiB that comes later."""
    text = NW_ICE.replace("1900, idle_w = 7.8", "1900, idle_w = 7.0")
    machine = cluster.load(table(tmp_path, text))
    full, low = machine.clocks
    options = ("-DSIMULATED", str(waits.benchmark_source("wait.c")), "-Wl,-Bsymbolic", "-lsimgrid")
    program = compiled("smpicc", HERE / "waits.c", tmp_path / "waits", *options)

    def simulated(waiting, speeds, **told):
        nodes = cluster.nodes_to_simulate(replace(machine, waiting=waiting), [str(program)], 2, None)
        by_mhz = {speed.core_mhz: speed for speed in nodes.speeds}
        (tmp_path / "p.xml").write_text(cluster.simgrid_platform(nodes, *(by_mhz[mhz] for mhz in speeds)))
        (tmp_path / "hosts").write_text(cluster.simgrid_hosts(nodes))
        words = ["smpirun", "-np", "2", "-platform", tmp_path / "p.xml", "-hostfile", tmp_path / "hosts"]
        words += [f"--cfg={setting}" for setting in (*cluster.simgrid_settings(nodes), "smpi/test:0", "smpi/wtime:0")]
        words += ["--cfg=smpi/simulate-computation:no", "--log=root.thres:warning", program]
        environment = {**os.environ, **{f"EPROF_WAIT_{name}": str(value) for name, value in told.items()}}
        done = subprocess.run([*map(str, words)], capture_output=True, text=True, env=environment, check=True)
        return tuple(map(float, done.stdout.split()))

    polled_s, polled_j = simulated("poll", [2330], BYTES=10**9)
    assert polled_j == pytest.approx(9.4 * polled_s, rel=1e-6)
    change_s, interrupt_s = 10e-6, 10e-6
    told = {"BYTES": 65536, "CHANGE_S": change_s, "INTERRUPT_S": interrupt_s}
    too_large = simulated("interrupt", [2330, 1900], MHZ=1900, MHZ_BYTES=1048577, **told)
    for clock, changes_s in ((full, 0.0), (low, change_s)):
        speeds = dict.fromkeys((2330, clock.core_mhz))
        mhz = {"MHZ": 1900, "MHZ_BYTES": 1048576} if changes_s else {}
        time_s, energy_j = simulated("interrupt", speeds, **told, **mhz)
        assert changes_s or too_large == pytest.approx((time_s, energy_j), rel=1e-9)
        # Asked in vain, the clock is lowered; each nap ends with an interrupt.
        now_s, joules = changes_s, 9.4 * changes_s
        waited_s = 0.0
        while now_s < polled_s:
            nap_s = int(1e9 * min(max(waited_s / 8, 5e-6), 1e-3)) / 1e9  # whole ns
            joules += clock.idle_w * nap_s + (clock.idle_w + clock.on_chip_w) * interrupt_s
            now_s += nap_s + interrupt_s
            waited_s = now_s
        assert (time_s, energy_j) == pytest.approx((now_s + changes_s, joules + 9.4 * changes_s), rel=1e-4)
        assert energy_j < polled_j * time_s / polled_s


# -------------------------------------------------------------------------------------------------------------- clocks


@pytest.fixture
def machine(tmp_path):
    """Two cores whose clock may be set, as /sys shows them."""
    for number in (0, 1):
        core = tmp_path / f"sys/devices/system/cpu/cpu{number}/cpufreq"
        core.mkdir(parents=True)
        for name, khz in (("scaling_min", 800), ("scaling_max", 3000), ("cpuinfo_min", 400), ("cpuinfo_max", 3200)):
            (core / f"{name}_freq").write_text(f"{khz}000\n")
    return tmp_path


def limits(machine):
    return {
        (int((core / "scaling_min_freq").read_text()), int((core / "scaling_max_freq").read_text()))
        for core in machine.glob("sys/devices/system/cpu/cpu*/cpufreq")
    }


@pytest.mark.parametrize("error", [None, ValueError, PermissionError, KeyboardInterrupt])
def test_a_clock_is_held_and_given_back_whatever_happens(machine, error):
    try:
        with held_at(1900, machine):
            assert limits(machine) == {(1900000, 1900000)}
            if error:
                raise error
    except (ValueError, PermissionError, KeyboardInterrupt):
        assert error
    assert limits(machine) == {(800000, 3000000)}


def test_a_clock_that_cannot_be_set_changes_nothing(machine, monkeypatch, tmp_path):
    with (
        pytest.raises(CollectError, match="--clock 3300: this processor has 400 to 3200 MHz"),
        held_at(3300, machine),
    ):
        pass
    with pytest.raises(CollectError, match="no cpufreq in /sys"), held_at(1900, tmp_path / "nowhere"):
        pass
    with held_at(None, tmp_path / "nowhere"):
        pass
    refused = machine / "sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq"
    write_text = Path.write_text

    def write(path, text):
        if path == refused and text == "1900000":
            raise PermissionError
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", write)
    with (
        pytest.raises(CollectError, match="does not let its clock be set, and none was changed"),
        held_at(1900, machine),
    ):
        pass
    assert limits(machine) == {(800000, 3000000)}
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(CollectError, match="only root may set the clock"), held_at(1900, machine):
        pass


# --------------------------------------------------------------------------------------------------------- the command


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        main(["comm", *words])
    return ended.value.code, *capsys.readouterr()


def test_the_summary_fits_a_screen_and_the_files_say_the_same(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    names = [str(tmp_path / f"comm.{kind}") for kind in ("json", "csv", "md", "html")]
    words = [word for name in names for word in ("-o", name)]
    code, out, _ = run(capsys, "--cluster", table(tmp_path), *words)
    assert code == 0 and len(out.splitlines()) <= 16
    assert all(len(line.rstrip()) <= 80 for line in out.splitlines())
    assert (
        "Blocking pays from 256 KiB on: " in out and "It pays where it takes fewer joules" in out and "58.8 µs" in out
    )
    document = json.loads(Path(names[0]).read_text())
    assert document["schema"] == "eprof.comm/1" and len(document["rows"]) == 7 * 4
    assert Path(names[1]).read_text().count("\n") == 1 + 7 * 4
    for name in names[2:]:
        text = Path(name).read_text()
        assert "Blocking pays from 256" in text and not re.search(r"\bnan\b", text, re.IGNORECASE)
    page = Path(names[3]).read_text()
    assert page.count("<figure") == 2
    # A table's title stands below the heading of its section only where it says something else.
    captions = re.findall('<p class="caption">([^<]*)', page)
    assert captions and not set(captions) & set(re.findall("<h2[^>]*>([^<]*)", page)) and "All" not in captions


def test_messages_of_a_program_are_priced(tmp_path, capsys):
    report, page = tmp_path / "a.mpiP", tmp_path / "a.html"
    report.write_text(MPIP)
    code, out, _ = run(capsys, "--messages", str(report), "--cluster", table(tmp_path), "-v", "-o", str(page))
    assert code == 0
    assert "44 messages, 400 kB" in " ".join(out.split()) and "Allreduce" in out
    # Of a collective operation the joules are a lower bound, in the large figures too.
    figures = [part for part in page.read_text().split("<dt>") if part.startswith(("All messages", "Least"))]
    assert "at least" in out and len(figures) == 2 and all("at least" in figure for figure in figures)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--sizes", "0"], "`0` is no size from 1 B"),
        (["--sizes", "1KiB..x"], "`x` is no size"),
        (["--sizes", "2KiB..1KiB"], "goes from more to less"),
        (["--sizes", "1KiB,2KiB..1KiB"], "goes from more to less"),
        (["--waiting", "pollin"], "`pollin` is none of polling, blocking. Did you mean `polling`?"),
        (["--clock", "fast"], "is no list of clocks in MHz"),
        (["--clock", "1000"], "gigabit-demo has no powers at 1000 MHz"),
        (["--cluster", "nowhere"], "There is no cluster `nowhere`"),
        (["--messages", "nowhere"], "nowhere: cannot be read"),
        (["--messages", "x", "--mpi", "simgrid"], "leave --mpi out"),
        (["--mpi", "openmpi", "-n", "1"], "needs two processes or more"),
        (["--mpi", "openmpi", "--sizes", "1500"], "1500 bytes; the benchmark takes multiples of 8"),
        (["--mpi", "openmpi", "--operations", "send"], "`send` is none of put"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(capsys, words, reason):
    code, out, err = run(capsys, *words)
    assert code in (1, 2) and out == "" and reason in err and err.count("\n") == 1


@pytest.mark.parametrize("options", [["--mpi", "openmpi"], ["--mpi", "simgrid"], ["--shim", "lib.so"]])
def test_without_mpi_a_sentence_says_how_to_install_it(options, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("eprof.profilers.simgrid.collector.executable", lambda *_: None)
    code, out, err = run(capsys, *options)
    assert code == 1 and out == "" and err.count("\n") == 1
    assert "is not installed" in err and "apt install" in err
    assert not list(tmp_path.iterdir())


@needs_mpi
def test_a_clock_of_this_machine_that_cannot_be_set_is_told_before_anything_is_run(capsys, monkeypatch):
    monkeypatch.setattr("eprof.collect.cpufreq.CORES", "nowhere")
    monkeypatch.setattr(mpi, "output_of", lambda *_: pytest.fail("was run"))
    code, _, err = run(capsys, "--mpi", "openmpi", "--clock", "1900")
    assert code == 1 and "this machine lets nobody set its clock" in err


@needs_mpi
def test_the_library_is_written_and_not_over_another_file(capsys, tmp_path):
    target = tmp_path / "libwait.so"
    code, _, err = run(capsys, "--shim", str(target), "--cluster", table(tmp_path), "--sizes", "16KiB..1MiB")
    told = f"LD_PRELOAD={target} EPROF_WAIT_BYTES=262144 EPROF_WAIT_US=58.8 PROGRAM"
    assert code == 0 and told in err and target.read_bytes().startswith(b"\x7fELF")
    code, _, err = run(capsys, "--shim", str(target))
    assert code == 1 and "exists" in err


@needs_mpi
def test_a_program_that_fails_under_mpi_says_why():
    found, _ = mpi.find()
    with pytest.raises(CollectError, match=r"mpirun ended with \d+: "):
        mpi.output_of([*mpi.launch(found, 2), "false"])


def test_c_that_does_not_compile_is_told(tmp_path):
    source = tmp_path / "wrong.c"
    source.write_text("int main( {")
    with pytest.raises(CollectError, match="wrong.c cannot be compiled; .*error"):
        compiled(shutil.which("cc") or pytest.skip("no C compiler"), source, tmp_path / "wrong")


def test_sizes_grow_fourfold():
    assert command.byte_sizes("1KiB..20KiB,8,1kB") == [8, 1000, 1024, 4096, 16384]
    assert command.byte_sizes("2MiB,3 MB,1024MiB") == [2 << 20, 3 * 10**6, 1 << 30]
    with pytest.raises(UsageError):
        command.byte_sizes("2GiB")

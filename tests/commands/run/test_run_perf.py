"""`eprof run --profiler perf`, with a stand-in that replays rows, and with the real perf, which counts nothing in a VM."""

import shutil
import subprocess

import pytest

from eprof.profile import api
from eprof.profilers.callgrind.collector import COLLECTOR as callgrind
from eprof.profilers.perf.collector import COLLECTOR as perf

CORES = """\
1000;;fp_arith_inst_retired.scalar_double;40;100.00;;
2000;;fp_arith_inst_retired.256b_packed_double;40;50.00;;
0;;fp_arith_inst_retired.128b_packed_double;40;50.00;;
0;;fp_arith_inst_retired.512b_packed_double;40;50.00;;
2000000000;ns;duration_time;2000000000;100.00;;
"""
SOCKETS = """\
4,00;MiB;uncore_imc/cas_count_read/;40;100,00;;
1,00;MiB;uncore_imc/cas_count_write/;40;100,00;;
90,00;Joules;power/energy-pkg/;4000000000;100,00;;
2000000000;ns;duration_time;2000000000;100,00;;
"""


@pytest.fixture
def xeon(bench, monkeypatch):
    """A machine with perf and an Ice Lake Xeon, whose RAPL only perf may read."""
    bench.tool("perf", "perf.py")
    bench.more.update(STAND_IN_CORES=CORES, STAND_IN_SOCKETS=SOCKETS)
    return bench


def measured(bench, *options, name="program.eprof"):
    done = bench.run("--profiler", "perf", "--capability", "icelake-sp", "--no-report", *options)
    return done, api.load(bench.folder / name, capability="icelake-sp").energy("i7-950").document()


def test_events_of_the_program_and_of_its_sockets_are_joined(xeon):
    done, document = measured(xeon, xeon.script("echo out; echo run >> runs; exit 3\n"))
    assert (done.returncode, done.stdout) == (3, "out\n"), done.stderr
    assert (xeon.folder / "runs").read_text() == "run\n" * 2
    (kernel,) = document["kernels"]
    assert (kernel["name"], kernel["time_s"], kernel["launches"]) == ("./program", 2, 1)
    counts = kernel["counts"]
    assert (counts["fp64"]["value"], counts["fp64"]["marks"]) == (1000 + 4 * 2000, ["estimated", "assumed"])
    assert counts["dram_read"]["value"] == 4 * 2**20
    assert document["energy_j"]["measured"] == 90
    outer = xeon.manifest()["measurements"][-1]["command"]
    inner = outer[outer.index("--") + 1 :]
    assert (
        outer[outer.index("-a") + 1 :][4]
        == "uncore_imc/cas_count_read/,uncore_imc/cas_count_write/,power/energy-pkg/,power/energy-ram/,duration_time"
    )
    assert "fp_arith_inst_retired.512b_packed_double" in inner[inner.index("-e") + 1].split(",")
    assert inner[inner.index("--") + 1 :] == ["./program"]


def test_where_sockets_may_not_be_read_the_program_alone_is_counted(xeon):
    xeon.more["STAND_IN_PERF"] = "no-sockets"
    _, document = measured(xeon, xeon.script("true\n"))
    assert "-a" not in xeon.manifest()["measurements"][-1]["command"]
    assert document["counts"]["fp64"]["value"] == 9000
    assert document["energy_j"]["measured"] is None


def test_a_program_that_a_signal_ends_keeps_its_exit_code(xeon):
    done = xeon.run("--profiler", "perf", "--capability", "icelake-sp", xeon.script("kill -9 $$\n"))
    assert done.returncode == 128 + 9


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("paranoid", "perf may not count here (perf_event_paranoid is "),
        ("paranoid", "sudo sysctl kernel.perf_event_paranoid=1"),
        ("no-counters", "perf finds no counters in this processor, as in most virtual machines"),
    ],
)
def test_what_keeps_perf_from_counting_is_a_sentence(wrong, words, xeon):
    xeon.more["STAND_IN_PERF"] = wrong
    done = xeon.run("--profiler", "perf", xeon.script("touch ran\n"))
    assert done.returncode == 1
    assert words in " ".join(done.stderr.split())
    assert not (xeon.folder / "ran").exists()


def test_counts_that_perf_lost_are_no_report(xeon):
    xeon.more["STAND_IN_PERF"] = "lost"
    done = xeon.run("--profiler", "perf", "--capability", "icelake-sp", xeon.script("true\n"))
    assert done.returncode == 1
    assert "perf counted nothing: perf: Segmentation fault." in done.stderr


def test_the_real_perf_counts_or_says_why_not(bench):
    path = shutil.which("perf")
    if path is None:
        pytest.skip("needs perf")
    for name in ("perf", "valgrind"):
        (bench.bin / name).unlink()
    answer = subprocess.run([path, "stat", "-e", "instructions:u", "true"], capture_output=True, text=True, check=False)
    tool = perf.find()
    assert tool.usable == (not any(word in answer.stderr for word in ("<not", "rror")))
    if not tool.usable:
        done = bench.run("--profiler", "perf", "true")
        assert done.returncode == 1
        assert done.stderr.startswith("eprof: perf cannot be used here. perf: perf ")
        chosen = bench.run("--dry-run", "true").stdout.splitlines()[0]
        assert chosen.startswith("# profiler callgrind") or not callgrind.find().usable
        assert f"perf: {tool.why}" in chosen

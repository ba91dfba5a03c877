"""Simulated clusters: with a stand-in for SimGrid what a run leaves and survives, with SimGrid itself its energies."""

import json
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
import warm
from hypothesis import given
from hypothesis import strategies as st

from eprof import profilers
from eprof.cli import main
from eprof.clusters import cluster
from eprof.collect.collector import Place, Request, Tool
from eprof.profilers.simgrid import collector

ROOT = Path(__file__).parents[3]
DEMO = ("--profiler", "simgrid", "--cluster", "gigabit-demo", "-n", "4", "--size", "1e9")
LOG = (
    "[7.661194] [host_energy/INFO] Total energy consumption: 9.5 Joules (used hosts: 3854.972073 Joules; unused: 5.0)\n"
)
LINKS = "[7.661194] [link_energy/INFO] Total energy over all links: 433.295787\n"
needs_simgrid = pytest.mark.skipif(not shutil.which("smpicc"), reason="SimGrid is not installed (libsimgrid-dev)")

# --------------------------------------------------------------------------------------------- with a stand-in for smpirun


@pytest.fixture
def clusters(bench):
    """A bench on which SimGrid seems to be installed, and a program that seems to be linked with it."""
    bench.tool("smpirun", "smpirun.py")
    bench.script(": libsimgrid smpi_execute_flops\n")
    return bench


def test_a_program_is_run_once_and_its_trace_replayed_at_the_other_clocks(clusters):
    done = clusters.run(*DEMO, "-q", "-o", "a.json", "./program", "ft", "1000000000", "6")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "simulating\n"
    record = clusters.manifest()
    first, second = (measurement["command"] for measurement in record["measurements"])
    assert (record["status"], record["cluster"]["marks"]) == ("complete", ["simulated", "assumed"])
    assert first[-4:] == ["./program", "ft", "1000000000", "6"]
    assert {"--cfg=smpi/alltoall:pair", "--cfg=smpi/simulate-computation:no", "-trace-ti"} <= set(first)
    assert Path(second[second.index("-replay") + 1]) == clusters.folder / "program.eprof" / "logs" / "trace.txt"
    rows = json.loads((clusters.folder / "a.json").read_text())["rows"]
    assert [(row["program"], row["size"], row["processors"], row["marks"]) for row in rows] == [
        ("program ft N 6", 1e9, 4, ["simulated", "assumed"])
    ] * 2
    refused = warm.run(("report", "program.eprof"), clusters.folder, clusters.environment())
    assert "`eprof scale program.eprof` reports on it" in refused.stderr
    energies = {row["core_mhz"]: (row["time_s"], row["energy_j"]) for row in rows}
    assert energies == {2400: (8.035695, 3796.685246), 2800: (7.661194, 3854.972073)}


def test_a_program_that_does_not_state_its_flops_is_timed_and_its_energy_estimated(clusters):
    clusters.script(": libsimgrid\n")
    done = clusters.run(*DEMO, "./program")
    record = clusters.manifest()
    assert record["cluster"]["marks"] == ["estimated", "simulated", "assumed"]
    assert "--cfg=smpi/host-speed:2800000000.0f" in record["measurements"][0]["command"]
    assert "timed on this machine" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--profiler", "simgrid", "./program"), "needs a cluster and processes"),
        (("--profiler", "simgrid", "--cluster", "gigabit-dem", "-n", "4", "./program"), "Did you mean `gigabit-demo`"),
        ((*DEMO, "-n", "129", "./program"), "-n 129: gigabit-demo has 128 nodes"),
        ((*DEMO, "--size", "0", "./program"), "--size 0: is no size"),
        ((*DEMO, "--costs", "jetson-tk1", "./program"), "--costs means nothing to simgrid"),
        ((*DEMO, "./program", "a b"), "`a b`: smpirun passes on no words with spaces"),
        ((*DEMO, "/bin/true"), "/bin/true: is not linked with SimGrid; compile it with smpicc"),
        (("--cluster", "gigabit-demo", "./program"), "--cluster is for --profiler simgrid"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_a_sentence(clusters, monkeypatch, capsys, arguments, reason):
    monkeypatch.chdir(clusters.folder)
    monkeypatch.setenv("PATH", str(clusters.bin))
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments])
    assert ended.value.code
    assert reason in capsys.readouterr().err
    assert not list(clusters.folder.glob("*.eprof/logs/*"))


def test_without_simgrid_a_sentence_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(collector, "executable", lambda *_: None)
    found = collector.COLLECTOR.find()
    assert not found.usable and "SimGrid is not installed" in found.why
    assert found.remedy == "apt install libsimgrid-dev"


def test_a_profiler_of_clusters_is_never_chosen_by_itself(clusters, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(clusters.bin))
    monkeypatch.setattr(profilers, "collectors", lambda: [collector.COLLECTOR])
    with pytest.raises(SystemExit):
        main(["run", str(clusters.folder / "program")])
    assert "No profiler can be used here" in capsys.readouterr().err
    assert collector.COLLECTOR.find().version == "3.32"


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ("dies", "The simulation at 2800mhz did not come to its end"),
        ("cut", "A process did not come to its end, or its trace is cut off: no energy, and nothing to replay."),
    ],
)
def test_a_simulation_that_fails_is_told_and_keeps_what_it_has(clusters, trouble, reason):
    clusters.more["STAND_IN_SMPIRUN"] = trouble
    done = clusters.run(*DEMO, "./program")
    assert done.returncode == {"dies": 134, "cut": 1}[trouble]
    assert reason in done.stderr
    record = clusters.manifest()
    assert record["status"] == "partial"
    assert "Nothing was collected to report on" in done.stderr
    assert list(cluster.simulated_runs(clusters.folder / "program.eprof", record, [])) == []


def test_interrupted_in_a_replay_the_first_clock_is_kept(clusters):
    clusters.more["STAND_IN_SMPIRUN"] = "hangs"
    running = clusters.start_warm(*DEMO, "./program", session=True)
    clusters.await_file("replaying")
    running.send_signal(signal.SIGINT)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 130
    assert "Interrupted by SIGINT" in err
    assert "1 simulated run\n" in out and "3.85 kJ" in out


# ------------------------------------------------------------------------------------------------------------- what is read


@given(st.integers(0, len(LOG)), st.integers(0, len(LINKS)))
def test_logs_that_are_cut_at_any_byte_have_their_whole_energy_or_none(tmp_path_factory, end, links_end):
    log = tmp_path_factory.mktemp("logs") / "2800mhz-1.log"
    log.write_text(LOG[:end])
    assert cluster.simulated_energy(log) in (None, (7.661194, 3854.972073, None))
    cluster.links_log(log).write_text(LINKS[:links_end])
    whole = (7.661194, 3854.972073, 433.295787)
    assert cluster.simulated_energy(log) in (None, whole)
    cluster.links_log(log).write_text(LINKS)
    log.write_text(LOG)
    assert cluster.simulated_energy(log) == whole


TRACE = b"0 init\n0 compute 1e9\n0 allReduce 1 5e6 0\n0 finalize\n"


@given(st.integers(0, len(TRACE)))
def test_a_trace_that_is_cut_at_any_byte_is_not_whole(tmp_path_factory, end):
    file = tmp_path_factory.mktemp("trace") / "1_rank-1.txt"
    file.write_bytes(TRACE[:end])
    assert collector.whole([file], 1) == (end == len(TRACE))
    assert not collector.whole([file], 2)


def test_runs_on_a_cluster_of_ones_own_have_its_name(clusters):
    own = (ROOT / "costs" / "clusters" / "gigabit-demo.toml").read_text().replace('"gigabit-demo"', '"mine"')
    (clusters.folder / "mine.toml").write_text(own)
    assert clusters.run(*DEMO, "--cluster", "mine.toml", "--no-report", "./program").returncode == 0
    runs = cluster.simulated_runs(clusters.folder / "program.eprof", clusters.manifest(), [])
    assert {(run.program, run.cluster) for run in runs} == {("program", "mine")}


# ------------------------------------------------------------------------------------------------------------ SimGrid itself


@pytest.fixture(scope="module")
def skeletons(tmp_path_factory):
    program = tmp_path_factory.mktemp("mpi") / "skeletons"
    source = ROOT / "samples" / "mpi" / "skeletons.c"
    subprocess.run(["smpicc", "-O2", source, "-o", program, "-lm"], check=True, capture_output=True)
    return str(program)


def simulate(folder, words, processes, on=None):
    """The energies of a program at each clock, by the commands that `eprof run` would run."""
    (folder / "logs").mkdir(parents=True)
    nodes = cluster.nodes_to_simulate(on or cluster.load("gigabit-demo"), words, processes, None)
    request = Request(tuple(words), nodes=nodes)
    tool = Tool("simgrid", True, "", shutil.which("smpirun"))
    energies = {}
    for what in collector.COLLECTOR.order(request):
        step = collector.COLLECTOR.step(what, tool, request, Place(folder))
        for name, content in step.files.items():
            (folder / name).write_text(content)
        done = subprocess.run(step.command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        energies[what] = cluster.simulated_energy(folder / "logs" / step.logs[0])
    return energies


@needs_simgrid
def test_the_energies_are_those_of_simgrid_on_a_platform_of_ones_own(skeletons, tmp_path):
    words = [skeletons, "ft", "33554432", "6"]
    found = simulate(tmp_path / "a", words, 4)
    assert found["2800mhz"] == (7.661194, pytest.approx(3854.972073, rel=1e-6), None)
    assert found["2400mhz"].hosts_j == pytest.approx(3796.68, rel=1e-5)
    # What computes, at 105 W above idle, and four nodes idle for as long: SimGrid's own sum.
    assert found["2800mhz"].hosts_j == pytest.approx(8.987794 * 105 + 4 * 7.661194 * 95, rel=1e-6)
    assert simulate(tmp_path / "b", words, 4) == found


@needs_simgrid
def test_one_process_takes_its_work_over_the_clock_times_the_power(skeletons, tmp_path):
    found = simulate(tmp_path / "a", [skeletons, "ep", "1e9", "1"], 1)["2800mhz"]
    assert (found.time_s, found.hosts_j) == pytest.approx((100e9 / 2.8e9, 100e9 / 2.8e9 * 200), rel=1e-6)

"""`eprof run` with a stand-in for nvprof: plan, three measurements, faults. The real tool is called where it is there."""

import json
import os
import shutil

import pytest

from eprof.collect.collector import COUNTERS, Place, Request, Tool
from eprof.profile import api
from eprof.profilers.nvprof.collector import COLLECTOR


@pytest.fixture
def kepler(bench):
    """A machine with a Tesla K20c and nvprof."""
    bench.nvprof()
    return bench


def load(bench, name="program.eprof"):
    return api.load(bench.folder / name).energy("jetson-tk1").document()


def test_time_and_counters_come_from_two_runs_and_are_joined(kepler):
    program = kepler.script("echo out; echo run >> runs\n")
    done = kepler.run("--no-report", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out\n"
    assert (kepler.folder / "runs").read_text() == "run\n" * 2
    said = kepler.manifest()
    assert said["status"] == "complete"
    assert [one["what"] for one in said["measurements"]] == ["time", "counters"]
    time_run, counting = (one["command"] for one in said["measurements"])
    assert "--print-gpu-trace" in time_run
    assert "--metrics" not in time_run
    assert "flop_count_dp_fma" in counting[counting.index("--metrics") + 1].split(",")
    assert "l1_global_load_hit" in counting[counting.index("--events") + 1].split(",")
    document = load(kepler)
    assert document["launches"] == 3
    assert document["time_s"] == pytest.approx(1500e-9)
    assert document["counts"]["fp64_fma"]["value"] == 3000
    assert document["device"]["name"] == "Tesla K20c"
    assert document["energy_j"]["measured"] is None
    assert (kepler.folder / "program.eprof" / "output" / "counters-1.out").read_text() == "out\n"


def test_the_same_input_reaches_every_run(kepler):
    program = kepler.script("cat >> all\n")
    kepler.run("--no-report", program, stdin="from a pipe\n")
    assert (kepler.folder / "all").read_text() == "from a pipe\n" * 2
    (kepler.folder / "input").write_text("skipped\nfrom a file\n")
    with (kepler.folder / "input").open() as file:
        os.lseek(file.fileno(), 8, os.SEEK_SET)
        kepler.run("--no-report", program, stdin=file)
    assert (kepler.folder / "all").read_text() == "from a pipe\n" * 2 + "from a file\n" * 2


def test_the_dry_run_shows_commands_and_reasons_and_runs_nothing(kepler):
    program = kepler.script("touch ran\n")
    done = kepler.run("--dry-run", "--costs", "jetson-tk1", program, "a b")
    assert done.returncode == 0, done.stderr
    assert "--print-gpu-trace" in done.stdout
    assert "# dram_read_transactions: DRAM read" in done.stdout
    assert f"{program} 'a b'" in done.stdout
    assert "will be missing" not in done.stdout
    assert "passes over each kernel: 1\n" not in done.stdout, "that is how often any program runs"
    assert not (kepler.folder / "ran").exists()
    assert not list(kepler.folder.glob("*.eprof"))


def test_repeated_times_are_medians_with_a_spread(kepler):
    program = kepler.script("true\n")
    shutil.copy(kepler.bin / "nvprof", kepler.bin / "nvprof-real")
    kepler._script(
        kepler.bin / "nvprof",
        f'#!/bin/bash\nn=$(cat {kepler.folder}/n 2>/dev/null || echo 0); case "$*" in *print-gpu-trace*) '
        f'echo $((n+1)) > {kepler.folder}/n; export STAND_IN_NS=$((500 + 100 * n));; esac; exec {kepler.bin}/nvprof-real "$@"\n',
    )
    assert kepler.run("--no-report", "--repeat", "3", program).returncode == 0
    document = load(kepler)
    assert document["launches"] == 3
    assert document["time_s"] == pytest.approx(3 * 600e-9)
    assert any("medians over 3 repetitions" in one and "spread 33 %" in one for one in document["warnings"])


def test_other_work_each_time_is_told_with_numbers(kepler):
    program = kepler.script("true\n")
    assert kepler.run("--no-report", program, env={"STAND_IN_OTHER_LAUNCHES": "5"}).returncode == 0
    assert any("3 launches" in one and "of 5" in one for one in load(kepler)["warnings"])


def test_every_process_has_its_log_and_the_report_is_one(kepler):
    program = kepler.script("true\n")
    assert kepler.run("--no-report", program, env={"STAND_IN_PROCESSES": "4"}).returncode == 0
    assert len(list((kepler.folder / "program.eprof" / "logs").glob("counters-1-*.csv"))) == 4
    document = load(kepler)
    assert document["launches"] == 3 + 4 + 5 + 6
    assert any("4 processes" in one and "3 to 6 launches each" in one for one in document["warnings"])


def test_energy_is_measured_in_a_run_of_its_own(kepler):
    kepler.meter()
    program = kepler.script("echo part a; sleep 0.3\n")
    done = kepler.run("--mark", "part (.)", program)
    assert done.returncode == 0, done.stderr
    said = kepler.manifest()
    assert [one["what"] for one in said["measurements"]] == ["time", "energy", "counters"]
    energy = said["measurements"][1]
    assert energy["command"] == [program]
    assert energy["runs"] > 1 and energy["energy"]["window_s"] >= 5  # short programs fill the meter's window
    per_run = energy["energy"]["window_s"] / energy["runs"]
    assert energy["energy"]["joules"] == pytest.approx(100 * per_run, rel=0.05)
    assert load(kepler)["energy_j"]["measured"] == energy["energy"]["joules"]
    rows = (kepler.folder / "program.eprof" / "power.csv").read_text().splitlines()
    assert rows[0] == "time_s,power_w,energy_j,core_mhz,memory_mhz,temperature_c"
    assert len(rows) - 1 == energy["energy"]["samples"] > 5
    # Beside it power by component, of the same runs as the marks.
    assert (kepler.folder / "program.eprof" / "components.csv").read_text().startswith("time_s,gpu0_j\n")
    marks = (kepler.folder / "program.eprof" / "marks.csv").read_text().splitlines()[1:]
    assert [line.split(",")[2] for line in marks] == ["a", "program"] * energy["runs"]
    # No table is made for this GPU, so the estimated one is scaled to the meter.
    assert "Split by prices estimated for a GPU that nobody measured, times" in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("mode", "code", "says"),
    [
        ("permission", 1, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("cc80", 1, "use ncu"),
        ("silent", 1, "nvprof wrote no log"),
        ("no-driver", 1, "found no NVIDIA driver (libcuda.so.1)"),
        ("no-device", 1, "see whether nvidia-smi works here"),
        ("overflow", 0, "overflowed"),
    ],
)
def test_what_nvprof_complains_of_is_told_in_one_sentence(kepler, mode, code, says):
    program = kepler.script("true\n")
    done = kepler.run("--no-report", program, env={"STAND_IN": mode})
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert kepler.manifest()["warnings"]


def test_nvprof_that_gives_up_is_quoted(kepler):
    """As 11.8 does when it is to count and CUDA finds no device: no log, and the program is not run."""
    done = kepler.run("--no-report", kepler.script("echo run >> runs; exit 3\n"), env={"STAND_IN": "internal"})
    assert done.returncode == 3, done.stderr
    assert "nvprof wrote no log (exit code 4): internal error." in done.stderr
    assert "but with" not in done.stderr
    assert (kepler.folder / "runs").read_text() == "run\n"


@pytest.mark.parametrize(
    ("kernel", "pattern"),
    [("solver::step", "solver..step"), ("regex:(?:a|b)::run", "(a|b)..run"), ("work(int)", r"work\(int\)")],
)
def test_colons_of_kernels_are_none_of_a_path(tmp_path, kernel, pattern):
    """`nvprof --help`: --kernels takes CONTEXT:STREAM:KERNEL:INVOCATION."""
    tool = Tool("nvprof", True, "", "/usr/bin/nvprof")
    step = COLLECTOR.step(COUNTERS, tool, Request(("./a",), (kernel,)), Place(tmp_path), ["inst_integer"])
    assert step.command[step.command.index("--kernels") + 1] == pattern


def test_without_a_driver_the_exit_code_is_the_programs(kepler):
    done = kepler.run("--no-report", kepler.script("exit 3\n"), env={"STAND_IN": "no-driver"})
    assert done.returncode == 3, done.stderr


@pytest.mark.parametrize(
    ("name", "is_event"),
    [
        ("gld_transactions", False),  # CUPTI 11.8 numbers these as metrics
        ("gst_requested_throughput", False),
        ("l1_cache_global_hit_rate", False),
        ("l2_tex_read_transactions", False),
        ("gld_inst_8bit", True),
        ("gst_request", True),
        ("l1_global_load_hit", True),
        ("l1_shared_bank_conflict", True),
        ("fb_subp0_read_sectors", True),
    ],
)
def test_events_and_metrics_are_asked_for_as_such(tmp_path, name, is_event):
    tool = Tool("nvprof", True, "", "/usr/bin/nvprof")
    command = COLLECTOR.step(COUNTERS, tool, Request(("./a",)), Place(tmp_path), [name]).command
    assert command[command.index(name) - 1] == ("--events" if is_event else "--metrics")


@pytest.mark.parametrize(("body", "code"), [("exit 5", 5), ("kill -SEGV $$", 139)])
def test_the_exit_code_that_nvprof_hides_is_found_again(kepler, body, code):
    done = kepler.run("--no-report", kepler.script(body + "\n"))
    assert done.returncode == code, done.stderr


def test_a_program_without_kernels(kepler):
    done = kepler.run(kepler.script("true\n"), env={"STAND_IN_LAUNCHES": "0"})
    assert done.returncode == 1
    assert "No kernel ran on the GPU" in done.stderr
    assert [one["what"] for one in kepler.manifest()["measurements"]] == ["time"]


def test_time_only(kepler):
    assert kepler.run("--no-report", "--time-only", kepler.script("true\n")).returncode == 0
    assert [one["what"] for one in kepler.manifest()["measurements"]] == ["time"]


def test_the_profiler_is_chosen_with_reasons(kepler):
    kepler.ncu()
    done = kepler.run("--no-report", kepler.script("true\n"), env={"STAND_IN_GPU": "NVIDIA H100, 9.0"})
    assert "profiler ncu 2024.1.1" in done.stderr
    assert "nvprof: it does not count on NVIDIA H100 (capability 9.0" in done.stderr
    done = kepler.run("--profiler", "nvprof", "true", env={"STAND_IN_GPU": "NVIDIA H100, 9.0"})
    assert done.returncode == 1
    assert "use ncu" in done.stderr


def test_launches_are_chosen_by_ncu_alone(kepler):
    done = kepler.run("--launch-count", "3", kepler.script("true\n"))
    assert done.returncode == 2
    assert "need ncu" in done.stderr


def test_real_logs_replayed(kepler, real_log):
    """Real logs of a K20c go through collection and report unchanged."""
    logs = {
        "STAND_IN_TRACE": str(real_log("k20c-gpu-trace.csv")),
        "STAND_IN_COUNTERS": str(real_log("k20c-metrics-summary.csv")),
    }
    done = kepler.run("--no-report", kepler.script("true\n"), env=logs)
    assert done.returncode == 0, done.stderr
    names = {one["name"] for one in load(kepler)["kernels"]}
    assert any("forma_kernel" in name for name in names)


def test_a_hanging_program_under_nvprof_still_leaves_a_log(kepler):
    done = kepler.run_until_hang("--time-only", kepler.script(": > hangs; exec sleep 100\n"))
    assert done.returncode == 143, done.stderr
    assert "still running after 100 s" in done.stderr
    assert load(kepler)["launches"] == 3


def test_a_gpu_that_nobody_knows_still_has_its_times_reported(kepler):
    program = kepler.script("true\n")
    (kepler.bin / "nvidia-smi").unlink()
    (kepler.bin / "nvprof").write_text((kepler.bin / "nvprof").read_text().replace("Tesla K20c", "Nobody 9000"))
    kepler.tool("nvidia-smi", "nvidia_smi.py")
    done = kepler.run("--no-report", program, env={"STAND_IN_GPU": "Nobody 9000, 3.5"})
    assert done.returncode == 0, done.stderr
    document = api.load(kepler.folder / "program.eprof", capability="3.5").energy("jetson-tk1").document()
    assert document["counts"]["fp64_fma"]["value"] == 3000


def test_run_directories_of_ranks_make_one_report(kepler):
    program = kepler.script("true\n")
    for launches in ("3", "6"):
        assert kepler.run("--no-report", program, env={"STAND_IN_LAUNCHES": launches}).returncode == 0
    names = [kepler.folder / name for name in ("program.eprof", "program-2.eprof")]
    document = api.load(*names).energy("jetson-tk1").document()
    assert document["launches"] == 9
    assert any("2 runs: 3 to 6 launches each" in one for one in document["warnings"])


def test_a_plan_that_fails_leaves_the_times(kepler):
    """The counters of a GPU that nobody knows cannot be planned: the time was measured before, and is kept."""
    for name in ("nvprof", "nvidia-smi"):
        (kepler.bin / name).write_text((kepler.bin / name).read_text().replace("Tesla K20c", "Nobody 9000"))
    done = kepler.run(
        "--no-report", kepler.script("true\n"), env={"STAND_IN_GPU": "Nobody 9000,", "STAND_IN": "no-query"}
    )
    assert done.returncode == 1
    assert "No counters measurement: The compute capability of Nobody 9000" in done.stderr
    assert kepler.manifest()["status"] == "partial"
    assert [one["what"] for one in kepler.manifest()["measurements"]] == ["time"]


def test_a_trace_of_a_run(kepler):
    """nvprof's own trace tells when launches ran; the report's joules are those of the launches in it."""
    program = kepler.script("true\n")
    done = kepler.run("--costs", "jetson-tk1", "-q", "-o", "trace.json", program)
    assert done.returncode == 0, done.stderr
    trace = json.loads((kepler.folder / "trace.json").read_text())
    launches = [row for row in trace["traceEvents"] if row.get("ph") == "X"]
    assert len(launches) == 3 and sum(row["dur"] for row in launches) == pytest.approx(1.5)

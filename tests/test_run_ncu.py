"""`eprof run` with a stand-in for ncu: plan, report, faults."""

import json
import os
import signal

import pytest

from eprof import api, counters


@pytest.fixture
def hopper(bench):
    """A machine with an H100 and ncu."""
    bench.ncu()
    return bench


def document(bench, name="program.eprof", **how):
    return api.load(bench.folder / name, **how).energy("jetson-tk1").document()


def test_the_report_of_a_run(hopper):
    program = hopper.script("echo out; echo run >> runs\n")
    done = hopper.run("--costs", "jetson-tk1", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("out\n")
    assert (hopper.folder / "runs").read_text() == "run\n" * 2  # time and counters, apart
    said = hopper.manifest()
    assert said["status"] == "complete"
    assert [(one["what"], one["kernels"]) for one in said["measurements"]] == [("time", None), ("counters", 3)]
    command = said["measurements"][1]["command"]
    for words in ("--clock-control none", "--print-units base", "--target-processes all", "--page raw"):
        assert words in " ".join(command)
    found = document(hopper)
    assert found["device"]["name"] == "NVIDIA H100 80GB HBM3"
    assert found["launches"] == 3
    assert found["counts"]["fp64_fma"]["value"] == 3000
    assert found["counts"]["dram_read"]["value"] == 72000
    assert found["time_s"] == pytest.approx(6e-6)
    assert "estimated" in found["time_marks"]  # ncu's own time is that of replayed, cold kernels
    assert not any("contradict" in one for one in found["warnings"])
    assert (hopper.folder / "program.eprof" / "report.html").is_file()


def test_only_what_is_offered_is_asked_for(hopper):
    """A counter that `--query-metrics` does not list is not asked for, and what that costs is said."""
    (definition,) = (one for one in counters.definitions() if one.name == "ncu/hopper-9.0")
    names = {name.partition("[")[0].removesuffix(".sum") for name in definition.wanted}
    offer = {"STAND_IN_OFFER": " ".join(sorted(names)), "STAND_IN_LOST": "dram__ lts__t_sectors_op_read_lookup_miss"}
    done = hopper.run("--costs", "jetson-tk1", "--no-report", hopper.script("true\n"), env=offer)
    assert done.returncode == 0, done.stderr
    asked = " ".join(hopper.manifest()["plan"]["counters"])
    assert "op_dfma_pred_on" in asked
    assert "dram__" not in asked
    assert "DRAM read" in done.stderr
    assert "will be missing: the profiler of this machine does not offer" in done.stderr
    assert document(hopper)["counts"]["dram_read"]["value"] is None


@pytest.mark.parametrize(
    ("mode", "code", "says"),
    [
        ("permission", 1, "NVreg_RestrictProfilingToAdminUsers=0"),
        ("old-gpu", 1, "use nvprof for capability below 7.0"),
        ("busy", 1, "dcgmi profile --pause"),
        ("no-driver", 1, "install one"),
        ("no-metric", 1, "does not know a counter"),
        ("no-kernel", 1, "No kernel ran on the GPU"),
        ("silent", 1, "ncu wrote no log"),
    ],
)
def test_what_ncu_complains_of_is_told_in_one_sentence(hopper, mode, code, says):
    done = hopper.run(hopper.script("true\n"), env={"STAND_IN": mode})
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert len([line for line in done.stderr.splitlines() if says in line]) == 1
    assert "Traceback" not in done.stderr
    assert hopper.manifest()["status"] == "partial"
    assert not (hopper.folder / "program.eprof" / "report.html").exists()


@pytest.mark.parametrize(("body", "code"), [("exit 5", 5), ("kill -SEGV $$", 139)])
def test_the_programs_own_end_passes_through(hopper, body, code):
    done = hopper.run("--no-report", hopper.script(body + "\n"))
    assert done.returncode == code, done.stderr


def test_a_program_that_fails_under_ncu_only(hopper):
    program = hopper.script("[ -e once ] && exit 7\ntouch once\n")
    done = hopper.run("--no-report", program)
    assert done.returncode == 0, done.stderr
    assert "ended with 7 in the counters run, but with 0 in the first run" in done.stderr
    assert document(hopper)["launches"] == 3


def test_a_gpu_before_volta_is_not_for_ncu(hopper):
    done = hopper.run("--profiler", "ncu", "true", env={"STAND_IN_GPU": "Tesla K20c, 3.5"})
    assert done.returncode == 1
    assert "it does not know Tesla K20c (capability 3.5; 7.0 is its first) (use nvprof)" in done.stderr


def test_launches_and_clocks_are_as_asked(hopper):
    words = (
        "--launch-skip",
        "1",
        "--launch-count",
        "1",
        "--nvtx",
        "solve/",
        "--lock-clocks",
        "-k",
        "work",
        "-k",
        "regex:^x",
    )
    assert hopper.run("--no-report", *words, hopper.script("true\n")).returncode == 0
    command = " ".join(hopper.manifest()["measurements"][1]["command"])
    for part in (
        "--launch-skip 1",
        "--launch-count 1",
        "--nvtx-include solve/",
        "--clock-control base",
        "-k regex:^work$|^x",
    ):
        assert part in command
    assert document(hopper)["launches"] == 1


def test_processes_in_one_log_make_one_report(hopper):
    assert hopper.run("--no-report", hopper.script("true\n"), env={"STAND_IN_PROCESSES": "3"}).returncode == 0
    found = document(hopper)
    assert found["launches"] == 3 + 4 + 5
    assert found["counts"]["fp64_fma"]["value"] == 12000


def test_a_hanging_program_under_ncu_still_leaves_a_log(hopper):
    """The first run ends by itself, the one under ncu does not: ncu is spared, and writes what it has."""
    program = hopper.script("[ -e once ] && exec sleep 30\ntouch once\n")
    done = hopper.run("--no-report", "--timeout", "0.7", program)
    assert "still running after 0.7 s" in done.stderr
    assert hopper.manifest()["status"] == "partial"
    assert document(hopper)["launches"] == 3


def test_ncu_killed_at_work_leaves_the_run_readable(hopper):
    program = hopper.script("[ -e once ] && { touch counting; exec sleep 30; }\ntouch once\n")
    running = hopper.start("--no-report", program, start_new_session=True)
    hopper.await_file("counting")
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=30)
    said = hopper.manifest()
    assert said["status"] == "partial"
    assert [one["what"] for one in said["measurements"]] == ["time"]


def test_json_on_standard_output(hopper):
    done = hopper.run("--format", "json", "--costs", "jetson-tk1", hopper.script("echo chatter\n"))
    assert json.loads(done.stdout)["launches"] == 3
    assert "chatter" in done.stderr


def test_a_real_log_replayed(hopper):
    from conftest import SHARED

    log = SHARED / "ncu" / "b200-raw-wide.csv"
    if not log.exists():
        pytest.skip("needs the real log b200-raw-wide.csv, which is not part of this project")
    gpu = {"STAND_IN_GPU": "NVIDIA B200, 10.0", "STAND_IN_COUNTERS": str(log)}
    done = hopper.run("--no-report", hopper.script("true\n"), env=gpu)
    assert done.returncode == 0, done.stderr
    found = document(hopper)
    assert found["device"]["name"] == "NVIDIA B200"
    assert found["device"]["capability"] == "10.0"
    assert any("flash_fwd_kernel" in one["name"] for one in found["kernels"])

"""`eprof run` with a stand-in for ncu: plan, report, faults."""

import json
import os
import signal

import pytest

from eprof.counts import definition_files
from eprof.profile import api


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
    (definition,) = (one for one in definition_files.definitions() if one.name == "ncu/hopper-9.0")
    names = {name.partition("[")[0].removesuffix(".sum") for name in definition.profiler_names}
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


def test_without_a_driver_ncu_does_not_run_the_program(hopper):
    """Its exit code, and the one in its log, are then its own."""
    done = hopper.run(hopper.script("echo run >> runs; exit 3\n"), env={"STAND_IN": "no-driver"})
    assert done.returncode == 3, done.stderr
    assert (hopper.folder / "runs").read_text() == "run\n"
    assert "but with" not in done.stderr
    assert "No kernel ran" not in done.stderr


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
    program = hopper.script("[ -e once ] && { : > hangs; exec sleep 100; }\ntouch once\n")
    done = hopper.run_until_hang(program)
    assert "still running after 100 s" in done.stderr
    assert hopper.manifest()["status"] == "partial"
    assert document(hopper)["launches"] == 3


def test_ncu_killed_at_work_leaves_the_run_readable(hopper):
    program = hopper.script("[ -e once ] && { : > counting; exec sleep 100; }\ntouch once\n")
    running = hopper.start("--no-report", program, start_new_session=True)
    hopper.await_file("counting")
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate(timeout=300)
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


# ------------------------------------------------------------------------------------ times, traced by nsys


@pytest.fixture
def traced(hopper):
    """A machine with an H100, ncu and nsys."""
    hopper.nsys()
    return hopper


def test_nsys_times_the_kernels(traced):
    """Times are of a traced run, never of a replayed one; the program's output is that of a run of its own."""
    program = traced.script("echo out; cat; echo err >&2; echo run >> runs\n")
    done = traced.run("--costs", "jetson-tk1", program, stdin="in\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("out\nin\n")
    assert "nsys-report" not in done.stdout
    assert (traced.folder / "runs").read_text() == "run\n" * 3
    said = traced.manifest()
    assert [(one["what"], one["kernels"]) for one in said["measurements"]] == [
        ("plain", None),
        ("time", 3),
        ("counters", 3),
    ]
    command = " ".join(said["measurements"][1]["command"])
    assert "profile --trace=cuda --sample=none --cpuctxsw=none --cuda-graph-trace=node -o " in command
    assert " ".join(said["measurements"][1]["then"][1:5]) == "stats --report cuda_gpu_kern_sum --format"
    logs = {one.name for one in (traced.folder / "program.eprof" / "logs").iterdir()}
    assert logs == {"time-1.nsys-rep", "time-1.csv", "counters-1.csv"}
    output = (traced.folder / "program.eprof" / "output" / "time-1.out").read_text()
    assert output.startswith("out\nin\n")
    found = document(traced)
    assert found["time_s"] == pytest.approx(4.5e-6)
    assert "estimated" not in found["time_marks"]
    assert found["launches"] == 3
    assert len(found["kernels"]) == 1
    assert not any("ncu's own" in one or "time-1.csv" in one for one in found["warnings"])


def test_repeated_traces_give_the_median(traced):
    program = traced.script("true\n")
    assert traced.run("--no-report", "--repeat", "3", program).returncode == 0
    logs = traced.folder / "program.eprof" / "logs"
    for number, total in ((1, 6000), (2, 3000), (3, 5000)):
        table = logs / f"time-{number}.csv"
        table.write_text(table.read_text().replace("4500", str(total)))
    found = document(traced)
    assert found["time_s"] == pytest.approx(5e-6)
    assert any("medians over 3 repetitions" in one for one in found["warnings"])


@pytest.mark.parametrize("mode", ["no-kernel", "no-importer", "mute"])
def test_time_only_promises_no_times_of_ncu(hopper, mode):
    hopper.nsys(mode)
    done = hopper.run("--time-only", hopper.script("echo out\n"))
    assert done.returncode == 1
    assert done.stdout == "out\n"
    assert "so kernels have no times" in done.stderr
    assert "ncu's own" not in done.stderr
    assert "Nothing was collected to report on; the run is kept in program.eprof." in done.stderr


def test_a_real_table_of_nsys_replayed(traced):
    from conftest import SHARED

    table = SHARED / "ncu" / "nsys-cuda-gpu-kern-sum.csv"
    if not table.exists():
        pytest.skip("needs the real log nsys-cuda-gpu-kern-sum.csv, which is not part of this project")
    launches = sum(int(line.split(",")[2]) for line in table.read_text().splitlines()[1:])
    done = traced.run("--time-only", "--no-report", traced.script("true\n"), env={"STAND_IN_TIMES": str(table)})
    assert done.returncode == 0, done.stderr
    said = traced.manifest()["measurements"]
    assert [(one["what"], one["kernels"]) for one in said] == [("plain", None), ("time", launches)]
    kept = (traced.folder / "program.eprof" / "logs" / "time-1.csv").read_text()
    assert kept.endswith(table.read_text())


def test_the_dry_run_shows_the_trace(traced):
    done = traced.run("--dry-run", traced.script("true\n"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if "profile --trace=cuda" in line)
    assert lines[at + 1].endswith("RUN/logs/time-1.nsys-rep > RUN/logs/time-1.csv")
    assert not (traced.folder / "program.eprof").exists()


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("mute", "does not tell its version (sudo apt install nsight-systems"),
        ("old", "nsys 2020.3.4.32-52657a0 is older than 2021.4"),
        ("failing", "nsys wrote no trace (exit code 1;"),
        ("killed", "nsys wrote no trace (signal 9;"),
        ("no-kernel", "nsys saw no kernel"),
        ("torn", "nsys could not make a table of its trace time-1.nsys-rep"),
        ("no-importer", "cannot read its own trace logs/time-1.qdstrm back"),
    ],
)
def test_without_a_trace_the_times_are_of_ncu_and_estimated(hopper, mode, says):
    hopper.nsys(mode)
    done = hopper.run("--no-report", hopper.script("echo out\n"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "out\n"
    assert len([line for line in done.stderr.splitlines() if says in line]) == 1
    assert "so the times of kernels are ncu's own, of replayed, cold kernels, and estimated" in done.stderr
    assert "Traceback" not in done.stderr
    assert hopper.manifest()["status"] == "complete"
    found = document(hopper)
    assert found["time_s"] == pytest.approx(6e-6)
    assert "estimated" in found["time_marks"]


def test_an_older_nsys_names_its_report_otherwise(hopper):
    hopper.nsys("old-report")
    assert hopper.run("--no-report", hopper.script("true\n")).returncode == 0
    assert document(hopper)["time_s"] == pytest.approx(4.5e-6)


def test_chosen_launches_are_not_timed_by_nsys(traced):
    done = traced.run("--no-report", "--launch-count", "1", traced.script("true\n"))
    assert done.returncode == 0, done.stderr
    assert "nsys would time all launches" in done.stderr
    assert "estimated" in document(traced)["time_marks"]


def test_a_kernel_is_never_timed_twice(traced):
    assert traced.run("--no-report", traced.script("true\n")).returncode == 0
    log = traced.folder / "program.eprof" / "logs" / "time-1.csv"
    table = log.read_text()
    for kernel, time_s, kernels in (
        ("work(float*, int)", 4.5e-6, 1),
        ("void work<(int)3>(T1 *)", 4.5e-6, 1),  # another spelling of one that has no other like it
        ("other(float *, int)", 10.5e-6, 2),  # ncu saw nothing of this one, and has its own time of `work`
        ('work<3>(T1 *)"\n0.0,1,1,1,1,1,1,0.0,"work<4>(T1 *)', 6e-6, 1),  # either may be `work`: not used
    ):
        log.write_text(table.replace("work(float *, int)", kernel))
        found = document(traced)
        assert found["time_s"] == pytest.approx(time_s), kernel
        assert len(found["kernels"]) == kernels, kernel


def test_a_program_that_dies_under_nsys_only(traced):
    program = traced.script("[ -e once ] && kill -SEGV $$\ntouch once\n")
    done = traced.run("--no-report", program)
    assert done.returncode == 1
    assert "ended with 139 in the time run, but with 0 in the first run" in done.stderr
    assert traced.manifest()["status"] == "partial"


def test_interrupted_under_nsys_what_was_traced_is_kept(traced):
    program = traced.script("[ -e once ] && { : > tracing; exec sleep 100; }\ntouch once\n")
    running = traced.start("--no-report", program, start_new_session=True)
    traced.await_file("tracing")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=300)
    assert running.returncode == 130
    assert traced.manifest()["status"] == "partial"
    assert document(traced)["time_s"] == pytest.approx(4.5e-6)


def test_doctor_names_nsys(hopper):
    import subprocess

    def timer(**env):
        done = subprocess.run(
            hopper.command("doctor", "--format", "json"), cwd=hopper.folder, env=hopper.environment(**env),
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        return {one["name"]: one for one in json.loads(done.stdout)["checks"]}["timer nsys"]

    missing = timer()
    assert missing["ok"] is False
    assert "estimated" in missing["detail"]
    assert "nsight-systems" in missing["remedy"]
    found = timer(STAND_IN_NSYS="")
    assert found["ok"] is True
    assert "2023.4.4.54" in found["detail"]


# ------------------------------------------------------------------------------------ counts for each opcode


def offering(*without):
    (definition,) = (one for one in definition_files.definitions() if one.name == "ncu/hopper-9.0")
    names = {name.partition("[")[0].removesuffix(".sum") for name in definition.profiler_names}
    return {"STAND_IN_OFFER": " ".join(sorted(names)), "STAND_IN_LOST": " ".join(without) or "-"}


def test_special_functions_are_counted_by_opcode(hopper):
    done = hopper.run("--no-report", hopper.script("true\n"), env=offering())
    assert done.returncode == 0, done.stderr
    command = hopper.manifest()["measurements"][1]["command"]
    assert command[command.index("--print-metric-instances") + 1] == "details"
    metrics = command[command.index("--metrics") + 1].split(",")
    assert "sass__thread_inst_executed_true_per_opcode" in metrics
    assert not any("[" in one for one in metrics)
    assert "sass__thread_inst_executed_true_per_opcode[MUFU]" in hopper.manifest()["plan"]["counters"]
    special = document(hopper)["counts"]["special"]
    assert special["value"] == 3 * 250
    assert "estimated" not in special["marks"]


@pytest.mark.parametrize("more", [{"STAND_IN_OLD": "1"}, {"STAND_IN_LOST": "sass__"}])
def test_without_counts_by_opcode_the_pipe_tells_of_special_functions(hopper, more):
    done = hopper.run("--no-report", hopper.script("true\n"), env={**offering(), **more})
    assert done.returncode == 0, done.stderr
    command = " ".join(hopper.manifest()["measurements"][1]["command"])
    assert "--print-metric-instances" not in command
    assert "per_opcode" not in command
    assert "pipe_xu" in command
    assert document(hopper)["counts"]["special"]["value"] == 0


def test_tensor_work_is_collected_by_the_names_that_the_chip_has(hopper):
    """The sum over a type's metrics is planned; ncu is asked for those of them that together are the sum, none twice."""
    ops = "sm__ops_path_tensor_src_"
    offered = [f"{ops}{kind}" for kind in ("fp16", "fp16_sparsity_on", "fp16_sparsity_off", "tf32_dst_fp32")]
    env = {"STAND_IN_OFFER": " ".join([*offered, "sm__ops_path_tensor_op_hgmma_src_fp16", "sm__cycles_active"])}
    table = hopper.folder / "tensor.toml"
    table.write_text(TENSOR_TABLE)
    done = hopper.run("--costs", str(table), "--no-report", hopper.script("true\n"), env=env)
    assert done.returncode == 0, done.stderr
    manifest = hopper.manifest()
    assert {f"{ops}fp16*.sum", f"{ops}tf32*.sum"} <= set(manifest["plan"]["counters"])
    command = " ".join(manifest["measurements"][1]["command"])
    assert f"{ops}fp16.sum" in command and f"{ops}tf32_dst_fp32.sum" in command
    assert "sparsity" not in command and "hgmma" not in command and "*" not in command


TENSOR_TABLE = """
schema = 1
name = "made"
device = "a GPU of this test"
source = "made for a test"
books = "accessed"
[pj]
tensor_fp16_flop = 0.7
[constant_power]
w = 54.0
why = "made for a test"
[charge]
tensor_fp16 = { formula = "tensor_fp16_flop", why = "made for a test" }
tensor = { unpriced = "instructions of unknown size" }
"""


def test_a_trace_is_refused_before_anything_runs(hopper):
    """ncu's logs do not tell when launches ran: one sentence says so, and what does."""
    program = hopper.script("touch ran\n")
    done = hopper.run("-o", "trace.json", program)
    assert done.returncode == 2 and not (hopper.folder / "ran").exists()
    said = " ".join(done.stderr.split())
    assert "the logs of ncu do not tell" in said and "nsys stats --report cuda_gpu_trace" in said
    assert "eprof report RUN.eprof TRACE.csv -o trace.json" in said

"""The recorder without a GPU: deadlines, failures, packing, and an archive that says what was missing."""

import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "samples" / "record"))

import questions
import record
from runner import FAILED, LATE, OK, SKIPPED, Runner, pack

RECORD = Path(record.__file__)


def gone(pid):
    for _ in range(1000):
        try:
            if Path(f"/proc/{pid}/stat").read_text().split(")")[1].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_steps_end_and_say_how(tmp_path, capsys):
    runner = Runner(tmp_path, 60)
    assert runner.run("fine", ["sh", "-c", "echo out; echo err >&2"], 5).status == OK
    assert (tmp_path / "logs" / "fine.out").read_text() == "out\n"
    bad = runner.run("bad", ["sh", "-c", "echo first >&2; echo no counters >&2; exit 3"], 5)
    assert (bad.status, bad.code, bad.why) == (FAILED, 3, "exit code 3: no counters")
    absent = runner.run("absent", ["/nowhere/ncu"], 5)
    assert absent.status == FAILED
    assert "No such file" in absent.why
    summary = runner.summary()
    assert summary["counts"] == {OK: 1, FAILED: 2, LATE: 0, SKIPPED: 0}
    assert [step["name"] for step in summary["steps"]] == ["fine", "bad", "absent"]


def test_a_late_step_and_its_children_are_ended(tmp_path):
    runner = Runner(tmp_path, 60)
    late = runner.run("late", ["sh", "-c", "sleep 300 & echo $!; wait"], 2)
    assert late.status == LATE
    assert gone(int((tmp_path / "logs" / "late.out").read_text()))


def test_no_step_begins_after_the_deadline(tmp_path):
    runner = Runner(tmp_path, 10)  # all of it kept for packing
    one = runner.run("stream", ["touch", str(tmp_path / "ran")], 5)
    assert (one.status, one.why) == (SKIPPED, "no time left")
    assert not (tmp_path / "ran").exists()


def test_the_biggest_files_are_left_out_first(tmp_path):
    folder = tmp_path / "record"
    folder.mkdir()
    for name, size in (("small.csv", 1000), ("big.ncu-rep", 300_000), ("bigger.ncu-rep", 400_000)):
        (folder / name).write_bytes(os.urandom(size))
    (folder / "summary.json").write_text("{}")
    archive = tmp_path / "a.tar.gz"
    assert pack(folder, archive, 350_000) == ["bigger.ncu-rep"]
    assert archive.stat().st_size <= 350_000
    with tarfile.open(archive) as tar:
        names = {Path(name).name for name in tar.getnames()}
        assert "bigger.ncu-rep" in tar.extractfile("a/DROPPED.txt").read().decode()
    assert names == {"small.csv", "big.ncu-rep", "summary.json", "DROPPED.txt"}
    assert pack(folder, archive, 10**6) == []


def test_results_are_read_and_noise_is_not(tmp_path):
    (tmp_path / "logs").mkdir()
    told = {"device": "H200", "kernel_s": {"a": 0.25, "b": 0.5}, "relative_error": 2e-4, "passed": True}
    (tmp_path / "logs" / "run-F8.out").write_text(json.dumps(told))
    (tmp_path / "logs" / "run-F7.out").write_text("Traceback: no JSON")
    (ran,) = record.results(tmp_path)
    assert (ran["run"], ran["kernels_s"], ran["passed"]) == ("F8", 0.75, True)
    steps = [{"name": "ncu", "status": FAILED, "seconds": 1.0, "why": "a | b"}]
    page = record.page({"seconds": 5, "counts": {OK: 1}, "steps": steps}, [ran], "NVIDIA H200")
    assert "| F8 | 750 | 2.00e-04 | True |" in page
    assert r"a \| b" in page


def test_a_whole_run_without_gpu_says_so(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, says in (("nvidia-smi", "NVIDIA-SMI has failed: no driver"), ("nvcc", "not here")):
        (tools / name).write_text(f"#!/bin/sh\necho '{says}' >&2; exit 9\n")
        (tools / name).chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tools}:/usr/bin:/bin",
        "EPROF_SAMPLES_LIBCUDA": "/nowhere",
        "OUT": str(tmp_path / "out"),
    }
    done = subprocess.run(
        [sys.executable, RECORD, "--seconds", "600"], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    steps = {step["name"]: step for step in summary["steps"]}
    assert steps["nvidia-smi-q"]["status"] == FAILED
    assert "no driver" in steps["nvidia-smi-q"]["why"]
    assert steps["run-F1"]["why"] == "no NVIDIA GPU: the driver is missing or sees none"
    assert steps["ncu-version"]["why"] == "ncu was not found"
    assert summary["results"] == []
    (archive,) = (tmp_path / "out").glob("eprof-record-no-gpu-*.tar.gz")
    with tarfile.open(archive) as tar:
        names = {Path(name).name for name in tar.getnames()}
    assert {"summary.md", "summary.json", "machine.json", "questions.cu", "nvidia-smi-q.err"} <= names
    assert "No program ran on a GPU." in (tmp_path / "out" / "summary.md").read_text()


def test_dry_run_names_every_command_and_changes_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, RECORD, "--dry-run"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "OUT": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    for words in ("doctor --format json", "N=262144 Q=128", "--page raw", "--clock-control none", "reduce/reduce"):
        assert words in done.stdout
    assert list(tmp_path.iterdir()) == []
    for setting in ("-pm", "-lgc", "-ac", "--lock-gpu-clocks", "--power-limit", "-pl", "--lock-clocks"):
        assert f" {setting} " not in done.stdout


def test_questions_name_kernels_that_exist():
    text = RECORD.with_name("questions.cu").read_text()
    for name in questions.KNOWN:
        assert f"void {name}(" in text
        assert f"{name}<<<GROUPS, THREADS>>>" in text
    for name in ("GROUPS", "THREADS", "TIMES"):
        assert f"#define {name} {getattr(questions, name)}\n" in text


if __name__ == "__main__":
    pytest.main([__file__])

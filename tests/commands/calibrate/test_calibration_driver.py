"""The real command, worker process and ctypes calls, against a driver and a meter that are stand-ins (stub_cuda.c)."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from standin_gpu import DEVICE

from eprof import cli
from eprof.base.errors import CollectError
from eprof.commands.calibrate import session

HERE = Path(__file__).parents[2]
NVCC = '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho stub > "$2"\n'


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    place = tmp_path_factory.mktemp("stub")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", place / "libcuda.so.1", HERE / "stub_cuda.c"], check=True)
    (place / "pynvml.py").write_text((HERE / "stand_ins" / "pynvml_calibrated.py").read_text())
    (place / "no_nvml").mkdir()
    (place / "no_nvml" / "pynvml.py").write_text("raise ImportError")
    (place / "nvcc").write_text(NVCC)
    (place / "nvcc").chmod(0o755)
    return place


@pytest.fixture
def calibrate(library, eprof_command, eprof_started, tmp_path):
    """`eprof calibrate` where the stubs are the only GPU there is. `without`: stubs to take away."""

    def run(*arguments, without=(), **environment):
        env = {
            "LD_LIBRARY_PATH": str(library),
            "PATH": f"{library}:/usr/bin:/bin",
            "CUDA_HOME": "",
            "STUB_LOG": str(tmp_path / "log"),
        }
        if "driver" in without:
            env["LD_LIBRARY_PATH"] = ""
        paths = os.pathsep.join([str(HERE.parent), str(library / "no_nvml" if "nvml" in without else library)])
        # What the loader is told takes a server of its own to fork from, which pays only for the usual choice.
        call = eprof_started if without else eprof_command
        return call("calibrate", *arguments, env={**env, "PYTHONPATH": paths, **environment})

    return run


QUICK = ("--window", "0.25", "--repeat", "1", "--budget", "60", "--no-fit", "--directory", "dir")


def test_probe_to_measurements(calibrate, tmp_path):
    done = calibrate(*QUICK, "--only", "fp32_fma", "--only", "read", "--only", "copy", "--only", "l2_read")
    assert done.returncode == 0, done.stderr
    assert "Stub GPU 7 (compute capability 9.0), nvcc" in done.stderr
    rows = pd.read_csv(tmp_path / "dir" / "rows.csv").set_index("benchmark")
    assert list(rows.index) == ["fp32_fma", "read", "l2_read", "copy"]
    assert rows["power_w"].to_numpy() == pytest.approx(150.0, rel=0.1)
    assert set(rows["core_mhz"]) == {1500.0}
    assert set(rows["temperature_c"]) == {55.0}
    launches = {}
    for line in (tmp_path / "log").read_text().splitlines():
        name, *numbers = line.split()
        launches.setdefault(name, []).append(list(map(int, numbers)))
    blocks, block, data, out, vectors, step, iterations = launches["read"][-1]
    assert (blocks, block) == (10 * 8, 256)
    assert (vectors * 16, step) == (2**30, 80 * 8 * 256), "1 GiB, a chunk a block and turn"
    # The stub takes a microsecond an iteration, and longer where the machine is busy.
    assert 0.95 * iterations * 1e-6 < rows.loc["read", "time_s"] < 10 * iterations * 1e-6
    assert data != out
    assert {one[4] for one in launches["copy"]} == {2**29 // 16}, "from one half to the other"
    assert {(one[4] * 16, one[5]) for one in launches["l2_read"]} == {(2**20, 8 * 256)}, "a quarter of L2"
    assert launches["fill"][-1][4] * 16 == 2**30
    # The stub does a turn of every loop in a microsecond, faster than the memory that it claims to have.
    assert rows["used"].to_dict() == {"fp32_fma": False, "read": False, "l2_read": True, "copy": False}
    assert "it cannot have done what it claims" in rows.loc["read", "why"]
    frame = pd.read_csv(tmp_path / "dir" / "measurements.csv")
    counted = 128 * launches["l2_read"][-1][0] * 256 * launches["l2_read"][-1][6]
    assert frame["l2_read"][0] == pytest.approx(counted, rel=1e-8)
    power = pd.read_csv(tmp_path / "dir" / "power.csv")
    assert len(power) > 20


def test_a_kernel_that_kills_the_worker_is_left_out_and_the_rest_measured(calibrate, tmp_path):
    done = calibrate(*QUICK, "--only", "integer", "--only", "l2_read", STUB_DIE="integer")
    assert done.returncode == 0, done.stderr
    assert "integer failed (it died of signal 6)" in done.stderr
    assert "l2_read" in pd.read_csv(tmp_path / "dir" / "rows.csv")["benchmark"].to_list()
    events = [json.loads(line) for line in (tmp_path / "dir" / "results.jsonl").read_text().splitlines()]
    assert [one["event"] for one in events if one.get("name") == "integer"] == ["began", "failed"]


def test_a_launch_that_the_driver_refuses_is_quoted(calibrate):
    done = calibrate(*QUICK, "--only", "integer", STUB_FAIL="integer")
    assert (
        "integer failed (The CUDA driver says: unspecified launch failure (cuLaunchKernel, error 719))" in done.stderr
    )
    assert "No benchmark gave a row for a fit" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("without", "environment", "sentence"),
    [
        (["driver"], {}, "There is no GPU to calibrate. The CUDA driver (libcuda.so.1) is not installed here"),
        ([], {"STUB_NONE": "1"}, "There is no GPU to calibrate. The CUDA driver says: this machine has no CUDA GPU"),
        (["nvml"], {}, "There is no power meter for this GPU: NVML"),
    ],
)
def test_what_is_missing_is_one_sentence(calibrate, without, environment, sentence):
    done = calibrate(*QUICK, "--only", "read", without=without, **environment)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_device_that_is_not_there(calibrate):
    done = calibrate(*QUICK, "--device", "3")
    assert done.returncode == 1
    assert "There is no GPU 3: CUDA sees 1 here, numbered from 0." in done.stderr


def test_clocks_that_cannot_be_set(calibrate):
    done = calibrate(*QUICK, "--only", "read", "--settings", "1200/900")
    assert done.returncode == 1
    assert "eprof: This GPU has no memory clock of 900 MHz; it has 1000." in done.stderr
    done = calibrate(*QUICK, "--only", "read", "--settings", "1200/1000")
    assert done.returncode == 1
    assert "eprof: The clocks cannot be set to 1200/1000 MHz (Insufficient Permissions). It needs root" in done.stderr


def test_dry_run_lists_benchmarks_and_runs_nothing(calibrate, tmp_path):
    done = calibrate("--dry-run", "--settings", "1200,1500")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# Stub GPU 7, compute capability 9.0\n")
    assert "dram_read = 128 * threads * iterations" in done.stdout
    assert "2 settings" in done.stdout.splitlines()[-1]
    assert not (tmp_path / "log").exists()


# ---- without any process: what is wrong is said before one is started


@pytest.fixture
def door(monkeypatch, tmp_path, capsys):
    """`eprof calibrate` in this process: exit code, what it said."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            cli.main(["calibrate", *arguments])
        return ended.value.code, capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Say where the table goes"),
        (["-o", "table.csv"], "a cost table is a .toml file"),
        (["-o", "t.toml", "--settings", "fast"], "`fast` is not a setting"),
        (["-o", "t.toml", "--settings", "1200,1200"], "1200 is named twice"),
        (["-o", "t.toml", "--budget", "0"], "'0' is not a time above 0"),
        (["-o", "t.toml", "--repeat", "0"], "0 is not 1 or more"),
        (["--dry-run", "--only", "raed"], "There is no benchmark `raed`"),
        (["-o", "t.toml", "--device", "-1"], "numbered from 0"),
        (["--no-fit"], "Say where"),
    ],
)
def test_wrong_usage_exits_with_2(door, monkeypatch, arguments, sentence):
    monkeypatch.setattr(session, "ON_CUDA", session.ON_CUDA._replace(probe=lambda device: DEVICE))
    code, said = door(*arguments)
    assert code == 2
    assert sentence in said.err


def test_an_existing_table_is_refused_before_anything_runs(door, monkeypatch, tmp_path):
    probe = lambda device: pytest.fail("must not look at a GPU")  # noqa: E731
    monkeypatch.setattr(session, "ON_CUDA", session.ON_CUDA._replace(probe=probe))
    (tmp_path / "t.toml").write_text("mine")
    code, said = door("-o", "t.toml")
    assert code == 1
    assert "exists already" in said.err


def test_dry_run_needs_no_gpu(door, monkeypatch):
    def none(device):
        raise CollectError("There is no GPU to calibrate.")

    monkeypatch.setattr(session, "ON_CUDA", session.ON_CUDA._replace(probe=none))
    code, said = door("--dry-run")
    assert code == 0
    assert "benchmarks for a GPU of capability 9.0" in said.err
    assert said.out.count("blocks = ") > 40

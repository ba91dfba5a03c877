"""The bare CUDA launcher against a stand-in for the driver's library that checks what it is given."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "samples"
SOURCE = Path(__file__).parents[1] / "stand_ins" / "cuda_driver.c"


@pytest.fixture(scope="module")
def libcuda(tmp_path_factory):
    cc = shutil.which("cc") or shutil.which("gcc")
    if not cc:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([cc, "-shared", "-fPIC", "-O1", "-o", path, SOURCE], check=True)
    return path


def run(program, *arguments, **environment):
    command = [sys.executable, SAMPLES / program / program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def needs_compiler():
    if not shutil.which("nvcc"):
        pytest.skip("no nvcc")


def test_stream_runs_and_is_checked(libcuda):
    needs_compiler()
    words = ["N=1000", "repeat=3", "backend=driver", "--json"]
    done = run("stream", *words, EPROF_SAMPLES_LIBCUDA=str(libcuda))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["passed"]
    assert found["device"] == "Stand-in GPU"
    assert found["kernel_s"]["stream_triad"] == pytest.approx(0.25e-3)


def test_a_failed_call_says_which_and_why(libcuda):
    needs_compiler()
    done = run("nbody", "N=64", "backend=driver", EPROF_SAMPLES_LIBCUDA=str(libcuda))
    assert done.returncode == 1
    assert done.stderr == "nbody: cuModuleGetFunction failed: named symbol not found (error 500)\n"


def test_no_gpu_and_no_driver(libcuda):
    done = run("stream", "backend=cuda", EPROF_SAMPLES_LIBCUDA=str(libcuda), STAND_IN_NO_GPU="1")
    assert done.returncode == 1
    assert "finds no" in done.stderr
    done = run("stream", "backend=driver", EPROF_SAMPLES_LIBCUDA="/nowhere/libcuda.so")
    assert done.returncode == 1
    assert done.stderr == "stream: NVIDIA's driver (libcuda.so.1) is not installed here\n"

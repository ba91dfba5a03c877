"""The sample programs on a CPU through OpenCL, their counts on the simulated device, their CUDA form in compilers."""

import ctypes
import importlib.util
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter as Tally
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "samples"))

from common.driver import by_nvrtc
from common.launch import open_device
from common.options import SampleError
from fmm.points import DISTRIBUTIONS
from fmm.solver import BLOCK, Solver, direct, kernel_source, plan
from fmm.tree import build, lists

SAMPLES = Path(__file__).parents[2] / "samples"
PROGRAMS = ("nbody", "stream", "gemm", "reduce")


def device_named(name):
    cl = pytest.importorskip("pyopencl")
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        pytest.skip("no OpenCL platform")
    if not any(name in platform.name.lower() for platform in platforms):
        pytest.skip(f"no OpenCL platform is called {name}")
    return name


@pytest.fixture
def pocl():
    return device_named("portable")


@pytest.fixture
def oclgrind():
    return device_named("oclgrind")


def relative_error(points, q, order, precision, device_name, seed=5):
    real = {"single": np.float32, "double": np.float64}[precision]
    rng = np.random.default_rng(seed)
    points = points.astype(real).astype(float)
    charges = rng.uniform(-1, 1, len(points)).astype(real).astype(float)
    tree = build(points, q)
    device = open_device("opencl", kernel_source(order, precision), BLOCK, device_name)
    solver = Solver(plan(tree, lists(tree), order), charges, precision, device)
    first, second = solver.evaluate(), solver.evaluate()
    assert np.array_equal(first, second), "evaluating again must not add up"
    some = rng.choice(len(points), min(len(points), 200), replace=False)
    exact = direct(points, charges, some)
    size = np.linalg.norm(exact)
    return np.linalg.norm(first[some] - exact) / (size or 1)


# What the method promises, with a margin of some five: 1e-3 at order 4, about a digit an order.
BOUND = {2: 1e-1, 3: 1e-2, 4: 1e-3, 5: 2e-4, 6: 2e-5, 7: 5e-6, 8: 1e-6}


@pytest.mark.parametrize(("dist", "orders"), [("uniform", (2, 4, 5)), ("clustered", (3, 4, 6, 8))])
def test_error_falls_with_the_order(pocl, dist, orders):
    points = DISTRIBUTIONS[dist](1200, np.random.default_rng(1))
    errors = {order: relative_error(points, 30, order, "double", pocl) for order in orders}
    assert all(errors[order] < BOUND[order] for order in orders), errors
    ranked = list(errors.values())
    assert all(worse > better for worse, better in zip(ranked, ranked[1:], strict=False)), errors
    assert ranked[0] > 1e2 ** (len(orders) - 2) * ranked[-1]


@pytest.mark.parametrize(("dist", "order"), [("uniform", 4), ("sphere", 4), ("clustered", 4), ("uniform", 6)])
def test_single_precision(pocl, dist, order):
    points = DISTRIBUTIONS[dist](3000, np.random.default_rng(2))
    assert relative_error(points, 40, order, "single", pocl) < BOUND[order]


@pytest.mark.parametrize("count", [1, 2, 9, 65, 1000])
def test_any_q(pocl, count):
    points = DISTRIBUTIONS["uniform"](count, np.random.default_rng(3))
    for q in sorted({1, 7, 64, count}):
        assert relative_error(points, q, 4, "single", pocl) < 1e-3


def test_points_on_faces_of_boxes(pocl):
    points = np.random.default_rng(4).integers(0, 17, (2000, 3)) / 16  # with twins, up to the cube's far corner
    assert relative_error(points, 8, 4, "single", pocl) < 1e-3


def test_coincident_points(pocl):
    alone = np.full((300, 3), 0.3)
    assert relative_error(alone, 10, 4, "single", pocl) == 0
    company = np.concatenate([alone, DISTRIBUTIONS["uniform"](700, np.random.default_rng(6))])
    assert relative_error(company, 10, 4, "single", pocl) < 1e-3
    assert relative_error(company, 10, 4, "double", pocl) < 1e-3


def test_a_hundred_thousand(pocl):
    points = DISTRIBUTIONS["clustered"](100_000, np.random.default_rng(7))
    assert relative_error(points, 200, 4, "single", pocl) < 1e-3


def run(program, *arguments, **environment):
    path = SAMPLES / program / program
    return subprocess.run(
        [sys.executable, path, *arguments], capture_output=True, text=True, env={**os.environ, **environment}
    )


def test_acceptance(pocl):
    done = run("fmm", "N=20000", "Q=64", "check=200", f"device={pocl}")
    assert done.returncode == 0, done.stderr
    assert "passed" in done.stdout
    for phase in ("UP", "U", "V", "W", "X", "DOWN"):
        assert re.search(rf"^  {phase} +[\d.]+ ms", done.stdout, re.MULTILINE)


@pytest.mark.parametrize(("q", "empty"), [(64, False), (256, True)])
def test_says_why_w_and_x_are_empty(q, empty):
    done = run("fmm", "N=4096", f"Q={q}", "--count")
    assert ("W and X are empty: all leaves that meet are of one size" in done.stdout) == empty


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("nbody", ["N=1000"]),
        ("nbody", ["N=1", "kernel=naive"]),
        ("stream", ["N=12345", "precision=double"]),
        ("gemm", ["n=96"]),
        ("gemm", ["n=96", "kernel=naive", "precision=double"]),
        ("reduce", ["N=12345"]),
        ("reduce", ["N=12345", "kernel=conflicts"]),
    ],
)
def test_small_programs(pocl, program, arguments):
    done = run(program, *arguments, f"device={pocl}", "repeat=2", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["passed"]


@pytest.mark.parametrize(
    ("program", "argument", "message"),
    [
        ("fmm", "M=3", "unknown key `M`; keys are N, Q, order"),
        ("fmm", "N=many", "N=many is not a number"),
        ("fmm", "N=0", "N is a whole number, 1 to"),
        ("fmm", "N=1.5", "N is a whole number"),
        ("fmm", "N=nan", "N is a whole number"),
        ("fmm", "order=9", "order is a whole number, 2 to 8"),
        ("fmm", "dist=moon", "dist is one of uniform, sphere, clustered"),
        ("fmm", "fast", "neither KEY=value nor a flag"),
        ("gemm", "n=100", "multiple of 16, such as 96 and 112"),
    ],
)
def test_bad_command_lines(program, argument, message, monkeypatch, capsys):
    """In this process: the programs themselves are started above."""
    monkeypatch.setattr(sys, "argv", [program, argument])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(SAMPLES / program / program), run_name="__main__")
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in said
    assert "Traceback" not in said


def test_missing_backends(monkeypatch):
    for backend, module, hint in (("opencl", "pyopencl", "pip install"), ("cuda", "cupy", "pip install cupy")):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(SampleError, match=hint):
            open_device(backend, "", 64, "")


def test_unknown_device(pocl):
    with pytest.raises(SampleError, match="no OpenCL device is called `abacus`"):
        open_device("opencl", "", 64, "abacus")


def executed(text):
    """Oclgrind's counts by kernel: instructions by name, and under "<name> bytes" the bytes."""
    kernels, here = {}, Tally()
    for line in text.splitlines():
        if found := re.match(r"Instructions executed for kernel '(\w+)'", line):
            here = kernels.setdefault(found[1], Tally())
        elif found := re.match(r" +(\d+) - (.+?)(?: \((\d+) bytes\))?$", line):
            here[found[2]] += int(found[1])
            here[found[2] + " bytes"] += int(found[3] or 0)
    return kernels


def simulated(program, *arguments):
    """(what --count says, what Oclgrind counted) by kernel, in the same terms."""
    counted = json.loads(run(program, *arguments, "--count", "--json").stdout)["kernels"]
    done = run(program, *arguments, "device=oclgrind", OCLGRIND_INST_COUNTS="1")
    assert done.returncode == 0, done.stderr
    seen = {}
    for name, tally in executed(done.stdout).items():
        seen[name] = {
            "add": tally["fadd"] + tally["fsub"],
            "mul": tally["fmul"],
            "fma": sum(count for call, count in tally.items() if re.match(r"call _Z3fma\w+\(\)$", call)),
            "rsqrt": sum(count for call, count in tally.items() if re.match(r"call _Z5rsqrt\w\(\)$", call)),
            "load": tally["load global bytes"],
            "store": tally["store global bytes"],
            "local_load": tally["load local bytes"],
            "local_store": tally["store local bytes"],
        }
        counted[name]["load"] += counted[name]["index_load"]
        assert set(counted[name]) >= set(seen[name])
    return counted, seen


@pytest.mark.parametrize(
    "arguments", [["N=70", "Q=8", "order=2"], ["N=100", "Q=12", "order=3", "dist=clustered", "precision=double"]]
)
def test_fmm_counts_what_the_simulated_device_executes(oclgrind, arguments):
    counted, seen = simulated("fmm", *arguments)
    assert seen.keys() == {name for name, work in counted.items() if work["launches"]}
    for name, numbers in seen.items():
        for what, number in numbers.items():
            if name in ("v_fft", "v_ifft"):  # the compiler drops products with the roots 1 and sums with padding
                assert 0.6 * counted[name][what] <= number <= counted[name][what], (name, what)
            else:
                assert number == pytest.approx(counted[name][what], rel=1e-3), (name, what)


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("nbody", ["N=300"]),
        ("nbody", ["N=300", "kernel=naive", "precision=double"]),
        ("stream", ["N=1000"]),
        ("gemm", ["n=32"]),
        ("gemm", ["n=32", "kernel=naive"]),
        ("reduce", ["N=1000"]),
        ("reduce", ["N=1000", "kernel=conflicts"]),
    ],
)
def test_small_programs_count_exactly(oclgrind, program, arguments):
    counted, seen = simulated(program, *arguments)
    assert seen.keys() == counted.keys()
    for name, numbers in seen.items():
        assert numbers == {what: counted[name][what] for what in numbers}


def cuda_source(name):
    if name.startswith("fmm"):
        return kernel_source({"single": 4, "double": 8}[name.split()[1]], name.split()[1])
    return run(name, "--source").stdout


@pytest.mark.parametrize("name", ["fmm single", "fmm double", *PROGRAMS])
def test_nvcc_compiles(name, tmp_path):
    """C++03 and the oldest architecture that this nvcc knows stand for CUDA of the days of capability 3.5."""
    nvcc = shutil.which("nvcc")
    if not nvcc:
        pytest.skip("no nvcc")
    path = tmp_path / "sample.cu"
    path.write_text(cuda_source(name))
    architectures = (75, 90) if name == "fmm double" else (75,)  # the others are compiled for 90 by NVRTC below
    targets = [f"-gencode=arch=compute_{arch},code=sm_{arch}" for arch in architectures]
    quiet = ["-Werror", "all-warnings", "-diag-suppress", "177"]  # 177: a device function that one sample does not use
    command = [nvcc, "-std=c++03", *targets, *quiet, "-Xptxas", "-v", "-fatbin", "-o", tmp_path / "out", path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # an indexed register array, such as a loop of line_fft left rolled, would need kilobytes of stack
    assert max(int(size) for size in re.findall(r"(\d+) bytes stack frame", done.stderr)) <= 16


def nvrtc_library():
    found = importlib.util.find_spec("nvidia")
    for folder in found.submodule_search_locations if found else []:
        for path in sorted(Path(folder).glob("*/lib/libnvrtc.so*")):
            return ctypes.CDLL(str(path))
    pytest.skip("no NVRTC: pip install nvidia-cuda-nvrtc")


def test_nvrtc_makes_machine_code():
    """As `backend=driver` uses it."""
    assert by_nvrtc(nvrtc_library(), kernel_source(4, "double"), "90").startswith(b"\x7fELF")


def test_nvrtc_compiles():
    """The compiler that CuPy calls."""
    nvrtc = nvrtc_library()
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
    for name in ("fmm single", *PROGRAMS):
        source, program = cuda_source(name), ctypes.c_void_p()
        assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"sample.cu", 0, None, None) == 0
        failed = nvrtc.nvrtcCompileProgram(program, 1, options)
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        assert not failed, f"{name}: {log.value.decode()}"
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))

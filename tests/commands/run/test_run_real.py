"""The same runs under the stand-ins and, where there is a GPU with nvcc, under the real nvprof and ncu.

EPROF_REAL_TOOLS=1: a real tool that is missing is an error here, not a reason to skip; =0: real tools are left alone.
"""

import os
import shutil
import subprocess

import pytest
from run_support import STAND_INS

from eprof.collect.collector import Tool
from eprof.collect.machine import ask, gpu, has_gpu
from eprof.counts import definition_files
from eprof.profile import api
from eprof.profilers.ncu import collector as ncu

N = 1 << 24  # 128 MiB an array: more than any second-level cache holds
REAL = os.environ.get("EPROF_REAL_TOOLS", "auto")


class Machine:
    """A bench with a profiler, and programs whose work is known. fma, read: a launch's multiply-adds, and DRAM bytes."""

    def __init__(self, bench, profiler, real):
        self.bench, self.profiler, self.real = bench, profiler, real
        self.fma, self.read = (N, 16 * N) if real else (1000, {"ncu": 24000, "nvprof": 32000}[profiler])

    def run(self, *options, launches=3, code=0):
        """`eprof run` of a program that launches its kernel so often and ends with `code`."""
        program = ["./known", launches, N, code]
        if not self.real:
            self.bench.script(f"echo out; exit {code}\n", "known")
            self.bench.more["STAND_IN_LAUNCHES"] = str(launches)
        return self.bench.run("--profiler", self.profiler, "--costs", "jetson-tk1", *options, *program)

    def document(self):
        """What the report of the run says."""
        return api.load(self.bench.folder / "known.eprof").energy("jetson-tk1").document()


def lacking(profiler):
    """Why the real `profiler` cannot be tried here; None if it can."""
    if REAL == "0":
        return "EPROF_REAL_TOOLS=0"
    for name in (profiler, "nvcc"):
        if shutil.which(name) is None:
            return f"needs the real {name} in PATH"
    if not has_gpu():
        return f"needs an NVIDIA GPU for the real {profiler}"
    capability = float(gpu()[1] or 0)
    if capability and (capability >= 7.5 if profiler == "nvprof" else capability < 7.0):
        return f"{profiler} does not know a GPU of capability {capability}"
    return None


@pytest.fixture(params=["nvprof stand-in", "ncu stand-in", "nvprof", "ncu"])
def machine(request, bench):
    """A machine with a profiler, replayed or real."""
    profiler, _, stand_in = request.param.partition(" ")
    if stand_in:
        bench.nvprof() if profiler == "nvprof" else bench.ncu()
        return Machine(bench, profiler, False)
    why = lacking(profiler)
    if why is not None:
        pytest.fail(why) if REAL == "1" else pytest.skip(why)
    known = str(bench.folder / "known")
    subprocess.run(["nvcc", "-arch=native", "-o", known, str(STAND_INS / "known.cu")], check=True, timeout=300)
    bench.more["PATH"] = os.environ["PATH"]
    bench.more |= {key: value for key, value in os.environ.items() if key.startswith(("CUDA_", "LD_LIBRARY", "NVIDIA"))}
    return Machine(bench, profiler, True)


def test_counts_are_those_of_the_program(machine):
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("out\n")
    found = machine.document()
    counts = found["counts"]
    assert found["launches"] == 3
    assert counts["fp64_fma"]["value"] == pytest.approx(3 * machine.fma, rel=0.01)
    assert counts["dram_read"]["value"] == pytest.approx(3 * machine.read, rel=0.05)
    assert found["time_s"] > 0
    assert machine.bench.manifest("known.eprof")["status"] == "complete"


def test_the_exit_code_passes_through(machine):
    done = machine.run("--no-report", code=7)
    assert done.returncode == 7, done.stderr
    assert machine.document()["launches"] == 3


def test_a_program_without_kernels_is_told(machine):
    done = machine.run(launches=0)
    assert done.returncode == 1
    assert "No kernel ran on the GPU" in done.stderr


def test_the_dry_run_asks_for_what_there_is(machine):
    done = machine.run("--dry-run")
    assert done.returncode == 0, done.stderr
    assert "FP64 multiply-add" in done.stdout
    assert not list(machine.bench.folder.glob("*.eprof"))


# Names that ncu 2024.1 lists and 2022.3 does not.
LATER = {
    "smsp__sass_thread_inst_executed_op_fp8_pred_on",
    "sm__sass_thread_inst_executed_op_fp8_pred_on",
    "smsp__sass_data_bytes_mem_shared_op_gmma",
    "l1tex__m_xbar2l1tex_read_bytes_pipe_tma",
    "l1tex__m_l1tex2xbar_write_bytes_pipe_tma",
}


@pytest.mark.parametrize("capability", sorted(ncu._about()["chip"], key=float))
def test_every_metric_of_a_definition_is_one_of_the_chip(capability):
    """Needs ncu, but no GPU: it knows its chips' metrics, though not those of other kinds (device, opcodes)."""
    path, chip = shutil.which("ncu"), ncu._about()["chip"][capability]
    if path is None or REAL == "0":
        pytest.skip("needs the real ncu in PATH")
    if chip not in ask([path, "--list-chips"]):
        pytest.skip(f"this ncu does not know {chip}")
    listed = ask([path, "--query-metrics", "--chips", chip])
    kinds = dict(line.split()[:2] for line in listed.splitlines() if "__" in line)
    definition = definition_files.find("ncu", capability)
    names = {one.partition("[")[0] for counter in definition.counters.values() for one in counter.profiler_names}
    names = {one for one in names if not one.startswith(("device__", "sass__"))}
    assert len(names) > 50
    unknown = {one for one in names if one.partition(".")[0] not in kinds}
    assert {one.partition(".")[0] for one in unknown} <= LATER
    assert all(kinds[one.partition(".")[0]] == "Counter" for one in names - unknown if one.endswith(".sum"))
    basic = ncu.COLLECTOR.basic(capability)
    assert {one for one in basic if one.partition(".")[0] not in kinds} == set()


def test_metrics_by_opcode_are_known_to_ncu():
    """No chip's list holds them; 2022.3 knows them too, but prints no opcodes."""
    path = shutil.which("ncu")
    if path is None or REAL == "0":
        pytest.skip("needs the real ncu in PATH")
    name = "sass__thread_inst_executed_true_per_opcode"
    assert ask([path, "--list-metrics", "--metrics", name]).split() == [name, f"-{name}"]
    details = "details" in ask([path, "--help"]).partition("--print-metric-instances")[2][:800].partition("\n  --")[0]
    offer = ncu.COLLECTOR.offered(Tool("ncu", True, "", path, capability="8.0"), [name])
    assert (name in offer.names) is details

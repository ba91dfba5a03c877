"""What the tests of `eprof run` share: a bench with stand-in tools, where eprof runs as a user runs it."""

import fcntl
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm

ROOT = Path(__file__).parents[2]
STAND_INS = Path(__file__).parents[1] / "stand_ins"

BLOCK = """Instructions executed for kernel '{kernel}':
{n:>16} - call llvm.fmuladd.f64()
{n:>16} - load global ({bytes} bytes)
{n:>16} - ret
"""


def block(kernel="axpy", n=64):
    """What Oclgrind prints for one launch."""
    return BLOCK.format(kernel=kernel, n=n, bytes=8 * n) + "\n"


def emit(text):
    """Shell code that prints `text`."""
    return "cat <<'EOF'\n" + text.rstrip("\n") + "\n\nEOF\n"


class Bench:
    """An empty directory, a PATH with only the tools that a test puts there, and eprof."""

    def __init__(self, folder):
        self.folder = folder / "work"
        self.bin = folder / "bin"
        self.site = folder / "site"
        for one in (self.folder, self.bin, self.site):
            one.mkdir()
        self.more = {}
        # The real ones of this machine are not to be found there.
        for name in ("valgrind", "perf"):
            self._script(self.bin / name, "#!/bin/sh\nexit 1\n")

    def tool(self, name, source):
        """Put a stand-in into PATH."""
        self._script(self.bin / name, f"#!{sys.executable} -SI\n" + (STAND_INS / source).read_text())

    def nvprof(self, gpu="Tesla K20c, 3.5"):
        """A machine with a Kepler board and nvprof."""
        self.tool("nvprof", "nvprof.py")
        self.tool("nvidia-smi", "nvidia_smi.py")
        self.more["STAND_IN_GPU"] = gpu

    def ncu(self, gpu="NVIDIA H100 80GB HBM3, 9.0"):
        """A machine with a Hopper board and ncu. A real nsys of this machine is not to be found there."""
        self.tool("ncu", "ncu.py")
        self.tool("nsys", "nsys.py")
        self.more["STAND_IN_NSYS"] = "mute"
        self.tool("nvidia-smi", "nvidia_smi.py")
        self.more["STAND_IN_GPU"] = gpu

    def nsys(self, mode="", **more):
        """Nsight Systems too. mode: what goes wrong with it."""
        self.tool("nsys", "nsys.py")
        self.more.update(more, STAND_IN_NSYS=mode)

    def meter(self):
        """NVIDIA's Python package, on a GPU that draws 100 W."""
        (self.site / "pynvml.py").write_text((STAND_INS / "pynvml.py").read_text())

    def simulator(self):
        """A virtual environment in which Oclgrind seems to be installed; programs print its blocks themselves."""
        libraries = self.site / "venv" / "lib" / "python3.11" / "site-packages" / "pyopencl" / ".libs"
        libraries.mkdir(parents=True)
        (libraries / "liboclgrind-rt-icd-0.so").touch()
        self.more["VIRTUAL_ENV"] = str(self.site / "venv")

    def script(self, text, name="program"):
        """A shell program in the working directory; returns how to call it."""
        self._script(self.folder / name, "#!/bin/bash\n" + text)
        return f"./{name}"

    def python(self, text, name="program"):
        """A Python program in the working directory; returns how to call it."""
        self._script(self.folder / name, f"#!{sys.executable} -SI\n{text}")
        return f"./{name}"

    @staticmethod
    def _script(path, text):
        path.write_text(text)
        path.chmod(0o755)

    def command(self, *arguments):
        """The words that start eprof."""
        return [sys.executable, "-m", "eprof", *map(str, arguments)]

    def environment(self, **more):
        """What eprof finds in its environment."""
        kept = {key: os.environ[key] for key in ("HOME", "LANG", "TMPDIR", "OPENBLAS_NUM_THREADS") if key in os.environ}
        path = f"{self.bin}:/usr/bin:/bin"
        return {**kept, "PATH": path, "PYTHONPATH": f"{ROOT}:{self.site}", "COLUMNS": "120", **self.more, **more}

    def run(self, *arguments, stdin=None, text=True, env=None, **more):
        """`eprof run ARGUMENTS`, to its end. more: see `warm.start`."""
        words = self.command("run", *arguments)[3:]
        return warm.run(words, self.folder, self.environment(**(env or {})), stdin, text, **more)

    def run_until_hang(self, *arguments):
        """`eprof run --timeout 100 ARGUMENTS`, for which that time has gone by when the program makes a file `hangs`."""
        words = ["run", "--no-report", "--timeout", "100", *arguments]
        return subprocess.run(
            [sys.executable, "-c", _JUMP, *words], cwd=self.folder, env=self.environment(),
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    def start(self, *arguments, env=None, **more):
        """`eprof run ARGUMENTS`, started from nothing as a shell does, and going on."""
        return subprocess.Popen(
            self.command("run", *arguments), cwd=self.folder, env=self.environment(**(env or {})),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more,
        )  # fmt: skip

    def start_warm(self, *arguments, **more):
        """The same, forked (see `warm.start`): for runs that make a report."""
        return warm.start(self.command("run", *arguments)[3:], self.folder, self.environment(), **more)

    def manifest(self, name="program.eprof"):
        """`run.json`."""
        return json.loads((self.folder / name / "run.json").read_text())

    def await_end(self, name="program.eprof", seconds=300):
        """Wait until nobody writes to a run directory any more: the helper, which may outlive eprof, holds its lock."""
        until = time.monotonic() + seconds
        place = os.open(self.folder / name, os.O_RDONLY)
        try:
            while not _locked(place):
                assert time.monotonic() < until, f"{name} is still written to"
                time.sleep(0.01)
        finally:
            os.close(place)

    def await_file(self, name, text="", seconds=300):
        """Wait until a file of the working directory holds `text`."""
        until = time.monotonic() + seconds
        path = self.folder / name
        while not (path.exists() and text in path.read_text(errors="replace")):
            assert time.monotonic() < until, f"{name} did not come to hold {text!r}"
            time.sleep(0.01)


_JUMP = """
import os, sys, time, types
from eprof import cli
from eprof.collect import process
process.time = types.SimpleNamespace(monotonic=lambda: time.monotonic() + 1000 * os.path.exists("hangs"))
cli.main(sys.argv[1:])
"""


def _locked(place):
    try:
        fcntl.flock(place, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@pytest.fixture
def bench(tmp_path):
    """A bench without any profiler."""
    return Bench(tmp_path)


@pytest.fixture
def simulated(bench):
    """A bench with a simulated device."""
    bench.simulator()
    return bench

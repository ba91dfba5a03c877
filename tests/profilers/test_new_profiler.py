"""A profiler that eprof has never seen: a folder in `profilers/` and a definition in `counters/`, and no other edit."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIGNS = """
from eprof.base.signs import Signs

SIGNS = Signs(reader_of=lambda block: "reader" if block.startswith(b"TALLY 1") else None)
"""
READER = """
import numpy as np

from eprof.base.arrays import Columns
from eprof.logs.log import COUNT, Names, Table, TableRows


def read(source, blocks, keep, *_):
    lines = b"".join(blocks).decode().splitlines()
    kernels, launches, times, amounts = zip(*(line.split() for line in lines[1:]), strict=True)
    rows = TableRows(
        device=Names.of(["board of mine"] * len(kernels)),
        kernel=Names.of(kernels),
        run=np.zeros(len(kernels), dtype=np.int64),
        launches=np.array(launches, dtype=np.int64),
        time_s=np.array(times, dtype=np.float64),
    )
    counters = Columns(("inst_executed",), np.array(amounts, dtype=np.float64)[:, None])
    table = Table("tally-counts", rows, counters, {"inst_executed": COUNT})
    return source.log([table], [], lines=len(lines))
"""
# A counter of nvprof by its name, which means something else here.
DEFINITION = """
schema = 1
applies = { profiler = "tally", capability = ["any"] }
source = "this test"
extends = ["nvprof/kepler-3.5.toml"]

[counter]
tallied = "inst_executed"

[instruction]
integer = [{ formula = "7 * tallied" }]
"""


@pytest.fixture
def copy(tmp_path):
    """A checkout with one profiler more."""
    for folder in ("eprof", "counters"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "measurements"))
    for folder in ("costs", "reports"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    profiler = tmp_path / "eprof" / "profilers" / "tally"
    profiler.mkdir()
    (profiler / "__init__.py").write_text(SIGNS)
    (profiler / "reader.py").write_text(READER)
    definitions = tmp_path / "counters" / "tally"
    definitions.mkdir()
    (definitions / "any.toml").write_text(DEFINITION)
    return tmp_path


def test_a_new_profiler_is_a_folder_and_a_definition(copy):
    (copy / "mine.log").write_text("TALLY 1\naxpy 2 0.5 100\ndot 1 0.25 10\n")
    command = [sys.executable, "-m", "eprof", "report", "mine.log", "--format", "json", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    kernels = {kernel["name"]: kernel for kernel in document["kernels"]}
    assert {name: kernel["time_s"] for name, kernel in kernels.items()} == {"axpy": 0.5, "dot": 0.25}
    assert kernels["axpy"]["counts"]["integer"]["value"] == 700

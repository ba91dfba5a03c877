"""What all tests share: where the real logs are, and how to run the command as a user does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from run_support import bench, simulated  # noqa: F401 - fixtures

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"


@pytest.fixture
def real_log():
    """The path of a real nvprof log, by name; skips where the shared data is not there."""

    def find(name):
        path = SHARED / "nvprof" / name
        if not path.exists():
            pytest.skip(f"needs the real log {name}, which is not part of this project")
        return path

    return find


@pytest.fixture
def eprof_command(tmp_path):
    """Run `eprof ARGUMENTS` in a process of its own, in an empty directory; returns the finished process."""

    def run(*arguments, cwd=tmp_path, env=None, **more):
        environment = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
        environment |= {"PYTHONPATH": str(ROOT), "COLUMNS": "120", **(env or {})}
        command = [sys.executable, "-m", "eprof", *map(str, arguments)]
        return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, **more)

    return run

"""The suite itself: what it says of tests that did not run."""

import re
import subprocess
import sys

import pytest
from conftest import ROOT, environment

SKIPPING = """
import pytest
@pytest.mark.parametrize("name", ["a.csv", "b.csv", "c.csv"])
def test_log(name):
    pytest.skip(f"needs the real log {name}, which is not part of this project")
@pytest.mark.skipif(True, reason="needs a browser")
def test_page():
    pass
@pytest.fixture
def device():
    pytest.skip("needs a GPU")
def test_device(device):
    pass
def test_that_runs():
    pass
"""


@pytest.mark.parametrize("workers", [[], ["-n", "1"]], ids=["alone", "xdist"])
def test_skipped_tests_are_told_with_their_reasons(tmp_path, workers):
    (tmp_path / "test_some.py").write_text(SKIPPING)
    (tmp_path / "pytest.ini").write_text("[pytest]\ntestpaths = none\n")
    command = [sys.executable, "-m", "pytest", "-p", "conftest", "-p", "no:cacheprovider", *workers, "test_some.py"]
    paths = f"{ROOT / 'tests'}:{ROOT}"
    done = subprocess.run(command, cwd=tmp_path, env=environment(PYTHONPATH=paths), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.partition("5 tests skipped")[2].splitlines()
    assert [line.split(maxsplit=1) for line in told if re.match(" +[0-9]", line)] == [
        ["3", "needs the real log, which is not part of this project"],
        ["1", "needs a GPU"],
        ["1", "needs a browser"],
    ]

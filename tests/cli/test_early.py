"""What comes before a command runs (Ctrl-C while modules are imported, warnings, little memory) and behind it."""

import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import environment

from eprof.base import resources
from eprof.cli import output

# Presses Ctrl-C when a module is looked for, and warns as numpy does.
_SITE = """
import os, signal, sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == os.environ.get("INTERRUPTED_AT"):
            os.kill(os.getpid(), signal.SIGINT)
        if name == os.environ.get("WARNED_AT"):
            import warnings
            warnings.warn("overflow encountered in multiply", RuntimeWarning)

sys.meta_path.insert(0, Finder)
"""


def started(tmp_path, words, **more):
    (tmp_path / "sitecustomize.py").write_text(_SITE)
    own = environment(**more)
    own["PYTHONPATH"] = f"{tmp_path}:{own.get('PYTHONPATH', '')}"
    return subprocess.run([sys.executable, *words], cwd=tmp_path, env=own, capture_output=True, text=True, timeout=100)


@pytest.mark.parametrize(
    "how", [["-m", "eprof"], ["-c", "import sys; from eprof.__main__ import main; sys.exit(main())"]]
)
@pytest.mark.parametrize("module", ["eprof.cli", "argparse", "eprof.cli.dispatch", "eprof.commands.costs.command"])
def test_ctrl_c_while_modules_are_imported_is_no_traceback(tmp_path, how, module):
    done = started(tmp_path, [*how, "costs"], INTERRUPTED_AT=module)
    assert done.returncode in (130, -signal.SIGINT) and done.stdout == ""
    assert "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 1, done.stderr


def test_the_installed_command_is_guarded_too():
    import tomllib
    from pathlib import Path

    about = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert about["project"]["scripts"] == {"eprof": "eprof.__main__:main"}


def test_warnings_of_libraries_are_not_for_users(tmp_path):
    words = ["-m", "eprof", "costs", "--config", "", "-q"]
    assert started(tmp_path, words, WARNED_AT="eprof.commands.costs.command").stderr == ""
    asked = started(tmp_path, ["-W", "always", *words], WARNED_AT="eprof.commands.costs.command")
    assert "overflow encountered" in asked.stderr


# ---- `ulimit -v`


@pytest.fixture
def limited(monkeypatch):
    def to(most):
        monkeypatch.setattr(resource, "getrlimit", lambda _: (most, most))
        return resources.is_memory_scarce()

    return to


def test_with_little_memory_no_thread_reads_ahead(limited):
    assert not limited(resource.RLIM_INFINITY) and not limited(1 << 30)
    assert limited((1 << 30) - 1)


def test_that_little_memory_makes_long_logs_slow_is_said_once(limited, capsys):
    limited(900 << 20)
    shown = output.Progress(quiet=False)
    for done in (1 << 20, 2 << 20):
        shown.reading(done, 100 << 20)
    said = capsys.readouterr().err
    assert said == (
        "eprof: little memory is allowed, so long logs are read slowly; `ulimit -v 1048576` or more is quicker.\n"
    )
    output.Progress(quiet=False).reading(1, 16 << 20)
    output.Progress(quiet=True).reading(1, 100 << 20)
    limited(1 << 30)
    output.Progress(quiet=False).reading(1, 100 << 20)
    assert capsys.readouterr().err == ""


# ---- threads of BLAS


@pytest.mark.parametrize("given", [None, "3"])
def test_a_program_that_eprof_runs_has_the_threads_that_it_was_given(given, tmp_path):
    told = {} if given is None else {"OPENBLAS_NUM_THREADS": given}
    around = {name: text for name, text in environment(**told).items() if told or name != "OPENBLAS_NUM_THREADS"}
    program = "import os; print(os.environ.get('OPENBLAS_NUM_THREADS'))"
    command = ["run", "--profiler", "none", "-o", "run.eprof", "--", sys.executable, "-c", program]
    ran = subprocess.run(
        [sys.executable, "-m", "eprof", *command], env=around, cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.stdout.strip() == str(given), ran.stderr


# ---- the end

_WITH_AN_END = """
import atexit, sys
from eprof.__main__ import main

class Kept:
    def __del__(self):
        print("taken apart")

kept = Kept()
atexit.register(print, "asked for")
main()
"""


@pytest.mark.parametrize(("word", "code"), [("--version", 0), ("--help", 0), ("nothing.csv", 2)])
def test_the_end_does_what_was_asked_for_and_takes_nothing_apart(word, code, tmp_path):
    words = [sys.executable, "-c", _WITH_AN_END, word]
    ended = subprocess.run(words, env=environment(), cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout.splitlines()[-1:]) == (code, ["asked for"]), ended.stderr


def test_a_help_that_cannot_be_written_is_no_success():
    around = environment()
    around.pop("PYTHONUNBUFFERED", None)
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run([sys.executable, "-m", "eprof", "--help"], env=around, stdout=full, stderr=full)
    assert ended.returncode == 120

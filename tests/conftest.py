"""What all tests share: where the real logs are, and how to run the command as a user does."""

import contextlib
import gc
import importlib
import io
import itertools
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

# Matrices here are small: a thread a core, which waits for work by spinning, took an eighth of the time of the fits' tests.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Tests write and read a hundred thousand small files, which in memory takes a third of the time.
IN_MEMORY = Path("/dev/shm")
if IN_MEMORY.is_dir():
    there = os.statvfs(IN_MEMORY)
    if there.f_bavail * there.f_frsize > 4 << 30 and not there.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))

import pytest
import warm
from browser_support import browser, contexts, opener  # noqa: F401 - fixtures

# pytest makes its asserts tell what they saw, which takes a second: once, also where Python is told to keep no bytecode.
kept, sys.dont_write_bytecode = sys.dont_write_bytecode, False
from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = kept

from run_support import bench, simulated  # noqa: F401 - fixtures

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "data"

# No limit of time: the machine may be busy with other things. In CI the same examples each time, so that what fails there is
# the change and not the draw; at every other place new ones each time.
settings.register_profile(
    "suite",
    deadline=None,
    max_examples=25,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("suite")

gc.disable()  # until all is collected: see `pytest_collection_finish`

# Programs inherit that a signal is ignored, as after `nohup` or in the background of a script, but not that it is caught.
for number in (signal.SIGHUP, signal.SIGINT):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, lambda *_: None)


def pytest_sessionstart(session):
    """With `-n`, each worker takes a share of the files first and finds those of the others compiled.

    All must collect all files; to make their asserts tell what they saw takes pytest five seconds, once or a worker each.
    """
    worker, config = getattr(session.config, "workerinput", None), session.config
    if worker is None or config.args != config.getini("testpaths"):
        return
    sys.dont_write_bytecode = False  # else nothing is to be found; it is in __pycache__, which git ignores
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    for file in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        sys.path.insert(0, str(file.parent))
        with contextlib.suppress(Exception, pytest.skip.Exception):  # collecting it will tell
            importlib.import_module(file.stem)
        sys.path.remove(str(file.parent))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """With `-n`, a file's tests run in one process: what they share (browser, run directories, compiled code) is made once."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Files(LoadFileScheduling):
        def add_node_collection(self, node, collection):
            super().add_node_collection(node, collection)
            self.registered_collections[node] = Places(collection)

        def _split_scope(self, nodeid):
            return "one browser" if any(one in nodeid for one in BROWSED) else super()._split_scope(nodeid)

    config.option.loadscopereorder = False  # not those with most tests first: see below
    return Files(config, log)


class Places(list):
    """Names whose places are looked up: to search ten thousand names for each of them takes seconds."""

    def __init__(self, names):
        super().__init__(names)
        self.places = {name: place for place, name in enumerate(self)}

    def index(self, name):
        return self.places[name]


# What shares a browser, whose start takes as long as four of these tests.
BROWSED = (
    "test_report_browser.py",
    "test_history_browser.py",
    "test_diff_browser.py",
    "test_security_pages.py",
    "::test_pages_in_a_browser",
    "_of_thousands",  # not all of these: their page, which takes seconds to make, is made once
)


# Files that take longest, so that none of them is left for the end when the other workers have nothing to do.
LONGEST = [
    "report_browser",
    "callgrind_lines",
    "fitting",
    "cpu_words",
    "first_screen",
    "validate_cli",
    "faults",
    "commands",
    "callgrind",
    "run_nvprof",
    "callgrind_oracle",
    "run_manners",
    "run_ncu",
    "oracle",
    "study_cpu",
    "packaging",
    "diff",
    "meters_fuzz",
    "samples_run",
    "caches_native",
    "oclgrind_native",
    "counts",
    "fit_cli",
    "whatif",
    "gaps",
    "cpu_damage",
    "meters",
    "architecture",
    "measurements_forms",
    "cli",
    "trace",
    "shell",
    "wings",
    "calibration_opencl",
    "run_directory",
    "action",
    "tuning",
    "suite",
    "likeness",
    "logs_real",
    "security_patterns",
    "logs_many",
    "ranks",
    "published",
    "measurements",
    "random_accesses",
    "security_inputs",
    "levers",
]


def pytest_collection_modifyitems(items):
    place = {f"test_{name}.py": number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.name, len(place)))


def pytest_collection_finish():
    """What thousands of tests are made of is never garbage: looking through it again and again took a sixth of the time."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(500_000)  # and what a test makes lasts no longer than it


def pytest_terminal_summary(terminalreporter):
    """At the end: how many tests were skipped and why, most first. What was not tested should not look as if it passed."""
    reasons = Counter(_reason(report) for report in terminalreporter.getreports("skipped"))
    if not reasons:
        return
    terminalreporter.section(f"{reasons.total()} tests skipped")
    for reason, number in sorted(reasons.items(), key=lambda item: (-item[1], item[0])):
        terminalreporter.write_line(f"{number:5}  {reason}")


def _reason(report):
    """Why a test was skipped; tests that need real logs have one reason, whichever log it is."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple | list) else str(report.longrepr)
    return re.sub(r"(real log) \S+?(,| )", r"\1\2", said.removeprefix("Skipped: ")).strip() or "no reason given"


NUMBERS = itertools.count()


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """An empty folder, as pytest makes it, which looks through those of all other tests for a number that is free."""
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(NUMBERS)}"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def real_repro():
    """The path of a small log that once gave a wrong number; skips where there is none."""

    def path(name):
        found = SHARED / "repro" / name
        if not found.exists():
            pytest.skip(f"no {found}")
        return found

    return path


@pytest.fixture
def real_log():
    """The path of a real nvprof log, by name; skips where the shared data is not there."""

    def find(name):
        path = SHARED / "nvprof" / name
        if not path.exists():
            pytest.skip(f"needs the real log {name}, which is not part of this project")
        return path

    return find


def environment(**more):
    """The environment of an eprof that a test calls."""
    kept = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **more}


@pytest.fixture
def eprof_command(tmp_path):
    """Run `eprof ARGUMENTS` in a process of its own (see `warm`), in an empty directory; the finished process."""

    def run(*arguments, env=None, input=None, folder=None):
        return warm.run(arguments, folder or tmp_path, environment(**(env or {})), input)

    return run


def here(arguments, folder, env):
    """`eprof ARGUMENTS` in this process, in a third of the time: for what eprof says, not for how it starts and ends."""
    from eprof.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.chdir(folder)
        for name in os.environ.keys() - env.keys():
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main([*map(str, arguments)])
    said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(arguments, ended.value.code, *said)


@pytest.fixture
def eprof_here(tmp_path):
    """Run `eprof ARGUMENTS` in this process, in an empty directory, as `here` does."""
    return lambda *arguments, env=None, folder=None: here(arguments, folder or tmp_path, environment(**(env or {})))


@pytest.fixture
def eprof_started(tmp_path):
    """The same in a process that is started from nothing, as a shell does."""

    def run(*arguments, env=None):
        command = [sys.executable, "-m", "eprof", *map(str, arguments)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment(**(env or {})), capture_output=True, text=True, timeout=300
        )

    return run

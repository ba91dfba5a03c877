"""Faults of the machine, provoked for real: full and read-only disks, limits, locks, clocks, logs that change or go away.

Each ends in a right result or in one sentence, and leaves nothing half written. benchmarks/soak.py has the full sizes.
"""

import contextlib
import json
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm
from logs_support import METRICS, TRACE, TRACE_UNITS, launch, metric, profiled
from run_support import block, emit

from eprof import logs
from eprof.profile import api

ROOT = Path(__file__).parents[2]
IS_ROOT = os.geteuid() == 0


def text(seed=1):
    """A healthy log of nvprof."""
    rows = [metric("inst_integer", 100 * seed + i, kernel=f"kernel_{i}()") for i in range(3)]
    times = [launch(seed * 0.1, kernel=f"kernel_{i}()") for i in range(3)]
    return profiled(seed, METRICS, *rows) + profiled(seed + 50, TRACE, TRACE_UNITS, *times)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text(text())
    return path


def command(*words):
    return [sys.executable, "-m", "eprof", *map(str, words)]


def environment(**more):
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("EPROF_", "NO_COLOR", "FORCE_"))}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "120", **more}


def report(*words, cwd, env=None, **more):
    """`eprof report WORDS`, forked (see `warm.start` for `more`), ended after a minute."""
    return warm.run(command("report", *words)[3:], cwd, environment(**(env or {})), timeout=300, **more)


def report_cold(*words, cwd, before, **more):
    """The same, started from nothing. before: what the process does to itself first."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **more}
    return subprocess.run(
        command("report", *words), cwd=cwd, env=environment(), text=True, timeout=300, preexec_fn=before, **streams
    )


def started(*words, cwd, env=None):
    """`eprof report WORDS`, forked and going on."""
    return warm.start(command("report", *words)[3:], cwd, environment(**(env or {})))


def limited(what, number):
    return lambda: resource.setrlimit(what, (number, number))


def says(done, code, *words):
    """The one sentence of a failure."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("eprof: "), done.stderr
    for word in words:
        assert word in lines[0]


def hidden(folder):
    """Files that a writer left half done."""
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def told(path):
    made = json.loads(path.read_text())
    return {key: made[key] for key in ("energy_j", "time_s", "kernels", "warnings")}


@pytest.fixture
def mounted(tmp_path):
    """Mount a small file system; skips where that is not allowed."""
    places = []

    def mount(name, size):
        place = tmp_path / name
        place.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], capture_output=True, check=False
        ) if IS_ROOT and shutil.which("mount") else None  # fmt: skip
        if done is None or done.returncode:
            pytest.skip("needs to mount a small file system, which takes root and its capabilities")
        places.append(place)
        return place

    yield mount
    for place in places:
        subprocess.run(["umount", "-l", str(place)], check=True)


def read_only(place):
    subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)


@pytest.fixture
def shim(tmp_path):
    """A library that stands before libc's own; skips where there is no compiler."""

    def build(source):
        if shutil.which("gcc") is None:
            pytest.skip("needs gcc, to make a library that provokes the fault")
        (tmp_path / "shim.c").write_text("#define _GNU_SOURCE\n" + source)
        words = ["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "shim.so"), str(tmp_path / "shim.c"), "-ldl"]
        subprocess.run(words, check=True, capture_output=True)
        return str(tmp_path / "shim.so")

    return build


# ------------------------------------------------------------------------------------------------------- no room


def test_an_old_page_survives_a_full_disk(log, mounted, tmp_path):
    place = mounted("full", "16k")
    (place / "a.html").write_text("old")
    done = report(log, "--costs", "gtx680", "-q", "-f", "-o", place / "a.html", cwd=tmp_path)
    says(done, 1, "full/a.html: cannot be written (No space left on device); nothing was changed", "elsewhere")
    assert (place / "a.html").read_text() == "old" and not hidden(place)


def test_a_read_only_disk_is_read_and_not_written(log, mounted, tmp_path):
    place = mounted("ro", "1m")
    shutil.copy(log, place / "log.csv")
    read_only(place)
    done = report(place / "log.csv", "-q", "-o", "a.json", "-o", place / "a.json", cwd=tmp_path)
    wrote, failed = done.stderr.splitlines()
    assert done.returncode == 1 and wrote == "eprof: wrote a.json" and told(tmp_path / "a.json")["kernels"]
    assert "a.json: cannot be written (Read-only file system)" in failed


def test_a_limit_on_the_size_of_files(log, tmp_path):
    limit = resource.RLIMIT_FSIZE, 8192
    done = report(log, "--costs", "gtx680", "-q", "-o", "a.html", cwd=tmp_path, limit=limit)
    says(done, 1, "a.html: cannot be written (File too large)")
    assert not (tmp_path / "a.html").exists() and not hidden(tmp_path)


def test_a_pipe_that_no_temporary_file_can_hold(mounted, tmp_path):
    place = mounted("tmp", "16k")
    many = text() * 40
    done = report("-", "-q", "-o", "a.json", cwd=tmp_path, env={"TMPDIR": str(place)}, stdin=many)
    says(done, 1, "/dev/stdin: there is no room for temporary files; set TMPDIR")
    assert list(place.iterdir()) == [] and not (tmp_path / "a.json").exists()


def test_a_full_standard_output(log, tmp_path):
    with Path("/dev/full").open("w") as full:
        done = report(log, "--format", "json", cwd=tmp_path, stdout=full)
    says(done, 1, "standard output cannot be written (No space left on device)", "-o")


def test_a_closed_standard_output_is_only_an_error_if_the_result_was_for_it(log, tmp_path):
    closed = {"before": lambda: os.close(1), "stdout": None}
    says(report_cold(log, "--format", "json", cwd=tmp_path, **closed), 1, "standard output is closed", "-o")
    assert report_cold(log, "-o", "a.json", cwd=tmp_path, **closed).returncode == 0
    assert json.loads((tmp_path / "a.json").read_text())["kernels"]


def test_messages_that_nobody_can_read_stop_nothing(log, tmp_path):
    with Path("/dev/full").open("w") as full:
        assert report(log, "-o", "a.json", cwd=tmp_path, stderr=full).returncode == 0
    assert (tmp_path / "a.json").is_file()


# -------------------------------------------------------------------------------------------------------- limits


# A limit from the start may strike while numpy is imported, which then ends in its own words, if it ends.
_LATE = """
import resource, sys
import eprof.profile.api
from eprof.cli import main

taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 20), taken + (1 << 20)))
main(sys.argv[1:])
"""


@pytest.mark.parametrize("late", [False, True])
def test_too_little_memory_is_one_sentence(log, late, tmp_path):
    words = ["-q", "-o", "a.json"]
    if late:
        started_late = [sys.executable, "-c", _LATE, "report", str(log), *words]
        done = subprocess.run(
            started_late, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60, check=False
        )
    else:
        done = report_cold(log, *words, cwd=tmp_path, before=limited(resource.RLIMIT_AS, 40_000 << 10))
    says(done, 1, "there is not enough memory; allow more (`ulimit -v`)")
    assert not (tmp_path / "a.json").exists() and not hidden(tmp_path)


def test_a_limit_on_memory_that_is_enough_changes_nothing(log, tmp_path):
    done = report_cold(log, "-q", "-o", "a.json", cwd=tmp_path, before=limited(resource.RLIMIT_AS, 4 << 30))
    assert done.returncode == 0, done.stderr
    counted = {one["name"]: one["counts"]["integer"]["value"] for one in told(tmp_path / "a.json")["kernels"]}
    assert counted == {f"kernel_{i}()": 2 * (100 + i) for i in range(3)}


def test_one_log_too_large_for_the_memory_is_not_left_out_of_the_total(log, tmp_path):
    """That would be a wrong total, for no fault of the log's."""
    names = "".join(launch(1.0, kernel=f"kernel_{i}<{'x' * 2000}>()") + "\n" for i in range(10_000))
    (tmp_path / "large.csv").write_text(profiled(1, TRACE, TRACE_UNITS, names))
    limit = limited(resource.RLIMIT_AS, 270_000 << 10)
    done = report_cold(log, "large.csv", "--no-cache", "-q", "-o", "a.json", cwd=tmp_path, before=limit)
    if done.returncode == 0:
        assert not any("Left out" in one for one in told(tmp_path / "a.json")["warnings"])
    else:
        says(done, 1, "there is not enough memory; allow more (`ulimit -v`)")


def test_few_descriptors_are_enough_for_many_logs(tmp_path):
    (tmp_path / "many").mkdir()
    for i in range(401):  # so many that other processes read too
        (tmp_path / "many" / f"{i}.csv").write_text(profiled(i, METRICS, metric("inst_integer", 5)))
    done = report("many/*.csv", "-q", "-o", "a.json", cwd=tmp_path, limit=(resource.RLIMIT_NOFILE, 16))
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    assert [one["launches"] for one in told(tmp_path / "a.json")["kernels"]] == [802]


@pytest.mark.skipif(not (IS_ROOT and shutil.which("setpriv")), reason="needs root and setpriv to become another user")
def test_threads_and_processes_that_cannot_be_started(log, tmp_path):
    """Another user, who may still read everything: root is exempt from this limit."""
    tmp_path.chmod(0o777)
    become = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--inh-caps=+dac_override",
              "--ambient-caps=+dac_override"]  # fmt: skip
    if subprocess.run([*become, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not become another one")
    shell = 'ulimit -u 3; exec "$@"'
    done = subprocess.run(
        [*become, "bash", "-c", shell, "sh", *command("report", log, "-q", "-o", "a.json")], cwd=tmp_path,
        env=environment(PYTHONDONTWRITEBYTECODE="1", OPENBLAS_NUM_THREADS="1"), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if done.returncode:
        assert "eprof: no more threads or processes may be started; allow more (`ulimit -u`)." in done.stderr
    assert "Traceback" not in done.stderr


# ------------------------------------------------------------------------------------------- processes and signals


def _await_workers(process):
    until = time.monotonic() + 300
    while time.monotonic() < until and process.poll() is None:
        found = _children(process.pid)
        if len(found) >= 3:  # two workers and multiprocessing's own
            return found
        time.sleep(0.02)
    raise AssertionError("no workers were started")


def _children(pid):
    with contextlib.suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="needs /proc")
@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143), ("SIGKILL", -9)])
def test_an_ended_report_leaves_no_process_behind(log, number, code, tmp_path):
    (tmp_path / "many").mkdir()
    for i in range(3000):
        os.link(log, tmp_path / "many" / f"{i}.csv")
    process = subprocess.Popen(
        command("report", "many/*.csv", "-q", "-o", "a.json"), cwd=tmp_path, env=environment(), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    if len(os.sched_getaffinity(0)) < 2:
        process.kill()
        pytest.skip("needs two cores")
    workers = _await_workers(process)
    if number == "SIGINT":
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    else:
        process.send_signal(getattr(signal, number))
    _, said = process.communicate(timeout=300)
    assert process.returncode == code, said
    if number != "SIGKILL":
        assert said.startswith("eprof: ") and len(said.splitlines()) == 1, said
    until = time.monotonic() + 300
    while left := [one for one in workers if Path(f"/proc/{one}").is_dir()]:
        assert time.monotonic() < until, f"{left} live on"
        time.sleep(0.05)
    assert not (tmp_path / "a.json").exists() and not hidden(tmp_path)


def test_a_report_that_is_ended_removes_its_temporary_file(tmp_path):
    (tmp_path / "tmp").mkdir()
    process = subprocess.Popen(
        command("report", "-"), cwd=tmp_path, env=environment(TMPDIR=str(tmp_path / "tmp")), text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    until = time.monotonic() + 300
    while not list((tmp_path / "tmp").iterdir()):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
    process.terminate()
    _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (143, "eprof: ended by SIGTERM.\n")
    assert list((tmp_path / "tmp").iterdir()) == []


# ------------------------------------------------------------------------------------- logs that change or go away


def test_logs_that_go_away_or_are_replaced_while_others_are_read(tmp_path):
    for i in range(1, 5):
        (tmp_path / f"log{i}.csv").write_text(text(i))
    os.mkfifo(tmp_path / "pipe")
    process = started("pipe", "log*.csv", "-q", "-o", "a.json", cwd=tmp_path)
    # Opening the pipe waits for its reader, who has listed the names by then.
    with (tmp_path / "pipe").open("w") as pipe:
        (tmp_path / "log1.csv").unlink()
        (tmp_path / "log2.csv").unlink()
        (tmp_path / "log2.csv").mkdir()
        (tmp_path / "new").write_text(text(7))
        (tmp_path / "new").replace(tmp_path / "log3.csv")
        pipe.write(text(9))
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    made = told(tmp_path / "a.json")
    assert [one for one in made["warnings"] if one.startswith("Left out")] == [
        "Left out: log1.csv: there is no such file; check the path",
        "Left out: log2.csv: this is a folder; give the log files in it",
    ]
    # The pipe's log (9), the third as it is now (7), and the fourth (4).
    counted = {one["name"]: one["counts"]["integer"]["value"] for one in made["kernels"]}
    assert counted == {f"kernel_{i}()": 2 * (900 + 700 + 400 + 3 * i) for i in range(3)}


def test_a_name_that_was_never_there_is_an_error(log, tmp_path):
    says(report(log, "lgo.csv", cwd=tmp_path), 1, "lgo.csv: there is no such file")


@pytest.mark.parametrize("change", ["grows", "is truncated"])
def test_a_log_that_changes_while_it_is_read_is_told(change, tmp_path):
    """As another process would change it, but surely in the midst of reading."""
    rows = (launch(0.1, kernel=f"kernel_{i % 5}()") + "\n" for i in range(60_000))
    path = tmp_path / "log.csv"
    path.write_text(profiled(1, TRACE, TRACE_UNITS) + "".join(rows))

    def spoil(*_):
        if change == "grows":
            with path.open("a") as file:
                file.write(launch(0.1) + "\n")
        else:
            os.truncate(path, max(path.stat().st_size - 4096, 1 << 20))

    document = api.load(path, cache=False, progress=spoil).energy("gtx680").document()
    assert any("the file changed while it was read" in one for one in document["warnings"])
    assert 0 < document["launches"] <= 60_000


def test_a_log_that_grows_as_fast_as_it_is_read_has_an_end(tmp_path):
    """What it held when it was opened is read: else such a log would be read for ever."""
    row = launch(0.1) + "\n"
    path = tmp_path / "log.csv"
    path.write_text(profiled(1, TRACE, TRACE_UNITS) + 1000 * row)
    size = path.stat().st_size

    def grow(more):
        assert path.stat().st_size < 20 * size, "it is read on and on"
        with path.open("a") as file:
            file.write(row * (more // len(row) + 1))

    found = logs.read(path, progress=grow)
    assert found.size_bytes == size
    assert found.tables[0].rows.launches.sum() == 1000


def test_links_in_a_circle_and_links_to_nothing_are_left_out(log, tmp_path):
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    (tmp_path / "c.csv").symlink_to("nowhere")
    (tmp_path / "d.csv").mkdir()
    done = report("*.csv", "-q", "-o", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    left = [one for one in told(tmp_path / "out.json")["warnings"] if one.startswith("Left out")]
    assert [one.split(":")[1].strip() for one in left] == ["a.csv", "b.csv", "c.csv"]


@pytest.fixture
def unprivileged():
    """Words before a command that take root's right to read everything away."""
    if not IS_ROOT:
        return []
    away = "-dac_override,-dac_read_search,-fowner"
    words = ["setpriv", f"--bounding-set={away}", f"--inh-caps={away}"]
    if not shutil.which("setpriv") or subprocess.run([*words, "true"], capture_output=True, check=False).returncode:
        pytest.skip("root reads everything, and setpriv cannot take that away here")
    return words


def test_what_may_not_be_read_is_told(log, unprivileged, tmp_path):
    (tmp_path / "secret.csv").write_text(text(2))
    (tmp_path / "secret.csv").chmod(0)
    (tmp_path / "closed").mkdir()
    shutil.copy(log, tmp_path / "closed" / "log.csv")
    (tmp_path / "closed").chmod(0)
    try:
        run = lambda *words: subprocess.run(  # noqa: E731
            [*unprivileged, *command("report", *words)], cwd=tmp_path, env=environment(), capture_output=True, text=True,
            timeout=300,
        )  # fmt: skip
        done = run("*.csv", "-q", "-o", "out.json")
        assert done.returncode == 0, done.stderr
        assert (
            "Left out: secret.csv: no permission to read this file; change its mode or owner"
            in (told(tmp_path / "out.json")["warnings"])
        )
        says(run("closed/log.csv", "-q", "-o", "out2.json"), 1, "closed/log.csv: no permission to read this file")
    finally:
        (tmp_path / "closed").chmod(stat.S_IRWXU)


def test_a_working_directory_that_is_gone(log, tmp_path):
    (tmp_path / "gone").mkdir()
    done = report(log, "-q", "-o", "a.json", cwd=tmp_path / "gone", removed=tmp_path / "gone")
    says(done, 1, "a.json: cannot be written (No such file or directory)")


def test_a_run_in_a_working_directory_that_is_removed_meanwhile(simulated):
    done = simulated.run(simulated.script(emit(block()) + 'rm -r "$PWD"\n'))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    # Whether the run directory is removed before or after the last log was moved there is chance.
    said = ("the working directory does not exist any more", "Nothing was collected to report on")
    assert any(one in done.stderr for one in said), done.stderr


# ----------------------------------------------------------------------------------------- two at once, cache, clock


def test_two_reports_into_one_file(tmp_path):
    for i in range(2):
        (tmp_path / f"log{i}.csv").write_text(text(i + 1))
    several = [started(f"log{i}.csv", "-q", "-o", "same.json", cwd=tmp_path) for i in range(2)]
    said = [one.communicate(timeout=300)[1] for one in several]
    codes = [one.returncode for one in several]
    assert sorted(codes) == [0, 1], said
    assert all("exists already and is not overwritten" in one for one, code in zip(said, codes, strict=True) if code)
    inputs = json.loads((tmp_path / "same.json").read_text())["inputs"]
    assert inputs[0]["path"] == f"log{codes.index(0)}.csv" and not hidden(tmp_path)


@pytest.fixture
def large(tmp_path):
    """A log that is worth an entry of the cache."""
    path = tmp_path / "large.csv"
    row = (launch(0.1, kernel=f"kernel_{'x' * 900}()") + "\n") * 9_000
    path.write_text(profiled(1, TRACE, TRACE_UNITS) + row)
    os.utime(path, (1, 1))
    return path


def test_reports_at_once_share_a_cache(large, tmp_path):
    env = {"EPROF_CACHE": str(tmp_path / "cache")}
    several = [started(large, "-q", "-o", f"{i}.json", cwd=tmp_path, env=env) for i in range(2)]
    assert [one.wait(300) for one in several] == [0, 0]
    assert told(tmp_path / "0.json") == told(tmp_path / "1.json")
    assert len(list((tmp_path / "cache").glob("*-*-*"))) == 1 and not hidden(tmp_path / "cache")


def test_a_cache_on_a_full_or_read_only_disk_is_no_harm(large, mounted, tmp_path):
    full = mounted("full", "8k")
    done = report(large, "-q", "-f", "-o", "a.json", cwd=tmp_path, env={"EPROF_CACHE": str(full / "cache")})
    assert done.returncode == 0, done.stderr
    # One that was filled before is of use.
    filled = mounted("filled", "1m")
    kept = {"EPROF_CACHE": str(filled / "cache")}
    report(large, "-q", "-f", "-o", "a.json", cwd=tmp_path, env=kept)
    read_only(filled)
    code = (
        "import sys, eprof.logs.many as many\n"
        "many.read = lambda *a, **k: sys.exit('read again')\n"
        "import eprof\nprint(len(eprof.load(sys.argv[1]).counts().kernels))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(large)], env=environment(**kept), capture_output=True, text=True, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


BACKWARDS = """
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t which, struct timespec *when) {
    static int (*real)(clockid_t, struct timespec *); static long calls;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, when);
    if (which == CLOCK_REALTIME) when->tv_sec -= 3600 * ++calls;
    return result;
}
"""


def test_a_clock_that_jumps_back_changes_nothing(large, simulated, shim, tmp_path):
    library = {"LD_PRELOAD": shim(BACKWARDS)}
    jumping = {"EPROF_CACHE": str(tmp_path / "cache"), **library}
    seen = subprocess.run(
        [sys.executable, "-c", "import time; print(time.time() - time.time())"], env=environment(**library),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert float(seen.stdout) > 3000
    for i in (1, 2):
        done = report(large, "-q", "-o", f"{i}.json", cwd=tmp_path, env=jumping)
        assert done.returncode == 0, done.stderr
    assert told(tmp_path / "1.json") == told(tmp_path / "2.json")
    assert [one["launches"] for one in told(tmp_path / "1.json")["kernels"]] == [9000]
    done = simulated.run("--timeout", "50", simulated.script(emit(block())), env=library)
    assert done.returncode == 0, done.stderr
    manifest = simulated.manifest()
    assert manifest["status"] == "complete" and 0 <= manifest["measurements"][0]["seconds"] < 60


# ---------------------------------------------------------------------------------------------------- `eprof run`

NO_LOCKS = """
#include <errno.h>
int flock(int fd, int how) { errno = ENOLCK; return -1; }
"""


def test_a_file_system_without_locks(simulated, shim):
    library = {"LD_PRELOAD": shim(NO_LOCKS)}
    program = simulated.script(emit(block()))
    # Not forked: each library would take a server of its own.
    first = simulated.start("--no-report", "-o", "one.eprof", program, env=library)
    _, said = first.communicate(timeout=300)
    assert first.returncode == 0, said
    assert simulated.manifest("one.eprof")["status"] == "complete"
    again = simulated.start("-f", "-o", "one.eprof", program, env=library)
    _, said = again.communicate(timeout=300)
    assert again.returncode == 1 and "Traceback" not in said
    assert "one.eprof: cannot be replaced (its file system has no locks); remove it yourself" in said
    assert simulated.manifest("one.eprof")["status"] == "complete"


def test_a_program_gets_all_of_its_input_or_is_not_run_again(bench, mounted):
    """Without room to keep what came through a pipe, a second run would have seen a part of it."""
    bench.ncu()
    program = bench.script("wc -c | tee -a counted\n")
    shell = 'head -c 300000 /dev/zero | "$@"'
    done = subprocess.run(
        ["bash", "-c", shell, "sh", *bench.command("run", "--repeat", "2", program)], cwd=bench.folder,
        env=bench.environment(TMPDIR=str(mounted("tmp", "16k"))), capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "its standard input could not be kept for this run (No space left on device); set TMPDIR" in done.stderr
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert (bench.folder / "counted").read_text().split() == ["300000"]


def test_a_disk_that_fills_up_keeps_what_was_collected(simulated, mounted, tmp_path):
    place = mounted("disk", "48k")
    done = simulated.run("-o", place / "one.eprof", simulated.script(emit(block()) * 3))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "make room" in done.stderr.lower() and "eprof report" in done.stderr
    assert not (place / "one.eprof" / "report.html").exists() and not hidden(place / "one.eprof")
    again = report(place / "one.eprof", "-q", "-o", "a.json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert sum(one["launches"] for one in told(tmp_path / "a.json")["kernels"]) == 3


def test_a_run_directory_that_is_removed_under_the_run(simulated):
    done = simulated.run(simulated.script(emit(block()) + "until rm -rf program.eprof 2>/dev/null; do :; done\n"))
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the run directory was removed, with what was collected" in done.stderr


def test_two_runs_into_one_directory(simulated):
    program = simulated.script(emit(block()) + "echo $$ >> ran\nsleep 0.5\n")
    several = [simulated.start_warm("-o", "one.eprof", program) for _ in range(2)]
    said = [one.communicate(timeout=300)[1] for one in several]
    assert sorted(one.returncode for one in several) == [0, 1], said
    assert len((simulated.folder / "ran").read_text().split()) == 1
    assert simulated.manifest("one.eprof")["status"] == "complete"


def test_standard_error_that_is_full_does_not_keep_a_program_from_running(simulated):
    with Path("/dev/full").open("w") as full:
        done = simulated.run(simulated.script(emit(block())), stderr=full)
    assert done.returncode == 0 and simulated.manifest()["status"] == "complete"


def test_folders_of_the_user_that_are_not_there(log, tmp_path):
    gone = dict.fromkeys(["HOME", "XDG_CACHE_HOME", "EPROF_CACHE", "TMPDIR"], "/nonexistent/folder")
    done = report(log, "-q", "-o", "a.json", cwd=tmp_path, env=gone)
    assert done.returncode == 0, done.stderr

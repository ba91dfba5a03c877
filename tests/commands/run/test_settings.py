"""Which cost table prices a run where the user names none."""

from pathlib import Path

import pytest

import eprof
from eprof import costs
from eprof.base.errors import LogError, UsageError
from eprof.collect.collector import Tool
from eprof.commands.run.command import _check_trace
from eprof.commands.run.settings import Settings, Setup, _usual_table
from eprof.profilers.callgrind.collector import COLLECTOR as CALLGRIND
from eprof.profilers.oclgrind.collector import COLLECTOR as OCLGRIND
from eprof.profilers.perf.collector import COLLECTOR as PERF

CPU = "Example(R) Core(TM) e9-9000 CPU @ 3.00GHz"


@pytest.fixture
def with_own_table(tmp_path, monkeypatch):
    """As if eprof came with a table of the CPU `CPU`: the i7-950's under another name."""
    text = (Path(__file__).parents[3] / "costs" / "i7-950.toml").read_text()
    text = text.replace('name = "i7-950"', 'name = "e9-9000"').replace("devices = []", f'devices = ["{CPU}"]')
    (tmp_path / "e9-9000.toml").write_text(text)
    shipped = {**costs._shipped(), "e9-9000": tmp_path / "e9-9000.toml"}
    monkeypatch.setattr(costs, "_shipped", lambda: shipped)


def tool(device):
    return Tool("any", True, "for a test", device=device)


def named(collector, device):
    """The table that a run is priced with by name, None for the device's own, and the table itself."""
    setup = Setup(Settings(("./program",)), collector, tool(device), (), None)
    usual = _usual_table(collector, tool(device))
    return setup.costs, usual and usual.name


@pytest.mark.parametrize("collector", [PERF, CALLGRIND])
def test_a_cpus_own_table_comes_before_that_of_the_i7_950(with_own_table, collector):
    assert named(collector, CPU) == (None, "e9-9000")


@pytest.mark.parametrize("collector", [PERF, CALLGRIND])
@pytest.mark.parametrize("device", ["Another(R) CPU", None])
def test_a_cpu_without_a_table_goes_by_that_of_today_where_the_profiler_says_so(with_own_table, collector, device):
    assert named(collector, device) == (collector.costs, collector.costs)
    assert collector.costs == "sapphirerapids"


def test_a_simulated_device_has_no_table_of_its_own(with_own_table):
    assert named(OCLGRIND, CPU) == ("jetson-tk1", "jetson-tk1")


@pytest.mark.parametrize(
    ("collector", "says"),
    [(PERF, "perf runs no GPU"), (CALLGRIND, "callgrind runs no GPU"), (OCLGRIND, "without time")],
)
def test_a_trace_of_a_run_without_launches_in_time_is_refused(collector, says):
    setup = Setup(Settings(("./program",)), collector, tool(CPU), (), None)
    with pytest.raises(UsageError, match=says):
        _check_trace(setup)


def test_logs_of_cpus_are_told_apart_where_a_trace_is_asked_for(tmp_path):
    log = tmp_path / "perf.txt"
    log.write_text("1000,,instructions,5000,100.00,,\n")
    with pytest.raises(LogError, match="these logs are of a CPU"):
        eprof.load(log, timeline=True)

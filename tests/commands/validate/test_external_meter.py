"""`eprof validate RUN --power LOG`: the joules of an external meter while the program ran, against closed forms."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eprof import cli

LOGS = Path(__file__).parents[3] / "samples" / "logs" / "invented"
BEGAN = datetime(2026, 3, 1, 12, 0, 10, 250000, UTC)
PROGRAM = ["./fmm"]


@pytest.fixture
def command(capsys):
    """Run `eprof validate` here; returns exit code, standard output, standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as found:
            cli.main(["validate", *map(str, arguments)])
        out, err = capsys.readouterr()
        return found.value.code or 0, out, err

    return run


def run_directory(path, measurements):
    (path / "logs").mkdir(parents=True)
    shutil.copy(LOGS / "tk1-fmm-counters.csv", path / "logs" / "counters-1-1.csv")
    shutil.copy(LOGS / "tk1-fmm-times.csv", path / "logs" / "time-1-1.csv")
    manifest = {"schema": "eprof.run/1", "status": "complete", "program": PROGRAM, "command": "./fmm", "warnings": []}
    manifest["measurements"] = measurements
    (path / "run.json").write_text(json.dumps(manifest))
    return path


def measurement(what, after_s, seconds, command=PROGRAM, runs=1):
    began = (BEGAN + timedelta(seconds=after_s)).isoformat().replace("+00:00", "Z")
    return {"what": what, "number": 1, "command": command, "started_utc": began, "seconds": seconds, "runs": runs}


def power_log(path, columns, seconds=60, zone_h=0):
    """A sample a second from 10 s before the run: columns are functions of the second."""
    names = list(columns)
    rows = [",".join(["timestamp", *names])]
    for second in range(seconds):
        moment = BEGAN + timedelta(seconds=second - 10, hours=zone_h)
        watts = ",".join(str(columns[name](second - 10)) for name in names)
        rows.append(f"{moment:%Y-%m-%d %H:%M:%S.%f},{watts}")
    path.write_text("\n".join(rows) + "\n")
    return path


def found_j(out):
    return json.loads(out)["runs"][0]["measured_j"]


def test_joules_while_the_program_ran(command, tmp_path):
    """4 s from second 2 on: 2 s of 10 W and 2 s of 30 W; elsewhere 500 W, which count for nothing."""
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 2, 4), measurement("counters", 20, 30)])
    log = power_log(tmp_path / "meter.csv", {"gpu_w": lambda at: {2: 10, 3: 10, 4: 30, 5: 30}.get(at, 500)})
    code, out, err = command(run, "--costs", "jetson-tk1", "--power", log, "--format", "json")
    assert code == 0, err
    one = json.loads(out)["runs"][0]
    assert one["measured_j"] == pytest.approx(80) and "meter.csv" in one["method"] and "gpu" in one["reasons"]
    assert one["error_percent"] == pytest.approx(100 * (one["predicted_j"] / 80 - 1))


def test_the_median_of_repetitions_and_a_loop_of_runs(command, tmp_path):
    """10 W and 30 W for 2 s each, and 50 W for 6 s in which the program ran three times: 20, 60, 100 J a run."""
    times = [measurement("time", 0, 2), measurement("time", 4, 2), {**measurement("energy", 10, 2, runs=3)}]
    times[2]["energy"] = {"joules": 5.0, "window_s": 6.0, "method": "other"}
    run = run_directory(tmp_path / "fmm.eprof", times)
    log = power_log(tmp_path / "meter.csv", {"board_w": lambda at: 10 if at < 3 else 30 if at < 8 else 50})
    _, out, _ = command(run, "--costs", "jetson-tk1", "--power", log, "--format", "json")
    assert found_j(out) == pytest.approx(60)


def test_times_under_a_profiler_count_only_where_there_are_no_others(command, tmp_path):
    watched = measurement("time", 0, 2, command=["nvprof", *PROGRAM])
    log = power_log(tmp_path / "meter.csv", {"gpu_w": lambda at: 10 if at < 3 else 30})
    alone = run_directory(tmp_path / "a.eprof", [watched, measurement("energy", 10, 2)])
    assert found_j(command(alone, "--costs", "jetson-tk1", "--power", log, "--format", "json")[1]) == pytest.approx(60)
    only = run_directory(tmp_path / "b.eprof", [watched])
    out = command(only, "--costs", "jetson-tk1", "--power", log, "--format", "json")[1]
    assert found_j(out) == pytest.approx(20) and "a profiler watched" in json.loads(out)["runs"][0]["reasons"]


def test_a_component_is_chosen_and_several_are_added(command, tmp_path):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 0, 2)])
    log = power_log(tmp_path / "meter.csv", {"gpu_w": lambda at: 10, "cpu_w": lambda at: 7})
    words = (run, "--costs", "jetson-tk1", "--power", log, "--format", "json")
    code, _, err = command(*words)
    assert code == 1 and "gpu and cpu" in err and "--component NAME" in err
    assert found_j(command(*words, "--component", "gpu")[1]) == pytest.approx(20)
    assert found_j(command(*words, "--component", "gpu", "--component", "cpu")[1]) == pytest.approx(34)
    code, _, err = command(*words, "--component", "fan")
    assert code == 1 and "--component fan" in err and "gpu and cpu" in err


def test_a_component_inside_of_another_that_is_asked_for_is_added_once(command, tmp_path):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 0, 2)])
    columns = {"system_w": lambda at: 90, "cpu_w": lambda at: 20, "core_w": lambda at: 15}
    log = power_log(tmp_path / "meter.csv", columns)
    words = (run, "--costs", "jetson-tk1", "--power", log, "--format", "json", "--component", "cpu")
    out = command(*words, "--component", "core")[1]
    assert found_j(out) == pytest.approx(40) and "core lies in cpu, and is added once." in out


def test_a_clock_in_another_zone_is_set(command, tmp_path):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 0, 2)])
    log = power_log(tmp_path / "meter.csv", {"gpu_w": lambda at: 10 if 0 <= at < 2 else 90}, zone_h=-7)
    out = command(run, "--costs", "jetson-tk1", "--power", log, "--format", "json")[1]
    assert found_j(out) == pytest.approx(20) and "moved by +7 h" in out


@pytest.mark.parametrize("stamp", ["{:%Y-%m-%dT%H:%M:%SZ}", "{:%Y-%m-%dT%H:%M:%S+00:00}", "epoch"])
def test_a_clock_that_tells_its_zone_is_not_set(command, tmp_path, stamp):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 0, 2)])
    moments = [BEGAN + timedelta(seconds=1800 + second - 10) for second in range(60)]
    times = [str(moment.timestamp()) if stamp == "epoch" else stamp.format(moment) for moment in moments]
    log = tmp_path / "meter.csv"
    log.write_text("timestamp,gpu_w\n" + "".join(f"{time},10\n" for time in times))
    code, _, err = command(run, "--costs", "jetson-tk1", "--power", log)
    assert code == 1 and "give a log of that time" in err


def test_a_log_of_another_time_is_refused(command, tmp_path):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 400, 2)])
    log = power_log(tmp_path / "meter.csv", {"gpu_w": lambda at: 10})
    code, _, err = command(run, "--costs", "jetson-tk1", "--power", log)
    assert code == 1 and "2026-03-01 12:00:00 to 2026-03-01 12:01:00 UTC" in err and "12:06:50" in err


def test_a_log_without_dates_is_refused(command, tmp_path):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 0, 2)])
    log = tmp_path / "meter.csv"
    log.write_text("time_s,gpu_w\n0,10\n1,10\n2,10\n")
    code, _, err = command(run, "--costs", "jetson-tk1", "--power", log)
    assert code == 1 and "no date" in err and "meter.csv" in err


def test_a_run_that_does_not_tell_its_times_is_refused(command, tmp_path):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("counters", 0, 2)])
    log = power_log(tmp_path / "meter.csv", {"gpu_w": lambda at: 10})
    code, _, err = command(run, "--costs", "jetson-tk1", "--power", log)
    assert code == 1 and "does not tell when the program ran" in err


def test_words_that_do_not_go_together(command, tmp_path):
    run = run_directory(tmp_path / "fmm.eprof", [measurement("time", 0, 2)])
    log = power_log(tmp_path / "meter.csv", {"gpu_w": lambda at: 10})
    assert command(run, "--component", "gpu")[0] == 2
    assert command(run, "--power", log, "-k", "u_list")[0] == 2

"""`eprof run --mark`, power by component while it runs, and the timeline of that."""

import csv
import json
import os
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_support import STAND_INS

from eprof.base.text import visible
from eprof.cli import main
from eprof.collect import sensors
from eprof.collect.meter import Component
from eprof.commands.run import program_io
from eprof.commands.run.program_io import Marker, passing
from eprof.lab.power import marks

HPCC = "Begin of (.+) section|End of (?P<end>.+) section"


def sections(tmp_path, lines, *patterns, end_s=100.0):
    """What is written of lines with their times."""
    marker = Marker(patterns, tmp_path / "marks.csv")
    for time_s, text in lines:
        marker.line(text, time_s)
    marker.program("prog", 0.0, end_s)
    with (tmp_path / "marks.csv").open() as file:
        rows = list(csv.DictReader(file))
    return [(row["name"], float(row["begin_s"]), float(row["end_s"])) for row in rows], marker


def test_the_next_match_ends_a_section_and_the_program_the_last(tmp_path):
    lines = [(1, "step 1"), (2, "residual 0.1"), (3, "step 2")]
    found, marker = sections(tmp_path, lines, r"step \d+")
    assert found == [("step 1", 1, 3), ("step 2", 3, 100), ("prog", 0, 100)]
    assert (marker.found, marker.at_once) == (2, 0)


def test_sections_with_ends_hold_others_and_end_by_their_names(tmp_path):
    lines = [
        (1, "Begin of HPL section."),
        (2, "Begin of LU section."),
        (3, "End of PTRANS section."),
        (4, "End of HPL section."),
        (6, "Begin of FFT section."),
        (7, "End of FFT section."),
    ]
    assert sections(tmp_path, lines, HPCC)[0] == [("LU", 2, 4), ("HPL", 1, 4), ("FFT", 6, 7), ("prog", 0, 100)]


def test_an_empty_end_ends_the_last_section(tmp_path):
    found, _ = sections(tmp_path, [(1, "in a"), (2, "in b"), (3, "out"), (5, "out")], "in (.)|out(?P<end>)")
    assert found == [("b", 2, 3), ("a", 1, 5), ("prog", 0, 100)]


def test_later_patterns_mark_inside_of_earlier_ones(tmp_path):
    lines = [(1, "iteration 1"), (2, "phase x"), (3, "phase y"), (4, "iteration 2"), (5, "phase x")]
    found, _ = sections(tmp_path, lines, r"iteration \d", "phase (.)")
    assert found == [
        *(("x", 2, 3), ("y", 3, 4), ("iteration 1", 1, 4)),
        *(("x", 5, 100), ("iteration 2", 4, 100), ("prog", 0, 100)),
    ]


def test_sections_of_no_time_are_counted_and_not_written(tmp_path):
    found, marker = sections(tmp_path, [(1, "a"), (1, "b"), (1, "c")], "[abc]")
    assert [name for name, *_ in found] == ["c", "prog"]
    assert (marker.found, marker.at_once) == (3, 2)


@given(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1, max_size=20).filter(str.strip))
def test_any_name_is_read_as_it_was_written(tmp_path_factory, name):
    path = tmp_path_factory.mktemp("marks") / "marks.csv"
    marker = Marker(["(?s)^(.+)$"], path)
    marker.line(name, 1.0)
    marker.program("prog", 0.0, 2.0)
    first, _ = marks.read(str(path)).marks
    assert (first.name, first.begin_s) == (visible(name).strip(), 1.0)


@given(st.binary(max_size=300), st.integers(1, 40))
def test_output_passes_unchanged_and_lines_are_whole(tmp_path_factory, text, size):
    target = tmp_path_factory.getbasetemp() / "passed"
    seen = []
    with target.open("wb") as file, passing(file.fileno(), lambda line, _: seen.append(line)) as output:
        for start in range(0, len(text), size):
            os.write(output, text[start : start + size])
    assert target.read_bytes() == text
    lines = text.replace(b"\r", b"\n").split(b"\n")
    assert seen == [line.decode("utf-8", "replace") for line in lines if line]


@pytest.fixture
def hundred_watts(monkeypatch, tmp_path):
    """A machine whose package always draws 100 W, of which its cores 60 W, beside a board that does 300 W."""
    parts = [("package-0", 100.0), ("core-0", 60.0), ("gpu0", 300.0)]
    found = [Component(name, "J", lambda watts=watts: watts * time.monotonic()) for name, watts in parts]
    monkeypatch.setattr(sensors, "components", lambda activity: found)
    monkeypatch.setattr(program_io, "IDLE_S", 0.2)
    monkeypatch.chdir(tmp_path)


def script(tmp_path, text):
    path = tmp_path / "prog"
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return "./prog"


def test_a_sampled_run_splits_joules_by_cause(monkeypatch, tmp_path, capfd):
    """With a stand-in for NVML, which shows that files and processes fit; no GPU was sampled."""
    monkeypatch.syspath_prepend(str(STAND_INS))
    monkeypatch.delitem(sys.modules, "pynvml", raising=False)
    monkeypatch.setenv("STAND_IN_NVML", "hopper")
    monkeypatch.setattr(program_io, "IDLE_S", 0.1)
    monkeypatch.chdir(tmp_path)
    try:
        with pytest.raises(SystemExit) as ended:
            main(["run", "--profiler", "gpm", script(tmp_path, "sleep 0.4\n")])
        assert not ended.value.code, capfd.readouterr().err
        monkeypatch.setenv("STAND_IN_NVML", "old")
        with pytest.raises(SystemExit) as ended:
            main(["run", "--profiler", "gpm", "./prog"])
        assert ended.value.code and "those from Hopper on do (GPM)" in capfd.readouterr().err
    finally:
        sys.modules.pop("pynvml", None)
    with pytest.raises(SystemExit):
        main(["timeline", "prog.eprof", "--costs", "a100-sxm4-80gb", "-o", "x.json", "-q"])
    (split,) = json.loads((tmp_path / "x.json").read_text())["splits"]
    whole = {cause["word"]: cause["energy_j"] for cause in split["causes"] if cause["function"] is None}
    assert split["component"] == "gpu 0" and sum(whole.values()) == pytest.approx(split["metered_j"])
    with (tmp_path / "prog.eprof" / "components.csv").open() as file:
        row = list(csv.DictReader(file))[2]
    assert (row["gpu0_sm_active_share"], row["gpu0_fp16_active_share"]) == ("0.500000", "")
    assert row["gpu0_sm_clock_mhz"] == "1380.000000" and whole["dram"] > 0 and whole["fp32"] > 0


def test_a_run_without_a_profiler_is_a_timeline(hundred_watts, tmp_path, capfd):
    program = script(tmp_path, "echo Begin of A section.; sleep 0.3; echo End of A section.; sleep 0.1; echo bye\n")
    with pytest.raises(SystemExit) as ended:
        main(["run", "--profiler", "none", "--mark", HPCC, program])
    seen = capfd.readouterr()
    assert not ended.value.code and seen.out.startswith("Begin of A section.\nEnd of A section.\nbye\n"), seen.err
    with pytest.raises(SystemExit):
        main(["timeline", "prog.eprof", "-o", "x.json", "-o", "trace.json", "-q"])
    made = json.loads((tmp_path / "x.json").read_text())
    functions = {function["name"]: function for function in made["functions"]}
    section, whole = functions["A"], functions["prog"]
    assert 0 < section["time_s"] < whole["inclusive_s"]  # when its lines come depends on the load
    # A busy machine may keep the sampler waiting: that time is told as not known, and has no joules.
    package, _, board = made["components"]
    for joules, watts, seconds, unknown_s in (
        (section["energy_j"]["package-0"], 100, section["time_s"], package["unknown_s"]),
        (whole["inclusive_j"]["gpu0"], 300, whole["inclusive_s"], board["unknown_s"]),
    ):
        assert 0.999 * watts * (seconds - unknown_s) <= joules <= 1.001 * watts * seconds
    known_j = [watts * (made["duration_s"] - one["unknown_s"]) for watts, one in ((100, package), (300, board))]
    assert made["total_j"] == pytest.approx(sum(known_j), rel=1e-3)
    assert [(part["name"], part["part_of"]) for part in made["components"]] == [
        ("package-0", None),
        ("core-0", "package-0"),
        ("gpu0", None),
    ]
    assert made["components"][0]["idle_w"] == pytest.approx(100, rel=1e-3)
    assert bool(made["warnings"]) == (package["unknown_s"] + board["unknown_s"] > 0)

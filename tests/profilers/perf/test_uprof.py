"""Reports of AMDuProfPcm: the counts of a run, of damaged reports never another number."""

import math
import re

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof import logs
from eprof.base.errors import LogError
from eprof.base.vocabulary import Mark
from eprof.logs.join import combine

REAL = SHARED / "cpu" / "amduprof-pcm-mi300a-zen4-fp.csv"
PERF = {"Retired Instructions": "instructions", "Cycles Not in Halt": "cycles", "Retired Macro Ops": "ex_ret_ops"}


def report(header="Metric,System (Aggregated)", rows=(), options="-m fp -a -C -o x.csv"):
    """A report of AMDuProfPcm on a Zen 4."""
    about = (
        "AMDuProfPcm Report\n\nProcessor Name:,AMD EPYC 9654 96-Core Processor   \n"
        "System:,Family(0x19) Model(0x11) Stepping(0x1)\nNumber of Sockets :,2\n"
        f'Command:,"AMDuProfPcm {options} -- ./a.out 7"\n\nProfile Time: 2026/08/19 21:00:30:099\nCORE METRICS\n'
    )
    return about + "\n".join([header, *rows]) + "\n"


def counts(path):
    """Each counter's value and whether it is marked as missing, of a report's only row."""
    launches = combine([logs.read(path)])
    marks = launches.marked_by_part().marks
    names = [name for name in launches.counters.names if name in PERF.values()]
    return {name: (float(launches.counters[name][0]), bool(int(marks[name][0]) & Mark.MISSING)) for name in names}


def by_hand(text):
    """The whole system's counts of a report, by a look at its lines alone."""
    rows = re.findall(r"(?m)^([^,\n]+),([0-9]+)\.([0-9]{2})", text)
    return {PERF[name]: int(whole) + int(part) / 100 for name, whole, part in rows if name in PERF}


@pytest.mark.skipif(not REAL.exists(), reason="needs the real report, which is not part of this project")
def test_a_real_report_has_what_its_lines_say(eprof_command):
    expected = by_hand(REAL.read_text())
    assert expected["instructions"] == 4816197660 and expected["cycles"] == 13829733333
    assert counts(REAL) == {name: (number, False) for name, number in expected.items()}
    # A cycle costs 896.4 pJ of the table of a Xeon 8470, an instruction 70 pJ.
    joules = expected["cycles"] * 896.4e-12 + expected["instructions"] * 70e-12
    said = " ".join(eprof_command("report", REAL).stdout.split())
    assert f"{joules:.1f} J counted (" in said and "nothing but instructions" in said and "zen4" in said


@pytest.mark.parametrize(
    ("header", "cells", "expected"),
    [
        ("Metric,System (Aggregated),Package (Aggregated)-0,Package (Aggregated)-1", "30.00,10.00,20.00", (30, False)),
        ("Metric,Package (Aggregated)-0,Package (Aggregated)-1,Core-0,Core-1", "10.00,20.00,4.00,5.00", (30, False)),
        ("Metric,Core-0,Core-1", "4.00,5.00", (9, False)),
        ("Metric,Core-0,Core-1", "4.00,x", (4, True)),
        ("Metric,Core-0,Core-1", "4.00", (4, True)),
    ],
)
def test_parts_add_up_once(tmp_path, header, cells, expected):
    log = tmp_path / "pcm.csv"
    log.write_text(report(header, [f"Retired Instructions,{cells}"]))
    assert counts(log) == {"instructions": expected}


@pytest.mark.parametrize(("options", "name"), [("-m fp -a -C", "system wide"), ("-m fp -C", "./a.out 7")])
def test_what_ran_is_the_row(tmp_path, options, name):
    log = tmp_path / "pcm.csv"
    log.write_text(report(rows=["Cycles Not in Halt,5.00"], options=options))
    read = logs.read(log)
    assert list(read.tables[0].rows.kernel.texts()) == [name] and read.device == "AMD EPYC 9654 96-Core Processor"
    assert np.isnan(read.tables[0].rows.time_s).all()


@pytest.mark.parametrize(
    "text",
    [
        report("System (Aggregated),,\nRetired Instructions,Cycles Not in Halt,", ["5.00,6.00,", "7.00,8.00,"]),
        report(rows=["IPC,0.35"]),
        report(rows=["Retired Instructions,5.00", "Retired Instructions,5.00"]),
    ],
)
def test_what_tells_no_counts_of_a_run_is_refused_in_a_sentence(tmp_path, text):
    log = tmp_path / "pcm.csv"
    log.write_text(text)
    with pytest.raises(LogError, match=r"has no .* of a run; count a whole run: `AMDuProfPcm -m fp -a -C"):
        logs.read(log)


ROWS = ["Retired Instructions,4816197660.00", "Retired Macro Ops,5944450891.00", "Cycles Not in Halt,13829733333.00"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_damaged_report_has_the_counts_or_says_that_it_lacks_them(tmp_path_factory, data):
    whole = report(rows=[*ROWS, "Retired SSE/AVX Flops(GFLOPs),0.57"])
    lines = whole.split("\n")
    place = data.draw(st.integers(1, len(lines) - 2))
    damage = data.draw(st.sampled_from(["lost", "twice", "cut", "garbled"]))
    line = lines[place]
    at = data.draw(st.integers(0, max(len(line) - 1, 0)))
    lines[place : place + 1] = {
        "lost": [],
        "twice": [line, line],
        "cut": [line[:at]],
        "garbled": [line[:at] + data.draw(st.sampled_from("x?;é")) + line[at + 1 :]],
    }[damage]
    log = tmp_path_factory.mktemp("pcm") / "pcm.csv"
    log.write_text("\n".join(lines))
    try:
        found = counts(log)
    except LogError:
        return
    expected = by_hand(whole)
    for name, (number, is_missing) in found.items():
        assert number == expected[name] or is_missing or math.isnan(number)

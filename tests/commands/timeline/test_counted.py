"""Counts of a CPU in intervals beside its joules: by cause, against arithmetic of its own, and logs that lack cells."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof import costs
from eprof.cli import main
from eprof.commands.timeline.joules import causes, counted
from eprof.lab.power import logs
from eprof.logs import reading
from eprof.logs.log import CORES, INTERVAL

TABLE = costs.load("icelake-sp")
EVENTS = ("cpu-cycles", "instructions")
SENSORS = ("energy-pkg", "energy-ram")
LIKWID = """CPU name:	Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz
# HWThreads: 0|1
# GID|EventCount|CpuCount|Total runtime [s]|PWR_PKG_ENERGY|PWR_DRAM_ENERGY|INSTR_RETIRED_ANY|CPU_CLK_UNHALTED_CORE
"""


INTERVALS = [(1.0, 120.0, 20.0, 2e9, 4e9), (2.0, 160.0, 30.0, 40e9, 80e9), (3.0, 120.0, 20.0, 10e9, 30e9)]


def perf(intervals, sockets=1):
    """What `perf stat -I -x';'` prints: (end_s, joules, DRAM's joules, cycles, instructions) each; None: not counted."""
    text, begin_s = "# started on Sun Nov 22 15:01:43 2026\n\n", 0.0
    for end_s, *cells in intervals:
        ran_ns = round((end_s - begin_s) * 1e9)
        for sensor, joules in zip(SENSORS, cells[:2], strict=True):
            text += f"{end_s:14.9f};{joules};Joules;power/{sensor}/;{sockets * ran_ns};100.00;;\n"
        for event, count in zip(EVENTS, cells[2:], strict=True):
            value = "<not counted>" if count is None else count
            text += f"{end_s:14.9f};{value};;{event};{ran_ns};{'0.00' if count is None else '100.00'};;\n"
        begin_s = end_s
    return text


def split_of(path, begin_s, end_s):
    powers, _ = logs.sampled(str(path), [])
    seen = counted(str(path), powers, TABLE)
    power = powers[0].__class__("both", "", powers[0].edges, powers[0].watts + powers[1].watts, powers[0].absolute)
    stretches = np.array(begin_s), np.array(end_s)
    return causes(seen, TABLE, power, *stretches, np.arange(len(begin_s)), len(begin_s)), seen


def by_hand(interval, sockets=1, intervals=None):
    """The joules of instructions, cycles and constant power of a second, held to its meter.

    Constant power is the table's, times what the meter saw of all that is known in all intervals.
    """
    pays = TABLE.at().charges
    price = np.array([pays["retired"].pj, pays["core_active"].pj]) * 1e-12
    counts = np.array([[each[4], each[3]] for each in intervals or INTERVALS])
    metered_j = np.array([each[1] + each[2] for each in intervals or INTERVALS])
    constant_j = 97.1 * sockets
    constant_j *= metered_j.sum() / ((counts @ price).sum() + constant_j * len(counts))
    dynamic_j = np.array([interval[4], interval[3]]) * price
    above_j = max(interval[1] + interval[2] - constant_j, 0.0)
    return [*(dynamic_j / dynamic_j.sum() * above_j), interval[1] + interval[2] - above_j]


@pytest.mark.parametrize("sockets", [1, 2])
def test_each_interval_is_priced_and_held_to_its_joules(tmp_path, sockets):
    (tmp_path / "node.perf").write_text(perf(INTERVALS, sockets))
    found, activity = split_of(tmp_path / "node.perf", [0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    assert found.words == ("retired", "core_active", "constant") and activity.sockets == sockets
    for row, interval in zip(found.joules, INTERVALS, strict=True):
        assert row == pytest.approx(by_hand(interval, sockets))
    assert (found.low <= found.joules).all() and (found.joules <= found.high).all()


def test_intervals_may_differ_in_length(tmp_path):
    """The last interval of a run ends with the program: what half of it takes is half of its counts."""
    (tmp_path / "node.perf").write_text(perf([*INTERVALS[:2], (2.25, 60.0, 8.0, 10e9, 20e9)]))
    found, activity = split_of(tmp_path / "node.perf", [2.0, 2.0], [2.25, 2.125])
    assert activity.shares["retired"] == pytest.approx([4e9, 80e9, 80e9])
    assert found.joules[0] == pytest.approx(2 * found.joules[1])


def test_rows_of_intervals_have_their_own_times(tmp_path):
    text = """
#           time             counts unit events
     0.500000000         4000000000      instructions              #    1.00  insn per cycle
     0.500000000              50.00 Joules power/energy-pkg/
     0.750000000         2000000000      instructions              #    1.00  insn per cycle
     0.750000000              20.00 Joules power/energy-pkg/

       0.751234567 seconds time elapsed
       0.500000000 seconds user
       0.100000000 seconds sys
"""
    (tmp_path / "run.perf").write_text(text)
    (table,) = reading.read(tmp_path / "run.perf", parts=INTERVAL).tables
    assert table.rows.part.texts().tolist() == ["0.500000000", "0.750000000"]
    assert table.rows.time_s.tolist() == [0.5, 0.25] and CORES not in table.units


def test_a_time_line_of_likwid_says_the_same(tmp_path):
    rows = [
        f"1 4 2 {end_s} {package} 0 {dram} 0 {instructions / 4} {3 * instructions / 4} {cycles / 2} {cycles / 2}\n"
        for end_s, package, dram, cycles, instructions in INTERVALS
    ]
    (tmp_path / "node.likwid").write_text(LIKWID + "".join(rows))
    found, _ = split_of(tmp_path / "node.likwid", [0.0, 1.0, 2.0], [1.0, 2.0, 3.0])
    for row, interval in zip(found.joules, INTERVALS, strict=True):
        assert row == pytest.approx(by_hand(interval), rel=1e-6)
    with pytest.raises(SystemExit):
        main(["report", str(tmp_path / "node.likwid"), "-f", "-q", "-o", str(tmp_path / "r.json")])
    report = json.loads((tmp_path / "r.json").read_text())
    (kernel,) = report["kernels"]
    assert kernel["time_s"] == 3.0 and report["energy_j"]["measured"] == pytest.approx(470)


def test_what_was_not_counted_stands_in_from_its_neighbours_and_is_marked(tmp_path):
    end_s, *joules, _, instructions = INTERVALS[1]
    (tmp_path / "node.perf").write_text(perf([INTERVALS[0], (end_s, *joules, None, instructions), INTERVALS[2]]))
    found, _ = split_of(tmp_path / "node.perf", [1.0], [2.0])
    stood_in = (end_s, *joules, 6e9, instructions)
    assert found.joules[0] == pytest.approx(by_hand(stood_in, 1, [INTERVALS[0], stood_in, INTERVALS[2]]))
    assert found.marks["core_active"] and found.marks["core_active"] != found.marks["retired"]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(*(st.floats(1, 500) for _ in range(2)), *(st.none() | st.integers(1, 10**12) for _ in range(2))),
        min_size=3,
        max_size=8,
    )
)
def test_causes_add_up_to_the_meter_in_every_stretch(tmp_path_factory, cells):
    path = tmp_path_factory.mktemp("perf") / "node.perf"
    path.write_text(perf([(1.0 + place, *row) for place, row in enumerate(cells)]))
    powers, _ = logs.sampled(str(path), [])
    if all(count is None for row in cells for count in row[2:]):
        return
    edges = np.linspace(0.0, len(cells), 5)
    found, _ = split_of(path, edges[:-1].tolist(), edges[1:].tolist())
    metered = sum(series.energy_j(edges[:-1], edges[1:]) for series in powers)
    assert found.joules.sum(axis=1) == pytest.approx(metered)


def test_the_page_and_its_sentence(tmp_path, capsys):
    (tmp_path / "node.perf").write_text(perf(INTERVALS))
    (tmp_path / "m.csv").write_text("begin_s,end_s,name\n0,1,read\n1,3,solve\n")
    with pytest.raises(SystemExit) as ended:
        main([
            "timeline", str(tmp_path / "node.perf"), "--costs", "icelake-sp", "--marks", str(tmp_path / "m.csv"),
            "-f", "-o", str(tmp_path / "t.html"), "-o", str(tmp_path / "t.json"),
        ])  # fmt: skip
    assert not ended.value.code
    shown = capsys.readouterr().out
    assert "Active core cycles" in shown and "active x clock x units" not in shown
    (split,) = json.loads((tmp_path / "t.json").read_text())["splits"]
    solving = [cause["energy_j"] for cause in split["causes"] if cause["function"] == "solve"]
    assert sum(solving) == pytest.approx(330) and split["counted"]


def test_joules_alone_have_no_causes(tmp_path, capsys):
    (tmp_path / "node.perf").write_text(
        "".join(f"     {s}.000000000,20.5,Joules,power/energy-pkg/,,,,\n" for s in (1, 2, 3))
    )
    with pytest.raises(SystemExit) as ended:
        main(["timeline", str(tmp_path / "node.perf"), "--costs", "icelake-sp"])
    assert ended.value.code and "of which these logs have none" in capsys.readouterr().err


def test_a_meter_that_lacks_an_interval_leaves_it_unknown(tmp_path):
    text = perf([(1.0, 100.0, 10.0, 2e9, 4e9), *INTERVALS[1:]]).replace(
        "30.0;Joules;power/energy-ram/", "<not counted>;Joules;power/energy-ram/"
    )
    lines = [line for line in text.splitlines(keepends=True) if "20.0;Joules;power/energy-ram/" not in line]
    (tmp_path / "node.perf").write_text("".join(lines))
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "timeline",
                str(tmp_path / "node.perf"),
                "--costs",
                "icelake-sp",
                "-f",
                "-q",
                "-o",
                str(tmp_path / "t.json"),
            ]
        )
    assert not ended.value.code
    (split,) = json.loads((tmp_path / "t.json").read_text())["splits"]
    assert split["metered_j"] == pytest.approx(110)


def test_a_time_line_of_likwid_may_name_no_cpu(tmp_path, capsys):
    (tmp_path / "node.likwid").write_text(LIKWID.partition("\n")[2] + "1 4 2 1.0 100 0 10 0 1e9 1e9 1e9 1e9\n")
    with pytest.raises(SystemExit) as ended:
        main(["report", str(tmp_path / "node.likwid"), "-v"])
    assert not ended.value.code
    shown = " ".join(capsys.readouterr().out.split())
    assert "node.likwid · CPU not named 110 J measured" in shown
    assert "do not name the CPU, so no energy is predicted" in shown

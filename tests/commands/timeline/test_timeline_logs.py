"""Logs of more meters, Caliper's traces, and meters of several logs that see the same joules."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest

from eprof.base.errors import EprofError
from eprof.commands.timeline import document as timeline_document
from eprof.commands.timeline import fusion
from eprof.lab.power import logs as power
from eprof.lab.power import marks
from eprof.lab.power.series import Series, sharing_warnings
from eprof.lab.power.series import shared as with_shared

TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"
# A row as likwid-perfctr -t 5.2 prints it of the events of group ENERGY, by event and then by thread.
LIKWID = """# HWThreads: 0|1
# GID|EventCount|CpuCount|Total runtime [s]|TEMP_CORE|PWR_PKG_ENERGY|PWR_DRAM_ENERGY
Begin of the program
1 3 2 0.5 41.0 40.0 10.0 0.0 2.5 0.0
1 3 2 1.0 41.0 40.0 20.0 0.0 2.5 0.0
1 3 2 1.5 41.0 40.0 nan 0.0 2.5 0.0
1 3 2 2.0 41.0 40.0 5.0 0.0 2.5 0.0
"""
IPMI = """
    Instantaneous power reading:                   {watts} Watts
    Minimum during sampling period:                 18 Watts
    Maximum during sampling period:                438 Watts
    Average power reading over sample period:      236 Watts
    IPMI timestamp:                           Mon Nov 23 09:00:{second:02d} 2026
    Sampling period:                          00000001 Seconds.
    Power reading state is:                   activated
"""
AMD = """timestamp,gpu,gfx_activity,socket_power,gfx_voltage,power_management,edge
1789948800,0,0,288,N/A,N/A,44
1789948801,0,95,1180,850,N/A,55
1789948802,0,95,N/A,850,N/A,55
1789948803,0,95,1180,850,N/A,55
"""
CALIPER = """[
{"event.begin#function":"main","mpi.rank":0,"time.offset":1000000},
{"event.begin#annotation":"init","function":"main","mpi.rank":0,"time.offset":2000000},
{"event.end#annotation":"init","annotation":"init","function":"main","mpi.rank":0,"time.offset":3500000},
{"event.begin#loop":"steps","function":"main","mpi.rank":0,"time.offset":3500000},
{"function":"main","mpi.rank":0,"time.offset":3600000},
{"event.begin#function":"unstamped","mpi.rank":0}
]"""


def read(tmp_path, text):
    (tmp_path / "log").write_text(text)
    return power.read(str(tmp_path / "log"), [])


def joules(series):
    return {each.component: float(each.energy_j(each.edges[[0]], each.edges[[-1]])[0]) for each in series}


def shared(name):
    if not (TRACES / name).is_file():
        pytest.skip("the shared data is not here")
    return str(TRACES / name)


def test_likwid_prints_the_joules_of_each_interval(tmp_path):
    series = read(tmp_path, LIKWID)
    assert joules(series) == {"package": 35.0, "dram": 10.0}
    assert {each.component: each.unknown_s for each in series} == {"package": 0.5, "dram": 0}
    rows = [line.replace(" ", ",") if line[0] == "1" else line.replace("|", ",") for line in LIKWID.splitlines()]
    assert joules(read(tmp_path, "\n".join(rows))) == joules(series)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (LIKWID.replace("1 3 2 1.0 41.0", "1 3 2 1.0"), "log:5: 5 values, but its header has 3 names for each of 2"),
        (LIKWID + LIKWID, "took turns between groups"),
        (AMD.replace("1180", "N/A").replace("288", "N/A"), "no cell of gpu 0 holds a number"),
        (IPMI.format(watts=220, second=1), "is one reading of the BMC, and no power over time"),
    ],
)
def test_logs_that_tell_no_power_get_one_sentence(tmp_path, text, sentence):
    with pytest.raises(EprofError, match=sentence):
        read(tmp_path, text)


def test_readings_of_ipmitool_again_and_again_are_power_over_time(tmp_path):
    (series,) = read(tmp_path, "".join(IPMI.format(watts=200 + second, second=second) for second in range(4)))
    assert (series.component, series.absolute, series.watts.tolist()) == ("system", True, [200, 201, 202, 203])


def test_a_table_of_amd_smi_is_read_and_what_has_no_number_is_left_out(tmp_path):
    (series,) = read(tmp_path, AMD)
    assert series.component == "gpu 0" and series.unknown_s == 1
    assert joules([series]) == {"gpu 0": 288 + 1180}


@pytest.mark.parametrize("path", sorted((TRACES / "power").glob("*.[tcl][xso]*")), ids=lambda path: path.name)
def test_every_real_log_gives_joules_or_one_true_sentence(path):
    try:
        series = power.read(str(path), [])
    except EprofError as err:
        assert "and no power over time" in str(err)
    else:
        assert all(energy_j > 0 for energy_j in joules(series).values())


def test_a_trace_of_caliper_has_regions_that_may_never_end(tmp_path):
    """A record that begins nothing, or that has no time, tells no region."""
    (tmp_path / "trace.json").write_text(CALIPER)
    read_ = marks.read(str(tmp_path / "trace.json"))
    assert [(mark.name, mark.begin_s, mark.end_s) for mark in read_.marks] == [
        ("main", 1.0, np.inf),
        ("init", 2.0, 3.5),
        ("steps", 3.5, np.inf),
    ]


@pytest.mark.parametrize("name", ["caliper-lulesh-annotation.json", "caliper-spotdb-0.cali", "tau-cpi-profile.0.0.0"])
def test_profiles_have_no_times(name):
    with pytest.raises(EprofError, match="is a profile, which has no times"):
        marks.read(shared(f"mpi/{name}"))


def series_of(*parts):
    """Each 10 W for 10 s, by component and log."""
    edges = np.arange(11.0)
    return [Series(component, source, edges, np.full(10, 10.0), False) for component, source in parts]


@pytest.mark.parametrize(
    ("parts", "added", "part_of"),
    [
        ([("package-0", "a"), ("core-0", "a"), ("package-1", "a"), ("core-1", "a")], 200, [None, 0, None, 2]),
        ([("package-0", "a"), ("dram-0", "a"), ("energy-pkg", "b"), ("energy-ram", "b")], 200, [2, 3, None, None]),
        ([("package-0", "a"), ("gpu0", "a"), ("gpu1", "b")], 300, [None, None, None]),
        ([("gpu0", "a"), ("gpu0", "b")], 100, [None, 0]),
        ([("gpu0", "a"), ("gpu1", "a"), ("gpu 1", "nvidia-smi")], 200, [None, None, 1]),
        ([("package-0", "a"), ("gpu0", "a"), ("system", "pdu")], 100, [2, 2, None]),
        ([("power", "a"), ("power", "b")], 200, [None, None]),
    ],
)
def test_joules_that_two_meters_see_are_added_once(parts, added, part_of):
    fused = fusion.fused(series_of(*parts), marks.Marks((), False), fusion.Asked(), [])
    made = timeline_document.document(fused, fusion.Asked(), "a test")
    names = [component.name for component in made.components]
    assert len(set(names)) == len(parts) and made.total_j == added
    assert [component.part_of for component in made.components] == [
        None if place is None else names[place] for place in part_of
    ]


def test_what_is_not_added_is_said():
    found = with_shared(series_of(("gpu0", "a.csv"), ("gpu0", "b.csv"), ("power", "c.csv")))
    said = " ".join(sharing_warnings(found))
    assert "gpu0 (b.csv) of b.csv is taken to have the joules of gpu0 (a.csv)" in said
    assert "The total adds up gpu0 (a.csv) (a.csv) and power (c.csv)" in said


def made_of(*parts):
    """A document of components at constant watts, by name, log and watts."""
    edges = np.arange(11.0)
    series = [Series(name, source, edges, np.full(10, float(watts)), False) for name, source, watts in parts]
    return timeline_document.document(
        fusion.fused(series, marks.Marks((), False), fusion.Asked(), []),
        fusion.Asked(),
        "a test",
    )


@pytest.mark.parametrize(
    ("parts", "watts"),
    [
        ([("psys", "a", 100), ("psys-1", "a", 90), ("system", "a", 300)], 300),
        ([("node", "pdu", 300), ("platform", "likwid", 200), ("gpu0", "smi", 60)], 300),
        ([("psys", "a", 60), ("package-0", "a", 40), ("gpu", "a", 50)], 110),
        ([("psys", "a", 60), ("package-0", "a", 40), ("gpu 0", "smi", 250)], 310),
        ([("cpu", "a", 100), ("package-0", "a", 50), ("package-1", "a", 50), ("core-0", "a", 30)], 100),
        ([("memory", "a", 10), ("dram", "a", 10), ("gpu", "a", 40), ("gpu-0", "a", 40)], 50),
        ([("package-0", "a", 50), ("package-1", "a", 50), ("core", "a", 70)], 100),
        ([("gpu0", "a", 100), ("gpu0", "b", 90)], 100),
        ([("energy-pkg", "b", 98), ("package-0", "a", 50), ("package-1", "a", 50)], 98),
    ],
)
def test_the_total_does_not_depend_on_the_order_of_logs(parts, watts):
    totals = {made_of(*order).total_j for order in itertools.permutations(parts)}
    assert totals == {10 * watts}


def test_a_part_with_more_joules_than_its_whole_is_added():
    made = made_of(("psys", "a", 100), ("cpu", "a", 122), ("core", "a", 90))
    assert {component.name: component.part_of for component in made.components} == {
        "psys": None,
        "cpu": None,
        "core": "psys",
    }
    assert made.total_j == 2220
    assert any("cpu of a has more joules than psys of a" in warning for warning in made.warnings)


def test_what_is_added_once_in_a_log_is_said():
    said = " ".join(made_of(("cpu", "a", 100), ("package-0", "a", 50), ("package-1", "a", 50)).warnings)
    assert "a: the joules of package-0 and package-1 are taken to be in those of cpu, and added once." in said


def test_a_counter_that_moves_more_slowly_than_it_is_read_is_taken_where_it_moves():
    times = np.arange(0, 2.0, 0.02)
    series = Series.of_counter("gpu0", "s", times, np.floor(times / 0.1 + 1e-9) * 10.0, True)
    assert series.period_s == pytest.approx(0.1) and np.allclose(series.watts[:-1], 100.0)
    assert series.energy_j(series.edges[[0]], series.edges[[-1]])[0] == 190


def test_a_counter_that_stands_still_is_no_power():
    series = Series.of_counter("dram", "s", np.arange(10.0), np.full(10, 3.0), True)
    assert series.unknown_s == 0 and series.energy_j(series.edges[[0]], series.edges[[-1]])[0] == 0


@pytest.mark.parametrize(("base_ns", "absolute"), [(0, False), (1_700_000_000 * 10**9, True)])
def test_annotations_of_a_pytorch_trace_are_marks(tmp_path, base_ns, absolute):
    """Its times are us from a base that newer traces give; kernels and spans of no length below zero are no marks."""
    rows = [
        {"ph": "X", "cat": "user_annotation", "name": "step", "pid": 3, "tid": 4, "ts": 2e6, "dur": 500000},
        {"ph": "X", "cat": "user_annotation", "name": "tick", "pid": 3, "tid": 5, "ts": 3e6, "dur": 0},
        {"ph": "X", "cat": "user_annotation", "name": "back", "pid": 3, "tid": 4, "ts": 2e6, "dur": -1},
        {"ph": "X", "cat": "kernel", "name": "axpy", "pid": 0, "tid": 7, "ts": 2e6, "dur": 10},
        {"ph": "i", "cat": "user_annotation", "name": "now", "pid": 3, "tid": 4, "ts": 2e6},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": base_ns, "traceEvents": rows}))
    found = marks.read(str(path))
    begin_s = base_ns / 1e9
    assert [(mark.name, mark.rank) for mark in found.marks] == [("step", "3 4"), ("tick", "3 5")]
    spans = [(mark.begin_s - begin_s, mark.end_s - begin_s) for mark in found.marks]
    assert spans == [pytest.approx((2.0, 2.5), abs=1e-6), pytest.approx((3.0, 3.0), abs=1e-6)]
    assert found.absolute is absolute

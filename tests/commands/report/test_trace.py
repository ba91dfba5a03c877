"""A report as a trace for Perfetto: launches on their streams, predicted power, joules as arguments."""

import itertools
import json
import math
from collections import defaultdict
from pathlib import Path

import perfetto_support
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs_support import METRICS, TRACE, TRACE_UNITS, launch, metric, profiled, write

import eprof
from eprof.base.errors import LogError, UsageError
from eprof.commands.report.files import to_trace
from eprof.profile.document import document

DATA = Path(__file__).parents[3] / "shared" / "data"
REAL = [
    "traces/kineto/hta-alexnet-a100-2023.json.gz",
    "traces/nsys/pipit-cloverleaf-perlmutter.sqlite",
    "nvprof/gtx950-gpu-trace-three-streams.csv",
]
AXPY, DOT = "axpy(int, float*)", "dot(int, float*)"


def real(name):
    if not (DATA / name).exists():
        pytest.skip(f"needs the real log {name}, which is not part of this project")
    return DATA / name


def kineto(*kernels):
    """A trace of launches: kernel, device, stream, start and duration in ns."""
    rows = [
        {
            "ph": "X",
            "cat": "kernel",
            "name": name,
            "ts": start / 1e3,
            "dur": dur / 1e3,
            "args": {"device": device, "stream": stream},
        }
        for name, device, stream, start, dur in kernels
    ]
    gpus = [{"id": number, "name": "Tesla K20c"} for number in range(2)]
    return json.dumps({"schemaVersion": 1, "deviceProperties": gpus, "traceEvents": rows})


def traced(*paths, costs="jetson-tk1"):
    """The document of some logs, and its trace as JSON."""
    energy = eprof.load(*paths, timeline=True).energy(costs)
    made = document(energy)
    return made, to_trace(made, energy.profile.timeline)


def slices(text):
    return [row for row in json.loads(text)["traceEvents"] if row["ph"] == "X"]


def power_j(text):
    """The integral of every GPU's power over time."""
    changes = defaultdict(list)
    for row in json.loads(text)["traceEvents"]:
        if row["ph"] == "C":
            changes[row["pid"]].append((row["ts"], row["args"]["W"]))
    joules = 0.0
    for steps in changes.values():
        assert steps == sorted(steps) and steps[-1][1] == 0
        joules += math.fsum(
            (after - at) * 1e-6 * watts for (at, watts), (after, _) in zip(steps, steps[1:], strict=False)
        )
    return joules


LAUNCHES = st.lists(
    st.tuples(
        st.sampled_from([AXPY, DOT]),
        st.integers(0, 1),
        st.integers(1, 3),
        st.integers(0, 10**6),
        st.integers(1, 10**5),
    ),
    min_size=1,
)


@given(LAUNCHES)
def test_joules_of_launches_and_power_over_time_are_the_energy(tmp_path_factory, launches):
    path = write(tmp_path_factory.mktemp("trace"), kineto(*launches), "x.json")
    made, text = traced(path)
    assert len(slices(text)) == len(launches)
    assert math.fsum(row["args"]["energy_j"] for row in slices(text)) == pytest.approx(made.energy_j.total, rel=1e-6)
    assert power_j(text) == pytest.approx(made.energy_j.total, rel=1e-6)


# So close together that most overlap another one of their stream.
CROWDED = st.lists(
    st.tuples(st.just(AXPY), st.integers(0, 1), st.integers(1, 2), st.integers(0, 20), st.integers(1, 12)),
    min_size=6,
    max_size=20,
)


@given(CROWDED)
def test_no_two_launches_overlap_on_one_line(tmp_path_factory, launches):
    """On no line, and on no more lines than there are launches at work at once; each stream has lines of its own."""
    _, text = traced(write(tmp_path_factory.mktemp("trace"), kineto(*launches), "x.json"))
    lines = {}
    for row in slices(text):
        lines.setdefault((row["pid"], row["tid"]), []).append((1000 * row["ts"], 1000 * (row["ts"] + row["dur"])))
    assert sum(map(len, lines.values())) == len(launches)
    for ranges in lines.values():
        assert all(after[0] >= before[1] - 0.5 for before, after in itertools.pairwise(sorted(ranges)))
    at_once = {}
    for _, device, stream, start, length in launches:
        of_stream = [(one[3], one[3] + one[4]) for one in launches if one[1:3] == (device, stream)]
        busy = sum(begin <= start < end for begin, end in of_stream)
        at_once[device, stream] = max(busy, at_once.get((device, stream), 0))
        assert length > 0
    assert len(lines) == sum(at_once.values())


def test_launches_that_touch_share_a_line_and_one_that_overlaps_does_not(tmp_path):
    _, text = traced(write(tmp_path, kineto((AXPY, 0, 7, 0, 10), (AXPY, 0, 7, 10, 10), (AXPY, 0, 7, 19, 5)), "x.json"))
    assert [row["tid"] for row in sorted(slices(text), key=lambda row: row["ts"])] == [1, 1, 2]


def test_times_begin_with_the_first_launch_and_are_exact_to_the_ns(tmp_path):
    _, text = traced(
        write(tmp_path, kineto((AXPY, 0, 7, 1_000_000_123, 4567), (DOT, 0, 7, 1_000_010_001, 1)), "x.json")
    )
    assert [(row["ts"], row["dur"]) for row in slices(text)] == [(0.0, 4.567), (9.878, 0.001)]
    assert json.loads(text)["otherData"]["first_start_ns"] == 1_000_000_123


def test_lines_are_named_after_devices_and_streams(tmp_path):
    _, text = traced(write(tmp_path, kineto((AXPY, 1, 7, 0, 10), (AXPY, 1, 7, 5, 10), (DOT, 0, 20, 0, 5)), "x.json"))
    names = [row["args"]["name"] for row in json.loads(text)["traceEvents"] if row["ph"] == "M"]
    assert names == ["Tesla K20c (0)", "stream 20", "Tesla K20c (1)", "stream 7", "stream 7 (overlap 1)"]


def test_a_launch_has_the_power_of_its_kernel(tmp_path):
    counters = write(tmp_path, profiled(1, METRICS, metric("inst_integer", 10**6, AXPY, 2)), "counters.csv")
    made, text = traced(counters, write(tmp_path, kineto((AXPY, 0, 7, 0, 3000), (AXPY, 0, 7, 5000, 1000)), "x.json"))
    first, second = (row["args"]["energy_j"] for row in slices(text))
    assert first == pytest.approx(0.75 * made.kernels[0].energy_j.total)
    assert second == pytest.approx(0.25 * made.kernels[0].energy_j.total)


def test_the_trace_of_nvprof_tells_starts_and_streams(tmp_path):
    rows = [launch(2, number=1), launch(3, DOT, number=2).replace("0.5,", "0.75,", 1)]
    _, text = traced(write(tmp_path, profiled(1, TRACE, TRACE_UNITS, *rows)))
    assert [(row["ts"], row["dur"]) for row in slices(text)] == [(0.0, 2000.0), (250000.0, 3000.0)]
    assert '"stream 7"' in text.decode()


NSYS = {
    "x.csv": f"""Start (ns),Duration (ns),CorrId,Device,Strm,Name
1000,300,1,Tesla K20c (0),7,"{AXPY}"
1500,200,2,Tesla K20c (0),13,"{AXPY}"
1600,99,3,Tesla K20c (0),13,[CUDA memset]
""",
    "x.txt": f"""
 Start (ns)  Duration (ns)  CorrId      Device      Strm        Name
 ----------  -------------  ------  --------------  ----  -----------------
       1000            300       1  Tesla K20c (0)     7  {AXPY}
       1500            200       2  Tesla K20c (0)    13  {AXPY}
""",
}


@pytest.mark.parametrize("name", NSYS)
def test_the_trace_tables_of_nsys_tell_starts_and_streams(tmp_path, name):
    _, text = traced(write(tmp_path, NSYS[name], name))
    assert [(row["ts"], row["dur"]) for row in slices(text)] == [(0.0, 0.3), (0.5, 0.2)]
    assert b'"stream 7"' in text and b'"stream 13"' in text


def test_energy_that_is_not_in_the_trace_is_said_in_it_and_on_stderr(tmp_path, eprof_here):
    counted = [metric("inst_integer", 10**9, kernel=name) for name in (AXPY, DOT)]
    paths = [write(tmp_path, profiled(1, METRICS, *counted), "c.csv"), write(tmp_path, NSYS["x.csv"], "t.csv")]
    done = eprof_here("report", *paths, "--costs", "jetson-tk1", "-q", "-o", tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    note = "1 of 2 kernels have no launch whose time and energy are known"
    assert note in trace["otherData"]["note"] and note in done.stderr

    eprof_here("report", paths[1], "--costs", "jetson-tk1", "-q", "-o", tmp_path / "whole.trace.json")
    assert "note" not in json.loads((tmp_path / "whole.trace.json").read_text())["otherData"]


def test_only_chosen_kernels_are_in_it(tmp_path):
    path = write(tmp_path, kineto((AXPY, 0, 7, 0, 10), (DOT, 0, 7, 20, 10)), "x.json")
    energy = eprof.load(path, timeline=True, kernels=["dot"]).energy("jetson-tk1")
    assert [row["args"]["kernel"] for row in slices(to_trace(document(energy), energy.profile.timeline))] == [DOT]


def test_logs_without_starts_are_refused(tmp_path):
    path = write(tmp_path, profiled(1, METRICS, metric("inst_integer", 1)))
    with pytest.raises(LogError, match="when each launch ran, and none of these logs tells; nvprof --print-gpu-trace"):
        eprof.load(path, timeline=True)


def test_streams_and_ranges_are_no_groups_of_a_trace(tmp_path):
    path = write(tmp_path, kineto((AXPY, 0, 7, 0, 10)), "x.json")
    with pytest.raises(UsageError, match="cannot be used with --group stream"):
        eprof.load(path, timeline=True, parts="stream")


def test_a_trace_of_eprof_is_no_log(tmp_path):
    _, text = traced(write(tmp_path, kineto((AXPY, 0, 7, 0, 10)), "x.json"))
    with pytest.raises(LogError, match="a trace that eprof wrote"):
        eprof.load(write(tmp_path, text, "trace.json"))


def test_the_command_writes_it_by_its_name(eprof_here, tmp_path):
    path = write(tmp_path, kineto((AXPY, 0, 7, 0, 10)), "x.pt.json")
    done = eprof_here("report", path, "--costs", "jetson-tk1", "-q", "-o", tmp_path / "my.trace.json")
    assert done.returncode == 0, done.stderr
    assert len(slices((tmp_path / "my.trace.json").read_bytes())) == 1


@pytest.mark.parametrize("name", REAL)
def test_perfetto_loads_every_launch_of_real_logs(name):
    made, text = traced(real(name))
    (found, dropped, power) = perfetto_support.query(
        text,
        "select count(*), sum(dur) from slice",
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
        "select count(*) from counter c join counter_track t on c.track_id = t.id where t.name like 'predicted power%'",
    )
    ((launches, time_ns),) = found
    assert launches == made.launches
    assert time_ns == pytest.approx(made.time_s * 1e9, abs=made.launches)
    assert dropped == []
    assert power[0][0] > 0
    assert power_j(text) == pytest.approx(made.energy_j.total, rel=1e-4)


def test_perfetto_shows_joules_streams_and_exact_times(tmp_path):
    launches = (AXPY, 0, 7, 0, 3000), (AXPY, 0, 7, 1500, 2000), (DOT, 0, 8, 1_234_567, 89)
    made, text = traced(write(tmp_path, kineto(*launches), "x.json"))
    found, lines, joules = perfetto_support.query(
        text,
        "select ts, dur from slice order by ts",
        "select name from thread where name like 'stream%' order by name",
        "select sum(extract_arg(arg_set_id, 'args.energy_j')) from slice",
    )
    assert found == [(0, 3000), (1500, 2000), (1_234_567, 89)]
    assert lines == [("stream 7",), ("stream 7 (overlap 1)",), ("stream 8",)]
    assert joules[0][0] == pytest.approx(made.energy_j.total)

"""The trace of `eprof timeline` for Perfetto."""

import json

import numpy as np
import perfetto_support
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eprof.commands.timeline import document as timeline_document
from eprof.commands.timeline import fusion, page
from eprof.lab.power.marks import Mark, Marks
from eprof.lab.power.series import Series


def trace_of(watts, ranges):
    series = Series.of_power("cpu", "s", np.arange(float(len(watts))), np.array(watts, dtype=float), False)
    fused = fusion.fused([series], Marks(tuple(ranges), False), fusion.Asked(), [])
    document = timeline_document.document(fused, fusion.Asked(), "a test")
    return document, page.to_trace(document, fused)


def test_perfetto_shows_power_and_functions_with_their_joules():
    ranges = [Mark("main", 0.0, 8.0), Mark("solve", 1.0, 3.5), Mark("across", 3.0, 9.0)]
    document, text = trace_of([100] * 4 + [50] * 6, ranges)
    slices, lines, power, dropped = perfetto_support.query(
        text,
        "select name, ts, dur, extract_arg(arg_set_id, 'args.energy_j') from slice order by name",
        "select name from thread where name like 'functions%' order by name",
        "select c.ts, c.value from counter c join counter_track t on c.track_id = t.id where t.name like 'cpu%'"
        " order by c.ts",
        "select name, value from stats where value > 0 and severity in ('error', 'data_loss')",
    )
    assert slices == [
        ("across", 3_000_000_000, 6_000_000_000, 350.0),
        ("main", 0, 8_000_000_000, 600.0),
        ("solve", 1_000_000_000, 2_500_000_000, 250.0),
    ]
    assert lines == [("functions",), ("functions (overlap 1)",)] and dropped == []
    joules = sum(watts * (after - at) * 1e-9 for (at, watts), (after, _) in zip(power, power[1:], strict=False))
    assert joules == pytest.approx(document.total_j, rel=1e-9) and document.total_j == 700


SPANS = st.lists(st.tuples(st.integers(0, 8), st.integers(1, 5), st.sampled_from("abc")), min_size=1, max_size=12)


@given(SPANS)
def test_no_two_functions_cross_on_one_line_of_the_trace(spans):
    _, text = trace_of([10] * 14, [Mark(name, at, at + long) for at, long, name in spans])
    rows = [row for row in json.loads(text)["traceEvents"] if row["ph"] == "X"]
    assert len(rows) == len(spans)
    for row in rows:
        begin, end = row["ts"], row["ts"] + row["dur"]
        same = [other for other in rows if other["tid"] == row["tid"]]
        assert not any(begin < other["ts"] < end < other["ts"] + other["dur"] for other in same)

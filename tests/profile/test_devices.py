"""Logs of several GPUs: each is priced, bounded and limited exactly as its half of the logs is alone."""

import math

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_logs import ADDED, INSIDE, MOVED, runs, summary, trace

import eprof

NVPROF = SHARED / "nvprof"
REAL = {
    "k20c and 1080 Ti": ("k20c-metrics-summary.csv", "gtx1080ti-cuda8-metrics-summary.csv"),
    "760 and 950": ("gtx760-dev1-metrics-summary-lavamd.csv", "gtx950-cuda8-metrics-summary-heartwall.csv"),
    "V100 without a time": ("v100-events-and-metrics-summary-with-total.csv", "gtx1080ti-cuda8-metrics-summary.csv"),
}
# On each of these, another table: served and accessed books, prices of its own and of its data sheet.
PAIR = ("Jetson TK1 (0)", "GeForce GTX 980 (1)"), ("Tesla V100-SXM2-16GB (0)", "Tesla K20c (0)")


def agree(together, alone):
    """The document of several GPUs holds that of each, kernel by kernel, and its sums are theirs."""
    documents = [energy.document() for energy in alone]
    both = together.document()
    places = {(kernel["device"], kernel["name"]): place for place, kernel in enumerate(both["kernels"])}
    for document in documents:
        for place, kernel in enumerate(document["kernels"]):
            there = places.pop((kernel["device"], kernel["name"]))
            assert both["kernels"][there] == kernel
            if "limits" in both:
                assert both["limits"]["kernels"][there] == document["limits"]["kernels"][place]
    assert not places
    for part in ("computation", "data", "constant", "total"):
        known = [joules for document in documents if (joules := document["energy_j"][part]) is not None]
        assert (both["energy_j"][part] or 0.0) == pytest.approx(math.fsum(known))
    # A part that one of them has no interval of has no joules there.
    intervals = [document["interval_j"] for document in documents if "interval_j" in document]
    for part in ("computation", "data", "constant", "total") if len(intervals) == len(documents) else ():
        ends = [interval[part] for interval in intervals if interval[part]]
        assert bool(both["interval_j"][part]) == bool(ends)
        if ends:
            added = np.array(ends, dtype=float).sum(axis=0)
            assert np.array(both["interval_j"][part], dtype=float) == pytest.approx(added, nan_ok=True)
    told = [both["costs"], *both["costs_of_others"]]
    for document in documents:
        (own,) = (costs for costs in told if costs["of"] == [kernel["device"] for kernel in document["kernels"]][:1])
        assert {**own, "of": None} == {**document["costs"], "of": None}
    return both


@pytest.mark.parametrize("names", REAL.values(), ids=REAL)
def test_joined_logs_of_two_gpus_are_priced_as_each_is_alone(names):
    paths = [NVPROF / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("needs real logs, which are not part of this project")
    together = eprof.load(*paths, cache=False).energy()
    both = agree(together, [eprof.load(path, cache=False).energy() for path in paths])
    assert set(together.warnings) >= {note for energy in together.gpus for note in energy.costs.notes}
    assert both["energy_j"]["total"] > 0


@pytest.mark.parametrize("pair", PAIR, ids=lambda pair: pair[0])
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_whatever_two_gpus_counted_each_is_priced_as_alone(tmp_path_factory, pair, data):
    folder = tmp_path_factory.mktemp("pair")
    paths = []
    for number, device in enumerate(pair):
        made = data.draw(runs(alike=True, most=1, device=device, counters=(*ADDED, *INSIDE, *MOVED)))
        paths.append([folder / f"{number}-{kind}.csv" for kind in ("counts", "times")])
        paths[-1][0].write_text(summary(made[0]))
        paths[-1][1].write_text(trace(made[0], data.draw(st.integers(1, 10**6)) / 1000))
    alone = [eprof.load(*own, cache=False).energy() for own in paths]
    agree(eprof.load(*paths[0], *paths[1], cache=False).energy(), alone)

"""A report's JSON is a profile again: against the logs that it was made of, nothing has changed."""

import json

import pytest
from conftest import ROOT

import eprof
from eprof.base.errors import LogError, UsageError

GOLDEN, SAMPLES = ROOT / "tests" / "golden" / "logs", ROOT / "samples" / "logs"
OWN = {
    "simulated": ([SAMPLES / "simulated" / "fmm.txt"], "jetson-tk1"),
    "times": ([SAMPLES / "invented" / "tk1-fmm-counters.csv", SAMPLES / "invented" / "tk1-fmm-times.csv"], None),
    "holes": ([GOLDEN / "holes.csv", GOLDEN / "holes-times.csv"], "gtx680"),
    "two devices": ([GOLDEN / "two-devices.csv"], None),
    "ncu": ([GOLDEN / "ncu.csv"], "v100"),
}
REAL = [
    "ncu/v100-miniweather-baseline.ncu-rep",
    "ncu-modern/a100-sxm4-silu.ncu-rep",
    "nvprof/gtx1080ti-cuda8-metrics-summary.csv",
    "nvprof/titan-wide-trace-events-and-metrics.csv",
    "cpu/simulated/callgrind-small-avx2.out.gz",
    "cpu/likwid-csv-xeon-8468-avx512.csv",
    "cpu/likwid-text-e5-2650v3-l3.out",
    "cpu/perf-text-zen-5ghz-default.txt",
    "cpu/perf-csv-xeon-icelake-instructions.csv",
    "ncu-modern/rtxpro6000-text-cublas-fp16.txt",
    "ncu-modern/l4-text-fp16-mma-16384-seconds.txt",
]


def saved(energy, place):
    place.write_text(json.dumps(energy.document()))
    return place


def same(profile, costs, tmp_path):
    before = profile.energy(costs)
    again = eprof.load(saved(before, tmp_path / "saved.json"))
    found = eprof.diff(again.energy(costs), before)
    assert found.typed.is_zero and found.typed.warnings[0] == "OLD and NEW are made from the same logs."
    after = again.energy(costs)
    assert (after.costs is None) == (before.costs is None)
    old, new = before.document(), after.document()
    for part in ("computation", "data", "constant", "total"):
        energy_j = old["energy_j"][part]
        assert new["energy_j"][part] == (energy_j and pytest.approx(energy_j, rel=1e-12)), part
    assert new["time_s"] == (old["time_s"] and pytest.approx(old["time_s"], rel=1e-12))
    assert new["time_marks"] == old["time_marks"] and new["energy_marks"] == old["energy_marks"]


@pytest.mark.parametrize("case", OWN)
def test_a_report_that_is_read_back_is_its_logs(case, tmp_path):
    logs, costs = OWN[case]
    same(eprof.load(*logs), costs, tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_a_report_of_a_real_log_is_read_back(name, real_log, tmp_path):
    same(eprof.load(real_log(f"../{name}")), None, tmp_path)


def test_it_is_priced_as_it_was_and_anew(tmp_path):
    fast = eprof.load(*OWN["simulated"][0]).energy("jetson-tk1", "396/924", efficiency=0.5)
    again = eprof.load(saved(fast, tmp_path / "fast.json"))
    assert again.energy().document()["costs"]["setting"]["core_mhz"] == 396
    assert again.energy().document()["time_s"] == pytest.approx(fast.document()["time_s"])
    assert again.energy("gtx680").costs.name == "gtx680"


def test_some_of_its_kernels(tmp_path):
    path = saved(eprof.load(*OWN["simulated"][0]).energy("jetson-tk1"), tmp_path / "fmm.json")
    some = eprof.load(path, kernels=["u_p2p"])
    assert list(some.counts().rows.kernel) == ["u_p2p"] and "1 of 7 kernels" in " ".join(some.warnings)
    with pytest.raises(LogError, match="matches none of 7 kernels"):
        eprof.load(path, kernels=["zz"])


def test_what_is_no_report_or_not_alone_is_one_sentence(tmp_path):
    document = eprof.load(*OWN["simulated"][0]).energy("jetson-tk1").document()
    path = tmp_path / "x.json"
    for damage, words in (
        ({"schema": "eprof.tune/1"}, "is a document eprof.tune/1; only a report's JSON"),
        ({"kernels": [{"name": "k"}]}, "is no report in JSON"),
        ({"kernels": []}, "the report holds none"),
        ({"in_use": {"cores": -1.0}}, "is no report in JSON"),
    ):
        path.write_text(json.dumps(document | damage))
        with pytest.raises(LogError, match=words):
            eprof.load(path)
    path.write_text('{"x": 1}')
    with pytest.raises(LogError, match="no log of a profiler"):
        eprof.load(path)
    path.write_text(json.dumps(document | {"eprof": "0.0.9"}))
    assert "x.json: It was written by eprof 0.0.9" in " ".join(eprof.load(path).warnings)
    for more in ({"time": ["1"]}, {"parts": "stream"}):
        with pytest.raises(UsageError, match="name it alone"):
            eprof.load(path, **more)
    with pytest.raises(UsageError, match="name it alone"):
        eprof.load(path, OWN["simulated"][0][0])


def test_gaps_of_a_trace_are_read_back(real_log, tmp_path):
    energy = eprof.load(real_log("k20c-gpu-trace.csv")).energy()
    again = eprof.load(saved(energy, tmp_path / "saved.json")).energy()
    assert again.document()["gaps"] == energy.document()["gaps"]

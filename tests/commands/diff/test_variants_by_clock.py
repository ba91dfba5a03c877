"""Repeats of a run that was counted once and timed several times, as under callgrind."""

import json

import pytest
from msgspec.structs import replace

import eprof
from eprof.logs.runs import COUNTERS, TIME, Run
from eprof.profile import api

LOG = (
    '"ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    '"0","k(int)","0","8.0","GPU Speed Of Light","Duration","us","100"\n'
)


def test_each_timing_of_the_program_alone_is_a_repeat(tmp_path):
    program = ["./a"]
    alone = [{"what": "time", "number": n, "command": program, "seconds": s} for n, s in ((1, 2.0), (2, 1.0), (3, 4.0))]
    counted = {"what": "counters", "number": 1, "command": ["valgrind", *program], "seconds": 99.0}
    manifest = {"status": "complete", "program": program, "measurements": [*alone, counted]}
    run = Run(tmp_path, manifest, {COUNTERS: {1: ()}})
    (log := tmp_path / "log.csv").write_text(LOG)
    whole = eprof.load(log)
    found = list(api._repeats_by_time(run, whole))
    assert [profile.counts().rows.time_s[0] for profile in found] == pytest.approx([1e-4, 0.5e-4, 2e-4])
    assert whole.counts().rows.time_s[0] == pytest.approx(1e-4), "the profile itself is as it was"
    traced = replace(run, files={TIME: {1: ()}, COUNTERS: {1: ()}})
    assert list(api._repeats_by_time(traced, whole)) == [whole], "a log tells the times of kernels"
    once = replace(run, manifest={**manifest, "measurements": [alone[0], counted]})
    assert list(api._repeats_by_time(once, whole)) == [whole]


def test_a_reports_json_keeps_the_repeats_and_the_cores_of_its_run(tmp_path, real_log):
    """As if four cores ran twice or thrice; the means, the test and each energy are those of the run itself."""
    log = real_log("../cpu/simulated/callgrind-small-avx2.out.gz")

    def timed(*seconds):
        program = ["./a"]
        alone = [
            {"what": "time", "number": n, "command": program, "seconds": s, "cpu_seconds": 4 * s}
            for n, s in enumerate(seconds, 1)
        ]
        run = Run(
            tmp_path / f"{len(seconds)}.eprof",
            {"status": "complete", "started_utc": "2026-01-01", "program": program, "measurements": alone},
            {COUNTERS: {1: ()}},
        )
        whole = eprof.load(log, time=[f"{seconds[1]}s"])
        return replace(whole, run=run, priced_as=run), run

    def saved(profile):
        path = tmp_path / f"{len(profile.run.alone_s)}.json"
        path.write_text(json.dumps(profile.energy("sapphirerapids").document()))
        return path

    sides = [timed(2.0, 2.1, 2.2), timed(2.9, 3.1)]
    jsons = [saved(profile) for profile, _ in sides]
    whole = [list(api._repeats_by_time(run, profile)) for profile, run in sides]
    logs, read_back = (eprof.diff(*both, costs="sapphirerapids").typed for both in (whole, jsons))
    for ours, own in ((read_back.old, logs.old), (read_back.new, logs.new)):
        assert ours.repeats == own.repeats > 1
        assert ours.energy_j.total == pytest.approx(own.energy_j.total, rel=1e-9)
        assert ours.energy_j.constant == pytest.approx(own.energy_j.constant, rel=1e-9), "of four cores"
    assert read_back.old.name == "3.json"
    assert read_back.tests.energy == logs.tests.energy is None, "repeats of one run are no runs in turns"


def test_repeats_that_a_reports_json_does_not_have_are_named(tmp_path):
    (log := tmp_path / "log.csv").write_text(LOG)
    run = Run(tmp_path, {"status": "complete"}, {TIME: {1: (), 2: (), 3: ()}})
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(replace(eprof.load(log), run=run).energy("v100").document()))
    assert len(api.profiles(path, eprof.load)) == 1
    assert "medians of 3 repeats, which are one here" in " ".join(eprof.load(path).warnings)

"""Repeats of a run that was counted once and timed several times, as under callgrind."""

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
    found = list(api._repeats_by_clock(run, whole))
    assert [profile.counts().rows.time_s[0] for profile in found] == pytest.approx([1e-4, 0.5e-4, 2e-4])
    assert whole.counts().rows.time_s[0] == pytest.approx(1e-4), "the profile itself is as it was"
    traced = replace(run, files={TIME: {1: ()}, COUNTERS: {1: ()}})
    assert list(api._repeats_by_clock(traced, whole)) == [whole], "a log tells the times of kernels"
    once = replace(run, manifest={**manifest, "measurements": [alone[0], counted]})
    assert list(api._repeats_by_clock(once, whole)) == [whole]

"""`eprof counters` as a user runs it."""

import subprocess
import sys

import pytest


def test_definitions_explain_themselves(eprof_here):
    assert "3.5" in eprof_here("counters").stdout
    assert "inst_integer" in eprof_here("counters", "3.5").stdout
    assert "integer" in eprof_here("counters", "--find", "inst_integer").stdout


def test_find_shows_the_name_in_the_other_profiler(eprof_here):
    said = " ".join(eprof_here("counters", "--find", "inst_integer").stdout.split())
    assert "inst_integer is in ncu: smsp__sass_thread_inst_executed_op_integer_pred_on.sum" in said


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["--find", "no_such_counter"]],
)
def test_what_no_definition_has_is_one_clear_sentence(eprof_here, words):
    done = eprof_here("counters", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert words[-1] in done.stderr and "Traceback" not in done.stderr


def test_a_reader_that_goes_away_ends_a_listing(tmp_path):
    code = f"{sys.executable} -m eprof counters 9.0 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (141, "")

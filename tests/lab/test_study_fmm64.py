"""The study of the seed's 64 cases: its law holds to the last instruction, its tables follow from it."""

import copy
import csv
import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "studies" / "fmm-64"))

import cases
import make
from law import LawError, as_log, drivers, predict, tallies

import eprof

STUDY = Path(cases.__file__).parent


@pytest.fixture(scope="module")
def simulated():
    return cases.read_json(STUDY / "simulated.json")


@pytest.fixture(scope="module")
def law(simulated):
    return cases.law_of(simulated)


def test_inputs_that_the_law_has_not_seen(law, simulated):
    for case in cases.HELD_OUT:
        told = predict(law, drivers(cases.plan_of(case)))
        assert not cases.differences(told, simulated[cases.label(case)])
    assert not {cases.label(one) for one in cases.HELD_OUT} & {cases.label(one) for one in cases.FITTED}


def test_one_instruction_too_many_breaks_the_law(simulated):
    spoilt = copy.deepcopy(simulated)
    spoilt[cases.label(cases.FITTED[3])]["u_p2p"]["fmul"] += 1
    with pytest.raises(LawError, match="u_p2p, `fmul`"):
        cases.law_of(spoilt)


def test_law_and_count_agree_on_f8(law):
    """The program's own count by hand knows nothing of the law, and the other way round."""
    plan = cases.fmm_plan(*cases.INPUTS["F8"])
    apart = cases.against_count(predict(law, drivers(plan)), plan)
    assert max(value for kernel, value in apart.items() if kernel not in ("v_fft", "v_ifft")) == 0
    assert max(apart.values()) < 0.34


def test_page_and_results_follow_from_the_law(law, tmp_path):
    with (STUDY / "results.csv").open() as file:
        saved = {(row["case"], row["caches"]): row for row in csv.DictReader(file)}
    assert len(saved) == 128
    for row in make.priced(law, "F8", tmp_path):
        for name, value in row.items():
            told = saved[row["case"], row["caches"]][name]
            assert told == (f"{value:.6g}" if isinstance(value, float) else str(value)), name
    rows = [{k: number(v) for k, v in row.items()} for row in saved.values()]
    assert make.compared(rows) in (STUDY / "README.md").read_text()


def number(text):
    try:
        return float(text)
    except ValueError:
        return text


def test_a_computed_log_reads_back(law, tmp_path):
    told = predict(law, drivers(cases.plan_of(cases.FITTED[0])))
    path = tmp_path / "log.txt"
    path.write_text(as_log(told, "computed, not recorded"))
    assert {k: dict(v) for k, v in tallies(path.read_text()).items()} == {
        kernel: {name: count for name, count in tally.items() if count} for kernel, tally in told.items()
    }
    profile = eprof.load(path)
    flops = profile.counts().table.loc[profile.counts().kernels["kernel"] == "u_p2p", "fp64_fma"].item()
    assert flops == told["u_p2p"]["call _Z3fmaddd()"]


def test_the_simulated_device_still_executes_what_was_saved(simulated):
    if importlib.util.find_spec("pyopencl") is None:
        pytest.skip("no pyopencl")
    case = cases.FITTED[6]
    try:
        seen = cases.simulate(*case)
    except LawError as err:
        if "no OpenCL device" in str(err):
            pytest.skip("no simulated device")
        raise
    told = simulated[cases.label(case)]
    assert seen.keys() == told.keys()
    # Another compiler in another Oclgrind may address differently, but must compute and move the same.
    for kernel, tally in told.items():
        for opcodes in cases.SAME.values():
            assert sum(seen[kernel].get(o, 0) for o in opcodes) == sum(tally.get(o, 0) for o in opcodes), kernel

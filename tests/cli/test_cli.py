"""The door, used as a user does: in a process of its own (see `warm`; the last test starts it from nothing), real logs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from eprof.cli import commands
from eprof.cli.options import REPORT_SUFFIXES, TIMELINE_SUFFIXES

LAVAMD = "gtx760-dev1-metrics-summary-lavamd.csv"
K20C = "k20c-metrics-summary.csv"


def report(eprof_command, *arguments):
    done = eprof_command("report", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def as_json(eprof_command, *arguments):
    return json.loads(report(eprof_command, *arguments, "--format", "json").stdout)


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


def test_standard_output_carries_results_only(eprof_command, real_log):
    done = report(eprof_command, real_log(K20C), "--costs", "jetson-tk1", "--format", "json")
    json.loads(done.stdout)
    quiet = report(eprof_command, real_log(K20C), "--costs", "jetson-tk1", "-q")
    assert quiet.stdout == ""


def test_an_existing_output_is_refused_unless_forced(eprof_command, real_log, tmp_path):
    mine = tmp_path / "out.json"
    mine.write_text("precious")
    done = eprof_command("report", real_log(K20C), "-o", mine)
    assert done.returncode == 1 and "-f" in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert mine.read_text() == "precious"
    report(eprof_command, real_log(K20C), "-o", mine, "-f")
    assert json.loads(mine.read_text())["schema"] == "eprof.profile/1"
    assert [path.name for path in tmp_path.iterdir()] == ["out.json"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["report", "nowhere.csv"], 1, "nowhere.csv"),
        (["report", "nothing-*.csv"], 1, "no file matches"),
        (["report", "LOG", "--costs", "nonsense"], 1, "jetson-tk1"),
        (["report", "LOG", "--costs", "jetson-tk1", "--setting", "1/2"], 1, "852/924"),
        (["report", "LOG", "--costs", "jetson-tk1", "--setting", "fast"], 1, "such as 852/924"),
        (["report", "LOG", "-k", "no_such_kernel"], 1, "kernel"),
        (["report", "LOG", "-k", "regex:("], 2, "regular expression"),
        (["report", "LOG", "-o", "out.docx"], 2, ".html"),
        (["report", "LOG", "-o", "no/such/dir/out.json"], 1, "directory"),
        (["report", "LOG", "--time", "nonsense"], 2, "--time"),
        (["report", "LOG", "--capability", "99.9"], 1, "99.9"),
        (["report"], 2, "INPUT"),
        (["frobnicate"], 2, "there is no command `frobnicate`"),
        ([], 2, "COMMAND"),
        (["costs", "nonsense"], 1, "jetson-tk1"),
        (["counters", "nonsense"], 1, "nonsense"),
        (["counters", "--find", "no_such_counter"], 1, "no_such_counter"),
    ],
)
def test_bad_input_is_one_clear_sentence(eprof_command, real_log, arguments, code, words):
    log = str(real_log(K20C))
    done = eprof_command(*(log if word == "LOG" else word for word in arguments))
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


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


def test_hostile_names_do_not_reach_the_terminal(eprof_command, tmp_path):
    (tmp_path / "log.csv").write_text(
        '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"\n'
        '"Tesla K20c (0)","\x1b[31m=cmd()\x1b]0;owned\x07",1,"inst_integer","Integer Instructions",10,10,10\n'
    )
    done = report(eprof_command, "log.csv", "--costs", "jetson-tk1")
    assert "\x1b]" not in done.stdout and "\x07" not in done.stdout and "\x1b[31m" not in done.stdout
    csv = report(eprof_command, "log.csv", "--format", "csv").stdout
    assert '\n"=' not in csv


def test_a_config_file_gives_defaults_and_options_win(eprof_command, real_log, tmp_path):
    (tmp_path / "eprof.toml").write_text('costs = "gtx680"\n')
    document = as_json(eprof_command, real_log(K20C), "--config", "eprof.toml")
    assert document["costs"]["name"] == "gtx680"
    document = as_json(eprof_command, real_log(K20C), "--config", "eprof.toml", "--costs", "jetson-tk1")
    assert document["costs"]["name"] == "jetson-tk1"
    (tmp_path / "bad.toml").write_text('costs = "gtx680"\ncolour = "red"\n')
    done = eprof_command("report", real_log(K20C), "--config", "bad.toml")
    assert done.returncode == 1 and "bad.toml:2" in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (
            'format = "xyz"',
            "`format` is 'xyz'; use one of: csv, ",
        ),
        ('format = "toml"', "`format` is 'toml'; use one of: csv, "),  # of `eprof fit`
        ('efficiency = "much"', "`efficiency` must be a number, not 'much'."),
        ("quiet = 1", "`quiet` must be true or false, not 1."),
        ("costs = 3", "`costs` must be a text, not 3."),
        ('kernel_name = ["a", 1]', "`kernel_name` must be a text, not 1."),
        ("repeat = 0", "`repeat`: "),  # of `eprof run`
        ('config = "other.toml"', "unknown key `config`"),
    ],
)
def test_values_of_a_config_file_are_checked_as_options_are(eprof_command, real_log, tmp_path, line, words):
    (tmp_path / "bad.toml").write_text(f"# mine\n{line}\n")
    done = eprof_command("report", real_log(K20C), "--config", "bad.toml")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("eprof: bad.toml:2: ") and words in done.stderr, done.stderr


def test_a_config_file_may_hold_every_option_and_serves_every_command(eprof_command, real_log, tmp_path):
    (tmp_path / "eprof.toml").write_text(
        'costs = "gtx680"\nwhat_if = "dram=-20%"\npower_limit = 90\nfolds = 5\nkernel_name = ["nothing"]\n'
    )
    words = (real_log(K20C), "--config", "eprof.toml", "--what-if", "pi0=-10%", "-k", "regex:.")
    document = as_json(eprof_command, *words)
    assert document["costs"]["name"] == "gtx680"
    # What the command line gives takes the place of what the file says, lists too.
    assert len(document["kernels"]) >= 1
    assert [one["question"] for one in document["what_if"] if one["asked"]] == ["pi0=-10%"]
    shown = eprof_command("roofline", "--config", "eprof.toml", "--format", "json")
    assert [one["name"] for one in json.loads(shown.stdout)["machines"]] == ["gtx680"], shown.stderr


def test_costs_and_counters_explain_themselves(eprof_command):
    listing = eprof_command("costs").stdout
    for name in ("jetson-tk1", "gtx580", "gtx680", "i7-950", "fermi-keckler"):
        assert name in listing
    shown = eprof_command("costs", "jetson-tk1", "--setting", "852/924").stdout
    assert "377" in shown and "852/924" in shown
    assert json.loads(eprof_command("costs", "jetson-tk1", "--format", "json").stdout)
    assert "3.5" in eprof_command("counters").stdout
    assert "inst_integer" in eprof_command("counters", "3.5").stdout
    assert "integer" in eprof_command("counters", "--find", "inst_integer").stdout


def test_output_that_is_no_unicode_is_escaped_and_no_traceback(real_log):
    words = ["report", str(real_log(K20C)), "--costs", "jetson-tk1"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-m", "eprof", *words], capture_output=True, text=True, env=ascii_only)
    assert done.returncode == 0 and done.stderr == ""
    assert "\\u2265 " in done.stdout and "Tesla K20c" in done.stdout


def test_color_is_for_terminals_or_when_forced(eprof_command, real_log):
    assert "\x1b[" not in report(eprof_command, real_log(K20C), "--costs", "jetson-tk1").stdout
    forced = eprof_command("report", real_log(K20C), "--costs", "jetson-tk1", env={"FORCE_COLOR": "1"})
    assert "\x1b[" in forced.stdout


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


def test_standard_output_is_no_file(eprof_command, real_log):
    done = eprof_command("report", real_log(K20C), "--format", "json", "-o", "-")
    assert done.returncode == 2 and "-o -: name a file" in done.stderr


def test_files_have_no_colours_whatever_the_terminal_has(eprof_command, real_log, tmp_path):
    words = ("report", real_log(K20C), "--costs", "gtx680", "-o", "x.txt")
    done = eprof_command(*words, env={"FORCE_COLOR": "1"})
    assert "\x1b" in done.stdout
    assert "\x1b" not in (tmp_path / "x.txt").read_text()


def test_a_reader_that_goes_away_ends_a_listing(tmp_path):
    code = f"{sys.executable} -m eprof counters 9.0 | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["costs", "--setting", "852/924"], "eprof costs NAME --setting"),
        (["roofline", "--costs", "gtx680", "-k", "x"], "-k, --efficiency and --capability are about logs"),
        (["tune", "x.csv", "--jobs", "0"], "0 is not 1 or more"),
        (["report", ""], "an empty name"),
    ],
)
def test_options_that_would_do_nothing_are_refused(eprof_command, words, says):
    done = eprof_command(*words)
    assert (done.returncode, done.stdout) == (2, "") and says in done.stderr, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["roofline", "--costs", "gtx580"],
        ["comm"],
        ["scale", "--program", "ft", "--size", "2^25", "-p", "1..8"],
    ],
    ids=lambda words: words[0],
)
def test_a_page_is_opened_of_a_command_that_reads_nothing(eprof_started, tmp_path, words):
    """It has the command's name, as there is no input to name it by."""
    done = eprof_started(*words, "--open", "-q", env={"BROWSER": "true"})
    assert done.returncode == 0, done.stderr
    assert f"wrote {words[0]}.html" in done.stderr and (tmp_path / f"{words[0]}.html").is_file()


def test_every_option_says_who_uses_it():
    text = (Path(__file__).parents[2] / "docs" / "cli.md").read_text()
    section = text[text.index("## Who uses what") : text.index("## Configuration that is found")]
    _, parsers = commands._parser()
    named = set(re.findall(r"`(--?[\w-]+)`", section))
    options = {
        (name, *action.option_strings)
        for name, parser in parsers.items()
        for action in parser._actions
        if action.option_strings and action.dest != "help"
    }
    assert [option for option in sorted(options) if not named & set(option[1:])] == []
    formats = {**REPORT_SUFFIXES, **TIMELINE_SUFFIXES}
    assert [suffix for suffix in formats if f"`{suffix}`" not in section] == [], "each output says who uses it, too"

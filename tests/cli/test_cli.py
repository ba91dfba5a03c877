"""The door, used as a user does: in a process of its own (see `warm`; the last test starts it from nothing), real logs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_support import K20C, as_json, report

from eprof.cli import dispatch
from eprof.cli.options import REPORT_SUFFIXES, TIMELINE_SUFFIXES


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
    ],
)
def test_bad_input_is_one_clear_sentence(eprof_command, real_log, arguments, code, words):
    log = str(real_log(K20C))
    done = eprof_command(*(log if word == "LOG" else word for word in arguments))
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


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


def test_output_that_is_no_unicode_has_signs_that_look_alike_and_no_traceback(real_log):
    words = ["report", str(real_log(K20C)), "--costs", "jetson-tk1"]
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-m", "eprof", *words], capture_output=True, text=True, env=ascii_only)
    assert done.returncode == 0 and done.stderr == ""
    assert ">= " in done.stdout and "Tesla K20c" in done.stdout and "\\u" not in done.stdout
    unicode = subprocess.run(
        [*done.args], capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"}
    )
    assert [len(line) - line.count(">= ") for line in done.stdout.splitlines()] == [
        len(line) for line in unicode.stdout.splitlines()
    ]
    bar = next(line for line in done.stdout.splitlines() if line.startswith(".."))
    assert re.fullmatch(r"\.+[+#]*  \. constant .*", bar)


def test_color_is_for_terminals_or_when_forced(eprof_command, real_log):
    assert "\x1b[" not in report(eprof_command, real_log(K20C), "--costs", "jetson-tk1").stdout
    forced = eprof_command("report", real_log(K20C), "--costs", "jetson-tk1", env={"FORCE_COLOR": "1"})
    assert "\x1b[" in forced.stdout


def test_standard_output_is_no_file(eprof_command, real_log):
    done = eprof_command("report", real_log(K20C), "--format", "json", "-o", "-")
    assert done.returncode == 2 and "-o -: name a file" in done.stderr


def test_files_have_no_colours_whatever_the_terminal_has(eprof_command, real_log, tmp_path):
    words = ("report", real_log(K20C), "--costs", "gtx680", "-o", "x.txt")
    done = eprof_command(*words, env={"FORCE_COLOR": "1"})
    assert "\x1b" in done.stdout
    assert "\x1b" not in (tmp_path / "x.txt").read_text()


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
    _, parsers = dispatch._parser()
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

"""What a shell and its user expect: patterns in -o, configuration that is found, help with typing errors."""

import json
import platform
from pathlib import Path

import pytest
from command_support import K20C, as_json, report

ROOT = Path(__file__).parents[2]
GEMM = ROOT / "samples" / "ci" / "baseline" / "gemm.txt"


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("%h.html", f"{platform.node()}.html"),
        ("%q{JOB}-x%q{JOB}.html", "night-xnight.html"),
        ("100%%.html", "100%.html"),
        ("%%p.html", "%p.html"),
        ("plain {p}.html", "plain {p}.html"),
    ],
)
def test_patterns_in_output_are_filled_in_as_profilers_do(eprof_here, real_log, tmp_path, monkeypatch, pattern, name):
    monkeypatch.setenv("JOB", "night")
    done = report(eprof_here, real_log(K20C), "-q", "-o", pattern)
    assert done.stderr.splitlines()[-1] == f"eprof: wrote {name}"
    assert (tmp_path / name).is_file()


def test_every_process_has_a_file_of_its_own(eprof_command, real_log, tmp_path):
    for _ in range(2):
        report(eprof_command, real_log(K20C), "-q", "-o", "report-%p.json")
    numbers = {path.stem.removeprefix("report-") for path in tmp_path.glob("report-*.json")}
    assert len(numbers) == 2 and all(number.isdecimal() for number in numbers)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("a%z.html", "%z in a%z.html is not known; use %p, %h, %q{VAR}, or %% for %."),
        ("50%", "% in 50% is not known"),
        ("%q{.html", "%q in %q{.html is not known"),
        ("%q{NO_SUCH}.html", "%q{NO_SUCH}.html: the environment has no variable NO_SUCH."),
    ],
)
def test_a_pattern_that_means_nothing_is_one_sentence(eprof_here, pattern, words):
    done = eprof_here("report", "x.csv", "-o", pattern)
    assert done.returncode == 2 and words in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["reprot", "x.csv"], "there is no command `reprot`. Did you mean `report`?"),
        (["x.csv"], "To report on a log: eprof report x.csv."),
        (["report", "x.csv", "--csots=gtx680"], "there is no option `--csots`. Did you mean `--costs`?"),
        (["report", "--hlep"], "there is no option `--hlep`. Did you mean `--help`?"),
        (["run", "--profilr", "ncu", "./x", "--", "--own"], "no option `--profilr`. Did you mean `--profiler`?"),
        (["report", "x.csv", "--format", "jsno"], "Did you mean `json`?"),
        (["roofline", "--costs", "jetson_tk1"], "no cost table `jetson_tk1`. Did you mean `jetson-tk1`?"),
        (["counters", "kepler3.5"], "No counter definition `kepler3.5`. Did you mean `kepler-3.5`?"),
        (["report", "x.csv"], "x.csv"),
    ],
)  # fmt: skip
def test_a_typing_error_names_what_was_meant(eprof_here, tmp_path, arguments, words):
    (tmp_path / "x.csv").write_text("")
    done = eprof_here(*arguments)
    assert done.returncode in (1, 2) and words in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_a_kernel_that_is_nearly_named_is_named(eprof_here, real_log):
    names = [kernel["name"] for kernel in as_json(eprof_here, real_log(K20C))["kernels"]]
    own = names[0].partition("(")[0].removeprefix("void ").partition("<")[0]
    done = eprof_here("report", real_log(K20C), "-k", own[:-1] + "x")
    assert done.returncode == 1 and f"Did you mean `{own}`?" in done.stderr


def project(tmp_path, text, name="eprof.toml"):
    """A repository with a configuration file; returns a folder in it."""
    (tmp_path / ".git").mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("eprof.toml", 'costs = "gtx680"\n'),
        ("pyproject.toml", '[project]\nname = "x"\n[tool.eprof]\ncosts = "gtx680"\n'),
    ],
)
def test_a_configuration_is_found_above_and_is_said_and_kept(eprof_here, real_log, tmp_path, name, text):
    folder = project(tmp_path, text, name)
    path = tmp_path / name
    done = eprof_here("report", real_log(K20C), "--format", "json", folder=folder)
    document = json.loads(done.stdout)
    assert document["costs"]["name"] == "gtx680"
    assert document["command_line"][:4] == ["eprof", "report", "--config", str(path)]
    assert done.stderr.startswith(f"eprof: costs from {path} ")
    again = eprof_here(*document["command_line"][1:], folder=folder)
    assert json.loads(again.stdout)["command_line"] == document["command_line"] and "costs from" not in again.stderr


def test_options_and_a_named_file_go_before_a_found_one(eprof_here, real_log, tmp_path):
    folder = project(tmp_path, 'costs = "gtx680"\n')
    (folder / "mine.toml").write_text('costs = "v100"\n')

    def table(*words):
        done = eprof_here("report", real_log(K20C), "--format", "json", *words, folder=folder)
        return (json.loads(done.stdout)["costs"] or {}).get("name")

    assert table("--costs", "p100") == "p100"
    assert table("--config", "mine.toml") == "v100"
    assert table("--config", "") == "estimated"


def test_a_folder_that_is_in_no_repository_and_not_at_home_is_the_only_one(eprof_here, real_log, tmp_path):
    folder = project(tmp_path, 'costs = "gtx680"\n')
    (tmp_path / ".git").rmdir()
    assert "costs from" not in eprof_here("report", real_log(K20C), folder=folder).stderr
    assert "costs from" in eprof_here("report", real_log(K20C), folder=tmp_path).stderr


def test_a_project_without_a_section_for_eprof_is_passed_over(eprof_here, real_log, tmp_path):
    folder = project(tmp_path, 'costs = "gtx680"\n')
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n')
    assert "costs from" in eprof_here("report", real_log(K20C), folder=folder).stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("force = true", "`force` counts only in a file that --config names"),
        ('output = ["x.html"]', "`output` counts only in a file that --config names"),
        ('scheduler = "tcp://somebody:8786"', "`scheduler` counts only in"),
        ('shim = "libwait.so"', "`shim` counts only in"),
        ('mpi = "openmpi"', "`mpi` counts only in"),
        ("clock = [1200]", "`clock` counts only in"),
        ('settings = "852/924"', "`settings` counts only in"),
        ("lock_clocks = true", "`lock_clocks` counts only in"),
        ('new_setting = "852/924"', "`new_setting` counts only in"),
        ('old_costs = "gtx680"', "`old_costs` counts only in"),
        ('kosts = "gtx680"', "unknown key `kosts`; use one of: "),
        ('efficiency = "much"', "`efficiency` must be a number"),
    ],
)
def test_what_is_wrong_in_a_found_file_has_its_line(eprof_here, real_log, tmp_path, line, words):
    folder = project(tmp_path, f'[tool.other]\nx = 1\n[tool.eprof]\ncosts = "gtx680"\n{line}\n', "pyproject.toml")
    done = eprof_here("report", real_log(K20C), folder=folder)
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"eprof: {tmp_path / 'pyproject.toml'}:5: {words}"), done.stderr


@pytest.mark.parametrize(
    "line", ['costs = "gtx680"', 'setting = "852/924"', 'time = ["9"]', 'kernel_name = ["fma"]', "to_meter = false"]
)
def test_no_found_file_decides_what_a_gate_sees(eprof_here, tmp_path, line):
    folder = project(tmp_path, f"{line}\n")
    prices = () if line.startswith("costs") else ("--costs", "jetson-tk1")
    words = ("diff", str(GEMM), str(GEMM), "--format", "md", *prices)
    key = line.partition(" ")[0]
    for gate, text in (("--fail-above=2%", ""), ("--no-color", 'fail_above = ["2%"]\n')):
        (tmp_path / "eprof.toml").write_text(f"{text}{line}\n")
        done = eprof_here(*words, gate, folder=folder)
        assert done.returncode == 1 and f": `{key}` counts under --fail-above only in a file that" in done.stderr
    named = eprof_here(*words, "--fail-above=2%", "--config", "../../eprof.toml", folder=folder)
    assert "--config" not in named.stderr, named.stderr
    (tmp_path / "eprof.toml").write_text(f"{line}\n")
    assert "counts under" not in eprof_here(*words, folder=folder).stderr


def test_a_gate_may_be_in_a_found_file_and_what_the_command_line_says_goes_first(eprof_here, tmp_path):
    folder = project(tmp_path, 'costs = "gtx680"\nfail_above = ["2%"]\nformat = "md"\n')
    done = eprof_here("diff", str(GEMM), str(GEMM), "--costs", "jetson-tk1", folder=folder)
    assert done.returncode == 0 and "✅" in done.stdout, done.stderr
    assert done.stderr.startswith("eprof: fail_above, format from ")


def test_quiet_does_not_hide_that_a_file_was_used(eprof_here, real_log, tmp_path):
    folder = project(tmp_path, 'costs = "gtx680"\nquiet = true\n')
    for words in ((), ("-q",)):
        done = eprof_here("report", real_log(K20C), *words, folder=folder)
        assert done.stderr.startswith("eprof: costs") and "from " in done.stderr


def test_a_table_beside_the_configuration_is_found_from_below(eprof_here, real_log, tmp_path):
    folder = project(tmp_path, 'costs = "mine.toml"\n')
    made = eprof_here("costs", "--estimate", "RTX 4090", "-o", "mine.toml")
    assert made.returncode == 0, made.stderr
    done = eprof_here("report", real_log(K20C), "--format", "json", folder=folder)
    assert json.loads(done.stdout)["costs"]["device"] == "GeForce RTX 4090", done.stderr


def test_patterns_count_in_a_configuration_too(eprof_here, real_log, tmp_path, monkeypatch):
    monkeypatch.setenv("JOB", "night")
    (tmp_path / "ours.toml").write_text('output = ["%q{JOB}.json"]\n')
    assert eprof_here("report", real_log(K20C), "--config", "ours.toml", "-q").returncode == 0
    assert (tmp_path / "night.json").is_file()

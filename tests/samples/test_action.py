"""`action.yml`: its rules, and its shell steps in an environment like that of GitHub's runners."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
GEMM = ROOT / "samples" / "ci" / "baseline" / "gemm.txt"
MOST_CHARACTERS = 65_536  # of a comment on GitHub


def test_the_file_keeps_the_rules_of_actions():
    """docs.github.com, Metadata syntax: keys, types of inputs, a shell for each command, known steps in outputs."""
    assert set(ACTION) == {"name", "description", "author", "branding", "inputs", "outputs", "runs"}
    assert ACTION["runs"]["using"] == "composite"
    assert ACTION["branding"]["color"] in {
        "white",
        "black",
        "yellow",
        "blue",
        "green",
        "orange",
        "red",
        "purple",
        "gray-dark",
    }
    for name, given in ACTION["inputs"].items():
        assert re.fullmatch(r"[a-z][a-z-]*", name) and given["description"]
        assert given["required"] is True or isinstance(given["default"], str)
    for step in STEPS.values():
        assert ("run" in step) != ("uses" in step) and ("shell" in step) == ("run" in step)
        assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"])
    ids = {step["id"] for step in STEPS.values() if "id" in step}
    read = set(re.findall(r"steps\.(\w+)\.outputs\.(\w+)", (ROOT / "action.yml").read_text()))
    written = set(re.findall(r'echo "(\w+)=', STEPS["Compare"]["run"]))
    assert {step for step, _ in read} == ids and {output for _, output in read} == written


def test_no_input_is_pasted_into_a_script():
    """What a pull request may choose comes as a variable, never as text of a shell script."""
    assert not any("${{" in step.get("run", "") for step in STEPS.values())
    read = set(re.findall(r"inputs\.([\w-]+)", (ROOT / "action.yml").read_text()))
    assert read == set(ACTION["inputs"])


class Runner:
    """A runner's files and variables, with eprof of this checkout in its path."""

    def __init__(self, place):
        self.place = place
        tools = place / "tools"
        tools.mkdir()
        (tools / "eprof").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eprof "$@"\n')
        # gh writes down what it was asked for, and knows the comments of comments.json.
        (tools / "gh").write_text(
            f'#!/bin/sh\nif [ "$1 $2" = "pr view" ]; then shift 6; shift; exec jq -r "$2" "{place}/comments.json"; fi\n'
            f'echo "$@" >> "{place}/gh.txt"\n'
        )
        for tool in tools.iterdir():
            tool.chmod(0o755)
        names = {name: str(place / name.lower()) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "GITHUB_PATH")}
        self.environment = {
            **os.environ,
            **names,
            "RUNNER_TEMP": str(place / "temp"),
            "GITHUB_REPOSITORY": "a/b",
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
        }

    def step(self, name, **inputs):
        """Run a step as runners do: bash that stops at errors, in an empty folder."""
        (self.place / "work").mkdir(exist_ok=True)
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEPS[name]["run"]]
        environment = {**self.environment, **inputs}
        return subprocess.run(command, cwd=self.place / "work", env=environment, capture_output=True, text=True)

    def compare(self, old, new, fail_above="2%", costs="jetson-tk1", options=""):
        inputs = {"OLD": str(old), "NEW": str(new), "FAIL_ABOVE": fail_above, "COSTS": costs, "OPTIONS": options}
        done = self.step("Compare", **inputs)
        lines = (self.place / "github_output").read_text().splitlines()
        return done, dict(line.split("=", 1) for line in lines), (self.place / "github_step_summary").read_text()


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


def heavier(path):
    """The log of a program that executes ten times as many multiply-adds."""
    path.write_text(GEMM.read_text().replace("32768 - call _Z3fma", "327680 - call _Z3fma"))
    return path


def test_equal_logs_pass_and_the_summary_says_so(runner):
    done, outputs, summary = runner.compare(GEMM, GEMM)
    assert done.returncode == 0 and outputs["code"] == "0", done.stderr
    assert summary.startswith("### Energy:") and "✅" in summary and len(summary) < MOST_CHARACTERS
    assert {path.name for path in Path(outputs["folder"]).iterdir()} >= {"diff.md", "diff.html", "diff.json"}
    assert runner.step("Pass or fail", CODE=outputs["code"]).returncode == 0


def test_a_gate_above_its_limit_fails_after_the_reports_are_kept(runner, tmp_path):
    """Each word is a gate of its own, and `*:1000%` is no pattern of files."""
    done, outputs, summary = runner.compare(GEMM, heavier(tmp_path / "new.txt"), "0.1% *:1000%")
    assert done.returncode == 0 and outputs["code"] == "3", done.stderr
    assert summary.count("❌") == 1 and summary.count("✅") == 1 and "above the limit" in done.stderr
    assert runner.step("Pass or fail", CODE=outputs["code"]).returncode == 3


def test_bad_input_is_told_in_the_summary(runner):
    done, outputs, summary = runner.compare("none.csv; touch hacked", GEMM)
    assert outputs["code"] == "1" and "no such file" in summary and "Traceback" not in done.stderr
    assert not list((runner.place / "work").iterdir())


def comment(runner, comments, **inputs):
    """What gh is asked for where a pull request has these comments: (is it ours, its text)."""
    said = [
        {"viewerDidAuthor": ours, "body": text, "url": f"https://github.com/a/b/pull/7#issuecomment-{number}"}
        for number, (ours, text) in enumerate(comments, start=41)
    ]
    (runner.place / "comments.json").write_text(json.dumps({"comments": said}))
    job = {"GITHUB_WORKFLOW": "ci", "GITHUB_JOB": "energy", "ARTIFACT": "energy", **inputs}
    place = {"FOLDER": str(runner.place / "temp" / "energy"), "NUMBER": "7", "GH_TOKEN": "t"}
    done = runner.step("Comment on the pull request", **place, **job)
    assert done.returncode == 0, done.stderr
    asked = (runner.place / "gh.txt").read_text().splitlines()[-1]
    return asked, (runner.place / "temp" / "comment.md").read_text()


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq does here what gh has built in")
def test_the_comment_is_made_and_then_its_own_is_replaced(runner):
    """Not another action's by the same token, nor one that somebody wrote with the same mark in it."""
    _, outputs, _ = runner.compare(GEMM, GEMM)
    asked, text = comment(runner, [(True, "### Coverage"), (False, "a question")])
    assert asked.startswith("pr comment 7 --repo a/b --body-file ")
    mark, _, rest = text.partition("\n")
    assert rest == Path(outputs["folder"], "diff.md").read_text() and re.fullmatch(r"<!-- eprof [0-9a-f]{16} -->", mark)
    others = [(True, "### Coverage"), (True, text), (False, text), (True, f"> {text}"), (True, "### Speed")]
    asked, again = comment(runner, others)
    assert asked.startswith("api --silent --method PATCH repos/a/b/issues/comments/42 -F body=@") and again == text
    asked, other = comment(runner, others, GITHUB_JOB="energy-of-another-program")
    assert asked.startswith("pr comment") and other != text


@pytest.mark.parametrize("text", ['kernel_name = ["none"]\n', "efficiency = 0.5\n", "verbose = true\n", "force = 3\n"])
def test_a_configuration_in_the_change_that_is_judged_is_not_read(runner, tmp_path, text):
    (runner.place / "work").mkdir()
    (runner.place / "work" / "eprof.toml").write_text(text)
    done, outputs, _ = runner.compare(GEMM, heavier(tmp_path / "new.txt"))
    assert outputs["code"] == "3" and "eprof.toml" not in done.stderr, done.stderr


def test_thousands_of_kernels_and_notes_fit_a_comment(tmp_path):
    """Names of 500 letters, 2,000 kernels on each side, half of them without a partner."""
    import eprof
    from eprof.commands.diff.files import to_markdown
    from eprof.show.export import markdown
    from eprof.show.blocks import Notes

    for side in ("old", "new"):
        names = [f"{'k' * 500}_{number}_{side if number % 2 else 'both'}" for number in range(2000)]
        rows = [f'"Tesla K20c (0)","{name}",1,"inst_fp_32","FP",{len(side)}00,900,900' for name in names]
        header = '"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"'
        lines = ["==1== Profiling application: ./a", "==1== Metric result:", header, *rows]
        (tmp_path / f"{side}.csv").write_text("\n".join(lines) + "\n")
    difference = eprof.diff(tmp_path / "old.csv", tmp_path / "new.csv", costs="gtx680", similar=False)
    assert len(to_markdown(difference.typed).decode()) < MOST_CHARACTERS
    many = markdown("# x", [Notes([f"note {number} {'x' * 200}" for number in range(1000)])]).decode()
    assert len(many) < MOST_CHARACTERS and "more notes in the JSON" in many

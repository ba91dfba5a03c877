"""`eprof history`: where a series of runs changes, and what is said of it."""

import json
import math
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
from conftest import SHARED, environment, here
from hypothesis import given, settings
from hypothesis import strategies as st

import eprof
from eprof.base.errors import LogError
from eprof.collect import machine
from eprof.commands.history import document as history_document
from eprof.commands.history.document import LEAST, SCHEMA, steps
from eprof.show.numbers import quantity

LOGS = Path(__file__).parents[2] / "golden" / "logs"
TRACE = SHARED / "traces" / "nsys" / "pipit-saxpy-mpi-rank0.sqlite"
GEMM = Path(__file__).parents[3] / "samples" / "ci" / "baseline" / "gemm.txt"


def places(values, may_cut=None, **more):
    return [step.place for step in steps(values, may_cut, **more)]


# ------------------------------------------------------------------------------------------------------ change points


@pytest.mark.parametrize("number", [4, 10, 40])
def test_noise_alone_makes_no_more_changes_than_the_level_says(number):
    """Of 2,000 series without a change, at a level of 5 %: at most what is 3 standard deviations above 100."""
    random = np.random.default_rng(number)
    series = random.normal(100, 3, size=(2000, number))
    alarms = sum(bool(places(values, level=0.05)) for values in series)
    assert alarms <= 100 + 3 * np.sqrt(2000 * 0.05 * 0.95)


@given(
    before=st.integers(4, 30),
    after=st.integers(4, 30),
    seed=st.integers(0, 2**32 - 1),
    down=st.booleans(),
    scale=st.sampled_from([1e-6, 1.0, 1e9]),
)
def test_a_step_of_many_deviations_is_found_where_it_is(before, after, seed, down, scale):
    noise = np.random.default_rng(seed).uniform(-1, 1, before + after)
    values = scale * (100 + noise + np.repeat([0, -30 if down else 30], [before, after]))
    assert before in places(values)


@given(st.lists(st.floats(1e-3, 1e3), max_size=40), st.data())
def test_steps_keep_their_distance_and_stay_where_they_may(values, data):
    may_cut = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    found = places(values, may_cut)
    edges = [0, *found, len(values)]
    assert found == sorted(set(found)) and all(may_cut[place] for place in found)
    assert not found or min(np.diff(edges)) >= LEAST


@given(st.floats(1e-9, 1e9), st.integers(0, 40))
def test_identical_runs_have_no_step(value, number):
    assert places([value] * number) == []


@settings(max_examples=50)
@given(st.integers(2, 20), st.integers(2, 20), st.floats(1e-9, 1e9), st.sampled_from([0.001, -0.5, 3.0]))
def test_identical_runs_before_and_after_leave_no_doubt(before, after, value, growth):
    (step,) = steps([value] * before + [value * (1 + growth)] * after)
    assert step.place == before and step.p == 0


@pytest.mark.parametrize("values", [[], [1], [1, 2], [1, 1, 2], [1, 1, 1, 1, 1, 9], [9, 1, 1, 1, 1]])
def test_one_run_makes_no_change(values):
    assert places(values) == []


def test_two_steps_are_found_and_repeats_are_not_torn_apart():
    values = [5.0, 5.1, 5.0, 5.1, 7.0, 7.1, 7.0, 7.1, 6.0, 6.1, 6.0, 6.1]
    assert places(values) == [4, 8]
    assert 4 not in places(values, [place != 4 for place in range(12)])


def test_t_and_p_agree_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    values = [5.0, 5.4, 6.1, 6.5, 6.0]
    (step,) = steps(values, level=0.99)
    by_cut = [stats.ttest_ind(values[:cut], values[cut:]).pvalue for cut in (2, 3)]
    assert step.place == 2 + int(np.argmin(by_cut)) and step.p == pytest.approx(2 * min(by_cut), rel=1e-9)


# ----------------------------------------------------------------------------------------------------------- command


@pytest.fixture(scope="module")
def report():
    return eprof.load(LOGS / "old.csv", LOGS / "old-times.csv").energy("gtx680").document()


def scaled(report, factor):
    """The report with all joules of data movement, and so its totals, `factor` times as large."""
    changed = json.loads(json.dumps(report))
    for entry in (changed, *changed["kernels"]):
        energy = entry["energy_j"]
        energy["total"] += (factor - 1) * (energy["data"] or 0)
        energy["data"] = factor * (energy["data"] or 0)
    return changed


def folder(path, report, factors, commits=None, **more):
    """A folder with a report a factor, a day apart."""
    path.mkdir(exist_ok=True)
    for number, factor in enumerate(factors):
        document = scaled(report, factor) | {"created_utc": f"2026-11-{number + 1:02d}T02:00:00Z"} | more
        if commits:
            document["commit"] = commits[number] * 40
        (path / f"run-{number:02d}.json").write_text(json.dumps(document))
    return path


def history(*arguments, **more):
    return here(["history", *arguments], Path.cwd(), environment(**more))


STEP = [1, 1.001, 0.999, 1, 1.5, 1.501, 1.499, 1.5]


def test_a_step_is_told_with_its_commit_its_size_and_its_part(tmp_path, report):
    done = history(folder(tmp_path / "night", report, STEP, "aabbccdd"), "--format", "json")
    document = json.loads(done.stdout)
    whole, *kernels = document["changes"]
    assert document["schema"] == SCHEMA and whole["kernel"] is None
    assert document["runs"][whole["run"]]["commit"] == "c" * 40 and (whole["runs_before"], whole["runs_after"]) == (
        4,
        4,
    )
    data = report["energy_j"]["data"]
    assert whole["after_j"] - whole["before_j"] == pytest.approx(0.5 * data) and whole["because"] == "data"
    assert whole["because_j"] == pytest.approx(0.5 * data) and whole["also"] == []
    assert {change["run"] for change in kernels} == {4}
    assert document["noise"]["commits"] == 4 and document["noise"]["runs"] == 8


def test_the_terminal_answers_in_fifteen_lines(tmp_path, report):
    folder(tmp_path / "night", report, STEP, "aabbccdd")
    done = here(["history", "night"], tmp_path, environment(COLUMNS="80"))  # a name as short as users give it
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len(lines) <= 15 and max(map(len, lines)) <= 80
    assert (
        re.search(r"Energy grew by \d", done.stdout)
        and "at ccccccccc" in done.stdout
        and "data movement" in done.stdout
    )


def test_noise_is_no_change_and_few_runs_are_no_answer(tmp_path, report):
    quiet = history(folder(tmp_path / "quiet", report, [1, 1.01, 0.99, 1.02, 1, 0.99]))
    assert "No change in 6 runs that is more than noise" in quiet.stdout
    few = history(folder(tmp_path / "few", report, [1, 2]))
    assert "The last of 2 runs takes" in few.stdout and "from four runs on" in few.stdout


def test_identical_repeats_are_told_and_a_last_run_that_differs_is_not_yet_a_change(tmp_path, report):
    done = history(folder(tmp_path / "night", report, [1, 1, 1, 1, 1.2], "aabbc"))
    assert "No change" in done.stdout and "identical" in done.stdout
    assert re.search(r"last run is \+\d", done.stdout)


def other_prices(document):
    document["costs"]["name"] = "another"


def other_efficiency(document):
    document["modelled_time"] = {"efficiency": 0.5, "given": True}


def other_counts(document):
    del document["counts"]["dram_read"]


def other_gpu(document):
    document["devices"][0]["name"] = "another"


@pytest.mark.parametrize(
    ("of_first", "of_last", "left"),
    [
        ("./comp", "./mem", 4),
        ("/build/7/fmm N=65536", "./fmm N=131072", 4),
        ("/build/7/fmm N=65536 7/in", "./fmm N=65536 8/in", 7),
        ("fmm", "./fmm N=65536", 7),
        (None, "./fmm N=65536", 7),
    ],
    ids=["programs", "arguments", "folders", "arguments not known", "command not known"],
)
def test_results_of_other_programs_are_no_series(tmp_path, report, of_first, of_last, left):
    night = folder(tmp_path / "night", report, [1, 1, 1, 1.5, 1.5, 1.5, 1.5])
    for number in range(7):
        path = night / f"run-{number:02d}.json"
        document = json.loads(path.read_text())
        for log in document["inputs"]:
            log["command"] = of_first if number < 3 else of_last
        path.write_text(json.dumps(document))
    document = json.loads(history(night, "--format", "json").stdout)
    assert len(document["runs"]) == left
    said = "3 results are of another program than the last, or of other arguments" in "".join(document["warnings"])
    assert said == (left == 4)


def test_results_without_a_kernel_of_the_last_are_of_another_program(tmp_path, report):
    night = folder(tmp_path / "night", report, [1, 1, 1, 1, 1.5])
    path = night / "run-00.json"
    document = json.loads(path.read_text())
    for log in document["inputs"]:
        log["command"] = None
    for kernel in document["kernels"]:
        kernel["name"] = "other_" + kernel["name"]
    path.write_text(json.dumps(document))
    assert len(json.loads(history(night, "--format", "json").stdout)["runs"]) == 4


@pytest.mark.parametrize("change", [other_prices, other_efficiency, other_counts, other_gpu])
def test_results_unlike_the_last_are_not_compared_with_it(tmp_path, report, change):
    night = folder(tmp_path / "night", report, [1, 1, 1, 1.5, 1.5, 1.5, 1.5])
    for number in (0, 1, 2):
        path = night / f"run-{number:02d}.json"
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))
    document = json.loads(history(night, "--format", "json").stdout)
    assert len(document["runs"]) == 4 and not document["changes"]
    what = change.__name__.split("_")[1].replace("gpu", "GPU").replace("counts", "known counts")
    assert f"other {what} than the last" in document["warnings"][0]
    theirs = document["warnings"][0].partition("cannot be compared with it: ")[2]
    assert change is not other_counts or theirs == "DRAM read."
    assert change is other_counts or theirs in ("another at 1006/3004 MHz.", "another.", "0.5."), "not the last's own"


def test_the_version_of_eprof_is_named_at_the_change(tmp_path, report):
    night = folder(tmp_path / "night", report, [1, 1, 1, 1.5, 1.5, 1.5])
    for number in (0, 1, 2):
        path = night / f"run-{number:02d}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"eprof": "0.0.1"}))
    done = history(night)
    assert "The version of eprof changed there, too" in done.stdout


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "there is no such folder"), ({}, "holds no run directory"), ({"a.json": "[1"}, "is no report in JSON")],
)
def test_bad_folders_are_one_sentence(tmp_path, content, words):
    for name, text in (content or {}).items():
        (tmp_path / name).write_text(text)
    done = history(tmp_path if content is not None else tmp_path / "none")
    assert done.returncode == 1 and words in done.stderr and "Traceback" not in done.stderr


def test_a_log_in_place_of_a_folder_is_told_how_to_become_a_report(tmp_path):
    (tmp_path / "log.csv").write_text("a,b\n1,2\n")
    done = history(tmp_path / "log.csv")
    assert done.returncode == 1 and "`eprof report" in done.stderr and "log.csv/NAME" not in done.stderr


def test_reports_without_energy_are_left_out(tmp_path, report):
    night = folder(tmp_path / "night", report, [1, 1])
    bare = eprof.load(LOGS / "ncu.csv").energy("none").document()
    (night / "bare.json").write_text(json.dumps(bare))
    done = history(night)
    assert done.returncode == 0 and "1 of 3 results has no energy" in done.stdout
    (alone := tmp_path / "alone").mkdir()
    (alone / "bare.json").write_text(json.dumps(bare))
    done = history(alone)
    assert done.returncode == 1 and "has an energy" in done.stderr


@pytest.mark.parametrize("place", ["total", "data", "measured", "time_s", "kernel"])
@pytest.mark.parametrize("number", ["-1.5", "-1e-9", "1e300", "1e999", "NaN", "1e15"])
def test_numbers_that_no_report_has_are_refused_with_the_file(tmp_path, report, place, number):
    night = folder(tmp_path / "night", report, [1, 1])
    changed = json.loads(json.dumps(report))
    if place == "kernel":
        changed["kernels"][-1]["energy_j"]["constant"] = "HERE"
    elif place == "time_s":
        changed["time_s"] = "HERE"
    else:
        changed["energy_j"][place] = "HERE"
    (night / "odd.json").write_text(json.dumps(changed).replace('"HERE"', number))
    with pytest.raises(
        LogError, match=r"odd.json: is no report in JSON \(.*\); make it again, or move it away"
    ) as refused:
        history_document.read([night], None)
    assert "\n" not in str(refused.value)


def test_the_noise_is_that_of_commits_with_repeats_pooled(tmp_path, report):
    """Two repeats 10 % apart, three 20 % apart in steps, and a commit that ran once, which tells no noise."""
    joules = [200.0, 220.0, 90.0, 100.0, 110.0, 500.0]
    night = folder(tmp_path / "night", report, [1] * 6, "aabbbc")
    for number, total in enumerate(joules):
        path = night / f"run-{number:02d}.json"
        changed = json.loads(path.read_text())
        changed["energy_j"]["total"] = total
        path.write_text(json.dumps(changed))
    document = history_document.history(history_document.read([night], None), "night", [])
    noise = document.noise
    assert (noise.commits, noise.runs) == (2, 5)
    assert noise.share == pytest.approx(math.sqrt((2 * (1 / 21) ** 2 + 2 * 0.1**2) / (1 + 2)))
    assert [run.energy_j["total"] for run in document.runs] == joules


@pytest.mark.skipif(not TRACE.is_file(), reason="needs a real log, which is not part of this project")
def test_time_without_kernels_is_a_part_of_the_whole_program(tmp_path):
    """A trace whose gaps take ten times what kernels do: where they double, the program takes more, and no kernel."""
    document = eprof.load(TRACE).energy().document()
    longer = json.loads(json.dumps(document))
    longer["gaps"]["energy_j"] *= 2
    for number, made in enumerate([document] * 4 + [longer] * 4):
        made = made | {"created_utc": f"2026-11-{number + 1:02d}T02:00:00Z"}
        (tmp_path / f"run-{number}.json").write_text(json.dumps(made))
    out = tmp_path / "history.out"
    assert history(tmp_path, "-o", out.with_suffix(".json")).returncode == 0
    told = json.loads(out.with_suffix(".json").read_text())
    idle_j, kernels_j = 54.47, document["energy_j"]["total"]  # by its first screen: 54.0 W for 1.01 s
    whole, idle = (
        next(each for each in told["changes"] if each["kernel"] == name) for name in (None, "(no kernel runs)")
    )
    assert [whole["before_j"], whole["after_j"]] == pytest.approx(
        [kernels_j + idle_j, kernels_j + 2 * idle_j], rel=1e-3
    )
    assert [idle["before_j"], idle["after_j"]] == pytest.approx([idle_j, 2 * idle_j], rel=1e-3) and whole[
        "because"
    ] == "constant"
    assert len(told["changes"]) == 2


def test_a_kernel_that_is_not_known_on_one_device_is_not_known(tmp_path, report):
    night = folder(tmp_path / "night", report, [1, 1])
    changed = json.loads((night / "run-01.json").read_text())
    first = changed["kernels"][0]
    changed["kernels"].append(first | {"device": "another", "energy_j": first["energy_j"] | {"total": None}})
    (night / "run-01.json").write_text(json.dumps(changed))
    kernels = {
        kernel.name: kernel.energy_j
        for kernel in history_document.history(history_document.read([night], None), "", []).kernels
    }
    assert kernels[first["name"]] == [first["energy_j"]["total"], None]
    assert [energies[1] for name, energies in kernels.items() if name != first["name"]] == [
        kernel["energy_j"]["total"]
        for kernel in sorted(report["kernels"], key=lambda one: -one["energy_j"]["total"])
        if kernel["name"] != first["name"]
    ]


def test_a_result_of_no_joules_cannot_be_compared(tmp_path, report):
    night = folder(tmp_path / "night", report, [1, 1])
    changed = json.loads(json.dumps(report))
    changed["energy_j"] |= dict.fromkeys(("total", "computation", "data", "constant"), 0.0)
    (night / "zero.json").write_text(json.dumps(changed))
    document = history_document.history(history_document.read([night], None), "night", [])
    assert (
        len(document.runs) == 2 and "1 of 3 results has no energy, or 0 J, and cannot be compared." in document.warnings
    )


def test_every_form_is_written(tmp_path, report):
    night = folder(tmp_path / "night", report, STEP, "aabbccdd", title="<b>x")
    outputs = [tmp_path / f"history.{suffix}" for suffix in ("html", "json", "csv", "md", "txt")]
    done = history(night, "-q", *(word for path in outputs for word in ("-o", path)))
    assert done.returncode == 0, done.stderr
    page = outputs[0].read_text()
    assert page.count("<circle") == 8 and "ccccccccc" in page and not re.search(r"https?://(?!www\.w3\.org)", page)
    assert outputs[2].read_text().count("\n") == 1 + 8 * (1 + len(report["kernels"]))


def test_the_chart_has_every_energy_where_its_axis_says(tmp_path, report):
    """Dots and means lie between the lines of the least and the most energy, in proportion."""
    night, page = folder(tmp_path / "night", report, STEP), tmp_path / "history.html"
    assert history(night, "-q", "-o", page).returncode == 0
    (chart,) = re.findall(r'<svg class="bar".*?</svg>', page.read_text(), re.DOTALL)
    energies = [scaled(report, factor)["energy_j"]["total"] for factor in STEP]
    axis = re.findall(r'<line class="axis" [^>]*y1="(.*?)"[^>]*/><text [^>]*y="(.*?)">(.*?)</text>', chart)
    (low_y, _, low), (high_y, _, high) = axis
    assert [low, high] == [quantity(end, "J") for end in (min(energies), max(energies))]
    height = float(re.search(r'height="(.*?)"', chart)[1])
    assert 0 < float(high_y) < 0.1 * height and 0.8 * height < float(low_y) < height
    assert all(float(line_y) - 10 < float(text_y) < float(line_y) for line_y, text_y, _ in axis)

    def joules(y):
        share = (float(low_y) - float(y)) / (float(low_y) - float(high_y))
        return min(energies) + share * (max(energies) - min(energies))

    exact = pytest.approx(0.0, abs=1e-3 * (max(energies) - min(energies)))  # a tenth of a pixel of two hundred
    dots = re.findall(r'<circle [^>]*cy="(.*?)"', chart)
    assert [joules(y) - energy for y, energy in zip(dots, energies, strict=True)] == [exact] * 8
    means = re.findall(r'<line class="axis zero" [^>]*y1="(.*?)" y2="(.*?)"', chart)
    for (start_y, end_y), part in zip(means, (energies[:4], energies[4:]), strict=True):
        assert start_y == end_y and joules(start_y) - sum(part) / 4 == exact


def run_directory(place, commit, started, factor=1):
    """What `eprof run` leaves of a program on the simulated device, which does everything `factor` times."""
    (place / "logs").mkdir(parents=True)
    counted = re.sub(r"\d+(?= - | bytes)", lambda number: str(int(number[0]) * factor), GEMM.read_text())
    (place / "logs" / "counters-1.txt").write_text(counted)
    record = {"schema": "eprof.run/1", "status": "complete", "program": ["./gemm"], "command": "./gemm", "whole": True}
    about = {"commit": commit, "started_utc": started, "pricing": {"costs": "jetson-tk1"}, "measurements": []}
    (place / "run.json").write_text(json.dumps(record | about))


def test_run_directories_tell_their_commits_and_times(tmp_path):
    """And a report of one of them, which carries its commit, does not count twice."""
    for number in range(4):
        commit = ("a" if number < 2 else "b") * 40 + ("-dirty" if number == 3 else "")
        time = f"2026-11-0{4 - number}T00:00:00.000000Z"
        run_directory(tmp_path / f"{number}.eprof", commit, time, 2 if number < 2 else 1)
    assert here(["report", "0.eprof", "-q", "-o", "0.json"], tmp_path, environment()).returncode == 0
    assert json.loads((tmp_path / "0.json").read_text())["commit"] == "a" * 40
    document = json.loads(history(tmp_path, "--format", "json").stdout)
    runs = document["runs"]
    assert [run["commit"][0] for run in runs] == list("bbaa") and [run["changed"] for run in runs] == [True] + 3 * [
        False
    ]
    assert {run["time_from"] for run in runs} == {"run"} and runs[0]["time_utc"].startswith("2026-11-01")
    (whole,) = [change for change in document["changes"] if change["kernel"] is None]
    assert whole["run"] == 2 and whole["change_share"] == pytest.approx(1) and whole["p"] == 0


def test_repeats_of_a_run_are_one_run(tmp_path):
    """They share what the machine did meanwhile: three directories of ten repeats are no thirty runs."""
    for number in range(3):
        directory = tmp_path / f"{number}.eprof"
        run_directory(directory, "a" * 40, f"2026-11-0{1 + number}T00:00:00.000000Z")
        for repeat in (2, 3):
            (directory / "logs" / f"counters-{repeat}.txt").write_text(
                (directory / "logs" / "counters-1.txt").read_text()
            )
    document = json.loads(history(tmp_path, "--format", "json").stdout)
    assert len(document["runs"]) == 3 and document["noise"]["runs"] == 3
    assert "The last of 3 runs takes" in history(tmp_path).stdout


# ----------------------------------------------------------------------------------------------------------- commits


def git(place, *words):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *identity, *words], cwd=place, check=True, capture_output=True)


def test_a_run_knows_its_commit_and_whether_files_differ(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert machine.revision() is None
    git(tmp_path, "init", "-q")
    assert machine.revision() is None
    (tmp_path / "a.c").write_text("1")
    git(tmp_path, "add", "a.c")
    git(tmp_path, "commit", "-q", "-m", "one")
    clean = machine.revision()
    assert re.fullmatch("[0-9a-f]{40}", clean)
    (tmp_path / "a.c").write_text("22")
    assert machine.revision() == f"{clean}-dirty"

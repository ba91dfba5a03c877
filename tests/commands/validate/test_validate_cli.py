"""`eprof validate` and `eprof tune` as users run them: results, gates, bad input, pages."""

import json
import re
from html.parser import HTMLParser

import pytest
from conftest import SHARED
from msgspec.structs import replace
from validation_support import as_csv, made, table

from eprof.cli import main

HOSTILE = "k<script>alert(1)</script>&\"'\u2028\x1b[31m"


@pytest.fixture
def files(tmp_path):
    """A CSV of measurements and the table that they were made with."""
    (tmp_path / "made.toml").write_text(table())
    return as_csv(made(benchmarks=5, noise=0.03), tmp_path / "made.csv"), tmp_path / "made.toml"


@pytest.fixture
def command(capsys):
    """Run a command here; returns exit code, standard output, standard error."""

    def run(*arguments):
        with pytest.raises(SystemExit) as found:
            main([str(one) for one in arguments])
        out, err = capsys.readouterr()
        return found.value.code or 0, out, err

    return run


# ---- validate


def test_a_table_is_scored_as_it_is(command, files):
    measured, costs = files
    code, out, _ = command("validate", measured, "--costs", costs, "--format", "json")
    found = json.loads(out)
    assert code == 0 and found["schema"] == "eprof.validation/1"
    assert set(found["protocols"]) == {"table"}
    one = found["protocols"]["table"]
    assert {"mean_percent", "sd_percent", "min_percent", "max_percent", "rmse_w"} <= set(one)
    assert 1 < one["mean_percent"] < 4  # the noise is 3 %
    assert found["n"] == len(found["rows"]) == 60
    row = found["rows"][0]
    assert row["error_percent"] == pytest.approx(100 * (row["predicted_w"]["table"] / row["measured_w"] - 1))


def test_patterns_name_files(command, files):
    measured, costs = files
    pattern = f"{str(measured)[:-6]}*{str(measured)[-4:]}"
    whole = json.loads(command("validate", measured, "--costs", costs, "--format", "json")[1])
    found = json.loads(command("validate", pattern, "--costs", costs, "--format", "json")[1])
    assert found["protocols"] == whole["protocols"]
    for name in ("validate", "fit", "tune"):
        code, out, err = command(name, "/nowhere/*.csv")
        assert (code, out) == (1, "") and err == "eprof: /nowhere/*.csv: no file matches this pattern.\n"


def test_without_a_table_the_fit_is_validated(command, files):
    code, out, _ = command("validate", files[0], "--format", "json", "--jobs", 1)
    found = json.loads(out)
    assert code == 0
    assert set(found["protocols"]) == {"fit", "leave_one_setting_out", "leave_one_benchmark_out"}
    assert found["protocols"]["fit"]["mean_percent"] < found["protocols"]["leave_one_benchmark_out"]["mean_percent"]
    assert found["main_protocol"] == "leave_one_benchmark_out"
    assert found["protocols"]["leave_one_setting_out"]["folds"] == 12


def test_the_gate(command, files):
    measured, costs = files
    code, out, _ = command("validate", measured, "--costs", costs, "--max-error", "0.1%", "--format", "json")
    assert code == 3 and json.loads(out)["gate"]["passed"] is False
    code, out, _ = command("validate", measured, "--costs", costs, "--max-error", "10")
    assert code == 0 and "Gate passed" in out
    code, _, err = command("validate", measured, "--costs", costs, "--max-error", "ten")
    assert code == 2 and "is not a percentage" in err


def test_hold_out_and_k_fold_and_scale(command, files):
    arguments = ("--holdout", "500/500,700/800", "--protocol", "k-fold", "--folds", 3, "--scale", "--jobs", 1)
    code, out, _ = command("validate", files[0], *arguments, "--format", "json")
    found = json.loads(out)["protocols"]
    assert code == 0 and set(found) == {"k_fold", "holdout"}
    assert found["holdout"]["n"] == 10 and found["k_fold"]["folds"] == 3


def test_train_on_another_file(command, files, tmp_path):
    other = as_csv(made(benchmarks=6, seed=3), tmp_path / "other.csv")
    code, out, _ = command("validate", files[0], "--train", other, "--scale", "--format", "json")
    found = json.loads(out)
    assert code == 0 and set(found["protocols"]) == {"transfer", "transfer_scaled"}
    assert found["trained_on"][0]["path"].endswith("other.csv")
    code, out, _ = command("validate", files[0], "--train", other, "--scale", "card", "--format", "md")
    assert code == 0 and "one scale factor for the card" in out


def test_formats(command, files, tmp_path):
    measured, costs = files
    names = ["v.html", "v.json", "v.csv", "v.md", "v.txt", "v.parquet"]
    outputs = [part for name in names for part in ("-o", tmp_path / name)]
    code, _, err = command("validate", measured, "--costs", costs, *outputs, "-q")
    assert code == 0 and all((tmp_path / name).stat().st_size for name in names), err
    assert (tmp_path / "v.csv").read_text().splitlines()[0].startswith("benchmark,kernel,core_mhz")
    assert "| **the table as it is** |" in (tmp_path / "v.md").read_text()
    code, _, err = command("validate", measured, "--costs", costs, "-o", tmp_path / "v.json")
    assert code == 1 and "not overwritten" in err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("validate", "nothing.csv"), 1, "there is no such file"),
        (("validate", "{made}", "--costs", "jetson-tk1"), 1, "has no price for"),
        (("validate", "{made}", "--protocol", "k-fold", "--folds", "999"), 1, "--folds 999"),
        (("validate", "{made}", "--holdout", "1/2"), 1, "no row was measured there"),
        (("validate", "{made}", "--holdout", "fast"), 1, "is not a setting"),
        (("validate", "{made}", "-k", "nosuch"), 1, "No kernel is left"),
        (("validate", "{made}", "-k", "regex:("), 2, "not a regular expression"),
        (("validate", "{made}", "--profile", "x.csv"), 2, "--profile needs --costs"),
        (("validate", "{folder}"), 1, "not a run directory"),
        (("tune", "nothing.csv"), 1, "no such file"),
        (("tune", "{made}", "--objective", "best"), 2, "is not one of energy, edp"),
        (("tune", "{made}", "--power-limit", "-5"), 2, "--power-limit"),
        (("tune", "{made}", "--setting", "500/500"), 2, "are for profiles"),
    ],
)
def test_bad_input_is_one_sentence(command, files, tmp_path, arguments, code, said):
    filled = [one.format(made=files[0], folder=tmp_path) for one in arguments]
    found, out, err = command(*filled)
    assert (found, out) == (code, "")
    assert said in err and "Traceback" not in err and len(err.strip().splitlines()) == 1


def test_one_setting_only_is_validated_as_far_as_it_goes(command, tmp_path):
    one = as_csv(made(benchmarks=12, cores=(700.0,), memories=(800.0,)), tmp_path / "one.csv")
    code, out, _ = command("validate", one, "--format", "json", "--jobs", 1)
    found = json.loads(out)
    assert code == 0 and "leave_one_setting_out" not in found["protocols"]
    assert any("One setting only" in note for note in found["notes"])
    code, _, err = command("tune", one, "--jobs", 1)
    assert code == 1 and "nothing to choose from" in err


def test_measurements_without_time_cannot_be_tuned(command, tmp_path):
    path = tmp_path / "use.csv"
    path.write_text("bench_id,core_mhz,mem_mhz,power_w,util_fp32,util_dram,v_core_rel_gpmtool,v_mem_rel_gpmtool\n" + "".join(
        f"{bench},{core},{memory},{50 + core / 20 + 5 * bench},{0.1 * bench},0.2,1,1\n"
        for bench in range(4) for core in (500, 1000) for memory in (500, 1000)
    ))  # fmt: skip
    code, _, err = command("tune", path)
    assert code == 1 and "holds no times" in err


# ---- tune


def test_tune_on_measurements_with_the_table_that_made_them(command, files):
    measured, costs = files
    code, out, _ = command("tune", measured, "--costs", costs, "--format", "json")
    found = json.loads(out)
    assert code == 0 and found["schema"] == "eprof.tune/1"
    assert {"objective", "best", "fastest", "settings", "mispredictions", "energy_lost_percent"} <= set(found)
    assert found["fastest"]["core_mhz"] == 1000 and len(found["settings"]) == 12
    energies = [one["energy_j"] for one in found["settings"]]
    assert found["best"]["energy_j"] == min(energies)
    lost = found["energy_lost_percent"]
    assert lost["model"]["all_mean_percent"] <= lost["oracle"]["all_mean_percent"]
    code, out, _ = command("tune", measured, "--costs", costs)
    assert code == 0 and "gives the least energy" in " ".join(out.split())


def test_tune_formats_and_limits(command, files, tmp_path):
    measured, costs = files
    outputs = [part for name in ("t.html", "t.csv", "t.md", "t.txt") for part in ("-o", tmp_path / name)]
    limits = ("--objective", "ed2p", "--max-slowdown", "5%", "--power-limit", "500", "--times", "modelled")
    code, out, err = command("tune", measured, "--costs", costs, *limits, *outputs)
    assert code == 0, err
    assert "least energy x time^2 with at most 5 % more time than the fastest setting and at most 500 W" in " ".join(
        out.split()
    )
    assert (tmp_path / "t.csv").read_text().count("\n") == 1 + 6 * 12
    code, out, _ = command("tune", measured, "--costs", costs, "--power-limit", "1", "--format", "json")
    assert code == 0 and json.loads(out)["best"] is None


def test_tune_on_a_real_log_of_another_gpu(command, real_log):
    code, out, _ = command("tune", real_log("k20c-metrics-summary.csv"), "--costs", "jetson-tk1", "--format", "json")
    found = json.loads(out)
    assert code == 0 and found["time"]["from"] == "modelled" and found["time"]["model"]["byte_per_cycle"] == 16
    assert found["now"]["core_mhz"] == 852 and {"estimated", "assumed", "missing"} <= set(found["marks"])
    assert any("table's default" in note for note in found["notes"])
    assert any("rests on the assumption" in note for note in found["notes"])


# ---- pages


class Strict(HTMLParser):
    """Fails on tags that do not match, and on anything that a strict policy forbids."""

    VOID = {"meta", "br", "img", "input", "link", "hr"}

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_starttag(self, tag, attributes):
        names = dict(attributes)
        assert "style" not in names and not any(name.startswith("on") for name in names), (tag, attributes)
        assert not any(str(value).startswith(("http", "//")) for value in names.values())
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ["validate", "tune"])
def test_pages_are_one_strict_file_and_survive_hostile_names(command, files, tmp_path, name):
    measured = made(benchmarks=5, noise=0.03)
    named = measured.rows.assign(benchmark=measured.rows["benchmark"].replace("kernel0", HOSTILE), kernel=HOSTILE)
    path = as_csv(replace(measured, rows=named), tmp_path / "hostile.csv")
    arguments = ("--baselines", "--protocol", "fit", "--jobs", 1) if name == "validate" else ()
    code, _, err = command(name, path, "--costs", files[1], *arguments, "-o", tmp_path / "page.html", "-q")
    assert code == 0, err
    text = (tmp_path / "page.html").read_text()
    parser = Strict()
    parser.feed(text)
    assert parser.open == []
    assert "<script>alert" not in text and "k&lt;script&gt;" in text
    assert len(text) < 180_000
    assert len(re.findall(r"<h1", text)) == 1


def test_pages_in_a_browser(command, files, tmp_path, opener):
    """No error, no request, no violation, no overflow wide or narrow, light or dark; tables sort."""
    measured, costs = files
    pages = [tmp_path / "t.html", tmp_path / "v.html"]
    assert command("tune", measured, "--costs", costs, "-o", pages[0], "-q")[0] == 0
    assert command("validate", measured, "--costs", costs, "-o", pages[1], "-q")[0] == 0
    for path in pages:
        for width, scheme in ((390, "dark"), (1180, "light")):
            shown = opener(path, width=width, color_scheme=scheme)
            shown.fits(width)
    shown.page.click("#all th:nth-child(2) button")
    values = shown.page.evaluate(
        "() => Array.from(document.querySelectorAll('#all tbody tr')).map(r => +r.cells[1].dataset.value)"
    )
    assert values == sorted(values, reverse=True) and len(values) == 5
    opener.close()


# ---- real data


@pytest.mark.parametrize(("name", "bar"), [("nvdvfs_counts_gtx980_low", 7.3), ("nvdvfs_counts_v100", 16.1)])
def test_a_kernel_left_out_is_within_the_bar(name, bar):
    """The bars have slack: a third of the kernels is left out at once, from one start, to be quick."""
    from eprof.commands.validate.study import score
    from eprof.lab.fitting import Form, cross_validation
    from eprof.lab.fitting.cross_validation import of_form
    from eprof.lab.measurements import read

    path = SHARED / "power" / f"{name}.csv"
    if not path.exists():
        pytest.skip(f"needs the measurements {name}, which are not part of this project")
    measured = read([path])
    folds = cross_validation.folds("k_fold_benchmarks", measured.rows, k=3)
    predicted = cross_validation.cross_validate(of_form(Form(starts=1)), measured, folds, processes=1)
    found = score(measured.power_w, predicted)
    assert found.missing == 0 and 2.0 < found.mean_percent < 1.35 * bar


# ---- run directories


def run_directory(path, log, joules):
    """A run directory as `eprof run` leaves it, with what a meter saw."""
    (path / "logs").mkdir(parents=True)
    (path / "logs" / "counters-1-1.csv").write_bytes(log.read_bytes())
    energy = {"joules": joules, "runs": 1, "method": "made", "core_mhz": 852, "memory_mhz": 924}
    manifest = {"schema": "eprof.run/1", "status": "complete", "command": "./test", "warnings": [], "pricing": {}}
    manifest["measurements"] = [{"energy": energy}] if joules else []
    (path / "run.json").write_text(json.dumps(manifest))
    return path


def test_a_run_with_a_meter_is_held_against_it(command, real_log, tmp_path):
    log = real_log("k20c-metrics-summary.csv")
    total = json.loads(command("report", log, "--costs", "jetson-tk1", "--format", "json")[1])["energy_j"]["total"]
    path = run_directory(tmp_path / "fmm.eprof", log, joules=total * 1.25)
    code, out, _ = command("validate", path, "--costs", "jetson-tk1", "--format", "json")
    found = json.loads(out)
    assert code == 0 and found["protocols"]["runs"]["mean_percent"] == pytest.approx(20)
    assert found["runs"][0]["predicted_j"] == pytest.approx(total) and "missing" in found["runs"][0]["marks"]
    assert found["protocols"]["runs"]["rmse_w"] is None
    code, out, err = command("validate", path, "--costs", "jetson-tk1", "--max-error", "10%", "-q")
    assert (code, out) == (3, "") and err.startswith("eprof: Gate failed: ") and "allowed are 10 %." in err
    page = tmp_path / "page.html"
    assert command("validate", path, "--costs", "jetson-tk1", "-o", page)[0] == 0
    assert "Whole programs" in page.read_text() and "lower bound" in page.read_text()


def test_a_run_without_a_meter_is_no_validation(command, real_log, tmp_path):
    path = run_directory(tmp_path / "fmm.eprof", real_log("k20c-metrics-summary.csv"), joules=None)
    code, _, err = command("validate", path, "--costs", "jetson-tk1")
    assert code == 1 and "no meter was read" in err


STREAM = "benchmark,kernel,core_mhz,memory_mhz,time_s,power_w,l1_read,l2_read,dram_read,dram_write,l1_write,l2_write\n"


@pytest.mark.parametrize(
    ("memory_mhz", "constant_w"), [(1215, 43.67 + 0.007325 * 1410), (1593, 15.29 + 60.92 + 0.008166 * 1410)]
)
def test_a_published_table_is_scored_on_any_of_its_boards(command, tmp_path, memory_mhz, constant_w):
    """By hand: 1e12 B a second pay L1, L2 and both sides of DRAM; 108 multiprocessors are active; the board's own idle."""
    rows = tmp_path / "stream.csv"
    half = ",".join(["5e11"] * 6)
    rows.write_text(STREAM + "".join(f"{name},{name},1410,{memory_mhz},1,200,{half}\n" for name in ("copy", "add")))
    code, out, _ = command("validate", rows, "--costs", "a100", "--format", "json")
    predicted_w = json.loads(out)["rows"][0]["predicted_w"]["table"]
    assert code == 0
    assert predicted_w == pytest.approx(constant_w + 11.6 + 29.7 + 24.3 + 15.9 + 67e-12 * 108 * 1410e6, rel=1e-6)

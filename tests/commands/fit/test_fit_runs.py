"""`eprof fit` of run directories: known prices come back; time and power are those of the meter; what is left out, and why."""

import csv
import io
import json
import shutil

import numpy as np
import pytest

pytest.importorskip("scipy")

from eprof import costs
from eprof.cli import main
from eprof.lab.measurements import MeasurementError
from eprof.lab.programs import from_profiles
from eprof.profile import api

CORE_V, MEMORY_V = {614: 0.9, 705: 1.0}, {2000: 0.9, 2600: 1.0}
TRUE = {"fp32_instruction": 30.0, "integer_instruction": 60.0, "shared_byte": 4.0, "l2_byte": 40.0, "dram_byte": 200.0}
METRICS = {
    "fp32": ("flop_count_sp", "flop_count_sp_add", "flop_count_sp_mul", "flop_count_sp_fma", "inst_fp_32"),
    "integer": ("inst_integer",),
    "warp": ("inst_executed", "inst_issued"),
    "shared": ("shared_load_transactions", "shared_store_transactions"),
    "l2": ("l2_read_transactions", "l2_write_transactions", "l2_tex_read_transactions", "l2_l1_write_transactions"),
    "dram": ("dram_read_transactions", "dram_write_transactions"),
}


def scaled(log, random, without=()):
    """A real log of a K20c with its counts multiplied, group by group: a program that does something else."""
    factors = {
        metric: factor for group in METRICS.values() for factor in [random.uniform(0.2, 2.0)] for metric in group
    }
    lines = log.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith('"Device"'))
    out = io.StringIO()
    rows = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
    for row in csv.reader(lines[start + 1 :]):
        if row[3] in factors:
            row[5:] = [f"{int(float(one) * factors[row[3]])}" for one in row[5:]]
        if row[3] not in without:
            rows.writerow(row)
    return "\n".join([*lines[: start + 1], out.getvalue()])


def directory(path, text, command, joules, seconds, setting, runs=4, **more):
    """A run directory as `eprof run` leaves it, whose meter saw `joules` in `seconds` of each of `runs` runs."""
    (path / "logs").mkdir(parents=True)
    (path / "logs" / "counters-1-1.csv").write_text(text)
    core, memory = setting
    energy = {"joules": joules, "runs": runs, "window_s": runs * seconds, "method": "made", "core_mhz": core}
    manifest = {"schema": "eprof.run/1", "status": "complete", "command": command, "program": ["./test"], "pricing": {}}
    manifest |= {"warnings": [], "measurements": [{"what": "energy", "energy": energy | {"memory_mhz": memory}}]}
    (path / "run.json").write_text(json.dumps(manifest | more))
    return path


def change(path, **more):
    """Change `run.json`; a key of the energy measurement is given as energy_KEY."""
    found = json.loads((path / "run.json").read_text())
    for key, value in more.items():
        if key.startswith("energy_"):
            found["measurements"][0]["energy"][key.removeprefix("energy_")] = value
        else:
            found[key] = value
    (path / "run.json").write_text(json.dumps(found))


def rates_of(counts, seconds):
    """1e9 events a second of the metered time, by the names of prices."""
    table = counts.table.sum()
    found = {"fp32_instruction": table[["fp32_fma", "fp32_add", "fp32_mul", "fp32_other"]].sum()}
    found["integer_instruction"] = table["integer"]
    found |= {f"{level}_byte": table[f"{level}_read"] + table[f"{level}_write"] for level in ("shared", "l2", "dram")}
    return {term: count / seconds / 1e9 for term, count in found.items()}


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Run directories of 6 programs at 4 settings, whose meter saw what known prices make of their counts."""
    from conftest import SHARED

    log = SHARED / "nvprof" / "k20c-metrics-summary.csv"
    if not log.exists():
        pytest.skip("needs a real log, which is not part of this project")
    folder, random, found = tmp_path_factory.mktemp("runs"), np.random.default_rng(2), []
    for number in range(6):
        text = scaled(log, random)
        (folder / f"{number}.csv").write_text(text)
        counts = api.load(folder / f"{number}.csv").counts("accessed")
        for core, v_core in CORE_V.items():
            for memory, v_memory in MEMORY_V.items():
                # Longer than the kernels take (0.116 s): the program does more than run kernels.
                seconds = random.uniform(0.16, 0.2) * 705 / core
                watts = 8 * v_core + 6 * v_memory + 10
                for term, rate in rates_of(counts, seconds).items():
                    watts += rate * TRUE[term] * 1e-3 * (v_memory if term == "dram_byte" else v_core) ** 2
                path = folder / f"p{number}-{core}-{memory}.eprof"
                found.append(directory(path, text, f"./p{number}", watts * seconds, seconds, (core, memory)))
    return found


@pytest.fixture
def few(homes, tmp_path):
    """Copies of the run directories of four programs at one setting, to be spoilt."""
    mine = [one for one in homes if one.name.endswith("-705-2600.eprof")][:4]
    return [shutil.copytree(one, tmp_path / one.name) for one in mine]


def rows(paths):
    return from_profiles([(str(path), api.load(path)) for path in paths])


def run(capfd, *words):
    with pytest.raises(SystemExit) as stop:
        main(["fit", *map(str, words)])
    out, err = capfd.readouterr()
    return stop.value.code or 0, out, err


def test_known_prices_come_back_from_run_directories(homes, tmp_path, capfd):
    table = tmp_path / "k20c.toml"
    terms = ["--without", "warp_issue_instruction", "--without", "l1_byte"]
    code, _, err = run(capfd, *homes, homes[0], "--prior", "none", "--no-validate", *terms,
                       "--replicas", 2, "-o", table)  # fmt: skip
    assert code == 0, err
    found = costs.load(str(table))
    assert found.books == "accessed" and found.is_for("Tesla K20c (0)") and len(found.fit.data["data"]) == len(homes)
    assert found.fit.data["rows"] == 24 and found.fit.data["benchmarks"] == 6 and found.fit.data["settings"] == 4
    at = found.at("705/2600")
    for term, pj in TRUE.items():
        assert at.prices[term].pj == pytest.approx(pj, rel=0.01), term
    assert found.source.endswith("p0-705-2600.eprof and 21 more")
    assert at.constant_power_w == pytest.approx(24, rel=0.01)


def test_time_and_power_are_those_of_the_meter(few):
    measured, device = rows(few)
    one, counts = api.load(few[0]), api.load(few[0]).counts("accessed")
    energy = json.loads((few[0] / "run.json").read_text())["measurements"][0]["energy"]
    seconds = energy["window_s"] / energy["runs"]
    assert (
        device == "Tesla K20c" and len(measured) == 4 and set(measured.rows["kernel"]) == {f"./p{n}" for n in range(4)}
    )
    assert measured.rows["time_s"][0] == pytest.approx(seconds) and seconds > 1.1 * counts.kernels["time_s"].sum()
    assert measured.power_w[0] == pytest.approx(one.run.measured().joules / seconds)
    for term, rate in rates_of(counts, seconds).items():
        assert measured.rates[term][0] == pytest.approx(rate)


def test_repetitions_are_medians(few):
    measurement = json.loads((few[0] / "run.json").read_text())["measurements"][0]
    energies = [measurement["energy"] | {"joules": joules} for joules in (20.0, 9.0, 10.0)]
    change(few[0], measurements=[{**measurement, "energy": one} for one in energies])
    measured, _ = rows(few)
    assert measured.power_w[0] * measured.rows["time_s"][0] == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"measurements": []}, "no meter was read in it"),
        ({"energy_joules": None}, "no meter was read in it"),
        ({"energy_window_s": None}, "does not tell for how long"),
        ({"energy_core_mhz": None}, "its clocks are not known"),
        ({"energy_joules": 1e5}, "which no processor draws"),
        ({"status": "partial"}, "the run is not complete"),
        ({"profiler": {"simulated": True}}, "a simulated device"),
        ({"meter": {"name": "RAPL", "covers": "processor packages of the host, not the GPU"}}, "covers processor"),
        ({"meter": {"name": "NVML", "devices": ["Tesla K20c", "Tesla K20c"]}}, "of 2 GPUs together"),
    ],
)
def test_what_cannot_be_a_row_is_left_out_with_a_sentence(few, spoil, said):
    change(few[1], **spoil)
    measured, _ = rows(few[:2])
    assert list(measured.rows["kernel"]) == ["./p0"]
    (note,) = [note for note in measured.notes if said in note]
    assert note.startswith(f"{few[1]} was left out: ")
    assert measured.sources == (str(few[0]),)


def test_no_row_at_all_is_an_error_that_says_why(few):
    change(few[1], measurements=[])
    with pytest.raises(MeasurementError, match="No run directory can be a row.*no meter was read"):
        rows(few[1:2])


def test_kernels_that_were_not_counted_are_noticed_and_words_of_the_program_are_its_own(few):
    found = json.loads((few[0] / "run.json").read_text())["measurements"]
    counters = {"what": "counters", "command": ["nvprof", "--kernels", "axpy", "./test", "-k"]}
    change(few[0], measurements=[*found, counters], program=["./test", "-k"])
    change(few[2], measurements=[*found, counters | {"command": ["nvprof", "./test", "-k"]}], program=["./test", "-k"])
    measured, _ = rows(few)
    assert list(measured.rows["kernel"]) == ["./p1", "./p2", "./p3"]
    assert any("some of its kernels were not counted" in note for note in measured.notes)


def test_a_word_that_one_run_lacks_costs_that_run_and_one_that_all_lack_is_no_term(homes, few, real_log):
    log, random = real_log("k20c-metrics-summary.csv"), np.random.default_rng(0)
    (few[3] / "logs" / "counters-1-1.csv").write_text(
        scaled(log, random, without=(*METRICS["dram"], "dram_read_throughput", "dram_write_throughput"))
    )
    measured, _ = rows(few)
    assert len(measured) == 3 and "dram_byte" in measured.terms
    assert any(note.startswith(f"{few[3]} was left out: dram_read, dram_write was not") for note in measured.notes)
    alone, _ = rows(few[3:])
    assert "dram_byte" not in alone.terms and any("Not counted in any run" in note for note in alone.notes)


def test_clocks_are_the_meters_or_those_that_the_run_was_told(few):
    change(few[0], pricing={"setting": "700/2600"})  # as good as what the meter saw: 705
    change(few[1], pricing={"setting": "600/2600"})  # not what it saw
    change(few[2], pricing={"setting": "758/2600"}, energy_core_mhz=None)
    measured, _ = rows(few)
    assert list(measured.rows["core_mhz"]) == [700, 705, 758, 705] and set(measured.rows["memory_mhz"]) == {2600}
    assert any("705 MHz by the meter, not 600" in note for note in measured.notes)


def test_mostly_idle_programs_are_named(few):
    change(few[2], energy_window_s=40.0, energy_joules=300.0)
    (note,) = [note for note in rows(few)[0].notes if "less than half of the metered time" in note]
    assert str(few[2]) in note and str(few[0]) not in note


def test_bad_directories_are_one_sentence(few, tmp_path, capfd):
    (tmp_path / "nothing").mkdir()
    (tmp_path / "empty.eprof" / "logs").mkdir(parents=True)
    for paths, said in (
        ([tmp_path / "nothing"], "is a directory, but not a run directory"),
        ([tmp_path / "empty.eprof"], "No run directory can be a row of measurements. Left out: "),
        (few, "4 rows cannot tell"),
    ):
        code, out, err = run(capfd, *paths, "--replicas", 0, "--no-validate")
        assert code == 1 and said in err and err.count("\n") == 1 and not out

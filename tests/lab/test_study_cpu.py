"""The tables of docs/studies/cpu come back from the public data; scipy alone finds the same prices."""

import gzip
import io
import json
import shlex
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import SHARED

optimize = pytest.importorskip("scipy.optimize")

from eprof import cli, costs
from eprof.base.arrays import HOLDS
from eprof.base.errors import EprofError
from eprof.commands.validate import study
from eprof.lab.fitting import fit
from eprof.lab.fitting.cross_validation import of_form
from eprof.lab.fitting.quality import left_out
from eprof.lab.fitting.solve import form_for
from eprof.lab.measurements import MeasurementError, read

ROOT = Path(__file__).parents[2]
DATA = SHARED / "cpu" / "rrze-spechpc-icl-spr.csv.gz"
TABLES = {"icelake-sp": ("ICL", (2400, 3200)), "sapphirerapids": ("SPR", (2000, 4800))}
FP64 = [f"fp64_{width}_inst" for width in ("scalar", "128", "256", "512")]
needs_data = pytest.mark.skipif(not DATA.is_file(), reason="no shared measurements here")
by_table = pytest.mark.parametrize("name", TABLES)


@cache
def measured(name):
    cluster, clocks = TABLES[name]
    return read(DATA, "likwid", clocks, only={"cluster": cluster, "nodes": "1"})


@cache
def raw(name):
    """The same rows, chosen without eprof."""
    rows = pd.read_csv(DATA)
    usual = rows.groupby(["cluster", "suite", "benchmark"])[FP64].transform("median")
    wrapped = (
        ((rows[FP64] - usual) / HOLDS).round().ge(1).any(axis=1) & rows["suite"].eq("small") & rows["cluster"].eq("ICL")
    )
    return rows[rows["cluster"].eq(TABLES[name][0]) & rows["nodes"].eq(1) & rows["pkg_j"].notna() & ~wrapped]


def columns(rows):
    """Joules at 1 W a socket, and at 1 nJ for each of the counts, (n, 6): constant, cycle, instruction, narrow, wide, byte."""
    narrow, wide = rows[FP64[0]] + 2 * rows[FP64[1]], 4 * rows[FP64[2]] + 8 * rows[FP64[3]]
    counts = [rows["core_cycles"], rows["instructions"], narrow, wide, rows["dram_read_b"] + rows["dram_write_b"]]
    return np.column_stack([rows["sockets_seen"] * rows["time_s_mean"], *(count * 1e-9 for count in counts)])


def solved(rows):
    joules = rows["pkg_j"].to_numpy()
    return optimize.nnls(columns(rows) / joules[:, None], np.ones(len(rows)))[0]


@needs_data
@by_table
def test_scipy_finds_the_prices_of_the_fit(name):
    measurements = measured(name)
    assert len(raw(name)) == len(measurements)
    found = fit(measurements, form_for(measurements))
    constant, cycle, instruction, narrow, wide, byte = solved(raw(name))
    pj = found.prices_pj
    assert found.constants["w"] == pytest.approx(constant, rel=1e-5)
    told = pj["core_active_cycle"], pj["retired_instruction"], pj["fp64_flop"] + pj["fp64_narrow_flop"], pj["fp64_flop"]
    assert np.array([*told, pj["dram_byte"]]) / 1e3 == pytest.approx([cycle, instruction, narrow, wide, byte], rel=1e-4)


@needs_data
@by_table
def test_the_shipped_table_has_these_prices_at_these_clocks(name):
    table = costs.load(name)
    measurements = measured(name)
    found = fit(measurements, form_for(measurements))
    at = table.at("/".join(map(str, TABLES[name][1])))
    for term, pj in found.prices_pj.items():
        assert at.prices[term].pj == pytest.approx(pj, rel=0.01), term
    assert at.constant_power_w == pytest.approx(found.constants["w"], abs=0.06)
    assert table.in_sockets(2).at().constant_power_w == 2 * at.constant_power_w
    assert table.fit.data["rows"] == len(measurements) and table.fit.data["benchmarks"] == 9
    low, high = table.fit.data["interval_constant_w"]
    assert low < at.constant_power_w < high


@needs_data
@pytest.mark.parametrize(("name", "most", "above"), [("icelake-sp", 4.5, 10), ("sapphirerapids", 3.5, 10.5)])
def test_a_program_that_was_left_out_is_predicted_by_the_others(name, most, above):
    """What fits of the other eight programs by scipy alone predict of each, held against eprof's errors."""
    rows, measurements = raw(name), measured(name)
    predicted = np.empty(len(rows))
    for program in rows["benchmark"].unique():
        out = (rows["benchmark"] == program).to_numpy()
        predicted[out] = columns(rows[out]) @ solved(rows[~out])
    off = np.abs(predicted / rows["pkg_j"].to_numpy() - 1)
    error = 100 * off.mean()
    watts = left_out(of_form(form_for(measurements)), measurements, "benchmark")
    eprofs = 100 * np.abs(watts / measurements.power_w - 1)
    assert eprofs.mean() < most and eprofs.mean() < 1.02 * error, "a surcharge cannot be negative, which helps a little"

    checked = study.validate(measurements, study.Plan(protocols=["leave_one_benchmark_out"], processes=1))
    scores = checked.outcomes["leave_one_benchmark_out"].scores
    assert scores.mean_percent == pytest.approx(eprofs.mean(), rel=1e-3)
    constant = solved(rows)[0]
    by_hand = 100 * np.abs(watts - measurements.power_w).mean() / (measurements.power_w - constant).mean()
    assert scores.above_constant_percent == pytest.approx(by_hand, rel=1e-3) and by_hand < above


def test_the_tables_record_the_command_lines_of_the_script():
    script = (ROOT / "docs" / "studies" / "cpu" / "tables.sh").read_text().replace("\\\n", " ")
    source = script.partition("\nsource='")[2].partition("'\n")[0]
    lines = [line for line in script.splitlines() if line.startswith("eprof fit")]
    assert len(lines) == len(TABLES)
    for line, name in zip(lines, TABLES, strict=True):
        words = shlex.split(line.replace('"$source"', shlex.quote(source)).replace("$data", DATA.name))
        assert f"#   {shlex.join(words)}\n" in (ROOT / "costs" / f"{name}.toml").read_text()


@needs_data
def test_counts_of_counters_that_wrapped_leave_their_rows_out():
    everywhere = read(DATA, "likwid", only={"cluster": "ICL"})
    assert any("87 rows were left out: a counter of some thread wrapped" in note for note in everywhere.notes)
    assert any("1 row was left out: a counter of some thread wrapped" in note for note in measured("icelake-sp").notes)
    assert not any("wrapped" in note for note in measured("sapphirerapids").notes)


# ---- a made table of the same form

HEAD = (
    "cluster,suite,benchmark,nodes,ranks,sockets_seen,time_s_mean,core_cycles,instructions,"
    f"{','.join(FP64)},dram_read_b,dram_write_b,pkg_j\n"
)
PRICES = np.array([50.0, 2.0, 0.5, 0.4, 0.1, 0.3])  # W a socket, nJ


def made(tmp_path, name="made.csv", more=""):
    """Exact joules of three programs on one and two sockets, by `PRICES`."""
    random = np.random.default_rng(1)
    lines = []
    for program in ("left", "middle", "right"):
        counts = 10 ** random.uniform(11, 13, 8)
        for ranks in range(1, 9):
            sockets, seconds = 1 + (ranks > 4), 500 / ranks
            work = counts * random.uniform(0.8, 1.25, 8)
            row = pd.DataFrame([work], columns=["core_cycles", "instructions", *FP64, "dram_read_b", "dram_write_b"])
            joules = (columns(row.assign(sockets_seen=sockets, time_s_mean=seconds)) @ PRICES)[0]
            cells = ["X", "tiny", program, 1, ranks, sockets, seconds, *work, joules]
            lines.append(",".join(str(cell) for cell in cells))
    path = tmp_path / name
    text = HEAD + "\n".join(lines) + "\n" + more
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["made.csv", "made.csv.gz"])
def test_constant_power_is_that_of_one_socket(tmp_path, name):
    measurements = read(made(tmp_path, name))
    assert measurements.mapping == "likwid" and measurements.per_socket
    found = fit(measurements, form_for(measurements))
    expected = {
        "core_active_cycle": 2e3,
        "retired_instruction": 5e2,
        "fp64_flop": 1e2,
        "fp64_narrow_flop": 3e2,
        "dram_byte": 3e2,
    }
    assert dict(found.prices_pj) == pytest.approx(expected, rel=1e-3)
    assert found.constants["w"] == pytest.approx(50, rel=1e-4)
    assert not any("again" in note or "wild" in note for note in measurements.notes), (
        "other numbers of ranks are no repeats"
    )


@pytest.mark.parametrize(("above", "is_left_out"), [(HOLDS, True), (3 * HOLDS + 1e12, True), (0.5 * HOLDS, False)])
def test_a_count_above_the_usual_one_by_a_wrap_is_left_out(tmp_path, above, is_left_out):
    table = pd.read_csv(made(tmp_path))
    table.loc[5, "fp64_512_inst"] += above
    path = tmp_path / "wrapped.csv"
    table.to_csv(path, index=False)
    measurements = read(path, "likwid")
    assert (7 not in set(measurements.rows["line"])) == is_left_out
    assert any("wrapped" in note and "line 7" in note for note in measurements.notes) == is_left_out


def test_rows_are_chosen_by_their_cells_and_keep_their_lines(tmp_path):
    path = made(tmp_path)
    few = read(path, "likwid", only={"benchmark": "middle", "ranks": "3.0"})
    assert list(few.rows["line"]) == [12] and list(few.rows["benchmark"]) == ["middle"]
    for cells, said in (
        ({"benchmark": "none"}, "no row has that there, but left, middle"),
        ({"bench": "x"}, "no such column"),
    ):
        with pytest.raises(MeasurementError, match=said):
            read(path, "likwid", only=cells)


def test_rows_of_two_machines_ask_which_and_a_named_mapping_says_what_it_wants(tmp_path):
    text = made(tmp_path).read_text()
    both = tmp_path / "both.csv"
    both.write_text(text + text.partition("\n")[2].replace("X,tiny", "Y,tiny"))
    with pytest.raises(EprofError, match="several CPUs by column `cluster` .*choose with --only 'cluster=X'"):
        read(both, "likwid")
    with pytest.raises(
        MeasurementError, match="mapping eprof-cpu wants the columns benchmark, cpu, time_s, power_w; there is no cpu"
    ):
        read(both, "eprof-cpu")
    lacking = pd.read_csv(io.StringIO(text)).drop(columns="pkg_j")
    lacking.to_csv(both, index=False)
    with pytest.raises(MeasurementError, match="Nearest is likwid, which needs pkg_j besides"):
        read(both)


def test_errors_above_constant_power_stand_in_document_terminal_and_page(tmp_path, capsys):
    """Joules 2 % off, 50 W of constant power a socket: what is above it is off by more."""
    table = pd.read_csv(made(tmp_path))
    table["pkg_j"] *= np.where(np.arange(len(table)) % 2, 1.02, 0.98)
    path, document = tmp_path / "off.csv", tmp_path / "off.json"
    table.to_csv(path, index=False)
    outputs = [document, tmp_path / "off.html", tmp_path / "off.txt"]
    words = ["validate", path, "--mapping", "likwid", "--protocol", "fit", *(f"-o{output}" for output in outputs)]
    with pytest.raises(SystemExit) as stopped:
        cli.main([*map(str, words), "-q"])
    assert stopped.value.code == 0, capsys.readouterr().err
    scores = json.loads(document.read_text())["protocols"]["fit"]
    measurements = read(path, "likwid")
    found = fit(measurements, form_for(measurements))
    off = np.abs(found.predict(measurements) - measurements.power_w)
    above = 100 * off.mean() / (measurements.power_w - found.constants["w"]).mean()
    assert scores["above_constant_percent"] == pytest.approx(above, rel=1e-6) and above > scores["mean_percent"]
    for output in outputs[1:]:
        text = output.read_text()
        assert "above constant %" in text.lower() and f"{above:.1f}" in text


def test_a_cell_to_choose_by_needs_its_column(tmp_path, capsys):
    for text in ("cluster", "=X", "cluster="):
        with pytest.raises(SystemExit) as stopped:
            cli.main(["fit", str(made(tmp_path)), "--only", text])
        assert stopped.value.code != 0
        assert f"--only {text}: write COLUMN=CELL." in capsys.readouterr().err


def test_a_fit_at_known_clocks_is_a_table_of_one_setting_by_socket(tmp_path):
    path = tmp_path / "own.toml"
    words = [
        "fit",
        made(tmp_path),
        "--only",
        "cluster=X",
        "--reference",
        "2400/3200",
        "-o",
        path,
        "-q",
        "--no-validate",
    ]
    with pytest.raises(SystemExit) as stopped:
        cli.main([*map(str, words), "--replicas", "3"])
    assert stopped.value.code == 0
    table = costs.load(str(path))
    assert (table.default.core_mhz, table.default.memory_mhz) == (2400, 3200)
    assert table.fit.data["reference"] == [2400, 3200] and table.fit.data["data"] == ["made.csv (cluster=X)"]
    assert table.in_sockets(2).at().constant_power_w == pytest.approx(100, rel=1e-3)
    assert table.in_sockets(2).replica_intervals().constant_w == pytest.approx([100, 100], rel=1e-2)
    stated = table.at()
    assert stated.charges["l3_read"].pj == 0 and not stated.charges["l3_read"].pays
    assert "fp32" in stated.unpriced and stated.charges["fp64_fma"].pj == pytest.approx(200, rel=1e-3)

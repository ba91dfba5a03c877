"""Sampled logs as rows of measurements, and the table that a fit makes of them, against planted prices."""

from pathlib import Path

import pytest

from eprof import costs
from eprof.base.errors import EprofError
from eprof.cli import main
from eprof.lab import programs
from eprof.lab.fitting.table_power import power_by_table
from eprof.lab.power import logs

GPU = "A100-SXM4-80GB"
IDLE_W = {705: 60.0, 1410: 90.0}
SM_PJ, FP32_PJ, DRAM_PJ = 600.0, 12.0, 70.0  # an active cycle, an instruction, a byte
MIX = {"a": (0.9, 0.1, 0.2), "b": (0.5, 0.3, 0.7), "c": (1.0, 0.6, 0.1), "d": (0.3, 0.05, 0.4), "e": (0.7, 0.4, 0.5)}


def watts(mhz, sm, fp32, dram):
    core = mhz * 1e6 * 108 * (sm * SM_PJ + fp32 * 64 * FP32_PJ)
    return IDLE_W[mhz] + 1e-12 * (core + dram * 2039.04e9 * DRAM_PJ)


@pytest.fixture
def paths(tmp_path):
    """Five programs at two clocks, each 25 s behind 5 s of nothing; a sample is 0.5 s."""
    made = []
    for program, (sm, fp32, dram) in MIX.items():
        for mhz in IDLE_W:
            lines = ["timestamp,gpu,power_usage,gr_engine_active,sm_active,fp32_active,dram_active,sm_clock"]
            for at in range(60):
                shares = (1.0, sm, fp32, dram) if at >= 10 else (0.0,) * 4
                cells = [1_700_000_000 + at / 2, 0, f"{watts(mhz, *shares[1:]):.3f}", *shares, mhz]
                lines.append(",".join(map(str, cells)))
            path = tmp_path / f"{program}-{mhz}-1.csv"
            path.write_text("\n".join(lines) + "\n")
            made.append(str(path))
    return made


def test_rows_are_programs_clocks_and_idle_moments(paths):
    made = programs.measurements(paths, costs.load(GPU))
    assert set(made.rows["benchmark"]) == {*MIX, "idle"} and set(made.rows["core_mhz"]) == set(IDLE_W)
    assert set(made.terms) == {"sm_active_cycle", "fp32_instruction", "dram_byte"}
    for row, rates in zip(made.rows.itertuples(), made.rates.itertuples(), strict=True):
        sm, fp32, dram = MIX.get(row.benchmark, (0, 0, 0))
        if row.time_s > 6:  # a first row holds what was sampled before
            assert row.power_w == pytest.approx(watts(row.core_mhz, sm, fp32, dram), rel=0.02)
            assert rates.sm_active_cycle == pytest.approx(sm * 108 * row.core_mhz * 1e-3, rel=1e-6)
            assert rates.dram_byte == pytest.approx(dram * 2039.04, rel=1e-3)


def test_a_fit_finds_planted_prices_and_its_table_prices_the_logs(paths, tmp_path, capsys):
    table = tmp_path / "node.toml"
    options = ["--device", GPU, "-o", str(table), "--replicas", "0", "--no-validate", "--prior", "none", "--ridge", "0"]
    options += ["--voltages", "one"]
    with pytest.raises(SystemExit) as ended:
        main(["fit", *paths, *options, "-q"])
    assert not ended.value.code, capsys.readouterr().err
    made = costs.load(str(table)).at("1410/1593")
    prices = {name: price.pj for name, price in made.prices.items()}
    assert prices["sm_active_cycle"] == pytest.approx(SM_PJ, rel=0.1)
    assert prices["dram_byte"] == pytest.approx(DRAM_PJ, rel=0.1)
    assert made.constant_power_w == pytest.approx(IDLE_W[1410], rel=0.05) and made.sm_count == 108
    again = programs.measurements(paths, costs.load(str(table)), levels=True)
    assert power_by_table(costs.load(str(table)), again).power_w == pytest.approx(again.power_w, rel=0.06)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "these logs do not name it; name a table or the GPU with --costs or --device"),
        (("--device", "GH200 480GB"), "has no clocks, so its peaks are known at none"),
    ],
)
def test_what_lacks_is_one_sentence(paths, capsys, options, said):
    with pytest.raises(SystemExit) as ended:
        main(["validate", *paths[:2], *options])
    assert ended.value.code and said in capsys.readouterr().err


def test_sampled_logs_are_not_mixed_with_others(paths, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("time_s,gpu_w\n0,1\n1,2\n")
    with pytest.raises(EprofError, match="is no log of sampled activity, as others are"):
        logs.are_sampled([*paths[:1], str(other)])
    assert not logs.are_sampled([str(other)])


def test_a_count_that_was_not_sampled_is_no_zero(paths):
    """Blank for a while: as in the rest of its row. Not there at all: its rows are left out, and that is told."""
    blank, lacking = (next(path for path in paths if f"{program}-1410" in path) for program in ("b", "c"))
    lines = Path(blank).read_text().splitlines()
    for at in range(30, 40):
        cells = lines[at].split(",")
        lines[at] = ",".join([*cells[:6], "", *cells[7:]])
    Path(blank).write_text("\n".join(lines) + "\n")
    rows = [line.split(",") for line in Path(lacking).read_text().splitlines()]
    Path(lacking).write_text("".join(",".join([*row[:6], *row[7:]]) + "\n" for row in rows))
    made = programs.measurements(paths, costs.load(GPU))
    at_1410 = made.rows["benchmark"].eq("b") & made.rows["core_mhz"].eq(1410) & made.rows["time_s"].gt(6)
    assert made.rates[at_1410.to_numpy()]["dram_byte"].to_numpy() == pytest.approx(MIX["b"][2] * 2039.04, rel=1e-3)
    assert not (made.rows["benchmark"].eq("c") & made.rows["core_mhz"].eq(1410)).any()
    assert any("rows lack a count that others have, and are left out" in note for note in made.notes)


def day(tmp_path, with_dates=True):
    """All programs at both clocks in one log, 30 s each, and marks of what ran when."""
    start_s = 1_700_000_000 if with_dates else 0
    lines = ["timestamp,gpu,power_usage,gr_engine_active,sm_active,fp32_active,dram_active,sm_clock"]
    marked, at_s = ["begin_s,end_s,name"], start_s
    for program, shares in MIX.items():
        for mhz in IDLE_W:
            for at in range(60):
                busy = at >= 10
                cells = (1.0, *shares) if busy else (0.0,) * 4
                lines.append(f"{at_s + at / 2},0,{watts(mhz, *cells[1:]):.3f},{','.join(map(str, cells))},{mhz}")
            marked.append(f"{at_s + 5},{at_s + 30},{program}")
            at_s += 30
    (tmp_path / "day.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "jobs.csv").write_text("\n".join(marked) + "\n")
    return str(tmp_path / "day.csv"), str(tmp_path / "jobs.csv")


def test_marks_tell_the_programs_of_a_day_apart(tmp_path):
    log, jobs = day(tmp_path)
    made = programs.measurements([log], costs.load(GPU), marked=[jobs])
    assert set(made.rows["benchmark"]) == {*MIX, "idle"}
    for row, rates in zip(made.rows.itertuples(), made.rates.itertuples(), strict=True):
        sm, _, dram = MIX.get(row.benchmark, (0, 0, 0))
        assert rates.sm_active_cycle == pytest.approx(sm * 108 * row.core_mhz * 1e-3, rel=1e-6)
        assert rates.dram_byte == pytest.approx(dram * 2039.04, rel=1e-3)


def test_what_ran_outside_of_all_marks_is_called_as_the_log(tmp_path):
    log, jobs = day(tmp_path)
    (tmp_path / "jobs.csv").write_text("\n".join((tmp_path / "jobs.csv").read_text().split("\n")[:3]) + "\n")
    made = programs.measurements([log], costs.load(GPU), marked=[jobs])
    assert set(made.rows["benchmark"]) == {"a", "day", "idle"}


@pytest.mark.parametrize(
    ("marks", "sentence"),
    [
        ("begin_s,end_s,name\n1,5,a\n", "the log or the marks have no dates"),
        ("begin_s,end_s,name\n1900000000,1900000005,a\n", "no mark lies where a log has samples"),
        ("begin_s,end_s,name\n1700000000,1700000000,a\n", "no mark lies where a log has samples"),
    ],
)
def test_marks_of_another_clock_are_refused(tmp_path, marks, sentence):
    log, jobs = day(tmp_path)
    (tmp_path / "jobs.csv").write_text(marks)
    with pytest.raises(EprofError, match=sentence):
        programs.measurements([log], costs.load(GPU), marked=[jobs])


def test_marks_go_with_sampled_logs_alone(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("kernel,core_mhz\na,1\n")
    for command in ("fit", "validate"):
        with pytest.raises(SystemExit):
            main([command, str(tmp_path / "rows.csv"), "--marks", "jobs.csv", "--device", GPU])
        assert "--marks tells programs of sampled logs apart" in capsys.readouterr().err

"""Sampled activity of GPUs (DCGM): joules by cause, against arithmetic of its own, real logs, and logs that are wrong."""

import gzip
import json
import math
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof import costs
from eprof.base.errors import LogError
from eprof.cli import main
from eprof.commands.timeline.joules import causes
from eprof.lab.power import activity, logs
from eprof.lab.power.series import Series

DATA = Path(__file__).parents[4] / "shared" / "data" / "sampled" / "dcgm_a100_spec"
STENCIL = DATA / "GA100-stencil-1410-0.txt.gz"
HEADER = "# Entity  GRACT  SMACT  TENSO  DRAMA  FP64A  FP32A  POWER  TOTEC  SMCLK\n      Id  W  mJ\n"
COSTS = "a100-sxm4-80gb"


@pytest.mark.skipif(not DATA.is_dir(), reason="needs real logs, which are not part of this project")
@pytest.mark.parametrize("name", ["derived-run-means", "GA100-dvfs-stream-dcgm"])
def test_means_of_runs_are_no_power_over_time(eprof_command, name):
    path = DATA / f"{name}.csv.gz"
    said = eprof_command("timeline", path).stderr
    assert "no power over time was found" in said and "where a row is a whole run, `eprof tune` reads it" in said
    assert "power over time" not in eprof_command("report", path).stderr


def dmon(rows, gpus=(0,)):
    """What `dcgmi dmon` prints: (busy, sm, dram, fp32, watts) a row, 100 ms each, with a header every third row."""
    text, joules = "", dict.fromkeys(gpus, 5e6)
    for number, (busy, sm, dram, fp32, watts) in enumerate(rows):
        text += HEADER if number % 3 == 0 else ""
        for gpu in gpus:
            text += f"   GPU {gpu}  {busy}  {sm}  0.000  {dram}  N/A  {fp32}  {watts}  {joules[gpu]:.0f}  1410\n"
            joules[gpu] += 100 * watts * (1 + gpu)
    return text


IDLE = [(0.0, 0.0, 0.0, 0.0, 100)] * 20
WORK = [(1.0, 0.5, 0.5, 0.25, 300)] * 20


def read(text, interval_s=None):
    """The power and the one GPU's activity of a log."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "node.dcgm"
        file.write_text(text)
        powers, beside = logs.sampled(str(file), [], interval_s)
    (gpu,) = activity.activities(beside)
    return powers[0], gpu


def made(tmp_path, text, *arguments):
    log, out = tmp_path / "node.dcgm", tmp_path / "t.json"
    log.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["timeline", str(log), *arguments, "-f", "-o", str(out)])
    assert not ended.value.code
    return json.loads(out.read_text())


def test_joules_split_by_prices_above_the_idle_power_of_the_log(tmp_path):
    document = made(tmp_path, dmon(IDLE + WORK + IDLE), "--costs", COSTS)
    (split,) = document["splits"]
    joules = {cause["word"]: cause["energy_j"] for cause in split["causes"]}
    assert split["idle_w"] == {"1410/1593": pytest.approx(100, rel=1e-2)}
    assert sum(joules.values()) == pytest.approx(split["metered_j"]) == pytest.approx(document["total_j"])
    # By hand: bytes at 2039 GB/s, instructions at 108 x 64 x 1.41 GHz, times what they pay.
    pays = costs.load(COSTS).at("1410/1593").charges
    dram, fp32 = 0.5 * 2039.04e9 * pays["dram"].pj, 0.25 * 108 * 64 * 1.41e9 * pays["fp32"].pj
    assert joules["dram"] / joules["fp32"] == pytest.approx(dram / fp32, rel=1e-4)
    assert all(cause["low_j"] <= cause["energy_j"] <= cause["high_j"] for cause in split["causes"])
    starts_s, watts = zip(*split["watts"], strict=True)
    assert starts_s[0] == 0 and starts_s[-1] < document["duration_s"]
    step_s = starts_s[1] - starts_s[0]
    assert sum(map(sum, watts)) * step_s == pytest.approx(split["metered_j"], rel=1e-6)


def test_work_goes_with_the_sampled_clock_below_those_of_the_table(tmp_path):
    """v100's lowest clock is 802 MHz: at 401 MHz it does half as much, and DRAM as much."""
    ratios = []
    for mhz in (401, 802):
        (split,) = made(tmp_path, dmon(WORK).replace("  1410\n", f"  {mhz}\n"), "--costs", "v100")["splits"]
        joules = {cause["word"]: cause["energy_j"] for cause in split["causes"]}
        ratios.append(joules["fp32"] / joules["dram"])
    assert ratios[1] == pytest.approx(2 * ratios[0])


def test_idle_power_is_seen_between_short_bursts_too_and_then_estimated(tmp_path):
    bursts = ([(0.04, 0.04, 0.0, 0.0, 100)] + IDLE[:2]) * 20
    (split,) = made(tmp_path, dmon(bursts + WORK), "--costs", COSTS)["splits"]
    (constant,) = (cause for cause in split["causes"] if cause["word"] == "constant")
    assert split["idle_w"]["1410/1593"] == pytest.approx(100, rel=0.02) and constant["low_j"] < constant["energy_j"]


def test_a_sampled_gpu_tells_how_long_it_was_busy_and_what_it_draws_idle(tmp_path, capsys):
    """40 rows of 100 ms idle at 100 W, 20 at work at 300 W, half of which something ran."""
    half = [(0.5, *rest) for _, *rest in WORK]
    (gpu,) = made(tmp_path, dmon(IDLE + half + IDLE))["components"]
    assert gpu["busy_s"] == pytest.approx(1.0, rel=0.01) and gpu["idle_w"] == pytest.approx(100, rel=0.01)
    said = " ".join(capsys.readouterr().out.split())
    assert "gpu 0 was busy for 1.00 s of 5.90 s. Idle power, 100 W, would take 60 % in that time." in said
    assert "--marks FILE" in said


@pytest.mark.parametrize(("stands", "new_every_s"), [(9, 0.09), (1, 0.01), (60, 0.01)])
def test_a_meter_that_is_read_more_often_than_it_measures_has_news_more_seldom(stands, new_every_s):
    """100 readings, 10 ms apart, of a value that changes with every so many; two changes tell nothing."""
    watts = 20.0 + np.arange(100) // stands
    series = Series.of_power("gpu", "log", 0.01 * np.arange(100), watts, absolute=False)
    assert series.new_every_s == pytest.approx(new_every_s)


def test_marks_have_their_causes_and_add_up(tmp_path):
    (tmp_path / "m.csv").write_text("begin_s,end_s,name\n2,3,a\n3,5,b\n")
    document = made(tmp_path, dmon(IDLE + WORK + IDLE), "--costs", COSTS, "--marks", str(tmp_path / "m.csv"))
    (split,) = document["splits"]
    for function in document["functions"]:
        own = [cause["energy_j"] for cause in split["causes"] if cause["function"] == function["name"]]
        assert sum(own) == pytest.approx(function["energy_j"]["gpu 0"])
    parts = [cause["energy_j"] for cause in split["causes"] if cause["function"] is not None]
    assert sum(parts) == pytest.approx(split["metered_j"])


def test_samples_that_are_far_apart_say_so():
    _, gpu = read(dmon(WORK).replace("TOTEC", "OTHER"), 3600.0)
    assert "samples of gpu 0 are 3.6e+03 s apart; what ran between is taken to be as they are" in gpu.notes[0]


def test_several_gpus_are_told_apart(tmp_path):
    document = made(tmp_path, dmon(IDLE + WORK, gpus=(0, 1)), "--costs", COSTS)
    first, second = document["splits"]
    assert [first["component"], second["component"]] == ["gpu 0", "gpu 1"]
    assert second["metered_j"] == pytest.approx(2 * first["metered_j"], rel=1e-3)


def test_a_field_that_took_turns_is_not_known_where_it_was_not_read():
    rows = IDLE[:5] + [(1.0, 0.6, 0.4, 0.3, 300), (1.0, 0.0, 0.4, 0.0, 300)] * 20
    _, gpu = read(dmon(rows))
    busy = gpu.shares["busy"] > 0
    assert gpu.shares["fp32_active"][busy] == pytest.approx(0.3) and gpu.shares["dram_active"][busy] == pytest.approx(
        0.4
    )
    assert gpu.filled["fp32_active"].sum() == 20 and not gpu.filled["dram_active"].any()
    assert "took turns" in (said := " ".join(gpu.notes)) and " % of the busy samples of " in said
    assert said.endswith(" is no measurement, and is filled in from the samples beside it.")


def test_a_counter_that_was_set_back_does_not_change_the_pace():
    text = dmon(IDLE + WORK)
    power, _ = read(text)
    twice, _ = read(text + text)
    assert power.period_s == pytest.approx(0.1, rel=1e-2)
    assert np.median(np.diff(twice.edges)) == pytest.approx(power.period_s, rel=1e-2)
    assert twice.unknown_s == pytest.approx(0.1, rel=0.1)


def test_percent_is_told_from_shares():
    lines = ["timestamp,gpu,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_PROF_SM_ACTIVE,DCGM_FI_PROF_DRAM_ACTIVE"]
    lines += [f"2026-01-01 00:00:{second:02},0,200,50,25" for second in range(30)]
    power, gpu = read("\n".join(lines))
    assert power.watts == pytest.approx(200) and gpu.shares["dram_active"] == pytest.approx(0.25)
    assert "per cent" in gpu.notes[0] and "no clock" in gpu.notes[1]


@pytest.mark.parametrize("unknown", ["9223372036854775794", "140737488355330", "140737488355330.000"])
def test_what_dcgm_says_is_not_supported_is_not_known_and_no_meter(unknown, monkeypatch):
    """As watts are where a board has no counter of joules; of two boards, one without either has unknown power."""
    text = dmon(WORK, (0, 1))
    joules = re.compile(r"(GPU . .*  )\d+(  1410)").sub(rf"\g<1>{unknown}\2", text)
    nothing = re.compile(r"(GPU 1 .*  )300  \d+(  1410)").sub(rf"\g<1>{unknown}  {unknown}\2", text)
    for is_long in (False, True):
        if is_long:
            monkeypatch.setattr("eprof.lab.power.logs._LONG", 100)
        for log, watts in ((joules, {"gpu 0": 300, "gpu 1": 300}), (nothing, {"gpu 0": 300, "gpu 1": math.nan})):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "node.dcgm"
                file.write_text(log)
                powers, _ = logs.sampled(str(file), [], 0.1)
            assert [power.component for power in powers] == list(watts)
            assert all(power.watts == pytest.approx(watts[power.component], nan_ok=True) for power in powers)


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        (
            dmon(IDLE).replace("TOTEC", "OTHER"),
            ["--costs", COSTS],
            "nothing in the log says how often it read; say so with `eprof timeline ",
        ),
        ("time_s,gpu_w\n0,1\n1,2\n2,3\n", ["--costs", COSTS], "--costs prices sampled activity"),
        (dmon(IDLE), ["--costs", "nonsense"], "There is no cost table `nonsense`"),
        (dmon(IDLE).replace("GPU 0", "GPU-I 0"), [], "no power over time"),
    ],
)
def test_what_is_wrong_is_one_sentence(tmp_path, capsys, text, arguments, said):
    (tmp_path / "x.log").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["timeline", str(tmp_path / "x.log"), *arguments])
    assert ended.value.code and said in capsys.readouterr().err


def test_without_prices_it_says_what_was_sampled(tmp_path):
    assert "--costs, such as" in made(tmp_path, dmon(IDLE + WORK))["warnings"][-1]


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(90, 400)), min_size=4, max_size=30),
    st.booleans(),
)
def test_causes_are_never_negative_and_add_up_to_the_meter(samples, has_idle):
    rows = [(1.0, round(sm, 3), round(dram, 3), round(fp32, 3), round(watts)) for sm, dram, fp32, watts in samples]
    power, gpu = read(dmon((IDLE if has_idle else []) + rows), 0.1)
    begin, end = power.edges[:-1], power.edges[1:]
    found = causes(gpu, costs.load(COSTS), power, begin, end, np.arange(len(begin)), len(begin))
    assert (found.joules >= 0).all() and (found.low <= found.joules + 1e-12).all()
    assert (found.joules <= found.high + 1e-12).all()
    assert found.joules.sum(axis=1) == pytest.approx(power.energy_j(begin, end))


@pytest.mark.skipif(not STENCIL.exists(), reason="needs ../shared/data/sampled")
def test_a_real_log_agrees_with_arithmetic_by_hand():
    """stencil on an A100 at 1410 MHz: read, filled and priced with numpy alone."""
    text = gzip.decompress(STENCIL.read_bytes()).decode()
    rows = [line.split()[2:] for line in text.splitlines() if re.match(r"\s*GPU 0 ", line)]
    busy, sm, _, _, dram, _, fp32, *_, clock = np.array(rows, dtype=float).T
    watts, joules = np.array(rows, dtype=float).T[14], np.array(rows, dtype=float).T[15] * 1e-3
    step_s = (joules[-1] - joules[0]) / watts[:-1].mean() / (len(rows) - 1)
    assert step_s == pytest.approx(20.144e-3, rel=5e-3)
    lost = (busy > 0.02) & (sm == 0)
    assert lost.sum() / (busy > 0.02).sum() == pytest.approx(0.35, abs=0.05)
    places = np.arange(len(rows))
    fp32 = np.where(lost, np.interp(places, places[~lost], fp32[~lost]), fp32)
    powers, beside = logs.sampled(str(STENCIL), [])
    (gpu,) = activity.activities(beside)
    whole = powers[0].edges[:1], powers[0].edges[-1:]
    found = causes(gpu, costs.load(COSTS), powers[0], *whole, np.zeros(1, int), 1)
    table = costs.load(COSTS)
    by_hand = {"dram": 0.0, "fp32": 0.0}
    for mhz in np.unique(clock[:-1]):
        pays = table.at(table.nearest(mhz, None)).charges
        at = clock == mhz
        by_hand["dram"] += dram[at].sum() * 2039.04e9 * pays["dram"].pj
        by_hand["fp32"] += fp32[at].sum() * 6912 * mhz * 1e6 * pays["fp32"].pj
    share = dict(zip(found.words, found.joules[0], strict=True))
    assert share["dram"] / share["fp32"] == pytest.approx(by_hand["dram"] / by_hand["fp32"], rel=1e-3)
    # The board's own idle power: 78.8 W at 210 MHz and 108.7 W at 1410 (reference, section 6).
    assert found.idle_w["210/1593"] == pytest.approx(78.8, rel=0.01)
    assert found.idle_w["1410/1593"] == pytest.approx(108.7, rel=0.03)
    assert found.joules.sum() == pytest.approx(joules[-1] - joules[0], rel=1e-6)


LABELS = 'UUID="GPU-{0}",device="nvidia{0}",gpu="{0}",Hostname="{1}",modelName="NVIDIA A100-SXM4-80GB"'
SCRAPED = {
    "DCGM_FI_DEV_POWER_USAGE": 4,
    "DCGM_FI_PROF_SM_ACTIVE": 1,
    "DCGM_FI_PROF_DRAM_ACTIVE": 2,
    "DCGM_FI_DEV_SM_CLOCK": 5,
}


def scrapes(form, rows, hosts=("a",)):
    """The rows of `dmon` as metrics of Prometheus, 15 s each, of two GPUs of each host, and an instance of MIG."""
    moments, series = [1_700_000_000 + 15 * at for at in range(len(rows))], {}
    for host in hosts:
        for gpu in (0, 1):
            for name, column in SCRAPED.items():
                values = [1410 if column == 5 else row[column] * (1 + gpu * (column == 4)) for row in rows]
                series[f"{name}{{{LABELS.format(gpu, host)}}}"] = values
    part = f'DCGM_FI_PROF_SM_ACTIVE{{{LABELS.format(0, "a")},GPU_I_PROFILE="1g.10gb",GPU_I_ID="3"}}'
    series[part] = [0.9] * len(rows)
    if form == "exporter":
        text = "# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).\n# TYPE DCGM_FI_DEV_SM_CLOCK gauge\n"
        return "".join(
            f"{moment}\n{text}" + "".join(f"{of} {values[at]}\n" for of, values in series.items())
            for at, moment in enumerate(moments)
        )
    if form == "federate":
        return "".join(
            f"{of} {values[at]} {moment}000\n" for at, moment in enumerate(moments) for of, values in series.items()
        )
    if form == "promtool":
        return "".join(
            f"{of} =>\n" + "".join(f"{value} @[{moment}]\n" for moment, value in zip(moments, values, strict=True))
            for of, values in series.items()
        )
    if form == "wide":
        head = ",".join(['"Time"', *('"' + of.replace('"', '""') + '"' for of in series)])
        return (
            "\n".join(
                [
                    head,
                    *(
                        f"{moment}000," + ",".join(str(values[at]) for values in series.values())
                        for at, moment in enumerate(moments)
                    ),
                ]
            )
            + "\n"
        )
    lines = ["name,timestamp,value,gpu,Hostname,GPU_I_ID"]
    for of, values in series.items():
        labels = dict(re.findall(r'(\w+)="([^"]*)"', of))
        lines += [
            f"{of.partition('{')[0]},{moment},{value},{labels['gpu']},{labels['Hostname']},{labels.get('GPU_I_ID', '')}"
            for moment, value in zip(moments, values, strict=True)
        ]
    return "\n".join(lines) + "\n"  # fmt: skip


@pytest.mark.parametrize("form", ["exporter", "federate", "promtool", "wide", "long"])
def test_metrics_of_prometheus_are_samples_with_times(form, tmp_path):
    rows = [(1.0, 0.5, 0.5, 0.25, 300), (0.0, 0.0, 0.0, 0.0, 100)] * 5
    (tmp_path / "log").write_text(scrapes(form, rows, hosts=("a", "b")))
    powers, beside = logs.sampled(str(tmp_path / "log"), [])
    expected = 15 * sum(row[4] for row in rows)
    found = {each.component: float(each.energy_j(each.edges[:1], each.edges[-1:])[0]) for each in powers}
    assert found == {f"gpu {host} {gpu}": expected * (1 + gpu) for host in "ab" for gpu in (0, 1)}
    for gpu in activity.activities(beside):
        assert gpu.shares["sm_active"] == pytest.approx([row[1] for row in rows]) and (gpu.clock_mhz == 1410).all()


def test_scrapes_without_times_ask_for_their_interval_and_name_a_line(tmp_path):
    (tmp_path / "log").write_text(re.sub(r"(?m)^\d+\n", "", scrapes("exporter", WORK[:4])))
    with pytest.raises(LogError, match=r"say so with `eprof timeline \S+ --interval 1s` \(DCGM's exporter: 30 s"):
        logs.sampled(str(tmp_path / "log"), [])
    powers, _ = logs.sampled(str(tmp_path / "log"), [], 30.0)
    assert [each.component for each in powers] == ["gpu 0", "gpu 1"] and powers[0].edges[-1] == 120
    (tmp_path / "log").write_text(scrapes("long", WORK[:4]).replace("1700000015", "Tuesday"))
    with pytest.raises(LogError, match="log:3: `Tuesday` is no time"):
        logs.sampled(str(tmp_path / "log"), [])

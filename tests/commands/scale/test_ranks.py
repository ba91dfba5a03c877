"""GPU clusters: against the closed form, against what can be added up by hand, and against what no meter saw."""

import csv
import json
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from eprof.base.errors import EprofError
from eprof.base.toml import Document
from eprof.base.vocabulary import Mark, mark_names
from eprof.cli import main
from eprof.clusters import cluster
from eprof.clusters.cluster import Beside, Part, Storage, medians
from eprof.commands.scale import document as scale_document
from eprof.commands.scale import gpu_ranks, measured_runs, model, words
from eprof.lab.objective import parse
from eprof.logs import runs as directories
from eprof.profile import schema

LOGS = Path(__file__).parents[3] / "samples" / "logs"
RANKS = LOGS / "ranks"
FOLDERS = [RANKS / name for name in ("n1", "n2", "n4")]
DEMO = ("--costs", "gtx680", "--cluster", "gpu-demo")
# 500 s of kernels on three GPUs a node, of 60 W and 100 W more while they work, hosts of 180 W, copies of 1.2 s at 40 W.
MACHINE = """schema = 1
name = "m"
source = "a test"
basis = "measured"
[node]
gpus = 3
host_w = 180
network_w = 0
gpu_idle_w = 60
[[setting]]
core_mhz = 1
on_chip_w = 300
off_chip_w = 40
[time]
on_chip_cycles = 1e6
off_chip_s = 1
[message]
start_s = 0
byte_s = 1
"""
PROGRAM = """schema = 1
name = "clustering"
source = "a test"
alpha = 1
[count]
on_chip = "500 / 3 * n"
off_chip = "1.2 * n"
messages = "p"
network_bytes = "6 * p + 0.15 * p^2"
"""
OBJECTIVES = ("energy", "e2d", "edp", "ed2p", "ed3p")
ASKED = scale_document.Asked([parse(name) for name in OBJECTIVES])


@pytest.fixture
def eprof(capsys, monkeypatch):
    """Runs a command in this process; its exit code and what it printed on 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(list(map(str, arguments)))
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


def document_of(eprof, *arguments):
    code, out, err = eprof("scale", *arguments, "--format", "json")
    assert code == 0, err
    return json.loads(out)


# ------------------------------------------------------------------------------------------------------- closed form


def test_the_closed_form_of_a_gpu_cluster_and_its_best_node_counts():
    machine = cluster.read(Document.parse(MACHINE, "m.toml"))
    clustering = model.read(Document.parse(PROGRAM, "p.toml"))
    case = scale_document.Case(machine, clustering, 1.0, range(1, 33), [machine.default], "interrupt")
    document = scale_document.modelled(case, ASKED)
    at = {row.processors: row for row in document.rows}
    assert [at[nodes].time_s for nodes in (1, 8, 20)] == pytest.approx([174.017, 28.183, 17.393], abs=5e-4)
    assert [at[nodes].energy_j for nodes in (1, 8, 20)] == pytest.approx([112694, 131216, 175280], rel=1e-5)
    assert [best.processors for best in document.best] == [1, 12, 17, 22, 24]
    # Against the kernels and copies alone, without what even a single node waits.
    assert at[1].efficiency == pytest.approx((112694 - 360 * 6.15) / 112694, rel=1e-5)


def profile_of(kernels_s, dynamic_w=100.0, constant_w=60.0):
    """A report of ranks with so many seconds of kernels each."""
    energy = schema.RunJoules(0.0, dynamic_w * sum(kernels_s), constant_w * sum(kernels_s), 0.0)
    energy = replace(energy, total=energy.data + energy.constant)
    marks = schema.JouleMarks([], [], [], [])
    spread = schema.Spread(min(kernels_s), None, max(kernels_s))
    costs = schema.TableInForce(
        name="t", device="t", source="t", books="served", setting={}, setting_from="t", constant_power_w=constant_w,
        constant_why=None, charges={}, marks=[], notes=[],
    )  # fmt: skip
    of_ranks = schema.Ranks(len(kernels_s), spread, spread, spread, None, None, [], [])
    return schema.Profile(
        eprof="", title="", created_utc="", command_line=[], inputs=[],
        device=(device := schema.Device("G", 0, None, "")), devices=[device], definition=schema.Definition("", ""),
        costs=costs, time_s=sum(kernels_s), time_marks=[], time_from=None, power_w=None, launches=1, energy_j=energy,
        energy_marks=marks, counts={}, intensity_flop_per_byte=None, marks=[], ranks=of_ranks, warnings=[], kernels=[],
    )  # fmt: skip


def runs_of(kernels_s, time_s, beside, nodes=1, **seen):
    report = gpu_ranks.Report("here", nodes, profile_of(kernels_s), gpu_ranks._Seen(time_s=time_s, **seen))
    return list(gpu_ranks.runs([report], beside, []))[0]


def test_reports_of_ranks_add_up_to_the_closed_form():
    """All of it but the copies, which no report of kernels tells."""
    runs = []
    for nodes in range(1, 33):
        kernels_s = 500 / (3 * nodes)
        time_s = kernels_s + 1.2 / nodes + 6 + 0.15 * nodes
        runs.append(runs_of([kernels_s] * 3 * nodes, time_s, Beside(180.0, 0.0, 60.0, 3), nodes))
    document = scale_document.measured(runs, [], "runs", ASKED)
    rows = {row.processors: row for row in document.rows}
    joules = [rows[nodes].energy_j + 48 for nodes in (1, 8, 20)]
    assert joules == pytest.approx([112694, 131216, 175280], rel=1e-5)
    assert [best.processors for best in document.best] == [1, 12, 17, 22, 24]
    assert not rows[8].marks


kernels = st.lists(st.floats(0.1, 100), min_size=1, max_size=8)


@given(kernels_s=kernels, more_s=st.floats(0, 50), host_w=st.floats(0, 500), idle_w=st.floats(0, 80))
def test_parts_add_up_and_every_gpu_draws_power_until_the_end(kernels_s, more_s, host_w, idle_w):
    time_s = max(kernels_s) + more_s
    run = runs_of(kernels_s, time_s, Beside(host_w, 0.0, idle_w, len(kernels_s) + 1))
    parts = {cause: part.energy_j for cause, part in run.parts.items()}
    assert sum(parts.values()) == pytest.approx(run.energy_j)
    idle_s = sum(time_s - seconds for seconds in kernels_s) + time_s
    waiting_j = parts["imbalance"] + parts["between"] + parts["unused"]
    assert waiting_j == pytest.approx(idle_w * idle_s, abs=1e-6)
    assert parts["imbalance"] == pytest.approx(
        idle_w * sum(max(kernels_s) - seconds for seconds in kernels_s), abs=1e-6
    )


def test_what_a_meter_saw_is_the_energy_and_what_is_modelled_only_splits_it():
    run = runs_of([1.0, 3.0], 4.0, Beside(10.0, 0.0, 60.0), gpus_j=1000.0, is_metered=True)
    modelled_j = 4 * 160 + 60 * 2 + 60 * 2
    assert run.parts["metered"].energy_j == pytest.approx(1000 - modelled_j)
    assert run.energy_j == pytest.approx(1000 + 40)
    assert run.marks == 0


def test_a_meter_does_without_a_cost_table():
    profile = profile_of([1.0, 3.0])
    profile.costs, profile.energy_j = None, schema.RunJoules(None, None, None, None)
    report = gpu_ranks.Report("here", 1, profile, gpu_ranks._Seen(time_s=4.0, gpus_j=1000.0, is_metered=True))
    (run,) = gpu_ranks.runs([report], Beside(10.0, 0.0), [])
    assert run.energy_j == pytest.approx(1000 + 40)
    assert run.parts["metered"].energy_j == 1000 and run.parts["imbalance"].energy_j is None
    assert run.marks == 0


def test_what_a_meter_saw_of_the_cluster_comes_before_what_meters_of_its_gpus_saw(tmp_path):
    for rank in range(2):
        run_directory(tmp_path / "n2" / f"fmm-{rank}.eprof", joules=50.0)
    (tmp_path / "runs.csv").write_text("nodes,time_s,energy_j,report\n2,12,400,n2\n1,12,,n2\n")
    one, two = sorted(measured_runs.read([str(tmp_path / "runs.csv")])[0], key=lambda run: run.processors)
    for run, joules in ((one, 100.0), (two, 400.0)):
        assert run.energy_j == pytest.approx(joules)
        assert sum(part.energy_j or 0.0 for part in run.parts.values()) == pytest.approx(joules)


def test_what_the_meters_of_processors_saw_is_a_lower_bound_of_the_hosts():
    run = runs_of([1.0], 2.0, Beside(network_w=0.0, gpu_idle_w=1.0), hosts_j=70.0, is_metered=True)
    assert run.parts["host"] == Part(energy_j=70.0, marks=["missing"])
    assert mark_names(run.marks) == ["missing"]


# ------------------------------------------------------------------------------------------------------- sample logs


def test_ranks_in_folders_are_told_by_cause(eprof):
    document = document_of(eprof, *FOLDERS, *DEMO)
    rows = {row["processors"]: row for row in document["rows"]}
    assert list(rows) == [1, 2, 4]
    for nodes, row in rows.items():
        parts = {cause: part["energy_j"] for cause, part in row["parts"].items()}
        assert sum(joules for joules in parts.values() if joules is not None) == pytest.approx(row["energy_j"])
        assert parts["host"] == pytest.approx(100 * nodes * row["time_s"])
        assert parts["network"] == pytest.approx(5 * nodes * row["time_s"])
        assert parts["between"] is None and row["parts"]["between"]["marks"] == ["missing"]
        assert {"missing", "simulated", "assumed"} <= set(row["marks"])
        # The same 65,536 numbers are added up, on however many ranks.
        assert parts["computation"] == pytest.approx(rows[1]["parts"]["computation"]["energy_j"], rel=2e-3)
    # The largest of four shares is 28,672 of 65,536 numbers.
    assert rows[4]["speedup"] == pytest.approx(65536 / 28672, rel=0.01)
    assert rows[4]["imbalance"] == pytest.approx(28672 / 16384 - 1, rel=0.01)
    waiting_s = 4 * rows[4]["time_s"] - 4 * rows[4]["time_s"] / (1 + rows[4]["imbalance"])
    assert rows[4]["parts"]["imbalance"]["energy_j"] == pytest.approx(15 * waiting_s)
    assert {best["objective"]: best["processors"] for best in document["best"]} == {
        "energy": 1, "edp": 4, "e2d": 2, "ed2p": 4
    }  # fmt: skip


def test_a_report_of_ranks_in_json_says_the_same_as_its_logs(eprof, tmp_path):
    saved = tmp_path / "n4.json"
    logs = sorted((RANKS / "n4").glob("*.txt"))
    code, *_ = eprof("report", *logs, "--costs", "gtx680", "--group", "rank", "-q", "-o", saved)
    assert code == 0
    (of_json,) = document_of(eprof, f"n4={saved}", *DEMO)["rows"]
    (of_logs,) = document_of(eprof, RANKS / "n4", *DEMO)["rows"]
    assert of_json == of_logs


def test_the_energy_of_the_gpus_is_that_of_their_report(eprof):
    (row,) = document_of(eprof, RANKS / "n4", *DEMO)["rows"]
    logs = sorted((RANKS / "n4").glob("*.txt"))
    _, out, _ = eprof("report", *logs, "--costs", "gtx680", "--group", "rank", "--format", "json")
    report = json.loads(out)
    kernels = sum(row["parts"][family]["energy_j"] for family in ("computation", "data", "constant"))
    assert kernels == pytest.approx(report["energy_j"]["total"])
    assert row["time_s"] == report["ranks"]["time_s"]["max"]


def test_power_that_nobody_knows_is_unknown_and_the_rest_a_lower_bound(eprof):
    document = document_of(eprof, f"n4={RANKS / 'n4'}", "--costs", "gtx680", "--cluster", "gigabit-demo")
    (row,) = document["rows"]
    for cause in ("host", "network", "between"):
        assert row["parts"][cause] == {"energy_j": None, "marks": ["missing"]}
    assert "missing" in row["marks"] and row["power_w"] is None
    said = " ".join(document["warnings"])
    assert "The power of the hosts and the network is not known" in said
    assert "A GPU that waits is taken to draw its constant power, 66.37 W" in said
    assert "assumed" in row["parts"]["imbalance"]["marks"]


def test_options_give_the_powers_and_are_assumed(eprof):
    powers = ("--host-power", "50", "--network-power", "0")
    (row,) = document_of(eprof, f"n4={RANKS / 'n4'}", "--costs", "gtx680", *powers)["rows"]
    assert row["parts"]["host"]["energy_j"] == pytest.approx(50 * 4 * row["time_s"])
    assert row["parts"]["host"]["marks"] == ["missing", "assumed"]  # the time is a lower bound
    assert row["parts"]["network"] == {"energy_j": 0, "marks": []}


def test_a_table_tells_nodes_and_times_and_what_meters_saw_of_all(eprof, tmp_path):
    table = tmp_path / "runs.csv"
    rows = [f"{nodes},1e-5,{joules},{RANKS / f'n{nodes}'}\n" for nodes, joules in ((1, ""), (2, ""), (4, 0.009))]
    table.write_text("".join(["nodes,time_s,energy_j,report\n", *rows]))
    document = document_of(eprof, table, *DEMO)
    alone, two, four = document["rows"]
    assert [row["time_s"] for row in document["rows"]] == [1e-5] * 3
    assert alone["parts"]["between"]["energy_j"] > 0
    assert two["efficiency"] is not None
    assert (four["energy_j"], four["marks"], four["efficiency"]) == (pytest.approx(0.009), [], None)
    # Two lower bounds are no better than an energy that is known in full.
    assert {best["processors"] for best in document["best"]} == {4}


def test_logs_of_different_kinds_are_those_of_one_rank_and_it_is_said(eprof, tmp_path):
    for place in ("n1", "n2/rank0", "n2/rank1"):
        (tmp_path / place).mkdir(parents=True)
        for log in ("counters", "times"):
            (tmp_path / place / f"{log}.csv").write_text((LOGS / "invented" / f"tk1-fmm-{log}.csv").read_text())
    document = document_of(eprof, tmp_path / "n1", f"n2={tmp_path / 'n2'}")
    assert [row["ranks"] for row in document["rows"]] == [1, 2]
    assert document["rows"][1]["energy_j"] == pytest.approx(2 * document["rows"][0]["energy_j"])
    assert "n1: its 2 logs are taken for those of one rank" in " ".join(document["warnings"])


def test_different_programs_and_gpus_are_said():
    reports = []
    for name, command in (("Tesla K20c", "./a 1"), ("Tesla V100", "./a 2")):
        profile = profile_of([1.0, 1.0])
        profile.devices = [schema.Device(name, 0, None, "")]
        profile.inputs = [schema.Input("x", "", 1, 0, None, None, command, [])]
        reports.append(gpu_ranks.Report(name, len(reports) + 1, profile, gpu_ranks._Seen()))
    notes = []
    runs = list(gpu_ranks.runs(reports, Beside(), notes))
    assert [run.program for run in runs] == ["a", "a"]
    said = " ".join(notes)
    assert "differ in their commands" in said and "differ in their GPUs" in said and "cost tables" not in said


# -------------------------------------------------------------------------------------------------- run directories


def run_directory(place, host="node0", world=None, status="complete", joules=None):
    """What `eprof run` leaves of a rank on a Jetson TK1. The numbers are invented."""
    (place / "logs").mkdir(parents=True)
    for name, log in (("counters", "tk1-fmm-counters"), ("time", "tk1-fmm-times")):
        (place / "logs" / f"{name}-1-1.csv").write_text((LOGS / "invented" / f"{log}.csv").read_text())
    energy = {"joules": joules, "window_s": 10.0, "runs": 1, "method": "made"}
    record = {
        "schema": "eprof.run/1", "status": status, "program": ["./fmm"], "command": "./fmm", "host": {"name": host},
        "environment": {"OMPI_COMM_WORLD_SIZE": str(world)} if world else {},
        "meter": {"name": "NVML", "covers": "the GPU", "devices": [0]} if joules else None,
        "measurements": [{"what": "energy", "number": 1, "energy": energy}] if joules else [],
    }  # fmt: skip
    (place / "run.json").write_text(json.dumps(record))


def test_run_directories_tell_hosts_times_and_what_meters_saw(eprof, tmp_path):
    for nodes, joules in ((1, 70.0), (2, 40.0)):
        for rank in range(nodes):
            run_directory(tmp_path / f"n{nodes}" / f"fmm-{rank}.eprof", f"node{rank}", nodes, joules=joules)
    document = document_of(eprof, tmp_path / "n1", tmp_path / "n2", "--host-power", "10", "--network-power", "0")
    one, two = document["rows"]
    assert (one["processors"], two["processors"]) == (1, 2)
    assert (one["time_s"], one["energy_j"]) == (10, pytest.approx(70 + 100))
    assert (two["time_s"], two["energy_j"]) == (10, pytest.approx(2 * 40 + 200))
    assert two["marks"] == ["assumed"]
    assert one["program"] == "fmm"


def test_ranks_of_a_run_on_one_host_with_several_gpus_are_one_node(eprof, tmp_path):
    for rank in range(2):
        run_directory(tmp_path / f"fmm-{rank}.eprof", world=2)
    (row,) = document_of(eprof, tmp_path, "--host-power", "10")["rows"]
    assert (row["processors"], row["ranks"]) == (1, 2)


def test_more_and_more_ranks_on_one_host_are_compared_by_gpus(eprof, tmp_path):
    for number in (1, 2):
        for rank in range(number):
            run_directory(tmp_path / f"g{number}" / f"fmm-{rank}.eprof", world=number)
    document = document_of(eprof, tmp_path / "g1", tmp_path / "g2", "--host-power", "10")
    assert document["unit"] == "GPU"
    assert [row["processors"] for row in document["rows"]] == [1, 2]
    for row in document["rows"]:  # a single host, whatever number of GPUs
        assert row["parts"]["host"]["energy_j"] == pytest.approx(10 * row["time_s"])


@pytest.mark.parametrize(
    ("world", "status", "sentence"),
    [(3, "complete", "holds 2 of 3 ranks"), (2, "partial", "fmm-0.eprof and fmm-1.eprof|fmm-0.eprof, fmm-1.eprof")],
)
def test_ranks_that_are_missing_or_did_not_end_are_no_run(eprof, tmp_path, world, status, sentence):
    for rank in range(2):
        run_directory(tmp_path / f"fmm-{rank}.eprof", world=world, status=status)
    code, out, err = eprof("scale", tmp_path)
    assert (code, out) == (1, "") and re.search(sentence, err)


def test_what_a_meter_saw_beyond_has_the_marks_of_what_is_known_but_no_lower_bound():
    parts = {
        "host": Part(energy_j=None, marks=["missing", "assumed"]),
        "data": Part(energy_j=3.0, marks=["estimated"]),
        "network": Part(energy_j=0.0, marks=[]),
    }
    assert gpu_ranks._metered(parts, None) == parts
    assert gpu_ranks._metered(parts, 10.0)["metered"] == Part(energy_j=7.0, marks=["estimated", "assumed"])


def test_a_time_below_one_second_is_that_of_the_program_where_kernels_have_none():
    profile = profile_of([0.1])
    profile.time_s, profile.ranks = None, msgspec.UNSET
    report = gpu_ranks.Report("x", 1, profile, gpu_ranks._Seen(time_s=0.25))
    [run] = gpu_ranks.runs([report], Beside(), [])
    assert (run.time_s, run.time_marks) == (0.25, 0)
    with pytest.raises(EprofError, match="x: the times of its kernels are not known"):
        list(gpu_ranks.runs([report._replace(seen=gpu_ranks._Seen())], Beside(), []))


# ----------------------------------------------------------------------------------------------------- missing ranks


def copied(place, *numbers):
    """A folder with these of the sample's four ranks."""
    place.mkdir()
    for number in numbers:
        (place / f"rank{number}.txt").write_text((RANKS / "n4" / f"rank{number}.txt").read_text())
    return place


@pytest.mark.parametrize("numbers", [(0, 1, 3), (1, 2, 3)])
def test_a_gap_in_the_numbers_of_ranks_is_refused_in_logs_and_in_a_report(eprof, tmp_path, numbers):
    folder = copied(tmp_path / "runs", *numbers)
    missing = ({0, 1, 2, 3} - {*numbers}).pop()
    saved = tmp_path / "runs.json"
    eprof("report", *sorted(folder.iterdir()), "--costs", "gtx680", "--group", "rank", "-q", "-o", saved)
    for given_ranks in (folder, f"n3={folder}", f"n3={saved}"):
        code, out, err = eprof("scale", given_ranks, *DEMO)
        assert (code, out) == (1, "") and f"holds 3 ranks, counted from 0 without {missing};" in err
        assert len(err.splitlines()) == 1


def test_numbers_from_2_on_are_those_of_processes(eprof, tmp_path):
    """Nobody knows how many there were; from 0 or 1 on they are ranks, and a number below them is a gap."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for number in (2, 3):
        (folder / f"rank{number}.txt").write_text((RANKS / "n4" / f"rank{number}.txt").read_text())
    code, out, _ = eprof("scale", f"n2={folder}", *DEMO, "-q", "-o", tmp_path / "a.json")
    assert code == 0 and json.loads((tmp_path / "a.json").read_text())["rows"][0]["ranks"] == 2


def test_numbers_of_processes_are_no_ranks(eprof, tmp_path):
    folder = copied(tmp_path / "runs", 0, 1)
    for number in (0, 1):
        (folder / f"rank{number}.txt").rename(folder / f"log.{4711 + 2 * number}.txt")
    code, out, _ = eprof("scale", f"n2={folder}", *DEMO)
    assert code == 0 and "2 nodes" in out


def test_fewer_ranks_than_nodes_are_refused(eprof, tmp_path):
    folder = copied(tmp_path / "n2", 0)
    for label, sentence in (("n4=", "holds 1 rank for 4 nodes"), ("", "is named after 2 nodes, but holds 1 rank;")):
        code, out, err = eprof("scale", f"{label}{folder}", *DEMO)
        assert (code, out) == (1, "") and sentence in err
    (row,) = document_of(eprof, f"n1={folder}", *DEMO)["rows"]
    assert row["processors"] == 1


def test_ranks_with_the_same_logs_are_said(eprof, tmp_path):
    folder = copied(tmp_path / "n3", 0, 1)
    (folder / "rank2.txt").write_text((folder / "rank0.txt").read_text())
    document = document_of(eprof, folder, *DEMO)
    assert "rank0.txt and rank2.txt are the same to the byte" in " ".join(document["warnings"])
    other = copied(tmp_path / "n2", 0)
    (other / "rank1.txt").write_text((other / "rank0.txt").read_text())
    said = " ".join(document_of(eprof, other, folder, *DEMO)["warnings"])
    assert "rank0.txt and rank1.txt are the same" in said and "rank0.txt and rank2.txt are the same" in said


# ----------------------------------------------------------------------------------------------- what could mislead


@pytest.mark.parametrize("host_w, is_said", [(100.0, True), (1.0, False)])
def test_extra_energy_has_a_cause_only_where_the_whole_grows(host_w, is_said):
    """Two GPUs for half the time, and for a tenth more of it in the end."""
    beside = Beside(host_w, 0.0, 60.0, 1)
    alone = runs_of([10.0], 10.0, beside)
    half_s = 5.5 if is_said else 4.0
    document = scale_document.measured([alone, runs_of([half_s] * 2, half_s, beside, 2)], [], "runs", ASKED)
    assert words.headline(document).text.startswith("2 nodes")
    assert ("of the extra energy goes into" in words.headline(document).lead) == is_said


@pytest.mark.parametrize(
    ("gpus_j", "sentence"),
    [
        (600.0, "the meter saw 600 J, but its kernels alone are modelled at 640 J"),
        (800.0, "the meter saw 800 J, but its parts are modelled at 880 J"),
        (900.0, ""),
    ],
)
def test_a_meter_that_saw_less_than_is_modelled_is_said_and_has_no_shares(gpus_j, sentence):
    report = gpu_ranks.Report(
        "here", 1, profile_of([1.0, 3.0]), gpu_ranks._Seen(time_s=4.0, gpus_j=gpus_j, is_metered=True)
    )
    notes = []
    document = scale_document.measured(
        list(gpu_ranks.runs([report], Beside(10.0, 0.0, 60.0), notes)), [], "runs", ASKED
    )
    assert any(sentence in note for note in notes)
    assert any("the meter saw" in note for note in notes) == bool(sentence)
    assert (words._share(document.rows[0], ["metered"]) is None) == bool(sentence)


def test_a_time_below_that_of_the_kernels_is_said_with_its_row(eprof, tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text(f"nodes,time_s,report\n1,1e-5,{RANKS / 'n1'}\n2,1e-6,{RANKS / 'n2'}\n")
    document = document_of(eprof, table, *DEMO)
    said = [warning for warning in document["warnings"] if "which is taken instead" in warning]
    assert len(said) == 1 and "runs.csv:3: its time, 1e-06 s, is less than that of its slowest rank's" in said[0]


def test_of_two_repeats_the_lower_is_shown_and_it_is_said():
    beside = Beside(10.0, 0.0, 60.0)
    repeats = [runs_of([1.0], time_s, beside) for time_s in (3.0, 2.0, 4.0)]
    for same, time_s, is_said in ((repeats[:2], 2.0, True), (repeats, 3.0, False)):
        notes = []
        (row,) = medians(same, notes)
        assert (row.time_s, row.repeats) == (time_s, len(same))
        assert ("the lower in energy" in " ".join(notes)) == is_said


def test_a_single_log_with_one_number_in_its_name_is_one_rank(eprof, tmp_path):
    logs = copied(tmp_path / "one", 0)
    saved = tmp_path / "one.json"
    code, _, err = eprof("report", *logs.iterdir(), "--costs", "gtx680", "--group", "rank", "-q", "-o", saved)
    assert code == 0, err
    (row,) = document_of(eprof, saved, *DEMO)["rows"]
    assert (row["processors"], row["ranks"]) == (1, 1)
    assert row["energy_j"] == document_of(eprof, logs, *DEMO)["rows"][0]["energy_j"]


def test_lower_bounds_beside_a_metered_run_are_told_apart_on_80_columns(eprof, tmp_path):
    table = tmp_path / "runs.csv"
    rows = [f"{nodes},1e-5,{joules},{RANKS / f'n{nodes}'}\n" for nodes, joules in ((1, ""), (2, ""), (4, 0.009))]
    table.write_text("".join(["nodes,time_s,energy_j,report\n", *rows]))
    code, out, _ = eprof("scale", table, *DEMO)
    said = " ".join(out.split())
    assert code == 0 and "2 simulated and 1 measured runs" in said
    assert "on 4 nodes, of those known in full." in said
    head = next(line for line in out.splitlines() if line.startswith("on "))
    assert max(map(len, out.splitlines())) <= 80 and head.rstrip().endswith("nodes")


def test_one_run_is_one_run(eprof):
    _, out, _ = eprof("scale", RANKS / "n4", *DEMO)
    assert "1 simulated run\n" in out and "known in full" not in out
    assert "1 of 1 run without efficiency" in out


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ([RANKS / "n2", "--costs", "gtx680"], 1, "nothing tells on how many nodes its 2 ranks ran; name it, such as n2="),
        ([f"n1={RANKS / 'n4'}", *DEMO], 1, "4 ranks on 1 x 1 GPUs"),
        ([RANKS / "n1"], 1, "no cost table is made for its GPU; name one with --costs"),
        ([RANKS / "n1", "--host-power", "-1"], 2, "--host-power -1: must be a power"),
        ([f"n2={RANKS / 'n2'}", f"n2={RANKS / 'n4'}", f"n1={RANKS / 'n1'}", *DEMO[:2]], 1, "different numbers of ranks"),
        (["n2=nowhere"], 1, "nowhere"),
        (["nowhere.json"], 1, "nowhere.json"),
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_refused_in_one_sentence(eprof, arguments, code, sentence):
    ended, out, err = eprof("scale", *arguments)
    assert (ended, out) == (code, "") and sentence in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": "eprof.diff/1"}', '{"eprof": 1}', "\xff"])
def test_json_that_is_no_report_is_refused(tmp_path, content):
    (tmp_path / "n1.json").write_text(content, encoding="latin-1")
    with pytest.raises(EprofError, match="n1.json: is no report in JSON"):
        measured_runs.read([str(tmp_path / "n1.json")])


@pytest.mark.parametrize(
    "damage",
    [
        lambda profile: profile.energy_marks.data.append("certain"),
        lambda profile: profile.time_marks.append("certain"),
        lambda profile: setattr(profile, "time_s", -1.0),
        lambda profile: setattr(profile.energy_j, "data", -1.0),
        lambda profile: setattr(profile.ranks, "number", 0),
        lambda profile: setattr(profile.costs, "constant_power_w", -5.0),
    ],
)
def test_a_report_with_numbers_or_marks_that_cannot_be_is_refused(tmp_path, damage):
    profile = profile_of([1.0, 2.0])
    damage(profile)
    (tmp_path / "n1.json").write_bytes(msgspec.json.encode(profile))
    with pytest.raises(EprofError, match="n1.json: is no report in JSON"):
        measured_runs.read([f"n1={tmp_path / 'n1.json'}"])


def test_a_rank_on_several_gpus_is_refused_for_their_times_overlap():
    profile = profile_of([1.0])
    kernel = schema.Kernel(
        name="k", device="G (0)", launches=1, time_s=1.0, time_marks=[], power_w=None, counts={},
        energy_j=profile.energy_j, energy_marks=profile.energy_marks, intensity_flop_per_byte=None, marks=[],
    )  # fmt: skip
    profile.kernels = [kernel, replace(kernel, device="G (1)")]
    report = gpu_ranks.Report("n1", 1, profile, gpu_ranks._Seen())
    with pytest.raises(EprofError, match="n1: a rank runs kernels on G \\(0\\) and G \\(1\\), whose times overlap"):
        list(gpu_ranks.runs([report], Beside(), []))


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(EprofError, match="without run directories or logs"):
        measured_runs.read([str(tmp_path)])


@pytest.mark.parametrize(
    ("line", "sentence"), [("host_w = -1", "from 0"), ("watts = 1", "unknown key"), ("gpus = 0", "from 1")]
)
def test_a_bad_node_is_refused_with_its_line(tmp_path, line, sentence):
    table = tmp_path / "m.toml"
    table.write_text(f'schema = 1\nname = "m"\nsource = "t"\nbasis = "assumed"\n[node]\n{line}\n')
    with pytest.raises(EprofError, match=f"m.toml:[0-9]+: .*{sentence}"):
        cluster.beside(str(table))


def test_a_node_alone_is_enough_for_ranks_and_makes_up_the_idle_power_of_a_model(tmp_path):
    table = tmp_path / "m.toml"
    table.write_text('schema = 1\nname = "m"\nsource = "t"\nbasis = "measured"\n[node]\nhost_w = 5\n')
    assert cluster.beside(str(table)) == Beside(host_w=5.0, name="m", source="t")
    assert cluster.read(Document.parse(MACHINE, "m.toml")).default.idle_w == 180 + 3 * 60
    demo = cluster.load("gpu-demo")
    assert demo.default.idle_w == 100 + 5 + 15


# ------------------------------------------------------------------------------------------------------------- shown


def test_the_terminal_shows_energy_on_each_node_count_on_one_screen(eprof, monkeypatch):
    monkeypatch.chdir(LOGS)
    code, out, _ = eprof("scale", "ranks/n1", "ranks/n2", "ranks/n4", *DEMO)
    lines = out.splitlines()
    assert code == 0 and len(lines) <= 15
    assert max(map(len, lines)) <= 80
    assert "4 nodes" in out and "≥ 1.61 mJ" in out and "4 nodes take the least energy x time: at least 1.61 mJ" in out


def test_limits_hold_for_ranks_too(eprof):
    code, out, _ = eprof("scale", *FOLDERS, *DEMO, "--deadline", "3e-6", "--power-limit", "500")
    assert (
        code == 0 and "No run is within the limits." in out and "on nothing within the limits" in " ".join(out.split())
    )
    (best,) = document_of(eprof, *FOLDERS, *DEMO, "--deadline", "4e-6", "--objective", "energy")["best"]
    assert best["processors"] == 2


def test_every_form_has_the_causes(eprof, tmp_path):
    files = [tmp_path / f"x.{suffix}" for suffix in ("html", "md", "csv")]
    outputs = [word for file in files for word in ("-o", file)]
    code, *_ = eprof("scale", *FOLDERS, *DEMO, "-q", *outputs)
    page, markdown, _ = (file.read_text() for file in files)
    assert code == 0
    assert "Energy by cause" in page and "GPUs idle between kernels" in page
    # Without the time between kernels every energy is a lower bound: of the best, of each bar, of each dot.
    assert page.count("<small>≥ ") == 4 and page.count('<span class="num">≥ ') == 3
    assert len(re.findall(r"\d: ≥ ", page)) == page.count("<circle")
    assert "| waiting for the slowest rank |" in markdown
    rows = list(csv.DictReader(files[2].open()))
    assert float(rows[2]["imbalance_j"]) > 0 and rows[2]["between_j"] == ""


def test_storage_devices_are_a_part_of_the_energy_where_their_power_and_time_are_known():
    beside = Beside(10.0, 0.0, 60.0, 1, storage=Storage(1e-9, 6.0))
    run = runs_of([1.0], 3.0, beside, storage_s=0.5)
    assert run.parts["storage"].energy_j == pytest.approx(3.0)
    without = runs_of([1.0], 3.0, replace(beside, storage=None), storage_s=0.5)
    assert "storage" not in without.parts and run.energy_j - without.energy_j == pytest.approx(3.0)
    unknown = runs_of([1.0], 3.0, beside)
    assert unknown.parts["storage"] == Part(energy_j=None, marks=["missing"]) and "missing" in mark_names(
        Mark(unknown.marks)
    )


def test_each_host_s_storage_counts_once_and_is_unknown_where_one_run_does_not_tell(tmp_path):
    def on(host, device_s):
        record = {
            "host": {"name": host},
            "measurements": [{"what": "time", "seconds": 1.0, "io": {"device_s": device_s}}],
        }
        return directories.Run(tmp_path, record, {})

    seen = [on("a", 0.5), on("a", 0.75), on("b", 1.0)]
    assert gpu_ranks._seen(seen).storage_s == pytest.approx(1.75)
    assert gpu_ranks._seen([*seen, directories.Run(tmp_path, {"host": {"name": "c"}}, {})]).storage_s is None

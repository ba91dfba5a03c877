"""`eprof costs --estimate` and `--costs estimated`."""

import json

import pytest

from eprof import costs
from eprof.base.errors import CostError
from eprof.base.gpus import sheets
from eprof.base.vocabulary import OF_CPUS
from eprof.cli import dispatch
from eprof.commands.costs import command as listing
from eprof.costs.estimate import estimated
from eprof.counts.definition_files import capability_of
from eprof.profile import api
from eprof.profile.document import document
from eprof.show import cost_words

COUNTS = """==1== NVPROF is profiling process 1, command: ./a.out
==1== Profiling application: ./a.out
==1== Profiling result:
==1== Metric result:
"Device","Kernel","Invocations","Metric Name","Metric Description","Min","Max","Avg"
"{gpu} (0)","k(int)",1,"inst_fp_32","FP Instructions(Single)",1000000,1000000,1000000
"{gpu} (0)","k(int)",1,"inst_integer","Integer Instructions",1000000,1000000,1000000
"""


def ended(*arguments):
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as end:
        dispatch.main([str(argument) for argument in arguments])
    return end.value.code or 0


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(COUNTS.format(gpu="Tesla P40"))
    return path


def test_a_table_of_a_gpu_that_nobody_measured_is_written_and_read_back(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    assert ended("costs", "--estimate", "RTX 4090", "--idle-w", 52, "-o", path) == 0
    assert "nobody measured this GPU" in capsys.readouterr().err
    table = costs.load(str(path))
    assert (table.basis, table.at().constant_power_w) == ("estimated", 52)
    assert table.is_for("NVIDIA GeForce RTX 4090")
    assert ended("costs", "--estimate", "RTX 4090", "-o", path) == 1  # exists already
    assert ended("costs", "--estimate", "RTX 4090", "-o", path, "-f") == 0
    assert costs.load(str(path)).at().constant_power_w > 52


def test_an_estimated_table_is_shown_with_its_basis(capsys):
    assert ended("costs", "--estimate", "RTX 4090", "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["basis"] == "estimated"
    assert all(price["interval_pj"] and price["from"] for price in shown["prices"])


def test_counts_that_pay_the_same_for_the_same_reason_stand_in_one_row(capsys):
    assert ended("costs", "--estimate", "RTX 4090", "--format", "json") == 0
    explained = json.loads(capsys.readouterr().out)
    charges = explained["charges"]
    table = listing._charges(explained)
    assert table.row_count < len(charges) / 2
    cells = ", ".join(map(str, table.columns[0].cells))
    assert all(charge["label"] in cells for charge in charges if charge["word"] not in OF_CPUS)


def test_rooflines_of_two_estimated_gpus_are_told_apart():
    tables = [costs.load(f"estimated:{gpu}") for gpu in ("RTX 4090", "RTX 5070")]
    assert cost_words.all_named(tables) == "costs estimated:GeForce RTX 4090, estimated:GeForce RTX 5070"
    assert cost_words.all_named([costs.load("v100")] * 2) == "costs v100 (fitted)"


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["costs", "--idle-w", "52"], 2),
        (["costs", "v100", "--estimate", "RTX 4090"], 2),
        (["costs", "--estimate", "RTX 4091"], 1),
        (["costs", "--estimate", "RTX 4090", "--idle-w", "-3"], 1),
        (["costs", "--estimate", "RTX 4090", "--idle-w", "warm"], 2),
    ],
)
def test_what_cannot_be_estimated_ends_with_one_sentence(arguments, code, capsys):
    assert ended(*arguments) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_gpu_without_a_table_is_priced_by_its_data_sheet(log):
    profile = api.load(log, time=["0.001"])
    priced = profile.energy()
    assert (priced.costs.basis, priced.costs.name) == ("estimated", profile.energy("estimated").costs.name)
    assert priced.split.row_marks.all()
    assert "nobody measured this GPU" in " ".join(priced.warnings)
    assert priced.split.constant_j.sum() == pytest.approx(1e-3 * priced.costs.constant_power_w)
    declined, unpriced = profile.energy("none"), profile.energy(estimate=False)
    assert (declined.costs, unpriced.costs) == (None, None)
    assert "as --costs none asks" in " ".join(declined.warnings)
    assert "Three ways to joules" in " ".join(unpriced.warnings)


NCU_TEXT = """[1] a.out@127.0.0.1
  k(int) (1, 1, 1)x(1, 1, 1), Context 1, Stream 7, Device 0, CC 12.0
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Elapsed Cycles                cycle      100,000
    Duration                         us          100
    DRAM Throughput                   %        50.00
    SM Active Cycles              cycle       90,000
    ----------------------- ----------- ------------
"""


def test_a_gpu_that_the_log_does_not_name_is_named_with_the_table(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text(NCU_TEXT)
    profile = api.load(path)
    assert '--costs "RTX 4090"' in " ".join(profile.energy(estimate=False).warnings)
    priced = profile.energy("estimated:RTX 5070")
    assert (priced.costs.name, priced.costs.device) == ("estimated:GeForce RTX 5070", "GeForce RTX 5070")
    assert priced.split.constant_j.sum() == pytest.approx(1e-4 * costs.load("estimated:RTX 5070").at().constant_power_w)


def test_a_table_made_for_a_gpu_without_a_name_is_a_table_of_that_gpu():
    label = "ncu device 0 (CC 12.0)"
    table = estimated(label, idle_w=30, idle_from="half of what the meter saw")
    assert table.is_for(label)
    assert "30 W, half of what the meter saw" in " ".join(table.notes)


def test_of_a_capability_the_interval_spans_its_boards(tmp_path):
    """The power of the smallest and of the largest board of 12.0, without the interval that each has of its own."""
    path = tmp_path / "log.txt"
    path.write_text(NCU_TEXT)
    priced = api.load(path).energy()
    boards = [sheet for sheet in sheets() if "12.0" in capability_of(sheet.name)]
    assert len(boards) > 9
    low_w, high_w = (end / 1e-4 for end in document(priced).interval_j.constant)
    shares = [estimated(sheet.name).at().constant_power_w for sheet in boards]
    assert low_w < sorted(shares)[1] and high_w > sorted(shares)[-2]
    assert min(shares) < priced.costs.constant_power_w < max(shares)


def test_a_total_that_lacks_something_ends_at_what_the_board_can_draw(tmp_path):
    path = tmp_path / "log.txt"
    path.write_text(NCU_TEXT)
    interval_j = document(api.load(path).energy("estimated:RTX 5070")).interval_j
    assert interval_j.total[1] == pytest.approx(1.25 * 250 * 1e-4)  # as partners' boards may draw
    assert interval_j.total[0] > interval_j.constant[0] + interval_j.computation[0]  # cycles were counted, some DRAM


def test_a_name_that_is_no_gpu_is_estimated_by_its_capability_and_refused_by_name(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text(COUNTS.format(gpu="Tesla P41"))
    profile = api.load(path, capability="6.1")
    with pytest.raises(CostError, match="Tesla P40"):
        profile.energy("estimated")
    assert "no data sheet of Tesla P41" in " ".join(profile.energy().warnings)


def test_the_name_estimated_alone_is_no_table():
    with pytest.raises(CostError, match='--costs "RTX 4090"'):
        costs.load("estimated")

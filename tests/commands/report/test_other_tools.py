"""Reports for other tools: OpenMetrics, and flame graphs as folded stacks and for speedscope."""

import json
import math

import pytest
import report_support as support
from logs_support import METRICS, metric, profiled, write
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from eprof.base.errors import UsageError
from eprof.base.text import visible
from eprof.base.vocabulary import GROUPS
from eprof.commands.report import files
from eprof.commands.report.view import View

PRICED = [name for name, make in support.CASES.items() if View(make()).energy("total").value]


def samples(document):
    """Each sample of a report as OpenMetrics: its name, labels and value."""
    text = files.to_openmetrics(document).decode()
    families = list(text_string_to_metric_families(text))
    assert {family.type for family in families} <= {"gauge", "info"}
    return [(sample.name, sample.labels, sample.value) for family in families for sample in family.samples]


@pytest.mark.parametrize("case", support.CASES)
def test_openmetrics_is_read_by_prometheus(case):
    document = support.CASES[case]()
    view = View(document)
    found = samples(document)
    assert sum(name == "eprof_run_info" for name, *_ in found) == 1
    launches = {(labels.get("gpu"), labels.get("kernel")): value for name, labels, value in found if "launches" in name}
    assert len(launches) == len(view.kernels)
    assert sum(launches.values()) == view.document.launches
    assert {name for _, name in launches} == {visible(kernel.name) for kernel in view.kernels}


@pytest.mark.parametrize("case", PRICED)
def test_the_parts_of_openmetrics_are_the_known_energy_of_the_kernels(case):
    document = support.CASES[case]()
    parts = [value for name, _, value in samples(document) if name == "eprof_kernel_energy_joules"]
    known = [kernel.energy_j.total or 0.0 for kernel in View(document).kernels]
    assert math.fsum(parts) == pytest.approx(math.fsum(known), rel=1e-9)


def test_openmetrics_says_which_kernels_lack_a_part():
    document = support.missing()
    unknown = {labels["kernel"]: value for name, labels, value in samples(document) if "unknown" in name}
    lacking = {visible(kernel.name) for kernel in View(document).kernels if "missing" in kernel.marks}
    assert lacking and {name for name, parts in unknown.items() if parts} == lacking


def test_openmetrics_names_the_prices_on_every_energy():
    energies = [labels for name, labels, _ in samples(support.fmm()) if name == "eprof_kernel_energy_joules"]
    assert {labels["family"] for labels in energies} == {"computation", "data", "constant"}
    for labels in energies:
        assert labels["costs"] and "setting" in labels and "basis" in labels
        assert labels["part"] in GROUPS


@pytest.mark.parametrize("case", PRICED)
def test_a_flame_graph_is_as_wide_as_the_energy(case):
    document = support.CASES[case]()
    whole = View(document).energy("total").value
    assert math.fsum(files.stacks(document).values()) == pytest.approx(whole, rel=1e-9)

    lines = files.to_folded(document).decode().splitlines()
    weights = [int(line.rpartition(" ")[2]) for line in lines]
    assert sum(weights) == pytest.approx(whole * 1e9, abs=1)

    file = json.loads(files.to_speedscope(document))
    (profile,) = file["profiles"]
    assert math.fsum(profile["weights"]) == pytest.approx(whole * 1e6, rel=1e-9)
    assert profile["endValue"] == pytest.approx(whole * 1e6, rel=1e-9)


def test_speedscope_reads_the_file():
    """What src/lib/file-format-spec.ts of jlfwong/speedscope asks of a sampled profile."""
    file = json.loads(files.to_speedscope(support.phases()))
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = file["shared"]["frames"]
    assert all(frame["name"] for frame in frames)
    (profile,) = file["profiles"]
    assert profile["type"] == "sampled" and profile["unit"] == "none" and profile["startValue"] == 0
    assert len(profile["samples"]) == len(profile["weights"])
    assert all(0 <= frame < len(frames) for stack in profile["samples"] for frame in stack)


def test_phases_stand_above_their_kernels():
    document = View(support.phases()).document
    phase_of = {stack[1]: stack[0] for stack in files.stacks(document)}
    for group in document.groups:
        for place in group.kernels:
            assert phase_of[document.kernels[place].name] == group.name
    assert {len(stack) for stack in files.stacks(document)} == {3}


def test_groups_that_share_kernels_stand_above_the_parts():
    """A kernel runs on several streams: the document does not say how much of it on which."""
    document = View(support.phases()).document
    for group in document.groups:
        group.kernels = list(range(len(document.kernels)))
    assert {stack[1] for stack in files.stacks(document)} <= set(GROUPS.values())


def test_a_semicolon_in_a_name_does_not_cut_a_frame():
    document = support.one()
    document["kernels"][0]["name"] = "f<';'>(int)\nnext 7"
    for line in files.to_folded(document).decode().splitlines():
        assert line.split(";")[0] == "f<','>(int) next 7"


def test_without_joules_there_is_no_flame_graph():
    with pytest.raises(UsageError, match="--costs"):
        files.to_folded(support.no_costs())


def test_the_suffix_says_which_tool_a_file_is_for(eprof_command, tmp_path):
    log = write(tmp_path, profiled(1, METRICS, metric("inst_integer", 1000)))
    names = {
        "a.prom": b"# EOF",
        "b.folded": b";Integer ",
        "c.speedscope.json": b"speedscope.app",
        "d.json": b"eprof.profile/1",
    }
    files = [word for name in names for word in ("-o", tmp_path / name)]
    eprof_command("report", log, "--costs", "jetson-tk1", "-q", *files)
    assert {name: marker in (tmp_path / name).read_bytes() for name, marker in names.items()} == dict.fromkeys(
        names, True
    )


def test_a_diff_is_written_for_none_of_them(eprof_command, tmp_path):
    done = eprof_command("diff", "old.csv", "new.csv", "-o", tmp_path / "x.prom")
    assert done.returncode == 2 and "cannot tell the format" in done.stderr

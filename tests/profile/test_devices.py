"""Logs of several GPUs: each is priced, bounded and limited exactly as its half of the logs is alone."""

import math

import numpy as np
import pytest
from conftest import SHARED
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from oracle_logs import ADDED, INSIDE, KERNELS, MOVED, Run, runs, summary, trace

import eprof
from eprof.base.errors import MeterError, UsageError
from eprof.base.vocabulary import Mark
from eprof.commands.diff.compare import compare
from eprof.commands.report.page import html
from eprof.commands.report.trust import trust as trust_of
from eprof.commands.report.view import View
from eprof.show import export

NVPROF = SHARED / "nvprof"
REAL = {
    "k20c and 1080 Ti": ("k20c-metrics-summary.csv", "gtx1080ti-cuda8-metrics-summary.csv"),
    "V100 without a time": ("v100-events-and-metrics-summary-with-total.csv", "gtx1080ti-cuda8-metrics-summary.csv"),
}
# On each of these, another table: served and accessed books, prices of its own and of its data sheet.
PAIRS = ("GK20A (0)", "GeForce GTX 980 (1)"), ("Tesla V100-SXM2-16GB (0)", "Tesla K20c (0)")


def agree(together, alone):
    """The document of several GPUs holds that of each, kernel by kernel, and its sums are theirs."""
    documents = [energy.document() for energy in alone]
    both = together.document()
    places = {(kernel["device"], kernel["name"]): place for place, kernel in enumerate(both["kernels"])}
    for document in documents:
        for place, kernel in enumerate(document["kernels"]):
            there = places.pop((kernel["device"], kernel["name"]))
            assert both["kernels"][there] == kernel
            if "limits" in both:
                assert both["limits"]["kernels"][there] == document["limits"]["kernels"][place]
    assert not places
    for part in ("computation", "data", "constant", "total"):
        known = [joules for document in documents if (joules := document["energy_j"][part]) is not None]
        assert (both["energy_j"][part] or 0.0) == pytest.approx(math.fsum(known))
    # A part that one of them has no interval of has no joules there.
    intervals = [document["interval_j"] for document in documents if "interval_j" in document]
    for part in ("computation", "data", "constant", "total") if len(intervals) == len(documents) else ():
        ends = [interval[part] for interval in intervals if interval[part]]
        assert bool(both["interval_j"][part]) == bool(ends)
        if ends:
            added = np.array(ends, dtype=float).sum(axis=0)
            assert np.array(both["interval_j"][part], dtype=float) == pytest.approx(added, nan_ok=True)
    told = [both["costs"], *both["costs_of_others"]]
    for document in documents:
        (own,) = (costs for costs in told if costs["of"] == [kernel["device"] for kernel in document["kernels"]][:1])
        assert {**own, "of": None} == {**document["costs"], "of": None}
    return both


@pytest.mark.parametrize("names", REAL.values(), ids=REAL)
def test_joined_logs_of_two_gpus_are_priced_as_each_is_alone(names):
    paths = [NVPROF / name for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("needs real logs, which are not part of this project")
    together = eprof.load(*paths, cache=False).energy()
    both = agree(together, [eprof.load(path, cache=False).energy() for path in paths])
    assert set(together.warnings) >= {note for energy in together.gpus for note in energy.costs.notes}
    assert "Drawn are those of GeForce GTX 1080 Ti" in html(both)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("devices")


def counted(folder, device, made=None, time_s=0.5):
    """The logs of one device: counts, and times."""
    made = made or Run(1, device, [(KERNELS[0], dict.fromkeys((*ADDED, *MOVED), 10**9))], (*ADDED, *MOVED))
    paths = [folder / f"{device}-{kind}.csv" for kind in ("counts", "times")]
    for path, text in zip(paths, (summary(made), trace(made, 1000 * time_s)), strict=True):
        path.write_text(text)
    return paths


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0])
@given(data=st.data())
@settings(max_examples=2, deadline=None, phases=[Phase.generate])
def test_whatever_two_gpus_counted_each_is_priced_as_alone(folder, pair, data):
    paths = []
    for device in pair:
        made = data.draw(runs(alike=True, most=1, device=device, counters=(*ADDED, *INSIDE, *MOVED)))
        paths.append(counted(folder, device, made[0], data.draw(st.floats(1e-3, 1e3))))
    alone = [eprof.load(*own, cache=False).energy() for own in paths]
    agree(eprof.load(*paths[0], *paths[1], cache=False).energy(), alone)


def test_a_gpu_without_prices_leaves_a_lower_bound(folder):
    known, unknown = counted(folder, "GeForce GTX 980 (0)"), counted(folder, "GeForce Nobody (1)")[1]
    alone = eprof.load(*known, cache=False).energy()
    both = eprof.load(*known, unknown, cache=False).energy()
    document = both.document()
    assert document["energy_j"]["total"] == pytest.approx(alone.energy_j)
    assert "missing" in document["energy_marks"]["total"] and both.lacks_some
    assert document["interval_j"]["total"] == [alone.document()["interval_j"]["total"][0], None]
    kernel = next(kernel for kernel in document["kernels"] if kernel["device"] == "GeForce Nobody (1)")
    assert kernel["energy_j"]["total"] is None and kernel["interval_j"] is None
    assert any("made for GeForce Nobody: its energy is missing" in warning for warning in both.warnings)
    assert both.document()["costs"]["of"] == ["GeForce GTX 980 (0)"] and "costs_of_others" not in document


@pytest.fixture(scope="module")
def both(folder):
    """A GPU with a table and one without; nothing says what they did together."""
    return eprof.load(*counted(folder, "GeForce GTX 980 (0)"), *counted(folder, "Tesla K20c (1)"), cache=False)


def test_a_table_named_for_all_is_assumed_for_the_gpu_of_another(both):
    energy = both.energy("gtx980")
    marks = dict(zip(energy.counts.rows.device, energy.split.row_marks & int(Mark.ASSUMED), strict=True))
    assert {device: bool(mark) for device, mark in marks.items()} == {
        "GeForce GTX 980 (0)": False,
        "Tesla K20c (1)": True,
    }
    assert any("the counts are from Tesla K20c: every energy rests" in warning for warning in energy.warnings)


def test_a_question_is_asked_of_each_gpu(both):
    energy = both.energy()
    alone = [gpu.what_if("pi0=0.5") for gpu in energy.gpus]
    answer = energy.what_if("pi0=0.5")
    assert answer.change_j == pytest.approx(sum(of_gpu.change_j for of_gpu in alone))
    assert all(f"{gpu.costs.constant_power_w / 2:.3g} W" in answer.says for gpu in energy.gpus)
    moved = energy.what_if("setting=1000/3500")
    assert "Tesla K20c (1): as it is" in moved.says
    with pytest.raises(UsageError, match=r"write setting=CORE/MEMORY"):
        energy.what_if("nothing=1")


def test_a_report_that_is_read_back_prices_each_gpu_as_before(both, folder):
    energy = both.energy()
    path = folder / "saved.json"
    path.write_bytes(export.to_json(energy.document()))
    again = eprof.load(path).energy()
    assert again.energy_j == pytest.approx(energy.energy_j)
    assert {gpu.costs.name for gpu in again.gpus} == {"gtx980", "estimated"}


def test_what_is_of_one_gpu_says_so(both):
    with pytest.raises(UsageError, match=r"time components is of one GPU, and these logs are of GeForce GTX 980 and"):
        both.energy(by_component=True)
    with pytest.raises(UsageError, match=r"eprof tune is of one GPU"):
        both.energy().check_one_gpu("eprof tune")
    with pytest.raises(MeterError, match=r"but the logs are of 2 devices"):
        both.energy(metered_j=100.0)
    with pytest.raises(UsageError, match=r"^Tesla K20c: --setting 1000/3500 is one of a cost table"):
        both.energy(setting="1000/3500")
    with pytest.raises(UsageError, match=r"--efficiency is for simulated devices"):
        both.energy(efficiency=0.5)


def test_screens_name_whose_prices_are_whose(both):
    document = both.energy().document()
    trust = trust_of(View(document)).text
    assert "Prices (GeForce GTX 980): gtx980 at" in trust and "Prices (Tesla K20c): from the data sheet" in trust
    page = html(document)
    assert "Costs: gtx980 (GeForce GTX 980)" in page and "Costs: estimated (Tesla K20c)" in page


@pytest.mark.parametrize("names", [REAL["k20c and 1080 Ti"]])
def test_rows_name_the_gpu_by_its_number_only_where_two_are_alike(names):
    if not all((NVPROF / name).exists() for name in names):
        pytest.skip("needs real logs")
    view = View(eprof.load(*(NVPROF / name for name in names)).energy().document())
    assert {view.where(kernel) for kernel in view.kernels} == {"Tesla K20c", "GeForce GTX 1080 Ti"}
    for device in view.document.devices:
        device.name = "Tesla K20c"
    assert [view.where(kernel) for kernel in view.kernels] == [kernel.device for kernel in view.kernels]


def test_a_difference_pays_each_kernel_by_its_own_gpu(both):
    energy = both.energy()
    slower = both.slowed(2.0).energy()
    found = compare([energy], [slower])
    expected = [after.energy_j - before.energy_j for before, after in zip(energy.gpus, slower.gpus, strict=True)]
    assert sorted(kernel.change_j for kernel in found.typed.kernels) == pytest.approx(sorted(expected))
    alone = [profile.energy(estimate=False) for profile in (both, both)]
    (gate,) = compare(alone[:1], alone[1:], fail_above=["5%"]).typed.gates
    assert gate.why_not == "no cost table prices what ran on Tesla K20c (1); choose one with --costs"
    assert [costs.name for costs in found.typed.old.prices] == [gpu.costs.name for gpu in energy.gpus]

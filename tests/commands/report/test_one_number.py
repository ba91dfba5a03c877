"""One number, one meaning: what lists, the table and a kernel's card say of it; and no more is saved than was metered."""

import re

import pytest
from conftest import ROOT

import eprof
from eprof.commands.report.advice import _levers, what_to_try
from eprof.commands.report.page import html, kernels, table
from eprof.commands.report.view import View
from eprof.profile.document import document


def plain(markup):
    return re.sub("<.*?>", "", str(markup)).replace("\u202f", " ")


def test_where_constant_power_is_modelled_a_kernel_has_the_same_joules_everywhere():
    energy = eprof.load(ROOT / "samples" / "logs" / "simulated" / "fmm.txt").energy("jetson-tk1")
    view = View(document(energy))
    rows = {row.name: row for row in kernels.section(view).content["rows"]}
    card = kernels.of_one(view).content
    first, *others = table.section(view).content["rows"]
    assert card["name"] == first.name == "v_multiply"
    listed = plain(rows["v_multiply"].amount)
    assert listed.startswith("7.31 mJ")
    assert plain(card["facts"][0][1]) == plain(dict(first.cells)["main"]) == listed
    assert card["facts"][0][0] == "Energy above constant power"
    assert not any("onstant power" in label or "power" in label for label, _ in card["facts"][1:])
    assert [plain(dict(row.cells)["main"]) for row in others] == [plain(rows[row.name].amount) for row in others]


@pytest.mark.parametrize("joules", [5.0, 20.0])
def test_what_is_metered_bounds_what_is_saved_where_idle_time_may_be_in_it(real_log, joules):
    """Kernels take 112 ms, and none runs for 926 ms more: gaps of 681 ms save their share of the mean power at most."""
    view = View(document(eprof.load(real_log("k20c-gpu-trace.csv")).energy(metered_j=joules)))
    changes = list(_levers(view))
    most = [max(change.saves, change.most or 0.0, *(change.ends or ())) for change in changes]
    assert changes and max(most) == pytest.approx(joules * 0.681 / (0.112 + 0.926), rel=2e-3)
    assert all(change.ends[0] == 0 for change in changes if "gap" in change.act)
    assert "(66 % of" in plain(what_to_try(view).text)


def test_the_script_shows_of_one_kernel_what_its_page_says(opener, tmp_path):
    log = ROOT / "samples" / "logs" / "simulated" / "fmm.txt"
    energy = eprof.load(log, kernels=["v_multiply"]).energy("jetson-tk1")
    (tmp_path / "one.html").write_text(html(document(energy)), encoding="utf-8")
    page = opener(tmp_path / "one.html").page
    text = page.locator("#table").inner_text().replace("\u202f", " ")
    assert "Above constant" in text and "7.31 mJ" in text and "39.7 mJ" not in text
    assert "7.31 mJ" in page.locator("#one-facts").inner_text().replace("\u202f", " ")
    opener.close()

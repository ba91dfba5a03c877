"""The package as users of Python and of notebooks meet it."""

import html.parser
import re
import subprocess
import sys
from pathlib import Path

import pytest

import eprof
from eprof.base.errors import EprofError

LOGS = Path(__file__).parents[1] / "golden" / "logs"
VOID = {"br", "meta"}


@pytest.fixture(scope="module")
def old():
    return eprof.load(LOGS / "old.csv", LOGS / "old-times.csv")


@pytest.fixture(scope="module")
def new():
    return eprof.load(LOGS / "new.csv", LOGS / "new-times.csv")


class Tags(html.parser.HTMLParser):
    """The tags of a piece of HTML, closed in their order, and its text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.words = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_tab_offers_the_api_before_anything_is_imported():
    """And what it offers is there."""
    code = "import sys, eprof; print(*dir(eprof)); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, has_numpy = done.stdout.splitlines()
    assert {"load", "run", "diff", "Profile", "Energy", "Difference"} <= set(names.split())
    assert has_numpy == "False"
    assert all(getattr(eprof, name) for name in names.split())


def test_every_object_is_shown_in_a_line(old, new):
    energy = old.energy("gtx680")
    difference = eprof.diff(energy, new.energy("gtx680"))
    parts = [
        old.logs[0],
        old.counted[0],
        old.counted[0].launches,
        old.counts(),
        energy.costs,
        energy.table,
        energy.split,
    ]
    objects = [old, energy, difference, difference.changes, energy.what_if("pi0=0.5"), *parts]
    for shown in map(repr, objects):
        assert len(shown) < 80 and shown.isprintable() and re.fullmatch(r"<\w+ .*>", shown)
    assert "4 kernels" in repr(old) and "gtx680" in repr(energy)


def test_a_long_title_takes_no_joules_from_a_repr(old):
    from msgspec.structs import replace

    profile = replace(old, title="/home/" + 200 * "x" + "/silu")
    energy = profile.energy("gtx680")
    shown = repr(energy)
    assert len(shown) < 80 and f"{energy.energy_j:.3g} J, 4 kernels, gtx680" in shown and "silu'" in shown
    assert "silu': 4 kernels" in repr(profile)


def test_a_hostile_name_stays_in_its_line_and_is_no_tag(old):
    from msgspec.structs import replace

    hostile = replace(old, title="a\n<script>\x1b[31m" * 20)
    assert len(repr(hostile)) < 80 and repr(hostile).isprintable()
    assert "<script" not in hostile.energy("gtx680")._repr_html_()


def test_a_notebook_shows_headline_bar_and_table(old, new):
    energy = old.energy("gtx680")
    for shown in (energy, eprof.diff(energy, new.energy("gtx680"))):
        page = Tags(shown._repr_html_())
        kinds = {tag for tag, _ in page.tags}
        assert page.open == [] and {"b", "table"} <= kinds
        assert not kinds & {"script", "style", "link", "img", "iframe"}
        assert not any(name.startswith("on") or name in ("src", "href") for _, attrs in page.tags for name in attrs)
        assert any("step" in word for word in page.words)
        assert any("background-color:#" in attrs.get("style", "") for _, attrs in page.tags)


def test_the_bar_of_a_notebook_is_whole(old):
    page = Tags(old.energy("gtx680")._repr_html_())
    widths = [re.search(r";width:([\d.]+)%$", attrs["style"]) for tag, attrs in page.tags if tag == "span"]
    assert sum(float(width[1]) for width in widths if width) == pytest.approx(100, abs=0.01)


def test_without_prices_a_notebook_says_how_to_get_them(old):
    assert "Three ways to joules" in old.energy(estimate=False)._repr_html_()
    declined = old.energy("none")._repr_html_()
    assert "No energy is shown, as --costs none asks" in declined and "Three ways" not in declined


def test_only_gpus_with_a_data_sheet_are_told_to_be_estimated(tmp_path, old):
    """What is advised can be done: an estimate needs the data sheet, or watts."""
    assert "(--costs estimated)" in " ".join(old.energy(estimate=False).warnings)
    assert old.energy("estimated").energy_j
    log = tmp_path / "new.csv"
    log.write_text((LOGS / "old.csv").read_text().replace("Tesla K20c", "Tesla K99x"))
    unknown = eprof.load(log, capability="3.5")
    said = " ".join(unknown.energy(estimate=False).warnings)
    assert 'eprof costs --estimate "Tesla K99x" --tdp-w WATTS -o FILE' in said
    with pytest.raises(EprofError):
        unknown.energy("estimated")


def test_the_repr_of_a_priced_profile_shows_its_joules():
    profile = eprof.load(LOGS / "old.csv", LOGS / "old-times.csv")
    energy = profile.energy("gtx680")
    assert energy.energy_j == energy.document()["energy_j"]["total"]
    assert energy.time_s == energy.document()["time_s"]
    assert f"{energy.energy_j:.3g} J" in repr(energy)
    assert profile.energy_j == profile.energy().energy_j is not None
    assert profile.energy("none").energy_j is None

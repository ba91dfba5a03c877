"""The HTML report as text: safety, sums, marks, wording, budgets. What needs a browser is in test_report_browser.py."""

import base64
import gzip
import hashlib
import itertools
import json
import re
import sys
from functools import partial
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest
import report_support as support
from conftest import ROOT, SHARED

import eprof
from eprof.base import kernels
from eprof.base.text import cut, visible
from eprof.base.vocabulary import Mark
from eprof.commands.report.headline import headline
from eprof.commands.report.page import html, script
from eprof.commands.report.view import View
from eprof.show import amounts, blocks, html_page, numbers
from eprof.show.amounts import AT_LEAST
from eprof.show.html_page import asset
from eprof.show.numbers import percent, plain, quantity, signed_percent, whole

N = "\u202f"


class Page(HTMLParser):
    """Tags, attributes and text of a page, and the text of each script and style."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.raw, self.words = [], [], []
        self._inside = None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("script", "style"):
            self._inside = (tag, dict(attributes))
            self.raw.append([self._inside, ""])

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data):
        if self._inside:
            self.raw[-1][1] += data
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split(" "))

    def of(self, tag, **wanted):
        return [a for t, a in self.tags if t == tag and all(a.get(key) == value for key, value in wanted.items())]

    @property
    def data(self):
        return next(json.loads(text) for (_, a), text in self.raw if a.get("type") == "application/json")


@pytest.fixture(scope="module")
def pages():
    """The page of each case, made once."""
    made = {}

    def page(case):
        if case not in made:
            text = html(support.CASES[case]())
            made[case] = (text, Page(text))
        return made[case]

    return page


every_case = pytest.mark.parametrize("case", support.CASES)


# ---- safety


@every_case
def test_policy_names_exactly_the_style_and_the_script(pages, case):
    text, page = pages(case)
    policy = page.of("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    executed = [(tag, body) for (tag, attributes), body in page.raw if attributes.get("type") != "application/json"]
    assert sorted(tag for tag, _ in executed) == ["script", "style"]
    for tag, body in executed:
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    assert text.index("charset") < text.index("Content-Security-Policy") < text.index("<title>")


@every_case
def test_no_styles_handlers_or_links_out(pages, case):
    _, page = pages(case)
    for tag, attributes in page.tags:
        for name, value in attributes.items():
            assert name != "style", (tag, value)
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src", "action", "xlink:href"):
                assert value.startswith("#"), (tag, name, value)
    assert not page.of("img")
    assert not page.of("link")
    assert not page.of("iframe")


def test_the_page_names_no_address(pages):
    for case in ("fmm", "no_costs", "one"):
        assert "http" not in pages(case)[0].replace("http-equiv", "")


def test_script_never_writes_markup():
    script = asset("report.js")
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacent",
        "document.write",
        "eval(",
        "new Function",
        'setAttribute("style',
    ):
        assert word not in script


def test_hostile_strings_stay_text(pages):
    text, page = pages("hostile")
    scripts = page.of("script")
    assert len(scripts) == 2
    assert not page.of("svg", onload="window.hacked=1")
    assert page.data["heads"]
    names_sent = page.data["names"]
    assert [page.data["heads"][head] + tail for head, tail in zip(names_sent[::2], names_sent[1::2], strict=True)] == [
        visible(kernel["name"]) for kernel in support.hostile()["kernels"]
    ]
    assert "{{7*7}}" in page.text
    assert "49" not in page.of("button", **{"data-kernel": "2"})[0]["title"]
    text.encode("utf-8")


def test_json_is_safe_between_script_tags():
    value = {"a": "</script><!--\u2028\u2029&", "b": None}
    written = script.text(value)
    assert "<" not in written and ">" not in written and "\u2028" not in written
    assert json.loads(written) == value
    with pytest.raises(ValueError):
        script.text(float("nan"))


@every_case
def test_nothing_unknown_reaches_the_page(pages, case):
    _, page = pages(case)
    assert not re.search(r"\b(NaN|nan|None|undefined|inf|Infinity)\b", page.text)
    for tag, attributes in page.tags:
        for value in attributes.values():
            assert not re.search(r"\b(NaN|nan|None|undefined)\b", value or ""), (tag, value)


# ---- numbers


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (12.4, "J", "12.4 J"),
        (0.689, "J", "689 mJ"),
        (5.56, "J", "5.56 J"),
        (3.24e-10, "J", "324 pJ"),
        (0, "J", "0 J"),
        (999.6e-3, "s", "1.00 s"),
        (0.9996, "J", "1.00 J"),
        (12345.0, "s", "12 300 s"),
        (-0.0125, "J", "−12.5 mJ"),
        (12.25, "W", "12.3 W"),
        (1.02e9, "", "1.02 G"),
        (372.0, "", "372"),
        (12.0, "B", "12 B"),
        (1e-20, "J", "0.0000100 fJ"),
    ],
)
def test_quantity(value, unit, text):
    assert quantity(value, unit) == text.replace(" ", N)


def test_plain_whole_percent():
    assert [plain(x) for x in (0, 57.4, 0.0123, 1.24, 12345.0)] == ["0", "57.4", "0.0123", "1.24", f"12{N}300"]
    assert plain(1.2e9) == f"1.20{N}G"
    assert (whole(4980), whole(12345)) == ("4980", f"12{N}345")
    shares = {
        0: "0",
        0.0861: "8.6",
        0.83: "83",
        0.0001: "<~0.1",
        0.0995: "10",
        0.9999: ">~99.9",
        0.997: "99.7",
        1.0: "100",
    }
    assert {share: percent(share) for share in shares} == {x: f"{t.replace('~', N)}{N}%" for x, t in shares.items()}
    assert (signed_percent(0.031), signed_percent(-0.045)) == (f"+3.1{N}%", f"−4.5{N}%")


# ---- names


@pytest.mark.parametrize(
    ("name", "short", "base"),
    [
        ("void axpy<float, 4>(float*, int)", "axpy<float, 4>", "axpy"),
        ("kernel(int, float (*)(int))", "kernel", "kernel"),
        ("U (near field, P2P)", "U (near field, P2P)", "U (near field, P2P)"),
        ("(anonymous namespace)::go(int)", "(anonymous namespace)::go", "(anonymous namespace)::go"),
        ("void a::b<c<int>>::run<3>(x<y>)", "a::b<c<int>>::run<3>", "a::b::run"),
        ("sgemm_128x128_nn", "sgemm_128x128_nn", "sgemm_128x128_nn"),
        ("()", "()", "()"),
        ("", "", ""),
        ("<<<", "<<<", "<<<"),
        (")", ")", ")"),
    ],
)
def test_names(name, short, base):
    assert kernels.short(name) == short
    assert kernels.base(name) == base


def test_long_names_are_cut_in_the_middle():
    text = cut("abcdefghij" * 10, 20)
    assert len(text) == 20 and text.startswith("abc") and text.endswith("hij") and "…" in text


# ---- headline


@pytest.mark.parametrize(
    ("case", "starts", "contains"),
    [
        ("fmm", "15.7 J predicted in 1.60 s: 69 % constant power, ", "DRAM"),
        ("missing", "At least ", "70 % constant power"),
        ("missing_above", "At least ", "% DRAM"),
        ("data_bound", "6.40 J predicted in 30.0 ms: 57 % DRAM, ", "L2"),
        ("compute_bound", "13.6 J predicted in 150 ms: ", "FP64"),
        ("no_time", "At least ", "DRAM"),
        ("time_only", "1.66 J of constant power (", "for 245 ms), and work that was not counted"),
        ("no_costs", "6 kernels profiled: ", "from and to DRAM counted in 245 ms"),
        ("no_costs_no_time", "6 kernels profiled: ", "instructions"),
        ("time_only_no_costs", "6 kernels take 245 ms", "no work was counted"),
        ("zero", "Nothing that was counted", "costs energy"),
        ("empty", "0 kernels were profiled", "nothing"),
    ],
)
def test_headline(case, starts, contains):
    sentence = headline(View(support.CASES[case]())).text.replace(N, " ")
    assert sentence.startswith(starts)
    assert contains in sentence
    assert sentence.endswith(".")


@every_case
def test_without_a_meter_nothing_was_used(pages, case):
    text = pages(case)[1].text
    assert not re.search(r"\bused\b", text)
    # Neither a figure without a number nor a word of a meter.
    assert ("Against the meter" in text) == (case == "measured")


def test_the_error_against_the_meter_is_signed(pages):
    assert "<b>+3.1</b>&#8239;%" in pages("measured")[0]
    assert "not measured" not in pages("measured")[1].text


# ---- bars add up


def _bars(page):
    """Each stacked bar: the widths and ends of its rectangles, in per cent."""
    bars, current = [], None
    for tag, attributes in page.tags:
        if tag == "svg" and "class" in attributes:
            current = [] if (attributes.get("class") or "").startswith("bar") else None
            if current is not None:
                bars.append((attributes, current))
        elif (
            tag == "rect"
            and current is not None
            and (attributes.get("class") or "").startswith("c-")
            and "x" in attributes
        ):
            current.append((float(attributes["x"].rstrip("%")), float(attributes["width"].rstrip("%"))))
    return bars


def _section(page, anchor):
    """The tags of one section of a page."""
    tags = iter(page.tags)
    first = next(tag for tag in tags if tag[0] == "section" and tag[1].get("id") == anchor)
    return SimpleNamespace(tags=[first, *itertools.takewhile(lambda tag: tag[0] != "section", tags)])


@pytest.mark.parametrize("case", ["fmm", "missing", "one", "all_marks", "some_time", "hostile", "two_devices"])
def test_segments_touch_and_fill_the_bar(pages, case):
    tall = [rects for attributes, rects in _bars(pages(case)[1]) if attributes["class"] == "bar tall"]
    assert tall
    for rects in tall:
        end = 0.0
        for x, width in rects:
            assert x == pytest.approx(end, abs=1e-3)
            end = x + width
        assert end == pytest.approx(100, abs=1e-2)


@pytest.mark.parametrize("case", ["fmm", "fifty", "missing", "no_costs"])
def test_kernel_bars_are_to_scale(pages, case):
    document = support.CASES[case]()
    amounts = [
        kernel["energy_j"]["total"] if document["costs"] else kernel["time_s"] for kernel in document["kernels"][:20]
    ]
    bars = _bars(_section(pages(case)[1], "kernels"))
    drawn = [sum(width for _, width in rects) for attributes, rects in bars if attributes["class"] == "bar"]
    assert len(drawn) == len(amounts) and max(drawn) == pytest.approx(100, abs=0.02)
    for amount, width in zip(amounts, drawn, strict=True):
        assert width == pytest.approx(100 * amount / amounts[0], abs=0.02)


def test_the_first_bar_is_split_as_the_document(pages):
    document = support.fmm()
    energy = document["energy_j"]
    first, second = [rects for attributes, rects in _bars(pages("fmm")[1]) if attributes["class"] == "bar tall"]
    assert first[0][1] == pytest.approx(100 * energy["constant"] / energy["total"], abs=6e-3)
    data = sum(width for _, width in second[-4:])
    assert data == pytest.approx(100 * energy["data"] / (energy["data"] + energy["computation"]), abs=2e-2)


def _where(text):
    """The section on where the energy goes, as HTML."""
    return text[text.index('<h2 id="h-where">') :].partition("</section>")[0]


def test_constant_power_alone_is_no_share_of_a_total_that_lacks_the_rest(pages):
    document = support.time_only()
    section = _where(pages("time_only")[0])
    joules = quantity(document["energy_j"]["constant"], "J")
    assert "100" not in re.findall(r"(\d+)" + N + "?%", re.sub(r"<rect[^>]*>|<svg x=[^>]*>", "", section))
    assert f'<tspan x="8" y="34">{joules}</tspan>' in section
    assert f"at least {joules}: Constant power, and parts that are not known" in section
    assert section.count('class="open"') == 1


def test_bars_of_a_lower_bound_have_an_open_end(pages):
    assert _where(pages("missing")[0]).count('class="open"') == 2
    assert 'class="open"' not in _where(pages("fmm")[0])


# ---- the packed table


def _unpacked(column):
    figures, written, powers, exceptions = column
    return [
        None
        if power == "!"
        else exceptions.get(
            str(at), int(written[at * figures : (at + 1) * figures]) * 10.0 ** (ord(power) - ord("N") - figures + 1)
        )
        for at, power in enumerate(powers)
    ]


def test_every_column_of_thousands_reads_the_same_as_the_document():
    document, text = support.page_of_thousands()
    data = Page(text).data
    for name, price in (("fp32_fma", 58.0e-12), ("dram_read", 377.0e-12)):
        for kernel, value in zip(document["kernels"], _unpacked(data["counts"][name]), strict=True):
            cell = kernel["counts"][name]
            assert quantity(value, "") == quantity(cell["value"], "")
            assert quantity(value * price, "J") == quantity(cell["energy_j"], "J")
    sent = _unpacked(data["numbers"]["total"])
    assert sum(sent) == pytest.approx(document["energy_j"]["total"], rel=1e-5)
    assert "power" not in data["numbers"] and "constant" not in data["numbers"]


@pytest.mark.parametrize("value", [None, 0.0, 1.0, 9.9996, 999.96, 1e-15, 123456789.0, 6.02e23, 0.00012345])
@pytest.mark.parametrize("price", [None, 278.2e-12])
def test_packing_one_number(value, price):
    column = json.loads(script.column([value, 1.0], price))
    back = _unpacked(column)[0]
    if value is None or value == 0:
        assert back == value
    else:
        assert quantity(back, "") == quantity(float(f"{value:.3e}"), "") or float(f"{back:.2e}") == float(
            f"{value:.2e}"
        )


def test_energies_are_sent_where_they_do_not_follow_from_the_price():
    document = support.fmm()
    document["kernels"][0]["counts"]["integer"]["energy_j"] *= 2
    data = Page(html(document)).data
    assert list(data["energies"]) == ["integer"]
    assert Page(html(support.fmm())).data["energies"] == {}


# ---- marks


def test_a_lower_bound_says_so_everywhere(pages):
    text, page = pages("missing")
    total = quantity(support.missing()["energy_j"]["total"], "J")
    assert page.text.count(AT_LEAST.strip(N)) > 20
    assert f"At least {total} predicted" in page.text
    assert 'class="least"' in text
    assert "Special functions, DRAM write (not counted)" in page.text
    assert "Tensor (no price)" in page.text
    assert 'class="open"' in text
    assert re.search(r'<sup title="missing, assumed">!\?</sup>', text)


def test_every_energy_carries_its_marks(pages):
    text, page = pages("all_marks")
    rows = re.findall(r'<tr><th scope="row" class="k-name">.*?</tr>', text, re.S)
    assert len(rows) == 6
    for row in rows:
        for kind, cell in re.findall(r'<td class="k-(\w+)">(.*?)</td>', row, re.S):
            assert kind == "whole" or "<sup " in cell
    for word, sign in (("estimated", "~"), ("simulated", "s"), ("assumed", "?")):
        assert f">{word}</span>" in text
        assert f'<b class="m">{sign}</b> {word}: ' in text


def test_page_and_terminal_use_one_alphabet():
    for mark in (Mark.ESTIMATED, Mark.ASSUMED, Mark.SIMULATED):
        sign = amounts.LETTERS[int(mark)]
        assert blocks.signs(int(mark)) == sign
        assert blocks.legend(int(mark)).startswith(f"{sign} ")


def test_the_meaning_of_simulated_is_the_one_of_the_guide():
    """Callgrind simulates caches of a program that runs; Oclgrind a whole device. The words are true of both."""
    meaning = dict(amounts.legend(int(Mark.SIMULATED)))["s"].removeprefix("simulated: ")
    assert "caches" in meaning and "device" in meaning
    for guide in ("cli.md", "counters.md"):
        assert meaning in (ROOT / "docs" / guide).read_text()


def test_no_marks_no_legend():
    document = support.document([support.kernel("k", {"fp32_fma": 1e9, "fp32_other": 0.0}, 0.1)])
    document["costs"]["charges"]["l1_read"]["marks"] = []
    document["costs"]["charges"]["l1_write"]["marks"] = []
    del document["what_if"]  # an answer is always an estimate
    text = html(document)
    assert 'class="signs"' not in text
    assert "<sup" not in text


def test_a_price_that_is_assumed_does_not_make_the_count_assumed():
    view = View(support.fmm())
    assert view.words["l1_read"].energy.marks
    assert not view.words["l1_read"].value.marks


# ---- cases


def test_no_costs_shows_counts_and_no_joules(pages):
    text, page = pages("no_costs")
    assert "no cost table" in page.text
    assert not re.search(rf"\d{N}m?J", page.text)
    assert '<h2 id="h-where">' not in text
    assert "Which kernels take the time" in page.text


def test_no_time_splits_only_what_is_known(pages):
    _, page = pages("no_time")
    assert "constant power is not known" in page.text
    assert len([1 for attributes, _ in _bars(page) if attributes["class"] == "bar tall"]) == 1
    assert not page.of("svg", **{"class": "wedge"})


def test_several_devices_have_a_column(pages):
    assert [a["data-key"] for a in pages("two_devices")[1].of("th", scope="col") if "data-key" in a][:2] == [
        "name",
        "device",
    ]
    assert not [a for a in pages("fmm")[1].of("th", scope="col") if a.get("data-key") == "device"]


def test_one_kernel_has_no_tools(pages):
    text, page = pages("one")
    assert 'id="tools"' not in text
    assert "lud_internal" in page.text


def test_kernels_of_thousands_are_grouped_by_name():
    _, text = support.page_of_thousands()
    assert text.count("<details") == 20
    assert "not drawn" in text
    assert "Template instances of one name" in text


def test_every_warning_input_and_price_is_on_the_page():
    document = support.fmm(warnings=tuple(f"warning number {at}" for at in range(150)))
    page = Page(html(document))
    assert "150 warnings" in page.text
    for at in range(150):
        assert f"warning number {at}" in page.text
    for entry in document["inputs"]:
        assert entry["path"] in page.text and entry["sha256"] in page.text
    for charge in document["costs"]["charges"].values():
        assert charge["why"] in page.text
    for count in document["counts"].values():
        assert count["how"][0]["formula"] in page.text
    assert "eprof report 'logs/fmm metrics.csv'" in page.text


def test_sections_without_data_are_left_out(pages):
    assert [a["id"] for a in pages("fmm")[1].of("section")] == [
        "where",
        "kernels",
        "table",
        "kernel",
        "limits",
        "clocks",
        "whatif",
        "trust",
        "method",
        "words",
    ]
    assert [a["id"] for a in pages("empty")[1].of("section")] == ["method"]


# ---- accessibility that text can show


def test_structure(pages):
    _, page = pages("fmm")
    assert page.of("html", lang="en") and page.of("main") and page.of("nav")
    assert len(page.of("h1")) == 1
    assert len(page.of("h2")) == len(page.of("section"))
    assert page.of("a", **{"class": "skip"})
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for attributes, _ in _bars(page):
        assert attributes.get("aria-label") or attributes.get("aria-hidden")


# ---- budgets


def _size(text):
    return len(text.encode()), len(gzip.compress(text.encode(), 9))


@pytest.mark.parametrize(("case", "raw", "zipped"), [("fmm", 105_000, 30_000), ("fifty", 180_000, 40_000)])
def test_sizes(pages, case, raw, zipped):
    size = _size(pages(case)[0])
    assert size[0] < raw and size[1] < zipped, size


def test_size_of_thousands():
    size = _size(support.page_of_thousands()[1])
    assert size[0] < 570_000 and size[1] < 142_000, size


def test_own_script_and_style():
    assert len(asset("report.js").encode()) < 20_000
    assert len(asset("report.css").encode()) < 17_000


def calls_of(work):
    """How many Python functions `work` calls."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_twice_the_kernels_are_twice_the_work():
    """Not four times: nothing is asked of all kernels for each of them, not even in one call."""
    document = support.many(240)
    html(document)
    parts = [{**document, "kernels": document["kernels"][:number]} for number in (60, 120, 240)]
    calls = [calls_of(partial(html, part)) for part in parts]
    assert calls[2] - calls[1] < 2.05 * (calls[1] - calls[0])


# ---- trust, phases


def test_a_fitted_table_says_how_far_it_is_known(pages):
    _, page = pages("fitted")
    whole_energy = support.fmm()["energy_j"]["total"]
    ends = numbers.span(0.93 * whole_energy, 1.06 * whole_energy, "J")
    assert f"predicted, {ends}" in page.text and f"({ends})" in page.text
    assert f"14.5{N}% mean error on programs left out" in page.text
    assert "fp64_instruction: trust their sum" in page.text
    assert "core_mhz is 852 here, the fit saw 900 to 1380" in page.text
    assert "power_w is" not in page.text
    assert f"90{N}% of 30 refits" in page.text


def test_what_the_energy_rests_on_adds_up(pages):
    """Everything is estimated and assumed; simulated are the counts, not the time."""
    rests = re.search(r"What the known energy rests on</h3>(.*?)</section>", pages("all_marks")[0], re.S)[1]
    energy = support.all_marks()["energy_j"]
    assert rests.count(f">100{N}%<") == 2
    assert f">{percent((energy['computation'] + energy['data']) / energy['total'])}<" in rests


def test_phases_stand_with_their_numbers(pages):
    text, page = pages("phases")
    assert "The groups add up to the whole." in page.text
    assert [a["id"] for a in page.of("section")][1] == "phases"
    assert support.HOSTILE[0] in page.text and text.count("<script") == 2


def test_templates_that_cannot_be_kept_are_used_all_the_same(tmp_path, monkeypatch):
    kept = html_page._Kept(str(tmp_path / "gone"))
    monkeypatch.setattr(html_page, "_compiled", lambda: kept)
    environment = html_page.templates.__wrapped__()
    assert environment.get_template("page.html") is not None and not (tmp_path / "gone").exists()


# ---- intervals


def with_intervals(groups=None):
    """The FMM, with an interval of 10 % around every kernel."""
    made = support.fitted()
    made["interval_j"]["groups"] = groups or {}
    for kernel in made["kernels"]:
        energy = kernel["energy_j"]["total"]
        kernel["interval_j"] = [0.9 * energy, 1.1 * energy]
    return made


def test_every_kernel_bar_has_a_whisker_and_says_its_ends():
    made = with_intervals()
    page = html(made)
    assert page.count('class="wh"') == 3 * len(made["kernels"])
    assert f"</svg>90{N}% interval</li>" in page
    labels = [a["aria-label"] for a in Page(page).of("svg") if "aria-label" in a]
    for kernel in made["kernels"]:
        ends = numbers.span(*kernel["interval_j"], "J")
        assert any(f", {ends} (" in label for label in labels)
    assert 'class="wh"' not in html(support.fmm())


def test_a_whisker_stays_on_the_page():
    ends = [float(x) for x in re.findall(r'class="wh" x="([\d.]+)%" y="5"', html(with_intervals()))]
    assert ends and max(ends) == 100


@pytest.mark.parametrize(("case", "name"), [("data_bound", "DRAM"), ("compute_bound", "FP64")])
def test_what_the_prices_do_not_tell_is_not_the_headline(case, name):
    made = support.CASES[case]()
    group = name.lower()
    joules = View(made).groups[group].value
    texts = {}
    for low in (0.9, 0.0):
        groups = {group: [low * joules, 1.5 * joules]}
        made["interval_j"] = {"share": 0.9, "replicas": 30, "groups": groups}
        texts[low] = headline(View(made))
    assert name in texts[0.9].text and "either" not in texts[0.9].text
    assert f"the largest part is either {name} (0 to " in texts[0.0].text


def test_a_lower_bound_that_the_prices_do_not_tell_is_at_least():
    made = support.CASES["data_bound"]()
    made["interval_j"] = {"share": 0.9, "replicas": 30, "groups": {"dram": [0.0, 2 * made["energy_j"]["data"]]}}
    made["energy_marks"]["total"] = ["missing"]
    text = headline(View(made)).text
    assert text.startswith("At least ") and "the largest part is either DRAM (0 to " in text


# ------------------------------------------------------------------------------------------- one number, said once


def page_of(log):
    path = SHARED / log
    if not path.exists():
        pytest.skip(f"needs the real log {path.name}, which is not part of this project")
    document = eprof.load(str(path)).energy().document()
    return document, re.sub(r"\s+", " ", Page(html(document)).text.replace(N, " "))


def test_idle_time_is_in_the_total_and_no_lower_bound_stands_beside_an_interval():
    document, text = page_of("traces/kineto/tracelens-h100-bert-small.json.gz")
    total = quantity(document["energy_j"]["total"] + document["gaps"]["energy_j"], "J").replace(N, " ")
    assert f"All {total} counted" in text and "Idle: no kernel runs" in text
    assert "≥" not in text.partition("Method and provenance")[0]


def test_a_meters_joules_are_on_the_card_where_nothing_is_priced():
    _, text = page_of("cpu/perf-csv-xeon-e5-2630v3-rapl.csv")
    assert "Energy 3.26 kJ measured" in text and "Mean power 72.2 W" in text


def test_what_one_can_change_comes_first_and_the_largest_group_is_named_not_its_largest_class():
    _, text = page_of("ncu/v100-miniweather-baseline.ncu-rep")
    first, _, last = text.partition("Nobody can do this")
    assert "What you can change" in first and "FP64 for free" in last and "FP64 for free" not in first
    assert "Most above constant power: FP64, 448 mJ of 1.06 J." in text
    assert "Computing and caches: FP64, FP32," in text  # which the heading names


def test_a_speck_without_a_price_makes_no_lower_bounds():
    _, text = page_of("nvprof/gtx1080ti-cuda8-metrics-summary.csv")
    assert "≥" not in text and "the table's default, as the log tells no clocks" in text

"""The HTML report in a real browser (playwright with the system's Chromium); skipped where there is none."""

import math
import re
from functools import cache
from pathlib import Path

import pytest
import report_support as support
from browser_support import N

import eprof
from eprof.commands.report.page import html
from eprof.show import numbers


@cache
def many():
    """More kernels than the page draws, built once; not to be changed."""
    return support.many(500)


CASES = {**support.CASES, "many": many}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The file of each case, written once."""
    folder = tmp_path_factory.mktemp("reports")
    made = {}

    def find(case):
        if case not in made:
            made[case] = folder / f"{case}.html"
            text = support.page_of_thousands()[1] if case == "thousands" else html(CASES[case]())
            made[case].write_text(text, encoding="utf-8")
        return made[case]

    return find


@pytest.mark.parametrize(("words", "scheme"), [(("--costs", "gtx580", "--costs", "i7-950"), "dark"), ((), "light")])
def test_the_page_of_roofline(opener, tmp_path, words, scheme):
    """It loads under its policy, fits every width, and is light in print."""
    from eprof import cli

    logs = Path(__file__).parents[3] / "samples" / "logs" / "invented"
    inputs = [] if words else [str(logs / "tk1-fmm-counters.csv"), str(logs / "tk1-fmm-times.csv")]
    with pytest.raises(SystemExit) as stopped:
        cli.main(["roofline", *inputs, *words, "-q", "-o", str(tmp_path / "r.html")])
    assert stopped.value.code == 0
    shown = opener(tmp_path / "r.html", color_scheme=scheme)
    shown.fits(1180, 760, 390)
    assert shown.page.locator(".plot").count() == 3
    shown.page.click("#theme")
    shown.page.emulate_media(media="print")
    assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opener.close()


@pytest.fixture
def view(opener, files):
    """Open a case; at the end, nothing may have gone wrong."""
    yield lambda case, *arguments, **options: opener(files(case), *arguments, **options)
    opener.close()


STILL = ["fmm", "no_costs", "all_marks", "two_devices", "some_time"]


@pytest.mark.parametrize("case", [*support.CASES, "many"])
def test_loads_clean_and_fits_a_phone(view, case):
    shown = view(case, width=390)
    # A kernel's cause stands below its name, not beside it a letter a line.
    heights = shown.page.evaluate("[...document.querySelectorAll('.first tbody tr')].map(row => row.offsetHeight)")
    assert max(heights, default=0) < 140
    shown.fits(390)
    assert not re.search(r"\b(NaN|None|undefined)\b", shown.page.evaluate("document.body.innerText"))
    assert shown.page.evaluate("typeof window.hacked") == "undefined"


@pytest.mark.parametrize("case", STILL)
def test_the_script_draws_what_the_page_had_and_it_fits_a_desk(view, case):
    still = view(case, scripts=False)
    shown = view(case)
    same_as_still(shown, still)
    shown.fits(1180, 760)


def same_as_still(live, still):
    """The first rows and the first kernel, as written by Python, stay the same when the script takes over."""
    live_rows, still_rows = (shown.page.locator("#kernels-table tbody tr").all_inner_texts() for shown in (live, still))
    assert live_rows == still_rows
    live.page.locator("#kernels-table tbody button").first.click()
    for selector in ("#one-facts", "#one-panels", "#one-message", "#one-name"):
        assert _plain(live.page.locator(selector).inner_html()) == _plain(still.page.locator(selector).inner_html())


def _plain(markup):
    """Markup without differences of space, of parts of a per cent of a length, and of empty labels."""
    markup = re.sub(r'(width|height|y|x)="([\d.]+)%?"', lambda m: f'{m[1]}="{float(m[2]) + 0.01:.0f}"', markup)
    markup = re.sub(
        r"<rect ([^>]*)>", lambda m: "<rect " + " ".join(sorted(re.findall(r'[\w-]+="[^"]*"', m[1]))) + ">", markup
    )
    return re.sub(r"\s+", " ", markup.replace("<small></small>", "").replace("> <", "><")).replace(" <", "<").strip()


def test_nodes_and_heap_of_thousands(view):
    """Also when they are sorted by time: forty rows are in the page at a time."""
    shown = view("thousands", fresh=True)
    shown.page.locator("th[data-key=time] button").click()
    assert len(shown.column(0)) == 40
    assert shown.page.evaluate("document.querySelectorAll('*').length") < 6000
    assert shown.page.evaluate("performance.memory ? performance.memory.usedJSHeapSize : 0") < 30e6


def test_the_script_writes_numbers_as_python_does(view):
    shown = view("fifty")
    document = support.fifty()
    shown.page.locator("th[data-key=total] button").click()
    shown.page.locator("th[data-key=total] button").click()
    energies = [cell.replace("?", "") for cell in shown.column(1)]
    expected = [numbers.quantity(kernel["energy_j"]["total"], "J") for kernel in document["kernels"]]
    assert [energy for energy in energies] == expected[: len(energies)]
    powers = [cell.removesuffix("?") for cell in shown.column(6)]
    assert powers == [numbers.quantity(kernel["power_w"], "W") for kernel in document["kernels"]][: len(powers)]


def test_sorting(view):
    shown = view("fmm")
    header = shown.page.locator("th[data-key=total]")
    assert header.get_attribute("aria-sort") == "descending"
    names = shown.column(0)
    header.locator("button").click()
    assert header.get_attribute("aria-sort") == "ascending"
    assert shown.column(0) == names[::-1]
    shown.page.locator("th[data-key=name] button").click()
    assert header.get_attribute("aria-sort") is None
    assert shown.column(0) == sorted(names)
    shown.page.locator("th[data-key=time] button").click()
    times = [kernel["time_s"] for kernel in support.fmm()["kernels"]]
    assert shown.column(5) == [numbers.quantity(value, "s") for value in sorted(times, reverse=True)]


def test_filter_sum_and_running_share(view):
    shown = view("fmm")
    shown.page.fill("#filter", "FFT")
    shown.until("document.querySelectorAll('#kernels-table tbody tr').length === 1")
    kernel = next(one for one in support.fmm()["kernels"] if "FFT" in one["name"])
    energy, share = kernel["energy_j"]["total"], kernel["energy_j"]["total"] / support.fmm()["energy_j"]["total"]
    expected = f"1 of 6 kernels, {numbers.quantity(energy, 'J')}? ({numbers.percent(share)})"
    assert shown.text("#count") == expected.replace(N, " ")
    shown.page.fill("#filter", ".*(")
    shown.until("document.querySelector('#kernels-table tbody').textContent.startsWith('No name')")
    assert shown.text("#count").startswith("0 of 6 kernels, 0 J")
    shown.page.fill("#filter", "")
    shown.until("document.querySelectorAll('#kernels-table tbody tr').length === 6")
    assert shown.text("#count") == shown.text("#count").replace("undefined", "")
    assert shown.column(3)[-1].startswith("100")


def test_leaving_out_constant_power(view):
    shown = view("fmm")
    shown.page.check("#leave")
    document = support.fmm()
    above = [one["energy_j"]["computation"] + one["energy_j"]["data"] for one in document["kernels"]]
    assert [cell.removesuffix("?") for cell in shown.column(1)] == [
        numbers.quantity(value, "J") for value in sorted(above, reverse=True)
    ]
    assert shown.text("#count").startswith(f"6 of 6 kernels, {numbers.quantity(sum(above), 'J')}".replace(N, " "))
    assert "c-constant" not in shown.page.locator("#kernels-table tbody").inner_html()


CALLS = """version: 1
creator: callgrind-3.19.0
cmd: ./a
positions: instr
events: Ir Dr Dw
ob=/a
fn=main
0x10 4 0 1
cfn=work
calls=3 0x40
0x14 30 5 0
fn=work
0x40 30 5 0
totals: 34 5 1
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("case", ["fmm", "calls"])
def test_nothing_that_is_left_out_is_in_any_column_nor_in_what_is_copied(opener, tmp_path, case, scheme):
    made = support.fmm()
    if case == "calls":
        (tmp_path / "callgrind.out.1").write_text(CALLS)
        made = eprof.load(tmp_path / "callgrind.out.1", time=["main=2", "work=10"]).energy("icelake-sp").document()
    (tmp_path / "r.html").write_text(html(made), encoding="utf-8")
    shown = opener(tmp_path / "r.html", color_scheme=scheme)
    heads = shown.page.locator("#kernels-table thead th").all_inner_texts()
    assert shown.page.is_checked("#leave") is (case == "calls"), "constant power of cores in use is assumed"
    shown.page.uncheck("#leave")
    whole = {head: shown.column(place) for place, head in enumerate(heads)}
    shown.page.check("#leave")
    above = {head: shown.column(place) for place, head in enumerate(heads)}
    above_j = {
        at: math.fsum(kernel["energy_j"][part] or 0.0 for part in ("computation", "data"))
        for at, kernel in enumerate(made["kernels"])
    }
    order = sorted(above_j, key=lambda at: -above_j[at])
    for place, at in enumerate(order):
        kernel = made["kernels"][at]
        assert _number(above["Energy"][place]) == numbers.quantity(above_j[at], "J")
        assert _number(above["Power"][place]) == numbers.quantity(above_j[at] / kernel["time_s"], "W")
        if case == "calls":
            assert _number(above["With callees"][place]) == numbers.quantity(kernel["inclusive_above_j"], "J")
        elif above["pJ/flop"][place] != "–":
            less = float(_number(above["pJ/flop"][place])) / float(_number(whole["pJ/flop"][at]))
            assert less == pytest.approx(above_j[at] / kernel["energy_j"]["total"], rel=0.02)
    for head in ("Power", "With callees" if case == "calls" else "pJ/flop"):
        assert not set(above[head]) & set(whole[head]) - {"–"}
    shown.page.evaluate("navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }")
    shown.page.click("#copy")
    header, first, *_ = shown.page.evaluate("window.copied").splitlines()
    assert "Energy above constant power (J)" in header and "Power above constant power (W)" in header
    cells = dict(zip(header.split('","'), first.split('","'), strict=True))
    watts = above_j[order[0]] / made["kernels"][order[0]]["time_s"]
    assert float(cells["Power above constant power (W)"]) == pytest.approx(watts, rel=1e-3)
    facts = shown.text("#one-facts")
    assert "Energy above constant power" in facts and "Mean power" not in facts and "Energy per flop" not in facts
    shown.page.uncheck("#leave")
    assert {head: shown.column(place) for place, head in enumerate(heads)} == whole
    opener.close()


def _number(cell):
    return cell.strip("?~≥ \u202f")


def test_choosing_a_kernel_by_mouse(view):
    shown = view("fmm")
    shown.page.locator(".rows button.name").nth(1).click()
    name = support.fmm()["kernels"][1]["name"]
    assert shown.text("#one-name") == name
    assert shown.page.locator("#kernels-table tr[aria-current] button").get_attribute("title") == name
    shown.page.locator("#kernels-table tbody tr").nth(3).locator("td").nth(5).click()
    assert shown.text("#one-name") == support.fmm()["kernels"][3]["name"]
    assert "#kernel=" in shown.page.url


def test_choosing_kernels_by_keyboard(view):
    shown = view("many")
    kernels = many()["kernels"]
    shown.page.focus("#scroll")
    for _ in range(3):
        shown.page.keyboard.press("ArrowDown")
    assert shown.text("#one-name") == kernels[3]["name"]
    shown.page.keyboard.press("End")
    assert shown.text("#one-name") == kernels[-1]["name"]
    current = shown.page.locator("#kernels-table tr[aria-current]")
    assert current.get_attribute("aria-rowindex") == "501"
    assert shown.page.evaluate("document.activeElement.dataset.kernel") == "499"
    shown.page.keyboard.press("ArrowUp")
    assert shown.text("#one-name") == kernels[-2]["name"]
    shown.page.keyboard.press("Home")
    assert shown.text("#one-name") == kernels[0]["name"]
    visible = "(() => { const b = document.activeElement.getBoundingClientRect(), s = document.querySelector('#scroll')"
    assert shown.page.evaluate(
        visible + ".getBoundingClientRect(); return b.top >= s.top && b.bottom <= s.bottom; })()"
    )


def test_dots_choose_kernels(view):
    shown = view("fmm")
    name = support.fmm()["kernels"][1]["name"]
    shown.page.locator("#limits .area").first.locator("circle[data-kernel='1']").click()
    assert shown.text("#one-name") == name
    assert shown.page.locator("#limits circle[aria-current]").count() == 3
    shown.page.locator("#limits button.name").nth(2).focus()
    shown.page.keyboard.press("Enter")
    assert shown.text("#one-name") == support.fmm()["kernels"][2]["name"]


def test_dots_beyond_the_first_are_drawn_by_the_script(view):
    """Of 500 kernels the page draws 60; the script adds all, where Python would have put them."""
    shown = view("many")
    assert shown.page.locator("#limits .area").first.locator("circle").count() == 60
    paths = shown.page.eval_on_selector_all("#limits path.many", "all => all.map(one => one.getAttribute('d'))")
    assert len(paths) == 3 and all(400 < path.count("M") <= 500 for path in paths)
    for at, path in enumerate(paths):
        area = shown.page.locator("#limits .area").nth(at)
        circle = area.locator("circle[data-kernel='0']")
        first = [float(number) for number in path[1:].split("h", 1)[0].split(" ")]
        assert first[0] == pytest.approx(float(circle.get_attribute("cx").rstrip("%")), abs=0.2)
        drawn = float(area.get_attribute("height")) - 32
        assert 8 + drawn * first[1] / 100 == pytest.approx(float(circle.get_attribute("cy")), abs=0.4)


def test_sliders_say_what_would_be(view):
    shown = view("fmm")
    line = "#sliders p"
    assert shown.text(line).startswith("Modelled: 15.7 J") and shown.text(line).endswith("as it is.")
    shown.page.locator("#sliders input").first.fill("50")
    document = support.fmm()
    expected = document["energy_j"]["total"] - document["energy_j"]["constant"] / 2
    assert shown.text(line).startswith(f"Modelled: {numbers.quantity(expected, 'J')}".replace(N, " "))
    assert shown.text(line).endswith("less.")
    shown.page.locator("#sliders input").nth(2).focus()
    shown.page.keyboard.press("ArrowRight")
    assert shown.page.locator("#sliders output").nth(2).text_content() == f"101{N}%"


def test_heat_map_and_answers(view):
    shown = view("fmm")
    assert shown.page.locator(".heat td").count() == 28
    assert shown.page.locator(".heat td.now").count() == 1
    assert shown.page.locator(".heat td", has_text="★").count() == 1
    assert shown.page.locator("#whatif tbody tr").count() == 6
    shown.page.emulate_media(media="print")
    assert not shown.page.locator("#sliders").is_visible()


def test_phases(view):
    shown = view("phases")
    assert shown.page.locator("#phases tbody tr").count() == 2
    assert "add up to the whole" in shown.text("#phases .answer")


def test_tab_reaches_everything_once(view):
    shown = view("one")
    seen = []
    for _ in range(60):
        shown.page.keyboard.press("Tab")
        seen.append(
            shown.page.evaluate("(document.activeElement.id || document.activeElement.textContent).slice(0, 30)")
        )
        if seen[-1].startswith("eprof report"):
            break
    assert seen[0] == "Skip to the report"
    assert "theme" in seen and "scroll" in seen


def test_deep_links(view):
    name = support.fmm()["kernels"][2]["name"]
    shown = view("fmm", fragment="#kernel=" + name.replace(" ", "%20").replace("(", "%28"))
    assert shown.text("#one-name") == name
    shown.page.evaluate("location.hash = '#kernel=no such kernel'")
    assert shown.text("#one-name") == name
    other = view("two_devices", fragment="#kernel=X%20(P2L)&device=Tesla%20K20c%20(1)")
    assert other.text("#one-device") == "Tesla K20c (1)"


def test_groups_lead_to_the_table(view):
    shown = view("many")
    shown.page.locator("details summary").first.click()
    shown.page.locator("[data-filter]").first.click()
    base = shown.page.locator("[data-filter]").first.get_attribute("data-filter")
    assert shown.page.input_value("#filter") == base
    assert all(
        base in name
        for name in shown.page.evaluate(
            "[...document.querySelectorAll('#kernels-table tbody button')].map(b => b.title)"
        )
    )


def test_theme(view):
    shown = view("fmm", color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert shown.page.evaluate(background) == "rgb(14, 19, 26)"
    shown.page.click("#theme")
    assert shown.page.evaluate(background) == "rgb(245, 247, 249)"
    assert shown.text("#theme") == "Dark"
    for _ in range(5):  # under load, the browser hands on what a page stored only a moment after the page is gone
        shown.page.reload()
        shown.ready()
        if (kept := shown.page.evaluate(background)) == "rgb(245, 247, 249)":
            break
    assert kept == "rgb(245, 247, 249)"
    still = view("fmm", scripts=False, color_scheme="dark")
    assert still.page.locator("body").is_visible()


def test_without_script_charts_and_rows_are_there(view):
    shown = view("many", scripts=False)
    assert shown.page.locator("#kernels-table tbody tr").count() == 20
    assert shown.page.locator(".bar.tall").first.is_visible()
    assert shown.page.locator(".rows > details .bar").first.is_visible()
    assert "20 of 500 kernels" in shown.text("noscript p")
    assert not shown.page.locator("#theme").is_visible()


def test_a_small_report_prints_on_two_pages(view):
    """The first screen, where the energy goes, the kernels, their limits, and what it rests on; the rest is on screen."""
    shown = view("fmm")
    shown.page.emulate_media(media="print")
    printed = shown.page.pdf(format="A4")
    assert printed.count(b"/Type /Page\n") <= 2
    for section in ("where", "kernels", "limits", "trust", "method"):
        assert shown.page.locator(f"#{section}").is_visible()


def test_print_is_light_and_without_tools(view):
    shown = view("many", color_scheme="dark", width=760)
    shown.page.emulate_media(media="print")
    assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not shown.page.locator("nav").is_visible()
    assert not shown.page.locator("#tools").is_visible()
    assert shown.page.locator("#kernels .row").count() >= 20
    assert (
        shown.page.evaluate("getComputedStyle(document.querySelector('.row')).gridTemplateColumns.split(' ').length")
        == 4
    )


def test_hostile_names_do_nothing(view):
    shown = view("hostile")
    for at in range(len(support.HOSTILE)):
        shown.page.locator("#kernels-table tbody button").nth(at).click()
        chosen = shown.page.locator("#kernels-table tr[aria-current] button").get_attribute("title")
        assert shown.page.locator("#one-name").text_content() == chosen
    assert shown.page.evaluate("typeof window.hacked") == "undefined"
    assert shown.page.evaluate("document.images.length") == 0
    written = shown.page.evaluate("document.querySelector('#method').textContent")
    for text in support.HOSTILE[:5]:
        assert text.replace("\u2028", "\\u2028") in written  # what nobody sees is shown as an escape
    assert "{{7*7}}" in written


def test_copy_as_csv_guards_formulas(view):
    shown = view("hostile")
    shown.page.evaluate("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    shown.page.click("#copy")
    lines = shown.page.input_value("#csv").replace("\r\n", "\n").split("\n")
    assert lines[0].startswith('"Kernel","Device","Energy (J)","Share","Sum","Calls","Time (s)"')
    assert any(line.startswith('"\'=HYPERLINK(""//evil') for line in lines)
    assert any(line.startswith("\"'@SUM") for line in lines)
    assert '"assumed"' in lines[1]

"""The page of a difference in a real browser; skipped where there is none (see browser_support.py)."""

import pytest
from diff_support import energy, kernel
from report_support import HOSTILE

from eprof.commands.diff.compare import compare
from eprof.commands.diff.page import html

N = "\u202f"


def gemm():
    old = energy({"gemm_naive": kernel(), "init": kernel(time=0.01)}, title="old")
    new = energy(
        {"gemm_tiled": kernel(dram_read=1e9, shared_read=9e9, time=0.1), "init": kernel(time=0.012)}, title="new"
    )
    return [old], [new]


CASES = {
    "two": gemm,
    "hostile": lambda: (
        [energy({name: kernel() for name in HOSTILE}, title="<script>window.hacked=1</script>")],
        [energy({name + "x": kernel(time=0.2) for name in HOSTILE}, title='"><img src=x onerror=window.hacked=1>')],
    ),
    "many": lambda: (
        [energy({f"k{n}": kernel(time=0.3 + n / 1e4) for n in range(400)})],
        [energy({f"k{n}": kernel(time=0.31) for n in range(400)})],
    ),
    "nothing": lambda: ([energy({"k": kernel()}, priced=None)], [energy({"k": kernel(time=None)}, priced=None)]),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("diffs")
    for name, make in CASES.items():
        (folder / f"{name}.html").write_text(html(compare(*make()).typed), encoding="utf-8")
    return folder


@pytest.fixture
def view(opener, files):
    yield lambda case, **options: opener(files / f"{case}.html", **options)
    opener.close()


@pytest.mark.parametrize("case", CASES)
def test_loads_clean_and_fits(view, case):
    shown = view(case, width=390, color_scheme="dark")
    shown.fits(390)
    shown.page.emulate_media(color_scheme="light")
    shown.fits(1180)
    assert shown.page.evaluate("window.hacked === undefined && document.images.length === 0")


def test_sorts_filters_and_remembers_the_theme(view):
    shown = view("many")
    names = (
        "[...document.querySelectorAll('#kernels-table tbody tr:not([hidden])')].map(row => row.cells[0].dataset.full)"
    )
    assert shown.page.evaluate(names)[0] in ("k0", "k399")
    shown.page.click("#kernels-table thead th:first-child button")
    listed = shown.page.evaluate(names)
    assert listed == sorted(listed) and len(listed) == 200
    change = "#kernels-table thead th:nth-child(4)"
    shown.page.click(f"{change} button")
    assert shown.page.get_attribute(change, "aria-sort") == "descending"
    values = shown.page.evaluate(
        "[...document.querySelectorAll('#kernels-table tbody tr')].map(r => +r.cells[3].dataset.value)"
    )
    assert values == sorted(values, reverse=True)
    shown.page.fill("#filter", "K39")
    assert shown.text("#count").startswith(f"{len(shown.page.evaluate(names))} of 200")
    assert all("k39" in name for name in shown.page.evaluate(names))
    before = shown.page.evaluate("getComputedStyle(document.body).backgroundColor")
    shown.page.click("#theme")
    assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") != before


def test_without_a_script_everything_is_there(view):
    shown = view("two", scripts=False)
    assert "NEW uses" in shown.text("h1") and "less energy" in shown.text("h1")
    assert shown.page.locator("#changed .row").count() >= 4
    assert shown.page.locator("#kernels-table tbody tr").count() == 2
    assert "was gemm_naive" in shown.text("#kernels-table small")


def test_bars_start_at_a_common_zero(view):
    """On the page: less ends there, more begins there, and the bar of the whole is as long as the others together."""
    shown = view("two")
    boxes = shown.page.evaluate(
        "[...document.querySelectorAll('#changed svg.bar rect')].map(bar => {"
        "const box = bar.getBoundingClientRect(); return [box.left, box.right, bar.className.baseVal]})"
    )
    zeros = [right if kind == "w-less" else left for left, right, kind in boxes]
    assert max(zeros) - min(zeros) < 1
    lengths = [(right - left) * (-1 if kind == "w-less" else 1) for left, right, kind in boxes]
    assert abs(sum(lengths[:-1]) - lengths[-1]) < 2

"""Every page that eprof makes, with hostile texts wherever one can come from outside, in a real browser.

Nothing of a text may become an element, an attribute, a style, a script or a request, and nothing may hide in it.
"""

import json
from pathlib import Path

import msgspec
import pytest
import report_support as support
import validation_support as measured
from browser_support import View
from security_support import PAYLOAD, UNSEEN, poisoned, texts

from eprof import cli
from eprof.commands.diff import page as diff_page
from eprof.commands.diff.schema import Document
from eprof.commands.report import page
from eprof.commands.roofline import page as roofline
from eprof.commands.tune import page as tuning
from eprof.commands.tune import words as tuning_words
from eprof.commands.tune.document import Tune
from eprof.commands.validate import page as validation
from eprof.commands.validate import words as validation_words
from eprof.show import html_page

LOGS = Path(__file__).parents[2] / "samples" / "logs" / "invented"
TK1 = [str(LOGS / f"tk1-fmm-{what}.csv") for what in ("counters", "times")]
SETTINGS = {"benchmarks": 4, "cores": (500.0, 900.0, 1000.0), "memories": (500.0, 1000.0)}
PAGES = {
    "report": (page.html, ["report", *TK1, "--group", "regex:.=all", "--what-if", "dram=-20%"]),
    "diff": (
        lambda saved: diff_page.html(msgspec.convert(saved, Document)),
        ["diff", TK1[0], TK1[0], "--fail-above", "90%"],
    ),
    "roofline": (roofline.html, ["roofline", *TK1, "--costs", "gtx580", "--costs", "jetson-tk1"]),
    "validate": (
        lambda saved: html_page.page(measured.typed(saved), validation_words, validation),
        ["validate", "measured.csv", "--max-error", "900%", "--jobs", "1"],
    ),
    "tune": (lambda saved: html_page.page(msgspec.convert(saved, Tune), tuning_words, tuning), ["tune", *TK1]),
    "tune, measured": (
        lambda saved: html_page.page(msgspec.convert(saved, Tune), tuning_words, tuning),
        ["tune", "measured.csv", "--jobs", "1"],
    ),
}
# What only a text that was taken for markup, or a click on it, can have made.
MADE_OF_TEXT = """() => {
  const wrong = [...document.querySelectorAll('*')].filter(one =>
    one.matches('[data-canary], img, iframe, object, embed, base, form, link, template, foreignObject, use, image')
    || one.matches('[href]:not([href^="#"]), [src], [srcdoc], [action], [style*="("]')
    || (one.matches('meta[http-equiv]') && one.httpEquiv !== 'Content-Security-Policy')
    || one.getAttributeNames().some(name => name.startsWith('on')));
  const known = {SCRIPT: 2, STYLE: 1, TITLE: 99, META: 5};
  Object.entries(known).forEach(([tag, most]) => {
    if (document.getElementsByTagName(tag).length > most) wrong.push(document.getElementsByTagName(tag)[most]);
  });
  return wrong.map(one => one.outerHTML.slice(0, 200)).concat(window.hacked ? ['hacked'] : []);
}"""
ALL_TEXT = """() => [...document.querySelectorAll('body, body *')].flatMap(one =>
  [...one.getAttributeNames().map(name => one.getAttribute(name)),
   ...[...one.childNodes].filter(node => node.nodeType === 3 && one.tagName !== 'SCRIPT').map(node => node.data)]).join('\\n')"""
TOUCH = """() => {
    document.querySelectorAll('button, summary, input[type=checkbox], [data-kernel], tbody tr').forEach((one, at) => {
      if (at > 60) return;
      ['mouseover', 'focus', 'click'].forEach(kind => one.dispatchEvent(new MouseEvent(kind, {bubbles: true})));
    });
  document.querySelectorAll('input[type=search], input:not([type])').forEach(one => {
    one.value = '<img src=x onerror=window.hacked=1>'; one.dispatchEvent(new Event('input', {bubbles: true}));
  });
  document.querySelectorAll('input[type=range]').forEach(one => {
    one.value = one.min; one.dispatchEvent(new Event('input', {bubbles: true}));
  });
}"""


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """What each command writes as JSON, for inputs that mean no harm."""
    folder, patch = tmp_path_factory.mktemp("documents"), pytest.MonkeyPatch()
    measured.as_csv(measured.made(**SETTINGS, noise=0.02), folder / "measured.csv")
    patch.chdir(folder)
    patch.setenv("EPROF_CACHE", "off")
    made = {}
    for name, (_, words) in PAGES.items():
        with pytest.raises(SystemExit) as stopped:
            cli.main([*words, "-q", "-o", f"{len(made)}.json"])
        assert stopped.value.code == 0, name
        made[name] = json.loads((folder / f"{len(made)}.json").read_text())
    patch.undo()
    return made


def made_up(name):
    return support.kernel(name, support.counts_of(1e9, 0.5, len(name)), 0.1)


@pytest.mark.parametrize("name", PAGES)
def test_no_text_becomes_more_than_text(documents, name):
    """Without a browser: what the page is written as."""
    html = PAGES[name][0]
    hostile = poisoned(documents[name])
    assert texts(documents[name]) > 15
    written = html(hostile)
    assert "window.hacked" in written and "\\u202e" in written
    assert UNSEEN.findall(written) == []
    assert not any(word in written for word in ("<img", "<iframe", "<base", "<form", "<b data"))
    assert html(documents[name]).count("<script") == written.count("<script")
    written.encode("utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_in_a_browser_nothing_runs_nothing_is_fetched_nothing_hides(documents, opener, tmp_path, name):
    (tmp_path / "hostile.html").write_text(PAGES[name][0](poisoned(documents[name])), encoding="utf-8")
    shown = opener(tmp_path / "hostile.html")
    assert shown.page.evaluate(MADE_OF_TEXT) == []
    shown.page.evaluate(TOUCH)
    shown.page.evaluate("new Promise(done => setTimeout(done, 150))")  # the filter waits a moment
    assert shown.page.evaluate(MADE_OF_TEXT) == []
    text = shown.page.evaluate(ALL_TEXT)
    assert "onerror=window.hacked=1" in text and UNSEEN.findall(text) == []
    opener.close()  # asserts that there was no error, violation, request, dialog or window


def test_two_kernels_that_look_alike_are_told_apart():
    """Zero width, direction and look-alike spaces: the names on the page differ."""
    names = ["axpy", "ax\u200bpy", "axpy\u2060", "\u202aaxpy", "axpy\u3164", "ax\u00adpy", "axpy\ufe0f"]
    written = page.html(support.document([made_up(name) for name in names]))
    assert all(
        escape in written for escape in ("ax\\u200bpy", "axpy\\u2060", "\\u202aaxpy", "axpy\\u3164", "ax\\xadpy")
    )
    assert UNSEEN.findall(written) == []


def test_very_long_names_neither_stop_the_page_nor_fill_it():
    written = page.html(support.document([made_up("k" * 1_000_000), made_up("y")], warnings=("w" * 1_000_000,)))
    assert len(written) < 20 * 1_000_000


def test_the_check_itself_sees_what_it_looks_for(browser, tmp_path):
    """A page that does not escape, without a policy, fails all of the checks."""
    (tmp_path / "bad.html").write_text(
        f"<!doctype html><title>t</title><body><script>alert(1);open('about:blank')</script>{PAYLOAD}".replace(
            "\ud800", ""
        ).replace("http-equiv", "x"),
        encoding="utf-8",
    )
    context = browser.new_context()
    shown = View(context.new_page(), tmp_path / "bad.html")
    assert len(shown.page.evaluate(MADE_OF_TEXT)) > 3
    assert UNSEEN.findall(shown.page.evaluate(ALL_TEXT))
    assert {"dialog", "window", "request"} <= {one.partition(":")[0] for one in shown.wrong}
    context.close()

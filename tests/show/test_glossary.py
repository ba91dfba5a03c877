"""Pages explain eprof's own words: once each, in running text alone, and at their end."""

import re

from conftest import ROOT

from eprof.show.html_page import explained, words


def test_a_word_is_explained_where_it_first_stands_and_at_the_end():
    page = "<body><main><svg><text>speedup</text></svg><p>Speedup and speedup</p><b>greenups</b></main></body>"
    shown = explained(page)
    assert shown.count("<abbr") == 1 and '<abbr title="How many times faster' in shown
    assert ">Speedup</abbr> and speedup" in shown and "<svg><text>speedup</text></svg>" in shown
    assert re.findall("<dt>(.*?)</dt>", shown) == ["speedup"]


def test_no_word_is_explained_under_two_names():
    assert len(set(words().values())) == len(words())


def test_the_longer_word_wins_and_the_shorter_stays_for_later():
    shown = explained("<main><h1>Energy above constant power</h1><p>constant power</p></main>")
    assert re.findall(r"<abbr[^>]*>(.*?)</abbr>", shown) == ["above constant power", "constant power"]


def test_names_in_tags_code_and_data_stay_as_they_are():
    page = '<main><code>speedup</code><i title="speedup">x</i></main><script>"speedup"</script>'
    assert explained(page) == page


def test_the_glossary_of_the_documentation_is_that_of_the_pages():
    rows = re.findall(r"^\| (.*?) \| (.*) \|$", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)
    assert dict(rows[1:]) == words()

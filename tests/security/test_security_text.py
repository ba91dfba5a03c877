"""Hostile names on the terminal and in the files that people pass on: CSV, Markdown, JSON, a fitted table."""

import csv
import io
import json
import re

import pandas as pd
import pytest
import tomli
from msgspec import convert
from security_support import PAYLOAD, poisoned
from test_security_pages import PAGES, documents  # noqa: F401 - a fixture
from validation_support import typed

from eprof import cli
from eprof.base.text import in_code, in_markdown, printable
from eprof.commands.diff import files as diff_files
from eprof.commands.diff import terminal as console_diff
from eprof.commands.diff.schema import Document
from eprof.commands.fit import document as fit_words
from eprof.commands.report import files as report_files
from eprof.commands.report import terminal as console_report
from eprof.commands.roofline import words as roofline_words
from eprof.commands.tune import words as tuning_words
from eprof.commands.tune.document import Tune
from eprof.commands.validate import words as validation_words
from eprof.lab.fitting import table_text as tabletext
from eprof.show import console, export
from eprof.show.export import markdown

CONSOLES = {
    "report": console_report.text,
    "diff": lambda saved, **how: console_diff.text(convert(saved, Document), **how),
    "roofline": roofline_words.text,
    "validate": lambda saved, **how: console.text(validation_words.blocks(typed(saved), how["verbose"]), **how),
    "tune": lambda saved, **how: console.text(tuning_words.on_terminal(convert(saved, Tune), how["verbose"]), **how),
    "tune, measured": lambda saved, **how: console.text(
        tuning_words.on_terminal(convert(saved, Tune), how["verbose"]), **how
    ),
}
MARKDOWN = {
    "report": report_files.to_markdown,
    "diff": lambda saved: diff_files.to_markdown(convert(saved, Document)),
    "validate": lambda saved: markdown("# x", validation_words.blocks(typed(saved), True)),
    "tune": lambda saved: markdown("# x", tuning_words.blocks(convert(saved, Tune), True)),
}
JSON = {
    "report": export.to_json,
    "diff": export.to_json,
    "roofline": export.dumped,
    "tune": export.dumped,
}
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ud800-\udfff]")


def fit():
    """A document of `eprof fit` with hostile texts."""
    document = {
        "rows": 1, "benchmarks": 1, "settings": 1, "mapping": "m", "form": "f", "kind": "counts", "relative_voltages": True,
        "mean_absolute_error_percent": {"fit": 1.0, PAYLOAD: 2.0},
        "prices": [{"name": "p", "told": "told", "pj": 1.0, "low": 1.0, "high": 2.0}],
        "reference": {"core_mhz": 1.0, "memory_mhz": 1.0},
        "constant": {"power_w": 1.0, "low_w": None, "high_w": None}, "collinear": [["a", "b"]], "notes": ["n"],
    }  # fmt: skip
    return poisoned(document, ours=("told", "kind"))


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", CONSOLES)
def test_a_console_shows_escapes_and_obeys_none(documents, name, verbose):  # noqa: F811
    shown = CONSOLES[name](poisoned(documents[name]), verbose=verbose, width=300)
    assert RAW.findall(shown) == [] and "\\x1b" in shown and "\\u202e" in shown


def test_no_markup_of_rich_is_taken_from_a_name(documents):  # noqa: F811
    """Printed in colour: the only escape sequences are the consoles' own, and the markup is still there to read."""
    short = "[red]k[/red][link=//canary.invalid]l[/link]:smile:"
    for name, text in CONSOLES.items():
        shown = text(poisoned(documents[name], short), verbose=True, width=300)
        assert "[link=//canary.invalid]" in shown or "[red]k" in shown, name
        assert "\U0001f604" not in shown


def test_the_console_of_a_fit():
    shown = console.text(fit_words.blocks(fit()), width=300)
    assert RAW.findall(shown) == [] and "\\x1b" in shown and "[red]markup[/red]" in shown


def test_errors_quote_names_as_escapes(tmp_path, capsys):
    names = ["evil\x1b]0;owned\x07\u202e.csv", "cr\rlf\nx.csv", "c1\x9b31m.csv", "bad\udcff.csv"]
    for name in names:
        for words in (
            ["report", name],
            ["diff", name, name],
            ["fit", name],
            ["costs", f"./{name}.toml"],
            ["roofline", name],
        ):
            with pytest.raises(SystemExit) as stopped:
                cli.main([words[0], *(str(tmp_path / word) for word in words[1:])])
            said = capsys.readouterr().err
            assert stopped.value.code in (1, 2) and RAW.findall(said.rstrip("\n")) == [] and said.count("\n") == 1


def test_a_file_name_that_is_taken_for_an_option_is_quoted_too(capsys):
    with pytest.raises(SystemExit):
        cli.main(["report", "x.csv", "--evil\x1b]0;owned\x07"])
    assert RAW.findall(capsys.readouterr().err) == []


@pytest.mark.parametrize("name", MARKDOWN)
def test_markdown_says_names_and_does_nothing(documents, name):  # noqa: F811
    text = MARKDOWN[name](poisoned(documents[name])).decode()
    prose = re.sub("`[^`\n]*`", "", text.replace("<!-- -->", "").replace("<details>", "").replace("</details>", ""))
    prose = re.sub(r"<summary>\d+ (?:note|warning)s?</summary>", "", prose)
    assert RAW.findall(text) == [] and "<" not in prose
    assert not re.search(r"(?<!\\)\]\(", prose)  # a link
    assert not re.search(r"https?://|@\w", re.sub("`[^`\n]*`", "", text))
    tables = [line for line in text.split("\n") if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    assert len(tables) > 2 and len(set(widths)) <= 3, widths


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("v_multiply<float>", "v_multiply&lt;float>"),
        ("# head", "\\# head"),
        ("- item", "\\- item"),
        ("--fail-above", "--fail-above"),
        ("a|b\nc", "a\\|b c"),
        ("[x](//y) ![i](j)", "\\[x\\](//y) !\\[i\\](j)"),
        ("http://a www.b @c", "http:<!-- -->//a www.<!-- -->b @<!-- -->c"),
        ("_a_ __b__ c_d", "\\_a\\_ \\_\\_b\\_\\_ c_d"),
        ("&lt;b&gt; & c", "&amp;lt;b&amp;gt; & c"),
        ("kernel `a<b>|c` here", "kernel `a<b>\\|c` here"),
        ("`open", "\\`open"),
    ],
)
def test_markdown_of(text, written):
    assert in_markdown(text) == written


def test_code_in_markdown_ends_where_it_should():
    assert in_code("a`b|c\n\x1b") == "`ab\\|c \\x1b`"
    assert in_code("```") == "` `"


@pytest.mark.parametrize("start", ["=", "+", "-", "@", " =", "\t=", "\r=", "\n=", "\uff1d", "|", "%"])
def test_no_cell_is_a_formula(documents, start):  # noqa: F811
    name = f"{start}HYPERLINK(1)"
    assert export.harmless(name).startswith("'") and "\n" not in export.harmless(name)
    kernels = [{**one, "name": name} for one in documents["tune"]["kernels"]]
    hostile = convert({**documents["tune"], "program": name, "kernels": kernels}, Tune)
    text = export.to_csv(pd.DataFrame(hostile.records()), quoting=0)
    rows = list(csv.reader(io.StringIO(text.decode())))
    assert all(len(row) == len(rows[0]) for row in rows)
    assert not any(cell.strip()[:1] in "=@\uff1d|%" for row in rows for cell in row if cell)


@pytest.mark.parametrize("name", JSON)
def test_json_is_the_same_text_without_raw_characters(documents, name):  # noqa: F811
    hostile = poisoned(documents[name], PAYLOAD.replace("\ud800", "").replace("\u3164", ""))
    written = JSON[name](hostile)
    assert RAW.findall(written.decode()) == [] and json.loads(written) == hostile
    assert b"\\udcff" in export.dumped({"a": "bad\udcff"}, indent=2)  # a file name that is no Unicode


def test_a_fitted_table_holds_names_as_texts():
    assert tomli.loads(f"a = {tabletext.quoted(PAYLOAD)}")["a"].startswith("</title>")
    assert "\n" not in printable('x"\n[charge]\nfp32 = 0')


@pytest.mark.parametrize("text", ["axpy", "a b", "größe", "µ"])
def test_what_is_harmless_stays(text):
    assert printable(text) == text == export.harmless(text)

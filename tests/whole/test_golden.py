"""Whole documents are as they were committed: see `golden`, which also shows and rewrites them (`python -m tests.golden`)."""

import json

import pytest
from golden import CASES, DOCUMENTS, differences, document, golden, paths, rewrite

SHOWN = 30


@pytest.mark.parametrize("case", CASES)
def test_the_document_is_as_it_was(case, request):
    for path in paths(case):
        if not path.exists():
            pytest.skip(f"needs the real log {path.name}, which is not part of this project")
    old = golden(case)
    assert old is not None, f"no document yet: python -m tests.golden --rewrite {case}"
    lines = list(differences(old, document(case)))
    told = "\n".join(lines[:SHOWN])
    assert not lines, f"{len(lines)} fields differ; if they should: python -m tests.golden --rewrite {case}\n{told}"


def test_every_document_has_its_case():
    assert {path.stem for path in DOCUMENTS.glob("*.json")} == set(CASES)


def test_differences_are_told_by_their_path():
    old = {"a": [{"b": 1.0, "c": None}, {"b": 2}], "marks": ["missing"], "gone": True}
    new = {"a": [{"b": 1.0 + 1e-13, "c": 0.0}], "marks": ["missing", "assumed"], "came": 1}
    assert list(differences(old, new)) == [
        "a[0].c: null, now 0.0",
        'a[1]: {"b": 2}, now not there',
        'marks[1]: not there, now "assumed"',
        "gone: true, now not there",
        "came: not there, now 1",
    ]
    assert list(differences(old, old)) == []


@pytest.mark.parametrize(
    ("old", "new"), [(1.0, 1.0 + 1e-11), (0.0, 1e-300), (1, True), (None, 0), ("1", 1), ([], None)]
)
def test_what_is_not_the_same_differs(old, new):
    assert list(differences({"x": old}, {"x": new}))


def test_a_document_is_written_a_field_a_line_in_a_fixed_order(tmp_path, monkeypatch):
    monkeypatch.setattr("golden.DOCUMENTS", tmp_path)
    rewrite("x", {"b": [1.5, "é"], "a": {"d": None, "c": 1}})
    text = (tmp_path / "x.json").read_text()
    assert text.splitlines()[1:4] == [' "a": {', '  "c": 1,', '  "d": null']
    assert json.loads(text) == golden("x") and '"é"' in text

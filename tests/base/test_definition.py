"""The definition language: formulas, lines of entries, TOML that is none."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.base.errors import DefinitionError
from eprof.base.toml import CHOOSING, GROWING, Document, Formula, Node, line_of


def test_a_formula_knows_its_names_and_its_value():
    formula = Formula.parse("32 * (a - b) / 2 + 0.5")
    assert formula.names == {"a", "b"}
    assert formula({"a": 3, "b": 1}) == 32.5
    np.testing.assert_allclose(formula({"a": np.array([1.0, np.nan]), "b": 1.0}), [0.5, np.nan])
    with pytest.raises(KeyError):
        formula({"a": 1})


def test_formulas_of_counters_choose_the_least_and_the_most():
    formula = Formula.parse("max(0, min(a - 1, b, 3))", CHOOSING)
    assert formula.names == {"a", "b"}
    np.testing.assert_array_equal(formula({"a": np.array([0.0, 3.0, np.nan]), "b": 2.5}), [0, 2, np.nan])
    for text, besides in (
        ("min(a, b)", ()),
        ("min(a, b)", GROWING),
        ("min(a)", CHOOSING),
        ("log2(a)", CHOOSING),
        ("log2(a, b)", GROWING),
    ):
        with pytest.raises(ValueError, match="is not allowed in a formula"):
            Formula.parse(text, besides)
    with pytest.raises(ValueError, match="divides by zero"):
        Formula.parse("a / max(0, 0)", CHOOSING)


@pytest.mark.parametrize(
    "text",
    ["", "a +", "a ** 2", "f(a)", "a.b", "a[0]", "'a'", "True", "a if b else c", "a // b", "a % b", "lambda: 1", "a; b"]
    + [
        "__import__('os')",
        "a = 1",
        "(a, b)",
        "1j",
        "a < b",
        "not a",
        "-a",
        "a\nb",
        "(" * 500 + "a" + ")" * 500,
        "a+" * 2000 + "a",
    ],
)
def test_nothing_else_is_a_formula(text):
    with pytest.raises(ValueError):
        Formula.parse(text)


@settings(max_examples=50)
@given(st.text(max_size=40))
def test_any_text_is_a_formula_or_a_value_error(text):
    with suppress(ValueError):
        Formula.parse(text)


def test_a_long_chain_is_refused_or_works():
    try:
        formula = Formula.parse("+".join(["a"] * 900))
    except ValueError:
        return
    assert formula({"a": 1}) == 900


TEXT = """schema = 1
# alpha = "a comment"
[counter]
alpha = "x"
"beta gamma" = { slices = "s{}", expect = 4 }
[served]   # books
alpha = [
    { formula = "a", note = "n" },
    { formula = "b" },
]
gamma = [{ formula = "c" }, { formula = "d" }]
[[check]]
left = "a"
[[check]]
left = "b"
right = "c"
"""


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (("schema",), 1),
        (("counter",), 3),
        (("counter", "alpha"), 4),
        (("counter", "beta gamma"), 5),
        (("counter", "beta gamma", "expect"), 5),
        (("served", "alpha"), 7),
        (("served", "alpha", 0), 8),
        (("served", "alpha", 1), 9),
        (("served", "alpha", 1, "formula"), 9),
        (("served", "gamma", 1, "formula"), 11),
        (("check", 0), 12),
        (("check", 1), 14),
        (("check", 1, "right"), 16),
        (("nowhere",), 1),
        (("served", "nowhere"), 6),
    ],
)
def test_line_of(keys, line):
    assert line_of(TEXT, *keys) == line


def test_errors_carry_file_and_line(tmp_path):
    document = Document.parse(TEXT, "toy.toml")
    assert str(document.error("wrong.", "served", "alpha", 1)) == "toy.toml:9: wrong."
    with pytest.raises(DefinitionError, match=r"toy.toml:4: unknown key `alpha`; use one of: beta"):
        document.root["counter"].table(["beta"])
    with pytest.raises(DefinitionError, match=r"toy.toml:7: the formula uses `a`, which is not defined here; known: b"):
        Node(document, "a + b", ("served", "alpha")).formula(["b"])
    with pytest.raises(DefinitionError, match="`schema` must be a formula, written as a text, not 1"):
        document.root["schema"].formula([])
    with pytest.raises(DefinitionError, match=r"toy.toml:2: not valid TOML"):
        Document.parse("a = 1\nb = = 2\n", "toy.toml")
    with pytest.raises(DefinitionError, match="cannot be read"):
        Document.read(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"a = 1 # \xe9")
    with pytest.raises(DefinitionError, match="not UTF-8"):
        Document.read(tmp_path / "latin.toml")
    with pytest.raises(DefinitionError):
        Document.parse("a = " + "[" * 5000 + "]" * 5000, "deep.toml")


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_any_text_is_a_document_or_a_definition_error(text):
    with suppress(DefinitionError):
        Document.parse(text, "any")

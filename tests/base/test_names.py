"""Names of kernels and GPUs, and lists in words."""

import pytest

from eprof.base.errors import UsageError
from eprof.base.gpus import may_be_same, normal_label, normal_name
from eprof.base.kernels import base, own_name, selector, short
from eprof.base.labels import labels
from eprof.base.text import cut, few, listed, phrase, when

NAME = "void ns::axpy<float, 4>(float*, int)"


@pytest.mark.parametrize(
    "wanted",
    [
        NAME,
        "void ns::axpy<float, 4>",
        "ns::axpy<float, 4>",
        "ns::axpy",
        "axpy",
        "regex:^void",
        "regex:ax.y",
    ],
)
def test_a_kernel_is_selected_by_its_full_name_or_a_shorter_one(wanted):
    assert selector([wanted])(NAME)
    assert selector(["nothing", wanted])(NAME)


@pytest.mark.parametrize("wanted", ["ns", "xpy", "axpy<float>", "float", "regex:^ax", ""])
def test_a_part_of_a_name_selects_nothing(wanted):
    assert not selector([wanted])(NAME)


def test_mangled_names_are_selected_by_the_name_of_the_function():
    assert selector(["ns::axpy"])("_ZN2ns4axpyIfLi4EEEvPT_")
    assert selector(["axpy"])("_ZN2ns4axpyIfLi4EEEvPT_")


def test_what_is_no_regular_expression_is_refused():
    with pytest.raises(UsageError, match=r"-k regex:\(: not a regular expression"):
        selector(["regex:("])


def test_a_gpu_has_one_name_for_matching():
    assert normal_name("NVIDIA GeForce  GTX 580 (0)") == normal_name("GeForce GTX 580") == "geforce gtx 580"
    assert normal_label("NVIDIA A100 (1)") == "a100 (1)"
    assert may_be_same("Tesla V100-SXM2", "NVIDIA Tesla V100 SXM2 16GB")
    assert not may_be_same("Tesla V100", "Tesla K20c")
    assert not may_be_same("", "Tesla K20c")


def test_lists_in_words():
    assert [listed(words) for words in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert listed(["a", "b"], "or") == "a or b"
    assert few(["a", "b"], 2) == "a, b"
    assert few(["a", "b", "c"], 2) == "a, b and 1 more"
    assert few(["a", "b", "c"], 1, "kernels") == "a and 2 more kernels"
    assert few([], 3) == ""


@pytest.mark.parametrize(
    ("values", "text"),
    [((852.0, "MHz"), " at 852 MHz"), ((0.0, "MHz"), " at 0 MHz"), ((None, "MHz"), ""), ((1, ""), "")],
)
def test_a_phrase_of_what_is_not_known_says_nothing(values, text):
    assert phrase(" at {:g} {}", *values) == text
    assert when(text, "clocks") == ("clocks" if text else "")


def test_a_long_name_is_cut_in_the_middle():
    assert cut("abcdefghij", 10) == "abcdefghij"
    assert cut("abcdefghijk", 10) == "abcdef…ijk"


@pytest.mark.parametrize("behind", ["", " const", " const &", " volatile", " const noexcept", "&&"])
def test_qualifiers_of_a_member_go_with_its_parameters(behind):
    """C++ writes them behind the parameters: `SetInt::Find(int) const`."""
    name = f"SetInt::Find(int){behind}"
    assert (short(name), base(name), own_name(name)) == ("SetInt::Find", "SetInt::Find", "Find")
    assert selector(["Find"])(name)
    assert labels([name]) == ["SetInt::Find"]


@pytest.mark.parametrize("name", ["reconst", "a::const_sum", "ns::f(int)::noexcept_g"])
def test_words_of_a_name_that_look_like_qualifiers_stay(name):
    assert short(name) == name


def test_members_that_differ_by_a_qualifier_have_labels_of_their_own():
    assert len(set(labels(["A::at(int)", "A::at(int) const"]))) == 2

"""Which kernel is which: by hand, by name, by what names have in common."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eprof.base.errors import UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.labels import labels
from eprof.commands.diff.matching import ALONE, BARE, BY_HAND, NAME, SIMILAR, Kernel, match, ratio

HOSTILE = [
    "</script>",
    "=1+1",
    "a=b=c",
    "operator==(int)",
    "\x1b[31mred",
    "",
    "_Z",
    "_ZN",
    "_ZNI",
    "void ",
    "<<<",
    "(((",
    "_Z99x",
]


def pairs(matching):
    return {(one.old, one.new): one.how for one in matching.matches}


def kernels(*names, **more):
    number = max(1, len(names) - 1)
    return [Kernel(name, place=at / number, **more) for at, name in enumerate(names)]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("axpy", "axpy"),
        ("void ns::axpy<float, 4>(float*, int)", "ns::axpy"),
        ("ns::axpy", "ns::axpy"),
        ("_ZN2ns4axpyIfLi4EEEvPT_", "ns::axpy"),
        ("_Z4axpyPfi", "axpy"),
        ("_ZN12_GLOBAL__N_14axpyEi", "axpy"),
        ("void (anonymous namespace)::axpy(int)", "axpy"),
        ("a<b<c>>::d(int)", "a::d"),
        ("operator<<(int)", "operator<<"),
        ("_ZN3foo3barINS_9somethingELi3EE3bazEv", "foo::bar::baz"),
        ("_ZN3foo3barIZN1a1bEvEUlvE_E3bazEv", "foo::bar"),
    ],
)
def test_bare_names(name, found):
    assert bare(name).startswith(found)
    assert "<" not in bare(name).removeprefix("operator<<")


def test_equal_names_are_matched_wherever_they_stand():
    old, new = kernels("a", "b", "c"), kernels("c", "a", "b")
    assert pairs(match(old, new)) == {(0, 1): NAME, (1, 2): NAME, (2, 0): NAME}


def test_the_same_name_on_several_devices_is_matched_by_device():
    old = [Kernel("k", "GPU (0)"), Kernel("k", "GPU (1)")]
    assert pairs(match(old, old[::-1])) == {(0, 1): NAME, (1, 0): NAME}


def test_another_gpu_is_no_obstacle():
    assert pairs(match([Kernel("k", "K20c (0)")], [Kernel("k", "GTX 680 (0)")])) == {(0, 0): NAME}


def test_template_arguments_mangling_and_parameters_may_differ():
    old = kernels("void ns::axpy<float>(float*)", "gemv(int)")
    new = kernels("_ZN2ns4axpyIdEEvPT_", "gemv(int, int)")
    assert pairs(match(old, new)) == {(0, 0): BARE, (1, 1): BARE}


NN, TT = (f"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_32x6_{layout}_align1>" for layout in ("nn", "tt"))


def test_copies_that_a_compiler_made_of_a_function_are_that_function():
    pairs = [
        ("rec", "rec.constprop.0"),
        ("sweep.part.0.isra.1", "sweep"),
        ("work.lto_priv.2 (sb.c)", "work (sb.c)"),
        ("work (sa.c)", "work (sa.c)"),
        ("_Z3dotv.cold", "dot()"),
    ]
    old, new = ([Kernel(name) for name in names] for names in zip(*pairs, strict=True))
    made = match(old, new)
    assert [(pair.old, pair.new) for pair in made.matches] == [(at, at) for at in range(len(pairs))]
    assert {pair.how for pair in made.matches} == {BARE, NAME}


def test_names_that_a_profiler_cut_off_are_those_that_begin_so():
    """As nsys and ncu name them: parameters as T1 or as types, casts, an end that was cut."""
    cut = kernels(
        "void ns::Norm<float, (ns::Layout)2>(const T1 *, const ns::Da…",
        "void ns::Each<float, ns::Sigmoid<float>, (int)1, (i…",
        "void ns::Each<float, ns::Softplus<float>, (int)1,…",
        "void ns::Each<float, ns::Square<float>, (int)1,…",
    )
    whole = kernels(
        "void ns::Each<float, ns::Softplus<float>, 1, 4>(float*)",
        "void ns::Each<float, ns::Sigmoid<float>, 1, 4>(float*)",
        "void ns::Norm<float, (ns::Layout)2>(float const*, ns::Data<float> const*)",
    )
    expected = {(0, 2): BARE, (1, 1): BARE, (2, 0): BARE, (3, None): None}
    assert pairs(match(cut, whole)) == expected
    assert pairs(match(whole, cut)) == {(new, old): how for (old, new), how in expected.items()}


def test_of_names_that_were_cut_off_the_beginning_decides_before_launches_and_place():
    softplus, square = (f"void ns::Each<float, ns::{kind}<float>, (int)1,…" for kind in ("Softplus", "Square"))
    old = [Kernel(softplus, launches=8, place=0.0), Kernel(square, launches=2, place=1.0)]
    whole = Kernel("void ns::Each<float, ns::Softplus<float>, 1, 4>(float*)", launches=2, place=1.0)
    assert pairs(match(old, [whole])) == {(0, 0): BARE, (1, None): None}


def test_a_librarys_kernel_is_its_tile_and_layout_not_the_wrapper_of_all():
    old = [Kernel(f"{NN}(T1::Params)", launches=3), Kernel(f"{TT}(T1::Params)")]
    assert pairs(match(old, [Kernel(f"{NN}(Own::Params)")])) == {(0, 0): BARE, (1, None): None}
    assert pairs(match(old[1:] * 2, [Kernel(NN)])) == {(0, None): None, (1, None): None, (None, 0): None}
    assert pairs(match(old[:1], kernels(NN.replace("64x64", "128x64"), "b"), similar=True))[0, 0] == SIMILAR


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "void at::native::vectorized_gather_kernel<16, long>(char*)",
            "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)",
        ),
        ("Cijk_Ailk_Bjlk_SB_Bias_AS_MT64x16x16_MI16x16x1", "Cijk_Alik_Bljk_BBS_BH_Bias_AS_MT64x16x16_MI16x16x1"),
    ],
)
def test_kernels_of_a_library_that_do_something_else_are_not_alike(old, new):
    """Their names have 17 of 20 letters in common, or 14."""
    found = pairs(match(kernels(old, "a"), kernels(new, "b")))
    assert all(how is None for how in found.values())


def test_of_several_instances_the_most_alike_are_paired():
    old = kernels("k<float, 4>()", "k<double, 8>()")
    new = kernels("k<double, 16>()", "k<float, 2>()")
    assert pairs(match(old, new)) == {(0, 1): BARE, (1, 0): BARE}


LONG, OTHER = "a" * 400, "b" * 400


@pytest.mark.parametrize(
    ("old", "new", "common"),
    [
        (f"{LONG}xcx{OTHER}", f"{LONG}ycy{OTHER}", 801),
        (f"{LONG}x", f"{LONG}y", 400),
        (f"x{OTHER}", f"y{OTHER}", 400),
        (LONG + OTHER, LONG, 400),
        (LONG, LONG, 400),
        (LONG, OTHER, 0),
    ],
)
def test_long_names_are_as_alike_as_the_letters_that_they_share(old, new, common):
    assert ratio(old, new) == ratio(new, old) == pytest.approx(2 * common / (len(old) + len(new)))


def test_similar_names_need_a_similar_place_and_the_same_launches():
    assert pairs(match(kernels("gemm_naive"), kernels("gemm_tiled"))) == {(0, 0): SIMILAR}
    far = match([Kernel("gemm_naive", place=0.0)], [Kernel("gemm_tiled", place=0.9)])
    assert pairs(far) == {(0, 0): ALONE}
    often = match([Kernel("gemm_naive", launches=1)], [Kernel("gemm_tiled", launches=9)])
    assert pairs(often) == {(0, None): None, (None, 0): None}
    nearly = match([Kernel("compute_forces", launches=1)], [Kernel("compute_forces2", launches=9, place=1.0)])
    assert pairs(nearly) == {(0, 0): SIMILAR}
    assert nearly.matches[0].score > 0.9


@pytest.mark.parametrize(
    ("added", "is_matched"), [("_in_blocks_of_256", True), ("_in_blocks_of_256s", True), ("_in_blocks_of_1024s", False)]
)
def test_names_are_alike_from_11_of_20_common_letters_on(added, is_matched):
    """11 letters of `gather_rows` twice, over all letters of both."""
    assert (2 * 11 / (2 * 11 + len(added)) >= 0.55) == is_matched
    found = pairs(match(kernels("gather_rows"), kernels("gather_rows" + added)))
    assert found == {(0, 0): SIMILAR if is_matched else ALONE}


def test_a_library_makes_no_two_functions_alike():
    """Functions of Python have names of their own, in angles too."""
    assert bare("<genexpr>, Python") == "<genexpr>, Python"
    assert pairs(match(kernels("work, Python"), kernels("<genexpr>, Python"))) == {(0, 0): ALONE}
    assert pairs(match(kernels("gather_rows, libm"), kernels("gather_rows2, Python"))) == {(0, 0): ALONE}
    assert pairs(match(kernels("gather_rows, Python"), kernels("gather_rows2, Python"))) == {(0, 0): SIMILAR}


def test_unrelated_names_are_not_matched_but_of_one_kernel_each():
    assert pairs(match(kernels("stencil", "a"), kernels("u_p2p", "a"))) == {
        (1, 1): NAME, (0, None): None, (None, 0): None
    }  # fmt: skip
    assert pairs(match(kernels("stencil"), kernels("u_p2p"))) == {(0, 0): ALONE}
    assert pairs(match(kernels("stencil"), kernels("u_p2p"), ["stencil="])) == {(0, None): None, (None, 0): None}


def test_similarity_can_be_switched_off():
    found = match(kernels("gemm_naive", "k<1>()"), kernels("gemm_tiled", "k<2>()"), similar=False)
    assert all(one.how is None for one in found.matches)


def test_by_hand_wins_over_names():
    found = match(kernels("a", "b"), kernels("a", "b"), ["a=b"])
    assert pairs(found)[0, 1] == BY_HAND


def test_by_hand_finds_bare_names_and_names_with_equals_signs():
    old, new = kernels("void ns::f<1>(int)", "operator==(int)"), kernels("g(float)", "equal")
    found = pairs(match(old, new, ["f=g", "operator===equal"]))
    assert found == {(0, 0): BY_HAND, (1, 1): BY_HAND}


@pytest.mark.parametrize("form", [bare, own_name, lambda name: labels([name])[0]])
def test_by_hand_takes_every_name_that_a_screen_has(form):
    cut = "void phi::BNForwardInference<float, (common::DataLayout)2>(const T1 *, const phi::Cu…"
    names = [f"{NN}(T1::Params)", cut, "void at::native::vectorized_gather_kernel<16, long>(char*)"]
    for place, name in enumerate(names):
        found = pairs(match(kernels(*names), kernels("other", "b"), [f"{form(name)}=other"], similar=False))
        assert found.get((place, 0)) == BY_HAND or form(name) == "cutlass::Kernel" and place == 0


def test_by_hand_takes_labels_that_were_cut_and_the_names_of_its_own_error():
    names = [f"{NN}(T1::Params)", f"{NN.replace('nn', 'nt')}(T1::Params)"]
    assert pairs(match(kernels(*names), kernels("x"), ["cutlass s…gemm 64x64 nt=x"]))[1, 0] == BY_HAND
    with pytest.raises(UsageError) as caught:
        match(kernels(*names), kernels("x"), ["no=x"])
    for place, told in enumerate(re.findall("`([^`]+)`", str(caught.value))[1:]):
        assert pairs(match(kernels(*names), kernels("x"), [f"{told}=x"]))[place, 0] == BY_HAND


def test_by_hand_takes_labels_without_namespaces_however_they_were_cut():
    kinds = ("phi::FullFunctor<float, float>", "phi::ScaleFunctor<int, int>", "phi::ScaleFunctor<float, float>")
    names = [f"void phi::funcs::VectorizedElementwiseKernel<float, {kind}, (int)1, (i…" for kind in kinds]
    found = pairs(match(kernels(*names), kernels("x"), ["VectorizedElementwise…l<FullFunctor>=x"], similar=False))
    assert found[0, 0] == BY_HAND


def test_by_hand_leaves_a_kernel_alone():
    found = match(kernels("a", "b"), kernels("a", "b"), ["a=", "=a"])
    assert pairs(found) == {(1, 1): NAME, (0, None): None, (None, 0): None}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "write OLD=NEW"),
        ("x=b", "OLD has no free kernel `x`"),
        ("a=x", "NEW has no free kernel `x`"),
        ("k=b", "several"),
    ],
)
def test_by_hand_says_what_is_wrong(text, said):
    with pytest.raises(UsageError, match="--match") as caught:
        match(kernels("a", "k<1>()", "k<2>()"), kernels("b"), [text])
    assert said in str(caught.value)


def test_too_many_strangers_are_not_tried_one_by_one():
    found = match(kernels(*(f"a{n}" for n in range(300))), kernels(*(f"b{n}" for n in range(300))))
    assert "too many" in found.notes[0] and len(found.matches) == 600


NAMES = st.lists(
    st.one_of(st.text("abc_<>():", max_size=12), st.sampled_from(HOSTILE), st.text(max_size=6)), max_size=8
)


@settings(max_examples=40)
@given(NAMES, NAMES, st.booleans())
def test_every_kernel_is_matched_once(old, new, similar):
    found = match(kernels(*old), kernels(*new), similar=similar).matches
    assert sorted(one.old for one in found if one.old is not None) == list(range(len(old)))
    assert sorted(one.new for one in found if one.new is not None) == list(range(len(new)))
    for name in (*old, *new):
        assert isinstance(own_name(name), str)


@settings(max_examples=25)
@given(st.lists(st.text("abcdef", min_size=1, max_size=5), unique=True, min_size=1, max_size=6))
def test_a_log_with_itself_is_matched_by_name(names):
    assert pairs(match(kernels(*names), kernels(*names))) == {(at, at): NAME for at in range(len(names))}

"""Labels of kernels: distinct, short, and by the names that libraries go by. The names are from real logs."""

import inspect
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eprof.base.kernels import readable
from eprof.base.labels import WIDTH, fitted, labels, named_by

AT = "void at::native::vectorized_elementwise_kernel<"
CLOVER = "void clover::par_ranged1d_kernel<update_halo_kernel(int, field_type &, const int *)::[lambda(int) (instance {})]>(clover::Range1d, T1)"
REAL = [
    "ampere_sgemm_32x32_sliced1x4_tn",
    "ampere_sgemm_128x64_nn",
    "triton_poi_fused__unsafe_view_add_3",
    "triton_poi_fused__unsafe_view_mul_silu_2",
    "compute_tendencies_x_279_gpu",
    "compute_tendencies_x_309_gpu",
    "set_microphysics_tendency_cache__FILE_ClimaAtmos_jl_src_cache_microphysics_cache_jl_L1011",
    "set_microphysics_tendency_cache__FILE_ClimaAtmos_jl_src_cache_microphysics_cache_jl_L1012",
    "batched_transpose_16x64_pack_1x4_ediv_1x2_half",
    "batched_transpose_32x64_pack_2x4_ediv_1x2_half",
    "batched_transpose_64x16_pack_4x1_ediv_2x1_half",
    "igemm_bwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2_ta1x8x2x1_1x4x1x64_tb1x8x1x2_1x4x1x64_mh_gkgs",
    "igemm_bwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x64x32_wt32x32x8_ws1x1_wr1x2_ta1x8x2x1_1x4x1x64_tb1x4x1x2_1x8x1x32_mh_gkgs",
    "igemm_bwd_gtcx2_nhwc_bf16_bx0_ex1_bt64x128x32_wt32x32x8_ws1x1_wr2x1_ta1x8x1x1_1x4x1x64_tb1x8x1x2_1x4x1x64_mh_gkgs",
    "__kernel___forma_kernel__0__(float*, int, int, float*)",
    "__kernel___forma_kernel__0__(float*, int, int, float*, int, int, float*)",
    "vecCopy(double*, double*, double*, int, int)",
    "vecCopy(double*, double*, double*, int, int) [clone .kd]",
    "void InitializeMatrix_kernel<__half, (bool)1>(T1 *, int, int, int)",
    "void InitializeMatrix_kernel<float, (bool)1>(T1 *, int, int, int)",
    "void phi::funcs::VectorizedElementwiseKernel<float, phi::funcs::CudaSigmoidFunctor<float>, (int)1, …",
    "void phi::funcs::VectorizedElementwiseKernel<float, phi::ScaleFunctor<float, float>, (int)1, (int)1…",
    "void phi::funcs::VectorizedElementwiseKernel<int, phi::ScaleFunctor<int, int>, (int)1, (int)1, (int…",
    "_Z6vecAddIfEvPT_S1_S1_i",
    "_Z6vecAddIdEvPT_S1_S1_i",
    AT
    + "4, at::native::CUDAFunctor_add<float>, at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<float>)",
    AT + "(int)4, at::native::CUDAFunctor_add<float>, std::array<char *, (unsigned long)3>>(int, T2, T3)",
    *(CLOVER.format(instance) for instance in (1, 10, 11)),
]

LIBRARIES = {
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(T1::Params)": "cutlass sgemm 256x128 nn",
    "void Kernel2<cutlass_80_tensorop_s16816gemm_f16_128x64_64x3_nn_align8>(Params)": "cutlass s16816gemm f16 128x64 nn",
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_128x2_tn_align8>(T1::Params)": (
        "cutlass s161616gemm bf16 32x32 tn"
    ),
    "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::threadblock::MmaMultistage<cutlass::gemm::GemmShape<"
    "(int)128, (int)128, (int)16>, cutlass::transform::threadblock::PredicatedTileAccessIterator<cutlass::MatrixShape<"
    "(int)128, (int)16>, cutlass::half_t, cutlass::layout::RowMajor, (int)1>>>>(T1::Params)": (
        "cutlass gemm fp16 128x128x16"
    ),
    "void device_kernel<GemmUniversal<tuple<int, int, int, int>, CollectiveMma<MainloopSm90TmaGmmaWarpSpecialized<4, "
    "tuple<C<2>, C<1>, C<1>>, KernelTmaWarpSpecializedCooperative>, tuple<C<128>, C<256>, C<64>>, half_t, tuple<long, "
    "C<1>, long>, half_t>>>(Params)": "cutlass gemm fp16 128x256x64",
    "ampere_sgemm_32x32_sliced1x4_tn": "cublas sgemm 32x32 tn",
    "volta_h884gemm_128x128_ldg8_nn": "cublas h884gemm 128x128 nn",
    "maxwell_sgemmBatched_64x64_raggedMn_nn": "cublas sgemmBatched 64x64 nn",
    "ampere_fp16_s16816gemm_fp16_64x64_ldg8_f2f_stages_64x5_tn": "cublas fp16 s16816gemm fp16 64x64 tn",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas": (
        "cublas gemm bf16 64x64x64 tn"
    ),
    "sm90_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x256x32_warpgroupsize2x1x1_execute_segment_k_off_kernel__5x_cublas": (
        "cublas gemm tf32 128x256x32 nn"
    ),
    "enable_if<!T7, void>::type kernel<int, int, __half, __half, float, 0, 1, cublasGemvParamsEx<int, X<__half>, float>>(T9)": (
        "cublas gemv fp16"
    ),
    "void gemv2T_val<int, int, double, double, 128, 16, (bool)0, cublasGemvParams<X<double const>, double>>(T4)": (
        "cublas gemv double"
    ),
    "nvjet_sm100_tst_16x64_64x16_4x1_v_bz_TNN": "cublas nvjet tst 16x64 TNN",
    "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1": "cudnn scudnn 128x64 relu nn",
    "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warpsize2x2x1_g1_"
    "tensor16x8x8_alignc4_execute_kernel_cudnn": "cudnn fprop tf32 128x128x16",
    "Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN_LDSB0": "tensile gemm SB 64x16x32",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__reduce::ReduceAgent<float*, float*, float, int>, "
    "float*>(float*)": "thrust reduce",
    "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<thrust::cuda_cub::"
    "__uninitialized_fill::functor<thrust::device_ptr<float>, float>, unsigned long>>(float)": (
        "thrust uninitialized fill"
    ),
    "void cub::DeviceRadixSortOnesweepKernel<cub::Policy>(int)": "cub radix sort onesweep",
    "void cub::CUB_200600_500_NS::DeviceReduceSingleTileKernel<cub::CUB_200600_500_NS::DeviceReducePolicy<double>>(T2)": (
        "cub reduce single tile"
    ),
    AT + "4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)": "at elementwise add float",
    AT + "8, at::native::FillFunctor<c10::BFloat16>, std::array<char*, 1ul> >(int)": "at elementwise fill bf16",
    AT + "4, at::native::AUnaryFunctor<long, long, bool, at::native::(anonymous namespace)::CompareEqFunctor<long> >, "
    "std::array<char*, 2ul> >(int)": "at elementwise compare eq long",
    AT + "4, at::native::mse_kernel_cuda(at::TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda()#2}::"
    "operator()() const::{lambda(float, float)#1}, at::detail::Array<char*, 3> >(int)": "at elementwise mse float",
    "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, "
    "unsigned int, float, 4> >(T3)": "at reduce mean float",
    "triton_poi_fused_add_cos_sin_0": "triton_poi_fused_add_cos_sin_0",
    "void Kokkos::Impl::cuda_parallel_launch_local_memory<Kokkos::Impl::ParallelFor<Stream::Triad, "
    "Kokkos::RangePolicy<Kokkos::Cuda>, Kokkos::Cuda>>(T1)": "Kokkos for Stream::Triad",
}

NAMES = st.lists(st.sampled_from([*REAL, *LIBRARIES]) | st.text("ab1_<>(),: x", max_size=40), unique=True, max_size=12)


@given(NAMES, st.none() | st.integers(1, 80))
def test_no_two_kernels_look_alike(names, width):
    made = labels(names, width)
    assert len(set(made)) == len(names)
    assert labels(names * 2, width) == made * 2


@pytest.mark.parametrize("width", [24, 32, 40, 60])
def test_real_names_fit_and_stay_distinct(width):
    made = labels(REAL, width)
    assert max(map(len, made)) <= width
    assert len(set(made)) == len(REAL)


@given(NAMES)
def test_the_label_of_a_report_names_its_kernel(names):
    names = list(dict.fromkeys(names))
    for name, label in zip(names, labels(names, WIDTH), strict=True):
        assert name in named_by(label, names)


def test_operations_of_python_and_commands_are_no_templates():
    names = ["c[c < 0], numpy", "(a + b) / 2 < c, numpy", "./sort -n < in.txt > out.txt", "fill<int>"]
    assert labels(names) == [*names[:3], "fill"]


def test_a_label_that_a_terminal_cut_names_its_kernel():
    shown = dict(zip(REAL, fitted(labels(REAL, WIDTH), 24), strict=True))
    assert all(name in named_by(label, REAL) for name, label in shown.items())


@pytest.mark.parametrize(("name", "label"), LIBRARIES.items())
def test_kernels_of_libraries_have_their_own_name(name, label):
    assert labels([name]) == [label]


def test_template_arguments_and_parameters_go_unless_they_tell_two_apart():
    assert labels(["void ns::axpy<float, 4>(float*, int)", "reduce(int*)"]) == ["ns::axpy", "reduce"]
    assert labels(["void ns::axpy<float, 4>(float*)", "void ns::axpy<double, 4>(double*)"]) == [
        "ns::axpy<float>",
        "ns::axpy<double>",
    ]
    assert labels(["U (near field, P2P)", "V (M2L)"]) == ["U (near field, P2P)", "V (M2L)"]
    assert labels(["f(int, long)", "f(int, char)"]) == ["f(long)", "f(char)"]
    assert labels([CLOVER.format(1), CLOVER.format(10)]) == [
        "clover::par_ranged1d_kernel<update_halo_kernel::λ1>",
        "clover::par_ranged1d_kernel<update_halo_kernel::λ10>",
    ]


def test_what_is_common_is_cut_from_the_middle():
    assert labels(["compute_force_1249_gpu", "compute_force_2249_gpu"], 18) == [
        "compute_…_1249_gpu",
        "compute_…_2249_gpu",
    ]
    assert labels(["ns::deep::inside::kernel"], 10) == ["kernel"]


@pytest.mark.parametrize(
    ("names", "width", "shown"),
    [
        (("reduce-conflicts.txt", "reduce-free.txt"), 18, ["redu…conflicts.txt", "reduce-free.txt"]),
        (("run-of-the-baseline-version", "run-of-the-v2"), 18, ["run-of-the…version", "run-of-the-v2"]),
        (
            ("counters-old-2026-11-01.csv", "counters-new-2026-11-01.csv"),
            18,
            ["counters-old-….csv", "counters-new-….csv"],
        ),
    ],
)
def test_of_two_names_what_tells_them_apart_is_never_cut_out(names, width, shown):
    assert fitted(names, width) == shown


@given(st.lists(st.from_regex(r"run-[a-z]{3,9}-[a-z]{3,9}\.csv", fullmatch=True), min_size=2, max_size=5, unique=True))
def test_cut_names_of_files_stay_distinct_and_short(names):
    shown = fitted(names, 18)
    assert len(set(shown)) == len(names)
    assert all(len(label) <= 18 or label in names or "#" in label for label in shown)


@given(st.lists(st.text("ab_ ", min_size=20, max_size=40), unique=True, max_size=8), st.integers(1, 40))
def test_a_name_that_is_cut_twice_in_one_place_shows_one_cut(names, width):
    shown = fitted(labels(names, WIDTH), width)
    assert "……" not in " ".join(shown) and len(set(shown)) == len(names)


def test_two_instances_of_a_library_keep_the_words_that_differ():
    name = "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_{}_nn_align{}>(T1::Params)"
    assert labels([name.format("16x6", 4), name.format("32x6", 1)]) == [
        "cutlass s1688gemm 64x64 nn 16x6",
        "cutlass s1688gemm 64x64 nn 32x6",
    ]


def test_of_a_name_that_only_says_more_nothing_is_made_up():
    names = ["gather_rows_of_the_matrix", "gather_rows_of_of_the_matrix"]
    assert fitted(names, 18) == ["gather_…matrix", "gather_…of_…matrix"]


def test_names_that_lie_in_each_other_like_dolls_need_no_deep_stack():
    names = ["x" * at + "y" + "x" * (1200 - at) for at in range(10, 1200, 10)]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 90)
    try:
        shown = fitted(names, 12)
    finally:
        sys.setrecursionlimit(limit)
    assert len(set(shown)) == len(names)


def test_names_that_differ_in_nothing_that_is_shown_are_numbered():
    assert labels(["void f(int)", "f(int)", "f(int) [clone .kd]"]) == ["f", "f #2", "f #3"]


# As `c++filt` of binutils 2.40 writes them, without parameters, and without types that refer back.
@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_Z6vecAddIfEvPT_S1_S1_i", "vecAdd<float>"),
        ("_Z9matrixMulILi32EEvPfS0_S0_ii", "matrixMul<32>"),
        ("_Z6kernelPKfPfi", "kernel"),
        ("_ZN2ns4axpyIfLin4ELb1EEEvPT_", "ns::axpy<float, -4, true>"),
        ("_ZN12_GLOBAL__N_16kernelEv", "kernel"),
        ("_ZL6kernelPf", "kernel"),
        ("_ZN2at6native6kernelILi4ENS0_15CUDAFunctor_addIfEENS_6detail5ArrayIPcLi3EEEEEviT0_T1_",
         "at::native::kernel<4, CUDAFunctor_add<float>, detail::Array<char, 3>>"),
        ("_Z4rowsIXadL_Z6op_addffEEfEvPKT0_", "rows<op_add, float>"),
        ("_ZN2ck5entryILNS_4EnumE1EEEvv", "ck::entry<1>"),
        ("_ZN2ns3runIZNS_4mainEvEUlvE_EEvT_", "ns::run"),
        ("_Zebra", "_Zebra"),
    ],
)  # fmt: skip
def test_mangled_names_are_readable(symbol, name):
    assert readable(symbol) == name


@pytest.mark.parametrize(
    "text", ["a<" * 20_000, "_Z" + "N" * 30_000, "_ZN1aI" + "I" * 20_000, "f(" * 20_000, "<>" * 9_000]
)
def test_hostile_names_take_no_time_without_end(text):
    first, second = labels([text, text + "b"], 30)
    assert first != second


def test_of_two_details_that_tell_kernels_apart_the_short_one_is_shown():
    """One that is long for one kernel is long, though it is short for the other."""
    policy = "very_long_detail_of_a_policy_that_fills_the_line_of_a_table_and_more<1, 2, 3>"
    assert labels(["k<x, a>(int)", f"k<{policy}, b>(int)"], 40) == ["k<a>", "k<b>"]


def test_names_of_ranges_lose_nothing_that_no_ellipsis_shows():
    ranges = ["step 1: assemble the stiffness matrix", "step 2: solve", "solver::assemble_the_stiffness_matrix"]
    assert fitted(ranges, 40) == ranges
    for name, shown in zip(ranges, fitted(ranges, 24), strict=True):
        head, _, tail = shown.partition("…")
        assert name.startswith(head) and name.endswith(tail) and head
    assert labels(["step 1: assemble the stiffness matrix"], 24) == ["step 1: assemble …matrix"]

"""How OLD and NEW stand to each other, and that a headline says so before any change."""

import re
from types import SimpleNamespace

import pytest
from conftest import SHARED
from diff_support import KERNEL, MISSING, energy, kernel
from msgspec.structs import replace

import eprof
from eprof.commands.diff import answer, likeness, page, terminal, words
from eprof.commands.diff.compare import compare
from eprof.commands.diff.files import to_markdown
from eprof.counts.times import ONE_SECOND
from eprof.logs.log import Log
from eprof.show.numbers import quantity

needs_logs = pytest.mark.skipif(not SHARED.is_dir(), reason="needs real logs, which are not part of this project")
NARROW = "\u202f"


def typed(old, new, **more):
    return compare([energy(old, **more)], [energy(new, **more)]).typed


def text_of(document):
    return answer.headline(document).text.replace(NARROW, " ")


def times(factor, **more):
    return {word: factor * number for word, number in kernel(**more).items()}


# ------------------------------------------------------------------------------------------------------------ strangers


def test_kernels_that_match_are_in_common_though_nothing_of_them_can_be_compared():
    """NEW's log is cut off: of k it knows lower bounds, and of other it may have lost the rows."""
    cut = energy({"k": kernel()}, marks={("k", word): MISSING for word in KERNEL if word != "time"})
    rows = SimpleNamespace(lacks_rows=True)
    lost = Log(path="b.csv", format="ncu", sha256="b", size_bytes=1, tables=(rows,))
    cut = replace(cut, profile=replace(cut.profile, logs=(lost,)))
    whole = energy({"k": kernel(), "other": times(20)})
    found = compare([whole], [cut], fail_above=["2%", "time=2%"])
    document = found.typed
    assert not likeness.are_strangers(document) and likeness.in_common(document)[1] == 1
    (of_k, of_other) = sorted(document.kernels, key=lambda each: each.name)
    assert of_k.match.how == "name" and of_other.status == "vanished"
    assert not of_other.change_j and document.speedup is None, "nobody knows whether it ran"
    assert all(gate.failed is None and gate.why_not for gate in found.gates)


def test_programs_without_a_common_kernel_are_no_variants_and_have_no_percentage():
    document = typed({"k": kernel()}, {"other": kernel(), "more": kernel(time=0.1)})
    assert likeness.are_strangers(document)
    assert text_of(document).startswith(
        "No comparison of variants: OLD and NEW have no kernel in common. OLD has 1 kernel (4.39 J predicted, 350 ms), "
        "NEW has 2 kernels ("
    )
    shown = terminal.text(document, width=100)
    figures = re.findall(r"<div><dt>([^<]+)</dt>", page.html(document))
    assert "--match OLD=NEW pairs kernels by hand" in shown and "%" not in shown and "only in OLD" in shown
    assert figures[0] == "Program" and "What changed</h2>" not in page.html(document), "no change of what is no variant"
    assert "of OLD" not in terminal.text(document, verbose=True).partition("kernel ")[0]
    assert (
        "Greenup" not in terminal.text(document, verbose=True) and "what changed" not in to_markdown(document).decode()
    )


@pytest.mark.parametrize(("share", "strange"), [(0.08, True), (0.12, False)])
def test_with_less_than_a_tenth_in_common_two_are_no_variants(share, strange):
    """Energies add up by kernel: the common kernel takes this share of each side, by hand."""
    both = times(share)
    document = typed({"both": both, "old": times(1 - share)}, {"both": both, "new": times(1.001 * (1 - share))})
    assert likeness.in_common(document) == pytest.approx((share, share, share), rel=1e-3)
    assert likeness.are_strangers(document) is strange
    assert ("kernels of both take 8.0 % of OLD's energy and 8.0 % of NEW's" in text_of(document)) is strange


def test_a_part_of_a_program_is_compared_with_the_whole():
    """All of OLD is in NEW, which has more: a kernel that came is a change."""
    document = typed({"a": times(0.02)}, {"a": times(0.02), "b": kernel()})
    assert not likeness.are_strangers(document) and "NEW uses 51.0 times the energy" in text_of(document)


@pytest.mark.parametrize(("share", "told"), [(0.4, False), (0.6, True)])
def test_a_launch_is_told_where_kernels_of_both_take_half_of_a_side(share, told):
    """Nine launches in the place of three, each as before, beside kernels of one side alone."""
    old = energy({"both": times(share), "old": times(1 - share)}, launches={"both": 3, "old": 1})
    new = energy({"both": times(3 * share), "new": times(3.3 - 3 * share)}, launches={"both": 9, "new": 1})
    document = compare([old], [new]).typed
    assert likeness.in_common(document)[0] == pytest.approx(share) and not likeness.are_strangers(document)
    assert bool(likeness.launched_otherwise(document)) is told
    assert ("NEW has 9 launches instead of 3 of the kernel in both" in text_of(document)) is told


def test_launches_without_prices_are_of_no_constant_power():
    """Nothing is said of power where no energy is compared."""
    old = energy({"k": {"time": 1.0}}, launches={"k": 10}, priced=None)
    new = energy({"k": {"time": 0.25}}, launches={"k": 5}, priced=None)
    assert text_of(compare([old], [new]).typed) == (
        "NEW has 5 launches instead of 10, and per launch takes 50 % less time. In all: 75 % less time."
    )


def test_without_any_amount_kernels_are_counted():
    some = {"integer": 1.0}
    document = typed({"a": some, "b": some, "c": some}, {"a": some, "d": some}, priced=None)
    assert likeness.in_common(document) == pytest.approx((1 / 3, 1 / 2, 2 / 5))


def test_a_renamed_kernel_is_in_both_if_it_is_launched_as_often():
    old, new = energy({"gemm_naive": kernel()}, launches={"gemm_naive": 3}), {"gemm_tiled": kernel(dram_read=1e9)}
    renamed = compare([old], [energy(new, launches={"gemm_tiled": 3})]).typed
    other = compare([old], [energy(new, launches={"gemm_tiled": 9})]).typed
    assert (likeness.are_strangers(renamed), likeness.are_strangers(other)) == (False, True)


def test_of_strangers_no_letters_in_common_are_a_pair_and_rows_are_whole():
    """The pair takes 6 % of OLD and of NEW. Integers, which NEW alone counts, are not compared."""
    old = {"gemm_naive": times(0.06), "a": times(0.94)}
    for counts in old.values():
        del counts["integer"]
    document = typed(old, {"gemm_tiled": times(0.06), "other": kernel(integer=1e10)})
    assert likeness.are_strangers(document) and not any(one.match for one in document.kernels)
    shown = terminal.text(document, width=100).replace(NARROW, " ")
    own = next(one for one in document.kernels if one.name == "other")
    assert own.change_j < 0.95 * own.new.energy_j
    assert (
        f"+{quantity(own.new.energy_j, 'J')}".replace(NARROW, " ") in shown
        and "no kernel in common" in shown
        and "similar" not in shown
    )


def test_a_name_that_is_alike_makes_no_program_a_part_of_another():
    document = typed({"gemm_naive": times(0.03)}, {"gemm_tiled": times(0.03), "other": kernel()})
    assert likeness.are_strangers(document)


@needs_logs
def test_a_gpus_log_and_a_cpus_are_strangers_but_by_hand():
    logs = SHARED / "ncu-modern/rtx5070-text-wmma-fp16-4096.txt", SHARED / "cpu/perf-text-zen-5ghz-default.txt"
    document = eprof.diff(*logs).typed
    assert "OLD and NEW have no kernel in common" in text_of(document)
    names = [next(side.name for side in (one.old, one.new) if side) for one in document.kernels]
    by_hand = eprof.diff(*logs, match=["=".join(sorted(names, key=lambda name: "wmma" not in name))]).typed
    assert not likeness.are_strangers(by_hand)


@needs_logs
def test_a_run_whose_counters_one_side_lacks_is_one_run():
    home = SHARED / "rocprof/rocprof1-mi250x-laplacian1"
    document = eprof.diff([f"{home}/results.csv+{home}/data_movement.csv"], home / "results.csv").typed
    assert text_of(document).startswith("No change: both have 1,004 launches and 2.65 s")


@needs_logs
def test_launches_of_rates_do_not_keep_kernels_apart():
    ncu = SHARED / "ncu-modern"
    document = eprof.diff(ncu / "sm120-cutlass-roofline-body-items.csv", ncu / "rtxpro6000-text-cublas-fp16.txt").typed
    assert document.a_second and not likeness.are_strangers(document)


@pytest.mark.parametrize("selected", ["slow", "fast"])
def test_two_kernels_of_one_log_compare(selected):
    one = energy({"slow": kernel(), "fast": times(0.5), "other": kernel()})
    document = compare([one], [one], match_by_hand=["slow=fast"], kernels=[selected]).typed
    assert [(each.old.name, each.new.name) for each in document.kernels] == [("slow", "fast")]
    assert document.change_share == pytest.approx(-0.5)
    assert "one run" not in text_of(compare([one], [one], match_by_hand=["slow=fast"]).typed)


# ------------------------------------------------------------------------------------------------------ other work


def test_a_smaller_problem_is_no_better_kernel():
    """Two fifths of all counts: as much energy for each flop."""
    said = text_of(typed({"k": kernel()}, {"k": times(0.4)}))
    assert said.startswith("NEW does 40 % of the flops. NEW uses 60 % less energy")
    assert said.endswith("Per flop it uses nearly the same energy.") or said.endswith(
        "Per flop it uses the same energy."
    )


def test_a_larger_problem_says_what_a_flop_takes():
    """Eight times the counts but for twice the time: by hand, (8 * 2.0129 + 2 * 6.8 * .35) / 8 J for 4.3929 J."""
    document = typed({"k": kernel()}, {"k": times(8) | {"time": 0.7}})
    each = (8 * 2.0129 + 6.8 * 0.7) / 8 / (2.0129 + 6.8 * 0.35) - 1
    said = text_of(document)
    assert said.startswith("NEW does 8.00 times the flops. NEW uses 4.75 times the energy")
    assert said.endswith(f"Per flop it uses {-100 * each:.0f} % less energy.")


@pytest.mark.parametrize(
    "changed",
    [
        {"fp32_fma": 0.5e9, "fp32_add": 0.5e9},  # a better algorithm: the same bytes
        {"dram_read": 1e9, "dram_write": 1e8},  # better caches: the same flops
        {"integer": 1e8, "dram_read": 1e9},  # fewer instructions
    ],
)
def test_a_better_kernel_is_no_other_work(changed):
    document = typed({"k": kernel()}, {"k": kernel(**changed)})
    assert likeness.other_work(document) is None and text_of(document).startswith("NEW uses")


def test_without_bytes_fewer_flops_of_a_gpu_may_be_a_compilers():
    bare = {word: number for word, number in kernel().items() if not word.startswith("dram")}
    document = typed({"k": bare}, {"k": {word: 0.4 * number for word, number in bare.items()}})
    assert likeness.work_of(document).factor == pytest.approx(0.4) and likeness.other_work(document) is None


def test_bounds_of_flops_are_no_work():
    sides = [energy({"k": counts}, marks={("k", "fp32_fma"): MISSING}) for counts in (kernel(), times(0.4))]
    assert likeness.work_of(compare(sides[:1], sides[1:]).typed) is None


def test_flops_of_some_kinds_alone_are_no_work():
    """What nothing tells of FP64 instructions may be most of the flops."""
    document = typed({"k": kernel(fp64=1e9)}, {"k": kernel(fp64=1e9, fp32_fma=1e3, fp32_add=0, dram_read=1e9)})
    assert likeness.work_of(document).noun == "floating-point instructions"


@pytest.mark.parametrize(("fp64", "is_told"), [(1e10, True), (1e7, False)])
def test_flops_of_the_type_that_most_are_of_tell_the_work(fp64, is_told):
    """FP32 is a lower bound on both sides, as by some of ncu's sections: FP64 tells the work without it."""
    sides = [
        energy(
            {"k": times(part, fp64_fma=fp64, fp64_add=0.0, fp64_mul=0.0)},
            marks={("k", "fp32_fma"): MISSING},
            priced=None,
        )
        for part in (1.0, 0.4)
    ]
    document = compare(sides[:1], sides[1:]).typed
    if not is_told:
        assert likeness.work_of(document) is None
        return
    assert (likeness.work_of(document).noun, likeness.work_of(document).factor) == ("FP64 flops", pytest.approx(0.4))
    assert text_of(document).startswith("NEW does 40 % of the FP64 flops. Energy is not compared")


@pytest.mark.parametrize(("changed", "said"), [({"fp32_fma": None}, True), ({}, False)])
def test_kernels_of_other_names_whose_work_is_not_known_are_told(changed, said):
    without = {word: number for word, number in kernel().items() if word not in changed}
    told = words.unlike(typed({"gemm_naive": kernel()}, {"gemm_tiled": without}))
    assert "kernel gemm_naive → gemm_tiled" in told
    assert ("(whether the work is the same is not known)" in told) is said


def test_rates_tell_no_work():
    """Eight times the flops a second are no eightfold work."""
    document = typed({"k": kernel()}, {"k": times(8) | {"time": 0.35}}, time_from=ONE_SECOND)
    assert document.a_second == ["OLD", "NEW"] and likeness.work_of(document) is None


@needs_logs
def test_a_line_through_two_powers_is_of_one_machine():
    served = str(SHARED / "sampled/perfstat_handong/{}_linux_mcd_PerfStat.{}.txt.gz")
    idle = served.format("c220g1", "Overhead.iter0")
    for host, is_one in (("c220g1", True), ("c220g5", False)):
        document = eprof.diff(idle, served.format(host, "linux_mcd_qps200000_iter0")).typed
        assert ("on one machine" in text_of(document)) is is_one
        assert ("CPUs counted 32 → 40" in words.unlike(document)) is not is_one


@needs_logs
def test_a_product_of_another_size_is_told_by_its_flops():
    ncu = SHARED / "ncu-modern"
    document = eprof.diff(ncu / "rtx5070-text-wmma-fp16-4096.txt", ncu / "rtxpro6000-text-cublas-fp16.txt").typed
    assert text_of(document).startswith("NEW does 7.94 times the flops. Of what both sides know, NEW uses 2.82 times")
    assert "Per flop it uses 65 % less energy (33 to 81 %)." in text_of(document)


@needs_logs
def test_threads_of_a_launch_tell_other_work_where_bytes_alone_were_counted():
    ncu = SHARED / "ncu-modern"
    document = eprof.diff(ncu / "rtx5070-text-wmma-fp16-4096.txt", ncu / "l4-text-fp16-mma-16384-seconds.txt").typed
    assert "threads in a mean launch" in words.unlike(document)


# ------------------------------------------------------------------------------------------------------ precision


def tensor(**changed):
    return kernel(**{"fp32_mul": 0.0, "tensor_fp16": 0.0} | changed)


def test_work_that_moved_to_tensor_cores_is_named_with_the_bits_that_it_keeps():
    """2e9 flops of FP32 became 2e9 on tensor cores, which the cost table does not even price."""
    flops = {word: kernel().get(word, 0.0) for word in ("fp32_fma", "fp32_add")}
    whole = 2 * flops["fp32_fma"] + flops["fp32_add"]
    document = typed({"k": tensor()}, {"k": tensor(fp32_fma=0.0, fp32_add=0.0, tensor_fp16=whole, dram_read=1e9)})
    assert likeness.changed_precision(document) == likeness.Precision("fp32", "tensor_fp16", whole)
    lead = answer.headline(document).lead.replace(NARROW, " ")
    assert lead.startswith("FP16 on tensor cores does the work of FP32 arithmetic (")
    assert "): factors keep 11 bits instead of 24. " in lead
    assert likeness.other_work(document) is None
    uncounted = {"fp32_fma": 0.0, "fp32_add": 0.0, "fp32_mul": 0.0, "tensor_fp16": whole, "dram_read": 1e9}
    document = typed({"k": kernel(fp32_mul=0.0)}, {"k": kernel(**uncounted, dram_write=1e8)})
    assert likeness.other_work(document) is None, "OLD did not count tensor cores: FP32 of NEW alone is no less work"
    assert likeness.changed_precision(document) == likeness.Precision("fp32", "tensor_fp16", whole)
    fewer = typed({"k": kernel(fp32_mul=0.0)}, {"k": kernel(**uncounted | {"tensor_fp16": 0.8 * whole})})
    assert likeness.changed_precision(fewer) is None, "nor is it known that they were idle"
    assert likeness.other_work(fewer) is None
    back = likeness.changed_precision(
        typed({"k": tensor(fp32_fma=0.0, fp32_add=0.0, tensor_fp16=whole)}, {"k": tensor()})
    )
    assert (back.old, back.new) == ("tensor_fp16", "fp32")


@pytest.mark.parametrize(("share", "told"), [(0.05, False), (0.2, True)])
def test_a_precision_that_few_flops_had_is_not_worth_a_word(share, told):
    """Of all flops, 5 or 20 % leave FP64 for FP32."""
    few = {"fp64_fma": share * 1e9, "fp32_fma": (1 - share) * 1e9, "fp32_add": 0.0, "fp32_mul": 0.0}
    document = typed({"k": kernel(**few)}, {"k": kernel(**few | {"fp64_fma": 0.0, "fp32_fma": 1e9})})
    assert (likeness.changed_precision(document) == likeness.Precision("fp64", "fp32", 2e9)) is told


@pytest.mark.parametrize(("gone", "told"), [(0.4, False), (0.6, True)])
def test_a_precision_that_keeps_most_of_its_work_was_not_taken_over(gone, told):
    old = {"fp64_fma": 1e9, "fp32_fma": 0.0, "fp32_add": 0.0, "fp32_mul": 0.0}
    new = old | {"fp64_fma": (1 - gone) * 1e9, "fp32_fma": gone * 1e9}
    assert (likeness.changed_precision(typed({"k": kernel(**old)}, {"k": kernel(**new)})) is not None) is told


@pytest.mark.parametrize(("came", "told"), [(0.9e9, False), (1.1e9, True)])
def test_instructions_of_unknown_kinds_are_two_flops_each(came, told):
    old = {"fp32": 1e9, "tensor_fp16": 0.0, "time": 1.0}
    document = typed({"k": old}, {"k": {"fp32": 0.0, "tensor_fp16": came, "time": 1.0}})
    assert (likeness.changed_precision(document) is not None) is told


@pytest.mark.parametrize("came", [0.0, 0.4, 2.1])
def test_other_amounts_of_flops_are_not_those_that_went(came):
    whole = 2 * kernel().get("fp32_fma", 0.0) + kernel().get("fp32_add", 0.0)
    new = tensor(fp32_fma=0.0, fp32_add=0.0, tensor_fp16=came * whole)
    assert likeness.changed_precision(typed({"k": tensor()}, {"k": new})) is None


@needs_logs
@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rtxpro6000-text-cublaslt-fp8", "rtxpro6000-text-cublas-fp16", "factors keep 11 bits instead of 24"),
        ("rtxpro6000-text-cublas-fp16", "rtxpro6000-text-cublaslt-fp8", "factors keep 24 bits instead of 11"),
        ("h100-sxm-text-cublas-tf32", "h100-sxm-text-cutlass-tma", "exponents have 5 bits instead of 8"),
    ],
)
def test_real_products_of_another_precision(old, new, said):
    document = eprof.diff(*(SHARED / "ncu-modern" / f"{name}.txt" for name in (old, new))).typed
    assert f"flop): {said}." in answer.headline(document).lead.replace(NARROW, " ")


# --------------------------------------------------------------------------------------------------- other machines


def test_devices_are_counted_and_names_of_one_device_are_one():
    one = energy({"k": kernel()}, device="NVIDIA A100 (0)")
    other = replace(one, profile=replace(one.profile, counted=one.profile.counted * 2))
    assert "GPU NVIDIA A100 → 2 × NVIDIA A100" in words.unlike(compare([one], [other]).typed)
    assert "GPU" not in words.unlike(compare([one], [energy({"k": kernel()}, device="a100 (0)")]).typed)


@needs_logs
def test_gpus_of_two_makers_are_told_though_a_log_names_none():
    logs = (
        SHARED / "rocprof/rocprof1-mi250-nbody-derived-excerpt.csv",
        SHARED / "nvprof/text-v100-nbody-several-runs.txt",
    )
    document = eprof.diff(*logs).typed
    assert "GPU one of AMD → Tesla V100-SXM2-16GB" in words.unlike(document)
    assert "--costs" not in answer.headline(document).lead, "no table of NVIDIA's prices AMD's counts"


@needs_logs
def test_times_beside_counters_are_no_change_of_code():
    logs = (SHARED / f"rocprof/rocprof3-doc/{name}.csv" for name in ("counter_collection", "kernel_trace"))
    assert "times of OLD are estimated" in words.unlike(eprof.diff(*logs).typed)
    both = (SHARED / "ncu-modern" / f"h100-sxm-text-{name}.txt" for name in ("cublas-tf32", "cutlass-tma"))
    assert "times of" not in words.unlike(eprof.diff(*both).typed), "estimated alike"


@needs_logs
@pytest.mark.parametrize(
    ("joules", "told"), [((3, None), "OLD"), ((None, 2.5), "NEW"), ((3, 2.5), ""), ((None, None), "")]
)
def test_one_side_scaled_to_a_meter_is_not_the_same(joules, told):
    logs = (SHARED / f"ncu/v100-miniweather-{name}.ncu-rep" for name in ("baseline", "div-to-mult"))
    document = eprof.diff(*logs, old_metered_j=joules[0], new_metered_j=joules[1]).typed
    scaled = re.findall("(OLD|NEW) alone is scaled to what a meter saw", words.unlike(document))
    assert scaled == [told] * bool(told)


# ---------------------------------------------------------------------------------------------- what is not comparable

_METRICS = {"l2_write_transactions": 60_000, "inst_integer": 5_000_000}
_HALVES = {"fb_subp0_write_sectors": 25_000, "fb_subp1_write_sectors": 25_000}


def tk1(folder, name, counters, device="GK20A"):
    head = (
        '==1== NVPROF is profiling process 1, command: ./x\n==1== Profiling result:\n"Device","Kernel","Invocations",'
    )
    rows = [f'"{device} (0)","a(int)",1,"{counter}","x",{n},{n},{n}' for counter, n in counters.items()]
    path = folder / name
    path.write_text("\n".join([f'{head}"Metric Name","Metric Description","Min","Max","Avg"', *rows]) + "\n")
    return path


def test_l2_net_of_dram_on_one_side_alone_is_not_compared(tmp_path):
    """All 60,000 sectors are written to L2 by both; OLD counts that 50,000 of them went on to DRAM."""
    old, new = tk1(tmp_path, "old.csv", _METRICS | _HALVES), tk1(tmp_path, "new.csv", _METRICS)
    document = eprof.diff(old, new, costs="jetson-tk1").typed
    assert (document.counts["l2_write"].old, document.counts["l2_write"].new) == (320_000, 1_920_000)
    assert document.counts["l2_write"].change is None and document.change_j == 0
    [why] = [lost.why for lost in document.uncompared if lost.what == "l2_write"]
    assert why == "one side tells it net of what DRAM or the host served, which the other did not count"


def test_l2_that_both_count_alike_is_compared_whatever_is_known_of_dram(tmp_path):
    """Where bytes are those accessed at each level, L2's are net of nothing."""
    written = {"dram_write_transactions": 50_000}
    old = tk1(tmp_path, "old.csv", _METRICS | written, "Tesla K20c")
    new = tk1(tmp_path, "new.csv", _METRICS | {"l2_write_transactions": 90_000}, "Tesla K20c")
    document = eprof.diff(old, new, costs="estimated").typed
    assert document.counts["l2_write"].change == 32 * 30_000
    assert {lost.what for lost in document.uncompared} == {"dram_write"}


def test_l2_is_compared_where_what_it_is_net_of_is_next_to_nothing(tmp_path):
    few = {counter: 250 for counter in _HALVES}
    old, new = tk1(tmp_path, "old.csv", _METRICS | few), tk1(tmp_path, "new.csv", _METRICS)
    document = eprof.diff(old, new, costs="jetson-tk1").typed
    assert document.counts["l2_write"].change == 32 * 500
    assert "l2_write" not in {lost.what for lost in document.uncompared}


# --------------------------------------------------------------------------------------------------- advice, intervals


@needs_logs
@pytest.mark.parametrize(
    "pair",
    [
        ("rocprof/omniperf2-mi300x-vcopy/pmc_perf.csv", "rocprof/rocprofcompute3-mi350-vcopy/pmc_perf.csv"),
        ("rocprof/omniperf2-mi100-tcconly/pmc_perf.csv", "rocprof/omniperf2-mi100-vcopy/pmc_perf.csv"),
        ("nvprof/k20c-gpu-summary-no-type-column.csv", "nvprof/k20c-gpu-trace.csv"),
        ("traces/kineto/tracelens-mi210-gpuonly.json.gz", "traces/kineto/hta-mi250-rocm62.json.gz"),
    ],
)
def test_the_table_that_is_said_to_price_both_does(pair):
    logs = [SHARED / log for log in pair]
    lead = answer.headline(eprof.diff(*logs).typed).lead
    [table] = re.findall(r'--costs (?:"([^"]+)"|(\S+)) prices both', lead)
    assert eprof.diff(*logs, costs="".join(table)).typed.change_j is not None


@needs_logs
def test_the_larger_part_beside_the_kernels_has_an_interval():
    """Nine tenths of both traces are time without kernels; two tables with errors of their own do not tell of it."""
    logs = (SHARED / f"traces/kineto/tracelens-{name}-bert-small.json.gz" for name in ("h100", "mi300x"))
    document = eprof.diff(*logs).typed
    whole = document.with_still
    assert whole.old_j == pytest.approx(document.old.compared_j + document.old.still_j)
    assert whole.change_share == pytest.approx(whole.new_j / whole.old_j - 1)
    low, high = whole.interval_share
    assert low < whole.change_share < 0 < high
    lead = answer.headline(document).lead.replace(NARROW, " ")
    assert "(with it 461 mJ → 322 mJ: 30 % less energy (the prices do not tell: from 68 % less to 94 % more))" in lead


@needs_logs
def test_intervals_of_one_table_at_other_clocks_are_not_of_the_same_prices():
    logs = [SHARED / "ncu-modern" / f"h100-sxm-text-{name}.txt" for name in ("cublas-tf32", "cutlass-tma")]
    for setting, same in ((None, False), ("1980/2619", True)):
        document = eprof.diff(*logs, setting=setting).typed
        assert document.intervals.paired
        shown = " ".join(terminal.text(document, verbose=True, width=200).split())
        assert ("the same prices for both sides" in shown, "for both sides, at other clocks" in shown) == (
            same,
            not same,
        )


def test_twice_the_flops_and_instructions_in_a_cpus_caches_are_other_work():
    """1.3e9 FP32 instructions, of which 1e9 are multiply-adds, and all of them twice; as many bytes of DRAM."""
    once = kernel(retired=4e9)
    twice = kernel(retired=8e9, **{word: 2 * KERNEL[word] for word in ("fp32_fma", "fp32_add", "fp32_mul")})
    document = typed({"k": once}, {"k": twice})
    assert likeness.other_work(document) is None, "bytes do not follow"
    sides = (
        replace(side, devices=[replace(side.devices[0], processor="cpu")]) for side in (document.old, document.new)
    )
    of_cpu = replace(document, **dict(zip(("old", "new"), sides, strict=True)))
    work = likeness.other_work(of_cpu)
    assert work and (work.noun, work.factor) == ("flops", 2.0)
    less = {"retired": replace(document.counts["retired"], new=4e9, change=0.0)}
    assert likeness.other_work(replace(of_cpu, counts=document.counts | less)) is None

"""Levers on what kernels execute: narrower types, fewer divisions and instructions. From `eprof.profile/1`."""

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from eprof.base.text import bracketed, when
from eprof.base.vocabulary import COUNTS, TENSOR_FLOPS
from eprof.commands.report.advice.loops import flags, is_of_c, of_retiring
from eprof.commands.report.advice.products import cycles_on_tensor_cores, issued_for
from eprof.commands.report.advice.savings import (
    NARROWED,
    ended_sooner,
    ends_j,
    is_closed,
    less_time,
    mostly_in,
    narrower_bytes_j,
)
from eprof.commands.report.advice.waiting import NEAR, busy, issuing, sooner
from eprof.commands.report.change import TENTH, Try
from eprof.commands.report.first_screen import SHORT_S
from eprof.commands.report.view import DRAM, FLOPS, View, time_of
from eprof.profile import schema
from eprof.show.numbers import percent, quantity

_DIVIDES = 0.05  # special functions for each FP64 instruction, from which on much of these follows from them
# FP64 instructions behind one MUFU.RCP64H: five refine the reciprocal, three more make a quotient of it. And what is
# issued for it: at least these; 26 in two reports of miniWeather on a V100, of which one multiplies instead.
_OF_A_DIVISION, _ISSUED_FOR_IT = (5, 8), (5, 26)
_WARP = 32  # threads for which an instruction is issued at once
_MOSTLY_ISSUING = 0.5  # of the slots for instructions: so many are filled by what works, not by what waits
_IF_ACCURATE = ", if accurate enough"
_NARROWER = (
    *(("tensor_tf32", "tensor_fp16"), ("tensor_tf32", "tensor_bf16")),
    *(("tensor_fp16", "tensor_fp8"), ("tensor_bf16", "tensor_fp8"), ("tensor_fp8", "tensor_fp4")),
)
_SINCE = {"tensor_fp16": 7.0, "tensor_tf32": 8.0, "tensor_bf16": 8.0, "tensor_fp8": 8.9, "tensor_fp4": 10.0}
_BEYOND_WMMA = 8.9  # compute capabilities whose newer types CUDA's fragments (nvcuda::wmma) do not have
_REMEDIES = {"int": "move index arithmetic out of loops", "other": "unroll, and load 16 bytes at a time"}


def narrower_types(view: View) -> Iterator[Try]:
    """Use narrower types that this GPU has and the table prices: on tensor cores, FP32 for FP64, tensor cores for FP32.

    At least operands stay as wide in memory; at most they are stored narrower, too, and half the bytes move.
    """
    capability = 0.0
    with suppress(ValueError):
        capability = float(view.document.device.capability or "")
    has = {word for word, since in _SINCE.items() if capability >= since}
    for wide, narrow in _NARROWER:
        price, narrower = view.charges.get(wide), view.charges.get(narrow)
        if wide not in view.words or narrow not in has:
            continue
        joules = view.words[wide].energy.value
        if joules and price and price.pj > 0 and narrower and narrower.pj > 0:
            names = (COUNTS[word].label.removeprefix("Tensor ") for word in (narrow, wide))
            saves = joules * (1 - narrower.pj / price.pj)
            kernels = [kernel for kernel in view.kernels if view.amount(kernel, wide).value]
            if _SINCE[narrow] >= _BEYOND_WMMA and all("wmma" in kernel.name.lower() for kernel in kernels):
                continue
            # Tensor cores do twice the flops, whatever is moved.
            (least_j, least_s), (most_j, most_s) = (
                ended_sooner(view, kernels, {"sm": NARROWED, **dict.fromkeys(("l1", "l2", "dram"), left)})
                for left in (1.0, NARROWED)
            )
            ends = saves + least_j, saves + most_j + narrower_bytes_j(kernels)
            act = f"use {' for '.join(names)} on tensor cores and in memory{_IF_ACCURATE}"
            yield Try(act, ends[0], ends, less_time(view, least_s, most_s), is_exact=False)
    single, double = (view.charges.get(f"fp{bits}_fma") for bits in (32, 64))
    doubles_j = view.joules_of("fp64")
    if doubles_j and single and double and 0 < single.pj < double.pj:
        saves = doubles_j * (1 - single.pj / double.pj)
        kernels = [kernel for kernel in view.kernels if _flops(view, kernel, "fp64") > _flops(view, kernel, "fp32")]
        low, high = ends_j(view, "fp64", saves) or (saves, saves)
        least_s, most_s = (_faster_in_fp32_s(view, left) for left in (1.0, NARROWED))
        least_j, most_j = ((view.document.constant_w or 0.0) * sooner_s for sooner_s in (least_s, most_s))
        ends = low + least_j, min(high + most_j + narrower_bytes_j(kernels), view.everything)
        act = f"use FP32 for FP64{_IF_ACCURATE}{bracketed(mostly_in(view, 'fp64'))}"
        yield Try(act, saves + least_j, ends, less_time(view, least_s, most_s), is_exact=False)
        yield from _fewer_divisions(view)
    yield from _onto_tensor_cores(view, has)


def _flops(view: View, kernel: schema.Kernel, precision: str) -> float:
    """The flops of a precision that its units have time for: two in an instruction whose kind is not told."""
    words = [(name, flops) for name, flops in FLOPS.items() if name.startswith(precision)]
    told = sum(flops * view.amount(kernel, name).or_zero for name, flops in words)
    return told + 2 * view.amount(kernel, precision).or_zero


def _faster_in_fp32_s(view: View, left: float) -> float:
    """The s that kernels save by FP32 for FP64, by peaks and DRAM speed; 0: unknown. left: share of their bytes."""
    limits = view.document.limits
    if not limits or view.is_modelled or any(machine.of for machine in limits.machines):
        return 0.0  # several GPUs have peaks of their own
    peaks = {machine.precision: machine for machine in limits.machines}
    if not {"fp32", "fp64"} <= peaks.keys():
        return 0.0
    faster_s = 0.0
    for kernel in view.kernels:
        work, moved = _flops(view, kernel, "fp64"), view.summed(kernel, DRAM).value
        if moved is None or not work > _flops(view, kernel, "fp32"):
            continue
        moved_s = moved / peaks["fp64"].dram_byte_per_s
        now_s = min(max(work / peaks["fp64"].peak_flop_per_s, moved_s), time_of(kernel).or_zero)
        faster_s += max(now_s - max(work / peaks["fp32"].peak_flop_per_s, left * moved_s), 0.0)
    return faster_s


def _fewer_divisions(view: View) -> Iterator[Try]:
    """Call fewer special functions in FP64 code with hardly any FP32: each is taken to begin a division, or more work.

    Those of integer divisions, each of which is between two conversions, are left out.
    """
    called, ends_j = [0.0] * len(view.kernels), np.zeros(2)
    lefts: list[dict[str, float]] = [{} for _ in view.kernels]
    for place, (kernel, joules) in enumerate(zip(view.kernels, view.joules_by_kernel("fp64"), strict=True)):
        special, converted, multiplied = (
            view.amount(kernel, name).or_zero for name in ("special", "conversion", "fp64_mul")
        )
        doubles, singles = (
            sum(view.amount(kernel, f"fp{bits}_{kind}").or_zero for kind in ("fma", "add", "mul")) for bits in (64, 32)
        )
        reciprocals = special - converted / 2
        if multiplied and reciprocals >= max(_DIVIDES * doubles, singles):
            called[place] = reciprocals
            spared, issued = np.multiply(_OF_A_DIVISION, reciprocals), kernel.counts.get("warp_issue")
            of_doubles, of_issued = np.minimum(spared / doubles, 1.0), np.zeros(2)
            if issued and issued.value:
                of_issued = np.minimum(np.multiply(_ISSUED_FOR_IT, reciprocals) / _WARP / issued.value, 1.0)
                ends_j += of_issued * (issued.energy_j or 0.0)
            ends_j += of_doubles * joules
            lefts[place] = {"sm": 1 - float(of_doubles[1]), "issue": 1 - float(of_issued[1])}
    if any(called):
        name = view.label(view.kernels[max(range(len(called)), key=called.__getitem__)])
        told = f"{quantity(sum(called), '')}{when(len(called) > 1, f', most in {name}')}: divisions, roots, exp, ..."
        act = f"call fewer special functions in FP64 code ({told}): multiply by a reciprocal, take them out of loops"
        sooner_j, sooner_s = ended_sooner(view, view.kernels, *lefts)
        ends = float(ends_j[0]), float(ends_j[1]) + sooner_j
        yield Try(act, sum(ends) / 2, ends, f"{less_time(view, 0.0, sooner_s)}, if they are divisions")


def _onto_tensor_cores(view: View, has: set[str]) -> Iterator[Try]:
    """Do FP32 products on tensor cores instead: two flops there for each multiply-add, many in one instruction.

    How much sooner they end depends on the units that move their operands, and on the tensor cores' peak.
    """
    word = next((word for word in ("tensor_tf32", "tensor_fp16") if word in has), "")
    fma, tensor = view.charges.get("fp32_fma"), view.charges.get(word)
    products = [kernel for kernel in view.kernels if "gemm" in kernel.name.lower()]
    products = [kernel for kernel in products if not view.summed(kernel, TENSOR_FLOPS).value]
    if not fma or not fma.pj > 0 or not tensor or not tensor.pj > 0:
        return
    counts = [kernel.counts[name] for kernel in products for name in ("fp32_fma", "fp32") if name in kernel.counts]
    saves = sum(count.energy_j or 0.0 for count in counts) * (1 - 2 * tensor.pj / fma.pj)
    if saves > 0:
        saves += sum(issued_for(kernel) for kernel in products)
        lefts: list[list[dict[str, float]]] = [[], []]
        for kernel in products:
            now = busy(kernel).get("sm") or issuing(kernel) or 1.0
            for left, share in zip(lefts, cycles_on_tensor_cores(view, kernel, word), strict=True):
                left.append(dict.fromkeys(("sm", "issue"), min(share / now, 1.0)))
        (least_j, least_s), (most_j, most_s) = (ended_sooner(view, products, *left) for left in lefts)
        act = f"multiply on tensor cores, in {COUNTS[word].label.removeprefix('Tensor ')}{_IF_ACCURATE}"
        time = less_time(view, least_s, most_s)
        yield Try(act, saves + least_j, (saves + least_j, saves + most_j), time, is_exact=False)


def fused(view: View) -> Iterator[Try]:
    """Fuse multiplications with additions that could be one instruction (FMA)."""
    for bits in (64, 32, 16):
        added, multiplied = (view.column(f"fp{bits}_{kind}").values for kind in ("add", "mul"))
        pairs = float(np.nansum(np.minimum(added, multiplied)))
        price = view.charges.get(f"fp{bits}_mul")
        if pairs and price and price.pj > 0:
            saves = pairs * price.pj * 1e-12
            yield Try(f"fuse up to {quantity(pairs, '')} FP{bits} multiplications with additions (FMA)", saves)


def fewer_instructions(view: View) -> Iterator[Try]:
    """Execute fewer instructions that are no arithmetic: addresses, loops, loads."""
    for group, kind in (("int", "integer "), ("other", "")):
        words = [word for word in view.words.values() if word.count.group == group and word.count.unit != "cycle"]
        own = [not (kernel.callers or is_of_c(kernel)) for kernel in view.kernels]
        amount = sum(float(np.nansum(view.column(word.count.name).joules[own])) for word in words)
        if amount and not is_closed(view, group):
            saves, (told, *cycles_j) = TENTH * amount, of_retiring(view)
            remedies = [_REMEDIES[group]]
            if view.nouns.is_of_cpu:
                remedies = [flags(view), "less work in inner loops"]
            at_work = [*_at_work(view)] * (group == "other")
            sooner_j, sooner_s = ended_sooner(view, view.kernels, {"issue": 1 - TENTH * (group == "other")})
            sooner_j += TENTH * sum(map(view.timed, at_work))
            sooner_s += TENTH * sum(time_of(kernel).or_zero for kernel in at_work)
            if time := less_time(view, sooner_s, sooner_s):
                held = [kernel for kernel in view.kernels if sooner(kernel, {"issue": 0.0})]
                most = max(held + at_work, key=view.timed)
                told = f"{view.label(most)} fills {percent(issuing(most))} of its issue slots"
            how = "; ".join(filter(None, [told or mostly_in(view, group), *remedies]))
            act = f"execute fewer {kind}instructions{bracketed(how)}"
            if any(cycles_j) and group == "other":
                low, high = (saves + TENTH * joules for joules in cycles_j)
                fewer = when(low < high, "fewer, in up to as many fewer cycles") or "fewer, with their cycles,"
                yield Try(act, (low + high) / 2, (low, high), each=fewer, adds=True, is_vague=True)
                continue
            low, high = ends_j(view, group, saves) or (saves, saves)
            ends = low, high + sooner_j
            yield Try(act, saves + sooner_j / 2, ends, time.replace(", ", ", up to ", 1), each="fewer")


def _at_work(view: View) -> Iterator[schema.Kernel]:
    """The kernels that fill most of their issue slots, and that nothing else is seen to hold back."""
    if view.is_modelled:
        return
    for kernel, reached in zip(view.kernels, view.speed_shares, strict=False):
        is_short = 0 < view.each_s(kernel) < SHORT_S
        if issuing(kernel) > _MOSTLY_ISSUING and not is_short and max(reached, *busy(kernel).values(), 0.0) < NEAR:
            yield kernel

"""Changes to try on what kernels execute: narrower types, tensor cores, fewer instructions, longer launches."""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from eprof.base.gpus import Traits, sheets_of
from eprof.base.kernels import is_plain_product
from eprof.base.labels import library_of, remedy_of
from eprof.base.optional import gathered
from eprof.base.optional import ratio as divided
from eprof.base.text import bracketed, counted, few, listed, pattern, phrase, when
from eprof.base.vocabulary import COUNTS, TENSOR_FLOPS
from eprof.commands.report.advice.loops import flags, of_retiring
from eprof.commands.report.advice.savings import (
    CLOSED,
    NARROWED,
    NEAR,
    TENTH,
    Try,
    at_most,
    busy,
    ended_sooner,
    ends_j,
    is_of_compiled_library,
    issuing,
    less_time,
    mostly_in,
    narrower_bytes_j,
    sooner,
)
from eprof.commands.report.advice.waiting import flops_of
from eprof.commands.report.hotspots import SHORT_S
from eprof.commands.report.view import DRAM, FLOPS, View, is_of_c, time_of
from eprof.counts.definition_files import find
from eprof.logs.log import OfShape
from eprof.profile import schema
from eprof.show.numbers import percent, percent_span, quantity

_DIVIDES = 0.05  # special functions for each FP64 instruction, from which on much of these follows from them
# FP64 instructions behind one MUFU.RCP64H: five refine the reciprocal, three more make a quotient of it. And what is
# issued for it: at least these; 26 in two reports of miniWeather on a V100, of which one multiplies instead.
_OF_A_DIVISION, _ISSUED_FOR_IT = (5, 8), (5, 26)
_WARP = 32  # threads for which an instruction is issued at once
_MOSTLY_ISSUING = 0.5  # of the slots for instructions: so many are filled by what works, not by what waits
_WAVEFRONT_B = 128  # of shared memory for a warp's load of 4 bytes a thread
_MANY_LOADS = 0.25  # of what is issued; a product of 8 x 8 values a thread loads 16 for 64 multiply-adds
_IF_ACCURATE = ", if accurate enough"
_NARROWER = (
    *(("tensor_tf32", "tensor_fp16"), ("tensor_tf32", "tensor_bf16")),
    *(("tensor_fp16", "tensor_fp8"), ("tensor_bf16", "tensor_fp8"), ("tensor_fp8", "tensor_fp4")),
)
_SINCE = {"tensor_fp16": 7.0, "tensor_tf32": 8.0, "tensor_bf16": 8.0, "tensor_fp8": 8.9, "tensor_fp4": 10.0}
_BEYOND_WMMA = 8.9  # compute capabilities whose newer types CUDA's fragments (nvcuda::wmma) do not have
_REMEDIES = {"int": "move index arithmetic out of loops", "other": "unroll, and load 16 bytes at a time"}


def narrower_types(view: View) -> Iterator[Try]:
    """Advise narrower types that this GPU has and the table prices: on tensor cores, FP32 for FP64, TF32 for FP32.

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


def half_as_wide(view: View) -> Iterator[Try]:
    """Use FP32 for FP64 where no joules tell what each takes: half of the bytes, and flops twice as fast or more."""
    if view.nouns.is_of_cpu:
        return
    doubles = [kernel for kernel in view.kernels if _is_in_doubles(view, kernel)]
    if not doubles:
        return
    # That half of the bytes take half of the time is seen of kernels with a unit at its peak alone.
    held = [kernel for kernel in doubles if max(busy(kernel).values(), default=0.0) >= NEAR]
    names = view.label(max(held or doubles, key=view.timed))
    names += phrase(" and {}", when(len(doubles) > 1, counted(len(doubles) - 1, f"more {view.nouns.kernel}")))
    act = f"use FP32 for FP64 in {names}{_IF_ACCURATE}{when(held, ' (half of the bytes)')}"
    saves = NARROWED * sum(map(view.timed, held if view.saved_unit else doubles))
    yield replace(at_most(act, saves), is_exact=False, is_open=not held)


def _is_in_doubles(view: View, kernel: schema.Kernel) -> bool:
    """Whether a kernel computes in FP64 mostly, by its flops; or, where none were counted, by its library's name."""
    doubles, singles = (_flops(view, kernel, precision) for precision in ("fp64", "fp32"))
    is_named = library_of(kernel.name) != "" and "double" in view.label(kernel)
    return doubles > singles or not doubles and not singles and is_named


def _flops(view: View, kernel: schema.Kernel, precision: str) -> float:
    """A kernel's flops of one precision, by instructions: two for one whose kind is not told."""
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
    """Advise fewer special functions in FP64 code with hardly any FP32: each is taken to begin a division or more.

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
    """Advise FP32 products on tensor cores: two flops there for each multiply-add, many in one instruction.

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
    """Advise to fuse multiplications with additions that could be one instruction (FMA)."""
    for bits in (64, 32, 16):
        added, multiplied = (view.column(f"fp{bits}_{kind}").values for kind in ("add", "mul"))
        pairs = float(np.nansum(np.minimum(added, multiplied)))
        price = view.charges.get(f"fp{bits}_mul")
        if pairs and price and price.pj > 0:
            saves = pairs * price.pj * 1e-12
            yield Try(f"fuse up to {quantity(pairs, '')} FP{bits} multiplications with additions (FMA)", saves)


def fewer_instructions(view: View) -> Iterator[Try]:
    """Advise fewer instructions that are no arithmetic: addresses, loops, loads."""
    for group, kind in (("int", "integer "), ("other", "")):
        words = [word for word in view.words.values() if word.count.group == group and word.count.unit != "cycle"]
        own = [not (kernel.callers or is_of_c(kernel)) for kernel in view.kernels]
        amount = sum(float(np.nansum(view.column(word.count.name).joules[own])) for word in words)
        if amount and not is_of_compiled_library(view, group):
            saves, (told, *cycles_j) = TENTH * amount, of_retiring(view)
            remedies = [_of_shared(view) * (group == "other") or _REMEDIES[group]]
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


def _of_shared(view: View) -> str:
    """Advice where the kernel that takes most of the energy of issuing issues many loads of shared memory; else ""."""
    joules = view.joules_by_kernel("other")
    kernel = view.kernels[max(range(len(joules)), key=joules.__getitem__)]
    loads = view.amount(kernel, "shared_read").or_zero / _WAVEFRONT_B
    share = loads / (view.amount(kernel, "warp_issue").value or math.inf)
    return when(share >= _MANY_LOADS, f"up to {percent(share)} are loads of shared memory: larger tiles in registers")


def _at_work(view: View) -> Iterator[schema.Kernel]:
    """Yield the kernels that fill most of their issue slots, and that nothing else is seen to hold back."""
    if view.is_modelled:
        return
    for kernel, reached in zip(view.kernels, view.speed_shares, strict=False):
        is_short = 0 < view.each_s(kernel) < SHORT_S
        if issuing(kernel) > _MOSTLY_ISSUING and not is_short and max(reached, *busy(kernel).values(), 0.0) < NEAR:
            yield kernel


_NEARLY_ALL = 0.9  # of short launches: a start that may take so much of them ends nothing
_START_S, _MANY = 3e-6, 20  # of a launch that does nothing, about; launches of which the shortest may do little
_OFTEN, _SHAPES = 3, 4  # launches in blocks of a shape, for its time to be known; shapes that are listed
_WITH_OWN_LAUNCHES = (*CLOSED, "thrust", "cub")


def longer_launches(view: View) -> Iterator[Try]:
    """Advise to do more in launches that are so short that they mostly wait for their start: this saves time.

    A start takes no longer than the shortest launch does in all: so much is saved at most for each launch, if that is
    about as short as a start or of many. What a library launches is its own, but for products, which take batches; what
    need not run at all has a lever of its own.
    """
    if view.is_above or view.nouns.is_of_cpu:
        return
    times_s = [view.each_s(kernel) for kernel in view.kernels]
    own = [library_of(kernel.name) not in _WITH_OWN_LAUNCHES or _takes_batches(kernel) for kernel in view.kernels]
    own = [mine and not _remedy(kernel) for mine, kernel in zip(own, view.kernels, strict=True)]
    short = [place for place, each_s in enumerate(times_s) if 0 < each_s < SHORT_S and own[place]]
    if not short:
        return
    taken = {place: times_s[place] * view.kernels[place].launches for place in short}
    if view.has_energy:
        taken = {place: view.kernels[place].energy_j.constant or 0.0 for place in short}
    largest, start_s = max(short, key=taken.__getitem__), min(times_s[place] for place in short)
    most = sum(joules * start_s / times_s[place] for place, joules in taken.items())
    more = counted(len(taken) - 1, f"more {view.nouns.kernel}")
    others = f" and of {more}"
    now = quantity(times_s[largest], "s")
    how = f"do more in each {view.nouns.launch} of"
    if _takes_batches(view.kernels[largest]):
        how = "batch the products of"  # those of a library take batches (cublasGemmStridedBatchedEx), and so does torch
        if not all(_takes_batches(view.kernels[place]) for place in taken):
            others = f", and do more in each {view.nouns.launch} of {more}"
    act = f"{how} {view.label(view.kernels[largest])} (now {now}){when(len(taken) > 1, others)}"
    change = Try(act, TENTH * sum(taken.values()), each="less time", adds=True)
    is_start = start_s < _START_S or sum(view.kernels[place].launches for place in short) >= _MANY
    if most < _NEARLY_ALL * sum(taken.values()) and is_start:
        why = f"if each start takes {quantity(start_s, 's')}, as the shortest {view.nouns.launch} does"
        change = replace(change, most=most, why=why)
    yield change


def _takes_batches(kernel: schema.Kernel) -> bool:
    """Whether a kernel is a product of matrices, as all are that Tensile makes."""
    return is_plain_product(kernel.name) or library_of(kernel.name) == "tensile"


def better_shapes(view: View) -> Iterator[Try]:
    """Advise to launch a kernel in blocks of the shape that took least time, among those of as many threads in all."""
    for kernel in view.kernels:
        often = [shape for shape in kernel.by_shape or () if shape.launches >= _OFTEN]
        for alike in gathered((shape.threads, shape) for shape in often).values():
            best, *others = sorted(alike, key=_of_one)
            slower = [shape for shape in others if shape.launch_s[0] > best.launch_s[1]]
            if not slower:
                continue
            saved_s = sum(shape.time_s - shape.launches * _of_one(best) for shape in slower)
            taken = view.timed(kernel) if view.has_energy else time_of(kernel).or_zero
            times = [f"{_block(shape)}: {quantity(_of_one(shape), 's')}" for shape in slower]
            good = [_block(shape) for shape in (best, *others) if shape not in slower]
            told = f"{quantity(_of_one(best), 's')}; as many threads in {few(times, _SHAPES)}"
            act = f"launch {view.label(kernel)} in blocks of {listed(good, 'or')} ({told})"
            yield Try(act, taken * saved_s / (time_of(kernel).value or math.inf))


def _of_one(shape: OfShape) -> float:
    return shape.time_s / shape.launches


def _block(shape: OfShape) -> str:
    """The shape of a launch's blocks as text, "16 x 16": without dimensions of one thread at the end."""
    sizes = " x ".join(map(str, shape.block))
    return sizes.removesuffix(" x 1").removesuffix(" x 1")


def spared_kernels(view: View) -> Iterator[Try]:
    """Advise to avoid kernels that need not run, by their names; saves at most their joules: others may get slower."""
    spared = gathered((_remedy(kernel), kernel) for kernel in view.kernels)
    for how, kernels in spared.items():
        most, *rest = sorted(kernels, key=lambda kernel: -view.ranked(kernel).or_zero)
        saved, names = sum(view.ranked(kernel).or_zero for kernel in kernels), view.label(most)
        if not view.saved_unit:
            saved = sum(map(view.timed, kernels))
        names += phrase(" and {}", when(rest, counted(len(rest), f"more {view.nouns.kernel}")))
        if how:
            act = how.format(f"{sum(kernel.launches for kernel in kernels):,}", names)
            yield replace(at_most(act, saved), adds=True)


def _remedy(kernel: schema.Kernel) -> str:
    """What spares a kernel that need not run; "": nothing that eprof knows."""
    return remedy_of(kernel.name, "spared_kernel")


_LAYOUT = pattern(r"_([nt]{2})(?![a-z0-9])")  # of a product's operands, in names of cuBLAS and CUTLASS
_ALIKE = 0.03  # of flops, and of bytes written: products that differ by less are one
_THREADS = 32  # of a warp
_MATRIX_FLOPS = 512  # of the smallest instruction of tensor cores, m8n8k4
_LITTLE = 0.03  # of a launch's energy: what takes less more is no dearer


def cheaper_kernels(view: View) -> Iterator[Try]:
    """Advise the cheapest of kernels that do the same product of matrices in place of the others.

    The same: as many flops and writes, and a grid for the same result.
    """
    if view.is_above:
        return
    made = (Product.of(view, kernel) for kernel in view.kernels if is_plain_product(kernel.name))
    for alike in _alike([product for product in made if product is not None]):
        best, *rest = sorted(alike, key=lambda product: product.each_j)
        dearer = [product for product in rest if product.each_j > (1 + _LITTLE) * best.each_j]
        if not dearer:
            continue
        saved_j = [(product.each_j - best.each_j) * product.kernel.launches for product in dearer]
        worst = dearer[max(range(len(dearer)), key=saved_j.__getitem__)]
        more = when(len(dearer) > 1, f" and {len(dearer) - 1} more")
        less = [1 - best.each_j / product.each_j for product in dearer]
        told = f"the same product, {percent_span(min(less), max(less))} less a launch"
        # It locks clocks to their base, where products that wait for memory lose less than others.
        told += when(any(log.format.startswith("ncu") for log in view.document.inputs), " at ncu's clocks")
        yield Try(f"use {view.label(best.kernel)} for {view.label(worst.kernel)}{more} ({told})", sum(saved_j))


def issued_for(kernel: schema.Kernel) -> float:
    """The J that a product's FP32 multiply-adds take to issue, and would not as matrix instructions."""
    issued = kernel.counts.get("warp_issue")
    if not issued or not issued.value:
        return 0.0
    share = _multiplied(kernel) / _THREADS / issued.value
    return min(share, 1.0) * (1 - 2 * _THREADS / _MATRIX_FLOPS) * (issued.energy_j or 0.0)


def cycles_on_tensor_cores(view: View, kernel: schema.Kernel, word: str) -> tuple[float, float]:
    """(most, least) share of a kernel's cycles that its FP32 product would take on tensor cores at their peak.

    word: the type there. GeForce boards have half the rate. (1, 1): nothing tells it.
    """
    signs, cycles = kernel.signs or {}, kernel.counts.get("sm_active_cycle")
    definition = find("ncu", view.document.device.capability or "")
    rate, half = definition.parameters.get("fp16_rate", 0.0), definition.told.get("told_half")
    if not cycles or not cycles.value or not rate or not half or not half.device:
        return 1.0, 1.0
    if word == "tensor_tf32":
        rate /= 2
    traits = Traits(int(signs.get("multiprocessors", 0)) or None)
    are_half = {half.device.search(sheet.name) is not None for sheet in sheets_of(kernel.device, traits)}
    share = 2 * _multiplied(kernel) / rate / cycles.value
    ends = [min(share * (1 + is_half), 1.0) for is_half in sorted(are_half or {False, True})]
    return ends[-1], ends[0]


def _multiplied(kernel: schema.Kernel) -> float:
    """A kernel's FP32 multiply-adds; where kinds are not told, all its FP32 instructions."""
    counted = (kernel.counts.get(name) for name in ("fp32_fma", "fp32"))
    return next((count.value for count in counted if count and count.value), 0.0)


def _alike(products: Iterable["Product"]) -> list[list["Product"]]:
    """Groups of products that do the same, of one device, type and number of flops.

    Where names tell that operands are laid out otherwise ("nn", "nt"), those of one layout are a group.
    """
    groups: list[list[Product]] = []
    for product in sorted(products, key=lambda each: (each.kernel.device or "", each.type, each.flops)):
        for group in reversed(groups):
            first = group[0]
            is_of_kind = (first.kernel.device or "", first.type) == (product.kernel.device or "", product.type)
            if not is_of_kind or abs(product.flops / first.flops - 1) > _ALIKE:
                groups.append([product])  # no other has as many flops
                break
            if product.does_as(first):
                group.append(product)
                break
        else:
            groups.append([product])
    of_one_layout = []
    for group in groups:
        by_layout = gathered(("".join(_LAYOUT.findall(each.kernel.name)[:1]), each) for each in group)
        same_layouts = [same for layout, same in by_layout.items() if layout]
        if len(same_layouts) < 2:
            same_layouts = [group]
        of_one_layout += same_layouts
    return of_one_layout


class Product(NamedTuple):
    """A kernel's launch that multiplies matrices: J, type, flops, grid. written: bytes to DRAM, None if not known."""

    kernel: schema.Kernel
    each_j: float
    type: str
    flops: float
    written: float | None
    blocks: float
    threads: float

    @classmethod
    def of(cls, view: View, kernel: schema.Kernel) -> "Product | None":
        """The product that a kernel does; None where its work, energy or shape is not known."""
        works, signs = flops_of(view, kernel), kernel.signs or {}
        type_ = max(works, key=works.__getitem__, default="")
        blocks, threads = signs.get("blocks"), signs.get("threads")
        if not works.get(type_) or not kernel.energy_j.total or not blocks or not threads:
            return None
        each_j, flops = kernel.energy_j.total / kernel.launches, sum(works.values()) / kernel.launches
        written = divided(view.amount(kernel, "dram_write").value, kernel.launches)
        return cls(kernel, each_j, type_, flops, written, blocks, blocks * threads)

    def does_as(self, other: "Product") -> bool:
        """Whether a product writes as many bytes as another with as many flops, with a grid for the same result.

        Tiles of powers of two make numbers of threads that are apart by powers of two; where writes are not known, the
        blocks must be as many.
        """
        if self.written and other.written:
            steps = math.log2(self.threads / other.threads)
            return abs(self.written / other.written - 1) <= _ALIKE and abs(steps - round(steps)) < _ALIKE
        return self.written is other.written is None and self.blocks == other.blocks

"""Changes to try on bytes of every memory level: fewer, coalesced, kept on the chip, no bank conflicts or spills."""

import math
from collections.abc import Iterator, Sequence
from itertools import compress

import numpy as np
from msgspec.structs import replace

from eprof.base.gpus import Traits, sheets_of
from eprof.base.text import bracketed, listed, pattern, phrase, when
from eprof.base.vocabulary import DATA, RANDOM
from eprof.commands.report.advice.loops import OF_BLOCKS
from eprof.commands.report.advice.savings import (
    NARROWED,
    NEAR,
    TENTH,
    Try,
    at_most,
    busy,
    by_time,
    comes_compiled,
    ended_sooner,
    ends_j,
    is_of_compiled_library,
    issuing,
    less_time,
    mostly_in,
    narrower_bytes_j,
    sooner,
    time_told,
    words_of,
)
from eprof.commands.report.advice.waiting import (
    EXCESS,
    SHARED,
    excess,
    flops_of,
    is_matrix_work,
    least_bytes,
    of_shared_memory,
    scattered,
)
from eprof.commands.report.hotspots import CACHED, SHORT_S, WASTED, requested_of
from eprof.commands.report.view import DRAM, FAMILY_OF, View, time_of
from eprof.profile import schema
from eprof.show.amounts import Amount
from eprof.show.numbers import percent, plain, quantity

_PASSES = pattern(r"(?i)(?:layer|rms|group|batch|instance|l2)_?norm|normali[sz]|soft_?max")
_NUMBERS = pattern(r"\d+")
# Products, convolutions and stencils by their names; or two arrays that are read, one that is written, and three sizes.
_TILED = pattern(
    r"(?i)gemm|mat_?mul|(?<![a-z])mma|conv|stencil|jacobi|laplac"
    r"|\(const [^,]+\*, const [^,]+\*, [^,*]+\*(?:, (?:unsigned )?(?:int|long)){3}\)"
)
_STENCILS = pattern(r"(?i)stencil|laplac|jacobi|heat|diffusi|hotspot|fd[34]d|wave_?prop")
_PASSED_AGAIN, _MOST_PASSES = 1.3, 4.0  # bytes read for each written: more tell of a reduction, which writes little
_NARROWER_TYPES = "with types half as wide"
_SOME = 0.03  # of what they save: a level that has less is not worth a name
# Kernels that read types as narrow as they get, packed weights among them, by what the formats are called.
_PACKED = pattern(
    r"(?i)fp8|e4m3|e5m2|int8|de-?quant|(?<![a-z])(?:u?int4|nf4|mxfp4|w4a|q[2-6]_|awq|gptq|marlin)|mul_mat_vec_q"
)
_OF_VECTORS = pattern(r"(?i)gemv|mat_?vec")
_SECTOR_B = 32  # what DRAM of a GPU moves at least
_MEMORY_B = 288e9  # of a B300, the most that a GPU holds
_AS_MANY = 0.1  # bytes of two kernels, that differ by less
_SLOWER = 1.5  # times as long, from which on another kernel's way to the same bytes is worth a look
_STREAMED = 1.0  # flops a byte, below which a kernel hardly reuses what it reads
_REUSED = 2.0  # bytes of L1 or shared memory for each of DRAM: below, each is used about once
_TILE, _LARGEST_TILE = (
    pattern(r"(?<![\dx])(\d{2,4})x(\d{2,4})"),
    128 * 256,
)  # of a product; larger fill no multiprocessor
_REMEDIES = {
    "l2": "larger tiles in shared memory, or blocks that run together on neighbouring data",
    "l1": "tile in shared memory and registers",
    "shared": "larger tiles in registers",
    "system": "keep data on the GPU",
}


def asked_for(view: View) -> Iterator[Try]:
    """Advise to coalesce accesses that fetch bytes nobody asked for: rows of a matrix read down its columns, say."""
    if view.nouns.is_of_cpu or is_of_compiled_library(view, "l1"):
        return  # what a CPU writes is read first, and what stays in its caches is not moved again
    saved_j, times = dict.fromkeys(range(len(view.kernels)), 0.0), [0.0] * len(view.kernels)
    for level in CACHED:
        for place, (kernel, joules) in enumerate(zip(view.kernels, view.joules_by_kernel(level), strict=True)):
            requested = requested_of(view, kernel) or math.inf
            ratio = view.summed(kernel, words_of(view, level)).or_zero / requested
            if ratio >= WASTED:
                saved_j[place] += joules * (1 - 1 / ratio)
                times[place] = max(times[place], ratio)
    if any(times):
        most = max(saved_j, key=saved_j.__getitem__)
        told = f"{view.label(view.kernels[most])} moves {plain(times[most])} times the bytes that it asks for"
        yield Try(f"coalesce accesses: {told}", sum(saved_j.values()))
        return
    # Without the bytes that were asked for: sectors of DRAM that come for a part of them.
    moved = view.summed(view.document, words_of(view, "dram")).value or math.inf
    skipped = _SECTOR_B * view.amount(view.document, RANDOM).or_zero / moved
    if skipped >= 1 - 1 / WASTED:
        act = f"coalesce accesses: {percent(skipped)} of DRAM's bytes come beside those that are used"
        yield Try(act, skipped * view.joules_of("dram"))
    yield from coalesced(view)


def coalesced(view: View) -> Iterator[Try]:
    """Advise to coalesce accesses in kernels whose profiler tells that they ask for more sectors than they need.

    Of DRAM's bytes the saving is the most: L2 may serve a sector's other parts later.
    """
    saved_j, surely_j, saved_s = dict.fromkeys(range(len(view.kernels)), 0.0), 0.0, 0.0
    shares = [excess(kernel)[0] for kernel in view.kernels]
    stored = [(kernel.signs or {}).get("store_excess", 0.0) for kernel in view.kernels]
    levels = {level: view.joules_by_kernel(level) for level in CACHED}
    if not any(map(any, levels.values())):  # of no bytes it is known what they take: to be tried
        shares = [*map(max, shares, stored)]
    for place, (kernel, share) in enumerate(zip(view.kernels, shares, strict=True)):
        if share < EXCESS:
            continue
        fewer = list(levels)
        # What tensor cores work on may come by copies that go around registers, which the sectors leave out.
        if is_matrix_work(view, kernel):
            fewer = ["l1", "l2"]
        # What is spilled is no part of it.
        local = min(_spilled(view, kernel) / (view.summed(kernel, words_of(view, "l1")).value or math.inf), 1.0)
        parts = {level: share * (1 - (local if level == "l1" else _local_share(kernel))) for level in fewer}
        faster, now = sooner(kernel, {level: 1 - part for level, part in parts.items()}), busy(kernel)
        if 0 < max(now.values(), default=0.0) < NEAR:
            # It waits for sectors, at most: for as many fewer, and until another unit is always busy.
            faster = min(min(parts.values()), 1 - max(now.get("dram", 0.0), now.get("sm", 0.0)))
        if (kernel.signs or {}).get("lg_throttle", 0.0) >= EXCESS:
            faster = max(faster, TENTH)  # the queue of its loads and stores is full
        saved_j[place] = sum(part * levels[level][place] for level, part in parts.items()) + faster * view.timed(kernel)
        saved_j[place] += share * view.timed(kernel) * (not view.saved_unit)
        surely_j += sum(part * levels[level][place] for level, part in parts.items() if level != "dram")
        saved_s += faster * time_of(kernel).or_zero
    weights = {place: share * view.timed(view.kernels[place]) for place, share in enumerate(shares) if share >= EXCESS}
    if weights:
        if any(levels["l1"]) or any(levels["l2"]):
            weights = saved_j
        most = max(weights, key=weights.__getitem__)
        name, stores, (asked, condition) = view.label(view.kernels[most]), stored[most], excess(view.kernels[most])
        mostly = phrase(", {} of its stores'", when(stores > asked, percent(stores)))
        told = f"{percent(asked)} of the sectors that {name} asks for are not used{mostly}{condition}"
        if asked < EXCESS:
            told = f"{percent(stores)} of the sectors that {name} stores to are not filled"
        most_j = sum(saved_j.values())
        change = Try(f"coalesce accesses: {told}", most_j, (surely_j, most_j), less_time(view, 0.0, saved_s))
        yield replace(change, is_open=not (levels["l1"][most] or levels["l2"][most]))


def as_fast_as_others(view: View) -> Iterator[Try]:
    """Advise to move DRAM bytes as fast as another kernel that moves as many with its DRAM busy, where flops are few.

    At most: what else the slower one does was not counted whole.
    """
    if view.nouns.is_of_cpu or view.is_modelled or view.time.value is None or view.is_of_a_second:
        return
    fastest: dict[tuple[str | None, int], schema.Kernel] = {}
    for other in view.kernels:
        moved_b = _each_b(view, other)
        if moved_b and busy(other).get("dram", 0.0) >= NEAR:
            place = other.device, round(math.log(moved_b, 1 + _AS_MANY))
            fastest[place] = min(fastest.get(place, other), other, key=view.each_s)
    for kernel in view.kernels * bool(fastest):
        moved_b, each_s = _each_b(view, kernel), view.each_s(kernel)
        units, flops = busy(kernel), flops_of(view, kernel)
        is_told = "sm" in units or bool(flops)
        is_little = sum(flops.values()) < _STREAMED * view.summed(kernel, DRAM).or_zero
        hardly_computes = is_told and is_little and max(units.values(), default=0.0) < NEAR
        if each_s < SHORT_S or not moved_b or not hardly_computes:
            continue
        size = round(math.log(moved_b, 1 + _AS_MANY))
        alike = [
            fastest[kernel.device, near] for near in (size - 1, size, size + 1) if (kernel.device, near) in fastest
        ]
        alike = [other for other in alike if abs(_each_b(view, other) - moved_b) <= _AS_MANY * moved_b]
        best = min(alike, key=view.each_s, default=kernel)
        if each_s < _SLOWER * view.each_s(best) or excess(kernel)[0] >= EXCESS:
            continue  # accesses that ask for too much have a lever of their own
        gain = (1 - view.each_s(best) / each_s) * view.timed(kernel)
        name, faster = view.label(kernel), view.label(best)
        told = f"as many DRAM bytes in {plain(each_s / view.each_s(best))} times the time"
        act = f"access memory in {name} as {faster} does ({told}: coalesce accesses, or keep more of them in flight)"
        yield at_most(act, gain)


def _each_b(view: View, kernel: schema.Kernel) -> float:
    """The DRAM bytes of one launch of a kernel; 0 where not all are known."""
    moved = view.summed(kernel, DRAM)
    return moved.or_zero / kernel.launches * (not moved.lower)


def read_again(view: View) -> Iterator[Try]:
    """Advise to keep rows on the chip that a normalisation or a softmax reads again in each of its passes."""
    for kernel in view.kernels:
        read, written = (view.amount(kernel, f"dram_{way}").or_zero for way in ("read", "write"))
        stored = max(written, *(view.amount(kernel, f"{level}_write").or_zero for level in ("l1", "l2")))
        again = read / (stored or math.inf)
        is_stencil = _STENCILS.search(kernel.name) is not None
        if not (is_stencil or _PASSES.search(kernel.name)) or not _PASSED_AGAIN <= again <= _MOST_PASSES:
            continue
        left = (stored + written) / (read + written)
        sooner_j, sooner_s = ended_sooner(view, [kernel], {"dram": left, "l2": left})
        told = f"it reads {plain(again)} bytes of DRAM for each that it stores; if both are as wide"
        act = f"keep rows of {view.label(kernel)} on the chip between passes ({told})"
        if is_stencil:
            act = f"keep planes of {view.label(kernel)} in L2 or on the chip, in smaller blocks ({told})"
        if not view.saved_unit:  # neither joules nor times: to be tried
            yield Try(act, (1 - left) * view.timed(kernel), is_open=True)
            continue
        # What it saves by reading so many bytes once: at least, with rows in shared memory; at most. What L1 fetched
        # again it was asked for again, too.
        read_b = {level: view.amount(kernel, f"{level}_read").or_zero for level in ("dram", "l2")}
        again_b = {level: max(moved - stored, 0.0) for level, moved in read_b.items()}
        again_b["l1"] = again_b["l2"]
        if view.costs and view.costs.books == "served":  # a byte is charged at one level alone
            again_b |= {"l2": read_b["l2"], "l1": 0.0}
        most_j = sum(moved * _each_j(kernel, f"{level}_read") for level, moved in again_b.items())
        kept_j = stored * _each_j(kernel, "shared_write") + max(again_b.values()) * _each_j(kernel, "shared_read")
        least_j = max(most_j - kept_j, 0.0)
        ends = least_j, most_j + sooner_j
        yield Try(act, sum(ends) / 2, ends, less_time(view, 0.0, sooner_s))


def _each_j(kernel: schema.Kernel, word: str) -> float:
    count = kernel.counts.get(word)
    return (count and count.energy_j or 0.0) / (count and count.value or math.inf)


def fewer_bytes(view: View) -> Iterator[Try]:
    """Advise fewer bytes of each memory level: how, what each tenth of them saves, and what can be saved at most."""
    for group, amount in view.groups.items():
        if FAMILY_OF[group] != DATA or not amount.value or group != "dram" and is_of_compiled_library(view, group):
            continue
        saves = TENTH * amount.value
        low, high = ends_j(view, group, saves) or (saves, saves)
        left, why = _least_left(view, group)
        gone_j = float(np.dot(view.joules_by_kernel(group), np.subtract(1, left))) * high / saves
        gone_tenths = gone_j / high
        if why == _NARROWER_TYPES and not view.nouns.is_of_cpu:
            # They halve what every level moves; but a warp's access of L1 takes as long for fewer bytes.
            wide = [not _PACKED.search(kernel.name) for kernel in view.kernels]
            beside_j = narrower_bytes_j([*compress(view.kernels, wide)])
            beside_j -= (1 - NARROWED) * sum(compress(view.joules_by_kernel(group), wide))
            gone_j += beside_j
            others = [name for name in view.groups if FAMILY_OF[name] == DATA and name != group]
            names = [view.in_prose(name) for name in others if (1 - NARROWED) * view.joules_of(name) > _SOME * gone_j]
            if names:
                why += f" ({listed(names)} too)"
        least_j, _ = by_time(view, view.kernels, {group: 1 - TENTH})
        most_j, time = by_time(view, view.kernels, *_with_its_way(group, view, [1 - TENTH] * len(left)))
        most_of_all_j, _ = by_time(view, view.kernels, *_with_its_way(group, view, left))
        # Whether a unit is busier than that of this level, in the kernel with most joules that go with time; where none
        # tells how busy that is, the share of the roofline's speed stands for it.
        first = max(range(len(view.kernels)), key=lambda place: view.timed(view.kernels[place]))
        units = busy(view.kernels[first])
        is_held_elsewhere = any(share > units.get(group, view.speed_shares[first]) for share in units.values())
        for answer in view.document.what_if or ():
            is_it = answer.question == f"{group}=-20%" and not time and not view.is_modelled
            if is_it and answer.change_share and answer.time_share and not is_held_elsewhere:
                # What goes with time, whatever a byte costs: all of it near the roofline, else up to that.
                most_j = max(-answer.change_share * view.everything / 2 - saves, 0.0)
                time = time_told(answer.time_share / 2)
                # Half of the time or more is in kernels near the roofline's speed, whose times follow it.
                times = [time_of(kernel).or_zero for kernel in view.kernels]
                near_s = sum(time for time, share in zip(times, view.speed_shares, strict=False) if share >= NEAR)
                least_j = most_j * (near_s >= sum(times) / 2)
                most_of_all_j = most_j * gone_tenths
        time = time.replace(", ", f", {when(least_j < most_j, 'up to ')}", 1)
        # The more of the total bytes take, as their price may be higher, the less is left to go with time.
        at_low, at_high = (
            (view.everything - end / TENTH) / (view.everything - amount.value or math.inf) for end in (low, high)
        )
        least_j, most_j, most_of_all_j = at_low * least_j, at_high * most_j, at_high * most_of_all_j
        # Where a price is above its middle, so is the total that shares are of.
        most_share = view.everything * (1 - min(left))
        low, high = (min(end, TENTH * view.everything) for end in (low + least_j, high + most_j))
        how = "; ".join(filter(None, [mostly_in(view, group), _remedy(view, group)]))
        act = f"move fewer {view.in_prose(group)} bytes{bracketed(how)}"
        change = Try(act, (low + high) / 2, (low, high), time, each="fewer")
        if why and (group == "dram" or least_j == most_j):
            change = replace(change, most=min(gone_j + most_of_all_j, most_share), why=why)
        yield change


def _with_its_way(level: str, view: View, left: Sequence[float]) -> list[dict[str, float]]:
    """For each kernel, unit -> share of its work left if a memory level moves the share `left` of its bytes.

    Units on the way to a level have less work, too: L2 for DRAM, and "sm" for L1 where counters do not tell L1's. But
    tiles of a product that find more of its operands in L2 ask L2 for as much as before.
    """
    works = []
    for kernel, share in zip(view.kernels, left, strict=True):
        units = dict.fromkeys((level, *["sm"] * (level == "l1" and "l1" not in busy(kernel))), share)
        if level == "dram" and not least_bytes(view, kernel):
            passed = view.summed(kernel, words_of(view, "l2")).value or math.inf
            passing = min(view.summed(kernel, DRAM).or_zero / passed, 1.0)
            units = {"l2": 1 - (1 - share) * passing, **units}
        works.append(units)
    return works


def _least_left(view: View, group: str) -> tuple[list[float], str]:
    """The least share of a memory level's bytes that each kernel must move, (n_kernels,); and a phrase why, or ""."""
    moved = [view.summed(kernel, words_of(view, group)).value or math.inf for kernel in view.kernels]
    if group in ("l1", "l2"):
        below = [view.summed(kernel, DRAM).value for kernel in view.kernels]
        left = [min((each or 0.0) / of, 1.0) for each, of in zip(below, moved, strict=True)]
        return left, when(None not in below, "with each byte of DRAM moved there once")
    if group != "dram":
        return [0.0] * len(moved), ""
    left = [0.0] * len(moved)
    if not is_of_compiled_library(view, group):  # how the tiles of a library follow each other is its own
        left = [least_bytes(view, kernel) / of for kernel, of in zip(view.kernels, moved, strict=True)]
    held = [_memory_b(view, kernel) * kernel.launches / of for kernel, of in zip(view.kernels, moved, strict=True)]
    joules = view.joules_by_kernel(group)
    most, why = max(range(len(joules)), key=joules.__getitem__), _NARROWER_TYPES
    packed = [_PACKED.search(kernel.name) is not None for kernel in view.kernels]
    left = [share or float(is_packed) for share, is_packed in zip(left, packed, strict=True)]
    if packed[most]:
        why = ""
    elif left[most]:
        why = "with each operand moved once"
    elif held[most] < NARROWED:
        why = "in one pass over its memory"
    return [min(share or NARROWED, bound, 1.0) for share, bound in zip(left, held, strict=True)], why


def _memory_b(view: View, kernel: schema.Kernel) -> float:
    """The bytes of memory of a kernel's GPU, the most of all boards that it may be; infinite where none can be told.

    A launch that moves more bytes than that moves some of them again; of a second of rates, no launch's bytes are told.
    """
    if view.is_of_a_second:
        return math.inf
    its = view.document.device.told or Traits()
    traits = replace(its, sms=int((kernel.signs or {}).get("multiprocessors", 0)) or its.sms)
    return max((sheet.memory_b or _MEMORY_B for sheet in sheets_of(kernel.device, traits)), default=_MEMORY_B)


def less_uncounted(view: View) -> Iterator[Try]:
    """Advise less of what holds kernels back and was not counted, bytes or instructions: only time is saved."""
    counted = {group: view.groups.get(group, Amount(None)).value for group in ("l1", "l2", "dram")}
    for group, amount in {**counted, "sm": view.instructions(view.document).value}.items():
        if amount or not view.kernels:
            continue
        saves, time = by_time(view, view.kernels, {group: 1 - TENTH})
        if not saves:
            continue
        most = max(view.kernels, key=lambda kernel: sooner(kernel, {group: 1 - TENTH}) * view.timed(kernel))
        act = _less_of(view, group, most)
        if comes_compiled(most) or not act:
            continue
        change = Try(act, saves, None, time, each="fewer")
        if group == "l1" and (apart := scattered(view, most)):
            change = Try(apart, saves, each="less time")
        held = [kernel for kernel in view.kernels if sooner(kernel, {group: 0.0})]
        if all(len(busy(kernel)) > 1 or issuing(kernel) for kernel in held):
            most_j = by_time(view, held, {group: 0.0})[0]
            change = replace(change, most=most_j, why="until another unit holds it back")
        yield change


def _less_of(view: View, group: str, kernel: schema.Kernel) -> str:
    """Advice to have less of what was not counted and holds a kernel back; "" where its work may need all of it."""
    level, share = view.in_prose(group), percent(busy(kernel).get(group, 0.0))
    if group == "sm":
        # Tensor cores may be what is busy, whose instructions are the work itself, as are those of a product.
        is_work = is_matrix_work(view, kernel) or _TILED.search(kernel.name) is not None
        told = f"{view.label(kernel)} (multiprocessors are {share} busy)"
        return when(not is_work, f"execute fewer instructions, or cheaper ones, in {told}")
    if group == "l1" and view.summed(kernel, SHARED).value != 0:  # its unit moves both
        act = f"move fewer bytes (L1 or shared memory is {share} busy; keep more in registers)"
        return of_shared_memory(view, kernel, f"L1 is {share} busy") or act
    return f"move fewer {level} bytes ({level} is {share} busy; {_remedy(view, group)})"


def _remedy(view: View, group: str) -> str:
    """How to move fewer bytes of a memory level, by the kernel that it costs most; "": nothing that eprof knows."""
    if view.nouns.is_of_cpu:
        return OF_BLOCKS
    joules = view.joules_by_kernel(group)
    kernel = view.kernels[max(range(len(joules)), key=joules.__getitem__)]
    if group != "dram":
        return _REMEDIES.get(group, "")
    if is_of_compiled_library(view, group):
        return "store narrower types, or fuse what comes before and after it"
    if least_bytes(view, kernel):
        order = "blocks in an order that reuses what L2 holds"
        tile = _TILE.search(view.label(kernel))
        if tile and int(tile[1]) * int(tile[2]) >= _LARGEST_TILE:
            return f"{order}: along the other side of the result, or swizzled"
        return f"larger tiles, or {order}"
    each_b = view.summed(kernel, DRAM).or_zero / kernel.launches
    if each_b > _memory_b(view, kernel):
        held = quantity(_memory_b(view, kernel), "B")
        told = f"a {view.nouns.launch} moves {quantity(each_b, 'B')}, the same again, as its GPU holds {held} at most"
        is_tiled = _TILED.search(kernel.name) or is_matrix_work(view, kernel)
        how = when(is_tiled, "larger tiles in shared memory and registers")
        return f"{how or 'smaller data, side by side for neighbouring threads'}: {told}"
    is_packed = _PACKED.search(kernel.name) is not None
    if is_packed and _OF_VECTORS.search(kernel.name):
        return "its weights are packed: multiply each with several vectors at a time, in batches"
    narrower = ["store narrower types"] * (not is_packed)
    nearer = [view.summed(kernel, words_of(view, level)).value for level in ("l1", "shared")]
    again = max((moved for moved in nearer if moved is not None), default=None)
    is_unknown = again is None and (kernel.intensity_flop_per_byte or 0.0) >= _STREAMED
    is_reused = (again or 0.0) >= _REUSED * (view.summed(kernel, DRAM).value or math.inf)
    reused, together = ["reuse tiles"] * (is_unknown or is_reused), [_together(view, kernel)] * (not is_reused)
    ways = [*reused, *together, *narrower]
    if len(view.kernels) == 1 and kernel.launches == 1:  # what comes next may be out of reach
        ways = [*reused, *narrower, *together]
    *first, last = ways
    return phrase("{}, or ", ", ".join(first)) + last


def _together(view: View, kernel: schema.Kernel) -> str:
    """How an array that a kernel passes on need not go through DRAM, by what else a log shows to run."""
    names = {_NUMBERS.sub("", other.name) for other in view.kernels}
    if len(names) > 1:  # those of names that differ in numbers alone are to choose among
        return f"fuse {view.nouns.kernels} that pass arrays on"
    if kernel.launches > 1:
        return f"do the work of several {view.nouns.launches} in one pass"
    return "keep its result in registers for what uses it"


def fewer_conflicts(view: View) -> Iterator[Try]:
    """Advise to avoid bank conflicts of shared memory, by the share of its accesses that they are."""
    shares = [(kernel.signs or {}).get("bank_conflict", 0.0) for kernel in view.kernels]
    saved_j = sum(share * joules for share, joules in zip(shares, view.joules_by_kernel("shared"), strict=True))
    if saved_j:
        act = f"avoid bank conflicts (up to {percent(max(shares))} of the accesses of shared memory)"
        yield Try(f"{act}: pad its arrays", saved_j)


def conflicts_alone(view: View) -> Iterator[Try]:
    """Advise to avoid bank conflicts where a log has neither times nor the accesses that they are a share of."""
    conflicts = {kernel.name: (kernel.signs or {}).get("bank_conflicts", 0.0) for kernel in view.kernels}
    if view.saved_unit or not any(conflicts.values()):
        return
    most = max(view.kernels, key=lambda kernel: conflicts[kernel.name])
    free = next((view.label(kernel) for kernel in view.kernels if not conflicts[kernel.name]), "")
    told = f"{quantity(conflicts[most.name], '')} in {view.label(most)}{phrase(', none in {}', free)}"
    yield Try(f"avoid bank conflicts of shared memory ({told}): pad its arrays, or swizzle them", view.everything)


def fewer_spills(view: View) -> Iterator[Try]:
    """Advise to spill no registers: this spares bytes of L1, and of L2 as many as are known to be of local memory.

    Of DRAM it may spare as large a share, and time, as far as units are held by such bytes.
    """
    spilled, surely_j, most_j, saved_s = 0.0, 0.0, 0.0, 0.0
    levels = {level: view.joules_by_kernel(level) for level in ("l1", "l2", "dram")}
    for place, kernel in enumerate(view.kernels):
        local, behind = _spilled(view, kernel), _local_share(kernel)
        share = min(local / (view.summed(kernel, words_of(view, "l1")).value or math.inf), 1.0)
        more_j, more_s = ended_sooner(view, [kernel], {"l1": 1 - share, "l2": 1 - behind, "dram": 1 - behind})
        spilled, saved_s = spilled + local, saved_s + more_s
        surely_j += share * levels["l1"][place] + behind * levels["l2"][place]
        most_j += behind * levels["dram"][place] + more_j
    if not spilled:
        return
    worst, most = max(view.kernels, key=lambda kernel: _spilled(view, kernel)), max(map(_local_share, view.kernels))
    told = f"{quantity(spilled, 'B')} of local memory{when(most, f', {percent(most)} of what L1 and L2 pass on')}"
    told += phrase(", most in {}", when(len(view.kernels) > 1, view.label(worst)))
    act = f"spill no registers ({told}): smaller tiles or arrays, __launch_bounds__"
    if not view.saved_unit:
        yield Try(act, view.everything, is_open=True)
    elif surely_j:
        ends = surely_j, surely_j + most_j
        yield Try(act, sum(ends) / 2, ends, less_time(view, 0.0, saved_s))


def _spilled(view: View, kernel: schema.Kernel) -> float:
    return sum(view.amount(kernel, f"local_{way}").or_zero for way in ("read", "write"))


def _local_share(kernel: schema.Kernel) -> float:
    """The share of local memory in the traffic between L1 and L2; 0: not counted."""
    return (kernel.signs or {}).get("local_share", 0.0)

"""Changes to try between kernels: close gaps, copy less or faster, start less often; and what that saves (`Try`)."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from eprof.base.gpus import host_link
from eprof.base.labels import remedy_of
from eprof.base.optional import mapped
from eprof.base.text import counted, listed, pattern, phrase, when
from eprof.base.vocabulary import CONSTANT
from eprof.commands.report.advice.savings import TENTH, Try, at_most
from eprof.commands.report.headline import NOTHING_TOLD, WITHIN_GPU, briefly
from eprof.commands.report.view import View
from eprof.logs.log import BETWEEN, PAGES, Copies
from eprof.profile import schema
from eprof.profile.schema import WORTH_IT
from eprof.readers.gaps import FAULTS
from eprof.show.numbers import NARROW, plain, quantity

_MUCH = 0.2  # of all gaps, or of all time
_MOSTLY = 0.5  # of the gaps: what explains so much of them
_ALL = 0.99  # of what is saved: so much of it needs no number of its own
_GRAPH_S = 1.5e-6  # between kernels of a graph, our choice; 0.5 on a V100 (NVIDIA's "Getting Started with CUDA Graphs")
_COPY_STARTS_S = 10e-6  # about what a copy takes before its first byte
_LARGE_B = 1e6  # copies of so many bytes show how fast they can be
_BLOCK_B = 0.99 * 2**21  # in such blocks, and no smaller ones, the driver makes room in a GPU that is full
_BACK = "DtoH"
_OF_HOST = ("HtoD", _BACK)
_NOT_PINNED = {"pageable": "pageable memory", "": "maybe pageable memory"}
_ALLOCATED = {False: "cudaMallocHost", True: "hipHostMalloc"}
_WAITS = "Synchronize"  # a part of the names of calls that last as long as kernels do
_OLD_CALLS = frozenset({"cudaLaunch", "cudaConfigureCall", "cudaSetupArgument"})  # that CUDA 10.1 has no longer
_PINS, _UNPINS = (
    pattern(r"MallocHost|HostAlloc|AllocHost|HostMalloc|HostRegister"),
    pattern(r"(?:Free|Host)(?:Host|Free|Unregister)"),
)
_RESET, _ALLOCATES = "DeviceReset", "alloc"


def after_the_start(view: View, little: float) -> str:
    """The advice to trace after the warm-up, if most time between kernels is before first launches; else empty.

    Empty too where a change of its own tells of the start (`Between.starting_s`).
    """
    gaps = view.document.gaps or NOTHING_TOLD
    is_little = gaps.first_s <= max((gaps.time_s or 0.0) / 2, little * (view.time.or_zero + view.document.still_s))
    if is_little or Between.of(view).starting_s:
        return ""
    taken = quantity(gaps.first_s, "s")
    if view.has_energy and not view.document.has_open_rest:
        taken += f" ({quantity(gaps.first_s * Between.of(view).power, 'J')})"
    return f"trace after the warm-up, or do more in each run: {taken} before first launches is paid once"


class Between(NamedTuple):
    """The time between kernels, s: gaps that come again, in which nothing ran, and copies while no kernel did.

    starting_s: what calls of CUDA take once a run; of a trace the time before first launches, if that is most of all.
    power: in W, at which it passes; 1 where no joules are known, for what is saved is s then.
    """

    waiting_s: float
    copying_s: float
    starting_s: float
    power: float

    @classmethod
    def of(cls, view: View) -> "Between":
        """The time between kernels of a report; by the meter's idle time where a meter tells it."""
        gaps = view.document.gaps or NOTHING_TOLD
        idle_s, idle_j = gaps.time_s or 0.0, gaps.energy_j or 0.0
        power = view.document.constant_w
        if power is None:  # of several GPUs: their mean, by the time of their kernels
            power = view.energy(CONSTANT).or_zero / (view.time.value or math.inf)
        if view.to_meter is not None and view.to_meter.idle_s:
            idle_s, idle_j = view.to_meter.idle_s, view.to_meter.idle_j
            power = idle_j / idle_s
        if view.document.has_open_rest:
            # At most the mean: the meter may have seen the kernels alone, which draw no less.
            power = view.everything / (view.time.or_zero + gaps.still_s or math.inf)
        if not view.has_energy:
            power = 1.0
        is_most = gaps.first_s > _MOSTLY * (view.time.or_zero + view.document.still_s)
        starting_s = gaps.first_s * (bool(gaps.calls) or is_most)
        return cls(max(idle_s - gaps.first_s - gaps.copied_s, 0.0), gaps.lasting_s, starting_s, power)


def fewer_gaps(view: View) -> Iterator[Try]:
    """The ways to close gaps between kernels, and to copy less or faster, as far as the trace tells what they save."""
    between = Between.of(view)
    for change in _ways(view, between):
        saved = change.times(between.power)
        if view.document.has_open_rest:
            saved = replace(saved, ends=(0.0, saved.saves))
        yield saved


def _ways(view: View, between: Between) -> Iterator[Try]:
    """The changes of `fewer_gaps`, with the s that they save."""
    gaps = view.document.gaps or NOTHING_TOLD
    starts = when(gaps.calls, "what is paid once") or "first launches"
    left_out = when(gaps.first_s > WORTH_IT * (gaps.time_s or 0.0), f", {starts} left out")
    if between.waiting_s:
        yield from (replace(each, beside=left_out) for each in _waiting(view, gaps, between.waiting_s))
    if between.starting_s:
        yield _starting(gaps, between.starting_s)
    if gaps.copies_s:
        yield from _copying(view, gaps, between.copying_s)
    if faults_s := sum(copies.time_s for copies in gaps.copies if (copies.way, copies.memory) == (FAULTS, PAGES)):
        came = [copies for copies in gaps.copies if copies.memory == PAGES and copies.way in _OF_HOST]
        yield _fewer_faults(view, came, faults_s)


def _starting(gaps: schema.Gaps, starting_s: float) -> Try:
    """The change that saves what takes time once a run: more work in each run, and of calls of CUDA a quicker one."""
    if not gaps.calls:
        told = f"{quantity(starting_s, 's')} before first launches is paid once"
        return at_most(
            f"do more in each run ({told}: see what the host does then, or trace after the warm-up)", starting_s
        )
    longest = max(gaps.calls, key=lambda calls: calls.once_s * (_WAITS not in calls.name))
    once, of_it = (quantity(time_s / gaps.runs, "s") for time_s in (starting_s, longest.once_s))
    each = when(gaps.runs > 1, f"in each of {gaps.runs:,} runs") or "a run"
    share = when(longest.once_s < _ALL * starting_s, f"{of_it} of it ")
    told = f"{once} is paid once {each}, {share}in {longest.name}"
    quicker = remedy_of(longest.name, "paid_once")
    freed_s = sum(calls.time_s for calls in gaps.calls if _UNPINS.search(calls.name))
    if _PINS.search(longest.name) and freed_s > TENTH * longest.once_s:  # a start of CUDA has no such end
        quicker = f"it pins much memory of the host, which takes {quantity(freed_s, 's')} to free: pin less"
    if any(calls.name in _OLD_CALLS for calls in gaps.calls):
        quicker = quicker.partition(" and, since")[0]
    return at_most(f"do more in each run ({told}{phrase('; {}', quicker)})", starting_s)


def _waiting(view: View, gaps: schema.Gaps, waiting_s: float) -> Iterator[Try]:
    """Ways to close gaps, by cause: launches one by one; then what the CPU did, one long gap, or what is left."""
    graphs = "HIP graphs" if view.is_of_amd else "CUDA graphs"
    least_s = _MOSTLY * waiting_s
    reached_s = gaps.short_s - gaps.short_gaps * _GRAPH_S
    if reached_s > 0:
        each = quantity(gaps.short_s / gaps.short_gaps, "s")
        told = f"{counted(gaps.short_gaps, 'gap')} between {view.nouns.kernels}, {each} each; theirs, assumed, 1.5 µs"
        yield at_most(f"launch in {graphs} ({told})", min(reached_s, waiting_s))
    resets = next((calls for calls in gaps.calls if _RESET in calls.name and calls.number > gaps.runs), None)
    if resets is not None:  # each frees all memory, and the next call starts CUDA anew
        again_s, told = resets.time_s * (1 - gaps.runs / resets.number), f"{resets.number:,} of {resets.name}"
        allocating = next((calls for calls in gaps.calls if _ALLOCATES in calls.name), None)
        if allocating is not None:
            again_s += max(allocating.time_s - gaps.runs * allocating.longest_s, 0.0)
            told += f" and {allocating.number:,} of {allocating.name}"
        act = f"reset the device once, at the end, and allocate memory once ({quantity(again_s, 's')} in calls: {told})"
        yield at_most(act, min(again_s, waiting_s))
    doing = next((each for each in gaps.during if least_s <= each.time_s <= waiting_s), None)
    if doing is not None:
        how = _how_of(doing.doing.rpartition(BETWEEN)[2]).replace("CUDA graphs", graphs)
        told = f"{quantity(doing.time_s, 's')} in {briefly(doing)}"
        yield at_most(f"close the gaps between {view.nouns.kernels} ({told}: {how})", doing.time_s)
    elif least_s <= gaps.longest_s <= waiting_s + gaps.copied_s:
        told = f"close the gap of {quantity(gaps.longest_s, 's')} between {view.nouns.kernels}"
        yield at_most(f"{told} (see what the host does then)", min(gaps.longest_s, waiting_s))
    elif gaps.short_s < least_s:
        rest_s = waiting_s - gaps.short_s
        longer = f"{quantity(rest_s, 's')} in gaps{when(gaps.short_gaps, f' of more than 100{NARROW}µs')}"
        how = "fewer synchronisations, input that is ready, no allocations"
        own = (calls for calls in gaps.calls if not calls.is_range)
        longest = max(own, key=lambda calls: calls.time_s - calls.once_s, default=None)
        if longest is not None and longest.time_s - longest.once_s > _MUCH * rest_s:
            longer = f"{quantity(longest.time_s, 's')} in {counted(longest.number, 'call')} of {longest.name}"
            how = _how_of(longest.name)
            rest_s = min(rest_s, longest.time_s - longest.once_s)
        elif parts := [each for each in gaps.during if each.time_s > TENTH * rest_s]:
            ranges = [f"{quantity(each.time_s, 's')} in {briefly(each)}" for each in parts]
            longer += f", of these {listed(ranges)}"
            how = "do that less often, or beside kernels"
        yield at_most(f"wait less for the host ({longer}: {how})", rest_s)


def _how_of(call: str) -> str:
    """Advice on how to have less of a call of CUDA or HIP, or of what else the CPU does between kernels."""
    if call.startswith("range "):
        return "see what the host does in it, or how CUDA starts, beside its calls"
    return remedy_of(call, "call") or "do it less often, or beside kernels"


def _copying(view: View, gaps: schema.Gaps, copying_s: float) -> Iterator[Try]:
    """Ways to save time of copies: bytes that are copied again, slow copies, managed memory, copies beside kernels."""
    alone = copying_s / gaps.copies_s
    # Several streams that copy at a time share the way to the host.
    taken = [copies for copies in gaps.copies if copies.memory != PAGES]
    together = min(gaps.copies_s / (sum(copies.time_s for copies in taken) or math.inf), 1.0)
    copied = [
        replace(copies, time_s=copies.time_s * together, again_s=mapped(together.__mul__, copies.again_s))
        for copies in taken
        if copies.way in _OF_HOST
    ]
    explicit = [copies for copies in copied if copies.memory != "unified"]
    pages = [copies for copies in copied if copies.memory == "unified"]
    hedge = when(gaps.alone_s is None, "; nothing where kernels run meanwhile")

    if again_s := sum(copies.again_s or 0.0 for copies in explicit):
        told = f"{quantity(again_s, 's')} of copies move as many bytes as one before them"
        yield at_most(f"keep data on the GPU ({told}, with a {view.nouns.kernel} between)", again_s * alone)
    unknown = [copies for copies in explicit if copies.again_s is None]
    if repeated_s := sum(copies.time_s * _again(view, copies) for copies in unknown):
        number, took_s = (sum(getattr(copies, name) for copies in unknown) for name in ("number", "time_s"))
        told = f"{number:,} copies in {quantity(took_s, 's')}"
        is_back = 2 * sum(copies.time_s for copies in unknown if copies.way == _BACK) > took_s
        where = when(is_back, "until the host needs them") or "where they stay the same"
        yield at_most(f"keep data on the GPU, {where} ({told}{hedge})", repeated_s * alone)
    once = [(copies.time_s * (1 - _again(view, copies)) * alone, copies.way) for copies in explicit]
    once_s, back_s = sum(time_s for time_s, _ in once), sum(time_s for time_s, way in once if way == _BACK)
    # What runs beside kernels is pinned, even where the log does not tell.
    is_beside = gaps.alone_s is not None and alone < 1 - WORTH_IT
    memories = {"pageable": "pageable memory"} if is_beside else _NOT_PINNED
    faster = _faster(view, [copies for copies in explicit if copies.size_b >= _LARGE_B * copies.number], memories)
    pinned = [each.times(alone) for each in faster]
    yield from pinned
    pinned_s = sum(each.saves for each in pinned)
    if once_s > _MUCH * (view.time.or_zero + copying_s):
        told = f"{quantity(once_s, 's')} of copies come once a run{hedge}"
        how, is_vague = "do more with what is copied, or make it on the GPU", back_s <= _MOSTLY * once_s
        if not is_vague:
            how = "do on the GPU what the host does with results, and copy less of them back"
        if not (is_vague and pinned_s > TENTH * once_s):
            yield at_most(f"{how} ({told})", once_s, is_vague=is_vague)
    if pages:
        pages_s = sum(copies.time_s for copies in pages)
        faults_s = sum(copies.time_s for copies in taken if copies.way == FAULTS)
        yield _fewer_faults(view, pages, faults_s, pages_s * alone, together)
    if within := [copies for copies in gaps.copies if copies.way == WITHIN_GPU]:
        within_s = sum(copies.time_s for copies in within) * together
        told = f"{counted(sum(copies.number for copies in within), 'copy', 'copies')} in {quantity(within_s, 's')}"
        yield at_most(f"swap pointers for copies within the GPU ({told}: DRAM is read and written)", within_s * alone)
    if gaps.alone_s is not None:
        hidden_s = min(sum(copies.time_s for copies in explicit) * alone, view.time.or_zero)
        # Copies beside each other, or beside kernels, are on streams.
        pieces = when(min(together, alone) < 1 - WORTH_IT, "smaller pieces") or "pieces on streams"
        yield at_most(f"copy while {view.nouns.kernels} run, in {pieces}", hidden_s)


def _fewer_faults(view: View, pages: list[Copies], faults_s: float, alone_s: float = 0.0, together: float = 1.0) -> Try:
    """The change to prefetch managed pages; or to fewer bytes at a time, where the GPU's memory cannot hold them.

    Kernels wait for faults, and for pages that come after these: prefetching spares faults alone. alone_s: what pages
    took while no kernel ran. together: the share of the faults' time that passed.
    """
    pages_s, pages_b = (sum(getattr(copies, name) for copies in pages) for name in ("time_s", "size_b"))
    faulted = when(faults_s, f", after {quantity(faults_s, 's')} of page faults")
    evicted_b = sum(
        copies.size_b for copies in pages if copies.way == _BACK and copies.size_b >= _BLOCK_B * copies.number
    )
    came_b = sum(copies.size_b for copies in pages if copies.way != _BACK)
    if faults_s and came_b > evicted_b > 0:
        told = f"{quantity(came_b, 'B')} came{faulted}, and {quantity(evicted_b, 'B')} had to make room"
        act = f"work on as many bytes at a time as the GPU holds ({told}: prefetching managed memory cannot help)"
        once_s = pages_s * (came_b - evicted_b) / pages_b
        return at_most(act, max(view.time.or_zero - once_s, 0.0))
    rate = when(pages_s, f", at {_rate(pages_b / (pages_s or math.inf))}")
    told = f"pages came {sum(copies.number for copies in pages):,} times{rate}{faulted}"
    waited_s = min(faults_s * together, max(view.time.or_zero - (pages_s - alone_s), 0.0))
    return at_most(f"prefetch managed memory, cudaMemPrefetchAsync ({told})", waited_s + alone_s)


def _again(view: View, copies: Copies) -> float:
    """The share of copies that move bytes again, as told; else as if each run needs one, and each launch had one."""
    if copies.again_s is not None:
        return copies.again_s / copies.time_s
    launches = max((kernel.launches for kernel in view.kernels), default=1)
    runs = view.document.gaps.runs if view.document.gaps else 1
    return max(1 - runs / min(copies.number, launches), 0.0)


def _faster(view: View, copied: list[Copies], memories: Mapping[str, str]) -> Iterator[Try]:
    """Yield the change to pinned memory, at the speed of the board's link or the log's fastest copy; none if in use.

    That surely pays for what comes again. To pin memory takes up to about as long as to copy it once; less where it is
    allocated so from the first, as new pageable memory takes page faults too.
    """
    slow = [copies for copies in copied if copies.memory in memories]
    if not slow:
        return
    reached = max(copies.size_b / copies.time_s for copies in copied)
    why, link = f"the fastest copies here reach {_rate(reached)}", host_link(view.document.device.name or "")
    if link is not None and link.pinned_byte_per_s > reached:
        reached, why = link.pinned_byte_per_s, f"{link.name} does some {plain(link.pinned_byte_per_s * 1e-9)}"
    pinned_s = (copies.size_b / reached + copies.number * _COPY_STARTS_S for copies in slow)
    gained_s = [max(copies.time_s - least_s, 0.0) for copies, least_s in zip(slow, pinned_s, strict=True)]
    again_s = sum(gain_s * _again(view, copies) for copies, gain_s in zip(slow, gained_s, strict=True))
    now = _rate(sum(copies.size_b for copies in slow) / sum(copies.time_s for copies in slow))
    memory = memories[min(copies.memory for copies in slow)]
    act = f"copy with pinned memory, {_ALLOCATED[view.is_of_amd]} (now {now}, {memory}; {why})"
    if again_s:
        yield Try(act, again_s)
    else:
        yield replace(at_most(act, sum(gained_s)), beside=", less what pinning takes once")


def _rate(byte_per_s: float) -> str:
    return f"{plain(byte_per_s * 1e-9)}{NARROW}GB/s"

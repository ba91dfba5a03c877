"""Changes to try on kernels that wait: more warps and blocks, tiles, fewer stalls; and what tells that they wait."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from eprof.base import resources
from eprof.base.kernels import is_plain_product
from eprof.base.text import counted, pattern, phrase, when
from eprof.base.toml import Document
from eprof.base.vocabulary import TENSOR_FLOPS, TENSOR_PARTS
from eprof.commands.report.advice.savings import NEAR, TENTH, Try, busy, comes_compiled, issuing
from eprof.commands.report.hotspots import AGAIN, SHORT_S
from eprof.commands.report.view import DRAM, FLOPS, View
from eprof.profile import schema
from eprof.show.numbers import LITTLE, NARROW, percent, plain

_SAME = 256.0  # bytes of L1 for each of DRAM, from which on they are a thread's own, which no tile shares
_UNEVEN = 1.5  # times as long as they work, from which on multiprocessors might: more than the last blocks leave idle
SHARED = ("shared_read", "shared_write")
_ISSUING = 1.0  # instructions a cycle of a multiprocessor: what issues more does not wait for loads
_STALLED = 0.2  # of stalls: of one reason fewer are not what holds a kernel back
_LANES = 32  # of a warp, each for a thread
_EMPTY = 0.5  # of the most warps, below which more of them would hide what it waits for
EXCESS = 1 / 3  # of sectors, from which on a kernel should ask for fewer, not sooner
_WIDEST = (
    4.0  # cycles of L1 for an instruction whose threads read 16 bytes each, side by side: more is no need of theirs
)
_NO_DENSE_PRODUCT = pattern(r"(?i)(?<![a-z])[cz]gemm|complex|sp(?:arse|gemm)|implicit")  # or of other elements
_BITS = pattern(r"\d+")  # of an element, in a type's name ("tensor_fp16"); TF32 lies in memory as 32
_POINTED = pattern(r"(\w{0,40}?)([1-4]?) ?\*")
_BYTES = {"short": 2, "half": 2, "int": 4, "unsigned": 4, "float": 4, "long": 8, "double": 8}
_WIDEST_B = 16  # that a thread moves at once; behind a pointer to chars may be anything
_ON_TENSOR_CORES = pattern(r"(?i)tensor_?op|wmma|(?<![a-z])[hdiq]?mma(?![a-z])")  # as names of kernels tell it
_OF_VOLTA = pattern(r"(?i)volta|(?<!\d)884(?!\d)|sm_?70(?!\d)")  # whose matrix instructions later GPUs emulate
# Of tcgen05, over the older pipe, in flops a cycle: tc_rate and fp16_rate of counters/ncu/parts/tensor-fifth.toml.
_FASTER = 4.0
_UNITS = {"sm": "multiprocessors", "l1": "L1", "l2": "L2", "dram": "DRAM", "tensor": "tcgen05"}
_FEWER = {
    "registers_limit": "fewer registers a thread",
    "shared_limit": "less shared memory a block",
    "block_limit": "larger blocks",
}


class _Stall(Struct, frozen=True):
    """A reason for which warps wait, by its name in a kernel's signs: what they wait for, and what lets them wait less.

    is_hidden: whether other warps can work meanwhile, if there are more of them.
    """

    sign: str
    waits: str
    act: str
    is_hidden: bool


@lru_cache(maxsize=1)
def _stalls() -> list[_Stall]:
    root = Document.read(resources.folder("counters") / "stalls.toml").root
    return [_Stall(sign, row["for"].text(), row["act"].text(), "hidden" in row) for sign, row in root.items()]


def busier(view: View) -> Iterator[Try]:
    """Advise more work at once, in threads, blocks or batches, for kernels that leave multiprocessors or lanes idle."""
    for kernel in view.kernels:
        signs = kernel.signs or {}
        active, blocks, filled = signs.get("sm_active", 1.0), signs.get("blocks", 0.0), 1.0
        if max(busy(kernel).values(), default=0.0) < NEAR:  # no unit holds it back
            filled = signs.get("lanes", min(signs.get("threads", _LANES) / _LANES, 1.0))
        if min(active, filled) >= NEAR or 0 < view.each_s(kernel) < SHORT_S:
            continue
        how, sms = "launch more blocks of {}, or other kernels beside it", signs.get("multiprocessors", math.inf)
        even, why, few = _if_even(kernel) * (filled >= NEAR), "with all of them at work", ""
        if even:
            how, why = "share the work of {} evenly among its blocks", "if all took equally long"
            few = when(even < 1, f", and would {percent(even)} if its {blocks:,.0f} blocks took equally long")
        elif is_plain_product(kernel.name):
            how = "batch the products of {}, or make them larger"
        elif 0 < blocks < 2 * sms < math.inf:
            few = f", as it has {blocks:,.0f} blocks for {sms:.0f} of them"
        told = when(active < NEAR, f"multiprocessors have work {percent(active)} of the time{few}")
        if filled < NEAR:
            how = f"launch {{}} in blocks of {_LANES} threads or more{when(told, ', then in more blocks')}"
            told = f"its blocks fill {percent(filled)} of the lanes of their warps{phrase(', {}', told)}"
        drawn = kernel.energy_j.constant or 0.0 if view.has_energy else view.timed(kernel)
        most = (1 - active * filled / (even or 1.0)) * drawn
        yield Try(f"{how.format(view.label(kernel))} ({told})", TENTH * drawn, each="less time", most=most, why=why)


def _if_even(kernel: schema.Kernel) -> float:
    """The share of the time that a kernel's blocks would keep multiprocessors at work if all took as long.

    0: nothing tells, or what keeps multiprocessors idle is rather that they have no block than that some take longer.
    """
    signs = kernel.signs or {}
    of_each = signs.get("blocks", 0.0) / signs.get("multiprocessors", math.inf)
    even = of_each / (math.ceil(of_each) or 1)
    is_uneven = 0 < signs.get("sm_active", 1.0) * max(_UNEVEN, 1 / (even or 1)) < even
    return even * is_uneven


def less_waiting(view: View) -> Iterator[Try]:
    """Advise kernels that wait how to wait less: tiles, warps, blocks, other instructions; with what that saves."""
    if view.is_above:
        return
    of_level, of_fp32 = view.joules_by_kernel("l1"), view.joules_by_kernel("fp32")
    stalled: list[_Stalled] = []
    for kernel, share, of_l1_j, of_fp32_j in zip(view.kernels, view.speed_shares, of_level, of_fp32, strict=False):
        waits_j = view.timed(kernel)
        is_short = 0 < view.each_s(kernel) < SHORT_S
        if is_short or _if_even(kernel) or comes_compiled(kernel) or waits_j < LITTLE * view.everything:
            continue
        if rebuilt := _rebuilt(view, kernel, of_fp32_j):
            yield rebuilt
            continue
        reached, now = {"at the roofline's speed": share}, busy(kernel)
        # What is counted of multiprocessors holds the way to L1 too; alone it does not tell what holds them back.
        if "l1" in now:
            reached |= {f"if {_UNITS[unit]} were always busy": each for unit, each in now.items()}
        best = max(reached, key=reached.__getitem__)
        speed = reached[best]
        stall, share_stalled = _worst_stall(kernel)
        waits = stall.sign == "barrier_stall" and share_stalled >= _EMPTY
        if waits and issuing(kernel) and NEAR <= max(speed, issuing(kernel)) < 1 - _STALLED:
            # A unit is busy, but most warps wait for others: in cycles that issue nothing it might be busier.
            stalled.append(_Stalled(kernel, max(speed, issuing(kernel)), "with an instruction issued in every cycle"))
            continue
        if not speed and not view.has_energy and waits_j and (kernel.signs or {}).get("occupancy", 1.0) < _EMPTY:
            yield _with_more_warps(kernel, _more_warps(view, kernel), speed, best, waits_j)
        if not 0 < speed < NEAR:
            continue
        again, more_blocks = view.times_from_l1(kernel), _few_blocks(view, kernel)
        if apart := scattered(view, kernel):
            other = max((unit for unit in now if unit != "l1"), key=now.__getitem__)
            why, most = f"if {_UNITS[other]} were always busy", (1 - now[other]) * waits_j
            yield Try(apart, TENTH * waits_j, each="less time", most=most, why=why)
        elif again >= AGAIN and not more_blocks:
            saves, most = TENTH * (waits_j + of_l1_j), (1 - speed) * waits_j + (1 - 1 / again) * of_l1_j
            why = f"with one for one, {best}"
            act = f"tile {view.label(kernel)} in shared memory and registers"
            if again >= _SAME:
                act = f"keep what {view.label(kernel)} reads again and again in registers"
            act += f" (L1 moves {plain(again)} bytes for each one of DRAM)"
            yield Try(act, saves, each="less of both", most=most, why=why)
        elif more_blocks:
            yield _with_more_warps(kernel, more_blocks, speed, best, waits_j)
        elif advice := _waits(view, kernel, speed, best, waits_j):
            yield advice
        elif not _is_issuing(view, kernel):
            stalled.append(_Stalled(kernel, speed, best))
    yield from _fewer_stalls(view, stalled)


def _more_warps(view: View, kernel: schema.Kernel) -> str:
    """Advice to keep more warps in flight, with what limits them."""
    limit, fewer = _limit(kernel.signs or {})
    told = f"occupancy {percent((kernel.signs or {}).get('occupancy', 1.0))}{when(limit < _EMPTY, f': {fewer}')}"
    return f"keep more {when(view.is_of_amd, 'waves') or 'warps'} in flight in {view.label(kernel)} ({told})"


def _with_more_warps(kernel: schema.Kernel, act: str, speed: float, best: str, waits_j: float) -> Try:
    """The change `act`, which lets more warps run, and the most that it can save.

    At most the kernel comes to what `best` says, of which it has the share `speed` now. Where fewer than half of the
    warps run, but more than that share, it comes to full occupancy: warps hide what others wait for by running side by
    side, and can do no more than that.
    """
    warps = (kernel.signs or {}).get("occupancy", 1.0)
    if speed < warps < _EMPTY:
        speed, best = warps, "at full occupancy"
    return Try(act, TENTH * waits_j, each="less time", most=(1 - speed) * waits_j, why=best)


def _rebuilt(view: View, kernel: schema.Kernel, of_fp32_j: float) -> Try | None:
    """The advice to choose a kernel built for this GPU's tensor cores, where this uses none, or older ones; or None.

    The most that is saved is up to the units that move operands and to the tensor cores, not to units no longer needed.
    """
    tensor = view.summed(kernel, [word for word in ("tensor", *TENSOR_PARTS["tensor"]) if word in view.words])
    older, name, waits_j = (kernel.signs or {}).get("older_tensor", 0.0), view.label(kernel), view.timed(kernel)
    idle, is_of_volta = tensor.value == 0 and not tensor.lower, _OF_VOLTA.search(kernel.name)
    # Logs of compute capability 12.0 show that it multiplies in FP32 what is for Volta's tensor cores.
    is_of_12 = (view.document.device.capability or "").startswith("12.")
    emulates = is_of_12 and is_of_volta and view.amount(kernel, "fp32_fma").value
    left = {unit: share for unit, share in busy(kernel).items() if unit in ("l2", "dram")}
    if older >= TENTH:
        why = f"older mma.sync keeps its pipe {percent(older)} busy"
        told = f"for tcgen05, this GPU's tensor cores, instead of {name} ({why})"
        left, of_fp32_j = {"tensor": older / _FASTER, **left}, 0.0
    elif _ON_TENSOR_CORES.search(kernel.name) and (idle or emulates):
        whose = when(is_of_volta, "Volta's") or "them"
        did = when(idle, "which did nothing") or "which this GPU emulates in FP32"
        told = f"for tensor cores of this GPU instead of {name} (its name asks for {whose}, {did})"
    else:
        return None
    change = Try(f"choose a kernel {told}", TENTH * waits_j, each="less time")
    if not left:
        return change
    unit = max(left, key=left.__getitem__)
    return replace(change, most=(1 - left[unit]) * waits_j + of_fp32_j, why=f"if {_UNITS[unit]} were always busy")


def _few_blocks(view: View, kernel: schema.Kernel) -> str:
    """Advice to launch more blocks, where each multiprocessor has one at most and could hold another; else ""."""
    signs = kernel.signs or {}
    blocks, sms, occupancy = (signs.get(name, math.inf) for name in ("blocks", "multiprocessors", "occupancy"))
    if not blocks <= sms < math.inf or occupancy >= _EMPTY:
        return ""
    if blocks == sms and _limit(signs)[0] < 2 * occupancy:
        return ""  # one block fills a multiprocessor: a second would wait for the first to end
    told = f"{blocks:,.0f} for {sms:.0f} multiprocessors, occupancy {percent(occupancy)}"
    return f"launch more blocks of {view.label(kernel)} ({told})"


def _limit(signs: Mapping[str, float]) -> tuple[float, str]:
    """(share of a multiprocessor's warps that a kernel's launch allows to run, what would let more run)."""
    limit = min(_FEWER, key=lambda name: signs.get(name, 1.0))
    fewer = _FEWER[limit]
    if limit == "registers_limit" and signs.get("spills"):
        fewer = "it spills registers, so split it"
    return signs.get(limit, 1.0), fewer


def _worst_stall(kernel: schema.Kernel) -> tuple[_Stall, float]:
    """(the reason for which most warps of a kernel stall, its share of all stalls); 0 if stalls were not counted."""
    shares = {stall: (kernel.signs or {}).get(stall.sign, 0.0) for stall in _stalls()}
    worst = max(shares, key=shares.__getitem__)
    return worst, shares[worst]


def of_shared_memory(view: View, kernel: schema.Kernel, told: str) -> str:
    """Advice to ask less of shared memory, a part of L1, where it is what most warps wait for; else ""."""
    stall, stalled = _worst_stall(kernel)
    is_held = stall.sign == "shared_stall" and stalled >= _STALLED
    return when(is_held, stall.act.format(f"{view.label(kernel)} ({told}, {percent(stalled)} of stalls {stall.waits})"))


def scattered(view: View, kernel: schema.Kernel) -> str:
    """Advice where L1 works in most cycles for few instructions: the threads of a warp access what lies apart; or "".

    Sectors and bank conflicts tell which of both it is not, if they were counted. Tensor cores may have L1 move what
    they work on without instructions.
    """
    signs, now = kernel.signs or {}, busy(kernel)
    working, taken = now.get("l1", 0.0) * signs.get("sm_active", 1.0), now.get("sm", 0.0)
    if not 0 < _WIDEST * taken < working or max(now, key=now.__getitem__) != "l1":
        return ""
    are_sectors_told = not signs.keys().isdisjoint(("excess", "request_sectors"))
    is_without = "bank_conflict" in signs or view.summed(kernel, SHARED).value == 0
    ways = ["coalesce accesses"] * (not are_sectors_told) + ["avoid bank conflicts"] * (not is_without)
    if not ways or is_matrix_work(view, kernel):
        return ""
    told = f"L1 is {percent(now['l1'])} busy with {percent(taken)} of the instructions that it could take"
    return f"{' or '.join(ways)} in {view.label(kernel)} ({told})"


def _is_issuing(view: View, kernel: schema.Kernel) -> bool:
    """Whether a kernel's multiprocessors issue in most cycles, where nothing else tells how busy they are."""
    issued, cycles = (view.amount(kernel, word).value for word in ("warp_issue", "sm_active_cycle"))
    return "sm" not in busy(kernel) and (issued or 0.0) / (cycles or math.inf) >= _ISSUING


def excess(kernel: schema.Kernel) -> tuple[float, str]:
    """(share of its sectors that a kernel asks for in vain, the condition of that, or "").

    Where the sectors of a warp's access alone were counted, those are in vain that 32 threads do not need: one for each
    byte that a thread moves at once, which is what the kernel's pointers tell, or the most.
    """
    signs = kernel.signs or {}
    sectors = signs.get("request_sectors", 0.0)
    if "excess" in signs or not sectors:
        return signs.get("excess", 0.0), ""
    pointed = [_BYTES.get(name, _WIDEST_B) * int(number or 1) for name, number in _POINTED.findall(kernel.name)]
    width = min(max(pointed, default=_WIDEST_B), _WIDEST_B)
    return max(1 - width / sectors, 0.0), when(width < _WIDEST_B, f", if each thread moves {width}{NARROW}B at a time")


def least_bytes(view: View, kernel: schema.Kernel) -> float:
    """The fewest bytes that a kernel's product of matrices can move, whatever its shape; 0 where it is not known.

    L x M x N multiplications take LM + MN + LN >= 3 (LMN)^(2/3) elements (Loomis and Whitney, 1949); and so many at
    least where they are of several launches.
    """
    work = flops_of(view, kernel)
    most = max(work, key=work.__getitem__, default="")
    width = next((int(bits) / 8 for bits in _BITS.findall(most)), 0.0)
    if not is_plain_product(kernel.name) or _NO_DENSE_PRODUCT.search(kernel.name):
        return 0.0
    return width * 3 * math.pow(work.get(most, 0.0) / 2, 2 / 3)


def is_matrix_work(view: View, kernel: schema.Kernel) -> bool:
    """Whether a kernel is seen to multiply on tensor cores."""
    works = any(view.amount(kernel, word).value for word in ("tensor", *TENSOR_FLOPS))
    return works or (kernel.signs or {}).get("older_tensor", 0.0) > 0


def flops_of(view: View, kernel: schema.Kernel) -> dict[str, float]:
    """Name of a count -> the flops of a kernel that it tells; without counts that are not known."""
    flops_each = {**FLOPS, **dict.fromkeys(TENSOR_FLOPS, 1.0)}
    counts = {name: view.amount(kernel, name).value for name in flops_each}
    return {name: flops_each[name] * number for name, number in counts.items() if number is not None}


def _asks_too_much(view: View, kernel: schema.Kernel) -> bool:
    """Whether a kernel moves many more bytes than it has to, by its sectors or stalls, or by its product's least."""
    signs = kernel.signs or {}
    is_told = max(excess(kernel)[0], signs.get("lg_throttle", 0.0)) >= EXCESS
    return is_told or 0 < AGAIN * least_bytes(view, kernel) < view.summed(kernel, DRAM).or_zero


def _waits(view: View, kernel: schema.Kernel, speed: float, best: str, waits_j: float) -> Try | None:
    """The change that lets a kernel wait less, whatever it waits for; None where stalls tell more, or nothing does."""
    occupancy, (stall, stalled) = (kernel.signs or {}).get("occupancy", 1.0), _worst_stall(kernel)
    if _is_issuing(view, kernel) or _asks_too_much(view, kernel) and (stall.is_hidden or not stalled):
        return None
    conflicts = (kernel.signs or {}).get("bank_conflict", 0.0)
    if conflicts >= EXCESS:  # what more warps would wait for, too
        told = f"{percent(conflicts)} of its transactions"
        act = f"avoid bank conflicts of shared memory in {view.label(kernel)} ({told}): pad its arrays, or swizzle them"
        most_j = min(conflicts, 1 - speed) * waits_j
        return Try(act, TENTH * waits_j, each="less time", most=most_j, why="without them")
    if occupancy < _EMPTY and (stall.is_hidden or stalled < _STALLED):
        return _with_more_warps(kernel, _more_warps(view, kernel), speed, best, waits_j)
    if stalled:
        return None
    reached = when(busy(kernel), "of its peak, the busiest unit") or "of the roofline's speed"
    act = f"find what {view.label(kernel)} waits for ({percent(speed)} {reached}; stalls were not counted)"
    return Try(act, TENTH * waits_j, each="less time", most=(1 - speed) * waits_j, why=best)


class _Stalled(Struct, frozen=True):
    """A kernel that its stalls hold back. speed: the share of the speed that it reaches at best, `best` says how."""

    kernel: schema.Kernel
    speed: float
    best: str

    def stalled(self, stall: _Stall) -> float:
        """The share of the kernel's stalls that are for this reason."""
        return (self.kernel.signs or {}).get(stall.sign, 0.0)

    def saved(self, view: View, stall: _Stall) -> float:
        """The most J, or s, that the stalled kernel saves without stalls for this reason."""
        return min(self.stalled(stall), 1 - self.speed) * view.timed(self.kernel)


def _fewer_stalls(view: View, kernels: Sequence[_Stalled]) -> Iterator[Try]:
    """Advise fewer stalls for each reason that is the worst of a kernel, in all `kernels` that wait for it much.

    More warps or loads in flight, which hide stalls, are no advice for a kernel that moves too many bytes.
    """
    for stall in dict.fromkeys(_worst_stall(each.kernel)[0] for each in kernels):
        alike = [each for each in kernels if each.stalled(stall) >= _STALLED]
        alike = [each for each in alike if not (stall.is_hidden and _asks_too_much(view, each.kernel))]
        if not alike:
            continue
        most = max(alike, key=lambda each: each.saved(view, stall))
        told = f"{view.label(most.kernel)} ({percent(most.stalled(stall))} of its stalls are {stall.waits})"
        if len(alike) > 1:
            told += f" and {counted(len(alike) - 1, f'more {view.nouns.kernel}')}"
        why = when(most.stalled(stall) < 1 - most.speed, f"if nothing waited {stall.waits}") or most.best
        saves = TENTH * sum(view.timed(each.kernel) for each in alike)
        most_j = sum(each.saved(view, stall) for each in alike)
        yield Try(stall.act.format(told), saves, each="less time", most=most_j, why=why)

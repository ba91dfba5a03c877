"""The first screen's advice: of all that one can change, what saves most. From `eprof.profile/1`.

A lever is something that one does: to clocks, to bytes, to types, to launches. An effect ("less time") is none, nor is
less of what the work needs (fewer multiplications of a product).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import cycle

import numpy as np
from msgspec.structs import replace

from eprof.base.boards import Traits, data_sheet, example, sheets_of
from eprof.base.gpus import capability_of_label
from eprof.base.known import gathered, growth, only
from eprof.base.labels import library_of, remedy_of
from eprof.base.text import bracketed, by_sign, counted, few, pattern, phrase, when
from eprof.base.vocabulary import COUNTS, DATA, RANDOM, TENSOR_FLOPS
from eprof.energy.bounds import is_plain_product
from eprof.logs.rows.log import HARDLY_WORKED, OfShape
from eprof.profile import schema
from eprof.profile.device import capabilities_of
from eprof.profilers import advice, signs_of
from eprof.show.report.change import LITTLE, TENTH, Try
from eprof.show.report.first_screen import CACHED, SHORT_S, WASTED, requested_of
from eprof.show.report.gaps import Between, after_the_start, closed
from eprof.show.report.loops import (
    OF_BLOCKS,
    better_loops,
    fewer_calls,
    fewer_cycles,
    fewer_divisions,
    fewer_misses,
    flags,
    is_interpreted,
    is_of_c,
    is_of_library,
    less_for_libraries,
    more_cores,
    of_retiring,
    seems_to_wait,
    without_interpreter,
)
from eprof.show.report.products import cheaper_kernels, cycles_on_tensor_cores, issued_for, least_bytes
from eprof.show.report.trust import counted_alone, lacks_most, lacks_some
from eprof.show.report.view import DRAM, FAMILY_OF, FLOPS, View, time_of
from eprof.show.report.waiting import (
    CLOSED,
    EXCESS,
    NEAR,
    busier,
    busy,
    excess,
    issuing,
    less_waiting,
    of_shared_memory,
    sooner,
)
from eprof.show.words.badges import Amount
from eprof.show.words.blocks import Point
from eprof.show.words.intervals import known
from eprof.show.words.numbers import NARROW, more_or_less, percent, percent_span, plain, quantity

_LITTLE_TIME = 0.01  # of it: a change of less is not worth a word
_MOSTLY = 0.3  # of a part, that one kernel has: worth naming it
_DIVIDES = 0.05  # special functions for each FP64 instruction, from which on much of these follows from them
# FP64 instructions behind one MUFU.RCP64H: five refine the reciprocal, three more make a quotient of it. And what is
# issued for it: at least these; 26 in two reports of miniWeather on a V100, of which one multiplies instead.
_OF_A_DIVISION, _ISSUED_FOR_IT = (5, 8), (5, 26)
_WARP = 32  # threads for which an instruction is issued at once
_NOTHING = "give the machine more to do at a time, or let it sleep: hardly anything worked"
_COUNT_STALLS = "perf stat -e cycles,instructions,stalled-cycles-backend,stalled-cycles-frontend"
_NEARLY_ALL = 0.9  # of short launches: a start that may take so much of them ends nothing
_MOSTLY_ISSUING = 0.5  # of the slots for instructions: so many are filled by what works, not by what waits
_NARROWED = 0.5  # of the bytes are left where types are half as wide
_PASSES = pattern(r"(?i)(?:layer|rms|group|batch|instance|l2)_?norm|normali[sz]|soft_?max")
_PASSED_AGAIN, _MOST_PASSES = 1.3, 4.0  # bytes read for each written: more tell of a reduction, which writes little
_OFTEN, _SHAPES = 3, 4  # launches in blocks of a shape, for its time to be known; shapes that are listed
_IF_ACCURATE = ", if accurate enough"
_NARROWER_TYPES = "with types half as wide"
_UNTOLD = " (what that saves was not counted)"
_SECTOR_B = 32  # what DRAM of a GPU moves at least
_NARROWER = (
    *(("tensor_tf32", "tensor_fp16"), ("tensor_tf32", "tensor_bf16")),
    *(("tensor_fp16", "tensor_fp8"), ("tensor_bf16", "tensor_fp8"), ("tensor_fp8", "tensor_fp4")),
)
_SINCE = {"tensor_fp16": 7.0, "tensor_tf32": 8.0, "tensor_bf16": 8.0, "tensor_fp8": 8.9, "tensor_fp4": 10.0}
_BEYOND_WMMA = 8.9  # compute capabilities whose newer types CUDA's fragments (nvcuda::wmma) do not have
_MEMORY_B = 288e9  # of a B300, the most that a GPU holds
_MANY_LAUNCHES = 1000  # our choice: profilers replay each several times, so that more of them take minutes to days
_WITH_OWN_LAUNCHES = (*CLOSED, "thrust", "cub")
_LONGEST_COMMAND, _LONGEST_NAME = 60, 30  # of a command that is printed whole, and of a name that selects a kernel
_FUNCTION = pattern(r"\b([A-Za-z_]\w*+)\s*+(?:[<(]|$)")
_STREAMED = 1.0  # flops a byte, below which a kernel hardly reuses what it reads
_REUSED = 2.0  # bytes of L1 or shared memory for each of DRAM: below, each is used about once
_REMEDIES = {
    "l2": "larger tiles in shared memory, or blocks that run together on neighbouring data",
    "l1": "tile in shared memory and registers",
    "shared": "larger tiles in registers",
    "int": "move index arithmetic out of loops",
    "other": "unroll, and load 16 bytes at a time",
    "system": "keep data on the GPU",
}


def worth_trying(view: View) -> list[str]:
    """A sentence for each change that is worth trying, with what it saves, the largest first."""
    return [_told(view, change) for change in _sorted(view) if _is_worth_it(view, change)]


def _is_worth_it(view: View, change: Try) -> bool:
    return change.is_worth_it(view.comes_again if view.saved_unit else view.everything)


def _told(view: View, change: Try) -> str:
    """The change with what it saves, where logs tell joules or times."""
    return change.text(view.whole, view.saved_unit) if view.saved_unit else f"{change.act}{_UNTOLD}"


def _sorted(view: View) -> list[Try]:
    """All changes: first those that are worth trying, the largest saving first.

    Among these, what costs accuracy comes last, unless it saves twice as much as any other may.
    """
    changes = list(_levers(view))
    exact = [change.reach for change in changes if change.is_exact]

    def rank(change: Try) -> tuple[bool, bool, float]:
        is_last = not change.is_exact and change.likely < 2 * max(exact, default=0.0)
        return not _is_worth_it(view, change), is_last, -change.likely

    return sorted(changes, key=rank)


def what_to_try(view: View) -> Point:
    """The line `Try`: the change that saves most, and what to collect where too little was counted to tell."""
    changes = _sorted(view)
    is_worth_it = bool(changes) and _is_worth_it(view, changes[0])
    texts = [""]
    if is_worth_it:
        beside = [other for other in changes[1:] if other.adds and other.likely > changes[0].likely / 3]
        told = [changes[0], *beside[: changes[0].adds]]
        texts = [_told(view, change) for change in told]
    elif lacks_most(view):
        texts += [f"{change.act}{_UNTOLD}" for change in changes if change.is_open][:1]
    if view.in_kernel:
        calls = f"`strace -c {_program(view)}` counts system calls"
        how = "fewer and larger ones, memory that stays mapped"
        texts.insert(0, f"work less in the kernel ({view.in_kernel} of the processor time: {calls}): {how}")
    texts.append(after_the_start(view, LITTLE))
    if not view.has_energy and view.costs is None:
        if not view.nouns.is_of_cpu:
            lacks = _lacks_counts(view)
            saves_s = changes[0].likely if is_worth_it else 0.0
            texts.insert(0, when(is_worth_it or lacks, _where_to_begin(view, saves_s)))
            texts.append(when(lacks, how_to_count(view, is_worth_it)))
        texts.append(_how_to_price(view))
    elif not (view.to_meter or view.is_modelled) and (
        lacks_some(view) or not view.has_energy or view.above.value is None
    ):
        texts.append(how_to_count(view, bool(texts[0])))
    if any(texts):
        return Point("Try", "; ".join(filter(None, texts)))
    if not changes:
        return Point("Try", "nothing: no change that eprof knows saves energy here")
    return Point("Try", f"nothing: the best change saves {percent(changes[0].likely / view.whole)} ({changes[0].act})")


def _where_to_begin(view: View, saves_s: float) -> str:
    """The kernel of several that takes most, "begin with NAME, 53 % of the time"; "" if it takes 30 % or less.

    saves_s: what another change saves; "", too, where a tenth of this kernel is less than that.
    """
    first = max(view.kernels, key=lambda kernel: view.ranked(kernel).or_zero, default=None)
    taken = view.ranked(first).or_zero if first else 0.0
    share = taken / (view.ranked(view.document).value or math.inf)
    if first is None or len(view.kernels) == 1 or share <= _MOSTLY or TENTH * taken < saves_s:
        return ""
    of = {"time": "time", "dram": "DRAM bytes"}.get(view.measure, view.measure)
    waits = (first.signs or {}).get("memory_bound", 0.0)
    why = when(waits >= NEAR, f" (its memory unit works or waits {percent(waits)} of it: fewer bytes, narrower types)")
    return f"begin with {view.label(first)}, {percent(share)} of the {of}{why}"


def _lacks_counts(view: View) -> bool:
    """Whether an unpriced log has no counts; for AMD GPUs also whether it lacks times, instructions or some bytes."""
    if not any(word.value.value for word in view.words.values()):
        return True
    dram = view.summed(view.document, DRAM)
    is_told = view.time.value is not None and view.instructions(view.document).value and dram.value is not None
    return view.is_of_amd and not (is_told and not dram.lower)


def _how_to_price(view: View) -> str:
    if view.nouns.is_of_cpu:
        executed = view.instructions(view.document).value
        if view.document.energy_j.measured is not None and not executed:
            return (
                "count what took the joules: `perf stat -a -e "
                "power/energy-pkg/,cycles,instructions PROGRAM`, or `eprof run PROGRAM`"
            )
        if view.document.energy_j.measured is not None and view.document.energy_j.total is None:
            return _how_to_tell_work(view.document)
        return "make this processor's prices: eprof calibrate --cpu (another's, --costs, may be several times off)"
    device = view.document.device
    if device.name is None and view.is_of_amd:
        return 'name the GPU, as in --costs "MI250X" (tables of `rocprof-compute profile` tell it)'
    if device.name is None or capability_of_label(device.name) is not None:
        # As an example a GPU of the logs' compute capability, else one that their profiler can profile.
        ranges = [signs_of(log.format.partition("-")[0]).capabilities for log in view.document.inputs]
        if device.capability is not None:
            ranges = [(float(device.capability), float(device.capability))]
        likely = example(max(lowest for lowest, _ in ranges), min(highest for _, highest in ranges))
        return f'name the GPU, as in --costs "{likely}"'
    if data_sheet(device.name) is not None:
        return "price it by its data sheet: --costs estimated"
    return f'make its prices from its power limit: eprof costs --estimate "{device.name}" --tdp-w WATTS -o mine.toml'


def _how_to_tell_work(document: schema.Profile) -> str:
    """How to tell the joules of work from those that are drawn without: a second log of the machine, when idle."""
    names = [log.path.rpartition("/")[2] for log in document.inputs]
    if len(names) == 2:
        return f"tell work from idle power, if one of the two is of the idle machine: `eprof diff {' '.join(names)}`"
    count = "perf stat -a -o {} -e power/energy-pkg/,cycles,instructions {}"
    if _is_idle(document):
        count = count.format("work.txt", "PROGRAM")
        return f"{_NOTHING}; tell work from idle power: `{count}`, then `eprof diff {names[0]} work.txt`"
    count = count.format("idle.txt", "sleep 20")
    return f"tell work from idle power: `{count}` on the idle machine, then `eprof diff idle.txt {names[0]}`"


def _is_idle(document: schema.Profile) -> bool:
    return any(HARDLY_WORKED in note for note in document.warnings)


def how_to_count(view: View, has_advice: bool) -> str:
    """Advice: the command that counts what is not known yet; "" if none helps. has_advice: a change is told, too."""
    is_counted = view.is_of_amd and any(word.value.value for word in view.words.values())
    rest = when(view.above.value is not None or is_counted, " the rest")
    if view.nouns.is_of_cpu and "retired" in view.words:
        formats = {log.format.partition("-")[0] for log in view.document.inputs}
        more = "`eprof run PROGRAM` (all that this CPU counts, and its joules)"
        if formats == {"likwid"} and (groups := _groups_of_likwid(view)):
            more = " and ".join(f"`likwid-perfctr -g {group}`" for group in groups)
        is_priced = view.instructions(view.document).value and view.above.value is not None
        is_little = is_priced and view.above.or_zero < LITTLE * view.everything
        if is_little or _is_idle(view.document) and not has_advice:
            return f"{_NOTHING}; `eprof run PROGRAM` counts a program at work"
        if why := seems_to_wait(view):
            return f"count cycles and stalls, for cores seem to wait ({why}): `{_COUNT_STALLS} {_program(view)}`"
        is_said = has_advice and not (formats <= {"likwid", "perf"} and lacks_most(view))
        return when(not is_said, f"count the rest: {more}")
    if view.nouns.is_of_cpu:
        return f"count{rest} with `eprof run PROGRAM`"
    device = view.document.device
    if view.is_of_amd:
        if view.time.value is None:
            return f"give times along with it: `{advice.TIMES_ON_AMD}`"
        return f"count{rest} with `{advice.COUNTS_ON_AMD}`"
    capabilities = capabilities_of(device.name)
    if device.capability:
        capabilities = (device.capability,)
    # Where several can do it on this GPU, the newest one; where nothing tells which GPU it is, each says for which, and
    # that of the log may do it.
    commands = advice.commands(advice.COUNTS, capabilities).split(" or ")
    own = tuple(log.format.partition("-")[0] for log in view.document.inputs)
    likely = (command for command in commands if None in capabilities and command.startswith(own))
    command, bracket, which = next(likely, commands[-1]).partition(" (")
    complete = [log for log in view.document.inputs if log.format in signs_of(log.format.partition("-")[0]).complete]
    launches = sum(kernel.launches for kernel in view.kernels)
    of_which = ""
    is_nvprof = command.startswith("nvprof")
    if complete or launches > _MANY_LAUNCHES:
        command, bracket, which = "eprof run", "", ""  # which knows the fewest counters that price all
    if launches > _MANY_LAUNCHES:
        most = max(view.kernels, key=lambda kernel: (view.timed(kernel), time_of(kernel).or_zero, kernel.launches))
        of_which = f" in what takes most (all {launches:,} launches would be replayed several times)"
        command += phrase(" -k regex:{}", _plain_name(most.name))
        if most.launches > _MANY_LAUNCHES:
            of_which = f" in a few of {most.launches:,} launches"
            command += " --launch-count 100"
            if is_nvprof:  # it counts a launch by its number alone
                of_which = f" in the first of {most.launches:,} launches"
                command = f'nvprof --kernels "::{_plain_name(most.name)}:1" --metrics all --csv --log-file counts.csv'
    return f"count{rest}{of_which} with `{command} {_program(view)}`{bracket}{which}"


def _plain_name(kernel: str) -> str:
    """The name of a kernel's function, without its namespace, template and parameters; "" where it has none."""
    name = _FUNCTION.search(kernel)
    return name[1][:_LONGEST_NAME] if name else ""


def _program(view: View) -> str:
    """The command line of the only program, where the logs tell all of it and it is short; else "PROGRAM"."""
    told = {log.command: log.format for log in view.document.inputs if log.command}
    command = only(told) or ""
    is_whole = " " in command or told.get(command, "").startswith("nvprof")  # others may tell the first word alone
    return when(is_whole and len(command) <= _LONGEST_COMMAND, command) or "PROGRAM"


def _groups_of_likwid(view: View) -> list[str]:
    """The groups of LIKWID that count what a log lacks and the CPU has an event for."""
    lacks = {
        group: any(way.formula for way in word.how) or not word.how
        for group, name in (("MEM", "dram_read"), ("FLOPS_DP", "fp64"))
        if (word := view.words.get(name)) and word.value.value is None
    }
    return [group for group, can_be in lacks.items() if can_be]


def _levers(view: View) -> Iterator[Try]:
    """Every change that eprof can think of here, in no order, with the J that it saves; s where no joules are known."""
    if not view.everything:
        return
    between = Between.of(view)
    for change in closed(view, between):
        saved = change.saved_s * between.power
        ends = (saved * (not change.is_most), saved)
        yield Try(change.act, saved, ends, change.beside)
    yield from _longer_launches(view)
    yield from _spared_kernels(view)
    yield from _better_shapes(view)
    yield from busier(view)
    if view.above.value is None:
        for levers in (_coalesced, less_waiting, _fewer_uncounted_bytes):
            yield from levers(view)
    if view.above.value is None or counted_alone(view):
        return
    yield from _other_clocks(view)
    yield from (Try(act, saved_j) for act, saved_j in cheaper_kernels(view))
    for loop in [*better_loops(view), *without_interpreter(view)]:
        beside = when(loop.timed_j > loop.most_j / 2, ", the most if time falls with cycles")
        yield Try(loop.act, (loop.least_j + loop.most_j) / 2, (loop.least_j, loop.most_j), beside)
    for levers in (
        *(_narrower_types, _fused, _asked_for, _read_again, _fewer_bytes, _fewer_uncounted_bytes),
        *(
            _fewer_instructions,
            _fewer_conflicts,
            _fewer_spills,
            less_waiting,
            fewer_cycles,
            fewer_misses,
            fewer_calls,
            fewer_divisions,
            less_for_libraries,
            more_cores,
        ),
    ):
        yield from levers(view)


def _longer_launches(view: View) -> Iterator[Try]:
    """Do more in launches that are so short that they mostly wait for their start: this saves time.

    A start takes no longer than the shortest launch does in all: so much is saved at most for each launch. What a
    library launches is its own, but for products, which take batches.
    """
    if view.is_above or view.nouns.is_of_cpu:
        return
    times_s = [view.each_s(kernel) for kernel in view.kernels]
    own = [library_of(kernel.name) not in _WITH_OWN_LAUNCHES or _takes_batches(kernel) for kernel in view.kernels]
    short = [place for place, each_s in enumerate(times_s) if 0 < each_s < SHORT_S and own[place]]
    if not short:
        return
    taken = {place: times_s[place] * view.kernels[place].launches for place in short}
    if view.has_energy:
        taken = {place: view.kernels[place].energy_j.constant or 0.0 for place in short}
    largest, quickest = max(short, key=taken.__getitem__), min(short, key=times_s.__getitem__)
    start_s, name = times_s[quickest], view.label(view.kernels[quickest])
    most = sum(joules * start_s / times_s[place] for place, joules in taken.items())
    more = when(len(taken) > 1, f" and of {counted(len(taken) - 1, f'more {view.nouns.kernel}')}")
    now = quantity(times_s[largest], "s")
    how = f"do more in each {view.nouns.launch} of"
    if _takes_batches(view.kernels[largest]):
        how = "batch the products of"  # those of a library take batches (cublasGemmStridedBatchedEx), and so does torch
    act = f"{how} {view.label(view.kernels[largest])} (now {now}){more}"
    change = Try(act, TENTH * sum(taken.values()), each="less time")
    if most < _NEARLY_ALL * sum(taken.values()):
        why = f"if each start takes {quantity(start_s, 's')}, as a whole {view.nouns.launch} of {name} does"
        change = replace(change, most=most, why=why)
    yield change


def _takes_batches(kernel: schema.Kernel) -> bool:
    """Whether a kernel is a product of matrices, as all are that Tensile makes."""
    return is_plain_product(kernel.name) or library_of(kernel.name) == "tensile"


def _better_shapes(view: View) -> Iterator[Try]:
    """Launch a kernel in blocks of the shape that took least time, of those seen with as many threads in all."""
    for kernel in view.kernels:
        often = [shape for shape in kernel.by_shape or () if shape.launches >= _OFTEN]
        for alike in gathered((shape.threads, shape) for shape in often).values():
            best, *others = sorted(alike, key=_of_one)
            slower = [shape for shape in others if shape.launch_s[0] > best.launch_s[1]]
            if not slower:
                continue
            saved_s = sum(shape.time_s - shape.launches * _of_one(best) for shape in slower)
            taken = view.timed(kernel) if view.has_energy else time_of(kernel).or_zero
            times = [f"{_block(shape)}: {quantity(_of_one(shape), 's')}" for shape in others]
            told = f"{quantity(_of_one(best), 's')}; as many threads in {few(times, _SHAPES)}"
            act = f"launch {view.label(kernel)} in blocks of {_block(best)} ({told})"
            yield Try(act, taken * saved_s / (time_of(kernel).value or math.inf))


def _of_one(shape: OfShape) -> float:
    return shape.time_s / shape.launches


def _block(shape: OfShape) -> str:
    """As in "16 x 16": without dimensions of one thread at the end."""
    sizes = " x ".join(map(str, shape.block))
    return sizes.removesuffix(" x 1").removesuffix(" x 1")


def _spared_kernels(view: View) -> Iterator[Try]:
    """Avoid kernels that need not run, as their names tell; saves at most their joules, as others may get slower."""
    spared = gathered((remedy_of(kernel.name, "spared_kernel"), kernel) for kernel in view.kernels)
    for how, kernels in spared.items():
        most, *rest = sorted(kernels, key=lambda kernel: -view.ranked(kernel).or_zero)
        saved, names = sum(view.ranked(kernel).or_zero for kernel in kernels), view.label(most)
        names += phrase(" and {}", when(rest, counted(len(rest), f"more {view.nouns.kernel}")))
        if how:
            act = how.format(f"{sum(kernel.launches for kernel in kernels):,}", names)
            yield Try(act, saved, (0.0, saved))


# --------------------------------------------------------------------------------------------------- clocks


def _other_clocks(view: View) -> Iterator[Try]:
    """Set the clocks with the lowest energy; nothing where times were modelled, or it may cost energy instead."""
    clocks = view.document.clocks
    if not clocks or view.is_modelled:
        return
    lowest = clocks.lowest
    here = next((setting for setting in clocks.settings if setting.this), None)
    if here is None or not here.energy_j or lowest.energy_j is None:
        return
    ends = [end or lowest.energy_j for end in lowest.energy_range_j or ()] or [lowest.energy_j]
    saves = [1 - end / here.energy_j for end in sorted(ends, reverse=True)]
    if saves[0] <= 0 or any(costs.setting_from == "the table's default" for costs in view.document.prices):
        return  # it may cost energy, or the clocks that it is held against are assumed
    clocks_of = {"core": (lowest.core_mhz, here.core_mhz), "memory": (lowest.memory_mhz, here.memory_mhz)}
    acts = []
    for name, (now, before) in clocks_of.items():
        if now != before:
            verb = by_sign(now - before, "lower", "raise")
            acts.append(f"{verb} the {name} clock to {now:g}{NARROW}MHz (from {before:g})")
    if acts:
        time = _time_of(growth(lowest.time_s, here.time_s))
        voltages = phrase(", core voltages {}", (clocks.voltages or "").partition(",")[0])
        ends = [share * view.everything for share in saves]
        yield Try(" and ".join(acts), ends[0], (ends[0], ends[-1]), f"{time}, modelled{voltages}")


def _time_of(share: float | None) -> str:
    if share is None or abs(share) < _LITTLE_TIME:
        return ""
    return f", {more_or_less(share)} time"


def _less_time(view: View, least_s: float, most_s: float) -> str:
    """Words on time saved: ", 14 % less time". How busy units were bounds no kernel's time: it may keep them busier."""
    least, most = (saved_s / (view.time.value or math.inf) for saved_s in (least_s, most_s))
    if most < _LITTLE_TIME:
        return ""
    return f", {when(least < _LITTLE_TIME, f'perhaps {percent(most)}') or percent_span(least, most)} less time"


# ---------------------------------------------------------------------------------------------------- types


def _narrower_types(view: View) -> Iterator[Try]:
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
                _ended_sooner(view, kernels, {"sm": _NARROWED, **dict.fromkeys(("l1", "l2", "dram"), left)})
                for left in (1.0, _NARROWED)
            )
            ends = saves + least_j, saves + most_j + _of_narrower_bytes_j(kernels)
            act = f"use {' for '.join(names)} on tensor cores and in memory{_IF_ACCURATE}"
            yield Try(act, ends[0], ends, _less_time(view, least_s, most_s), is_exact=False)
    single, double = (view.charges.get(f"fp{bits}_fma") for bits in (32, 64))
    doubles_j = view.joules_of("fp64")
    if doubles_j and single and double and 0 < single.pj < double.pj:
        saves = doubles_j * (1 - single.pj / double.pj)
        kernels = [kernel for kernel in view.kernels if _flops(view, kernel, "fp64") > _flops(view, kernel, "fp32")]
        low, high = _ends(view, "fp64", saves) or (saves, saves)
        least_s, most_s = (_faster_in_fp32_s(view, left) for left in (1.0, _NARROWED))
        least_j, most_j = ((view.constant_w or 0.0) * sooner_s for sooner_s in (least_s, most_s))
        ends = low + least_j, min(high + most_j + _of_narrower_bytes_j(kernels), view.everything)
        act = f"use FP32 for FP64{_IF_ACCURATE}{bracketed(_mostly_in(view, 'fp64'))}"
        yield Try(act, saves + least_j, ends, _less_time(view, least_s, most_s), is_exact=False)
        yield from _fewer_divisions(view)
    yield from _onto_tensor_cores(view, has)


def _of_narrower_bytes_j(kernels: Sequence[schema.Kernel]) -> float:
    return (1 - _NARROWED) * sum(kernel.energy_j.data or 0.0 for kernel in kernels)


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
        sooner_j, sooner_s = _ended_sooner(view, view.kernels, *lefts)
        ends = float(ends_j[0]), float(ends_j[1]) + sooner_j
        yield Try(act, sum(ends) / 2, ends, f"{_less_time(view, 0.0, sooner_s)}, if they are divisions")


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
        (least_j, least_s), (most_j, most_s) = (_ended_sooner(view, products, *left) for left in lefts)
        act = f"multiply on tensor cores, in {COUNTS[word].label.removeprefix('Tensor ')}{_IF_ACCURATE}"
        time = _less_time(view, least_s, most_s)
        yield Try(act, saves + least_j, (saves + least_j, saves + most_j), time, is_exact=False)


def _fused(view: View) -> Iterator[Try]:
    """Fuse multiplications with additions that could be one instruction (FMA)."""
    for bits in (64, 32, 16):
        added, multiplied = (view.column(f"fp{bits}_{kind}").values for kind in ("add", "mul"))
        pairs = float(np.nansum(np.minimum(added, multiplied)))
        price = view.charges.get(f"fp{bits}_mul")
        if pairs and price and price.pj > 0:
            saves = pairs * price.pj * 1e-12
            yield Try(f"fuse up to {quantity(pairs, '')} FP{bits} multiplications with additions (FMA)", saves)


# ---------------------------------------------------------------------------------------------------- bytes


def _asked_for(view: View) -> Iterator[Try]:
    """Coalesce accesses that fetch bytes nobody asked for: rows of a matrix read down its columns, for example."""
    if view.nouns.is_of_cpu or _is_closed(view, "l1"):
        return  # what a CPU writes is read first, and what stays in its caches is not moved again
    saved_j, times = dict.fromkeys(range(len(view.kernels)), 0.0), [0.0] * len(view.kernels)
    for level in CACHED:
        for place, (kernel, joules) in enumerate(zip(view.kernels, view.joules_by_kernel(level), strict=True)):
            requested = requested_of(view, kernel) or math.inf
            ratio = view.summed(kernel, _words(view, level)).or_zero / requested
            if ratio >= WASTED:
                saved_j[place] += joules * (1 - 1 / ratio)
                times[place] = max(times[place], ratio)
    if any(times):
        most = max(saved_j, key=saved_j.__getitem__)
        told = f"{view.label(view.kernels[most])} moves {plain(times[most])} times the bytes that it asks for"
        yield Try(f"coalesce accesses: {told}", sum(saved_j.values()))
        return
    # Without the bytes that were asked for: sectors of DRAM that come for a part of them.
    moved = view.summed(view.document, _words(view, "dram")).value or math.inf
    skipped = _SECTOR_B * view.amount(view.document, RANDOM).or_zero / moved
    if skipped >= 1 - 1 / WASTED:
        act = f"coalesce accesses: {percent(skipped)} of DRAM's bytes come beside those that are used"
        yield Try(act, skipped * view.joules_of("dram"))
    yield from _coalesced(view)


def _coalesced(view: View) -> Iterator[Try]:
    """Coalesce accesses in kernels whose profiler tells that they ask for more sectors than they need.

    Of DRAM's bytes the saving is the most: L2 may serve a sector's other parts later.
    """
    saved_j, surely_j, saved_s = dict.fromkeys(range(len(view.kernels)), 0.0), 0.0, 0.0
    shares = [excess(kernel)[0] for kernel in view.kernels]
    levels = {level: view.joules_by_kernel(level) for level in CACHED}
    for place, (kernel, share) in enumerate(zip(view.kernels, shares, strict=True)):
        if share < EXCESS:
            continue
        fewer = list(levels)
        # What tensor cores work on may come by copies that go around registers, which the sectors leave out.
        if any(view.amount(kernel, word).value for word in TENSOR_FLOPS):
            fewer = ["l1", "l2"]
        # What is spilled is no part of it.
        local = min(_spilled(view, kernel) / (view.summed(kernel, _words(view, "l1")).value or math.inf), 1.0)
        parts = {level: share * (1 - (local if level == "l1" else _local_share(kernel))) for level in fewer}
        faster, now = sooner(kernel, {level: 1 - part for level, part in parts.items()}), busy(kernel)
        if 0 < max(now.values(), default=0.0) < NEAR:
            # It waits for sectors, at most: for as many fewer, and until another unit is always busy.
            faster = min(min(parts.values()), 1 - max(now.get("dram", 0.0), now.get("sm", 0.0)))
        if (kernel.signs or {}).get("lg_throttle", 0.0) >= EXCESS:
            faster = max(faster, TENTH)  # the queue of its loads and stores is full
        saved_j[place] = sum(part * levels[level][place] for level, part in parts.items()) + faster * view.timed(kernel)
        surely_j += sum(part * levels[level][place] for level, part in parts.items() if level != "dram")
        saved_s += faster * time_of(kernel).or_zero
    if any(saved_j.values()):
        is_counted = any(levels["l1"]) or any(levels["l2"])
        weights = {
            place: joules if is_counted else shares[place] * view.timed(view.kernels[place])
            for place, joules in saved_j.items()
            if joules
        }
        most = max(weights, key=weights.__getitem__)
        name, condition = view.label(view.kernels[most]), excess(view.kernels[most])[1]
        told = f"{percent(shares[most])} of the sectors that {name} asks for are not used{condition}"
        most_j = sum(saved_j.values())
        change = Try(f"coalesce accesses: {told}", most_j, (surely_j, most_j), _less_time(view, 0.0, saved_s))
        yield replace(change, is_open=not (levels["l1"][most] or levels["l2"][most]))


def _read_again(view: View) -> Iterator[Try]:
    """Keep rows on the chip that a normalisation or a softmax reads again in each of its passes."""
    for kernel in view.kernels:
        read, written = (view.amount(kernel, f"dram_{way}").or_zero for way in ("read", "write"))
        stored = max(written, *(view.amount(kernel, f"{level}_write").or_zero for level in ("l1", "l2")))
        again = read / (stored or math.inf)
        if not _PASSES.search(kernel.name) or not _PASSED_AGAIN <= again <= _MOST_PASSES:
            continue
        left = (stored + written) / (read + written)
        sooner_j, sooner_s = _ended_sooner(view, [kernel], {"dram": left, "l2": left})
        told = f"it reads {plain(again)} bytes of DRAM for each that it writes; if both are as wide"
        act = f"keep rows of {view.label(kernel)} on the chip between passes ({told})"
        least_j, most_j = _read_once_j(view, kernel, stored)
        ends = least_j, most_j + sooner_j
        yield Try(act, sum(ends) / 2, ends, _less_time(view, 0.0, sooner_s))


def _read_once_j(view: View, kernel: schema.Kernel, once_b: float) -> tuple[float, float]:
    """Compute the J that a kernel saves by reading so many bytes once: at least, with rows in shared memory; at most.

    What L1 fetched again it was asked for again, too.
    """
    read_b = {level: view.amount(kernel, f"{level}_read").or_zero for level in ("dram", "l2")}
    again_b = {level: max(moved - once_b, 0.0) for level, moved in read_b.items()}
    again_b["l1"] = again_b["l2"]
    if view.costs and view.costs.books == "served":  # a byte is charged at one level alone
        again_b |= {"l2": read_b["l2"], "l1": 0.0}

    def each_j(word: str) -> float:
        count = kernel.counts.get(word)
        return (count and count.energy_j or 0.0) / (count and count.value or math.inf)

    most_j = sum(moved * each_j(f"{level}_read") for level, moved in again_b.items())
    kept_j = once_b * each_j("shared_write") + max(again_b.values()) * each_j("shared_read")
    return max(most_j - kept_j, 0.0), most_j


def _fewer_bytes(view: View) -> Iterator[Try]:
    """Move fewer bytes of each memory level: how, what each tenth of them saves, and what can be saved at most."""
    for group, amount in view.groups.items():
        if FAMILY_OF[group] != DATA or not amount.value or group != "dram" and _is_closed(view, group):
            continue
        saves = TENTH * amount.value
        low, high = _ends(view, group, saves) or (saves, saves)
        left, why = _least_left(view, group)
        gone_j = float(np.dot(view.joules_by_kernel(group), np.subtract(1, left))) * high / saves
        gone_tenths = gone_j / high
        if why == _NARROWER_TYPES and not view.nouns.is_of_cpu:
            # They halve what every level moves; but a warp's access of L1 takes as long for fewer bytes.
            gone_j += _of_narrower_bytes_j(view.kernels) - (1 - _NARROWED) * amount.value
        least_j, _ = _by_time(view, view.kernels, {group: 1 - TENTH})
        most_j, time = _by_time(view, view.kernels, *_with_its_way(group, view, [1 - TENTH] * len(left)))
        most_of_all_j, _ = _by_time(view, view.kernels, *_with_its_way(group, view, left))
        for answer in view.document.what_if or ():
            is_it = answer.question == f"{group}=-20%" and not time and not view.is_modelled
            if is_it and answer.change_share and answer.time_share and not _is_held_elsewhere(view, group):
                # Constant power, whatever a byte costs: all of it where kernels are near the roofline, else up to that.
                most_j = max(-answer.change_share * view.everything / 2 - saves, 0.0)
                time = _time_of(answer.time_share / 2)
                least_j = most_j * _is_near_the_roofline(view)
                most_of_all_j = most_j * gone_tenths
        time = time.replace(", ", f", {when(least_j < most_j, 'up to ')}", 1)
        # Where a price is above its middle, so is the total that shares are of.
        most_share = view.everything * (1 - min(left))
        low, high = (min(end, TENTH * view.everything) for end in (low + least_j, high + most_j))
        how = "; ".join(filter(None, [_mostly_in(view, group), _remedy(view, group)]))
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
            passed = view.summed(kernel, _words(view, "l2")).value or math.inf
            passing = min(view.summed(kernel, DRAM).or_zero / passed, 1.0)
            units = {"l2": 1 - (1 - share) * passing, **units}
        works.append(units)
    return works


def _least_left(view: View, group: str) -> tuple[list[float], str]:
    """The least share of a memory level's bytes that each kernel must move, (n_kernels,); and a phrase why, or ""."""
    moved = [view.summed(kernel, _words(view, group)).value or math.inf for kernel in view.kernels]
    if group in ("l1", "l2"):
        below = [view.summed(kernel, DRAM).value for kernel in view.kernels]
        left = [min((each or 0.0) / of, 1.0) for each, of in zip(below, moved, strict=True)]
        return left, when(None not in below, "with each byte of DRAM moved there once")
    if group != "dram":
        return [0.0] * len(moved), ""
    left = [0.0] * len(moved)
    if not _is_closed(view, group):  # how the tiles of a library follow each other is its own
        left = [least_bytes(view, kernel) / of for kernel, of in zip(view.kernels, moved, strict=True)]
    held = [_memory_b(view, kernel) * kernel.launches / of for kernel, of in zip(view.kernels, moved, strict=True)]
    joules = view.joules_by_kernel(group)
    most, why = max(range(len(joules)), key=joules.__getitem__), _NARROWER_TYPES
    if left[most]:
        why = "with each operand moved once"
    elif held[most] < _NARROWED:
        why = "with each byte of its memory moved once"
    return [min(share or _NARROWED, bound, 1.0) for share, bound in zip(left, held, strict=True)], why


def _memory_b(view: View, kernel: schema.Kernel) -> float:
    """The bytes of memory of a kernel's GPU, the most of all boards that it may be; infinite where none can be told.

    A launch that moves more bytes than that moves some of them again; of a second of rates, no launch's bytes are told.
    """
    if view.is_of_a_second:
        return math.inf
    traits = Traits(int((kernel.signs or {}).get("multiprocessors", 0)) or None)
    return max((sheet.memory_b or _MEMORY_B for sheet in sheets_of(kernel.device, traits)), default=_MEMORY_B)


def _is_near_the_roofline(view: View) -> bool:
    """Whether half of the time or more is in kernels near the roofline's speed, whose times follow the roofline's."""
    limits = view.document.limits.kernels if view.document.limits else []
    times = [time_of(kernel).or_zero for kernel in view.kernels]
    near_s = sum(time for time, limit in zip(times, limits, strict=False) if (limit.speed_share or 0.0) >= NEAR)
    return near_s >= sum(times) / 2


def _is_held_elsewhere(view: View, group: str) -> bool:
    """Whether, in the kernel with most joules that go with time, a unit is busier than the one that serves `group`.

    Where none tells how busy that of `group` is, the share of the roofline's speed stands for it.
    """
    place = max(range(len(view.kernels)), key=lambda place: view.timed(view.kernels[place]))
    most, reached = busy(view.kernels[place]), 0.0
    if view.document.limits:
        reached = view.document.limits.kernels[place].speed_share or 0.0
    return any(share > most.get(group, reached) for share in most.values())


def _by_time(view: View, kernels: Sequence[schema.Kernel], *lefts: Mapping[str, float]) -> tuple[float, str]:
    """The J that kernels save as in `_ended_sooner`, and the time that they save in words: ", 14 % less time"."""
    saved_j, saved_s = _ended_sooner(view, kernels, *lefts)
    return saved_j, _less_time(view, saved_s, saved_s)


def _ended_sooner(view: View, kernels: Sequence[schema.Kernel], *lefts: Mapping[str, float]) -> tuple[float, float]:
    """The J and s that kernels save where the units that hold them back have less work.

    lefts: for each kernel, unit -> share of its work left; a single one holds for all kernels.
    """
    if view.is_modelled:
        return 0.0, 0.0
    shares = [(kernel, sooner(kernel, left)) for kernel, left in zip(kernels, cycle(lefts), strict=False)]
    saved_s = sum(share * time_of(kernel).or_zero for kernel, share in shares)
    return sum(share * view.timed(kernel) for kernel, share in shares), saved_s


def _fewer_uncounted_bytes(view: View) -> Iterator[Try]:
    """Move fewer bytes of a level that holds kernels back and whose bytes were not counted: only time is saved."""
    for group in ("l1", "l2", "dram"):
        if view.groups.get(group, Amount(None)).value or not view.kernels:
            continue
        saves, time = _by_time(view, view.kernels, {group: 1 - TENTH})
        if not saves:
            continue
        most = max(view.kernels, key=lambda kernel: sooner(kernel, {group: 1 - TENTH}) * view.timed(kernel))
        level = view.in_prose(group)
        told = f"{level} is {percent(busy(most).get(group, 0.0))} busy"
        act = f"move fewer {level} bytes ({told}; {_remedy(view, group)})"
        if group == "l1":
            act = of_shared_memory(view, most, told) or act
        most_j = _by_time(view, view.kernels, {group: 0.0})[0]
        yield Try(act, saves, None, time, each="fewer", most=most_j, why="until another unit holds it back")


def _remedy(view: View, group: str) -> str:
    if view.nouns.is_of_cpu:
        return OF_BLOCKS
    joules = view.joules_by_kernel(group)
    kernel = view.kernels[max(range(len(joules)), key=joules.__getitem__)]
    if group != "dram":
        return _REMEDIES.get(group, "")
    if _is_closed(view, group):
        return "store narrower types, or fuse what comes before and after it"
    if least_bytes(view, kernel):
        return "larger tiles, or blocks in an order that reuses what L2 holds"
    each_b = view.summed(kernel, DRAM).or_zero / kernel.launches
    if each_b > _memory_b(view, kernel):
        told = f"a {view.nouns.launch} moves {quantity(each_b, 'B')}, more than its GPU's memory holds"
        return f"larger tiles in shared memory and registers: {told}"
    fused = f"fuse the {view.nouns.kernel} with its neighbour"
    if len(view.kernels) > 1:
        fused = f"fuse {view.nouns.kernels} that pass arrays on"
    nearer = [view.summed(kernel, _words(view, level)).value for level in ("l1", "shared")]
    again = max((moved for moved in nearer if moved is not None), default=None)
    if again is None and (kernel.intensity_flop_per_byte or 0.0) >= _STREAMED:
        return f"reuse tiles, {fused}, or store narrower types"
    is_reused = (again or 0.0) >= _REUSED * (view.summed(kernel, DRAM).value or math.inf)
    return f"{when(is_reused, 'reuse tiles') or fused}, or store narrower types"


def _words(view: View, group: str) -> list[str]:
    return [word for word in view.words if COUNTS[word].group == group and word != RANDOM]


def _fewer_instructions(view: View) -> Iterator[Try]:
    """Execute fewer instructions that are no arithmetic: addresses, loops, loads."""
    for group, kind in (("int", "integer "), ("other", "")):
        words = [word for word in view.words.values() if word.count.group == group and word.count.unit != "cycle"]
        own = [not (kernel.callers or is_of_c(kernel)) for kernel in view.kernels]
        amount = sum(float(np.nansum(view.column(word.count.name).joules[own])) for word in words)
        if amount and not _is_closed(view, group):
            saves, (told, *cycles_j) = TENTH * amount, of_retiring(view)
            remedies = [_REMEDIES[group]]
            if view.nouns.is_of_cpu:
                remedies = [flags(view), "less work in inner loops"]
            at_work = [*_at_work(view)] * (group == "other")
            sooner_j, sooner_s = _ended_sooner(view, view.kernels, {"issue": 1 - TENTH * (group == "other")})
            sooner_j += TENTH * sum(map(view.timed, at_work))
            sooner_s += TENTH * sum(time_of(kernel).or_zero for kernel in at_work)
            if time := _less_time(view, sooner_s, sooner_s):
                held = [kernel for kernel in view.kernels if sooner(kernel, {"issue": 0.0})]
                most = max(held + at_work, key=view.timed)
                told = f"{view.label(most)} fills {percent(issuing(most))} of its issue slots"
            how = "; ".join(filter(None, [told or _mostly_in(view, group), *remedies]))
            act = f"execute fewer {kind}instructions{bracketed(how)}"
            if any(cycles_j) and group == "other":
                low, high = (saves + TENTH * joules for joules in cycles_j)
                fewer = when(low < high, "fewer, in up to as many fewer cycles") or "fewer, with their cycles,"
                yield Try(act, (low + high) / 2, (low, high), each=fewer, adds=True, is_vague=True)
                continue
            low, high = _ends(view, group, saves) or (saves, saves)
            ends = low, high + sooner_j
            yield Try(act, saves + sooner_j / 2, ends, time.replace(", ", ", up to ", 1), each="fewer")


def _at_work(view: View) -> Iterator[schema.Kernel]:
    """The kernels that fill most of their issue slots, and that nothing else is seen to hold back."""
    limits = view.document.limits.kernels if view.document.limits else []
    for place, kernel in enumerate(view.kernels * (not view.is_modelled)):
        reached = limits[place].speed_share or 0.0 if limits else 0.0
        is_short = 0 < view.each_s(kernel) < SHORT_S
        if issuing(kernel) > _MOSTLY_ISSUING and not is_short and max(reached, *busy(kernel).values(), 0.0) < NEAR:
            yield kernel


def _ends(view: View, group: str, saves: float) -> tuple[float, float] | None:
    """(least, most) J that a saving of `saves` J may be, as the group's prices are uncertain; None: no interval."""
    pair, value, everything = known(view.interval(group)), view.groups[group].value, view.everything
    interval = view.document.interval_j
    if pair is None or not value or view.is_certain(group) or interval and group in interval.uncounted:
        return None
    share = value / everything
    low, high = (joules / everything for joules in pair)
    causes = view.causes_of(view.document) or schema.Causes("open", [])
    for part in causes.parts:
        if group in part.groups and part.interval:
            # Its share of a total that grows with it is known better than its joules are.
            high = min(high, part.interval[1] or 1.0)
            low = max(low, (part.interval[0] or 0.0) * (len(part.groups) == 1))
    return saves * low / share, saves * min(high, 1.0) / share


def _fewer_conflicts(view: View) -> Iterator[Try]:
    """Avoid bank conflicts of shared memory."""
    shares = [(kernel.signs or {}).get("bank_conflict", 0.0) for kernel in view.kernels]
    saved_j = sum(share * joules for share, joules in zip(shares, view.joules_by_kernel("shared"), strict=True))
    if saved_j:
        act = f"avoid bank conflicts (up to {percent(max(shares))} of the accesses of shared memory)"
        yield Try(f"{act}: pad its arrays", saved_j)


def _fewer_spills(view: View) -> Iterator[Try]:
    """Spill no registers: this spares bytes of L1, and of L2 as many as are known to be of local memory.

    Of DRAM it may spare as large a share, and time, as far as units are held by such bytes.
    """
    spilled, surely_j, most_j, saved_s = 0.0, 0.0, 0.0, 0.0
    levels = {level: view.joules_by_kernel(level) for level in ("l1", "l2", "dram")}
    for place, kernel in enumerate(view.kernels):
        local, behind = _spilled(view, kernel), _local_share(kernel)
        share = min(local / (view.summed(kernel, _words(view, "l1")).value or math.inf), 1.0)
        more_j, more_s = _ended_sooner(view, [kernel], {"l1": 1 - share, "l2": 1 - behind, "dram": 1 - behind})
        spilled, saved_s = spilled + local, saved_s + more_s
        surely_j += share * levels["l1"][place] + behind * levels["l2"][place]
        most_j += behind * levels["dram"][place] + more_j
    if surely_j:
        most = max(map(_local_share, view.kernels))
        told = f"{quantity(spilled, 'B')} of local memory{when(most, f', {percent(most)} of what L1 and L2 pass on')}"
        act = f"spill no registers ({told}): smaller tiles, __launch_bounds__"
        ends = surely_j, surely_j + most_j
        yield Try(act, sum(ends) / 2, ends, _less_time(view, 0.0, saved_s))


def _spilled(view: View, kernel: schema.Kernel) -> float:
    return sum(view.amount(kernel, f"local_{way}").or_zero for way in ("read", "write"))


def _local_share(kernel: schema.Kernel) -> float:
    """The share of local memory in the traffic between L1 and L2; 0: not counted."""
    return (kernel.signs or {}).get("local_share", 0.0)


def _is_closed(view: View, group: str) -> bool:
    """Whether most joules of a group are in kernels of a library that comes compiled, which its user cannot rewrite."""
    joules = view.joules_by_kernel(group)
    closed = [
        library_of(kernel.name) in CLOSED or is_of_library(kernel) or is_interpreted(kernel) for kernel in view.kernels
    ]
    return sum(part for part, is_closed in zip(joules, closed, strict=True) if is_closed) > sum(joules) / 2


def _mostly_in(view: View, group: str) -> str:
    """The kernel with most joules of a group: "53 % in u_list"; "" if it has less than 30 %, or is the only one."""
    joules = view.joules_by_kernel(group)
    if FAMILY_OF[group] != DATA:  # a library's instructions become fewer elsewhere
        joules = [
            part * (not (kernel.callers or is_of_c(kernel))) for part, kernel in zip(joules, view.kernels, strict=True)
        ]
    largest = max(range(len(joules)), key=joules.__getitem__)
    share = joules[largest] / (sum(joules) or 1.0)
    if len(joules) < 2 or share < _MOSTLY:
        return ""
    kernel = view.kernels[largest]
    return f"{percent(share)} in {view.label(kernel)}{phrase(', {}', view.called_by(kernel))}"

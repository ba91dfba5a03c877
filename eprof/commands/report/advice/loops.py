"""Advice for functions of a CPU: optimisation, vectors, tiles, blocks that stay in caches; less work for Python."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from eprof.base import cpus
from eprof.base.labels import NO_LINE, remedy_of
from eprof.base.optional import gathered
from eprof.base.text import bracketed, pattern, phrase, when
from eprof.base.vocabulary import CPU
from eprof.commands.report.advice.savings import NEAR, TENTH, Try
from eprof.commands.report.view import (
    DRAM,
    FAR_CYCLES,
    LINE_B,
    PAST_L2,
    View,
    is_called_by_python,
    is_interpreted,
    is_of_c,
    is_of_library,
)
from eprof.profile import schema
from eprof.show.amounts import ASSUMED
from eprof.show.numbers import percent, plain, quantity

# Instructions a cycle, of cores that can issue four to eight: what executes fewer mostly waits for memory or branches.
_WAITING = 1.5
_STALLED = 1 / 3  # of cycles: where more issue nothing, those that issue something lose slots as well (assumed)
_OF_LOADER = pattern(r"_dl_|do_lookup_x|dl_main|check_match|match_symbol|.*, loader$")  # of glibc
SHORT_RUN_S = 1e-3  # our choice: to start a thread takes some 10 µs, and so does to start and stop counters
_SINGLE = 1.5  # cores busy: fewer are one, and no socket of a server has no more
_SEEMS_TO_WAIT = 0.5  # instructions for each cycle that a time was taken for (assumed)
_RETIRES, _HELD = 0.5, 0.2  # of a core's slots: instructions are what it mostly does; worth naming what holds it back
_HOLDS = {
    "backend_bound": "let {} wait less for data, or for busy units (backend bound {}; blocks that stay in the caches)",
    "bad_speculation": "predict more branches of {} right (bad speculation {}; sort its data, or do without branches)",
    "frontend_bound": "let {} wait less for instructions (frontend bound {}; -fprofile-use, less code inlined)",
}
_TELLS_MOST = "backend_bound"  # of why cores wait; the rest are instructions, and branches that were predicted wrong
_PEAK = "peak"  # of arithmetic: what holds back a function whose vector units are busy
# What others wait for, with few instructions a cycle: bytes from beyond L2, results, or what nothing tells.
_BYTES, _RESULTS, _NOT_TOLD = "bytes", "results", ""
_FIND_OUT = "find out with `eprof run PROGRAM` what cores wait for ({}{})"
_FOR_RESULTS = (
    "wait less for {2}results ({0}, and little {1}): {3}let neighbouring operations not need each other's results, and "
    "threads not wait for each other"
)
_OF_BRANCHES = ("branches and ", "sort data that branches depend on, and ")
OF_BLOCKS = "work on blocks that stay in the caches, or in one loop on what several pass over"
_OF_STREAMS = "blocks that stay in the caches, fused loops, narrower numbers, streaming stores"
Counts = Mapping[str, schema.Count]
_UNKNOWN = schema.Count(value=None, unit="", energy_j=None, marks=[])
_LITTLE = 0.03  # of what the first function saves: others that save less are not told
_WAIT = FAR_CYCLES / LINE_B  # instructions that callgrind takes to last as long as a byte from DRAM
_CARGO = pattern(r"\btarget/(release|debug)/")  # where Rust's Cargo has programs; its releases are optimised
_VECTOR_BITS = 256  # what compilers take by themselves, also where AVX-512 is
_NARROW_BITS = 128
_MOSTLY_NARROW = 0.5  # of a line's arithmetic that is scalar, or in narrow vectors
_LEAST_FLOPS = 1 / 30  # of a line's instructions that are arithmetic
# Accesses to memory for each operation of scalar code, and their share of its instructions: so many has code that keeps
# its variables in memory, as compilers have it without optimisation. With it, loops of products, stencils and sums take
# 1 to 4 instructions for each operation (measured with gcc 12, whose -O2 has vectors: -O0 10 to 25, 4.8 to 9 accesses).
_ACCESSES, _OF_MEMORY, _OPTIMISED = 4.5, 0.3, (1.0, 4.0)
_DIVIDE = (
    "divide less in {} ({} of its instructions are divisions or roots: multiply by the reciprocal of what stays the "
    "same, else vectorise, -O3 -march=native)"
)
# Core cycles of a division of FP64, in a vector of four and alone: 8 / 4 and 4 of Ice Lake and Golden Cove, 5 of Zen
# alone (A. Fog, Instruction tables).
_OF_A_DIVISION = (2.0, 4.0)
_NEEDED_ONCE = pattern(r"memset|bzero|alloc|operator new")
_SHORT_LOOPS = 8.0  # instructions for each operation of a library, from which on what is around its loops takes most
_NO_STORES = 0.05  # numbers stored for each operation: a loop that stores fewer adds up into one
# Loads and stores for each vector of arithmetic, from which on registers hold too little; what OpenBLAS has is 0.8.
_LOADS, _REUSED = 1.0, 8.0  # and bytes asked for, for each that a call may see for the first time
_L1_B = 48 * 1024  # the largest L1 of today's servers
_STREAMS = "streams"  # a sign: bytes are asked for about once
_BUILD = "build {} with -O2, if it was not"
# Where the compiler noted what it was told: a sort saves 0.3 of its joules then, a stencil and a product 0.6 to 0.85.
_BUILD_SURELY, _OPTIMISED_SAVES = "build {} with -O2", (0.3, 0.9)
_VECTORISE = "vectorise {} (-O3 -march=native, unit strides)"
_SUM = "vectorise the sum in {} (omp simd reduction, or -ffast-math; both change its order)"
_MULTIPLIED = _SUM.replace("the sum", "the product")
_PRODUCT = f"{_SUM[:-1]}; in a product of matrices swap the two inner loops instead)"
_FUSE = "fuse multiplications and additions of {} (-march=native; each needs the one before, so no vectors help)"
_WIDEN = "widen the vectors of {} (-O3 -march=native)"
_TILE = "keep more in registers in {} (tiles: several rows and columns at once)"
# Lines that L1 lacks: streams use them whole; others leave it before that, or nobody asks for the rest of them.
_STREAM = f"let {{}} {OF_BLOCKS}"
_LEFT = (
    "use lines in {} before they leave the cache ({} bytes of each are asked for: interchange loops to follow memory, "
    "tiles, sorted look-ups)"
)
_SPARSE = (
    "let {} fetch fewer lines ({} bytes of each are asked for: smaller keys, what is read together side by side, "
    "look-ups in batches that prefetch, huge pages)"
)
# Where nobody decoded what accesses ask for.
_IN_BLOCKS = OF_BLOCKS.removeprefix("work on ")
_FEWER = f"let {{}} fetch fewer lines (loops in the order of memory, smaller elements, {_IN_BLOCKS})"
# Where stores are what fetches them: to be written whole they need not be read.
_STREAM_STORES = "store what nobody reads soon past the caches in {} (stores fetch {} of lines, streaming ones none)"
_WHOLE = 0.9  # of its bytes: what asks for so many uses a line whole
# Bytes of a store, of which as many as fit a line fetch one together: then they write it whole. Vectors of 32 B are not
# here: without optimisation every second store, that of the loop's own variable, hits, also where the others jump.
_STORES_B, _EXACTLY = (1, 2, 4, 8, 16), 0.03
# Counts of a loop that runs once for all lanes of a vector. Bytes stay, and so does what is counted once a lane.
_ONCE = ("retired", "core_active", "integer", "control", "load_store", "misc")


def less_for_libraries(view: View) -> Iterator[Try]:
    """The change that gives a library less to do, if one of its functions takes most of a Python program; else none."""
    placed = (kernel for kernel in view.kernels if not kernel.name.startswith(NO_LINE))
    kernel = max(placed, key=lambda kernel: view.ranked(kernel).or_zero, default=None)
    if not view.nouns.is_of_cpu or kernel is None or kernel.callers or not is_of_library(kernel):
        return
    joules = view.ranked(kernel).or_zero
    told, flops = percent(joules / view.whole), sum(_operations(kernel.counts, kind) for kind in ("fp64", "fp32"))
    each = _number(kernel.counts, "retired") / (flops or math.inf)
    how = "fewer elements, or narrower ones (float32)"
    if each > _SHORT_LOOPS:
        told += f", {plain(each)} instructions a flop"
        how = "longer inner loops (a longer last axis, larger arrays in each call), fewer elements"
    yield Try(f"give {view.label(kernel)} less to do ({told}): {how}", TENTH * joules, each="less")


class Better(NamedTuple):
    """What to do to a CPU's functions, and the J that it saves: at least, and at most if time falls with cycles.

    timed_j: of the most, what less time saves.
    """

    act: str
    least_j: float
    most_j: float
    timed_j: float = 0.0


def better_loops(view: View) -> Iterator[Try]:
    """Changes that build or vectorise the functions that compute, each for all functions that it is good for.

    Each names the function that takes most, and its line that has most of the arithmetic in question.
    """
    if view.document.device.processor != CPU:
        return
    changes: dict[str, list[tuple[str, Better]]] = {}
    for kernel in sorted(view.kernels, key=lambda kernel: -view.ranked(kernel).or_zero):
        if is_called_by_python(kernel) or kernel.callers:
            continue  # what a library does, who calls it cannot compile otherwise
        unoptimised = (kernel.signs or {}).get("unoptimised")
        if unoptimised:
            joules = [share * unoptimised * view.ranked(kernel).or_zero for share in _OPTIMISED_SAVES]
            change = Better("compiled without optimisation now", *joules)
            changes.setdefault(_BUILD_SURELY, []).append((view.label(kernel), change))
            continue
        for kind in ("fp64", "fp32"):
            hottest = max(kernel.lines or (), key=lambda line: _operations(line.counts, kind), default=None)
            asked, fetched = _asked_and_fetched(hottest.counts if hottest else {})
            if (
                hottest
                and "global_read" in hottest.counts
                and asked < fetched / 2
                and view.waits(hottest.counts) >= _HELD
            ):
                continue  # it jumps: vectors wait for as many lines
            place = phrase(" at {}", hottest and hottest.place)
            signs = kernel.signs or {}
            if _reuses_little(view, kernel):
                signs = signs | {_STREAMS: 1.0}
            for how, change in _of_function(kernel.counts, signs, kind, view.passing_j(kernel), view.in_program):
                if how == _BUILD and unoptimised is not None:
                    continue  # its compiler was told to optimise
                changes.setdefault(how, []).append((view.label(kernel) + place, change))
    for how, alike in changes.items():
        name, change = _together(alike)
        beside = when(change.timed_j > change.most_j / 2, ", the most if time falls with cycles")
        ends = change.least_j, change.most_j
        yield Try(f"{how.format(name)}: {change.act}", sum(ends) / 2, ends, beside)


def _together(alike: list[tuple[str, Better]]) -> tuple[str, Better]:
    """Merge like changes, largest first, into one: "NAME and N more", and the sum of their J; without tiny ones."""
    (name, first), *others = alike
    more = [change for _, change in others if change.most_j > _LITTLE * first.most_j]
    joules = (sum(ends) for ends in zip(*(change[1:] for change in [first, *more]), strict=True))
    return name + when(more, f" and {len(more)} more"), Better(first.act, *joules)


def without_interpreter(view: View) -> Iterator[Try]:
    """Advise operations on arrays for the loop of Python that takes most, if the interpreter is what takes most."""
    kernel = max(view.kernels, key=lambda kernel: view.ranked(kernel).or_zero, default=None)
    if kernel is None or not kernel.lines or not is_interpreted(kernel):
        return
    line = max(kernel.lines or (), key=lambda line: _number(line.counts, "retired"))
    rows = [each for each in view.kernels if any(of_row.place == line.place for of_row in each.lines or ())]
    most_j = sum(view.ranked(each).or_zero for each in rows)
    if (of_text := (kernel.signs or {}).get("text", 0.0)) > TENTH:
        told = f"{percent(of_text)} of its instructions work on text: operations on whole texts, as join and re.sub"
        yield Try(f"do less for each element of the loop at {line.place} ({told})", TENTH * most_j, each="fewer")
        return
    # Of an operation on arrays a tenth or less is left, of one that makes large copies half.
    ends = most_j / 2, most_j
    yield Try(f"replace the loop at {line.place} by operations on arrays (numpy)", sum(ends) / 2, ends)


def of_retiring(view: View) -> tuple[str, float, float]:
    """(words, least J, most J) on functions of a CPU that mostly execute instructions: where, and how many a cycle.

    The J are those of cycles in which they do: of cycles that a time was taken for nobody knows how many were waits.
    """
    if view.amount(view.document, "core_active").marks & ASSUMED:
        own = [kernel for kernel in view.kernels if not kernel.callers]
        working_j = sum((1 - view.waits(kernel.counts)) * view.cycles_j(kernel) for kernel in own)
        return "", 0.0, working_j * (not seems_to_wait(view))
    busy = [kernel for kernel in view.kernels if _working(view, kernel) >= _RETIRES]
    joules = sum(_working(view, kernel) * view.cycles_j(kernel) for kernel in busy)
    if not joules or view.amount(view.document, "core_active").lower:
        return "", joules, joules
    executed = [_number(kernel.counts, "retired") for kernel in view.kernels]
    first = max(busy, key=lambda kernel: _number(kernel.counts, "retired"))
    share = _number(first.counts, "retired") / sum(executed)
    where = when(len(view.kernels) > 1, f"{percent(share)} in {view.label(first)}; ")
    return f"{where}{plain(_a_cycle(first))} a cycle", joules, joules


def seems_to_wait(view: View) -> str:
    """The reason to believe that cores wait, where nobody counted or simulated stalls; empty if there is none."""
    cycles = view.amount(view.document, "core_active")
    per_cycle = view.amount(view.document, "retired").or_zero / (cycles.or_zero or math.inf)
    is_told = not cycles.marks & ASSUMED or any(view.waits(kernel.counts) for kernel in view.kernels)
    if is_told or not 0 < per_cycle < _SEEMS_TO_WAIT:
        return ""
    return f"{plain(per_cycle)} instructions for each assumed cycle; fewer than {_SEEMS_TO_WAIT:g} are taken for waits"


def fewer_cycles(view: View) -> Iterator[Try]:
    """Changes for a CPU's functions that wait, one for each cause: data, branches, instructions, or a full vector unit.

    Each names the function whose cycles take most.
    """
    if view.amount(view.document, "core_active").marks & ASSUMED:
        return
    for holds, alike in gathered((_held_by(view, kernel), kernel) for kernel in view.kernels).items():
        first = max(alike, key=view.cycles_j)
        kernels = [kernel for kernel in alike if view.cycles_j(kernel) > _LITTLE * view.cycles_j(first)]
        joules = sum(map(view.cycles_j, kernels))
        if holds is None or not joules:
            continue
        if holds == _PEAK:
            yield _at_the_peak(view, kernels, first)
        elif holds == _BYTES:
            yield _fewer_bytes(view, kernels, first)
        elif holds == _NOT_TOLD and view.in_kernel:
            continue
        elif holds in (_RESULTS, _NOT_TOLD):
            rate = when(_a_cycle(first) > 0, f"{plain(_a_cycle(first))} instructions a cycle")
            told = f"{rate or 'instructions were not counted'}{_in(view, kernels, first)}"
            # Hardly any cycles are counted to go with branches that were predicted wrong.
            is_told = all((kernel.signs or {}).get("bad_speculation", 1.0) < TENTH for kernel in kernels)
            little = when(view.summed(first, PAST_L2).value, "leaves L2") or "comes from DRAM"
            branches = [when(not is_told, words) for words in _OF_BRANCHES]
            act = _FOR_RESULTS.format(told, little, *branches)
            if holds == _NOT_TOLD:
                act = _FIND_OUT.format(told, when(is_told, ", hardly for branches"))
            yield Try(act, TENTH * joules, each="fewer cycles", adds=True)
        else:
            most = sum((kernel.signs or {})[holds] * view.cycles_j(kernel) for kernel in kernels)
            act = _HOLDS[holds].format(view.label(first), percent((first.signs or {})[holds]))
            yield Try(act, TENTH * joules, each="fewer cycles", most=most, why="without such waits", adds=True)


def fewer_misses(view: View) -> Iterator[Try]:
    """Changes for a CPU's functions that wait for simulated caches, one for each way to use lines better.

    Saved are at most the cycles that callgrind takes misses to cost, for a core that runs ahead waits less.
    """
    kernels = [kernel for kernel in view.kernels if not kernel.name.startswith(NO_LINE)]
    lines: dict[str, schema.Kernel | schema.Line] = {}  # that wait most; functions themselves where none are known
    for kernel in kernels:
        if view.waits(kernel.counts) >= _HELD:
            places: Sequence[schema.Kernel | schema.Line] = kernel.lines or [kernel]
            lines[kernel.name] = max(places, key=lambda line: view.waited_cycles(line.counts))
    waiting = [kernel for kernel in kernels if kernel.name in lines and view.cycles_j(kernel)]
    storing = [kernel for kernel in waiting if _stores_whole_lines(kernel, lines[kernel.name].counts)]
    streamed, changes_of_stores = _past_the_caches(view, storing, lines)
    yield from changes_of_stores
    changes: dict[str, list[tuple[str, Better]]] = {}
    for kernel in waiting:
        if kernel.name not in streamed:
            # A line that a store brings in is written back, too.
            dram_j = sum(kernel.counts.get(word, _UNKNOWN).energy_j or 0.0 for word in ("dram_read", "dram_write"))
            waits_j = view.waits(kernel.counts) * view.cycles_j(kernel)
            counts, how = lines[kernel.name].counts, _SPARSE
            asked, fetched = _asked_and_fetched(counts)
            if asked >= _WHOLE * _number(counts, "dram_read"):
                how = _LEFT
            if asked >= _WHOLE * fetched:
                how = _STREAM
            if "global_read" not in counts:
                how = _FEWER
            told = f"{LINE_B * asked / (fetched or math.inf):.0f} of {LINE_B:.0f}"
            name = _at(view, kernel, lines[kernel.name])
            changes.setdefault(how, []).append((name, Better(told, dram_j, dram_j + waits_j)))
    for how, alike in changes.items():
        yield _by_degrees(
            how,
            alike,
            "fewer misses",
            "if not even first use missed (callgrind's 10 and 100 cycles a miss)",
        )


def _by_degrees(how: str, alike: list[tuple[str, Better]], each: str, why: str) -> Try:
    """One change for several functions, of which each tenth saves, and all at most. how: "{name} ({told})"."""
    name, change = _together(sorted(alike, key=lambda each: -each[1].most_j))
    ends = TENTH * change.least_j, TENTH * change.most_j
    return Try(how.format(name, change.act), sum(ends) / 2, ends, each=each, most=change.most_j, why=why)


def _at(view: View, kernel: schema.Kernel, line: schema.Kernel | schema.Line) -> str:
    """A function's name with who calls it, or with the place of a line of it."""
    place = phrase(" at {}", getattr(line, "place", ""))
    return view.label(kernel) + (phrase(", {}", view.called_by(kernel)) or place)


def _past_the_caches(
    view: View, storing: Sequence[schema.Kernel], lines: Mapping[str, schema.Kernel | schema.Line]
) -> tuple[Collection[str], list[Try]]:
    """(names of functions that may store past the caches, the change that does so), of those that fetch lines to store.

    It saves their reads, and waits for these. All that the last cache served may have been stored: as many lines had to
    stay in it, and callgrind does not tell whose. Those of the functions that stored most, so that what is told of the
    others holds.
    """
    kept_b = view.summed(view.document, PAST_L2).or_zero
    streamed: dict[str, tuple[str, Better]] = {}
    for kernel in sorted(storing, key=lambda kernel: -_number(kernel.counts, "dram_write")):
        stored_b, read = _number(kernel.counts, "dram_write"), kernel.counts.get("dram_read", _UNKNOWN)
        if kept_b >= _WHOLE * stored_b:
            kept_b = max(kept_b - stored_b, 0.0)
            continue
        of_stores = min(stored_b / (read.value or math.inf), 1.0)
        of_waits = view.waited_cycles({"dram_read": read}) / view.waited_cycles(kernel.counts)
        read_j, waits_j = read.energy_j or 0.0, of_waits * view.waits(kernel.counts) * view.cycles_j(kernel)
        change = Better(percent(of_stores), of_stores * read_j, of_stores * (read_j + waits_j))
        streamed[kernel.name] = _at(view, kernel, lines[kernel.name]), change
    if not streamed:
        return (), []
    name, change = _together(sorted(streamed.values(), key=lambda each: -each[1].most_j))
    price = view.charges.get("dram_read")
    least_j = max(change.least_j - kept_b * (price.pj if price else 0.0) * 1e-12, 0.0)
    act = _STREAM_STORES.format(name, change.act)
    return streamed, [Try(act, (least_j + change.most_j) / 2, (least_j, change.most_j))]


def fewer_divisions(view: View) -> Iterator[Try]:
    """Advise fewer divisions and roots in functions whose cycles mostly go with them: in vectors each takes fewer."""
    alike: list[tuple[str, Better]] = []
    for kernel in view.kernels:
        of_cycles = _number(kernel.counts, "special") / (_number(kernel.counts, "core_active") or math.inf)
        least, most = (min(cycles * of_cycles, 1.0) * view.cycles_j(kernel) for cycles in _OF_A_DIVISION)
        if kernel.callers or is_called_by_python(kernel) or most < _HELD * view.cycles_j(kernel) or not most:
            continue
        line = max(kernel.lines or (), key=lambda line: _number(line.counts, "special"), default=None)
        share = _number(kernel.counts, "special") / (_number(kernel.counts, "retired") or math.inf)
        name = view.label(kernel) + phrase(" at {}", line and line.place)
        alike.append((name, Better(percent(share), least, most)))
    if alike:
        yield _by_degrees(_DIVIDE, alike, "fewer", "if none is left")


def fewer_calls(view: View) -> Iterator[Try]:
    """Changes that give libraries less work, one for each function that calls them, with what spares the largest."""
    called: dict[str, list[tuple[str, Better]]] = {}
    for kernel in sorted(view.kernels, key=lambda kernel: -view.ranked(kernel).or_zero):
        sites = [(view.site(caller), caller.share) for caller in kernel.callers or ()]
        if is_of_c(kernel) and not sites:
            sites = [("its callers", 1.0)]
        for site, share in sites:
            change = Better(remedy_of(kernel.name), 0.0, share * view.ranked(kernel).or_zero)
            if kernel.callers and kernel.launches == 1 and _NEEDED_ONCE.search(kernel.name):
                continue
            called.setdefault(site, []).append((view.label(kernel), change))
    for site, alike in called.items():
        name, change = _together(sorted(alike, key=lambda each: -each[1].most_j))
        act = f"have {name} do less for {site}{bracketed(change.act)}"
        yield Try(act, TENTH * change.most_j, each="fewer calls or bytes", most=change.most_j, why="if none is left")


def _reuses_little(view: View, kernel: schema.Kernel) -> bool:
    """Whether a function may ask for most bytes only once in a call.

    New to a call is no more than the whole program ever had from DRAM, nor than L1 lacked in it, or held before.
    """
    asked, fetched = _asked_and_fetched(kernel.counts)
    calls = kernel.launches or 1.0
    dram_b = view.amount(view.document, "dram_read").value or math.inf
    return asked < _REUSED * min(calls * dram_b, fetched + calls * _L1_B)


def _asked_and_fetched(counts: Counts) -> tuple[float, float]:
    """(bytes that accesses ask for, bytes of cache lines that L1 lacked) in these counts of a function or line."""
    asked, fetched = (("global_read", "global_write"), ("l3_read", "dram_read"))
    return sum(_number(counts, word) for word in asked), sum(_number(counts, word) for word in fetched)


def _stores_whole_lines(kernel: schema.Kernel, counts: Counts) -> bool:
    """Whether stores fetch most of the cache lines that a source line has from DRAM, and write them whole, once.

    counts: of the source line. Where nobody decoded how wide stores are, the share of them that misses tells it.
    """
    stored_b = _number(counts, "dram_write")
    if not stored_b or stored_b < _WHOLE * _number(counts, "dram_read"):
        return False
    if "global_write" in counts:
        return _WHOLE <= _number(counts, "global_write") / stored_b <= 1 / _WHOLE
    each_b = LINE_B * (kernel.signs or {}).get("missed_stores", 1.0)
    return any(abs(each_b / width_b - 1) < _EXACTLY for width_b in _STORES_B)


def _at_the_peak(view: View, kernels: Sequence[schema.Kernel], first: schema.Kernel) -> Try:
    """The change for functions whose vector units are busy: FP32 for FP64, or fewer flops. first: the one to name."""
    joules = sum(view.cycles_j(kernel) + (kernel.counts.get("retired", _UNKNOWN).energy_j or 0.0) for kernel in kernels)
    told = f"{view.label(first)} does {percent(_of_peak(view, first))} of the flops that its cycles have room for"
    if _operations(first.counts, "fp32") > _operations(first.counts, "fp64"):
        return Try(f"do fewer flops ({told})", TENTH * joules, each="fewer")
    act = f"use FP32 for FP64, if accurate enough, or do fewer flops ({told})"
    ends = joules / 2, (joules + sum(view.groups_of(kernel)["fp64"].or_zero for kernel in kernels)) / 2
    beside = ", the most where a vector of FP32 costs what one of FP64 does (assumed), in half the cycles"
    return Try(act, sum(ends) / 2, ends, beside, is_exact=False)


def ended_at_its_start(view: View) -> str:
    """What to do about a program whose instructions are mostly those of the loader; "" where they are not."""
    executed = [(_OF_LOADER.match(kernel.name), _number(kernel.counts, "retired")) for kernel in view.kernels]
    loading = sum(number for is_of_loader, number in executed if is_of_loader)
    whole = view.instructions(view.document).or_zero
    if not view.nouns.is_of_cpu or loading <= whole / 2:
        return ""
    start = f"{percent(loading / whole)} of the instructions are the loader's start"
    if any(kernel.name == "perror" for kernel in view.kernels):
        return f"profile a run that works: it told an error (perror), and {start}"
    own = [(number, place) for place, (is_of_loader, number) in enumerate(executed) if not is_of_loader]
    most, place = max(own, default=(0.0, 0))
    rest = when(
        most, f"; of the rest {percent(most / (whole - loading or 1.0))} are in {view.label(view.kernels[place])}"
    )
    return f"profile a longer run: {start}{rest}"


def more_cores(view: View) -> Iterator[Try]:
    """Advise to share a program's work among cores, where one is busy and the whole socket's constant power is paid."""
    busy = view.document.busy_cores or math.inf
    constant_j = sum(map(view.passing_j, view.kernels))
    if busy < _SINGLE and constant_j and view.time.or_zero > SHORT_RUN_S:
        why = "with twice as many, in half the time"
        yield Try("use more cores (one is busy)", TENTH * constant_j, each="less time", most=constant_j / 2, why=why)


def _held_by(view: View, kernel: schema.Kernel) -> str | None:
    """What holds a function's cores back: `_PEAK`, a sign of `_HOLDS`, or what it waits for; None: nothing is known."""
    signs = kernel.signs or {}
    holds = max(filter(signs.__contains__, _HOLDS), key=signs.__getitem__, default="")
    if _of_peak(view, kernel) >= NEAR:
        return _PEAK
    if signs.get(holds, 0.0) >= _HELD:
        return holds
    if _TELLS_MOST in signs or _working(view, kernel):
        return None
    # By the bytes that leave L2.
    passed = _past_l2(view, kernel)
    if _WAIT * passed >= _HELD * _number(kernel.counts, "core_active"):
        return _BYTES
    if passed or signs.get("dram_bound", 1.0) < TENTH:
        return _RESULTS
    return _NOT_TOLD


def _past_l2(view: View, kernel: schema.Kernel) -> float:
    """The bytes that are known to leave L2; without those of L3, what DRAM moved."""
    return view.summed(kernel, PAST_L2).or_zero or view.summed(kernel, DRAM).or_zero


def _in(view: View, kernels: Sequence[schema.Kernel], first: schema.Kernel) -> str:
    """Whose numbers a change for several functions shows: " in mul and 3 more"; "" if there is one function."""
    if len(view.kernels) == 1:
        return ""
    return f" in {view.label(first)}" + when(len(kernels) > 1, f" and {len(kernels) - 1} more")


def _fewer_bytes(view: View, kernels: Sequence[schema.Kernel], first: schema.Kernel) -> Try:
    """The change for functions that wait for bytes that leave L2; the numbers in its words are those of `first`."""
    joules = sum(map(view.cycles_j, kernels))
    passed_b = [_past_l2(view, kernel) for kernel in (first, *kernels)]
    told = f"{quantity(passed_b[0], 'B')}, {plain(_a_cycle(first))} instructions a cycle{_in(view, kernels, first)}"
    act = f"move fewer bytes past L2 ({told}): {_OF_STREAMS}"
    if view.joules_of("dram") or not (price := view.charges.get("dram_read")):
        if not view.summed(view.document, PAST_L2).value:  # the bytes are DRAM's
            joules += sum(view.groups_of(kernel)["dram"].or_zero for kernel in kernels)
        return Try(act, TENTH * joules, each="fewer, and cycles,")
    ends = TENTH * joules, TENTH * (joules + sum(passed_b[1:]) * price.pj * 1e-12)
    change = Try(act, sum(ends) / 2, ends, ", most if DRAM serves them", each="fewer, and cycles,")
    past_l2_b = view.summed(view.document, PAST_L2).or_zero or view.summed(view.document, DRAM).or_zero
    return replace(change, beyond=past_l2_b * price.pj * 1e-12)


def _of_peak(view: View, kernel: schema.Kernel) -> float:
    """A function's flops over those that fit its cycles in its core's widest vectors; of FP32 twice as many fit."""
    flops = _operations(kernel.counts, "fp64") + _operations(kernel.counts, "fp32") / 2
    a_cycle = flops / (_number(kernel.counts, "core_active") or math.inf)
    return a_cycle / cpus.fp64_flops_a_cycle(view.document.device.capability)


def _working(view: View, kernel: schema.Kernel) -> float:
    """The share of a function's cycles in which it executes instructions; 0 at the peak of its flops.

    By the slots of its cores, or the cycles in which they waited (`counters/cpu/topdown.toml`), else 1 or 0 by
    instructions a cycle.
    """
    signs = kernel.signs or {}
    waits = sum(signs.get(name, 0.0) for name in _HOLDS)
    if _of_peak(view, kernel) >= NEAR:
        return 0.0
    if "retiring" in signs:
        return signs["retiring"]
    return (1 - waits) * (waits <= _STALLED and _a_cycle(kernel) >= _WAITING)


def _a_cycle(kernel: schema.Kernel) -> float:
    return _number(kernel.counts, "retired") / (_number(kernel.counts, "core_active") or math.inf)


def flags(view: View) -> str:
    """The compiler's option to advise for wide vectors; empty where most arithmetic is in wide ones, or fits none."""
    told = [kernel for kernel in view.kernels if _tells_widths(kernel.counts, "fp64")]
    counts = [kernel.counts for kernel in told]
    bound = sum((kernel.signs or {}).get("recurrence", 0.0) * _number(kernel.counts, "fp64_scalar") for kernel in told)
    narrow = sum(_number(each, "fp64_narrow") for each in counts) - bound
    if narrow < _MOSTLY_NARROW * sum(_operations(each, "fp64") for each in counts):
        return ""
    built = {cargo[1] for kernel in view.kernels if (cargo := _CARGO.search(kernel.name))}
    return when("debug" in built, "--release") or when(built, "-C target-cpu=native") or "-O3 -march=native"


def _number(counts: Counts, word: str) -> float:
    count = counts.get(word)
    return (count and count.value) or 0.0


def _tells_widths(counts: Counts, kind: str) -> bool:
    """Whether counts tell narrow vectors from wide ones; without scalar arithmetic apart, all counts as wide."""
    return f"{kind}_narrow" in counts and counts.get(f"{kind}_scalar", _UNKNOWN).value is not None


def _operations(counts: Counts, kind: str) -> float:
    """The operations on FP64 or FP32 in counts, two for a multiply-add; without divisions, comparisons and such."""
    added = sum(_number(counts, f"{kind}_{part}") for part in ("add", "mul", "fma", "fma"))
    return added or _number(counts, kind)


def _of_function(
    counts: Counts, signs: Mapping[str, float], kind: str, passing_j: float, in_program: float
) -> Iterator[tuple[str, Better]]:
    """(advice with a place for the name, change) for a function's arithmetic of one type; none if it has little.

    signs: of its machine code, where that was decoded.
    passing_j: what goes with the function's time. in_program: the share of that outside the operating system's kernel.
    """
    operations = _operations(counts, kind)
    scalar, narrow, executed, memory = (
        _number(counts, word) for word in (f"{kind}_scalar", f"{kind}_narrow", "retired", "load_store")
    )
    if not executed or operations < _LEAST_FLOPS * executed:
        return
    joules = {word: count.energy_j or 0.0 for word, count in counts.items()}
    joules["core_active"] = in_program * joules.get("core_active", 0.0)
    # Where a loop waits for DRAM its cycles stay.
    dram = _number(counts, "dram_read") or _number(counts, "dram")
    waits = _WAIT * dram > executed
    once_j = sum(joules.get(word, 0.0) for word in _ONCE if not (waits and word == "core_active"))
    timed_j = in_program * passing_j * (not waits)
    lanes, now, flops = _VECTOR_BITS // int(kind[2:]), _NARROW_BITS // int(kind[2:]), narrow
    least = _MOSTLY_NARROW * operations
    is_product = signs.get("product", 0.0) > _MOSTLY_NARROW
    free = scalar * (1 - signs.get("recurrence", 0.0))  # of its own results
    if scalar >= least:
        now, flops = 1, free
        if memory >= max(_ACCESSES * operations, _OF_MEMORY * executed):
            each = executed / operations
            why = f"{plain(each)} instructions for each operation, {percent(memory / executed)} of them of memory"
            # Divisions and conversions stay, and what goes with them.
            each = executed / (operations + _number(counts, "special") + _number(counts, "conversion"))
            least, most = (max(1 - left / each, 0.0) for left in reversed(_OPTIMISED))
            yield _BUILD, Better(why, least * once_j, most * (once_j + timed_j), most * timed_j)
            return
    executions = (operations - _number(counts, f"{kind}_fma")) / (lanes if max(flops, scalar) < least else now)
    if flops < least and now > 1:
        if _tells_widths(counts, kind) and _STREAMS not in signs and memory >= _LOADS * executions:
            why = f"{plain(memory / executions)} loads and stores for each vector of arithmetic"
            least = memory / 2 / executed
            most = max(1 - 2 * executions / executed, least)
            yield _TILE, Better(why, least * once_j, most * (once_j + timed_j), most * timed_j)
        return
    share = min(flops / operations, 1.0)
    fewer = (1 - now / lanes) * share
    arithmetic = min(executions / executed, 1.0)
    widened_j = joules.get(f"{kind}_scalar", 0.0) + joules.get(f"{kind}_narrow", 0.0) * flops / (narrow or math.inf)
    how, why = _WIDEN, f"in vectors of {_NARROW_BITS} bits, not {_VECTOR_BITS}"
    if now == 1:
        stored = counts.get("global_write")
        is_sum = stored and stored.value is not None and stored.value * 8 < _NO_STORES * operations * int(kind[2:])
        beside = when(free < scalar, " and no recurrence")
        how, why = _VECTORISE, f"scalar{beside}, {lanes} fit a vector of {_VECTOR_BITS} bits"
        # A recurrence works on its own results: no sum of what is loaded, converted or divided.
        taken = _number(counts, "global_read") * 8 / int(kind[2:]) + _number(counts, "special")
        is_alone = is_sum and not is_product and taken + _number(counts, "conversion") < _NO_STORES * operations
        if is_alone or free < least:
            fused = min(_number(counts, f"{kind}_{part}") for part in ("add", "mul")) / executed
            if fused >= TENTH:
                # A chain waits for each result, and one instruction takes as long as each of the two did.
                in_time_j = timed_j + joules["core_active"] * (not waits)
                most_j = fused * (once_j + timed_j - in_time_j) + in_time_j / 2
                yield _FUSE, Better(f"{percent(fused)} of its instructions", 0.0, most_j, timed_j / 2)
            return
        if is_product:
            how = _MULTIPLIED
        elif is_sum:
            how = _SUM if _number(counts, "special") else _PRODUCT
    why = f"{percent(share)} of its {kind.upper()} arithmetic is {why}"
    most_j = fewer * (once_j + timed_j) + widened_j
    yield how, Better(why, fewer * arithmetic * once_j, most_j, fewer * timed_j)

"""The line Try of a report: of all changes that one can make, those that save most; and what to count where unknown.

A lever is something that one does: to clocks, to bytes, to types, to launches. An effect ("less time") is none, nor is
less of what the work needs (fewer multiplications of a product).
"""

import math
from collections.abc import Iterator

from eprof.base.labels import library_of
from eprof.base.optional import growth
from eprof.base.text import by_sign, phrase, when
from eprof.commands.report.advice import execution, loops, traffic, waiting
from eprof.commands.report.advice.between_kernels import after_the_start, fewer_gaps
from eprof.commands.report.advice.collecting import (
    how_to_count,
    how_to_count_longer,
    how_to_price,
    lacks_counts,
    program,
)
from eprof.commands.report.advice.execution import cheaper_kernels
from eprof.commands.report.advice.savings import MOSTLY, NEAR, TENTH, Try, time_told
from eprof.commands.report.trust import NEARLY_ALL, counted_alone, lacks_most, lacks_some
from eprof.commands.report.view import View
from eprof.logs.log import NOT_IN_TABLE
from eprof.profile import schema
from eprof.show.blocks import Point
from eprof.show.numbers import LITTLE, NARROW, percent

_RUN = "`eprof run "
_UNTOLD = " (what that saves was not counted)"


def worth_trying(view: View) -> list[str]:
    """A sentence for each change that is worth trying, with what it saves, the largest first."""
    return [_told(view, change) for change in _sorted(view) if _is_worth_it(view, change)]


def _is_worth_it(view: View, change: Try) -> bool:
    return change.is_worth_it(view.comes_again if view.saved_unit else view.everything)


def _told(view: View, change: Try) -> str:
    """A sentence on a change to try and what it saves, where logs tell joules or times."""
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
    if tells_little := loops.ended_at_its_start(view) or how_to_count_longer(view):
        return Point("Try", tells_little)
    changes = _sorted(view)
    is_worth_it = bool(changes) and _is_worth_it(view, changes[0])
    texts = [""]
    if is_worth_it:
        more = [other for other in changes[1:] if other.adds and _is_worth_it(view, other)]
        beside = [other for other in more if other.likely > changes[0].likely / 3]
        told = [changes[0], *beside[: changes[0].adds]]
        texts = [_told(view, change) for change in told]
    elif lacks_most(view) or not view.has_energy:
        texts += [f"{change.act}{_UNTOLD}" for change in changes if change.is_open][:1]
    if counted_alone(view):  # no energy tells what that saves
        texts += [f"{change.act}{_UNTOLD}" for change in traffic.coalesced(view)]
    if view.in_kernel:
        calls = f"`strace -c {program(view)}` counts system calls"
        how = "fewer and larger ones, memory that stays mapped"
        texts.insert(0, f"work less in the kernel ({view.in_kernel}: {calls}): {how}")
    texts.append(after_the_start(view, LITTLE))
    if not view.has_energy and view.costs is None:
        if not view.nouns.is_of_cpu:
            lacks = lacks_counts(view)
            saves_s = changes[0].likely if is_worth_it else 0.0
            texts.insert(0, when(is_worth_it or lacks, _where_to_begin(view, saves_s)))
            texts.append(when(lacks, how_to_count(view, is_worth_it)))
        texts.append(how_to_price(view))
    elif not (view.to_meter or view.is_modelled) and (
        lacks_some(view) or not view.has_energy or view.above.value is None
    ):
        rest = how_to_count(view, bool(texts[0]))
        is_told = _RUN in rest and any(_RUN in text for text in texts)
        texts.append(when(not is_told, rest))
        if view.above.value is None and not view.nouns.is_of_cpu:
            texts.insert(0, _where_to_begin(view, changes[0].likely if is_worth_it else 0.0))
    if any(texts):
        return Point("Try", "; ".join(filter(None, texts)))
    if not changes:
        return Point("Try", "nothing: no change that eprof knows saves energy here")
    return Point("Try", f"nothing: the best change saves {percent(changes[0].likely / view.whole)} ({changes[0].act})")


def _where_to_begin(view: View, saves_s: float) -> str:
    """What of several kernels takes most, "begin with NAME, 53 % of the time"; "" if it takes 30 % or less, or all.

    Instances of one template count together, as one source is changed for all. saves_s: what the best change saves; "",
    too, where a tenth of these kernels is less than that.
    """
    instances: dict[str, list[schema.Kernel]] = {}
    for kernel in view.kernels:
        label, name = view.label(kernel), kernel.name
        if label.endswith(">") and not library_of(name):  # of a template of the program itself
            name = label.partition("<")[0]
        instances.setdefault(name, []).append(kernel)
    taken = {name: sum(view.ranked(kernel).or_zero for kernel in alike) for name, alike in instances.items()}
    name = max(taken, key=taken.__getitem__, default="")
    share = taken.get(name, 0.0) / (view.whole or math.inf)
    if len(view.kernels) < 2 or share <= MOSTLY or TENTH * taken[name] < saves_s:
        return ""
    if view.is_of_a_second:
        return ""  # of kernels without a time nothing tells which takes most
    # Joules of which only those of constant power are known are of time.
    of = {"total": "time", "dram": "DRAM bytes"}.get(view.measure, view.measure)
    first = max(instances[name], key=lambda kernel: view.ranked(kernel).or_zero)
    if first.name == NOT_IN_TABLE:
        return f"give the whole table, which lacks {percent(share)} of the {of}"
    held = ((kernel.signs or {}).get("memory_bound", 0.0) * view.ranked(kernel).or_zero for kernel in instances[name])
    waits = sum(held) / taken[name]
    why = when(waits >= NEAR, f" (its memory unit works or waits {percent(waits)} of it: fewer bytes, narrower types)")
    if share > NEARLY_ALL and not why:
        return ""  # nobody would begin elsewhere
    if (number := len(instances[name])) > 1:
        return f"begin with the {number} instances of {name}, {percent(share)} of the {of}{why}"
    return f"begin with {view.label(first)}, {percent(share)} of the {of}{why}"


def _levers(view: View) -> Iterator[Try]:
    """Yields every change that eprof can think of for a report, in no order, with the J that it saves; else s."""
    if not view.everything:
        return
    is_told = view.above.value is not None and not counted_alone(view)
    rest = _BY_TIME * (view.above.value is None)
    for lever in (fewer_gaps, *_OF_LAUNCHES, *rest, *_OF_JOULES * is_told):
        yield from lever(view)


def _other_clocks(view: View) -> Iterator[Try]:
    """Yield the change to the clocks of lowest energy; none where times were modelled, or it may cost more."""
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
        time = time_told(growth(lowest.time_s, here.time_s))
        voltages = phrase(", core voltages {}", (clocks.voltages or "").partition(",")[0])
        ends = [share * view.everything for share in saves]
        yield Try(" and ".join(acts), ends[0], (ends[0], ends[-1]), f"{time}, modelled{voltages}")


_OF_LAUNCHES = (
    *(execution.longer_launches, execution.spared_kernels, execution.better_shapes),
    *(waiting.busier, traffic.as_fast_as_others),
)
# Those that save time, where joules are not known.
_BY_TIME = (
    traffic.coalesced,
    traffic.read_again,
    execution.half_as_wide,
    traffic.conflicts_alone,
    traffic.fewer_spills,
    waiting.less_waiting,
    traffic.less_uncounted,
)
_OF_JOULES = (
    *(_other_clocks, cheaper_kernels, loops.better_loops, loops.without_interpreter),
    *(execution.narrower_types, execution.fused, traffic.asked_for, traffic.read_again, traffic.fewer_bytes),
    *(traffic.less_uncounted, execution.fewer_instructions, traffic.fewer_conflicts, traffic.fewer_spills),
    *(waiting.less_waiting, loops.fewer_cycles, loops.fewer_misses, loops.fewer_calls, loops.fewer_divisions),
    *(loops.less_for_libraries, loops.more_cores),
)

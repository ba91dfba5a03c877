"""Hot spots: the kernels (or groups) that take most, a row each with its largest cause in words."""

import math
from collections.abc import Sequence
from functools import reduce
from operator import and_

from eprof.base.optional import mapped
from eprof.base.optional import ratio as divided
from eprof.base.text import counted, phrase, when
from eprof.base.vocabulary import CONSTANT, COUNTS, DATA, RANDOM
from eprof.commands.report.headline import NAMED, at_least, is_constant_alone, name_of, share_of
from eprof.commands.report.trust import counted_alone
from eprof.commands.report.view import FAMILY_OF, View, above_of, contenders, time_of
from eprof.logs.log import NOT_IN_TABLE
from eprof.profile import schema
from eprof.show.amounts import ASSUMED, MISSING, Amount, ratio
from eprof.show.blocks import Cell, Name, Quantity, Row, Share, Table, numbers, texts
from eprof.show.numbers import NARROW, percent, plain, quantity, span
from eprof.show.rooflines import share_reached

Entry = schema.Kernel | schema.Group
_FEWEST, _MOST = 3, 5
_HIDDEN = 200  # names of rows left out, which those of rows stay different from
_ENOUGH = 0.9  # of the energy, that the kernels shown take
_SPECK = 0.01  # of the energy: a kernel that takes less is not worth a row
WASTED = 1.2  # times the requested bytes, from which on they are the cause
AGAIN = 8.0  # bytes of L1 for each of DRAM, from which on a kernel mostly reads again what it has read
SHORT_S = 10e-6  # launches that take less than this wait for their start
_NO_WORK = 1e-3  # flops for each byte: fewer are not what it is moved for
MOSTLY_INTEGER = 30.0  # instructions for each flop, from which on arithmetic is not what a kernel is for
_MUCH = 2.0  # times the shortest launch: the mean of a kernel whose launches are mostly like that
_HOTTEST = 0.3  # of a function's energy, that its line with most has: worth naming it
_WAITS = 0.5  # of a function's cycles: what waits so long is told of it, and not how many instructions it has
REQUESTED = ("global_read", "global_write")


def requested_of(view: View, entry: Entry | schema.Profile) -> float | None:
    """The bytes that a kernel or group asked its caches for; None where reads are not known, or a lower bound."""
    both = view.summed(entry, REQUESTED)
    if not view.amount(entry, REQUESTED[0]).value or both.marks & MISSING:
        return None
    return both.value


CACHED = ("l1", "l2", "l3", "dram")  # the levels that serve them


def hotspots(view: View, most: int = _MOST, is_brief: bool = False) -> Table:
    """A report's table, on the first screen, of kernels or groups that take most, each with its largest cause in words.

    is_brief: a cause is a place alone, or a name without a reason.
    """
    entries: Sequence[Entry] = view.document.groups or view.kernels
    entries = sorted(entries, key=lambda entry: -view.ranked(entry).or_zero)
    shown = entries[: _number_shown(view, entries, most)]
    amounts = [view.ranked(entry) for entry in shown]
    everything = view.with_rest(view.ranked(view.document))
    # Marks that all rows have are said once. A headline with an interval tells what was not counted, where it matters;
    # without one, lower bounds are called so.
    common = reduce(and_, (amount.marks for amount in amounts), ~MISSING)
    if view.interval("total"):
        common |= MISSING
    is_ranked = not view.is_of_a_second or bool(view.above.value)  # of a second that nobody shared out, none takes most
    unit = view.unit
    measured_j = view.document.energy_j.measured
    still = {"J": view.document.idle_j, "s": view.document.still_s}.get(unit, 0.0)
    if len(entries) == 1 and unit != "J" and measured_j is not None:  # they are the only row's
        unit, amounts, everything, still = "J", [Amount(measured_j)], Amount(measured_j), 0.0
    causes = [_cause_text(view, entry, is_brief) for entry in shown]
    # A cause may tell them already: "12 launches of 1.76 s".
    tells_calls = any(
        entry.launches != 1 and f"{entry.launches:,} {view.nouns.launches}" not in cause
        for entry, cause in zip(shown, causes, strict=True)
    )
    rows = []
    for entry, amount, cause in zip(shown, amounts, causes, strict=True):
        name = entry.name
        if isinstance(entry, schema.Kernel):
            name = view.label(entry) + phrase(", {}", view.where(entry))
        cells: list[Cell] = [
            Name(name, entry.name, place=view.place_of(entry)),
            *[f"{entry.launches:,}×"] * tells_calls,
            *[Quantity(amount.value, unit, amount.marks & ~common & ~ASSUMED)] * is_ranked,
            *[Share(ratio(amount, everything).value)] * is_ranked,
            cause or when(unit == "" and amount.value, "instructions"),
        ]
        rows.append(Row(cells))
    if still:
        # The time, or energy, in which no kernel runs, by a trace or by calls of CUDA, as the headline says.
        cells = [f"(no {view.nouns.kernel} runs)", *[""] * tells_calls, Quantity(still, unit)]
        cells.append(Share(ratio(Amount(still), everything).value))
        rows.append(Row([*cells, f"of all {quantity(everything.or_zero, unit)}"]))
        rows.sort(key=lambda row: -next(cell.value or 0.0 for cell in row.cells if isinstance(cell, Share)))
    amount_label = {"total": "energy", "dram": "DRAM"}.get(view.measure, view.measure)
    why = when(view.has_energy, "largest cause")
    counts = numbers(*[view.nouns.launches] * tells_calls, *[amount_label, "share"] * is_ranked)
    noun = "group" if view.document.groups else view.nouns.kernel
    left_out, hidden = "", []
    if rest := entries[len(shown) :]:
        known = [amount.value for amount in map(view.ranked, rest) if amount.value is not None]
        share = mapped(percent, divided(sum(known), everything.value)) if known else "not known"
        left_out = f"and {counted(len(rest), f'more {noun}')}{phrase(', {}', share or '') * is_ranked}"
        hidden = [view.label(entry) if isinstance(entry, schema.Kernel) else entry.name for entry in rest[:_HIDDEN]]
    return Table([*texts(noun), *counts, *texts(why)], rows, left_out=left_out, hidden=hidden, headless=True)


def _number_shown(view: View, entries: Sequence[Entry], most: int) -> int:
    """How many kernels or groups the first screen shows: for nine tenths of all, three at least and `most` at most.

    What takes less than a hundredth is not among them, but alone.
    """
    whole_amount = view.whole
    reached_so_far = whole_amount - view.ranked(view.document).or_zero
    for number, entry in enumerate(entries[:most], start=1):
        amount = view.ranked(entry).or_zero
        if number > 1 and amount < _SPECK * whole_amount:
            return number - 1
        reached_so_far += amount
        if number >= _FEWEST and reached_so_far >= _ENOUGH * whole_amount:
            return number
    return most


def _cause_text(view: View, entry: Entry, is_brief: bool) -> str:
    """The largest cause of a kernel or group, behind its hottest line, or the caller of a library's function."""
    place = ""
    if isinstance(entry, schema.Kernel) and entry.callers:
        place = view.called_by(entry)
    elif isinstance(entry, schema.Kernel) and entry.lines:
        hottest = entry.lines[0]
        is_hot = (hottest.above_constant_j or 0.0) >= _HOTTEST * above_of(entry).or_zero
        place = when(is_hot, hottest.place)
    cause = _cause(view, entry)
    if is_brief:
        return place or cause.partition(": ")[0]
    return ", ".join(filter(None, [place, cause]))


def _cause(view: View, entry: Entry) -> str:
    """The largest cause of a kernel's or group's energy, its share and the reason; launches if causes are unknown."""
    if is_constant_alone(view):
        return _calls(view, entry)
    causes = view.causes_of(entry)
    if causes is None:
        return when(not view.above.value, _calls(view, entry))
    if alone := counted_alone(view, entry):
        return f"little but {view.in_prose(alone)} was counted"
    largest = causes.parts[0]
    if causes.largest == "open" and len(leading := contenders(causes)) > 1:
        # Two of them with their shares: a third is the smaller by far.
        return " or ".join(f"{name_of(view, part)} {percent(part.share)}" for part in leading[:2])
    named = f"{name_of(view, largest)} {share_of(largest)}"
    if len(largest.groups) > NAMED:
        # Of several groups, the one that has half of their part.
        known = view.groups_of(entry)
        joules = {group: known.get(group, Amount(None)).or_zero for group in largest.groups}
        most = max(joules, key=joules.__getitem__)
        share = largest.share * joules[most] / (sum(joules.values()) or math.inf)
        named += when(share >= largest.share / 2, f" ({view.in_prose(most)} {percent(share)})")
    if causes.largest == "probable":
        return f"probably {named}"
    if len(largest.groups) > 1:
        return named
    group = largest.groups[0]
    if group == CONSTANT:
        why = _why_constant(view, entry)
    elif FAMILY_OF.get(group) == DATA:
        why = _why_bytes(view, entry, group)
    else:
        why = _why_instructions(view, entry, group)
    of_all = view.causes_of(view.document)
    if of_all is not None and len(of_all.parts) == 1:  # which the headline names
        return why
    return f"{named}{phrase(': {}', why)}"


def _calls(view: View, entry: Entry) -> str:
    """A kernel's launches and their times: "3,200 launches of 12.1 µs", or "of 5.00 to 20.0 µs"; empty without time."""
    seconds = time_of(entry).value
    launches = counted(entry.launches, view.nouns.launch, view.nouns.launches)
    if not seconds or view.nouns.is_of_cpu:
        return ""
    if entry.name == NOT_IN_TABLE:
        return f"{view.nouns.launches} not told"
    if view.is_of_a_second:
        return launches
    if "missing" in entry.time_marks:
        return f"{launches}, not all with a time"
    each = quantity(seconds / entry.launches, "s")
    if isinstance(entry, schema.Kernel) and entry.launch_s:
        least_s, most_s = entry.launch_s
        few = f"{each} (to {quantity(most_s, 's')})"  # most are about as short as the shortest
        each = when(seconds < _MUCH * least_s * entry.launches, few) or span(least_s, most_s, "s")
    return f"{launches} of {each}"


def _why_constant(view: View, entry: Entry) -> str:
    """Why constant power takes most of a kernel: short launches, or its share of the roofline's speed; "": unknown."""
    each_s = view.each_s(entry)
    if 0 < each_s < SHORT_S and "missing" not in entry.time_marks:
        each = "one " + view.nouns.launch if entry.launches == 1 else view.nouns.launches
        return f"{each} of {quantity(each_s, 's')}"
    place = view.place_of(entry)
    limits = view.document.limits
    if not limits or place is None:
        return ""
    again = view.times_from_l1(entry)
    l1 = when(again >= AGAIN, f", L1 {plain(again)}× DRAM")
    return phrase(f"{{}} of roofline{l1}", share_reached(limits.kernels[place], "speed_share"))


def _why_bytes(view: View, entry: Entry, group: str) -> str:
    """Why bytes take most of a kernel's energy: more moved than requested, or little done with each; else how many."""
    moved = view.summed(entry, _words_of(entry, group))
    if not moved.value:
        return ""
    requested = requested_of(view, entry)
    if group in CACHED and requested and moved.value >= WASTED * requested:
        return f"{plain(moved.value / requested)} times the bytes requested"
    size = at_least(moved, "B")
    intensity = entry.intensity_flop_per_byte
    if group != "dram" or intensity is None or intensity < _NO_WORK:
        return size
    return f"{size}, {plain(intensity)}{NARROW}flop/B"


def _why_instructions(view: View, entry: Entry, group: str) -> str:
    """The instructions of a group: how many, or how many a flop; if most cycles wait for caches, their share; or ""."""
    words = [word for word in _words_of(entry, group) if COUNTS[word].unit != "cycle"]
    executed = view.summed(entry, words)
    if "retired" in words:
        executed = view.instructions(entry)
    if not words or not executed.value:
        return ""
    if (waits := view.in_program * view.waits(entry.counts)) >= _WAITS:
        return f"up to {percent(waits)} waits for caches"
    flops = view.flops(entry)
    if group in ("int", "other") and flops.value and executed.value < MOSTLY_INTEGER * flops.value:
        return f"{plain(executed.value / flops.value)} instructions a flop"
    unit = COUNTS[words[0]].symbol
    whose = when(words == ["warp_issue"], " warp")
    return at_least(executed, unit) + when(not unit, f"{whose} instructions")


def _words_of(entry: Entry, group: str) -> list[str]:
    """The counts of a group that cost a kernel energy, by name; all of the group if none does; accesses left out."""
    words = [name for name in entry.counts if COUNTS[name].group == group and name != RANDOM]
    return [name for name in words if entry.counts[name].energy_j] or words

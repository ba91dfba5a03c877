"""A report's line Trust: how far off joules may be, whose prices they have, what was not counted, a meter's split."""

import math
from collections.abc import Iterator, Mapping
from itertools import product

from msgspec.structs import replace

from eprof.base.gpus import DataSheet, Traits, capability_of_label, data_sheet, sheets_with
from eprof.base.text import bracketed, capital, few, listed, pattern, phrase, uncapital, when
from eprof.base.vocabulary import CONSTANT, GROUPS, SOME_FLOPS
from eprof.collect.directory import OTHER_CODE
from eprof.commands.report.view import (
    OF_CYCLES,
    PAST_L2,
    Entry,
    View,
    Word,
    above_of,
    by_time_of,
    energy_of,
    is_of_library,
)
from eprof.costs.estimate import sm_cycles_per_s
from eprof.logs.log import CUT_NAME, CUT_OFF, NOT_USED, ON_TOTALS, UNUSED
from eprof.profile import schema
from eprof.profile.to_meter import BY_TIME
from eprof.show import cost_words
from eprof.show.amounts import ASSUMED, ESTIMATED, MISSING, SIMULATED
from eprof.show.blocks import Point
from eprof.show.intervals import known
from eprof.show.numbers import percent, percent_span, plain, quantity, signed_percent, whole

_ALMOST_ALL = 0.95  # of what was counted, that one group of counts has
NEARLY_ALL = 0.9  # of what was counted: constant power, beside work whose counts nothing bounds
_SAME = 1.01  # times as much, with rounding
_SLACK = 1.1  # times what a board may draw, or do at its peaks: a time or a table may be off by that
_OF_TIME = "The time of "
LEFT_OUT = "Left out: "
_BRACKETED = pattern(r"\(([^()]+)\)")
_OF_COUNTS = ("Not counted here", "No instruction and no byte", NOT_USED)
_PRICES = {
    "measured": "measured on this {processor}",
    "fitted": "fitted to measured power",
    "published": "published, not measured here",
    "estimated": "from the data sheet, not measured (with a meter: --energy 12J)",
}


def trust(view: View) -> Point:
    """A report's point "Trust": how far off joules are, whose prices they have, what is missing, whence the time."""
    texts = [_verdict(view)]
    # What readers say of all numbers; of many logs that look cut off one sentence, which names a few.
    for note in view.document.warnings:
        _, is_of_totals, text = note.partition(f": {ON_TOTALS}")
        if is_of_totals and not note.endswith(CUT_OFF):
            texts.append(capital(f"{text.removesuffix('.')}."))
    if names := _cut_off(view):
        logs = "The log looks"
        if len(view.document.inputs) > 1:
            logs = f"{few(names, _SHORT)} look{when(len(names) == 1, 's')}"
        texts.append(f"{logs} cut off, so totals are lower bounds.")
    if view.at_once > 1:
        texts.append(f"{view.at_once:.3g} {view.nouns.kernels} ran at a time on average, and share constant power.")
    texts += [
        *_prices(view),
        phrase(f"{capital(view.cores)}: taken to be always active ({{}}).", always_active(view)),
        _lacking(view),
        *in_part(view),
        *_times(view),
    ]
    # Libraries that take much and ran other code under Valgrind than in the timed run.
    note = next((warning for warning in view.document.warnings if warning.startswith(OTHER_CODE)), "")
    compiled = [kernel for kernel in view.kernels if is_of_library(kernel) and not kernel.name.endswith(", C library")]
    share = sum(view.ranked(kernel).or_zero for kernel in compiled) / (view.whole or 1.0)
    if note and share >= _FEW:
        libraries = listed([*dict.fromkeys(kernel.name.rpartition(", ")[2] for kernel in compiled[:_SHORT])])
        lacks = note.removeprefix(OTHER_CODE).partition(", and this one")[0]
        texts.append(f"{libraries} ({percent(share)}) ran other code than in the timed run: {OTHER_CODE}{lacks}.")
    return Point("Trust", " ".join(filter(None, texts)))


def _cut_off(view: View) -> list[str]:
    """The names of a report's logs that look cut off, as warnings say."""
    return [note.partition(": ")[0] for note in view.document.warnings if note.endswith(CUT_OFF)]


def _verdict(view: View) -> str:
    """Trust in one word with the error: "good (new kernels 8.6 % off)."; empty without energy."""
    if view.costs is None or not view.has_energy:
        return ""
    if view.to_meter is not None:
        is_split_known = view.to_meter.own and view.to_meter.basis != "estimated" and not any(_lost_groups(view))
        if is_split_known and not view.to_meter.idle_j and not _cut_off(view):
            return "good."
        return "total good, its parts rough."
    if why := _impossible(view):
        return f"rough: {why}."
    if lacks_some(view):
        # How far off a total is says nothing where a part of it is not known at all.
        is_open = view.energy("total").lower and known(view.interval("total")) is None
        return "rough" + when(is_open, f", a lower bound{lacking_briefly(view)}") + "."
    # The mean errors of fits on kernels that these had not seen.
    errors = [
        costs.fit.get("error_percent", {}) for costs in view.document.prices if costs.fit and costs.gpu_match == "own"
    ]
    new = [each["leave_one_benchmark_out"] for each in errors if each.get("leave_one_benchmark_out") is not None]
    if len(new) == len(view.document.prices):
        off = ", ".join(
            dict.fromkeys(f"new {view.nouns.kernels} {percent(error / 100)} off on average" for error in new)
        )
        is_good = not view.is_modelled and not _cut_off(view)
        return f"{when(is_good, 'good') or 'rough'} ({off})."
    total, pair = view.energy("total").value, known(view.interval("total"))
    if not total or pair is None or view.is_modelled or view.has_prices_of_another_cpu:
        return "rough (error unknown)."
    if pair[1] < total:
        return "rough (the prices make more than the board can draw)."
    return f"rough ({signed_percent(pair[0] / total - 1)} to {signed_percent(pair[1] / total - 1)})."


def _impossible(view: View) -> str:
    """Why times, counts and prices cannot all be right, in words: too much power, or too much speed; else empty."""
    kept_j = made_j = 0.0
    for kernel in view.kernels:
        work_j = above_of(kernel).or_zero
        kept_j += work_j
        made_j += work_j / (kernel.held or 1.0)
    total = view.energy("total").or_zero
    power = (total + made_j - kept_j) / (total or 1.0)
    if power > _SLACK:
        return f"these times would take {plain(power)} times the power that the {view.nouns.board} may draw"
    speeds = view.speed_shares
    is_own = all(costs.gpu_match != "other" for costs in view.document.prices)
    if is_own and max(speeds, default=0.0) > _SLACK:
        fastest = speeds.index(max(speeds))
        name = view.label(view.kernels[fastest])
        return f"{name} would be {plain(speeds[fastest])} times as fast as the roofline"
    return ""


def notes(view: View, tried: str = "") -> list[str]:
    """The notes of a report's first screen: warnings that bear on every number, and say more than its other lines.

    What a log's reader says of one log ("FILE: ...") is for -v; standard error tells which logs were left out. tried:
    the line `Try`, after which a note's remedies are not repeated.
    """
    prices = view.document.prices
    above = [note for costs in prices for note in costs.notes] if prices else view.document.warnings[:1]
    files = {log.path.rpartition("/")[2] for log in view.document.inputs}
    others = [note for note in view.document.warnings if note not in above and note.partition(":")[0] not in files]
    # Of nothing, Trust says that it has no time either; what no use is known of bears on no number.
    said = [LEFT_OUT, *_OF_COUNTS, capital(UNUSED) if view.has_energy else _OF_TIME]
    if prices and all(costs.gpu_match == "own" for costs in prices):
        said.append(CUT_NAME)  # enough of it was told for its prices
    others = [note for note in others if not note.startswith(tuple(said)) and "has no price for" not in note]
    remedies = {note: _BRACKETED.findall(note) for note in others}
    return [note for note, told in remedies.items() if not told or any(remedy not in tried for remedy in told)]


def _prices(view: View) -> Iterator[str]:
    """Yields sentences of Trust: on the prices of each table, or on the meter; without prices, the first warning."""
    if view.costs is None:
        # What else it says are ways to joules, of which Try has the best.
        yield from (warning.partition(". ")[0].rstrip(".") + "." for warning in view.document.warnings[:1])
    elif view.to_meter is not None and view.has_energy:
        yield metered_error(view, view.to_meter)
    elif view.has_energy:
        yield from (_of_table(view, costs) for costs in view.document.prices)


def _without_base(view: View) -> Traits:
    """What the log tells of its board without the clock of its cores, which is its base only if ncu locked it.

    Nor with a peak of DRAM that was taken from the data sheet of the board which that clock told.
    """
    told = replace(view.document.device.told or Traits(), base_mhz=None)
    notes = [way.note or "" for word in view.words.values() if word.count.group == "dram" for way in word.how]
    return replace(told, dram_gb_per_s=None) if any("data sheet" in note for note in notes) else told


def _of_table(view: View, costs: schema.TableInForce) -> str:
    """The sentence of Trust on one cost table: whose prices it has, at which clocks, how they came to be."""
    basis = _PRICES.get(costs.basis or "", "without a stated basis").format(processor=view.nouns.processor)
    if costs.basis == "estimated" and (why := costs.constant_why or "").startswith("the mean of"):
        basis = f"{why}, {basis.replace('the data sheet', 'their data sheets')}"
    device = view.document.device.name
    is_unnamed = device is None or capability_of_label(device) is not None
    if costs.basis == "estimated" and is_unnamed and data_sheet(costs.device):
        first, *others = sheets_with(view.document.device.capability or "", _without_base(view)) or [DataSheet("")]
        is_one = all(replace(sheet, name=first.name) == first for sheet in others)
        which = when(is_one, "the one board that it can be") or "probably the board, by the clock of its cores"
        basis = basis.replace("the data sheet", f"the data sheet of {costs.device}, {which}")
    if costs.gpu_match == "similar" and is_unnamed:
        basis = f"as the log names no board, {basis}"
    elif costs.gpu_match == "similar":
        basis = f"of the similar {costs.device.partition(' (')[0].removeprefix('a ')}, {basis}"
    facts = [basis]
    if costs.name != costs.basis:
        is_assumed = costs.setting["core_mhz"] is not None and costs.setting_from == "the table's default"
        facts = [cost_words.at_setting(costs) + " (assumed)" * is_assumed, *facts]
    if costs.gpu_match == "other":
        table = cost_words.at_setting(costs)
        if view.nouns.is_of_cpu:
            table = costs.device  # in full, for it may be old
        alike = "so joules hold if the two are alike"
        if (interval := view.document.interval_j) and interval.apart:
            alike = f"and joules may be {interval.apart:g} times off"
        facts = [table, f"another {view.nouns.processor}'s, {alike}"]
    spans = ""
    if (interval := view.document.interval_j) and interval.share >= 1:
        spans = (costs.interval_is or "").partition(";")[0]
    whose = cost_words.of_gpu(costs)
    is_default = costs.setting_from == "the table's default"
    lines = when(is_default and any(view.speed_shares), " and roofline")
    return f"Prices{lines}{whose}: {', '.join(filter(None, facts))}{phrase('; ranges span {}', spans)}."


def _times(view: View) -> Iterator[str]:
    """Yields the sentence of Trust on where times are from: a model, --time, a bare run, or a model of its cycles."""
    if view.is_modelled:
        # A count that is not whole, or rests on an assumption, is not exact.
        is_exact = not any(word.value.marks & (MISSING | ASSUMED) for word in view.words.values())
        exact = "exact for the simulator" if is_exact else "simulated"
        yield f"Counts: {exact}. Time: a model."
    elif view.time.marks & SIMULATED:
        yield f"Time: given; how the {view.nouns.kernels} share it is a model."
    elif view.document.time_from:
        told = view.document.time_from.partition(" (")[0].partition(", which agree")[0]
        if OF_CYCLES in told:
            told = f"a bare run's{told.partition(_BARE)[2]}" if _BARE in told else told
            told = told.partition(": ")[0]  # -v has the formula
            told += phrase("; in the kernel, and shared out likewise: {}", view.in_kernel)
            # How far the model tells which function takes most: caches that fetch ahead make misses cheaper than it
            # has them, pages and sets that are full make them dearer.
            executed = [view.instructions(kernel).or_zero for kernel in view.kernels]
            shares, others = [], dict.fromkeys(range(1, len(executed)), 0.0)
            for times in product(_TIMES_A_MISS, _TIMES_A_MISS):
                waited = (view.waited_cycles(kernel.counts, times) for kernel in view.kernels)
                cycles = [own + waits for own, waits in zip(executed, waited, strict=True)]
                shares.append(cycles[0] / (sum(cycles) or 1.0))
                others = {place: max(most, cycles[place] - cycles[0]) for place, most in others.items()}
            if max(shares) - min(shares) >= _FEW:
                larger = [view.label(view.kernels[place]) for place, most in others.items() if most > 0]
                name, ends = view.label(view.kernels[0]), percent_span(min(shares), max(shares))
                more = phrase(", or {} more", when(larger, few(larger, _SHORT)))
                told += f"; with misses a quarter as dear, or four times, {name} {ends}{more}"
        yield f"Time: {told}."
    elif locked := locked_clock(view):
        yield f"Time: at {locked}: free runs are faster."


def locked_clock(view: View) -> str:
    """The clock at which ncu locked cores, if far below their top: "760 MHz, where ncu locks cores ..."; or ""."""
    device, tables = view.document.device, view.document.prices
    base_mhz = device.told.base_mhz if device.told else None
    names = [device.name or "", *(costs.device for costs in tables if costs.gpu_match == "own")]
    sheet = next((sheet for sheet in map(data_sheet, names) if sheet and sheet.sms), None)
    if sheet is None or base_mhz is None or not view.time.marks & ESTIMATED:
        return ""
    share = base_mhz * 1e6 * (sheet.sms or 0) / (sm_cycles_per_s(sheet.name) or math.inf)
    return when(0 < share < _LOCKED, f"{base_mhz:.0f} MHz, where ncu locks cores ({percent(share)} of their top)")


# In the words on where a time is from: of a run without a profiler.
_BARE = " s of the program, run without a profiler"
_TIMES_A_MISS = 0.25, 1.0, 4.0  # as callgrind has it, that a miss may cost
_LOCKED = 0.8  # of the top clock: a lower one is worth a word
_NAMED = 3
_PART = "part of it may be"  # how such a note on a count begins
_SHORT = 2  # things that the headline has room for
_LITTLE = 0.03  # of the total: a group that can take less lacks nothing that matters
_ANY, _FEW, _MOST = 0.01, 0.1, 0.5


def _uncounted_share(view: View) -> float:
    """The most that uncounted work can take, as a share (0 to 1) of all energy with it; 1 where nothing bounds it."""
    total = view.energy("total").or_zero
    bounds = _bounds(view)
    if bounds is None:
        return float(view.energy("total").lower)
    most = bounds.get("total", 0.0)
    if most is None:
        return 1.0
    return most / (total + most or 1.0)


def always_active(view: View) -> str:
    """The energy of multiprocessors assumed always active, as no counter tells, in words: "1.20 J"; empty if little."""
    assumed_j = 0.0
    for kernel in view.kernels:
        running = kernel.counts.get("sm_active_cycle")
        if running and "assumed" in running.marks and "sm_active" not in (kernel.signs or {}):
            assumed_j += running.energy_j or 0.0
    return when(assumed_j > _FEW * view.energy("total").or_zero, quantity(assumed_j, view.energy_unit))


def counted_alone(view: View, entry: Entry | None = None) -> str:
    """The group of counts with nearly all joules, where neither time nor a bound tells of the rest; else empty.

    entry: a kernel or group, of which more may have been counted than of others; None: all kernels together.
    """
    total, ends = view.energy("total"), view.interval("total")
    if not total.value or view.to_meter or view.is_above or view.energy(CONSTANT).value:
        return ""
    is_open, whole_j = total.lower and known(ends) is None, energy_of(entry or view.document, "total").or_zero
    groups = view.groups if entry is None else view.groups_of(entry)
    alone = [group for group, amount in groups.items() if amount.or_zero > _ALMOST_ALL * whole_j]
    return next((group for group in alone if is_open), "")


def is_mostly_uncounted(view: View) -> bool:
    """Whether constant power is the largest part of what was counted, and more may not have been counted."""
    causes = view.causes_of(view.document)
    if view.to_meter or view.is_modelled or causes is None or not lacks_most(view):
        return False
    least = 0.0 if view.document.interval_j else NEARLY_ALL
    return causes.parts[0].groups == [CONSTANT] and causes.parts[0].share > least


def lacks_any(view: View) -> bool:
    """Whether what was not counted can take a hundredth of all energy or more: as much as shares are told to."""
    return _uncounted_share(view) > _ANY


def lacks_some(view: View) -> bool:
    """Whether what was not counted can take a tenth of all energy or more."""
    return _uncounted_share(view) > _FEW


def lacks_most(view: View) -> bool:
    """Whether what was not counted can take more than what was."""
    return _uncounted_share(view) > _MOST


def lacking_briefly(view: View) -> str:
    """The words " without host memory" for up to two groups that a total lacks; empty for none, or more."""
    wholly, partly = _lost_groups(view)
    lost = wholly + [f"a part of {name}" for name in partly]
    return when(len(lost) <= _SHORT, phrase(" without {}", " and ".join(lost)))


def _lacking(view: View) -> str:
    """A sentence of Trust on what was not counted: "Not counted: L2 (at most 1.20 J), FP64, and 3 more."; or ""."""
    bounds = _bounds(view)
    wholly, partly = _lost_groups(view)
    if bounds is None and lacks_some(view) and view.to_meter is None and lacking_briefly(view):
        return ""  # the verdict says it
    if bounds is None:
        unpriced = _unpriced(view)
        uncounted = [name for name in wholly if name not in unpriced]
        uncounted += [f"part of {name}" for name in partly if name not in unpriced]
        return _by_reason({"Not counted": uncounted, "no price": unpriced})
    if not lacks_some(view):
        return ""
    if view.above.value is None:
        has_words = any(word.value.value for word in view.words.values())  # no price asks for them
        if view.time.value is None:
            return f"Neither time nor work{' that has a price' * has_words} was counted."
        unused = (note for note in view.document.warnings if UNUSED in note.lower() or note.startswith(NOT_USED))
        is_used = not has_words and not any(unused)
        if view.is_of_a_second:
            return "No work was counted."
        return when(is_used, "Nothing but time was counted.") or "Of what was counted, only time was used."
    total = view.energy("total").or_zero
    capped = bounds.get("total")
    # The largest first; those that nothing bounds but the board, which then all have the same room, before them.
    groups = [group for group in bounds if group != "total"]
    ordered = sorted(groups, key=lambda group: (bounds[group] is not None, -(bounds[group] or 0.0)))
    unpriced = _unpriced(view)
    # DRAM's joules if all bytes past a CPU's L2 reached it: less where L3 had them, more where stores pass by.
    passed, price, past_l2 = view.summed(view.document, PAST_L2).value, view.charges.get("dram_read"), ""
    if passed and price:
        past_l2 = f"{quantity(passed * price.pj * 1e-12, 'J')} if all {quantity(passed, 'B')} past L2 reach it"
    missing: dict[str, list[str]] = {"Not counted": [], "no price": []}
    shown = [group for group in ordered if (bound := bounds[group]) is None or bound >= _LITTLE * total]
    is_told = capped and len(shown) == 1  # of all together
    for group in shown:
        most = bounds[group]
        is_open = most is None or capped is not None and most >= capped
        name = _lost_name(view, group)
        is_rest = _is_rest(view, group)
        joules = [
            when(not (is_open or is_told), quantity(most or 0.0, view.energy_unit)),
            when(group == "dram" and not is_rest, past_l2),
        ]
        names = missing["no price" if name in unpriced else "Not counted"]
        names.append(when(is_rest, "the rest of ") + name + bracketed("; ".join(filter(None, joules))))
    together = ""
    if capped:
        why = ""
        parts_j = [bounds[group] for group in groups]
        is_cut = None in parts_j or sum(filter(None, parts_j)) > _SAME * capped
        if is_cut and view.document.interval_j and view.document.interval_j.limit_w:
            number = view.document.interval_j.sockets
            boards = when(number, f"{number} {view.nouns.board}s") or f"the {view.nouns.board}"
            if not (is_mostly_uncounted(view) and known(view.interval("total"))):  # else the headline tells it
                why = f" (what {boards} may draw{beyond_the_sheet(view)})"
        elif is_cut and None not in parts_j:
            why = " (they share the cycles)"
        limit = f"at most {quantity(capped, view.energy_unit)}{why}"
        together = f", {when(sum(map(len, missing.values())) > 1, 'together ')}{limit}"
    return _by_reason(missing, together)


def in_part(view: View) -> Iterator[str]:
    """Yields sentences of Trust on groups of which another unit may have a part, as notes on their counting say."""
    told = {
        f"{capital(view.in_prose(word.count.group))}: {note.partition(', which')[0]}."
        for word in view.words.values()
        for note in (derivation.note or "" for derivation in word.how)
        if word.value.value and note.startswith(_PART)
    }
    yield from sorted(told)


def _by_reason(missing: Mapping[str, list[str]], together: str = "") -> str:
    """A sentence on what is missing, by reason: "Not counted: L2; no price: tensor cores."; empty for nothing."""
    first, *others = [(reason, few(names, _NAMED)) for reason, names in missing.items() if names] or [("", "")]
    texts = [f"{first[0]}{together}: {first[1]}", *(f"{reason}: {names}" for reason, names in others)]
    return when(first[1], capital("; ".join(texts)) + ".")


def beyond_the_sheet(view: View) -> str:
    """The words ", 1.25 times its data sheet's" on the power that a board may draw; empty where it keeps to that."""
    sheet = data_sheet(view.document.device.name or "")
    beyond = sheet.beyond_power if sheet else 1.0
    return when(beyond > 1, f", {beyond:g} times its data sheet's")


def _bounds(view: View) -> dict[str, float | None] | None:
    """Group of counts, or "total" -> the most J of what was not counted (None: no bound); None without intervals."""
    if not view.document.interval_j:
        return None
    return view.document.interval_j.uncounted


def _lost_groups(view: View) -> tuple[list[str], list[str]]:
    """(names of groups of counts whose energy is wholly unknown, names of those of which a part is unknown)."""
    if view.costs is None:
        return [], []
    lost = {word.count.group for word in view.words.values() if _lacks(view, word)}
    wholly = [_lost_name(view, group) for group in GROUPS if group in lost and not view.joules_of(group)]
    partly = [_lost_name(view, group) for group in GROUPS if group in lost and view.joules_of(group)]
    constant = view.energy(CONSTANT)
    if constant.value is None:
        wholly.insert(0, "constant power (no time)")
    elif constant.lower:
        partly.insert(0, "constant power")
    return wholly, partly


def _unpriced(view: View) -> list[str]:
    """The names of groups of which all that is lacking was counted: what it lacks is a price; none without a table."""
    if view.costs is None:
        return []
    lacking = [word for word in view.words.values() if _lacks(view, word)]
    # A sum over kernels that have none of what has no price is 0 J, and so is one of what was hardly counted.
    uncounted = {
        word.count.group
        for word in lacking
        if not word.value.value or word.energy.value or word.count.name in view.charges
    }
    return [
        _lost_name(view, group)
        for group in dict.fromkeys(word.count.group for word in lacking)
        if group not in uncounted
    ]


def _lacks(view: View, word: Word) -> bool:
    """Whether some of a count's energy is not known; where a meter gave the total, whether some was not counted."""
    charge = view.charges.get(word.count.name)
    if charge is not None and not charge.pays:
        return False
    marks = word.energy.marks
    if view.to_meter is not None and word.energy.value:
        marks = word.value.marks
    return bool(marks & MISSING)


def _is_rest(view: View, group: str) -> bool:
    """Whether a group lacks only a rest: some of all that lacks was counted, more than other counts tell of it."""
    if group == CONSTANT:
        return view.energy(CONSTANT).value is not None
    lacking = [word for word in view.words.values() if word.count.group == group and _lacks(view, word)]
    notes = [each.note or "" for word in lacking for each in word.how]
    are_counted = all(word.energy.value for word in lacking) and not any(note.startswith("at least") for note in notes)
    return bool(view.joules_of(group)) and (are_counted or _lost_name(view, group) == view.in_prose(group))


def _lost_name(view: View, group: str) -> str:
    """The name of a lacking group in prose, or its one or two lacking counts if others of it were counted.

    Beside work on tensor cores, missing FP16 is that of other instructions. Counts of only some flops are not named
    where others lack.
    """
    words = {name: word for name, word in view.words.items() if word.count.group == group}
    if any(_lacks(view, word) for name, word in words.items() if name not in SOME_FLOPS):
        words = {name: word for name, word in words.items() if name not in SOME_FLOPS}
    lacking = [word for word in words.values() if _lacks(view, word)]
    is_partly = any(word.value.value is not None for word in words.values() if word not in lacking)
    if is_partly and 0 < len(lacking) <= 2:
        return ", ".join(uncapital(word.count.label) for word in lacking)
    name = view.in_prose(group)
    if group == "fp16" and view.joules_of("tensor"):
        return f"{name} outside tensor cores"
    return name


_ByBoth = tuple[schema.Kernel, float, float]


def metered_split(view: View) -> Iterator[str]:
    """Sentences on how metered joules were split over kernels, by counts or by time alone; none without a meter."""
    if view.to_meter is None:
        return
    to_meter = view.to_meter
    idle = ""
    if to_meter.idle_j:
        idle = f", {quantity(to_meter.idle_j, 'J')} of it idle for {quantity(to_meter.idle_s or 0, 's')}"
    metered = f"{quantity(to_meter.metered_j, 'J')} were metered ({to_meter.source}){idle}."
    if is_by_time(view):
        yield f"{metered} They are split by time alone."
        return
    yield f"{metered} They are split by counts: {_shape(view, to_meter)} times {plain(to_meter.factor)}."
    if len(view.kernels) == 1:
        return
    # What each kernel would take by time alone, and whether the difference is certain.
    kernels, known = view.nouns.kernels, f"a factor of {to_meter.within:g}"
    apart = _apart(view, to_meter.within)
    if not apart:
        yield f"Time alone would say the same of every {view.nouns.kernel}, as far as the split is known (to {known})."
        return
    kernel, by_counts, by_time = apart[0]
    of_all = f"{whole(len(view.kernels) - len(apart))} of {whole(len(view.kernels))} {kernels}"
    other = f"{quantity(by_time, 'J')} instead of {quantity(by_counts, 'J')}"
    yield (
        f"By time alone {view.label(kernel)} would take {other}; for {of_all} the two differ by less than the split is "
        f"known to, {known}."
    )


def is_by_time(view: View) -> bool:
    """Whether metered energy was split by time alone, because nothing that was counted has a price."""
    return view.to_meter is not None and view.to_meter.shape == BY_TIME


def metered_split_in_short(view: View) -> str:
    """Two sentences on how metered energy was split, and the kernel that time alone changes most; empty if not so."""
    if view.to_meter is None or is_by_time(view):
        return ""
    split = f"Split by {_shape(view, view.to_meter)} times {plain(view.to_meter.factor)}."
    apart = _apart(view, view.to_meter.within)
    if not apart:
        return f"{split} By time alone: much the same."
    kernel, by_counts, by_time = apart[0]
    name = view.label(kernel)
    return f"{split} By time alone {name}: {quantity(by_time, 'J')}, not {quantity(by_counts, 'J')}."


def metered_error(view: View, to_meter: schema.ToMeter) -> str:
    """A sentence of Trust on what of metered numbers is measured, and how far off their split over kernels is."""
    idle = when(to_meter.idle_j, " together with idle time")
    kernels = view.nouns.kernels
    if len(view.kernels) == 1:
        return f"The total{idle} is what the meter saw."
    return (
        f"Total{idle}: what the meter saw. Split over {kernels}: estimated, nine {kernels} of ten are a factor of "
        f"{to_meter.within:g} off at most."
    )


def _shape(view: View, to_meter: schema.ToMeter) -> str:
    """The words on whose prices split the metered energy."""
    if to_meter.basis == "estimated":
        return f"prices estimated for a {view.nouns.processor} that nobody measured,"
    whose = when(not to_meter.own, f", another {view.nouns.processor}'s table,")
    return f"the prices of {to_meter.shape}{whose}"


def _apart(view: View, within: float) -> list[_ByBoth]:
    """(kernel, J by counts, J by time) of kernels whose two are over a factor `within` apart; largest first."""
    apart: list[_ByBoth] = []
    for kernel in view.kernels:
        by_counts, by_time = energy_of(kernel, "total").value, by_time_of(kernel).value
        if by_counts is None or by_time is None:
            continue
        if by_counts > by_time * within or by_time > by_counts * within:
            apart.append((kernel, by_counts, by_time))
    return sorted(apart, key=lambda each: -abs(each[1] - each[2]))

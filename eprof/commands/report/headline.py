"""The total and what it is made of, in one sentence, and what belongs beside it."""

import math

from msgspec.structs import replace

from eprof.base.cpus import constant_span_w
from eprof.base.gpus import data_sheet
from eprof.base.optional import mapped
from eprof.base.optional import ratio as quotient
from eprof.base.text import bracketed, capital, listed, phrase, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, SOME_FLOPS
from eprof.commands.report import trust
from eprof.commands.report.gaps import gaps_lead, gaps_sentence
from eprof.commands.report.view import DRAM, Entry, View, contenders
from eprof.profile import schema
from eprof.profilers import signs_of
from eprof.show.words.amounts import ASSUMED, MISSING, Amount, ratio
from eprof.show.words.blocks import Headline
from eprof.show.words.intervals import in_brackets, known
from eprof.show.words.numbers import percent, percent_span, plain, quantity, span, whole

PARTS = 3
_CLASSES = {"integer", "control", "load_store", "misc"}  # beside arithmetic: without them instructions are not all
_SMALL = 0.05  # of the whole: a smaller part is not in the headline
_FEW_CORES = 0.1  # busy: from here on one decimal says enough
_NEARLY_ALL = 0.9  # of what was counted: constant power, beside work whose counts nothing bounds
NAMED = 2  # groups of counts that a part is named by
_LOOSE, _LOOSE_OF_ITSELF = 0.06, 0.25  # a wider interval of a share is said instead of it


def headline(view: View) -> Headline:
    """The headline of a report: the total, what it is made of, and how metered energy was split."""
    chosen = _chosen(view)
    if view.is_of_a_second:
        chosen = replace(chosen, text=f"Only rates were counted; of each second: {chosen.text}")
    gaps = gaps_sentence(view)
    if gaps_lead(view) and view.has_energy:
        kernels = f"{capital(view.nouns.kernels)}: {chosen.text}"
        chosen = replace(chosen, text=gaps, lead=f"{kernels} {chosen.lead}".rstrip())
    elif gaps_lead(view):
        chosen = replace(chosen, text=f"{gaps} {chosen.text}")
    else:
        chosen = replace(chosen, lead=" ".join(filter(None, [chosen.lead, gaps])))
    return replace(chosen, lead=" ".join(filter(None, [chosen.lead, *trust.metered_sentences(view)])))


def _chosen(view: View) -> Headline:
    if not view.has_energy:
        return _counts(view)
    total, constant = view.energy("total"), view.energy(CONSTANT)
    lacks_time = when(constant.value is None, "Constant power is not known, because the time is not.")
    if not total.value:
        why = lacks_time or f"Constant power adds {at_least(constant, 'J')}."
        if view.time.value == 0:
            why = f"The time of all {view.nouns.kernels} is zero."
        return Headline("Nothing that was counted costs energy.", why, total.marks)
    if view.above.value is None or _is_mostly_uncounted(view):
        return _constant_alone(view)
    if view.is_above:
        return _above_constant(view)
    if alone := trust.counted_alone(view):
        own = {name: word.count for name, word in view.words.items() if word.count.group == alone and word.energy.value}
        # Cycles are no instructions, and some flops are among the others.
        words = [name for name, count in own.items() if count.unit != "cycle" and name not in SOME_FLOPS]
        symbols, size = {view.words[name].count.symbol for name in words}, ""
        if len(symbols) == 1:
            size = at_least(view.summed(view.document, words), symbols.pop())
        joules = f"{quantity(total.value, 'J')}{_known_how(view)}"
        text = f"Little but {view.in_prose(alone)} was counted{bracketed(size)}: {joules}"
        constant_too = phrase(" {}", _least_constant(view))
        return Headline(f"{text}, of a total that is not known.{constant_too}", "", total.marks)
    time = when(view.time.value and not view.is_of_a_second, f" in {at_least(view.time, 's')}")
    of_counted = when(not view.to_meter and trust.lacks_most(view), "of what was counted, ")
    text = f"{_joules(view, total)}{time}: {of_counted}{_parts(view)}.{phrase(' {}', _least_constant(view))}"
    if _is_another_cpus(view) and constant.value:
        low_w, high_w = constant_span_w()
        watts = quantity(view.document.constant_w or 0.0, "W")
        text += f" Its {watts} are assumed: each whole socket draws {low_w:g} to {high_w:g} W."
    return Headline(text, lacks_time, total.marks)


def _least_constant(view: View) -> str:
    joules, longest = least_constant(view)
    return when(joules, f"Constant power adds at least {quantity(joules, 'J')} ({longest} at its peak).")


def least_constant(view: View) -> tuple[float, str]:
    """(J, "DRAM" or "FP64"): the least constant energy where no time is known, as nothing runs faster than its peak.

    (0, "") where a time is known, or nothing tells.
    """
    machines = view.document.limits and view.document.limits.machines
    is_known = view.energy(CONSTANT).value is not None
    if trust.lacking_briefly(view) or is_known or not machines or not view.document.constant_w:
        return 0.0, ""
    moved = view.summed(view.document, DRAM).or_zero
    least_s = {"DRAM": moved / max(machine.dram_byte_per_s for machine in machines)}
    for machine in machines:
        flops = 0.0
        for name, word in view.words.items():
            if word.count.group == machine.precision and name not in SOME_FLOPS:
                flops += word.value.or_zero * {"flop": 1}.get(word.count.unit, 2)  # an instruction is two at most
        least_s[machine.precision.upper()] = flops / machine.peak_flop_per_s
    longest = max(least_s, key=least_s.__getitem__)
    sheet = data_sheet(view.document.device.name or "")
    return view.document.constant_w * least_s[longest] / (sheet.beyond_clock if sheet else 1.0), longest


def is_constant_alone(view: View) -> bool:
    """Whether hardly more than constant power is known, while work was not counted: shares of it would say nothing."""
    if view.above.value is None:
        return view.has_energy
    causes = view.causes_of(view.document)
    return causes is not None and causes.parts[0].share > _NEARLY_ALL and _is_mostly_uncounted(view)


def _is_mostly_uncounted(view: View) -> bool:
    """Whether constant power is the largest part of what was counted, and more may not have been counted."""
    causes = view.causes_of(view.document)
    if view.to_meter or view.is_modelled or causes is None or not trust.lacks_most(view):
        return False
    least = 0.0 if view.document.interval_j else _NEARLY_ALL
    return causes.parts[0].groups == [CONSTANT] and causes.parts[0].share > least


def _constant_alone(view: View) -> Headline:
    """The headline where little but constant power is priced: how much that is, and how much all may be."""
    constant = view.energy(CONSTANT)
    drawn = quantity(constant.or_zero, "J")
    if view.to_meter:
        drawn = quantity(view.energy("total").or_zero, "J")
        text = f"{drawn} {view.total_is}: only constant power is priced{_drawn(view)}."
        if trust.is_by_time(view):
            text = f"{drawn} {view.total_is} in {at_least(view.time, 's')}, split by time alone."
        return Headline(f"{text} Cause unknown; shares are of time.", "", constant.marks | MISSING)
    how = when(view.is_estimated, ", estimated from the data sheet")
    pair = known(view.interval("total"))
    is_mixed = (causes := view.causes_of(view.document)) is not None and len(causes.parts) > 1
    work = when(is_mixed, quantity(view.above.or_zero, "J"))
    shared_by = when(view.is_of_a_second, view.nouns.launches) or "time"
    shares = when(not view.document.still_s, f" Shares are of {when(work, 'what was counted') or shared_by}.")
    if pair is None:
        # What a data sheet makes of constant power is no bound, whatever the time is.
        is_bound = not (view.is_estimated or constant.marks & ASSUMED)
        least = capital(at_least(constant, "J")) if is_bound else drawn
        parts = f"{least} of constant power{_drawn(view)}{how}{phrase(', {} of work that was counted', work)}"
        return Headline(f"{parts}, and work that was not counted.{shares}", "", constant.marks | MISSING)
    # How well another CPU's constant power is known says nothing of this one's.
    ends = None if _is_another_cpus(view) else view.interval(CONSTANT)
    parts = f"{drawn}{in_brackets(ends, 'J')} of constant power{_drawn(view)}"
    most, limit = f"at most {quantity(pair[1], 'J')}", _by_limit(view)
    text = f"{parts}{how}; with work that was not counted, {most}{limit}.{shares}"
    if work:
        total = quantity(view.energy("total").or_zero, "J")
        text = f"{total}{_how_counted(view)}{how}, {most} in all{limit}: {parts} and {work} of work."
    return Headline(text, "", constant.marks | MISSING)


def _is_another_cpus(view: View) -> bool:
    return view.nouns.is_of_cpu and view.costs is not None and view.costs.gpu_match == "other"


def _by_limit(view: View) -> str:
    """The words " (the board may draw 200 W)" where a limit ends the total's interval; else empty."""
    interval = view.document.interval_j
    if not interval or not interval.limit_w:
        return ""
    # Of a board that no log names it is the highest limit of its compute capability.
    whose = when(view.costs and view.costs.gpu_match == "own", "the") or "such a"
    boards = f"{whose} {view.nouns.board}"
    if interval.sockets:
        boards = f"{interval.sockets} {view.nouns.board}s"
    draws = f"{quantity(interval.limit_w, 'W')}{trust.beyond_the_sheet(view)}"
    return f" ({boards} may draw {draws})"


def at_least(amount: Amount, unit: str) -> str:
    """An amount in a sentence: "12.4 J" or "at least 12.4 J"."""
    return when(amount.lower, "at least ") + quantity(amount.or_zero, unit)


def _joules(view: View, total: Amount) -> str:
    """The total in words, with interval and basis: "287 mJ (184 to 418 mJ) predicted"; or "12.4 J counted (...)"."""
    ends = view.interval("total")
    pair = known(ends)
    joules = quantity(total.or_zero, "J")
    how = _known_how(view)
    if not total.lower:
        return f"{joules}{in_brackets(ends, 'J')}{how}"
    if pair is not None and not trust.lacks_some(view):
        return f"{joules} ({span(*pair, 'J')}){how}"
    if pair is not None:
        return f"{joules}{_how_counted(view)} ({span(*pair, 'J')} in all){how}"
    if ends is None:
        return f"{capital(at_least(total, 'J'))}{how}{trust.lacking_briefly(view)}"
    return f"{joules} counted ({quantity(ends[0] or 0.0, 'J')} or more){how}{trust.lacking_briefly(view)}"


def _how_counted(view: View) -> str:
    """The words behind a counted total: " counted", or what it assumes; "" if it has another CPU's constant power."""
    if trust.always_active(view):
        return f" if the {view.cores} are always active"
    return when(not _is_another_cpus(view), " counted")


def _known_how(view: View) -> str:
    """The words for how a total is known: " predicted", " metered", " estimated from the data sheet"."""
    return when(view.is_estimated, " estimated from the data sheet") or f" {view.total_is}"


def _above_constant(view: View) -> Headline:
    """The headline above constant power: of a simulated device with that as a range, of some cores as their share."""
    above = view.above
    time = when(not view.is_modelled and view.time.value, f" in {at_least(view.time, 's')}{_left_out(view)}")
    of_counted = when(above.lower and not view.is_modelled, "of what was counted, ")
    joules = capital(at_least(above, "J"))
    if (interval := view.document.interval_j) and interval.apart:
        # Another CPU's prices: what was counted is no lower bound.
        low, high = above.or_zero / interval.apart, above.or_zero * interval.apart
        joules = f"About {quantity(above.or_zero, 'J')} ({span(low, high, 'J')})"
        if trust.lacks_some(view):
            most = interval.uncounted.get("total")
            room = f"{quantity(low, 'J')} or more"
            if most is not None:
                limit_j = (interval.limit_w or math.inf) * view.time.or_zero - view.energy(CONSTANT).or_zero
                room = f"{span(low, min(high + most, limit_j), 'J')} in all"
            joules = f"{quantity(above.or_zero, 'J')} counted ({room})"
    text = f"{joules} above constant power{time}: {of_counted}{_parts(view)}."
    if not view.energy(CONSTANT).value:
        return Headline(text + _fewest_cycles(view), "", above.marks)
    if view.costs and view.costs.cores:
        return Headline(text + _of_busy_cores(view, view.costs.cores), "", above.marks)
    low_j, high_j = _constant_range_j(view)
    modelled = view.document.modelled_time
    if not modelled or not high_j:
        return Headline(text, "", above.marks)
    whole = span(above.or_zero + low_j, above.or_zero + high_j, "J") + when(view.energy("total").lower, " or more")
    speeds = f"at the roofline's speed and at {percent(modelled.efficiency)} of it"
    return Headline(text, f"With constant power {whole}, since time is a model: {speeds}.", above.marks)


def _left_out(view: View) -> str:
    """The words " (without imports: 0.2 s)" if a program's time leaves out as much as it holds; else empty."""
    left_out_s = view.document.left_out_s or {}
    if sum(left_out_s.values()) < (view.time.value or math.inf):
        return ""
    return f" (without {listed(list(left_out_s))}: {quantity(sum(left_out_s.values()), 's')})"


def _of_busy_cores(view: View, cores: schema.Cores) -> str:
    """A sentence on what constant power adds for the cores that a program kept busy."""
    constant_j = view.energy(CONSTANT).or_zero
    number = plain(cores.busy)
    if cores.busy >= _FEW_CORES:
        number = f"{cores.busy:.1f}".removesuffix(".0")
    busy = f"{number} core{when(number != '1', 's')}"
    if view.costs and view.costs.gpu_match != "other" and cores.busy <= cores.of:
        busy = f"{number} of {cores.of} cores"
    sockets = math.ceil(cores.busy / cores.of)
    room = when(sockets > 1, f", as many as {sockets} sockets of {cores.of} have") or ", if others fill its socket"
    bound = "about " if _is_another_cpus(view) else when(view.above.lower, "at most ")
    share = bound + percent(constant_j / (constant_j + view.above.or_zero))
    power = phrase("{} for ", view.document.constant_w and quantity(view.document.constant_w, "W"))
    return f" Constant power ({power}{busy}{room}) adds {quantity(constant_j, 'J')}: {share} of the sum."


def _fewest_cycles(view: View) -> str:
    """A sentence on the least joules of core cycles, where neither they nor a time was counted; else empty."""
    executed, cycles, price = (
        view.instructions(view.document),
        view.amount(view.document, "core_active"),
        view.charges.get("core_active"),
    )
    if not (cycles.value and cycles.lower and executed.value and price):
        return ""
    least, one = (quantity(number * price.pj * 1e-12, "J") for number in (cycles.value, executed.value))
    fewest = f"{executed.value / cycles.value:g} instructions a cycle"
    return f" Core cycles were not counted: {least} of it are the least ({fewest}), at one a cycle they take {one}."


def constant_range(view: View) -> str:
    """A clause on constant energy where times are modelled, at the roofline's speed and at that assumed; else empty."""
    modelled = view.document.modelled_time
    low, high = _constant_range_j(view)
    if not modelled or not high:
        return ""
    least = at_least(Amount(low, view.energy(CONSTANT).marks), "J")
    slower = f"{quantity(high, 'J')} at {percent(modelled.efficiency)} of it"
    given = when(modelled.given, ", as --efficiency says")
    return f"constant power adds {least} at the roofline's speed to {slower}{given}, because time is a model"


def _constant_range_j(view: View) -> tuple[float, float]:
    joules = view.energy(CONSTANT).or_zero
    return view.at_the_roofline(joules, lambda kernel: kernel.energy_j.constant), joules


def _parts(view: View) -> str:
    """The largest parts in a headline: "47 % DRAM, 12 to 31 % constant power"; or which two may be the largest."""
    causes = view.causes_of(view.document)
    if causes is None:
        return "cause unknown"
    if causes.largest == "open":
        leading = contenders(causes)[:PARTS]
        if len(leading) > 1:
            named = [f"{name_of(view, part)} ({share_of(part)})" for part in leading]
            return f"the largest part is either {listed(named, 'or')}"
    shown = [part for part in causes.parts[:PARTS] if part.share >= _SMALL] or causes.parts[:1]
    if causes.largest == "probable":
        named = [f"{name_of(view, part)} ({share_of(part)})" for part in shown]
        return f"the largest part is probably {', then '.join(named)}"
    return ", ".join(f"{share_of(part)} {name_of(view, part)}" for part in shown)


def share_of(part: schema.Cause) -> str:
    """The share of a part: "47 %", or "12 to 31 %" where the prices leave it open."""
    pair = known(part.interval)
    if pair is None or pair[1] - pair[0] <= max(_LOOSE, _LOOSE_OF_ITSELF * part.share):
        return percent(part.share)
    return percent_span(*pair)


def name_of(view: View, part: schema.Cause) -> str:
    """The name of a part: "DRAM", "FP64 and instruction issue", "data movement"."""
    groups = part.groups
    if len(groups) <= NAMED:
        named = [view.in_prose(group) for group in groups]
        return listed(named)
    families = {COUNTS[word].family for word in COUNTS if COUNTS[word].group in groups}
    if len(families) > 1:
        return "computing and caches"
    if families == {COMPUTATION}:
        return "computing"
    if "dram" in groups:
        return "data movement"
    return "caches"


def mostly(view: View, entry: Entry, part: schema.Cause) -> str:
    """The words " (DRAM 31 %)" on the group that has half of a part of several groups; else empty."""
    if len(part.groups) <= NAMED:
        return ""
    known_groups = view.groups_of(entry)
    joules = {group: known_groups.get(group, Amount(None)).or_zero for group in part.groups}
    largest = max(part.groups, key=lambda group: joules[group])
    share = part.share * joules[largest] / (sum(joules.values()) or math.inf)
    return when(share >= part.share / 2, f" ({view.in_prose(largest)} {percent(share)})")


def _drawn(view: View) -> str:
    """The words " (60 W for 2.1 s)" on constant power, with what is assumed of it; empty where it is not known."""
    power = view.document.constant_w
    if not power:
        return ""
    taken = when(view.energy(CONSTANT).marks & ASSUMED, ", assumed,")
    if _is_another_cpus(view):
        low_w, high_w = constant_span_w()
        taken = f", assumed: whole sockets draw {low_w:g} to {high_w:g} W,"
    if view.is_of_a_second:
        return f" ({quantity(power, 'W')})"
    return f" ({quantity(power, 'W')}{taken} for {at_least(view.time, 's')})"


def _counts(view: View) -> Headline:
    counted = _counted(view)
    marks = view.time.marks
    if counted:
        marks |= view.instructions(view.document).marks | view.summed(view.document, DRAM).marks

    measured = view.document.energy_j.measured
    if measured is not None:
        why = "no instruction and no byte was counted"
        if counted:
            why = (
                "no count that has a price is in the logs" if view.costs else "no cost table is made for this processor"
            )
        power = phrase(", {}", mapped(quantity, quotient(measured, view.time.value), "W"))
        text = f"{quantity(measured, 'J')} measured{phrase(' in {}', _time(view))}{power}"
        text += phrase(", for {}", " and ".join(counted)) + "."
        return Headline(text, f"What took them is not known: {why}.", marks)
    consequence = "No energy is predicted, because there is no cost table; a warning below says how to get joules."
    if view.costs is not None:
        consequence = f"No energy is predicted: the cost table {view.costs.name} has no price for what was counted."
    return Headline(_profiled(view, counted), consequence, marks)


def _time(view: View) -> str:
    return when(view.time.value is not None, at_least(view.time, "s"))


def _profiled(view: View, counted: list[str]) -> str:
    number, takes, was = whole(len(view.kernels)), "take", "were"
    if len(view.kernels) == 1:
        number, takes, was = "One", "takes", "was"
    # The rows of perf are whole programs, whatever their profile calls them.
    noun = view.nouns.of(len(view.kernels))
    if all(signs_of(log.format.partition("-")[0]).of_programs for log in view.document.inputs):
        noun = "program" + when(len(view.kernels) > 1, "s")
    kernels = f"{number} {noun}"
    if counted:
        return f"{kernels} profiled: {' and '.join(counted)} counted{phrase(' in {}', _time(view)) or ', but no time'}."
    if _time(view):
        return f"{kernels} {takes} {_time(view)}{when(not gaps_sentence(view), '; no work was counted')}."
    what = when(any(kernel.signs for kernel in view.kernels), "neither work nor time") or "nothing that eprof knows"
    return f"{kernels} {was} profiled, but {what} was counted."


def _instructions(view: View, instructions: Amount) -> str:
    """The number of instructions in words; "at least" where whole classes were not counted."""
    names = view.instruction_words
    if names == ["warp_issue"]:
        return f"{at_least(instructions, '')} warp instructions"
    if view.amount(view.document, "retired").value is not None:
        per_cycle = ratio(instructions, view.amount(view.document, "core_active"))
        is_told = per_cycle.value and not per_cycle.lower
        return f"{at_least(instructions, '')} instructions{when(is_told, f' ({plain(per_cycle.or_zero)} a cycle)')}"
    if not _CLASSES.issubset(names):
        instructions = Amount(instructions.value, instructions.marks | MISSING)
    return f"{at_least(instructions, '')} instructions"


def _counted(view: View) -> list[str]:
    """Phrases on instructions and DRAM bytes; where neither is known, on the most bytes, or flops, that are."""
    instructions, dram = view.instructions(view.document), view.summed(view.document, DRAM)
    phrases = []
    if instructions.value:
        phrases.append(_instructions(view, instructions))
    if dram.value is not None:
        phrases.append(f"{at_least(dram, 'B')} from and to DRAM")
    if phrases:
        return phrases
    sized = [word for word in view.words.values() if word.count.symbol and word.value.value]
    alike = [word for word in sized if word.count.symbol == sized[0].count.symbol]
    largest = sorted(alike, key=lambda word: (word.value.marks & ASSUMED, -word.value.or_zero))[:1]
    return [f"{at_least(word.value, word.count.symbol)} {word.count.label}" for word in largest]

"""A report's headline: the total and its largest parts; and a sentence on time between kernels, gaps and copies."""

import math

from msgspec.structs import replace

from eprof.base.cpus import constant_span_w
from eprof.base.gpus import data_sheet
from eprof.base.optional import mapped
from eprof.base.optional import ratio as quotient
from eprof.base.text import bracketed, capital, cut, listed, phrase, when
from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, SOME_FLOPS
from eprof.commands.report import trust
from eprof.commands.report.view import DRAM, View, contenders
from eprof.costs.estimate import sm_cycles_per_s
from eprof.logs.log import BETWEEN, NOT_IN_TABLE, PAGES, During
from eprof.profile import schema
from eprof.profile.schema import WORTH_IT
from eprof.profilers import signs_of
from eprof.readers.gaps import FAULTS
from eprof.show.amounts import ASSUMED, MISSING, Amount, ratio
from eprof.show.blocks import Headline
from eprof.show.intervals import in_brackets, known
from eprof.show.numbers import percent, percent_span, plain, quantity, span, whole

PARTS = 3
_CLASSES = {"integer", "control", "load_store", "misc"}  # beside arithmetic: without them instructions are not all
_SMALL = 0.05  # of the whole: a smaller part is not in the headline
_FEW_CORES = 0.1  # busy: from here on one decimal says enough
NAMED = 2  # groups of counts that a part is named by
_LOOSE, _LOOSE_OF_ITSELF = 0.06, 0.25  # a wider interval of a share is said instead of it


def headline(view: View) -> Headline:
    """The headline of a report: the total, what it is made of, and how metered energy was split."""
    chosen = _chosen(view)
    gaps = gaps_sentence(view)
    if gaps_lead(view) and view.has_energy:
        kernels = f"{capital(view.nouns.kernels)}: {chosen.text}"
        chosen = replace(chosen, text=gaps, lead=f"{kernels} {chosen.lead}".rstrip())
    elif gaps_lead(view):
        chosen = replace(chosen, text=f"{gaps} {chosen.text}")
    else:
        chosen = replace(chosen, lead=" ".join(filter(None, [chosen.lead, gaps])))
    return replace(chosen, lead=" ".join(filter(None, [chosen.lead, *trust.metered_split(view)])))


def _chosen(view: View) -> Headline:
    """A report's headline without gaps and meter: the total and its parts, or what is known in place of a total."""
    if not view.has_energy:
        return _counts(view)
    total, constant = view.energy("total"), view.energy(CONSTANT)
    lacks_time = when(constant.value is None, "Constant power is not known, because the time is not.")
    if not total.value:
        why = lacks_time or f"Constant power adds {at_least(constant, 'J')}."
        if view.time.value == 0:
            why = f"The time of all {view.nouns.kernels} is zero."
        return Headline("Nothing that was counted costs energy.", why, total.marks)
    if view.is_of_a_second and constant.value:
        return _of_rates(view)
    if view.above.value is None or trust.is_mostly_uncounted(view):
        return _constant_alone(view)
    if view.is_above:
        return _above_constant(view)
    least_j, longest = least_constant(view)
    constant_too = when(least_j, f" Constant power adds at least {quantity(least_j, 'J')} ({longest}).")
    if alone := trust.counted_alone(view):
        own = {name: word.count for name, word in view.words.items() if word.count.group == alone and word.energy.value}
        # Cycles are no instructions, and some flops are among the others.
        words = [name for name, count in own.items() if count.unit != "cycle" and name not in SOME_FLOPS]
        symbols, size = {view.words[name].count.symbol for name in words}, ""
        if len(symbols) == 1:
            size = at_least(view.summed(view.document, words), symbols.pop())
        joules = f"{quantity(total.value, 'J')} {view.total_is}"
        text = f"Little but {view.in_prose(alone)} was counted{bracketed(size)}: {joules}"
        return Headline(f"{text}, of a total that is not known.{constant_too}", "", total.marks)
    time = when(view.time.value, f" in {at_least(view.time, 's')}")
    text = f"{_joules(view, total)}{time}{_parts(view)}.{constant_too}"
    if view.has_prices_of_another_cpu and constant.value:
        low_w, high_w = constant_span_w(view.document.device.name)
        watts = quantity(view.document.constant_w or 0.0, "W")
        text += f" Its {watts} are assumed: each whole socket draws {low_w:g} to {high_w:g} W."
    return Headline(text, lacks_time, total.marks)


def _of_rates(view: View) -> Headline:
    """The headline of a log of rates alone, whose energy of one second is power: how much, how much constant."""
    total, constant = view.energy("total"), view.energy(CONSTANT)
    ends = view.interval("total")
    told = quantity(total.or_zero, "W") if known(ends) else capital(at_least(total, "W"))
    parts = f"{quantity(constant.or_zero, 'W')}{in_brackets(view.interval(CONSTANT), 'W')} of constant power"
    parts += phrase(" and {} of work", view.above.value and quantity(view.above.value, "W"))
    text = f"{told}{in_brackets(ends, 'W')} while it runs: {parts}. The log has rates but no time."
    return Headline(text, "", total.marks)


def least_constant(view: View) -> tuple[float, str]:
    """(J, "DRAM at its peak"): the least constant energy where no time is known, as nothing runs faster than its peak.

    (0, "") where a time is known, or nothing tells.
    """
    machines = view.document.limits and view.document.limits.machines
    is_known = view.energy(CONSTANT).value is not None
    if trust.lacking_briefly(view) or is_known or not machines or not view.document.constant_w:
        return 0.0, ""
    moved = view.summed(view.document, DRAM).or_zero
    least_s = {"DRAM at its peak": moved / max(machine.dram_byte_per_s for machine in machines)}
    for machine in machines:
        flops = 0.0
        for name, word in view.words.items():
            if word.count.group == machine.precision and name not in SOME_FLOPS:
                flops += word.value.or_zero * {"flop": 1}.get(word.count.unit, 2)  # an instruction is two at most
        least_s[f"{machine.precision.upper()} at its peak"] = flops / machine.peak_flop_per_s
    running = view.words.get("sm_active_cycle")
    if running is not None and (per_s := mapped(sm_cycles_per_s, view.document.device.name)):
        least_s["all multiprocessors active at their top clock"] = running.value.or_zero / per_s
    longest = max(least_s, key=least_s.__getitem__)
    sheet = data_sheet(view.document.device.name or "")
    return view.document.constant_w * least_s[longest] / (sheet.beyond_clock if sheet else 1.0), longest


def is_constant_alone(view: View) -> bool:
    """Whether little but constant power is known, while DRAM or all work was not counted: shares would say nothing."""
    if view.above.value is None:
        return view.has_energy
    causes = view.causes_of(view.document)
    lacks_dram = view.summed(view.document, DRAM).value is None and not view.nouns.is_of_cpu
    is_alone = causes is not None and (lacks_dram or causes.parts[0].share > trust.NEARLY_ALL)
    return is_alone and trust.is_mostly_uncounted(view)


def _constant_alone(view: View) -> Headline:
    """A report's headline where little but constant power is priced: how much that is, how much all may be."""
    constant = view.energy(CONSTANT)
    drawn = quantity(constant.or_zero, "J")
    if view.to_meter:
        drawn = quantity(view.energy("total").or_zero, "J")
        text = f"{drawn} {view.total_is}: only constant power is priced{_drawn(view)}."
        if trust.is_by_time(view):
            text = f"{drawn} {view.total_is} in {at_least(view.time, 's')}, split by time alone."
        return Headline(f"{text} Cause unknown; shares are of time.", "", constant.marks | MISSING)
    pair = known(view.interval("total"))
    is_mixed = (causes := view.causes_of(view.document)) is not None and len(causes.parts) > 1
    work = when(is_mixed, quantity(view.above.or_zero, "J"))
    has_shares = len(view.kernels) > 1 and not view.document.still_s
    shares = when(has_shares, f" Shares are of {when(work, 'what was counted') or 'time'}.")
    if pair is None:
        # What a data sheet makes of constant power is no bound, whatever the time is.
        is_bound = not (view.is_estimated or constant.marks & ASSUMED)
        least = capital(at_least(constant, "J")) if is_bound else drawn
        parts = f"{least} of constant power{_drawn(view)}{phrase(', {} of work that was counted', work)}"
        return Headline(f"{parts}, and work that was not counted.{shares}", "", constant.marks | MISSING)
    # How well another CPU's constant power is known says nothing of this one's.
    ends = None if view.has_prices_of_another_cpu else view.interval(CONSTANT)
    parts = f"{drawn}{in_brackets(ends, 'J')} of constant power{_drawn(view)}"
    most, limit = f"at most {quantity(pair[1], 'J')}", ""
    if (interval := view.document.interval_j) and interval.limit_w:
        # Of a board that no log names it is the highest limit of its compute capability.
        whose = when(view.costs and view.costs.gpu_match == "own", "the") or "such a"
        boards = when(interval.sockets, f"{interval.sockets} {view.nouns.board}s") or f"{whose} {view.nouns.board}"
        limit = f" ({boards} may draw {quantity(interval.limit_w, 'W')}{trust.beyond_the_sheet(view)})"
    text = f"{parts}; with work that was not counted, {most}{limit}.{shares}"
    if work:
        total = quantity(view.energy("total").or_zero, "J")
        text = f"{total}{_how_counted(view)}, {most} in all{limit}: {parts} and {work} of work."
    return Headline(text, "", constant.marks | MISSING)


def at_least(amount: Amount, unit: str) -> str:
    """An amount in a sentence: "12.4 J" or "at least 12.4 J"."""
    return when(amount.lower, "at least ") + quantity(amount.or_zero, unit)


def _joules(view: View, total: Amount) -> str:
    """The total in a report's headline, with interval and basis: "287 mJ (184 to 418 mJ) predicted", "1 J counted"."""
    ends = view.interval("total")
    pair = known(ends)
    joules = quantity(total.or_zero, "J")
    if total.lower and ends is not None and pair is None:
        return f"{joules} counted ({quantity(ends[0] or 0.0, 'J')} or more){trust.lacking_briefly(view)}"
    if total.lower and pair is None:
        return f"{capital(at_least(total, 'J'))} {view.total_is}{trust.lacking_briefly(view)}"
    if pair is not None and total.lower and trust.lacks_some(view):
        return f"{joules}{_how_counted(view)} ({span(*pair, 'J')} in all)"
    return f"{joules}{in_brackets(ends, 'J')} {view.total_is}"


def _how_counted(view: View) -> str:
    """The word behind a counted total, " counted"; "" if it has another CPU's constant power."""
    return when(not view.has_prices_of_another_cpu, " counted")


def _above_constant(view: View) -> Headline:
    """A report's headline above constant power, and what that adds: a range if simulated, the cores in use of a CPU."""
    above = view.above
    time = when(not view.is_modelled and view.time.value, f" in {at_least(view.time, 's')}")
    left_out_s = view.document.left_out_s or {}
    if time and sum(left_out_s.values()) >= (view.time.value or math.inf):  # as much as the time holds
        time += f" (without {listed(list(left_out_s))}: {quantity(sum(left_out_s.values()), 's')})"
    joules = capital(at_least(above, "J"))
    if (interval := view.document.interval_j) and interval.apart:
        # Another CPU's prices: what was counted is no lower bound.
        low, high = above.or_zero / interval.apart, above.or_zero * interval.apart
        joules = f"About {quantity(above.or_zero, 'J')} ({span(low, high, 'J')})"
        if trust.lacks_any(view):
            most = interval.uncounted.get("total")
            room = f"{quantity(low, 'J')} or more"
            if most is not None:
                limit_j = (interval.limit_w or math.inf) * view.time.or_zero - view.energy(CONSTANT).or_zero
                room = f"{span(low, min(high + most, limit_j), 'J')} in all"
            joules = f"{quantity(above.or_zero, 'J')} counted ({room})"
    text = f"{joules} above constant power{time}{_parts(view)}."
    high_j = view.energy(CONSTANT).or_zero
    if not high_j:
        # Where neither core cycles nor a time was counted: the least joules of cycles.
        executed, cycles = view.instructions(view.document).value, view.amount(view.document, "core_active")
        price = view.charges.get("core_active")
        if cycles.value and cycles.lower and executed and price:
            least, one = (quantity(number * price.pj * 1e-12, "J") for number in (cycles.value, executed))
            fewest = f"{executed / cycles.value:g} instructions a cycle"
            text += f" Core cycles were not counted: at least {least} of it ({fewest}); {one} at one a cycle."
        return Headline(text, "", above.marks)
    if view.costs and view.costs.cores:
        cores, number = view.costs.cores, plain(view.costs.cores.busy)
        if cores.busy >= _FEW_CORES:
            number = f"{cores.busy:.1f}".removesuffix(".0")
        busy = f"{number} core{when(number != '1', 's')}"
        if view.costs.gpu_match != "other" and cores.busy <= cores.of:
            busy = f"{number} of {cores.of} cores"
        sockets = math.ceil(cores.busy / cores.of)
        room = when(sockets > 1, f", as many as {sockets} sockets of {cores.of} have") or ", if others fill its socket"
        bound = "about " if view.has_prices_of_another_cpu else when(above.lower, "at most ")
        share = bound + percent(high_j / (high_j + above.or_zero))
        power = phrase("{} for ", view.document.constant_w and quantity(view.document.constant_w, "W"))
        adds = f"adds {quantity(high_j, 'J')}: {share} of the sum"
        return Headline(f"{text} Constant power ({power}{busy}{room}) {adds}.", "", above.marks)
    low_j = view.at_the_roofline(high_j, lambda kernel: kernel.energy_j.constant)
    modelled = view.document.modelled_time
    if not modelled or not high_j:
        return Headline(text, "", above.marks)
    whole = span(above.or_zero + low_j, above.or_zero + high_j, "J") + when(view.energy("total").lower, " or more")
    speeds = f"at the roofline's speed and at {percent(modelled.efficiency)} of it"
    return Headline(text, f"With constant power {whole}, since time is a model: {speeds}.", above.marks)


def constant_range(view: View) -> str:
    """A clause on constant energy where times are modelled: at the roofline's speed, at the assumed speed; or ""."""
    modelled = view.document.modelled_time
    high = view.energy(CONSTANT).or_zero
    low = view.at_the_roofline(high, lambda kernel: kernel.energy_j.constant)
    if not modelled or not high:
        return ""
    least = at_least(Amount(low, view.energy(CONSTANT).marks), "J")
    slower = f"{quantity(high, 'J')} at {percent(modelled.efficiency)} of it"
    given = when(modelled.given, ", as --efficiency says")
    return f"constant power adds {least} at the roofline's speed to {slower}{given}, because time is a model"


def _parts(view: View) -> str:
    """The largest causes in a report's headline: ": 47 % DRAM, 12 to 31 % constant power"; or which may be largest."""
    causes = view.causes_of(view.document)
    if causes is None:
        return ": cause unknown"
    if len(causes.parts) == 1:
        only = name_of(view, causes.parts[0])
        return f", with nothing but {only} counted" if view.energy("total").lower else f", all of it {only}"
    leading = contenders(causes)[:PARTS]
    if causes.largest == "open" and len(leading) > 1:
        named = [f"{name_of(view, part)} ({share_of(part)})" for part in leading]
        return f": the largest part is either {listed(named, 'or')}"
    shown = [part for part in causes.parts[:PARTS] if part.share >= _SMALL] or causes.parts[:1]
    if causes.largest == "probable":
        first, *others = (name_of(view, part) for part in shown)
        return f": the largest part is probably {', then '.join([f'{first} ({share_of(shown[0])})', *others])}"
    return f": {', '.join(f'{share_of(part)} {name_of(view, part)}' for part in shown)}"


def share_of(part: schema.Cause) -> str:
    """The share of one cause of the energy: "47 %", or "12 to 31 %" where the prices leave it open."""
    pair = known(part.interval)
    if pair is None or pair[1] - pair[0] <= max(_LOOSE, _LOOSE_OF_ITSELF * part.share):
        return percent(part.share)
    return percent_span(*pair)


def name_of(view: View, part: schema.Cause) -> str:
    """The name of one cause of the energy: "DRAM", "FP64 and instruction issue", "data movement"."""
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


def _drawn(view: View) -> str:
    """The words " (60 W for 2.1 s)" on constant power, with what is assumed of it; empty where it is not known."""
    power = view.document.constant_w
    if not power:
        return ""
    taken = when(view.energy(CONSTANT).marks & ASSUMED, ", assumed,")
    if view.has_prices_of_another_cpu:
        low_w, high_w = constant_span_w(view.document.device.name)
        taken = f", assumed: each whole socket draws {low_w:g} to {high_w:g} W,"
    ran = view.time._replace(value=mapped((1 / view.at_once).__mul__, view.time.value))
    return f" ({quantity(view.at_once * power, 'W')}{taken} for {at_least(ran, 's')})"


def _counts(view: View) -> Headline:
    """A report's headline where no energy is predicted: what was measured, or counted, and in which time."""
    counted = _counted(view)
    marks = view.time.marks
    if counted:
        marks |= view.instructions(view.document).marks | view.summed(view.document, DRAM).marks
    time = when(view.time.value is not None, at_least(view.time, "s"))
    measured = view.document.energy_j.measured
    if measured is not None:
        why = "no instruction and no byte was counted"
        if counted:
            why = (
                "no count that has a price is in the logs" if view.costs else "no cost table is made for this processor"
            )
        # Seconds of some runs only are none that the joules of all are divided by.
        whole_s = None if view.time.lower else view.time.value
        power = phrase(", {}", mapped(quantity, quotient(measured, whole_s), "W"))
        text = f"{quantity(measured, 'J')} measured{phrase(' in {}', time)}{power}"
        text += phrase(", for {}", " and ".join(counted)) + "."
        return Headline(text, f"What took them is not known: {why}.", marks)
    consequence = "No energy is predicted, because there is no cost table; a warning below says how to get joules."
    if view.costs is not None:
        consequence = f"No energy is predicted: the cost table {view.costs.name} has no price for what was counted."
    told = [kernel for kernel in view.kernels if kernel.name != NOT_IN_TABLE]
    number, takes, was = whole(len(told)), "take", "were"
    if len(told) == 1:
        number, takes, was = "One", "takes", "was"
    # The rows of perf are whole programs, whatever their profile calls them.
    noun = view.nouns.of(len(told))
    if all(signs_of(log.format.partition("-")[0]).of_programs for log in view.document.inputs):
        noun = "program" + when(len(told) > 1, "s")
    kernels = f"{number} {noun}{when(len(told) < len(view.kernels), ' or more')}"
    if counted:
        text = f"{kernels} profiled: {' and '.join(counted)} counted{phrase(' in {}', time) or ', but no time'}."
    elif time:
        text = f"{kernels} {takes} {time}{when(not gaps_sentence(view), '; no work was counted')}."
    else:
        what = when(any(kernel.signs for kernel in view.kernels), "neither work nor time") or "nothing that eprof knows"
        text = f"{kernels} {was} profiled, but {what} was counted."
    return Headline(text, consequence, marks)


def _counted(view: View) -> list[str]:
    """Phrases on counted instructions and DRAM bytes; where neither is known, on the most bytes, or flops, that are."""
    instructions, dram = view.instructions(view.document), view.summed(view.document, DRAM)
    retired, names, phrases = view.amount(view.document, "retired").value, view.exclusive["instruction"], []
    per_cycle = ratio(instructions, view.amount(view.document, "core_active"))
    if retired is None and not _CLASSES.issubset(names) and names != ["warp_issue"]:  # whole classes were not counted
        instructions = Amount(instructions.value, instructions.marks | MISSING)
    if instructions.value:
        warp = when(names == ["warp_issue"], " warp")
        is_told = not warp and retired is not None and per_cycle.value and not per_cycle.lower
        a_cycle = when(is_told, f" ({plain(per_cycle.or_zero)} a cycle)")
        phrases.append(f"{at_least(instructions, '')}{warp} instructions{a_cycle}")
    if dram.value is not None:
        ways = [name for name in DRAM if view.amount(view.document, name).value is not None]
        way = {"dram_read": "from", "dram_write": "to"}.get("".join(ways), "from and to")
        phrases.append(f"{at_least(view.summed(view.document, ways), 'B')} {way} DRAM")
    if phrases:
        return phrases
    sized = [word for word in view.words.values() if word.count.symbol and word.value.value]
    alike = [word for word in sized if word.count.symbol == sized[0].count.symbol]
    largest = sorted(alike, key=lambda word: (word.value.marks & ASSUMED, -word.value.or_zero))[:1]
    return [f"{at_least(word.value, word.count.symbol)} {word.count.label}" for word in largest]


NOTHING_TOLD = schema.Gaps(None, None, 0.0)
_MUCH_OF_GAPS = 0.2  # of all: the longest, or the time before, where it is worth a word
_MOSTLY = 0.5  # of copies: what explains so much of them
_ALMOST = 0.95  # of a time: what is so much of it needs no number of its own
_CALL = 30  # characters of what the CPU did
WITHIN_GPU = "DtoD"


def gaps_lead(view: View) -> bool:
    """Whether time, or energy, between kernels or of copies is above that of kernels: a headline then begins so."""
    gaps = view.document.gaps or None
    if gaps is None:
        return False
    if not view.has_energy:
        return max(gaps.time_s or 0.0, gaps.lasting_s) > (view.time.value or math.inf)
    copies_j = gaps.lasting_s * view.document.resting_w
    return max(gaps.energy_j or 0.0, copies_j) > (view.energy("total").value or math.inf)


def gaps_sentence(view: View) -> str:
    """A report's sentence on time without kernels, on copies, and on the start-up; empty if all are short."""
    gaps = view.document.gaps or NOTHING_TOLD
    parts = []
    least_s = WORTH_IT * (view.time.value or math.inf)
    # What copies fill is theirs to tell; together with them little gaps may be worth a word.
    rest_s, still_s = (gaps.time_s or 0.0) - gaps.copied_s, view.document.still_s
    has_gaps = rest_s >= max(least_s, (1 - _ALMOST) * gaps.lasting_s) or gaps.lasting_s < least_s <= still_s
    if has_gaps:
        parts.append(f"no {view.nouns.kernel} ran for {_how_long(view, gaps)}")
    if gaps.copies_s >= max(least_s, WORTH_IT * still_s):
        parts.append(_of_copies(view, gaps, has_gaps))
    if gaps.before_s >= max(view.time.or_zero, _MUCH_OF_GAPS * still_s) > 0:
        joules, constant = "", view.energy(CONSTANT).value
        if view.has_energy and view.document.resting_w and constant:
            # At most: at the upper end of constant power, and a GPU that no program uses yet may sleep.
            _, most_j = known(view.interval(CONSTANT)) or (constant, constant)
            joules = f" (up to {quantity(gaps.before_s * view.document.resting_w * most_j / constant, 'J')})"
        runs = when(gaps.runs != 1, f" of {gaps.runs:,} runs")
        parts.append(f"the start-up{runs} before the GPU's first work took {quantity(gaps.before_s, 's')}{joules}")
    text = "; ".join(parts)
    if not text or gaps_lead(view):
        return phrase("{}.", capital(text))
    return f"Besides, {text}."


def _how_long(view: View, gaps: schema.Gaps) -> str:
    """The words on how long no kernel ran, with its joules: by a trace, or at least and at most by calls of CUDA."""
    still_s, most_j = view.document.still_s or gaps.time_s or 0.0, view.document.idle_j or gaps.energy_j or 0.0
    surely_s = (gaps.surely_s or 0.0) * ((gaps.surely_s or 0.0) >= WORTH_IT * still_s)
    least_j = most_j * ((surely_s or still_s) / still_s)
    passed, runs = quantity(still_s, "s"), when(gaps.runs > 1, f" in {gaps.runs:,} runs")
    # Where most of it lies: in one call of CUDA, in what the CPU did, before first launches, in one gap.
    doing = next((each for each in gaps.during if each.time_s >= still_s / 2), None)
    where = ""
    if gaps.surely_s is not None:
        longest = max(gaps.calls, key=lambda calls: calls.longest_s)
        passed = span(surely_s, still_s, "s") if surely_s else f"up to {passed}"
        where = when(surely_s, f" (one {longest.name} took {quantity(longest.longest_s, 's')})")
    elif doing is not None:
        where = f", {quantity(doing.time_s, 's')} of it in {cut(doing.doing.rpartition(BETWEEN)[2], _CALL)}"
    elif gaps.first_s >= still_s / 2:
        where = f", {quantity(gaps.first_s, 's')} of it before first launches"
    elif _MUCH_OF_GAPS * still_s <= gaps.longest_s < still_s:
        where = f", {quantity(gaps.longest_s, 's')} of it at a stretch"
    return f"{passed}{runs}{where}{when(most_j, _joules_of_constant_power(view, least_j, most_j))}"


def _joules_of_constant_power(view: View, least_j: float, most_j: float) -> str:
    """Joules while no kernel runs, as certain as the constant power of kernels: ": 54.5 J (47.4 to 68.6 J)"."""
    constant, ends = view.energy(CONSTANT).value, known(view.interval(CONSTANT)) or (1.0, 1.0)
    if constant and view.interval(CONSTANT):
        ends = ends[0] / constant, ends[1] / constant
    if least_j < most_j:
        return f": {span(least_j * ends[0], most_j * ends[1], 'J')}"
    return f": {quantity(most_j, 'J')}{in_brackets((most_j * ends[0], most_j * ends[1]), 'J')}"


def briefly(doing: During) -> str:
    """The innermost two names of what the CPU did in gaps: "cudaFree in aten::cudnn_convolution"."""
    return " in ".join(reversed([cut(name, _CALL) for name in doing.doing.split(BETWEEN)[-2:]]))


def _of_copies(view: View, gaps: schema.Gaps, has_gaps: bool) -> str:
    """The words on how long copies took; where no gap was told, also on their constant power."""
    taken = [each for each in gaps.copies if each.memory != PAGES]
    within_s, faults_s = (sum(each.time_s for each in taken if each.way == way) for way in (WITHIN_GPU, FAULTS))
    some = when(within_s < _ALMOST * gaps.copies_s, f"{quantity(within_s, 's')} ")
    told = when(within_s >= _MOSTLY * gaps.copies_s, f"{some}within the GPU: DRAM is read and written")
    faults = when(faults_s, f" and GPU page faults ({quantity(faults_s, 's')})")
    memsets_s = gaps.copies_s - sum(each.time_s for each in taken)
    if taken and memsets_s >= WORTH_IT * gaps.copies_s:
        faults = f" and memsets ({quantity(memsets_s, 's')}){faults}"
    took = f"copies{faults} took {quantity(gaps.copies_s, 's')}{bracketed(told)}"
    copies_j = gaps.lasting_s * view.document.resting_w
    joules = when(copies_j and view.has_energy, _joules_of_constant_power(view, copies_j, copies_j))
    if gaps.alone_s is None:
        is_most = gaps.copies_s > view.time.or_zero and not has_gaps  # whose joules are told, with these in them
        return took + when(is_most, joules and f"{joules} where no {view.nouns.kernel} ran meanwhile")
    if has_gaps and gaps.alone_s >= _ALMOST * gaps.copies_s:
        return f"{took} of it"
    alone = f", {quantity(gaps.alone_s, 's')} of it while no {view.nouns.kernel} ran"
    if has_gaps:
        return took + when(gaps.alone_s >= WORTH_IT * gaps.copies_s, alone)
    return took + when(gaps.alone_s < (1 - WORTH_IT) * gaps.copies_s, alone) + joules

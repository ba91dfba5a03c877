"""A difference in sentences: which variant uses less energy, by how much, and why. From the document `eprof.diff/1`."""

from collections.abc import Iterable, Iterator, Sequence
from math import isclose
from operator import not_

from msgspec.structs import asdict, replace

from eprof.base.known import mapped, ratio
from eprof.base.labels import fitted
from eprof.base.labels import labels as names_of
from eprof.base.text import bracketed, by_sign, capital, counted, cut, few, listed, phrase, uncapital, when
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS, INSTRUCTIONS, ISSUED, Nouns
from eprof.commands.diff import cause_words
from eprof.commands.diff.matching import ALONE, BARE, SIMILAR
from eprof.commands.diff.schema import Document, Gate, KernelSide, Model, Step
from eprof.lab.welch import Test
from eprof.show.words import costs as costs_words
from eprof.show.words.amounts import SIMULATED, bits, without
from eprof.show.words.blocks import Headline, Legend, Verdict
from eprof.show.words.cells import signed_quantity
from eprof.show.words.costs import devices_named
from eprof.show.words.numbers import NARROW, more_or_less, percent, percent_span, plain, quantity, quantity_or, span

FAMILIES = {"computation": "Computation", "data": "Data movement", "constant": "Constant power"}
_ROUNDING = 1e-9
_ROUNDED = 1e-5  # of the kernels' time: gaps that are the rounding of timestamps
_MOST_CHANGED, _MOST_NAMED = 2, 3
_NAME, _LONGEST = 18, 60
_SAME_WORK = 0.01
_ALMOST = 5e-4  # rounds to 0.0 %
_TENTH = 0.1  # from here on "12 times less" says more than "92 % less"
_OTHER_WORK = 1.5  # times the flops, or fewer: a compiler alone changes less
_BUSIER = 5.0  # times the core cycles a second, from which on the idler side tells what is drawn without work
_WORTH_IT = 0.05  # of the kernels' time: copies that changed by so much
_PRICES = {"setting": ", other setting", "cost": ", other price", "meter": ", by the meter"}
_UNITS = {"clocks": " MHz", "setting": " MHz"}
_CLASSES = [word for word in INSTRUCTIONS if word not in ISSUED]
_WORK = {
    "flops": {word: count.flops for word, count in COUNTS.items() if count.flops},
    "instructions": {"retired": 1},
    "other instructions": dict.fromkeys(_CLASSES, 1),
}


def answered(document: Document) -> Document:
    """The document with the numbers above constant power in place of all, where time is a model; else as it is.

    A change that is nothing but the rounding of its parts becomes 0: shares of it would say nothing.
    """
    if above := document.above_constant:
        document = replace(
            document,
            old=replace(document.old, compared_j=above.old_j),
            new=replace(document.new, compared_j=above.new_j),
            tests=replace(document.tests, energy=above.test),
            **{name: getattr(above, name) for name in Document.__struct_fields__ if hasattr(above, name)},
        )
    size_j = sum(abs(step.change_j) for step in document.steps)
    if document.change_j is None or abs(document.change_j) > _ROUNDING * size_j:
        return document
    return replace(document, change_j=0.0, change_share=0.0, interval_share=None)


def unmarked(document: Document) -> Document:
    """The document without the marks that all its numbers share: the line of trust says those once."""
    return without(document, shared_by_changes(document))


def headline(document: Document) -> Headline:
    """The headline of a difference: which variant uses less, by how much, and why."""
    document = answered(document)
    change_j, test = document.change_j, document.tests.energy
    joule, energy, scope = document.nouns.joule, _energy(document), _scope(document)
    if document.is_zero and document.same_inputs:
        return Headline("No change: OLD and NEW are the same logs, priced alike.")
    if document.is_zero and not document.counts and document.old.time_s is None:
        return Headline("Nothing is compared: neither side counted anything, or tells a time.")
    if document.is_zero:
        total = quantity_or("", document.old.energy_j.total, joule)
        both = phrase("; both use {}, {}", total, _basis(document))
        every = "rate" if document.a_second else "count and time"
        return Headline(f"No change: every {every} is the same{both}.")
    if is_one_run(document):
        both = f"{document.old.launches:,g} {document.nouns.launches} and {quantity(document.old.time_s or 0.0, 's')}"
        return Headline(f"No change: both have {both}, so they seem to be one run, told in two forms.")
    kernels = launched_otherwise(document)
    if kernels and is_shown(document):
        return _per_launch(document, kernels, scope)
    lead = " ".join(filter(None, [*_lead(document), _besides(document)]))
    if change_j is None:
        return _without_prices(document)

    low_j, high_j = document.interval_j or (0.0, 0.0)
    old_to_new = f"{_size(document, change_j)}, {_basis(document)}: {_from_to(document)}"
    text = f"{scope}NEW uses {old_to_new}."
    if test is not None and not test.shown:
        share = bracketed(mapped(percent, mapped(abs, ratio(test.change, test.old.mean))) or "")
        text = (
            f"No difference can be shown: the means of {test.old.n} and {test.new.n} runs differ by "
            f"{quantity(test.change, joule)}{share}, with a 95 % interval {_interval(test, joule)}."
        )
        counts = [change for change in _count_changes(document) if "the same" not in change]
        if counts and not document.rests_on_time:
            text += f" In counts NEW {listed(counts)}."
    elif document.rests_on_time:
        equal = "what both sides count is" if document.partial else "the counts are"
        text = (
            f"No difference is shown: {equal} equal, and time alone changes on a busy machine, too. As timed, NEW uses "
            f"{_size(document, change_j)}: {_from_to(document)}. Two or more runs of each, in turns, decide it: "
            "eprof diff 'OLD*' 'NEW*'."
        )
    elif change_j == 0:
        differ = any(count.change for count in document.counts.values())
        same = f"the {_basis(document)} {energy} is the same{when(differ, ', though not every count is')}"
        text = f"{scope}{same}: {_from_to(document)}."
    elif low_j < 0 < high_j:
        possible = span(low_j, high_j, joule, signed=True)
        size = mapped(more_or_less, document.change_share) or quantity(change_j, joule)
        both = _both(document.old.compared_j or 0.0, document.new.compared_j or 0.0, joule)
        changes = ", ".join([size, *_time_change(document, "")])
        text = (
            f"{scope}the prices do not tell which uses less {energy}: {both} is {_basis(document)} "
            f"({changes}), {possible} is possible."
        )
    return Headline(_of_a_second(document) + capital(text), lead, bits(document.marks))


def _of_a_second(document: Document) -> str:
    """A sentence on why power is compared, where a side tells nothing but rates; else empty."""
    if not document.a_second:
        return ""
    sides, tell, option = listed(document.a_second), "tells", f"--{document.a_second[0].lower()}-time"
    alike = ""
    if len(document.a_second) > 1:
        tell, option = "tell", "--time"
        alike = when(len(document.kernels) > 1, ", its launches as if all were equally long")
    return (
        f"{sides} {tell} nothing but rates, without a time ({option}, or a trace: A+B), so power is compared, each "
        f"{document.nouns.kernel} as long on both sides{alike}. "
    )


def _scope(document: Document) -> str:
    """How the headline begins if it is about a part of the energy, such as "Of what both sides know, "; else empty."""
    if all(part.what == CONSTANT for kernel in document.kernels for part in kernel.parts):
        counts = document.counts.values()
        lacking = [label for label in ("OLD", "NEW") if all(getattr(count, label.lower()) is None for count in counts)]
        why = f"{lacking[0]} counted nothing but time" if len(lacking) == 1 else "nothing but time was counted"
        return f"Of constant power, for {why}, "
    timeless = [lost for lost in (*document.uncompared, *document.unknown) if lost.what == CONSTANT]
    if sum(lost.kernels for lost in timeless) == len(document.kernels):
        return f"{capital(timeless[0].why)}, so constant power is not compared. In the rest "
    if document.partial:  # nothing is left out unmentioned
        return "Of what both sides know, "
    return when("missing" in document.marks, "Of what is known, ")


def _without_prices(document: Document) -> Headline:
    """The headline where no energy is predicted for both sides: what meters saw, or time and counts."""
    old_j, new_j = document.old.energy_j.measured, document.new.energy_j.measured
    if old_j and new_j is not None:
        both = [f"{_both(old_j, new_j, 'J')}{_doubt(document)}", *_time_change(document, "")]
        text = f"NEW uses {_times(new_j / old_j, 'less', 'the same')} energy, measured: {', '.join(both)}."
        counts = ", ".join(count for count in _count_changes(document) if "the same" not in count)
        sentences = [text, _idle_and_work(document, old_j, new_j), phrase("NEW {}.", counts)]
        return Headline(" ".join(filter(None, sentences)))
    changes = [*_time_change(document, "takes "), *_count_changes(document)]
    text = f"{_of_a_second(document)}{document.nouns.energy.capitalize()} is not compared"
    if document.old.prices and document.new.prices:
        text += ": nothing that has a price is known on both sides"
    elif not changes:
        text += ", and nothing else is known on both sides"
    if changes:
        text += f"; NEW {listed(changes)}"
    return Headline(f"{text}.", _unpriced(document))


def _idle_and_work(document: Document, old_j: float, new_j: float) -> str:
    """A sentence on mean power, and where one side was nearly idle, on watts without work and joules a cycle; or empty.

    A line through the powers of both over their active cycles a second: its value at 0 is the power without work.
    """
    cycles, times = document.counts.get("core_active"), (document.old.time_s, document.new.time_s)
    if cycles is None or not (cycles.old and cycles.new and times[0] and times[1]):
        return ""
    watts = old_j / times[0], new_j / times[1]
    rates = cycles.old / times[0], cycles.new / times[1]
    text = f"That is {_both(*watts, 'W')}"
    idler, busier = sorted((0, 1), key=rates.__getitem__)
    each_j = ratio(watts[busier] - watts[idler], rates[busier] - rates[idler]) or 0.0
    idle_w = watts[idler] - each_j * rates[idler]
    if rates[busier] < _BUSIER * rates[idler] or each_j <= 0 or idle_w <= 0:
        return f"{text}."
    share = percent(idle_w / watts[busier])
    return (
        f"{text}: on one machine {quantity(idle_w, 'W')} without work ({share} of the joules of "
        f"{('OLD', 'NEW')[busier]}), and {quantity(each_j, 'J')} for each core cycle with all that goes with it."
    )


def _unpriced(document: Document) -> str:
    """A sentence on why one side alone has no prices, and which option prices both; empty if not so."""
    sides = {"OLD": document.old, "NEW": document.new}
    lacking = [label for label, side in sides.items() if not side.prices]
    if len(lacking) != 1:
        return ""
    [priced] = [side for label, side in sides.items() if label not in lacking]
    names = [device.name for device in sides[lacking[0]].devices if device.name]
    why = f"the log of {lacking[0]} names no {document.nouns.processor}"
    if names:
        why = f"no cost table is made for the {listed(names)} of {lacking[0]}"
    table = priced.prices[0].name
    if table == "estimated":
        table = f'"{priced.devices[0].name}"'
    return f"{capital(why)}; --costs {table} prices both."


def launched_otherwise(document: Document) -> list[tuple[KernelSide, KernelSide]]:
    """(OLD, NEW) of kernels on both sides, if launches differ and nothing shows that the work is equal; else none.

    None either where most of a side is in kernels that the other has not, or only by a similar name.
    """
    work = _work_factor(document)
    is_same_work = work is not None and abs(work[1] - 1) < _SAME_WORK
    is_known = document.has_energy or document.speedup is not None
    is_otherwise = any(fact.what == "launches" for fact in document.unlike)
    if document.nouns.is_of_cpu or is_same_work or not (is_known and is_otherwise and _is_mostly_paired(document)):
        return []
    pairs = ((kernel.old, kernel.new) for kernel in document.kernels)
    return [(old, new) for old, new in pairs if old is not None and new is not None]


def _is_mostly_paired(document: Document) -> bool:
    """Whether kernels with a partner of more than a similar name take half of what is compared of each side."""
    for label in ("old", "new"):
        sides = [(getattr(kernel, label), kernel.match) for kernel in document.kernels]
        amounts = [(document.amount(side) or 0.0, match) for side, match in sides if side is not None]
        paired = sum(amount for amount, match in amounts if match is not None and match.how != SIMILAR)
        if 2 * paired < sum(amount for amount, _ in amounts):
            return False
    return True


def is_one_run(document: Document) -> bool:
    """Whether both sides seem to be one run: equal launches, counts and time to nine digits, but other names."""
    old, new = document.old, document.new
    if old.time_s is None or new.time_s is None or document.above_constant or old.launches != new.launches:
        return False
    if not isclose(old.time_s, new.time_s) or any(count.change for count in document.counts.values()):
        return False
    pairs = [(kernel.old, kernel.new) for kernel in document.kernels]
    return any(old is None or new is None or old.name != new.name for old, new in pairs)


def _per_launch(document: Document, kernels: Sequence[tuple[KernelSide, KernelSide]], scope: str) -> Headline:
    """The headline of sides that launch kernels unequally often: NEW against OLD per launch and why, then in all."""
    changes, why = [], ""
    if per_launch := document.per_launch:
        each = replace(document, **asdict(per_launch))
        changes.append(f"uses {_size(each, per_launch.change_j)}")
        why = phrase("With as many launches as OLD: {}", uncapital(_why_per_launch(each)))
    times_s = [(old.time_s or 0.0, (new.time_s or 0.0) * old.launches / new.launches) for old, new in kernels]
    if all(old and new for old, new in times_s):
        factor = sum(new for _, new in times_s) / sum(old for old, _ in times_s)
        changes.append(f"takes {_times(factor, 'less', 'the same')} time")
    before, after = (f"{sum(side.launches for side in sides):g}" for sides in zip(*kernels, strict=True))
    in_all = _from_to(document) if document.has_energy else "".join(_time_change(document, ""))
    launches = "launch" if after == "1" else "launches"
    change = listed(changes or ["is not known to change"])
    text = f"{scope}per launch NEW {change}. With {after} {launches} instead of {before}, in all: {in_all}."
    if len(kernels) < len(document.kernels):
        own = f"{len(kernels)} {document.nouns.of(len(kernels))} of both"
        text = f"{scope}per launch of the {own} ({before} launches → {after}) NEW {change}. In all: {in_all}."
    lead = " ".join(filter(None, [_unpriced(document), why, _besides(document)]))
    return Headline(capital(text), lead, bits(document.marks))


def _why_per_launch(each: Document) -> str:
    """Why a launch takes more or less energy, in sentences; empty if by its time alone, which the headline has."""
    times = [cause.share or 0.0 for cause in each.causes if cause.what == "time"]
    is_by_time = any(abs(share - 1) < _SAME_WORK for share in times)
    is_worth = not is_by_time and abs(each.change_share or 0.0) > _ROUNDING
    return when(is_worth, " ".join(cause_words.sentences(each)))


def _besides(document: Document) -> str:
    """A sentence on the time without kernels and on copies, if they changed by 5 % of kernels' time; or empty."""
    old, new = document.old, document.new
    least_s = _WORTH_IT * max(old.time_s or 0.0, new.time_s or 0.0)
    parts = []
    if old.still_s and new.still_s and abs(new.still_s - old.still_s) > least_s:
        # Of some nanoseconds timestamps tell nothing.
        both = zip((old.still_s, new.still_s), (old, new), strict=True)
        is_told = [still_s > _ROUNDED * (side.time_s or 0.0) for still_s, side in both]
        still = f"no {document.nouns.kernel} ran for {_both(old.still_s * is_told[0], new.still_s * is_told[1], 's')}"
        if old.still_j and new.still_j:
            still_j = old.still_j * is_told[0], new.still_j * is_told[1]
            still += f", {_both(*still_j, 'J')} of constant power"
            if old.compared_j and new.compared_j:
                whole_j = old.compared_j + still_j[0], new.compared_j + still_j[1]
                size = _times(whole_j[1] / whole_j[0], "less", "the same")
                still += f" (with it {_both(*whole_j, 'J')}, {size} energy)"
        parts.append(still)
    old_s, new_s = old.copies_s or 0.0, new.copies_s or 0.0
    if abs(new_s - old_s) > least_s:
        parts.append(f"copies took {_both(old_s, new_s, 's')}")
    return phrase("Besides, and not in it: {}.", "; ".join(parts))


def legend(document: Document) -> Legend:
    """The marks that occur beside the numbers of a difference; none where no energy is compared."""
    if document.change_j is None:
        return Legend(0)
    marks = bits(document.marks)
    for side in (document.old, document.new):
        marks |= bits(side.marks) | bits(side.time_marks)
    return Legend(marks)


def step_label(step: Step, nouns: Nouns) -> str:
    """The label of a step: "DRAM", "Integer price, other setting", "Kernels only in NEW"."""
    if step.group is None:
        return f"{nouns.of(step.names).capitalize()} only in {cause_words.ONLY_IN[step.kernels]}"
    name_of = nouns.group if step.group in GROUPS else nouns.label
    return (FAMILIES.get(step.group) or name_of(step.group)) + _PRICES.get(step.because or "", "")


def moving(document: Document) -> list[Step]:
    """The steps of a difference that change something."""
    return [step for step in document.steps if step.change_j]


def unchanged(document: Document) -> str:
    """The steps of a difference that are not drawn: "Unchanged: DRAM, FP32."; empty if there are none."""
    still = [step_label(step, document.nouns) for step in document.steps if not step.change_j]
    return phrase("Unchanged: {}.", ", ".join(still))


def verdicts(document: Document) -> list[Verdict]:
    """The outcome of every gate of a difference."""
    return [Verdict(mapped(not_, gate.failed), gate_words(gate, document.nouns)) for gate in document.gates]


def gate_words(gate: Gate, nouns: Nouns) -> str:
    """One sentence on a gate: passed, failed, or why it cannot be judged. nouns: of the processor."""
    if gate.failed is None:
        return f"--fail-above {gate.gate}: cannot be judged, because {gate.why_not}."
    assert gate.old is not None
    assert gate.new is not None
    # Of CPUs' energy above constant power a part follows cycles, and these the time.
    above = "energy above constant power" + when(nouns.is_of_cpu, " and core cycles")
    above += bracketed(phrase("{} of all", mapped(percent, gate.share)))
    name = {"total": "energy", "above_constant": above}.get(gate.what, gate.what)
    name += phrase(" of {}", cut(gate.kernel or "", _LONGEST))
    unit = {"byte": "B", "instruction": "", "cycle": ""}.get(gate.unit, gate.unit)
    amounts = f"{quantity(gate.old, unit)} to {quantity(gate.new, unit)}"
    if gate.growth is None:
        change = f"went from {amounts}" if gate.new else "is 0 on both sides"
    elif gate.growth == 0:
        change = f"did not change ({quantity(gate.new, unit)})"
    else:
        change = f"{by_sign(gate.growth, 'fell', 'grew')} by {percent(abs(gate.growth))} ({amounts})"
    verdict = f"{'above' if gate.failed else 'within'} the limit of {gate.limit * 100:g}{NARROW}%"
    if gate.is_noise and gate.growth:
        verdict = "which the runs do not tell from noise"
    return f"--fail-above {gate.gate}: {name} {change}, {verdict}."


def is_shown(document: Document) -> bool:
    """Whether the change stands out of the noise; time alone does so only between runs that took turns."""
    test = document.tests.energy
    return test.shown if test is not None else not document.rests_on_time


def _size(document: Document, change: float) -> str:
    """By how much the energy changed: "24 % less energy (18 to 29 %)"."""
    share, ends = document.change_share, document.interval_share
    if share is None:
        return f"{quantity(abs(change), document.nouns.joule)} {by_sign(change, 'less', 'more')} {_energy(document)}"
    less = f"{_times(1 + share, 'less', 'the same')} {_energy(document)}"
    if not ends or document.is_metered:
        return less
    if min(ends) < 0 < max(ends):
        return less + bracketed(
            f"the prices do not tell: from {' to '.join(_times(1 + end, 'less', 'the same') for end in ends)}"
        )
    interval = percent_span(*sorted(abs(end) for end in ends))
    if share >= 1:
        interval = " to ".join(dict.fromkeys(plain(1 + end) for end in ends))
    elif 1 + share < _TENTH and min(ends) > -1:
        interval = " to ".join(dict.fromkeys(plain(1 / (1 + end)) for end in reversed(ends)))
    return less + when(" to " in interval, bracketed(interval))


def _from_to(document: Document) -> str:
    """The energy of OLD and NEW, as far as it is compared ("9.2 J of 10.8 J"), and by how much the time changed."""
    texts = []
    for side in (document.old, document.new):
        compared, total = (
            quantity(joules or 0.0, document.nouns.joule) for joules in (side.compared_j, side.energy_j.total)
        )
        is_all = bool(document.above_constant) or compared == total
        texts.append(compared + when(not is_all, f" of {total}"))
    times = [] if document.above_constant else _time_change(document, "")
    return ", ".join([" → ".join(texts), *times])


def _basis(document: Document) -> str:
    if {"gpu", "costs"} <= {fact.what for fact in document.unlike}:
        return f"predicted, each at its own {document.nouns.processor}'s prices"
    return "metered" if document.is_metered else "predicted"


def _energy(document: Document) -> str:
    """What is compared: "energy", "energy above constant power", "power"."""
    return document.nouns.energy + above_constant(document)


def above_constant(document: Document) -> str:
    """The words " above constant power" where the difference is about that energy alone, as time is a model; or ""."""
    return when(document.above_constant, " above constant power")


def _doubt(document: Document) -> str:
    test = document.tests.measured
    return when(test is not None and not test.shown, ", no more than repeats differ by chance")


def _both(old: float, new: float, unit: str) -> str:
    return f"{quantity(old, unit)} → {quantity(new, unit)}"


def _interval(test: Test, unit: str) -> str:
    return f"from {quantity(test.low, unit)} to {quantity(test.high, unit)}"


def _time_change(document: Document, verb: str) -> Iterator[str]:
    if document.speedup == 1 and document.same_inputs and _is_at_other_clocks(document):
        yield "if it took the same time"
    elif document.speedup is not None:
        yield f"{verb}{_times(1 / document.speedup, 'less', 'the same')} time"


def _is_at_other_clocks(document: Document) -> bool:
    return any(step.because == "setting" for step in document.steps)


def _count_changes(document: Document) -> Iterator[str]:
    instructions = ["retired"] if "retired" in document.counts else _CLASSES
    dram = ["dram_read", "dram_write", "dram"]
    for words, does in ((instructions, "executes {} instructions"), (dram, "moves {} DRAM bytes")):
        counts = [document.counts[word] for word in words if word in document.counts]
        old, new = sum(count.old or 0.0 for count in counts), sum(count.new or 0.0 for count in counts)
        if old and all(count.change is not None for count in counts):
            yield does.format(_times(new / old, "fewer")) + document.nouns.pace


def _times(ratio: float, less: str, same: str = "the same number of") -> str:
    if abs(ratio - 1) < _ALMOST:
        return when(ratio != 1, "nearly ") + same
    if ratio >= 2:
        return f"{plain(ratio)} times the"
    if ratio == 0:
        return "no"
    if ratio < _TENTH:
        return f"{plain(1 / ratio)} times {less}"
    return more_or_less(ratio - 1, less)


def _lead(document: Document) -> Iterator[str]:
    if document.change_j and is_shown(document):
        sentences = " ".join(cause_words.sentences(document))
        yield sentences
        if document.same_inputs and _is_at_other_clocks(document):
            yield "Both have the time of one log: `eprof tune` predicts that at other clocks."
        # How a CPU's counts differ says why its time does, also where they have no price.
        if document.nouns.is_of_cpu:
            is_said = "DRAM bytes" in sentences
            changes = [text for text in _count_changes(document) if not (is_said and "DRAM bytes" in text)]
            known = [(word, count) for word, count in document.counts.items() if word in _CLASSES and count.old]
            largest = sorted(known, key=lambda item: -abs(item[1].change or 0.0))[:_MOST_CHANGED]
            details = [
                f"{_times((count.new or 0.0) / (count.old or 1.0), 'fewer')} {uncapital(document.nouns.label(word))}"
                for word, count in largest
                if count.change
            ]
            fused = [document.counts[word] for word in ("fp64_fma", "fp32_fma") if word in document.counts]
            if any(count.new and not count.old for count in fused):
                details.append("multiply-adds instead of multiplies and adds")
            if changes:
                yield f"NEW {listed(changes[::-1])}{bracketed(', '.join(details))}."
        special = document.counts.get("special")
        if special is not None and special.old and special.new is not None:
            least = _SAME_WORK * sum(document.counts[word].old or 0.0 for word in _CLASSES if word in document.counts)
            factor = special.new / special.old
            if max(special.old, special.new) > least and (factor * _OTHER_WORK < 1 or factor > _OTHER_WORK):
                special_functions = f"special functions{document.nouns.pace} (divisions, roots, exponentials)"
                yield f"NEW executes {_times(factor, 'fewer')} {special_functions}."

    old_j, new_j = document.old.energy_j.measured, document.new.energy_j.measured
    if old_j is None or new_j is None or not document.has_energy:
        return
    if old_j == new_j:
        yield f"Measured: the same, {quantity(old_j, 'J')}."
        return
    size = f"{quantity(abs(new_j - old_j), 'J')} ({percent(abs(new_j - old_j) / old_j)})"
    yield f"Measured by the meter: NEW {size} {by_sign(new_j - old_j, 'less', 'more')}{_doubt(document)}."


def beside(document: Document) -> list[str]:
    """Sentences beside the answer: constant power where time is a model, what flops and bytes alone say; or none."""
    if not document.change_j:
        return []
    constant = ""
    if above := document.above_constant:
        ends_j = zip(above.constant_old_j, above.constant_new_j, strict=True)
        fastest, slowest = (_arrow(quantity(joules, "J") for joules in both) for both in ends_j)
        efficiencies = filter(None, [above.efficiency_old, above.efficiency_new])
        slower = when(slowest != fastest, f", {slowest} at {_arrow(map(percent, efficiencies))} of it")
        constant = f"Beside it constant power: {fastest} at the roofline's speed{slower}, because time is a model."
    return list(filter(None, [constant, reading(document.model)]))


def _arrow(texts: Iterable[str]) -> str:
    return " → ".join(dict.fromkeys(texts))  # once where nothing changed


def ratios(document: Document) -> str:
    """Speedup, greenup and powerup of a difference, as far as they are known; empty if none is."""
    if launched_otherwise(document):
        return ""
    if document.above_constant:
        return phrase("Greenup above constant power {}.", mapped(plain, document.greenup))
    speedup, powerup = document.speedup, document.powerup
    known = {"speedup": speedup, "greenup": document.greenup, "powerup": powerup}
    text = ", ".join(f"{name} {plain(ratio)}" for name, ratio in known.items() if ratio is not None)
    power = ""
    if powerup is not None and speedup is not None and powerup != 1 and speedup != 1:
        time = by_sign(1 - speedup, "a shorter time", "a longer time")
        power = f": it draws {by_sign(powerup - 1, 'less', 'more')} power for {time}"
    return phrase("{}.", capital(text + power))


def noise(document: Document) -> str:
    """A sentence on the mean change over repeats, its interval and p; empty without repeats."""
    tests = document.tests
    told = [
        (tests.energy, "", document.nouns.joule),
        (tests.measured, " of measured joules", "J"),
        (tests.time, " of time", "s"),
    ]
    test, of_what, unit = next((each for each in told if each[0] is not None), told[0])
    if test is None:
        return ""
    repeats = f"{test.old.n} and {test.new.n} repeats"
    if test.old.sd == test.new.sd == 0:
        return f"The {repeats} do not vary at all."
    p = "p below 0.001" if test.p < 0.001 else f"p = {test.p:.3f}"
    verdict = "a difference is shown" if test.shown else "no difference is shown"
    return (
        f"Over {repeats} the mean{of_what} changes by {quantity(test.change, unit)}, with a 95 % interval "
        f"{_interval(test, unit)} and {p} (Welch's t test): {verdict}."
    )


def reading(model: Model) -> str:
    """A sentence on what flops and DRAM bytes alone say of a difference; empty if not known, or the same.

    It is a second opinion: what it knows nothing of, caches, occupancy, other instructions, explains the rest.
    """
    if model.missing or (model.work_factor == 1 and model.traffic_factor == 1):
        return ""
    greenup, limit = model.greenup, model.break_even_work_factor
    energy = f"{plain(greenup)} times less energy"
    if greenup < 1:
        energy = f"{plain(1 / greenup)} times the energy"
    saved = "with so many more bytes, fewer flops could not save any"
    if limit > 0:
        saved = f"with these bytes NEW saves energy as long as it does at most {plain(limit)} times the flops of OLD"
    return (
        "By flops and DRAM bytes alone, at the peaks of the cost table, NEW would have "
        f"{plain(model.speedup)} times the speed and take {energy}; {saved}."
    )


def shared_by_changes(document: Document) -> set[str]:
    """The marks that all numbers of a difference share: every part that changes the energy has them."""
    parts = [set(part.marks) for kernel in document.kernels for part in kernel.parts if part.change_j]
    return set.intersection(*parts or [set()]) - {"missing"}


def head(document: Document) -> str:
    """The first line of a difference: both names; the GPU and the clocks of the prices if they are the same."""
    sides = document.old, document.new
    names = " → ".join(fitted([side.name for side in sides], _NAME))
    devices = {", ".join(devices_named(side.devices)) for side in sides}
    settings = {", ".join(costs_words.setting(costs.setting) for costs in side.prices) for side in sides}
    shared = [facts.pop() for facts in (devices, settings) if len(facts) == 1]
    return " · ".join([names, *filter(None, shared)])


def unlike(document: Document) -> str:
    """The sentence "Not the same: ...": facts that differ between OLD and NEW, and the work; empty if none does."""
    labels = {"gpu": document.nouns.processor, "costs": "cost table", "launches": document.nouns.launches}
    labels |= {
        "profiler": "counted by",
        "setting": "clocks of the prices",
        "caches": "simulated caches",
        "threads": f"threads in a mean {document.nouns.launch}",
    }
    texts: dict[str, str] = {}
    if kernels := _unlike_kernels(document):
        texts["kernels"] = kernels
    for fact in document.unlike:
        old, new = (cut(text, _LONGEST) for text in (fact.old, fact.new))
        label = labels.get(fact.what, fact.what)
        texts[fact.what] = f"{label} {old} → {new}{_UNITS.get(fact.what, '')}"
        if fact.what == "repeats":
            apart = [f"{side} in {text}" for side, text in (("OLD", old), ("NEW", new)) if text]
            texts["repeats"] = f"repeats among themselves{bracketed(', '.join(apart))}"
        elif fact.what == "threads":
            texts["threads"] += " (other work?)"
        elif fact.what == "damage":
            texts["damage"] = f"{fact.old or fact.new} is cut off or damaged, so what it counts is at least so much"
        elif fact.what == "counters":
            texts["counters"] = f"counted from other counters: {old}"
        elif not old or not new:
            texts[fact.what] = f"{label} of {when(old, 'OLD') or 'NEW'} alone: {old or new}"
    if "clocks" in texts:  # the prices are those of the clocks
        texts.pop("setting", None)
    if launched_otherwise(document) or is_one_run(document):  # the headline says it
        texts.pop("launches", None)
    elif "launches" in texts and not all(kernel.match for kernel in document.kernels):
        texts["launches"] += f", of {document.nouns.kernels} that are in both"
    work = _work_factor(document)
    if work is not None:
        is_same = abs(work[1] - 1) < _SAME_WORK
        words = f"{'as many' if is_same else _times(work[1], 'fewer')} {work[0]}"
        is_other = work[1] * _OTHER_WORK <= 1 or work[1] >= _OTHER_WORK
        if "arguments" in texts:
            texts["arguments"] += bracketed(words + when(not is_same, ": not the same work"))
        elif document.nouns.is_of_cpu and is_other and work[0] == "flops":
            texts = {"work": f"{words} (other work, or another algorithm)"} | texts
    return phrase("Not the same: {}.", "; ".join(texts.values()))


def _unlike_kernels(document: Document) -> str:
    """How the kernels of OLD and NEW differ: none or few have a namesake, the only one has another name; or empty."""
    nouns, matches = document.nouns, [kernel.match for kernel in document.kernels]
    named = sum(match is not None and match.how != SIMILAR for match in matches)
    most = max(sum(getattr(kernel, side) is not None for kernel in document.kernels) for side in ("old", "new"))
    one_program = "(one program? --match OLD=NEW pairs them)"
    if not any(matches):
        return f"no {nouns.kernel} of OLD is in NEW {one_program}"
    if None in matches and 2 * named < most and not (_is_mostly_paired(document) or is_one_run(document)):
        few_are = f"only {named} of {most} {nouns.kernels} are"
        if named < 2:
            few_are = f"{'only 1' if named else 'none'} of {most} {nouns.kernels} is"
        return f"{few_are} in both {one_program}"
    if len(matches) == 1 and matches[0] is not None and matches[0].how in (ALONE, BARE):
        names = [side.name for side in (document.kernels[0].old, document.kernels[0].new) if side is not None]
        if names_of(names[:1], _LONGEST) != names_of(names[1:], _LONGEST):
            return f"{nouns.kernel} {' → '.join(names_of(names, _LONGEST))}"
    return ""


def _work_factor(document: Document) -> tuple[str, float] | None:
    """The work of NEW over that of OLD, as ("flops", factor), without flops by instructions; None: not known."""
    for noun, weights in _WORK.items() if not document.a_second else ():
        counts = [(weight, document.counts[word]) for word, weight in weights.items() if word in document.counts]
        if any(count.old is None or count.new is None for _, count in counts):
            continue
        old = sum(weight * (count.old or 0.0) for weight, count in counts)
        new = sum(weight * (count.new or 0.0) for weight, count in counts)
        if old:
            return noun, new / old
    return None


def trust(document: Document) -> str:
    """The line of trust: how far off the joules may be, whose prices they are, and what is simulated or left out."""
    nouns, refits, sides = document.nouns, document.intervals, (document.old, document.new)
    tables = [costs for side in sides for costs in side.prices]
    is_served = all(costs.serves for costs in tables)
    # How far to trust it in one word, and how far off the joules of a side may be.
    grade = when(document.has_energy, "rough (error unknown)")
    if document.has_energy and refits is not None and refits.within is not None and is_served:
        is_rough = document.above_constant or "missing" in document.marks or not refits.paired
        cancels = when(refits.paired, "; errors of prices that both share cancel")
        within = f"within a factor of {plain(refits.within)}{cancels}"
        grade = f"{'rough' if is_rough else 'good'} (each side: nine of ten unseen {nouns.kernels} {within})"
    prices = costs_words.all_named(tables) or "no cost table (--costs)"
    if not is_served:
        whose = when(nouns.is_of_cpu, f"of {tables[0].device}, ")
        prices += f", {whose}not made for this {nouns.processor}"
    counts = any("simulated" in count.marks for count in document.counts.values())
    time = any(bits(side.time_marks) & SIMULATED for side in sides)
    of_counts = when(counts, f"{nouns.simulated} simulated{bracketed(_simpler(document))}")
    simulated = of_counts, when(time, "time modelled")
    # Marks that all numbers have stand beside none of them.
    shared = shared_by_changes(document)
    left_out = list(dict.fromkeys(nouns.label(lost.what) for lost in (*document.uncompared, *document.unknown)))
    similar = sum(kernel.match is not None and kernel.match.how == SIMILAR for kernel in document.kernels)
    are_alone = document.old.repeats == 1, document.new.repeats == 1
    joules = "watts" if document.a_second else "joules"
    parts = [
        grade,
        prices,
        " and ".join(filter(None, simulated)),
        when("estimated" in shared, f"all {joules} estimated"),
        when("assumed" in shared, f"all {joules} rest on assumptions"),
        phrase("not in it: {}", few(left_out, _MOST_NAMED) if document.counts else ""),
        when(similar, f"{counted(similar, nouns.kernel)} paired by similar names"),
        phrase("one run of {}", {(True, True): "each", (True, False): "OLD", (False, True): "NEW"}.get(are_alone, "")),
    ]
    return f"Trust: {'; '.join(filter(None, parts))}."


def _simpler(document: Document) -> str:
    """How the simulated device counts what changed most simpler than a GPU, "no caches"; empty if as a GPU would."""
    least_j = _TENTH * sum(abs(step.change_j) for step in document.steps)
    words = [word for step in document.steps if abs(step.change_j) > least_j for word in step.words]
    if not document.has_energy:
        words = [word for word, count in document.counts.items() if count.change]
    simpler = [document.counts[word].simpler or "" for word in words if word in document.counts]
    return ", ".join(filter(None, dict.fromkeys(simpler)))


def bar(document: Document) -> list[tuple[str, float, str]]:
    """The largest steps, at most four: label, share of the change, that share in words; none where there is no change.

    Where parts nearly cancel, their joules say more than shares of what is left.
    """
    change = document.change_j
    if not change or launched_otherwise(document):
        return []
    steps = [step for step in moving(document) if abs(step.change_j / change) >= 0.01][:4]
    shares = [step.change_j / change for step in steps]
    sizes = [percent(share) for share in shares]
    if any(abs(share) > cause_words.CANCELS for share in shares):
        sizes = [signed_quantity(step.change_j, document.nouns.joule) for step in steps]
    return list(zip((step_label(step, document.nouns) for step in steps), shares, sizes, strict=True))

"""The answer of a difference as sentences: which variant uses less energy, by how much, and why (causes in words)."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import asdict, replace

from eprof.base.gpus import capability_of_label
from eprof.base.optional import mapped, ratio
from eprof.base.text import bracketed, by_sign, capital, listed, phrase, uncapital, when
from eprof.base.vocabulary import CONSTANT, COUNTS, FLOAT_PARTS, GROUPS, Nouns
from eprof.commands.diff import likeness
from eprof.commands.diff.schema import Cause, Document, Kernel, KernelSide, Range, Side
from eprof.lab.welch import Test
from eprof.profilers import advice
from eprof.show.amounts import bits
from eprof.show.blocks import Headline
from eprof.show.numbers import more_or_less, percent, percent_span, plain, quantity, quantity_or, span

_ROUNDING, _DIGITS = 1e-9, 9
_ROUNDED = 1e-5  # of the energy, or of the kernels' time: gaps that are the rounding of timestamps
_MOST_CHANGED = 2
_ALMOST = 5e-4  # rounds to 0.0 %
_TENTH = 0.1  # from here on "12 times less" says more than "92 % less"
_BUSIER = 5.0  # times the core cycles a second, from which on the idler side tells what is drawn without work
_WORTH_IT = 0.05  # of the kernels' time: copies that changed by so much
# Why no energy but constant power is compared, by whether OLD and NEW counted anything.
_TIME_ALONE = {
    (True, True): "nothing but time is known on both sides",
    (True, False): "NEW counted nothing but time",
    (False, True): "OLD counted nothing but time",
    (False, False): "nothing but time was counted",
}


def answered(document: Document) -> Document:
    """The document with the numbers above constant power in place of all, where time is a model; else as it is.

    A change that is nothing but rounding, of its parts or of all, becomes 0: shares of it would say nothing.
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
    is_rounding = size_j <= _ROUNDED * (document.old.compared_j or 0.0)
    if document.change_j is None or (abs(document.change_j) > _ROUNDING * size_j and not is_rounding):
        return document
    return replace(document, change_j=0.0, change_share=0.0, interval_share=None)


def headline(document: Document) -> Headline:
    """The headline: what keeps the two from being compared, else which uses less energy, by how much, and why."""
    document = answered(document)
    if nothing := _no_change(document):
        capabilities = {device.capability for side in (document.old, document.new) for device in side.devices}
        remedy = ""
        if not document.counts and document.old.time_s is None and document.new.time_s is None:
            remedy = when(None not in capabilities, f"Count with {advice.commands(advice.COUNTS, capabilities)}.")
        return Headline(nothing, " ".join(filter(None, [remedy, *_besides(document)])))
    if likeness.are_strangers(document):
        return _of_strangers(document)
    kernels = likeness.launched_otherwise(document)
    if kernels and likeness.is_shown(document):
        return _per_launch(document, kernels)
    if document.change_j is None:
        return _without_prices(document)
    lead = " ".join([*_lead(document), *_besides(document)])
    per_work = _per_work(document, document.change_share, document.interval_share)
    texts = [*_before(document), capital(_change(document)), *per_work]
    return Headline(" ".join(texts), lead, bits(document.marks))


def _no_change(document: Document) -> str:
    """The answer where nothing changed, nothing was counted, or one run is told in two forms; else empty."""
    if document.is_zero and document.same_inputs:
        return "No change: OLD and NEW are the same logs, priced alike."
    if document.is_zero and not document.counts and document.old.time_s is None:
        return "Nothing is compared: neither side counted anything that eprof uses, or tells a time."
    if document.is_zero:
        total = quantity_or("", document.old.energy_j.total, document.nouns.joule)
        both = phrase("; both use {}, {}", total, _basis(document))
        same = "every rate is" if document.a_second else "every count and time is"
        if not document.a_second and document.old.time_s is None:
            same, both = "what both sides count is", f"; neither tells a time{both}"
        of_kernels = when(list(_besides(document)), f" of {document.nouns.kernels}")
        return f"No change{of_kernels}: {same} the same{both}."
    if likeness.is_one_run(document):
        both = f"{document.old.launches:,g} {document.nouns.launches} and {quantity(document.old.time_s or 0.0, 's')}"
        return f"No change: both have {both}, so they seem to be one run, told in two forms."
    return ""


def _change(document: Document) -> str:
    """The sentence on the change of energy, or why none is shown."""
    change_j, test, joule = document.change_j or 0.0, document.tests.energy, document.nouns.joule
    scope, (low_j, high_j) = _scope(document), document.interval_j or (0.0, 0.0)
    if test is not None and not test.shown:
        share = bracketed(mapped(percent, mapped(abs, ratio(test.change, test.old.mean))) or "")
        text = (
            f"No difference can be shown: the means of {test.old.n} and {test.new.n} runs differ by "
            f"{quantity(test.change, joule)}{share}, with a 95 % interval {interval(test, joule)}."
        )
        counts = [change for change in _count_changes(document) if "the same" not in change]
        if counts and not document.rests_on_time:
            text += f" In counts NEW {listed(counts)}."
        return text
    if change_j == 0:
        changed = list(_changed_counts(document))
        but = f", though NEW has {listed(changed)}" if changed else ""
        if level := likeness.moved_otherwise(document):
            but = f", though {LEVELS[level.name]} moves {_moved(level)}"
        same = f"the {_basis(document)} {energy_of(document)} is the same{but}"
        return f"{scope}{same}: {_from_to(document)}."
    if causes := likeness.of_other_counters(document):
        counted = listed([_cause(cause, document.nouns) for cause in causes])
        why = when(likeness.has_other_caches(document), "of other simulated caches") or "counted from other counters"
        return (
            f"No difference is shown: {counted} are {why}, which may be all of it. As counted, "
            f"NEW uses {_size(document, change_j)}: {_from_to(document)}."
        )
    if document.rests_on_time and test is None:
        why = "what both sides count is equal" if document.partial else "the counts are equal"
        if likeness.time_goes_against_counts(document):
            told = listed([change for change in _count_changes(document) if "the same" not in change])
            why = f"{phrase('NEW {}, ', told)}time goes against what was counted"
        if all(None in (count.old, count.new) for count in document.counts.values()):
            why = _why_time_alone(document)
        return (
            f"No difference is shown: {why}, and time alone changes on a busy machine, too. As timed, NEW uses "
            f"{_size(document, change_j)}: {_from_to(document)}. Two or more runs of each, in turns, decide it: "
            "eprof diff 'OLD*' 'NEW*'."
        )
    if low_j < 0 < high_j:
        possible = span(low_j, high_j, joule, signed=True)
        size = mapped(more_or_less, document.change_share) or quantity(change_j, joule)
        both = _both(document.old.compared_j or 0.0, document.new.compared_j or 0.0, joule)
        changes = ", ".join([size, *_time_change(document, "")])
        return (
            f"{scope}the prices do not tell which uses less {energy_of(document)}: {both} is {_basis(document)} "
            f"({changes}), {possible} is possible."
        )
    return f"{scope}NEW uses {_size(document, change_j)}, {_basis(document)}: {_from_to(document)}."


def _before(document: Document) -> Iterator[str]:
    """Yield the sentences before the answer: power is compared, where logs tell rates; NEW does other work than OLD."""
    if document.a_second:
        sides, tell, option = listed(document.a_second), "tells", f"--{document.a_second[0].lower()}-time"
        alike = ""
        if len(document.a_second) > 1:
            tell, option = "tell", "--time"
            alike = when(len(document.kernels) > 1, ", its launches as if all were equally long")
        yield (
            f"{sides} {tell} nothing but rates, without a time ({option}, or a trace: A+B), so power is compared, each "
            f"{document.nouns.kernel} as long on both sides{alike}."
        )
    if work := likeness.other_work(document):
        part = times(work.factor, "fewer")
        if _TENTH <= work.factor < 1:
            part = f"{percent(work.factor)} of the"
        yield f"NEW {work.verb} {part} {work.noun}."


def _per_work(document: Document, share: float | None, ends: Range | None) -> Iterator[str]:
    """Yield a sentence on the energy for each flop, where NEW does other work; share, ends: of the whole change."""
    work = likeness.other_work(document)
    if work is None or share is None or not (work.factor and work.each):
        return
    each = [round((1 + change) / work.factor - 1, _DIGITS) for change in (share, *(ends or ()))]
    per_work = replace(document, change_share=each[0], interval_share=each[1:] or None)
    yield f"Per {work.each} it uses {_size(per_work, each[0])}."


def _scope(document: Document) -> str:
    """How the headline begins if it is about a part of the energy, such as "Of what both sides know, "; else empty."""
    if not document.has_energy:
        return ""
    if all(part.what == CONSTANT for kernel in document.kernels for part in kernel.parts):
        return f"Of constant power, for {_why_time_alone(document)}, "
    timeless = [lost for lost in (*document.uncompared, *document.unknown) if lost.what == CONSTANT]
    if sum(lost.kernels for lost in timeless) == len(document.kernels):
        return f"{capital(timeless[0].why)}, so constant power is not compared. In the rest "
    if document.partial:  # nothing is left out unmentioned
        return "Of what both sides know, "
    return when("missing" in document.marks, "Of what is known, ")


def _why_time_alone(document: Document) -> str:
    """Why the energy of constant power alone is compared: "nothing but time was counted"."""
    known = [(count.old is not None, count.new is not None) for count in document.counts.values()]
    if (True, True) in known:
        return "nothing else that both counted has a price"
    return _TIME_ALONE[any(of_old for of_old, _ in known), any(of_new for _, of_new in known)]


def _of_strangers(document: Document) -> Headline:
    """The headline of sides that share next to no kernel: what each takes, and no change of it."""
    nouns, (of_old, of_new, of_both) = document.nouns, likeness.in_common(document)
    why = f"OLD and NEW have no {nouns.kernel} in common"
    if of_both:
        what = nouns.energy if document.has_energy else "time"
        why = f"{nouns.kernels} of both take {percent(of_old)} of OLD's {what} and {percent(of_new)} of NEW's"
    sides = []
    for label in ("OLD", "NEW"):
        side: Side = getattr(document, label.lower())
        number = sum(getattr(kernel, label.lower()) is not None for kernel in document.kernels)
        predicted_j = side.compared_j if document.above_constant else side.energy_j.total
        above = when(document.above_constant, "above constant power, ")
        joules = phrase(f"{{}} {above}predicted", mapped(quantity, predicted_j, nouns.joule))
        if joules and "missing" in side.marks:
            joules = f"at least {joules}"
        amounts = [phrase("{} measured", mapped(quantity, side.energy_j.measured, "J")) or joules]
        amounts.append(when(not above, mapped(quantity, side.time_s, "s") or ""))
        sides.append(f"{label} has {number} {nouns.of(number)}{bracketed(', '.join(filter(None, amounts)))}")
    text = f"No comparison of variants: {why}. {', '.join(sides)}."
    return Headline(
        text, f"If they are one program's, --match OLD=NEW pairs {nouns.kernels} by hand.", bits(document.marks)
    )


def _without_prices(document: Document) -> Headline:
    """The headline where no energy is predicted for both sides: what meters saw, or time and counts."""
    old_j, new_j = document.old.energy_j.measured, document.new.energy_j.measured
    before = list(_before(document))
    if old_j and new_j is not None:
        both = [f"{_both(old_j, new_j, 'J')}{_doubt(document)}", *_time_change(document, "")]
        text = f"NEW uses {times(new_j / old_j, 'less', 'the same')} energy, measured: {', '.join(both)}."
        per_work = _per_work(document, new_j / old_j - 1, None)
        counts = ", ".join(count for count in _count_changes(document) if "the same" not in count)
        sentences = [*before, text, *per_work, _idle_and_work(document, old_j, new_j)]
        sentences += [*_of_waits(document), phrase("NEW {}.", counts)]
        return Headline(" ".join(filter(None, sentences)), " ".join(_besides(document)))
    changes = [*_time_change(document, "takes "), *_count_changes(document)]
    text = f"{document.nouns.energy.capitalize()} is not compared"
    if document.old.prices and document.new.prices:
        text += ": nothing that has a price is known on both sides"
    elif not changes:
        text += ", and nothing else is known on both sides"
    if changes:
        text += f"; NEW {listed(changes)}"
    lead = [*_of_precision(document), *_of_waits(document), *_unpriced(document), *_besides(document)]
    return Headline(" ".join([*before, f"{text}."]), " ".join(lead))


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
    is_one_machine = {"gpu", "cpus"}.isdisjoint(fact.what for fact in document.unlike)
    if not is_one_machine or rates[busier] < _BUSIER * rates[idler] or each_j <= 0 or idle_w <= 0:
        return f"{text}."
    share = percent(idle_w / watts[busier])
    return (
        f"{text}: on one machine {quantity(idle_w, 'W')} without work ({share} of the joules of "
        f"{('OLD', 'NEW')[busier]}), and {quantity(each_j, 'J')} for each core cycle with all that goes with it."
    )


def _unpriced(document: Document) -> Iterator[str]:
    """Yield a sentence on why one side alone has no prices, and which option prices both, if one does."""
    sides = {"OLD": document.old, "NEW": document.new}
    lacking = [label for label, side in sides.items() if not side.prices]
    if len(lacking) != 1:
        return
    [priced] = [side for label, side in sides.items() if label not in lacking]
    unpriced = sides[lacking[0]]
    names = [device.name for device in unpriced.devices if device.name]
    why = f"the log of {lacking[0]} names no {document.nouns.processor}"
    if names:
        why = f"no cost table is made for the {listed(names)} of {lacking[0]}"
    table = f"--costs {priced.prices[0].name} prices both"
    if priced.prices[0].name == "estimated":
        table = f'--costs "{priced.devices[0].name}" prices both'
        if capability_of_label(priced.devices[0].name or ""):
            table = f"--costs with the name of the {document.nouns.processor} prices both"
    are_of_amd = {log.format.startswith("rocprof") for side in (priced, unpriced) for log in side.inputs}
    yield f"{capital(why)}{when(names or len(are_of_amd) == 1, f'; {table}')}."


def _per_launch(document: Document, kernels: Sequence[tuple[KernelSide, KernelSide]]) -> Headline:
    """The headline of sides that launch kernels unequally often: how often, NEW against OLD per launch, then in all."""
    changes, why = [], ""
    if per_launch := document.per_launch:
        each = replace(document, **asdict(per_launch))
        changes.append(f"uses {_size(each, per_launch.change_j)}")
        # Not where a launch takes more or less by its time alone, which the headline has.
        by_time = [cause.share or 0.0 for cause in each.causes if cause.what == "time"]
        is_by_time = any(abs(share - 1) < likeness.SAME_WORK for share in by_time)
        if not is_by_time and abs(each.change_share or 0.0) > _ROUNDING:
            why = phrase("With as many launches as OLD: {}", uncapital(" ".join(causes_told(each))))
    times_s = [(old.time_s or 0.0, (new.time_s or 0.0) * old.launches / new.launches) for old, new in kernels]
    if all(old and new for old, new in times_s):
        factor = sum(new for _, new in times_s) / sum(old for old, _ in times_s)
        changes.append(f"takes {times(factor, 'less', 'the same')} time")
    before, after = (sum(side.launches for side in sides) for sides in zip(*kernels, strict=True))
    launches = f"{after:g} {'launch' if after == 1 else 'launches'} instead of {before:g}"
    if len(kernels) < len(document.kernels):
        launches += f" of the {when(len(kernels) > 1, f'{len(kernels)} ')}{document.nouns.of(len(kernels))} in both"
    in_all = _from_to(document) if document.has_energy else "".join(_time_change(document, ""))
    change = listed(changes) or "is not known to change"
    text = f"{_scope(document)}NEW has {launches}, and per launch {change}. In all: {in_all}."
    lead = [*_of_precision(document), *_unpriced(document), *filter(None, [why]), *_besides(document)]
    return Headline(capital(text), " ".join(lead), bits(document.marks))


def _besides(document: Document) -> Iterator[str]:
    """Yield a sentence on the time without kernels and on copies, if they changed by 5 % of kernels' time."""
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
        if whole := document.with_still:
            size = _size(replace(document, change_share=whole.change_share, interval_share=whole.interval_share), 0.0)
            still += f" (with it {_both(whole.old_j, whole.new_j, 'J')}: {size})"
        parts.append(still)
    old_s, new_s = old.copies_s or 0.0, new.copies_s or 0.0
    # A log without copies tells that there were none only where the other's, of the same kind, would tell them.
    formats = [{log.format for log in side.inputs} for side in (old, new)]
    if abs(new_s - old_s) > least_s and (old_s and new_s or formats[0] == formats[1]):
        parts.append(f"copies took {_both(old_s, new_s, 's')}")
    if parts:
        yield f"Besides, and not in it: {'; '.join(parts)}."


def _lead(document: Document) -> Iterator[str]:
    """Yield the sentences behind the headline's first: what caused the change, and what a meter saw of it."""
    sides = zip(("OLD", "NEW"), (document.old, document.new), strict=True)
    if document.change_j and likeness.is_shown(document):
        yield from _of_precision(document)
        sentences = " ".join(causes_told(document))
        waits = _of_waits(document, sentences)
        is_time_first = any(cause.what in _TIMES for cause in document.causes[:1])
        if is_time_first and not waits and (whys := likeness.likely_whys(document)[:_MOST_CHANGED]):
            sentences += f" {capital(listed([_factor_of(level) for level in whys]))}: likely why."
        clocks = next((fact for fact in document.unlike if fact.what == "clocks"), None)
        if clocks is not None and is_time_first:
            sentences += f" It ran at other clocks ({clocks.old} → {clocks.new} MHz)."
        yield from [*waits, sentences]
        if document.same_inputs and _is_at_other_clocks(document) and not document.above_constant:
            yield "Both have the time of one log: `eprof tune` predicts that at other clocks."
        elif assumed := [f"{label} at {side.own_clocks}" for label, side in sides if side.own_clocks]:
            yield f"Times are as logged, of {listed(assumed)}: `eprof tune` predicts them at other clocks."
        if document.nouns.is_of_cpu or waits:
            yield from _of_instructions(document, "DRAM bytes" in sentences)
        yield from _of_special_functions(document)

    old_j, new_j = document.old.energy_j.measured, document.new.energy_j.measured
    if old_j is None or new_j is None or not document.has_energy:
        return
    if old_j == new_j:
        yield f"Measured: the same, {quantity(old_j, 'J')}."
        return
    size = f"{quantity(abs(new_j - old_j), 'J')} ({percent(abs(new_j - old_j) / old_j)})"
    yield f"Measured by the meter: NEW {size} {by_sign(new_j - old_j, 'less', 'more')}{_doubt(document)}."


def _of_waits(document: Document, told: str = "") -> list[str]:
    """A sentence on the memory level that explains the time where instructions and DRAM do not; [] if `told` has it."""
    level = likeness.waited_for(document)
    if level is None or f"{LEVELS[level.name]} bytes" in told:
        return []
    waits = by_sign(level.new - level.old, "shorter", "longer")
    return [f"Likely {waits} waits for {LEVELS[level.name]}: it moves {_moved(level)}."]


def _factor_of(level: likeness.Level) -> str:
    """How much more or less a level moves, or is executed: "22.4 times fewer DRAM bytes"."""
    name = f"{LEVELS[level.name]} bytes" if level.name in LEVELS else level.name
    if level.factor <= 1 / _FACTOR:
        return f"{plain(1 / level.factor)} times fewer {name}"
    return f"{times(level.factor, 'fewer')} {name}"


def _moved(level: likeness.Level) -> str:
    """How many bytes a memory level moves: "9.00 times the bytes (640 kB → 5.76 MB)"."""
    if not level.old:
        return f"{quantity(level.new, 'B')}, none in OLD"
    return f"{times(level.factor, 'fewer')} bytes{bracketed(_both(level.old, level.new, 'B'))}"


def _of_precision(document: Document) -> Iterator[str]:
    """Yield a sentence on a precision that took over the work of another, and on the bits that it keeps."""
    changed = likeness.changed_precision(document)
    if changed is None:
        return
    new, old = (_arithmetic(word) for word in (changed.new, changed.old))
    text = f"{new} does the work of {old} ({quantity(changed.flops, 'flop')})"
    old_type, new_type = (likeness.BITS.get(word) for word in (changed.old, changed.new))
    if old_type is not None and new_type is not None:
        (old_bits, old_exponent), (new_bits, new_exponent) = old_type, new_type
        if new_bits != old_bits:
            text += f": factors keep {new_bits} bits instead of {old_bits}"
        elif new_exponent != old_exponent:
            text += f": exponents have {new_exponent} bits instead of {old_exponent}"
    yield f"{text}."


def _arithmetic(word: str) -> str:
    """Arithmetic of a type: "FP16 on tensor cores" of "tensor_fp16", "FP32 arithmetic" of "fp32"."""
    kind = word.removeprefix("tensor_")
    if kind == word:
        return f"{kind.upper()} arithmetic"
    return f"{kind.upper()} on tensor cores" if kind != "other" else "arithmetic on tensor cores"


def _of_instructions(document: Document, tells_bytes: bool) -> Iterator[str]:
    """Yield a sentence on how instructions, their classes and (unless `tells_bytes`) DRAM bytes of NEW differ."""
    changes = [text for text in _count_changes(document) if not (tells_bytes and "DRAM bytes" in text)]
    known = [(word, count) for word, count in document.counts.items() if word in likeness.CLASSES and count.old]
    largest = sorted(known, key=lambda item: -abs(item[1].change or 0.0))[:_MOST_CHANGED]
    details = [
        f"{times((count.new or 0.0) / (count.old or 1.0), 'fewer')} {uncapital(document.nouns.label(word))}"
        for word, count in largest
        if count.change
    ]
    fused = [document.counts[word] for word in ("fp64_fma", "fp32_fma") if word in document.counts]
    if any(count.new and not count.old for count in fused):
        details.append("multiply-adds instead of multiplies and adds")
    if changes:
        yield f"NEW {listed(changes[::-1])}{bracketed(', '.join(details))}."


def _of_special_functions(document: Document) -> Iterator[str]:
    """Yield how many special functions NEW executes, where that differs and they are not few."""
    special = document.counts.get("special")
    if special is None or not special.old or special.new is None:
        return
    classes = [document.counts[word].old or 0.0 for word in likeness.CLASSES if word in document.counts]
    factor = special.new / special.old
    if max(special.old, special.new) > likeness.SAME_WORK * sum(classes) and likeness.is_other(factor):
        what = f"special functions{document.nouns.pace} (divisions, roots, exponentials)"
        yield f"NEW executes {times(factor, 'fewer')} {what}."


def _size(document: Document, change: float) -> str:
    """By how much NEW's energy differs from OLD's: "24 % less energy (18 to 29 %)"."""
    share, ends = document.change_share, document.interval_share
    if share is None:
        return f"{quantity(abs(change), document.nouns.joule)} {by_sign(change, 'less', 'more')} {energy_of(document)}"
    less = f"{times(1 + share, 'less', 'the same')} {energy_of(document)}"
    if not ends or document.is_metered:
        return less
    if min(ends) < 0 < max(ends):
        return less + bracketed(
            f"the prices do not tell: from {' to '.join(times(1 + end, 'less', 'the same') for end in ends)}"
        )
    bounds = percent_span(*sorted(abs(end) for end in ends))
    if share >= 1:
        bounds = " to ".join(dict.fromkeys(plain(1 + end) for end in ends))
    elif 1 + share < _TENTH and min(ends) > -1:
        bounds = " to ".join(dict.fromkeys(plain(1 / (1 + end)) for end in reversed(ends)))
    return less + when(" to " in bounds, bracketed(bounds))


def _from_to(document: Document) -> str:
    """The compared energy of OLD and NEW, and the time: "9.2 J of 10.8 J → 7.0 J of 8.6 J, 12 % less time"."""
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


def energy_of(document: Document) -> str:
    """What a difference compares: "energy", "power", or "energy above constant power" where time is a model."""
    return document.nouns.energy + when(document.above_constant, " above constant power")


def _doubt(document: Document) -> str:
    test = document.tests.measured
    return when(test is not None and not test.shown, ", no more than repeats differ by chance")


def _both(old: float, new: float, unit: str) -> str:
    return f"{quantity(old, unit)} → {quantity(new, unit)}"


def interval(test: Test, unit: str) -> str:
    """The interval of a test in words: "from 1.2 J to 1.4 J"."""
    return f"from {quantity(test.low, unit)} to {quantity(test.high, unit)}"


def _time_change(document: Document, verb: str) -> Iterator[str]:
    """Yield how NEW's time differs, if it is known: "24 % less time" behind `verb`."""
    if document.speedup == 1 and document.same_inputs and _is_at_other_clocks(document):
        yield "if it took the same time"
    elif document.speedup is not None:
        yield f"{verb}{times(1 / document.speedup, 'less', 'the same')} time"


def _is_at_other_clocks(document: Document) -> bool:
    return any(step.because == "setting" for step in document.steps)


def _count_changes(document: Document) -> Iterator[str]:
    """Yield phrases on how instructions and DRAM bytes changed, but for what the answer begins with."""
    work = likeness.other_work(document)
    instructions = likeness.instructions(document)
    for weights, does in ((instructions, "executes {} instructions"), (likeness.DRAM, "moves {} DRAM bytes")):
        old, new = likeness.amounts(document, weights) or (0.0, 0.0)
        is_said = work is not None and weights is instructions and work.noun == "instructions"
        if old and not is_said:
            yield does.format(times(new / old, "fewer")) + document.nouns.pace


def _changed_counts(document: Document) -> Iterator[str]:
    """Yield the counts that changed most, "33 % more integer instructions", and whether they have a price."""
    counts = [(word, count) for word, count in document.counts.items() if count.change]
    counts.sort(key=lambda item: -abs(item[1].change or 0.0))
    unpriced = {lost.what for lost in document.unknown}
    for word, count in counts[:_MOST_CHANGED]:
        label, unit = uncapital(document.nouns.label(word)), COUNTS[word].unit
        is_plural = label.endswith("s") or unit not in ("instruction", "byte") or unit in label
        noun = label + when(not is_plural, f" {unit}s")
        text = _as_many(count.old or 0.0, count.new or 0.0, noun + document.nouns.pace)
        yield text + when(word in unpriced, " (without a price)")
    if len(counts) > _MOST_CHANGED:
        yield f"{len(counts) - _MOST_CHANGED} other counts"


def times(ratio: float, less: str, same: str = "the same number of") -> str:
    """How many times as much: "7.94 times the", "40 % fewer", "12.1 times fewer", `same` where nothing changed."""
    if abs(ratio - 1) < _ALMOST:
        return when(abs(ratio - 1) > _ROUNDED, "nearly ") + same
    if ratio >= 2:
        return f"{plain(ratio)} times the"
    if ratio == 0:
        return "no"
    if ratio * _UNREADABLE <= 1:
        return "next to no"
    if ratio < _TENTH:
        return f"{plain(1 / ratio)} times {less}"
    return more_or_less(ratio - 1, less)


LEVELS = {"shared": "shared memory", "l1": "L1", "l2": "L2", "l3": "L3", "dram": "DRAM", "system": "host memory"}
_PROSE = {"int": "integer instructions", "sfu": "special functions", "tensor": "tensor operations"}
_PROSE |= {group: f"{GROUPS[group]} instructions" for group in FLOAT_PARTS}
_PRICES = {
    "setting": "the other clocks",
    "cost": "the other cost table",
    "meter": "what the meters saw beyond counts and time",
    "limit": "the board's power limit",
}
_NAMES = {
    **LEVELS,
    **_PRICES,
    "int": "integer",
    "sfu": "special functions",
    "warp_issue": "warp instructions",
    "computation": "computation",
    "data": "data movement",
    "time": "constant power",
    "cpu_time": "CPU time",
    "model": "constant power",
    "appeared": "what only NEW has",
    "vanished": "what only OLD has",
}
ONLY_IN = {"appeared": "NEW", "vanished": "OLD"}
# What is a cause as a whole, the constant power in it too.
_TIMES = ("time", "cpu_time")
_WHOLE = (*_PRICES, "appeared", "vanished", "model", *_TIMES)
# A part this small against the change is not worth words.
_WORTH = 0.1
# From this share on, parts nearly cancel, and a share of what is left says nothing.
CANCELS = 2
_MOST = 3  # causes in a sentence
# From this factor on, "1.5 times fewer" says more than "33 % fewer".
_FACTOR = 1.5
_UNREADABLE = 1000


def causes_told(document: Document) -> Iterator[str]:
    """Yield a sentence on what caused a change: the largest cause that the prices tell, else those that may be it."""
    nouns, change_j = document.nouns, document.change_j or 0.0
    verb, whole = "saves", "the increase"
    if change_j < 0:
        verb, whole = "takes back", "the saving"
    low_j, high_j = document.interval_j or (change_j, change_j)
    if low_j < 0 < high_j:  # which of both it is, is not known
        whole = "the change"
    along = [cause for cause in document.causes if cause.change_j * change_j > 0]
    if not along:
        yield "Its parts cancel."
        return
    chosen = _chosen(along)
    if not chosen:
        least_j = _WORTH * abs(along[0].change_j)
        cancels = along[0].change_j / change_j > CANCELS

        def size(cause: Cause) -> str:
            return quantity(abs(cause.change_j), nouns.joule) if cancels else percent(cause.change_j / change_j)

        worth = [cause for cause in along if abs(cause.change_j) >= least_j][:_MOST]
        parts = [f"{_cause(cause, nouns)} ({size(cause)})" for cause in worth]
        answer = f"{capital(listed(parts, 'or'))}: the prices do not tell which part is the largest"
        if cancels:
            against = [cause for cause in document.causes if cause.change_j * change_j < -least_j * abs(change_j)]
            backs = ", ".join(f"{_name(cause.what, nouns)} ({size(cause)})" for cause in against[:_MOST])
            answer += phrase("; against it {}", backs)
        yield f"{answer}."
        return
    answer = f"{_with_times(chosen, nouns)}: {_shares(chosen, change_j, whole, nouns)}"
    # Far more than the change is taken back by what is against it, whether the prices tell how much or not.
    cancels = abs(sum(cause.change_j for cause in chosen)) > CANCELS * abs(change_j)
    against = [cause for cause in document.causes if cause.change_j * change_j < 0 and (cause.is_told or cancels)]
    if against and abs(against[0].change_j) >= _WORTH * abs(change_j):
        answer += f"; {_name(against[0].what, nouns)} {verb} {quantity(abs(against[0].change_j), nouns.joule)}"
    # What would be the largest cause, where the prices do not tell how large it is.
    largest = along[0]
    groups = [step for step in document.steps if largest.what in (step.group, *step.words)]
    ends_j = next((step.interval_j for step in groups if step.interval_j is not None), None)
    if largest not in chosen and not largest.is_told and ends_j is not None:
        share = percent_span(*sorted(end / change_j for end in ends_j))
        answer += f"; {_cause(largest, nouns)} may be {share} of {whole}, which the prices leave open"
    yield f"{capital(answer)}."


def cause_of_kernel(kernel: Kernel, nouns: Nouns, brief: bool = False) -> str:
    """The cause of a kernel's change: "4.10 times fewer DRAM bytes, so 496 µs shorter"; empty if none is clear.

    brief: the first part only, without the time that follows.
    """
    change = kernel.change_j or 0.0
    if kernel.status != "matched":
        return f"only in {ONLY_IN[kernel.status]}"
    chosen = _chosen([cause for cause in kernel.causes if cause.change_j * change > 0])
    if brief:
        return "".join(_cause(cause, nouns) for cause in chosen[:1])
    return _with_times(chosen, nouns)


def _chosen(along: Sequence[Cause]) -> list[Cause]:
    """Of causes of one sign, largest first, the first whose size the prices tell, or the first if it dwarfs all others.

    A count that explains no time has the first cause of time behind it, or the reverse; [] if none is told.
    """
    clear = [cause for cause in along if cause.is_told]
    if along and sum(abs(cause.change_j) for cause in along[1:]) < _WORTH * abs(along[0].change_j):
        clear = [along[0]]
    if not clear or (clear[0].constant_j and clear[0].what not in _TIMES):
        return clear[:1]
    first, *others = clear
    beside = [cause for cause in others if (cause.what in _TIMES) != (first.what in _TIMES)]
    worth = [cause for cause in beside if abs(cause.change_j) >= _WORTH * abs(first.change_j)]
    return sorted([first, *worth[:1]], key=lambda cause: cause.what in _TIMES)


def _with_times(causes: Sequence[Cause], nouns: Nouns) -> str:
    """Causes with the time that follows from each: "4.10 times fewer DRAM bytes, so 496 µs shorter and ..."."""
    times = [when(cause.constant_j and cause.what not in _WHOLE, f", so {_time(cause)}") for cause in causes]
    return " and ".join(_cause(cause, nouns) + time for cause, time in zip(causes, times, strict=True))


def _time(cause: Cause) -> str:
    return f"{quantity(abs(cause.time_s), 's')} {by_sign(cause.time_s, 'shorter', 'longer')}"


def _cause(cause: Cause, nouns: Nouns) -> str:
    """A cause of the change as a phrase: "4.10 times fewer DRAM bytes", "the other clocks", "496 µs longer run"."""
    if cause.what in _PRICES:
        return _PRICES[cause.what]
    if cause.unit == "J":  # of two GPUs: energies alone compare
        new, old = (quantity(joules, nouns.joule) for joules in (cause.new, cause.old))
        return f"{new} instead of {old} of {_name(cause.what, nouns)}"
    match cause.what:
        case "cpu_time":
            return f"{quantity(cause.new, 's')} instead of {quantity(cause.old, 's')} of CPU time"
        case "time" if not cause.time_s:
            return f"more or fewer {nouns.kernels} at a time, which share constant power"
        case "time":
            return f"{_time(cause)} run"
        case "model":
            return f"a modelled time {_time(cause)}, at another efficiency"
        case "launches":
            return f"{_fewer(cause, nouns.launches)} ({cause.old:g} to {cause.new:g})"
        case "appeared" | "vanished":
            number = max(cause.old, cause.new)  # the other side has none
            article = "the" if number == 1 else f"{number:g}"
            return f"{article} {nouns.of(number)} that only {ONLY_IN[cause.what]} has"
    if cause.instead:
        return f"{nouns.group(cause.instead)} instead of {nouns.group(cause.what)}"
    return _fewer(cause, _noun(cause.what, nouns) + nouns.pace) + bracketed(cause.through or "")


def _fewer(cause: Cause, noun: str) -> str:
    """How the count of a cause changed, as `_as_many`; or that its kinds did, if it did not."""
    old, new = cause.old, cause.new
    if (new - old) * (cause.change_j - cause.constant_j) < 0 or old == new:
        return f"another mix of {noun}"
    return _as_many(old, new, noun)


def _as_many(old: float, new: float, noun: str) -> str:
    """How a count changed from `old` to `new`: "4.10 times fewer DRAM bytes", "12 % more integer instructions"."""
    if not old:
        return f"{quantity(new, '')} {noun}, none in OLD"
    if not new:
        return f"none of the {quantity(old, '')} {noun}"
    if max(old / new, new / old) >= _UNREADABLE:
        return f"{quantity(new, '')} instead of {quantity(old, '')} {noun}"
    if old >= _FACTOR * new:
        return f"{plain(old / new)} times fewer {noun}"
    if new >= _FACTOR * old:
        return f"{plain(new / old)} times the {noun}"
    return f"{more_or_less(new / old - 1, 'fewer')} {noun}"


def _shares(causes: Sequence[Cause], change_j: float, whole: str, nouns: Nouns) -> str:
    """The shares of the change that causes have: "DRAM 31 % and constant power 60 % of the saving"."""
    parts: defaultdict[str, float] = defaultdict(float)
    for cause in causes:
        constant_j = cause.constant_j * (cause.what not in _WHOLE)
        parts[_name(cause.what, nouns)] += cause.change_j - constant_j
        parts["constant power"] += constant_j
    shares = {name: joules / change_j for name, joules in parts.items() if joules}
    total = sum(shares.values())
    if total > CANCELS:
        return f"{quantity(abs(total * change_j), nouns.joule)} {by_sign(change_j, 'less', 'more')}"
    if len(shares) < 2:
        return f"{'all' if abs(total - 1) < 5e-4 else percent(total)} of {whole}"
    return f"{listed([f'{name} {percent(share)}' for name, share in shares.items()])} of {whole}"


def _noun(what: str, nouns: Nouns) -> str:
    """The noun of what a cause counts: "DRAM bytes", "integer instructions"."""
    if what in LEVELS:
        return f"{LEVELS[what]} bytes"
    if what in nouns.labels or (what in COUNTS and what not in _PROSE):
        return _name(what, nouns)
    return _PROSE.get(what) or f"{GROUPS[what]} instructions"


def _name(what: str, nouns: Nouns) -> str:
    """The short name of a cause in a sentence: "DRAM", "integer", "constant power"."""
    if what == "launches":
        return nouns.launches
    if what in nouns.labels or what in COUNTS and what not in GROUPS and what not in _NAMES:
        return uncapital(nouns.label(what))
    return _NAMES.get(what) or GROUPS[what]

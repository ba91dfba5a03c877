"""Sentences and tables around a difference's answer: what is not the same, trust, gates; steps, kernels, counts."""

import math
from collections.abc import Sequence
from operator import not_

from eprof.base.labels import fitted, labels
from eprof.base.optional import gathered, less, mapped, ratio
from eprof.base.text import bracketed, by_sign, capital, counted, cut, few, phrase, when
from eprof.base.vocabulary import CONSTANT, GROUPS, Nouns
from eprof.commands.diff import likeness
from eprof.commands.diff.answer import ONLY_IN, cause_of_kernel, interval, times
from eprof.commands.diff.causes import LIMIT, PRICES
from eprof.commands.diff.matching import ALONE, BARE, EQUAL, SIMILAR
from eprof.commands.diff.schema import Document, Gate, Side, Step
from eprof.show import cost_words, intervals
from eprof.show.amounts import MISSING, SIMULATED, bits, without
from eprof.show.blocks import (
    Bar,
    Cell,
    Change,
    Column,
    Factor,
    Legend,
    Medium,
    Name,
    Quantity,
    Row,
    Share,
    Table,
    Tag,
    Verdict,
    Written,
    numbers,
    signed_quantity,
    texts,
)
from eprof.show.cost_words import devices_named
from eprof.show.numbers import NARROW, percent, plain, quantity, whole

FAMILIES = {"computation": "Computation", "data": "Data movement", "constant": "Constant power"}
_MOST_NAMED = 3
_NAME, _LONGEST = 18, 60
_TENTH = 0.1  # of all that changed
_PRICES = {"setting": ", other setting", "cost": ", other price", "meter": ", by the meter"}
_OF_FACTS = {"clocks": " MHz", "setting": " MHz", "threads": " (other work?)"}
_SIDES = (Column("OLD"), Column("NEW"), Column("change"))
_SYMBOLS = {"byte": "B", "flop": "flop", "s": "s"}  # others are numbers of things
_STATUSES = {"appeared": "new", "vanished": "gone"}
_REASONS = {word: word for word in ("counts", "time", "setting", "meter")}
_REASONS |= {"cpu_time": "CPU time", "cost": "price", "limit": "power limit", "processor": "each its own"}


def unmarked(document: Document) -> Document:
    """The document without the marks that all its numbers share: the line of trust says those once."""
    return without(document, shared_by_changes(document))


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
        return f"{nouns.of(step.names).capitalize()} only in {ONLY_IN[step.kernels]}"
    if step.group == LIMIT:
        return "Power limit"
    name_of = nouns.group if step.group in GROUPS else nouns.label
    return (FAMILIES.get(step.group) or name_of(step.group)) + _PRICES.get(step.because or "", "")


def moving(document: Document) -> list[Step]:
    """The steps of a difference that change something; none of strangers, where they are no change."""
    if likeness.are_strangers(document):
        return []
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


def beside(document: Document) -> list[str]:
    """Sentences beside a difference's answer: constant power where time is a model, what flops and bytes alone say."""
    if not document.change_j or likeness.are_strangers(document):
        return []
    sentences = []
    if above := document.above_constant:
        ends_j = zip(above.constant_old_j, above.constant_new_j, strict=True)
        efficiencies = map(percent, filter(None, [above.efficiency_old, above.efficiency_new]))
        texts = [*([quantity(joules, "J") for joules in both] for both in ends_j), efficiencies]
        fastest, slowest, efficiency = (" → ".join(dict.fromkeys(both)) for both in texts)  # once if nothing changed
        slower = when(slowest != fastest, f", {slowest} at {efficiency} of it")
        sentences.append(
            f"Beside it constant power: {fastest} at the roofline's speed{slower}, because time is a model."
        )

    # A second opinion: what it knows nothing of, caches, occupancy, other instructions, explains the rest.
    model = document.model
    if model.missing or (model.work_factor == 1 and model.traffic_factor == 1):
        return sentences
    energy = f"{plain(model.greenup)} times less energy"
    if model.greenup < 1:
        energy = f"{plain(1 / model.greenup)} times the energy"
    saved = "with so many more bytes, fewer flops could not save any"
    if (limit := model.break_even_work_factor) > 0:
        saved = f"with these bytes NEW saves energy as long as it does at most {plain(limit)} times the flops of OLD"
    sentences.append(
        "By flops and DRAM bytes alone, at the peaks of the cost table, NEW would have "
        f"{plain(model.speedup)} times the speed and take {energy}; {saved}."
    )
    return sentences


def ratios(document: Document) -> str:
    """Speedup, greenup and powerup of a difference, as far as they are known; empty if none is."""
    if not likeness.has_finding(document):
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
    if test.shown and document.rests_on_time and not tests.dated:
        verdict += " if OLD and NEW ran in turns, which logs without start times do not tell"
    return (
        f"Over {repeats} the mean{of_what} changes by {quantity(test.change, unit)}, with a 95 % interval "
        f"{interval(test, unit)} and {p} (Welch's t test): {verdict}."
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
    settings = {", ".join(cost_words.setting(costs.setting) for costs in side.prices) for side in sides}
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
        "cpus": "CPUs counted",
    }
    texts = {"kernels": _unlike_kernels(document)}
    for fact in document.unlike:
        old, new = (cut(text, _LONGEST) for text in (fact.old, fact.new))
        label = labels.get(fact.what, fact.what)
        texts[fact.what] = f"{label} {old} → {new}{_OF_FACTS.get(fact.what, '')}"
        if fact.what == "repeats":
            apart = [f"{side} in {text}" for side, text in (("OLD", old), ("NEW", new)) if text]
            texts["repeats"] = f"repeats among themselves{bracketed(', '.join(apart))}"
        elif fact.what == "damage":
            texts["damage"] = f"{fact.old or fact.new} is cut off or damaged, so what it counts is at least so much"
        elif fact.what == "timing":
            texts["timing"] = f"times of {fact.old or fact.new} are estimated, as of launches that counters slow down"
        elif fact.what == "meter":
            texts["meter"] = f"{fact.old or fact.new} alone is scaled to what a meter saw"
        elif fact.what == "counters":
            texts["counters"] = f"counted from other counters{bracketed(new)}: {old}"
        elif not old or not new:
            texts[fact.what] = f"{label} of {when(old, 'OLD') or 'NEW'} alone: {old or new}"
    if "clocks" in texts:  # the prices are those of the clocks
        texts.pop("setting", None)
    is_said = likeness.are_strangers(document) or likeness.launched_otherwise(document)
    if is_said or likeness.is_one_run(document):  # the headline says it
        texts.pop("launches", None)
    elif "launches" in texts and not all(kernel.match for kernel in document.kernels):
        texts["launches"] += f", of {document.nouns.kernels} that are in both"
    work = likeness.work_of(document)
    if work is not None and "arguments" in texts:
        amount = "as many" if work.is_same else times(work.factor, "fewer")
        texts["arguments"] += bracketed(f"{amount} {work.noun}{when(not work.is_same, ': not the same work')}")
    return phrase("Not the same: {}.", "; ".join(filter(None, texts.values())))


def _unlike_kernels(document: Document) -> str:
    """How the kernels of OLD and NEW differ: none or few have a namesake, the only one has another name; or empty."""
    nouns, matches = document.nouns, [kernel.match for kernel in document.kernels]
    named = sum(match is not None and match.how not in (SIMILAR, EQUAL) for match in matches)
    most = max(sum(getattr(kernel, side) is not None for kernel in document.kernels) for side in ("old", "new"))
    is_said = likeness.are_strangers(document) or likeness.is_one_run(document)  # by the headline
    are_mostly_paired = min(likeness.in_common(document)[:2]) >= likeness.HALF
    if None in matches and 2 * named < most and not (is_said or are_mostly_paired):
        few_are = f"only {named} of {most} {nouns.kernels} are"
        if named < 2:
            few_are = f"{'only 1' if named else 'none'} of {most} {nouns.kernels} is"
        return f"{few_are} in both (one program? --match OLD=NEW pairs them)"
    pairs = [(kernel.old, kernel.new) for kernel in document.kernels if kernel.match and kernel.match.how == EQUAL]
    names = list(dict.fromkeys(side.name for each in document.kernels for side in (each.old, each.new) if side))
    label_of = dict(zip(names, labels(names, _NAME), strict=True))
    renamed = [f"{label_of[old.name]} → {label_of[new.name]}" for old, new in pairs if old and new]
    if renamed:
        return f"{nouns.of(len(renamed))} {few(renamed, _MOST_NAMED)} (the same by counts)"
    if len(matches) == 1 and matches[0] is not None and matches[0].how in (ALONE, BARE, SIMILAR):
        names = [side.name for side in (document.kernels[0].old, document.kernels[0].new) if side is not None]
        commands = [log.command for side in (document.old, document.new) for log in side.inputs]
        are_programs = all(name in commands for name in names)  # which have program and arguments to differ in
        if not are_programs and labels(names[:1], _LONGEST) != labels(names[1:], _LONGEST):
            is_known = matches[0].how == BARE or likeness.work_of(document) is not None
            unknown = when(not is_known, " (whether the work is the same is not known)")
            return f"{nouns.kernel} {' → '.join(labels(names, _LONGEST))}{unknown}"
    return ""


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
    prices = cost_words.all_named(tables) or "no cost table (--costs)"
    if not is_served:
        whose = when(nouns.is_of_cpu, f"of {tables[0].device}, ")
        prices += f", {whose}not made for this {nouns.processor}"
    counts = any("simulated" in count.marks for count in document.counts.values())
    time = any(bits(side.time_marks) & SIMULATED for side in sides)
    of_counts = when(counts, f"{nouns.simulated} simulated{bracketed(_simpler(document))}")
    simulated = of_counts, when(time, "time modelled")
    # Marks that all numbers have stand beside none of them.
    shared = shared_by_changes(document)
    # What one side knows most of comes first.
    one_sided = sorted(document.uncompared, key=lambda lost: -max(lost.old_j or 0.0, lost.new_j or 0.0))
    left_out = list(dict.fromkeys(nouns.label(lost.what) for lost in (*one_sided, *document.unknown)))
    similar = sum(kernel.match is not None and kernel.match.how == SIMILAR for kernel in document.kernels)
    are_alone = document.old.repeats == 1, document.new.repeats == 1
    joules = "watts" if document.a_second else "joules"
    labelled = zip(("OLD", "NEW"), sides, strict=True)
    parts = [
        grade,
        prices,
        " and ".join(filter(None, simulated)),
        when("estimated" in shared, f"all {joules} estimated"),
        when("assumed" in shared, f"all {joules} rest on assumptions"),
        phrase("clocks of {} assumed", " and ".join(label for label, side in labelled if _assumes_clocks(side))),
        phrase("not in it: {}", few(left_out, _MOST_NAMED) if document.counts else ""),
        *_counted_alone(document),
        when(similar, f"{counted(similar, nouns.kernel)} paired by similar names"),
        phrase("one run of {}", {(True, True): "each", (True, False): "OLD", (False, True): "NEW"}.get(are_alone, "")),
    ]
    return f"Trust: {'; '.join(filter(None, parts))}."


def _assumes_clocks(side: Side) -> bool:
    return any((costs.setting_from or "").endswith("assumed") for costs in side.prices)


def _counted_alone(document: Document) -> list[str]:
    """What OLD counted and NEW did not, and the reverse: "counted by OLD alone: DRAM read"; none where it is priced."""
    if document.old.prices or document.new.prices:
        return []
    counts = document.counts.items()
    of_old = [document.nouns.label(word) for word, count in counts if count.new is None and count.old]
    of_new = [document.nouns.label(word) for word, count in counts if count.old is None and count.new]
    sides = {"OLD": of_old, "NEW": of_new}
    return [f"counted by {side} alone: {few(labels, _MOST_NAMED)}" for side, labels in sides.items() if labels]


def _simpler(document: Document) -> str:
    """How the simulated device counts what changed most simpler than a GPU, "no caches"; empty if as a GPU would."""
    least_j = _TENTH * sum(abs(step.change_j) for step in document.steps)
    words = [word for step in document.steps if abs(step.change_j) > least_j for word in step.words]
    if not document.has_energy:
        words = [word for word, count in document.counts.items() if count.change]
    simpler = [document.counts[word].simpler or "" for word in words if word in document.counts]
    return ", ".join(filter(None, dict.fromkeys(simpler)))


def sides_table(document: Document) -> Table:
    """Table of both sides: energy by family, time, power and what a meter saw, OLD beside NEW."""
    both, joule = (document.old, document.new), document.nouns.joule
    rows = []
    is_priced = any(side.costs is not None for side in both)
    for family, label in [*FAMILIES.items(), ("total", document.nouns.energy.capitalize())] * is_priced:
        energies = [Quantity(getattr(side.energy_j, family), joule, bits(side.energy_marks[family])) for side in both]
        parts = [part for part in document.parts if family in (part.kind, "total")]
        change = None if document.change_j is None else float(sum(part.change_j for part in parts))
        # Each word of each kernel once, though counts and price are two parts of it.
        compared_old_j = sum({(part.what, part.kernel): part.old_j for part in parts}.values())
        rows.append(_beside(label, energies, change, compared_old_j))
    note = ""
    if refits := document.intervals:
        is_repriced = any(part.because in PRICES for part in document.parts)
        pairing = {(True, False): "alike", (True, True): "paired"}.get((refits.paired, is_repriced), "apart")
        note = intervals.of_change(document.nouns, refits.share, refits.replicas, pairing, refits.within)
        # The interval of a modelled total says too little.
        if not document.above_constant:
            totals = (intervals.cell((side.interval_j or {}).get("total"), joule) for side in both)
            rows.append(
                Row([intervals.label(refits.share), *totals, _interval_cell(document, document.interval_j), ""])
            )
    times = [Quantity(side.time_s, "s", bits(side.time_marks)) for side in both]
    rows.append(_beside("Time", times, document.change_time_s, document.old.time_s))
    powers = [Quantity(side.power_w, "W", bits(side.marks)) for side in both]
    metered = [Quantity(side.energy_j.measured, "J") for side in both]
    for label, amounts in (("Mean power", powers), ("Measured", metered)):
        before, after = (amount.value for amount in amounts)
        if before is not None and after is not None and not (amounts[0].marks | amounts[1].marks) & MISSING:
            change = (after - before) * (not math.isclose(after, before))  # no rounding
            rows.append(_beside(label, amounts, change, before))
    columns = [*_SIDES, Column("of OLD")]
    if likeness.are_strangers(document):  # what one takes more than the other is no change
        columns[2:] = [Column("", media=Medium.NONE)] * 2
    return Table([Column("", align="left"), *columns], rows, note=note)


def _beside(label: str, both: Sequence[Quantity], change: float | None, whole: float | None) -> Row:
    """A row of `sides_table`: a quantity of OLD and of NEW, its change, and that as a share of `whole`."""
    cell = Change(change, both[0].unit, (both[0].marks | both[1].marks) & ~MISSING)
    return Row([label, *both, cell, Share(ratio(change, whole), signed=True)])


def _changed(document: Document, change_j: float | None, marks: Sequence[str]) -> Change:
    """The cell of a change in J or W, never marked as a lower bound: it is of what both sides know."""
    return Change(change_j, document.nouns.joule, bits(marks) & ~MISSING)


def steps_table(document: Document) -> Table:
    """Table of the steps of the change, largest first, for the terminal and Markdown; a page has bars instead."""
    largest = max((abs(step.change_j) for step in document.steps), default=0.0) or 1.0
    change = document.change_j
    whole_j = change if likeness.tells_shares(document) else None
    columns = [
        Column("what changed", align="left"),
        Column("by"),
        _interval_column(document),
        Column("share"),
        Column("less · more", align="center", media=Medium.TERMINAL),
    ]
    rows = []
    for step in moving(document):
        by, ends = _changed(document, step.change_j, step.marks), _interval_cell(document, step.interval_j)
        share, bar = Share(ratio(step.change_j, whole_j)), Bar(step.change_j / largest)
        rows.append(Row([step_label(step, document.nouns), by, ends, share, bar]))
    by, ends = _changed(document, change, document.marks), _interval_cell(document, document.interval_j)
    rows.append(Row(["change", by, ends, Share(ratio(change, whole_j)), ""], total=True))
    return Table(columns, rows, note=unchanged(document))


def _interval_column(document: Document) -> Column:
    if document.intervals is None:
        return Column("", media=Medium.NONE)
    return Column(intervals.label(document.intervals.share))


def _interval_cell(document: Document, ends: Sequence[float] | None) -> str:
    return intervals.cell(ends, document.nouns.joule, signed=True)


def kernels_table(document: Document, limit: int | None = None) -> Table:
    """Table of the kernels with the largest change, of `limit` at most; by time where no energy is compared."""
    has_energy, unit = document.has_energy, document.unit
    shown = document.kernels[:limit]
    changes = changes_of(document)
    largest = max((abs(change or 0.0) for change, _ in changes), default=0.0) or 1.0
    ratios = Medium.PAGE | Medium.MARKDOWN
    columns = [
        Column(document.nouns.kernel, align="left"),
        *_SIDES,
        _interval_column(document),
        Column("", media=Medium.PAGE),
        Column("of OLD"),
        Column("speedup", media=ratios),
        Column("calls", media=Medium.PAGE),
    ]
    rows = []
    for kernel, (change, share), name in zip(shown, changes, labels([kernel.name for kernel in shown]), strict=False):
        remarks = []
        if kernel.old is not None and kernel.match is not None and kernel.match.how != "name":
            # Back ticks are around the name here; no real name holds any.
            was = labels([kernel.old.name])[0].replace("`", "'")
            remarks.append(f"was `{was}`: {kernel.match.how}, {kernel.match.score:.2f}")
        if kernel.status not in _STATUSES:
            remarks.append(cause_of_kernel(kernel, document.nouns))
        launches = [side.launches for side in (kernel.old, kernel.new) if side is not None]
        amounts: list[Cell] = ["–", "–"]
        for place, side in enumerate((kernel.old, kernel.new)):
            if side is not None and has_energy:
                amounts[place] = Quantity(side.energy_j, unit, bits(side.marks))
            elif side is not None:
                amounts[place] = Quantity(side.time_s, "s")
        # What one of two strangers alone has is shown whole, and the interval is of what both sides know.
        ends = kernel.interval_j if change == kernel.change_j is not None else None
        cells: list[Cell] = [
            Name(name, kernel.name, "; ".join(filter(None, remarks))),
            *amounts,
            Change(change, unit, has_energy * bits(kernel.marks) & ~MISSING),
            _interval_cell(document, ends),
            Bar((change or 0.0) / largest),
            Tag(_STATUSES[kernel.status]) if kernel.status in _STATUSES else Share(share, signed=True),
            Factor(kernel.speedup),
            Written(" → ".join(dict.fromkeys(f"{number:g}" for number in launches)), launches[-1]),
        ]
        rows.append(Row(cells))
    left_out = ""
    if others := changes[len(shown) :]:
        together = signed_quantity(sum(change or 0.0 for change, _ in others), unit)
        left_out = f"{whole(len(others))} other {document.nouns.of(len(others))}, together {together}"
    return Table(columns, rows, left_out=left_out, browsable=True)


def changes_of(document: Document) -> list[tuple[float | None, float | None]]:
    """The change of each kernel between OLD and NEW in J, or in s if no energy is compared, and its share of OLD.

    Where it did not run, it takes nothing; what one of two strangers alone has takes all that is known of it.
    """
    are_strangers = likeness.are_strangers(document)
    damaged = {label for fact in document.unlike if fact.what == "damage" for label in (fact.old, fact.new)}
    changes: list[tuple[float | None, float | None]] = []
    for kernel in document.kernels:
        if ("OLD" in damaged and kernel.old is None) or ("NEW" in damaged and kernel.new is None):
            changes.append((None, None))  # nobody knows whether it ran
            continue
        what = "time_s"
        if document.has_energy:
            what = "energy_j" if are_strangers and kernel.match is None else "compared_j"
        old, new = (getattr(side, what, 0.0) for side in (kernel.old, kernel.new))
        change = kernel.change_j if what == "compared_j" else less(new, old)
        changes.append((change, ratio(change, old)))
    return changes


def counts_table(document: Document) -> Table:
    """Table of changed counts: a row a part of the matched kernels, largest first, then what costs nothing."""
    columns = [
        *texts(f"count{document.nouns.pace}"),
        *_SIDES,
        *texts("by"),
        *numbers(document.nouns.energy),
        _interval_column(document),
    ]
    rows = []
    parts = [part for part in document.parts if part.kernel is None]
    priced = {part.what for part in parts}
    for part in parts:
        # The marks of the count itself, not of its price.
        marks = bits(getattr(document.counts.get(part.what), "marks", ()))
        if part.what == CONSTANT:
            marks = bits(document.old.time_marks) | bits(document.new.time_marks)
        unit, marks = _SYMBOLS.get(part.unit, ""), marks & ~MISSING
        change = "" if part.because in PRICES else Change(less(part.new, part.old), unit)
        by, ends = _changed(document, part.change_j, part.marks), _interval_cell(document, part.interval_j)
        amounts = Quantity(part.old, unit, marks), Quantity(part.new, unit, marks)
        rows.append(Row([document.nouns.label(part.what), *amounts, change, _REASONS[part.because], by, ends]))
    for word in (word for word in document.counts if word not in priced):
        count = document.counts[word]
        unit, marks = _SYMBOLS.get(count.unit, ""), bits(count.marks)
        amounts = Quantity(count.old, unit, marks), Quantity(count.new, unit, marks)
        rows.append(Row([document.nouns.label(word), *amounts, Change(count.change, unit), "", "", ""]))
    return Table(columns, rows)


def left_out_table(document: Document) -> Table | None:
    """Table of what is not in the difference: word, why, what OLD and NEW know of it; None if nothing is."""
    label, joule = document.nouns.label, document.nouns.joule
    unknown = gathered((word.why, label(word.what)) for word in document.unknown)
    rows = [
        Row([label(word.what), word.why, Quantity(word.old_j, joule), Quantity(word.new_j, joule)])
        for word in document.uncompared
    ]
    rows += [Row([", ".join(words), why, Quantity(None), Quantity(None)]) for why, words in unknown.items()]
    if not rows:
        return None
    return Table([*texts("count", "why"), *numbers("known of OLD", "known of NEW")], rows)

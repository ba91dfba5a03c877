"""The one thing to know, as a sentence chosen by rule (report-design.md 6), and what follows from it."""

from dataclasses import dataclass

from eprof.base.vocabulary import COMPUTATION, COUNTS, DATA, GROUPS
from eprof.words.badges import ASSUMED, MISSING, Amount
from eprof.words.names import short
from eprof.words.numbers import percent, quantity, whole
from eprof.words.view import DRAM, View, number

_PROSE = {"shared": "shared memory", "system": "host memory", "requested": "requested bytes"}
_VERBS = {"sfu": "Special functions take", "other": "Other instructions take"}
_LEVER = {
    "tensor": "Fewer tensor instructions save",
    "int": "Fewer integer instructions save",
    "sfu": "Fewer special functions save",
    "other": "Fewer instructions that are not arithmetic save",
}


@dataclass(frozen=True)
class Headline:
    """The sentence, what follows from it, and the marks that both carry."""

    sentence: str
    consequence: str
    marks: int


def headline(view: View) -> Headline:
    """Choose the sentence for a document."""
    if not view.has_energy:
        return _counts(view)
    total, above, constant = view.energy("total"), view.above, view.energy("constant")
    if not total.value:
        why = "The time of all kernels is zero." if view.time.value == 0 else _rest(view)
        return Headline("Nothing that was counted costs energy.", why, total.marks)
    if above.value is None:
        return _constant_alone(view, constant)
    if (constant.value or 0) >= 0.5 * total.value:
        return _constant(view, constant, above)
    if (view.energy(DATA).value or 0) >= 0.5 * above.value:
        return _data(view, above)
    return _computation(view, above)


def at_least(amount: Amount, unit: str) -> str:
    """An amount in a sentence: "12.4 J" or "at least 12.4 J"."""
    text = quantity(amount.value or 0, unit)
    return f"at least {text}" if amount.lower else text


def _above_share(view: View, share: str) -> str:
    """Open a sentence about a share of what is above constant power: of the predicted, or of what is known of it."""
    above, total = view.above, view.energy("total")
    known = quantity(above.value or 0, "J")
    if not above.marks & MISSING:
        return f"{share} of the predicted {known} above constant power"
    whole_of_it = quantity(total.value or 0, "J")
    start = share[0].lower() + share[1:] if share.startswith(("Moving", "Other", "Special", "Computation")) else share
    return f"At least {whole_of_it} predicted; {start} of the {known} known above constant power"


def _constant(view: View, constant: Amount, above: Amount) -> Headline:
    total = view.energy("total")
    share, joules = percent((constant.value or 0) / (total.value or 1)), quantity(total.value or 0, "J")
    start = (
        f"At least {joules} predicted; {share} of what is known"
        if total.lower
        else f"{share} of the predicted {joules}"
    )
    power = number((view.costs or {}).get("constant_power_w"))
    draws = (
        f": the board {_draws(constant)} {quantity(power, 'W')} for {at_least(view.time, 's')} whatever the GPU does"
        if power
        else ""
    )
    return Headline(
        f"{start} is constant power{draws}.",
        _join("Finishing sooner saves the most.", _above(view, above), _largest(view)),
        total.marks,
    )


def _above(view: View, above: Amount) -> str:
    data = view.energy(DATA)
    if not above.value:
        return "Nothing else that was counted costs energy."
    if data.value is None:
        return f"Computation adds {at_least(above, 'J')}; what data movement adds is not known."
    if view.energy(COMPUTATION).value is None:
        return f"Data movement adds {at_least(above, 'J')}; what computation adds is not known."
    return f"Of the {at_least(above, 'J')} above constant power, {percent(data.value / above.value)} is data movement."


def _draws(constant: Amount) -> str:
    """The board that was profiled may not be the one whose constant power the table gives."""
    return "is taken to draw" if constant.marks & ASSUMED else "draws"


def _constant_alone(view: View, constant: Amount) -> Headline:
    power = number((view.costs or {}).get("constant_power_w"))
    draws = f": the board {_draws(constant)} {quantity(power, 'W')} for {at_least(view.time, 's')}" if power else ""
    return Headline(
        f"At least {quantity(constant.value or 0, 'J')} predicted, for constant power alone{draws}.",
        "What computation and data movement add is not known: no count that has a price is in the logs.",
        constant.marks | MISSING,
    )


def _data(view: View, above: Amount) -> Headline:
    data = view.energy(DATA)
    levels = {group: view.groups[group] for group in view.groups if _family(group) == DATA}
    top = max(levels, key=lambda group: levels[group].value or 0)
    most = (levels[top].value or 0) >= 0.5 * (data.value or 1)
    level = _PROSE.get(top, GROUPS[top])
    which = f"most of it {level}" if most else f"{level} more than any other level"
    if view.energy(COMPUTATION).value is None:
        sentence = f"Moving data takes {at_least(data, 'J')}, predicted, {which}; what computation takes is not known."
        return Headline(sentence, _join(_rest(view), _largest(view)), above.marks)
    start = _above_share(view, f"Moving data takes {percent((data.value or 0) / (above.value or 1))}")
    lever = f"Fewer bytes at that level ({level}) save the most above constant power."
    return Headline(f"{start}, {which}.", _join(_lever(view, top, lever), _rest(view), _largest(view)), above.marks)


def _lever(view: View, group: str, sentence: str) -> str:
    """What would save the most: `sentence`, if it is about the largest part above constant power; else that part."""
    parts = {name: amount.value or 0 for name, amount in view.groups.items() if name != "constant"}
    largest = max(parts, key=lambda name: parts[name])
    if largest == group or not view.above.value:
        return sentence
    share = percent(parts[largest] / view.above.value)
    return f"The largest single part is {_PROSE.get(largest, GROUPS[largest])} with {share}."


def _computation(view: View, above: Amount) -> Headline:
    classes = {group: view.groups[group] for group in view.groups if _family(group) == "computation"}
    top = max(classes, key=lambda group: classes[group].value or 0)
    whole = above.value or 1
    lever = f"{_LEVER.get(top, 'Fewer or narrower operations save')} the most above constant power."
    share = (classes[top].value or 0) / whole
    if share >= 0.5:
        verb = _VERBS.get(top, f"{GROUPS[top]} arithmetic takes")
        sentence = f"{_above_share(view, f'{verb} {percent(share)}')}."
    else:
        # No class is half of it: naming one alone would hide that others, or a memory level, take as much.
        start = _above_share(view, f"Computation takes {percent((view.energy(COMPUTATION).value or 0) / whole)}")
        sentence, lever = f"{start}, {GROUPS[top]} more than any other class.", ""
    return Headline(sentence, _join(_lever(view, top, lever), _rest(view), _largest(view)), above.marks)


def _family(group: str) -> str:
    return next((count.family for count in COUNTS.values() if count.group == group), group)


def _rest(view: View) -> str:
    constant, total = view.energy("constant"), view.energy("total")
    if constant.value is None:
        return "Constant power is not known, because the time is not."
    share = percent(constant.value / (total.value or 1))
    of = "all that is known" if total.lower else "the whole"
    return f"Constant power adds {at_least(constant, 'J')}, {share} of {of}."


def _largest(view: View) -> str:
    whole_amount = view.ranked(view.document)
    if len(view.kernels) < 2 or not whole_amount.value:
        return ""
    first = view.kernels[view.order[0]]
    share = percent((view.ranked(first).value or 0) / whole_amount.value)
    what = {"total": "energy", "time": "time", "instructions": "instructions"}[view.measure]
    known = "all known" if whole_amount.lower else "all"
    name = short(first["name"], 40)
    return f"The largest of {whole(len(view.kernels))} kernels is {name} with {share} of {known} {what}."


def _join(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


def _counts(view: View) -> Headline:
    """No energy is known: what was executed and moved."""
    did = _did(view)
    ran = f" in {at_least(view.time, 's')}" if view.time.value is not None else ""
    kernels = "One kernel" if len(view.kernels) == 1 else f"{whole(len(view.kernels))} kernels"
    one = len(view.kernels) == 1
    if did:
        sentence = f"{kernels} profiled: {' and '.join(did)} counted{ran}."
    elif ran:
        sentence = f"{kernels} {'takes' if one else 'take'} {ran.removeprefix(' in ')}; nothing else was counted."
    else:
        sentence = f"{kernels} {'was' if one else 'were'} profiled, but nothing that eprof knows was counted."
    why = (
        "No energy is predicted, because no cost table is chosen: choose one with --costs (eprof costs lists them)."
        if view.costs is None
        else f"No energy is predicted: the cost table {view.costs.get('name')} has no price for what was counted."
    )
    counted = view.instructions(view.document).marks | view.summed(view.document, DRAM).marks if did else 0
    return Headline(sentence, _join(why, _largest(view)), counted | (view.time.marks if ran else 0))


def _did(view: View) -> list[str]:
    instructions, dram = view.instructions(view.document), view.summed(view.document, DRAM)
    found = []
    if instructions.value is not None:
        found.append(f"{at_least(instructions, '')} instructions")
    if dram.value is not None:
        found.append(f"{at_least(dram, 'B')} from and to DRAM")
    if not found:
        found = [f"{at_least(word.value, 'B')} {word.label}" for word in view.words.values() if word.value.value][:1]
    return found

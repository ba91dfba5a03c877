"""The one thing to know, as a sentence chosen by rule, and what follows from it."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from eprof.base.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, GROUPS
from eprof.words import metered
from eprof.words.badges import ASSUMED, MISSING, Amount
from eprof.words.blocks import Headline
from eprof.words.intervals import in_brackets
from eprof.words.names import short
from eprof.words.numbers import percent, quantity, whole
from eprof.words.view import DRAM, View

_PROSE = {"shared": "shared memory", "system": "host memory", "requested": "requested bytes"}
_VERBS = {"sfu": "Special functions take", "other": "Other instructions take"}
_LEVERS = {
    "tensor": "Fewer tensor instructions save",
    "int": "Fewer integer instructions save",
    "sfu": "Fewer special functions save",
    "other": "Fewer instructions that are not arithmetic save",
}
_FAMILIES = {count.group: count.family for count in COUNTS.values()}


def headline(view: View) -> Headline:
    """Choose the sentence for a document, and say how metered energy was split."""
    chosen = _chosen(view)
    return replace(chosen, lead=_joined(chosen.lead, *metered.sentences(view)))


def _chosen(view: View) -> Headline:
    if not view.has_energy:
        return _counts(view)
    total, above, constant = view.energy("total"), view.above, view.energy(CONSTANT)
    if not total.value:
        why = "The time of all kernels is zero." if view.time.value == 0 else _constant_part(view)
        return Headline("Nothing that was counted costs energy.", why, total.marks)
    if above.value is None:
        return _constant_alone(view, constant)
    family = _largest_family(view)
    if not view.is_told(family):
        return _not_told(view)
    return _HEADLINES[family](view)


def _largest_family(view: View) -> str:
    """Constant power if it is half of all; else what is most of the rest."""
    if (view.energy(CONSTANT).value or 0) >= 0.5 * (view.energy("total").value or 0):
        return CONSTANT
    return DATA if (view.energy(DATA).value or 0) >= 0.5 * (view.above.value or 0) else COMPUTATION


def _not_told(view: View) -> Headline:
    """The prices leave open what takes most of the energy."""
    least = "At least " if view.energy("total").lower else ""
    return Headline(
        f"{least}{_total(view)} {view.total_is}; the prices do not tell what takes most of it.",
        _joined(_constant_part(view), _largest_kernel(view)),
        view.energy("total").marks,
    )


def _total(view: View) -> str:
    """All energy with its interval: "3.14 J (2.24 to 3.55 J)"."""
    return quantity(view.energy("total").value or 0, "J") + in_brackets(view.interval("total"), "J")


def _in_all(view: View) -> str:
    """All energy with its interval behind a sentence on its parts; nothing where there is no interval."""
    return f"; in all {_total(view)}" if in_brackets(view.interval("total"), "J") else ""


def at_least(amount: Amount, unit: str) -> str:
    """An amount in a sentence: "12.4 J" or "at least 12.4 J"."""
    text = quantity(amount.value or 0, unit)
    return f"at least {text}" if amount.lower else text


# ---------------------------------------------------------------------------------------------- what takes the most


def _mostly_constant(view: View) -> Headline:
    total, constant = view.energy("total"), view.energy(CONSTANT)
    share = percent((constant.value or 0) / (total.value or 1))
    start = f"{share} of the {view.total_is} {_total(view)}"
    if total.lower:
        start = f"At least {_total(view)} predicted; {share} of what is known"
    draws = _draws(view, constant)
    until = f"{draws} whatever the GPU does" if draws else ""
    return Headline(
        f"{start} is constant power{until}.",
        _joined("Finishing sooner saves the most.", _above_part(view), _largest_kernel(view)),
        total.marks,
    )


def _constant_alone(view: View, constant: Amount) -> Headline:
    joules = quantity(constant.value or 0, "J")
    return Headline(
        f"At least {joules} {view.total_is}, for constant power alone{_draws(view, constant)}.",
        "What computation and data movement add is not known: no count that has a price is in the logs.",
        constant.marks | MISSING,
    )


def _draws(view: View, constant: Amount) -> str:
    """What the board draws, and how long; it may not be the board whose constant power the table gives."""
    power = view.costs.constant_power_w if view.costs else 0.0
    if not power:
        return ""
    verb = "is taken to draw" if constant.marks & ASSUMED else "draws"
    return f": the board {verb} {quantity(power, 'W')} for {at_least(view.time, 's')}"


def _above_part(view: View) -> str:
    above, data = view.above, view.energy(DATA)
    if not above.value:
        return "Nothing else that was counted costs energy."
    if data.value is None:
        return f"Computation adds {at_least(above, 'J')}; what data movement adds is not known."
    if view.energy(COMPUTATION).value is None:
        return f"Data movement adds {at_least(above, 'J')}; what computation adds is not known."
    return f"Of the {at_least(above, 'J')} above constant power, {percent(data.value / above.value)} is data movement."


def _mostly_data(view: View) -> Headline:
    above, data = view.above, view.energy(DATA)
    top, joules = _largest_group(view, DATA)
    level = _PROSE.get(top, GROUPS[top])
    where = f", {level} more than any other level"
    if joules >= 0.5 * (data.value or 1):
        where = f", most of it {level}"
    if not view.is_told(top):
        where = ""
    if view.energy(COMPUTATION).value is None:
        sentence = (
            f"Moving data takes {at_least(data, 'J')}, {view.parts_are}{where}; what computation takes is not known."
        )
        return Headline(sentence, _joined(_unsure(view, top), _constant_part(view), _largest_kernel(view)), above.marks)

    start = _share_of_above(view, f"Moving data takes {percent((data.value or 0) / (above.value or 1))}")
    lever = f"Fewer bytes at that level ({level}) save the most above constant power."
    return Headline(f"{start}{where}{_in_all(view)}.", _consequence(view, top, lever), above.marks)


def _mostly_computation(view: View) -> Headline:
    above = view.above.value or 1
    top, joules = _largest_group(view, COMPUTATION)
    lever = f"{_LEVERS.get(top, 'Fewer or narrower operations save')} the most above constant power."
    if joules >= 0.5 * above and view.is_told(top):
        verb = _VERBS.get(top, f"{GROUPS[top]} arithmetic takes")
        sentence = _share_of_above(view, f"{verb} {percent(joules / above)}")
    else:
        # No class is half of it: naming one alone would hide that others, or a memory level, take as much.
        share = percent((view.energy(COMPUTATION).value or 0) / above)
        sentence = _share_of_above(view, f"Computation takes {share}")
        if view.is_told(top):
            sentence += f", {GROUPS[top]} more than any other class"
        lever = ""
    return Headline(f"{sentence}{_in_all(view)}.", _consequence(view, top, lever), view.above.marks)


def _largest_group(view: View, family: str) -> tuple[str, float]:
    """The group of a family with most energy, and its energy in J."""
    groups = {group: amount.value or 0.0 for group, amount in view.groups.items() if _FAMILIES.get(group) == family}
    top = max(groups, key=lambda group: groups[group])
    return top, groups[top]


def _unsure(view: View, group: str) -> str:
    """What is said of the largest group where the prices do not tell how large it is."""
    if view.is_told(group):
        return ""
    return f"How much of it is {GROUPS[group]}{in_brackets(view.interval(group), 'J')} the prices do not tell."


def _share_of_above(view: View, share: str) -> str:
    """Open a sentence about a share of what is above constant power: of the predicted, or of what is known of it."""
    above = view.above
    known = quantity(above.value or 0, "J")
    if not above.marks & MISSING:
        return f"{share} of the {view.parts_are} {known} above constant power"
    total = view.energy("total")
    joules = quantity(total.value or 0, "J")
    if share.startswith(("Moving", "Other", "Special", "Computation")):
        share = share[0].lower() + share[1:]
    least = f"At least {joules}" if total.lower else joules
    return f"{least} {view.total_is}; {share} of the {known} known above constant power"


# ------------------------------------------------------------------------------------------------- what follows


def _consequence(view: View, top: str, lever: str) -> str:
    """What would save the most, the constant part and the largest kernel."""
    return _joined(_unsure(view, top), _lever(view, top, lever), _constant_part(view), _largest_kernel(view))


def _lever(view: View, top: str, lever: str) -> str:
    """`lever`, if it is about the largest part above constant power; else what that part is."""
    parts = {group: amount.value or 0 for group, amount in view.groups.items() if group != CONSTANT}
    largest = max(parts, key=lambda group: parts[group])
    if not view.above.value or not view.is_told(largest):
        return ""
    if largest == top:
        return lever
    share = percent(parts[largest] / view.above.value)
    return f"The largest single part is {_PROSE.get(largest, GROUPS[largest])} with {share}."


def _constant_part(view: View) -> str:
    constant, total = view.energy(CONSTANT), view.energy("total")
    if constant.value is None:
        return "Constant power is not known, because the time is not."
    share = percent(constant.value / (total.value or 1))
    of = "all that is known" if total.lower else "the whole"
    return f"Constant power adds {at_least(constant, 'J')}, {share} of {of}."


def _largest_kernel(view: View) -> str:
    all_kernels = view.ranked(view.document)
    if len(view.kernels) < 2 or not all_kernels.value:
        return ""
    first = view.kernels[view.order[0]]
    share = percent((view.ranked(first).value or 0) / all_kernels.value)
    measure = {"total": "energy"}.get(view.measure, view.measure)
    known = "all known" if all_kernels.lower else "all"
    count, name = whole(len(view.kernels)), short(first.name, 40)
    return f"The largest of {count} kernels is {name} with {share} of {known} {measure}."


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


_HEADLINES: Mapping[str, Callable[[View], Headline]] = {
    CONSTANT: _mostly_constant,
    DATA: _mostly_data,
    COMPUTATION: _mostly_computation,
}


# --------------------------------------------------------------------------------------------- without any energy


def _counts(view: View) -> Headline:
    """No energy is known: what was executed and moved."""
    counted = _counted(view)
    marks = 0
    if counted:
        marks = view.instructions(view.document).marks | view.summed(view.document, DRAM).marks
    if view.time.value is not None:
        marks |= view.time.marks

    if view.costs is None:
        consequence = "No energy is predicted, for want of a cost table; a warning below says how to get joules."
    else:
        consequence = f"No energy is predicted: the cost table {view.costs.name} has no price for what was counted."
    return Headline(_profiled(view, counted), _joined(consequence, _largest_kernel(view)), marks)


def _profiled(view: View, counted: list[str]) -> str:
    is_one = len(view.kernels) == 1
    kernels = "One kernel" if is_one else f"{whole(len(view.kernels))} kernels"
    time = at_least(view.time, "s") if view.time.value is not None else ""
    if counted:
        ran = f" in {time}" if time else ""
        return f"{kernels} profiled: {' and '.join(counted)} counted{ran}."
    if time:
        return f"{kernels} {'takes' if is_one else 'take'} {time}; nothing else was counted."
    return f"{kernels} {'was' if is_one else 'were'} profiled, but nothing that eprof knows was counted."


def _counted(view: View) -> list[str]:
    """Instructions and DRAM bytes in words; of neither, the first bytes or flops that there are."""
    instructions, dram = view.instructions(view.document), view.summed(view.document, DRAM)
    phrases = []
    if instructions.value is not None:
        phrases.append(f"{at_least(instructions, '')} instructions")
    if dram.value is not None:
        phrases.append(f"{at_least(dram, 'B')} from and to DRAM")
    if phrases:
        return phrases
    sized = [word for word in view.words.values() if word.count.symbol and word.value.value]
    return [f"{at_least(word.value, word.count.symbol)} {word.count.label}" for word in sized[:1]]

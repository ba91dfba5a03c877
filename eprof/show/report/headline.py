"""The total and what it is made of, in one sentence, and what belongs beside it."""

from collections.abc import Mapping

from msgspec.structs import replace

from eprof.base.text import capital, few, listed, phrase, when
from eprof.base.vocabulary import CONSTANT
from eprof.show.report import lacking, metered
from eprof.show.report.view import DRAM, View
from eprof.show.words.badges import ASSUMED, MISSING, Amount
from eprof.show.words.blocks import Headline
from eprof.show.words.intervals import in_brackets, known
from eprof.show.words.numbers import percent, percent_span, quantity, span, whole

_PARTS = 3
_CLASSES = {"integer", "control", "load_store", "misc"}  # beside arithmetic: without them instructions are not all
_SMALL = 0.05  # of the whole: a smaller part is not in the headline
_ALIKE = 1.1  # times a part without an interval: where another is less, neither is surely the larger


def headline(view: View) -> Headline:
    """The headline of a report: the total, what it is made of, and how metered energy was split."""
    chosen = _chosen(view)
    return replace(chosen, lead=" ".join(filter(None, [chosen.lead, *metered.sentences(view)])))


def _chosen(view: View) -> Headline:
    if not view.has_energy:
        return _counts(view)
    total = view.energy("total")
    if not total.value:
        why = _constant_part(view)
        if view.time.value == 0:
            why = f"The time of all {view.nouns.kernels} is zero."
        return Headline("Nothing that was counted costs energy.", why, total.marks)
    if view.above.value is None:
        constant, pair = view.energy(CONSTANT), known(view.interval("total"))
        joules = quantity(view.least_total.value or 0, "J")
        if metered.is_by_time(view):
            text = f"{joules} {view.total_is} in {at_least(view.time, 's')}, split by time alone."
        elif view.to_meter:
            text = f"{joules} {view.total_is}: only constant power is priced{_drawn(view, constant)}."
        elif pair:
            text = (
                f"{span(*pair, 'J')}{_known_how(view)}: constant power{_drawn(view, constant)} up to the board's limit."
            )
        else:
            text = f"Total unknown, at least {joules}: only constant power is priced{_drawn(view, constant)}."
        return Headline(f"{text} Cause unknown; shares are of time.", "", constant.marks | MISSING)
    if view.is_modelled:
        return _above_constant(view)
    time = when(view.time.value, f" in {at_least(view.time, 's')}")
    without = when(total.lower, lacking.in_headline(view))
    text = f"{_joules(view, total)}{time}{without}: {_parts(view, total)}."
    return Headline(text, when(view.energy(CONSTANT).value is None, _constant_part(view)), total.marks)


def at_least(amount: Amount, unit: str) -> str:
    """An amount in a sentence: "12.4 J" or "at least 12.4 J"."""
    return when(amount.lower, "at least ") + quantity(amount.value or 0, unit)


# ---------------------------------------------------------------------------------------- the total and its parts


def _joules(view: View, total: Amount) -> str:
    """The joules of a total: "287 mJ (184 to 418 mJ) predicted"; of a lower bound both ends, or the low one."""
    ends, pair = view.interval("total"), known(view.interval("total"))
    value = total.value or 0.0
    how = _known_how(view)
    if ends is None:
        return f"{capital(at_least(total, 'J'))}{how}"
    if pair is not None and (total.lower or view.is_estimated or pair[1] < value):
        return f"{span(*pair, 'J')}{how}"
    if total.lower:
        return f"At least {quantity(ends[0] or 0.0, 'J')}{how}"
    return f"{quantity(value, 'J')}{in_brackets(ends, 'J')}{how}"


def _known_how(view: View) -> str:
    """How a total came to be known: " predicted", " metered", " estimated from data sheets"."""
    return " estimated from data sheets" if view.is_estimated else f" {view.total_is}"


def _above_constant(view: View) -> Headline:
    """The headline of a simulated device: joules of what was counted; constant power as a range."""
    above = view.above
    text = f"{capital(at_least(above, 'J'))} above constant power: {_parts(view, above)}."
    constant = constant_range(view)
    if not constant:
        return Headline(text, "", above.marks)
    joules = above.value or 0.0
    ends = _constant_ends(view)
    low, high = (joules + end for end in ends)
    more = when(view.energy("total").lower, " or more")
    share = percent_span(ends[0] / low, ends[1] / high)
    text += f" {capital(constant)}. Together {span(low, high, 'J')}{more}, {share} of it constant power."
    return Headline(text, "", above.marks)


def constant_range(view: View) -> str:
    """What constant power adds at the roofline's own speed, and at the efficiency in force."""
    modelled = view.document.modelled_time
    low, high = _constant_ends(view)
    if not modelled or not high:
        return ""
    least = at_least(Amount(low, view.energy(CONSTANT).marks), "J")
    slower = f"{quantity(high, 'J')} at {percent(modelled.efficiency)} of it"
    given = when(modelled.given, ", as --efficiency says")
    return f"constant power adds {least} at the roofline's speed to {slower}{given}, because time is a model"


def _constant_ends(view: View) -> tuple[float, float]:
    joules = view.energy(CONSTANT).value or 0.0
    return view.at_the_roofline(joules, lambda kernel: kernel.energy_j.constant), joules


def _parts(view: View, whole_amount: Amount) -> str:
    """The largest parts in a headline: "47 % DRAM, 10 to 30 % FP64"; all that may be the largest."""
    joules = {group: amount.value for group, amount in view.groups.items() if amount.value}
    leading = contenders(view, joules)
    total = whole_amount.value or 1.0
    if len(leading) > 1:
        named = [f"{view.in_prose(group)} ({_share_span(view, group, total)})" for group in leading]
        some = listed(named, "or") if len(named) <= _PARTS else few(named, _PARTS)
        return f"largest part undecided, {some}"
    largest = sorted(joules, key=lambda group: -joules[group])[:_PARTS]
    return ", ".join(
        f"{_share(view, group, total)} {view.in_prose(group)}" for group in largest if joules[group] >= _SMALL * total
    )


def contenders(view: View, joules: Mapping[str, float]) -> list[str]:
    """The groups of counts that may be the largest, the largest first: no other is surely above them.

    joules: of the program or of a kernel, whose interval is as wide as the program's against its value.
    """
    ends = {group: _share_ends(view, group, value) for group, value in joules.items()}
    sure = max(low for low, _ in ends.values())
    return sorted((group for group in joules if ends[group][1] >= sure), key=lambda group: -joules[group])


def _share_ends(view: View, group: str, joules: float) -> tuple[float, float]:
    pair = known(view.interval(group))
    if pair is None:
        return joules, _ALIKE * joules
    scale = joules / (view.groups[group].value or 1.0)
    return scale * pair[0], scale * pair[1]


def _share(view: View, group: str, total: float) -> str:
    """The share of a group in a headline; as a span, where the prices leave it open."""
    if not view.is_certain(group):
        return _share_span(view, group, total)
    return percent((view.groups[group].value or 0.0) / total)


def _share_span(view: View, group: str, total: float) -> str:
    joules = view.groups[group].value or 0.0
    low, high = known(view.interval(group)) or (joules, joules)
    return percent_span(low / total, min(high / total, 1.0))


def _drawn(view: View, constant: Amount) -> str:
    """Power and time in a headline; the board may not be the one whose constant power the table gives."""
    power = view.costs.constant_power_w if view.costs else 0.0
    if not power:
        return ""
    taken = when(constant.marks & ASSUMED, ", assumed")
    if view.costs and view.costs.basis == "estimated":
        taken = ", estimated"
    return f" ({quantity(power, 'W')}{taken}, for {at_least(view.time, 's')})"


def _constant_part(view: View) -> str:
    constant = view.energy(CONSTANT)
    if constant.value is None:
        return "Constant power is not known, because the time is not."
    return f"Constant power adds {at_least(constant, 'J')}."


# --------------------------------------------------------------------------------------------- without any energy


def _counts(view: View) -> Headline:
    counted = _counted(view)
    marks = view.time.marks
    if counted:
        marks |= view.instructions(view.document).marks | view.summed(view.document, DRAM).marks

    measured = view.document.energy_j.measured
    if measured is not None:
        return _measured_alone(view, measured, counted, marks)
    if view.costs is None:
        consequence = "No energy is predicted, because there is no cost table; a warning below says how to get joules."
    else:
        consequence = f"No energy is predicted: the cost table {view.costs.name} has no price for what was counted."
    return Headline(_profiled(view, counted), consequence, marks)


def _measured_alone(view: View, measured: float, counted: list[str], marks: int) -> Headline:
    why = "no instruction and no byte was counted"
    if counted:
        why = "no count that has a price is in the logs"
    text = f"{quantity(measured, 'J')} measured{phrase(' in {}', _time(view))}."
    return Headline(text, f"What took them is not known: {why}.", marks)


def _time(view: View) -> str:
    return when(view.time.value is not None, at_least(view.time, "s"))


def _profiled(view: View, counted: list[str]) -> str:
    number, takes, was = whole(len(view.kernels)), "take", "were"
    if len(view.kernels) == 1:
        number, takes, was = "One", "takes", "was"
    kernels = f"{number} {view.nouns.of(len(view.kernels))}"
    if counted:
        return f"{kernels} profiled: {' and '.join(counted)} counted{phrase(' in {}', _time(view))}."
    if _time(view):
        return f"{kernels} {takes} {_time(view)}; nothing else is known."
    return f"{kernels} {was} profiled, but nothing that eprof knows was counted."


def _instructions(view: View, instructions: Amount) -> str:
    """All instructions in a headline; at least so many where whole classes were not counted."""
    names = view.instruction_words
    if names == ["warp_issue"]:
        return f"{at_least(instructions, '')} warp instructions"
    if names != ["retired"] and not _CLASSES.issubset(names):
        instructions = Amount(instructions.value, instructions.marks | MISSING)
    return f"{at_least(instructions, '')} instructions"


def _counted(view: View) -> list[str]:
    """Instructions and DRAM bytes in a headline; of neither, the first bytes or flops that there are."""
    instructions, dram = view.instructions(view.document), view.summed(view.document, DRAM)
    phrases = []
    if instructions.value:
        phrases.append(_instructions(view, instructions))
    if dram.value is not None:
        phrases.append(f"{at_least(dram, 'B')} from and to DRAM")
    if phrases:
        return phrases
    sized = [word for word in view.words.values() if word.count.symbol and word.value.value]
    return [f"{at_least(word.value, word.count.symbol)} {word.count.label}" for word in sized[:1]]

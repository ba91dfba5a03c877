"""The total and what it is made of, in one sentence, and what belongs beside it."""

from msgspec.structs import replace

from eprof.base.text import capital, listed
from eprof.base.vocabulary import CONSTANT
from eprof.words import metered
from eprof.words.badges import ASSUMED, MISSING, Amount
from eprof.words.blocks import Headline
from eprof.words.intervals import in_brackets
from eprof.words.numbers import percent, quantity, span, whole
from eprof.words.view import DRAM, View

_PARTS = 3
_CLASSES = {"integer", "control", "load_store", "misc"}  # beside arithmetic: without them instructions are not all
_SMALL = 0.05  # of the whole: a smaller part is not in the headline


def headline(view: View) -> Headline:
    """The total, what it is made of, and how metered energy was split."""
    chosen = _chosen(view)
    return replace(chosen, lead=_joined(chosen.lead, *metered.sentences(view)))


def _chosen(view: View) -> Headline:
    if not view.has_energy:
        return _counts(view)
    total = view.energy("total")
    if not total.value:
        why = f"The time of all {view.nouns.kernels} is zero." if view.time.value == 0 else _constant_part(view)
        return Headline("Nothing that was counted costs energy.", why, total.marks)
    if view.above.value is None:
        return _constant_alone(view)
    if view.is_modelled:
        return _above_constant(view)
    return _total(view)


def at_least(amount: Amount, unit: str) -> str:
    """An amount in a sentence: "12.4 J" or "at least 12.4 J"."""
    text = quantity(amount.value or 0, unit)
    return f"at least {text}" if amount.lower else text


# ---------------------------------------------------------------------------------------- the total and its parts


def _total(view: View) -> Headline:
    """As in "287 mJ predicted (184 to 418 mJ) in 1.31 ms: 47 % DRAM, 18 % constant power, 11 % L2."."""
    total = view.energy("total")
    joules = capital(at_least(total, "J")) + in_brackets(view.interval("total"), "J")
    time = f" in {at_least(view.time, 's')}" if view.time.value else ""
    of = "; of what is known, " if total.lower else ": "
    text = f"{joules} {view.total_is}{time}{of}{_parts(view, total)}."
    lead = _joined(_not_told(view), "" if view.energy(CONSTANT).value is not None else _constant_part(view))
    return Headline(text, lead, total.marks)


def _above_constant(view: View) -> Headline:
    """A simulated device: the joules of what was counted; constant power as a range, because the time is a model."""
    above = view.above
    counted = f"{quantity(above.value or 0, 'J')} for what was counted ({_parts(view, above)})"
    constant = constant_range(view)
    if not constant:
        return Headline(capital(f"{at_least(above, 'J')} above constant power: {counted}."), "", above.marks)
    low, high = _constant_ends(view)
    total = span((above.value or 0) + low, (above.value or 0) + high, "J")
    start = f"At least {total}" if above.lower else total
    return Headline(f"{start}: {counted}, and {constant}.", _not_told(view), above.marks)


def constant_range(view: View) -> str:
    """What constant power adds at the roofline's own speed, and at the efficiency in force."""
    modelled = view.document.modelled_time
    low, high = _constant_ends(view)
    if not modelled or not high:
        return ""
    least = "at least " if view.energy(CONSTANT).lower else ""
    slower = f"{quantity(high, 'J')} at {percent(modelled.efficiency)} of it"
    given = ", as --efficiency says" if modelled.given else ""
    return (
        f"constant power of {least}{quantity(low, 'J')} at the roofline's speed to {slower}{given}, because time is a "
        "model"
    )


def _constant_ends(view: View) -> tuple[float, float]:
    """Constant energy in J at the roofline's speed, and at the efficiency in force."""
    joules = view.energy(CONSTANT).value or 0.0
    return view.at_the_roofline(joules, lambda kernel: kernel.energy_j.constant), joules


def _parts(view: View, whole_amount: Amount) -> str:
    """The largest parts: "47 % DRAM, perhaps 18 % FP64, 11 % L2"; not where the prices leave the largest one open."""
    shares = {group: amount.value / (whole_amount.value or 1) for group, amount in view.groups.items() if amount.value}
    largest = sorted(shares, key=lambda group: -shares[group])
    if not view.is_told(largest[0]):
        return "the prices do not tell what takes most of it"
    named = [group for group in largest[:_PARTS] if shares[group] >= _SMALL]
    return ", ".join(f"{_perhaps(view, group)}{percent(shares[group])} {view.in_prose(group)}" for group in named)


def _perhaps(view: View, group: str) -> str:
    return "" if view.is_told(group) else "perhaps "


def _not_told(view: View) -> str:
    """Large parts that the prices leave open."""
    total = view.energy("total").value or 1
    groups = [
        f"{view.in_prose(group)}{in_brackets(view.interval(group), 'J')}"
        for group, amount in view.groups.items()
        if not view.is_told(group) and (amount.value or 0) >= _SMALL * total
    ]
    return f"The prices do not tell how much is {listed(groups, 'or')}." if groups else ""


def _constant_alone(view: View) -> Headline:
    constant = view.energy(CONSTANT)
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
    if view.costs and view.costs.basis == "estimated":
        verb = "is estimated to draw"
    return f": the board {verb} {quantity(power, 'W')} for {at_least(view.time, 's')}"


def _constant_part(view: View) -> str:
    constant = view.energy(CONSTANT)
    if constant.value is None:
        return "Constant power is not known, because the time is not."
    return f"Constant power adds {at_least(constant, 'J')}."


def _joined(*sentences: str) -> str:
    return " ".join(sentence for sentence in sentences if sentence)


# --------------------------------------------------------------------------------------------- without any energy


def _counts(view: View) -> Headline:
    """No energy is known: what was executed and moved."""
    counted = _counted(view)
    marks = 0
    if counted:
        marks = view.instructions(view.document).marks | view.summed(view.document, DRAM).marks
    if view.time.value is not None:
        marks |= view.time.marks

    measured = view.document.energy_j.measured
    if measured is not None:
        return _measured_alone(view, measured, counted, marks)
    if view.costs is None:
        consequence = "No energy is predicted, for want of a cost table; a warning below says how to get joules."
    else:
        consequence = f"No energy is predicted: the cost table {view.costs.name} has no price for what was counted."
    return Headline(_profiled(view, counted), consequence, marks)


def _measured_alone(view: View, measured: float, counted: list[str], marks: int) -> Headline:
    """A meter's joules, which nothing that was counted splits."""
    time = f" in {at_least(view.time, 's')}" if view.time.value is not None else ""
    why = "no count that has a price is in the logs" if counted else "no instruction and no byte was counted"
    return Headline(f"{quantity(measured, 'J')} measured{time}.", f"What took them is not known: {why}.", marks)


def _profiled(view: View, counted: list[str]) -> str:
    is_one = len(view.kernels) == 1
    kernels = f"{'One' if is_one else whole(len(view.kernels))} {view.nouns.of(len(view.kernels))}"
    time = at_least(view.time, "s") if view.time.value is not None else ""
    if counted:
        ran = f" in {time}" if time else ""
        return f"{kernels} profiled: {' and '.join(counted)} counted{ran}."
    if time:
        return f"{kernels} {'takes' if is_one else 'take'} {time}; nothing else was counted."
    return f"{kernels} {'was' if is_one else 'were'} profiled, but nothing that eprof knows was counted."


def _instructions(view: View, instructions: Amount) -> str:
    """All instructions; at least so many where whole classes were not counted."""
    names = view.instruction_words
    if names == ["warp_issue"]:
        return f"{at_least(instructions, '')} warp instructions"
    if not _CLASSES.issubset(names):
        instructions = Amount(instructions.value, instructions.marks | MISSING)
    return f"{at_least(instructions, '')} instructions"


def _counted(view: View) -> list[str]:
    """Instructions and DRAM bytes in words; of neither, the first bytes or flops that there are."""
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

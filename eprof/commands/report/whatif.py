"""Other clocks and what-if answers in words; the page and the terminal say the same."""

import math

from eprof.base.text import when
from eprof.profile import schema
from eprof.show.amounts import bits
from eprof.show.blocks import signs
from eprof.show.numbers import NARROW, more_or_less, quantity, span


def same_clocks(first: schema.AtClocks, second: schema.AtClocks) -> bool:
    """Whether two settings have the same clocks."""
    return (first.core_mhz, first.memory_mhz) == (second.core_mhz, second.memory_mhz)


def clock_words(clocks: schema.Clocks, run: schema.Profile) -> str:
    """A sentence on the clocks of the lowest energy, what they save, and what they cost in time.

    Against the run itself where its own clocks are between those that the table knows.
    """
    lowest, here = clocks.lowest, next((setting for setting in clocks.settings if setting.this), None)
    least = when("missing" in clocks.marks, "at least ")
    setting = f"{lowest.core_mhz:g}{NARROW}MHz core and {lowest.memory_mhz:g}{NARROW}MHz memory"
    is_lower = any((other.energy_j or math.inf) < (lowest.energy_j or 0.0) for other in clocks.settings)
    among = when(is_lower, " of those that the table lists and was fitted to")
    prediction = f"Lowest prediction{among}: {setting}, {least}{quantity(lowest.energy_j or 0.0, 'J')}"
    if here is not None and same_clocks(here, lowest):
        return f"{prediction}: this run's setting."
    before = here or run
    before_j = before.energy_j.total if isinstance(before, schema.Profile) else before.energy_j
    energy, time = _whatif_change(lowest.energy_j, before_j), _whatif_change(lowest.time_s, before.time_s)
    changes = f"{prediction}: {energy} energy, {time} time."
    low, high = lowest.energy_range_j or (None, None)
    if low is None or high is None or high <= low * 1.005:
        return changes
    return f"{changes} It would be {span(low, high, 'J')} if times followed one clock alone."


def _whatif_change(now: float | None, before: float | None) -> str:
    return more_or_less((now or 0.0) / (before or 1.0) - 1)


def answer_words(answer: schema.Answer) -> str:
    """A what-if answer as a sentence: "If dram=-20%: ~17.2 J, 6.0 % less, 5.5 % less time (20 % fewer bytes)."."""
    joules, time, marks = answer.energy_j.total, answer.time_share, bits(answer.marks)
    pieces = ["not known"]
    if joules is not None:
        pieces = [signs(marks) + quantity(joules, "J")]
    if answer.change_share is not None:
        pieces.append(_more(answer.change_share, ""))
    if time is not None and not is_same(time):
        pieces.append(_more(time, " time"))
    return f"If {answer.question}: {', '.join(pieces)} ({answer.says}; {answer.assumes})."


def is_same(share: float) -> bool:
    """Whether the change of a what-if answer is too small to be worth a number."""
    return abs(share) < 5e-5


def _more(share: float, noun: str) -> str:
    if is_same(share):
        return "the same"
    return more_or_less(share) + noun

"""Other clocks and what-if answers in words; the page and the terminal say the same."""

from collections.abc import Mapping
from typing import Any

from eprof.words.badges import LETTERS, MISSING
from eprof.words.numbers import NARROW, percent, quantity
from eprof.words.view import marks_of


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two settings have the same clocks."""
    return bool((one["core_mhz"], one["memory_mhz"]) == (other["core_mhz"], other["memory_mhz"]))


def clock_words(clocks: Mapping[str, Any]) -> str:
    """Where the lowest energy is, what it saves, what it costs in time; and how much rests on the times."""
    lowest, here = clocks["lowest"], next((one for one in clocks["settings"] if one["this"]), None)
    at = f"{lowest['core_mhz']:g}{NARROW}MHz core and {lowest['memory_mhz']:g}{NARROW}MHz memory"
    least = "at least " if "missing" in clocks["marks"] else ""
    found = f"Lowest prediction: {at}, {least}{quantity(lowest['energy_j'], 'J')}"
    if here is None:
        return f"{found}."
    if same(here, lowest):
        return f"{found}: this run's setting."
    energy, time = _than(lowest, here, "energy"), _than(lowest, here, "time")
    found += f": {energy}, {time}."
    low, high = lowest["energy_range_j"]
    if low is None or high <= low * 1.005:
        return found
    return f"{found} It would be {quantity(low, 'J')} to {quantity(high, 'J')} if times followed one clock alone."


def _than(now: Mapping[str, Any], before: Mapping[str, Any], what: str) -> str:
    key = {"energy": "energy_j", "time": "time_s"}[what]
    change = now[key] / before[key] - 1
    return f"{percent(abs(change))} {'less' if change < 0 else 'more'} {what}"


def answer_words(one: Mapping[str, Any]) -> str:
    """A what-if answer as a sentence: "If dram=-20%: ~17.2 J, 6.0 % less, 5.5 % less time (20 % fewer bytes)."."""
    joules, change, time = one["energy_j"]["total"], one["change_share"], one["time_share"]
    marks = marks_of(one)
    signs = "".join(sign for mark, sign in LETTERS.items() if marks & mark & ~MISSING)
    least = "≥ " if marks & MISSING else ""
    pieces = ["not known" if joules is None else f"{least}{signs}{quantity(joules, 'J')}"]
    if change is not None:
        pieces.append(_more(change, ""))
    if time is not None and abs(time) >= 5e-5:
        pieces.append(_more(time, " time"))
    return f"If {one['question']}: {', '.join(pieces)} ({one['says']}; {one['assumes']})."


def _more(share: float, what: str) -> str:
    if abs(share) < 5e-5:
        return "the same"
    return f"{percent(abs(share))} {'less' if share < 0 else 'more'}{what}"

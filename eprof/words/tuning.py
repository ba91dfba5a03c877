"""Clocks in plain words, and the heat map's cells; for page and terminal alike."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eprof.words.numbers import NARROW, quantity
from eprof.words.validation import Verdict, percent

STEPS = 9


def verdict(document: Mapping[str, Any]) -> Verdict:
    """The pick for the program with what it costs in time, against the fastest setting."""
    best, fastest = document["best"], document["fastest"]
    if best is None:
        return Verdict(f"No setting gives {document['objective_words']}.", "The notes say why.")
    how = "predicted, with modelled times" if document["time"]["from"] == "modelled" else "predicted for measured times"
    setting = f"{label(best)}{NARROW}MHz"
    if same(best, fastest):
        gives = f"also gives {document['objective_words']} for {document['program']} ({how})."
        words = f"{setting}, the fastest setting, {gives}"
        return Verdict(words, "Race-to-halt is right here." if document["objective"] == "energy" else "")
    energy, time = _ratio(best, fastest, "energy_j"), _ratio(best, fastest, "time_s")
    words = f"{setting} gives {document['objective_words']} for {document['program']} ({how})."
    if energy is None or time is None:
        return Verdict(words, "")
    return Verdict(
        words,
        f"Against the fastest setting, {label(fastest)}{NARROW}MHz, {change(energy)} energy and {change(time)} time.",
    )


def _ratio(one: Mapping[str, Any], other: Mapping[str, Any] | None, what: str) -> float | None:
    if other is None or one[what] is None or not other[what]:
        return None
    return float(one[what] / other[what] - 1)


def change(ratio: float) -> str:
    """A ratio as "3.9 % less"."""
    return f"{percent(100 * abs(ratio))} {'less' if ratio < 0 else 'more'}"


def lost_words(document: Mapping[str, Any]) -> list[str]:
    """How often the model and the time oracle missed the measured best, and at what loss."""
    found = document["energy_lost_percent"]
    if found is None:
        return []
    words = []
    for who, one in (("The model", found["model"]), ("The fastest setting", found["oracle"])):
        loss = ""
        if one["wrong"]:
            loss = (
                f"; over those it uses {percent(one['mean_percent'])} more energy on average "
                f"({percent(one['min_percent'])} to {percent(one['max_percent'])})"
            )
        words.append(f"{who} is not the measured best for {one['wrong']} of {one['cases']} kernels{loss}.")
    return words


def time_words(document: Mapping[str, Any]) -> str:
    """Where times are from and how far modelled ones are off."""
    time = document["time"]
    error = time["error"]
    tested = (
        f" On these kernels, each left out in turn, modelled times are off by "
        f"{percent(error['mean_percent'])} on average, {percent(error['max_percent'])} at most."
        if error
        else ""
    )
    if time["from"] == "measured":
        return f"Times are as measured.{tested}"
    words = time["model"]["words"] if time["model"] else ""
    return (
        f"{words}{tested or ' Their error was not measured for this profile (docs/tune.md has it for four data sets).'}"
    )


@dataclass(frozen=True)
class Cell:
    """A setting in the heat map: what stands there, its colour 0..8 (None: no number), signs, and it all in words."""

    text: str
    step: int | None
    sign: str
    title: str
    now: bool
    doubtful: bool


@dataclass(frozen=True)
class Heat:
    """The heat map: clocks in MHz, memory highest first, and the cells by (core, memory)."""

    cores: list[float]
    memories: list[float]
    cells: Mapping[tuple[float, float], Cell]
    caption: str
    legend: str


def heat(document: Mapping[str, Any]) -> Heat:
    """The program's energy (or what is minimised) at each setting, over the lowest."""
    settings = document["settings"]
    values = [one["energy_j"] for one in settings]
    known = [one for one in values if one is not None]
    cores = sorted({one["core_mhz"] for one in settings})
    memories = sorted({one["memory_mhz"] for one in settings}, reverse=True)
    if not known:
        return Heat([], [], {}, "", "")
    low, high = min(known), max(known)
    cells = {(one["core_mhz"], one["memory_mhz"]): _cell(document, one, low, high) for one in settings}
    signs = ["* best", "» fastest"]
    if document["measured_best"]:
        signs.append("m measured best")
    if any(cell.doubtful for cell in cells.values()):
        signs.append("? not a setting that the table has seen")
    caption = f"Energy of {document['program']} at each setting, {quantity(low, 'J')} at the lowest."
    return Heat(cores, memories, cells, caption, ", ".join(signs))


def _cell(document: Mapping[str, Any], one: Mapping[str, Any], low: float, high: float) -> Cell:
    now, doubtful = same(one, document["now"]), bool(one["why"])
    sign = "*" * same(one, document["best"]) + "»" * same(one, document["fastest"])
    sign += "m" * same(one, document["measured_best"]) + "?" * doubtful
    if one["energy_j"] is None:
        return Cell("–", None, sign, f"{label(one)} MHz: not known", now, doubtful)
    words = f"{label(one)} MHz: {quantity(one['energy_j'], 'J')} in {quantity(one['time_s'], 's')}"
    if one["measured_j"] is not None:
        words += f", measured {quantity(one['measured_j'], 'J')}"
    if one["why"]:
        words += f"; {one['why']}"
    if not one["allowed"]:
        words += "; outside the limit"
    return Cell(quantity(one["energy_j"], "J"), step(one["energy_j"], low, high), sign, words, now, doubtful)


def step(value: float, low: float, high: float) -> int:
    """A colour from 0 to 8, in equal ratios between the least and the largest."""
    if high <= low or low <= 0:
        return 0
    return min(STEPS - 1, int(STEPS * math.log(value / low) / math.log(high / low)))


def label(setting: Mapping[str, Any] | None) -> str:
    """A setting, "852/924"; a dash for none."""
    return "-" if setting is None else f"{setting['core_mhz']:g}/{setting['memory_mhz']:g}"


def same(setting: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> bool:
    """Whether both are there and the same."""
    return setting is not None and other is not None and label(setting) == label(other)

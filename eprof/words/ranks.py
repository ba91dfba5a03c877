"""How ranks differ, in a sentence."""

from collections.abc import Mapping
from typing import Any

from eprof.words.numbers import percent, quantity, whole


def rank_words(ranks: Mapping[str, Any]) -> str:
    """Times, energies and launches of the smallest, the median and the largest rank; the slowest; the imbalance."""
    parts = [_three(ranks["time_s"], "s", "time"), _three(ranks["energy_j"], "J", "energy")]
    launches = ranks["launches"]
    if launches["min"] != launches["max"]:
        parts.append(f"launches {whole(launches['min'])} to {whole(launches['max'])}")
    words = f"{whole(ranks['number'])} ranks, smallest, median and largest: {'; '.join(one for one in parts if one)}."
    lower = [word for word, key in (("times", "time_marks"), ("energies", "energy_marks")) if ranks[key]]
    if lower and parts[0]:
        words += f" The {' and '.join(lower)} are lower bounds, for something is missing."
    if ranks["imbalance"] is not None:
        words += (
            f" {_capital(ranks['slowest'])} is the slowest; imbalance {percent(ranks['imbalance'])} (its time over the "
            "mean, less one)."
        )
    elif ranks["slowest"] is not None:
        words += " How uneven the ranks are is not known, for some time is missing."
    return words


def _three(values: Mapping[str, float | None], unit: str, what: str) -> str:
    if values["min"] is None:
        return ""
    return f"{what} " + ", ".join(quantity(values[key] or 0.0, unit) for key in ("min", "median", "max"))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]

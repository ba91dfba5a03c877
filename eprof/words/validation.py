"""A validation in plain words: the headline, and how far to trust the table; for page and terminal alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eprof.validation import protocols
from eprof.validation.study import SCALED

_NAMES = {
    protocols.TABLE: "the table as it is",
    protocols.FIT: "fit (training rows)",
    protocols.HOLDOUT: "hold-out by setting",
    protocols.LEAVE_ONE_SETTING_OUT: "one setting left out",
    protocols.LEAVE_ONE_BENCHMARK_OUT: "one kernel left out",
    protocols.K_FOLD: "k-fold, rows",
    protocols.K_FOLD_BENCHMARKS: "k-fold, kernels",
    protocols.TRANSFER: "trained on other data",
    "runs": "whole programs",
}
_SUBJECT = {
    protocols.TABLE: "For these kernels",
    protocols.FIT: "For kernels and clocks that it was fitted to",
    protocols.HOLDOUT: "For a known kernel at clocks that it was not fitted to",
    protocols.LEAVE_ONE_SETTING_OUT: "For a known kernel at clocks that it was not fitted to",
    protocols.LEAVE_ONE_BENCHMARK_OUT: "For a kernel that it was not fitted to",
    protocols.K_FOLD: "For kernels and clocks that it was fitted to, in other rows",
    protocols.K_FOLD_BENCHMARKS: "For a kernel that it was not fitted to",
    protocols.TRANSFER: "For these kernels, none of which it was fitted to",
    "runs": "For these programs",
}


@dataclass(frozen=True)
class Verdict:
    """A sentence with the numbers, and one of what follows from it."""

    sentence: str
    consequence: str


def protocol(name: str) -> str:
    """A protocol as people call it."""
    if name.endswith(SCALED):
        return f"{_NAMES[name.removesuffix(SCALED)]}, one scale factor a kernel"
    return _NAMES[name]


def percent(value: float | None) -> str:
    """A percentage with the digits that matter: 0.42, 4.9, 12."""
    if value is None:
        return "unknown"
    return f"{value:.2f} %" if abs(value) < 1 else f"{value:.1f} %" if abs(value) < 9.95 else f"{value:.0f} %"


def main(document: Mapping[str, Any]) -> str:
    """The protocol that the headline speaks of."""
    return str(document.get("main_protocol") or "runs")


def verdict(document: Mapping[str, Any]) -> Verdict:
    """What to believe: the typical error, nine out of ten, the worst."""
    name = main(document)
    one = document["protocols"][name]
    if one["mean_percent"] is None:
        return Verdict("No row could be predicted.", "The notes say why.")
    what = "energy" if name == "runs" else "power"
    subject = _SUBJECT[name]
    if name == protocols.TABLE and document.get("table_saw_these"):
        subject = _SUBJECT[protocols.FIT]
    sentence = f"{subject}, predicted {what} is off by {percent(one['mean_percent'])} on average."
    return Verdict(sentence, f"{_spread(one)} {_use(one)}")


def _spread(one: Mapping[str, Any]) -> str:
    if one["n"] < 2:
        return "One measurement is no statement about others."
    lean = ""
    if one["bias_percent"] is not None and abs(one["bias_percent"]) >= 0.5 * one["mean_percent"]:
        lean = f", and most predictions are too {'high' if one['bias_percent'] > 0 else 'low'}"
    return (
        f"Nine predictions in ten are within {percent(one['p90_percent'])}, the worst of {one['n']} is off by "
        f"{percent(one['max_percent'])}{lean}."
    )


def _use(one: Mapping[str, Any]) -> str:
    """What numbers with such an error can be used for: differences below the error cannot be told."""
    tenth = one["p90_percent"]
    if tenth is None:
        return ""
    if tenth <= 10:
        return f"Differences of more than about {percent(tenth)} between kernels can be believed; smaller ones cannot."
    if tenth <= 25:
        return "Good enough to find the kernels that cost most, not to rank those that are close."
    return "Take predicted joules as rough: shares and orders of magnitude, not differences of a few per cent."


def likeness(document: Mapping[str, Any]) -> str | None:
    """Whether kernels without a like are predicted worse, in a sentence; None where that was not looked at."""
    found = document.get("likeness")
    if not found or found["near"]["mean_percent"] is None or found["far"]["mean_percent"] is None:
        return None
    near, far = found["near"]["mean_percent"], found["far"]["mean_percent"]
    share = f"{100 * (1 - found['distance']):.0f} %"
    if far <= 1.15 * near:
        return (
            f"Likeness says little here: kernels that share {share} or more of where their power goes with another one "
            f"are off by {percent(near)}, the others by {percent(far)}."
        )
    return (
        f"Look for a kernel like yours: those that share {share} or more of where their power goes with another "
        f"measured kernel are off by {percent(near)}, those without such a like by {percent(far)}."
    )

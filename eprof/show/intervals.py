"""Intervals in words: how far a number is known, and whether that is enough to name it."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from eprof.base.text import bracketed, phrase, when
from eprof.base.vocabulary import Nouns
from eprof.show.numbers import percent, span

Ends = Sequence[float | None] | None


def known(ends: Ends) -> tuple[float, float] | None:
    """(low, high) of an interval; None where there is none, or an end is not known."""
    low, high = ends or (None, None)
    if low is None or high is None:
        return None
    return low, high


def is_certain(value: float | None, ends: Ends) -> bool:
    """Whether a number is certain enough to name: its interval has one sign and is no wider than the number.

    A number without an interval is certain.
    """
    pair = known(ends)
    if pair is None or value is None:
        return True
    low, high = pair
    return low * high > 0 and high - low <= abs(value) or low == high


def in_brackets(ends: Ends, unit: str) -> str:
    """An interval in brackets behind its number: " (2.24 to 3.55 J)"; empty where it has no width, or there is none."""
    return bracketed(wide(ends, unit))


def wide(ends: Ends, unit: str) -> str:
    """An interval as text: "2.24 to 3.55 J"; empty where there is none, or both ends read the same."""
    text = cell(ends, unit)
    return when(" to " in text, text)


def cell(ends: Ends, unit: str, *, signed: bool = False) -> str:
    """An interval as text for a table's cell; empty where there is none."""
    pair = known(ends)
    if pair is None:
        return ""
    return span(*pair, unit, signed=signed)


def label(share: float) -> str:
    """The heading of a column of intervals: "95 % interval". share: of the replicas that lie inside."""
    return when(share < 1, f"{percent(share)} ") + "interval"


def meaning(
    nouns: Nouns,
    share: float,
    replicas: int,
    spans: str | None,
    basis: str | None,
    within: float | None = None,
    apart: float | UnsetType = UNSET,
) -> str:
    """A sentence below a table of energies on what its intervals are made of: refits of prices, a model's error.

    spans: what a cost table with intervals of its own says they span. basis: what its prices rest on ("estimated").
    within: the factor that nine of ten kernels which a fit has not seen are off at most; apart: that between CPUs.
    """
    if basis == "estimated":
        return (
            f"{percent(share)} interval: what {replicas} draws of prices, as far apart as GPUs are, make of these "
            "counts; at least nine of ten kernels of GPUs left out lie inside."
        )
    if share >= 1:
        made_of = f"Interval: from those of the prices{bracketed(spans or '')}"
    else:
        made_of = f"{percent(share)} interval: what {replicas} refits of the prices make of these counts"
    if apart:
        return f"{made_of}, up to {apart:g} times as much or as little, as cores of CPUs differ."
    if within is None:
        return f"{made_of}; errors of the model and of the counts are not in it."
    of_one = f"for a {nouns.kernel} at least a factor of {within:.3g} each way"
    return f"{made_of}, and {of_one}, as nine of ten are off that the fit had not seen."


def of_change(nouns: Nouns, share: float, replicas: int, pairing: str, within: float | None = None) -> str:
    """A sentence on what the intervals of a difference of OLD and NEW are made of.

    pairing: "alike" (a replica has one set of prices for OLD and NEW), "paired" (one for each, which differ), "apart"
    (OLD and NEW have replicas of their own).
    """
    whose = {
        "alike": "the same prices for both sides",
        "paired": "each for both sides, at other clocks or scaled to other meters",
        "apart": "prices of both sides drawn independently",
    }[pairing]
    source = f"{percent(share)} interval: what {replicas} refits of the prices make of these counts"
    if share >= 1:
        source = "Interval: from those of the prices"
    sides = phrase(
        "; those of OLD and NEW hold the error of the model (a factor of {:.3g} each way for a {})",
        within,
        nouns.kernel,
    )
    return f"{source}, {whose}{sides}; errors of the model and of the counts are not in that of the change."

"""How ranks differ, in a sentence."""

from eprof.base.nouns import Nouns
from eprof.base.text import capital, phrase, when
from eprof.profile import schema
from eprof.show.words.numbers import percent, quantity, whole


def rank_words(ranks: schema.Ranks, nouns: Nouns) -> str:
    """Times, energies and launches of the smallest, the median and the largest rank; the slowest; the imbalance."""
    low, high = ranks.launches.min or 0, ranks.launches.max or 0
    spreads = [
        _spread(ranks.time_s, "s", "time"),
        _spread(ranks.energy_j, "J", "energy"),
        when(low != high, f"{nouns.launches} {whole(low)} to {whole(high)}"),
    ]
    marks = {"times": ranks.time_marks, "energies": ranks.energy_marks}
    lower = [numbers for numbers in marks if marks[numbers] and ranks.time_s.min is not None]
    sentences = [
        f"{whole(ranks.number)} ranks, smallest, median and largest: {'; '.join(filter(None, spreads))}.",
        phrase("The {} are lower bounds, for something is missing.", " and ".join(lower)),
        slowest_words(ranks),
    ]
    return " ".join(filter(None, sentences))


def slowest_words(ranks: schema.Ranks) -> str:
    """Which rank is the slowest, and by how much."""
    slowest = ranks.slowest
    if slowest is None:
        return ""
    if ranks.imbalance is None:
        return "How uneven the ranks are is not known, for some time is missing."
    name = capital(slowest)
    return f"{name} is the slowest; imbalance {percent(ranks.imbalance)} (its time over the mean, less one)."


def _spread(spread: schema.Spread, unit: str, noun: str) -> str:
    numbers = [quantity(value, unit) for value in (spread.min, spread.median, spread.max) if value is not None]
    return phrase("{} {}", noun, ", ".join(numbers))

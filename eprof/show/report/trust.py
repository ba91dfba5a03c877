"""The first screen's trust: how far off the joules may be, whose prices they have, and what was not counted."""

from collections.abc import Iterator, Mapping

from eprof.base.text import phrase
from eprof.profile import schema
from eprof.show.report import lacking, metered
from eprof.show.report.view import View
from eprof.show.words import costs as costs_words
from eprof.show.words.badges import ASSUMED, MISSING, SIMULATED
from eprof.show.words.blocks import Point
from eprof.show.words.intervals import known
from eprof.show.words.numbers import percent, signed_percent

_GOOD = 0.9  # of all energy, that is counted and priced
_OF_COUNTS = ("Not counted here", "No instruction and no byte")
_PRICES = {
    "measured": "measured on this {processor}",
    "fitted": "fitted to measured power",
    "published": "published, not measured here",
    "estimated": "of the data sheet: nobody measured this {processor} (--energy 12J, a meter's, narrows it most)",
}


def trust(view: View) -> Point:
    """The first screen's trust: what the prices are and how far off, what is missing, and where the time is from."""
    texts = [_verdict(view), *_prices(view), lacking.in_trust(view), *_times(view)]
    return Point("Trust", " ".join(filter(None, texts)))


def _verdict(view: View) -> str:
    """Trust in one word, and how far off the joules may be: "good (new kernels 8.6 % off)."."""
    if view.costs is None or not view.has_energy:
        return ""
    known_share = 1 - lacking.share(view)
    if view.to_meter is not None:
        is_split_known = view.to_meter.own and view.to_meter.basis != "estimated"
        is_good = not view.to_meter.idle_j and (len(view.kernels) == 1 or is_split_known and known_share >= _GOOD)
        return "good." if is_good else "rough."
    off = _kernels_off(view, view.costs)
    is_own = view.costs.gpu_match == "own" and not view.is_modelled
    word = "good" if off and is_own and known_share >= _GOOD else "rough"
    pair = known(view.interval("total"))
    if view.energy("total").lower and pair is None:
        word += f", a lower bound{lacking.in_headline(view)}"
    return f"{word} ({off or _spread(view) or 'error unknown'})."


def _spread(view: View) -> str:
    total, pair = view.energy("total").value, known(view.interval("total"))
    if not total or pair is None or view.is_modelled:
        return ""
    if pair[1] < total:
        return "the prices make more than the board can draw"
    return f"{signed_percent(pair[0] / total - 1)} to {signed_percent(pair[1] / total - 1)}"


def notes(view: View) -> list[str]:
    """The notes of the first screen: warnings that bear on every number, and say more than its other lines.

    What a log's reader says of one log ("FILE: ...") is for -v.
    """
    above = view.costs.notes if view.costs else view.document.warnings[:1]
    files = {log.path.rpartition("/")[2] for log in view.document.inputs}
    others = [note for note in view.document.warnings if note not in above and note.partition(":")[0] not in files]
    return [note for note in others if not note.startswith(_OF_COUNTS) and "has no price for" not in note]


def _prices(view: View) -> Iterator[str]:
    costs = view.costs
    if costs is None:
        # What else it says are ways to joules, of which Try has the best.
        yield from (warning.partition(". ")[0].rstrip(".") + "." for warning in view.document.warnings[:1])
        return
    if view.to_meter is not None:
        yield metered.certainty(view, view.to_meter)
        return
    facts = [_basis(view, costs)]
    if costs.name != costs.basis:
        is_default = costs.setting_from == "the table's default"
        facts = [costs_words.at_setting(costs) + " (its default)" * is_default, *facts]
    if costs.gpu_match == "other":
        whose = f"another {view.nouns.processor}'s, so joules hold if the two are alike"
        facts = [costs_words.of_another(costs, view.nouns), whose]
    yield f"Prices: {', '.join(filter(None, facts))}{phrase('; intervals: {}', _range_of(view))}."


def _basis(view: View, costs: schema.Costs) -> str:
    basis = _PRICES.get(costs.basis or "", "without a stated basis")
    basis = basis.format(processor=view.nouns.processor)
    if costs.gpu_match == "similar":
        return f"of the similar {costs.device.partition(' (')[0]}, {basis}"
    return basis


def _range_of(view: View) -> str:
    """What spans the intervals of a table that says so itself, in short."""
    interval = view.document.interval_j
    if not interval or interval.share < 1 or not view.costs or not view.costs.interval_is:
        return ""
    return view.costs.interval_is.partition(";")[0]


def _kernels_off(view: View, costs: schema.Costs) -> str:
    """Trust: the error of a fit on kernels that it had not seen; not where another's prices are taken."""
    if costs.gpu_match != "own":
        return ""
    errors: Mapping[str, float] = (costs.fit or {}).get("error_percent", {})
    error = errors.get("leave_one_benchmark_out")
    if error is None:
        return ""
    return f"new {view.nouns.kernels} {percent(error / 100)} off on average"


def _times(view: View) -> Iterator[str]:
    if view.is_modelled:
        # A count that is not whole, or rests on an assumption, is not exact.
        is_exact = not any(word.value.marks & (MISSING | ASSUMED) for word in view.words.values())
        exact = "exact for the simulator" if is_exact else "simulated"
        yield f"Counts: {exact}. Time: a model."
    elif view.time.marks & SIMULATED:
        yield f"Time: given; how the {view.nouns.kernels} share it is a model."
    elif view.document.time_from:
        yield f"Time: {view.document.time_from.partition(' (')[0]}."

"""A difference in words: which variant uses less energy, by how much, and why. From the document `eprof.diff/1`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from eprof.base.text import listed
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS
from eprof.words.names import short
from eprof.words.numbers import percent, plain, quantity

_Document = Mapping[str, Any]
_PROSE = {"int": "integer instructions", "sfu": "special functions", "other": "other instructions"}
_LEVELS = {"shared": "shared memory", "l1": "L1", "l2": "L2", "dram": "DRAM", "system": "host memory"}
# A part this small against the rest is not worth a sentence.
_WORTH = 0.1
_CASES = {
    1: "memory bound before and after (case 1)",
    2: "memory bound before, compute bound after (case 2)",
    3: "compute bound before and after (case 3)",
    None: "compute bound before, memory bound after, a case the model's bounds leave out",
}


@dataclass(frozen=True)
class Words:
    """headline: which variant uses less, by how much, why. lead: what follows. model: the two-level model's reading.

    noise: what repeats say, None without.
    """

    headline: str
    lead: str
    model: str
    noise: str | None


def words(document: _Document) -> Words:
    """Choose the sentences for a document."""
    return Words(_headline(document), _lead(document), _model(document["model"]), _noise(document))


def label(step: Mapping[str, Any]) -> str:
    """What a step of the waterfall is: "DRAM", "Integer price, other setting", "Kernels only in NEW"."""
    if step["kernels"] != "matched":
        side = "NEW" if step["kernels"] == "appeared" else "OLD"
        return f"{'Kernel' if step['names'] == 1 else 'Kernels'} only in {side}"
    name = _alone(step) or GROUPS[step["group"]]
    if step["because"] == "setting":
        return f"{name}, other setting"
    return f"{name}, other price" if step["because"] == "cost" else name


def _alone(step: Mapping[str, Any]) -> str:
    """The one word of a step, where its group's name says little: "Warp instructions issued"."""
    return COUNTS[step["words"][0]].label if step["group"] == "other" and len(step["words"]) == 1 else ""


def moving(document: _Document) -> list[Mapping[str, Any]]:
    """The steps that change something."""
    return [step for step in document["steps"] if step["change_j"]]


def unchanged(document: _Document) -> str:
    """The steps that are not drawn: "Unchanged: DRAM, FP32."; empty if there are none."""
    still = [label(step) for step in document["steps"] if not step["change_j"]]
    return f"Unchanged: {', '.join(still)}." if still else ""


def what(part: Mapping[str, Any]) -> str:
    """A part's word in the user's terms."""
    return GROUPS[CONSTANT] if part["what"] == CONSTANT else COUNTS[part["what"]].label


def because(part: Mapping[str, Any]) -> str:
    """Why a part changed, in a word or two."""
    return {"counts": "counts", "time": "time", "cost": "price", "setting": "setting"}[part["because"]]


def gate(one: Mapping[str, Any]) -> str:
    """One sentence on a gate: passed, failed, or why it cannot be judged."""
    of = f" of {short(one['kernel'], 60)}" if one["kernel"] else ""
    name = {"total": "energy", "time": "time"}.get(one["what"], one["what"])
    if one["failed"] is None:
        return f"--fail-above {one['gate']}: cannot be judged, because {one['why_not']}."
    unit = {"byte": "B", "instruction": ""}.get(one["unit"], one["unit"])
    amounts = f"{quantity(one['old'], unit)} to {quantity(one['new'], unit)}"
    if one["growth"] is None:
        grew = f"{name}{of} went from {amounts}" if one["new"] else f"{name}{of} is 0 on both sides"
    elif one["growth"] == 0:
        grew = f"{name}{of} did not change ({quantity(one['new'], unit)})"
    else:
        verb = "grew" if one["growth"] > 0 else "fell"
        grew = f"{name}{of} {verb} by {percent(abs(one['growth']))} ({amounts})"
    verdict = "above" if one["failed"] else "within"
    return f"--fail-above {one['gate']}: {grew}, {verdict} the limit of {one['limit'] * 100:g} %."


def less_more(change: float) -> str:
    """The direction of a change."""
    return "less" if change < 0 else "more"


def known(document: _Document) -> bool:
    """Whether a change in energy is known."""
    return document["change_j"] is not None


def is_shown(document: _Document) -> bool:
    """Whether the change stands out of the noise; without repeats, nothing says that it does not."""
    test = document["tests"]["energy"]
    return test is None or bool(test["shown"])


def _headline(document: _Document) -> str:
    if document["is_zero"]:
        return _no_change(document)
    if not known(document):
        return _without_energy(document)
    change = document["change_j"]
    start = _scope(document)
    test = document["tests"]["energy"]
    if test is not None and not test["shown"]:
        return (
            f"No difference can be shown: the means of {test['old']['n']} and {test['new']['n']} runs differ by "
            f"{quantity(change, 'J')}{_share(document)}, with a 95 % interval from {quantity(test['low'], 'J')} to "
            f"{quantity(test['high'], 'J')}."
        )
    if change == 0:
        return f"{start}the predicted energy is the same, though not every count is."
    size = f"{quantity(abs(change), 'J')}{_share(document)} {less_more(change)}"
    return f"{start}NEW uses {size} than OLD, predicted; {_reason(document)}."


def _scope(document: _Document) -> str:
    """How a sentence on the change starts; nothing is left out of it unmentioned."""
    if document["partial"]:
        return "Of what both sides know, "
    return "Of what is known, " if "missing" in document["marks"] else ""


def _share(document: _Document) -> str:
    share = document["change_share"]
    return "" if share is None else f" ({percent(abs(share))})"


def _no_change(document: _Document) -> str:
    if document["same_inputs"]:
        return "No change: OLD and NEW are the same logs, priced alike."
    energy = document["old"]["energy_j"]["total"]
    both = "" if energy is None else f"; both use {quantity(energy, 'J')}, predicted"
    return f"No change: every count and time is the same{both}."


def _reason(document: _Document) -> str:
    """The largest step in the direction of the change, with its share of the change, or its joules if it is larger."""
    change = document["change_j"]
    along = [step for step in document["steps"] if step["change_j"] * change > 0]
    if not along:
        return "its parts cancel"
    top = along[0]
    share = top["change_j"] / change
    noun = "saving" if change < 0 else "increase"
    if share > 1:
        sign = "+" if change > 0 else ""
        return f"the largest part, {sign}{quantity(top['change_j'], 'J')}, is {_phrase(top, document)}"
    start = f"all of the {noun}" if share == 1 else f"{percent(share)} of the {noun}"
    return f"{start} is {_phrase(top, document)}"


def _phrase(step: Mapping[str, Any], document: _Document) -> str:
    """A step in a sentence, with why it is so large."""
    if step["kernels"] != "matched":
        return f"{_kernels_of(step, document)} that only {'NEW' if step['kernels'] == 'appeared' else 'OLD'} has"
    group = step["group"]
    if step["because"] in ("cost", "setting"):
        where = "at the other setting" if step["because"] == "setting" else "in the other cost table"
        return f"the price of {_noun(group)} {where}"
    difference = step["new"] - step["old"]
    size = abs(difference)
    if group == CONSTANT:
        return f"constant power, because it runs {quantity(size, 's')} {'shorter' if difference < 0 else 'longer'}"
    if group in _LEVELS:
        return f"{_noun(group)}, which moves {quantity(size, 'B')} {less_more(difference)}"
    fewer = "fewer" if difference < 0 else "more"
    return f"{_alone(step).lower() or _noun(group)}, of which it executes {quantity(size, '')} {fewer}"


def _noun(group: str) -> str:
    if group == CONSTANT:
        return "constant power"
    if group in _LEVELS:
        return _LEVELS[group]
    return _PROSE.get(group, f"{GROUPS[group]} instructions")


def _kernels_of(step: Mapping[str, Any], document: _Document) -> str:
    if step["names"] > 1:
        return f"{step['names']} kernels"
    name = next(part["kernel"] for part in document["parts"] if part["kernels"] == step["kernels"])
    return short(name, 40)


def _without_energy(document: _Document) -> str:
    changes = [change for change in (_time_change(document), *_count_changes(document)) if change]
    if not changes:
        return "Energy is not compared, and nothing else is known on both sides."
    return f"Energy is not compared; NEW {listed(changes)}."


def _time_change(document: _Document) -> str:
    speedup = document["speedup"]
    if speedup is None:
        return ""
    return "takes the same time" if speedup == 1 else f"takes {_ratio_words(1 / speedup, fewer=False)} time"


def _count_changes(document: _Document) -> list[str]:
    found = []
    for verb, members, thing in (
        ("executes", [name for name, one in COUNTS.items() if one.unit == "instruction"], "instructions"),
        ("moves", ["dram_read", "dram_write", "dram"], "DRAM bytes"),
    ):
        cells = [document["counts"][name] for name in members if name in document["counts"] and name != "warp_issue"]
        told = [cell for cell in cells if cell["change"] is not None]
        old = sum(cell["old"] for cell in told)
        if told and len(told) == len(cells) and old:
            found.append(f"{verb} {_ratio_words(sum(cell['new'] for cell in told) / old)} {thing}")
    return found


def _ratio_words(ratio: float, fewer: bool = True) -> str:
    if ratio == 1:
        return "the same number of"
    less = "fewer" if fewer else "less"
    return f"{percent(abs(ratio - 1))} {'more' if ratio > 1 else less}"


# ------------------------------------------------------------------------------------------------ what follows


def _lead(document: _Document) -> str:
    if document["is_zero"]:
        return ""
    return " ".join(one for one in (_back(document), _ups(document), _measured(document)) if one)


def _back(document: _Document) -> str:
    """What works against the change, if it is worth a sentence."""
    change = document["change_j"]
    if not change or not is_shown(document):
        return ""
    along = sum(step["change_j"] for step in document["steps"] if step["change_j"] * change > 0)
    against = [step for step in document["steps"] if step["change_j"] * change < 0]
    total = sum(step["change_j"] for step in against)
    if not against or abs(total) < _WORTH * abs(along):
        return ""
    verb = "takes back" if change < 0 else "saves"
    return f"{label(against[0])} {verb} {quantity(abs(against[0]['change_j']), 'J')} of it."


def _ups(document: _Document) -> str:
    pieces = [
        f"{name} {plain(value)}"
        for name, value in (
            ("speedup", document["speedup"]),
            ("greenup", document["greenup"]),
            ("powerup", document["powerup"]),
        )
        if value is not None
    ]
    if not pieces:
        return ""
    powerup, speedup = document["powerup"], document["speedup"]
    why = ""
    if powerup is not None and speedup is not None:
        power = "more power" if powerup > 1 else "less power"
        time = "a shorter time" if speedup > 1 else "a longer time"
        why = f": it draws {power} for {time}" if powerup != 1 and speedup != 1 else ""
    text = ", ".join(pieces)
    return f"{text[0].upper()}{text[1:]}{why}."


def _measured(document: _Document) -> str:
    """What a meter saw of both."""
    old, new = (document[side]["energy_j"]["measured"] for side in ("old", "new"))
    if old is None or new is None:
        return ""
    if old == new:
        return f"Measured: the same, {quantity(old, 'J')}."
    size = f"{quantity(abs(new - old), 'J')} ({percent(abs(new - old) / old)}) {less_more(new - old)}"
    test = document["tests"]["measured"]
    sure = "" if test is None or test["shown"] else ", which the spread of the runs does not tell from no difference"
    return f"Measured by the meter: NEW {size}{sure}."


def _noise(document: _Document) -> str | None:
    test = document["tests"]["energy"] or document["tests"]["time"]
    if test is None:
        return None
    unit = "J" if document["tests"]["energy"] else "s"
    interval = f"from {quantity(test['low'], unit)} to {quantity(test['high'], unit)}"
    verdict = "a difference is shown" if test["shown"] else "no difference is shown"
    if test["old"]["sd"] == test["new"]["sd"] == 0:
        return f"The {test['old']['n']} and {test['new']['n']} repeats do not vary at all."
    change = quantity(test["change"], unit)
    return (
        f"Over {test['old']['n']} and {test['new']['n']} repeats the mean changes by {change}, with a 95 % interval "
        f"{interval} and p = {_p(test['p'])} (Welch's t test): {verdict}."
    )


def _p(value: float) -> str:
    return "below 0.001" if value < 0.001 else f"{value:.3f}"


def _model(model: Mapping[str, Any]) -> str:
    """The model's reading in a sentence or two, or what is missing for it."""
    if model["missing"]:
        return str(model["missing"])
    f, m = model["work_factor"], model["traffic_factor"]
    if f == 1 and m == 1:
        return "The two-level model sees no change: as many flops, as many DRAM bytes."
    with_, without = model["with_constant_power"], model["without_constant_power"]
    moved = f"{plain(m)} times less DRAM traffic" if m >= 1 else f"{plain(1 / m)} times the DRAM traffic"
    intensities = (
        f"{plain(model['old_intensity_flop_per_byte'])} to {plain(model['new_intensity_flop_per_byte'])} flop/B"
    )
    start = (
        f"The two-level model: {plain(f)} times the work (f) and {moved} (m = {plain(m)}), from {intensities} against "
        f"a time balance of {plain(model['time_balance'])}: {_CASES[model['case']]}. On its roofline that is a speedup "
        f"of {plain(model['speedup'])} and a greenup of {plain(with_['greenup'])} ({plain(without['greenup'])} "
        "without constant power)"
    )
    return f"{start}{_bounds(model)}. {_break_even(with_, without)}"


def _bounds(model: Mapping[str, Any]) -> str:
    if not model["is_tradeoff"]:
        return "; its bounds are for more work against less traffic, and this change is none of that"
    if model["case"] is None:
        return ""
    pairs = [model[key] for key in ("with_constant_power", "without_constant_power")]
    texts = [f"{plain(pair['low'])} and {plain(pair['high'])}" for pair in pairs]
    return f", which this case keeps between {texts[0]} ({texts[1]})"


def _break_even(with_: Mapping[str, Any], without: Mapping[str, Any]) -> str:
    """Up to how much work the same cut in traffic would have saved energy."""
    even, free = with_["break_even_work_factor"], without["break_even_work_factor"]
    if even <= 0:
        return "With so much more traffic no cut in work would save energy."
    said = f"{plain(free)}" if free > 0 else "none"
    return f"With this traffic, energy is saved below f = {plain(even)} ({said} without constant power)."

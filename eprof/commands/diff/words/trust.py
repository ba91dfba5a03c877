"""The first lines of a difference: what is compared, what is not the same, and how far to trust the answer."""

from eprof.base.labels import fitted
from eprof.base.text import counted, cut, few, phrase, when
from eprof.base.vocabulary import COUNTS, INSTRUCTIONS, ISSUED
from eprof.commands.diff.matching import SIMILAR
from eprof.commands.diff.schema import Costs, Document
from eprof.commands.diff.words.sentences import moving, shared_by_changes, step_label
from eprof.show.words import costs as costs_words
from eprof.show.words.badges import SIMULATED, bits
from eprof.show.words.devices import named
from eprof.show.words.numbers import plain

_NAME, _LONGEST = 18, 60
_MOST_NAMED = 3
_SAME_WORK = 0.01
_UNITS = {"clocks": " MHz", "setting": " MHz"}


def head(document: Document) -> str:
    """The first line of a difference: both names, with the GPU and the clocks of the prices where they are the same."""
    sides = document.old, document.new
    names = " → ".join(fitted([side.name for side in sides], _NAME))
    devices = {", ".join(named(side.devices)) for side in sides}
    settings = {costs_words.setting(side.costs.setting) if side.costs else "" for side in sides}
    shared = [facts.pop() for facts in (devices, settings) if len(facts) == 1]
    return " · ".join([names, *filter(None, shared)])


def unlike(document: Document) -> str:
    """What is not the same in OLD and NEW, and whether the work is; empty where all is."""
    labels = {"gpu": document.nouns.processor, "costs": "cost table", "launches": document.nouns.launches}
    texts = []
    for fact in document.unlike:
        old, new = (cut(text, _LONGEST) or "none" for text in (fact.old, fact.new))
        texts.append(f"{labels.get(fact.what, fact.what)} {old} → {new}{_UNITS.get(fact.what, '')}")
    if not texts:
        return ""
    if document.unlike[0].what == "arguments":
        texts[0] += _work(document)
    return f"Not the same: {'; '.join(texts)}."


def _work(document: Document) -> str:
    """Whether other arguments of NEW are other work: by the flops, or the instructions where there are none."""
    for noun, weights in _WORK.items():
        old, new = (_sum(document, side, weights) for side in ("old", "new"))
        if not old or new is None:
            continue
        if abs(new / old - 1) < _SAME_WORK:
            return f" (as many {noun})"
        return f" ({plain(new / old)} times the {noun}: the change is of the work too)"
    return ""


_WORK = {
    "flops": {word: count.flops for word, count in COUNTS.items() if count.flops},
    "instructions": dict.fromkeys((word for word in INSTRUCTIONS if word not in ISSUED), 1),
}


def _sum(document: Document, side: str, weights: dict[str, int]) -> float | None:
    """A weighted sum of the counts of OLD or NEW; None where one is not known."""
    numbers = {word: getattr(document.counts[word], side) for word in weights if word in document.counts}
    if None in numbers.values():
        return None
    return float(sum(weights[word] * number for word, number in numbers.items()))


def trust(document: Document) -> str:
    """How far to trust a difference: what the answer rests on, and what is not in it."""
    similar = sum(kernel.match is not None and kernel.match.how == SIMILAR for kernel in document.kernels)
    sides = document.old, document.new
    counts = any(bits(side.marks) & SIMULATED for side in sides)
    time = any(bits(side.time_marks) & SIMULATED for side in sides)
    simulated = when(counts, f"{document.nouns.simulated} simulated"), when(time, "time modelled")
    # Marks that all numbers have stand beside none of them.
    shared = shared_by_changes(document)
    words = [*(lost.what for lost in document.uncompared), *(lost.what for lost in document.unknown)]
    left_out = list(dict.fromkeys(map(document.nouns.label, words)))
    parts = [
        _verdict(document),
        _prices(document),
        " and ".join(filter(None, simulated)),
        when("estimated" in shared, "all joules estimated"),
        when("assumed" in shared, "all joules rest on assumptions"),
        phrase("not in it: {}", few(left_out, _MOST_NAMED)),
        when(similar, f"{counted(similar, document.nouns.kernel)} paired by similar names"),
        when(document.old.repeats == document.new.repeats == 1, "one run of each"),
    ]
    return f"Trust: {'; '.join(filter(None, parts))}."


def _verdict(document: Document) -> str:
    """How far to trust a difference in one word, and how far off the joules of a side may be."""
    if not document.has_energy:
        return ""
    refits = document.intervals
    if refits is None or refits.within is None or not all(costs.serves for costs in _tables(document)):
        return "rough (error unknown)"
    word = "rough" if document.above_constant or "missing" in document.marks else "good"
    cancels = when(refits.paired, "; errors of prices that both share cancel")
    kernels = document.nouns.kernels
    return f"{word} (each side: nine of ten unseen {kernels} within a factor of {plain(refits.within)}{cancels})"


def _tables(document: Document) -> list[Costs]:
    return [side.costs for side in (document.old, document.new) if side.costs is not None]


def _prices(document: Document) -> str:
    """Trust: whose prices both sides of the difference have."""
    tables = _tables(document)
    if not tables:
        return "no cost table (--costs)"
    texts = [costs_words.all_named(tables)]
    if not all(costs.serves for costs in tables):
        whose = when(document.nouns.is_of_cpu, f"of {tables[0].device}, ")
        texts.append(f"{whose}not made for this {document.nouns.processor}")
    return ", ".join(texts)


def bar(document: Document) -> list[tuple[str, float]]:
    """The bar of a difference: the largest parts of the change with their share of it."""
    change = document.change_j
    if not change:
        return []
    steps = [(step_label(step, document.nouns), step.change_j / change) for step in moving(document)]
    return [(label, share) for label, share in steps if abs(share) >= 0.01][:4]

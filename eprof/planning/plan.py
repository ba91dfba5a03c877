"""Planning: the smallest set of counters that prices everything, what each is for, and what will be missing."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from eprof.base.toml import Formula
from eprof.base.vocabulary import BYTES, COUNTS, INSTRUCTIONS, PARTS
from eprof.costs import Costs
from eprof.counting.definition import Counter, Definition


@dataclass(frozen=True)
class Plan:
    """counters: what to collect -> the words of the vocabulary that it counts. missing: word -> why it cannot be."""

    counters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def why(self, counter: str) -> str:
        """What a counter is for, in words."""
        return ", ".join(COUNTS[word].label for word in self.counters.get(counter, ()))


def plan(definition: Definition, costs: Costs | None, offered: Collection[str] | None = None) -> Plan:
    """The counters for every word that `costs` prices (all words where there are no costs), the preferred way of each.

    offered: what the profiler of this machine has; a word's next best way is taken where its best is not offered.
    """
    books = costs.books if costs is not None else "served"
    counters: dict[str, tuple[str, ...]] = {}
    missing: dict[str, str] = {}
    for word in _wanted(definition, costs, books):
        found = _word(definition, word, books, offered)
        if found is None:
            missing[word] = _reason(definition, word, books)
            continue
        for name in found:
            counters[name] = (*counters.get(name, ()), word)
    return Plan(counters, missing)


def _wanted(definition: Definition, costs: Costs | None, books: str) -> list[str]:
    """The words to count: those that pay, in their finest parts; a class total only where its parts are not counted."""
    words = [
        word
        for word in (*INSTRUCTIONS, *BYTES)
        if word not in definition.absent and (costs is None or (word in costs.charges and costs.charges[word].pays))
    ]
    told_apart = {total for total, parts in PARTS.items() if any(definition.entries(part, books) for part in parts)}
    return [word for word in words if word not in told_apart]


def _word(definition: Definition, word: str, books: str, offered: Collection[str] | None) -> tuple[str, ...] | None:
    """The profiler's names behind the first way to count `word` that is offered in full; None if none is."""
    for entry in definition.entries(word, books):
        found = _formula(definition, entry.formula, offered)
        if found is not None:
            return found
    return None


def _formula(definition: Definition, formula: Formula, offered: Collection[str] | None) -> tuple[str, ...] | None:
    found: list[str] = []
    for name in sorted(formula.names):
        names = _name(definition, name, offered)
        if names is None:
            return None
        found += names
    return tuple(dict.fromkeys(found))


def _name(definition: Definition, name: str, offered: Collection[str] | None) -> tuple[str, ...] | None:
    if name in definition.counters:
        return _counter(definition.counters[name], offered)
    if name in definition.quantities:
        ways = (_formula(definition, entry.formula, offered) for entry in definition.quantities[name])
        return next((way for way in ways if way is not None), None)
    return ()


def _counter(counter: Counter, offered: Collection[str] | None) -> tuple[str, ...] | None:
    if offered is None:
        return counter.slices[: counter.expect] if counter.slices else counter.names[:1]
    # A profiler lists `metric[OPCODE]` as `metric`.
    known = [name for name in counter.wanted if name.partition("[")[0] in offered]
    if counter.slices:
        return tuple(known) if len(known) >= (1 if counter.partial else counter.expect) else None
    return tuple(known[:1]) or None


def _reason(definition: Definition, word: str, books: str) -> str:
    if word in definition.uncountable:
        return definition.uncountable[word]
    needs: Iterable[str] = {
        one for entry in definition.entries(word, books) for one in definition.counters_of(entry.formula)
    }
    return f"the profiler of this machine does not offer {', '.join(sorted(needs)) or 'a counter for it'}"

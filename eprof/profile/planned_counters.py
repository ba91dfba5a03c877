"""`plan`: the smallest set of a profiler's counters that prices all classes, what each is for, what stays uncounted."""

from collections.abc import Collection, Iterable
from itertools import chain

from msgspec import Struct, field

from eprof.base.optional import gathered
from eprof.base.toml import Formula
from eprof.base.vocabulary import COUNTS, PARTS, TENSOR_PARTS
from eprof.costs import Costs
from eprof.counts.definition import Definition, Entry

_TENSOR = TENSOR_PARTS["tensor"]


class Plan(Struct, frozen=True):
    """What to collect. counters: counter -> words of the vocabulary it counts; missing: word -> why it has none."""

    counters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def why(self, counter: str) -> str:
        """What a planned counter is for, in words."""
        return ", ".join(COUNTS[word].label for word in self.counters.get(counter, ()))


def plan(definition: Definition, costs: Costs | None, offered: Collection[str] | None = None) -> Plan:
    """Choose the counters that count each class that `costs` prices (without costs: each class), by its preferred way.

    offered: what the profiler of this machine has; a word's next best way is taken where its best is not offered.
    """
    books = costs.books if costs is not None else "served"
    planner = _Planner(definition, books, offered)
    ways = {word: planner.first_offered(planner.entries(word)) for word in planner.words(costs)}
    words_of = gathered((name, word) for word, names in ways.items() for name in names or ())
    missing = {word: planner.reason(word) for word, names in ways.items() if names is None}
    return Plan({name: tuple(words) for name, words in words_of.items()}, missing)


class _Planner(Struct, frozen=True):
    """Finds the profiler's counters for words, formulas and short names; None where it does not offer all of them."""

    definition: Definition
    books: str
    offered: Collection[str] | None

    def words(self, costs: Costs | None) -> list[str]:
        """The words to plan for: those that pay, in their finest parts; a total only where no part can be counted.

        Where tensor work of some type pays, all types are counted: what has no price must not go unseen.
        """
        has_parts = {total for total, parts in PARTS.items() if any(self.entries(part) for part in parts)}
        words = [word for word in COUNTS if word not in {*self.definition.absent, *self.definition.not_here}]
        if costs is None:
            words = [word for word in words if self.entries(word) or word in self.definition.uncountable]
        else:
            paying = {word for word in words if word in costs.charges and costs.charges[word].pays}
            if paying & set(_TENSOR):
                paying |= {word for word in _TENSOR if self.entries(word)}
            words = [word for word in words if word in paying]
        return [word for word in words if word not in has_parts]

    def reason(self, word: str) -> str:
        """Why no counter can be planned for `word`."""
        if word in self.definition.uncountable:
            return self.definition.uncountable[word]
        needed = {name for entry in self.entries(word) for name in self.definition.counters_of(entry.formula)}
        return f"the profiler of this machine does not offer {', '.join(sorted(needed)) or 'a counter for it'}"

    def entries(self, word: str) -> tuple[Entry, ...]:
        """The ways to count `word` in the books of the costs, best first."""
        return self.definition.entries(word, self.books)

    def first_offered(self, entries: Iterable[Entry]) -> tuple[str, ...] | None:
        """The counters of the first of these ways to count of which the profiler offers all; None: no such way."""
        ways = (self._for_formula(entry.formula) for entry in entries)
        return next((names for names in ways if names is not None), None)

    def _for_formula(self, formula: Formula) -> tuple[str, ...] | None:
        """The profiler's counters that a formula needs, each once; None: the profiler does not offer all of them."""
        if formula.text.startswith("0 / "):  # that something is not there, and nothing where it is
            return None
        of_names = [self._for_name(short_name) for short_name in sorted(formula.names)]
        known = [names for names in of_names if names is not None]
        if len(known) < len(of_names):
            return None
        return tuple(dict.fromkeys(chain.from_iterable(known)))

    def _for_name(self, short_name: str) -> tuple[str, ...] | None:
        """The profiler's counters behind a formula's short name, () for a name that needs none; None: not offered."""
        if short_name in self.definition.told and self.definition.told[short_name].kernel is not None:
            return None  # a kernel's name may tell nothing: no plan rests on it
        if short_name in self.definition.counters:
            counter = self.definition.counters[short_name]
            if self.offered is None:
                return counter.slices[: counter.expect] or counter.names[:1]
            # A profiler lists `metric[OPCODE]` as `metric`.
            known = tuple(name for name in counter.profiler_names if name.partition("[")[0] in self.offered)
            if not counter.slices:
                return known[:1] or None
            needed = 1 if counter.partial else counter.expect
            return known if len(known) >= needed else None
        if short_name in self.definition.quantities:
            return self.first_offered(self.definition.quantities[short_name])
        return ()

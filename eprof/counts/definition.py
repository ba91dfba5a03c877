"""`Definition`: how every word of the vocabulary is counted from one profiler's counters on some GPUs or CPUs.

Counting (`counts.py`), the list of counters to collect (`profiler_names`) and the explanation (`eprof counters`) are
all made from this. `docs/counters.md` has the form of the files.
"""

import functools
import operator
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.text import ShortRepr, pattern
from eprof.base.toml import Formula
from eprof.base.vocabulary import BOOKS, BYTES, COUNTS, FLOAT_PARTS, GPU, Mark, Nouns, nouns_of

SIMULATED = "simulated"  # the capability of a simulated device: its counts are marked so
ANY = "any"  # the capability in a definition of counters that mean the same on all devices
# What may tell a GPU that the log does not name: ncu's number of multiprocessors; the most blocks that one holds, in
# all and by their warps, of so many threads; and by names of a definition the bytes of DRAM over the seconds that they
# take at its peak, and its clock.
SM_COUNT = "launch__sm_count"
HELD = ("launch__occupancy_limit_blocks", "launch__occupancy_limit_warps", "launch__block_size")
DRAM_CLOCK, CORE_CLOCK = "dram_hz", "core_hz"
DRAM_PEAK = ("dram_byte_per_s", "dram_all", "dram_busy_s")
_COMPUTATION = ("instruction", "flop", "cycle", "access")
_OF_UNIT = {unit: tuple(name for name, count in COUNTS.items() if count.unit == unit) for unit in _COMPUTATION}
_FLOPS = (*_OF_UNIT["flop"], *FLOAT_PARTS)  # totals may be counted in flops, where a multiply-add counts as two
SECTIONS = {**_OF_UNIT, "flop": _FLOPS, "bytes": BYTES, "served": BYTES, "accessed": BYTES}
WORDS_OF = {books: (*_COMPUTATION, "bytes", books) for books in BOOKS}
# What time by component (`energy/time_by_component.py`) needs beside instructions and bytes: first the launch shape.
SHAPE = ("blocks", "threads", "registers", "shared_byte", "occupancy")
COMPONENTS = (*SHAPE, "loads", "stores", "shared", "conflicts", "texture", "texture_misses")
# What keeps warps from issuing, and may become less (`counters/stalls.toml`).
STALLS = (
    *("memory_stall", "lg_throttle", "barrier_stall", "shared_stall", "math_stall"),
    *("wait_stall", "fetch_stall", "branch_stall", "constant_stall", "fence_stall"),
)
# Shares that tell why a kernel waits, what its launches allow, how busy units are; how often registers are spilled; and
# what bounds instructions.
SHARES = (
    *STALLS,
    *("excess", "store_excess", "request_sectors", "local_share", "bank_conflict", "bank_conflicts", "older_tensor"),
    *("sm_active", "lanes"),
    *("occupancy_limit", "registers_limit", "shared_limit", "block_limit", "spills"),
    *("sm_busy", "l1_busy", "l2_busy", "dram_busy", "issue_busy", "memory_bound"),
    *("retiring", "bad_speculation", "frontend_bound", "backend_bound"),  # of a CPU's cores
    *("dram_bound", "unoptimised", "missed_stores", "text"),  # of these, at most; of code; of stores
    *("recurrence", "product"),  # of scalar arithmetic
)
FP64_MOST = "fp64_most"
ROOMS = ("fp32_room", FP64_MOST, "l1_room", "l2_room", "dram_room")  # the most that units can have done
SIGNS = (*SHARES, "multiprocessors", "a_cycle", *ROOMS)
BESIDE = (*COMPONENTS, *SIGNS)  # what a definition tells beside the words of the vocabulary
_NAME = pattern(r"(?<![\w.])[A-Za-z_]\w*")


class Counter(Struct, frozen=True):
    """A definition's short name for a profiler's counter: the first of `names` in the log, or the sum of `slices`.

    slices: counters of parts of a GPU, such as L2's; the sum is known only if at least the first `expect` are. partial:
    it is the mean of those that are known, times `expect`. unit: that the log must have; only "count" adds up over
    launches. text: the counter in the explanation of a formula.
    """

    name: str
    names: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    expect: int = 0
    partial: bool = False
    unit: str = "count"
    text: str = ""

    @property
    def profiler_names(self) -> tuple[str, ...]:
        """Every name that the counter, or a slice of it, may have in a log."""
        return self.names or self.slices


class Entry(Struct, frozen=True):
    """One way to count a word or quantity: a formula of counters, its mark and a note on why it has that.

    mark_if: the mark holds only where this formula is not 0. at_least: the formula is a sum; counters of it that a log
    lacks are left out, and what remains is a lower bound.
    """

    formula: Formula
    mark: Mark
    note: str
    mark_if: Formula | None = None
    at_least: bool = False


class Told(Struct, frozen=True):
    """A number that formulas may use, told by a kernel's or GPU's name: 1 a condition holds, 0 not, NaN not known.

    kernel: a pattern for names of kernels; of the patterns of one `group` the first that fits holds, no other. device:
    a pattern for names of GPUs; where a log names none, the numbers of `multiprocessors` that such GPUs have, if given.
    peak: the number is this peak of the GPU's data sheet instead.
    """

    kernel: re.Pattern[str] | None = None
    group: str = ""
    device: re.Pattern[str] | None = None
    multiprocessors: frozenset[float] = frozenset()
    peak: str = ""

    @property
    def text(self) -> str:
        """The condition, or peak, in words for the explanation of a formula."""
        if self.kernel is not None:
            return f"(the kernel is `{self.kernel.pattern}`)"
        if self.peak:
            return f"(the {self.peak} of the GPU's data sheet)"
        assert self.device is not None
        numbers = ", ".join(f"{number:g}" for number in sorted(self.multiprocessors))
        return f"(the GPU is `{self.device.pattern}`, or one of {numbers or 'no'} SMs)"


class Check(Struct, frozen=True):
    """A relation ("==", "<=") of two formulas that healthy counters obey, within a tolerance; note: it in words."""

    left: Formula
    right: Formula
    relation: str
    tolerance: float
    note: str


class TimePair(Struct, frozen=True):
    """Bytes moved and the rate at which the profiler says they moved: their quotient is the kernel's time."""

    bytes: Formula
    rate: Formula
    note: str


class Definition(ShortRepr, Struct, frozen=True, eq=False):
    """What the counters of one profiler mean on some compute capabilities of GPUs, or microarchitectures of CPUs.

    time_share: what a kernel's part of the time of the whole program goes by, where its own is not known. not_here:
    words for what such a processor does not have, of which the file says nothing. components: what the time by
    component needs, and signs of why kernels wait, by the names of `COMPONENTS` and `SIGNS`.
    """

    name: str
    profiler: str
    capabilities: tuple[str, ...]
    source: str
    counters: Mapping[str, Counter]
    parameters: Mapping[str, float]
    quantities: Mapping[str, tuple[Entry, ...]]
    words: Mapping[str, Mapping[str, tuple[Entry, ...]]]
    absent: Mapping[str, str]
    uncountable: Mapping[str, str]
    checks: tuple[Check, ...] = ()
    time_pairs: tuple[TimePair, ...] = ()
    label: str = ""
    time_share: tuple[Entry, ...] = ()
    processor: str = GPU
    not_here: frozenset[str] = frozenset()
    components: Mapping[str, tuple[Entry, ...]] = field(default_factory=dict)
    told: Mapping[str, Told] = field(default_factory=dict)

    @property
    def nouns(self) -> Nouns:
        """The nouns (kernel or function, ...) of the definition's kind of processor."""
        return nouns_of(self.processor)

    @property
    def profiler_names(self) -> frozenset[str]:
        """The profiler's names of all counters that the definition uses (slices: all that may exist)."""
        return frozenset(
            name for used in self.used() if used in self.counters for name in self.counters[used].profiler_names
        )

    @property
    def counted(self) -> frozenset[str]:
        """The profiler names of counters that count, mark, share out time or tell of waits: not only bound or check."""
        told = [entries for word, entries in self.components.items() if word != FP64_MOST]
        entries = [*self._counting(), *chain.from_iterable((*self.quantities.values(), *told))]
        formulas = (formula for entry in entries for formula in (entry.formula, entry.mark_if) if formula)
        return frozenset(chain.from_iterable(map(self.counters_of, formulas)))

    @property
    def of_words(self) -> frozenset[str]:
        """The profiler's names of counters in the unit "count" that words or shares of time are made of."""
        of_words = frozenset(chain.from_iterable(self.counters_of(entry.formula) for entry in self._counting()))
        counts = (counter for counter in self.counters.values() if counter.unit == "count")
        return of_words.intersection(chain.from_iterable(counter.profiler_names for counter in counts))

    @property
    def in_flops(self) -> frozenset[str]:
        """The class totals, such as "fp32", that are counted in flops, not in instructions."""
        return frozenset(self.words["flop"].keys() & FLOAT_PARTS.keys())

    def entries(self, word: str, books: str) -> tuple[Entry, ...]:
        """The ways to count `word` in these books, best first; empty where it is absent or uncountable."""
        for section in WORDS_OF[books]:
            if word in self.words[section]:
                return self.words[section][word]
        return ()

    def expand(self, formula: Formula, known: Mapping[str, str] | None = None) -> str:
        """The formula's text with the profiler's names of counters, and quantities by their first way, put in.

        known: texts to put in for some of the names instead.
        """
        return _NAME.sub(lambda match: self._text(match[0], known or {}), formula.text)

    def unfolded(self, way: Entry, steps: Collection[str]) -> Iterator[Entry]:
        """Yields every way that `way` stands for: with each quantity in its formula, but `steps`, replaced by a way."""
        others = sorted(name for name in way.formula.names if name in self.quantities and name not in steps)
        if not others:
            yield way
            return
        for step in self.quantities[others[0]]:
            text = step.formula.text
            if way.formula.text != others[0]:
                text = re.sub(rf"(?<![\w.]){others[0]}\b", as_operand(text), way.formula.text)
            formula = Formula(text, way.formula.names - {others[0]} | step.formula.names)
            # What is marked in some cases is marked in all where another mark stands beside it.
            condition = (way.mark_if, step.mark_if)[way.mark == 0] if 0 in (way.mark, step.mark) else None
            yield from self.unfolded(replace(way, formula=formula, mark=way.mark | step.mark, mark_if=condition), steps)

    def alike_by(self, way: Entry, steps: Mapping[str, str]) -> str | None:
        """A way's formula as text, equal to that of other definitions that count alike; None: it has other quantities.

        steps: quantities that the definitions count alike, name -> the text for it.
        """
        if not way.formula.names & self.quantities.keys() <= steps.keys():
            return None
        return self.expand(way.formula, steps)

    def _text(self, name: str, known: Mapping[str, str]) -> str:
        """What `expand` puts in for a name of a formula."""
        if name in known:
            return known[name]
        if name in self.counters:
            return self.counters[name].text
        if name in self.parameters:
            return f"{self.parameters[name]:g}"
        if name in self.told:
            return self.told[name].text
        if name in self.quantities:
            return as_operand(self.expand(self.quantities[name][0].formula))
        return name

    def counters_of(self, formula: Formula) -> list[str]:
        """The profiler's names of the counters behind a formula, through all ways of its quantities, sorted."""
        behind: set[str] = set()
        for name in self.closure(formula.names):
            if name in self.counters:
                counter = self.counters[name]
                behind.update(counter.names or counter.slices[: counter.expect])
        return sorted(behind)

    def closure(self, start: Iterable[str]) -> set[str]:
        """The names in `start`, and those in the formulas of quantities among them, and so on."""
        reached: set[str] = set()
        waiting = list(start)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                for entry in self.quantities.get(name, ()):
                    waiting += entry.formula.names
        return reached

    def _counting(self) -> Iterator[Entry]:
        """A definition's ways to count words and shares of time."""
        for section in self.words.values():
            yield from chain.from_iterable(section.values())
        yield from self.time_share

    def used(self) -> set[str]:
        """The definition's names behind some word, share of time, component, check or pair for times, and the clock."""
        entries = (*self._counting(), *chain.from_iterable(self.components.values()))
        checks = chain.from_iterable((check.left, check.right) for check in self.checks)
        pairs = chain.from_iterable((pair.bytes, pair.rate) for pair in self.time_pairs)
        formulas = (*(entry.formula for entry in entries), *checks, *pairs)
        return self.closure({CORE_CLOCK, *(name for formula in formulas for name in formula.names)})


def as_operand(text: str) -> str:
    """`text` as an operand of a larger formula: in parentheses where it needs them."""
    return text if re.fullmatch(r"[\w.]+(\([^()]*\)|\[[^][]*\])?", text) else f"({text})"


def common(definitions: Sequence[Definition]) -> Definition:
    """The definition for a log whose GPU may be of any of `definitions`, all of one profiler: what they count alike.

    A way is kept if all of them have it, of the same counters and of quantities that all count alike; a word without
    such a way is uncountable.
    """
    first = definitions[0]
    steps: Mapping[str, tuple[Entry, ...]] = first.quantities
    fewer = _alike([(each, each.quantities) for each in definitions], steps)
    while fewer != steps:
        steps, fewer = fewer, _alike([(each, each.quantities) for each in definitions], fewer)
    words = {section: _alike([(each, each.words[section]) for each in definitions], steps) for section in first.words}
    absent = {word: why for word, why in first.absent.items() if all(word in each.absent for each in definitions)}
    reason = "counted in other ways on GPUs that this may be; --capability says which it is"
    of_any = set().union(*(entries for each in definitions for entries in (*each.words.values(), each.absent)))
    counted = set(absent).union(*words.values())
    uncountable = {**dict.fromkeys(of_any, reason), **first.uncountable}
    return replace(
        first,
        name=f"{first.profiler}/common",
        capabilities=(),
        quantities=steps,
        words=words,
        absent=absent,
        uncountable={word: why for word, why in uncountable.items() if word not in counted},
        checks=(),
        components=_alike([(each, each.components) for each in definitions], steps),
        label="what GPUs that this may be count alike",
    )


def _alike(
    tables: Sequence[tuple[Definition, Mapping[str, tuple[Entry, ...]]]], steps: Mapping[str, tuple[Entry, ...]]
) -> dict[str, tuple[Entry, ...]]:
    """Name -> its ways that all definitions have in common, made of counters and of the quantities `steps`.

    tables: each definition, with the table of it that is compared.
    """
    alike = {}
    own = {step: step for step in steps}
    for name in tables[0][1]:
        of_each = [
            {each.alike_by(way, own): way for whole in table.get(name, ()) for way in each.unfolded(whole, own)}
            for each, table in tables
        ]
        keys = [key for key in of_each[0] if key and all(key in ways for ways in of_each)]
        if keys:
            alike[name] = tuple(_together([ways[key] for ways in of_each]) for key in keys)
    return alike


def _together(same: Sequence[Entry]) -> Entry:
    """One way for the same way in several definitions, with all marks that it has in any of them."""
    most = max(same, key=lambda way: way.mark.bit_count())
    if all((way.mark, way.mark_if) == (most.mark, most.mark_if) for way in same):
        return same[0]
    return replace(most, mark=functools.reduce(operator.or_, (way.mark for way in same)), mark_if=None)


def without_counters() -> Definition:
    """The definition for logs that hold times and no counters, whatever the GPU: no word is countable."""
    reasons = dict.fromkeys(COUNTS, "the logs hold no counters")
    words: dict[str, dict[str, tuple[Entry, ...]]] = {section: {} for section in SECTIONS}
    return Definition("none", "none", (), "the logs hold times only", {}, {}, {}, words, {}, reasons)

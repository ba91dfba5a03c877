"""How alike OLD and NEW are: one run twice, strangers, other launches, other work or precision; a level waited for.

What the answer begins with depends on it: a figure of the whole is no finding where the two did not do the same.
"""

from math import inf, isclose, log

from msgspec import Struct

from eprof.base.optional import ratio
from eprof.base.vocabulary import COUNTS, FLOAT_PARTS, ISSUED, TENSOR_FLOPS, TENSOR_PARTS
from eprof.commands.diff.matching import EQUAL, SIMILAR
from eprof.commands.diff.schema import Cause, Document, KernelSide

LITTLE_IN_COMMON = 0.1  # of what both take: with less in kernels of both, they are no variants of one program
SAME_WORK = 0.01
_REPEATS = 1e-3  # by how much counts of one program differ from run to run
_OF_TIME = (None, *(count for count in COUNTS.values() if count.unit == "cycle"))  # of constant power, and cycles
OTHER_WORK = 1.5  # times the work, or fewer: a compiler alone changes less
_FOLLOWS = 1.2  # times the bytes, or fewer: a problem of another size moves other bytes, too
_NEARLY, _BESIDE_FLOPS = 0.1, ("retired", "l1_read")
_LONGER = 1.1  # times the cycles or time, or less: a change that asks for a reason
_ALL_OF_IT = 0.9  # of what a side takes
_WORTH_IT = 0.1  # of all flops
_CANCELLED = 0.1  # of the largest part of a change: with less, the parts cancel
_MOST_APART, _MOST_APART_IF_UNKNOWN = 2.0, 1.1  # times the flops that went, which came
HALF = 0.5  # of what a side takes, or of a way
_OTHER_PACE = {"gpu", "clocks"}  # what makes the same bytes take another time
# Bits of a factor with its leading one, and of its exponent.
BITS = {
    **{"fp64": (53, 11), "fp32": (24, 8), "fp16": (11, 5), "tensor_fp64": (53, 11), "tensor_tf32": (11, 8)},
    **{"tensor_fp16": (11, 5), "tensor_bf16": (8, 8), "tensor_fp8": (4, 5), "tensor_fp6": (4, 3), "tensor_fp4": (2, 2)},
}
_FLOPS = {word: float(count.flops) for word, count in COUNTS.items() if count.flops}
_FLOPS |= dict.fromkeys(TENSOR_FLOPS, 1.0)
# Instructions whose kinds are not told apart are two flops each.
_FLOPS_OF_TYPES = {
    total: {total: 2.0} | {part: _FLOPS.get(part, 0.0) for part in parts} for total, parts in FLOAT_PARTS.items()
} | {word: {word: 1.0} for word in TENSOR_PARTS["tensor"]}
_FP_INSTRUCTIONS = {word: 1.0 for total, parts in FLOAT_PARTS.items() for word in (total, *parts)}
DRAM = dict.fromkeys(("dram_read", "dram_write", "dram"), 1.0)
CLASSES = {word: 1.0 for word, count in COUNTS.items() if count.unit == "instruction" and word not in ISSUED}
_OF_TYPES = {
    total.upper(): {part: _FLOPS[part] for part in parts if part in _FLOPS} for total, parts in FLOAT_PARTS.items()
}
# What counts work, the best first: how much each word is of it, its noun, verb and what energy is told for.
_WORKS: tuple[tuple[dict[str, float], str, str, str], ...] = (
    (_FLOPS, "flops", "does", "flop"),
    (dict.fromkeys(TENSOR_FLOPS, 1.0), "flops on tensor cores", "does", "flop"),
    *((weights, f"{name} flops", "does", f"{name} flop") for name, weights in _OF_TYPES.items()),
    (_FP_INSTRUCTIONS, "floating-point instructions", "executes", "floating-point instruction"),
    ({"retired": 1.0}, "instructions", "executes", ""),
    (CLASSES, "other instructions", "executes", ""),
)


class Work(Struct, frozen=True):
    """Work by one measure, and NEW's over OLD's (`factor`). noun: what counts it, "flops"; verb: how kernels do it.

    each: what energy is told for each of; empty of instructions, which a compiler makes fewer for the same work.
    """

    noun: str
    verb: str
    each: str
    factor: float

    @property
    def is_same(self) -> bool:
        """Whether OLD and NEW do as much of this work."""
        return abs(self.factor - 1) < SAME_WORK


def is_shown(document: Document) -> bool:
    """Whether a change of energy is no noise, nor of other counters; by time alone only where runs in turns show it."""
    if of_other_counters(document):
        return False
    test = document.tests.energy
    return test.shown if test is not None else not document.rests_on_time


def time_goes_against_counts(document: Document) -> bool:
    """Whether the change is of time, and what was counted beside it changed the other way."""
    counted_j = sum(part.change_j for part in document.parts if COUNTS.get(part.what) not in _OF_TIME)
    is_more = abs(counted_j) > _REPEATS * (document.old.compared_j or 0.0)
    return document.rests_on_time and is_more and counted_j * (document.change_j or 0.0) < 0


def tells_shares(document: Document) -> bool:
    """Whether shares of the change say anything: the change is a tenth of its largest step, or more."""
    largest_j = max((abs(step.change_j) for step in document.steps), default=0.0)
    return abs(document.change_j or 0.0) >= _CANCELLED * largest_j


def of_other_counters(document: Document) -> list[Cause]:
    """The causes that are counted from other counters and differ little, if they make half of the change; else none.

    Bytes of other simulated caches may differ much for that alone.
    """
    change_j = document.change_j or 0.0
    causes = [cause for cause in document.causes if cause.counters and not is_other(ratio(cause.new, cause.old) or inf)]
    if has_other_caches(document):
        causes = [cause for cause in document.causes if cause.unit == "byte"]
    rest_j = change_j - sum(cause.change_j - cause.constant_j for cause in causes)
    return causes if abs(rest_j) < HALF * abs(change_j) else []


def has_other_caches(document: Document) -> bool:
    """Whether OLD and NEW were counted with other simulated caches."""
    return any(fact.what == "caches" for fact in document.unlike)


def is_one_run(document: Document) -> bool:
    """Whether both sides seem to be one run: equal launches, counts and time to nine digits, told in other forms.

    Kernels have other names, or one side lacks counts, where no energy is compared.
    """
    old, new = document.old, document.new
    if document.same_inputs or document.above_constant or old.launches != new.launches:
        return False
    if old.time_s is None or new.time_s is None:
        return False
    if not isclose(old.time_s, new.time_s) or any(count.change for count in document.counts.values()):
        return False
    if None not in (joules := (old.energy_j.measured, new.energy_j.measured)) and joules[0] != joules[1]:
        return False
    pairs = [(kernel.old, kernel.new) for kernel in document.kernels]
    are_renamed = any(old is None or new is None or old.name != new.name for old, new in pairs)
    lacks_counts = any((count.old is None) != (count.new is None) for count in document.counts.values())
    return are_renamed or (lacks_counts and not document.has_energy)


def in_common(document: Document) -> tuple[float, float, float]:
    """(share of OLD, of NEW, of both together) that kernels of both sides take.

    Of their energy, as far as the answer is about it, else of time; of the number of kernels where neither is known.
    """
    kernels = getattr(document.above_constant, "kernels", document.kernels)
    both = [side for kernel in kernels for side in (kernel.old, kernel.new) if side is not None]
    what = "time_s" if any(side.energy_j is None for side in both) else "energy_j"
    rows = []
    for kernel in kernels:
        old, new, is_in_both = kernel.old, kernel.new, False
        if kernel.match is not None and old is not None and new is not None:
            # One whose name is only similar has to be launched as often.
            is_in_both = kernel.match.how != SIMILAR or bool(document.a_second) or old.launches == new.launches
        sides = [(label, side) for label, side in (("OLD", old), ("NEW", new)) if side is not None]
        rows += [(label, getattr(side, what) or 0.0, is_in_both) for label, side in sides]
    if not any(amount for _, amount, _ in rows):
        rows = [(label, 1.0, is_in_both) for label, _, is_in_both in rows]
    shares = []
    for labels in (["OLD"], ["NEW"], ["OLD", "NEW"]):
        own = [(amount, is_in_both) for label, amount, is_in_both in rows if label in labels]
        common = sum(amount for amount, is_in_both in own if is_in_both)
        shares.append(ratio(common, sum(amount for amount, _ in own)) or 0.0)
    of_old, of_new, of_both = shares
    return of_old, of_new, of_both


def are_strangers(document: Document) -> bool:
    """Whether OLD and NEW have next to nothing in common, and neither is by its kernels' names a part of the other."""
    of_old, of_new, of_both = in_common(document)
    matches = (kernel.match for kernel in document.kernels)
    is_part = max(of_old, of_new) >= _ALL_OF_IT and any(
        match and match.how not in (SIMILAR, EQUAL) for match in matches
    )
    return of_both < LITTLE_IN_COMMON and not is_part


def launched_otherwise(document: Document) -> list[tuple[KernelSide, KernelSide]]:
    """(OLD, NEW) of kernels on both sides, if launches differ and nothing shows that the work is equal; else none.

    None either where less than half of each side is in kernels of both.
    """
    work = work_of(document)
    is_known = document.has_energy or document.speedup is not None
    is_otherwise = any(fact.what == "launches" for fact in document.unlike)
    if document.nouns.is_of_cpu or (work is not None and work.is_same) or not (is_known and is_otherwise):
        return []
    if max(in_common(document)) < HALF or are_strangers(document):
        return []
    pairs = ((kernel.old, kernel.new) for kernel in document.kernels)
    return [(old, new) for old, new in pairs if old is not None and new is not None]


def has_finding(document: Document) -> bool:
    """Whether factors of the whole are a finding: OLD and NEW share kernels, launched as often, as far as is known."""
    return not (are_strangers(document) or launched_otherwise(document))


def work_of(document: Document) -> Work | None:
    """The work of NEW over that of OLD, by the best measure that both counted; None: none, or logs tell rates."""
    if document.a_second:
        return None
    # Instructions of kinds that nothing tells apart may be most of the flops, as what one side did on tensor cores.
    totals = (document.counts[total] for total in FLOAT_PARTS if total in document.counts)
    has_unknown_kinds = any(total.old or total.new for total in totals)
    tensor = (document.counts[word] for word in TENSOR_PARTS["tensor"] if word in document.counts)
    is_tensor_unknown = any(count.change is None for count in tensor)
    for weights, noun, verb, each in _WORKS:
        factor = _factor(document, weights)
        is_part = noun.endswith("flops") and has_unknown_kinds
        is_part |= weights is _FP_INSTRUCTIONS and is_tensor_unknown
        is_part |= weights in _OF_TYPES.values() and not _are_most_flops(document, weights)
        if factor is not None and not is_part:
            return Work(noun, verb, each, factor)
    return None


def _are_most_flops(document: Document, weights: dict[str, float]) -> bool:
    """Whether the words of `weights` are half of all flops that each side knows, or more."""
    known = [(word, weight, document.counts[word]) for word, weight in _FLOPS.items() if word in document.counts]
    for side in ("old", "new"):
        flops = {word: weight * (getattr(count, side) or 0.0) for word, weight, count in known}
        if sum(flops[word] for word in weights if word in flops) < HALF * sum(flops.values()):
            return False
    return True


def _factor(document: Document, weights: dict[str, float]) -> float | None:
    """NEW over OLD in the weighted sum of some counts; None: it is not known of both sides, or OLD has none."""
    old, new = amounts(document, weights) or (0.0, 0.0)
    return ratio(new, old)


def amounts(document: Document, weights: dict[str, float]) -> tuple[float, float] | None:
    """(OLD, NEW) weighted sums of some counts, word -> weight; None: none was counted, one is unknown, or a bound."""
    counts = [(weight, document.counts[word]) for word, weight in weights.items() if word in document.counts]
    if not counts or any(count.change is None for _, count in counts):
        return None
    old, new = (sum(weight * (getattr(count, side) or 0.0) for weight, count in counts) for side in ("old", "new"))
    return old, new


def is_other(factor: float) -> bool:
    """Whether a factor on work is farther from 1 than a compiler alone makes it."""
    return factor >= OTHER_WORK or factor * OTHER_WORK <= 1


def other_work(document: Document) -> Work | None:
    """The work of NEW over that of OLD, where it is another amount of the same kind of work; else None.

    Nothing tells it where bytes do not follow it (a compiler makes flops fewer, too) or another precision took it over;
    nor do instructions of GPUs.
    """
    work = work_of(document)
    if work is None or not is_other(work.factor):
        return None
    if launched_otherwise(document) or changed_precision(document) is not None:
        return None
    if not work.each and not document.nouns.is_of_cpu:
        return None
    # In the caches of a CPU as many times the instructions, or bytes asked for, tell the same of flops.
    beside = filter(None, (_factor(document, {word: 1.0}) for word in _BESIDE_FLOPS))
    if document.nouns.is_of_cpu and work.each and any(abs(each / work.factor - 1) < _NEARLY for each in beside):
        return work
    moved = _factor(document, DRAM)
    if not moved:
        return work if document.nouns.is_of_cpu else None
    follows = (moved if work.factor > 1 else 1 / moved) >= _FOLLOWS
    return work if follows else None


class Precision(Struct, frozen=True):
    """One precision that took over the flops of another: words of the vocabulary, or groups ("fp32")."""

    old: str
    new: str
    flops: float


def changed_precision(document: Document) -> Precision | None:
    """The precision that took over most work from another one, on tensor cores or off; None: none did.

    As many flops come as went, by a factor of two; of tensor cores that one side did not count, by a tenth.
    """
    flops, of_one_side = {}, set()
    for kind, weights in _FLOPS_OF_TYPES.items():
        counts = [(weight, document.counts[word]) for word, weight in weights.items() if word in document.counts]
        if any(None in (count.old, count.new) for _, count in counts):
            of_one_side.add(kind)
        if counts and (kind not in of_one_side or kind in TENSOR_PARTS["tensor"]):
            old = sum(weight * (count.old or 0.0) for weight, count in counts)
            flops[kind] = old, sum(weight * (count.new or 0.0) for weight, count in counts)
    whole = sum(old for old, _ in flops.values())
    found = []
    for fell, (before, after) in flops.items():
        gone = before - after
        if 2 * gone < before or gone <= _WORTH_IT * whole:
            continue
        for rose, (none, some) in flops.items():
            most = _MOST_APART_IF_UNKNOWN if of_one_side & {fell, rose} else _MOST_APART
            if gone <= most * (some - none) <= most**2 * gone:
                found.append(Precision(fell, rose, some))
    return max(found, key=lambda each: each.flops, default=None)


class Level(Struct, frozen=True):
    """The bytes of a memory level ("l3"), or what "instructions" count, in OLD and in NEW."""

    name: str
    old: float
    new: float

    @property
    def factor(self) -> float:
        """NEW's number over OLD's; inf where OLD has none."""
        return self.new / self.old if self.old else inf

    @property
    def change(self) -> float:
        """By how much OLD and NEW differ, B or instructions."""
        return abs(self.new - self.old)


def waited_for(document: Document) -> Level | None:
    """The memory level whose bytes explain a change of cycles or time that instructions and DRAM bytes do not.

    A count explains a change if its factor goes half of the way or more, in the same direction. Of such levels the one
    whose bytes change most; None: there is none, or counts or time are not known, or it ran at another pace.
    """
    others = _dram_and_instructions(document)
    if len(others) < 2 or _explaining(document, others):
        return None
    return max(_explaining(document, _levels(document)), key=lambda level: level.change, default=None)


def likely_whys(document: Document) -> list[Level]:
    """What may explain a change of cycles or time: levels, DRAM, "instructions"; what changed most comes first."""
    known = [level for level in _levels(document) if level.old and level.new]
    whys = _explaining(document, [*known, *_dram_and_instructions(document)])
    return sorted(whys, key=lambda level: -abs(log(level.factor)))


def instructions(document: Document) -> dict[str, float]:
    """What counts instructions, word -> weight: those retired, else all classes."""
    return {"retired": 1.0} if "retired" in document.counts else CLASSES


def _dram_and_instructions(document: Document) -> list[Level]:
    """DRAM and "instructions", as if they were levels; without those that a side lacks, or has none of."""
    moved = {"dram": amounts(document, DRAM), "instructions": amounts(document, instructions(document))}
    return [Level(name, *of_both) for name, of_both in moved.items() if of_both is not None and all(of_both)]


def _explaining(document: Document, levels: list[Level]) -> list[Level]:
    """Those levels whose factor goes half of the way to that of cycles or time, or more; none if that is not known."""
    if (longer := _longer(document)) is None:
        return []
    return [level for level in levels if (log(level.factor) if level.factor else -inf) / log(longer) >= HALF]


def _longer(document: Document) -> float | None:
    """NEW's cycles, else its time, over OLD's; None: they are not known, nearly the same, or at another pace.

    None also where a GPU's kernels that one side alone has take more than 1 %: counts of all tell nothing of the rest.
    """
    if not document.nouns.is_of_cpu and min(in_common(document)[:2]) < 1 - SAME_WORK:
        return None
    is_other_pace = any(fact.what in _OTHER_PACE for fact in document.unlike)
    longer = _factor(document, {"core_active": 1.0}) or ratio(1.0, document.speedup or 0.0)
    if is_other_pace or document.a_second or document.above_constant or not longer:
        return None
    return longer if max(longer, 1 / longer) >= _LONGER else None


def moved_otherwise(document: Document) -> Level | None:
    """The level nearer than DRAM whose bytes change most, if to 1.5 times as many, or fewer; None: none does."""
    others = [level for level in _levels(document) if is_other(level.factor)]
    return max(others, key=lambda level: level.change, default=None)


def _levels(document: Document) -> list[Level]:
    """The levels nearer than DRAM whose bytes, reads and writes, both sides know, the farthest first."""
    ways = {name: dict.fromkeys((f"{name}_read", f"{name}_write", name), 1.0) for name in document.nouns.nearer}
    moved = {name: amounts(document, weights) for name, weights in ways.items()}
    return [Level(name, *of_both) for name, of_both in moved.items() if of_both is not None]

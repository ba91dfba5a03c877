"""What the user should know of a comparison, as sentences: other GPUs, programs, counters, and what noise may hide."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from eprof.base.kernels import bare
from eprof.base.text import cut, few, listed
from eprof.base.vocabulary import COUNTS
from eprof.compare.lost import label, uncompared, unknown
from eprof.compare.matching import SIMILAR
from eprof.compare.parts import APPEARED, MATCHED, VANISHED, status
from eprof.compare.side import Side

if TYPE_CHECKING:
    from eprof.compare.difference import Difference

_FEW = 4


def warnings(difference: "Difference") -> list[str]:
    """Sentences, what bears on every number first."""
    found = [
        *_inputs(difference),
        *_devices(difference),
        *_programs(difference),
        *_lost(difference),
        *_ways(difference),
        *_matches(difference),
        *_launches(difference),
        *difference.notes,
        *_noise(difference),
        *_of_sides(difference.old, difference.new),
    ]
    return list(dict.fromkeys(found))


def _inputs(difference: "Difference") -> Iterator[str]:
    if difference.same_inputs:
        yield "OLD and NEW are made from the same logs."


def _devices(difference: "Difference") -> Iterator[str]:
    one, other = (_device_names(side) for side in (difference.old, difference.new))
    if one != other:
        yield (
            f"OLD ran on {listed(one)}, NEW on {listed(other)}: the change is that of program and GPU together. "
            "Counts of one kind can still be compared; --costs with one table prices both as if on one GPU."
        )
    first, second = difference.old.costs, difference.new.costs
    if (first is None) != (second is None):
        lacking, named = ("OLD", second) if first is None else ("NEW", first)
        assert named is not None
        yield (
            f"{lacking} has no cost table, so energy is not compared, only counts and time; --costs {named.name} "
            "prices both."
        )


def _device_names(side: Side) -> list[str]:
    return sorted({one.device.name or "a GPU that the log does not name" for one in side.first.profile.counted})


def _programs(difference: "Difference") -> Iterator[str]:
    stands = [status(difference, row) for row in range(len(difference.matches))]
    if MATCHED not in stands:
        yield (
            "No kernel of OLD was found in NEW: are these the same program? Only totals are compared; --match OLD=NEW "
            "says which kernel is which."
        )
        return
    for what, side in ((VANISHED, difference.old), (APPEARED, difference.new)):
        rows = [at for at, one in enumerate(stands) if one == what]
        if rows:
            places = [getattr(difference.matches[at], "old" if what == VANISHED else "new") for at in rows]
            names = [bare(str(side.kernels["kernel"].iloc[place])) for place in places]
            own = "They are parts of their own; --match OLD=NEW pairs kernels by hand."
            yield f"Only in {side.label}: {few([cut(name, 60) for name in names], _FEW)}. {own}"


def _lost(difference: "Difference") -> Iterator[str]:
    if difference.old.costs is None and difference.new.costs is None:
        yield "No cost table prices these logs, so energy is not compared; choose one with --costs (see `eprof costs`)."
        return
    for one in uncompared(difference):
        yield f"Not in the change: {label(one['what'])}{_in(one['kernels'], difference)}, because {one['why']}."
    reasons: dict[str, list[str]] = {}
    for one in unknown(difference):
        reasons.setdefault(one["why"], []).append(label(one["what"]))
    for why, labels in reasons.items():
        yield f"Not known on either side, and not in the change: {', '.join(labels)} ({why})."


def _in(number: int, difference: "Difference") -> str:
    whole = len(difference.matches)
    return "" if whole == 1 else f" of {number} of {whole} kernels"


def _ways(difference: "Difference") -> Iterator[str]:
    """Counts that the two sides make from other counters: their difference is partly one of method."""
    one, other = difference.old.first.counts.how, difference.new.first.counts.how
    differ, changes = [], difference.changes
    for at, word in enumerate(COUNTS):
        if not all((np.nan_to_num(half.number[:, at]) > 0).any() for half in (changes.old, changes.new)):
            continue
        formulas = [{way.formula for way in how.get(word, ()) if way.formula} for how in (one, other)]
        if formulas[0] and formulas[1] and not formulas[0] & formulas[1]:
            differ.append(COUNTS[word].label)
    if differ:
        yield (
            f"Counted from other counters in OLD than in NEW: {few(differ, _FEW)}; part of their change may be that. "
            "Collect both with the same counters."
        )


def _matches(difference: "Difference") -> Iterator[str]:
    similar = [
        f"{bare(difference.old.named[one.old].name)} = {bare(difference.new.named[one.new].name)} ({one.score:.2f})"
        for one in difference.matches
        if one.how == SIMILAR and one.old is not None and one.new is not None
    ]
    if similar:
        yield (
            f"Matched by similar names: {few(similar, _FEW)}. "
            "--match OLD=NEW corrects a pair, --no-similar takes names as "
            "they are."
        )


def _launches(difference: "Difference") -> Iterator[str]:
    """Kernels that are launched another number of times: the change is then not one of the kernel alone."""
    differ = []
    for one in difference.matches:
        if one.old is not None and one.new is not None:
            before, after = difference.old.named[one.old].launches, difference.new.named[one.new].launches
            if before != after:
                differ.append(f"{bare(difference.new.named[one.new].name)} ({before:g} to {after:g})")
    if differ:
        yield f"Launched another number of times: {few(differ, _FEW)}; the change holds that too."


def _noise(difference: "Difference") -> Iterator[str]:
    numbers = len(difference.old.energies), len(difference.new.energies)
    if min(numbers) >= 2:
        return
    if max(numbers) == 1:
        start = "One run of each: nothing is known of the noise between runs."
    else:
        start = f"{numbers[0]} and {numbers[1]} runs: a test of the difference needs two or more of each."
    counts = "Counts of a deterministic program repeat almost to the digit"
    if all(energy.modelled for side in (difference.old, difference.new) for energy in side.energies):
        yield f"{start} {counts}, and time is modelled from them."
        return
    timed = bool(np.isfinite(difference.changes.old.number[:, -1]).any())
    yield f"{start} {counts}; times do not." if timed else f"{start} {counts}."


def _of_sides(old: Side, new: Side) -> Iterator[str]:
    """The warnings of the two profiles, those of both once."""
    one, other = (
        list(dict.fromkeys(text for energy in side.energies for text in energy.warnings)) for side in (old, new)
    )
    for text in one:
        yield f"OLD and NEW: {text}" if text in other else f"OLD: {text}"
    for text in other:
        if text not in one:
            yield f"NEW: {text}"

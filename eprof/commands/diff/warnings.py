"""What the user should know of a comparison, as sentences: other GPUs, programs, counters, and what noise may hide."""

from collections.abc import Iterator, Sequence

import numpy as np

from eprof.base.kernels import bare
from eprof.base.labels import labels
from eprof.base.text import few, listed
from eprof.base.vocabulary import COUNTS
from eprof.commands.diff.changes import APPEARED, MATCHED, VANISHED, Changes
from eprof.commands.diff.lost import uncompared, unknown
from eprof.commands.diff.matching import SIMILAR, Kernel, Match
from eprof.commands.diff.side import TIME, Side

_FEW = 4


def warnings(changes: Changes, notes: Sequence[str]) -> list[str]:
    """Warnings of a comparison, what bears on every number first. notes: those of the matching."""
    sentences = [
        *_meters(changes.old_side, changes.new_side),
        *_devices(changes),
        *_programs(changes),
        *_left_out(changes),
        *_formulas(changes),
        *_matches(changes),
        *_launches(changes),
        *notes,
        *_noise(changes),
        *_of_sides(changes.old_side, changes.new_side),
    ]
    return list(dict.fromkeys(sentences))


def _meters(old: Side, new: Side) -> Iterator[str]:
    """A warning on how the prices of the sides were scaled to what their meters saw."""
    scaled = []
    for side in (old, new):
        if side.factors:
            factor = sum(side.factors) / len(side.factors)
            metered_j = sum(side.measured) / len(side.measured)
            scaled.append(f"{side.label} {metered_j:.4g} J, prices times {factor:.3g}")
    if scaled:
        kernels = old.nouns.kernels
        yield f"Prices are scaled to what a meter saw: {'; '.join(scaled)}. Only the joules of {kernels} are compared."
    if len(scaled) == 1:
        lacking = "NEW" if old.factors else "OLD"
        yield f"{lacking} is not scaled to a meter, so part of the change may be the error of its prices."


def _devices(changes: Changes) -> Iterator[str]:
    old_devices, new_devices = _device_names(changes.old_side), _device_names(changes.new_side)
    gpu = changes.old_side.nouns.processor
    if old_devices != new_devices:
        yield (
            f"OLD ran on {listed(old_devices)}, NEW on {listed(new_devices)}: the change is that of program and "
            f"{gpu} together. Counts of one kind can still be compared; --costs with one table prices both as if on "
            f"one {gpu}."
        )
    old, new = changes.old_side.costs, changes.new_side.costs
    lacking = "OLD" if old is None else "NEW"
    named = old or new
    if named is not None and (old is None or new is None):
        yield (
            f"{lacking} has no cost table, so energy is not compared, only counts and time; --costs {named.name} "
            "prices both."
        )


def _device_names(side: Side) -> list[str]:
    counted = side.first.profile.counted
    return sorted({data.device.name or f"a {side.nouns.processor} that the log does not name" for data in counted})


def _programs(changes: Changes) -> Iterator[str]:
    statuses = [changes.status(row) for row in range(len(changes.matches))]
    nouns = changes.old_side.nouns
    if MATCHED not in statuses:
        yield (
            f"No {nouns.kernel} of OLD was found in NEW: are these the same program? Only totals are compared; "
            f"--match OLD=NEW says which {nouns.kernel} is which."
        )
        return
    for status, side in ((VANISHED, changes.old_side), (APPEARED, changes.new_side)):
        names = [changes.names(row)[0] for row, here in enumerate(statuses) if here == status]
        if names:
            own = f"They are parts of their own; --match OLD=NEW pairs {nouns.kernels} by hand."
            yield f"Only in {side.label}: {few(labels(names, 60), _FEW)}. {own}"


def _left_out(changes: Changes) -> Iterator[str]:
    if changes.old_side.costs is None and changes.new_side.costs is None:
        yield "No cost table prices these logs, so energy is not compared; choose one with --costs (see `eprof costs`)."
        return
    whole = len(changes.matches)
    nouns = changes.old_side.nouns
    for word in uncompared(changes):
        kernels = "" if whole == 1 else f" of {word.kernels} of {whole} {nouns.kernels}"
        yield f"Not in the change: {nouns.label(word.what)}{kernels}, because {word.why}."
    reasons: dict[str, list[str]] = {}
    for lost in unknown(changes):
        reasons.setdefault(lost.why, []).append(nouns.label(lost.what))
    for why, words in reasons.items():
        yield f"Not known on either side, and not in the change: {', '.join(words)} ({why})."


def _formulas(changes: Changes) -> Iterator[str]:
    """A warning on counts that the two sides make from other counters: their difference is partly one of method."""
    differ = []
    for column, word in enumerate(COUNTS):
        counted = all((np.nan_to_num(half.number[:, column]) > 0).any() for _, half in changes.halves)
        old, new = (
            {way.formula for way in side.first.counts.how.get(word, ()) if way.formula} for side, _ in changes.halves
        )
        if counted and old and new and not old & new:
            differ.append(changes.old_side.nouns.label(word))
    if differ:
        yield (
            f"Counted from other counters in OLD than in NEW: {few(differ, _FEW)}; part of their change may be that. "
            "Collect both with the same counters."
        )


def _pairs(changes: Changes) -> Iterator[tuple[Match, Kernel, Kernel]]:
    for match in changes.matches:
        if match.old is not None and match.new is not None:
            yield match, changes.old_side.named[match.old], changes.new_side.named[match.new]


def _matches(changes: Changes) -> Iterator[str]:
    similar = [
        f"{bare(old.name)} = {bare(new.name)} ({match.score:.2f})"
        for match, old, new in _pairs(changes)
        if match.how == SIMILAR
    ]
    if similar:
        yield (
            f"Matched by similar names: {few(similar, _FEW)}. --match OLD=NEW corrects a pair, "
            "--no-similar takes names as they are."
        )


def _launches(changes: Changes) -> Iterator[str]:
    """A warning on kernels launched another number of times: the change is then not one of the kernel alone."""
    differ = [
        f"{bare(new.name)} ({old.launches:g} to {new.launches:g})"
        for _, old, new in _pairs(changes)
        if old.launches != new.launches
    ]
    if differ:
        launch = changes.old_side.nouns.launch.capitalize()
        yield f"{launch}ed another number of times: {few(differ, _FEW)}; the change holds that too."


def _noise(changes: Changes) -> Iterator[str]:
    old, new = (len(side.energies) for side, _ in changes.halves)
    if min(old, new) >= 2:
        return
    start = f"{old} and {new} runs: a test of the difference needs two or more of each."
    if max(old, new) == 1:
        start = "One run of each: nothing is known of the noise between runs."
    counts = "Counts of a deterministic program repeat almost to the digit"
    end = "."
    if all(energy.modelled for side, _ in changes.halves for energy in side.energies):
        end = ", and time is modelled from them."
    elif np.isfinite(changes.old.number[:, TIME]).any():
        end = "; times do not."
    yield f"{start} {counts}{end}"


def _of_sides(old: Side, new: Side) -> Iterator[str]:
    """The warnings of the two compared profiles, those of both once."""
    old_texts, new_texts = _profile_warnings(old), _profile_warnings(new)
    for text in old_texts:
        yield f"OLD and NEW: {text}" if text in new_texts else f"OLD: {text}"
    for text in new_texts:
        if text not in old_texts:
            yield f"NEW: {text}"


def _profile_warnings(side: Side) -> list[str]:
    return list(dict.fromkeys(text for energy in side.energies for text in energy.warnings))

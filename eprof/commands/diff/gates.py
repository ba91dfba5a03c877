"""How much more energy NEW may take: the gates of `--fail-above`, which fail a check of a pull request."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec.structs import replace

from eprof.base.arrays import Columns
from eprof.base.errors import UsageError
from eprof.base.kernels import bare, own_name
from eprof.base.labels import labels
from eprof.base.optional import ratio
from eprof.base.text import few, listed, pattern, phrase, printable, when
from eprof.base.vocabulary import CONSTANT, COUNTS, GROUPS, MISSING
from eprof.commands.diff.causes import UNITS
from eprof.commands.diff.changes import COUNTED, FOLLOWS_TIME, MATCHED, REPEATS, WORDS, Changes, Grid, combined
from eprof.commands.diff.schema import Gate
from eprof.profile.rooflines import flops_of
from eprof.show.numbers import quantity

TOTAL, ABOVE, SECONDS, EACH = "total", "above_constant", "time", "*"
_NONE, _TELLING = 1e-3, 0.01  # flops of start-up code, against those of work; flops an instruction that tell work
_FORM = pattern(r"(?:(?P<kernel>.+):)?(?:(?P<what>[a-z][a-z0-9_]*)=)?(?P<percent>\d+(?:\.\d*)?|\.\d+)\s*%?")
_FAMILIES = ("computation", "data", CONSTANT)
# What a limit may call a column: the word, its group, its family.
_NAMES = {word: {TOTAL, word, count.group, count.family} for word, count in COUNTS.items()}
_NAMES[CONSTANT] = {TOTAL, CONSTANT, SECONDS}


def parse(text: str) -> Gate:
    """Read a `--fail-above` text as a gate to be judged: "2%", "dram_read=5%", "KERNEL:2%", "KERNEL:time=5%", "*:10%".

    Raises UsageError.
    """
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise UsageError(
            f"--fail-above {text}: write [KERNEL:][WHAT=]PERCENT%, such as 2%, dram_read=5%, my_kernel:2% or '*:10%'."
        )
    what = form["what"] or TOTAL
    if what not in {TOTAL, SECONDS, *_FAMILIES, *GROUPS, *COUNTS}:
        raise UsageError(
            f"--fail-above {text}: there is no `{what}`; use total, time, {', '.join(_FAMILIES)}, a group "
            f"({', '.join(GROUPS)}) or a word of the vocabulary, such as dram_read."
        )
    return Gate(text, what, form["kernel"], float(form["percent"]) / 100)


def judge(gates: Sequence[Gate], changes: Changes) -> list[Gate]:
    """The gates with outcomes, one for each kernel that a gate names: by full name, else bare name, else last word.

    Where a side does not know the amount of a gate, it neither passes nor fails: `why_not` says why. Raises UsageError
    if a gate names no kernel.
    """
    every = list(range(len(changes.matches)))
    names = [changes.names(row) for row in every]
    rates = phrase("{} told nothing but rates, without a time", " and ".join(changes.of_rates))
    if why_not := when(gates, rates or _are_not_of_one_program(changes)):
        return [replace(gate, why_not=why_not) for gate in gates]
    judged = []
    for gate in gates:
        judge_rows = _judged_total if gate.what == TOTAL else _judged
        if gate.kernel is None:
            judged.append(judge_rows(gate, every, changes))
            continue
        by_form = ([row for row in every if gate.kernel in map(form, names[row])] for form in (str, bare, own_name))
        rows = every if gate.kernel == EACH else next(filter(None, by_form), [])
        if not rows and gate.kernel != EACH:
            known = few(labels([printable(both[-1]) for both in names], 60), 6)
            raise UsageError(f"--fail-above {gate.gate}: neither side has a kernel `{gate.kernel}`; there are {known}.")
        judged += [judge_rows(replace(gate, kernel=names[row][-1]), [row], changes) for row in rows]
    return judged


def _are_not_of_one_program(changes: Changes) -> str:
    """Why no gate can hold NEW against OLD: another GPU or CPU, or program; "" if neither shows."""
    old, new = changes.old_side, changes.new_side
    before, after = ({part.device.name for part in side.first.profile.counted} for side in (old, new))
    table = old.first.table
    is_made_for_both = table is not None and all(side.first.profile.is_served_by(table) for side in (old, new))
    if all(before | after) and not before & after and not is_made_for_both:
        names = [listed(sorted(map(printable, map(str, devices)))) for devices in (before, after)]
        return f"OLD ran on {names[0]}, and NEW on {names[1]}"
    nouns = old.nouns
    if MATCHED not in changes.statuses:
        return f"no {nouns.kernel} of OLD is in NEW (one program? --match OLD=NEW pairs them)"
    flops = [float(flops_of(Columns(tuple(COUNTS), table)).sum()) for table in changes.counted_by_both]
    work = [float(table[:, COUNTED[0]].sum()) for table in changes.counted_by_both]
    for label, own, other in (("OLD", 0, 1), ("NEW", 1, 0)):
        if flops[own] <= _NONE * flops[other] and flops[other] > _TELLING * work[other]:
            has = f"none of {('OLD', 'NEW')[other]}'s {quantity(flops[other], 'flop')}"
            return f"{label} does {has}: another program, or other work"
    return ""


def _judged_total(gate: Gate, rows: list[int], changes: Changes) -> Gate:
    """Judge a gate on the energy over the matches `rows`: on that above constant power, or on all.

    Modelled time tells nothing of all. Nor does measured time, unless runs in turns show it, or repeats do beside
    counts that grew by more than the limit; then what is above constant power must not grow either.
    """
    if (
        changes.guessed
        or not changes.paid[:, ~FOLLOWS_TIME].any()
        or (changes.time_is_told and not changes.is_modelled)
    ):
        return _judged(gate, rows, changes)
    above = _judged(replace(gate, what=ABOVE), rows, changes)
    test = changes.test(partial(changes.known_j, rows=rows))
    is_told = test is not None and test.shown and changes.counts_grew(rows, gate.limit)
    if above.failed is not False or changes.is_modelled or not is_told:
        return above
    return _judged(gate, rows, changes)


def _judged(gate: Gate, rows: list[int], changes: Changes) -> Gate:
    """Judge a gate over the matches `rows`: it failed if what it is on grew by more than the limit, and than noise.

    From 0, any growth is above the limit. A board's power limit binds by the time, so that joules of counts are judged
    as if none did.
    """
    columns = [column for column, word in enumerate(WORDS) if gate.what in _NAMES[word]]
    if gate.what == ABOVE:
        columns = np.flatnonzero(~FOLLOWS_TIME).tolist()
    # Without prices, or by a guess that nobody asked for, a class is judged by its counts; time always is.
    is_priced = changes.old_side.costs is not None or changes.new_side.costs is not None
    is_counted = gate.what == SECONDS or not is_priced or bool(changes.guessed)
    if why_not := _why_not(gate, rows, columns, changes, is_counted):
        return replace(gate, why_not=why_not)

    has_time = FOLLOWS_TIME[columns].any()

    def amount(grid: Grid) -> float:
        if not is_counted:
            return changes.compared_j(grid if has_time else grid.freed, rows, columns)
        numbers = grid.number[rows][:, columns]
        return math.fsum(numbers[~np.isnan(numbers)].tolist())

    old, new = amount(changes.old), amount(changes.new)
    test = changes.test(amount)
    growth = ratio(new - old, old)
    is_noise = test is not None and not test.shown
    # What may be noise of the clock fails only with counts that grew by as much.
    if has_time and not changes.time_is_told:
        is_noise |= not changes.counts_grew(rows, gate.limit)
    if test is None and growth and not changes.is_modelled:
        is_noise |= abs(growth) <= REPEATS
    failed = new > old and (growth is None or growth > gate.limit) and not is_noise
    unit = "J"
    if is_counted:
        is_known = ~np.isnan(changes.new.number[rows][:, columns]).all(axis=0)
        unit = UNITS[WORDS[columns[int(is_known.argmax())]]]
    share = None
    if gate.what == ABOVE and not changes.is_modelled:
        share = ratio(changes.compared_j(changes.new, rows, columns), changes.compared_j(changes.new, rows))
    return replace(gate, old=old, new=new, unit=unit, growth=growth, failed=failed, is_noise=is_noise, share=share)


def _why_not(gate: Gate, rows: list[int], columns: list[int], changes: Changes, is_counted: bool) -> str:
    """Why a gate on energy, or on counts or time, cannot be judged; empty if it can."""
    if not is_counted:
        gpus = [gpu for side, _ in changes.sides for gpu in side.first.gpus if gpu.costs is None]
        unpriced = {part.device.label for gpu in gpus for part in gpu.profile.counted}
        devices = {kernel.device for row in rows for kernel in changes.kernels[row] if kernel is not None}
        if lacking := sorted(map(str, devices & unpriced)):
            return f"no cost table prices what ran on {listed(lacking)}; choose one with --costs"
        one_sided = np.flatnonzero(changes.uncompared[rows][:, columns].any(axis=0))
        if one_sided.size:
            words = ", ".join(WORDS[columns[place]] for place in one_sided[:4])
            return f"the energy of {words} cannot be compared"
        return when(not changes.compared[rows][:, columns].any(), "its energy is not known on either side")
    if gate.what in (TOTAL, *_FAMILIES):
        if changes.guessed:
            processor = changes.old_side.nouns.processor
            return f"no cost table is made for this {processor}; --costs {changes.guessed} judges it"
        return "no cost table prices these logs; choose one with --costs"
    is_unknown = np.isnan(np.stack([grid.number[rows][:, columns] for _, grid in changes.sides]))
    # A class that neither side tells apart (a total beside its parts) is no loss; one that one side knows is.
    is_unknown = is_unknown[:, :, ~is_unknown.all(axis=(0, 1))]
    bounds = {combined(grid.counted[rows][:, columns]) & MISSING for _, grid in changes.sides}
    is_lost = not is_unknown.size or is_unknown.any() or len(bounds) > 1
    return when(is_lost, f"it is not known for every {changes.old_side.nouns.kernel} of both sides")

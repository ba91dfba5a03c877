"""Warnings on a priced profile: from its logs, counts, checks and prices, and on power above what a board may draw."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from eprof.base.arrays import known_or_zero
from eprof.base.cpus import is_unlike
from eprof.base.gpus import capability_of_label, data_sheet
from eprof.base.optional import mapped
from eprof.base.text import few, listed, printable, when
from eprof.base.vocabulary import COUNTS, MISSING, PARTS, RANDOM, Nouns
from eprof.energy.modelled_time import has_modelled_time
from eprof.logs.runs import metered_in
from eprof.profile.device import capabilities_of
from eprof.profile.priced_profile import PricedProfile
from eprof.profilers import advice

MEASURED = "Measured: "  # begins a warning on what a meter saw
_PLAUSIBLE = 0.7  # a factor on prices that a table may be off by


def warnings_of(energy: PricedProfile) -> list[str]:
    """Everything the user should know of the profile, once each: from logs, counts, checks and costs."""
    sentences = []
    if energy.measured is not None and energy.metered is None:
        differs = f" It may differ from the prediction: {energy.measured.reasons()}."
        sentences.append(f"{MEASURED}{energy.measured.words}.{when(energy.split is not None, differs)}")
    sentences += _measured_in_part(energy)
    for gpu in energy.each:
        if gpu.costs is not None:
            sentences += [*gpu.costs.notes, *_unpriced(gpu)]
        elif energy.gpus:
            whose = gpu.profile.counted[0].device.name or f"a {gpu.profile.nouns.processor} that the logs do not name"
            sentences.append(f"No cost table is made for {whose}: its energy is missing, and totals are lower bounds.")
        else:
            sentences.append(_no_costs(gpu))
    rows = energy.counts.rows
    if np.isnan(rows.time_s).any():
        sentences.append(_no_time(energy))
    lacks = ~np.isnan(rows.time_s) & ((rows.time_marks & MISSING) != 0) & ~has_modelled_time(energy.counts)
    if energy.split is not None and energy.metered is None and lacks.any():
        nouns = energy.counts.nouns
        whose = few(list(map(printable, rows.kernel[lacks].tolist())), 1, nouns.kernels)
        without = f"Some {nouns.launches} of {whose} have no time in the log"
        sentences.append(f"{without}: nothing bounds their energy, nor the total.")
    if energy.grouping is not None and (unused := energy.grouping.unused(rows)):
        sentences.append(f"No {energy.counts.nouns.kernel} is in the group {listed(unused, 'or')} of --group.")
    # What bears on every number stands first: a terminal shows only the first few.
    for part in energy.profile.counted:
        sentences += part.warnings
    sentences += filter(None, [_held_note(gpu, bool(energy.gpus)) for gpu in energy.each])
    return list(dict.fromkeys([*sentences, *energy.notes, *energy.counts.warnings, *energy.profile.warnings]))


def _measured_in_part(energy: PricedProfile) -> Iterator[str]:
    """A warning on joules that a meter saw of some rows of the logs, while others have none."""
    metered = energy.profile.metered
    part = mapped(metered_in, metered or None)
    if energy.measured is None and part is not None:
        seen = list(chain.from_iterable(each.rows.kernel.tolist() for each in metered))
        others = [kernel for kernel in energy.counts.rows.kernel.tolist() if kernel not in seen]
        whose = f"{few(list(map(printable, seen)), 2)} alone, for {few(list(map(printable, others)), 2)} has none"
        yield f"{MEASURED}{part.words}, of {whose}."


def _no_costs(energy: PricedProfile) -> str:
    """Why a profile without a cost table has no energy, and the ways to joules."""
    if energy.is_declined:
        return "No energy is shown, as --costs none asks; without it, the logs' own tables or estimates price them."
    known = {part.device.name for part in energy.profile.counted if part.device.name}
    if energy.profile.is_of_cpu:
        why = "No cost table is made for this CPU" if known else "The logs do not name the CPU"
        if np.isnan(energy.counts.amounts.values).all():
            return f"{why}, and nothing but time was counted: no table of prices can tell what took the energy."
        if any(map(is_unlike, known)):
            remedy = "Joules that a meter saw are split by another's (--energy 12J --costs icelake-sp)."
            return f"{why}, so no energy is predicted. {remedy}"
        return (
            f"{why}, so no energy is predicted: name a table with --costs (sapphirerapids or icelake-sp, if it is "
            "such a server), or make one (eprof calibrate --cpu, eprof fit)."
        )
    whose = f"The logs do not name the {energy.profile.nouns.processor}"
    if known:
        whose = f"No cost table is made for {listed(sorted(known))}"
    is_of_amd = all(log.format.startswith("rocprof") for log in energy.profile.logs)
    example = "MI250X" if is_of_amd else "RTX 4090"
    estimate = f'--costs "{example}", with the name of the GPU'
    named = [name for name in sorted(known) if capability_of_label(name) is None]
    if named:
        estimate = "--costs estimated"
    if lacking := [name for name in named if data_sheet(name) is None]:
        estimate = f'eprof costs --estimate "{printable(lacking[0])}" --tdp-w WATTS -o FILE, and --costs FILE'
    return (
        f"{whose}, so no energy is shown. Three ways to joules: a table of its own (eprof calibrate or eprof fit); "
        "joules that a meter saw, split by the counts (--energy 12J, or eprof run and --to-meter); a rough "
        f"estimate ({estimate})."
    )


def _no_time(energy: PricedProfile) -> str:
    """A warning on kernels without a time, and which profilers or options give one."""
    rows = energy.counts.rows
    unknown = rows.chosen(np.isnan(rows.time_s)).n_kernels
    kernels = energy.counts.nouns.kernels
    if energy.total_s is not None:
        return (
            f"--time {energy.total_s:g} is the time of all {kernels} together, and nothing tells how {unknown} of "
            "them share it: their own time and constant energy are not known; give --time KERNEL=TIME, or a "
            "trace."
        )
    devices = [counted.device for counted in energy.profile.counted]
    known = [(device.capability,) if device.capability else capabilities_of(device.label) for device in devices]
    ways, bound = "perf stat -e duration_time, or LIKWID", ""  # whose logs may tell the longest time
    if not energy.profile.is_of_cpu:
        bound = when(energy.split is not None, ", and nothing bounds the total")
        ways = advice.commands(advice.TIMES, chain.from_iterable(known))
    if all(log.format.startswith("rocprof") for log in energy.profile.logs):
        ways = advice.TIMES_ON_AMD
    whose = f"{unknown} of {rows.n_kernels} {kernels} is not known, nor is their"
    if rows.n_kernels == 1:
        whose = f"the {energy.counts.nouns.kernel} is not known, nor is its"
    return f"The time of {whose} constant energy{bound}; give times along with the log ({ways}), or --time."


def _unpriced(energy: PricedProfile) -> list[str]:
    """Warnings on the classes that were counted without a price, and on those priced but not counted."""
    assert energy.split is not None
    costs = energy.costs
    assert costs is not None
    sentences: list[str] = []
    words = energy.counts.amounts.names
    number = energy.counts.amounts.values
    some = (~np.isnan(number) & (number != 0)).any(axis=0).tolist()
    unpriced = [word for word, there in zip(words, some, strict=True) if there and word not in costs.charges]
    nouns = energy.counts.nouns
    if unpriced:
        sentences.append(
            f"{costs.name} has no price for {_labels(unpriced, nouns)}: that energy is missing, {_bounded(energy)}."
        )
    marked = (energy.counts.amount_marks.values & MISSING) != 0
    lost = dict(zip(words, (np.isnan(number) & marked).any(axis=0).tolist(), strict=True))
    paying = [word for word, charge in costs.charges.items() if charge.pays]
    if RANDOM in paying and lost.get(RANDOM, False):
        sentences.append("Accesses of DRAM at random are not told apart here: their bytes pay as those that stream.")
    uncounted = [word for word in paying if lost.get(word, False) and word != RANDOM]
    if set(uncounted) >= {*paying} - {RANDOM}:
        sentences.append(f"No instruction and no byte was counted in these logs; {_bounded(energy)}.")
    elif uncounted:
        sentences.append(
            f"Not counted here, though {costs.name} prices them: {_labels(uncounted, nouns)}; {_bounded(energy)}."
        )
    return sentences


def _bounded(energy: PricedProfile) -> str:
    return "totals are lower bounds" if energy.metered is None else "only the metered total has it"


def _held_note(energy: PricedProfile, has_others: bool) -> str:
    """A warning that prices make more power than a GPU's board may draw, on its worst device or kernel; else ""."""
    split = energy.split
    if split is None or energy.metered is not None or not split.over_j.any():
        return ""
    rows, limits, nouns = energy.counts.rows, energy.limits, energy.counts.nouns
    made_j = known_or_zero(split.total_j) + split.over_j
    worst = int(np.argmin(split.held))
    own = limits.is_in & (limits.device == limits.device[worst])
    seconds, most_w = (float(values[limits.device[worst]]) for values in (limits.device_s, limits.device_w))
    if made_j[own].sum() > most_w * seconds:
        whose = "these counts and times"
        if has_others or len(limits.device_w) > 1:
            whose = printable(str(rows.device[worst]))
        watts, factor = made_j[own].sum() / seconds, split.chosen(np.flatnonzero(own)).held_together
    else:
        whose, factor = printable(str(rows.kernel[worst])), float(split.held[worst])
        watts, most_w = made_j[worst] / rows.time_s[worst], limits.kernel_w[worst]
    # Why it is another limit than the data sheet's.
    known = [mapped(data_sheet, part.device.name) for part in energy.profile.counted]
    times = max((sheet.beyond_power for sheet in known if sheet is not None), default=1.0)
    beyond = when(times > 1, f" ({times:g} times its data sheet's limit, as partners and owners set it)")
    limit = f"{most_w:.4g} W{when(energy.profile.limit_w, ', as the log tells') or beyond}"
    note = f"The prices make {watts:.4g} W of {whose}, and the board may draw {limit}"
    if energy.table is None or not energy.profile.is_served_by(energy.table):
        note += f": they are of another {nouns.processor}, too large, or the counts or times are not those of this run;"
    else:
        note += ": its power limit binds, so that"
    note += f" all but constant power is taken times {factor:.3g}."
    if factor < _PLAUSIBLE:
        note += " So far off, the times, the counts or the board are probably not those of this run."
    return note


def _labels(words: Sequence[str], nouns: Nouns) -> str:
    """The labels of these words as a list in a sentence; all parts of a class go as one: "FP64 and FP32 other"."""
    complete = {part: whole for whole, parts in PARTS.items() if set(parts) <= set(words) for part in (whole, *parts)}
    label_of = {word: nouns.label(word) for word in words}
    label_of |= {word: nouns.group(COUNTS[complete[word]].group) for word in words if word in complete}
    return listed(list(dict.fromkeys(label_of.values())))

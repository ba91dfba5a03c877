"""What the user should know of a comparison: what is left out, what is not the same, and warnings."""

import math
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath, PureWindowsPath

import numpy as np

from eprof import __version__
from eprof.base.arrays import Bools, known_or_zero
from eprof.base.gpus import capabilities_of_label, capability_of_label, normal_name
from eprof.base.kernels import bare
from eprof.base.labels import labels
from eprof.base.optional import gathered, mapped
from eprof.base.text import few, listed, pattern, uncapital, when
from eprof.base.units import in_joules
from eprof.base.vocabulary import BYTES, COUNTS, ESTIMATED, PAY_WHERE_PRICED
from eprof.commands.diff.changes import (
    APPEARED,
    COUNTED,
    FOLLOWS_TIME,
    KNOWN,
    LOST,
    LOWER,
    MATCHED,
    NONE,
    SAME_CLOCK,
    TIME,
    VANISHED,
    WORDS,
    Changes,
    Grid,
    Side,
    kernel_keys,
    known_sum,
)
from eprof.commands.diff.matching import SIMILAR
from eprof.commands.diff.schema import LeftOut, Unlike
from eprof.logs.runs import Run
from eprof.show.numbers import percent, quantity

_FEW = 4
# Repeats of a program count alike to 5 %; of words below a thousandth of the largest nothing is said.
_ALIKE, _WORTH = 0.05, 1e-3
# Of these counts nothing is said of repeats: cycles, which are times, and shares of flops that other words count.
_UNTOLD = FOLLOWS_TIME[:TIME] | np.isin(
    list(COUNTS), [word for word in PAY_WHERE_PRICED if COUNTS[word].unit == "flop"]
)
# Where a run keeps its own files, which are others in any two runs.
_EACH_RUN = ("OCL_", "OCLGRIND_", "LD_PRELOAD", "SLURM_PROCID", "PMI_", "OMPI_COMM_WORLD_")
# A program with its folders, in which blanks may stand, and its arguments.
_OF_WINDOWS = pattern(r'(?i)"?([a-z]:\\(?:.*?\.exe\b|.*))"?\s*(.*)')
# Start-up code of a CPU's program calls some functions once more or less.
_SAME_LAUNCHES = 0.01


def uncompared(changes: Changes) -> list[LeftOut]:
    """The words left out of the change though OLD or NEW knows their energy: in how many kernels, and why."""
    old, new = changes.old_side.costs, changes.new_side.costs
    are_other_books = old is not None and new is not None and old.books != new.books
    left_out = []
    for column in np.flatnonzero(changes.uncompared.any(axis=0)).tolist():
        rows = changes.uncompared[:, column]
        why = "OLD and NEW keep other books of bytes (served, accessed); price both with one table"
        if changes.is_net[:, column].any():
            why = "one side tells it net of what DRAM or the host served, which the other did not count"
        elif not are_other_books or WORDS[column] not in BYTES:
            lacking = ((side, grid) for side, grid in changes.sides if (grid.state[rows, column] != KNOWN).any())
            why = "; ".join(_lacks(side, grid, rows, column) for side, grid in lacking) or "an assumption, of rates"
        old_j, new_j = (known_sum(grid.joules[rows, column]) for _, grid in changes.sides)
        left_out.append(LeftOut(WORDS[column], int(rows.sum()), old_j, new_j, why))
    return left_out


def unknown(changes: Changes) -> list[LeftOut]:
    """The words left out of the change whose energy neither side knows: in how many kernels, and why."""
    left_out = []
    for column in np.flatnonzero(changes.unknown.any(axis=0)).tolist():
        rows = changes.unknown[:, column]
        is_counted = ~np.isnan([grid.number[rows, column] for _, grid in changes.sides])
        why = "not counted, or without a price"
        if column == TIME:
            why = "no time on either side"
        elif is_counted.all():
            why = "counted, but without a price"
        elif not is_counted.any():
            why = "not counted on either side"
        left_out.append(LeftOut(WORDS[column], int(rows.sum()), None, None, why))
    return left_out


def _lacks(side: Side, grid: Grid, rows: Bools, column: int) -> str:
    """Why the energy of one word, of OLD or NEW, cannot be compared in the matches `rows`."""
    states = grid.state[rows, column]
    if (states == LOWER).any():
        quantity = {TIME: "time"}.get(column, "count")
        return f"{side.label} knows only a lower bound of the {quantity} (part of it was not counted, or overflowed)"
    if side.costs is None:
        return f"{side.label} has no cost table"
    if column == TIME:
        return f"{side.label} has no time"
    lost = states >= LOST
    counted = ~np.isnan(grid.number[rows, column][lost])
    if counted.all() and (states[lost] != NONE).all():
        return f"{listed([costs.name for costs in side.tables], 'or')} has no price for what {side.label} counted"
    return f"{side.label} did not count it"


def unlike(changes: Changes) -> list[Unlike]:
    """The facts that differ between OLD and NEW, most important first; without those that one of them does not know."""
    old, new = changes.old_side, changes.new_side
    before, after = _facts(old), _facts(new)
    is_on_both = np.all(np.array(changes.launches) > 0, axis=0)
    damaged = [when(side.lacks_rows, side.label) for side in (old, new)]
    environments = (mapped(_environment, side.first.profile.run) for side in (old, new))
    words_old, words_new = _words(old), _words(new)
    of_command = []
    if words_old and words_new:
        names = PurePath(words_old[0]).name, PurePath(words_new[0]).name
        of_command = [("program", *names), ("arguments", *_apart(words_old[1:], words_new[1:]))]
    counted_otherwise = np.flatnonzero(changes.is_counted_otherwise).tolist()
    pairs = [
        ("damage", *damaged),
        ("repeats", *_repeats(changes)),
        (
            "counters",
            few([old.nouns.label(WORDS[place]) for place in counted_otherwise], 2),
            when(counted_otherwise, _unnamed(old, new)),
        ),
        *of_command,
        ("gpu", *_processors(old, new)),
        *((what, before[what], after[what]) for what in before if what in after),
        ("clocks", *_clocks(old, new)),
        ("timing", *_timing(changes)),
        ("meter", *(when(side.factors and not other.factors, side.label) for side, other in ((old, new), (new, old)))),
        ("threads", *_threads(changes)),
        ("environment", *_apart(*environments)),
    ]
    differing = {what: Unlike(what, *texts) for what, *texts in pairs if texts[0] != texts[1]}
    before_n, after_n = (float(launches[is_on_both].sum()) for launches in changes.launches)
    if changes.tells_launches and not math.isclose(before_n, after_n, rel_tol=_SAME_LAUNCHES):
        differing["launches"] = Unlike("launches", f"{before_n:g}", f"{after_n:g}")
    for what, implied in (("costs", "setting"), ("profiler", "counters"), ("gpu", "counters")):
        if what in differing:
            differing.pop(implied, None)
    return list(differing.values())


def _apart(old: Iterable[str] | None, new: Iterable[str] | None) -> tuple[str, str]:
    """The arguments of OLD that NEW does not have, and the reverse, as shell text; ("", "") if one's are not known."""
    if old is None or new is None:
        return "", ""
    before, after = Counter(old), Counter(new)
    return shlex.join((before - after).elements()), shlex.join((after - before).elements())


def _repeats(changes: Changes) -> list[str]:
    """Of OLD and of NEW, the count in which repeats differ most, "DRAM bytes by 12 %"; empty up to 5 %."""
    texts = []
    for side, repeats in ((changes.old_side, changes.old_repeats), (changes.new_side, changes.new_repeats)):
        totals = np.array([known_or_zero(grid.number[:, :TIME]).sum(axis=0) for grid in repeats])
        least, most = totals.min(axis=0), totals.max(axis=0)
        apart = np.where(_UNTOLD | (most < _WORTH * most.max(initial=0.0)), 0.0, most - least)
        share = np.divide(apart, most, out=np.zeros_like(apart), where=most > 0)
        column = int(share.argmax())
        differ = f"{uncapital(side.nouns.label(WORDS[column]))} by {percent(float(share[column]))}"
        texts.append(when(share[column] > _ALIKE, differ))
    return texts


def _timing(changes: Changes) -> list[str]:
    """["OLD", ""] or ["", "NEW"]: the side whose times are all estimated, if none of the other's are; else two ""."""
    is_estimated = [(grid.counted[:, TIME] & ESTIMATED) != 0 for _, grid in changes.sides]
    if not all((grid.number[:, TIME] > 0).any() for _, grid in changes.sides):
        return ["", ""]
    are_all = [bool(own.all() and not other.any()) for own, other in (is_estimated, is_estimated[::-1])]
    return [when(own, side.label) for own, (side, _) in zip(are_all, changes.sides, strict=True)]


def _threads(changes: Changes) -> list[str]:
    """The mean threads of a launch of OLD and of NEW, as text, each kernel as often as in OLD; two "" if alike.

    Instructions or flops, where both have them, tell better what is other work.
    """
    pairs = [(old, new) for old, new in changes.kernels if old is not None and new is not None]
    if any(changes.counted_by_both[:, :, unit].any() for unit in (COUNTED[0], COUNTED[2])) or not pairs:
        return ["", ""]
    launches = np.array([old.launches for old, _ in pairs])
    means = []
    for (side, _), kernels in zip(changes.sides, zip(*pairs, strict=True), strict=True):
        counts = side.first.counts
        if counts.shape is None:
            return ["", ""]
        threads = counts.shape["blocks"] * counts.shape["threads"] / counts.rows.launches**2
        mean_of = dict(zip(kernel_keys(side.first), threads.tolist(), strict=True))
        of_kernels = np.array([mean_of.get((kernel.device, kernel.name), np.nan) for kernel in kernels])
        means.append(float((launches * of_kernels).sum() / launches.sum()))
    old, new = means
    if math.isnan(old + new) or math.isclose(old, new, rel_tol=_ALIKE):
        return ["", ""]
    return [quantity(old, ""), quantity(new, "")]


def _words(side: Side) -> list[str]:
    """The arguments of the command line of OLD, or NEW; [] if it is not known, or not the same in all repeats."""
    commands = {log.command for log in side.logs}
    commands = {energy.profile.run.command for energy in side.energies if energy.profile.run} or commands
    command = commands.pop()
    if commands or not command:
        return []
    if of_windows := _OF_WINDOWS.fullmatch(command):
        program, arguments = of_windows.groups()
        return [PureWindowsPath(program).name, *arguments.split()]
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _environment(run: Run) -> list[str]:
    values = run.section("environment").items()
    return [f"{name}={value}" for name, value in values if not name.startswith(_EACH_RUN)]


def _clocks(old: Side, new: Side) -> tuple[str, str]:
    """The clocks of OLD and of NEW as text, if more than 1 % apart; both empty if not, or if one is not known."""
    before, after = old.first.profile.clocks, new.first.profile.clocks
    if before is None or after is None or before.label is None or after.label is None:
        return "", ""
    pairs = ((before.core_mhz, after.core_mhz), (before.memory_mhz, after.memory_mhz))
    if all(math.isclose(first or 0, second or 0, rel_tol=SAME_CLOCK) for first, second in pairs):
        return "", ""
    return before.label, after.label


def _processors(old: Side, new: Side) -> tuple[str, str]:
    """The GPUs or CPUs of OLD and of NEW, and how many; both empty if they may be the same, or one's are not known.

    Of GPUs without names their makers are known, by the profilers.
    """
    names = [sorted(part.device.name or "" for part in side.first.profile.counted) for side in (old, new)]
    makers = [_maker(side) for side in (old, new)]
    are_other = all(makers) and makers[0] != makers[1]
    if all(map(all, names)):
        are_other = len(names[0]) != len(names[1]) or not all(map(_may_be_one, *names))
    if not are_other:
        return "", ""
    before, after = (
        listed([when(number > 1, f"{number} × ") + (name or f"one of {maker}") for name, number in sorted(own.items())])
        for own, maker in zip(map(Counter, names), makers, strict=True)
    )
    return before, after


def _unnamed(old: Side, new: Side) -> str:
    """Which of OLD and NEW alone names no GPU, which decides what counters mean: "NEW names no GPU"; else empty."""
    is_named = [all(part.device.name for part in side.first.profile.counted) for side in (old, new)]
    lacking = [side for side, named in zip((old, new), is_named, strict=True) if not named]
    return f"{lacking[0].label} names no {lacking[0].nouns.processor}" if len(lacking) == 1 else ""


def _maker(side: Side) -> str:
    """Who made the GPUs of OLD, or NEW, as their names or their profilers tell; empty: nothing does."""
    names = [part.device.name for part in side.first.profile.counted]
    profilers = {log.format.partition("-")[0] for log in side.logs}
    if profilers == {"rocprof"} or any(name and "AMD" in name for name in names):
        return "AMD"
    return when(profilers <= {"nvprof", "ncu", "nsys"}, "NVIDIA")


def _may_be_one(name: str, other_name: str) -> bool:
    """Whether two names of devices may be of one kind: one may tell no more than a compute capability."""
    if normal_name(name) == normal_name(other_name):
        return True
    told, other_told = capability_of_label(name), capability_of_label(other_name)
    is_of_capability = told in capabilities_of_label(other_name) or other_told in capabilities_of_label(name)
    return (told is not None or other_told is not None) and is_of_capability


def _facts(side: Side) -> dict[str, str]:
    """Name -> fact on OLD, or NEW, that may differ: CPUs counted, profiler, prices, caches, efficiency, eprof."""
    cpus = side.first.profile.cpu_use.cpus
    facts = {"cpus": mapped(str, cpus) or ""}
    if names := {part.definition.name.partition("/")[0] for part in side.first.profile.counted} - {"none"}:
        facts["profiler"] = listed(sorted(names))
    if side.tables:
        facts["costs"] = listed([costs.name for costs in side.tables])
        facts["setting"] = listed([costs.setting.label for costs in side.tables])
    if caches := {log.caches for log in side.logs if log.caches}:
        facts["caches"] = listed(sorted(caches))
    if side.efficiency is not None:
        facts["efficiency"] = f"{side.efficiency:g}"
    facts["eprof"] = __version__
    if (saved := side.first.profile.saved) is not None:
        facts["eprof"] = str(saved.manifest["eprof"])
    return {what: fact for what, fact in facts.items() if fact}


def warnings(changes: Changes, left_out: Sequence[LeftOut], lost: Sequence[LeftOut], notes: Sequence[str]) -> list[str]:
    """Warnings of a comparison, what bears on every number first. notes: those of the matching."""
    sides = [side for side, _ in changes.sides]
    of_sides = [dict.fromkeys(text for energy in side.energies for text in energy.warnings) for side in sides]
    is_counted = np.asarray(changes.counted_by_both.any(axis=(0, 1)))
    simpler: dict[str, str] = {}
    for word, reasons in changes.simpler.items():
        if is_counted[WORDS.index(word)]:
            simpler = reasons | simpler
    sentences = [
        *_meters(sides),
        *_clocks_of_times(sides),
        *_one_sided(changes),
        *_left_out(changes, left_out, lost),
        *_matches(changes),
        *(f"Simulated counts have {how}: {why}." for how, why in simpler.items()),
        *notes,
        *(f"OLD{when(text in of_sides[1], ' and NEW')}: {text}" for text in of_sides[0]),
        *(f"NEW: {text}" for text in of_sides[1] if text not in of_sides[0]),
    ]
    return list(dict.fromkeys(sentences))


def _meters(sides: Sequence[Side]) -> Iterator[str]:
    """Warnings on prices that were scaled to what a meter saw, of both sides or of one."""
    scaled = []
    for side in sides:
        if side.factors:
            factor = sum(side.factors) / len(side.factors)
            metered_j = sum(side.measured) / len(side.measured)
            scaled.append(f"{side.label} {in_joules(metered_j)}, prices times {factor:.3g}")
    if scaled:
        kernels = sides[0].nouns.kernels
        yield f"Prices are scaled to what a meter saw: {'; '.join(scaled)}. Only the joules of {kernels} are compared."
    if len(scaled) == 1:
        [lacking] = [side.label for side in sides if not side.factors]
        yield f"{lacking} is not scaled to a meter, so part of the change may be the error of its prices."


def _clocks_of_times(sides: Sequence[Side]) -> Iterator[str]:
    """Warnings on times that are of other clocks than the prices."""
    for side in sides:
        if side.own_clocks:
            priced = f"{side.tables[0].setting.label} MHz"
            yield (
                f"{side.label} ran at {side.own_clocks}, by its log, and is priced at {priced}: its time is assumed to "
                "be the same there."
            )


def _one_sided(changes: Changes) -> Iterator[str]:
    """Warnings that name kernels of one side alone; none if no kernel is matched, which `unlike` tells in words."""
    statuses, nouns = changes.statuses.tolist(), changes.old_side.nouns
    if MATCHED not in statuses:
        return
    for status, side in ((VANISHED, changes.old_side), (APPEARED, changes.new_side)):
        names = [changes.names(row)[0] for row, here in enumerate(statuses) if here == status]
        if names:
            own = "They are parts of their own"
            if (changes.apart == MATCHED).all():
                own = "A compiler may have moved their work into others, so all are compared together"
            by_hand = f"--match OLD=NEW pairs {nouns.kernels} by hand."
            yield f"Only in {side.label}: {few(labels(names, 60), _FEW)}. {own}; {by_hand}"


def _left_out(changes: Changes, left_out: Sequence[LeftOut], lost: Sequence[LeftOut]) -> Iterator[str]:
    """Warnings on words that are not in the change, one for each reason; that no energy is, if no table prices any."""
    if changes.old_side.costs is None and changes.new_side.costs is None:
        yield "No cost table prices these logs, so energy is not compared; choose one with --costs (see `eprof costs`)."
        return
    whole, nouns = len(changes.matches), changes.old_side.nouns
    words = (((word.why, word.kernels), nouns.label(word.what)) for word in (*left_out, *lost))
    for (why, kernels), labels_of in gathered(words).items():
        of_some = when(kernels != whole, f" of {kernels} of {whole} {nouns.kernels}")
        yield f"Not in the change: {', '.join(labels_of)}{of_some} ({why})."


def _matches(changes: Changes) -> Iterator[str]:
    """Warnings on kernels that may not be the same, and on those launched another number of times."""
    similar, differ, tells_launches = [], [], changes.tells_launches
    for pair, (old, new), before, after in zip(changes.matches, changes.kernels, *changes.launches, strict=True):
        if old is None or new is None:
            continue
        if pair.how == SIMILAR:
            similar.append(f"{bare(old.name)} = {bare(new.name)} ({pair.score:.2f})")
        if before != after and tells_launches:
            differ.append(f"{bare(new.name)} ({before:g} to {after:g})")
    if similar:
        yield (
            f"Matched by similar names: {few(similar, _FEW)}. --match OLD=NEW corrects a pair, "
            "--no-similar takes names as they are."
        )
    if differ:
        launch = changes.old_side.nouns.launch.capitalize()
        yield f"{launch}ed another number of times: {few(differ, _FEW)}; the change holds that too."

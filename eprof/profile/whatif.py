"""What if: another setting or table, less constant power, a power cap, a class for free, fewer bytes. All modelled.

A question is a set of changes, "setting=612/924,dram=-20%", that hold all at once: in whatever order they are written,
they are made in that of `_ORDER`. Each changes the counts, the prices or the times of a priced profile, which is then
priced again. How times change is written with each change.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from eprof.base.arrays import Columns, Floats
from eprof.base.errors import CostError, EprofError, UsageError
from eprof.base.optional import growth, less, ratio, summed
from eprof.base.text import ShortRepr, listed, pattern
from eprof.base.vocabulary import COMPUTATION_WORDS, COUNTS, DATA, GROUP_OF, GROUPS, Mark
from eprof.costs import Peaks, load
from eprof.counts.counts import Counts
from eprof.energy.attribution import attribute, limits
from eprof.energy.time_by_component import components, gpu_at_setting, seconds, work_of
from eprof.profile.grouping import merged
from eprof.profile.priced_profile import (
    ENERGIES,
    TOTAL,
    PricedProfile,
    joule_marks_of,
    joules_of,
    limit_by_table_w,
    sum_of_known,
    time_of,
)
from eprof.profile.rooflines import machines
from eprof.profile.whatif_model import SHARE, Scenario, assumed, at_setting, kept_share, of_priced, totals
from eprof.profilers.advice import COUNTS as COUNTERS
from eprof.profilers.advice import LAUNCHES, commands

_SCALED = pattern(r"([+-]?\d+(?:\.\d+)?)(%?)")
_WATTS = pattern(r"(\d+(?:\.\d+)?)\s*[wW]")
_FREE = "free"
# First the machine, then what runs on it, then how fast it runs there.
_COUNTS = "counts"
_ORDER = ("costs", "setting", _COUNTS, "block", "conflicts", "pi0", "time", "race", "cap")
_LAST_OF_SPEED = "race"  # a cap comes after it, which makes slower only
_ALIASES = {"integer": "int", "special": "sfu"}
_HELP = (
    "write setting=CORE/MEMORY, costs=NAME, pi0=0.5 (or -50%, or 3W), cap=10W (or -50%), time=-10%, race, dram=-20%, "
    "integer=free, block=256 (threads), conflicts=-50%"
)
SAME_TIME = "times stay as they are"
ROOF_TIME = "a {}'s time changes by as much as the roofline's"
_NO_TENSOR_PEAK = "no table has the peaks of tensor cores"
LIMITED = "a {} that would draw more than its board may is slowed until it does not"
CYCLE_TIME = "a {}'s time changes by as much as its modelled time by component; what it counts stays as it is"
_ROUNDING = 1e-9
_MOST_THREADS = 1024  # of a block, on every GPU since Fermi
FASTER = "in proportion to it where a {} is faster than the roofline of these costs"
AT_ROOF = "no {} becomes faster than the roofline lets it"


class Answer(ShortRepr, Struct, frozen=True):
    """A what-if answer, all modelled. says: the question in words; assumes: what was done about time.

    Joules and seconds; None = not known. marks carry ESTIMATED: nothing here was measured. comparable: whether the
    energy lacks nothing that the energy before has; else their difference is no change.
    """

    question: str
    says: str
    assumes: str
    energy_j: Mapping[str, float | None]
    time_s: float | None
    before_j: float | None
    before_s: float | None
    marks: Mark
    comparable: bool = True

    @property
    def change_j(self) -> float | None:
        """The joules that a what-if answer adds, below 0: saves; None: not known."""
        return less(self.energy_j[TOTAL], self.before_j) if self.comparable else None

    @property
    def change_share(self) -> float | None:
        """The change of energy of a what-if answer over the energy before, as a share; None: not known."""
        return ratio(self.change_j, self.before_j)

    @property
    def time_share(self) -> float | None:
        """The change of time of a what-if answer over the time before, as a share; None: not known."""
        return growth(self.time_s, self.before_s) if self.comparable else None


def ask(energy: PricedProfile, question: str) -> Answer:
    """Answer one what-if question. Raises UsageError: not a question, or not of this profile; CostError: no setting."""
    changes = _changes(question)
    if energy.gpus:
        return _of_each_gpu(energy, question)
    start = now = of_priced(energy)
    says, assumes = [], []
    for step in _ORDER:
        before_step = now
        for key, value in [(change.key, change.value) for change in changes if change.step == step]:
            now, meaning, assumption = _CHANGES[step](now, key, value, energy)
            says.append(meaning)
            assumes.append(assumption)
        if step == _COUNTS:
            now = now.taking(_slower(before_step, now.roof_s()))
        if step == _LAST_OF_SPEED and energy.is_at_own_peaks:
            now, before_step = _at_the_roof(start, now), now
            assumes += [AT_ROOF.format(now.noun)] * (now is not before_step)
    slowed = now.below_limits()
    if slowed is not now:
        now = slowed
        assumes.append(LIMITED.format(now.noun))
    before, after = totals(start), totals(now)
    # Sums in another order differ in the last digit: what did not change keeps the digits of the report.
    known_j, known_s = joules_of(energy), time_of(energy)
    unchanged = {part: known_j[part] for part, joules in after.parts.items() if joules == before.parts[part]}
    time_s = known_s if after.time_s == before.time_s else after.time_s
    assumptions = [piece for assumed in assumes for piece in assumed.split("; ")]
    return Answer(
        question,
        "; ".join(says),
        "; ".join(dict.fromkeys(assumptions)),
        {**after.parts, **unchanged},
        time_s,
        known_j["total"],
        known_s,
        after.marks | Mark.ESTIMATED,
        after.lacks <= before.lacks,
    )


def _of_each_gpu(energy: PricedProfile, question: str) -> Answer:
    """The answer for several GPUs together, each at its own prices; one that refuses the question stays as it is.

    Raises EprofError: all refuse it.
    """
    answers: dict[str, Answer] = {}
    refused: dict[str, EprofError] = {}
    for gpu in energy.gpus:
        name = ", ".join(str(part.device.label) for part in gpu.profile.counted)
        try:
            answers[name] = ask(gpu, question)
        except EprofError as err:
            refused[name] = err
            now_j, now_s = joules_of(gpu), time_of(gpu)
            marks = Mark(int(np.bitwise_or.reduce(list(joule_marks_of(gpu).values()))))
            answers[name] = Answer(question, "as it is", SAME_TIME, now_j, now_s, now_j[TOTAL], now_s, marks)
    if len(refused) == len(answers):
        raise next(iter(refused.values()))
    of_gpus = list(answers.values())
    says = "; ".join(f"{name}: {answer.says}" for name, answer in answers.items())
    if len({answer.says for answer in of_gpus}) == 1:
        says = of_gpus[0].says
    assumptions = [piece for answer in of_gpus for piece in answer.assumes.split("; ")]
    return Answer(
        question,
        says,
        "; ".join(dict.fromkeys(assumptions)),
        {part: sum_of_known([answer.energy_j[part] for answer in of_gpus]) for part in ENERGIES},
        sum_of_known([answer.time_s for answer in of_gpus]),
        sum_of_known([answer.before_j for answer in of_gpus]),
        sum_of_known([answer.before_s for answer in of_gpus]),
        Mark(int(np.bitwise_or.reduce([int(answer.marks) for answer in of_gpus]))),
        all(answer.comparable for answer in of_gpus),
    )


class _Change(Struct, frozen=True):
    """One change of a what-if question as it is written, "dram=-20%", and its step in `_ORDER`."""

    step: str
    key: str
    value: str
    written: str

    @property
    def what(self) -> set[str]:
        """What the change touches: words of the vocabulary, or its key."""
        if self.step == _COUNTS:
            return set(_words(self.key))
        return {"time" if self.key == "race" else self.key}


def _changes(question: str) -> list[_Change]:
    """The changes of a what-if question. Raises UsageError: one is none, or two cannot both hold."""
    changes = []
    for part in filter(None, map(str.strip, question.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if key == "race" and not equals or equals and key in _ORDER and key not in ("race", _COUNTS):
            changes.append(_Change(key, key, value, part))
        elif equals and _words(key):
            changes.append(_Change(_COUNTS, key, value, part))
        else:
            raise UsageError(f"--what-if {part}: {_HELP}.")
    if not changes:
        raise UsageError(f"--what-if {question!r}: {_HELP}.")
    for pair in combinations(changes, 2):
        first, second = (change.written for change in pair)
        if pair[0].what & pair[1].what:
            narrower = min(pair, key=lambda change: len(change.what))
            what = "time" if narrower.key == "race" else narrower.key
            raise UsageError(
                f"--what-if {question}: {first} and {second} exclude each other, as both change `{what}`; ask for each "
                f"alone (--what-if {first} --what-if {second})."
            )
    return changes


_Changed = tuple[Scenario, str, str]


def race(now: Scenario, *_: object) -> _Changed:
    """What if the program raced to finish: kernels take the roofline's time; without one, or if faster, their own."""
    if now.work.on_tensor_cores.all():
        raise UsageError(f"--what-if race: {_NO_TENSOR_PEAK}, so the roofline of these kernels is not known.")
    says = f"every {now.noun} races to finish at the roofline's time"
    roof, known = now.roof_s(), ~now.work.uncounted
    if now.work.together is not None:
        known = np.append(known, True)
    faster = np.where(known & (roof > 0), np.minimum(now.time_s, roof), now.time_s)
    return now.taking(faster), says, _with_tensor_work(now, f"every {now.noun} can be as fast as the roofline")


def _with_tensor_work(now: Scenario, assumes: str) -> str:
    """The text `assumes`, with a remark on kernels that have no roofline for their tensor work, if there are any."""
    on_tensor_cores = now.work.on_tensor_cores
    if not on_tensor_cores.any():
        return assumes
    number = f"{on_tensor_cores.sum()} of {len(on_tensor_cores)}"
    return f"{assumes}; kernels with tensor work ({number}) keep their time, for {_NO_TENSOR_PEAK}"


def _setting(now: Scenario, _: str, value: str, energy: PricedProfile) -> _Changed:
    """What if the clocks were others: `setting=612/924`."""
    if now.table is None or now.costs.peaks == Peaks():
        raise UsageError(f"--what-if setting={value}: {now.costs.name} tells no peaks, so time there is not known.")
    there = at_setting(now, value)
    return there, f"at {there.costs.setting.label} MHz", assumed(now)


def _costs(now: Scenario, _: str, value: str, energy: PricedProfile) -> _Changed:
    """What if the costs were others: `costs=TABLE`."""
    if energy.metered is not None:
        raise UsageError(
            f"--what-if costs={value}: these costs are scaled to a meter, and no meter saw a run with others; ask with "
            "--no-to-meter, or without --energy."
        )
    table = energy.profile.cpu_use.in_use(energy.profile.on_this_gpu(load(value)))
    same_gpu = now.table is not None and (table.path == now.table.path or set(table.devices) & set(now.table.devices))
    if not same_gpu and now.work.on_tensor_cores.any():
        raise UsageError(f"--what-if costs={value}: {_NO_TENSOR_PEAK}, so times on another GPU are not known.")
    priced = table.at()
    if same_gpu:
        with suppress(CostError):  # at the setting of now, if the table knows it
            priced = replace(table.at(now.costs.setting.label), cores_mhz=now.costs.cores_mhz)
    priced = energy.profile.for_this_gpu(priced, table)
    work = now.work
    if priced.books != work.counts.books:
        counts = energy.profile.counts(priced.books)
        if work.counts.rows.part is None:
            counts = merged(counts, None)[0]
        # The same kernels in other books, in the order that they had, with their times.
        places = {key: place for place, key in enumerate(_keys(counts))}
        order = np.array([places[key] for key in _keys(work.counts)])
        work = replace(work, counts=replace(counts.chosen(order), rows=work.counts.rows))
    says = f"with the costs of {table.name} at {priced.setting.label}"
    if not same_gpu:
        rows = work.counts.rows
        there = replace(now, work=replace(work, held=np.ones(len(rows))), costs=priced, table=table)
        there = replace(there, time_s=kept_share(now, there))
        if energy.modelled is None:
            of_boards = limits(energy.counts.rows, np.full(len(rows), limit_by_table_w(table)), energy.total_s)
            if now.work.together is not None:
                of_boards = of_boards.with_one_more(now.limits.is_in)
            there = replace(there, limits=of_boards)
        return there, f"{says}, as if on that platform", SHARE.format(now.noun)
    made_j = attribute(work.counts, priced).work_j
    work = replace(work, held=energy.limits.factors(made_j, priced.constant_power_w))
    changed = replace(now, work=work, table=table)
    here = now.costs.setting
    if priced.setting.label in (here.label, "fixed") or here.core_mhz is None:
        return replace(changed, costs=priced), says, SAME_TIME
    return replace(at_setting(changed, priced.setting.label), costs=priced), says, assumed(now)


def _keys(counts: Counts) -> list[tuple[str | None, ...]]:
    rows = counts.rows
    parts = [None] * len(rows) if rows.part is None else rows.part
    return list(zip(rows.device, rows.kernel, parts, strict=True))


def _factor(part: str, value: str) -> float:
    """The factor of a what-if change: 0.8 of "0.8", "-20%" or "80%". Raises UsageError."""
    match = _SCALED.fullmatch(value)
    if not match:
        raise UsageError(f"--what-if {part}={value}: say a factor such as 0.8, or a change such as -20%.")
    is_change = match[1][0] in "+-"
    is_percent = bool(match[2])
    factor = float(match[1])
    if is_percent:
        factor /= 100
    if is_change:
        factor += 1
    if (is_change and not is_percent) or factor < 0:
        raise UsageError(f"--what-if {part}={value}: say a factor of 0 or more such as 0.8, or a change such as -20%.")
    return factor


def _in_words(factor: float) -> str:
    if factor == 1:
        return "as much"
    return f"{abs(factor - 1) * 100:g} % {'less' if factor < 1 else 'more'}"


def _pi0(now: Scenario, key: str, value: str, _: PricedProfile) -> _Changed:
    """What if constant power were a factor of what it is, or so many watts: `pi0=0.5`, `pi0=20W`."""
    watts = _WATTS.fullmatch(value)
    power = float(watts[1]) if watts else now.costs.constant_power_w * _factor(key, value)
    says = f"constant power of {power:.3g} W instead of {now.costs.constant_power_w:.3g} W"
    return replace(now, costs=replace(now.costs, constant_power_w=power)), says, SAME_TIME


def _cap(now: Scenario, key: str, value: str, _: PricedProfile) -> _Changed:
    """What if power were capped: a kernel with power above pi0 over Delta_pi takes (E - pi0 T)/Delta_pi ([T] 4.2).

    Delta_pi is what is left of "10W" (in all), or a factor of the most that the costs allow.
    """
    constant = now.costs.constant_power_w
    watts = _WATTS.fullmatch(value)
    if watts:
        usable = float(watts[1]) - constant
        says = f"a power cap of {float(watts[1]):g} W"
        if usable <= 0:
            raise UsageError(f"--what-if cap={value}: {now.costs.name} draws {constant:.4g} W of constant power alone.")
    elif now.work.on_tensor_cores.any():
        raise UsageError(f"--what-if cap={value}: {_NO_TENSOR_PEAK}; give the cap in watts, cap=100W.")
    elif not (known := machines(now.costs)):
        raise UsageError(f"--what-if cap={value}: {now.costs.name} tells no peaks; give the cap in watts, cap=100W.")
    else:
        factor = _factor(key, value)
        if factor == 0:
            raise UsageError("--what-if cap=0: leaves nothing to compute with.")
        most = max(machine.peak_power_w - machine.constant_power_w for machine in known)
        usable = factor * most
        cap = f"a power cap of {constant + usable:.3g} W"
        says = f"{cap}, {_in_words(factor)} than the {most:.3g} W above constant power that the peaks take"
    # A kernel without a time has no power to cap; energy that is not known slows nothing.
    slowed = np.where(np.isnan(now.time_s), np.nan, np.fmax(now.time_s, now.work_j / usable))
    return replace(now, time_s=slowed), says, f"a {now.noun} that would draw more is slowed until it does not"


def _time(now: Scenario, key: str, value: str, _: PricedProfile) -> _Changed:
    """What if all times were multiplied by a factor: `time=0.8`."""
    factor = _factor(key, value)
    return now.taking(now.time_s * factor), f"{_in_words(factor)} time", "the counts stay as they are"


def _at_the_roof(start: Scenario, now: Scenario) -> Scenario:
    """The scenario with no time shorter than its roofline allows, as far as the times of `start` are; itself if none.

    Times that a user gives, and those of models that know nothing of the roofline, may be too short. A kernel that is
    faster than the roofline by a share, as the times of logs are not exact, stays so by that share at most.
    """
    before = start.roof_s()
    share = np.where(before > 0, np.fmin(1.0, start.time_s / np.where(before > 0, before, 1.0)), 0.0)
    least_s = share * now.roof_s()
    is_short = now.time_s < least_s * (1 - _ROUNDING)
    return now.taking(np.where(is_short, least_s, now.time_s)) if is_short.any() else now


def _launched(now: Scenario, key: str, value: str, energy: PricedProfile) -> _Changed:
    """What if blocks had other threads, or bank conflicts changed: kernels take T - min(T, M) (1 - M'/M), M modelled.

    Threads, and registers of each, stay; shared memory of a block goes with its threads. A kernel whose launch shape
    or conflicts are not known keeps its time.
    """
    machine = gpu_at_setting(now.costs)
    counts = now.work.counts
    if machine is None or counts.shape is None:
        raise UsageError(f"--what-if {key}={value}: {now.costs.name} has no [time_components], which tells cycles.")
    change, needed = _LAUNCHED[key]
    shape, says = change(counts, key, value)
    if (shape["registers"] * shape["threads"] > machine.units.registers * counts.rows.launches**2).any():
        raise UsageError(f"--what-if {key}={value}: such a block needs more registers than a multiprocessor has.")
    changed = replace(counts, shape=shape)
    before, after = (components(work_of(some, machine), machine) for some in (counts, changed))
    known = ~np.isnan(shape[needed]) & (before.total > 0)
    if not before.total.any():
        raise UsageError(f"--what-if {key}={value}: the logs count nothing that tells the cycles of a {now.noun}.")
    if not known.any():
        told = f"the logs tell the {_NEEDED[needed]} of no {now.noun}"
        raise UsageError(f"--what-if {key}={value}: {told}; {_to_tell(energy, needed)}.")
    share_saved = np.where(known, 1 - after.total / np.where(known, before.total, 1.0), 0.0)
    of_kernels = slice(len(share_saved))
    modelled_s = seconds(before, machine, counts.rows.launches)
    time_s = now.time_s.copy()
    time_s[of_kernels] -= np.minimum(time_s[of_kernels], modelled_s) * share_saved
    there = replace(now, work=replace(now.work, counts=changed)).taking(time_s)
    assumes = CYCLE_TIME.format(now.noun)
    if not known.all():
        assumes += f"; {(~known).sum()} of {len(known)} keep theirs, as no log tells their {_NEEDED[needed]}"
    return there, says, assumes


def _to_tell(energy: PricedProfile, needed: str) -> str:
    """How to get what a question lacks of launches into logs: counters of the profiler in use, or a command."""
    definition = energy.profile.counted[0].definition
    ways = definition.components.get(needed, ())
    if counters := [name for way in ways[:1] for name in definition.counters_of(way.formula)]:
        return f"count {listed(counters)} with {definition.profiler}"
    capabilities = [part.device.capability for part in energy.profile.counted]
    if needed == "blocks":
        return f"give along with them: {commands(LAUNCHES, capabilities)}"
    return f"count with {commands(COUNTERS, capabilities)}"


def _in_blocks(counts: Counts, key: str, value: str) -> tuple[Columns, str]:
    """The launch shapes with other threads a block and as many threads in all; and the change in words."""
    assert counts.shape is not None
    threads = 0
    if value.isdecimal() and len(value) < 5:
        threads = int(value)
    if not 0 < threads <= _MOST_THREADS:
        raise UsageError(f"--what-if {key}={value}: say the threads of a block, 1 to {_MOST_THREADS}.")
    shape = counts.shape
    larger = threads * counts.rows.launches / shape["threads"]
    changed = {"blocks": shape["blocks"] / larger}
    changed |= {name: shape[name] * larger for name in ("threads", "shared_byte")}
    return shape.replaced(changed), f"in blocks of {threads} threads"


def _conflicting(counts: Counts, key: str, value: str) -> tuple[Columns, str]:
    """The launch shapes with a factor on bank conflicts; and the change in words."""
    assert counts.shape is not None
    factor = _factor(key, value)
    return counts.shape.replaced(
        {key: factor * counts.shape[key]}
    ), f"{_in_words(factor).replace('less', 'fewer')} bank conflicts"


_NEEDED = {"blocks": "launch shape", "conflicts": "bank conflicts"}
# How a launch may change, and what is to be known of it.
_LAUNCHED: Mapping[str, tuple[Callable[[Counts, str, str], tuple[Columns, str]], str]] = {
    "block": (_in_blocks, "blocks"),
    "conflicts": (_conflicting, "conflicts"),
}


def _words(key: str) -> list[str]:
    """The counts that a what-if question's key means: itself ("l2_read"), those of its group ("dram") or family."""
    key = _ALIASES.get(key.lower(), key.lower())
    return [name for name, count in COUNTS.items() if key in (name, count.group, count.family)]


def _count(now: Scenario, key: str, value: str, _: PricedProfile) -> _Changed:
    """What if a class were free, at the same time; or more or less of it: `_slower` then says what time that takes."""
    words = [name for name in _words(key) if name in now.work.sums]
    nouns = now.work.counts.nouns
    name = _ALIASES.get(key.lower(), key.lower())
    label = {DATA: "data movement"}.get(name, name)
    if name in GROUPS:
        label = nouns.group(name)
    elif name in COUNTS:
        label = nouns.label(name)
    if value.lower() == _FREE:
        return replace(now, free=now.free | set(words)), f"{label} for free", SAME_TIME
    factor = _factor(key, value)
    counts = now.work.counts
    amounts = counts.amounts.replaced({word: factor * counts.amounts[word] for word in words})
    work = replace(now.work, counts=replace(counts, amounts=amounts), idle_before=now.work.idle)
    changed = replace(now, work=work)
    assumes = _with_tensor_work(now, ROOF_TIME.format(now.noun))
    timed = ~np.isnan(now.time_s)
    faster = int((now.time_s[timed] < now.roof_s()[timed] * (1 - 1e-9)).sum())
    if faster:
        assumes += f"; {FASTER.format(now.noun)} ({faster} of {timed.sum()})"
    if COUNTS[words[0]].unit == "instruction":
        return changed, f"{_in_words(factor).replace('less', 'fewer')} instructions: {label}", assumes
    says = f"{_in_words(factor).replace('less', 'fewer')} bytes: {label}"
    return changed, says, f"{assumes}; the bytes are not moved at another level instead"


def _slower(now: Scenario, roof_s: Floats) -> Floats:
    """Times in s, (n_times,), after a question changed the roofline's time from that of `now`, R, to `roof_s`, R'.

    T' = T - (R - R'): only what the roofline allows is gained, as nothing tells that the rest of the time is spent on
    these counts. A kernel that is faster than the roofline of these costs (T < R: another GPU's table, or a time that
    is not exact) keeps its share of the roofline's speed instead, T' = T R'/R. Both are T' = T - min(T, R) (1 - R'/R):
    never below 0, and T where the roofline stays. A kernel whose roofline is not known keeps its time.
    """
    roof = now.roof_s()
    left = roof_s / np.where(roof > 0, roof, np.nan)
    gone = np.minimum(now.time_s, roof) * (1 - left)
    return np.asarray(now.time_s - np.where(np.isnan(left), 0.0, gone))


_CHANGES: Mapping[str, Callable[[Scenario, str, str, PricedProfile], _Changed]] = {
    "costs": _costs,
    "setting": _setting,
    _COUNTS: _count,
    **dict.fromkeys(_LAUNCHED, _launched),
    "pi0": _pi0,
    "time": _time,
    "race": race,
    "cap": _cap,
}


def usual(energy: PricedProfile) -> list[Answer]:
    """The answers to the what-if questions that a report asks by itself, without those that change no energy."""
    assert energy.split is not None
    joules = energy.split.joules
    words = [word for word in joules.names if word in COMPUTATION_WORDS]
    sums = summed((GROUP_OF[word], float(np.nansum(joules[word]))) for word in words)
    largest = max(sums, key=sums.__getitem__, default="int")
    questions = ["race", "pi0=-50%", "dram=-20%", f"{largest}=free", "cap=-50%"]
    if energy.modelled is not None:
        # What less constant power saves of modelled time is what the model put there.
        questions = questions[2:4]
    answers = []
    for question in questions:
        with suppress(EprofError):
            answers.append(ask(energy, question))
    return [answer for answer in answers if answer.change_j]

"""What if: another setting or table, less constant power, a power cap, a class for free, fewer bytes. All modelled.

A question is a set of changes, "setting=612/924,dram=-20%", that hold all at once: in whatever order they are written,
they are made in that of `_ORDER`. Each changes the counts, the prices or the times of a priced profile, which is then
priced again. How times change is written with each change.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct, structs
from msgspec.structs import replace

from eprof.base.arrays import Columns, Floats
from eprof.base.brief import Brief
from eprof.base.errors import CostError, EprofError, UsageError
from eprof.base.known import growth, less, mapped, ratio, summed
from eprof.base.marks import MISSING, Mark, names
from eprof.base.text import pattern
from eprof.base.vocabulary import COMPUTATION, COMPUTATION_WORDS, CONSTANT, COUNTS, DATA, GROUP_OF, GROUPS, Nouns
from eprof.costs import Costs, CostTable, Peaks, Setting, load
from eprof.counts.counts import Counts
from eprof.energy.attribution import attribute
from eprof.energy.clocks import of_table
from eprof.energy.modelled_time import UNDER_THE_ROOF, at_peaks, has_modelled_time, highest_s, under_the_roof
from eprof.energy.time_components import components, machine_of, seconds, work_of
from eprof.profile import schema
from eprof.profile.grouping import merged
from eprof.profile.priced import ENERGIES, TOTAL, Priced, joule_marks_of, joules_of, known_sum, time_of
from eprof.profile.rooflines.machine import machines
from eprof.profile.rooflines.work import has_tensor_work, traffic_of

_SCALED = pattern(r"([+-]?\d+(?:\.\d+)?)(%?)")
_WATTS = pattern(r"(\d+(?:\.\d+)?)\s*[wW]")
_FREE = "free"
# First the machine, then what runs on it, then how fast it runs there.
_COUNTS = "counts"
_ORDER = ("costs", "setting", _COUNTS, "block", "conflicts", "pi0", "time", "race", "cap")
_ALIASES = {"integer": "int", "special": "sfu"}
_HELP = (
    "write setting=CORE/MEMORY, costs=NAME, pi0=0.5 (or -50%, or 3W), cap=10W (or -50%), time=-10%, race, dram=-20%, "
    "integer=free, block=256 (threads), conflicts=-50%"
)
SHARE = "each {} keeps its share of the roofline's speed"
AT_CLOCKS = "DRAM traffic goes with the memory clock, the rest of the time with the core clock"
HALVES = "half of the time goes with each clock, a guess: no peak bandwidth is known"
SAME_TIME = "times stay as they are"
ROOF_TIME = "a {}'s time changes by as much as the roofline's"
_NO_TENSOR_PEAK = "no table has the peaks of tensor cores"
LIMITED = "a {} that would draw more than its board may is slowed until it does not"
CYCLE_TIME = "a {}'s time changes by as much as its modelled time by component; what it counts stays as it is"
_MOST_THREADS = 1024  # of a block, on every GPU since Fermi
FASTER = "in proportion to it where a {} is faster than the roofline of these costs"


class Work(Struct, frozen=True, eq=False, dict=True):
    """The counts of some kernels, with the sums that every price needs worked out once.

    together: the kernels whose time is known only as one, if there are some. Arrays "of each time" have an entry for
    each kernel, and then one for those, as if they were one kernel. idle_before: the kernels that the logs count
    nothing of under the roof, where a question changed the counts since. held: what the limits of boards took the work
    of each kernel times, (n_kernels,).
    """

    counts: Counts
    held: Floats
    together: npt.NDArray[np.bool_] | None = None
    idle_before: npt.NDArray[np.bool_] | None = None

    def of_each_time(self, of_kernels: Floats) -> Floats:
        """Append the sum over the kernels whose time is known together only, if any: (n_kernels,) -> (n_times,)."""
        if self.together is None:
            return of_kernels
        return np.append(of_kernels, of_kernels[self.together].sum())

    @cached_property
    def sums(self) -> dict[str, tuple[float, int]]:
        """Word -> the amount over all kernels, cut as power limits cut energy (NaN: not known), and its marks."""
        values = self.counts.amounts.values * self.held[:, np.newaxis]
        known = ~np.isnan(values)
        whole = np.where(known.any(axis=0), np.where(known, values, 0.0).sum(axis=0), np.nan)
        marks = np.bitwise_or.reduce(self.counts.amount_marks.values, axis=0)
        pairs = zip(whole.tolist(), marks.tolist(), strict=True)
        return dict(zip(self.counts.amounts.names, pairs, strict=True))

    @cached_property
    def dram_byte(self) -> Floats:
        """DRAM bytes of each time in a what-if question; NaN where reads or writes are not known."""
        return self.of_each_time(traffic_of(self.counts.amounts))

    @cached_property
    def on_the_roof(self) -> npt.NDArray[np.bool_]:
        """True for times that keep their share of the roofline at other clocks: modelled, or bytes unknown."""
        simulated = self.of_each_time(has_modelled_time(self.counts).astype(np.float64)) > 0
        return np.asarray(simulated | np.isnan(self.dram_byte))

    @cached_property
    def under_the_roof(self) -> dict[str, Floats]:
        """Each kernel's "fp32" and "fp64" flops and "dram" bytes, (n_kernels,), which bound its time; 0: not known."""
        return under_the_roof(self.counts.amounts, self.counts.in_flops)

    def roof_s(self, peaks: Peaks) -> Floats:
        """The roofline's time in s for each time, (n_times,): 0 without FLOP and DRAM bytes, NaN where not known.

        NaN: a peak is not known, as of kernels with work of tensor cores, whose peaks no table has.
        """
        roof = np.where(self.on_tensor_cores, np.nan, highest_s(at_peaks(self.under_the_roof, peaks)))
        if self.together is None:
            return roof
        # What is under the roof of some of them only says nothing of the time that all took.
        return self.of_each_time(np.where(self.together & (self.uncounted | self.idle), np.nan, roof))

    @property
    def idle(self) -> npt.NDArray[np.bool_]:
        """True for kernels without flops and DRAM bytes in the logs, (n_kernels,); a question's zeros do not count."""
        if self.idle_before is not None:
            return self.idle_before
        return np.asarray(sum(self.under_the_roof.values()) == 0)

    @cached_property
    def on_tensor_cores(self) -> npt.NDArray[np.bool_]:
        """Which kernels tensor cores worked for, (n_kernels,)."""
        return has_tensor_work(self.counts.amounts)

    @cached_property
    def uncounted(self) -> npt.NDArray[np.bool_]:
        """True for kernels some of whose flops or DRAM bytes were not counted, (n_kernels,)."""
        marks = self.counts.amount_marks.only(UNDER_THE_ROOF)
        return np.asarray((marks & MISSING).any(axis=1))


class Scenario(Struct, frozen=True, eq=False):
    """A priced profile that may be changed: the counts and times (s, NaN = not known) of its kernels, and its costs.

    time_s: (n_times,), as `Work` has them. time_marks: of all times together.
    """

    work: Work
    time_s: Floats
    time_marks: int
    costs: Costs
    table: CostTable | None

    def roof_s(self) -> Floats:
        """The roofline's time in s at the scenario's costs, (n_times,), as `Work.roof_s`."""
        return self.work.roof_s(self.costs.peaks)

    @property
    def work_j(self) -> Floats:
        """The J of all but constant power in each time of a what-if scenario, (n_times,)."""
        of_kernels = attribute(self.work.counts, self.costs).work_j * self.work.held
        return self.work.of_each_time(of_kernels)

    @property
    def noun(self) -> str:
        """The word for one of a what-if scenario's kernels."""
        return self.work.counts.nouns.kernel

    @property
    def known_s(self) -> npt.NDArray[np.bool_]:
        """True for each time that is known, (n_times,), and for kernels whose time is in that of all together."""
        known = ~np.isnan(self.time_s)
        if self.work.together is not None:
            known |= np.append(self.work.together, False)
        return known


class Answer(Brief, Struct, frozen=True):
    """A modelled energy. says: the question in words; assumes: what was done about time; change: against the profile.

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


def ask(energy: Priced, question: str) -> Answer:
    """Answer one what-if question. Raises UsageError: not a question, or not of this profile; CostError: no setting."""
    parts = [part.strip() for part in question.split(",") if part.strip()]
    if not parts:
        raise UsageError(f"--what-if {question!r}: {_HELP}.")
    if energy.gpus:
        return _of_each_gpu(energy, question)
    start = now = _scenario(energy)
    says, assumes = [], []
    steps: dict[str, list[tuple[str, str]]] = {step: [] for step in _ORDER}
    for part in parts:
        step, key, value = _parsed(part)
        steps[step].append((key, value))
    for step, values in steps.items():
        before_step = now
        # Times go from the clocks of the log to others: in steps they would end elsewhere. Of several the last holds.
        if step in ("costs", "setting"):
            values = values[-1:]
        for key, value in values:
            now, meaning, assumed = _CHANGES[step](now, key, value, energy)
            says.append(meaning)
            assumes.append(assumed)
        if step == _COUNTS:
            now = replace(now, time_s=_slower(before_step, now.roof_s()))
    slowed = _below_limits(now, energy)
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


def _of_each_gpu(energy: Priced, question: str) -> Answer:
    """The answer for several GPUs, each at its own prices, else as it is. Raises EprofError: none can be asked."""
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
        {part: known_sum([answer.energy_j[part] for answer in of_gpus]) for part in ENERGIES},
        known_sum([answer.time_s for answer in of_gpus]),
        known_sum([answer.before_j for answer in of_gpus]),
        known_sum([answer.before_s for answer in of_gpus]),
        Mark(int(np.bitwise_or.reduce([int(answer.marks) for answer in of_gpus]))),
        all(answer.comparable for answer in of_gpus),
    )


def _parsed(part: str) -> tuple[str, str, str]:
    """The step of `_ORDER`, the key and the value of a what-if change as it is written. Raises UsageError."""
    key, equals, value = (piece.strip() for piece in part.partition("="))
    if key == "race" and not equals:
        return key, key, value
    if equals and key in _ORDER and key not in ("race", _COUNTS):
        return key, key, value
    if equals and _words(key):
        return _COUNTS, key, value
    raise UsageError(f"--what-if {part}: {_HELP}.")


def _below_limits(now: Scenario, energy: Priced) -> Scenario:
    """The scenario with times long enough for its power to stay below the boards' limits; itself where it does."""
    if now.table is not energy.table:
        return now
    limits, together = energy.limits, now.work.together
    if together is not None:
        limits = limits.with_one_more(~np.isnan(now.time_s))
    slowed_s = limits.slowed_s(now.work_j, now.costs.constant_power_w, now.time_s)
    if np.array_equal(slowed_s, now.time_s, equal_nan=True):
        return now
    return replace(now, time_s=slowed_s)


class Totals(Struct, frozen=True):
    """Energy by family and time of all kernels; None = not known.

    lacks: the words of which some energy is not known, and the places of the times that are not.
    """

    parts: Mapping[str, float | None]
    time_s: float | None
    marks: Mark
    lacks: frozenset[str | int]


def totals(scenario: Scenario) -> Totals:
    """Price a what-if scenario as a whole, as `attribute` does it, which is linear: counts are added up first."""
    known: dict[str, list[float]] = {COMPUTATION: [], DATA: []}
    lost, marks = dict.fromkeys(known, False), 0
    lacks: set[str | int] = set(np.flatnonzero(~scenario.known_s).tolist())
    marks |= MISSING * bool(lacks)
    for word, (value, word_marks) in scenario.work.sums.items():
        family, charge = COUNTS[word].family, scenario.costs.charges.get(word)
        pays = charge is not None and charge.pays
        if (pays and word_marks & Mark.MISSING) or (charge is None and value > 0):
            lacks.add(word)
            marks |= MISSING
        if np.isnan(value) or charge is None:
            lost[family] |= word in lacks
        elif not pays:
            known[family].append(0.0)
        else:
            known[family].append(value * charge.pj * 1e-12)
            marks |= word_marks | int(charge.marks) * bool(value)
    parts = {family: _sum_known(known[family], lost[family]) for family in known}
    time_s = _sum_known(scenario.time_s[~np.isnan(scenario.time_s)].tolist(), False)
    constant = mapped(scenario.costs.constant_power_w.__mul__, time_s)
    marks |= scenario.time_marks | int(scenario.costs.constant_marks)
    everything = [*known[COMPUTATION], *known[DATA]]
    if constant is not None:
        everything.append(constant)
    whole = {**parts, CONSTANT: constant, "total": _sum_known(everything, False)}
    return Totals(whole, time_s, Mark(marks), frozenset(lacks))


def _sum_known(values: Sequence[float], lost: bool) -> float | None:
    """The sum of the values; None where there are none, or where some are lost and the known ones are 0."""
    whole = math.fsum(values)
    if not values or lost and not whole:
        return None
    return whole


def _scenario(energy: Priced) -> Scenario:
    if energy.costs is None or energy.split is None:
        raise UsageError("What-if prices a profile again, and no cost table is chosen: name one with --costs.")
    time_s = energy.counts.rows.time_s
    marks = int(np.bitwise_or.reduce(energy.counts.rows.time_marks))
    if energy.total_s is None:
        return Scenario(Work(energy.counts, energy.split.held), time_s, marks, energy.costs, energy.table)
    together = np.isnan(time_s)
    time_s = np.append(time_s, energy.total_s - time_s[~together].sum())
    work = Work(energy.counts, energy.split.held, together)
    return Scenario(work, time_s, marks & ~MISSING, energy.costs, energy.table)


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
    return replace(now, time_s=faster), says, _with_tensor_work(now, f"every {now.noun} can be as fast as the roofline")


def _with_tensor_work(now: Scenario, assumes: str) -> str:
    """The text `assumes`, with a remark on kernels that have no roofline for their tensor work, if there are any."""
    on_tensor_cores = now.work.on_tensor_cores
    if not on_tensor_cores.any():
        return assumes
    number = f"{on_tensor_cores.sum()} of {len(on_tensor_cores)}"
    return f"{assumes}; kernels with tensor work ({number}) keep their time, for {_NO_TENSOR_PEAK}"


def at_setting(now: Scenario, setting: str) -> Scenario:
    """The scenario at another DVFS setting of the same table, with times by `TimeModel`, as `eprof tune` has them."""
    assert now.table is not None
    # Prices of another GPU's table stay assumed.
    priced = now.table.at(setting).marked(now.costs.marks & Mark.ASSUMED)
    held_w = priced.constant_power_w * now.costs.constant_held
    moved = replace(now, costs=replace(priced, constant_power_w=held_w))
    return replace(moved, time_s=_times_at(now, moved))


def _times_at(now: Scenario, moved: Scenario) -> Floats:
    """Times in s at another setting: T T_roof'/T_roof of simulated kernels, and where DRAM bytes are not known."""
    assert now.table is not None
    here = now.costs.setting
    there = moved.costs.setting
    if (here.core_mhz, here.memory_mhz) == (there.core_mhz, there.memory_mhz):
        return now.time_s
    roofed = now.work.on_the_roof
    kept = now.time_s
    if roofed.any():
        kept = _kept_share(now, moved)
    if here.core_mhz is None or here.memory_mhz is None or there.core_mhz is None or there.memory_mhz is None:
        return kept
    clocks = (here.core_mhz, here.memory_mhz), (there.core_mhz, there.memory_mhz)
    traffic = np.nan_to_num(now.work.dram_byte)
    return np.where(roofed, kept, of_table(now.table).at(now.time_s, traffic, *clocks))


def _kept_share(now: Scenario, there: Scenario) -> Floats:
    """Times in s at `there` if each kernel keeps its share of the roofline's speed; NaN without a roofline."""
    roof = now.roof_s()
    return now.time_s * (there.roof_s() / np.where(roof > 0, roof, np.nan))


def _assumed(now: Scenario) -> str:
    roofed = now.work.on_the_roof
    share = SHARE.format(now.noun)
    times = HALVES
    if now.table is not None and of_table(now.table).byte_per_cycle is not None:
        times = AT_CLOCKS
    if roofed.all():
        times = share
    elif roofed.any():
        times += f"; where time is simulated or DRAM bytes are not known, {share}"
    if now.table is not None and now.table.voltages.are:
        times += f"; core voltages are {now.table.voltages.are}"
    return times


def _setting(now: Scenario, _: str, value: str, energy: Priced) -> _Changed:
    """What if the clocks were others: `setting=612/924`."""
    if now.table is None or now.costs.peaks == Peaks():
        raise UsageError(f"--what-if setting={value}: {now.costs.name} tells no peaks, so time there is not known.")
    there = at_setting(now, value)
    return there, f"at {there.costs.setting.label} MHz", _assumed(now)


def _costs(now: Scenario, _: str, value: str, energy: Priced) -> _Changed:
    """What if the costs were others: `costs=TABLE`."""
    if energy.metered is not None:
        raise UsageError(
            f"--what-if costs={value}: these costs are scaled to a meter, and no meter saw a run with others; ask with "
            "--no-to-meter, or without --energy."
        )
    table = energy.profile.on_this_gpu(load(value))
    same_gpu = now.table is not None and (table.path == now.table.path or set(table.devices) & set(now.table.devices))
    if not same_gpu and now.work.on_tensor_cores.any():
        raise UsageError(f"--what-if costs={value}: {_NO_TENSOR_PEAK}, so times on another GPU are not known.")
    priced = energy.profile.for_this_gpu(_nearest(table, now.costs.setting) if same_gpu else table.at(), table)
    work = now.work
    if priced.books != work.counts.books:
        counts = energy.profile.counts(priced.books)
        if work.counts.rows.part is None:
            counts = merged(counts, None)[0]
        # The same kernels in other books, in the order that they had, with their times.
        places = {key: place for place, key in enumerate(_keys(counts))}
        order = np.array([places[key] for key in _keys(work.counts)])
        work = replace(work, counts=replace(counts.chosen(order), rows=work.counts.rows))
    work = replace(work, held=np.ones(len(work.counts.rows)))
    if same_gpu:
        made_j = attribute(work.counts, priced).work_j
        work = replace(work, held=energy.limits.factors(made_j, priced.constant_power_w))
    changed = replace(now, work=work, costs=priced, table=table)
    says = f"with the costs of {table.name} at {priced.setting.label}"
    if not same_gpu:
        return (
            replace(changed, time_s=_kept_share(now, changed)),
            f"{says}, as if on that platform",
            SHARE.format(now.noun),
        )
    if priced.setting.label in (now.costs.setting.label, "fixed") or now.costs.setting.core_mhz is None:
        return changed, says, SAME_TIME
    return replace(changed, time_s=_times_at(now, changed)), says, _assumed(now)


def _nearest(table: CostTable, setting: Setting) -> Costs:
    """The costs at this setting, if the table knows it; else at its default."""
    try:
        return table.at(setting.label)
    except CostError:
        return table.at()


def _keys(counts: Counts) -> list[tuple[str | None, ...]]:
    rows = counts.rows
    parts = [None] * len(rows) if rows.part is None else rows.part
    return list(zip(rows.device, rows.kernel, parts, strict=True))


def _factor(part: str, value: str) -> float:
    """The factor of a what-if change: 0.8 of "0.8", "-20%" or "80%"."""
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


def _pi0(now: Scenario, key: str, value: str, _: Priced) -> _Changed:
    """What if constant power were a factor of what it is, or so many watts: `pi0=0.5`, `pi0=20W`."""
    watts = _WATTS.fullmatch(value)
    power = float(watts[1]) if watts else now.costs.constant_power_w * _factor(key, value)
    says = f"constant power of {power:.3g} W instead of {now.costs.constant_power_w:.3g} W"
    return replace(now, costs=replace(now.costs, constant_power_w=power)), says, SAME_TIME


def _cap(now: Scenario, key: str, value: str, _: Priced) -> _Changed:
    """What if power were capped: a kernel with power above pi0 over Delta_pi takes (E - pi0 T)/Delta_pi ([T] 4.2)."""
    usable, says = _usable(now, key, value)
    # A kernel without a time has no power to cap; energy that is not known slows nothing.
    slowed = np.where(np.isnan(now.time_s), np.nan, np.fmax(now.time_s, now.work_j / usable))
    return replace(now, time_s=slowed), says, f"a {now.noun} that would draw more is slowed until it does not"


def _usable(now: Scenario, key: str, value: str) -> tuple[float, str]:
    """Delta_pi in W for "10W" (in all), or for a factor of the most that the costs allow; and the cap in words."""
    constant = now.costs.constant_power_w
    watts = _WATTS.fullmatch(value)
    if watts:
        usable = float(watts[1]) - constant
        if usable <= 0:
            raise UsageError(f"--what-if cap={value}: {now.costs.name} draws {constant:.4g} W of constant power alone.")
        return usable, f"a power cap of {float(watts[1]):g} W"
    if now.work.on_tensor_cores.any():
        raise UsageError(f"--what-if cap={value}: {_NO_TENSOR_PEAK}; give the cap in watts, cap=100W.")
    known = machines(now.costs)
    if not known:
        raise UsageError(f"--what-if cap={value}: {now.costs.name} tells no peaks; give the cap in watts, cap=100W.")
    factor = _factor(key, value)
    if factor == 0:
        raise UsageError("--what-if cap=0: leaves nothing to compute with.")
    most = max(machine.peak_power_w - machine.constant_power_w for machine in known)
    says = f"a power cap of {constant + factor * most:.3g} W, {_in_words(factor)} than the {most:.3g} W"
    return factor * most, f"{says} above constant power that the peaks take"


def _time(now: Scenario, key: str, value: str, _: Priced) -> _Changed:
    """What if all times were multiplied by a factor: `time=0.8`."""
    factor = _factor(key, value)
    return replace(now, time_s=now.time_s * factor), f"{_in_words(factor)} time", "the counts stay as they are"


def _launched(now: Scenario, key: str, value: str, _: Priced) -> _Changed:
    """The scenario with other blocks or bank conflicts: kernels take T - min(T, M) (1 - M'/M), M modelled.

    Threads, and registers of each, stay; shared memory of a block goes with its threads. A kernel whose launch shape
    or conflicts are not known keeps its time.
    """
    machine = machine_of(now.costs)
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
    if not known.any():
        raise UsageError(f"--what-if {key}={value}: the logs tell the {needed} of no {now.noun}.")
    share_saved = np.where(known, 1 - after.total / np.where(known, before.total, 1.0), 0.0)
    of_kernels = slice(len(share_saved))
    modelled_s = seconds(before, machine, counts.rows.launches)
    time_s = now.time_s.copy()
    time_s[of_kernels] -= np.minimum(time_s[of_kernels], modelled_s) * share_saved
    there = replace(now, work=replace(now.work, counts=changed), time_s=time_s)
    return there, says, CYCLE_TIME.format(now.noun)


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
    assert counts.shape is not None
    factor = _factor(key, value)
    return counts.shape.replaced(
        {key: factor * counts.shape[key]}
    ), f"{_in_words(factor).replace('less', 'fewer')} bank conflicts"


# How a launch may change, and what is to be known of it.
_LAUNCHED: Mapping[str, tuple[Callable[[Counts, str, str], tuple[Columns, str]], str]] = {
    "block": (_in_blocks, "blocks"),
    "conflicts": (_conflicting, "conflicts"),
}


def _words(key: str) -> list[str]:
    """The words that a key of a what-if question stands for, a group or a family: "dram", "int", "data", "l2_read"."""
    key = _ALIASES.get(key.lower(), key.lower())
    return [name for name, count in COUNTS.items() if key in (name, count.group, count.family)]


def _count(now: Scenario, key: str, value: str, _: Priced) -> _Changed:
    """What if a class were free, at the same time; or more or less of it: `_slower` then says what time that takes."""
    words = [name for name in _words(key) if name in now.work.sums]
    label = _label_of_key(key, now.work.counts.nouns)
    if value.lower() == _FREE:
        free = {name: replace(charge, pj=0.0) for name, charge in now.costs.charges.items() if name in words}
        costs = replace(now.costs, charges={**now.costs.charges, **free})
        return replace(now, costs=costs), f"{label} for free", SAME_TIME
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


def _label_of_key(key: str, nouns: Nouns) -> str:
    name = _ALIASES.get(key.lower(), key.lower())
    if name in GROUPS:
        return nouns.group(name)
    if name in COUNTS:
        return nouns.label(name)
    return {DATA: "data movement"}.get(name, name)


_CHANGES: Mapping[str, Callable[[Scenario, str, str, Priced], _Changed]] = {
    "costs": _costs,
    "setting": _setting,
    _COUNTS: _count,
    **dict.fromkeys(_LAUNCHED, _launched),
    "pi0": _pi0,
    "time": _time,
    "race": race,
    "cap": _cap,
}


def clocks(energy: Priced) -> schema.Clocks | None:
    """Modelled energy and time at every pair of clocks with known voltages; None if the table knows one setting.

    None too where some time is not known: constant energy that is left out would pass for none. Times are those of
    `at_setting`. The lowest and the fastest draw no more than the board's power limit. How much rests on times shows
    the range of the lowest: the same prices with times that follow the core clock alone, or the memory clock alone.
    """
    table = energy.table
    if energy.costs is None or table is None or energy.costs.peaks == Peaks() or not energy.is_timed:
        return None

    start = _scenario(energy)
    cores = {setting.core_mhz for setting in table.settings if setting.core_mhz and setting.memory_mhz}
    memories = {setting.memory_mhz for setting in table.settings if setting.core_mhz and setting.memory_mhz}
    pairs = [(core, memory) for memory in sorted(memories, reverse=True) for core in sorted(cores)]
    settings = [setting for pair in pairs if (setting := _at_clocks(start, *pair)) is not None]

    limit_w = energy.limits.total_j / (time_of(energy) or math.nan)
    known = [
        (setting.energy_j, setting.time_s, setting)
        for setting in settings
        if setting.energy_j is not None and setting.energy_j <= limit_w * (setting.time_s or 0.0)
    ]
    if len(known) < 2:
        return None
    lowest = min(known, key=lambda row: row[0])[-1]
    fastest = min(known, key=lambda row: (row[1], row[0]))[-1]
    return schema.Clocks(
        modelled=True,
        assumes=_assumed(start),
        marks=names(totals(_scenario_at(start, lowest)).marks | Mark.ESTIMATED),
        voltages=table.voltages.are or None,
        settings=settings,
        lowest=structs.replace(lowest, energy_range_j=_range(start, lowest)),
        fastest=fastest,
    )


def _at_clocks(start: Scenario, core_mhz: float, memory_mhz: float) -> schema.AtClocks | None:
    try:
        scenario = at_setting(start, f"{core_mhz:g}/{memory_mhz:g}")
    except CostError:
        return None
    if not scenario.known_s.all():
        return None
    there, now = totals(scenario), start.costs.setting
    return schema.AtClocks(
        core_mhz=core_mhz,
        memory_mhz=memory_mhz,
        energy_j=there.parts["total"],
        time_s=there.time_s,
        this=(core_mhz, memory_mhz) == (now.core_mhz, now.memory_mhz),
    )


def _scenario_at(start: Scenario, clocks: schema.AtClocks) -> Scenario:
    return at_setting(start, f"{clocks.core_mhz:g}/{clocks.memory_mhz:g}")


def _range(start: Scenario, clocks: schema.AtClocks) -> schema.Range:
    """Lowest and highest J at a setting, over three models of its time, and over how far voltages may fall."""
    assert start.table is not None
    now, energies = start.costs.setting, [clocks.energy_j]
    for fall in {1.0, *start.table.intervals.core_v_fall}:
        by_fall = replace(start, table=start.table.with_fall(fall))
        there = _scenario_at(by_fall, clocks)
        ratios = [
            before / after
            for before, after in ((now.core_mhz, clocks.core_mhz), (now.memory_mhz, clocks.memory_mhz))
            if before
        ]
        times_s = [there.time_s, *(start.time_s * ratio for ratio in ratios)]
        energies += [totals(replace(there, time_s=time_s)).parts["total"] for time_s in times_s]
    known = [joules for joules in energies if joules is not None]
    return [min(known, default=None), max(known, default=None)]


def usual(energy: Priced) -> list[Answer]:
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

"""What if: another setting or table, less constant power, a power cap, a class for free, fewer bytes. All modelled.

A question is a list of changes, "setting=612/924,dram=-20%". Each is applied to the counts, the prices or the times of
a priced profile, which is then priced again. How times change is written with each `Change`.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from eprof.arrays import Floats, columns_of, known_or_zero, known_sum, scaled
from eprof.costs import Charge, Costs, CostTable, Peaks, Setting, load
from eprof.counts import Counts
from eprof.energy import attribute
from eprof.errors import CostError, EprofError, UsageError
from eprof.marks import Mark, names
from eprof.modelled import has_modelled_time
from eprof.rooflines import flops_of, machines, traffic_of
from eprof.timemodel import of_table
from eprof.vocabulary import COMPUTATION, CONSTANT, COUNTS, DATA, GROUPS

if TYPE_CHECKING:
    from eprof.profile import Energy

_SCALED = re.compile(r"([+-]?\d+(?:\.\d+)?)(%?)")
_WATTS = re.compile(r"(\d+(?:\.\d+)?)\s*[wW]")
_FREE = ("free", "0")
_FEWEST = 10  # replicas of a fit that percentiles can be taken of
_ALIASES = {"integer": "int", "special": "sfu"}
_HELP = (
    "write setting=CORE/MEMORY, costs=NAME, pi0=0.5 (or -50%, or 3W), cap=10W (or -50%), time=-10%, race, dram=-20%, "
    "integer=free"
)
SHARE = "each kernel keeps its share of the roofline's speed"
AT_CLOCKS = "DRAM traffic goes with the memory clock, the rest of the time with the core clock"
HALVES = "half of the time goes with each clock, a guess: no peak bandwidth is known"
SAME_TIME = "times stay as they are"
ROOF_TIME = "a kernel's time changes by as much as the roofline's"


@dataclass(frozen=True, eq=False)
class Work:
    """The counts of some kernels, with the sums that every price needs worked out once."""

    counts: Counts

    @cached_property
    def sums(self) -> dict[str, tuple[float, int]]:
        """What is known of each word over all kernels (NaN: nothing), and its marks."""
        values = self.counts.table.to_numpy(dtype=np.float64)
        known = ~np.isnan(values)
        whole = np.where(known.any(axis=0), np.where(known, values, 0.0).sum(axis=0), np.nan)
        marks = np.bitwise_or.reduce(self.counts.marks.to_numpy(dtype=np.int64), axis=0)
        pairs = zip(whole.tolist(), marks.tolist(), strict=True)
        return {str(word): pair for word, pair in zip(self.counts.table.columns, pairs, strict=True)}

    @cached_property
    def dram_byte(self) -> Floats:
        """Of each kernel; NaN where reads or writes are not known."""
        return traffic_of(self.counts.table)

    @cached_property
    def on_the_roof(self) -> npt.NDArray[np.bool_]:
        """The kernels that keep their share of the roofline at other clocks: simulated, or of unknown DRAM bytes."""
        return has_modelled_time(self.counts) | np.isnan(self.dram_byte)

    @cached_property
    def under_the_roof(self) -> tuple[Floats, Floats, Floats]:
        """FP32 flops, FP64 flops and DRAM bytes of each kernel; 0 where not known, as `modelled.roofline_s` has it."""
        table = self.counts.table
        known = pd.DataFrame(known_or_zero(table.to_numpy(dtype=np.float64)), columns=table.columns)
        return flops_of(known, "fp32"), flops_of(known, "fp64"), traffic_of(known)

    def roof_s(self, peaks: Peaks) -> Floats:
        """The roofline's time of each kernel; NaN where it is not known or nothing is under the roof."""
        single, double, moved = self.under_the_roof
        work = _seconds(single, peaks.sp_gflops) + _seconds(double, peaks.dp_gflops)
        roof = np.maximum(work, _seconds(moved, peaks.dram_gb_per_s))
        return np.where(roof > 0, roof, np.nan)


def _seconds(amount: Floats, peak_giga: float | None) -> Floats:
    if not peak_giga:
        return np.where(amount > 0, np.nan, 0.0)
    return amount / (peak_giga * 1e9)


@dataclass(frozen=True, eq=False)
class Scenario:
    """A priced profile that may be changed: the counts and times (s, NaN = not known) of its kernels, and its costs.

    time_marks: of all times together.
    """

    work: Work
    time_s: Floats
    time_marks: int
    costs: Costs
    table: CostTable | None

    def roof_s(self) -> Floats:
        """The roofline's time of each kernel at these costs."""
        return self.work.roof_s(self.costs.peaks)

    def timed(self) -> Counts:
        """The counts with these times."""
        return replace(self.work.counts, kernels=self.work.counts.kernels.assign(time_s=self.time_s))


@dataclass(frozen=True)
class Answer:
    """A modelled energy. says: the question in words; assumes: what was done about time; change: against the profile.

    Joules and seconds; None = not known. marks carry ESTIMATED: nothing here was measured.
    """

    question: str
    says: str
    assumes: str
    energy_j: Mapping[str, float | None]
    time_s: float | None
    before_j: float | None
    before_s: float | None
    marks: Mark

    @property
    def change_j(self) -> float | None:
        """What is added; below 0 is saved."""
        after = self.energy_j["total"]
        return None if after is None or self.before_j is None else after - self.before_j

    @property
    def change_share(self) -> float | None:
        """The change over the energy before."""
        return self.change_j / self.before_j if self.change_j is not None and self.before_j else None

    @property
    def time_share(self) -> float | None:
        """The change of time over the time before."""
        if self.time_s is None or not self.before_s:
            return None
        return self.time_s / self.before_s - 1

    def data(self) -> dict[str, Any]:
        """As plain data (docs/profile-json.md)."""
        return {
            "question": self.question,
            "says": self.says,
            "assumes": self.assumes,
            "modelled": True,
            "energy_j": dict(self.energy_j),
            "time_s": self.time_s,
            "change_j": self.change_j,
            "change_share": self.change_share,
            "time_share": self.time_share,
            "marks": names(self.marks),
        }


def ask(energy: "Energy", question: str) -> Answer:
    """Answer one question. Raises UsageError: not a question, or not of this profile; CostError: no such setting."""
    now = _scenario(energy)
    before = totals(now)
    said: list[str] = []
    assumed: list[str] = []
    for part in filter(None, (one.strip() for one in question.split(","))):
        now, says, assumes = _change(now, part, energy)
        said.append(says)
        assumed.append(assumes)
    if not said:
        raise UsageError(f"--what-if {question!r}: {_HELP}.")
    after = totals(now)
    return Answer(
        question,
        "; ".join(said),
        "; ".join(dict.fromkeys(piece for one in assumed for piece in one.split("; "))),
        after.parts,
        after.time_s,
        before.parts["total"],
        before.time_s,
        after.marks | Mark.ESTIMATED,
    )


@dataclass(frozen=True)
class Totals:
    """Energy by family and time of all kernels; None = not known."""

    parts: Mapping[str, float | None]
    time_s: float | None
    marks: Mark


def totals(scenario: Scenario) -> Totals:
    """Price a scenario as a whole, as `energy.attribute` does it, which is linear: the counts are added up first."""
    known: dict[str, list[float]] = {COMPUTATION: [], DATA: []}
    lost, marks = dict.fromkeys(known, False), 0
    for word, (value, word_marks) in scenario.work.sums.items():
        family, charge = COUNTS[word].family, scenario.costs.charges.get(word)
        if np.isnan(value):
            lost[family] |= bool(charge is not None and charge.pays and word_marks & Mark.MISSING)
        elif charge is None:
            lost[family] |= value != 0
        elif not charge.pays:
            known[family].append(0.0)
        else:
            known[family].append(value * charge.pj * 1e-12)
            marks |= word_marks | (int(charge.marks) if value else 0)
    parts = {family: _known(known[family], lost[family]) for family in known}
    time_s = _known(scenario.time_s[~np.isnan(scenario.time_s)].tolist(), False)
    constant = None if time_s is None else time_s * scenario.costs.constant_power_w
    untimed = bool(np.isnan(scenario.time_s).any())
    marks |= scenario.time_marks | int(scenario.costs.constant_marks)
    marks |= int(Mark.MISSING) if untimed or any(lost.values()) else 0
    everything = [*known[COMPUTATION], *known[DATA], *([] if constant is None else [constant])]
    return Totals({**parts, CONSTANT: constant, "total": _known(everything, False)}, time_s, Mark(marks))


def _known(values: Sequence[float], lost: bool) -> float | None:
    """The sum; None where nothing is known, or where all that is known is that some take 0 J."""
    whole = math.fsum(values)
    return whole if values and (whole or not lost) else None


def _scenario(energy: "Energy") -> Scenario:
    if energy.costs is None:
        raise UsageError("What-if prices a profile again, and no cost table is chosen: name one with --costs.")
    kernels = energy.counts.kernels
    marks = int(np.bitwise_or.reduce(kernels["time_marks"].to_numpy(dtype=np.int64)))
    time_s = kernels["time_s"].to_numpy(dtype=np.float64)
    return Scenario(Work(energy.counts), time_s, marks, energy.costs, energy.table)


_Changed = tuple[Scenario, str, str]


def _change(now: Scenario, part: str, energy: "Energy") -> _Changed:
    """Apply one change: the scenario after it, the change in words, and what it takes for granted about time."""
    key, equals, value = (one.strip() for one in part.partition("="))
    if key == "race" and not equals:
        return race(now)
    known: dict[str, Callable[[Scenario, str, str, Energy], _Changed]] = {
        "setting": _setting,
        "costs": _costs,
        "pi0": _pi0,
        "cap": _cap,
        "time": _time,
    }
    if not equals or (key not in known and not _words(key)):
        raise UsageError(f"--what-if {part}: {_HELP}.")
    return known.get(key, _count)(now, key, value, energy)


def race(now: Scenario) -> _Changed:
    """Racing to finish: every kernel takes the roofline's time; one without a roofline keeps its own."""
    says = "every kernel races to finish at the roofline's time"
    return replace(now, time_s=np.fmin(now.time_s, now.roof_s())), says, "every kernel can be as fast as the roofline"


def at_setting(now: Scenario, setting: str) -> Scenario:
    """Another DVFS setting of the same table, with the times that `timemodel` gives there, as `eprof tune` has them."""
    assert now.table is not None
    priced = now.table.at(setting)
    marks = now.costs.marks & Mark.ASSUMED
    other = replace(now, costs=replace(priced, charges=_with(priced.charges, marks), marks=priced.marks | marks))
    return replace(other, time_s=_times_at(now, other))


def _times_at(now: Scenario, other: Scenario) -> Floats:
    """Times in s at another setting. T' = T T_roof'/T_roof where T is the roofline's, of simulated kernels, and where
    DRAM bytes are not known; NaN without a roofline.
    """
    assert now.table is not None
    here, there, traffic = now.costs.setting, other.costs.setting, now.work.dram_byte
    roofed = now.work.on_the_roof
    kept = now.time_s * other.roof_s() / now.roof_s() if roofed.any() else now.time_s
    if here.core_mhz is None or here.memory_mhz is None or there.core_mhz is None or there.memory_mhz is None:
        return kept
    clocks = (here.core_mhz, here.memory_mhz), (there.core_mhz, there.memory_mhz)
    return np.where(roofed, kept, of_table(now.table).at(now.time_s, np.nan_to_num(traffic), *clocks))


def _assumed(now: Scenario) -> str:
    """What is taken for granted about times at other settings."""
    roofed, told = now.work.on_the_roof, now.table is not None and of_table(now.table).byte_per_cycle is not None
    clocked = AT_CLOCKS if told else HALVES
    if roofed.all():
        return SHARE
    return f"{clocked}; where time is simulated or DRAM bytes are not known, {SHARE}" if roofed.any() else clocked


def _with(charges: Mapping[str, Charge], marks: Mark) -> dict[str, Charge]:
    """Charges that stay assumed if the costs were, for another GPU than the table's."""
    if not marks:
        return dict(charges)
    return {word: replace(one, marks=one.marks | marks) if one.pays else one for word, one in charges.items()}


def _setting(now: Scenario, _: str, value: str, energy: "Energy") -> _Changed:
    if now.table is None or now.costs.peaks == Peaks():
        raise UsageError(f"--what-if setting={value}: {now.costs.name} tells no peaks, so time there is not known.")
    other = at_setting(now, value)
    return other, f"at {other.costs.setting.label} MHz", _assumed(now)


def _costs(now: Scenario, _: str, value: str, energy: "Energy") -> _Changed:
    table = load(value)
    priced = table.at()
    work = now.work
    if priced.books != work.counts.books:
        work = Work(_same_rows(energy.profile.counts(priced.books), work.counts))
    other = replace(now, work=work, costs=priced, table=table)
    says = f"with the costs of {table.name} at {priced.setting.label}"
    if now.table is not None and set(table.devices) & set(now.table.devices):
        return other, says, SAME_TIME
    return replace(other, time_s=now.time_s * other.roof_s() / now.roof_s()), f"{says}, as if on that platform", SHARE


def _same_rows(counts: Counts, like: Counts) -> Counts:
    """Counts in the order of others, with their times: the same kernels in other books."""
    places = {key: at for at, key in enumerate(_keys(counts))}
    order = [places[key] for key in _keys(like)]
    parts = {name: getattr(counts, name).iloc[order].reset_index(drop=True) for name in ("table", "marks")}
    return replace(counts, kernels=like.kernels, **parts)


def _keys(counts: Counts) -> list[tuple[str, str]]:
    return [(str(one.device), str(one.kernel)) for one in counts.kernels.itertuples()]


def _factor(part: str, value: str) -> float:
    """0.8 of "0.8", "-20%" or "80%"."""
    found = _SCALED.fullmatch(value)
    if not found:
        raise UsageError(f"--what-if {part}={value}: say a factor such as 0.8, or a change such as -20%.")
    number, signed = float(found[1]), found[1][0] in "+-"
    factor = (1 + number / 100 if signed else number / 100) if found[2] else number
    if signed and not found[2] or factor < 0:
        raise UsageError(f"--what-if {part}={value}: say a factor of 0 or more such as 0.8, or a change such as -20%.")
    return factor


def _by(factor: float) -> str:
    """A factor in words: "20 % less"."""
    if factor == 1:
        return "as much"
    return f"{abs(factor - 1) * 100:g} % {'less' if factor < 1 else 'more'}"


def _pi0(now: Scenario, key: str, value: str, _: "Energy") -> _Changed:
    watts = _WATTS.fullmatch(value)
    power = float(watts[1]) if watts else now.costs.constant_power_w * _factor(key, value)
    says = f"constant power of {power:.3g} W instead of {now.costs.constant_power_w:.3g} W"
    return replace(now, costs=replace(now.costs, constant_power_w=power)), says, SAME_TIME


def _cap(now: Scenario, key: str, value: str, _: "Energy") -> _Changed:
    """A power cap: a kernel whose power above pi0 would exceed Delta_pi takes (E - pi0 T)/Delta_pi ([T] 4.2)."""
    usable, says = _usable(now, key, value)
    above = known_sum(columns_of(attribute(now.timed(), now.costs).table, COUNTS))
    slowed = np.where(np.isnan(now.time_s), np.nan, np.fmax(now.time_s, above / usable))
    return replace(now, time_s=slowed), says, "a kernel that would draw more is slowed until it does not"


def _usable(now: Scenario, key: str, value: str) -> tuple[float, str]:
    """Delta_pi in W of "10W" (in all) or of a factor of the most that the costs allow for."""
    constant, watts = now.costs.constant_power_w, _WATTS.fullmatch(value)
    if watts:
        usable = float(watts[1]) - constant
        if usable <= 0:
            raise UsageError(f"--what-if cap={value}: {now.costs.name} draws {constant:.4g} W of constant power alone.")
        return usable, f"a power cap of {float(watts[1]):g} W"
    known = machines(now.costs)
    if not known:
        raise UsageError(f"--what-if cap={value}: {now.costs.name} tells no peaks; give the cap in watts, cap=100W.")
    factor, most = _factor(key, value), max(one.peak_power_w - one.constant_power_w for one in known)
    if factor == 0:
        raise UsageError("--what-if cap=0: leaves nothing to compute with.")
    says = f"a power cap of {constant + factor * most:.3g} W, {_by(factor)} than the {most:.3g} W"
    return factor * most, f"{says} above constant power that the peaks take"


def _time(now: Scenario, key: str, value: str, _: "Energy") -> _Changed:
    factor = _factor(key, value)
    return replace(now, time_s=now.time_s * factor), f"{_by(factor)} time", "the counts stay as they are"


def _words(key: str) -> list[str]:
    """The words of the vocabulary that a word, a group or a family stands for: "dram", "int", "data", "l2_read"."""
    key = _ALIASES.get(key.lower(), key.lower())
    return [name for name, one in COUNTS.items() if key in (name, one.group, one.family)]


def _count(now: Scenario, key: str, value: str, _: "Energy") -> _Changed:
    """A class for free, at the same time; or more or less of it, with the time that the roofline then allows."""
    words = [name for name in _words(key) if name in now.work.sums]
    label = _label(key)
    if value.lower() in _FREE:
        charges = {
            name: replace(charge, pj=0.0) if name in words else charge for name, charge in now.costs.charges.items()
        }
        return replace(now, costs=replace(now.costs, charges=charges)), f"{label} for free", SAME_TIME
    factor = _factor(key, value)
    table = scaled(now.work.counts.table, words, factor)
    other = replace(now, work=Work(replace(now.work.counts, table=table)))
    # Only what the roofline allows is gained: nothing tells that the rest of the time is spent on these counts.
    less = np.nan_to_num(now.roof_s()) - np.nan_to_num(other.roof_s())
    slower = replace(other, time_s=now.time_s - less)
    if COUNTS[words[0]].unit == "instruction":
        return slower, f"{_by(factor).replace('less', 'fewer')} instructions: {label}", ROOF_TIME
    says = f"{_by(factor).replace('less', 'fewer')} bytes: {label}"
    return slower, says, f"{ROOF_TIME}; the bytes are not moved at another level instead"


def _label(key: str) -> str:
    """What a key of a question stands for, in the words of the reports."""
    name = _ALIASES.get(key.lower(), key.lower())
    if name in GROUPS:
        return GROUPS[name]
    return COUNTS[name].label if name in COUNTS else {DATA: "data movement"}.get(name, name)


def clocks(energy: "Energy") -> dict[str, Any] | None:
    """Energy and time at every pair of clocks whose voltages the table knows; None if it knows one setting only.

    Times are those of `at_setting`. How much rests on them shows the range of the
    lowest: the same prices with times that follow the core clock alone, or the memory clock alone.
    """
    if energy.costs is None or energy.table is None or energy.costs.peaks == Peaks():
        return None
    listed = [one for one in energy.table.settings if one.core_mhz is not None and one.memory_mhz is not None]
    pairs = [(core, memory) for memory in _levels(listed, 1) for core in _levels(listed, 0)]
    start = _scenario(energy)
    found = [row for core, memory in pairs if (row := _clock(start, core, memory)) is not None]
    known = [row for row in found if row["energy_j"] is not None]
    if len(known) < 2:
        return None
    lowest = min(known, key=lambda row: float(row["energy_j"]))
    fastest = min(known, key=lambda row: (float(row["time_s"]), float(row["energy_j"])))
    return {
        "modelled": True,
        "assumes": _assumed(start),
        "marks": names(totals(start).marks | Mark.ESTIMATED),
        "settings": found,
        "lowest": {**lowest, "energy_range_j": _range(start, lowest)},
        "fastest": fastest,
    }


def _levels(settings: Sequence[Setting], domain: int) -> list[float]:
    """The clocks of one domain in MHz: core ascending, memory with the highest first."""
    clocks = {(one.core_mhz, one.memory_mhz)[domain] or 0.0 for one in settings}
    return sorted(clocks, reverse=bool(domain))


def _clock(start: Scenario, core: float, memory: float) -> dict[str, Any] | None:
    try:
        there = totals(at_setting(start, f"{core:g}/{memory:g}"))
    except CostError:
        return None
    if there.time_s is None:
        return None
    now = start.costs.setting
    return {
        "core_mhz": core,
        "memory_mhz": memory,
        "energy_j": there.parts["total"],
        "time_s": there.time_s,
        "this": (core, memory) == (now.core_mhz, now.memory_mhz),
    }


def _range(start: Scenario, row: Mapping[str, Any]) -> list[float | None]:
    """Lowest and highest energy at a setting over three readings of its time: the model's, core or memory clock."""
    there = at_setting(start, f"{row['core_mhz']:g}/{row['memory_mhz']:g}")
    now, then = start.costs.setting, there.costs.setting
    energies = [row["energy_j"]]
    for before, after in ((now.core_mhz, then.core_mhz), (now.memory_mhz, then.memory_mhz)):
        if before and after:
            energies.append(totals(replace(there, time_s=start.time_s * (before / after))).parts["total"])
    known = [one for one in energies if one is not None]
    return [min(known), max(known)] if known else [None, None]


def interval(energy: "Energy") -> dict[str, Any] | None:
    """How far the energies are known, as far as the fit of the prices goes: 90 % of what its replicas make of them.

    None for a table that was not fitted by `eprof fit`. Neither the error of the model nor that of the counts is in it.
    A part of which something is missing is a lower bound and has no interval: its upper end would be none.
    """
    from eprof.profile import family_marks

    if energy.costs is None or energy.table is None or energy.split is None:
        return None
    lower = (family_marks(energy.split) & int(Mark.MISSING)).any()
    setting = energy.costs.setting
    replicas = energy.table.replicas(setting.label if setting.core_mhz and setting.memory_mhz else None)
    if len(replicas) < _FEWEST:
        return None
    start = _scenario(energy)
    made = [totals(replace(start, costs=one)).parts for one in replicas]
    found: dict[str, Any] = {"share": 0.9, "replicas": len(replicas)}
    for part in (COMPUTATION, DATA, CONSTANT, "total"):
        known = [joules for one in made if (joules := one[part]) is not None and not lower[part]]
        found[part] = [float(one) for one in np.percentile(known, [5, 95])] if known else None
    return found


def usual(energy: "Energy") -> list[Answer]:
    """The questions that a report asks by itself: those that can be asked of this profile."""
    found = []
    for question in ("race", "pi0=-50%", "dram=-20%", f"{_largest_class(energy)}=free", "cap=-50%"):
        try:
            found.append(ask(energy, question))
        except EprofError:
            continue
    return [one for one in found if one.change_j]


def _largest_class(energy: "Energy") -> str:
    """The group of instructions that takes most energy."""
    assert energy.split is not None
    sums: dict[str, float] = {}
    for name, one in COUNTS.items():
        if one.family == COMPUTATION and name in energy.split.table:
            sums[one.group] = sums.get(one.group, 0.0) + float(energy.split.table[name].sum())
    return max(sums, key=lambda group: sums[group], default="int")

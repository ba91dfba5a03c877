"""`View`: a profile's document as sentences and tables ask for it: amounts with marks, groups, ranking, names."""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET, Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from eprof.base.gpus import unnumbered
from eprof.base.labels import DEVICE_WIDTH, NO_LINE, WIDTH, labels
from eprof.base.text import capital, pattern, phrase, uncapital, when
from eprof.base.vocabulary import (
    COMPUTATION,
    CONSTANT,
    COUNTS,
    DATA,
    FLOAT_PARTS,
    GROUPS,
    ISSUED,
    OF_AMD,
    TENSOR_FLOPS,
    Count,
    nouns_of,
    stand_ins,
)
from eprof.counts.times import ONE_SECOND
from eprof.logs.log import IN_KERNEL, OF_RADEON
from eprof.profile import schema
from eprof.show.amounts import ASSUMED, ESTIMATED, MISSING, SIMULATED, Amount, bits, ratio, total
from eprof.show.intervals import Ends, is_certain, known
from eprof.show.numbers import percent

Entry = schema.Profile | schema.Kernel | schema.Group
Priced = Entry | schema.Operator
FLOPS = {name: count.flops for name, count in COUNTS.items() if count.flops}
FAMILY_OF = {count.group: count.family for count in COUNTS.values()} | {CONSTANT: CONSTANT}
DRAM = ("dram_read", "dram_write", "dram")
PAST_L2 = ("l3_read", "l3_write", "l3")
_PROSE = {
    "constant": "constant power",
    "tensor": "tensor cores",
    "int": "integer instructions",
    "sfu": "special functions",
    "other": "other instructions",
    "shared": "shared memory",
    "system": "host memory",
    "requested": "requested bytes",
}
_ALIKE = 1.1  # without intervals, one part is surely the larger from here on
_OF_AMD = pattern(r"\b(AMD|Radeon|Instinct)\b")
# Graphics boards, by their name, or a kernel's: gfx10 to gfx12, and Tensile's ISA1201.
_OF_RADEON = pattern(r"Radeon(?! Instinct)|_ISA1[0-9]{3}_|gfx1[0-9]{2}[0-9a-f]")
_OF_TENSILE = "Cijk_"  # products of AMD's libraries, which no other GPU runs
OF_CYCLES = "estimate of cycles"  # in the words on where a time is from: a model of them shares it out
_PYTHON_LINE = pattern(r"\.pyw?:[0-9]+$")
_OF_C = pattern(
    r"_*(int_|libc_|GI_+)?(malloc|calloc|realloc|free|memalign|mem(cpy|move|set|cmp)|str(n?len|n?cmp|n?cpy|chr))"
    r"(_consolidate|_(avx|sse|evex)\w*)?|sysmalloc|unlink_chunk.*|operator (new|delete)\b.*"
)
_INTERPRETER = "Python"  # its name in `counters/callgrind/libraries.toml`
_ONCE_EACH = {"retired": "instructions", "core_active": "core cycles"}
# Of the group of other instructions, where no class of them but these is priced.
_OTHER = {
    ("warp_issue",): "instruction issue",
    ("sm_active_cycle",): "running multiprocessors",
    ("warp_issue", "sm_active_cycle"): "running multiprocessors",
}
_BUSY = 0.9  # cores: of a machine that mostly sleeps, fewer cycles are not less time
# Cycles that callgrind takes a line to cost that L1 lacks, and one more that the last level lacks; bytes of a line.
_NEAR_CYCLES, FAR_CYCLES, LINE_B = 10.0, 100.0, 64.0
_NEARLY_ALL = 0.95  # of a library's function, that one line calls
_COUNTING = ESTIMATED | SIMULATED | ASSUMED


def _more_than_nothing(amount: Amount) -> Amount:
    """The amount; with value None where it would be "at least 0", which says nothing."""
    if amount.lower and not amount.value:
        return Amount(None, amount.marks)
    return amount


def _shown_marks(amount: Amount) -> int:
    """The marks that are shown beside an amount: no MISSING where the value is not known, for a dash stands there."""
    return amount.marks & ~(MISSING * (amount.value is None))


def energy_of(entry: Priced, part: str) -> Amount:
    """One energy of a kernel, group or profile, J. part: "computation", "data", "constant" or "total"."""
    return Amount(getattr(entry.energy_j, part), bits(getattr(entry.energy_marks, part)))


def above_of(entry: Entry) -> Amount:
    """All energy of a kernel, group or profile above constant power; a part without any priced count adds nothing."""
    parts = [energy_of(entry, part) for part in (COMPUTATION, DATA)]
    return total(part for part in parts if part.value is not None or part.marks & MISSING)


def time_of(entry: Priced) -> Amount:
    """The time of a kernel, group or profile, s."""
    return Amount(entry.time_s, bits(entry.time_marks))


def by_time_of(kernel: schema.Kernel) -> Amount:
    """The metered energy of a kernel if it were split by time alone, J."""
    return Amount(None if kernel.by_time_j is UNSET else kernel.by_time_j)


def callees_of(kernel: schema.Kernel, is_above: bool = False) -> Amount:
    """The energy of a kernel with all that it calls, J, an estimate; not known for GPUs. is_above: without constant."""
    joules = kernel.inclusive_above_j if is_above else kernel.inclusive_j
    if joules is UNSET or kernel.inclusive_marks is UNSET:
        return Amount(None)
    return Amount(joules, bits(kernel.inclusive_marks))


def power_of(entry: Entry) -> Amount:
    """The mean power of an entry, W: all energy over the time."""
    return Amount(entry.power_w, energy_of(entry, "total").marks | time_of(entry).marks)


def is_interpreted(kernel: schema.Kernel) -> bool:
    """Whether a kernel of a CPU is the interpreter's own work in a Python program."""
    return is_called_by_python(kernel) and kernel.name.rpartition(", ")[2] == _INTERPRETER


def is_of_library(kernel: schema.Kernel) -> bool:
    """Whether a kernel of a CPU is what a program has a known library do, which comes compiled.

    Of Python such a kernel is called "a.dot, OpenBLAS". The interpreter's own work is the program's, and a library that
    goes by the name of its file may be the user's.
    """
    library = kernel.name.rpartition(", ")[2]
    of_python = is_called_by_python(kernel) and library != _INTERPRETER and ".so" not in library
    return of_python or bool(kernel.callers)


def is_of_c(kernel: schema.Kernel) -> bool:
    """Whether a function of a CPU is the C library's, by its name: who calls it does not compile it."""
    return _OF_C.fullmatch(kernel.name) is not None


def is_called_by_python(kernel: schema.Kernel) -> bool:
    """Whether a kernel of a CPU ran beneath a line of Python."""
    places = [line.place for line in kernel.lines or ()]
    return kernel.name.startswith(NO_LINE) or any(map(_PYTHON_LINE.search, places))


def contenders(causes: schema.Causes) -> list[schema.Cause]:
    """The causes of energy that may be the largest: those whose high end reaches the highest low end of all."""
    ends = [part.interval or [part.share, _ALIKE * part.share] for part in causes.parts]
    least = max(low or 0.0 for low, _ in ends)
    return [part for part, (_, high) in zip(causes.parts, ends, strict=True) if (high or 1.0) >= least]


class Word(Struct, frozen=True):
    """One count of the whole program: its value, its energy, and how it was derived."""

    count: Count
    value: Amount
    energy: Amount
    how: list[schema.Derivation]


class Column(NamedTuple):
    """One count of every kernel: instructions or bytes, and their joules; NaN: not known."""

    counts: list[schema.Count | None]
    values: NDArray[np.float64]
    joules: NDArray[np.float64]


class View:
    """A report's document with what sections need to know of it; an entry is the whole profile, a kernel or a group."""

    def __init__(self, document: schema.Profile | Mapping[str, Any], *, is_partial: bool = False) -> None:
        """is_partial: energies are of what was counted, and intervals tell the rest (`counted_part`)."""
        self.document = schema.typed(document, schema.Profile)
        self.is_partial = is_partial
        self.kernels = self.document.kernels
        self.costs = self.document.costs
        self.several_devices = len(self.document.devices) > 1
        self.nouns = nouns_of(self.document.device.processor)
        if self.is_of_amd and not self.nouns.is_of_cpu:
            self.nouns = OF_AMD
        self._columns: dict[str, Column] = {}
        self._groups: dict[int, dict[str, Amount]] = {}

    def energy(self, part: str) -> Amount:
        """One energy of the whole profile, J. part: "computation", "data", "constant" or "total"."""
        return energy_of(self.document, part)

    @cached_property
    def above(self) -> Amount:
        """All energy of the profile above constant power, J."""
        return above_of(self.document)

    @cached_property
    def whole(self) -> float:
        """The amount that shares are of, in `unit` (J, s...): the sum of kernels and what passes while none runs."""
        return self.with_rest(self.ranked(self.document)).or_zero

    def with_rest(self, kernels: Amount) -> Amount:
        """An amount of all kernels with the energy, or time, added that passes while none runs."""
        beside = {"total": self.document.idle_j, "time": self.document.still_s}.get(self.measure, 0.0)
        if self.to_meter is not None:
            beside = self.to_meter.idle_j
        return Amount((kernels.or_zero + beside) or None, kernels.marks)

    @property
    def comes_again(self) -> float:
        """`whole` without what a trace tells to pass before kernels' first launches, which is paid once a run."""
        gaps = self.document.gaps or None
        if gaps is None or gaps.calls or not self.document.still_s:
            return self.whole
        beside = self.whole - self.ranked(self.document).or_zero
        return self.whole - beside * gaps.first_s / self.document.still_s

    @property
    def is_of_amd(self) -> bool:
        """Whether the profile is of a GPU of AMD."""
        is_counted = any(log.format.startswith("rocprof") for log in self.document.inputs)
        is_named = _OF_AMD.search(self.document.device.name or "") is not None
        return is_counted or is_named or any(kernel.name.startswith(_OF_TENSILE) for kernel in self.kernels)

    @property
    def is_of_radeon(self) -> bool:
        """Whether the profile's GPU is a Radeon, which rocprof-compute does not profile (but those of some APUs)."""
        names = (self.document.device.name or "", *(kernel.name for kernel in self.kernels))
        return any(map(_OF_RADEON.search, names)) or any(OF_RADEON in note for note in self.document.warnings)

    @property
    def has_prices_of_another_cpu(self) -> bool:
        """Whether the profile is of a CPU, and priced by the table of another."""
        return self.nouns.is_of_cpu and self.costs is not None and self.costs.gpu_match == "other"

    @property
    def cores(self) -> str:
        """What the GPU's cores are called: "multiprocessors", or "compute units" of AMD."""
        return when(self.is_of_amd, "compute units") or "multiprocessors"

    @property
    def is_modelled(self) -> bool:
        """Whether times of the profile, or some of them, come from a model of a simulated device."""
        return self.document.modelled_time is not UNSET

    @property
    def is_above(self) -> bool:
        """Whether the report leaves constant power out: how much that adds is modelled, assumed, or not known.

        Not known: of a CPU whose instructions were counted, without a time. Assumed: what a few cores take of a socket.
        Where nothing else is known, constant power is all there is to show.
        """
        executed = self.document.counts.get("retired")
        is_open = self.nouns.is_of_cpu and executed and executed.energy_j and self.document.energy_j.constant is None
        is_assumed = any(costs.cores is not UNSET for costs in self.document.prices)
        return bool(self.is_modelled or is_open or is_assumed and above_of(self.document).value is not None)

    @cached_property
    def time(self) -> Amount:
        """The time of all kernels of the profile, s."""
        if self.document.time_s is None:
            return Amount(None)
        return time_of(self.document)

    @property
    def at_once(self) -> float:
        """How many kernels ran at a time while any did, on average; they share constant power."""
        return self.document.gaps.at_once if self.document.gaps else 1.0

    @property
    def is_of_a_second(self) -> bool:
        """Whether no kernel's time is known, and all numbers are rates: of one second."""
        return self.document.time_from == ONE_SECOND

    @cached_property
    def speed_shares(self) -> list[float]:
        """The share of the roofline's speed that each kernel reaches, (n_kernels,); 0 where it is not known."""
        if not self.document.limits:
            return [0.0] * len(self.kernels)
        return [limit.speed_share or 0.0 for limit in self.document.limits.kernels]

    def each_s(self, entry: Entry) -> float:
        """The mean time of an entry's launch, s; 0 where it is not known."""
        return 0.0 if self.is_of_a_second else time_of(entry).or_zero / entry.launches

    @property
    def saved_unit(self) -> str:
        """The unit of what changes save: J, or s where no joules are known; "" where neither times nor work are."""
        is_of_nothing = self.is_of_a_second and self.above.value is None
        return when(self.measure in ("total", "time") and not is_of_nothing, self.unit)

    @cached_property
    def everything(self) -> float:
        """What all kernels take, of which changes save a part: counted joules; else seconds; else their launches."""
        if self.has_energy:
            return self.counted_energy(self.document).or_zero
        return (
            self.time.or_zero if self.time.value is not None else float(sum(kernel.launches for kernel in self.kernels))
        )

    def timed(self, kernel: schema.Kernel) -> float:
        """The part of a kernel's energy that goes with its time: of constant power and of running multiprocessors.

        Without any joules its seconds, and without these its launches, as if all kernels' took as long.
        """
        if self.has_energy:
            running = kernel.counts.get("sm_active_cycle")
            return (kernel.energy_j.constant or 0.0) + ((running and running.energy_j) or 0.0)
        return float(kernel.launches) if self.time.value is None else time_of(kernel).or_zero

    def label(self, kernel: schema.Kernel) -> str:
        """The short name of a kernel, unlike that of any other in the document."""
        return self._labels[kernel.name]

    def called_by(self, kernel: schema.Kernel) -> str:
        """Which function calls a library's function most: "called by main at a.c:10"; empty for other kernels."""
        if not kernel.callers:
            return ""
        caller = kernel.callers[0]
        share = when(caller.share < _NEARLY_ALL, f"{percent(caller.share)} ")
        return f"{share}called by {self.site(caller)}"

    def site(self, caller: schema.Caller) -> str:
        """A calling function, and its line that calls most: "main at a.c:10"."""
        return self._labels.get(caller.name, caller.name) + phrase(" at {}", caller.place)

    def where(self, kernel: schema.Kernel) -> str:
        """The device of a kernel, without its number if no other has its name; "" where there is one device only."""
        if not self.several_devices or kernel.device is None:
            return ""
        alike = [device for device in self.document.devices if device.name == unnumbered(kernel.device)]
        return unnumbered(kernel.device) if len(alike) == 1 else kernel.device

    @cached_property
    def _labels(self) -> dict[str, str]:
        names = [kernel.name for kernel in self.kernels]
        return dict(zip(names, labels(names, WIDTH - DEVICE_WIDTH * self.several_devices), strict=True))

    @cached_property
    def has_energy(self) -> bool:
        """Whether any energy of the profile is known."""
        return self.energy("total").value is not None

    @cached_property
    def to_meter(self) -> schema.ToMeter | None:
        """How the profile's costs were scaled to a meter; None where they are as the table has them."""
        return self.document.to_meter or None

    @property
    def total_is(self) -> str:
        """What the profile's total is: "predicted", "metered", or "estimated" where the meter saw idle time too."""
        if self.to_meter is None:
            return "predicted"
        if self.to_meter.idle_j:
            return "estimated"
        return "metered"

    @property
    def is_estimated(self) -> bool:
        """Whether the profile's prices are those of data sheets, and no meter gave the total."""
        return self.to_meter is None and {costs.basis for costs in self.document.prices} == {"estimated"}

    @cached_property
    def groups(self) -> dict[str, Amount]:
        """Energy of each group of counts that has any or lacks some, in stacking order, constant power first.

        Without constant power where time is a model: how much it adds is a choice, which a bar would show as found.
        """
        return self.groups_of(self.document)

    def at_the_roofline(self, whole: float, of_kernel: Callable[[schema.Kernel], float | None]) -> float:
        """`whole`, a sum of `of_kernel` over kernels, as it would be if modelled times were at the roofline's speed."""
        modelled = self.document.modelled_time
        if not modelled:
            return whole
        of_model = sum(of_kernel(kernel) or 0.0 for kernel in self.kernels if bits(kernel.time_marks) & SIMULATED)
        return whole - of_model * (1 - modelled.efficiency)

    def groups_of(self, entry: Entry) -> dict[str, Amount]:
        """Energy of each group of counts of an entry, as `groups` has them of the profile."""
        groups = self.all_groups_of(entry)
        return {name: amount for name, amount in groups.items() if name != CONSTANT or not self.is_above}

    def all_groups_of(self, entry: Entry) -> dict[str, Amount]:
        """Energy of each group of counts of an entry that has any or lacks some, also modelled constant power."""
        # By identity: an entry has no hash, and it lives as long as this view does.
        if id(entry) in self._groups:
            return self._groups[id(entry)]
        members: dict[str, list[Amount]] = {group: [] for group in GROUPS}
        if self.costs:
            members["constant"].append(energy_of(entry, "constant"))
            for name, count in entry.counts.items():
                if name in self.charges and not self.charges[name].pays:
                    continue  # what was not counted of it costs nothing either
                members[COUNTS[name].group].append(self.energy_of_count(count))
        sums = {group: _more_than_nothing(total(amounts)) for group, amounts in members.items() if amounts}
        known_or_lacking = {group: amount for group, amount in sums.items() if amount.value or amount.marks & MISSING}
        self._groups[id(entry)] = known_or_lacking
        return known_or_lacking

    def joules_of(self, group: str) -> float:
        """The known energy of a group of counts in the whole program, in J; 0 if none is known."""
        return self.groups.get(group, Amount(None)).or_zero

    def joules_by_kernel(self, group: str) -> list[float]:
        """The known energy of a group of counts in each kernel, in J; 0 where none is known."""
        if group == CONSTANT:
            return [kernel.energy_j.constant or 0.0 for kernel in self.kernels]
        joules = np.zeros(len(self.kernels))
        for name, word in self.words.items():
            if word.count.group == group:
                joules += np.nan_to_num(self.column(name).joules)
        return joules.tolist()

    def energy_of_count(self, count: schema.Count) -> Amount:
        """The energy of one count of the profile. The marks of a price do not matter where there is nothing to pay.

        A share of a metered total is no lower bound: what the count lacks, the meter saw.
        """
        marks = bits(count.marks)
        if count.energy_j is None:
            if count.value == 0:
                return Amount(0.0)
            return Amount(None, marks)
        if self.to_meter is not None and marks & MISSING:
            marks = marks & ~MISSING | ESTIMATED
        if count.energy_j or marks & MISSING:
            return Amount(count.energy_j, marks)
        return Amount(count.energy_j)

    def interval(self, part: str) -> Ends:
        """(low, high) of an energy of the whole: a family's, the total's, a group's of counts; None: there is none."""
        intervals = self.document.interval_j
        if not intervals:
            return None
        ends: Ends = getattr(intervals, part, None) or intervals.groups.get(part)
        return ends

    def causes_of(self, entry: Entry) -> schema.Causes | None:
        """The causes of an entry's energy, largest first; None where no count has a price.

        A document that does not say it (an older one, or a kernel far down) has each group of counts as a part.
        """
        if entry.causes:
            return entry.causes
        joules = {group: amount.value for group, amount in self.groups_of(entry).items() if amount.value}
        if above_of(entry).value is None or not joules:
            return None
        whole = self.counted_energy(entry).value or sum(joules.values())
        parts = []
        for group in sorted(joules, key=lambda group: -joules[group]):
            pair = known(self.interval(group))
            share = joules[group] / whole
            ends: schema.Range | None = None
            if pair is not None:
                # Of a kernel it is as wide as of the whole, against its value.
                scale = share / (self.joules_of(group) or 1.0)
                ends = [scale * pair[0], min(scale * pair[1], 1.0)]
            parts.append(schema.Cause([group], share, ends))
        made = schema.Causes("sure", parts)
        if len(contenders(made)) > 1:
            return replace(made, largest="open")
        return made

    def is_certain(self, group: str) -> bool:
        """Whether the energy of a group of counts is certain enough to name."""
        return is_certain(self.groups[group].value, self.interval(group))

    def in_prose(self, group: str) -> str:
        """The name of a group of counts within a sentence; that of its only priced counts, if there are no others."""
        own = self._own_name(group) or self.nouns.labels.get(group, "").lower()
        return own or _PROSE.get(group) or GROUPS.get(group, group)

    def group_label(self, group: str) -> str:
        """The name of a group of counts in a legend; that of its only priced counts, if there are no others."""
        return capital(self._own_name(group)) or self.nouns.group(group)

    @cached_property
    def caches_are_in_cycles(self) -> bool:
        """Whether the price of a CPU's cycles holds what its caches take, which have none of their own."""
        cycles = self.charges.get("core_active")
        own = [charge.pays for word, charge in self.charges.items() if COUNTS[word].group in ("l1", "l2", "l3")]
        return cycles is not None and cycles.pays and not any(own)

    def _own_name(self, group: str) -> str:
        """The joint name of a group's priced counts, "instruction issue", if all of them are of a known set; or ""."""
        priced = tuple(name for name, word in self.words.items() if word.count.group == group and word.energy.value)
        if priced and set(priced) <= _ONCE_EACH.keys():
            made_up = {name for name in priced if self.words[name].value.marks & ASSUMED}
            return " and ".join(when(name in made_up, "assumed ") + _ONCE_EACH[name] for name in priced)
        named = self.nouns.labels.get("sm_active_cycle", "").lower()
        return "sm_active_cycle" in priced and priced in _OTHER and named or _OTHER.get(priced, "")

    @cached_property
    def words(self) -> dict[str, Word]:
        """Name of a count -> its `Word`, for every count of the profile, in the order of the vocabulary."""
        words = {}
        for name, vocabulary in COUNTS.items():
            count = self.document.counts.get(name)
            if count is None:
                continue
            # Without the marks of its price, MISSING only if a kernel lacks it.
            is_lower = bool(count.lower_bound) or bool(np.isnan(self.column(name).values).any())
            value = Amount(count.value, bits(count.marks) & self.masks[name] | MISSING * is_lower)
            named = replace(vocabulary, unit=count.unit, label=self.nouns.label(name))
            words[name] = Word(named, value, self.energy_of_count(count), count.how)
        return words

    @cached_property
    def charges(self) -> dict[str, schema.Charge]:
        """Name of a count -> its price: that of all GPUs, or one of NaN pJ where GPUs differ."""
        prices = self.document.prices
        charges: dict[str, schema.Charge] = {}
        for name in dict.fromkeys(name for costs in prices for name in costs.charges):
            own = [costs.charges[name] for costs in prices if name in costs.charges]
            if len(own) == len(prices) and len({(charge.pays, charge.pj) for charge in own}) == 1:
                charges[name] = own[0]
            elif any(charge.pays for charge in own):
                marks = list(dict.fromkeys(mark for charge in own for mark in charge.marks))
                charges[name] = schema.Charge(True, math.nan, None, None, marks)
        return charges

    @cached_property
    def masks(self) -> dict[str, int]:
        """Count -> the mark bits that its value can have: not those that only its price has, such as ASSUMED."""
        masks = {}
        for name, count in self.document.counts.items():
            of_price = bits(self.charges[name].marks) if name in self.charges else 0
            of_count = bits([mark for derivation in count.how for mark in derivation.marks])
            masks[name] = _COUNTING & ~(of_price & ~of_count)
        return masks

    def column(self, name: str) -> Column:
        """One count of every kernel of the profile."""
        if name not in self._columns:
            counts = [kernel.counts.get(name) for kernel in self.kernels]
            values = np.array([count and count.value for count in counts], dtype=np.float64)
            joules = np.array([count and count.energy_j for count in counts], dtype=np.float64)
            self._columns[name] = Column(counts, values, joules)
        return self._columns[name]

    @cached_property
    def exclusive(self) -> dict[str, list[str]]:
        """Unit -> the known counts that add up to all instructions ("instruction") or all bytes ("byte"), none twice.

        No requested bytes beside served ones, no warp instructions among threads'. A class total and its parts exclude
        each other in every kernel.
        """
        known = [word.count for word in self.words.values() if word.value.value is not None]
        words = {}
        for unit in ("instruction", "byte"):
            names = [count.name for count in known if count.unit == unit]
            threads = [name for name in names if name not in ISSUED]
            served = [name for name in threads if COUNTS[name].group != "requested"]
            words[unit] = served or threads or names
        return words

    def instructions(self, entry: Entry) -> Amount:
        """All thread-level instructions of an entry: those retired if counted, else the sum of the classes."""
        retired = self.amount(entry, "retired")
        if retired.value is None:
            return self.summed(entry, self.exclusive["instruction"])
        return retired

    def summed(self, entry: Entry, names: Iterable[str]) -> Amount:
        """The sum of some counts of an entry; one that is not there makes it a lower bound.

        Unless another stands in for it: a total for its parts, or they for it.
        """
        counts = entry.counts
        needed = [name for name in names if name in counts or not any(word in counts for word in stand_ins(name))]
        return _more_than_nothing(total(self.amount(entry, name) for name in needed))

    def amount(self, entry: Entry, name: str) -> Amount:
        """One count of an entry, with the marks of the counting, without those of its price."""
        if entry is self.document:
            return self.words[name].value if name in self.words else Amount(None)
        count = entry.counts.get(name)
        if count is None:
            return Amount(None, MISSING)
        is_lower = count.value is None or bool(count.lower_bound)
        return Amount(count.value, bits(count.marks) & self.masks[name] | MISSING * is_lower)

    def times_from_l1(self, entry: Entry) -> float:
        """The bytes that L1 moves for each one from or to DRAM; 0 where not both are known."""
        l1 = self.summed(entry, [word for word in self.words if COUNTS[word].group == "l1"])
        return l1.or_zero / (self.summed(entry, DRAM).value or math.inf)

    @cached_property
    def in_kernel(self) -> str:
        """The share of a CPU's time that the operating system's kernel ran, where that is much; else empty.

        "60 % of the processor time", with the number of page faults where it is told.
        """
        told = self._told_of_kernel
        if told is None:
            return ""
        return f"{uncapital(told[1])} of the processor time{phrase(', {}', told[3])}"

    @cached_property
    def in_program(self) -> float:
        """The share of a CPU's time, shared out by simulated cycles, without the operating system's; else 1."""
        told = self._told_of_kernel
        if told is None or OF_CYCLES not in (self.document.time_from or ""):
            return 1.0
        return 1 - int(told[2]) / 100

    @cached_property
    def _told_of_kernel(self) -> re.Match[str] | None:
        return next(filter(None, map(IN_KERNEL.search, self.document.warnings)), None)

    def cycles_j(self, kernel: schema.Kernel) -> float:
        """The joules that go with a function's core cycles, `passing_j` as well; 0 where these were not counted.

        Without the part of the operating system's kernel, whose time stands in that of functions.
        """
        own_j = getattr(kernel.counts.get("core_active"), "energy_j", None) or 0.0
        return self.in_program * (own_j + self.passing_j(kernel) * bool(own_j))

    def passing_j(self, kernel: schema.Kernel) -> float:
        """The constant power that passes while a function keeps a core busy, in J, where the total holds it; else 0."""
        is_busy = (self.document.busy_cores or 0.0) >= _BUSY and not self.is_above
        return (kernel.energy_j.constant or 0.0) * is_busy

    def waits(self, counts: Mapping[str, schema.Count]) -> float:
        """The share of cycles that a function with these counts waits for caches and DRAM, at most; 0 if not simulated.

        By callgrind's estimate, of one cycle an instruction beside `waited_cycles`.
        """
        waited = self.waited_cycles(counts)
        executed = getattr(counts.get("retired"), "value", None) or 0.0
        return waited / (executed + waited or math.inf)

    def waited_cycles(self, counts: Mapping[str, schema.Count], times: tuple[float, float] = (1.0, 1.0)) -> float:
        """Callgrind's estimate of cycles that these counts wait: 10 a line that L1 lacks, 100 more if the last does.

        times: factors on the 10 and the 100. Of a simulated GPU there is none: other warps run meanwhile.
        """
        near, far = (getattr(counts.get(word), "value", None) or 0.0 for word in ("l3_read", "dram_read"))
        is_simulated = self.nouns.is_of_cpu and self.amount(self.document, "dram_read").marks & SIMULATED
        cycles = times[0] * _NEAR_CYCLES * (near + far) + times[1] * FAR_CYCLES * far
        return cycles / LINE_B * bool(is_simulated)

    def flops(self, entry: Entry) -> Amount:
        """Flops of an entry, two for a multiply-add, with those of tensor cores; None unless all kinds are known."""
        if entry is self.document:
            return self._all_flops
        flops_of = dict(FLOPS)
        for whole, parts in FLOAT_PARTS.items():
            count = entry.counts.get(whole)
            if count is not None and count.unit == "flop" and count.value is not None:
                # A total that was counted in flops stands for its parts.
                flops_of = {name: flops for name, flops in flops_of.items() if name not in parts} | {whole: 1}
        work, marks = 0.0, 0
        for name, flops in flops_of.items():
            count = entry.counts.get(name)
            if count is None or count.value is None:
                return Amount(None, MISSING)
            if count.value:
                work += count.value * flops
                marks |= bits(count.marks) & self.masks[name]
        # An instruction of tensor cores may do any number of flops.
        tensor_instructions = entry.counts.get("tensor")
        if tensor_instructions is not None and tensor_instructions.value:
            return Amount(None, MISSING)
        tensor = total(self.amount(entry, name) for name in TENSOR_FLOPS if name in entry.counts)
        if tensor.marks & MISSING:
            return Amount(None, MISSING)
        return Amount(work + tensor.or_zero, marks | tensor.marks)

    @cached_property
    def _all_flops(self) -> Amount:
        flops = total(self.flops(kernel) for kernel in self.kernels)
        if flops.marks & MISSING:
            return Amount(None, MISSING)
        return flops

    def intensity(self, entry: Entry) -> Amount:
        """Flops per DRAM byte of an entry."""
        value = entry.intensity_flop_per_byte
        if value is None:
            return Amount(None)
        return Amount(value, (self.flops(entry).marks | self.summed(entry, DRAM).marks) & ~MISSING)

    def per_flop(self, entry: Entry) -> Amount:
        """Energy per flop of an entry, J, with constant power unless the report leaves that out."""
        return ratio(self.counted_energy(entry), self.flops(entry))

    @cached_property
    def measure(self) -> str:
        """What the profile's kernels are ranked by: "total" (energy), else "time", "dram" (bytes), "instructions"."""
        if self.has_energy:
            return "total"
        if self.time.value is not None:
            return "time"
        return when(self.summed(self.document, DRAM).value, "dram") or "instructions"

    @property
    def energy_unit(self) -> str:
        """The unit of energies: J, or W for those of one second."""
        return "W" if self.is_of_a_second else "J"

    @property
    def unit(self) -> str:
        """The unit of what kernels are ranked by: J, W for a second's, s or B; "" for instructions."""
        return {"total": self.energy_unit, "time": "s", "dram": "B"}.get(self.measure, "")

    def counted_energy(self, entry: Entry) -> Amount:
        """All energy of an entry; where time is a model, what is above constant power."""
        if self.is_above:
            return above_of(entry)
        return energy_of(entry, "total")

    def ranked(self, entry: Entry) -> Amount:
        """The amount of an entry that kernels are ranked by (`measure`): J, s, B or instructions."""
        if self.measure == "total":
            return self.counted_energy(entry)
        if self.measure == "time":
            return time_of(entry)
        if self.measure == "dram":
            return self.summed(entry, DRAM)
        # No kernel executes nothing: what is 0 are the classes that were counted.
        instructions = self.instructions(entry)
        return Amount(instructions.value or None, instructions.marks)

    @cached_property
    def order(self) -> list[int]:
        """The places of kernels in the document, those that take most (`ranked`) first."""
        places = list(range(len(self.kernels)))
        if self.measure not in ("total", "time") or self.is_above:
            places.sort(key=lambda place: -self.ranked(self.kernels[place]).or_zero)
        return places

    def place_of(self, entry: Entry) -> int | None:
        """The place of a kernel in the document; None for a group, or the whole."""
        return next((place for place, kernel in enumerate(self.kernels) if kernel is entry), None)

    @cached_property
    def marks(self) -> int:
        """All marks that stand anywhere in the report, as bits."""
        marks = self.time.marks
        for word in self.words.values():
            marks |= _shown_marks(word.value)
        if self.costs is not None:
            marks |= bits([*self.document.marks, *(mark for costs in self.document.prices for mark in costs.marks)])
            for word in self.words.values():
                marks |= _shown_marks(word.energy)
        for entry in (*self.charges.values(), *(self.document.what_if or ())):
            marks |= bits(entry.marks)
        return marks

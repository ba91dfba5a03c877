"""The document `eprof.profile/1` as the sections read it: amounts with their marks, groups, kernels."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eprof.base.marks import from_names
from eprof.base.vocabulary import COMPUTATION, COUNTS, DATA, GROUPS, stand_ins
from eprof.words.badges import ASSUMED, ESTIMATED, MISSING, SIMULATED, Amount

_COUNTING = ESTIMATED | SIMULATED | ASSUMED
_ABOUT_TIME = MISSING | ESTIMATED | SIMULATED
FLOPS = {name: count.flops for name, count in COUNTS.items() if count.flops}
DRAM = ("dram_read", "dram_write", "dram")


def number(value: Any) -> float | None:
    """A finite number, or None."""
    return float(value) if value is not None and math.isfinite(value) else None


def marks_of(entry: Mapping[str, Any], key: str = "marks") -> int:
    """The marks listed under `key`, as a number; remembered, because 5,000 kernels ask 100,000 times."""
    words = entry.get(key)
    return _bits(tuple(words)) if words else 0


@lru_cache
def _bits(words: tuple[str, ...]) -> int:
    return int(from_names(list(words)))


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of what is known, with all marks; MISSING if something is not known, None if nothing is."""
    marks, value = 0, None
    for amount in amounts:
        marks |= amount.marks
        if amount.value is None:
            marks |= MISSING
        else:
            value = (value or 0.0) + amount.value
    return Amount(value, marks)


def _some(amount: Amount) -> Amount:
    """At least 0 says nothing: such a sum is not known."""
    return Amount(None, amount.marks) if amount.lower and not amount.value else amount


def ratio(above: Amount, below: Amount) -> Amount:
    """One amount over another, with the marks of both; None where either is not known or the lower one is 0."""
    marks = above.marks | below.marks
    known = above.value is not None and below.value
    return Amount(above.value / below.value if known else None, marks)  # type: ignore[operator]


def energy_of(entry: Mapping[str, Any], part: str) -> Amount:
    """An energy of a kernel or of the whole: computation, data, constant, total."""
    joules, marks = entry.get("energy_j") or {}, entry.get("energy_marks") or {}
    words = marks.get(part)
    return Amount(number(joules.get(part)), _bits(tuple(words)) if words else 0)


def above_constant(entry: Mapping[str, Any]) -> Amount:
    """Computation and data movement of a kernel or of the whole; a part without any priced count adds nothing."""
    parts = [energy_of(entry, part) for part in (COMPUTATION, DATA)]
    return total(part for part in parts if part.value is not None or part.marks & MISSING)


def time_of(entry: Mapping[str, Any]) -> Amount:
    """The time of a kernel or of the whole. Without `time_marks`, the marks of the constant energy speak for it."""
    value = number(entry.get("time_s"))
    if "time_marks" in entry:
        return Amount(value, marks_of(entry, "time_marks"))
    constant = energy_of(entry, "constant")
    return Amount(value, constant.marks & _ABOUT_TIME if constant.value is not None else 0)


def power_of(entry: Mapping[str, Any]) -> Amount:
    """Mean power: all energy over the time."""
    return Amount(number(entry.get("power_w")), energy_of(entry, "total").marks | time_of(entry).marks)


def cell_energy(cell: Mapping[str, Any]) -> Amount:
    """The energy of one count."""
    value, marks = number(cell.get("energy_j")), marks_of(cell)
    if value is None and number(cell.get("value")) == 0:
        return Amount(0.0)
    return Amount(value, marks if value is None or value or marks & MISSING else 0)


@dataclass(frozen=True)
class Word:
    """One count of the whole program, as the document lists it."""

    name: str
    label: str
    group: str
    family: str
    unit: str
    value: Amount
    energy: Amount
    how: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Column:
    """One count of every kernel: values and joules (NaN: not known), marks (-1: neither counted nor missing)."""

    values: NDArray[np.float64]
    joules: NDArray[np.float64]
    marks: NDArray[np.int64]


def _array(values: list[Any]) -> NDArray[np.float64]:
    found = np.array(values, dtype=np.float64)
    found[~np.isfinite(found)] = np.nan
    return found


class View:
    """A document with the questions that several sections ask of it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.kernels: list[Mapping[str, Any]] = list(document.get("kernels") or [])
        self.costs: Mapping[str, Any] | None = document.get("costs")
        self.charges: Mapping[str, Mapping[str, Any]] = (self.costs or {}).get("charges") or {}
        self._columns: dict[str, Column] = {}
        self.several_devices = len(document.get("devices") or []) > 1

    def energy(self, part: str) -> Amount:
        """An energy of the whole program."""
        return energy_of(self.document, part)

    @property
    def energy_measured(self) -> Any:
        """What a meter saw, in J; None where there was none."""
        return (self.document.get("energy_j") or {}).get("measured")

    @cached_property
    def above(self) -> Amount:
        """All energy above constant power."""
        return above_constant(self.document)

    @cached_property
    def time(self) -> Amount:
        """Time of all kernels; MISSING if one of them has none, and none is told of all together."""
        found = time_of(self.document)
        lost = "time_marks" not in self.document and any(kernel.get("time_s") is None for kernel in self.kernels)
        return Amount(found.value, found.marks | (MISSING if lost else 0) if found.value is not None else 0)

    @cached_property
    def power(self) -> Amount:
        """Mean power of the whole program."""
        return power_of(self.document)

    @cached_property
    def words(self) -> dict[str, Word]:
        """Every count of the document that the vocabulary knows, in its order."""
        listed = self.document.get("counts") or {}
        return {name: self._word(name, listed[name]) for name in COUNTS if name in listed}

    def _word(self, name: str, cell: Mapping[str, Any]) -> Word:
        count = COUNTS[name]
        how = tuple(cell.get("how") or ())
        return Word(
            name,
            count.label,
            count.group,
            count.family,
            count.unit,
            self._value(name, cell, how),
            cell_energy(cell),
            how,
        )

    def column(self, name: str) -> "Column":
        """One count of every kernel."""
        if name not in self._columns:
            cells = [kernel["counts"].get(name) for kernel in self.kernels]
            self._columns[name] = Column(
                _array([cell["value"] if cell else None for cell in cells]),
                _array([cell["energy_j"] if cell else None for cell in cells]),
                np.array(
                    [-1 if not cell else 0 if not cell["marks"] else marks_of(cell) for cell in cells], dtype=np.int64
                ),
            )
        return self._columns[name]

    def _value(self, name: str, cell: Mapping[str, Any], how: tuple[Mapping[str, Any], ...]) -> Amount:
        """The count itself: without the marks of its price, MISSING only if a kernel lacks it."""
        marks = marks_of(cell) & self.masks.get(name, _COUNTING)
        lost = bool(cell.get("lower_bound")) or bool(np.isnan(self.column(name).values).any())
        return Amount(number(cell.get("value")), marks | (MISSING if lost else 0))

    @cached_property
    def masks(self) -> dict[str, int]:
        """The marks that a word's count can have: its price may be assumed, the count is not."""
        found = {}
        for name, cell in (self.document.get("counts") or {}).items():
            from_price = marks_of(self.charges.get(name) or {})
            for way in cell.get("how") or ():
                from_price &= ~marks_of(way)
            found[name] = _COUNTING & ~from_price
        return found

    @cached_property
    def groups(self) -> dict[str, Amount]:
        """Energy of each group that has any or lacks some, in stacking order, constant power first."""
        return self.groups_of(self.document)

    def groups_of(self, entry: Mapping[str, Any]) -> dict[str, Amount]:
        """The same for one kernel."""
        members: dict[str, list[Amount]] = {group: [] for group in GROUPS}
        constant = energy_of(entry, "constant")
        if self.costs:
            members["constant"].append(constant)
        for name, cell in (entry.get("counts") or {}).items():
            if name in COUNTS and (self.costs or number(cell.get("energy_j")) is not None):
                members[COUNTS[name].group].append(cell_energy(cell))
        sums = {group: _some(total(amounts)) for group, amounts in members.items() if amounts}
        return {group: amount for group, amount in sums.items() if amount.value or amount.marks & MISSING}

    @cached_property
    def has_energy(self) -> bool:
        """Whether any energy is known."""
        return self.energy("total").value is not None

    @cached_property
    def measure(self) -> str:
        """What kernels are ranked by: "total" (energy), else "time", else "instructions"."""
        if self.has_energy:
            return "total"
        return "time" if self.time.value is not None else "instructions"

    def counted(self, unit: str) -> list[str]:
        """The words that make up all instructions or all bytes, none twice.

        No requested bytes beside served ones, no warp instructions among threads'. A class total and its parts exclude
        each other in every kernel.
        """
        names = [name for name, word in self.words.items() if word.unit == unit and word.value.value is not None]
        plain = [name for name in names if name != "warp_issue"]
        served = [name for name in plain if COUNTS[name].group != "requested"]
        return served or plain or names

    @cached_property
    def instruction_words(self) -> list[str]:
        """The words that make up all instructions."""
        return self.counted("instruction")

    @cached_property
    def byte_words(self) -> list[str]:
        """The words that make up all bytes."""
        return self.counted("byte")

    def instructions(self, entry: Mapping[str, Any]) -> Amount:
        """All thread-level instructions of a kernel or of the whole."""
        return self.summed(entry, self.instruction_words)

    def summed(self, entry: Mapping[str, Any], names: Iterable[str]) -> Amount:
        """The sum of some counts; a word that is not there makes it a lower bound.

        Unless another stands in for it: a total for its parts, or they for it.
        """
        cells = self.words if entry is self.document else entry.get("counts") or {}
        asked = [name for name in names if name in cells or not any(other in cells for other in stand_ins(name))]
        found = total(self._amount(entry, name) for name in asked)
        # "At least 0" says nothing: what the hardware lacks was counted, the rest was not.
        return Amount(None, found.marks) if found.lower and not found.value else found

    def _amount(self, entry: Mapping[str, Any], name: str) -> Amount:
        """A count of a kernel, or of the whole."""
        if entry is self.document:
            return self.words[name].value if name in self.words else Amount(None)
        return self.cell_value(name, (entry.get("counts") or {}).get(name) or {})

    def cell_value(self, name: str, cell: Mapping[str, Any]) -> Amount:
        """One kernel's count, with the marks of the counting alone."""
        value = number(cell.get("value"))
        marks = marks_of(cell) & self.masks.get(name, _COUNTING)
        return Amount(value, marks | (MISSING if value is None or cell.get("lower_bound") else 0))

    def flops(self, entry: Mapping[str, Any]) -> Amount:
        """Floating-point operations, two for a multiply-add; not known unless every class of them is."""
        if entry is not self.document:
            return self._flops[id(entry)]
        found = total(self._flops.values())
        return Amount(None, MISSING) if found.marks & MISSING else found

    @cached_property
    def _flops(self) -> dict[int, Amount]:
        """The flops of every kernel."""
        work = np.zeros(len(self.kernels))
        marks = np.zeros(len(self.kernels), dtype=np.int64)
        for name, flops in FLOPS.items():
            column = self.column(name)
            work = work + column.values * flops
            marks |= np.where(column.values != 0, column.marks & self.masks.get(name, _COUNTING), 0)
        return {
            id(kernel): Amount(None, MISSING) if math.isnan(flops) else Amount(flops, bits)
            for kernel, flops, bits in zip(self.kernels, work.tolist(), marks.tolist(), strict=True)
        }

    def intensity(self, entry: Mapping[str, Any]) -> Amount:
        """Flops per DRAM byte."""
        value = number(entry.get("intensity_flop_per_byte"))
        marks = self.flops(entry).marks | self.summed(entry, DRAM).marks if value is not None else 0
        return Amount(value, marks & ~MISSING)

    def per_flop(self, entry: Mapping[str, Any]) -> Amount:
        """Energy for each flop; the price of everything the program does, constant power too."""
        return ratio(energy_of(entry, "total"), self.flops(entry))

    def ranked(self, entry: Mapping[str, Any]) -> Amount:
        """A kernel's (or the whole's) amount of what kernels are ranked by."""
        if self.measure == "total":
            return energy_of(entry, "total")
        if self.measure == "time":
            return self.time if entry is self.document else time_of(entry)
        return self.instructions(entry)

    @cached_property
    def order(self) -> list[int]:
        """Kernels, largest first: as the document has them, unless neither energy nor time is known."""
        places = range(len(self.kernels))
        if self.measure != "instructions":
            return list(places)
        return sorted(places, key=lambda at: -(self.instructions(self.kernels[at]).value or 0.0))

    @cached_property
    def marks(self) -> int:
        """Every mark that stands anywhere in the document."""
        found = (marks_of(self.document) if self.costs else 0) | marks_of(self.costs or {}) | self.time.marks
        for word in self.words.values():
            found |= word.value.marks | (word.energy.marks if self.costs else 0)
        for entry in (*self.charges.values(), *(self.document.get("what_if") or ())):
            found |= marks_of(entry)
        return found

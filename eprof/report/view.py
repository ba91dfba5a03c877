"""The document `eprof.profile/1` as the sections read it: amounts with their marks, groups, kernels."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from eprof.marks import NONE, Mark, from_names
from eprof.report.badges import Amount
from eprof.vocabulary import COMPUTATION, COUNTS, DATA, GROUPS, PARTS

_ABOUT_TIME = Mark.MISSING | Mark.ESTIMATED | Mark.SIMULATED
FLOPS = {name: count.flops for name, count in COUNTS.items() if count.flops}
DRAM = ("dram_read", "dram_write")


def number(value: Any) -> float | None:
    """A finite number, or None."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def marks_of(entry: Mapping[str, Any], key: str = "marks") -> Mark:
    """The marks listed under `key`."""
    return from_names(entry.get(key) or [])


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of what is known, with all marks; MISSING if something is not known, None if nothing is."""
    marks, value = NONE, None
    for amount in amounts:
        marks |= amount.marks
        if amount.value is None:
            marks |= Mark.MISSING
        else:
            value = (value or 0.0) + amount.value
    return Amount(value, marks)


def ratio(above: Amount, below: Amount) -> Amount:
    """One amount over another, with the marks of both; None where either is not known or the lower one is 0."""
    marks = above.marks | below.marks
    known = above.value is not None and below.value
    return Amount(above.value / below.value if known else None, marks)  # type: ignore[operator]


def energy_of(entry: Mapping[str, Any], part: str) -> Amount:
    """An energy of a kernel or of the whole: computation, data, constant, total."""
    return Amount(number((entry.get("energy_j") or {}).get(part)), marks_of(entry.get("energy_marks") or {}, part))


def above_constant(entry: Mapping[str, Any]) -> Amount:
    """Computation and data movement of a kernel or of the whole."""
    return total(energy_of(entry, part) for part in (COMPUTATION, DATA))


def time_of(entry: Mapping[str, Any]) -> Amount:
    """The time of a kernel or of the whole. Where the document has no `time_marks`, those of the constant energy speak."""
    value = number(entry.get("time_s"))
    if "time_marks" in entry:
        return Amount(value, marks_of(entry, "time_marks"))
    constant = energy_of(entry, "constant")
    return Amount(value, constant.marks & _ABOUT_TIME if constant.value is not None else NONE)


def power_of(entry: Mapping[str, Any]) -> Amount:
    """Mean power: all energy over the time."""
    return Amount(number(entry.get("power_w")), energy_of(entry, "total").marks | time_of(entry).marks)


def cell_energy(cell: Mapping[str, Any]) -> Amount:
    """The energy of one count."""
    value, marks = number(cell.get("energy_j")), marks_of(cell)
    if value is None and number(cell.get("value")) == 0:
        return Amount(0.0)
    return Amount(value, marks if value is None or value or marks & Mark.MISSING else NONE)


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


class View:
    """A document with the questions that several sections ask of it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document
        self.kernels: list[Mapping[str, Any]] = list(document.get("kernels") or [])
        self.costs: Mapping[str, Any] | None = document.get("costs")
        self.charges: Mapping[str, Mapping[str, Any]] = (self.costs or {}).get("charges") or {}
        self.several_devices = len(document.get("devices") or []) > 1

    def energy(self, part: str) -> Amount:
        """An energy of the whole program."""
        return energy_of(self.document, part)

    @cached_property
    def above(self) -> Amount:
        """All energy above constant power."""
        return above_constant(self.document)

    @cached_property
    def time(self) -> Amount:
        """Time of all kernels; MISSING if one of them has none."""
        found = time_of(self.document)
        lost = any(kernel.get("time_s") is None for kernel in self.kernels)
        return Amount(found.value, found.marks | (Mark.MISSING if lost else NONE) if found.value is not None else NONE)

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
            name, count.label, count.group, count.family, count.unit, self._value(name, cell, how), cell_energy(cell), how
        )

    def _value(self, name: str, cell: Mapping[str, Any], how: tuple[Mapping[str, Any], ...]) -> Amount:
        """The count itself: without the marks of its price, MISSING only if a kernel lacks it."""
        marks = self.count_marks(name, marks_of(cell), how)
        lost = any((kernel["counts"].get(name) or {}).get("value") is None for kernel in self.kernels)
        return Amount(number(cell.get("value")), marks | (Mark.MISSING if lost else NONE))

    def count_marks(self, name: str, marks: Mark, how: Iterable[Mapping[str, Any]]) -> Mark:
        """What is left of a cell's marks for the count alone: its price may be assumed, the count is not."""
        from_counting = NONE
        for way in how:
            from_counting |= marks_of(way)
        from_price = marks_of(self.charges.get(name) or {})
        return marks & ~Mark.MISSING & (from_counting | ~from_price)

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
        sums = {group: total(amounts) for group, amounts in members.items() if amounts}
        return {group: amount for group, amount in sums.items() if amount.value or amount.marks & Mark.MISSING}

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
        """The words that make up all instructions or all bytes, none twice: no class total beside its parts,
        no requested bytes beside served ones, no warp instructions among those of threads."""
        names = [name for name, word in self.words.items() if word.unit == unit and word.value.value is not None]
        doubled = {whole for whole, parts in PARTS.items() if any(part in names for part in parts)} | {"warp_issue"}
        plain = [name for name in names if name not in doubled]
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
        """The sum of some counts; a word that is not there makes it a lower bound."""
        cells = entry.get("counts") or {}
        whole = entry is self.document
        return total(
            (self.words[name].value if name in self.words else Amount(None))
            if whole
            else self.cell_value(name, cells.get(name) or {})
            for name in names
        )

    def cell_value(self, name: str, cell: Mapping[str, Any]) -> Amount:
        """One kernel's count, with the marks of the counting alone."""
        word = self.words.get(name)
        value = number(cell.get("value"))
        marks = self.count_marks(name, marks_of(cell), word.how if word else ())
        return Amount(value, marks if value is not None else marks | Mark.MISSING)

    def flops(self, entry: Mapping[str, Any]) -> Amount:
        """Floating-point operations, two for a multiply-add; not known unless every class of them is."""
        cells = entry.get("counts") or {}
        marks, found = NONE, 0.0
        for name, flops in FLOPS.items():
            amount = self.cell_value(name, cells.get(name) or {})
            if amount.value is None:
                return Amount(None, Mark.MISSING)
            found += amount.value * flops
            marks |= amount.marks if amount.value else NONE
        lost = entry is self.document and any(self.words[name].value.lower for name in FLOPS)
        return Amount(None if lost else found, marks | (Mark.MISSING if lost else NONE))

    def intensity(self, entry: Mapping[str, Any]) -> Amount:
        """Flops per DRAM byte."""
        value = number(entry.get("intensity_flop_per_byte"))
        marks = self.flops(entry).marks | self.summed(entry, DRAM).marks if value is not None else NONE
        return Amount(value, marks & ~Mark.MISSING)

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
    def marks(self) -> Mark:
        """Every mark that stands anywhere in the document."""
        found = marks_of(self.document) | marks_of(self.costs or {}) | self.time.marks
        for entry in (*self.words.values(),):
            found |= entry.value.marks | entry.energy.marks
        for charge in self.charges.values():
            found |= marks_of(charge)
        return found

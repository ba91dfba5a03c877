"""`CounterSheet`: evaluates a definition's formulas on the counters of each kernel; values, marks, bounds and ways.

A count that lacks launches is a lower bound. What it is subtracted from is then an upper bound, and a difference of two
lower bounds is no bound at all. `FormulaTerm` carries this through a formula, beside the values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from operator import attrgetter

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from eprof.base.arrays import Bools, Floats, Ints, known_or_zero
from eprof.base.gpus import Traits, capabilities, normal_name, sheets_of
from eprof.base.kernels import short
from eprof.base.optional import either, mapped
from eprof.base.signs import A_SECOND
from eprof.base.toml import Formula
from eprof.base.vocabulary import ESTIMATED, MISSING
from eprof.counts.definition import (
    CORE_CLOCK,
    DRAM_CLOCK,
    SM_COUNT,
    Counter,
    Definition,
    Entry,
    Told,
    as_operand,
)
from eprof.logs.log import COUNT, OTHER, Launches

SECONDS = "seconds"  # as a counter: the time of a row
_AVERAGED = "an average over several launches, not weighted by their size"
# A difference of nearly equal counters may come out negative by this share of them: they are of different passes, and
# ECC lets DRAM read up to a quarter more than the program read. Further below 0, the formula does not hold.
_TOLERANCE = 0.125
_SHORT_S = 1e-4  # of shorter launches the time holds so much else that cycles a second are no clock
_ALIKE = 1.1  # times the least: peaks of boards that a GPU may be, which are one for an estimate


class Way(Struct, frozen=True):
    """How a count was made: formula in the profiler's names, what it rests on, its marks, and for how many kernels."""

    formula: str
    note: str
    mark: int
    kernels: int = 0


class FormulaTerm(Struct, frozen=True, eq=False):
    """The value of a part of a formula for each kernel, all arrays (n_kernels,). Factors are 0 or more, as counts are.

    size: the value if every difference were a sum: a negative result that is small beside it is of rounding, not a
    contradiction. low: the truth may be larger. high: the truth may be smaller. Both: the value says nothing.
    """

    values: Floats
    size: Floats
    low: Bools
    high: Bools

    @classmethod
    def of(cls, values: Floats, low: Bools, high: Bools) -> FormulaTerm:
        """The term of a counter, a number or a quantity worked out before."""
        return cls(values, np.abs(values), low, high)

    def __add__(self, other: FormulaTerm | float) -> FormulaTerm:
        """The sum of two terms: a lower bound if one of them is, an upper bound if one of them is."""
        other = self._same(other)
        return FormulaTerm(
            self.values + other.values, self.size + other.size, self.low | other.low, self.high | other.high
        )

    def __sub__(self, other: FormulaTerm | float) -> FormulaTerm:
        """The difference of two terms: less a lower bound it is an upper bound, less an upper bound a lower one."""
        other = self._same(other)
        return FormulaTerm(
            self.values - other.values, self.size + other.size, self.low | other.high, self.high | other.low
        )

    def __mul__(self, other: FormulaTerm | float) -> FormulaTerm:
        """The product of two terms of 0 or more: a lower bound if one of them is, an upper bound if one of them is."""
        other = self._same(other)
        return FormulaTerm(
            self.values * other.values, self.size * other.size, self.low | other.low, self.high | other.high
        )

    def __truediv__(self, other: FormulaTerm | float) -> FormulaTerm:
        """The quotient of two terms: over a lower bound it is an upper bound, over an upper bound a lower one."""
        other = self._same(other)
        size = self.size / np.abs(other.values)
        return FormulaTerm(self.values / other.values, size, self.low | other.high, self.high | other.low)

    __radd__, __rmul__ = __add__, __mul__

    def __array_ufunc__(self, choose: np.ufunc, method: str, *terms: FormulaTerm | float) -> FormulaTerm:
        """The smaller or larger of two terms (numpy's minimum, maximum): a lower (upper) bound if one of them is."""
        left, right = map(self._same, terms)
        size = np.maximum(left.size, right.size)
        return FormulaTerm(choose(left.values, right.values), size, left.low | right.low, left.high | right.high)

    def __rsub__(self, number: float) -> FormulaTerm:
        return self._same(number) - self

    def __rtruediv__(self, number: float) -> FormulaTerm:
        return self._same(number) / self

    def _same(self, other: FormulaTerm | float) -> FormulaTerm:
        """`other` as a term; a number of the formula is exact, and one element for all kernels."""
        if isinstance(other, FormulaTerm):
            return other
        exact = np.zeros(1, dtype=np.bool_)
        return FormulaTerm.of(np.full(1, float(other)), exact, exact)


class Cells(Struct, frozen=True, eq=False):
    """A name's values for each kernel, their marks, and which of `ways` made each (choice; -1: none, the value is NaN).

    A value marked MISSING is a lower bound. averaged: where an average over several launches takes part, so that all
    but a zero is an estimate. high: where the value is an upper bound. No count may be that, but a quantity may: what
    an upper bound is subtracted from is a lower bound again.
    """

    values: Floats
    marks: Ints
    choice: Ints
    ways: tuple[Way, ...]
    averaged: Bools
    high: Bools

    @property
    def low(self) -> Bools:
        """True where the value is a lower bound, (n_kernels,)."""
        return np.asarray(((self.marks & MISSING) != 0) & ~np.isnan(self.values))

    def term(self) -> FormulaTerm:
        """The cells as a term of a formula."""
        return FormulaTerm.of(self.values, self.low, self.high)


class _Result(Struct, frozen=True, eq=False):
    """A formula worked out for each kernel: its term and marks, where averages take part, the cells of its names."""

    formula: Formula
    term: FormulaTerm
    marks: Ints
    averaged: Bools
    parts: Mapping[str, Cells]


class CounterSheet(Struct, eq=False):
    """Evaluates a definition's names and formulas on the counters of `launches`, remembers results, and warns.

    wrong_units: counter that is not used because of its unit -> its name and the units, in words.
    """

    launches: Launches
    definition: Definition
    warnings: list[str] = field(default_factory=list)
    wrong_units: dict[str, str] = field(default_factory=dict)
    _known: dict[str, Cells | None] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """The number of kernels whose counters are on the sheet."""
        return len(self.launches.rows)

    @property
    def never(self) -> Bools:
        """False for each kernel, (n_kernels,)."""
        return np.zeros(self.length, dtype=np.bool_)

    def look_up(self, name: str) -> Cells | None:
        """The cells of a name of the definition; None if it is not in the definition, or the log has nothing for it."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def _find(self, name: str) -> Cells | None:
        """`look_up`, worked out: of a parameter, a condition, a quantity or a counter of the definition."""
        if name in self.definition.parameters:
            value = self.definition.parameters[name]
            return self.made_one_way(np.full(self.length, value), Way(f"{value:g}", "", 0))
        if name in self.definition.told:
            told = self.definition.told[name]
            return self.made_one_way(self._told(told), Way(told.text, "", 0))
        if name in self.definition.quantities:
            return self.first_known(name, self.definition.quantities[name], 32, is_step=True)
        counter = self.definition.counters.get(name)
        if counter is None:
            return None
        return self._slices(counter) if counter.slices else self._counter(counter)

    def made_one_way(self, values: Floats, *way: Way) -> Cells:
        """Cells of these values without marks, all made in the one `way`, if given; NaN is made in none."""
        zeros = np.zeros(self.length, dtype=np.int64)
        return Cells(values, zeros, np.where(np.isnan(values), -1, zeros), way, self.never, self.never)

    def _told(self, told: Told) -> Floats:
        """The number that `told` is for each kernel, (n_kernels,): 1 it holds, 0 not, NaN not known; or a peak."""
        if told.peak:
            return self._peak(told.peak)
        if told.device is None:
            alike = [each for each in self.definition.told.values() if each.kernel and each.group == told.group]
            fits = (
                (each for each in alike if each.kernel and each.kernel.search(name))
                for name in self.launches.rows.kernel
            )
            firsts = (next(fitting, None) for fitting in fits)
            return np.array([first and first == told for first in firsts], dtype=np.float64)  # None becomes NaN
        sms = self.multiprocessors() if told.multiprocessors else np.full(self.length, np.nan)
        values = np.where(np.isnan(sms), np.nan, np.isin(sms, [*told.multiprocessors]))
        for row, device in enumerate(self.launches.rows.device):
            is_it = device is not None and told.device.search(normal_name(device)) is not None
            if is_it or device is not None and capabilities(device):
                values[row] = is_it
        return values

    def _peak(self, name: str) -> Floats:
        """A peak of each kernel's GPU by its data sheet; NaN where it may be one of several whose peaks are apart."""

        @cache
        def of_boards(device: str | None, sms: float, dram_hz: float, base_hz: float) -> float:
            told = Traits(round(sms) or None, dram_ghz=dram_hz / 1e9 or None, base_mhz=base_hz / 1e6 or None)
            peaks = [sheet.peaks.get(name, np.nan) for sheet in sheets_of(device, told)]
            is_one = bool(peaks) and max(peaks) <= _ALIKE * min(peaks)
            return float(np.mean(peaks)) if is_one else np.nan

        traits = self.multiprocessors(), self.dram_hz(), self.base_hz()
        # Not NaN, which is equal to no other: each kernel's boards would be looked for anew.
        told = (np.maximum(known_or_zero(values), 0.0).tolist() for values in traits)
        return np.array([*map(of_boards, self.launches.rows.device, *told)])

    def dram_hz(self) -> Floats:
        """The clock of DRAM during each kernel, in Hz, (n_kernels,); NaN where the log does not tell it."""
        return self._rate(DRAM_CLOCK)

    def base_hz(self) -> Floats:
        """The clock of cores to which ncu locks them, in Hz, (n_kernels,); NaN of short launches, or where not told."""
        rows = self.launches.rows
        is_long = rows.time_s >= _SHORT_S * rows.launches
        return np.where(is_long, self._rate(CORE_CLOCK), np.nan)

    def _rate(self, name: str) -> Floats:
        """The number of a counter that is no count during each kernel, (n_kernels,); NaN where it is not told."""
        cells = self.look_up(name)
        return either(mapped(attrgetter("values"), cells), np.full(self.length, np.nan))

    def multiprocessors(self) -> Floats:
        """The multiprocessors of each kernel's GPU, (n_kernels,), as the log tells them; NaN where it does not."""
        if SM_COUNT not in self.launches.counters:
            return np.full(self.length, np.nan)
        return self.launches.counters[SM_COUNT] / self.launches.rows.launches

    def _column(self, name: str, unit: str) -> tuple[Floats, Ints] | None:
        """(Values, marks) of the log's counter `name`, (n_kernels,) each; None: it is not there, or in another unit."""
        counters, marks, rows = self.launches.counters, self.launches.marks, self.launches.rows
        if name == SECONDS:
            return rows.time_s, rows.time_marks.astype(np.int64)
        if name not in counters:
            return None
        values = counters[name]
        if name.endswith(A_SECOND):
            values = values / rows.launches * rows.time_s
        found_unit = self.launches.units.get(name, unit)
        if (unit, found_unit) == (OTHER, COUNT):
            # nvprof prints ratios without a unit, and what has none is added up over launches.
            values, found_unit = values / rows.launches, unit
        if found_unit != unit:
            if not np.isnan(values).all():
                self.wrong_units[name] = f"{name} ({found_unit} instead of {unit})"
            return None
        return values, marks[name].astype(np.int64)

    def _counter(self, counter: Counter) -> Cells | None:
        """For each kernel the first of a counter's names that is known; None if the log has none of them."""
        columns = [(name, self._column(name, counter.unit)) for name in counter.names]
        known = [(name, column) for name, column in columns if column is not None]
        if not known:
            return None
        values = np.full(self.length, np.nan)
        marks = np.zeros(self.length, dtype=np.int64)
        choice = np.full(self.length, -1, dtype=np.int64)
        for number, (_, column) in enumerate(known):
            use = np.isnan(values) & ~np.isnan(column[0])
            values[use] = column[0][use]
            marks[use] = column[1][use]
            choice[use] = 2 * number
        averaged = (choice >= 0) & (self.launches.rows.launches > 1) & (counter.unit != COUNT)
        choice[averaged] += 1
        ways = tuple(Way(name, note, 0) for name, _ in known for note in ("", _AVERAGED))
        return Cells(values, marks, choice, ways, averaged, self.never)

    def _slices(self, counter: Counter) -> Cells | None:
        """The sum of a counter's slices, known only where all expected ones are; None if the log has none of them."""
        columns = [self._column(name, counter.unit) for name in counter.slices]
        known_columns = [column for column in columns if column is not None]
        if not known_columns:
            return None
        table = np.stack([np.full(self.length, np.nan) if column is None else column[0] for column in columns])
        known = ~np.isnan(table)
        marks = np.bitwise_or.reduce(np.stack([column[1] for column in known_columns]), axis=0)
        number = known.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            total = np.where(known, table, 0.0).sum(axis=0)
            if counter.partial:
                values = np.where(number > 0, total / number * counter.expect, np.nan)
            else:
                # None is left out below the last.
                last = np.where(known.any(axis=0), known.shape[0] - np.argmax(known[::-1], axis=0), 0)
                complete: Bools = (number >= counter.expect) & (number == last)
                values = np.where(complete, total, np.nan)
        return replace(self.made_one_way(values, Way(counter.text, "", 0)), marks=marks)

    def evaluate(self, formula: Formula) -> Cells | None:
        """A formula's values, maybe negative, NaN where a name is not known; None: the log has nothing for a name."""
        result = self._result(formula)
        if result is None:
            return None
        values, way = result.term.values, Way(self.definition.expand(formula), "", 0)
        return Cells(values, result.marks, np.where(np.isnan(values), -1, 0), (way,), result.averaged, result.term.high)

    def first_known(
        self, word: str, entries: Sequence[Entry], rounding: float = 1, *, is_step: bool = False
    ) -> Cells | None:
        """The cells of a word or quantity: for each kernel by the first of `entries` that is known and can be true.

        None: no kernel has one. A count is never an upper bound; a quantity (`is_step`) is where nothing better is
        known. A result that is negative by rounding is 0, and an estimate; one that is negative by more is not used,
        with a warning. rounding: what one count more or less changes; profilers round averages, so a result that is
        negative by no more than two such counts a launch is no news.
        """
        worked_out = [(entry, self._result(entry.formula, at_least=entry.at_least)) for entry in entries]
        known = [(entry, result) for entry, result in worked_out if result is not None]
        results = [result for _, result in known]
        # Not below 0 by more than counters of different passes differ.
        least = [-np.fmax(self._rounded(rounding), _TOLERANCE * result.term.size) for result in results]
        held = [~(result.term.values < below) for result, below in zip(results, least, strict=True)]
        choice = np.full(self.length, -1, dtype=np.int64)
        contradicted = self.never
        for number, result in enumerate(results):
            open_ = (choice < 0) & ~np.isnan(result.term.values)
            holds = held[number]
            # Where a better entry cannot be true, what only leaves out some of its counters is no truer.
            leaves_out = self.never
            for better, better_holds in zip(results[:number], held, strict=False):
                if result.formula.names < better.formula.names:
                    leaves_out |= better.term.high | ~better_holds
            choice[open_ & holds & ~result.term.high & ~leaves_out] = number
            refused = open_ & ~holds
            if (refused & ~contradicted).any():
                self._warn_negative(word, result, refused, "not used")
            contradicted |= refused
        if is_step:
            for number, result in enumerate(results):
                above = result.term.high & ~result.term.low & ~np.isnan(result.term.values)
                choice[(choice < 0) & above & held[number]] = number
        if (choice < 0).all():
            return None
        return self._chosen(word, known, choice, rounding)

    def _chosen(self, word: str, known: Sequence[tuple[Entry, _Result]], choice: Ints, rounding: float) -> Cells:
        """The cells of each kernel's chosen entry. choice: the entry's place in `known`, (n_kernels,); -1: none."""
        values = np.full(self.length, np.nan)
        marks = np.zeros(self.length, dtype=np.int64)
        way_numbers = np.full(self.length, -1, dtype=np.int64)
        averaged, high = self.never, self.never
        ways: list[Way] = []
        for number, (entry, result) in enumerate(known):
            use = choice == number
            if not use.any():
                continue
            # The entry's mark does not apply where what it is about is 0.
            condition = mapped(self.evaluate, entry.mark_if)
            quiet = self.never if condition is None else condition.values == 0
            below = use & (result.term.values < -self._rounded(rounding))
            if below.any():
                self._warn_negative(word, result, below, "set to 0 and marked estimated")
            values[use] = np.maximum(result.term.values, 0.0)[use]
            marks[use] = (result.marks | np.where(quiet, 0, int(entry.mark)))[use]
            marks[use & (result.term.values < 0)] |= ESTIMATED
            averaged[use] = (result.averaged & ~(quiet & (result.term.values == 0)))[use]
            high[use] = result.term.high[use]
            codes, used_ways = self._ways(entry, result.parts)
            way_numbers[use] = codes[use] + len(ways)
            ways += used_ways
        return Cells(values, marks, way_numbers, tuple(ways), averaged, high)

    def _result(self, formula: Formula, *, at_least: bool = False) -> _Result | None:
        """Work out a formula for each kernel; None if the log has nothing for one of its names.

        NaN where that says nothing: a part is not known, the result is not finite (division by zero), or both a lower
        and an upper bound. at_least: unknown parts of a sum of which some are known count 0: a lower bound.
        """
        cells = {name: self.look_up(name) for name in formula.names}
        if at_least:
            cells = self._without_gaps(cells)
        parts = {name: part for name, part in cells.items() if part is not None}
        if len(parts) < len(cells):
            return None
        with np.errstate(all="ignore"):
            term = formula({name: part.term() for name, part in parts.items()})
        if not isinstance(term, FormulaTerm):  # a formula of numbers alone
            term = FormulaTerm.of(np.full(self.length, float(term)), self.never, self.never)
        says = np.isfinite(term.values) & ~(term.low & term.high)
        term = replace(term, values=np.where(says, term.values, np.nan))
        marks = np.bitwise_or.reduce([self.never.astype(np.int64), *(part.marks for part in parts.values())])
        # MISSING only where the result is a lower bound, too.
        marks = np.where(term.low, marks | MISSING, marks & ~MISSING)
        averaged = np.logical_or.reduce([self.never, *(part.averaged for part in parts.values())])
        return _Result(formula, term, marks, averaged, parts)

    def _without_gaps(self, cells: Mapping[str, Cells | None]) -> dict[str, Cells | None]:
        """The parts of a sum, an unknown one 0 and MISSING for each kernel of which another part is known."""
        unknown = self.made_one_way(np.full(self.length, np.nan), Way("0", "", 0))
        parts = {name: part or unknown for name, part in cells.items()}
        some_known = np.logical_or.reduce([~np.isnan(part.values) for part in parts.values()])
        filled: dict[str, Cells | None] = {}
        for name, part in parts.items():
            gaps = np.isnan(part.values) & some_known
            marks = np.where(gaps, MISSING, part.marks)
            filled[name] = replace(part, values=np.where(gaps, 0.0, part.values), marks=marks)
        return filled if some_known.any() else dict(cells)

    def _rounded(self, rounding: float) -> Floats:
        """How far below 0 rounded averages alone may bring a difference, (n_kernels,); 0 for a single launch."""
        launches = self.launches.rows.launches.astype(np.float64)
        return np.where(launches > 1, 2 * rounding * launches, 0.0)

    def _ways(self, entry: Entry, parts: Mapping[str, Cells]) -> tuple[Ints, list[Way]]:
        """(The number of each kernel's way, these ways): every combination of ways of an entry's parts that occurs."""
        codes = np.zeros(self.length, dtype=np.int64)
        order = sorted(parts)
        for name in order:
            codes = codes * len(parts[name].ways) + np.maximum(parts[name].choice, 0)
        seen, inverse = np.unique(codes, return_inverse=True)
        ways = []
        for code in seen.tolist():
            chosen: dict[str, Way] = {}
            for name in reversed(order):
                code, number = divmod(code, len(parts[name].ways))
                chosen[name] = parts[name].ways[number]
            texts = {name: way.formula for name, way in chosen.items()}
            if entry.formula.text not in chosen:
                texts = {name: as_operand(text) for name, text in texts.items()}
            notes = [entry.note, *(way.note for way in chosen.values())]
            notes = list(dict.fromkeys(note for joined in notes for note in joined.split("; ") if note))
            ways.append(Way(self.definition.expand(entry.formula, texts), "; ".join(notes), 0))
        return inverse.astype(np.int64), ways

    def _warn_negative(self, word: str, result: _Result, where: Bools, done: str) -> None:
        """Warn that a word's formula is negative for the kernels `where`; done: what became of it, in words."""
        values = np.where(where, result.term.values, np.inf)
        worst = int(np.argmin(values))
        texts = {}
        for name, part in result.parts.items():
            texts[name] = part.ways[part.choice[worst]].formula
            if result.formula.text != name:
                texts[name] = as_operand(texts[name])
        kernels = f"the only {self.definition.nouns.kernel}"
        if self.length > 1:
            kernels = f"{where.sum()} of {self.length} {self.definition.nouns.kernels}"
        self.warnings.append(
            f"{word.replace('_', ' ')}: {self.definition.expand(result.formula, texts)} came out negative for "
            f"{kernels} (most in `{short(self.launches.rows.kernel[worst])}`: {values[worst]:,.0f}); {done}."
        )
